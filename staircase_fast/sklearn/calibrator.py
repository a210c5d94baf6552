"""A classifier, or raw scores, calibrated."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin
from sklearn.frozen import FrozenEstimator
from sklearn.utils import check_consistent_length, get_tags, indexable
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from staircase_fast.calibration.classes import Options, probabilities
from staircase_fast.calibration.priors import PSEUDO_COUNTS
from staircase_fast.errors import arguments_named
from staircase_fast.inputs.options import check_choice, check_interpolation
from staircase_fast.inputs.rows import read_weights
from staircase_fast.sklearn import checks
from staircase_fast.sklearn.crossfit import CalibratedPair, Labelled, fit_one_by_one, scores_of
from staircase_fast.typing import ColumnLike, Direction, Interpolation, public_class


@public_class("staircase_fast.sklearn")
class StaircaseCalibrator(MetaEstimatorMixin, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Calibrated probabilities: of a classifier, or of raw scores with no classifier around.

    Of two classes, the score of the second is mapped to its probability by the staircase of least log loss (which is
    also that of least squared error).  Of more, each class has a staircase against all others; their values are divided
    by their sum, and where all of them are 0, each class gets the same probability.

    Parameters
    ----------
    estimator : classifier, optional
        Its `decision_function`, or else its `predict_proba`, is calibrated.  None: X is the scores.  A
        `sklearn.frozen.FrozenEstimator` is not fitted again: all rows are used to calibrate it.
    cv : int, splitter or iterable, optional
        How rows are split, as scikit-learn understands it; the default is 5 stratified folds.  Each row is scored by a
        classifier that has not seen it.  Not used without an estimator, nor with a frozen one (unless `ensemble=True`).
    ensemble : bool or "auto", default "auto"
        True: each split gives a classifier with staircases of its own, and probabilities are the mean over all of them.
        False: one classifier is fitted to all rows, and its staircases to the scores of all splits.  "auto": True,
        unless the estimator is frozen.
    prior : {"none", "laplace", "jeffreys"}, default "none"
        With "none", a step of rows of one class has probability 0 or 1, and the log loss of a row that disagrees is
        infinite.  "laplace" adds to each step a row of each class, "jeffreys" half a row (in units of weight).  Where
        values are not strictly monotone any more, the steps are pooled, with one prior for all of them, until they are.
    interpolation : {"linear", "step", "centered"}, default "linear"
        How probabilities lie between the fitted scores; see `Staircase.predict`.  "step" jumps: a score that an
        estimator rounds differently the next time may get another probability.  "centered" keeps the ranking: scores
        that differ get probabilities that differ, inside the fitted range.
    increasing : bool or "auto", default True
        Whether higher scores mean that a class is more probable.
    n_jobs : int, optional
        How many splits are fitted at once, as scikit-learn understands it.
    n_threads : int, optional
        How many threads the staircases may use; see `staircase_fast.set_num_threads`.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        In ascending order.
    calibrated_classifiers_ : list of CalibratedPair
        `estimator` and `staircases` of each split, or one pair.
    n_features_in_, feature_names_in_
        Those of the estimator, if it has them.

    Notes
    -----
    Scores are never sorted as a whole, so that a fit for each split costs no more than one for all.

    Thread-safety: a fitted calibrator may be used by any number of threads at once, if its estimator may.

    Examples
    --------
    Raw scores:

    >>> from staircase_fast.sklearn import StaircaseCalibrator
    >>> scores, happened = [-1.2, 0.3, 0.1, 2.0, 2.5], ["no", "no", "yes", "yes", "yes"]
    >>> model = StaircaseCalibrator(prior="laplace").fit(scores, happened)
    >>> model.classes_.tolist(), model.predict_proba([-2.0, 0.2, 3.0]).round(2).tolist()
    (['no', 'yes'], [[0.67, 0.33], [0.5, 0.5], [0.25, 0.75]])

    A classifier, cross-fitted:

    >>> from sklearn.datasets import make_classification
    >>> from sklearn.naive_bayes import GaussianNB
    >>> X, y = make_classification(200, random_state=0)
    >>> model = StaircaseCalibrator(GaussianNB(), cv=3).fit(X, y)
    >>> len(model.calibrated_classifiers_), model.predict_proba(X[:2]).shape
    (3, (2, 2))
    """

    def __init__(
        self,
        estimator: Any = None,
        *,
        cv: Any = None,
        ensemble: bool | Literal["auto"] = "auto",
        prior: Literal["none", "laplace", "jeffreys"] = "none",
        interpolation: Interpolation = "linear",
        increasing: Direction = True,
        n_jobs: int | None = None,
        n_threads: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.cv = cv
        self.ensemble = ensemble
        self.prior = prior
        self.interpolation = interpolation
        self.increasing = increasing
        self.n_jobs = n_jobs
        self.n_threads = n_threads

    def fit(
        self, X: Any, y: ColumnLike, sample_weight: ColumnLike | None = None, **fit_params: Any
    ) -> StaircaseCalibrator:
        """Fit the classifier, if it is not frozen, and the staircases of its scores.

        Parameters
        ----------
        X : array_like
            What the estimator takes.  Without one, scores, which may be infinite: of two classes of shape (n_samples,)
            or (n_samples, 1), or with a column for each class, of which the second is used; of more classes
            (n_samples, n_classes).
        y : array_like of shape (n_samples,)
            The class of each row; there must be two at least.
        sample_weight : array_like of shape (n_samples,), optional
            Weights >= 0, of the calibration and, if it takes them, of the estimator.
        **fit_params : dict
            For `estimator.fit`.

        Returns
        -------
        StaircaseCalibrator
            The calibrator itself.

        Examples
        --------
        >>> from staircase_fast.sklearn import StaircaseCalibrator
        >>> StaircaseCalibrator().fit([-1.2, 0.3, 0.1, 2.0], [0, 0, 1, 1], sample_weight=[1, 2, 1, 1]).classes_
        array([0, 1])
        """
        options = self._options()
        frozen = isinstance(self.estimator, FrozenEstimator)
        ensemble = checks.ensemble(self.ensemble, auto=not frozen)
        y, sample_weight = checks.readable(y=y, sample_weight=sample_weight)
        classes, codes = checks.labels(y)
        if self.estimator is None:
            (X,) = checks.readable(X=X)
        check_consistent_length(X, codes, sample_weight)
        weights = None if sample_weight is None else read_weights("sample_weight", sample_weight, "y", codes)
        checks.some_weight(weights)
        if self.estimator is None:
            checks.nothing_to_pass(fit_params)
            scores = checks.score_table(self, X, len(classes))
            rows = Labelled(None, None, codes, classes, weights)
            pairs = [CalibratedPair(None, rows.staircases(scores, slice(None), options))]
            checks.feature_names(self, X, reset=True)
            if any(pair.estimator is not None for pair in vars(self).get("calibrated_classifiers_", [])):
                self.__dict__.pop("n_features_in_", None)
        else:
            X, y = indexable(X, y)
            for_fit, for_split = self._routed(sample_weight, fit_params)
            pairs = fit_one_by_one(
                self.estimator, Labelled(X, y, codes, classes, weights), options,
                cv=self.cv, ensemble=ensemble, n_jobs=self.n_jobs, fit_params=for_fit, split_params=for_split,
            )  # fmt: skip
            for name in ("n_features_in_", "feature_names_in_"):
                self.__dict__.pop(name, None)
                if hasattr(pairs[0].estimator, name):
                    setattr(self, name, getattr(pairs[0].estimator, name))
        self.classes_, self.calibrated_classifiers_ = classes, pairs
        return self

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """The probability of each class.

        Parameters
        ----------
        X : array_like
            What was fitted: rows of the estimator, or scores.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Columns are in the order of `classes_`.

        Examples
        --------
        >>> from staircase_fast.sklearn import StaircaseCalibrator
        >>> StaircaseCalibrator().fit([-1.2, 0.3, 0.1, 2.0], [0, 0, 1, 1]).predict_proba([0.2, 3.0])
        array([[0.5, 0.5],
               [0. , 1. ]])
        """
        check_is_fitted(self)
        options, found = self._options(), []
        for estimator, staircases in self.calibrated_classifiers_:
            if estimator is None:
                (X,) = checks.readable(X=X)
                scores = checks.score_table(self, X, len(self.classes_))
                checks.feature_names(self, X, reset=False)
            else:
                scores = scores_of(estimator, X, self.classes_)
            with arguments_named(scores="X"):
                found.append(probabilities(staircases, scores, options))
        return found[0] if len(found) == 1 else np.mean(found, axis=0)

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable class; of equally probable ones, the first.

        Parameters
        ----------
        X : array_like
            As for `predict_proba`.

        Returns
        -------
        ndarray of shape (n_samples,)

        Examples
        --------
        >>> from staircase_fast.sklearn import StaircaseCalibrator
        >>> StaircaseCalibrator().fit([-1.2, 0.3, 0.1, 2.0], [0, 0, 1, 1]).predict([0.2, 3.0])
        array([0, 1])
        """
        chosen = np.argmax(self.predict_proba(X), axis=1)
        found: NDArray[Any] = self.classes_[chosen]
        return found

    def _options(self) -> Options:
        prior = check_choice("prior", self.prior, tuple(PSEUDO_COUNTS))
        interpolation = check_interpolation(self.interpolation)
        return Options(self.increasing, PSEUDO_COUNTS[prior], interpolation, self.n_threads)

    def _routed(self, sample_weight: Any, fit_params: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """What the estimator's `fit` and the splitter's `split` are to be passed."""
        if get_config()["enable_metadata_routing"]:
            routed = process_routing(self, "fit", sample_weight=sample_weight, **fit_params)
            return routed.estimator.fit, routed.splitter.split
        passed = dict(fit_params)
        if sample_weight is not None:
            if has_fit_parameter(self.estimator, "sample_weight"):
                passed["sample_weight"] = sample_weight
            else:
                checks.weights_unused(self.estimator)
        return passed, {}

    def get_metadata_routing(self) -> Any:
        """Who is passed what, as scikit-learn's meta-estimators tell it."""
        router = MetadataRouter(owner=self).add_self_request(self)
        if self.estimator is None:
            return router
        fits = MethodMapping().add(caller="fit", callee="fit")
        splits = MethodMapping().add(caller="fit", callee="split")
        return router.add(estimator=self.estimator, method_mapping=fits).add(splitter=self.cv, method_mapping=splits)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if self.estimator is None:
            tags.input_tags.one_d_array = True
            tags.input_tags.two_d_array = False
        else:
            tags.input_tags.sparse = get_tags(self.estimator).input_tags.sparse
        return tags
