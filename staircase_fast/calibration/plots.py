"""The reliability diagram.  Needs matplotlib."""

from __future__ import annotations

import math
import textwrap
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from staircase_fast.inputs.options import import_optional

import_optional("matplotlib.axes", "a plot", extra="plot")

from matplotlib.axes import Axes  # noqa: E402
from matplotlib.colors import to_rgb  # noqa: E402
from matplotlib.ticker import FixedLocator, MaxNLocator  # noqa: E402
from matplotlib.transforms import ScaledTranslation  # noqa: E402

from staircase_fast.staircase import plot  # noqa: E402
from staircase_fast.staircase.steps import Steps  # noqa: E402

if TYPE_CHECKING:
    from staircase_fast.calibration.bands import Bands
    from staircase_fast.calibration.reliability import Reliability
    from staircase_fast.staircase.result import Staircase

COLORS = (plot.CURVE_COLOR, "#c44e00", "#117733", "#7b3294", "#999933", "#882255")  # of several curves
_DIAGONAL_COLOR, _BARS, _INK = "0.35", "0.72", "0.15"
_CURVE, _DIAGONAL = "staircase_fast curve", "staircase_fast diagonal"  # group ids of lines
_NAMES = {"brier": "Brier score", "poisson_deviance": "Poisson deviance", "tweedie_deviance": "Tweedie deviance"}
_STRIP = 0.2  # height of the histogram below the curve, as a share of the height of the curve
_GAP = 0.04  # space between them, as a share of the same
_LEGEND_WIDTH = 42  # characters of a line that says what a band promises
_BELOW = 36  # points between the axes and a legend below them: ticks and their label
_BETWEEN = 12  # points between the names and the numbers
_FAR = 1e305  # larger numbers are drawn in thousands, because matplotlib adds the edges of bars
_LEAST_FIXED, _MOST_FIXED = 1e-3, 1e6  # the range of numbers that are drawn without an exponent
_CORNER = 0.5, 0.7  # right and lower end of the box of numbers, as shares of the axes


def draw_reliability(
    found: Reliability,
    ax: Axes | None,
    *,
    histogram: bool,
    numbers: bool,
    color: str | None,
    name: str | None = None,
    ref_line: bool = True,
) -> Axes:
    """Draw a reliability diagram; see `Reliability.plot`.

    On axes that have one already, the curve gets the next colour, and the limits include both.
    """
    ax = plot.given_or_new(ax, 5.0, 5.6)
    earlier = [line for line in ax.lines if line.get_gid() == _CURVE]
    color = color or COLORS[len(earlier) % len(COLORS)]
    low, high = _ends(found)
    far = max(-low, high) > _FAR
    if far:
        found = _in_thousands(found)
        low, high = _ends(found)
    low, high = _draw_diagonal(ax, low, high, ref_line=ref_line)
    if found.bands is not None:
        _draw_band(ax, found.bands, (low, high), color, filled=not earlier, name=name)
    _draw_curve(ax, found.stairs, (low, high), color, name or "recalibrated")
    bottom = low
    if histogram:
        bottom = _draw_histogram(ax, found, low, high, _BARS if not earlier else color, filled=not earlier)
    elif earlier:
        bottom = min(low, ax.get_ylim()[0])  # there may be a histogram
    if numbers:
        _draw_numbers(ax, found, low, high)
    margin = 0.02 * (high - low)
    ax.set(xlim=(low - margin, high + margin), ylim=(bottom - (0 if histogram else margin), high + margin))
    ax.set_aspect("equal", adjustable="box")
    ticks = [tick for tick in MaxNLocator(5).tick_values(low, high) if low <= tick <= high]
    ax.xaxis.set_major_locator(FixedLocator(ticks))
    ax.yaxis.set_major_locator(FixedLocator(ticks))
    plot.hide_frame(ax)
    ax.spines["left"].set_bounds(low, high)
    probabilities = found.stairs.loss.is_mean and (low, high) == (0.0, 1.0)
    unit = " / 1000" if far else ""
    ax.set_xlabel("forecast probability" if probabilities else f"forecast{unit}")
    ax.set_ylabel("observed frequency" if probabilities else f"recalibrated forecast{unit}")
    return ax


