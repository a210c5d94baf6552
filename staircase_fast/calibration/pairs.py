"""A function of scores that has two values on each step, and looking it up."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from staircase_fast import threads
from staircase_fast.calibration.venn_checks import PairSteps
from staircase_fast.inputs.columns import Column
from staircase_fast.inputs.rows import refuse_nan
from staircase_fast.staircase import _lookup, cells

_NO_LINES = np.empty((0, 4))


class Pairs:
    """A function of scores with two values on each step; it does not change once made."""

    __slots__ = ("_index", "left", "values")

    def __init__(self, steps: PairSteps) -> None:
        self.left, self.values = steps
        self.left.setflags(write=False)
        self.values.setflags(write=False)
        self._index: cells.Index | None = None

    def look_up(
        self, queries: Column, values: NDArray[np.float64], n_threads: int
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Both entries of the row of `values`, one row per step, that belongs to each query."""
        first, second = np.empty(len(queries)), np.empty(len(queries))
        index = self._index_for(len(queries))

        def task(part: slice) -> int:
            return _lookup.evaluate_pairs(queries[part], self.left, values, *index, first[part], second[part])

        _each(task, queries, n_threads)
        return first, second

    def look_up_one(self, queries: Column, values: NDArray[np.float64], n_threads: int) -> NDArray[np.float64]:
        """The entry of `values`, one per step, that belongs to each query."""
        found = np.empty(len(queries))
        index = self._index_for(len(queries))

        def task(part: slice) -> int:
            steps = self.left, self.left, values
            return _lookup.evaluate(queries[part], *steps, False, False, *index, _NO_LINES, found[part])

        _each(task, queries, n_threads)
        return found

    def _index_for(self, n_queries: int) -> cells.Index:
        """What makes many queries fast (two threads may both make it: it is the same)."""
        index = self._index
        if index is None:
            index = cells.index_for(self.left, n_queries)
            if index is None:  # and what another thread has made meanwhile stays
                return cells.NO_INDEX
            self._index = index
        return index


def _each(task: Callable[[slice], int], queries: Column, n_threads: int) -> None:
    """Look up queries in parts; a task tells the place of the first NaN in its part, or -1."""
    shares = threads.parts(len(queries), n_threads)
    for part, nan in zip(shares, threads.each(task, shares), strict=True):
        refuse_nan("scores", queries, part.start + nan if nan >= 0 else -1)
