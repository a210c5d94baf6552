"""JSON documents: a format name and a version, a loss, and arrays of numbers.

A loss is an object with its name and its parameters.  Infinite numbers are the strings "inf" and "-inf".
"""

from __future__ import annotations

import contextlib
import json
import math
import os
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, Self

import numpy as np
from numpy.typing import NDArray

from staircase_fast.errors import InvalidInputError, InvalidTypeError
from staircase_fast.errors import shown as shown  # noqa: PLC0414  (for the rooms that describe fields)
from staircase_fast.inputs.options import listed
from staircase_fast.losses import BY_NAME, Custom, Loss, UpdateRule
from staircase_fast.losses.custom import forgotten
from staircase_fast.storage import files

_INFINITE = {"inf": math.inf, "-inf": -math.inf}
_FUNCTIONS: dict[str, type[Custom | UpdateRule]] = {"custom": Custom, "update_rule": UpdateRule}
_UPGRADE = "upgrade the package to read it."
_NEWER = f"A newer version of staircase_fast wrote this; {_UPGRADE}"
_PERHAPS_NEWER = f"If a newer version of staircase_fast wrote this, {_UPGRADE}"
_INTEGERS = ("counts", "offsets", "rows")  # fields
_MAX_NAME = 80  # characters of a field name in a message


class Saved:
    """Base of classes with `save` and `load`: they define `to_json` and `from_json`, or `_write` and `_read`."""

    __slots__ = ()

    _WHAT: ClassVar[str]  # names the content of a JSON file in messages

    if TYPE_CHECKING:

        def to_json(self) -> str: ...
        @classmethod
        def from_json(cls, text: str) -> Self: ...

    def _write(self, path: str | os.PathLike[str]) -> None:
        text = self.to_json().encode()
        with files.replacing(path) as file:
            file.write(text)

    @classmethod
    def _read(cls, path: str | os.PathLike[str]) -> Self:
        return cls.from_json(files.read_text(path, cls._WHAT))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write to a file atomically: on an error, an existing file stays as it is.

        Parameters
        ----------
        path : str or path-like
            The file to write.

        Examples
        --------
        >>> import tempfile
        >>> from pathlib import Path
        >>> import staircase_fast as sf
        >>> stairs = sf.fit([1, 2, 3], [1, 3, 2])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     stairs.save(Path(folder, "stairs.json"))
        ...     sf.Staircase.load(Path(folder, "stairs.json")) == stairs
        True
        """
        self._write(path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a file that `save` wrote.  All fields are checked; nothing is executed.

        Parameters
        ----------
        path : str or path-like
            The file to read.

        Returns
        -------
        object
            An object equal to the one that was saved.

        Examples
        --------
        Missing or corrupted files raise an error:

        >>> import staircase_fast as sf
        >>> sf.Staircase.load("no such file")
        Traceback (most recent call last):
            ...
        FileNotFoundError: [Errno 2] No such file or directory: 'no such file'
        """
        with files.named(path):
            return cls._read(path)


def document_of(
    text: str,
    what: str,
    kind: tuple[str, int],
    fields: tuple[str, ...],
    more: tuple[str, ...] = (),
    *,
    with_loss: bool = True,
    flag: str = "increasing",
) -> dict[str, Any]:
    """Parse a JSON object of this format and version; it must have `fields` and may have `more`.

    `flag` names the field that must be true or false, if there is one.
    """
    if not isinstance(text, str):
        raise InvalidTypeError("", f"{what} must be JSON text of type str", found=f"got {type(text).__name__}")
    if len(text) > files.MAX_BYTES:
        found = f"got {len(text)}"
        raise InvalidInputError("", f"{what} must be at most {files.MAX_BYTES} characters of JSON", found=found)
    _check_density(text, what)
    try:
        document = json.loads(text, object_pairs_hook=_object, parse_constant=_refuse_constant)
    except RecursionError:
        found = "this text is nested too deep"
        raise InvalidInputError("", f"{what} must be a flat JSON object", found=found) from None
    except ValueError as error:
        hint = "" if not text or "{" in text or "\n" in text else files.NOT_THE_NAME
        raise InvalidInputError(
            "", f"{what} must be JSON text", found=str(error).removesuffix("."), hint=hint
        ) from None
    if not isinstance(document, dict):
        raise InvalidInputError("", f"{what} must be a JSON object", found=f"got {type(document).__name__}")
    for name, wanted in zip(("format", "version"), kind, strict=True):
        if name not in document:
            refuse_field(name, "is missing", found=f"{what} has format {kind[0]!r}")
        expect(name, document[name], wanted)
    known_fields(document, what, ("format", "version", *(["loss"] if with_loss else []), *fields), more)
    if flag in document and not isinstance(document[flag], bool):
        refuse_field(flag, "must be true or false", value=document[flag])
    return document


