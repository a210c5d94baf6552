"""Many fits at once: of groups of rows, and of columns."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from staircase_fast import threads
from staircase_fast.arithmetic.exact import LABELS, UNIT_WEIGHTS, scale_of
from staircase_fast.bisection import solve
from staircase_fast.fitting import costs_no_more, limits_of, of_columns
from staircase_fast.groups import checks, grouped
from staircase_fast.groups.checks import GroupColumn
from staircase_fast.groups.staircase_map import StaircaseMap
from staircase_fast.inputs.options import check_bounds, check_direction
from staircase_fast.inputs.rows import Columns, read_columns
from staircase_fast.losses import Loss, SquaredError, loss_of
from staircase_fast.losses.rows import check_is_comparable, check_parameter_length, look_like_labels
from staircase_fast.stack import survey
from staircase_fast.stack.sorted_rows import UNBOUNDED
from staircase_fast.staircase.result import Staircase
from staircase_fast.staircase.steps import Steps
from staircase_fast.typing import Bounds, ColumnLike, Direction


class Wanted(NamedTuple):
    """What a fit is asked for, besides its rows."""

    loss: Loss
    rising: bool | None
    bounds: Bounds
    n_threads: int | None

    def patience(self) -> solve.Budget:
        return solve.Budget(n_threads=threads.num_threads(self.n_threads, threads.ROWS_EACH))


def fit_groups(
    scores: ColumnLike,
    targets: ColumnLike,
    groups: ColumnLike,
    *,
    sample_weight: ColumnLike | None = None,
    loss: str | Loss = "squared",
    increasing: Direction = True,
    bounds: Bounds = None,
    n_threads: int | None = None,
) -> StaircaseMap:
    """Fit a staircase to each group of rows.

    Each is the one that `fit` makes of the rows of its group, to the last bit; all of them are made in one go.

    Parameters
    ----------
    scores, targets : array_like of shape (n,)
    groups : array_like of shape (n,)
        The group of each row: integers, strings or bools, in any order.  Arrays, lists, columns of pandas, polars and
        Arrow, categorical ones too.  Floats and missing entries are refused.
    sample_weight : array_like of shape (n,), optional
        Weights >= 0; a row of weight 0 is absent.  A group of which all rows are absent is refused.
    loss : str or Loss, default "squared"
        One for all groups.  Parameters may have one entry per row.
    increasing : bool or "auto", default True
        Whether values rise or fall with the score.  "auto" chooses for each group by itself.
    bounds : (lo, hi), optional
        Values of all groups are held within these; None stands for no bound.
    n_threads : int, optional
        How many threads may be used, for this call alone; see `set_num_threads`.  The result is the same.

    Returns
    -------
    StaircaseMap
        A mapping from keys, in ascending order, to staircases.

    Notes
    -----
    Where a step is a mean, small groups are sorted and fitted by one kernel, many to a call.  Under other losses groups
    are fitted one after the other, at the price of a call of `fit` each.

    Thread-safety: inputs are only read; the kernels run without the GIL.

    Examples
    --------
    >>> import staircase_fast as sf
    >>> found = sf.fit_groups([0.1, 0.9, 0.4, 0.5], [0, 1, 1, 0], ["paris", "paris", "rome", "rome"])
    >>> found["rome"].values
    array([0.5])
    >>> found.predict([0.2, 0.95, 0.2], ["paris", "paris", "rome"])
    array([0. , 1. , 0.5])
    """
    wanted = _wanted(loss, increasing, bounds, n_threads)
    columns = read_columns(scores, targets, sample_weight)
    n = len(columns[0])
    check_parameter_length(wanted.loss, n)
    column = checks.group_column(groups, n)
    return fit_numbered(columns, column, wanted)


def _wanted(loss: str | Loss, increasing: Direction, bounds: Bounds, n_threads: int | None) -> Wanted:
    wanted = Wanted(loss_of(loss), check_direction(increasing, auto=True), bounds, n_threads)
    check_bounds(bounds)
    threads.num_threads(n_threads, 0)
    if wanted.rising is None:
        check_is_comparable(wanted.loss)
    return wanted


def fit_numbered(columns: Columns, column: GroupColumn, wanted: Wanted) -> StaircaseMap:
    """The staircases of rows whose groups are known."""
    x, y, w = columns
    workers = threads.num_threads(wanted.n_threads, len(x))
    groups = grouped.numbered(column, workers)
    limits = limits_of(wanted.loss, wanted.bounds)
    # as in `fit`, means tell the direction
    first_limits = limits if wanted.rising is not None else UNBOUNDED
    found, means = None, functools.partial(_means, columns, groups, wanted, LABELS, UNIT_WEIGHTS, workers)
    if wanted.loss.is_mean and groups.sizes.max() < survey.FEW_ROWS and look_like_labels(y, w, wanted.loss):
        found = means(first_limits)
    if found is None:
        y_extent, w_extent = checks.rows_of_groups(x, y, w, wanted.loss, workers)
        present = _present(column, groups, w) if w_extent.lowest == 0 else None
        exact = y.dtype.kind == "f" or max(-y_extent.lowest, y_extent.highest) < 2**53  # as in `survey.suits`
        if not wanted.loss.is_mean or not exact or len(w) * w_extent.highest == np.inf:
            return _one_by_one(columns, column, groups, wanted)
        kept, kept_groups = columns, groups
        if present is not None:
            kept = x[present], y[present], w[present]
            kept_groups = _renumbered(groups, present, workers)
        means = functools.partial(_means, kept, kept_groups, wanted, y_extent, w_extent, workers)
        found = _still_valid(means(first_limits))
    if len(found) == 1:
        rising = np.full(np.count_nonzero(found[0].n_steps), wanted.rising)
        return _map_of(column, groups, found[0], wanted.loss, rising)
    first = _better(found[0], found[1], wanted.loss, limits)
    if limits != first_limits:
        found = _still_valid(means(limits))
    return _map_of(column, groups, grouped.chosen(found[0], found[1], first), wanted.loss, first[found[0].n_steps > 0])


def _still_valid(found: list[grouped.Fitted] | None) -> list[grouped.Fitted]:
    """The fits of rows that were judged before."""
    if found is None:
        raise RuntimeError("`scores` or `targets` changed during the call: they are no longer valid.")
    return found


def _present(column: GroupColumn, groups: grouped.Numbered, w: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Rows of weight above 0; each group must have one."""
    present = w > 0
    left = np.bincount(groups.numbers[present], minlength=len(groups.sizes))
    empty = np.flatnonzero((left == 0) & (groups.sizes > 0))
    if len(empty):
        checks.empty_group(column.key(int(empty[0])), int(groups.sizes[empty[0]]))
    return present


