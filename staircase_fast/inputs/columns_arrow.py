"""Arrow's arrays, of whatever library: anything with `__arrow_c_array__` or `__arrow_c_stream__`.

Numbers in one chunk are a view of its memory, for which no library is needed.  Bits become bytes; several chunks,
dictionaries and runs become one array.
"""

from __future__ import annotations

import errno
import re
import sys
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from staircase_fast.errors import refuse_missing
from staircase_fast.inputs import _arrow
from staircase_fast.inputs.columns import Column, reading, side_by_side

# Arrow's letters for numbers, and numpy's
_NUMBERS = {"c": "i1", "C": "u1", "s": "i2", "S": "u2", "i": "i4", "I": "u4", "l": "i8", "L": "u8"}
_NUMBERS |= {"e": "f2", "f": "f4", "g": "f8"}
_INTEGERS = frozenset("cCsSiIlL")
_NULLS, _BITS, _RUNS, _TABLE = "n", "b", "+r", "+s"
_DECIMALS = re.compile(r"d:\d+,(-?\d{1,3})(?:,(32|64|128|256))?")  # precision, scale, bits
_WORDS = {"u": "strings", "U": "strings", "v": "strings or bytes", "z": "bytes", "Z": "bytes", "w": "bytes"}
_WORDS |= {"t": "times"}
_READABLE = "Arrow data that can be read"  # in messages


class _Rows(NamedTuple):
    """Rows of a chunk, or of a part of one: n entries of its buffers, from one on."""

    kind: _arrow.Kind
    chunk: _arrow.Chunk
    start: int
    n: int


def read(name: str, given: Any) -> Column:
    """The numbers of an array, of a chunked array, or of a whole table."""
    kind, chunks = _exported(name, given)
    try:
        return _read(name, given, kind, chunks)
    except OSError as error:  # parts that do not fit each other
        raise ValueError(f"`{name}` must be {_READABLE}; {error.strerror}") from error


def _read(name: str, given: Any, kind: _arrow.Kind, chunks: list[_arrow.Chunk]) -> Column:
    rows = [_Rows(kind, chunk, chunk.offset, chunk.length) for chunk in chunks]
    if kind.format != _TABLE:
        return _column_of(name, kind, rows, given)
    _none_null(name, rows)
    columns = [
        _column_of(
            f"{name}[:, {place}]",
            own,
            [_Rows(own, part, part.offset + start, n) for _, chunk, start, n in rows for part in [chunk.child(place)]],
        )
        for place, own in enumerate(kind.children)
    ]
    return side_by_side(name, columns, sum(part.n for part in rows))


def flags(given: Any) -> NDArray[np.bool_]:
    """An array of truth values, as pyarrow answers questions: its own way to numpy would import pandas for it."""
    return read("flags", given).view(np.bool_)


def _exported(name: str, given: Any) -> tuple[_arrow.Kind, list[_arrow.Chunk]]:
    with reading(name, _READABLE):
        if hasattr(type(given), "__arrow_c_array__"):
            kind, chunk = _arrow.from_array(given.__arrow_c_array__())
            return kind, [chunk]
        stream = _arrow.Stream(given.__arrow_c_stream__())
        return stream.kind, list(stream)


def _column_of(name: str, kind: _arrow.Kind, rows: list[_Rows], given: Any = None) -> Column:
    """The numbers of chunks; `given` is what they came in, if that was a column."""
    values = _values_kind(kind)
    if values not in _NUMBERS and values not in (_NULLS, _BITS) and not _DECIMALS.fullmatch(values):
        _no_numbers(name, values, rows, given)
    _none_null(name, rows)
    parts = [_numbers(part) for part in rows if part.n]
    if len(parts) == 1:
        return parts[0]
    return np.concatenate(parts) if parts else np.empty(0)


def _values_kind(kind: _arrow.Kind) -> str:
    """The format of what a dictionary or runs stand for, or of rows as they are."""
    if kind.format == _RUNS:
        _check(
            len(kind.children) == 2 and kind.children[0].format in _INTEGERS, "runs must have integer ends and values"
        )
        return _values_kind(kind.children[1])
    if kind.dictionary is None:
        return kind.format
    _check(kind.format in _INTEGERS, "places in a dictionary must be integers")
    return kind.dictionary.format


def _no_numbers(name: str, values: str, rows: list[_Rows], given: Any) -> NoReturn:
    """Refuse strings and the like: by the first entry, where there is one, and else by what they are."""
    _none_null(name, rows)
    words = _WORDS.get(values[:1])
    if words and any(part.n for part in rows) and hasattr(type(given), "__getitem__"):
        with reading(name, "real numbers"):
            first = given[0]
            first = first.as_py() if hasattr(first, "as_py") else first
        raise TypeError(f"`{name}` must be real numbers; got {first!r} at index 0.")
    raise TypeError(f"`{name}` must be real numbers; got {words or 'Arrow data of type ' + values}.")