def draw_legend(ax: Axes, *, numbers: bool) -> None:
    """Below the axes if it says what a band promises, which is long; else beside them if there are several curves.

    Other short ones are drawn above the diagonal; below it, if the numbers are there.
    """
    labels = ax.get_legend_handles_labels()[1]
    place: dict[str, Any] = {"loc": "upper left"}
    if any("\n" in label for label in labels):
        below = ScaledTranslation(0.0, -_BELOW / 72, ax.get_figure(root=True).dpi_scale_trans)  # type: ignore[union-attr]
        place |= {"bbox_to_anchor": (0.0, 0.0), "bbox_transform": ax.transAxes + below, "borderaxespad": 0.0}
    elif sum(line.get_gid() == _CURVE for line in ax.lines) > 1:
        place["bbox_to_anchor"] = (1.0, 1.0)
    elif numbers:
        (low, high), start = ax.get_ylim(), ax.spines["left"].get_bounds()[0]  # a histogram may lie below
        place = {"loc": "lower right", "bbox_to_anchor": (1.0, (start - low) / (high - low))}
    ax.legend(fontsize="small", frameon=False, **place)


def _draw_diagonal(ax: Axes, low: float, high: float, *, ref_line: bool) -> tuple[float, float]:
    """Draw the diagonal, or lengthen the one that is there; return its ends."""
    for line in ax.lines:
        if line.get_gid() == _DIAGONAL:
            ends = np.append(np.asarray(line.get_xdata(), dtype=np.float64), [low, high])
            low, high = float(ends.min()), float(ends.max())
            line.set_data([low, high], [low, high])
            return low, high
    dashed: dict[str, Any] = {"color": _DIAGONAL_COLOR, "linewidth": 0.9, "linestyle": (0, (5, 4)), "zorder": 1.5}
    label = "calibrated" if ref_line else None
    (line,) = ax.plot([low, high], [low, high], label=label, visible=ref_line, gid=_DIAGONAL, **dashed)
    return low, high


def band_label(bands: Bands) -> str:
    """What a band is and what it promises, in short lines."""
    return f"{bands.description}\n{textwrap.fill(bands.promise, _LEGEND_WIDTH)}"


def _draw_band(
    ax: Axes, bands: Bands, ends: tuple[float, float], color: str, *, filled: bool, name: str | None
) -> None:
    """Fill the band of the first curve; draw only the limits of others, so that none hides another."""
    x, lower, upper = bands.outline()
    lower, upper = np.clip(lower, *ends), np.clip(upper, *ends)
    label = f"{name}, {band_label(bands)}" if name else band_label(bands)
    if filled:
        tint = plot.BAND_COLOR if color == plot.CURVE_COLOR else _tint(color)
        ax.fill_between(x, lower, upper, color=tint, linewidth=0.6, zorder=1, label=label)
        return
    style: dict[str, Any] = {"color": color, "linewidth": 0.8, "linestyle": (0, (1, 1.5)), "zorder": 2}
    ax.plot(x, lower, label=label, **style)
    ax.plot(x, upper, **style)


def _tint(color: str) -> Any:
    """A light, opaque version of a colour."""
    return tuple(0.75 + 0.25 * part for part in to_rgb(color))


def _ends(found: Reliability) -> tuple[float, float]:
    """The range of finite forecasts and recalibrated forecasts."""
    edges, values = found.histogram.edges, found.stairs.values
    numbers = np.concatenate([edges[[0, -1]], values[np.isfinite(values)]])
    return float(numbers.min()), float(numbers.max())


