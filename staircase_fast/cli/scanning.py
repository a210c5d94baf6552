"""Fits and certificates of files that are read several times and never held in memory."""

from __future__ import annotations

import argparse
import contextlib
import os
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import staircase_fast as sf
from staircase_fast.batches import Driver
from staircase_fast.batches.certifying import Certifier, certify_groups
from staircase_fast.batches.fitting import Progress, run_driver
from staircase_fast.batches.fitting_groups import fit_source_groups
from staircase_fast.batches.groups import GroupCounts
from staircase_fast.batches.sources import Batch, Names, Part, Source, parquet_parts
from staircase_fast.cli import columns, tables
from staircase_fast.errors import InvalidInputError
from staircase_fast.losses import Loss, loss_of
from staircase_fast.storage import files

_LARGE = 2 * 10**8  # bytes of files that are not read into memory
Model = sf.Staircase | sf.StaircaseMap


def wanted(options: argparse.Namespace, loss: str | Loss) -> bool:
    """Whether to read the files by scans: the result is the same."""
    options.files = tables.input_paths(options.paths)
    possible = loss_of(loss).is_mean or bool(options.group)
    if options.streaming and not possible:
        found = f"got --loss {loss_of(loss).name}"
        raise InvalidInputError("", "--streaming needs a loss whose steps are means, or --group", found=found)
    regular = [path for path in options.files if not _is_pipe(path)]
    large = sum(os.path.getsize(path) for path in regular if os.path.exists(path)) > _LARGE
    scans = possible and (options.streaming or len(options.files) > 1 or large)
    if scans and options.group and len(regular) < len(options.files):
        found = "got a pipe, which can be read only once"
        raise InvalidInputError("", "--group needs files, or a single pipe without --streaming", found=found)
    return scans


def _is_pipe(path: str) -> bool:
    return path == "-" or files.is_special(path)


class _Groups:
    """Reads the groups of all files with one type.

    Columns of text files have no types.  Their groups are integers if all are written as integers; this is known after
    the first scan.  If there are other files, or a model, they have the type of the groups there.
    """

    def __init__(self, kind: type | None, check: Callable[[dict[str, Any]], object] | None = None) -> None:
        self.kind, self.check = kind, check

    def read(self, scores: Any, given: Any, *, is_text: bool) -> Any:
        """The groups of a batch; `check` may raise an error about them."""
        if self.check is not None:
            self.check({"scores": scores, "groups": given})
            is_text = True  # whatever their type is, groups get that of the model
        return given if self.kind is None or not is_text else columns.group_keys(given, self.kind, "the other files")

    def settle(self, found: GroupCounts) -> GroupCounts:
        """The groups that the first scan has found, with the type of further scans."""
        import pyarrow as pa

        if self.kind is not None:
            return found
        keys = columns.text_keys(pa.array(found.keys, pa.string()))
        self.kind = columns.key_kind(keys.type)
        return found._replace(keys=keys.to_pylist())


def fit(options: argparse.Namespace, names: dict[str, str], increasing: Any) -> Model:
    """The staircase of all rows, or of each group."""
    settings: dict[str, Any] = {"loss": options.loss, "increasing": increasing, "bounds": options.bounds}
    settings["memory_limit"] = options.memory_limit
    groups = _Groups(_kind_of_groups(options)) if options.group else None
    with _scans(options, names, groups) as (source, labels, progress):
        if groups is not None:
            return fit_source_groups(source, labels, settings, options.threads, progress, groups.settle)
        found: sf.Staircase = run_driver(partial(Driver, **settings), source, labels, options.threads, progress)
        return found


