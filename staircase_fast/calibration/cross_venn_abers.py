"""Venn-Abers probabilities from cross-validation: one predictor for each fold, brought together."""

from __future__ import annotations

from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from staircase_fast import threads
from staircase_fast.calibration import venn_checks, venn_document
from staircase_fast.calibration.pairs import Pairs
from staircase_fast.calibration.venn_abers import RULES, ProbabilityPair, Rule, VennAbers, merged
from staircase_fast.inputs.options import check_choice
from staircase_fast.storage.documents import Saved
from staircase_fast.typing import ColumnLike, ScalarLike, public_class

_Floats = NDArray[np.float64]
_LEAST = 5e-324  # a probability that was rounded to 0 has no logarithm


@public_class("staircase_fast")
class CrossVennAbers(Saved):
    """Cross Venn-Abers predictor: every row is used to train and to calibrate.

    Rows are cut into folds.  The model of each fold is trained on all other rows and scores its own; the rows of each
    fold calibrate one `VennAbers`.  A query is scored by all models, looked up in each predictor, and the pairs of
    probabilities are merged into one.

    Parameters
    ----------
    query_weight : float, default 1.0
        The weight with which the query is among the rows of each fold.

    Notes
    -----
    Thread-safety: as for `VennAbers`.

    References
    ----------
    V. Vovk, I. Petej and V. Fedorova, "Large-scale probabilistic predictors with and without guarantees of validity",
    2015.

    Examples
    --------
    >>> import staircase_fast as sf
    >>> scores, labels = [0.1, 0.4, 0.35, 0.8, 0.2, 0.7], [0, 0, 1, 1, 0, 1]
    >>> cross = sf.CrossVennAbers().fit(scores, labels, folds=[0, 0, 0, 1, 1, 1])
    >>> cross
    <CrossVennAbers: 6 rows in 2 folds>

    A column for each fold has the scores of its model:

    >>> cross.merge([[0.3, 0.3], [0.9, 0.8]]).round(3)
    array([0.449, 0.68 ])

    The pairs before they are merged, one column for each fold:

    >>> cross.predict([[0.3, 0.3], [0.9, 0.8]]).p1.round(3)
    array([[0.667, 1.   ],
           [1.   , 1.   ]])
    """

    __slots__ = ("_fitted", "_query_weight")
    _WHAT = venn_document.WHAT

    _fitted: tuple[tuple[int, ...], tuple[VennAbers, ...]] | None

    def __init__(self, query_weight: float = 1.0) -> None:
        self._query_weight = venn_checks.query_weight(query_weight)
        self._fitted = None

    @property
    def query_weight(self) -> float:
        """The weight of a query among the rows of each fold."""
        return self._query_weight

    @property
    def folds(self) -> tuple[int, ...]:
        """The numbers of the folds, ascending: the order of columns."""
        return self._known()[0]

    @property
    def predictors(self) -> tuple[VennAbers, ...]:
        """The predictor of each fold."""
        return self._known()[1]

    @property
    def n_samples(self) -> int:
        """How many rows of weight > 0 were fitted."""
        return sum(venn.n_samples for venn in self.predictors)

    def fit(
        self, scores: ColumnLike, labels: ColumnLike, folds: ColumnLike, sample_weight: ColumnLike | None = None
    ) -> CrossVennAbers:
        """Take in rows, each scored by the model that did not see it; what was fitted before is forgotten.

        Parameters
        ----------
        scores, labels : array_like of shape (n,)
            As for `VennAbers.fit`.
        folds : array_like of shape (n,)
            Integers: which fold each row is in.
        sample_weight : array_like of shape (n,), optional
            As for `VennAbers.fit`.  Each fold must have a row of weight > 0.

        Returns
        -------
        CrossVennAbers
            The predictor itself.

        Examples
        --------
        >>> import staircase_fast as sf
        >>> cross = sf.CrossVennAbers().fit([1, 2, 3, 4], [0, 1, 0, 1], folds=[0, 0, 1, 1])
        >>> cross.folds, cross.predictors
        ((0, 1), (<VennAbers: 2 rows, 3 steps>, <VennAbers: 2 rows, 3 steps>))
        """
        rows = venn_checks.labelled(scores, labels, sample_weight)
        numbers = venn_checks.fold_column(folds, scores, sample_weight)
        parts = venn_checks.by_fold(rows, numbers)
        predictors = tuple(VennAbers(self._query_weight)._take(own) for _, own in parts)
        self._fitted = tuple(number for number, _ in parts), predictors
        return self

    def predict(self, scores: ColumnLike, *, n_threads: int | None = None) -> ProbabilityPair[_Floats]:
        """The pairs of probabilities of all folds.

        Parameters
        ----------
        scores : array_like of shape (n, n_folds), (n,) or ()
            A column for each fold, in the order of `folds`, or one score of each query for all of them.
        n_threads : int, optional
            How many threads may be used, for this call alone; see `set_num_threads`.

        Returns
        -------
        ProbabilityPair
            A tuple (p0, p1) of arrays, their last axis of length n_folds.

        Examples
        --------
        >>> import staircase_fast as sf
        >>> cross = sf.CrossVennAbers().fit([1, 2, 3, 4], [0, 1, 0, 1], folds=[0, 0, 1, 1])
        >>> cross.predict([1.5, 3.5]).p0
        array([[0. , 0. ],
               [0.5, 0. ]])
        """
        found = self._pairs()
        p0, p1 = _look_up(found, [pairs.values for pairs in found], scores, n_threads)
        return ProbabilityPair(np.stack(p0, axis=-1), np.stack(p1, axis=-1))

    @overload
    def merge(self, scores: ScalarLike, *, rule: Rule = "log", n_threads: int | None = None) -> np.float64: ...
    @overload
    def merge(self, scores: ColumnLike, *, rule: Rule = "log", n_threads: int | None = None) -> _Floats: ...
    def merge(self, scores: ColumnLike, *, rule: Rule = "log", n_threads: int | None = None) -> np.float64 | _Floats:
        """One probability for each query.

        Parameters
        ----------
        scores : array_like of shape (n, n_folds), (n,) or ()
            As for `predict`.
        rule : {"log", "brier"}, default "log"
            The loss.  "log": G1 / (G0 + G1), where G1 is the geometric mean of p1 over folds, G0 that of 1 - p0.
            "brier": the mean over folds of p1 + p0**2 / 2 - p1**2 / 2.
        n_threads : int, optional
            How many threads may be used, for this call alone; see `set_num_threads`.

        Returns
        -------
        ndarray of float64, or float64 for a single query

        Examples
        --------
        >>> import staircase_fast as sf
        >>> cross = sf.CrossVennAbers().fit([1, 2, 3, 4], [0, 1, 0, 1], folds=[0, 0, 1, 1])
        >>> cross.merge([1.5, 3.5]).round(3)
        array([0.414, 0.586])
        >>> cross.merge([[1.5, 3.5]], rule="brier")
        array([0.5])
        """
        check_choice("rule", rule, RULES)
        if rule == "brier":
            p0, p1 = self.predict(scores, n_threads=n_threads)
            mean: np.float64 | _Floats = merged(p0, p1, rule).mean(axis=-1)
            return mean
        found, logs = self._pairs(), []
        for pairs in found:  # of steps, of which there are few
            both = np.stack((1 - pairs.values[:, 0], pairs.values[:, 1]), axis=-1)
            logs.append(np.log(np.maximum(both, _LEAST)))
        zero, one = (np.mean(column, axis=0) for column in _look_up(found, logs, scores, n_threads))
        with np.errstate(over="ignore"):  # odds beyond all numbers
            odds: np.float64 | _Floats = np.exp(zero - one)
            return 1 / (1 + odds)

    def _pairs(self) -> list[Pairs]:
        """What was fitted for each fold: asked once for each query, for a fit may replace it at any time."""
        return [venn._known()[0] for venn in self.predictors]

    def to_json(self) -> str:
        """The fitted predictor as JSON text; every float comes back from it as it was.

        Returns
        -------
        str

        Examples
        --------
        >>> import staircase_fast as sf
        >>> sf.CrossVennAbers().fit([1, 2, 3, 4], [0, 1, 0, 1], folds=[0, 0, 1, 1]).to_json()
        '{"format": "staircase_fast cross venn-abers", ...'
        """
        return venn_document.cross_to_json(self)

    @classmethod
    def from_json(cls, text: str) -> CrossVennAbers:
        """The predictor that `to_json` wrote.  Everything is checked; nothing is executed.

        Parameters
        ----------
        text : str
            What `to_json` wrote.

        Returns
        -------
        CrossVennAbers

        Examples
        --------
        >>> import staircase_fast as sf
        >>> cross = sf.CrossVennAbers().fit([1, 2, 3, 4], [0, 1, 0, 1], folds=[0, 0, 1, 1])
        >>> sf.CrossVennAbers.from_json(cross.to_json()) == cross
        True
        """
        return cls._of(*venn_document.cross_parts_from(text))

    @classmethod
    def _of(cls, folds: list[Any], parts: list[tuple[Any, ...]]) -> CrossVennAbers:
        """A fitted predictor of these parts."""
        predictors = tuple(VennAbers._of(*one) for one in parts)
        weight = venn_checks.matching_folds(folds, [venn.query_weight for venn in predictors])
        made = cls(weight)
        made._fitted = tuple(folds), predictors
        return made

    def _known(self) -> tuple[tuple[int, ...], tuple[VennAbers, ...]]:
        if self._fitted is None:
            venn_checks.not_fitted("CrossVennAbers")
        return self._fitted

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, CrossVennAbers):
            return NotImplemented
        return (self._query_weight, self._fitted) == (other._query_weight, other._fitted)

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[Any, ...]:
        if self._fitted is None:
            return CrossVennAbers, (self._query_weight,)
        folds, predictors = self._fitted
        return CrossVennAbers._of, (list(folds), [venn._parts() for venn in predictors])

    def __repr__(self) -> str:
        if self._fitted is None:
            return "<CrossVennAbers: not fitted>"
        predictors = self.predictors
        n_samples = sum(venn.n_samples for venn in predictors)
        folds = "1 fold" if len(predictors) == 1 else f"{len(predictors)} folds"
        rows = "1 row" if n_samples == 1 else f"{n_samples} rows"
        return f"<CrossVennAbers: {rows} in {folds}>"


def _look_up(
    found: list[Pairs], tables: list[_Floats], scores: ColumnLike, n_threads: int | None
) -> tuple[list[Any], list[Any]]:
    """What the table of each fold holds for each query; it has a row for each step."""
    queries, shape = venn_checks.fold_queries(scores, len(found))
    n_threads = threads.num_threads(n_threads, len(queries))
    first, second = [], []
    for fold, (pairs, table) in enumerate(zip(found, tables, strict=True)):
        own = np.ascontiguousarray(queries[:, min(fold, queries.shape[1] - 1)])
        a, b = pairs.look_up(own, table, n_threads)
        first.append(a.reshape(shape))
        second.append(b.reshape(shape))
    return first, second
