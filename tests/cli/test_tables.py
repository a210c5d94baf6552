"""Tables in files and pipes: copies are unchanged; errors name the file, the column and the row."""

import decimal
import io
import re
import sys

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import ipc, parquet

from staircase_fast.cli import columns, tables
from staircase_fast.cli.tables import table_file
from staircase_fast.storage import files

pytestmark = pytest.mark.long


def rows(path, columns=None, text_columns=None):
    with tables.open_table(table_file(str(path)), text_columns) as source:
        batches = list(source.batches(columns))
        return pa.Table.from_batches(batches, batches[0].schema if batches else source.schema)


def copy(source_path, target_path, text_columns=None):
    """Copy a table."""
    target = table_file(str(target_path))
    with tables.open_table(table_file(str(source_path)), None if target.is_text else text_columns or []) as source:
        batches = list(source.batches(None))
        with tables.create_table(target, batches[0].schema if batches else source.schema, source) as write:
            for batch in batches:
                write(batch)


@pytest.mark.parametrize(
    ("path", "form", "expected"),
    [
        ("a.csv", None, ("csv", ",", None)),
        ("A.CSV.GZ", None, ("csv", ",", "gzip")),
        ("a.tsv.zst", None, ("tsv", "\t", "zstd")),
        ("a.tsv", "parquet", ("tsv", "\t", None)),
        ("a.pq", None, ("parquet", ",", None)),
        ("a.parquet", "csv", ("parquet", ",", None)),
        ("a.arrows", None, ("arrow", ",", None)),
        ("a.dat", "tsv", ("tsv", "\t", None)),
        ("-", None, ("csv", ",", None)),
        ("-", "parquet", ("parquet", ",", None)),
    ],
)
def test_the_extension_determines_the_format_and_pipes_are_csv(path, form, expected):
    assert table_file(path, form)[1:] == expected


def test_an_unknown_extension_needs_a_format(tmp_path):
    with pytest.raises(ValueError, match=r"a\.dat: cannot infer the format from the file name; use --format\."):
        table_file("a.dat")
    assert table_file("a.csv", delimiter=";").delimiter == ";"


@pytest.mark.parametrize("extension", ["csv", "tsv", "csv.gz", "tsv.bz2", "csv.zst"])
def test_text_is_copied_unchanged(tmp_path, extension):
    """Numbers and leading zeros stay as written; quoted text is quoted again."""
    given = pa.table({"zip": ["007", "1e5", ""], "x": ["0.10", "1", "-0"], "say": ['a "b", c\td', "é\n", "NA"]})
    path, again = tmp_path / f"a.{extension}", tmp_path / f"b.{extension}"
    with tables.create_table(table_file(str(path)), given.schema, None) as write:
        write(given.to_batches()[0])
    copy(path, again)
    assert rows(path).equals(given)
    assert rows(again).equals(given)


def test_text_is_quoted_only_if_necessary(tmp_path):
    (tmp_path / "a.csv").write_text("a,b\nx,1\n")
    copy(tmp_path / "a.csv", tmp_path / "b.csv")
    assert (tmp_path / "b.csv").read_text() == "a,b\nx,1\n"


def test_string_views_are_written_as_strings(tmp_path):
    given = pa.table({"a": pa.array(["x", None, "y,z"], pa.string_view()), "b": [1, 2, 3]})
    with ipc.new_stream(str(tmp_path / "a.arrows"), given.schema) as writer:
        writer.write_table(given)
    copy(tmp_path / "a.arrows", tmp_path / "b.csv")
    assert (tmp_path / "b.csv").read_text() == 'a,b\n"x",1\n,2\n"y,z",3\n'


def test_text_columns_get_types_in_a_typed_output(tmp_path):
    (tmp_path / "a.csv").write_text("city,n,x,day\n007,1,0.5,2020-01-02\n8,2,,2020-01-03\n")
    copy(tmp_path / "a.csv", tmp_path / "b.parquet", ["city"])
    found = parquet.read_table(tmp_path / "b.parquet")
    assert [str(kind) for kind in found.schema.types] == ["string", "int64", "double", "date32[day]"]
    assert found["city"].to_pylist() == ["007", "8"]
    assert found["x"].to_pylist() == [0.5, None]


