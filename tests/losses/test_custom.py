"""Losses of the user's own: `Custom` by a derivative, in Python or compiled, and `UpdateRule` by how blocks merge."""

import copy
import ctypes
import functools
import itertools
import math
import pickle
import sys
import types

import numpy as np
import pytest
import scipy
from comparing import assert_same_bits, assert_same_staircase
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import exact_steps

import staircase_fast as sf
from staircase_fast.bisection import rounds
from staircase_fast.bisection.samples import samples_of
from staircase_fast.bisection.solve import runs_in_domain
from staircase_fast.inputs.rows import read_columns
from staircase_fast.losses.rows import check_rows_and_parameters

L = sf.losses
Custom, UpdateRule = L.Custom, L.UpdateRule
inf = math.inf
EPS = 2.0**-52


# Derivatives as a user would write them


def difference(z, y):
    return z - y


def squared(z, y, factor=2.0):
    return factor * (z - y)


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


def rows_of(name, seed, n):
    """Scores with ties, targets, weights with zeros."""
    rng = np.random.default_rng([seed, *name.encode()])
    x = rng.integers(0, n // 2 + 1, n).astype(float) if seed % 2 else rng.permutation(n).astype(float)
    y = rng.uniform(0.05, 0.95, n) if name == "logistic" else rng.normal(size=n)
    w = np.append(rng.integers(0, 3, n - 1), 2.0) if seed % 3 else None
    return rng, x, y, w


def assert_close_staircase(found, wanted, size=1.0):
    for column in ("left", "right", "counts", "weights"):
        np.testing.assert_array_equal(getattr(found, column), getattr(wanted, column), err_msg=column)
    assert (np.abs(found.values - wanted.values) <= 16 * EPS * np.maximum(size, np.abs(wanted.values))).all()
    assert (found.lower <= found.values).all()
    assert (found.values <= found.upper).all()


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


@both_directions
def test_exceptions_of_the_function_reach_the_caller_as_they_are(increasing):
    class MyError(Exception):
        pass

    for after in range(6):
        raised = MyError("mine")
        calls = []

        def function(z, y, calls=calls, after=after, raised=raised):
            calls.append(1)
            if len(calls) > after:
                raise raised
            return (z - y) + np.tanh(z - y)

        y = np.random.default_rng(7).normal(size=50)
        with pytest.raises(MyError) as caught:
            sf.fit(np.arange(50), y, loss=Custom(function), increasing=increasing)
        assert caught.value is raised
    interrupt = KeyboardInterrupt()

    def stopped(z, y):
        raise interrupt

    for run in (sf.fit, sf.Anytime):
        with pytest.raises(KeyboardInterrupt) as caught:
            run([1, 2], [3.0, 4.0], loss=Custom(stopped))
        assert caught.value is interrupt
    with pytest.raises(KeyboardInterrupt):
        sf.isotonic_regression([3.0, 4.0], loss=Custom(stopped))


@pytest.mark.parametrize(
    ("function", "told"),
    [
        (lambda z, y: 1.0, r"shape \(8,\); got float64 of shape \(\)"),
        (lambda z, y: (z - y)[:-1], r"shape \(8,\); got float64 of shape \(7,\)"),
        (lambda z, y: (z - y)[:, None], r"shape \(8,\); got float64 of shape \(8, 1\)"),
        (lambda z, y: None, r"got object of shape \(\)"),
        (lambda z, y: (z - y) * 1j, "got complex128"),
        (lambda z, y: (z - y).astype(object), "got object"),
        (lambda z, y: (z - y).astype(str), "got <U"),
    ],
)
def test_a_wrong_shape_or_type_is_refused(function, told):
    with pytest.raises(ValueError, match=r"`derivative` must return one real number for each entry of z.*" + told):
        sf.fit([1, 2, 3, 4], [0.0, 3.0, 1.0, 5.0], loss=Custom(function))


def bad_rows():
    """Ways in which sample 5 of 8 can lie among others."""
    y = np.array([0.0, 1.0, 2.0, 0.5, 4.0, 3.0, 5.0, 2.5])
    rising = np.arange(8.0)
    yield "sorted", rising, y, None
    yield "falling", rising[::-1].copy(), y, None
    yield "unsorted", np.array([3.0, 7, 1, 0, 2, 5, 4, 6]), y, None
    yield "tied", np.array([0.0, 0, 1, 1, 2, 2, 2, 3]), y, None
    yield "unsorted, tied", np.array([3.0, 1, 3, 1, 2, 3, 2, 3]), y, None
    yield "sorted, some absent", rising, y, np.array([0.0, 1, 0, 1, 1, 2, 0, 1])
    yield "unsorted, some absent", np.array([3.0, 1, 3, 1, 2, 3, 2, 3]), y, np.array([0.0, 1, 0, 1, 1, 2, 0, 1])


BAD_ROWS = {name: rest for name, *rest in bad_rows()}
WRONG_NUMBER = "of_rows(slice) forgets numbers: sorted rows of a falling fit are counted from the end"


def places():
    for name in BAD_ROWS:
        for increasing in (True, False):
            yield name, increasing


at_each_place = pytest.mark.parametrize(("name", "increasing"), list(places()))


def nan_at_three(z, y):
    return np.where(y == 3.0, np.nan, z - y)


def falling_at_three(z, y):
    return np.where(y == 3.0, -1.0, 1.0) * (z - y)


@at_each_place
@pytest.mark.parametrize("run", [sf.fit, sf.Anytime])
def test_nan_is_refused_and_names_the_sample_as_the_user_counts(name, increasing, run):
    x, y, w = BAD_ROWS[name]
    with pytest.raises(ValueError, match=r"`derivative` must not be NaN; got nan for sample 5 at z = "):
        run(x, y, sample_weight=w, loss=Custom(nan_at_three), increasing=increasing)


@at_each_place
def test_nan_of_a_compiled_function_names_the_sample_as_well(name, increasing):
    x, y, w = BAD_ROWS[name]
    function = DOUBLES(lambda z, y: math.nan if y == 3.0 else z - y)
    with pytest.raises(ValueError, match=r"`derivative` must not be NaN; got nan for sample 5 at z = "):
        sf.fit(x, y, sample_weight=w, loss=Custom(function), increasing=increasing)


@at_each_place
def test_a_decreasing_derivative_names_the_sample(name, increasing):
    x, y, w = BAD_ROWS[name]
    with pytest.raises(ValueError, match=r"it decreases for sample 5 at z = .* Pass the derivative of a convex loss"):
        sf.fit(x, y, sample_weight=w, loss=Custom(falling_at_three), increasing=increasing)


@pytest.mark.parametrize("increasing", [True, False])
def test_isotonic_regression_names_the_sample(increasing):
    y = BAD_ROWS["sorted"][1]
    with pytest.raises(ValueError, match="for sample 5"):
        sf.isotonic_regression(y, loss=Custom(nan_at_three), increasing=increasing)


@both_directions
def test_certify_names_the_sample(increasing):
    for x, y, w in BAD_ROWS.values():
        stairs = sf.fit(x, y, sample_weight=w, increasing=increasing)
        with pytest.raises(ValueError, match="for sample 5"):
            sf.certify(stairs, x, y, sample_weight=w, loss=Custom(nan_at_three))


@pytest.mark.parametrize("after", range(8))
def test_nan_in_a_later_round_names_the_sample(after):
    x, y = BAD_ROWS["unsorted"][:2]
    calls = []

    def later(z, y):
        calls.append(1)
        return np.where((y == 3.0) & (len(calls) > after), np.nan, np.tanh(z - y))

    with pytest.raises(ValueError, match="for sample 5"):
        sf.fit(x, y, loss=Custom(later))


def test_rows_that_are_absent_are_not_asked_about():
    x, y, w = [1, 2, 3, 4], [0.0, 3.0, 1.0, 5.0], [1, 0, 1, 1]
    found = sf.fit(x, y, sample_weight=w, loss=Custom(nan_at_three))
    assert found.values == pytest.approx([0, 1, 5], abs=1e-12)


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


# Compiled functions

DOUBLES = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double, ctypes.c_double)
WITH_DATA = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double, ctypes.c_double, ctypes.c_void_p)
PLAIN_NAME, DATA_NAME = b"double (double, double)", b"double (double, double, void *)"


