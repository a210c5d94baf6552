"""Columns and tables of pandas: rows count by their place, whatever the index says."""

from __future__ import annotations

from typing import Any

import numpy as np

from staircase_fast.errors import refuse_missing
from staircase_fast.inputs.columns import Column, read_array, side_by_side


def read(name: str, values: Any) -> Column:
    """The numbers of a Series, an Index, an array of pandas, or of a whole DataFrame."""
    if values.ndim == 2:
        return _table(name, values)
    kind = values.dtype
    if isinstance(kind, np.dtype):
        return values.to_numpy()
    own = getattr(values, "array", values)  # without an index, which takes time
    if hasattr(kind, "pyarrow_dtype"):
        return read_array(name, own.__arrow_array__())
    if hasattr(kind, "numpy_dtype"):  # nullable: numbers, and beside them which are missing
        _none_missing(name, own)
        return own.to_numpy(dtype=kind.numpy_dtype)
    if hasattr(kind, "categories"):
        return _categories(name, own)
    return np.asarray(own)  # sparse ones become dense, and of the rest each entry is looked at


def _table(name: str, values: Any) -> Column:
    kinds = set(values.dtypes)
    if len(kinds) == 1 and isinstance(only := kinds.pop(), np.dtype) and only.kind in "fiub":
        return values.to_numpy()
    return side_by_side(name, [values.iloc[:, place] for place in range(values.shape[1])], len(values))


def _categories(name: str, own: Any) -> Column:
    """Categories that are numbers stand for them; what other ones are is said of a row."""
    _none_missing(name, own)
    if getattr(own.categories.dtype, "kind", "O") not in "fiub":
        return np.asarray(own, dtype=object)
    numbers: Column = read_array(name, own.categories)[own.codes]
    return numbers


def _none_missing(name: str, own: Any) -> None:
    absent = own.isna()
    if absent.any():
        refuse_missing(name, "<NA>", int(np.argmax(absent)))
