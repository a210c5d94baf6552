"""StaircaseMap, the result of many fits: one staircase per group, all in the same arrays."""

from __future__ import annotations

import bisect
import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Self, Unpack, overload

import numpy as np
from numpy.typing import NDArray

from staircase_fast import threads
from staircase_fast.errors import InvalidInputError, InvalidTypeError, arguments_named, refuse_entries
from staircase_fast.groups import _evaluate, map_fields
from staircase_fast.groups.map_exports import MapExports
from staircase_fast.groups.map_fields import Fields
from staircase_fast.groups.readers import GroupColumn, Key, group_column, read_score_table, single_entry
from staircase_fast.inputs.columns import Column, read_float_column
from staircase_fast.inputs.missing import keeps_nan, read_with_nan
from staircase_fast.inputs.options import check_choice, check_interpolation, did_you_mean
from staircase_fast.inputs.rows import check_same_index, refuse_nan
from staircase_fast.losses import Loss, loss_of
from staircase_fast.staircase.result import Staircase
from staircase_fast.staircase.steps import Steps, centered_ends
from staircase_fast.storage.documents import Saved
from staircase_fast.typing import (
    ColumnLike,
    Interpolation,
    MapPredictOptions,
    Missing,
    OutOfBounds,
    ScalarLike,
    public_class,
)

_put = object.__setattr__  # a StaircaseMap sets its own attributes; nobody else can
_ARRAYS = ("offsets", "left", "right", "step_values", "weights", "counts", "lower", "upper", "increasing")


