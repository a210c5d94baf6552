"""Checks of rows that depend on the loss: the range of targets, the length of parameters, the sizes of numbers."""

from __future__ import annotations

import math
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from staircase_fast.arithmetic.exact import LABELS, UNIT_WEIGHTS, Extent, Order, extent_of, order_of, summary_of
from staircase_fast.errors import DROP_ROWS, InvalidInputError, InvalidTypeError, refuse_entries
from staircase_fast.inputs import hints
from staircase_fast.inputs.columns import Column
from staircase_fast.inputs.options import check_bounds
from staircase_fast.inputs.rows import check_weights, refuse_nan
from staircase_fast.losses import units
from staircase_fast.losses.base import Loss
from staircase_fast.losses.parameters import range_text
from staircase_fast.typing import Bounds

_FIT_ARGUMENTS = ("targets", "sample_weight")
_FIRST_ROWS = 1024


class Rows(NamedTuple):
    """Valid rows: columns of one length >= 1, without rows of weight 0."""

    scores: Column
    targets: Column
    weights: Column  # float64, or empty if all are 1
    targets_extent: Extent
    weights_extent: Extent
    order: Order
    buckets: NDArray[np.float64] | None = None  # from `summary_of`


def check_rows(
    x: Column, y: Column, w: Column, loss: Loss, n_threads: int, arguments: tuple[str, str] = _FIT_ARGUMENTS
) -> Rows:
    """Check the entries of columns; `arguments` are the caller's names for targets and weights."""
    order = order_of(x, n_threads)
    refuse_nan("scores", x, order.first_nan)
    if order.sign and not order.tied:
        buckets, y_extent, w_extent = summary_of(y, w, n_threads)
    else:
        w_extent = extent_of(w, n_threads) if len(w) else UNIT_WEIGHTS
        buckets, y_extent = None, extent_of(y, n_threads)
    present = check_weights(arguments[1], w, w_extent)
    check_targets(arguments[0], y, y_extent, loss, x)
    if present is not None:
        x, y, w, buckets = x[present], y[present], w[present], None
    return Rows(x, y, w, y_extent, w_extent, order, buckets)


def check_rows_and_parameters(
    x: Column, y: Column, w: Column, loss: Loss, arguments: tuple[str, str] = _FIT_ARGUMENTS
) -> tuple[Rows, Loss]:
    """As `check_rows`; also check parameters, and return the loss of the rows whose weight is not 0."""
    found = check_rows(x, y, w, loss, 1, arguments)
    if loss.solver in ("rounds", "exponentials"):
        units.check_spans(y, w, (found.targets_extent, found.weights_extent), loss, arguments)
    if loss.per_sample and len(found.scores) < len(x):
        loss = loss.of_rows(w > 0)
    return found, loss


def guess_labels(x: Column, y: Column, w: Column, loss: Loss) -> Rows | None:
    """The rows, if the first of them are unsorted and have 0/1 labels without weights.  The survey checks the rest."""
    if not look_like_labels(y, w, loss):
        return None
    order = order_of(x[:_FIRST_ROWS], 1)
    return Rows(x, y, w, LABELS, UNIT_WEIGHTS, order) if order.sign == 0 and order.first_nan < 0 else None


def look_like_labels(y: Column, w: Column, loss: Loss) -> bool:
    """Whether the first targets are labels that the loss allows, and there are no weights."""
    low, high = loss.target_range
    first = y[:_FIRST_ROWS]
    return not len(w) and low <= 0 and high >= 1 and bool(np.all((first == 0) | (first == 1)))


def check_targets(argument: str, y: Column, extent: Extent, loss: Loss, x: Column | None = None) -> None:
    """Targets must be finite and in the range of the loss; x are the scores of the same rows, if there are any."""
    if extent.first_bad >= 0:
        refuse_entries(argument, "must be finite", y, ~np.isfinite(y), hint=lambda: DROP_ROWS)
    low, high = loss.target_range
    if extent.lowest < low or extent.highest > high:
        requirement = f"must be {range_text(low, high)} for {loss.name}"
        hint = partial(hints.for_labels, argument, y, x) if (low, high) == (0, 1) else str
        refuse_entries(argument, requirement, y, (y < low) | (y > high), hint=hint)


def check_parameter_length(loss: Loss, n: int) -> None:
    """Each parameter must be a number or have one entry per row."""
    columns = [("args", f"entry {place} has", arg) for place, arg in enumerate(getattr(loss, "args", ()))]
    columns.append((loss.parameter, "got", getattr(loss, loss.parameter, 0.0)))
    for argument, verb, column in columns:
        if np.ndim(column) and len(column) != n:
            found = f"{verb} {len(column)} for {n} rows"
            raise InvalidInputError(argument, "of the loss must have one entry per row", found=found)


def limits_of(loss: Loss, bounds: Bounds) -> tuple[float, float]:
    """The bounds of values: the range of the loss, within the given bounds."""
    if bounds is None:
        return loss.value_range
    (low, high), (least, greatest) = check_bounds(bounds), loss.value_range
    if low > greatest or high < least:
        requirement = f"must include values {range_text(least, greatest)} for {loss.name}"
        raise InvalidInputError("bounds", requirement, value=bounds)
    return max(low, least), min(high, greatest)


def check_is_comparable(loss: Loss) -> None:
    """`increasing="auto"` compares the losses of two fits, which needs values or derivatives."""
    if not (loss.has_values or loss.has_derivative):
        requirement = f"must be True or False for {loss!r}, whose values are unknown"
        raise InvalidTypeError("increasing", requirement, value="auto")


def check_has_derivative(loss: Loss) -> None:
    """Bisection and certificates need a derivative."""
    if not loss.has_derivative:
        requirement = f"must have a derivative; {loss!r} only defines how blocks merge"
        raise InvalidTypeError("loss", requirement, hint="Use `fit`.")


def refuse_infinite_steps(values: NDArray[np.float64], allowed: tuple[bool, bool], *, rising: bool) -> None:
    """Raise an error for an infinite value, unless the bounds allow it."""
    for value, is_allowed in zip((-math.inf, math.inf), allowed, strict=True):
        step = 0 if (value < 0) == rising else len(values) - 1
        if values[step] == value and not is_allowed:
            hint = "Pass finite numbers, e.g. (-10, 10), or (-inf, inf) to allow infinite values."
            raise InvalidInputError("bounds", "must be finite here", found=f"step {step} would be {value}", hint=hint)
