"""The blocks of rows that arrive in score order, for each kind of loss that has an update rule (section V).

Each class keeps the blocks of all rows but those of the newest score, and these apart: more of them may come.  None
keeps rows.  Whatever is changed is changed by a single assignment or a single call of a kernel, so that a signal finds
the rows of a call either all there or not at all.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from staircase_fast.arithmetic import _scan
from staircase_fast.arithmetic.exact import Extent, Scale, joined_extent, scale_of
from staircase_fast.bisection.closed_forms import rates_of
from staircase_fast.inputs.columns import Column
from staircase_fast.losses import Linex, Loss, PoissonDeviance, UpdateRule
from staircase_fast.stack import update_rule
from staircase_fast.staircase.steps import Steps
from staircase_fast.streams import _online, checks
from staircase_fast.streams.checks import Arrivals

Waiting = list[tuple[float, float, float]]

_SPARE = 2048  # blocks there is room for before arrays must grow
_READABLE = (np.float64, np.uint8, np.int64)
_TICKS = 2**1074  # every float is a multiple of 1 / _TICKS


class Keeper(Protocol):
    """What is known of the rows so far."""

    @property
    def n_rows(self) -> int:
        """How many there are."""

    @property
    def newest(self) -> float:
        """The greatest score; -inf where there is none."""

    @property
    def total_weight(self) -> float:
        """About the sum of their weights."""

    def extend(self, rows: Arrivals, waiting: Waiting) -> None:
        """Take rows, and empty the list of those that wait."""

    def steps(self) -> Steps:
        """The staircase of all rows; there are some."""

    def copied(self) -> Self:
        """The same, which changes by itself."""


def keeper_for(loss: Loss, *, decreasing: bool) -> Keeper:
    """What keeps the blocks of such a loss."""
    if isinstance(loss, UpdateRule):
        return RuleBlocks(loss, decreasing=decreasing)
    if isinstance(loss, Linex) and not np.ndim(loss.shape):
        return LinexBlocks(loss, decreasing=decreasing)
    if not np.ndim(loss.exposure) if isinstance(loss, PoissonDeviance) else loss.is_mean:
        return MeanBlocks(loss, decreasing=decreasing)
    return checks.no_update_rule(loss)


class Sums(NamedTuple):
    """The arrays of `_online.pyx`, and the scale of their sums."""

    scale: Scale
    targets: Extent  # of all rows
    weights: Extent
    size: NDArray[np.intp]
    starts: NDArray[np.intp]
    s: NDArray[np.float64]
    w: NDArray[np.float64]
    left: NDArray[np.float64]
    right: NDArray[np.float64]
    known: NDArray[np.uint8]
    words: NDArray[np.uint64]  # a row per block; none where the scale is narrow

    def resized(self, room: int, used: int) -> Sums:
        """The same with room for so many blocks."""
        return Sums._make((*self[:4], *(_resized(column, room, used) for column in self[4:])))


def _resized(column: Column, room: int, used: int) -> Column:
    grown = np.empty((room, *column.shape[1:]), dtype=column.dtype)
    grown[:used] = column[:used]
    return grown


class MeanBlocks:
    """Where a step is a mean: exact sums, so that the result is that of a batch, bit for bit."""

    def __init__(self, loss: Loss, *, decreasing: bool) -> None:
        self._decreasing = decreasing
        self._limits = loss.value_range
        self._exposure = float(loss.exposure) if isinstance(loss, PoissonDeviance) else 1.0
        self.sums: Sums | None = None

    @property
    def n_rows(self) -> int:
        return 0 if self.sums is None else int(self.sums.size[1])

    @property
    def newest(self) -> float:
        return -math.inf if self.sums is None else float(self.sums.left[self.sums.size[0]])

    @property
    def total_weight(self) -> float:
        return 0.0 if self.sums is None else float(self.steps().weights.sum())

    def extend(self, rows: Arrivals, waiting: Waiting) -> None:
        sums = self.sums = self._ready_for(rows)
        n = min(len(rows.scores), _online.MOST_ROWS)
        work = _online.work_size(n, 0 if sums.scale.narrow else sums.words.shape[1])
        y = rows.targets if rows.targets.dtype in _READABLE else rows.targets.astype(np.float64)
        _online.extend(
            rows.scores.astype(np.float64, copy=False), y, rows.weights, sums.scale, self._decreasing, *sums[3:10],
            sums.words.reshape(-1), np.empty(n, dtype=np.intp), np.empty((2, n)), np.empty(work, dtype=np.uint64),
            waiting,
        )  # fmt: skip
        used = int(sums.size[0]) + 1
        if len(sums.starts) > 4 * (used + _SPARE):
            self.sums = sums.resized(2 * used + _SPARE, used)

    def _ready_for(self, rows: Arrivals) -> Sums:
        """The sums so far, in a scale that suits these rows as well, and with room for their blocks."""
        n, sums = len(rows.scores), self.sums
        if sums is None:
            scale = scale_for(rows.targets_extent, rows.weights_extent, n)
            sums = empty_sums(scale, rows.targets_extent, rows.weights_extent)
        targets, weights = (
            joined_extent(old, new)
            for old, new in ((sums.targets, rows.targets_extent), (sums.weights, rows.weights_extent))
        )
        scale = scale_for(targets, weights, self.n_rows + n)
        if not scale.narrow and scale.cut == 0:
            own = scale_of(rows.targets_extent, rows.weights_extent, n)
            scale = scale._replace(cut=own.cut, cut_error=own.cut_error, cut_weight=own.cut_weight)
        sums = _rescaled(sums, scale)._replace(targets=targets, weights=weights)
        used = int(sums.size[0]) + 1
        room = used + n + 1
        return sums if room <= len(sums.starts) else sums.resized(max(room, used + used // 2 + _SPARE), used)

    def steps(self) -> Steps:
        assert self.sums is not None
        sums, used = self.sums, int(self.sums.size[0]) + 1
        columns: list[Column] = [sums.starts, sums.s, sums.w, sums.known, sums.words]
        starts, s, w, known, words = (column[:used].copy() for column in columns)
        n = _online.steps(
            sums.scale, self._decreasing, *self._limits, self.n_rows, starts, s, w, known, words.reshape(-1)
        )
        steps = _steps_of(
            sums.starts[:used], sums.left, sums.right, self.n_rows, starts[:n], s[:n].copy(), w[:n].copy()
        )
        return steps if self._exposure == 1 else self._rates(sums, steps)

    def _rates(self, sums: Sums, steps: Steps) -> Steps:
        """Steps whose values are divided by the exposure; two that become equal are one."""
        rates = rates_of(steps.values, self._exposure)
        first = np.flatnonzero(np.append(True, rates[1:] != rates[:-1]))
        if len(first) == len(rates):
            return steps._replace(values=rates)
        used = int(sums.size[0]) + 1
        starts = np.cumsum(np.append(0, steps.counts[:-1]))[first]
        places = np.append(np.searchsorted(sums.starts[:used], starts), used)
        weights = [
            float(sum(weights_of(sums, slice(a, b))) * Fraction(2) ** sums.scale.w_unit)
            for a, b in zip(places[:-1].tolist(), places[1:].tolist(), strict=True)
        ]
        return _steps_of(
            sums.starts[:used], sums.left, sums.right, self.n_rows, starts, rates[first], np.array(weights)
        )

    def copied(self) -> MeanBlocks:
        other = MeanBlocks.__new__(MeanBlocks)
        vars(other).update(vars(self))
        if self.sums is not None:
            used = int(self.sums.size[0]) + 1
            other.sums = self.sums.resized(used, used)._replace(size=self.sums.size.copy())
        return other


def scale_for(targets: Extent, weights: Extent, n: int) -> Scale:
    """The scale of sums of n rows and many more."""
    return Scale(*_scan.roomy_scale_of(targets, weights, n))


def empty_sums(scale: Scale, targets: Extent, weights: Extent) -> Sums:
    """Those of no rows."""
    s, w, left, right = np.zeros((4, 1))
    known, words = np.ones(1, dtype=np.uint8), np.zeros((1, _n_words(scale)), dtype=np.uint64)
    size, starts = np.zeros(2, dtype=np.intp), np.zeros(1, dtype=np.intp)
    return Sums(scale, targets, weights, size, starts, s, w, left, right, known, words)


def sums_from(
    scale: Scale,
    targets: Extent,
    weights: Extent,
    left: NDArray[np.float64],
    right: NDArray[np.float64],
    counts: list[int],
    s: list[int],
    w: list[int],
) -> Sums:
    """Blocks, the newest observation last, with these exact sums in units of the scale."""
    n = len(counts)
    starts = np.cumsum([0, *counts]).astype(np.intp)
    sums = empty_sums(scale, targets, weights).resized(n, 0)
    sums.size[:] = n - 1, starts[-1]
    sums.starts[:], sums.left[:], sums.right[:], sums.known[:] = starts[:-1], left, right, True
    if scale.narrow:
        sums.s.view(np.int64)[:], sums.w.view(np.int64)[:] = s, w
        return sums
    for block in range(n):
        parts = (s[block], scale.s_words, True), (w[block], scale.w_words, False)
        raw = b"".join(number.to_bytes(8 * n_words, "little", signed=signed) for number, n_words, signed in parts)
        sums.words[block] = np.frombuffer(raw, dtype="<u8")
        sums.s[block], sums.w[block] = (
            float(number * Fraction(2) ** unit) if scale.tame else 0.0
            for number, unit in ((s[block], scale.y_unit + scale.w_unit), (w[block], scale.w_unit))
        )
    return sums


def _n_words(scale: Scale) -> int:
    return 0 if scale.narrow else scale.s_words + scale.w_words


def _rescaled(sums: Sums, scale: Scale) -> Sums:
    """The same sums in a scale whose units are as fine, and whose words are as many, or more."""
    old = sums.scale
    same_words = _n_words(scale) == _n_words(old) and scale[:2] == old[:2]
    if scale.narrow or (same_words and (old.tame or not scale.tame)):
        return sums._replace(scale=scale)
    used, room = int(sums.size[0]) + 1, len(sums.starts)
    s, w = _resized(sums.s, room, used), _resized(sums.w, room, used)
    words = np.empty((room, _n_words(scale)), dtype=np.uint64)
    _online.rescale(old, scale, sums.words[:used].reshape(-1), s[:used], w[:used], words[:used].reshape(-1))
    known = np.ones(room, dtype=np.uint8)  # as all are between batches; narrow sums leave it as they find it
    return sums._replace(scale=scale, s=s, w=w, known=known, words=words)


def weights_of(sums: Sums, blocks: slice) -> list[int]:
    """The exact weights of blocks, in units of the scale."""
    if sums.scale.narrow:
        return [int(w) for w in sums.w[blocks].view(np.int64)]
    return [_integer(row) for row in sums.words[blocks, sums.scale.s_words :]]


def sums_of(sums: Sums, blocks: slice) -> list[int]:
    """The exact sums of weighted targets, in units of the scale."""
    if sums.scale.narrow:
        return [int(s) for s in sums.s[blocks].view(np.int64)]
    return [_integer(row, signed=True) for row in sums.words[blocks, : sums.scale.s_words]]


def _integer(words: NDArray[np.uint64], *, signed: bool = False) -> int:
    return int.from_bytes(words.astype("<u8").tobytes(), "little", signed=signed)


def _steps_of(
    block_starts: NDArray[np.intp],
    left: NDArray[np.float64],
    right: NDArray[np.float64],
    n_rows: int,
    starts: NDArray[np.intp],
    values: NDArray[np.float64],
    weights: NDArray[np.float64],
) -> Steps:
    """Steps, each of some blocks side by side, with their ends."""
    first = np.searchsorted(block_starts, starts)
    last = np.append(first[1:], len(block_starts)) - 1
    counts = np.diff(starts, append=n_rows).astype(np.int64)
    return Steps(left[first], right[last], values, weights, counts)


class LinexBlocks:
    """Linex: of each block its value and its weight, in twice the precision of a double."""

    def __init__(self, loss: Linex, *, decreasing: bool) -> None:
        self._shape, self._decreasing = float(loss.shape), decreasing
        self.size = np.zeros(2, dtype=np.intp)
        # how many rows there are before each block, its value and weight, its first and its last score
        self.columns: tuple[Column, ...] = np.zeros(1, dtype=np.intp), np.empty((1, 4)), np.empty(1), np.empty(1)

    @property
    def n_rows(self) -> int:
        return int(self.size[1])

    @property
    def newest(self) -> float:
        return float(self.columns[2][self.size[0]]) if self.n_rows else -math.inf

    @property
    def total_weight(self) -> float:
        return float(self.columns[1][: self.size[0] + 1, 2].sum()) if self.n_rows else 0.0

    def extend(self, rows: Arrivals, waiting: Waiting) -> None:
        used = int(self.size[0]) + 1
        room = used + len(rows.scores) + 1
        if room > len(self.columns[0]):
            room = max(room, used + used // 2 + _SPARE)
            self.columns = tuple(_resized(column, room, used) for column in self.columns)
        x, y = (column.astype(np.float64, copy=False) for column in (rows.scores, rows.targets))
        starts, blocks, left, right = self.columns
        _online.extend_linex(
            x, y, rows.weights, self._shape, self._decreasing, self.size, starts, blocks, left, right, waiting
        )
        used = int(self.size[0]) + 1
        if len(self.columns[0]) > 4 * (used + _SPARE):
            self.columns = tuple(_resized(column, 2 * used + _SPARE, used) for column in self.columns)

    def steps(self) -> Steps:
        used = int(self.size[0]) + 1
        block_starts, blocks, left, right = (column[:used] for column in self.columns)
        starts, values, weights = block_starts.copy(), np.empty(used), np.empty(used)
        n = _online.linex_steps(self._shape, self._decreasing, starts, blocks.copy(), values, weights)
        return _steps_of(block_starts, left, right, self.n_rows, starts[:n], values[:n].copy(), weights[:n].copy())

    def copied(self) -> LinexBlocks:
        other = LinexBlocks.__new__(LinexBlocks)
        vars(other).update(vars(self))
        used = int(self.size[0]) + 1
        other.size = self.size.copy()
        other.columns = tuple(_resized(column, used, used) for column in self.columns)
        return other


class _Mark(NamedTuple):
    """Between two rows: how many are before it, their weight, and the score of the next or of the last one."""

    rows: int
    ticks: int
    score: float


class _Rows(NamedTuple):
    """What is known of rows under an update rule; never changed."""

    stack: update_rule.Stack | None
    first: _Mark  # of the newest score
    tied: tuple[tuple[float, float], ...]  # targets and weights of the newest score, which the rule sees in order
    last: _Mark


_NO_ROWS = _Rows(None, _Mark(0, 0, -math.inf), (), _Mark(0, 0, -math.inf))


class RuleBlocks:
    """A user's rule: rows of the newest score are kept until a greater one comes."""

    def __init__(self, loss: UpdateRule, *, decreasing: bool) -> None:
        self._loss, self._decreasing = loss, decreasing
        self._rows = _NO_ROWS

    @property
    def n_rows(self) -> int:
        return self._rows.last.rows

    @property
    def newest(self) -> float:
        return self._rows.last.score

    @property
    def total_weight(self) -> float:
        return self._rows.last.ticks / _TICKS

    def extend(self, rows: Arrivals, waiting: Waiting) -> None:
        x, y = (rows.scores + 0.0).tolist(), rows.targets.astype(np.float64).tolist()
        w = rows.weights.tolist() or [1.0] * len(x)
        stack, first, tied, last = self._rows
        newest = list(tied)
        for score, target, weight in zip(x, y, w, strict=True):
            if not newest or score > last.score:
                if newest:
                    stack = self._pushed(stack, first, newest, last)
                first, newest = last._replace(score=score), []
            newest.append((target, weight))
            last = _Mark(last.rows + 1, last.ticks + _ticks(weight), score)
        self._pushed(stack, first, newest, last)  # so that the rule is asked before rows are taken for good
        self._rows = _Rows(stack, first, tuple(newest), last)
        waiting.clear()

    def _pushed(
        self, stack: update_rule.Stack | None, first: _Mark, tied: list[tuple[float, float]], last: _Mark
    ) -> update_rule.Stack:
        block = update_rule.observation(self._loss, first, last, tied, decreasing=self._decreasing)
        return update_rule.pushed(self._loss, stack, block, decreasing=self._decreasing)

    def steps(self) -> Steps:
        stack, first, tied, last = self._rows
        found = update_rule.blocks(self._pushed(stack, first, list(tied), last))
        columns = [
            (block.first.score, block.last.score, block.value, (block.last.ticks - block.first.ticks) / _TICKS)
            for block in found
        ]
        counts = np.array([block.last.rows - block.first.rows for block in found], dtype=np.int64)
        left, right, values, weights = (np.array(column) + 0.0 for column in zip(*columns, strict=True))
        return Steps(left, right, values, weights, counts)

    def copied(self) -> RuleBlocks:
        other = RuleBlocks.__new__(RuleBlocks)
        vars(other).update(vars(self))
        return other


def _ticks(weight: float) -> int:
    numerator, denominator = weight.as_integer_ratio()
    return numerator * (_TICKS // denominator)
