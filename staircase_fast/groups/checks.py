"""What `fit_groups`, `fit_columns` and a StaircaseMap are given."""

from __future__ import annotations

import contextlib
import itertools
import math
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from staircase_fast.arithmetic.exact import UNIT_WEIGHTS, Extent, extent_of
from staircase_fast.errors import refuse_entries
from staircase_fast.groups import _together
from staircase_fast.inputs.columns import (
    Column,
    as_array,
    as_exact_float,
    exports_arrow,
    made_by,
    read_array,
    read_column,
    read_float_column,
    reading,
)
from staircase_fast.inputs.options import import_optional
from staircase_fast.inputs.rows import NO_WEIGHTS, Columns, check_each_weight, check_no_nan, read_scores, read_weights
from staircase_fast.losses.rows import check_parameter_length, check_targets
from staircase_fast.staircase.steps import Steps, check_steps
from staircase_fast.typing import ColumnLike

if TYPE_CHECKING:
    from staircase_fast.losses import Loss


Key = bool | int | str
_KINDS: tuple[tuple[type, Any], ...] = ((bool, (bool, np.bool_)), (int, (int, np.integer)), (str, (str, bytes)))
_MODERATE = 1 << 16  # numbers that are not in use do little harm
_PLAIN_KINDS = ({bool}, {int}, {str})
_NO_RANKS = np.empty(0, dtype=np.int32)


class GroupColumn(NamedTuple):
    """Which group each row is in: keys in ascending order, and for each row a number that leads to one of them."""

    numbers: Column  # uint8, int32 or int64; at least one
    low: int  # the least number
    size: int  # how many numbers there are from that on; not all need be in use
    runs: int  # of one group side by side
    keys: list[Any] | None  # None: numbers are the keys
    ranks: NDArray[np.int32]  # the place in `keys` of each number from the least on; none where numbers are keys

    def key(self, place: int) -> Key:
        """The key at a place."""
        return self.low + place if self.keys is None else self.keys[place]

    def key_of(self, number: int) -> Key:
        """The key of a number."""
        return self.key(number - self.low if self.keys is None else int(self.ranks[number]))


def group_column(given: Any, n: int) -> GroupColumn:
    """The groups of n rows."""
    read = next((read for library, read in _READERS.items() if made_by(library, given)), None)
    if read is None and exports_arrow(given):
        given, read = _by_pyarrow(given), _arrow_groups
    if read is None:
        given = given if type(given) is np.ndarray else _objects(given)
    shape = given.shape if hasattr(given, "shape") else (len(given),)
    if len(shape) != 1:
        raise ValueError(f"`groups` must be one-dimensional; got shape {shape}.")
    if shape[0] != n:
        raise ValueError(f"`scores` and `groups` must have one entry per row; got {n} and {shape[0]} entries.")
    return _plain_groups(given) if read is None else read(given)


def _objects(given: Any) -> Column:
    """What is no array, as one; numpy makes floats of all entries if one is, or of integers that are large."""
    array = as_array("groups", given)
    return np.asarray(given, dtype=object) if array.dtype.kind == "f" else array


def _missing_group(missing: NDArray[np.bool_]) -> NoReturn:
    _bad_key(None, int(np.argmax(missing)))


def _plain_groups(array: Column) -> GroupColumn:
    if array.ndim != 1:  # a column of lists
        _bad_key(array[0].tolist(), 0)
    if array.dtype.kind in "iub":
        return _integer_groups(array)
    if array.dtype.kind not in "OUST":
        _bad_key(array[0], 0)
    items = array.tolist()
    if set(map(type, items)) not in _PLAIN_KINDS:
        items = [_key(item, row) for row, item in enumerate(items)]
    distinct = list(dict.fromkeys(items))
    number = {key: place for place, key in enumerate(distinct)}
    return _coded_groups(np.fromiter(map(number.__getitem__, items), dtype=np.int64, count=len(items)), distinct)


def _key(given: Any, row: int, name: str = "groups") -> Key:
    """A key as Python has it."""
    for kind, known in _KINDS:
        if isinstance(given, known):
            key: Key = _decoded(given, row, name) if isinstance(given, bytes) else kind(given)
            if kind is int and not _fits(key):
                raise ValueError(f"`{name}` must be integers of 64 bits; got {given!r} at index {row}.")
            return key
    return _bad_key(given, row, name)


