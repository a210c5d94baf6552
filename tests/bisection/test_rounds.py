"""Fits under losses that are not least at the mean: against the references, the paper and the promises."""

import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from comparing import assert_same_bits, assert_same_staircase
from fits_in_rounds import (
    assert_monotone,
    at,
    digits_for,
    every_other,
    every_strict,
    expected,
    problems,
    samples_of,
    size_of,
)
from loss_table import BY_NAME, LOCATION, OTHERS
from reference import (
    Sample,
    anytime_rounds,
    exact_steps,
    general_steps,
    is_between,
    step_value,
)

import staircase_fast as sf
from staircase_fast.bisection import rounds

L = sf.losses
inf = math.inf
EPS = 2.0**-52
every_location = pytest.mark.parametrize("case", LOCATION, ids=repr)


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
