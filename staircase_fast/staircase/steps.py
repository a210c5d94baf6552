"""The columns of a staircase, their checks, and the ends of steps for centered interpolation."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from staircase_fast.errors import InvalidInputError, InvalidTypeError, refuse_entries
from staircase_fast.inputs.columns import Column, read_array, read_column, read_float_column
from staircase_fast.inputs.missing import read_with_nan
from staircase_fast.inputs.rows import check_same_length, read_scores
from staircase_fast.losses import Loss
from staircase_fast.losses.parameters import range_text
from staircase_fast.typing import ColumnLike

Floats = NDArray[np.float64]
_NO_BORDERS = np.empty(0, dtype=np.int64)


class Steps(NamedTuple):
    """Valid steps, in arrays that belong to us."""

    left: Floats
    right: Floats
    values: Floats
    weights: Floats
    counts: NDArray[np.int64]
    lower: Floats | None = None  # bounds on the exact optimum, if values are not exact
    upper: Floats | None = None


def check_steps(
    columns: tuple[Any, ...], *, rising: bool | NDArray[np.bool_], loss: Loss, borders: Column = _NO_BORDERS
) -> Steps:
    """Check the columns of one staircase, or of several that begin at the borders."""
    given = dict(zip(Steps._fields, columns, strict=True))
    ends = {name: read_scores(name, given.pop(name)).astype(np.float64) for name in ("left", "right")}
    integers = read_column("counts", given.pop("counts"))
    if integers.dtype.kind == "f" and len(integers):
        raise InvalidTypeError("counts", "must be integers", value=integers[0].item(), index=0)
    heights = {
        name: read_column(name, one).astype(np.float64)
        for name, one in given.items()
        if one is not None or name in ("values", "weights")
    }
    found = Steps(**ends, **heights, counts=integers.astype(np.int64))
    if len(found.left) == 0:
        raise InvalidInputError("left", "must have at least one step", found="got none")
    low, high = loss.value_range
    for name, column in found._asdict().items():
        if column is None:
            continue
        check_same_length("left", found.left, name, column)
        if name in ("values", "lower", "upper"):
            refuse_entries(name, "must not be NaN", column, np.isnan(column))
            outside = (column < low) | (column > high)
            refuse_entries(name, f"must be {range_text(low, high)} for {loss.name}", column, outside)
        if name == "weights" or (name in heights and not loss.allows_infinite_values):
            refuse_entries(name, "must be finite", column, ~np.isfinite(column))
    refuse_entries("weights", "must be > 0", found.weights, found.weights <= 0)
    refuse_entries("counts", "must be >= 1", found.counts, found.counts < 1)
    refuse_entries("right", "must be >= `left`", found.right, found.right < found.left)
    inner = np.ones(len(found.left) - 1, dtype=np.bool_)
    inner[borders - 1] = False
    overlap = inner & (found.left[1:] <= found.right[:-1])
    refuse_entries("left", "must be above the `right` of the step before", found.left[1:], overlap, 1)
    up = np.broadcast_to(rising, found.left.shape)[1:]
    for way, wrong in (
        ("increase", inner & up & ~(found.values[1:] > found.values[:-1])),
        ("decrease", inner & ~up & ~(found.values[1:] < found.values[:-1])),
    ):
        refuse_entries("values", f"must strictly {way}", found.values[1:], wrong, 1)
    if found.lower is not None:
        refuse_entries("lower", "must be <= `values`", found.lower, found.lower > found.values)
    if found.upper is not None:
        refuse_entries("upper", "must be >= `values`", found.upper, found.upper < found.values)
    return found


def read_queries(scores: ColumnLike, *, keep_nan: bool = False) -> tuple[Column, tuple[int, ...]]:
    """Scores to evaluate, as a flat column that may contain NaN, and their shape.

    `keep_nan`: other kinds of missing scores become NaN as well.
    """
    array = read_with_nan("scores", scores) if keep_nan else read_array("scores", scores, exact=True)
    return read_float_column("scores", array.reshape(-1)), array.shape


def check_output(out: object, shape: tuple[int, ...]) -> Floats:
    """An array of the caller that results are written to."""
    if not isinstance(out, np.ndarray):
        raise InvalidTypeError("out", "must be a numpy array", found=f"got {type(out).__name__}")
    if out.dtype != np.float64:
        raise InvalidTypeError("out", "must be of dtype float64", found=f"got {out.dtype}")
    if out.shape != shape:
        raise InvalidInputError("out", f"must have the shape of `scores`, {shape}", found=f"got {out.shape}")
    if not out.flags.writeable:
        raise InvalidInputError("out", "must be writeable", found="got a read-only array")
    return out


def refuse_outside(scores: Column, low: float, high: float) -> None:
    """Raise an error for the first score outside the fitted range."""
    outside = (scores < np.float64(low)) | (scores > np.float64(high))  # a float would be rounded to float32
    refuse_entries("scores", f"must be in [{low}, {high}], the fitted range", scores, outside)


def centered_ends(left: Floats, right: Floats, offsets: NDArray[np.int64]) -> tuple[Floats, Floats]:
    """Ends of steps for which linear interpolation gives lines through the middles of the given steps.

    Staircase g has the steps [offsets[g], offsets[g + 1]).  Each step shrinks to its middle.  The first shrinks to its
    left end and the last to its right end, so that lines cover the whole range.  A step with an infinite end is
    constant up to its other end.  A single step stays unchanged.
    """
    with np.errstate(all="ignore"):  # middles of infinite steps are not used
        half = (right - left) / 2
        # right - left may overflow, and halves of tiny ends are inexact, but not both
        middle = np.where(np.isfinite(half), left + half, left / 2 + right / 2)
    low, high = middle.copy(), middle
    first, last = offsets[:-1], offsets[1:] - 1
    low[first], high[last] = left[first], right[last]
    high[first] = np.where(np.isinf(left[first]), right[first], left[first])
    low[last] = np.where(np.isinf(right[last]), left[last], right[last])
    alone = first[first == last]
    low[alone], high[alone] = left[alone], right[alone]
    return low, high
