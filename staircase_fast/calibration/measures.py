"""Measures of calibration errors, for labels that are given or drawn.  `error_measures.py` defines them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from staircase_fast import threads
from staircase_fast.calibration.monotone_test import monotone_p_value
from staircase_fast.calibration.pair_steps import read_labelled_rows
from staircase_fast.calibration.smooth_error import SmoothError
from staircase_fast.errors import arguments_named, refuse_entries
from staircase_fast.fitting import isotonic_regression
from staircase_fast.inputs import hints
from staircase_fast.inputs.columns import Column
from staircase_fast.typing import ColumnLike

_Floats = NDArray[np.float64]
Measure = Callable[[NDArray[Any]], _Floats]


def read_rows(
    scores: ColumnLike, targets: ColumnLike, sample_weight: ColumnLike | None, n_bins: int
) -> tuple[Measures, Column, int]:
    """Check rows; return the measures of the forecasts, the labels in their order, and the number of rows."""
    with arguments_named(labels="targets"):
        rows, _ = read_labelled_rows(scores, targets, sample_weight)
    x, y, w = rows.scores.astype(np.float64), rows.targets, rows.weights
    hint = partial(hints.for_probabilities, "scores", x)
    refuse_entries("scores", "must be between 0 and 1", x, (x < 0) | (x > 1), hint=hint)
    order = np.argsort(x)
    if len(w):
        w = w / w.max()
        order = np.lexsort((y, w, x))  # so that sums do not depend on the order of the rows
        order = order[w[order] > 0]  # a weight may underflow
        w = w[order]
    return Measures(x[order], w, n_bins), y[order], len(x)


class Measures:
    """Measures of labels for these sorted scores."""

    def __init__(self, scores: _Floats, weights: _Floats, n_bins: int) -> None:
        self._row_scores, self._row_weights = scores, weights
        first = np.append(True, scores[1:] != scores[:-1])
        self._starts = np.flatnonzero(first) if not first.all() else None  # of equal scores
        x = self._scores = scores[first]
        self._counts = self._pooled(np.ones(len(scores)))
        self._weights = self._pooled(weights) if len(weights) else self._counts
        self._total = float(self._weights.sum())
        wide = np.minimum(np.ceil(x * n_bins), n_bins)  # (j - 1) / n_bins < x <= j / n_bins, except for rounding
        wide += (x > wide / n_bins) * 1.0 - (x <= (wide - 1) / n_bins)
        middles = np.cumsum(self._weights) - self._weights / 2
        even = np.minimum(np.floor(middles / self._total * n_bins), n_bins - 1)
        self._wide, self._even = (
            np.flatnonzero(np.append(True, bins[1:] != bins[:-1])) for bins in (np.maximum(wide, 1), even)
        )
        self._smooth = SmoothError(x)

    def _pooled(self, rows: _Floats) -> _Floats:
        """The sums of rows with the same score."""
        return rows if self._starts is None else np.add.reduceat(rows, self._starts)

    def _ones(self, labels: NDArray[Any]) -> _Floats:
        """The total weight of label 1 at each score."""
        return self._pooled(labels * self._row_weights if len(self._row_weights) else labels.astype(np.float64))

    def isotonic(self, labels: NDArray[Any]) -> _Floats:
        """The calibration error, and the miscalibration."""
        x, w, total = self._scores, self._weights, self._total
        ones = self._ones(labels)
        if self._starts is None and not len(self._row_weights):
            fitted = isotonic_regression(labels).x
        else:
            fitted = isotonic_regression(ones / w, weights=w).x
        off = x - fitted
        miscalibration = max(float(np.sum(off * (w * (x + fitted) - 2.0 * ones))) / total, 0.0)
        return np.array([np.sum(w * np.abs(off)) / total, miscalibration])

    def all(self, labels: NDArray[Any]) -> _Floats:
        """All measures, in the order of the fields of `CalibrationErrors`."""
        w, total = self._weights, self._total
        residuals = self._ones(labels) - w * self._scores
        in_bins = np.add.reduceat(residuals, self._wide)
        others = [
            self._smooth.fixed_point(residuals / total),
            np.sum(np.abs(in_bins)) / total,
            np.sum(np.abs(np.add.reduceat(residuals, self._even))) / total,
            np.sum(in_bins**2 / np.add.reduceat(w, self._wide)) / total,
        ]
        return np.append(self.isotonic(labels), others)

    def simulate(self, measure: Measure, n_resamples: int, seed: np.random.SeedSequence, n_threads: int) -> _Floats:
        """The measures of labels that are drawn with the probabilities that the scores forecast, one row per draw."""

        def draw(part: slice) -> list[_Floats]:
            found = []
            for number in range(part.start, part.stop):
                key = (*seed.spawn_key, number)
                own = np.random.SeedSequence(seed.entropy, spawn_key=key, pool_size=seed.pool_size)
                found.append(measure(np.random.default_rng(own).random(len(self._row_scores)) < self._row_scores))
            return found

        return np.concatenate(threads.each(draw, threads.cut(n_resamples, n_threads)))

    def unbiased_squared(self, labels: NDArray[Any]) -> float:
        """The sum over bins of products of residuals of two different rows, on average."""
        w = self._row_weights if len(self._row_weights) else np.ones(len(labels))
        residuals = w * (labels - self._row_scores)
        columns = (residuals, residuals**2, w, w**2)
        sums, squares, weights, own = (np.add.reduceat(self._pooled(column), self._wide) for column in columns)
        pairs = weights**2 - own
        several = np.add.reduceat(self._counts, self._wide) > 1
        found = np.divide(weights * (sums**2 - squares), pairs, out=np.zeros(len(pairs)), where=several & (pairs > 0))
        return float(found.sum()) / self._total

    def monotone_p_value(self, labels: NDArray[Any]) -> float:
        """See `monotone_test.py`."""
        weights = self._row_weights
        squares = self._pooled(weights**2) if len(weights) else self._counts
        return monotone_p_value(self._ones(labels), self._weights, squares, weighted=bool(len(weights)))
