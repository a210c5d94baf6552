"""Checks of the parameters of losses."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from staircase_fast.errors import InvalidInputError, refuse_entries
from staircase_fast.inputs.columns import read_array
from staircase_fast.inputs.options import check_number
from staircase_fast.typing import ColumnLike


def check_parameter(argument: str, parameter: ColumnLike, low: float, high: float) -> float | NDArray[np.float64]:
    """A finite number in this range, or a read-only copy of a column of them."""
    array = read_array(argument, parameter)
    if array.ndim > 1 or array.size == 0:
        raise InvalidInputError(argument, "must be a number, or one per sample", found=f"got shape {array.shape}")
    numbers = array.astype(np.float64)
    refuse_entries(argument, "must be finite", numbers, ~np.isfinite(numbers))
    if low > -math.inf:
        refuse_entries(argument, f"must be {range_text(low, high)}", numbers, (numbers < low) | (numbers > high))
    if array.ndim == 0:
        return float(numbers)
    numbers.setflags(write=False)
    return numbers


def check_tweedie_power(power: object) -> float:
    """A power for which a Tweedie distribution exists."""
    found = check_number("power", power)
    if 0 < found < 1:
        raise InvalidInputError("power", "must be <= 0 or >= 1", value=found)
    return found


def check_linex_shape(shape: ColumnLike) -> float | NDArray[np.float64]:
    """Shapes other than 0."""
    found = check_parameter("shape", shape, -math.inf, math.inf)
    column = np.asarray(found)
    refuse_entries("shape", "must not be 0", column, np.equal(column, 0))
    return found


def check_logistic_offset(offset: ColumnLike) -> float | NDArray[np.float64]:
    """Offsets that leave room for log-odds."""
    found = check_parameter("offset", offset, -math.inf, math.inf)
    column = np.asarray(found)
    refuse_entries("offset", "must be between -1e300 and 1e300", column, np.abs(column) > 1e300)
    return found


def range_text(low: float, high: float) -> str:
    """A range of numbers in words; its ends may be the floats next to 0 or 1."""
    if high == math.inf:
        return "> 0" if 0 < low < 1e-300 else "> 1" if 1 < low < 1.1 else f">= {low:g}"
    return f"> {low:.0f} and < {high:.0f}" if 0 < low < 1e-300 else f"in [{low:g}, {high:g}]"
