"""Compare our speed with that of other libraries, on the same data, after checking that the results agree.

    python asv_benchmarks/compare.py [ROWS] [WORD ..]     only lines that contain all the words
    python asv_benchmarks/compare.py growth [ROWS]        time per row for more and more rows

Times are nanoseconds per row: medians of calls that alternate between both libraries.  The ratio says how many times
faster we are; the target is the ratio that we want to reach with 10^7 rows.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from agreement import near, same_fit, same_order
from benchmarks import patterns
from benchmarks.extra_memory import extra_bytes
from model_diagnostics._utils.isotonic import isotonic_regression as model_diagnostics
from scipy.optimize import isotonic_regression as scipy_isotonic
from sklearn.isotonic import IsotonicRegression
from timing import Call, versions

import staircase_fast as sf
from staircase_fast.inputs.rows import read_columns
from staircase_fast.losses import SquaredError
from staircase_fast.losses.rows import check_rows
from staircase_fast.stack.sorting import in_score_order

REPEATS = 3
MAX_SECONDS = 20
LOOP = 50  # fits in a loop
GROUPS_PER_PEER_FIT = 50  # the peer fits one group in this many
RESAMPLES = 100  # of bands; the peer fits one
IMPORT = "import numpy, time; t = time.perf_counter(); import staircase_fast; print(time.perf_counter() - t)"


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
    target: float | None  # how many times faster we want to be
    make: Callable[[], Race]
    part: int = 1  # the peer processes one row in so many, because all rows would take minutes


class Measure(NamedTuple):
    """A measurement without a peer.  `make` returns a result and its unit; result / unit must be at most the target."""

    name: str
    peer: str
    target: float
    make: Callable[[], tuple[float, float]]


def seconds(*calls: Call, repeats: int) -> list[float]:
    """Median seconds of each call.  Calls alternate; slow calls are repeated less often, but at least REPEATS times."""
    times: list[list[float]] = [[] for _ in calls]
    deadline = time.perf_counter() + MAX_SECONDS
    for turn in range(repeats):
        if turn >= REPEATS and time.perf_counter() > deadline:
            break
        for call, spent in zip(calls, times, strict=True):
            start = time.perf_counter()
            call()
            spent.append(time.perf_counter() - start)
    return [statistics.median(spent) for spent in times]


def repeats_for(n: int) -> int:
    return REPEATS if n > 100_000 else 20 if n > 1000 else 200


def scikit_learn(given: patterns.Rows) -> IsotonicRegression:
    return IsotonicRegression(out_of_bounds="clip").fit(given.scores, given.targets, sample_weight=given.weights)


def fit(given: patterns.Rows, n_threads: int = 1) -> sf.Staircase:
    return sf.fit(given.scores, given.targets, sample_weight=given.weights, n_threads=n_threads)


def fits(n: int) -> Iterator[Line]:
    def race(n: int, kind: str, targets: str) -> Race:
        given = patterns.rows(n, kind, targets)
        return Race(lambda: fit(given), lambda: scikit_learn(given), lambda a, b: same_fit(given, a, b))

    def against_sort(kind: str) -> Race:
        given = patterns.rows(n, kind)
        return Race(lambda: fit(given), lambda: np.sort(given.scores), lambda _fit, _scores: True)

    def threads(targets: str) -> Race:
        given = patterns.rows(n, targets=targets)
        return Race(lambda: fit(given, 2), lambda: fit(given, 1), lambda a, b: a == b)

    def many(n: int, times: int) -> Race:
        """Fits in a loop, with warm caches, as when another library calls `fit`."""
        rows = patterns.rows(n * times)
        parts = [patterns.Rows(rows.scores[i : i + n], rows.targets[i : i + n], None) for i in range(0, n * times, n)]

        def agree(ours: list[sf.Staircase], theirs: list[IsotonicRegression]) -> bool:
            return all(same_fit(*three) for three in zip(parts, ours, theirs, strict=True))

        return Race(lambda: [fit(part) for part in parts], lambda: [scikit_learn(part) for part in parts], agree)

    yield Line("fit of 100 rows", "scikit-learn", 100, 20, lambda: race(100, "uniform", "labels"))
    yield Line("fits of 100 rows, in a loop", "scikit-learn", 100 * LOOP, 20, lambda: many(100, LOOP))
    for kind in patterns.SCORES:
        plain = kind in ("uniform", "float32")
        name = f"fit, labels, {kind}"
        yield Line(name, "scikit-learn", n, 50 if plain else 20, lambda kind=kind: race(n, kind, "labels"))
        if plain:
            yield Line(name, "np.sort alone", n, 1, lambda kind=kind: against_sort(kind))
    yield Line("fit, real", "scikit-learn", n, None, lambda: race(n, "uniform", "real"))
    yield Line("fit, real and weights", "scikit-learn", n, 30, lambda: race(n, "uniform", "real and weights"))
    if sf.get_num_threads() > 1:
        for targets in ("labels", "real and weights"):
            name = f"fit, {targets}, two threads"
            yield Line(name, "ours, one thread", n, 1.6, lambda targets=targets: threads(targets))


def orders(n: int) -> Iterator[Line]:
    def race(targets: str) -> Race:
        given = patterns.rows(n, targets=targets)
        columns = read_columns(*given)
        rows = check_rows(*columns, SquaredError(), 1)

        def by_numpy() -> tuple[patterns.Column, ...]:
            order = np.argsort(given.scores)
            return tuple(column.take(order) for column in given if column is not None)

        return Race(lambda: in_score_order(rows), by_numpy, same_order)

    for targets in ("labels", "real and weights"):
        yield Line(f"sort, {targets}", "np.argsort, takes", n, 2, lambda targets=targets: race(targets))


def sequences(n: int) -> Iterator[Line]:
    def race(kind: str) -> Race:
        y = patterns.sequence(n, kind)
        return Race(lambda: sf.isotonic_regression(y), lambda: scipy_isotonic(y), lambda a, b: near(a.x, b.x))

    for kind in patterns.SEQUENCES:
        target = 4 if kind in ("noise", "labels") else 1
        yield Line(f"isotonic_regression, {kind}", "SciPy", n, target, lambda kind=kind: race(kind))


def predictions(n: int) -> Iterator[Line]:
    def steps(n_steps: int, n_threads: int | None) -> Race:
        stairs, queries = patterns.staircase(n_steps), patterns.queries(n)
        left, values = stairs.left, np.append(stairs.values[0], stairs.values)

        def by_numpy() -> patterns.Column:
            return values.take(np.searchsorted(left, queries, side="right"))

        return Race(lambda: stairs.predict(queries, n_threads=n_threads), by_numpy, np.array_equal)

    def lines(n_steps: int, n_threads: int | None) -> Race:
        stairs, queries = patterns.staircase(n_steps), patterns.queries(n)
        peer = IsotonicRegression(out_of_bounds="clip").fit(stairs.left, stairs.values)

        def ours() -> patterns.Column:
            return stairs.predict(queries, interpolation="linear", n_threads=n_threads)

        return Race(ours, lambda: peer.predict(queries), near)

    # the targets are for the default number of threads
    many_steps = max(1, min(n, 1_000_000))
    for threads, n_threads in (("", None), (", one thread", 1)):

        def target(least: float, n_threads: int | None = n_threads) -> float | None:
            return None if n_threads else least

        for n_steps, least in ((500, 25), (many_steps, 8)):
            name = f"predict, {n_steps:,} steps{threads}"
            yield Line(
                name,
                "np.searchsorted, take",
                n,
                target(least),
                lambda n_steps=n_steps, n_threads=n_threads: steps(n_steps, n_threads),
            )
        name = f"predict, 500 steps, linear{threads}"
        yield Line(name, "scikit-learn", n, target(30), lambda n_threads=n_threads: lines(500, n_threads))


def losses(n: int) -> Iterator[Line]:
    """Fits of 10^6 sorted rows, compared with SciPy's fit under squared error.  A target below 1 allows more time."""
    n = min(n, 1_000_000)

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
            return sf.isotonic_regression(y, loss=sf.losses.Expectile(0.8)).x

        return Race(ours, lambda: model_diagnostics(y, functional="expectile", level=0.8)[0], near)

    def custom() -> Race:
        x, y = noise(n)
        own = sf.losses.Custom(lambda z, y: np.tanh(z - y))
        return Race(
            lambda: sf.fit(x, y, loss=own), lambda: sf.fit(x, y, loss="log_cosh"), lambda a, b: near(a(x), b(x))
        )

    built_in = sf.losses
    for loss, least in (
        (built_in.Expectile(0.8), 1 / 3), (built_in.Huber(1.0), 1 / 3),
        (built_in.LogCosh(1.0), 1 / 12), (built_in.Power(1.5), 1 / 12),
        (built_in.PseudoHuber(1.0), None), (built_in.Quantile(0.8), None), (built_in.Linex(0.5), None),
    ):  # fmt: skip
        yield Line(f"fit, {loss.name}, {n:,} rows", "SciPy, squared", n, least, lambda loss=loss: race(loss))
    few = min(n, 100_000)
    yield Line(f"expectile, {few:,} rows", "model-diagnostics", few, 1000, lambda: diagnostics(few))
    yield Line(f"fit, own log_cosh, {n:,} rows", "ours, built in", n, 1 / 10, custom)


