"""Cross Venn-Abers prediction: one Venn-Abers predictor for each fold of a cross-validation, merged."""

from __future__ import annotations

from typing import Any, Self, overload

import numpy as np

from staircase_fast import threads
from staircase_fast.arithmetic.exact import order_of
from staircase_fast.calibration.pair_steps import Floats, PairSteps, fit_pair_steps, read_labelled_rows
from staircase_fast.calibration.venn_abers import RULES, Predictor, ProbabilityPair, Rule, VennAbers, counted, merged
from staircase_fast.errors import InvalidInputError, refuse_entries
from staircase_fast.inputs.columns import Column, read_array, read_column, read_float_column
from staircase_fast.inputs.options import check_choice
from staircase_fast.inputs.rows import check_no_nan, check_same_length
from staircase_fast.storage import documents
from staircase_fast.typing import ColumnLike, ScalarLike, public_class

_LEAST = 5e-324  # replaces a probability that was rounded to 0, which has no logarithm


@public_class("staircase_fast")
class CrossVennAbers(Predictor[tuple[tuple[int, ...], tuple[VennAbers, ...]]]):
    """Cross Venn-Abers predictor: every row is used for training and for calibration.

    The rows are divided into folds.  The model of each fold is trained on all other rows and scores its own; the rows
    of each fold calibrate one `VennAbers`.  A query is scored by all models and looked up in each predictor, and the
    pairs of probabilities are merged into one.

    Parameters
    ----------
    query_weight : float, default 1.0
        The weight of the query among the rows of each fold.

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

    Column k of a query contains the score of the model of fold k:

    >>> cross.merge([[0.3, 0.3], [0.9, 0.8]]).round(3)
    array([0.449, 0.68 ])

    The pairs before they are merged, one column for each fold:

    >>> cross.predict([[0.3, 0.3], [0.9, 0.8]]).p1.round(3)
    array([[0.667, 1.   ],
           [1.   , 1.   ]])
    """

    __slots__ = ()
    _FORMAT = "staircase_fast cross venn-abers"
    _FIELDS = ("folds", "predictors")

    @property
    def folds(self) -> tuple[int, ...]:
        """The numbers of the folds in ascending order, which is the order of columns."""
        return self._result()[0]

    @property
    def predictors(self) -> tuple[VennAbers, ...]:
        """The predictor of each fold."""
        return self._result()[1]

    @property
    def n_samples(self) -> int:
        """The number of fitted rows with weight > 0."""
        return sum(venn.n_samples for venn in self.predictors)

    def fit(
        self, scores: ColumnLike, labels: ColumnLike, folds: ColumnLike, sample_weight: ColumnLike | None = None
    ) -> CrossVennAbers:
        """Fit rows that were each scored by the model of their fold.  An earlier fit is replaced.

        Parameters
        ----------
        scores, labels : array_like of shape (n,)
            As for `VennAbers.fit`.
        folds : array_like of shape (n,)
            Integers: the fold of each row.
        sample_weight : array_like of shape (n,), optional
            As for `VennAbers.fit`.  Each fold must have a row with weight > 0.

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
        rows, present = read_labelled_rows(scores, labels, sample_weight)
        given = read_column("folds", folds)
        if given.dtype.kind == "f":
            refuse_entries("folds", "must be integers", given, (np.floor(given) != given) | ~(np.abs(given) < 2.0**53))
        numbers = given.astype(np.int64)
        check_same_length("scores", present, "folds", numbers)
        lost = ~np.isin(numbers, numbers[present])
        refuse_entries("folds", "must each have a row with `sample_weight` > 0", numbers, lost)

        order = np.argsort(numbers[present], kind="stable")
        found, starts = np.unique(numbers[present][order], return_index=True)
        predictors = []
        for part in np.split(order, starts[1:]):
            x, w = rows.scores[part], rows.weights[part] if len(rows.weights) else rows.weights
            own = rows._replace(scores=x, targets=rows.targets[part], weights=w, order=order_of(x, 1))
            venn = VennAbers(self._query_weight)
            venn._fitted = fit_pair_steps(own, self._query_weight)
            predictors.append(venn)
        self._fitted = tuple(found.tolist()), tuple(predictors)
        return self

    def predict(self, scores: ColumnLike, *, n_threads: int | None = None) -> ProbabilityPair[Floats]:
        """Predict the pairs of probabilities of all folds.

        Parameters
        ----------
        scores : array_like of shape (n, n_folds), (n,) or ()
            A column for each fold, in the order of `folds`, or one score for all folds.
        n_threads : int, optional
            Number of threads for this call.  Defaults to `get_num_threads()`.

        Returns
        -------
        ProbabilityPair
            A tuple (p0, p1) of arrays with a last axis of length n_folds.

        Examples
        --------
        >>> import staircase_fast as sf
        >>> cross = sf.CrossVennAbers().fit([1, 2, 3, 4], [0, 1, 0, 1], folds=[0, 0, 1, 1])
        >>> cross.predict([1.5, 3.5]).p0
        array([[0. , 0. ],
               [0.5, 0. ]])
        """
        folds = self._steps()
        p0, p1 = _look_up(folds, [steps.values for steps in folds], scores, n_threads)
        return ProbabilityPair(np.stack(p0, axis=-1), np.stack(p1, axis=-1))

    @overload
    def merge(self, scores: ScalarLike, *, rule: Rule = "log", n_threads: int | None = None) -> np.float64: ...
    @overload
    def merge(self, scores: ColumnLike, *, rule: Rule = "log", n_threads: int | None = None) -> Floats: ...
    def merge(self, scores: ColumnLike, *, rule: Rule = "log", n_threads: int | None = None) -> np.float64 | Floats:
        """Predict one probability for each query.

        Parameters
        ----------
        scores : array_like of shape (n, n_folds), (n,) or ()
            As for `predict`.
        rule : {"log", "brier"}, default "log"
            The loss.  "log": G1 / (G0 + G1), where G1 is the geometric mean of p1 over folds, G0 that of 1 - p0.
            "brier": the mean over folds of p1 + p0**2 / 2 - p1**2 / 2.
        n_threads : int, optional
            Number of threads for this call.  Defaults to `get_num_threads()`.

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
            mean: np.float64 | Floats = merged(p0, p1, rule).mean(axis=-1)
            return mean
        folds, logs = self._steps(), []
        for steps in folds:  # logarithms of steps, which are fewer than queries
            both = np.stack((1 - steps.values[:, 0], steps.values[:, 1]), axis=-1)
            logs.append(np.log(np.maximum(both, _LEAST)))
        zero, one = (np.mean(column, axis=0) for column in _look_up(folds, logs, scores, n_threads))
        with np.errstate(over="ignore"):  # infinite odds are a probability of 0
            odds: np.float64 | Floats = np.exp(zero - one)
            return 1 / (1 + odds)

    def _steps(self) -> list[PairSteps]:
        return [venn._result() for venn in self.predictors]

    def _state(self) -> tuple[Any, ...]:
        return () if self._fitted is None else self._fitted

    def __setstate__(self, state: tuple[Any, Any]) -> None:
        folds, predictors = map(tuple, state)
        if len(folds) != len(predictors) or not folds:
            found = f"got {len(folds)} and {len(predictors)}"
            raise InvalidInputError("folds", "must have one entry per predictor", found=found)
        for index, fold in enumerate(folds):
            if type(fold) is not int or (index and fold <= folds[index - 1]):
                raise InvalidInputError("folds", "must be integers that increase", value=fold, index=index)
        weights = {self._query_weight, *(venn.query_weight for venn in predictors)}
        if len(weights) > 1:
            raise InvalidInputError("query_weight", "must be the same for all folds", value=sorted(weights))
        self._fitted = folds, predictors

    def _document(self) -> dict[str, Any]:
        folds, predictors = self._result()
        return {"folds": list(folds), "predictors": [venn._document() for venn in predictors]}

    @classmethod
    def _from_document(cls, document: dict[str, Any]) -> Self:
        for name, entries in ((name, document[name]) for name in cls._FIELDS):
            if not isinstance(entries, list):
                raise InvalidInputError(name, "must be an array", found=f"got {type(entries).__name__}")
        predictors = []
        for index, fields in enumerate(document["predictors"]):
            if not isinstance(fields, dict):
                found = f"got {documents.shown(fields)}"
                raise InvalidInputError("predictors", "must be objects", found=found, index=index)
            documents.known_fields(fields, "a predictor", VennAbers._FIELDS)
            predictors.append(VennAbers._from_document(fields))
        made = cls(predictors[0].query_weight if predictors else 1.0)
        made.__setstate__((document["folds"], predictors))
        return made

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, CrossVennAbers):
            return NotImplemented
        return (self._query_weight, self._fitted) == (other._query_weight, other._fitted)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        if self._fitted is None:
            return "<CrossVennAbers: not fitted>"
        predictors = self.predictors
        n_samples = sum(venn.n_samples for venn in predictors)
        return f"<CrossVennAbers: {counted(n_samples, 'row')} in {counted(len(predictors), 'fold')}>"


def _look_up(
    folds: list[PairSteps], tables: list[Floats], scores: ColumnLike, n_threads: int | None
) -> tuple[list[Floats], list[Floats]]:
    """For each fold, the first entry of its table for each query, and the second; a table has one row per step."""
    given = read_array("scores", scores, exact=True)
    if given.ndim > 2 or (given.ndim == 2 and given.shape[1] != len(folds)):
        requirement = f"must be one for each query, or have a column for each of the {len(folds)} folds"
        raise InvalidInputError("scores", requirement, found=f"got shape {given.shape}")
    flat = read_float_column("scores", given.reshape(-1))
    check_no_nan("scores", flat, n_threads=1)
    queries: Column = flat.reshape(given.shape if given.ndim == 2 else (-1, 1))
    n_threads = threads.num_threads(n_threads, len(queries))
    first, second = [], []
    for fold, (steps, table) in enumerate(zip(folds, tables, strict=True)):
        own = np.ascontiguousarray(queries[:, min(fold, queries.shape[1] - 1)])
        a, b = steps.look_up(own, table, n_threads)
        first.append(a.reshape(given.shape[:1]))
        second.append(b.reshape(given.shape[:1]))
    return first, second
