"""Seeded cases of each kind of data, against exact rational arithmetic."""

import numpy as np
import pytest
from comparing import assert_same_staircase, assert_steps
from reference import fitted_steps
from strategies import Rows

import staircase_fast as sf


def normal(rng, n):
    return rng.normal(size=n)


def few_scores(rng, n):
    return rng.integers(0, max(2, n // 3), n).astype(float)


def labels(rng, n):
    return (rng.random(n) < np.linspace(0.2, 0.8, n)).astype(float)


def integers(rng, n):
    return rng.integers(-9, 10, n).astype(float)


def decimals(rng, n):
    return rng.integers(0, 30, n) / 10


def cancellation(rng, n):
    return rng.choice([-1e16, 1e16, 0.1, -0.1, 0.3], n)


def decades(rng, n):
    return rng.choice([-1.0, 1.0], n) * 10.0 ** rng.uniform(-300, 300, n)


def denormals(rng, n):
    return rng.integers(-9, 10, n) * 5e-324


def ones(rng, n):
    return np.ones(n)


def positive(draw):
    return lambda rng, n: np.abs(draw(rng, n)) + (draw(rng, n) == 0)


KINDS = {  # name: how to draw scores, targets, weights
    "noise": (normal, normal, ones),
    "noise with weights": (normal, normal, positive(normal)),
    "ties": (few_scores, normal, ones),
    "0/1 labels": (normal, labels, ones),
    "0/1 labels with ties": (few_scores, labels, ones),
    "integer weights": (few_scores, integers, lambda rng, n: abs(integers(rng, n))),
    "decimals": (few_scores, decimals, positive(decimals)),
    "cancellation": (normal, cancellation, ones),
    "600 decades of targets": (normal, decades, ones),
    "600 decades of weights": (normal, normal, positive(decades)),
    "600 decades of both": (normal, decades, positive(decades)),
    "denormals": (few_scores, denormals, positive(denormals)),
}


@pytest.mark.parametrize("n_cases", [25, pytest.param(1_000, marks=pytest.mark.long)])
@pytest.mark.parametrize("kind", KINDS)
def test_fits_are_those_of_exact_rational_arithmetic_and_refit_to_themselves(kind, n_cases):
    for case in range(n_cases):
        rng = np.random.default_rng([case, *kind.encode()])
        n = int(rng.integers(1, 33))
        rows = Rows(*(draw(rng, n) for draw in KINDS[kind]))
        rows.weights[rng.integers(n)] += not rows.weights.any()  # not all of them zero
        stairs = sf.fit(rows.scores, rows.targets, sample_weight=rows.weights)
        try:
            assert_steps(stairs, fitted_steps(*rows.lists()))
            refit = sf.fit(rows.scores, stairs(rows.scores), sample_weight=rows.weights)
            assert_same_staircase(refit, stairs)
        except AssertionError as error:
            raise AssertionError(f"case {case} of {kind}: {rows.lists()}") from error
