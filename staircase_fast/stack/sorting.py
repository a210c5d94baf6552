"""Sort rows by score."""

from __future__ import annotations

import numpy as np

from staircase_fast.arithmetic.exact import Order
from staircase_fast.inputs.columns import Column
from staircase_fast.losses.rows import Rows
from staircase_fast.stack import _sorting

_FEW_ROWS = 4096
_NO_WORK = np.empty(0, dtype=np.uint8)
_ASCENDING = Order(-1, 1, tied=True)  # there may be ties


def in_score_order(rows: Rows) -> Rows:
    """The same rows, sorted.  The order of equal scores is unspecified but reproducible."""
    rows = repaired(rows)
    if rows.order.sign > 0:
        return rows
    n = len(rows.scores)
    if not _FEW_ROWS <= n < 2**32:  # a call is slow for few rows; row numbers are uint32
        x, y, w = rows[:3]
        x = x.copy()  # numpy's sort may crash if its input changes during the call
        order = np.argsort(x)
        return _sorted_rows(rows, x[order], y[order], w[order] if len(w) else w)
    given, out = _columns(rows)
    _sorting.sort_columns(*given, *out, np.empty(_sorting.work_size(n), dtype=np.uint8))
    return _sorted_rows(rows, *out)


def repaired(rows: Rows) -> Rows:
    """The rows, sorted by insertion if they are nearly sorted."""
    if rows.order.sign != 0 or len(rows.scores) < _FEW_ROWS:
        return rows
    given, out = _columns(rows)
    return _sorted_rows(rows, *out) if _sorting.sort_columns(*given, *out, _NO_WORK) else rows


def _columns(rows: Rows) -> tuple[list[Column], list[Column]]:
    """The columns and others of the same size; targets are moved bit by bit."""
    given = [rows.scores, rows.targets.view(f"u{rows.targets.itemsize}"), rows.weights]
    return given, [np.empty_like(column) for column in given]


def _sorted_rows(rows: Rows, x: Column, y: Column, w: Column) -> Rows:
    return rows._replace(scores=x, targets=y.view(rows.targets.dtype), weights=w, order=_ASCENDING, buckets=None)
