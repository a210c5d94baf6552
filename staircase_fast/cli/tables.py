"""Tables in files and pipes, read and written by pyarrow one batch of rows at a time.

The formats are text (CSV and TSV, also compressed), Parquet, and Arrow streams.
"""

from __future__ import annotations

import contextlib
import csv
import io
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from staircase_fast.batches.sources import expand_paths
from staircase_fast.errors import InvalidInputError
from staircase_fast.inputs.options import refuse_column
from staircase_fast.storage import files

FORMATS = ("csv", "tsv", "parquet", "arrow")
ROWS = 1 << 20  # maximum rows of a Parquet batch or row group

_EXTENSIONS = {".csv": "csv", ".tsv": "tsv", ".parquet": "parquet", ".pq": "parquet", ".arrows": "arrow"}
_COMPRESSIONS = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}
_DELIMITERS = {"csv": ",", "tsv": "\t"}
_BLOCK = 8 << 20  # bytes of text that are parsed at a time
# how Arrow names the column and the row of an error in a CSV file; it counts rows from 1
_CSV_ERROR = re.compile(r"(?:In CSV column #(\d+): )?(?:CSV parse error: )?(?:Row #(\d+): )?(.*)", re.DOTALL)


class TableFile(NamedTuple):
    """The path and the format of a table."""

    path: str  # "-" is standard input or output
    format: str
    delimiter: str
    compression: str | None  # of a text file

    @property
    def name(self) -> str:
        """The name of an input file in messages."""
        return "standard input" if self.path == "-" else self.path

    @property
    def is_text(self) -> bool:
        """Whether the format is text, whose columns have no types."""
        return self.format in _DELIMITERS


class Source(NamedTuple):
    """A table that is open for reading."""

    file: TableFile
    schema: Any  # for text, all columns are strings here; the batches have the inferred types
    n_rows: int | None  # None if it is unknown before the end
    batches: Callable[[list[str] | None], Iterator[Any]]  # iterates over batches with these columns, or with all
    compression: Any = "snappy"  # for Parquet files that are written from this table


def _format_of(path: str) -> tuple[str | None, str | None]:
    """The format and the compression that the extension stands for."""
    stem, extension = os.path.splitext(path.lower())
    compression = _COMPRESSIONS.get(extension)
    return _EXTENSIONS.get(os.path.splitext(stem)[1] if compression else extension), compression


def has_table_name(path: str) -> bool:
    """Whether the extension is that of a table."""
    return _format_of(path)[0] is not None


def input_paths(paths: list[str]) -> list[str]:
    """All files that are meant; a missing file is an error."""
    found = expand_paths(paths)
    for path in found:
        if path != "-":
            os.stat(path)
    return found


def table_file(path: str, form: str | None = None, delimiter: str | None = None) -> TableFile:
    """Infer the format from the extension; `form` is for other names, and standard input is CSV by default."""
    found, compression = _format_of(path)
    found = found or form
    if found is None and path == "-":
        found = "csv"
    if found is None:
        raise InvalidInputError("", "cannot infer the format from the file name", found="use --format", file=path)
    return TableFile(path, found, delimiter or _DELIMITERS.get(found, ","), compression)


@contextlib.contextmanager
def located(
    file: str,
    columns: Mapping[str, str] | None = None,
    offset: int = 0,
    rows: Any = None,
    starts: Mapping[int, str] | None = None,
) -> Iterator[None]:
    """Add the file, the column and the row to errors that are raised inside, unless they already name a file.

    `columns` maps arguments to names of columns.  Index 0 is row `offset` of the file, or row `offset + rows[0]`.  If
    several files were read one after the other, `starts` maps the number of their first rows to their names.
    """
    try:
        yield
    except InvalidInputError as error:
        if error.file is None:
            error.file = file
            error.column = (columns or {}).get(error.argument, error.column)
            if error.index is not None:
                error.row = offset + int(error.index if rows is None else rows[error.index])
                first = max((start for start in starts or () if start <= error.row), default=0)
                error.file, error.row = (starts or {}).get(first, file), error.row - first
        raise
    except (TypeError, ValueError) as error:
        raise InvalidInputError("", str(error).rstrip("."), file=file) from None
    except OSError as error:
        if error.errno is None:  # Arrow raises it for malformed files
            raise InvalidInputError("", str(error).rstrip("."), file=file) from None
        if error.filename is None or os.path.basename(error.filename).startswith(files.TEMPORARY):
            raise OSError(error.errno, os.strerror(error.errno), file) from None
        raise


