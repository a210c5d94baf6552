"""The paper's anytime algorithm, round by round."""

from __future__ import annotations

import copy
import math
import time
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from staircase_fast.bisection import _paper_groups, rounds, solve
from staircase_fast.bisection.closed_forms import as_means
from staircase_fast.bisection.samples import samples_of, steps_of
from staircase_fast.inputs import options
from staircase_fast.inputs.rows import copy_targets_and_weights, read_columns
from staircase_fast.losses import Loss, SquaredError, loss_of, units
from staircase_fast.losses import rows as loss_rows
from staircase_fast.staircase.result import Staircase
from staircase_fast.typing import Bounds, ColumnLike, public_class

_CHANGED_BY_ROUNDS = ("_rounds", "_joined", "_work", "_group_state")


@public_class("staircase_fast")
class Anytime:
    """A fit that can be stopped at any time, with bounds on its numerical error.

    The algorithm of the paper, section VI.  After every round the exact value of each block lies between `lower` and
    `upper`, and their distance is half that of the round before.  They are not confidence intervals.

    Parameters
    ----------
    scores, targets, sample_weight : array_like of shape (n,)
        As in `fit`.
    loss : str or Loss
        Any loss but an `UpdateRule`.
    bounds : (lo, hi), optional
        Values are clipped to these, and they are the first bounds of every block.  None means no bound: then the first
        bounds follow from the targets.
    increasing : bool, default True

    Notes
    -----
    If the sum of derivatives is within its own rounding error, the bounds of that block stay as they are, and `refine`
    returns "precision".

    Thread-safety: any number of threads can use one object.  Each call is completed before the next one begins; only
    `refine` lets other calls run between two rounds.  The function of a `Custom` loss must not use the object that
    calls it.

    Examples
    --------
    >>> import staircase_fast as sf
    >>> fit = sf.Anytime([1, 2, 3, 4], [1.3, 4.0, 2.2, 5.9], loss="log_cosh", bounds=(0, 8))
    >>> for _ in range(3):
    ...     fit.step()
    >>> fit.lower, fit.upper
    (array([1., 3., 5.]), array([2., 4., 6.]))
    >>> fit.refine(tol=1e-6)
    'tol'
    >>> fit.n_rounds, fit.resolved, fit.staircase().values.round(5)
    (23, True, array([1.3, 3.1, 5.9]))
    """

    def __init__(
        self,
        scores: ColumnLike,
        targets: ColumnLike,
        *,
        sample_weight: ColumnLike | None = None,
        loss: str | Loss,
        bounds: Bounds = None,
        increasing: bool = True,
    ) -> None:
        import threading  # here, because it is slow to import

        self._lock = threading.RLock()
        self._loss = loss_of(loss)
        loss_rows.check_has_derivative(self._loss)
        self._increasing = bool(options.check_direction(increasing, auto=False))
        self._bounds, self._infinite = loss_rows.limits_of(self._loss, bounds), options.infinite_allowed(bounds)
        x, y, w = copy_targets_and_weights(read_columns(scores, targets, sample_weight))
        columns = x.copy(), y, w  # the caller may change them between rounds
        loss_rows.check_parameter_length(self._loss, len(columns[0]))
        samples, sorted_loss = samples_of(*loss_rows.check_rows_and_parameters(*columns, self._loss))
        if not self._increasing:
            samples, sorted_loss = samples.reversed(), sorted_loss.of_rows(np.arange(len(samples.targets))[::-1])
        self._samples = samples
        if sorted_loss.solver == "rates":
            samples, sorted_loss = as_means(samples), SquaredError()
        self._exponent = units.exponent_of(samples.targets, sorted_loss)  # rounds divide values by 2 to this power
        samples = samples.in_units(sorted_loss, self._exponent)
        self._rounds = solve.rounds_of(samples, sorted_loss, shortcuts=False)
        self._apply_bounds()
        n = len(samples.targets)
        self._joined = 1 - samples.ends if len(samples.ends) else np.zeros(n, dtype=np.uint8)
        self._work = np.empty(n, dtype=_paper_groups.GROUP)
        self._group_state = np.zeros(1, dtype=_paper_groups.STATE)
        self._n_rounds = 0

    def _apply_bounds(self) -> None:
        """Begin with the given bounds, and cut at both of them: rows beyond a bound get its value."""
        first = self._rounds.open
        by_targets = self._loss.first_bounds == "targets"
        low, high = units.ldexp(np.array(self._bounds), -self._exponent)
        ends = ("lo", low, rounds.LOW_END, 1.0), ("hi", high, rounds.HIGH_END, -1.0)
        for field, bound, flag, inwards in ends:
            if math.isfinite(bound):
                first[field] = bound
            elif by_targets:
                first[field] = np.nextafter(first[field], inwards * np.inf)  # the outermost target
            if math.isfinite(bound) or by_targets:
                first["untested"] |= flag
        first["hi"], first["lo"] = np.maximum(first["hi"], first["lo"]), np.minimum(first["hi"], first["lo"])
        first["cut"] = np.where(
            first["untested"] & rounds.LOW_END, first["lo"],
            np.where(first["untested"] & rounds.HIGH_END, first["hi"], 0.5 * first["lo"] + 0.5 * first["hi"]),
        )  # fmt: skip
        self._rounds.restart()

    @property
    def n_rounds(self) -> int:
        """The number of rounds so far."""
        return self._n_rounds

    @property
    def n_blocks(self) -> int:
        """The number of blocks: scores that are known to share a value."""
        return len(self._blocks()[0])

    @property
    def lower(self) -> NDArray[np.float64]:
        """A lower bound on the exact value of each block."""
        return self._blocks()[1]

    @property
    def upper(self) -> NDArray[np.float64]:
        """An upper bound on the exact value of each block."""
        return self._blocks()[2]

    @property
    def resolved(self) -> bool:
        """Whether the blocks are final: each is the only one between its bounds."""
        with self._lock:
            open_runs = self._rounds.open
            starts, stops = open_runs["start"], open_runs["end"]
            joins = np.append(0, np.cumsum(self._joined))
            return bool(np.all(joins[stops - 1] - joins[starts] == stops - 1 - starts))

    def step(self) -> None:
        """Run one round: halve the bounds of every block.

        Examples
        --------
        >>> import staircase_fast as sf
        >>> fit = sf.Anytime([1, 2, 3], [1.0, 4.0, 3.0], loss="log_cosh", bounds=(0, 8))
        >>> fit.step()
        >>> fit.lower, fit.upper
        (array([0., 0.]), array([4., 4.]))
        """
        with self._lock:
            self._step(math.inf)

    def refine(
        self, *, tol: float | None = None, max_rounds: int | None = None, max_seconds: float | None = None
    ) -> Literal["tol", "max_rounds", "max_seconds", "precision"]:
        """Run rounds until a limit is reached, or values are as precise as floats are.

        Parameters
        ----------
        tol : float, optional
            Stop when all bounds are at most this far apart.
        max_rounds : int, optional
            The largest number of further rounds.
        max_seconds : float, optional
            Time limit in seconds.  An interrupted round resumes on the next call.

        Returns
        -------
        {"tol", "max_rounds", "max_seconds", "precision"}
            The reason for stopping.

        Examples
        --------
        >>> import staircase_fast as sf
        >>> fit = sf.Anytime([1, 2, 3], [1.0, 4.0, 3.0], loss="log_cosh")
        >>> fit.refine(max_rounds=2)
        'max_rounds'
        >>> fit.refine(tol=1e-9)
        'tol'
        """
        width, most = options.check_tolerance(tol), options.check_round_count(max_rounds)
        deadline = time.monotonic() + options.check_seconds(max_seconds)
        end = self._n_rounds + most
        while True:
            with self._lock:  # released between rounds: other threads can follow the progress
                open_runs = self._rounds.open
                if not len(open_runs):
                    return "precision"
                widths = units.ldexp(open_runs["hi"] - open_runs["lo"], self._exponent)
                if tol is not None and float(widths.max()) <= width:
                    return "tol"
                if self._n_rounds >= end:
                    return "max_rounds"
                if time.monotonic() >= deadline or not self._step(deadline):
                    return "max_seconds"

    def staircase(self) -> Staircase:
        """The current staircase: each value is the midpoint of its bounds.

        Returns
        -------
        Staircase

        Examples
        --------
        >>> import staircase_fast as sf
        >>> fit = sf.Anytime([1, 2, 3], [1.3, 4.0, 2.2], loss="log_cosh", bounds=(0, 8))
        >>> fit.refine(tol=0.5)
        'tol'
        >>> rough = fit.staircase()
        >>> rough.lower, rough.values, rough.upper
        (array([1., 3.]), array([1.25, 3.25]), array([1.5, 3.5]))
        """
        with self._lock:
            blocks = self._rounds.blocks()
        steps = steps_of(
            self._samples, blocks.in_original_units(self._exponent), self._bounds,
            decreasing=not self._increasing, infinite=self._loss.allows_infinite_values,
        )  # fmt: skip
        loss_rows.refuse_infinite_steps(steps.values, self._infinite, rising=self._increasing)
        return Staircase._of_steps(steps, self._loss, self._increasing)

    def _step(self, deadline: float) -> bool:
        """Run a round; False if the deadline came first."""
        while np.any(self._rounds.open["untested"]):
            if not self._rounds.cut_all(halve=True, tol=0.0, deadline=deadline):
                return False
        if not self._join(deadline) or not self._rounds.cut_all(halve=True, tol=0.0, deadline=deadline):
            return False
        self._rounds.narrow_known()
        self._group_state[:] = np.zeros(1, dtype=_paper_groups.STATE)
        self._n_rounds += 1
        return True

    def _join(self, deadline: float) -> bool:
        """Join groups (Step 3); False if the deadline came first."""
        slopes = self._rounds.slopes()
        runs = self._rounds.open[self._rounds.open["side"] <= 0]
        runs = runs[np.argsort(runs["start"])]
        starts, stops, cuts = (np.ascontiguousarray(runs[name]) for name in ("start", "end", "cut"))
        while not _paper_groups.join_groups(
            self._rounds.problem, slopes, starts, stops, cuts, rounds.ROWS_AT_ONCE, self._group_state, self._work,
            self._joined,
        ):  # fmt: skip
            if time.monotonic() >= deadline:
                return False
        return True

    def _blocks(self) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
        """First rows of blocks, in score order, and bounds."""
        with self._lock:
            blocks = self._rounds.blocks()
            first = np.append(True, self._joined[:-1] == 0)
            done = np.concatenate(self._rounds.done)
        starts, _, lower, upper = blocks.in_original_units(self._exponent)
        n = len(self._samples.targets)
        for run in done:
            first[run["start"] + 1 : run["end"]] = False  # a finished run is one block
        first[starts] = True
        rows = np.flatnonzero(first[:n])
        place = np.searchsorted(starts, rows, side="right") - 1
        lower, upper = (np.clip(bound[place], *self._bounds) for bound in (lower, upper))
        # neighbours with the same value are one block
        same = np.append(False, (lower[1:] == upper[1:]) & (lower[1:] == lower[:-1]) & (upper[1:] == upper[:-1]))
        found = rows[~same], lower[~same], upper[~same]
        if self._increasing:
            return found
        return n - np.append(found[0][1:], n)[::-1], found[1][::-1].copy(), found[2][::-1].copy()

    def __getstate__(self) -> dict[str, Any]:
        """The state for copies and pickles: without the lock, and with copies of all that later rounds change."""
        with self._lock:
            state = {name: value for name, value in vars(self).items() if name != "_lock"}
            loss = self._rounds.loss  # never changed, and a compiled function cannot be copied
            return state | {name: copy.deepcopy(state[name], {id(loss): loss}) for name in _CHANGED_BY_ROUNDS}

    def __setstate__(self, state: dict[str, Any]) -> None:
        import threading

        vars(self).update(state, _lock=threading.RLock())

    def __repr__(self) -> str:
        rounds_made = "1 round" if self._n_rounds == 1 else f"{self._n_rounds} rounds"
        starts, lower, upper = self._blocks()
        blocks = "1 block" if len(starts) == 1 else f"{len(starts)} blocks"
        return f"<Anytime: {rounds_made}, {blocks} within {np.max(upper - lower):.3g}, {self._loss.name}>"
