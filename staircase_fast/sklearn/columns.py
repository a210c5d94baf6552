"""Columns as scikit-learn's functions accept them, and the names of features."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import validate_data

from staircase_fast.inputs.columns import read_array

FLOATS = (np.float64, np.float32)


def as_arrays(**columns: Any) -> list[Any]:
    """Convert columns that only our own functions can read to arrays; leave all others as they are."""
    ways = ("__dlpack__", "__arrow_c_array__", "__arrow_c_stream__")
    return [
        read_array(name, column)
        if not hasattr(column, "__array__") and any(hasattr(column, way) for way in ways)
        else column
        for name, column in columns.items()
    ]


def check_feature_names(estimator: Any, X: Any, *, reset: bool) -> None:
    """Store the names of columns, or compare them with those of the fit."""
    if hasattr(X, "columns") or hasattr(estimator, "feature_names_in_"):
        validate_data(estimator, X, reset=reset, skip_check_array=True, ensure_2d=False)
