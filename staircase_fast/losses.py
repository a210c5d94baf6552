"""Losses: what is minimised, which targets make sense, which values can come out."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar, Literal, overload

import numpy as np
from numpy.typing import NDArray

from staircase_fast import _losses, _validation, callback
from staircase_fast.typing import ColumnLike, ScalarLike

__all__ = [
    "Custom",
    "Expectile",
    "GammaDeviance",
    "Huber",
    "Linex",
    "LogCosh",
    "LogLoss",
    "Logistic",
    "Loss",
    "PoissonDeviance",
    "Power",
    "PseudoHuber",
    "Quantile",
    "SquaredError",
    "TweedieDeviance",
    "UpdateRule",
]

_LEAST = 5e-324  # the least number above 0
_NO_PARAMETER = np.zeros(1)


class Loss:
    """A loss l(z, y) of a value z for a target y.

    It is strictly convex in z, or at least (gamma, Tweedie) falls up to its only minimum and rises from there, as does
    every sum of its kind.

    A parameter is a number, or an array with one entry per sample: then each sample has a loss of its own.  Two losses
    are equal if they are of one kind with the same parameters.

    Notes
    -----
    Thread-safety: a loss may be used by any number of threads at once, if the functions can that it is made of.

    Examples
    --------
    >>> import staircase_fast as sf
    >>> sf.losses.Huber([1.0, 2.0]).value(3.0, [0.0, 0.0])
    array([2.5, 4. ])
    >>> sf.losses.Huber(2.0) == sf.losses.Huber(delta=2.0)
    True
    """

    name: ClassVar[str]
    """What it may be called instead of making an object."""
    target_range: tuple[float, float] = (-math.inf, math.inf)
    """The least and the greatest target."""
    value_range: tuple[float, float] = (-math.inf, math.inf)
    """The least and the greatest value."""

    kind: ClassVar[int]  # its number in `_slopes.pxd`
    parameter: ClassVar[str] = ""  # the name of its parameter, if it has one
    is_mean: bool = False  # whether it is least at the mean of targets
    is_location: bool = False  # whether it is a function of z - y, least at 0
    allows_infinite_values: ClassVar[bool] = False
    by_rounds: ClassVar[bool] = False  # whether it may be solved by rounds of cuts
    scales: ClassVar[bool] = False  # whether l(c z, c y) is l(z, y) times a power of c
    has_unit: ClassVar[bool] = False  # whether its parameter is in the unit of targets, and so to be multiplied by c

    def __init__(self) -> None:
        if type(self) is Loss:
            raise TypeError("Loss is abstract; make one of its kinds.")

    @overload
    def value(self, z: ScalarLike, y: ScalarLike) -> Any: ...  # an array, if parameters are of single samples
    @overload
    def value(self, z: ColumnLike, y: ColumnLike) -> NDArray[np.float64]: ...
    def value(self, z: ColumnLike, y: ColumnLike) -> Any:
        """The loss of the value z for the target y, entry by entry.

        Parameters
        ----------
        z, y : array_like of any shape
            Values and targets, in shapes that go together.

        Returns
        -------
        ndarray of float64, or float64 for single numbers

        Examples
        --------
        >>> import staircase_fast as sf
        >>> sf.losses.Huber(1.0).value([0.5, 3.0], 0.0)
        array([0.125, 2.5  ])
        """
        arguments, shape = self._arguments(z, y)
        out = np.empty(len(arguments[1]))
        _losses.values(self.kind, *arguments, out)
        return out.reshape(shape)[()]

    @overload
    def derivative(self, z: ScalarLike, y: ScalarLike) -> Any: ...  # an array, if parameters are of single samples
    @overload
    def derivative(self, z: ColumnLike, y: ColumnLike) -> NDArray[np.float64]: ...
    def derivative(self, z: ColumnLike, y: ColumnLike) -> Any:
        """The derivative of the loss with respect to z; where it jumps, the one to the right.

        Parameters
        ----------
        z, y : array_like of any shape
            Values and targets, in shapes that go together.

        Returns
        -------
        ndarray of float64, or float64 for single numbers

        Examples
        --------
        >>> import staircase_fast as sf
        >>> sf.losses.Huber(1.0).derivative([0.5, 3.0], 0.0)
        array([0.5, 1. ])
        """
        arguments, shape = self._arguments(z, y)
        parameters, z, y = arguments
        big, tail, curve = np.empty((3, len(z)))
        _losses.slopes(self.kind, parameters, 0, 0, z, y, big, tail, curve)
        return (big + tail).reshape(shape)[()]

    def _arguments(
        self, z: ColumnLike, y: ColumnLike
    ) -> tuple[tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]], tuple[int, ...]]:
        """Parameters, values and targets, each as a column of numbers, and the shape they came in."""
        pair = _validation.pair_of_reals(z, y, self)
        *columns, parameters = np.broadcast_arrays(*pair, self.parameters)
        flat = [np.ascontiguousarray(column).reshape(-1) for column in columns]
        given = self.parameters if len(self.parameters) == 1 else np.ascontiguousarray(parameters).reshape(-1)
        return (given, flat[0], flat[1]), columns[0].shape if len(self.parameters) > 1 else np.broadcast(*pair).shape

    def gain(
        self, means: NDArray[np.float64], shares: NDArray[np.float64], size: float, limits: tuple[float, float]
    ) -> float:
        """How much loss a fit saves, up to a constant of the data and a positive factor: for comparing two fits.

        A step has the value within limits that is next to the mean of its targets.  `shares` are the weights of steps
        over their total, `size` is the largest magnitude of a mean or a value.  Losses that are least at the mean are
        linear in y, but for what depends on y alone: what a step costs is what its mean would cost as a target.
        """
        return -float(np.sum(shares * self.value(means.clip(*limits), means)))

    @property
    def parameters(self) -> NDArray[np.float64]:
        """The parameter, as a column of one or of one per sample."""
        return np.atleast_1d(getattr(self, self.parameter)) if self.parameter else _NO_PARAMETER

    def arguments(self) -> dict[str, Any]:
        """What makes an equal loss."""
        return dict(vars(self))

    @property
    def per_sample(self) -> bool:
        """Whether samples differ in more than their targets."""
        return len(self.parameters) > 1

    def sort_keys(self) -> tuple[NDArray[Any], ...]:
        """What samples differ in besides their targets."""
        return (self.parameters,)

    def __reduce__(self) -> tuple[Any, ...]:
        return _remade, (type(self), self.arguments())

    def of_rows(self, chosen: NDArray[Any] | slice) -> Loss:
        """The loss of some of the samples, or of all in another order."""
        arguments = self.arguments()
        if self.per_sample:
            arguments[self.parameter] = arguments[self.parameter][chosen]
        return type(self)(**arguments)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Loss) or type(self) is not type(other):
            return False
        mine, theirs = self.arguments(), other.arguments()
        return mine.keys() == theirs.keys() and all(np.array_equal(mine[name], theirs[name]) for name in mine)

    def __hash__(self) -> int:
        entries = sorted(self.arguments().items())
        return hash((type(self), *((name, tuple(np.ravel(value).tolist())) for name, value in entries)))

    def __repr__(self) -> str:
        shown = ", ".join(
            f"{name}={value!r}" if np.ndim(value) == 0 else f"{name}=<{len(value)} of them>"
            for name, value in self.arguments().items()
        )
        return f"{type(self).__name__}({shown})"


class SquaredError(Loss):
    """(z - y)**2: every step is the mean of its targets.

    Examples
    --------
    >>> import staircase_fast as sf
    >>> sf.fit([1, 2, 3], [0.0, 4.0, 2.0], loss=sf.losses.SquaredError()).values
    array([0., 3.])
    """

    name = "squared_error"
    kind = 0
    is_mean = is_location = True

    def gain(
        self, means: NDArray[np.float64], shares: NDArray[np.float64], size: float, limits: tuple[float, float]
    ) -> float:
        # squares of 1e308 would overflow
        relative, held = (values / size if size > 0 else values for values in (means, means.clip(*limits)))
        return float(np.sum(shares * ((relative - np.sum(shares * relative)) ** 2 - (relative - held) ** 2)))


class LogLoss(Loss):
    """-y log z - (1 - y) log(1 - z), for targets in [0, 1]: every step is the mean of its targets.

    Examples
    --------
    >>> import staircase_fast as sf
    >>> sf.fit([0.2, 0.4, 0.6], [0, 1, 0], loss=sf.losses.LogLoss()).values
    array([0. , 0.5])
    """

    name = "log_loss"
    kind = 1
    target_range = value_range = (0.0, 1.0)
    is_mean = True


class PoissonDeviance(Loss):
    """exposure * z - y log z, for targets >= 0: every step is the sum of its targets over that of its exposures.

    Parameters
    ----------
    exposure : float or array_like of shape (n,), default 1.0
        How much each sample was exposed; > 0.

    Examples
    --------
    >>> import staircase_fast as sf
    >>> claims, years = [1, 0, 3], [2.0, 0.5, 1.0]
    >>> sf.fit([1, 2, 3], claims, loss=sf.losses.PoissonDeviance(exposure=years)).values
    array([0.4, 3. ])
    """

    name = "poisson_deviance"
    kind = 2
    parameter = "exposure"
    target_range = value_range = (0.0, math.inf)

    def __init__(self, exposure: ColumnLike = 1.0) -> None:
        self.exposure = _validation.loss_parameter("exposure", exposure, _LEAST, math.inf)

    @property
    def is_mean(self) -> bool:  # type: ignore[override]
        """Whether it is least at the mean of targets."""
        return bool(np.all(self.exposure == 1.0))


class GammaDeviance(Loss):
    """log z + y / z, for targets > 0: every step is the mean of its targets.

    Examples
    --------
    >>> import staircase_fast as sf
    >>> sf.fit([1, 2, 3], [1.0, 4.0, 2.0], loss=sf.losses.GammaDeviance()).values
    array([1., 3.])
    """

    name = "gamma_deviance"
    kind = 3
    target_range = value_range = (_LEAST, math.inf)
    is_mean = True


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

    name = "tweedie_deviance"
    kind = 4
    parameter = "power"
    is_mean = True

    def __init__(self, power: float) -> None:
        self.power = _validation.tweedie_power(power)
        if self.power == 0:
            return
        self.value_range = (0.0 if self.power < 2 else _LEAST, math.inf)
        if self.power > 0:
            self.target_range = self.value_range

    def gain(
        self, means: NDArray[np.float64], shares: NDArray[np.float64], size: float, limits: tuple[float, float]
    ) -> float:
        if self.power == 0:
            return SquaredError().gain(means, shares, size, limits)
        if self.power in (1, 2):
            return (PoissonDeviance() if self.power == 1 else GammaDeviance()).gain(means, shares, size, limits)
        p, values = self.power, means.clip(*limits)
        with np.errstate(divide="ignore", invalid="ignore"):  # 0 ** (1 - p) may be infinite
            slopes = np.where(means == 0, 0.0, means * values ** (1 - p))
        return float(np.sum(shares * (slopes / (1 - p) - values ** (2 - p) / (2 - p))))

    def arguments(self) -> dict[str, Any]:
        """What makes an equal loss."""
        return {"power": self.power}


class Logistic(Loss):
    """log(1 + exp(z + offset)) - y (z + offset), for targets in [0, 1]: values are log-odds.

    Parameters
    ----------
    offset : float or array_like of shape (n,), default 0.0
        Added to the value of each sample.

    Notes
    -----
    The best log-odds of samples that all are 0, or all 1, are infinite.  `fit` returns -inf and inf where `bounds` ask
    for them by (-inf, inf), and else says which step it is.

    Examples
    --------
    >>> import staircase_fast as sf
    >>> sf.fit([1, 2, 3, 4], [0, 1, 0, 1], loss="logistic", bounds=(-9, 9)).values
    array([-9.,  0.,  9.])
    """

    name = "logistic"
    by_rounds = True
    kind = 5
    allows_infinite_values = True
    parameter = "offset"
    target_range = (0.0, 1.0)

    def __init__(self, offset: ColumnLike = 0.0) -> None:
        self.offset = _validation.logistic_offset(offset)


class Linex(Loss):
    """exp(a r) - a r - 1 with r = z - y: an error on one side costs exponentially more than on the other.

    Parameters
    ----------
    shape : float or array_like of shape (n,)
        a; not 0.  Above 0, values too high are the worse ones.

    Examples
    --------
    >>> import staircase_fast as sf
    >>> sf.fit([1, 2], [1.0, 0.0], loss=sf.losses.Linex(1.0)).values.round(4)
    array([0.3799])
    """

    name = "linex"
    by_rounds = True
    kind = 6
    parameter = "shape"
    is_location = True

    def __init__(self, shape: ColumnLike) -> None:
        self.shape = _validation.linex_shape(shape)


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

    name = "expectile"
    kind = 7
    parameter = "level"
    is_location = scales = by_rounds = True

    def __init__(self, level: ColumnLike = 0.5) -> None:
        self.level = _validation.loss_parameter("level", level, _LEAST, math.nextafter(1.0, 0.0))


class Quantile(Loss):
    """(level - [z > y]) (y - z): the level-quantile.

    Parameters
    ----------
    level : float or array_like of shape (n,), default 0.5
        Between 0 and 1; 1/2 is the median.
    side : {"lower", "middle", "upper"}, default "lower"
        Which minimiser, where there are several: the least, the greatest, or half-way between them.

    Examples
    --------
    >>> import staircase_fast as sf
    >>> for side in ("lower", "middle", "upper"):
    ...     sf.fit([1, 2], [1.0, 0.0], loss=sf.losses.Quantile(0.5, side=side)).values
    array([0.])
    array([0.5])
    array([1.])
    """

    name = "quantile"
    kind = 8
    parameter = "level"
    is_location = scales = by_rounds = True

    def __init__(self, level: ColumnLike = 0.5, side: Literal["lower", "middle", "upper"] = "lower") -> None:
        self.level = _validation.loss_parameter("level", level, _LEAST, math.nextafter(1.0, 0.0))
        self.side = _validation.choice("side", side, ("lower", "middle", "upper"))


class Huber(Loss):
    """(z - y)**2 / 2 where that error is at most delta, and a straight line beyond: outliers count less.

    Parameters
    ----------
    delta : float or array_like of shape (n,), default 1.0
        > 0.

    Notes
    -----
    Where minimisers form an interval, as of targets far from each other, the value is its middle.

    Examples
    --------
    >>> import staircase_fast as sf
    >>> sf.fit([1, 2, 3], [9.0, 2.0, 1.0], loss=sf.losses.Huber(1.0)).values
    array([2.])
    >>> sf.fit([1, 2, 3], [9.0, 2.0, 1.0], loss=sf.losses.Huber([3.0, 1.0, 1.0])).values  # one delta per sample
    array([7.])
    """

    name = "huber"
    kind = 9
    parameter = "delta"
    is_location = scales = by_rounds = True
    has_unit = True

    def __init__(self, delta: ColumnLike = 1.0) -> None:
        self.delta = _validation.loss_parameter("delta", delta, _LEAST, math.inf)


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

    name = "pseudo_huber"
    kind = 10
    parameter = "delta"
    is_location = scales = by_rounds = True
    has_unit = True

    def __init__(self, delta: ColumnLike = 1.0) -> None:
        self.delta = _validation.loss_parameter("delta", delta, _LEAST, math.inf)


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

    name = "log_cosh"
    kind = 11
    parameter = "scale"
    is_location = scales = by_rounds = True
    has_unit = True

    def __init__(self, scale: ColumnLike = 1.0) -> None:
        self.scale = _validation.loss_parameter("scale", scale, _LEAST, math.inf)


class Power(Loss):
    """abs(z - y)**exponent / exponent: between the median (exponents near 1) and the mid-range (large ones).

    Parameters
    ----------
    exponent : float or array_like of shape (n,)
        > 1; 2 is the squared error.

    Examples
    --------
    >>> import staircase_fast as sf
    >>> for exponent in (1.1, 1.5, 2.0, 50.0):
    ...     sf.fit([1, 2, 3], [9.0, 2.0, 1.0], loss=sf.losses.Power(exponent)).values.round(3)
    array([2.])
    array([3.034])
    array([4.])
    array([5.])
    """

    name = "power"
    kind = 12
    parameter = "exponent"
    is_location = scales = by_rounds = True

    def __init__(self, exponent: ColumnLike) -> None:
        self.exponent = _validation.loss_parameter("exponent", exponent, math.nextafter(1.0, 2.0), math.inf)


class Custom(Loss):
    """Your own loss, by its derivative with respect to z.

    Parameters
    ----------
    derivative : callable
        `derivative(z, y, *args)` of arrays of one length, which returns l'(z, y) for each entry, and never decreases in
        z.  It is called once per round with all samples whose values are not yet known, each of them twice: at a value,
        and nearby.  Or a compiled function
        `double derivative(double z, double y)` or `double derivative(double z, double y, void *user_data)`, called
        without the GIL: a `numba.cfunc`, a ctypes function, a PyCapsule, a `scipy.LowLevelCallable`.  Its type is
        checked; an address as an integer is not accepted.
    args : tuple
        Passed on to a Python function; arrays with one entry per sample are cut to the samples of each call.  Not for
        compiled functions.
    domain : (low, high), default (-inf, inf)
        Where l' can be asked for; values lie within.

    Notes
    -----
    What the function raises reaches the caller of `fit` as it is.  NaN, a wrong shape, or a derivative that is seen to
    decrease is an error that names the sample.  A staircase is saved without the function.

    Examples
    --------
    >>> import staircase_fast as sf
    >>> def cubic(z, y):
    ...     return (z - y) ** 3
    >>> sf.fit([1, 2, 3], [0.5, 3.0, 1.0], loss=sf.losses.Custom(cubic)).values.round(6)
    array([0.5, 2. ])
    """

    name = "custom"
    by_rounds = True
    kind = -1
    allows_infinite_values = True

    def __init__(
        self,
        derivative: Any,
        args: tuple[Any, ...] = (),
        domain: tuple[float, float] = (-math.inf, math.inf),
    ) -> None:
        self.compiled = callback.compiled(derivative)
        parts = _validation.custom_parts(derivative, args, domain, compiled=self.compiled is not None)
        self.function, self.args, self.value_range = parts
        self.numbers: NDArray[np.intp] | None = None  # of the samples, as the user counts them
        if self.compiled is not None:
            self.kind = self.compiled.kind  # type: ignore[misc]

    def value(self, z: ColumnLike, y: ColumnLike) -> Any:
        """Not known: a Custom loss is given by its derivative."""
        raise TypeError("the value of a Custom loss is not known, only its derivative.")

    def derivative(self, z: ColumnLike, y: ColumnLike) -> Any:
        """The derivative of the loss with respect to z, as the function gives it."""
        pair = _validation.pair_of_reals(z, y, self)
        if self.compiled is None:
            return self.function(*pair, *self.args)
        flat = [np.ascontiguousarray(column).reshape(-1) for column in np.broadcast_arrays(*pair)]
        return self.slopes(flat[0], flat[1])[0].reshape(np.broadcast(*pair).shape)[()]

    def slopes(
        self,
        z: NDArray[np.float64],
        y: NDArray[np.float64],
        rows: Callable[[], NDArray[np.intp]] | None = None,
        optional: int = 0,
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Derivatives of samples with these targets, checked, and how they curve (zeros if that is not known).

        `rows` gives the places of these samples, if they are not all; of the last `optional` ones, NaN will do.
        """
        if self.compiled is None:
            args = self.args
            if rows is not None and any(np.ndim(arg) for arg in args):
                chosen = rows()
                args = tuple(arg[chosen] if np.ndim(arg) else arg for arg in args)
            found = _validation.slopes_given(self.function(z, y, *args), z, rows, self.numbers, optional)
            return found, np.zeros(len(z))
        big, tail, curve = np.empty((3, len(z)))
        bad = _losses.slopes(self.kind, _NO_PARAMETER, *self.compiled[1:3], z, y, big, tail, curve)
        if bad >= 0:
            _validation.bad_slope(tail[bad], z[bad], bad if rows is None else int(rows()[bad]), self.numbers)
        return tail, curve

    @property
    def per_sample(self) -> bool:
        """Whether samples differ in more than their targets."""
        return True

    def arguments(self) -> dict[str, Any]:
        """What makes an equal loss."""
        return {"derivative": self.function, "args": self.args, "domain": self.value_range}

    def sort_keys(self) -> tuple[NDArray[Any], ...]:
        """What samples differ in besides their targets."""
        return tuple(arg for arg in self.args if np.ndim(arg))

    def of_rows(self, chosen: NDArray[Any] | slice) -> Custom:
        """The loss of some of the samples, or of all in another order."""
        other = Custom(self.function, (), self.value_range)
        other.args = tuple(arg[chosen] if np.ndim(arg) else arg for arg in self.args)
        if self.numbers is not None:
            other.numbers = self.numbers[chosen]
        elif isinstance(chosen, slice):
            other.numbers = None
        else:
            other.numbers = np.flatnonzero(chosen) if chosen.dtype == np.bool_ else chosen
        return other

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Custom):
            return False
        same = self.function is other.function and self.value_range == other.value_range
        return same and len(self.args) == len(other.args) and all(map(np.array_equal, self.args, other.args))

    def __hash__(self) -> int:
        return hash((Custom, id(self.function), self.value_range))

    def __repr__(self) -> str:
        return f"Custom({getattr(self.function, '__name__', self.function)!s})"


