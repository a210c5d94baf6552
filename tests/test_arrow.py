"""Arrow's arrays, as any library may export them: what they hold, what is missing in them, and who frees them."""

import decimal
import gc
import sys

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from comparing import assert_same_bits
from hypothesis import example, given
from hypothesis import strategies as st

import staircase_fast as sf
from staircase_fast import _arrow, _columns, _columns_arrow

MISSING = r"`x` must not have missing entries; got null at index {}\."


def read(array):
    return _columns._array("x", array)


class Stream:
    """A stream that may be read once, without a library around it."""

    def __init__(self, capsule):
        self.capsule = capsule

    def __arrow_c_stream__(self, requested_schema=None):
        return self.capsule


class Array(Stream):
    """The same of an array."""

    __arrow_c_stream__ = None

    def __arrow_c_array__(self, requested_schema=None):
        return self.capsule


entries = st.none() | st.integers(0, 99)
KINDS = [pa.int8(), pa.uint64(), pa.float32(), pa.bool_(), pa.decimal128(9, 3), pa.decimal256(60, 0)]
ONLY_PLAIN = [pa.float16()]  # Arrow encodes none of these
if hasattr(pa, "decimal64"):  # since pyarrow 19
    ONLY_PLAIN += [pa.decimal64(9, 1), pa.decimal32(5, 2)]


def made(chunk, kind, encoding):
    if kind == pa.bool_():
        chunk = [None if x is None else x % 2 == 1 for x in chunk]
    elif pa.types.is_decimal(kind):
        chunk = [None if x is None else decimal.Decimal(x) for x in chunk]
    elif pa.types.is_floating(kind):
        number = np.float16 if kind == pa.float16() else float  # before pyarrow 21
        chunk = [None if x is None else number(x) for x in chunk]
    array = pa.array(chunk, type=kind)
    return {"plain": pa.array, "dictionary": pc.dictionary_encode, "runs": pc.run_end_encode}[encoding](array)


@given(
    st.lists(st.lists(entries, max_size=20), min_size=1, max_size=3),
    st.sampled_from(KINDS + ONLY_PLAIN),
    st.sampled_from(["plain", "dictionary", "runs"]),
    st.integers(0, 9),
    st.integers(0, 9),
)
def test_any_part_of_any_array_holds_what_arrow_says_it_holds(chunks, kind, encoding, start, end):
    if kind in ONLY_PLAIN:
        encoding = "plain"
    whole = pa.chunked_array([made(chunk, kind, encoding) for chunk in chunks])
    part = whole[start : max(start, len(whole) - end)]
    wanted = part.to_pylist()
    if None in wanted:
        with pytest.raises(ValueError, match=MISSING.format(wanted.index(None))):
            read(part)
    else:
        assert read(part).astype(float).tolist() == [float(x) for x in wanted]


wide_integers = st.integers(-(2**64), 2**64) | st.integers(-(10**37), 10**37)


@given(st.lists(wide_integers, min_size=1, max_size=3), st.integers(-5, 37), st.sampled_from([128, 256]))
@example([2**64 - 1], 1, 128)
@example([2**53 + 1], 2, 128)  # the first integer that is no float
@example([4404838207175376263], 12, 128)  # as a float over a float, it would be rounded twice
def test_decimals_are_rounded_once(integers, scale, bits):
    with decimal.localcontext(prec=90):
        exact = [decimal.Decimal(x).scaleb(-scale) for x in integers]
        array = pa.array(exact, pa.decimal128(38, scale) if bits == 128 else pa.decimal256(70, scale))
        wanted = [float(x) for x in exact]
    assert read(array).tolist() == wanted


@given(st.lists(st.integers(-(2**53), 2**53), min_size=1), st.integers(1, 15))
def test_decimals_of_few_digits_are_rounded_once(integers, scale):
    exact = [decimal.Decimal(x).scaleb(-scale) for x in integers]
    assert read(pa.array(exact, pa.decimal128(38, scale))).tolist() == [float(x) for x in exact]


def test_decimals_without_a_fraction_are_integers():
    wide = read(pa.array([decimal.Decimal(2**53 + 1)], pa.decimal128(38, 0)))
    assert wide.dtype == np.int64
    assert wide.tolist() == [2**53 + 1]


