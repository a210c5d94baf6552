"""fit_groups and fit_columns: many fits in one call."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from staircase_fast import threads
from staircase_fast.arithmetic.exact import LABELS, UNIT_WEIGHTS, Extent, extent_of, scale_of
from staircase_fast.bisection import _small as few
from staircase_fast.bisection import solve
from staircase_fast.errors import InvalidInputError
from staircase_fast.fitting import costs_no_more, of_columns
from staircase_fast.groups import grouped
from staircase_fast.groups.readers import NO_RANKS, GroupColumn, group_column, read_score_table, read_table
from staircase_fast.groups.staircase_map import StaircaseMap
from staircase_fast.inputs.columns import Column, read_array
from staircase_fast.inputs.options import check_bounds, check_direction
from staircase_fast.inputs.rows import (
    NO_WEIGHTS,
    Columns,
    check_each_weight,
    check_no_nan,
    check_same_index,
    read_columns,
    read_weights,
    warn_if_swapped,
)
from staircase_fast.losses import Loss, SquaredError, loss_of
from staircase_fast.losses.rows import (
    check_is_comparable,
    check_parameter_length,
    check_targets,
    limits_of,
    look_like_labels,
)
from staircase_fast.stack import survey
from staircase_fast.stack.sorted_rows import UNBOUNDED
from staircase_fast.staircase.result import Staircase
from staircase_fast.staircase.steps import Steps
from staircase_fast.typing import Bounds, ColumnLike, Direction

_COLUMNS = ("scores", "targets", "sample_weight")
_ROWS_AT_ONCE = 1 << 16  # some milliseconds of work between checks for signals


class Options(NamedTuple):
    """The valid options of a fit."""

    loss: Loss
    rising: bool | None
    bounds: Bounds
    n_threads: int | None


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

    Each staircase equals the result of `fit` on the rows of its group, to the last bit.

    Parameters
    ----------
    scores, targets : array_like of shape (n,)
    groups : array_like of shape (n,)
        The group of each row: integers, strings or bools, in any order.  Lists, arrays, and pandas, polars or Arrow
        columns, including categorical ones.  Floats and missing entries raise an error.
    sample_weight : array_like of shape (n,), optional
        Weights >= 0.  Rows of weight 0 are ignored, but each group must have a weight > 0.
    loss : str or Loss, default "squared"
        One for all groups.  Parameters may have one entry per row.
    increasing : bool or "auto", default True
        Whether values increase or decrease with the score.  "auto" chooses for each group.
    bounds : (lo, hi), optional
        Bounds on the values of all groups; None means no bound.
    n_threads : int, optional
        Number of threads for this call.  Defaults to `get_num_threads()`.  The result does not depend on it.

    Returns
    -------
    StaircaseMap
        A mapping from keys, in ascending order, to staircases.

    Warns
    -----
    UserWarning
        As `fit`.

    Notes
    -----
    One kernel call fits many small groups.  Each group costs a call of `fit` if the loss is `Custom` or an
    `UpdateRule`, or if it is not minimised by the mean and `increasing` is "auto".

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
    options = _check_options(loss, increasing, bounds, n_threads)
    columns = read_columns(scores, targets, sample_weight)
    check_parameter_length(options.loss, len(columns[0]))
    column = group_column(groups, len(columns[0]))
    check_same_index(scores=scores, targets=targets, groups=groups)
    found = _fit(columns, column, options)
    if found.left[0] == 0.0 and found.right[-1] == 1.0 and sample_weight is None:
        warn_if_swapped(*columns[:2])
    return found


def _check_options(loss: str | Loss, increasing: Direction, bounds: Bounds, n_threads: int | None) -> Options:
    options = Options(loss_of(loss), check_direction(increasing, auto=True), bounds, n_threads)
    limits_of(options.loss, bounds)
    threads.num_threads(n_threads, 0)
    if options.rising is None:
        check_is_comparable(options.loss)
    return options


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
    """Fit a staircase to each column: for example, class probabilities and one-hot class labels.

    Each staircase equals the result of `fit` on its column, to the last bit.

    Parameters
    ----------
    scores, targets : array_like of shape (n, k)
        Arrays or DataFrames.
    sample_weight : array_like of shape (n,) or (n, k), optional
        Weights >= 0, of rows or of single entries.
    loss : str or Loss, default "squared"
        One for all columns.  Parameters may have one entry per row.
    increasing, bounds, n_threads
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
    options = _check_options(loss, increasing, bounds, n_threads)
    x, y, w = _read_tables(scores, targets, sample_weight)
    k, n = x.shape  # columns are groups of consecutive rows
    check_parameter_length(options.loss, n)
    if options.loss.per_sample:
        options = options._replace(loss=options.loss.of_rows(np.tile(np.arange(n), k)))
    column = GroupColumn(np.repeat(np.arange(k, dtype=np.int32), n), 0, k, None, NO_RANKS)
    try:
        return _fit((x.reshape(-1), y.reshape(-1), w.reshape(-1)), column, options)
    except InvalidInputError as error:
        if error.argument in _COLUMNS and error.index is not None:
            place, error.index = divmod(error.index, n)
            error.argument += f"[:, {place}]"
        raise


