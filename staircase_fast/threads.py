"""Threads: how many a call uses, and how it shares work among them.

Kernels release the GIL, so plain Python threads run them in parallel.  Threads live only as long as a call: there is no
pool that a fork could break, and nothing to shut down.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from typing import TypeVar

from staircase_fast.errors import InvalidInputError, InvalidTypeError, check_count

ROWS_EACH = 1 << 18  # fewer rows are done before a thread has started
_VARIABLE = "STAIRCASE_FAST_NUM_THREADS"
_default: int | None = None

T = TypeVar("T")


def set_num_threads(n: int | None) -> None:
    """Set the default number of threads.

    Parameters
    ----------
    n : int or None
        At least 1, or -1 for all processors that this process may use.  None restores the initial default: the value
        of the environment variable STAIRCASE_FAST_NUM_THREADS, or all processors.

    Notes
    -----
    Small inputs always use one thread.  Results do not depend on the number of threads.

    Thread-safety: affects all threads of the process, from their next call on.

    Examples
    --------
    >>> import staircase_fast as sf
    >>> sf.set_num_threads(2)
    >>> sf.get_num_threads()
    2
    >>> sf.set_num_threads(None)
    """
    global _default  # noqa: PLW0603  (a setting of the process)
    _default = None if n is None else _check_threads("n", n)


def get_num_threads() -> int:
    """Return the default number of threads.

    Examples
    --------
    >>> import staircase_fast as sf
    >>> sf.get_num_threads() >= 1
    True
    """
    if _default is not None:
        return _default
    variable = os.environ.get(_VARIABLE)
    if variable:
        if variable.strip() == "-1":
            return _n_processors()
        if not variable.isdecimal() or int(variable) < 1:
            requirement = f"the environment variable {_VARIABLE} must be an integer >= 1, or -1 for all processors"
            raise InvalidInputError("", requirement, value=variable)
        return int(variable)
    return _n_processors()


def _n_processors() -> int:
    """The number of processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _check_threads(argument: str, n: object) -> int:
    """A number of threads; -1 means one for each processor, as in scikit-learn."""
    try:
        return check_count(argument, n, 1, ", -1 for all processors, or None")
    except InvalidInputError as error:
        if error.value == -1 and not isinstance(error, InvalidTypeError):
            return _n_processors()
        raise


def num_threads(n_threads: int | None, n_rows: int) -> int:
    """The number of threads for a call with this argument.  Small calls do not ask the system, which is slow."""
    if n_threads is not None:
        return _check_threads("n_threads", n_threads)
    return get_num_threads() if n_rows >= ROWS_EACH else 1


def parts(n_rows: int, n_threads: int) -> list[slice]:
    """Divide the rows into one part for each thread, all of about the same size."""
    return cut(n_rows, min(n_threads, n_rows // ROWS_EACH))


def cut(n: int, n_parts: int) -> list[slice]:
    """Divide n rows into at most `n_parts` parts of about the same size, at least one."""
    n_parts = min(n_parts, n)
    if n_parts <= 1:
        return [slice(0, n)]  # in a tenth of the time
    ends = [n * part // n_parts for part in range(n_parts + 1)]
    return [slice(*pair) for pair in itertools.pairwise(ends)]


def each(task: Callable[[slice], T], shares: list[slice]) -> list[T]:
    """Run the task on each part, in threads; return the results in order.

    The calling thread runs the first part, then parts that no other thread has started.  If the system cannot start
    threads, it runs all of them.  No thread outlives the call.  After an error, no further part is started.
    """
    if len(shares) == 1:
        return [task(shares[0])]
    import threading  # imported only if work is shared: it is slow to import

    results: dict[int, T] = {}
    errors: list[BaseException] = []
    lock, parts_left = threading.Lock(), iter(range(1, len(shares)))

    def next_part() -> int | None:
        with lock:
            return None if errors else next(parts_left, None)

    def work(first: int | None = None) -> None:
        try:
            part = next_part() if first is None else first
            while part is not None:
                results[part] = task(shares[part])
                part = next_part()
        except BaseException as error:  # noqa: BLE001  (raised again by the caller)
            errors.append(error)

    helpers: list[threading.Thread] = []
    try:
        for _ in shares[1:]:
            helpers.append(threading.Thread(target=work))
            helpers[-1].start()
    except (RuntimeError, MemoryError):
        pass  # continue with the threads that have started
    except BaseException as error:  # noqa: BLE001  (a signal: raised when all threads are done)
        errors.append(error)
    if not errors:
        work(0)
    for helper in helpers:
        while helper.is_alive():
            try:
                helper.join()
            except BaseException as error:  # noqa: BLE001  (a signal, again)
                errors.append(error)
    if errors:
        raise errors[0]
    if len(results) < len(shares):
        raise MemoryError  # a thread had no memory left to store its error
    return [results[part] for part in range(len(shares))]
