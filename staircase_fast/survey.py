"""The fit of unsorted rows: two scans and a small sort (`_survey.pyx` says why that is enough)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from staircase_fast import _lookup, _survey, cells
from staircase_fast._validation import Rows, Steps
from staircase_fast.cells import Map
from staircase_fast.exact import Scale
from staircase_fast.order import in_score_order
from staircase_fast.ordered import fit_sorted

FEW_ROWS = 20_000
_ROWS_PER_BUCKET = 16


def suits(rows: Rows, scale: Scale) -> bool:
    """Whether these rows are many enough, and such that a double holds each target and, if integers, each sum."""
    targets, weights = rows.targets_extent, rows.weights_extent
    greatest = max(-targets.lowest, targets.highest)
    total = greatest * weights.highest * len(rows.scores) if scale.narrow else greatest
    exact = total <= 2**53 or (rows.targets.dtype.kind == "f" and not scale.narrow)
    return FEW_ROWS <= len(rows.scores) < 2**32 and scale.tame and exact  # labels are counted in half words


def fit_unsorted(rows: Rows, scale: Scale, *, decreasing: bool, bounds: tuple[float, float]) -> Steps:
    """The staircase of unsorted rows that `suits` accepts."""
    n = len(rows.scores)
    columns = rows.scores, rows.targets, rows.weights
    sample = cells.sorted_sample(rows.scores)
    bucket_map = cells.make_map(sample, n // _ROWS_PER_BUCKET)
    n_buckets = cells.n_buckets(bucket_map)

    table = survey(rows, bucket_map, n_buckets)
    live = plan(table, n, scale.greatest, decreasing=decreasing)
    n_live = int(np.count_nonzero(live))
    bits = np.zeros(-(-n_buckets // 64) * 8, dtype=np.uint8)
    bits[: -(-n_buckets // 8)] = np.packbits(live, bitorder="little")

    atoms, atom_runs = find_atoms(sample, bucket_map, live, first_run=n_live + 1)
    runs = np.zeros((n_live + 1 + np.count_nonzero(atom_runs >= 0), 2))
    kept = np.empty((n + 1, 3))
    n_kept = _survey.collect(*columns, bucket_map, bits.view(np.uint64), atoms, atom_runs, kept, runs)

    n_items = n_kept + len(runs)
    x, y = np.empty(n_items), np.empty(n_items)
    item_weights = np.empty(n_items if len(rows.weights) else 0)
    run, ends = np.empty(n_items, dtype=np.intp), np.empty(n_buckets + 1, dtype=np.intp)
    n_items = _survey.sequence(
        kept, n_kept, table, bucket_map, bits.view(np.uint64), atoms, atom_runs, decreasing,
        np.empty((max(n_kept, 1), 3)), ends, runs, x, y, item_weights, run,
    )  # fmt: skip

    starts, values, weights = np.empty(n_items + 1, dtype=np.intp), np.empty(n_items), np.empty(n_items)
    n_words = scale.s_words + scale.w_words
    words = np.empty(0 if scale.narrow else (n_items + 1) * n_words, dtype=np.uint64)
    n_steps = _survey.finish_items(
        x[:n_items], y, item_weights, run, runs, scale, decreasing, rows.weights_extent.least, *bounds,
        starts, values, weights, np.empty(n_items, dtype=np.uint8), words,
    )  # fmt: skip
    if n_steps < 0:  # a tie, or nearly one, between large blocks of rounded sums
        return fit_sorted(in_score_order(rows), scale, decreasing=decreasing, bounds=bounds)
    left = x[starts[:n_steps]]
    if scale.narrow and not len(rows.weights):
        counts = weights[:n_steps].astype(np.int64)
    else:
        index = cells.make_index(left)
        counts = np.zeros(n_steps, dtype=np.intp)
        sums = np.zeros((0 if scale.narrow else n_steps, n_words), dtype=np.uint64)
        work = np.zeros(_survey.tally_size(n_steps), dtype=np.uint8)
        _survey.tally(*columns, left, *index, scale, work, counts, sums)
        if not scale.narrow:
            begins = starts[:n_steps].copy()
            n_steps = _survey.round_steps(scale, *bounds, starts, values, weights, sums, n_items)
            counts = np.add.reduceat(counts, np.searchsorted(begins, starts[:n_steps]))
    starts[n_steps] = n_items
    starts = starts[: n_steps + 1]
    return Steps(x[starts[:-1]], x[starts[1:] - 1], values[:n_steps].copy(), weights[:n_steps].copy(), counts)


def survey(rows: Rows, bucket_map: Map, n_buckets: int) -> NDArray[np.float64]:
    """Sums and extremes of each bucket."""
    targets = rows.targets_extent
    if targets.integral and targets.lowest >= 0 and targets.highest <= 1 and not len(rows.weights):
        words = np.zeros(n_buckets, dtype=np.uint64)
        _survey.survey_labels(rows.scores, rows.targets, bucket_map, words)
        table = np.empty((n_buckets, 4))
        _survey.unpack_labels(words, table)
    else:
        table = np.zeros((n_buckets, 4))
        table[:, 2] = np.inf
        table[:, 3] = -np.inf
        _survey.survey(rows.scores, rows.targets, rows.weights, bucket_map, table)
    return table


def plan(table: NDArray[np.float64], n_rows: int, greatest: float, *, decreasing: bool) -> NDArray[np.uint8]:
    """Which buckets can hold the end of a step."""
    n = len(table)
    live, starts = np.empty(n, dtype=np.uint8), np.empty(n, dtype=np.intp)
    _survey.plan_buckets(table, decreasing, n_rows, greatest, starts, np.empty(n), np.empty(n), live)
    return live


def find_atoms(
    sample: NDArray[np.float64], bucket_map: Map, live: NDArray[np.uint8], *, first_run: int
) -> tuple[NDArray[np.float64], NDArray[np.int32]]:
    """In each live bucket the score that repeats most in the sample, and a run in which to sum its rows."""
    edges = np.flatnonzero(np.concatenate([[True], sample[1:] != sample[:-1]])) if len(sample) else np.empty(0, np.intp)
    repeats = np.diff(edges, append=len(sample))
    scores, repeats = sample[edges[repeats > 1]], repeats[repeats > 1]
    bucket = np.empty(len(scores), dtype=np.intp)
    _lookup.locate(scores, bucket_map, bucket)
    by_repeats = np.argsort(repeats, kind="stable")[live[bucket][np.argsort(repeats, kind="stable")] == 1]
    if not len(by_repeats):
        return np.empty(0), np.empty(0, dtype=np.int32)
    atoms = np.full(len(live), np.nan)
    atoms[bucket[by_repeats]] = scores[by_repeats]  # the last one written repeats most
    found = ~np.isnan(atoms)
    return atoms, np.where(found, first_run - 1 + np.cumsum(found), -1).astype(np.int32)
