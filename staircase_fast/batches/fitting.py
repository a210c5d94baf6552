"""`fit_batches`: the driver in one process, with threads over the parts of a source."""

from __future__ import annotations

import itertools
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, Protocol, TypedDict, Unpack, overload

from staircase_fast import threads
from staircase_fast.batches.driver import Driver
from staircase_fast.batches.messages import Message
from staircase_fast.batches.scans import PeekTask, Task
from staircase_fast.batches.sources import Batch, Names, Part, Source, columns_of, source_of
from staircase_fast.errors import InvalidInputError, InvalidTypeError
from staircase_fast.groups.staircase_map import StaircaseMap
from staircase_fast.losses import Loss
from staircase_fast.staircase.result import Staircase
from staircase_fast.typing import Bounds, Direction

_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "KI": 2**10, "MI": 2**20, "GI": 2**30, "TI": 2**40}
_LEAST_MEMORY = 10**7
_PEEKED_PARTS = 16

ARGUMENTS = ("scores", "targets", "sample_weight", "groups")
Progress = Callable[[str, int, int | None], object]


class BatchOptions(TypedDict, total=False):
    """The options of `fit_batches`."""

    loss: str | Loss
    increasing: Direction
    bounds: Bounds
    memory_limit: str | int
    n_threads: int | None
    progress: Progress | None


@overload
def fit_batches(
    source: Any,
    score: str | None = None,
    target: str | None = None,
    weight: str | None = None,
    *,
    group: None = None,
    **options: Unpack[BatchOptions],
) -> Staircase: ...
@overload
def fit_batches(
    source: Any,
    score: str | None = None,
    target: str | None = None,
    weight: str | None = None,
    *,
    group: str,
    **options: Unpack[BatchOptions],
) -> StaircaseMap: ...
def fit_batches(
    source: Any,
    score: str | None = None,
    target: str | None = None,
    weight: str | None = None,
    *,
    group: str | None = None,
    loss: str | Loss = "squared",
    increasing: Direction = True,
    bounds: Bounds = None,
    memory_limit: str | int = "1GB",
    n_threads: int | None = None,
    progress: Progress | None = None,
) -> Staircase | StaircaseMap:
    """Fit the optimal monotone transform of scores to data that does not fit into memory.

    The result is that of one `fit` or `fit_groups` of all rows, bit for bit.  The rows are read twice; more often if
    the first batches are not typical, if `memory_limit` is low, or if groups do not fit into it.

    Parameters
    ----------
    source : path, list of paths, Dataset, Table, LazyFrame, relation, list, function or iterator
        Parquet, CSV or Arrow files: a path, a pattern such as ``"part-*.parquet"``, a folder, or a list of them.  A
        pyarrow Dataset or Table, a polars LazyFrame, a DuckDB relation.  A list of batches in memory.  A function
        without arguments that returns a new iterator of batches each time.  An iterator is read only once; memory
        then grows with the number of distinct scores.

        A batch is a tuple (scores, targets) or (scores, targets, weights), a dict of columns, a pandas or polars
        DataFrame, or a pyarrow RecordBatch or Table.  With `group`, tuples are (scores, targets, weights or None,
        groups), and an iterator raises an error.
    score, target, weight : str, optional
        Names of the columns.  Tuples need none.
    group : str, optional
        Name of the column of groups: integers, strings or bools.  Each group has its own staircase.
    loss : str or Loss, default "squared"
        A loss whose steps are means: squared, log, Poisson, gamma, Tweedie.  With `group`, any loss without parameters
        per row; then each group must fit into memory if steps are not means.
    increasing, bounds
        As in `fit`.
    memory_limit : str or int, default "1GB"
        Memory for tables and rows of the fit, for example ``"500MB"``.  Batches and the libraries that read them need
        memory in addition.
    n_threads : int, optional
        Number of threads.  Defaults to `get_num_threads()`.  The result does not depend on it.
    progress : callable, optional
        Called as ``progress(stage, n_rows, n_total)`` after each batch: the name of the scan, the rows read in this
        scan, and the number of rows if it is known.

    Returns
    -------
    Staircase, or StaircaseMap with `group`

    Notes
    -----
    All scans must see the same rows, in any order.  Otherwise an error is raised.

    With `group`, a first scan counts the rows of each group.  Further scans gather the rows of as many groups as fit
    into memory.  Groups with too many rows for that are fitted where the rows are, many of them in one scan.

    Examples
    --------
    >>> import staircase_fast as sf
    >>> batches = [([0.1, 0.4], [0, 0]), ([0.35, 0.8], [1, 1])]
    >>> sf.fit_batches(batches) == sf.fit([0.1, 0.4, 0.35, 0.8], [0, 0, 1, 1])
    True

    A function that returns an iterator of dicts:

    >>> def batches():
    ...     for start in range(0, 1000, 100):
    ...         yield {"score": range(start, start + 100), "sold": [0, 1] * 50}
    >>> sf.fit_batches(batches, "score", "sold").values
    array([0. , 0.5, 1. ])
    >>> found = sf.fit_batches(batches, "score", "sold", group="score")
    >>> len(found)
    1000
    """
    names = _check_names(score, target, weight, group)
    opened = source_of(source, list(dict.fromkeys(name for name in names if name is not None)))
    options: dict[str, Any] = {
        "loss": loss,
        "increasing": increasing,
        "bounds": bounds,
        "memory_limit": bytes_of(memory_limit),
    }
    if group is not None:
        from staircase_fast.batches.fitting_groups import fit_source_groups  # which imports this module

        return fit_source_groups(opened, names, options, n_threads, progress)
    found: Staircase = run_driver(partial(Driver, **options), opened, names, n_threads, progress)
    return found


