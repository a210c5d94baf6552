"""Sources of `fit_batches`: what the user passes becomes parts that can be read again and again, by several threads."""

from __future__ import annotations

import contextlib
import errno
import glob
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from staircase_fast.errors import InvalidInputError, InvalidTypeError
from staircase_fast.inputs.columns import made_by
from staircase_fast.inputs.options import import_optional, refuse_column

BATCH_ROWS = 1 << 17
_BYTES_PER_LINE = 20  # of text, to guess the number of rows
_FORMATS = {
    ".parquet": "parquet", ".pq": "parquet", ".csv": "csv", ".tsv": "csv", ".txt": "csv",
    ".arrow": "arrow", ".feather": "arrow", ".ipc": "arrow", ".arrows": "arrow",
}  # fmt: skip
_IN_FOLDERS = _FORMATS.keys() - {".txt"}
_COMPRESSED = (".gz", ".bz2", ".zst")
_PURPOSE = "fit_batches of files"


class Batch(NamedTuple):
    """Rows of any container, and where they come from."""

    table: Any
    name: str  # of the file or the batch
    offset: int | None = None  # row number in the file, if there is one


Part = Callable[[], Iterator[Batch]]
Names = tuple[str | None, str | None, str | None, str | None]  # of scores, targets, weights and groups
Columns = tuple[Any, Any, Any, Any]  # the same


class Source(NamedTuple):
    """Parts that are read independently."""

    parts: Callable[[], Iterable[Part]]
    n_rows: int | None = None  # about
    n_parts: int | None = None  # None: parts are known only when they arrive
    one_shot: bool = False  # the rows can be read only once


def source_of(given: Any, columns: list[str]) -> Source:
    """The source that the user has passed; `columns` are the names of those that are needed."""
    if isinstance(given, (str, os.PathLike)):
        return _files([os.fspath(given)], columns)
    if isinstance(given, (list, tuple)) and given and all(isinstance(one, (str, os.PathLike)) for one in given):
        return _files([os.fspath(path) for path in given], columns)
    if made_by("pyarrow", given) and hasattr(given, "get_fragments"):
        return _dataset(given, columns)
    if made_by("pyarrow", given) and hasattr(given, "to_batches"):
        return _batches(given.to_batches(max_chunksize=BATCH_ROWS))
    if made_by("polars", given) and hasattr(given, "collect_batches"):
        _check_names(None, given.collect_schema().names(), columns)
        chosen = given.select(columns) if columns else given
        return _iterators(lambda: iter(chosen.collect_batches(chunk_size=BATCH_ROWS, maintain_order=False)))
    if hasattr(given, "to_arrow_reader"):  # DuckDB
        _check_names(None, given.columns, columns)
        return _iterators(lambda: iter(_duckdb_reader(given, columns)))
    if made_by("pandas", given) or made_by("polars", given) or isinstance(given, Mapping):
        return _batches([given])
    if isinstance(given, (list, tuple)):
        return _batches(given)
    if callable(given):
        return _iterators(lambda: _iterator_of(given()))
    if hasattr(given, "__next__"):
        return _iterators(lambda: given)._replace(one_shot=True)
    requirement = "must be files, a dataset, a list of batches, or a function that returns an iterator of batches"
    raise InvalidTypeError("source", requirement, value=given)


def _iterator_of(batches: Any) -> Iterator[Any]:
    if not isinstance(batches, Iterable):
        raise InvalidTypeError("source", "must return an iterator of batches", value=batches)
    return iter(batches)


def _batches(batches: Iterable[Any]) -> Source:
    """Batches in memory."""
    given = list(batches)
    parts = [_one_batch(batch, place) for place, batch in enumerate(given)]
    return Source(lambda: parts, sum(map(n_rows_of, given)) or None, len(parts))


def _one_batch(table: Any, place: int) -> Part:
    return lambda: iter([Batch(table, f"batch {place}")])


def n_rows_of(table: Any) -> int:
    """The number of rows of a batch; 0 if it is unknown."""
    try:
        if isinstance(table, Mapping):
            table = next(iter(table.values()), ())
        elif isinstance(table, tuple):
            table = table[0] if table else ()
        return len(table)
    except TypeError:
        return 0


