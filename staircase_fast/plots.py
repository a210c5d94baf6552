"""Pictures of staircases and of reliability; the only module that needs matplotlib.

Nothing outside the axes is changed.  Colours can be told apart by the colour-blind and in grey, and none is
transparent: vector files stay small, and printers get them right.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from staircase_fast import _validation

_validation.library("matplotlib.axes", "a plot", extra="plot")

from matplotlib.axes import Axes  # noqa: E402
from matplotlib.ticker import FixedLocator, MaxNLocator  # noqa: E402

if TYPE_CHECKING:
    from staircase_fast.assessment import Reliability
    from staircase_fast.staircase import Staircase

_Floats = NDArray[np.float64]
_CURVE, _BAND, _DIAGONAL, _BARS, _INK = "#08519c", "#c6dbef", "0.35", "0.72", "0.15"
_NAMES = {"brier": "Brier score", "poisson_deviance": "Poisson deviance", "tweedie_deviance": "Tweedie deviance"}
_STRIP = 0.2  # of the height of the curve is for the histogram below it
_GAP = 0.04  # of it is left free between them
_FINE = 1024  # places along an axis: lines are wider than what lies between two
_BETWEEN = 12  # points between the names of numbers and the numbers
_FAR = 1e305  # what is farther from 0 is drawn in thousands: matplotlib adds up edges of bars
_CORNER = 0.5, 0.7  # the box of numbers reaches so far to the right, and so far down


def draw_reliability(found: Reliability, ax: Axes | None, *, histogram: bool, numbers: bool, color: str | None) -> Axes:
    """A reliability diagram: see `Reliability.plot`."""
    ax = ax if ax is not None else _new_axes(5.0, 5.6)
    low, high = _ends(found)
    far = max(-low, high) > _FAR
    if far:
        found = _in_thousands(found)
        low, high = _ends(found)
    ax.plot(
        [low, high], [low, high], color=_DIAGONAL, linewidth=0.9, linestyle=(0, (5, 4)), zorder=1.5, label="calibrated"
    )
    if found.bands is not None:
        bands = found.bands
        lower, upper = np.clip(bands.lower, low, high), np.clip(bands.upper, low, high)
        label = f"{100 * bands.level:g} % {bands.kind} band"
        ax.fill_between(bands.x, lower, upper, color=_BAND, linewidth=0.6, zorder=1, label=label)
    _draw_curve(ax, found.stairs, (low, high), color or _CURVE)
    bottom = _draw_histogram(ax, found, low, high) if histogram else low
    if numbers:
        _draw_numbers(ax, found, low, high)
    margin = 0.02 * (high - low)
    ax.set(xlim=(low - margin, high + margin), ylim=(bottom - (0 if histogram else margin), high + margin))
    ax.set_aspect("equal", adjustable="box")
    ticks = [tick for tick in MaxNLocator(5).tick_values(low, high) if low <= tick <= high]
    ax.xaxis.set_major_locator(FixedLocator(ticks))
    ax.yaxis.set_major_locator(FixedLocator(ticks))
    _tidy(ax)
    ax.spines["left"].set_bounds(low, high)
    probabilities = found.stairs.loss.is_mean and (low, high) == (0.0, 1.0)
    unit = " / 1000" if far else ""
    ax.set_xlabel("forecast probability" if probabilities else f"forecast{unit}")
    ax.set_ylabel("observed frequency" if probabilities else f"recalibrated forecast{unit}")
    return ax


def draw_staircase(stairs: Staircase, ax: Axes | None, *, color: str | None, label: str | None) -> Axes:
    """The steps of a staircase: see `Staircase.plot`."""
    ax = ax if ax is not None else _new_axes(6.4, 4.4)
    color = color or _CURVE
    left, right = _finite(stairs.left, stairs.right)
    values, lower, upper = _finite(stairs.values, stairs.lower, stairs.upper)
    if (upper - lower > (values.max() - values.min()) / _FINE).any():  # else nothing could be seen of it
        ends, lower, upper = np.append(left, right[-1]), np.append(lower, lower[-1]), np.append(upper, upper[-1])
        ax.fill_between(ends, lower, upper, step="post", color=_BAND, linewidth=0, zorder=1)
    x, y = np.repeat(np.append(left, right[-1]), 2)[1:-1], np.repeat(values, 2)
    ax.plot(*_thinned(x, y), color=color, linewidth=0.8, zorder=2)
    _draw_steps(ax, left, right, values, color, label)
    ax.set(xlabel="score", ylabel="value")
    _tidy(ax)
    return ax


def _new_axes(width: float, height: float) -> Axes:
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=(width, height), layout="constrained")[1]


def _tidy(ax: Axes) -> None:
    ax.spines[["top", "right"]].set_visible(False)
    ax.tick_params(direction="out", length=3)


def _ends(found: Reliability) -> tuple[float, float]:
    """Between which forecasts and recalibrated ones lie; infinite ones lie outside of all pictures."""
    edges, values = found.histogram.edges, found.stairs.values
    numbers = np.concatenate([edges[[0, -1]], values[np.isfinite(values)]])
    return float(numbers.min()), float(numbers.max())


def _in_thousands(found: Reliability) -> Reliability:
    """The same with forecasts in thousands."""
    stairs, edges, bands = found.stairs, found.histogram.edges / 1000, found.bands
    if bands is not None:
        bands = bands._replace(x=bands.x / 1000, lower=bands.lower / 1000, upper=bands.upper / 1000)
    left, right, values = (column / 1000 for column in (stairs.left, stairs.right, stairs.values))
    steps = _validation.Steps(left, right, values, stairs.weights, stairs.counts)
    smaller = stairs._of_steps(steps, stairs.loss, stairs.increasing)
    return replace(found, stairs=smaller, histogram=found.histogram._replace(edges=edges), bands=bands)


def _finite(*columns: _Floats) -> list[_Floats]:
    """Infinite entries a little outside of all finite ones, so that steps which reach there can be seen."""
    numbers = np.concatenate(columns)
    numbers = numbers[np.isfinite(numbers)]
    low, high = (float(numbers.min()), float(numbers.max())) if len(numbers) else (0.0, 0.0)
    margin = 0.05 * (high - low) or 1.0
    return [np.clip(column, low - margin, high + margin) for column in columns]


def _draw_curve(ax: Axes, stairs: Staircase, ends: tuple[float, float], color: str) -> None:
    """Steps as far as there are forecasts, and thin lines between them: there, any curve that rises will do."""
    values = np.clip(stairs.values, *ends)
    left, right = np.clip(stairs.left, *ends), np.clip(stairs.right, *ends)
    x, y = np.column_stack([left, right]).reshape(-1), np.repeat(values, 2)
    ax.plot(*_thinned(x, y), color=color, linewidth=0.8, zorder=3)
    _draw_steps(ax, left, right, values, color, "recalibrated")


def _draw_steps(ax: Axes, left: _Floats, right: _Floats, values: _Floats, color: str, label: str | None) -> None:
    """Each step from its first to its last score; one that has a single score is a dot."""
    shown = _apart(left, right, values)
    left, right, values = left[shown], right[shown], values[shown]
    gap = np.full(len(left), np.nan)
    x, y = np.column_stack([left, right, gap]).reshape(-1), np.repeat(values, 3)
    ax.plot(x, y, color=color, linewidth=2.0, solid_capstyle="butt", zorder=4, label=label)
    dots = left == right
    if dots.any():
        ax.plot(left[dots], values[dots], linestyle="none", marker="o", markersize=3.2, markeredgewidth=0, color=color,
                zorder=4)  # fmt: skip


def _places(column: _Floats) -> NDArray[np.int64]:
    """Where numbers lie among the places along an axis."""
    low, high = float(column.min()), float(column.max())
    return np.floor((column / 2 - low / 2) / ((high / 2 - low / 2) or 1.0) * _FINE).astype(np.int64)


def _thinned(x: _Floats, y: _Floats) -> tuple[_Floats, _Floats]:
    """The vertices of a monotone line; of many at one place, the first and the last."""
    if len(x) <= _FINE:
        return x, y
    place = _places(x) * (_FINE + 2) + _places(y)
    moved = np.append(True, place[1:] != place[:-1])
    kept = moved | np.append(moved[1:], True)
    return x[kept], y[kept]


def _apart(left: _Floats, right: _Floats, values: _Floats) -> NDArray[np.int64]:
    """Steps to draw: of many at one place, the first one and those that can be seen to be long."""
    if len(left) <= _FINE:
        return np.arange(len(left))
    place = _places(left) * (_FINE + 2) + _places(values)
    moved = np.append(True, place[1:] != place[:-1])
    begin, end = np.split(_places(np.append(left, right)), 2)
    return np.flatnonzero(moved | (end > begin))


def _draw_histogram(ax: Axes, found: Reliability, low: float, high: float) -> float:
    """Bars below the curve; return where they stand."""
    height = high - low
    bottom = low - _STRIP * height
    counts = found.histogram.counts
    bars = counts / (counts.max() or 1) * (_STRIP - _GAP) * height
    ax.stairs(bottom + bars, found.histogram.edges, baseline=bottom, fill=True, color=_BARS, linewidth=0, zorder=1,
              label="forecasts")  # fmt: skip
    return bottom


def _draw_numbers(ax: Axes, found: Reliability, low: float, high: float) -> None:
    """The parts of the mean score, in the corner above the diagonal, or below it if the curve is in the way."""
    x, y = found.stairs.left, found.stairs.values
    if found.bands is not None:
        x, y = np.append(x, found.bands.x), np.append(y, found.bands.upper)
    width, depth = low + _CORNER[0] * (high - low), low + _CORNER[1] * (high - low)
    taken = bool(np.any((x <= width) & (y > depth)))
    rows = [
        (f"mean {_NAMES.get(found.score_name) or found.score_name.replace('_', ' ')}", found.mean_score),
        ("miscalibration", found.miscalibration),
        ("discrimination", found.discrimination),
        ("uncertainty", found.uncertainty),
    ]
    names, numbers = "\n".join(name for name, _ in rows), "\n".join(_short(number) for _, number in rows)
    style: dict[str, Any] = {
        "va": "bottom" if taken else "top",
        "fontsize": "small",
        "linespacing": 1.35,
        "color": _INK,
        "zorder": 5,
    }
    # each column keeps its own alignment, and the second stands beside the first, however small the axes are
    left, right = {"multialignment": "left"} | style, {"multialignment": "right"} | style
    beside: dict[str, Any] = {"textcoords": "offset points", "annotation_clip": False}
    if taken:
        first = ax.text(high, low + 0.02 * (high - low), numbers, ha="right", **right)
        ax.annotate(names, (0, 0), (-_BETWEEN, 0), xycoords=first, ha="right", **beside, **left)
    else:
        first = ax.text(low + 0.01 * (high - low), high, names, ha="left", **left)
        ax.annotate(numbers, (1, 1), (_BETWEEN, 0), xycoords=first, ha="left", **beside, **right)


def _short(number: float) -> str:
    return f"{number:.4f}" if 1e-4 <= abs(number) < 1e3 or number == 0 else f"{number:.3g}"
