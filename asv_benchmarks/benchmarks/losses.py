"""Fits under losses without a closed form, their certificates, and the rounds of the paper."""

from __future__ import annotations

import numpy as np

import staircase_fast as sf

from . import patterns

LOSSES = {
    "expectile": sf.losses.Expectile(0.8),
    "huber": sf.losses.Huber(1.0),
    "quantile": sf.losses.Quantile(0.8),
    "pseudo_huber": sf.losses.PseudoHuber(1.0),
    "log_cosh": sf.losses.LogCosh(1.0),
    "power": sf.losses.Power(1.5),
    "linex": sf.losses.Linex(0.5),
    "own": sf.losses.Custom(lambda z, y: np.tanh(z - y)),
}


class Losses:
    params = ([10**2, 10**4, 10**6], list(LOSSES))
    param_names = ("rows", "loss")
    timeout = 300

    def setup(self, n, loss):
        self.rows = np.arange(n, dtype=float), patterns.sequence(n, "noise")
        self.loss = LOSSES[loss]
        self.stairs = sf.fit(*self.rows, loss=self.loss)

    def time_fit(self, *_):
        sf.fit(*self.rows, loss=self.loss)

    def time_certify(self, *_):
        sf.certify(self.stairs, *self.rows)


class Tolerance:
    params = ([1e-1, 1e-3, 1e-6, 1e-12, None], ["log_cosh", "power"])
    param_names = ("tol", "loss")
    n = 10**5

    def setup(self, _tol, loss):
        self.rows = np.arange(self.n, dtype=float), patterns.sequence(self.n, "noise")
        self.loss = LOSSES[loss]

    def time_fit(self, tol, _loss):
        sf.fit(*self.rows, loss=self.loss, tol=tol)

    def time_anytime(self, tol, _loss):
        sf.Anytime(*self.rows, loss=self.loss).refine(tol=tol)
