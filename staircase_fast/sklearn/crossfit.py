"""A classifier fitted and calibrated on different rows: each row is scored by one that has not seen it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import check_cv
from sklearn.utils import _safe_indexing
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import _check_method_params

from staircase_fast.calibration.classes import Options, fit_classes
from staircase_fast.errors import arguments_named
from staircase_fast.inputs.columns import Column
from staircase_fast.sklearn import checks
from staircase_fast.staircase.result import Staircase
from staircase_fast.typing import public_class


@public_class("staircase_fast.sklearn")
class CalibratedPair(NamedTuple):
    """A fitted classifier and the staircases of its scores.

    Attributes
    ----------
    estimator : classifier or None
        None where scores were calibrated without a classifier.
    staircases : tuple of Staircase
        That of the second of two classes, or one for each of more.

    Examples
    --------
    >>> from staircase_fast.sklearn import StaircaseCalibrator
    >>> model = StaircaseCalibrator().fit([-1.2, 0.3, 0.1, 2.0], [0, 0, 1, 1])
    >>> model.calibrated_classifiers_[0].staircases[0].values
    array([0. , 0.5, 1. ])
    """

    estimator: Any
    staircases: tuple[Staircase, ...]


class Labelled(NamedTuple):
    """Rows of any kind, and what is known of them."""

    X: Any
    y: Any
    codes: NDArray[np.intp]  # the place of each row's class
    classes: Column
    weights: Column | None

    def staircases(self, scores: Column, chosen: Any, options: Options) -> tuple[Staircase, ...]:
        """Those of the scores of some of the rows."""
        with arguments_named(scores="X", targets="y"):
            return fit_classes(scores, self.codes[chosen], len(self.classes), self.weights_of(chosen), options)

    def weights_of(self, chosen: Any) -> Column | None:
        """Those of some of the rows."""
        return None if self.weights is None else self.weights[chosen]


def scores_of(estimator: Any, X: Any, classes: Column) -> Column:
    """What a fitted classifier says of rows."""
    method = checks.response(estimator)
    checks.same_classes(estimator, classes)
    return checks.table_of_classes(method, np.asarray(getattr(estimator, method)(X)), len(classes))


def fit_one_by_one(
    estimator: Any,
    rows: Labelled,
    options: Options,
    *,
    cv: Any,
    ensemble: bool,
    n_jobs: int | None,
    fit_params: dict[str, Any],
    split_params: dict[str, Any],
) -> list[CalibratedPair]:
    """A pair of each split, or one that was fitted to the scores of all."""
    checks.response(estimator)  # before it takes time to fit
    frozen = isinstance(estimator, FrozenEstimator)
    if frozen and not ensemble:
        scores = scores_of(estimator, rows.X, rows.classes)
        return [CalibratedPair(estimator, rows.staircases(scores, slice(None), options))]
    everyone = np.arange(len(rows.codes))
    given = check_cv(cv, rows.y, classifier=True).split(rows.X, rows.y, **split_params)
    splits = [(train, everyone[test]) for train, test in given]  # a part may be given as a mask
    checks.some_splits(splits)
    for number, (train, test) in enumerate(splits):
        if not frozen:
            checks.every_class(rows.codes[train], rows.classes, "training", number)
        if ensemble:
            checks.every_class(rows.codes[test], rows.classes, "test", number)
            checks.some_weight(rows.weights_of(test), f" in the test part of split {number}")
    tested = np.concatenate([test for _, test in splits])
    checks.some_weight(rows.weights_of(tested), " in the test part of a split")
    fitted = Parallel(n_jobs=n_jobs)(
        delayed(_fit_and_score)(clone(estimator), rows, train, test, fit_params) for train, test in splits
    )
    if ensemble:
        return [
            CalibratedPair(one, rows.staircases(scores, test, options))
            for (one, scores), (_, test) in zip(fitted, splits, strict=True)
        ]
    scores = np.concatenate([scores for _, scores in fitted])
    staircases = rows.staircases(scores, tested, options)
    return [CalibratedPair(clone(estimator).fit(rows.X, rows.y, **fit_params), staircases)]


def _fit_and_score(
    estimator: Any, rows: Labelled, train: Any, test: Any, fit_params: dict[str, Any]
) -> tuple[Any, Column]:
    """A classifier that was fitted to some rows, and what it says of others."""
    own = _check_method_params(rows.X, fit_params, indices=train)
    estimator.fit(_safe_indexing(rows.X, train), _safe_indexing(rows.y, train), **own)
    return estimator, scores_of(estimator, _safe_indexing(rows.X, test), rows.classes)
