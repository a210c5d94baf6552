"""Fits under losses that are not least at the mean: special cases of single losses, targets and weights."""

import bisect
import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from comparing import assert_same_staircase
from fits_in_rounds import (
    assert_monotone,
)
from loss_table import BY_NAME, OTHERS
from reference import (
    Sample,
    exact_steps,
    general_steps,
    middle_steps,
    step_value,
)

import staircase_fast as sf

L = sf.losses
inf = math.inf
EPS = 2.0**-52


def test_the_papers_flat_zone_is_not_taken_for_a_root():
    """PAPER.md 11: at 60 the slopes of both blocks sum to -0.0, yet the steps are 50 and 70."""
    stairs = sf.fit([1, 1, 2, 2], [100.0, 0.0, 130.0, 10.0], loss="log_cosh")
    assert stairs.values.tolist() == [50.0, 70.0]


def test_tails_that_underflow_do_not_make_false_bounds():
    """The middle of two targets, whatever the scale; or at least bounds that hold it."""
    for scale in (1e-2, 1e-3, 1e-5):
        stairs = sf.fit([1, 1], [1.0, 9.0], loss=L.LogCosh(scale))
        assert stairs.lower[0] <= 5.0 <= stairs.upper[0]
        assert stairs.values[0] == pytest.approx(5.0, rel=1e-12)


def test_tails_that_underflow_beside_others_do_not_make_false_bounds():
    stairs = sf.fit(
        [3, 2, 2, 1, 4, 5, 3, 1, 0], [-3, -4, 2, -4, 2, -5, -1, 3, 0.0], sample_weight=[3, 2, 3, 2, 2, 1, 1, 2, 1],
        loss=L.LogCosh(0.01),
    )  # fmt: skip
    assert stairs.lower[0] <= -1.99725347 + 1e-7
    assert stairs.values[0] == pytest.approx(-1.99725347, rel=1e-7)


def test_losses_that_are_the_squared_error_have_its_fit():
    rng = np.random.default_rng(9)
    for n in (1, 6, 60):
        x, y, w = rng.integers(0, n, n), rng.normal(size=n), rng.integers(1, 9, n) / 3
        mean = sf.fit(x, y, sample_weight=w)(x)
        for loss in (
            L.Expectile(0.5),
            L.Huber(1e300),
            L.Huber(1e3),
            L.Power(2.0),
            L.PseudoHuber(1e12),
            L.LogCosh(1e12),
        ):
            assert sf.fit(x, y, sample_weight=w, loss=loss)(x) == pytest.approx(mean, rel=1e-13, abs=1e-15), loss
        many = sf.fit(x, y, sample_weight=w, loss=L.Linex(np.full(n, -2.0)))
        assert many(x) == pytest.approx(sf.fit(x, y, sample_weight=w, loss=L.Linex(-2.0))(x), rel=1e-13, abs=1e-14)


def test_huber_minimisers_that_form_an_interval_give_its_middle():
    close = {"rel": 2 * EPS}
    assert sf.fit([1, 1], [0.0, 10.0], loss="huber").values == pytest.approx([5.0], **close)
    assert sf.fit([1, 1], [0.1, 7.3], sample_weight=[0.3, 0.3], loss="huber").values == pytest.approx([3.7], **close)
    assert sf.fit([1, 1, 1, 1], [0.0, 1.0, 9.0, 30.0], loss=L.Huber(0.5)).values == pytest.approx([5.0], **close)
    assert sf.fit([1, 2, 3], [0.0, 10.0, 2.0], loss=L.Huber(0.5)).values == pytest.approx([0.0, 6.0], **close)
    # as the last rows of a longer run, after rows of odd weights
    late = sf.fit([1, 1, 2, 2], [0.3, 0.7, 90.0, 10.0], sample_weight=[0.1, 0.7, 0.3, 0.3], loss=L.Huber(0.5))
    assert late.values[-1] == pytest.approx(50.0, **close)
    tenth = sf.fit(
        [1, 2, 2, 3, 3], [5.0, 0.0, 10.0, 4.0, 12.0], sample_weight=[0.1, 0.7, 0.7, 0.3, 0.3], loss=L.Huber(0.5)
    )
    assert_monotone(tenth)


