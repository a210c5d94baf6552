"""Read pandas columns and tables.  Their indexes are compared by `check_same_index` in `rows.py`."""

from __future__ import annotations

from typing import Any

import numpy as np

from staircase_fast.errors import refuse_missing
from staircase_fast.inputs.columns import Column, read_array, side_by_side


def read(name: str, values: Any) -> Column:
    """The numbers of a Series, an Index, a pandas array, or a DataFrame."""
    if values.ndim == 2:
        return _table(name, values)
    kind = values.dtype
    if isinstance(kind, np.dtype):
        return values.to_numpy()
    own = getattr(values, "array", values)  # without the index: faster
    if hasattr(kind, "pyarrow_dtype"):
        return read_array(name, own.__arrow_array__())
    if hasattr(kind, "numpy_dtype"):  # nullable: numbers and a mask
        _refuse_missing(name, own)
        return own.to_numpy(dtype=kind.numpy_dtype)
    if hasattr(kind, "categories"):
        return _categories(name, own)
    return np.asarray(own)  # sparse columns become dense; other entries are converted one by one


def _table(name: str, values: Any) -> Column:
    kinds = set(values.dtypes)
    if len(kinds) == 1 and isinstance(only := kinds.pop(), np.dtype) and only.kind in "fiub":
        return values.to_numpy()
    return side_by_side(name, [values.iloc[:, place] for place in range(values.shape[1])], len(values))


def _categories(name: str, own: Any) -> Column:
    _refuse_missing(name, own)
    if getattr(own.categories.dtype, "kind", "O") not in "fiub":
        return np.asarray(own, dtype=object)  # the error will name the first entry
    numbers: Column = read_array(name, own.categories)[own.codes]
    return numbers


def _refuse_missing(name: str, own: Any) -> None:
    absent = own.isna()
    if absent.any():
        refuse_missing(name, "<NA>", int(np.argmax(absent)))
