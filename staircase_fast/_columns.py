"""Whatever users hold numbers in, as an array that kernels read: a view of it wherever that is possible.

Arrow's arrays are read by `_columns_arrow.py`, pandas' by `_columns_pandas.py`, all else by numpy.  What is copied, and
only once: numbers of a kind that no kernel reads, bits (to bytes), rows in several chunks, strided and unaligned rows.
"""

from __future__ import annotations

import contextlib
import operator
from collections.abc import Iterator
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

Column = NDArray[Any]

# what kernels read as it lies in memory; other kinds are widened to the next of these
_READABLE = tuple(np.dtype(kind) for kind in ("f8", "f4", "u1", "i8", "i4", "i1"))
_EXACT = "be integers that float64 holds exactly"
_MOST_SHOWN = 80  # characters of an entry in a message
_PLAIN = (list, tuple, float, int, bool)  # what has no protocol of its own
_NUMPY = ("__array__", "__array_interface__", "__array_struct__")
# the kinds of devices, by DLPack's numbers, whose memory processors read: their own, and what is shared with them
_HOST_DEVICES = (1, 3, 11, 13)


def _refuse(name: str, what: str, column: Column, bad: NDArray[np.bool_], offset: int = 0) -> None:
    if bad.any():
        index = int(np.argmax(bad))
        where = f" at index {index + offset}" if column.ndim else ""
        raise ValueError(f"`{name}` must {what}; got {column.reshape(-1)[index].item()!r}{where}.")


def missing(name: str, what: str, index: int) -> NoReturn:
    """Refuse a row that has no number."""
    raise ValueError(f"`{name}` must not have missing entries; got {what} at index {index}.")


@contextlib.contextmanager
def reading(name: str, what: str) -> Iterator[None]:
    """Run another library's code that may fail in any way; say whose data it was.  A TypeError stays one."""
    try:
        yield
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001
        unreadable(name, what, error)


def unreadable(name: str, what: str, error: Exception) -> NoReturn:
    """Refuse data that another library could not read."""
    reason = (error.strerror if isinstance(error, OSError) else str(error)) or type(error).__name__
    kind = TypeError if isinstance(error, TypeError) else ValueError
    raise kind(f"`{name}` must be {what}; {reason}") from error


def made_by(library: str, values: object) -> bool:
    """Whether something is of a class of this library, or of one derived from it."""
    return any(base.__module__.partition(".")[0] == library for base in type(values).__mro__)


def exports_arrow(values: object) -> bool:
    """Whether something can be read by Arrow's PyCapsule interface."""
    return hasattr(type(values), "__arrow_c_array__") or hasattr(type(values), "__arrow_c_stream__")


def _column(name: str, values: Any, *, exact: bool = False) -> Column:
    array = _array(name, values, exact=exact)
    if array.ndim != 1:
        raise ValueError(f"`{name}` must be one-dimensional; got shape {array.shape}.")
    return np.ascontiguousarray(array)


def _float_column(name: str, values: Any) -> Column:
    # integers beyond 2**53 would be rounded, and two scores become one
    x = _column(name, values, exact=True)
    return x if x.dtype.kind == "f" else _as_float_if_exact(name, x)


def _array(name: str, values: Any, *, exact: bool = False) -> Column:
    """A numeric array of a kind that kernels read; a view of the input wherever that is possible.

    `exact`: integers that float64 would round are refused, even where others are rounded to it.
    """
    array = values if type(values) is np.ndarray else _from_anything(name, values)
    if array.dtype not in _READABLE:  # as is what is byte-swapped
        array = _widened(name, array, exact=exact)
    return array if array.flags.aligned else array.copy()


def _from_anything(name: str, values: Any) -> Column:
    if not isinstance(values, _PLAIN):
        if isinstance(values, (np.ndarray, np.generic)):
            return _from_numpy(name, values)
        # pandas before Arrow, which would copy what numpy can view
        if made_by("pandas", values) and hasattr(type(values), "__array__"):
            from staircase_fast import _columns_pandas

            return _columns_pandas.read(name, values)
        if exports_arrow(values):
            from staircase_fast import _columns_arrow

            return _columns_arrow.read(name, values)
        if hasattr(type(values), "__dlpack_device__"):
            return _from_dlpack(name, values)
    try:  # without `reading`, which takes longer than a single score
        array = np.asarray(values)
        if array.dtype.kind == "U":
            array = np.asarray(values, dtype=object)  # numpy makes strings of all entries if one is
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001
        unreadable(name, "an array of numbers", error)
    return array


