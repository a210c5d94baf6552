"""The loss of each prefix of a sequence, and unimodal fits: increasing, then decreasing."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from staircase_fast.arithmetic.exact import extent_of
from staircase_fast.fitting import isotonic_regression
from staircase_fast.inputs.columns import Column
from staircase_fast.inputs.options import check_direction
from staircase_fast.inputs.rows import check_same_index, check_weights, read_targets, read_weights
from staircase_fast.losses import SquaredError
from staircase_fast.losses.rows import check_targets
from staircase_fast.streams import _prefix
from staircase_fast.typing import ColumnLike, public_class


@public_class("staircase_fast")
class UnimodalResult(NamedTuple):
    """The result of `unimodal_regression`.

    Attributes
    ----------
    x : ndarray of float64
        The fitted value of every entry of y.
    weights : ndarray of float64
        The total weight of each block.
    blocks : ndarray of intp
        Starts of the blocks, and the length of y.
    peak : int
        The first index of the greatest value: x does not decrease before it, and does not increase after it.

    Examples
    --------
    >>> import staircase_fast as sf
    >>> sf.unimodal_regression([1, 3, 2]).peak
    1
    """

    x: NDArray[np.float64]
    weights: NDArray[np.float64]
    blocks: NDArray[np.intp]
    peak: int


def prefix_losses(y: ColumnLike, weights: ColumnLike | None = None, *, increasing: bool = True) -> NDArray[np.float64]:
    """The least squared error of a monotone fit to each prefix of a sequence; linear time for all prefixes together.

    Parameters
    ----------
    y : array_like of shape (n,)
        Targets, in the order in which the fit is monotone.
    weights : array_like of shape (n,), optional
        Weights >= 0; entries of weight 0 are ignored.
    increasing : bool, default True
        Whether the fits increase or decrease.

    Returns
    -------
    ndarray of float64, of shape (n,)
        Entry k is the least sum of weight * (y - x)**2 over the entries 0 to k for monotone x.  It never decreases.

    Notes
    -----
    Thread-safety: inputs are only read; the kernel runs without the GIL.

    Examples
    --------
    >>> import staircase_fast as sf
    >>> sf.prefix_losses([1, 3, 2, 2, 5])
    array([0.        , 0.        , 0.5       , 0.66666667, 0.66666667])
    """
    rising = check_direction(increasing, auto=False)
    targets, w = _rows(y, weights)
    if not len(w) or w.all():
        return _losses(targets, w, decreasing=not rising)
    present = w > 0
    # an ignored entry has the loss of the prefix before it
    return np.append(0.0, _losses(targets[present], w[present], decreasing=not rising))[np.cumsum(present)]


def unimodal_regression(y: ColumnLike, weights: ColumnLike | None = None) -> UnimodalResult:
    """Fit the sequence of least squared error that first increases, then decreases.

    Parameters
    ----------
    y, weights : array_like of shape (n,)
        As in `prefix_losses`.  Entries of weight 0 get the value of the block before them.

    Returns
    -------
    UnimodalResult

    Notes
    -----
    The sequence is split in two; the first part gets an increasing fit, the second a decreasing one.  `prefix_losses`
    from both ends gives the loss of each split in linear time.  If several have the least loss, the first is chosen.

    Thread-safety: inputs are only read; the kernels run without the GIL.

    Examples
    --------
    >>> import staircase_fast as sf
    >>> result = sf.unimodal_regression([1, 3, 2, 6, 7, 5, 1, 2])
    >>> result.x
    array([1. , 2.5, 2.5, 6. , 7. , 5. , 1.5, 1.5])
    >>> result.peak, result.blocks
    (4, array([0, 1, 3, 4, 5, 6, 8]))
    """
    targets, w = _rows(y, weights)
    places = np.flatnonzero(w > 0) if len(w) else np.arange(len(targets))
    n = len(targets)
    if len(places) < n:
        targets, w = targets[places], w[places]
    before = np.append(0.0, _losses(targets, w, decreasing=False))
    after = np.append(0.0, _losses(targets[::-1], w[::-1], decreasing=False))[::-1]
    cut = int(np.argmin(before + after))
    parts = [
        (start, isotonic_regression(targets[part], weights=w[part] if len(w) else None, increasing=rising))
        for start, part, rising in ((0, slice(cut), True), (cut, slice(cut, None), False))
        if len(targets[part])
    ]
    x = np.concatenate([one.x for _, one in parts])
    starts = np.concatenate([start + one.blocks[:-1] for start, one in parts])
    totals = np.concatenate([one.weights for _, one in parts])
    first = np.append(True, x[starts[1:]] != x[starts[:-1]])  # the two parts may have the same value at the split
    starts, totals = starts[first], np.add.reduceat(totals, np.flatnonzero(first))
    values, starts = x[starts], np.append(places[starts], n)
    starts[0] = 0
    return UnimodalResult(np.repeat(values, np.diff(starts)), totals, starts, int(starts[np.argmax(values)]))


def _rows(y: ColumnLike, weights: ColumnLike | None) -> tuple[Column, Column]:
    """Read and check targets and weights."""
    targets = read_targets("y", y)
    w = read_weights("weights", weights, "y", targets)
    check_same_index(y=y, weights=weights)
    check_targets("y", targets, extent_of(targets, 1), SquaredError())
    if len(w):
        check_weights("weights", w, extent_of(w, 1))
    return targets, w


def _losses(targets: Column, weights: Column, *, decreasing: bool) -> NDArray[np.float64]:
    """The losses of all prefixes; no weight is 0."""
    y, y_exponent = _rescaled(targets)
    w, w_exponent = _rescaled(weights)
    found = np.empty(len(y))
    _prefix.losses(y, w, decreasing, np.empty((len(y), _prefix.WORK_COLUMNS)), found)
    if y_exponent or w_exponent:
        with np.errstate(over="ignore"):  # an overflow is inf
            found = np.ldexp(found, 2 * y_exponent + w_exponent)
    return found


def _rescaled(column: Column) -> tuple[NDArray[np.float64], int]:
    """A column divided by 2**exponent, so that its squares neither overflow nor underflow, and the exponent."""
    numbers = np.ascontiguousarray(column, dtype=np.float64)
    greatest = float(np.abs(numbers).max()) if len(numbers) else 0.0
    exponent = 0 if 1e-70 < greatest < 1e70 or greatest == 0 else math.frexp(greatest)[1]
    return np.ldexp(numbers, -exponent) if exponent else numbers, exponent