def _decoded(given: bytes, row: int, name: str) -> str:
    try:
        return given.decode()
    except UnicodeDecodeError:
        raise ValueError(
            f"`{name}` must be text in UTF-8 where they are bytes; got {given!r} at index {row}."
        ) from None


def _fits(key: Any) -> bool:
    """Whether 64 bits hold an integer, with or without a sign."""
    return bool(-(2**63) <= key < 2**64)


def _same_sign(name: str, keys: list[Any]) -> None:
    """Refuse integers in ascending order that are of 64 bits, but not all with a sign or all without."""
    if type(keys[0]) is int and keys[0] < 0 and keys[-1] >= 2**63:
        raise ValueError(f"`{name}` must all be below 2**63 if one is negative; got {keys[0]} and {keys[-1]}.")


def _bad_key(given: Any, row: int, name: str = "groups") -> NoReturn:
    kind = type(given).__name__
    given = given.item() if isinstance(given, np.floating) else given
    if given is None or kind in ("NAType", "NaTType") or (isinstance(given, float) and math.isnan(given)):
        raise ValueError(f"`{name}` must not have missing entries; got {given!r} at index {row}.")
    raise TypeError(f"`{name}` must be integers, strings or bools; got {given!r} at index {row}.")


def _integer_groups(array: Column) -> GroupColumn:
    """Groups by integers: these are numbers themselves, unless they are far apart."""
    keys: list[Any] | None = [False, True] if array.dtype.kind == "b" else None
    if keys is not None:
        array = array.view(np.uint8)
    elif array.dtype.kind == "u" and array.dtype.itemsize == 8 and array.max() > np.iinfo(np.int64).max:
        return _distant_groups(array)
    numbers = np.require(array, _number_type(array.dtype), ["C", "A"])
    low, high, runs = _together.look(numbers)
    if keys is not None:
        return GroupColumn(numbers, 0, 2, runs, keys, np.arange(2, dtype=np.int32))
    if high - low >= len(numbers) + _MODERATE:
        return _distant_groups(numbers)
    return GroupColumn(numbers, int(low), int(high - low) + 1, runs, None, _NO_RANKS)


def _number_type(given: np.dtype[Any]) -> type[np.integer[Any]]:
    """What kernels read that holds integers of a type."""
    if given == np.uint8:
        return np.uint8
    return np.int32 if given.itemsize < 4 or (given.itemsize == 4 and given.kind == "i") else np.int64


def _distant_groups(array: Column) -> GroupColumn:
    keys, numbers = np.unique(array, return_inverse=True)
    runs = _together.look(numbers)[2]
    return GroupColumn(numbers, 0, len(keys), runs, keys.tolist(), np.arange(len(keys), dtype=np.int32))


def _coded_groups(codes: Column, values: list[Any]) -> GroupColumn:
    """Groups by places in a list of keys; those below 0 are missing."""
    numbers = codes.astype(_number_type(codes.dtype))  # a copy: numpy's bincount trusts that entries do not change
    low, high, runs = _together.look(numbers)
    if low < 0:
        _missing_group(numbers < 0)
    used = np.flatnonzero(np.bincount(numbers, minlength=high + 1))
    found: list[Key] = []
    for place in used.tolist():
        value = values[place]
        kind = type(value)
        plain = kind in (str, bool) or (kind is int and _fits(value))
        if not plain or (found and kind is not type(found[0])):
            row = int(np.argmax(numbers == place))
            value = _key(value, row)
            if found and type(value) is not type(found[0]):
                raise TypeError(
                    f"`groups` must be all integers, all strings or all bools; got {found[0]!r} and, at index {row}, "
                    f"{value!r}."
                )
        found.append(value)
    keys = sorted(set(found))
    _same_sign("groups", keys)
    places = {key: place for place, key in enumerate(keys)}
    ranks = np.zeros(high + 1, dtype=np.int32)
    ranks[used] = [places[key] for key in found]
    return GroupColumn(numbers, 0, len(keys), runs, keys, ranks)


def _pandas_groups(given: Any) -> GroupColumn:
    if str(given.dtype) == "category":
        parts = getattr(given, "cat", given)
        return _coded_groups(np.asarray(parts.codes), list(parts.categories))
    if isinstance(given.dtype, np.dtype):
        return _plain_groups(given.to_numpy())
    if hasattr(given.dtype, "pyarrow_dtype"):
        return _arrow_groups(getattr(given, "array", given).__arrow_array__())
    codes, values = given.factorize()
    return _coded_groups(codes, list(values))