def prefetch(batches: Iterable[Any]) -> Iterator[Any]:
    """Iterate with one batch of read-ahead, in a thread.

    The caller can be interrupted while it waits for a batch, because nothing waits for the thread to end.
    """
    from concurrent.futures import ThreadPoolExecutor

    pool, iterator = ThreadPoolExecutor(1), iter(batches)
    try:
        future = pool.submit(next, iterator, None)
        while (batch := future.result()) is not None:
            future = pool.submit(next, iterator, None)
            yield batch
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def progress(source: Source, title: str) -> Any:
    """A progress bar that counts rows; it is shown if standard error is a terminal."""
    from tqdm import tqdm

    return tqdm(total=source.n_rows, desc=title, unit=" rows", unit_scale=True, leave=False, disable=None)


@contextlib.contextmanager
def open_table(file: TableFile, text_columns: Iterable[str] | None = None) -> Iterator[Source]:
    """Open a table for reading.

    In text files, `text_columns` are read as strings, and the first rows determine the types of the other columns.  If
    `text_columns` is None, all columns are strings.
    """
    import pyarrow as pa

    with located(file.name), contextlib.ExitStack() as stack:
        if file.path == "-":
            stream: Any = sys.stdin.buffer
        elif files.is_special(file.path):  # only Python can be interrupted while it waits for a pipe
            stream = stack.enter_context(open(file.path, "rb"))
        else:
            stream = stack.enter_context(pa.OSFile(file.path))
        if file.is_text:
            if file.compression:
                stream = pa.CompressedInputStream(stream, file.compression)
            yield _open_text(file, stream if hasattr(stream, "peek") else io.BufferedReader(stream), text_columns)
        elif file.format == "parquet":
            # Parquet is read from its end, so a pipe must be read completely
            yield _open_parquet(file, stream if isinstance(stream, pa.NativeFile) else pa.BufferReader(stream.read()))
        else:
            opened = pa.ipc.open_stream(stream)
            yield Source(
                file, opened.schema, None,
                lambda columns: (batch if columns is None else batch.select(columns) for batch in opened),
            )  # fmt: skip


def read_batches(source: Source, columns: Iterable[str]) -> Iterator[Any]:
    """Some columns of a table, batch by batch."""
    for column in columns:
        column_index(source.schema.names, column)
    return prefetch(source.batches(list(dict.fromkeys(columns))))


def read_table(file: TableFile, columns: Iterable[str], title: str = "read") -> Any:
    """Read columns of all rows; return None if there are none.  The progress bar shows `title`."""
    import pyarrow as pa

    with open_table(file) as source, progress(source, title) as bar:
        batches = []
        for batch in read_batches(source, columns):
            batches.append(batch)
            bar.update(len(batch))
        return pa.Table.from_batches(batches) if any(map(len, batches)) else None


def column_index(names: list[str], column: str) -> int:
    """The position of a column."""
    count = names.count(column)
    if count > 1:
        raise InvalidInputError("", f"column {column!r} appears {'twice' if count == 2 else f'{count} times'}")
    if not count:
        separator = re.search(r"[,;|\t]", names[0]) if len(names) == 1 else None
        hint = f"If {separator[0]!r} separates the columns, use --delimiter." if separator else ""
        if all(re.fullmatch(r"[-+\d.eE]+", name) for name in names):
            hint = "If these are data, add a first line with the names of the columns."
        refuse_column(column, names, hint=hint)
    return names.index(column)


def _open_text(file: TableFile, stream: io.BufferedReader, text_columns: Iterable[str] | None) -> Source:
    import pyarrow as pa
    import pyarrow.csv

    lines = (line.decode("utf-8-sig") for line in stream)
    try:
        names = next(csv.reader(lines, delimiter=file.delimiter), [])
    except (csv.Error, UnicodeDecodeError) as error:
        hint = ""
        if isinstance(error, UnicodeDecodeError):
            hint = "Use --format if the pipe is not CSV." if file.path == "-" else "Convert the file to UTF-8."
        raise InvalidInputError("", "the first line must name the columns", found=str(error), hint=hint) from None
    if not names:
        raise InvalidInputError("", "the first line must name the columns", found="the file is empty")

    def batches(columns: list[str] | None) -> Iterator[Any]:
        if not stream.peek(1):
            return  # Arrow rejects a file without rows
        try:
            yield from pa.csv.open_csv(
                stream,
                # `prefetch` provides a thread; with more threads, Arrow's errors do not name the row
                read_options=pa.csv.ReadOptions(column_names=names, block_size=_BLOCK, use_threads=False),
                parse_options=pa.csv.ParseOptions(delimiter=file.delimiter, newlines_in_values=True),
                convert_options=pa.csv.ConvertOptions(
                    column_types=dict.fromkeys(names if text_columns is None else text_columns, pa.string()),
                    include_columns=columns,
                ),
            )
        except pa.ArrowInvalid as error:
            column, row, text = _CSV_ERROR.match(str(error)).groups()  # type: ignore[union-attr]  # it always matches
            raise InvalidInputError(
                "", "cannot be parsed" if column else "the text cannot be parsed", found=text.rstrip("."),
                column=names[int(column)] if column else None, row=int(row) - 1 if row else None,
            ) from None  # fmt: skip

    return Source(file, pa.schema([(name, pa.string()) for name in names]), None, batches)


