"""Venn-Abers prediction of several classes, by predictors of two classes each."""

from __future__ import annotations

import itertools
from typing import Any, Literal, NamedTuple

import numpy as np

from staircase_fast.calibration.pair_steps import Floats
from staircase_fast.calibration.venn_abers import NotFittedError, ProbabilityPair, Rule, VennAbers, merged
from staircase_fast.errors import DROP_ROWS, InvalidInputError, refuse_cells
from staircase_fast.inputs.columns import Column, read_array
from staircase_fast.inputs.options import check_choice
from staircase_fast.inputs.rows import check_same_index, read_classes, read_weights
from staircase_fast.typing import ColumnLike, public_class

Method = Literal["one_vs_rest", "one_vs_one", "coupled"]
ScoreScale = Literal["probability", "margin"]


@public_class("staircase_fast")
class VennAbersMulticlass:
    """Venn-Abers predictor of three or more classes (or two), made of predictors of two classes each.

    If a query is exchangeable with the calibration rows, each of these predictors keeps the promise of `VennAbers` for
    its own question: of its two probabilities, the one that belongs to the true answer is calibrated.  For
    "one_vs_rest" the question is whether the class is k.  For the other methods it is which of two classes it is, and
    only among rows of these two classes.  The probabilities that `merge` combines from them have no such promise.

    Parameters
    ----------
    method : {"one_vs_rest", "one_vs_one", "coupled"}, default "one_vs_rest"
        "one_vs_rest": one predictor per class; the merged probabilities are divided by their sum.  "one_vs_one": one
        predictor per pair of classes; with r_ij for its merged probability of i, class i gets
        1 / (sum over j of 1 / r_ij - (k - 2)), divided by the sum over classes.  "coupled": the same predictors; the
        probabilities p minimise the sum over pairs of (r_ji p_i - r_ij p_j)**2.
    scale : {"probability", "margin"}, default "probability"
        How the score of class j against class i follows from the columns s_i and s_j: s_j / (s_i + s_j) for
        probabilities, s_j - s_i for margins and logits.  Not used for "one_vs_rest".
    query_weight : float, default 1.0
        The weight of the query among the rows of each predictor.

    Notes
    -----
    Thread-safety: as for `VennAbers`.

    References
    ----------
    V. Manokhin, "Multi-class probabilistic classification using inductive and cross Venn-Abers predictors", 2017.
    D. Price, S. Knerr, L. Personnaz, G. Dreyfus, "Pairwise neural network classifiers with probabilistic outputs", 1994
    ("one_vs_one").  T.-F. Wu, C.-J. Lin, R. C. Weng, "Probability estimates for multi-class classification by pairwise
    coupling", 2004, second method ("coupled").

    Examples
    --------
    >>> import staircase_fast as sf
    >>> table = [[0.7, 0.2, 0.1], [0.2, 0.5, 0.3], [0.1, 0.3, 0.6], [0.6, 0.3, 0.1], [0.3, 0.4, 0.3]]
    >>> venn = sf.VennAbersMulticlass().fit(table, [0, 1, 2, 0, 1])
    >>> venn.merge([[0.5, 0.3, 0.2]]).round(3)
    array([[0.5 , 0.25, 0.25]])
    """

    __slots__ = ("_fitted", "_method", "_query_weight", "_scale")

    def __init__(
        self, method: Method = "one_vs_rest", scale: ScoreScale = "probability", query_weight: float = 1.0
    ) -> None:
        self._method = check_choice("method", method, ("one_vs_rest", "one_vs_one", "coupled"))
        self._scale = check_choice("scale", scale, ("probability", "margin"))
        self._query_weight = VennAbers(query_weight).query_weight
        self._fitted: _Fit | None = None  # each fit sets a new object; methods read it once

    @property
    def method(self) -> str:
        """How classes are divided into questions, and probabilities combined."""
        return self._method

    @property
    def n_classes(self) -> int:
        """The number of classes."""
        return self._result().n_classes

    @property
    def questions(self) -> tuple[tuple[int, ...], ...]:
        """What each predictor, and each column of `predict`, is about: (k,) for class k, (i, j) for j against i."""
        return self._result().questions

    @property
    def predictors(self) -> tuple[VennAbers, ...]:
        """The predictor of each question."""
        return self._result().predictors

    def _result(self) -> _Fit:
        if self._fitted is None:
            raise NotFittedError("a VennAbersMulticlass must be fitted first; call `fit`.")
        return self._fitted

    def fit(
        self, scores: ColumnLike, labels: ColumnLike, sample_weight: ColumnLike | None = None
    ) -> VennAbersMulticlass:
        """Fit the calibration rows.  An earlier fit is replaced.

        Parameters
        ----------
        scores : array_like of shape (n, k)
            A column for each class: probabilities or margins, see `scale`.
        labels : array_like of shape (n,)
            Classes from 0 to k - 1.  For pairs, each class must have a row with weight > 0.
        sample_weight : array_like of shape (n,), optional
            As for `VennAbers.fit`.

        Returns
        -------
        VennAbersMulticlass
            The predictor itself.

        Examples
        --------
        >>> import staircase_fast as sf
        >>> table = [[3.0, 1.0, 0.0], [0.0, 2.0, 1.0], [0.5, 1.0, 4.0]]
        >>> sf.VennAbersMulticlass("coupled", scale="margin").fit(table, [0, 1, 2]).questions
        ((0, 1), (0, 2), (1, 2))
        """
        table = self._read(scores, None)
        codes, k = read_classes("labels", labels, table), table.shape[1]
        weights = read_weights("sample_weight", sample_weight, "scores", table)
        check_same_index(scores=scores, labels=labels, sample_weight=sample_weight)
        pairs = self._method != "one_vs_rest"
        questions = tuple(itertools.combinations(range(k), 2)) if pairs else tuple((j,) for j in range(k))
        if pairs:
            present = np.isin(np.arange(k), codes[weights > 0] if len(weights) else codes)
            if not present.all():
                found = f"class {int(np.argmin(present))} has none"
                raise InvalidInputError("labels", "must have a row with weight > 0 for each class", found=found)
        predictors = []
        for question in questions:
            own = np.isin(codes, question) if pairs else np.ones(len(codes), dtype=np.bool_)
            column, w = self._scores(table[own], question), weights[own] if len(weights) else None
            predictors.append(VennAbers(self._query_weight).fit(column, codes[own] == question[-1], sample_weight=w))
        self._fitted = _Fit(k, questions, tuple(predictors))
        return self

    def predict(self, scores: ColumnLike, *, n_threads: int | None = None) -> ProbabilityPair[Floats]:
        """Predict both probabilities of each question.

        Parameters
        ----------
        scores : array_like of shape (n, k)
        n_threads : int, optional
            Number of threads for this call.  Defaults to `get_num_threads()`.

        Returns
        -------
        ProbabilityPair
            A tuple (p0, p1) of arrays of shape (n, number of questions), in the order of `questions`.

        Examples
        --------
        >>> import staircase_fast as sf
        >>> table = [[0.7, 0.2, 0.1], [0.2, 0.5, 0.3], [0.1, 0.3, 0.6], [0.6, 0.3, 0.1]]
        >>> p0, p1 = sf.VennAbersMulticlass().fit(table, [0, 1, 2, 0]).predict([[0.5, 0.3, 0.2]])
        >>> p0.round(3), p1.round(3)
        (array([[0., 0., 0.]]), array([[1.   , 0.333, 0.5  ]]))
        """
        fitted = self._result()
        table = self._read(scores, fitted.n_classes)
        found = [
            venn.predict(self._scores(table, question), n_threads=n_threads)
            for venn, question in zip(fitted.predictors, fitted.questions, strict=True)
        ]
        return ProbabilityPair(*(np.column_stack(column) for column in zip(*found, strict=True)))

    def merge(self, scores: ColumnLike, *, rule: Rule = "log", n_threads: int | None = None) -> Floats:
        """Predict one probability for each class.

        Parameters
        ----------
        scores : array_like of shape (n, k)
        rule : {"log", "brier"}, default "log"
            How the two probabilities of each question are merged; see `VennAbers.merge`.
        n_threads : int, optional
            Number of threads for this call.  Defaults to `get_num_threads()`.

        Returns
        -------
        ndarray of shape (n, k)
            Rows sum to 1.

        Examples
        --------
        >>> import staircase_fast as sf
        >>> table = [[3.0, 1.0, 0.0], [0.0, 2.0, 1.0], [0.5, 1.0, 4.0]]
        >>> venn = sf.VennAbersMulticlass("coupled", scale="margin").fit(table, [0, 1, 2])
        >>> venn.merge([[2.0, 2.0, 0.0]]).round(3)
        array([[0.339, 0.404, 0.257]])
        """
        check_choice("rule", rule, ("log", "brier"))
        p0, p1 = self.predict(scores, n_threads=n_threads)
        return combined(merged(p0, p1, rule), self._method, self._result().n_classes)

    def _read(self, scores: ColumnLike, n_classes: int | None) -> Column:
        table = read_array("scores", scores)
        if table.ndim != 2 or table.shape[1] < 2 or (n_classes is not None and table.shape[1] != n_classes):
            shape = "(n, k) with k >= 2" if n_classes is None else f"(n, {n_classes})"
            hint = "Use `VennAbers` for two classes and one column of scores." if table.ndim == 1 else ""
            raise InvalidInputError("scores", f"must have shape {shape}", found=f"got shape {table.shape}", hint=hint)
        refuse_cells("scores", "must not be NaN", table, np.isnan(table), hint=lambda: DROP_ROWS)
        if self._method != "one_vs_rest":
            refuse_cells("scores", "must be finite", table, ~np.isfinite(table))
            if self._scale == "probability":
                hint = "Are these logits? Pass scale='margin'."
                refuse_cells("scores", "must be >= 0", table, table < 0, hint=lambda: hint)
        return table

    def _scores(self, table: Column, question: tuple[int, ...]) -> Column:
        """The score of a question."""
        if len(question) == 1:
            return table[:, question[0]]
        first, second = (table[:, k].astype(np.float64, copy=False) for k in question)
        if self._scale == "margin":
            return second * 0.5 - first * 0.5  # the difference may overflow
        total = first + second
        return np.divide(second, total, out=np.full(len(total), 0.5), where=total > 0)

    def __reduce__(self) -> tuple[Any, ...]:
        return (
            type(self),
            (self._method, self._scale, self._query_weight),
            None if self._fitted is None else tuple(self._fitted),
        )

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self._fitted = _Fit(*state)

    def __repr__(self) -> str:
        if self._fitted is None:
            return "<VennAbersMulticlass: not fitted>"
        return f"<VennAbersMulticlass: {self._method}, {self._fitted.n_classes} classes>"


