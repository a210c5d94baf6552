"""`fit` and `fit_groups` of Spark DataFrames.

Each task returns one row: a message, or the error that it found in its rows.  Spark may run a task several times, but
takes the result of one of the attempts, so each partition counts once.  A message is sent to a merging task by the
number of its partition, never by its content, so a repeated task sends it to the same place.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark import TaskContext
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from staircase_fast.batches import Driver, Message, PeekTask, Task
from staircase_fast.batches.fitting import bytes_of
from staircase_fast.errors import InvalidInputError, InvalidTypeError
from staircase_fast.groups import fits as groups
from staircase_fast.groups.staircase_map import StaircaseMap
from staircase_fast.losses import Loss, loss_of
from staircase_fast.staircase.result import Staircase
from staircase_fast.typing import Bounds, Direction

_PEEK_EVERY = 64  # rows
_MERGED_AT_ONCE = 8  # messages
_UNKNOWN_PARTS = _MERGED_AT_ONCE**2  # before the first scan has counted the partitions
_RESULTS = "part int, n_parts int, found binary, error binary"
_COLUMNS = ("left", "right", "step_values", "weights", "counts")

Batches = Iterator[pa.RecordBatch]


def fit(
    df: DataFrame,
    score: str | Column,
    target: str | Column,
    weight: str | Column | None = None,
    *,
    loss: str | Loss = "squared",
    increasing: Direction = True,
    bounds: Bounds = None,
    memory_limit: str | int = "1GB",
) -> Staircase:
    """Fit a staircase to a DataFrame.

    The result equals `staircase_fast.fit` of the same rows, bit for bit, for any number and order of partitions.

    Parameters
    ----------
    df : DataFrame
        It is read three times, so `df.persist()` saves time if it is computed from other data.
    score, target : str or Column
        Columns of numbers, without missing entries.
    weight : str or Column, optional
        Column of weights >= 0.  Rows of weight 0 are ignored.
    loss : str or Loss, default "squared"
        A loss whose steps are means.
    increasing : bool or "auto", default True
        Whether values increase or decrease with the score.  "auto" chooses the better fit.
    bounds : (lo, hi), optional
        Bounds on the values; None means no bound.
    memory_limit : str or int, default "1GB"
        Memory of the driver for this fit.  If it is low, the rows may be read more often.

    Returns
    -------
    Staircase

    Examples
    --------
    >>> from staircase_fast import spark as sfs
    >>> stairs = sfs.fit(df, score="score", target="clicked", loss="log")  # doctest: +SKIP
    """
    rows, names = _select(df, score=score, target=target, weight=weight)
    driver = Driver(
        loss=loss,
        increasing=increasing,
        bounds=bounds,
        memory_limit=bytes_of(memory_limit, least=1),
        n_tables=_MERGED_AT_ONCE + 1,
    )
    n_parts = _UNKNOWN_PARTS
    while (task := driver.next()) is not None:
        peek = isinstance(task, PeekTask)
        source = rows.where(F.monotonically_increasing_id() % _PEEK_EVERY == 0) if peek else rows
        messages, n_parts = _scan(task, source, names, n_parts)
        try:
            driver.receive(_merged(messages) if messages else task([]), 1 / _PEEK_EVERY if peek else 1.0)
        except InvalidInputError as error:
            _name_column(error, names)
            raise
    return driver.staircase()


def fit_groups(
    df: DataFrame,
    score: str | Column,
    target: str | Column,
    group: str | Column,
    weight: str | Column | None = None,
    *,
    loss: str | Loss = "squared",
    increasing: Direction = True,
    bounds: Bounds = None,
) -> StaircaseMap:
    """Fit a staircase to each group of rows of a DataFrame.

    The result equals `staircase_fast.fit_groups` of the same rows, bit for bit.

    Parameters
    ----------
    df : DataFrame
    score, target : str or Column
        Columns of numbers, without missing entries.
    group : str or Column
        Column of integers, strings or booleans, without missing entries.
    weight : str or Column, optional
        Column of weights >= 0.  Rows of weight 0 are ignored, but each group must have a weight > 0.
    loss : str or Loss, default "squared"
        One for all groups, with the same parameters for all rows.
    increasing : bool or "auto", default True
        Whether values increase or decrease with the score.  "auto" chooses for each group.
    bounds : (lo, hi), optional
        Bounds on the values of all groups; None means no bound.

    Returns
    -------
    StaircaseMap
        A mapping from keys, in ascending order, to staircases.

    Notes
    -----
    Spark moves the rows of each group to one partition.  The rows of a partition must fit in the memory of a task; set
    `spark.sql.shuffle.partitions` for more and smaller partitions.  A group that is too large for that can be fitted
    by `fit` of ``df.where(...)``.

    Examples
    --------
    >>> from staircase_fast import spark as sfs
    >>> found = sfs.fit_groups(df, score="score", target="clicked", group="country")  # doctest: +SKIP
    """
    the_loss = loss_of(loss)
    if the_loss.per_sample:
        raise InvalidInputError("loss", "must have the same parameters for all rows", value=loss)
    options: dict[str, Any] = {"loss": the_loss, "increasing": increasing, "bounds": bounds, "n_threads": 1}
    rows, names = _select(df, score=score, target=target, group=group, weight=weight)

    def fit_partition(batches: Batches) -> Iterator[bytes]:
        if tables := list(batches):
            scores, targets, keys, *weights = pa.Table.from_batches(tables).columns
            found = groups.fit_groups(scores, targets, keys, sample_weight=weights[0] if weights else None, **options)
            yield pickle.dumps(found)

    found, _ = _collected(rows.repartition("group").mapInArrow(_results_of(fit_partition, names), _RESULTS))
    if not found:
        raise InvalidInputError("df", "must have at least one row", found="got none")
    return _joined([pickle.loads(one) for one in found])


def _select(df: DataFrame, **columns: str | Column | None) -> tuple[DataFrame, dict[str, str]]:
    """The columns, renamed to the names of the arguments; and their own names by the arguments of `sf.fit`."""
    if not isinstance(df, DataFrame):
        raise InvalidTypeError("df", "must be a Spark DataFrame", value=df)
    given = {argument: column for argument, column in columns.items() if column is not None}
    for argument, column in given.items():
        if not isinstance(column, (str, Column)):
            raise InvalidTypeError(argument, "must be the name of a column, or a Column", value=column)
    names = df.select(*given.values()).columns
    rows = df.select(
        *((F.col(column) if isinstance(column, str) else column).alias(name) for name, column in given.items())
    )
    arguments = {"score": "scores", "target": "targets", "weight": "sample_weight", "group": "groups"}
    return rows, {arguments[argument]: name for argument, name in zip(given, names, strict=True)}


def _scan(task: Task, rows: DataFrame, names: dict[str, str], n_parts: int) -> tuple[list[bytes], int]:
    """At most _MERGED_AT_ONCE messages, if there are about `n_parts` partitions; and the number of partitions."""

    def scan_partition(batches: Batches) -> Iterator[bytes]:
        scan = task.begin()
        for batch in batches:
            try:
                scan.add(*batch.columns)
            except InvalidInputError as error:
                error.file = None
                if error.index is not None:
                    error.row = scan.tally.n_given + error.index
                raise
        yield scan.message().to_bytes()

    found = rows.mapInArrow(_results_of(scan_partition, names), _RESULTS)
    while n_parts > _MERGED_AT_ONCE:
        n_parts = -(-n_parts // _MERGED_AT_ONCE)
        found = found.repartition(n_parts, "part").mapInArrow(_merge_partition, _RESULTS)
    return _collected(found)


def _merged(messages: Iterable[bytes]) -> Message:
    first, *others = map(Message.from_bytes, messages)
    return first.merge(*others)


# On executors: functions for `mapInArrow`.


def _results_of(
    work: Callable[[Batches], Iterator[bytes]], names: dict[str, str]
) -> Callable[[Batches], Iterator[pa.RecordBatch]]:
    """The results of a partition, or the error in its rows: raised here, Spark would try again and hide the message."""

    def run(batches: Batches) -> Iterator[pa.RecordBatch]:
        part = _partition()
        try:
            for found in work(batches):
                yield _result(part, 1, found=found)
        except InvalidInputError as error:
            error.file = f"partition {part}" if error.argument in names else None
            _name_column(error, names)
            yield _result(part, 1, error=pickle.dumps(error))
        except Exception as error:
            error.add_note(f"in partition {part}")
            raise

    return run


def _merge_partition(batches: Batches) -> Iterator[pa.RecordBatch]:
    """One message for all that the partition has received; errors stay as they are."""
    found, n_parts = [], 0
    for batch in batches:
        for part, n, message, error in zip(*batch.columns, strict=True):
            if error.is_valid:
                yield _result(part.as_py(), n.as_py(), error=error.as_py())
            else:
                found.append(message.as_buffer())
                n_parts += n.as_py()
    if found:
        yield _result(_partition(), n_parts, found=_merged(found).to_bytes())


def _partition() -> int:
    return TaskContext.get().partitionId()


def _result(part: int, n_parts: int, found: bytes | None = None, error: bytes | None = None) -> pa.RecordBatch:
    columns = [pa.array([part], pa.int32()), pa.array([n_parts], pa.int32())]
    columns += [pa.array([one], pa.binary()) for one in (found, error)]
    return pa.RecordBatch.from_arrays(columns, ["part", "n_parts", "found", "error"])


# On the driver.


def _collected(results: DataFrame) -> tuple[list[bytes], int]:
    """What was found, and the number of partitions; raises the error of the first partition that has one."""
    rows = sorted(results.collect(), key=lambda row: row.part)
    errors = [pickle.loads(row.error) for row in rows if row.error is not None]
    if errors:
        raise errors[0]
    return [row.found for row in rows], sum(row.n_parts for row in rows)


def _name_column(error: InvalidInputError, names: dict[str, str]) -> None:
    error.column = names.get(error.argument)
    if error.argument == "source":
        error.argument = "df"


def _joined(maps: list[StaircaseMap]) -> StaircaseMap:
    """One map of all groups."""
    keys = [key for one in maps for key in one]
    order = sorted(range(len(keys)), key=keys.__getitem__)
    sizes = np.concatenate([np.diff(one.offsets) for one in maps])
    begins = (np.cumsum(sizes) - sizes)[order]
    offsets = np.append(0, np.cumsum(sizes[order]))
    steps = np.repeat(begins - offsets[:-1], sizes[order]) + np.arange(offsets[-1])

    def column(name: str) -> NDArray[Any]:
        return np.concatenate([getattr(one, name) for one in maps])

    exact = all(one.lower is one.step_values and one.upper is one.step_values for one in maps)
    names = _COLUMNS if exact else (*_COLUMNS, "lower", "upper")
    return StaircaseMap(
        [keys[place] for place in order],
        offsets,
        **{name: column(name)[steps] for name in names},
        loss=maps[0].loss,
        increasing=column("increasing")[order],
    )
