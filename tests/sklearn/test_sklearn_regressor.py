"""StaircaseRegressor: agreement with scikit-learn's IsotonicRegression, batches, and invalid input."""

import threading

import numpy as np
import pandas as pd
import pytest
from comparing import assert_same_bits
from sklearn.exceptions import NotFittedError
from sklearn.isotonic import IsotonicRegression

import staircase_fast as sf
from staircase_fast.sklearn import StaircaseRegressor


def noisy(n=500, dtype=np.float64, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=n).round(2).astype(dtype)
    return X, (X + rng.normal(size=n)).astype(dtype), rng.integers(0, 4, n).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"increasing": False},
        {"increasing": "auto"},
        {"y_min": -0.5, "y_max": 0.7, "out_of_bounds": "clip"},
        {"y_max": 0.1, "out_of_bounds": "clip"},
        {"y_min": 9.0},
    ],
    ids=str,
)
def test_attributes_and_predictions_are_those_of_scikit_learn(parameters, weighted, dtype):
    X, y, weights = noisy(dtype=dtype)
    weights = weights if weighted else None
    ours = StaircaseRegressor(**parameters).fit(X, y, weights)
    theirs = IsotonicRegression(**parameters).fit(X, y, weights)
    rough = 1e-12 if dtype == np.float64 else 1e-5
    assert ours.X_thresholds_.tolist() == theirs.X_thresholds_.tolist()
    for name in ("y_thresholds_", "X_min_", "X_max_"):
        assert getattr(ours, name) == pytest.approx(getattr(theirs, name), rel=rough)
        assert getattr(ours, name).dtype == getattr(theirs, name).dtype == dtype
    assert ours.increasing_ == theirs.increasing_
    queries = np.append(np.linspace(-6, 6, 300), X).astype(dtype)
    assert ours.predict(queries) == pytest.approx(theirs.predict(queries), rel=rough, abs=rough, nan_ok=True)
    assert ours.predict(queries).dtype == theirs.predict(queries).dtype
    inside = queries[(queries >= X.min()) & (queries <= X.max())]
    assert ours.f_(inside) == pytest.approx(ours.predict(inside), rel=rough, nan_ok=True)
    if "out_of_bounds" in parameters:
        assert ours.score(X, y) == pytest.approx(theirs.score(X, y))


def test_scores_that_scikit_learn_pools_stay_distinct():
    X = np.array([1.0, 2.0, 3.0, 4.0]) * 1e-20
    assert len(IsotonicRegression().fit(X, [1, 2, 3, 4]).X_thresholds_) == 1
    assert StaircaseRegressor().fit(X, [1, 2, 3, 4]).predict(X).tolist() == [1, 2, 3, 4]


def test_float64_queries_of_a_float32_fit_are_converted_to_float32():
    X = np.array([0.1, 0.7], dtype=np.float32)
    assert StaircaseRegressor().fit(X, [1, 2]).predict([0.1, 0.7]).tolist() == [1, 2]


def polars_series(values):
    return pytest.importorskip("polars").Series(values)


@pytest.mark.parametrize("kind", [list, np.asarray, pd.Series, polars_series, lambda x: np.asarray(x)[:, None]])
@pytest.mark.parametrize("dtype", [bool, np.int8, np.uint16, np.float16, np.int64, ">f8"])
def test_columns_of_any_type_give_the_same_staircase(kind, dtype):
    X, y = [3, 1, 2, 2, 5], np.array([1, 0, 1, 0, 1])
    model = StaircaseRegressor().fit(kind(X), list(y.astype(dtype)) if kind is list else y.astype(dtype))
    assert model.staircase_ == sf.fit(X, y)
    assert model.predict(kind([2, 3])).tolist() == [0.5, 1.0]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("way", ["fit", "partial_fit"])
def test_values_that_overflow_float32_are_float64(way):
    X = np.array([1, 2, 3], dtype=np.float32)
    model = getattr(StaircaseRegressor(), way)(X, [-1e300, 1.0, 1e39])
    assert model.predict(X).tolist() == model.y_thresholds_.tolist() == [-1e300, 1.0, 1e39]
    assert model.predict(X[:1]).dtype == model.predict(X[1:2]).dtype == np.float64
    assert model.X_thresholds_.dtype == np.float32
    held = getattr(StaircaseRegressor(y_max=1.0, out_of_bounds="clip"), way)(X, [-1e38, 1e-300, 1e39])
    assert held.predict(X).dtype == held.y_thresholds_.dtype == np.float32