def capsule(function, name, context=None):
    new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
    made = new(("PyCapsule_New", ctypes.pythonapi))(ctypes.cast(function, ctypes.c_void_p).value, name, None)
    if context is not None:
        setter = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_void_p)
        setter(("PyCapsule_SetContext", ctypes.pythonapi))(made, context)
    return made


plain = DOUBLES(lambda z, y: math.tanh(z - y))
scaled = WITH_DATA(lambda z, y, data: (s := ctypes.cast(data, DOUBLE_POINTER)[0]) * math.tanh((z - y) / s))
DOUBLE_POINTER = ctypes.POINTER(ctypes.c_double)
SCALE = ctypes.c_double(0.5)
DATA = ctypes.cast(ctypes.pointer(SCALE), ctypes.c_void_p)


COMPILED = {
    "ctypes": (lambda: plain, 1.0),
    "capsule": (lambda: capsule(plain, PLAIN_NAME), 1.0),
    "capsule without blanks": (lambda: capsule(plain, b"double(double,double)"), 1.0),
    "capsule with context": (lambda: capsule(scaled, DATA_NAME, ctypes.addressof(SCALE)), 0.5),
    "LowLevelCallable": (lambda: scipy.LowLevelCallable(plain), 1.0),
    "LowLevelCallable with data": (lambda: scipy.LowLevelCallable(scaled, DATA), 0.5),
    "LowLevelCallable of a capsule": (lambda: scipy.LowLevelCallable(capsule(plain, PLAIN_NAME)), 1.0),
    "LowLevelCallable of a capsule with data": (lambda: scipy.LowLevelCallable(capsule(scaled, DATA_NAME), DATA), 0.5),
    "LowLevelCallable of a capsule with context": (
        lambda: scipy.LowLevelCallable(capsule(scaled, DATA_NAME, ctypes.addressof(SCALE))),
        0.5,
    ),
    "LowLevelCallable of a LowLevelCallable": (lambda: scipy.LowLevelCallable(scipy.LowLevelCallable(plain)), 1.0),
}


