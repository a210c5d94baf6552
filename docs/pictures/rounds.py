"""The anytime rounds: each round halves the bounds of every block and separates blocks."""

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from style import BLUE, GREY, ORANGE, panels

import staircase_fast as sf

SHOWN = (1, 2, 4)


def draw() -> Figure:
    rng = np.random.default_rng(2)
    n = 90
    scores = np.arange(n)
    targets = 1.0 + 6.0 / (1.0 + np.exp((45 - scores) / 9.0)) + rng.standard_t(3, n) * 0.5
    fit = sf.Anytime(scores, targets, loss="log_cosh", bounds=(0, 8))
    exact = sf.fit(scores, targets, loss="log_cosh", bounds=(0, 8)).predict(scores)

    figure, axes = panels(len(SHOWN), (9.5, 3.9), sharey=True)
    for one, shown in zip(axes, SHOWN, strict=True):
        fit.refine(max_rounds=shown - fit.n_rounds)
        now = fit.staircase()
        one.plot(scores, targets, "o", color=GREY, markersize=2.5)
        for left, right, low, high in zip(now.left, now.right, now.lower, now.upper, strict=True):
            one.fill_between([left - 0.5, right + 0.5], low, high, color=BLUE, alpha=0.3, linewidth=0)
        x = np.append(scores - 0.5, n - 0.5)
        one.step(x, np.append(exact, exact[-1]), where="post", color=ORANGE, linewidth=1.6)
        one.set(
            title=f"round {shown}: bounds {np.max(now.upper - now.lower):g} apart",
            xlabel="score",
            ylim=(-0.6, 9.2),
            xlim=(-1, n),
        )
    axes[0].set_ylabel("value")
    figure.legend(
        [
            Line2D([], [], color=GREY, marker="o", markersize=4, linestyle=""),
            Patch(color=BLUE, alpha=0.3),
            Line2D([], [], color=ORANGE, linewidth=1.6),
        ],
        ["targets", "numerical bounds of each block", "the optimum"],
        loc="outside upper left",
        ncols=3,
    )
    return figure
