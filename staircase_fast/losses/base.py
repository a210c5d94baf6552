"""The base class of losses."""

from __future__ import annotations

import math
import re
from typing import Any, ClassVar, overload

import numpy as np
from numpy.typing import NDArray

from staircase_fast.arithmetic.exact import Extent
from staircase_fast.errors import refuse_entries
from staircase_fast.inputs.columns import read_array
from staircase_fast.losses import _losses
from staircase_fast.losses.parameters import range_text
from staircase_fast.typing import ColumnLike, ScalarLike

Floats = NDArray[np.float64]
NO_PARAMETER = np.zeros(1)


class Loss:
    """A loss l(z, y) of a value z for a target y.

    It is convex in z.  The gamma and Tweedie losses are only unimodal, as are their weighted sums.

    A parameter is a number, or an array with one entry per sample.  Two losses are equal if they have the same class
    and the same parameters.

    Notes
    -----
    Thread-safety: any number of threads can use a loss at the same time, if its user functions are thread-safe.

    Examples
    --------
    >>> import staircase_fast as sf
    >>> sf.losses.Huber([1.0, 2.0]).value(3.0, [0.0, 0.0])
    array([2.5, 4. ])
    >>> sf.losses.Huber(2.0) == sf.losses.Huber(delta=2.0)
    True
    """

    name: ClassVar[str]
    """The name that can be passed instead of an object: the name of the class with underscores."""
    target_range: tuple[float, float] = (-math.inf, math.inf)
    """The least and the greatest target."""
    value_range: tuple[float, float] = (-math.inf, math.inf)
    """The least and the greatest value."""

    kind: int = -1  # its number in `Kind` of `_slopes.pxd`, if it has one
    parameter: ClassVar[str] = ""  # the name of its parameter, if it has one
    has_values: ClassVar[bool] = True  # `value` can be evaluated
    has_derivative: ClassVar[bool] = True  # `derivative` can be evaluated
    address = user_data = 0  # of a user's compiled derivative
    in_python: bool = False  # the derivative is a user's Python function

    # how it is fitted (bisection/solve.py)
    solver: ClassVar[str] = "rounds"  # the key of its solver in `SOLVERS`
    is_location: ClassVar[bool] = False  # a function of z - y with its minimum at 0
    first_bounds: ClassVar[str] = "targets"  # the key of its first bounds in `FIRST_RUNS`
    side: str = "either"  # which minimiser is returned: "lower", "middle", "upper"; "either": unique, or the middle
    minimises_at_targets: ClassVar[bool] = False  # minimisers are targets
    levels_off: ClassVar[bool] = False  # slopes level off to +-1 in units of its parameter
    allows_infinite_values: ClassVar[bool] = False
    extreme_targets: tuple[bool, bool] = (False, False)  # targets 0, 1 are minimised where the loss of others is inf

    # how it scales (units.py)
    scales: ClassVar[bool] = False  # l(c z, c y) is l(z, y) times c**degree
    degree: float = 2.0
    has_power_slopes: ClassVar[bool] = False  # slopes are powers of distances; the parameter is the degree
    has_unit: ClassVar[bool] = False  # its parameter has the unit of the targets, so it is multiplied by c as well

    def __init_subclass__(cls) -> None:
        if Loss in cls.__bases__:  # subclasses of users keep the name of their base
            cls.name = re.sub("(?<!^)(?=[A-Z])", "_", cls.__name__).lower()

    def __init__(self) -> None:
        if type(self) is Loss:
            raise TypeError("Loss is abstract; use one of its subclasses.")

    @overload
    def value(self, z: ScalarLike, y: ScalarLike) -> Any: ...  # an array if there is a parameter per sample
    @overload
    def value(self, z: ColumnLike, y: ColumnLike) -> Floats: ...
    def value(self, z: ColumnLike, y: ColumnLike) -> Any:
        """The loss of each value z for its target y.

        Parameters
        ----------
        z, y : array_like of any shape
            Values and targets; their shapes are broadcast.

        Returns
        -------
        ndarray of float64, or float64 for single numbers

        Examples
        --------
        >>> import staircase_fast as sf
        >>> sf.losses.Huber(1.0).value([0.5, 3.0], 0.0)
        array([0.125, 2.5  ])
        """
        if not self.has_values:
            given = "derivative" if self.has_derivative else "minimisers"
            raise TypeError(f"the value of {self!r} is unknown; it defines only its {given}.")
        columns, shape = self._broadcast(z, y)
        out = np.empty(shape)
        _losses.values(self.kind, *columns, out.reshape(-1))
        return out[()]

    @overload
    def derivative(self, z: ScalarLike, y: ScalarLike) -> Any: ...  # an array if there is a parameter per sample
    @overload
    def derivative(self, z: ColumnLike, y: ColumnLike) -> Floats: ...
    def derivative(self, z: ColumnLike, y: ColumnLike) -> Any:
        """The derivative of the loss with respect to z; the right-sided one where it jumps.

        Parameters
        ----------
        z, y : array_like of any shape
            Values and targets; their shapes are broadcast.

        Returns
        -------
        ndarray of float64, or float64 for single numbers

        Examples
        --------
        >>> import staircase_fast as sf
        >>> sf.losses.Huber(1.0).derivative([0.5, 3.0], 0.0)
        array([0.5, 1. ])
        """
        if not self.has_derivative:
            raise TypeError(f"the derivative of {self!r} is unknown; it defines only its minimisers.")
        columns, shape = self._broadcast(z, y)
        out = np.empty((3, len(columns[1])))
        _losses.slopes(self, *columns, out)
        return (out[0] + out[1]).reshape(shape)[()]

    def _broadcast(self, z: ColumnLike, y: ColumnLike) -> tuple[tuple[Floats, Floats, Floats], tuple[int, ...]]:
        """Parameters, values and targets as flat columns, and the shape of the result."""
        pair, p = self._check_pair(z, y), self.parameters
        shape = np.broadcast_shapes(*(column.shape for column in pair), p.shape if len(p) > 1 else ())
        flat = [np.broadcast_to(column, shape).ravel() for column in pair]
        return (np.broadcast_to(p, shape).ravel() if len(p) > 1 else p, flat[0], flat[1]), shape

    def _check_pair(self, z: ColumnLike, y: ColumnLike) -> list[Floats]:
        pair = [read_array(name, given).astype(np.float64) for name, given in (("z", z), ("y", y))]
        for name, numbers, (low, high) in zip("zy", pair, (self.value_range, self.target_range), strict=True):
            flat = numbers.reshape(-1)
            refuse_entries(name, "must not be NaN", flat, np.isnan(flat))
            if name == "y":
                refuse_entries(name, "must be finite", flat, np.isinf(flat))
            outside = (flat < low) | (flat > high)
            refuse_entries(name, f"must be {range_text(low, high)} for {self.name}", flat, outside)
        return pair

    def cost_of_means(self, means: Floats, shares: Floats, size: float, bounds: tuple[float, float]) -> float:
        """The loss of a fit up to a constant and a positive factor that depend on the data alone.

        For comparing two fits whose steps are means, clipped to the bounds.  `shares` are the weights of the steps over
        their total, `size` is the largest magnitude of a mean or a value.  Without terms in y alone, the loss is linear
        in y, so the cost of a step is that of its mean as a target.  The caller ignores floating-point warnings.
        """
        return float(np.sum(shares * self.value(means.clip(*bounds), means)))

    def natural_parameter(self, z: Floats) -> Floats:
        """A function of z, with respect to which the slope is z - y and the loss is convex; z if it is not a mean."""
        return z

    def has_integer_slopes(self, targets: Floats) -> bool:
        """Whether the limits of slopes at -inf and inf are integers, in units of the parameter."""
        return self.levels_off and not self.per_sample

    def check_spread(self, targets: Extent) -> None:
        """Raise an error if slopes would overflow or underflow for these targets."""

    @property
    def is_mean(self) -> bool:
        """Whether the minimiser is the mean of the targets."""
        return self.solver == "mean"

    @property
    def parameters(self) -> Floats:
        """The parameter as a column with one entry, or one per sample."""
        return np.atleast_1d(getattr(self, self.parameter)) if self.parameter else NO_PARAMETER

    def arguments(self) -> dict[str, Any]:
        """The arguments that construct an equal loss."""
        return dict(vars(self))

    @property
    def per_sample(self) -> bool:
        """Whether samples have their own parameters."""
        return bool(self.parameter) and len(self.parameters) > 1

    def sort_keys(self) -> tuple[NDArray[Any], ...]:
        """The columns, besides targets, in which samples differ."""
        return (self.parameters,)

    def __getstate__(self) -> dict[str, Any]:
        return self.arguments()

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]

    def of_rows(self, chosen: NDArray[Any] | slice) -> Loss:
        """The loss of some of the samples, or of all of them in another order."""
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
