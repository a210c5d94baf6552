"""What kernels find out about columns and hand to each other (`_range.pxd`, `_scale.pxd`)."""

from __future__ import annotations

from typing import NamedTuple

from staircase_fast import _scan


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
    return Scale(*_scan.scale_of(targets, weights, n))
