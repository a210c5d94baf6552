"""Cross Venn-Abers prediction: one Venn-Abers predictor for each fold of a cross-validation, merged."""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np

from staircase_fast import threads
from staircase_fast.arithmetic.exact import order_of
from staircase_fast.calibration.pair_steps import Floats, PairSteps, fit_pair_steps, read_labelled_rows
from staircase_fast.calibration.venn_abers import Predictor, ProbabilityPair, Rule, VennAbers, counted, merged
from staircase_fast.errors import InvalidInputError, refuse_entries
from staircase_fast.inputs.columns import read_column
from staircase_fast.inputs.rows import check_no_nan, check_same_index, check_same_length
from staircase_fast.staircase.steps import read_queries
from staircase_fast.storage import documents
from staircase_fast.typing import ColumnLike, public_class

_LEAST = 5e-324  # replaces a probability that was rounded to 0, which has no logarithm


@public_class("staircase_fast")
class CrossVennAbers(Predictor[tuple[tuple[int, ...], tuple[VennAbers, ...]]]):
    """Cross Venn-Abers predictor: every row is used for training and for calibration.

    The rows are divided into folds.  The model of each fold is trained on all other rows and scores its own; the rows
    of each fold calibrate one `VennAbers`.  A query is scored by all models and looked up in each predictor, and the
    pairs of probabilities are merged into one.  The promise of `VennAbers` for exchangeable data does not extend to it.

    Parameters
    ----------
    query_weight : float, default 1.0
        The weight of the query among the rows of each fold.

    Notes
    -----
    Thread-safety: as for `VennAbers`, which also names the paper.

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
        check_same_index(scores=scores, labels=labels, folds=folds)
        lost = ~np.isin(numbers, numbers[present])
        refuse_entries("folds", "must each have a row with `sample_weight` > 0", numbers, lost)

        order = np.argsort(numbers[present], kind="stable")
        found, starts = np.unique(numbers[present][order], return_index=True)
        predictors = []
        for part in np.split(order, starts[1:]):
            x, w = rows.scores[part], rows.weights[part] if len(rows.weights) else rows.weights
            own = rows._replace(scores=x, targets=rows.targets[part], weights=w, order=order_of(x, 1))
            predictors.append(VennAbers(self._query_weight))
            predictors[-1]._fitted = fit_pair_steps(own, self._query_weight)
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
        found = _look_up(folds, [steps.values for steps in folds], scores, n_threads)
        return ProbabilityPair(*(np.stack(column, axis=-1) for column in found))

    def _merge(self, scores: ColumnLike, rule: Rule, n_threads: int | None) -> np.float64 | Floats:
        if rule == "brier":
            return merged_folds(*self.predict(scores, n_threads=n_threads), rule)
        folds = self._steps()
        # logarithms of steps, which are fewer than queries
        logs = [np.stack(_logs(steps.values[:, 0], steps.values[:, 1]), axis=-1) for steps in folds]
        return _from_logs(*(np.mean(column, axis=0) for column in _look_up(folds, logs, scores, n_threads)))

    def _steps(self) -> list[PairSteps]:
        return [venn._result() for venn in self.predictors]

    def _state(self) -> tuple[Any, ...]:
        return self._fitted or ()

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
        for name in cls._FIELDS:
            if not isinstance(document[name], list):
                raise InvalidInputError(name, "must be an array", found=f"got {type(document[name]).__name__}")
        predictors = []
        for index, fields in enumerate(document["predictors"]):
            if not isinstance(fields, dict):
                raise InvalidInputError("predictors", "must be objects", value=fields, index=index)
            documents.known_fields(fields, "a predictor", VennAbers._FIELDS)
            predictors.append(VennAbers._from_document(fields))
        made = cls(predictors[0].query_weight if predictors else 1.0)
        made.__setstate__((document["folds"], predictors))
        return made

    def __repr__(self) -> str:
        if self._fitted is None:
            return "<CrossVennAbers: not fitted>"
        predictors = self.predictors
        n_samples = sum(venn.n_samples for venn in predictors)
        return f"<CrossVennAbers: {counted(n_samples, 'row')} in {counted(len(predictors), 'fold')}>"


def merged_folds(p0: Floats, p1: Floats, rule: Rule) -> Floats:
    """One probability for the pairs of all folds, which are on the last axis."""
    if rule == "brier":
        mean: Floats = merged(p0, p1, rule).mean(axis=-1)
        return mean
    return _from_logs(*(np.mean(column, axis=-1) for column in _logs(p0, p1)))


def _logs(p0: Floats, p1: Floats) -> tuple[Floats, Floats]:
    zero, one = (np.log(np.maximum(column, _LEAST)) for column in (1 - p0, p1))
    return zero, one


def _from_logs(zero: Floats, one: Floats) -> Floats:
    """The probability whose odds are those of the geometric means, given their logarithms."""
    with np.errstate(over="ignore"):  # infinite odds are a probability of 0
        odds: Floats = np.exp(zero - one)
        return 1 / (1 + odds)


def _look_up(
    folds: list[PairSteps], tables: list[Floats], scores: ColumnLike, n_threads: int | None
) -> tuple[tuple[Floats, ...], ...]:
    """For each fold, the first entry of its table for each query, and the second; a table has one row per step."""
    flat, shape = read_queries(scores)
    if len(shape) > 2 or (len(shape) == 2 and shape[1] != len(folds)):
        requirement = f"must be one for each query, or have a column for each of the {len(folds)} folds"
        raise InvalidInputError("scores", requirement, found=f"got shape {shape}")
    check_no_nan("scores", flat, n_threads=1)
    n = math.prod(shape[:1])
    queries = np.broadcast_to(flat.reshape(n, -1 if n else 1), (n, len(folds)))
    n_threads = threads.num_threads(n_threads, n)
    found = []
    for steps, table, own in zip(folds, tables, queries.T, strict=True):
        pair = steps.look_up(np.ascontiguousarray(own), table, n_threads)
        found.append([column.reshape(shape[:1]) for column in pair])
    return tuple(zip(*found, strict=True))
