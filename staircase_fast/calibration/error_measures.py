"""Calibration errors, each beside the value that a calibrated forecast would show."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, fields
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from staircase_fast import threads
from staircase_fast.calibration.measures import Measure, Measures, read_rows
from staircase_fast.calibration.monotone_test import LEVEL
from staircase_fast.errors import InvalidInputError, InvalidTypeError, check_count, refuse_cells, refuse_entries
from staircase_fast.inputs import hints
from staircase_fast.inputs.columns import Column, read_array
from staircase_fast.inputs.rows import check_same_index, read_classes
from staircase_fast.typing import ColumnLike, public_class

_SUM_ERROR = 1e-6  # by which the probabilities of a row may miss 1


@public_class("staircase_fast")
class CalibrationError(NamedTuple):
    """One measure of `calibration_errors`.

    Attributes
    ----------
    observed : float
        The error of the forecasts.  It is biased: it is positive even for calibrated forecasts.
    if_calibrated : float
        The mean error of calibrated forecasts: the same forecasts and weights, with labels that they predict correctly.
    spread : float
        The standard deviation of that error.

    Examples
    --------
    >>> import staircase_fast as sf
    >>> sf.CalibrationError(0.05, 0.03, 0.01).debiased.__round__(3)
    0.02
    """

    observed: float
    if_calibrated: float
    spread: float

    @property
    def debiased(self) -> float:
        """`observed - if_calibrated`: its mean is 0 for calibrated forecasts.  It may be negative."""
        return self.observed - self.if_calibrated


@public_class("staircase_fast")
@dataclass(frozen=True, repr=False)
class CalibrationErrors:
    """The result of `calibration_errors` for two classes; see there for the measures.

    Attributes
    ----------
    calibration_error : CalibrationError
        The mean distance between forecasts and isotonically recalibrated forecasts.
    miscalibration : CalibrationError
        The decrease of the Brier score by isotonic recalibration, MCB.
    smooth : CalibrationError
        The smooth calibration error.
    binned : CalibrationError
        The expected calibration error with bins of equal width.
    adaptive : CalibrationError
        The expected calibration error with bins of equal weight.
    binned_squared : CalibrationError
        The mean squared error of bins of equal width.
    monotone_p_value : float
        The p-value of the test that frequencies do not decrease as forecasts increase.
    n_samples : int
        The number of rows with weight > 0.

    Notes
    -----
    Thread-safety: it is immutable, and any number of threads may use it at once.

    Examples
    --------
    >>> import staircase_fast as sf
    >>> found = sf.calibration_errors([0.1, 0.4, 0.35, 0.8], [0, 0, 1, 1])
    >>> round(found.binned.observed, 4)
    0.1375
    """

    calibration_error: CalibrationError
    miscalibration: CalibrationError
    smooth: CalibrationError
    binned: CalibrationError
    adaptive: CalibrationError
    binned_squared: CalibrationError
    monotone_p_value: float
    n_samples: int

    @property
    def measures(self) -> dict[str, CalibrationError]:
        """All measures by name."""
        pairs = ((field.name, getattr(self, field.name)) for field in fields(self))
        return {name: value for name, value in pairs if isinstance(value, CalibrationError)}

    @property
    def debiased(self) -> dict[str, float]:
        """`debiased` of each measure."""
        return {name: error.debiased for name, error in self.measures.items()}

    def __repr__(self) -> str:
        rows = f"{self.n_samples} row{'s' if self.n_samples != 1 else ''}"
        lines = [f"<CalibrationErrors: {rows}", f"{'':20}observed  if calibrated          debiased"]
        for name, error in self.measures.items():
            expected = f"{error.if_calibrated:.5f} +- {error.spread:.5f}"
            lines.append(f"{name.replace('_', ' '):20}{error.observed:.5f}   {expected}   {error.debiased:+.5f}")
        return "\n".join(lines) + ">"


@public_class("staircase_fast")
@dataclass(frozen=True, repr=False)
class ClassCalibrationErrors:
    """The result of `calibration_errors` for a table of probabilities with one column per class.

    Attributes
    ----------
    top_label : CalibrationErrors
        Errors of the largest probability of each row as a forecast that its class is the true one.
    classwise : CalibrationErrors
        The means of `by_class`.  Each `spread` is an upper bound: the mean of the spreads.  `monotone_p_value` is that
        of all classes together (Bonferroni).
    by_class : tuple of CalibrationErrors
        Errors of each column as forecasts of its class.

    Notes
    -----
    Thread-safety: it is immutable, and any number of threads may use it at once.

    Examples
    --------
    >>> import staircase_fast as sf
    >>> table = [[0.7, 0.2, 0.1], [0.2, 0.5, 0.3], [0.1, 0.3, 0.6], [0.6, 0.3, 0.1]]
    >>> found = sf.calibration_errors(table, [0, 1, 2, 1])
    >>> round(found.top_label.binned.observed, 3), round(found.classwise.binned.observed, 3)
    (0.25, 0.267)
    """

    top_label: CalibrationErrors
    classwise: CalibrationErrors
    by_class: tuple[CalibrationErrors, ...]

    def __repr__(self) -> str:
        named = {"top label": self.top_label, "classwise": self.classwise}
        parts = "\n".join(f"{name}: {errors!r}" for name, errors in named.items())
        return f"<ClassCalibrationErrors: {len(self.by_class)} classes\n{parts}>"

    @property
    def debiased(self) -> dict[str, dict[str, float]]:
        """`debiased` of `top_label` and `classwise`."""
        return {"top_label": self.top_label.debiased, "classwise": self.classwise.debiased}


def calibration_errors(
    scores: ColumnLike,
    targets: ColumnLike,
    *,
    sample_weight: ColumnLike | None = None,
    n_bins: int = 15,
    n_resamples: int = 100,
    seed: Any = 0,
    n_threads: int | None = None,
) -> CalibrationErrors | ClassCalibrationErrors:
    """Measure how far forecasts are from calibrated, and how far calibrated forecasts of this size would seem to be.

    Parameters
    ----------
    scores : array_like of shape (n,) or (n, k)
        Forecast probabilities of label 1; or of each of k classes, where rows sum to 1.
    targets : array_like of shape (n,)
        Labels 0 and 1; or classes 0 to k - 1.
    sample_weight : array_like of shape (n,), optional
        Weights >= 0; rows with weight 0 are ignored.
    n_bins : int, default 15
        The number of bins.  Bins of equal width do not include their lower end, except for the first.
    n_resamples : int, default 100
        The number of simulations for `if_calibrated` and `spread`.  A simulation keeps forecasts and weights and draws
        the labels with the forecast probabilities.
    seed : int or numpy SeedSequence, default 0
        Seed of the simulations; None varies each time.
    n_threads : int, optional
        Number of threads for this call.  Defaults to `get_num_threads()`.  The result does not depend on it.

    Returns
    -------
    CalibrationErrors, or ClassCalibrationErrors for scores of shape (n, k)

    Warns
    -----
    UserWarning
        If the data contradict the assumption that the frequency of label 1 does not decrease as forecasts increase, at
        the level 1 % (divided by the number of tests, for several classes).  `calibration_error` and `miscalibration`
        rely on it and may then be too small.

    Notes
    -----
    All errors except `binned_squared` are biased upwards, because frequencies are random.  `debiased` has mean 0 if the
    forecasts are calibrated.  If they are not, the bias of `observed` is smaller, so `debiased` tends to be too small.
    `binned_squared` subtracts an estimate of the variance in each bin instead, which makes it unbiased for any
    forecasts; bins with a single row count 0.

    With f for a forecast, y for its label, w for its weight, W = sum of w, and g for the isotonic fit of y on f:

    - calibration_error: sum of w abs(f - g) / W
    - miscalibration: sum of w ((f - y)**2 - (g - y)**2) / W
    - smooth: the bandwidth s at which the integral over t of abs(sum of w (y - f) K(f, t)) / W equals s, where K is
      the Gaussian kernel with standard deviation s, reflected at 0 and 1
    - binned, adaptive: sum over bins of abs(sum of w (y - f)) / W
    - binned_squared: sum over bins of (sum of w (y - f))**2 / (W_bin W); debiased: the sum over bins of
      W_bin / W (R**2 - Q) / (W_bin**2 - sum of w**2) with R = sum of w (y - f), Q = sum of (w (y - f))**2

    Thread-safety: inputs are only read.

    References
    ----------
    T. Dimitriadis, T. Gneiting, A. I. Jordan, "Stable reliability diagrams for probabilistic classifiers", 2021
    (calibration_error, miscalibration).  J. Blasiok, P. Nakkiran, "Smooth ECE: principled reliability diagrams via
    kernel smoothing", 2023.  C. Guo, G. Pleiss, Y. Sun, K. Weinberger, "On calibration of modern neural networks", 2017
    (binned, top_label).  K. Nguyen, B. O'Connor, "Posterior calibration and exploratory analysis for natural language
    processing models", 2015 (adaptive).  J. Broecker, "Estimating reliability and resolution of probability forecasts
    through decomposition of the empirical score", 2012, and A. Kumar, P. Liang, T. Ma, "Verified uncertainty
    calibration", 2019 (binned_squared).  M. Kull et al., "Beyond temperature scaling", 2019 (classwise).

    Examples
    --------
    >>> import numpy as np
    >>> import staircase_fast as sf
    >>> rng = np.random.default_rng(0)
    >>> forecasts = rng.random(1000)
    >>> labels = rng.random(1000) < forecasts  # calibrated
    >>> found = sf.calibration_errors(forecasts, labels)
    >>> found.calibration_error.observed > 0.02, abs(found.calibration_error.debiased) < 0.02
    (True, True)
    """
    options = _check_options(n_bins, n_resamples, seed, n_threads)
    table = read_array("scores", scores)
    if table.ndim < 2:
        found = _errors_of(scores, targets, sample_weight, options)
        _warn(["label 1"] if found.monotone_p_value < LEVEL else [], found.monotone_p_value)
        return found
    codes = _check_table(table, targets)
    check_same_index(scores=scores, targets=targets, sample_weight=sample_weight)
    n_classes = table.shape[1]
    top = np.argmax(table, axis=1)
    top_label = _errors_of(np.take_along_axis(table, top[:, np.newaxis], 1)[:, 0], codes == top, sample_weight, options)
    by_class = tuple(_errors_of(table[:, k], codes == k, sample_weight, options) for k in range(n_classes))
    level = LEVEL / (n_classes + 1)
    found_in = [f"class {k}" for k in range(n_classes) if by_class[k].monotone_p_value < level]
    found_in = ["the top label"] * (top_label.monotone_p_value < level) + found_in
    _warn(found_in, min(one.monotone_p_value for one in (top_label, *by_class)))
    return ClassCalibrationErrors(top_label, _mean_of(by_class), by_class)


class _Options(NamedTuple):
    n_bins: int
    n_resamples: int
    seed: np.random.SeedSequence
    n_threads: int | None


def _check_options(n_bins: object, n_resamples: object, seed: Any, n_threads: int | None) -> _Options:
    for name, number, least in (("n_bins", n_bins, 1), ("n_resamples", n_resamples, 2)):
        check_count(name, number, least, "")
    try:
        sequence = seed if isinstance(seed, np.random.SeedSequence) else np.random.SeedSequence(seed)
    except (TypeError, ValueError):
        raise InvalidTypeError("seed", "must be None, an integer >= 0 or a numpy SeedSequence", value=seed) from None
    return _Options(n_bins, n_resamples, sequence, n_threads)  # type: ignore[arg-type]


def _check_table(table: Column, targets: ColumnLike) -> Column:
    """Check probabilities by class; return the classes as integers."""
    if table.ndim != 2 or table.shape[1] < 2:
        requirement = "must have shape (n,) or (n, k) with k >= 2"
        raise InvalidInputError("scores", requirement, found=f"got shape {table.shape}")
    hint = partial(hints.for_probabilities, "scores", table)
    refuse_cells("scores", "must be between 0 and 1", table, ~((table >= 0) & (table <= 1)), hint=hint)
    sums = table.sum(axis=1, dtype=np.float64)
    refuse_entries("scores", "must have rows that sum to 1", sums, np.abs(sums - 1) > _SUM_ERROR)
    return read_classes("targets", targets, table)


def _errors_of(
    scores: ColumnLike, targets: ColumnLike, sample_weight: ColumnLike | None, options: _Options
) -> CalibrationErrors:
    measures, labels, n_samples = read_rows(scores, targets, sample_weight, options.n_bins)
    found = _compared(measures, measures.all, labels, options)
    found[-1] = found[-1]._replace(if_calibrated=found[-1].observed - measures.unbiased_squared(labels))
    p_value = measures.monotone_p_value(labels)
    named = dict(zip(_NAMES, found, strict=True))
    return CalibrationErrors(**named, monotone_p_value=p_value, n_samples=n_samples)


def isotonic_error(
    scores: ColumnLike,
    targets: ColumnLike,
    *,
    sample_weight: ColumnLike | None = None,
    n_resamples: int = 100,
    n_threads: int | None = None,
) -> CalibrationError:
    """The `calibration_error` of `calibration_errors`, in a small part of the time that all measures need."""
    options = _check_options(1, n_resamples, 0, n_threads)
    measures, labels, _ = read_rows(scores, targets, sample_weight, options.n_bins)
    return _compared(measures, measures.isotonic, labels, options)[0]


def _compared(measures: Measures, measure: Measure, labels: Column, options: _Options) -> list[CalibrationError]:
    """Each error of these labels, beside the mean and the standard deviation of those of simulated labels."""
    n_threads = threads.num_threads(options.n_threads, 64 * len(labels))
    simulated = measures.simulate(measure, options.n_resamples, options.seed, n_threads)
    columns = measure(labels), simulated.mean(axis=0), simulated.std(axis=0, ddof=1)
    return [CalibrationError(*row) for row in np.transpose(columns).tolist()]


_NAMES = tuple(CalibrationErrors.__annotations__)[:-2]


def _mean_of(errors: tuple[CalibrationErrors, ...]) -> CalibrationErrors:
    tables = np.array([[*one.measures.values()] for one in errors])
    p_value = min(1.0, len(errors) * min(one.monotone_p_value for one in errors))
    named = {name: CalibrationError(*row) for name, row in zip(_NAMES, tables.mean(axis=0).tolist(), strict=True)}
    return CalibrationErrors(**named, monotone_p_value=p_value, n_samples=errors[0].n_samples)


def _warn(found_in: list[str], p_value: float) -> None:
    if found_in:
        message = (
            f"The frequency of {', '.join(found_in)} decreases somewhere as the forecasts increase (p-value "
            f"{p_value:.1g}). `calibration_error` and `miscalibration` assume that it does not; they may be too small."
        )
        warnings.warn(message, UserWarning, stacklevel=3)
