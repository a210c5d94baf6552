"""A fit of rows that come batch by batch, in any order, on any machine.

New rows wait until there are enough of them to be sorted at once.  Then they are a run (`levels.py`), and runs are
joined as in a log-structured merge: each is at least _GROWTH times as large as the next, so that a row takes part in
O(log n) joins, and a score that is in several runs takes little more memory than in one.
"""

from __future__ import annotations

import math
import os
from typing import Any, NamedTuple, Unpack, overload

import numpy as np
from numpy.typing import NDArray

from staircase_fast import threads
from staircase_fast.arithmetic.exact import NOTHING, Extent, Order, joined_extent
from staircase_fast.bisection import solve
from staircase_fast.fitting import of_columns
from staircase_fast.inputs.options import check_bounds, check_direction
from staircase_fast.losses import Loss, loss_of
from staircase_fast.losses.rows import Rows
from staircase_fast.staircase.result import Staircase
from staircase_fast.storage import files
from staircase_fast.streams import accumulator_file, checks, levels
from staircase_fast.streams.levels import Run
from staircase_fast.typing import Bounds, ColumnLike, PredictOptions, ScalarLike, public_class

_FEWEST_WAITING = 64  # that there is room for
_MOST_WAITING = 1 << 18
_GROWTH = 4
_UNKNOWN = Order(-1, 0, tied=True)
_NO_WEIGHTS = np.empty(0)


class _Waiting(NamedTuple):
    """Rows that are not yet a run: the first n of three columns, which may be longer and are written to later."""

    columns: NDArray[np.float64] = np.empty((3, 0))
    n: int = 0
    weighted: bool = False
    targets: Extent = NOTHING
    weights: Extent = NOTHING


class _State(NamedTuple):
    """All that an accumulator knows.  It is replaced as a whole: what fails on the way changes nothing."""

    runs: tuple[Run, ...] = ()
    waiting: _Waiting = _Waiting()
    n_samples: int = 0
    weight: float = 0.0
    stairs: Staircase | None = None


