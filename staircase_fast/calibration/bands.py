"""Bands around a CORP curve: the fits of many resamples, and their quantiles at some scores."""

from __future__ import annotations

import math
import sys
import threading
from collections.abc import Callable
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from staircase_fast import threads
from staircase_fast.arithmetic.exact import extent_of
from staircase_fast.bisection import solve
from staircase_fast.bisection.closed_forms import as_means
from staircase_fast.bisection.samples import Samples, samples_of
from staircase_fast.calibration import _resample
from staircase_fast.calibration import reliability_checks as _validation
from staircase_fast.calibration.reliability_checks import Plan, Progress
from staircase_fast.inputs.options import import_optional
from staircase_fast.inputs.rows import Columns, copy_targets_and_weights
from staircase_fast.losses import Loss, PoissonDeviance, SquaredError
from staircase_fast.losses.rows import check_rows_and_parameters
from staircase_fast.stack.sorted_rows import UNBOUNDED
from staircase_fast.staircase.result import Staircase

_Floats = NDArray[np.float64]
_Integers = NDArray[np.int64]
_POINTS = 512  # scores, spread evenly over rows
_STEPS = 512  # whose ends are scores too; of more steps, the points above are enough
_FEW_ROWS = 256  # are drawn one by one
_SHORT = 4.0  # standard deviations by which the sum of Poisson counts is too low on average
_MEANS = (*range(1, 16), *(1 << k for k in range(4, 11)))  # of the tables, in rows
_EACH_ROW = np.empty(0, dtype=np.int64)
_LEAST = math.ulp(0.0)
_POWERS = 1020  # of two between numbers of up to 1 that keep all their digits


class Bands(NamedTuple):
    """Limits within which most resampled curves lie, at each score by itself."""

    x: _Floats
    """Scores, in order."""
    lower: _Floats
    upper: _Floats
    kind: str
    """"confidence" or "consistency"."""
    level: float
    """The share of curves between `lower` and `upper`."""
    n_resamples: int


Fit = Callable[[NDArray[np.uint64], _Floats], None]  # a resample: of a random state, values at places