class UpdateRule(Loss):
    """A loss by the paper's update rule: what two blocks become when they are joined.

    Parameters
    ----------
    merge : callable
        `merge(y1, lam1, y2, lam2) -> (y, lam)`: minimiser and auxiliary value of two blocks side by side as one; F and
        G of section IV-B.
    initial : callable, optional
        `initial(target, weight) -> (y, lam)` of a single sample; by default these are its target and its weight.

    Examples
    --------
    The squared error, once more:

    >>> import staircase_fast as sf
    >>> def mean(y1, w1, y2, w2):
    ...     return (y1 * w1 + y2 * w2) / (w1 + w2), w1 + w2
    >>> sf.fit([1, 2, 3], [0.0, 4.0, 2.0], loss=sf.losses.UpdateRule(mean)).values
    array([0., 3.])
    """

    name = "update_rule"
    kind = -1

    def __init__(self, merge: Any, initial: Any = None) -> None:
        self.merge = _validation.function("merge", merge)
        self.initial = None if initial is None else _validation.function("initial", initial)

    def value(self, z: ColumnLike, y: ColumnLike) -> Any:
        """Not known: an UpdateRule says what its best values are, not what they cost."""
        raise TypeError("the value of an UpdateRule is not known, only its minimisers.")

    def derivative(self, z: ColumnLike, y: ColumnLike) -> Any:
        """Not known."""
        raise TypeError("the derivative of an UpdateRule is not known, only its minimisers.")

    def __hash__(self) -> int:
        return hash((UpdateRule, self.merge, self.initial))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, UpdateRule) and (self.merge, self.initial) == (other.merge, other.initial)

    def __repr__(self) -> str:
        return f"UpdateRule({getattr(self.merge, '__name__', self.merge)!s})"


