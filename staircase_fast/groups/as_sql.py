"""A StaircaseMap as an SQL expression: find the group, then the step (see staircase/as_sql.py).

Most dialects compare the key with each group in a CASE, whose branches are those of the staircases.  DuckDB joins rows
with the steps of all groups by key, and ASOF by score.  PostgreSQL finds the key by bisection, then the step in that
slice of the arrays.  Keys are in ascending order; strings are ordered by their bytes, COLLATE "C".
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from staircase_fast.errors import InvalidInputError
from staircase_fast.staircase import pieces
from staircase_fast.staircase.as_sql import COLUMNS, joined, options, unnested, value_on
from staircase_fast.staircase.pieces import Pieces
from staircase_fast.staircase.sql_case import case_of
from staircase_fast.staircase.sql_dialects import SqlDialect, check_text, name_of
from staircase_fast.typing import Dialect, Interpolation

if TYPE_CHECKING:
    from staircase_fast.groups.map_exports import MapExports
    from staircase_fast.groups.readers import Key

_TYPES = {bool: "boolean", int: "int8", str: "text"}
_WIDE = "numeric(20, 0)"  # for unsigned integers
_ENDS = ("lowests", "highests")  # the range of scores of each group that has a value


def expression(
    found: MapExports,
    column: str | Sequence[str],
    group: str | Sequence[str],
    dialect: Dialect,
    interpolation: Interpolation,
    out_of_bounds: str,
) -> str:
    """The SQL expression of a map."""
    sql, linear, clip = options(dialect, interpolation, out_of_bounds)
    score, key = name_of("column", column, sql), name_of("group", group, sql)
    keys = _literals(list(found), dialect, sql)
    tables = [pieces.of_staircase(stairs, interpolation, outside=clip) for stairs in found.values()]
    if not sql.lookup:
        return _cases(score, key, keys, tables, sql)
    rising = bool(found.increasing[0]) if len(np.unique(found.increasing)) == 1 else None
    last = next(reversed(list(found)))
    kind = _WIDE if isinstance(last, int) and last >= 2**63 else _TYPES[type(last)]
    # no cast for integers: it would round 1.5 to a key, and fail for numbers out of range
    sought = key if type(last) is int else f"{key}::{kind}"
    write = _asof_join if sql.lookup == "asof join" else _bucket
    return write(score, sought, f"ARRAY[{', '.join(keys)}]::{kind}[]", tables, linear, rising)


def _literals(keys: list[Key], dialect: str, sql: SqlDialect) -> list[str]:
    for place, key in enumerate(keys):
        if isinstance(key, str):
            check_text("keys", key, place)
        elif key > sql.max_key:
            requirement = f"must be at most {sql.max_key} for dialect {dialect!r}"
            raise InvalidInputError("keys", requirement, value=key, index=place)
    return [sql.text(key) if isinstance(key, str) else str(key) for key in keys]


def _cases(score: str, key: str, keys: list[str], tables: list[Pieces], sql: SqlDialect) -> str:
    cases = (case_of(score, table, sql).replace("\n", "\n  ") for table in tables)
    branches = [f"  WHEN {one} THEN {case}" for one, case in zip(keys, cases, strict=True)]
    return "\n".join([f"CASE {key}", *branches, "END"])


def _asof_join(score: str, key: str, keys: str, tables: list[Pieces], linear: bool, rising: bool | None) -> str:
    names = COLUMNS[: 5 if linear else 2]
    nested = ("], [".join(map(joined, columns)) for columns in _transposed(tables, linear))
    lists = ", ".join(
        [*(f"'[{one}]'::float8[]" for one in _ends(tables)), *(f"'[[{one}]]'::float8[][]" for one in nested)]
    )
    groups = ", ".join(f"unnest({name}) AS {name}" for name in names)
    return f"""(
  SELECT {value_on("", linear=linear, rising=rising)}
  FROM (SELECT {score}::float8, {key}) AS query(score, sought)
  ASOF JOIN (
    SELECT key, lowest, highest, {unnested(names)} FROM (
      SELECT {unnested(("keys", *_ENDS))}, {groups}
      FROM (VALUES ({keys}, {lists})) AS lists({", ".join(("keys", *_ENDS, *names))})
    )
  ) AS steps
  ON sought = key AND score >= start
  WHERE score BETWEEN lowest AND highest
)"""


def _bucket(score: str, key: str, keys: str, tables: list[Pieces], linear: bool, rising: bool | None) -> str:
    collated = f'{key} COLLATE "C"' if key.endswith("::text") else key
    offsets = ", ".join(map(str, accumulate((len(table.start) for table in tables), initial=0)))
    columns = [*_ends(tables), *(joined(np.concatenate(one)) for one in _transposed(tables, linear))]
    arrays = ", ".join(f"'{{{one}}}'::float8[]" for one in columns)
    names = ", ".join(("score", "key", "keys", "offsets", *_ENDS, *COLUMNS[: 5 if linear else 2]))
    return f"""(
  SELECT {value_on("[step]", linear=linear, rising=rising)}
  FROM (VALUES ({score}::float8, {collated}, {keys}, '{{{offsets}}}'::int8[], {arrays})) AS steps({names}),
  LATERAL (SELECT width_bucket(key, keys)) AS there(place),
  LATERAL (
    SELECT offsets[place] + width_bucket(score, starts[offsets[place] + 1 : offsets[place + 1]])
  ) AS found(step)
  WHERE keys[place] = key AND score BETWEEN lowests[place] AND highests[place]
)"""


def _ends(tables: list[Pieces]) -> list[str]:
    return [joined(np.array(ends)) for ends in zip(*(table.inside for table in tables), strict=True)]


def _transposed(tables: list[Pieces], linear: bool) -> list[list[NDArray[np.float64]]]:
    return [list(columns) for columns in zip(*(table.columns(linear=linear) for table in tables), strict=True)]
