"""What `VennAbers` and `CrossVennAbers` are given."""

from __future__ import annotations

from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from staircase_fast.arithmetic.exact import LABELS, UNIT_WEIGHTS, extent_of, order_of
from staircase_fast.errors import refuse_entries
from staircase_fast.inputs.columns import Column, read_array, read_column, read_float_column
from staircase_fast.inputs.options import check_number
from staircase_fast.inputs.rows import check_no_nan, check_same_length, check_weights, read_scores, read_weights
from staircase_fast.losses.rows import Rows
from staircase_fast.typing import ColumnLike


class NotFittedError(ValueError, AttributeError):
    """Something was asked that only a fit can tell; of both kinds, so that `hasattr` says no."""


class PairSteps(NamedTuple):
    """Clean steps of a predictor, in arrays of our own."""

    left: NDArray[np.float64]
    values: NDArray[np.float64]  # a row (p0, p1) for each step


def not_fitted(kind: str) -> NoReturn:
    """Refuse to tell what is not known yet."""
    raise NotFittedError(f"a {kind} must be fitted first; call `fit`.")


def query_weight(given: object) -> float:
    """The weight of a query: a finite number > 0."""
    weight = check_number("query_weight", given)
    if weight <= 0:
        raise ValueError(f"`query_weight` must be > 0; got {given!r}.")
    return weight


def labelled(scores: ColumnLike, labels: ColumnLike, sample_weight: ColumnLike | None) -> Rows:
    """Rows whose targets are labels, as bytes, without rows of weight 0."""
    x, y = read_float_column("scores", scores), read_column("labels", labels)
    check_same_length("scores", x, "labels", y)
    if len(x) == 0:
        raise ValueError("`scores` must have at least one row; got none.")
    w = read_weights("sample_weight", sample_weight, "scores", x)
    check_no_nan("scores", x, n_threads=1)
    refuse_entries("labels", "must be 0 or 1", y, (y != 0) & (y != 1))
    extent = extent_of(w, 1) if len(w) else UNIT_WEIGHTS
    present = check_weights("sample_weight", w, extent)
    y = y.astype(np.uint8, copy=False)
    if present is not None:
        x, y, w = x[present], y[present], w[present]
    return Rows(x, y, w, LABELS, extent, order_of(x, 1))


def by_fold(rows: Rows, folds: NDArray[np.int64]) -> list[tuple[int, Rows]]:
    """The rows of each fold, in ascending order of folds."""
    order = np.argsort(folds, kind="stable")
    numbers, starts = np.unique(folds[order], return_index=True)
    found = []
    for number, part in zip(numbers.tolist(), np.split(order, starts[1:]), strict=True):
        w = rows.weights[part] if len(rows.weights) else rows.weights
        own = rows._replace(scores=rows.scores[part], targets=rows.targets[part], weights=w)
        found.append((number, own._replace(order=order_of(own.scores, 1))))
    return found


def fold_column(folds: ColumnLike, scores: ColumnLike, sample_weight: ColumnLike | None) -> NDArray[np.int64]:
    """The fold of each row of weight > 0; each fold must have one."""
    given = read_column("folds", folds)
    if given.dtype.kind == "f":
        whole = np.floor(given) == given
        refuse_entries("folds", "must be integers", given, ~(whole & (np.abs(given) < 2.0**53)))
    numbers = given.astype(np.int64)
    check_same_length("scores", read_array("scores", scores), "folds", numbers)
    if sample_weight is None:
        return numbers
    present = numbers[read_column("sample_weight", sample_weight) > 0]
    lost = ~np.isin(numbers, present)
    refuse_entries("folds", "must each have a row with `sample_weight` > 0", numbers, lost)
    return present


def fold_queries(scores: ColumnLike, n_folds: int) -> tuple[Column, tuple[int, ...]]:
    """Scores to look up in all folds, or a column for each; and the shape of what is found in one fold."""
    given = read_array("scores", scores, exact=True)
    if given.ndim > 2 or (given.ndim == 2 and given.shape[1] != n_folds):
        raise ValueError(
            f"`scores` must be one for each query, or have a column for each of the {n_folds} folds; "
            f"got shape {given.shape}."
        )
    flat = read_float_column("scores", given.reshape(-1))
    check_no_nan("scores", flat, n_threads=1)
    return flat.reshape(given.shape if given.ndim == 2 else (-1, 1)), given.shape[:1]


def matching_folds(folds: list[Any], weights: list[float]) -> float:
    """The one weight of queries; each predictor must be of a fold of its own, in ascending order."""
    if len(folds) != len(weights) or not folds:
        raise ValueError(f"`folds` must have one entry per predictor; got {len(folds)} and {len(weights)}.")
    for index, fold in enumerate(folds):
        if type(fold) is not int or (index and fold <= folds[index - 1]):
            raise ValueError(f"`folds` must be integers that increase; got {fold!r} at index {index}.")
    if len(set(weights)) > 1:
        raise ValueError(f"`query_weight` must be the same for all folds; got {sorted(set(weights))}.")
    return weights[0]


def row_count(given: Any) -> int:
    """A number of rows."""
    if type(given) is not int or given < 1:
        raise ValueError(f"`n_samples` must be an integer >= 1; got {given!r}.")
    return given


def pair_steps(left: ColumnLike, p0: ColumnLike, p1: ColumnLike) -> PairSteps:
    """Judge the steps of a predictor, as a file gives them."""
    start = read_scores("left", left).astype(np.float64)
    if len(start) == 0:
        raise ValueError("`left` must have at least one step; got none.")
    refuse_entries("left", "must start at -inf", start[:1], start[:1] != -np.inf)
    refuse_entries("left", "must strictly increase", start[1:], ~(start[1:] > start[:-1]), 1)
    columns = {name: read_column(name, one).astype(np.float64) for name, one in (("p0", p0), ("p1", p1))}
    for name, column in columns.items():
        check_same_length("left", start, name, column)
        refuse_entries(name, "must be in [0, 1]", column, ~((column >= 0) & (column <= 1)))
        refuse_entries(name, "must not decrease", column[1:], column[1:] < column[:-1], 1)
    refuse_entries("p0", "must be <= `p1`", columns["p0"], columns["p0"] > columns["p1"])
    return PairSteps(start, np.column_stack((columns["p0"], columns["p1"])))
