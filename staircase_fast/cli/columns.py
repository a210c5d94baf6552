"""Columns of a table, as pyarrow has them: numbers, missing entries, and groups."""

from __future__ import annotations

import contextlib
import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from staircase_fast.cli.labels import current_labels, hint_at_positive
from staircase_fast.errors import InvalidInputError, InvalidTypeError, refuse_missing
from staircase_fast.inputs import columns_arrow
from staircase_fast.inputs.columns import Column


def numbers(argument: str, given: Any) -> Column:
    """The numbers in a column; text is parsed.  `argument` names the column in errors."""
    import pyarrow as pa
    from pyarrow import types

    given = _decoded(given)
    if argument == "targets" and (labels := current_labels()):
        from pyarrow import compute

        entries = given
        given, place = labels.read(entries, compute.invert(present(entries)))
        if place is not None:
            refuse_missing(argument, repr(entries[place].as_py()), place)
    kind = given.type
    if "string" in str(kind):
        given = _parsed(argument, given)
    elif types.is_null(kind):
        given = given.cast(pa.float64())
    elif not any(is_one(kind) for is_one in (types.is_boolean, types.is_integer, types.is_floating, types.is_decimal)):
        found = f"got {kind}, {given[0]}" if len(given) else f"got {kind}"
        raise InvalidTypeError(argument, "must hold numbers", found=found, index=0 if len(given) else None)
    return columns_arrow.read(argument, given)


def present(given: Any) -> Any:
    """Which entries are present, as an Arrow array: neither null nor NaN, nor text for one of them."""
    from pyarrow import compute, csv

    given = _decoded(given)
    missing = compute.is_null(given, nan_is_null=True)
    if "string" in str(given.type):
        words = "|".join(map(re.escape, csv.ConvertOptions().null_values))
        text = compute.utf8_trim_whitespace(given)
        missing = compute.or_kleene(missing, compute.match_substring_regex(text, f"^({words}|(?i:nan))?$"))
    return compute.invert(missing)


def as_arrow(values: NDArray[np.float64]) -> Any:
    """An array as an Arrow array; `pa.array` would import pandas."""
    import pyarrow as pa

    return pa.Array.from_buffers(pa.float64(), len(values), [None, pa.py_buffer(values)])


def group_keys(given: Any, kind: type, owner: str = "the model") -> Any:
    """A column of groups with entries of the type that the groups of a model, or of other files, have."""
    import pyarrow as pa

    own = given.type.value_type if pa.types.is_dictionary(given.type) else given.type
    if ("string" in str(own)) == (kind is str):
        return given
    given = _decoded(given)
    wanted = {str: pa.string(), int: pa.int64(), bool: pa.bool_()}[kind]
    try:
        return given.cast(wanted)
    except pa.ArrowInvalid:
        index = _first_invalid(given, wanted)
        requirement = f"must hold groups of type {kind.__name__}, as in {owner}"
        raise InvalidInputError("groups", requirement, value=given[index].as_py(), index=index) from None


def key_kind(given: Any) -> type | None:
    """The type of the groups in a column of this Arrow type; None if they are invalid."""
    import pyarrow as pa

    own = given.value_type if pa.types.is_dictionary(given) else given
    if "string" in str(own):
        return str
    return int if pa.types.is_integer(own) else bool if pa.types.is_boolean(own) else None


def joined_groups(parts: list[Any]) -> Any:
    """One column of the groups of several files."""
    import pyarrow as pa

    parts = [_decoded(part) for part in parts]
    parts = [part.cast(pa.large_string()) if key_kind(part.type) is str else part for part in parts]
    try:
        tables = [pa.table({"groups": part}) for part in parts]
        return pa.concat_tables(tables, promote_options="permissive")["groups"]
    except (pa.ArrowTypeError, pa.ArrowInvalid):
        found = f"got {' and '.join(dict.fromkeys(str(part.type) for part in parts))}"
        raise InvalidTypeError("groups", "must be all integers, all strings or all bools", found=found) from None


def text_keys(given: Any) -> Any:
    """The groups in a text file: integers if all are written as integers, otherwise text."""
    import pyarrow as pa

    try:
        integers = given.cast(pa.int64())
    except pa.ArrowInvalid:
        return given
    return integers if integers.cast(given.type).equals(given) else given


def _decoded(given: Any) -> Any:
    """The entries of a dictionary column; string views, which Arrow cannot trim, as strings."""
    import pyarrow as pa

    if isinstance(given, pa.ChunkedArray):
        return pa.chunked_array([_decoded(chunk) for chunk in given.chunks])
    if pa.types.is_dictionary(given.type):
        given = pa.DictionaryArray.from_arrays(given.indices, _decoded(given.dictionary)).dictionary_decode()
    return given.cast(pa.large_string()) if str(given.type) == "string_view" else given


def _parsed(argument: str, given: Any) -> Any:
    import pyarrow as pa
    from pyarrow import compute

    for kind in (pa.float64(), pa.bool_()):
        for text in (given, compute.utf8_trim_whitespace(given)):
            with contextlib.suppress(pa.ArrowInvalid):
                return text.cast(kind)
    index = _first_invalid(text, pa.float64())
    value = given[index].as_py()
    if not value.strip():
        refuse_missing(argument, repr(value), index)
    hint = hint_at_positive(text) if argument == "targets" else ""
    raise InvalidTypeError(argument, "must hold numbers", value=value, index=index, hint=hint)


def _first_invalid(text: Any, kind: Any) -> int:
    """The index of the first entry that cannot be cast, by bisection, because Arrow does not report it."""
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
