"""Checks of the parameters of losses."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
from numpy.typing import NDArray

from staircase_fast.errors import InvalidInputError, refuse_entries
from staircase_fast.inputs.columns import read_array
from staircase_fast.typing import ColumnLike


def check_parameter(argument: str, parameter: ColumnLike, low: float, high: float) -> float | NDArray[np.float64]:
    """A finite number in this range, or a read-only copy of a column of them."""
    try:
        array = read_array(argument, parameter)
    except InvalidInputError as error:
        error.hint = "Pass a number, or an array with one number per row."
        raise
    if array.ndim > 1 or array.size == 0:
        raise InvalidInputError(argument, "must be a number, or one per sample", found=f"got shape {array.shape}")
    numbers = array.astype(np.float64)
    refuse_entries(argument, "must be finite", numbers, ~np.isfinite(numbers))
    if low > -math.inf:
        outside = (numbers < low) | (numbers > high)
        refuse_entries(
            argument, f"must be {range_text(low, high)}", numbers, outside, hint=partial(_hint, numbers, high)
        )
    if array.ndim == 0:
        return float(numbers)
    numbers.setflags(write=False)
    return numbers


def _hint(numbers: NDArray[np.float64], high: float) -> str:
    return "Divide percentages by 100." if high < 1 < numbers.max() <= 100 else ""


def range_text(low: float, high: float) -> str:
    """A range of numbers in words; its ends may be the floats next to 0 or 1."""
    if high == math.inf:
        return "> 0" if 0 < low < 1e-300 else "> 1" if 1 < low < 1.1 else f">= {low:g}"
    return f"> {low:.0f} and < {high:.0f}" if 0 < low < 1e-300 else f"in [{low:g}, {high:g}]"
