"""The mean score of forecasts, and what it is made of: sums over rows, in chunks that threads share."""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from staircase_fast import threads
from staircase_fast.calibration import _decompose
from staircase_fast.calibration import reliability_checks as _validation
from staircase_fast.inputs.rows import Columns
from staircase_fast.losses import Loss
from staircase_fast.staircase.result import Staircase

_CHUNK = 1 << 15  # rows whose columns lie in the cache; sums are those of chunks, whoever does them
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
    chunks = [slice(start, min(start + _CHUNK, len(x))) for start in range(0, len(x), _CHUNK)]

    def add_up(share: slice) -> list[tuple[NDArray[np.float64], NDArray[np.float64]]]:
        return [_of_chunk(columns, loss, stairs, constant, total, edges, part) for part in chunks[share]]

    workers = len(threads.parts(len(x), n_threads))
    found = list(itertools.chain(*threads.each(add_up, threads.cut(len(chunks), workers))))
    own, gained, spread, best, off = (_sum(column) for column in zip(*(sums for sums, _ in found), strict=True))
    if not len(w):
        own, gained, spread, best, off = (one / total for one in (own, gained, spread, best, off))
    _validation.finite_scores(best, spread)
    # none is negative but for rounding: neither the forecasts nor a constant are better than the staircase
    parts = Parts(own, max(gained, 0.0), max(spread, 0.0), best, off)
    counts = np.sum([tally for _, tally in found], axis=0).astype(np.float64 if len(w) else np.int64)
    for column in (counts, edges):
        column.setflags(write=False)
    return parts, Histogram(counts, edges)


def _sum(numbers: Iterable[float]) -> float:
    try:
        return math.fsum(numbers)
    except OverflowError:  # which `fsum` has for what is finite, but not for infinities
        return math.inf
    except ValueError:  # infinities of both signs
        return math.nan


def _of_chunk(
    columns: Columns,
    loss: Loss,
    stairs: Staircase,
    constant: float,
    total: float,
    edges: NDArray[np.float64],
    part: slice,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Sums over a chunk of rows, and what is in each bin; weighted ones are shares of the total weight."""
    x, y, w = (column[part].astype(np.float64, copy=False) for column in columns)
    parameters = loss.parameters[part] if len(loss.parameters) > 1 else loss.parameters
    sums, counts = np.empty(5), np.zeros(_BINS)
    recalibrated = stairs.predict(columns[0][part], n_threads=1)
    _decompose.sum_losses(loss.kind, parameters, x, recalibrated, constant, y, w, total, edges, sums, counts)
    return sums, counts


def _edges(low: float, high: float) -> NDArray[np.float64]:
    """Edges of bins of one width between these, or around them if they are the same."""
    if low == high:
        reach, most = max(0.5, abs(low) / 1024), sys.float_info.max
        low, high = max(low - reach, -most), min(high + reach, most)
    place = np.linspace(0.0, 1.0, _BINS + 1)
    edges = low * (1.0 - place) + high * place  # the difference of the ends may be infinite
    edges[-1] = high
    return np.clip(np.maximum.accumulate(edges), low, high)  # they may be as near as can be
