"""Rounds of cuts; `_rounds.pyx` describes the algorithm."""

from __future__ import annotations

import time
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from staircase_fast import threads
from staircase_fast.bisection import _rounds
from staircase_fast.losses import Custom, Loss, _losses, units
from staircase_fast.losses.custom import refuse_slope

RUN = np.dtype(_rounds.RUN.descr)  # numpy copies its own int64 faster than a C long long
LOW_END, HIGH_END = 1, 2
SIDES = {"either": [0], "lower": [-1], "upper": [1], "middle": [-1, 1]}  # Run.side for each Loss.side
ROWS_AT_ONCE = 1 << 19  # some milliseconds; then signals and deadlines are checked
LARGEST = float(np.finfo(np.float64).max)
_EMPTY = np.empty(0)


class Problem(NamedTuple):
    """Rows in score order, and the slopes of their losses."""

    kind: int
    parameters: NDArray[np.float64]  # one, or one per row
    targets: NDArray[np.float64]
    weights: NDArray[np.float64]  # or empty: all are 1
    ends: NDArray[np.uint8]  # whether a score ends at a row; or empty: at each
    has_integer_slopes: bool = False  # big parts of slopes times weights are small integers
    has_location: bool = False  # equal targets are their own minimiser
    address: int = 0  # of a compiled derivative
    user_data: int = 0


class Blocks(NamedTuple):
    """Consecutive blocks of rows with non-decreasing values and proven bounds."""

    starts: NDArray[np.int64]
    values: NDArray[np.float64]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]

    def in_original_units(self, exponent: int) -> Blocks:
        """The blocks with values multiplied by 2**exponent."""
        values = units.ldexp(self.values, exponent)
        return Blocks(self.starts, values, *units.bounds_of(self.lower, self.upper, exponent))


def points_below(targets: NDArray[np.float64], loss: Loss) -> tuple[float, float]:
    """The distance of the second point at which a derivative is evaluated from the first, and the least such point."""
    spread = float(targets.max()) - float(targets.min())
    return 1e-7 * max(spread if spread < np.inf else 1e300, 1e-300), max(loss.value_range[0], -LARGEST)


class PythonSlopes:
    """The slopes that a Python function returned for each row."""

    def __init__(self, targets: NDArray[np.float64]) -> None:
        n = len(targets)
        self.targets = targets
        self.z = np.full(n, np.nan)  # the last point of each row
        self.slope = np.zeros(n)
        self.curvature = np.zeros(n)

    def evaluate(self, loss: Custom, runs: NDArray[np.void]) -> None:
        """Call the function once for all rows of the runs, at the cut and at a point below it."""
        sizes = runs["end"] - runs["start"]
        n = int(sizes.sum())
        z, y = np.empty((2, 2, n))
        _rounds.fill_points(runs, self.targets, *points_below(self.targets, loss), z, y)

        def rows() -> NDArray[np.intp]:
            return np.tile(np.arange(n) + np.repeat(runs["start"] - (np.cumsum(sizes) - sizes), sizes), 2)

        slopes = np.ascontiguousarray(loss.slopes(z.reshape(-1), y.reshape(-1), rows, optional=n))
        bad = _rounds.store_slopes(runs, z, slopes.reshape(2, n), self.z, self.slope, self.curvature)
        if bad >= 0:
            refuse_slope(0.0, self.z[bad], bad, loss.numbers)


class Share:
    """The runs that one thread cuts in a round, and the runs that result."""

    def __init__(self, runs: NDArray[np.void]) -> None:
        self.runs = np.ascontiguousarray(runs)
        self.open, self.done = np.empty((2, 4 * len(runs)), dtype=RUN)
        self.next = self.n_open = self.n_done = 0
        self.state = np.zeros(_rounds.CUT_SIZE, dtype=np.uint8)


