"""What JSON documents have in common: a format and a version, losses, and numbers that may be infinite.

A loss has its parameters beside its name.  What is infinite is the string "inf" or "-inf", for JSON has no word for it.
"""

from __future__ import annotations

import contextlib
import json
import math
import reprlib
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from staircase_fast.losses import BY_NAME, Custom, Loss, UpdateRule
from staircase_fast.losses.custom import forgotten
from staircase_fast.storage import files

_INFINITE = {"inf": math.inf, "-inf": -math.inf}
_FUNCTIONS: dict[str, type[Custom | UpdateRule]] = {"custom": Custom, "update_rule": UpdateRule}
_LONGEST_SHOWN = 80  # characters of a value in a message


def document_of(
    text: str,
    what: str,
    kind: tuple[str, int],
    fields: tuple[str, ...],
    more: tuple[str, ...] = (),
    *,
    with_loss: bool = True,
) -> dict[str, Any]:
    """A JSON object of this format and version with these fields, and perhaps some more."""
    if not isinstance(text, str):
        raise TypeError(f"{what} must be JSON text of type str; got {type(text).__name__}.")
    if len(text) > files.MAX_BYTES:
        raise ValueError(f"{what} must be at most {files.MAX_BYTES} characters of JSON; got {len(text)}.")
    _check_density(text, what)
    try:
        document = json.loads(text, object_pairs_hook=_object, parse_constant=_no_constant)
    except RecursionError:
        raise ValueError(f"{what} must be a flat JSON object; this text is nested too deep.") from None
    except ValueError as error:
        raise ValueError(f"{what} must be JSON text; {error}.") from None
    if not isinstance(document, dict):
        raise ValueError(f"{what} must be a JSON object; got {type(document).__name__}.")
    for name, wanted in zip(("format", "version"), kind, strict=True):
        if name not in document:
            raise ValueError(f"field `{name}` is missing; {what} has format {kind[0]!r}.")
        expect(name, document[name], wanted)  # before its fields: those of another kind say less
    fields = "format", "version", *(("loss",) if with_loss else ()), *fields
    known_fields(document, what, fields, more)
    if "increasing" in document and not isinstance(document["increasing"], bool):
        raise ValueError(f"field `increasing` must be true or false; got {shown(document['increasing'])}.")
    return document


def _check_density(text: str, what: str) -> None:
    """Refuse text that is made of little but names, arrays and objects: these take much more memory than numbers."""
    n_parts = text.count("[") + text.count("{") + text.count('"') // 2
    n_parts -= sum(text.count(f'"{word}"') for word in _INFINITE)
    if n_parts > 64 + len(text) // 8:
        raise ValueError(f"{what} must be arrays of numbers; this text has {n_parts} names, arrays and objects.")


def shown(given: object) -> str:
    """A value in a message; only its beginning, if it is long."""
    text = _SHORT.repr(given)
    return text if len(text) <= _LONGEST_SHOWN else text[:_LONGEST_SHOWN] + "..."


_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxlong = _SHORT.maxother = _LONGEST_SHOWN


def known_fields(given: dict[str, Any], what: str, fields: tuple[str, ...], more: tuple[str, ...] = ()) -> None:
    """Refuse what has other fields."""
    for name in fields:
        if name not in given:
            raise ValueError(f"field `{name}` is missing.")
    for name in given:
        if name not in (*fields, *more):
            raise ValueError(f"field `{name[:_LONGEST_SHOWN]}` is not known; {what} has {', '.join((*fields, *more))}.")


def expect(name: str, given: object, wanted: object) -> None:
    """Refuse what is not the only thing that may stand there."""
    if type(given) is not type(wanted) or given != wanted:
        raise ValueError(f"field `{name}` must be {wanted!r}; got {shown(given)}.")


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"it must not have {name} among its numbers")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise ValueError(f"field `{name[:_LONGEST_SHOWN]}` appears twice")
        found[name] = value
    return found


def plain_numbers(numbers: list[Any]) -> list[Any]:
    """Numbers as JSON has them."""
    return [number if math.isfinite(number) else str(number) for number in numbers]


def plain_loss(loss: Loss) -> dict[str, Any]:
    """The name and the parameters of a loss as JSON has them; functions are not saved."""
    if loss.name in _FUNCTIONS:
        return {"name": loss.name}
    return {"name": loss.name} | {
        name: value.tolist() if hasattr(value, "tolist") else value for name, value in loss.arguments().items()
    }


def loss_from(given: object, *, functions: bool = False) -> Loss:
    """The loss that was saved; one that was made of functions, which are not, if `functions` may be missed."""
    if not isinstance(given, dict) or "name" not in given:
        raise ValueError(f"field `loss` must be an object with a name; got {shown(given)}.")
    if functions and isinstance(given["name"], str) and given["name"] in _FUNCTIONS and len(given) == 1:
        return _FUNCTIONS[given["name"]](forgotten)
    kind = BY_NAME.get(given["name"]) if isinstance(given["name"], str) else None
    if kind is None:
        raise ValueError(f"field `loss` must name one of {', '.join(map(repr, BY_NAME))}; got {shown(given['name'])}.")
    arguments = {name: value for name, value in given.items() if name != "name"}
    try:
        return kind(**arguments)
    except (TypeError, ValueError) as error:
        raise ValueError(f"field `loss` must have the parameters of {given['name']!r}; {error}") from None


def numbers_of(name: str, given: object) -> NDArray[Any]:
    """The numbers of a field: "counts" are integers, others may be infinite."""
    if not isinstance(given, list):
        raise ValueError(f"field `{name}` must be an array of numbers; got {type(given).__name__}.")
    number, kinds, dtype = (_integer, {int}, np.int64) if name == "counts" else (_real, {int, float}, np.float64)
    with contextlib.suppress(OverflowError):
        if kinds.issuperset(map(type, given)):
            return np.array(given, dtype=dtype)  # all at once
    found = np.empty(len(given), dtype=dtype)
    for index, entry in enumerate(given):
        try:
            found[index] = number(entry)
        except (TypeError, OverflowError):
            bad = f"an integer of {entry.bit_length()} bits" if type(entry) is int else shown(entry)
            raise ValueError(f"field `{name}` must hold numbers; got {bad} at index {index}.") from None
    return found


def _integer(entry: object) -> int:
    if type(entry) is not int:
        raise TypeError
    return entry


def _real(entry: object) -> float:
    if isinstance(entry, str) and entry in _INFINITE:
        return _INFINITE[entry]
    if type(entry) not in (int, float):
        raise TypeError
    return float(entry)  # type: ignore[arg-type]
