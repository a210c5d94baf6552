"""Units in which the slopes of a loss neither overflow nor underflow.

Bisection adds slopes as float64.  If a loss scales with its targets, they are divided by a unit, so that the
largest magnitude is about 1.  The unit is a power of two, so nothing is rounded.  If magnitudes differ too much for any
unit, `check_spans` raises an error.
"""

from __future__ import annotations

import math

import numpy as np

from staircase_fast.arithmetic.exact import Extent
from staircase_fast.errors import InvalidInputError, refuse_entries
from staircase_fast.inputs.columns import Column
from staircase_fast.losses.base import Floats, Loss

_ORDINARY = 64  # slopes between 2**-64 and 2**64 need no unit
_SPAN = 1000  # slopes may be as small as 2**-1000
_ABOVE = 900  # slopes may be as large as 2**900; the rest of the range is for their sums
_FAR = 60  # Huber and similar losses equal squares, to the last bit, if their parameter is 2**60 times the targets


def ldexp(column: Floats, exponent: int) -> Floats:
    """The column times 2**exponent."""
    with np.errstate(over="ignore", under="ignore"):
        return np.ldexp(column, exponent)


def bounds_of(lower: Floats, upper: Floats, exponent: int) -> tuple[Floats, Floats]:
    """Bounds times 2**exponent; those that underflow are rounded outwards."""
    low, high = ldexp(lower, exponent), ldexp(upper, exponent)
    if exponent < 0:
        low = np.where(ldexp(low, -exponent) > lower, np.nextafter(low, -np.inf), low)
        high = np.where(ldexp(high, -exponent) < upper, np.nextafter(high, np.inf), high)
    return low, high


def parameters_of(parameters: Floats, targets: Floats, exponent: int) -> Floats:
    """Parameters divided by 2**exponent; those that are far larger than all targets are reduced."""
    if exponent == 0 and parameters.max() < 2.0**200:
        return parameters
    size = math.frexp(max(abs(float(targets.min())), abs(float(targets.max()))))[1]
    return np.minimum(ldexp(parameters, -exponent), math.ldexp(1.0, min(size - exponent + _FAR, 1023)))


def exponent_of(targets: Floats, loss: Loss) -> int:
    """The exponent of the unit for these targets and this loss; 0 if they need none."""
    if not loss.scales:
        return 0
    exponent, power = _exponent_and_power(float(targets.min()), float(targets.max()), loss)
    if abs(exponent) * power < _ORDINARY or _is_mixed(loss):
        return 0
    if power > 1:
        return exponent
    sizes = [float(np.min(np.abs(targets), where=targets != 0, initial=math.inf))]
    if loss.has_unit:
        sizes.append(float(loss.parameters.min()))
    return exponent if math.frexp(min(sizes))[1] >= exponent - _SPAN else exponent - _ABOVE


def _is_mixed(loss: Loss) -> bool:
    """Whether the power of the loss differs between samples, so that no common factor scales their slopes."""
    return loss.has_power_slopes and loss.per_sample


def _exponent_and_power(low: float, high: float, loss: Loss) -> tuple[int, float]:
    """The binary exponent of the largest target (or distance), and p >= 1 if slopes grow like distance**p."""
    size = max(abs(low), abs(high))
    if loss.has_power_slopes:  # only distances between targets matter
        size = max(high * 0.5 - low * 0.5, size * 2.0**-40)
    return math.frexp(size)[1], max(1.0, loss.degree - 1.0)


def check_spans(y: Column, w: Column, extents: tuple[Extent, Extent], loss: Loss, names: tuple[str, str]) -> None:
    """Raise an error if the sizes of targets, weights or parameters differ too much for slopes in float64."""
    targets, weights = extents
    least = math.ldexp(weights.highest, -_ABOVE)
    if weights.least < least:
        requirement = f"must be at least 2**-{_ABOVE} times the largest weight, {weights.highest:g}, for {loss.name}"
        refuse_entries(names[1], requirement, w, (w > 0) & (w < least))
    loss.check_spread(targets)
    if not loss.scales:
        return
    exponent, power = _exponent_and_power(targets.lowest, targets.highest, loss)
    size = max(abs(targets.lowest), abs(targets.highest))
    if _is_mixed(loss) and abs(exponent) * power > _ABOVE:
        n = f"{_ABOVE / power:.0f}"
        requirement = f"must lie within 2**-{n} and 2**{n} if exponents differ and the greatest is {power + 1:g}"
        raise InvalidInputError(names[0], requirement, value=size)
    span = _SPAN if power > 1 else _SPAN + _ABOVE
    least = math.ldexp(1.0, max(exponent - span, -1074))
    limits = [(least, f"2**-{span} times the largest magnitude, {size:g}")]
    has_unit = loss.has_unit and size > 0
    if has_unit:  # slopes are distances divided by the parameter: the least of them must not underflow
        largest = float(loss.parameters.max())
        limit = math.ldexp(1.0, min(math.frexp(largest)[1], exponent + _FAR) - _ABOVE)
        limits.append((limit, f"2**-{_ABOVE} times `{loss.parameter}`, {largest:g}"))
    for limit, words in limits:
        if targets.least < limit:
            small = (y != 0) & (np.abs(y) < limit) & (w > 0 if len(w) else True)
            refuse_entries(names[0], f"must be 0 or at least {words}, for {loss.name}", y, small)
    if has_unit:
        given = np.asarray(getattr(loss, loss.parameter))
        requirement = f"must be at least 2**-{span} times the largest target, {size:g}"
        refuse_entries(loss.parameter, requirement, given, given < least)
