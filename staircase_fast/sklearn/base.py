"""What the calibrators of classifiers share: input, cross-fitting, and the routing of metadata."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin
from sklearn.frozen import FrozenEstimator
from sklearn.utils import check_consistent_length, column_or_1d, get_tags, indexable
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from staircase_fast.errors import InvalidInputError, InvalidTypeError
from staircase_fast.inputs.columns import Column
from staircase_fast.inputs.rows import read_weights
from staircase_fast.sklearn import crossfit
from staircase_fast.sklearn.columns import as_arrays, as_floats, check_feature_names
from staircase_fast.sklearn.crossfit import LabelledRows

# Calibrates the scores of some rows: the rows, their scores, and which rows these are.
Calibrate = Callable[[LabelledRows, Column, Any], Any]
Pairs = list[tuple[Any, Any]]  # a fitted classifier, or None, and what its scores were calibrated by


class ScoreCalibrator(MetaEstimatorMixin, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Base of calibrators: scores of X, or of a classifier that is cross-fitted."""

    estimator: Any
    cv: Any
    n_jobs: Any
    classes_: NDArray[Any]

    def _fit_pairs(
        self, X: Any, y: Any, sample_weight: Any, fit_params: dict[str, Any], *, ensemble: Any, calibrate: Calibrate
    ) -> Pairs:
        """Fit and calibrate; set `classes_` and the attributes of features."""
        frozen = isinstance(self.estimator, FrozenEstimator)
        ensemble = not frozen if isinstance(ensemble, str) and ensemble == "auto" else ensemble
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
            pairs: Pairs = [(None, calibrate(rows, self._scores(X, len(classes)), slice(None)))]
            check_feature_names(self, X, reset=True)
            if any(pair[0] is not None for pair in vars(self).get("calibrated_classifiers_", [])):
                self.__dict__.pop("n_features_in_", None)
        else:
            pairs = crossfit.fit_pairs(
                self.estimator, rows, calibrate, cv=self.cv, ensemble=bool(ensemble), n_jobs=self.n_jobs,
                routed=self._routed(sample_weight, fit_params),
            )  # fmt: skip
            for name in ("n_features_in_", "feature_names_in_"):
                self.__dict__.pop(name, None)
                if hasattr(pairs[0][0], name):
                    setattr(self, name, getattr(pairs[0][0], name))
        self.classes_ = classes
        return pairs

    def _scored(self, X: Any) -> Iterator[tuple[Column, Any]]:
        """The scores of X from each classifier, with the calibration of that classifier."""
        check_is_fitted(self)
        for estimator, fitted in self.calibrated_classifiers_:
            if estimator is None:
                (X,) = as_arrays(X=X)
                scores = self._scores(X, len(self.classes_))
                check_feature_names(self, X, reset=False)
            else:
                scores = crossfit.scores_of(estimator, X, self.classes_)
            yield scores, fitted

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
        warnings.warn(message, UserWarning, stacklevel=4)
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