def _polars_groups(given: Any) -> GroupColumn:
    if given.null_count():
        _missing_group(given.is_null().to_numpy())
    kind = str(given.dtype)
    if kind.startswith(("String", "Categorical")):
        import polars as pl  # whoever has one of its columns has it

        given = given.cast(pl.String)
        given = given.cast(pl.Enum(given.unique()))
    if hasattr(given.dtype, "categories"):
        return _coded_groups(given.to_physical().to_numpy(), given.dtype.categories.to_list())
    return _plain_groups(given.to_numpy())


def _arrow_groups(given: Any) -> GroupColumn:
    from staircase_fast.inputs import columns_arrow

    if str(given.type).startswith("run_end_encoded"):  # first, for it counts no nulls
        from pyarrow.compute import run_end_decode

        given = run_end_decode(given)
    if given.null_count:
        _missing_group(columns_arrow.flags(given.is_null()))
    kind = str(given.type)
    if kind in ("string", "large_string", "string_view"):
        given = given.dictionary_encode()
        kind = str(given.type)
    if kind.startswith("dictionary"):
        if hasattr(given, "chunks"):
            given = given.unify_dictionaries().combine_chunks()
        return _coded_groups(columns_arrow.read("groups", given.indices), given.dictionary.to_pylist())
    return _plain_groups(columns_arrow.read("groups", given) if re.fullmatch(r"u?int\d+", kind) else np.asarray(given))


def _by_pyarrow(given: Any) -> Any:
    """Keys of whatever library: strings are told apart by pyarrow."""
    arrow = import_optional("pyarrow", "`groups`", extra="arrow")
    with reading("groups", "Arrow data that can be read"):
        return arrow.array(given) if hasattr(type(given), "__arrow_c_array__") else arrow.chunked_array(given)


_READERS = {"pandas": _pandas_groups, "polars": _polars_groups, "pyarrow": _arrow_groups}


@contextlib.contextmanager
def told_of(where: str) -> Iterator[None]:
    """What goes wrong in here carries a note where it was; users' own errors stay what they are."""
    try:
        yield
    except Exception as error:
        error.add_note(f"in {where}")
        raise


def empty_group(key: Key, n: int) -> NoReturn:
    """Refuse a group of which all rows are absent."""
    raise ValueError(f"`sample_weight` must have an entry > 0 in each group; all {n} of group {key!r} are 0.")


def unknown_group(key: Key, row: int) -> NoReturn:
    """Refuse a group that was not fitted."""
    raise ValueError(f"`groups` must be groups that were fitted, or `default` a staircase; got {key!r} at index {row}.")


def rows_of_groups(
    x: Column,
    y: Column,
    w: Column,
    loss: Loss,
    n_threads: int,
    names: tuple[str, str, str] = ("scores", "targets", "sample_weight"),
) -> tuple[Extent, Extent]:
    """Judge entries of rows as `rows` does; sums of weights are those of each group, so they are judged there."""
    check_no_nan(names[0], x, n_threads)
    w_extent = extent_of(w, n_threads) if len(w) else UNIT_WEIGHTS
    check_each_weight(names[2], w, w_extent)
    y_extent = extent_of(y, n_threads)
    check_targets(names[1], y, y_extent, loss)
    return y_extent, w_extent


def table(name: str, given: Any, *, exact: bool = False) -> Column:
    """A table of numbers, of which each row is a column of the user's."""
    array = read_array(name, given, exact=exact)
    if array.ndim != 2:
        raise ValueError(f"`{name}` must have rows and columns; got shape {array.shape}.")
    array = np.ascontiguousarray(array.T)
    if 0 in array.shape:
        raise ValueError(f"`{name}` must have at least one row and one column; got shape {array.shape[::-1]}.")
    return array


def score_table(given: Any) -> Column:
    """Scores of columns."""
    whole = table("scores", given, exact=True)
    return whole if whole.dtype.kind == "f" else as_exact_float("scores", whole.reshape(-1)).reshape(whole.shape)


def tables(scores: Any, targets: Any, sample_weight: Any) -> Columns:
    """Judge the form of what `fit_columns` was given; weights of rows are those of each column."""
    x, y = score_table(scores), table("targets", targets)
    if x.shape != y.shape:
        raise ValueError(f"`scores` and `targets` must have the same shape; got {x.shape[::-1]} and {y.shape[::-1]}.")
    if sample_weight is None:
        return x, y, NO_WEIGHTS
    w = read_array("sample_weight", sample_weight)
    if w.ndim == 1:
        w = np.tile(read_weights("sample_weight", w, "scores", x[0]), (len(x), 1))
    else:
        w = table("sample_weight", w).astype(np.float64, copy=False)
    if x.shape != w.shape:
        raise ValueError(
            f"`sample_weight` must have one entry per row, or the shape of `scores`, {x.shape[::-1]}; "
            f"got {w.shape[::-1]}."
        )
    return x, y, w