def test_windows_line_ends_and_a_byte_order_mark_are_read(tmp_path):
    (tmp_path / "a.csv").write_bytes('\ufeffscore,"la\nbel"\r\n0.5,1\r\n'.encode())
    assert rows(tmp_path / "a.csv").to_pydict() == {"score": ["0.5"], "la\nbel": ["1"]}


def test_parquet_keeps_types_metadata_row_groups_and_compression(tmp_path):
    schema = pa.schema(
        [pa.field("id", pa.int32(), nullable=False, metadata={"a": "b"}),
         ("word", pa.dictionary(pa.int8(), pa.string())), ("list", pa.list_(pa.float32())),
         ("at", pa.timestamp("ms", "UTC"))],
        metadata={"made by": "hand"},
    )  # fmt: skip
    given = pa.table(
        [[1, 2, 3], pa.array(["x", "y", "x"]).dictionary_encode().cast(schema.field(1).type), [[1.5], [], None],
         [0, 1, None]], schema=schema,
    )  # fmt: skip
    parquet.write_table(given, tmp_path / "a.parquet", row_group_size=2, compression={"id": "zstd", "word": "none"})
    copy(tmp_path / "a.parquet", tmp_path / "b.parquet")
    one, other = (parquet.ParquetFile(tmp_path / name) for name in ("a.parquet", "b.parquet"))
    assert other.read().equals(one.read())  # old releases of pyarrow widen the codes of dictionaries
    assert other.schema_arrow.equals(one.schema_arrow, check_metadata=True)
    assert other.schema_arrow.metadata[b"made by"] == b"hand"
    assert [other.metadata.row_group(group).num_rows for group in range(2)] == [2, 1]
    for column in range(4):
        codecs = {file.metadata.row_group(0).column(column).compression for file in (one, other)}
        assert len(codecs) == 1
    assert one.metadata.row_group(0).column(0).compression == "ZSTD"


def test_a_new_column_is_compressed_like_the_others(tmp_path):
    parquet.write_table(pa.table({"a": [1.0], "b": [2.0]}), tmp_path / "a.parquet", compression="zstd")
    with tables.open_table(table_file(str(tmp_path / "a.parquet"))) as source:
        schema = source.schema.append(pa.field("c", pa.float64()))
        with tables.create_table(table_file(str(tmp_path / "b.parquet")), schema, source) as write:
            write(pa.RecordBatch.from_arrays([pa.array([1.0])] * 3, schema=schema))
    group = parquet.ParquetFile(tmp_path / "b.parquet").metadata.row_group(0)
    assert [group.column(place).compression for place in range(3)] == ["ZSTD"] * 3


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view()])
def test_text_that_stands_for_a_missing_entry(kind):
    given = pa.array(["1", None, "", " NaN ", "NA", "n/a", "null", "nan0", "x"], kind)
    expected = [True, False, False, False, False, False, False, True, True]
    assert columns.present(given).to_pylist() == expected
    assert columns.present(given.cast(pa.string()).dictionary_encode()).to_pylist() == expected


def test_an_empty_parquet_file_has_columns_and_no_rows(tmp_path):
    parquet.write_table(pa.table({"a": pa.array([], pa.float32())}), tmp_path / "a.parquet")
    copy(tmp_path / "a.parquet", tmp_path / "b.parquet")
    assert parquet.read_table(tmp_path / "b.parquet").schema == pa.schema([("a", pa.float32())])


def test_small_batches_of_text_become_large_row_groups(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "_BLOCK", 64)
    monkeypatch.setattr(tables, "ROWS", 50)
    (tmp_path / "a.csv").write_text("n\n" + "\n".join(map(str, range(1000, 1120))))
    copy(tmp_path / "a.csv", tmp_path / "b.parquet")
    found = parquet.ParquetFile(tmp_path / "b.parquet").metadata
    assert found.num_rows == 120
    assert found.num_row_groups < 6