def make_bands(columns: Columns, loss: Loss, stairs: Staircase, plan: Plan, n_threads: int) -> Bands:
    """The bands of a fit of these columns, which are clean."""
    x, curves = resampled(columns, loss, stairs, plan, n_threads)
    curves.sort(axis=0)
    # curves themselves, nothing between two of them: there may be infinite values
    outside = math.floor((1.0 - plan.level) / 2.0 * len(curves) + 1e-9)  # on each side
    outside = min(outside, (len(curves) - 1) // 2)
    lower, upper = curves[outside].copy(), curves[-1 - outside].copy()
    for column in (x, lower, upper):
        column.setflags(write=False)
    return Bands(x, lower, upper, plan.kind, plan.level, plan.n_resamples)


def resampled(columns: Columns, loss: Loss, stairs: Staircase, plan: Plan, n_threads: int) -> tuple[_Floats, _Floats]:
    """Some scores, and the value of each resampled curve there, a row for each curve."""
    rows, kept = check_rows_and_parameters(*copy_targets_and_weights(columns), loss)
    _validation.few_enough(len(rows.scores))
    samples, kept = samples_of(rows, kept)
    if len(samples.ends):
        borders = np.append(0, np.flatnonzero(samples.ends) + 1).astype(np.int64, copy=False)
    else:
        borders = np.arange(len(samples.scores) + 1, dtype=np.int64)
    places = _places(samples.scores, borders, stairs)
    if isinstance(loss, PoissonDeviance):
        samples = as_means(samples)
    means, exactly = loss.is_mean or isinstance(loss, PoissonDeviance), _far_apart(samples)
    unit = 0
    if plan.kind == "consistency":
        _validation.labels(samples.targets)
        make_fit = (_simulated_exactly if exactly else _simulated)(samples, borders, places)
    elif means and not exactly:
        make_fit, unit = _drawn(samples, borders, places)
    else:
        make_fit = _drawn_under(SquaredError() if means else kept, samples, borders, places)
    curves = np.empty((plan.n_resamples, len(places)))
    _run(make_fit, curves, plan, n_threads)
    np.clip(np.ldexp(curves, unit, out=curves), *loss.value_range, out=curves)
    return samples.scores[borders[places]].astype(np.float64) + 0.0, curves


def _places(scores: _Floats, borders: _Integers, stairs: Staircase) -> _Integers:
    """Observations whose values are asked for: some that are spread evenly over rows, and the ends of steps."""
    rows = np.linspace(0, len(scores) - 1, min(_POINTS, len(scores))).astype(np.int64)
    if stairs.n_steps <= _STEPS:
        ends = np.searchsorted(scores, np.concatenate([stairs.left, stairs.right]).astype(scores.dtype))
        rows = np.concatenate([rows, ends])
    return np.unique(np.searchsorted(borders, rows, side="right") - 1).astype(np.int64, copy=False)


def _far_apart(samples: Samples) -> bool:
    """Whether some products of targets and weights are too small beside others for kernels here, which round."""
    powers = 0
    for column in (samples.targets, samples.weights):
        if len(column):
            extent = extent_of(column, 1)
            greatest = max(-extent.lowest, extent.highest)
            powers += math.frexp(greatest)[1] - math.frexp(extent.least)[1] if greatest else 0
    return powers > _POWERS


def _scaled(samples: Samples) -> tuple[_Floats, _Floats, int]:
    """Targets times weights, and weights, none above 1; targets were divided by two to some power."""
    y, w = samples.targets, samples.weights
    unit = math.frexp(float(np.abs(y).max()))[1]
    if len(w):
        w = np.ldexp(w, -math.frexp(float(w.max()))[1])
        return np.ldexp(y, -unit) * w, w, unit
    return np.ldexp(y, -unit), np.ones(len(y)), unit


def _segments(samples: Samples, borders: _Integers, places: _Integers) -> _Integers:
    """The first observation of each segment (`_resample.pyx`); one ends at each place."""
    first = borders[:-1]
    tied = len(samples.ends) > 0
    low = np.minimum.reduceat(samples.targets, first) if tied else samples.targets
    high = np.maximum.reduceat(samples.targets, first) if tied else samples.targets
    begins = np.append(True, low[:-1] < high[1:])
    begins[places[places + 1 < len(begins)] + 1] = True
    return np.flatnonzero(begins)


def _drawn(samples: Samples, borders: _Integers, places: _Integers) -> tuple[Callable[[], Fit], int]:
    """Rows drawn with replacement, each with its weight, where steps are means."""
    n, first = len(samples.scores), _segments(samples, borders, places)
    starts = borders[first]
    at = (np.searchsorted(first, places, side="right") - 1).astype(np.int64, copy=False)
    if not len(samples.weights) and bool(np.all((samples.targets == 0) | (samples.targets == 1))):
        # two cells to a segment: all that are 1, and all that are 0
        ones = np.add.reduceat(samples.targets, starts).astype(np.int64)
        sizes = np.column_stack([ones, np.diff(starts, append=n) - ones]).reshape(-1)
        ends, segments = np.cumsum(sizes), np.arange(2, len(sizes) + 1, 2, dtype=np.int64)
        s, w, unit = np.tile([1.0, 0.0], len(ones)), np.ones(len(sizes)), 0
    else:
        ends, segments = _EACH_ROW, np.append(starts[1:], n)
        s, w, unit = _scaled(samples)
    tables = _tables(n)

    def make_fit() -> Fit:
        counts = np.empty(len(s), dtype=np.uint32)
        work = np.empty(len(segments), dtype=np.int64), np.empty((3, len(segments)))

        def fit(state: NDArray[np.uint64], values: _Floats) -> None:
            _resample.draw(state, n, ends, *tables, counts)
            _resample.fit_drawn(counts, s, w, segments, at, *work, values)

        return fit

    return make_fit, unit


def _drawn_under(loss: Loss, samples: Samples, borders: _Integers, places: _Integers) -> Callable[[], Fit]:
    """The same under any loss; means are exact."""
    n, tables = len(samples.scores), _tables(len(samples.scores))
    observation = np.repeat(np.arange(len(borders) - 1), np.diff(borders))
    scores = samples.scores[borders[places]]

    def make_fit() -> Fit:
        counts = np.empty(n, dtype=np.uint32)

        def fit(state: NDArray[np.uint64], values: _Floats) -> None:
            _resample.draw(state, n, _EACH_ROW, *tables, counts)
            rows = np.flatnonzero(counts)
            weights = counts[rows].astype(np.float64)
            if len(samples.weights):
                given = samples.weights[rows]
                # the heaviest may be drawn again and again: the sum must be a number even so, and no row may get lost
                excess = math.frexp(float(given.max()))[1] + n.bit_length() - sys.float_info.max_exp
                weights *= np.maximum(np.ldexp(given, -excess), _LEAST) if excess > 0 else given
            own = loss.of_rows(rows) if loss.per_sample else loss
            ends = np.append(observation[rows[1:]] != observation[rows[:-1]], True).view(np.uint8)
            drawn = Samples(samples.scores[rows], samples.targets[rows], weights, own.parameters, ends)
            values[:] = _fitted(drawn, own, scores)

        return fit

    return make_fit


def _fitted(samples: Samples, loss: Loss, scores: NDArray[Any]) -> _Floats:
    """The values of a fit at these scores; one before all of its rows has the value of the first."""
    steps = solve.fit_samples(samples, loss, decreasing=False, bounds=UNBOUNDED, budget=solve.Budget())
    return steps.values[np.maximum(np.searchsorted(steps.left, scores, side="right") - 1, 0)]


def _simulated(samples: Samples, borders: _Integers, places: _Integers) -> Callable[[], Fit]:
    """The same forecasts, and labels that are 1 by the chance that was forecast."""
    chances = samples.scores[borders[:-1]].astype(np.float64)
    ends = borders[1:] if len(samples.ends) else _EACH_ROW
    w = samples.weights
    w = np.ldexp(w, -math.frexp(float(w.max()))[1]) if len(w) else w

    def make_fit() -> Fit:
        work = np.empty(len(chances), dtype=np.int64), np.empty((3, len(chances)))
        return lambda state, values: _resample.fit_simulated(state, chances, ends, w, places, *work, values)

    return make_fit


def _simulated_exactly(samples: Samples, borders: _Integers, places: _Integers) -> Callable[[], Fit]:
    """The same with exact means."""
    chances, scores = samples.scores.astype(np.float64), samples.scores[borders[places]]

    def fit(state: NDArray[np.uint64], values: _Floats) -> None:
        labels = (np.random.default_rng(state).random(len(chances)) < chances).astype(np.float64)
        values[:] = _fitted(samples._replace(targets=labels), SquaredError(), scores)

    return lambda: fit


def _tables(n: int) -> tuple[NDArray[np.uint16], _Floats]:
    """Distributions of Poisson counts whose sum over n rows is seldom above n; none for few rows."""
    if n < _FEW_ROWS:
        return np.empty((0, 0), dtype=np.uint16), np.empty((0, 0))
    rate = 1.0 - _SHORT / math.sqrt(n)
    most = _MEANS[-1] + 16 * math.isqrt(_MEANS[-1])
    guide, chances = np.empty((_resample.TABLES, _resample.GUIDES), dtype=np.uint16), np.ones((_resample.TABLES, most))
    log_factorials = np.append(0.0, np.cumsum(np.log(np.arange(1.0, most))))
    for table, rows in enumerate(_MEANS):
        mean = rate * rows
        cumulated = np.cumsum(np.exp(np.arange(most) * math.log(mean) - log_factorials - mean))
        chances[table, :-1] = np.minimum(cumulated / cumulated[-1], 1.0)[:-1]
        guide[table] = np.searchsorted(chances[table], np.arange(_resample.GUIDES) / _resample.GUIDES, side="right")
    return guide, chances


def _run(make_fit: Callable[[], Fit], curves: _Floats, plan: Plan, n_threads: int) -> None:
    """Fill a row for each resample; threads take the next one when they are done with theirs.

    Progress is told by the calling thread alone.  What is raised in any thread, such as by Ctrl-C, stops all of them
    after the resample they are at.
    """
    n = len(curves)
    todo, lock = iter(range(n)), threading.Lock()
    done, stopped = 0, False

    def work(share: slice) -> None:
        nonlocal done, stopped
        try:
            fit = make_fit()
            while True:
                with lock:
                    number = None if stopped else next(todo, None)
                if number is None:
                    return
                fit(_state(plan.seed, number), curves[number])
                with lock:
                    done += 1
                if share.start == 0:
                    tell(done, n)
        except BaseException:
            stopped = True
            raise

    with _Teller(plan.progress, n) as tell:
        threads.each(work, threads.cut(n, n_threads))
        tell(n, n)


def _state(seed: np.random.SeedSequence, number: int) -> NDArray[np.uint64]:
    """The random state of a resample, which depends on nothing else."""
    own = np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, number), pool_size=seed.pool_size)
    return own.generate_state(4, np.uint64).astype(np.uint64)


class _Teller:
    """Tells how many resamples are done: by a function, by tqdm, or not at all; each number once."""

    def __init__(self, progress: bool | Progress, total: int) -> None:
        self.told, self.bar = 0, None
        if progress is True:
            self.bar = import_optional("tqdm", "`progress=True`", extra="plot").tqdm(total=total, unit="resample")
        self.function = progress if callable(progress) else None

    def __call__(self, done: int, total: int) -> None:
        if done > self.told:
            if self.function is not None:
                self.function(done, total)
            if self.bar is not None:
                self.bar.update(done - self.told)
        self.told = done

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        if self.bar is not None:
            self.bar.close()
