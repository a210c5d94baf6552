"""Values, derivatives and domains of each loss; tests/bisection tests fits under them."""

import copy
import json
import math
import pickle
import re

import mpmath
import numpy as np
import pytest
from comparing import assert_same_bits, assert_same_staircase
from hypothesis import given, settings
from hypothesis import strategies as st
from loss_table import BY_NAME, CASES, Case
from mpmath import mpf
from strategies import kinds, rows

import staircase_fast as sf

TINY = 5e-324
LOSSES = {
    "squared": sf.losses.SquaredError,
    "squared_error": sf.losses.SquaredError,
    "log": sf.losses.LogLoss,
    "log_loss": sf.losses.LogLoss,
}
probabilities = {
    "labels": st.sampled_from([0.0, 1.0]),
    "decimals": st.integers(0, 10).map(lambda k: k / 10),
    "any": st.floats(0, 1),
    "ends": st.sampled_from([0.0, TINY, 1e-300, math.nextafter(1, 0), 1.0]),
}
every_case = pytest.mark.parametrize("case", CASES, ids=repr)
every_loss = pytest.mark.parametrize(
    ("case", "loss"), [(case, loss) for case in CASES for loss in case.makes()], ids=repr
)
with_parameter = [case for case in CASES if case.parameter]
arrays_too = [case for case in with_parameter if case.per_sample]


def ordinary(domain: str) -> list[float]:
    return {
        "real": [-3.0, -0.75, 0.0, 0.1, 1.0, 2.5, 40.0],
        "unit": [0.0, 0.1, 0.25, 0.5, 0.9, 1.0],
        ">=0": [0.0, 0.1, 1.0, 2.5, 40.0],
        ">0": [0.1, 1.0, 2.5, 40.0],
    }[domain]


def inner(domain: str) -> list[float]:
    """Values at which every loss of that domain is finite."""
    ends = (0.0, 1.0) if domain == "unit" else (0.0,) if domain == ">=0" else ()
    return [z for z in ordinary(domain) if z not in ends]


def valid(case: Case) -> tuple[list[float], list[float]]:
    return ordinary(case.domain[0]), inner(case.domain[1])


def exact(case: Case, what: str, p: float, z: float, y: float) -> mpf:
    """In 60 digits, and more where terms that differ by more than that must not vanish beside each other."""
    with mpmath.workdps(400):
        return getattr(case, what)(mpf(p), mpf(z), mpf(y))


def scale_of_terms(case: Case, what: str, p: float, z: float, y: float) -> mpf:
    """The larger of the two terms of which some derivatives are the difference.

    Near their zeros a float64 is right to ulps of the terms, not of the difference.
    """
    y, z, p = mpf(y), mpf(z), mpf(p)
    if case.kind is sf.losses.PoissonDeviance:
        return mpf(0) if what == "value" else 2 * max(p, y / z)
    if case.kind is sf.losses.Logistic and what == "derivative":
        return max(y, 1 / (1 + mpmath.exp(-(z + p))))
    return mpf(0)


def ulps_off(case: Case, what: str, p: float, z: float, y: float) -> float:
    got = getattr(case.make(p) if case.parameter else case.make(), what)(z, y)
    want = exact(case, what, p, z, y)
    if abs(want) > mpf(1.797e308):
        return 0.0 if abs(got) > 1e307 else math.inf
    size = max(abs(want), scale_of_terms(case, what, p, z, y), mpf(2) ** -1022)
    return float(abs(mpf(float(got)) - want) / size * 2**52)


def allowed(case: Case, p: float, z: float, y: float) -> float:
    """A few ulps; and where an exponent is rounded, as many as that rounding makes."""
    with mpmath.workdps(40):
        if case.kind is sf.losses.Linex:
            return 4 + 2 * float(abs(mpf(p) * (mpf(z) - mpf(y))))
        if case.kind is sf.losses.Logistic:
            return 4 + float(abs(mpf(z) + mpf(p)))
        if case.kind is sf.losses.LogCosh:
            return 6
        if case.kind is sf.losses.Power:
            return 4 + p
        if case.kind is sf.losses.TweedieDeviance:
            return 12 + 2 * abs(p)
    return 4


