"""How many threads calls use."""

from __future__ import annotations

import os

from staircase_fast import threads
from staircase_fast.inputs.errors import InvalidInputError
from staircase_fast.inputs.options import check_thread_count

_VARIABLE = "STAIRCASE_FAST_NUM_THREADS"
_chosen: int | None = None


def set_num_threads(n: int | None) -> None:
    """Set how many threads calls use that do not say it themselves.

    Parameters
    ----------
    n : int or None
        At least 1; None returns to the default: what the environment variable STAIRCASE_FAST_NUM_THREADS says, else the
        number of processors that this process may use.

    Notes
    -----
    Small inputs are done by one thread whatever is set.  Results do not depend on the number of threads.

    Thread-safety: holds for all threads of the process from the next call on.

    Examples
    --------
    >>> import staircase_fast as sf
    >>> sf.set_num_threads(2)
    >>> sf.get_num_threads()
    2
    >>> sf.set_num_threads(None)
    """
    global _chosen  # noqa: PLW0603  (a setting of the process is what this is)
    _chosen = None if n is None else check_thread_count("n", n)


def get_num_threads() -> int:
    """How many threads calls may use that do not say it themselves.

    Examples
    --------
    >>> import staircase_fast as sf
    >>> sf.get_num_threads() >= 1
    True
    """
    if _chosen is not None:
        return _chosen
    told = os.environ.get(_VARIABLE)
    if told:
        if not told.isdecimal() or int(told) < 1:
            requirement = f"the environment variable {_VARIABLE} must be an integer >= 1"
            raise InvalidInputError("", requirement, value=told)
        return int(told)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def num_threads(n_threads: int | None, n_rows: int) -> int:
    """How many threads a call may use that was given `n_threads`; asking the system takes longer than a few rows."""
    if n_threads is not None:
        return check_thread_count("n_threads", n_threads)
    return get_num_threads() if n_rows >= threads.ROWS_EACH else 1
