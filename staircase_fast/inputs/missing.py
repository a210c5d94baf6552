"""Read scores of which some are missing: None, NaN, pandas' NA, masked entries, and nulls become NaN.

The other entries are read as without missing ones, by `columns.py`.  So errors are the same, and integers stay exact.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from staircase_fast.errors import InvalidInputError
from staircase_fast.inputs.columns import (
    Column,
    as_array,
    as_exact_float,
    exports_arrow,
    made_by,
    read_array,
    read_float_column,
)  # fmt: skip
from staircase_fast.inputs.options import check_choice


def keeps_nan(missing: object) -> bool:
    """The option `missing` of `predict`: whether missing scores get NaN."""
    return check_choice("missing", missing, ("raise", "nan")) == "nan"


def read_with_nan(name: str, values: Any) -> Column:
    """An array of floats of the shape of `values`."""
    if isinstance(values, np.ma.MaskedArray):
        mask = np.ma.getmaskarray(values)
        return _scattered(name, mask.reshape(-1), values.data[~mask]).reshape(mask.shape)
    if made_by("pandas", values) and hasattr(type(values), "__array__"):
        if values.ndim == 2:
            return _side_by_side(name, [values.iloc[:, place] for place in range(values.shape[1])], len(values))
        mask = np.asarray(values.isna())
        return _scattered(name, mask, values[~mask])
    if not isinstance(values, np.ndarray) and exports_arrow(values):
        return _from_arrow(name, values)
    array = as_array(name, values)
    if array.dtype.kind != "O":
        array = read_array(name, array)
        return array if array.dtype.kind == "f" else as_exact_float(name, array.reshape(-1)).reshape(array.shape)
    flat = array.reshape(-1)
    mask = np.array([_is_missing(entry) for entry in flat], dtype=np.bool_)
    return _scattered(name, mask, flat[~mask]).reshape(array.shape)


def _is_missing(entry: object) -> bool:
    return entry is None or entry is np.ma.masked or type(entry).__name__ in ("NAType", "NaTType")


def _from_arrow(name: str, values: Any) -> Column:
    """Arrow data, with null entries; NaN stays NaN."""
    from staircase_fast.inputs import columns_arrow

    if hasattr(values, "columns") or hasattr(values, "get_columns"):  # a table of polars or pyarrow
        columns = values.get_columns() if hasattr(values, "get_columns") else values.columns
        return _side_by_side(name, list(columns), len(values))
    if made_by("polars", values):
        return _scattered(name, values.is_null().to_numpy(), values.drop_nulls())
    column = columns_arrow.as_pyarrow(name, values)
    mask = columns_arrow.flags(column.is_null()).astype(np.bool_)
    return _scattered(name, mask, column.drop_null())


def _side_by_side(name: str, columns: list[Any], n_rows: int) -> Column:
    parts = [read_with_nan(f"{name}[:, {place}]", column) for place, column in enumerate(columns)]
    return np.array(parts).reshape(len(parts), n_rows).T


def _scattered(name: str, mask: NDArray[np.bool_], present: Any) -> Column:
    """The present entries at their places, and NaN where the mask is set."""
    try:
        numbers = read_float_column(name, present) if not mask.all() else np.empty(0)
    except InvalidInputError as error:
        if error.index is not None:
            error.index = int(np.flatnonzero(~mask)[error.index])
        raise
    found = np.full(mask.shape, np.nan, dtype=numbers.dtype)
    found[~mask] = numbers
    return found