def cancels(case: Case, p: float, z: float, y: float) -> bool:
    """Whether it is small beside its terms: `test_tiny_differences_..` is about that."""
    return case.kind is sf.losses.Linex and abs(p * (z - y)) < 1


@pytest.mark.parametrize("name", LOSSES)
def test_a_loss_is_given_by_name_or_as_an_object(name):
    scores, targets = [1, 2, 3], [0.5, 1.0, 0.25]
    by_name = sf.fit(scores, targets, loss=name)
    assert_same_staircase(by_name, sf.fit(scores, targets, loss=LOSSES[name]()))
    assert by_name.loss == LOSSES[name]()
    line = sf.isotonic_regression(targets, loss=name)
    assert_same_bits(line.x, sf.isotonic_regression(targets, loss=LOSSES[name]()).x)


@every_case
def test_every_loss_has_a_name_and_those_without_a_default_say_what_they_need(case):
    needs = case.kind in (sf.losses.TweedieDeviance, sf.losses.Linex, sf.losses.Power)
    if not needs:
        targets = [0.25, 0.5, 0.75]
        assert_same_staircase(sf.fit([1, 2, 2], targets, loss=case.name), sf.fit([1, 2, 2], targets, loss=case.kind()))
        return
    example = f"losses.{case.kind.__name__}({case.parameter})"
    text = f"`loss` must include its {case.parameter}, as in {example}; got {case.name!r}."
    with pytest.raises(ValueError, match=re.escape(text)):
        sf.fit([1], [1], loss=case.name)
    with pytest.raises(TypeError):
        case.kind()


def test_what_is_no_loss_is_refused():
    with pytest.raises(ValueError, match=r"`loss` must be one of 'squared_error', .*'power'.*; got 'hinge'\."):
        sf.fit([1], [1], loss="hinge")
    for given_loss in (None, 3, sf.losses.Huber):
        with pytest.raises(TypeError, match=r"`loss` must be a name or a loss object; got"):
            sf.fit([1], [1], loss=given_loss)
    with pytest.raises(TypeError, match=r"Pass an object such as Huber\(1\.5\), or a function in Custom"):
        sf.fit([1], [1], loss=lambda z, y: z - y)  # type: ignore[arg-type]


def test_a_parameter_that_is_a_number_is_refused_without_an_index():
    for made, message in (
        (lambda: sf.losses.Huber(-1), "`delta` must be > 0; got -1.0."),
        (lambda: sf.losses.Huber([1, -1]), "`delta` must be > 0; got -1.0 at index 1."),
        (lambda: sf.losses.Quantile(95), "`level` must be > 0 and < 1; got 95.0. Divide percentages by 100."),
        (lambda: sf.losses.Linex(0), "`shape` must not be 0; got 0.0."),
    ):
        with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
            made()


def test_the_loss_is_the_square_error_unless_told():
    assert sf.fit([1], [1]).loss == sf.losses.SquaredError()


@every_case
def test_values_and_derivatives_are_right_at_ordinary_arguments(case):
    targets, values = valid(case)
    for p in case.parameters or (0.0,):
        for y in targets:
            for z in values:
                for what in ("value", "derivative"):
                    if what == "value" and cancels(case, p, z, y):
                        continue
                    off = ulps_off(case, what, p, z, y)
                    assert off <= allowed(case, p, z, y), (what, p, z, y, off)


def near(y: float) -> list[float]:
    """Values beside a target, some ulps and some parts in a million away."""
    return [y, math.nextafter(y, math.inf), y * (1 + 2**-40), y * (1 - 2**-20), y * 1.001]


