"""Sums of slopes over the steps of a staircase."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from staircase_fast.bisection import rounds
from staircase_fast.bisection.samples import Samples
from staircase_fast.certificate import _slope_sums
from staircase_fast.losses import Custom, Loss, SquaredError
from staircase_fast.losses.base import NO_PARAMETER

Floats = NDArray[np.float64]
Sums = tuple[NDArray[np.void], NDArray[np.void]]
ULP = 2.0**-52
_ULPS = 4.0  # values may be off by this many
_ORDINARY, _LARGE = 100, 250  # numbers outside 2**-100 .. 2**100 are scaled to about 2**250
_TINY = 2.0**-1074  # the least float above 0


class Pieces(NamedTuple):
    """Ranges of rows that share a value."""

    starts: NDArray[np.int64]  # and the number of rows
    values: Floats
    below: Floats  # values that are equally good, except for rounding
    above: Floats
    joined: NDArray[np.bool_]  # whether the value may be the same as that of the piece before


class Slopes(NamedTuple):
    """The arguments of `_slope_sums.sum_slopes`, in units in which slopes do not overflow."""

    loss: Loss
    parameters: Floats
    targets: Floats
    weights: Floats
    ends: NDArray[np.uint8]
    target_error: float  # relative
    shift: int  # targets were divided by 2 to this power, and values must be
    unit: int  # slopes must be multiplied by 2 to this power


class Problem(NamedTuple):
    """Samples and their loss; values, targets and bounds are divided by 2**exponent."""

    samples: Samples
    loss: Loss
    bounds: tuple[float, float]
    exponent: int
    inner: tuple[int, int]  # rows outside this range have their minimiser at an end of the values
    slopes: Slopes

    def pieces_at(self, starts: NDArray[np.int64], values: Floats) -> Pieces:
        """Pieces with these values, none of which are joined."""
        ulps = np.maximum(np.spacing(np.abs(values)), math.ldexp(_TINY, -self.exponent))
        margin = np.where(np.isfinite(values), _ULPS * ulps, 0.0)
        last = np.where(np.isfinite(values), rounds.LARGEST, np.inf)
        below, above = (
            np.clip(np.clip(values + offset, -last, last), *self.loss.value_range) for offset in (-margin, margin)
        )
        return Pieces(starts, values, below, above, np.zeros(len(values), dtype=np.bool_))

    def pieces_of(self, starts: NDArray[np.int64], values: Floats) -> Pieces:
        """Steps, divided where the inner rows begin and end."""
        finer = np.union1d(starts, self.inner)
        step = np.searchsorted(starts, finer[:-1], side="right") - 1
        pieces = self.pieces_at(finer, values[step])
        joined = np.append(False, (step[1:] == step[:-1]) | (pieces.below[1:] <= pieces.above[:-1]))
        return pieces._replace(joined=joined)

    def is_inner(self, pieces: Pieces) -> NDArray[np.bool_]:
        """Whether the rows of each piece are inner rows."""
        return (pieces.starts[:-1] >= self.inner[0]) & (pieces.starts[1:] <= self.inner[1])


def slopes_of(samples: Samples, loss: Loss, values: Floats) -> Slopes:
    """The slopes to be summed at these values."""
    _, y, w, parameters, ends = samples
    summed, shift, unit, error = loss, 0, 0, 0.0
    if loss.solver in ("mean", "rates"):  # slopes in the natural parameter
        summed, parameters, unit = SquaredError(), NO_PARAMETER, -1  # whose slope is 2 (value - target)
        if not loss.is_mean:
            exposure = np.broadcast_to(samples.parameters, y.shape)
            y, w, error = y / exposure, exposure * w if len(w) else exposure.copy(), 2 * ULP
        exponent = math.frexp(max(float(np.abs(y).max()), float(np.abs(values).max())))[1]
        if abs(exponent) > _ORDINARY:
            shift = exponent - _LARGE
            y, unit = np.ldexp(y, -shift), unit + shift
    if len(w):
        exponent = math.frexp(float(w.max()))[1]
        if abs(exponent) > _ORDINARY:
            w, unit = np.ldexp(w, _LARGE - exponent), unit + exponent - _LARGE
    return Slopes(summed, parameters, y, w, ends, error, shift, unit)


def sums_of(slopes: Slopes, pieces: Pieces, joined: NDArray[np.bool_] | None = None) -> Sums:
    """Sums (`PieceSum`) over leading parts at values just below; over trailing parts, negated, just above."""
    found = []
    joined = np.zeros(len(pieces.values), dtype=np.bool_) if joined is None else joined
    for values, backward in ((pieces.below, False), (pieces.above, True)):
        sums = np.empty(len(values), dtype=_slope_sums.PIECE_SUM)
        at, given = np.ldexp(values, -slopes.shift), np.empty(0)
        if slopes.loss.in_python and isinstance(slopes.loss, Custom):
            given = slopes.loss.slopes(np.repeat(at, np.diff(pieces.starts)), slopes.targets)
        _slope_sums.sum_slopes(slopes, given, pieces.starts, at, joined.view(np.uint8), backward, sums)
        found.append(sums)
    return found[0], found[1]
