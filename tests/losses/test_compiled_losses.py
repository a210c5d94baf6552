"""`Custom` by a compiled derivative: ctypes, numba, capsules and `LowLevelCallable`."""

import ctypes
import functools
import itertools
import math
import sys
import types

import numpy as np
import pytest
import scipy
from comparing import assert_same_bits
from custom_losses import DOUBLES, Custom, assert_close_staircase, difference, plain, rows_of

import staircase_fast as sf
from staircase_fast.bisection.samples import samples_of
from staircase_fast.bisection.solve import runs_in_domain
from staircase_fast.inputs.rows import read_columns
from staircase_fast.losses.rows import check_rows_and_parameters

L = sf.losses
EPS = 2.0**-52
both_directions = pytest.mark.parametrize("increasing", [True, False])
WITH_DATA = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double, ctypes.c_double, ctypes.c_void_p)
PLAIN_NAME, DATA_NAME = b"double (double, double)", b"double (double, double, void *)"


def capsule(function, name, context=None):
    new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
    made = new(("PyCapsule_New", ctypes.pythonapi))(ctypes.cast(function, ctypes.c_void_p).value, name, None)
    if context is not None:
        setter = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_void_p)
        setter(("PyCapsule_SetContext", ctypes.pythonapi))(made, context)
    return made


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


def test_the_hash_of_a_compiled_loss_is_a_number():
    assert isinstance(hash(Custom(scipy.LowLevelCallable(plain))), int)


def test_a_loss_of_each_compiled_kind_equals_itself():
    for make, _ in COMPILED.values():
        function = make()
        assert Custom(function) == Custom(function)
        assert Custom(function) != Custom(difference)
        assert repr(Custom(function)).startswith("Custom(")


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
