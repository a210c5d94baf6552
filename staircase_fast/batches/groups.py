"""Fits of many groups whose rows are spread over partitions, for any engine.

1. `count_groups` checks a partition and counts the rows of each group; `merge_counts` adds counts.
2. `GroupPlan` cuts the sorted keys into ranges of consecutive groups with a limited number of rows.  A group that has
   more is a range of its own: a `Driver` fits it, and its rows stay where they are (`scan_groups`).
3. `split_rows` divides a partition into the rows of each range; `fit_range` fits a range from the pieces of all
   partitions.  So a small group costs no message of its own.  `gathered` has the rows of a range for other purposes.
4. `GroupPlan.join` puts the staircases of all ranges into one map.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from staircase_fast.batches.messages import Message
from staircase_fast.batches.scans import Scan
from staircase_fast.errors import InvalidInputError, InvalidTypeError
from staircase_fast.groups.fits import check_entries, fit_groups
from staircase_fast.groups.readers import Key, check_signs, group_column
from staircase_fast.groups.staircase_map import StaircaseMap
from staircase_fast.inputs.columns import Column
from staircase_fast.inputs.rows import check_same_index
from staircase_fast.losses import Loss
from staircase_fast.staircase.result import Staircase
from staircase_fast.streams.base import read_rows
from staircase_fast.typing import Bounds, ColumnLike, Direction

BYTES_PER_ROW = 128  # of a range, while it is fitted
Piece = tuple[Column, Column, Column, NDArray[np.int32]]  # scores, targets, weights, places of the groups
_STEPS = ("left", "right", "weights", "counts")  # named alike in a Staircase and in a StaircaseMap


class GroupCounts(NamedTuple):
    """The groups of some rows."""

    keys: list[Any]
    counts: NDArray[np.int64]  # for each key: rows, and rows of weight > 0
    row_bytes: int  # of a row in a piece, at most


def count_groups(
    scores: ColumnLike, targets: ColumnLike, sample_weight: ColumnLike | None, groups: ColumnLike, loss: Loss
) -> GroupCounts:
    """Check rows as in `fit_groups`, and count them."""
    x, y, w = read_rows(scores, targets, sample_weight)
    keys, places = _number_rows(groups, len(x))
    check_same_index(scores=scores, groups=groups)
    if keys:
        check_entries(x, y, w, loss, 1)
    rows = np.bincount(places, minlength=len(keys))
    present = np.bincount(places[w > 0], minlength=len(keys)) if len(w) else rows
    row_bytes = x.itemsize + y.itemsize + (w.itemsize if len(w) else 0) + places.itemsize
    return GroupCounts(keys, np.column_stack((rows, present)).astype(np.int64), row_bytes)


def merge_counts(messages: Iterable[GroupCounts]) -> GroupCounts:
    """The groups of all rows."""
    used = [message for message in messages if message.keys]
    kinds = {type(message.keys[0]): message.keys[0] for message in used}
    if len(kinds) > 1:
        found = " and ".join(map(repr, kinds.values()))
        raise InvalidTypeError("groups", "must be all integers, all strings or all bools", found=f"got {found}")
    place_of = {key: place for place, key in enumerate(dict.fromkeys(key for one in used for key in one.keys))}
    counts = np.zeros((len(place_of), 2), dtype=np.int64)
    for message in used:
        counts[[place_of[key] for key in message.keys]] += message.counts
    return GroupCounts(list(place_of), counts, max((one.row_bytes for one in used), default=0))


def _number_rows(groups: ColumnLike, n: int) -> tuple[list[Any], NDArray[np.int32]]:
    """The keys in ascending order, and the place of each row's key there."""
    column = group_column(groups, n)
    places = column.numbers.astype(np.int64) - column.low if column.keys is None else column.ranks[column.numbers]
    used = np.flatnonzero(np.bincount(places, minlength=column.size))
    number = np.empty(column.size, dtype=np.int32)
    number[used] = np.arange(len(used))
    return [column.key(place) for place in used.tolist()], number[places]


