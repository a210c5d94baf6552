"""Probabilities with an honest width: the isotonic fits with the query itself added as 0, and as 1."""

from __future__ import annotations

from typing import Any, Generic, Literal, NamedTuple, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from staircase_fast import threads
from staircase_fast.arithmetic.exact import LABELS, Extent, joined_extent, scale_of
from staircase_fast.calibration import _venn, venn_checks, venn_document
from staircase_fast.calibration.pairs import Pairs
from staircase_fast.calibration.venn_checks import PairSteps
from staircase_fast.inputs.options import check_choice
from staircase_fast.losses.rows import Rows
from staircase_fast.stack.sorting import in_score_order
from staircase_fast.staircase.steps import read_queries
from staircase_fast.storage.documents import Saved
from staircase_fast.typing import ColumnLike, ScalarLike, public_class

RULES = ("log", "brier")
Rule = Literal["log", "brier"]

_Floats = NDArray[np.float64]
_Values = TypeVar("_Values", np.float64, _Floats)
_MOST = np.finfo(np.float64).max


@public_class("staircase_fast")
class ProbabilityPair(NamedTuple, Generic[_Values]):
    """What `predict` of a Venn-Abers predictor returns.

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


@public_class("staircase_fast")
class VennAbers(Saved):
    """Venn-Abers predictor: two probabilities for each score, one of which is calibrated, whatever the data.

    For a query, the isotonic fit of the calibration rows is made twice, with the query among the rows: once with label
    0, once with label 1.  Its values at the query are p0 and p1.  If queries are exchangeable with the calibration
    rows, the one that belongs to the true label is a calibrated probability: not in the limit, but for any number of
    rows.  p1 - p0 says how little is known near a score.

    All fits are made at once, in the time of a sort.  What `predict` returns is that of the definition, correctly
    rounded, at every score: also at ties, between scores, and outside of them.

    Parameters
    ----------
    query_weight : float, default 1.0
        The weight with which the query is among the rows.

    Notes
    -----
    Scores must come from a model that did not see the calibration rows.  `CrossVennAbers` is for scores of
    cross-validation.

    Memory: a fit takes about 35 bytes per row, more with weights.  What it keeps has a step of 24 bytes wherever a
    probability changes: some thousand for a million noisy rows, but about one per row where labels are all equal or
    perfectly separated.

    Thread-safety: any number of threads may ask one predictor.  A `fit` replaces all at once: who asks meanwhile gets
    answers of the old fit or of the new one.

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
    >>> p0
    array([0.        , 0.33333333, 0.5       ])
    >>> p1
    array([0.66666667, 0.66666667, 1.        ])
    >>> venn.merge([0.2, 0.38, 0.9])
    array([0.4       , 0.5       , 0.66666667])
    """

    __slots__ = ("_fitted", "_query_weight")
    _WHAT = venn_document.WHAT

    _fitted: tuple[Pairs, int] | None

    def __init__(self, query_weight: float = 1.0) -> None:
        self._query_weight = venn_checks.query_weight(query_weight)
        self._fitted = None

    @property
    def query_weight(self) -> float:
        """The weight of a query among the rows."""
        return self._query_weight

    @property
    def n_samples(self) -> int:
        """How many rows of weight > 0 were fitted."""
        return self._known()[1]

    @property
    def n_steps(self) -> int:
        """How many steps p0 and p1 have together."""
        return len(self.left)

    @property
    def left(self) -> _Floats:
        """The least score on each step; the first is -inf."""
        return self._known()[0].left

    @property
    def p0(self) -> _Floats:
        """The lower probability on each step."""
        return self._known()[0].values[:, 0]

    @property
    def p1(self) -> _Floats:
        """The upper probability on each step."""
        return self._known()[0].values[:, 1]

    def fit(self, scores: ColumnLike, labels: ColumnLike, sample_weight: ColumnLike | None = None) -> VennAbers:
        """Take in the calibration rows; what was fitted before is forgotten.

        Parameters
        ----------
        scores : array_like of shape (n,)
            Real or infinite.  Only their order counts.
        labels : array_like of shape (n,)
            Each 0 or 1, as integers, bools or floats.
        sample_weight : array_like of shape (n,), optional
            Weights >= 0; a row of weight 0 is absent, one of weight k counts as k rows.

        Returns
        -------
        VennAbers
            The predictor itself.

        Examples
        --------
        >>> import staircase_fast as sf
        >>> sf.VennAbers().fit([1, 2, 2], [0, 1, 1], sample_weight=[2, 1, 1]).predict([1, 2])
        ProbabilityPair(p0=array([0.        , 0.66666667]), p1=array([0.33333333, 1.        ]))
        """
        return self._take(venn_checks.labelled(scores, labels, sample_weight))

    def _take(self, rows: Rows) -> VennAbers:
        """Fit clean rows."""
        self._fitted = Pairs(_fit(rows, self._query_weight)), len(rows.scores)
        return self

    @overload
    def predict(self, scores: ScalarLike, *, n_threads: int | None = None) -> ProbabilityPair[np.float64]: ...
    @overload
    def predict(self, scores: ColumnLike, *, n_threads: int | None = None) -> ProbabilityPair[_Floats]: ...
    def predict(self, scores: ColumnLike, *, n_threads: int | None = None) -> ProbabilityPair[Any]:
        """Both probabilities of label 1 at each score.

        Parameters
        ----------
        scores : array_like of any shape
        n_threads : int, optional
            How many threads may be used, for this call alone; see `set_num_threads`.

        Returns
        -------
        ProbabilityPair
            A tuple (p0, p1) of arrays in the shape of `scores`, or of floats for a single score.

        Examples
        --------
        >>> import staircase_fast as sf
        >>> venn = sf.VennAbers().fit([1, 2, 3], [0, 1, 1])
        >>> p0, p1 = venn.predict([0, 2.5])
        >>> p0, p1
        (array([0. , 0.5]), array([0.5, 1. ]))
        """
        pairs, _ = self._known()
        queries, shape = read_queries(scores)
        found = pairs.look_up(queries, pairs.values, threads.num_threads(n_threads, len(queries)))
        return ProbabilityPair(*(one.reshape(shape)[()] for one in found))

    @overload
    def merge(self, scores: ScalarLike, *, rule: Rule = "log", n_threads: int | None = None) -> np.float64: ...
    @overload
    def merge(self, scores: ColumnLike, *, rule: Rule = "log", n_threads: int | None = None) -> _Floats: ...
    def merge(self, scores: ColumnLike, *, rule: Rule = "log", n_threads: int | None = None) -> np.float64 | _Floats:
        """One probability for each score: that whose loss exceeds the loss of the calibrated one by least, at worst.

        Parameters
        ----------
        scores : array_like of any shape
        rule : {"log", "brier"}, default "log"
            The loss.  "log": p1 / (1 - p0 + p1).  "brier", the squared error: p1 + p0**2 / 2 - p1**2 / 2.
        n_threads : int, optional
            How many threads may be used, for this call alone; see `set_num_threads`.

        Returns
        -------
        ndarray of float64, or float64 for a single score
            The shape of `scores`.  It lies between p0 and p1 and never decreases as scores increase.

        Examples
        --------
        >>> import staircase_fast as sf
        >>> venn = sf.VennAbers().fit([1, 2, 3], [0, 0, 1])
        >>> venn.merge([1, 2, 3]).round(3)
        array([0.25 , 0.333, 0.667])
        >>> venn.merge([1, 2, 3], rule="brier").round(3)
        array([0.278, 0.375, 0.625])
        """
        check_choice("rule", rule, RULES)
        pairs, _ = self._known()
        queries, shape = read_queries(scores)
        n_threads = threads.num_threads(n_threads, len(queries))
        if len(queries) < len(pairs.left):
            found = merged(*pairs.look_up(queries, pairs.values, n_threads), rule)
        else:
            found = pairs.look_up_one(queries, merged(pairs.values[:, 0], pairs.values[:, 1], rule), n_threads)
        one: np.float64 | _Floats = found.reshape(shape)[()]
        return one

    def to_json(self) -> str:
        """The fitted predictor as JSON text; every float comes back from it as it was.

        Returns
        -------
        str

        Examples
        --------
        >>> import staircase_fast as sf
        >>> sf.VennAbers().fit([1, 2, 3], [0, 1, 1]).to_json()
        '{"format": "staircase_fast venn-abers", ...'
        """
        return venn_document.to_json(self)

    @classmethod
    def from_json(cls, text: str) -> VennAbers:
        """The predictor that `to_json` wrote.  Everything is checked; nothing is executed.

        Parameters
        ----------
        text : str
            What `to_json` wrote.

        Returns
        -------
        VennAbers

        Examples
        --------
        >>> import staircase_fast as sf
        >>> venn = sf.VennAbers().fit([1, 2, 3], [0, 1, 1])
        >>> sf.VennAbers.from_json(venn.to_json()) == venn
        True
        """
        return cls._of(*venn_document.parts_from(text))

    @classmethod
    def _of(cls, query_weight: float, n_samples: int, left: ColumnLike, p0: ColumnLike, p1: ColumnLike) -> VennAbers:
        """A fitted predictor of these parts."""
        made = cls(query_weight)
        made._fitted = Pairs(venn_checks.pair_steps(left, p0, p1)), venn_checks.row_count(n_samples)
        return made

    def _parts(self) -> tuple[Any, ...]:
        pairs, n_samples = self._known()  # at once: a fit may replace them at any time
        return self._query_weight, n_samples, pairs.left, pairs.values[:, 0], pairs.values[:, 1]

    def _known(self) -> tuple[Pairs, int]:
        if self._fitted is None:
            venn_checks.not_fitted("VennAbers")
        return self._fitted

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, VennAbers):
            return NotImplemented
        if self._fitted is None or other._fitted is None:
            return self._fitted is other._fitted and self._query_weight == other._query_weight
        return all(np.array_equal(a, b) for a, b in zip(self._parts(), other._parts(), strict=True))

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[Any, ...]:
        if self._fitted is None:
            return VennAbers, (self._query_weight,)
        return VennAbers._of, self._parts()

    def __repr__(self) -> str:
        if self._fitted is None:
            return "<VennAbers: not fitted>"
        _, n_samples, left, _, _ = self._parts()
        rows = "1 row" if n_samples == 1 else f"{n_samples} rows"
        return f"<VennAbers: {rows}, {'1 step' if len(left) == 1 else f'{len(left)} steps'}>"


def merged(p0: _Floats, p1: _Floats, rule: Rule) -> _Floats:
    """One probability for two: each loss, less that of p0 for label 0 and of p1 for label 1, is the same for both.

    Written so that it rises with p0 and p1 whatever is rounded: each operation does.
    """
    if rule == "log":
        with np.errstate(divide="ignore", over="ignore"):  # of a p1 that is as small as can be, or was rounded to 0
            odds = np.minimum((1 - p0) / p1, _MOST)
        p = 1 / (1 + odds)
    else:
        # p1 - p1**2 / 2; the first way loses no digits of what is small, the second one does not fall near 1
        p = np.where(p1 < 0.5, p1 - p1 * p1 / 2, (1 - (1 - p1) * (1 - p1)) / 2) + p0 * p0 / 2
    return np.clip(p, p0, p1)  # rounding may leave these


def _fit(rows: Rows, query_weight: float) -> PairSteps:
    """The steps of clean rows."""
    query = Extent(-1, query_weight, query_weight, query_weight, query_weight.is_integer())
    n = len(rows.scores)
    scale = scale_of(LABELS, joined_extent(rows.weights_extent, query), n + 1)
    x, y, w = in_score_order(rows)[:3]
    # room for the worst case: what is never touched costs nothing
    left, values = np.empty(2 * n + 1), np.empty((2 * n + 1, 2))
    work = np.empty(_venn.work_size(n, scale.w_words), dtype=np.uint64)
    n_steps = _venn.fit(x, y, w, query_weight, scale, work, left, values)
    return PairSteps(left[:n_steps].copy(), values[:n_steps].copy())
