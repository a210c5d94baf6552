"""Centered interpolation: lines through the middles of steps, so that different scores get different values."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Ends = NDArray[np.float64]


def centered_ends(left: Ends, right: Ends, offsets: NDArray[np.int64]) -> tuple[Ends, Ends]:
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
