"""Rounds of cuts: a fit under a loss that has no closed form (`_bisect.pyx` says how)."""

from __future__ import annotations

import time
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from staircase_fast import _bisect

RUN = np.dtype(
    [(name, "i8") for name in ("start", "end")]
    + [(name, "f8") for name in ("lo", "hi", "d_lo", "d_hi", "cut", "step", "value")]
    + [(name, "i8") for name in ("side", "untested", "stalls", "turn")]
)
LOW_END, HIGH_END = 1, 2
LEAST, GREATEST = -1, 1
_ROWS_AT_ONCE = 1 << 19  # some milliseconds: then signals and clocks are looked at
_NOTHING = np.empty(0)


class Problem(NamedTuple):
    """Rows in score order, and the slopes of their losses."""

    kind: int
    parameters: NDArray[np.float64]  # one, or one per row
    function: int  # address of a compiled derivative, or 0
    user_data: int
    targets: NDArray[np.float64]
    weights: NDArray[np.float64]  # or none: all are 1
    ends: NDArray[np.uint8]  # whether a score ends at a row; or none: at each


class Rounds:
    """Runs of rows that are still cut, and the blocks that others have become."""

    def __init__(self, problem: Problem, first: NDArray[np.void], *, location: bool) -> None:
        self.problem = problem
        self.location = location
        self.open = first
        self.done = [np.empty(0, dtype=RUN)]
        self.n_rounds = 0
        self._cut = 0
        self._reset()

    def _reset(self) -> None:
        self._cut = self._n_open = self._n_done = 0
        self._state = np.zeros(_bisect.state_size(), dtype=np.uint8)
        self._next_open = np.empty(4 * len(self.open), dtype=RUN)
        self._next_done = np.empty(4 * len(self.open), dtype=RUN)

    def cut_all(self, *, halve: bool, tol: float, deadline: float) -> bool:
        """Cut every open run once; False if the deadline came first (the next call goes on from there)."""
        while self._cut < len(self.open):
            if time.monotonic() >= deadline:
                return False
            self._cut, self._n_open, self._n_done = _bisect.cut_runs(
                *self.problem, _NOTHING, _NOTHING, self.location, halve, tol,
                self.open.view(np.uint8), self._cut, _ROWS_AT_ONCE, self._state,
                self._next_open.view(np.uint8), self._next_done.view(np.uint8), self._n_open, self._n_done,
            )  # fmt: skip
        self.done.append(self._next_done[: self._n_done].copy())
        self.open = self._next_open[: self._n_open].copy()
        self.n_rounds += 1
        self._reset()
        return True

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
        if not len(least) or not len(greatest):
            runs = least if len(least) else greatest
            return runs["start"].copy(), runs["value"].copy(), runs["lo"].copy(), runs["hi"].copy()
        starts = np.union1d(least["start"], greatest["start"])
        one, two = (side[np.searchsorted(side["start"], starts, side="right") - 1] for side in (least, greatest))
        same = one["value"] == two["value"]
        values = np.where(same, one["value"], 0.5 * one["value"] + 0.5 * two["value"])
        return starts, values, np.minimum(one["lo"], values), np.maximum(two["hi"], values)


def first_run(n: int, lo: float, hi: float, cut: float, untested: int = 0) -> NDArray[np.void]:
    """One run of all rows."""
    return np.array([(0, n, lo, hi, np.nan, np.nan, cut, 0.0, np.nan, 0, untested, 0, 0)], dtype=RUN)