def _none_null(name: str, rows: list[_Rows]) -> None:
    before = 0
    for part in rows:
        valid = _valid(part)
        if valid is not None and not valid.all():
            refuse_missing(name, "null", before + int(np.argmin(valid)))
        before += part.n


def _valid(rows: _Rows) -> NDArray[np.uint8] | None:
    """Which rows are not null; None if that is all of them."""
    if rows.kind.format == _RUNS:
        lengths, values = _runs(rows)
        valid = _valid(values)
        return None if valid is None else np.repeat(valid, lengths)
    if rows.kind.format == _NULLS:
        return np.zeros(rows.n, dtype=np.uint8)
    if rows.chunk.null_count != 0:
        bits = rows.chunk.buffer(0, (rows.start + rows.n + 7) // 8)
        valid = None if bits is None else _unpacked(bits, rows)
        if valid is not None and not valid.all():
            return valid
    entries = None if rows.kind.dictionary is None else _valid(_dictionary(rows))
    return None if entries is None else entries[_places(rows)]


def _numbers(rows: _Rows) -> Column:
    """The numbers of rows, none of which is null."""
    kind = rows.kind.format
    if rows.kind.dictionary is not None:
        return _numbers(_dictionary(rows))[_places(rows)]
    if kind == _RUNS:
        lengths, values = _runs(rows)
        return np.repeat(_numbers(values), lengths)
    if kind == _BITS:
        return _unpacked(_buffer(rows, (rows.start + rows.n + 7) // 8), rows)
    decimals = _DECIMALS.fullmatch(kind)
    if decimals:
        return _decimals(rows, int(decimals[1]), int(decimals[2] or 128))
    return _plain(rows)


def _check(right: bool, why: str) -> None:
    """Refuse data whose parts do not fit each other."""
    if not right:
        raise OSError(errno.EINVAL, why)


def _buffer(rows: _Rows, size: int) -> memoryview:
    """The first bytes of what holds entries."""
    memory = rows.chunk.buffer(1, size)
    if memory is None:
        raise OSError(errno.EINVAL, "it has no memory for its entries")
    return memory


def _places(rows: _Rows) -> Column:
    """Of rows in their dictionary."""
    places = _plain(rows)
    _check(
        not rows.n or (places.min() >= 0 and places.max() < rows.chunk.dictionary.length),
        "an entry is not in its dictionary",
    )
    return places


def _plain(rows: _Rows, dtype: str | None = None) -> Column:
    """Entries as they lie in memory."""
    kind = np.dtype(_NUMBERS[rows.kind.format] if dtype is None else dtype)
    if rows.n == 0:  # then there may be no memory at all
        return np.empty(0, dtype=kind)
    memory = _buffer(rows, (rows.start + rows.n) * kind.itemsize)
    entries: Column = np.frombuffer(memory, kind, count=rows.n, offset=rows.start * kind.itemsize)
    return entries


def _unpacked(bits: Any, rows: _Rows) -> NDArray[np.uint8]:
    first = rows.start // 8
    flags = np.unpackbits(np.frombuffer(bits, np.uint8)[first:], bitorder="little")
    return flags[rows.start - 8 * first :][: rows.n]


def _dictionary(rows: _Rows) -> _Rows:
    """The entries that rows stand for."""
    own = rows.chunk.dictionary
    assert rows.kind.dictionary is not None
    return _Rows(rows.kind.dictionary, own, own.offset, own.length)


def _runs(rows: _Rows) -> tuple[NDArray[Any], _Rows]:
    """How many of the rows are in each run, and what the runs are of."""
    ends, values = (
        _Rows(kind, part, part.offset, part.length)
        for kind, part in ((kind, rows.chunk.child(place)) for place, kind in enumerate(rows.kind.children))
    )
    lengths = np.diff(np.clip(_plain(ends).astype(np.int64) - rows.start, 0, rows.n), prepend=0)
    right = len(lengths) <= values.n and lengths.sum() == rows.n and not np.any(lengths < 0)
    _check(right, "its runs must end where its rows do")
    return lengths, values._replace(n=len(lengths))


def _decimals(rows: _Rows, scale: int, bits: int) -> Column:
    """Integers over 10**scale, each rounded once; as integers where nothing is to be rounded."""
    words = _plain(rows, f"V{bits // 8}").view(f"i{min(bits, 64) // 8}").reshape(rows.n, -1)
    ordered = words if sys.byteorder == "little" else words[:, ::-1]
    small = ordered[:, 0].astype(np.int64)
    if np.all(ordered[:, 1:] == (small >> 63)[:, np.newaxis]):
        if scale == 0:
            return small
        if -22 <= scale <= 22 and np.all(np.abs(small / 2.0**53) < 1):  # both exact: one rounding
            return small / 10.0**scale if scale > 0 else small * 10.0**-scale
    wide = [int.from_bytes(entry.tobytes(), sys.byteorder, signed=True) for entry in words]
    return np.array([one / 10**scale if scale > 0 else float(one * 10**-scale) for one in wide])