@pytest.mark.parametrize("kind", COMPILED)
@both_directions
def test_a_compiled_derivative_gives_the_fit_of_the_built_in_loss(kind, increasing):
    make, scale = COMPILED[kind]
    for seed in range(3):
        for n in (1, 30):
            _, x, y, w = rows_of("log_cosh", seed, n)
            options = {"sample_weight": w, "increasing": increasing}
            found = sf.fit(x, y, loss=Custom(make()), **options)
            wanted = sf.fit(x, y, loss=L.LogCosh(scale), **options)
            assert_close_staircase(found, wanted, max(1.0, np.abs(y).max()))


def test_a_function_that_takes_data_gets_null_without_any():
    told = []
    function = WITH_DATA(lambda z, y, data: told.append(data) or z - y)
    assert sf.fit([1, 2], [1.0, 0.0], loss=Custom(function)).values.tolist() == [0.5]
    assert set(told) == {None}


def test_what_is_compiled_stays_alive_as_long_as_the_loss():
    loss = Custom(DOUBLES(lambda z, y: z - y))
    junk = [DOUBLES(lambda z, y: math.nan) for _ in range(100)]
    assert len(junk) == 100
    assert sf.fit([1, 2], [1.0, 0.0], loss=loss).values.tolist() == [0.5]


def test_a_numba_cfunc_is_a_compiled_derivative():
    numba = pytest.importorskip("numba")

    @numba.cfunc("float64(float64, float64)")
    def derivative(z, y):
        return math.tanh(z - y)

    y = np.random.default_rng(8).normal(size=200)
    assert_close_staircase(
        sf.fit(np.arange(200), y, loss=Custom(derivative)), sf.fit(np.arange(200), y, loss="log_cosh"), 4.0
    )


def test_a_numba_cfunc_may_take_data_and_other_ones_are_refused():
    numba = pytest.importorskip("numba")
    with_data = numba.cfunc("float64(float64, float64, voidptr)")(lambda z, y, data: z - y)
    assert sf.fit([1, 2], [1.0, 0.0], loss=Custom(with_data)).values.tolist() == [0.5]
    for signature in ("float32(float64, float64)", "complex128(float64, float64)", "float64(float64, float64, int64)"):
        n_arguments = signature.count(",") + 1
        other = numba.cfunc(signature)((lambda z, y: z) if n_arguments == 2 else (lambda z, y, k: z))
        with pytest.raises(ValueError, match="`derivative` must be of the type"):
            Custom(other)


