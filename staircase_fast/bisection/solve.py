"""The fit of rows in score order under losses whose best value is not the mean of targets."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from staircase_fast.arithmetic.exact import UNIT_WEIGHTS, extent_of, scale_of
from staircase_fast.bisection import rounds
from staircase_fast.errors import InvalidInputError
from staircase_fast.inputs.columns import Column
from staircase_fast.losses import (
    Custom,
    Huber,
    Linex,
    LogCosh,
    Logistic,
    Loss,
    PoissonDeviance,
    Power,
    PseudoHuber,
    Quantile,
    SquaredError,
    UpdateRule,
    _losses,
    units,
)
from staircase_fast.losses.rows import Rows
from staircase_fast.stack import _sorted_rows, sorted_rows, sorting, update_rule
from staircase_fast.staircase.steps import Steps

if TYPE_CHECKING:
    from staircase_fast.staircase.result import Staircase

_WIDE = 600.0  # exp of more may overflow when summed
_NARROW = 2.0**-900  # exponents of Linex that differ by less would underflow: it is a square
_SAMPLE = 1 << 14  # of rows tells where to cut first
_AT_EACH_ROW = np.empty(0, dtype=np.uint8)
_LOG_ODDS = 1500.0  # those of sums of weights and targets above 0 are less


class Limits(NamedTuple):
    """When to stop: at bounds this narrow, after so many rounds, or at this time."""

    tol: float = 0.0
    rounds: float = math.inf
    deadline: float = math.inf
    n_threads: int = 1


class Blocks(NamedTuple):
    """Values that never decrease, of rows side by side, and proven bounds of each."""

    starts: NDArray[np.int64]
    values: NDArray[np.float64]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]


class Samples(NamedTuple):
    """Rows in score order with float64 targets and the parameters of their losses."""

    scores: Column
    targets: NDArray[np.float64]
    weights: NDArray[np.float64]  # or none: all are 1
    parameters: NDArray[np.float64]  # one, or one per row
    ends: NDArray[np.uint8]  # whether a score ends at a row; or none: at each


def samples_of(rows: Rows, loss: Loss) -> tuple[Samples, Loss]:
    """The rows in score order, and the loss of rows in that sorting."""
    x, y, w = rows.scores, rows.targets.astype(np.float64, copy=False), rows.weights
    if loss.per_sample and rows.order.sign <= 0:
        places = sorting.in_score_order(rows._replace(targets=np.arange(len(x))))
        x, w, place = places.scores, places.weights, places.targets
        y, loss = y[place], loss.of_rows(place)
    elif rows.order.sign <= 0:
        x, y, w = sorting.in_score_order(rows._replace(targets=y))[:3]
    if rows.order.sign > 0 and not rows.order.tied:
        return Samples(x, y, w, loss.parameters, _AT_EACH_ROW), loss
    ends = np.ones(len(x), dtype=np.uint8)
    np.not_equal(x[1:], x[:-1], out=ends[:-1].view(np.bool_))
    if ends.all():
        return Samples(x, y, w, loss.parameters, _AT_EACH_ROW), loss
    # rows of one score in an order of their own, so that sums do not depend on that of the user
    begins = np.append(np.uint8(1), ends[:-1])
    tied = np.flatnonzero((ends & begins) == 0)
    keys = [column[tied] for column in (*loss.sort_keys(), w, y, np.cumsum(begins)) if len(column) > 1]
    place = np.arange(len(x))
    place[tied] = tied[np.lexsort(keys)]
    if loss.per_sample:
        loss = loss.of_rows(place)
    return Samples(x, y[place], w[place] if len(w) else w, loss.parameters, ends), loss


def fit_samples(
    samples: Samples,
    loss: Loss,
    *,
    decreasing: bool,
    bounds: tuple[float, float],
    limits: Limits,
) -> Steps:
    """The staircase of samples."""
    if isinstance(loss, UpdateRule):
        # in score order in either direction, as rows arrive one by one: a user's rule may round
        blocks = _by_rule(samples, loss, decreasing=decreasing)
        if decreasing:
            samples, blocks = reversed_samples(samples), _reversed_blocks(blocks, len(samples.targets))
    else:
        if decreasing:
            samples, loss = reversed_samples(samples), loss.of_rows(np.arange(len(samples.targets))[::-1])
        blocks = _solve(samples, loss, limits)
    whole = loss.is_location and limits[:3] == Limits()[:3]
    return steps_of(samples, blocks, bounds, decreasing=decreasing, whole=whole, infinite=loss.allows_infinite_values)


def steps_of(
    samples: Samples, blocks: Blocks, bounds: tuple[float, float], *, decreasing: bool, whole: bool, infinite: bool
) -> Steps:
    """Convert blocks to steps.

    `whole`: each value lies between the targets of its block.  `infinite`: the largest floats stand for infinities.
    """
    if whole:
        # a value that is off by some rounding must not leave its targets; of one target, it is that
        low, high = (ufunc.reduceat(samples.targets, blocks.starts) for ufunc in (np.minimum, np.maximum))
        blocks = Blocks(blocks.starts, *(np.clip(column, low, high) for column in blocks[1:]))
    values = np.maximum.accumulate(blocks.values)  # nor may rounding turn steps round
    blocks = Blocks(blocks.starts, values, np.minimum(blocks.lower, values), np.maximum(blocks.upper, values))
    columns = list(blocks[1:])
    if infinite:
        columns = [np.where(np.abs(one) >= rounds.LAST, np.copysign(np.inf, one), one) for one in columns]
    blocks = _distinct(Blocks(blocks.starts, *(np.clip(column, *bounds) + 0.0 for column in columns)))
    starts, stops = blocks.starts, np.append(blocks.starts[1:], len(samples.targets))
    counts = stops - starts
    weights = _totals(samples.weights, starts) if len(samples.weights) else counts.astype(np.float64)
    left, right = (samples.scores[index].astype(np.float64) for index in (starts, stops - 1))
    steps = Steps(left, right, blocks.values, weights, counts, blocks.lower, blocks.upper)
    return sorted_rows.turned(steps) if decreasing else steps


def _totals(weights: NDArray[np.float64], starts: NDArray[np.int64]) -> NDArray[np.float64]:
    """The weight of each step, rounded once."""
    found = np.empty(len(starts))
    _sorted_rows.totals(weights, scale_of(extent_of(weights, 1), UNIT_WEIGHTS, len(weights)), starts, found)
    return found


def reversed_samples(samples: Samples) -> Samples:
    """The rows in the opposite sorting."""
    x, y, w, p = (np.ascontiguousarray(column[::-1]) for column in samples[:4])
    ends = samples.ends
    if len(ends):
        ends = np.append(ends[:-1][::-1], np.uint8(1))  # a score ends where the next one begins
    return Samples(x, y, w, p, ends)


def _reversed_blocks(blocks: Blocks, n: int) -> Blocks:
    """Blocks of n rows in the opposite sorting."""
    starts = n - np.append(blocks.starts[1:], n)[::-1]
    return Blocks(starts, *(column[::-1] for column in blocks[1:]))


def _distinct(blocks: Blocks) -> Blocks:
    """Neighbours of one value are one block."""
    first = np.flatnonzero(np.append(True, blocks.values[1:] != blocks.values[:-1]))
    if len(first) == len(blocks.values):
        return blocks
    lower, upper = np.minimum.reduceat(blocks.lower, first), np.maximum.reduceat(blocks.upper, first)
    return Blocks(blocks.starts[first], blocks.values[first], lower, upper)


def _solve(samples: Samples, loss: Loss, limits: Limits) -> Blocks:
    if loss.is_mean:
        return _by_mean(samples)
    if isinstance(loss, PoissonDeviance):
        if len(samples.parameters) > 1:
            return _by_mean(as_means(samples))
        starts, values, _, _ = _by_mean(samples)
        rates = rates_of(values, float(samples.parameters[0]))
        return Blocks(starts, rates, rates, rates)
    if isinstance(loss, Linex) and len(samples.parameters) == 1:
        shape, low, high = (float(one) for one in (samples.parameters[0], samples.targets.min(), samples.targets.max()))
        if abs(shape) * (high * 0.5 - low * 0.5) < _NARROW:
            starts, values, _, _ = _by_mean(samples)
            error = abs(shape) * (high - low) * (high - low)
            return Blocks(starts, values, values - error, values + error)
        if abs(shape) * (high * 0.5 - low * 0.5) < _WIDE / 2:
            blocks = _by_exponentials(samples, shape, low, high)
            return _polished(samples, loss, blocks, high - low + 1 / abs(shape), limits)
    return _by_rounds(samples, loss, limits)


def as_means(samples: Samples) -> Samples:
    """Samples with exposures: means of rates, with exposures as weights."""
    with np.errstate(all="ignore"):
        rates = samples.targets / samples.parameters
        weights = samples.weights * samples.parameters if len(samples.weights) else samples.parameters
        weights = np.ascontiguousarray(np.broadcast_to(weights, rates.shape))
    if not (np.isfinite(rates).all() and np.isfinite(weights).all() and weights.all()):
        requirement = "over exposures, and weights times exposures, must be in the range of float64"
        raise InvalidInputError("targets", requirement)
    return samples._replace(targets=rates, weights=weights, parameters=np.ones(1))


def rates_of(means: NDArray[np.float64], exposure: float) -> NDArray[np.float64]:
    """Means of targets over the exposure that all samples share."""
    with np.errstate(all="ignore"):
        rates = means / exposure
    if not np.isfinite(rates).all():
        raise InvalidInputError("targets", "over exposures must be in the range of float64")
    return rates


def _by_mean(samples: Samples) -> Blocks:
    """The mean of targets."""
    y, w = samples.targets, samples.weights
    scale = scale_of(extent_of(y, 1), extent_of(w, 1) if len(w) else UNIT_WEIGHTS, len(y))
    values = np.empty(len(y))
    # any scores with the same ties
    scores = (
        np.cumsum(np.append(0, samples.ends[:-1])).astype(np.float64) if len(samples.ends) else sorted_rows.NO_SCORES
    )
    starts, _ = sorted_rows.merge(scores, y, w, scale, values, decreasing=False, bounds=sorted_rows.UNBOUNDED)
    found = values[: len(starts) - 1].copy()
    return Blocks(starts[:-1].astype(np.int64), found, found, found)


def _by_exponentials(samples: Samples, shape: float, low: float, high: float) -> Blocks:
    """Linex: exp(-shape*z) is the mean of exp(-shape*y), and -exp(-shape*z)/shape rises with z."""
    sign, centre = math.copysign(1.0, shape), low * 0.5 + high * 0.5
    # where exponents are small, what exp has beyond 1 is what counts; else, what it is itself
    small = abs(shape) * (high - low) < 1
    there, back = (np.expm1, np.log1p) if small else (np.exp, np.log)
    powers = -sign * there(-shape * (samples.targets - centre))
    starts, values, _, _ = _by_mean(samples._replace(targets=powers))
    values = np.maximum.accumulate(centre - back(-sign * values) / shape)
    return Blocks(starts, values, values, values)


def _by_rule(samples: Samples, loss: UpdateRule, *, decreasing: bool = False) -> Blocks:
    """The stack of section IV-B; `decreasing`: values never increase."""
    n = len(samples.targets)
    rows = list(zip(samples.targets.tolist(), samples.weights.tolist() or [1.0] * n, strict=True))
    stops = (np.flatnonzero(samples.ends) + 1).tolist() if len(samples.ends) else range(1, n + 1)
    stack, start = None, 0
    for stop in stops:
        block = update_rule.observation(loss, start, stop, rows[start:stop], decreasing=decreasing)
        stack = update_rule.pushed(loss, stack, block, decreasing=decreasing)
        start = stop
    found = update_rule.blocks(stack)
    values = np.array([block.value for block in found])
    return Blocks(np.array([block.first for block in found], dtype=np.int64), values, values, values)


def _end(
    samples: Samples, loss: Custom, memory: rounds.Memory, start: float, span: float, end: float
) -> tuple[float, bool]:
    """A value that is beyond all others, or the end of the domain; and whether it is that."""
    sign = math.copysign(1.0, span)
    for factor in (0.0, 1.0, 16.0, 256.0):
        z = start + factor * span
        if sign * z >= sign * end:
            break
        memory.ask(loss, rounds.first_run(len(samples.targets), z, z, z))
        wish = -memory.slope * samples.weights if len(samples.weights) else -memory.slope
        # every stretch up to a row wants to be above, or every one from a row on below
        marks = samples.ends.astype(np.bool_) if len(samples.ends) else np.ones(len(wish), dtype=np.bool_)
        if sign > 0:
            wish, marks = wish[::-1], np.append(marks[:-1][::-1], True)
        if np.all(sign * np.cumsum(wish)[marks] < 0):
            return z, False
    return (end if math.isfinite(end) else sign * rounds.LAST), True


def _by_rounds(samples: Samples, loss: Loss, limits: Limits) -> Blocks:
    exponent = units.exponent_of(samples.targets, loss)
    scaled = in_units(samples, loss, exponent)
    limits = limits._replace(tol=math.ldexp(limits.tol, -exponent) if limits.tol < math.inf else math.inf)
    blocks = _after(rounds_of(scaled, loss, n_threads=limits.n_threads), limits)
    if isinstance(loss, Power) and len(samples.parameters) == 1 and limits[:3] == Limits()[:3]:
        blocks = _with_flat_blocks_solved(scaled, loss, blocks, limits)
    return in_original_units(blocks, exponent)


def _after(runs: rounds.Rounds, limits: Limits) -> Blocks:
    """Blocks after all rounds, or those that limits allow."""
    while len(runs.open) and runs.n_rounds < limits.rounds:
        if not runs.cut_all(halve=False, tol=limits.tol, deadline=limits.deadline):
            break
    return Blocks(*runs.blocks())


def _polished(samples: Samples, loss: Loss, blocks: Blocks, size: float, limits: Limits) -> Blocks:
    """Improve values that are right to 1e-9 of `size`: a few cuts around each give more digits and proven bounds."""
    lo, hi = blocks.values - 1e-9 * size, blocks.values + 1e-9 * size
    # blocks whose values are this close may be one block
    apart = np.flatnonzero(np.append(True, lo[1:] > hi[:-1]))
    runs = rounds_of(samples, loss, n_threads=limits.n_threads)
    runs.open = _runs_between(
        blocks.starts[apart], len(samples.targets), lo[apart], np.maximum.reduceat(hi, apart), blocks.values[apart]
    )
    runs.restart()
    return _after(runs, limits)


def _runs_between(
    starts: NDArray[np.int64], n: int, lo: NDArray[np.float64], hi: NDArray[np.float64], cuts: NDArray[np.float64]
) -> NDArray[np.void]:
    """Runs of n rows, the first cut of each, and bounds that are known to hold."""
    runs = np.repeat(rounds.first_run(n, 0.0, 0.0, 0.0), len(starts))
    runs["start"], runs["end"] = starts, np.append(starts[1:], n)
    runs["lo"], runs["hi"], runs["cut"] = lo, hi, cuts
    return runs


def in_units(samples: Samples, loss: Loss, exponent: int) -> Samples:
    """The samples with targets, and parameters that have their unit, divided by 2**exponent."""
    if loss.has_unit:
        samples = samples._replace(parameters=units.parameters_of(samples.parameters, samples.targets, exponent))
    return samples._replace(targets=units.ldexp(samples.targets, -exponent)) if exponent else samples


def in_original_units(blocks: Blocks, exponent: int) -> Blocks:
    """The blocks with values multiplied by 2**exponent."""
    values = units.ldexp(blocks.values, exponent)
    return Blocks(blocks.starts, values, *units.bounds_of(blocks.lower, blocks.upper, exponent))


def _with_flat_blocks_solved(samples: Samples, loss: Loss, blocks: Blocks, limits: Limits) -> Blocks:
    """Solve blocks whose slopes underflow again, each in its own unit.

    Powers of distances that are tiny beside the range of all targets are 0, so the loss of such a block looks flat.
    The block is a problem of its own, because cuts have separated it from its neighbours.
    """
    n, exponents_used = len(samples.targets), np.zeros(len(blocks.starts), dtype=np.int64)
    while True:
        wide = blocks.upper - blocks.lower > 1e-6 * np.maximum(np.abs(blocks.lower), np.abs(blocks.upper))
        if not wide.any():
            return blocks
        low, high = (ufunc.reduceat(samples.targets, blocks.starts) for ufunc in (np.minimum, np.maximum))
        size = np.maximum(high * 0.5 - low * 0.5, np.maximum(np.abs(low), np.abs(high)) * 2.0**-40)
        exponents = np.frexp(size)[1].astype(np.int64)
        flat = wide & (high > low) & (exponents < exponents_used - 8)
        if not flat.any():
            return blocks
        sizes = np.diff(np.append(blocks.starts, n))
        rows, exponents = np.repeat(flat, sizes), exponents[flat]
        shifts = np.repeat(exponents, sizes[flat])
        y = samples.targets[rows]
        part = samples._replace(
            scores=samples.scores[rows], targets=np.ldexp(y, -shifts),
            weights=samples.weights[rows] if len(samples.weights) else samples.weights,
            ends=samples.ends[rows] if len(samples.ends) else samples.ends,
        )  # fmt: skip
        lo = np.ldexp(np.nextafter(low[flat], -np.inf), -exponents)
        hi = np.ldexp(np.nextafter(high[flat], np.inf), -exponents)
        runs = rounds_of(part, loss, n_threads=limits.n_threads)
        runs.open = _runs_between(np.cumsum(sizes[flat]) - sizes[flat], len(y), lo, hi, 0.5 * lo + 0.5 * hi)
        runs.restart()
        solved = _after(runs, limits)
        shifts = shifts[solved.starts]
        found = (np.flatnonzero(rows)[solved.starts], *(np.ldexp(column, shifts) for column in solved[1:]), shifts)
        columns = [np.concatenate([old[~flat], new]) for old, new in zip((*blocks, exponents_used), found, strict=True)]
        order = np.argsort(columns[0])
        *parts, exponents_used = (column[order] for column in columns)
        blocks = Blocks(*parts)


def rounds_of(samples: Samples, loss: Loss, *, shortcuts: bool = True, n_threads: int = 1) -> rounds.Rounds:
    """All rows before the first round; `shortcuts`: a row alone gets its target at once."""
    custom = loss if isinstance(loss, Custom) else None
    address, user_data = custom.compiled[1:3] if custom is not None and custom.compiled is not None else (0, 0)
    weights = samples.weights
    if len(weights):  # only their ratios count
        weights = weights / 2.0 ** math.floor(math.log2(weights.max()))
    kind = SquaredError.kind if loss.is_mean else loss.kind
    p, y = samples.parameters, samples.targets
    # what slopes level off to is 1 in units of a parameter, if that is one of all; or, under logistic loss, 1 - y or -y
    whole = len(p) == 1 and isinstance(loss, (Huber, PseudoHuber, LogCosh, Quantile))
    whole |= isinstance(loss, Logistic) and bool(np.all((y == 0) | (y == 1)))
    problem = rounds.Problem(kind, p, address, user_data, y, weights, samples.ends, whole and not len(weights))
    if custom is not None:
        first = runs_in_domain(samples, custom)
    elif isinstance(loss, Logistic):
        first = _runs_of_log_odds(samples)
    else:
        first = _runs_of_targets(samples, loss)
    return rounds.Rounds(problem, first, location=shortcuts and loss.is_location, custom=custom, n_threads=n_threads)


def _runs_of_targets(samples: Samples, loss: Loss) -> NDArray[np.void]:
    """Values lie between the least and the greatest target."""
    low, high = float(samples.targets.min()), float(samples.targets.max())
    with np.errstate(all="ignore"):
        cut = low + float(np.mean(samples.targets[:: 1 + len(samples.targets) // _SAMPLE] - low))
    if not math.isfinite(cut):
        cut = 0.5 * low + 0.5 * high
    below, above = max(math.nextafter(low, -math.inf), -rounds.LAST), min(math.nextafter(high, math.inf), rounds.LAST)
    first = rounds.first_run(len(samples.targets), below, above, cut)
    if isinstance(loss, Quantile):
        sides = {"lower": [rounds.LEAST], "upper": [rounds.GREATEST], "middle": [rounds.LEAST, rounds.GREATEST]}
        first = np.repeat(first, len(sides[loss.side]))
        first["side"] = sides[loss.side]
    return first


def _runs_of_log_odds(samples: Samples) -> NDArray[np.void]:
    """Log-odds are infinite as long as all targets are 0, and from where all are 1."""
    y, n = samples.targets, len(samples.targets)
    borders = np.append(0, np.flatnonzero(samples.ends) + 1 if len(samples.ends) else np.arange(1, n + 1))
    some, not_all = np.append(np.flatnonzero(y > 0), n), np.append(-1, np.flatnonzero(y < 1))
    low = int(borders[np.searchsorted(borders, some[0], side="right") - 1])
    high = int(borders[np.searchsorted(borders, not_all[-1] + 1)])
    lo, hi = (-float(end) for end in (samples.parameters.max(), samples.parameters.min()))
    first = np.repeat(rounds.first_run(n, lo - _LOG_ODDS, hi + _LOG_ODDS, 0.5 * lo + 0.5 * hi), 3)
    first["start"], first["end"] = (0, low, high), (low, high, n)
    for end, value in ((0, -np.inf), (2, np.inf)):
        for field in ("lo", "hi", "cut", "value"):
            first[field][end] = value
    return first[first["start"] < first["end"]]


def runs_in_domain(samples: Samples, loss: Custom) -> NDArray[np.void]:
    """Values lie where the derivatives of all rows add up to the right sign."""
    low, high = float(samples.targets.min()), float(samples.targets.max())
    span = max(high - low, 1e-3 * max(abs(low), abs(high))) or 1.0  # targets that all are 0 tell nothing
    domain = loss.value_range
    memory = rounds.Memory(samples.targets)
    lo, low_end = _end(samples, loss, memory, min(max(low, domain[0]), domain[1]), -span, domain[0])
    hi, high_end = _end(samples, loss, memory, min(max(high, domain[0]), domain[1]), span, domain[1])
    untested = rounds.LOW_END * low_end + rounds.HIGH_END * high_end
    cut = lo if low_end else hi if high_end else 0.5 * lo + 0.5 * hi
    return rounds.first_run(len(samples.targets), lo, hi, cut, untested)


def costs_less(samples: Samples, loss: Loss, one: Staircase, other: Staircase) -> bool:
    """Whether one staircase costs no more than the other, except for rounding; also if both costs overflow."""
    exponent = units.exponent_of(samples.targets, loss)
    z, u = (
        units.ldexp(np.clip(stairs.predict(samples.scores), -rounds.LAST, rounds.LAST), -exponent)
        for stairs in (one, other)
    )
    samples = in_units(samples, loss, exponent)
    weights = samples.weights if len(samples.weights) else np.ones(1)
    # so small that sums of finite numbers are finite
    weights = units.ldexp(weights, -math.frexp(float(weights.max()))[1] - len(z).bit_length())
    with np.errstate(all="ignore"):
        if isinstance(loss, Custom):
            # by the integral of the derivative from one to the other, which Gauss' nodes give well enough
            nodes, shares = np.polynomial.legendre.leggauss(16)
            half = 0.5 * z - 0.5 * u
            slopes = sum(
                share * loss.slopes(0.5 * z + 0.5 * u + node * half, samples.targets)[0]
                for node, share in zip(nodes, shares, strict=True)
            )
            gains = weights * half * slopes
            return not _total(gains) > 1e-12 * _total(np.abs(gains))
        costs = []
        for values in (z, u):
            found = np.empty(len(values))
            _losses.values(loss.kind, samples.parameters, values, samples.targets, found)
            costs.append(_total(weights * found))
        return not costs[0] > costs[1] + 1e-12 * abs(costs[1])


def _total(numbers: NDArray[np.float64]) -> float:
    return math.fsum(numbers) if np.isfinite(numbers).all() else float(np.sum(numbers))


def deadline_after(seconds: float) -> float:
    """The time, as the clock tells it, after so many seconds."""
    return time.monotonic() + seconds