@public_class("staircase_fast")
class StaircaseMap(MapExports, Saved):
    """Staircases by the keys of their groups.

    Returned by `staircase_fast.fit_groups`, `fit_columns` and `load`.  It is a mapping: `found[key]` is a `Staircase`,
    and keys are in ascending order.  It is immutable: arrays are read-only, and the staircases share them.

    Parameters
    ----------
    keys : iterable of int, str or bool
        All of one kind, strictly increasing.
    offsets : array_like of shape (n_groups + 1,)
        Group g has the steps [offsets[g], offsets[g + 1]).
    left, right, step_values, weights, counts : array_like of shape (n_steps,)
        The columns of all staircases, one after the other; see `Staircase`.  (`values` is a method of every mapping.)
    loss : str or Loss, default "squared"
    increasing : array_like of bool of shape (n_groups,), optional
        Whether the values of each group increase with the score.  Defaults to True for all.
    lower, upper : array_like of shape (n_steps,), optional
        Bounds on the numerical error, as in `Staircase`.  Default to the values.
    rows : array_like of shape (n_groups + 1,), optional
        If parameters of the loss have an entry per row, group g has the entries [rows[g], rows[g + 1]).

    Notes
    -----
    Thread-safety: any number of threads can use a map at the same time.

    Examples
    --------
    >>> import staircase_fast as sf
    >>> found = sf.fit_groups([1, 2, 1, 2], [0, 1, 3, 2], [7, 7, 9, 9])
    >>> found
    <StaircaseMap: 2 groups, 7 to 9; 3 steps, 4 rows, squared_error>
    >>> found[9].values
    array([2.5])
    >>> list(found), 8 in found
    ([7, 9], False)
    """

    __slots__ = ("_keys", "_places", "loss", "rows", *_ARRAYS)

    _keys: list[Key]
    _places: dict[Key, int] | None

    offsets: NDArray[np.int64]
    """Group g has the steps [offsets[g], offsets[g + 1])."""
    left: NDArray[np.float64]
    """First observed score on each step."""
    right: NDArray[np.float64]
    """Last observed score on each step."""
    step_values: NDArray[np.float64]
    """The value of each step."""
    weights: NDArray[np.float64]
    """Total weight on each step."""
    counts: NDArray[np.int64]
    """Number of rows on each step."""
    lower: NDArray[np.float64]
    """A lower bound on the exact optimum of each step."""
    upper: NDArray[np.float64]
    """An upper bound on the exact optimum of each step."""
    increasing: NDArray[np.bool_]
    """Whether the values of each group increase with the score."""
    loss: Loss
    """The loss that was minimised; parameters with an entry per row are in the order of groups."""
    rows: NDArray[np.int64] | None
    """The range of these parameters for each group; None if there are none."""

    def __init__(
        self,
        keys: Iterable[Key],
        offsets: ColumnLike,
        left: ColumnLike,
        right: ColumnLike,
        step_values: ColumnLike,
        weights: ColumnLike,
        counts: ColumnLike,
        loss: str | Loss = "squared",
        increasing: ColumnLike | None = None,
        lower: ColumnLike | None = None,
        upper: ColumnLike | None = None,
        rows: ColumnLike | None = None,
    ) -> None:
        columns = left, right, step_values, weights, counts, lower, upper
        self._set(map_fields.check_fields(list(keys), offsets, columns, loss_of(loss), increasing, rows))

    @classmethod
    def _of_fields(cls, fields: Fields) -> StaircaseMap:
        """A map of valid fields, whose arrays it takes over."""
        found = cls.__new__(cls)
        found._set(fields)
        return found

    def _set(self, fields: Fields) -> None:
        keys, offsets, steps, loss, increasing, rows = fields
        columns = (steps.values if column is None else column for column in steps)
        own = offsets, *columns, increasing, rows, loss, keys, None
        for name, value in zip((*_ARRAYS, "rows", "loss", "_keys", "_places"), own, strict=True):
            if isinstance(value, np.ndarray):
                value.setflags(write=False)
            _put(self, name, value)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a StaircaseMap cannot be changed; tried to set {name!r}")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"a StaircaseMap cannot be changed; tried to delete {name!r}")

    def _place_of(self) -> dict[Key, int]:
        """The place of each key, computed on first use (two threads may both compute it, with the same result)."""
        if self._places is None:
            _put(self, "_places", {key: place for place, key in enumerate(self._keys)})
        return self._places  # type: ignore[return-value]

    def __getitem__(self, key: Key) -> Staircase:
        return self._at(self._place_of()[key])

    def _at(self, place: int) -> Staircase:
        own = slice(int(self.offsets[place]), int(self.offsets[place + 1]))
        columns = [getattr(self, name)[own] for name in _ARRAYS[1:6]]
        bounds = [None if one is self.step_values else one[own] for one in (self.lower, self.upper)]
        loss = self.loss if self.rows is None else self.loss.of_rows(slice(*self.rows[place : place + 2].tolist()))
        return Staircase._of_steps(Steps(*columns, *bounds), loss, bool(self.increasing[place]))

    def __iter__(self) -> Iterator[Key]:
        return iter(self._keys)

    def __len__(self) -> int:
        return len(self._keys)

    def __contains__(self, key: object) -> bool:
        return key in self._place_of()

    @overload
    def predict(
        self, scores: ScalarLike, groups: Key, *, default: Staircase | None = None, **options: Unpack[MapPredictOptions]
    ) -> np.float64: ...
    @overload
    def predict(
        self,
        scores: ColumnLike,
        groups: ColumnLike,
        *,
        default: Staircase | None = None,
        **options: Unpack[MapPredictOptions],
    ) -> NDArray[np.float64]: ...
    def predict(
        self,
        scores: ColumnLike,
        groups: ColumnLike,
        *,
        default: Staircase | None = None,
        interpolation: Interpolation = "step",
        out_of_bounds: OutOfBounds = "clip",
        missing: Missing = "raise",
        n_threads: int | None = None,
    ) -> np.float64 | NDArray[np.float64]:
        """Evaluate the staircase of each row's group.

        Parameters
        ----------
        scores : array_like of shape (n,), or a single score
        groups : array_like of shape (n,), or the group of the single score
            As in `fit_groups`.
        default : Staircase, optional
            For groups that were not fitted.  Without it, they raise an error.
        interpolation, out_of_bounds, missing
            As in `Staircase.predict`.
        n_threads : int, optional
            Number of threads for this call.  Defaults to `get_num_threads()`.

        Returns
        -------
        ndarray of float64 of shape (n,), or float64 for a single score

        Examples
        --------
        >>> import staircase_fast as sf
        >>> found = sf.fit_groups([1, 2, 1, 2], [0, 1, 3, 2], ["a", "a", "b", "b"])
        >>> found.predict([1, 5, 1], ["a", "a", "b"])
        array([0. , 1. , 2.5])
        >>> found(1, "b")  # a map can be called
        np.float64(2.5)
        >>> found.predict([1, 1], ["a", "z"], default=sf.fit([1, 2], [5, 6]))
        array([0., 5.])
        """
        how = check_interpolation(interpolation)
        outside = check_choice("out_of_bounds", out_of_bounds, ("clip", "nan", "raise"))
        if default is not None and not isinstance(default, Staircase):
            raise InvalidTypeError("default", "must be a Staircase or None", value=default)
        keep_nan = keeps_nan(missing)
        pair = single_entry(scores), single_entry(groups)
        single = pair[0] is not None and pair[1] is not None
        x, keys = pair if single else (scores, groups)
        queries = read_float_column("scores", read_with_nan("scores", x) if keep_nan else x)
        column = group_column(keys, len(queries))
        check_same_index(scores=scores, groups=groups)
        workers = threads.num_threads(n_threads, len(queries))
        if not len(queries):
            return np.empty(0)
        places = self._places_of(column)
        if outside == "raise":
            self._refuse_outside(queries, column, places)
        result, unseen = self._evaluate(queries, column, places, how, outside == "nan", keep_nan, workers)
        if len(unseen):
            if default is None:
                group, row = column.key_of(int(column.numbers[unseen[0]])), int(unseen[0])
                found = "pass `default=` for unseen groups"
                hint = did_you_mean(group, self._keys)
                raise InvalidInputError("", "was not fitted", found=found, group=group, index=row, hint=hint)
            result[unseen] = default.predict(
                queries[unseen], interpolation=interpolation, out_of_bounds=out_of_bounds, missing=missing,
                n_threads=n_threads,
            )  # fmt: skip
        return result[0] if single else result

    __call__ = predict

    def _evaluate(
        self,
        queries: Column,
        column: GroupColumn,
        places: NDArray[np.int32],
        how: str,
        nan_outside: bool,
        keep_nan: bool,
        workers: int,
    ) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
        """The values, and the rows whose group was not fitted."""
        result = np.empty(len(queries))
        ends = centered_ends(self.left, self.right, self.offsets) if how == "centered" else (self.left, self.right)

        def evaluate(part: slice) -> tuple[int, int]:
            return _evaluate.evaluate_groups(
                queries[part], column.numbers[part], column.low, places, self.offsets, *ends, self.step_values,
                how != "step", nan_outside, result[part],
            )  # fmt: skip

        shares = threads.parts(len(queries), workers)
        firsts = threads.each(evaluate, shares)
        for part, (nan, _) in zip(shares, firsts, strict=True):
            if keep_nan and nan >= 0:
                result[part][np.isnan(queries[part])] = np.nan
            elif nan >= 0:
                refuse_nan("scores", queries, part.start + nan)
        seen = all(unseen < 0 for _, unseen in firsts)
        return result, np.empty(0, dtype=np.intp) if seen else np.flatnonzero(column.expand(places) < 0)

    def _refuse_outside(self, queries: Column, column: GroupColumn, places: NDArray[np.int32]) -> None:
        """Raise an error for the first score outside the fitted range of its group."""
        low, high = self.left[self.offsets[:-1]], self.right[self.offsets[1:] - 1]
        place = column.expand(places)
        outside = (place >= 0) & ((queries < low[place]) | (queries > high[place]))
        if outside.any():
            row = int(np.argmax(outside))
            key, ends = self._keys[place[row]], f"[{low[place[row]]}, {high[place[row]]}]"
            refuse_entries("scores", f"must be in {ends}, the fitted range of group {key!r}", queries, outside)

    def _places_of(self, column: GroupColumn) -> NDArray[np.int32]:
        """The place in this map of each number of a column, or -1."""
        if column.keys is not None:
            find = self._place_of().get
            found = np.array([find(key, -1) for key in column.keys], dtype=np.int32)
            return found[column.ranks]
        found = np.full(column.size, -1, dtype=np.int32)
        if not isinstance(self._keys[0], str):
            # keys are sorted, so those in the range of the numbers are consecutive
            first, last = (bisect.bisect_left(self._keys, end) for end in (column.low, column.low + column.size))
            found[np.array(self._keys[first:last], dtype=np.int64) - column.low] = np.arange(first, last)
        return found

    def predict_columns(
        self,
        scores: ColumnLike,
        *,
        interpolation: Interpolation = "step",
        out_of_bounds: OutOfBounds = "clip",
        missing: Missing = "raise",
        n_threads: int | None = None,
    ) -> NDArray[np.float64]:
        """Evaluate the first staircase on the first column, the second on the second, and so on.

        Parameters
        ----------
        scores : array_like of shape (n, n_groups)
        interpolation, out_of_bounds, missing, n_threads
            As in `Staircase.predict`.

        Returns
        -------
        ndarray of float64 of shape (n, n_groups)

        Examples
        --------
        >>> import staircase_fast as sf
        >>> found = sf.fit_columns([[1, 5], [2, 6]], [[0, 3], [1, 2]])
        >>> found.predict_columns([[0, 9], [2, 5]])
        array([[0. , 2.5],
               [1. , 2.5]])
        """
        columns = read_score_table(scores, keep_nan=keeps_nan(missing))
        if len(columns) != len(self):
            requirement = f"must have a column for each of the {len(self)} staircases"
            raise InvalidInputError("scores", requirement, found=f"got {len(columns)}")
        result = np.empty(columns.shape)
        workers = threads.num_threads(n_threads, columns.size)

        def evaluate(part: slice) -> None:
            for place in range(part.start, part.stop):
                with arguments_named(scores=f"scores[:, {place}]"):
                    self._at(place).predict(
                        columns[place],
                        interpolation=interpolation,
                        out_of_bounds=out_of_bounds,
                        missing=missing,
                        out=result[place],
                        n_threads=1 if len(shares) > 1 else n_threads,
                    )

        shares = threads.cut(len(self), min(workers, len(threads.parts(columns.size, workers))))
        threads.each(evaluate, shares)
        return result.T

    def _write(self, path: str | os.PathLike[str]) -> None:
        map_fields.write(path, self.parts())

    @classmethod
    def _read(cls, path: str | os.PathLike[str]) -> Self:
        return cls(**map_fields.read(path))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, StaircaseMap):
            return Mapping.__eq__(self, other)
        arrays = all(np.array_equal(getattr(self, name), getattr(other, name)) for name in (*_ARRAYS, "rows"))
        kinds = type(self._keys[0]) is type(other._keys[0])
        return arrays and kinds and self._keys == other._keys and self.loss == other.loss

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[type[StaircaseMap], tuple[Any, ...]]:
        return StaircaseMap, tuple(self.parts().values())

    def parts(self) -> dict[str, Any]:
        """Arguments that construct an equal map."""
        bounds = [None if one is self.step_values else one for one in (self.lower, self.upper)]
        columns = {name: getattr(self, name) for name in _ARRAYS[:6]}
        more = {"loss": self.loss, "increasing": self.increasing, "lower": bounds[0], "upper": bounds[1]}
        return {"keys": list(self._keys), **columns, **more, "rows": self.rows}

    def __copy__(self) -> StaircaseMap:
        return self

    def __deepcopy__(self, memo: dict[int, object]) -> StaircaseMap:
        return self

    def __repr__(self) -> str:
        groups = "1 group" if len(self) == 1 else f"{len(self)} groups"
        steps = "1 step" if len(self.left) == 1 else f"{len(self.left)} steps"
        rows = "1 row" if (n := int(self.counts.sum())) == 1 else f"{n} rows"
        return f"<StaircaseMap: {groups}, {self._keys[0]!r} to {self._keys[-1]!r}; {steps}, {rows}, {self.loss.name}>"
