"""The command `apply`: it adds a column of calibrated scores to tables, batch by batch."""

from __future__ import annotations

import argparse
import os
from typing import Any

import numpy as np

import staircase_fast as sf
from staircase_fast.cli import columns, commands, tables
from staircase_fast.cli.printing import progress
from staircase_fast.errors import DROP_ROWS, InvalidInputError
from staircase_fast.inputs.columns_arrow import flags


def apply(options: argparse.Namespace) -> commands.Result:
    """Write each table with a column of calibrated scores."""
    model = commands.given_model(options)
    default = commands.load_model(options.default) if options.default else None
    if isinstance(default, sf.StaircaseMap):
        raise InvalidInputError("", "--default must be a model without groups", file=options.default)
    outputs, n_rows = _outputs(options), 0
    for path, output in progress(outputs, "apply, files") if len(outputs) > 1 else outputs:
        file = argparse.Namespace(**vars(options) | {"files": [path], "output": output})
        n_rows += _apply_file(file, model, default)
    result: commands.Result = {"files": len(outputs)} if outputs != [(options.paths[0], options.output)] else {}
    return result | {"rows": n_rows, "output": options.output, "column": options.name}


def _outputs(options: argparse.Namespace) -> list[tuple[str, str]]:
    """The input files with the files to write: --output, or files of the same names in this folder."""
    folder, paths = options.output, tables.input_paths(options.paths)
    if paths == options.paths[:1] and not os.path.isdir(folder):
        return [(paths[0], folder)]
    if not os.path.isdir(folder) and (folder == "-" or os.path.exists(folder) or tables.has_table_name(folder)):
        hint = "Create this folder first, if it should have this name." if tables.has_table_name(folder) else ""
        raise InvalidInputError("", "--output must be a folder for several files", value=folder, hint=hint)
    read = {os.path.realpath(path) for path in (*paths, options.model, options.default) if path is not None}
    inputs: dict[str, str] = {}  # by the output
    for path in paths:
        if path == "-":
            raise InvalidInputError("", "needs its own call: its output would have no name", file="standard input")
        tables.table_file(path, options.format, options.delimiter)
        output = os.path.join(folder, os.path.basename(path))
        if os.path.realpath(output) in read:
            requirement = f"its output would overwrite {output!r}, which is read"
            raise InvalidInputError("", requirement, hint="Use another folder for --output.", file=path)
        if output in inputs:
            requirement = f"its output would be {output!r}, as that of {inputs[output]!r}"
            raise InvalidInputError("", requirement, hint="Use one call of apply for each of their folders.", file=path)
        inputs[output] = path
    os.makedirs(folder, exist_ok=True)
    return [(path, output) for output, path in inputs.items()]


def _apply_file(options: argparse.Namespace, model: commands.Model, default: Any) -> int:
    """Write one table with a column of calibrated scores, batch by batch; return the number of rows."""
    import pyarrow as pa

    n_rows = 0
    output = tables.table_file(options.output, options.format, options.delimiter)
    text_columns = None if output.is_text else [options.group] if options.group else []
    with tables.open_table(commands.data_files(options)[0], text_columns) as source:
        names = source.schema.names
        used = commands.column_names(options)
        indices = {argument: tables.column_index(names, name) for argument, name in used.items()}
        replaced = options.name in names
        if replaced and not options.replace:
            raise InvalidInputError("", f"column {options.name!r} already exists", found="use --name or --replace")
        index = tables.column_index(names, options.name) if replaced else len(names)
        batches = tables.prefetch(source.batches(None))
        batch = next(batches, None)
        schema = batch.schema if batch is not None and source.file.is_text else source.schema
        field = pa.field(options.name, pa.float64())
        schema = schema.set(index, field) if replaced else schema.append(field)
        with tables.create_table(output, schema, source) as write, tables.progress(source, "apply") as bar:
            while batch is not None:
                data = {argument: batch.column(place) for argument, place in indices.items()}
                arrays = batch.columns
                arrays[index : index + 1] = [_calibrated(options, model, default, data, n_rows)]
                write(pa.RecordBatch.from_arrays(arrays, schema=schema))
                n_rows += len(batch)
                bar.update(len(batch))
                batch = next(batches, None)
    return n_rows


def _calibrated(
    options: argparse.Namespace, model: commands.Model, default: Any, data: dict[str, Any], offset: int
) -> Any:
    """The new column of a batch; with --missing null, it is null where the score is missing."""
    import pyarrow as pa
    from pyarrow import compute

    rows = present = None
    if options.missing == "null":
        present = columns.present(data["scores"])
        rows = np.flatnonzero(flags(present))
        data = {argument: column.filter(present) for argument, column in data.items()}
    try:
        with tables.located(commands.data_name(options), commands.column_names(options), offset, rows):
            data["scores"] = columns.numbers("scores", data["scores"])
            how = {"interpolation": options.interpolation, "out_of_bounds": options.out_of_bounds}
            values = commands.predict(options, model, data, default, **how)
    except InvalidInputError as error:
        if error.argument == "scores" and error.hint == DROP_ROWS:
            error.hint = "Drop these rows, or use --missing null."
        raise
    if present is None:
        return columns.as_arrow(values)
    all_values = np.zeros(len(present))
    all_values[rows] = values
    return compute.if_else(present, columns.as_arrow(all_values), pa.nulls(1, pa.float64())[0])