@pytest.mark.parametrize("what", ["value", "derivative"])
@every_case
def test_tiny_differences_of_value_and_target_keep_their_digits(case, what):
    cancelling = (1.5, 3.0) if (case.name, what) == ("tweedie_deviance", "value") else ()  # three terms, near z = y
    for p in sorted({*(case.parameters or (0.0,))} - {*cancelling}):
        for y in (0.1, 0.7):
            for z in near(y):
                off = ulps_off(case, what, p, z, y)
                assert off <= allowed(case, p, z, y), (p, z, y, off)


FAR = {
    "real": [-1e300, -1e160, -1e20, -750.0, -38.0, 1e-300, 38.0, 750.0, 1e20, 1e160, 1e300],
    "unit": [TINY, 1e-300, 1e-17, 2**-30, 1 - 2**-30, math.nextafter(1, 0)],
    ">=0": [TINY, 1e-300, 1e-20, 1e20, 1e160, 1e300],
    ">0": [1e-90, 1e-20, 1e20, 1e90],
}


@pytest.mark.parametrize("what", ["value", "derivative"])
@every_case
def test_far_tails_are_right(case, what):
    for p in case.parameters or (0.0,):
        for y in (0.25, 1.0):
            for z in FAR[case.domain[1]]:
                if case.kind is sf.losses.Linex and abs(p * z) > 1e4 and p * z > 0:
                    continue  # beyond what mpmath can write down; all of them are infinite
                if what == "value" and cancels(case, p, z, y):
                    continue
                off = ulps_off(case, what, p, z, y)
                assert off <= allowed(case, p, z, y), (p, z, y, off)


@pytest.mark.parametrize(
    ("loss", "name", "z"),
    [
        pytest.param(sf.losses.Huber, "delta", 3.0, id="huber"),
        pytest.param(sf.losses.PseudoHuber, "delta", 3.0, id="pseudo_huber"),
        pytest.param(sf.losses.LogCosh, "scale", 3.0, id="log_cosh"),
    ],
)
def test_extreme_parameters_give_the_squared_error_and_the_absolute_error(loss, name, z):
    for huge in (1e155, 1e200):
        assert loss(huge).value(z, 1.0) == pytest.approx(2.0, rel=1e-12)
        assert loss(huge).derivative(z, 1.0) == pytest.approx(2.0, rel=1e-12)
    for tiny in (1e-155, 1e-200):
        assert loss(tiny).value(z, 1.0) == pytest.approx(2.0 * tiny, rel=1e-12, abs=0)
        assert loss(tiny).derivative(z, 1.0) == pytest.approx(tiny, rel=1e-12, abs=0)


def test_ends_of_domains_have_their_limits():
    log, poisson, logistic = sf.losses.LogLoss(), sf.losses.PoissonDeviance(), sf.losses.Logistic()
    assert log.value([0, 0, 1, 1], [0, 1, 0, 1]).tolist() == [0, math.inf, math.inf, 0]
    assert log.derivative([0, 0, 1, 1], [0, 1, 0, 1]).tolist() == [1, -math.inf, math.inf, -1]
    assert poisson.value([0, 0], [0, 2]).tolist() == [0, math.inf]
    assert poisson.derivative([0, 0], [0, 2]).tolist() == [2, -math.inf]
    assert logistic.value([-math.inf, -math.inf, math.inf, math.inf], [0, 1, 0, 1]).tolist() == [
        0, math.inf, math.inf, 0,
    ]  # fmt: skip
    assert logistic.derivative([-math.inf, math.inf], 0.25).tolist() == [-0.25, 0.75]
    gamma = sf.losses.GammaDeviance()
    assert gamma.value(TINY, TINY) == 0
    assert gamma.value(1.0, TINY) == pytest.approx(2 * (-math.log(TINY) - 1), rel=1e-15)
    assert poisson.value(TINY, 1e300) == pytest.approx(2e300 * (math.log(1e300) - math.log(TINY) - 1), rel=1e-15)
    tiny_mean = sf.losses.PoissonDeviance(1e-200).value(1e-200, 1.0)  # exposure times value underflows
    assert tiny_mean == pytest.approx(2 * (400 * math.log(10) - 1), rel=1e-15)


