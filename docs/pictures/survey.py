"""The survey: a part of the actual plan for a million labels."""

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from style import BLUE, GREY, ORANGE, panels

import staircase_fast as sf
from staircase_fast.losses.rows import check_rows
from staircase_fast.stack import survey
from staircase_fast.staircase import _lookup, cells

ROWS, BUCKETS = 1_000_000, 62_500
WIDTH = 9000  # rows in the picture: few enough to show the buckets


def draw() -> Figure:
    rng = np.random.default_rng(3)
    scores = rng.random(ROWS)
    labels = (rng.random(ROWS) < 0.1 + 0.8 * scores).astype(np.uint8)

    rows = check_rows(scores, labels, np.empty(0), sf.losses.SquaredError(), 1)
    buckets = cells.make_map(cells.sorted_sample(scores), BUCKETS)
    table = survey.survey(rows, buckets, [slice(0, ROWS)])
    live = survey.plan(table, ROWS, 1.0, 1, decreasing=False).astype(bool)
    place = np.empty(ROWS, dtype=np.int32)
    _lookup.locate(scores, buckets, place)

    order = np.argsort(scores)
    counts = np.bincount(place, minlength=len(live))
    borders = np.append(0, np.cumsum(counts))
    path = np.append(0.0, np.cumsum(labels[order].astype(float)))
    stairs = sf.fit(scores, labels)
    bends = np.append(0, np.cumsum(stairs.counts))
    minorant = np.interp(np.arange(ROWS + 1), bends, path[bends])
    above = path - minorant  # the minorant is drawn as a horizontal line

    figure, (axes,) = panels(1, (9.5, 4.4))
    first = bends[len(bends) // 2] - WIDTH // 2
    last = first + WIDTH
    top = above[first:last].max()
    shown = (borders[1:] > first) & (borders[:-1] < last)
    for bucket in np.flatnonzero(live & (counts > 0) & shown):
        axes.axvspan(borders[bucket], borders[bucket + 1], color=ORANGE, alpha=0.35, linewidth=0)
    axes.plot(np.arange(first, last), above[first:last], color=GREY, linewidth=0.7)
    dots = borders[:-1][shown]
    axes.plot(dots, above[dots], ".", color="0.25", markersize=2.5)
    axes.plot([first, last], [0, 0], color=BLUE, linewidth=2.2)
    inside = bends[(first <= bends) & (bends <= last)]
    axes.plot(inside, np.zeros(len(inside)), "o", color=BLUE, markersize=7)
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.set(xlabel="rows in score order", ylabel="height above the minorant", xlim=(first, last))
    axes.set_ylim(-0.06 * top, 1.05 * top)
    figure.legend(
        [
            Line2D([], [], color=GREY, marker=".", markeredgecolor="0.25", markerfacecolor="0.25"),
            Line2D([], [], color=BLUE, linewidth=2.2, marker="o"),
            Patch(color=ORANGE, alpha=0.3),
        ],
        [
            "path of cumulative sums; the survey knows only the dots, one per bucket of 16 rows",
            "greatest convex minorant, drawn horizontally; a step ends at each blue dot",
            f"live buckets, whose rows are sorted: {counts[live].sum() / ROWS:.1%} of the million rows",
        ],
        loc="outside upper left",
    )
    return figure
