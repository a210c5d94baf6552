"""Our speed beside that of other libraries: one run, the same data, answers compared before anything is timed.

    python asv_benchmarks/compare.py [ROWS] [WORD ..]     only lines that hold all the words

A line gives nanoseconds per row, medians over calls that take turns, and the ratio: how many times faster we are.
"""

from __future__ import annotations

import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy
import sklearn
from scipy.optimize import isotonic_regression as scipy_isotonic
from sklearn.isotonic import IsotonicRegression

import staircase_fast as sf

REPEATS = 3


class Line(NamedTuple):
    name: str
    ours: Callable[[], Any]
    peer_name: str
    peer: Callable[[], Any]
    same: Callable[[Any, Any], bool]
    rows: int


def medians(*calls: Callable[[], Any], repeats: int) -> list[float]:
    """Median seconds of each call, taking turns."""
    times: list[list[float]] = [[] for _ in calls]
    for _ in range(repeats):
        for call, seconds in zip(calls, times, strict=True):
            start = time.perf_counter()
            call()
            seconds.append(time.perf_counter() - start)
    return [statistics.median(seconds) for seconds in times]


def close(a: Any, b: Any) -> bool:
    return np.allclose(a, b, rtol=1e-6, atol=1e-9)


def same_x(ours: Any, peer: Any) -> bool:
    return close(ours.x, peer.x)


def scores_of_all_kinds(n: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
    u = rng.random(n)
    return {
        "uniform": u,
        "float32": u.astype(np.float32),
        "beta": rng.beta(0.5, 3, n),
        "log-normal": rng.lognormal(0, 1, n),
        "clustered": np.round(u, 1) + 1e-7 * rng.random(n),
        "three digits": np.round(u, 3),
        "all tied": np.full(n, 0.5),
        "sorted": np.sort(u),
        "reversed": np.sort(u)[::-1].copy(),
        "outlier": np.append(u[1:], 1e300),
    }


def fits(n: int, rng: np.random.Generator) -> Iterator[Line]:
    """Fits of unsorted rows; scikit-learn merges scores closer than 1e-15, or 1e-6 in float32: hence the tolerance."""
    for kind, x in scores_of_all_kinds(n, rng).items():
        part = slice(0, n, max(1, n // 1000))
        rank = np.clip(x, 0, 1)
        labels = (rng.random(n) < rank).astype(float)

        def same(ours: Any, peer: Any, x: Any = x, part: slice = part) -> bool:
            gap = np.abs(ours.predict(x[part], interpolation="linear") - peer.predict(x[part]))
            return float(np.mean(gap)) < (1e-2 if x.dtype == np.float32 else 1e-5)

        def theirs(x: Any = x, y: Any = labels, w: Any = None) -> Any:
            return IsotonicRegression(out_of_bounds="clip").fit(x, y, sample_weight=w)

        yield Line(
            f"fit, labels, {kind}", lambda x=x, y=labels: sf.fit(x, y), "scikit-learn", lambda f=theirs: f(), same, n
        )
        if kind in ("uniform", "float32"):
            yield Line(
                f"fit, labels, {kind}",
                lambda x=x, y=labels: sf.fit(x, y),
                "np.sort alone",
                lambda x=x: np.sort(x),
                lambda _a, _b: True,
                n,
            )
        if kind == "uniform":
            noisy, w = rank + rng.normal(size=n), rng.random(n) + 0.5
            yield Line(
                "fit, real targets",
                lambda x=x, y=noisy: sf.fit(x, y),
                "scikit-learn",
                lambda f=theirs, y=noisy: f(y=y),
                same,
                n,
            )
            yield Line(
                "fit, real targets and weights",
                lambda x=x, y=noisy, w=w: sf.fit(x, y, sample_weight=w),
                "scikit-learn",
                lambda f=theirs, y=noisy, w=w: f(y=y, w=w),
                same,
                n,
            )


def small_fits(rng: np.random.Generator) -> Iterator[Line]:
    x = rng.random(100)
    y = (rng.random(100) < x).astype(float)
    yield Line(
        "fit of 100 rows",
        lambda: sf.fit(x, y),
        "scikit-learn",
        lambda: IsotonicRegression().fit(x, y),
        lambda a, b: close(a.predict(x), b.predict(x)),
        100,
    )


def sequences(n: int, rng: np.random.Generator) -> Iterator[Line]:
    trend = np.linspace(0, 1, n)
    patterns = {
        "noise": trend + rng.normal(size=n),
        "labels": (rng.random(n) < trend).astype(float),
        "monotone": trend,
        "reversed": trend[::-1].copy(),
        "rare events": (rng.random(n) < 1e-4).astype(float),
        "sawtooth": np.arange(n) % 7 + trend,
        "cascade": np.append(np.arange(1.0, n), -10.0 * n * n),
    }
    for name, y in patterns.items():
        yield Line(
            f"isotonic_regression, {name}",
            lambda y=y: sf.isotonic_regression(y),
            "SciPy",
            lambda y=y: scipy_isotonic(y),
            same_x,
            n,
        )


def predictions(n: int, rng: np.random.Generator) -> Iterator[Line]:
    queries = rng.random(n)
    for n_steps in (500, 1_000_000):
        left = np.sort(rng.random(n_steps))
        stairs = sf.Staircase(left, left, np.arange(n_steps), np.ones(n_steps), np.ones(n_steps, dtype=int))
        values = stairs.values
        yield Line(
            f"predict, {n_steps:,} steps",
            lambda s=stairs: s.predict(queries),
            "np.searchsorted",
            lambda left=left, v=values: v[np.maximum(np.searchsorted(left, queries, side="right") - 1, 0)],
            close,
            n,
        )
        if n_steps == 500:
            peer = IsotonicRegression(out_of_bounds="clip").fit(left, values)
            yield Line(
                f"predict, {n_steps:,} steps, linear",
                lambda s=stairs: s.predict(queries, interpolation="linear"),
                "scikit-learn",
                lambda p=peer: p.predict(queries),
                close,
                n,
            )


def import_seconds() -> float:
    code = "import numpy, time; t = time.perf_counter(); import staircase_fast; print(time.perf_counter() - t)"
    runs = [subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True) for _ in range(5)]
    return statistics.median(float(run.stdout) for run in runs)


def main(n: int, words: list[str]) -> None:
    rng = np.random.default_rng(0)
    print(f"{n:,} rows; {platform.machine()}, Python {platform.python_version()}, numpy {np.__version__},")
    print(f"scikit-learn {sklearn.__version__}, SciPy {scipy.__version__}; one thread\n")
    print(f"{'':36}{'ours':>9}{'peer':>9}  ns per row")
    lines = [small_fits(rng), sequences(n, rng), predictions(n, rng), fits(n, rng)]
    for line in (line for group in lines for line in group):
        if not all(word in line.name for word in words):
            continue
        if not line.same(line.ours(), line.peer()):
            sys.exit(f"{line.name}: our answer and that of {line.peer_name} differ")
        ours, peer = medians(line.ours, line.peer, repeats=REPEATS if line.rows > 1000 else 200)
        times = f"{ours / line.rows * 1e9:9.1f}{peer / line.rows * 1e9:9.1f}"
        print(f"{line.name:36}{times}  {peer / ours:7.1f} times faster than {line.peer_name}", flush=True)
    print(f"\nimport, after numpy: {import_seconds() * 1e3:.0f} ms")


if __name__ == "__main__":
    arguments = sys.argv[1:]
    size = int(float(arguments.pop(0))) if arguments and arguments[0][0].isdigit() else 10_000_000
    main(size, arguments)
