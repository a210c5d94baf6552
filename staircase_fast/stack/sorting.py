"""Rows in score order."""

from __future__ import annotations

import numpy as np

from staircase_fast.arithmetic.exact import Order
from staircase_fast.losses.rows import Rows
from staircase_fast.stack import _sorting

_FEW_ROWS = 4096
_ASCENDING = Order(-1, 1, tied=True)  # perhaps


def in_score_order(rows: Rows) -> Rows:
    """The same rows, sorted; those of one score in any order, but always the same."""
    n = len(rows.scores)
    if rows.order.sign > 0:
        return rows
    if not _FEW_ROWS <= n < 2**32:  # the kernel is not worth its call; it counts in half words
        x = rows.scores.copy()  # numpy's sort may leave an array whose entries change meanwhile
        order = np.argsort(x)
        x, y, w = x[order], rows.targets[order], rows.weights[order] if len(rows.weights) else rows.weights
        return rows._replace(scores=x, targets=y, weights=w, order=_ASCENDING, buckets=None)
    x, y, w = np.empty_like(rows.scores), np.empty_like(rows.targets), np.empty_like(rows.weights)
    bits = f"u{y.itemsize}"  # targets are moved as they are, whatever they mean
    work = np.empty(_sorting.work_size(n), dtype=np.uint8)
    _sorting.sort_columns(rows.scores, rows.targets.view(bits), rows.weights, x, y.view(bits), w, work)
    return rows._replace(scores=x, targets=y, weights=w, order=_ASCENDING, buckets=None)
