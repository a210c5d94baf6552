"""Bucket maps: monotone maps from scores to buckets that are filled evenly (`_cells.pxd`), and samples to make them.

The survey uses a map with 6 to 20 rows per bucket.  An index of steps uses a map in which few steps start in any
bucket.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from staircase_fast.staircase import _make_map

_LEAST_SAMPLE, _LARGEST_SAMPLE = 1024, 8192
_PARTS_PER_STEP, _FEWEST_PARTS_PER_STEP, _MANY_PARTS = 16, 2, 1 << 18

Map = NDArray[np.float64]  # a Header, then a Cell per row


def sorted_sample(scores: NDArray[Any]) -> NDArray[np.float64]:
    """A few thousand finite scores at regular positions, sorted."""
    n = len(scores)
    picks = np.linspace(0, n - 1, min(n, max(_LEAST_SAMPLE, min(n // 64, _LARGEST_SAMPLE)))).astype(np.intp)
    sample = scores[picks].astype(np.float64)
    return np.sort(sample[np.isfinite(sample)])


def firsts(ascending: NDArray[Any]) -> NDArray[np.intp]:
    """The position of the first of equal entries in a sorted column."""
    new = np.ones(len(ascending), dtype=np.bool_)
    np.not_equal(ascending[1:], ascending[:-1], out=new[1:])
    return np.flatnonzero(new)


def make_map(sample: NDArray[np.float64], wanted: float) -> Map:
    """A map to about `wanted` buckets that the sorted sample fills evenly."""
    found: Map = _make_map.make(sample, wanted, False)
    return found


def index_map(left: NDArray[np.float64]) -> Map:
    """A map in which few steps start in any bucket."""
    finite = left[np.isfinite(left)]
    per_step = min(_PARTS_PER_STEP, max(_FEWEST_PARTS_PER_STEP, _MANY_PARTS / max(1, len(finite))))
    found: Map = _make_map.make(finite, per_step * len(finite), True)
    return found


def n_buckets(bucket_map: Map) -> int:
    """The number of buckets of a map."""
    return int(bucket_map[0, 0])
