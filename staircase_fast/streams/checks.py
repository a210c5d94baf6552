"""What `Online` and `Accumulator` are given: rows that arrive in score order, or batch by batch."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple, NoReturn

import numpy as np

from staircase_fast.arithmetic.exact import UNIT_WEIGHTS, Extent, extent_of, order_of
from staircase_fast.inputs.columns import Column, read_column, read_float_column
from staircase_fast.inputs.options import check_number, check_scalar
from staircase_fast.inputs.rows import (
    NO_WEIGHTS,
    Columns,
    check_finite_total,
    check_no_nan,
    check_same_length,
    check_weights,
    read_weights,
)
from staircase_fast.losses.parameters import range_text
from staircase_fast.losses.rows import Rows, check_rows, check_targets
from staircase_fast.typing import ColumnLike

if TYPE_CHECKING:
    from staircase_fast.losses import Loss


class Arrivals(NamedTuple):
    """Clean rows in score order, at least one, none of weight 0."""

    scores: Column
    targets: Column
    weights: Column  # float64, or empty where all are 1
    targets_extent: Extent
    weights_extent: Extent


def no_update_rule(loss: Loss) -> NoReturn:
    """Refuse a loss whose blocks cannot be told by a few numbers."""
    raise ValueError(
        f"`loss` must have an update rule: squared, log, Poisson, gamma and Tweedie losses, Linex, each with one "
        f"parameter for all samples, or an UpdateRule; got {loss!r}."
    )


def no_rows_yet() -> NoReturn:
    """Refuse to make a staircase of nothing."""
    raise ValueError("a staircase must have at least one row; none of weight > 0 has arrived.")


MODERATE_WEIGHT = 1e280  # as many of these as there can be have a finite sum


def sample(score: object, target: object, weight: object, newest: float, loss: Loss) -> None:
    """Refuse a single row that cannot come after those of the `newest` score."""
    x, w = check_scalar("score", score), check_number("sample_weight", weight)
    if math.isnan(x):
        raise ValueError(f"`score` must not be NaN; got {x}.")
    if isinstance(score, int) and x != score:
        raise ValueError(f"`score` must be an integer that float64 holds exactly; got {score}.")
    y, (low, high) = check_number("target", target), loss.target_range
    if not low <= y <= high:
        raise ValueError(f"`target` must be {range_text(low, high)} for {loss.name}; got {target!r}.")
    if w < 0:
        raise ValueError(f"`sample_weight` must be >= 0; got {weight!r}.")
    if w > 0 and x < newest:
        raise ValueError(f"`score` must be >= {newest}, the newest one; got {x}.")


def arriving_columns(scores: ColumnLike, targets: ColumnLike, sample_weight: ColumnLike | None) -> Columns:
    """Judge the form of rows that arrive: as in `fit`, but there may be none."""
    x = read_float_column("scores", scores)
    y = read_column("targets", targets)
    check_same_length("scores", x, "targets", y)
    return x, y, read_weights("sample_weight", sample_weight, "scores", x)


def arrivals(x: Column, y: Column, w: Column, loss: Loss, newest: float) -> Arrivals | None:
    """Judge rows that arrive after those of the `newest` score; None if all are absent."""
    if len(x) == 0:
        return None
    check_no_nan("scores", x, n_threads=1)
    y_extent, w_extent = extent_of(y, 1), extent_of(w, 1) if len(w) else UNIT_WEIGHTS
    check_targets("targets", y, y_extent, loss)
    if (w_extent.first_bad, w_extent.lowest, w_extent.highest) == (-1, 0, 0):
        return None
    present = check_weights("sample_weight", w, w_extent)
    if present is not None:
        x, y, w = x[present], y[present], w[present]
    if float(x[0]) < newest or order_of(x, 1).sign <= 0:
        before = np.append(newest, x[:-1])
        place = int(np.argmax(x < before))
        index = place if present is None else int(np.flatnonzero(present)[place])
        which = "newest one" if place == 0 else "one before it"
        raise ValueError(f"`scores` must be >= {before[place]}, the {which}; got {x[place]} at index {index}.")
    return Arrivals(x, y, w, y_extent, w_extent)


def finite_total(name: str, w: Column, before: float) -> None:
    """Refuse weights whose sum, with those that came before, no float64 holds."""
    check_finite_total(name, np.append(w, before))


def saveable(loss: Loss) -> None:
    """Refuse to write a loss that is made of functions."""
    if loss.name in ("custom", "update_rule"):
        raise TypeError(f"`loss` must not be made of functions, which are not saved; got {loss!r}: use pickle.")


def batch(scores: ColumnLike, targets: ColumnLike, sample_weight: ColumnLike | None, loss: Loss) -> Rows | None:
    """Rows of weight > 0, judged as `fit` judges them; None if there are none, which is no error here."""
    x, y, w = arriving_columns(scores, targets, sample_weight)
    if len(x) == 0:
        return None
    absent = len(w) > 0 and not np.any(w)
    found = check_rows(x, y, w if not absent else NO_WEIGHTS, loss, n_threads=1)
    if absent:
        return None
    if len(found.scores) < len(x):  # what is absent shall not count in what is kept for long
        found = found._replace(targets_extent=extent_of(found.targets, 1), weights_extent=extent_of(found.weights, 1))
    return found


def total_weight(so_far: float, more: float) -> float:
    """The weight of all rows that were added, which must be a number."""
    if so_far + more == math.inf:
        raise ValueError(f"`sample_weight` must have a finite sum over all rows; got {so_far}, and {more} more.")
    return so_far + more


def total_rows(so_far: int, more: int) -> int:
    """The number of all rows that were added, which must be one that int64 holds."""
    if so_far + more >= 2**62:
        raise ValueError(f"an Accumulator must have fewer than 2**62 rows; got {so_far}, and {more} more.")
    return so_far + more


def loss_of_every_row(loss: Loss) -> None:
    """Refuse parameters of single samples, where it is not known which samples will come."""
    if loss.parameter and np.ndim(getattr(loss, loss.parameter)):
        n = len(loss.parameters)
        raise ValueError(f"`{loss.parameter}` of the loss must be a number, the same for all rows; got {n} of them.")
    for place, arg in enumerate(getattr(loss, "args", ())):
        if np.ndim(arg):
            raise ValueError(
                f"`args` of the loss must be numbers, the same for all rows; entry {place} has {len(arg)} of them."
            )


def same_kind(given: object, kind: type, mine: tuple[Loss, bool]) -> None:
    """Refuse to take in what is no accumulator, or one of another loss or direction."""
    if not isinstance(given, kind):
        raise TypeError(f"`other` must be an {kind.__name__}; got {given!r}.")
    theirs = given.loss, given.increasing  # type: ignore[attr-defined]
    for name, own, other in zip(("loss", "increasing"), mine, theirs, strict=True):
        if own != other:
            raise ValueError(f"`other` must have the same {name}, {own!r}; got {other!r}.")
