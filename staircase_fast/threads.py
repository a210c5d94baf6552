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
    """What the task makes of each part; the first one is done by the calling thread."""
    if len(shares) == 1:
        return [task(shares[0])]
    import threading  # only who shares work waits for it

    results: dict[int, T] = {}
    errors: list[BaseException] = []

    def work(part: int) -> None:
        try:
            results[part] = task(shares[part])
        except BaseException as error:  # noqa: BLE001  (the caller gets it)
            errors.append(error)

    helpers = [threading.Thread(target=work, args=(part,)) for part in range(1, len(shares))]
    for helper in helpers:
        helper.start()
    work(0)
    for helper in helpers:
        helper.join()
    if errors:
        raise errors[0]
    return [results[part] for part in range(len(shares))]