def _read_tables(scores: Any, targets: Any, sample_weight: Any) -> Columns:
    """The arguments of `fit_columns`, transposed; weights have the shape of scores, or are empty."""
    x, y = read_score_table(scores), read_table("targets", targets)
    if x.shape != y.shape:
        found = f"got {x.shape[::-1]} and {y.shape[::-1]}"
        raise InvalidInputError("scores", "must have the same shape", other="targets", found=found)
    check_same_index(scores=scores, targets=targets)
    if sample_weight is None:
        return x, y, NO_WEIGHTS
    w = read_array("sample_weight", sample_weight)
    if w.ndim == 1:
        w = np.tile(read_weights("sample_weight", w, "scores", x[0]), (len(x), 1))
    else:
        w = read_table("sample_weight", w).astype(np.float64, copy=False)
    if x.shape != w.shape:
        requirement = f"must have one entry per row, or the shape of `scores`, {x.shape[::-1]}"
        raise InvalidInputError("sample_weight", requirement, found=f"got {w.shape[::-1]}")
    check_same_index(scores=scores, sample_weight=sample_weight)
    return x, y, w


def _fit(columns: Columns, column: GroupColumn, options: Options) -> StaircaseMap:
    x, y, w = columns
    loss = options.loss
    workers = threads.num_threads(options.n_threads, len(x))
    groups = grouped.number_rows(column, workers)
    if loss.is_mean and groups.sizes.max() < survey.FEW_ROWS and look_like_labels(y, w, loss):
        with contextlib.suppress(survey.NotLabels):
            fitted, rising = _fit_means(columns, groups, options, (LABELS, UNIT_WEIGHTS), workers)
            return _map_of(column, groups, fitted, loss, rising)
    extents = y_extent, w_extent = check_entries(x, y, w, loss, workers)
    present = _find_present(column, groups, w) if w_extent.lowest == 0 else None
    exact = y.dtype.kind == "f" or max(-y_extent.lowest, y_extent.highest) < 2**53  # as in `survey.suits`
    if not loss.is_mean or not exact or len(w) * w_extent.highest == np.inf:
        return _fit_by_loss(columns, column, groups, options)
    present_groups = groups
    if present is not None:
        columns = x[present], y[present], w[present]
        present_groups = grouped.select_rows(groups, present, workers)
    fitted, rising = _fit_means(columns, present_groups, options, extents, workers)
    return _map_of(column, groups, fitted, loss, rising)


