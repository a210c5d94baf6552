"""Our speed beside that of other libraries for many sizes and random shapes of data.

    python asv_benchmarks/matrix.py [--seed SEED] [--draws DRAWS] [--most ROWS] [--output FILE] [WORD ..]

The shapes are drawn at random.  The seed is printed; the default is the date.  For each size the table shows the
geometric mean and the worst of the ratios, with the recipe of the worst; the number in brackets is the seed of the
shape.  All calls use one thread.  Results are compared before anything is timed.

Small fits are timed on several data sets of one shape in turn.
"""

from __future__ import annotations

import argparse
import datetime as dt
import statistics
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import shapes
from agreement import near, sorted_fit
from benchmarks.patterns import Rows
from scipy.optimize import isotonic_regression as scipy_isotonic
from sklearn.isotonic import IsotonicRegression
from timing import Call, each, fit_ours, fit_scikit_learn, say, seconds, store, variants, versions

import staircase_fast as sf

SIZES = [digit * 10**power for power in range(1, 7) for digit in (1, 3)]  # 10, 30, 100, .. 3 * 10^6
MAX_SECONDS = 3.0  # for all repeats of two calls; at least three repeats are made


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
    fewest: int = 30  # rows
    most: int = SIZES[-1]
    most_is_worst: bool = False


class Result(NamedTuple):
    rows: int
    ratio: float
    recipe: str


def check(agree: bool, recipe: object, n: int) -> None:
    if not agree:
        sys.exit(f"the results differ: {n} rows, {recipe}")


def rows_in_turn(shape: shapes.Shape, n: int, which: range) -> list[Rows]:
    """Data sets of a shape, after our fit of the first has been compared with SciPy's."""
    given = [shapes.rows_of(shape, n, variant) for variant in which]
    check(near(fit_ours(given[0]).predict(given[0].scores), sorted_fit(given[0])), shape, n)
    return given


def fit(seed: int, n: int) -> Race:
    shape = shapes.draw_shape(seed)
    given = rows_in_turn(shape, n, variants(n))
    return Race(each(fit_ours, given), each(fit_scikit_learn, given), str(shape))


def fit_and_argsort(seed: int, n: int) -> Race:
    shape = shapes.draw_shape(seed)
    given = rows_in_turn(shape, n, variants(n))
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

    def ours(queries: Any) -> Any:
        return stairs.predict(queries, n_threads=1)

    return Race(each(ours, given), each(peer.predict, given), f"{len(stairs)} steps, {shape}")


def growth(seed: int, n: int) -> Race:
    """The time for 2 n rows over that for n rows."""
    shape = shapes.draw_shape(seed)
    one, two = (rows_in_turn(shape, size, variants(n)) for size in (n, 2 * n))
    return Race(each(fit_ours, one), each(fit_ours, two), str(shape))


JOBS = (
    Job("fit, scikit-learn", fit, 20, 8),
    Job("isotonic_regression, SciPy", isotonic_regression, 2, 0.8),
    Job("predict, scikit-learn", predict, 15, 4, fewest=10, most=10**6),
    Job("fit, np.argsort alone", fit_and_argsort, 1.2, 0.5, fewest=10_000),
    Job("fit of 2 n rows, time over that of n rows", growth, None, 2.5, fewest=1000, most_is_worst=True),
)


def measure(job: Job, n: int, draws: int, seed: int) -> list[Result]:
    found = []
    for draw in range(draws if n <= 300_000 else max(1, draws // 2)):
        race = job.race(int(np.random.SeedSequence([seed, n, draw]).generate_state(1)[0]), n)
        ours, theirs = seconds(race.ours, race.theirs, max_seconds=MAX_SECONDS)
        found.append(Result(n, theirs / ours, race.recipe))
    return found


def worst_of(job: Job, found: list[Result]) -> Result:
    return (max if job.most_is_worst else min)(found, key=lambda result: result.ratio)


def show(label: str, mean: float, worst: float, text: str) -> None:
    say(f"{label:>10}{mean:8.2f}x{worst:8.2f}x  {text}".rstrip())


def run(job: Job, most: float, draws: int, seed: int) -> list[str]:
    """Print the part of one job.  Return its line of the summary."""
    say(f"\n{job.name}\n{'rows':>10}{'mean':>9}{'worst':>9}  recipe of the worst")
    everything: list[Result] = []
    for n in SIZES:
        if job.fewest <= n <= min(job.most, most):
            found = measure(job, n, draws, seed)
            worst = worst_of(job, found)
            show(f"{n:,}", statistics.geometric_mean(result.ratio for result in found), worst.ratio, worst.recipe)
            everything += found
    if not everything:
        return [job.name, "", "", "", "not measured"]
    mean, worst = statistics.geometric_mean(result.ratio for result in everything), worst_of(job, everything)
    show("all", mean, worst.ratio, f"worst: {worst.rows:,} rows")
    met = worst.ratio <= job.worst if job.most_is_worst else worst.ratio >= job.worst
    met = met and (job.mean is None or mean >= job.mean)
    targets = f"{'' if job.mean is None else f'{job.mean:g}x, '}{job.worst:g}x"
    return [job.name, f"{mean:.2f}x", f"{worst.ratio:.2f}x", targets, "yes" if met else "NO"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    today = dt.datetime.now(dt.UTC).date()
    parser.add_argument("--seed", type=int, default=int(today.strftime("%Y%m%d")))
    parser.add_argument("--draws", type=int, default=6, help="shapes per size; half as many above 300,000 rows")
    parser.add_argument("--most", type=float, metavar="ROWS", default=3e6, help="the largest number of rows")
    parser.add_argument("--output", type=Path, metavar="FILE", help="also write the tables to this file")
    parser.add_argument("words", nargs="*", metavar="WORD", help="only jobs whose name contains all words")
    given = parser.parse_args()
    say(f"seed {given.seed}, {given.draws} shapes for each size, one thread; {versions()}")
    wanted = [job for job in JOBS if all(word in job.name for word in given.words)]
    summary = [run(job, given.most, given.draws, given.seed) for job in wanted]
    say()
    for name, *cells in [["summary", "mean", "worst", "targets", "ok"], *summary]:
        say(f"{name:45}{''.join(f'{cell:>14}' for cell in cells)}".rstrip())
    store(given.output)


if __name__ == "__main__":
    main()
