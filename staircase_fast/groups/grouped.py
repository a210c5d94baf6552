"""Rows of many groups, brought together and fitted, under losses that are least at the mean."""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from staircase_fast import threads
from staircase_fast.arithmetic.exact import Scale
from staircase_fast.groups import _groups, _together
from staircase_fast.groups.checks import GroupColumn
from staircase_fast.inputs.rows import Columns
from staircase_fast.stack import survey
from staircase_fast.staircase.steps import Steps

_PART_ROWS = 8192  # those of a part lie in the nearest caches
_MOST_PARTS = 512  # more, and writing to all of them at once gets slow
_ROWS_AT_ONCE = 1 << 18  # some milliseconds: then signals are looked at
_MOST_ROWS = 1 << 31  # of one count
_LABEL_WORDS, _TARGET_WORDS, _WEIGHT_WORDS = _together.ROW_WORDS
NO_RANKS = np.empty(0, dtype=np.int32)


class Numbered(NamedTuple):
    """The group of each row, by number; some numbers may have no rows."""

    numbers: NDArray[np.int32]
    sizes: NDArray[np.int64]  # rows of each number
    runs: int  # of one group side by side
    shares: list[slice]  # of rows, one for each thread
    counts: list[NDArray[np.uint32]]  # rows of each number in each share