def test_quantiles_have_their_sides():
    values = {}
    for side in ("lower", "middle", "upper"):
        values[side] = sf.fit([1, 1, 2, 2], [0.0, 4.0, 1.0, 2.0], loss=L.Quantile(0.5, side=side)).values.tolist()
    # medians of {0, 4} and {1, 2}; the greatest ones, 4 and 2, join, and half of {0, 1, 2, 4} is at most 2
    assert values == {"lower": [0.0, 1.0], "middle": [1.0, 1.5], "upper": [2.0]}


@pytest.mark.parametrize("side", ["lower", "middle", "upper"])
@pytest.mark.parametrize("weighted", [False, True])
def test_quantiles_are_exact(side, weighted):
    rng = np.random.default_rng(10)
    for trial in range(25):
        n = int(rng.integers(1, 14))
        x, y = rng.integers(0, n, n).astype(float), rng.integers(0, 9, n) / 10
        w = rng.integers(1, 5, n) if weighted else np.ones(n)
        level = float(rng.choice(BY_NAME["quantile"].parameters))
        increasing = bool(trial % 2)

        def slope(t, y):
            return lambda z: 1 - t if z >= y else -t

        samples = [Sample(x[i], int(w[i]), slope(Fraction(level), y[i])) for i in range(n)]
        least, greatest = (
            general_steps(samples, y.min(), y.max(), increasing=increasing, greatest=g) for g in (False, True)
        )
        stairs = sf.fit(x, y, sample_weight=w, loss=L.Quantile(level, side=side), increasing=increasing)
        want = {
            "lower": [step_value(least, s) for s in sorted(set(x))],
            "upper": [step_value(greatest, s) for s in sorted(set(x))],
            "middle": [v for _, v in middle_steps(least, greatest, x)],
        }[side]
        assert stairs(np.array(sorted(set(x)))) == pytest.approx(want, rel=0 if side != "middle" else 1e-15, abs=0)
        if side != "middle":
            assert np.isin(stairs.values, y).all()


@pytest.mark.parametrize("side", ["lower", "upper"])
def test_quantiles_of_decimal_weights_are_targets(side):
    for x, y, w, level in (
        ([1, 4, 1, 2, 0], [3, 1, 2, 0, 1.0], [0.3, 0.1, 0.2, 0.4, 0.4], 0.5),
        ([5, 5, 3, 5, 0, 1], [1, 0.5, 3.5, 0, 2, 0.0], [1, 0.8, 1.1, 0.1, 0.9, 0.9], 0.3),
        ([3, 2, 2, 3, 2], [0.3, 0.2, 0.8, 0.7, 0.3], [0.3, 0.8, 0.4, 0.2, 0.5], [0.5, 0.125, 0.75, 0.75, 0.25]),
    ):
        assert np.isin(sf.fit(x, y, sample_weight=w, loss=L.Quantile(level, side=side)).values, y).all()


def test_quantile_levels_are_taken_as_they_are():
    assert sf.fit([1] * 10, np.arange(1, 11), loss=L.Quantile(0.3)).values.tolist() == [3.0]


