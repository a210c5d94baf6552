"""Our speed beside that of other libraries for many sizes and random shapes of data.

    python asv_benchmarks/matrix.py [--seed SEED] [--draws DRAWS] [--most ROWS] [WORD ..]

The shapes are drawn at random.  The seed is printed; the default is the date.  For each size the table shows the
geometric mean and the worst of the ratios, with the recipe of the worst; the number in brackets is the seed of the
shape.  All calls use one thread.  Results are compared before anything is timed.

Small fits are timed on several data sets of one shape in turn.  Otherwise the processor would learn the branches of a
single data set by heart, which it cannot do in practice.
"""

from __future__ import annotations

import argparse
import datetime as dt
import math
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import shapes
from agreement import near, sorted_fit
from benchmarks.patterns import Rows
from scipy.optimize import isotonic_regression as scipy_isotonic
from sklearn.isotonic import IsotonicRegression
from timing import Call, versions

import staircase_fast as sf

SIZES = [digit * 10**power for power in range(1, 7) for digit in (1, 3)][1:]  # 30, 100, .. 3 * 10^6
REPEATS = 7
SECONDS_EACH = 1e-3  # calls are repeated until a measurement takes this long
MAX_SECONDS = 3.0  # for all repeats of two calls; at least three repeats are made
ROWS_IN_TURN = 20_000  # of all data sets of one shape together


class Race(NamedTuple):
    ours: Call
    theirs: Call
    recipe: str


class Job(NamedTuple):
    """`race` makes the calls for a seed and a number of rows, and checks that their results agree."""

    name: str
    race: Callable[[int, int], Race]
    mean: float | None  # wanted mean of the ratios
    worst: float  # wanted worst ratio
    fewest: int = 0  # rows
    most_is_worst: bool = False


class Result(NamedTuple):
    rows: int
    ratio: float
    recipe: str


def seconds(*calls: Call) -> list[float]:
    """Median seconds of each call, after one call to warm up.  Calls alternate."""
    loops = []
    for call in calls:
        start = time.perf_counter()
        call()
        loops.append(max(1, math.ceil(SECONDS_EACH / (time.perf_counter() - start))))
    times: list[list[float]] = [[] for _ in calls]
    deadline = time.perf_counter() + MAX_SECONDS
    for turn in range(REPEATS):
        if turn >= 3 and time.perf_counter() > deadline:
            break
        for call, n_loops, spent in zip(calls, loops, times, strict=True):
            start = time.perf_counter()
            for _ in range(n_loops):
                call()
            spent.append((time.perf_counter() - start) / n_loops)
    return [statistics.median(spent) for spent in times]


