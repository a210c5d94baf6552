"""Staircases as SQL expressions.

A few steps become a searched CASE, which is the only form for Spark.  More steps become a table of pieces
(`pieces.py`): DuckDB joins each row with the last piece that starts at or below its score (ASOF JOIN); PostgreSQL finds
that piece by bisection (`width_bucket`).
Both take logarithmic time per row, a CASE linear time.  The table is one row of VALUES with an array for each column,
because databases parse one row per step ten times more slowly.

Numbers are quoted and cast: a plain 0.1 is a decimal number in all dialects, and 'Infinity' needs quotes anyway.  All
dialects order NaN above all numbers, so a comparison with infinity excludes it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from staircase_fast.errors import InvalidInputError, InvalidTypeError
from staircase_fast.inputs.options import check_choice, check_interpolation
from staircase_fast.staircase import pieces
from staircase_fast.staircase.pieces import Pieces
from staircase_fast.typing import Dialect, Interpolation

if TYPE_CHECKING:
    from staircase_fast.staircase.result import Staircase

FEW_STEPS = 64
COLUMNS = ("starts", "lows", "bends", "slopes", "highs")  # arrays of pieces; a joined piece has a "start", and so on


def expression(
    stairs: Staircase, column: str | Sequence[str], dialect: Dialect, interpolation: Interpolation, out_of_bounds: str
) -> str:
    """`predict` of a column."""
    spark = dialect == "spark"
    name = name_of("column", column, "`" if spark else '"')
    duck, linear, clip = options(dialect, interpolation, out_of_bounds, ("duckdb", "postgres", "spark"))
    table = pieces.of_staircase(stairs, interpolation, outside=clip)
    if len(table.start) <= FEW_STEPS:
        return _case(name, table, _spark_number if spark else _number)
    if spark:
        hint = "Use `staircase_fast.spark.predict`."
        found = f"this staircase has {len(table.start)}"
        raise InvalidInputError("dialect", f"'spark' supports at most {FEW_STEPS} steps", found=found, hint=hint)
    return (_asof_join if duck else _bucket)(name, table, linear=linear)


def options(
    dialect: Dialect,
    interpolation: Interpolation,
    out_of_bounds: str,
    dialects: tuple[str, ...] = ("duckdb", "postgres"),
) -> tuple[bool, bool, bool]:
    """Check the options: whether the dialect is DuckDB, there are lines, and all scores have a value."""
    return (
        check_choice("dialect", dialect, dialects) == "duckdb",
        check_interpolation(interpolation) != "step",
        check_choice("out_of_bounds", out_of_bounds, ("clip", "nan")) == "clip",
    )


def name_of(argument: str, given: Any, quote: str = '"') -> str:
    """A quoted column name, from a string or from a sequence of its parts."""
    parts = (given,) if isinstance(given, str) else given
    if not isinstance(parts, Sequence) or isinstance(parts, bytes) or not len(parts):
        requirement = "must be a name or a sequence of names such as ('t', 'score')"
        raise InvalidTypeError(argument, requirement, value=given)
    for place, part in enumerate(parts):
        index = None if isinstance(given, str) else place
        if not isinstance(part, str):
            raise InvalidTypeError(argument, "must consist of strings", value=part, index=index)
        if not part:
            raise InvalidInputError(argument, "must not be empty", value=part, index=index)
        check_text(argument, part, index)
    return ".".join(quote + part.replace(quote, 2 * quote) + quote for part in parts)


def check_text(argument: str, text: str, index: int | None) -> None:
    """SQL text can contain neither NUL nor surrogates, which UTF-8 cannot encode."""
    if re.search("[\0\ud800-\udfff]", text):
        raise InvalidInputError(argument, "must not contain NUL or surrogate characters", value=text, index=index)


def _number(value: float) -> str:
    return f"'{_plain(value)}'::float8"


def _spark_number(value: float) -> str:
    return f"double('{_plain(value)}')"


def _plain(value: float) -> str:
    """A number without loss; all dialects read it as Python does."""
    return repr(value) if math.isfinite(value) else "Infinity" if value > 0 else "-Infinity"


def _case(score: str, table: Pieces, number: Callable[[float], str]) -> str:
    lowest, highest = table.inside
    lines = [f"  WHEN {score} < {number(lowest)} THEN NULL"] if lowest > -math.inf else []
    columns = (column.tolist() for column in table.columns())
    until = [f"< {number(start)}" for start in table.start[1:].tolist()] + [f"<= {number(highest)}"]
    for border, _, low, bend, slope, high in zip(until, *columns, strict=True):
        if bend == math.inf:
            lines.append(f"  WHEN {score} {border} THEN {number(low)}")
            continue
        lines.append(f"  WHEN {score} <= {number(bend)} THEN {number(low)}")
        line = _line(score, *map(number, (low, bend, slope, high)), rising=table.rising)
        lines.append(f"  WHEN {score} {border} THEN {line}")
    return "\n".join(["CASE", *lines, "END"])


def _line(score: str, low: str, bend: str, slope: str, high: str, *, rising: bool | None) -> str:
    """A point on a line, clipped at its end; `rising` is None if some lines rise and others fall."""
    value = f"{low} + ({score} - {bend}) * {slope}"
    if rising is None:
        return f"LEAST(GREATEST({value}, LEAST({low}, {high})), GREATEST({low}, {high}))"
    return f"{'LEAST' if rising else 'GREATEST'}({value}, {high})"


def value_on(at: str, *, linear: bool, rising: bool | None) -> str:
    """The value on a joined piece, or on the piece at the subscript `at` of arrays."""
    low, bend, slope, high = (column + at if at else column[:-1] for column in COLUMNS[1:])
    if not linear:
        return low
    return f"CASE WHEN score <= {bend} THEN {low} ELSE {_line('score', low, bend, slope, high, rising=rising)} END"


def _asof_join(name: str, table: Pieces, *, linear: bool) -> str:
    columns = table.columns(linear=linear)
    names = COLUMNS[: len(columns)]
    lists = ", ".join(f"'[{joined(column)}]'::float8[]" for column in columns)
    return f"""(
  SELECT {value_on("", linear=linear, rising=table.rising)}
  FROM (SELECT {name}::float8) AS query(score)
  ASOF JOIN (SELECT {unnested(names)} FROM (VALUES ({lists})) AS lists({", ".join(names)})) AS steps
  ON score >= start
  WHERE score BETWEEN {_number(table.inside[0])} AND {_number(table.inside[1])}
)"""


def _bucket(name: str, table: Pieces, *, linear: bool) -> str:
    columns = table.columns(linear=linear)
    arrays = ", ".join(f"'{{{joined(column)}}}'::float8[]" for column in columns)
    return f"""(
  SELECT {value_on("[step]", linear=linear, rising=table.rising)}
  FROM (VALUES ({name}::float8, {arrays})) AS steps(score, {", ".join(COLUMNS[: len(columns)])}),
  LATERAL (SELECT width_bucket(score, starts)) AS found(step)
  WHERE score BETWEEN {_number(table.inside[0])} AND {_number(table.inside[1])}
)"""


def unnested(names: Sequence[str]) -> str:
    """One row for each entry of the lists; "starts" becomes "start"."""
    return ", ".join(f"unnest({name}) AS {name[:-1]}" for name in names)


def joined(column: NDArray[np.float64]) -> str:
    """The entries of an SQL array."""
    return ", ".join(map(_plain, column.tolist()))
