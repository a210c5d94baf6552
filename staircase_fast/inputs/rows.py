"""Scores, targets and weights as columns of equal length: checks that do not depend on the loss."""

from __future__ import annotations

import bisect
import math
import sys
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from staircase_fast.arithmetic.exact import Extent, order_of
from staircase_fast.errors import DROP_ROWS, InvalidInputError, InvalidTypeError, refuse_entries, shown
from staircase_fast.inputs.columns import Column, read_column, read_float_column
from staircase_fast.typing import ColumnLike

Columns = tuple[Column, Column, Column]  # scores, targets, weights
NO_WEIGHTS = np.empty(0)
_FEW_ROWS = 10  # with fewer rows, or without shares among the first targets, no columns seem to be swapped


def read_columns(scores: ColumnLike, targets: ColumnLike, sample_weight: ColumnLike | None) -> Columns:
    """The arguments of `fit` as columns of one length >= 1.  Their entries are not checked."""
    x = read_float_column("scores", scores)
    y = read_column("targets", targets)
    check_same_length("scores", x, "targets", y)
    if len(x) == 0:
        raise InvalidInputError("scores", "must have at least one row", found="got none")
    w = read_weights("sample_weight", sample_weight, "scores", x)
    check_same_index(scores=scores, targets=targets, sample_weight=sample_weight)
    return x, y, w


def copy_targets_and_weights(columns: Columns) -> Columns:
    """Copy what is read many times, so that a caller who changes it meanwhile does no harm.

    For fits that take much longer than a copy.  Scores are only read until the rows are sorted.
    """
    x, y, w = columns
    return x, y.copy(), w.copy()


def read_targets(argument: str, targets: ColumnLike) -> Column:
    """Targets alone, as `isotonic_regression` takes them."""
    y = read_column(argument, targets)
    if len(y) == 0:
        raise InvalidInputError(argument, "must have at least one row", found="got none")
    return y


def read_scores(argument: str, scores: ColumnLike) -> Column:
    """Scores as a float column: real or infinite, not NaN."""
    x = read_float_column(argument, scores)
    check_no_nan(argument, x, n_threads=1)
    return x


def read_weights(argument: str, weights: ColumnLike | None, rows_argument: str, rows: Column) -> Column:
    """Weights as float64, one per row; empty if there are none."""
    if weights is None:
        return NO_WEIGHTS
    w = read_column(argument, weights).astype(np.float64, copy=False)
    check_same_length(rows_argument, rows, argument, w)
    return w


def check_weights(argument: str, w: Column, extent: Extent) -> NDArray[np.bool_] | None:
    """Check weights; return which rows have a weight > 0, or None if all have."""
    check_each_weight(argument, w, extent)
    if len(w) * extent.highest == math.inf:
        try:
            math.fsum(w)
        except OverflowError:
            found = f"its {len(w)} entries reach {w.max()}"
            raise InvalidInputError(argument, "must have a finite sum", found=found) from None
    if extent.lowest != 0:
        return None
    present = w > 0
    if not present.any():
        raise InvalidInputError(argument, "must have an entry > 0", found=f"all {len(w)} are zero")
    return present


def check_each_weight(argument: str, w: Column, extent: Extent) -> None:
    """Each weight must be finite and >= 0."""
    if extent.first_bad >= 0:
        refuse_entries(argument, "must be finite", w, ~np.isfinite(w))
    if extent.lowest < 0:
        refuse_entries(argument, "must be >= 0", w, w < 0)


def check_same_length(argument: str, column: Column, other_argument: str, other: Column) -> None:
    """Two columns must have one entry per row."""
    if len(column) != len(other):
        found = f"got {len(column)} and {len(other)} entries"
        raise InvalidInputError(argument, "must have one entry per row", other=other_argument, found=found)


def read_classes(argument: str, classes: ColumnLike, table: Column) -> Column:
    """The class of each row, as the number of its column in a table of scores."""
    numbers = f"`np.unique({argument}, return_inverse=True)[1]`"
    hint = f"Pass the column number of each class: {numbers}, if columns are in the order of the classes."
    try:
        codes = read_column(argument, classes)
    except InvalidTypeError as error:
        if isinstance(error.value, str):
            error.hint = hint
        raise
    check_same_length("scores", table, argument, codes)
    k = table.shape[1]
    known = (codes >= 0) & (codes < k) & (codes == np.floor(codes))
    refuse_entries(argument, f"must be classes from 0 to {k - 1}", codes, ~known, hint=lambda: hint)
    return codes


def check_same_index(**columns: Any) -> None:
    """Columns of pandas must have equal indexes, because rows are matched by position.  Their lengths are equal."""
    indexes = {name: column.index for name, column in columns.items() if hasattr(type(column), "iloc")}
    if len(indexes) < 2:
        return
    (first, wanted), *others = indexes.items()
    for name, index in others:
        if not wanted.equals(index):
            rows = range(len(index))
            place = bisect.bisect_left(rows, True, key=lambda row: not wanted[: row + 1].equals(index[: row + 1]))
            hint = (
                f"Rows are matched by position. Use `{name}.loc[{first}.index]` to match them by label, or "
                "`.reset_index(drop=True)` on each if their rows are in the same order."
            )
            found = f"got labels {shown(wanted[place])} and {shown(index[place])}"
            raise InvalidInputError(first, "must have the same index", other=name, found=found, index=place, hint=hint)


def check_no_nan(argument: str, x: Column, n_threads: int) -> None:
    """No entry may be NaN."""
    if len(x):
        refuse_nan(argument, x, order_of(x, n_threads).first_nan)


def refuse_nan(argument: str, x: Column, first_nan: int) -> None:
    """Raise an error for the NaN at this index; -1 means that there is none."""
    if first_nan >= 0:
        value = x[first_nan].item()
        raise InvalidInputError(argument, "must not be NaN", value=value, index=first_nan, hint=DROP_ROWS)


def warn_if_swapped(scores: Any, targets: Any) -> None:
    """Shares are valid targets and 0 and 1 valid scores, but both together are most likely swapped.

    The columns are valid.  The first targets decide in most cases, so that this costs nothing.
    """
    y = np.asarray(targets)
    if len(y) < _FEW_ROWS or not any(0 < share < 1 for share in y[:_FEW_ROWS].tolist()):
        return
    x = np.asarray(scores)
    if ((x == 0) | (x == 1)).all() and x.min() < x.max() and y.min() >= 0 and y.max() <= 1:
        message = "The scores are all 0 or 1, and the targets are not. Are they swapped?"
        warnings.warn(message, UserWarning, stacklevel=_level_of_caller())


def _level_of_caller() -> int:
    """The `stacklevel` of a warning about the call that entered the package; the caller of this function issues it."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("staircase_fast."):
        frame, level = frame.f_back, level + 1
    return level
