"""A StaircaseMap as an ONNX model: find the group, then the step among those of the group.

The pieces of all groups are in one table.  Groups that were not fitted get the place after the last group, which is
that of the default staircase or of a piece without values.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np

from staircase_fast.errors import InvalidInputError, InvalidTypeError
from staircase_fast.staircase import pieces
from staircase_fast.staircase.as_onnx import is_inside, value_at
from staircase_fast.staircase.onnx_graph import Graph, check_options, loss_as_json
from staircase_fast.staircase.pieces import Pieces
from staircase_fast.staircase.result import Staircase
from staircase_fast.staircase.sql_dialects import check_text
from staircase_fast.typing import Interpolation

if TYPE_CHECKING:
    from staircase_fast.groups.map_exports import MapExports
    from staircase_fast.groups.readers import Key

_ARGUMENTS = ("input_name", "group_name", "output_name")


def write(
    found: MapExports,
    path: str | os.PathLike[str],
    default: Staircase | None,
    interpolation: Interpolation,
    out_of_bounds: str,
    dtype: str,
    names: tuple[str, str, str],
) -> None:
    """Write the model of a map to a file."""
    linear = check_options(interpolation, out_of_bounds, dtype)
    if default is not None and not isinstance(default, Staircase):
        raise InvalidTypeError("default", "must be a Staircase or None", value=default)
    graph = Graph(dict(zip(_ARGUMENTS, names, strict=True)), dtype)
    all_stairs = [*found.values(), *([] if default is None else [default])]
    tables = [pieces.of_staircase(stairs, interpolation, outside=out_of_bounds == "clip") for stairs in all_stairs]
    if default is None:
        start, none = np.full(1, -np.inf), np.full(1, np.nan)
        tables.append(Pieces(start, none, none, none, none, tables[0].rising, inside=(np.inf, -np.inf)))
    scores = graph.scores(names[0])
    group = _place_of_group(graph, list(found), names[1])
    values = _values(graph, tables, scores, group, linear=linear)
    metadata = {
        "loss": loss_as_json(found.loss),
        "n_groups": str(len(found)),
        "interpolation": interpolation,
        "out_of_bounds": out_of_bounds,
    }
    graph.save(path, names[2], values, metadata=metadata)


def _place_of_group(graph: Graph, keys: list[Key], name: str) -> str:
    """Add the input of groups; return the place of each row's key, which is the number of keys if it is unknown."""
    attributes: dict[str, Any] = {"values_int64s": range(len(keys)), "default_int64": len(keys)}
    types = graph.onnx.TensorProto
    if isinstance(keys[0], str):
        for place, key in enumerate(keys):
            check_text("keys", str(key), place)
        graph.input(name, types.STRING)
        return graph.add("LabelEncoder", name, domain="ai.onnx.ml", keys_strings=keys, **attributes)
    is_bool = isinstance(keys[0], bool)
    graph.input(name, types.BOOL if is_bool else types.INT64)
    if int(keys[-1]) >= 2**63:
        raise InvalidInputError("keys", "must be below 2**63 for ONNX", value=keys[-1], index=len(keys) - 1)
    given = graph.cast(name, types.INT64) if is_bool else name
    return graph.add("LabelEncoder", given, domain="ai.onnx.ml", keys_int64s=map(int, keys), **attributes)


def _values(graph: Graph, tables: list[Pieces], scores: str, group: str, *, linear: bool) -> str:
    columns = zip(*(table.columns() for table in tables), strict=True)
    start, low, bend, slope, high = (np.concatenate(column) for column in columns)
    table = Pieces(start, low, bend, slope, high, tables[0].rising, tables[0].inside)
    sizes = np.array([len(one.start) for one in tables])

    def of_group(entries: object, kind: type = np.float64) -> str:
        return graph.add("Gather", graph.table(entries, kind), group)

    first, more = of_group(np.cumsum(sizes) - sizes, np.int64), of_group(sizes - 1, np.int64)
    place = _last_started(graph, graph.table(table.start), first, more, int(sizes.max()) - 1, scores)
    lowest, highest = (of_group(ends) for ends in zip(*(one.inside for one in tables), strict=True))
    place = graph.add("Where", is_inside(graph, lowest, scores, highest), place, graph.integer(len(table.start)))
    directions = [one.rising for one in tables]
    rises = of_group(directions, np.bool_) if linear and len(set(directions)) > 1 else ""
    return value_at(graph, table, place, scores, linear=linear, rises=rises)


def _last_started(graph: Graph, start: str, place: str, n: str, max_n: int, scores: str) -> str:
    """Move each place to the last of the n next pieces that starts at or below the score, by bisection.

    The piece at `place` starts there.  Each round tries the piece in the middle, and at most n // 2 pieces remain.
    """
    two = graph.integer(2)
    while max_n >= 1:
        rest = graph.add("Div", n, two)
        tried = graph.add("Add", place, graph.add("Sub", n, rest))
        passed = graph.add("LessOrEqual", graph.add("Gather", start, tried), scores)
        place = graph.add("Where", passed, tried, place)
        n, max_n = rest, max_n // 2
    return place