def test_a_cfunc_is_recognised_by_its_class(monkeypatch):
    """Without numba, a class in its place."""

    class CFunc:
        def __init__(self, function):
            self.function = function

        @property
        def ctypes(self):
            if self.function is None:
                raise TypeError("Cannot convert Numba type")
            return self.function

    with pytest.raises(TypeError, match="`derivative` must be a Python function"):
        Custom(CFunc(plain))
    monkeypatch.setitem(sys.modules, "numba.core.ccallback", types.SimpleNamespace(CFunc=CFunc))
    y = np.random.default_rng(8).normal(size=200)
    found, wanted = (sf.fit(np.arange(200), y, loss=Custom(function)) for function in (CFunc(plain), plain))
    assert_same_bits(found.values, wanted.values)
    with pytest.raises(ValueError, match="Cannot convert Numba type"):
        Custom(CFunc(None))
    with pytest.raises(TypeError, match="got a NULL pointer"):
        Custom(CFunc(DOUBLES()))


class WithAddress:
    """An object with the attributes of a numba.cfunc, which anybody can make."""

    def __init__(self, function):
        self.address = ctypes.cast(function, ctypes.c_void_p).value
        self.ctypes = function


class Tuple(tuple):
    """A tuple with the attributes of a scipy.LowLevelCallable."""

    function, user_data = DOUBLES(lambda z, y: z - y), None


@pytest.mark.parametrize(
    "make",
    [
        lambda: 12345,
        lambda: np.int64(12345),
        lambda: ctypes.cast(plain, ctypes.c_void_p).value,
        lambda: ctypes.cast(plain, ctypes.c_void_p),
        DOUBLES,
        lambda: DOUBLES(0),
        WITH_DATA,
        lambda: types.SimpleNamespace(address=12345),
        lambda: WithAddress(plain),
        Tuple,
        lambda: tuple.__new__(scipy.LowLevelCallable, (12345, plain, None)),
        type("PyCapsule", (), {}),
    ],
)
def test_what_is_not_known_to_be_a_function_is_refused(make):
    with pytest.raises(TypeError, match=r"`derivative` must be a Python function of arrays or a compiled .*; got"):
        Custom(make())


@pytest.mark.parametrize("signature", ["double (double)", "double (double, double, void *)", "what"])
def test_a_low_level_callable_whose_signature_is_not_that_of_its_function_is_refused(signature):
    with pytest.raises(ValueError, match="`derivative` must be of the type"):
        Custom(scipy.LowLevelCallable(plain, signature=signature))


@pytest.mark.parametrize(
    "make",
    [
        lambda: ctypes.PYFUNCTYPE(*[ctypes.c_double] * 3)(lambda z, y: z),
        lambda: ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double, ctypes.c_double.__ctype_be__)(lambda z, y: z),
        lambda: ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(lambda z: z),
        lambda: ctypes.CFUNCTYPE(ctypes.c_float, ctypes.c_double, ctypes.c_double)(lambda z, y: z),
        lambda: ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_float, ctypes.c_double)(lambda z, y: z),
        lambda: ctypes.CFUNCTYPE(*[ctypes.c_double] * 4)(lambda z, y, p: z),
        lambda: ctypes.CFUNCTYPE(*[ctypes.c_double] * 3, ctypes.c_void_p, ctypes.c_void_p)(lambda z, y, p, q: z),
        lambda: ctypes.CFUNCTYPE(None, ctypes.c_double, ctypes.c_double)(lambda z, y: None),
        lambda: ctypes.pythonapi.Py_IncRef,
        lambda: capsule(plain, b"double (double)"),
        lambda: capsule(plain, b"float (double, double)"),
        lambda: capsule(plain, b""),
        lambda: capsule(plain, None),
        lambda: scipy.LowLevelCallable(capsule(plain, b"double (double)")),
        lambda: scipy.LowLevelCallable(ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(lambda z: z)),
    ],
)
def test_compiled_functions_of_other_types_are_refused(make):
    with pytest.raises(
        ValueError, match=r"must be of the type double\(double,double\) or double\(double,double,void\*\), .*; got"
    ):
        Custom(make())


def test_a_compiled_derivative_that_decreases_is_refused():
    y = np.array([0.0, 1.0, 2.0, 3.0])
    falling = DOUBLES(lambda z, y: (y - z) if y == 2.0 else z - y)
    with pytest.raises(ValueError, match="must not decrease as z increases; it decreases for sample 2"):
        sf.fit(np.arange(4), y, loss=Custom(falling))


