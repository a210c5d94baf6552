"""`Online`: after each row, the staircase equals a fit of all rows so far."""

import math
from fractions import Fraction

import numpy as np
import pytest
from comparing import assert_same_staircase, assert_steps
from hypothesis import given
from promises.test_paper import ARRIVALS, TARGETS
from reference import fitted_steps
from strategies import rows

import staircase_fast as sf
from staircase_fast.streams import _online

L = sf.losses


def mean(y1, w1, y2, w2):
    return (y1 * w1 + y2 * w2) / (w1 + w2), w1 + w2


both_directions = pytest.mark.parametrize("increasing", [True, False], ids=["rising", "falling"])


def log_sum_exp(y1, log1, y2, log2):
    total = np.logaddexp(log1, log2)
    return float(total - np.logaddexp(log1 - y1, log2 - y2)), total


def normal(rng, n):
    return rng.normal(size=n) + np.linspace(0, 2, n)


# losses whose online fit equals a batch fit bit for bit, with targets for each
EXACT = {
    "squared": ("squared", normal),
    "squared, integers": ("squared", lambda rng, n: rng.integers(-20, 21, n).astype(float)),
    "squared, 600 decades": ("squared", lambda rng, n: rng.normal(size=n) * 10.0 ** rng.integers(-300, 300, n)),
    "log": ("log", lambda rng, n: rng.integers(0, 2, n).astype(float)),
    "poisson": ("poisson_deviance", lambda rng, n: rng.poisson(3, n).astype(float)),
    "poisson, exposure": (L.PoissonDeviance(0.7), lambda rng, n: rng.poisson(3, n).astype(float)),
    "gamma": ("gamma_deviance", lambda rng, n: rng.gamma(1, size=n) + 0.01),
    "tweedie": (L.TweedieDeviance(1.5), lambda rng, n: rng.gamma(1, size=n) * rng.integers(0, 2, n)),
    "tweedie, values held at 0": (L.TweedieDeviance(-1.0), normal),
    "rule": (L.UpdateRule(mean), normal),
    "rule with an initial": (L.UpdateRule(log_sum_exp, lambda y, w: (y, math.log(w))), normal),
}


