"""The built-in losses.  Their formulas and derivatives are in `_functionals.pxd`."""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np

from staircase_fast.arithmetic.exact import Extent
from staircase_fast.errors import InvalidInputError, refuse_entries
from staircase_fast.inputs.options import check_choice, check_number
from staircase_fast.losses.base import Floats, Loss
from staircase_fast.losses.parameters import check_parameter
from staircase_fast.typing import ColumnLike

__all__ = [  # noqa: RUF022  (in the order of `Kind` in `_slopes.pxd`)
    "SquaredError",
    "LogLoss",
    "PoissonDeviance",
    "GammaDeviance",
    "TweedieDeviance",
    "Logistic",
    "Linex",
    "Expectile",
    "Quantile",
    "Huber",
    "PseudoHuber",
    "LogCosh",
    "Power",
]

WIDE_EXPONENTS = 600.0  # exponentials of larger numbers may overflow when summed
_LEAST = 5e-324  # the least float above 0


class SquaredError(Loss):
    """(z - y)**2: every step is the mean of its targets.

    Examples
    --------
    >>> import staircase_fast as sf
    >>> sf.fit([1, 2, 3], [0.0, 4.0, 2.0], loss=sf.losses.SquaredError()).values
    array([0., 3.])
    """

    solver = "mean"
    is_location = True

    def natural_parameter(self, z: Floats) -> Floats:
        return 2.0 * z

    def cost_of_means(self, means: Floats, shares: Floats, size: float, bounds: tuple[float, float]) -> float:
        # squares of 1e308 would overflow
        relative, clipped = (values / size if size > 0 else values for values in (means, means.clip(*bounds)))
        return float(np.sum(shares * ((relative - clipped) ** 2 - (relative - np.sum(shares * relative)) ** 2)))


class LogLoss(Loss):
    """-y log z - (1 - y) log(1 - z), for targets in [0, 1]: every step is the mean of its targets.

    Examples
    --------
    >>> import staircase_fast as sf
    >>> sf.fit([0.2, 0.4, 0.6], [0, 1, 0], loss=sf.losses.LogLoss()).values
    array([0. , 0.5])
    """

    target_range = value_range = (0.0, 1.0)
    solver = "mean"
    extreme_targets = (True, True)

    def natural_parameter(self, z: Floats) -> Floats:
        return np.log(z) - np.log1p(-z)


class PoissonDeviance(Loss):
    """2 (y log(y / m) - y + m) with m = exposure * z, for targets >= 0: every step is a rate.

    The rate is the sum of the targets of the step over the sum of their exposures.

    Parameters
    ----------
    exposure : float or array_like of shape (n,), default 1.0
        Exposure of each sample; > 0.

    Examples
    --------
    >>> import staircase_fast as sf
    >>> claims, years = [1, 0, 3], [2.0, 0.5, 1.0]
    >>> sf.fit([1, 2, 3], claims, loss=sf.losses.PoissonDeviance(exposure=years)).values
    array([0.4, 3. ])
    """

    parameter = "exposure"
    target_range = value_range = (0.0, math.inf)
    solver = "rates"
    extreme_targets = (True, False)

    def __init__(self, exposure: ColumnLike = 1.0) -> None:
        self.exposure = check_parameter("exposure", exposure, _LEAST, math.inf)

    @property
    def is_mean(self) -> bool:
        return bool(np.all(self.exposure == 1.0))

    def natural_parameter(self, z: Floats) -> Floats:
        return 2.0 * np.log(z)

    def cost_of_means(self, means: Floats, shares: Floats, size: float, bounds: tuple[float, float]) -> float:
        values = means.clip(*bounds)
        return float(np.sum(shares * (values - np.where(means == 0, 0.0, means * np.log(values)))))


class GammaDeviance(Loss):
    """2 (log(z / y) + y / z - 1), for targets > 0: every step is the mean of its targets.

    Examples
    --------
    >>> import staircase_fast as sf
    >>> sf.fit([1, 2, 3], [1.0, 4.0, 2.0], loss=sf.losses.GammaDeviance()).values
    array([1., 3.])
    """

    target_range = value_range = (_LEAST, math.inf)
    solver = "mean"

    def natural_parameter(self, z: Floats) -> Floats:
        return -2.0 / z

    def cost_of_means(self, means: Floats, shares: Floats, size: float, bounds: tuple[float, float]) -> float:
        values = means.clip(*bounds)
        return float(np.sum(shares * (np.log(values) + means / values)))