class _Fit(NamedTuple):
    n_classes: int
    questions: tuple[tuple[int, ...], ...]
    predictors: tuple[VennAbers, ...]


def combined(answers: Floats, method: str, k: int) -> Floats:
    """Probabilities of classes from the probabilities of `questions`; all of the latter are > 0, those of pairs < 1."""
    if method == "one_vs_rest":
        return answers / answers.sum(axis=1, keepdims=True)
    ratios = np.full((len(answers), k, k), 0.5)  # [i, j]: the probability of i among i and j
    for column, (i, j) in enumerate(itertools.combinations(range(k), 2)):
        ratios[:, j, i], ratios[:, i, j] = answers[:, column], 1.0 - answers[:, column]
    if method == "one_vs_one":
        own = np.arange(k)
        inverse = 1.0 / ratios
        inverse[:, own, own] = 0.0
        found: Floats = 1.0 / (inverse.sum(axis=2) - (k - 2))
        return found / found.sum(axis=1, keepdims=True)
    # the minimum of p' Q p under sum p = 1 solves Q p = constant: Wu, Lin and Weng, section 4
    system = -ratios * ratios.transpose(0, 2, 1)
    system[:, np.arange(k), np.arange(k)] = np.square(ratios).sum(axis=1) - 0.25
    bordered = np.zeros((len(answers), k + 1, k + 1))
    bordered[:, :k, :k], bordered[:, :k, k], bordered[:, k, :k] = system, 1.0, 1.0
    right = np.zeros((len(answers), k + 1, 1))
    right[:, k] = 1.0
    found = np.clip(np.linalg.solve(bordered, right)[:, :k, 0], 0.0, 1.0)
    return found / found.sum(axis=1, keepdims=True)
