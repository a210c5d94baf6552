"""Rows that arrive in score order, and fits of all prefixes of a sequence."""

from __future__ import annotations

import numpy as np

import staircase_fast as sf

from . import patterns

LOSSES = {"squared": "squared", "linex": sf.losses.Linex(0.5)}


class Extend:
    """All rows in one call, and in a hundred calls."""

    params = ([10**3, 10**5, 10**7], ["noise", "labels", "monotone", "reversed"], [1, 100])
    param_names = ("rows", "targets", "calls")

    def setup(self, n, kind, calls):
        x, y = np.arange(n, dtype=float), patterns.sequence(n, kind)
        self.parts = list(zip(np.array_split(x, calls), np.array_split(y, calls), strict=True))

    def time_extend(self, *_):
        online = sf.Online()
        for x, y in self.parts:
            online.extend(x, y)


class Append:
    """Row by row."""

    params = (["squared", "linex"], [False, True])
    param_names = ("loss", "read after each row")
    n = 10**4

    def setup(self, *_):
        self.rows = list(zip(range(self.n), patterns.sequence(self.n, "noise").tolist(), strict=True))

    def time_append(self, loss, read):
        online = sf.Online(LOSSES[loss])
        for x, y in self.rows:
            online.append(x, y)
            if read:
                online.n_steps  # noqa: B018


class Prefix:
    params = ([10**3, 10**6], ["noise", "monotone", "reversed"])
    param_names = ("rows", "targets")

    def setup(self, n, kind):
        self.y = patterns.sequence(n, kind)

    def time_prefix_losses(self, *_):
        sf.prefix_losses(self.y)

    def time_unimodal_regression(self, *_):
        sf.unimodal_regression(self.y)