@pytest.mark.parametrize(
    ("function", "z"),
    [
        (lambda z, y: (z - y) / (1 + (z - y) ** 2), "-6.0"),  # decreases where rows lie far above the first bound
        (lambda z, y: 1.0 if z < 0.5 else -1.0, "10.0"),  # decreases only between the first bounds
        (lambda z, y: math.nan if z < -6 and y == 2.0 else z - y, "-6.0000"),  # NaN at the second point only
        (lambda z, y: math.sin(1e9 * z) + z - y, "-6.0"),  # oscillates
    ],
)
@both_directions
def test_the_first_bounds_check_a_compiled_derivative(function, z, increasing):
    y = np.append([-6.0, 2.0, 10.0], np.linspace(-6.0, 10.0, 100))
    with pytest.raises(ValueError, match=r"`derivative` must not .* for sample \d+ at z = " + z):
        sf.fit(np.arange(len(y)), y, loss=Custom(DOUBLES(function)), increasing=increasing)


@both_directions
def test_the_first_bounds_of_a_compiled_derivative_are_those_of_a_python_one(increasing):
    rng = np.random.default_rng(3)
    for n, shift in itertools.product((1, 2, 40, 700), (0.0, 0.5, 30.0, -30.0)):
        y, w = rng.normal(size=n), rng.random(n) + 0.1
        for x, weights in itertools.product((np.arange(n), rng.integers(0, 9, n)), (None, w)):
            rows = check_rows_and_parameters(*read_columns(x, y, weights), L.SquaredError())[0]
            samples = samples_of(rows, L.SquaredError())[0]
            samples = samples if increasing else samples.reversed()
            function = functools.partial(lambda shift, z, y: z - y + shift, shift)
            runs = [runs_in_domain(samples, Custom(one))[0] for one in (function, DOUBLES(function))]
            for field in ("start", "end", "lo", "hi", "cut", "untested"):
                assert runs[0][field] == runs[1][field]


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


def test_the_hash_of_a_compiled_loss_is_a_number():
    assert isinstance(hash(Custom(scipy.LowLevelCallable(plain))), int)


def test_a_loss_of_each_compiled_kind_equals_itself():
    for make, _ in COMPILED.values():
        function = make()
        assert Custom(function) == Custom(function)
        assert Custom(function) != Custom(difference)
        assert repr(Custom(function)).startswith("Custom(")


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


# Update rules


def mean(y1, w1, y2, w2):
    return (y1 * w1 + y2 * w2) / (w1 + w2), w1 + w2


def log_sum_exp(shape):
    """Linex of one shape: exp(-shape z) is the mean of exp(-shape y)."""

    def merge(y1, w1, y2, w2):
        return -np.log((w1 * np.exp(-shape * y1) + w2 * np.exp(-shape * y2)) / (w1 + w2)) / shape, w1 + w2

    return merge


@both_directions
def test_the_rule_of_means_is_the_squared_error(increasing):
    for seed in range(6):
        for n in (1, 2, 9, 80):
            _, x, y, w = rows_of("mean", seed, n)
            found = sf.fit(x, y, sample_weight=w, loss=UpdateRule(mean), increasing=increasing)
            wanted = sf.fit(x, y, sample_weight=w, increasing=increasing)
            assert_close_staircase(found, wanted, np.abs(y).max())


@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(-8, 8), st.integers(0, 3)), min_size=1, max_size=14),
    st.booleans(),
)
def test_the_rule_of_means_has_the_exact_steps(rows, increasing):
    """With sums for an auxiliary value nothing is rounded but the quotient."""
    x, y, w = ([float(entry) for entry in column] for column in zip(*rows, strict=True))
    if not any(w):
        return

    def merge(y1, sums1, y2, sums2):
        total, weight = sums1[0] + sums2[0], sums1[1] + sums2[1]
        return total / weight, (total, weight)

    rule = UpdateRule(merge, initial=lambda y, w: (y, (y * w, w)))
    found = sf.fit(x, y, sample_weight=w, loss=rule, increasing=increasing)
    wanted = sf.fit(x, y, sample_weight=w, increasing=increasing)
    for column in ("left", "right", "values", "weights", "counts"):
        assert_same_bits(getattr(found, column), getattr(wanted, column))


