"""Staircases as CASE expressions.

Up to 64 pieces become one searched CASE, which people can read.  More pieces become a tree of CASE expressions with up
to 16 branches each: a comparison with a few starts of pieces per level, and few levels, because parsers limit the depth
of an expression (SQLite allows about 16 levels).  All comparisons of NULL and NaN lead to the last piece, which refuses
them.
"""

from __future__ import annotations

import math

from staircase_fast.staircase.pieces import Pieces
from staircase_fast.staircase.sql_dialects import SqlDialect

FEW_PIECES = 64
_BRANCHES = 16


def case_of(score: str, table: Pieces, sql: SqlDialect) -> str:
    """The value at a score; `score` is SQL."""
    lowest, highest = table.inside
    lines = [f"WHEN {score} < {sql.number(lowest)} THEN NULL"] if lowest > -math.inf else []
    known = highest == math.inf and not sql.has_infinity
    until = f"WHEN {score} IS NOT NULL THEN" if known else f"WHEN {score} <= {sql.number(highest)} THEN"
    return "\n".join(_case([*lines, *_branches(score, table, sql, 0, len(table.start), until)]))


def value_on_line(
    score: str, low: str, bend: str, slope: str, high: str, *, rising: bool | None, least: str, greatest: str
) -> str:
    """A point on a line, clipped at its end; `rising` is None if some lines rise and others fall."""
    value = f"{low} + ({score} - {bend}) * {slope}"
    if rising is None:
        return f"{least}({greatest}({value}, {least}({low}, {high})), {greatest}({low}, {high}))"
    return f"{least if rising else greatest}({value}, {high})"


def _case(branches: list[str]) -> list[str]:
    return ["CASE", *("  " + line for line in branches), "END"]


def _branches(score: str, table: Pieces, sql: SqlDialect, first: int, last: int, until: str) -> list[str]:
    """The branches of a CASE for the pieces [first, last); `until` introduces the last of them."""
    if last - first <= (FEW_PIECES if last - first == len(table.start) else _BRANCHES):
        return [line for place in range(first, last) for line in _piece(score, table, sql, place, last, until)]
    size = _BRANCHES
    while size * _BRANCHES < last - first:
        size *= _BRANCHES
    lines = []
    for start in range(first, last, size):
        end = min(start + size, last)
        is_last = end == last
        heading = "ELSE" if is_last else f"WHEN {score} < {sql.number(table.start[end].item())} THEN"
        word, *more = _case(_branches(score, table, sql, start, end, until if is_last else "ELSE"))
        lines += [f"{heading} {word}", *more]
    return lines


def _piece(score: str, table: Pieces, sql: SqlDialect, place: int, last: int, until: str) -> list[str]:
    """The branches of one piece."""
    _, low, bend, slope, high = (column[place].item() for column in table.columns())
    if place + 1 < last:
        until = f"WHEN {score} < {sql.number(table.start[place + 1].item())} THEN"
    if bend == math.inf:
        return [f"{until} {sql.number(low)}"]
    line = value_on_line(
        score, *map(sql.number, (low, bend, slope, high)), rising=table.rising, least=sql.least, greatest=sql.greatest
    )
    return [f"WHEN {score} <= {sql.number(bend)} THEN {sql.number(low)}", f"{until} {line}"]
