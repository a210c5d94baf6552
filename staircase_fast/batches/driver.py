"""`Driver`: decides which scan is next, from the messages of the scans before."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from staircase_fast import threads
from staircase_fast.arithmetic.exact import Scale, scale_of
from staircase_fast.batches.buckets import Buckets
from staircase_fast.batches.messages import FEW_ROWS, Message, Tally, run_of
from staircase_fast.batches.scans import CollectTask, PeekTask, PoolTask, SurveyTask, Task
from staircase_fast.errors import InvalidInputError, InvalidTypeError
from staircase_fast.fitting import best_of, staircase_of
from staircase_fast.inputs import options
from staircase_fast.losses import Loss, loss_of
from staircase_fast.losses.rows import limits_of
from staircase_fast.stack import _collect, survey
from staircase_fast.stack.survey import LiveBuckets, LiveRows, Runs
from staircase_fast.staircase import cells
from staircase_fast.staircase.result import Staircase
from staircase_fast.streams import runs
from staircase_fast.typing import Bounds, Direction

_UNKNOWN_ROWS = 10**8  # assumed if the number of rows is unknown
_BYTES_PER_LIVE_ROW = 192  # while they are sorted and fitted
_BYTES_PER_SCORE = 64  # of a pool, while two are merged
_TABLE_SHARE = 0.4  # of the memory limit, for tables
_PROGRESS = 0.7  # a round that leaves more than this share of the rows that it has divided is the last
_MOST_SCANS = 50
_FINE = 0.25  # rows per bucket, over the cube root of the number of rows: about a tenth of them are live
_PLANNED_BUCKETS = 1 << 20  # at once: the work space is three numbers per bucket
_LARGEST_MAP_SAMPLE = 1 << 15
_NO_BORDERS = np.empty(0)


class _Survey(NamedTuple):
    """What the last survey found."""

    task: SurveyTask
    live: NDArray[np.uint8]
    sample: NDArray[np.float64]  # scores in live buckets, sorted
    n_live: float  # rows in live buckets
    n_sorted: float  # about how many of them are not atoms
    counted: bool  # all are labels


class Driver:
    """The fit of rows that only tasks can read; see `staircase_fast.batches`.

    Parameters
    ----------
    loss, increasing, bounds
        As in `fit`; the steps of the loss must be means.
    n_rows : int, optional
        About how many rows there are.  A wrong number costs time or a further scan.
    memory_limit : int
        Bytes for tables and live rows in the process of the driver.
    n_tables : int, default 2
        The number of tables that exist at the same time in one process: one per scan, and their sum.
    n_threads : int, optional
        Threads of the driver.
    one_scan : bool, default False
        Whether the rows can be read only once.  Memory then grows with the number of distinct scores.
    borders : array, optional
        Scores whose buckets are live in any case.
    """

    def __init__(
        self,
        *,
        loss: str | Loss = "squared",
        increasing: Direction = True,
        bounds: Bounds = None,
        n_rows: int | None = None,
        memory_limit: int = 10**9,
        n_tables: int = 2,
        n_threads: int | None = None,
        one_scan: bool = False,
        borders: NDArray[np.float64] = _NO_BORDERS,
    ) -> None:
        self._loss = check_loss(loss_of(loss))
        self._rising = options.check_direction(increasing, auto=True)
        self._limits = limits_of(self._loss, bounds)
        self._n_rows, self._memory, self._n_tables = n_rows, memory_limit, n_tables
        self._n_threads = threads.num_threads(n_threads, threads.ROWS_EACH)
        self._most_live = max(1, int((1 - _TABLE_SHARE) * memory_limit) // _BYTES_PER_LIVE_ROW)
        self._borders = borders
        self._tally: Tally | None = None
        self._table: NDArray[Any] | None = None  # words of labels
        self._last: _Survey | None = None
        self._most_left = math.inf  # rows to be sorted, after a survey that was worth it
        self._result: Any = None
        self._task: Task | None = self._pool(0) if one_scan else PeekTask(0, self._loss)

    def next(self) -> Task | None:
        """The task for all rows (a `PeekTask`: for some of them); None if the staircase is known."""
        return self._task

    def receive(self, message: Message, share: float = 1.0) -> None:
        """Take the merged message of all rows; after a peek, of about this share of them."""
        task = self._task
        if task is None or (message.kind, message.scan) != (task.kind, task.scan):
            expected = "no message" if task is None else f"a message of {task.kind} {task.scan}"
            raise InvalidInputError("message", f"must be {expected}", found=f"got {message.kind} {message.scan}")
        if isinstance(task, PeekTask):
            self._task = self._first_survey(message, share)
            return
        self._check_rows(message.tally)
        if isinstance(task, SurveyTask):
            self._task = self._after_survey(task, message)
        elif isinstance(task, CollectTask):
            if message.overflow:  # the sample has missed a frequent score
                self._task = self._refine(task.scan + 1)
                return
            self._result, self._task = self._finish(task, message), None
        else:
            self._result, self._task = self._finish_pool(message), None

    def staircase(self) -> Staircase:
        """The result, after `next` has returned None."""
        return self.result()

    def result(self) -> Any:
        """What was computed, after `next` has returned None."""
        if self._result is None:
            raise RuntimeError("The fit is not finished: `next` returns the next task.")
        return self._result

    def _check_rows(self, tally: Tally) -> None:
        """There must be rows, and all scans must find the same."""
        if tally.n_given == 0:
            raise InvalidInputError("scores", "must have at least one row", found="got none")
        if tally.n_rows == 0:
            found = f"all {tally.n_given} are zero"
            raise InvalidInputError("sample_weight", "must have an entry > 0", found=found)
        if tally.weight == np.inf:
            raise InvalidInputError("sample_weight", "must have a finite sum", found=f"got {tally.n_rows} rows")
        before, self._tally = self._tally, tally
        if before is not None and tally[:3] != before[:3]:
            found = "their scores, targets or weights differ"
            if before.n_given != tally.n_given:
                found = f"got {before.n_given} rows, then {tally.n_given}"
            raise InvalidInputError("source", "must return the same rows in each scan", found=found)

    def _first_survey(self, message: Message, share: float) -> Task:
        tally = message.tally
        n = self._n_rows = self._n_rows or (int(tally.n_rows / share) if tally.n_rows else 0) or _UNKNOWN_ROWS
        targets = message.arrays["targets"]
        labels = not tally.weighted and bool(np.all((targets == 0) | (targets == 1)))
        centre = 0.0 if labels else float(np.sort(targets)[len(targets) // 2])
        wanted = min(n / survey.rows_per_bucket(n, labels=labels), self._most_buckets(labels))
        bucket_map = cells.make_map(_map_sample(message.arrays["sample"]), wanted)
        return SurveyTask(1, self._loss, Buckets(bucket_map), centre, labels)

    def _most_buckets(self, labels: bool) -> float:
        """As many as there is memory for."""
        return max(16.0, _TABLE_SHARE * self._memory / (self._n_tables * self._bytes_per_bucket(labels)))

    def _bytes_per_bucket(self, labels: bool) -> int:
        """In one table: words, if they can count all rows; summaries, and the wide ones made of them."""
        if labels:
            return 8 if (self._n_rows or _UNKNOWN_ROWS) < FEW_ROWS else 32
        return 16 + 32

    def _after_survey(self, task: SurveyTask, message: Message) -> Task:
        tally, table = message.tally, message.arrays["table"]
        scale = scale_of(tally.targets, tally.weights, tally.n_rows)
        if tally.inexact or not survey.are_moderate(scale, tally.weights):
            return self._pool(task.scan + 1)
        live = self._plan(table, scale, int(message.arrays["parts"][0]))
        live[task.buckets.find(self._borders)] = 1
        if len(message.arrays["was_live"]):
            live &= message.arrays["was_live"]
        n_live = _rows_in(table, live)
        sample = np.sort(message.arrays["sample"])
        sample = sample[np.isfinite(sample)]
        bucket = task.buckets.find(sample)
        _, n_live_buckets = survey.index_live(live)
        atoms, atom_runs, _ = survey.find_atoms(sample, bucket, live, n_live_buckets)
        sample = sample[live[bucket] == 1]
        expected = n_live * (1.0 - _entries_of_atoms(sample, atoms) / max(1, len(sample)))
        counted = table.dtype == np.uint64
        self._last = _Survey(task, live, sample, n_live, expected, counted)
        if expected > self._most_live:
            return self._refine(task.scan + 1)
        self._table = table if counted else None
        return CollectTask(
            task.scan + 1, self._loss, task.buckets, np.packbits(live), atoms, atom_runs, scale, not counted,
            2 * self._most_live,
        )  # fmt: skip

    def _refine(self, scan: int) -> Task:
        """Divide live buckets, unless the last time has brought too little."""
        last, self._table = self._last, None
        assert last is not None
        if last.n_sorted > self._most_left or scan > _MOST_SCANS:
            return self._pool(scan)
        wanted = min(last.n_live, self._most_buckets(last.counted))
        share = self._share_to_divide(last.n_sorted, wanted)
        self._most_left = last.n_sorted * (1 - (1 - _PROGRESS) * share)
        sample = _map_sample(last.sample[: math.ceil(share * len(last.sample))])
        buckets = last.task.buckets.refined(last.live, cells.make_map(sample, wanted))
        return SurveyTask(scan, self._loss, buckets, last.task.centre, last.counted)

    def _share_to_divide(self, n: float, n_buckets: float) -> float:
        """The share of these rows that one survey can divide into buckets small enough to be quiet.

        Noise raises a path over a step to about the cube root of the number of rows.  A bucket with many more rows than
        that is live.  If there is memory for such buckets only, each survey divides a range of scores.
        """
        assert self._tally is not None
        rows_per_bucket = _FINE * float(self._tally.n_rows) ** (1 / 3)
        return min(1.0, rows_per_bucket * n_buckets / max(1.0, n))

    def _plan(self, table: NDArray[Any], scale: Scale, n_parts: int) -> NDArray[np.uint8]:
        """Which buckets are live, for the directions that are needed."""
        live = np.zeros(len(table), dtype=np.uint8)
        for start in range(0, len(table), _PLANNED_BUCKETS):
            part = slice(start, start + _PLANNED_BUCKETS)
            roundings = min(_PLANNED_BUCKETS, len(table)) + n_parts
            for rising in (True, False) if self._rising is None else (self._rising,):
                live[part] |= survey.plan(table[part], roundings, scale.greatest, 1, decreasing=not rising)
        return live

    def _gathered(self, message: Message, live: LiveBuckets) -> tuple[LiveRows, Runs]:
        """The live rows, and the sums of all others."""
        arrays = message.arrays
        found = LiveRows(arrays["rows"], arrays["places"])
        sums = Runs(arrays["run_rows"], arrays["run_words"])
        if self._table is not None:
            sums = Runs(sums.rows.copy(), sums.words.copy())
            _collect.sum_labels(self._table, live.directory, live.atom_runs, *found, *sums)
            self._table = None
        return found, sums

    def _finish(self, task: CollectTask, message: Message) -> Any:
        live = task.live_buckets()
        found, sums = self._gathered(message, live)
        weighted = message.tally.weighted

        def fits(signs: tuple[bool, ...], limits: tuple[float, float]) -> list[Staircase]:
            return [
                staircase_of(
                    survey.finish(
                        found, sums, task.scale, live, self._n_threads, weighted, decreasing=not rising, bounds=limits
                    ),
                    self._loss,
                    rising=rising,
                )
                for rising in signs
            ]

        return best_of(fits, self._loss, self._rising, self._limits)

    def _pool(self, scan: int) -> Task:
        self._table = None
        return PoolTask(scan, self._loss, max(1024, self._memory // _BYTES_PER_SCORE))

    def _finish_pool(self, message: Message) -> Any:
        run = run_of(message)
        assert run is not None

        def fits(signs: tuple[bool, ...], limits: tuple[float, float]) -> list[Staircase]:
            return [
                staircase_of(runs.steps_of(run, decreasing=not rising, bounds=limits), self._loss, rising=rising)
                for rising in signs
            ]

        return best_of(fits, self._loss, self._rising, self._limits)


def check_loss(loss: Loss) -> Loss:
    """Steps must be means; others need many rounds over all rows."""
    if not loss.is_mean or loss.per_sample:
        hint = "Use `fit`, with all rows in memory, or `Anytime`."
        raise InvalidTypeError(
            "loss", "must have steps that are means, with the same parameter for all rows", value=loss, hint=hint
        )
    return loss


def _map_sample(sample: NDArray[np.float64]) -> NDArray[np.float64]:
    """Some finite scores, sorted."""
    ordered = np.sort(sample[np.isfinite(sample)])
    return ordered[:: max(1, len(ordered) // _LARGEST_MAP_SAMPLE)].copy()


def _rows_in(table: NDArray[Any], live: NDArray[np.uint8]) -> float:
    """The number of rows in live buckets."""
    rows: NDArray[Any] = table[:, 0] & 0xFFFFFFFF if table.dtype == np.uint64 else table.view(np.float32)[:, 7]
    return float(rows[live == 1].sum(dtype=np.float64))


def _entries_of_atoms(sample: NDArray[np.float64], atoms: NDArray[np.float64]) -> int:
    """The number of entries of a sorted sample that are atoms."""
    found = atoms[~np.isnan(atoms)]
    return int((np.searchsorted(sample, found, "right") - np.searchsorted(sample, found, "left")).sum())