def test_poisson_values_are_targets_over_exposures():
    rng = np.random.default_rng(11)
    for n in (1, 5, 50):
        x, y, w = rng.integers(0, n, n), rng.integers(0, 5, n), rng.integers(1, 4, n)
        e = np.round(rng.random(n) + 0.1, 2)
        for increasing in (True, False):
            loss = L.PoissonDeviance(e)
            stairs = sf.fit(x, y, sample_weight=w, loss=loss, increasing=increasing)
            exposures = [Fraction(one) for one in e]
            best = exact_steps(
                x.tolist(),
                [Fraction(int(a)) / b for a, b in zip(y, exposures, strict=True)],
                [int(a) * b for a, b in zip(w, exposures, strict=True)],
                increasing=increasing,
            )
            assert stairs(x) == pytest.approx([float(step_value(best, one)) for one in x], rel=4 * EPS, abs=0)
            assert stairs.weights.sum() == w.sum()
    assert sf.fit([1, 2, 3], [1, 0, 3], loss=L.PoissonDeviance([2.0, 0.5, 1.0])).values.tolist() == [0.4, 3.0]


@pytest.mark.parametrize(("w", "e"), [(1.0, 1e-300), (1e200, 1e200)])
def test_exposures_that_overflow_are_refused(w, e):
    with pytest.raises(ValueError, match="exposures, must be in the range of float64"):
        sf.fit([1, 2], [1e10, 1.0], sample_weight=[w, w], loss=L.PoissonDeviance([e, 1.0]))


def test_logistic_values_are_log_odds_of_means():
    rng = np.random.default_rng(12)
    for n in (1, 5, 50):
        x, y, w = rng.integers(0, n, n), rng.integers(1, 10, n) / 10, rng.integers(1, 4, n)
        mean = sf.fit(x, y, sample_weight=w)(x)
        logit = np.log(mean) - np.log1p(-mean)
        for offset in (0.0, 2.5, -40.0):
            got = sf.fit(x, y, sample_weight=w, loss=L.Logistic(offset))(x)
            assert got == pytest.approx(logit - offset, rel=0, abs=8e-16 * (4 + abs(offset)))
        shared = sf.fit(x, y, sample_weight=w, loss=L.Logistic(np.full(n, 1.5)))(x)
        assert shared == pytest.approx(logit - 1.5, rel=0, abs=4e-15)
    for y in (1e-300, 1e-17, 2.0**-40):
        assert sf.fit([1], [y], loss="logistic").values[0] == pytest.approx(
            math.log(y) - math.log1p(-y), rel=1e-15, abs=0
        )


@pytest.mark.parametrize("loss", ["logistic", "quantile", "huber", "log_cosh"])
def test_weights_too_far_apart_for_sums_of_slopes_are_refused(loss):
    with pytest.raises(
        ValueError, match=rf"`sample_weight` .* times the largest weight, 1e\+300, for {loss}; got 1e-300 at index 2"
    ):
        sf.fit([1, 1, 1], [0, 1, 1], sample_weight=[1e300, 0.0, 1e-300], loss=loss)
    assert sf.fit([1, 2], [0.5, 0.25], sample_weight=[1e130, 1e-130], loss=loss).n_steps == 1


def test_log_odds_are_infinite_only_where_bounds_ask_for_it():
    x, y = [1, 2, 3, 4, 5], [0, 0, 1, 0, 1]
    assert sf.fit(x, y, loss="logistic", bounds=(-inf, inf)).values.tolist() == [-inf, 0.0, inf]
    assert sf.fit(x, y, loss="logistic", bounds=(-3, 4)).values.tolist() == [-3.0, 0.0, 4.0]
    assert sf.fit(x, y, loss="logistic", bounds=(-inf, 4)).values.tolist() == [-inf, 0.0, 4.0]
    for bounds, step, value in (
        (None, 0, "-inf"),
        ((None, 3), 0, "-inf"),
        ((-3, None), 2, "inf"),
        ((-inf, None), 2, "inf"),
    ):
        with pytest.raises(ValueError, match=rf"`bounds` .*; step {step} would be {value}\."):
            sf.fit(x, y, loss="logistic", bounds=bounds)
    with pytest.raises(ValueError, match=r"step 2 would be -inf\."):
        sf.fit(x, y[::-1], loss="logistic", increasing=False)
    with pytest.raises(ValueError, match=r"step 0 would be inf\."):
        sf.fit(x, y[::-1], loss="logistic", increasing=False, bounds=(-5, None))
    for all_one_kind, value in ((np.zeros(3), -inf), (np.ones(3), inf)):
        only = sf.fit([1, 2, 3], all_one_kind, loss="logistic", bounds=(-inf, inf))
        assert only.values.tolist() == [value]
    ties = sf.fit([1, 1, 2, 2, 3], [0, 0, 0, 1, 1], loss=L.Logistic([1.0, 2.0, 3.0, 4.0, 5.0]), bounds=(-inf, inf))
    assert ties.left.tolist() == [1, 2, 3]
    assert ties.values[1] == pytest.approx(-3.5)


