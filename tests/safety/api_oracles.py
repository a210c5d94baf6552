"""The correct results of API calls, computed without code of the package.

Means are compared with exact fractions (`tests/reference.py`).  The formulas of other losses are repeated in
`tests/loss_table.py`.  Here they are minimised by bisection over the floats: in fractions if the derivative is
piecewise linear, and with many digits otherwise.
"""

import math
import sys
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import mpmath
import numpy as np
from loss_table import BY_NAME
from mpmath import mpf
from reference import Sample, Step, general_steps, step_value

import staircase_fast as sf

DIGITS = 60  # more for large targets: slopes level off like the square of the distance
RATIONAL = ("expectile", "quantile", "huber")
ULPS = 4  # allowed error of a value


class Truth(NamedTuple):
    """The optimum of a small problem; the least and the greatest one if it is not unique."""

    least: list[Step]  # values are rounded up to the next float
    greatest: list[Step]


class Problem:
    """Rows under a loss, with the loss and its derivative in exact or precise numbers."""

    def __init__(self, loss: sf.losses.Loss, x: Sequence[float], y: Sequence[Any], w: Sequence[Any]) -> None:
        case = BY_NAME[loss.name]
        number: Callable[[Any], Any] = Fraction if loss.name in RATIONAL else mpf
        parameters = loss.parameters.tolist()
        if len(parameters) == 1:
            parameters *= len(x)
        rows = zip(x, y, w, parameters, strict=True)
        self._number = number
        self._value, self._derivative = case.value, case.derivative
        self._rows = [(score, number(t), number(u), number(p)) for score, t, u, p in rows if u > 0]
        self._range = float(min(y)), float(max(y))
        self._digits = DIGITS + 2 * max(0, math.frexp(max(map(abs, self._range)))[1])

    def cost(self, steps: Sequence[Step], ulps: int = 0) -> Any:
        """The total loss of steps whose values are shifted by a number of ulps."""
        last = sys.float_info.max
        moved = [step._replace(value=min(max(step.value + ulps * math.ulp(step.value), -last), last)) for step in steps]
        with mpmath.workdps(self._digits):
            terms = (w * self._value(p, self._number(step_value(moved, x)), y) for x, y, w, p in self._rows)
            return sum(terms, self._number(0))

    def optimum(self, *, increasing: bool, bounds: tuple[float, float]) -> Truth:
        """The best staircases within bounds.  Bounds must be finite if minimisers can lie outside the targets."""
        low, high = bounds
        if math.isinf(low) or math.isinf(high):
            low, high = self._range
        samples = [Sample(x, w, lambda z, y=y, p=p: self._slope(p, z, y)) for x, y, w, p in self._rows]
        with mpmath.workdps(self._digits):
            found = [
                general_steps(samples, low, high, increasing=increasing, greatest=greatest)
                for greatest in (False, True)
            ]
        held = [[s._replace(value=min(max(s.value, bounds[0]), bounds[1])) for s in steps] for steps in found]
        return Truth(*held)

    def _slope(self, p: Any, z: float, y: Any) -> Any:
        return self._derivative(p, self._number(z), y)

    def limit(self, steps: Sequence[Step], truth: Truth) -> tuple[Any, Any]:
        """The loss of the steps, and the greatest allowed loss: that of the optimum, plus an allowance for rounding."""
        best, own = min(map(self.cost, truth)), self.cost(steps)
        with mpmath.workdps(self._digits):
            rounding = sum(abs(self.cost(steps, ulps) - own) for ulps in (-ULPS, ULPS))
            return own, best + rounding + abs(best) * self._number(2) ** -30


def as_float(number: Any) -> float:
    """A number of any kind as a float, infinite if it is too large."""
    try:
        return float(number)
    except OverflowError:
        return math.inf


def steps_of(stairs: sf.Staircase) -> list[Step]:
    """The steps of a staircase; weights and counts are not used here."""
    columns = (getattr(stairs, name).tolist() for name in ("left", "right", "values"))
    return [Step(left, right, value, 1.0, 1) for left, right, value in zip(*columns, strict=True)]


class Limits(NamedTuple):
    """Conditions on the proven bounds at some scores: lower <= most and upper >= least."""

    scores: list[float]
    least: list[float]
    most: list[float]

    def hold_for(self, stairs: sf.Staircase) -> bool:
        at = np.searchsorted(stairs.left, self.scores, "right") - 1
        return bool((stairs.lower[at] <= self.most).all() and (stairs.upper[at] >= self.least).all())

    @property
    def source(self) -> str:
        """The same conditions as source text, for a variable `stairs`."""
        at = f"np.searchsorted(stairs.left, {self.scores!r}, 'right') - 1"
        return f"(stairs.lower[at := {at}] <= {self.most!r}).all() and (stairs.upper[at] >= {self.least!r}).all()"


def limits_of(truth: Truth) -> Limits:
    """The conditions for an optimum: the true value is at most one float below that of `least`."""
    scores = [step.left for step in truth.least]
    least = [math.nextafter(step.value, -math.inf) for step in truth.least]
    return Limits(scores, least, [step_value(truth.greatest, score) for score in scores])
