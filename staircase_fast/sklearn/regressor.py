"""A drop-in for scikit-learn's isotonic regression."""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, RegressorMixin, TransformerMixin
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.validation import check_is_fitted

from staircase_fast.errors import arguments_named
from staircase_fast.fitting import fit
from staircase_fast.inputs.options import check_choice, check_interpolation
from staircase_fast.losses import Loss, loss_of
from staircase_fast.sklearn import checks
from staircase_fast.staircase.result import Staircase
from staircase_fast.streams.accumulator import Accumulator
from staircase_fast.typing import Bounds, ColumnLike, Direction, Interpolation, OutOfBounds, public_class


@public_class("staircase_fast.sklearn")
class StaircaseRegressor(RegressorMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Isotonic regression: `sklearn.isotonic.IsotonicRegression`, exact, fast, and under any loss.

    Parameters
    ----------
    y_min, y_max : float, optional
        Values are held within these.
    increasing : bool or "auto", default True
        Whether values rise or fall with X.  "auto" takes the direction of less loss.
    out_of_bounds : {"nan", "clip", "raise"}, default "nan"
        For X below the least or above the greatest that was fitted: NaN, the nearest value, or an error.
    loss : str or Loss, default "squared"
        A loss of `staircase_fast.losses`, or its name.
    interpolation : {"linear", "step", "centered"}, default "linear"
        How values lie between those that were fitted; see `Staircase.predict`.
    n_threads : int, optional
        How many threads may be used; see `staircase_fast.set_num_threads`.  The result is the same.

    Attributes
    ----------
    staircase_ : Staircase
        The fitted staircase.
    X_min_, X_max_ : float
        The range of X.
    X_thresholds_, y_thresholds_ : ndarray of shape (n_thresholds,)
        Both ends of each step, and their values: the points that lines go through.
    increasing_ : bool
        Whether values rise.
    f_ : callable
        Values of an array of X, of any shape.
    feature_names_in_ : ndarray of shape (1,)
        The name of the column, if X had one.

    Notes
    -----
    It differs from scikit-learn's in these points, on purpose.  Only equal X are one observation; theirs are if they
    differ by less than 1e-15, or 1e-6 in float32.  Sums are exact, in float32 too; values are rounded once.  "auto"
    compares the loss of both directions; theirs asks Spearman's correlation, which knows no weights.  Weights below 0
    are an error; theirs drops such rows.

    X of other types than float64 and float32 becomes float64, as in scikit-learn; integers beyond 2**53 are rounded.

    `partial_fit` takes in rows batch by batch; the result is that of one `fit` of all of them, bit for bit.

    Thread-safety: a fitted regressor may be used by any number of threads at once, but not while it is being fitted.

    Examples
    --------
    >>> from staircase_fast.sklearn import StaircaseRegressor
    >>> model = StaircaseRegressor().fit([1, 2, 3, 4], [1, 3, 2, 4])
    >>> model.predict([1, 1.5, 3, 5])
    array([1.  , 1.75, 2.5 ,  nan])
    >>> model.X_thresholds_, model.y_thresholds_
    (array([1., 2., 3., 4.]), array([1. , 2.5, 2.5, 4. ]))

    Medians, in batches:

    >>> model = StaircaseRegressor(loss="quantile", out_of_bounds="clip")
    >>> model.partial_fit([1, 2, 3], [1, 9, 2]).partial_fit([2, 4], [3, 5]).predict([0, 2, 4])
    array([1., 3., 5.])
    """

    # what predict and transform take is called T, as in scikit-learn, and is no metadata
    __metadata_request__predict: ClassVar[dict[str, Any]] = {"T": UNUSED}
    __metadata_request__transform: ClassVar[dict[str, Any]] = {"T": UNUSED}

    # there once it is fitted; the staircase of rows that were taken in batch by batch is made when it is asked for
    _seen: Accumulator | None
    _stairs: Staircase | None
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
        """Fit the staircase of these rows; what was fitted before is forgotten.

        Parameters
        ----------
        X : array_like of shape (n_samples,) or (n_samples, 1)
            Finite numbers.
        y : array_like of shape (n_samples,)
        sample_weight : array_like of shape (n_samples,), optional
            Weights >= 0; a row of weight 0 is absent.

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
        self._judge_parameters()
        X, y, sample_weight = checks.readable(X=X, y=y, sample_weight=sample_weight)
        scores = checks.one_feature(self, X)
        targets = checks.targets(scores, y, sample_weight)
        with arguments_named(scores="X", targets="y", bounds="y_min` and `y_max"):
            stairs = fit(
                scores, targets, sample_weight=sample_weight, loss=self.loss, increasing=self.increasing,
                bounds=self._bounds(), n_threads=self.n_threads,
            )  # fmt: skip
        checks.feature_names(self, X, reset=True)
        self._seen, self._stairs, self._dtype = None, stairs, scores.dtype
        return self

    def partial_fit(self, X: ColumnLike, y: ColumnLike, sample_weight: ColumnLike | None = None) -> StaircaseRegressor:
        """Take in more rows.

        The staircase of all rows so far is made when it is first asked for.  What is kept of rows, and how much memory
        that takes, says `staircase_fast.Accumulator`.  `fit` keeps none: it cannot be followed by `partial_fit`.
        `increasing` must be True or False.

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
        self._judge_parameters()
        wanted = loss_of(self.loss), checks.one_direction(self.increasing)
        X, y, sample_weight = checks.readable(X=X, y=y, sample_weight=sample_weight)
        scores = checks.one_feature(self, X)
        targets = checks.targets(scores, y, sample_weight)
        first = not hasattr(self, "_seen")
        seen, dtype = (Accumulator(*wanted), scores.dtype) if first else (self._seen, self._dtype)
        if seen is None:
            checks.rows_are_gone()
        checks.same_fit(wanted, (seen.loss, seen.increasing))
        if not first:
            checks.feature_names(self, X, reset=False)
        with arguments_named(scores="X", targets="y"):
            seen.add(scores, targets, sample_weight)
        if first:
            checks.feature_names(self, X, reset=True)
        self._seen, self._stairs, self._dtype = seen, None, np.result_type(dtype, scores.dtype)
        return self

    def predict(self, T: ColumnLike) -> NDArray[Any]:
        """Values of new X.

        Parameters
        ----------
        T : array_like of shape (n_samples,) or (n_samples, 1)

        Returns
        -------
        ndarray of shape (n_samples,)
            In float32 if that was the type of X, and holds all values of the staircase.

        Examples
        --------
        >>> from staircase_fast.sklearn import StaircaseRegressor
        >>> StaircaseRegressor().fit([1, 2, 3, 4], [1, 3, 2, 4]).predict([1, 1.5, 2.5])
        array([1.  , 1.75, 2.5 ])
        """
        return self._values(T)

    def transform(self, T: ColumnLike) -> Any:
        """The same as `predict`, in a container of `set_output`.

        Parameters
        ----------
        T : array_like of shape (n_samples,) or (n_samples, 1)
            As for `predict`.

        Returns
        -------
        ndarray of shape (n_samples,), or a table
            What `set_output` asked for.

        Examples
        --------
        >>> from staircase_fast.sklearn import StaircaseRegressor
        >>> model = StaircaseRegressor().fit([1, 2, 3, 4], [1, 3, 2, 4])
        >>> model.set_output(transform="pandas").transform([1, 1.5])
           staircaseregressor0
        0                 1.00
        1                 1.75
        """
        return self._values(T)

    def _values(self, T: ColumnLike) -> NDArray[Any]:
        (T,) = checks.readable(X=T)
        # in the type of X: the 0.1 of float64 is not that of float32, and would be out of bounds
        queries = checks.one_feature(self, T, (vars(self).get("_dtype", np.float64),))
        stairs = self.staircase_
        checks.feature_names(self, T, reset=False)
        if self.out_of_bounds == "raise":
            checks.within(queries, float(stairs.left[0]), float(stairs.right[-1]))
        found: NDArray[Any] = self.f_(queries)
        return found.astype(self._type_of_values(queries.dtype), copy=False)

    def get_feature_names_out(self, input_features: object = None) -> NDArray[Any]:
        """The name of what `transform` returns.

        Parameters
        ----------
        input_features : object, optional
            Not used; scikit-learn passes it.

        Returns
        -------
        ndarray of shape (1,)

        Examples
        --------
        >>> from staircase_fast.sklearn import StaircaseRegressor
        >>> StaircaseRegressor().fit([1, 2], [1, 2]).get_feature_names_out()
        array(['staircaseregressor0'], dtype=object)
        """
        check_is_fitted(self)
        return np.array([f"{type(self).__name__.lower()}0"], dtype=object)

    @property
    def staircase_(self) -> Staircase:
        """The fitted staircase."""
        stairs: Staircase | None = vars(self).get("_stairs")
        if stairs is None:
            check_is_fitted(self)  # which takes longer than few predictions
            with arguments_named(bounds="y_min` and `y_max"):
                stairs = self._stairs = self._seen.staircase(bounds=self._bounds())  # type: ignore[union-attr]
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
        """Whether values rise."""
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
        """The values at these."""
        return self._at_ends(self.staircase_.values, self.staircase_.values).astype(self._type_of_values(self._dtype))

    def _at_ends(self, left: NDArray[np.float64], right: NDArray[np.float64]) -> NDArray[Any]:
        """Pairs, one of each step that is a single point."""
        kept = np.column_stack((np.ones(len(left), dtype=bool), self.staircase_.left < self.staircase_.right))
        ends: NDArray[Any] = np.column_stack((left, right))[kept]
        return ends

    def _type_of_values(self, dtype: np.dtype[Any]) -> np.dtype[Any]:
        """The type of X, unless values are beyond it."""
        values = self.staircase_.values
        with np.errstate(over="ignore"):
            held = dtype == values.dtype or np.array_equal(np.isinf(values.astype(dtype)), np.isinf(values))
        return dtype if held else values.dtype

    def _judge_parameters(self) -> None:
        check_interpolation(self.interpolation)
        check_choice("out_of_bounds", self.out_of_bounds, ("nan", "clip", "raise"))
        self._bounds()

    def _bounds(self) -> Bounds:
        return checks.value_bounds(self.y_min, self.y_max)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_seen")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.one_d_array = True
        tags.input_tags.two_d_array = False
        return tags
