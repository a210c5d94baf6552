"""Staircases as SQL: an expression that a query evaluates for each row.

Few steps are a searched CASE.  Many are a table: DuckDB joins rows with it, each with the last step that starts at or
below its score (ASOF); PostgreSQL finds that step by halving (`width_bucket`).  Either takes time of the logarithm of
the number of steps for a row, where a CASE takes it of the number itself.  The table is one row of VALUES with an array
for each column: a row for each step is read ten times as slowly.

Numbers are quoted and cast: a plain 0.1 is a decimal number in both dialects, and 'Infinity' needs it anyway.  Both
order NaN above all numbers, so that a comparison with infinity tells it from them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from staircase_fast import _validation, _validation_export, pieces
from staircase_fast.pieces import Pieces

if TYPE_CHECKING:
    from staircase_fast.staircase import Staircase

FEW_STEPS = 64
_COLUMNS = ("starts", "lows", "bends", "slopes", "highs")


def expression(
    stairs: Staircase, column: str | Sequence[str], dialect: str, interpolation: str, out_of_bounds: str
) -> str:
    """The staircase of a column."""
    name = ".".join(_quoted(part) for part in _validation_export.name_parts("column", column))
    duck = _validation.choice("dialect", dialect, ("duckdb", "postgres")) == "duckdb"
    linear = _validation.choice("interpolation", interpolation, ("step", "linear")) == "linear"
    clip = _validation.choice("out_of_bounds", out_of_bounds, ("clip", "nan")) == "clip"
    table = pieces.of_staircase(stairs, linear=linear, outside=clip)
    if len(table.start) <= FEW_STEPS:
        return _case(name, table)
    return (_asof_join if duck else _bucket)(name, table, linear=linear)


def _quoted(part: str) -> str:
    return '"' + part.replace('"', '""') + '"'


def _number(value: float) -> str:
    return f"'{_plain(value)}'::float8"


def _plain(value: float) -> str:
    """All bits of a number; both dialects read it as Python does."""
    return repr(value) if math.isfinite(value) else "Infinity" if value > 0 else "-Infinity"


def _case(score: str, table: Pieces) -> str:
    lowest, highest = table.inside
    lines = [f"  WHEN {score} < {_number(lowest)} THEN NULL"] if lowest > -math.inf else []
    columns = (column.tolist() for column in table.columns())
    until = [f"< {_number(start)}" for start in table.start[1:].tolist()] + [f"<= {_number(highest)}"]
    for border, _, low, bend, slope, high in zip(until, *columns, strict=True):
        if bend == math.inf:
            lines.append(f"  WHEN {score} {border} THEN {_number(low)}")
            continue
        lines.append(f"  WHEN {score} <= {_number(bend)} THEN {_number(low)}")
        line = _line(score, *map(_number, (low, bend, slope, high)), rising=table.rising)
        lines.append(f"  WHEN {score} {border} THEN {line}")
    return "\n".join(["CASE", *lines, "END"])


def _line(score: str, low: str, bend: str, slope: str, high: str, *, rising: bool) -> str:
    return f"{'LEAST' if rising else 'GREATEST'}({low} + ({score} - {bend}) * {slope}, {high})"


def _value(score: str, at: str, columns: Sequence[str], *, linear: bool, rising: bool) -> str:
    """The value on a piece whose columns have these names."""
    low, bend, slope, high = (column + at for column in columns)
    if not linear:
        return low
    return f"CASE WHEN {score} <= {bend} THEN {low} ELSE {_line(score, low, bend, slope, high, rising=rising)} END"


def _asof_join(name: str, table: Pieces, *, linear: bool) -> str:
    names = _COLUMNS if linear else _COLUMNS[:2]
    lists = ", ".join(f"'[{_joined(column)}]'::float8[]" for column in table.columns(linear=linear))
    unnested = ", ".join(f"unnest({one}) AS {one[:-1]}" for one in names)
    value = _value("score", "", [one[:-1] for one in _COLUMNS[1:]], linear=linear, rising=table.rising)
    return f"""(
  SELECT {value}
  FROM (SELECT {name}::float8) AS query(score)
  ASOF JOIN (SELECT {unnested} FROM (VALUES ({lists})) AS lists({", ".join(names)})) AS steps
  ON score >= start
  WHERE {_inside(table)}
)"""


def _bucket(name: str, table: Pieces, *, linear: bool) -> str:
    names = _COLUMNS if linear else _COLUMNS[:2]
    arrays = ", ".join(f"'{{{_joined(column)}}}'::float8[]" for column in table.columns(linear=linear))
    value = _value("score", "[step]", _COLUMNS[1:], linear=linear, rising=table.rising)
    return f"""(
  SELECT {value}
  FROM (VALUES ({name}::float8, {arrays})) AS steps(score, {", ".join(names)}),
  LATERAL (SELECT width_bucket(score, starts)) AS found(step)
  WHERE {_inside(table)}
)"""


def _inside(table: Pieces) -> str:
    lowest, highest = table.inside
    return f"score BETWEEN {_number(lowest)} AND {_number(highest)}"


def _joined(column: NDArray[np.float64]) -> str:
    return ", ".join(map(_plain, column.tolist()))