def test_an_infinite_value_costs_infinitely_much_even_where_terms_cancel():
    assert sf.losses.PoissonDeviance().value(math.inf, 1.0) == math.inf
    assert sf.losses.TweedieDeviance(1.0).value(math.inf, 1.0) == math.inf


def test_an_infinite_target_is_refused_as_fit_refuses_it():
    with pytest.raises(ValueError, match="`y` must be finite"):
        sf.losses.Huber().value(math.inf, math.inf)


@every_case
@settings(max_examples=40)
@given(data=st.data())
def test_derivatives_never_decrease_and_change_sign_at_the_target(case, data):
    p = data.draw(st.sampled_from(case.parameters or (0.0,)))
    loss = case.make(p) if case.parameter else case.make()
    domain = {
        "real": st.floats(-1e6, 1e6),
        "unit": st.floats(0, 1),
        ">=0": st.floats(0, 1e6),
        ">0": st.floats(1e-6, 1e6),
    }
    y = data.draw(domain[case.domain[0]])
    z = np.sort(data.draw(st.lists(domain[case.domain[1]], min_size=2, max_size=8)))
    slopes = loss.derivative(z, y)
    assert not np.isnan(slopes).any()
    if case.convex:
        # both sides of a comparison may be off by ulps of the terms that they are the difference of
        terms = {"poisson_deviance": 2.0 * p, "logistic": 1.0, "log_loss": 1.0}.get(case.name, 0.0)
        size = np.maximum(np.abs(slopes), terms)
        slack = 8 * 2.0**-52 * np.where(np.isfinite(size), size, 0.0)
        with np.errstate(invalid="ignore"):
            assert (slopes[1:] >= slopes[:-1] - slack[1:] - slack[:-1]).all()
    if case.domain[0] == case.domain[1] and case.kind is not sf.losses.PoissonDeviance:
        assert (slopes[z > y] >= 0).all()
        assert (slopes[z < y] <= 0).all()


@every_loss
def test_a_loss_survives_copies_and_pickling_and_can_be_a_key(case, loss):
    for twin in (copy.copy(loss), copy.deepcopy(loss), *(pickle.loads(pickle.dumps(loss, k)) for k in range(6))):
        assert twin == loss
        assert hash(twin) == hash(loss)
        assert repr(twin) == repr(loss)
        assert {loss: 1}[twin] == 1
        targets, values = valid(case)
        n = len(loss.parameters)
        y, z = np.resize(targets, n), np.resize(values, n)
        assert_same_bits(twin.value(z, y), loss.value(z, y))


def test_parameters_stay_read_only_in_copies():
    loss = sf.losses.Huber([1.0, 2.0])
    with pytest.raises(ValueError, match="read-only"):
        loss.delta[0] = 5
    for twin in (copy.copy(loss), copy.deepcopy(loss), pickle.loads(pickle.dumps(loss))):
        assert not twin.delta.flags.writeable


@every_case
def test_losses_are_equal_if_kind_and_parameters_are(case):
    losses = case.makes()
    for i, one in enumerate(losses):
        for j, two in enumerate(losses):
            assert (one == two) is (i == j)
            assert (one != two) is (i != j)
    for other in CASES:
        if other is not case:
            assert case.make() != other.make()
    assert case.make() != case.name
    assert case.make() != 3


def test_losses_of_both_zeros_are_equal_and_have_one_hash():
    for one, two in (
        (sf.losses.Logistic(0.0), sf.losses.Logistic(-0.0)),
        (sf.losses.Logistic([0.0, 1.0]), sf.losses.Logistic([-0.0, 1.0])),
        (sf.losses.TweedieDeviance(0.0), sf.losses.TweedieDeviance(-0.0)),
    ):
        assert one == two
        assert hash(one) == hash(two)


