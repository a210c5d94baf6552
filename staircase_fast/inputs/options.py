"""Checks of options that several functions share: directions, bounds, limits, choices, threads."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from itertools import islice
from types import MappingProxyType
from typing import Any, NoReturn

import numpy as np

from staircase_fast.errors import InvalidInputError, InvalidTypeError, check_count, missing_extra, shown

_MOST_LISTED = 20  # choices in a message
_LONGEST_WORD = 50  # characters that are compared with choices
_MOST_COMPARED = 10_000  # choices
_NO_SYNONYMS: Mapping[str, object] = MappingProxyType({})
_DIRECTIONS = {"increasing": True, "ascending": True, "1": True, "decreasing": False, "descending": False, "0": False}
_DIRECTIONS["-1"] = False


def check_direction(increasing: object, *, auto: bool) -> bool | None:
    """True: increasing, False: decreasing, None: "auto"."""
    if isinstance(increasing, (bool, np.bool_)):
        return bool(increasing)
    if auto and isinstance(increasing, str) and increasing == "auto":
        return None
    allowed = "True, False or 'auto'" if auto else "True or False"
    hint = did_you_mean(increasing, (True, False, "auto") if auto else (True, False), _DIRECTIONS)
    raise InvalidInputError("increasing", f"must be {allowed}", value=increasing, hint=hint)


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
        hint = f"Did you mean ({pair[1]:g}, {pair[0]:g})?" if pair[1] < pair[0] else ""
        requirement = "must be a pair with lo <= hi and a number between them"
        raise InvalidInputError("bounds", requirement, value=bounds, hint=hint)
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
    if not isinstance(choice, str) or choice not in allowed:
        refuse_choice(argument, choice, allowed)
    return choice


def refuse_choice(
    argument: str,
    choice: object,
    allowed: Collection[object],
    synonyms: Mapping[str, object] = _NO_SYNONYMS,
    *,
    what: str = "one of",
) -> NoReturn:
    """Raise an error for a choice that is not allowed, and suggest the one that was probably meant."""
    hint = did_you_mean(choice, allowed, synonyms)
    raise InvalidInputError(argument, f"must be {what} {listed(allowed)}", value=choice, hint=hint)


def refuse_column(name: object, columns: Collection[object], file: str | None = None, hint: str = "") -> NoReturn:
    """Raise an error for a column that a table does not have; without a `hint`, similar names are suggested."""
    hint = hint or did_you_mean(name, columns)
    found = f"the columns are {listed(columns)}"
    raise InvalidInputError("", f"there is no column {shown(name)}", found=found, file=file, hint=hint)


def did_you_mean(word: object, choices: Collection[object], synonyms: Mapping[str, object] = _NO_SYNONYMS) -> str:
    """A question that suggests the most similar choice; empty if none is similar, or if comparing them took long."""
    if not isinstance(word, (str, int)) or len(shown(word)) > _LONGEST_WORD or len(choices) > _MOST_COMPARED:
        return ""
    import difflib  # slow to import

    known = {**synonyms, **{str(choice).lower(): choice for choice in choices}}
    match = difflib.get_close_matches(str(word).strip().lower(), known, n=1)
    return f"Did you mean {known[match[0]]!r}?" if match else ""


def listed(choices: Collection[object]) -> str:
    """The choices as they appear in a message: the first of them, if there are many."""
    more = len(choices) - _MOST_LISTED
    return ", ".join(map(shown, islice(choices, _MOST_LISTED))) + (f" and {more} more" if more > 0 else "")


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
        raise missing_extra(purpose, package, extra) from None