def test_linex_of_a_wide_range_is_a_soft_minimum():
    for shape in (1.0, 7.0, 1e3):
        assert sf.fit([1, 1], [0.0, 1000.0], loss=L.Linex(shape)).values[0] == pytest.approx(math.log(2) / shape)
        assert sf.fit([1, 1], [0.0, 1000.0], loss=L.Linex(-shape)).values[0] == pytest.approx(
            1000 - math.log(2) / shape
        )


@pytest.mark.parametrize(
    ("y", "w", "loss", "want"),
    [
        ([-20.0, 3.0, 1.0, 9.0], None, L.Linex([3.0] * 4), 1 + math.log(2) / 3 - math.log1p(math.exp(-6)) / 3),
        ([-1e5, 1e5, 0.0, 1e5 + 1], None, L.Linex(3.0), math.log(2) / 3),
        ([-1e17, 3.0, 1.0, 1e17], None, L.Expectile(0.3), 1.6),
        ([0.0, 3.0, 1.0, 9.0], [1e20, 1.0, 1.0, 1.0], L.LogCosh(1.0), 2.0),
        ([0.0, 3.0, 1.0, 9.0], [1e20, 1.0, 1.0, 1.0], L.PseudoHuber(1.0), 2.0),
        ([0.0, 3.0, 1.0, 9.0], [1e20, 1.0, 1.0, 1.0], L.Power(1.5), 2.0),
        ([0.0, 3.0, 1.0, 9.0], [1e20, 1.0, 1.0, 1.0], L.Quantile(0.5), 1.0),
    ],
)
def test_rows_far_below_do_not_swamp_those_above(y, w, loss, want):
    stairs = sf.fit(range(4), y, sample_weight=w, loss=loss)
    assert stairs.values == pytest.approx([y[0], want, y[3]], rel=1e-12)
    assert stairs.lower[1] - 1e-12 <= want <= stairs.upper[1] + 1e-12


def test_linex_keeps_digits_far_from_the_centre():
    want = 60 - math.log((1 + math.exp(-1)) / 2)
    assert sf.fit([0, 1, 1], [0, 60, 61.0], loss=L.Linex(1.0)).values[1] == pytest.approx(want, rel=1e-14, abs=0)


def test_linex_returns_monotone_targets_of_a_wide_range():
    assert sf.fit([1, 2, 3], [-100, 100, 101.0], loss=L.Linex(1.0)).values.tolist() == [-100, 100, 101]


def test_linex_of_several_shapes_and_a_wide_range_is_refused():
    with pytest.raises(
        ValueError, match=r"`shape` times the range of targets must be below 600.*; got 2.0 and 10000.0"
    ):
        sf.fit([1, 1], [0.0, 10_000.0], loss=L.Linex([2.0, -1.0]))


@pytest.mark.parametrize(
    ("y", "w", "loss", "want"),
    [
        ([0, 1e150, 4e150], 1.0, L.Power(3.0), 1.8989794855663562e150),
        ([0, 1e300, 4e300], 1.0, L.Expectile(0.8), 17e300 / 6),
        ([0, 1.0, 4.0], 1e300, L.Expectile(0.8), 17 / 6),
        ([0, 1.0, 4.0], 1.0, L.Power(300.0), 2.0),
    ],
)
def test_huge_slopes_are_not_clipped(y, w, loss, want):
    assert sf.fit([1, 1, 1], y, sample_weight=[w] * 3, loss=loss).values[0] == pytest.approx(want)


