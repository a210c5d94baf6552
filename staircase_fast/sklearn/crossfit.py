"""Cross-fitting: each row is scored by a classifier that was trained on other rows, and the scores are calibrated."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import check_cv
from sklearn.utils import _safe_indexing
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import _check_method_params, check_is_fitted

from staircase_fast.calibration.priors import with_prior
from staircase_fast.errors import InvalidInputError, InvalidTypeError, arguments_named
from staircase_fast.fitting import fit
from staircase_fast.groups.fits import fit_columns
from staircase_fast.inputs.columns import Column
from staircase_fast.staircase.result import Staircase
from staircase_fast.typing import Direction, public_class

_ROUNDING = 1e-3  # by which two probabilities may miss a sum of 1, also in half precision
Routed = tuple[dict[str, Any], dict[str, Any]]  # parameters for the estimator's `fit`, and for the splitter's `split`


@public_class("staircase_fast.sklearn")
class CalibratedPair(NamedTuple):
    """A fitted classifier and the staircases of its scores.

    Attributes
    ----------
    estimator : classifier or None
        None if scores were calibrated without a classifier.
    staircases : tuple of Staircase
        One for the second of two classes, or one for each of more classes.

    Examples
    --------
    >>> from staircase_fast.sklearn import StaircaseCalibrator
    >>> model = StaircaseCalibrator().fit([-1.2, 0.3, 0.1, 2.0], [0, 0, 1, 1])
    >>> model.calibrated_classifiers_[0].staircases[0].values
    array([0. , 0.5, 1. ])
    """

    estimator: Any
    staircases: tuple[Staircase, ...]


class Options(NamedTuple):
    """Options of the staircases."""

    increasing: Direction
    pseudo_count: float
    interpolation: str
    n_threads: int | None


class LabelledRows(NamedTuple):
    """Rows with their classes and weights."""

    X: Any
    y: Any
    codes: NDArray[np.intp]  # the position of each row's class in `classes`
    classes: Column
    weights: Column | None

    def weights_of(self, chosen: Any) -> Column | None:
        """The weights of some rows."""
        return None if self.weights is None else self.weights[chosen]

    def staircases(self, scores: Column, chosen: Any, options: Options) -> tuple[Staircase, ...]:
        """Fit the scores of some rows: the second of two classes, or each of more classes against all others."""
        codes, n_classes = self.codes[chosen], len(self.classes)
        arguments: dict[str, Any] = {
            "sample_weight": self.weights_of(chosen), "loss": "log",
            "increasing": options.increasing, "n_threads": options.n_threads,
        }  # fmt: skip
        with arguments_named(scores="X", targets="y"):
            if n_classes == 2:
                found = [fit(scores, codes == 1, **arguments)]
            else:
                found = [*fit_columns(scores, codes[:, np.newaxis] == np.arange(n_classes), **arguments).values()]
        return tuple(with_prior(stairs, options.pseudo_count) for stairs in found)

    def check_classes(self, chosen: Any, part: str, split: int, hint: str = "") -> None:
        """One part of a split must have rows of every class."""
        missing = np.flatnonzero(np.bincount(self.codes[chosen], minlength=len(self.classes)) == 0)
        if len(missing):
            raise InvalidInputError(
                "cv", f"must leave rows of every class in the {part} part of a split",
                found=f"split {split} has none of class {self.classes.tolist()[missing[0]]!r}",
                hint=hint,
            )  # fmt: skip

    def check_weights(self, chosen: Any, part: str = "") -> None:
        """Some of the chosen rows must have a weight > 0."""
        weights = self.weights_of(chosen)
        if weights is not None and not weights.any():
            found = f"all {len(weights)} are zero"
            raise InvalidInputError("sample_weight", f"must have an entry > 0{part}", found=found)


def probabilities(staircases: tuple[Staircase, ...], scores: Column, options: Options) -> NDArray[np.float64]:
    """The probability of each class, one row for each score or row of scores; rows sum to 1."""
    arguments: dict[str, Any] = {"interpolation": options.interpolation, "n_threads": options.n_threads}
    if len(staircases) == 1:
        second = staircases[0].predict(scores, **arguments)
        return np.column_stack((1.0 - second, second))
    columns = [stairs.predict(column, **arguments) for stairs, column in zip(staircases, scores.T, strict=True)]
    found = np.column_stack(columns)
    totals = reduce(np.add, columns)[:, np.newaxis]  # from left to right, as in ONNX
    shares = np.full(found.shape, 1 / len(staircases))  # stays where all probabilities are 0
    np.divide(found, totals, out=shares, where=totals > 0)
    return shares


def fit_pairs(
    estimator: Any,
    rows: LabelledRows,
    calibrate: Callable[[LabelledRows, Column, Any], Any],
    *,
    cv: Any,
    ensemble: bool,
    n_jobs: Any,
    routed: Routed,
) -> list[tuple[Any, Any]]:
    """A classifier and its calibration for each split; or, without `ensemble`, one for the scores of all splits."""
    score_method(estimator)  # an error now, not after the fit
    fit_params, split_params = routed
    frozen = isinstance(estimator, FrozenEstimator)
    if frozen and not ensemble:
        scores = scores_of(estimator, rows.X, rows.classes)
        return [(estimator, calibrate(rows, scores, slice(None)))]
    if isinstance(cv, str) and cv == "prefit":
        hint = "Wrap a fitted classifier in sklearn.frozen.FrozenEstimator."
        raise InvalidInputError("cv", "must be an integer, a splitter or splits", value=cv, hint=hint)
    given = check_cv(cv, rows.y, classifier=True).split(rows.X, rows.y, **split_params)
    splits = [(train, np.arange(len(rows.codes))[test]) for train, test in given]  # a part may be a mask
    if not splits:
        hint = "An iterator yields its splits only once."
        raise InvalidInputError("cv", "must give at least one split", found="got none", hint=hint)
    for number, (train, test) in enumerate(splits):
        if not frozen:
            rows.check_classes(train, "training", number)
        if ensemble:
            rows.check_classes(test, "test", number, "Use StratifiedKFold, or fewer splits.")
            rows.check_weights(test, f" in the test part of split {number}")
    tested = np.concatenate([test for _, test in splits])
    rows.check_weights(tested, " in the test part of a split")
    fitted = Parallel(n_jobs=n_jobs)(
        delayed(_fit_and_score)(clone(estimator), rows, train, test, fit_params) for train, test in splits
    )
    if ensemble:
        return [(one, calibrate(rows, scores, test)) for (one, scores), (_, test) in zip(fitted, splits, strict=True)]
    scores = np.concatenate([scores for _, scores in fitted])
    calibrated = calibrate(rows, scores, tested)
    return [(clone(estimator).fit(rows.X, rows.y, **fit_params), calibrated)]


def _fit_and_score(
    estimator: Any, rows: LabelledRows, train: Any, test: Any, fit_params: dict[str, Any]
) -> tuple[Any, Column]:
    """Fit the classifier to the training part and score the test part."""
    own = _check_method_params(rows.X, fit_params, indices=train)
    estimator.fit(_safe_indexing(rows.X, train), _safe_indexing(rows.y, train), **own)
    return estimator, scores_of(estimator, _safe_indexing(rows.X, test), rows.classes)


def scores_of(estimator: Any, X: Any, classes: Column) -> Column:
    """The scores of rows by a fitted classifier, which must have learned these classes."""
    method = score_method(estimator)
    if not hasattr(estimator, "classes_"):
        check_is_fitted(estimator)
        requirement = "must be a classifier, which has `classes_` once it is fitted"
        raise InvalidTypeError("estimator", requirement, value=estimator)
    known = estimator.classes_
    if not np.array_equal(known, classes):
        requirement = f"must have the classes of `estimator`, {known.tolist()}"
        raise InvalidInputError("y", requirement, value=classes.tolist())
    return class_scores(method, np.asarray(getattr(estimator, method)(X)), len(classes))


def score_method(estimator: Any) -> str:
    """The method whose result is calibrated."""
    for name in ("decision_function", "predict_proba"):
        if hasattr(estimator, name):
            return name
    raise InvalidTypeError("estimator", "must have decision_function or predict_proba", value=estimator)


def class_scores(argument: str, table: Column, n_classes: int) -> Column:
    """The scores of the second of two classes, or one column for each of more classes."""
    if n_classes == 2 and (table.ndim == 1 or (table.ndim == 2 and table.shape[1] in {1, 2})):
        if argument == "X" and table.ndim == 2 and table.shape[1] == 2:
            _check_pairs(table)
        return table if table.ndim == 1 else table[:, -1]
    if n_classes > 2 and table.ndim == 2 and table.shape[1] == n_classes:
        return table
    shapes = "(n,), (n, 1) or (n, 2)" if n_classes == 2 else f"(n, {n_classes})"
    requirement = f"must be scores of shape {shapes} for {n_classes} classes"
    hint = "If these are features, pass a classifier as `estimator`." if argument == "X" else ""
    raise InvalidInputError(argument, requirement, found=f"got shape {table.shape}", hint=hint)


def _check_pairs(table: Column) -> None:
    """Each row must be the probabilities of two classes; two features would have no meaning.  NaN is refused later."""
    first, second = table.T
    with np.errstate(invalid="ignore"):
        is_pair = (np.minimum(first, second) >= -_ROUNDING) & (np.abs(first + second - 1.0) <= _ROUNDING)
    invalid = ~(is_pair | np.isnan(second))
    if invalid.any():
        row = int(np.argmax(invalid))
        raise InvalidInputError(
            "X", "must have two probabilities that sum to 1 in each row, if it has two columns",
            value=table[row].tolist(), index=row,
            hint="Pass one score per row, such as `np.asarray(X)[:, 1]`. If the columns are features, pass a classifier"
            " as `estimator`.",
        )  # fmt: skip
