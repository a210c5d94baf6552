"""Fits under losses whose minimiser is not the mean: the solver of each loss, and bisection rounds."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from staircase_fast.bisection import _rounds, rounds
from staircase_fast.bisection.closed_forms import by_exponentials, by_mean, by_rates, by_update_rule
from staircase_fast.bisection.rounds import Blocks
from staircase_fast.bisection.samples import Samples, steps_of
from staircase_fast.losses import Custom, Loss, SquaredError, UpdateRule, _losses, units
from staircase_fast.losses.builtin import WIDE_EXPONENTS
from staircase_fast.staircase.steps import Steps

if TYPE_CHECKING:
    from staircase_fast.staircase.result import Staircase

_TINY_EXPONENTS = 2.0**-900  # Linex with smaller exponents is a square: exponentials would underflow
_LOG_ODDS = 1500.0  # bounds the log-odds of sums of weights and positive targets


class Budget(NamedTuple):
    """When to stop: the width of bounds, the number of rounds, the time; and the number of threads."""

    tol: float = 0.0
    rounds: float = math.inf
    deadline: float = math.inf
    n_threads: int = 1

    @property
    def is_unlimited(self) -> bool:
        """Whether values are to be as precise as floats are."""
        return self[:3] == (0.0, math.inf, math.inf)


def fit_samples(
    samples: Samples, loss: Loss, *, decreasing: bool, bounds: tuple[float, float], budget: Budget
) -> Steps:
    """The staircase of samples."""
    if isinstance(loss, UpdateRule):
        blocks = by_update_rule(samples, loss, decreasing=decreasing)
        samples = samples.reversed() if decreasing else samples
    else:
        if decreasing:
            samples, loss = samples.reversed(), loss.of_rows(np.arange(len(samples.targets))[::-1])
        blocks = by_mean(samples) if loss.is_mean else SOLVERS[loss.solver](samples, loss, budget)
    return steps_of(
        samples, blocks, bounds, decreasing=decreasing, infinite=loss.allows_infinite_values,
        within_targets=loss.is_location and budget.is_unlimited,
    )  # fmt: skip


def by_linex(samples: Samples, loss: Loss, budget: Budget) -> Blocks:
    """Linex by exponentials, if all samples have one shape and exponentials neither overflow nor underflow."""
    if len(samples.parameters) == 1:
        shape, low, high = (float(one) for one in (samples.parameters[0], samples.targets.min(), samples.targets.max()))
        exponent = abs(shape) * (high * 0.5 - low * 0.5)
        if exponent < _TINY_EXPONENTS:
            starts, values, _, _ = by_mean(samples)
            error = abs(shape) * (high - low) * (high - low)
            return Blocks(starts, values, values - error, values + error)
        if exponent < WIDE_EXPONENTS / 2:
            blocks = by_exponentials(samples, shape, low, high)
            return _refine(samples, loss, blocks, high - low + 1 / abs(shape), budget)
    return by_rounds(samples, loss, budget)


def by_rounds(samples: Samples, loss: Loss, budget: Budget) -> Blocks:
    """Bisection rounds, in units in which slopes neither overflow nor underflow."""
    exponent = units.exponent_of(samples.targets, loss)
    scaled = samples.in_units(loss, exponent)
    budget = budget._replace(tol=math.ldexp(budget.tol, -exponent) if budget.tol < math.inf else math.inf)
    blocks = _run_rounds(scaled, loss, budget)
    if loss.has_power_slopes and len(samples.parameters) == 1 and budget.is_unlimited:
        blocks = _solve_flat_blocks(scaled, loss, blocks, budget)
    return blocks.in_original_units(exponent)


SOLVERS: dict[str, Callable[[Samples, Loss, Budget], Blocks]] = {
    "rates": lambda samples, _loss, _budget: by_rates(samples),
    "exponentials": by_linex,
    "rounds": by_rounds,
}
"""The solver of each loss that is neither a mean nor an update rule, by `Loss.solver`."""


def _run_rounds(samples: Samples, loss: Loss, budget: Budget, first: NDArray[np.void] | None = None) -> Blocks:
    """Blocks after all rounds that the budget allows."""
    runs = rounds_of(samples, loss, first, n_threads=budget.n_threads)
    if budget.is_unlimited and not loss.in_python:
        runs.finish()
    while len(runs.open) and runs.n_rounds < budget.rounds:
        if not runs.cut_all(halve=False, tol=budget.tol, deadline=budget.deadline):
            break
    return runs.blocks()


def _refine(samples: Samples, loss: Loss, blocks: Blocks, size: float, budget: Budget) -> Blocks:
    """Improve values that are right to 1e-9 of `size`: a few cuts around each give more digits and proven bounds."""
    lo, hi = blocks.values - 1e-9 * size, blocks.values + 1e-9 * size
    # blocks whose values are closer than this may be one block
    apart = np.flatnonzero(np.append(True, lo[1:] > hi[:-1]))
    first = rounds.runs_between(
        blocks.starts[apart], len(samples.targets), lo[apart], np.maximum.reduceat(hi, apart), blocks.values[apart]
    )
    return _run_rounds(samples, loss, budget, first)


def _solve_flat_blocks(samples: Samples, loss: Loss, blocks: Blocks, budget: Budget) -> Blocks:
    """Solve blocks whose slopes underflow again, each in its own unit.

    Powers of distances that are tiny compared with the range of all targets are 0, so the loss of such a block looks
    flat.  Cuts have separated the block from its neighbours, so it can be solved alone.
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
        part = samples._replace(
            scores=samples.scores[rows], targets=np.ldexp(samples.targets[rows], -shifts),
            weights=samples.weights[rows] if len(samples.weights) else samples.weights,
            ends=samples.ends[rows] if len(samples.ends) else samples.ends,
        )  # fmt: skip
        lo = np.ldexp(np.nextafter(low[flat], -np.inf), -exponents)
        hi = np.ldexp(np.nextafter(high[flat], np.inf), -exponents)
        starts = np.cumsum(sizes[flat]) - sizes[flat]
        first = rounds.runs_between(starts, len(shifts), lo, hi, 0.5 * lo + 0.5 * hi)
        solved = _run_rounds(part, loss, budget, first)
        shifts = shifts[solved.starts]
        found = (np.flatnonzero(rows)[solved.starts], *(np.ldexp(column, shifts) for column in solved[1:]), shifts)
        columns = [np.concatenate([old[~flat], new]) for old, new in zip((*blocks, exponents_used), found, strict=True)]
        order = np.argsort(columns[0])
        *parts, exponents_used = (column[order] for column in columns)
        blocks = Blocks(*parts)


