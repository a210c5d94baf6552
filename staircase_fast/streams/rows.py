"""Checks of the arguments of `Online` and `Accumulator`."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from staircase_fast.arithmetic.exact import extent_of
from staircase_fast.errors import InvalidInputError, InvalidTypeError
from staircase_fast.inputs.columns import read_column, read_float_column
from staircase_fast.inputs.rows import NO_WEIGHTS, Columns, check_same_length, read_weights
from staircase_fast.losses import Loss
from staircase_fast.losses.rows import Rows, check_rows
from staircase_fast.typing import ColumnLike


def read_rows(scores: ColumnLike, targets: ColumnLike, sample_weight: ColumnLike | None) -> Columns:
    """The arguments as columns of one length, as in `fit`, but possibly empty."""
    x = read_float_column("scores", scores)
    y = read_column("targets", targets)
    check_same_length("scores", x, "targets", y)
    return x, y, read_weights("sample_weight", sample_weight, "scores", x)


def check_batch(scores: ColumnLike, targets: ColumnLike, sample_weight: ColumnLike | None, loss: Loss) -> Rows | None:
    """Rows of weight > 0, checked as in `fit`; None if there are none, which is allowed here."""
    x, y, w = read_rows(scores, targets, sample_weight)
    if len(x) == 0:
        return None
    absent = len(w) > 0 and not np.any(w)
    found = check_rows(x, y, w if not absent else NO_WEIGHTS, loss, n_threads=1)
    if absent:
        return None
    if len(found.scores) < len(x):  # extents of rows that are not stored could cost memory
        found = found._replace(targets_extent=extent_of(found.targets, 1), weights_extent=extent_of(found.weights, 1))
    return found


def refuse_no_rows() -> NoReturn:
    """Raise the error for a staircase without rows."""
    raise InvalidInputError("", "a staircase must have at least one row", found="none of weight > 0 has arrived")


def check_saveable(loss: Loss) -> None:
    """Files cannot hold functions."""
    if loss.name in ("custom", "update_rule"):
        requirement = "must not be made of functions, which are not saved"
        raise InvalidTypeError("loss", requirement, value=loss, hint="Use pickle.")


def refuse_field(name: str, requirement: str, **details: Any) -> NoReturn:
    """Raise an error about a field of a file."""
    raise InvalidInputError("", f"field `{name}` {requirement}", **details)


def check_scalar_parameters(loss: Loss) -> None:
    """Parameters per row are invalid in an accumulator, which does not know its rows in advance."""
    if loss.parameter and np.ndim(getattr(loss, loss.parameter)):
        found = f"got {len(loss.parameters)} of them"
        raise InvalidInputError(loss.parameter, "of the loss must be a number, the same for all rows", found=found)
    for place, arg in enumerate(getattr(loss, "args", ())):
        if np.ndim(arg):
            found = f"entry {place} has {len(arg)} of them"
            raise InvalidInputError("args", "of the loss must be numbers, the same for all rows", found=found)
