"""Read a column of numbers from any container, as an array that kernels can read.

Arrow data is read by `columns_arrow.py`, pandas data by `columns_pandas.py`, everything else by numpy.  The result is a
view of the input if possible.  Types that kernels do not read, bits, several chunks, and strided or unaligned rows are
copied once.
"""

from __future__ import annotations

import contextlib
import operator
from collections.abc import Iterator
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from staircase_fast.errors import InvalidInputError, InvalidTypeError, refuse_entries, refuse_missing
from staircase_fast.inputs import hints

Column = NDArray[Any]

# types that kernels read in place; other types are converted to one of these
_READABLE = tuple(np.dtype(kind) for kind in ("f8", "f4", "u1", "i8", "i4", "i1"))
_EXACT = "must be integers that float64 holds exactly"
_ROUND = "Subtract the smallest one first, or convert them to floats to round them."
_PLAIN = (list, tuple, float, int, bool)  # objects without an array protocol
_NUMPY = ("__array__", "__array_interface__", "__array_struct__")
# DLPack device types whose memory the CPU can read
_HOST_DEVICES = (1, 3, 11, 13)


@contextlib.contextmanager
def reading(name: str, what: str) -> Iterator[None]:
    """Convert any exception of another library's code to an InvalidInputError about this argument."""
    try:
        yield
    except (MemoryError, InvalidInputError):
        raise
    except Exception as error:  # noqa: BLE001
        unreadable(name, what, error)


def unreadable(name: str, what: str, error: Exception) -> NoReturn:
    """Raise an error for data that another library could not read."""
    reason = ((error.strerror if isinstance(error, OSError) else str(error)) or type(error).__name__).rstrip(".")
    kind = InvalidTypeError if isinstance(error, TypeError) else InvalidInputError
    raise kind(name, f"must be {what}", found=reason) from error


def made_by(library: str, values: object) -> bool:
    """Whether an object is an instance of a class of this library or of a subclass."""
    return any(base.__module__.partition(".")[0] == library for base in type(values).__mro__)


def exports_arrow(values: object) -> bool:
    """Whether an object supports Arrow's PyCapsule interface."""
    return hasattr(type(values), "__arrow_c_array__") or hasattr(type(values), "__arrow_c_stream__")


def read_column(name: str, values: Any, *, exact: bool = False) -> Column:
    """A contiguous column of numbers; see `read_array`."""
    array = read_array(name, values, exact=exact)
    if array.ndim != 1:
        hint = hints.for_shape(name, values, array.shape)
        raise InvalidInputError(name, "must be one-dimensional", found=f"got shape {array.shape}", hint=hint)
    return np.ascontiguousarray(array)


def read_float_column(name: str, values: Any) -> Column:
    """A column of float64 or float32; integers that would be rounded are invalid, because scores would merge."""
    x = read_column(name, values, exact=True)
    return x if x.dtype.kind == "f" else as_exact_float(name, x)


def read_array(name: str, values: Any, *, exact: bool = False) -> Column:
    """An array of a type that kernels read; a view of the input if possible.

    `exact`: integers among objects that float64 would round are invalid.
    """
    array = values if type(values) is np.ndarray else as_array(name, values)
    if array.dtype not in _READABLE:  # byte-swapped arrays as well
        array = _widened(name, array, exact=exact)
    return array if array.flags.aligned else array.copy()


def as_array(name: str, values: Any) -> Column:
    """An array of any type, read by the protocol that copies least."""
    if not isinstance(values, _PLAIN):
        if isinstance(values, (np.ndarray, np.generic)):
            if np.ma.is_masked(values):
                refuse_missing(name, "a masked one", int(np.argmax(np.ma.getmaskarray(values))))
            return np.asarray(values)
        # pandas before Arrow, which would copy columns that numpy can view
        if made_by("pandas", values) and hasattr(type(values), "__array__"):
            from staircase_fast.inputs import columns_pandas

            return columns_pandas.read(name, values)
        if exports_arrow(values):
            from staircase_fast.inputs import columns_arrow

            return columns_arrow.read(name, values)
        if hasattr(type(values), "__dlpack_device__"):
            return _from_dlpack(name, values)
    try:  # without `reading`, which is slower than predicting a single score
        array = np.asarray(values)
        if array.dtype.kind == "U":
            array = np.asarray(values, dtype=object)  # numpy converts all entries to strings if one is a string
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001
        unreadable(name, "an array of numbers", error)
    return array