def _check_density(text: str, what: str) -> None:
    """Limit the number of names, arrays and objects: they need much more memory than numbers."""
    n_parts = text.count("[") + text.count("{") + text.count('"') // 2
    n_parts -= sum(text.count(f'"{word}"') for word in _INFINITE)
    if n_parts > 64 + len(text) // 8:
        found = f"this text has {n_parts} names, arrays and objects"
        raise InvalidInputError("", f"{what} must be arrays of numbers", found=found)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"it must not have {name} among its numbers")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise ValueError(f"field `{name[:_MAX_NAME]}` appears twice")
        found[name] = value
    return found


def refuse_field(name: str, requirement: str, **details: Any) -> NoReturn:
    """Raise an error about a field; `details` are further arguments of the error."""
    raise InvalidInputError("", f"field `{name[:_MAX_NAME]}` {requirement}", **details) from None


def known_fields(given: dict[str, Any], what: str, fields: tuple[str, ...], more: tuple[str, ...] = ()) -> None:
    """Check that `given` has all `fields` and no others, except those in `more`."""
    for name in fields:
        if name not in given:
            refuse_field(name, "is missing")
    for name in given:
        if name not in (*fields, *more):
            refuse_field(name, "is not known", found=f"{what} has {', '.join((*fields, *more))}", hint=_PERHAPS_NEWER)


def expect(name: str, given: object, wanted: Any) -> None:
    """Check that a field has the only allowed value."""
    if type(given) is not type(wanted) or given != wanted:
        hint = ""
        if name == "version" and type(given) is int and given > wanted:
            hint = _NEWER
        elif name == "format" and str(given).startswith("staircase_fast"):
            hint = "Another class of staircase_fast wrote this; read it with that class."
        refuse_field(name, f"must be {wanted!r}", value=given, hint=hint)


def plain_numbers(numbers: list[Any]) -> list[Any]:
    """Numbers as JSON writes them."""
    return [number if math.isfinite(number) else str(number) for number in numbers]


def plain_loss(loss: Loss) -> dict[str, Any]:
    """The name and the parameters of a loss as JSON writes them; functions are not saved."""
    if loss.name in _FUNCTIONS:
        return {"name": loss.name}
    return {"name": loss.name} | {
        name: value.tolist() if hasattr(value, "tolist") else value for name, value in loss.arguments().items()
    }


def loss_from(given: object, *, functions: bool = False) -> Loss:
    """The saved loss.  `functions`: a loss made of functions is allowed, without the functions, which are not saved."""
    if not isinstance(given, dict) or "name" not in given:
        refuse_field("loss", "must be an object with a name", value=given)
    name, arguments = given["name"], {key: value for key, value in given.items() if key != "name"}
    if functions and isinstance(name, str) and name in _FUNCTIONS and not arguments:
        return _FUNCTIONS[name](forgotten)
    if not isinstance(name, str) or name not in BY_NAME:
        refuse_field("loss", f"must name one of {listed(list(BY_NAME))}", value=name, hint=_PERHAPS_NEWER)
    try:
        return BY_NAME[name](**arguments)
    except (TypeError, ValueError) as error:
        refuse_field("loss", f"must have the parameters of {name!r}", found=str(error).removesuffix("."))


def numbers_of(name: str, given: object) -> NDArray[Any]:
    """The numbers of a field: some are integers, others may be infinite."""
    if not isinstance(given, list):
        refuse_field(name, "must be an array of numbers", found=f"got {type(given).__name__}")
    kinds, dtype = ({int}, np.int64) if name in _INTEGERS else ({int, float}, np.float64)
    with contextlib.suppress(OverflowError):
        if kinds.issuperset(map(type, given)):
            return np.array(given, dtype=dtype)  # the usual case, and the fastest
    numbers = np.empty(len(given), dtype=dtype)
    for index, entry in enumerate(given):
        number = _INFINITE.get(entry, entry) if isinstance(entry, str) and float in kinds else entry
        try:
            if type(number) not in kinds:
                raise TypeError
            numbers[index] = number
        except (TypeError, OverflowError):
            found = f"got an integer of {entry.bit_length()} bits" if type(entry) is int else f"got {shown(entry)}"
            refuse_field(name, "must hold numbers", found=found, index=index)
    return numbers
