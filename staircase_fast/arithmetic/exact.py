"""Results of a pass over a column (`_column_scan.pxd`, `_buckets.pxd`), and the scale of exact sums (`_scale.pxd`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from staircase_fast import threads
from staircase_fast.arithmetic import _scan


class Extent(NamedTuple):
    """Extremes of a column of targets or weights."""

    first_bad: int  # index of the first entry that is not finite, or -1; the other fields are valid only if -1
    lowest: float
    highest: float
    least: float  # smallest nonzero magnitude; at most 1 if there are integers; inf if all are 0
    integral: bool  # every entry is an integer


class Scale(NamedTuple):
    """Units and widths of exact sums; `_exact.pxd` explains the fields.  Kernels read them by name."""

    y_unit: int
    w_unit: int
    s_words: int
    w_words: int
    narrow: bool
    small: bool
    tame: bool
    greatest: float
    cut: float
    cut_weight: float


LABELS = Extent(-1, 0.0, 1.0, 1.0, True)
UNIT_WEIGHTS = Extent(-1, 1.0, 1.0, 1.0, True)
NOTHING = Extent(-1, np.inf, -np.inf, np.inf, True)


class Order(NamedTuple):
    """Sort order of a column of scores."""

    first_nan: int  # its index, or -1
    sign: int  # 1: scores never decrease; -1: they never increase; 0: neither
    tied: bool  # some are equal; valid only if sign is not 0


def order_of(scores: NDArray[Any], n_threads: int) -> Order:
    """The order of a nonempty column."""
    shares = threads.parts(len(scores), n_threads)
    found = threads.each(lambda part: _scan.order(scores[part]), shares)
    nans, rises, falls, tied = zip(*found, strict=True)
    first_nans = (part.start + nan for part, nan in zip(shares, nans, strict=True) if nan >= 0)
    borders = [(scores[part.start - 1], scores[part.start]) for part in shares[1:]]
    up = all(rises) and all(a <= b for a, b in borders)
    down = all(falls) and all(a >= b for a, b in borders)
    return Order(next(first_nans, -1), 1 if up else -1 if down else 0, any(tied) or any(a == b for a, b in borders))


def extent_of(column: NDArray[Any], n_threads: int) -> Extent:
    """The extent of a nonempty column."""
    shares = threads.parts(len(column), n_threads)
    return _extent_of_parts(shares, threads.each(lambda part: Extent(*_scan.extent(column[part])), shares))


def _extent_of_parts(shares: list[slice], found: Sequence[Extent]) -> Extent:
    bad = (part.start + one.first_bad for part, one in zip(shares, found, strict=True) if one.first_bad >= 0)
    return joined_extent(*found)._replace(first_bad=next(bad, -1))


def joined_extent(*found: Extent) -> Extent:
    """The extent of several columns together, all of them finite."""
    _, lowest, highest, least, integral = zip(*found, strict=True)
    return Extent(-1, min(lowest), max(highest), min(least), all(integral))


def summary_of(
    targets: NDArray[Any], weights: NDArray[np.float64], n_threads: int
) -> tuple[NDArray[np.float64], Extent, Extent]:
    """Sums of consecutive rows in score order, without ties, and the extents of both columns.

    The sums are at the end of an array with one entry per row.  The stack later fills that array with values from its
    start (`_rows.pxd`).
    """
    n, size = len(targets), _scan.ROWS_PER_BUCKET
    values = np.empty(n)
    buckets = values[n - n // size * 4 :].reshape(-1, 4)
    shares = [slice(part.start // size * size, part.stop // size * size) for part in threads.parts(n, n_threads)]
    shares[-1] = slice(shares[-1].start, n)

    def summarise(part: slice) -> tuple[Extent, Extent]:
        own = buckets[part.start // size : part.stop // size]
        y_extent, w_extent = _scan.summarise(targets[part], weights[part], own)
        return Extent(*y_extent), Extent(*w_extent)

    y_found, w_found = zip(*threads.each(summarise, shares), strict=True)
    return values, _extent_of_parts(shares, y_found), _extent_of_parts(shares, w_found)


def scale_of(targets: Extent, weights: Extent, n: int) -> Scale:
    """The scale in which `n` products of a target and a weight, and any sums of them, are integers."""
    return Scale(**_scan.scale_of(targets, weights, n))
