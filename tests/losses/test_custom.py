"""`Custom`: fits by a derivative in Python, and what the loss is besides."""

import copy
import itertools
import math
import pickle

import numpy as np
import pytest
import scipy
from comparing import assert_same_bits, assert_same_staircase
from custom_losses import DOUBLES, Custom, UpdateRule, assert_close_staircase, difference, plain, rows_of, squared
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import exact_steps

import staircase_fast as sf
from staircase_fast.bisection import rounds

L = sf.losses
inf = math.inf
EPS = 2.0**-52


def log_cosh(z, y, scale):
    return scale * np.tanh((z - y) / scale)


def pseudo_huber(z, y, delta):
    return (z - y) / np.sqrt(1 + ((z - y) / delta) ** 2)


def expectile(z, y, level):
    return 2 * np.where(z > y, 1 - level, level) * (z - y)


def linex(z, y, shape):
    return shape * np.expm1(shape * (z - y))


def power(z, y, exponent):
    return np.sign(z - y) * np.abs(z - y) ** (exponent - 1)


def huber(z, y, delta):
    return np.clip(z - y, -delta, delta)


def logistic(z, y, offset):
    return scipy.special.expit(z + offset) - y


def log_loss(z, y):
    with np.errstate(all="ignore"):
        return np.where(y < 1, (1 - y) / (1 - z), 0.0) - np.where(y > 0, y / z, 0.0)


def poisson(z, y, exposure):
    with np.errstate(all="ignore"):
        return exposure - np.where(y > 0, y / z, 0.0)


def saturating(z, y):
    """Least at infinity for targets 0 and 1."""
    return np.tanh(z) - (2 * y - 1)


SAME = {
    "log_cosh": (log_cosh, L.LogCosh, (1.0, 0.5)),
    "pseudo_huber": (pseudo_huber, L.PseudoHuber, (1.0, 0.25)),
    "expectile": (expectile, L.Expectile, (0.8, 0.1)),
    "linex": (linex, L.Linex, (1.0, -0.5)),
    "power": (power, L.Power, (1.5, 3.0)),
    "logistic": (logistic, L.Logistic, (0.0, 1.5)),
}
same_as_built_in = pytest.mark.parametrize("name", SAME)
both_directions = pytest.mark.parametrize("increasing", [True, False])


# A Python function


@same_as_built_in
@both_directions
def test_a_python_derivative_gives_the_fit_of_the_built_in_loss(name, increasing):
    function, kind, parameters = SAME[name]
    for seed in range(4):
        for n in (1, 7, 40):
            rng, x, y, w = rows_of(name, seed, n)
            for p in (*parameters, rng.choice(parameters, n)):
                options = {"sample_weight": w, "increasing": increasing}
                found = sf.fit(x, y, loss=Custom(function, (p,)), **options)
                # a power of 3 is flat around its root: sums of squares tell it to half as many digits
                size = 1e4 if name == "power" and np.max(p) > 2 else max(1.0, np.abs(y).max())
                assert_close_staircase(found, sf.fit(x, y, loss=kind(p), **options), size)


@both_directions
def test_a_finite_domain_holds_values_and_its_ends_are_exact(increasing):
    rng = np.random.default_rng(0)
    for n in (1, 5, 40):
        x, w = rng.integers(0, n, n), rng.integers(1, 4, n)
        for y in (rng.integers(0, 2, n).astype(float), rng.integers(0, 5, n) / 4):
            if y.min() == y.max():
                continue
            options = {"sample_weight": w, "increasing": increasing}
            found = sf.fit(x, y, loss=Custom(log_loss, domain=(0, 1)), **options)
            wanted = sf.fit(x, y, loss="log", **options)
            assert np.abs(found(x) - wanted(x)).max() <= 16 * EPS
            assert_same_bits(found(x)[wanted(x) == 0], wanted(x)[wanted(x) == 0])
            assert_same_bits(found(x)[wanted(x) == 1], wanted(x)[wanted(x) == 1])


def test_a_domain_that_ends_on_one_side_holds_values():
    rng = np.random.default_rng(1)
    for n in (1, 5, 40):
        x, y, e = rng.integers(0, n, n), rng.integers(0, 4, n).astype(float), rng.integers(1, 9, n) / 4
        found = sf.fit(x, y, loss=Custom(poisson, (e,), domain=(0, inf)))
        wanted = sf.fit(x, y, loss=L.PoissonDeviance(e))
        assert (np.abs(found(x) - wanted(x)) <= 16 * EPS * np.maximum(1, wanted(x))).all()
        assert (found(x) == 0).tolist() == (wanted(x) == 0).tolist()
        y = rng.normal(size=n)
        y[0] = -1.0
        below = sf.fit(x, y, loss=Custom(squared, domain=(-inf, 0.25)))
        assert np.abs(below(x) - sf.fit(x, y, bounds=(None, 0.25))(x)).max() <= 32 * EPS
        assert below.values.max() <= 0.25


