"""The loss of each prefix of a sequence, and unimodal fits."""

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from reference import prefix_costs, squared_cost, stack, unimodal_fits

import staircase_fast as sf

KINDS = {
    "normal": lambda rng, n: rng.normal(size=n),
    "rising": lambda rng, n: rng.normal(size=n) + np.arange(n),
    "labels": lambda rng, n: rng.integers(0, 2, n).astype(float),
    "integers": lambda rng, n: rng.integers(-9, 10, n).astype(float),
    "far from zero": lambda rng, n: 1e8 + rng.normal(size=n),
    "huge": lambda rng, n: 1e140 * rng.normal(size=n),
    "tiny": lambda rng, n: 1e-140 * rng.normal(size=n),
    "decades": lambda rng, n: rng.normal(size=n) * 10.0 ** rng.integers(-8, 9, n),
    "constant": lambda rng, n: np.full(n, 0.1),
}
WEIGHTS = {
    "plain": lambda rng, n: None,
    "weighted": lambda rng, n: rng.random(n) + 0.1,
    "decades": lambda rng, n: 10.0 ** rng.integers(-6, 7, n),
}
some_weights = pytest.mark.parametrize("weights", WEIGHTS)


def exactly(column, n):
    return [Fraction(1)] * n if column is None else [Fraction(one) for one in column.tolist()]


def drawn(kind, weights, n, seed):
    rng = np.random.default_rng(seed)
    return KINDS[kind](rng, n), WEIGHTS[weights](rng, n)


@pytest.mark.parametrize("increasing", [True, False])
@some_weights
@pytest.mark.parametrize("kind", KINDS)
def test_losses_equal_rational_arithmetic(kind, weights, increasing):
    for n, seed in ((1, 0), (2, 1), (7, 2), (60, 3)):
        y, w = drawn(kind, weights, n, seed)
        sign = 1 if increasing else -1
        exact = prefix_costs([sign * one for one in exactly(y, n)], exactly(w, n))
        found = sf.prefix_losses(y, w, increasing=increasing)
        assert found.dtype == np.float64
        assert found.shape == (n,)
        assert (np.diff(found, prepend=0.0) >= 0).all()
        np.testing.assert_allclose(found, [float(one) for one in exact], rtol=1e-12, atol=0)


@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_the_loss_of_many_rows_is_accurate(offset):
    n = 200_000
    y = np.random.default_rng(4).normal(size=n) - np.linspace(0, 1, n) + offset
    found = sf.prefix_losses(y)[-1]
    fitted = sf.isotonic_regression(y).x
    differences = (np.asarray(y, dtype=np.longdouble) - fitted) ** 2
    assert found == pytest.approx(float(differences.sum()), rel=1e-12)


def test_an_increasing_sequence_has_loss_zero():
    y = np.sort(np.random.default_rng(5).normal(size=1000))
    assert sf.prefix_losses(y).tolist() == [0.0] * 1000
    assert sf.prefix_losses(-y, increasing=False).tolist() == [0.0] * 1000


def test_only_a_loss_that_overflows_is_infinite_not_an_intermediate_square():
    assert sf.prefix_losses([1e200, -1e200]).tolist() == [0.0, np.inf]
    assert sf.prefix_losses([1e200, -1e200], [1e-200, 1e-200]).tolist() == pytest.approx([0.0, 2e200], rel=1e-15)
    assert sf.prefix_losses([1e160, -1e160], [1e-200, 1e-200]).tolist() == pytest.approx([0.0, 2e120], rel=1e-15)
    assert sf.prefix_losses([1e-170, 0.0], [1e100, 1e100]).tolist() == pytest.approx([0.0, 0.5e-240], rel=1e-12)
    assert sf.prefix_losses([1e308, -1e308], [5e-324, 5e-324])[-1] == pytest.approx(
        2 * (1e308 * 5e-324) * 1e308, rel=1e-12
    )


def test_entries_of_weight_0_are_ignored():
    y, w = [9.0, 3.0, 7.0, 1.0, 8.0, 2.0], [0, 1, 0, 2, 0, 1]
    present = sf.prefix_losses([3.0, 1.0, 2.0], [1, 2, 1])
    found = sf.prefix_losses(y, w)
    assert found.tolist() == [0.0, present[0], present[0], present[1], present[1], present[2]]


@pytest.mark.parametrize("call", [sf.prefix_losses, sf.unimodal_regression])
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([],), "`y` must have at least one row; got none"),
        (([1.0, np.nan],), "`y` must be finite; got nan at index 1"),
        (([1.0, 2.0], [1.0]), "`y` and `weights` must have one entry per row; got 2 and 1 entries"),
        (([1.0, 2.0], [1.0, -1.5]), "`weights` must be >= 0; got -1.5 at index 1"),
        (([1.0, 2.0], [0, 0]), "`weights` must have an entry > 0; all 2 are zero"),
    ],
)
def test_bad_input_is_refused(call, arguments, message):
    with pytest.raises(ValueError, match=message):
        call(*arguments)


def test_directions_are_checked():
    with pytest.raises(ValueError, match="`increasing` must be True or False; got 'auto'"):
        sf.prefix_losses([1.0], increasing="auto")


