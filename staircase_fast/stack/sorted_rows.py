"""The fit of sorted rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from staircase_fast import threads
from staircase_fast.arithmetic.exact import Scale
from staircase_fast.inputs.columns import Column
from staircase_fast.losses.rows import Rows
from staircase_fast.stack import _sorted_rows
from staircase_fast.staircase.steps import Steps

NO_SCORES = np.empty(0)
UNBOUNDED = (-np.inf, np.inf)
_ROWS_FOR_A_PLAN = 64  # fewer rows are pushed one by one


def fit_sorted(rows: Rows, scale: Scale, *, decreasing: bool, bounds: tuple[float, float]) -> Steps:
    """The staircase of sorted rows, in either direction.  Overwrites `rows.buckets`."""
    n, ends = len(rows.scores), rows.scores[[0, -1]].astype(np.float64)
    if ends[0] == ends[1]:
        value, weight = np.empty(1), np.empty(1)
        _sorted_rows.pool(rows.targets, rows.weights, scale, *bounds, value, weight)
        return Steps(ends[:1], ends[1:], value, weight, np.array([n]))
    backwards = rows.order.sign < 0
    scores = rows.scores if rows.order.tied else NO_SCORES
    values = rows.buckets if rows.buckets is not None else np.empty(n)
    starts, weights = merge(
        scores, rows.targets, rows.weights, scale, values,
        decreasing=decreasing != backwards, bounds=bounds, summarised=rows.buckets is not None,
    )  # fmt: skip
    n = len(weights)
    left, right, counts = np.empty(n), np.empty(n), np.empty(n, dtype=np.int64)
    _sorted_rows.describe(rows.scores, starts, left, right, counts)
    steps = Steps(left, right, _trimmed(values, n), weights, counts)
    return turned(steps) if backwards else steps


def turned(steps: Steps) -> Steps:
    """Steps in the opposite order."""
    opposite = Steps._make(None if column is None else column[::-1].copy() for column in steps)
    return opposite._replace(left=opposite.right, right=opposite.left)


def merge(
    scores: Column,
    targets: Column,
    weights: Column,
    scale: Scale,
    values: NDArray[np.float64],
    *,
    decreasing: bool,
    bounds: tuple[float, float],
    summarised: bool = False,
) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """Fit sorted rows: return the first row of each step, followed by the number of rows, and the weight of each step.

    The values are written to the start of `values`.  Scores are only compared with each other; pass none if all differ.
    `summarised`: `values` comes from `exact.summary_of` of these rows.
    """
    n = len(targets)
    # room for the worst case: unused memory costs nothing
    starts, step_weights = np.empty(n + 1, dtype=np.intp), np.empty(n)
    work = np.empty(_sorted_rows.work_size(n, 0 if scale.narrow else scale.s_words + scale.w_words), dtype=np.uint64)
    n_steps = _sorted_rows.merge(
        scores, targets, weights, scale, decreasing, *bounds, n < _ROWS_FOR_A_PLAN, summarised,
        starts, values, step_weights, work,
    )  # fmt: skip
    return _trimmed(starts, n_steps + 1), _trimmed(step_weights, n_steps)


def expand(values: NDArray[np.float64], starts: NDArray[np.intp], n_threads: int) -> None:
    """Replace the first entries of `values`, one per step, by one per row."""
    steps = values[: len(starts) - 1].copy()

    def write(part: slice) -> None:
        step = int(np.searchsorted(starts, part.start, side="right")) - 1
        _sorted_rows.expand(steps, starts, step, part.start, values[part])

    threads.each(write, threads.parts(len(values), n_threads))


def _trimmed(column: Column, n: int) -> Column:
    """The first n entries; a copy if the column is much longer."""
    return column[:n] if 8 * n > len(column) else column[:n].copy()