@pytest.mark.parametrize("shape", [1.0, -0.5, 3.0])
@both_directions
def test_the_rule_of_log_sum_exp_is_linex(shape, increasing):
    for seed in range(6):
        _, x, y, w = rows_of("linex", seed, 50)
        found = sf.fit(x, y, sample_weight=w, loss=UpdateRule(log_sum_exp(shape)), increasing=increasing)
        wanted = sf.fit(x, y, sample_weight=w, loss=L.Linex(shape), increasing=increasing)
        np.testing.assert_array_equal(found.left, wanted.left)
        assert found.values == pytest.approx(wanted.values, rel=1e-12, abs=1e-13)


def test_initial_says_what_a_single_sample_is():
    def geometric(y1, w1, y2, w2):
        return math.exp((w1 * math.log(y1) + w2 * math.log(y2)) / (w1 + w2)), w1 + w2

    given = []

    def initial(target, weight):
        given.append((target, weight))
        return math.exp(target), 2 * weight

    x, y, w = [3, 1, 2], [2.0, 4.0, 0.0], [1.0, 3.0, 1.0]
    stairs = sf.fit(x, y, sample_weight=w, loss=UpdateRule(geometric, initial))
    assert stairs.values == pytest.approx(np.exp(sf.fit(x, y, sample_weight=w).values), rel=1e-14, abs=0)
    assert given == [(4.0, 3.0), (0.0, 1.0), (2.0, 1.0)]
    given.clear()
    sf.fit(x, y, loss=UpdateRule(geometric, initial))
    assert given == [(4.0, 1.0), (0.0, 1.0), (2.0, 1.0)]


