"""`Online`: the optimal staircase of rows that arrive in score order."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from staircase_fast.arithmetic.exact import UNIT_WEIGHTS, extent_of, order_of
from staircase_fast.bisection.closed_forms import rates_of
from staircase_fast.errors import InvalidInputError
from staircase_fast.inputs.columns import Column
from staircase_fast.inputs.options import check_number, check_scalar
from staircase_fast.inputs.rows import check_weights, refuse_nan
from staircase_fast.losses import Linex, Loss, PoissonDeviance, UpdateRule
from staircase_fast.losses.rows import check_targets
from staircase_fast.staircase.result import Staircase
from staircase_fast.staircase.steps import Steps
from staircase_fast.streams import _online, online_json
from staircase_fast.streams.base import Stream, read_rows, refuse_no_rows
from staircase_fast.streams.online_rule import RuleBlocks
from staircase_fast.typing import ColumnLike, public_class

_NUMBERS = frozenset((float, int, bool, np.float64))  # types that need no further checks
_EXACT = 2.0**53  # every integer below this is a float
_GREATEST = float(np.finfo(np.float64).max)
_KERNEL_TYPES = (np.float64, np.uint8, np.int64)


@public_class("staircase_fast")
class Online(Stream):
    """The optimal staircase of rows that arrive in score order, one by one or many at a time (paper, section V).

    A row costs constant time on average.  Rows are not kept: memory grows with the number of steps.  At any time,
    `staircase()` equals `fit` of all rows so far: bit for bit if steps are means or given by an `UpdateRule`, and to a
    few ulps for `Linex`.

    Parameters
    ----------
    loss : str or Loss, default "squared"
        A loss with an update rule: the squared error, log loss, Poisson (with one exposure for all rows), gamma or
        Tweedie deviance, `Linex` (with one shape for all rows), or an `UpdateRule`.
    increasing : bool, default True
        Whether values increase or decrease with the score.

    Notes
    -----
    Rows with the newest score are one observation.  More of them may arrive, so this observation can merge with other
    steps and separate from them again, until a greater score arrives.  An `UpdateRule` sees the rows of a score in
    sorted order; the rows of the newest score are therefore kept.

    Thread-safety: any number of threads may use one object; calls are executed one at a time.  The functions of an
    `UpdateRule` must not use the object that calls them.

    Examples
    --------
    >>> import staircase_fast as sf
    >>> online = sf.Online()
    >>> online.append(1, 5)
    >>> online.append(2, 0)
    >>> online.staircase().values
    array([2.5])
    >>> online.append(2, 20)
    >>> online.staircase().values
    array([ 5., 10.])
    >>> online.extend([3, 4, 5], [30, 12, 40])
    >>> online.n_samples, online.n_steps, online.n_merges
    (6, 4, 2)
    >>> online.predict([2.5, 3.5])
    array([10., 21.])
    """

    _WHAT = online_json.WHAT

    def __init__(self, loss: str | Loss = "squared", increasing: bool = True) -> None:
        super().__init__(loss, increasing)
        self._blocks = _new_blocks(self._loss, decreasing=not self._increasing)
        low, high = self._loss.target_range
        self._target_range = max(low, -_EXACT), min(high, _EXACT)
        self._stairs: Staircase | None = None

    @property
    def n_samples(self) -> int:
        """Number of rows of weight > 0 so far."""
        with self._lock:
            return int(self._blocks.n_rows)

    @property
    def n_steps(self) -> int:
        """Number of steps of the staircase of all rows so far.

        After new rows, this takes as long as `staircase`: time proportional to the number of steps.
        """
        return self._counts()[1]

    @property
    def n_merges(self) -> int:
        """Number of merges that led to these steps: `n_samples` - `n_steps`."""
        n_samples, n_steps = self._counts()
        return n_samples - n_steps

    def append(self, score: float, target: float, sample_weight: float = 1.0) -> None:
        """Add one row; its score must not be below the newest one.

        Parameters
        ----------
        score, target : float
        sample_weight : float, default 1.0
            A row of weight 0 is ignored.

        Examples
        --------
        >>> import staircase_fast as sf
        >>> online = sf.Online()
        >>> online.append(0.5, 1)
        >>> online.append(0.4, 1)
        Traceback (most recent call last):
            ...
        staircase_fast.InvalidInputError: `score` must be >= 0.5, the newest one; got 0.4.
        Use `Accumulator` for rows in any order.
        """
        with self._lock:
            newest = self._blocks.newest
            lowest, highest = self._target_range
            if (
                type(score) in _NUMBERS
                and type(target) in _NUMBERS
                and type(sample_weight) in _NUMBERS
                and newest <= score
                and -_EXACT < score < _EXACT
                and lowest <= target <= highest
                and 0 < sample_weight <= _GREATEST
            ):
                self._stairs = None  # before the row is added: an interrupt may come after it
                self._blocks.append(float(score), float(target), float(sample_weight))
                return
            check_scalar("score", score)
            check_number("target", target)
            check_number("sample_weight", sample_weight)
            try:
                self._add(*read_rows([score], [target], [sample_weight]))
            except InvalidInputError as error:
                error.argument, error.index = error.argument.removesuffix("s"), None
                raise

    def extend(self, scores: ColumnLike, targets: ColumnLike, sample_weight: ColumnLike | None = None) -> None:
        """Add rows in ascending order of score; rows of weight 0 are ignored.

        Parameters
        ----------
        scores, targets, sample_weight : array_like of shape (n,)
            As in `fit`.  If one row is invalid, none is added.

        Examples
        --------
        >>> import staircase_fast as sf
        >>> online = sf.Online(loss="log", increasing=False)
        >>> online.extend([0.1, 0.2, 0.2, 0.7], [1, 0, 1, 0])
        >>> online.staircase().values
        array([1. , 0.5, 0. ])
        """
        columns = read_rows(scores, targets, sample_weight)
        with self._lock:
            self._add(*columns)

    def _add(self, x: Column, y: Column, w: Column) -> None:
        if len(x) == 0:
            return
        order = order_of(x, 1)
        refuse_nan("scores", x, order.first_nan)
        targets, weights = extent_of(y, 1), extent_of(w, 1) if len(w) else UNIT_WEIGHTS
        check_targets("targets", y, targets, self._loss, x)
        if (weights.first_bad, weights.lowest, weights.highest) == (-1, 0, 0):
            return
        present = check_weights("sample_weight", w, weights)
        if present is not None:
            x, y, w = x[present], y[present], w[present]
        if order.sign <= 0 or float(x[0]) < self._blocks.newest:
            _check_order(x, self._blocks.newest, present)
        x, y = x.astype(np.float64, copy=False), y if y.dtype in _KERNEL_TYPES else y.astype(np.float64)
        self._stairs = None
        if isinstance(self._blocks, RuleBlocks):
            self._blocks.extend(x, y, w)
        else:
            _online.extend(self._blocks, x, y, w, targets, weights)

    def staircase(self) -> Staircase:
        with self._lock:
            return self._staircase()

    def _staircase(self) -> Staircase:
        if self._stairs is None:
            if not self._blocks.n_rows:
                refuse_no_rows()
            self._stairs = Staircase._of_steps(self._steps(), self._loss, self._increasing)
        return self._stairs

    def _steps(self) -> Steps:
        steps = Steps(*self._blocks.steps(*self._loss.value_range))
        if not isinstance(self._loss, PoissonDeviance) or self._loss.exposure == 1:
            return steps
        rates = rates_of(steps.values, float(self._loss.exposure))
        first = np.flatnonzero(np.append(True, rates[1:] != rates[:-1]))  # equal rates become one step
        right, weights = steps.right[np.append(first[1:], len(rates)) - 1], steps.weights
        if len(first) < len(rates):
            weights = online_json.exact_weights(self._blocks.state(), right)
        return Steps(steps.left[first], right, rates[first], weights, np.add.reduceat(steps.counts, first))

    def _counts(self) -> tuple[int, int]:
        with self._lock:
            n = int(self._blocks.n_rows)
            return n, self._staircase().n_steps if n else 0

    __call__ = Stream.predict

    def to_json(self) -> str:
        """Write the state as JSON text.  An object that `from_json` reads continues with the same bits.

        An `UpdateRule` cannot be saved, because it consists of functions.

        Returns
        -------
        str

        Examples
        --------
        >>> import staircase_fast as sf
        >>> sf.Online.from_json(sf.Online("log").to_json())
        <Online: 0 rows, 0 steps, log_loss>
        """
        with self._lock:
            return online_json.to_json(self._loss, self._increasing, self._blocks.state())

    @classmethod
    def from_json(cls, text: str) -> Online:
        """Read text that `to_json` wrote.  Everything is checked; nothing is executed.

        Parameters
        ----------
        text : str
            The text.

        Returns
        -------
        Online

        Examples
        --------
        >>> import staircase_fast as sf
        >>> online = sf.Online()
        >>> online.extend([1, 2, 3], [1, 3, 2])
        >>> other = sf.Online.from_json(online.to_json())
        >>> other.append(4, 2)
        >>> online.n_samples, other.n_samples
        (3, 4)
        """
        online = cls.__new__(cls)
        online.__setstate__(online_json.from_json(text))
        return online

    def __getstate__(self) -> tuple[Loss, bool, Any]:
        with self._lock:
            return self._loss, self._increasing, self._blocks.state()

    def __setstate__(self, state: tuple[Loss, bool, Any]) -> None:
        loss, increasing, rows = state
        self.__init__(loss, increasing)  # type: ignore[misc]
        if rows is not None:
            self._blocks.restore(rows)

    def __repr__(self) -> str:
        n, n_steps = self._counts()
        rows, steps = "1 row" if n == 1 else f"{n} rows", "1 step" if n_steps == 1 else f"{n_steps} steps"
        return f"<Online: {rows}, {steps}, {self._loss.name}{'' if self._increasing else ', decreasing'}>"


def _new_blocks(loss: Loss, *, decreasing: bool) -> Any:
    """No rows yet, in the form for this loss."""
    if isinstance(loss, UpdateRule):
        return RuleBlocks(loss, decreasing=decreasing)
    if isinstance(loss, Linex) and not np.ndim(loss.shape):
        return _online.OnlineBlocks(decreasing, float(loss.shape))
    if not np.ndim(loss.exposure) if isinstance(loss, PoissonDeviance) else loss.is_mean:
        return _online.OnlineBlocks(decreasing, 0.0)
    requirement = (
        "must have an update rule: squared, log, Poisson, gamma and Tweedie losses, Linex, each with one parameter for "
        "all rows, or an UpdateRule"
    )
    raise InvalidInputError("loss", requirement, value=loss)


def _check_order(x: Column, newest: float, present: NDArray[np.bool_] | None) -> None:
    """Scores must not fall; `present` says which rows of the call they belong to."""
    if float(x[0]) >= newest and order_of(x, 1).sign > 0:
        return
    before = np.append(newest, x[:-1])
    place = int(np.argmax(x < before))
    index = place if present is None else int(np.flatnonzero(present)[place])
    requirement = f"must be >= {before[place]}, the {'one before it' if place else 'newest one'}"
    hint = "Use `Accumulator` for rows in any order."
    raise InvalidInputError("scores", requirement, value=x[place].item(), index=index, hint=hint)