def test_inputs_are_neither_modified_nor_shared():
    X, y, weights = noisy()
    for column in (X, y, weights):
        column.setflags(write=False)
    model = StaircaseRegressor().fit(X[::2], y[::2], weights[::2])
    assert model.staircase_ == sf.fit(X[::2].copy(), y[::2].copy(), sample_weight=weights[::2].copy())
    for name in ("left", "right", "values", "weights"):
        for column in (X, y, weights):
            assert not np.shares_memory(getattr(model.staircase_, name), column)


@pytest.mark.parametrize("interpolation", ["step", "linear", "centered"])
def test_the_interpolation_is_the_one_of_the_staircase(interpolation):
    X, y, _ = noisy()
    model = StaircaseRegressor(interpolation=interpolation, loss="huber", n_threads=1).fit(X, y)
    assert_same_bits(model.predict(X), sf.fit(X, y, loss="huber").predict(X, interpolation=interpolation))


def test_a_loss_object_can_have_one_parameter_per_row():
    X, y, _ = noisy(50)
    loss = sf.losses.Huber(np.linspace(0.5, 2, 50))
    assert StaircaseRegressor(loss=loss).fit(X, y).staircase_ == sf.fit(X, y, loss=loss)


@pytest.mark.parametrize("parameters", [{}, {"loss": "quantile"}, {"y_max": 0.3}, {"increasing": False}], ids=str)
def test_batches_equal_one_fit_of_all_rows(parameters):
    X, y, weights = noisy()
    whole, parts = (StaircaseRegressor(**parameters) for _ in range(2))
    for start in range(0, 500, 100):
        rows = slice(start, start + 100)
        parts.partial_fit(X[rows, np.newaxis], y[rows], weights[rows])
        whole.fit(X[: start + 100], y[: start + 100], weights[: start + 100])
        assert parts.staircase_ == whole.staircase_
    assert_same_bits(parts.predict(X), whole.predict(X))
    assert parts.fit(X[:9], y[:9]).staircase_ == whole.fit(X[:9], y[:9]).staircase_  # which forgets the rest


def test_batches_of_float32_and_float64_give_float64():
    X, y, _ = noisy(dtype=np.float32)
    model = StaircaseRegressor().partial_fit(X, y)
    assert model.predict(X).dtype == np.float32
    assert model.partial_fit(X.astype(float), y).predict(X).dtype == np.float64
    assert model.partial_fit(X, y).predict(X).dtype == np.float64


def test_columns_of_batches_must_have_one_name():
    frame = pd.DataFrame({"age": [1.0, 2.0]})
    model = StaircaseRegressor().partial_fit(frame, [1, 2])
    with pytest.raises(ValueError, match="feature names"):
        model.partial_fit(frame.rename(columns={"age": "size"}), [1, 2])
    assert model.partial_fit(frame, [3, 4]).staircase_.counts.sum() == 4


def test_an_invalid_batch_changes_nothing():
    model = StaircaseRegressor(loss="log").partial_fit([1, 2], [0, 1])
    with pytest.raises(ValueError, match=r"`y` must be in \[0, 1\] for log_loss; got 7 at index 1"):
        model.partial_fit([1, 3], [0, 7])
    assert model.staircase_ == sf.fit([1, 2], [0, 1], loss="log")
    before = vars(model).copy()
    with pytest.raises(ValueError, match="`y` must be in"):
        model.fit(pd.DataFrame({"a": [1, 3]}), [0, 7])
    assert vars(model) == before


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"loss": "huber"}, r"`loss` must stay SquaredError\(\) from one `partial_fit` to the next; got Huber"),
        ({"increasing": False}, "`increasing` must stay True from one `partial_fit` to the next; got False"),
        ({"increasing": "auto"}, "`increasing` must be True or False; got 'auto'"),
    ],
)
def test_parameters_must_not_change_between_batches(parameters, message):
    model = StaircaseRegressor().partial_fit([1, 2], [1, 2]).set_params(**parameters)
    with pytest.raises(ValueError, match=message):
        model.partial_fit([1, 2], [1, 2])


