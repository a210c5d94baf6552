"""Fits with targets of all sizes: certified, and with proven bounds that contain the true values."""

import itertools
import math
import pathlib
import re
import sys
from decimal import Decimal, localcontext

import numpy as np
import pytest

import staircase_fast as sf
from staircase_fast.losses import units

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "safety"))

from certify_scales import CASES, SCALES, certify_cell

L = sf.losses
LARGEST = float(np.finfo(np.float64).max)


@pytest.mark.parametrize("name", CASES)
def test_fits_are_certified_at_every_scale(name):
    for scale in SCALES:
        assert certify_cell(name, scale, n_fits=12, seed=5) == []


def test_log_cosh_of_wide_targets_is_not_stopped_by_slopes_that_underflow():
    x, y = range(5), [500000.0, -1000000.0, 200000.0, -100000.0, 100000.0]
    stairs = sf.fit(x, y, loss="log_cosh")
    assert sf.certify(stairs, x, y).optimal
    assert L.LogCosh().value(stairs(x), y).sum() == pytest.approx(1799997, abs=1)
    for seed, scale in itertools.product(range(100), (1e4, 1e5, 1e6)):
        y = scale * np.random.default_rng(seed).normal(size=20)
        assert sf.certify(sf.fit(range(20), y, loss="log_cosh"), range(20), y).optimal


def test_bounds_enclose_a_stretch_on_which_log_cosh_is_flat():
    stairs = sf.fit([1, 1, 1, 1], [0.0, 10.0, 5000.0, 6000.0], loss="log_cosh")
    # the tails of 10 and 5000 balance half way between them; the mean is 2752.5
    assert stairs.lower[0] < 2000
    assert stairs.upper[0] > 3000
    assert stairs.values[0] == pytest.approx(2505, abs=1)


# The derivative of each loss with respect to z, of r = z - y and the parameter.
DERIVATIVES = {
    "pseudo-huber": (L.PseudoHuber, lambda r, p: r / (1 + (r / p) ** 2).sqrt()),
    "log-cosh": (L.LogCosh, lambda r, p: p * (1 - 2 / ((2 * r / p).exp() + 1))),
    "power": (L.Power, lambda r, p: (abs(r) ** (p - 1)).copy_sign(r) if r else r),
    "linex": (L.Linex, lambda r, p: p * ((p * r).exp() - 1)),
    "expectile": (L.Expectile, lambda r, p: 2 * (1 - p if r > 0 else p) * r),
}
PARAMETERS = {
    "pseudo-huber": (0.01, 1.0, 30.0),
    "log-cosh": (2.0, 30.0),
    "power": (1.1, 1.5, 3.0, 20.0),
    "linex": (-0.2, 1.0, 40.0),
    "expectile": (0.01, 0.9),
}


def true_root(derivative, y, w, p):
    """The minimiser of a block, to about 40 digits."""
    low, high = min(y), max(y)
    for _ in range(160):
        middle = (low + high) / 2
        if sum(wi * derivative(middle - yi, p) for yi, wi in zip(y, w, strict=True)) > 0:
            high = middle
        else:
            low = middle
    return (low + high) / 2


def true_values(derivative, y, w, p):
    stack = []
    for yi, wi in zip(y, w, strict=True):
        ys, ws, value = [yi], [wi], yi
        while stack and stack[-1][2] >= value:
            ys, ws = stack[-1][0] + ys, stack[-1][1] + ws
            stack.pop()
            value = true_root(derivative, ys, ws, p)
        stack.append((ys, ws, value))
    return [value for ys, _, value in stack for _ in ys]


@pytest.mark.parametrize("name", DERIVATIVES)
def test_the_true_value_is_never_outside_the_proven_bounds(name):
    make, derivative = DERIVATIVES[name]
    for seed in range(16):
        rng = np.random.default_rng(seed)
        n, parameter = int(rng.choice([2, 3, 5, 8])), float(rng.choice(PARAMETERS[name]))
        y = rng.normal(size=n) * rng.choice([0.01, 1.0, 100.0]) + rng.choice([0.0, 100.0])
        w = rng.random(n) if seed % 2 else np.ones(n)
        stairs = sf.fit(range(n), y, sample_weight=w, loss=make(parameter))
        with localcontext() as context:
            context.prec = 140  # 1 - tanh is as small as 1e-90
            exact = true_values(derivative, *([Decimal(float(v)) for v in column] for column in (y, w)),
                                Decimal(parameter))  # fmt: skip
        step = np.searchsorted(stairs.left, range(n), side="right") - 1
        for value, low, high in zip(exact, stairs.lower[step], stairs.upper[step], strict=True):
            assert Decimal(float(low)) <= value <= Decimal(float(high))


