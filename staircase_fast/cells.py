"""A monotone map from scores to buckets that is even for any distribution of scores (`_cells.pxd` evaluates it)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from staircase_fast import _lookup

_CELLS = 512
_FEW_PARTS, _EVEN_PARTS = 16, 16
_LARGEST = np.finfo(np.float64).max

Map = NDArray[np.float64]  # a row per cell: origin, parts per unit of score, parts less one, buckets before it


def sorted_sample(scores: NDArray[Any]) -> NDArray[np.float64]:
    """Some thousand scores from all over, finite ones, sorted."""
    n = len(scores)
    picks = np.linspace(0, n - 1, min(n, max(1024, min(n // 64, 1 << 15)))).astype(np.intp)
    sample = scores[picks].astype(np.float64)
    return np.sort(sample[np.isfinite(sample)])


def make_map(sample: NDArray[np.float64], wanted: int) -> Map:
    """A map to about `wanted` buckets that the sorted sample fills evenly."""
    m = len(sample)
    if m == 0 or sample[0] == sample[-1]:
        return np.array([[0.0, 1.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0]])
    # the outermost thousandths do not decide where the bulk is cut
    low, high = sample[m // 1000], sample[m - 1 - m // 1000]
    if low == high:
        low, high = sample[0], sample[-1]
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        scale = _parts_per_unit(np.float64(_CELLS), low, high)
        cell = np.clip(np.nan_to_num((sample - low) * scale), 0, _CELLS - 1).astype(np.intp)
        edges = np.searchsorted(cell, np.arange(_CELLS + 1))
        first, last = np.minimum(edges[:-1], m - 1), np.maximum(edges[1:] - 1, 0)
        spread = (edges[1:] > edges[:-1]) & (sample[last] > sample[first])
        parts = np.where(spread, np.maximum(np.round(wanted * np.diff(edges) / m), 1), 1)
        cells = np.empty((_CELLS, 4))
        cells[:, 0] = np.where(spread, sample[first], 0.0)
        cells[:, 1] = np.where(spread, _parts_per_unit(parts, sample[first], sample[last]), 1.0)
    cells[:, 2] = parts - 1
    cells[:, 3] = np.cumsum(parts) - parts
    return np.concatenate([[[low, scale, _CELLS - 1, 0.0]], cells])


def make_index(left: NDArray[np.float64]) -> tuple[Map, NDArray[np.int32]]:
    """A map in which few steps start in one bucket wherever queries fall, and how many start before each bucket."""
    finite = left[np.isfinite(left)]
    bucket_map = make_map(finite, 4 * len(left))
    if len(bucket_map) > 2:
        # queries come from everywhere, not from where steps are: cut cells of few steps evenly, and all of them finely
        low, scale = bucket_map[0, :2]
        with np.errstate(over="ignore", invalid="ignore"):
            start = low + np.arange(_CELLS) / scale
            even = (bucket_map[1:, 2] <= _FEW_PARTS) & np.isfinite(start)
            bucket_map[1:, 0] = np.where(even, start, bucket_map[1:, 0])
            bucket_map[1:, 1] = np.where(even, np.minimum(scale * _EVEN_PARTS, _LARGEST), bucket_map[1:, 1])
            bucket_map[1:, 2] = np.where(even, _EVEN_PARTS - 1, bucket_map[1:, 2])
        bucket_map[2:, 3] = np.cumsum(bucket_map[1:-1, 2] + 1)
    first = np.empty(n_buckets(bucket_map) + 1, dtype=np.int32)
    _lookup.index_steps(left, bucket_map, first)
    return bucket_map, first


def n_buckets(bucket_map: Map) -> int:
    """How many buckets a map has."""
    return int(bucket_map[-1, 2:].sum()) + 1


def _parts_per_unit(parts: Any, low: Any, high: Any) -> Any:
    width = high - low
    wide = parts * 0.5 / (high * 0.5 - low * 0.5)  # where the width overflows
    return np.minimum(np.where(np.isfinite(width), parts / width, wide), _LARGEST)
