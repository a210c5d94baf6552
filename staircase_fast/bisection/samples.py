"""Rows in score order with the parameters of their losses, and the blocks of a fit."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from staircase_fast.arithmetic.exact import UNIT_WEIGHTS, extent_of, scale_of
from staircase_fast.bisection import _rounds
from staircase_fast.bisection.rounds import Blocks
from staircase_fast.inputs.columns import Column
from staircase_fast.losses import Loss, units
from staircase_fast.losses.rows import Rows
from staircase_fast.stack import _sorted_rows, sorted_rows, sorting
from staircase_fast.staircase.steps import Steps

_EACH_ROW = np.empty(0, dtype=np.uint8)


class Samples(NamedTuple):
    """Rows in score order with float64 targets and the parameters of their losses."""

    scores: Column
    targets: NDArray[np.float64]
    weights: NDArray[np.float64]  # or empty: all are 1
    parameters: NDArray[np.float64]  # one, or one per row
    ends: NDArray[np.uint8]  # whether a score ends at a row; or empty: at each

    def reversed(self) -> Samples:
        """The rows in the opposite order."""
        x, y, w, p = (np.ascontiguousarray(column[::-1]) for column in self[:4])
        ends = self.ends
        if len(ends):
            ends = np.append(ends[:-1][::-1], np.uint8(1))  # a score ends where the next one begins
        return Samples(x, y, w, p, ends)

    def in_units(self, loss: Loss, exponent: int) -> Samples:
        """Targets, and parameters that have their unit, divided by 2**exponent."""
        samples = self
        if loss.has_unit:
            samples = samples._replace(parameters=units.parameters_of(samples.parameters, samples.targets, exponent))
        return samples._replace(targets=units.ldexp(samples.targets, -exponent)) if exponent else samples

    def rows_at_ends(self, loss: Loss) -> tuple[int, int]:
        """The end of the leading rows whose targets are all 0, and the start of the trailing ones that are all 1.

        Only for losses under which such rows have their minimiser at an end of the values (`extreme_targets`).
        """
        y, n = self.targets, len(self.targets)
        if not any(loss.extreme_targets):
            return 0, n
        borders = np.append(0, np.flatnonzero(self.ends) + 1) if len(self.ends) else np.arange(n + 1)
        low, high = 0, n
        if loss.extreme_targets[0]:
            some = np.append(np.flatnonzero(y > 0), n)
            low = int(borders[np.searchsorted(borders, some[0], side="right") - 1])
        if loss.extreme_targets[1]:
            not_all = np.append(-1, np.flatnonzero(y < 1))
            high = int(borders[np.searchsorted(borders, not_all[-1] + 1)])
        return low, max(low, high)


def samples_of(rows: Rows, loss: Loss) -> tuple[Samples, Loss]:
    """The rows in score order, and the loss of rows in that order."""
    x, y, w = rows.scores, rows.targets.astype(np.float64, copy=False), rows.weights
    if loss.per_sample and rows.order.sign <= 0:
        places = sorting.in_score_order(rows._replace(targets=np.arange(len(x))))
        x, w, place = places.scores, places.weights, places.targets
        y, loss = y[place], loss.of_rows(place)
    elif rows.order.sign <= 0:
        x, y, w = sorting.in_score_order(rows._replace(targets=y))[:3]
    if rows.order.sign > 0 and not rows.order.tied:
        return Samples(x, y, w, loss.parameters, _EACH_ROW), loss
    ends = np.ones(len(x), dtype=np.uint8)
    np.not_equal(x[1:], x[:-1], out=ends[:-1].view(np.bool_))
    if ends.all():
        return Samples(x, y, w, loss.parameters, _EACH_ROW), loss
    # sort rows of one score by their other columns, so that sums do not depend on the order of the input
    begins = np.append(np.uint8(1), ends[:-1])
    tied = np.flatnonzero((ends & begins) == 0)
    keys = [column[tied] for column in (*loss.sort_keys(), w, y, np.cumsum(begins)) if len(column) > 1]
    place = np.arange(len(x))
    place[tied] = tied[np.lexsort(keys)]
    if loss.per_sample:
        loss = loss.of_rows(place)
    return Samples(x, y[place], w[place] if len(w) else w, loss.parameters, ends), loss


def steps_of(
    samples: Samples,
    blocks: Blocks,
    bounds: tuple[float, float],
    *,
    decreasing: bool,
    infinite: bool,
    within_targets: bool = False,
) -> Steps:
    """Convert blocks to steps.

    `infinite`: the largest floats stand for infinities.  `within_targets`: values lie between the targets of their
    block, so rounding must not move them out.
    """
    limited = _rounds.limit_values(*blocks, samples.targets, within_targets, infinite, *bounds)
    blocks = Blocks(*limited)
    starts, stops = blocks.starts, np.append(blocks.starts[1:], len(samples.targets))
    counts = stops - starts
    weights = counts.astype(np.float64)
    if len(samples.weights):
        scale = scale_of(extent_of(samples.weights, 1), UNIT_WEIGHTS, len(samples.weights))
        _sorted_rows.totals(samples.weights, scale, starts, weights)
    left, right = (samples.scores[index].astype(np.float64) for index in (starts, stops - 1))
    steps = Steps(left, right, blocks.values, weights, counts, blocks.lower, blocks.upper)
    return sorted_rows.turned(steps) if decreasing else steps
