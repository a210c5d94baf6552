"""fit_columns: each staircase equals the fit of its column, to the last bit."""

import numpy as np
import pandas as pd
import pytest
from comparing import assert_same_bits, assert_same_staircase

import staircase_fast as sf
from staircase_fast import threads
from staircase_fast.stack import survey

RNG = np.random.default_rng(31)
N, K = 200, 4
X = np.round(RNG.normal(size=(N, K)), 1)
LABELS = np.eye(K)[np.argmax(X + RNG.normal(size=X.shape), axis=1)]
NOISE = X + RNG.normal(size=X.shape)


def check(scores, targets, sample_weight=None, **options):
    found = sf.fit_columns(scores, targets, sample_weight=sample_weight, **options)
    x, y = np.asarray(scores), np.asarray(targets)
    assert list(found) == list(range(x.shape[1]))
    for j in range(x.shape[1]):
        w = sample_weight if np.ndim(sample_weight) < 2 else np.asarray(sample_weight)[:, j]
        assert_same_staircase(found[j], sf.fit(x[:, j], y[:, j], sample_weight=w, **options))
    return found


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("kind", [np.float64, np.float32, ">f8", np.int64])
@pytest.mark.parametrize("increasing", [True, False, "auto"])
@pytest.mark.parametrize("n_threads", [1, 3])
def test_each_column_equals_its_own_fit(order, kind, increasing, n_threads, monkeypatch):
    monkeypatch.setattr(threads, "ROWS_EACH", 50)
    scores = np.asarray(10 * X, dtype=kind, order=order)
    scores.setflags(write=False)
    for targets in (LABELS, LABELS.astype(bool), np.asarray(NOISE, order="F"), NOISE.astype(np.float32)):
        for weights in (None, RNG.integers(0, 3, N) + 0.0, RNG.random((N, K)) + 0.1):
            check(scores, targets, weights, increasing=increasing, n_threads=n_threads)


def test_each_row_has_its_own_parameter_in_every_column():
    check(X, NOISE, loss=sf.losses.Huber(RNG.random(N) + 0.1))
    check(X, NOISE, RNG.integers(0, 3, N) + 0.0, loss=sf.losses.Expectile(RNG.random(N)))


def test_tables_can_be_strided_or_have_one_row_or_column():
    check(np.repeat(X, 2, axis=1)[::2, ::2], NOISE[::2])
    check(X[:, :1], NOISE[:, :1])
    check(X[:1], NOISE[:1])
    check(X.tolist(), LABELS.tolist())


@pytest.mark.parametrize("n_threads", [1, 2])
def test_long_columns_equal_their_own_fits(n_threads, monkeypatch):
    monkeypatch.setattr(survey, "FEW_ROWS", 100)
    check(X, LABELS, n_threads=n_threads)
    check(X, NOISE, RNG.random(N) + 0.5, n_threads=n_threads)


def test_frames_are_tables():
    polars = pytest.importorskip("polars")
    expected = sf.fit_columns(X, LABELS)
    for frame in (pd.DataFrame, lambda table: polars.DataFrame(table, schema=list("abcd"))):
        found = sf.fit_columns(frame(X), frame(LABELS), sample_weight=frame(np.ones_like(X)))
        assert found == expected
        assert_same_bits(found.predict_columns(frame(X)), expected.predict_columns(X))


@pytest.mark.parametrize(
    "loss",
    ["log_cosh", sf.losses.Huber(RNG.random(N) + 0.1), sf.losses.Custom(lambda z, y, a: a * (z - y), (np.ones(N),))],
)
def test_columns_are_fitted_under_any_loss(loss):
    check(X, NOISE, loss=loss)
    check(X, NOISE, loss=loss, bounds=(-1, 1), increasing=False)


def test_predictions_of_a_table_are_those_of_its_columns():
    found = sf.fit_columns(X, NOISE)
    queries = RNG.normal(size=(50, K))
    for options in ({}, {"interpolation": "linear"}, {"out_of_bounds": "nan"}, {"n_threads": 2}):
        got = found.predict_columns(queries, **options)
        assert got.shape == (50, K)
        for j in range(K):
            assert_same_bits(got[:, j], found[j].predict(queries[:, j], **options))
    queries[7, 2] = np.nan
    with pytest.raises(ValueError, match=r"`scores\[:, 2\]` must not be NaN; got nan at index 7"):
        found.predict_columns(queries)
    with pytest.raises(ValueError, match="a column for each of the 4 staircases; got 3"):
        found.predict_columns(queries[:, :3])
    with pytest.raises(ValueError, match=r"`scores` must have rows and columns; got shape \(4,\)"):
        found.predict_columns(queries[0])


def test_predictions_of_a_table_are_the_same_for_any_number_of_threads(monkeypatch):
    monkeypatch.setattr(threads, "ROWS_EACH", 20)
    found = sf.fit_columns(X, NOISE)
    alone = found.predict_columns(X, n_threads=1)
    for n_threads in (2, 3, 9):
        assert_same_bits(found.predict_columns(X, n_threads=n_threads), alone)


@pytest.mark.parametrize(
    ("scores", "targets", "weights", "text"),
    [
        (X[:, 0], NOISE, None, r"`scores` must have rows and columns; got shape \(200,\)"),
        (X, NOISE[:, 0], None, r"`targets` must have rows and columns; got shape \(200,\)"),
        (X, NOISE[:, :2], None, r"`scores` and `targets` must have the same shape; got \(200, 4\) and \(200, 2\)"),
        (X[:0], NOISE[:0], None, r"`scores` must have at least one row and one column; got shape \(0, 4\)"),
        (X[:, :0], NOISE[:, :0], None, r"`scores` must have at least one row and one column; got shape \(200, 0\)"),
        (X, NOISE, np.ones(3), r"`scores` and `sample_weight` must have one entry per row; got 200 and 3 entries"),
        (X, NOISE, np.ones((N, 2)), r"`sample_weight` must have one entry per row, or the shape of `scores`"),
        (X, NOISE, np.ones((N, K, 1)), r"`sample_weight` must have rows and columns; got shape \(200, 4, 1\)"),
    ],
)
def test_tables_of_the_wrong_shape_are_an_error(scores, targets, weights, text):
    with pytest.raises(ValueError, match=text):
        sf.fit_columns(scores, targets, sample_weight=weights)


@pytest.mark.parametrize("targets", [NOISE, LABELS])
def test_the_error_for_an_invalid_entry_names_its_row_and_column(targets):
    for place, value, text in (
        (0, np.nan, r"`scores\[:, 2\]` must not be NaN; got nan at index 7"),
        (1, np.inf, r"`targets\[:, 2\]` must be finite; got inf at index 7"),
        (2, -1.0, r"`sample_weight\[:, 2\]` must be >= 0; got -1.0 at index 7"),
    ):
        given = [X.copy(), targets.copy(), np.ones((N, K))]
        given[place][7, 2] = value
        with pytest.raises(ValueError, match=text):
            sf.fit_columns(given[0], given[1], sample_weight=given[2] if place == 2 else None)
    with pytest.raises(ValueError, match=r"all 200 of group 0 are 0"):
        sf.fit_columns(X, targets, sample_weight=np.zeros(N))
    with pytest.raises(ValueError, match="integers that float64 holds"):
        sf.fit_columns(np.full((N, K), 2**53 + 1), targets)
