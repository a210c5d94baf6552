"""The public fits."""

from __future__ import annotations

import staircase_fast as sf

from . import patterns

SIZES = [10**k for k in range(2, 8)]


class Fit:
    """More and more rows, one thread."""

    params = (SIZES, list(patterns.TARGETS))
    param_names = ("rows", "targets")
    timeout = 300

    def setup(self, n, targets):
        self.given = patterns.rows(n, targets=targets)

    def time_fit(self, n, targets):
        x, y, w = self.given
        sf.fit(x, y, sample_weight=w, n_threads=1)


class FitScores:
    """All kinds of scores, one thread.  Few rows are sorted, many are surveyed."""

    params = ([10**4, 10**6], list(patterns.SCORES), list(patterns.TARGETS))
    param_names = ("rows", "scores", "targets")

    def setup(self, n, scores, targets):
        self.given = patterns.rows(n, scores, targets)

    def time_fit(self, n, scores, targets):
        x, y, w = self.given
        sf.fit(x, y, sample_weight=w, n_threads=1)


class FitThreads:
    """Several threads are used only for many rows."""

    params = ([10**6, 10**7], ["labels", "real and weights"], [1, 2])
    param_names = ("rows", "targets", "threads")
    timeout = 300

    def setup(self, n, targets, n_threads):
        self.given = patterns.rows(n, targets=targets)

    def time_fit(self, n, targets, n_threads):
        x, y, w = self.given
        sf.fit(x, y, sample_weight=w, n_threads=n_threads)


class IsotonicRegression:
    params = (SIZES, list(patterns.SEQUENCES), ["", "weights"])
    param_names = ("rows", "sequence", "weights")
    timeout = 300

    def setup(self, n, kind, weights):
        self.y, self.w = patterns.sequence(n, kind), patterns.weights(n) if weights else None

    def time_isotonic_regression(self, *_):
        sf.isotonic_regression(self.y, weights=self.w)
