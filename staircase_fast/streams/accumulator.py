"""`Accumulator`: a fit of batches in any order, from any number of processes.

New rows wait until there are enough of them to be sorted at once.  Then they become a run (`runs.py`).  Runs are merged
as in a log-structured merge tree: each is at least `runs.GROWTH` times as large as the next.  A row takes part in
O(log n) merges, and storing a score in several runs takes at most a third more memory.
"""

from __future__ import annotations

import math
import os
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from staircase_fast import threads
from staircase_fast.arithmetic.exact import UNIT_WEIGHTS, Order, extent_of
from staircase_fast.bisection import solve
from staircase_fast.errors import InvalidInputError, InvalidTypeError
from staircase_fast.fitting import of_columns
from staircase_fast.inputs.rows import NO_WEIGHTS
from staircase_fast.losses import Loss
from staircase_fast.losses.rows import Rows, limits_of
from staircase_fast.staircase.result import Staircase
from staircase_fast.storage import files
from staircase_fast.streams import accumulator_file, runs
from staircase_fast.streams.base import Stream, check_batch, check_saveable, refuse_no_rows
from staircase_fast.streams.runs import RawRows, Run
from staircase_fast.typing import Bounds, ColumnLike, public_class

_FEWEST_WAITING = 64  # rows that there is room for at first
_MOST_WAITING = 1 << 18
_UNKNOWN = Order(-1, 0, tied=True)


class _State(NamedTuple):
    """All rows so far.  Each change makes a new state, so a failed call has no effect."""

    runs: tuple[Run, ...] = ()
    waiting: NDArray[np.float64] = np.empty((3, 0))  # scores, targets and weights; there is room for more
    n_waiting: int = 0
    n_samples: int = 0
    weight: float = 0.0
    stairs: Staircase | None = None


