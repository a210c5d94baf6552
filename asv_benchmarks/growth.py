"""Time per row for more and more rows, beside scikit-learn and SciPy.

    python asv_benchmarks/growth.py [--most ROWS] [--peer-most ROWS] [--output FILE]

Times are nanoseconds per row: medians of calls that alternate between both libraries, after the results have been
compared.  All calls use one thread.  docs/pictures/time_over_rows.py draws the table.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from agreement import near, same_fit
from benchmarks import patterns
from scipy.optimize import isotonic_regression as scipy_isotonic
from timing import each, fit_ours, fit_scikit_learn, say, seconds, store, variants, versions

import staircase_fast as sf

# Close enough to show a jump where another method takes over.
SIZES = [int(digits * 10**power) for power in range(1, 8) for digits in (1, 1.5, 2, 3, 5, 7)] + [10**8]
MAX_SECONDS = 2.0  # for all repeats of one size; at least three are made
ROWS_IN_TURN = (
    60_000  # SciPy's branches in a data set of 15,000 rows can be learned, those in one of 30,000 rows cannot
)
BYTES_PER_ROW = 60  # for the data, the arrays that generate it, and the results


class Job(NamedTuple):
    name: str
    peer: str
    make: Callable[[int, int], Any]  # the data of a number of rows and a seed
    ours: Callable[[Any], Any]
    theirs: Callable[[Any], Any]
    agree: Callable[[Any, Any, Any], bool]


def sequence(kind: str, weighted: bool) -> Callable[[int, int], Any]:
    return lambda n, seed: (patterns.sequence(n, kind, seed), patterns.weights(n) if weighted else None)


def jobs() -> list[Job]:
    fits = [
        Job(
            f"fit, {name}",
            "scikit-learn",
            lambda n, seed, targets=targets: patterns.rows(n, targets=targets, seed=seed),
            fit_ours,
            fit_scikit_learn,
            same_fit,
        )
        for name, targets in (("labels", "labels"), ("weighted", "real and weights"))
    ]
    sequences = [
        Job(
            f"isotonic_regression, {name}",
            "SciPy",
            sequence(kind, weighted),
            lambda given: sf.isotonic_regression(given[0], weights=given[1], n_threads=1),
            lambda given: scipy_isotonic(given[0], weights=given[1]),
            lambda _given, ours, theirs: near(ours.x, theirs.x),
        )
        for name, kind, weighted in (("labels", "labels", False), ("weighted", "noise", True))
    ]
    return fits + sequences


def measure(job: Job, n: int, with_peer: bool) -> list[str]:
    """The cells of one job: our time and the peer's."""
    given = [job.make(n, seed) for seed in variants(n, ROWS_IN_TURN)]
    calls = [each(job.ours, given)]
    if with_peer:
        calls.append(each(job.theirs, given))
        if not all(job.agree(*three) for three in zip(given, calls[0](), calls[1](), strict=True)):
            sys.exit(f"{job.name}, {n:,} rows: our result and that of {job.peer} differ")
    times = seconds(*calls, max_seconds=MAX_SECONDS)
    return [f"{time / len(given) / n * 1e9:.1f}" for time in times] + ["-"] * (not with_peer)


def most_rows() -> int:
    """The number of rows that fit into half of the memory."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // (2 * BYTES_PER_ROW)


def show(rows: str, cells: list[str]) -> None:
    say(f"{rows:>11}{''.join(f'{cell:>16}' for cell in cells)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--most", type=float, metavar="ROWS", default=1e8, help="default: 1e8, if memory allows")
    parser.add_argument("--peer-most", type=float, metavar="ROWS", default=1e7, help="of the other libraries")
    parser.add_argument("--output", type=Path, metavar="FILE", help="also write the table to this file")
    given = parser.parse_args()
    table = jobs()
    say(f"nanoseconds per row, one thread; {versions()}\n")
    say(f"{'':11}{''.join(f'{job.name:>32}' for job in table)}")
    show("rows", [cell for job in table for cell in ("ours", job.peer)])
    for n in SIZES:
        if n <= min(given.most, most_rows()):
            show(f"{n:,}", [cell for job in table for cell in measure(job, n, n <= given.peer_most)])
    store(given.output)


if __name__ == "__main__":
    main()
