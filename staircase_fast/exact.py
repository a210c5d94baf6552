"""How wide integers must be so that no sum is ever rounded."""

from __future__ import annotations

from math import frexp
from typing import NamedTuple


class Extent(NamedTuple):
    """What one pass over a column finds (`_scan.extent`)."""

    first_bad: int  # index of the first entry that is not finite, or -1; the rest holds only if it is -1
    lowest: float
    highest: float
    least: float  # smallest magnitude that is not zero, or inf
    integral: bool  # every entry is an integer


class Scale(NamedTuple):
    """The unit and width of exact sums; `_exact.pxd` says what they count."""

    y_unit: int
    w_unit: int
    s_words: int
    w_words: int
    narrow: bool
    tame: bool
    greatest: float
    cut: float


UNIT_WEIGHTS = Extent(-1, 1.0, 1.0, 1.0, True)


def scale_of(targets: Extent, weights: Extent, n: int) -> Scale:
    """The scale in which `n` products of a target and a weight, and any sums of them, are integers."""
    y_unit, y_bits = _unit_and_bits(targets)
    w_unit, w_bits = _unit_and_bits(weights)
    w_total = w_bits + n.bit_length()
    s_total = y_bits + w_total + 1  # one more for the sign
    narrow = targets.integral and weights.integral and s_total <= 62
    greatest = max(abs(targets.lowest), abs(targets.highest))
    tame = (greatest == 0 or 1e-70 < greatest < 1e70) and weights.least > 1e-70 and weights.highest < 1e70
    cut = 1.5 * 2.0 ** (y_unit + y_bits + 9) if y_bits <= 87 and -900 < y_unit < 900 else 0.0
    return Scale(y_unit, w_unit, -(-s_total // 64), -(-w_total // 64), narrow, tame, greatest, cut)


def _unit_and_bits(column: Extent) -> tuple[int, int]:
    """`unit`, `bits`: every entry is a multiple of 2**unit and less than 2**(unit + bits) in magnitude."""
    greatest = max(abs(column.lowest), abs(column.highest))
    if greatest == 0:
        return 0, 1
    unit = 0 if column.integral else max(frexp(column.least)[1] - 53, -1074)
    return unit, max(frexp(greatest)[1] - unit, 1)