def _iterators(begin: Callable[[], Iterator[Any]]) -> Source:
    """Batches that arrive one by one."""
    return Source(lambda: (_one_batch(table, place) for place, table in enumerate(begin())))


def _duckdb_reader(relation: Any, columns: list[str]) -> Any:
    chosen = relation.select(*(f'"{name.replace(chr(34), 2 * chr(34))}"' for name in columns)) if columns else relation
    return chosen.to_arrow_reader(BATCH_ROWS)


def _dataset(dataset: Any, columns: list[str]) -> Source:
    """The fragments of a pyarrow Dataset; those of Parquet files are divided into row groups."""
    _check_names(None, dataset.schema.names, columns)
    fragments: list[Any] = []
    for fragment in dataset.get_fragments():
        fragments += fragment.split_by_row_group() if hasattr(fragment, "split_by_row_group") else [fragment]

    def part(fragment: Any) -> Part:
        # the threads of the fit read several fragments at a time
        settings = {"batch_size": BATCH_ROWS, "use_threads": False, "batch_readahead": 1, "fragment_readahead": 1}
        name = getattr(fragment, "path", "") or "dataset"
        return lambda: (
            Batch(batch, name) for batch in fragment.to_batches(dataset.schema, columns or None, **settings)
        )

    parts = [part(fragment) for fragment in fragments]
    return Source(lambda: parts, dataset.count_rows() or None, len(parts))


def _files(paths: list[str], columns: list[str]) -> Source:
    """Files, folders and patterns."""
    import_optional("pyarrow", _PURPOSE, extra="arrow")
    parts: list[Part] = []
    n_rows = 0
    for path in expand_paths(paths):
        form = _format_of(path)
        if form == "parquet":
            found, n = parquet_parts(path, columns)
            parts += found
            n_rows += n
        else:
            read = _read_text if form == "csv" else _read_arrow
            parts.append(_file_part(read, path, columns))
            n_rows += os.path.getsize(path) // _BYTES_PER_LINE + 1
    return Source(lambda: parts, n_rows or None, len(parts))


def expand_paths(paths: list[str]) -> list[str]:
    """All files that are meant, sorted: tables in folders, and files that match patterns.

    In folders, names without the extension of a table are ignored, also .txt, which is that of notes.  So are names
    that begin with "." or "_", as pyarrow does: copies, and files that are being written.
    """
    found: list[str] = []
    for path in paths:
        if os.path.isdir(path):
            inside = [os.path.join(folder, name) for folder, _, names in os.walk(path) for name in names]
            matches = [name for name in inside if _extension_of(name) in _IN_FOLDERS and not _is_hidden(name, path)]
        elif glob.has_magic(path) and not os.path.exists(path):
            matches = [name for name in glob.glob(path, recursive=True) if os.path.isfile(name)]
        elif path != "-" and _extension_of(path) not in _FORMATS and not os.path.exists(path):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        else:
            matches = [path]
        if not matches:
            hint = "Pass files with other extensions by name or pattern." if os.path.isdir(path) else ""
            raise InvalidInputError("", "there are no Parquet, CSV or Arrow files", file=path, hint=hint)
        found += sorted(matches)
    return found


def _is_hidden(path: str, folder: str) -> bool:
    return any(part.startswith((".", "_")) for part in os.path.relpath(path, folder).split(os.sep))


def _extension_of(path: str) -> str:
    """The extension that determines the format; only text can be compressed."""
    stem, extension = os.path.splitext(path.lower())
    if extension in _COMPRESSED:
        extension = os.path.splitext(stem)[1]
        extension = extension if _FORMATS.get(extension) == "csv" else ""
    return extension


def _format_of(path: str) -> str:
    form = _FORMATS.get(_extension_of(path))
    if form is None:
        known = ", ".join(_FORMATS)
        raise InvalidInputError("source", f"must be files with one of the extensions {known}", value=path)
    return form


def _file_part(read: Callable[[str, list[str]], Iterator[Any]], path: str, columns: list[str]) -> Part:
    def part() -> Iterator[Batch]:
        offset = 0
        for table in read(path, columns):
            yield Batch(table, path, offset)
            offset += len(table)

    return part


