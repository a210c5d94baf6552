"""`certify`: the conditions of optimality, checked on sums of slopes."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from staircase_fast.bisection.samples import Samples
from staircase_fast.certificate.gap import cost_at_ends, gap_if_joined, gap_of
from staircase_fast.certificate.pieces import Floats, Pieces, Problem, Sums, slopes_of, sums_of
from staircase_fast.errors import InvalidTypeError
from staircase_fast.inputs.rows import read_columns
from staircase_fast.losses import Loss, loss_of, units
from staircase_fast.losses.rows import (
    Rows,
    check_has_derivative,
    check_parameter_length,
    check_rows_and_parameters,
    limits_of,
)
from staircase_fast.stack.sorting import in_score_order
from staircase_fast.staircase.result import Staircase
from staircase_fast.typing import Bounds, ColumnLike, public_class

_HOW_TO_PASS = "Pass it before the scores. `fit(scores, values)` makes one of fitted values."


@public_class("staircase_fast")
class Certificate(NamedTuple):
    """The result of `certify`.

    Attributes
    ----------
    optimal : bool
        Whether the staircase is optimal, except for rounding.
    gap : float
        An upper bound on the excess loss over the optimum: the sum of weights times losses.
    worst_index : int
        The row with the largest violation of the conditions, or the row closest to one.

    Examples
    --------
    >>> import staircase_fast as sf
    >>> sf.certify(sf.fit([1, 2], [0, 1]), [1, 2], [0, 1]).optimal
    True
    """

    optimal: bool
    gap: float
    worst_index: int


def certify(
    stairs: Staircase,
    scores: ColumnLike,
    targets: ColumnLike,
    *,
    sample_weight: ColumnLike | None = None,
    loss: str | Loss | None = None,
    bounds: Bounds = None,
) -> Certificate:
    """Prove that a staircase is optimal for these rows, or bound its excess loss.

    The staircase may come from any source.  Of its arrays, only `left` and `values` are used.  The time is linear in
    the number of rows once they are sorted.

    Parameters
    ----------
    stairs : Staircase
        A row has the value of the last step that starts at or below its score, as in `predict`.  The optimum is taken
        over increasing staircases if this one is `increasing`, otherwise over decreasing ones.
    scores, targets : array_like of shape (n,)
    sample_weight : array_like of shape (n,), optional
        As in `fit`.
    loss : str or Loss, optional
        The loss to be minimised.  Defaults to that of the staircase.
    bounds : (lo, hi), optional
        The bounds of the fit.

    Returns
    -------
    Certificate
        `optimal`, `gap` and `worst_index`.

    Notes
    -----
    A staircase is optimal if, on each step, no leading rows would reduce the loss by moving down and no trailing rows
    by moving up: slopes of the loss, summed over every leading part, must not be above 0, and over every trailing part
    not below 0.  At an end of the bounds or of the values that the loss allows, one of the two conditions is enough.

    `optimal` allows for rounding.  Slopes are evaluated 4 ulps below and above the value, steps that are not farther
    apart than that may be one step, and a sum of slopes is a fault only if it exceeds its own error bound: 8 ulps of
    each slope plus the effect of 2 ulps of z - y.  Slopes that have levelled off are summed exactly (to an ulp under
    Huber and quantile losses).  So values that are right to a few ulps pass.  `stairs.lower` and `stairs.upper` are
    ignored: a proof must not use the claim.  A fit that was stopped early by `tol`, `max_rounds` or `max_seconds` is
    not optimal in this sense; its `gap` bounds the cost of stopping.

    `gap` is an upper bound that includes rounding: the true gap lies between 0 and `gap`.  For an optimum it is of the
    order of rounding errors, not 0.  For a staircase that is far off it can be many times the true gap, and it is
    infinite where the loss is.

    `worst_index` is the row at the end of a leading part, or at the beginning of a trailing part, with the largest sum
    of slopes.  If the value of a step violates the bounds, the range of the loss, or the order of the steps, it is a
    row of that step.

    Thread-safety: inputs are only read; the kernel runs without the GIL.

    Examples
    --------
    >>> import staircase_fast as sf
    >>> scores, targets = [1, 2, 3, 4], [0.0, 3.0, 1.0, 5.0]
    >>> stairs = sf.fit(scores, targets, loss="log_cosh")
    >>> certificate = sf.certify(stairs, scores, targets)
    >>> certificate.optimal, certificate.gap < 1e-12
    (True, True)

    A fit under one loss is not optimal under another:

    >>> sf.certify(stairs, scores, targets, loss=sf.losses.Expectile(0.9)).optimal
    False
    """
    if not isinstance(stairs, Staircase):
        raise InvalidTypeError("stairs", "must be a Staircase", value=stairs, hint=_HOW_TO_PASS)
    given_loss = stairs.loss if loss is None else loss_of(loss)
    low, high = limits_of(given_loss, bounds)
    columns = read_columns(scores, targets, sample_weight)
    check_parameter_length(given_loss, len(columns[0]))
    rows, sorted_loss = check_rows_and_parameters(*columns, given_loss)
    places = in_score_order(rows._replace(targets=np.arange(len(rows.scores)))).targets
    starts, values = _steps(stairs, rows.scores[places])
    check_has_derivative(sorted_loss)
    places = places if stairs.increasing else places[::-1]
    if sorted_loss.per_sample:
        sorted_loss = sorted_loss.of_rows(places)
    samples = _samples(rows, sorted_loss, places)
    exponent = units.exponent_of(samples.targets, sorted_loss)
    samples = samples.in_units(sorted_loss, exponent)
    with np.errstate(all="ignore"):  # where a loss is infinite, so is the gap
        ends = np.ldexp([low, high], -exponent)
        optimal, gap, row = _check(
            samples, sorted_loss, starts, np.ldexp(values, -exponent), (ends[0], ends[1]), exponent
        )
        gap = float(np.exp2(exponent * sorted_loss.degree) * gap) if exponent and gap > 0 else gap
    place = int(places[row])
    given = place if len(rows.scores) == len(columns[0]) else int(np.flatnonzero(columns[2] > 0)[place])
    return Certificate(optimal, gap, given)


def _steps(stairs: Staircase, scores: NDArray[np.float64]) -> tuple[NDArray[np.int64], Floats]:
    """Starts of the steps that have rows, and the number of rows; their values in increasing order."""
    starts = np.concatenate([[0], np.searchsorted(scores, stairs.left[1:]), [len(scores)]]).astype(np.int64)
    values = stairs.values
    if not stairs.increasing:
        starts, values = len(scores) - starts[::-1], values[::-1]
    some = starts[1:] > starts[:-1]
    return np.append(starts[:-1][some], len(scores)), values[some]


def _samples(rows: Rows, loss: Loss, places: NDArray[np.int64]) -> Samples:
    """The rows in this order."""
    x, y, w, p = rows.scores[places], rows.targets[places].astype(np.float64), rows.weights, loss.parameters
    ends = np.append(x[1:] != x[:-1], True).view(np.uint8)
    return Samples(x, y, w[places] if len(w) else w, p, ends[:0] if ends.all() else ends)


def _check(
    samples: Samples, loss: Loss, starts: NDArray[np.int64], values: Floats, bounds: tuple[float, float], exponent: int
) -> tuple[bool, float, int]:
    """Whether values of steps are optimal between these bounds, the gap, and the worst row.

    Values, targets and bounds are divided by 2**exponent; the values were float64 before that.
    """
    within = (values >= loss.value_range[0]) & (values <= loss.value_range[1])
    if not within.all():
        return False, math.inf, int(starts[np.argmin(within)])
    slopes = slopes_of(samples, loss, values)
    problem = Problem(samples, loss, bounds, exponent, samples.rows_at_ends(loss), slopes)
    pieces = problem.pieces_of(starts, values)
    sums = sums_of(slopes, pieces)
    bound = gap_of(problem, pieces, sums)
    if pieces.joined.any():
        bound = min(bound, gap_if_joined(problem, pieces, sums))
        sums = sums_of(slopes, pieces, pieces.joined)
    gap = cost_at_ends(problem, pieces) + bound
    optimal, row = _verdict(pieces, sums, bounds)
    return optimal, gap if gap >= 0 else math.inf if math.isnan(gap) else 0.0, row


def _verdict(pieces: Pieces, sums: Sums, bounds: tuple[float, float]) -> tuple[bool, int]:
    """Whether no leading part has a positive sum and no trailing part a negative one; the row closest to a fault."""
    z = pieces.values
    wrong = (z < bounds[0]) | (z > bounds[1]) | np.append(False, z[1:] < z[:-1])  # a step may be two pieces
    if wrong.any():
        return False, int(pieces.starts[np.argmax(wrong)])
    first = np.flatnonzero(~pieces.joined)
    sizes = np.diff(np.append(first, len(z)))
    at_low, at_high = (
        np.repeat(np.logical_or.reduceat(at_end, first), sizes) for at_end in (z <= bounds[0], z >= bounds[1])
    )
    low, high = sums
    excess = np.concatenate([np.where(at_low, -np.inf, low["excess"]), np.where(at_high, -np.inf, high["excess"])])
    worst = int(np.argmax(excess))
    return bool(excess[worst] <= 0), int(np.concatenate([low["row"], high["row"]])[worst])
