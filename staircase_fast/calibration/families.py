"""Sums of targets by score, with the distribution that confidence bounds need.

All rows of one score are an observation.  Its sum of weight times target has a distribution of the exponential
dispersion family with the mean of the curve at that score.  Sums of observations with one mean belong to it as well:

- binomial: labels, or shares of successes whose weights are numbers of trials.  The sum counts successes.
- Poisson: counts with exposures, or rates whose weights are exposures.  The sum counts events.
- gamma, normal: the variance of a row is dispersion / weight times mean**2, or dispersion / weight.  Sums and weights
  are divided by the dispersion, so that it is 1 afterwards.
"""

from __future__ import annotations

import math
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from staircase_fast.bisection.samples import samples_of
from staircase_fast.errors import InvalidInputError, refuse_entries
from staircase_fast.inputs import hints
from staircase_fast.inputs.options import check_number
from staircase_fast.inputs.rows import Columns
from staircase_fast.losses import GammaDeviance, Logistic, Loss, PoissonDeviance, SquaredError, TweedieDeviance
from staircase_fast.losses.rows import check_rows_and_parameters

_Floats = NDArray[np.float64]
_BY_POWER = {0.0: "normal", 1.0: "poisson", 2.0: "gamma"}  # of the variance as a function of the mean
_RANGES = {
    "binomial": (0.0, 1.0),
    "poisson": (0.0, math.inf),
    "gamma": (0.0, math.inf),
    "normal": (-math.inf, math.inf),
}
_CLOSE = 1e-9  # weight times target may differ from a whole number by this share, because a share is rounded
_WHOLE = 2.0**53  # larger floats are all whole
_SPREAD = 2.0**60  # the weight of an interval is the difference of two sums of 106 bits


class Distribution(NamedTuple):
    """The distribution of a target."""

    family: str
    dispersion: float
    log_odds: bool  # forecasts and bounds are log-odds of the mean


class Observations(NamedTuple):
    """Scores in ascending order, each with the sum and the weight of its rows."""

    scores: _Floats
    forecasts: _Floats  # the means that the scores forecast
    sums: _Floats
    weights: _Floats
    distribution: Distribution

    @property
    def mean_range(self) -> tuple[float, float]:
        """The least and the greatest mean."""
        return _RANGES[self.distribution.family]

    def as_forecasts(self, means: _Floats) -> _Floats:
        """Means in the unit of the scores."""
        if not self.distribution.log_odds:
            return means
        with np.errstate(divide="ignore"):
            return np.log(means) - np.log1p(-means)


def distribution_of(kind: str, loss: Loss, dispersion: object) -> Distribution:
    """The distribution that a loss stands for; bands of other losses are refused."""
    log_odds = isinstance(loss, Logistic) and not np.any(loss.offset)
    family = ""
    if log_odds or (loss.is_mean and loss.value_range == (0.0, 1.0)):
        family = "binomial"
    elif isinstance(loss, TweedieDeviance):
        family = _BY_POWER.get(loss.power, "")
    else:
        classes = {"poisson": PoissonDeviance, "gamma": GammaDeviance, "normal": SquaredError}
        family = next((name for name, its_class in classes.items() if isinstance(loss, its_class)), "")
    if kind == "pointwise" and family != "binomial":
        family = ""
    if not family:
        others = "" if kind == "pointwise" else ", 'poisson_deviance', 'gamma_deviance' and 'squared'"
        hint = f"Bounds are known for the scores 'brier', 'log', 'logistic' without offset{others}."
        requirement = f"must be None for {loss.name}: no {kind} bounds are known"
        raise InvalidInputError("bands", requirement, value=kind, hint=hint)
    if family in ("binomial", "poisson"):
        if dispersion is not None:
            raise InvalidInputError("dispersion", f"must be None for {loss.name}", value=dispersion)
        return Distribution(family, 1.0, log_odds)
    if dispersion is None:
        meaning = "variance" if family == "normal" else "squared coefficient of variation"
        hint = f"It is the {meaning} of a target of weight 1, known in advance."
        requirement = f"must be a number > 0 for {kind} bands and {loss.name}"
        raise InvalidInputError("dispersion", requirement, value=dispersion, hint=hint)
    number = check_number("dispersion", dispersion)
    if number <= 0:
        raise InvalidInputError("dispersion", "must be > 0", value=dispersion)
    return Distribution(family, number, log_odds)


def observations_of(columns: Columns, loss: Loss, distribution: Distribution) -> Observations:
    """Sums of valid columns by score."""
    if distribution.family in ("binomial", "poisson"):
        _check_whole(columns, distribution)
    valid, own_loss = check_rows_and_parameters(*columns, loss)
    samples, own_loss = samples_of(valid, own_loss)
    weights = samples.weights if len(samples.weights) else np.ones(len(samples.scores))
    with np.errstate(over="ignore", under="ignore"):
        sums = weights * samples.targets / distribution.dispersion
        if isinstance(own_loss, PoissonDeviance):
            weights = weights * own_loss.exposure
        weights = weights / distribution.dispersion
    if distribution.family in ("binomial", "poisson"):
        sums = np.rint(sums)
    scores = samples.scores
    if len(samples.ends):
        starts = np.append(0, np.flatnonzero(samples.ends)[:-1] + 1)
        scores, sums, weights = scores[starts], np.add.reduceat(sums, starts), np.add.reduceat(weights, starts)
    with np.errstate(over="ignore"):
        fits = np.isfinite(np.abs(sums).sum()) and np.isfinite(weights.sum()) and bool(weights.all())
    if not fits:
        raise InvalidInputError("targets", "times weights over dispersion, and their sums, must be within float64")
    if distribution.family != "binomial" and weights.sum() > _SPREAD * weights.min():
        requirement = "(or exposures) must be at least 2**-60 of their sum for confidence bands"
        found = f"got {weights.min():.3g} of {weights.sum():.3g}"
        raise InvalidInputError("sample_weight", requirement, found=found)
    scores = scores.astype(np.float64) + 0.0
    forecasts = scores
    if distribution.log_odds:
        with np.errstate(over="ignore"):
            forecasts = 1.0 / (1.0 + np.exp(-scores))
    return Observations(scores, forecasts, sums, weights, distribution)


def _check_whole(columns: Columns, distribution: Distribution) -> None:
    """Weights must count trials, and sums successes or events."""
    x, y, w = columns
    what = "trials" if distribution.family == "binomial" else "events"
    if len(w) and distribution.family == "binomial":
        requirement = "must be whole numbers of independent trials: no bounds are known for other weights of labels"
        refuse_entries("sample_weight", requirement, w, (w != np.rint(w)) | (w > _WHOLE))
    sums = y.astype(np.float64) * w if len(w) else y.astype(np.float64, copy=False)
    counts = np.rint(sums)
    requirement = f"times `sample_weight` must be whole numbers of {what}: no bounds are known otherwise"
    if not len(w):
        requirement = f"must be {'0 or 1' if what == 'trials' else 'whole numbers'}: no bounds are known otherwise"
    invalid = (np.abs(sums - counts) > _CLOSE * counts) | (counts > _WHOLE)
    refuse_entries("targets", requirement, y, invalid, hint=partial(hints.for_labels, "targets", y, x))