def rounds_of(
    samples: Samples, loss: Loss, first: NDArray[np.void] | None = None, *, shortcuts: bool = True, n_threads: int = 1
) -> rounds.Rounds:
    """The state before the first round; `shortcuts`: rows that share a target get it as their value at once."""
    weights = samples.weights
    if len(weights):  # only their ratios matter
        weights = weights / 2.0 ** math.floor(math.log2(weights.max()))
    problem = rounds.Problem(
        SquaredError.kind if loss.is_mean else loss.kind, samples.parameters, samples.targets, weights, samples.ends,
        not len(weights) and loss.has_integer_slopes(samples.targets), shortcuts and loss.is_location,
        loss.address, loss.user_data,
    )  # fmt: skip
    first = FIRST_RUNS[loss.first_bounds](samples, loss) if first is None else first
    return rounds.Rounds(problem, first, loss, n_threads)


def _runs_of_targets(samples: Samples, loss: Loss) -> NDArray[np.void]:
    """Values lie between the least and the greatest target."""
    first = rounds.run_between(samples.targets)
    first = np.repeat(first, len(rounds.SIDES[loss.side]))
    first["side"] = rounds.SIDES[loss.side]
    return first


def _runs_of_log_odds(samples: Samples, loss: Loss) -> NDArray[np.void]:
    """Log-odds are infinite for the leading rows whose targets are all 0, and the trailing ones that are all 1."""
    n, (low, high) = len(samples.targets), samples.rows_at_ends(loss)
    lo, hi = (-float(end) for end in (samples.parameters.max(), samples.parameters.min()))
    first = np.repeat(rounds.first_run(n, lo - _LOG_ODDS, hi + _LOG_ODDS, 0.5 * lo + 0.5 * hi), 3)
    first["start"], first["end"] = (0, low, high), (low, high, n)
    for end, value in ((0, -np.inf), (2, np.inf)):
        for field in ("lo", "hi", "cut", "value"):
            first[field][end] = value
    return first[first["start"] < first["end"]]


