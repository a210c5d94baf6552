"""Confidence intervals of a curve of probabilities at single scores, by the likelihood ratio.

If the scores have a continuous distribution and the true curve has a positive slope at a score, then twice the log of
the likelihood ratio converges to a law without parameters (Banerjee and Wellner, 2001, "Likelihood ratio tests for
monotone functions"): the law of the integral of g**2 - h**2, where g is the slope of the greatest convex minorant of
B(z) + z**2, B is a two-sided Brownian motion, and h is the same with slopes <= 0 before 0 and >= 0 after it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from staircase_fast.calibration import _likelihood
from staircase_fast.calibration.consistency import places_of
from staircase_fast.calibration.families import Observations
from staircase_fast.errors import InvalidInputError
from staircase_fast.staircase.result import Staircase

_Floats = NDArray[np.float64]

_POINTS = 2048  # scores; between them, intervals are wider by the change of the curve
# Quantiles of the law, printed by `make limit-law` with their errors: 0.009 at level 0.9, 0.06 at level 0.995.
QUANTILES = {
    0.5: 0.2777,
    0.6: 0.4292,
    0.7: 0.6449,
    0.75: 0.7907,
    0.8: 0.9794,
    0.85: 1.2340,
    0.9: 1.5998,
    0.925: 1.8673,
    0.95: 2.2537,
    0.975: 2.9374,
    0.99: 3.8987,
    0.995: 4.6130,
}


def quantile_of(level: float) -> float:
    """The quantile, interpolated in log(1 - level), in which the tail is nearly linear."""
    levels = np.array(list(QUANTILES))
    if not levels[0] <= level <= levels[-1]:
        raise InvalidInputError("level", f"must be in [{levels[0]}, {levels[-1]}] for pointwise bands", value=level)
    return float(np.interp(-np.log1p(-level), -np.log1p(-levels), list(QUANTILES.values())))


def pointwise_band(seen: Observations, stairs: Staircase, level: float) -> tuple[NDArray[np.int64], _Floats, _Floats]:
    """Some observations, and the ends of their intervals."""
    n, quantile = len(seen.scores), quantile_of(level)
    places = places_of(np.arange(n + 1), _POINTS)
    # if scores have changed since the fit, the kernel still needs steps that begin at 0 and are not empty
    starts = np.unique(np.minimum(np.append(0, np.searchsorted(seen.scores, stairs.left)), n - 1))
    sums, weights = (np.add.reduceat(column, starts) for column in (seen.sums, seen.weights))
    lower, upper = np.empty((2, len(places)))
    steps = np.append(starts, n).astype(np.int64)
    work = np.empty((4, n)), np.empty((2, n), dtype=np.int64)
    _likelihood.intervals(seen.sums, seen.weights, steps, sums, weights, places, quantile, *work, lower, upper)
    return places, lower, upper