def test_a_loss_is_shown_as_it_is_written():
    L = sf.losses
    for loss in (
        L.SquaredError(), L.LogLoss(), L.GammaDeviance(), L.PoissonDeviance(exposure=2.0), L.TweedieDeviance(power=1.5),
        L.Logistic(offset=-1.0), L.Linex(shape=2.0), L.Expectile(level=0.25), L.Quantile(level=0.5, side="upper"),
        L.Huber(delta=1.0), L.PseudoHuber(delta=1.0), L.LogCosh(scale=1.0), L.Power(exponent=1.5),
    ):  # fmt: skip
        assert eval(repr(loss), vars(L)) == loss
    assert repr(L.Quantile([0.5, 0.25, 0.5], side="middle")) == "Quantile(level=<3 of them>, side='middle')"


def test_the_caller_keeps_the_array_of_parameters_and_may_change_it():
    deltas = np.array([1.0, 2.0])
    loss = sf.losses.Huber(deltas)
    deltas[0] = 9.0
    assert loss.delta.tolist() == [1.0, 2.0]
    assert deltas.flags.writeable


def test_there_is_no_loss_of_no_kind():
    with pytest.raises(TypeError, match="abstract"):
        sf.losses.Loss()


@pytest.mark.parametrize("case", with_parameter, ids=repr)
def test_bad_parameters_are_refused_by_name_value_and_index(case):
    name, good = case.parameter, case.parameters[0]
    for bad in (*case.bad_parameters, math.nan, math.inf, -math.inf):
        with pytest.raises(ValueError, match=rf"`{name}` must .*; got {re.escape(repr(bad))}"):
            case.make(bad)
        if case.per_sample:
            with pytest.raises(ValueError, match=rf"`{name}` must .*; got {re.escape(repr(bad))} at index 2\."):
                case.make([good, good, bad, bad])
    for bad in ("much", None, [1.0, "x"], 1j):
        with pytest.raises((TypeError, ValueError), match=f"`{name}` must"):
            case.kind(**{name: bad})
    if case.per_sample:
        for shape in ((0,), (2, 2), (1, 1)):
            with pytest.raises(ValueError, match=rf"`{name}` must be a number, or one per sample; got shape"):
                case.make(np.full(shape, good))


def test_bad_sides_are_refused():
    for side in ("left", "", None, 1):
        with pytest.raises(ValueError, match=r"`side` must be one of 'lower', 'middle', 'upper'; got "):
            sf.losses.Quantile(0.5, side=side)


@pytest.mark.parametrize("case", arrays_too, ids=repr)
def test_parameters_must_be_one_or_one_per_row(case):
    y = [0.5, 0.25, 0.5]
    for n in (1, 2, 4):
        text = rf"`{case.parameter}` of the loss must have one entry per row; got {n} for 3 rows\."
        with pytest.raises(ValueError, match=text):
            sf.fit([1, 2, 3], y, loss=case.make([case.parameters[0]] * n))
    same = sf.fit([1, 2, 3], y, loss=case.make([case.parameters[0]] * 3))
    assert same.values == pytest.approx(sf.fit([1, 2, 3], y, loss=case.make()).values, rel=1e-14, abs=0)


BAD_TARGETS = {
    "unit": (-0.1, 1.5, -TINY, math.nextafter(1, 2)),
    ">=0": (-1.0, -TINY),
    ">0": (0.0, -1.0),
    "real": (),
}


@every_case
def test_targets_out_of_the_domain_are_refused_by_name_value_and_index(case):
    for bad in BAD_TARGETS[case.domain[0]]:
        if case.kind is sf.losses.TweedieDeviance and bad == 0.0:
            continue  # allowed below a power of 2
        text = rf"`targets` must be .* for {case.name}; got {re.escape(repr(bad))} at index 2\."
        with pytest.raises(ValueError, match=text):
            sf.fit([1, 2, 3], [0.5, 0.5, bad], loss=case.make())
        with pytest.raises(ValueError, match=rf"`y` must be .* for {case.name}; got {re.escape(repr(bad))} at index 1"):
            case.make().value(0.5, [0.5, bad])
    for bad in (math.nan, math.inf, -math.inf):
        with pytest.raises(ValueError, match=rf"`targets` must be finite; got {bad!r} at index 1\."):
            sf.fit([1, 2], [0.5, bad], loss=case.make())
    with pytest.raises(ValueError, match=r"`z` must not be NaN; got nan at index 0\."):
        case.make().derivative(math.nan, 0.5)


