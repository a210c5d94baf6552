"""The commands `fit` and `certify`, and what all commands that read tables share."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import tempfile
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

import staircase_fast as sf
from staircase_fast.cli import columns, scanning, tables
from staircase_fast.cli.labels import current_labels
from staircase_fast.cli.printing import progress, write_output
from staircase_fast.errors import InvalidInputError
from staircase_fast.groups import map_fields
from staircase_fast.groups.readers import GroupColumn, group_column
from staircase_fast.storage import files
from staircase_fast.streams import accumulator_file

Model = scanning.Model
Result = dict[str, Any]

_OPTIONS = {"scores": "score", "targets": "label", "sample_weight": "weight", "groups": "group"}


def column_names(options: argparse.Namespace) -> dict[str, str]:
    """The names of the columns to read, by the library's names for them."""
    names = {argument: getattr(options, option, None) for argument, option in _OPTIONS.items()}
    return {argument: name for argument, name in names.items() if name is not None}


def data_files(options: argparse.Namespace) -> list[tables.TableFile]:
    """The input tables."""
    return [tables.table_file(path, options.format, options.delimiter) for path in options.files]


def data_name(options: argparse.Namespace) -> str:
    """The name of all input tables."""
    files = data_files(options)
    return files[0].name + (f" and {len(files) - 1:,} more" if len(files) > 1 else "")


def located(options: argparse.Namespace, rows: Any = None) -> contextlib.AbstractContextManager[None]:
    """Add the file, the column and the row to errors that are raised inside; `rows` are some rows of all files."""
    return tables.located(data_name(options), column_names(options), rows=rows, starts=options.starts)


def read_data(options: argparse.Namespace) -> dict[str, Any]:
    """Read the columns of the rows of all files: numbers as arrays, groups as an Arrow column.

    Files without rows are removed from `options.files`.
    """
    names, files = column_names(options), data_files(options)
    parts, paths, n_rows, options.starts = [], [], 0, {}
    for file in progress(files, f"{options.command}, files") if len(files) > 1 else files:
        table = tables.read_table(file, names.values(), f"{options.command}, read")
        if table is None:
            continue
        with tables.located(file.name, names):
            parts.append(_by_argument(table, names))
        options.starts[n_rows] = file.name
        paths.append(file.path)
        n_rows += len(table)
    if not parts:
        raise InvalidInputError("", "there are no rows", file=data_name(options))
    options.files = paths
    check_labels(options)
    if len(parts) == 1:
        return parts[0]
    columns_of = {argument: [part[argument] for part in parts] for argument in names}
    return {
        argument: _joined_groups(options, found) if argument == "groups" else np.concatenate(found)
        for argument, found in columns_of.items()
    }


def _joined_groups(options: argparse.Namespace, parts: list[Any]) -> Any:
    """The groups of several files; those of text files have the type of the groups in the first other file."""
    files, names = data_files(options), column_names(options)
    kinds = [columns.key_kind(part.type) for file, part in zip(files, parts, strict=True) if not file.is_text]
    for place, file in enumerate(files):
        if file.is_text and kinds and kinds[0] is not None:
            with tables.located(file.name, names):
                parts[place] = columns.group_keys(parts[place], kinds[0], "the other files")
    with located(options):
        return columns.joined_groups(parts)


def _typed_groups(options: argparse.Namespace, data: dict[str, Any]) -> Any:
    """The group of each row; in text files, integers if all are written as integers."""
    are_text = all(file.is_text for file in data_files(options))
    return columns.text_keys(data["groups"]) if are_text else data["groups"]


def check_labels(options: argparse.Namespace) -> None:
    """Raise an error if no row that has been read had the label --positive."""
    if labels := current_labels():
        labels.check(data_name(options), options.label)


def _by_argument(table: Any, names: dict[str, str]) -> dict[str, Any]:
    """The columns of a table or a batch, by argument: float32 stays float32, and labels stay small."""
    return {
        argument: table.column(name) if argument == "groups" else columns.numbers(argument, table.column(name))
        for argument, name in names.items()
    }


def load_model(path: str) -> Model:
    """Load a model: an archive is a map of groups; JSON text is a staircase or a map."""
    if path != "-" and not files.is_special(path):  # a pipe can be read only once
        with open(path, "rb") as file:
            if file.read(len(files.ARCHIVE)) == files.ARCHIVE:
                return _load_map(path)
    with files.named("standard input" if path == "-" else path):
        text = sys.stdin.read() if path == "-" else files.read_text(path, "a staircase")
        try:
            return sf.Staircase.from_json(text)
        except InvalidInputError as error:
            if error.value != map_fields.FORMAT:
                raise
        return sf.StaircaseMap.from_json(text)


def _load_map(path: str) -> sf.StaircaseMap:
    """Load a map of groups; an accumulator is an archive too, but not a model."""
    try:
        return sf.StaircaseMap.load(path)
    except InvalidInputError as error:
        if error.value == accumulator_file.FORMAT:
            error.hint = "This is an accumulator; `staircase-fast merge` fits its rows and writes a model."
        raise