def test_arrow_streams_are_read_and_written(tmp_path, monkeypatch):
    given = pa.table({"a": [1, 2], "b": ["x", None]}, metadata={"k": "v"})
    with ipc.new_stream(str(tmp_path / "a.arrows"), given.schema) as writer:
        writer.write_table(given)
    copy(tmp_path / "a.arrows", tmp_path / "b.arrows")
    assert ipc.open_stream(str(tmp_path / "b.arrows")).read_all().equals(given, check_metadata=True)
    assert rows(tmp_path / "a.arrows", ["b"]).schema.names == ["b"]


@pytest.mark.parametrize("name", ["a.csv.gz", "a.arrows", "a.parquet"])
def test_errors_about_malformed_files_name_the_file(name, tmp_path):
    (tmp_path / name).write_bytes(bytes(range(200, 256)) * 10)
    with pytest.raises(ValueError, match=rf"^{re.escape(str(tmp_path / name))}: (?!.*{re.escape(name)})"):
        rows(tmp_path / name)


def test_errors_about_truncated_streams_name_the_file(tmp_path):
    given = pa.table({"a": range(1000)})
    with ipc.new_stream(str(tmp_path / "a.arrows"), given.schema) as writer:
        writer.write_table(given)
    (tmp_path / "a.arrows").write_bytes((tmp_path / "a.arrows").read_bytes()[:2000])
    with pytest.raises(ValueError, match=rf"^{re.escape(str(tmp_path))}.a\.arrows: (?!.*a\.arrows)"):
        rows(tmp_path / "a.arrows")


def test_pipes_support_every_format(tmp_path, monkeypatch):
    given = pa.table({"a": [1.5, 2.5]})
    for form in tables.FORMATS:
        out = io.TextIOWrapper(io.BytesIO())
        monkeypatch.setattr(sys, "stdout", out)
        place = table_file("-", form)
        with tables.create_table(place, given.schema, tables.Source(place, given.schema, None, None)) as write:
            write(given.to_batches()[0])
        content = out.buffer.getvalue()
        assert not out.closed
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
        with tables.open_table(place, []) as source:
            assert pa.Table.from_batches(source.batches(None)).equals(given)
            assert source.file.name == "standard input"


def test_a_missing_column_is_reported_with_the_existing_ones():
    names = ["a", "b", "a", *map(str, range(60))]
    assert tables.column_index(names, "b") == 1
    with pytest.raises(ValueError, match=r"column 'a' appears twice\."):
        tables.column_index(names, "a")
    with pytest.raises(ValueError, match=r"there is no column 'c'; the columns are 'a', 'b', .* and 43 more\."):
        tables.column_index(names, "c")
    with pytest.raises(ValueError, match="column 'a' appears 3 times"):
        tables.column_index(["a"] * 3, "a")


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (pa.array([1.5, 2.5], pa.float32()), np.array([1.5, 2.5], dtype=np.float32)),
        (pa.array([1, 0], pa.int8()), np.array([1, 0], dtype=np.int8)),
        (pa.array([True, False]), np.array([1, 0], dtype=np.uint8)),
        (pa.array([decimal.Decimal("1.5")]), np.array([1.5])),
        (pa.array(["1.5", " 2 ", "-inf"]), np.array([1.5, 2.0, -np.inf])),
        (pa.array(["1.5", " 2 "], pa.string_view()), np.array([1.5, 2.0])),
        (
            pa.DictionaryArray.from_arrays(pa.array([1, 0, 1]), pa.array(["1.5", " 2 "], pa.string_view())),
            np.array([2.0, 1.5, 2.0]),
        ),
        (pa.array(["True", "false"]), np.array([1, 0], dtype=np.uint8)),
        (pa.array(["1", "2", "1"]).dictionary_encode(), np.array([1.0, 2.0, 1.0])),
        (pa.array([], pa.null()), np.array([])),
        (pa.array([], pa.string()), np.array([])),
    ],
)
def test_numbers_keep_their_type_and_text_is_parsed(given, expected):
    found = columns.numbers("x", given)
    np.testing.assert_array_equal(found, expected)
    assert found.dtype == expected.dtype


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (pa.array([1.0, None]), r"`x` must not have missing entries; got null at index 1\."),
        (pa.array([None, None]), r"`x` must not have missing entries; got null at index 0\."),
        (pa.array(["1", "2", " ", "a"]), r"`x` must not have missing entries; got ' ' at index 2\."),
        (pa.array(["1", "2", "3", "4,5", "b"]), r"`x` must hold numbers; got '4,5' at index 3\."),
        (pa.array(["True", "2", "maybe"]), r"`x` must hold numbers; got 'True' at index 0\."),
        (pa.array([[1.0]]), r"`x` must hold numbers; got list<.*>, .1.0. at index 0\."),
        (pa.array([], pa.date32()), r"`x` must hold numbers; got date32\[day\]\."),
    ],
)  # fmt: skip
def test_entries_that_are_not_numbers_are_reported_with_value_and_index(given, message):
    with pytest.raises((TypeError, ValueError), match=message):
        columns.numbers("x", given)


