"""Reliability of forecasts: the CORP curve, the parts of the mean score, and bands around the curve."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import partial
from typing import Any, Literal

import numpy as np

from staircase_fast import threads
from staircase_fast.arithmetic.exact import extent_of
from staircase_fast.bisection import solve
from staircase_fast.calibration.bands import Bands, check_band_options, make_bands
from staircase_fast.calibration.decomposition import Histogram, decompose
from staircase_fast.errors import InvalidTypeError, refuse_entries
from staircase_fast.fitting import of_columns
from staircase_fast.inputs import hints
from staircase_fast.inputs.options import refuse_choice
from staircase_fast.inputs.rows import Columns, check_no_nan, read_columns, warn_if_swapped
from staircase_fast.losses import BY_NAME, SYNONYMS, Loss, SquaredError, loss_of
from staircase_fast.losses.parameters import range_text
from staircase_fast.losses.rows import check_parameter_length, check_targets
from staircase_fast.stack.sorted_rows import UNBOUNDED
from staircase_fast.staircase.result import Staircase
from staircase_fast.storage import documents
from staircase_fast.typing import Axes, ColumnLike, public_class


class Brier(SquaredError):  # noqa: N818  (not an exception)
    """The squared error of probabilities."""

    name = "brier"
    target_range = value_range = (0.0, 1.0)


@public_class("staircase_fast")
@dataclass(frozen=True, repr=False, eq=False)
class Reliability:
    """The result of `reliability`.

    Attributes
    ----------
    stairs : Staircase
        The CORP curve: the staircase of the optimally recalibrated forecasts.
    score : str or Loss
        The score: "brier", or a loss.
    n_samples : int
        The number of rows with weight > 0.
    mean_score : float
        The mean score of the forecasts; lower is better.  It equals miscalibration - discrimination + uncertainty.
    miscalibration : float
        The decrease of the mean score by recalibration; 0 for calibrated forecasts.
    discrimination : float
        How much better recalibrated forecasts are than the best constant forecast; 0 if they carry no information.
    uncertainty : float
        The mean score of the best constant forecast.
    calibration_error : float
        The expected calibration error: the mean distance between forecasts and recalibrated forecasts.
    histogram : Histogram
        `counts` of forecasts, or their total weight, between `edges`.
    bands : Bands or None
        `x`, `lower` and `upper` of the bands, and the `p_value` of a test of calibration, if `bands` was passed.

    Notes
    -----
    Thread-safety: it is immutable, and any number of threads may use it at once.

    Examples
    --------
    >>> import staircase_fast as sf
    >>> sf.reliability([0.25, 0.5, 0.5, 0.75], [0, 0, 1, 1]).miscalibration
    0.03125
    """

    stairs: Staircase
    score: str | Loss
    n_samples: int
    mean_score: float
    miscalibration: float
    discrimination: float
    uncertainty: float
    calibration_error: float
    histogram: Histogram
    bands: Bands | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "histogram", Histogram(*self.histogram))  # a pickle has plain tuples
        object.__setattr__(self, "bands", None if self.bands is None else Bands(*self.bands))

    @property
    def mcb(self) -> float:
        """Short for `miscalibration`."""
        return self.miscalibration

    @property
    def dsc(self) -> float:
        """Short for `discrimination`."""
        return self.discrimination

    @property
    def unc(self) -> float:
        """Short for `uncertainty`."""
        return self.uncertainty

    @property
    def score_name(self) -> str:
        """The name of the score."""
        return self.score if isinstance(self.score, str) else self.score.name

    def plot(
        self, ax: Axes | None = None, *, histogram: bool = True, numbers: bool = True, color: str | None = None
    ) -> Axes:
        """Draw a reliability diagram; needs matplotlib, the extra [plot].

        The curve is thick over the range of forecasts of each step, and thin between steps.  A histogram of forecasts
        is drawn below it, the mean score and its parts in a corner.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; by default in a new figure.
        histogram, numbers : bool, default True
            Whether to draw the histogram, and the mean score with its parts.
        color : str, optional
            The colour of the curve.

        Returns
        -------
        matplotlib Axes
            Its artists have labels for `ax.legend()`.

        Examples
        --------
        >>> import staircase_fast as sf
        >>> ax = sf.reliability([0.1, 0.5, 0.9], [0, 0, 1]).plot(histogram=False)
        >>> ax.get_legend_handles_labels()[1]
        ['calibrated', 'recalibrated']
        """
        from staircase_fast.calibration.plots import draw_reliability

        return draw_reliability(self, ax, histogram=histogram, numbers=numbers, color=color)

    def to_dict(self) -> dict[str, Any]:
        """Return all fields as plain Python objects for JSON.  Infinite numbers become "inf" or "-inf".

        Examples
        --------
        >>> import staircase_fast as sf
        >>> sf.reliability([0.0, 0.5, 0.5], [1, 0, 1], score="log").to_dict()["mean_score"]
        'inf'
        """
        found: dict[str, Any] = {}
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, Staircase):
                value = json.loads(value.to_json())
            elif isinstance(value, Loss):
                value = documents.plain_loss(value)
            elif isinstance(value, tuple):
                value = {name: _plain(part) for name, part in value._asdict().items()}  # type: ignore[attr-defined]
            found[field.name] = _plain(value)
        return found

    def __reduce__(self) -> tuple[Any, ...]:
        values = (getattr(self, field.name) for field in fields(self))
        return Reliability, tuple(tuple(value) if isinstance(value, tuple) else value for value in values)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Reliability):
            return NotImplemented
        # staircases are compared by themselves: in JSON, bounds that equal the values may be left out
        same = {"stairs": None}
        return self.to_dict() | same == other.to_dict() | same and self.stairs == other.stairs

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return (
            f"<Reliability: {self.score_name} {self.mean_score:.6g} = miscalibration {self.miscalibration:.6g} - "
            f"discrimination {self.discrimination:.6g} + uncertainty {self.uncertainty:.6g}; "
            f"calibration error {self.calibration_error:.6g}, {self.n_samples} row{'s' if self.n_samples != 1 else ''}>"
        )


def reliability(
    scores: ColumnLike,
    targets: ColumnLike,
    *,
    sample_weight: ColumnLike | None = None,
    score: str | Loss = "brier",
    bands: Literal["confidence", "pointwise", "consistency"] | None = None,
    level: float = 0.9,
    simultaneous: bool = True,
    dispersion: float | None = None,
    n_resamples: int = 1000,
    seed: int | np.random.SeedSequence | None = None,
    progress: bool | Callable[[int, int], object] | None = None,
    n_threads: int | None = None,
) -> Reliability:
    """Assess forecasts: the CORP reliability curve and the decomposition of their mean score.

    The curve is the staircase of the optimally recalibrated forecasts.  It shows the observed frequency for each
    forecast and needs no choice of bins.  The mean score of the forecasts is

        mean_score = miscalibration - discrimination + uncertainty

    These parts are explained in `Reliability`; the first two are never negative.

    Parameters
    ----------
    scores : array_like of shape (n,)
        Forecasts: probabilities, or any values in the domain of the score.
    targets : array_like of shape (n,)
        Outcomes: labels 0 and 1, or any targets in the domain of the score.
    sample_weight : array_like of shape (n,), optional
        Weights >= 0; rows with weight 0 are ignored.
    score : str or Loss, default "brier"
        "brier" (the squared error of probabilities), "log", or another loss of `staircase_fast.losses` with known
        values, by name or as an object.  The log loss is infinite if an event with forecast probability 0 occurs.
    bands : {"confidence", "pointwise", "consistency"}, optional
        "confidence": a band that contains the true curve at all scores, with probability at least `level`, if targets
        are independent given the scores and the true curve increases.  It needs labels 0 and 1 (or shares of
        `sample_weight` trials), Poisson counts under the Poisson deviance, or gamma or normal targets with a known
        `dispersion` under the gamma deviance or the squared error.  "pointwise": confidence intervals of probabilities
        at single scores.  Each contains the true curve with probability `level`, if there are many rows, scores are
        continuous, and the true curve has a positive slope there.  They are narrower than a confidence band.
        "consistency": a band around the diagonal, within which the curve of calibrated forecasts would lie with
        probability about `level`.  It needs probabilities and labels 0 and 1.
    level : float, default 0.9
        The probability that a band promises.
    simultaneous : bool, default True
        Whether a consistency band promises to contain the curve at all scores at once, or at each score separately.
    dispersion : float, optional
        For confidence bands under the squared error, the variance of a target of weight 1; under the gamma deviance,
        its squared coefficient of variation.  It must be known in advance, not estimated from these rows.
    n_resamples : int, default 1000
        The number of resamples for a consistency band, which is too narrow if there are few.
    seed : int or numpy SeedSequence, optional
        Seed for a reproducible consistency band; None varies each time.
    progress : callable or bool, optional
        `progress(done, total)` is called after resamples by the calling thread.  True shows a tqdm bar on stderr.
    n_threads : int, optional
        Number of threads for this call.  Defaults to `get_num_threads()`.  The result does not depend on it.

    Returns
    -------
    Reliability

    Notes
    -----
    The curve is exact, as `fit` computes it.  The numbers are accurate up to rounding.

    A confidence band holds for any number of rows.  `docs/uncertainty.md` compares the bands and names the proof.  A
    consistency band comes from labels that are drawn with the forecast probabilities.  `bands.p_value` tests whether
    the forecasts are calibrated: for a confidence band it is the least 1 - level at which the diagonal leaves the
    band, for a consistency band the rank of the miscalibration among those of the resamples.

    Thread-safety: inputs are only read; the kernels run without the GIL.  Ctrl-C stops after the current resample.

    References
    ----------
    T. Dimitriadis, T. Gneiting, A. I. Jordan, "Stable reliability diagrams for probabilistic classifiers", 2021.

    T. Dimitriadis, L. Duembgen, A. Henzi, M. Puke, J. Ziegel, "Honest calibration assessment for binary outcome
    predictions", 2023.

    L. Delong, S. Gatti, M. V. Wuethrich, "Calibration bands for mean estimates within the exponential dispersion
    family", 2025.

    Examples
    --------
    >>> import staircase_fast as sf
    >>> labels, forecasts = [0, 0, 0, 1, 1, 1], [0.4, 0.3, 0.2, 0.1, 0.5, 0.9]
    >>> found = sf.reliability(forecasts, labels)
    >>> found
    <Reliability: brier 0.226667 = miscalibration 0.101667 - discrimination 0.125 + uncertainty 0.25;
    calibration error 0.166667, 6 rows>
    >>> sf.reliability(forecasts, labels, bands="consistency", seed=0).bands.lower.round(2)
    array([0. , 0. , 0. , 0. , 0. , 0.1])

    `found.plot()` draws the reliability diagram.
    """
    loss = read_score(score)
    options = check_band_options(
        bands,
        loss,
        level=level,
        simultaneous=simultaneous,
        dispersion=dispersion,
        n_resamples=n_resamples,
        seed=seed,
        progress=progress,
    )
    columns = read_columns(scores, targets, sample_weight)
    n = len(columns[0])
    check_parameter_length(loss, n)
    workers = threads.num_threads(n_threads, n)
    ends = _check_forecasts(columns, loss, workers)
    fitted: Loss = SquaredError() if isinstance(loss, Brier) else loss
    stairs = _fitted(columns, fitted, workers)
    constant = stairs if stairs.n_steps == 1 else _fitted((np.zeros(n), *columns[1:]), fitted, workers)
    parts = decompose(columns, loss, stairs, float(constant.values[0]), ends, workers)
    found = None
    if options is not None:
        # each row is resampled many times, so that threads pay off for fewer rows
        found = make_bands(columns, loss, stairs, options, threads.num_threads(n_threads, 64 * n))
    if loss.value_range == (0.0, 1.0):
        warn_if_swapped(*columns[:2])
    name = loss.name if isinstance(loss, Brier) else loss
    return Reliability(stairs, name, int(stairs.counts.sum()), *parts, found)


def number_text(number: float) -> str:
    """A number in reports: six digits, or a whole number with commas."""
    return f"{number:,.0f}" if 1e3 <= abs(number) < 1e15 and number == int(number) else f"{number:.6g}"


def _plain(value: Any) -> Any:
    """Numbers as plain Python objects for JSON."""
    if isinstance(value, np.ndarray):
        return documents.plain_numbers(value.tolist())
    return documents.plain_numbers([value])[0] if isinstance(value, float) else value


def read_score(score: object) -> Loss:
    """The loss that scores the forecasts, given as an object or by name."""
    if isinstance(score, str) and score == Brier.name:
        return Brier()
    if isinstance(score, str) and score not in BY_NAME:
        refuse_choice("score", score, (Brier.name, *BY_NAME), SYNONYMS)
    loss = loss_of(score, "score")
    if not loss.has_values:
        raise InvalidTypeError("score", "must be a loss with known values", value=loss)
    return loss


def _check_forecasts(columns: Columns, loss: Loss, n_threads: int) -> tuple[float, float]:
    """Check that forecasts are in the domain of the loss; return the ends of their histogram."""
    x, y, _ = columns
    extent = extent_of(x, n_threads)
    lowest, highest = extent.lowest, extent.highest
    if extent.first_bad >= 0:
        check_no_nan("scores", x, n_threads)
        if not loss.allows_infinite_values:
            refuse_entries("scores", "must be finite", x, ~np.isfinite(x))
        finite = x[np.isfinite(x)]
        lowest, highest = (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 0.0)
    low, high = loss.value_range
    if lowest < low or highest > high:
        within = f"must be {range_text(low, high)} for {loss.name}"
        hint = partial(hints.for_probabilities, "scores", x) if high == 1 else str
        refuse_entries("scores", within, x, (x < low) | (x > high), hint=hint)
    if isinstance(loss, Brier):  # the fit uses the squared error, which allows any targets
        check_targets("targets", y, extent_of(y, n_threads), loss, x)
    return (0.0, 1.0) if loss.value_range == (0.0, 1.0) else (lowest, highest)


def _fitted(columns: Columns, loss: Loss, workers: int) -> Staircase:
    """The staircase of columns, without bounds: log-odds may be infinite."""
    return of_columns(columns, loss, True, UNBOUNDED, solve.Budget(n_threads=workers), workers)