@public_class("staircase_fast")
class Accumulator:
    """A fit of rows that come batch by batch: what `fit` would make of all of them at once, bit for bit.

    Neither the order of rows, nor how they are cut into batches, nor which accumulators were merged into which, changes
    the result.  Where a step is a mean, rows are not kept, but the exact sums of each score.

    Parameters
    ----------
    loss : str or Loss, default "squared"
        A loss of `staircase_fast.losses`, or its name.  A parameter must be a number, the same for all rows.
    increasing : bool, default True
        Whether values rise or fall with the score.

    Notes
    -----
    Memory, for losses whose steps are means: 16 bytes per distinct score where targets are integers (labels, counts)
    without weights, 24 bytes with integer weights.  Of other numbers 24 bytes per score that was seen once, and for one
    that was seen more often its exact sums beside: as a rule 32 bytes, more where numbers differ by many decades.
    Scores that come again and again may be held more than once until runs of rows are joined: together, a third more at
    most.  Six megabytes at most hold rows that wait to be sorted.  While it joins runs or is fitted, an accumulator
    takes twice as much.  Under other losses the rows themselves are kept, 24 bytes each, or 16 without weights.

    Thread-safety: threads may add to, merge and read one accumulator at the same time.

    Examples
    --------
    >>> import staircase_fast as sf
    >>> seen = sf.Accumulator("log")
    >>> seen.add([0.1, 0.4], [0, 0])
    >>> seen.add([0.35, 0.8], [1, 1])
    >>> seen.staircase() == sf.fit([0.1, 0.4, 0.35, 0.8], [0, 0, 1, 1], loss="log")
    True

    What others have seen:

    >>> other = sf.Accumulator("log")
    >>> other.add([0.4, 0.9], [1, 1])
    >>> seen.merge(other)
    >>> seen
    <Accumulator: 6 rows, log_loss, increasing>
    >>> seen.predict([0.2, 0.38, 0.9])
    array([0.        , 0.66666667, 1.        ])
    """

    __slots__ = ("_increasing", "_lock", "_loss", "_state")

    _state: _State

    def __init__(self, loss: str | Loss = "squared", increasing: bool = True) -> None:
        import threading  # here, because it is slow to import

        self._loss = loss_of(loss)
        self._increasing = bool(check_direction(increasing, auto=False))
        checks.loss_of_every_row(self._loss)
        self._lock = threading.Lock()
        self._state = _State()

    @property
    def loss(self) -> Loss:
        """What is minimised."""
        return self._loss

    @property
    def increasing(self) -> bool:
        """Whether values rise with the score."""
        return self._increasing

    @property
    def n_samples(self) -> int:
        """How many rows of weight > 0 were added."""
        return self._state.n_samples

    @property
    def n_scores(self) -> int:
        """How many scores differ.  To count them, all runs are joined."""
        run = self._whole().runs
        return levels.n_scores(run[0]) if run else 0

    @property
    def nbytes(self) -> int:
        """How many bytes hold what was added."""
        state = self._state
        return sum(run.nbytes for run in state.runs) + state.waiting.columns.nbytes

    def add(self, scores: ColumnLike, targets: ColumnLike, sample_weight: ColumnLike | None = None) -> None:
        """Take in rows, in any order.

        No rows, or none of a weight > 0, are allowed.  Rows that are refused change nothing.

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
        rows = checks.batch(scores, targets, sample_weight, self._loss)
        if rows is None:
            return
        n, mean = len(rows.scores), self._loss.is_mean
        with np.errstate(over="ignore"):  # what is too much is refused below
            weight = float(rows.weights.sum()) if len(rows.weights) else float(n)
        with self._lock:
            if self._state.waiting.n + n > _MOST_WAITING:
                self._state = self._sorted(self._state)  # before anything is written where these rows are
            state = _grown(self._state, n, weight)
            # many rows need not wait, and some integers cannot: they are no doubles
            if 2 * n > _MOST_WAITING or (mean and not levels.are_doubles(rows)):
                self._state = _pushed(state, levels.run_of(rows, mean=mean))
            else:
                self._state = state._replace(waiting=_appended(state.waiting, rows))

    def merge(self, other: Accumulator) -> None:
        """Take in all that another accumulator of the same loss and direction has seen; it stays as it is.

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
        checks.same_kind(other, Accumulator, (self._loss, self._increasing))
        given = other._settled()
        with self._lock:
            state = _grown(self._state, given.n_samples, given.weight)
            for run in given.runs:
                state = _pushed(state, run)
            self._state = state

    def staircase(self, *, bounds: Bounds = None) -> Staircase:
        """The staircase of all rows so far: that of `fit`, bit for bit.

        Parameters
        ----------
        bounds : (lo, hi), optional
            Values are held within these; None stands for no bound.

        Returns
        -------
        Staircase
            Without bounds, it is made once and kept until something is added.

        Examples
        --------
        >>> import staircase_fast as sf
        >>> seen = sf.Accumulator(sf.losses.Quantile(0.9))
        >>> seen.add([1, 2, 3, 4], [1.0, 9.0, 2.0, 3.0])
        >>> seen.staircase().values
        array([1., 9.])
        """
        limits = check_bounds(bounds)
        state = self._whole()
        if not state.runs:
            checks.no_rows_yet()
        if state.stairs is not None and bounds is None:
            return state.stairs
        # not under the lock: a user's loss may do what it likes
        stairs = self._fitted(state.runs[0], bounds, limits)
        if bounds is None:
            with self._lock:
                if self._state is state:
                    self._state = state._replace(stairs=stairs)
        return stairs

    def _fitted(self, run: Run, bounds: Bounds, limits: tuple[float, float]) -> Staircase:
        if isinstance(run.columns, levels.Kept):
            patience = solve.Budget(n_threads=threads.num_threads(None, threads.ROWS_EACH))
            return of_columns(run.columns, self._loss, self._increasing, bounds, patience, None)
        low, high = self._loss.value_range
        limits = max(limits[0], low), min(limits[1], high)
        steps = levels.steps_of(run, decreasing=not self._increasing, bounds=limits)
        return Staircase._of_steps(steps, self._loss, self._increasing)

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
            Those of `Staircase.predict`.

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

    def clear(self) -> None:
        """Forget all rows.

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
        """Write all that was seen to a file; an existing file is replaced at once or not at all.

        The format is numpy's .npz.  Not for losses that are made of functions.

        Parameters
        ----------
        path : str or path-like
            Where to write.

        Examples
        --------
        >>> import os, tempfile
        >>> import staircase_fast as sf
        >>> seen = sf.Accumulator()
        >>> seen.add([1, 2], [0, 1])
        >>> with tempfile.TemporaryDirectory() as directory:
        ...     seen.save(os.path.join(directory, "seen.npz"))
        ...     sf.Accumulator.load(os.path.join(directory, "seen.npz"))
        <Accumulator: 2 rows, squared_error, increasing>
        """
        checks.saveable(self._loss)
        state = self._whole()
        accumulator_file.write(path, self._loss, self._increasing, state.runs[0] if state.runs else None)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Accumulator:
        """Read a file that `save` wrote.  Everything is checked; nothing is executed.

        Parameters
        ----------
        path : str or path-like
            What to read.

        Returns
        -------
        Accumulator

        Examples
        --------
        Of a file that is no such thing, or not as it was, it says so:

        >>> import staircase_fast as sf
        >>> sf.Accumulator.load("no such file")
        Traceback (most recent call last):
            ...
        FileNotFoundError: [Errno 2] No such file or directory: 'no such file'
        """
        state = _State()
        with files.named(path):
            loss, increasing, run = accumulator_file.read(path)
            if run is not None:
                state = _pushed(_grown(state, run.n_rows, levels.weight_of(run)), run)
        return cls._of(loss, increasing, state)

    @classmethod
    def _of(cls, loss: Loss, increasing: bool, state: _State) -> Accumulator:
        made = cls(loss, increasing)
        made._state = state
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self)._of, (self._loss, self._increasing, self._settled())

    def __copy__(self) -> Accumulator:
        return self._of(self._loss, self._increasing, self._settled())

    def __deepcopy__(self, memo: dict[int, object]) -> Accumulator:
        return self.__copy__()  # runs are never changed

    def __repr__(self) -> str:
        n = self.n_samples
        rows = "1 row" if n == 1 else f"{n} rows"
        return f"<Accumulator: {rows}, {self._loss.name}, {'increasing' if self._increasing else 'decreasing'}>"

    def _settled(self) -> _State:
        """What is known, for another to share: no row waits, and runs are never changed."""
        with self._lock:
            self._state = self._sorted(self._state)
            return self._state._replace(waiting=_Waiting())

    def _whole(self) -> _State:
        """What is known, in one run at most."""
        with self._lock:
            state = self._sorted(self._state)
            if len(state.runs) > 1:
                state = state._replace(runs=_joined(state.runs, growth=math.inf))
            self._state = state
            return state

    def _sorted(self, state: _State) -> _State:
        """The state after rows that wait have become a run."""
        columns, n, weighted, targets, weights = state.waiting
        if n == 0:
            return state
        x, y, w = columns[:, :n]
        rows = Rows(x, y, w if weighted else _NO_WEIGHTS, targets, weights, _UNKNOWN)
        return _pushed(state._replace(waiting=_Waiting(columns)), levels.run_of(rows, mean=self._loss.is_mean))


def _grown(state: _State, n_rows: int, weight: float) -> _State:
    """The state with more rows, which are still to be put somewhere."""
    return state._replace(
        n_samples=checks.total_rows(state.n_samples, n_rows),
        weight=checks.total_weight(state.weight, weight),
        stairs=None,
    )


def _appended(waiting: _Waiting, rows: Rows) -> _Waiting:
    """Rows that wait, and more of them."""
    columns, n, weighted, targets, weights = waiting
    end = n + len(rows.scores)
    if end > columns.shape[1]:
        size = min(max(_FEWEST_WAITING, 2 * end), _MOST_WAITING)
        columns = np.empty((3, size))
        columns[:, :n] = waiting.columns[:, :n]
    columns[0, n:end] = rows.scores
    columns[1, n:end] = rows.targets
    columns[2, n:end] = rows.weights if len(rows.weights) else 1.0
    weighted = weighted or len(rows.weights) > 0
    return _Waiting(
        columns, end, weighted, joined_extent(targets, rows.targets_extent), joined_extent(weights, rows.weights_extent)
    )


def _pushed(state: _State, run: Run) -> _State:
    """The state with one more run."""
    return state._replace(runs=_joined((*state.runs, run), _GROWTH))


def _joined(runs: tuple[Run, ...], growth: float) -> tuple[Run, ...]:
    """Runs, the last ones joined until each is at least so many times as large as the next."""
    left = list(runs)
    while len(left) > 1 and left[-2].nbytes < growth * left[-1].nbytes:
        last = left.pop()
        left[-1] = levels.joined(left[-1], last)
    return tuple(left)
