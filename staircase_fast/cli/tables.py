"""Tables in files and pipes, read and written by pyarrow, a batch of rows at a time.

Text (CSV, TSV, also compressed), Parquet, and streams of Arrow.  What is read is one batch ahead of what is used, in a
thread of its own.  Files are written whole or not at all (`files.py`).
"""

from __future__ import annotations

import contextlib
import csv
import io
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from staircase_fast.cli import checks
from staircase_fast.storage import files

FORMATS = ("csv", "tsv", "parquet", "arrow")
ROWS = 1 << 20  # in a batch, at most, and in a row group

_EXTENSIONS = {".csv": "csv", ".tsv": "tsv", ".parquet": "parquet", ".pq": "parquet", ".arrows": "arrow"}
_COMPRESSED = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}
_DELIMITERS = {"csv": ",", "tsv": "\t"}
_BLOCK = 8 << 20  # bytes of text that are parsed at a time
_END = object()

T = TypeVar("T")


class Place(NamedTuple):
    """Where a table is, or is to be."""

    path: str
    """A file, or "-" for standard input or output."""
    format: str
    delimiter: str
    compression: str | None
    """Of text; Parquet has its own inside."""

    @property
    def name(self) -> str:
        """What messages call it."""
        return "standard input" if self.path == "-" else self.path

    @property
    def is_text(self) -> bool:
        """Whether columns have no types of their own."""
        return self.format in _DELIMITERS


class Source(NamedTuple):
    """A table that is read batch by batch."""

    place: Place
    schema: Any
    """Of text, all columns are text here; batches know better."""
    n_rows: int | None
    """None: not known before the end."""
    batches: Callable[[list[str] | None], Iterator[Any]]
    """All columns, or some."""
    compression: Any = "snappy"
    """What Parquet files written from it use."""


def place_of(path: str, form: str | None = None, delimiter: str | None = None) -> Place:
    """The format by the extension of a file, else as said; CSV in pipes."""
    stem, last = os.path.splitext(path.lower())
    compression = _COMPRESSED.get(last)
    found = _EXTENSIONS.get(os.path.splitext(stem)[1] if compression else last, form)
    if found is None and path == "-":
        found = "csv"
    if found is None:
        checks.no_format(path, FORMATS)
    return Place(path, found, delimiter or _DELIMITERS.get(found, ","), compression)


def column_of(values: NDArray[Any], present: NDArray[np.bool_] | None = None) -> Any:
    """Numbers or truth values as Arrow has them; what is not present is null.

    `pa.array` would import pandas for it.
    """
    import pyarrow as pa

    def packed(flags: NDArray[np.bool_]) -> Any:
        return pa.py_buffer(np.packbits(flags, bitorder="little"))

    content = packed(values) if values.dtype == np.bool_ else pa.py_buffer(values)
    validity = None if present is None else packed(present)
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), [validity, content])


def ahead(items: Iterable[T]) -> Iterator[T]:
    """The same items, each made by a thread while the one before is in use.

    Whoever waits for one can be interrupted, even if it never comes: nobody waits for the thread.
    """
    from concurrent.futures import ThreadPoolExecutor

    pool, iterator = ThreadPoolExecutor(1), iter(items)
    try:
        coming = pool.submit(next, iterator, _END)
        while (item := coming.result()) is not _END:
            coming = pool.submit(next, iterator, _END)
            yield item  # type: ignore[misc]
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


@contextlib.contextmanager
def reading(place: Place, text_columns: Iterable[str] | None = None) -> Iterator[Source]:
    """Open a table.  These columns of text stay text, others get the type of their first rows; None: all stay text."""
    import pyarrow as pa

    with checks.told_of_file(place.name), contextlib.ExitStack() as stack:
        if place.path == "-":
            file: Any = sys.stdin.buffer
        elif files.is_special(place.path):  # Python can be interrupted while it waits for a pipe
            file = stack.enter_context(open(place.path, "rb"))
        else:
            file = stack.enter_context(pa.OSFile(place.path))
        if place.is_text:
            if place.compression:
                file = pa.CompressedInputStream(file, place.compression)
            yield _text(place, file if hasattr(file, "peek") else io.BufferedReader(file), text_columns)
        elif place.format == "parquet":
            # its end must be read first: what comes from a pipe is held in memory
            yield _parquet(place, file if isinstance(file, pa.NativeFile) else pa.BufferReader(file.read()))
        else:
            yield _stream(place, file)


def _text(place: Place, file: io.BufferedReader, text_columns: Iterable[str] | None) -> Source:
    import pyarrow as pa
    import pyarrow.csv as text

    with checks.told_of(place.name, {}):
        lines = (line.decode("utf-8-sig") for line in file)
        try:
            names = next(csv.reader(lines, delimiter=place.delimiter), [])
        except csv.Error as error:
            names = checks.odd_header(error)
    if not names:
        checks.no_header(place.name)
    kept = {name: pa.string() for name in (names if text_columns is None else text_columns)}

    def batches(columns: list[str] | None) -> Iterator[Any]:
        if not file.peek(1):
            return  # Arrow refuses a file without rows
        with checks.told_of_file(place.name), checks.told_by_arrow(place.name, names):
            yield from text.open_csv(
                file,
                # it has a thread of its own (`ahead`); with more, it would not know the number of a row
                read_options=text.ReadOptions(column_names=names, block_size=_BLOCK, use_threads=False),
                parse_options=text.ParseOptions(delimiter=place.delimiter, newlines_in_values=True),
                convert_options=text.ConvertOptions(column_types=kept, include_columns=columns),
            )

    return Source(place, pa.schema([(name, pa.string()) for name in names]), None, batches)