def numbered(column: GroupColumn, n_threads: int) -> Numbered:
    """Rows by the places of their keys."""
    n, size = len(column.numbers), column.size if column.keys is None else len(column.keys)
    numbers = np.empty(n, dtype=np.int32)
    shares = threads.parts(n, n_threads)
    shares = shares if n < _MOST_ROWS else threads.cut(n, max(len(shares), n // _MOST_ROWS + 1))

    def number(part: slice) -> NDArray[np.uint32]:
        counts = np.zeros(size, dtype=np.uint32)
        _together.number(column.numbers[part], column.low, column.ranks, numbers[part], counts)
        return counts

    counts = threads.each(number, shares)
    sizes = counts[0].astype(np.int64)
    for other in counts[1:]:
        sizes += other
    return Numbered(numbers, sizes, column.runs, shares, counts)


class Piece(NamedTuple):
    """Groups, or parts, that are fitted in one call."""

    first: int
    last: int
    rows: int
    is_large: bool  # one group, which is fitted as if it were alone


Options = tuple[bool, float, float]  # whether values fall, and their bounds


class Standing:
    """Groups whose rows stand together in the columns."""

    def __init__(self, columns: Columns, begins: NDArray[np.int64], sizes: NDArray[np.int64], *, labels: bool) -> None:
        self.columns, self.begins, self.sizes, self.labels = columns, begins, sizes, labels
        self.unit_rows = sizes  # a unit is what cannot be fitted in less than one call
        self.large = sizes >= survey.FEW_ROWS
        self.most_rows = self.part_rows = int(np.max(sizes, where=~self.large, initial=0))

    def group_of(self, unit: int) -> int:
        return unit

    def columns_of(self, unit: int) -> Columns:
        rows = slice(int(self.begins[unit]), int(self.begins[unit] + self.sizes[unit]))
        x, y, w = (column[rows] for column in self.columns)
        return x, y, w

    def fit(self, piece: Piece, scale: Scale, options: Options, work: Any, n_steps: Any, out: Any) -> int:
        return _groups.fit_standing(
            *self.columns, self.labels, self.begins, self.sizes, piece.first, piece.last, scale, *options,
            self.most_rows, work, n_steps, *out,
        )  # fmt: skip


class Scattered:
    """Groups whose rows were brought together as far as the cache asks for it."""

    def __init__(self, rows: NDArray[np.uint32], sizes: NDArray[np.int64], parts: Parts) -> None:
        self.rows, self.parts = rows, parts
        self.starts = np.append(0, np.cumsum(sizes))
        self.places = np.empty(len(sizes), dtype=np.int64)
        self.unit_rows = parts.rows
        self.large = parts.large
        self.most_rows = int(np.max(sizes, where=sizes < parts.least_large, initial=0))
        self.part_rows = int(np.max(parts.rows, where=~parts.large, initial=0))

    def group_of(self, unit: int) -> int:
        return int(self.parts.firsts[unit])

    def columns_of(self, unit: int) -> Columns:
        start = int(self.starts[self.group_of(unit)])
        rows = self.rows[start : start + int(self.unit_rows[unit])]
        doubles = rows[:, 1:].copy().view(np.float64)
        if rows.shape[1] == _LABEL_WORDS:
            return doubles[:, 0].copy(), (rows[:, 0] & 1).astype(np.uint8), np.empty(0)
        w = doubles[:, 2].copy() if rows.shape[1] == _WEIGHT_WORDS else np.empty(0)
        return doubles[:, 0].copy(), doubles[:, 1].copy(), w

    def fit(self, piece: Piece, scale: Scale, options: Options, work: Any, n_steps: Any, out: Any) -> int:
        return _groups.fit_scattered(
            self.rows, self.starts, self.parts.firsts, piece.first, piece.last, scale, *options,
            self.most_rows, self.part_rows, work, self.places, n_steps, *out,
        )  # fmt: skip


class Parts(NamedTuple):
    """Groups side by side that are brought together at once."""

    firsts: NDArray[np.int64]  # the first group of each, and the number of groups
    part_of: NDArray[np.uint16]  # each group
    rows: NDArray[np.int64]  # of each part
    large: NDArray[np.bool_]  # whether a part is one large group
    least_large: int  # the rows that make a group large


def parts_of(sizes: NDArray[np.int64]) -> Parts:
    """Parts of about the same size, and one for each large group."""
    n = int(sizes.sum())
    part_rows = max(_PART_ROWS, n // _MOST_PARTS)
    least_large = max(survey.FEW_ROWS, part_rows)
    large = sizes >= least_large
    level = (np.cumsum(sizes) - sizes) // part_rows
    new = np.append(True, (level[1:] != level[:-1]) | large[1:] | large[:-1])
    firsts = np.flatnonzero(new)
    rows = np.add.reduceat(sizes, firsts)
    part_of = (np.cumsum(new) - 1).astype(np.uint16)
    return Parts(np.append(firsts, len(sizes)).astype(np.int64), part_of, rows, large[firsts], least_large)


def brought_together(columns: Columns, groups: Numbered, *, labels: bool) -> Standing | Scattered | None:
    """The rows of each group, where they are or beside each other; None if labels are not what they look like."""
    in_use = np.count_nonzero(groups.sizes)
    if groups.runs == in_use:
        begins = np.zeros(len(groups.sizes), dtype=np.int64)
        if _together.find_begins(groups.numbers, begins) == in_use:  # else the groups have changed since
            return Standing(columns, begins, groups.sizes, labels=labels)
    parts = parts_of(groups.sizes)
    words = _LABEL_WORDS if labels else _WEIGHT_WORDS if len(columns[2]) else _TARGET_WORDS
    rows = np.empty((len(groups.numbers), words), dtype=np.uint32)
    # the first share of rows comes first in each part, then the second, ..
    inside = np.array([np.add.reduceat(counts, parts.firsts[:-1], dtype=np.int64) for counts in groups.counts])
    places = np.cumsum(inside, axis=0) - inside + (np.cumsum(parts.rows) - parts.rows)
    own = dict(zip((share.start for share in groups.shares), places, strict=True))

    def scatter(part: slice) -> bool:
        x, y, w = (column[part] for column in columns)
        return _together.scatter(x, y, w, groups.numbers[part], parts.part_of, own[part.start], rows)

    return Scattered(rows, groups.sizes, parts) if all(threads.each(scatter, groups.shares)) else None


class Fitted(NamedTuple):
    """The steps of all groups, one after the other."""

    n_steps: NDArray[np.int64]  # of each group; none of a number without rows
    steps: Steps


def fit_all(
    source: Standing | Scattered,
    scale: Scale,
    *,
    decreasing: bool,
    bounds: tuple[float, float],
    n_threads: int,
    fit_large: Any,
) -> Fitted | None:
    """The staircases of all groups; `fit_large` fits columns alone.  None if a score is NaN, or a label none."""
    n_words = 0 if scale.narrow else scale.s_words + scale.w_words
    pieces = _pieces(source, n_threads)
    n_steps = np.zeros(len(source.starts) - 1 if isinstance(source, Scattered) else len(source.sizes), dtype=np.int64)
    found: dict[int, Steps | None] = {}
    small = [piece for piece in pieces if not piece.is_large]
    room = max((piece.rows for piece in small), default=1)

    def work_on(part: slice) -> None:
        work = np.empty(_groups.work_size(source.most_rows, source.part_rows, n_words), dtype=np.uint64)
        out = tuple(np.empty(room, dtype=np.int64 if name == "counts" else np.float64) for name in Steps._fields[:5])
        for piece in small[part]:
            n = source.fit(piece, scale, (decreasing, *bounds), work, n_steps, out)
            found[piece.first] = None if n < 0 else Steps._make((*(column[:n].copy() for column in out), None, None))

    if small:
        ends = np.cumsum([piece.rows for piece in small])
        threads.each(work_on, _shares(ends, n_threads))  # whose numbers differ, so that none writes where others do
    if None in found.values():
        return None
    large = [piece for piece in pieces if piece.is_large]
    # few large groups have all threads each, one after the other
    shares = threads.cut(len(large), n_threads if len(large) >= 2 * n_threads else 1) if large else []

    def fit_part(part: slice) -> None:
        for piece in large[part]:
            own = source.columns_of(piece.first)
            stairs = fit_large(own, rising=not decreasing, n_threads=n_threads if len(shares) == 1 else 1)
            found[piece.first] = Steps(stairs.left, stairs.right, stairs.values, stairs.weights, stairs.counts)
            n_steps[source.group_of(piece.first)] = stairs.n_steps

    if large:
        threads.each(fit_part, shares)
    columns = zip(*(found[piece.first][:5] for piece in pieces), strict=True)  # type: ignore[index]
    return Fitted(n_steps, Steps(*map(np.concatenate, columns)))


def _shares(ends: NDArray[np.int64], n_threads: int) -> list[slice]:
    """Pieces for each thread, of about the same number of rows."""
    n_parts = len(threads.parts(int(ends[-1]), n_threads))
    borders = np.searchsorted(ends, [int(ends[-1]) * part // n_parts for part in range(1, n_parts)], side="right")
    return [slice(*pair) for pair in itertools.pairwise([0, *borders.tolist(), len(ends)])]


def _pieces(source: Standing | Scattered, n_threads: int) -> list[Piece]:
    """Units side by side, not too many for one call; each large one alone."""
    rows, large = source.unit_rows, source.large
    n = int(rows.sum())
    at_once = max(1, min(_ROWS_AT_ONCE, n // (4 * n_threads)))
    level = (np.cumsum(rows) - rows) // at_once
    firsts = np.flatnonzero(np.append(True, (level[1:] != level[:-1]) | large[1:] | large[:-1]))
    totals = np.add.reduceat(rows, firsts)
    lasts = np.append(firsts[1:], len(rows))
    columns = (column.tolist() for column in (firsts, lasts, totals, large[firsts]))
    return [Piece(*piece) for piece in zip(*columns, strict=True)]


def chosen(one: Fitted, other: Fitted, first: NDArray[np.bool_]) -> Fitted:
    """The steps of each group from the first fit, or from the other."""
    n_steps = np.where(first, one.n_steps, other.n_steps)
    from_one = np.repeat(first, n_steps)
    total, places = int(n_steps.sum()), np.cumsum(n_steps) - n_steps
    index = np.arange(total)
    columns = []
    for name in Steps._fields[:5]:
        column = np.empty_like(getattr(one.steps, name), shape=total)
        for fitted, taken in ((one, from_one), (other, ~from_one)):
            shift = np.repeat(np.cumsum(fitted.n_steps) - fitted.n_steps - places, n_steps)
            column[taken] = getattr(fitted.steps, name)[(index + shift)[taken]]
        columns.append(column)
    return Fitted(n_steps, Steps(*columns))