def test_targets_of_a_tweedie_deviance_depend_on_its_power():
    fits = {-1.0: [-1.0, 0.0, 2.0], 0.0: [-1.0, 0.0, 2.0], 1.0: [0.0, 0.0, 2.0], 1.5: [0.0, 2.0], 2.0: [TINY, 2.0]}
    for power, targets in fits.items():
        if power < 0 and min(targets) < 0:
            continue  # values must be >= 0 there
        assert sf.fit(range(len(targets)), targets, loss=sf.losses.TweedieDeviance(power)).n_steps >= 1
    for power in (2.0, 3.0):
        with pytest.raises(ValueError, match=r"`targets` must be > 0 for tweedie_deviance; got 0\.0 at index 0\."):
            sf.fit([1], [0.0], loss=sf.losses.TweedieDeviance(power))


@every_case
def test_values_and_derivatives_have_the_shape_of_their_arguments(case):
    loss = case.make()
    targets, values = valid(case)
    for what in (loss.value, loss.derivative):
        assert np.ndim(what(values[0], targets[0])) == 0
        assert isinstance(what(values[0], targets[0]), float)
        table = what(np.array(values)[:, None], np.array(targets))
        assert table.shape == (len(values), len(targets))
        for i, z in enumerate(values):
            for j, y in enumerate(targets):
                assert_same_bits(table[i, j], what(z, y))
        assert what(values, targets[0]).shape == (len(values),)
        assert what([], targets[0]).shape == (0,)
        assert what(np.float32(values[0]), [[targets[0]]]).shape == (1, 1)
        with pytest.raises(ValueError, match="broadcast"):
            what(np.resize(values, 2), np.resize(targets, 3))


@pytest.mark.parametrize("case", arrays_too, ids=repr)
def test_each_sample_has_its_own_parameter(case):
    targets, values = valid(case)
    p = np.array(case.parameters)
    loss = case.make(p)
    y, z = np.resize(targets, len(p)), np.resize(values, len(p))
    for what in ("value", "derivative"):
        got = getattr(loss, what)(z, y)
        assert_same_bits(got, [getattr(case.make(one), what)(a, b) for one, a, b in zip(p, z, y, strict=True)])
        assert getattr(loss, what)(z[0], y[0]).shape == p.shape
        assert getattr(loss, what)(np.array(values)[:, None], y[0]).shape == (len(values), len(p))


@every_loss
@pytest.mark.parametrize("increasing", [True, False])
def test_a_staircase_under_any_loss_survives_json(case, loss, increasing):
    n = max(5, len(loss.parameters))
    y = np.resize([0.5, 0.25, 0.75, 0.125, 0.5], n)
    if len(loss.parameters) > 1 and n != len(loss.parameters):
        pytest.skip("one parameter per row")
    w = np.resize([1.0, 0.3, 2.0], n)
    stairs = sf.fit(np.arange(n), y, sample_weight=w, loss=loss, increasing=increasing)
    again = sf.Staircase.from_json(stairs.to_json())
    assert_same_staircase(again, stairs)
    assert again.loss == loss
    document = json.loads(stairs.to_json())
    assert document["loss"]["name"] == case.name
    if stairs.lower is not stairs.values:
        assert {"lower", "upper"} <= document.keys()