def variants(n: int) -> range:
    """The data sets of n rows that are used in turn."""
    return range(max(1, min(16, ROWS_IN_TURN // n)))


def each(call: Callable[[Any], Any], given: list[Any]) -> Call:
    return lambda: [call(one) for one in given]


def check(agree: bool, recipe: object, n: int) -> None:
    if not agree:
        sys.exit(f"the results differ: {n} rows, {recipe}")


def fit_ours(given: Rows) -> sf.Staircase:
    return sf.fit(given.scores, given.targets, sample_weight=given.weights, n_threads=1)


def fit_theirs(given: Rows) -> IsotonicRegression:
    return IsotonicRegression(out_of_bounds="clip").fit(given.scores, given.targets, sample_weight=given.weights)


def fit(seed: int, n: int) -> Race:
    shape = shapes.draw_shape(seed)
    given = [shapes.rows_of(shape, n, variant) for variant in variants(n)]
    check(near(fit_ours(given[0]).predict(given[0].scores), sorted_fit(given[0])), shape, n)
    return Race(each(fit_ours, given), each(fit_theirs, given), str(shape))


def fit_and_argsort(seed: int, n: int) -> Race:
    shape = shapes.draw_shape(seed)
    given = [shapes.rows_of(shape, n, variant) for variant in variants(n)]
    return Race(each(fit_ours, given), each(lambda one: np.argsort(one.scores), given), str(shape))


def isotonic_regression(seed: int, n: int) -> Race:
    shape = shapes.draw_sequence(seed)
    given = [shapes.sequence_of(shape, n, variant) for variant in variants(n)]

    def ours(one: tuple[Any, Any]) -> Any:
        return sf.isotonic_regression(one[0], weights=one[1], n_threads=1)

    def theirs(one: tuple[Any, Any]) -> Any:
        return scipy_isotonic(one[0], weights=one[1])

    check(near(ours(given[0]).x, theirs(given[0]).x), shape, n)
    return Race(each(ours, given), each(theirs, given), str(shape))


def predict(seed: int, n: int) -> Race:
    """Queries of a staircase that is fitted to a random number of rows."""
    shape = shapes.draw_shape(seed)
    stairs = fit_ours(shapes.rows_of(shape, int(10 ** np.random.default_rng(seed).uniform(1.5, 6))))
    given = [shapes.rows_of(shape, n, 1 + variant).scores for variant in variants(n)]
    peer = IsotonicRegression(out_of_bounds="clip").fit(stairs.left, stairs.values)
    steps = np.searchsorted(stairs.left, given[0].astype(np.float64), side="right") - 1
    check(np.array_equal(stairs(given[0]), stairs.values[steps.clip(0)]), shape, n)
    return Race(each(stairs.predict, given), each(peer.predict, given), f"{len(stairs)} steps, {shape}")


def growth(seed: int, n: int) -> Race:
    """The time for 2 n rows over that for n rows."""
    shape = shapes.draw_shape(seed)
    one, two = ([shapes.rows_of(shape, size, variant) for variant in variants(n)] for size in (n, 2 * n))
    return Race(each(fit_ours, one), each(fit_ours, two), str(shape))


JOBS = (
    Job("fit, scikit-learn", fit, 20, 8),
    Job("isotonic_regression, SciPy", isotonic_regression, 2, 0.8),
    Job("predict, scikit-learn", predict, 15, 4),
    Job("fit, np.argsort alone", fit_and_argsort, 1.2, 0.5, fewest=10_000),
    Job("fit of 2 n rows, time over that of n rows", growth, None, 2.5, fewest=1000, most_is_worst=True),
)


def measure(job: Job, n: int, draws: int, seed: int) -> list[Result]:
    found = []
    for draw in range(draws if n <= 300_000 else max(1, draws // 2)):
        race = job.race(int(np.random.SeedSequence([seed, n, draw]).generate_state(1)[0]), n)
        ours, theirs = seconds(race.ours, race.theirs)
        found.append(Result(n, theirs / ours, race.recipe))
    return found


def worst_of(job: Job, found: list[Result]) -> Result:
    return (max if job.most_is_worst else min)(found, key=lambda result: result.ratio)


def show(label: str, mean: float, worst: float, text: str) -> None:
    print(f"{label:>10}{mean:8.2f}x{worst:8.2f}x  {text}", flush=True)


def run(job: Job, sizes: list[int], draws: int, seed: int) -> None:
    print(f"\n{job.name}\n{'rows':>10}{'mean':>9}{'worst':>9}  recipe of the worst")
    everything: list[Result] = []
    for n in sizes:
        found = measure(job, n, draws, seed)
        worst = worst_of(job, found)
        show(f"{n:,}", statistics.geometric_mean(result.ratio for result in found), worst.ratio, worst.recipe)
        everything += found
    mean, worst = statistics.geometric_mean(result.ratio for result in everything), worst_of(job, everything)
    met = worst.ratio <= job.worst if job.most_is_worst else worst.ratio >= job.worst
    target = f"worst {job.worst:g}x"
    if job.mean is not None:
        met, target = met and mean >= job.mean, f"mean {job.mean:g}x, {target}"
    show("all", mean, worst.ratio, f"target: {target}: {'yes' if met else 'NO'}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    today = dt.datetime.now(dt.UTC).date()
    parser.add_argument("--seed", type=int, default=int(today.strftime("%Y%m%d")))
    parser.add_argument("--draws", type=int, default=6, help="shapes per size; half as many above 300,000 rows")
    parser.add_argument("--most", type=float, default=3e6, help="the largest number of rows")
    parser.add_argument("words", nargs="*", metavar="WORD", help="only jobs whose name contains all words")
    given = parser.parse_args()
    print(f"seed {given.seed}; {versions()}")
    for job in JOBS:
        if all(word in job.name for word in given.words):
            run(job, [n for n in SIZES if job.fewest <= n <= given.most], given.draws, given.seed)


if __name__ == "__main__":
    main()