@public_class("staircase_fast")
class Accumulator(Stream):
    """A fit of batches in any order: equal to one `fit` of all rows, bit for bit.

    The result depends neither on the order of the rows, nor on how they are divided into batches or accumulators.  If
    steps are means, exact sums per score are stored instead of rows.

    Parameters
    ----------
    loss : str or Loss, default "squared"
        A loss of `staircase_fast.losses`, or its name.  A parameter must be a number, the same for all rows.
    increasing : bool, default True
        Whether values increase or decrease with the score.

    Notes
    -----
    Memory, for losses whose steps are means: 24 bytes per distinct score, and more only for repeated scores with
    non-integer values: typically 32 bytes for their exact sums, more if the numbers differ by many decades.  Up to a
    third more is used while a score is in several runs, and up to six megabytes for rows that wait to be sorted.
    Merging and fitting temporarily double the memory.  For other losses the rows themselves are stored, 24 bytes each,
    or 16 without weights.

    Thread-safety: threads may add to, merge and read one accumulator at the same time.

    Examples
    --------
    >>> import staircase_fast as sf
    >>> seen = sf.Accumulator("log")
    >>> seen.add([0.1, 0.4], [0, 0])
    >>> seen.add([0.35, 0.8], [1, 1])
    >>> seen.staircase() == sf.fit([0.1, 0.4, 0.35, 0.8], [0, 0, 1, 1], loss="log")
    True

    Rows of another accumulator can be merged:

    >>> other = sf.Accumulator("log")
    >>> other.add([0.4, 0.9], [1, 1])
    >>> seen.merge(other)
    >>> seen
    <Accumulator: 6 rows, log_loss, increasing>
    """

    __slots__ = ("_state",)

    _state: _State

    def __init__(self, loss: str | Loss = "squared", increasing: bool = True) -> None:
        super().__init__(loss, increasing)
        _check_scalar_parameters(self._loss)
        self._state = _State()

    @property
    def n_samples(self) -> int:
        """Number of rows of weight > 0 so far."""
        return self._state.n_samples

    @property
    def n_scores(self) -> int:
        """Number of distinct scores.  To count them, all runs are merged."""
        merged = self._merge_runs().runs
        return merged[0].n_scores if merged else 0

    @property
    def nbytes(self) -> int:
        """Size of the stored rows or sums in bytes."""
        state = self._state
        return sum(run.nbytes for run in state.runs) + state.waiting.nbytes

    def add(self, scores: ColumnLike, targets: ColumnLike, sample_weight: ColumnLike | None = None) -> None:
        """Add rows in any order.

        A batch may be empty.  If one row is invalid, none is added.

        Parameters
        ----------
        scores, targets, sample_weight : array_like of shape (n,)
            As in `fit`.

        Examples
        --------
        >>> import staircase_fast as sf
        >>> seen = sf.Accumulator()
        >>> seen.add([1, 2, 3], [1.0, 3.0, 2.0], sample_weight=[1, 1, 0])
        >>> seen.n_samples
        2
        """
        rows = check_batch(scores, targets, sample_weight, self._loss)
        if rows is None:
            return
        n, mean = len(rows.scores), self._loss.is_mean
        with np.errstate(over="ignore"):  # an overflow is refused below
            weight = float(rows.weights.sum()) if len(rows.weights) else float(n)
        with self._lock:
            if self._state.n_waiting + n > _MOST_WAITING:
                self._state = self._sort_waiting(self._state)  # the buffer is full
            state = _count_rows(self._state, n, weight)
            # many rows need not wait, and large integers cannot, because float64 does not hold them
            if 2 * n > _MOST_WAITING or (mean and not runs.are_doubles(rows)):
                self._state = _push_run(state, runs.run_of(rows, mean=mean))
            else:
                self._state = _append_rows(state, rows)

    def merge(self, other: Accumulator) -> None:
        """Add all rows of another accumulator of the same loss and direction, which stays as it is.

        Parameters
        ----------
        other : Accumulator

        Examples
        --------
        >>> import staircase_fast as sf
        >>> one, other = sf.Accumulator(), sf.Accumulator()
        >>> one.add([1, 2], [0, 1])
        >>> other.add([2, 3], [0, 1])
        >>> one.merge(other)
        >>> one.staircase().values
        array([0. , 0.5, 1. ])
        """
        if not isinstance(other, Accumulator):
            raise InvalidTypeError("other", "must be an Accumulator", value=other)
        for name in ("loss", "increasing"):
            own, theirs = getattr(self, name), getattr(other, name)
            if own != theirs:
                raise InvalidInputError("other", f"must have the same {name}, {own!r}", value=theirs)
        given = other._without_waiting()
        with self._lock:
            state = _count_rows(self._state, given.n_samples, given.weight)
            for run in given.runs:
                state = _push_run(state, run)
            self._state = state

    def staircase(self, *, bounds: Bounds = None) -> Staircase:
        """The optimal staircase of all rows so far, equal to `fit` bit for bit.

        Parameters
        ----------
        bounds : (lo, hi), optional
            Limits of the values; None means no limit.  The staircase is cached only without bounds.
        """
        limits = limits_of(self._loss, bounds)
        state = self._merge_runs()
        if not state.runs:
            refuse_no_rows()
        if state.stairs is not None and bounds is None:
            return state.stairs
        # without the lock, because a user's loss may call this object
        stairs = self._fit(state.runs[0], bounds, limits)
        if bounds is None:
            with self._lock:
                if self._state is state:
                    self._state = state._replace(stairs=stairs)
        return stairs

    def _fit(self, run: Run, bounds: Bounds, limits: tuple[float, float]) -> Staircase:
        if isinstance(run.columns, RawRows):
            budget = solve.Budget(n_threads=threads.num_threads(None, threads.ROWS_EACH))
            return of_columns(run.columns, self._loss, self._increasing, bounds, budget, None)
        steps = runs.steps_of(run, decreasing=not self._increasing, bounds=limits)
        return Staircase._of_steps(steps, self._loss, self._increasing)

    def clear(self) -> None:
        """Remove all rows.

        Examples
        --------
        >>> import staircase_fast as sf
        >>> seen = sf.Accumulator()
        >>> seen.add([1, 2], [0, 1])
        >>> seen.clear()
        >>> seen.n_samples
        0
        """
        with self._lock:
            self._state = _State()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write all rows or sums to a file atomically, in NumPy's .npz format.

        Losses that are made of functions cannot be saved.
        """
        check_saveable(self._loss)
        state = self._merge_runs()
        accumulator_file.write(path, self._loss, self._increasing, state.runs[0] if state.runs else None)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        with files.named(path):
            loss, increasing, run = accumulator_file.read(path)
            made = cls(loss, increasing)
            if run is not None:
                made._state = _push_run(_count_rows(made._state, run.n_rows, run.weight), run)
        return made

    @classmethod
    def _from_state(cls, loss: Loss, increasing: bool, saved: list[Any], n_samples: int, weight: float) -> Accumulator:
        made = cls(loss, increasing)
        stored = tuple(Run.from_state(*run) for run in saved)
        made._state = _State(stored, n_samples=n_samples, weight=weight)
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        state = self._without_waiting()
        saved = [run.state() for run in state.runs]
        return type(self)._from_state, (self._loss, self._increasing, saved, state.n_samples, state.weight)

    def __copy__(self) -> Accumulator:
        made = type(self)(self._loss, self._increasing)
        made._state = self._without_waiting()
        return made

    def __deepcopy__(self, memo: dict[int, object]) -> Accumulator:
        return self.__copy__()  # runs are never changed

    def __repr__(self) -> str:
        n = self.n_samples
        rows = "1 row" if n == 1 else f"{n} rows"
        return f"<Accumulator: {rows}, {self._loss.name}, {'increasing' if self._increasing else 'decreasing'}>"

    def _without_waiting(self) -> _State:
        """The state for another object to share: no rows wait, and runs are never changed."""
        with self._lock:
            self._state = self._sort_waiting(self._state)
            return self._state._replace(waiting=_State().waiting)

    def _merge_runs(self) -> _State:
        """The state with at most one run."""
        with self._lock:
            state = self._sort_waiting(self._state)
            if len(state.runs) > 1:
                state = state._replace(runs=(runs.merged(*state.runs),))
            self._state = state
            return state

    def _sort_waiting(self, state: _State) -> _State:
        """The state after rows that wait have become a run."""
        if state.n_waiting == 0:
            return state
        x, y, w = state.waiting[:, : state.n_waiting]
        w, weights = (w, extent_of(w, 1)) if np.any(w != 1) else (NO_WEIGHTS, UNIT_WEIGHTS)
        rows = Rows(x, y, w, extent_of(y, 1), weights, _UNKNOWN)
        return _push_run(state._replace(n_waiting=0), runs.run_of(rows, mean=self._loss.is_mean))


def _check_scalar_parameters(loss: Loss) -> None:
    """Parameters per row are invalid in an accumulator, which does not know its rows in advance."""
    if loss.parameter and np.ndim(getattr(loss, loss.parameter)):
        found = f"got {len(loss.parameters)} numbers"
        raise InvalidInputError(loss.parameter, "of the loss must be a number, the same for all rows", found=found)
    for place, arg in enumerate(getattr(loss, "args", ())):
        if np.ndim(arg):
            found = f"got {len(arg)} numbers for entry {place}"
            raise InvalidInputError("args", "of the loss must be numbers, the same for all rows", found=found)


def _count_rows(state: _State, n_rows: int, weight: float) -> _State:
    """The state with more rows, which the caller still has to store."""
    if state.weight + weight == math.inf:
        found = f"got {weight} in addition to {state.weight}"
        raise InvalidInputError("sample_weight", "must have a finite sum over all rows", found=found)
    if state.n_samples + n_rows >= 2**62:
        found = f"got {n_rows} rows in addition to {state.n_samples}"
        raise InvalidInputError("", "an Accumulator must have fewer than 2**62 rows", found=found)
    return state._replace(n_samples=state.n_samples + n_rows, weight=state.weight + weight, stairs=None)


def _append_rows(state: _State, rows: Rows) -> _State:
    """The state with more rows that wait."""
    columns, n = state.waiting, state.n_waiting
    end = n + len(rows.scores)
    if end > columns.shape[1]:
        columns = np.empty((3, min(max(_FEWEST_WAITING, 2 * end), _MOST_WAITING)))
        columns[:, :n] = state.waiting[:, :n]
    columns[0, n:end] = rows.scores
    columns[1, n:end] = rows.targets
    columns[2, n:end] = rows.weights if len(rows.weights) else 1.0
    return state._replace(waiting=columns, n_waiting=end)


def _push_run(state: _State, run: Run) -> _State:
    return state._replace(runs=runs.pushed(state.runs, run))