@pytest.mark.parametrize("loss", [L.Quantile(0.5), L.Huber(1.0)])
def test_huge_weights_do_not_overflow(loss):
    assert sf.fit([1, 1, 1], [0.0, 1.0, 40.0], sample_weight=[1e301] * 3, loss=loss).values.tolist() == [1.0]


@pytest.mark.parametrize("loss", [L.Huber(1.0), L.Quantile(0.5), L.Expectile(0.5)])
def test_targets_may_be_as_far_apart_as_floats_are(loss):
    assert sf.fit([1, 1, 1], [-1.7e308, 0.0, 1.7e308], loss=loss).values[0] == pytest.approx(0.0, abs=1e293)


def test_isotonic_regression_minimises_the_loss_it_is_given():
    y = [0.0, 0.0, 9.0, 0.0, 100.0, 0.0, 0.0]
    for loss in (L.Quantile(0.5), L.Huber(0.001), L.Power(1.5)):
        want = sf.fit(range(7), y, loss=loss)
        assert sf.isotonic_regression(y, loss=loss).x == pytest.approx(want(range(7)))


def test_auto_is_the_better_direction_under_any_loss():
    rng = np.random.default_rng(13)
    x = np.arange(30)
    for case in OTHERS:
        y = np.clip(x / 40 + 0.1 * rng.random(30), 0.01, 0.99)
        for loss in (case.make(), case.make(np.resize(case.parameters[:2], 30))):
            assert sf.fit(x, y, loss=loss, increasing="auto").increasing
            assert not sf.fit(x, y[::-1], loss=loss, increasing="auto").increasing


def test_auto_refuses_infinite_values_only_in_the_direction_it_returns():
    rows = {"scores": range(6), "targets": [0, 0.99, 0.9, 0.5, 0.1, 0.01], "sample_weight": [0.01, 1, 1, 1, 1, 1]}
    assert not sf.fit(**rows, loss="logistic", increasing="auto", bounds=(-inf, inf)).increasing
    want = sf.fit(**rows, loss="logistic", increasing=False)
    assert_same_staircase(sf.fit(**rows, loss="logistic", increasing="auto"), want)


@pytest.mark.parametrize(
    ("y", "loss", "want"),
    [([5e-324], L.Logistic(), -744.4400719213812), ([0.0, 1.0, 4.0], L.Linex([1e-160] * 3), 5 / 3)],
)
def test_denormal_slopes_do_not_make_false_bounds(y, loss, want):
    stairs = sf.fit([1] * len(y), y, loss=loss)
    assert stairs.lower[0] <= want <= stairs.upper[0]


def test_slopes_that_underflow_times_their_weights_do_not_make_false_bounds():
    loss = L.Custom(lambda z, y: 2 * (z - y))
    stairs = sf.fit([3, 2, 1], [0, 0, 0], sample_weight=[2.0**-6, 2.0**21, 2.0**-24], loss=loss)
    assert stairs.values.tolist() == [0.0]
    assert stairs.lower[0] <= 0.0 <= stairs.upper[0]


def test_a_block_of_slopes_that_have_levelled_off_is_not_taken_for_zero():
    # any value between the last two targets is as good in floats; zero, which is below the step before, is not
    targets = [6.123073, 4.698028, 7295077.923, 5.231226]
    for first in ([-897126.9], [-897126.9, 3.0, 5.0]):
        y = np.array([*first, *targets])
        x = np.arange(len(y))
        stairs = sf.fit(x, y, loss=L.LogCosh(0.05))
        assert sf.certify(stairs, x, y).optimal
        assert stairs.values[-1] > 5.5


