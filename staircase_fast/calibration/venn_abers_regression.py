"""Venn-Abers prediction of real targets: the isotonic fits with the query added as the least and greatest target."""

from __future__ import annotations

import math
from typing import Any, Generic, NamedTuple, TypeVar, overload

import numpy as np

from staircase_fast.arithmetic.exact import extent_of
from staircase_fast.calibration.pair_steps import Floats
from staircase_fast.calibration.venn_abers import NotFittedError, VennAbers, counted
from staircase_fast.errors import InvalidInputError, refuse_entries
from staircase_fast.inputs.options import check_bounds
from staircase_fast.inputs.rows import check_weights, read_columns
from staircase_fast.losses import SquaredError
from staircase_fast.losses.rows import check_targets
from staircase_fast.typing import Bounds, ColumnLike, ScalarLike, public_class

_Values = TypeVar("_Values", np.float64, Floats)


@public_class("staircase_fast")
class ValueInterval(NamedTuple, Generic[_Values]):
    """The result of `VennAbersRegression.predict`.

    Attributes
    ----------
    lower : ndarray of float64, or float64 for a single score
        The value of the fit if the query's own target were the least one.
    upper : ndarray of float64, or float64 for a single score
        The same if it were the greatest one; lower <= upper.

    Examples
    --------
    >>> import staircase_fast as sf
    >>> interval = sf.VennAbersRegression().fit([1, 2, 3], [0.0, 1.0, 4.0]).predict([1, 3])
    >>> interval.upper - interval.lower
    array([1.66666667, 2.        ])
    """

    lower: _Values
    upper: _Values


