"""StaircaseCalibrator: calibrated probabilities of a classifier or of scores."""

from __future__ import annotations

import warnings
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin
from sklearn.frozen import FrozenEstimator
from sklearn.utils import check_consistent_length, column_or_1d, get_tags, indexable
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from staircase_fast.calibration.priors import PSEUDO_COUNTS
from staircase_fast.errors import InvalidInputError, InvalidTypeError, arguments_named
from staircase_fast.inputs.columns import Column
from staircase_fast.inputs.options import check_choice, check_interpolation
from staircase_fast.inputs.rows import read_weights
from staircase_fast.sklearn import crossfit
from staircase_fast.sklearn.columns import as_arrays, as_floats, check_feature_names
from staircase_fast.sklearn.crossfit import CalibratedPair, LabelledRows, Options
from staircase_fast.typing import ColumnLike, Direction, Interpolation, public_class


@public_class("staircase_fast.sklearn")
class StaircaseCalibrator(MetaEstimatorMixin, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Calibrated probabilities of a classifier, or of scores without a classifier.

    For two classes, the score of the second class is mapped to its probability by the staircase with the least log
    loss, which also has the least squared error.  For more classes, each class has a staircase against all others.
    Their values are divided by their sum; if all of them are 0, all classes get the same probability.

    Parameters
    ----------
    estimator : classifier, optional
        Its `decision_function`, or else its `predict_proba`, is calibrated.  None: X contains the scores.  A
        `sklearn.frozen.FrozenEstimator` is not refitted, and all rows are used to calibrate it.
    cv : int, splitter or iterable, optional
        Cross-validation as in scikit-learn; the default is 5 stratified folds.  Each row is scored by a classifier that
        was trained on other rows.  Ignored without an estimator, and for a frozen one unless `ensemble=True`.
    ensemble : bool or "auto", default "auto"
        True: each split gives a classifier with its own staircases, and their probabilities are averaged.  False: one
        classifier is fitted to all rows, and its staircases to the scores of all splits.  "auto": True unless the
        estimator is frozen.
    prior : {"none", "laplace", "jeffreys"}, default "none"
        With "none", a step with rows of only one class has probability 0 or 1, and the log loss of a row of another
        class is infinite.  "laplace" adds one row of each class to each step, "jeffreys" half a row (in units of
        weight).  Steps whose values are then not strictly monotone are pooled, with one prior per pooled step.
    interpolation : {"linear", "step", "centered"}, default "linear"
        Interpolation between fitted scores; see `Staircase.predict`.  With "step", a small change of a score can change
        its probability.  "centered" keeps the ranking: different scores get different probabilities inside the fitted
        range.
    increasing : bool or "auto", default True
        Whether higher scores mean higher probabilities.
    n_jobs : int, optional
        The number of splits fitted in parallel, as in scikit-learn.
    n_threads : int, optional
        Number of threads for the staircases.  Defaults to `staircase_fast.get_num_threads()`.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes in ascending order.
    calibrated_classifiers_ : list of CalibratedPair
        `estimator` and `staircases` of each split, or one pair.
    n_features_in_, feature_names_in_
        Those of the estimator, if it has them.

    Notes
    -----
    Thread-safety: any number of threads may use a fitted calibrator at once, if its estimator allows it.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from staircase_fast.sklearn import StaircaseCalibrator
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
        """Fit the classifier, unless it is frozen, and the staircases of its scores.

        Parameters
        ----------
        X : array_like
            Input of the estimator.  Without an estimator: scores, possibly infinite.  For two classes their shape is
            (n_samples,), (n_samples, 1) or (n_samples, 2), where the second column is used; for more classes it is
            (n_samples, n_classes).
        y : array_like of shape (n_samples,)
            The class of each row.  There must be at least two classes.
        sample_weight : array_like of shape (n_samples,), optional
            Weights >= 0, for the calibration and for the estimator if it accepts them.
        **fit_params : dict
            Passed to `estimator.fit`.

        Returns
        -------
        StaircaseCalibrator
            The calibrator itself.

        Examples
        --------
        >>> from staircase_fast.sklearn import StaircaseCalibrator
        >>> StaircaseCalibrator(prior="laplace").fit([-1.2, 0.3, 0.1, 2.0], ["no", "no", "yes", "yes"]).classes_
        array(['no', 'yes'], dtype='<U3')
        """
        options = self._options()
        frozen = isinstance(self.estimator, FrozenEstimator)
        ensemble = not frozen if isinstance(self.ensemble, str) and self.ensemble == "auto" else self.ensemble
        if not isinstance(ensemble, (bool, np.bool_)):
            raise InvalidInputError("ensemble", "must be True, False or 'auto'", value=ensemble)
        y, sample_weight = as_arrays(y=y, sample_weight=sample_weight)
        classes, codes = _encode(y)
        if self.estimator is None:
            (X,) = as_arrays(X=X)
        check_consistent_length(X, codes, sample_weight)
        weights = None if sample_weight is None else read_weights("sample_weight", sample_weight, "y", codes)
        X, y = indexable(X, y)
        rows = LabelledRows(X, y, codes, classes, weights)
        rows.check_weights(slice(None))
        if self.estimator is None:
            for name in fit_params:
                raise InvalidTypeError(name, "must not be passed without an `estimator`")
            staircases = rows.staircases(self._scores(X, len(classes)), slice(None), options)
            pairs = [CalibratedPair(None, staircases)]
            check_feature_names(self, X, reset=True)
            if any(pair.estimator is not None for pair in vars(self).get("calibrated_classifiers_", [])):
                self.__dict__.pop("n_features_in_", None)
        else:
            pairs = crossfit.fit_calibrated_pairs(
                self.estimator, rows, options, cv=self.cv, ensemble=bool(ensemble), n_jobs=self.n_jobs,
                routed=self._routed(sample_weight, fit_params),
            )  # fmt: skip
            for name in ("n_features_in_", "feature_names_in_"):
                self.__dict__.pop(name, None)
                if hasattr(pairs[0].estimator, name):
                    setattr(self, name, getattr(pairs[0].estimator, name))
        self.classes_, self.calibrated_classifiers_ = classes, pairs
        return self

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
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
        >>> from staircase_fast.sklearn import StaircaseCalibrator
        >>> StaircaseCalibrator().fit([-1.2, 0.3, 0.1, 2.0], [0, 0, 1, 1]).predict_proba([0.2, 3.0])
        array([[0.5, 0.5],
               [0. , 1. ]])
        """
        check_is_fitted(self)
        options, found = self._options(), []
        for estimator, staircases in self.calibrated_classifiers_:
            if estimator is None:
                (X,) = as_arrays(X=X)
                scores = self._scores(X, len(self.classes_))
                check_feature_names(self, X, reset=False)
            else:
                scores = crossfit.scores_of(estimator, X, self.classes_)
            with arguments_named(scores="X"):
                found.append(crossfit.probabilities(staircases, scores, options))
        return found[0] if len(found) == 1 else np.mean(found, axis=0)

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict the most probable class; the first one, if several are equally probable.

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
        chosen = np.argmax(self.predict_proba(X), axis=1)  # raises NotFittedError if there are no classes yet
        found: NDArray[Any] = self.classes_[chosen]
        return found

    def _options(self) -> Options:
        prior = check_choice("prior", self.prior, tuple(PSEUDO_COUNTS))
        interpolation = check_interpolation(self.interpolation)
        return Options(self.increasing, PSEUDO_COUNTS[prior], interpolation, self.n_threads)

    def _scores(self, X: Any, n_classes: int) -> Column:
        # scores may be infinite, as log-odds are; NaN is refused when they are fitted or looked up
        return crossfit.class_scores("X", as_floats(self, X, finite=False), n_classes)

    def _routed(self, sample_weight: Any, fit_params: dict[str, Any]) -> crossfit.Routed:
        """The parameters for the estimator's `fit` and for the splitter's `split`."""
        if get_config()["enable_metadata_routing"]:
            routed = process_routing(self, "fit", sample_weight=sample_weight, **fit_params)
            return routed.estimator.fit, routed.splitter.split
        if sample_weight is None:
            return fit_params, {}
        if has_fit_parameter(self.estimator, "sample_weight"):
            return fit_params | {"sample_weight": sample_weight}, {}
        name = type(self.estimator).__name__
        message = f"{name} does not accept `sample_weight`: weights are used only for the calibration."
        warnings.warn(message, UserWarning, stacklevel=3)
        return fit_params, {}

    def get_metadata_routing(self) -> Any:
        """Return the metadata routing of this meta-estimator; see scikit-learn's user guide."""
        router = MetadataRouter(owner=self).add_self_request(self)
        if self.estimator is None:
            return router
        fits, splits = (MethodMapping().add(caller="fit", callee=method) for method in ("fit", "split"))
        return router.add(estimator=self.estimator, method_mapping=fits).add(splitter=self.cv, method_mapping=splits)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if self.estimator is None:
            tags.input_tags.one_d_array = True
            tags.input_tags.two_d_array = False
        else:
            tags.input_tags.sparse = get_tags(self.estimator).input_tags.sparse
        return tags


def _encode(y: Any) -> tuple[Column, NDArray[np.intp]]:
    """The classes in ascending order, and the position of each row's class among them."""
    column = column_or_1d(y, warn=True)
    if not len(column):
        raise InvalidInputError("y", "must have at least one row", found="got none")
    if column.dtype.kind in "biu":  # the usual case, without a sort
        low, high = column.min(), column.max()
        second = column == high
        if low != high and np.all(second | (column == low)):
            return np.array([low, high]), second.astype(np.intp)
    try:
        check_classification_targets(y)
        classes, codes = np.unique(column, return_inverse=True)
    except TypeError as error:
        raise InvalidTypeError("y", "must have classes that can be sorted", found=str(error)) from None
    if len(classes) < 2:
        found = f"got 1 class, {classes.tolist()[0]!r}"
        raise InvalidInputError("y", "must have at least 2 classes", found=found)
    return classes, codes.reshape(-1)