def runs_in_domain(samples: Samples, loss: Loss) -> NDArray[np.void]:
    """Values lie where the summed derivative of a Custom loss changes its sign."""
    assert isinstance(loss, Custom)
    low, high = float(samples.targets.min()), float(samples.targets.max())
    span = max(high - low, 1e-3 * max(abs(low), abs(high))) or 1.0  # 1 if all targets are 0
    domain = loss.value_range
    outside = _Outside(samples, loss)
    lo, low_end = _outer_bound(outside, min(max(low, domain[0]), domain[1]), -span, domain[0])
    hi, high_end = _outer_bound(outside, min(max(high, domain[0]), domain[1]), span, domain[1])
    untested = rounds.LOW_END * low_end + rounds.HIGH_END * high_end
    cut = lo if low_end else hi if high_end else 0.5 * lo + 0.5 * hi
    return rounds.first_run(len(samples.targets), lo, hi, cut, untested)


FIRST_RUNS: dict[str, Callable[[Samples, Loss], NDArray[np.void]]] = {
    "targets": _runs_of_targets,
    "log_odds": _runs_of_log_odds,
    "derivative": runs_in_domain,
}
"""The first bounds of values under each loss, by `Loss.first_bounds`."""


class _Outside:
    """Tests whether points lie beyond all fitted values of a Custom loss, and checks its derivative there."""

    def __init__(self, samples: Samples, loss: Custom) -> None:
        self._samples, self._loss = samples, loss
        self._python = rounds.PythonSlopes(samples.targets) if loss.in_python else None
        self._z, self._slopes = math.nan, np.empty(0 if loss.in_python else len(samples.targets))

    def __call__(self, z: float, sign: float) -> bool:
        """Whether every leading part of the rows lies above z if sign < 0, or every trailing part below it."""
        return bool(_rounds.are_outside(self._evaluate(z), self._samples.weights, self._samples.ends, sign > 0))

    def _evaluate(self, z: float) -> NDArray[np.float64]:
        targets, loss, last = self._samples.targets, self._loss, self._z
        if self._python is None:
            if _losses.evaluate(loss, targets, z, *rounds.points_below(targets, loss), last, self._slopes):
                self._z = z
                return self._slopes
            self._python = rounds.PythonSlopes(targets)  # raises the error
            if not math.isnan(last):
                self._python.evaluate(loss, rounds.first_run(len(targets), last, last, last))
        self._python.evaluate(loss, rounds.first_run(len(targets), z, z, z))
        return self._python.slope


def _outer_bound(outside: _Outside, start: float, span: float, end: float) -> tuple[float, bool]:
    """A value beyond all fitted values, or the end of the domain; and whether it is the end."""
    sign = math.copysign(1.0, span)
    for factor in (0.0, 1.0, 16.0, 256.0):
        z = start + factor * span
        if sign * z >= sign * end:
            break
        if outside(z, sign):
            return z, False
    return (end if math.isfinite(end) else sign * rounds.LARGEST), True


def total_loss_is_no_greater(samples: Samples, loss: Loss, one: Staircase, other: Staircase) -> bool:
    """Whether the loss of one staircase is at most that of the other, except for rounding; True if both overflow."""
    exponent = units.exponent_of(samples.targets, loss)
    z, u = (
        units.ldexp(np.clip(stairs.predict(samples.scores), -rounds.LARGEST, rounds.LARGEST), -exponent)
        for stairs in (one, other)
    )
    samples = samples.in_units(loss, exponent)
    weights = samples.weights if len(samples.weights) else np.ones(1)
    # so small that sums of finite numbers are finite
    weights = units.ldexp(weights, -math.frexp(float(weights.max()))[1] - len(z).bit_length())
    with np.errstate(all="ignore"):
        if isinstance(loss, Custom):
            # the integral of the derivative from one to the other, by Gauss-Legendre quadrature
            nodes, shares = np.polynomial.legendre.leggauss(16)
            half = 0.5 * z - 0.5 * u
            slopes = sum(
                share * loss.slopes(0.5 * z + 0.5 * u + node * half, samples.targets)
                for node, share in zip(nodes, shares, strict=True)
            )
            differences = weights * half * slopes
            return not _total(differences) > 1e-12 * _total(np.abs(differences))
        costs = []
        for values in (z, u):
            found = np.empty(len(values))
            _losses.values(loss.kind, samples.parameters, values, samples.targets, found)
            costs.append(_total(weights * found))
        return not costs[0] > costs[1] + 1e-12 * abs(costs[1])


def _total(numbers: NDArray[np.float64]) -> float:
    return math.fsum(numbers) if np.isfinite(numbers).all() else float(np.sum(numbers))
