"""The fit of unsorted rows by two scans and a small sort: `fit_unsorted` calls survey, plan, collect and finish.

Each of these takes and returns plain arrays, so that threads or other engines can run the two scans on parts of the
rows.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from staircase_fast import threads
from staircase_fast.arithmetic import _scan
from staircase_fast.arithmetic.exact import Extent, Scale
from staircase_fast.inputs.rows import Columns
from staircase_fast.losses.rows import Rows
from staircase_fast.stack import _collect, _finish, _small, _survey, _wide
from staircase_fast.stack.sorted_rows import fit_sorted
from staircase_fast.stack.sorting import in_score_order
from staircase_fast.staircase import _lookup, cells
from staircase_fast.staircase.cells import Map
from staircase_fast.staircase.steps import Steps

FEW_ROWS = _small.MOST_LABELS
_ROWS_TO_SORT_IN_THREADS = 20_000
_MANY_LIVE = 0.2  # share of rows in live buckets from which on sorting all rows is as fast
_LIVE_ROWS_PER_STEP = 2.7  # times the square of the rows per bucket; measured for normal and Poisson noise
_VECTORS = _scan.has_vectors()
_MOST_ROWS_EXPECTED = 50_000  # of a bucket, for short words: they hold 65535
NO_BUCKETS = np.empty(0, dtype=np.int32)  # kernels find buckets by the map

Table = NDArray[Any]  # for each bucket, one word (labels), a Summary of four, or a WideSummary (`_summary.pxd`)


class NotLabels(RuntimeError):  # noqa: N818  (a condition that `fit` handles)
    """Rows that were taken for valid 0/1 labels after a check of the first rows are not: check all of them."""

    def __init__(self) -> None:
        super().__init__("`scores` or `targets` changed during the call.")  # the only reason if all rows were checked


class LiveBuckets(NamedTuple):
    """The live buckets and the frequent scores in them (`_plan.pxd`, `_collect.pyx`)."""

    n: int
    bucket_map: Map
    directory: NDArray[np.uint64]
    atoms: NDArray[np.float64]
    atom_runs: NDArray[np.int32]


class LiveRows(NamedTuple):
    """The rows of live buckets, except atoms."""

    rows: NDArray[np.uint64]  # RankedRow (`_sort.pxd`)
    places: NDArray[np.int32]  # number of live buckets before that of the row


class Runs(NamedTuple):
    """The sums of all other rows (`_collect.pyx`)."""

    rows: NDArray[np.int64]
    words: NDArray[np.uint64]


def suits(rows: Rows, scale: Scale) -> bool:
    """Whether the survey applies: enough rows, sums that fit float32, and targets that fit float64."""
    moderate = are_moderate(scale, rows.weights_extent)
    return FEW_ROWS <= len(rows.scores) < 2**32 and moderate and fit_doubles(rows)  # row numbers are uint32


def are_moderate(scale: Scale, weights: Extent) -> bool:
    """Whether float32 holds the sums of a survey."""
    return (scale.greatest == 0 or 1e-18 < scale.greatest < 1e18) and 1e-9 < weights.least <= weights.highest < 1e9


def fit_doubles(rows: Rows) -> bool:
    """Whether float64 holds all targets; 2**53 + 1 is rounded to 2**53."""
    extent = rows.targets_extent
    return rows.targets.dtype.kind == "f" or max(-extent.lowest, extent.highest) < 2**53


def are_labels(rows: Rows) -> bool:
    """Whether the survey counts rows: targets 0 and 1 without weights."""
    targets = rows.targets_extent
    return targets.integral and targets.lowest >= 0 and targets.highest <= 1 and not len(rows.weights)


def fit_unsorted(rows: Rows, scale: Scale, *, decreasing: bool, bounds: tuple[float, float], n_threads: int) -> Steps:
    """The staircase of unsorted rows that `suits` accepts.

    Raises NotLabels if targets that should be 0 or 1 are not, or a score is NaN.
    """
    sample = cells.sorted_sample(rows.scores)
    if not are_labels(rows) and expected_share(rows, sample, decreasing=decreasing) > _MANY_LIVE:
        return fit_sorted(in_score_order(rows), scale, decreasing=decreasing, bounds=bounds)
    labels, n = are_labels(rows), len(rows.scores)
    bucket_map = cells.make_map(sample, n / rows_per_bucket(n, labels=labels))
    shares = _shares(rows, cells.n_buckets(bucket_map), n_threads)

    bucket = np.empty(len(sample), dtype=np.int32)
    _lookup.locate(sample, bucket_map, bucket)
    crowded = n * greatest_share(bucket) > _MOST_ROWS_EXPECTED

    table = survey(rows, bucket_map, shares, crowded=crowded)
    live = plan(table, len(rows.scores), scale.greatest, len(shares), decreasing=decreasing)
    directory, n_live = index_live(live)
    atoms, atom_runs, share = find_atoms(sample, bucket, live, n_live)
    if share > _MANY_LIVE:
        return fit_sorted(in_score_order(rows), scale, decreasing=decreasing, bounds=bounds)
    live_buckets = LiveBuckets(n_live, bucket_map, directory, atoms, atom_runs)

    if not labels:
        del table  # the memory is needed for collected rows
    found, runs = collect(rows, scale, live_buckets, shares, summed=not labels)
    if labels:
        _collect.sum_labels(table, directory, atom_runs, *found, *runs)
    weighted = len(rows.weights) > 0
    return finish(found, runs, scale, live_buckets, n_threads, weighted, decreasing=decreasing, bounds=bounds)


def greatest_share(bucket: NDArray[np.int32]) -> float:
    """The share of the fullest bucket, from the ascending buckets of a sample."""
    ends = np.flatnonzero(np.diff(bucket, append=-1))
    return float(np.diff(ends, prepend=-1).max(initial=0)) / max(1, len(bucket))


def expected_share(rows: Rows, sample: NDArray[np.float64], *, decreasing: bool) -> float:
    """The share of rows in live buckets, estimated from a fit of some rows.

    Live buckets are near the ends of steps.  The number of steps grows with the cube root of the number of rows.
    """
    repeats = np.diff(cells.firsts(sample), append=len(sample))
    if 4 * np.count_nonzero(repeats == 1) < len(sample):  # most rows are atoms
        return 0.0
    n = len(rows.scores)
    some = slice(None, None, max(128, n >> 14))
    x, y, w = (column[some] for column in rows[:3])
    table = _small.fit(x, y, w if len(w) else None, -np.inf, np.inf, decreasing, -np.inf, np.inf)
    n_steps = 0 if table is None else table.shape[1] * float(np.cbrt(n / len(x)))
    return n_steps * _LIVE_ROWS_PER_STEP * rows_per_bucket(n, labels=False) ** 2 / n


def rows_per_bucket(n: int, *, labels: bool) -> float:
    """The best measured for 10^5 to 10^7 rows.  Small buckets leave few rows live, but their table is large."""
    return (0.8 if labels else 0.62) * float(n) ** 0.2


def _shares(rows: Rows, n_buckets: int, n_threads: int) -> list[slice]:
    """The rows of each thread.  All their tables together take less than a quarter of the memory of the rows."""
    size = sum(column.nbytes for column in rows[:3])
    bucket_size = 4 if are_labels(rows) else 16
    return threads.parts(len(rows.scores), min(n_threads, max(1, size // (4 * bucket_size * n_buckets))))


def survey(rows: Rows, bucket_map: Map, shares: list[slice], *, crowded: bool = False) -> Table:
    """The summary of each bucket.  `crowded`: a bucket probably has more than 65535 rows."""
    n_buckets = cells.n_buckets(bucket_map)
    if are_labels(rows):
        if not crowded:
            table = _survey_labels(rows, bucket_map, shares, np.dtype(np.uint32))
            # short words are faster; if a bucket has more than 65535 rows, some are missing from the total
            if (table & 0xFFFF).sum(dtype=np.int64) == len(rows.scores):
                return table
        return _survey_labels(rows, bucket_map, shares, np.dtype(np.uint64))
    centre = float(np.median(rows.targets[:: max(1, len(rows.targets) // 1024)]))

    def scan(part: slice) -> Table:
        table = np.empty((n_buckets, 4), dtype=np.uint32)
        _survey.clear_summaries(table)
        columns = rows.scores[part], rows.targets[part], rows.weights[part]
        _survey.survey(*columns, centre, bucket_map, NO_BUCKETS, table)
        return table

    table, *others = threads.each(scan, shares)
    for other in others:
        _survey.add_summaries(table, other)
    return table


def _survey_labels(rows: Rows, bucket_map: Map, shares: list[slice], word: np.dtype[np.unsignedinteger]) -> Table:
    def scan(part: slice) -> Table:
        table = np.zeros((cells.n_buckets(bucket_map), 1), dtype=word)
        if not _survey.survey_labels(rows.scores[part], rows.targets[part], bucket_map, NO_BUCKETS, table):
            raise NotLabels
        return table

    table, *others = threads.each(scan, shares)
    for other in others:
        table += other
    return table


def plan(table: Table, roundings: int, greatest: float, n_threads: int, *, decreasing: bool) -> NDArray[np.uint8]:
    """Which buckets are live.  Threads plan consecutive buckets separately: chords may end anywhere.

    `roundings`: the largest number of roundings in a sum.
    """
    live = np.empty(len(table), dtype=np.uint8)
    kernel = _wide.plan_buckets if table.dtype == np.float64 else _survey.plan_buckets

    def mark(part: slice) -> None:
        work = np.empty((3, part.stop - part.start))
        kernel(table[part], decreasing, roundings, greatest, work, live[part])

    threads.each(mark, threads.parts(len(table), n_threads))
    return live


def index_live(live: NDArray[np.uint8]) -> tuple[NDArray[np.uint64], int]:
    """The directory of live buckets (`_plan.pxd`), and their number."""
    directory = np.empty(len(live) // 32 + 1, dtype=np.uint64)
    return directory, _survey.index_live(live, directory)


class Collector:
    """Collects live rows from one part of the rows after another, up to `size` at a time, and sums all others."""

    def __init__(self, live: LiveBuckets, scale: Scale, size: int, *, summed: bool) -> None:
        n_runs = live.n + 1 + int(np.count_nonzero(live.atom_runs >= 0))
        self.live, self.scale, self.summed = live, scale, summed
        self.runs = Runs(np.zeros(n_runs, np.int64), np.zeros((n_runs, scale.s_words + scale.w_words), np.uint64))
        # memory that remains unused costs nothing
        self.found = LiveRows(np.empty((size, 3), dtype=np.uint64), np.empty(size, dtype=np.int32))
        self.work = np.zeros(_collect.collect_size(n_runs if summed else 0), dtype=np.uint8)

    def add(self, columns: Columns, buckets: NDArray[np.int32]) -> LiveRows:
        """The live rows among these; views that the next call overwrites.  `buckets`: see NO_BUCKETS."""
        live = self.live
        n_found = _collect.collect(
            *columns, live.bucket_map, buckets, live.directory, live.atoms, live.atom_runs, self.scale, self.summed,
            _VECTORS, *self.found, *self.runs, self.work,
        )  # fmt: skip
        return LiveRows._make(column[:n_found] for column in self.found)


def collect(rows: Rows, scale: Scale, live: LiveBuckets, shares: list[slice], *, summed: bool) -> tuple[LiveRows, Runs]:
    """The rows in live buckets, and the sums of all others, if `summed`."""

    def scan(part: slice) -> tuple[LiveRows, Runs]:
        collector = Collector(live, scale, part.stop - part.start, summed=summed)
        columns = rows.scores[part], rows.targets[part], rows.weights[part]
        return collector.add(columns, NO_BUCKETS), collector.runs

    found, runs = zip(*threads.each(scan, shares), strict=True)
    for others in runs[1:]:
        _collect.add_runs(scale, *runs[0], *others)
    return LiveRows(*(np.concatenate(columns) for columns in zip(*found, strict=True))), runs[0]


class Items(NamedTuple):
    """Collected rows, and the runs between them, in score order."""

    x: NDArray[np.float64]  # NaN for runs, except of atoms
    y: NDArray[np.float64]
    w: NDArray[np.float64]  # or empty: all are 1
    tied: NDArray[np.uint8]  # whether the score is that of the item before
    run: NDArray[np.intp]  # the number of the run, or -1: a row


def in_sequence(found: LiveRows, runs: Runs, live: LiveBuckets, n_threads: int, weighted: bool) -> Items:
    """The collected rows, sorted, and the runs between them."""
    n_rows = len(found.places)
    ends, ordered = np.empty(live.n + 1, dtype=np.intp), np.empty((n_rows + 1, 3), dtype=np.uint64)
    _finish.arrange(*found, ends, ordered)

    def sort(part: slice) -> None:
        start, stop = (int(ends[q - 1]) if q else 0 for q in (part.start, part.stop))
        _finish.sort_buckets(ordered, ends, part.start, part.stop, np.empty((stop - start + 1, 3), dtype=np.uint64))

    threads.each(sort, threads.cut(live.n, n_threads if n_rows >= _ROWS_TO_SORT_IN_THREADS else 1))

    n_items = n_rows + len(runs.rows)
    x, y, w = np.empty(n_items), np.empty(n_items), np.empty(n_items if weighted else 0)
    tied, run = np.empty(n_items, dtype=np.uint8), np.empty(n_items, dtype=np.intp)
    n_items = _finish.sequence(ordered, ends, live.atoms, live.atom_runs, runs.rows, x, y, w, tied, run)
    if n_items == 0:
        raise RuntimeError("`scores` or `targets` changed during the call: no row is left.")
    return Items._make(column[:n_items] for column in (x, y, w, tied, run))


def finish(
    found: LiveRows,
    runs: Runs,
    scale: Scale,
    live: LiveBuckets,
    n_threads: int,
    weighted: bool,
    *,
    decreasing: bool,
    bounds: tuple[float, float],
) -> Steps:
    """The staircase of the collected rows and the runs between them."""
    x, y, w, tied, run = in_sequence(found, runs, live, n_threads, weighted)
    n_items = len(x)
    starts, values, weights = np.empty(n_items + 1, dtype=np.intp), np.empty(n_items), np.empty(n_items)
    words = np.empty(0 if scale.narrow else n_items * runs.words.shape[1], dtype=np.uint64)
    known = np.empty(n_items, dtype=np.uint8)
    n_steps = _finish.merge_items(
        y, w, tied, run, runs.words, scale, decreasing, *bounds, starts, values, weights, known, words
    )
    starts[n_steps] = n_items
    starts = starts[: n_steps + 1]
    counts = np.add.reduceat(np.where(run >= 0, runs.rows[run], 1), starts[:-1])
    return Steps(x[starts[:-1]], x[starts[1:] - 1], values[:n_steps].copy(), weights[:n_steps].copy(), counts)


def find_atoms(
    sample: NDArray[np.float64], bucket: NDArray[np.int32], live: NDArray[np.uint8], n_live: int
) -> tuple[NDArray[np.float64], NDArray[np.int32], float]:
    """The atom of each live bucket, the run that sums its rows, and the share of all other live rows.

    The atom is the most frequent score in a sorted sample of scores, whose buckets are given.  Without it, a bucket of
    one repeated score would have many rows to sort.
    """
    in_live = live[bucket] == 1
    first = cells.firsts(sample[in_live])  # place of each distinct score
    repeats = np.diff(first, append=np.count_nonzero(in_live))
    frequent = np.argsort(repeats, kind="stable")[np.count_nonzero(repeats == 1) :]
    if not len(frequent):
        return np.empty(0), np.empty(0, dtype=np.int32), np.count_nonzero(in_live) / max(1, len(sample))
    place = np.searchsorted(np.flatnonzero(live), bucket[in_live][first[frequent]])
    atoms, rows = np.full(n_live + 1, np.nan), np.zeros(n_live + 1)
    atoms[place] = sample[in_live][first[frequent]]  # the last one written repeats most
    rows[place] = repeats[frequent]
    found = rows > 0
    share = (np.count_nonzero(in_live) - rows.sum()) / len(sample)
    return atoms, np.where(found, n_live + np.cumsum(found), -1).astype(np.int32), share
