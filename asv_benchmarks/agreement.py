"""Checks that the results of both libraries agree, before anything is timed."""

from __future__ import annotations

from typing import Any

import numpy as np
from benchmarks.patterns import Column, Rows
from scipy.optimize import isotonic_regression as scipy_isotonic

import staircase_fast as sf


def near(ours: Any, theirs: Any) -> bool:
    """Whether two results are equal except for the rounding of the peer."""
    theirs = np.asarray(theirs)
    tolerance = 1e-6 if theirs.dtype == np.float32 else 1e-9
    return np.allclose(ours, theirs, rtol=tolerance, atol=tolerance)


def same_fit(given: Rows, ours: sf.Staircase, theirs: Any) -> bool:
    """Whether our fit agrees with scikit-learn.  If that pools nearly equal scores, compare with SciPy as well."""
    x, y, w = given
    pooled = pooled_by_scikit_learn(x)
    if pooled is x:
        return near(ours.predict(x), theirs.predict(x))
    return near(sf.fit(pooled, y, sample_weight=w).predict(pooled), theirs.predict(pooled)) and near(
        ours.predict(x), sorted_fit(given)
    )


def pooled_by_scikit_learn(x: Column) -> Column:
    """The scores after scikit-learn has pooled them: each score absorbs those less than 1e-15 above it, in order.

    In float32 the distance is 1e-6 (`np.finfo(x.dtype).resolution` in its `_make_unique`): about half of a million
    scores in [0, 1] remain, and at most a million of any number.
    """
    resolution = np.finfo(x.dtype).resolution
    gaps = np.diff(np.sort(x))
    if not np.any((gaps > 0) & (gaps < resolution)):
        return x
    distinct, which = np.unique(x, return_inverse=True)
    after = np.searchsorted(distinct, distinct + resolution)  # the sum may be rounded, so correct it:
    while len(low := np.flatnonzero(above(distinct, after) < resolution)):
        after[low] += 1
    while len(high := np.flatnonzero(above(distinct, after - 1) >= resolution)):
        after[high] -= 1
    firsts, at, nexts = [], 0, after.tolist()
    while at < len(nexts):
        firsts.append(at)
        at = nexts[at]
    pooled = np.repeat(distinct[firsts], np.diff(firsts, append=len(distinct)))
    return pooled[which]


def above(distinct: Column, other: Column) -> Column:
    """The distance from each score to the one at index `other`; infinite beyond the last score."""
    return np.append(distinct, np.inf).astype(distinct.dtype)[other] - distinct


def sorted_fit(given: Rows) -> Column:
    """The fit of every row with SciPy: sort, average the rows with equal scores, regress."""
    x, y, w = given
    _, which = np.unique(x, return_inverse=True)
    weights = np.bincount(which, w)
    means = np.bincount(which, y if w is None else y * w) / weights
    return scipy_isotonic(means, weights=weights.astype(float)).x[which]
