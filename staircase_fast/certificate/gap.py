"""Upper bounds on the excess loss of a staircase over the optimum."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from staircase_fast.bisection.solve import runs_in_domain
from staircase_fast.certificate.pieces import ULP, Floats, Pieces, Problem, Sums, sums_of
from staircase_fast.losses import _losses

_INFINITE = 1e289  # slopes beyond this are limited (`_slope_sums.pyx`)


def cost_at_ends(problem: Problem, pieces: Pieces) -> float:
    """The excess loss of rows whose minimiser is an end of the values (all but the inner rows)."""
    (_, y, w, p, _), costs = problem.samples, 0.0
    z, p = np.repeat(pieces.values, np.diff(pieces.starts)), np.broadcast_to(p, y.shape)
    parts = np.arange(problem.inner[0]), np.arange(problem.inner[1], len(y))
    for part, end in zip(parts, problem.bounds, strict=True):
        off = part[z[part] != end]
        if len(off):
            here, there = np.empty((2, len(off)))
            _losses.values(problem.loss.kind, p[off], z[off], y[off], here)
            _losses.values(problem.loss.kind, p[off], np.full(len(off), end), y[off], there)
            more = (here - there) + 8 * ULP * (np.abs(here) + np.abs(there))
            costs += float(np.sum(more * w[off] if len(w) else more)) * (1 + 1e-9)
    return costs


def _box(problem: Problem) -> tuple[float, float]:
    """Natural parameters, or values, between which the optimum of the inner rows lies."""
    samples, loss, slopes, part = problem.samples, problem.loss, problem.slopes, slice(*problem.inner)
    if loss.first_bounds == "derivative":
        run = runs_in_domain(samples, loss)[0]
        return (float(run["lo"]), float(run["hi"])) if not run["untested"] else (-math.inf, math.inf)
    y = slopes.targets[part]
    w = slopes.weights[part] if len(slopes.weights) else np.ones(len(y))
    borders = np.flatnonzero(slopes.ends[part]) if len(slopes.ends) else np.arange(len(y))
    if loss.extreme_targets[1]:
        # log-odds: the mean of the first block of the optimum is at least `first`, that of the last at most 1 - `last`
        y = samples.targets[part]
        first = _least_mean(y, w, borders)
        last = _least_mean(1.0 - y[::-1], w[::-1], len(y) - 2 - np.append(borders[:-1][::-1], -1))
        low, high = (sign * float(np.log(mean) - np.log1p(-mean) - 1e-9) for sign, mean in ((1, first), (-1, last)))
        offset = samples.parameters[part] if len(samples.parameters) > 1 else samples.parameters  # 0 for LogLoss
        low, high = low - float(offset.max()), high - float(offset.min())
    else:
        least = _least_mean(y, w, borders) if loss.target_range[0] >= 0 else float(y.min())
        error = 2 * slopes.target_error
        box = np.ldexp(np.array([least * (1 - error), y.max() * (1 + error)]), slopes.shift)
        low, high = loss.natural_parameter(np.clip(box, *loss.value_range))
    low, high = np.clip([low, high], *loss.natural_parameter(np.array(problem.bounds)))
    return float(low), float(high)


def _least_mean(y: Floats, w: Floats, borders: NDArray[np.int64]) -> float:
    """A lower bound, close to exact, on the means of leading rows up to each border; targets are not negative."""
    means = np.cumsum(w * y)[borders] / np.cumsum(w)[borders]
    return float(means.min()) * (1 - 4 * (len(y) + 4) * ULP)


def gap_of(problem: Problem, pieces: Pieces, sums: Sums) -> float:
    """A bound on the excess loss of the inner rows.

    With slopes g between those just below and just above the values z, no u costs less than z by more than the sum of
    g (z - u), and some ulps.  Of all increasing u between A and B, the sum is largest for one that is A up to some row
    and B from there on.  On a piece of value z whose slopes sum to T, and to G up to that row, it is
    G (z - A) + (T - G) (z - B).  Slopes are chosen so that T is 0 if possible, and G as low as possible.
    """
    inside = problem.is_inner(pieces)
    if not inside.any():
        return 0.0
    z, below, above = (problem.loss.natural_parameter(column[inside]) for column in pieces[1:4])
    low, high = (one[inside] for one in sums)
    A, B = _box(problem)
    if not (np.isfinite(z).all() and math.isfinite(A) and math.isfinite(B)):
        return math.inf
    if max(low["most"].max(), high["most"].max()) >= _INFINITE:
        return math.inf
    at_low, at_high = z <= A, (z >= B) & (z > A)
    total_low = np.minimum(0.0, -high["total"] - high["error"])
    total_high = np.maximum(0.0, low["total"] + low["error"])
    for at_end, total, error in ((at_low, -high["total"], high["error"]), (at_high, low["total"], low["error"])):
        total_low, total_high = np.where(at_end, total - error, total_low), np.where(at_end, total + error, total_high)
    # positions are right to some ulps
    error = 8 * ULP * (np.abs(z) + abs(A) + abs(B)) * np.maximum(np.abs(total_low), np.abs(total_high))
    if_low, if_high = (np.maximum(total_low * (z - end), total_high * (z - end)) + error * (z != end) for end in (A, B))
    width = (B - A) + 8 * ULP * (abs(A) + abs(B))
    most = np.where(
        at_low, high["most"], np.where(at_high, low["most"], np.maximum(low["most"], total_high + high["most"]))
    )
    divided = width * most + np.where(at_low, if_low, if_high)
    before, after = np.cumsum(if_low) - if_low, np.cumsum(if_high[::-1])[::-1] - if_high
    rounding = 8 * ULP * (len(z) + 4) * float(np.sum(np.abs(if_low) + np.abs(if_high)) + divided.max())
    # slopes are those of values some ulps away
    spread = np.maximum(-high["total"] - low["total"], 0.0) + low["error"] + high["error"]
    rounding += float(np.sum(spread * np.maximum(above - z, z - below))) * (1 + 1e-9)
    return float(np.ldexp(max(float((before + divided + after).max()), 0.0) + rounding, problem.slopes.unit))


def gap_if_joined(problem: Problem, pieces: Pieces, sums: Sums) -> float:
    """The same bound by way of a staircase in which neighbouring steps of nearly equal values are one.

    Steps whose values differ only by rounding violate the conditions one by one, but not together.  The slopes at the
    values bound the difference in cost between the two staircases.
    """
    inside = problem.is_inner(pieces)
    joined = pieces.joined & inside & np.append(False, inside[:-1])
    first = np.flatnonzero(~joined)
    group = np.cumsum(~joined) - 1
    last = np.append(first[1:], len(joined)) - 1
    values = 0.5 * pieces.values[first] + 0.5 * pieces.values[last]
    values = np.where(first == last, pieces.values[first], values)
    merged = problem.pieces_at(np.append(pieces.starts[first], pieces.starts[-1]), values)
    low, high = sums
    natural = problem.loss.natural_parameter
    moves = natural(pieces.values) - natural(merged.values[group])
    totals = np.maximum(np.abs(low["total"]) + low["error"], np.abs(high["total"]) + high["error"])
    moved = np.where(merged.values[group] == pieces.values, 0.0, totals * np.abs(moves))[inside]
    cost = float(np.ldexp(np.sum(moved) * (1 + 1e-9) + np.sum(moved > 0) * 5e-324, problem.slopes.unit))
    return cost + gap_of(problem, merged, sums_of(problem.slopes, merged))
