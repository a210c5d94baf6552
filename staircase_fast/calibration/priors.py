"""Priors: staircases whose probabilities are never 0 or 1.

A step with total weight W and weight S of successes gets its posterior mean (S + a) / (W + 2a), as if it had `a` more
successes and `a` more failures.  The means may not be monotone: with Laplace's prior, steps with 0 of 1 and 5 of 100
successes get 1/3 and 6/102.  Such steps are pooled, and the pooled step has one prior.

Each round pools every maximal run of neighbouring steps that do not strictly increase, until all do.  After the first
round, only steps that were pooled in the last round, and their neighbours, need to be compared.
"""

from __future__ import annotations

import numpy as np

from staircase_fast.inputs.columns import Column
from staircase_fast.staircase.result import Staircase
from staircase_fast.staircase.steps import Steps

PSEUDO_COUNTS = {"none": 0.0, "laplace": 1.0, "jeffreys": 0.5}
_NEAREST_TO_ONE = 1 - 2.0**-53  # a probability of 1 would have an infinite log loss for a failure


def with_prior(stairs: Staircase, pseudo_count: float) -> Staircase:
    """The staircase with `pseudo_count` successes and failures added to each step."""
    if pseudo_count == 0.0:
        return stairs
    side = 1 if stairs.increasing else -1
    given = [column[::side] for column in (stairs.values * stairs.weights, stairs.weights, stairs.counts)]
    starts, values, weights, counts = _pooled(given, pseudo_count)
    ends = np.append(starts[1:], stairs.n_steps) - 1
    if side < 0:
        starts, ends = stairs.n_steps - 1 - ends, stairs.n_steps - 1 - starts
    columns = stairs.left[starts], stairs.right[ends], values, weights, counts
    steps = Steps(*(np.ascontiguousarray(column[::side]) for column in columns))
    return Staircase._of_steps(steps, stairs.loss, stairs.increasing)


def _pooled(given: list[Column], pseudo_count: float) -> tuple[Column, Column, Column, Column]:
    """Pool steps with these sums, weights and counts: the first step, value, weight and count of each pooled step."""
    n = len(given[0])
    sums, weights, counts = columns = [np.pad(column, 1) for column in given]  # with a sentinel at each end
    values = np.append(_posterior(sums[:-1], weights[:-1], pseudo_count), np.inf)
    values[0] = -np.inf
    after, before = np.arange(1, n + 3), np.arange(-1, n + 1)
    alone = np.ones(n + 2, dtype=bool)  # steps that were not pooled with an earlier step
    lefts = np.arange(n + 1)  # steps to compare with the next one
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
    first = np.flatnonzero(alone)[1:-1]
    return first - 1, values[first], weights[first], counts[first]


def _posterior(sums: Column, weights: Column, pseudo_count: float) -> Column:
    found: Column = np.minimum((sums + pseudo_count) / (weights + 2 * pseudo_count), _NEAREST_TO_ONE)
    return found