def _in_thousands(found: Reliability) -> Reliability:
    """The result with forecasts divided by 1000."""
    stairs, edges, bands = found.stairs, found.histogram.edges / 1000, found.bands
    if bands is not None:
        bands = bands._replace(x=bands.x / 1000, lower=bands.lower / 1000, upper=bands.upper / 1000)
    left, right, values = (column / 1000 for column in (stairs.left, stairs.right, stairs.values))
    steps = Steps(left, right, values, stairs.weights, stairs.counts)
    smaller = stairs._of_steps(steps, stairs.loss, stairs.increasing)
    return replace(found, stairs=smaller, histogram=found.histogram._replace(edges=edges), bands=bands)


def _draw_curve(ax: Axes, stairs: Staircase, ends: tuple[float, float], color: str, label: str) -> None:
    """Draw steps over the range of their forecasts, and thin lines between them, where the curve is not determined."""
    values = np.clip(stairs.values, *ends)
    left, right = np.clip(stairs.left, *ends), np.clip(stairs.right, *ends)
    x, y = np.column_stack([left, right]).reshape(-1), np.repeat(values, 2)
    ax.plot(*plot.thin_line(x, y), color=color, linewidth=0.8, zorder=3, gid=_CURVE)
    plot.draw_steps(ax, left, right, values, color, label)


def _draw_histogram(ax: Axes, found: Reliability, low: float, high: float, color: str, *, filled: bool) -> float:
    """Draw bars, or their outline, below the curve; return their lower end."""
    height = high - low
    bottom = low - _STRIP * height
    counts = found.histogram.counts
    bars = counts / (counts.max() or 1) * (_STRIP - _GAP) * height
    ax.stairs(bottom + bars, found.histogram.edges, baseline=bottom, fill=filled, color=color, zorder=1,
              linewidth=0 if filled else 0.8, label="forecasts" if filled else None)  # fmt: skip
    return bottom


def _in_few_digits(numbers: list[float]) -> list[str]:
    """Four significant digits of the largest number; the others have as many decimals, so that the parts add up."""
    largest = max((abs(number) for number in numbers if math.isfinite(number)), default=0.0)
    if not _LEAST_FIXED <= largest < _MOST_FIXED:
        return [f"{number:.4g}" for number in numbers]
    decimals = max(0, 3 - math.floor(math.log10(largest)))
    return [
        f"{number:.1g}" if 0 < abs(number) < 0.5 * 10**-decimals else f"{number:,.{decimals}f}" for number in numbers
    ]


def _draw_numbers(ax: Axes, found: Reliability, low: float, high: float) -> None:
    """Write the mean score and its parts above the diagonal, or below it if the curve is in the way."""
    x, y = found.stairs.left, found.stairs.values
    if found.bands is not None:
        x, y = np.append(x, found.bands.x), np.append(y, found.bands.upper)
    width, depth = low + _CORNER[0] * (high - low), low + _CORNER[1] * (high - low)
    taken = bool(np.any((x <= width) & (y > depth)))
    score = _NAMES.get(found.score_name) or found.score_name.replace("_", " ")
    parts = ("miscalibration", "discrimination", "uncertainty")
    names = "\n".join((f"mean {score}", *parts))
    numbers = "\n".join(_in_few_digits([getattr(found, name) for name in ("mean_score", *parts)]))
    style: dict[str, Any] = {
        "va": "bottom" if taken else "top", "fontsize": "small", "linespacing": 1.35, "color": _INK, "zorder": 5,
    }  # fmt: skip
    # two columns, each with its own alignment; the second is placed beside the first for any size of the axes
    left, right = {"multialignment": "left"} | style, {"multialignment": "right"} | style
    beside: dict[str, Any] = {"textcoords": "offset points", "annotation_clip": False}
    if taken:
        first = ax.text(high, low + 0.02 * (high - low), numbers, ha="right", **right)
        ax.annotate(names, (0, 0), (-_BETWEEN, 0), xycoords=first, ha="right", **beside, **left)
    else:
        first = ax.text(low + 0.01 * (high - low), high, names, ha="left", **left)
        ax.annotate(numbers, (1, 1), (_BETWEEN, 0), xycoords=first, ha="left", **beside, **right)
