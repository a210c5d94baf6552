"""Read Arrow data of any library: objects with `__arrow_c_array__` or `__arrow_c_stream__`.

The reader is written by hand because pyarrow, DLPack and `__array__` cannot replace it.  Polars and other libraries
work without pyarrow.  pyarrow's conversions import pandas, which is slow and ignores Ctrl-C meanwhile.  DLPack has no
bits, nulls or chunks, and `__array__` turns nulls into NaN.  This reader rounds decimals once and does not copy numbers
in one chunk.  pyarrow decodes dictionaries and runs, which other libraries rarely use for numbers.
"""

from __future__ import annotations

import re
import sys
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from staircase_fast.errors import InvalidTypeError, refuse_missing
from staircase_fast.inputs import _arrow, hints
from staircase_fast.inputs.columns import Column, reading, side_by_side
from staircase_fast.inputs.options import import_optional

# Arrow's format letters of numbers, and numpy's types
_NUMBERS = {"c": "i1", "C": "u1", "s": "i2", "S": "u2", "i": "i4", "I": "u4", "l": "i8", "L": "u8"}
_NUMBERS |= {"e": "f2", "f": "f4", "g": "f8"}
_NULLS, _BITS, _RUNS, _TABLE = "n", "b", "+r", "+s"
_DECIMALS = re.compile(r"d:\d+,(-?\d{1,3})(?:,(32|64|128|256))?")  # precision, scale, bits
_WORDS = {"u": "strings", "U": "strings", "v": "strings or bytes", "z": "bytes", "Z": "bytes", "w": "bytes"}
_WORDS |= {"t": "times"}
_READABLE = "Arrow data that can be read"  # in messages


class _Rows(NamedTuple):
    """A range of rows of a chunk: n entries of its buffers from `start` on."""

    format: str
    chunk: _arrow.Chunk
    start: int
    n: int


def read(name: str, given: Any) -> Column:
    """The numbers of an array, a chunked array, or a table."""
    is_array = hasattr(type(given), "__arrow_c_array__")
    with reading(name, _READABLE):
        capsules = given.__arrow_c_array__() if is_array else given.__arrow_c_stream__()
        kind = _arrow.array_kind(capsules) if is_array else _arrow.stream_kind(capsules)
        if not any(one.format == _RUNS or one.has_dictionary for one in (kind, *kind.children)):
            chunks = _arrow.array_chunks(capsules) if is_array else _arrow.stream_chunks(capsules)
            rows = [_Rows(kind.format, chunk, chunk.offset, chunk.length) for chunk in chunks]
            if kind.format == _TABLE:
                return _read_table(name, kind, rows)
            return _read_column(name, kind.format, rows, given)
    way = "__arrow_c_array__" if is_array else "__arrow_c_stream__"
    return _read_encoded(name, kind, type("Exported", (), {way: lambda *_, **__: capsules})())


def flags(given: Any) -> NDArray[np.bool_]:
    """A boolean Arrow array; pyarrow's own conversion to numpy would import pandas."""
    return read("flags", given).view(np.bool_)


def as_pyarrow(name: str, given: Any) -> Any:
    """Arrow data of any library as a pyarrow array or chunked array."""
    arrow = import_optional("pyarrow", f"`{name}`", extra="arrow")
    with reading(name, _READABLE):
        return arrow.array(given) if hasattr(type(given), "__arrow_c_array__") else arrow.chunked_array(given)


def _read_encoded(name: str, kind: Any, exported: Any) -> Column:
    """Let pyarrow decode dictionaries and runs."""
    if kind.format == _TABLE:
        with reading(name, _READABLE):
            table = import_optional("pyarrow", f"`{name}`", extra="arrow").table(exported)
        return side_by_side(name, table.columns, table.num_rows)
    given = as_pyarrow(name, exported)
    with reading(name, _READABLE):
        from pyarrow import compute

        given = compute.run_end_decode(given) if kind.format == _RUNS else given.cast(given.type.value_type)
    return read(name, given)


