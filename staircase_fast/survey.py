"""The fit of unsorted rows: two scans and a small sort (`_survey.pyx` says why that is enough)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from staircase_fast import _lookup, _survey, cells
from staircase_fast._validation import Rows
from staircase_fast.cells import Map
from staircase_fast.exact import Scale
from staircase_fast.ordered import Steps

FEW_ROWS = 20_000
_ROWS_PER_BUCKET = 16
_OVERFULL = 64


def suits(rows: Rows, scale: Scale) -> bool:
    """Whether these rows are many enough, and such that a double holds each target and, if integers, each sum."""
    targets, weights = rows.targets_extent, rows.weights_extent
    greatest = max(-targets.lowest, targets.highest)
    total = greatest * weights.highest * len(rows.scores) if scale.narrow else greatest
    exact = total <= 2**53 or (rows.targets.dtype.kind == "f" and not scale.narrow)
    return len(rows.scores) >= FEW_ROWS and scale.tame and exact


def fit_unsorted(rows: Rows, scale: Scale, *, decreasing: bool, bounds: tuple[float, float]) -> Steps:
    """The staircase of unsorted rows that `suits` accepts."""
    n = len(rows.scores)
    sample = cells.sorted_sample(rows.scores)
    bucket_map = cells.make_map(sample, max(n // _ROWS_PER_BUCKET, 1))
    n_buckets = cells.n_buckets(bucket_map)
    columns = rows.scores, rows.targets, rows.weights
    table = survey(rows, bucket_map, n_buckets)

    live = np.empty(n_buckets, dtype=np.uint8)
    starts, s, w = np.empty(n_buckets, dtype=np.intp), np.empty(n_buckets), np.empty(n_buckets)
    _survey.plan_buckets(table, decreasing, scale.greatest, starts, s, w, live)
    places, runs = starts, np.empty((n_buckets + 1, 3))
    n_kept, n_runs = _survey.lay_out(table, decreasing, live, places, runs)
    begins = places.copy()

    atoms, atom_runs = find_atoms(sample, bucket_map, table, places, n_runs)
    n_sums = n_runs + int(np.count_nonzero(atom_runs >= 0))
    runs = np.concatenate([runs[:n_runs], np.zeros((n_sums - n_runs, 3))])
    run_words = np.zeros((0 if scale.narrow else n_sums, scale.s_words + scale.w_words), dtype=np.uint64)
    kept = np.empty((max(n_kept, 1), 3))
    _survey.collect(*columns, bucket_map, places, atoms, atom_runs, scale, kept, runs, run_words)

    n_items = n_kept + n_sums
    x, y = np.empty(n_items), np.empty(n_items)
    item_weights = np.empty(n_items if len(rows.weights) else 0)
    run, before = np.empty(n_items, dtype=np.intp), np.empty(n_items + 1, dtype=np.intp)
    n_items = _survey.sequence(kept, begins, places, atoms, atom_runs, runs, x, y, item_weights, run, before)

    starts, values, weights = np.empty(n_items + 1, dtype=np.intp), np.empty(n_items), np.empty(n_items)
    known = np.empty(n_items, dtype=np.uint8)
    words = np.empty(0 if scale.narrow else (n_items + 1) * (scale.s_words + scale.w_words), dtype=np.uint64)
    n_steps = _survey.finish_items(
        x[:n_items],
        y,
        item_weights,
        run,
        runs,
        run_words,
        scale,
        decreasing,
        n,
        *bounds,
        starts,
        values,
        weights,
        known,
        words,
    )
    starts[n_steps] = n_items
    starts = starts[: n_steps + 1]
    return Steps(
        x[starts[:-1]], x[starts[1:] - 1], values[:n_steps].copy(), weights[:n_steps].copy(), np.diff(before[starts])
    )


def survey(rows: Rows, bucket_map: Map, n_buckets: int) -> NDArray[np.float64]:
    """Sums and extremes of each bucket."""
    targets = rows.targets_extent
    if targets.integral and targets.lowest >= 0 and targets.highest <= 1 and not len(rows.weights):
        words = np.zeros(n_buckets, dtype=np.uint64)
        _survey.survey_labels(rows.scores, rows.targets, bucket_map, words)
        table = np.empty((n_buckets, 5))
        _survey.unpack_labels(words, table)
    else:
        table = np.zeros((n_buckets, 5))
        table[:, 2] = np.inf
        table[:, 3] = -np.inf
        _survey.survey(rows.scores, rows.targets, rows.weights, bucket_map, table)
    return table


def find_atoms(
    sample: NDArray[np.float64],
    bucket_map: Map,
    table: NDArray[np.float64],
    places: NDArray[np.intp],
    n_runs: int,
) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    """For overfull live buckets, the score that repeats most in the sample, and a run in which to sum its rows."""
    overfull = (places >= 0) & (table[:, 4].view(np.int64) > _OVERFULL)
    if not overfull.any() or len(sample) == 0:
        return np.empty(0), np.empty(0, dtype=np.intp)
    edges = np.flatnonzero(np.concatenate([[True], sample[1:] != sample[:-1]]))
    scores, repeats = sample[edges], np.diff(np.append(edges, len(sample)))
    scores, repeats = scores[repeats > 1], repeats[repeats > 1]
    bucket = np.empty(len(scores), dtype=np.intp)
    if len(scores):
        _lookup.locate(scores, bucket_map, bucket)
    by_repeats = np.argsort(repeats, kind="stable")
    atoms = np.full(len(places), np.nan)
    atoms[bucket[by_repeats]] = scores[by_repeats]  # the last one written repeats most
    atoms[~overfull] = np.nan
    atom_runs = np.where(np.isnan(atoms), -1, n_runs - 1 + np.cumsum(~np.isnan(atoms)))
    return atoms, atom_runs.astype(np.intp)
