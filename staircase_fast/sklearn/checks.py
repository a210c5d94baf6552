"""What the estimators for scikit-learn are given, and every message about it.

Where scikit-learn's users expect a message of its own, that is what they get: arrays go through its functions.
"""

from __future__ import annotations

import warnings
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_array, check_consistent_length, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from staircase_fast.inputs.columns import Column, read_array
from staircase_fast.inputs.options import check_direction
from staircase_fast.typing import Bounds

_FLOATS = (np.float64, np.float32)
_OTHER_WAYS = ("__dlpack__", "__arrow_c_array__", "__arrow_c_stream__")


def readable(**given: Any) -> list[Any]:
    """Columns that scikit-learn's functions cannot read but ours can, as arrays; all others as they are."""
    return [
        read_array(name, one)
        if not hasattr(one, "__array__") and any(hasattr(one, way) for way in _OTHER_WAYS)
        else one
        for name, one in given.items()
    ]


def one_feature(estimator: Any, X: Any, dtype: Any = _FLOATS) -> Column:
    """One finite number per row, of shape (n,) or (n, 1)."""
    table: Column = check_array(X, dtype=list(dtype), ensure_2d=False, estimator=estimator, input_name="X")
    if not (table.ndim == 1 or (table.ndim == 2 and table.shape[1] == 1)):
        raise ValueError(
            f"Isotonic regression input X should be a 1d array or 2d array with 1 feature; got shape {table.shape}."
        )
    return table.reshape(-1)


def feature_names(estimator: Any, X: Any, *, reset: bool) -> None:
    """Remember the names of columns, or hold them against those that were fitted."""
    if hasattr(X, "columns") or hasattr(estimator, "feature_names_in_"):
        validate_data(estimator, X, reset=reset, skip_check_array=True, ensure_2d=False)


def value_bounds(y_min: object, y_max: object) -> Bounds:
    """Bounds of values, as `fit` takes them."""
    if y_min is None and y_max is None:
        return None
    given = []
    for name, one in (("y_min", y_min), ("y_max", y_max)):
        try:
            given.append(None if one is None else float(one))  # type: ignore[arg-type]
        except (TypeError, ValueError):
            raise TypeError(f"`{name}` must be a number or None; got {one!r}.") from None
        if one is not None and given[-1] != given[-1]:
            raise ValueError(f"`{name}` must not be NaN; got {one!r}.")
    low, high = given
    if low is not None and high is not None and low > high:
        raise ValueError(f"`y_min` must be <= `y_max`; got {y_min!r} and {y_max!r}.")
    return low, high


def targets(X: Column, y: Any, sample_weight: Any) -> Column:
    """Finite targets, as many as there are rows; labels stay bool or integers."""
    if y is None:
        raise ValueError("StaircaseRegressor requires y to be passed, but the target y is None.")
    numbers = check_array(y, ensure_2d=False, dtype="numeric", input_name="y")
    check_consistent_length(X, numbers, sample_weight)
    column: Column = column_or_1d(numbers, warn=True)
    return column


def within(scores: Column, low: float, high: float) -> None:
    """Refuse queries outside the fitted scores; code that was written for SciPy's words finds them."""
    outside = (scores < low) | (scores > high)
    if outside.any():
        row = int(np.argmax(outside))
        side = "below" if scores[row] < low else "above"
        raise ValueError(
            f"A value in x_new is {side} the interpolation range: `T` must be in [{low}, {high}]; "
            f"got {scores[row].item()!r} at index {row}."
        )


def one_direction(increasing: object) -> bool:
    """Which way values go, where that cannot be found out."""
    if isinstance(increasing, str) and increasing == "auto":
        raise ValueError("`increasing` must be True or False for `partial_fit`; got 'auto'.")
    return bool(check_direction(increasing, auto=False))


def rows_are_gone() -> NoReturn:
    """Refuse more rows after a fit that kept none."""
    raise ValueError("`partial_fit` must not follow `fit`, which keeps no rows: begin with `partial_fit`, or `clone`.")


def same_fit(given: tuple[Any, bool], before: tuple[Any, bool]) -> None:
    """Refuse parameters that were changed between two parts of one fit."""
    for name, now, then in zip(("loss", "increasing"), given, before, strict=True):
        if now != then:
            raise ValueError(f"`{name}` must stay {then!r} from one `partial_fit` to the next; got {now!r}.")


