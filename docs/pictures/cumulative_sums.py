"""The cumulative-sum diagram: the slopes of its greatest convex minorant are the staircase."""

import numpy as np
from matplotlib.figure import Figure
from style import BLUE, GREY, ORANGE, panels

import staircase_fast as sf


def draw() -> Figure:
    rng = np.random.default_rng(11)
    n = 24
    scores = np.arange(1, n + 1)
    targets = 0.5 + 4.0 * (scores / n) ** 2 + rng.normal(0, 1.1, n)
    stairs = sf.fit(scores, targets)
    path = np.append(0.0, np.cumsum(targets))
    ends = np.append(0, np.cumsum(stairs.counts))

    figure, (left, right) = panels(2, (9, 4))
    left.plot(scores, targets, "o", color=GREY, markersize=5, label="targets, in score order")
    for first, last, value in zip(stairs.left, stairs.right, stairs.values, strict=True):
        left.plot([first - 0.5, last + 0.5], [value, value], color=ORANGE, linewidth=2.6, solid_capstyle="butt")
    left.plot([], [], color=ORANGE, linewidth=2.6, label="staircase: the mean of each block")
    left.set(title="the fit", xlabel="score", ylabel="target")
    left.legend(loc="upper left")

    right.fill_between(ends, path[ends], path.max() * 1.08, color=BLUE, alpha=0.06, linewidth=0)
    right.plot(path, "-o", color=GREY, markersize=4, linewidth=1, label="cumulative sum of the targets")
    right.plot(ends, path[ends], "-o", color=BLUE, linewidth=2.2, markersize=6, label="greatest convex minorant")
    shown = int(np.argmax(stairs.counts))
    value, middle = stairs.values[shown], (ends[shown] + ends[shown + 1]) / 2
    height = np.interp(middle, ends, path[ends])
    note = {"textcoords": "offset points", "color": BLUE, "arrowprops": {"arrowstyle": "->", "color": BLUE}}
    right.annotate(f"slope {value:.2f}", (middle, height), (44, -14), **note)
    left.annotate(f"value {value:.2f}", (middle + 0.5, value), (34, -30), **note)
    right.set(title="the cumulative-sum diagram", xlabel="number of rows", ylabel="sum of targets")
    right.set_ylim(min(path.min(), 0) - 2, path.max() * 1.08)
    right.legend(loc="upper left")
    return figure
