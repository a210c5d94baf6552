"""Compare our speed with that of other libraries, on the same data, after checking that the results agree.

    python asv_benchmarks/compare.py [--rows ROWS] [--output FILE] [WORD ..]     only lines that contain all the words

Times are nanoseconds per row: medians of calls that alternate between both libraries.  The ratio says how many times
faster we are; the target is the ratio that we want to reach with 10^7 rows.  jobs.py has the lines.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import jobs
from timing import say, seconds, store, versions

MAX_SECONDS = 20  # for the repeats of a line; at least three are made
PARTS = (
    jobs.fits, jobs.groups, jobs.sequences, jobs.predictions, jobs.losses, jobs.arrivals, jobs.multiprobabilities,
)  # fmt: skip


def run(line: jobs.Line) -> tuple[float, float]:
    """Nanoseconds per row of both libraries."""
    race = line.make()
    if not race.agree(race.ours(), race.theirs()):
        sys.exit(f"{line.name}: our result and that of {line.peer} differ")
    ours, theirs = (t / line.rows * 1e9 for t in seconds(race.ours, race.theirs, max_seconds=MAX_SECONDS))
    return ours, theirs * line.part


def show(name: str, *cells: str) -> None:
    say(f"{name:46}{''.join(f'{cell:>10}' for cell in cells[:5])}  {cells[5]}".rstrip())


def show_line(line: jobs.Line) -> bool:
    """Measure and print a line.  Return whether its target is met."""
    ours, theirs = run(line)
    ok = line.target is None or theirs >= line.target * ours
    target, verdict = ("", "") if line.target is None else (f"{line.target:,.4g}x", "yes" if ok else "NO")
    ratio = theirs / ours
    show(line.name, f"{ours:.1f}", f"{theirs:.1f}", f"{ratio:.{2 if ratio < 10 else 1}f}x", target, verdict, line.peer)
    return ok


def show_measure(measure: jobs.Measure) -> bool:
    found, unit = measure.make()
    ok = found <= measure.target * unit
    cells = (f"{unit:.1f}", f"{found / unit:.3f}") if measure.peer else ("", "")
    show(measure.name, f"{found:.1f}", *cells, f"<={measure.target:g}", "yes" if ok else "NO", measure.peer)
    return ok


def compare(n: int, words: list[str]) -> None:
    def wanted(job: jobs.Line | jobs.Measure) -> bool:
        return all(word in f"{job.name}, {job.peer}" for word in words)

    say(f"{n:,} rows; {versions()}\n")
    show("nanoseconds per row", "ours", "peer", "ratio", "target", "ok", "peer")
    met = {line: show_line(line) for part in PARTS for line in part(n) if wanted(line)}
    met |= {measure: show_measure(measure) for measure in jobs.measures(n) if wanted(measure)}
    targets = {job: ok for job, ok in met.items() if job.target is not None}
    note = "" if n == 10**7 else "; they are meant for 10,000,000 rows"
    say(f"\n{sum(targets.values())} of {len(targets)} targets are met{note}")
    missed = [f"  {job.name} ({job.peer})" if job.peer else f"  {job.name}" for job, ok in targets.items() if not ok]
    say("\n".join(["missed:", *missed]) if missed else "none is missed")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=float, default=1e7)
    parser.add_argument("--output", type=Path, metavar="FILE", help="also write the table to this file")
    parser.add_argument("words", nargs="*", metavar="WORD", help="only lines that contain all the words")
    given = parser.parse_args()
    compare(int(given.rows), given.words)
    store(given.output)


if __name__ == "__main__":
    main()
