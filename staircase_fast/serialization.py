"""Staircases as JSON text and files: versioned, exact to the last bit, and checked on the way in.

    {"format": "staircase_fast", "version": 1, "loss": {"name": "squared_error"}, "increasing": true,
     "left": [..], "right": [..], "values": [..], "weights": [..], "counts": [..]}

A loss has its parameters beside its name; where values are not exact, there are also "lower" and "upper".  What is
infinite is the string "inf" or "-inf", for JSON has no word for it.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
from collections.abc import Callable
from typing import IO, TYPE_CHECKING, Any, NoReturn

from staircase_fast.losses import BY_NAME, Custom, Loss, UpdateRule, forgotten

if TYPE_CHECKING:
    from staircase_fast.staircase import Staircase

FORMAT = "staircase_fast"
VERSION = 1
MAX_BYTES = 1 << 31  # twenty million steps; what is larger is not one of ours

_INFINITE = {"inf": math.inf, "-inf": -math.inf}
_ARRAYS = ("left", "right", "values", "weights", "counts")
_FIELDS = ("format", "version", "loss", "increasing", *_ARRAYS)
_MORE_ARRAYS = ("lower", "upper")
_FUNCTIONS: dict[str, type[Custom | UpdateRule]] = {"custom": Custom, "update_rule": UpdateRule}


def to_json(stairs: Staircase) -> str:
    """`stairs` as JSON text."""
    document: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "loss": loss_document(stairs.loss),
        "increasing": stairs.increasing,
    }
    for name in (*_ARRAYS, *_MORE_ARRAYS):
        column = getattr(stairs, name)
        if name not in _MORE_ARRAYS or column is not stairs.values:
            numbers = column.tolist()
            document[name] = [number if math.isfinite(number) else str(number) for number in numbers]
    return json.dumps(document, allow_nan=False)


def fields_of(text: str) -> dict[str, Any]:
    """The arguments of `Staircase` that `text` holds; the constructor judges lengths, order and finiteness."""
    if not isinstance(text, str):
        raise TypeError(f"a staircase must be JSON text of type str; got {type(text).__name__}.")
    if len(text) > MAX_BYTES:
        raise ValueError(f"a staircase must be at most {MAX_BYTES} characters of JSON; got {len(text)}.")
    document = object_of(text)
    for name in _FIELDS:
        if name not in document:
            raise ValueError(f"field `{name}` is missing.")
    for name in document:
        if name not in (*_FIELDS, *_MORE_ARRAYS):
            raise ValueError(f"field `{name}` is not known; a staircase has {', '.join((*_FIELDS, *_MORE_ARRAYS))}.")
    expect("format", document["format"], FORMAT)
    expect("version", document["version"], VERSION)
    if not isinstance(document["increasing"], bool):
        raise ValueError(f"field `increasing` must be true or false; got {document['increasing']!r}.")
    fields = {name: _numbers(name, document[name]) for name in (*_ARRAYS, *_MORE_ARRAYS) if name in document}
    return {**fields, "loss": loss_in(document["loss"]), "increasing": document["increasing"]}


def object_of(text: str) -> dict[str, Any]:
    """A JSON object, of which no field stands there twice."""
    try:
        document = json.loads(text, object_pairs_hook=_object, parse_constant=_no_constant)
    except RecursionError:
        raise ValueError("a staircase must be a flat JSON object; this text is nested too deep.") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"a staircase must be JSON text; {error}.") from None
    if not isinstance(document, dict):
        raise ValueError(f"a staircase must be a JSON object; got {type(document).__name__}.")
    return document


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write a file of text whole."""
    write_whole(path, lambda file: file.write(text.encode()))


def write_whole(path: str | os.PathLike[str], write: Callable[[IO[bytes]], object]) -> None:
    """Let a function write a file: through a temporary one beside it, which then takes its name."""
    target = os.path.realpath(path)
    import tempfile  # here, because it is slow to import

    handle, temporary = tempfile.mkstemp(dir=os.path.dirname(target), prefix=".staircase-", suffix=".tmp")
    try:
        with open(handle, "wb") as file:
            write(file)
        os.chmod(temporary, _mode_for(target))
        os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def read_text(path: str | os.PathLike[str]) -> str:
    """Read a file of a size that can be ours."""
    with open(path, "rb") as file:
        content = file.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise ValueError(f"a staircase must be at most {MAX_BYTES} bytes of JSON; {os.fspath(path)!r} is larger.")
    return content.decode("utf-8")  # its error is a ValueError that names the byte


def _mode_for(target: str) -> int:
    """The permissions a plain open() would give or keep."""
    if os.path.exists(target):
        return os.stat(target).st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise ValueError(f"field `{name}` stands there twice.")
        found[name] = value
    return found


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"a staircase must not have {name} among its numbers.")


def expect(name: str, given: object, wanted: object) -> None:
    """Refuse a field that is not what it must be."""
    if type(given) is not type(wanted) or given != wanted:
        raise ValueError(f"field `{name}` must be {wanted!r}; got {given!r}.")


def loss_document(loss: Loss) -> dict[str, Any]:
    """The name and the parameters of a loss as JSON has them; functions are not saved."""
    if loss.name in _FUNCTIONS:
        return {"name": loss.name}
    arguments = loss.arguments().items()
    return {"name": loss.name} | {k: v.tolist() if hasattr(v, "tolist") else v for k, v in arguments}


def loss_in(given: object) -> Loss:
    """The loss of which `loss_document` made this."""
    if not isinstance(given, dict) or "name" not in given:
        raise ValueError(f"field `loss` must be an object with a name; got {given!r}.")
    if isinstance(given["name"], str) and given["name"] in _FUNCTIONS and len(given) == 1:
        return _FUNCTIONS[given["name"]](forgotten)
    kind = BY_NAME.get(given["name"]) if isinstance(given["name"], str) else None
    if kind is None:
        raise ValueError(f"field `loss` must name one of {', '.join(map(repr, BY_NAME))}; got {given['name']!r}.")
    arguments = {name: value for name, value in given.items() if name != "name"}
    try:
        return kind(**arguments)
    except (TypeError, ValueError) as error:
        raise ValueError(f"field `loss` must have the parameters of {given['name']!r}; {error}") from None


def _numbers(name: str, given: object) -> list[Any]:
    if not isinstance(given, list):
        raise ValueError(f"field `{name}` must be an array of numbers; got {type(given).__name__}.")
    number = {"counts": _integer, "weights": _real}.get(name, _extended)
    numbers = []
    for index, entry in enumerate(given):
        try:
            numbers.append(number(entry))
        except (TypeError, OverflowError):
            shown = f"an integer of {entry.bit_length()} bits" if isinstance(entry, int) else repr(entry)
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