def test_targets_may_lie_outside_the_domain():
    found = sf.fit([1, 2, 3], [-5.0, 7.0, 8.0], loss=Custom(difference, domain=(0, 1)))
    assert found.values.tolist() == [0.0, 1.0]


@pytest.mark.parametrize("run", [sf.fit, lambda *args, **options: sf.Anytime(*args, **options).staircase()])
@pytest.mark.parametrize(
    ("function", "targets", "value"),
    [
        (difference, [5.0, 7.0, 6.0], 1.0),
        (difference, [-5.0, -7.0, -6.0], 0.0),
        (log_loss, [1.0, 1.0, 1.0], 1.0),
        (log_loss, [0.0, 0.0, 0.0], 0.0),
    ],
)
def test_targets_may_all_lie_beyond_one_end_of_the_domain(run, function, targets, value):
    assert run([1, 2, 3], targets, loss=Custom(function, domain=(0, 1))).values.tolist() == [value]


@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(-8, 8), st.integers(0, 3)), min_size=1, max_size=14),
    st.booleans(),
)
@settings(max_examples=50)
def test_a_custom_square_has_the_exact_means(rows, increasing):
    x, y, w = ([float(entry) for entry in column] for column in zip(*rows, strict=True))
    if not any(w):
        return
    stairs = sf.fit(x, y, sample_weight=w, loss=Custom(squared), increasing=increasing)
    present = [score for score, weight in zip(x, w, strict=True) if weight]
    for step in exact_steps(x, y, w, increasing=increasing):
        for score in present:
            if step.left <= score <= step.right:
                assert abs(stairs(score) - float(step.value)) <= 64 * EPS


def test_rounding_does_not_turn_steps_round():
    x, y = [3, 2, 2, 5, 5, 4], [2.0, -2.0, 4.0, 3.0, -3.0, -4.0]
    stairs = sf.fit(x, y, loss=Custom(log_cosh, (1.0,)))
    assert np.abs(stairs.values).max() < 1e-13
    assert (np.diff(stairs.values) > 0).all()


@pytest.mark.parametrize(
    ("function", "x", "y"),
    [
        (lambda z, y: np.where(z > y, 0.2, 0.8) * (z - y), [1, 0, 2], [-2.0, -2.0, 0.0]),
        (difference, [0, 1, 1], [0.0, -4.0, 4.0]),
    ],
)
def test_certify_accepts_values_next_to_zero(function, x, y):
    assert sf.certify(sf.fit(x, y, loss=Custom(function)), x, y).optimal


def test_targets_that_all_are_zero_are_no_reason_to_ask_far_away():
    asked = []

    def cubic(z, y):
        asked.extend(z)
        return np.clip(z - y, -1e99, 1e99) ** 3

    assert sf.fit([1], [0.0], loss=Custom(cubic)).values == pytest.approx([0], abs=1e-90)
    assert np.abs(asked).max() < 1e99


class Recorder:
    """A derivative that notes what it is asked."""

    def __init__(self, function=difference):
        self.function, self.calls = function, []

    def __call__(self, z, y, *args):
        self.calls.append((z.copy(), y.copy(), *args))
        return self.function(z, y)


def test_the_function_is_called_once_per_round_with_all_open_samples(monkeypatch):
    open_rows, cut_all = [], rounds.Rounds.cut_all

    def noting(self, **options):
        open_rows.append(int((self.open["end"] - self.open["start"]).sum()))
        return cut_all(self, **options)

    monkeypatch.setattr(rounds.Rounds, "cut_all", noting)
    rng = np.random.default_rng(2)
    n = 500
    told = Recorder(lambda z, y: np.tanh(z - y))
    sf.fit(rng.permutation(n), rng.normal(size=n), loss=Custom(told))
    sizes = [len(z) for z, _ in told.calls]
    ends = len(sizes) - len(open_rows)  # how far to go is asked of all samples, before the first round
    assert 2 <= ends <= 8
    assert sizes[:ends] == [2 * n] * ends  # at the cut, and nearby
    assert sizes[ends:] == [2 * rows for rows in open_rows]
    assert len(open_rows) < 60
    for z, y in told.calls:
        assert z.dtype == y.dtype == np.float64
        assert z.shape == y.shape == (len(z),)


