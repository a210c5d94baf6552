"""The commands `export`, `merge` and `show`: what can be done with saved models and accumulators, without data."""

from __future__ import annotations

import argparse
import glob
import os
from typing import Any

import numpy as np

import staircase_fast as sf
from staircase_fast.cli import commands, tables
from staircase_fast.cli.printing import progress, write_output
from staircase_fast.errors import InvalidInputError, shown
from staircase_fast.storage import files
from staircase_fast.streams import accumulator_file

_GROUPS, _STEPS = 10, 3  # that `show` lists as text: groups, and steps at each end
_STEP = ("first_score", "last_score", "value", "rows", "weight")


def export(options: argparse.Namespace) -> commands.Result:
    """Write a model in another format."""
    model: Any = commands.load_model(options.model)
    form = options.to
    is_map = isinstance(model, sf.StaircaseMap)
    name = "standard input" if options.model == "-" else options.model
    if form == "sql" and is_map != (options.group is not None):
        found = "name their column with --group" if is_map else f"got --group {options.group}"
        raise InvalidInputError("", f"the model has {'' if is_map else 'no '}groups", found=found, file=name)
    how = {"interpolation": options.interpolation or "step", "out_of_bounds": options.out_of_bounds or "clip"}
    with tables.located(name):
        if form == "onnx":
            model.to_onnx(options.output, **how)
            text = ""
        elif form == "json":
            text = model.to_json()
        else:
            columns = [options.column or "score", *([options.group] if is_map else [])]
            text = model.to_sql(*columns, dialect=options.dialect or "duckdb", **how)
    if options.output == "-":
        write_output(f"{text}\n")
        return {}
    if text:
        with tables.located(options.output), files.replacing(options.output) as file:
            file.write(f"{text}\n".encode())
    return {"model": name, "format": form, "output": options.output}


def merge(options: argparse.Namespace) -> commands.Result:
    """Merge saved accumulators; write the result and its staircase."""
    paths = _matches(options.accumulators, options.output)
    found = sf.Accumulator.load(paths[0])
    for path in progress(paths[1:], "merge"):
        other = sf.Accumulator.load(path)
        for title, own, theirs in (
            ("loss", repr(found.loss), repr(other.loss)),
            ("direction", _direction(found.increasing), _direction(other.increasing)),
        ):
            if own != theirs:
                requirement = f"must have the {title} of {paths[0]}, {own}"
                raise InvalidInputError("", requirement, found=f"got {theirs}", file=path)
        with tables.located(path):
            found.merge(other)
    result: commands.Result = {"files": len(paths), "rows": found.n_samples, "distinct_scores": found.n_scores}
    result |= {"loss": repr(found.loss), "direction": _direction(found.increasing)}
    if options.model:
        with tables.located(paths[0]):
            stairs = found.staircase(bounds=options.bounds)
        result["steps"] = stairs.n_steps
    if options.output:
        with tables.located(options.output):
            found.save(options.output)
    if options.model == "-":
        write_output(stairs.to_json() + "\n")
    elif options.model:
        with tables.located(options.model):
            stairs.save(options.model)
    return result | {"output": options.output, "model": options.model}


def _matches(given: list[str], output: str | None) -> list[str]:
    """All files that are meant; none may be there twice, because its rows would count twice."""
    paths: list[str] = []
    for path in given:
        if os.path.exists(path) or not glob.has_magic(path):
            paths.append(path)
            continue
        matches = sorted(glob.glob(path))
        if not matches:
            raise InvalidInputError("", "no file matches this pattern", file=path)
        for match in matches:
            if output and os.path.realpath(match) == os.path.realpath(output):
                # the sums of an earlier run would be added to those of the same rows
                hint = "Write --output where the pattern does not match, or list the files."
                raise InvalidInputError(
                    "", f"is --output, and {path!r} matches it; its rows would count twice", hint=hint, file=match
                )
        paths += matches
    seen: dict[str, str] = {}
    for path in paths:
        if path != seen.setdefault(os.path.realpath(path), path) or paths.count(path) > 1:
            raise InvalidInputError("", "is given twice; its rows would count twice", file=path)
    return paths


def show(options: argparse.Namespace) -> commands.Result:
    """What is in a model or in a saved accumulator."""
    path = options.model
    model: sf.Staircase | sf.StaircaseMap | sf.Accumulator
    try:
        model = commands.load_model(path)
    except InvalidInputError as error:
        if error.value != accumulator_file.FORMAT:
            raise
        model = sf.Accumulator.load(path)
    if options.group is not None:
        model = _one_group(model, options.group, path)
    kind = {sf.Staircase: "staircase", sf.StaircaseMap: "map of groups", sf.Accumulator: "accumulator"}[type(model)]
    result: commands.Result = {"file": path, "group": options.group, "kind": kind, "loss": repr(model.loss)}
    if isinstance(model, sf.StaircaseMap):
        return result | _of_map(model, len(model) if options.json else _GROUPS)
    result["direction"] = _direction(model.increasing)
    if isinstance(model, sf.Accumulator):
        return result | {"rows": model.n_samples, "distinct_scores": model.n_scores, "bytes": model.nbytes}
    return result | _of_staircase(model, options.steps or (model.n_steps if options.json else _STEPS))


def _one_group(model: object, group: str, path: str) -> sf.Staircase:
    """The staircase of a group, which is written as text."""
    if not isinstance(model, sf.StaircaseMap):
        raise InvalidInputError("", "the model has no groups", found=f"got --group {group}", file=path)
    for key in model:
        if str(key) == group:
            return model[key]
    keys = ", ".join(shown(key) for key in list(model)[:_GROUPS])
    more = f" and {len(model) - _GROUPS} more" if len(model) > _GROUPS else ""
    raise InvalidInputError("", f"there is no group {group!r}", found=f"the groups are {keys}{more}", file=path)


def _of_staircase(stairs: sf.Staircase, n_ends: int) -> commands.Result:
    result = _totals(*_columns(stairs))
    width = stairs.upper - stairs.lower
    if width.any():
        result["widest_bounds"] = float(width.max())
    rows = zip(*(column.tolist() for column in _columns(stairs)), strict=True)
    steps = [dict(zip(_STEP, row, strict=True)) for row in rows]
    if len(steps) <= 2 * n_ends:
        return result | {"all_steps": steps}
    return result | {"first_steps": steps[:n_ends], "last_steps": steps[-n_ends:]}


def _of_map(model: sf.StaircaseMap, n_listed: int) -> commands.Result:
    up = int(np.count_nonzero(model.increasing))
    result: commands.Result = {
        "direction": _direction(up > 0) if up in (0, len(model)) else f"{up:,} of {len(model):,} increasing"
    }
    result |= {"groups": len(model)}
    result |= _totals(model.left, model.right, model.step_values, model.counts, model.weights)
    listed = [{"group": str(key)} | _totals(*_columns(model[key])) for key in list(model)[:n_listed]]
    return result | {"all_groups" if len(model) <= n_listed else f"first_{n_listed}_groups": listed}


def _columns(stairs: sf.Staircase) -> tuple[Any, ...]:
    return stairs.left, stairs.right, stairs.values, stairs.counts, stairs.weights


def _totals(left: Any, right: Any, values: Any, counts: Any, weights: Any) -> commands.Result:
    return {
        "steps": len(left),
        "rows": int(counts.sum()),
        "weight": float(weights.sum()),
        "least_score": float(left.min()),
        "greatest_score": float(right.max()),
        "least_value": float(values.min()),
        "greatest_value": float(values.max()),
    }


def _direction(increasing: bool) -> str:
    return "increasing" if increasing else "decreasing"
