"""What JSON documents have in common: a format and a version, losses, and numbers that may be infinite.

A loss has its parameters beside its name.  What is infinite is the string "inf" or "-inf", for JSON has no word for it.
"""

from __future__ import annotations

import json
import math
from typing import Any, NoReturn

from staircase_fast import files
from staircase_fast.losses import BY_NAME, Custom, Loss, UpdateRule, forgotten

_INFINITE = {"inf": math.inf, "-inf": -math.inf}
_FUNCTIONS: dict[str, type[Custom | UpdateRule]] = {"custom": Custom, "update_rule": UpdateRule}


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

    def no_constant(name: str) -> NoReturn:
        raise ValueError(f"{what} must not have {name} among its numbers.")

    if not isinstance(text, str):
        raise TypeError(f"{what} must be JSON text of type str; got {type(text).__name__}.")
    if len(text) > files.MAX_BYTES:
        raise ValueError(f"{what} must be at most {files.MAX_BYTES} characters of JSON; got {len(text)}.")
    try:
        document = json.loads(text, object_pairs_hook=_object, parse_constant=no_constant)
    except RecursionError:
        raise ValueError(f"{what} must be a flat JSON object; this text is nested too deep.") from None
    except json.JSONDecodeError as error:
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
        raise ValueError(f"field `increasing` must be true or false; got {document['increasing']!r}.")
    return document


def known_fields(given: dict[str, Any], what: str, fields: tuple[str, ...], more: tuple[str, ...] = ()) -> None:
    """Refuse what has other fields."""
    for name in fields:
        if name not in given:
            raise ValueError(f"field `{name}` is missing.")
    for name in given:
        if name not in (*fields, *more):
            raise ValueError(f"field `{name}` is not known; {what} has {', '.join((*fields, *more))}.")


def expect(name: str, given: object, wanted: object) -> None:
    """Refuse what is not the only thing that may stand there."""
    if type(given) is not type(wanted) or given != wanted:
        raise ValueError(f"field `{name}` must be {wanted!r}; got {given!r}.")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise ValueError(f"field `{name}` stands there twice.")
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
        raise ValueError(f"field `loss` must be an object with a name; got {given!r}.")
    if functions and isinstance(given["name"], str) and given["name"] in _FUNCTIONS and len(given) == 1:
        return _FUNCTIONS[given["name"]](forgotten)
    kind = BY_NAME.get(given["name"]) if isinstance(given["name"], str) else None
    if kind is None:
        raise ValueError(f"field `loss` must name one of {', '.join(map(repr, BY_NAME))}; got {given['name']!r}.")
    arguments = {name: value for name, value in given.items() if name != "name"}
    try:
        return kind(**arguments)
    except (TypeError, ValueError) as error:
        raise ValueError(f"field `loss` must have the parameters of {given['name']!r}; {error}") from None


def numbers_of(name: str, given: object) -> list[Any]:
    """The numbers of a field: "counts" are integers, "weights" finite, others may be infinite."""
    if not isinstance(given, list):
        raise ValueError(f"field `{name}` must be an array of numbers; got {type(given).__name__}.")
    number = {"counts": _integer, "weights": _real}.get(name, _extended)
    numbers = []
    for index, entry in enumerate(given):
        try:
            numbers.append(number(entry))
        except (TypeError, OverflowError):
            shown = f"an integer of {entry.bit_length()} bits" if type(entry) is int else repr(entry)
            raise ValueError(f"field `{name}` must hold numbers; got {shown} at index {index}.") from None
    return numbers


def _integer(entry: object) -> int:
    if type(entry) is not int:
        raise TypeError
    if entry.bit_length() > 63:
        raise OverflowError
    return entry


def _real(entry: object) -> float:
    if type(entry) not in (int, float):
        raise TypeError
    return float(entry)  # type: ignore[arg-type]


def _extended(entry: object) -> float:
    return _INFINITE[entry] if isinstance(entry, str) and entry in _INFINITE else _real(entry)
