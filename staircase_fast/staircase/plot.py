"""The plot of a staircase, and the drawing functions that other plots share.  Needs matplotlib.

Nothing outside the axes is changed.  The colours can be distinguished by colour-blind readers and in grey.  None is
transparent, so vector files stay small and print well.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from staircase_fast.errors import InvalidTypeError
from staircase_fast.inputs.options import import_optional

import_optional("matplotlib.axes", "a plot", extra="plot")

from matplotlib.axes import Axes  # noqa: E402

if TYPE_CHECKING:
    from staircase_fast.staircase.result import Staircase

Floats = NDArray[np.float64]
CURVE_COLOR, BAND_COLOR = "#08519c", "#c6dbef"
_RESOLUTION = 1024  # positions along an axis: lines are wider than the distance between two


def draw_staircase(stairs: Staircase, ax: Axes | None, *, color: str | None, label: str | None) -> Axes:
    """The steps of a staircase: see `Staircase.plot`."""
    ax = given_or_new(ax, 6.4, 4.4)
    color = color or CURVE_COLOR
    left, right = _finite(stairs.left, stairs.right)
    values, lower, upper = _finite(stairs.values, stairs.lower, stairs.upper)
    if (upper - lower > (values.max() - values.min()) / _RESOLUTION).any():  # otherwise it would be invisible
        ends, lower, upper = np.append(left, right[-1]), np.append(lower, lower[-1]), np.append(upper, upper[-1])
        ax.fill_between(ends, lower, upper, step="post", color=BAND_COLOR, linewidth=0, zorder=1)
    x, y = np.repeat(np.append(left, right[-1]), 2)[1:-1], np.repeat(values, 2)
    ax.plot(*thin_line(x, y), color=color, linewidth=0.8, zorder=2)
    draw_steps(ax, left, right, values, color, label)
    ax.set(xlabel="score", ylabel="value")
    hide_frame(ax)
    return ax


def _finite(*columns: Floats) -> list[Floats]:
    """Move infinite entries slightly beyond the finite ones, so that steps that reach them are visible."""
    numbers = np.concatenate(columns)
    numbers = numbers[np.isfinite(numbers)]
    low, high = (float(numbers.min()), float(numbers.max())) if len(numbers) else (0.0, 0.0)
    margin = 0.05 * (high - low) or 1.0
    return [np.clip(column, low - margin, high + margin) for column in columns]


def given_or_new(ax: Axes | None, width: float, height: float) -> Axes:
    """The given axes, or axes in a new figure."""
    import matplotlib.pyplot as plt

    if ax is not None:
        if not isinstance(ax, Axes):
            raise InvalidTypeError("ax", "must be matplotlib Axes or None", value=ax)
        return ax
    return plt.subplots(figsize=(width, height), layout="constrained")[1]


def hide_frame(ax: Axes) -> None:
    """Remove the upper and the right spine."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.tick_params(direction="out", length=3)


def draw_steps(ax: Axes, left: Floats, right: Floats, values: Floats, color: str, label: str | None) -> None:
    """Draw each step from its first to its last score, or as a dot if it has a single score."""
    if len(left) > _RESOLUTION:  # at each position only the first step, and steps that are visibly long
        begin, end = np.split(_places(np.append(left, right)), 2)
        shown = _moves(left, values) | (end > begin)
        left, right, values = left[shown], right[shown], values[shown]
    gap = np.full(len(left), np.nan)
    x, y = np.column_stack([left, right, gap]).reshape(-1), np.repeat(values, 3)
    ax.plot(x, y, color=color, linewidth=2.0, solid_capstyle="butt", zorder=4, label=label)
    dots = left == right
    if dots.any():
        ax.plot(left[dots], values[dots], linestyle="none", marker="o", markersize=3.2, markeredgewidth=0, color=color,
                zorder=4)  # fmt: skip


def _places(column: Floats) -> NDArray[np.int64]:
    """The position of each number along the axis."""
    low, high = float(column.min()), float(column.max())
    return np.floor((column / 2 - low / 2) / ((high / 2 - low / 2) or 1.0) * _RESOLUTION).astype(np.int64)


def _moves(x: Floats, y: Floats) -> NDArray[np.bool_]:
    """Whether each point has another position than the point before."""
    place = _places(x) * (_RESOLUTION + 2) + _places(y)
    return np.append(True, place[1:] != place[:-1])


def thin_line(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """The vertices of a monotone line; at each position only the first and the last."""
    if len(x) <= _RESOLUTION:
        return x, y
    moved = _moves(x, y)
    shown = moved | np.append(moved[1:], True)
    return x[shown], y[shown]
