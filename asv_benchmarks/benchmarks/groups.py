"""Many fits in one call."""

from __future__ import annotations

import numpy as np

import staircase_fast as sf

from . import patterns

N = 10**6


class FitGroups:
    """Groups of more and more rows, one thread."""

    params = ([10, 100, 1000, 10**5], list(patterns.TARGETS))
    param_names = ("rows each", "targets")

    def setup(self, rows_each, targets):
        self.given = patterns.rows(N, targets=targets)
        self.groups = patterns.groups(N, rows_each)
        self.sorted = np.sort(self.groups)

    def time_shuffled(self, rows_each, targets):
        x, y, w = self.given
        sf.fit_groups(x, y, self.groups, sample_weight=w, n_threads=1)

    def time_together(self, rows_each, targets):
        x, y, w = self.given
        sf.fit_groups(x, y, self.sorted, sample_weight=w, n_threads=1)


class Keys:
    """All kinds of group keys."""

    params = ("integers", "sparse integers", "strings")
    param_names = ("keys",)

    def setup(self, keys):
        self.given = patterns.rows(N)
        groups = patterns.groups(N, 100)
        self.groups = {"integers": groups, "sparse integers": groups * 10**9, "strings": groups.astype(str)}[keys]

    def time_fit(self, keys):
        sf.fit_groups(self.given.scores, self.given.targets, self.groups, n_threads=1)


class OtherLosses:
    """A thousand groups of a hundred rows under losses whose steps are not means."""

    params = ("expectile", "log_cosh", "logistic")
    param_names = ("loss",)

    def setup(self, loss):
        self.given = patterns.rows(10**5)
        self.groups = patterns.groups(10**5, 100)

    def time_fit(self, loss):
        sf.fit_groups(self.given.scores, self.given.targets, self.groups, loss=loss, bounds=(-9, 9), n_threads=1)


class Predict:
    def setup(self):
        self.given = patterns.rows(N)
        self.groups = patterns.groups(N, 100)
        self.found = sf.fit_groups(self.given.scores, self.given.targets, self.groups)

    def time_predict(self):
        self.found.predict(self.given.scores, self.groups, n_threads=1)

    def time_predict_linear(self):
        self.found.predict(self.given.scores, self.groups, interpolation="linear", n_threads=1)


class FitColumns:
    """A table of a million entries, one thread."""

    params = ([10, 1000], ["C", "F"])
    param_names = ("columns", "order")

    def setup(self, k, order):
        x, y, _ = patterns.rows(N)
        self.x, self.y = (np.asarray(column.reshape(-1, k), order=order) for column in (x, y))
        self.found = sf.fit_columns(self.x, self.y)

    def time_fit(self, k, order):
        sf.fit_columns(self.x, self.y, n_threads=1)

    def time_predict(self, k, order):
        self.found.predict_columns(self.x, n_threads=1)