def _read_table(name: str, kind: Any, rows: list[_Rows]) -> Column:
    _refuse_nulls(name, rows)
    columns = []
    for place, child in enumerate(kind.children):
        parts = ((part, one.start, one.n) for one in rows for part in [one.chunk.child(place)])
        own = [_Rows(child.format, part, part.offset + start, n) for part, start, n in parts]
        columns.append(_read_column(f"{name}[:, {place}]", child.format, own))
    return side_by_side(name, columns, sum(part.n for part in rows))


def _read_column(name: str, kind: str, rows: list[_Rows], given: Any = None) -> Column:
    """The numbers of chunks; `given` is the object they came in, unless that was a table."""
    _refuse_nulls(name, rows)
    if kind not in _NUMBERS and kind not in (_NULLS, _BITS) and not _DECIMALS.fullmatch(kind):
        _refuse_kind(name, kind, given if any(part.n for part in rows) else None)
    parts = [_numbers(part) for part in rows if part.n]
    if len(parts) == 1:
        return parts[0]
    return np.concatenate(parts) if parts else np.empty(0)


def _refuse_kind(name: str, kind: str, given: Any) -> NoReturn:
    """Raise an error for strings and the like, with the first entry if it can be shown."""
    words = _WORDS.get(kind[:1])
    if words and hasattr(type(given), "__getitem__"):
        with reading(name, "real numbers"):
            index = hints.first_word(given)
            entry = hints.plain(given[index])
        hint = hints.for_entry(name, entry)
        raise InvalidTypeError(name, "must be real numbers", value=entry, index=index, hint=hint)
    raise InvalidTypeError(name, "must be real numbers", found=f"got {words or f'Arrow data of type {kind}'}")


def _refuse_nulls(name: str, rows: list[_Rows]) -> None:
    before = 0
    for part in rows:
        if part.format == _NULLS and part.n:
            refuse_missing(name, "null", before)
        if part.chunk.null_count != 0 and part.format != _NULLS:  # -1: not counted
            bits = part.chunk.buffer(0, (part.start + part.n + 7) // 8)
            valid = None if bits is None else _unpack(bits, part)
            if valid is not None and not valid.all():
                refuse_missing(name, "null", before + int(np.argmin(valid)))
        before += part.n


def _numbers(rows: _Rows) -> Column:
    """The numbers of n >= 1 rows without nulls."""
    if rows.format == _BITS:
        return _unpack(rows.chunk.entries((rows.start + rows.n + 7) // 8), rows)
    decimals = _DECIMALS.fullmatch(rows.format)
    if decimals:
        return _from_decimals(rows, int(decimals[1]), int(decimals[2] or 128))
    return _entries(rows, _NUMBERS[rows.format])


def _entries(rows: _Rows, dtype: str) -> Column:
    """A view of the exporter's memory."""
    size = np.dtype(dtype).itemsize
    memory = rows.chunk.entries((rows.start + rows.n) * size)
    entries: Column = np.frombuffer(memory, dtype, count=rows.n, offset=rows.start * size)
    return entries


def _unpack(bits: Any, rows: _Rows) -> NDArray[np.uint8]:
    first = rows.start // 8
    unpacked = np.unpackbits(np.frombuffer(bits, np.uint8)[first:], bitorder="little")
    return unpacked[rows.start - 8 * first :][: rows.n]


def _from_decimals(rows: _Rows, scale: int, bits: int) -> Column:
    """Integers over 10**scale, rounded once; integers stay integers if the scale is 0."""
    words = _entries(rows, f"V{bits // 8}").view(f"i{min(bits, 64) // 8}").reshape(rows.n, -1)
    ordered = words if sys.byteorder == "little" else words[:, ::-1]
    small = ordered[:, 0].astype(np.int64)
    if np.all(ordered[:, 1:] == (small >> 63)[:, np.newaxis]):
        if scale == 0:
            return small
        if -22 <= scale <= 22 and np.all(np.abs(small / 2.0**53) < 1):  # both operands are exact: one rounding
            return small / 10.0**scale if scale > 0 else small * 10.0**-scale
    wide = [int.from_bytes(entry.tobytes(), sys.byteorder, signed=True) for entry in words]
    return np.array([one / 10**scale if scale > 0 else float(one * 10**-scale) for one in wide])
