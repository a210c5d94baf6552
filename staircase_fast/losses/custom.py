"""Losses that users define: by a derivative, or by how blocks merge."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from staircase_fast.errors import InvalidInputError, InvalidTypeError
from staircase_fast.inputs.columns import reading
from staircase_fast.inputs.options import as_real, check_function
from staircase_fast.losses import _losses
from staircase_fast.losses import compiled as compiled_functions
from staircase_fast.losses.base import NO_PARAMETER, Floats, Loss
from staircase_fast.typing import ColumnLike


class Custom(Loss):
    """A loss that is defined by its derivative with respect to z.

    Parameters
    ----------
    derivative : callable
        A function `derivative(z, y, *args)` of arrays of equal length that returns l'(z, y) for each entry and does not
        decrease in z.  Each round calls it once with all samples whose values are still unknown; each sample appears
        twice, at a value and close to it.  Or a compiled function, called without the GIL:
        `double derivative(double z, double y)` or `double derivative(double z, double y, void *user_data)`, given as a
        `numba.cfunc`, a ctypes function, a PyCapsule or a `scipy.LowLevelCallable`.  Its type is checked; integer
        addresses are not accepted.
    args : tuple
        Further arguments of a Python function.  Arrays with one entry per sample are reduced to the samples of each
        call.  Not for compiled functions.
    domain : (low, high), default (-inf, inf)
        The interval on which l' is defined; values lie inside it.

    Notes
    -----
    Exceptions of the function reach the caller of `fit` unchanged.  NaN, a wrong shape, or a decreasing derivative
    raises an error that names the sample.  A saved staircase does not contain the function.

    Examples
    --------
    >>> import staircase_fast as sf
    >>> def cubic(z, y):
    ...     return (z - y) ** 3
    >>> sf.fit([1, 2, 3], [0.5, 3.0, 1.0], loss=sf.losses.Custom(cubic)).values.round(6)
    array([0.5, 2. ])
    """

    first_bounds = "derivative"
    has_values = False
    allows_infinite_values = True

    def __init__(
        self,
        derivative: Any,
        args: tuple[Any, ...] = (),
        domain: tuple[float, float] = (-math.inf, math.inf),
    ) -> None:
        self.compiled = compiled_functions.compiled_derivative(derivative)
        self.function = derivative
        self.in_python = self.compiled is None
        if self.in_python and not callable(derivative):
            raise InvalidTypeError("derivative", compiled_functions.REQUIREMENT, value=derivative)
        if self.compiled is not None:
            self.kind, self.address, self.user_data = self.compiled[:3]
            if args:
                raise InvalidInputError("args", "must be empty if `derivative` is compiled", value=args)
        self.args = _check_args(args)
        self.value_range = _check_domain(domain)
        self.numbers: NDArray[np.intp] | None = None  # the user's index of each sample; None if nothing was left out

    def derivative(self, z: ColumnLike, y: ColumnLike) -> Any:
        """The derivative of the loss with respect to z, as the function returns it."""
        if self.in_python:
            return self.function(*self._check_pair(z, y), *self.args)
        columns, shape = self._broadcast(z, y)
        return self.slopes(columns[1], columns[2]).reshape(shape)[()]

    def slopes(
        self, z: Floats, y: Floats, rows: Callable[[], NDArray[np.intp]] | None = None, optional: int = 0
    ) -> Floats:
        """Checked derivatives of samples with these targets.

        `rows` returns the positions of the samples, if these are not all.  The last `optional` ones may be NaN.
        """
        if self.in_python:
            args = self._args_of(rows()) if rows is not None and self.sort_keys() else self.args
            slopes = _as_slopes(self.function(z, y, *args), z.shape)
            invalid = np.isnan(slopes[: len(slopes) - optional])
            bad = int(np.argmax(invalid)) if invalid.any() else -1
        else:
            out = np.empty((3, len(z)))
            bad = _losses.slopes(self, NO_PARAMETER, z, y, out)
            slopes = out[1]
        if bad >= 0:
            refuse_slope(slopes[bad], z[bad], bad if rows is None else int(rows()[bad]), self.numbers)
        return slopes

    def _args_of(self, chosen: NDArray[Any] | slice) -> tuple[Any, ...]:
        return tuple(arg[chosen] if np.ndim(arg) else arg for arg in self.args)

    @property
    def per_sample(self) -> bool:
        return True

    def arguments(self) -> dict[str, Any]:
        return {"derivative": self.function, "args": self.args, "domain": self.value_range}

    def __getstate__(self) -> dict[str, Any]:
        return self.arguments() | {"numbers": self.numbers}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__({name: value for name, value in state.items() if name != "numbers"})
        self.numbers = state.get("numbers")  # older pickles have none

    def sort_keys(self) -> tuple[NDArray[Any], ...]:
        return tuple(arg for arg in self.args if np.ndim(arg))

    def of_rows(self, chosen: NDArray[Any] | slice) -> Custom:
        other = Custom(self.function, (), self.value_range)
        other.args = self._args_of(chosen)
        if self.numbers is not None:
            other.numbers = self.numbers[chosen]
        elif not isinstance(chosen, slice):
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
    """A loss that is defined by the paper's update rule: how two blocks merge.

    Parameters
    ----------
    merge : callable
        `merge(y1, lam1, y2, lam2) -> (y, lam)`: minimiser and auxiliary value of two adjacent blocks after merging; F
        and G in section IV-B.
    initial : callable, optional
        `initial(target, weight) -> (y, lam)` of a single sample.  The default returns its target and its weight.

    Examples
    --------
    The squared error:

    >>> import staircase_fast as sf
    >>> def mean(y1, w1, y2, w2):
    ...     return (y1 * w1 + y2 * w2) / (w1 + w2), w1 + w2
    >>> sf.fit([1, 2, 3], [0.0, 4.0, 2.0], loss=sf.losses.UpdateRule(mean)).values
    array([0., 3.])
    """

    solver = "update_rule"
    has_values = has_derivative = False

    def __init__(self, merge: Any, initial: Any = None) -> None:
        self.merge = check_function("merge", merge)
        self.initial = None if initial is None else check_function("initial", initial)

    def __repr__(self) -> str:
        return f"UpdateRule({getattr(self.merge, '__name__', self.merge)!s})"


def _check_args(args: object) -> tuple[Any, ...]:
    if not isinstance(args, tuple):
        raise InvalidTypeError("args", "must be a tuple", value=args)
    with reading("args", "numbers or arrays"):
        args = tuple(arg if np.ndim(arg) == 0 else np.asarray(arg) for arg in args)
    for place, arg in enumerate(args):
        if np.ndim(arg) > 1:
            found = f"entry {place} has {np.ndim(arg)} dimensions"
            raise InvalidInputError("args", "must be numbers or have one entry per sample", found=found)
    return args


def _check_domain(domain: Any) -> tuple[float, float]:
    try:
        low, high = (as_real(end) for end in domain)
    except (TypeError, ValueError, OverflowError):
        raise InvalidTypeError("domain", "must be a pair (low, high) of numbers", value=domain) from None
    if not low < high:
        raise InvalidInputError("domain", "must be a pair with low < high", value=domain)
    return low, high


def _as_slopes(returned: Any, shape: tuple[int, ...]) -> Floats:
    """Check the type and the shape of the return value of a user's derivative."""
    slopes = np.asarray(returned)
    if slopes.shape != shape or slopes.dtype.kind not in "fiub":
        requirement = f"must return one real number for each entry of z, shape {shape}"
        found = f"got {slopes.dtype} of shape {slopes.shape}"
        raise InvalidInputError("derivative", requirement, found=found)
    return slopes.astype(np.float64, copy=False)


def refuse_slope(slope: float, z: float, row: int, numbers: NDArray[np.intp] | None) -> NoReturn:
    """Raise an error for a derivative that is NaN, or decreases near z."""
    sample = row if numbers is None else int(numbers[row])
    where = f"for sample {sample} at z = {float(z)!r}"
    if math.isnan(slope):
        raise InvalidInputError("derivative", "must not be NaN", found=f"got {slope} {where}")
    hint = "Pass the derivative of a convex loss with respect to z, as a function of z and y in this order."
    raise InvalidInputError("derivative", "must not decrease as z increases", found=f"it decreases {where}", hint=hint)


def forgotten(*_given: Any) -> Any:
    """Stand-in for the function of a loss that was read from a file."""
    raise ValueError("the function of this loss was not saved with the staircase.")