def test_max_rounds_limits_calls():
    rng = np.random.default_rng(3)
    for limit in (0, 1, 5):
        told = Recorder()
        sf.fit(np.arange(99), rng.normal(size=99), loss=Custom(told), max_rounds=limit)
        assert len(told.calls) <= 8 + limit


@both_directions
def test_array_args_are_cut_to_the_samples_of_each_call_and_scalars_passed_on(increasing):
    rng = np.random.default_rng(4)
    n = 80
    token = object()
    seen = []

    def function(z, y, twice, number, ids, given, text):
        assert len(z) == len(y) == len(twice) == len(ids)
        np.testing.assert_array_equal(twice, 2 * y)
        np.testing.assert_array_equal(targets[ids], y)
        assert number == 7
        assert given is token
        assert text == "abc"
        assert ids.dtype == np.int64
        seen.append(len(ids))
        return np.tanh(z - y)

    for x in (np.arange(n), np.arange(n)[::-1], rng.permutation(n), rng.integers(0, 20, n)):
        targets = rng.normal(size=n)
        w = np.append(rng.integers(0, 3, n - 1), 1)
        loss = Custom(function, ((2 * targets).tolist(), 7, np.arange(n), token, "abc"))
        found = sf.fit(x, targets, sample_weight=w, loss=loss, increasing=increasing)
        assert_close_staircase(
            found, sf.fit(x, targets, sample_weight=w, loss="log_cosh", increasing=increasing), np.abs(targets).max()
        )
        assert max(seen) == 2 * (w > 0).sum()
        seen.clear()


def test_the_order_of_rows_does_not_matter():
    rng = np.random.default_rng(5)
    x, y, w, p = rng.integers(0, 20, 60), rng.normal(size=60), rng.integers(1, 4, 60), rng.choice([0.5, 1.0], 60)
    whole = sf.fit(x, y, sample_weight=w, loss=Custom(log_cosh, (p,)))
    for _ in range(5):
        k = rng.permutation(60)
        again = sf.fit(x[k], y[k], sample_weight=w[k], loss=Custom(log_cosh, (p[k],)))
        for column in ("left", "right", "values", "lower", "upper", "counts", "weights"):
            assert_same_bits(getattr(again, column), getattr(whole, column))


def test_what_the_function_does_to_its_arguments_does_not_reach_the_callers_arrays():
    def spoiling(z, y, p):
        slope = p * (z - y)
        y[:] = np.nan
        p[:] = np.nan
        return slope

    x, y, p = np.arange(30.0), np.random.default_rng(6).normal(size=30), np.ones(30)
    before = y.copy()
    found = sf.fit(x, y, loss=Custom(spoiling, (p,)))
    assert_same_bits(y, before)
    assert_same_bits(p, np.ones(30))
    assert np.abs(found(x) - sf.fit(x, y)(x)).max() <= 16 * EPS * 3


def test_the_function_may_return_lists_integers_or_one_array_again_and_again():
    x, y = [1, 2, 3, 4], [0.0, 3.0, 1.0, 5.0]
    room = np.empty(8)

    def again(z, y):
        return np.subtract(z, y, out=room[: len(z)])

    for function in (again, lambda z, y: (z - y).tolist()):
        assert sf.fit(x, y, loss=Custom(function)).values == pytest.approx([0, 2, 5], abs=1e-12)
    one, two, three = sf.fit(x, y, loss=Custom(lambda z, y: np.sign(z - y).astype(np.int8))).values
    assert (one, three) == pytest.approx((0, 5), abs=1e-12)
    assert 1 <= two <= 3  # any median


@both_directions
def test_a_derivative_that_is_flat_gives_a_monotone_optimum(increasing):
    y = np.array([0.0, 0.5, -2.5, 3.0])
    x = np.arange(4) if increasing else -np.arange(4)
    found = sf.fit(x, y, loss=Custom(huber, (0.25,)), increasing=increasing)
    assert found(x) == pytest.approx([0, 0.125, 0.125, 3])
    assert sf.certify(found, x, y).optimal


WRONG_NUMBER = "of_rows(slice) forgets numbers: sorted rows of a falling fit are counted from the end"


# Infinite minimisers


INFINITE = [0.0, 1.0, 0.0, 1.0]


@pytest.mark.parametrize("bounds", [(-inf, inf), (-3, 3), (-inf, 3)])
def test_infinite_minimisers_raise_no_warning(bounds):
    stairs = sf.fit([1, 2, 3, 4], INFINITE, loss=Custom(saturating), bounds=bounds)
    assert stairs.values == pytest.approx([bounds[0], 0.0, bounds[1]], abs=1e-15)


