"""The bands of the same forecasts: where the true curve is, and where the curve of calibrated forecasts would be."""

import numpy as np
from matplotlib.figure import Figure
from style import BLUE, GREY, ORANGE, panels

import staircase_fast as sf

PANELS = (
    ("confidence", {"bands": "confidence"}),
    ("pointwise", {"bands": "pointwise"}),
    ("consistency", {"bands": "consistency", "seed": 0}),
)


def draw() -> Figure:
    rng = np.random.default_rng(3)
    scores = rng.random(2000)
    labels = rng.random(2000) < scores**1.4
    grid = np.linspace(0, 1, 200)
    figure, axes = panels(len(PANELS), (9.5, 4.0), sharey=True)
    for one, (title, options) in zip(axes, PANELS, strict=True):
        found = sf.reliability(scores, labels, **options)
        x, lower, upper = found.bands.outline()
        one.fill_between(x, lower, upper, color=BLUE, alpha=0.25, linewidth=0, label="90 % band")
        one.plot(grid, grid, color=GREY, linestyle="--", linewidth=1, label="calibrated")
        one.plot(grid, grid**1.4, color="black", linewidth=1, label="true curve")
        one.plot(np.sort(scores), found.stairs(np.sort(scores)), color=ORANGE, linewidth=1.4, label="fitted curve")
        one.set(title=title, xlabel="forecast probability", aspect="equal")
    axes[0].set_ylabel("observed frequency")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper left", ncols=4)
    return figure
