"""Read the group of each row from lists, NumPy arrays, and pandas, polars or Arrow columns; read tables of numbers."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from staircase_fast.errors import InvalidInputError, InvalidTypeError, refuse_missing
from staircase_fast.inputs import hints
from staircase_fast.inputs.columns import Column, as_array, as_exact_float, exports_arrow, made_by, read_array
from staircase_fast.inputs.missing import read_with_nan

Key = bool | int | str
NO_RANKS = np.empty(0, dtype=np.int32)
_MAX_UNUSED = 1 << 16  # unused numbers between the keys that cost little
_PLAIN_KINDS = ({bool}, {int}, {str})


class GroupColumn(NamedTuple):
    """The group of each row as a number, and the keys in ascending order.  A key's *place* is its position there."""

    numbers: Column  # uint8, int32 or int64; at least one, unless there are no rows
    low: int  # the smallest number
    size: int  # the number of places; not all need have rows
    keys: list[Any] | None  # None: the numbers are the keys
    ranks: NDArray[np.int32]  # the place of each number from `low` on; empty if numbers are keys: low, low + 1, ..

    def key(self, place: int) -> Key:
        """The key at a place."""
        return self.low + place if self.keys is None else self.keys[place]

    def key_of(self, number: int) -> Key:
        """The key of a number."""
        return self.key(number - self.low if self.keys is None else int(self.ranks[number]))

    def expand(self, of_numbers: NDArray[np.int32]) -> NDArray[np.int32]:
        """The entry of each row, from an entry for each number from `low` on."""
        return of_numbers[self.numbers.astype(np.int64) - self.low]


def group_column(given: Any, n: int) -> GroupColumn:
    """The groups of n rows."""
    read: Any = _from_numpy
    if made_by("pandas", given):
        read = _from_pandas
    elif made_by("polars", given):
        read = _from_polars
    elif exports_arrow(given):
        from staircase_fast.inputs import columns_arrow

        given, read = columns_arrow.as_pyarrow("groups", given), _from_pyarrow
    elif type(given) is not np.ndarray:
        array = as_array("groups", given)
        # numpy converts all entries to floats if one is a float, or large integers
        given = np.asarray(given, dtype=object) if array.dtype.kind == "f" else array
    shape = given.shape if hasattr(given, "shape") else (len(given),)
    if len(shape) != 1:
        hint = hints.for_shape("groups", given, shape)
        raise InvalidInputError("groups", "must be one-dimensional", found=f"got shape {shape}", hint=hint)
    if shape[0] != n:
        found = f"got {n} and {shape[0]} entries"
        raise InvalidInputError("scores", "must have one entry per row", other="groups", found=found)
    if n == 0:
        return GroupColumn(np.empty(0, dtype=np.int32), 0, 0, [], NO_RANKS)
    found_column: GroupColumn = read(given)
    return found_column


def single_entry(given: Any) -> list[Any] | None:
    """One score or one group as a column of one row; None if it is a column."""
    if isinstance(given, np.ndarray) and not given.ndim:
        return [given.item()]
    return [given] if given is None or np.isscalar(given) else None


def check_key(argument: str, key: Any, index: int) -> Key:
    """A key as a Python bool, int or str."""
    if isinstance(key, (bool, np.bool_)):
        return bool(key)
    if isinstance(key, str):
        return str(key)
    if isinstance(key, (int, np.integer)):
        if not -(2**63) <= int(key) < 2**64:
            raise InvalidInputError(argument, "must be integers of 64 bits", value=int(key), index=index)
        return int(key)
    if isinstance(key, bytes):
        try:
            return key.decode()
        except UnicodeDecodeError:
            raise InvalidInputError(argument, "must be UTF-8 text if they are bytes", value=key, index=index) from None
    key = key.item() if isinstance(key, np.floating) else key
    if key is None or type(key).__name__ in ("NAType", "NaTType") or (isinstance(key, float) and math.isnan(key)):
        refuse_missing(argument, repr(key), index)
    hint = "Convert floats to integers or text first." if isinstance(key, float) else "Convert them to text first."
    raise InvalidTypeError(argument, "must be integers, strings or bools", value=key, index=index, hint=hint)


def _check_keys(keys: list[Any], row_of: Callable[[int], int]) -> list[Key]:
    """Keys of one kind as Python objects; `row_of` returns the first row of the key at a position of the list."""
    found: list[Key] = []
    for position, given in enumerate(keys):
        try:
            key = check_key("groups", given, position)
            if found and type(key) is not type(found[0]):
                requirement = "must be all integers, all strings or all bools"
                raise InvalidTypeError("groups", requirement, found=f"got {found[0]!r} and {key!r}", index=position)
        except InvalidInputError as error:
            error.index = row_of(position)
            raise
        found.append(key)
    return found


def check_signs(argument: str, keys: list[Any]) -> None:
    """Integer keys in ascending order must all fit int64 or all fit uint64."""
    if type(keys[0]) is int and keys[0] < 0 and keys[-1] >= 2**63:
        found = f"got {keys[0]} and {keys[-1]}"
        raise InvalidInputError(argument, "must all be below 2**63 if one is negative", found=found)


def _from_numpy(array: Column) -> GroupColumn:
    if array.ndim != 1:  # a column of lists
        check_key("groups", array[0].tolist(), 0)
    if array.dtype.kind in "iub":
        return _from_integers(array)
    if array.dtype.kind not in "OUST":
        check_key("groups", array[0], 0)
    items = array.tolist()
    if set(map(type, items)) not in _PLAIN_KINDS:
        items = _check_keys(items, int)
    distinct = list(dict.fromkeys(items))
    number = {key: place for place, key in enumerate(distinct)}
    return _from_codes(np.fromiter(map(number.__getitem__, items), dtype=np.int64, count=len(items)), distinct)


