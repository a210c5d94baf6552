"""Means of few rows, computed in doubles where possible, are always the exact mean rounded once."""

from fractions import Fraction

import numpy as np
import pytest
from comparing import assert_same_bits
from reference import nearest_float

import staircase_fast as sf

ROWS = [2, 3, 4, 5, 7, 8, 16, 63, 64, 65]
RNG = np.random.default_rng(11)


def ulps(n):
    """Neighbours of 1: their means lie on the midpoints between doubles, or next to them."""
    return 1.0 + RNG.integers(0, 4, n) * 2.0**-52


KINDS = {
    "noise": lambda n: RNG.normal(size=n),
    "float32": lambda n: RNG.normal(size=n).astype(np.float32),
    "neighbours of 1": ulps,
    "an ulp beside a large number": lambda n: np.where(np.arange(n) == 0, 1.0, RNG.integers(-2, 3, n) * 2.0**-53),
    "cancellation": lambda n: RNG.choice([-1e16, 1e16, 0.1, -0.1, 0.3], n),
    "a sum of nearly nothing": lambda n: np.resize([1e16, 0.1, -1e16, -0.1], n),
    "decades": lambda n: RNG.choice([-1.0, 1.0], n) * 10.0 ** RNG.uniform(-60, 60, n),
    "all decades": lambda n: RNG.choice([-1.0, 1.0], n) * 10.0 ** RNG.uniform(-300, 300, n),
    "denormals": lambda n: RNG.integers(-9, 10, n) * 5e-324,
    "denormals beside a half": lambda n: np.where(np.arange(n) == 0, 0.5, RNG.integers(-9, 10, n) * 5e-324),
    "large halves": lambda n: 2.0**51 + RNG.integers(0, 9, n) / 2,
    "decimals": lambda n: RNG.integers(-50, 50, n) / 10,
}


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_block_of_few_rows_has_the_exact_mean_rounded_once(kind, rows):
    for _ in range(50):
        block = np.sort(KINDS[kind](rows))[::-1]  # decreasing: one block
        mean = nearest_float(sum(map(Fraction, block.tolist())) / rows)
        for repeats in (1, 300):  # few and many rows
            # between rows far below and far above, which are separate blocks
            span = 4.0 * float(np.max(np.abs(block))) + 5e-324
            targets = np.concatenate([span * np.arange(-repeats, 0.0), block, span * np.arange(1.0, repeats + 1)])
            if np.isfinite(targets).all():
                assert_same_bits(sf.isotonic_regression(targets).x[repeats : repeats + rows], np.full(rows, mean))


def test_halves_at_the_limit_of_precision_are_not_integers():
    large = [2.0**51 + 0.5, 2.0**51 + 1.0, 2.0**51, -(2.0**51) - 0.5]
    mean = nearest_float(sum(map(Fraction, large)) / 4)
    assert_same_bits(sf.isotonic_regression(large).x, [mean] * 4)
