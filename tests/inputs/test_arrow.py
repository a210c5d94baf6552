"""Arrow data of any library: values, nulls, memory, and broken exports."""

import contextlib
import ctypes
import decimal
import gc
import re
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from comparing import assert_same_bits
from hypothesis import example, given
from hypothesis import strategies as st

import staircase_fast as sf
from staircase_fast.inputs import _arrow, columns, columns_arrow

MISSING = r"`x` must not have missing entries; got null at index {}\."


def read(array):
    return columns.read_array("x", array)


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
def test_slices_of_all_types_and_encodings_equal_what_pyarrow_reads(chunks, kind, encoding, start, end):
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


def test_a_dictionary_can_hold_a_null_that_no_row_uses():
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
    def uncounted(array):
        _, chunk = array_kind_and_chunk(array)
        rows = columns_arrow._Rows("l", Uncounted(chunk), chunk.offset, chunk.length)
        return columns_arrow._read_column("x", "l", [rows])

    assert uncounted(pa.array([1, 2])).tolist() == [1, 2]
    assert uncounted(pa.array([None, 1, 2])[1:]).tolist() == [1, 2]
    with pytest.raises(ValueError, match=MISSING.format(1)):
        uncounted(pa.array([1, None]))


def array_kind_and_chunk(array):
    capsules = array.__arrow_c_array__()
    (chunk,) = _arrow.array_chunks(capsules)
    return _arrow.array_kind(capsules), chunk


def test_arrays_without_rows_are_empty_columns():
    for kind in (pa.null(), pa.int8(), pa.bool_(), pa.decimal128(5, 2)):
        assert read(pa.array([], kind)).shape == (0,)
        assert read(pa.chunked_array([], kind)).shape == (0,)
    seen = sf.Accumulator()
    seen.add(pa.array([]), pa.array([], pa.bool_()))
    assert seen.n_samples == 0


def test_all_rows_of_the_null_type_are_missing():
    with pytest.raises(ValueError, match=MISSING.format(0)):
        read(pa.chunked_array([pa.nulls(0), pa.nulls(3)]))


def test_a_slice_of_a_struct_array_is_read_from_its_start():
    rows = pa.array([{"a": float(x), "b": x % 2 == 1} for x in range(20)])[3:7]
    assert read(rows).tolist() == [[3, 1], [4, 0], [5, 1], [6, 0]]


def test_a_missing_row_of_a_struct_array_is_an_error():
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
def test_types_that_are_not_numbers_are_an_error(array, said):
    with pytest.raises(TypeError, match="`x` must be real numbers; got " + said):
        read(array)
    with pytest.raises(TypeError, match="`x` must be real numbers; got "):
        read(Stream(pa.chunked_array([array]).__arrow_c_stream__()))


def test_extension_types_are_read_as_their_storage_type():
    flags = pa.ExtensionArray.from_storage(pa.bool8(), pa.array([1, 0], pa.int8()))
    assert read(flags).tolist() == [1, 0]


def test_integers_beyond_int64_are_an_error():
    with pytest.raises(ValueError, match=r"be below 2\*\*63 .* at index 1"):
        read(pa.array([1, 2**63], pa.uint64()))


def test_memory_stays_valid_while_it_is_used_and_is_then_freed():
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


def test_the_error_message_of_a_stream_is_reported():
    schema = pa.schema({"a": pa.float64()})

    def batches():
        yield pa.record_batch([pa.array([1.5])], schema=schema)
        raise ValueError("the disk is gone")

    with pytest.raises(ValueError, match=r"(?s)`scores` must be Arrow data that can be read; .*the disk is gone"):
        sf.fit_columns(pa.RecordBatchReader.from_batches(schema, batches()), [[1.0]])


def test_a_stream_of_no_chunks_has_no_rows():
    reader = pa.RecordBatchReader.from_batches(pa.schema({"a": pa.float64()}), [])
    assert read(reader).shape == (0, 1)


