"""The list of losses that drives every test of losses: their parameters, their domains, and their formulas in mpmath.

The formulas are repeated here, independently of the package, in arithmetic of any precision.  If the derivative jumps
at z, `derivative` is the one to the right of z.  All arguments are mpf: a parameter p, a value z, a target y.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import mpmath
import numpy as np
from mpmath import mpf

import staircase_fast as sf

Mp = Any


@dataclass(frozen=True)
class Case:
    """A loss under test."""

    kind: type[sf.losses.Loss]
    value: Callable[[Mp, Mp, Mp], Mp]
    derivative: Callable[[Mp, Mp, Mp], Mp]
    parameters: tuple[float, ...] = ()  # valid parameters, an ordinary one first
    bad_parameters: tuple[float, ...] = ()
    domain: tuple[str, str] = ("real", "real")  # of targets and values: "real", "unit", ">=0", ">0"
    convex: bool = True  # in z; if False, z = y is still the only minimum
    per_sample: bool = True  # whether the parameter may be an array
    more: dict[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.kind.name

    @property
    def parameter(self) -> str:
        return self.kind.parameter

    def make(self, parameter: Any = None) -> sf.losses.Loss:
        if not self.parameter:
            return self.kind()
        given = self.parameters[0] if parameter is None else parameter
        return self.kind(**{self.parameter: given}, **self.more)

    def makes(self) -> list[sf.losses.Loss]:
        """A loss for each parameter, and one with an array of all parameters."""
        if not self.parameter:
            return [self.kind()]
        many = [self.make(np.array(self.parameters))] if self.per_sample else []
        return [*(self.make(p) for p in self.parameters), *many]

    def __repr__(self) -> str:
        return self.name


def xlog(x: Mp, z: Mp) -> Mp:
    return x * mpmath.log(z) if x != 0 else mpf(0)


def log_value(p: Mp, z: Mp, y: Mp) -> Mp:
    return -xlog(y, z) - xlog(1 - y, 1 - z)


def log_derivative(p: Mp, z: Mp, y: Mp) -> Mp:
    return ((1 - y) / (1 - z) if y < 1 else mpf(0)) - (y / z if y > 0 else mpf(0))


def tweedie_value(p: Mp, z: Mp, y: Mp) -> Mp:
    if p == 0:
        return (z - y) ** 2
    if p == 1:
        return 2 * (xlog(y, y / z) - y + z if y != 0 else z)
    if p == 2:
        return 2 * (mpmath.log(z / y) + y / z - 1)
    first = max(y, mpf(0)) ** (2 - p) / ((1 - p) * (2 - p)) if y != 0 else mpf(0)
    return 2 * (first - (y * z ** (1 - p) / (1 - p) if y != 0 else 0) + z ** (2 - p) / (2 - p))


def tweedie_derivative(p: Mp, z: Mp, y: Mp) -> Mp:
    return 2 * (z - y) * z ** (-p) if z != y else mpf(0)


def logistic_value(o: Mp, z: Mp, y: Mp) -> Mp:
    x = z + o
    return mpmath.log1p(mpmath.exp(-abs(x))) + ((1 - y) * x if x > 0 else -y * x)


def logistic_derivative(o: Mp, z: Mp, y: Mp) -> Mp:
    return 1 / (1 + mpmath.exp(-(z + o))) - y


def huber_value(d: Mp, z: Mp, y: Mp) -> Mp:
    r = abs(z - y)
    return r * r / 2 if r <= d else d * (r - d / 2)


def huber_derivative(d: Mp, z: Mp, y: Mp) -> Mp:
    return max(-d, min(d, z - y))


def log_cosh_value(s: Mp, z: Mp, y: Mp) -> Mp:
    q = abs(z - y) / s
    if q < 1:
        return s * s * mpmath.log1p(2 * mpmath.sinh(q / 2) ** 2)
    return s * s * (q + mpmath.log1p(mpmath.exp(-2 * q)) - mpmath.log(2))


def power_derivative(p: Mp, z: Mp, y: Mp) -> Mp:
    r = z - y
    return mpmath.sign(r) * abs(r) ** (p - 1)


CASES = (
    Case(sf.losses.SquaredError, lambda p, z, y: (z - y) ** 2, lambda p, z, y: 2 * (z - y)),
    Case(sf.losses.LogLoss, log_value, log_derivative, domain=("unit", "unit")),
    Case(
        sf.losses.PoissonDeviance,
        lambda e, z, y: 2 * (e * z - y + xlog(y, y / (e * z))) if y > 0 else 2 * e * z,
        lambda e, z, y: 2 * (e - (y / z if y > 0 else mpf(0))),
        (1.0, 0.1, 7.0, 1e-100, 1e100),
        (0.0, -1.0),
        (">=0", ">=0"),
    ),
    Case(
        sf.losses.GammaDeviance,
        lambda p, z, y: 2 * (mpmath.log(z / y) + y / z - 1),
        lambda p, z, y: 2 * (z - y) / z**2,
        domain=(">0", ">0"),
        convex=False,
    ),
    Case(
        sf.losses.TweedieDeviance,
        tweedie_value,
        tweedie_derivative,
        (1.5, 1.0, 2.0, 3.0),
        (0.5, 1e-300),
        (">0", ">0"),
        convex=False,
        per_sample=False,
    ),
    Case(
        sf.losses.Logistic,
        logistic_value,
        logistic_derivative,
        (0.0, 1.0, -2.5, 40.0, -800.0),
        (),
        ("unit", "real"),
    ),
    Case(
        sf.losses.Linex,
        lambda a, z, y: mpmath.expm1(a * (z - y)) - a * (z - y),
        lambda a, z, y: a * mpmath.expm1(a * (z - y)),
        (1.0, -0.5, 3.0, 1e-3, -10.0),
        (0.0,),
    ),
    Case(
        sf.losses.Expectile,
        lambda t, z, y: (1 - t if z > y else t) * (z - y) ** 2,
        lambda t, z, y: 2 * (1 - t if z > y else t) * (z - y),
        (0.5, 0.8, 0.1, 1e-3, 0.999),
        (0.0, 1.0, -0.5, 2.0),
    ),
    Case(
        sf.losses.Quantile,
        lambda t, z, y: (1 - t) * (z - y) if z > y else t * (y - z),
        lambda t, z, y: 1 - t if z >= y else -t,
        (0.5, 0.25, 0.75, 0.125, 0.9375),  # exact in binary, and so are sums of a few
        (0.0, 1.0, -0.5, 2.0),
    ),
    Case(sf.losses.Huber, huber_value, huber_derivative, (1.0, 0.25, 10.0, 1e-3, 1e6), (0.0, -1.0)),
    Case(
        sf.losses.PseudoHuber,
        lambda d, z, y: (z - y) ** 2 / (1 + mpmath.sqrt(1 + ((z - y) / d) ** 2)),
        lambda d, z, y: (z - y) / mpmath.sqrt(1 + ((z - y) / d) ** 2),
        (1.0, 0.25, 10.0, 1e-3, 1e6),
        (0.0, -1.0),
    ),
    Case(
        sf.losses.LogCosh,
        log_cosh_value,
        lambda s, z, y: s * mpmath.tanh((z - y) / s),
        (1.0, 0.25, 10.0, 1e-2, 1e6),
        (0.0, -1.0),
    ),
    Case(
        sf.losses.Power,
        lambda p, z, y: abs(z - y) ** p / p,
        power_derivative,
        (1.5, 2.0, 3.0, 1.1, 4.0),
        (1.0, 0.5, -2.0),
    ),
)
BY_NAME = {case.name: case for case in CASES}
# losses whose steps are not means
OTHERS = tuple(case for case in CASES if case.domain[1] == "real" and case.kind is not sf.losses.SquaredError)
LOCATION = tuple(case for case in OTHERS if case.kind is not sf.losses.Logistic)
STRICT = tuple(case for case in LOCATION if case.kind not in (sf.losses.Quantile, sf.losses.Huber))
