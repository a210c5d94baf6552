"""The pictures of a report: reliability diagrams, and the curve from score to calibrated value."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator
from typing import Any

import staircase_fast as sf
from staircase_fast.inputs.options import import_optional

EXTENSIONS = (".png", ".svg", ".pdf")
WORST = 6  # segments with a diagram, and groups with a curve
_COLUMNS = 3  # diagrams of segments beside each other


def diagrams(pair: list[sf.Reliability], form: str, *, numbers: bool = False) -> bytes:
    """Both diagrams as an image in the format "svg", "png" or "pdf", with or without numbers in them."""
    with _figure(form, 10.5, 5.7) as (figure, image):
        for axes, name, found in zip(figure.subplots(1, 2), ("before", "after"), pair, strict=True):
            sf.ReliabilityDisplay(found).plot(axes, histogram=True, numbers=numbers, legend=False)
            axes.set_title(f"{name} calibration", fontsize="large")
        bands = pair[0].bands
        _legend(figure, bands.promise if numbers and bands is not None else None)
    return image.getvalue()


def segments(found: list[tuple[str, sf.Reliability]]) -> bytes:
    """A diagram of each segment, with its name, as SVG."""
    n_rows = -(-len(found) // _COLUMNS)
    with _figure("svg", 10.5, 3.9 * n_rows + 0.3) as (figure, image):
        grid = figure.subplots(n_rows, _COLUMNS, squeeze=False).ravel()
        for axes, (name, reliability) in zip(grid, found, strict=False):
            sf.ReliabilityDisplay(reliability).plot(axes, histogram=True, legend=False)
            axes.set_title(_plain(f"{name} ({reliability.n_samples:,} rows)"), fontsize="medium")
        for axes in grid[len(found) :]:
            axes.axis("off")
        _legend(figure)
        figure.get_layout_engine().set(h_pad=0.12)  # inches, between the labels of a row and the titles of the next
    return image.getvalue()


def curve(model: sf.Staircase | sf.StaircaseMap) -> bytes:
    """The values over the scores as SVG; of a map, those of the groups with the most rows."""
    shown = {"": model} if isinstance(model, sf.Staircase) else _largest(model)
    with _figure("svg", 8.5, 4.6) as (figure, image):
        from staircase_fast.calibration.plots import COLORS

        axes = figure.subplots()
        for color, (name, stairs) in zip(COLORS, shown.items(), strict=False):
            stairs.plot(axes, color=color, label=_plain(name) or None)
        values = model.step_values if isinstance(model, sf.StaircaseMap) else model.values
        is_probability = model.loss.is_mean and values.min() >= 0 and values.max() <= 1
        axes.set(ylabel="calibrated probability" if is_probability else "calibrated value")
        if isinstance(model, sf.StaircaseMap):
            more = f", the {WORST} largest of {len(model):,}" if len(model) > WORST else ""
            axes.legend(title=f"groups{more}", frameon=False, fontsize="small", alignment="left")
    return image.getvalue()


def _largest(model: sf.StaircaseMap) -> dict[str, sf.Staircase]:
    sizes = {key: int(stairs.counts.sum()) for key, stairs in model.items()}
    keys = sorted(sizes, key=lambda key: -sizes[key])[:WORST]
    return {str(key): model[key] for key in keys}


def _plain(text: str) -> str:
    """Text in which matplotlib finds neither formulas nor hidden labels."""
    return text.replace("$", r"\$") if not text.startswith("_") else f" {text}"


def _legend(figure: Any, title: str | None = None) -> None:
    """One legend below all diagrams, with the first line of each label."""
    handles, labels = figure.axes[0].get_legend_handles_labels()
    labels = [label.partition("\n")[0] for label in labels]
    style: dict[str, Any] = {"fontsize": "small", "title_fontsize": "small", "frameon": False}
    figure.legend(handles, labels, title=title, loc="outside lower center", ncols=len(labels), **style)


@contextlib.contextmanager
def _figure(form: str, width: float, height: float) -> Iterator[tuple[Any, io.BytesIO]]:
    """A figure, and the image that it is written to at the end; transparent in SVG."""
    import_optional("matplotlib", "this", extra="plot")
    import matplotlib.figure  # without pyplot, there is no window and no shared state
    import matplotlib.style

    image = io.BytesIO()
    settings = {"svg.hashsalt": "staircase"}
    if form == "svg":
        settings |= {"savefig.facecolor": "none", "axes.facecolor": "none"}
    with matplotlib.style.context(["default", settings]):
        figure = matplotlib.figure.Figure(figsize=(width, height), dpi=150, layout="constrained")
        yield figure, image
        figure.savefig(image, format=form, metadata={"Date": None} if form == "svg" else None)
