"""Columns of every container and kind of number are read as they are."""

import array
import decimal
import fractions

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from comparing import assert_same_bits, assert_same_staircase, assert_steps
from hypothesis import given
from hypothesis import strategies as st
from reference import fitted_steps

import staircase_fast as sf

# Small whole numbers, so that every kind of number holds them; labels, so that bool does too.
SCORES = [3, 1, 2, 2, 5, 4, 0, 3]
LABELS = [1, 0, 1, 0, 0, 1, 0, 1]
WEIGHTS = [1, 2, 0, 3, 1, 1, 4, 2]


def flags(column):
    return [bool(x) for x in column]


def strided(column):
    wide = np.zeros((len(column), 3))
    wide[:, 1] = column
    return wide[:, 1]


def backwards(column):
    return np.array(column[::-1], dtype=float)[::-1]


def field_of_records(column):
    records = np.zeros(len(column), dtype=[("a", "u1"), ("b", "f8"), ("c", "f4")])
    records["b"] = column
    return records["b"]  # strided and not aligned


def unaligned(column):
    raw = b"." + np.array(column, dtype=float).tobytes()
    return np.frombuffer(raw, dtype=float, offset=1)


def read_only(column):
    values = np.array(column, dtype=float)
    values.flags.writeable = False
    return values


def repeated_view(column):
    """Entries one by one from a view in which all rows lie on the same memory."""
    return np.lib.stride_tricks.as_strided(np.array(column, dtype=float), (2, len(column)), (0, 8))[1]


CONTAINERS = {
    "list": list,
    "tuple": tuple,
    "array.array": lambda column: array.array("d", column),
    "memoryview": lambda column: memoryview(array.array("i", column)),
    "objects": lambda column: np.array(column, dtype=object),
    "fractions": lambda column: [fractions.Fraction(x) for x in column],
    "decimal.Decimal": lambda column: [decimal.Decimal(x) for x in column],
    "masked array without a mask": np.ma.array,
    "strided": strided,
    "backwards": backwards,
    "field of records": field_of_records,
    "unaligned": unaligned,
    "read-only": read_only,
    "repeated view": repeated_view,
    "pandas.Series": pd.Series,
    "pandas.Series, index backwards": lambda c: pd.Series(c, index=range(len(c))[::-1]),
    "pandas.Series, index of dates": lambda c: pd.Series(c, index=pd.date_range("2024-01-01", periods=len(c))),
    "pandas.Series, one index for all": lambda c: pd.Series(c, index=[0] * len(c)),
    "pandas.Index": pd.Index,
    "pandas Int64": lambda column: pd.Series(column, dtype="Int64"),
    "pandas Float64": lambda column: pd.Series(column, dtype="Float64"),
    "pandas Float32": lambda column: pd.Series(column, dtype="Float32"),
    "pandas double[pyarrow]": lambda c: pd.Series(c, dtype=pd.ArrowDtype(pa.float64())),
    "pandas int32[pyarrow]": lambda c: pd.Series(c, dtype=pd.ArrowDtype(pa.int32())),
    "pandas, column of a frame": lambda c: pd.DataFrame({"a": c, "b": c, "c": c})["b"],
    "polars.Series": pl.Series,
    "polars Float32": lambda column: pl.Series(column, dtype=pl.Float32),
    "polars UInt8": lambda column: pl.Series(column, dtype=pl.UInt8),
    "polars, two chunks": lambda column: pl.concat([pl.Series(column[:3]), pl.Series(column[3:])], rechunk=False),
    "pyarrow double": lambda column: pa.array(column, type=pa.float64()),
    "pyarrow int16": lambda column: pa.array(column, type=pa.int16()),
    "pyarrow, sliced": lambda column: pa.array([9, 9, *column, 9])[2:-1],
    "pyarrow, chunked": lambda column: pa.chunked_array([column[:3], [], column[3:]]),
    "pyarrow, column of a table": lambda column: pa.table({"a": column})["a"],
}
DTYPES = [
    order + kind
    for kind in ("i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8", "g")
    for order in ("<", ">")
]
FLAGS = {
    "numpy": lambda column: np.array(column, dtype=bool),
    "strided": lambda column: np.array(column + column, dtype=bool).reshape(2, -1).T[:, 0],
    "list": flags,
    "pandas bool": lambda column: pd.Series(column, dtype=bool),
    "pandas boolean": lambda column: pd.Series(column, dtype="boolean"),
    "pandas bool[pyarrow]": lambda c: pd.Series(c, dtype=pd.ArrowDtype(pa.bool_())),
    "polars Boolean": lambda column: pl.Series(flags(column)),
    "pyarrow bool": lambda column: pa.array(flags(column)),
    "pyarrow bool, sliced": lambda column: pa.array([True, *flags(column), True])[1:-1],
    "pyarrow bool, chunked": lambda c: pa.chunked_array([flags(c[:3]), flags(c[3:])]),
}


