"""The mean score of forecasts and its parts, and the histogram of forecasts."""

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
from staircase_fast.errors import InvalidInputError
from staircase_fast.inputs.rows import Columns
from staircase_fast.losses import Loss
from staircase_fast.staircase.result import Staircase

_CHUNK = 1 << 15  # rows whose columns fit the cache; sums by chunks do not depend on the number of threads
_BINS = 40


class Histogram(NamedTuple):
    """Forecasts by bins: bin b reaches from `edges[b]`, inclusive, to `edges[b + 1]`."""

    counts: NDArray[np.int64] | NDArray[np.float64]
    """Rows in each bin; with weights, their total weight."""
    edges: NDArray[np.float64]


def decompose(
    columns: Columns, loss: Loss, stairs: Staircase, constant: float, ends: tuple[float, float], n_threads: int
) -> tuple[float, float, float, float, float, Histogram]:
    """The fields of `Reliability` from `mean_score` to `histogram`, for valid columns (forecasts, targets, weights).

    For each row, the losses of three forecasts are compared: its own, that of the staircase, and the best constant.
    Differences are taken row by row, so that equal forecasts have a difference of exactly 0.
    """
    x, _, w = columns
    total = float(stairs.weights.sum()) if len(w) else float(len(x))
    edges = _bin_edges(*ends)
    chunks = [slice(start, min(start + _CHUNK, len(x))) for start in range(0, len(x), _CHUNK)]

    def sum_chunk(part: slice) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        x, y, w = (column[part].astype(np.float64, copy=False) for column in columns)
        parameters = loss.parameters[part] if len(loss.parameters) > 1 else loss.parameters
        sums, counts = np.empty(5), np.zeros(_BINS)
        recalibrated = stairs.predict(columns[0][part], n_threads=1)
        _decompose.sum_losses(loss.kind, parameters, x, recalibrated, constant, y, w, total, edges, sums, counts)
        return sums, counts

    shares = threads.cut(len(chunks), len(threads.parts(len(x), n_threads)))
    by_share = threads.each(lambda share: [sum_chunk(part) for part in chunks[share]], shares)
    sums, tallies = zip(*itertools.chain(*by_share), strict=True)
    divisor = 1.0 if len(w) else total  # weights were divided by their total
    own, miscalibration, discrimination, constants, off = (_sum(column) / divisor for column in zip(*sums, strict=True))
    if not (math.isfinite(constants) and math.isfinite(discrimination)):
        raise InvalidInputError("targets", "must have a mean loss under the best forecasts that fits float64")
    counts = np.sum(tallies, axis=0).astype(np.float64 if len(w) else np.int64)
    for column in (counts, edges):
        column.setflags(write=False)
    # the staircase is at least as good as the forecasts and the constant; negative differences are rounding errors
    return own, max(miscalibration, 0.0), max(discrimination, 0.0), constants, off, Histogram(counts, edges)


def _sum(numbers: Iterable[float]) -> float:
    try:
        return math.fsum(numbers)
    except OverflowError:  # a sum of finite numbers that is too large
        return math.inf
    except ValueError:  # infinities of both signs
        return math.nan


def _bin_edges(low: float, high: float) -> NDArray[np.float64]:
    """Edges of bins of equal width between two numbers, or around them if they are equal."""
    if low == high:
        reach, most = max(0.5, abs(low) / 1024), sys.float_info.max
        low, high = max(low - reach, -most), min(high + reach, most)
    place = np.linspace(0.0, 1.0, _BINS + 1)
    edges = low * (1.0 - place) + high * place  # `high - low` may overflow
    edges[-1] = high
    return np.clip(np.maximum.accumulate(edges), low, high)  # rounding may disorder ends that are close