def test_capsules_of_another_kind_are_an_error():
    schema, array = pa.array([1]).__arrow_c_array__()
    for read_capsules in (_arrow.stream_kind, _arrow.stream_chunks):
        with pytest.raises(ValueError, match="incorrect name"):
            read_capsules(array)
    for read_capsules in (_arrow.array_kind, _arrow.array_chunks):
        with pytest.raises(ValueError, match="incorrect name"):
            read_capsules((array, schema))


def test_a_capsule_that_was_already_consumed_is_an_error():
    array, stream = pa.array([1.5]).__arrow_c_array__(), pa.chunked_array([[1.5]]).__arrow_c_stream__()
    pa.Array._import_from_c_capsule(*array)
    pa.ChunkedArray._import_from_c_capsule(stream)
    fresh = pa.array([1.5]).__arrow_c_array__()
    half_taken = (fresh[0], array[1]), (array[0], fresh[1])
    for taken in (Array(array), Stream(stream), *map(Array, half_taken)):
        with pytest.raises(ValueError, match="`scores` must be Arrow data that can be read; it was taken out of its"):
            sf.fit(taken, [1.0])


def test_arrays_without_rows_need_no_memory():
    none = {kind: pa.Array.from_buffers(kind, 0, [None, None]) for kind in (pa.int32(), pa.float64(), pa.bool_())}
    places, numbers = none[pa.int32()], none[pa.float64()]
    encoded = pa.DictionaryArray.from_arrays(places, pa.array([1.5, None]))
    for array in (*none.values(), encoded, pa.RunEndEncodedArray.from_arrays(places, numbers)):
        assert read(array).shape == read(pa.chunked_array([array, array])).shape == (0,)


def test_groups_can_be_arrow_data_of_any_library():
    keys = pa.chunked_array([["b", "a"], ["b", "b"]])
    found = sf.fit_groups([1, 2, 3, 4], [0, 1, 1, 0], Stream(keys.__arrow_c_stream__()))
    assert found == sf.fit_groups([1, 2, 3, 4], [0, 1, 1, 0], keys)


def test_arrow_groups_without_pyarrow_raise_an_error_that_says_what_to_install(monkeypatch):
    keys = Stream(pa.chunked_array([["b", "a"]]).__arrow_c_stream__())
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"`groups` needs pyarrow, .*pip install '\.\[arrow\]' in a checkout"):
        sf.fit_groups([1, 2], [0, 1], keys)


def test_a_table_can_have_dictionaries_and_runs():
    table = pa.table({"a": pa.array([1.5, 2.5, 1.5]).dictionary_encode(), "b": pc.run_end_encode(pa.array([1, 1, 2]))})
    assert read(table).tolist() == [[1.5, 1], [2.5, 1], [1.5, 2]]
    assert read(Stream(table.__arrow_c_stream__())).tolist() == [[1.5, 1], [2.5, 1], [1.5, 2]]


def test_dictionaries_without_pyarrow_raise_an_error_that_says_what_to_install(monkeypatch):
    column = Stream(pa.chunked_array([pa.array([1.5]).dictionary_encode()]).__arrow_c_stream__())
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"`x` needs pyarrow, .*pip install '\.\[arrow\]' in a checkout"):
        read(column)