def _renumbered(groups: grouped.Numbered, present: NDArray[np.bool_], workers: int) -> grouped.Numbered:
    """The groups of some of the rows."""
    numbers = groups.numbers[present]
    runs = int(np.count_nonzero(numbers[1:] != numbers[:-1])) + 1
    return grouped.numbered(GroupColumn(numbers, 0, len(groups.sizes), runs, None, grouped.NO_RANKS), workers)


def _means(
    columns: Columns,
    groups: grouped.Numbered,
    wanted: Wanted,
    y_extent: Any,
    w_extent: Any,
    workers: int,
    limits: tuple[float, float],
) -> list[grouped.Fitted] | None:
    """Fits of each direction that is asked for, within limits; None if labels are not what they look like."""
    labels = not len(columns[2]) and y_extent.integral and y_extent.lowest >= 0 and y_extent.highest <= 1
    source = grouped.brought_together(columns, groups, labels=labels)
    if source is None:
        return None
    scale = scale_of(y_extent, w_extent, int(groups.sizes.max()))

    def fit_large(own: Columns, rising: bool, n_threads: int) -> Staircase:
        # under any loss that is least at the mean; this one has no limits of its own
        return of_columns(own, SquaredError(), rising, limits, solve.Budget(), n_threads)

    found = []
    for rising in (wanted.rising,) if wanted.rising is not None else (True, False):
        fitted = grouped.fit_all(
            source, scale, decreasing=not rising, bounds=limits, n_threads=workers, fit_large=fit_large
        )
        if fitted is None:
            return None
        found.append(fitted)
    return found


def _better(up: grouped.Fitted, down: grouped.Fitted, loss: Loss, limits: tuple[float, float]) -> NDArray[np.bool_]:
    """Whether each group is fitted as well by values that rise."""
    better = np.ones(len(up.n_steps), dtype=np.bool_)
    for group, (one, other) in enumerate(zip(_stairs(up, loss, True), _stairs(down, loss, False), strict=True)):
        if one is not None and other is not None:
            better[group] = costs_no_more(loss, one, other, limits)
    return better


def _stairs(fitted: grouped.Fitted, loss: Loss, rising: bool) -> Iterator[Staircase | None]:
    end = 0
    for n in fitted.n_steps.tolist():
        own = slice(end, end := end + n)
        steps = Steps._make((*(column[own] for column in fitted.steps[:5]), None, None))
        yield Staircase._of_steps(steps, loss, rising) if n else None


