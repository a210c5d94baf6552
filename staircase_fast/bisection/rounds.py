"""Rounds of cuts: a fit under a loss that has no closed form (`_rounds.pyx` says how)."""

from __future__ import annotations

import time
from typing import NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from staircase_fast import threads
from staircase_fast.bisection import _memory, _rounds
from staircase_fast.losses import Custom, Quantile, _losses
from staircase_fast.losses.custom import refuse_slope

RUN = np.dtype(
    [(name, "i8") for name in ("start", "end")]
    + [(name, "f8") for name in ("lo", "hi", "d_lo", "d_hi", "cut", "step", "value")]
    + [(name, "i8") for name in ("side", "untested", "stalls", "turn")]
)
LOW_END, HIGH_END = 1, 2
LEAST, GREATEST = -1, 1
ROWS_AT_ONCE = 1 << 19  # some milliseconds: then signals and clocks are looked at
_NOTHING = np.empty(0)
LAST = float(np.finfo(np.float64).max)


class Problem(NamedTuple):
    """Rows in score order, and the slopes of their losses."""

    kind: int
    parameters: NDArray[np.float64]  # one, or one per row
    function: int  # address of a compiled derivative, or 0
    user_data: int
    targets: NDArray[np.float64]
    weights: NDArray[np.float64]  # or none: all are 1
    ends: NDArray[np.uint8]  # whether a score ends at a row; or none: at each
    whole: bool  # big parts of slopes, with their weights, are small integers


class Memory:
    """What a Python function said of each row, and where."""

    def __init__(self, targets: NDArray[np.float64]) -> None:
        n = len(targets)
        self.targets = targets
        self.z = np.full(n, np.nan)
        self.slope = np.zeros(n)
        self.curve = np.zeros(n)
        with np.errstate(all="ignore"):
            spread = np.nan_to_num(np.ptp(targets), posinf=1e300)
        self.nearby = 1e-7 * max(float(spread), 1e-300)

    def ask(self, loss: Custom, runs: NDArray[np.void]) -> None:
        """Ask about all rows of these runs at their cuts; and nearby, in the same call: how slopes rise."""
        starts, ends, cuts = (np.ascontiguousarray(runs[name]) for name in ("start", "end", "cut"))
        sizes = ends - starts
        n = int(sizes.sum())
        z, y = np.empty((2, 2, n))
        _memory.questions(starts, ends, cuts, self.targets, self.nearby, max(loss.value_range[0], -LAST), z, y)

        def rows() -> NDArray[np.intp]:
            return np.tile(np.arange(n) + np.repeat(starts - (np.cumsum(sizes) - sizes), sizes), 2)

        slopes = np.ascontiguousarray(loss.slopes(z.reshape(-1), y.reshape(-1), rows, optional=n)[0])
        bad = _memory.answers(starts, ends, z, slopes.reshape(2, n), self.z, self.slope, self.curve)
        if bad >= 0:
            refuse_slope(0.0, self.z[bad], bad, loss.numbers)


class Lane:
    """Runs that one thread cuts in a round, and what they become."""

    def __init__(self, runs: NDArray[np.void]) -> None:
        self.runs = np.ascontiguousarray(runs)
        self.open, self.done = np.empty((2, 4 * len(runs)), dtype=RUN)
        self.next = self.n_open = self.n_done = 0
        self.state = np.zeros(_rounds.state_size(), dtype=np.uint8)

    def advance(self, rounds: Rounds, memory: Memory | None, *, halve: bool, tol: float, deadline: float) -> bool:
        """Cut the rest of the runs; False if the deadline came first."""
        slopes = (_NOTHING, _NOTHING) if memory is None else (memory.slope, memory.curve)
        while self.next < len(self.runs):
            if time.monotonic() >= deadline:
                return False
            self.next, self.n_open, self.n_done, bad = _rounds.cut_runs(
                *rounds.problem, *slopes, rounds.location, halve, tol,
                self.runs.view(np.uint8), self.next, ROWS_AT_ONCE, self.state,
                self.open.view(np.uint8), self.done.view(np.uint8), self.n_open, self.n_done,
            )  # fmt: skip
            if bad >= 0:
                self._refuse(rounds, bad)
        return True

    def _refuse(self, rounds: Rounds, row: int) -> NoReturn:
        """Name the sample of which a compiled derivative is wrong."""
        cut = self.runs["cut"][self.next]
        slope = np.empty((3, 1))
        _losses.slopes(*rounds.problem[:4], np.array([cut]), rounds.problem.targets[row : row + 1], *slope)
        refuse_slope(slope[1, 0], cut, row, rounds.numbers)


