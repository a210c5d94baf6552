"""Runs many threads at once, to provoke races."""

import sys
import threading
from collections.abc import Callable


def hammer(*tasks: Callable[[], object], n_each: int = 3) -> None:
    """Run each task in several threads at once; Python switches between them as often as it can."""
    errors: list[BaseException] = []
    barrier = threading.Barrier(n_each * len(tasks))

    def work(task: Callable[[], object]) -> None:
        try:
            barrier.wait()
            task()
        except BaseException as error:  # noqa: BLE001  (raised again below)
            errors.append(error)

    workers = [threading.Thread(target=work, args=(task,)) for task in tasks for _ in range(n_each)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    finally:
        sys.setswitchinterval(interval)
    if errors:
        raise errors[0]