class GroupPlan:
    """Which groups are fitted together.

    Parameters
    ----------
    found : GroupCounts
        All groups.
    most_rows : int
        A group with more rows is large.  Other ranges have fewer than twice as many rows.
    """

    def __init__(self, found: GroupCounts, most_rows: int) -> None:
        if not found.keys:
            raise InvalidInputError("scores", "must have at least one row", found="got none")
        order = sorted(range(len(found.keys)), key=found.keys.__getitem__)
        self.keys = [found.keys[place] for place in order]
        check_signs("groups", self.keys)
        self.sizes, present = found.counts[order].T
        empty = np.flatnonzero(present == 0)
        if len(empty):
            text = f"all {self.sizes[empty[0]]} of group {self.keys[empty[0]]!r} are 0"
            raise InvalidInputError("sample_weight", "must have an entry > 0 in each group", found=text)
        is_large = self.sizes > most_rows
        level = (np.cumsum(self.sizes) - self.sizes) // most_rows
        new = np.append(True, (level[1:] != level[:-1]) | is_large[1:] | is_large[:-1])
        self.starts = np.flatnonzero(new)  # the first group of each range
        self.large = np.flatnonzero(is_large).tolist()
        self.small = np.flatnonzero(~is_large[self.starts]).tolist()  # ranges of groups that are not large

    def find(self, groups: ColumnLike, n: int) -> NDArray[np.int32]:
        """The place of each row's group."""
        keys, places = _number_rows(groups, n)
        for key in keys:
            if key not in self._place_of:
                raise InvalidInputError(
                    "source", "must return the same rows in each scan", found=f"group {key!r} is new"
                )
        return np.array([self._place_of[key] for key in keys], dtype=np.int32)[places]

    @cached_property
    def ranges(self) -> NDArray[Any]:
        """The range of each group; uint16, which is fast to sort, unless there are too many."""
        kind = np.uint16 if len(self.starts) <= 1 << 16 else np.int32
        return np.repeat(np.arange(len(self.starts), dtype=kind), np.diff(np.append(self.starts, len(self.keys))))

    def groups_of(self, place: int) -> slice:
        """The groups of a range."""
        start, *rest = self.starts[place : place + 2].tolist()
        return slice(start, rest[0] if rest else len(self.keys))

    @cached_property
    def _place_of(self) -> dict[Key, int]:
        return {key: place for place, key in enumerate(self.keys)}

    def __getstate__(self) -> dict[str, Any]:
        return {name: part for name, part in vars(self).items() if name not in ("_place_of", "ranges")}

    def join(self, ranges: Mapping[int, StaircaseMap], large: Mapping[int, Staircase], loss: Loss) -> StaircaseMap:
        """The map of all groups, from maps by range and staircases by group."""
        parts = [ranges.get(place) or large[start] for place, start in enumerate(self.starts.tolist())]
        n_steps = [np.diff(part.offsets) if isinstance(part, StaircaseMap) else [part.n_steps] for part in parts]
        values = [part.step_values if isinstance(part, StaircaseMap) else part.values for part in parts]
        rising = [part.increasing if isinstance(part, StaircaseMap) else [part.increasing] for part in parts]
        left, right, weights, counts = (np.concatenate([getattr(part, name) for part in parts]) for name in _STEPS)
        offsets = np.append(0, np.cumsum(np.concatenate(n_steps)))
        bounds: list[Any] = [None, None]  # exact
        if any(part.lower is not own or part.upper is not own for part, own in zip(parts, values, strict=True)):
            bounds = [np.concatenate([getattr(part, name) for part in parts]) for name in ("lower", "upper")]
        return StaircaseMap(
            self.keys, offsets, left, right, np.concatenate(values), weights, counts, loss, np.concatenate(rising),
            *bounds,
        )  # fmt: skip


def scan_groups(
    scans: Mapping[int, Scan],
    scores: ColumnLike,
    targets: ColumnLike,
    sample_weight: ColumnLike | None,
    groups: ColumnLike,
    plan: GroupPlan,
) -> None:
    """Add the rows of some groups to the scans of these groups."""
    own = split_rows(scores, targets, sample_weight, groups, plan, plan.ranges[list(scans)].tolist())
    for scan, (x, y, w, _) in zip(scans.values(), own, strict=True):
        scan.add(x, y, w if len(w) else None)


def merge_messages(messages: Iterable[Mapping[Any, Message]]) -> dict[Any, Message]:
    """Merge the messages of each group."""
    first, *others = messages
    return {place: message.merge(*(other[place] for other in others)) for place, message in first.items()}


def split_rows(
    scores: ColumnLike,
    targets: ColumnLike,
    sample_weight: ColumnLike | None,
    groups: ColumnLike,
    plan: GroupPlan,
    chosen: Sequence[int] | None = None,
) -> list[Piece]:
    """The rows of each chosen range; by default, of each one without a large group."""
    x, y, w = read_rows(scores, targets, sample_weight)
    places = plan.find(groups, len(x))
    ranges = plan.ranges[places]
    order, ends = np.argsort(ranges, kind="stable"), np.cumsum(np.bincount(ranges, minlength=len(plan.starts)))
    chosen = plan.small if chosen is None else chosen
    rows = [order[ends[place - 1] if place else 0 : ends[place]] for place in chosen]
    return [(x[own], y[own], w[own] if len(w) else w, places[own]) for own in rows]


def joined_pieces(pieces: Iterable[Piece]) -> Piece:
    """The rows of some pieces, at least one, in one piece."""
    pieces = list(pieces)
    if any(len(w) for _, _, w, _ in pieces):  # rows without weights have weight 1
        pieces = [(x, y, w if len(w) else np.ones(len(x)), places) for x, y, w, places in pieces]
    x, y, w, places = (np.concatenate(column) for column in zip(*pieces, strict=True))
    return x, y, w, places


def gathered(pieces: Iterable[Piece], plan: GroupPlan, place: int) -> Piece:
    """All rows of a range."""
    used = [piece for piece in pieces if len(piece[0])]
    own = plan.groups_of(place)
    expected, n = int(plan.sizes[own].sum()), sum(len(piece[0]) for piece in used)
    if n != expected:
        found = f"got {expected} rows of group {plan.keys[own.start]!r} and the next ones, then {n}"
        raise InvalidInputError("source", "must return the same rows in each scan", found=found)
    return joined_pieces(used)


@contextmanager
def in_groups(plan: GroupPlan) -> Iterator[None]:
    """Name groups by their keys in errors about gathered rows, whose groups are places."""
    try:
        yield
    except InvalidInputError as error:
        error.index = None  # of the gathered rows
        if isinstance(error.group, int):
            error.group = plan.keys[error.group]
        raise


def fit_range(
    pieces: Iterable[Piece],
    plan: GroupPlan,
    place: int,
    *,
    loss: Loss,
    increasing: Direction,
    bounds: Bounds,
    n_threads: int | None = 1,
) -> StaircaseMap:
    """Fit the groups of a range; the keys of the map are places."""
    x, y, w, places = gathered(pieces, plan, place)
    options: Any = {"loss": loss, "increasing": increasing, "bounds": bounds, "n_threads": n_threads}
    with in_groups(plan):
        return fit_groups(x, y, places, sample_weight=w if len(w) else None, **options)
