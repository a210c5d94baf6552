"""Fits and certificates of groups in one process.

1. A scan counts the rows of each group, and a plan cuts the groups into ranges (`groups.py`).
2. The rows of as many ranges as fit into half of the memory are gathered in one scan.  Then one range after the other
   is finished, in the other half.
3. Groups with more rows than a range may have are *large*: each has a driver.  Many drivers share a scan.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from staircase_fast.batches import groups as grouped
from staircase_fast.batches.driver import Driver
from staircase_fast.batches.fitting import Progress, ProgressOfScan, located, run_drivers, scan_parts, workers_for
from staircase_fast.batches.groups import BYTES_PER_ROW, GroupCounts, GroupPlan, Piece
from staircase_fast.batches.messages import Message
from staircase_fast.batches.scans import Task
from staircase_fast.batches.sources import Batch, Columns, Names, Source, columns_of, n_rows_of
from staircase_fast.errors import InvalidInputError, InvalidTypeError
from staircase_fast.groups.staircase_map import StaircaseMap
from staircase_fast.inputs.options import check_direction
from staircase_fast.losses import Loss, loss_of
from staircase_fast.losses.rows import check_is_comparable, limits_of

_BYTES_PER_SCAN = 6 * 10**6  # of a large group in one thread: rows that wait, and a sample
_MOST_PEEKED = 64  # parts; each may have other groups
_WAITING_ROWS = 1 << 16  # pieces with fewer rows are joined


class Work(NamedTuple):
    """What is done with groups."""

    loss: Loss
    finish: Callable[[Iterable[Piece], GroupPlan, int], Any]  # the result of a range of small groups
    driver: Callable[..., Driver]  # for a large group: called with its key and the options of its scans
    settle: Callable[[GroupCounts], GroupCounts] = lambda found: found  # may replace the keys before further scans


class Found(NamedTuple):
    """The results of all groups."""

    plan: GroupPlan
    ranges: dict[int, Any]  # of each range of small groups, by its place
    large: dict[int, Any]  # by the place of the group


def fit_source_groups(
    opened: Source,
    names: Names,
    options: dict[str, Any],
    n_threads: int | None = None,
    progress: Progress | None = None,
    settle: Callable[[GroupCounts], GroupCounts] = lambda found: found,
) -> StaircaseMap:
    """The fits of all groups of a source; `options` are those of the driver."""
    settings = dict(options)
    memory, loss = settings.pop("memory_limit"), loss_of(settings.pop("loss"))
    limits_of(loss, settings["bounds"])
    if check_direction(settings["increasing"], auto=True) is None:
        check_is_comparable(loss)
    settings["loss"] = loss
    finish = partial(grouped.fit_range, **settings, n_threads=n_threads)
    work = Work(loss, finish, lambda _, **scans: Driver(**settings, **scans), settle)
    plan, ranges, large = run_groups(work, opened, names, memory, n_threads, progress)
    return plan.join(ranges, large, loss)


def run_groups(
    work: Work,
    opened: Source,
    names: Names,
    memory: int,
    n_threads: int | None = None,
    progress: Progress | None = None,
) -> Found:
    """Do some work with all groups of a source."""
    if opened.one_shot:
        requirement = "must be readable several times to fit groups"
        hint = "Pass a list of batches, or a function that returns a new iterator each time."
        raise InvalidTypeError("source", requirement, found="got an iterator or a pipe", hint=hint)
    if work.loss.per_sample and work.loss.sort_keys():
        requirement = "must have the same parameter for all rows"
        raise InvalidTypeError("loss", requirement, value=work.loss, hint="Use `fit_groups`, with all rows in memory.")
    workers = workers_for(opened, n_threads)
    begin = partial(_Counting, names, work.loss)
    with located(None, names):
        counted = scan_parts(begin, opened.parts(), workers, ProgressOfScan(progress, "count", None))
        found = work.settle(grouped.merge_counts(counted))
        plan = GroupPlan(found, max(1, memory // (4 * BYTES_PER_ROW)))
        _check_large(plan, work.loss)
        ranges: dict[int, Any] = {}
        for places in _passes(plan, max(1, memory // (2 * max(1, found.row_bytes)))):
            report = ProgressOfScan(progress, "gather", int(plan.sizes.sum()))
            gathered = scan_parts(partial(_Gathering, names, plan, places), opened.parts(), workers, report)
            for position, place in enumerate(places):
                pieces = [piece for message in gathered for piece in message[position]]
                for message in gathered:
                    message[position] = []
                ranges[place] = work.finish(pieces, plan, place)
        return Found(plan, ranges, _run_large(work, opened, names, plan, memory, workers, progress))


def _check_large(plan: GroupPlan, loss: Loss) -> None:
    if plan.large and not loss.is_mean:
        place = max(plan.large, key=plan.sizes.__getitem__)
        n = int(plan.sizes[place])
        requirement = f"must allow for the rows of each group, because steps under {loss.name} are not means"
        hint = f"Raise it to {4 * BYTES_PER_ROW * n} bytes or more."
        found = f"got {n} rows of group {plan.keys[place]!r}"
        raise InvalidInputError("memory_limit", requirement, found=found, hint=hint)


def _passes(plan: GroupPlan, most_rows: int) -> list[list[int]]:
    """The ranges of small groups that are gathered in each scan: as many as have this number of rows, at least one."""
    passes: list[list[int]] = []
    n_rows = most_rows
    for place in plan.small:
        own = int(plan.sizes[plan.groups_of(place)].sum())
        if not passes or n_rows + own > most_rows:
            passes.append([])
            n_rows = 0
        passes[-1].append(place)
        n_rows += own
    return passes


def _run_large(
    work: Work, opened: Source, names: Names, plan: GroupPlan, memory: int, workers: int, progress: Progress | None
) -> dict[int, Any]:
    """The results of large groups; as many as possible share the scans."""
    at_once = max(1, memory // (4 * workers * _BYTES_PER_SCAN))
    found: dict[int, Any] = {}
    for first in range(0, len(plan.large), at_once):
        places = plan.large[first : first + at_once]
        share = memory // len(places) - (workers * _BYTES_PER_SCAN if len(places) > 1 else 0)
        drivers = {
            place: work.driver(
                plan.keys[place], n_rows=int(plan.sizes[place]), n_tables=workers, n_threads=1, memory_limit=share
            )
            for place in places
        }
        run_drivers(drivers, partial(_Scanning, names, plan), opened, workers, progress, _MOST_PEEKED)
        found |= {place: driver.result() for place, driver in drivers.items()}
    return found


class _Adding:
    """Adds the rows of batches, with their groups."""

    def __init__(self, names: Names) -> None:
        self.names = names

    def add(self, batch: Batch) -> int:
        with located(batch, self.names):
            columns = columns_of(batch, self.names)
            self.take(columns)
        return n_rows_of(columns)

    def take(self, columns: Columns) -> None:
        raise NotImplementedError


class _Counting(_Adding):
    """Checks all rows, and counts those of each group."""

    def __init__(self, names: Names, loss: Loss) -> None:
        super().__init__(names)
        self.loss = loss
        self.counts = [grouped.merge_counts([])]
        self.n_keys = 0  # in all counts but the first

    def take(self, columns: Columns) -> None:
        self.counts.append(grouped.count_groups(*columns, self.loss))
        self.n_keys += len(self.counts[-1].keys)
        if self.n_keys > 4 * len(self.counts[0].keys):
            self.counts, self.n_keys = [self.message()], 0

    def message(self) -> GroupCounts:
        return grouped.merge_counts(self.counts)


class _Gathering(_Adding):
    """Gathers the rows of some ranges."""

    def __init__(self, names: Names, plan: GroupPlan, places: Sequence[int]) -> None:
        super().__init__(names)
        self.plan, self.places = plan, places
        self.full: list[list[Piece]] = [[] for _ in places]
        self.waiting: list[list[Piece]] = [[] for _ in places]
        self.n_waiting = np.zeros(len(places), dtype=np.int64)

    def take(self, columns: Columns) -> None:
        for position, piece in enumerate(grouped.split_rows(*columns, self.plan, self.places)):
            if len(piece[0]):
                self.waiting[position].append(piece)
                self.n_waiting[position] += len(piece[0])
                if self.n_waiting[position] >= _WAITING_ROWS:
                    self._join(position)

    def _join(self, position: int) -> None:
        if self.waiting[position]:
            self.full[position].append(grouped.joined_pieces(self.waiting[position]))
            self.waiting[position], self.n_waiting[position] = [], 0

    def message(self) -> list[list[Piece]]:
        for position in range(len(self.places)):
            self._join(position)
        return self.full


class _Scanning(_Adding):
    """Adds the rows of large groups to their scans."""

    def __init__(self, names: Names, plan: GroupPlan, tasks: dict[Any, Task]) -> None:
        super().__init__(names)
        self.plan, self.scans = plan, {place: task.begin() for place, task in tasks.items()}

    def take(self, columns: Columns) -> None:
        grouped.scan_groups(self.scans, *columns, self.plan)

    def message(self) -> dict[Any, Message]:
        return {place: scan.message() for place, scan in self.scans.items()}
