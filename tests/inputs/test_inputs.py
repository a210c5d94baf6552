"""Columns of every container and number type give the same results."""

import array
import decimal
import fractions

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute
import pytest
from comparing import assert_same_bits, assert_same_staircase, assert_steps
from hypothesis import given
from hypothesis import strategies as st
from protocols import Protocol, dlpack
from reference import fitted_steps

import staircase_fast as sf
from staircase_fast.inputs import columns
from staircase_fast.sklearn import StaircaseCalibrator, StaircaseRegressor

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


def arrow_array(column):
    return Protocol(pa.array(column), "__arrow_c_array__")


def arrow_stream(column):
    return Protocol(pa.chunked_array([column[:3], [], column[3:]]), "__arrow_c_stream__")


def array_interface(column):
    source = np.array(column, dtype=float)
    return type("Protocol", (), {"__array_interface__": source.__array_interface__, "source": source})()


def array_that_minds_its_arguments(column):
    """What numpy 2 may ask of `__array__`: no dtype, and no copy unless one is needed."""

    def as_array(self, dtype=None, copy=None):
        assert dtype is None
        assert not copy
        return np.array(column, dtype=float)

    return type("Protocol", (), {"__array__": as_array})()


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
    "pyarrow half float": lambda column: pa.array(np.array(column, dtype=np.float16)),
    "pyarrow uint64": lambda column: pa.array(column, type=pa.uint64()),
    "pyarrow decimal": lambda column: pa.array([decimal.Decimal(x) / 1 for x in column], pa.decimal128(12, 2)),
    "pyarrow dictionary": lambda column: pa.array(column).dictionary_encode(),
    "pyarrow dictionaries": lambda column: pa.chunked_array(
        [pa.array(part).dictionary_encode() for part in (column[:3], column[3:])]
    ),
    "pyarrow runs": lambda column: pa.compute.run_end_encode(pa.array([9, *column]))[1:],
    "pandas Sparse": lambda column: pd.Series(pd.arrays.SparseArray(column)),
    "pandas category": lambda column: pd.Series(column, index=range(7, -1, -1)).astype("category"),
    "pandas Categorical": pd.Categorical,
    "pandas dictionary[pyarrow]": lambda c: pd.Series(c, dtype=pd.ArrowDtype(pa.dictionary(pa.int8(), pa.int64()))),
    "pandas array": lambda column: pd.array(column, dtype="Int8"),
    "polars Decimal": lambda column: pl.Series(column).cast(pl.Decimal(12, 2)),
    "bytearray": bytearray,
    "Arrow array of any library": arrow_array,
    "Arrow stream of any library": arrow_stream,
    "DLPack of any library": dlpack,
    "__array__": array_that_minds_its_arguments,
    "__array_interface__": array_interface,
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
def test_labels_can_be_true_and_false(container, expected):
    labels = FLAGS[container](LABELS)
    assert_same_staircase(sf.fit(SCORES, labels, sample_weight=WEIGHTS), expected)
    weighted = sf.fit(SCORES, LABELS, sample_weight=labels)
    assert_same_staircase(weighted, sf.fit(SCORES, LABELS, sample_weight=LABELS))


def test_columns_can_be_mapped_from_a_file(tmp_path, expected):
    def mapped(column):
        path = tmp_path / str(len(list(tmp_path.iterdir())))
        np.array(column, dtype=float).tofile(path)
        return np.memmap(path, dtype=float, mode="r")

    check_columns(mapped, expected)


def test_each_argument_can_be_of_a_different_kind(expected):
    stairs = sf.fit(pd.Series(SCORES), pa.array(LABELS), sample_weight=pl.Series(WEIGHTS))
    assert_same_staircase(stairs, expected)


def test_an_iterator_is_a_type_error():
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


# One of each kind that is read by a way of its own, wherever a column is taken.
WAYS = [
    "list", "strided", "pandas.Series, index backwards", "pandas Int64", "pandas double[pyarrow]", "pandas category",
    "polars, two chunks", "pyarrow, sliced", "pyarrow, chunked", "DLPack of any library", "Arrow stream of any library",
]  # fmt: skip
X, Y, W, KEYS = [0, 1, 2, 2, 3, 3, 4, 5], [0, 1, 0, 1, 0, 1, 1, 1], [1, 2, 1, 3, 1, 1, 4, 2], [1, 0, 1, 0, 1, 0, 1, 0]


