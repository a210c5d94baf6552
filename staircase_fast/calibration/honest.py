"""Simultaneous confidence bands of a monotone curve, valid in finite samples.

Model: targets are independent given the scores, and their means are an increasing function f of the score.  Nothing
else is assumed about f.  Targets have a distribution of the family that belongs to the score: binomial, Poisson, gamma
or normal, the last two with known dispersion.

Take K observations, the distinct scores x_1 < .. < x_K, and a set of intervals of them that depends on the scores
alone.  `_honest.pyx` derives from the sum of an interval j..k

- a bound from below, f(x) >= b for all x >= x_k, that is wrong with probability at most p, and
- a bound from above, f(x) <= b for all x <= x_j, that is wrong with probability at most p.

Proof of the first (the second is its mirror image).  The distributions of the family increase stochastically with
their mean, and so do sums of independent ones.  All means of the interval are at most f(x_k), so the sum is
stochastically at most a sum T with all means equal to f(x_k), whose distribution is known.  b is the largest mean with
P(T >= observed sum) <= p (Clopper and Pearson).  b > f(x_k) requires a sum that T reaches or exceeds with probability
at most p.  For all x >= x_k, f(x) >= f(x_k).

There are L levels of intervals: 2**l observations, l = 0 .. L - 1, 2**(L - 1) <= K.  Level l has n_l intervals for each
of the two kinds of bounds.  Each bound of level l gets p = (1 - level) / (2 L n_l).  The probabilities of all bounds
add up to 1 - level, so with probability at least `level` all bounds hold at once.  The band is the largest lower bound
at or before each score and the smallest upper bound at or after it.

The set follows Walther (2010) and Rivera and Walther (2013): about 4 K intervals stand for all K (K + 1) / 2.  Each
interval contains one of the set with at least 2/5 of its observations, and fewer intervals have a larger p each.  Long
intervals are few, so an equal share for each level gives them a much larger p.
"""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from staircase_fast import threads
from staircase_fast.calibration import _honest
from staircase_fast.calibration.families import Observations

_Floats = NDArray[np.float64]


def confidence_band(seen: Observations, level: float, n_threads: int) -> tuple[_Floats, _Floats, float]:
    """Lower and upper bounds at each score, and the least 1 - level at which the forecasts leave them."""
    size = 1 << np.arange(len(seen.scores).bit_length(), dtype=np.int64)
    n_intervals = -((size - len(seen.scores)) // np.maximum(size // 4, 1)) + 1
    log_shares = -np.log(2.0 * len(size) * n_intervals)
    log_p = math.log1p(-level) + log_shares
    z = np.array([-NormalDist().inv_cdf(p) for p in np.exp(log_p)]) * (1.0 + 1e-9)
    bounds = np.empty((2, len(seen.scores)))
    low, high = seen.mean_range
    # differences of cumulated sums of real numbers are rounded; counts are exact
    is_count = seen.distribution.family in ("binomial", "poisson")
    rounding = 0.0 if is_count else len(seen.sums) * 2.0**-100 * float(np.abs(seen.sums).sum())

    def fill(side: slice) -> float:
        above = side.start == 0
        columns = seen.sums, seen.weights, seen.forecasts
        sums, weights, forecasts = columns if above else (np.ascontiguousarray(one[::-1]) for one in columns)
        own = np.full(len(sums), low if above else high)
        cumulated = np.empty((2, 2, len(sums) + 1))
        _honest.accumulate(sums, cumulated[0])
        _honest.accumulate(weights, cumulated[1])
        family = _honest.FAMILIES[seen.distribution.family]
        least: float = _honest.bound(family, above, *cumulated, forecasts, log_p, log_shares, z, rounding, own)
        # the last rounding, of the conversion to a mean, must not narrow the band
        bounds[side.start] = np.nextafter(own, -math.inf) if above else np.nextafter(own, math.inf)[::-1]
        return least

    sides = [slice(0, 1), slice(1, 2)]
    leasts = threads.each(fill, sides) if n_threads > 1 else [fill(side) for side in sides]
    return (*np.clip(bounds, low, high), math.exp(min(leasts)))