@pytest.mark.filterwarnings("ignore:overflow encountered in subtract")
@pytest.mark.parametrize("make", [Custom, lambda f: Custom(DOUBLES(f))])
def test_infinite_values_only_come_where_bounds_ask_for_them(make):
    loss = make(saturating if make is Custom else lambda z, y: math.tanh(z) - (2 * y - 1))
    x = [1, 2, 3, 4]
    for bounds, low, high in (((-inf, inf), -inf, inf), ((-3, 3), -3, 3), ((-inf, 3), -inf, 3), ((-3, inf), -3, inf)):
        rising = sf.fit(x, INFINITE, loss=loss, bounds=bounds)
        assert rising.values == pytest.approx([low, 0.0, high], abs=1e-15)
        falling = sf.fit(x, INFINITE[::-1], loss=loss, bounds=bounds, increasing=False)
        assert falling.values == pytest.approx([high, 0.0, low], abs=1e-15)
    for bounds, step, value in ((None, 0, "-inf"), ((None, 3), 0, "-inf"), ((-inf, None), 2, "inf")):
        with pytest.raises(ValueError, match=f"step {step} would be {value}"):
            sf.fit(x, INFINITE, loss=loss, bounds=bounds)
    with pytest.raises(ValueError, match="step 2 would be -inf"):
        sf.fit(x, INFINITE[::-1], loss=loss, increasing=False)


def test_the_logistic_loss_by_its_derivative_has_infinite_log_odds():
    x, y = [1, 2, 3, 4, 5], [0.0, 1.0, 0.0, 0.0, 1.0]
    wanted = sf.fit(x, y, loss="logistic", bounds=(-inf, inf))
    with np.errstate(all="ignore"):
        found = sf.fit(x, y, loss=Custom(logistic, (0.0,)), bounds=(-inf, inf))
    assert found.values == pytest.approx(wanted.values, rel=1e-15, abs=0)


# What a Custom loss is besides


def test_parts_of_a_custom_loss_are_judged_when_it_is_made():
    for function, told in ((3, "got 3"), (None, "got None"), ("tanh", "got 'tanh'")):
        with pytest.raises(TypeError, match=f"`derivative` must be a Python function .*; {told}"):
            Custom(function)
    for args in (3.0, [1.0], None):
        with pytest.raises(TypeError, match="`args` must be a tuple"):
            Custom(difference, args)
    with pytest.raises(ValueError, match=r"entry 1 has 2 dimensions"):
        Custom(difference, (1.0, np.ones((2, 2))))
    for domain in (None, 1.0, (0,), (0, 1, 2), ("a", 1), (None, 1)):
        with pytest.raises(TypeError, match=r"`domain` must be a pair \(low, high\) of numbers"):
            Custom(difference, domain=domain)
    for domain in ((1, 1), (1, 0), (math.nan, 1), (0, math.nan)):
        with pytest.raises(ValueError, match="`domain` must be a pair with low < high"):
            Custom(difference, domain=domain)


@pytest.mark.parametrize("length", [0, 1, 3, 5])
def test_args_of_a_wrong_length_are_refused(length):
    x, y = [1, 2, 3, 4], [0.0, 3.0, 1.0, 5.0]
    loss = Custom(squared, (np.ones(length),))
    told = f"entry 0 has {length} for 4 rows"
    for run in (sf.fit, sf.Anytime):
        with pytest.raises(ValueError, match=told):
            run(x, y, loss=loss)
    with pytest.raises(ValueError, match=told):
        sf.isotonic_regression(y, loss=loss)
    with pytest.raises(ValueError, match=told):
        sf.certify(sf.fit(x, y), x, y, loss=loss)


def test_custom_losses_are_equal_if_function_args_and_domain_are():
    a = Custom(squared, (np.ones(3), 2), (0, 9))
    assert a == Custom(squared, ([1, 1, 1], 2.0), (0.0, 9.0))
    assert hash(a) == hash(Custom(squared, ([1, 1, 1], 2.0), (0.0, 9.0)))
    for other in (
        Custom(difference, a.args, (0, 9)),
        Custom(squared, (np.ones(4), 2), (0, 9)),
        Custom(squared, (np.ones(3), 3), (0, 9)),
        Custom(squared, (np.ones(3),), (0, 9)),
        Custom(squared, a.args, (0, 8)),
        Custom(squared),
        L.SquaredError(),
        "custom",
    ):
        assert a != other
    assert repr(Custom(squared)) == "Custom(squared)"
    assert "object at" in repr(Custom(plain))


