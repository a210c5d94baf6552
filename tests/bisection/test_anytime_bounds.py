"""`Anytime`: bounds after every round, against fits and against the loop of the paper."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from anytime_fits import assert_valid, present, problem_of
from comparing import assert_same_bits
from hypothesis import given, settings
from hypothesis import strategies as st
from loss_table import CASES
from reference import anytime_rounds

import staircase_fast as sf

L = sf.losses
inf = math.inf
EPS = 2.0**-52
every_loss = pytest.mark.parametrize("case", CASES, ids=repr)
both_directions = pytest.mark.parametrize("increasing", [True, False])
# the first seed on every build, the others on one
some_seeds = pytest.mark.parametrize("seeds", [range(1), pytest.param(range(1, 4), marks=pytest.mark.long)], ids=str)


def by_row(fit, x, w):
    """Bounds of the block of each row, in score order."""
    starts, lower, upper = fit._blocks()
    assert (fit.n_blocks, len(fit.lower), len(fit.upper)) == (len(starts),) * 3
    assert_same_bits(fit.lower, lower)
    assert_same_bits(fit.upper, upper)
    n = len(present(x, w))
    assert starts[0] == 0
    assert (np.diff(starts) > 0).all()
    place = np.searchsorted(starts, np.arange(n), side="right") - 1
    return lower[place], upper[place]


# Against fits


@some_seeds
@every_loss
def test_values_lie_between_bounds_that_halve_in_every_round(case, seeds):
    for seed, n in itertools.product(seeds, (2, 16)):
        x, y, options = problem_of(case, seed, n)
        w = options["sample_weight"]
        rows = present(x, w)
        stairs = sf.fit(x, y, **options)
        want = stairs(rows)
        size = max(1.0, np.abs(y).max(), np.abs(want).max())
        # exponents near 1, and far from 1, have flat sums: `fits_in_rounds.py` says how flat
        slack = 8 * EPS * size / (0.1 if case.kind is L.Power else 1)
        fit = sf.Anytime(x, y, **options)
        was_resolved, blocks = False, fit.n_blocks
        assert blocks == len(np.unique(rows))
        width = None
        for _ in range(12):
            lower, upper = by_row(fit, x, w)
            assert (lower <= want + slack).all(), (seed, n, lower, want)
            assert (want - slack <= upper).all(), (seed, n, want, upper)
            assert fit.n_blocks <= blocks
            blocks = fit.n_blocks
            if fit.n_rounds % 4 == 1:
                assert_valid(fit.staircase(), options["increasing"])
            assert fit.resolved or not was_resolved
            was_resolved = fit.resolved
            if was_resolved and case.kind is not L.Quantile:  # see below
                apart = np.flatnonzero(np.diff(want)) + 1
                assert len(apart) + 1 == fit.n_blocks
                np.testing.assert_array_equal(fit._blocks()[0], np.append(0, apart))
            widths = upper - lower
            if fit.n_rounds and not isinstance(options["loss"], L.Huber):
                halved = np.abs(widths - width) <= 8 * EPS * size
                assert (halved | (widths <= 1e-6 * size)).all(), (seed, n, width, widths)
            width = 0.5 * (widths.max() if width is None else width)
            fit.step()
        assert fit.n_rounds == 12
        if seed != 1 and n > 2:
            continue
        assert fit.refine() == "precision"
        lower, upper = by_row(fit, x, w)
        assert (lower <= want + slack).all()
        assert (want - slack <= upper).all()
        final = fit.staircase()
        assert (np.abs(final(rows) - want) <= 2 * slack + (upper - lower)).all()
        assert fit.resolved


@every_loss
def test_bounds_hold_values_and_what_is_beyond_them_is_at_them_exactly(case):
    for seed, n in itertools.product(range(3), (12,)):
        x, y, options = problem_of(case, seed, n)
        rows = present(x, options["sample_weight"])
        free = sf.fit(x, y, **options)(rows)
        lo, hi = (float(np.quantile(free, q)) for q in (0.3, 0.7))
        for bounds in ((lo, hi), (lo, None), (None, hi), (lo, lo), (hi, inf)):
            low, high = (-inf if bounds[0] is None else bounds[0]), (inf if bounds[1] is None else bounds[1])
            fit = sf.Anytime(x, y, bounds=bounds, **options)
            want = np.clip(free, low, high)
            size = max(1.0, np.abs(y).max(), np.abs(free).max())
            for _ in range(3):
                fit.step()
                lower, upper = by_row(fit, x, options["sample_weight"])
                assert (lower >= low).all()
                assert (upper <= high).all()
                assert (lower <= want + 80 * EPS * size).all()
                assert (upper >= want - 80 * EPS * size).all()
                for bound, beyond in ((low, free < low - 1e-9), (high, free > high + 1e-9)):
                    assert (lower[beyond] == bound).all()
                    assert (upper[beyond] == bound).all()
                assert_valid(fit.staircase(), options["increasing"])


@pytest.mark.parametrize("bounds", [(10, 20), (10, None), (-20, -10), (None, -10), (10, 10)])
def test_bounds_may_leave_all_targets_out(bounds):
    for loss in ("squared", "log_cosh", L.Power(1.5), L.Custom(lambda z, y: np.tanh(z - y))):
        fit = sf.Anytime([1, 2, 3, 4], [0.0, 3.0, 1.0, 5.0], loss=loss, bounds=bounds)
        for _ in range(3):
            fit.step()
        value = next(bound for bound in bounds if bound is not None and abs(bound) == 10)
        assert (fit.lower.tolist(), fit.upper.tolist()) == ([value], [value])
        assert fit.staircase().values.tolist() == [value]
        assert fit.resolved
        assert fit.refine() == "precision"


def test_bounds_may_be_one_number_among_targets():
    fit = sf.Anytime([1, 2, 3, 4], [0.0, 3.0, 1.0, 5.0], loss="log_cosh", bounds=(3, 3))
    fit.step()
    assert fit.staircase().values.tolist() == [3.0]
    assert (fit.n_blocks, fit.lower.tolist(), fit.upper.tolist(), fit.resolved) == (1, [3.0], [3.0], True)


@pytest.mark.parametrize(
    "side",
    [
        "lower",
        "upper",
        "middle",
    ],
)
def test_every_side_of_quantiles_lies_between_its_bounds(side):
    loss = L.Quantile(0.5, side=side)
    for y in itertools.product((0.0, 1.0, 3.0), repeat=3):
        want = sf.fit([1, 2, 3], y, loss=loss)([1, 2, 3])
        fit = sf.Anytime([1, 2, 3], y, loss=loss)
        for _ in range(4):
            lower, upper = by_row(fit, np.arange(3), None)
            assert (lower <= want).all()
            assert (want <= upper).all()
            fit.step()


@pytest.mark.parametrize(
    ("side", "targets", "bounds"), [("lower", [3.0, 3.0, 1.0], (None, 2)), ("upper", [1.0, 1.0, 3.0], (2, None))]
)
def test_quantiles_beyond_a_bound_are_at_it(side, targets, bounds):
    loss = L.Quantile(0.5, side=side)
    assert sf.fit([1, 1, 1], targets, loss=loss, bounds=bounds).values.tolist() == [2.0]
    fit = sf.Anytime([1, 1, 1], targets, loss=loss, bounds=bounds)
    fit.refine()
    assert fit.staircase().values.tolist() == [2.0]


def test_the_middle_of_minimisers_lies_between_bounds_even_if_one_end_of_them_does_not():
    options = {"loss": L.Huber(0.25), "bounds": (-1.5, 1.5)}
    fit = sf.Anytime([1, 2], [3.0, -4.0], **options)
    value = sf.fit([1, 2], [3.0, -4.0], **options).values
    for _ in range(9):
        fit.step()
        assert fit.lower <= value <= fit.upper


@pytest.mark.parametrize("side", ["lower", "upper", "middle"])
def test_every_side_of_quantiles_lies_between_its_bounds_within_wider_ones(side):
    loss = L.Quantile(0.5, side=side)
    for y in itertools.permutations((1.0, 1.5, 3.0)):
        want = sf.fit([1, 2, 3], y, loss=loss)([1, 2, 3])
        fit = sf.Anytime([1, 2, 3], y, loss=loss, bounds=(-1.7, 5.3))
        for _ in range(6):
            lower, upper = fit.lower, fit.upper
            assert ((lower <= want.max()) & (upper >= want.min())).all()
            fit.step()
        fit.refine()
        assert fit.staircase()([1, 2, 3]) == pytest.approx(want, abs=1e-12)


@pytest.mark.parametrize(
    ("loss", "targets", "bounds"),
    [(L.Quantile(), [2.0, 0.0, 1.0], (-1.7, 5.3)), (L.Huber(0.25), [2.0, 3.0, 0.0], None)],
    ids=repr,
)
def test_blocks_that_are_resolved_are_the_steps_even_of_losses_with_flat_stretches(loss, targets, bounds):
    fit = sf.Anytime([1, 2, 3], targets, loss=loss, bounds=bounds)
    steps = sf.fit([1, 2, 3], targets, loss=loss)
    for _ in range(9):
        fit.step()
        assert not fit.resolved or fit.n_blocks == len(steps.values)


# Against the paper


def exact_problems(seeds):
    for seed, n in itertools.product(seeds, (1, 2, 5, 11)):
        rng = np.random.default_rng([seed, n])
        y = rng.integers(-24, 25, n) / 4
        w = rng.integers(1, 4, n).astype(float) if seed % 2 else np.ones(n)
        x = np.sort(rng.integers(0, n, n)) if seed % 3 == 0 else np.arange(n)
        yield x, y, w, seed


def pooled_derivatives(x, y, w, level):
    """Of each distinct score, the exact derivative of its samples together."""

    def derivative(members):
        def slope(z):
            return sum(
                Fraction(w[i]) * 2 * (1 - level if z > Fraction(y[i]) else level) * (z - Fraction(y[i]))
                for i in members
            )

        return slope

    return [derivative(np.flatnonzero(x == score)) for score in np.unique(x)]


@pytest.mark.parametrize("seeds", [range(2), pytest.param(range(2, 6), marks=pytest.mark.long)], ids=str)
@pytest.mark.parametrize("level", [0.5, 0.25])
@both_directions
def test_blocks_and_bounds_are_those_of_the_papers_loop(level, increasing, seeds):
    """Groups of section VI in exact arithmetic: how many, of which rows, and their bounds, after every round."""
    for x, y, w, seed in exact_problems(seeds):
        A, B = Fraction(8 + seed % 3), Fraction(-8)
        papers = anytime_rounds(pooled_derivatives(x, y, w, Fraction(level)), A, B, 14)
        scores = x if increasing else -x
        loss = "squared" if level == 0.5 and seed % 2 else L.Expectile(level)
        fit = sf.Anytime(scores, y, sample_weight=w, loss=loss, bounds=(float(B), float(A)), increasing=increasing)
        firsts = np.append(np.unique(x, return_index=True)[1], len(x))
        for groups in papers:
            fit.step()
            starts, lower, upper = fit._blocks()
            rows = [(firsts[g.samples.start], firsts[g.samples.stop]) for g in groups]
            if not increasing:
                rows = [(len(x) - stop, len(x) - start) for start, stop in rows[::-1]]
                groups = groups[::-1]  # noqa: PLW2901
            assert fit.n_blocks == len(groups)
            assert starts.tolist() == [start for start, _ in rows]
            for g, lo, hi in zip(groups, lower, upper, strict=True):
                if g.A != g.B:
                    assert (lo, hi) == (g.B, g.A)
                else:  # a cut hit the root, within rounding
                    assert lo <= g.A <= hi
                    assert hi - lo <= 1e-12
            alone = len({(g.A, g.B) for g in groups}) == len(groups)
            assert fit.resolved == alone


@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(-7, 7), st.integers(1, 3)), min_size=1, max_size=10),
    st.integers(1, 6),
)
@pytest.mark.long
@settings(max_examples=40)
def test_any_integers_have_the_blocks_and_bounds_of_the_papers_loop(drawn, n_rounds):
    x, y, w = (np.array(column, dtype=float) for column in zip(*sorted(drawn), strict=True))
    groups = anytime_rounds(pooled_derivatives(x, y, w, Fraction(1, 2)), Fraction(8), Fraction(-8), n_rounds)[-1]
    fit = sf.Anytime(x, y, sample_weight=w, loss="squared", bounds=(-8, 8))
    assert fit.refine(max_rounds=n_rounds) in ("max_rounds", "precision")
    assert fit.n_blocks == len(groups)
    for g, lo, hi in zip(groups, fit.lower, fit.upper, strict=True):
        assert lo <= g.B <= g.A <= hi if g.A == g.B else (lo, hi) == (g.B, g.A)
        assert hi - lo - float(g.A - g.B) <= 1e-12