def test_json_keeps_bounds_of_a_stopped_fit_and_infinite_log_odds():
    stopped = sf.fit([1, 2, 3, 4], [3.0, 1.0, 5.0, 2.0], loss=sf.losses.Power(1.5), max_rounds=1)
    assert (stopped.lower < stopped.upper).any()
    assert_same_staircase(sf.Staircase.from_json(stopped.to_json()), stopped)
    odds = sf.fit([1, 2, 3, 4], [0, 1, 0, 1], loss="logistic", bounds=(-math.inf, math.inf))
    assert odds.values.tolist() == [-math.inf, 0.0, math.inf]
    assert_same_staircase(sf.Staircase.from_json(odds.to_json()), odds)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda d: d["loss"].pop("delta") and d["loss"].update(delta=-1.0), r"`delta` must be > 0; got -1\.0"),
        (lambda d: d["loss"].update(delta=[1.0, 0.0]), r"`delta` must be > 0; got 0\.0 at index 1"),
        (lambda d: d["loss"].update(delta="inf"), r"`delta` must"),
        (lambda d: d["loss"].update(delta=None), r"`delta` must"),
        (lambda d: d["loss"].update(scale=1.0), r"field `loss` must have the parameters of 'huber'"),
        (lambda d: d["loss"].update(name="hinge"), r"field `loss` must name one of"),
        (lambda d: d["loss"].update(name=3), r"field `loss` must name one of"),
        (lambda d: d["loss"].pop("name"), r"field `loss` must be an object with a name"),
        (lambda d: d.update(loss="huber"), r"field `loss` must be an object with a name"),
        (lambda d: d["loss"].update(name="power"), r"field `loss` must have the parameters of 'power'"),
        (lambda d: d.update(lower=[1e9] * len(d["values"])), r"`lower` must be <= `values`; got .* at index 0"),
        (lambda d: d.update(upper=[-1e9] * len(d["values"])), r"`upper` must be >= `values`; got .* at index 0"),
        (lambda d: d.update(upper=[1.0]), r"`left` and `upper` must have one entry per row"),
        (lambda d: d.update(lower=["-inf"] * len(d["values"])), r"`lower` must be finite; got -inf at index 0"),
        (lambda d: d.update(lower=[None] * len(d["values"])), r"field `lower` must hold numbers; got None at index 0"),
    ],
)
def test_damaged_json_of_a_loss_is_refused(damage, message):
    document = json.loads(sf.fit([1, 2, 3, 4], [3.0, 1.0, 5.0, 2.0], loss="huber", max_rounds=1).to_json())
    damage(document)
    with pytest.raises(ValueError, match=message):
        sf.Staircase.from_json(json.dumps(document))


@given(rows(targets=kinds(probabilities)), st.booleans())
def test_log_loss_has_the_staircase_of_the_square_error(rows, increasing):
    options = {"sample_weight": rows.weights, "increasing": increasing}
    log = sf.fit(rows.scores, rows.targets, loss="log", **options)
    squared = sf.fit(rows.scores, rows.targets, **options)
    for name in ("left", "right", "values", "weights", "counts"):
        assert_same_bits(getattr(log, name), getattr(squared, name))


@pytest.mark.parametrize("name", ["poisson_deviance", "gamma_deviance", "tweedie_deviance"])
def test_deviances_have_the_staircase_of_the_square_error(name):
    rng = np.random.default_rng(3)
    for n in (1, 5, 300):
        x, y, w = rng.integers(0, n, n), rng.exponential(size=n), rng.integers(1, 4, n)
        squared = sf.fit(x, y, sample_weight=w)
        for loss in BY_NAME[name].makes():
            if loss.is_mean:
                found = sf.fit(x, y, sample_weight=w, loss=loss)
                for column in ("left", "right", "values", "weights", "counts", "lower", "upper"):
                    assert_same_bits(getattr(found, column), getattr(squared, column))


@given(rows(targets=kinds(probabilities)))
def test_values_under_log_loss_are_probabilities(rows):
    values = sf.fit(rows.scores, rows.targets, sample_weight=rows.weights, loss="log").values
    assert ((values >= 0) & (values <= 1)).all()


def test_pure_blocks_have_the_values_zero_and_one_and_bounds_keep_them_inside():
    scores, labels = [1, 2, 3, 4], [0, 0, 1, 1]
    assert sf.fit(scores, labels, loss="log").values.tolist() == [0.0, 1.0]
    inside = sf.fit(scores, labels, loss="log", bounds=(0.01, 0.99))
    assert inside.values.tolist() == [0.01, 0.99]
