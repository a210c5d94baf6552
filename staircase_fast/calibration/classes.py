"""Staircases that turn the scores of classes into their probabilities."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from staircase_fast.calibration.priors import with_prior
from staircase_fast.fitting import fit
from staircase_fast.groups.fits import fit_columns
from staircase_fast.inputs.columns import Column
from staircase_fast.staircase.result import Staircase
from staircase_fast.typing import Direction


class Options(NamedTuple):
    """How scores are calibrated."""

    increasing: Direction
    pseudo_count: float
    interpolation: str
    n_threads: int | None


def fit_classes(
    scores: Column, codes: NDArray[np.intp], n_classes: int, sample_weight: Any, options: Options
) -> tuple[Staircase, ...]:
    """The staircase of the second of two classes, or one for each of more, each against all others."""
    how: dict[str, Any] = {
        "sample_weight": sample_weight, "loss": "log",
        "increasing": options.increasing, "n_threads": options.n_threads,
    }  # fmt: skip
    found: tuple[Staircase, ...]
    if n_classes == 2:
        found = (fit(scores, codes == 1, **how),)
    else:
        found = tuple(fit_columns(scores, codes[:, np.newaxis] == np.arange(n_classes), **how).values())
    return tuple(with_prior(stairs, options.pseudo_count) for stairs in found)


def probabilities(stairs: tuple[Staircase, ...], scores: Column, options: Options) -> NDArray[np.float64]:
    """One row for each of the scores, one column for each class; a row sums up to 1."""
    how: dict[str, Any] = {"interpolation": options.interpolation, "n_threads": options.n_threads}
    if len(stairs) == 1:
        both = np.empty((len(scores), 2))
        both[:, 1] = stairs[0].predict(scores, **how)
        np.subtract(1.0, both[:, 1], out=both[:, 0])
        return both
    found = np.column_stack([one.predict(column, **how) for one, column in zip(stairs, scores.T, strict=True)])
    totals = found.sum(axis=1, keepdims=True)
    even = np.full(found.shape, 1 / len(stairs))
    np.divide(found, totals, out=even, where=totals > 0)
    return even
