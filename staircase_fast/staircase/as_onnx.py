"""Staircases as ONNX models: an unrolled search by halving, in float64.

ONNX has no operator that searches a sorted table, and its tree ensembles have float32 thresholds in the versions most
runtimes read.  So each halving is a handful of nodes on all scores at once: time is that of the logarithm of the number
of steps for a score, and memory that of the scores.  Table entries after the last stand for what has no value.
"""

from __future__ import annotations

import json
import math
import os
from typing import TYPE_CHECKING, Any

import numpy as np

from staircase_fast.inputs.options import check_choice, check_interpolation, import_optional
from staircase_fast.staircase import export_checks, pieces
from staircase_fast.staircase.pieces import Pieces
from staircase_fast.storage import documents, files
from staircase_fast.typing import Interpolation

if TYPE_CHECKING:
    from staircase_fast.staircase.result import Staircase

OPSET = 13  # the operators below are in it; ONNX Runtime 1.16 reads up to 19
IR_VERSION = 8  # what came with opsets 15 to 18
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
    names = export_checks.value_names(*names)
    onnx = import_optional("onnx", "`to_onnx`", extra="onnx")
    table = pieces.of_staircase(stairs, interpolation, outside=out_of_bounds == "clip")
    graph = _Graph(onnx, names)
    scores = names[0] if dtype == "float64" else graph.add("Cast", names[0], to=onnx.TensorProto.DOUBLE)
    values = _evaluate(graph, table, scores, linear=linear)
    kind = onnx.TensorProto.DOUBLE if dtype == "float64" else onnx.TensorProto.FLOAT
    graph.add("Cast", values, to=kind, output=names[1])
    model = graph.model(kind)
    # parameters of single rows say nothing of a staircase
    loss = {"name": stairs.loss.name} if stairs.loss.per_sample else documents.plain_loss(stairs.loss)
    said = {
        "loss": json.dumps(loss),
        "increasing": json.dumps(stairs.increasing),
        "n_steps": str(stairs.n_steps),
        "interpolation": interpolation,
        "out_of_bounds": out_of_bounds,
    }
    onnx.helper.set_model_props(model, {f"staircase_fast.{name}": text for name, text in said.items()})
    onnx.checker.check_model(model)
    with files.replacing(path) as file:
        file.write(model.SerializeToString())


class _Graph:
    """Nodes and tables as they come; each result has a name of its own."""

    def __init__(self, onnx: Any, names: tuple[str, str]) -> None:
        self.onnx, self.names = onnx, names
        self.nodes: list[Any] = []
        self.tables: list[Any] = []
        self.prefix = "staircase"
        while any(name.startswith(self.prefix) for name in names):
            self.prefix += "_"

    def table(self, entries: Any, kind: type = np.float64) -> str:
        """An array that is part of the model."""
        name = f"{self.prefix}_table_{len(self.tables)}"
        self.tables.append(self.onnx.numpy_helper.from_array(np.asarray(entries, dtype=kind), name))
        return name

    def integer(self, entry: int) -> str:
        return self.table(entry, np.int64)

    def add(self, operator: str, *inputs: str, output: str = "", **attributes: Any) -> str:
        """A node; return the name of its result."""
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
    # of a piece without a line the slope is 0, and its bend must be a number, as must be what 0 is multiplied by
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
    """The place of the last piece that starts at or below a score; one past the end where there is no value."""
    n = len(table.start)
    lowest, highest = (graph.table(end) for end in table.inside)
    inside = graph.add(
        "And", graph.add("LessOrEqual", lowest, scores), graph.add("LessOrEqual", scores, highest)
    )  # NaN is not
    step = _started(graph, graph.table(table.start[1:]), n - 1, scores) if n > 1 else graph.integer(0)
    known, none = graph.add("Cast", inside, to=graph.onnx.TensorProto.INT64), graph.integer(n)
    return graph.add("Add", graph.add("Mul", known, graph.add("Sub", step, none)), none)


def _started(graph: _Graph, start: str, n: int, scores: str) -> str:
    """How many of n entries are at or below each score: `started` of `_steps.pxd`, for all of them at once."""
    base = graph.integer(0)
    while n >= 1:
        half = max(n >> 1, 1)
        entry = graph.add("Gather", start, graph.add("Add", base, graph.integer(half - 1)))
        passed = graph.add("Cast", graph.add("LessOrEqual", entry, scores), to=graph.onnx.TensorProto.INT64)
        base = graph.add("Add", base, graph.add("Mul", passed, graph.integer(half)))
        n -= half
    return base
