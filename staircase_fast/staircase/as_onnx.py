"""Staircases as ONNX models: an unrolled bisection in float64.

ONNX has no operator that searches a sorted table, and its tree ensembles have float32 thresholds in the versions that
most runtimes read.  So each round of the bisection is a handful of nodes that work on all scores at once.  Time per
score is logarithmic in the number of steps.  The last entry of each table is NaN, for scores that have no value.
"""

from __future__ import annotations

import json
import math
import os
from typing import TYPE_CHECKING

import numpy as np

from staircase_fast.staircase import pieces
from staircase_fast.staircase.onnx_graph import Graph, check_options, loss_as_json
from staircase_fast.staircase.pieces import Pieces
from staircase_fast.typing import Interpolation

if TYPE_CHECKING:
    from staircase_fast.staircase.result import Staircase

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
    linear = check_options(interpolation, out_of_bounds, dtype)
    graph = Graph(dict(zip(("input_name", "output_name"), names, strict=True)), dtype)
    table = pieces.of_staircase(stairs, interpolation, outside=out_of_bounds == "clip")
    values = evaluate(graph, table, graph.scores(names[0]), linear=linear)
    metadata = {
        "loss": loss_as_json(stairs.loss),
        "increasing": json.dumps(stairs.increasing),
        "n_steps": str(stairs.n_steps),
        "interpolation": interpolation,
        "out_of_bounds": out_of_bounds,
    }
    graph.save(path, names[1], values, metadata=metadata)


def evaluate(graph: Graph, table: Pieces, scores: str, *, linear: bool) -> str:
    """The values of one staircase."""
    n = len(table.start)
    lowest, highest = (graph.table(end) for end in table.inside)
    step = _started(graph, graph.table(table.start[1:]), n - 1, scores) if n > 1 else graph.integer(0)
    place = graph.add("Where", is_inside(graph, lowest, scores, highest), step, graph.integer(n))
    return value_at(graph, table, place, scores, linear=linear)


def is_inside(graph: Graph, lowest: str, scores: str, highest: str) -> str:
    """Whether scores have a value; false for NaN."""
    return graph.add("And", graph.add("LessOrEqual", lowest, scores), graph.add("LessOrEqual", scores, highest))


def value_at(graph: Graph, table: Pieces, place: str, scores: str, *, linear: bool, rises: str = "") -> str:
    """The values on the pieces at these places; NaN at the place after the last piece.

    `rises` names the directions, if they differ between the rows.
    """
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
    value = graph.add("Add", low, rise)
    if rises:
        return graph.add("Where", rises, graph.add("Min", value, high), graph.add("Max", value, high))
    return graph.add("Min" if table.rising else "Max", value, high)


def _started(graph: Graph, start: str, n: int, scores: str) -> str:
    """The number of n entries at or below each score: `started` of `_index.pxd`, for all scores at once."""
    base = graph.integer(0)
    while n >= 1:
        half = max(n >> 1, 1)
        entry = graph.add("Gather", start, graph.add("Add", base, graph.integer(half - 1)))
        passed = graph.add("LessOrEqual", entry, scores)
        base = graph.add("Where", passed, graph.add("Add", base, graph.integer(half)), base)
        n -= half
    return base
