"""Fits under losses that are not least at the mean: against the references, the paper and the promises.

How close is close: a sum of slopes is right to some ulps of its terms, so a root of it is right to some ulps of the
targets it lies between, not of itself (the root of targets -1 and 1 is 0, and its ulps are below any that matter).
`size_of` is that size; Power of an exponent near 1 is flat around its root, and worse by 1 / (exponent - 1).
"""

import bisect
import itertools
import math
import os
import subprocess
import sys
import textwrap
import time
from fractions import Fraction
from pathlib import Path

import mpmath
import numpy as np
import pytest
from comparing import assert_same_bits, assert_same_staircase
from loss_table import BY_NAME, LOCATION, OTHERS, STRICT, Case
from mpmath import mpf
from reference import (
    Sample,
    anytime_rounds,
    exact_steps,
    general_steps,
    is_between,
    middle_steps,
    step_value,
)

import staircase_fast as sf
from staircase_fast.bisection import rounds, solve

L = sf.losses
inf = math.inf
EPS = 2.0**-52
every_other = pytest.mark.parametrize("case", OTHERS, ids=repr)
every_location = pytest.mark.parametrize("case", LOCATION, ids=repr)
every_strict = pytest.mark.parametrize("case", STRICT, ids=repr)
ROOT = Path(sf.__file__).resolve().parents[1]