class Rounds:
    """Open runs, and the blocks that are finished."""

    def __init__(self, problem: Problem, first: NDArray[np.void], loss: Loss, n_threads: int = 1) -> None:
        self.problem = problem
        self.loss = loss
        self._slopes = [PythonSlopes(problem.targets) for _ in range(2)] if loss.in_python else []
        known = first["lo"] == first["hi"]
        first["value"][known] = first["lo"][known]
        self.open = first[~known]
        self.done = [first[known]]
        self.n_rounds = 0
        self.n_threads = n_threads
        self.restart()

    def restart(self) -> None:
        """Begin a round."""
        self._shares = [Share(runs) for runs in self._split_open()]
        self._evaluated = False

    def _split_open(self) -> list[NDArray[np.void]]:
        """Open runs with about the same number of rows for each thread."""
        if self.loss.in_python:  # runs of the same rows, for the least and the greatest minimiser, need own slopes
            return [self.open[self.open["side"] <= 0], self.open[self.open["side"] > 0]]
        rows = np.cumsum(self.open["end"] - self.open["start"])
        parts = threads.parts(int(rows[-1]) if len(rows) else 0, self.n_threads)
        borders = np.searchsorted(rows, [part.start for part in parts[1:]], side="right")
        return list(np.split(self.open, borders))

    def cut_all(self, *, halve: bool, tol: float, deadline: float) -> bool:
        """Cut every open run once; False if the deadline came first (the next call resumes the round)."""
        if time.monotonic() >= deadline:
            return False
        self.slopes()
        if self.loss.in_python:
            deadline = np.inf  # the slow part of the round is over

        def work(part: slice) -> bool:
            return self._cut_share(int(part.start), halve, tol, deadline)

        if not all(threads.each(work, [slice(share, share + 1) for share in range(len(self._shares))])):
            return False
        self.done.append(np.concatenate([share.done[: share.n_done] for share in self._shares]))
        self.open = np.concatenate([share.open[: share.n_open] for share in self._shares])
        self.n_rounds += 1
        self.restart()
        return True

    def finish(self) -> None:
        """Cut all open runs until they are finished, run by run; only for losses that are not a Python function."""

        def work(part: slice) -> NDArray[np.void]:
            done, bad, cut = _rounds.finish_runs(self.problem, self._shares[part.start].runs, ROWS_AT_ONCE)
            self._refuse_slope(bad, cut)
            return np.asarray(done)

        # the first rounds leave enough runs to share
        while len(self.open) and self.n_threads > 1 and len(self.open) < 8 * self.n_threads and self.n_rounds < 8:
            self.cut_all(halve=False, tol=0.0, deadline=np.inf)
        self.done += threads.each(work, [slice(share, share + 1) for share in range(len(self._shares))])
        self.open = self.open[:0]

    def _refuse_slope(self, bad: int, cut: float) -> None:
        """Raise an error for the derivative of this row at the cut, unless it is -1."""
        if bad >= 0:
            assert isinstance(self.loss, Custom)
            slope, y = np.empty((3, 1)), self.problem.targets[bad : bad + 1]
            _losses.slopes(self.problem, self.problem.parameters, np.array([cut]), y, slope)
            refuse_slope(slope[1, 0], cut, bad, self.loss.numbers)

    def _cut_share(self, number: int, halve: bool, tol: float, deadline: float) -> bool:
        """Cut the remaining runs of a share; False if the deadline came first."""
        share = self._shares[number]
        tail, curvature = (self._slopes[number].slope, self._slopes[number].curvature) if self._slopes else [_EMPTY] * 2
        while share.next < len(share.runs):
            if time.monotonic() >= deadline:
                return False
            bad = _rounds.cut_runs(self.problem, share, tail, curvature, halve, tol, ROWS_AT_ONCE)
            if bad >= 0:
                self._refuse_slope(bad, float(share.runs["cut"][share.next]))
        return True

    def narrow_known(self) -> None:
        """Cut runs whose value is known beside it, until its bounds are close."""
        while np.any(found := self.open["value"] == self.open["value"]):
            aside, self.open, n_rounds = self.open[~found], self.open[found], self.n_rounds
            self.restart()
            self.cut_all(halve=True, tol=0.0, deadline=np.inf)
            self.open, self.n_rounds = np.concatenate([aside, self.open]), n_rounds
            self.restart()

    def slopes(self) -> NDArray[np.float64]:
        """The slopes of a Python function at the cuts of this round; empty if there is no such function."""
        if not isinstance(self.loss, Custom) or not self._slopes:
            return _EMPTY
        if not self._evaluated:
            for share, slopes in zip(self._shares, self._slopes, strict=True):
                if len(share.runs):
                    slopes.evaluate(self.loss, share.runs)
            self._evaluated = True
        return self._slopes[0].slope

    def blocks(self) -> Blocks:
        """All blocks, as they are known now."""
        unfinished = self.open.copy()
        inside = (unfinished["lo"] < unfinished["cut"]) & (unfinished["cut"] < unfinished["hi"])
        unfinished["value"] = np.where(inside, unfinished["cut"], 0.5 * unfinished["lo"] + 0.5 * unfinished["hi"])
        runs = np.concatenate([*self.done, unfinished])
        at_targets = self.loss.minimises_at_targets and not len(self.open)
        return Blocks(*_rounds.make_blocks(runs, self.problem.targets, at_targets))


def first_run(n: int, lo: float, hi: float, cut: float, untested: int = 0) -> NDArray[np.void]:
    """One run of all rows."""
    return np.array([(0, n, lo, hi, np.nan, np.nan, cut, 0.0, np.nan, 0, untested, 0, 0)], dtype=RUN)


def run_between(targets: NDArray[np.float64]) -> NDArray[np.void]:
    """One run of all rows, whose values lie between the least and the greatest target."""
    return np.asarray(_rounds.first_run(targets, targets.min(), targets.max()), dtype=RUN)


def runs_between(
    starts: NDArray[np.int64], n: int, lo: NDArray[np.float64], hi: NDArray[np.float64], cuts: NDArray[np.float64]
) -> NDArray[np.void]:
    """Runs that start at these of n rows, with bounds that are known to hold and a first cut."""
    runs = np.repeat(first_run(n, 0.0, 0.0, 0.0), len(starts))
    runs["start"], runs["end"] = starts, np.append(starts[1:], n)
    runs["lo"], runs["hi"], runs["cut"] = lo, hi, cuts
    return runs