class Rounds:
    """Runs of rows that are still cut, and the blocks that others have become."""

    def __init__(
        self,
        problem: Problem,
        first: NDArray[np.void],
        *,
        location: bool,
        custom: Custom | None = None,
        n_threads: int = 1,
    ) -> None:
        self.problem = problem
        in_python = custom is not None and custom.compiled is None
        self.loss = custom if in_python else None
        self.numbers = None if custom is None else custom.numbers
        self._memories = [Memory(problem.targets) for _ in range(2)] if in_python else []
        self.location = location
        known = first["lo"] == first["hi"]
        first["value"][known] = first["lo"][known]
        self.open = first[~known]
        self.done = [first[known]]
        self.n_rounds = 0
        self.n_threads = n_threads
        self._asked = False
        self.restart()

    def restart(self) -> None:
        """Begin a round."""
        self._lanes: list[Lane] = [Lane(runs) for runs in self._shares()]

    def _shares(self) -> list[NDArray[np.void]]:
        """Runs of about the same number of rows for each thread; those that ask another memory apart."""
        if self.loss is not None:
            return [self.open[self.open["side"] <= 0], self.open[self.open["side"] > 0]]
        rows = np.cumsum(self.open["end"] - self.open["start"])
        parts = threads.parts(int(rows[-1]) if len(rows) else 0, self.n_threads)
        borders = np.searchsorted(rows, [part.start for part in parts[1:]], side="right")
        return list(np.split(self.open, borders))

    def cut_all(self, *, halve: bool, tol: float, deadline: float) -> bool:
        """Cut every open run once; False if the deadline came first (the next call goes on from there)."""
        if time.monotonic() >= deadline:
            return False
        self.slopes()
        if self.loss is not None:
            deadline = np.inf  # what was asked for is used

        def work(part: slice) -> bool:
            number = int(part.start)
            memory = self._memories[number] if self.loss is not None else None
            return self._lanes[number].advance(self, memory, halve=halve, tol=tol, deadline=deadline)

        if not all(threads.each(work, [slice(lane, lane + 1) for lane in range(len(self._lanes))])):
            return False
        self.done.append(np.concatenate([lane.done[: lane.n_done] for lane in self._lanes]))
        self.open = np.concatenate([lane.open[: lane.n_open] for lane in self._lanes])
        self.n_rounds += 1
        self._asked = False
        self.restart()
        return True

    def close_in(self) -> None:
        """Cut runs whose value is known beside it, until its bounds are close."""
        while np.any(found := self.open["value"] == self.open["value"]):
            aside, self.open, n_rounds = self.open[~found], self.open[found], self.n_rounds
            self.restart()
            self.cut_all(halve=True, tol=0.0, deadline=np.inf)
            self.open, self.n_rounds = np.concatenate([aside, self.open]), n_rounds
            self.restart()

    def slopes(self) -> NDArray[np.float64]:
        """What a Python function says of rows at the cuts of this round; empty if there is none to ask."""
        if self.loss is None:
            return _NOTHING
        if not self._asked:
            # two runs may be of the same rows: for the least and the greatest minimisers
            for lane, memory in zip(self._lanes, self._memories, strict=True):
                if len(lane.runs):
                    memory.ask(self.loss, lane.runs)
            self._asked = True
        return self._memories[0].slope

    def blocks(self) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """Starts, values, lower and upper bounds of all rows as they are known now."""
        unfinished = self.open.copy()
        inside = (unfinished["lo"] < unfinished["cut"]) & (unfinished["cut"] < unfinished["hi"])
        unfinished["value"] = np.where(inside, unfinished["cut"], 0.5 * unfinished["lo"] + 0.5 * unfinished["hi"])
        runs = np.concatenate([*self.done, unfinished])
        runs = runs[np.argsort(runs["start"], kind="stable")]
        if not runs["side"].any():
            return runs["start"].copy(), runs["value"].copy(), runs["lo"].copy(), runs["hi"].copy()
        least, greatest = runs[runs["side"] <= 0], runs[runs["side"] >= 0]
        if self.problem.kind == Quantile.kind and not len(self.open):
            # slopes jump at targets, so minimisers are targets; sums that are equal but for rounding may say otherwise
            _snap(least, self.problem.targets, "hi", np.less_equal, np.maximum)
            _snap(greatest, self.problem.targets, "lo", np.greater_equal, np.minimum)
        if not len(least) or not len(greatest):
            runs = least if len(least) else greatest
            return runs["start"].copy(), runs["value"].copy(), runs["lo"].copy(), runs["hi"].copy()
        starts = np.union1d(least["start"], greatest["start"])
        one, two = (side[np.searchsorted(side["start"], starts, side="right") - 1] for side in (least, greatest))
        same = one["value"] == two["value"]
        values = np.where(same, one["value"], 0.5 * one["value"] + 0.5 * two["value"])
        return starts, values, np.minimum(one["lo"], values), np.maximum(two["hi"], values)


def _snap(
    runs: NDArray[np.void], targets: NDArray[np.float64], bound: str, within: np.ufunc, nearest: np.ufunc
) -> None:
    """Let the value of each run be the nearest of its targets within a bound, or of all, if none is."""
    if len(runs):
        worst = -np.inf if nearest is np.maximum else np.inf
        beyond = np.minimum if nearest is np.maximum else np.maximum
        inside = within(targets, np.repeat(runs[bound], runs["end"] - runs["start"]))
        found = nearest.reduceat(np.where(inside, targets, worst), runs["start"])
        found = np.where(found == worst, beyond.reduceat(targets, runs["start"]), found)
        runs["value"] = np.where(runs["lo"] < runs["hi"], found, runs["value"])  # others are at a bound
        runs["lo"], runs["hi"] = np.minimum(runs["lo"], runs["value"]), np.maximum(runs["hi"], runs["value"])


def first_run(n: int, lo: float, hi: float, cut: float, untested: int = 0) -> NDArray[np.void]:
    """One run of all rows."""
    return np.array([(0, n, lo, hi, np.nan, np.nan, cut, 0.0, np.nan, 0, untested, 0, 0)], dtype=RUN)
