"""Consistency bands: where curves of calibrated forecasts lie, from labels drawn with the forecast probabilities."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from staircase_fast import threads
from staircase_fast.arithmetic.exact import extent_of
from staircase_fast.bisection import solve
from staircase_fast.bisection.samples import Samples, samples_of
from staircase_fast.calibration import _resample
from staircase_fast.errors import InvalidInputError
from staircase_fast.inputs.options import import_optional
from staircase_fast.inputs.rows import Columns
from staircase_fast.losses import Loss, SquaredError
from staircase_fast.losses.rows import check_rows_and_parameters
from staircase_fast.stack.sorted_rows import UNBOUNDED
from staircase_fast.staircase.result import Staircase

_Floats = NDArray[np.float64]
_Integers = NDArray[np.int64]
# Draws labels with random numbers, fills the values of their curve at all places, returns their miscalibration.
_Fit = Callable[[np.random.SFC64, _Floats], float]

_POINTS = 512  # scores, spread evenly over the rows
_EACH_ROW = np.empty(0, dtype=np.int64)
_POWERS = 500  # products of weights that are scaled to at most 1 do not underflow if they differ by at most 2**500
_EQUAL = 1e-9  # miscalibrations that differ by less, as a share, may differ by rounding only


class Resampling(NamedTuple):
    """How labels are drawn."""

    n_resamples: int
    seed: np.random.SeedSequence
    progress: Any  # a function, a bool or None


def consistency_band(
    columns: Columns,
    loss: Loss,
    stairs: Staircase,
    level: float,
    simultaneous: bool,
    resampling: Resampling,
    n_threads: int,
) -> tuple[_Floats, _Floats, _Floats, float]:
    """Some scores, the band there, and the p-value of a test of calibration by the same resamples.

    The statistic of the test is the miscalibration under the Brier score.  If the forecasts are calibrated, all ranks
    of its observed value among those of the resamples have the same probability (ties aside, which make the p-value
    larger).  The p-value is therefore exact for any number of resamples.
    """
    samples, borders = labels_of(columns, loss)
    x, curves, found = resampled(samples, borders, resampling, n_threads)
    observed = _miscalibration(samples, stairs.predict(samples.scores))
    p_value = (1 + int(np.count_nonzero(found >= observed * (1.0 - _EQUAL)))) / (1 + len(found))
    lower, upper = (simultaneous_limits if simultaneous else pointwise_limits)(curves, level)
    return x, lower, upper, p_value


def resampled(
    samples: Samples, borders: _Integers, resampling: Resampling, n_threads: int
) -> tuple[_Floats, _Floats, _Floats]:
    """Some scores, the values of the resampled curves there, one row per curve, and their miscalibrations."""
    places = places_of(borders)
    n = resampling.n_resamples
    curves, found = np.empty((n, len(places))), np.empty(n)
    _run(_make_fit(samples, borders, places), curves, found, resampling, n_threads)
    return samples.scores[borders[places]].astype(np.float64) + 0.0, curves, found


def pointwise_limits(curves: _Floats, level: float) -> tuple[_Floats, _Floats]:
    """Limits between which this share of all curves lies, at each place separately."""
    curves.sort(axis=0)
    outside = math.floor((1.0 - level) / 2.0 * len(curves) + 1e-9)  # on each side
    outside = min(outside, (len(curves) - 1) // 2)
    return curves[outside].copy(), curves[-1 - outside].copy()


def simultaneous_limits(curves: _Floats, level: float) -> tuple[_Floats, _Floats]:
    """Limits between which this share of all curves lies at all places at once.

    Deviations from the mean curve are measured in standard deviations, one for each place and direction, because the
    distributions are skewed near 0 and 1.  A curve lies within the limits if its largest deviation is at most that of
    the given share of all curves.  Deviations are measured after the transform arcsin(sqrt(value)), which makes the
    variance of a frequency nearly independent of its mean, so that no place needs a much larger factor than others.
    """
    angles = np.arcsin(np.sqrt(curves))
    centre = angles.mean(axis=0)
    angles -= centre
    scales = [np.sqrt(np.mean(np.clip(angles, *side) ** 2, axis=0)) for side in ((-math.inf, 0), (0, math.inf))]
    with np.errstate(invalid="ignore", divide="ignore"):
        down, up = (np.nan_to_num(side) for side in (-angles / scales[0], angles / scales[1]))
    farthest = np.sort(np.maximum(down, up).max(axis=1))
    rank = min(math.ceil(level * (len(curves) + 1) - 1e-9), len(curves))
    factor = farthest[rank - 1] * (1.0 + _EQUAL)  # the curve that sets the limit lies within it
    ends = centre - factor * scales[0], centre + factor * scales[1]
    lower, upper = (np.sin(np.clip(end, 0.0, math.pi / 2)) ** 2 for end in ends)
    # curves increase, so a limit holds for all later places, or for all earlier ones
    return np.maximum.accumulate(lower), np.minimum.accumulate(upper[::-1])[::-1]


def places_of(borders: _Integers, points: int = _POINTS) -> _Integers:
    """Observations spread evenly over the rows.

    An observation consists of all rows with one score.  `borders` has the first row of each, and n as its last entry.
    Places must not depend on the targets: at the ends of its own steps, a curve is farther out than others are there.
    """
    rows = np.linspace(0, borders[-1] - 1, min(points, int(borders[-1]))).astype(np.int64)
    return np.unique(np.searchsorted(borders, rows, side="right") - 1).astype(np.int64, copy=False)


def labels_of(columns: Columns, loss: Loss) -> tuple[Samples, _Integers]:
    """Rows in score order, with targets 0 and 1; and the borders of observations."""
    samples, _ = samples_of(*check_rows_and_parameters(*columns, loss))
    other = samples.targets[(samples.targets != 0) & (samples.targets != 1)]
    if len(other):
        requirement = "must be None if `targets` are not all 0 or 1"
        raise InvalidInputError("bands", requirement, found=f"got 'consistency' and {other[0]}")
    last = np.flatnonzero(samples.ends) if len(samples.ends) else np.arange(len(samples.scores))
    return samples, np.append(0, last + 1).astype(np.int64, copy=False)


def _make_fit(samples: Samples, borders: _Integers, places: _Integers) -> Callable[[], _Fit]:
    """A function that makes a `_Fit` with its own work space, for each thread."""
    weights = samples.weights
    if len(weights):
        extent = extent_of(weights, 1)
        if math.frexp(extent.highest)[1] - math.frexp(extent.least)[1] > _POWERS:
            return _exact_fit(samples, borders, places)
        weights = _scaled(weights)
    total = weights.sum() if len(weights) else float(len(samples.scores))
    chances, n = samples.scores.astype(np.float64), len(borders) - 1
    ends = borders[1:] if len(samples.ends) else _EACH_ROW

    def make_fit() -> _Fit:
        work = np.empty(n, dtype=np.int64), np.empty((2, n))

        def fit(random: np.random.SFC64, values: _Floats) -> float:
            excess: float = _resample.fit_simulated(random.capsule, chances, ends, weights, places, *work, values)
            return excess / total

        return fit

    return make_fit


def _exact_fit(samples: Samples, borders: _Integers, places: _Integers) -> Callable[[], _Fit]:
    """The same with exact sums, for weights that differ too much in magnitude for the kernel, which rounds."""
    chances = samples.scores.astype(np.float64)

    def fit(random: np.random.SFC64, values: _Floats) -> float:
        labels = (np.random.Generator(random).random(len(chances)) < chances).astype(np.float64)
        drawn = samples._replace(targets=labels)
        steps = solve.fit_samples(drawn, SquaredError(), decreasing=False, bounds=UNBOUNDED, budget=solve.Budget())
        curve = steps.values[np.maximum(np.searchsorted(steps.left, samples.scores, side="right") - 1, 0)]
        values[:] = curve[borders[places]]
        return _miscalibration(drawn, curve)

    return lambda: fit


def _miscalibration(samples: Samples, curve: _Floats) -> float:
    """The miscalibration under the Brier score."""
    forecasts, labels = samples.scores.astype(np.float64), samples.targets
    weights = _scaled(samples.weights) if len(samples.weights) else None
    return float(np.average((forecasts - labels) ** 2 - (curve - labels) ** 2, weights=weights))


def _scaled(weights: _Floats) -> _Floats:
    """Weights divided by a power of two, so that none is above 1."""
    return np.ldexp(weights, -math.frexp(float(weights.max()))[1])


def _run(
    make_fit: Callable[[], _Fit],
    curves: _Floats,
    found: _Floats,
    resampling: Resampling,
    n_threads: int,
) -> None:
    """Fill one row of `curves` and one entry of `found` for each resample.

    A thread that has finished a resample takes the next one.  Only the calling thread reports progress.
    An error in any thread, or Ctrl-C, stops all threads after their current resample.
    """
    n, progress = len(curves), resampling.progress
    numbers, finished, reported = iter(range(n)), 0, 0
    stopped, lock = False, threading.Lock()

    def next_number() -> int | None:
        with lock:
            return None if stopped else next(numbers, None)

    def report() -> None:
        nonlocal reported
        if progress and finished > reported:
            reported = finished
            progress(reported, n)

    def work(share: slice) -> None:
        nonlocal finished, stopped
        try:
            fit = make_fit()
            for number in iter(next_number, None):
                found[number] = fit(generator(resampling.seed, number), curves[number])
                with lock:
                    finished += 1
                if share.start == 0:
                    report()
        except BaseException:
            stopped = True
            raise

    with ExitStack() as stack:
        if progress is True:
            tqdm = import_optional("tqdm", "`progress=True`", extra="plot").tqdm
            bar = stack.enter_context(tqdm(total=n, unit="resample"))

            def progress(finished: int, _total: int) -> None:
                bar.update(finished - bar.n)

        threads.each(work, threads.cut(n, n_threads))
        report()


def generator(seed: np.random.SeedSequence, number: int) -> np.random.SFC64:
    """The random numbers of a resample."""
    own = np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, number), pool_size=seed.pool_size)
    return np.random.SFC64(own)
