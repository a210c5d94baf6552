"""Staircases as SQL expressions.

A few steps become a CASE (`sql_case.py`), in each dialect of `sql_dialects.py`.  More steps become a table of pieces
(`pieces.py`): DuckDB joins each row with the last piece that starts at or below its score (ASOF JOIN); PostgreSQL finds
that piece by bisection (`width_bucket`).  The table is one row of VALUES with an array for each column, because
databases parse one row per step ten times more slowly.  Other dialects get a tree of CASE expressions.
All ways take logarithmic time per row, a single CASE linear time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from staircase_fast.inputs.options import check_choice, check_interpolation
from staircase_fast.staircase import pieces
from staircase_fast.staircase.pieces import Pieces
from staircase_fast.staircase.sql_case import FEW_PIECES, case_of, value_on_line
from staircase_fast.staircase.sql_dialects import DIALECTS, SqlDialect, dialect_of, name_of, plain
from staircase_fast.typing import Dialect, Interpolation

if TYPE_CHECKING:
    from staircase_fast.staircase.result import Staircase

COLUMNS = ("starts", "lows", "bends", "slopes", "highs")  # arrays of pieces; a joined piece has a "start", and so on


def expression(
    stairs: Staircase, column: str | Sequence[str], dialect: Dialect, interpolation: Interpolation, out_of_bounds: str
) -> str:
    """`predict` of a column."""
    sql, linear, clip = options(dialect, interpolation, out_of_bounds)
    name = name_of("column", column, sql)
    table = pieces.of_staircase(stairs, interpolation, outside=clip)
    if len(table.start) <= FEW_PIECES or not sql.lookup:
        return case_of(name, table, sql)
    return (_asof_join if sql.lookup == "asof join" else _bucket)(name, table, linear=linear)


def options(dialect: Dialect, interpolation: Interpolation, out_of_bounds: str) -> tuple[SqlDialect, bool, bool]:
    """Check the options: the dialect, whether there are lines, and whether all scores have a value."""
    return (
        dialect_of(dialect),
        check_interpolation(interpolation) != "step",
        check_choice("out_of_bounds", out_of_bounds, ("clip", "nan")) == "clip",
    )


def value_on(at: str, *, linear: bool, rising: bool | None) -> str:
    """The value on a joined piece, or on the piece at the subscript `at` of arrays."""
    low, bend, slope, high = (column + at if at else column[:-1] for column in COLUMNS[1:])
    if not linear:
        return low
    line = value_on_line("score", low, bend, slope, high, rising=rising, least="LEAST", greatest="GREATEST")
    return f"CASE WHEN score <= {bend} THEN {low} ELSE {line} END"


def _asof_join(name: str, table: Pieces, *, linear: bool) -> str:
    columns = table.columns(linear=linear)
    names = COLUMNS[: len(columns)]
    lists = ", ".join(f"'[{joined(column)}]'::float8[]" for column in columns)
    return f"""(
  SELECT {value_on("", linear=linear, rising=table.rising)}
  FROM (SELECT {name}::float8) AS query(score)
  ASOF JOIN (SELECT {unnested(names)} FROM (VALUES ({lists})) AS lists({", ".join(names)})) AS steps
  ON score >= start
  WHERE {_is_inside(table)}
)"""


def _bucket(name: str, table: Pieces, *, linear: bool) -> str:
    columns = table.columns(linear=linear)
    arrays = ", ".join(f"'{{{joined(column)}}}'::float8[]" for column in columns)
    return f"""(
  SELECT {value_on("[step]", linear=linear, rising=table.rising)}
  FROM (VALUES ({name}::float8, {arrays})) AS steps(score, {", ".join(COLUMNS[: len(columns)])}),
  LATERAL (SELECT width_bucket(score, starts)) AS found(step)
  WHERE {_is_inside(table)}
)"""


def _is_inside(table: Pieces) -> str:
    lowest, highest = map(DIALECTS["postgres"].number, table.inside)
    return f"score BETWEEN {lowest} AND {highest}"


def unnested(names: Sequence[str]) -> str:
    """One row for each entry of the lists; "starts" becomes "start"."""
    return ", ".join(f"unnest({name}) AS {name[:-1]}" for name in names)


def joined(column: NDArray[np.float64]) -> str:
    """The entries of an SQL array."""
    return ", ".join(map(plain, column.tolist()))