def test_bounds_take_the_rounding_of_distances_into_account():
    y = [0.11975037653222687, -0.18220884171267782, -0.0542111928788692, 0.1123511378804716, -0.1119570441080795,
         -0.010808498088687793, -0.08500929576032833, -0.08206820025027754]  # fmt: skip
    stairs = sf.fit(range(8), y, loss=L.Power(20))
    _, derivative = DERIVATIVES["power"]
    with localcontext() as context:
        context.prec = 60
        exact = true_values(derivative, [Decimal(v) for v in y], [Decimal(1)] * 8, Decimal(20))
    step = np.searchsorted(stairs.left, range(8), side="right") - 1
    for value, low, high in zip(exact, stairs.lower[step], stairs.upper[step], strict=True):
        assert Decimal(float(low)) <= value <= Decimal(float(high))


SCALING = [L.Huber(), L.PseudoHuber(), L.LogCosh(), L.Quantile(), L.Expectile(), L.Power(1.5), L.Power(3)]


@pytest.mark.parametrize("loss", SCALING, ids=repr)
@pytest.mark.parametrize("increasing", [True, False])
def test_targets_near_the_largest_float_are_solved(loss, increasing):
    for y in itertools.product((LARGEST, -LARGEST, 0.0, 1e300), repeat=2):
        stairs = sf.fit([1, 2], y, loss=loss, increasing=increasing)
        assert sf.certify(stairs, [1, 2], y).optimal
        assert np.isfinite([stairs.values, stairs.lower, stairs.upper]).all()
        assert (min(y) <= stairs.lower).all()
        assert (stairs.upper <= max(y)).all()
    exact = sf.fit([1, 1, 1], [LARGEST, LARGEST, LARGEST], loss=loss)
    assert exact.values.tolist() == [LARGEST]


def test_small_targets_count_beside_the_largest_floats():
    x, y = [1, 1, 2], [0.0, 1.0, 1e308]
    stairs = sf.fit(x, y, loss="huber", increasing=False)
    assert stairs.lower[0] <= 1.0 <= stairs.upper[0]
    assert stairs.values[0] == pytest.approx(1.0, rel=1e-15, abs=0)
    tiny = sf.fit(x, [0.0, 1.3e-6, 1e308], loss=L.Huber(1e-6), increasing=False)
    assert tiny.values[0] == pytest.approx(1.3e-6, rel=1e-14, abs=0)
    # the slope of the largest target is -1
    pseudo = sf.fit(x, y, loss="pseudo_huber", increasing=False).values[0]
    slope = L.PseudoHuber().derivative(pseudo, [0.0, 1.0]).sum()
    assert slope == pytest.approx(1.0, rel=1e-15, abs=0)
    assert sf.certify(stairs, x, y).optimal


@pytest.mark.parametrize("loss", SCALING, ids=repr)
def test_targets_of_tiny_and_huge_size_are_solved_or_refused(loss):
    x = [1, 1, 2, 2]
    for y in ([0.0, 3e-100, 2e100, 1e100], [3e-100, 0.0, 0.0, 2e100], [5e-324, 1e-323, 1e-310, 0.0]):
        stairs = sf.fit(x, y, loss=loss)
        assert sf.certify(stairs, x, y).optimal
        if loss == L.Power(3) and y[0] == 0:
            assert stairs.values[0] == pytest.approx(1.5e-100, rel=1e-12, abs=0)
    with pytest.raises(
        ValueError, match=r"`targets` must be 0 or at least .* times the largest magnitude.*; got 5e-324 at index 2\."
    ):
        sf.fit([1, 2, 3], [1e308, 0.0, 5e-324], loss=loss)
    assert sf.fit([1, 2, 3], [1e308, 1e308, 5e-324], sample_weight=[1, 1, 0], loss=loss).n_steps == 1


