"""Our speed beside other libraries', measured in one run on the same data, after checking that the answers agree.

python asv_benchmarks/compare.py [ROWS]

Each line is the median over interleaved repeats; "times faster" is the other library's time over ours.
"""

from __future__ import annotations

import platform
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy
import sklearn
from scipy.optimize import isotonic_regression as scipy_isotonic
from sklearn.isotonic import IsotonicRegression

import staircase_fast as sf

REPEATS = 5


class Case(NamedTuple):
    name: str
    ours: Callable[[], Any]
    peer_name: str
    peer: Callable[[], Any]
    agree: Callable[[Any, Any], bool]


def interleaved(*calls: Callable[[], Any]) -> list[float]:
    """Median seconds of each call, taking turns."""
    times: list[list[float]] = [[] for _ in calls]
    for _ in range(REPEATS):
        for call, seconds in zip(calls, times, strict=True):
            start = time.perf_counter()
            call()
            seconds.append(time.perf_counter() - start)
    return [statistics.median(seconds) for seconds in times]


def close(a: Any, b: Any) -> bool:
    return np.allclose(a, b, rtol=1e-9, atol=1e-12)


def cases(n: int) -> list[Case]:
    rng = np.random.default_rng(0)
    scores = rng.random(n)
    labels = (rng.random(n) < scores).astype(float)
    trend = np.sort(scores)
    noisy, weights = trend + rng.normal(size=n), rng.random(n) + 0.5
    stairs = sf.fit(scores, labels)
    theirs = IsotonicRegression(out_of_bounds="clip").fit(scores, labels)

    def same_function(ours: sf.Staircase, peer: IsotonicRegression) -> bool:
        return close(ours.predict(scores[:1000], interpolation="linear"), peer.predict(scores[:1000]))

    return [
        Case(
            "fit, unsorted, labels",
            lambda: sf.fit(scores, labels),
            "scikit-learn",
            lambda: IsotonicRegression().fit(scores, labels),
            same_function,
        ),
        Case(
            "isotonic_regression, noise",
            lambda: sf.isotonic_regression(noisy),
            "SciPy",
            lambda: scipy_isotonic(noisy),
            lambda a, b: close(a.x, b.x),
        ),
        Case(
            "isotonic_regression, noise, weights",
            lambda: sf.isotonic_regression(noisy, weights=weights),
            "SciPy",
            lambda: scipy_isotonic(noisy, weights=weights),
            lambda a, b: close(a.x, b.x),
        ),
        Case(
            "isotonic_regression, monotone",
            lambda: sf.isotonic_regression(trend),
            "SciPy",
            lambda: scipy_isotonic(trend),
            lambda a, b: close(a.x, b.x),
        ),
        Case(
            f"predict, {stairs.n_steps} steps",
            lambda: stairs.predict(scores, interpolation="linear"),
            "scikit-learn",
            lambda: theirs.predict(scores),
            close,
        ),
    ]


def main(n: int = 1_000_000) -> None:
    print(f"{n:,} rows; {platform.machine()}, Python {platform.python_version()}, numpy {np.__version__},")
    print(f"scikit-learn {sklearn.__version__}, SciPy {scipy.__version__}\n")
    print(f"{'':38}{'ours':>10}{'peer':>10}   ns per row")
    for case in cases(n):
        if not case.agree(case.ours(), case.peer()):
            sys.exit(f"{case.name}: our answer and that of {case.peer_name} differ")
        ours, peer = interleaved(case.ours, case.peer)
        times = f"{ours / n * 1e9:10.1f}{peer / n * 1e9:10.1f}"
        print(f"{case.name:38}{times}   {peer / ours:.2f} times faster than {case.peer_name}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
