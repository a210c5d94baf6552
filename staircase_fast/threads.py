"""Work shared among threads.

Kernels give up the GIL, so plain Python threads run them side by side.  Threads live only as long as a call: there is
no pool that a fork could break, and nothing to shut down.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import TypeVar

ROWS_EACH = 1 << 18  # fewer are done before a thread has begun

T = TypeVar("T")


def parts(n_rows: int, n_threads: int) -> list[slice]:
    """The rows that each thread takes: one part each, all of about the same size."""
    return cut(n_rows, min(n_threads, n_rows // ROWS_EACH))


def cut(n: int, n_parts: int) -> list[slice]:
    """About so many parts of about the same size, at least one."""
    n_parts = max(1, min(n_parts, n))
    ends = [n * part // n_parts for part in range(n_parts + 1)]
    return [slice(*pair) for pair in itertools.pairwise(ends)]


def each(task: Callable[[slice], T], shares: list[slice]) -> list[T]:
    """Return what the task makes of each part.

    The calling thread does the first part, and then those that no other thread has begun: if the system refuses to
    start threads, it does all of them.  No thread outlives the call.  After an error, no further part is begun.
    """
    if len(shares) == 1:
        return [task(shares[0])]
    import threading  # only who shares work waits for it

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
        except BaseException as error:  # noqa: BLE001  (the caller gets it)
            errors.append(error)

    helpers: list[threading.Thread] = []
    try:
        for _ in shares[1:]:
            helpers.append(threading.Thread(target=work))
            helpers[-1].start()
    except (RuntimeError, MemoryError):
        pass  # the threads that have started are enough
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
        raise MemoryError  # a thread had none left, not even to keep its error
    return [results[part] for part in range(len(shares))]
