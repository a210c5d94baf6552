"""Venn-Abers prediction: the isotonic fits with the query added as label 0, and as label 1."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, NamedTuple, Self, TypeVar, overload

import numpy as np

from staircase_fast import threads
from staircase_fast.calibration.pair_steps import Floats, PairSteps, fit_pair_steps, read_labelled_rows
from staircase_fast.errors import InvalidInputError
from staircase_fast.inputs.options import check_choice, check_number
from staircase_fast.staircase.steps import read_queries
from staircase_fast.storage import documents
from staircase_fast.storage.documents import Saved
from staircase_fast.typing import ColumnLike, ScalarLike, public_class

Rule = Literal["log", "brier"]

_Values = TypeVar("_Values", np.float64, Floats)
_Fit = TypeVar("_Fit")
_MOST = np.finfo(np.float64).max
_VERSION = 1  # of the JSON document


class NotFittedError(ValueError, AttributeError):
    """The predictor has not been fitted.  Also an AttributeError, so that `hasattr` returns False."""


@public_class("staircase_fast")
class ProbabilityPair(NamedTuple, Generic[_Values]):
    """The result of `predict` of a Venn-Abers predictor.

    Attributes
    ----------
    p0 : ndarray of float64, or float64 for a single score
        The probability of label 1 if the query's own label were 0.
    p1 : ndarray of float64, or float64 for a single score
        The same if it were 1; p0 <= p1.

    Examples
    --------
    >>> import staircase_fast as sf
    >>> pair = sf.VennAbers().fit([1, 2, 3], [0, 0, 1]).predict([1, 3])
    >>> pair.p1 - pair.p0
    array([0.33333333, 0.5       ])
    """

    p0: _Values
    p1: _Values


class Predictor(Saved, Generic[_Fit]):
    """Base of both Venn-Abers predictors: the weight of a query, merged probabilities, JSON text and pickles.

    JSON documents are exact to the last bit and checked when they are read.  A VennAbers has the fields query_weight,
    n_samples, left, p0 and p1.  A CrossVennAbers has its folds, and an object with these fields for each of them.
    """

    __slots__ = ("_fitted", "_query_weight")
    _WHAT = "a Venn-Abers predictor"
    _FORMAT: ClassVar[str]
    _FIELDS: ClassVar[tuple[str, ...]]

    def __init__(self, query_weight: float = 1.0) -> None:
        self._query_weight = check_number("query_weight", query_weight)
        if self._query_weight <= 0:
            raise InvalidInputError("query_weight", "must be > 0", value=query_weight)
        self._fitted: _Fit | None = None  # each fit sets a new object; methods read it once

    if TYPE_CHECKING:  # each kind has its own

        def _merge(self, scores: ColumnLike, rule: Rule, n_threads: int | None) -> np.float64 | Floats: ...
        def _document(self) -> dict[str, Any]: ...
        @classmethod
        def _from_document(cls, document: dict[str, Any]) -> Self: ...
        def _state(self) -> tuple[Any, ...]: ...  # the argument of `__setstate__`; empty before a fit

    @property
    def query_weight(self) -> float:
        """The weight of the query among the rows that it is added to."""
        return self._query_weight

    def _result(self) -> _Fit:
        if self._fitted is None:
            raise NotFittedError(f"a {type(self).__name__} must be fitted first; call `fit`.")
        return self._fitted

    @overload
    def merge(self, scores: ScalarLike, *, rule: Rule = "log", n_threads: int | None = None) -> np.float64: ...
    @overload
    def merge(self, scores: ColumnLike, *, rule: Rule = "log", n_threads: int | None = None) -> Floats: ...
    def merge(self, scores: ColumnLike, *, rule: Rule = "log", n_threads: int | None = None) -> np.float64 | Floats:
        """Predict one probability for each query: the one with the least worst-case regret against p0 and p1.

        Parameters
        ----------
        scores : array_like
            As for `predict`.
        rule : {"log", "brier"}, default "log"
            The loss.  "log": p1 / (1 - p0 + p1).  "brier", the squared error: p1 + p0**2 / 2 - p1**2 / 2.
            `CrossVennAbers` takes the geometric means of 1 - p0 and of p1 over folds for "log", and the mean of the
            results over folds for "brier".
        n_threads : int, optional
            Number of threads for this call.  Defaults to `get_num_threads()`.

        Returns
        -------
        ndarray of float64, or float64 for a single query
            For `VennAbers` it lies between p0 and p1 and never decreases as scores increase.

        Examples
        --------
        >>> import staircase_fast as sf
        >>> venn = sf.VennAbers().fit([1, 2, 3], [0, 0, 1])
        >>> venn.merge([1, 2, 3]).round(3)
        array([0.25 , 0.333, 0.667])
        >>> venn.merge([1, 2, 3], rule="brier").round(3)
        array([0.278, 0.375, 0.625])
        """
        check_choice("rule", rule, ("log", "brier"))
        return self._merge(scores, rule, n_threads)

    def to_json(self) -> str:
        """Return the fitted predictor as JSON text.  Every float is restored exactly by `from_json`.

        Examples
        --------
        >>> import staircase_fast as sf
        >>> sf.VennAbers().fit([1, 2, 3], [0, 1, 1]).to_json()
        '{"format": "staircase_fast venn-abers", ...'
        """
        return json.dumps({"format": self._FORMAT, "version": _VERSION} | self._document(), allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Return the predictor that `to_json` wrote.  The text is checked; nothing in it is executed.

        Examples
        --------
        >>> import staircase_fast as sf
        >>> venn = sf.VennAbers().fit([1, 2, 3], [0, 1, 1])
        >>> sf.VennAbers.from_json(venn.to_json()) == venn
        True
        """
        kind = cls._FORMAT, _VERSION
        return cls._from_document(documents.document_of(text, cls._WHAT, kind, cls._FIELDS, with_loss=False))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._query_weight,), self._state() or None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Predictor):
            return NotImplemented
        return (self._FORMAT, self._query_weight, self._fitted) == (other._FORMAT, other._query_weight, other._fitted)

    __hash__ = None  # type: ignore[assignment]


