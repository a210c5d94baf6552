"""Probabilities that are never 0 or 1: a prior for each step of a staircase.

A step of weight W whose successes weigh S gets the mean (S + a) / (W + 2a) of its posterior, as if a successes and a
failures more had been seen.  That is no longer monotone where a light step is beside a heavy one: of 0 of 1 and 5 of
100 successes, Laplace makes 1/3 and 6/102.  Such steps are pooled, S with S and W with W, and the prior is counted once
for what they have become.

One round pools every longest run of neighbours that do not strictly rise; rounds follow until all do.  It ends, for a
round that pools anything leaves fewer steps, and one step is monotone.  What is left is strictly monotone, for that is
when it ends.  If successes and failures change places and scores change signs, so does the result, but for rounding.

After the first round only what was pooled in the last one can fall, beside its neighbours: there may be as many rounds
as steps, where each pools one more, and all of them together look at no more than a few times as many.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from staircase_fast.inputs.columns import Column
from staircase_fast.staircase.result import Staircase
from staircase_fast.staircase.steps import Steps

PSEUDO_COUNTS = {"none": 0.0, "laplace": 1.0, "jeffreys": 0.5}
_NEAREST_TO_ONE = 1 - 2.0**-53  # a probability that rounds to 1 would cost infinitely much


def with_prior(stairs: Staircase, pseudo_count: float) -> Staircase:
    """A staircase of probabilities with so many successes and failures added to each step; the same for 0."""
    if pseudo_count == 0.0:
        return stairs
    side = 1 if stairs.increasing else -1
    given = [column[::side] for column in (stairs.values * stairs.weights, stairs.weights, stairs.counts)]
    starts, values, weights, counts = _pooled(given, pseudo_count)
    ends = np.append(starts[1:], stairs.n_steps) - 1
    if side < 0:
        starts, ends = stairs.n_steps - 1 - ends, stairs.n_steps - 1 - starts
    columns: tuple[NDArray[np.float64], ...] = stairs.left[starts[::side]], stairs.right[ends[::side]], values[::side]
    own = [np.ascontiguousarray(column) for column in (*columns, weights[::side])]
    return Staircase._of_steps(
        Steps(own[0], own[1], own[2], own[3], np.ascontiguousarray(counts[::side])), stairs.loss, stairs.increasing
    )


def _pooled(given: list[Column], pseudo_count: float) -> tuple[Column, Column, Column, Column]:
    """Which of the steps each pooled one begins with, and its value, weight and count; of sums, weights and counts."""
    n = len(given[0])
    sums, weights, counts = columns = [np.pad(column, 1) for column in given]  # a step at each end, never pooled
    values = np.append(_posterior(sums[:-1], weights[:-1], pseudo_count), np.inf)
    values[0] = -np.inf
    after, before = np.arange(1, n + 3), np.arange(-1, n + 1)
    alone = np.ones(n + 2, dtype=bool)  # steps that were not pooled with one before them
    lefts = np.arange(n + 1)  # steps that may not rise to the next one
    while len(lefts := lefts[~(values[after[lefts]] > values[lefts])]):
        rights = after[lefts]
        runs = np.flatnonzero(np.append(True, rights[:-1] != lefts[1:]))
        heads, tails = lefts[runs], rights[np.append(runs[1:], len(rights)) - 1]
        members = np.insert(rights, runs, heads)
        for column in columns:
            column[heads] = np.add.reduceat(column[members], runs + np.arange(len(runs)))
        values[heads] = _posterior(sums[heads], weights[heads], pseudo_count)
        alone[rights] = False
        after[heads] = after[tails]
        before[after[tails]] = heads
        lefts = np.unique(np.append(before[heads], heads))
    kept = np.flatnonzero(alone)[1:-1]
    return kept - 1, values[kept], weights[kept], counts[kept]


def _posterior(sums: Column, weights: Column, pseudo_count: float) -> Column:
    found: Column = np.minimum((sums + pseudo_count) / (weights + 2 * pseudo_count), _NEAREST_TO_ONE)
    return found
