"""Bands around a CORP curve: quantiles of the curves of many resamples, at some scores."""

from __future__ import annotations

import math
import operator
import sys
import threading
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from staircase_fast import threads
from staircase_fast.arithmetic.exact import extent_of
from staircase_fast.bisection import solve
from staircase_fast.bisection.closed_forms import as_means
from staircase_fast.bisection.samples import Samples, samples_of
from staircase_fast.calibration import _resample
from staircase_fast.errors import InvalidInputError, InvalidTypeError
from staircase_fast.inputs.options import check_choice, check_function, check_number, import_optional
from staircase_fast.inputs.rows import Columns, copy_targets_and_weights
from staircase_fast.losses import Loss, PoissonDeviance, SquaredError
from staircase_fast.losses.rows import check_rows_and_parameters
from staircase_fast.stack.sorted_rows import UNBOUNDED
from staircase_fast.staircase.result import Staircase

_Floats = NDArray[np.float64]
_Integers = NDArray[np.int64]
# Computes the values of one resample at all places, given its random state.
_Fit = Callable[[NDArray[np.uint64], _Floats], None]

_POINTS = 512  # scores, spread evenly over the rows
_STEPS = 512  # the ends of all steps are added if there are at most this many steps
_FEW_ROWS = 256  # so few rows are drawn one by one
_SHORT = 4.0  # the expected sum of Poisson counts is n minus this many standard deviations, so it rarely exceeds n
_TABLE_ROWS = (*range(1, 16), *(1 << k for k in range(4, 11)))  # rows per cell of each Poisson table
_EACH_ROW = np.empty(0, dtype=np.int64)
_LEAST = math.ulp(0.0)
_POWERS = 1020  # numbers scaled to at most 1 do not underflow if they differ by at most 2**1020


class Bands(NamedTuple):
    """Limits that contain most resampled curves, for each score separately."""

    x: _Floats
    """Scores, in ascending order."""
    lower: _Floats
    upper: _Floats
    kind: str
    """"confidence" or "consistency"."""
    level: float
    """The share of curves between `lower` and `upper`."""
    n_resamples: int


class BandOptions(NamedTuple):
    """Valid options of bands."""

    kind: str
    n_resamples: int
    level: float
    seed: np.random.SeedSequence
    progress: Any  # a function, a bool or None


def check_band_options(
    bands: object, n_resamples: object, level: object, seed: Any, progress: object, loss: Loss
) -> BandOptions | None:
    """Check the options; return None if no bands are wanted."""
    if bands is None:
        return None
    kind = check_choice("bands", bands, ("confidence", "consistency"))
    if kind == "consistency" and (not loss.is_mean or loss.value_range != (0.0, 1.0)):
        raise InvalidInputError("bands", f"must be 'confidence' or None for {loss.name}", value=kind)
    try:
        n = 0 if isinstance(n_resamples, bool) else operator.index(n_resamples)  # type: ignore[arg-type]
    except TypeError:
        raise InvalidTypeError("n_resamples", "must be an integer >= 1", value=n_resamples) from None
    if n < 1:
        raise InvalidInputError("n_resamples", "must be an integer >= 1", value=n_resamples)
    share = check_number("level", level)
    if not 0 < share < 1:
        raise InvalidInputError("level", "must be > 0 and < 1", value=level)
    try:
        sequence = seed if isinstance(seed, np.random.SeedSequence) else np.random.SeedSequence(seed)
    except (TypeError, ValueError):
        raise InvalidTypeError("seed", "must be None, an integer >= 0 or a numpy SeedSequence", value=seed) from None
    if progress is not None and not isinstance(progress, bool):
        check_function("progress", progress)
    return BandOptions(kind, n, share, sequence, progress)


