"""StaircaseRegressor: a drop-in replacement for scikit-learn's IsotonicRegression."""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, RegressorMixin, TransformerMixin
from sklearn.utils import check_array, check_consistent_length, column_or_1d
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.validation import check_is_fitted

from staircase_fast.errors import InvalidInputError, arguments_named
from staircase_fast.fitting import fit
from staircase_fast.inputs.columns import Column
from staircase_fast.inputs.options import check_bounds, check_choice, check_direction, check_interpolation
from staircase_fast.losses import Loss, loss_of
from staircase_fast.sklearn.columns import FLOATS, as_arrays, as_floats, check_feature_names
from staircase_fast.staircase.result import Staircase
from staircase_fast.streams.accumulator import Accumulator
from staircase_fast.typing import Bounds, ColumnLike, Direction, Interpolation, OutOfBounds, public_class

_NAMES = {"scores": "X", "targets": "y", "bounds": "y_min` and `y_max"}  # of arguments, in messages


@public_class("staircase_fast.sklearn")
class StaircaseRegressor(ClassNamePrefixFeaturesOutMixin, RegressorMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Isotonic regression with the interface of `sklearn.isotonic.IsotonicRegression`: exact, fast, any loss.

    Parameters
    ----------
    y_min, y_max : float, optional
        Bounds of the fitted values.
    increasing : bool or "auto", default True
        Whether values increase or decrease with X.  "auto" chooses the direction with the smaller loss.
    out_of_bounds : {"nan", "clip", "raise"}, default "nan"
        For X outside the fitted range: NaN, the nearest value, or an error.
    loss : str or Loss, default "squared"
        A loss of `staircase_fast.losses`, or its name.
    interpolation : {"linear", "step", "centered"}, default "linear"
        Interpolation between fitted X; see `Staircase.predict`.
    n_threads : int, optional
        Number of threads.  Defaults to `staircase_fast.get_num_threads()`.  The result does not depend on it.

    Attributes
    ----------
    staircase_ : Staircase
        The fitted staircase.
    X_min_, X_max_, X_thresholds_, y_thresholds_, increasing_, f_
        As in scikit-learn.  The thresholds are both ends of each step: the points that linear interpolation connects.
    feature_names_in_ : ndarray of shape (1,)
        The name of the column, if X had one.

    Notes
    -----
    It differs from scikit-learn's IsotonicRegression on purpose.  Only equal X are pooled; scikit-learn also pools X
    that differ by less than 1e-15, or 1e-6 in float32.  Sums are exact, also for float32; values are rounded once.
    "auto" compares the losses of both directions; scikit-learn uses Spearman's correlation, which ignores weights.
    Negative weights raise an error; scikit-learn drops such rows.  Integers beyond 2**53 are rounded, as there.

    Thread-safety: any number of threads may use a fitted regressor at once, but not while it is being fitted.

    Examples
    --------
    >>> from staircase_fast.sklearn import StaircaseRegressor
    >>> model = StaircaseRegressor().fit([1, 2, 3, 4], [1, 3, 2, 4])
    >>> model.predict([1, 1.5, 3, 5])
    array([1.  , 1.75, 2.5 ,  nan])
    """

    # the argument of predict and transform is called T, as in scikit-learn, and is not metadata
    __metadata_request__predict: ClassVar[dict[str, Any]] = {"T": UNUSED}
    __metadata_request__transform: ClassVar[dict[str, Any]] = {"T": UNUSED}

    # set by a fit; after `partial_fit`, the staircase is computed when it is first used
    _accumulator: Accumulator | None
    _staircase: Staircase | None
    _dtype: np.dtype[Any]

    def __init__(
        self,
        *,
        y_min: float | None = None,
        y_max: float | None = None,
        increasing: Direction = True,
        out_of_bounds: OutOfBounds = "nan",
        loss: str | Loss = "squared",
        interpolation: Interpolation = "linear",
        n_threads: int | None = None,
    ) -> None:
        self.y_min = y_min
        self.y_max = y_max
        self.increasing = increasing
        self.out_of_bounds = out_of_bounds
        self.loss = loss
        self.interpolation = interpolation
        self.n_threads = n_threads

    def fit(self, X: ColumnLike, y: ColumnLike, sample_weight: ColumnLike | None = None) -> StaircaseRegressor:
        """Fit the rows.  An earlier fit is replaced.

        Parameters
        ----------
        X : array_like of shape (n_samples,) or (n_samples, 1)
            Finite numbers.
        y : array_like of shape (n_samples,)
        sample_weight : array_like of shape (n_samples,), optional
            Weights >= 0; rows with weight 0 are ignored.

        Returns
        -------
        StaircaseRegressor
            The regressor itself.

        Examples
        --------
        >>> from staircase_fast.sklearn import StaircaseRegressor
        >>> StaircaseRegressor(y_max=2.0).fit([1, 2, 3, 4], [1, 3, 2, 4]).staircase_.values
        array([1., 2.])
        """
        bounds = self._check_parameters()
        X, scores, targets, sample_weight = self._read(X, y, sample_weight)
        with arguments_named(**_NAMES):
            stairs = fit(
                scores, targets, sample_weight=sample_weight, loss=self.loss, increasing=self.increasing,
                bounds=bounds, n_threads=self.n_threads,
            )  # fmt: skip
        check_feature_names(self, X, reset=True)
        self._accumulator, self._staircase, self._dtype = None, stairs, scores.dtype
        return self

    def partial_fit(self, X: ColumnLike, y: ColumnLike, sample_weight: ColumnLike | None = None) -> StaircaseRegressor:
        """Add rows to the fit.  The result equals one `fit` of all rows, bit for bit.

        The staircase is computed when it is first used.  See `staircase_fast.Accumulator` for the memory that the rows
        need.  `fit` keeps no rows, so `partial_fit` cannot follow it.  `increasing` must be True or False.

        Parameters
        ----------
        X, y, sample_weight
            As for `fit`.

        Returns
        -------
        StaircaseRegressor
            The regressor itself.

        Examples
        --------
        >>> from staircase_fast.sklearn import StaircaseRegressor
        >>> StaircaseRegressor().partial_fit([1, 3], [1, 2]).partial_fit([2, 4], [3, 4]).y_thresholds_
        array([1. , 2.5, 2.5, 4. ])
        """
        self._check_parameters()
        loss, increasing = loss_of(self.loss), bool(check_direction(self.increasing, auto=False))
        X, scores, targets, sample_weight = self._read(X, y, sample_weight)
        first = not hasattr(self, "_accumulator")
        rows, dtype = (Accumulator(loss, increasing), scores.dtype) if first else (self._accumulator, self._dtype)
        if rows is None:
            hint = "Begin with `partial_fit`, or `clone` the regressor."
            raise InvalidInputError("partial_fit", "must not follow `fit`, which keeps no rows", hint=hint)
        for name, now, before in (("loss", loss, rows.loss), ("increasing", increasing, rows.increasing)):
            if now != before:
                requirement = f"must stay {before!r} from one `partial_fit` to the next"
                raise InvalidInputError(name, requirement, value=now)
        if not first:
            check_feature_names(self, X, reset=False)
        with arguments_named(**_NAMES):
            rows.add(scores, targets, sample_weight)
        if first:
            check_feature_names(self, X, reset=True)
        self._accumulator, self._staircase, self._dtype = rows, None, np.result_type(dtype, scores.dtype)
        return self

    def predict(self, T: ColumnLike) -> NDArray[Any]:
        """Predict the values of new X.

        Parameters
        ----------
        T : array_like of shape (n_samples,) or (n_samples, 1)

        Returns
        -------
        ndarray of shape (n_samples,)
            float32 if X was float32 and no value of the staircase overflows it, else float64.

        Examples
        --------
        >>> from staircase_fast.sklearn import StaircaseRegressor
        >>> StaircaseRegressor().fit([1, 2, 3, 4], [1, 3, 2, 4]).predict([1, 1.5, 2.5])
        array([1.  , 1.75, 2.5 ])
        """
        (T,) = as_arrays(X=T)
        # in the type of X: 0.1 in float64 differs from 0.1 in float32, and might be out of bounds
        queries = self._one_feature(T, (vars(self).get("_dtype", np.float64),))
        stairs = self.staircase_
        check_feature_names(self, T, reset=False)
        try:
            with arguments_named(scores="T"):
                found: NDArray[Any] = self.f_(queries)
        except InvalidInputError as error:
            if error.argument == "T":  # code written for SciPy looks for its wording
                side = "below" if error.value < stairs.left[0] else "above"
                error.hint = f"A value in x_new is {side} the interpolation range."
            raise
        return found.astype(self._type_of_values(queries.dtype), copy=False)

    def transform(self, T: ColumnLike) -> Any:
        """Predict the values of new X, in the container that `set_output` selects.

        Parameters
        ----------
        T : array_like of shape (n_samples,) or (n_samples, 1)

        Returns
        -------
        ndarray of shape (n_samples,), or a table

        Examples
        --------
        >>> from staircase_fast.sklearn import StaircaseRegressor
        >>> StaircaseRegressor().set_output(transform="pandas").fit_transform([1, 2], [1, 3]).columns.tolist()
        ['staircaseregressor0']
        """
        return StaircaseRegressor.predict(self, T)

    @property
    def _n_features_out(self) -> int:
        check_is_fitted(self)
        return 1

    @property
    def staircase_(self) -> Staircase:
        """The fitted staircase."""
        stairs: Staircase | None = vars(self).get("_staircase")
        if stairs is None:
            check_is_fitted(self)  # slower than a small prediction
            with arguments_named(**_NAMES):
                stairs = self._accumulator.staircase(bounds=(self.y_min, self.y_max))  # type: ignore[union-attr]
            self._staircase = stairs
        return stairs

    @property
    def f_(self) -> Any:
        """The fitted function."""
        return partial(
            self.staircase_.predict, interpolation=self.interpolation, out_of_bounds=self.out_of_bounds,
            n_threads=self.n_threads,
        )  # fmt: skip

    @property
    def increasing_(self) -> bool:
        """Whether values increase."""
        return self.staircase_.increasing

    @property
    def X_min_(self) -> Any:  # noqa: N802
        """The least X."""
        return self.X_thresholds_[0]

    @property
    def X_max_(self) -> Any:  # noqa: N802
        """The greatest X."""
        return self.X_thresholds_[-1]

    @property
    def X_thresholds_(self) -> NDArray[Any]:  # noqa: N802
        """Both ends of each step."""
        return self._at_ends(self.staircase_.left, self.staircase_.right).astype(self._dtype)

    @property
    def y_thresholds_(self) -> NDArray[Any]:
        """The values at both ends of each step."""
        return self._at_ends(self.staircase_.values, self.staircase_.values).astype(self._type_of_values(self._dtype))

    def _at_ends(self, left: NDArray[np.float64], right: NDArray[np.float64]) -> NDArray[Any]:
        """Both entries of each step, or one if the step is a single point."""
        is_end = np.column_stack((np.ones(len(left), dtype=bool), self.staircase_.left < self.staircase_.right))
        return np.column_stack((left, right))[is_end]

    def _type_of_values(self, dtype: np.dtype[Any]) -> np.dtype[Any]:
        """The type of X, or float64 if values overflow it."""
        values = self.staircase_.values
        with np.errstate(over="ignore"):
            fits = dtype == values.dtype or np.array_equal(np.isinf(values.astype(dtype)), np.isinf(values))
        return dtype if fits else values.dtype

    def _check_parameters(self) -> Bounds:
        check_interpolation(self.interpolation)
        check_choice("out_of_bounds", self.out_of_bounds, ("nan", "clip", "raise"))
        bounds = self.y_min, self.y_max
        with arguments_named(**_NAMES):
            check_bounds(bounds)
        return bounds

    def _read(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Column, Column, Any]:
        """Rows, with scores and targets as finite columns; scikit-learn's functions check them."""
        X, y, sample_weight = as_arrays(X=X, y=y, sample_weight=sample_weight)
        scores = self._one_feature(X, FLOATS)
        if y is None:  # scikit-learn's wording
            raise InvalidInputError("", f"{type(self).__name__} requires y to be passed, but the target y is None")
        targets = check_array(y, ensure_2d=False, dtype="numeric", input_name="y")
        check_consistent_length(scores, targets, sample_weight)
        return X, scores, column_or_1d(targets, warn=True), sample_weight

    def _one_feature(self, X: Any, dtypes: tuple[Any, ...]) -> Column:
        table = as_floats(self, X, dtypes)
        if not (table.ndim == 1 or (table.ndim == 2 and table.shape[1] == 1)):
            requirement = "Isotonic regression input X should be a 1d array or 2d array with 1 feature"
            raise InvalidInputError("", requirement, found=f"got shape {table.shape}")
        return table.reshape(-1)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_accumulator")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.one_d_array, tags.input_tags.two_d_array = True, False
        return tags
