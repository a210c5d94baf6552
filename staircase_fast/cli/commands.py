"""What the commands of the command line do; `cli.py` reads their arguments and tells their results."""

from __future__ import annotations

import argparse
import contextlib
import sys
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

import staircase_fast as sf
from staircase_fast.cli import checks, tables
from staircase_fast.cli.tables import Source
from staircase_fast.groups.fits import check_entries
from staircase_fast.groups.readers import group_column, refuse_unseen
from staircase_fast.inputs.rows import read_columns
from staircase_fast.storage import files

Model = sf.Staircase | sf.StaircaseMap
Result = dict[str, Any]

# what the library calls the columns that users name
_ARGUMENTS = {"scores": "score", "targets": "label", "sample_weight": "weight", "groups": "group"}


def columns_of(options: argparse.Namespace) -> dict[str, str]:
    """The columns that are wanted, by the names of the arguments they are for."""
    given = {argument: getattr(options, option, None) for argument, option in _ARGUMENTS.items()}
    return {argument: column for argument, column in given.items() if column is not None}


@contextlib.contextmanager
def progress(source: Source, what: str) -> Iterator[Any]:
    """A bar that counts rows, on standard error if that is a terminal."""
    from tqdm import tqdm

    with tqdm(total=source.n_rows, desc=what, unit=" rows", unit_scale=True, leave=False, disable=None) as bar:
        yield bar