def test_partial_fit_cannot_follow_fit():
    with pytest.raises(ValueError, match="`partial_fit` must not follow `fit`"):
        StaircaseRegressor().fit([1, 2], [1, 2]).partial_fit([3], [3])


@pytest.mark.parametrize(
    ("rows", "error", "message"),
    [
        (([1, np.nan], [1, 2]), ValueError, "Input X contains NaN"),
        (([1, np.inf], [1, 2]), ValueError, "Input X contains infinity"),
        (([1, 2], [1, np.nan]), ValueError, "Input y contains NaN"),
        (([], []), ValueError, "0 sample"),
        (([1, 2], None), ValueError, "the target y is None"),
        (([1, 2], [1, 2, 3]), ValueError, "inconsistent numbers of samples"),
        (([[1, 2]], [1]), ValueError, r"2d array with 1 feature; got shape \(1, 2\)"),
        (([1, 2], [1, 2], [1, -1.5]), ValueError, r"`sample_weight` must be >= 0; got -1.5 at index 1"),
    ],
)
@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_invalid_rows_raise_the_errors_of_scikit_learn(rows, error, message, method):
    model = StaircaseRegressor()
    with pytest.raises(error, match=message):
        getattr(model, method)(*rows)
    with pytest.raises(NotFittedError):
        model.predict([1])
    assert not hasattr(model, "X_thresholds_")


def test_zero_weights_are_refused_by_fit_but_not_by_partial_fit():
    with pytest.raises(ValueError, match="`sample_weight` must have an entry > 0; all 2 are zero"):
        StaircaseRegressor().fit([1, 2], [1, 2], [0, 0])
    model = StaircaseRegressor().partial_fit([1, 2], [1, 2], [0, 0])
    with pytest.raises(ValueError, match="row"):
        model.predict([1])
    assert model.partial_fit([3], [4]).predict([3]) == 4


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"y_min": 2, "y_max": 1}, ValueError, r"`y_min` and `y_max` must be a pair with lo <= hi .*; got \(2, 1\)"),
        ({"y_min": np.nan}, ValueError, r"`y_min` and `y_max` must be a pair with lo <= hi .*; got \(nan, None\)"),
        ({"y_max": "much"}, TypeError, r"`y_min` and `y_max` must be .* numbers or None; got \(None, 'much'\)"),
        ({"out_of_bounds": "warn"}, ValueError, "`out_of_bounds` must be one of .*; got 'warn'"),
        ({"interpolation": "cubic"}, ValueError, "`interpolation` must be one of .*'centered'; got 'cubic'"),
        ({"loss": "cubed"}, ValueError, "`loss` must be one of .*; got 'cubed'"),
        ({"increasing": "up"}, ValueError, "`increasing` must be .*; got 'up'"),
        ({"loss": "logistic"}, ValueError, "`y_min` and `y_max` must be finite here"),
        ({"n_threads": 0}, ValueError, "`n_threads` must be an integer >= 1"),
    ],
)
def test_invalid_parameters_are_refused_by_fit(parameters, error, message):
    with pytest.raises(error, match=message):
        StaircaseRegressor(**parameters).fit([1, 2], [0, 1])


@pytest.mark.parametrize(("query", "side"), [(-0.5, "below"), (7.5, "above")])
def test_a_query_out_of_bounds_raises_an_error_that_names_it(query, side):
    model = StaircaseRegressor(out_of_bounds="raise").fit([0, 7], [1, 2])
    with pytest.raises(ValueError, match=rf"`T` must be in \[0.0, 7.0\].*; got {query} at .* 1.*in x_new is {side}"):
        model.predict([3, query])


def test_an_error_in_a_user_defined_loss_is_not_changed():
    def broken(z, y):
        raise ValueError(z, "no derivative")

    with pytest.raises(ValueError, match="no derivative") as caught:
        StaircaseRegressor(loss=sf.losses.Custom(broken)).fit([1, 2], [2, 1])
    assert isinstance(caught.value.args[0], np.ndarray)


def test_threads_can_share_a_fitted_regressor():
    X, y, _ = noisy()
    model, found = StaircaseRegressor().partial_fit(X, y), []
    workers = [threading.Thread(target=lambda: found.append(model.predict(X))) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    for values in found:
        assert_same_bits(values, found[0])
    assert len(found) == 4