def test_groups_are_converted_to_the_type_of_the_model():
    integers, words, flags = pa.array([7, -1]), pa.array(["07", "8"]), pa.array([True, False])
    keys, coded = columns.group_keys, words.dictionary_encode()
    assert keys(integers, int) is integers
    assert keys(words, str) is words
    assert keys(coded, str) is coded
    assert keys(words, int).equals(pa.array([7, 8]))
    assert keys(coded, int).equals(pa.array([7, 8]))
    assert keys(pa.chunked_array([coded, coded]), int).to_pylist() == [7, 8, 7, 8]
    assert keys(integers, str).equals(pa.array(["7", "-1"]))
    assert keys(pa.array(["true", "false"]), bool).equals(flags)
    with pytest.raises(ValueError, match="'a'"):
        keys(pa.array(["a"]), int)


def test_groups_in_text_are_integers_if_all_are_written_as_integers():
    keys = columns.text_keys
    assert keys(pa.array(["7", "-1"])).equals(pa.array([7, -1]))
    for words in (pa.array(["07", "8"]), pa.array(["a", "1"]), pa.array([""])):
        assert keys(words) is words


def test_a_value_of_another_type_than_the_first_rows_is_reported(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "_BLOCK", 32)
    path = tmp_path / "a.csv"
    path.write_text("n,m\n" + "1,2\n" * 40 + "1,x\n")
    with pytest.raises(
        ValueError,
        match=r"a\.csv: column 'm' cannot be parsed; CSV conversion error to int64: invalid value 'x' in row 40\.",
    ):
        rows(path, text_columns=[])


def test_nothing_waits_for_the_read_ahead():
    made = []

    def endless():
        for number in range(10):
            made.append(number)
            yield number

    items = tables.prefetch(endless())
    assert next(items) == 0
    items.close()
    assert len(made) <= 3
    with pytest.raises(ZeroDivisionError):
        list(tables.prefetch(1 // number for number in (1, 0)))


def test_devices_are_written_to_and_not_replaced(tmp_path):
    with files.replacing("/dev/null") as file:
        file.write(b"x")
    with open("/dev/null", "rb") as file:
        assert file.read() == b""
    with pytest.raises(OSError, match="No space"), files.replacing("/dev/full") as file:
        file.write(b"x")


def test_a_failed_write_leaves_nothing_behind(tmp_path):
    path = tmp_path / "a"
    path.write_text("old")
    with pytest.raises(ZeroDivisionError), files.replacing(path) as file:
        file.write(b"new %d" % (1 // len(b"")))
    assert [one.name for one in tmp_path.iterdir()] == ["a"]
    assert path.read_text() == "old"
