"""Evaluating a staircase."""

from __future__ import annotations

import numpy as np

from . import patterns

FEW, MANY = 500, 10**6


class Predict:
    """From one score, where the call itself takes most of the time, to many."""

    params = ([1, *(10**k for k in range(2, 8))], [FEW, MANY], ["step", "linear"])
    param_names = ("scores", "steps", "interpolation")

    def setup(self, n, n_steps, interpolation):
        if n_steps == MANY and n not in (1, 100, 10**6, 10**7):
            raise NotImplementedError  # sizes between these show nothing new
        self.stairs, self.queries, self.out = patterns.staircase(n_steps), patterns.queries(n), np.empty(n)
        self.time_predict(n, n_steps, interpolation)  # builds the lookup index

    def time_predict(self, n, n_steps, interpolation):
        self.stairs.predict(self.queries, interpolation=interpolation)

    def time_predict_out(self, n, n_steps, interpolation):
        self.stairs.predict(self.queries, interpolation=interpolation, out=self.out)


class PredictThreads:
    """Several threads are used only for many scores."""

    params = ([10**6, 10**7], [FEW, MANY], [1, 2])
    param_names = ("scores", "steps", "threads")

    def setup(self, n, n_steps, n_threads):
        self.stairs, self.queries = patterns.staircase(n_steps), patterns.queries(n)
        self.stairs.predict(self.queries)

    def time_predict(self, n, n_steps, n_threads):
        self.stairs.predict(self.queries, n_threads=n_threads)


class FirstPredict:
    """The first call with many scores also builds the lookup index."""

    params = (FEW, MANY)
    param_names = ("steps",)
    number = 1  # each call needs a staircase without an index

    def setup(self, n_steps):
        self.stairs, self.queries = patterns.staircase(n_steps), patterns.queries(10**6)

    def time_first_predict(self, n_steps):
        self.stairs.predict(self.queries)