def batches(source: Source, wanted: dict[str, str], what: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """How many rows came before a batch, and its wanted columns: numbers as arrays, groups as Arrow has them."""
    file, names = source.place.name, source.schema.names
    for column in wanted.values():
        checks.position(file, names, column)
    before = 0
    with progress(source, what) as bar:
        for batch in tables.ahead(source.batches(list(dict.fromkeys(wanted.values())))):
            with checks.told_of(file, {}):
                found = {argument: _column(batch, argument, column, before) for argument, column in wanted.items()}
            yield before, found
            before += len(batch)
            bar.update(len(batch))


def _column(batch: Any, argument: str, column: str, before: int) -> Any:
    given = batch.column(batch.schema.names.index(column))
    return given if argument == "groups" else checks.numbers(given, column, before)


def collected(options: argparse.Namespace) -> dict[str, Any]:
    """The wanted columns of a whole file: float32 stays float32, and labels stay small."""
    import pyarrow as pa

    wanted = columns_of(options)
    with tables.reading(place(options, options.data)) as source:
        parts: dict[str, list[Any]] = {argument: [] for argument in wanted}
        for _, found in batches(source, wanted, "read"):
            for argument, part in found.items():
                parts[argument].append(part)
        if not any(map(len, parts["scores"])):
            checks.no_rows(source.place.name)
    groups = parts.pop("groups", None)
    # one after the other: what has been joined is let go
    whole = {argument: np.concatenate(parts.pop(argument)) for argument in list(parts)}
    return whole if groups is None else whole | {"groups": pa.chunked_array(groups)}


def place(options: argparse.Namespace, path: str) -> tables.Place:
    """Where a table of the command line is."""
    return tables.place_of(path, options.format, options.delimiter)


@contextlib.contextmanager
def told_of(options: argparse.Namespace, before: int = 0, rows: Any = None) -> Iterator[None]:
    """What is refused in here is told in terms of the file."""
    with checks.told_of(place(options, options.data).name, columns_of(options), before, rows):
        yield


def fit(options: argparse.Namespace) -> Result:
    """Fit a staircase, or one for each group, and write it."""
    start = time.perf_counter()
    rising = {"increasing": True, "decreasing": False, "auto": "auto"}[options.direction]
    settings = {"loss": options.loss, "increasing": rising, "bounds": options.bounds}
    if options.group and options.model == "-":
        checks.no_text(options.model)
    if options.streaming:
        checks.streaming_suits(options.group, options.direction)
    with _model_file(options.model) as path:
        if options.streaming:
            model: Model = _streamed(options, rising)
        else:
            columns = collected(options)
            with told_of(options):
                if "groups" in columns:
                    columns["groups"] = keys_for(None, columns["groups"], options)
                    model = sf.fit_groups(**columns, **settings, n_threads=options.threads)
                else:
                    model = sf.fit(**columns, **settings, n_threads=options.threads)
        if isinstance(model, sf.Staircase) and path == "-":
            sys.stdout.write(model.to_json() + "\n")
        else:
            model.save(path)
    result = {"rows": int(model.counts.sum()), "steps": len(model.left), "loss": repr(model.loss)}
    if isinstance(model, sf.StaircaseMap):
        result["groups"] = len(model)
    else:
        result["direction"] = "increasing" if model.increasing else "decreasing"
    return result | {"model": options.model, "seconds": time.perf_counter() - start}


@contextlib.contextmanager
def _model_file(path: str) -> Iterator[str]:
    """Where to write a model: a folder that cannot be written to is found out before the work."""
    if path == "-":
        yield path
    else:
        with checks.told_of_file(path), files.replacing_path(path) as temporary:
            yield temporary


def _streamed(options: argparse.Namespace, rising: Any) -> sf.Staircase:
    """The same staircase, of sums that take less memory than rows where scores come again and again."""
    seen = sf.Accumulator(options.loss, rising)
    with tables.reading(place(options, options.data)) as source:
        for before, columns in batches(source, columns_of(options), "fit"):
            with told_of(options, before):
                seen.add(**columns)
        if not seen.n_samples:
            checks.no_rows(source.place.name)
    return seen.staircase(bounds=options.bounds)


def load(path: str) -> Model:
    """A model of either kind: a map of groups is an archive, a staircase is JSON text."""
    if path == "-":
        with files.named("standard input"):
            return sf.Staircase.from_json(sys.stdin.read())
    if files.is_special(path):
        return sf.Staircase.load(path)  # a pipe is read once
    with open(path, "rb") as file:
        is_map = file.read(len(files.ARCHIVE)) == files.ARCHIVE
    return sf.StaircaseMap.load(path) if is_map else sf.Staircase.load(path)


def keys_for(model: Model | None, groups: Any, options: argparse.Namespace) -> Any:
    """A column of groups as keys of the kind that a model has; without one, as the file has them."""
    if isinstance(model, sf.StaircaseMap):
        return checks.group_keys(groups, type(next(iter(model))))
    return checks.keys_of_text(groups) if place(options, options.data).is_text else groups


def apply(options: argparse.Namespace) -> Result:
    """Write the table with a column of calibrated scores, batch by batch."""
    import pyarrow as pa

    start, model, n_rows = time.perf_counter(), load(options.model), 0
    default = load(options.default) if options.default else None
    target = place(options, options.output)
    checks.groups_fit_model(options.group, is_map=isinstance(model, sf.StaircaseMap))
    group = [options.group] if options.group else []
    with tables.reading(place(options, options.data), None if target.is_text else group) as source:
        names, wanted = source.schema.names, columns_of(options)
        places = {a: checks.position(source.place.name, names, c) for a, c in wanted.items()}
        if not options.replace:
            checks.free_name(source.place.name, names, options.name)
        coming = tables.ahead(source.batches(None))
        first = next(coming, None)
        known = first.schema if first is not None and source.place.is_text else source.schema
        taken = options.name in names
        at = checks.position(source.place.name, names, options.name) if taken else len(names)
        schema = _with_column(known, at, options.name)
        with tables.writing(target, schema, source) as write, progress(source, "apply") as bar:
            while first is not None:
                columns = [first.column(number) for number in range(first.num_columns)]
                made = _calibrated(options, model, default, {a: columns[p] for a, p in places.items()}, n_rows)
                columns[at : at + 1] = [made]
                write(pa.RecordBatch.from_arrays(columns, schema=schema))
                n_rows += len(first)
                bar.update(len(first))
                first = next(coming, None)
    return {"rows": n_rows, "output": options.output, "column": options.name, "seconds": time.perf_counter() - start}


def _with_column(schema: Any, at: int, name: str) -> Any:
    import pyarrow as pa

    field = pa.field(name, pa.float64())
    return schema.set(at, field) if at < len(schema) else schema.append(field)


def _calibrated(options: argparse.Namespace, model: Model, default: Any, columns: dict[str, Any], before: int) -> Any:
    """The new column; where a score is missing, it is missing too, if it may be."""
    if options.missing == "raise":
        return tables.column_of(_predicted(options, model, default, columns, (before, None)))
    present = checks.present(columns["scores"])
    kept = tables.column_of(present)
    columns = {argument: column.filter(kept) for argument, column in columns.items()}
    rows, made = np.flatnonzero(present), np.zeros(len(present))
    made[rows] = _predicted(options, model, default, columns, (before, rows))
    return tables.column_of(made, present)


def _predicted(
    options: argparse.Namespace, model: Model, default: Any, columns: dict[str, Any], where: tuple[int, Any]
) -> NDArray[np.float64]:
    with checks.told_of(place(options, options.data).name, {}, *where):
        scores = checks.numbers(columns["scores"], options.score)
    settings = {
        "interpolation": options.interpolation, "out_of_bounds": options.out_of_bounds, "n_threads": options.threads,
    }  # fmt: skip
    with told_of(options, *where):
        if isinstance(model, sf.Staircase):
            made: NDArray[np.float64] = model.predict(scores, **settings)
            return made
        keys = keys_for(model, columns["groups"], options)
        return model.predict(scores, keys, default=default, **settings)


def certify(options: argparse.Namespace) -> Result:
    """Prove that a model is the optimum of a file."""
    start, model = time.perf_counter(), load(options.model)
    checks.groups_fit_model(options.group, is_map=isinstance(model, sf.StaircaseMap))
    columns = collected(options)
    settings = {"loss": options.loss, "bounds": options.bounds}
    result: Result
    with told_of(options):
        if isinstance(model, sf.Staircase):
            result = sf.certify(model, **columns, **settings)._asdict()
        else:
            columns["groups"] = keys_for(model, columns["groups"], options)
            result = _certify_groups(model, columns, settings)
    return {"rows": len(columns["scores"])} | result | {"seconds": time.perf_counter() - start}


def _certify_groups(model: sf.StaircaseMap, columns: dict[str, Any], settings: dict[str, Any]) -> Result:
    """Of each group by itself: it is optimal if all are; gaps add up; the worst row is that of the largest gap."""
    # as a whole first: messages are to name rows of the file
    given = read_columns(columns["scores"], columns["targets"], columns.get("sample_weight"))
    check_entries(*given, settings["loss"] or model.loss, 1)
    column = group_column(columns.pop("groups"), len(columns["scores"]))
    places = column.numbers - column.low if column.keys is None else column.ranks[column.numbers]
    order = np.argsort(places, kind="stable")
    used, first = np.unique(places[order], return_index=True)
    groups = list(zip(map(column.key, used.tolist()), np.split(order, first[1:]), strict=True))
    unknown = [(int(rows[0]), key) for key, rows in groups if key not in model]
    if unknown:
        row, key = min(unknown)
        refuse_unseen(key, row)
    gap, worst, failed = 0.0, (-1.0, -1), []
    for key, rows in groups:
        proof = sf.certify(model[key], **{name: column[rows] for name, column in columns.items()}, **settings)
        gap, worst = gap + proof.gap, max(worst, (proof.gap, int(rows[proof.worst_index])))
        if not proof.optimal:
            failed.append(key)
    return {"optimal": not failed, "gap": gap, "worst_index": worst[1], "groups": len(groups), "groups_failed": failed}
