"""Straight lines through the middles of steps: no two scores of the fitted range share a value."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Ends = NDArray[np.float64]


def centered_ends(left: Ends, right: Ends, offsets: NDArray[np.int64]) -> tuple[Ends, Ends]:
    """Ends of steps which a linear look-up turns into lines through the middles of the given ones.

    Staircase g has the steps [offsets[g], offsets[g + 1]).  Each step shrinks to its middle, the first of a staircase
    to its left end and the last to its right end, so that lines cover the whole range.  There is no line to an infinite
    end: such a step is flat up to its other end.  A step that is alone stays as it is.
    """
    with np.errstate(all="ignore"):  # the middle of what is infinite is not used
        half = (right - left) / 2
        # (left + right) / 2 may overflow, half of a tiny end is not exact; one of these is right
        middle = np.where(np.isfinite(half), left + half, left / 2 + right / 2)
    low, high = middle.copy(), middle
    first, last = offsets[:-1], offsets[1:] - 1
    low[first], high[last] = left[first], right[last]
    high[first] = np.where(np.isinf(left[first]), right[first], left[first])
    low[last] = np.where(np.isinf(right[last]), left[last], right[last])
    alone = first[first == last]
    low[alone], high[alone] = left[alone], right[alone]
    return low, high
