"""Make bucket maps: monotone maps from scores to buckets that are filled evenly (`_cells.pxd` evaluates them).

A sorted sample of scores tells how they are distributed.  If they are spread evenly between the least and the greatest,
one cell is enough: bucket = floor(score * scale + shift).  Otherwise the range is divided into many cells of equal
width, and each cell into a number of buckets proportional to the sample scores in it.  Each cell that has enough of
them covers only the range in which they lie.

The survey uses a map with about 16 rows per bucket.  An index of steps uses a map in which few steps start in any
bucket.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from staircase_fast.staircase import _lookup

_CELLS, _MANY_CELLS = 512, 8192
_EVEN = 2.0  # one cell suffices if no part has more than this many times its share of the sample
_CROWD = 16  # a bucket is crowded from this many times its share on
_FEW = 8  # with fewer sample scores, a cell covers its whole range
_FEW_PARTS, _EVEN_PARTS = 16, 16  # cells of an index with at most so many parts get so many parts of equal width
_PARTS_PER_STEP, _MANY_STEPS = 8, 10_000
_LARGEST = np.finfo(np.float64).max

Map = NDArray[np.float64]  # a Cell per row: parts per unit of score, shift, first part, last part


def sorted_sample(scores: NDArray[Any]) -> NDArray[np.float64]:
    """A few thousand finite scores at regular positions, sorted."""
    n = len(scores)
    picks = np.linspace(0, n - 1, min(n, max(1024, min(n // 64, 1 << 15)))).astype(np.intp)
    sample = scores[picks].astype(np.float64)
    return np.sort(sample[np.isfinite(sample)])


def firsts(ascending: NDArray[Any]) -> NDArray[np.intp]:
    """The position of the first of equal entries in a sorted column."""
    new = np.ones(len(ascending), dtype=np.bool_)
    np.not_equal(ascending[1:], ascending[:-1], out=new[1:])
    return np.flatnonzero(new)


def make_map(sample: NDArray[np.float64], wanted: int) -> Map:
    """A map to about `wanted` buckets that the sorted sample fills evenly."""
    bucket_map = _map(sample, wanted, _CELLS)
    if _crowded(sample, bucket_map, _CROWD * max(1.0, len(sample) / n_buckets(bucket_map))) > 0.1:
        bucket_map = _map(sample, wanted, _MANY_CELLS)  # slower to evaluate
    return bucket_map


def _crowded(sample: NDArray[np.float64], bucket_map: Map, many: float) -> float:
    """The share of the distinct scores that share a bucket with more than `many` of them."""
    scores = sample[firsts(sample)]
    bucket = np.empty(len(scores), dtype=np.int32)
    _lookup.locate(scores, bucket_map, bucket)
    crowd = np.diff(firsts(bucket), append=len(bucket))
    return float(crowd[crowd > many].sum()) / max(1, len(scores))


def _map(sample: NDArray[np.float64], wanted: int, n_cells: int) -> Map:
    m = len(sample)
    if m == 0 or sample[0] == sample[-1]:
        return _one_cell(sample, 1)
    # ignore the outermost thousandths: outliers would make all cells wide
    low, high = sample[m // 1000], sample[m - 1 - m // 1000]
    if low == high:
        low, high = sample[0], sample[-1]
    root = _cells(low, high, 0.0, np.float64(n_cells))
    cell = np.empty(m, dtype=np.int32)
    _lookup.locate(sample, root, cell)
    edges = np.searchsorted(cell, np.arange(n_cells + 1))
    inside = np.diff(edges)
    if inside.max() <= _EVEN * m / n_cells and max(low - sample[0], sample[-1] - high) <= (high - low) / 100:
        return _one_cell(sample, wanted)
    first, last = sample[np.minimum(edges[:-1], m - 1)], sample[np.maximum(edges[1:] - 1, 0)]
    parts = np.maximum(np.round(wanted * (inside + 1) / m), 1)
    base = np.cumsum(parts) - parts
    known = (inside >= _FEW) & (last > first)  # whether the range of the cell's scores is known
    ends = _padded(np.where(known, first, 0.0), np.where(known, last, 1.0), np.maximum(inside, 1.0))
    cells = np.where(known[:, np.newaxis], _cells(*ends, base, parts), _divide_evenly(root, base, parts))
    return np.concatenate([root, cells])


def index_map(left: NDArray[np.float64]) -> Map:
    """A map in which few steps start in any bucket."""
    finite = left[np.isfinite(left)]
    wanted = (_PARTS_PER_STEP if len(left) < _MANY_STEPS else 2) * len(left)
    bucket_map = _one_cell(finite, wanted)
    if _crowded(finite, bucket_map, 2) > 0.05:
        bucket_map = make_map(finite, wanted)
        # queries need not follow the distribution of steps: cells with few steps are divided evenly over their range
        root, cells = bucket_map[:1], bucket_map[1:]
        parts = cells[:, 3] - cells[:, 2] + 1
        even = parts <= _FEW_PARTS
        parts[even] = _EVEN_PARTS
        base = np.cumsum(parts) - parts
        cells[:, 1:] += (base - cells[:, 2])[:, np.newaxis]
        cells[even] = _divide_evenly(root, base, parts)[even]
    return bucket_map


def n_buckets(bucket_map: Map) -> int:
    """The number of buckets of a map."""
    return int(bucket_map[-1, 3]) + 1


def _one_cell(sample: NDArray[np.float64], wanted: int) -> Map:
    if len(sample) == 0 or sample[0] == sample[-1]:
        return np.array([[1.0, 0.0, 0.0, 0.0]])
    return _cells(*_padded(sample[0], sample[-1], np.float64(len(sample))), 0.0, np.float64(max(wanted, 1)))


def _cells(low: Any, high: Any, first: Any, parts: Any) -> Map:
    """Cells that divide [low, high] into parts numbered from `first` on."""
    with np.errstate(over="ignore", divide="ignore"):
        wide = parts * 0.5 / (high * 0.5 - low * 0.5)  # if high - low overflows
        scale = np.minimum(np.where(np.isfinite(high - low), parts / (high - low), wide), _LARGEST)
    return np.stack(np.broadcast_arrays(scale, first - low * scale, first, first + parts - 1), axis=-1).reshape(-1, 4)


def _divide_evenly(root: Map, first: NDArray[np.float64], parts: NDArray[np.float64]) -> Map:
    """Cells that divide their part of the root's range into parts."""
    scale, shift = root[0, :2]
    parts = np.where(scale < _LARGEST / parts, parts, 1.0)
    return np.stack([parts * scale, first + parts * (shift - np.arange(len(first))), first, first + parts - 1], axis=-1)


def _padded(low: Any, high: Any, n: Any) -> tuple[Any, Any]:
    """A slightly wider range: the scores that n samples were taken from exceed the range of the samples."""
    with np.errstate(over="ignore"):
        pad = (high / n - low / n) * 4
        return np.maximum(low - pad, -_LARGEST), np.minimum(high + pad, _LARGEST)