def test_a_dictionary_may_hold_a_null_that_no_row_uses():
    numbers = pa.array([1.5, None, 2.5])
    assert read(pa.DictionaryArray.from_arrays(pa.array([0, 2, 0]), numbers)).tolist() == [1.5, 2.5, 1.5]
    with pytest.raises(ValueError, match=MISSING.format(2)):
        read(pa.DictionaryArray.from_arrays(pa.array([0, 2, 1]), numbers))
    with pytest.raises(ValueError, match=MISSING.format(1)):
        read(pa.DictionaryArray.from_arrays(pa.array([0, None, 1]), numbers))


class Uncounted:
    """A chunk of a library that has not counted its nulls."""

    null_count = -1

    def __init__(self, chunk):
        self.chunk = chunk

    def __getattr__(self, name):
        return getattr(self.chunk, name)


def test_nulls_need_not_have_been_counted():
    def counted(array):
        kind, chunk = _arrow.from_array(array.__arrow_c_array__())
        rows = _columns_arrow._Rows(kind, Uncounted(chunk), chunk.offset, chunk.length)
        return _columns_arrow._column_of("x", kind, [rows])

    assert counted(pa.array([1, 2])).tolist() == [1, 2]
    assert counted(pa.array([None, 1, 2])[1:]).tolist() == [1, 2]
    with pytest.raises(ValueError, match=MISSING.format(1)):
        counted(pa.array([1, None]))
    entries = pa.DictionaryArray.from_arrays(pa.array([None, 0, 1, 0]), pa.array([1.5, None]))
    with pytest.raises(ValueError, match=MISSING.format(1)):
        counted(entries[1:])


def test_no_rows_are_a_column_of_none():
    for kind in (pa.null(), pa.int8(), pa.bool_(), pa.decimal128(5, 2)):
        assert read(pa.array([], kind)).shape == (0,)
        assert read(pa.chunked_array([], kind)).shape == (0,)
    seen = sf.Accumulator()
    seen.add(pa.array([]), pa.array([], pa.bool_()))
    assert seen.n_samples == 0


def test_rows_without_a_kind_are_all_missing():
    with pytest.raises(ValueError, match=MISSING.format(0)):
        read(pa.chunked_array([pa.nulls(0), pa.nulls(3)]))


def test_a_part_of_rows_that_have_fields_begins_where_it_begins():
    rows = pa.array([{"a": float(x), "b": x % 2 == 1} for x in range(20)])[3:7]
    assert read(rows).tolist() == [[3, 1], [4, 0], [5, 1], [6, 0]]


def test_a_row_of_a_table_may_be_missing_as_a_whole():
    with pytest.raises(ValueError, match=MISSING.format(1)):
        read(pa.array([{"a": 1, "b": 2}, None]))


@pytest.mark.parametrize(
    ("array", "said"),
    [
        (pa.array(["a", "b"]), "'a' at index 0"),
        (pa.array(["a"], pa.string_view()), "'a' at index 0"),
        (pa.array(["a"]).dictionary_encode(), "'a' at index 0"),
        (pa.chunked_array([[b"a"]]), "b'a' at index 0"),
        (pa.array([], pa.large_string()), "strings"),
        (pa.array([0], pa.timestamp("s")), "datetime.datetime.* at index 0"),
        (pa.array([0], pa.duration("s")), "datetime.timedelta.* at index 0"),
        (pa.array([b"0" * 16], pa.binary(16)), "b'0.* at index 0"),
        (pa.ExtensionArray.from_storage(pa.uuid(), pa.array([b"0" * 16], pa.binary(16))), "UUID.* at index 0"),
        (pa.array([[1.0]]), r"Arrow data of type \+l"),
        (pa.UnionArray.from_sparse(pa.array([0], pa.int8()), [pa.array([1.0])]), r"Arrow data of type \+us"),
        (pc.run_end_encode(pa.array(["a"])), "'a' at index 0"),
    ],
)
def test_what_is_not_a_number_is_refused(array, said):
    with pytest.raises(TypeError, match="`x` must be real numbers; got " + said):
        read(array)
    with pytest.raises(TypeError, match="`x` must be real numbers; got "):
        read(Stream(pa.chunked_array([array]).__arrow_c_stream__()))