def test_parameters_that_vanish_beside_targets_are_refused():
    with pytest.raises(
        ValueError, match=r"`delta` must be at least .* times the largest target, 1e\+308; got 5e-324\."
    ):
        sf.fit([1, 2], [1e308, 0.0], loss=L.Huber(5e-324))
    with pytest.raises(ValueError, match=r"`scale` must .*; got 5e-324 at index 1\."):
        sf.fit([1, 2], [1e308, 0.0], loss=L.LogCosh([1.0, 5e-324]))
    for size, exponents in ((1e150, [3.0, 4.0]), (1e-308, [2.0, 1.5])):
        with pytest.raises(
            ValueError, match=rf"`targets` must lie within .* if exponents differ .*; got {re.escape(f'{size}')}\."
        ):
            sf.fit([1, 2], [size, 0.0], loss=L.Power(exponents))


def test_blocks_of_powers_that_underflow_are_solved_in_their_own_unit():
    rng = np.random.default_rng(3)
    tiny = 1e-9 * rng.normal(size=40)
    x, y = np.arange(42), np.concatenate([[-3.0], tiny, [5.0]])
    stairs = sf.fit(x, y, loss=L.Power(50))
    alone = sf.fit(x[1:-1], tiny, loss=L.Power(50))
    assert stairs(x[1:-1]) == pytest.approx(alone(x[1:-1]), rel=1e-9, abs=0)
    tied = np.repeat(np.arange(21), 2)
    y = np.concatenate([[-3.0, -2.0], np.repeat(tiny[:20], 2)[:40]])
    weights = rng.random(42)
    stairs = sf.fit(tied, y, sample_weight=weights, loss=L.Power(50), increasing=False)
    assert sf.certify(stairs, tied, y, sample_weight=weights).optimal


def test_small_targets_with_several_exponents_are_solved_in_one_unit():
    y, loss = [4e-07, 4e-07, 3e-07, 4e-07, -4e-07], L.Power([1.5, 4.0, 4.0, 4.0, 1.5])
    stairs = sf.fit(range(5), y, loss=loss)
    assert stairs.n_steps == 1
    assert abs(stairs.values[0]) < 1e-15
    assert sf.certify(stairs, range(5), y).optimal


def test_linex_of_any_range_is_solved_where_shapes_have_one_sign():
    x, y = [1, 1, 2, 2], [0.0, 3e-100, 1e100, 2e100]
    stairs = sf.fit(x, y, loss=L.Linex(1))
    assert stairs.values.tolist() == [1.5e-100, 1e100]
    assert sf.certify(stairs, x, y).optimal
    wide = sf.fit([1, 1], [LARGEST, -LARGEST], loss=L.Linex(1))
    assert wide.lower[0] == -LARGEST
    assert wide.values[0] == pytest.approx(-LARGEST, rel=1e-15, abs=0)
    apart = sf.fit([1, 1, 1], [0.0, 5000.0, 9000.0], loss=L.Linex([1.0, 0.5, 3.0]))
    # exp(z) - 1 + .5 (exp(.5 z - 2500) - 1) + 3 (exp(3 z - 27000) - 1) = 0
    assert apart.values[0] == pytest.approx(math.log(4.5), rel=1e-14, abs=0)
    with pytest.raises(
        ValueError, match=r"`shape` times the range of targets must be below 600 if shapes have both signs"
    ):
        sf.fit([1, 2], [0.0, 5000.0], loss=L.Linex([1.0, -1.0]))


@pytest.mark.parametrize("loss", SCALING, ids=repr)
def test_anytime_bounds_hold_for_targets_of_any_size(loss):
    for size in (1e-300, 1e100, 1e307):
        x, y = [1, 2, 3, 4], [3 * size, size, 2 * size, 4 * size]
        want = sf.fit(x, y, loss=loss)
        fit = sf.Anytime(x, y, loss=loss)
        for _ in range(12):
            fit.step()
            lower, upper = fit.lower, fit.upper
            assert lower[0] <= want.values[0] * (1 + 1e-9)
            assert upper[-1] >= want.values[-1] * (1 - 1e-9)
        assert fit.refine(tol=1e-3 * size) in ("tol", "precision")
        assert fit.staircase()(x) == pytest.approx(want(x), rel=0.01, abs=0)