@pytest.mark.parametrize("change", [lambda y: y.astype(np.float32), lambda y: y.astype(">f8"), lambda y: y.astype(int)])
def test_arrays_of_all_kinds_are_taken(change):
    y = np.random.default_rng(6).integers(0, 9, 50).astype(float)
    wide = np.repeat(y, 2)[::2]
    wide.setflags(write=False)
    for given in (change(y), wide):
        assert sf.prefix_losses(given).tolist() == sf.prefix_losses(y).tolist()
        assert sf.unimodal_regression(given).x.tolist() == sf.unimodal_regression(y).x.tolist()


# Unimodal


def assert_unimodal(result, y, w):
    """It is one, and its parts belong together."""
    x, weights, blocks, peak = result
    n = len(y)
    assert (np.diff(x[: peak + 1]) >= 0).all()
    assert (np.diff(x[peak:]) <= 0).all()
    assert peak == np.argmax(x)
    assert (blocks[0], blocks[-1]) == (0, n)
    values = x[blocks[:-1]]
    assert (np.diff(values) != 0).all()
    np.testing.assert_array_equal(np.repeat(values, np.diff(blocks)), x)
    np.testing.assert_allclose(weights, np.add.reduceat(np.ones(n) if w is None else w, blocks[:-1]), rtol=1e-14)


@pytest.mark.parametrize("seed", range(500))
def test_no_other_peak_has_a_lower_loss(seed):
    rng = np.random.default_rng([7, seed])
    n = int(rng.integers(1, 13))
    kind = ("normal", "integers", "labels", "rising", "far from zero")[seed % 5]
    y, w = KINDS[kind](rng, n), (None, rng.integers(1, 6, n).astype(float), rng.random(n) + 0.1)[seed % 3]
    if seed % 7 < 3:
        y = y - 0.5 * np.abs(np.arange(n) - n // 2)
    result = sf.unimodal_regression(y, w)
    assert_unimodal(result, y, w)
    targets, weights = exactly(y, n), exactly(w, n)
    fits = unimodal_fits(targets, weights)
    costs = [squared_cost(targets, weights, fit) for fit in fits]
    found = squared_cost(targets, weights, exactly(result.x, n))
    best = min(costs)
    assert abs(found - best) <= Fraction(1, 10**9) * best + Fraction(1, 10**18) * max(one * one for one in targets)
    optima = {tuple(map(float, fit)) for fit, cost in zip(fits, costs, strict=True) if cost == best}
    next_best = min((cost for cost in costs if cost > best), default=None)
    if next_best is None or next_best > best * (1 + Fraction(1, 10**9)):
        assert tuple(result.x.tolist()) in optima


def test_brute_force_finds_the_same_loss():
    """The reference, in two ways: fits around a peak, and fits of two parts, one rising and one falling."""
    rng = np.random.default_rng(8)
    for _ in range(100):
        n = int(rng.integers(1, 9))
        y, w = exactly(rng.integers(-5, 6, n), n), exactly(rng.integers(1, 4, n), n)
        by_cut = [stack(y[:k], w[:k]).fitted() + stack(y[k:][::-1], w[k:][::-1]).fitted()[::-1] for k in range(n + 1)]
        fits = unimodal_fits(y, w)
        for peak, fit in enumerate(fits):
            assert all(a <= b for a, b in pairwise(fit[: peak + 1]))
            assert all(a >= b for a, b in pairwise(fit[peak:]))
        assert min(squared_cost(y, w, fit) for fit in fits) == min(squared_cost(y, w, fit) for fit in by_cut)


@pytest.mark.parametrize(
    ("y", "x", "peak"),
    [
        ([5.0], [5.0], 0),
        ([1.0, 2.0, 3.0], [1.0, 2.0, 3.0], 2),
        ([3.0, 2.0, 1.0], [3.0, 2.0, 1.0], 0),
        ([2.0, 2.0], [2.0, 2.0], 0),
        ([1.0, 4.0, 4.0, 2.0], [1.0, 4.0, 4.0, 2.0], 1),
        ([1.0, 0.0, 1.0], [1.0, 0.5, 0.5], 0),  # as good as rising: the first cut
    ],
)
def test_small_cases_computed_by_hand(y, x, peak):
    result = sf.unimodal_regression(y)
    assert (result.x.tolist(), result.peak) == (x, peak)
    assert_unimodal(result, y, None)


def test_two_parts_with_the_same_value_are_one_block():
    result = sf.unimodal_regression([0.0, 3.0, 3.0, 1.0])
    assert result.blocks.tolist() == [0, 1, 3, 4]
    assert result.weights.tolist() == [1.0, 2.0, 1.0]


def test_entries_of_weight_0_get_the_value_of_the_block_before_them():
    result = sf.unimodal_regression([9.0, 1.0, -9.0, 5.0, 99.0, 2.0, 99.0], [0, 1, 0, 2, 0, 1, 0])
    assert result.x.tolist() == [1.0, 1.0, 1.0, 5.0, 5.0, 2.0, 2.0]
    assert result.blocks.tolist() == [0, 3, 5, 7]
    assert result.weights.tolist() == [1.0, 2.0, 1.0]
    assert result.peak == 3


def test_many_rows_are_fitted():
    n = 100_000
    truth = -(((np.arange(n) - 60_000) / 30_000) ** 2)
    y = truth + np.random.default_rng(9).normal(size=n)
    result = sf.unimodal_regression(y)
    assert_unimodal(result, y, None)
    assert 50_000 < result.peak < 70_000
    assert np.quantile(np.abs(result.x - truth), 0.99) < 0.2  # noise at the very peak is fitted as it is