@both_directions
def test_the_left_block_comes_first_and_ties_are_joined_before_others(increasing):
    """Blocks as sets of samples; weights number these."""
    told = []

    def merge(y1, one, y2, two):
        told.append((y1, one, y2, two))
        total, weight = one[0] + two[0], one[1] + two[1]
        return total / weight, (total, weight, one[2] + two[2])

    rng = np.random.default_rng(9)
    for n in (2, 5, 30):
        x, y, w = np.sort(rng.integers(0, n // 2 + 1, n)), rng.integers(-5, 6, n).astype(float), np.arange(1.0, n + 1)
        rule = UpdateRule(merge, initial=lambda y, w: (y, (y * w, w, (int(w) - 1,))))
        sf.fit(x, y, sample_weight=w, loss=rule, increasing=increasing)
        for y1, one, y2, two in told:
            # a falling fit is a rising one of rows in the opposite order
            first, second = (x[list(block[2])] for block in ((one, two) if increasing else (two, one)))
            if len(set(first) | set(second)) == 1:
                continue  # samples of one score
            assert max(first) < min(second)
            assert y1 >= y2
            for block in (one, two):  # with all samples of their scores
                scores = x[list(block[2])]
                assert sorted(block[2]) == np.flatnonzero((x >= scores.min()) & (x <= scores.max())).tolist()
        told.clear()


def test_an_update_rule_must_be_a_function():
    for function in (None, 3, "mean"):
        with pytest.raises(TypeError, match="`merge` must be a function"):
            UpdateRule(function)
    for function in (3, "mean"):
        with pytest.raises(TypeError, match="`initial` must be a function"):
            UpdateRule(mean, function)


@pytest.mark.parametrize(
    ("returned", "kind", "told"),
    [
        (1.0, TypeError, "must return a pair"),
        (None, TypeError, "must return a pair"),
        ((1.0,), TypeError, "must return a pair"),
        ((1.0, 2.0, 3.0), TypeError, "must return a pair"),
        (("a", 2.0), TypeError, "must return a pair"),
        ((None, 2.0), TypeError, "must return a pair"),
        ((math.nan, 2.0), ValueError, "must return finite values; got nan"),
        ((inf, 2.0), ValueError, "must return finite values; got inf"),
        ((5.0, 2.0), ValueError, r"a value between those of its blocks, 0.0 and 4.0; got 5.0"),
        ((-0.1, 2.0), ValueError, r"a value between those of its blocks, 0.0 and 4.0; got -0.1"),
    ],
)
def test_what_a_rule_returns_is_judged(returned, kind, told):
    for x in ([1, 2], [1, 1]):
        with pytest.raises(kind, match=told):
            sf.fit(x, [4.0, 0.0], loss=UpdateRule(lambda *_: returned))
    if kind is TypeError or "finite" in told:
        with pytest.raises(kind, match=told):
            sf.fit([1, 2], [0.0, 4.0], loss=UpdateRule(mean, lambda *_: returned))


def test_exceptions_of_a_rule_reach_the_caller_as_they_are():
    raised = ZeroDivisionError("mine")

    def merge(*_):
        raise raised

    with pytest.raises(ZeroDivisionError) as caught:
        sf.fit([1, 2], [4.0, 0.0], loss=UpdateRule(merge))
    assert caught.value is raised


def test_a_rule_keeps_bounds():
    x, y = [1, 2, 3, 4], [-3.0, 1.0, 0.0, 9.0]
    assert sf.fit(x, y, loss=UpdateRule(mean), bounds=(-1, 2)).values.tolist() == [-1.0, 0.5, 2.0]


def test_rules_are_equal_if_their_functions_are():
    assert UpdateRule(mean) == UpdateRule(mean)
    assert hash(UpdateRule(mean)) == hash(UpdateRule(mean))
    assert UpdateRule(mean) != UpdateRule(mean, difference)
    assert UpdateRule(mean) != UpdateRule(difference)
    assert UpdateRule(mean) != Custom(mean)
    assert repr(UpdateRule(mean)) == "UpdateRule(mean)"
    assert pickle.loads(pickle.dumps(UpdateRule(mean))) == UpdateRule(mean)
    for ask in (UpdateRule(mean).value, UpdateRule(mean).derivative):
        with pytest.raises(TypeError, match="only its minimisers"):
            ask(1.0, 2.0)


def test_rules_have_no_certificate():
    stairs = sf.fit([1, 2], [1.0, 0.0], loss=UpdateRule(mean))
    with pytest.raises(TypeError, match="`loss` must have a derivative"):
        sf.certify(stairs, [1, 2], [1.0, 0.0])
    assert sf.certify(stairs, [1, 2], [1.0, 0.0], loss="squared").optimal


def test_isotonic_regression_takes_a_rule():
    assert sf.isotonic_regression([1.0, 0.0, 3.0], loss=UpdateRule(mean)).x.tolist() == [0.5, 0.5, 3.0]


def test_auto_is_refused_for_a_rule():
    with pytest.raises((TypeError, ValueError), match=r"increasing|auto"):
        sf.fit([1, 2, 3], [3.0, 2.0, 1.0], loss=UpdateRule(mean), increasing="auto")


def test_a_compiled_derivative_that_is_nan_only_between_the_ends_is_refused_when_it_is_met():
    gap = DOUBLES(lambda z, y: math.nan if 0.2 < z < 0.8 else z - y)
    with pytest.raises(ValueError, match=r"`derivative` must not be NaN; got nan for sample \d at z = 0\.5"):
        sf.fit([1, 2], [1.0, 0.0], loss=Custom(gap))


def test_a_compiled_derivative_takes_no_args():
    with pytest.raises(ValueError, match=r"`args` must be empty if `derivative` is compiled; got \(1.0,\)"):
        Custom(plain, (1.0,))


def test_the_data_of_a_low_level_callable_may_be_a_capsule():
    own = Custom(scipy.LowLevelCallable(scaled, capsule(ctypes.pointer(SCALE), b"scale")))
    x, y = [1, 2, 3, 4], [1.0, 3.0, 0.0, 4.0]
    other = Custom(scipy.LowLevelCallable(scaled, DATA))
    assert_same_bits(sf.fit(x, y, loss=own).values, sf.fit(x, y, loss=other).values)


def test_a_fit_under_a_compiled_derivative_is_certified():
    x, y = [1, 2, 3, 4], [1.0, 3.0, 0.0, 4.0]
    stairs = sf.fit(x, y, loss=Custom(plain))
    assert sf.certify(stairs, x, y).optimal
    damaged = sf.Staircase(stairs.left, stairs.right, stairs.values + 0.1, stairs.weights, stairs.counts, stairs.loss)
    assert not sf.certify(damaged, x, y).optimal


def test_arguments_of_samples_follow_a_slice_of_them():
    own = Custom(squared, (np.arange(5.0),)).of_rows(slice(1, 3))
    assert own.args[0].tolist() == [1.0, 2.0]


@pytest.mark.parametrize("domain", [(0, 10**400), ("0", "1"), (np.complex128(1j), 2), 3, (1,)])
def test_a_domain_that_is_no_pair_of_numbers_is_refused(domain):
    with pytest.raises(TypeError, match="`domain` must be a pair"):
        sf.losses.Custom(lambda z, y: z - y, domain=domain)
