"""Shared by compare.py, matrix.py and growth.py: timing, output, and the versions that a table names."""

from __future__ import annotations

import math
import platform
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy
import sklearn
from benchmarks.patterns import Rows
from sklearn.isotonic import IsotonicRegression

import staircase_fast as sf

Call = Callable[[], Any]

REPEATS = 7
LEAST_REPEATS = 3
SECONDS_EACH = 1e-3  # calls are repeated until a measurement takes this long

_printed: list[str] = []


def say(text: str = "") -> None:
    """Print a line, and remember it for `store`."""
    print(text, flush=True)
    _printed.append(text)


def store(path: Path | None) -> None:
    """Write everything that was printed to a file.  An interrupted run leaves the file as it was."""
    if path is not None:
        path.write_text("\n".join(_printed) + "\n", encoding="utf-8")


def versions() -> str:
    return (
        f"{platform.machine()}, {sf.get_num_threads()} threads, Python {platform.python_version()}, "
        f"numpy {np.__version__}, SciPy {scipy.__version__}, scikit-learn {sklearn.__version__}"
    )


def seconds(*calls: Call, max_seconds: float) -> list[float]:
    """Median seconds of each call, after one call to warm up.  Calls alternate; slow calls are repeated less often."""
    loops = []
    for call in calls:
        start = time.perf_counter()
        call()
        loops.append(max(1, math.ceil(SECONDS_EACH / (time.perf_counter() - start))))
    times: list[list[float]] = [[] for _ in calls]
    deadline = time.perf_counter() + max_seconds
    for turn in range(REPEATS):
        if turn >= LEAST_REPEATS and time.perf_counter() > deadline:
            break
        for call, n_loops, spent in zip(calls, loops, times, strict=True):
            start = time.perf_counter()
            for _ in range(n_loops):
                call()
            spent.append((time.perf_counter() - start) / n_loops)
    return [statistics.median(spent) for spent in times]


def variants(n: int, all_rows: int = 100_000) -> range:
    """The data sets of n rows that are used in turn: at most 100, with `all_rows` together.

    With few small data sets, the processor would learn all branches by heart, which it cannot do in practice.
    (20,000 rows were too few: SciPy took 3 to 5 ns per row for data sets of 3000 rows, and 6 to 15 with 100,000.)
    """
    return range(max(1, min(100, all_rows // n)))


def each(call: Callable[[Any], Any], given: list[Any]) -> Call:
    return lambda: [call(one) for one in given]


def fit_ours(given: Rows, n_threads: int = 1) -> sf.Staircase:
    return sf.fit(given.scores, given.targets, sample_weight=given.weights, n_threads=n_threads)


def fit_scikit_learn(given: Rows) -> IsotonicRegression:
    return IsotonicRegression(out_of_bounds="clip").fit(given.scores, given.targets, sample_weight=given.weights)