def arrivals(n: int) -> Iterator[Line]:
    """Sorted rows added to an `Online` in one call, compared with our batch fit.  A target below 1 allows more time."""

    def race(kind: str) -> Race:
        x, y = np.arange(n, dtype=float), patterns.sequence(n, kind)

        def ours() -> sf.Online:
            online = sf.Online()
            online.extend(x, y)
            return online

        return Race(ours, lambda: sf.isotonic_regression(y), lambda a, b: np.array_equal(a.predict(x), b.x))

    for kind in ("noise", "labels"):
        yield Line(f"Online.extend, {kind}", "our isotonic_regression", n, 1 / 4, lambda kind=kind: race(kind))


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
                fits.append((rows, scikit_learn(rows)))
            return fits

        def ours() -> sf.StaircaseMap:
            return sf.fit_groups(given.scores, given.targets, group, sample_weight=given.weights)

        def agree(found: sf.StaircaseMap, fits: list[tuple[patterns.Rows, IsotonicRegression]]) -> bool:
            return all(near(found[key](rows.scores), one.predict(rows.scores)) for key, (rows, one) in enumerate(fits))

        return Race(ours, by_scikit_learn, agree)

    for targets, least in (("labels", 200), ("real and weights", None)):
        name = f"fit_groups, {targets}, 100 rows each"
        yield Line(name, "scikit-learn, a loop", n, least, lambda targets=targets: race(targets), GROUPS_PER_PEER_FIT)


