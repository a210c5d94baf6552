"""Few rows take one compiled call, with the same result as the general path."""

from unittest import mock

import numpy as np
import pytest
from comparing import assert_same_bits, assert_same_staircase, assert_steps
from hypothesis import given
from hypothesis import strategies as st
from reference import fitted_steps
from strategies import SCORES, TARGETS, WEIGHTS, kinds, rows

import staircase_fast as sf
from staircase_fast import fitting
from staircase_fast.arithmetic.exact import scale_of
from staircase_fast.losses import LogLoss, SquaredError
from staircase_fast.losses.rows import check_rows
from staircase_fast.stack import _small, sorted_rows, sorting

UNBOUNDED = (-np.inf, np.inf)
# rows that the short path accepts: no integers beyond 2**53, and no weights whose sum may overflow
ORDINARY = rows(
    targets=kinds(TARGETS, "labels", "plateaus", "integers", "decimals", "neighbours"),
    weights=kinds(WEIGHTS, "one", "decimals", "neighbours"),
)
# rows of every kind; half of them have ties and integer targets, which other types than float64 can hold
EVERY_KIND = rows() | rows(
    scores=kinds(SCORES, "ties", "zeros of both signs", "infinities"),
    targets=kinds(TARGETS, "labels", "integers", "big integers"),
)
FLOATS = st.sampled_from([np.float64, np.float32])
TYPES = st.sampled_from([np.float64, np.float32, np.int64, np.int32, np.int8, np.uint8])


def as_type(column, dtype, *, strided):
    """The column in another type, if that changes no entry; if `strided`, with gaps in memory."""
    with np.errstate(all="ignore"):
        converted = column.astype(dtype)
    if not np.array_equal(converted, column):
        converted = column
    return np.repeat(converted, 2)[::2] if strided else converted


def general_path():
    return mock.patch.object(fitting, "_small", mock.Mock(fit=lambda *_: None, regress=lambda *_: None))


def few(scores, targets, weights, *, decreasing=False, bounds=UNBOUNDED, loss=None):
    table = _small.fit(scores, targets, weights, *(loss or SquaredError()).target_range, decreasing, *bounds)
    return None if table is None else [*table[:4], table[4].view(np.int64)]


def few_in_order(targets, weights, *, decreasing=False):
    return _small.regress(targets, weights, *SquaredError().target_range, decreasing)


def many(scores, targets, weights, *, decreasing, bounds):
    columns = check_rows(scores, targets, weights, SquaredError(), 1)
    scale = scale_of(columns.targets_extent, columns.weights_extent, len(columns.scores))
    return sorted_rows.fit_sorted(sorting.in_score_order(columns), scale, decreasing=decreasing, bounds=bounds)


@given(ORDINARY, st.booleans(), st.sampled_from([UNBOUNDED, (0.0, 1.0)]))
def test_the_short_path_gives_the_same_staircase(rows, decreasing, bounds):
    found = few(*rows, decreasing=decreasing, bounds=bounds)
    assert found is not None
    for one, other in zip(found, many(*rows, decreasing=decreasing, bounds=bounds)[:5], strict=True):
        assert_same_bits(one, other + 0)


@given(EVERY_KIND, FLOATS, TYPES, st.booleans(), st.booleans(), st.sampled_from([None, (0.0, 1.0)]))
def test_both_paths_fit_the_same_staircase_to_rows_of_every_kind(rows, floats, number, strided, increasing, bounds):
    x, y = as_type(rows.scores, floats, strided=strided), as_type(rows.targets, number, strided=strided)
    options = {"increasing": increasing, "bounds": bounds}
    for w in (as_type(rows.weights, np.float64, strided=strided), None):
        found = sf.fit(x, y, sample_weight=w, **options)
        with general_path():
            assert_same_staircase(found, sf.fit(x, y, sample_weight=w, **options))


@given(EVERY_KIND, TYPES, st.booleans(), st.booleans())
def test_both_paths_give_the_same_regression_of_rows_of_every_kind(rows, number, strided, increasing):
    y = as_type(rows.targets, number, strided=strided)
    for w in (as_type(rows.weights, np.float64, strided=strided), None):
        found = sf.isotonic_regression(y, weights=w, increasing=increasing)
        with general_path():
            expected = sf.isotonic_regression(y, weights=w, increasing=increasing)
        for one, other in zip(found, expected, strict=True):
            assert_same_bits(one, other)


