"""Sort rows by score."""

from __future__ import annotations

import numpy as np

from staircase_fast.arithmetic.exact import Order
from staircase_fast.losses.rows import Rows
from staircase_fast.stack import _sorting

_FEW_ROWS = 4096
_ASCENDING = Order(-1, 1, tied=True)  # there may be ties


def in_score_order(rows: Rows) -> Rows:
    """The same rows, sorted.  The order of equal scores is unspecified but reproducible."""
    n, x, y, w = len(rows.scores), *rows[:3]
    if rows.order.sign > 0:
        return rows
    if not _FEW_ROWS <= n < 2**32:  # a call is slow for few rows; row numbers are uint32
        x = x.copy()  # numpy's sort may crash if its input changes during the call
        order = np.argsort(x)
        x, y, w = x[order], y[order], w[order] if len(w) else w
    else:
        x, y, w = np.empty_like(x), np.empty_like(y), np.empty_like(w)
        bits = f"u{y.itemsize}"  # targets are moved bit by bit
        work = np.empty(_sorting.work_size(n), dtype=np.uint8)
        _sorting.sort_columns(rows.scores, rows.targets.view(bits), rows.weights, x, y.view(bits), w, work)
    return rows._replace(scores=x, targets=y, weights=w, order=_ASCENDING, buckets=None)