def _parquet(place: Place, file: Any) -> Source:
    from pyarrow import parquet

    with checks.told_of(place.name, {}):
        opened = parquet.ParquetFile(file, pre_buffer=True)
    groups = range(opened.num_row_groups)

    def batches(columns: list[str] | None) -> Iterator[Any]:
        with checks.told_of_file(place.name), checks.told_of(place.name, {}):
            for group in groups:
                yield from opened.iter_batches(ROWS, row_groups=[group], columns=columns)

    compression: Any = "snappy"
    if groups:
        first = opened.metadata.row_group(0)
        chunks = [first.column(number) for number in range(first.num_columns)]
        compression = {chunk.path_in_schema: _codec(chunk.compression) for chunk in chunks}
    return Source(place, opened.schema_arrow, opened.metadata.num_rows, batches, compression)


def _codec(name: str) -> str:
    return "none" if name == "UNCOMPRESSED" else name.lower()


def _stream(place: Place, file: Any) -> Source:
    from pyarrow import ipc

    with checks.told_of(place.name, {}):
        opened = ipc.open_stream(file)

    def batches(columns: list[str] | None) -> Iterator[Any]:
        with checks.told_of_file(place.name), checks.told_of(place.name, {}):
            for batch in opened:
                yield batch if columns is None else batch.select(columns)

    return Source(place, opened.schema, None, batches)


@contextlib.contextmanager
def writing(place: Place, schema: Any, source: Source) -> Iterator[Callable[[Any], None]]:
    """A function that writes a batch; Parquet has the compression of the source, and its row groups if it has any."""
    name = "standard output" if place.path == "-" else place.path
    with checks.told_of_file(name), _sink(place) as sink:
        if place.format == "parquet":
            writer = _parquet_writer(sink, schema, source)
        elif place.is_text:
            writer = _text_writer(sink, schema, place.delimiter)
        else:
            writer = _stream_writer(sink, schema)
        with writer as write:
            yield write


@contextlib.contextmanager
def _sink(place: Place) -> Iterator[Any]:
    import pyarrow as pa

    valve = None
    with contextlib.ExitStack() as stack:
        if place.path == "-":
            sink = valve = _Valve(sys.stdout.buffer)
        elif files.is_special(place.path):
            sink = valve = _Valve(stack.enter_context(open(place.path, "wb", buffering=0)))
        else:
            path = stack.enter_context(files.replacing_path(place.path))
            sink = stack.enter_context(pa.OSFile(path, "wb"))
        if place.compression is not None:
            sink = stack.enter_context(pa.CompressedOutputStream(sink, place.compression))
        try:
            yield sink
        except BaseException:
            if valve is not None:
                valve.shut = True
            raise
    if place.path == "-":
        sys.stdout.buffer.flush()


class _Valve(io.RawIOBase):
    """Where bytes go on to a pipe, until it is shut.

    Arrow writes the end of a table even after an error, and would wait for ever for somebody to read it.
    """

    shut = False

    def __init__(self, pipe: Any) -> None:
        self._pipe = pipe

    def writable(self) -> bool:
        return True

    def write(self, content: Any) -> int:
        left = memoryview(content).cast("B")
        size = len(left)
        while len(left) and not self.shut:
            left = left[self._pipe.write(left) :]
        return size


@contextlib.contextmanager
def _parquet_writer(sink: Any, schema: Any, source: Source) -> Iterator[Callable[[Any], None]]:
    import pyarrow as pa
    from pyarrow import parquet

    least = 1 if source.place.format == "parquet" else ROWS
    waiting: list[Any] = []
    compression = source.compression
    if isinstance(compression, dict):
        new = set(schema.names) - set(source.schema.names)
        compression = compression | dict.fromkeys(new, next(iter(compression.values()), "snappy"))
    writer = parquet.ParquetWriter(sink, schema, compression=compression)

    def flush() -> None:
        table = pa.Table.from_batches(waiting, schema)
        waiting.clear()
        writer.write_table(table, row_group_size=ROWS)

    def write(batch: Any) -> None:
        waiting.append(batch)
        if sum(map(len, waiting)) >= least:
            flush()

    try:
        yield write
        if waiting:
            flush()
        writer.close()
    finally:
        writer.is_open = False  # else it would try once more when it is forgotten


@contextlib.contextmanager
def _text_writer(sink: Any, schema: Any, delimiter: str) -> Iterator[Callable[[Any], None]]:
    import pyarrow as pa
    import pyarrow.csv as text

    def written(batch: Any, quoting: str) -> Any:
        memory = pa.BufferOutputStream()
        options = text.WriteOptions(include_header=False, delimiter=delimiter, quoting_style=quoting)
        text.write_csv(batch, memory, options)
        return memory.getvalue()

    def write(batch: Any) -> None:
        batch = _without_views(batch)
        # Arrow quotes all text or none: none, unless a batch has delimiters, quotes or ends of lines in it
        try:
            content = written(batch, "none")
        except pa.ArrowInvalid:
            content = written(batch, "needed")
        sink.write(content)

    header = io.StringIO()
    csv.writer(header, delimiter=delimiter, lineterminator="\n").writerow(schema.names)
    sink.write(header.getvalue().encode())
    yield write


def _without_views(batch: Any) -> Any:
    """The same rows, with text that Arrow can write as text; the streams of polars, say, have views."""
    import pyarrow as pa

    names = batch.schema.names
    columns = [one.cast(pa.large_string()) if str(one.type) == "string_view" else one for one in batch.columns]
    return pa.RecordBatch.from_arrays(columns, names=names)


@contextlib.contextmanager
def _stream_writer(sink: Any, schema: Any) -> Iterator[Callable[[Any], None]]:
    from pyarrow import ipc

    writer = ipc.new_stream(sink, schema)
    yield writer.write_batch
    writer.close()