def _from_dlpack(name: str, values: Any) -> Column:
    """A tensor of another library; the CPU must be able to read its memory."""
    with reading(name, "an array that numpy can read"):
        device, number = (int(part) for part in values.__dlpack_device__())
        if device not in _HOST_DEVICES:
            found = f"got an array on device {number} of DLPack type {device}"
            raise InvalidTypeError(name, "must be in CPU memory", found=found, hint="Copy it to the CPU first.")
        return np.asarray(values) if any(hasattr(type(values), way) for way in _NUMPY) else np.from_dlpack(values)


def side_by_side(name: str, columns: list[Any], n_rows: int) -> Column:
    """The columns of a table as one array in column-major order."""
    parts = [read_column(f"{name}[:, {place}]", column) for place, column in enumerate(columns)]
    if any(part.dtype.kind == "f" for part in parts):
        parts = [read_float_column(f"{name}[:, {place}]", part) for place, part in enumerate(parts)]
    return np.array(parts).reshape(len(parts), n_rows).T


def _widened(name: str, array: Column, *, exact: bool) -> Column:
    if array.dtype.kind == "O":
        return _from_objects(name, array, exact=exact)
    if array.dtype.kind == "b":
        return array.view(np.uint8)
    if array.dtype.kind not in "iuf":
        _no_number(name, array, 0)
    if array.dtype.kind == "f":
        with np.errstate(over="ignore"):  # larger numbers become inf, which later checks find
            return array.astype(np.float32 if array.dtype.itemsize <= 4 else np.float64)
    if array.dtype.kind == "u" and array.dtype.itemsize == 8 and array.size and array.max() > np.iinfo(np.int64).max:
        flat = array.reshape(-1)
        refuse_entries(name, "must be below 2**63 if they are integers", flat, flat > np.iinfo(np.int64).max)
    return array.astype(np.int64)


def as_exact_float(name: str, x: Column) -> Column:
    """Integers as float64; those that would be rounded are invalid."""
    as_float = x.astype(np.float64)
    if x.dtype.itemsize == 8:
        back = np.where(as_float < 2.0**63, as_float, 0.0).astype(np.int64)
        refuse_entries(name, _EXACT, x, back != x, hint=lambda: _ROUND)
    return as_float


def _from_objects(name: str, array: Column, *, exact: bool) -> Column:
    """Convert Python objects one by one, so that the error can name the first that is not a number."""
    flat = array.reshape(-1)
    try:
        if all(not isinstance(entry, float) for entry in flat):
            return np.array([operator.index(entry) for entry in flat], dtype=np.int64).reshape(array.shape)
    except (TypeError, OverflowError):
        pass  # not integers, or too large: convert to floats
    numbers = np.empty(flat.shape)
    for index, entry in enumerate(flat):
        if isinstance(entry, (str, bytes)):
            _no_number(name, array, index)
        try:
            numbers[index] = float(entry)
        except (TypeError, ValueError, OverflowError):
            _no_number(name, array, index)
        if exact and isinstance(entry, (int, np.integer)) and int(numbers[index]) != entry:
            place = index if array.ndim else None
            raise InvalidInputError(name, _EXACT, value=int(entry), index=place, hint=_ROUND if array.ndim else "")
    return numbers.reshape(array.shape)


def _no_number(name: str, array: Column, index: int) -> NoReturn:
    """Raise an error for an entry; objects without entries (None, a set, a generator) are invalid as a whole."""
    if not array.size:
        raise InvalidTypeError(name, "must be real numbers", found=f"got dtype {array.dtype}")
    if array.ndim:
        index += hints.first_word(array.reshape(-1)[index:])
    entry, place = array.reshape(-1)[index], index if array.ndim else None
    if isinstance(entry, int):
        found = f"got an integer of {entry.bit_length()} bits"
        raise InvalidTypeError(name, "must be within float64", found=found, index=place) from None
    hint = hints.for_entry(name, entry) if array.ndim else hints.for_object(name, entry)
    raise InvalidTypeError(name, "must be real numbers", value=entry, index=place, hint=hint) from None
