"""Fits and predictions of Dask collections, on threads, processes or a cluster.

The rows stay where they are.  Each scan of the data is a tree of tasks: a task scans partitions and returns a message
(`staircase_fast.batches`), and further tasks merge messages.  Only the last message travels to the client.  Tasks have
no side effects, so a task that is retried counts once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from staircase_fast.batches import Driver, Message, PeekTask, Task
from staircase_fast.batches import groups as grouped
from staircase_fast.batches.fitting import bytes_of
from staircase_fast.batches.groups import BYTES_PER_ROW, GroupPlan, Piece
from staircase_fast.errors import InvalidInputError, InvalidTypeError
from staircase_fast.groups.staircase_map import StaircaseMap
from staircase_fast.inputs.options import check_choice, check_interpolation, import_optional, refuse_choice
from staircase_fast.losses import Loss, loss_of
from staircase_fast.staircase.result import Staircase
from staircase_fast.typing import Bounds, Direction, Interpolation, OutOfBounds

dask = import_optional("dask", "`staircase_fast.dask`", "dask")
RemoteException = import_optional("dask.multiprocessing", "`staircase_fast.dask`", "dask").RemoteException
__all__ = ["fit", "fit_groups", "predict"]

_COLUMN = "the name of one of the columns"
_FAN_IN = 4  # messages that are merged by one task
_TABLES = 8  # messages that wait in one process
_MOST_PEEKED, _PEEK_EVERY = 8, 4  # partitions; more than one in _PEEK_EVERY are not worth another scan
_FEWEST_TASKS, _MOST_BUNDLED = 4, 8  # tasks of a scan; partitions of a task
_GROUPS_AT_ONCE = 8  # large groups that share the memory limit


class _Source(NamedTuple):
    """Partitions of a collection, each a tuple of delayed objects: a DataFrame, or blocks of arrays or None."""

    partitions: list[tuple[Any, ...]]
    names: tuple[Any, ...] | None  # of the columns for scores, targets, weights and groups; None: arrays
    n_rows: int | None


def fit(
    data: Any,
    score: Any = None,
    target: Any = None,
    weight: Any = None,
    *,
    loss: str | Loss = "squared",
    increasing: Direction = True,
    bounds: Bounds = None,
    memory_limit: int | str = "1GB",
) -> Staircase:
    """Fit a staircase to a Dask DataFrame or to Dask arrays.

    The result equals `staircase_fast.fit` of all rows, bit for bit, for any partitioning and any scheduler.

    Parameters
    ----------
    data : dask.dataframe.DataFrame or dask.array.Array of shape (n,)
        A DataFrame, or an array of scores.
    score : column name
        The column of scores.  Not given if `data` is an array.
    target, weight : column name or dask.array.Array of shape (n,)
        Columns of the DataFrame, or arrays beside an array of scores.  Without `weight`, all rows have weight 1.
    loss : str or Loss, default "squared"
        A loss whose steps are means: squared, log, Poisson, gamma, Tweedie or logistic.
    increasing : bool or "auto", default True
        Whether values increase or decrease with the score.
    bounds : (lo, hi), optional
        Bounds on the values; None means no bound.
    memory_limit : int or str, default "1GB"
        About how many bytes messages may take in one process, in addition to the partitions.  With less memory, a fit
        of very many rows may need a further scan.

    Returns
    -------
    Staircase

    Notes
    -----
    The data is computed twice, and some partitions once more to sample scores: call ``data.persist()`` first if that
    takes long and the cluster has enough memory.  Data that differ between the scans raise an error.

    The scheduler is that of Dask: threads, unless a `distributed.Client` is active or `dask.config` sets another.

    Examples
    --------
    >>> import dask.array as da
    >>> import staircase_fast as sf
    >>> from staircase_fast import dask as sfd
    >>> scores = da.from_array([0.1, 0.4, 0.35, 0.8], chunks=2)
    >>> targets = da.from_array([0, 0, 1, 1], chunks=2)
    >>> sfd.fit(scores, target=targets) == sf.fit([0.1, 0.4, 0.35, 0.8], [0, 0, 1, 1])
    True
    """
    source = _source(data, score, target, weight)
    memory: Any = {"memory_limit": bytes_of(memory_limit, least=1), "n_tables": _TABLES}
    driver = Driver(loss=loss, increasing=increasing, bounds=bounds, n_rows=source.n_rows, **memory)
    return _run(source, {None: driver})[None]


def fit_groups(
    data: Any,
    score: Any = None,
    target: Any = None,
    group: Any = None,
    weight: Any = None,
    *,
    loss: str | Loss = "squared",
    increasing: Direction = True,
    bounds: Bounds = None,
    memory_limit: int | str = "1GB",
) -> StaircaseMap:
    """Fit a staircase to each group of rows of a Dask DataFrame or of Dask arrays.

    The result equals `staircase_fast.fit_groups` of all rows, bit for bit.  The rows of a group may be in any
    partitions.

    Parameters
    ----------
    data, score, target
        As in `fit`.
    group : column name or dask.array.Array of shape (n,)
        The group of each row: integers, strings, bools or categories.
    weight, loss, increasing, bounds
        As in `fit`.  "auto" chooses a direction for each group.
    memory_limit : int or str, default "1GB"
        About how many bytes one task may take.

    Returns
    -------
    StaircaseMap

    Notes
    -----
    A first scan counts the rows of each group.  Groups that fit into one task are then moved: each task gets the rows
    of some groups and returns their steps.  Together these rows must fit into the memory of the workers, or into the
    disk space to which they spill.  The rows of larger groups stay where they are, as in `fit`.

    Examples
    --------
    >>> import dask.dataframe as dd
    >>> import pandas as pd
    >>> from staircase_fast import dask as sfd
    >>> frame = pd.DataFrame({"p": [0.1, 0.9, 0.4, 0.5], "y": [0, 1, 1, 0], "city": ["paris", "paris", "rome", "rome"]})
    >>> found = sfd.fit_groups(dd.from_pandas(frame, npartitions=3), score="p", target="y", group="city")
    >>> found["rome"].values
    array([0.5])
    """
    if group is None:
        raise InvalidInputError("group", "must be given", value=group)
    source = _source(data, score, target, weight, group)
    memory = bytes_of(memory_limit, least=1)
    options: Any = {"increasing": increasing, "bounds": bounds, "loss": loss_of(loss)}
    Driver(**options)  # checks the options
    found = _tree(source, _bundles(source, 1), count_groups, (options["loss"],), grouped.merge_counts)
    with _named(source.names):
        plan = GroupPlan(found, max(1, memory // BYTES_PER_ROW))
    large: dict[int, Staircase] = {}
    for first in range(0, len(plan.large), _GROUPS_AT_ONCE):
        places = plan.large[first : first + _GROUPS_AT_ONCE]
        share: Any = {"memory_limit": memory // len(places), "n_tables": _TABLES}
        drivers = {place: Driver(n_rows=int(plan.sizes[place]), **share, **options) for place in places}
        large |= _run(source, drivers, plan)
    return plan.join(_fit_ranges(source, plan, options), large, options["loss"])


def predict(
    stairs: Staircase | StaircaseMap,
    data: Any,
    score: Any = None,
    group: Any = None,
    *,
    interpolation: Interpolation = "step",
    out_of_bounds: OutOfBounds = "clip",
) -> Any:
    """Evaluate a staircase on a Dask DataFrame or array.  Nothing is computed yet.

    Parameters
    ----------
    stairs : Staircase or StaircaseMap
    data : dask.dataframe.DataFrame or dask.array.Array
        A DataFrame, or an array of scores.
    score : column name
        The column of scores.  Not given if `data` is an array.
    group : column name or dask.array.Array
        The group of each row, if `stairs` is a `StaircaseMap`.
    interpolation, out_of_bounds
        As in `Staircase.predict`.

    Returns
    -------
    dask.dataframe.Series or dask.array.Array
        Of float64.  A Series has the name of the column of scores, and the index and divisions of `data`.

    Examples
    --------
    >>> import dask.array as da
    >>> import staircase_fast as sf
    >>> from staircase_fast import dask as sfd
    >>> stairs = sf.fit([0.1, 0.4, 0.35, 0.8], [0, 0, 1, 1])
    >>> sfd.predict(stairs, da.from_array([0.2, 0.38, 0.9], chunks=2)).compute()
    array([0. , 0.5, 1. ])
    """
    if not isinstance(stairs, (Staircase, StaircaseMap)):
        raise InvalidTypeError("stairs", "must be a Staircase or a StaircaseMap", value=stairs)
    check_interpolation(interpolation)
    check_choice("out_of_bounds", out_of_bounds, ("clip", "nan", "raise"))
    wants_groups = isinstance(stairs, StaircaseMap)
    if wants_groups != (group is not None):
        requirement = "must be given for a StaircaseMap" if wants_groups else "must not be given for a Staircase"
        raise InvalidInputError("group", requirement, value=group)
    options = {"interpolation": interpolation, "out_of_bounds": out_of_bounds}
    if _is_frame(data):
        names = _check_names(data, {"score": score, "group": group})
        columns = data[[name for name in names if name is not None]]
        meta = data._meta[names[0]].astype(np.float64)
        return columns.map_partitions(_predict_frame, stairs, *names, **options, meta=meta)
    arrays = _check_arrays(data, score, {"group": group})
    blocks = [array for array in arrays if array is not None]
    return dask.array.map_blocks(_predict_block, *blocks, stairs=stairs, **options, meta=np.empty((0,) * data.ndim))


def _predict_frame(frame: Any, stairs: Any, score: Any, group: Any, partition_info: Any = None, **options: Any) -> Any:
    with _named((score, None, None, group), partition_info["number"] if partition_info else 0):
        columns = [frame[name] for name in (score, group) if name is not None]
        values = stairs.predict(*columns, n_threads=1, **options)
    return type(columns[0])(values, index=frame.index, name=score)


def _predict_block(*columns: Any, stairs: Any, block_info: Any = None, **options: Any) -> Any:
    with _named(None, block_info[None]["chunk-location"] if block_info else 0):
        return stairs.predict(*columns, n_threads=1, **options)


# Input: collections become partitions.


def _source(data: Any, score: Any, target: Any, weight: Any, group: Any = None) -> _Source:
    if target is None:
        raise InvalidInputError("target", "must be given", value=target)
    if _is_frame(data):
        names = _check_names(data, {"score": score, "target": target, "weight": weight, "group": group})
        columns = data[list(dict.fromkeys(name for name in names if name is not None))]
        return _Source([(partition,) for partition in columns.to_delayed()], names, None)
    if data.ndim != 1:
        raise InvalidInputError("data", "must have one dimension", found=f"got shape {data.shape}")
    arrays = _check_arrays(data, score, {"target": target, "weight": weight, "group": group})
    n_blocks = data.numblocks[0]
    blocks = [[None] * n_blocks if array is None else array.to_delayed().tolist() for array in arrays]
    return _Source(list(zip(*blocks, strict=True)), None, None if math.isnan(data.shape[0]) else data.shape[0])


def _is_frame(data: Any) -> bool:
    """Whether this is a Dask DataFrame; otherwise it must be a Dask array."""
    if dask.is_dask_collection(data) and hasattr(data, "to_delayed"):
        if hasattr(data, "columns") and data.ndim == 2:
            return True
        if hasattr(data, "chunks"):
            return False
    hint = "For a Series, pass its DataFrame and the name of the column."
    raise InvalidTypeError("data", "must be a Dask DataFrame or a Dask array", found=f"got {type(data)}", hint=hint)


def _check_names(data: Any, given: dict[str, Any]) -> tuple[Any, ...]:
    columns = list(data.columns)
    for argument, name in given.items():
        is_lazy = dask.is_dask_collection(name)
        count = 0 if is_lazy else columns.count(name)
        if count > 1:
            raise InvalidInputError("data", f"must have one column {name!r}", found=f"got {count}", hint="Rename them.")
        if count == 0 and (name is not None or argument not in ("weight", "group")):
            refuse_choice(argument, type(name) if is_lazy else name, columns, what=_COLUMN)
    return tuple(given.values())


def _check_arrays(scores: Any, score: Any, others: dict[str, Any]) -> list[Any]:
    """The arrays with the chunks of the scores."""
    if score is not None:
        raise InvalidInputError("score", "must not be given if `data` is an array of scores", value=score)
    found: list[Any] = [scores]
    for argument, array in others.items():
        if array is None:
            found.append(None)
            continue
        if not dask.is_dask_collection(array) or not hasattr(array, "chunks"):
            raise InvalidTypeError(argument, "must be a Dask array, as `data` is", found=f"got {type(array)}")
        unknown = math.isnan(sum(array.shape + scores.shape))
        of_both = [(one.numblocks if unknown else one.shape) for one in (scores, array)]
        if of_both[0] != of_both[1]:
            requirement = f"must have the same {'number of blocks' if unknown else 'shape'}"
            text = f"got {of_both[0]} and {of_both[1]}"
            raise InvalidInputError("data", requirement, other=argument, found=text)
        found.append(array if unknown or array.chunks == scores.chunks else array.rechunk(scores.chunks))
    return found


@contextmanager
def _named(names: tuple[Any, ...] | None, partition: Any = None) -> Iterator[None]:
    """Name the partition and the column in errors about input."""
    try:
        yield
    except InvalidInputError as error:
        if partition is not None:
            error.file = f"partition {partition}"
        if names is not None:
            columns = dict(zip(("scores", "targets", "sample_weight", "groups"), names, strict=True))
            error.column = columns.get(error.argument, error.column)
        if error.argument == "source":
            error.argument, error.hint = "data", "Call `persist` first."
        raise


# Scans: trees of tasks.


def _run(source: _Source, drivers: dict[Any, Driver], plan: GroupPlan | None = None) -> dict[Any, Staircase]:
    """Scan the data until all staircases are known: of the groups at some places, or of all rows together."""
    size = 1
    while tasks := {place: task for place, driver in drivers.items() if (task := driver.next()) is not None}:
        bundles = _bundles(source, size)
        peek = all(isinstance(task, PeekTask) for task in tasks.values())
        if peek:
            n = max(1, min(_MOST_PEEKED, len(bundles) // _PEEK_EVERY))
            bundles = [bundles[(2 * place + 1) * len(bundles) // (2 * n)] for place in range(n)]
        found = _tree(source, bundles, scan_partitions, (tasks, plan), grouped.merge_messages)
        share = len(bundles) / len(source.partitions) if peek else 1.0
        with _named(source.names):
            for place, message in found.items():
                drivers[place].receive(message, share)
        if peek:
            size = _bundle_size(source, [driver.next() for driver in drivers.values()], found, share)
    return {place: driver.staircase() for place, driver in drivers.items()}


def _bundles(source: _Source, size: int) -> list[tuple[int, list[Any]]]:
    """The partitions that one task scans, and the number of the first one."""
    return [(first, source.partitions[first : first + size]) for first in range(0, len(source.partitions), size)]


def _bundle_size(source: _Source, tasks: Sequence[Any], found: dict[Any, Message], share: float) -> int:
    """How many partitions one task scans: its messages should be much smaller than its rows."""
    n_rows = source.n_rows or sum(message.tally.n_given for message in found.values()) / share
    n_buckets = sum(task.buckets.n for task in tasks)  # which take about as many bytes as rows do
    n_needed = int(8 * n_buckets * len(source.partitions) / max(1, n_rows))
    return max(1, min(n_needed, _MOST_BUNDLED, len(source.partitions) // _FEWEST_TASKS))


def _tree(
    source: _Source, bundles: list[Any], scan: Callable[..., Any], arguments: tuple[Any, ...], merge: Callable[..., Any]
) -> Any:
    """Scan bundles of partitions and merge the results in a tree."""
    shared = [dask.delayed(argument, traverse=False) for argument in arguments]  # sent once, not with each task
    level = [dask.delayed(scan)(source.names, first, bundle, *shared) for first, bundle in bundles]
    while len(level) > 1:
        level = [dask.delayed(merge)(level[first : first + _FAN_IN]) for first in range(0, len(level), _FAN_IN)]
    return _compute(source, level)[0]


def _compute(source: _Source, results: list[Any]) -> tuple[Any, ...]:
    try:
        return tuple(dask.compute(*results))
    except RemoteException as error:  # as in processes; the other schedulers raise the exception itself
        _add_note(source, error.exception)
        raise error.exception from error
    except Exception as error:
        _add_note(source, error)
        raise


def _add_note(source: _Source, error: Exception) -> None:
    """Find the partition that raises this error, unless the error names it or tells that a worker was lost."""
    if isinstance(error, InvalidInputError) or type(error).__module__.startswith("distributed"):
        return
    first, last = 0, len(source.partitions)
    while last - first > 1:  # by bisection: computes each partition about once more, many at a time
        middle = (first + last) // 2
        if _error_of(source.partitions[first:middle]) is None:
            first = middle
        else:
            last = middle
    if type(_error_of(source.partitions[first:last])) is type(error):
        error.add_note(f"in partition {first} of `data`")


def _error_of(partitions: list[Any]) -> Exception | None:
    try:
        blocks = (block for partition in partitions for block in partition if block is not None)
        dask.compute(*(dask.delayed(type)(block) for block in blocks))  # only the types travel
    except RemoteException as error:
        return error.exception
    except Exception as error:  # noqa: BLE001  (whatever a partition raises)
        return error
    return None


# Tasks: these functions run on the workers.


def _columns(names: tuple[Any, ...] | None, partition: tuple[Any, ...]) -> tuple[Any, Any, Any, Any]:
    """The scores, targets, weights or None, and groups or None of a partition."""
    x, y, w, groups = partition if names is None else (name if name is None else partition[0][name] for name in names)
    return x, y, w, groups


def scan_partitions(
    names: tuple[Any, ...] | None, first: int, bundle: list[Any], tasks: dict[Any, Task], plan: GroupPlan | None
) -> dict[Any, Message]:
    """The messages of some partitions."""
    scans = {place: task.begin() for place, task in tasks.items()}
    for number, partition in enumerate(bundle, first):
        with _named(names, number):
            x, y, w, groups = _columns(names, partition)
            if plan is None:
                scans[None].add(x, y, w)
            else:
                grouped.scan_groups(scans, x, y, w, groups, plan)
    return {place: scan.message() for place, scan in scans.items()}


def count_groups(names: tuple[Any, ...] | None, number: int, bundle: list[Any], loss: Loss) -> grouped.GroupCounts:
    """The number of rows of each group of a partition."""
    with _named(names, number):
        return grouped.count_groups(*_columns(names, bundle[0]), loss)


def split_partition(names: tuple[Any, ...] | None, number: int, bundle: list[Any], plan: GroupPlan) -> list[Piece]:
    """The rows of each range of groups of a partition."""
    with _named(names, number):
        return grouped.split_rows(*_columns(names, bundle[0]), plan)


def _fit_ranges(source: _Source, plan: GroupPlan, options: dict[str, Any]) -> dict[int, StaircaseMap]:
    """Move the rows of each range of groups to one task, which fits them."""
    shared = dask.delayed(plan, traverse=False)
    split = dask.delayed(split_partition, nout=len(plan.small))
    pieces = [split(source.names, number, bundle, shared) for number, bundle in _bundles(source, 1)]
    fits = [
        dask.delayed(grouped.fit_range)(list(own), shared, place, **options)
        for place, own in zip(plan.small, zip(*pieces, strict=True), strict=True)
    ]
    with _named(source.names):
        return dict(zip(plan.small, _compute(source, fits), strict=True))
