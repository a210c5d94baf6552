"""The jobs of the first table: the data, our call, the peer's call, and the target.  compare.py times and prints them.

A target is the ratio of the peer's time to ours that we want to reach.  A target below 1 allows us more time.
"""

from __future__ import annotations

import ctypes
import functools
import os
import statistics
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from agreement import near, same_fit
from benchmarks import patterns
from benchmarks.extra_memory import extra_bytes
from model_diagnostics._utils.isotonic import isotonic_regression as model_diagnostics
from scipy.optimize import isotonic_regression as scipy_isotonic
from sklearn.isotonic import IsotonicRegression
from timing import Call, each, fit_ours, fit_scikit_learn, variants

import staircase_fast as sf

GROUPS_PER_PEER_FIT = 50  # the peer fits one group in this many
IMPORT = "import numpy, time; t = time.perf_counter(); import staircase_fast; print(time.perf_counter() - t)"
DERIVATIVES = """
#include <math.h>
double log_cosh(double z, double y) { return tanh(z - y); }
double pseudo_huber(double z, double y) { return (z - y) / sqrt(1 + (z - y) * (z - y)); }
"""


class Race(NamedTuple):
    """The same job for both libraries, and whether two results agree."""

    ours: Call
    theirs: Call
    agree: Callable[[Any, Any], bool]


class Line(NamedTuple):
    """A line of the table.  `make` creates its data when its turn comes, so that only one line's data is in memory."""

    name: str
    peer: str
    rows: int
    target: float | None  # None: for information
    make: Callable[[], Race]
    part: int = 1  # the peer processes one row in so many, because all rows would take minutes


class Measure(NamedTuple):
    """A measurement without a peer.  `make` returns a result and its unit; result / unit must be at most the target."""

    name: str
    peer: str
    target: float
    make: Callable[[], tuple[float, float]]


def fits(n: int) -> Iterator[Line]:
    def race(kind: str, targets: str) -> Race:
        given = patterns.rows(n, kind, targets)
        return Race(lambda: fit_ours(given), lambda: fit_scikit_learn(given), lambda a, b: same_fit(given, a, b))

    def against_sort(kind: str) -> Race:
        given = patterns.rows(n, kind)
        return Race(lambda: fit_ours(given), lambda: np.sort(given.scores), lambda _fit, _scores: True)

    def threads(targets: str) -> Race:
        given = patterns.rows(n, targets=targets)
        return Race(lambda: fit_ours(given, 2), lambda: fit_ours(given, 1), lambda a, b: a == b)

    def small(n: int) -> Race:
        given = [patterns.rows(n, seed=variant) for variant in variants(n)]
        return Race(
            each(fit_ours, given),
            each(fit_scikit_learn, given),
            lambda a, b: all(same_fit(*three) for three in zip(given, a, b, strict=True)),
        )

    yield Line("fit of 100 rows", "scikit-learn", 100 * len(variants(100)), None, lambda: small(100))
    for kind in patterns.SCORES:
        plain = kind in ("uniform", "float32")
        name = f"fit, labels, {kind}"
        yield Line(name, "scikit-learn", n, 60 if plain else 20, functools.partial(race, kind, "labels"))
        if plain:
            target = 1 if kind == "float32" else 1.5
            yield Line(name, "np.sort alone", n, target, functools.partial(against_sort, kind))
    for targets, target in (
        ("real and weights", 30),
        ("real and log-normal weights", 30),
        ("function of the score", 8),
    ):
        yield Line(f"fit, {targets}", "scikit-learn", n, target, functools.partial(race, "uniform", targets))
    if sf.get_num_threads() > 1:
        for targets in ("labels", "real and weights"):
            name = f"fit, {targets}, two threads"
            yield Line(name, "ours, one thread", n, 1.7, functools.partial(threads, targets))


def sequences(n: int) -> Iterator[Line]:
    def race(kind: str, weighted: bool) -> Race:
        y, w = patterns.sequence(n, kind), patterns.weights(n) if weighted else None
        return Race(
            lambda: sf.isotonic_regression(y, weights=w),
            lambda: scipy_isotonic(y, weights=w),
            lambda a, b: near(a.x, b.x),
        )

    for kind, weighted, target in (
        ("noise", False, 4), ("labels", False, 4), ("noise", True, 3), ("labels", True, 3),
        ("sawtooth", False, 1), ("cascade", False, 1),
    ):  # fmt: skip
        name = f"isotonic_regression, {kind}{' and weights' if weighted else ''}"
        yield Line(name, "SciPy", n, target, functools.partial(race, kind, weighted))