@public_class("staircase_fast")
class VennAbersRegression:
    """Venn-Abers predictor of real targets: an interval that contains a calibrated value, if data are exchangeable.

    For each query, the isotonic fit of the calibration rows is computed with the query added to the rows, for every
    target between two bounds.  Its values at the query form the interval from `lower` to `upper`, the values for both
    bounds.  If the query is exchangeable with the calibration rows and its target lies within the bounds, the value
    that belongs to its true target is calibrated: it is the mean of the targets of all rows with this value.  This
    promise is about the mean: the target itself may lie outside the interval.

    Parameters
    ----------
    bounds : tuple of float, optional
        The least and greatest possible target.  By default, those of the calibration rows; a query with a target beyond
        them then has no promise, which happens with probability at most 2 / (n + 1).
    query_weight : float, default 1.0
        The weight of the query among the rows.

    Notes
    -----
    A target is a mixture of the two bounds, so this is a `VennAbers` predictor of rows that are divided between both
    labels.  It takes as long, and needs as much memory, as one of twice as many rows.  Values are accurate to some
    roundings of the difference of the bounds.

    Thread-safety: as for `VennAbers`.

    References
    ----------
    L. van der Laan, A. Alaa, "Self-calibrating conformal prediction", 2024.  I. Nouretdinov et al., "Inductive
    Venn-Abers predictive distribution", 2018.

    Examples
    --------
    >>> import staircase_fast as sf
    >>> venn = sf.VennAbersRegression(bounds=(0, 10)).fit([1, 2, 3, 4], [1.0, 3.0, 2.0, 7.0])
    >>> venn
    <VennAbersRegression: 4 rows, targets from 0 to 10>
    >>> lower, upper = venn.predict([2.5, 9])
    >>> lower.round(3), upper.round(3)
    (array([1.5, 3.5]), array([ 6., 10.]))
    """

    __slots__ = ("_bounds", "_fitted", "_query_weight")

    def __init__(self, bounds: Bounds = None, query_weight: float = 1.0) -> None:
        self._bounds = None if bounds is None else check_bounds(bounds)
        if self._bounds is not None and not (math.isfinite(self._bounds[0]) and math.isfinite(self._bounds[1])):
            raise InvalidInputError("bounds", "must be finite", value=bounds)
        self._query_weight = VennAbers(query_weight).query_weight
        self._fitted: _Fit | None = None  # each fit sets a new object; methods read it once

    @property
    def query_weight(self) -> float:
        """The weight of the query among the rows that it is added to."""
        return self._query_weight

    @property
    def bounds(self) -> tuple[float, float]:
        """The least and greatest possible target."""
        return self._result().bounds

    @property
    def n_samples(self) -> int:
        """The number of fitted rows with weight > 0."""
        return self._result().n_samples

    def _result(self) -> _Fit:
        if self._fitted is None:
            raise NotFittedError("a VennAbersRegression must be fitted first; call `fit`.")
        return self._fitted

    def fit(
        self, scores: ColumnLike, targets: ColumnLike, sample_weight: ColumnLike | None = None
    ) -> VennAbersRegression:
        """Fit the calibration rows.  An earlier fit is replaced.

        Parameters
        ----------
        scores : array_like of shape (n,)
            Real or infinite numbers.  Only their order matters.
        targets : array_like of shape (n,)
            Real numbers within the bounds.
        sample_weight : array_like of shape (n,), optional
            Weights >= 0.  A row with weight 0 is ignored; one with weight k counts as k rows.

        Returns
        -------
        VennAbersRegression
            The predictor itself.

        Examples
        --------
        >>> import staircase_fast as sf
        >>> sf.VennAbersRegression().fit([1, 2, 2], [0.5, 1.0, 2.5], sample_weight=[2, 1, 1])
        <VennAbersRegression: 3 rows, targets from 0.5 to 2.5>
        """
        x, y, w = read_columns(scores, targets, sample_weight)
        extent = extent_of(y, 1)
        check_targets("targets", y, extent, SquaredError())
        if len(w):
            present = check_weights("sample_weight", w, extent_of(w, 1))
            if present is not None:
                x, y, w = x[present], y[present], w[present]
                extent = extent_of(y, 1)
        low, high = self._bounds or (extent.lowest, extent.highest)
        refuse_entries("targets", f"must be between {low:g} and {high:g}", y, (y < low) | (y > high))
        # a row is divided between label 1, in proportion to its distance from `low`, and label 0
        exponent = math.frexp(max(abs(low), abs(high)))[1] + 1  # distances must not overflow
        first, last = math.ldexp(low, -exponent), math.ldexp(high, -exponent)
        y = np.ldexp(y.astype(np.float64), -exponent)
        shares = np.concatenate([last - y, y - first]) if low < high else np.ones(2 * len(y))
        weights, query = shares, self._query_weight * (last - first if low < high else 2.0)
        if len(w):
            weights, query = shares * np.tile(w / w.max(), 2), query / float(w.max())
        labels = np.repeat(np.array([0, 1], dtype=np.uint8), len(y))
        venn = VennAbers(min(max(query, math.ulp(0.0)), 1e300)).fit(np.tile(x, 2), labels, sample_weight=weights)
        self._fitted = _Fit(venn, (low, high), len(y))
        return self

    @overload
    def predict(self, scores: ScalarLike, *, n_threads: int | None = None) -> ValueInterval[np.float64]: ...
    @overload
    def predict(self, scores: ColumnLike, *, n_threads: int | None = None) -> ValueInterval[Floats]: ...
    def predict(self, scores: ColumnLike, *, n_threads: int | None = None) -> ValueInterval[Any]:
        """Predict the interval of values for each score.

        Parameters
        ----------
        scores : array_like of any shape
        n_threads : int, optional
            Number of threads for this call.  Defaults to `get_num_threads()`.

        Returns
        -------
        ValueInterval
            A tuple (lower, upper) of arrays in the shape of `scores`, or of floats for a single score.

        Examples
        --------
        >>> import staircase_fast as sf
        >>> sf.VennAbersRegression().fit([1, 2, 3], [0.0, 1.0, 4.0]).predict(2.5)
        ValueInterval(lower=np.float64(0.5), upper=np.float64(4.0))
        """
        fitted = self._result()
        p0, p1 = fitted.venn.predict(scores, n_threads=n_threads)
        return ValueInterval(fitted.value(p0), fitted.value(p1))

    @overload
    def merge(self, scores: ScalarLike, *, n_threads: int | None = None) -> np.float64: ...
    @overload
    def merge(self, scores: ColumnLike, *, n_threads: int | None = None) -> Floats: ...
    def merge(self, scores: ColumnLike, *, n_threads: int | None = None) -> np.float64 | Floats:
        """Predict one value for each score: the one with the least worst-case regret under squared error.

        Parameters
        ----------
        scores : array_like of any shape
        n_threads : int, optional
            Number of threads for this call.  Defaults to `get_num_threads()`.

        Returns
        -------
        ndarray of float64, or float64 for a single score
            Between `lower` and `upper`.

        Examples
        --------
        >>> import staircase_fast as sf
        >>> sf.VennAbersRegression().fit([1, 2, 3], [0.0, 1.0, 4.0]).merge([1, 2.5])
        array([1.31944444, 2.03125   ])
        """
        fitted = self._result()
        found: np.float64 | Floats = fitted.value(fitted.venn.merge(scores, rule="brier", n_threads=n_threads))
        return found

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._bounds, self._query_weight), None if self._fitted is None else tuple(self._fitted)

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self._fitted = _Fit(*state)

    def __repr__(self) -> str:
        if self._fitted is None:
            return "<VennAbersRegression: not fitted>"
        low, high = self._fitted.bounds
        return f"<VennAbersRegression: {counted(self._fitted.n_samples, 'row')}, targets from {low:g} to {high:g}>"


class _Fit(NamedTuple):
    """The predictor of divided rows, the bounds of targets, and the number of rows."""

    venn: VennAbers
    bounds: tuple[float, float]
    n_samples: int

    def value(self, share: Any) -> Any:
        """The value that is this share of the way from the least target to the greatest."""
        low, high = self.bounds
        return np.clip(low * (1.0 - share) + high * share, low, high)