def online(make):
    rows = sf.Online()
    rows.extend(make(X), make(Y), make(W))
    return rows.staircase()


def accumulated(make):
    seen = sf.Accumulator()
    seen.add(make(X), make(Y), sample_weight=make(W))
    return seen.staircase()


def anytime(make):
    fit = sf.Anytime(make(X), make(Y), sample_weight=make(W), loss="log_cosh")
    fit.refine(max_rounds=5)
    return fit.lower


def calibrated(make):
    return StaircaseCalibrator().fit(make(X), make(Y), make(W)).calibrated_classifiers_[0].staircases[0]


CALLS = {
    "fit": lambda make: sf.fit(make(X), make(Y), sample_weight=make(W)),
    "fit with parameters": lambda make: sf.fit(make(X), make(Y), loss=sf.losses.Huber(make(W))),
    "predict": lambda make: sf.fit(X, Y).predict(make(X)),
    "isotonic_regression": lambda make: sf.isotonic_regression(make(Y), weights=make(W)).x,
    "Online.extend": online,
    "Accumulator.add": accumulated,
    "Anytime": anytime,
    "certify": lambda make: np.array(sf.certify(sf.fit(X, Y), make(X), make(Y), sample_weight=make(W))),
    "fit_groups": lambda make: sf.fit_groups(make(X), make(Y), KEYS, sample_weight=make(W))[1],
    "StaircaseMap.predict": lambda make: sf.fit_groups(X, Y, KEYS).predict(make(X), KEYS),
    "fit_columns, weights of rows": lambda make: sf.fit_columns(
        np.array([X, X]).T, np.array([Y, Y]).T, sample_weight=make(W)
    )[1],
    "prefix_losses": lambda make: sf.prefix_losses(make(Y), make(W)),
    "unimodal_regression": lambda make: sf.unimodal_regression(make(Y), make(W)).x,
    "Loss.value": lambda make: sf.losses.Huber().value(make(X), make(Y)),
    "reliability": lambda make: sf.reliability(make(X), make(Y), sample_weight=make(W), score="squared").stairs,
    "VennAbers.fit": lambda make: np.array(sf.VennAbers().fit(make(X), make(Y), make(W)).predict(X)),
    "VennAbers.predict": lambda make: np.array(sf.VennAbers().fit(X, Y).predict(make(X))),
    "VennAbers.merge": lambda make: sf.VennAbers().fit(X, Y).merge(make(X)),
    "CrossVennAbers.fit": lambda make: sf.CrossVennAbers().fit(make(X), make(Y), make(KEYS), make(W)).merge(X),
    "CrossVennAbers.merge": lambda make: sf.CrossVennAbers().fit(X, Y, KEYS).merge(make(X)),
    "StaircaseRegressor.fit": lambda make: StaircaseRegressor().fit(make(X), make(Y), make(W)).staircase_,
    "StaircaseRegressor.partial_fit": lambda make: (
        StaircaseRegressor().partial_fit(make(X), make(Y), make(W)).staircase_
    ),
    "StaircaseRegressor.predict": lambda make: StaircaseRegressor().fit(X, Y).predict(make(X)),
    "StaircaseCalibrator.fit": calibrated,
    "StaircaseCalibrator.predict_proba": lambda make: StaircaseCalibrator().fit(X, Y).predict_proba(make(X)),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("call", CALLS)
def test_every_function_accepts_columns_of_every_kind(call, way):
    found, wanted = CALLS[call](CONTAINERS[way]), CALLS[call](lambda column: np.array(column, dtype=float))
    if isinstance(wanted, sf.Staircase):
        assert_same_staircase(found, wanted)
    else:
        assert_same_bits(found, wanted)


@pytest.mark.parametrize("call", ["Online.extend", "Accumulator.add", "fit_groups", "fit with parameters"])
def test_the_error_for_a_missing_entry_names_its_index_in_every_function(call):
    def make(column):
        return pa.chunked_array([column[:3], [*column[3:5], None, *column[6:]]])

    with pytest.raises(ValueError, match=r"must not have missing entries; got null at index 5\."):
        CALLS[call](make)


def as_masked(numbers):
    return pd.Series(pd.arrays.FloatingArray(numbers, np.zeros(len(numbers), dtype=bool)), copy=False)


SHARED = {
    "numpy": lambda numbers: numbers,
    "read-only": lambda numbers: np.frombuffer(memoryview(numbers).toreadonly()),
    "memoryview": memoryview,
    "subclass": lambda numbers: numbers.view(np.recarray),
    "pandas.Series": lambda numbers: pd.Series(numbers, copy=False),
    "pandas Float64": as_masked,
    "pandas double[pyarrow]": lambda numbers: pd.Series(pd.arrays.ArrowExtensionArray(pa.array(numbers))),
    "pandas.DataFrame": lambda numbers: pd.DataFrame(numbers.reshape(-1, 2), copy=False),
    "polars.Series": lambda numbers: pl.from_arrow(pa.array(numbers)),
    "pyarrow": pa.array,
    "pyarrow, sliced": lambda numbers: pa.array(numbers)[3:-2],
    "pyarrow, one chunk of rows": lambda numbers: pa.chunked_array([numbers[:0], numbers, numbers[:0]]),
    "DLPack": lambda numbers: Protocol(numbers, "__dlpack__", "__dlpack_device__"),
    "__array__": lambda numbers: Protocol(numbers, "__array__"),
}


@pytest.mark.parametrize("kind", SHARED)
def test_columns_that_kernels_can_read_are_not_copied(kind):
    numbers = np.arange(20.0)
    made = SHARED[kind](numbers)
    assert np.shares_memory(columns.read_array("x", made), numbers)


def test_a_column_mapped_from_a_file_stays_there(tmp_path):
    np.arange(9, dtype=np.float32).tofile(tmp_path / "numbers")
    mapped = np.memmap(tmp_path / "numbers", dtype=np.float32, mode="r")
    read = columns.read_array("x", mapped)
    assert np.shares_memory(read, mapped)
    assert type(read) is np.ndarray
    swapped = np.memmap(tmp_path / "numbers", dtype=">f4", mode="r")
    assert columns.read_array("x", swapped).dtype == np.float32


FRAMES = {
    "pandas": pd.DataFrame,
    "pandas, repeated names": lambda table: pd.DataFrame(table, columns=["a", "a"]),
    "pandas, other kinds": lambda table: pd.DataFrame(table).astype({0: "Int64", 1: "float32"}),
    "pandas, flags and small integers": lambda table: pd.DataFrame(table).astype({0: "bool", 1: "int8"}),
    "polars": lambda table: pl.DataFrame(table, schema=["a", "b"], orient="row"),
    "polars, other kinds": lambda table: pl.DataFrame(table, {"a": pl.Float32, "b": pl.Int8}, orient="row"),
    "pyarrow": lambda table: pa.Table.from_pandas(pd.DataFrame(table).rename(columns=str)),
    "pyarrow, slice of a batch": lambda table: pa.record_batch(
        {"a": [9, *table[:, 0]], "b": [True, *table[:, 1].astype(bool)]}
    ).slice(1),
}


@pytest.mark.parametrize("kind", FRAMES)
def test_tables_of_every_kind_are_columns_side_by_side(kind):
    table, frame = np.array([Y, KEYS]).T, FRAMES[kind]
    assert sf.fit_columns(frame(table), frame(table)) == sf.fit_columns(table, table)
    weighted = sf.fit_columns(frame(table), table, sample_weight=frame(table))
    assert weighted == sf.fit_columns(table, table, sample_weight=table)
    assert_same_bits(sf.fit(X, W).predict(frame(table)), sf.fit(X, W).predict(table))


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (pd.DataFrame({"a": [1, 2], "b": pd.array([1, None], dtype="Int64")}), r"`scores\[:, 1\]` .*<NA> at index 1"),
        (pl.DataFrame({"a": [1, 2], "b": [0.5, None]}), r"`scores\[:, 1\]` .*null at index 1"),
        (pa.table({"a": [1, 2], "b": ["x", "y"]}), r"`scores\[:, 1\]` must be real numbers; got strings"),
        (pd.DataFrame({"a": [0.5, 1], "b": [2**53 + 1, 1]}), r"`scores\[:, 1\]` must be integers that float64 holds"),
        (pd.DataFrame({"a": [1, 2], "b": [1, None]}, dtype=object), r"`scores\[:, 1\]` .*None at index 1"),
        (pd.DataFrame(index=[1, 2]), r"at least one row and one column; got shape \(2, 0\)"),
        (pa.table({}), r"at least one row and one column; got shape \(0, 0\)"),
    ],
)
def test_a_bad_entry_of_a_table_is_named_with_its_column(frame, message):
    with pytest.raises((TypeError, ValueError), match=message):
        sf.fit_columns(frame, np.ones((2, 2)))
