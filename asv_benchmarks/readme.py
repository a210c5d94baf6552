"""Copy the figures of docs/bench.txt, which `make bench RESULTS=docs` writes, into README.md.

python asv_benchmarks/readme.py

A test checks that the README is up to date.
"""

from __future__ import annotations

import math
import re
import textwrap
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
README, BENCH = ROOT / "README.md", ROOT / "docs" / "bench.txt"

# The README's table: the job as a reader knows it, the line of docs/bench.txt with its peer, and the peer's name.
JOBS = {
    "fit 0/1 labels": ("fit, labels, uniform", "scikit-learn", "scikit-learn"),
    "fit 0/1 labels, log-normal scores": ("fit, labels, log-normal", "scikit-learn", "scikit-learn"),
    "fit 0/1 labels, scores rounded to three digits": ("fit, labels, three digits", "scikit-learn", "scikit-learn"),
    "fit 0/1 labels, scores already sorted": ("fit, labels, sorted", "scikit-learn", "scikit-learn"),
    "fit real targets with weights": ("fit, real and weights", "scikit-learn", "scikit-learn"),
    "fit a small data set": ("fit of 100 rows", "scikit-learn", "scikit-learn"),
    "fit 100,000 groups of 100 rows *": ("fit_groups, labels, 100 rows each", "scikit-learn, a loop", "scikit-learn"),
    "predict with a staircase of 500 steps": ("predict, 500 steps, one thread", "np.searchsorted, take", "NumPy"),
    "isotonic_regression, noisy sequence *": ("isotonic_regression, noise", "SciPy", "SciPy"),
    "isotonic_regression, sawtooth sequence *": ("isotonic_regression, sawtooth", "SciPy", "SciPy"),
    "expectile regression *": ("expectile, 100,000 rows", "model-diagnostics", "model-diagnostics"),
    "Venn-Abers, fit and predict *": ("VennAbers, uniform, 100,000 rows", "venn-abers", "venn-abers"),
}
LINE = re.compile(
    r"(?P<name>\S.*?)\s{2,}(?P<ours>[\d.]+)\s+(?P<theirs>[\d.]+)\s+(?P<ratio>[\d.]+)x.*\s{2,}(?P<peer>\S.*)"
)
SAME_PROBLEM = {peer for _, peer, _ in JOBS.values()}


class Printed(NamedTuple):
    """A line of docs/bench.txt; times are nanoseconds per row."""

    ours: float
    theirs: float
    ratio: float


def printed_lines(text: str) -> dict[tuple[str, str], Printed]:
    """The comparisons in docs/bench.txt, by name and peer."""
    return {
        (found["name"], found["peer"]): Printed(*(float(found[field]) for field in Printed._fields))
        for found in filter(None, map(LINE.fullmatch, text.splitlines()))
    }


def slowest(text: str) -> tuple[str, str]:
    """The line with the lowest ratio, among those whose peer solves the same problem."""
    lines = printed_lines(text)
    return min((key for key in lines if key[1] in SAME_PROBLEM), key=lambda key: lines[key].ratio)


def duration(seconds: float) -> str:
    unit, size = next((unit, size) for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)) if seconds >= size)
    return f"{seconds / size:.3g} {unit}"


def table(text: str) -> str:
    """The README's table: nanoseconds per row of docs/bench.txt, times the rows."""
    default_rows, printed = text.partition(" rows;")[0], printed_lines(text)
    lines = ["| job | rows | staircase_fast | other library | speed-up |", "|---|--:|--:|--:|--:|"]
    for job, (name, peer, shown_peer) in JOBS.items():
        in_name = re.search(r"([\d,]+) rows(?! each)", name)
        rows = in_name[1].strip(",") if in_name else default_rows
        line = printed[name, peer]
        ours, theirs = (time * 1e-9 * int(rows.replace(",", "")) for time in (line.ours, line.theirs))
        ratio = f"{line.ratio:,.0f}x" if line.ratio >= 10 else f"{line.ratio}x"
        lines.append(f"| {job} | {rows} | {duration(ours)} | {shown_peer}: {duration(theirs)} | {ratio} |")
    return "\n".join(lines)


def typical(text: str) -> str:
    """The range of the ratios of fits to scikit-learn, without the lowest tenth and the highest, in steps of 5."""
    ratios = sorted(
        line.ratio
        for (name, peer), line in printed_lines(text).items()
        if name.startswith("fit, ") and peer == "scikit-learn"
    )
    kept = ratios[len(ratios) // 10 : -1]
    return f"{math.floor(kept[0] / 5) * 5} to {math.ceil(kept[-1] / 5) * 5} times faster"


def updated(readme: str, text: str) -> str:
    """The README with the figures of this run, in its table and in two of its paragraphs."""
    figures = {
        r"\d+ to \d+ times faster": typical(text),
        r"\([^()]*scikit-learn [\d.]+\)": f"({text.splitlines()[0].partition('; ')[2]})",
    }
    blocks = readme.split("\n\n")
    for at, block in enumerate(blocks):
        words = " ".join(block.split())
        if words.startswith("| job |"):
            blocks[at] = table(text)
        for pattern, figure in figures.items():
            if re.search(pattern, words):
                blocks[at] = textwrap.fill(re.sub(pattern, figure, words), 120, break_on_hyphens=False)
    return "\n\n".join(blocks)


if __name__ == "__main__":
    README.write_text(updated(README.read_text("utf-8"), BENCH.read_text("utf-8")), "utf-8")
