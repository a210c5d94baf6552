"""Columns as scikit-learn's functions accept them, and the names of features."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_array
from sklearn.utils.validation import validate_data

from staircase_fast.inputs.columns import Column, read_array

FLOATS = (np.float64, np.float32)


def as_arrays(**columns: Any) -> list[Any]:
    """Convert columns that only our own functions can read to arrays; leave all others as they are."""
    ways = ("__dlpack__", "__arrow_c_array__", "__arrow_c_stream__")
    for name, column in columns.items():
        if not hasattr(column, "__array__") and any(hasattr(column, way) for way in ways):
            columns[name] = read_array(name, column)
    return [*columns.values()]


def as_floats(estimator: Any, X: Any, dtypes: tuple[Any, ...] = FLOATS, *, finite: bool = True) -> Column:
    """X as an array of one of the types, checked by scikit-learn."""
    how: dict[str, Any] = {"ensure_2d": False, "ensure_all_finite": finite, "estimator": estimator, "input_name": "X"}
    table: Column = check_array(X, dtype=list(dtypes), **how)
    return table


def check_feature_names(estimator: Any, X: Any, *, reset: bool) -> None:
    """Store the names of columns, or compare them with those of the fit."""
    if hasattr(X, "columns") or hasattr(estimator, "feature_names_in_"):
        validate_data(estimator, X, reset=reset, skip_check_array=True, ensure_2d=False)