@pytest.mark.parametrize("made", ["numbers", "numbers.dictionary_encode()", "pc.run_end_encode(numbers)"])
def test_pandas_is_not_imported(made):
    code = f"""
import sys
import numpy as np, pyarrow as pa, pyarrow.compute as pc, staircase_fast as sf
numbers = pa.Array.from_buffers(pa.float64(), 2, [None, pa.py_buffer(np.ones(2))])  # pa.array would import it
sf.fit({made}, {made})
assert "pandas" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_numbers_are_read_without_pyarrow(monkeypatch):
    columns = [Stream(pa.chunked_array([[1.0, 2.0], [0.5]]).__arrow_c_stream__()) for _ in range(2)]
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert_same_bits(sf.fit(*columns).values, np.array([0.5, 1.0, 2.0]))


# Broken objects

POINTER, INTEGER = ctypes.c_void_p, ctypes.c_int64
STRUCTURES = {
    b"arrow_schema": ["format", "name", "metadata", "flags", "n_children", "children", "dictionary", "release"],
    b"arrow_array": ["length", "null_count", "offset", "n_buffers", "n_children", "buffers", "children", "dictionary"],
}
NUMBERS = ("length", "null_count", "offset", "n_buffers", "n_children", "flags")


@contextlib.contextmanager
def forged(capsule, kind, **changed):
    """A capsule of Arrow's with other fields, until the library frees it that has made it."""
    get = ctypes.PYFUNCTYPE(POINTER, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_GetPointer", ctypes.pythonapi))
    fields = [(name, INTEGER if name in NUMBERS else POINTER) for name in STRUCTURES[kind]]
    own = type("Own", (ctypes.Structure,), {"_fields_": fields}).from_address(get(capsule, kind))
    before = {name: getattr(own, name) for name in changed}
    for name, value in changed.items():
        setattr(own, name, value)
    yield
    for name, value in before.items():
        setattr(own, name, value)


PLAIN = pa.array([1.5, 2.5])
TABLE = pa.record_batch({"a": [1.5]})
TEXTS = {text: ctypes.create_string_buffer(text) for text in (b"", b"d:x,y", b"d:9,2,7", b"g", b"\xff")}


def text(content):
    return ctypes.addressof(TEXTS[content])


@pytest.mark.parametrize(
    ("array", "kind", "changed", "message"),
    [
        (PLAIN, b"arrow_array", {"length": -1}, "its length or its offset is impossible"),
        (PLAIN, b"arrow_array", {"length": 2**63 - 1}, "its length or its offset is impossible"),
        (PLAIN, b"arrow_array", {"offset": -1}, "its length or its offset is impossible"),
        (PLAIN, b"arrow_array", {"n_buffers": 1}, "it has too few buffers"),
        (PLAIN, b"arrow_array", {"buffers": None}, "it has too few buffers"),
        (PLAIN, b"arrow_schema", {"format": None}, "its schema has no format"),
        (PLAIN, b"arrow_schema", {"n_children": 1}, "its schema has no children"),
        (PLAIN, b"arrow_schema", {"release": None}, "it was taken out of its capsule before"),
        (TABLE, b"arrow_array", {"n_children": 0}, "it has too few children"),
        (TABLE, b"arrow_array", {"children": None}, "it has too few children"),
    ],
)
def test_inconsistent_arrow_data_is_an_error(array, kind, changed, message):
    capsules = dict(zip(STRUCTURES, array.__arrow_c_array__(), strict=True))
    with (
        forged(capsules[kind], kind, **changed),
        pytest.raises(ValueError, match=f"`x` must be Arrow data that can be read; {message}"),
    ):
        read(Array(tuple(capsules.values())))


@pytest.mark.parametrize("letters", [b"", b"d:x,y", b"d:9,2,7", b"\xff"])
def test_arrow_data_of_an_unknown_type_is_an_error(letters):
    capsules = PLAIN.__arrow_c_array__()
    with (
        forged(capsules[0], b"arrow_schema", format=text(letters)),
        pytest.raises(TypeError, match="`x` must be real numbers; got Arrow data of type"),
    ):
        read(Array(capsules))


@pytest.mark.parametrize("place", [-1, 2, 2**31 - 1])
@pytest.mark.parametrize("values", [[1.5, 2.5], [1.5, None]])
def test_an_index_outside_the_dictionary_is_an_error(place, values):
    places = pa.array([0, 0, place], type=pa.int32())
    array = pa.DictionaryArray.from_arrays(places, pa.array(values), safe=False)
    with pytest.raises(ValueError, match=r"`x` must be Arrow data that can be read; Index .* out of bounds"):
        read(array)


def test_a_missing_buffer_is_an_error():
    for kind in (pa.float64(), pa.bool_()):
        capsules = pa.Array.from_buffers(kind, 0, [None, None]).__arrow_c_array__()
        with (
            forged(capsules[1], b"arrow_array", length=3),
            pytest.raises(ValueError, match="`x` must be Arrow data that can be read; it has no memory for its"),
        ):
            read(Array(capsules))


def consumed():
    capsules = pa.array([1.5]).__arrow_c_array__()
    pa.Array._import_from_c_capsule(*capsules)
    return capsules


def raised(error):
    raise error


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        (lambda: raised(KeyError("gone")), ValueError, "'gone'"),
        (lambda: raised(OSError(5, "the disk is gone")), ValueError, "the disk is gone"),
        (lambda: raised(ZeroDivisionError()), ValueError, "ZeroDivisionError"),
        (lambda: raised(TypeError("no such schema")), TypeError, "no such schema"),
        (lambda: None, TypeError, "None"),
        (lambda: 3, TypeError, "int"),
        (lambda: (1, 2), ValueError, "PyCapsule"),
        (lambda: (1, 2, 3), ValueError, "too many values"),
        (lambda: pa.array([1.5]).__arrow_c_array__()[::-1], ValueError, "PyCapsule"),
        (consumed, ValueError, "it was taken out of its capsule before"),
        (
            lambda: (pa.array([1.5]).__arrow_c_array__()[0], consumed()[1]),
            ValueError,
            "it was taken out of its capsule",
        ),
    ],
)
def test_the_error_for_a_broken_export_names_the_argument(given, error, message):
    class Broken:
        def __arrow_c_array__(self, requested_schema=None):
            return given()

    told = f"must be Arrow data that can be read; .*{re.escape(message)}"
    with pytest.raises(error, match=f"`scores` {told}"):
        sf.fit(Broken(), [1.0])
    with pytest.raises(error, match=f"`sample_weight` {told}"):
        sf.fit([1.0], [1.0], sample_weight=Broken())
    with pytest.raises((TypeError, ValueError), match="`groups` must be Arrow data that can be read; "):
        sf.fit_groups([1.0], [1.0], Broken())


