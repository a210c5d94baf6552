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
    cut_error: float
    cut_weight: float


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
    cuts = _cuts(targets, weights, y_unit, y_bits, w_unit, w_bits) if tame else (0.0, 0.0, 0.0)
    return Scale(y_unit, w_unit, -(-s_total // 64), -(-w_total // 64), narrow, tame, greatest, *cuts)


def _cuts(
    targets: Extent, weights: Extent, y_unit: int, y_bits: int, w_unit: int, w_bits: int
) -> tuple[float, float, float]:
    """The constants that cut products, their rounding errors and weights in two, or zeros.

    Numbers below 2**top that are multiples of 2**unit are cut at 2**(top - 43).  1024 of the upper parts sum to less
    than 2**(top + 10), 53 bits; 1024 of the lower ones to less than 2**(top - 34), 53 bits where top - unit <= 87.
    """
    top = y_unit + y_bits + w_unit + w_bits
    # a product's last bit is 53 below its first, or is that of the exact product, whichever is higher
    smallest = frexp(targets.least)[1] + frexp(weights.least)[1] - 2 if targets.least < float("inf") else top
    product_unit = max(smallest - 52, y_unit + w_unit)
    spans = (top, product_unit), (top - 53, y_unit + w_unit), (w_unit + w_bits, w_unit)
    if any(high - unit > 87 for high, unit in spans) or not -900 < y_unit + w_unit < top < 900:
        return 0.0, 0.0, 0.0
    product, error, weight = (1.5 * 2.0 ** (high + 9) for high, _ in spans)
    return product, error, weight


def _unit_and_bits(column: Extent) -> tuple[int, int]:
    """`unit`, `bits`: every entry is a multiple of 2**unit and less than 2**(unit + bits) in magnitude."""
    greatest = max(abs(column.lowest), abs(column.highest))
    if greatest == 0:
        return 0, 1
    unit = 0 if column.integral else max(frexp(column.least)[1] - 53, -1074)
    return unit, max(frexp(greatest)[1] - unit, 1)
