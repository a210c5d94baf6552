"""The fit of unsorted rows: two scans and a small sort (`_survey.pyx` says why that is enough)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from staircase_fast import _finish, _lookup, _survey, cells
from staircase_fast._validation import Rows, Steps
from staircase_fast.cells import Map
from staircase_fast.exact import Scale
from staircase_fast.ordered import fit_sorted, in_score_order

FEW_ROWS = 20_000
_ROWS_PER_BUCKET = 16
_MANY_LIVE = 0.3  # of all rows: to sort all is as fast
_EMPTY = np.array([(0, 0, 0, 0x80007FFF)], dtype="u4,u4,u4,u4").view(np.uint32)  # a Summary of no rows


class Runs(NamedTuple):
    """Rows that are not looked at one by one (`_survey.pyx`)."""

    rows: NDArray[np.int64]
    words: NDArray[np.uint64]


def suits(rows: Rows, scale: Scale) -> bool:
    """Whether these rows are many enough, and such that float32 holds their sums, and a double each target."""
    weights = rows.weights_extent
    moderate = (scale.greatest == 0 or 1e-18 < scale.greatest < 1e18) and 1e-9 < weights.least <= weights.highest < 1e9
    exact = rows.targets.dtype.kind == "f" or scale.greatest <= 2**53
    return FEW_ROWS <= len(rows.scores) < 2**32 and moderate and exact  # rows are numbered in half words


def fit_unsorted(rows: Rows, scale: Scale, *, decreasing: bool, bounds: tuple[float, float]) -> Steps:
    """The staircase of unsorted rows that `suits` accepts."""
    n = len(rows.scores)
    columns = rows.scores, rows.targets, rows.weights
    sample = cells.sorted_sample(rows.scores)
    bucket_map = cells.make_map(sample, n // _ROWS_PER_BUCKET)

    table = survey(rows, bucket_map)
    live = plan(table, n, scale.greatest, decreasing=decreasing)
    directory = np.empty(len(live) // 32 + 1, dtype=np.uint64)
    n_live = _survey.index_live(live, directory)
    atoms, atom_runs, share = find_atoms(sample, bucket_map, live, n_live)
    if share > _MANY_LIVE:
        return fit_sorted(in_score_order(rows), scale, decreasing=decreasing, bounds=bounds)

    n_runs = n_live + 1 + np.count_nonzero(atom_runs >= 0)
    runs = Runs(np.zeros(n_runs, np.int64), np.zeros((n_runs, scale.s_words + scale.w_words), np.uint64))
    kept = np.empty(n + 1, dtype=np.uint32)  # what is not filled is never touched, so it costs nothing
    work = np.zeros(_survey.collect_size(n_runs), dtype=np.uint8)
    n_kept = _survey.collect(
        *columns, 0, bucket_map, directory, atoms, atom_runs, scale, table.ndim > 1, kept, *runs, work
    )
    if table.ndim == 1:
        _survey.sum_labels(*columns[:2], bucket_map, table, directory, atom_runs, kept[:n_kept], *runs)

    n_items = n_kept + n_runs
    x, y = np.empty(n_items), np.empty(n_items)
    w = np.empty(n_items if len(rows.weights) else 0)
    tied, run = np.empty(n_items, dtype=np.uint8), np.empty(n_items, dtype=np.intp)
    n_items = _finish.sequence(
        *columns, kept[:n_kept], bucket_map, directory, atoms, atom_runs, runs.rows,
        np.empty((n_kept + 1, 3)), np.empty(n_live + 1, dtype=np.intp), x, y, w, tied, run,
    )  # fmt: skip
    starts, values, weights = np.empty(n_items + 1, dtype=np.intp), np.empty(n_items), np.empty(n_items)
    words = np.empty(0 if scale.narrow else n_items * runs.words.shape[1], dtype=np.uint64)
    n_steps = _finish.merge_items(
        y[:n_items], w, tied, run, runs.words, scale, decreasing, *bounds,
        starts, values, weights, np.empty(n_items, dtype=np.uint8), words,
    )  # fmt: skip
    starts[n_steps] = n_items
    starts, run = starts[: n_steps + 1], run[:n_items]
    counts = np.add.reduceat(np.where(run >= 0, runs.rows[run], 1), starts[:-1])
    return Steps(x[starts[:-1]], x[starts[1:] - 1], values[:n_steps].copy(), weights[:n_steps].copy(), counts)


def survey(rows: Rows, bucket_map: Map) -> NDArray[np.unsignedinteger]:
    """The summary of each bucket."""
    n_buckets = cells.n_buckets(bucket_map)
    targets = rows.targets_extent
    if targets.integral and targets.lowest >= 0 and targets.highest <= 1 and not len(rows.weights):
        table = np.zeros(n_buckets, dtype=np.uint32)
        _survey.survey_labels(rows.scores, rows.targets, bucket_map, table)
        # short words are fast; one that overflows loses 65536 rows
        if int(table.view(np.uint16)[::2].sum(dtype=np.int64)) != len(rows.scores):
            table = np.zeros(n_buckets, dtype=np.uint64)
            _survey.survey_labels(rows.scores, rows.targets, bucket_map, table)
        return table
    some = rows.targets[:: max(1, len(rows.targets) // 1024)]
    table = np.tile(_EMPTY, (n_buckets, 1))
    _survey.survey(*rows[:3], float(np.median(some)), bucket_map, table)
    return table


def plan(
    table: NDArray[np.unsignedinteger], n_rows: int, greatest: float, *, decreasing: bool
) -> NDArray[np.uint8]:
    """Which buckets can hold the end of a step."""
    n = len(table)
    live = np.empty(n, dtype=np.uint8)
    work = np.empty(n, dtype=np.intp), np.empty(n), np.empty(n)
    if table.ndim == 1:
        _survey.plan_labels(table, decreasing, n_rows, *work, live)
    else:
        _survey.plan_summaries(table, decreasing, n_rows, greatest, *work, live)
    return live


def find_atoms(
    sample: NDArray[np.float64], bucket_map: Map, live: NDArray[np.uint8], n_live: int
) -> tuple[NDArray[np.float64], NDArray[np.int32], float]:
    """In each live bucket the score that repeats most in the sample, a run in which to sum its rows; and the share of
    rows that are in live buckets and not such.
    """
    bucket = np.empty(len(sample), dtype=np.int32)
    _lookup.locate(sample, bucket_map, bucket)
    alive = live[bucket] == 1
    first = cells.firsts(sample[alive])  # of each distinct score
    repeats = np.diff(first, append=np.count_nonzero(alive))
    frequent = np.argsort(repeats, kind="stable")[np.count_nonzero(repeats == 1) :]
    if not len(frequent):
        return np.empty(0), np.empty(0, dtype=np.int32), np.count_nonzero(alive) / max(1, len(sample))
    place = np.searchsorted(np.flatnonzero(live), bucket[alive][first[frequent]])
    atoms, rows = np.full(n_live + 1, np.nan), np.zeros(n_live + 1)
    atoms[place] = sample[alive][first[frequent]]  # the last one written repeats most
    rows[place] = repeats[frequent]
    found = rows > 0
    share = (np.count_nonzero(alive) - rows.sum()) / len(sample)
    return atoms, np.where(found, n_live + np.cumsum(found), -1).astype(np.int32), share