def labels(y: Any) -> tuple[Column, NDArray[np.intp]]:
    """The classes in ascending order, and the class of each row; at least two."""
    column = column_or_1d(y, warn=True)
    if not len(column):
        raise ValueError("`y` must have at least one row; got none.")
    if column.dtype.kind in "biu":  # the usual case, without a sort
        low, high = column.min(), column.max()
        second = column == high
        if low != high and np.all(second | (column == low)):
            return np.array([low, high]), second.astype(np.intp)
    try:
        check_classification_targets(y)
        classes, codes = np.unique(column, return_inverse=True)
    except TypeError as error:
        raise TypeError(f"`y` must have classes of one kind, which can be put in order; {error}.") from None
    if len(classes) < 2:
        raise ValueError(f"`y` must have at least 2 classes; got 1 class, {classes.tolist()[0]!r}.")
    return classes, codes.reshape(-1)


def score_table(estimator: Any, X: Any, n_classes: int) -> Column:
    """Scores of two classes, of shape (n,), or of more, of shape (n, n_classes)."""
    # scores may be infinite, as log-odds are; those that are NaN are refused where they are fitted or looked up
    table = check_array(
        X, dtype=list(_FLOATS), ensure_2d=False, ensure_all_finite=False, estimator=estimator, input_name="X"
    )
    return table_of_classes("X", table, n_classes)


def table_of_classes(name: str, table: Column, n_classes: int) -> Column:
    """The score of the second of two classes, or one for each of more."""
    if n_classes == 2 and (table.ndim == 1 or (table.ndim == 2 and table.shape[1] in {1, 2})):
        return table if table.ndim == 1 else table[:, -1]
    if n_classes > 2 and table.ndim == 2 and table.shape[1] == n_classes:
        return table
    wanted = "(n,), (n, 1) or (n, 2)" if n_classes == 2 else f"(n, {n_classes})"
    raise ValueError(f"`{name}` must be scores of shape {wanted} for {n_classes} classes; got shape {table.shape}.")


def response(estimator: Any) -> str:
    """The method of a classifier that tells its scores."""
    for name in ("decision_function", "predict_proba"):
        if hasattr(estimator, name):
            return name
    raise TypeError(f"`estimator` must have decision_function or predict_proba; got {estimator!r}.")


def same_classes(estimator: Any, classes: Column) -> None:
    """Refuse what is no fitted classifier, or has learned other classes than those of y."""
    if not hasattr(estimator, "classes_"):
        check_is_fitted(estimator)
        raise TypeError(f"`estimator` must be a classifier, which has `classes_` once it is fitted; got {estimator!r}.")
    known = estimator.classes_
    if not np.array_equal(known, classes):
        raise ValueError(f"`y` must have the classes of `estimator`, {known.tolist()}; got {classes.tolist()}.")


def some_splits(splits: list[Any]) -> None:
    """Refuse a way to split rows that does not split them, as an iterator that has been used."""
    if not splits:
        raise ValueError("`cv` must give at least one split; got none (an iterator gives its splits only once).")


def some_weight(weights: Column | None, part: str = "") -> None:
    """Refuse rows, all of them or those of a part, that are all absent."""
    if weights is not None and not weights.any():
        raise ValueError(f"`sample_weight` must have an entry > 0{part}; all {len(weights)} are zero.")


def every_class(codes: NDArray[np.intp], classes: Column, part: str, split: int) -> None:
    """Refuse a split of which a part lacks a class."""
    missing = np.flatnonzero(np.bincount(codes, minlength=len(classes)) == 0)
    if len(missing):
        advice = "" if part == "training" else "; StratifiedKFold or `ensemble=False` would do"
        raise ValueError(
            f"`cv` must leave rows of every class in the {part} part of a split; "
            f"split {split} has none of class {classes.tolist()[missing[0]]!r}{advice}."
        )


def ensemble(given: object, *, auto: bool) -> bool:
    """Whether there is a calibrated classifier for each split."""
    if isinstance(given, str) and given == "auto":
        return auto
    if isinstance(given, (bool, np.bool_)):
        return bool(given)
    raise ValueError(f"`ensemble` must be True, False or 'auto'; got {given!r}.")


def nothing_to_pass(fit_params: dict[str, Any]) -> None:
    """Refuse what is meant for an estimator that is not there."""
    for name in fit_params:
        raise TypeError(f"`{name}` must not be passed where there is no `estimator` to take it.")


def weights_unused(estimator: Any) -> None:
    """Warn that a classifier takes no weights."""
    said = f"{type(estimator).__name__} takes no `sample_weight`: weights are used for the calibration alone."
    warnings.warn(said, UserWarning, stacklevel=4)