def _open_parquet(file: TableFile, stream: Any) -> Source:
    from pyarrow import parquet

    opened = parquet.ParquetFile(stream, pre_buffer=True)
    groups = range(opened.num_row_groups)

    def batches(columns: list[str] | None) -> Iterator[Any]:
        for group in groups:
            yield from opened.iter_batches(ROWS, row_groups=[group], columns=columns)

    compression = {}
    if groups:
        for chunk in opened.metadata.row_group(0).to_dict()["columns"]:
            codec = chunk["compression"].lower()
            compression[chunk["path_in_schema"]] = "none" if codec == "uncompressed" else codec
    return Source(file, opened.schema_arrow, opened.metadata.num_rows, batches, compression or "snappy")


@contextlib.contextmanager
def create_table(file: TableFile, schema: Any, source: Source) -> Iterator[Callable[[Any], None]]:
    """Yield a function that writes a batch.  Parquet keeps the compression and the row groups of the source."""
    from pyarrow import ipc

    with located("standard output" if file.path == "-" else file.path), _open_output(file) as stream:
        if file.format == "parquet":
            with _parquet_writer(stream, schema, source) as write:
                yield write
        elif file.is_text:
            yield _text_writer(stream, schema, file.delimiter)
        else:
            writer = ipc.new_stream(stream, schema)
            yield writer.write_batch
            writer.close()


@contextlib.contextmanager
def _open_output(file: TableFile) -> Iterator[Any]:
    import pyarrow as pa

    pipe = None
    with contextlib.ExitStack() as stack:
        if file.path == "-":
            stream = pipe = _Pipe(sys.stdout.buffer)
        elif files.is_special(file.path):
            stream = pipe = _Pipe(stack.enter_context(open(file.path, "wb", buffering=0)))
        else:
            path = stack.enter_context(files.replacing_path(file.path))
            stream = stack.enter_context(pa.OSFile(path, "wb"))
        if file.compression is not None:
            stream = stack.enter_context(pa.CompressedOutputStream(stream, file.compression))
        try:
            yield stream
        except BaseException:
            if pipe is not None:
                pipe.discard = True
            raise
    if file.path == "-":
        sys.stdout.buffer.flush()


class _Pipe(io.RawIOBase):
    """Writes to a pipe until `discard` is set.

    Arrow writes the end of a table even after an error, and would block if the pipe is full.
    """

    discard = False

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def writable(self) -> bool:
        return True

    def write(self, content: Any) -> int:
        rest = memoryview(content).cast("B")
        size = len(rest)
        try:
            while len(rest) and not self.discard:
                rest = rest[self._stream.write(rest) :]
        except BaseException:
            self.discard = True
            raise
        return size


@contextlib.contextmanager
def _parquet_writer(stream: Any, schema: Any, source: Source) -> Iterator[Callable[[Any], None]]:
    import pyarrow as pa
    from pyarrow import parquet

    smallest_group = 1 if source.file.format == "parquet" else ROWS
    pending: list[Any] = []
    compression = source.compression
    if isinstance(compression, dict):
        new_columns = set(schema.names) - set(source.schema.names)
        compression = compression | dict.fromkeys(new_columns, next(iter(compression.values())))
    writer = parquet.ParquetWriter(stream, schema, compression=compression)

    def write(batch: Any) -> None:
        pending.append(batch)
        if sum(map(len, pending)) >= smallest_group:
            write_pending()

    def write_pending() -> None:
        writer.write_table(pa.Table.from_batches(pending, schema), row_group_size=ROWS)
        pending.clear()

    try:
        yield write
        if pending:
            write_pending()
        writer.close()
    finally:
        writer.is_open = False  # otherwise its destructor closes it again after an error


def _text_writer(stream: Any, schema: Any, delimiter: str) -> Callable[[Any], None]:
    import pyarrow as pa
    import pyarrow.csv

    def as_csv(batch: Any, quoting: str) -> Any:
        content = pa.BufferOutputStream()
        options = pa.csv.WriteOptions(include_header=False, delimiter=delimiter, quoting_style=quoting)
        pa.csv.write_csv(batch, content, options)
        return content.getvalue()

    def write(batch: Any) -> None:
        # Arrow cannot write string views, which polars exports
        columns = [one.cast(pa.large_string()) if str(one.type) == "string_view" else one for one in batch.columns]
        batch = pa.RecordBatch.from_arrays(columns, names=schema.names)
        # Arrow quotes either all strings or none; quotes are needed only if a string has special characters
        try:
            content = as_csv(batch, "none")
        except pa.ArrowInvalid:
            content = as_csv(batch, "needed")
        stream.write(content)

    header = io.StringIO()
    csv.writer(header, delimiter=delimiter, lineterminator="\n").writerow(schema.names)
    stream.write(header.getvalue().encode())
    return write