def run_driver(
    make: Callable[..., Driver],
    opened: Source,
    names: Names,
    n_threads: int | None = None,
    progress: Progress | None = None,
) -> Any:
    """The result of a driver; `make` gets its options for this source."""
    workers = workers_for(opened, n_threads)
    driver = make(n_rows=opened.n_rows, n_tables=workers, n_threads=n_threads, one_scan=opened.one_shot)
    run_drivers({None: driver}, partial(_Adding, names), opened, workers, progress)
    return driver.result()


def run_drivers(
    drivers: Mapping[Any, Driver],
    begin: Callable[[dict[Any, Task]], Adding],
    opened: Source,
    workers: int,
    progress: Progress | None = None,
    most_peeked: int = _PEEKED_PARTS,
) -> None:
    """Scan a source until all drivers have their results.

    `begin` gets the tasks of a scan; its messages are dicts with the same keys.
    """
    total: int | None = None
    while tasks := {key: task for key, driver in drivers.items() if (task := driver.next()) is not None}:
        task = next(iter(tasks.values()))
        if isinstance(task, PeekTask):
            first, *others = scan_parts(partial(begin, tasks), _first_batches(opened, most_peeked), 1)
        else:
            report = ProgressOfScan(progress, task.kind, total)
            first, *others = scan_parts(partial(begin, tasks), opened.parts(), workers, report)
            total = report.n_rows
        for key, message in first.items():
            for other in others:
                message.add(other[key])
            drivers[key].receive(message)


def workers_for(opened: Source, n_threads: int | None) -> int:
    """The number of threads that read a source."""
    workers = threads.num_threads(n_threads, threads.ROWS_EACH)
    return min(workers, opened.n_parts or workers) or 1


class ProgressOfScan:
    """Counts the rows of a scan and reports them."""

    def __init__(self, report: Progress | None, stage: str, total: int | None) -> None:
        self.report, self.stage, self.total, self.n_rows = report, stage, total, 0
        self.lock = threading.Lock()

    def __call__(self, n_rows: int) -> None:
        with self.lock:
            self.n_rows += n_rows
            if self.report is not None:
                self.report(self.stage, self.n_rows, self.total)