_KINDS: tuple[type[Loss], ...] = (
    SquaredError, LogLoss, PoissonDeviance, GammaDeviance, TweedieDeviance, Logistic, Linex, Expectile, Quantile, Huber,
    PseudoHuber, LogCosh, Power,
)  # fmt: skip
BY_NAME: dict[str, type[Loss]] = {kind.name: kind for kind in _KINDS} | {"squared": SquaredError, "log": LogLoss}


def forgotten(*_given: Any) -> Any:
    """What stands for the function of a loss that was read from a file."""
    raise ValueError("the function of this loss was not saved with the staircase.")


def _remade(kind: type[Loss], arguments: dict[str, Any]) -> Loss:
    """What pickle and copy make anew."""
    return kind(**arguments)


WITHOUT_DEFAULT: tuple[type[Loss], ...] = (TweedieDeviance, Linex, Power)
"""Losses whose parameter must be said."""


def loss_of(given: object, argument: str = "loss") -> Loss:
    """A loss, by object or by name; `argument` is what the caller calls it."""
    if isinstance(given, Loss):
        return given
    kind = BY_NAME.get(given) if isinstance(given, str) else None
    if kind is None:
        _validation.unknown_loss(given, BY_NAME, argument)
    if kind in WITHOUT_DEFAULT:
        _validation.unnamed_parameter(kind, argument)
    return kind()
