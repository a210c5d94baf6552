"""Gather the rows of each group and fit all groups, under losses that are minimised by the mean.

Rows of a group that are consecutive stay where they are.  Otherwise rows are first scattered into *parts*, ranges of
groups whose rows fit the cache, and the kernel sorts each part by group (_groups.pyx).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from staircase_fast import threads
from staircase_fast.arithmetic.exact import Scale
from staircase_fast.groups import _groups
from staircase_fast.groups.readers import NO_RANKS, GroupColumn
from staircase_fast.inputs.rows import NO_WEIGHTS, Columns
from staircase_fast.stack import survey
from staircase_fast.staircase.steps import Steps

_PART_ROWS = 8192  # rows of a part that fit the nearest caches
_MAX_PARTS = 512  # writing to more places at once is slow
_ROWS_AT_ONCE = 1 << 18  # some milliseconds of work between checks for signals
_MAX_COUNT = 1 << 31  # rows of one share, which uint32 counts
_LABEL_WORDS, _TARGET_WORDS, _WEIGHT_WORDS = _groups.ROW_WORDS


class NotLabels(Exception):  # noqa: N818  (not an error: the caller continues without the guess)
    """A score is NaN, or a target is not the label that it was taken for."""


class Groups(NamedTuple):
    """The group of each row as a number from 0 on; some numbers may have no rows."""

    numbers: NDArray[np.int32]
    sizes: NDArray[np.int64]  # rows of each group
    runs: int  # number of stretches of consecutive rows of one group
    shares: list[slice]  # of rows, one for each thread
    counts: list[NDArray[np.uint32]]  # rows of each group in each share


def number_rows(column: GroupColumn, n_threads: int) -> Groups:
    """Number the groups by the places of their keys."""
    n = len(column.numbers)
    numbers = np.empty(n, dtype=np.int32)
    shares = threads.parts(n, n_threads)
    shares = shares if n < _MAX_COUNT else threads.cut(n, max(len(shares), n // _MAX_COUNT + 1))

    def number(part: slice) -> NDArray[np.uint32]:
        counts = np.zeros(column.size, dtype=np.uint32)
        _groups.number_rows(column.numbers[part], column.low, column.ranks, numbers[part], counts)
        return counts

    counts = threads.each(number, shares)
    return Groups(numbers, np.sum(counts, axis=0, dtype=np.int64), column.runs, shares, counts)


def select_rows(groups: Groups, chosen: NDArray[np.bool_], n_threads: int) -> Groups:
    """The groups of the chosen rows."""
    numbers = groups.numbers[chosen]
    runs = int(np.count_nonzero(numbers[1:] != numbers[:-1])) + 1
    return number_rows(GroupColumn(numbers, 0, len(groups.sizes), runs, None, NO_RANKS), n_threads)


class Piece(NamedTuple):
    """Units that are fitted in one call."""

    first: int
    last: int
    rows: int
    is_large: bool  # one large group, fitted like the rows of `fit`


Options = tuple[bool, float, float]  # decreasing, and the bounds


class AdjacentRows:
    """Groups whose rows are consecutive in the columns.  A unit is a group."""

    def __init__(self, columns: Columns, begins: NDArray[np.int64], sizes: NDArray[np.int64], *, labels: bool) -> None:
        self.columns, self.begins, self.unit_rows, self.labels = columns, begins, sizes, labels
        self.n_groups = len(sizes)
        self.large = sizes >= survey.FEW_ROWS
        self.max_rows = self.part_rows = int(np.max(sizes, where=~self.large, initial=0))

    def group_of(self, unit: int) -> int:
        return unit

    def columns_of(self, unit: int) -> Columns:
        rows = slice(int(self.begins[unit]), int(self.begins[unit] + self.unit_rows[unit]))
        x, y, w = (column[rows] for column in self.columns)
        return x, y, w

    def fit(self, piece: Piece, scale: Scale, options: Options, work: Any, n_steps: Any, out: Any) -> int:
        return _groups.fit_adjacent(
            *self.columns, self.labels, self.begins, self.unit_rows, piece.first, piece.last, scale, *options,
            self.max_rows, work, n_steps, *out,
        )  # fmt: skip


class PartitionedRows:
    """Groups whose rows were copied into parts.  A unit is a part: several small groups, or a large one."""

    def __init__(self, rows: NDArray[np.uint32], sizes: NDArray[np.int64], parts: Parts) -> None:
        self.rows, self.parts, self.unit_rows, self.large = rows, parts, parts.rows, parts.large
        self.n_groups = len(sizes)
        self.starts = np.append(0, np.cumsum(sizes))
        self.places = np.empty(len(sizes), dtype=np.int64)
        self.max_rows = int(np.max(sizes, where=sizes < parts.min_large, initial=0))
        self.part_rows = int(np.max(parts.rows, where=~parts.large, initial=0))

    def group_of(self, unit: int) -> int:
        return int(self.parts.firsts[unit])

    def columns_of(self, unit: int) -> Columns:
        start = int(self.starts[self.group_of(unit)])
        rows = self.rows[start : start + int(self.unit_rows[unit])]
        doubles = rows[:, 1:].copy().view(np.float64)
        if rows.shape[1] == _LABEL_WORDS:
            return doubles[:, 0].copy(), (rows[:, 0] & 1).astype(np.uint8), NO_WEIGHTS
        w = doubles[:, 2].copy() if rows.shape[1] == _WEIGHT_WORDS else NO_WEIGHTS
        return doubles[:, 0].copy(), doubles[:, 1].copy(), w

    def fit(self, piece: Piece, scale: Scale, options: Options, work: Any, n_steps: Any, out: Any) -> int:
        return _groups.fit_partitioned(
            self.rows, self.starts, self.parts.firsts, piece.first, piece.last, scale, *options,
            self.max_rows, self.part_rows, work, self.places, n_steps, *out,
        )  # fmt: skip


class Parts(NamedTuple):
    """Ranges of groups whose rows are gathered together."""

    firsts: NDArray[np.int64]  # the first group of each part, and the number of groups
    part_of: NDArray[np.uint16]  # the part of each group
    rows: NDArray[np.int64]  # rows of each part
    large: NDArray[np.bool_]  # whether a part is one large group
    min_large: int  # rows that make a group large


def divide(sizes: NDArray[np.int64]) -> Parts:
    """Divide groups into parts of about the same size, and one for each large group."""
    part_rows = max(_PART_ROWS, int(sizes.sum()) // _MAX_PARTS)
    min_large = max(survey.FEW_ROWS, part_rows)
    large = sizes >= min_large
    new = _starts_of_parts(sizes, large, part_rows)
    firsts = np.flatnonzero(new)
    part_of = (np.cumsum(new) - 1).astype(np.uint16)
    rows = np.add.reduceat(sizes, firsts)
    return Parts(np.append(firsts, len(sizes)).astype(np.int64), part_of, rows, large[firsts], min_large)


def _starts_of_parts(rows: NDArray[np.int64], large: NDArray[np.bool_], part_rows: int) -> NDArray[np.bool_]:
    """Where to divide units so that parts have about `part_rows` rows, and large units are alone."""
    level = (np.cumsum(rows) - rows) // part_rows
    return np.append(True, (level[1:] != level[:-1]) | large[1:] | large[:-1])


def gather(columns: Columns, groups: Groups, *, labels: bool) -> AdjacentRows | PartitionedRows:
    """Make the rows of each group available to the kernels; raises NotLabels."""
    n_used = np.count_nonzero(groups.sizes)
    if groups.runs == n_used:
        begins = np.zeros(len(groups.sizes), dtype=np.int64)
        if _groups.find_begins(groups.numbers, begins) == n_used:  # otherwise the groups changed during the call
            return AdjacentRows(columns, begins, groups.sizes, labels=labels)
    parts = divide(groups.sizes)
    words = _LABEL_WORDS if labels else _WEIGHT_WORDS if len(columns[2]) else _TARGET_WORDS
    rows = np.empty((len(groups.numbers), words), dtype=np.uint32)
    # in each part, the rows of the first share come first, then those of the second, ..
    inside = np.array([np.add.reduceat(counts, parts.firsts[:-1], dtype=np.int64) for counts in groups.counts])
    places = np.cumsum(inside, axis=0) - inside + (np.cumsum(parts.rows) - parts.rows)
    own = dict(zip((share.start for share in groups.shares), places, strict=True))

    def scatter(part: slice) -> bool:
        x, y, w = (column[part] for column in columns)
        return _groups.scatter(x, y, w, groups.numbers[part], parts.part_of, own[part.start], rows)

    if not all(threads.each(scatter, groups.shares)):
        raise NotLabels
    return PartitionedRows(rows, groups.sizes, parts)


class Fitted(NamedTuple):
    """The steps of all groups, one group after the other."""

    n_steps: NDArray[np.int64]  # of each group; 0 if it has no rows
    steps: Steps


def fit_all(
    source: AdjacentRows | PartitionedRows,
    scale: Scale,
    *,
    decreasing: bool,
    bounds: tuple[float, float],
    n_threads: int,
    fit_large: Callable[[Columns, int], Any],
) -> Fitted:
    """The staircases of all groups; `fit_large(columns, n_threads)` fits a large one.  Raises NotLabels."""
    n_words = 0 if scale.narrow else scale.s_words + scale.w_words
    n_steps = np.zeros(source.n_groups, dtype=np.int64)
    found: dict[int, tuple[NDArray[Any], ...]] = {}
    pieces = _divide_work(source, n_threads)
    small, large = ([piece for piece in pieces if piece.is_large == is_large] for is_large in (False, True))

    def fit_small_pieces(part: slice) -> None:
        work = np.empty(_groups.work_size(source.max_rows, source.part_rows, n_words), dtype=np.uint64)
        room = max(piece.rows for piece in small)
        out = tuple(np.empty(room, dtype=np.int64 if name == "counts" else np.float64) for name in Steps._fields[:5])
        for piece in small[part]:
            n = source.fit(piece, scale, (decreasing, *bounds), work, n_steps, out)
            if n < 0:
                raise NotLabels
            found[piece.first] = tuple(column[:n].copy() for column in out)

    if small:
        threads.each(fit_small_pieces, _shares(np.cumsum([piece.rows for piece in small]), n_threads))
    # few large groups are fitted one after the other, each with all threads
    shares = threads.cut(len(large), n_threads if len(large) >= 2 * n_threads else 1)

    def fit_large_pieces(part: slice) -> None:
        for piece in large[part]:
            stairs = fit_large(source.columns_of(piece.first), n_threads if len(shares) == 1 else 1)
            found[piece.first] = stairs.left, stairs.right, stairs.values, stairs.weights, stairs.counts
            n_steps[source.group_of(piece.first)] = stairs.n_steps

    threads.each(fit_large_pieces, shares)
    return Fitted(n_steps, Steps(*map(np.concatenate, zip(*(found[piece.first] for piece in pieces), strict=True))))


def _divide_work(source: AdjacentRows | PartitionedRows, n_threads: int) -> list[Piece]:
    """Divide units into pieces that are not too large for one call; each large unit is a piece of its own."""
    rows, large = source.unit_rows, source.large
    at_once = max(1, min(_ROWS_AT_ONCE, int(rows.sum()) // (4 * n_threads)))
    firsts = np.flatnonzero(_starts_of_parts(rows, large, at_once))
    lasts = np.append(firsts[1:], len(rows))
    columns = (column.tolist() for column in (firsts, lasts, np.add.reduceat(rows, firsts), large[firsts]))
    return [Piece(*piece) for piece in zip(*columns, strict=True)]


def _shares(ends: NDArray[np.int64], n_threads: int) -> list[slice]:
    """The pieces of each thread, with about the same number of rows; `ends` are their cumulative rows."""
    n_parts = len(threads.parts(int(ends[-1]), n_threads))
    borders = np.searchsorted(ends, [int(ends[-1]) * part // n_parts for part in range(1, n_parts)], side="right")
    return [slice(*pair) for pair in itertools.pairwise([0, *borders.tolist(), len(ends)])]


def choose(one: Fitted, other: Fitted, first: NDArray[np.bool_]) -> Fitted:
    """The steps of each group from the first fit if `first`, otherwise from the other."""
    n_steps = np.where(first, one.n_steps, other.n_steps)
    index, begins, from_one = np.arange(n_steps.sum()), np.cumsum(n_steps) - n_steps, np.repeat(first, n_steps)
    columns: list[Any] = [np.empty_like(column, shape=len(index)) for column in one.steps[:5]]
    for fitted, taken in ((one, from_one), (other, ~from_one)):
        shift = np.repeat(np.cumsum(fitted.n_steps) - fitted.n_steps - begins, n_steps)
        for column, source in zip(columns, fitted.steps[:5], strict=True):
            column[taken] = source[(index + shift)[taken]]
    return Fitted(n_steps, Steps(*columns))
