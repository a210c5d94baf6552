"""Bands of a CORP curve: their options, and the result."""

from __future__ import annotations

import math
import operator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from staircase_fast.calibration.consistency import Resampling, consistency_band
from staircase_fast.calibration.families import Distribution, distribution_of, observations_of
from staircase_fast.calibration.honest import confidence_band
from staircase_fast.calibration.pointwise import pointwise_band, quantile_of
from staircase_fast.errors import InvalidInputError, InvalidTypeError
from staircase_fast.inputs.options import check_choice, check_function, check_number
from staircase_fast.inputs.rows import Columns, copy_targets_and_weights, read_scores
from staircase_fast.losses import Loss
from staircase_fast.staircase.result import Staircase
from staircase_fast.typing import ColumnLike

_Floats = NDArray[np.float64]
_KINDS = ("confidence", "pointwise", "consistency")


class Bands(NamedTuple):
    """Bounds of a curve at some scores; `at` evaluates them at any score."""

    x: _Floats
    """Scores, in ascending order."""
    lower: _Floats
    upper: _Floats
    kind: str
    """"confidence", "pointwise" or "consistency"."""
    level: float
    """The probability of the promise."""
    simultaneous: bool
    """Whether the band promises to contain the curve at all scores at once, or at each score separately."""
    least: float
    """The least possible value of the curve."""
    greatest: float
    n_resamples: int
    """The number of resamples; 0 if there are none."""
    p_value: float
    """The p-value of a test of calibration; NaN for pointwise bands."""

    @property
    def description(self) -> str:
        """What the band is, in a few words."""
        kind = "confidence" if self.kind == "pointwise" else self.kind
        return f"{100 * self.level:g} % {kind} band, {'simultaneous' if self.simultaneous else 'pointwise'}"

    @property
    def promise(self) -> str:
        """What the band promises, as a sentence."""
        level = f"{100 * self.level:g} %"
        if self.kind == "consistency":
            where = "everywhere" if self.simultaneous else "at any one score"
            chance = f"probability about {level}"
            return f"If the scores are calibrated, their curve lies within the band {where} with {chance}."
        where, chance = "at any one score, in large samples,", f"probability {level}"
        if self.simultaneous:
            where, chance = "at all scores at once", f"probability {level} or more"
        condition = "rows are independent and the curve increases"
        if self.greatest == math.inf:  # targets are not labels, whose distribution is known
            distribution = "the distribution of the score (Poisson, gamma or normal)"
            condition = f"rows are independent, the curve increases and targets have {distribution}"
        return f"The band contains the true curve {where} with {chance}, if {condition}."

    def at(self, scores: ColumnLike) -> tuple[_Floats, _Floats]:
        """The bounds at any scores.

        The curve increases.  Between two scores of the band it lies above the lower bound of the one before and below
        the upper bound of the one after.

        Parameters
        ----------
        scores : array_like of shape (n,)
            Any scores.

        Returns
        -------
        lower, upper : ndarray of shape (n,)

        Examples
        --------
        >>> import staircase_fast as sf
        >>> band = sf.reliability([0.2] * 20 + [0.8] * 20, [0] * 20 + [1] * 20, bands="confidence").bands
        >>> [bound.round(3) for bound in band.at([0.1, 0.5, 0.9])]
        [array([0.   , 0.   , 0.803]), array([0.197, 1.   , 1.   ])]
        """
        queries = read_scores("scores", scores)
        lower = np.append(self.least, self.lower)[np.searchsorted(self.x, queries, side="right")]
        upper = np.append(self.upper, self.greatest)[np.searchsorted(self.x, queries, side="left")]
        return lower, upper

    def outline(self) -> tuple[_Floats, _Floats, _Floats]:
        """Scores, lower and upper bounds of the corners of the band, for a plot."""
        # after each score but the last one, the upper bound rises; before the next one, the lower bound has not risen
        x, lower, upper = (np.repeat(column, 3)[1:-1] for column in self[:3])
        lower[2::3] = lower[1::3]
        upper[1::3] = upper[3::3]
        return x, lower, upper


