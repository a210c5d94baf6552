"""The measured share of live rows over the rows per bucket, beside the theory; drawn from docs/many_rows.txt."""

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from style import BLUE, GREEN, ORANGE, panels

TABLE = Path(__file__).parents[1] / "many_rows.txt"
COLOURS = {1e6: ORANGE, 1e7: GREEN, 1e8: BLUE}
LEVELS = {"labels": 1.0, "numbers": 3.5}  # of the dotted lines: share = level * (rows per bucket)^2 / rows^(2/3)


def read(path: Path = TABLE) -> tuple[np.ndarray, dict[tuple[str, float], np.ndarray]]:
    """The rows per bucket, and the measured shares by data and number of rows."""
    _, head, *lines = path.read_text(encoding="utf-8").partition("\n\n")[0].splitlines()
    per_bucket = np.array([float(word.replace(",", "")) for word in head.split()[2:]])
    found = {}
    for words in (line.split() for line in lines if "%" in line and ":" not in line and " below " not in line):
        found[words[0], float(words[1])] = np.array([float(word.rstrip("%")) / 100 for word in words[2:]])
    return per_bucket, found


def draw() -> Figure:
    per_bucket, found = read()
    figure, axes = panels(2, (9.5, 4.0), sharey=True)
    for one, data in zip(axes, LEVELS, strict=True):
        for (kind, n), shares in found.items():
            if kind == data:
                one.plot(per_bucket, shares, "o-", color=COLOURS[n], markersize=4, label=f"{n:,.0f} rows")
                theory = LEVELS[data] * per_bucket**2 / n ** (2 / 3)
                one.plot(per_bucket, np.minimum(theory, 1), ":", color=COLOURS[n], linewidth=1.2)
        one.set(title=data, xlabel="rows per bucket", xscale="log", yscale="log", ylim=(1e-3, 1.3))
        one.grid(color="0.9", linewidth=0.8)
        one.legend(loc="lower right")
    axes[0].set_ylabel("share of live rows")
    return figure
