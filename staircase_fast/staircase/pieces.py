"""A staircase as a table of pieces, for exports.

A score is on the last piece that starts at or below it.  Its value is

    low                                                     up to `bend`
    low + (score - bend) * slope, at most high              beyond `bend` (at least high, if values decrease)

These are the operations of `_follow.pxd` in the same order.  In float64 they give the bits of `predict`.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from staircase_fast.errors import InvalidInputError
from staircase_fast.staircase import _lookup
from staircase_fast.typing import Interpolation

if TYPE_CHECKING:
    from staircase_fast.staircase.result import Staircase

_LOWEST = -float(np.finfo(np.float64).max)


class Pieces(NamedTuple):
    """Pieces in ascending order; the first starts at -inf."""

    start: NDArray[np.float64]
    low: NDArray[np.float64]
    bend: NDArray[np.float64]  # inf: the piece is constant
    slope: NDArray[np.float64]
    high: NDArray[np.float64]
    rising: bool
    inside: tuple[float, float]  # scores outside this range have no value

    def columns(self, *, linear: bool = True) -> list[NDArray[np.float64]]:
        """The columns of the table; without lines, only the first two are needed."""
        return [self.start, self.low, self.bend, self.slope, self.high] if linear else [self.start, self.low]


def of_staircase(stairs: Staircase, interpolation: Interpolation, *, outside: bool) -> Pieces:
    """The pieces of a staircase; `outside`: whether scores outside the fitted range have a value."""
    if interpolation == "centered":
        stairs = stairs._through_middles()
    inside = (-math.inf, math.inf) if outside else (float(stairs.left[0]), float(stairs.right[-1]))
    start, flat = stairs.left.copy(), np.full(stairs.n_steps, math.inf)
    start[0] = -math.inf
    if interpolation == "step":
        return Pieces(start, stairs.values, flat, np.zeros(len(start)), stairs.values, stairs.increasing, inside)
    lines = np.empty((stairs.n_steps, 4))
    _lookup.draw_lines(stairs.left, stairs.right, stairs.values, lines)
    bend, slope, low, high = lines.T
    _check_slopes(stairs, slope)
    drawn = np.isfinite(slope) & (slope != 0)
    pieces = Pieces(
        start, low, np.where(drawn, bend, math.inf), np.where(drawn, slope, 0.0), high, stairs.increasing, inside
    )
    return _after_minus_infinity(stairs, pieces) if stairs.right[0] == -math.inf and stairs.n_steps > 1 else pieces


def _check_slopes(stairs: Staircase, slope: NDArray[np.float64]) -> None:
    """Lines between finite scores must have a slope that is a finite number and not 0."""
    start, end = stairs.right[:-1], stairs.left[1:]
    bad = np.isfinite(start) & np.isfinite(end) & np.isnan(slope[:-1])
    if bad.any():
        step = int(np.argmax(bad))
        line = f"the line after step {step}, from {start[step].item()!r} to {end[step].item()!r}, has no finite slope"
        raise InvalidInputError("interpolation", "must be 'step' for this staircase", found=line)


def _after_minus_infinity(stairs: Staircase, pieces: Pieces) -> Pieces:
    """Insert a constant piece after a step whose only score is -inf: finite scores have a value of their own."""
    value = stairs.predict(_LOWEST, interpolation="linear")
    new = (_LOWEST, value, math.inf, 0.0, value)
    start, low, bend, slope, high = (
        np.insert(column, 1, one) for column, one in zip(pieces.columns(), new, strict=True)
    )
    return Pieces(start, low, bend, slope, high, pieces.rising, pieces.inside)