class BandOptions(NamedTuple):
    """Valid options of bands."""

    kind: str
    level: float
    simultaneous: bool
    distribution: Distribution | None  # of targets; None for consistency bands
    resampling: Resampling


def check_band_options(
    bands: object,
    loss: Loss,
    *,
    level: object = 0.9,
    simultaneous: object = True,
    dispersion: object = None,
    n_resamples: object = 1000,
    seed: Any = None,
    progress: object = None,
) -> BandOptions | None:
    """Check the options; return None if no bands are wanted."""
    if bands is None:
        return None
    kind = check_choice("bands", bands, _KINDS)
    if kind == "consistency" and (not loss.is_mean or loss.value_range != (0.0, 1.0)):
        raise InvalidInputError("bands", f"must be 'confidence' or None for {loss.name}", value=kind)
    if kind == "consistency" and dispersion is not None:
        raise InvalidInputError("dispersion", "must be None for consistency bands", value=dispersion)
    if not isinstance(simultaneous, (bool, np.bool_)):
        raise InvalidTypeError("simultaneous", "must be True or False", value=simultaneous)
    if kind == "confidence" and not simultaneous:
        hint = "Use bands='pointwise' for intervals at single scores."
        raise InvalidInputError("simultaneous", "must be True for confidence bands", value=simultaneous, hint=hint)
    share = check_number("level", level)
    if not 0 < share < 1:
        hint = f"Did you mean {share / 100:g}?" if 1 < share < 100 else ""
        raise InvalidInputError("level", "must be > 0 and < 1", value=level, hint=hint)
    if kind == "pointwise":
        quantile_of(share)
    try:
        n = 0 if isinstance(n_resamples, bool) else operator.index(n_resamples)  # type: ignore[arg-type]
    except TypeError:
        raise InvalidTypeError("n_resamples", "must be an integer >= 1", value=n_resamples) from None
    if n < 1:
        raise InvalidInputError("n_resamples", "must be an integer >= 1", value=n_resamples)
    try:
        sequence = seed if isinstance(seed, np.random.SeedSequence) else np.random.SeedSequence(seed)
    except (TypeError, ValueError):
        raise InvalidTypeError("seed", "must be None, an integer >= 0 or a numpy SeedSequence", value=seed) from None
    if progress is not None and not isinstance(progress, bool):
        check_function("progress", progress)
    distribution = None if kind == "consistency" else distribution_of(kind, loss, dispersion)
    return BandOptions(
        kind, share, bool(simultaneous) and kind != "pointwise", distribution, Resampling(n, sequence, progress)
    )


def make_bands(columns: Columns, loss: Loss, stairs: Staircase, options: BandOptions, n_threads: int) -> Bands:
    """The bands of a fit of valid columns."""
    columns = copy_targets_and_weights(columns)
    kind, level, simultaneous, distribution, resampling = options
    n_resamples, low, high = resampling.n_resamples, 0.0, 1.0
    if distribution is None:
        x, lower, upper, p_value = consistency_band(columns, loss, stairs, level, simultaneous, resampling, n_threads)
    else:
        seen = observations_of(columns, loss, distribution)
        if kind == "pointwise":
            keep, lower, upper = pointwise_band(seen, stairs, level)
            p_value = math.nan
        else:
            lower, upper, p_value = confidence_band(seen, level, n_threads)
            keep = _corners(lower, upper)
            lower, upper = lower[keep], upper[keep]
        x, lower, upper = seen.scores[keep], seen.as_forecasts(lower), seen.as_forecasts(upper)
        low, high = seen.as_forecasts(np.array(seen.mean_range)).tolist()
        n_resamples = 0
    for column in (x, lower, upper):
        column.setflags(write=False)
    return Bands(x, lower, upper, kind, level, simultaneous, low, high, n_resamples, p_value)


def _corners(lower: _Floats, upper: _Floats) -> NDArray[np.intp]:
    """Places on both sides of each change, and both ends; between them nothing changes."""
    changes = (lower[1:] != lower[:-1]) | (upper[1:] != upper[:-1])
    return np.flatnonzero(np.append(True, changes) | np.append(changes, True))
