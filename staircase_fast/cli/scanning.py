"""Fits and certificates of files that are read twice and never held in memory."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import staircase_fast as sf
from staircase_fast.batches import Driver
from staircase_fast.batches.certifying import Certifier
from staircase_fast.batches.fitting import run_driver
from staircase_fast.batches.sources import Batch, Part, Source, expand_paths, parquet_parts
from staircase_fast.cli import columns, tables
from staircase_fast.errors import InvalidInputError
from staircase_fast.losses import Loss, loss_of
from staircase_fast.storage import files

_LARGE = 2 * 10**8  # bytes of files that are not read into memory


def wanted(options: argparse.Namespace, loss: str | Loss) -> bool:
    """Whether to read the files by scans: the result is the same."""
    options.paths = expand_paths(options.paths)
    options.data = options.paths[0]
    possible = loss_of(loss).is_mean and not options.group
    if options.streaming and options.group:
        raise InvalidInputError("", "--streaming reads all rows together", found=f"got --group {options.group}")
    if options.streaming and not possible:
        found = f"got --loss {loss_of(loss).name}"
        raise InvalidInputError("", "--streaming needs a loss whose steps are means", found=found)
    if len(options.paths) > 1 and not possible:
        found = f"got --group {options.group}" if options.group else f"got --loss {loss_of(loss).name}"
        raise InvalidInputError("", "several files need a loss whose steps are means, and no groups", found=found)
    regular = [path for path in options.paths if path != "-" and os.path.exists(path) and not files.is_special(path)]
    large = sum(map(os.path.getsize, regular)) > _LARGE
    return possible and (options.streaming or len(options.paths) > 1 or large)


def fit(options: argparse.Namespace, names: dict[str, str], increasing: Any) -> sf.Staircase:
    """The staircase of all rows."""
    settings = {"loss": options.loss, "increasing": increasing, "bounds": options.bounds}
    found: sf.Staircase = _scan(options, names, partial(Driver, **settings))
    return found


def certify(options: argparse.Namespace, names: dict[str, str], stairs: sf.Staircase) -> dict[str, Any]:
    """The certificate of a staircase for all rows."""
    certifier = partial(Certifier, stairs, loss=options.loss, bounds=options.bounds)
    found: dict[str, Any] = _scan(options, names, certifier)._asdict()
    return found


def _scan(options: argparse.Namespace, names: dict[str, str], make: Callable[..., Driver]) -> Any:
    """The result of a driver, with a progress bar."""
    from tqdm import tqdm

    source = _source(options, names)
    labels = names["scores"], names["targets"], names.get("sample_weight")
    with tqdm(unit=" rows", unit_scale=True, leave=False, disable=None) as bar:

        def progress(stage: str, n_rows: int, total: int | None) -> None:
            if n_rows < bar.n:  # a new scan
                bar.reset(total)
            bar.set_description(f"{options.command}, {stage}", refresh=False)
            bar.update(n_rows - bar.n)

        with tables.located(tables.table_file(options.data, options.format, options.delimiter).name):
            return run_driver(
                partial(make, memory_limit=options.memory_limit), source, labels, options.threads, progress
            )


def _source(options: argparse.Namespace, names: dict[str, str]) -> Source:
    """The parts of all files: row groups of Parquet files, and whole files of other formats."""
    parts: list[Part] = []
    n_rows, one_shot = 0, False
    for path in options.paths:
        file = tables.table_file(path, options.format, options.delimiter)
        special = path == "-" or files.is_special(path)
        one_shot |= special
        if file.format == "parquet" and not special:
            with tables.located(file.name):
                found, n = parquet_parts(path, list(dict.fromkeys(names.values())))
            parts += [partial(_converted, part, names) for part in found]
            n_rows += n
        else:
            parts.append(partial(_read_file, file, names))
    return Source(lambda: parts, n_rows or None, len(parts), one_shot)


def _read_file(file: tables.TableFile, names: dict[str, str]) -> Iterator[Batch]:
    offset = 0
    with tables.open_table(file) as source:
        for table in tables.read_batches(source, names.values()):
            yield _as_tuple(Batch(table, file.name, offset), names)
            offset += len(table)
        if not offset:
            raise InvalidInputError("", "there are no rows")


def _converted(part: Part, names: dict[str, str]) -> Iterator[Batch]:
    return (_as_tuple(batch, names) for batch in part())


def _as_tuple(batch: Batch, names: dict[str, str]) -> Batch:
    """A batch of numbers."""
    with tables.located(batch.name, names, batch.offset or 0):
        found = [columns.numbers(argument, batch.table.column(name)) for argument, name in names.items()]
    return batch._replace(table=tuple(found))