def test_heavy_rows_and_outliers_leave_a_fit_that_is_certified():
    rng = np.random.default_rng(5)
    losses = [L.Expectile(0.8), L.Expectile(0.01), L.Power(1.5), L.Power(3), L.Huber(0.1), L.LogCosh(0.05)]
    for trial in range(120):
        n = int(rng.integers(40, 1500))
        x, y = np.arange(n), rng.normal(size=n) + np.linspace(0, rng.choice([0, 1, 5]), n)
        if trial % 3 == 0:
            y *= np.where(rng.random(n) < 0.02, 1e6, 1.0)
        w = np.exp(rng.choice([0, 3, 8]) * rng.normal(size=n)) if trial % 2 else None
        stairs = sf.fit(x, y, loss=losses[trial % 6], sample_weight=w)
        assert sf.certify(stairs, x, y, sample_weight=w).optimal


@pytest.mark.parametrize(
    "loss",
    [L.Huber(1.0), L.Huber(0.5), L.PseudoHuber(0.5), L.LogCosh(0.1), L.Quantile(0.3, side="middle"), L.Expectile(0.8)],
    ids=repr,
)
def test_all_short_sequences_of_small_integers_are_certified(loss):
    for n in (2, 3, 4):
        for y in itertools.product((-2.0, -1.0, 0.0, 1.0, 2.0), repeat=n):
            assert sf.certify(sf.fit(range(n), y, loss=loss), range(n), y).optimal, y


def test_a_value_where_the_slope_becomes_flat_is_held_by_its_neighbours():
    # any value in [-1, 0] suits the first two rows, -1 alone the third: a cut beside -1 must not divide them
    stairs = sf.fit([1, 2, 3], [1.0, -2.0, -1.0], loss="huber")
    assert stairs([1, 2, 3]) == pytest.approx([-1.0, -1.0, -1.0], rel=1e-14, abs=0)
    assert stairs.lower[0] <= -1.0 <= stairs.upper[0]


def test_a_value_in_a_flat_stretch_is_held_by_the_next_block():
    # any value in [0.8, 1.2] suits the six rows before the last, but the row before them gets 0.9
    y = [3.4, 2.4, 3.1, 2.6, -0.3, 1.0, 0.7, 2.1, 2.2, 1.1, 0.7, 1.2, 2.4, 1.5, 1.0, 0.9]
    y += [0.7, 0.2, -0.6, 2.5, 1.5, 1.3, 0.7]
    stairs = sf.fit(range(23), y, loss=L.Huber(0.1), increasing=False)
    assert stairs([14, 15, 16, 21, 22]) == pytest.approx([1.0, 0.9, 0.85, 0.85, 0.7])
    assert sf.certify(stairs, range(23), y).optimal


@pytest.mark.parametrize("side", ["lower", "upper"])
@pytest.mark.parametrize("level", [0.5, 0.25, 0.9])
def test_quantiles_are_the_least_or_the_greatest_ones_by_the_max_min_formula(side, level):
    """Sums that are zero again after some batches of rows belong to the rows at the cut, too."""
    n = 160
    for seed in range(12):
        rng = np.random.default_rng(seed)
        y = np.round(0.01 * np.arange(n) + rng.normal(size=n), 6 if seed % 2 else 0)
        sign = 1.0 if side == "lower" else -1.0
        rising, share = (y, level) if side == "lower" else (-y[::-1], 1.0 - level)
        # the least quantile of rows a..b is the one at place ceil(share * size) - 1
        least = np.full((n, n), np.inf)
        for a in range(n):
            seen: list[float] = []
            for b in range(a, n):
                bisect.insort(seen, rising[b])
                least[a, b] = seen[max(math.ceil(share * len(seen) - 1e-9) - 1, 0)]
        expected = [max(least[a, i:].min() for a in range(i + 1)) for i in range(n)]
        found = sf.fit(np.arange(n), y, loss=L.Quantile(level, side=side)).predict(np.arange(n))
        np.testing.assert_array_equal(found if side == "lower" else sign * found[::-1], expected)
