"""Rows that arrive in score order: the optimal staircase after each of them."""

from __future__ import annotations

from typing import Unpack, overload

import numpy as np
from numpy.typing import NDArray

from staircase_fast.arithmetic.exact import UNIT_WEIGHTS, extent_of
from staircase_fast.inputs.columns import Column
from staircase_fast.inputs.options import check_direction
from staircase_fast.losses import Loss, UpdateRule, loss_of
from staircase_fast.staircase.result import Staircase
from staircase_fast.storage.documents import Saved
from staircase_fast.streams import arrivals, checks, snapshot
from staircase_fast.typing import ColumnLike, PredictOptions, ScalarLike, public_class

_MANY_WAITING = 1024  # rows that are worth a call of a kernel
_PLAIN = frozenset((float, int, bool, np.float64))  # numbers that need no second look
_EXACT = 2.0**53  # from here on, integers may not be floats


@public_class("staircase_fast")
class Online(Saved):
    """The optimal staircase of rows that arrive in score order, one by one or many at a time.

    Section V of the paper.  A row costs constant time on average, and rows are not kept: memory grows with the number
    of steps.  After any rows, `staircase()` is what `fit` of all of them would be: bit for bit where a step is a mean
    or an `UpdateRule` says what it is, and to some ulps for `Linex`.

    Parameters
    ----------
    loss : str or Loss, default "squared"
        One with an update rule: the squared error, log loss, Poisson (with one exposure for all rows), gamma or Tweedie
        deviance, `Linex` (with one shape for all rows), or an `UpdateRule`.
    increasing : bool, default True

    Notes
    -----
    Rows of the newest score are one observation, and more of them may still come: until a greater score arrives, they
    can be joined with other steps and parted from them again.  An `UpdateRule` sees the rows of one score in a fixed
    order, so they are kept until then.

    Thread-safety: one object may be used by any number of threads; each call is done as a whole before the next.  A
    function of an `UpdateRule` must not use the object it is called from.

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

    _WHAT = snapshot.WHAT

    def __init__(self, loss: str | Loss = "squared", increasing: bool = True) -> None:
        the_loss = loss_of(loss)
        rising = bool(check_direction(increasing, auto=False))
        self._set(the_loss, rising, arrivals.keeper_for(the_loss, decreasing=not rising))

    def _set(self, loss: Loss, increasing: bool, keeper: arrivals.Keeper) -> None:
        import threading  # only who fits online waits for it

        self._lock = threading.Lock()
        self._loss, self._increasing, self._keeper = loss, increasing, keeper
        # whether the sum of weights may overflow
        self._heavy = keeper.total_weight > checks.MODERATE_WEIGHT
        self._waiting: arrivals.Waiting = []  # rows that were judged; the keeper has not seen them
        # targets and weights that may wait; none may for a user's rule: what it raises, it raises at once
        lowest, highest = max(loss.target_range[0], -_EXACT), min(loss.target_range[1], _EXACT)
        waits = not self._heavy and not isinstance(loss, UpdateRule)
        self._plain = lowest, highest, checks.MODERATE_WEIGHT if waits else 0.0
        self._stairs: Staircase | None = None

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
        """How many rows of weight > 0 have arrived."""
        with self._lock:
            return self._keeper.n_rows + len(self._waiting)

    @property
    def n_steps(self) -> int:
        """How many steps the staircase of all rows so far has.

        Where rows have arrived since it was last asked, this takes as long as `staircase`: each step is looked at.
        """
        return self._counts()[1]

    @property
    def n_merges(self) -> int:
        """How many merges have made these steps of single rows: `n_samples` - `n_steps`."""
        n_samples, n_steps = self._counts()
        return n_samples - n_steps

    def append(self, score: float, target: float, sample_weight: float = 1.0) -> None:
        """Take one row; its score must not be below the newest one.

        Parameters
        ----------
        score, target : float
        sample_weight : float, default 1.0
            A row of weight 0 is absent.

        Examples
        --------
        >>> import staircase_fast as sf
        >>> online = sf.Online()
        >>> online.append(0.5, 1)
        >>> online.append(0.4, 1)
        Traceback (most recent call last):
            ...
        ValueError: `score` must be >= 0.5, the newest one; got 0.4.
        """
        with self._lock:
            waiting = self._waiting
            newest = waiting[-1][0] if waiting else self._keeper.newest
            lowest, highest, heaviest = self._plain
            if (
                type(score) in _PLAIN
                and type(target) in _PLAIN
                and type(sample_weight) in _PLAIN
                and newest <= score
                and -_EXACT < score < _EXACT
                and lowest <= target <= highest
                and 0 < sample_weight <= heaviest
            ):
                self._stairs = None
                waiting.append((float(score), float(target), float(sample_weight)))
                if len(waiting) >= _MANY_WAITING:
                    self._settle()
                return
            checks.sample(score, target, sample_weight, newest, self._loss)
            self._take(*checks.arriving_columns([score], [target], [sample_weight]))

    def extend(self, scores: ColumnLike, targets: ColumnLike, sample_weight: ColumnLike | None = None) -> None:
        """Take many rows, in ascending order of score; a row of weight 0 is absent.

        Parameters
        ----------
        scores, targets, sample_weight : array_like of shape (n,)
            As in `fit`.  If one of them is refused, no row is taken.

        Examples
        --------
        >>> import staircase_fast as sf
        >>> online = sf.Online(loss="log", increasing=False)
        >>> online.extend([0.1, 0.2, 0.2, 0.7], [1, 0, 1, 0])
        >>> online.staircase().values
        array([1. , 0.5, 0. ])
        """
        columns = checks.arriving_columns(scores, targets, sample_weight)
        with self._lock:
            self._take(*columns)

    def _take(self, x: Column, y: Column, w: Column) -> None:
        newest = self._waiting[-1][0] if self._waiting else self._keeper.newest
        rows = checks.arrivals(x, y, w, self._loss, newest)
        if rows is None:
            return
        self._settle()
        if self._heavy or rows.weights_extent.highest > checks.MODERATE_WEIGHT:
            checks.finite_total("sample_weight", rows.weights, self._keeper.total_weight)
            self._heavy = True
            self._plain = (*self._plain[:2], 0.0)
        self._stairs = None
        self._keeper.extend(rows, self._waiting)

    def _settle(self) -> None:
        """Let the keeper have the rows that wait."""
        if self._waiting:
            x, y, w = np.array(self._waiting).T.copy()
            if (w == 1).all():
                w = w[:0]
            w_extent = extent_of(w, 1) if len(w) else UNIT_WEIGHTS
            self._keeper.extend(checks.Arrivals(x, y, w, extent_of(y, 1), w_extent), self._waiting)

    def staircase(self) -> Staircase:
        """The optimal staircase of all rows so far.

        Examples
        --------
        >>> import staircase_fast as sf
        >>> online = sf.Online()
        >>> online.extend([1, 2, 3], [1, 3, 2])
        >>> online.staircase() == sf.fit([1, 2, 3], [1, 3, 2])
        True
        """
        with self._lock:
            return self._staircase()

    def _staircase(self) -> Staircase:
        if self._stairs is None:
            self._settle()
            if not self._keeper.n_rows:
                checks.no_rows_yet()
            self._stairs = Staircase._of_steps(self._keeper.steps(), self._loss, self._increasing)
        return self._stairs

    def _counts(self) -> tuple[int, int]:
        with self._lock:
            n = self._keeper.n_rows + len(self._waiting)
            return n, self._staircase().n_steps if n else 0

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
        >>> online = sf.Online()
        >>> online.extend([1, 2], [10, 20])
        >>> online.predict([1.5, 3], interpolation="linear")
        array([15., 20.])
        """
        return self.staircase().predict(scores, **options)

    __call__ = predict

    def to_json(self) -> str:
        """All that is known of the rows so far as JSON text: `from_json` goes on from there, with the same bits.

        Not for an `UpdateRule`, whose functions are not text.

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
            self._settle()
            return snapshot.to_json(self._loss, self._increasing, self._keeper)

    @classmethod
    def from_json(cls, text: str) -> Online:
        """What `to_json` wrote.  Everything is checked; nothing is executed.

        Parameters
        ----------
        text : str
            What `to_json` wrote.

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
        online._set(*snapshot.parts_of(text))
        return online

    def __getstate__(self) -> tuple[Loss, bool, arrivals.Keeper]:
        with self._lock:
            self._settle()
            return self._loss, self._increasing, self._keeper.copied()

    def __setstate__(self, state: tuple[Loss, bool, arrivals.Keeper]) -> None:
        self._set(*state)

    def __repr__(self) -> str:
        n, n_steps = self._counts()
        rows, steps = "1 row" if n == 1 else f"{n} rows", "1 step" if n_steps == 1 else f"{n_steps} steps"
        return f"<Online: {rows}, {steps}, {self._loss.name}{'' if self._increasing else ', decreasing'}>"