def bands(n: int) -> Iterator[Line]:
    """Curves of resampled rows, with all threads.  The peer fits one of them."""
    n = min(n, 1_000_000)

    def race() -> Race:
        given = patterns.rows(n, "sorted")

        def ours() -> sf.Reliability:
            return sf.reliability(given.scores, given.targets, bands="confidence", n_resamples=RESAMPLES, seed=0)

        def by_scikit_learn() -> IsotonicRegression:
            counts = np.bincount(np.random.default_rng(0).integers(0, n, n), minlength=n)
            drawn = np.flatnonzero(counts)
            return scikit_learn(patterns.Rows(given.scores[drawn], given.targets[drawn], counts[drawn].astype(float)))

        def agree(found: sf.Reliability, one: IsotonicRegression) -> bool:
            curve = one.predict(found.bands.x)
            return float(np.mean((found.bands.lower <= curve) & (curve <= found.bands.upper))) > 0.7

        return Race(ours, by_scikit_learn, agree)

    yield Line(f"bands, labels, {n:,} rows", "scikit-learn, a loop", n * RESAMPLES, None, race, RESAMPLES)


def multiprobabilities(n: int) -> Iterator[Line]:
    """Fit a predictor and query as many scores.  The peer is called without `precision`, which would round scores."""
    n = min(n, 100_000)

    def race(scores: str) -> Race:
        x, y, _ = patterns.rows(n, scores)
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

    for scores, least in (("uniform", 100), ("three digits", None)):
        yield Line(f"VennAbers, {scores}, {n:,} rows", "venn-abers", n, least, lambda scores=scores: race(scores))


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

    def thousand_resamples() -> tuple[float, float]:
        given = patterns.rows(min(n, 1_000_000))
        start = time.perf_counter()
        sf.reliability(given.scores, given.targets, bands="confidence", n_resamples=1000, seed=0)
        return time.perf_counter() - start, 1.0

    for targets in ("labels", "real and weights"):
        yield Measure(f"memory, MB, fit, {targets}", "input", 0.5, lambda targets=targets: memory(targets))
    yield Measure("import after numpy, ms", "", 50, import_ms)
    yield Measure(f"bands, 1000 x {min(n, 1_000_000):,} rows, s", "", 60, thousand_resamples)