def predictions(n: int) -> Iterator[Line]:
    def steps(n_steps: int, n_threads: int) -> Race:
        stairs, queries = patterns.staircase(n_steps), patterns.queries(n)
        left, values = stairs.left, np.append(stairs.values[0], stairs.values)

        def by_numpy() -> patterns.Column:
            return values.take(np.searchsorted(left, queries, side="right"))

        return Race(lambda: stairs.predict(queries, n_threads=n_threads), by_numpy, np.array_equal)

    def against_scikit_learn(interpolation: str, n_threads: int) -> Race:
        """The peer draws straight lines between steps.  Narrow gaps between steps make steps the same function."""
        stairs, queries = patterns.staircase(500), patterns.queries(n)
        left, values = stairs.left, stairs.values
        if interpolation == "step":
            left, values = np.append(left, left[1:] - 1e-12), np.append(values, values[:-1])
        peer = IsotonicRegression(out_of_bounds="clip").fit(left, values)

        def ours() -> patterns.Column:
            return stairs.predict(queries, interpolation=interpolation, n_threads=n_threads)

        return Race(ours, lambda: peer.predict(queries), near)

    # The counts of threads, with the targets beside scikit-learn, NumPy, and NumPy for many steps.
    targets = {1: (25, 20, None), 2: (30, 30, 15)}
    many_steps = max(1, min(n, 1_000_000))
    for n_threads, (scikit_learn, numpy, many) in targets.items():
        if n_threads > sf.get_num_threads():
            break
        name = "{}, " + ("one thread" if n_threads == 1 else "two threads")
        for kind, text in (("step", ""), ("linear", ", linear")):
            race = functools.partial(against_scikit_learn, kind, n_threads)
            yield Line(name.format(f"predict, 500 steps{text}"), "scikit-learn", n, scikit_learn, race)
        for n_steps, target in ((500, numpy), (many_steps, many)):
            race = functools.partial(steps, n_steps, n_threads)
            yield Line(name.format(f"predict, {n_steps:,} steps"), "np.searchsorted, take", n, target, race)


def losses(n: int) -> Iterator[Line]:
    """Fits of 10^6 sorted rows, compared with SciPy's fit under squared error, which is an easier problem."""
    n = min(n, 1_000_000)
    built_in = sf.losses

    def noise(n: int) -> tuple[patterns.Column, patterns.Column]:
        return np.arange(n, dtype=float), patterns.sequence(n, "noise")

    def race(loss: sf.losses.Loss) -> Race:
        x, y = noise(n)
        return Race(
            lambda: sf.fit(x, y, loss=loss), lambda: scipy_isotonic(y), lambda a, _: sf.certify(a, x, y).optimal
        )

    def diagnostics(n: int) -> Race:
        _, y = noise(n)

        def ours() -> patterns.Column:
            return sf.isotonic_regression(y, loss=built_in.Expectile(0.8)).x

        return Race(ours, lambda: model_diagnostics(y, functional="expectile", level=0.8)[0], near)

    def custom(name: str, derivative: Callable[..., Any]) -> Race:
        x, y = noise(n)
        own = built_in.Custom(derivative)
        return Race(lambda: sf.fit(x, y, loss=own), lambda: sf.fit(x, y, loss=name), lambda a, b: near(a(x), b(x)))

    for loss, target in (
        (built_in.Expectile(0.8), 1 / 2), (built_in.Huber(1.0), 1 / 2.5), (built_in.Quantile(0.8), 1 / 4),
        (built_in.LogCosh(1.0), 1 / 8), (built_in.Power(1.5), 1 / 8), (built_in.PseudoHuber(1.0), 1 / 8),
    ):  # fmt: skip
        yield Line(f"fit, {loss.name}, {n:,} rows", "SciPy, squared", n, target, functools.partial(race, loss))
    few = min(n, 100_000)
    yield Line(f"expectile, {few:,} rows", "model-diagnostics", few, 2000, lambda: diagnostics(few))
    yield Line(
        "Custom, NumPy log_cosh", "ours, built in", n, 1 / 5,
        lambda: custom("log_cosh", lambda z, y: np.tanh(z - y)),
    )  # fmt: skip
    # Two lines, because the tanh of the C library takes longer than the one that is built in.
    for name, target in (("pseudo_huber", 1 / 2), ("log_cosh", None)):
        yield Line(
            f"Custom, compiled {name}", "ours, built in", n, target,
            lambda name=name: custom(name, compiled_derivative(name)),
        )  # fmt: skip


