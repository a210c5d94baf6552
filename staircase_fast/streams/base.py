"""What `Online` and `Accumulator` share: their base class, and checks of their arguments and files."""

from __future__ import annotations

import math
from typing import NoReturn, Unpack, overload

import numpy as np
from numpy.typing import NDArray

from staircase_fast.arithmetic.exact import Extent, extent_of
from staircase_fast.errors import InvalidInputError, InvalidTypeError
from staircase_fast.inputs.columns import read_column, read_float_column
from staircase_fast.inputs.options import check_direction
from staircase_fast.inputs.rows import NO_WEIGHTS, Columns, check_same_index, check_same_length, read_weights
from staircase_fast.losses import Loss, loss_of
from staircase_fast.losses.rows import Rows, check_rows
from staircase_fast.staircase.result import Staircase
from staircase_fast.storage.documents import Saved, refuse_field
from staircase_fast.typing import ColumnLike, PredictOptions, ScalarLike


class Stream(Saved):
    """Rows that arrive over time, with one loss and one direction."""

    __slots__ = ("_increasing", "_lock", "_loss")

    def __init__(self, loss: str | Loss = "squared", increasing: bool = True) -> None:
        import threading  # slow to import

        self._loss = loss_of(loss)
        self._increasing = bool(check_direction(increasing, auto=False))
        self._lock = threading.Lock()

    @property
    def loss(self) -> Loss:
        """The loss that is minimised."""
        return self._loss

    @property
    def increasing(self) -> bool:
        """Whether values increase with the score."""
        return self._increasing

    def staircase(self) -> Staircase:
        """The optimal staircase of all rows so far, equal to `fit`.

        Returns
        -------
        Staircase
            It is computed once and cached until rows are added.

        Examples
        --------
        >>> import staircase_fast as sf
        >>> online = sf.Online()
        >>> online.extend([1, 2, 3], [1, 3, 2])
        >>> online.staircase() == sf.fit([1, 2, 3], [1, 3, 2])
        True
        """
        raise NotImplementedError

    @overload
    def predict(self, scores: ScalarLike, **options: Unpack[PredictOptions]) -> np.float64: ...
    @overload
    def predict(self, scores: ColumnLike, **options: Unpack[PredictOptions]) -> NDArray[np.float64]: ...
    def predict(self, scores: ColumnLike, **options: Unpack[PredictOptions]) -> np.float64 | NDArray[np.float64]:
        """Evaluate the staircase of all rows so far.

        Parameters
        ----------
        scores : array_like of any shape
        **options
            As in `Staircase.predict`.

        Returns
        -------
        ndarray of float64, or float64 for a single score

        Examples
        --------
        >>> import staircase_fast as sf
        >>> seen = sf.Accumulator()
        >>> seen.add([1, 2], [10, 20])
        >>> seen.predict([1.5, 3], interpolation="linear", out_of_bounds="nan")
        array([15., nan])
        """
        return self.staircase().predict(scores, **options)


def read_rows(scores: ColumnLike, targets: ColumnLike, sample_weight: ColumnLike | None) -> Columns:
    """The arguments as columns of one length, as in `fit`, but possibly empty."""
    x = read_float_column("scores", scores)
    y = read_column("targets", targets)
    check_same_length("scores", x, "targets", y)
    w = read_weights("sample_weight", sample_weight, "scores", x)
    check_same_index(scores=scores, targets=targets, sample_weight=sample_weight)
    return x, y, w


def check_batch(scores: ColumnLike, targets: ColumnLike, sample_weight: ColumnLike | None, loss: Loss) -> Rows | None:
    """Rows of weight > 0, checked as in `fit`; None if there are none, which is allowed here."""
    return check_present(read_rows(scores, targets, sample_weight), loss)


def check_present(columns: Columns, loss: Loss) -> Rows | None:
    """The same for columns that have been read."""
    x, y, w = columns
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


def extent_from(name: str, fields: list[float], low: float, high: float) -> Extent:
    """The extent of numbers in [low, high], from the field `name` of a file."""
    lowest, highest, least, integral = fields
    if not (low <= lowest <= highest <= high and math.isfinite(lowest) and math.isfinite(highest)):
        refuse_field(name, f"must have a least and a greatest number in [{low:g}, {high:g}]", value=fields)
    ends = [least, *(end for end in (lowest, highest) if end)]
    if not least > 0 or any(abs(end) < least for end in ends):
        refuse_field(name, "must have a least magnitude above 0 and not above the others", value=fields)
    if integral not in (0, 1) or (integral and any(end != np.floor(end) for end in ends)):
        refuse_field(name, "must say whether all numbers are integers", value=fields)
    return Extent(-1, lowest, highest, least, bool(integral))