def entries_of_tables(x: Column, y: Column, w: Column, loss: Loss) -> None:
    """Refuse the first entry that is bad, column by column."""
    for place in range(len(x)):
        names = (f"scores[:, {place}]", f"targets[:, {place}]", f"sample_weight[:, {place}]")
        rows_of_groups(x[place], y[place], w[place] if len(w) else w, loss, 1, names)


def default_staircase(given: object, kind: type[Any]) -> None:
    """Refuse what is to stand for groups that were not fitted, and is no staircase."""
    if given is not None and not isinstance(given, kind):
        raise TypeError(f"`default` must be a Staircase or None; got {given!r}.")


def table_width(n_columns: int, n_staircases: int) -> None:
    """Refuse scores that do not have a column for each staircase."""
    if n_columns != n_staircases:
        raise ValueError(f"`scores` must have a column for each of the {n_staircases} staircases; got {n_columns}.")


def query_column(given: ColumnLike) -> Column:
    """Scores to look up, one per row; there may be NaN among them."""
    return read_float_column("scores", given)


def no_groups(given: Any) -> None:
    """Refuse groups where there are no rows."""
    if len(given):
        raise ValueError(f"`scores` and `groups` must have one entry per row; got 0 and {len(given)} entries.")


def within_groups(
    scores: Column, low: NDArray[np.float64], high: NDArray[np.float64], column: GroupColumn, places: Column
) -> None:
    """Refuse queries outside the scores that were fitted in their groups."""
    place = places[column.numbers.astype(np.int64) - column.low]
    bad = (place >= 0) & ((scores < low[place]) | (scores > high[place]))
    if bad.any():
        row = int(np.argmax(bad))
        ends = f"[{low[place[row]]}, {high[place[row]]}]"
        key = column.key_of(int(column.numbers[row]))
        refuse_entries("scores", f"must be in {ends}, the fitted range of group {key!r}", scores, bad)


def map_parts(
    keys: Any, offsets: Any, columns: tuple[Any, ...], rising: Any, loss: Loss, rows: Any
) -> tuple[list[Key], NDArray[np.int64], Steps, NDArray[np.bool_], NDArray[np.int64] | None]:
    """Judge the parts of a StaircaseMap, as a constructor or a file gives them."""
    own = [_key(key, place, "keys") for place, key in enumerate(keys)]
    if not own:
        raise ValueError("`keys` must have at least one entry; got none.")
    for place, (one, other) in enumerate(itertools.pairwise(own), 1):
        if type(one) is not type(other) or not one < other:  # type: ignore[operator]
            raise ValueError(f"`keys` must be of one kind and strictly increase; got {other!r} at index {place}.")
    _same_sign("keys", own)
    borders = _offsets("offsets", offsets, len(own))
    directions = np.asarray(rising)
    if directions.dtype != np.bool_ or directions.shape != (len(own),):
        raise TypeError(f"`increasing` must be a bool for each of the {len(own)} keys; got {rising!r}.")
    n_steps = len(read_scores("left", columns[0]))
    if n_steps != borders[-1]:
        raise ValueError(f"`offsets` must end with the number of steps, {n_steps}; got {borders[-1]}.")
    found = check_steps(columns, rising=np.repeat(directions, np.diff(borders)), loss=loss, borders=borders[1:-1])
    row_borders = None if rows is None else _offsets("rows", rows, len(own))
    if row_borders is not None:
        check_parameter_length(loss, int(row_borders[-1]))
    return own, borders, found, directions.copy(), row_borders


def _offsets(name: str, given: Any, n: int) -> NDArray[np.int64]:
    borders = read_column(name, given)
    if borders.dtype.kind == "f" or len(borders) != n + 1 or borders[0] != 0:
        raise ValueError(f"`{name}` must be {n + 1} integers from 0 on; got {given!r}.")
    borders = borders.astype(np.int64)
    refuse_entries(name, "must strictly increase", borders[1:], borders[1:] <= borders[:-1], 1)
    return borders