def compiled_derivative(name: str) -> Any:
    """A function of DERIVATIVES, compiled with the compiler of Python."""
    with tempfile.TemporaryDirectory() as directory:
        source, library = Path(directory, "derivatives.c"), Path(directory, "derivatives.so")
        source.write_text(DERIVATIVES, encoding="ascii")
        compiler = (sysconfig.get_config_var("CC") or "cc").split()
        subprocess.run([*compiler, "-O2", "-shared", "-fPIC", source, "-o", library, "-lm"], check=True)
        function = getattr(ctypes.CDLL(str(library)), name)
    function.restype, function.argtypes = ctypes.c_double, [ctypes.c_double] * 2
    return function


def arrivals(n: int) -> Iterator[Line]:
    """Sorted rows added to an `Online` in one call, compared with our batch fit."""

    def race(kind: str) -> Race:
        x, y = np.arange(n, dtype=float), patterns.sequence(n, kind)

        def ours() -> sf.Online:
            online = sf.Online()
            online.extend(x, y)
            return online

        return Race(ours, lambda: sf.isotonic_regression(y), lambda a, b: np.array_equal(a.predict(x), b.x))

    for kind in ("noise", "labels"):
        name = f"Online.extend, {kind}"
        yield Line(name, "our isotonic_regression", n, 1 / 2, functools.partial(race, kind))


def groups(n: int) -> Iterator[Line]:
    """Groups of 100 rows, with all threads.  The peer sorts and fits one group in GROUPS_PER_PEER_FIT."""

    def race(targets: str) -> Race:
        given, group = patterns.rows(n, targets=targets), patterns.groups(n, 100)
        own = np.flatnonzero(group < max(1, n // 100 // GROUPS_PER_PEER_FIT))
        part = patterns.Rows(*(None if column is None else column[own] for column in given))

        def by_scikit_learn() -> list[tuple[patterns.Rows, IsotonicRegression]]:
            order = np.argsort(group[own], kind="stable")
            columns = [None if column is None else column[order] for column in part]
            fits = []
            for start in range(0, len(order), 100):
                rows = patterns.Rows(*(None if one is None else one[start : start + 100] for one in columns))
                fits.append((rows, fit_scikit_learn(rows)))
            return fits

        def ours() -> sf.StaircaseMap:
            return sf.fit_groups(given.scores, given.targets, group, sample_weight=given.weights)

        def agree(found: sf.StaircaseMap, fits: list[tuple[patterns.Rows, IsotonicRegression]]) -> bool:
            return all(near(found[key](rows.scores), one.predict(rows.scores)) for key, (rows, one) in enumerate(fits))

        return Race(ours, by_scikit_learn, agree)

    for targets, target in (("labels", 250), ("real and weights", 150)):
        name, make = f"fit_groups, {targets}, 100 rows each", functools.partial(race, targets)
        yield Line(name, "scikit-learn, a loop", n, target, make, GROUPS_PER_PEER_FIT)


def multiprobabilities(n: int) -> Iterator[Line]:
    """Fit a predictor and query as many scores.  The peer is called without `precision`, which would round scores."""
    n = min(n, 100_000)

    def race() -> Race:
        x, y, _ = patterns.rows(n)
        queries = patterns.queries(n)

        def ours() -> sf.ProbabilityPair[Any]:
            return sf.VennAbers().fit(x, y).predict(queries)

        settings = np.geterr()
        from venn_abers import VennAbers  # changes numpy's error settings

        np.seterr(**settings)
        fitted, queried = (np.column_stack((1 - column, column)) for column in (x, queries))

        def theirs() -> patterns.Column:
            with np.errstate(divide="ignore", invalid="ignore"):
                return VennAbers().fit(fitted, y).predict_proba(queried)[1]

        return Race(ours, theirs, lambda a, b: near(np.column_stack(a), b))

    yield Line(f"VennAbers, uniform, {n:,} rows", "venn-abers", n, 150, race)


def measures(n: int) -> Iterator[Measure]:
    def memory(targets: str) -> tuple[float, float]:
        given = patterns.rows(n, targets=targets)
        size = sum(column.nbytes for column in given if column is not None)
        return extra_bytes(given) / 1e6, size / 1e6

    def import_ms() -> tuple[float, float]:
        # with compiled bytecode, as after pip install; the first run writes it
        command = [sys.executable, "-c", IMPORT]
        with tempfile.TemporaryDirectory() as cache:
            environment = os.environ | {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": cache}
            runs = [
                subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=environment)
                for _ in range(8)
            ]
        return statistics.median(float(run.stdout) for run in runs[1:]) * 1e3, 1.0

    for targets in ("labels", "real and weights"):
        yield Measure(f"memory, MB, fit, {targets}", "input", 1 / 8, functools.partial(memory, targets))
    yield Measure("import after numpy, ms", "", 30, import_ms)
