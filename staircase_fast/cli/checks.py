"""What the command line is given: names of columns, and what the columns of a file hold.

Messages name the file, the column, and the row, counted from 0 over the whole file.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
from collections.abc import Iterator
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from staircase_fast.errors import InvalidInputError, refuse_missing
from staircase_fast.inputs import columns_arrow
from staircase_fast.inputs.columns import Column
from staircase_fast.losses import WITHOUT_DEFAULT, Loss, loss_class, loss_of
from staircase_fast.storage.files import TEMPORARY

_MOST_NAMES = 50
_PICTURES = ("png", "svg", "pdf")
_NOT_TEXT = re.compile(r"In CSV column #(\d+): .*invalid UTF8 data")
_CONVERSION = re.compile(r"In CSV column #(\d+): (?:Row #(\d+): )?CSV conversion error to (\w+): invalid value '(.*)'")


def position(file: str, names: list[str], wanted: str) -> int:
    """Where a column stands."""
    places = [place for place, name in enumerate(names) if name == wanted]
    if len(places) > 1:
        raise ValueError(f"{file}: column {wanted!r} stands there {len(places)} times.")
    if places:
        return places[0]
    shown = ", ".join(map(repr, names[:_MOST_NAMES])) or "none"
    more = len(names) - _MOST_NAMES
    if len(names) == 1 and (mark := re.search(r"[,;|\t]", names[0])):
        shown += f": say --delimiter {mark[0]!r} if that parts columns"
    raise ValueError(f"{file}: no column {wanted!r}; there are {shown}{f' and {more} more' if more > 0 else ''}.")


def free_name(file: str, names: list[str], wanted: str) -> None:
    """Refuse to add a column under a name that is taken."""
    if wanted in names:
        raise ValueError(f"{file}: column {wanted!r} is already there; give another --name, or --replace it.")


def no_format(path: str, known: tuple[str, ...]) -> NoReturn:
    """Refuse a file whose name does not tell what is in it."""
    raise ValueError(f"{path}: the name does not tell the format; say --format {', '.join(known)}.")


def no_text(path: str) -> NoReturn:
    """Refuse to print a model that is no text."""
    raise ValueError(f"a model of groups is not text; give --model a file; got {path!r}.")


def picture_format(path: str) -> str:
    """The format of a picture, by its extension."""
    found = os.path.splitext(path)[1].lower().lstrip(".")
    if found not in _PICTURES:
        raise ValueError(f"{path}: a picture must end in one of {', '.join(f'.{form}' for form in _PICTURES)}.")
    return found


def delimiter(text: str) -> str:
    """What stands between columns of text; a tab may be written as backslash t."""
    found = "\t" if text == r"\t" else text
    if len(found) != 1 or not found.isascii() or found in '"\r\n':
        raise ValueError(f"`delimiter` must be a single ASCII character; got {text!r}.")
    return found


def count(name: str, text: str) -> int:
    """How many."""
    if not text.strip().isdecimal() or int(text) < 1:
        raise ValueError(f"`{name}` must be an integer >= 1; got {text!r}.")
    return int(text)


def different_files(read: dict[str, str | None], written: dict[str, str | None]) -> None:
    """Refuse to write over what is read, to write two things to one place, and to read two from one pipe."""
    given = [*read.items(), *written.items()]
    for (name, path), (other_name, other_path) in itertools.combinations(given, 2):
        pipes = {name in written, other_name in written} == {True, False}  # standard input is not standard output
        same = path is not None and other_path is not None and os.path.realpath(path) == os.path.realpath(other_path)
        if same and not (path == "-" and pipes) and (path == "-" or other_name in written):
            raise ValueError(f"{name} and {other_name} must be different files; both are {path!r}.")


def no_header(file: str) -> NoReturn:
    """Refuse a text file without any line."""
    raise ValueError(f"{file}: the file is empty; the first line must name the columns.")


def odd_header(error: Exception) -> NoReturn:
    """Refuse a first line that is no line of a table."""
    raise ValueError(f"the first line must name the columns; {error}") from None


def no_rows(file: str) -> NoReturn:
    """Refuse a table with columns and nothing in them."""
    raise ValueError(f"{file}: there are no rows.")


def loss_from_text(text: str) -> Loss:
    """A loss by name, or as name:parameter."""
    name, colon, parameter = text.partition(":")
    kind = loss_class(name)
    if not colon:
        if kind in WITHOUT_DEFAULT:
            raise ValueError(f"`loss` must say its {kind.parameter}, as in {name}:1.5; got {name!r}.")
        return loss_of(name)
    if not kind.parameter:
        raise ValueError(f"`loss` {name!r} has no parameter; got {parameter!r}.")
    try:
        number = float(parameter)
    except ValueError:
        raise ValueError(f"`{kind.parameter}` of {name!r} must be a number; got {parameter!r}.") from None
    return kind(**{kind.parameter: number})


def score_from_text(text: str) -> Loss | str:
    """What scores forecasts: a loss, or "brier"."""
    return text if text == "brier" else loss_from_text(text)


def bounds_from_text(text: str) -> tuple[float | None, float | None]:
    """A pair "lo,hi", either of which may be missing."""
    try:
        lo, hi = (float(part) if part.strip() else None for part in text.split(","))
    except ValueError:
        raise ValueError(
            f"`bounds` must be two numbers LO,HI, or one with nothing beside the comma; got {text!r}."
        ) from None
    return lo, hi


@contextlib.contextmanager
def told_of(file: str, columns: dict[str, str], offset: int = 0, rows: Any = None) -> Iterator[None]:
    """What is refused in here is told by its file and columns; the first row is number `offset` of the file.

    If only some rows are looked at in here, `rows` tells which.
    """
    try:
        yield
    except (TypeError, ValueError) as error:
        if isinstance(error, InvalidInputError) and not error.argument and error.index is not None:
            error.index = offset + (error.index if rows is None else int(rows[error.index]))  # an unseen group
        text = _of_bytes(error) if isinstance(error, UnicodeDecodeError) else str(error)
        for argument, column in columns.items():
            text = text.replace(f"`{argument}`", f"column {column!r}")
        text = text.replace("`default=`", "--default")

        def at(found: re.Match[str]) -> str:
            row = int(found[1])
            return f"at index {offset + (row if rows is None else int(rows[row]))}"

        text = re.sub(r"at index (\d+)", at, text)
        raise ValueError(f"{file}: {text}") from None


@contextlib.contextmanager
def told_of_values() -> Iterator[None]:
    """Scores that are refused in here are the values of a model, not a column of the file."""
    try:
        yield
    except ValueError as error:
        raise ValueError(str(error).replace("`scores`", "values of the model")) from None


def _of_bytes(error: UnicodeDecodeError) -> str:
    return f"text must be UTF-8; got byte {error.object[error.start]:#x} at {error.start} of the first line."


@contextlib.contextmanager
def told_of_file(name: str) -> Iterator[None]:
    """What the system refuses in here is told by this name, unless another file of the user is to blame.

    So is what Arrow cannot make sense of in a file, for which it has errors of the same kind, without a number.
    """
    try:
        yield
    except OSError as error:
        if error.errno is None:
            raise ValueError(f"{name}: {error}") from None
        theirs = isinstance(error.filename, str) and not os.path.basename(error.filename).startswith(TEMPORARY)
        if theirs:
            raise
        raise OSError(error.errno, os.strerror(error.errno), name) from None


@contextlib.contextmanager
def told_by_arrow(file: str, names: list[str]) -> Iterator[None]:
    """What Arrow finds wrong with the text of a column is told as we tell it."""
    try:
        yield
    except ValueError as error:
        found = _CONVERSION.search(str(error))
        if bytes_in := _NOT_TEXT.search(str(error)):
            raise ValueError(f"{file}: column {names[int(bytes_in[1])]!r} must be text in UTF-8.") from None
        if found is None:
            text = re.sub(r"Row #(\d+)", lambda row: f"at index {int(row[1]) - 1}", str(error))
            raise ValueError(f"{file}: {text}") from None
        column, row, kind, value = found.groups()
        where = f" at index {int(row) - 1}" if row else ""
        raise ValueError(
            f"{file}: column {names[int(column)]!r} must hold {kind} as its first rows do; got {value!r}{where}."
        ) from None


def numbers(given: Any, column: str, offset: int = 0) -> Column:
    """The numbers of an Arrow column; text is read as numbers.  The first row is number `offset` of the file."""
    import pyarrow as pa
    from pyarrow import types

    given = _decoded(given)
    kind = given.type
    if given.null_count:
        row = int(np.argmax(columns_arrow.flags(given.is_null())))
        raise ValueError(f"column {column!r} must not have missing entries; got None at index {row + offset}.")
    if "string" in str(kind):
        given = _read_as_numbers(given, column, offset)
    elif types.is_null(kind):
        given = given.cast(pa.float64())
    elif not any(is_one(kind) for is_one in (types.is_boolean, types.is_integer, types.is_floating, types.is_decimal)):
        got = f"{kind}, {given[0]} at index {offset}" if len(given) else kind
        raise TypeError(f"column {column!r} must hold numbers; got {got}.")
    return columns_arrow.read(column, given)


def _decoded(given: Any) -> Any:
    """Entries, not their places in a dictionary; and text that Arrow can trim, which views are not."""
    import pyarrow as pa

    if pa.types.is_dictionary(given.type):
        given = pa.DictionaryArray.from_arrays(given.indices, _decoded(given.dictionary)).dictionary_decode()
    return given.cast(pa.large_string()) if str(given.type) == "string_view" else given


def present(given: Any) -> NDArray[np.bool_]:
    """Which rows of an Arrow column have an entry: neither null nor NaN, nor text that says as much."""
    from pyarrow import compute, csv

    given = _decoded(given)
    absent = compute.is_null(given, nan_is_null=True)
    if "string" in str(given.type):
        words = "|".join(map(re.escape, csv.ConvertOptions().null_values))  # what Arrow takes for it in text
        text = compute.utf8_trim_whitespace(given)
        absent = compute.or_kleene(absent, compute.match_substring_regex(text, f"^({words}|(?i:nan))?$"))
    return ~columns_arrow.flags(absent)


def _read_as_numbers(given: Any, column: str, offset: int) -> Any:
    import pyarrow as pa
    from pyarrow import compute

    for kind in (pa.float64(), pa.bool_()):
        for text in (given, compute.utf8_trim_whitespace(given)):
            with contextlib.suppress(pa.ArrowInvalid):
                return text.cast(kind)
    row = _first_refused(text, pa.float64())
    value = given[row].as_py()
    if not value.strip():
        raise ValueError(f"column {column!r} must not have missing entries; got {value!r} at index {row + offset}.")
    raise TypeError(f"column {column!r} must hold numbers; got {value!r} at index {row + offset}.")


def _first_refused(text: Any, kind: Any) -> int:
    """The first entry that cannot be of this kind, by halving: Arrow does not tell."""
    import pyarrow as pa

    low, high = 0, len(text)
    while high - low > 1:
        middle = (low + high) // 2
        try:
            text[low:middle].cast(kind)
            low = middle
        except pa.ArrowInvalid:
            high = middle
    return low


def group_keys(given: Any, kind: type) -> Any:
    """A column of groups as keys of the kind that a model has."""
    import pyarrow as pa

    if given.null_count:
        refuse_missing("groups", "None", int(np.argmax(columns_arrow.flags(given.is_null()))))
    own = given.type.value_type if pa.types.is_dictionary(given.type) else given.type
    is_text = "string" in str(own)
    if is_text == (kind is str):
        return given
    if own != given.type:
        given = given.cast(own)
    wanted = {str: pa.string(), int: pa.int64(), bool: pa.bool_()}[kind]
    try:
        return given.cast(wanted)
    except pa.ArrowInvalid:
        row = _first_refused(given, wanted)
        raise ValueError(
            f"`groups` must be groups of the model, which are of type {kind.__name__}; got {given[row].as_py()!r} at "
            f"index {row}."
        ) from None


def keys_of_text(given: Any) -> Any:
    """The groups of a text file: integers if all are written as integers are, else text."""
    import pyarrow as pa

    try:
        integers = given.cast(pa.int64())
    except pa.ArrowInvalid:
        return given
    return integers if integers.cast(given.type).equals(given) else given


def streaming_suits(group: str | None, direction: str) -> None:
    """Refuse what a fit of sums cannot do."""
    if group is not None:
        raise ValueError(f"--streaming fits all rows together; got --group {group}.")
    if direction == "auto":
        raise ValueError("--streaming must be told a direction; got --direction auto.")


def groups_fit_model(group: str | None, *, is_map: bool) -> None:
    """Refuse a model of groups without a column of them, and the opposite."""
    if is_map and group is None:
        raise ValueError("the model has a staircase for each group; name the column of groups by --group.")
    if group is not None and not is_map:
        raise ValueError(f"the model has no groups; got --group {group}.")