@pytest.mark.parametrize(
    "given", [lambda: raised(KeyError("gone")), lambda: None, lambda: 3, lambda: pa.array([1.5]).__arrow_c_array__()[1]]
)
def test_the_error_for_a_broken_stream_names_the_argument(given):
    class Broken:
        def __arrow_c_stream__(self, requested_schema=None):
            return given()

    with pytest.raises((TypeError, ValueError), match="`targets` must be Arrow data that can be read; "):
        sf.fit([1.0], Broken())


def test_a_stream_that_gives_no_schema_is_an_error():
    says = ctypes.CFUNCTYPE(ctypes.c_int, POINTER, POINTER)
    fields = [
        ("get_schema", says),
        ("get_next", says),
        *((name, POINTER) for name in ("last_error", "release", "data")),
    ]
    stream = type("Own", (ctypes.Structure,), {"_fields_": fields})(
        says(lambda *_: 0), says(lambda *_: 0), None, 1, None
    )
    new = ctypes.PYFUNCTYPE(ctypes.py_object, POINTER, ctypes.c_char_p, POINTER)(("PyCapsule_New", ctypes.pythonapi))
    with pytest.raises(ValueError, match="`x` must be Arrow data that can be read; its schema was released before"):
        read(Stream(new(ctypes.addressof(stream), b"arrow_array_stream", None)))


def test_strings_whose_first_entry_cannot_be_shown_are_an_error():
    class Broken(Array):
        def __getitem__(self, place):
            raise KeyError("gone")

    with pytest.raises(ValueError, match="`x` must be real numbers; 'gone'"):
        read(Broken(pa.array(["a"]).__arrow_c_array__()))