def make_bands(columns: Columns, loss: Loss, stairs: Staircase, options: BandOptions, n_threads: int) -> Bands:
    """The bands of a fit of valid columns."""
    x, curves = resampled(columns, loss, stairs, options, n_threads)
    curves.sort(axis=0)
    # order statistics without interpolation, because values may be infinite
    outside = math.floor((1.0 - options.level) / 2.0 * len(curves) + 1e-9)  # on each side
    outside = min(outside, (len(curves) - 1) // 2)
    lower, upper = curves[outside].copy(), curves[-1 - outside].copy()
    for column in (x, lower, upper):
        column.setflags(write=False)
    return Bands(x, lower, upper, options.kind, options.level, options.n_resamples)


def resampled(
    columns: Columns, loss: Loss, stairs: Staircase, options: BandOptions, n_threads: int
) -> tuple[_Floats, _Floats]:
    """Some scores, and the values of the resampled curves there, one row per curve.

    An *observation* consists of all rows with one score.  `borders` has the first row of each
    observation, and n as its last entry.  Curves are evaluated only at the observations in `places`.
    """
    valid, own_loss = check_rows_and_parameters(*copy_targets_and_weights(columns), loss)
    check_countable(len(valid.scores))
    samples, own_loss = samples_of(valid, own_loss)
    last = np.flatnonzero(samples.ends) if len(samples.ends) else np.arange(len(samples.scores))
    borders = np.append(0, last + 1).astype(np.int64, copy=False)
    places = _places(samples.scores, borders, stairs)
    scores = samples.scores[borders[places]]
    is_mean = loss.is_mean
    if isinstance(loss, PoissonDeviance):
        samples, is_mean = as_means(samples), True
    needs_exact_sums = _far_apart(samples)
    if options.kind == "consistency":
        other = samples.targets[(samples.targets != 0) & (samples.targets != 1)]
        if len(other):
            requirement = "must be 'confidence' or None if `targets` are not all 0 or 1"
            raise InvalidInputError("bands", requirement, found=f"got 'consistency' and {other[0]}")
        make_fit = _simulate_exactly(samples, scores) if needs_exact_sums else _simulate_means(samples, borders, places)
    elif is_mean and not needs_exact_sums:
        make_fit = _draw_means(samples, borders, places)
    else:
        make_fit = _draw_any_loss(samples, borders, scores, SquaredError() if is_mean else own_loss)
    curves = np.empty((options.n_resamples, len(places)))
    _run(make_fit, curves, options, n_threads)
    np.clip(curves, *loss.value_range, out=curves)
    return scores.astype(np.float64) + 0.0, curves


def check_countable(n: int) -> None:
    """Kernels count rows in 32 bits."""
    if n >= 2**32:
        raise InvalidInputError("bands", "must be None for 2**32 rows or more", found=f"got {n} rows")


def _places(scores: _Floats, borders: _Integers, stairs: Staircase) -> _Integers:
    """Observations spread evenly over the rows, and those at the ends of steps."""
    rows = np.linspace(0, len(scores) - 1, min(_POINTS, len(scores))).astype(np.int64)
    if stairs.n_steps <= _STEPS:
        ends = np.searchsorted(scores, np.concatenate([stairs.left, stairs.right]).astype(scores.dtype))
        rows = np.concatenate([rows, ends])
    return np.unique(np.searchsorted(borders, rows, side="right") - 1).astype(np.int64, copy=False)


def _far_apart(samples: Samples) -> bool:
    """Whether products of targets and weights differ too much in magnitude for the kernels, which round."""
    powers = 0
    for column in (samples.targets, samples.weights):
        if len(column):
            extent = extent_of(column, 1)
            greatest = max(-extent.lowest, extent.highest)
            powers += math.frexp(greatest)[1] - math.frexp(extent.least)[1] if greatest else 0
    return powers > _POWERS


def _scaled(column: _Floats) -> tuple[_Floats, int]:
    """A column divided by a power of two, so that no magnitude is above 1; and the exponent."""
    exponent = math.frexp(float(np.abs(column).max(initial=0.0)))[1]
    return np.ldexp(column, -exponent), exponent


def _draw_means(samples: Samples, borders: _Integers, places: _Integers) -> Callable[[], _Fit]:
    """Draw rows with replacement and fit means."""
    n, exponent = len(samples.scores), 0
    first = _segment_starts(samples, borders, places)
    starts = borders[first]
    segment_of_place = (np.searchsorted(first, places, side="right") - 1).astype(np.int64, copy=False)
    if not len(samples.weights) and bool(np.all((samples.targets == 0) | (samples.targets == 1))):
        # two cells per segment: labels 1, and labels 0
        ones = np.add.reduceat(samples.targets, starts).astype(np.int64)
        sizes = np.column_stack([ones, np.diff(starts, append=n) - ones]).reshape(-1)
        cell_ends, segment_ends = np.cumsum(sizes), np.arange(2, len(sizes) + 1, 2, dtype=np.int64)
        s, w = np.tile([1.0, 0.0], len(ones)), np.ones(len(sizes))
    else:
        cell_ends, segment_ends = _EACH_ROW, np.append(starts[1:], n)
        w = _scaled(samples.weights)[0] if len(samples.weights) else np.ones(n)
        s, exponent = _scaled(samples.targets)
        s *= w
    tables = _poisson_tables(n)

    def make_fit() -> _Fit:
        counts = np.empty(len(s), dtype=np.uint32)
        work = np.empty(len(segment_ends), dtype=np.int64), np.empty((3, len(segment_ends)))

        def fit(state: NDArray[np.uint64], values: _Floats) -> None:
            _resample.draw(state, n, cell_ends, *tables, counts)
            _resample.fit_drawn(counts, s, w, segment_ends, segment_of_place, *work, values)
            np.ldexp(values, exponent, out=values)

        return fit

    return make_fit


def _segment_starts(samples: Samples, borders: _Integers, places: _Integers) -> NDArray[np.intp]:
    """The first observation of each segment (`_resample.pyx`); a segment ends at each place."""
    low = high = samples.targets
    if len(samples.ends):
        low, high = (ufunc.reduceat(samples.targets, borders[:-1]) for ufunc in (np.minimum, np.maximum))
    begins = np.append(True, low[:-1] < high[1:])
    begins[places[places + 1 < len(begins)] + 1] = True
    return np.flatnonzero(begins)


def _draw_any_loss(samples: Samples, borders: _Integers, scores: NDArray[Any], loss: Loss) -> Callable[[], _Fit]:
    """Draw rows with replacement and fit any loss; means are exact."""
    n, tables = len(samples.scores), _poisson_tables(len(samples.scores))
    observation = np.repeat(np.arange(len(borders) - 1), np.diff(borders))

    def fit(state: NDArray[np.uint64], values: _Floats) -> None:
        counts = np.empty(n, dtype=np.uint32)
        _resample.draw(state, n, _EACH_ROW, *tables, counts)
        drawn = np.flatnonzero(counts)
        weights = counts[drawn].astype(np.float64)
        if len(samples.weights):
            given = samples.weights[drawn]
            # the sum must not overflow if the heaviest row is drawn n times, and no weight may become 0
            excess = math.frexp(float(given.max()))[1] + n.bit_length() - sys.float_info.max_exp
            weights *= np.maximum(np.ldexp(given, -excess), _LEAST) if excess > 0 else given
        own = loss.of_rows(drawn) if loss.per_sample else loss
        ends = np.append(observation[drawn[1:]] != observation[drawn[:-1]], True).view(np.uint8)
        resample = Samples(samples.scores[drawn], samples.targets[drawn], weights, own.parameters, ends)
        values[:] = _fitted(resample, own, scores)

    return lambda: fit


def _fitted(samples: Samples, loss: Loss, scores: NDArray[Any]) -> _Floats:
    """The values of a fit at some scores.  A score before all rows has the value of the first step."""
    steps = solve.fit_samples(samples, loss, decreasing=False, bounds=UNBOUNDED, budget=solve.Budget())
    return steps.values[np.maximum(np.searchsorted(steps.left, scores, side="right") - 1, 0)]


def _simulate_means(samples: Samples, borders: _Integers, places: _Integers) -> Callable[[], _Fit]:
    """Draw labels with the forecast probabilities and fit means."""
    chances = samples.scores[borders[:-1]].astype(np.float64)
    ends, w = borders[1:] if len(samples.ends) else _EACH_ROW, _scaled(samples.weights)[0]

    def make_fit() -> _Fit:
        work = np.empty(len(chances), dtype=np.int64), np.empty((3, len(chances)))
        return lambda state, values: _resample.fit_simulated(state, chances, ends, w, places, *work, values)

    return make_fit


def _simulate_exactly(samples: Samples, scores: NDArray[Any]) -> Callable[[], _Fit]:
    """Draw labels with the forecast probabilities and fit exact means."""
    chances = samples.scores.astype(np.float64)

    def fit(state: NDArray[np.uint64], values: _Floats) -> None:
        labels = (np.random.default_rng(state).random(len(chances)) < chances).astype(np.float64)
        values[:] = _fitted(samples._replace(targets=labels), SquaredError(), scores)

    return lambda: fit


def _poisson_tables(n: int) -> tuple[NDArray[np.uint16], _Floats]:
    """Guides and cumulative probabilities of Poisson counts whose sum over n rows is rarely above n.

    Both are empty for few rows, which are drawn one by one.
    """
    if n < _FEW_ROWS:
        return np.empty((0, 0), dtype=np.uint16), np.empty((0, 0))
    means = (1.0 - _SHORT / math.sqrt(n)) * np.array(_TABLE_ROWS)[:, np.newaxis]
    counts = np.arange(_TABLE_ROWS[-1] + 16 * math.isqrt(_TABLE_ROWS[-1]))
    log_factorials = np.cumsum(np.log(np.maximum(counts, 1)))
    cumulated = np.cumsum(np.exp(counts * np.log(means) - log_factorials - means), axis=1)
    chances = cumulated / cumulated[:, -1:]
    starts = np.arange(_resample.GUIDES) / _resample.GUIDES
    return np.array([np.searchsorted(row, starts, side="right") for row in chances], dtype=np.uint16), chances


def _run(make_fit: Callable[[], _Fit], curves: _Floats, options: BandOptions, n_threads: int) -> None:
    """Fill one row of `curves` for each resample.  A thread that has finished a resample takes the next one.

    Only the calling thread reports progress.  An error in any thread, or Ctrl-C, stops all threads after their current
    resample.
    """
    n, progress = len(curves), options.progress
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
                fit(_random_state(options.seed, number), curves[number])
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


def _random_state(seed: np.random.SeedSequence, number: int) -> NDArray[np.uint64]:
    """The random state of a resample."""
    own = np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, number), pool_size=seed.pool_size)
    return own.generate_state(4, np.uint64).astype(np.uint64)