def test_custom_losses_and_their_staircases_are_copied_and_pickled():
    loss = Custom(log_cosh, (np.array([1.0, 0.5, 1.0]),), (-9, 9))
    stairs = sf.fit([1, 2, 3], [0.0, 4.0, 2.0], loss=loss)
    assert stairs.loss is loss
    for remade in (pickle.loads(pickle.dumps(stairs)), copy.copy(stairs), copy.deepcopy(stairs)):
        assert remade.loss == loss
        assert_same_staircase(remade, stairs)
    assert pickle.loads(pickle.dumps(loss)) == loss


@pytest.mark.parametrize("loss", [Custom(difference), Custom(plain), UpdateRule(lambda a, v, b, w: ((a + b) / 2, v))])
def test_a_staircase_of_ones_own_loss_is_saved_without_its_function(loss):
    stairs = sf.fit([1, 2, 3], [0.0, 4.0, 2.0], loss=loss)
    read = sf.Staircase.from_json(stairs.to_json())
    assert read.values.tolist() == stairs.values.tolist()
    assert read.loss.name == loss.name
    with pytest.raises(ValueError, match="was not saved with the staircase"):
        sf.fit([1, 2], [1.0, 0.0], loss=read.loss)


@pytest.mark.parametrize("loss", [Custom(difference), Custom(plain)])
def test_auto_finds_the_direction_or_says_that_it_cannot(loss):
    rising = [0.0, 1.0, 3.0, 5.0]
    for k, falls in itertools.product(range(8), (False, True)):  # many, for memory may hold the right numbers by chance
        targets = [(-1 if falls else 1) * target + k for target in rising]
        try:
            stairs = sf.fit([1, 2, 3, 4], targets, loss=loss, increasing="auto")
        except (TypeError, ValueError) as error:
            assert "increasing" in str(error) or "auto" in str(error)  # noqa: PT017
        else:
            assert stairs.increasing != falls


def test_the_value_of_a_custom_loss_is_not_known_but_its_derivative_is():
    with pytest.raises(TypeError, match="only its derivative"):
        Custom(difference).value(1.0, 2.0)
    for loss in (Custom(difference), Custom(DOUBLES(lambda z, y: z - y))):
        assert loss.derivative(1.0, 3.0) == -2.0
        assert loss.derivative([1.0, 2.0], 3.0).tolist() == [-2.0, -1.0]
        assert loss.derivative([[1.0], [2.0]], [3.0, 4.0]).tolist() == [[-2.0, -3.0], [-1.0, -2.0]]
    assert Custom(squared, (4.0,)).derivative(1.0, 3.0) == -8.0
    with pytest.raises(ValueError, match=r"`z` must be in \[0, 1\] for custom"):
        Custom(difference, domain=(0, 1)).derivative(2.0, 0.5)


@same_as_built_in
@both_directions
def test_isotonic_regression_takes_a_custom_loss(name, increasing):
    function, kind, parameters = SAME[name]
    for n in (1, 2, 40):
        rng, _, y, w = rows_of(name, 1, n)
        p = rng.choice(parameters[:1], n)
        found = sf.isotonic_regression(y, weights=w, loss=Custom(function, (p,)), increasing=increasing)
        wanted = sf.isotonic_regression(y, weights=w, loss=kind(p), increasing=increasing)
        assert found.blocks.tolist() == wanted.blocks.tolist()
        assert found.weights.tolist() == wanted.weights.tolist()
        assert np.abs(found.x - wanted.x).max() <= 32 * EPS * max(1, np.abs(wanted.x).max())


@same_as_built_in
@both_directions
def test_certify_accepts_fits_of_custom_losses_and_refuses_others(name, increasing):
    function, _, parameters = SAME[name]
    for seed in range(6):
        rng, x, y, w = rows_of(name, seed, 40)
        loss = Custom(function, (rng.choice(parameters[:1], 40),))
        stairs = sf.fit(x, y, sample_weight=w, loss=loss, increasing=increasing)
        assert sf.certify(stairs, x, y, sample_weight=w).optimal
        level = sf.Staircase([x.min()], [x.max()], [2.0], [1.0], [1], increasing=increasing, loss=loss)
        assert not sf.certify(level, x, y, sample_weight=w).optimal
        if len(stairs.values) > 1:
            moved = sf.Staircase(
                stairs.left, stairs.right, stairs.values * 1.01 + 0.01, stairs.weights, stairs.counts,
                increasing=increasing, loss=loss,
            )  # fmt: skip
            assert not sf.certify(moved, x, y, sample_weight=w).optimal
