"""Inputs whose result depends on a rounding error bound or on a rare case.

Each was found by removing that bound or case from the code: most other inputs give the same fit without it.
"""

import math
from fractions import Fraction

import numpy as np
import pytest
import reference
from comparing import assert_same_staircase
from mpmath import mp, mpf

import staircase_fast as sf

L = sf.losses


def test_means_closer_than_the_rounding_of_their_sums_are_two_steps():
    scores = np.append(np.ones(10_000), 2.0)
    targets = np.append(np.full(10_000, 0.1), 0.1 + 8e-15)
    assert sf.fit(scores, targets).values.tolist() == [0.1, 0.1 + 8e-15]
    falling = sf.fit(scores, targets[::-1], increasing=False)
    assert falling.n_steps == 1  # its first block holds the larger target, but at score 1
    swapped = np.append(np.full(10_000, 0.1 + 8e-15), 0.1)
    assert sf.fit(scores, swapped, increasing=False).values.tolist() == [0.1 + 8e-15, 0.1]


@pytest.mark.parametrize("n", [300, 3000])
@pytest.mark.parametrize("sign", [1, -1])
def test_exact_sums_are_dropped_or_kept_without_a_trace(n, sign):
    """Some parts have equal means in doubt; others merge with them beyond doubt."""
    rng = np.random.default_rng(n)
    equal, falling = np.tile([0.3, 0.2, 0.1, 0.2], 8), 0.2 - 0.1 * np.arange(-8, 8)
    parts = [(equal, falling)[rng.integers(2)] + 0.1 * (k // 9) for k in range(n // 20)]
    targets = sign * np.round(np.concatenate(parts), 1)
    found = sf.isotonic_regression(targets, increasing=sign > 0)
    steps = reference.fitted_steps(range(len(targets)), targets.tolist(), increasing=sign > 0)
    assert found.blocks.tolist() == [0, *np.cumsum([step.count for step in steps])]
    assert found.x[found.blocks[:-1]].tolist() == [step.value for step in steps]


@pytest.mark.usefixtures("surveyed")
def test_rounding_errors_of_bucket_summaries_hide_no_step():
    targets = np.repeat([1 + 6.1e-8, 0, -1, 2 + 1.1e-7, 0, -2], 5000)
    scores = np.arange(30_000) / 15_000 + np.repeat([0.0, 1.0], 15_000)
    order = np.random.default_rng(0).permutation(30_000)
    stairs = sf.fit(scores[order], targets[order])
    assert stairs.n_steps == 2
    assert_same_staircase(stairs, sf.fit(scores, targets))


@pytest.mark.usefixtures("surveyed")
@pytest.mark.parametrize("seed", range(5))
def test_targets_closer_than_the_precision_of_a_summary_are_distinguished(seed):
    """Most targets lie around 0, the others between two neighbouring numbers of a bucket summary."""
    rng = np.random.default_rng(seed)
    top = 1 + 0.0038 * np.arange(2000) / 2000 + 0.0038 * rng.random(2000)
    scores, targets = np.arange(30_000.0), np.append(rng.uniform(-0.4, 0.4, 28_000), top)
    order = rng.permutation(30_000)
    for sign in (1, -1):
        found = sf.fit(scores[order], sign * targets[order], increasing=sign > 0)
        assert_same_staircase(found, sf.fit(scores, sign * targets, increasing=sign > 0))


@pytest.mark.parametrize("seed", range(30))
def test_a_pattern_that_repeats_is_one_step_although_its_sums_are_rounded(seed):
    falling = np.sort(np.random.default_rng(seed).normal(size=32))[::-1]
    assert sf.fit(np.arange(32 * 60), np.tile(falling, 60), loss=L.PseudoHuber(1.0)).n_steps == 1


def expectile_of(targets, level):
    """The exact expectile: the root of a sum of slopes that is linear between two targets."""
    level = Fraction(level)
    y = sorted(Fraction(t) for t in targets)
    for k in range(1, len(y)):  # k targets lie at or below the root
        below, above = 1 - level, level
        root = (below * sum(y[:k]) + above * sum(y[k:])) / (below * k + above * (len(y) - k))
        if y[k - 1] <= root <= y[k]:
            return root
    return y[0]


@pytest.mark.parametrize("level", [0.1, 0.5, 0.7, 0.99])
def test_bounds_of_expectiles_hold_to_half_an_ulp(level):
    rng = np.random.default_rng(3)
    for size in (3, 10, 50):
        for _ in range(60):
            targets = rng.normal(size=size)
            stairs = sf.fit(np.zeros(size), targets, loss=L.Expectile(level))
            root = expectile_of(targets.tolist(), level)
            half = Fraction(math.ulp(float(root))) / 2
            assert Fraction(float(stairs.lower[0])) - half <= root <= Fraction(float(stairs.upper[0])) + half


def test_two_steps_that_are_ulps_apart_are_certified_as_one():
    values = [math.nextafter(0.5, 0), math.nextafter(0.5, 1)]
    split = sf.Staircase([0, 1], [0, 1], values, [1, 1], [1, 1])
    assert sf.certify(split, [0, 1], [1.0, 0.0]).optimal
    thrice = sf.Staircase([0, 1, 2], [0, 1, 2], [values[0], 0.5, values[1]], [1] * 3, [1] * 3)
    assert sf.certify(thrice, [0, 1, 2], [1.0, 0.5, 0.0]).optimal
    assert not sf.certify(thrice, [0, 1, 2], [1.0, 0.6, 0.0]).optimal


@pytest.mark.parametrize("ulps", [1, 2, 3, 4])
def test_the_gap_of_a_value_that_is_ulps_off_is_not_below_the_true_one(ulps):
    value = 1 + ulps * 2.0**-52
    stairs = sf.Staircase([0], [0], [value], [10], [10], loss=L.TweedieDeviance(1))
    gap = sf.certify(stairs, np.zeros(10), np.ones(10)).gap
    with mp.workdps(60):
        true = 20 * (mpf(value) - 1 - mp.log(mpf(value)))
        assert true <= gap < 100 * true


def test_a_tolerance_is_absolute_even_for_large_values():
    stairs = sf.fit(range(4), 1e25 * np.array([1.0, 9.0, 2.0, 3.0]), loss=L.LogCosh(1e25), tol=1e20)
    assert np.all(stairs.upper - stairs.lower <= 1e20)
    exact = sf.fit(range(4), np.array([1.0, 9.0, 2.0, 3.0]), loss=L.LogCosh(1.0))
    assert stairs.values == pytest.approx(1e25 * exact.values, rel=1e-4)


# Sums that are exact only because each part of them is


def exact_mean(targets, weights=None):
    """The mean, rounded once."""
    y = [Fraction(t) for t in targets.tolist()]
    w = [Fraction(1)] * len(y) if weights is None else [Fraction(t) for t in weights.tolist()]
    return float(sum(a * b for a, b in zip(y, w, strict=True)) / sum(w))


def one_step(targets, weights=None):
    stairs = sf.fit(np.zeros(len(targets)), targets, sample_weight=weights)
    assert stairs.n_steps == 1
    return stairs.values[0]


@pytest.mark.parametrize("seed", range(8))
def test_the_mean_of_many_rows_is_rounded_once(seed):
    rng = np.random.default_rng(seed)
    targets, weights = rng.uniform(0.9, 1, 30_000), rng.uniform(0.9, 1, 30_000)
    assert one_step(targets) == exact_mean(targets)
    assert one_step(targets[:5000], weights[:5000]) == exact_mean(targets[:5000], weights[:5000])


@pytest.mark.parametrize("seed", range(8))
def test_large_targets_that_cancel_do_not_affect_small_ones(seed):
    rng = np.random.default_rng(seed)
    for size in (2.0**-40, 2.0**-42, 2.0**-80, 2.0**-200):
        small = rng.uniform(0.5, 1, 3000) * size
        targets = np.concatenate([small, np.repeat([1.0, -1.0], 500)])
        assert one_step(targets) == exact_mean(targets)
        assert one_step(-targets) == -one_step(targets)


def test_sums_may_use_every_bit_below_the_sign():
    assert one_step(np.full(255, 7.0), np.full(255, 2 - 2.0**-52)) == 7.0
    assert one_step(np.full(255, 2.0**30 - 1), np.full(255, 2.0**27 - 1)) == 2.0**30 - 1
    for power in (45, 51):
        assert one_step(np.full(5000, 2**power + 1)) == 2.0**power + 1


@pytest.mark.parametrize("n", [3, 300])
def test_a_mean_half_way_between_two_floats_is_rounded_to_even(n):
    ulp = 2.0**-52
    for base in (1.0, 1.0 + ulp):
        pair = np.repeat([base, base + ulp], n)
        assert one_step(pair) == one_step(-pair) * -1 == exact_mean(pair)
        assert one_step(pair, np.full(2 * n, 0.1)) == exact_mean(pair)


@pytest.mark.parametrize("base", [2.0**52, 2.0**52 + 1, 2.0**52 + 2])
def test_a_mean_hardly_above_or_below_half_way_is_rounded_to_its_side(base):
    weights = np.array([2.0**53 - 2, 1.0])
    for step in (2.0**52, 2.0**52 - 1):  # the mean is half an ulp above the base, and 2**-54 of an ulp more or less
        targets = np.array([base, base + step])
        assert one_step(targets, weights) == exact_mean(targets, weights)


def test_halves_among_large_numbers_are_not_treated_as_integers():
    targets = np.array([2.0**51 + 0.5, 2.0**51 + 1.5, 2.0**51 + 1])
    for sign in (1, -1):
        assert one_step(sign * targets) == exact_mean(sign * targets)
    rising = 2.0**51 + np.arange(1000) / 2
    assert sf.fit(range(1000), rising).values.tolist() == rising.tolist()


@pytest.mark.parametrize("sign", [1, -1])
def test_borrows_and_carries_go_through_words_of_zeros_and_ones(sign):
    targets = sign * np.array([2.0**300, 2.0**-300, -(2.0**300), -(2.0**-300), 2.0**-400, 2.0**200, -(2.0**200)])
    assert one_step(targets) == sign * 2.0**-400 / 7
    blocks = [sign * 2.0**-400, -sign * 2.0**300]  # scores whose sums are of opposite signs and many words
    seen = sf.Accumulator(increasing=sign < 0)
    for _ in range(3):
        seen.add([0.0, 1.0], blocks)
    seen.add([0.0, 1.0], [sign * 2.0**300, sign * 2.0**300])
    expected = sf.fit(
        [0.0, 1.0] * 4, [*blocks * 3, sign * 2.0**300, sign * 2.0**300], increasing=sign < 0
    )  # fmt: skip
    assert_same_staircase(seen.staircase(), expected)


# Rows that are their own staircase, in numbers that fit no short way


def test_increasing_targets_are_clipped_to_the_bounds():
    stairs = sf.fit(np.arange(2000.0), np.arange(2000.0), bounds=(10, 500))
    assert (stairs.values[0], stairs.values[-1], stairs.n_steps) == (10, 500, 491)


def test_increasing_targets_keep_their_weights():
    weights = np.random.default_rng(0).random(2000) + 0.5
    assert sf.fit(np.arange(2000.0), np.arange(2000.0), sample_weight=weights).weights.tolist() == weights.tolist()


@pytest.mark.parametrize("n", [3, 300, 3000])
def test_the_value_of_a_negative_zero_is_a_plain_zero(n):
    rising = np.append(-0.0, np.linspace(0.3, 1, n))
    noisy = rising.copy()
    noisy[[-1, -2]] = noisy[[-2, -1]]
    for targets in (rising, noisy):
        stairs = sf.fit(np.arange(n + 1.0), targets)
        assert stairs.values[0] == 0
        assert not np.signbit(stairs.values[0])


def test_increasing_integers_that_round_to_one_float_are_one_step():
    targets = 2**60 + np.arange(2000)
    stairs = sf.fit(np.arange(2000.0), targets)
    assert np.all(np.diff(stairs.values) > 0)
    assert stairs.counts.sum() == 2000


@pytest.mark.parametrize("tie", range(20, 26))
def test_a_single_tie_is_found_at_any_position(tie):
    scores = np.arange(2000.0)
    scores[tie] = scores[tie - 1]
    targets = np.arange(2000.0)
    stairs = sf.fit(scores, targets)
    assert stairs.n_steps == 1999
    assert stairs.values[tie - 1] == (targets[tie] + targets[tie - 1]) / 2


def test_values_stay_in_the_range_of_the_loss_for_any_number_of_rows():
    for n in (5, 3000):
        stairs = sf.fit(np.arange(float(n)), np.linspace(-2, 1, n), loss=L.TweedieDeviance(-1.0))
        assert stairs.values[0] == 0


# Losses in rounds, with ties and with a parameter per row


@pytest.mark.parametrize("loss", [L.Huber(0.5), L.Expectile(0.2), L.LogCosh(1.0), L.Quantile(0.3)])
def test_tied_scores_are_pooled_in_both_directions(loss):
    rng = np.random.default_rng(1)
    scores, targets = np.repeat(np.arange(40.0), rng.integers(1, 4, 40)), rng.normal(size=200)
    targets = targets[: len(scores)]
    rising, falling = sf.fit(scores, targets, loss=loss), sf.fit(-scores, targets, loss=loss, increasing=False)
    assert falling.values[::-1].tolist() == pytest.approx(rising.values.tolist(), rel=1e-12)
    assert falling.counts[::-1].tolist() == rising.counts.tolist()
    for stairs, x in ((rising, scores), (falling, -scores)):
        assert sf.certify(stairs, x, targets).optimal


def test_the_order_of_tied_rows_does_not_change_a_bit():
    rng = np.random.default_rng(2)
    scores, targets, weights = rng.integers(0, 5, 300).astype(float), rng.normal(size=300), rng.random(300) + 0.1
    for loss in (L.PseudoHuber(0.3), L.Power(3.0)):
        first = sf.fit(scores, targets, sample_weight=weights, loss=loss)
        for seed in range(5):
            order = np.random.default_rng(seed).permutation(300)
            again = sf.fit(scores[order], targets[order], sample_weight=weights[order], loss=loss)
            assert_same_staircase(again, first)


def test_each_row_keeps_its_own_parameter():
    rng = np.random.default_rng(3)
    scores, targets, deltas = rng.permutation(2000).astype(float), rng.normal(size=2000), rng.random(2000) + 0.1
    order = np.argsort(scores)
    shuffled = sf.fit(scores, targets, loss=L.Huber(deltas))
    in_order = sf.fit(scores[order], targets[order], loss=L.Huber(deltas[order]))
    assert shuffled.values.tolist() == in_order.values.tolist()
    assert sf.certify(shuffled, scores, targets, loss=L.Huber(deltas)).optimal
    absent = np.where(np.arange(2000) % 3 == 0, 0.0, 1.0)
    fewer = sf.fit(scores, targets, sample_weight=absent, loss=L.Huber(deltas))
    kept = absent > 0
    alone = sf.fit(scores[kept], targets[kept], loss=L.Huber(deltas[kept]))
    assert fewer.values.tolist() == alone.values.tolist()


def test_the_middle_quantile_has_bounds_around_both_sides():
    stairs = sf.fit([0, 0], [1.0, 3.0], loss=L.Quantile(0.5, side="middle"))
    assert (stairs.values[0], stairs.lower[0] <= 2.0 <= stairs.upper[0]) == (2.0, True)


def test_a_certificate_of_tied_rows_and_falling_values_names_the_row():
    scores, targets = [0, 0, 1, 1, 2, 2], [4.0, 6.0, 3.0, 1.0, 0.0, 0.0]
    stairs = sf.fit(scores, targets, increasing=False)
    assert sf.certify(stairs, scores, targets).optimal
    wrong = sf.Staircase([0, 1, 2], [0, 1, 2], [5.0, 2.0, -3.0], [2] * 3, [2] * 3, increasing=False)
    found = sf.certify(wrong, scores, targets)
    assert not found.optimal
    assert found.worst_index in (4, 5)


# Streams and sums over rows


def test_linex_steps_that_round_to_one_value_have_the_weight_of_both():
    online, above = sf.Online(L.Linex(1.0)), 1 + 2.0**-52
    # a third and two fifths of an ulp above 1
    online.extend([0.0] * 3 + [1.0] * 5, [1.0, 1.0, above, 1.0, 1.0, 1.0, above, above])
    online.append(2.0, 3.0)
    stairs = online.staircase()
    assert stairs.values.tolist() == [1.0, 3.0]
    assert stairs.weights.tolist() == [8.0, 1.0]


@pytest.mark.parametrize("target", [3 * 10**9, -3 * 10**9, 2**31, 2**32 - 1])
def test_an_accumulator_counts_targets_of_half_a_word(target):
    seen = sf.Accumulator()
    seen.add([0], [target])
    assert_same_staircase(seen.staircase(), sf.fit([0], [target]))


def test_a_decomposition_takes_the_parameter_of_each_row():
    rng = np.random.default_rng(4)
    n = 40_000
    forecasts, targets, levels = rng.random(n), rng.random(n), np.linspace(0.1, 0.9, n)
    found = sf.reliability(forecasts, targets, score=L.Expectile(levels))
    assert found.mean_score == pytest.approx(np.mean(L.Expectile(levels).value(forecasts, targets)), rel=1e-12)