def _from_numpy(name: str, values: Any) -> Column:
    """What is a kind of numpy's own arrays, or one of its numbers."""
    if np.ma.isMaskedArray(values) and np.ma.is_masked(values):
        missing(name, "a masked one", int(np.argmax(np.ma.getmaskarray(values))))
    return np.asarray(values)


def _from_dlpack(name: str, values: Any) -> Column:
    """A tensor of another library, whose memory a processor must be able to read."""
    with reading(name, "an array that numpy can read"):
        device, number = (int(part) for part in values.__dlpack_device__())
    if device not in _HOST_DEVICES:
        raise TypeError(
            f"`{name}` must be in the memory of the processor; got an array on device {number} of DLPack's kind "
            f"{device}: copy it first."
        )
    with reading(name, "an array that numpy can read"):
        if any(hasattr(type(values), way) for way in _NUMPY):
            return np.asarray(values)
        return np.from_dlpack(values)


def side_by_side(name: str, columns: list[Any], n_rows: int) -> Column:
    """The columns of a table as one array, in which each lies together."""
    parts = [_column(f"{name}[:, {place}]", column) for place, column in enumerate(columns)]
    if any(part.dtype.kind == "f" for part in parts):
        parts = [_float_column(f"{name}[:, {place}]", part) for place, part in enumerate(parts)]
    return np.array(parts).reshape(len(parts), n_rows).T


def _widened(name: str, array: Column, *, exact: bool) -> Column:
    if array.dtype.kind == "O":
        return _from_objects(name, array, exact=exact)
    if array.dtype.kind == "b":
        return array.view(np.uint8)
    if array.dtype.kind not in "iuf":
        _no_number(name, array, 0)
    if array.dtype.kind == "f":
        with np.errstate(over="ignore"):  # what float64 cannot hold becomes inf, and is judged as such
            return array.astype(np.float32 if array.dtype.itemsize <= 4 else np.float64)
    if array.dtype.kind == "u" and array.dtype.itemsize == 8 and array.size and array.max() > np.iinfo(np.int64).max:
        flat = array.reshape(-1)
        _refuse(name, "be below 2**63 where they are integers", flat, flat > np.iinfo(np.int64).max)
    return array.astype(np.int64)


def _as_float_if_exact(name: str, x: Column) -> Column:
    as_float = x.astype(np.float64)
    if x.dtype.itemsize == 8:
        back = np.where(as_float < 2.0**63, as_float, 0.0).astype(np.int64)
        _refuse(name, _EXACT, x, back != x)
    return as_float


def _from_objects(name: str, array: Column, *, exact: bool) -> Column:
    """Python numbers of any kind, one by one, so that the first that is none can be named."""
    flat = array.reshape(-1)
    try:
        if all(not isinstance(entry, float) for entry in flat):
            return np.array([operator.index(entry) for entry in flat], dtype=np.int64).reshape(array.shape)
    except (TypeError, OverflowError):
        pass  # not integers, or large ones: as floats
    numbers = np.empty(flat.shape)
    for index, entry in enumerate(flat):
        if isinstance(entry, (str, bytes)):
            _no_number(name, array, index)
        try:
            numbers[index] = float(entry)
        except (TypeError, ValueError, OverflowError):
            _no_number(name, array, index)
        if exact and isinstance(entry, (int, np.integer)) and int(numbers[index]) != entry:
            where = f" at index {index}" if array.ndim else ""
            raise ValueError(f"`{name}` must {_EXACT}; got {entry}{where}.")
    return numbers.reshape(array.shape)


def _no_number(name: str, array: Column, index: int) -> NoReturn:
    """Refuse an entry; what has no entries (None, a set, a generator) is refused as a whole."""
    if not array.size:
        raise TypeError(f"`{name}` must be real numbers; got dtype {array.dtype}.")
    entry = array.reshape(-1)[index]
    where = f" at index {index}" if array.ndim else ""
    if isinstance(entry, int):
        raise TypeError(
            f"`{name}` must be within float64; got an integer of {entry.bit_length()} bits{where}."
        ) from None
    shown = repr(entry)
    more = "..." if len(shown) > _MOST_SHOWN else ""
    raise TypeError(f"`{name}` must be real numbers; got {shown[:_MOST_SHOWN]}{more}{where}.") from None
