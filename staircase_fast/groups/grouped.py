"""Gather the rows of each group and fit all groups, under losses that are minimised by the mean.

Groups are fitted in *parts*.  If the rows of each group are adjacent, each group is a part, and its rows are not moved.
Otherwise rows are first scattered into parts that fit the cache, and the kernel sorts each part by group (_groups.pyx).
A large group is a part of its own, and is fitted like the rows of `fit`.
"""

from __future__ import annotations

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
from staircase_fast.staircase.result import Staircase
from staircase_fast.staircase.steps import Steps

_PART_ROWS = 8192  # rows of a part that fit the nearest caches
_MAX_PARTS = 512  # writing to more places at once is slow
_ROWS_AT_ONCE = 1 << 18  # some milliseconds of work between checks for signals
_MAX_COUNT = 1 << 31  # rows of one share, which uint32 counts
_LABEL_WORDS, _TARGET_WORDS, _WEIGHT_WORDS = _groups.ROW_WORDS


class Groups(NamedTuple):
    """The group of each row as a number from 0 on; some numbers may have no rows."""

    numbers: NDArray[np.int32]
    sizes: NDArray[np.int64]  # rows of each group
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
    return Groups(numbers, np.sum(counts, axis=0, dtype=np.int64), shares, counts)


def order_of(groups: Groups) -> NDArray[np.intp]:
    """Rows by group, in input order within each group."""
    order = np.empty(len(groups.numbers), dtype=np.intp)
    _groups.order_rows(groups.numbers, np.cumsum(groups.sizes) - groups.sizes, order)
    return order


def select_rows(groups: Groups, chosen: NDArray[np.bool_], n_threads: int) -> Groups:
    """The groups of the chosen rows."""
    return number_rows(GroupColumn(groups.numbers[chosen], 0, len(groups.sizes), None, NO_RANKS), n_threads)


class Parts(NamedTuple):
    """Ranges of consecutive groups.  A part has one large group, or any number of small ones."""

    firsts: NDArray[np.int64]  # the first group of each part, and the number of groups
    rows: NDArray[np.int64]  # rows of each part
    large: NDArray[np.bool_]  # whether a part is one large group
    max_rows: int  # rows of the largest small group


class Gathered(NamedTuple):
    """The rows of each group, as the kernels read them."""

    columns: Columns
    rows: NDArray[np.uint32]  # copies of the rows in parts; none if the rows of each group are adjacent
    begins: NDArray[np.int64]  # first row of each group
    sizes: NDArray[np.int64]  # rows of each group
    parts: Parts

    def columns_of(self, part: int) -> Columns:
        """The rows of a part."""
        start = int(self.begins[self.parts.firsts[part]])
        own = slice(start, start + int(self.parts.rows[part]))
        if not len(self.rows):
            x, y, w = (column[own] for column in self.columns)
            return x, y, w
        rows = self.rows[own]
        doubles = rows[:, 1:].copy().view(np.float64)
        if rows.shape[1] == _LABEL_WORDS:
            return doubles[:, 0].copy(), (rows[:, 0] & 1).astype(np.uint8), NO_WEIGHTS
        w = doubles[:, 2].copy() if rows.shape[1] == _WEIGHT_WORDS else NO_WEIGHTS
        return doubles[:, 0].copy(), doubles[:, 1].copy(), w


def gather(columns: Columns, groups: Groups, *, labels: bool) -> Gathered:
    """Move the rows of each group together, unless they are.  Raises survey.NotLabels if `labels` is wrong."""
    words = _LABEL_WORDS if labels else _WEIGHT_WORDS if len(columns[2]) else _TARGET_WORDS
    numbers, sizes = groups.numbers, groups.sizes
    changes = numbers[1:] != numbers[:-1]
    if np.count_nonzero(changes) + 1 == np.count_nonzero(sizes):
        begins = np.zeros(len(sizes), dtype=np.int64)
        starts = np.append(0, np.flatnonzero(changes) + 1)
        begins[numbers[starts]] = starts
        large = sizes >= survey.FEW_ROWS
        parts = Parts(np.arange(len(sizes) + 1, dtype=np.int64), sizes, large, _max_rows(sizes, large))
        return Gathered(columns, np.empty((0, words), dtype=np.uint32), begins, sizes, parts)
    parts, part_of = divide(sizes)
    rows = np.empty((len(numbers), words), dtype=np.uint32)
    # in each part, the rows of the first share come first, then those of the second, ..
    inside = np.array([np.add.reduceat(counts, parts.firsts[:-1], dtype=np.int64) for counts in groups.counts])
    places = np.cumsum(inside, axis=0) - inside + (np.cumsum(parts.rows) - parts.rows)
    own = dict(zip((share.start for share in groups.shares), places, strict=True))

    def scatter(share: slice) -> bool:
        x, y, w = (column[share] for column in columns)
        return _groups.scatter(x, y, w, numbers[share], part_of, own[share.start], rows)

    if not all(threads.each(scatter, groups.shares)):
        raise survey.NotLabels
    return Gathered(columns, rows, np.cumsum(sizes) - sizes, sizes, parts)


