"""Fits by the stack (paper, section IV-B): losses whose minimiser follows from sums, and update rules."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from staircase_fast.arithmetic.exact import UNIT_WEIGHTS, extent_of, scale_of
from staircase_fast.bisection.rounds import Blocks
from staircase_fast.bisection.samples import Samples
from staircase_fast.errors import InvalidInputError
from staircase_fast.losses import UpdateRule
from staircase_fast.stack import sorted_rows, update_rule

_RANGE = "must be in the range of float64"


def exact_blocks(starts: NDArray[np.int64], values: NDArray[np.float64]) -> Blocks:
    """Blocks whose bounds are their values."""
    return Blocks(starts, values, values, values)


def by_mean(samples: Samples) -> Blocks:
    """Blocks whose values are means of targets."""
    y, w = samples.targets, samples.weights
    scale = scale_of(extent_of(y, 1), extent_of(w, 1) if len(w) else UNIT_WEIGHTS, len(y))
    scores = sorted_rows.NO_SCORES
    if len(samples.ends):  # any scores with the same ties
        scores = np.cumsum(np.append(0, samples.ends[:-1])).astype(np.float64)
    values = np.empty(len(y))
    starts, _ = sorted_rows.merge(scores, y, w, scale, values, decreasing=False, bounds=sorted_rows.UNBOUNDED)
    return exact_blocks(starts[:-1].astype(np.int64), values[: len(starts) - 1].copy())


def by_rates(samples: Samples) -> Blocks:
    """Poisson deviance: sums of targets over sums of exposures."""
    if len(samples.parameters) > 1:
        return by_mean(as_means(samples))
    blocks = by_mean(samples)
    return exact_blocks(blocks.starts, rates_of(blocks.values, float(samples.parameters[0])))


def as_means(samples: Samples) -> Samples:
    """Samples with exposures as a problem of means: rates, with exposures as weights."""
    with np.errstate(all="ignore"):
        rates = samples.targets / samples.parameters
        weights = samples.weights * samples.parameters if len(samples.weights) else samples.parameters
        weights = np.ascontiguousarray(np.broadcast_to(weights, rates.shape))
    if not (np.isfinite(rates).all() and np.isfinite(weights).all() and weights.all()):
        raise InvalidInputError("targets", f"over exposures, and weights times exposures, {_RANGE}")
    return samples._replace(targets=rates, weights=weights, parameters=np.ones(1))


def rates_of(means: NDArray[np.float64], exposure: float) -> NDArray[np.float64]:
    """Means of targets over the exposure that all samples share."""
    with np.errstate(all="ignore"):
        rates = means / exposure
    if not np.isfinite(rates).all():
        raise InvalidInputError("targets", f"over exposures {_RANGE}")
    return rates


def by_exponentials(samples: Samples, shape: float, low: float, high: float) -> Blocks:
    """Linex: exp(-shape*z) is the mean of exp(-shape*y), and -exp(-shape*z)/shape increases with z."""
    sign, centre = math.copysign(1.0, shape), low * 0.5 + high * 0.5
    # for small exponents the digits of exp beyond 1 matter
    small = abs(shape) * (high - low) < 1
    transform, inverse = (np.expm1, np.log1p) if small else (np.exp, np.log)
    powers = -sign * transform(-shape * (samples.targets - centre))
    blocks = by_mean(samples._replace(targets=powers))
    return exact_blocks(blocks.starts, np.maximum.accumulate(centre - inverse(-sign * blocks.values) / shape))


def by_update_rule(samples: Samples, loss: UpdateRule, *, decreasing: bool) -> Blocks:
    """The stack with a user's update rule.

    Rows are merged in score order in both directions, as `Online` does: a user's rule may round.
    """
    n = len(samples.targets)
    rows = list(zip(samples.targets.tolist(), samples.weights.tolist() or [1.0] * n, strict=True))
    stops = (np.flatnonzero(samples.ends) + 1).tolist() if len(samples.ends) else range(1, n + 1)
    stack, start = None, 0
    for stop in stops:
        block = update_rule.observation(loss, start, stop, rows[start:stop], decreasing=decreasing)
        stack = update_rule.pushed(loss, stack, block, decreasing=decreasing)
        start = stop
    found = update_rule.blocks(stack)
    starts, values = np.array([block.first for block in found], dtype=np.int64), np.array([b.value for b in found])
    if decreasing:
        starts, values = n - np.append(starts[1:], n)[::-1], values[::-1]
    return exact_blocks(starts, values)
