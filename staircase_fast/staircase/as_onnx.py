"""Staircases as ONNX models: an unrolled bisection in float64.

ONNX has no operator that searches a sorted table, and its tree ensembles have float32 thresholds in the versions that
most runtimes read.  So each round of the bisection is a handful of nodes that work on all scores at once.  Time per
score is logarithmic in the number of steps.  The last entry of each table is NaN, for scores that have no value.
"""

from __future__ import annotations

import json
import math
import os
import re
from typing import TYPE_CHECKING, Any

import numpy as np

from staircase_fast.errors import InvalidInputError, InvalidTypeError
from staircase_fast.inputs.options import check_choice, check_interpolation, import_optional
from staircase_fast.staircase import pieces
from staircase_fast.staircase.pieces import Pieces
from staircase_fast.storage import documents, files
from staircase_fast.typing import Interpolation

if TYPE_CHECKING:
    from staircase_fast.staircase.result import Staircase

OPSET = 13  # the operators below are in it; ONNX Runtime 1.16 reads up to 19
IR_VERSION = 8  # that of opsets 15 to 18
_LARGEST = float(np.finfo(np.float64).max)


def write(
    stairs: Staircase,
    path: str | os.PathLike[str],
    interpolation: Interpolation,
    out_of_bounds: str,
    dtype: str,
    names: tuple[str, str],
) -> None:
    """Write the model of a staircase to a file."""
    linear = check_interpolation(interpolation) != "step"
    check_choice("out_of_bounds", out_of_bounds, ("clip", "nan"))
    check_choice("dtype", dtype, ("float64", "float32"))
    _check_names(*names)
    onnx = import_optional("onnx", "`to_onnx`", extra="onnx")
    table = pieces.of_staircase(stairs, interpolation, outside=out_of_bounds == "clip")
    graph = _Graph(onnx, names)
    scores = names[0] if dtype == "float64" else graph.add("Cast", names[0], to=onnx.TensorProto.DOUBLE)
    values = _evaluate(graph, table, scores, linear=linear)
    kind = onnx.TensorProto.DOUBLE if dtype == "float64" else onnx.TensorProto.FLOAT
    graph.add("Cast", values, to=kind, output=names[1])
    model = graph.model(kind)
    # parameters with one entry per training row are not part of the model
    loss = {"name": stairs.loss.name} if stairs.loss.per_sample else documents.plain_loss(stairs.loss)
    metadata = {
        "loss": json.dumps(loss),
        "increasing": json.dumps(stairs.increasing),
        "n_steps": str(stairs.n_steps),
        "interpolation": interpolation,
        "out_of_bounds": out_of_bounds,
    }
    onnx.helper.set_model_props(model, {f"staircase_fast.{name}": text for name, text in metadata.items()})
    onnx.checker.check_model(model)
    with files.replacing(path) as file:
        file.write(model.SerializeToString())


def _check_names(input_name: object, output_name: object) -> None:
    for argument, name in (("input_name", input_name), ("output_name", output_name)):
        if not isinstance(name, str):
            raise InvalidTypeError(argument, "must be a str", found=f"got {type(name).__name__}")
        if not name or re.search("[\ud800-\udfff]", name):
            raise InvalidInputError(argument, "must be nonempty and without surrogate characters", value=name)
    if input_name == output_name:
        raise InvalidInputError("output_name", "must differ from `input_name`", value=output_name)


class _Graph:
    """The nodes and tables of a model; each result has a unique name."""

    def __init__(self, onnx: Any, names: tuple[str, str]) -> None:
        self.onnx, self.names = onnx, names
        self.nodes: list[Any] = []
        self.tables: list[Any] = []
        self.prefix = "staircase"
        while any(name.startswith(self.prefix) for name in names):
            self.prefix += "_"

    def table(self, entries: Any, kind: type = np.float64) -> str:
        """Add a constant array; return its name."""
        name = f"{self.prefix}_table_{len(self.tables)}"
        self.tables.append(self.onnx.numpy_helper.from_array(np.asarray(entries, dtype=kind), name))
        return name

    def integer(self, entry: int) -> str:
        return self.table(entry, np.int64)

    def add(self, operator: str, *inputs: str, output: str = "", **attributes: Any) -> str:
        """Add a node; return the name of its result."""
        name = output or f"{self.prefix}_{len(self.nodes)}"
        self.nodes.append(self.onnx.helper.make_node(operator, inputs, [name], **attributes))
        return name

    def model(self, kind: int) -> Any:
        from staircase_fast import __version__

        helper = self.onnx.helper
        source, result = (helper.make_tensor_value_info(name, kind, ["N"]) for name in self.names)
        graph = helper.make_graph(self.nodes, "staircase", [source], [result], initializer=self.tables)
        return helper.make_model(
            graph,
            opset_imports=[helper.make_opsetid("", OPSET)],
            ir_version=IR_VERSION,
            producer_name="staircase_fast",
            producer_version=__version__,
        )


def _evaluate(graph: _Graph, table: Pieces, scores: str, *, linear: bool) -> str:
    place = _place(graph, table, scores)
    # a piece without a line has slope 0, and 0 must not be multiplied by infinity
    table = table._replace(bend=np.where(np.isinf(table.bend), 0.0, table.bend))
    low, *line = (
        graph.add("Gather", graph.table(np.append(column, math.nan)), place)
        for column in table.columns(linear=linear)[1:]
    )
    if not linear:
        return low
    bend, slope, high = line
    beyond = graph.add("Max", graph.add("Sub", scores, bend), graph.table(0.0))
    rise = graph.add("Mul", graph.add("Min", beyond, graph.table(_LARGEST)), slope)
    return graph.add("Min" if table.rising else "Max", graph.add("Add", low, rise), high)


def _place(graph: _Graph, table: Pieces, scores: str) -> str:
    """The index of the last piece that starts at or below each score; the last entry if it has no value."""
    n = len(table.start)
    lowest, highest = (graph.table(end) for end in table.inside)
    above, below = graph.add("LessOrEqual", lowest, scores), graph.add("LessOrEqual", scores, highest)  # false for NaN
    step = _started(graph, graph.table(table.start[1:]), n - 1, scores) if n > 1 else graph.integer(0)
    return graph.add("Where", graph.add("And", above, below), step, graph.integer(n))


def _started(graph: _Graph, start: str, n: int, scores: str) -> str:
    """The number of n entries at or below each score: `started` of `_index.pxd`, for all scores at once."""
    base = graph.integer(0)
    while n >= 1:
        half = max(n >> 1, 1)
        entry = graph.add("Gather", start, graph.add("Add", base, graph.integer(half - 1)))
        passed = graph.add("LessOrEqual", entry, scores)
        base = graph.add("Where", passed, graph.add("Add", base, graph.integer(half)), base)
        n -= half
    return base
