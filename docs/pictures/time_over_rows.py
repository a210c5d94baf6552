"""Time per row for more and more rows.

`python docs/pictures/time_over_rows.py docs/growth.txt docs/time_over_rows.svg` draws it; `make bench` does so as well.
"""

import hashlib
import re
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure
from style import BLUE, ORANGE, panels

GROWTH = Path(__file__).parents[1] / "growth.txt"
STYLES = {"labels": "-", "weighted": "--"}


class Curve(NamedTuple):
    """One column of the table, in nanoseconds per row."""

    function: str
    data: str
    library: str
    times: np.ndarray


def read(path: Path) -> tuple[np.ndarray, list[Curve]]:
    """The numbers of rows, and the curves."""
    table = path.read_text(encoding="utf-8").partition("\n\n")[2]
    jobs, (_, *libraries), *lines = (re.split(r"\s{2,}", line.strip()) for line in table.splitlines())
    numbers = np.array([[float(cell.replace(",", "")) if cell != "-" else np.nan for cell in line] for line in lines])
    curves = [
        Curve(*jobs[at // 2].split(", ", 1), "staircase_fast" if library == "ours" else library, numbers[:, 1 + at])
        for at, library in enumerate(libraries)
    ]
    return numbers[:, 0], curves


def draw(path: Path = GROWTH) -> Figure:
    rows, curves = read(path)
    functions = list(dict.fromkeys(curve.function for curve in curves))
    figure, axes = panels(len(functions), (9.5, 4.2), sharex=True)
    for one, function in zip(axes, functions, strict=True):
        for curve in curves:
            if curve.function == function:
                one.plot(
                    rows,
                    curve.times,
                    STYLES[curve.data],
                    color=BLUE if curve.library == "staircase_fast" else ORANGE,
                    linewidth=1.6,
                    label=f"{curve.library}, {curve.data}",
                )
        one.set(title=function, xlabel="rows", xscale="log", yscale="log")
        one.yaxis.set_major_formatter(lambda value, _: f"{value:,g}")
        one.grid(color="0.9", linewidth=0.8)
        one.legend(fontsize=9)
    axes[0].set_ylabel("nanoseconds per row")
    return figure


def description(path: Path = GROWTH) -> str:
    """The numbers that the picture shows; the picture contains this text."""
    return f"drawn from a table with SHA-256 {hashlib.sha256(path.read_bytes()).hexdigest()}"


if __name__ == "__main__":
    table, picture = map(Path, sys.argv[1:])
    draw(table).savefig(picture, format="svg", metadata={"Date": None, "Description": description(table)})
