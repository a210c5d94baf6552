"""The class `Staircase`, the result of a fit."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from typing import Any, Literal, Unpack, overload

import numpy as np
from numpy.typing import NDArray

from staircase_fast import threads
from staircase_fast.inputs.missing import keeps_nan
from staircase_fast.inputs.options import check_choice, check_direction, check_interpolation
from staircase_fast.inputs.rows import check_no_nan, refuse_nan
from staircase_fast.losses import Loss, loss_of
from staircase_fast.staircase import _lookup, as_json
from staircase_fast.staircase.as_json import ARRAYS
from staircase_fast.staircase.steps import Steps, centered_ends, check_output, check_steps, read_queries, refuse_outside
from staircase_fast.storage import documents
from staircase_fast.typing import (
    Axes,
    ColumnLike,
    Dialect,
    Interpolation,
    Missing,
    OutOfBounds,
    PredictOptions,
    ScalarLike,
    public_class,
)  # fmt: skip

_put = object.__setattr__  # attributes are read-only for everybody else
_FIELDS = (*ARRAYS[:5], "loss", "increasing", *ARRAYS[5:])


class _Writable:
    """The attributes of a Staircase.  Setting them here and then changing the class is much faster than `_put`."""

    __slots__ = (*_FIELDS, "_evaluator", "_centered")


@public_class("staircase_fast")
class Staircase(_Writable, documents.Saved):
    """A monotone step function, with `n_steps` steps in ascending order of score.

    Made by `staircase_fast.fit`, `load` and `from_json`.  It is immutable; its arrays are read-only.

    Parameters
    ----------
    left, right : array_like of shape (n_steps,)
        First and last observed score on each step.
    values : array_like of shape (n_steps,)
        The value of each step, strictly increasing or strictly decreasing.
    weights : array_like of shape (n_steps,)
        Total weight of the rows on each step.
    counts : array_like of shape (n_steps,)
        Number of rows of weight > 0 on each step.
    loss : str or Loss, default "squared"
    increasing : bool, default True
    lower, upper : array_like of shape (n_steps,), optional
        Bounds on the numerical error, not confidence intervals; default: the values themselves.

    Notes
    -----
    Thread-safety: any number of threads can use a staircase at the same time.

    Examples
    --------
    >>> import staircase_fast as sf
    >>> sf.fit([1, 2, 3, 4], [1, 3, 2, 4])
    <Staircase: 3 steps, 1.0 to 4.0, over scores 1.0 to 4.0; 4 rows, squared_error>
    """

    __slots__ = ()
    _WHAT = "a staircase"

    _evaluator: _lookup.Lookup | None
    _centered: Staircase  # unset until it is needed

    left: NDArray[np.float64]
    """First observed score on each step."""
    right: NDArray[np.float64]
    """Last observed score on each step."""
    values: NDArray[np.float64]
    """Value of each step; strictly monotone."""
    weights: NDArray[np.float64]
    """Total weight on each step."""
    counts: NDArray[np.int64]
    """Number of rows on each step."""
    loss: Loss
    """The loss that was minimised."""
    increasing: bool
    """Whether values increase with the score."""
    lower: NDArray[np.float64]
    """A lower bound on the exact optimum; the value itself if the loss has a closed form."""
    upper: NDArray[np.float64]
    """An upper bound on the exact optimum; the value itself if the loss has a closed form."""

    def __init__(
        self,
        left: ColumnLike,
        right: ColumnLike,
        values: ColumnLike,
        weights: ColumnLike,
        counts: ColumnLike,
        loss: str | Loss = "squared",
        increasing: bool = True,
        lower: ColumnLike | None = None,
        upper: ColumnLike | None = None,
    ) -> None:
        rising, the_loss = bool(check_direction(increasing, auto=False)), loss_of(loss)
        columns = left, right, values, weights, counts, lower, upper
        self._set_steps(check_steps(columns, rising=rising, loss=the_loss), the_loss, rising)

    @classmethod
    def _of_steps(cls, steps: Steps, loss: Loss, increasing: bool) -> Staircase:
        """A staircase of valid arrays that nobody else uses."""
        stairs = cls.__new__(cls)
        stairs._set_steps(steps, loss, increasing)
        return stairs

    @staticmethod
    def _of_table(table: NDArray[np.float64], loss: Loss, increasing: bool) -> Staircase:
        """The same from one array, whose rows are the columns, maybe without bounds; counts are int64 bits."""
        stairs: Any = _Writable()
        table.setflags(write=False)
        stairs.left, stairs.right, stairs.values, stairs.weights, counts, *bounds = table
        stairs.counts = counts.view(np.int64)
        stairs.lower, stairs.upper = bounds or (stairs.values, stairs.values)
        stairs.loss, stairs.increasing, stairs._evaluator = loss, increasing, None
        stairs.__class__ = Staircase
        return stairs

    def _set_steps(self, steps: Steps, loss: Loss, increasing: bool) -> None:
        columns = [steps.values if column is None else column for column in steps]
        for column in columns:
            column.setflags(write=False)
        self._set(*columns[:5], loss, increasing, *columns[5:], None)

    def _set(self, *attributes: Any) -> None:
        for name, attribute in zip(_Writable.__slots__, attributes, strict=False):
            _put(self, name, attribute)

    def __setattr__(self, name: str, value: object = None) -> None:
        raise AttributeError(f"a Staircase is immutable; cannot set or delete {name!r}")

    __delattr__ = __setattr__

    @property
    def n_steps(self) -> int:
        """Number of steps."""
        return len(self.values)

    @overload
    def predict(self, scores: ScalarLike, **options: Unpack[PredictOptions]) -> np.float64: ...
    @overload
    def predict(self, scores: ColumnLike, **options: Unpack[PredictOptions]) -> NDArray[np.float64]: ...
    def predict(
        self,
        scores: ColumnLike,
        *,
        interpolation: Interpolation = "step",
        out_of_bounds: OutOfBounds = "clip",
        missing: Missing = "raise",
        out: NDArray[np.float64] | None = None,
        n_threads: int | None = None,
    ) -> np.float64 | NDArray[np.float64]:
        """Evaluate the staircase.

        Parameters
        ----------
        scores : array_like of any shape
            Scores.  A pandas, polars or Arrow table counts as a two-dimensional array.
        interpolation : {"step", "linear", "centered"}, default "step"
            "step": a score gets the value of the last step that starts at or below it.  "linear": between two steps,
            values lie on the straight line from the end of one to the start of the next.  "centered": values lie on
            straight lines through the middles of the steps, the left end of the first and the right end of the last.
            So ranks are preserved, except for rounding, on a single step, and beside infinite scores.
        out_of_bounds : {"clip", "nan", "raise"}, default "clip"
            For scores outside the fitted range: the value of the nearest step, NaN, or an error.
        missing : {"raise", "nan"}, default "raise"
            For scores that are NaN, None, NA or null: an error, or NaN.
        out : ndarray of float64, optional
            Output array; must have the shape of `scores`.
        n_threads : int, optional
            Number of threads for this call.  Defaults to `get_num_threads()`.

        Returns
        -------
        ndarray of float64 with the shape of `scores`, or float64 for a single score

        Examples
        --------
        >>> import staircase_fast as sf
        >>> stairs = sf.fit([1, 2], [10, 20])
        >>> stairs.predict([0, 1, 1.5, 2, 3])
        array([10., 10., 10., 20., 20.])
        >>> stairs.predict([0, 1, 1.5, 2, 3], interpolation="linear", out_of_bounds="nan")
        array([nan, 10., 15., 20., nan])
        >>> sf.fit([1, 2, 3, 4], [0, 1, 0, 1]).predict([1, 2, 3, 4], interpolation="centered").round(3)
        array([0.   , 0.333, 0.667, 1.   ])
        """
        evaluator = self._evaluator or self._new_evaluator()
        if out is None:
            alone = n_threads is not None and threads.num_threads(n_threads, 0) == 1
            limit = sys.maxsize if alone else 2 * threads.ROWS_EACH
            found = evaluator.at(scores, interpolation, out_of_bounds, missing, limit)
            if found is not None:
                return found
        if check_interpolation(interpolation) == "centered":
            return self._through_middles().predict(
                scores, interpolation="linear", out_of_bounds=out_of_bounds, missing=missing, out=out,
                n_threads=n_threads,
            )  # fmt: skip
        outside = check_choice("out_of_bounds", out_of_bounds, ("clip", "nan", "raise"))
        keep_nan = keeps_nan(missing)
        queries, shape = read_queries(scores, keep_nan=keep_nan)
        n_threads = threads.num_threads(n_threads, len(queries))
        result = np.empty(shape) if out is None else check_output(out, shape)
        if outside == "raise":
            refuse_outside(queries, float(self.left[0]), float(self.right[-1]))
        if out is not None:
            if not keep_nan:  # NaN must be reported before anything is written
                check_no_nan("scores", queries, n_threads)
            if not (out.flags.c_contiguous and out.flags.aligned) or np.may_share_memory(queries, out):
                result = np.empty(shape)
        flat, linear = result.reshape(-1), interpolation == "linear"
        evaluator.index_for(len(queries), linear)  # one for all threads

        def evaluate(part: slice) -> int:
            return evaluator.evaluate(queries[part], linear, outside == "nan", flat[part], keep_nan)

        shares = threads.parts(len(queries), n_threads)
        for part, nan in zip(shares, threads.each(evaluate, shares), strict=True):
            refuse_nan("scores", queries, part.start + nan if nan >= 0 else -1)
        if out is not None and result is not out:
            out[...] = result
        return (result if shape else result[()]) if out is None else out

    __call__ = predict

    def _new_evaluator(self) -> _lookup.Lookup:
        """Prepare for `predict`.  Two threads may both do this; results do not depend on it."""
        found = _lookup.Lookup(self.left, self.right, self.values)
        _put(self, "_evaluator", found)
        return found

    def _through_middles(self) -> Staircase:
        """The staircase whose linear interpolation is "centered"; cached, because it has its own index."""
        found = getattr(self, "_centered", None)
        if found is None:
            ends = centered_ends(self.left, self.right, np.array([0, self.n_steps]))
            found = self._of_steps(Steps(*ends, self.values, self.weights, self.counts), self.loss, self.increasing)
            _put(self, "_centered", found)
        return found

    def plot(self, ax: Axes | None = None, *, color: str | None = None, label: str | None = None) -> Axes:
        """Draw the steps.  Needs matplotlib, the extra [plot].

        Lines are thick over the scores of each step.  Bounds on the numerical error are shaded if values are not exact.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw on; default: those of a new figure.
        color, label : str, optional
            Colour and label of the line.

        Returns
        -------
        matplotlib Axes

        Examples
        --------
        >>> import staircase_fast as sf
        >>> ax = sf.fit([1, 2, 3, 4], [1, 3, 2, 4]).plot(label="fitted")
        >>> ax.get_xlabel(), ax.get_legend_handles_labels()[1]
        ('score', ['fitted'])
        """
        from staircase_fast.staircase.plot import draw_staircase

        return draw_staircase(self, ax, color=color, label=label)

    def to_json(self) -> str:
        """Return the staircase as JSON text, without loss of precision.

        Returns
        -------
        str
            An object with the attributes.  The bounds are omitted if the values are exact.

        Examples
        --------
        >>> import staircase_fast as sf
        >>> sf.fit([1, 2], [0, 1]).to_json()
        '{"format": "staircase_fast", "version": 1, ...'
        """
        return json.dumps(as_json.document_of(self), allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> Staircase:
        """Return the staircase of a JSON text.  Everything is validated; nothing is executed.

        Parameters
        ----------
        text : str
            A text from `to_json`.

        Returns
        -------
        Staircase

        Examples
        --------
        >>> import staircase_fast as sf
        >>> stairs = sf.fit([1, 2, 3], [1, 3, 2])
        >>> sf.Staircase.from_json(stairs.to_json()) == stairs
        True
        """
        return cls(**as_json.arguments_of(text, cls._WHAT))

    def to_sql(
        self,
        column: str | Sequence[str],
        *,
        dialect: Dialect = "duckdb",
        interpolation: Interpolation = "step",
        out_of_bounds: Literal["clip", "nan"] = "clip",
    ) -> str:
        """Return an SQL expression for `predict` of a column, equal bit for bit (for lines, see below).

        Parameters
        ----------
        column : str or sequence of str
            The column of scores: its name, or the parts of a qualified name such as ``("t", "score")``.
        dialect : {"duckdb", "postgres", "standard", "sqlite", "spark", "bigquery", "snowflake"}, default "duckdb"
        interpolation : {"step", "linear", "centered"}, default "step"
            As in `predict`.
        out_of_bounds : {"clip", "nan"}, default "clip"
            For scores outside the fitted range: the value of the nearest step, or NULL.

        Returns
        -------
        str
            An expression, for example for a list of columns or a WHERE clause.  NULL and NaN become NULL.

        Notes
        -----
        With lines, the sign of a zero may differ from `predict`, and PostgreSQL fails with "value out of range:
        underflow" if a product rounds to 0 (below about 2e-324), as it does for any such product.

        Examples
        --------
        >>> import staircase_fast as sf
        >>> stairs = sf.fit([0.1, 0.4, 0.35, 0.8], [0, 0, 1, 1])
        >>> print(stairs.to_sql("score"))
        CASE
          WHEN "score" < '0.35'::float8 THEN '0.0'::float8
          WHEN "score" < '0.8'::float8 THEN '0.5'::float8
          WHEN "score" <= 'Infinity'::float8 THEN '1.0'::float8
        END
        """
        from staircase_fast.staircase import as_sql

        return as_sql.expression(self, column, dialect, interpolation, out_of_bounds)

    def to_onnx(
        self,
        path: str | os.PathLike[str],
        *,
        interpolation: Interpolation = "step",
        out_of_bounds: Literal["clip", "nan"] = "clip",
        dtype: Literal["float64", "float32"] = "float64",
        input_name: str = "scores",
        output_name: str = "values",
    ) -> None:
        """Write an ONNX model for `predict` of an input of shape [N], equal bit for bit (for lines, see below).

        Needs the extra ``onnx``.  The file is written atomically.

        Parameters
        ----------
        path : str or path
        interpolation : {"step", "linear", "centered"}, default "step"
            As in `predict`.
        out_of_bounds : {"clip", "nan"}, default "clip"
            For scores outside the fitted range: the value of the nearest step, or NaN.
        dtype : {"float64", "float32"}, default "float64"
            Type of the input and the output.  The model computes in float64 and rounds to float32 once.
        input_name, output_name : str, default "scores" and "values"

        Notes
        -----
        With lines, the sign of a zero may differ from `predict`.  NaN becomes NaN.  Opset 13, IR version 8.  Metadata:
        the loss, the direction, the number of steps and both options ("staircase_fast.loss" and so on).

        Examples
        --------
        >>> import os, tempfile
        >>> import staircase_fast as sf
        >>> path = os.path.join(tempfile.mkdtemp(), "stairs.onnx")
        >>> sf.fit([0.1, 0.4, 0.35, 0.8], [0, 0, 1, 1]).to_onnx(path)
        >>> import onnxruntime
        >>> onnxruntime.InferenceSession(path).run(None, {"scores": [0.2, 0.38, 0.9]})
        [array([0. , 0.5, 1. ])]
        """
        from staircase_fast.staircase import as_onnx

        as_onnx.write(self, path, interpolation, out_of_bounds, dtype, (input_name, output_name))

    def __len__(self) -> int:
        return self.n_steps

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Staircase):
            return NotImplemented
        return all(np.array_equal(getattr(self, name), getattr(other, name)) for name in ARRAYS) and (
            (self.loss, self.increasing) == (other.loss, other.increasing)
        )

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[type[Staircase], tuple[Any, ...]]:
        return Staircase, tuple(getattr(self, name) for name in _FIELDS)

    def __copy__(self, memo: dict[int, object] | None = None) -> Staircase:
        return self

    __deepcopy__ = __copy__

    def __repr__(self) -> str:
        n = int(self.counts.sum())
        steps, rows = "1 step" if self.n_steps == 1 else f"{self.n_steps} steps", "1 row" if n == 1 else f"{n} rows"
        return (
            f"<Staircase: {steps}, {self.values[0]} to {self.values[-1]}, "
            f"over scores {self.left[0]} to {self.right[-1]}; {rows}, {self.loss.name}>"
        )
