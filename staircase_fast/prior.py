"""Probabilities that are never 0 or 1: a prior for each step of a staircase.

A step of weight W whose successes weigh S gets the mean (S + a) / (W + 2a) of its posterior, as if a successes and a
failures more had been seen.  That is no longer monotone where a light step is beside a heavy one: of 0 of 1 and 5 of
100 successes, Laplace makes 1/3 and 6/102.  Such steps are pooled, S with S and W with W, and the prior is counted once
for what they have become.

One round pools every longest run of neighbours that do not strictly rise; rounds follow until all do.  It ends, for a
round that pools anything leaves fewer steps, and one step is monotone.  What is left is strictly monotone, for that is
when it ends.  If successes and failures change places and scores change signs, so does the result, but for rounding.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from staircase_fast._validation import Steps
from staircase_fast.staircase import Staircase

PSEUDO_COUNTS = {"none": 0.0, "laplace": 1.0, "jeffreys": 0.5}
_NEAREST_TO_ONE = 1 - 2.0**-53  # a probability that rounds to 1 would cost infinitely much


def with_prior(stairs: Staircase, pseudo_count: float) -> Staircase:
    """A staircase of probabilities with so many successes and failures added to each step; the same for 0."""
    if pseudo_count == 0.0:
        return stairs
    side = 1 if stairs.increasing else -1
    sums = (stairs.values * stairs.weights)[::side]
    weights, counts = stairs.weights[::side], stairs.counts[::side]
    starts = np.arange(stairs.n_steps)  # which of the steps each pooled one begins with
    while True:
        values = np.minimum((sums + pseudo_count) / (weights + 2 * pseudo_count), _NEAREST_TO_ONE)
        rises = np.append(True, values[1:] > values[:-1])
        if rises.all():
            break
        firsts = np.flatnonzero(rises)
        sums, weights, counts = (np.add.reduceat(column, firsts) for column in (sums, weights, counts))
        starts = starts[firsts]
    ends = np.append(starts[1:], stairs.n_steps) - 1
    if side < 0:
        starts, ends = stairs.n_steps - 1 - ends, stairs.n_steps - 1 - starts
    columns: tuple[NDArray[np.float64], ...] = stairs.left[starts[::side]], stairs.right[ends[::side]], values[::side]
    own = [np.ascontiguousarray(column) for column in (*columns, weights[::side])]
    return Staircase._of_steps(
        Steps(own[0], own[1], own[2], own[3], np.ascontiguousarray(counts[::side])), stairs.loss, stairs.increasing
    )