def _map_of(
    column: GroupColumn, groups: grouped.Numbered, fitted: grouped.Fitted, loss: Loss, rising: NDArray[np.bool_]
) -> StaircaseMap:
    used = np.flatnonzero(fitted.n_steps)
    if column.keys is None:
        keys: list[Any] = (used + column.low).tolist()
    else:
        keys = [column.keys[place] for place in used.tolist()]
    rows = None
    if varies(loss):
        loss, rows = loss.of_rows(_order(groups)), np.append(0, np.cumsum(groups.sizes[used]))
    offsets = np.append(0, np.cumsum(fitted.n_steps[used]))
    return StaircaseMap._of_parts(keys, offsets, fitted.steps, loss, rising, rows)


def varies(loss: Loss) -> bool:
    """Whether rows have parameters of their own."""
    return loss.per_sample and len(loss.sort_keys()) > 0


def _order(groups: grouped.Numbered) -> NDArray[np.intp]:
    """Rows by group, as they come within each."""
    return np.argsort(groups.numbers, kind="stable")


def _one_by_one(columns: Columns, column: GroupColumn, groups: grouped.Numbered, wanted: Wanted) -> StaircaseMap:
    """Groups that are fitted one after the other."""
    order, ends = _order(groups), np.append(0, np.cumsum(groups.sizes))
    x, y, w = columns
    patience = wanted.patience()
    found: list[Staircase] = []
    for group in np.flatnonzero(groups.sizes).tolist():
        rows = order[ends[group] : ends[group + 1]]
        loss = wanted.loss.of_rows(rows) if wanted.loss.per_sample else wanted.loss
        own = x[rows], y[rows], w[rows] if len(w) else w
        with checks.told_of(f"group {column.key(group)!r}"):
            found.append(of_columns(own, loss, wanted.rising, wanted.bounds, patience, wanted.n_threads))
    n_steps = np.zeros(len(groups.sizes), dtype=np.int64)
    n_steps[groups.sizes > 0] = [stairs.n_steps for stairs in found]
    exact = all(stairs.lower is stairs.values and stairs.upper is stairs.values for stairs in found)
    names = Steps._fields[: 5 if exact else 7]
    steps = Steps(*(np.concatenate([getattr(stairs, name) for stairs in found]) for name in names))
    rising = np.array([stairs.increasing for stairs in found])
    return _map_of(column, groups, grouped.Fitted(n_steps, steps), wanted.loss, rising)


def fit_columns(
    scores: ColumnLike,
    targets: ColumnLike,
    *,
    sample_weight: ColumnLike | None = None,
    loss: str | Loss = "squared",
    increasing: Direction = True,
    bounds: Bounds = None,
    n_threads: int | None = None,
) -> StaircaseMap:
    """Fit a staircase to each column: the scores of each class and whether it was that class, for example.

    Each is the one that `fit` makes of its column, to the last bit.

    Parameters
    ----------
    scores, targets : array_like of shape (n, k)
        Arrays or DataFrames.
    sample_weight : array_like of shape (n,) or (n, k), optional
        Weights >= 0: of rows, or of each entry.
    loss : str or Loss, default "squared"
        One for all columns.  Parameters may have one entry per row.
    increasing : bool or "auto", default True
    bounds : (lo, hi), optional
    n_threads : int, optional
        As in `fit_groups`.

    Returns
    -------
    StaircaseMap
        With keys 0, 1, .., k - 1.

    Notes
    -----
    Thread-safety: inputs are only read; the kernels run without the GIL.

    Examples
    --------
    >>> import staircase_fast as sf
    >>> scores = [[0.7, 0.3], [0.6, 0.4], [0.1, 0.9]]
    >>> found = sf.fit_columns(scores, [[1, 0], [0, 1], [0, 1]])
    >>> found.predict_columns(scores)
    array([[1., 0.],
           [0., 1.],
           [0., 1.]])
    """
    wanted = _wanted(loss, increasing, bounds, n_threads)
    x, y, w = checks.tables(scores, targets, sample_weight)
    k, n = x.shape
    check_parameter_length(wanted.loss, n)
    if wanted.loss.per_sample:
        wanted = wanted._replace(loss=wanted.loss.of_rows(np.tile(np.arange(n), k)))
    # columns are groups whose rows stand together
    numbers = np.repeat(np.arange(k, dtype=np.int32), n)
    column = GroupColumn(numbers, 0, k, k, None, grouped.NO_RANKS)
    try:
        return fit_numbered((x.reshape(-1), y.reshape(-1), w.reshape(-1)), column, wanted)
    except ValueError:
        checks.entries_of_tables(x, y, w, wanted.loss)  # says in which column it is
        raise