def certify(
    options: argparse.Namespace, names: dict[str, str], model: Model, check: Callable[[dict[str, Any]], object]
) -> dict[str, Any]:
    """The certificate of a model for all rows; `check` raises an error for groups that were not fitted."""
    settings: Any = {"loss": options.loss, "bounds": options.bounds, "memory_limit": options.memory_limit}
    if isinstance(model, sf.StaircaseMap):
        groups = _Groups(type(next(iter(model))), check)
        with _scans(options, names, groups) as (source, labels, progress):
            return certify_groups(
                model, source, labels, **settings, n_threads=options.threads, progress=progress
            )._asdict()
    with _scans(options, names) as (source, labels, progress):
        found: dict[str, Any] = run_driver(
            partial(Certifier, model, **settings), source, labels, options.threads, progress
        )._asdict()
        return found


@contextlib.contextmanager
def _scans(
    options: argparse.Namespace, names: dict[str, str], groups: _Groups | None = None
) -> Iterator[tuple[Source, Names, Progress]]:
    """What scans need: the source, its columns, and a progress bar."""
    from tqdm import tqdm

    source = _source(options, names, groups)
    labels = names["scores"], names["targets"], names.get("sample_weight"), names.get("groups")
    stage_shown = ""
    with tqdm(unit=" rows", unit_scale=True, leave=False, disable=None) as bar:

        def progress(stage: str, n_rows: int, total: int | None) -> None:
            nonlocal stage_shown
            if n_rows < bar.n or stage != stage_shown:  # a new scan
                bar.reset(total)
                stage_shown = stage
            bar.set_description_str(f"{options.command}, {stage}", refresh=False)
            bar.update(n_rows - bar.n)

        with tables.located(tables.table_file(options.files[0], options.format, options.delimiter).name, names):
            yield source, labels, progress


def _kind_of_groups(options: argparse.Namespace) -> type | None:
    """The type of the groups in the first file whose columns have types; None if all are text."""
    for path in options.files:
        file = tables.table_file(path, options.format, options.delimiter)
        if not file.is_text:
            with tables.open_table(file) as source:
                index = tables.column_index(source.schema.names, options.group)
                return columns.key_kind(source.schema.field(index).type)
    return None


def _source(options: argparse.Namespace, names: dict[str, str], groups: _Groups | None) -> Source:
    """The parts of all files: row groups of Parquet files, and whole files of other formats."""
    parts: list[Part] = []
    n_rows, one_shot = 0, False
    for path in options.files:
        file = tables.table_file(path, options.format, options.delimiter)
        one_shot |= _is_pipe(path)
        if file.format == "parquet" and not _is_pipe(path):
            with tables.located(file.name):
                found, n = parquet_parts(path, list(dict.fromkeys(names.values())))
            parts += [partial(_converted, part, names, groups) for part in found]
            n_rows += n
        else:
            parts.append(partial(_read_file, file, names, groups))
    return Source(lambda: parts, n_rows or None, len(parts), one_shot)


def _read_file(file: tables.TableFile, names: dict[str, str], groups: _Groups | None) -> Iterator[Batch]:
    offset = 0
    with tables.open_table(file) as source:
        for table in tables.read_batches(source, names.values()):
            yield _as_tuple(Batch(table, file.name, offset), names, groups, is_text=file.is_text)
            offset += len(table)


def _converted(part: Part, names: dict[str, str], groups: _Groups | None) -> Iterator[Batch]:
    return (_as_tuple(batch, names, groups) for batch in part())


def _as_tuple(batch: Batch, names: dict[str, str], groups: _Groups | None, *, is_text: bool = False) -> Batch:
    """A batch of numbers, and of groups."""
    numbers = {argument: name for argument, name in names.items() if argument != "groups"}
    with tables.located(batch.name, names, batch.offset or 0):
        found = {argument: columns.numbers(argument, batch.table.column(name)) for argument, name in numbers.items()}
        rows = found["scores"], found["targets"], found.get("sample_weight")
        if groups is not None:
            return batch._replace(
                table=(*rows, groups.read(rows[0], batch.table.column(names["groups"]), is_text=is_text))
            )
    return batch._replace(table=rows)
