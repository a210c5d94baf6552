"""`predict(missing="nan")`: missing scores of every container get NaN, the others their value."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from comparing import assert_same_bits

import staircase_fast as sf

NAN = np.nan
STAIRS = sf.fit([0.1, 0.4, 0.35, 0.8, 2, 7], [0, 0, 1, 1, 2, 3])
MANY = sf.fit(np.arange(300.0), np.arange(300.0))
MAP = sf.fit_groups([1, 2, 1, 2], [0, 1, 3, 2], ["a", "a", "b", "b"])
OPTIONS = [
    {},
    {"interpolation": "linear"},
    {"interpolation": "centered"},
    {"out_of_bounds": "nan"},
    {"out_of_bounds": "nan", "interpolation": "linear"},
]


def expected(stairs, scores, **options):
    """`predict` of the scores that are not NaN, at their places."""
    scores = np.asarray(scores)
    found = np.full(scores.shape, NAN)
    present = ~np.isnan(scores)
    found[present] = stairs.predict(scores[present], **options)
    return found


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("share", [0.001, 0.3, 1.0])
@pytest.mark.parametrize("stairs", [STAIRS, MANY], ids=["few", "many"])
def test_nan_gets_nan_and_all_other_scores_their_value(stairs, share, dtype, options):
    rng = np.random.default_rng(0)
    for ordered in (True, False):
        scores = rng.uniform(-5, 310, 5000).astype(dtype)
        scores = np.sort(scores) if ordered else scores
        scores[rng.random(5000) < share] = NAN
        found = stairs.predict(scores, missing="nan", **options)
        assert_same_bits(found, expected(stairs, scores, **options))
        out = np.empty(5000)
        assert stairs.predict(scores, missing="nan", out=out, n_threads=1, **options) is out
        assert_same_bits(out, found)
        strided = np.empty((5000, 2))[:, 0]
        stairs.predict(scores, missing="nan", out=strided, **options)
        assert_same_bits(strided.copy(), found)


@pytest.mark.parametrize("n_threads", [1, 3])
def test_nan_is_kept_by_all_threads(n_threads):
    rng = np.random.default_rng(1)
    scores = rng.uniform(0, 8, 600_000)
    scores[rng.random(600_000) < 0.01] = NAN
    found = STAIRS.predict(scores, missing="nan", n_threads=n_threads)
    assert_same_bits(found, expected(STAIRS, scores))


@pytest.mark.parametrize("score", [NAN, None, np.float32("nan"), pd.NA])
def test_one_missing_score_gets_nan(score):
    found = STAIRS.predict(score, missing="nan")
    assert isinstance(found, np.float64)
    assert np.isnan(found)
    assert STAIRS.predict(0.5, missing="nan") == STAIRS.predict(0.5)
    assert STAIRS(3, missing="nan") == STAIRS(3)


VALUES = [0.2, None, 0.5, 3.0]
COLUMNS = {
    "list": VALUES,
    "objects": np.array(VALUES, dtype=object),
    "NA among objects": np.array([0.2, pd.NA, 0.5, 3.0], dtype=object),
    "masked": np.ma.masked_array([0.2, 9.0, 0.5, 3.0], [0, 1, 0, 0]),
    "pandas": pd.Series([0.2, NAN, 0.5, 3.0]),
    "pandas with index": pd.Series(VALUES, index=[3, 1, 3, 0], dtype="Float64"),
    "pandas objects": pd.Series(VALUES, dtype=object),
    "pandas index": pd.Index([0.2, NAN, 0.5, 3.0]),
    "pandas array": pd.array(VALUES, dtype="Float64"),
    "pandas arrow": pd.Series(VALUES, dtype=pd.ArrowDtype(pa.float64())),
    "pandas categories": pd.Series(VALUES, dtype="category"),
    "polars": pl.Series(VALUES),
    "polars, both": pl.Series([0.2, NAN, 0.5, 3.0]),
    "arrow": pa.array(VALUES),
    "arrow chunks": pa.chunked_array([VALUES[:1], VALUES[1:]], pa.float64()),
    "arrow dictionary": pa.array(VALUES).dictionary_encode(),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_missing_entries_of_any_container_get_nan(name):
    found = STAIRS.predict(COLUMNS[name], missing="nan")
    assert_same_bits(found, expected(STAIRS, [0.2, NAN, 0.5, 3.0]))
    with pytest.raises(ValueError, match=r"at index 1"):
        STAIRS.predict(COLUMNS[name])


@pytest.mark.parametrize("column", [[None, None], pa.nulls(2), pl.Series([None, None]), pd.array([pd.NA] * 2, "Int64")])
def test_all_entries_may_be_missing(column):
    assert np.isnan(STAIRS.predict(column, missing="nan")).all()


@pytest.mark.parametrize(
    "table",
    [
        [[1, None], [3, 4]],
        np.array([[1.0, NAN], [3.0, 4.0]]),
        np.ma.masked_array([[1, 2], [3, 4]], [[0, 1], [0, 0]]),
        pd.DataFrame({"a": [1, 3], "b": pd.array([None, 4], "Int64")}),
        pl.DataFrame({"a": [1, 3], "b": [None, 4]}),
        pa.table({"a": [1, 3], "b": pa.array([None, 4])}),
    ],
    ids=lambda table: type(table).__module__,
)
def test_tables_keep_their_shape(table):
    scores = [[1.0, NAN], [3.0, 4.0]]
    assert_same_bits(STAIRS.predict(table, missing="nan"), expected(STAIRS, scores))
    columns = sf.fit_columns([[1, 5], [2, 6]], [[0, 3], [1, 2]])
    found = columns.predict_columns(table, missing="nan")
    assert np.isnan(found).tolist() == [[False, True], [False, False]]
    assert_same_bits(found[1], columns.predict_columns([[3, 4]])[0])


def test_integers_stay_exact_and_other_entries_are_checked():
    assert STAIRS.predict([None, 3, True], missing="nan")[1:].tolist() == STAIRS.predict([3, 1]).tolist()
    assert STAIRS.predict(np.array([[1, 2]]), missing="nan").shape == (1, 2)
    with pytest.raises(TypeError, match=r"`scores` must be real numbers; got 'x' at index 2\."):
        STAIRS.predict([None, 0.5, "x"], missing="nan")
    for column in ([None, 2**53 + 1], pd.array([None, 2**53 + 1], "Int64")):
        with pytest.raises(ValueError, match=r"integers that float64 holds exactly; got 9007199254740993 at index 1"):
            STAIRS.predict(column, missing="nan")
    with pytest.raises(ValueError, match="must be one-dimensional"):
        MAP.predict([[1.0]], ["a"], missing="nan")
    with pytest.raises(TypeError, match=r"`scores` must be real numbers; got Arrow data of type |got strings|got 'x'"):
        STAIRS.predict(pa.array([None, "x"]), missing="nan")


@pytest.mark.parametrize("option", ["drop", None, True])
def test_the_option_must_be_known(option):
    for predict in (STAIRS.predict, lambda scores, **more: MAP.predict(scores, ["a"], **more)):
        with pytest.raises(ValueError, match=r"`missing` must be one of 'raise', 'nan'; got "):
            predict([0.5], missing=option)


@pytest.mark.parametrize("options", OPTIONS)
def test_maps_keep_nan_in_each_group(options):
    scores, groups = np.array([1, NAN, 1.5, NAN, 9]), ["a", "a", "b", "z", "z"]
    default = sf.fit([1, 2], [5, 6])
    found = MAP.predict(scores, groups, missing="nan", default=default, **options)
    present = ~np.isnan(scores)
    rest = MAP.predict(scores[present], np.array(groups)[present], default=default, **options)
    assert_same_bits(found[present], rest)
    assert np.isnan(found[~present]).all()
    assert np.isnan(MAP.predict([None], ["b"], missing="nan")).all()
    with pytest.raises(ValueError, match=r"`scores` must not be NaN; got nan at index 1\."):
        MAP.predict(scores, groups, default=default)
    with pytest.raises(ValueError, match=r"Group 'z' \(row 3\) was not fitted"):
        MAP.predict(scores, groups, missing="nan")


def test_scores_outside_the_range_still_raise_an_error():
    found = STAIRS.predict([NAN, 0.5], missing="nan", out_of_bounds="raise")
    assert np.isnan(found).tolist() == [True, False]
    with pytest.raises(ValueError, match=r"must be in \[0.1, 7.0\], the fitted range; got 8.0 at index 1\."):
        STAIRS.predict([NAN, 8.0], missing="nan", out_of_bounds="raise")
