"""The fit of unsorted rows: two scans and a small sort (`_survey.pyx` says why that is enough)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from staircase_fast import _survey
from staircase_fast._validation import Rows
from staircase_fast.exact import Scale
from staircase_fast.ordered import Steps

FEW_ROWS = 20_000
_CELLS = 512
_ROWS_PER_BUCKET = 16
_OVERFULL = 64

Map = NDArray[np.float64]  # Cells: origin, scale, parts less one, buckets before; the first cuts the whole range


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
    sample = sorted_sample(rows.scores)
    bucket_map = make_map(sample, max(n // _ROWS_PER_BUCKET, 1))
    n_buckets = int(bucket_map[-1, 2:].sum()) + 1
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


def sorted_sample(scores: NDArray[Any]) -> NDArray[np.float64]:
    """Some thousand scores from all over, finite ones, sorted."""
    n = len(scores)
    sample = scores[np.linspace(0, n - 1, min(n, max(1024, min(n // 64, 1 << 15)))).astype(np.intp)].astype(np.float64)
    return np.sort(sample[np.isfinite(sample)])


def make_map(sample: NDArray[np.float64], n_buckets: int) -> Map:
    """A monotone map from scores to about `n_buckets` buckets that the sample fills evenly."""
    m = len(sample)
    if m == 0 or sample[0] == sample[-1]:
        middle = sample[0] if m else 0.0
        return np.array([[0.0, 1.0, 0.0, 0.0], [middle, 1.0, 0.0, 0.0]])
    low, high = sample[m // 1000], sample[m - 1 - m // 1000]
    if low == high:
        low, high = sample[0], sample[-1]
    with np.errstate(over="ignore", invalid="ignore"):
        scale = _scale(_CELLS, low, high)
        cell = np.clip(np.nan_to_num((sample - low) * scale), 0, _CELLS - 1).astype(np.intp)
        first = np.searchsorted(cell, np.arange(_CELLS + 1))
        cells = np.zeros((_CELLS, 4))
        for c in range(_CELLS):
            a, b = first[c], first[c + 1]
            share = max(round(n_buckets * (b - a) / m), 1)
            if b > a and sample[a] < sample[b - 1]:
                cells[c] = sample[a], _scale(share, sample[a], sample[b - 1]), share - 1, 0
            else:
                cells[c] = sample[a] if b > a else 0.0, 1.0, 0, 0
    cells[1:, 3] = np.cumsum(cells[:-1, 2] + 1)
    return np.concatenate([[[low, scale, _CELLS - 1, 0.0]], cells])


def _scale(n: int, low: float, high: float) -> float:
    """Cuts of [low, high] per unit of score."""
    width = high - low
    return min(n / width if np.isfinite(width) else n * 0.5 / (high * 0.5 - low * 0.5), np.finfo(np.float64).max)


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
        _survey.locate(scores, bucket_map, bucket)
    by_repeats = np.argsort(repeats, kind="stable")
    atoms = np.full(len(places), np.nan)
    atoms[bucket[by_repeats]] = scores[by_repeats]  # the last one written repeats most
    atoms[~overfull] = np.nan
    atom_runs = np.where(np.isnan(atoms), -1, n_runs - 1 + np.cumsum(~np.isnan(atoms)))
    return atoms, atom_runs.astype(np.intp)