def arriving(kind, n, *, weighted, seed=0):
    """Rows in score order with ties; some of weight 0."""
    rng = np.random.default_rng(seed)
    x = np.sort(rng.integers(0, n // 2, n)).astype(float)
    y = EXACT[kind][1](rng, n)
    w = rng.choice([0.0, 0.3, 1.0, 2.0, 7.1], n) if weighted else None
    return x, y, w


def beginning(columns, n):
    x, y, w = columns
    return {"scores": x[:n], "targets": y[:n], "sample_weight": None if w is None else w[:n]}


def extend_in_parts(online, columns, cuts):
    for a, b in zip([0, *cuts], [*cuts, len(columns[0])], strict=True):
        online.extend(*(None if column is None else column[a:b] for column in columns))


# The paper


def test_the_online_example_goes_through_the_states_printed_in_section_v():
    online = sf.Online()
    for n, (target, printed) in enumerate(zip(TARGETS, ARRIVALS, strict=True)):
        online.append(n, target)
        assert online.predict(range(n + 1)).tolist() == printed
        assert online.n_samples == n + 1
        assert online.n_steps == len(set(printed))
        assert online.n_merges == n + 1 - len(set(printed))


def test_a_row_of_the_newest_score_can_split_a_merged_step():
    online = sf.Online()
    online.append(1, 5)
    online.append(2, 0)
    assert online.staircase().values.tolist() == [2.5]
    assert (online.n_steps, online.n_merges) == (1, 1)
    online.append(2, 20)
    assert online.staircase().values.tolist() == [5.0, 10.0]
    assert (online.n_steps, online.n_merges) == (2, 1)


# Equal to a batch


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@both_directions
@pytest.mark.parametrize("kind", EXACT)
@pytest.mark.long
def test_after_every_row_the_staircase_is_that_of_a_batch(kind, increasing, weighted):
    loss, n = EXACT[kind][0], 2000
    columns = arriving(kind, n, weighted=weighted)
    online = sf.Online(loss, increasing)
    seen = 0
    for i in range(n):
        weight = 1.0 if columns[2] is None else columns[2][i].item()
        online.append(columns[0][i].item(), columns[1][i].item(), weight)
        seen += weight > 0
        assert online.n_samples == seen
        # batch fits are slow: compare after every row in one case, after some rows in the others
        if seen and (i % 10 == 0 or (weighted and increasing and ("rule" not in kind or i < 200))):
            batch = sf.fit(**beginning(columns, i + 1), loss=loss, increasing=increasing)
            assert_same_staircase(online.staircase(), batch)
            assert online.n_steps == batch.n_steps
            assert online.n_merges == seen - batch.n_steps


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@both_directions
@pytest.mark.parametrize("kind", EXACT)
def test_the_staircase_does_not_depend_on_how_rows_are_cut_into_calls(kind, increasing, weighted):
    loss = EXACT[kind][0]
    columns = arriving(kind, 3000, weighted=weighted, seed=2)
    batch = sf.fit(**beginning(columns, 3000), loss=loss, increasing=increasing)
    for cuts in ([], [1], [1500], [1, 2, 3, 4, 1000, 1000, 1001, 2999], list(range(37, 3000, 37))):
        online = sf.Online(loss, increasing)
        extend_in_parts(online, columns, cuts)
        assert_same_staircase(online.staircase(), batch)


@pytest.mark.parametrize("targets", ["noise", "labels", "monotone", "constant", "bytes", "large integers"])
@both_directions
def test_many_rows_in_one_call_are_those_of_a_batch(targets, increasing):
    n = 3 * _online.ROWS_AT_ONCE + 17
    rng = np.random.default_rng(3)
    y = {
        "noise": lambda: rng.normal(size=n) + np.linspace(0, 1, n),
        "labels": lambda: (rng.random(n) < np.linspace(0, 1, n)).astype(float),
        "monotone": lambda: np.linspace(-1, 1, n),
        "constant": lambda: np.full(n, 0.1),
        "bytes": lambda: rng.integers(0, 2, n).astype(np.uint8),
        "large integers": lambda: rng.integers(2**60, 2**62, n),
    }[targets]()
    for x in (np.arange(n, dtype=float), np.sort(rng.random(n).round(4)), np.repeat([1.0, 2.0], [n - 1, 1])):
        online = sf.Online(increasing=increasing)
        online.extend(x, y)
        assert_same_staircase(online.staircase(), sf.fit(x, y, increasing=increasing))


@given(drawn=rows())
def test_generated_rows_have_the_steps_of_the_reference_after_each(drawn):
    order = np.argsort(drawn.scores, kind="stable")
    drawn = drawn.take(order)
    online = sf.Online()
    for i, row in enumerate(zip(*drawn.lists(), strict=True)):
        online.append(*row)
        if online.n_samples and i % 5 == 4:
            assert_steps(online.staircase(), fitted_steps(*drawn.take(np.arange(i + 1)).lists()))
    assert_steps(online.staircase(), fitted_steps(*drawn.lists()))


@given(drawn=rows())
def test_generated_rows_have_the_steps_of_the_reference_when_they_fall_and_come_in_two_calls(drawn):
    drawn = drawn.take(np.argsort(drawn.scores, kind="stable"))
    online = sf.Online(increasing=False)
    extend_in_parts(online, drawn, [len(drawn.scores) // 3])
    assert_steps(online.staircase(), fitted_steps(*drawn.lists(), increasing=False))


@pytest.mark.parametrize("shape", [1.0, -0.5, 1e-3, -40.0, 1e5])
@both_directions
def test_linex_equals_a_batch_fit_to_a_few_ulps(shape, increasing):
    rng = np.random.default_rng(4)
    n = 2000
    x, w = np.sort(rng.integers(0, 1500, n)).astype(float), rng.random(n) + 0.1
    y = rng.normal(size=n) + x / 500
    online = sf.Online(L.Linex(shape), increasing)
    for i in range(n):
        online.append(x[i].item(), y[i].item(), w[i].item())
        if i < 50 or i % 50 == 0 or i == n - 1:
            seen = slice(i + 1)
            batch = sf.fit(x[seen], y[seen], sample_weight=w[seen], loss=L.Linex(shape), increasing=increasing)
            np.testing.assert_allclose(online.predict(x[seen]), batch(x[seen]), rtol=1e-12, atol=1e-13)
            assert online.n_steps == batch.n_steps
            np.testing.assert_allclose(online.staircase().weights, batch.weights, rtol=1e-15)
            assert online.staircase().counts.tolist() == batch.counts.tolist()


def test_linex_of_many_rows_keeps_its_digits_far_from_zero():
    n = 100_000
    y = 1e6 + np.random.default_rng(5).normal(size=n)
    online = sf.Online(L.Linex(0.5), increasing=False)
    online.extend(np.arange(n), y)
    whole = sf.Online(L.Linex(0.5))
    whole.extend(np.zeros(n), y)
    shifted = sf.Online(L.Linex(0.5))
    shifted.extend(np.zeros(n), y - 1e6)
    assert abs(whole.staircase().values[0] - 1e6 - shifted.staircase().values[0]) < 2.5e-10  # an ulp of 1e6 is 1.2e-10
    batch = sf.fit(np.arange(n), y, loss=L.Linex(0.5), increasing=False)
    np.testing.assert_allclose(online.predict(range(n)), batch(range(n)), rtol=1e-14)


@pytest.mark.parametrize("targets", [[1e308, -1e308], [-1e308, 1e308, -1e308], [800.0, 0.0, 1600.0]])
@pytest.mark.parametrize("shape", [1.0, -1.0, 1e300, 1e-300])
def test_linex_does_not_overflow(targets, shape):
    online = sf.Online(L.Linex(shape))
    online.extend(np.zeros(len(targets)), targets)
    value = online.staircase().values[0]
    assert min(targets) <= value <= max(targets)
    if shape in (1.0, -1.0):
        extreme = min(targets) if shape > 0 else max(targets)
        few = targets.count(extreme)
        expected = extreme + math.log(len(targets) / few) / shape
        assert value == pytest.approx(expected, rel=1e-15)


def test_the_scale_widens_as_finer_and_larger_numbers_arrive():
    rng = np.random.default_rng(6)
    y, w, scales = [], [], set()
    online = sf.Online()
    for size in range(0, 300, 5):
        for exponent in (-size, size):
            y.append(float(rng.normal()) * 10.0**exponent)
            w.append(float(rng.random()) * 10.0 ** (exponent / 2))
            online.append(len(y), y[-1], w[-1])
            scales.add(online._blocks.state()["words"].shape[1])
    assert_steps(online.staircase(), fitted_steps(list(map(float, range(1, len(y) + 1))), y, w))
    assert 3 < len(scales) < 150


def test_integers_become_exact_sums_of_many_words_without_loss():
    y = [3, -7, 2**40, 1, 5, 0.1, -(2.0**-60), 7]
    online = sf.Online()
    for i, target in enumerate(y):
        online.append(i, target)
        assert_steps(online.staircase(), fitted_steps(list(map(float, range(i + 1))), y[: i + 1]))


KINDS_OF_TARGETS = {
    "labels": lambda rng, n: rng.integers(0, 2, n).astype(float),
    "halves": lambda rng, n: rng.integers(-9, 9, n) / 2,
    "digits": lambda rng, n: np.round(rng.random(n), 3),
    "any": lambda rng, n: rng.normal(size=n),
    "small": lambda rng, n: rng.normal(size=n) * 1e-90,
    "zeros": lambda rng, n: np.zeros(n),
}
KINDS_OF_WEIGHTS = {
    "none": lambda rng, n: None,
    "integers": lambda rng, n: rng.integers(1, 5, n).astype(float),
    "fractions": lambda rng, n: rng.random(n) + 0.01,
    "least": lambda rng, n: np.full(n, 5e-324),
    "some are 0": lambda rng, n: np.where(rng.random(n) < 0.5, 0.0, 0.3),
}


@both_directions
@pytest.mark.parametrize("seed", range(40))
def test_batches_may_be_of_different_kinds(seed, increasing):
    rng = np.random.default_rng(seed)
    online, parts, score = sf.Online(increasing=increasing), [], 0.0
    for _ in range(6):
        n = int(rng.integers(1, 60))
        x = np.sort(score + rng.integers(0, max(1, n // 3), n)).astype(float)
        y = KINDS_OF_TARGETS[rng.choice(list(KINDS_OF_TARGETS))](rng, n)
        w = KINDS_OF_WEIGHTS[rng.choice(list(KINDS_OF_WEIGHTS))](rng, n)
        score = x[-1] + (rng.random() < 0.5)
        if rng.random() < 0.7:
            online.extend(x, y, sample_weight=w)
        else:
            for row in zip(x, y, np.ones(n) if w is None else w, strict=True):
                online.append(*row)
        parts.append((x, y, np.ones(n) if w is None else w))
        columns = [np.concatenate(part) for part in zip(*parts, strict=True)]
        if columns[2].any():
            assert_same_staircase(
                online.staircase(), sf.fit(*columns[:2], sample_weight=columns[2], increasing=increasing)
            )


def test_rows_without_weights_count_fully_after_some_with_fine_weights():
    online = sf.Online()
    online.extend([1], [0.5], sample_weight=[0.3])
    online.extend([2, 2, 2, 2], [0.6, 0.7, 0.8, 0.9])
    assert online.staircase().weights.tolist() == [0.3, 4]
    assert online.staircase().values.tolist() == [0.5, 0.75]
    online = sf.Online()
    online.extend([3], [0.0], sample_weight=[5e-324])
    online.extend([5] * 4, [0, 0, 0, 0.25])
    assert online.staircase().values.tolist() == [0, 0.0625]


def test_integers_beyond_float64_are_exact_in_append_and_extend():
    y = [2**53 + 1, 2**53 + 1, 2**53 + 3, 2**62 + 1]
    one, many = sf.Online(), sf.Online()
    for i, target in enumerate(y):
        one.append(i // 3, target)
    many.extend([0, 0, 0, 1], np.array(y))
    batch = sf.fit([0, 0, 0, 1], np.array(y))
    for online in (one, many):
        assert_same_staircase(online.staircase(), batch)
    assert batch.values[0] == float(Fraction(sum(y[:3]), 3))


def test_poisson_rates_that_become_equal_are_one_step():
    first = 1.5
    while first / 3 != math.nextafter(first, 2) / 3:
        first = math.nextafter(first, 2)
    y, w = [first, math.nextafter(first, 2), 9.0], [0.1, 0.7, 0.3]
    loss = L.PoissonDeviance(3.0)
    online = sf.Online(loss)
    online.extend([1, 2, 3], y, w)
    assert online.n_steps == 2
    assert_same_staircase(online.staircase(), sf.fit([1, 2, 3], y, sample_weight=w, loss=loss))
    assert online.staircase().weights[0] == float(Fraction(0.1) + Fraction(0.7))


def test_poisson_rates_that_overflow_are_refused_as_in_a_batch():
    loss = L.PoissonDeviance(1e-300)
    online = sf.Online(loss)
    online.append(1, 1e300)
    for compute in (online.staircase, lambda: sf.fit([1], [1e300], loss=loss)):
        with pytest.raises(ValueError, match="`targets` over exposures must be in the range of float64"):
            compute()


# Kinds of arrays and scores


@pytest.mark.parametrize("loss", ["squared", L.Linex(1.0), L.UpdateRule(mean)])
def test_a_negative_zero_becomes_zero(loss):
    online = sf.Online(loss)
    online.extend([-0.0, 1.0], [1.0, 2.0])
    stairs = online.staircase()
    assert not np.signbit(stairs.left).any()
    assert not np.signbit(stairs.right).any()


def test_scores_may_be_infinite_and_zeros_are_equal():
    online = sf.Online()
    online.extend([-np.inf, -1.0, -0.0], [3.0, 1.0, 4.0])
    online.append(0.0, 8.0)
    online.append(math.inf, 7.0)
    online.append(math.inf, 5.0)
    batch = sf.fit([-np.inf, -1.0, -0.0, 0.0, np.inf, np.inf], [3.0, 1.0, 4.0, 8.0, 7.0, 5.0])
    assert_same_staircase(online.staircase(), batch)
    assert not np.signbit(online.staircase().left[online.staircase().left == 0]).any()


@pytest.mark.parametrize(
    "change",
    [
        lambda column: column.astype(np.float32),
        lambda column: column.astype(np.int32),
        lambda column: column.astype(np.int8),
        lambda column: column.astype(bool),
        lambda column: column.astype(">f8"),
        lambda column: np.repeat(column, 3)[::3],
        lambda column: column.tolist(),
    ],
)
def test_arrays_of_all_kinds_are_taken(change):
    x, y = np.arange(100.0), np.random.default_rng(7).integers(0, 2, 100).astype(float)
    y.setflags(write=False)
    online, kept = sf.Online(), y.copy()
    online.extend(x, change(y))
    online.extend(x + 100, change(y), change(np.ones(100)))
    assert_same_staircase(online.staircase(), sf.fit(np.arange(200.0), np.append(y, y)))
    assert y.tolist() == kept.tolist()


def test_float32_scores_are_compared_as_they_are():
    x = np.array([0.1, 0.1, 0.2], dtype=np.float32)
    online = sf.Online()
    online.extend(x, [1, 0, 1])
    online.append(x[2], 0)
    assert_same_staircase(online.staircase(), sf.fit(np.append(x, x[2]), [1, 0, 1, 0]))


@pytest.mark.parametrize("loss", ["squared", L.Linex(1.0), L.UpdateRule(mean)])
def test_no_rows_and_rows_of_weight_0_change_nothing(loss):
    online = sf.Online(loss)
    online.extend([], [])
    online.extend([5, 1], [1.0, 2.0], [0, 0])
    online.append(7, 1, 0)
    assert (online.n_samples, online.n_steps, online.n_merges) == (0, 0, 0)
    with pytest.raises(ValueError, match="a staircase must have at least one row; none of weight > 0 has arrived"):
        online.staircase()
    with pytest.raises(ValueError, match="at least one row"):
        online.predict([1])
    online.extend([3, 9, 4], [1.0, 2.0, 3.0], [1, 0, 2])
    assert online.n_samples == 2
    assert online.staircase().right.tolist() == [3.0, 4.0]


# Invalid input


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ((1.5, 0), "`score` must be >= 2.0, the newest one; got 1.5"),
        ((math.nan, 0), "`score` must not be NaN; got nan"),
        ((2**53 + 1, 0), f"`score` must be integers that float64 holds exactly; got {2**53 + 1}"),
        ((3, math.nan), "`target` must be finite; got nan"),
        ((3, math.inf), "`target` must be finite; got inf"),
        ((3, 1.5), r"`target` must be in \[0, 1\] for log_loss; got 1.5"),
        ((3, 1, -1.5), "`sample_weight` must be >= 0; got -1.5"),
        ((3, 1, math.inf), "`sample_weight` must be finite; got inf"),
        ((10**400, 1), "`score` must be within float64; got 1000"),
        ((3, 10**400), "`target` must be within float64; got 1000"),
        ((3, 1, 10**400), "`sample_weight` must be within float64; got 1000"),
    ],
)
def test_a_bad_row_is_refused_by_name_and_value(row, message):
    online = sf.Online("log")
    online.extend([1, 2], [0, 1])
    before = online.to_json()
    with pytest.raises(ValueError, match=message):
        online.append(*row)
    assert online.to_json() == before


@pytest.mark.parametrize(
    "row",
    [
        ("a", 0), (1, "0"), (1, 0, "1"), ([1], 0), (1, None), (1, 0, 1j), (np.complex128(1 + 2j), 0),
        (np.ma.masked, 0), (1, 0, np.ma.masked),
    ],
)  # fmt: skip
def test_values_that_are_not_numbers_are_refused(row):
    online = sf.Online()
    with pytest.raises(TypeError, match="must be a number; got"):
        online.append(*row)
    assert online.n_samples == 0


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (([3, 5, 4], [0, 1, 0]), "`scores` must be >= 5.0, the one before it; got 4.0 at index 2"),
        (([1, 5], [0, 1]), "`scores` must be >= 2.0, the newest one; got 1.0 at index 0"),
        (([9, 3, 5, 9, 4], [0] * 5, [0, 1, 1, 0, 1]), "`scores` must be >= 5.0, the one before it; got 4.0 at index 4"),
        (([5, 4, 3], [0, 1, 0]), "`scores` must be >= 5.0, the one before it; got 4.0 at index 1"),
        (([3, math.nan], [0, 1]), "`scores` must not be NaN; got nan at index 1"),
        (([3, 4], [0, 2]), r"`targets` must be in \[0, 1\] for log_loss; got 2 at index 1"),
        (([3, 4], [0, math.nan]), "`targets` must be finite; got nan at index 1"),
        (([3, 4], [0, 2], [0, 0]), r"`targets` must be in \[0, 1\] for log_loss; got 2 at index 1"),
        (([3, 4], [0, 1], [1, -1.5]), "`sample_weight` must be >= 0; got -1.5 at index 1"),
        (([3, 4], [0, 1, 1]), "`scores` and `targets` must have one entry per row; got 2 and 3 entries"),
        (([3, 4], [0, 1], [1]), "`scores` and `sample_weight` must have one entry per row; got 2 and 1 entries"),
    ],
)
def test_if_one_row_is_invalid_none_is_added(columns, message):
    online = sf.Online("log")
    online.append(1, 0)
    online.append(2, 1)
    with pytest.raises(ValueError, match=message):
        online.extend(*columns)
    assert online.n_samples == 2
    online.append(2, 1)
    assert_same_staircase(online.staircase(), sf.fit([1, 2, 2], [0, 1, 1], loss="log"))


@pytest.mark.parametrize("loss", ["squared", L.Linex(1.0), L.UpdateRule(mean)])
def test_weights_whose_sum_overflows_are_refused(loss):
    online = sf.Online(loss)
    online.append(1, 1, 1e308)
    for refused in (lambda: online.append(2, 1, 1e308), lambda: online.extend([2, 3], [1, 1], [1.0, 1e308])):
        with pytest.raises(ValueError, match="`sample_weight` must have a finite sum"):
            refused()
    online.append(2, 3, 1.0)
    assert online.n_samples == 2
    assert online.staircase().weights.tolist() == [1e308, 1.0]


@pytest.mark.parametrize(
    "loss",
    [
        *("huber", "quantile", "expectile", "logistic", "log_cosh", L.Power(3.0), L.Custom(lambda z, y: z - y)),
        *(L.Linex([1.0, 2.0]), L.PoissonDeviance([1.0, 2.0]), L.PoissonDeviance([2.0, 2.0])),
    ],
)
def test_losses_without_an_update_rule_are_refused(loss):
    with pytest.raises(ValueError, match=r"`loss` must have an update rule: squared, log, .*Linex.*UpdateRule; got "):
        sf.Online(loss)


def test_other_arguments_are_checked():
    with pytest.raises(ValueError, match="`increasing` must be True or False; got 'auto'"):
        sf.Online(increasing="auto")
    with pytest.raises(ValueError, match="`loss` must be one of"):
        sf.Online("square")
    online = sf.Online()
    online.append(1, 1)
    with pytest.raises(ValueError, match="`interpolation` must be one of"):
        online.predict([1], interpolation="cubic")


def test_if_a_rule_raises_the_rows_before_the_call_remain():
    def merge(y1, w1, y2, w2):
        if w1 + w2 > 4:
            raise ZeroDivisionError("enough")
        return mean(y1, w1, y2, w2)

    online = sf.Online(L.UpdateRule(merge))
    online.extend([1, 2, 3], [5.0, 4.0, 3.0])
    for refused in (lambda: online.append(4, 0.0, 2.0), lambda: online.extend([4, 5, 6], [9.0, 0.0, -9.0])):
        with pytest.raises(ZeroDivisionError, match="enough"):
            refused()
        assert online.n_samples == 3
        assert online.staircase().values.tolist() == [4.0]
    online.append(4, 9.0)
    assert online.staircase().values.tolist() == [4.0, 9.0]


def test_rounded_sums_are_computed_when_targets_become_larger():
    """Below 1e-70 only exact sums are maintained.  After a larger target, sums in doubles are compared first."""
    rows = [(1, 1e-80, 100.0), (2, 2e-80, 1.0), (3, -5.0, 1.0), (4, -1.0, 1.0)]
    online = sf.Online()
    for row in rows:
        online.append(*row)
        online.staircase()
    x, y, w = zip(*rows, strict=True)
    assert_same_staircase(online.staircase(), sf.fit(x, y, sample_weight=w))


def test_float32_scores_may_follow_a_score_beyond_float32():
    online = sf.Online()
    online.append(1.7976931348623157e308, 1.0)
    online.extend(np.array([np.inf], dtype=np.float32), [2.0])
    assert online.staircase().left.tolist() == [1.7976931348623157e308, np.inf]
