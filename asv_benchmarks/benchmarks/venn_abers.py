"""Venn-Abers predictors."""

from __future__ import annotations

import numpy as np

import staircase_fast as sf

from . import patterns


class VennAbers:
    """Noisy labels, with and without weights, and labels that the score separates: then each row is a step."""

    params = ([10**3, 10**5, 10**6], ["noise", "weights", "separated"])
    param_names = ("rows", "labels")

    def setup(self, n, labels):
        self.x, self.y, _ = patterns.rows(n)
        self.y = (self.x > 0.5).astype(float) if labels == "separated" else self.y
        self.w = np.random.default_rng(2).random(n) if labels == "weights" else None
        self.queries = patterns.queries(n)
        self.venn = sf.VennAbers().fit(self.x, self.y, self.w)
        self.venn.predict(self.queries)  # builds the lookup index

    def time_fit(self, n, labels):
        sf.VennAbers().fit(self.x, self.y, self.w)

    def time_predict(self, n, labels):
        self.venn.predict(self.queries, n_threads=1)

    def time_merge(self, n, labels):
        self.venn.merge(self.queries, n_threads=1)


class CrossVennAbers:
    def setup(self):
        self.x, self.y, _ = patterns.rows(10**6)
        self.folds = np.arange(10**6) % 5
        self.cross = sf.CrossVennAbers().fit(self.x, self.y, self.folds)

    def time_fit(self):
        sf.CrossVennAbers().fit(self.x, self.y, self.folds)

    def time_merge(self):
        self.cross.merge(self.x, n_threads=1)
