"""What is kept of rows that come bit by bit, and how two such runs of rows become one.

Where a step is a mean, only the sums of each score count.  What holds them depends on the rows of a run alone, on their
number and the extents of their columns, so that a run never takes more than it needs.  Two runs are brought into the
form that both need together, and joined.  Sums are exact in every form: the order of joins does not matter.

    Tallies     16 bytes per score: integer targets without weights; 24 bytes: with integer weights (`_tallies.pyx`)
    Sums        24 bytes per score that was seen once; what was seen more often has exact sums beside (`_sums.pyx`)
    Kept        the rows as they came, 16 or 24 bytes each: for losses that are not least at the mean
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from staircase_fast.arithmetic.exact import Extent, Scale, joined_extent, scale_of
from staircase_fast.errors import InvalidInputError
from staircase_fast.losses import Loss
from staircase_fast.losses.rows import Rows
from staircase_fast.stack import _finish
from staircase_fast.stack.sorting import in_score_order
from staircase_fast.staircase.steps import Steps
from staircase_fast.streams import _sums, _tallies

_HALF = 32  # bits of a counter
_MOST = 2.0**_HALF
_EXACT = 2**53  # up to here, every integer is a double


class Tallies(NamedTuple):
    """Sums of small integers."""

    x: NDArray[np.float64]
    tally: NDArray[np.uint64]
    s: NDArray[np.int64]  # or empty


class Sums(NamedTuple):
    """Sums of any numbers."""

    x: NDArray[np.float64]
    y: NDArray[np.float64]
    w: NDArray[np.float64]
    rows: NDArray[np.int64]
    words: NDArray[np.uint64]


class Kept(NamedTuple):
    """Rows themselves."""

    x: NDArray[np.float64]
    y: NDArray[np.float64]
    w: NDArray[np.float64]  # or empty: all are 1


class Run(NamedTuple):
    """Some rows, at least one."""

    columns: Tallies | Sums | Kept
    n_rows: int
    targets: Extent
    weights: Extent

    @property
    def scale(self) -> Scale:
        """That of its sums."""
        return scale_of(self.targets, self.weights, self.n_rows)

    @property
    def nbytes(self) -> int:
        """What its columns take."""
        return sum(column.nbytes for column in self.columns)


class Form(NamedTuple):
    """What holds the sums of a run."""

    tallied: bool
    summed: bool  # tallies have their sums in a column of their own


def form_of(targets: Extent, weights: Extent, n_rows: int) -> Form:
    """The shortest form for so many rows of these extents."""
    scale = scale_of(targets, weights, n_rows)
    unit = weights.lowest == weights.highest == 1
    tallied = scale.narrow and n_rows * weights.highest < _MOST
    return Form(tallied, not (unit and n_rows * scale.greatest < _MOST / 2))


def check_scalar_parameters(loss: Loss) -> None:
    """Parameters per row are invalid here: the rows are not known in advance."""
    if loss.parameter and np.ndim(getattr(loss, loss.parameter)):
        found = f"got {len(loss.parameters)} of them"
        raise InvalidInputError(loss.parameter, "of the loss must be a number, the same for all rows", found=found)
    for place, arg in enumerate(getattr(loss, "args", ())):
        if np.ndim(arg):
            found = f"entry {place} has {len(arg)} of them"
            raise InvalidInputError("args", "of the loss must be numbers, the same for all rows", found=found)


def run_of(rows: Rows, *, mean: bool) -> Run:
    """A run of clean rows; `mean`: only sums are kept."""
    x, targets = rows.scores.astype(np.float64, copy=False), rows.targets
    y: NDArray[Any] = targets if mean and targets.dtype == np.int64 else targets.astype(np.float64, copy=False)
    if not mean:
        kept = Kept(*(np.array(column) for column in (x, y, rows.weights)))
        return Run(kept, len(x), rows.targets_extent, rows.weights_extent)
    extents = rows.targets_extent if are_doubles(rows) else _outside(rows.targets_extent), rows.weights_extent
    x, y, w = in_score_order(rows._replace(scores=x, targets=y))[:3]
    form = form_of(*extents, len(x))
    columns = _tallied(x, y, w, summed=form.summed) if form.tallied else _summed(x, y, w, scale_of(*extents, len(x)))
    return Run(columns, len(x), *extents)


def are_doubles(rows: Rows) -> bool:
    """Whether float64 holds the targets."""
    extent = rows.targets_extent
    return rows.targets.dtype != np.int64 or max(-extent.lowest, extent.highest) < _EXACT


def _outside(extent: Extent) -> Extent:
    """An extent whose limits are not rounded to the inside, as those of large integers may be."""
    low, high = np.nextafter((extent.lowest, extent.highest), (-np.inf, np.inf))
    return extent._replace(lowest=min(math.floor(low), -_EXACT), highest=max(math.ceil(high), _EXACT))


def _tallied(
    scores: NDArray[np.float64], targets: NDArray[Any], weights: NDArray[np.float64], *, summed: bool
) -> Tallies:
    found = _room(len(scores), summed=summed)
    n = _tallies.tally_rows(scores, targets, weights if summed else weights[:0], *found)
    return Tallies(*_shortened(found, n))


def _room(n: int, *, summed: bool) -> Tallies:
    return Tallies(np.empty(n), np.empty(n, dtype=np.uint64), np.empty(n if summed else 0, dtype=np.int64))


def _shortened(columns: tuple[NDArray[Any], ...], n: int) -> tuple[NDArray[Any], ...]:
    """The first n entries of our own columns; the rest is given back."""
    for column in columns:
        if len(column) > n:
            column.resize((n, *column.shape[1:]), refcheck=False)
    return columns


def _summed(scores: NDArray[np.float64], targets: NDArray[Any], weights: NDArray[np.float64], scale: Scale) -> Sums:
    n, n_pools = _sums.count_pools(scores, targets)
    found = _room_for_sums(n, n_pools, scale)
    n, n_pools = _sums.sum_rows(scores, targets, weights, scale, *found)
    return Sums(*_shortened(found[:3], n), *_shortened(found[3:], n_pools))


def _room_for_sums(n: int, n_pools: int, scale: Scale) -> Sums:
    words = np.empty((n_pools, scale.s_words + scale.w_words), dtype=np.uint64)
    return Sums(np.empty(n), np.empty(n), np.empty(n), np.empty(n_pools, dtype=np.int64), words)


def joined(a: Run, b: Run) -> Run:
    """The rows of both."""
    n_rows, targets, weights = (
        a.n_rows + b.n_rows,
        joined_extent(a.targets, b.targets),
        joined_extent(a.weights, b.weights),
    )
    if isinstance(a.columns, Kept) and isinstance(b.columns, Kept):
        return Run(_both_kept(a.columns, b.columns), n_rows, targets, weights)
    form = form_of(targets, weights, n_rows)
    if form.tallied:
        ours, theirs = (_as_tallies(run.columns, summed=form.summed) for run in (a, b))
        room = _room(len(ours.x) + len(theirs.x), summed=form.summed)
        n = _tallies.join_tallies(*ours, *theirs, *room)
        return Run(Tallies(*_shortened(room, n)), n_rows, targets, weights)
    left, right = (_as_sums(run.columns) for run in (a, b))
    scale = scale_of(targets, weights, n_rows)
    most_pools = len(left.rows) + len(right.rows) + min(len(left.x), len(right.x))
    found = _room_for_sums(len(left.x) + len(right.x), most_pools, scale)
    n, n_pools = _sums.join_sums(*left, a.scale, *right, b.scale, scale, *found)
    return Run(Sums(*_shortened(found[:3], n), *_shortened(found[3:], n_pools)), n_rows, targets, weights)


def _both_kept(a: Kept, b: Kept) -> Kept:
    weighted = len(a.w) or len(b.w)
    w = [one.w if len(one.w) or not weighted else np.ones(len(one.x)) for one in (a, b)]
    return Kept(np.concatenate((a.x, b.x)), np.concatenate((a.y, b.y)), np.concatenate(w))


def _as_tallies(columns: Tallies | Sums | Kept, *, summed: bool) -> Tallies:
    """Tallies with sums in a column of their own, if they shall have it."""
    assert isinstance(columns, Tallies)  # who has more rows needs no shorter form
    if not summed or len(columns.s):
        return columns
    rows, w, s = parts_of(columns)
    return Tallies(columns.x, (w << _HALF | rows).view(np.uint64), s)


def _as_sums(columns: Tallies | Sums | Kept) -> Sums:
    if isinstance(columns, Sums):
        return columns
    assert isinstance(columns, Tallies)
    rows, w, s = parts_of(columns)
    y = s // np.maximum(w, 1)
    pooled = (rows > 1) | (np.abs(y) > _EXACT) | (w == 0)  # 0 only if weights changed while they were added
    words = np.column_stack((s[pooled], w[pooled])).view(np.uint64)
    y[pooled] = w[pooled] = 0
    return Sums(columns.x, y.astype(np.float64), w.astype(np.float64), rows[pooled], words)


@np.errstate(over="ignore")
def weight_of(run: Run) -> float:
    """The weight of all rows, but for rounding; inf if it is too large."""
    columns = run.columns
    if isinstance(columns, Tallies):
        return float(parts_of(columns)[1].sum())
    weight = float(columns.w.sum()) if len(columns.w) else float(run.n_rows)
    if isinstance(columns, Sums):
        words = columns.words[:, run.scale.s_words :].sum(axis=0, dtype=np.float64)
        weight += float(np.ldexp(words, run.scale.w_unit + 64 * np.arange(len(words))).sum())
    return weight


def parts_of(tallies: Tallies) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """The rows of each score, and the sums of their weights and of their weighted targets."""
    rows, above = tallies.tally & np.uint64(_MOST - 1), tallies.tally >> np.uint64(_HALF)
    if len(tallies.s):
        return rows.view(np.int64), above.view(np.int64), tallies.s
    return rows.view(np.int64), rows.astype(np.int64), tallies.tally.view(np.int64) >> _HALF


def n_scores(run: Run) -> int:
    """How many scores differ."""
    return len(np.unique(run.columns.x) if isinstance(run.columns, Kept) else run.columns.x)


def steps_of(run: Run, *, decreasing: bool, bounds: tuple[float, float]) -> Steps:
    """The staircase of sums."""
    columns, scale = run.columns, run.scale
    n = len(columns.x)
    # room for the worst case: what is never touched costs nothing
    starts, values, weights = np.empty(n + 1, dtype=np.intp), np.empty(n), np.empty(n)
    if isinstance(columns, Tallies):
        n_steps = _tallies.fit_tallies(*columns, scale, decreasing, *bounds, starts, values, weights)
        counts = np.empty(n_steps, dtype=np.int64)
        _tallies.count_rows(columns.tally, starts[: n_steps + 1], counts)
    else:
        assert isinstance(columns, Sums)
        pools = np.flatnonzero(columns.w == 0)
        pool = np.full(n, -1, dtype=np.intp)
        pool[pools] = np.arange(len(pools))
        words = np.empty(0 if scale.narrow else n * columns.words.shape[1], dtype=np.uint64)
        untied, known = np.zeros(n, dtype=np.uint8), np.empty(n, dtype=np.uint8)
        n_steps = _finish.merge_items(
            columns.y, columns.w, untied, pool, columns.words, scale, decreasing, *bounds,
            starts, values, weights, known, words,
        )  # fmt: skip
        starts[n_steps] = n
        counts = np.diff(starts[: n_steps + 1]).astype(np.int64)
        np.add.at(counts, np.searchsorted(starts[:n_steps], pools, side="right") - 1, columns.rows - 1)
    left, right = columns.x[starts[:n_steps]], columns.x[starts[1 : n_steps + 1] - 1]
    return Steps(left, right, values[:n_steps].copy(), weights[:n_steps].copy(), counts)