class TweedieDeviance(Loss):
    """The unit deviance of a Tweedie distribution: every step is the mean of its targets.

    Parameters
    ----------
    power : float
        The variance of the distribution is its mean to this power.  At most 0: any targets; 1 to 2: targets >= 0 (1 is
        Poisson); 2 and more: targets > 0 (2 is gamma, 3 inverse Gaussian).

    Examples
    --------
    >>> import staircase_fast as sf
    >>> sf.fit([1, 2, 3], [0.0, 4.0, 2.0], loss=sf.losses.TweedieDeviance(1.5)).values
    array([0., 3.])
    """

    parameter = "power"
    solver = "mean"

    def __init__(self, power: float) -> None:
        self.power = check_number("power", power)
        if 0 < self.power < 1:
            raise InvalidInputError("power", "must be <= 0 or >= 1", value=self.power)
        if self.power == 0:
            return
        self.value_range = (0.0 if self.power < 2 else _LEAST, math.inf)
        if self.power > 0:
            self.target_range = self.value_range
        self.extreme_targets = (1 <= self.power < 2, False)

    def natural_parameter(self, z: Floats) -> Floats:
        return 2.0 * (np.log(z) if self.power == 1 else z ** (1.0 - self.power) / (1.0 - self.power))

    def cost_of_means(self, means: Floats, shares: Floats, size: float, bounds: tuple[float, float]) -> float:
        special: dict[float, Loss] = {0.0: SquaredError(), 1.0: PoissonDeviance(), 2.0: GammaDeviance()}
        if self.power in special:
            return special[self.power].cost_of_means(means, shares, size, bounds)
        p, values = self.power, means.clip(*bounds)
        slopes = np.where(means == 0, 0.0, means * values ** (1 - p))  # 0 ** (1 - p) may be infinite
        return float(np.sum(shares * (values ** (2 - p) / (2 - p) - slopes / (1 - p))))

    def arguments(self) -> dict[str, Any]:
        return {"power": self.power}


class Logistic(Loss):
    """log(1 + exp(z + offset)) - y (z + offset), for targets in [0, 1]: values are log-odds.

    Parameters
    ----------
    offset : float or array_like of shape (n,), default 0.0
        Added to the value of each sample.

    Notes
    -----
    The optimal log-odds of samples that are all 0, or all 1, are infinite.  `fit` returns them if `bounds=(-inf, inf)`;
    otherwise it raises an error that names the step.

    Examples
    --------
    >>> import staircase_fast as sf
    >>> sf.fit([1, 2, 3, 4], [0, 1, 0, 1], loss="logistic", bounds=(-9, 9)).values
    array([-9.,  0.,  9.])
    """

    parameter = "offset"
    target_range = (0.0, 1.0)
    first_bounds = "log_odds"
    allows_infinite_values = True
    extreme_targets = (True, True)

    def __init__(self, offset: ColumnLike = 0.0) -> None:
        self.offset = check_parameter("offset", offset, -math.inf, math.inf)
        column = np.asarray(self.offset)
        # a sum of an offset and log-odds must be finite
        refuse_entries("offset", "must be between -1e300 and 1e300", column, np.abs(column) > 1e300)

    def has_integer_slopes(self, targets: Floats) -> bool:
        return bool(np.all((targets == 0) | (targets == 1)))


class Linex(Loss):
    """exp(a r) - a r - 1 with r = z - y: an error on one side costs exponentially more than on the other.

    Parameters
    ----------
    shape : float or array_like of shape (n,)
        a; not 0.  If positive, values that are too high cost more than values that are too low.

    Examples
    --------
    >>> import staircase_fast as sf
    >>> sf.fit([1, 2], [1.0, 0.0], loss=sf.losses.Linex(1.0)).values.round(4)
    array([0.3799])
    """

    parameter = "shape"
    solver = "exponentials"
    is_location = True

    def __init__(self, shape: ColumnLike) -> None:
        self.shape = check_parameter("shape", shape, -math.inf, math.inf)
        column = np.asarray(self.shape)
        refuse_entries("shape", "must not be 0", column, np.equal(column, 0))

    def check_spread(self, targets: Extent) -> None:
        shapes = np.asarray(self.shape)
        sizes = np.abs(shapes)
        refuse_entries("shape", "must be between 1e-250 and 1e250 in size", shapes, (sizes < 1e-250) | (sizes > 1e250))
        spread = targets.highest * 0.5 - targets.lowest * 0.5
        if shapes.min() < 0 < shapes.max() and not float(sizes.max()) * spread < WIDE_EXPONENTS / 2:
            requirement = f"times the range of targets must be below {WIDE_EXPONENTS:g} if shapes have both signs"
            raise InvalidInputError("shape", requirement, found=f"got {sizes.max()} and {2 * spread}")