def divide(sizes: NDArray[np.int64]) -> tuple[Parts, NDArray[np.uint16]]:
    """Parts of about the same size, with each large group alone, and the part of each group."""
    part_rows = max(_PART_ROWS, int(sizes.sum()) // _MAX_PARTS)
    large = sizes >= max(survey.FEW_ROWS, part_rows)
    new = _starts_of_ranges(sizes, large, part_rows)
    firsts = np.flatnonzero(new)
    borders = np.append(firsts, len(sizes)).astype(np.int64)
    parts = Parts(borders, np.add.reduceat(sizes, firsts), large[firsts], _max_rows(sizes, large))
    return parts, (np.cumsum(new) - 1).astype(np.uint16)


def _max_rows(rows: NDArray[np.int64], large: NDArray[np.bool_]) -> int:
    return int(np.max(rows, where=~large, initial=0))


def _starts_of_ranges(rows: NDArray[np.int64], large: NDArray[np.bool_], range_rows: int) -> NDArray[np.bool_]:
    """Where to divide groups or parts so that ranges have about `range_rows` rows, and large ones are alone."""
    level = (np.cumsum(rows) - rows) // range_rows
    return np.append(True, (level[1:] != level[:-1]) | large[1:] | large[:-1])


class Fitted(NamedTuple):
    """The steps of all groups, one group after the other."""

    n_steps: NDArray[np.int64]  # of each group; 0 if it has no rows
    steps: Steps


class Piece(NamedTuple):
    """Parts that are fitted in one call."""

    first: int
    last: int
    rows: int
    is_large: bool  # one large group


def fit_all(
    gathered: Gathered,
    scale: Scale,
    *,
    decreasing: bool,
    bounds: tuple[float, float],
    n_threads: int,
    fit_large: Callable[[Columns, int], Staircase],
) -> Fitted:
    """The staircases of all groups; `fit_large(columns, n_threads)` fits a large one.  Raises survey.NotLabels."""
    parts = gathered.parts
    n_words = 0 if scale.narrow else scale.s_words + scale.w_words
    part_rows = _max_rows(parts.rows, parts.large)
    n_steps, places = np.zeros_like(gathered.sizes), np.empty_like(gathered.sizes)
    pieces = _divide_work(parts, n_threads)
    small, large = ([piece for piece in pieces if piece.is_large == is_large] for is_large in (False, True))
    first_rows = (np.cumsum(parts.rows) - parts.rows).tolist()
    # room for one step per row, and one more, so that no slice is empty; untouched memory is never allocated
    room = int(parts.rows.sum()) + 1
    out = [np.empty(room, dtype=np.int64 if name == "counts" else np.float64) for name in Steps._fields[:5]]
    found: dict[int, slice] = {}  # where the steps of a piece are

    def fit_small_pieces(share: slice) -> None:
        work = np.empty(_groups.work_size(parts.max_rows, part_rows, n_words), dtype=np.uint64)
        last = end = -1
        for piece in small[share]:
            start = end if piece.first == last else first_rows[piece.first]
            n = _groups.fit_parts(
                *gathered.columns, gathered.rows, gathered.begins, gathered.sizes, parts.firsts, piece.first,
                piece.last, scale, decreasing, *bounds, parts.max_rows, part_rows, work, places, n_steps,
                *(column[start:] for column in out),
            )  # fmt: skip
            if n < 0:
                raise survey.NotLabels
            last, end = piece.last, start + n
            found[piece.first] = slice(start, end)

    if small:
        n_rows = sum(piece.rows for piece in small)
        threads.each(fit_small_pieces, threads.cut(len(small), len(threads.parts(n_rows, n_threads))))
    # few large groups are fitted one after the other, each with all threads
    shares = threads.cut(len(large), n_threads if len(large) >= 2 * n_threads else 1)

    def fit_large_pieces(share: slice) -> None:
        for piece in large[share]:
            stairs = fit_large(gathered.columns_of(piece.first), n_threads if len(shares) == 1 else 1)
            start = first_rows[piece.first]
            found[piece.first] = slice(start, start + stairs.n_steps)
            for name, column in zip(Steps._fields, out, strict=False):
                column[found[piece.first]] = getattr(stairs, name)
            n_steps[parts.firsts[piece.first]] = stairs.n_steps

    threads.each(fit_large_pieces, shares)
    return Fitted(n_steps, Steps(*(_compacted(column, [found[piece.first] for piece in pieces]) for column in out)))


def _compacted(column: NDArray[Any], spans: list[slice]) -> NDArray[Any]:
    """The entries in these spans, moved to the front of the column; the rest of its memory is freed."""
    end = 0
    for span in spans:
        begin, end = end, end + span.stop - span.start
        if begin < span.start:
            column[begin:end] = column[span]
    column.resize(end, refcheck=False)
    return column


def _divide_work(parts: Parts, n_threads: int) -> list[Piece]:
    """Divide parts into pieces that are not too large for one call; each large part is a piece of its own."""
    at_once = max(1, min(_ROWS_AT_ONCE, int(parts.rows.sum()) // (4 * n_threads)))
    firsts = np.flatnonzero(_starts_of_ranges(parts.rows, parts.large, at_once))
    lasts = np.append(firsts[1:], len(parts.rows))
    columns = firsts, lasts, np.add.reduceat(parts.rows, firsts), parts.large[firsts]
    return [Piece(*piece) for piece in zip(*(column.tolist() for column in columns), strict=True)]


def choose(one: Fitted, other: Fitted, first: NDArray[np.bool_]) -> Fitted:
    """The steps of each group from the first fit if `first`, otherwise from the other."""
    n_steps = np.where(first, one.n_steps, other.n_steps)
    groups = [np.flatnonzero(first).repeat(one.n_steps[first]), np.flatnonzero(~first).repeat(other.n_steps[~first])]
    order = np.argsort(np.concatenate(groups), kind="stable")
    taken = np.repeat(first, one.n_steps), ~np.repeat(first, other.n_steps)
    pairs = zip(one.steps[:5], other.steps[:5], strict=True)
    return Fitted(n_steps, Steps(*(np.concatenate([a[taken[0]], b[taken[1]]])[order] for a, b in pairs)))
