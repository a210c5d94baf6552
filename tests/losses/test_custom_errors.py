"""`Custom`: exceptions of the function, and derivatives that are NaN, decrease or have a wrong shape."""

import math

import numpy as np
import pytest
from custom_losses import DOUBLES, Custom, squared

import staircase_fast as sf

L = sf.losses
both_directions = pytest.mark.parametrize("increasing", [True, False])


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


def test_arguments_of_samples_follow_a_slice_of_them():
    own = Custom(squared, (np.arange(5.0),)).of_rows(slice(1, 3))
    assert own.args[0].tolist() == [1.0, 2.0]


@pytest.mark.parametrize("domain", [(0, 10**400), ("0", "1"), (np.complex128(1j), 2), 3, (1,)])
def test_a_domain_that_is_no_pair_of_numbers_is_refused(domain):
    with pytest.raises(TypeError, match="`domain` must be a pair"):
        sf.losses.Custom(lambda z, y: z - y, domain=domain)