def run(line: Line) -> tuple[float, float, bool]:
    """Nanoseconds per row of both libraries, and whether the target is met."""
    race = line.make()
    if not race.agree(race.ours(), race.theirs()):
        sys.exit(f"{line.name}: our result and that of {line.peer} differ")
    ours, theirs = (t / line.rows * 1e9 for t in seconds(race.ours, race.theirs, repeats=repeats_for(line.rows)))
    theirs *= line.part
    return ours, theirs, line.target is None or theirs >= line.target * ours


def show(name: str, *cells: str) -> None:
    print(f"{name:38}{''.join(f'{cell:>9}' for cell in cells[:5])}  {cells[5]}".rstrip(), flush=True)


def compare(n: int, words: list[str]) -> None:
    print(f"{n:,} rows; {versions()}\n")
    show("nanoseconds per row", "ours", "peer", "ratio", "target", "ok", "peer")
    met = []
    parts = fits, groups, orders, sequences, predictions, losses, arrivals, bands, multiprobabilities
    for line in (line for part in parts for line in part(n)):
        if all(word in f"{line.name}, {line.peer}" for word in words):
            ours, theirs, ok = run(line)
            target, verdict = ("", "") if line.target is None else (f"{line.target:.3g}x", "yes" if ok else "NO")
            show(
                line.name,
                f"{ours:.1f}",
                f"{theirs:.1f}",
                f"{theirs / ours:.{1 if theirs > ours / 2 else 2}f}x",
                target,
                verdict,
                line.peer,
            )
            met += [ok] if line.target else []
    for measure in measures(n):
        if all(word in measure.name for word in words):
            found, unit = measure.make()
            ok = found <= measure.target * unit
            cells = (f"{unit:.1f}", f"{found / unit:.2f}") if measure.peer else ("", "")
            show(measure.name, f"{found:.1f}", *cells, f"<={measure.target:g}", "yes" if ok else "NO", measure.peer)
            met.append(ok)
    note = "" if n == 10**7 else "; they are meant for 10,000,000 rows"
    print(f"\n{sum(met)} of {len(met)} targets are met{note}")


def growth(most: int) -> None:
    """Time per row in fits of more and more labels; scikit-learn only up to 10^7 rows, to save memory."""
    print(f"fit, labels, uniform; {versions()}\n")
    n_threads = sf.get_num_threads()
    print(f"{'nanoseconds per row':20}{'one thread':>14}{f'{n_threads} threads':>14}{'scikit-learn':>14}")
    for n in (10**k for k in range(3, 9) if 10**k <= most):
        given = patterns.rows(n, targets="labels")
        if n > 10**7:
            given = given._replace(targets=given.targets.astype(np.uint8))
        calls: list[Call] = [lambda given=given: fit(given), lambda given=given: fit(given, n_threads)]
        if n <= 10**7:
            calls.append(lambda given=given: scikit_learn(given))
            if not same_fit(given, calls[0](), calls[2]()):
                sys.exit(f"{n:,} rows: our result and that of scikit-learn differ")
        times = seconds(*calls, repeats=repeats_for(n))
        print(f"{n:<20,}{''.join(f'{t / n * 1e9:14.1f}' for t in times)}", flush=True)
        del given, calls


def main(arguments: list[str]) -> None:
    growing = arguments[:1] == ["growth"]
    arguments = arguments[growing:]
    given = arguments and arguments[0][0].isdigit()
    n = int(float(arguments.pop(0))) if given else 10**8 if growing else 10**7
    growth(n) if growing else compare(n, arguments)


if __name__ == "__main__":
    main(sys.argv[1:])
