"""The fit of a Venn-Abers predictor: a step function of scores with two values on each step, and its lookup."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from staircase_fast import threads
from staircase_fast.arithmetic.exact import LABELS, UNIT_WEIGHTS, Extent, extent_of, joined_extent, order_of, scale_of
from staircase_fast.calibration import _venn
from staircase_fast.errors import InvalidInputError, arguments_named, refuse_entries
from staircase_fast.inputs import hints
from staircase_fast.inputs.columns import Column, read_column
from staircase_fast.inputs.rows import check_same_length, check_weights, read_columns, read_scores, refuse_nan
from staircase_fast.losses.rows import Rows
from staircase_fast.stack.sorting import in_score_order
from staircase_fast.staircase import _lookup
from staircase_fast.typing import ColumnLike

Floats = NDArray[np.float64]


class PairSteps:
    """Steps with values (p0, p1), and the number of rows they were fitted to.  Immutable."""

    __slots__ = ("_lookup", "left", "n_samples", "values")

    def __init__(self, n_samples: int, left: Floats, values: Floats) -> None:
        self.n_samples, self.left, self.values = n_samples, left, values  # values: a row (p0, p1) for each step
        left.setflags(write=False)
        values.setflags(write=False)
        self._lookup = _lookup.Lookup(left, left, left)  # for its index alone

    @classmethod
    def checked(cls, n_samples: Any, left: ColumnLike, p0: ColumnLike, p1: ColumnLike) -> PairSteps:
        """The steps in a file or a pickle, if they are valid."""
        if type(n_samples) is not int or n_samples < 1:
            raise InvalidInputError("n_samples", "must be an integer >= 1", value=n_samples)
        start = read_scores("left", left).astype(np.float64)
        if len(start) == 0:
            raise InvalidInputError("left", "must have at least one step", found="got none")
        refuse_entries("left", "must start at -inf", start[:1], start[:1] != -np.inf)
        refuse_entries("left", "must strictly increase", start[1:], ~(start[1:] > start[:-1]), 1)
        columns = {name: read_column(name, one).astype(np.float64) for name, one in (("p0", p0), ("p1", p1))}
        for name, column in columns.items():
            check_same_length("left", start, name, column)
            refuse_entries(name, "must be in [0, 1]", column, ~((column >= 0) & (column <= 1)))
            refuse_entries(name, "must not decrease", column[1:], column[1:] < column[:-1], 1)
        refuse_entries("p0", "must be <= `p1`", columns["p0"], columns["p0"] > columns["p1"])
        return cls(n_samples, start, np.column_stack((columns["p0"], columns["p1"])))

    def columns(self) -> tuple[Any, ...]:
        """The arguments of `checked`."""
        return self.n_samples, self.left, *self.values.T

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PairSteps) and all(map(np.array_equal, self.columns(), other.columns()))

    __hash__ = None  # type: ignore[assignment]

    def look_up(self, queries: Column, table: Floats, n_threads: int) -> list[Floats]:
        """For each query, the entry of each column of `table` that belongs to its step.

        The table has one row per step and one or two columns; a table with one column is a one-dimensional array.
        """
        index = self._lookup.index_for(len(queries), True)
        one = _lookup.Lookup(self.left, self.left, table, index) if table.ndim == 1 else None
        found = [np.empty(len(queries)) for _ in range(table.ndim)]

        def task(part: slice) -> int:
            out = [column[part] for column in found]
            if one is not None:
                return one.evaluate(queries[part], False, False, *out)
            return _lookup.evaluate_pairs(queries[part], self.left, table, index, *out)

        shares = threads.parts(len(queries), n_threads)
        for part, nan in zip(shares, threads.each(task, shares), strict=True):
            refuse_nan("scores", queries, part.start + nan if nan >= 0 else -1)
        return found


def read_labelled_rows(
    scores: ColumnLike, labels: ColumnLike, sample_weight: ColumnLike | None
) -> tuple[Rows, NDArray[np.bool_]]:
    """Valid rows with labels as bytes, without rows of weight 0; and which of the given rows these are."""
    with arguments_named(targets="labels"):
        x, y, w = read_columns(scores, labels, sample_weight)
    order = order_of(x, 1)
    refuse_nan("scores", x, order.first_nan)
    refuse_entries("labels", "must be 0 or 1", y, (y != 0) & (y != 1), hint=partial(hints.for_labels, "labels", y, x))
    extent = extent_of(w, 1) if len(w) else UNIT_WEIGHTS
    present = check_weights("sample_weight", w, extent)
    y = y.astype(np.uint8, copy=False)
    if present is None:
        return Rows(x, y, w, LABELS, extent, order), np.ones(len(x), dtype=np.bool_)
    x = x[present]
    return Rows(x, y[present], w[present], LABELS, extent, order_of(x, 1)), present


def fit_pair_steps(rows: Rows, query_weight: float) -> PairSteps:
    """The steps of valid rows."""
    query = Extent(-1, query_weight, query_weight, query_weight, query_weight.is_integer())
    n = len(rows.scores)
    scale = scale_of(LABELS, joined_extent(rows.weights_extent, query), n + 1)
    x, y, w = in_score_order(rows)[:3]
    # Room for the worst case: untouched memory is never allocated.  The C library keeps one large array for later calls
    # sooner than several smaller ones.
    n_words = _venn.work_size(n, scale.w_words)
    memory = np.empty(n_words + 6 * n + 3)
    work, left, values = np.split(memory, [n_words, n_words + 2 * n + 1])
    work, values = work.view(np.uint64), values.reshape(-1, 2)
    n_steps = _venn.fit(x, y, w, query_weight, scale, work, left, values)
    return PairSteps(n, left[:n_steps].copy(), values[:n_steps].copy())
