"""A monotone map from scores to buckets that is even for any distribution of scores (`_cells.pxd` evaluates it)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from staircase_fast import _lookup

_CELLS = 512
_EVEN = 2.0  # buckets this many times as full as they should be are no reason for a second level
_FEW_PARTS, _EVEN_PARTS = 16, 16
_LARGEST = np.finfo(np.float64).max

Map = NDArray[np.float64]  # a row per cell: parts per unit of score, shift, first part, last part


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
        return np.array([[1.0, 0.0, 0.0, 0.0]])
    # the outermost thousandths do not decide where the bulk is cut
    low, high = sample[m // 1000], sample[m - 1 - m // 1000]
    if low == high:
        low, high = sample[0], sample[-1]
    whole = _cells(low, high, 0.0, np.float64(_CELLS))
    cell = np.empty(m, dtype=np.int32)
    _lookup.locate(sample, whole, cell)
    edges = np.searchsorted(cell, np.arange(_CELLS + 1))
    if np.diff(edges).max() <= _EVEN * m / _CELLS:  # so nothing lies far outside, or the end cells would be full
        return _cells(sample[0], sample[-1], 0.0, np.float64(max(wanted, 1)))
    first, last = np.minimum(edges[:-1], m - 1), np.maximum(edges[1:] - 1, 0)
    spread = (edges[1:] > edges[:-1]) & (sample[last] > sample[first])
    parts = np.where(spread, np.maximum(np.round(wanted * np.diff(edges) / m), 1), 1)
    ends = np.where(spread, sample[first], 0.0), np.where(spread, sample[last], 1.0)
    return np.concatenate([whole, _cells(*ends, np.cumsum(parts) - parts, parts)])


def make_index(left: NDArray[np.float64]) -> tuple[Map, NDArray[np.int32]]:
    """A map in which few steps start in one bucket wherever queries fall, and how many start before each bucket."""
    finite = left[np.isfinite(left)]
    bucket_map = make_map(finite, 4 * len(left))
    if len(bucket_map) > 1:
        # queries come from everywhere, not from where steps are: cut cells of few steps evenly, and all of them finely
        scale, shift = bucket_map[0, :2]
        cells = bucket_map[1:]
        parts = cells[:, 3] - cells[:, 2] + 1
        even = (parts <= _FEW_PARTS) & (scale < _LARGEST / _EVEN_PARTS)
        parts[even] = _EVEN_PARTS
        low = np.cumsum(parts) - parts
        cells[:, 1] += low - cells[:, 2]
        cells[even, 0] = _EVEN_PARTS * scale
        cells[even, 1] = (low + _EVEN_PARTS * (shift - np.arange(_CELLS)))[even]
        cells[:, 2], cells[:, 3] = low, low + parts - 1
    first = np.empty(n_buckets(bucket_map) + 1, dtype=np.int32)
    _lookup.index_steps(left, bucket_map, first)
    return bucket_map, first


def n_buckets(bucket_map: Map) -> int:
    """How many buckets a map has."""
    return int(bucket_map[-1, 3]) + 1


def _cells(low: Any, high: Any, first: Any, parts: Any) -> Map:
    """Cells that cut [low, high] into parts numbered from `first` on."""
    with np.errstate(over="ignore", divide="ignore"):
        wide = parts * 0.5 / (high * 0.5 - low * 0.5)  # where the width overflows
        scale = np.minimum(np.where(np.isfinite(high - low), parts / (high - low), wide), _LARGEST)
    return np.stack(np.broadcast_arrays(scale, first - low * scale, first, first + parts - 1), axis=-1).reshape(-1, 4)