def test_logistic_fits_with_huge_offsets_are_certified():
    infinite = (-math.inf, math.inf)
    for seed in range(300):
        rng = np.random.default_rng([seed, 3])
        n = int(rng.choice([3, 8, 20, 60]))
        y = rng.random(n) if seed % 2 else (rng.random(n) < 0.5).astype(float)
        loss = L.Logistic(rng.normal(size=n) * 10 ** rng.uniform(3, 4))
        stairs = sf.fit(range(n), y, loss=loss, bounds=infinite)
        assert sf.certify(stairs, range(n), y, bounds=infinite).optimal


def test_small_weights_and_targets_count_beside_large_ones_that_cancel():
    stairs = sf.fit([1, 1, 2], [0.0, 1.0, 1.0], sample_weight=[1, 1, 1e-17], loss="quantile")
    assert stairs.values.tolist() == [0.0, 1.0]
    x, y = [0, 1, 2, 3], [-LARGEST, LARGEST, -LARGEST, 1e154]
    for loss in (L.Power(2.0), L.Expectile(0.5)):
        stairs = sf.fit(x, y, loss=loss)
        assert stairs.left.tolist() == [0, 1, 3]
        assert stairs.values[[0, 2]].tolist() == [-LARGEST, 1e154]
        assert stairs.lower[1] <= 0 <= stairs.upper[1]
        assert sf.certify(stairs, x, y).optimal
    stairs = sf.fit([1, 2, 3], [1e20, -1e20, 5.0], loss="expectile")
    assert stairs.values[-1] == 5.0


@pytest.mark.parametrize(("loss", "parameter"), [(L.Linex, "shape"), (L.Logistic, "offset")])
def test_parameters_beyond_all_sense_are_refused(loss, parameter):
    with pytest.raises(ValueError, match=rf"`{parameter}` must be between .*; got 1e\+305 at index 1\."):
        sf.fit([1, 2], [0.5, 0.5], loss=loss([1.0, 1e305]))
    with pytest.raises(ValueError, match=rf"`{parameter}` must be between .*; got 1e\+305\."):
        sf.fit([1, 2], [0.5, 0.5], loss=loss(1e305))


@pytest.mark.parametrize("delta", [1e200, 1e308])
@pytest.mark.parametrize("loss", [L.Huber, L.PseudoHuber, L.LogCosh])
def test_a_huge_delta_makes_the_loss_a_square(loss, delta):
    y = [1e-200, 3e-200, 2e-200, -1.0, 5.0, 7e-200]
    for increasing in (True, False):
        want = sf.fit(range(6), y, increasing=increasing)
        stairs = sf.fit(range(6), y, loss=loss(delta), increasing=increasing)
        assert stairs(range(6)) == pytest.approx(want(range(6)), rel=1e-14, abs=0)
    with pytest.raises(
        ValueError, match=r"`targets` must be 0 or at least 2\*\*-900 times `.*`, .*; got 1e-300 at index 1\."
    ):
        sf.fit([1, 2, 3], [1.0, 1e-300, 0.0], loss=loss(delta))


def test_linex_with_a_tiny_shape_is_a_square():
    stairs = sf.fit([1, 2, 3], [1e-40, 3e-40, -1e-40], loss=L.Linex(1e-240))
    assert stairs.values[0] == pytest.approx(1e-40, rel=1e-15, abs=0)
    assert (stairs.lower <= stairs.values).all()
    assert (stairs.values <= stairs.upper).all()


def test_directions_are_compared_where_losses_overflow():
    for loss in (*SCALING[:-1], L.PoissonDeviance(1e30), L.TweedieDeviance(1.5)):
        y = [1.0, 1e300, LARGEST]
        weights = [1.0, 2.0, 1e-10]
        assert sf.fit([1, 2, 3], y, sample_weight=weights, loss=loss, increasing="auto").n_steps >= 1
    falling = sf.fit([1, 2, 3], [1e308, 1e307, -1e308], loss="huber", increasing="auto")
    assert not falling.increasing


def test_bounds_that_underflow_are_rounded_outwards():
    lower, upper = np.array([1.25, -1.25, 4.0]), np.array([1.75, -0.75, 4.0])
    low, high = units.bounds_of(lower, upper, -1074)
    assert (low * 2.0**1000 * 2.0**74 <= lower).all()
    assert (high * 2.0**1000 * 2.0**74 >= upper).all()
    assert low[2] == high[2] == 4 * 5e-324
