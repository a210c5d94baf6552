"""The public fits: `fit` and `isotonic_regression`.  They send rows through inputs and losses to stack or bisection."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from staircase_fast import threads
from staircase_fast.arithmetic.exact import scale_of, summary_of
from staircase_fast.bisection import _small as few
from staircase_fast.bisection import solve
from staircase_fast.bisection.samples import samples_of
from staircase_fast.inputs import options
from staircase_fast.inputs import rows as inputs
from staircase_fast.inputs.rows import Columns
from staircase_fast.losses import Loss, loss_of
from staircase_fast.losses import rows as checks
from staircase_fast.stack import _small, sorted_rows, survey
from staircase_fast.stack.sorting import in_score_order, is_nearly_sorted, repaired
from staircase_fast.staircase.result import Staircase
from staircase_fast.staircase.steps import Steps
from staircase_fast.typing import Bounds, ColumnLike, Direction, public_class

_UNLIMITED = solve.Budget()


@public_class("staircase_fast")
class IsotonicResult(NamedTuple):
    """The result of `isotonic_regression`, with the field names of SciPy.

    Attributes
    ----------
    x : ndarray of float64
        The fitted value of each entry of y.
    weights : ndarray of float64
        The total weight of each block.
    blocks : ndarray of intp
        The start of each block, followed by the length of y: block b is y[blocks[b]:blocks[b + 1]].

    Examples
    --------
    >>> import staircase_fast as sf
    >>> sf.isotonic_regression([2, 1, 3])
    IsotonicResult(x=array([1.5, 1.5, 3. ]), weights=array([2., 1.]), blocks=array([0, 2, 3]))
    """

    x: NDArray[np.float64]
    weights: NDArray[np.float64]
    blocks: NDArray[np.intp]


def fit(
    scores: ColumnLike,
    targets: ColumnLike,
    *,
    sample_weight: ColumnLike | None = None,
    loss: str | Loss = "squared",
    increasing: Direction = True,
    bounds: Bounds = None,
    tol: float | None = None,
    max_rounds: int | None = None,
    max_seconds: float | None = None,
    n_threads: int | None = None,
) -> Staircase:
    """Fit the optimal monotone transform of scores.

    The result has the least total loss of all monotone functions of the score.  It is a staircase: consecutive scores
    share a step, and the value of a step minimises the loss of its rows.

    Parameters
    ----------
    scores : array_like of shape (n,)
        Model scores.  Only their order matters.  Equal scores share one fitted value.  Infinite scores are allowed, NaN
        is not.
    targets : array_like of shape (n,)
        Outcomes: labels 0 and 1, probabilities, or any real numbers that the loss allows.
    sample_weight : array_like of shape (n,), optional
        Weights >= 0.  Rows with weight 0 are ignored.
    loss : str or Loss, default "squared"
        A loss of `staircase_fast.losses`, or its name.
    increasing : bool or "auto", default True
        Whether values rise or fall with the score.  "auto" fits both and returns the one with the lower loss
        (increasing, if the losses are equal except for rounding).
    bounds : (lo, hi), optional
        Least and greatest allowed value; None means no bound.
    tol, max_rounds, max_seconds : float, int, float, optional
        For losses without a closed form: stop when the bounds on every exact value differ by at most `tol`, after
        `max_rounds` rounds, or after `max_seconds` seconds.  By default, values are as precise as floats allow.
    n_threads : int, optional
        Number of threads for this call.  Defaults to `get_num_threads()`.  The result does not depend on it.

    Returns
    -------
    Staircase

    Warns
    -----
    UserWarning
        If all scores are 0 or 1 and the targets are shares between them, without weights: they are most likely swapped.

    Notes
    -----
    If a step is a mean, sums are exact integers: the steps are those of exact arithmetic, and values are the exact
    means, rounded once.  Under other losses, values are accurate to a few ulps and lie between `lower` and
    `upper`.  The result does not depend on the order of the rows.  Neighbouring steps whose values round to the same
    float64 are one step.

    Inputs can be lists, NumPy arrays, pandas or polars columns, Arrow arrays, or anything that supports DLPack or
    `__array__`.  Rows are matched by position; pandas columns must have the same index.  Missing values raise a
    ValueError that names the row.

    Thread-safety: inputs are only read; the kernels run without the GIL.

    Examples
    --------
    >>> import staircase_fast as sf
    >>> stairs = sf.fit([0.1, 0.4, 0.35, 0.8], [0, 0, 1, 1])
    >>> stairs.values
    array([0. , 0.5, 1. ])
    >>> stairs([0.2, 0.38, 0.9])
    array([0. , 0.5, 1. ])

    A loss with a parameter; decreasing values with an upper bound:

    >>> sf.fit([1, 2, 3, 4], [1.0, 9.0, 2.0, 3.0], loss=sf.losses.Quantile(0.9)).values
    array([1., 9.])
    >>> sf.fit([1, 2, 3], [7.0, 3.0, 4.0], increasing=False, bounds=(None, 5)).values
    array([5. , 3.5])
    """
    the_loss = loss_of(loss)
    rising = options.check_direction(increasing, auto=True)
    checks.limits_of(the_loss, bounds)  # before anything is read
    budget = _UNLIMITED
    if not (the_loss.is_mean and tol is max_rounds is max_seconds is n_threads is None):
        budget = solve.Budget(
            options.check_tolerance(tol), options.check_round_count(max_rounds),
            time.monotonic() + options.check_seconds(max_seconds),
            threads.num_threads(n_threads, 0 if the_loss.is_mean else threads.ROWS_EACH),
        )  # fmt: skip
    columns = None
    stairs = _fit_few(scores, targets, sample_weight, the_loss, rising, bounds, budget)
    if stairs is None:
        columns = inputs.read_columns(scores, targets, sample_weight)
        checks.check_parameter_length(the_loss, len(columns[0]))
        stairs = of_columns(columns, the_loss, rising, bounds, budget, n_threads)
    if stairs.left[0] == 0.0 and stairs.right[-1] == 1.0 and len(stairs.left) <= 2 and sample_weight is None:
        inputs.warn_if_swapped(*(columns or (scores, targets))[:2])
    return stairs


def _fit_few(
    x: object, y: object, w: object, loss: Loss, rising: bool | None, bounds: Bounds, budget: solve.Budget
) -> Staircase | None:
    """The fit in one compiled call; None if there are many rows, or if rows must be converted or refused first."""
    if rising is None:
        return None
    table = None
    if loss.is_mean:
        if not loss.per_sample:
            table = _small.fit(x, y, w, *loss.target_range, not rising, *checks.limits_of(loss, bounds))
    elif few.supports(loss) and budget.is_unlimited:
        table = few.fit(x, y, w, loss, not rising, *options.check_bounds(bounds))
    return None if table is None else Staircase._of_table(table, loss, rising)


def of_columns(
    columns: Columns, loss: Loss, rising: bool | None, bounds: Bounds, budget: solve.Budget, n_threads: int | None
) -> Staircase:
    """The staircase of columns of equal length whose entries have not been checked."""
    x, y, w = columns
    stairs = _fit_few(x, y, w if len(w) else None, loss, rising, bounds, budget)
    if stairs is not None:
        return stairs
    if not loss.is_mean:
        return _by_loss(columns, loss, rising, bounds, budget, ("targets", "sample_weight"))
    limits = checks.limits_of(loss, bounds)
    workers = threads.num_threads(n_threads, len(x))
    rows = None
    if len(x) >= survey.FEW_ROWS and not is_nearly_sorted(x):  # insertion is faster, but needs valid rows
        rows = checks.guess_labels(*columns, loss)
    if rows is not None:
        with contextlib.suppress(survey.NotLabels):
            return best_of(partial(_stairs, rows, loss, workers), loss, rising, limits)
    rows = checks.check_rows(*columns, loss, workers)
    return best_of(partial(_stairs, rows, loss, workers), loss, rising, limits)


def best_of(
    fits: Callable[[tuple[bool, ...], tuple[float, float]], list[Staircase]],
    loss: Loss,
    rising: bool | None,
    limits: tuple[float, float],
) -> Staircase:
    """The staircase of means that rises, falls, or costs less (None); `fits` makes those of the given directions."""
    if rising is not None:
        return fits((rising,), limits)[0]
    # directions are compared by the means of steps, which are unknown once values are clipped to bounds
    found = fits((True, False), sorted_rows.UNBOUNDED)
    best = found[0] if costs_no_more(loss, found[0], found[1], limits) else found[1]
    within = np.array_equal(best.values.clip(*limits), best.values)
    return best if within else fits((best.increasing,), limits)[0]


def costs_no_more(loss: Loss, one: Staircase, other: Staircase, bounds: tuple[float, float]) -> bool:
    """Whether one staircase of means, clipped to the bounds, costs no more than the other, except for rounding."""
    sizes = [np.abs(values).max() for stairs in (one, other) for values in (stairs.values, stairs.values.clip(*bounds))]
    with np.errstate(all="ignore"):  # a loss may overflow
        first, second = (
            loss.cost_of_means(stairs.values, stairs.weights / stairs.weights.sum(), max(sizes), bounds)
            for stairs in (one, other)
        )
    return not first > second + 1e-12 * abs(second)


def _by_loss(
    columns: Columns, loss: Loss, rising: bool | None, bounds: object, budget: solve.Budget, names: tuple[str, str]
) -> Staircase:
    """The staircase under a loss whose minimiser is not the mean."""
    if rising is None:
        checks.check_is_comparable(loss)
    columns = inputs.copy_targets_and_weights(columns)
    samples, sorted_loss = samples_of(*checks.check_rows_and_parameters(*columns, loss, names))
    found, limits = [], options.check_bounds(bounds)
    for sign in (rising,) if rising is not None else (True, False):
        steps = solve.fit_samples(samples, sorted_loss, decreasing=not sign, bounds=limits, budget=budget)
        steps = steps._replace(left=steps.left + 0.0, right=steps.right + 0.0)
        found.append(Staircase._of_steps(steps, loss, sign))
    best = found[0]
    if len(found) > 1 and not solve.total_loss_is_no_greater(samples, sorted_loss, *found):
        best = found[1]
    checks.refuse_infinite_steps(best.values, options.infinite_allowed(bounds), rising=best.increasing)
    return best


def _stairs(
    rows: checks.Rows, loss: Loss, workers: int, signs: tuple[bool, ...], limits: tuple[float, float]
) -> list[Staircase]:
    """The staircases that rise, fall, or both; raises survey.NotLabels if the guess of labels was wrong."""
    scale = scale_of(rows.targets_extent, rows.weights_extent, len(rows.scores))
    rows = repaired(rows)
    surveyed = rows.order.sign == 0 and survey.suits(rows, scale)
    if rows.order.sign == 0 and not surveyed:
        rows = in_score_order(rows)
    found = []
    for rising in signs:
        if surveyed:
            steps = survey.fit_unsorted(rows, scale, decreasing=not rising, bounds=limits, n_threads=workers)
        else:
            steps = sorted_rows.fit_sorted(rows, scale, decreasing=not rising, bounds=limits)
            rows = rows._replace(buckets=None)
        found.append(staircase_of(steps, loss, rising=rising))
    return found


def staircase_of(steps: Steps, loss: Loss, *, rising: bool) -> Staircase:
    """The staircase of steps that nobody else uses."""
    # adding 0.0 turns -0.0 into 0.0: which of the two comes first depends on the order of rows
    for column in steps[:2]:
        np.add(column, 0.0, out=column)
    return Staircase._of_steps(steps, loss, rising)


def isotonic_regression(
    y: ColumnLike,
    *,
    weights: ColumnLike | None = None,
    increasing: bool = True,
    loss: str | Loss = "squared",
    n_threads: int | None = None,
) -> IsotonicResult:
    """Fit the optimal monotone sequence to a sequence, as `scipy.optimize.isotonic_regression` does, but exactly.

    Parameters
    ----------
    y : array_like of shape (n,)
        Targets.  The result is monotone in their order.
    weights : array_like of shape (n,), optional
        Weights >= 0.  An entry with weight 0 has no influence; it gets the value of the block before it.
    increasing : bool, default True
        Whether the result rises or falls.
    loss : str or Loss, default "squared"
    n_threads : int, optional
        As in `fit`.

    Returns
    -------
    IsotonicResult
        `x`, `weights` and `blocks`, as in SciPy.

    Notes
    -----
    Thread-safety: inputs are only read; the kernels run without the GIL.

    Examples
    --------
    >>> import staircase_fast as sf
    >>> result = sf.isotonic_regression([8, 4, 8, 2, 2, 0, 8])
    >>> result.x
    array([4., 4., 4., 4., 4., 4., 8.])
    >>> result.blocks
    array([0, 6, 7])
    """
    the_loss = loss_of(loss)
    rising = options.check_direction(increasing, auto=False)
    if the_loss.is_mean and not the_loss.per_sample:
        few = _small.regress(y, weights, *the_loss.target_range, not rising)
        if few is not None:
            return IsotonicResult._make(few)
    targets = inputs.read_targets("y", y)
    w = inputs.read_weights("weights", weights, "y", targets)
    inputs.check_same_index(y=y, weights=weights)
    n = len(targets)
    checks.check_parameter_length(the_loss, n)
    workers = threads.num_threads(n_threads, n)
    if not the_loss.is_mean:
        places = np.arange(n, dtype=np.float64)
        columns, budget = (places, targets, w), solve.Budget(n_threads=workers)
        stairs = _fit_few(places, targets, w if len(w) else None, the_loss, rising, None, budget)
        if stairs is None:
            stairs = _by_loss(columns, the_loss, rising, None, budget, ("y", "weights"))
        starts = np.append(stairs.left.astype(np.intp), n)
        starts[0] = 0
        return IsotonicResult(stairs.predict(places), stairs.weights.copy(), starts)
    x, extent, w_extent = summary_of(targets, w, workers)
    checks.check_targets("y", targets, extent, the_loss)
    present = inputs.check_weights("weights", w, w_extent)
    if present is not None:
        targets, w = targets[present], w[present]
    starts, step_weights = sorted_rows.merge(
        sorted_rows.NO_SCORES, targets, w, scale_of(extent, w_extent, n), x,
        decreasing=not rising, bounds=sorted_rows.UNBOUNDED, summarised=present is None,
    )  # fmt: skip
    if present is not None:
        # entries of weight 0 belong to the block before them, leading ones to the first
        starts = np.append(np.flatnonzero(present)[starts[:-1]], n)
        starts[0] = 0
    if len(step_weights) < n:
        sorted_rows.expand(x, starts, workers)
    return IsotonicResult(x, step_weights, starts)