def _first_batches(source: Source, most: int) -> Iterator[Part]:
    """The first batch of some parts, spread over the source if its parts are known."""
    parts: Iterable[Part] = source.parts()
    if source.n_parts is not None:
        known = list(parts)
        parts = known[:: max(1, len(known) // most)]
    for part in itertools.islice(parts, most):
        yield lambda part=part: itertools.islice(part(), 1)  # type: ignore[misc]


class Adding(Protocol):
    """What one thread does with the batches it gets."""

    def add(self, batch: Batch) -> int:
        """Add a batch; return the number of its rows."""

    def message(self) -> Any:
        """The result for all batches."""


def scan_parts(
    begin: Callable[[], Adding], parts: Iterable[Part], n_workers: int, report: Callable[[int], None] = lambda _: None
) -> list[Any]:
    """The message of each thread: each takes the next part that is left, until an error or an interrupt."""
    left, lock, stop, done = iter(parts), threading.Lock(), threading.Event(), threading.Condition()
    active: set[int] = set()

    def next_part() -> Part | None:
        with lock:
            return None if stop.is_set() else next(left, None)

    def work(place: slice) -> Any:
        active.add(place.start)
        try:
            adding = begin()
            while (part := next_part()) is not None:
                for batch in part():
                    if stop.is_set():
                        break
                    report(adding.add(batch))
            if place.start == 0:  # the calling thread waits here, where an interrupt stops the others
                with done:
                    done.wait_for(lambda: len(active) == 1)
            return adding.message()
        except BaseException:
            stop.set()
            raise
        finally:
            with done:
                active.discard(place.start)
                done.notify_all()

    return threads.each(work, threads.cut(n_workers, n_workers))


class _Adding:
    """Adds batches to a scan of all rows."""

    def __init__(self, names: Names, tasks: dict[Any, Task]) -> None:
        self.names, self.scans = names, {key: task.begin() for key, task in tasks.items()}

    def add(self, batch: Batch) -> int:
        (scan,) = self.scans.values()
        before = scan.tally.n_given
        with located(batch, self.names):
            scan.add(*columns_of(batch, self.names)[:3], batch.name)
        return scan.tally.n_given - before

    def message(self) -> dict[Any, Message]:
        return {key: scan.message() for key, scan in self.scans.items()}


@contextmanager
def located(batch: Batch | None, names: Names) -> Iterator[None]:
    """Name the file, the column and the row in errors about a batch, or the column in errors about all rows."""
    try:
        yield
    except InvalidInputError as error:
        error.column = dict(zip(ARGUMENTS, names, strict=True)).get(error.argument, error.column)
        if batch is not None:
            error.file = error.file or batch.name
            if error.index is not None and batch.offset is not None:
                error.row = batch.offset + error.index
        raise


def _check_names(*names: object) -> Names:
    for argument, name in zip(("score", "target", "weight", "group"), names, strict=True):
        if name is not None and not isinstance(name, str):
            raise InvalidTypeError(argument, "must be the name of a column", value=name)
    return names  # type: ignore[return-value]


def bytes_of(memory_limit: object, least: int = _LEAST_MEMORY) -> int:
    """A number of bytes, possibly with a unit."""
    size: float | None = None
    if isinstance(memory_limit, str):
        match = re.fullmatch(r"\s*([\d.]+)\s*([KMGT]?I?)B?\s*", memory_limit.upper())
        if match and match[2] in _UNITS and match[1].count(".") <= 1 and match[1] != ".":
            size = float(match[1]) * _UNITS[match[2]]
    elif isinstance(memory_limit, int) and not isinstance(memory_limit, bool):
        size = memory_limit
    if size is None:
        raise InvalidTypeError("memory_limit", "must be a number of bytes, or text such as '500MB'", value=memory_limit)
    if size < least:
        raise InvalidInputError("memory_limit", f"must be at least {least} bytes", value=memory_limit)
    return int(size)
