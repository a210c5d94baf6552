"""Tasks and scans: what is done with every row.

A `Task` can be pickled.  Called with the batches of a partition, it returns a `Message`.  `begin` starts a `Scan`,
which takes batches one by one, each of them once.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from staircase_fast.arithmetic.exact import Scale
from staircase_fast.batches.buckets import Buckets
from staircase_fast.batches.messages import MOST_SAMPLED, Message, Sample, Tally
from staircase_fast.errors import InvalidInputError
from staircase_fast.inputs.rows import Columns
from staircase_fast.losses import Loss
from staircase_fast.losses.rows import Rows
from staircase_fast.stack import _survey, _wide, survey
from staircase_fast.stack.survey import Collector, LiveBuckets
from staircase_fast.streams import runs
from staircase_fast.streams.base import check_present, read_rows
from staircase_fast.streams.runs import Run
from staircase_fast.typing import ColumnLike

_BLOCK = 1 << 16  # rows that a kernel gets at once: they and the buckets of some of them stay in cache
_MOST_IN_WORDS = 2**32 - 1  # rows in a table of words
_ROWS_PER_BUCKET = 256  # in a table of float32 sums, on average; more are less precise
_POOLED_ROWS = 1 << 20  # rows that are sorted at once

Batch = tuple[ColumnLike, ColumnLike] | tuple[ColumnLike, ColumnLike, ColumnLike | None]


@dataclass(frozen=True)
class Task:
    """A scan that is to be done: call it with the batches of each partition."""

    scan: int  # its number
    loss: Loss

    kind = ""

    def begin(self) -> Scan:
        """A scan without rows so far."""
        raise NotImplementedError

    def __call__(self, batches: Iterable[Batch]) -> Message:
        """The message of a partition: of batches (scores, targets) or (scores, targets, weights or None)."""
        scan = self.begin()
        for batch in batches:
            scan.add(*batch)
        return scan.message()


class Scan:
    """A scan of one partition.  `add` takes the batches; they may be of any size, and are not needed afterwards."""

    block = _BLOCK

    def __init__(self, task: Task) -> None:
        self.task = task
        self.tally = Tally()
        self.n_batches = 0
        self._waiting: list[Rows] = []
        self._n_waiting = 0

    def add(
        self, scores: ColumnLike, targets: ColumnLike, sample_weight: ColumnLike | None = None, name: str | None = None
    ) -> None:
        """Add a batch.  Errors call it by its name, or else by its number."""
        try:
            columns = read_rows(scores, targets, sample_weight)
            rows = check_present(columns, self.task.loss)
        except InvalidInputError as error:
            error.file = error.file or name or f"batch {self.n_batches}"
            raise
        self.n_batches += 1
        self.tally = self.tally.plus(_tally_of(columns, rows))
        if rows is None:
            return
        if self._waiting and _kind_of(rows) != _kind_of(self._waiting[0]):
            self._flush()
        if len(rows.scores) < self.block:  # small batches wait; copies, because the caller may use its arrays again
            self._waiting.append(rows._replace(**{name: getattr(rows, name).copy() for name in Rows._fields[:3]}))
            self._n_waiting += len(rows.scores)
            if self._n_waiting >= self.block:
                self._flush()
            return
        self._flush()
        for start in range(0, len(rows.scores), self.block):
            part = slice(start, start + self.block)
            self._take((rows.scores[part], rows.targets[part], rows.weights[part]), labels=survey.are_labels(rows))

    def _flush(self) -> None:
        if self._waiting:
            x, y, w = (np.concatenate(column) for column in zip(*(rows[:3] for rows in self._waiting), strict=True))
            labels = survey.are_labels(self._waiting[0])
            self._waiting, self._n_waiting = [], 0
            self._take((x, y, w), labels=labels)

    def _take(self, columns: Columns, *, labels: bool) -> None:
        """Process a block of valid rows; `labels`: 0 and 1, without weights."""
        raise NotImplementedError

    def message(self) -> Message:
        """The message of all batches so far; the scan ends."""
        self._flush()
        return self._message()

    def _message(self) -> Message:
        raise NotImplementedError


def _kind_of(rows: Rows) -> tuple[Any, ...]:
    """Rows that differ in this are not put into one block."""
    return rows.scores.dtype, rows.targets.dtype, len(rows.weights) > 0, survey.are_labels(rows)


def _tally_of(columns: Columns, rows: Rows | None) -> Tally:
    n_given = len(columns[0])
    if rows is None:
        return Tally(n_given)
    bits = [int(column.view(f"u{column.itemsize}").sum(dtype=np.uint64)) for column in rows[:3]]
    with np.errstate(over="ignore"):  # the driver refuses an infinite sum
        weight = float(rows.weights.sum()) if len(rows.weights) else float(len(rows.scores))
    return Tally(
        n_given, len(rows.scores), (bits[0], bits[1], bits[2]), weight, len(rows.weights) > 0,
        not survey.fit_doubles(rows), rows.targets_extent, rows.weights_extent,
    )  # fmt: skip


class _Sampler:
    """Takes every `stride`-th entry of columns that arrive in parts."""

    def __init__(self) -> None:
        self.parts: list[NDArray[np.float64]] = []
        self.stride = 1
        self.n_seen = self.n_kept = 0

    def add(self, column: NDArray[Any], chosen: Any = None) -> None:
        picked = column[-self.n_seen % self.stride :: self.stride].copy()
        self.n_seen += len(column)
        self.parts.append((picked if chosen is None else chosen(picked)).astype(np.float64))
        self.n_kept += len(self.parts[-1])
        if self.n_kept > 2 * MOST_SAMPLED:
            sample = self.sample()
            self.parts, self.stride, self.n_kept = [sample.entries], sample.stride, len(sample.entries)

    def sample(self) -> Sample:
        return Sample(np.concatenate([np.empty(0), *self.parts]), self.stride).thinned()


# Peek.


@dataclass(frozen=True)
class PeekTask(Task):
    """Sample scores and targets.  A few batches are enough, if they are typical."""

    kind = "peek"

    def begin(self) -> Scan:
        return _Peek(self)


class _Peek(Scan):
    def __init__(self, task: PeekTask) -> None:
        super().__init__(task)
        self.samplers = {"sample": _Sampler(), "targets": _Sampler()}

    def _take(self, columns: Columns, *, labels: bool) -> None:
        for sampler, column in zip(self.samplers.values(), columns[:2], strict=True):
            sampler.add(column)

    def _message(self) -> Message:
        samples = {name: sampler.sample() for name, sampler in self.samplers.items()}
        arrays = {name: sample.entries for name, sample in samples.items()}
        return Message("peek", self.task.scan, self.tally, [one.stride for one in samples.values()], arrays)


# Survey.


@dataclass(frozen=True)
class SurveyTask(Task):
    """Summarise the rows of each bucket."""

    buckets: Buckets
    centre: float  # a number amid the targets; 0 for labels
    labels: bool  # probably all are labels without weights

    kind = "survey"

    def begin(self) -> Scan:
        return _Survey(self)


class _Survey(Scan):
    """Labels are counted in words, other rows in summaries; both are added to a wide table when they are full."""

    task: SurveyTask

    def __init__(self, task: SurveyTask) -> None:
        super().__init__(task)
        self.sampler = _Sampler()
        self.words = np.zeros((task.buckets.n, 1), dtype=np.uint64) if task.labels else None
        self.was_live = np.zeros(task.buckets.n if len(task.buckets.maps) > 1 else 0, dtype=np.uint8)
        self.summaries: NDArray[np.uint32] | None = None
        self.wide: NDArray[np.float64] | None = None
        self.n_in_words = self.n_in_summaries = self.n_parts = 0

    def _take(self, columns: Columns, *, labels: bool) -> None:
        scores, targets = columns[:2]
        buckets = self.task.buckets
        given = buckets.find_for_kernel(scores, self.was_live)
        self.sampler.add(scores, buckets.still_live)
        if labels and self.words is not None:
            if self.n_in_words + len(scores) > _MOST_IN_WORDS:
                self._widen()
            if not _survey.survey_labels(scores, targets, buckets.maps[0], given, self.words):
                raise survey.NotLabels
            self.n_in_words += len(scores)
            return
        if self.n_in_summaries + len(scores) > min(_MOST_IN_WORDS, max(1 << 24, _ROWS_PER_BUCKET * buckets.n)):
            self._widen()
        if self.summaries is None:
            self.summaries = np.empty((buckets.n, 4), dtype=np.uint32)
            _survey.clear_summaries(self.summaries)
        _survey.survey(*columns, self.task.centre, buckets.maps[0], given, self.summaries)
        self.n_in_summaries += len(scores)

    def _widen(self) -> None:
        """Move all sums to the wide table."""
        if self.wide is None:
            self.wide = np.empty((self.task.buckets.n, 4))
            _wide.clear(self.wide)
        if self.n_in_words and self.words is not None:
            _wide.add_table(self.wide, self.words, self.task.centre)
            self.words[:] = 0
        if self.n_in_summaries and self.summaries is not None:
            _wide.add_table(self.wide, self.summaries, self.task.centre)
            _survey.clear_summaries(self.summaries)
        self.n_in_words = self.n_in_summaries = 0
        self.n_parts += 1

    def _message(self) -> Message:
        table: NDArray[Any] | None = self.words
        if table is None or self.summaries is not None or self.wide is not None:
            self._widen()
            table, self.words, self.summaries = self.wide, None, None
        assert table is not None
        sample = self.sampler.sample()
        arrays = {
            "table": table,
            "was_live": self.was_live,
            "sample": sample.entries,
            "centre": np.array([self.task.centre]),
            "parts": np.array([self.n_parts + 1]),
        }
        return Message("survey", self.task.scan, self.tally, [sample.stride], arrays)


# Collect.


@dataclass(frozen=True)
class CollectTask(Task):
    """Collect the live rows, and sum all others exactly."""

    buckets: Buckets
    live: NDArray[np.uint8]  # a bit for each bucket
    atoms: NDArray[np.float64]
    atom_runs: NDArray[np.int32]
    scale: Scale
    summed: bool  # whether to sum runs; those of labels are known from the survey
    most_live: int  # rows; if there are more, none is returned

    kind = "collect"

    def begin(self) -> Scan:
        return _Collect(self)

    def live_buckets(self) -> LiveBuckets:
        """The live buckets in the form that kernels use."""
        directory, n_live = survey.index_live(np.unpackbits(self.live, count=self.buckets.n))
        return LiveBuckets(n_live, self.buckets.maps[0], directory, self.atoms, self.atom_runs)


class _Collect(Scan):
    task: CollectTask

    def __init__(self, task: CollectTask) -> None:
        super().__init__(task)
        self.collector = Collector(task.live_buckets(), task.scale, 2 * self.block, summed=task.summed)
        self.parts: list[survey.LiveRows] = []
        self.n_live = 0

    def _take(self, columns: Columns, *, labels: bool) -> None:
        found = self.collector.add(columns, self.task.buckets.find_for_kernel(columns[0]))
        self.n_live += len(found.places)
        if self.n_live <= self.task.most_live:
            self.parts.append(survey.LiveRows(found.rows.copy(), found.places.copy()))
        else:
            self.parts = []

    def _message(self) -> Message:
        nothing = survey.LiveRows(np.empty((0, 3), dtype=np.uint64), np.empty(0, dtype=np.int32))
        rows, places = zip(nothing, *self.parts, strict=True)
        runs_found = self.collector.runs
        arrays = {
            "rows": np.concatenate(rows),
            "places": np.concatenate(places),
            "run_rows": runs_found.rows,
            "run_words": runs_found.words,
        }
        overflow = self.n_live > self.task.most_live
        return Message("collect", self.task.scan, self.tally, [], arrays, self.task.scale, overflow)


# Pool.


@dataclass(frozen=True)
class PoolTask(Task):
    """Sum the rows of each score: one scan, with memory in proportion to the number of distinct scores."""

    most_scores: int

    kind = "pool"

    def begin(self) -> Scan:
        return _Pool(self)


class _Pool(Scan):
    block = _POOLED_ROWS
    task: PoolTask

    def __init__(self, task: PoolTask) -> None:
        super().__init__(task)
        self.runs: tuple[Run, ...] = ()

    def _take(self, columns: Columns, *, labels: bool) -> None:
        rows = check_present(columns, self.task.loss)  # for the extents of this block
        assert rows is not None
        self.runs = runs.pushed(self.runs, runs.run_of(rows, mean=True))
        check_scores(self.runs, self.task.most_scores)

    def _message(self) -> Message:
        tally, arrays = self.tally, dict[str, NDArray[Any]]()
        if self.runs:
            run = runs.merged(*self.runs)
            tally = tally._replace(targets=run.targets, weights=run.weights)
            arrays = dict(run.columns._asdict())
        return Message("pool", self.task.scan, tally, [], arrays)


def check_scores(stored: tuple[Run, ...], most: int) -> None:
    """Raise an error if there are more distinct scores than memory for them."""
    largest = max((len(run.columns.x) for run in stored), default=0)
    if largest > most:
        found = f"got {largest} and more"
        hint = "Raise `memory_limit`."
        raise InvalidInputError("scores", f"must have at most {most} distinct values here", found=found, hint=hint)