@contextlib.contextmanager
def _named(path: str) -> Iterator[None]:
    """Name the file in Arrow's errors about its content, which have no error number."""
    import pyarrow as pa

    try:
        yield
    except (OSError, pa.ArrowInvalid) as error:
        if getattr(error, "errno", None) is not None:
            raise
        raise InvalidInputError("", str(error).rstrip("."), file=path) from None


def parquet_parts(path: str, columns: list[str]) -> tuple[list[Part], int]:
    """A part for each row group, and the number of rows."""
    from pyarrow import parquet

    with _named(path):
        metadata = parquet.read_metadata(path)
    _check_names(path, metadata.schema.to_arrow_schema().names, columns)

    def part(group: int, offset: int) -> Part:
        def read() -> Iterator[Batch]:
            row = offset
            with _named(path), parquet.ParquetFile(path, metadata=metadata, pre_buffer=False) as file:
                batches = file.iter_batches(BATCH_ROWS, row_groups=[group], columns=columns or None, use_threads=False)
                for batch in batches:
                    yield Batch(batch, path, row)
                    row += len(batch)

        return read

    parts, n_rows = [], 0
    for group in range(metadata.num_row_groups):
        parts.append(part(group, n_rows))
        n_rows += metadata.row_group(group).num_rows
    return parts, n_rows


def _read_text(path: str, columns: list[str]) -> Iterator[Any]:
    import pyarrow as pa
    from pyarrow import csv

    options = csv.ParseOptions(delimiter="\t" if ".tsv" in path.lower() else ",")
    try:
        reader = csv.open_csv(path, parse_options=options, convert_options=csv.ConvertOptions(include_columns=columns))
        yield from reader
    except pa.ArrowKeyError:
        _check_names(path, csv.open_csv(path, parse_options=options).schema.names, columns)
        raise
    except pa.ArrowInvalid as error:
        raise InvalidInputError("", "the text cannot be parsed", found=str(error).rstrip("."), file=path) from None


def _read_arrow(path: str, columns: list[str]) -> Iterator[Any]:
    import pyarrow as pa

    with _named(path), pa.memory_map(path) as file:
        try:
            reader = pa.ipc.open_file(file)
            batches = (reader.get_batch(place) for place in range(reader.num_record_batches))
        except pa.ArrowInvalid:  # a stream
            file.seek(0)
            batches = iter(reader := pa.ipc.open_stream(file))
        _check_names(path, reader.schema.names, columns)
        for batch in batches:
            yield batch.select(columns) if columns else batch


def _check_names(file: str | None, names: list[str], columns: list[str]) -> None:
    for column in columns:
        if column not in names:
            refuse_column(column, names, file)


def columns_of(batch: Batch, names: Names) -> Columns:
    """Scores, targets, weights and groups of a batch; a tuple has them in this order."""
    table = batch.table
    score, target, weight, group = names
    if isinstance(table, tuple):
        if len(table) != 4 if group is not None else not 2 <= len(table) <= 3:
            requirement = "must have batches (scores, targets) or (scores, targets, weights)"
            if group is not None:
                requirement = "must have batches (scores, targets, weights or None, groups)"
            raise InvalidInputError("source", requirement, found=f"got {len(table)} columns", file=batch.name)
        return table[0], table[1], table[2] if len(table) > 2 else None, table[3] if len(table) > 3 else None
    if score is None or target is None:
        raise InvalidTypeError("score" if score is None else "target", "must be the name of a column", value=None)
    arrow = made_by("pyarrow", table)
    if not arrow and not isinstance(table, Mapping) and not hasattr(table, "columns"):
        requirement = "must have batches that are tables, dicts or tuples of columns"
        raise InvalidTypeError("source", requirement, value=table, file=batch.name)
    known = list(table.schema.names if arrow else table if isinstance(table, Mapping) else table.columns)
    _check_names(batch.name, known, [name for name in names if name is not None])
    found: dict[str | None, Any] = {
        name: table.column(name) if arrow else table[name] for name in names if name is not None
    }
    return found[score], found[target], found.get(weight), found.get(group)
