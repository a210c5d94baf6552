"""Reliability diagrams in the style of scikit-learn's displays.  Plots need matplotlib."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from staircase_fast.calibration.reliability import Reliability, reliability
from staircase_fast.errors import InvalidInputError, InvalidTypeError, arguments_named, refuse_missing
from staircase_fast.inputs import hints
from staircase_fast.inputs.options import refuse_choice
from staircase_fast.typing import Axes, ColumnLike, public_class

_PROBABILITIES = ("brier", "log", "log_loss")  # scores whose targets are classes


@public_class("staircase_fast")
class ReliabilityDisplay:
    """A reliability diagram, with the conventions of scikit-learn's displays.

    Use `from_estimator` or `from_predictions`.  Call them again with `ax=display.ax_` to compare several models on one
    axes: each gets a colour of its own.  The legend says which band is drawn and what it promises.

    Parameters
    ----------
    reliability : Reliability
        The result of `reliability`.
    name : str, optional
        The name of the model in the legend.

    Attributes
    ----------
    reliability : Reliability
        As above.
    name : str or None
        As above.
    ax_ : matplotlib Axes
        The axes, once it is drawn.
    figure_ : matplotlib Figure
        Their figure.

    Notes
    -----
    Thread-safety: matplotlib must be used by one thread at a time.

    Examples
    --------
    >>> import staircase_fast as sf
    >>> happened, forecasts = [0, 0, 0, 1, 1, 1], [0.4, 0.3, 0.2, 0.1, 0.5, 0.9]
    >>> display = sf.ReliabilityDisplay.from_predictions(happened, forecasts, name="model A")
    >>> display = sf.ReliabilityDisplay.from_predictions(happened, [0.5] * 6, name="model B", ax=display.ax_)
    >>> [text.get_text() for text in display.ax_.get_legend().get_texts()]
    ['calibrated', 'model A', 'model B']
    """

    ax_: Axes
    figure_: Any

    def __init__(self, reliability: Reliability, *, name: str | None = None) -> None:
        if not isinstance(reliability, Reliability):
            raise InvalidTypeError("reliability", "must be a result of `reliability`", value=reliability)
        self.reliability, self.name = reliability, name

    def plot(
        self,
        ax: Axes | None = None,
        *,
        name: str | None = None,
        ref_line: bool = True,
        histogram: bool = False,
        numbers: bool = False,
        legend: bool = True,
        color: str | None = None,
    ) -> Self:
        """Draw the diagram.  Needs matplotlib, the extra [plot].

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; by default in a new figure.
        name : str, optional
            The name in the legend; by default that of the display.
        ref_line : bool, default True
            Whether to draw the diagonal.
        histogram, numbers, legend : bool
            Whether to draw the histogram of forecasts (False), the mean score with its parts (False), and the legend
            (True).
        color : str, optional
            The colour of the curve; by default, the next one.

        Returns
        -------
        ReliabilityDisplay
            The display itself.

        Examples
        --------
        >>> import staircase_fast as sf
        >>> found = sf.reliability([0.1, 0.5, 0.9], [0, 0, 1])
        >>> sf.ReliabilityDisplay(found).plot(histogram=True).ax_.get_xlabel()
        'forecast probability'
        """
        from staircase_fast.calibration.plots import draw_legend, draw_reliability

        shown = self.name if name is None else name
        self.ax_ = draw_reliability(
            self.reliability, ax, histogram=histogram, numbers=numbers, color=color, name=shown, ref_line=ref_line
        )
        self.figure_ = self.ax_.figure
        if legend:
            draw_legend(self.ax_, numbers=numbers)
        return self

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ColumnLike,
        *,
        sample_weight: ColumnLike | None = None,
        pos_label: Any = None,
        name: str | None = None,
        ax: Axes | None = None,
        plot_options: dict[str, Any] | None = None,
        **options: Any,
    ) -> ReliabilityDisplay:
        """Assess and draw the probabilities of a fitted classifier, or the predictions of a regressor.

        Parameters
        ----------
        estimator : object
            With `predict_proba` and `classes_` for two classes; or, if `score` is not a score of probabilities, with
            `predict`.
        X : array_like
            Its input.
        y : array_like of shape (n,)
            Classes, or targets.
        sample_weight, pos_label
            As for `from_predictions`.
        name : str, optional
            The name in the legend; by default that of the class of the estimator.
        ax, plot_options, **options
            As for `from_predictions`.

        Returns
        -------
        ReliabilityDisplay

        Examples
        --------
        >>> import staircase_fast as sf
        >>> from sklearn.datasets import make_classification
        >>> from sklearn.naive_bayes import GaussianNB
        >>> X, y = make_classification(200, random_state=0)
        >>> sf.ReliabilityDisplay.from_estimator(GaussianNB().fit(X[:100], y[:100]), X[100:], y[100:]).name
        'GaussianNB'
        """
        if options.get("score", "brier") not in _PROBABILITIES:
            forecasts = estimator.predict(X)
        elif not hasattr(estimator, "predict_proba"):
            raise InvalidTypeError("estimator", "must have predict_proba", value=estimator)
        elif not hasattr(estimator, "classes_"):
            raise InvalidInputError("estimator", "must be fitted and have classes_", value=estimator)
        else:
            classes = np.asarray(estimator.classes_)
            if len(classes) != 2:
                found = f"got {len(classes)}"
                raise InvalidInputError("estimator", "must have been fitted to two classes", found=found)
            pos_label = classes[1] if pos_label is None else pos_label
            if pos_label not in classes.tolist():
                refuse_choice("pos_label", pos_label, classes.tolist())
            forecasts = np.asarray(estimator.predict_proba(X))[:, classes.tolist().index(pos_label)]
        return cls.from_predictions(
            y, forecasts, sample_weight=sample_weight, pos_label=pos_label, ax=ax, plot_options=plot_options,
            name=type(estimator).__name__ if name is None else name, **options,
        )  # fmt: skip

    @classmethod
    def from_predictions(
        cls,
        y_true: ColumnLike,
        y_prob: ColumnLike,
        *,
        sample_weight: ColumnLike | None = None,
        pos_label: Any = None,
        name: str | None = None,
        ax: Axes | None = None,
        plot_options: dict[str, Any] | None = None,
        **options: Any,
    ) -> ReliabilityDisplay:
        """Assess and draw forecasts.

        Parameters
        ----------
        y_true : array_like of shape (n,)
            Classes, or targets if `score` is not a score of probabilities.
        y_prob : array_like of shape (n,)
            Probabilities of `pos_label`, or forecasts.
        sample_weight : array_like of shape (n,), optional
            Weights >= 0.
        pos_label : object, optional
            The class that is forecast.  By default 1, if all classes are 0 and 1, or -1 and 1.
        name : str, optional
            The name in the legend.
        ax : matplotlib Axes, optional
            Where to draw; by default in a new figure.
        plot_options : dict, optional
            Arguments of `plot`.
        **options : dict
            Arguments of `staircase_fast.reliability`, as `score`, `bands`, `level` and `seed`.

        Returns
        -------
        ReliabilityDisplay

        Examples
        --------
        >>> import staircase_fast as sf
        >>> shown = sf.ReliabilityDisplay.from_predictions(["a", "b", "b"], [0.2, 0.4, 0.9], pos_label="b")
        >>> shown.reliability.n_samples
        3
        """
        targets: Any = y_true
        if options.get("score", "brier") in _PROBABILITIES:
            targets = _labels(y_true, pos_label)
        with arguments_named(scores="y_prob", targets="y_true"):
            found = reliability(y_prob, targets, sample_weight=sample_weight, **options)
        return cls(found, name=name).plot(ax, **(plot_options or {}))


def _labels(y_true: Any, pos_label: Any) -> NDArray[Any]:
    """Which rows have the forecast class; or the targets themselves, if they are numbers from 0 to 1."""
    column = np.asarray(y_true)
    if column.ndim != 1:
        hint = hints.for_shape("y_true", y_true, column.shape)
        raise InvalidInputError("y_true", "must be one-dimensional", found=f"got shape {column.shape}", hint=hint)
    if column.dtype.kind in "Of":
        missing = np.array([_is_missing(value) for value in column.ravel().tolist()], dtype=np.bool_)
        if missing.any():
            refuse_missing("y_true", "a missing value", int(np.argmax(missing)))
    if pos_label is not None:
        positive: NDArray[Any] = np.equal(column, pos_label)
        if not positive.any() and len(classes := sorted(set(column.ravel().tolist()), key=str)) > 1:
            refuse_choice("pos_label", pos_label, classes)
        return positive
    if column.dtype.kind not in "biuf":
        got = f"got {sorted(set(column.tolist()), key=str)[:4]}"
        raise InvalidInputError("pos_label", "must be given unless the classes are 0 and 1, or -1 and 1", found=got)
    return column == 1 if np.isin(column, (-1, 1)).all() and (column == -1).any() else column


def _is_missing(value: object) -> bool:
    """Whether a value is None, NaN, NaT or pandas.NA, which is neither equal to itself nor not."""
    try:
        return value is None or bool(value != value)  # noqa: PLR0124
    except TypeError:
        return True
