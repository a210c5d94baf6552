"""StaircaseCalibrator: calibrated probabilities of a classifier or of scores."""

from __future__ import annotations

import os
from functools import reduce
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from staircase_fast.calibration.priors import PSEUDO_COUNTS
from staircase_fast.errors import arguments_named
from staircase_fast.inputs.columns import Column
from staircase_fast.inputs.options import check_choice, check_interpolation
from staircase_fast.sklearn import calibrator_exports, crossfit
from staircase_fast.sklearn.base import ScoreCalibrator
from staircase_fast.sklearn.calibrator_exports import Calibration
from staircase_fast.sklearn.crossfit import CalibratedPair, LabelledRows, Options
from staircase_fast.staircase.result import Staircase
from staircase_fast.typing import ColumnLike, Direction, Interpolation, public_class


@public_class("staircase_fast.sklearn")
class StaircaseCalibrator(ScoreCalibrator):
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
    prior : {"none", "laplace", "jeffreys"} or None, default "none"
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
        prior: Literal["none", "laplace", "jeffreys"] | None = "none",
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
            (n_samples,), (n_samples, 1), or (n_samples, 2) if rows are the probabilities of the two classes; for more
            classes it is (n_samples, n_classes).
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

        def calibrate(rows: LabelledRows, scores: Column, chosen: Any) -> tuple[Staircase, ...]:
            return rows.staircases(scores, chosen, options)

        pairs = self._fit_pairs(X, y, sample_weight, fit_params, ensemble=self.ensemble, calibrate=calibrate)
        self.calibrated_classifiers_ = [CalibratedPair(*pair) for pair in pairs]
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
        options, found = self._options(), []
        for scores, staircases in self._scored(X):
            with arguments_named(scores="X"):
                found.append(crossfit.probabilities(staircases, scores, options))
        return found[0] if len(found) == 1 else reduce(np.add, found) / len(found)

    def to_json(self) -> str:
        """Return the fitted calibration as JSON text, without loss of precision and without the classifiers.

        Returns
        -------
        str
            An object with the classes, the parameters, and the staircases of each entry of `calibrated_classifiers_`.

        Examples
        --------
        >>> from staircase_fast.sklearn import StaircaseCalibrator
        >>> StaircaseCalibrator().fit([-1.2, 0.3, 0.1, 2.0], [0, 0, 1, 1]).to_json()
        '{"format": "staircase_fast calibrator", "version": 1, "classes": [0, 1], ...'
        """
        return calibrator_exports.to_json(self._calibration())

    @classmethod
    def from_json(cls, text: str, estimators: Any = None) -> StaircaseCalibrator:
        """Return the fitted calibrator of a JSON text.  Everything is validated; nothing is executed.

        Parameters
        ----------
        text : str
            A text from `to_json`.
        estimators : list of fitted classifiers, optional
            Those of `calibrated_classifiers_`, in the same order, unless the calibrator was fitted to scores.

        Returns
        -------
        StaircaseCalibrator

        Examples
        --------
        >>> from staircase_fast.sklearn import StaircaseCalibrator
        >>> model = StaircaseCalibrator().fit([-1.2, 0.3, 0.1, 2.0], [0, 0, 1, 1])
        >>> StaircaseCalibrator.from_json(model.to_json()).predict_proba([0.2])
        array([[0.5, 0.5]])
        """
        calibration = calibrator_exports.from_json(text)
        classifiers = calibrator_exports.check_estimators(calibration, estimators)
        model = cls(classifiers[0], **calibration.parameters)
        model._options()  # checks the parameters
        model.classes_ = calibration.classes
        pairs = zip(classifiers, calibration.staircases, strict=True)
        model.calibrated_classifiers_ = [CalibratedPair(*pair) for pair in pairs]
        return model

    def to_onnx(
        self,
        path: str | os.PathLike[str],
        *,
        dtype: Literal["float64", "float32"] = "float64",
        input_name: str = "scores",
        output_name: str = "probabilities",
    ) -> None:
        """Write an ONNX model from scores to the probabilities of `predict_proba`, equal bit for bit.

        Needs the extra ``onnx``.  The classifiers are not part of the model.

        Parameters
        ----------
        path : str or path
        dtype : {"float64", "float32"}, default "float64"
            Type of the input and the output.  The model computes in float64 and rounds to float32 once.
        input_name : str, default "scores"
            The scores of the classifier: those of the second of two classes, of shape [N], or of all classes, of shape
            [N, n_classes].  Several classifiers have an input each: "scores_0", "scores_1" and so on, in the order of
            `calibrated_classifiers_`.
        output_name : str, default "probabilities"
            Its shape is [N, n_classes].

        Notes
        -----
        NaN becomes NaN.  With lines, the sign of a zero may differ from `predict_proba`.

        Examples
        --------
        >>> import os, tempfile
        >>> import onnxruntime
        >>> from staircase_fast.sklearn import StaircaseCalibrator
        >>> path = os.path.join(tempfile.mkdtemp(), "calibrator.onnx")
        >>> StaircaseCalibrator().fit([-1.2, 0.3, 0.1, 2.0], [0, 0, 1, 1]).to_onnx(path)
        >>> onnxruntime.InferenceSession(path).run(None, {"scores": [0.2, 3.0]})
        [array([[0.5, 0.5],
               [0. , 1. ]])]
        """
        calibrator_exports.write_onnx(self._calibration(), path, dtype, input_name, output_name)

    def _calibration(self) -> Calibration:
        check_is_fitted(self)
        staircases = [fitted for _, fitted in self.calibrated_classifiers_]
        has_estimators = self.calibrated_classifiers_[0].estimator is not None
        return Calibration(self.classes_, self.get_params(deep=False), staircases, has_estimators)

    def _options(self) -> Options:
        prior = "none" if self.prior is None else check_choice("prior", self.prior, tuple(PSEUDO_COUNTS))
        interpolation = check_interpolation(self.interpolation)
        return Options(self.increasing, PSEUDO_COUNTS[prior], interpolation, self.n_threads)