ORDERS = {
    "sorted": lambda _rng, x: x,
    "two swapped": lambda _rng, x: np.concatenate([x[1::-1], x[2:]]),
    "1 % moved": lambda rng, x: x[np.argsort(np.arange(len(x)) + 9 * (rng.random(len(x)) < 0.01))],
    "the first is last": lambda _rng, x: np.roll(x, -1),  # one fall, many moves
    "two halves": lambda _rng, x: np.roll(x, len(x) // 2),  # insertion must give up
    "shuffled": lambda rng, x: rng.permutation(x),
}
COLUMNS = {
    "labels": lambda rng, n: ((rng.random(n) < np.linspace(0, 1, n)).astype(float), None),
    "noise": lambda rng, n: (np.linspace(0, 1, n) + rng.normal(size=n), None),
    "little noise": lambda rng, n: (np.linspace(0, 1, n) + rng.normal(size=n) * 1e-4, None),
    "weighted noise": lambda rng, n: (np.linspace(0, 1, n) + rng.normal(size=n), 1 - rng.random(n)),
    "weighted labels": lambda rng, n: ((rng.random(n) < 0.3).astype(float), 1 - rng.random(n)),
    "weights 0": lambda rng, n: (rng.normal(size=n), (1 - rng.random(n)) * (rng.random(n) < 0.9)),
    "walk": lambda rng, n: (np.cumsum(np.round(rng.normal(size=n), 1)), None),
}


@pytest.mark.parametrize("columns", COLUMNS)
@pytest.mark.parametrize("order", ORDERS)
def test_sorted_and_nearly_sorted_rows_have_the_staircase_of_the_reference(order, columns):
    rng = np.random.default_rng(9)
    for n in (2, 17, 100, 600):
        for digits in (2, 9):  # with and without many ties
            x = ORDERS[order](rng, np.sort(rng.random(n).round(digits)))
            y, w = COLUMNS[columns](rng, n)
            y = y[np.argsort(np.argsort(x, kind="stable"))]
            given_columns = x.tolist(), y.tolist(), [1.0] * n if w is None else w.tolist()
            for increasing in (True, False):
                stairs = sf.fit(x, y, sample_weight=w, increasing=increasing)
                expected = fitted_steps(
                    given_columns[0], [v if increasing else -v for v in y.tolist()], given_columns[2]
                )
                if not increasing:
                    stairs = sf.Staircase(
                        stairs.left, stairs.right, -stairs.values + 0.0, stairs.weights, stairs.counts
                    )
                assert_steps(stairs, expected)


SCORES_OF_KEYS = {
    "uniform": lambda rng, n: rng.random(n),
    "ties": lambda rng, n: rng.integers(0, n // 3, n).astype(float),
    "infinities": lambda rng, n: np.where(rng.random(n) < 0.1, np.inf, -1e308 * rng.random(n)),
    "all magnitudes": lambda rng, n: rng.choice([-1, 1], n) * 10.0 ** rng.uniform(-320, 308, n),  # no bit for a label
    "neighbours": lambda rng, n: 1 + rng.integers(0, n, n) * 2.0**-52,
    "neighbours and an outlier": lambda rng, n: np.append(1 + rng.permutation(n - 1) * 2.0**-52, 1e300),
    "zeros of both signs": lambda rng, n: rng.choice([-0.0, 0.0, 1.0, -1.0, 5e-324], n),
}


@pytest.mark.parametrize("increasing", [True, False])
@pytest.mark.parametrize("columns", COLUMNS)
@pytest.mark.parametrize("scores", SCORES_OF_KEYS)
def test_keys_that_numpy_sorts_give_the_same_staircase(scores, columns, increasing, monkeypatch):
    rng = np.random.default_rng(19)
    for n in (2 * _small.FEWEST_KEYS, 5000):
        x = SCORES_OF_KEYS[scores](rng, n)
        y, w = COLUMNS[columns](rng, n)
        y = y[np.argsort(np.argsort(x, kind="stable"))]
        found = []
        for fast in (True, False):
            calls = mock.Mock(return_value=fast)
            monkeypatch.setattr(sorting, "numpy_sorts_fast", calls)
            found.append(few(x, y, w, decreasing=not increasing))
            assert calls.called
        for one, other in zip(*found, strict=True):
            assert_same_bits(one, other)


@given(rows())
def test_the_general_path_fits_few_rows(rows):
    columns = check_rows(*rows, SquaredError(), 1)
    scale = scale_of(columns.targets_extent, columns.weights_extent, len(columns.scores))
    steps = sorted_rows.fit_sorted(sorting.in_score_order(columns), scale, decreasing=False, bounds=UNBOUNDED)
    stairs = sf.Staircase._of_steps(steps, SquaredError(), True)
    assert_steps(stairs, fitted_steps(*rows.lists()))


@given(ORDINARY, st.booleans())
def test_the_short_path_gives_the_same_regression(rows, decreasing):
    found = few_in_order(rows.targets, rows.weights, decreasing=decreasing)
    assert found is not None
    scores = np.arange(float(rows.targets.size))
    steps = many(scores, rows.targets, rows.weights, decreasing=decreasing, bounds=UNBOUNDED)
    assert_same_bits(found[0], np.repeat(steps.values, steps.counts))
    assert_same_bits(found[1], steps.weights)
    assert found[2].tolist() == [*steps.left, rows.targets.size]


@pytest.mark.parametrize("over", [-1, 0, 1])
@pytest.mark.parametrize("labels", [True, False])
def test_both_paths_are_exact_around_the_limit(labels, over):
    n = over + (_small.MOST_LABELS if labels else _small.MOST_ROWS)
    rng = np.random.default_rng(n)
    x, y = rng.random(n), rng.normal(size=n)
    y = y < x if labels else y
    assert (few(x, y, None) is None) == (over > 0)
    assert_steps(sf.fit(x, y), fitted_steps(x.tolist(), y.tolist()))


@pytest.mark.parametrize(
    ("scores", "targets", "weights"),
    [
        ([0.0, np.nan], [0.0, 1.0], None),
        ([0.0, 1.0], [0.0, np.inf], None),
        ([0.0, 1.0], [0.0, np.nan], None),
        ([0.0, 1.0], [0.0, 1.0], [1.0, np.nan]),
        ([0.0, 1.0], [0.0, 1.0], [1.0, -1.0]),
        ([0.0, 1.0], [0.0, 1.0], [0.0, 0.0]),
        ([0.0, 1.0], [0.0, 1.0], [1e308, 1e308]),
        ([0.0, 1.0], [0.0, 2.0**53], None),
        ([0.0, 1.0], [0, 1], [1, 2**53 + 1]),
        ([0.0, 1.0], [np.nan, 1.0], [0.0, 1.0]),
    ],
)
def test_invalid_and_unusual_rows_take_the_general_path(scores, targets, weights):
    columns = [None if column is None else np.array(column) for column in (scores, targets, weights)]
    assert few(*columns) is None
    if not np.isnan(scores).any():
        assert few_in_order(columns[1], columns[2]) is None


def test_targets_outside_the_range_of_the_loss_take_the_general_path():
    assert few(np.array([0.0, 1.0]), np.array([0.0, 1.5]), None, loss=LogLoss()) is None


def test_integers_beyond_the_precision_of_doubles_are_not_rounded():
    targets = np.array([2**53 + 1, 2**53])
    stairs = sf.fit([0, 1], targets)
    assert stairs.n_steps == 1
    assert stairs.counts.tolist() == [2]


@pytest.mark.parametrize(
    ("scores", "is_few"),
    [
        (lambda rng, n: rng.random(n), False),
        (lambda rng, n: np.round(rng.random(n), 3), True),
        (lambda rng, n: np.where(rng.random(n) < 0.5, 0.5, rng.random(n)), True),
        (lambda rng, n: np.sort(rng.random(n)), True),
    ],
)
def test_many_labels_take_the_short_path_if_scores_are_sorted_or_tied(scores, is_few):
    n = _small.MOST_LABELS + 1
    rng = np.random.default_rng(0)
    x = scores(rng, n)
    assert (few(x, rng.random(n) < 0.5, None) is not None) == is_few
