"""What exports are told: names of columns, and staircases that cannot be written; see `_validation.py`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


def name_parts(name: str, given: Any) -> tuple[str, ...]:
    """The parts of an SQL name: a string is one part, whatever is in it."""
    parts = (given,) if isinstance(given, str) else given
    if not isinstance(parts, Sequence) or isinstance(parts, bytes) or not len(parts):
        raise TypeError(f"`{name}` must be a name, or a sequence of names such as ('t', 'score'); got {given!r}.")
    for place, part in enumerate(parts):
        if not isinstance(part, str):
            raise TypeError(f"`{name}` must hold names of type str; got {part!r} at index {place}.")
        if not part or "\0" in part:
            raise ValueError(f"`{name}` must hold names with a character, and none that is NUL; got {part!r}.")
        _encodable(name, part)
    return tuple(parts)


def _encodable(name: str, part: str) -> None:
    try:
        part.encode()
    except UnicodeEncodeError:
        raise ValueError(f"`{name}` must hold names that can be written as UTF-8; got {part!r}.") from None


def value_names(given_in: object, given_out: object) -> tuple[str, str]:
    """The names of what goes into a model, and of what comes out."""
    for name, given in (("input_name", given_in), ("output_name", given_out)):
        if not isinstance(given, str):
            raise TypeError(f"`{name}` must be a str; got {type(given).__name__}.")
        if not given:
            raise ValueError(f"`{name}` must have a character; got ''.")
        _encodable(name, given)
    if given_in == given_out:
        raise ValueError(f"`output_name` must differ from `input_name`; got {given_out!r} for both.")
    return str(given_in), str(given_out)


def lines_are_finite(left: NDArray[np.float64], right: NDArray[np.float64], slope: NDArray[np.float64]) -> None:
    """Refuse lines between two numbers whose slope is none, but for ends at infinity, where values are constant."""
    numbers = np.isfinite(right[:-1]) & np.isfinite(left[1:])
    bad = numbers & np.isnan(slope[:-1])
    if bad.any():
        step = int(np.argmax(bad))
        raise ValueError(
            f"`interpolation` must be 'step' for this staircase; the slope of the line after step {step}, from "
            f"{right[step].item()!r} to {left[step + 1].item()!r}, is no finite number > 0."
        )


def keys_in_text(keys: Sequence[object]) -> None:
    """Refuse keys that no database holds as text."""
    for place, key in enumerate(keys):
        if isinstance(key, str):
            _encodable("keys", key)
            if "\0" in key:
                raise ValueError(
                    f"`keys` must not have the character NUL to be written as SQL; got {key!r} at {place}."
                )