def test_an_extension_of_numbers_is_what_it_is_stored_as():
    flags = pa.ExtensionArray.from_storage(pa.bool8(), pa.array([1, 0], pa.int8()))
    assert read(flags).tolist() == [1, 0]


def test_integers_beyond_int64_are_refused():
    with pytest.raises(ValueError, match=r"be below 2\*\*63 .* at index 1"):
        read(pa.array([1, 2**63], pa.uint64()))


def test_memory_is_kept_as_long_as_it_is_read_and_then_freed():
    gc.collect()
    before = pa.total_allocated_bytes()
    for source in (pa.array(range(1000)), pa.chunked_array([range(1000)])):
        view = read(source)
        del source
        gc.collect()
        assert not view.flags.writeable
        assert view.sum() == 499500
    del view
    gc.collect()
    assert pa.total_allocated_bytes() == before


def test_what_a_stream_says_that_fails_is_passed_on():
    schema = pa.schema({"a": pa.float64()})

    def batches():
        yield pa.record_batch([pa.array([1.5])], schema=schema)
        raise ValueError("the disk is gone")

    with pytest.raises(ValueError, match=r"(?s)`scores` must be Arrow data that can be read; .*the disk is gone"):
        sf.fit_columns(pa.RecordBatchReader.from_batches(schema, batches()), [[1.0]])


def test_a_stream_of_no_chunks_has_no_rows():
    reader = pa.RecordBatchReader.from_batches(pa.schema({"a": pa.float64()}), [])
    assert read(reader).shape == (0, 1)


def test_capsules_of_another_kind_are_refused():
    with pytest.raises(ValueError, match="incorrect name"):
        _arrow.Stream(pa.array([1]).__arrow_c_array__()[1])
    with pytest.raises(ValueError, match="incorrect name"):
        _arrow.from_array(pa.array([1]).__arrow_c_array__()[::-1])


def test_what_was_taken_out_of_its_capsule_is_refused():
    array, stream = pa.array([1.5]).__arrow_c_array__(), pa.chunked_array([[1.5]]).__arrow_c_stream__()
    pa.Array._import_from_c_capsule(*array)
    pa.ChunkedArray._import_from_c_capsule(stream)
    for taken in (Array(array), Stream(stream)):
        with pytest.raises(ValueError, match="`scores` must be Arrow data that can be read; it was taken out of its"):
            sf.fit(taken, [1.0])


def test_arrays_without_rows_need_no_memory():
    none = {kind: pa.Array.from_buffers(kind, 0, [None, None]) for kind in (pa.int32(), pa.float64(), pa.bool_())}
    places, numbers = none[pa.int32()], none[pa.float64()]
    encoded = pa.DictionaryArray.from_arrays(places, pa.array([1.5, None]))
    for array in (*none.values(), encoded, pa.RunEndEncodedArray.from_arrays(places, numbers)):
        assert read(array).shape == read(pa.chunked_array([array, array])).shape == (0,)


def test_groups_may_be_of_any_library_that_speaks_arrow():
    keys = pa.chunked_array([["b", "a"], ["b", "b"]])
    found = sf.fit_groups([1, 2, 3, 4], [0, 1, 1, 0], Stream(keys.__arrow_c_stream__()))
    assert found == sf.fit_groups([1, 2, 3, 4], [0, 1, 1, 0], keys)


def test_groups_that_pyarrow_must_read_name_what_to_install(monkeypatch):
    keys = Stream(pa.chunked_array([["b", "a"]]).__arrow_c_stream__())
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"`groups` needs pyarrow, .*staircase_fast\[arrow\]"):
        sf.fit_groups([1, 2], [0, 1], keys)


def test_numbers_need_no_library(monkeypatch):
    columns = [Stream(pa.chunked_array([[1.0, 2.0], [0.5]]).__arrow_c_stream__()) for _ in range(2)]
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert_same_bits(sf.fit(*columns).values, np.array([0.5, 1.0, 2.0]))