def given_model(options: argparse.Namespace) -> Model:
    """Load the model of --model; --group must be given exactly if it has groups."""
    model = load_model(options.model)
    is_map = isinstance(model, sf.StaircaseMap)
    if options.command == "report" and not is_map:  # any column can divide the rows into segments
        return model
    if is_map and options.group is None:
        raise InvalidInputError("", "the model has groups", found="name their column with --group", file=options.model)
    if options.group is not None and not is_map:
        raise InvalidInputError("", "the model has no groups", found=f"got --group {options.group}", file=options.model)
    return model


def fit(options: argparse.Namespace) -> Result:
    """Fit a staircase, or one for each group, and write the model."""
    increasing: Any = {"increasing": True, "decreasing": False, "auto": "auto"}[options.direction]
    if options.group and options.model == "-":
        raise InvalidInputError("", "a model with groups cannot be written to standard output", found="use a file")
    scans = scanning.wanted(options, options.loss)
    if options.model != "-" and not files.is_special(options.model):
        # fail before the fit if the model cannot be written
        folder = os.path.dirname(os.path.realpath(options.model))
        with tables.located(options.model), tempfile.NamedTemporaryFile(prefix=files.TEMPORARY, dir=folder):
            pass
    if scans:
        model = scanning.fit(options, column_names(options), increasing)
        check_labels(options)
    else:
        data = read_data(options)
        with located(options):
            model = fit_rows(options, data, loss=options.loss, increasing=increasing, bounds=options.bounds)
    if isinstance(model, sf.Staircase) and options.model == "-":
        write_output(model.to_json() + "\n")
    else:
        with tables.located(options.model):
            model.save(options.model)
    result = {"rows": int(model.counts.sum()), "steps": len(model.left), "loss": repr(model.loss)}
    if isinstance(model, sf.StaircaseMap):
        result["groups"] = len(model)
    else:
        result["direction"] = "increasing" if model.increasing else "decreasing"
    return result | {"model": options.model}


def fit_rows(options: argparse.Namespace, data: dict[str, Any], **settings: Any) -> Model:
    """Fit a staircase, or one for each group."""
    if "groups" not in data:
        return sf.fit(**data, **settings, n_threads=options.threads)
    return sf.fit_groups(**data | {"groups": _typed_groups(options, data)}, **settings, n_threads=options.threads)


def predict(
    options: argparse.Namespace, model: Model, data: dict[str, Any], default: Any = None, **how: Any
) -> NDArray[np.float64]:
    """The values of a model at scores, in groups if it has any."""
    groups = {} if isinstance(model, sf.Staircase) else {"groups": _keys(model, data), "default": default}
    try:
        values: NDArray[np.float64] = model.predict(data["scores"], n_threads=options.threads, **groups, **how)
    except InvalidInputError as error:
        if not error.argument:  # the group was not fitted
            error.found = "pass --default for groups that were not fitted" if options.command == "apply" else ""
        raise
    return values


def _keys(model: sf.StaircaseMap, data: dict[str, Any]) -> Any:
    """The group of each row, with the type of the model's groups."""
    return columns.group_keys(data["groups"], type(next(iter(model))))


def certify(options: argparse.Namespace) -> Result:
    """Prove that a model is the optimum for the rows of files."""
    model = given_model(options)
    if scanning.wanted(options, model.loss if options.loss is None else options.loss):
        certificate = scanning.certify(options, column_names(options), model, partial(predict, options, model))
        check_labels(options)
        return certificate
    data = read_data(options)
    settings = {"loss": options.loss, "bounds": options.bounds}
    with located(options):
        if isinstance(model, sf.StaircaseMap):
            result = _certify_groups(options, model, data, settings)
        else:
            result = sf.certify(model, **data, **settings)._asdict()
    return {"rows": len(data["scores"])} | result


def _certify_groups(
    options: argparse.Namespace, model: sf.StaircaseMap, data: dict[str, Any], settings: dict[str, Any]
) -> Result:
    """Certify each group: all must be optimal, gaps are added, and the worst row is in the group with the largest."""
    predict(options, model, data)  # raises an error for groups that are invalid or were not fitted
    groups = rows_by_group(group_column(_keys(model, data), len(data["scores"])))
    gap, worst, failed = 0.0, (-1.0, -1), []
    for key, rows in progress(groups, "certify, groups"):
        part = {argument: values[rows] for argument, values in data.items() if argument != "groups"}
        with located(options, rows=rows):
            proof = sf.certify(model[key], **part, **settings)
        gap, worst = gap + proof.gap, max(worst, (proof.gap, int(rows[proof.worst_index])))
        if not proof.optimal:
            failed.append(key)
    return {"optimal": not failed, "gap": gap, "worst_index": worst[1], "groups": len(groups), "groups_failed": failed}


def segment_column(options: argparse.Namespace, data: dict[str, Any]) -> GroupColumn:
    """The segment of each row."""
    return group_column(_typed_groups(options, data), len(data["scores"]))


def rows_by_group(column: GroupColumn) -> list[tuple[Any, NDArray[np.intp]]]:
    """The rows of each group, in the order of the keys."""
    numbers = column.numbers - column.low if column.keys is None else column.ranks[column.numbers]
    order = np.argsort(numbers, kind="stable")
    used, starts = np.unique(numbers[order], return_index=True)
    return list(zip(map(column.key, used.tolist()), np.split(order, starts[1:]), strict=True))
