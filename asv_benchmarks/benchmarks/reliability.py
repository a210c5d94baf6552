"""Reliability curves and bands."""

from __future__ import annotations

import numpy as np

import staircase_fast as sf

from . import patterns


class Reliability:
    """The curve and the decomposition of the mean score."""

    params = ([10**4, 10**6, 10**7], ["brier", "log"], [1, 2])
    param_names = ("rows", "score", "threads")
    timeout = 300

    def setup(self, n, score, n_threads):
        self.given = patterns.rows(n)

    def time_reliability(self, n, score, n_threads):
        sf.reliability(*self.given[:2], score=score, n_threads=n_threads)


class Bands:
    """Bands; those from resampled curves have twenty."""

    params = ([10**4, 10**6], ["labels", "weighted labels", "ties"], ["confidence", "pointwise", "consistency"])
    param_names = ("rows", "targets", "bands")
    timeout = 300

    def setup(self, n, targets, kind):
        self.given = patterns.rows(n, "three digits" if targets == "ties" else "uniform")
        self.weights = np.random.default_rng(3).integers(1, 9, n) if targets == "weighted labels" else None

    def time_bands(self, n, targets, kind):
        sf.reliability(*self.given[:2], sample_weight=self.weights, bands=kind, n_resamples=20, seed=0)