@public_class("staircase_fast")
class VennAbers(Predictor[PairSteps]):
    """Venn-Abers predictor: two probabilities for each score, one of which is calibrated, if the data are exchangeable.

    For each query, the isotonic fit of the calibration rows is computed twice, with the query added to the rows: once
    with label 0 and once with label 1.  Its values at the query are p0 and p1.  If the query is exchangeable with the
    calibration rows, the probability that belongs to its true label is calibrated, for any number of rows.  The
    difference p1 - p0 shows how uncertain the probability is near a score.

    All fits are computed together, in about the time of a sort.  Probabilities are correctly rounded for every score:
    also for ties, between scores, and outside their range.

    Parameters
    ----------
    query_weight : float, default 1.0
        The weight of the query among the rows.

    Notes
    -----
    Scores must come from a model that was not trained on the calibration rows.  Use `CrossVennAbers` for scores from
    cross-validation.

    Memory: a fit needs about 35 bytes per row, more with weights.  The result needs 24 bytes per step: some thousand
    steps for a million noisy rows, but about one per row if all labels are equal or perfectly separated.

    Thread-safety: any number of threads may use one predictor.  `fit` replaces the old result in one step, so a
    concurrent call uses either the old fit or the new one.

    References
    ----------
    V. Vovk, I. Petej and V. Fedorova, "Large-scale probabilistic predictors with and without guarantees of validity",
    2015.

    Examples
    --------
    >>> import staircase_fast as sf
    >>> venn = sf.VennAbers().fit([0.1, 0.4, 0.35, 0.8], [0, 0, 1, 1])
    >>> venn
    <VennAbers: 4 rows, 5 steps>
    >>> p0, p1 = venn.predict([0.2, 0.38, 0.9])
    >>> p0.round(3), p1.round(3)
    (array([0.   , 0.333, 0.5  ]), array([0.667, 0.667, 1.   ]))
    >>> venn.merge([0.2, 0.38, 0.9])
    array([0.4       , 0.5       , 0.66666667])
    """

    __slots__ = ()
    _FORMAT = "staircase_fast venn-abers"
    _FIELDS = ("query_weight", "n_samples", "left", "p0", "p1")

    @property
    def n_samples(self) -> int:
        """The number of fitted rows with weight > 0."""
        return self._result().n_samples

    @property
    def left(self) -> Floats:
        """The least score on each step; the first is -inf."""
        return self._result().left

    @property
    def n_steps(self) -> int:
        """The number of steps of p0 and p1 together."""
        return len(self.left)

    @property
    def p0(self) -> Floats:
        """The lower probability on each step."""
        return self._result().values[:, 0]

    @property
    def p1(self) -> Floats:
        """The upper probability on each step."""
        return self._result().values[:, 1]

    def fit(self, scores: ColumnLike, labels: ColumnLike, sample_weight: ColumnLike | None = None) -> VennAbers:
        """Fit the calibration rows.  An earlier fit is replaced.

        Parameters
        ----------
        scores : array_like of shape (n,)
            Real or infinite numbers.  Only their order matters.
        labels : array_like of shape (n,)
            Each 0 or 1, as integers, bools or floats.
        sample_weight : array_like of shape (n,), optional
            Weights >= 0.  A row with weight 0 is ignored; one with weight k counts as k rows.

        Returns
        -------
        VennAbers
            The predictor itself.

        Examples
        --------
        >>> import staircase_fast as sf
        >>> sf.VennAbers().fit([1, 2, 2], [0, 1, 1], sample_weight=[2, 1, 1])
        <VennAbers: 3 rows, 3 steps>
        """
        self._fitted = fit_pair_steps(read_labelled_rows(scores, labels, sample_weight)[0], self._query_weight)
        return self

    @overload
    def predict(self, scores: ScalarLike, *, n_threads: int | None = None) -> ProbabilityPair[np.float64]: ...
    @overload
    def predict(self, scores: ColumnLike, *, n_threads: int | None = None) -> ProbabilityPair[Floats]: ...
    def predict(self, scores: ColumnLike, *, n_threads: int | None = None) -> ProbabilityPair[Any]:
        """Predict both probabilities of label 1 for each score.

        Parameters
        ----------
        scores : array_like of any shape
        n_threads : int, optional
            Number of threads for this call.  Defaults to `get_num_threads()`.

        Returns
        -------
        ProbabilityPair
            A tuple (p0, p1) of arrays in the shape of `scores`, or of floats for a single score.

        Examples
        --------
        >>> import staircase_fast as sf
        >>> sf.VennAbers().fit([1, 2, 3], [0, 1, 1]).predict([0, 2.5])
        ProbabilityPair(p0=array([0. , 0.5]), p1=array([0.5, 1. ]))
        """
        steps = self._result()
        queries, shape = read_queries(scores)
        p0, p1 = steps.look_up(queries, steps.values, threads.num_threads(n_threads, len(queries)))
        return ProbabilityPair(p0.reshape(shape)[()], p1.reshape(shape)[()])

    def _merge(self, scores: ColumnLike, rule: Rule, n_threads: int | None) -> np.float64 | Floats:
        steps = self._result()
        queries, shape = read_queries(scores)
        n_threads = threads.num_threads(n_threads, len(queries))
        if len(queries) < len(steps.left):
            p0, p1 = steps.look_up(queries, steps.values, n_threads)
            found = merged(p0, p1, rule)
        else:
            (found,) = steps.look_up(queries, merged(steps.values[:, 0], steps.values[:, 1], rule), n_threads)
        probabilities: np.float64 | Floats = found.reshape(shape)[()]
        return probabilities

    def _state(self) -> tuple[Any, ...]:
        return () if self._fitted is None else self._fitted.columns()

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self._fitted = PairSteps.checked(*state)

    def _document(self) -> dict[str, Any]:
        n_samples, *columns = self._result().columns()
        plain = (documents.plain_numbers(column.tolist()) for column in columns)
        return dict(zip(self._FIELDS, (self._query_weight, n_samples, *plain), strict=True))

    @classmethod
    def _from_document(cls, document: dict[str, Any]) -> Self:
        made = cls(document["query_weight"])
        columns = (documents.numbers_of(name, document[name]) for name in cls._FIELDS[2:])
        made.__setstate__((document["n_samples"], *columns))
        return made

    def __repr__(self) -> str:
        if self._fitted is None:
            return "<VennAbers: not fitted>"
        steps = self._result()
        return f"<VennAbers: {counted(steps.n_samples, 'row')}, {counted(len(steps.left), 'step')}>"


def counted(n: int, noun: str) -> str:
    """A number with its noun in the singular or plural."""
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def merged(p0: Floats, p1: Floats, rule: Rule) -> Floats:
    """The probability whose regret, its loss minus that of p0 for label 0 and of p1 for label 1, is equal for both.

    Each operation rises with p0 and p1, so that the result does too, whatever is rounded.
    """
    if rule == "log":
        with np.errstate(divide="ignore", over="ignore"):  # p1 may be tiny, or rounded to 0
            odds = np.minimum((1 - p0) / p1, _MOST)
        p = 1 / (1 + odds)
    else:
        # p1 - p1**2 / 2: the first form loses no digits of a small p1, the second does not fall near 1
        p = np.where(p1 < 0.5, p1 - p1 * p1 / 2, (1 - (1 - p1) * (1 - p1)) / 2) + p0 * p0 / 2
    return np.clip(p, p0, p1)  # rounding may leave this range