def _from_integers(array: Column) -> GroupColumn:
    """Integers are numbers themselves, unless they are far apart."""
    if array.dtype.kind == "b":
        bits = np.require(array, requirements=["C", "A"]).view(np.uint8)
        return GroupColumn(bits, 0, 2, [False, True], np.arange(2, dtype=np.int32))
    if array.dtype != np.uint64 or array.max() <= np.iinfo(np.int64).max:
        numbers = np.require(array, _number_type(array.dtype), ["C", "A"])
        low, high = int(numbers.min()), int(numbers.max())
        if high - low < len(numbers) + _MAX_UNUSED:
            return GroupColumn(numbers, low, high - low + 1, None, NO_RANKS)
    keys, places = np.unique(array, return_inverse=True)
    return GroupColumn(places, 0, len(keys), keys.tolist(), np.arange(len(keys), dtype=np.int32))


def _number_type(given: np.dtype[Any]) -> type[np.integer[Any]]:
    """The type that kernels read which can represent these integers."""
    if given == np.uint8:
        return np.uint8
    return np.int32 if given.itemsize < 4 or (given.itemsize == 4 and given.kind == "i") else np.int64


def _from_codes(codes: Column, values: list[Any]) -> GroupColumn:
    """Codes are positions in a list of keys, which may repeat; negative codes are missing entries."""
    numbers = codes.astype(_number_type(codes.dtype))  # a copy: np.bincount trusts that entries do not change
    if numbers.min() < 0:
        refuse_missing("groups", "None", int(np.argmax(numbers < 0)))
    used = np.flatnonzero(np.bincount(numbers))
    used_keys = [values[code] for code in used.tolist()]
    if set(map(type, used_keys)) not in ({bool}, {str}):
        used_keys = _check_keys(used_keys, lambda position: int(np.argmax(numbers == used[position])))
    keys = sorted(set(used_keys))
    check_signs("groups", keys)
    places = {key: place for place, key in enumerate(keys)}
    ranks = np.zeros(used[-1] + 1, dtype=np.int32)
    ranks[used] = [places[key] for key in used_keys]
    return GroupColumn(numbers, 0, len(keys), keys, ranks)


def _from_pandas(given: Any) -> GroupColumn:
    if str(given.dtype) == "category":
        parts = getattr(given, "cat", given)
        return _from_codes(np.asarray(parts.codes), list(parts.categories))
    if isinstance(given.dtype, np.dtype):
        return _from_numpy(given.to_numpy())
    if hasattr(given.dtype, "pyarrow_dtype"):
        return _from_pyarrow(getattr(given, "array", given).__arrow_array__())
    codes, values = given.factorize()
    return _from_codes(codes, list(values))


def _from_polars(given: Any) -> GroupColumn:
    if given.null_count():
        refuse_missing("groups", "None", int(np.argmax(given.is_null().to_numpy())))
    if str(given.dtype).startswith(("String", "Categorical")):
        import polars as pl

        given = given.cast(pl.String)
        given = given.cast(pl.Enum(given.unique()))
    if hasattr(given.dtype, "categories"):
        return _from_codes(given.to_physical().to_numpy(), given.dtype.categories.to_list())
    return _from_numpy(given.to_numpy())


def _from_pyarrow(given: Any) -> GroupColumn:
    from staircase_fast.inputs import columns_arrow

    if str(given.type).startswith("run_end_encoded"):  # first, because its null_count is 0
        from pyarrow.compute import run_end_decode

        given = run_end_decode(given)
    if given.null_count:
        refuse_missing("groups", "None", int(np.argmax(columns_arrow.flags(given.is_null()))))
    if str(given.type) in ("string", "large_string", "string_view"):
        given = given.dictionary_encode()
    kind = str(given.type)
    if kind.startswith("dictionary"):
        if hasattr(given, "chunks"):
            given = given.unify_dictionaries().combine_chunks()
        return _from_codes(columns_arrow.read("groups", given.indices), given.dictionary.to_pylist())
    is_integer = re.fullmatch(r"u?int\d+", kind)
    return _from_numpy(columns_arrow.read("groups", given) if is_integer else np.asarray(given))


def read_table(argument: str, given: Any, *, exact: bool = False) -> Column:
    """A transposed table of numbers: each row of the result is a column of the input."""
    return _transposed(argument, read_array(argument, given, exact=exact))


def _transposed(argument: str, array: Column) -> Column:
    if array.ndim != 2:
        hint = "Use `fit` for one column."
        if argument == "targets":
            hint = "Pass a column per class, for example `np.equal.outer(targets, np.unique(targets))`."
        raise InvalidInputError(argument, "must have rows and columns", found=f"got shape {array.shape}", hint=hint)
    if 0 in array.shape:
        found = f"got shape {array.shape}"
        raise InvalidInputError(argument, "must have at least one row and one column", found=found)
    return np.ascontiguousarray(array.T)


def read_score_table(given: Any, *, keep_nan: bool = False) -> Column:
    """A transposed table of scores, as floats.  `keep_nan`: missing scores become NaN."""
    if keep_nan:
        return _transposed("scores", read_with_nan("scores", given))
    table = read_table("scores", given, exact=True)
    return table if table.dtype.kind == "f" else as_exact_float("scores", table.reshape(-1)).reshape(table.shape)