@pytest.fixture(scope="module")
def expected():
    stairs = sf.fit(*(np.array(c, dtype=float) for c in (SCORES, LABELS)), sample_weight=WEIGHTS)
    assert_steps(stairs, fitted_steps(SCORES, LABELS, WEIGHTS))
    return stairs


def check_columns(make, expected):
    """All three columns, and queries, as `make` makes them."""
    stairs = sf.fit(make(SCORES), make(LABELS), sample_weight=make(WEIGHTS))
    assert_same_staircase(stairs, expected)
    line = sf.isotonic_regression(make(LABELS), weights=make(WEIGHTS))
    as_float = sf.isotonic_regression(np.array(LABELS, float), weights=np.array(WEIGHTS, float))
    for got, wanted in zip(line, as_float, strict=True):
        assert_same_bits(got, wanted)
    for interpolation in ("step", "linear"):
        result = stairs.predict(make(SCORES), interpolation=interpolation)
        assert type(result) is np.ndarray
        assert_same_bits(result, expected.predict(SCORES, interpolation=interpolation))


@pytest.mark.parametrize("container", CONTAINERS)
def test_columns_of_every_container_give_the_same_fit(container, expected):
    check_columns(CONTAINERS[container], expected)


@pytest.mark.parametrize("dtype", DTYPES)
def test_numbers_of_every_kind_and_byte_order_give_the_same_fit(dtype, expected):
    check_columns(lambda column: np.array(column, dtype=dtype), expected)


@pytest.mark.parametrize("dtype", DTYPES)
def test_strided_numbers_of_every_kind_give_the_same_fit(dtype, expected):
    check_columns(lambda column: np.array([column, column], dtype=dtype).T[:, 1], expected)


@pytest.mark.parametrize("container", FLAGS)
def test_labels_may_be_true_and_false(container, expected):
    labels = FLAGS[container](LABELS)
    assert_same_staircase(sf.fit(SCORES, labels, sample_weight=WEIGHTS), expected)
    weighted = sf.fit(SCORES, LABELS, sample_weight=labels)
    assert_same_staircase(weighted, sf.fit(SCORES, LABELS, sample_weight=LABELS))


def test_columns_may_be_mapped_from_a_file(tmp_path, expected):
    def mapped(column):
        path = tmp_path / str(len(list(tmp_path.iterdir())))
        np.array(column, dtype=float).tofile(path)
        return np.memmap(path, dtype=float, mode="r")

    check_columns(mapped, expected)


def test_each_argument_may_be_of_another_kind(expected):
    stairs = sf.fit(pd.Series(SCORES), pa.array(LABELS), sample_weight=pl.Series(WEIGHTS))
    assert_same_staircase(stairs, expected)


def test_an_iterator_that_is_no_sequence_is_a_type_error():
    for column in (iter([1, 2]), (x for x in [1, 2]), {1, 2}, {1: 1, 2: 2}, map(int, "12")):
        with pytest.raises(TypeError, match="`targets`"):
            sf.fit([1, 2], column)


wide_integers = st.integers(-(2**63), 2**63 - 1) | st.integers(2**63 - 9, 2**63 - 1)


@given(st.lists(st.tuples(st.integers(0, 9), wide_integers, st.integers(1, 5)), min_size=1))
def test_integers_beyond_two_to_the_53_are_summed_as_integers(rows):
    scores, targets, weights = (list(column) for column in zip(*rows, strict=True))
    stairs = sf.fit(scores, np.array(targets, dtype=np.int64), sample_weight=weights)
    assert_steps(stairs, fitted_steps(scores, targets, weights))
    plain = sf.fit(scores, np.array(targets, dtype=np.int64))
    assert_steps(plain, fitted_steps(scores, targets))


def test_a_list_of_wide_integers_is_not_rounded_either():
    targets = [2**53 + 1, 2**53 + 1, 2**53 + 3]
    assert sf.fit([1, 2, 3], targets).n_steps == 2
    assert sf.isotonic_regression(targets).blocks.tolist() == [0, 2, 3]


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.longdouble])
def test_narrow_and_wide_floats_are_summed_as_float64_holds_them(dtype):
    rng = np.random.default_rng(5)
    rows = [rng.random(200).astype(np.float16).astype(dtype) for _ in range(3)]
    narrow = sf.fit(rows[0], rows[1], sample_weight=rows[2])
    scores, targets, weights = (column.astype(float).tolist() for column in rows)
    assert_steps(narrow, fitted_steps(scores, targets, weights))


def test_scores_that_differ_only_in_float64_stay_apart_and_in_float32_too():
    close = np.nextafter(1.0, 2.0)
    assert sf.fit([1.0, close], [0, 1]).n_steps == 2
    close = np.nextafter(np.float32(1), np.float32(2))
    assert sf.fit(np.array([1, close], dtype=np.float32), [0, 1]).n_steps == 2
