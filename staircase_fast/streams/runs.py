"""Runs: the stored form of some rows of an `Accumulator`, and how two runs become one.

If steps are means, a run holds the exact sums of each score (`_score_sums.pyx`), 24 bytes per score.  Wider sums are
stored beside; they are needed only for repeated scores with non-integer or very large numbers.  For other losses a run
holds the rows themselves.  Sums are exact, so the order in which runs are merged does not matter.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from staircase_fast.arithmetic.exact import Extent, Scale, joined_extent, scale_of
from staircase_fast.losses.rows import Rows
from staircase_fast.stack.sorting import in_score_order
from staircase_fast.staircase.steps import Steps
from staircase_fast.streams import _score_sums

_EXACT = 2**53  # every integer up to this is a float64
_WEIGHT_BITS = 32  # of a tally
GROWTH = 4


class ScoreSums(NamedTuple):
    """Entries of `_score_sums.pyx`."""

    x: NDArray[np.float64]
    y: NDArray[np.float64]
    w: NDArray[np.int64]
    rows: NDArray[np.int64]
    words: NDArray[np.uint64]


class RawRows(NamedTuple):
    """Rows in the order of their arrival."""

    x: NDArray[np.float64]
    y: NDArray[np.float64]
    w: NDArray[np.float64]  # or empty: all are 1


class Run(NamedTuple):
    """At least one row.  The arrays are never changed."""

    columns: ScoreSums | RawRows
    n_rows: int
    targets: Extent
    weights: Extent

    @property
    def scale(self) -> Scale:
        """The scale of its exact sums."""
        return scale_of(self.targets, self.weights, self.n_rows)

    @property
    def nbytes(self) -> int:
        """Size of its columns."""
        return sum(column.nbytes for column in self.columns)

    @property
    def n_scores(self) -> int:
        """Number of distinct scores."""
        return len(np.unique(self.columns.x) if isinstance(self.columns, RawRows) else self.columns.x)

    @property
    def weight(self) -> float:
        """Sum of all weights, rounded; inf if it overflows."""
        columns = self.columns
        with np.errstate(over="ignore"):
            if isinstance(columns, RawRows):
                return float(columns.w.sum()) if len(columns.w) else float(self.n_rows)
            single, tally = columns.w > 0, columns.w < 0
            weight = float(columns.w.view(np.float64)[single].sum())
            weight += float((columns.w[tally] & (2**_WEIGHT_BITS - 1)).sum())
            words = columns.words[:, self.scale.s_words :].sum(axis=0, dtype=np.float64)
            return weight + float(np.ldexp(words, self.scale.w_unit + 64 * np.arange(len(words))).sum())

    def state(self) -> tuple[Any, ...]:
        """Its fields as plain tuples and arrays, to be pickled."""
        return tuple(self.columns), self.n_rows, tuple(self.targets), tuple(self.weights)

    @classmethod
    def from_state(cls, columns: tuple[Any, ...], n_rows: int, targets: Any, weights: Any) -> Run:
        """The run whose `state` this is."""
        kind = RawRows if len(columns) == len(RawRows._fields) else ScoreSums
        return cls(kind(*columns), n_rows, Extent(*targets), Extent(*weights))


def run_of(rows: Rows, *, mean: bool) -> Run:
    """A run of valid rows; `mean`: only sums are stored."""
    x, targets = rows.scores.astype(np.float64, copy=False), rows.targets
    y: NDArray[Any] = targets if mean and targets.dtype == np.int64 else targets.astype(np.float64, copy=False)
    if not mean:
        raw = RawRows(*(np.array(column) for column in (x, y, rows.weights)))
        return Run(raw, len(x), rows.targets_extent, rows.weights_extent)
    extents = rows.targets_extent if are_doubles(rows) else _widened(rows.targets_extent), rows.weights_extent
    x, y, w = in_score_order(rows._replace(scores=x, targets=y))[:3]
    scale = scale_of(*extents, len(x))
    return Run(_filled(len(x), len(x), scale, _score_sums.sum_rows, x, y, w), len(x), *extents)


def are_doubles(rows: Rows) -> bool:
    """Whether float64 holds the targets exactly."""
    extent = rows.targets_extent
    return rows.targets.dtype != np.int64 or max(-extent.lowest, extent.highest) < _EXACT


def _widened(extent: Extent) -> Extent:
    """An extent that contains large integers although its limits are rounded."""
    low, high = np.nextafter((extent.lowest, extent.highest), (-np.inf, np.inf))
    return extent._replace(lowest=min(math.floor(low), -_EXACT), highest=max(math.ceil(high), _EXACT))


def _filled(n: int, n_pools: int, scale: Scale, kernel: Any, *given: Any) -> ScoreSums:
    """At most so many sums, computed by a kernel; memory that is never touched costs nothing."""
    words = np.empty((n_pools, scale.s_words + scale.w_words), dtype=np.uint64)
    w, rows = np.empty(n, dtype=np.int64), np.empty(n_pools, dtype=np.int64)
    room = ScoreSums(np.empty(n), np.empty(n), w, rows, words)
    n, n_pools = kernel(*given, scale, room)
    for column, size in zip(room, (n, n, n, n_pools, n_pools), strict=True):
        column.resize((size, *column.shape[1:]), refcheck=False)
    return room


def pushed(stored: tuple[Run, ...], run: Run) -> tuple[Run, ...]:
    """The stored runs and another; the last are merged until each is at least GROWTH times as large as the next."""
    return _merge_last((*stored, run), GROWTH)


def merged(*stored: Run) -> Run:
    """The rows of one run or more."""
    return _merge_last(stored, growth=math.inf)[0]


def _merge_last(stored: tuple[Run, ...], growth: float) -> tuple[Run, ...]:
    left = list(stored)
    while len(left) > 1 and left[-2].nbytes < growth * left[-1].nbytes:
        last = left.pop()
        left[-1] = _merged_pair(left[-1], last)
    return tuple(left)


def _merged_pair(a: Run, b: Run) -> Run:
    n_rows = a.n_rows + b.n_rows
    extents = joined_extent(a.targets, b.targets), joined_extent(a.weights, b.weights)
    if isinstance(a.columns, RawRows) or isinstance(b.columns, RawRows):
        weighted = len(a.columns.w) or len(b.columns.w)
        w = [run.columns.w if len(run.columns.w) or not weighted else np.ones(run.n_rows) for run in (a, b)]
        x, y = (np.concatenate(pair) for pair in zip(a.columns[:2], b.columns[:2], strict=True))
        return Run(RawRows(x, y, np.concatenate(w)), n_rows, *extents)
    scale, n_a, n_b = scale_of(*extents, n_rows), len(a.columns.x), len(b.columns.x)
    n_pools = len(a.columns.rows) + len(b.columns.rows) + min(n_a, n_b)
    given = a.columns, a.scale, b.columns, b.scale
    return Run(_filled(n_a + n_b, n_pools, scale, _score_sums.merge_entries, *given), n_rows, *extents)


def steps_of(run: Run, *, decreasing: bool, bounds: tuple[float, float]) -> Steps:
    """The staircase of sums."""
    assert isinstance(run.columns, ScoreSums)
    x, scale, n = run.columns.x, run.scale, len(run.columns.x)
    # room for the worst case: memory that is never touched costs nothing
    starts, values, weights = np.empty(n + 1, dtype=np.intp), np.empty(n), np.empty(n)
    counts, known = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.uint8)
    exact = np.empty(0 if scale.narrow else n * (scale.s_words + scale.w_words), dtype=np.uint64)
    n_steps = _score_sums.fit_entries(
        run.columns, scale, decreasing, *bounds, starts, values, weights, counts, known, exact
    )
    left, right = x[starts[:n_steps]], x[starts[1 : n_steps + 1] - 1]
    return Steps(left, right, values[:n_steps].copy(), weights[:n_steps].copy(), counts[:n_steps].copy())


def means_of(run: Run) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]:
    """The mean, the weight and the number of rows of each score."""
    assert isinstance(run.columns, ScoreSums)
    _, y, w, rows, words = run.columns
    means, weights, counts = y.copy(), w.view(np.float64).copy(), np.ones(len(y), dtype=np.int64)
    tally, pool = w < 0, w == 0
    weights[tally] = w[tally] & (2**_WEIGHT_BITS - 1)
    means[tally] = y.view(np.int64)[tally] / weights[tally]
    counts[tally] = w[tally] >> _WEIGHT_BITS & (2**31 - 1)
    means[pool], weights[pool] = means_of_words(words, run.scale)
    counts[pool] = rows
    return means, weights, counts


def means_of_words(words: NDArray[np.uint64], scale: Scale) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The means and the weights of exact sums (`_exact.pxd`), rounded once."""
    sums, weights = (_integers(part) for part in (words[:, : scale.s_words], words[:, scale.s_words :]))
    up, down = (max(sign * scale.y_unit, 0) for sign in (1, -1))
    means = [(s << up) / (w << down) for s, w in zip(sums, weights, strict=True)]
    up, down = (max(sign * scale.w_unit, 0) for sign in (1, -1))
    return np.array(means, dtype=np.float64), np.array([(w << up) / (1 << down) for w in weights], dtype=np.float64)


def _integers(words: NDArray[np.uint64]) -> list[int]:
    return [int.from_bytes(one.astype("<u8").tobytes(), "little", signed=True) for one in words]


def entries_of_tallies(x: Any, tally: NDArray[np.uint64], s: NDArray[np.int64]) -> ScoreSums:
    """Convert the columns that earlier versions saved for integers.

    Below bit 32, `tally` has the number of rows, above it the sum of weights, or without `s` the sum of targets.
    """
    rows, above = (tally & np.uint64(2**32 - 1)).view(np.int64), (tally >> np.uint64(32)).view(np.int64)
    w, s = (above, s) if len(s) else (rows.copy(), tally.view(np.int64) >> 32)
    pool = (rows >= 2**31) | (s >= 2**62) | (s <= -(2**62))
    words = np.column_stack((s[pool], w[pool])).view(np.uint64)
    entry = np.where(pool, 0, (rows << _WEIGHT_BITS | w).view(np.uint64) | np.uint64(2**63))
    return ScoreSums(x, np.where(pool, 0, s).view(np.float64), entry.view(np.int64), rows[pool], words)
