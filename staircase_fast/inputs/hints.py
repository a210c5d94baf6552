"""Sentences that say how to fix invalid columns.  They are computed only when an error is raised."""

from __future__ import annotations

import contextlib
import datetime as dt
import numbers
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from staircase_fast.errors import DROP_ROWS, shown

_TARGETS = ("targets", "labels", "y")
_ROUNDING = 1e-6  # by which probabilities may miss 0 and 1 because they were rounded


def for_shape(argument: str, values: object, shape: tuple[int, ...]) -> str:
    """For an array that must be one-dimensional."""
    if not shape:
        return "Pass a list or an array with one entry per row."
    if len(shape) == 2 and 1 in shape:
        return f"Pass `np.ravel({argument})`."
    place = "[:, 1]"
    if hasattr(type(values), "iloc"):
        place = ".iloc[:, 1]"
    column = f"`{argument}{place}`" if hasattr(values, "shape") else f"`np.asarray({argument}){place}`"
    if len(shape) == 2 and shape[1] == 2:
        return f"If its columns belong to two classes, pass the second one: {column}."
    return f"Pass one of its columns, such as {column}."


def for_object(argument: str, given: object) -> str:
    """For an object that is not an array of numbers."""
    if isinstance(given, str):
        return f"Pass the column itself, for example `table[{shown(given)}]`."
    if isinstance(given, Mapping):
        return f"Pass one of its columns, for example `{argument}['score']`."
    if hasattr(given, "__next__") or isinstance(given, (set, frozenset)):
        return f"Pass `{'list' if hasattr(given, '__next__') else 'sorted'}({argument})`."
    if hasattr(given, "toarray"):
        return f"Pass `{argument}.toarray().ravel()`."
    return "Pass a list, an array or a column of numbers." if callable(given) or given is None else ""


def plain(entry: Any) -> Any:
    """An entry of an array as a Python object; Arrow has scalars of its own."""
    return entry.as_py() if hasattr(entry, "as_py") else entry


def first_word(entries: Iterable[Any]) -> int:
    """The place of the first entry that is neither a number nor text for one; 0 if there is none."""
    for place, entry in enumerate(map(plain, entries)):
        if not isinstance(entry, (str, bytes, numbers.Real)):
            return place
        try:
            float(entry)
        except (TypeError, ValueError, OverflowError):
            return place
    return 0


def for_entry(argument: str, entry: object) -> str:
    """For an entry that is not a real number."""
    if entry is None:
        return DROP_ROWS
    if isinstance(entry, (str, bytes)):
        with contextlib.suppress(ValueError):
            float(entry)
            return f"Convert text to numbers: `np.asarray({argument}, dtype=float)`."
        if argument in _TARGETS:
            return f"If {shown(entry)} is the class to predict, pass `np.asarray({argument}) == {shown(entry)}`."
        return "Convert text to numbers."
    if isinstance(entry, (np.datetime64, dt.date)):
        return f"Convert times to numbers: `({argument} - {argument}.min()) / np.timedelta64(1, 's')`."
    if isinstance(entry, (np.timedelta64, dt.timedelta)):
        return f"Convert durations to numbers: `{argument} / np.timedelta64(1, 's')`."
    if isinstance(entry, numbers.Complex):
        return f"Pass `np.real({argument})` or `np.abs({argument})`."
    if isinstance(entry, np.void) and entry.dtype.names:
        return f"Pass one of its fields: `{argument}[{entry.dtype.names[0]!r}]`."
    return ""


def for_labels(argument: str, targets: NDArray[Any], scores: NDArray[Any] | None = None) -> str:
    """For targets that must be 0, 1 or between them; `scores` are those of the same rows."""
    if scores is not None and ((scores == 0) | (scores == 1)).all() and (scores == 0).any() and (scores == 1).any():
        return f"Are `scores` and `{argument}` swapped?"
    distinct = np.unique(targets[np.isfinite(targets)])
    if len(distinct) < 2 or np.any(distinct != np.floor(distinct)):
        return ""
    return f"If {distinct[-1]:g} is the class to predict, pass `np.equal({argument}, {distinct[-1]:g})`."


def for_probabilities(argument: str, scores: NDArray[Any]) -> str:
    """For scores, or a table with a column per class, of which some are not between 0 and 1."""
    finite = scores[np.isfinite(scores)]
    lowest, highest = finite.min(initial=0.5), finite.max(initial=0.5)
    if lowest >= 0 and 10 < highest <= 100:
        return "Are these percentages? Divide by 100."
    if lowest < -_ROUNDING or highest > 1 + _ROUNDING or np.isinf(scores).any():
        way = "1 / (1 + exp(-x))" if scores.ndim == 1 else "`scipy.special.softmax(x, axis=1)`"
        return f"Are these logits? Apply {way}."
    if lowest < 0 or highest > 1:
        return f"If this is rounding, pass `np.clip({argument}, 0, 1)`."
    return DROP_ROWS  # NaN
