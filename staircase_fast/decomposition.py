"""The mean score of forecasts, and what it is made of: sums over rows, in chunks that threads share."""

from __future__ import annotations

import itertools
import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from staircase_fast import _losses, threads
from staircase_fast import _validation_reliability as _validation
from staircase_fast._validation import Columns, Steps
from staircase_fast.losses import Loss, SquaredError
from staircase_fast.staircase import Staircase

_CHUNK = 1 << 13  # rows whose columns lie in the cache; sums are those of chunks, whoever does them
_BINS = 40


class Parts(NamedTuple):
    """A mean score and its parts: mean = miscalibration - discrimination + uncertainty."""

    mean_score: float
    miscalibration: float
    discrimination: float
    uncertainty: float
    calibration_error: float


class Histogram(NamedTuple):
    """How forecasts are spread: bin b goes from `edges[b]` to `edges[b + 1]`, and has the forecast at its start."""

    counts: NDArray[np.int64] | NDArray[np.float64]
    """Rows in each bin; with weights, their total weight."""
    edges: NDArray[np.float64]


def decompose(
    columns: Columns, loss: Loss, stairs: Staircase, constant: float, ends: tuple[float, float], n_threads: int
) -> tuple[Parts, Histogram]:
    """The parts of the mean score of clean columns: forecasts, targets, weights.

    Of each row the losses of three forecasts are compared: its own, that of the staircase, and the best constant.
    Differences are taken row by row: what is the same has a difference of 0, not one of rounding.
    """
    x, _, w = columns
    total = float(stairs.weights.sum()) if len(w) else float(len(x))
    edges = _edges(*ends)
    bins = _bins(edges)
    chunks = [slice(start, min(start + _CHUNK, len(x))) for start in range(0, len(x), _CHUNK)]

    def add_up(share: slice) -> list[tuple[NDArray[np.float64], NDArray[np.float64]]]:
        with np.errstate(all="ignore"):  # a loss may be infinite
            return [_of_chunk(columns, loss, stairs, constant, bins, total, part) for part in chunks[share]]

    workers = len(threads.parts(len(x), n_threads))
    found = list(itertools.chain(*threads.each(add_up, threads.cut(len(chunks), workers))))
    own, gained, spread, best, off = (math.fsum(column) for column in zip(*(sums for sums, _ in found), strict=True))
    if not len(w):
        own, gained, spread, best, off = (one / total for one in (own, gained, spread, best, off))
    _validation.finite_scores(best, spread)
    # none is negative but for rounding: neither the forecasts nor a constant are better than the staircase
    parts = Parts(own, max(gained, 0.0), max(spread, 0.0), best, off)
    counts = np.sum([tally for _, tally in found], axis=0)
    return parts, Histogram(counts if len(w) else counts.astype(np.int64), edges)


def _of_chunk(
    columns: Columns, loss: Loss, stairs: Staircase, constant: float, bins: Staircase, total: float, part: slice
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Sums over a chunk of rows, and its rows in each bin; weighted ones are shares of the total weight."""
    x, y, w = (column[part].astype(np.float64, copy=False) for column in columns)
    parameters = loss.parameters[part] if len(loss.parameters) > 1 else loss.parameters
    if len(w) and not w.all():  # absent rows: their loss may be infinite, and 0 times that is no number
        present = w > 0
        x, y, w = x[present], y[present], w[present]
        parameters = parameters[present] if len(parameters) > 1 else parameters
    recalibrated = stairs.predict(x, n_threads=1)
    table = np.empty((5, len(x)))
    own, gained, spread, best, off = table
    for z, out in ((x, own), (recalibrated, off), (np.full(len(x), constant), best)):
        _losses.values(loss.kind, parameters, z, y, out)
    np.subtract(own, off, out=gained)
    np.subtract(best, off, out=spread)
    np.subtract(x, recalibrated, out=off)
    np.abs(off, out=off)
    off[x == recalibrated] = 0.0  # infinities too
    number = bins.predict(x, n_threads=1).astype(np.intp)
    if len(w):
        table *= w / total
    return table.sum(axis=1), np.bincount(number, weights=w if len(w) else None, minlength=_BINS)


def _edges(low: float, high: float) -> NDArray[np.float64]:
    """Edges of bins of one width, of no more than what there is between these."""
    if low == high:
        low, high = low - 0.5, high + 0.5
    place = np.linspace(0.0, 1.0, _BINS + 1)
    edges = low * (1.0 - place) + high * place  # the difference of the ends may be infinite
    return np.append(edges[:-1], high)


def _bins(edges: NDArray[np.float64]) -> Staircase:
    """The number of each bin as a staircase: evaluating one is the fastest way there is to find them."""
    number, ones = np.arange(_BINS, dtype=np.float64), np.ones(_BINS)
    steps = Steps(edges[:-1].copy(), edges[:-1].copy(), number, ones, ones.astype(np.int64))
    return Staircase._of_steps(steps, SquaredError(), increasing=True)
