"""Sort rows by score."""

from __future__ import annotations

import functools
import time

import numpy as np

from staircase_fast.arithmetic.exact import Order
from staircase_fast.inputs.columns import Column
from staircase_fast.losses.rows import Rows
from staircase_fast.stack import _sorting

_FEW_ROWS = 4096
_KEY_ROWS = 500_000  # up to so many rows, sorting keys is faster, if NumPy sorts fast
_NANOSECONDS_PER_KEY = 8.0  # our own sort takes about as long
_NO_KEYS = np.empty(0, dtype=np.uint64)
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
    if n <= _KEY_ROWS and numpy_sorts_fast():
        keys = np.empty(n, dtype=np.uint64)
        _sorting.make_keys(rows.scores, keys)
        keys.sort()
        if _sorting.insert_columns(keys, *given, *out):
            return _sorted_rows(rows, *out)
    _sorting.sort_columns(*given, *out, np.empty(_sorting.work_size(n), dtype=np.uint8))
    return _sorted_rows(rows, *out)


@functools.cache
def numpy_sorts_fast() -> bool:
    """Whether NumPy sorts integers faster than we do; it has vector instructions for some processors."""
    keys = np.arange(2000, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)  # well mixed
    times = []
    for _ in range(5):
        mixed = keys.copy()
        start = time.perf_counter()
        mixed.sort()
        times.append(time.perf_counter() - start)
    return min(times) < len(keys) * _NANOSECONDS_PER_KEY * 1e-9


def repaired(rows: Rows) -> Rows:
    """The rows, sorted by insertion if they are nearly sorted."""
    if rows.order.sign != 0 or not is_nearly_sorted(rows.scores):
        return rows
    given, out = _columns(rows)
    return _sorted_rows(rows, *out) if _sorting.insert_columns(_NO_KEYS, *given, *out) else rows


def is_nearly_sorted(scores: Column) -> bool:
    """Whether there are many scores and most of them are in order, according to some of the rows."""
    return len(scores) >= _FEW_ROWS and bool(_sorting.is_nearly_sorted(scores))


def _columns(rows: Rows) -> tuple[list[Column], list[Column]]:
    """The columns and others of the same size; targets are moved bit by bit."""
    given = [rows.scores, rows.targets.view(f"u{rows.targets.itemsize}"), rows.weights]
    return given, [np.empty_like(column) for column in given]


def _sorted_rows(rows: Rows, x: Column, y: Column, w: Column) -> Rows:
    return rows._replace(scores=x, targets=y.view(rows.targets.dtype), weights=w, order=_ASCENDING, buckets=None)
