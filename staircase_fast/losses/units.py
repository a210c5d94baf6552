"""Units in which the slopes of a loss neither overflow nor underflow.

Rounds add slopes as float64.  A loss that scales with its targets is solved in a unit in which their size is about 1;
the unit is a power of two, so that nothing is rounded.  Numbers that are too far apart for any unit are refused.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from staircase_fast.arithmetic.exact import Extent
from staircase_fast.errors import InvalidInputError, refuse_entries
from staircase_fast.inputs.columns import Column

if TYPE_CHECKING:
    from staircase_fast.losses import Loss

_ORDINARY = 64  # slopes of targets between 2**-64 and 2**64 need no unit
_SPAN = 1000  # exponents that a float64 has room for below 1, and
_ABOVE = 900  # above 1, if there are sums
_FAR = 60  # Huber and its kin are squares, to the last bit, if `delta` is 2 to this times the targets


def ldexp(column: NDArray[np.float64], exponent: int) -> NDArray[np.float64]:
    """The column times 2**exponent."""
    with np.errstate(over="ignore", under="ignore"):
        return np.ldexp(column, exponent)


def bounds_of(
    lower: NDArray[np.float64], upper: NDArray[np.float64], exponent: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Bounds times 2**exponent; those that underflow are rounded outwards."""
    low, high = ldexp(lower, exponent), ldexp(upper, exponent)
    if exponent < 0:
        low = np.where(ldexp(low, -exponent) > lower, np.nextafter(low, -np.inf), low)
        high = np.where(ldexp(high, -exponent) < upper, np.nextafter(high, np.inf), high)
    return low, high


def parameters_of(parameters: NDArray[np.float64], targets: NDArray[np.float64], exponent: int) -> NDArray[np.float64]:
    """Parameters in the unit of targets, divided by 2**exponent; those beyond all targets are reduced."""
    if exponent == 0 and parameters.max() < 2.0**200:
        return parameters
    size = math.frexp(max(abs(float(targets.min())), abs(float(targets.max()))))[1]
    return np.minimum(ldexp(parameters, -exponent), math.ldexp(1.0, min(size - exponent + _FAR, 1023)))


def exponent_of(targets: NDArray[np.float64], loss: Loss) -> int:
    """The exponent of the unit of these targets under this loss; 0 if they need none."""
    if not loss.scales:
        return 0
    low, high = float(targets.min()), float(targets.max())
    exponent, power = _exponent(low, high, loss), _power(loss)
    if abs(exponent) * power < _ORDINARY or _is_mixed(loss):
        return 0
    if power > 1:
        return exponent
    sizes = [float(np.min(np.abs(targets), where=targets != 0, initial=math.inf))]
    if loss.has_unit:
        sizes.append(float(loss.parameters.min()))
    return exponent if math.frexp(min(sizes))[1] >= exponent - _SPAN else exponent - _ABOVE


def _is_mixed(loss: Loss) -> bool:
    """Whether samples have several degrees, so that each would be scaled by another factor."""
    return loss.has_power_slopes and loss.per_sample


def _power(loss: Loss) -> float:
    """The power of distances that slopes grow with, at least 1."""
    return max(1.0, loss.degree - 1.0)


def _exponent(low: float, high: float, loss: Loss) -> int:
    """The exponent of the size of targets: of distances between them, if slopes are powers of those."""
    size = max(abs(low), abs(high))
    if loss.has_power_slopes:
        size = max(high * 0.5 - low * 0.5, size * 2.0**-40)
    return math.frexp(size)[1]


def check_spans(y: Column, w: Column, extents: tuple[Extent, Extent], loss: Loss, names: tuple[str, str]) -> None:
    """Refuse targets, weights and parameters that are too far apart for slopes in float64."""
    targets, weights = extents
    if weights.least < math.ldexp(weights.highest, -_ABOVE):
        requirement = f"must be at least 2**-{_ABOVE} of the greatest, {weights.highest:g}, for {loss.name}"
        refuse_entries(names[1], requirement, w, (w > 0) & (w < math.ldexp(weights.highest, -_ABOVE)))
    loss.check_spread(targets)
    if not loss.scales:
        return
    exponent, power = _exponent(targets.lowest, targets.highest, loss), _power(loss)
    size = max(abs(targets.lowest), abs(targets.highest))
    if _is_mixed(loss) and abs(exponent) * power > _ABOVE:
        n = f"{_ABOVE / power:.0f}"
        requirement = f"must lie within 2**-{n} and 2**{n} if exponents differ and the greatest is {power + 1:g}"
        raise InvalidInputError(names[0], requirement, value=size)
    span = _SPAN if power > 1 else _SPAN + _ABOVE
    least = math.ldexp(1.0, max(exponent - span, -1074))
    if targets.least < least:
        _refuse_small(names[0], f"2**-{span} of the greatest, {size:g}", y, w, loss, least)
    if loss.has_unit and size > 0:
        # slopes are distances over the parameter: the least of them must not underflow
        largest = min(math.frexp(float(loss.parameters.max()))[1], exponent + _FAR)
        if targets.least < math.ldexp(1.0, largest - _ABOVE):
            _refuse_small(names[0], f"2**-{_ABOVE} of `{loss.parameter}`, {loss.parameters.max():g}", y, w, loss,
                          math.ldexp(1.0, largest - _ABOVE))  # fmt: skip
        given = np.asarray(getattr(loss, loss.parameter))
        refuse_entries(
            loss.parameter, f"must be at least 2**-{span} of the greatest target, {size:g}", given, given < least
        )


def _refuse_small(name: str, limit: str, y: Column, w: Column, loss: Loss, least: float) -> None:
    bad: NDArray[Any] = (y != 0) & (np.abs(y) < least)
    refuse_entries(name, f"must be 0 or at least {limit}, for {loss.name}", y, bad & (w > 0) if len(w) else bad)
