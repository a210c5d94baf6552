"""Checks of options that several functions share: directions, bounds, limits, choices, threads."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from staircase_fast.errors import InvalidInputError, InvalidTypeError, check_count


def check_direction(increasing: object, *, auto: bool) -> bool | None:
    """True: increasing, False: decreasing, None: "auto"."""
    if isinstance(increasing, (bool, np.bool_)):
        return bool(increasing)
    if auto and isinstance(increasing, str) and increasing == "auto":
        return None
    allowed = "True, False or 'auto'" if auto else "True or False"
    raise InvalidInputError("increasing", f"must be {allowed}", value=increasing)


def check_bounds(bounds: Any) -> tuple[float, float]:
    """The pair lo <= hi; None means no bound."""
    if bounds is None:
        return -math.inf, math.inf
    try:
        lo, hi = bounds
        pair = -math.inf if lo is None else as_real(lo) + 0.0, math.inf if hi is None else as_real(hi) + 0.0
    except (TypeError, ValueError, OverflowError):
        raise InvalidTypeError("bounds", "must be a pair (lo, hi) of numbers or None", value=bounds) from None
    if not pair[0] <= pair[1] or pair[0] == math.inf or pair[1] == -math.inf:
        raise InvalidInputError("bounds", "must be a pair with lo <= hi and a number between them", value=bounds)
    return pair


def infinite_allowed(bounds: Any) -> tuple[bool, bool]:
    """Whether the bounds explicitly allow -inf, and inf."""
    if bounds is None:
        return False, False
    lo, hi = bounds
    return lo is not None and math.isinf(lo), hi is not None and math.isinf(hi)


def as_real(number: Any) -> float:
    """One real number as a float; a TypeError for other objects that `float` accepts, some with a warning."""
    if type(number) not in (float, int) and (  # numpy's functions are slower than a small fit
        isinstance(number, (str, bytes)) or number is np.ma.masked or np.ndim(number) or np.iscomplexobj(number)
    ):
        raise TypeError
    return float(number)


def check_scalar(argument: str, number: object) -> float:
    """A number, possibly infinite or NaN."""
    try:
        return as_real(number)
    except MemoryError:
        raise
    except OverflowError:
        raise InvalidTypeError(argument, "must be within float64", value=number) from None
    except Exception:  # noqa: BLE001  (an object of any class)
        raise InvalidTypeError(argument, "must be a number", value=number) from None


def check_number(argument: str, number: object) -> float:
    """A finite number."""
    found = check_scalar(argument, number)
    if not math.isfinite(found):
        raise InvalidInputError(argument, "must be finite", value=found)
    return found


def _check_not_negative(argument: str, number: object, default: float) -> float:
    found = default if number is None else check_number(argument, number)
    if found < 0:
        raise InvalidInputError(argument, "must be >= 0", value=number)
    return found


def check_tolerance(tol: object) -> float:
    """The tolerance; 0 if it is None."""
    return _check_not_negative("tol", tol, 0.0)


def check_seconds(max_seconds: object) -> float:
    """The time limit; inf if it is None."""
    return _check_not_negative("max_seconds", max_seconds, math.inf)


def check_round_count(max_rounds: object) -> float:
    """The limit on the number of rounds; inf if it is None."""
    return math.inf if max_rounds is None else check_count("max_rounds", max_rounds, 0)


def check_choice(argument: str, choice: object, allowed: tuple[str, ...]) -> str:
    """One of a few words."""
    if isinstance(choice, str) and choice in allowed:
        return choice
    raise InvalidInputError(argument, f"must be one of {', '.join(map(repr, allowed))}", value=choice)


def check_interpolation(interpolation: object) -> str:
    """How values lie between the ends of steps."""
    return check_choice("interpolation", interpolation, ("step", "linear", "centered"))


def check_function(argument: str, function: object) -> Any:
    """A callable object."""
    if not callable(function):
        raise InvalidTypeError(argument, "must be a function", value=function)
    return function


def import_optional(name: str, purpose: str, extra: str = "") -> Any:
    """Import an optional library; `extra` is the extra of this package that installs it."""
    import importlib

    try:
        return importlib.import_module(name)
    except ImportError:
        package = "scikit-learn" if name.startswith("sklearn") else name.partition(".")[0]
        way = f": pip install 'staircase_fast[{extra}]'" if extra else ""
        raise ImportError(f"{purpose} needs {package}, which is not installed{way}.") from None