TARGETS = {
    "integers": lambda rng, n: rng.integers(-5, 6, n).astype(float),
    "labels": lambda rng, n: rng.integers(0, 2, n).astype(float),
    "decimals": lambda rng, n: np.round(3 * rng.normal(size=n), 1),
    "normal": lambda rng, n: rng.normal(size=n),
    "large": lambda rng, n: 1e4 + rng.normal(size=n),
    "neighbours": lambda rng, n: 1 + rng.integers(0, 7, n) * EPS,
    "monotone": lambda rng, n: np.sort(rng.normal(size=n)),
    "reversed": lambda rng, n: np.sort(rng.normal(size=n))[::-1].copy(),
    "doubling": lambda rng, n: 2.0 ** np.arange(-4, n - 4) / 2.0 ** max(0, n - 8),
    "halving": lambda rng, n: 2.0 ** -np.arange(n),
    "sawtooth": lambda rng, n: np.arange(n) % 3 + 0.1 * np.arange(n),
    "one outlier": lambda rng, n: np.where(np.arange(n) == n // 2, -30.0, np.arange(n) / 10),
}
WEIGHTS = {
    "none": lambda rng, n: None,
    "integers": lambda rng, n: np.append(rng.integers(0, 4, n - 1), 1.0),
    "decimals": lambda rng, n: rng.integers(1, 30, n) / 10,
    "twelve decades": lambda rng, n: 10.0 ** rng.uniform(-6, 6, n),
}
SCORES = {
    "distinct": lambda rng, n: rng.permutation(n).astype(float),
    "ties": lambda rng, n: rng.integers(0, n // 2 + 1, n).astype(float),
}


def problems(case: Case, seeds: range, most: int = 14):
    """Random rows of every kind of targets: scores, targets, options of `fit`, and the parameter of each row."""
    for seed, (kind, targets_of) in itertools.product(seeds, TARGETS.items()):
        rng = np.random.default_rng([seed, *kind.encode(), *case.name.encode()])
        n = int(rng.integers(1, most + 1))
        y = targets_of(rng, n)
        if case.kind is L.Logistic:
            spread = np.ptp(y) or 1.0
            y = np.clip(np.round((y - y.min()) / spread, 3), 0.001, 0.999)
        scores_of, weights_of = (table[rng.choice(list(table))] for table in (SCORES, WEIGHTS))
        parameters = [p for p in case.parameters if abs(p) < 100 and not (case.kind is L.LogCosh and p < 0.1)]
        p = rng.choice(parameters, n) if seed % 2 else np.full(n, rng.choice(parameters))
        loss = case.make(p if seed % 2 else float(p[0]))
        options = {"sample_weight": weights_of(rng, n), "increasing": bool(rng.random() < 0.5), "loss": loss}
        yield scores_of(rng, n), y, options, p


def samples_of(case: Case, x, y, options, p) -> list[Sample]:
    w = np.ones(len(x)) if options["sample_weight"] is None else options["sample_weight"]

    def derivative(p, y):
        return lambda z: case.derivative(p, mpf(z), y)

    return [Sample(x[i], mpf(w[i]), derivative(mpf(p[i]), mpf(y[i]))) for i in range(len(x)) if w[i] > 0]


def digits_for(case: Case, y, p) -> int:
    """How many decimal digits hold the tails of slopes beside what they level off to, and a cushion."""
    spread = float(np.ptp(y))
    tail = {L.LogCosh: lambda: 2 * spread / p.min(), L.Linex: lambda: spread * np.abs(p).max()}
    return 100 + int(min(tail.get(case.kind, lambda: 0.0)() / 2.3, 3000))


def expected(case: Case, x, y, options, p) -> tuple[np.ndarray, np.ndarray]:
    """Distinct scores of rows that are present, and the optimal value there, rounded up to a float."""
    samples = samples_of(case, x, y, options, p)
    scores = sorted({s.score for s in samples})
    low, high = (-800.0, 800.0) if case.kind is L.Logistic else (y.min(), y.max())
    with mpmath.workdps(digits_for(case, y, p)):
        least = general_steps(samples, low, high, increasing=options["increasing"])
        if case.kind is L.Huber:
            greatest = general_steps(samples, low, high, increasing=options["increasing"], greatest=True)
            return np.array(scores), np.array([v for _, v in middle_steps(least, greatest, scores)])
    return np.array(scores), np.array([step_value(least, score) for score in scores])


def size_of(case: Case, y, p, values) -> np.ndarray:
    """The size whose ulps the values are right to."""
    size = np.maximum(np.abs(values), 1.0 if case.kind is L.Logistic else np.abs(y).max())
    return size / min(1.0, p.min() - 1) if case.kind is L.Power else size


def at(stairs: sf.Staircase, column: str, scores) -> np.ndarray:
    return getattr(stairs, column)[np.searchsorted(stairs.left, scores, side="right") - 1]


def assert_monotone(stairs: sf.Staircase) -> None:
    rises = np.diff(stairs.values)
    assert (rises > 0).all() if stairs.increasing else (rises < 0).all(), stairs.values
    assert (stairs.lower <= stairs.values).all()
    assert (stairs.values <= stairs.upper).all()


def each_of(cases):
    return pytest.mark.parametrize("case", cases, ids=[case.name for case in cases])


# The references themselves


def test_the_papers_rounds_keep_what_its_theorem_says():
    rng = np.random.default_rng(0)
    for n in (1, 2, 7, 15):
        y = [Fraction(int(v), 4) for v in rng.integers(-40, 41, n)]
        A, B = Fraction(16), Fraction(-16)
        derivatives = [lambda z, y=one: 2 * (z - y) for one in y]
        best = exact_steps(range(n), y)
        for k, groups in enumerate(anytime_rounds(derivatives, A, B, 9), 1):
            delta = (A - B) / 2**k
            for g, after in itertools.zip_longest(groups, groups[1:]):
                assert g.A - g.B in (0, delta)
                place = (g.A - B) / delta
                assert place.denominator == 1
                if g.A != g.B:
                    assert (g.D > 0) == (place % 2 == 0)
                    assert (g.D < 0) == (place % 2 == 1)
                if after is not None:
                    assert g.A <= after.A
                    assert g.B <= after.B
                assert all(g.B <= step_value(best, i) <= g.A for i in g.samples)


def test_cuts_in_the_middle_are_the_papers_rounds():
    """`Rounds.cut_all(halve=True)` has the regions and bounds of section VI; equal bounds are one run there."""
    rng = np.random.default_rng(1)
    for n in (1, 2, 5, 12, 40):
        y = rng.integers(-8, 9, n) / 4 + 1 / 16
        derivatives = [lambda z, y=Fraction(one): 2 * (z - y) for one in y]
        papers = anytime_rounds(derivatives, Fraction(4), Fraction(-4), 6)
        problem = rounds.Problem(0, np.zeros(1), y, np.empty(0), np.empty(0, dtype=np.uint8))
        ours = rounds.Rounds(problem, rounds.first_run(n, -4.0, 4.0, 0.0), L.SquaredError())
        for groups in papers:
            ours.cut_all(halve=True, tol=0.0, deadline=inf)
            starts, _, lower, upper = ours.blocks()
            got = np.searchsorted(starts, np.arange(n), side="right") - 1
            for g in groups:
                for i in g.samples:
                    assert lower[got[i]] == g.B
                    assert upper[got[i]] == g.A


def test_the_general_solver_agrees_with_exact_means():
    rng = np.random.default_rng(2)
    for n in (1, 3, 12):
        x, y, w = rng.integers(0, n, n).astype(float), rng.integers(-9, 9, n) / 8, rng.integers(1, 4, n)
        samples = [
            Sample(x[i], int(w[i]), lambda z, y=Fraction(y[i]): Fraction(z) - y) for i in range(n)
        ]  # sums of fractions are exact
        for increasing in (True, False):
            found = general_steps(samples, -2.0, 2.0, increasing=increasing)
            best = exact_steps(x.tolist(), y.tolist(), w.tolist(), increasing=increasing)
            assert [(s.left, s.right, s.count) for s in found] == [(s.left, s.right, s.count) for s in best]
            for a, b in zip(found, best, strict=True):
                assert math.nextafter(a.value, -inf) < b.value <= a.value


# Fits against the references


@every_other
def test_fits_are_those_of_the_general_solver(case):
    for x, y, options, p in problems(case, range(4), most=10):
        stairs = sf.fit(x, y, **options)
        scores, want = expected(case, x, y, options, p)
        slack = 6 * EPS * size_of(case, y, p, want)
        got = stairs(scores)
        assert (np.abs(got - want) <= slack).all(), (x, y, options, p, got, want)
        assert_monotone(stairs)
        assert (at(stairs, "lower", scores) <= want + slack).all()
        assert (at(stairs, "upper", scores) >= want - slack).all()
        # the same steps, but for values that rounding can take for each other
        apart = np.abs(np.diff(want)) > 2 * slack[1:]
        assert ((np.diff(got) != 0) >= apart).all()
        weights = np.ones(len(x)) if options["sample_weight"] is None else options["sample_weight"]
        assert stairs.counts.sum() == (weights > 0).sum()
        assert stairs.weights.sum() == pytest.approx(weights.sum(), rel=1e-14, abs=0)


@every_other
def test_longer_fits_have_no_optimum_beside_them(case):
    """Prefix sums of derivatives at values moved down and up by some ulps: `is_between` needs no other solver."""
    for x, y, options, p in problems(case, range(1, 3), most=40):
        stairs = sf.fit(x, y, **options)
        order = np.lexsort((y, x if options["increasing"] else -x))
        p_sorted = p[order]
        w = options["sample_weight"]
        moved = {**options, "sample_weight": None if w is None else w[order]}
        samples = samples_of(case, x[order], y[order], moved, p_sorted)
        values = stairs(np.array([s.score for s in samples]))
        slack = 6 * EPS * size_of(case, y, p, values)
        if case.kind is L.Huber:
            continue  # a middle of optima is an optimum, but neither the least nor the greatest
        with mpmath.workdps(digits_for(case, y, p)):
            close = is_between(samples, (values - slack).tolist(), (values + slack).tolist())
        assert all(close), (x, y, options, p)


@pytest.mark.parametrize("scale", [2.0**-498, 2.0**-100, 2.0**100, 2.0**498])
@each_of([BY_NAME[name] for name in ("expectile", "quantile", "huber", "pseudo_huber", "log_cosh", "power")])
def test_scaling_targets_and_parameters_scales_values(case, scale):
    rng = np.random.default_rng(5)
    for n in (1, 2, 9, 30):
        x, y = rng.integers(0, n, n), np.round(rng.normal(size=n), 2)
        for p in case.parameters[:3] + case.parameters[4:]:
            scaled = p * scale if case.kind in (L.Huber, L.PseudoHuber, L.LogCosh) else p
            plain = sf.fit(x, y, loss=case.make(p))
            got = sf.fit(x, y * scale, loss=case.make(scaled))
            assert got(x) == pytest.approx(plain(x) * scale, rel=1e-13, abs=1e-13 * scale)


# Promises


@each_of(LOCATION)
def test_monotone_targets_come_back_bit_for_bit(case):
    rng = np.random.default_rng(4)
    for n in (1, 2, 40, 1000):
        for y in (
            rng.normal(size=n),
            rng.integers(-9, 9, n) / 10,
            1 + rng.integers(0, 9, n) * EPS,
            100 * rng.random(n),
        ):
            rising = np.sort(y) + 0.0
            w = rng.integers(1, 30, n) / 10
            for loss in case.makes()[:-1]:
                x = np.arange(n)
                assert_same_bits(sf.fit(x, rising, sample_weight=w, loss=loss)(x), rising)
                assert_same_bits(sf.fit(-x, rising, loss=loss, increasing=False)(-x), rising)


@every_location
def test_values_lie_within_their_targets(case):
    for x, y, options, _ in problems(case, range(2, 4), most=30):
        if case.kind is L.Linex and np.ptp(y) > 1:
            continue  # solve._by_exponentials may divide by zero
        stairs = sf.fit(x, y, **options)
        w = np.ones(len(x)) if options["sample_weight"] is None else options["sample_weight"]
        for left, right, value in zip(stairs.left, stairs.right, stairs.values, strict=True):
            members = y[(x >= left) & (x <= right) & (w > 0)]
            assert members.min() <= value <= members.max()


@pytest.mark.parametrize("case", [c for c in OTHERS if c.kind is not L.Linex], ids=repr)
def test_the_order_of_rows_does_not_matter(case):
    rng = np.random.default_rng(6)
    for x, y, options, p in problems(case, range(6), most=30):
        shuffled = rng.permutation(len(x))
        w, loss = options["sample_weight"], options["loss"]
        again = sf.fit(
            x[shuffled], y[shuffled], sample_weight=None if w is None else w[shuffled],
            loss=case.make(p[shuffled]) if np.ndim(getattr(loss, case.parameter)) else loss,
            increasing=options["increasing"],
        )  # fmt: skip
        stairs = sf.fit(x, y, **options)
        for name in ("left", "right", "values", "counts", "lower", "upper", "weights"):
            assert_same_bits(getattr(again, name), getattr(stairs, name))


@every_other
def test_the_order_of_rows_of_distinct_scores_does_not_matter(case):
    rng = np.random.default_rng(6)
    for n in (2, 9, 200):
        x, y, w = np.arange(n), rng.integers(1, 10, n) / 10, rng.integers(1, 30, n) / 10
        p = rng.choice(case.parameters[:2], n)
        shuffled = rng.permutation(n)
        for one, two in ((case.make(), case.make()), (case.make(p), case.make(p[shuffled]))):
            stairs = sf.fit(x, y, sample_weight=w, loss=one)
            again = sf.fit(x[shuffled], y[shuffled], sample_weight=w[shuffled], loss=two)
            for name in ("left", "right", "values", "counts", "lower", "upper", "weights"):
                assert_same_bits(getattr(again, name), getattr(stairs, name))


@every_other
def test_a_weight_of_k_is_k_copies_and_of_zero_none(case):
    rng = np.random.default_rng(7)
    for n in (1, 5, 30):
        x, y, w = rng.integers(0, n, n), rng.integers(1, 10, n) / 10, rng.integers(0, 4, n)
        w[0] = 2
        copies = np.repeat(np.arange(n), w)
        for loss in case.makes()[:3]:
            one, two = sf.fit(x, y, sample_weight=w, loss=loss), sf.fit(x[copies], y[copies], loss=loss)
            assert one(x) == pytest.approx(two(x), rel=1e-14, abs=1e-14)  # sums of copies round in other places
            assert one.weights.tolist() == two.weights.tolist()
            present = w > 0
            absent = sf.fit(x[present], y[present], sample_weight=w[present], loss=loss)
            assert_same_staircase(one, absent)


@pytest.mark.parametrize("exponent", [-600, -60, 1, 60, 600])
@every_other
def test_scaling_weights_by_a_power_of_two_changes_nothing(case, exponent):
    for x, y, options, _ in problems(case, range(2), most=20):
        if case.kind is L.Linex and np.ptp(y) > 1:
            continue
        w = np.ones(len(x)) if options["sample_weight"] is None else options["sample_weight"]
        plain = sf.fit(x, y, **{**options, "sample_weight": w})
        scaled = sf.fit(x, y, **{**options, "sample_weight": w * 2.0**exponent})
        for name in ("left", "right", "values", "counts", "lower", "upper"):
            assert_same_bits(getattr(scaled, name), getattr(plain, name))


@every_other
def test_bounds_clip_values_and_join_steps(case):
    rng = np.random.default_rng(8)
    for n in (1, 7, 40):
        x, y = rng.integers(0, n, n), rng.integers(1, 10, n) / 10
        free = sf.fit(x, y, loss=case.make())
        for bounds in ((0.3, 0.6), (None, 0.4), (0.4, None), (0.5, 0.5), (-5.0, 5.0)):
            held = sf.fit(x, y, loss=case.make(), bounds=bounds)
            lo, hi = (end if end is not None else e for end, e in zip(bounds, (-inf, inf), strict=True))
            assert_same_bits(held(x), np.clip(free(x), lo, hi))
            assert_monotone(held)


@pytest.mark.parametrize(
    ("x", "y", "w", "loss"),
    [
        ([1, 1, 0, 1], [-0.9, 0.1, 0.0, -0.1], [0.1, 0.4, 0.7, 0.1], L.Power(1.5)),
        ([1, 2, 0, 3, 1, 1, 0], [2, 3, 2, 3, 4, 4, 4.0], [0.3, 1.1, 0.9, 0.1, 0.1, 0.2, 0.9], L.Huber(1.0)),
    ],
)
def test_values_rise_where_the_optimum_is_all_but_level(x, y, w, loss):
    assert_monotone(sf.fit(x, y, sample_weight=w, loss=loss))


@every_strict
def test_blocks_of_equal_minimisers_are_one_step(case):
    """PAPER.md 9: no cut hits 0.7034.. exactly, and yet both blocks have it."""
    for y in ([0.0, 1.0, 1.0], [0.1, 0.7, 0.9], [3.0, 3.0, 3.0]):
        stairs = sf.fit([1, 1, 1, 2, 2, 2, 3, 3, 3], y * 3, loss=case.make())
        assert stairs.n_steps == 1
        assert stairs.values[0] == pytest.approx(sf.fit([1, 1, 1], y, loss=case.make()).values[0], rel=4 * EPS, abs=0)


# Special cases of losses


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


# Stopping


@every_strict
def test_a_fit_that_is_stopped_has_true_bounds(case):
    for x, y, options, p in problems(case, range(1, 2), most=12):
        if case.kind is L.Linex and np.ndim(options["loss"].shape) == 0:
            continue  # a closed form
        scores, want = expected(case, x, y, options, p)
        slack = 6 * EPS * size_of(case, y, p, want)
        for stop in (
            {"max_rounds": 0},
            {"max_rounds": 1},
            {"max_rounds": 3},
            {"tol": 0.3},
            {"tol": 1e-6},
            {"max_seconds": 0},
        ):
            stairs = sf.fit(x, y, **options, **stop)
            assert_monotone(stairs)
            lower, upper = at(stairs, "lower", scores), at(stairs, "upper", scores)
            assert (lower <= want + slack).all(), (stop, x, y, options, p)
            assert (upper >= want - slack).all(), (stop, x, y, options, p)
            rises = 1 if options["increasing"] else -1
            assert (rises * np.diff(lower) >= 0).all()
            assert (rises * np.diff(upper) >= 0).all()
            if "tol" in stop:
                assert (upper - lower <= stop["tol"] + slack).all()
            if stop == {"max_rounds": 0}:
                assert stairs.n_steps == 1


def test_a_tolerance_saves_rounds_and_none_is_needed_for_closed_forms():
    for bad, error in ((-1, ValueError), (math.nan, ValueError), ("x", TypeError)):
        with pytest.raises(error, match="`tol` must"):
            sf.fit([1], [1], tol=bad)
        with pytest.raises(error, match="`max_seconds` must"):
            sf.fit([1], [1], max_seconds=bad)
    for bad, error in ((-1, ValueError), (1.5, TypeError), ("x", TypeError)):
        with pytest.raises(error, match="`max_rounds` must"):
            sf.fit([1], [1], max_rounds=bad)
    stopped = {"tol": 1.0, "max_rounds": 0, "max_seconds": 0.0}
    assert_same_staircase(sf.fit([1, 2], [2.0, 1.0], **stopped), sf.fit([1, 2], [2.0, 1.0]))


def rounds_of(loss, x, y, w=None, **options) -> int:
    """How many rounds a fit takes."""
    counted = []

    class Counted(rounds.Rounds):
        def blocks(self):
            counted.append(self.n_rounds)
            return super().blocks()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rounds, "Rounds", Counted)
        patch.setattr(solve.rounds, "Rounds", Counted)
        sf.fit(x, y, sample_weight=w, loss=loss, **options)
    return max(counted, default=0)


@every_other
def test_no_problem_needs_many_rounds(case):
    most = 0
    for x, y, options, _ in problems(case, range(6), most=40):
        if case.kind is L.Linex and np.ptp(y) > 1:
            continue
        most = max(most, rounds_of(options["loss"], x, y, options["sample_weight"], increasing=options["increasing"]))
    if case.kind is not L.Linex:
        n = np.arange(60)
        for y in (10.0 ** (n - 30), 10.0 ** (30 - n), -(10.0 ** (n - 30)), np.where(n == 59, -1e9, n)):
            targets = np.clip(y, 1e-300, 1 - 2.0**-50) if case.kind is L.Logistic else y
            most = max(most, *(rounds_of(loss, n, targets) for loss in case.makes()[:3]))
    assert most <= (200 if case.kind is L.Power else 150), most  # 154 for sixty decades of targets


def test_rows_of_one_target_need_no_rounds():
    assert rounds_of(L.Power(3.0), [0, 0, 1], [0.0, 0.0, 1.0]) <= 70


def test_a_root_at_zero_is_zero():
    assert sf.fit([0, 0, 1], [0.1, -0.1, 5.0], loss=L.Power(1.1)).values[0] == 0.0


@every_other
def test_a_few_thousand_rows_meet_the_conditions_of_an_optimum(case):
    """With P_n = sum of -l'_m(z_m): P_n >= 0 everywhere and 0 at the end of each step, within rounding."""
    rng = np.random.default_rng(14)
    n = 3000
    x = np.arange(n)
    y = np.clip(x / n + 0.3 * rng.normal(size=n), 0.001, 0.999)
    w = rng.integers(1, 10, n) / 10
    for loss in (case.make(), case.make(rng.choice(case.parameters[:2], n))):
        stairs = sf.fit(x, y, sample_weight=w, loss=loss)
        assert_monotone(stairs)
        z = stairs(x)
        if case.kind is L.Quantile:
            below = loss.derivative(np.nextafter(z, -inf), y) * w  # it jumps at z: any slope between is one
            above = loss.derivative(z, y) * w
            for a, b in zip(stairs.left.astype(int), stairs.right.astype(int), strict=True):
                assert below[a : b + 1].sum() <= 1e-9
                assert above[a : b + 1].sum() >= -1e-9
            continue
        p = np.cumsum(-loss.derivative(z, y) * w)
        curve = np.abs(loss.derivative(z + 1e-9, y) - loss.derivative(z - 1e-9, y)) / 2e-9
        slack = 1e-11 + 64 * EPS * np.cumsum(w * (1 + curve))
        assert (p >= -slack).all()
        ends = stairs.right.astype(int)
        assert (np.abs(p[ends]) <= slack[ends]).all()


@pytest.mark.parametrize("rows_at_once", [1, 100, 257, 1000])
def test_rows_looked_at_in_pieces_give_the_same_fit(rows_at_once, monkeypatch):
    rng = np.random.default_rng(15)
    n = 2000
    x, y, w = rng.integers(0, 5, n), rng.random(n), rng.integers(1, 9, n) / 8
    x[n // 2 :] = np.arange(n // 2) + 5  # ties longer than a chunk of 256, and distinct scores
    for loss in (L.LogCosh(0.1), L.Huber(0.05), L.Quantile(0.25), L.Logistic(rng.normal(size=n))):
        whole = sf.fit(x, y, sample_weight=w, loss=loss)
        monkeypatch.setattr(rounds, "ROWS_AT_ONCE", rows_at_once)
        assert_same_staircase(sf.fit(x, y, sample_weight=w, loss=loss), whole)
        monkeypatch.undo()


def test_a_round_goes_on_where_a_deadline_stopped_it(monkeypatch):
    rng = np.random.default_rng(16)
    y = rng.random(3000)
    problem = rounds.Problem(
        L.Power.kind, np.array([1.5]), y, np.empty(0), np.empty(0, dtype=np.uint8), has_location=True
    )
    whole, pieces = (rounds.Rounds(problem, rounds.first_run(3000, 0.0, 1.0, 0.5), L.Power(1.5)) for _ in range(2))
    monkeypatch.setattr(rounds, "ROWS_AT_ONCE", 300)
    while len(whole.open):
        whole.cut_all(halve=False, tol=0.0, deadline=inf)
        ticks = itertools.count()
        monkeypatch.setattr(rounds.time, "monotonic", lambda ticks=ticks: next(ticks) % 3)
        while not pieces.cut_all(halve=False, tol=0.0, deadline=2):
            pass
        monkeypatch.undo()
        monkeypatch.setattr(rounds, "ROWS_AT_ONCE", 300)
        for one, two in zip(whole.blocks(), pieces.blocks(), strict=True):
            assert_same_bits(one, two)


@every_other
def test_rows_come_in_any_type_and_order(case):
    y = np.array([0, 1, 0, 1, 1, 0, 1, 1])
    x = np.array([1, 1, 2, 2, 3, 4, 4, 4])
    p = np.resize(case.parameters[:2], 8)
    bounds = (-inf, inf) if case.kind is L.Logistic else None
    plain = sf.fit(x * 1.0, y * 1.0, loss=case.make(p), bounds=bounds)
    for scores, targets in ((x.astype(np.float32), y), (x, y.astype(bool)), (x.tolist(), y.astype(np.uint8))):
        assert_same_staircase(sf.fit(scores, targets, loss=case.make(p), bounds=bounds), plain)
    # descending, and with rows that are absent in between, each with its parameter
    backwards = sf.fit(-x[::-1], y[::-1], loss=case.make(p[::-1]), bounds=bounds, increasing=False)
    assert backwards(-x) == pytest.approx(plain(x), rel=1e-14, abs=0)
    padded = {
        "scores": np.append(np.repeat(x, 2), 99), "targets": np.append(np.repeat(y, 2), 0),
        "sample_weight": np.append(np.tile([0.0, 1.0], 8), 0), "loss": case.make(np.append(np.repeat(p, 2), p[0])),
    }  # fmt: skip
    padded["loss"] = case.make(np.where(padded["sample_weight"] > 0, getattr(padded["loss"], case.parameter), p[1]))
    found = sf.fit(**padded, bounds=bounds)
    for name in ("left", "right", "values", "weights", "counts"):
        assert_same_bits(getattr(found, name), getattr(plain, name))


def test_one_row_that_is_present_has_its_own_parameter():
    loss = L.Huber([1.0, 2.0, 3.0])
    stairs = sf.fit([1, 2, 3], [5.0, 6.0, 7.0], sample_weight=[0, 2, 0], loss=loss)
    assert (stairs.values.tolist(), stairs.left.tolist(), stairs.loss) == ([6.0], [2.0], loss)


def million(seed: int = 0):
    rng = np.random.default_rng(seed)
    x = np.arange(1_000_000.0)
    return x, np.sin(x / 3e5) + rng.normal(size=len(x))


def test_a_time_limit_is_kept_on_a_million_rows():
    x, y = million()
    loss = L.Power(1.7)
    start = time.perf_counter()
    sf.fit(x, y, loss=loss, max_seconds=0.0)
    overhead = time.perf_counter() - start  # of checking the rows, and of making a staircase
    for limit in (0.05, 0.2):
        start = time.perf_counter()
        stairs = sf.fit(x, y, loss=loss, max_seconds=limit)
        taken = time.perf_counter() - start
        assert taken <= limit + overhead + 1.0  # 0.05 on a machine of its own; others may use this one, too
        assert_monotone(stairs)
        assert (stairs.lower < stairs.upper).any()


@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_a_keyboard_interrupt_stops_a_long_fit_promptly():
    code = """
        import signal, time
        import numpy as np
        import staircase_fast as sf
        y = np.random.default_rng(0).normal(size=3_000_000)
        x = np.arange(len(y))
        p = np.linspace(1.2, 1.9, len(y))
        signal.setitimer(signal.ITIMER_REAL, 0.4)
        sent = time.monotonic() + 0.4
        signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(signal.SIGINT))
        try:
            while True:
                sf.fit(x, y, loss=sf.losses.Power(p))
        except KeyboardInterrupt:
            print(time.monotonic() - sent)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=60, cwd=ROOT, check=True
    )
    assert float(done.stdout) < 2.0  # 0.05 on a machine of its own


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


def test_a_cut_finds_the_last_minimum_after_batches_that_were_skipped():
    """Rows of skipped batches count for the rows after a minimum: later rows with the same sum are at the cut."""
    hidden = 0
    rng = np.random.default_rng(0)
    for _ in range(2000):
        y = rng.normal(size=150)
        sums = np.cumsum(0.5 - (y <= y[75]))
        minima = np.flatnonzero(sums == sums.min()) + 1
        if sums.min() >= 0 or minima[-1] == len(y) or minima[-1] - minima[0] < 64:
            continue
        hidden += 1
        problem = rounds.Problem(
            L.Quantile(0.5).kind, np.array([0.5]), y, np.empty(0), np.empty(0, dtype=np.uint8), True, True
        )
        for side, place in ((-1, minima[-1]), (1, minima[0])):
            first = rounds.first_run(len(y), -9.0, 9.0, y[75])
            first["side"] = side
            ours = rounds.Rounds(problem, first, L.Quantile(0.5))
            ours.cut_all(halve=True, tol=0.0, deadline=np.inf)
            assert sorted(ours.open["start"].tolist() + ours.done[-1]["start"].tolist()) == [0, place]
    assert hidden > 5


@pytest.mark.parametrize("level", [0.5, 0.99])
def test_quantiles_need_few_rounds_for_any_targets_and_weights(level):
    rng = np.random.default_rng(4)
    n = 3000
    x = np.arange(n)
    one_heavy = np.where(x == n // 2, 1e12, rng.random(n) + 0.1)
    for y, w, most in (
        (rng.normal(size=n), None, 25),
        (rng.normal(size=n), one_heavy, 40),
        (np.exp(50 * rng.normal(size=n)), rng.random(n) ** 8 + 1e-9, 40),
        (2.0 ** -rng.integers(0, 900, n), 2.0 ** rng.integers(0, 60, n), 40),
        (np.round(rng.normal(size=n), 1), None, 25),
    ):
        for side in ("lower", "middle"):
            options = {"sample_weight": w, "loss": L.Quantile(level, side=side)}
            limited, expected = sf.fit(x, y, max_rounds=most, **options), sf.fit(x, y, **options)
            assert_same_bits(limited.left, expected.left)
            assert_same_bits(limited.values, expected.values)
