"""The exception for invalid input, and short ways to raise it.

An `InvalidInputError` carries fields and renders its message from them.  Code that knows more about the input than the
function that raised it, such as the command line, catches the exception, sets further fields and raises it again.
Messages are never parsed.
"""

from __future__ import annotations

import operator
import re
import reprlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from staircase_fast.typing import public_class

NOT_GIVEN: Any = type("NotGiven", (), {"__repr__": lambda _: "NOT_GIVEN", "__reduce__": lambda _: "NOT_GIVEN"})()
RELEASED = False  # whether this package is on the package index
_MAX_SHOWN = 80  # characters of a value in a message
DROP_ROWS = "Drop these rows, or fill them."
_SCALARS = (np.number, np.bool_, np.str_, np.bytes_)
_SHORT = reprlib.Repr()  # reads only as many entries as can be shown
for _limit in ("level", "tuple", "list", "array", "dict", "set", "frozenset", "deque", "string", "long", "other"):
    setattr(_SHORT, f"max{_limit}", 4 * _MAX_SHOWN)


@public_class("staircase_fast")
class InvalidInputError(ValueError):
    """Input that does not meet a requirement.

    Parameters
    ----------
    argument : str
        Name of the argument; empty if the error is not about an argument.
    requirement : str
        What must hold, as the rest of a sentence that begins with the argument: "must be >= 0".
    value : object, optional
        The invalid value.
    index : int, optional
        Position of the value in the argument.
    found : str, optional
        What was found instead, in words; replaces "got ..." in the message.
    hint : str, optional
        A sentence that says how to fix it.
    other : str, optional
        Name of a second argument that the requirement is about.
    row, column, file, group : optional
        Where the value came from: the row number in a table, the name of its column, the file, the group.
        An error about a group as a whole has no argument: "Group 'a' (row 3) was not fitted".

    Attributes
    ----------
    argument, requirement, value, index, found, hint, other, row, column, file, group
        The parameters.  All can be changed; the message follows.

    Examples
    --------
    >>> import staircase_fast as sf
    >>> try:
    ...     sf.fit([1, 2], [0, 1], sample_weight=[1, -1.5])
    ... except sf.InvalidInputError as error:
    ...     print(error)
    ...     print(error.argument, error.value, error.index)
    `sample_weight` must be >= 0; got -1.5 at index 1.
    sample_weight -1.5 1
    """

    def __init__(
        self,
        argument: str,
        requirement: str,
        *,
        value: object = NOT_GIVEN,
        index: int | None = None,
        found: str = "",
        hint: str = "",
        other: str = "",
        row: int | None = None,
        column: str | None = None,
        file: str | None = None,
        group: object = NOT_GIVEN,
    ) -> None:
        super().__init__(argument, requirement)
        self.argument, self.requirement, self.other = argument, requirement, other
        self.value, self.index, self.found, self.hint = value, index, found, hint
        self.row, self.column, self.file, self.group = row, column, file, group

    def __str__(self) -> str:
        subject = " and ".join(f"`{name}`" for name in (self.argument, self.other) if name)
        if self.column is not None:
            subject = f"column {self.column!r}"
        row = self.index if self.row is None else self.row
        place = "" if row is None else f" at index {row}" if self.row is None else f" in row {row}"
        if self.group is not NOT_GIVEN and not subject and row is not None:
            subject, place = f"Group {shown(self.group)} (row {row})", ""
        elif self.group is not NOT_GIVEN:
            place += f" (group {shown(self.group)})"
        found = self.found or ("" if self.value is NOT_GIVEN else f"got {shown(self.value)}")
        text = f"{subject} {self.requirement}".strip() + (f"; {found}" if found else "") + f"{place}."
        file = "" if self.file is None else f"{self.file}: "
        return f"{file}{text} {self.hint}" if self.hint else file + text


@public_class("staircase_fast")
class InvalidTypeError(InvalidInputError, TypeError):
    """Input of a wrong type.  It is also a TypeError."""


def shown(value: object) -> str:
    """A value as it appears in a message: Python's representation, shortened if it is long."""
    try:
        text = _SHORT.repr(value.item() if isinstance(value, _SCALARS) and value.dtype.kind != "m" else value)
    except Exception:  # noqa: BLE001  (an object of any class, or an integer of more than 4300 digits)
        return f"an object of type {type(value).__name__}"
    text = re.sub(r"\s*\n\s*", " ", text)
    return text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}..."


def refuse_entries(
    argument: str,
    requirement: str,
    column: NDArray[Any],
    invalid: NDArray[np.bool_],
    offset: int = 0,
    *,
    hint: Callable[[], str] = str,
) -> None:
    """Raise an error for the first invalid entry of a column or a scalar array; none if all are valid.

    `hint` is called only for an error.
    """
    if invalid.any():
        place = int(np.argmax(invalid))
        value, index = column.reshape(-1)[place].item(), place + offset if column.ndim else None
        raise InvalidInputError(argument, requirement, value=value, index=index, hint=hint())


def refuse_cells(
    argument: str, requirement: str, table: NDArray[Any], invalid: NDArray[np.bool_], *, hint: Callable[[], str] = str
) -> None:
    """The same for a table; the error names the column."""
    if invalid.any():
        place = int(np.argmax(invalid)) % table.shape[1]  # in the first row that has an invalid entry
        refuse_entries(f"{argument}[:, {place}]", requirement, table[:, place], invalid[:, place], hint=hint)


def refuse_missing(argument: str, entry: str, index: int) -> NoReturn:
    """Raise an error for a missing entry; `entry` says how the container represents it."""
    found = f"got {entry}"
    raise InvalidInputError(argument, "must not have missing entries", found=found, index=index, hint=DROP_ROWS)


def missing_extra(purpose: str, package: str, extra: str = "") -> ImportError:
    """The error for an optional library that is not installed; `extra` is the extra of this package that needs it."""
    way = f"pip install 'staircase_fast[{extra}]'" if RELEASED else f"pip install '.[{extra}]' in a checkout"
    return ImportError(f"{purpose} needs {package}, which is not installed{f': {way}' if extra else ''}.")


def check_count(argument: str, number: object, least: int, others: str = " or None") -> int:
    """An integer of at least this; the caller treats the `others` that are allowed."""
    requirement = f"must be an integer >= {least}{others}"
    try:
        found = operator.index(number)  # type: ignore[arg-type]
    except TypeError:
        raise InvalidTypeError(argument, requirement, value=number) from None
    if found < least or (least and isinstance(number, bool)):  # one thread is 1, not True
        raise InvalidInputError(argument, requirement, value=number)
    return found


@contextmanager
def arguments_named(**names: str) -> Iterator[None]:
    """Replace argument names in the errors that are raised inside, and in their hints."""
    try:
        yield
    except InvalidInputError as error:
        error.argument, error.other = (names.get(name, name) for name in (error.argument, error.other))
        error.hint = re.sub(r"\w+", lambda word: names.get(word[0], word[0]), error.hint)
        raise
