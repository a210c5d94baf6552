"""Whether answers agree: nothing is timed before that."""

from __future__ import annotations

from typing import Any

import numpy as np
from benchmarks.patterns import Column, Rows
from scipy.optimize import isotonic_regression as scipy_isotonic

import staircase_fast as sf


def near(ours: Any, theirs: Any) -> bool:
    """Equal but for what the peer rounds."""
    theirs = np.asarray(theirs)
    tolerance = 1e-6 if theirs.dtype == np.float32 else 1e-9
    return np.allclose(ours, theirs, rtol=tolerance, atol=tolerance)


def same_fit(given: Rows, ours: sf.Staircase, theirs: Any) -> bool:
    """Whether scikit-learn's fit is ours of the scores that it sees, and ours of all scores is that of SciPy."""
    x, y, w = given
    seen = as_scikit_learn_sees(x)
    if seen is x:
        return near(ours.predict(x), theirs.predict(x))
    return near(sf.fit(seen, y, sample_weight=w).predict(seen), theirs.predict(seen)) and near(
        ours.predict(x), sorted_fit(given)
    )


def as_scikit_learn_sees(x: Column) -> Column:
    """Scores as scikit-learn pools them: from the lowest up, each takes in all that are less than 1e-15 above it.

    In float32 that is 1e-6 (`np.finfo(x.dtype).resolution` in its `_make_unique`): of a million scores in [0, 1] half
    are left, of any number at most a million.
    """
    resolution = np.finfo(x.dtype).resolution
    gaps = np.diff(np.sort(x))
    if not np.any((gaps > 0) & (gaps < resolution)):
        return x
    distinct, which = np.unique(x, return_inverse=True)
    after = np.searchsorted(distinct, distinct + resolution)  # the sum may have been rounded:
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
    """How far the other of each score is above it; infinitely far, where there is none."""
    return np.append(distinct, np.inf).astype(distinct.dtype)[other] - distinct


def sorted_fit(given: Rows) -> Column:
    """The fit of every row by SciPy: sort, average the rows of each score, regress."""
    x, y, w = given
    _, which = np.unique(x, return_inverse=True)
    weights = np.bincount(which, w)
    means = np.bincount(which, y if w is None else y * w) / weights
    return scipy_isotonic(means, weights=weights.astype(float)).x[which]


def same_order(ours: Any, theirs: tuple[Column, ...]) -> bool:
    """Whether columns were sorted alike; of rows with one score any may come first, so these count by their sum."""
    x, *columns = theirs
    starts = np.flatnonzero(np.append(True, x[1:] != x[:-1]))
    return np.array_equal(ours.scores, x) and all(
        near(np.add.reduceat(a, starts), np.add.reduceat(b, starts))
        for a, b in zip((ours.targets, ours.weights), columns, strict=False)
    )
