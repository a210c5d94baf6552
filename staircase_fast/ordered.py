"""The fit of rows in score order."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from staircase_fast import _merge, _scan
from staircase_fast._validation import Column, Rows, Steps
from staircase_fast.exact import Scale

NO_TIES = np.empty(0, dtype=np.uint8)
UNBOUNDED = (-np.inf, np.inf)
_MANY_ROWS = 64


def fit_sorted(rows: Rows, scale: Scale, *, decreasing: bool, bounds: tuple[float, float]) -> Steps:
    """The staircase of rows in score order."""
    x = rows.scores
    tied = np.zeros(len(x), dtype=np.uint8)
    np.equal(x[1:], x[:-1], out=tied[1:].view(np.bool_))
    starts, values, weights = merge(
        rows.targets, rows.weights, tied if tied.any() else NO_TIES, scale, decreasing=decreasing, bounds=bounds
    )
    left, right = x[starts[:-1]].astype(np.float64), x[starts[1:] - 1].astype(np.float64)
    return Steps(left, right, values, weights, np.diff(starts))


def merge(
    targets: Column,
    weights: Column,
    tied: NDArray[np.uint8],
    scale: Scale,
    *,
    decreasing: bool,
    bounds: tuple[float, float],
) -> tuple[NDArray[np.intp], NDArray[np.float64], NDArray[np.float64]]:
    """Where each step starts, and the number of rows; the values; the weights."""
    n = len(targets)
    exact = targets.dtype.kind == "f" or scale.greatest <= 2**53  # a float64 holds each target
    if exact and not len(tied) and bounds == UNBOUNDED and _scan.is_strictly_monotone(targets, decreasing):
        own_weights = weights.copy() if len(weights) else np.ones(n)
        return np.arange(n + 1), targets.astype(np.float64) + 0.0, own_weights
    # work space for the worst case; what the stack does not reach is never touched, so it costs nothing
    starts = np.empty(n + 1, dtype=np.intp)
    values, step_weights = np.empty(n), np.empty(n)
    known = np.empty(n, dtype=np.uint8)
    words = np.empty(0 if scale.narrow else n * (scale.s_words + scale.w_words), dtype=np.uint64)
    # few rows are looked at one by one; of many, only those that can matter
    buckets = np.empty(_merge.work_size(n) if n >= _MANY_ROWS else 0, dtype=np.uint8)
    n_steps = _merge.merge(
        targets, weights, tied, scale, decreasing, *bounds, starts, values, step_weights, known, words, buckets
    )
    starts[n_steps] = n
    return _trimmed(starts, n_steps + 1), _trimmed(values, n_steps), _trimmed(step_weights, n_steps)


def _trimmed(column: Column, n: int) -> Column:
    """The first n entries, without holding on to many more."""
    return column[:n] if 2 * n > len(column) else column[:n].copy()
