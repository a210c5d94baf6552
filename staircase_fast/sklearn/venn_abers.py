"""VennAbersCalibrator: probabilities with intervals, of a classifier or of scores."""

from __future__ import annotations

import copy
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from staircase_fast.calibration.cross_venn_abers import merged_folds
from staircase_fast.calibration.venn_abers import Rule, VennAbers, merged
from staircase_fast.calibration.venn_abers_classes import Method, VennAbersMulticlass, combined
from staircase_fast.errors import InvalidInputError, arguments_named
from staircase_fast.inputs.columns import Column
from staircase_fast.inputs.options import check_choice
from staircase_fast.sklearn.base import ScoreCalibrator
from staircase_fast.sklearn.crossfit import LabelledRows, score_method
from staircase_fast.typing import ColumnLike, public_class

Floats = NDArray[np.float64]


@public_class("staircase_fast.sklearn")
class VennAbersCalibrator(ScoreCalibrator):
    """Venn-Abers calibration of a classifier, or of scores without a classifier: probabilities and their intervals.

    With a frozen classifier, or without one, this is the inductive predictor: if a query is exchangeable with the rows
    of `fit`, which did not train the classifier, one end of the interval of each class is a calibrated probability.
    A classifier that is not frozen is cross-fitted: each split calibrates the scores of its own rows, and the results
    of all splits are merged (cross Venn-Abers).  This uses all rows but has no such promise.

    Parameters
    ----------
    estimator : classifier, optional
        As for `StaircaseCalibrator`.
    cv : int, splitter or iterable, optional
        As for `StaircaseCalibrator`.  Ignored without an estimator, and for a frozen one.
    method : {"one_vs_rest", "one_vs_one", "coupled"}, default "one_vs_rest"
        How more than two classes are divided into questions of two; see `staircase_fast.VennAbersMulticlass`.
    scale : {"auto", "probability", "margin"}, default "auto"
        How scores of two classes are compared; see there.  "auto": "probability" if the scores are from
        `predict_proba`, else "margin".
    rule : {"log", "brier"}, default "log"
        How the ends of an interval are merged into one probability; see `staircase_fast.VennAbers.merge`.
    query_weight : float, default 1.0
        The weight of the query among the rows.
    n_jobs : int, optional
        The number of splits fitted in parallel, as in scikit-learn.
    n_threads : int, optional
        Number of threads for predictions.  Defaults to `staircase_fast.get_num_threads()`.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes in ascending order.
    calibrated_classifiers_ : list of tuple
        The classifier, or None, and the `VennAbers` or `VennAbersMulticlass` of each split.
    n_features_in_, feature_names_in_
        Those of the estimator, if it has them.

    Notes
    -----
    Thread-safety: any number of threads may use a fitted calibrator at once, if its estimator allows it.

    References
    ----------
    V. Vovk, I. Petej and V. Fedorova, "Large-scale probabilistic predictors with and without guarantees of validity",
    2015.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from staircase_fast.sklearn import VennAbersCalibrator
    >>> X, y = make_classification(200, random_state=0)
    >>> model = VennAbersCalibrator(GaussianNB(), cv=3).fit(X, y)
    >>> model.predict_proba(X[:2]).shape, model.predict_interval(X[:2]).shape
    ((2, 2), (2, 2, 2))
    """

    def __init__(
        self,
        estimator: Any = None,
        *,
        cv: Any = None,
        method: Method = "one_vs_rest",
        scale: Literal["auto", "probability", "margin"] = "auto",
        rule: Rule = "log",
        query_weight: float = 1.0,
        n_jobs: int | None = None,
        n_threads: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.cv = cv
        self.method = method
        self.scale = scale
        self.rule = rule
        self.query_weight = query_weight
        self.n_jobs = n_jobs
        self.n_threads = n_threads

    def fit(
        self, X: Any, y: ColumnLike, sample_weight: ColumnLike | None = None, **fit_params: Any
    ) -> VennAbersCalibrator:
        """Fit the classifier, unless it is frozen, and the predictors of its scores.

        Parameters
        ----------
        X : array_like
            As for `StaircaseCalibrator.fit`.
        y : array_like of shape (n_samples,)
            The class of each row.  There must be at least two classes.
        sample_weight : array_like of shape (n_samples,), optional
            Weights >= 0, for the calibration and for the estimator if it accepts them.
        **fit_params : dict
            Passed to `estimator.fit`.

        Returns
        -------
        VennAbersCalibrator
            The calibrator itself.

        Examples
        --------
        >>> from staircase_fast.sklearn import VennAbersCalibrator
        >>> VennAbersCalibrator().fit([-1.2, 0.3, 0.1, 2.0], ["no", "no", "yes", "yes"]).classes_
        array(['no', 'yes'], dtype='<U3')
        """
        check_choice("rule", self.rule, ("log", "brier"))
        scale = check_choice("scale", self.scale, ("auto", "probability", "margin"))
        if scale == "auto":
            is_probability = self.estimator is not None and score_method(self.estimator) == "predict_proba"
            scale = "probability" if is_probability else "margin"

        venn = VennAbersMulticlass(self.method, scale, self.query_weight)  # type: ignore[arg-type]

        def calibrate(rows: LabelledRows, scores: Column, chosen: Any) -> VennAbers | VennAbersMulticlass:
            own = VennAbers(self.query_weight) if len(rows.classes) == 2 else copy.copy(venn)
            with arguments_named(scores="X", labels="y"):
                return own.fit(scores, rows.codes[chosen], sample_weight=rows.weights_of(chosen))

        pairs = self._fit_pairs(X, y, sample_weight, fit_params, ensemble="auto", calibrate=calibrate)
        self.calibrated_classifiers_ = pairs
        return self

    def predict_proba(self, X: Any) -> Floats:
        """Predict the probability of each class.

        Parameters
        ----------
        X : array_like
            As for `fit`.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Columns are in the order of `classes_`.

        Examples
        --------
        >>> from staircase_fast.sklearn import VennAbersCalibrator
        >>> VennAbersCalibrator().fit([-1.2, 0.3, 0.1, 2.0], [0, 0, 1, 1]).predict_proba([0.2, 3.0]).round(3)
        array([[0.5  , 0.5  ],
               [0.333, 0.667]])
        """
        return self._probabilities(*self._answers(X))

    def predict_interval(self, X: Any) -> Floats:
        """Predict the interval of the probability of each class.

        For a frozen classifier or none, these are the two probabilities of the Venn-Abers predictor.  For a
        cross-fitted classifier, they are means over splits.  More than two classes need `method="one_vs_rest"`.

        Parameters
        ----------
        X : array_like
            As for `fit`.

        Returns
        -------
        ndarray of shape (n_samples, n_classes, 2)
            The lower and the upper end for each class.  For two classes, the probability that is predicted lies within
            them.

        Examples
        --------
        >>> from staircase_fast.sklearn import VennAbersCalibrator
        >>> VennAbersCalibrator().fit([-1.2, 0.3, 0.1, 2.0], [0, 0, 1, 1]).predict_interval([0.2]).round(3)
        array([[[0.333, 0.667],
                [0.333, 0.667]]])
        """
        p0, p1 = self._answers(X)
        method = self._method()
        if method != "one_vs_rest":
            requirement = "must be 'one_vs_rest' for intervals of more than two classes"
            raise InvalidInputError("method", requirement, value=method)
        found = np.stack([p0.mean(axis=-1), p1.mean(axis=-1)], axis=-1)
        if len(self.classes_) == 2:
            single = self._probabilities(p0, p1)  # of several splits, it may lie beyond their means
            found = np.stack([np.minimum(found[..., 0], single), np.maximum(found[..., 1], single)], axis=-1)
        return found

    def _method(self) -> str:
        venn = self.calibrated_classifiers_[0][1]
        return venn.method if isinstance(venn, VennAbersMulticlass) else "one_vs_rest"

    def _answers(self, X: Any) -> tuple[Floats, Floats]:
        """p0 and p1 of each row, question and split; two classes are two questions."""
        found = []
        for scores, venn in self._scored(X):
            with arguments_named(scores="X"):
                p0, p1 = venn.predict(scores, n_threads=self.n_threads)
            if p0.ndim == 1:
                p0, p1 = np.column_stack([1.0 - p1, p0]), np.column_stack([1.0 - p0, p1])
            found.append((p0, p1))
        p0, p1 = (np.stack(column, axis=-1) for column in zip(*found, strict=True))
        return p0, p1

    def _probabilities(self, p0: Floats, p1: Floats) -> Floats:
        answers = merged(p0[..., 0], p1[..., 0], self.rule) if p0.shape[-1] == 1 else merged_folds(p0, p1, self.rule)
        if len(self.classes_) == 2:
            return np.column_stack([1.0 - answers[:, 1], answers[:, 1]])
        return combined(answers, self._method(), len(self.classes_))