class Expectile(Loss):
    """abs(level - [z > y]) (z - y)**2: the level-expectile; level 1/2 is the mean.

    Parameters
    ----------
    level : float or array_like of shape (n,), default 0.5
        Between 0 and 1.

    Examples
    --------
    >>> import staircase_fast as sf
    >>> sf.fit([1, 2], [1.0, 0.0], loss=sf.losses.Expectile(0.8)).values
    array([0.8])
    """

    parameter = "level"
    is_location = scales = True

    def __init__(self, level: ColumnLike = 0.5) -> None:
        self.level = check_parameter("level", level, _LEAST, math.nextafter(1.0, 0.0))


class Quantile(Loss):
    """(level - [z > y]) (y - z): the level-quantile.

    Parameters
    ----------
    level : float or array_like of shape (n,), default 0.5
        Between 0 and 1; 1/2 is the median.
    side : {"lower", "middle", "upper"}, default "lower"
        Which minimiser is returned if there are several: the least, the greatest, or their midpoint.

    Examples
    --------
    >>> import staircase_fast as sf
    >>> sf.fit([1, 2], [1.0, 0.0], loss=sf.losses.Quantile(0.5, side="middle")).values
    array([0.5])
    """

    parameter = "level"
    is_location = scales = levels_off = minimises_at_targets = True
    degree = 1.0

    def __init__(self, level: ColumnLike = 0.5, side: Literal["lower", "middle", "upper"] = "lower") -> None:
        self.level = check_parameter("level", level, _LEAST, math.nextafter(1.0, 0.0))
        self.side = check_choice("side", side, ("lower", "middle", "upper"))


class Huber(Loss):
    """(z - y)**2 / 2 if abs(z - y) <= delta, linear beyond: robust against outliers.

    Parameters
    ----------
    delta : float or array_like of shape (n,), default 1.0
        > 0.

    Notes
    -----
    If the minimisers form an interval, as with targets far from each other, the value is its midpoint.

    Examples
    --------
    >>> import staircase_fast as sf
    >>> sf.fit([1, 2, 3], [9.0, 2.0, 1.0], loss=sf.losses.Huber(1.0)).values
    array([2.])
    """

    parameter = "delta"
    is_location = scales = levels_off = has_unit = True

    def __init__(self, delta: ColumnLike = 1.0) -> None:
        self.delta = check_parameter("delta", delta, _LEAST, math.inf)


class PseudoHuber(Loss):
    """delta**2 (sqrt(1 + ((z - y) / delta)**2) - 1): like Huber, but smooth.

    Parameters
    ----------
    delta : float or array_like of shape (n,), default 1.0
        > 0.

    Examples
    --------
    >>> import staircase_fast as sf
    >>> sf.fit([1, 2, 3], [9.0, 2.0, 1.0], loss=sf.losses.PseudoHuber(1.0)).values.round(4)
    array([2.2209])
    """

    parameter = "delta"
    is_location = scales = levels_off = has_unit = True

    def __init__(self, delta: ColumnLike = 1.0) -> None:
        self.delta = check_parameter("delta", delta, _LEAST, math.inf)


class LogCosh(Loss):
    """scale**2 log cosh((z - y) / scale): like Huber, but smooth.

    Parameters
    ----------
    scale : float or array_like of shape (n,), default 1.0
        > 0.

    Examples
    --------
    >>> import staircase_fast as sf
    >>> sf.fit([1, 2, 3], [9.0, 2.0, 1.0], loss=sf.losses.LogCosh(1.0)).values.round(4)
    array([2.1757])
    """

    parameter = "scale"
    is_location = scales = levels_off = has_unit = True

    def __init__(self, scale: ColumnLike = 1.0) -> None:
        self.scale = check_parameter("scale", scale, _LEAST, math.inf)


class Power(Loss):
    """abs(z - y)**exponent / exponent: between the median (exponents near 1) and the mid-range (large ones).

    Parameters
    ----------
    exponent : float or array_like of shape (n,)
        > 1; 2 is the squared error.

    Examples
    --------
    >>> import staircase_fast as sf
    >>> sf.fit([1, 2, 3], [9.0, 2.0, 1.0], loss=sf.losses.Power(1.5)).values.round(3)
    array([3.034])
    """

    parameter = "exponent"
    is_location = scales = has_power_slopes = True

    def __init__(self, exponent: ColumnLike) -> None:
        self.exponent = check_parameter("exponent", exponent, math.nextafter(1.0, 2.0), math.inf)

    @property
    def degree(self) -> float:  # type: ignore[override]
        """The largest exponent."""
        return float(self.parameters.max())