def check_entries(x: Column, y: Column, w: Column, loss: Loss, n_threads: int) -> tuple[Extent, Extent]:
    """Check the entries of all rows; return the extents of targets and weights.

    The sum of weights is checked for each group when it is fitted.
    """
    check_no_nan("scores", x, n_threads)
    w_extent = extent_of(w, n_threads) if len(w) else UNIT_WEIGHTS
    check_each_weight("sample_weight", w, w_extent)
    y_extent = extent_of(y, n_threads)
    check_targets("targets", y, y_extent, loss, x)
    return y_extent, w_extent


def _find_present(column: GroupColumn, groups: grouped.Groups, w: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Rows of weight > 0; each group must have one."""
    present = w > 0
    n_present = np.bincount(groups.numbers[present], minlength=len(groups.sizes))
    empty = np.flatnonzero((n_present == 0) & (groups.sizes > 0))
    if len(empty):
        found = f"all {groups.sizes[empty[0]]} of group {column.key(int(empty[0]))!r} are 0"
        raise InvalidInputError("sample_weight", "must have an entry > 0 in each group", found=found)
    return present


def _fit_means(
    columns: Columns, groups: grouped.Groups, options: Options, extents: tuple[Extent, Extent], workers: int
) -> tuple[grouped.Fitted, NDArray[np.bool_]]:
    """Fits under a loss that is minimised by the mean, and whether the values of each group with rows increase."""
    y_extent, w_extent = extents
    labels = not len(columns[2]) and y_extent.integral and y_extent.lowest >= 0 and y_extent.highest <= 1
    source = grouped.gather(columns, groups, labels=labels)
    scale = scale_of(y_extent, w_extent, int(groups.sizes.max()))

    def fit(rising: bool, bounds: tuple[float, float]) -> grouped.Fitted:
        def fit_large(own: Columns, n_threads: int) -> Staircase:
            # the mean minimises both losses, and the squared error adds no bounds of its own
            return of_columns(own, SquaredError(), rising, bounds, solve.Budget(), n_threads)

        return grouped.fit_all(
            source, scale, decreasing=not rising, bounds=bounds, n_threads=workers, fit_large=fit_large
        )

    limits = limits_of(options.loss, options.bounds)
    if options.rising is not None:
        fitted = fit(options.rising, limits)
        return fitted, np.full(np.count_nonzero(fitted.n_steps), options.rising)
    up, down = fit(True, UNBOUNDED), fit(False, UNBOUNDED)  # as in `fit`, means without bounds decide the direction
    rising = _is_rising(up, down, options.loss, limits)
    if limits != UNBOUNDED:
        up, down = fit(True, limits), fit(False, limits)
    return grouped.choose(up, down, rising), rising[up.n_steps > 0]


def _is_rising(up: grouped.Fitted, down: grouped.Fitted, loss: Loss, limits: tuple[float, float]) -> NDArray[np.bool_]:
    """Whether the increasing fit of each group costs no more than the decreasing one."""
    pairs = zip(_staircases(up, loss, True), _staircases(down, loss, False), strict=True)
    return np.array(
        [one is None or other is None or costs_no_more(loss, one, other, limits) for one, other in pairs],
        dtype=np.bool_,
    )


def _staircases(fitted: grouped.Fitted, loss: Loss, rising: bool) -> Iterator[Staircase | None]:
    end = 0
    for n in fitted.n_steps.tolist():
        own = slice(end, end := end + n)
        steps = Steps._make((*(column[own] for column in fitted.steps[:5]), None, None))
        yield Staircase._of_steps(steps, loss, rising) if n else None


def _map_of(
    column: GroupColumn, groups: grouped.Groups, fitted: grouped.Fitted, loss: Loss, rising: NDArray[np.bool_]
) -> StaircaseMap:
    used = np.flatnonzero(fitted.n_steps)
    keys = (used + column.low).tolist() if column.keys is None else [column.keys[place] for place in used.tolist()]
    rows = None
    if loss.per_sample and len(loss.sort_keys()) > 0:  # rows have parameters of their own
        loss, rows = loss.of_rows(grouped.order_of(groups)), np.append(0, np.cumsum(groups.sizes[used]))
    offsets = np.append(0, np.cumsum(fitted.n_steps[used]))
    return StaircaseMap._of_fields((keys, offsets, fitted.steps, loss, rising, rows))


def _fit_by_loss(columns: Columns, column: GroupColumn, groups: grouped.Groups, options: Options) -> StaircaseMap:
    """Fits under other losses, and of rows that `_fit_means` does not support."""
    order, borders = grouped.order_of(groups), np.append(0, np.cumsum(groups.sizes))
    x, y, w = (one[order] if len(one) else one for one in columns)
    loss = options.loss.of_rows(order) if options.loss.per_sample else options.loss
    n_steps, steps = np.full(len(groups.sizes), -1), np.empty((len(Steps._fields), 0))
    if not loss.is_mean and options.rising is not None and few.supports(loss):
        n_steps, steps = _fit_small_groups((x, y, w), borders, loss, options)
    rising = np.full(len(n_steps), bool(options.rising))
    budget = solve.Budget(n_threads=threads.num_threads(options.n_threads, threads.ROWS_EACH))
    found = {}
    for place in np.flatnonzero((n_steps < 0) & (groups.sizes > 0)).tolist():
        own = slice(*borders[place : place + 2])
        own_loss = loss.of_rows(own) if loss.per_sample else loss
        try:
            stairs = of_columns(
                (x[own], y[own], w[own]), own_loss, options.rising, options.bounds, budget, options.n_threads
            )
        except InvalidInputError as error:
            error.group = column.key(place)
            if error.argument in _COLUMNS and error.index is not None:
                error.index = int(order[own][error.index])
            raise
        except Exception as error:  # of a user's own function
            error.add_note(f"in group {column.key(place)!r}")
            raise
        found[place], rising[place] = stairs, stairs.increasing
    fitted = _join(n_steps, steps, found)
    return _map_of(column, groups, fitted, options.loss, rising[fitted.n_steps > 0])


def _fit_small_groups(
    columns: Columns, borders: NDArray[np.int64], loss: Loss, options: Options
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The number of steps of each group, -1 if it needs a call of `fit`; and the steps of all others in one table."""
    x, y, w = (column.astype(np.float64, copy=False) for column in columns)
    n_steps, limits = np.empty(len(borders) - 1, dtype=np.int64), check_bounds(options.bounds)
    pieces = np.unique(np.searchsorted(borders, np.append(np.arange(0, len(x), _ROWS_AT_ONCE), len(x))))
    workers = len(threads.parts(len(x), threads.num_threads(options.n_threads, len(x))))

    def work(share: slice) -> list[NDArray[np.float64]]:
        return [
            few.fit_groups(x, y, w, loss, not options.rising, *limits, borders, *pieces[piece : piece + 2], n_steps)
            for piece in range(share.start, share.stop)
        ]

    found = threads.each(work, threads.cut(len(pieces) - 1, workers))
    return n_steps, np.concatenate([table for tables in found for table in tables], axis=1)


def _join(n_steps: NDArray[np.int64], table: NDArray[np.float64], found: dict[int, Staircase]) -> grouped.Fitted:
    """All groups in order: those in the table, and those that were fitted one by one."""
    exact = not table.size and all(one.lower is one.values and one.upper is one.values for one in found.values())
    bounds = (None, None) if exact else table[5:]
    columns = Steps._make([*table[:4], table[4].view(np.int64), *bounds])._asdict()
    own = np.repeat(np.arange(len(n_steps)), np.maximum(n_steps, 0))
    groups = np.concatenate([own, *(np.full(stairs.n_steps, place) for place, stairs in found.items())])
    order = np.argsort(groups, kind="stable")
    steps = Steps._make(
        None if column is None else np.concatenate([column, *(getattr(one, name) for one in found.values())])[order]
        for name, column in columns.items()
    )
    return grouped.Fitted(np.bincount(groups, minlength=len(n_steps)), steps)
