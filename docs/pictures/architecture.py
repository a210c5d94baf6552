"""The architecture: the rooms of the package, the path of data through them, and the direction of imports.

The imports are read from the source.  Drawing fails if a room has no box, if an import points upwards, or if an arrow
connects rooms that no import connects.

The picture is stored in docs/architecture.svg.  Run this script after a change of the boxes or arrows.
`tests/test_architecture.py` compares the description of the stored picture with `description()`.
"""

from collections import defaultdict
from typing import NamedTuple

from imports import PACKAGE, room_of, rooms_imported, sources
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch
from style import BLUE, ORANGE, panels

PICTURE = PACKAGE.parent / "docs" / "architecture.svg"
INK, FAINT, PALE = "0.15", "0.42", "#f1f4f8"
CENTRED = {"ha": "center", "va": "center"}


class Box(NamedTuple):
    """A room: its lower left corner, its size, and what it does."""

    x: float
    y: float
    width: float
    height: float
    text: str

    def at(self, across: float, up: float) -> tuple[float, float]:
        return self.x + across * self.width, self.y + up * self.height


class Band(NamedTuple):
    """Rooms side by side.  They import from each other and from the bands below."""

    title: str
    y: float
    height: float
    rooms: dict[str, Box]


BANDS = (
    Band("shared by all", 0, 12, {
        "arithmetic": Box(22, 2, 33, 8, "exact sums, rounding, scans of columns"),
        "threads": Box(57, 2, 13, 8, "shared work"),
        "errors": Box(71.5, 2, 13, 8, "invalid input"),
        "typing": Box(86, 2, 12, 8, "annotations"),
    }),
    Band("one fit", 14.5, 50, {
        "fitting": Box(22, 53.5, 51, 8.5, "fit, isotonic_regression: send rows through the rooms below"),
        "inputs": Box(2, 26, 18, 15, "lists, arrays, pandas,\npolars, Arrow become\nclean columns, or\nraise an error"),
        "losses": Box(24, 26, 16, 15, "the function\nto minimise, and\nits valid targets"),
        "stack": Box(45, 34.7, 28, 16, "Block-merge stack\npaper, sections IV and V\n"
                     "if each step is a mean: merges blocks,\nusually without sorting all rows"),
        "bisection": Box(45, 16.5, 28, 16, "Anytime bisection\npaper, section VI\n"
                         "any other convex loss: rounds\nthat narrow numerical bounds"),
        "staircase": Box(80, 26, 18, 15, "the result: predict,\nplot, export to\nSQL and ONNX"),
        "storage": Box(80, 16.5, 18, 7.5, "JSON and array files"),
        "certificate": Box(80, 43.2, 18, 7.5, "proof of optimality"),
    }),
    Band("many fits", 67, 13, {
        "groups": Box(22, 69, 17.5, 9, "fit_groups, fit_columns"),
        "streams": Box(41.5, 69, 17.5, 9, "Online, Accumulator"),
        "batches": Box(61, 69, 17.5, 9, "larger than memory"),
        "calibration": Box(80.5, 69, 17.5, 9, "reliability, Venn-Abers"),
    }),
    Band("other ways\nto call it", 82.5, 13, {
        "sklearn": Box(22, 84.5, 13.5, 9, "estimators"),
        "cli": Box(37.6, 84.5, 13.5, 9, "command line"),
        "dask": Box(53.2, 84.5, 13.5, 9, "clusters"),
        "spark": Box(68.8, 84.5, 13.5, 9, "clusters"),
        "c_api": Box(84.4, 84.5, 13.6, 9, "Cython, C, C++"),
    }),
)  # fmt: skip
BOXES = {name: box for band in BANDS for name, box in band.rooms.items()}
BAND_OF = {name: place for place, band in enumerate(BANDS) for name in band.rooms}
SAME_ROOM = {"cython_api": "c_api", "__main__": "cli"}
ALGORITHMS = ("stack", "bisection")
# Where arrows start and end, as parts of the width and height of a box.
FLOW = (
    ("inputs", (1, 0.5), "losses", (0, 0.5)),
    ("losses", (1, 0.65), "stack", (0, 0.4)),
    ("losses", (1, 0.35), "bisection", (0, 0.6)),
    ("stack", (1, 0.4), "staircase", (0, 0.65)),
    ("bisection", (1, 0.6), "staircase", (0, 0.35)),
)


def imported_rooms() -> dict[str, set[str]]:
    """The other rooms that each room imports."""
    found = defaultdict(set)
    for path in sources():
        own = SAME_ROOM.get(room_of(path), room_of(path))
        found[own] |= {SAME_ROOM.get(room, room) for room, _, _ in rooms_imported(path)} - {own}
    del found["__init__"]  # the public names, from all rooms
    return found


def description() -> str:
    """The boxes and arrows as text, which is stored in the picture."""
    boxes = [f"{room} at {box[:4]}: {' '.join(box.text.split())}" for room, box in BOXES.items()]
    arrows = [f"{start} {leaves} -> {end} {enters}" for start, leaves, end, enters in FLOW]
    return "\n".join(boxes + arrows)


def check(imports: dict[str, set[str]]) -> None:
    """Fail if the picture would not be true."""
    if set(imports) != set(BOXES):
        raise ValueError(f"these rooms need a box, or have one and do not exist: {set(imports) ^ set(BOXES)}")
    for room, others in imports.items():
        for other in others & set(BOXES):
            if BAND_OF[other] > BAND_OF[room]:
                raise ValueError(f"{room} imports {other}, which is drawn above it")
    for start, _, end, _ in FLOW:
        if not {start, end} <= imports["fitting"]:
            raise ValueError(f"rows cannot go from {start} to {end}: fitting.py does not import both")


def draw_box(axes: Axes, room: str) -> None:
    box, is_main = BOXES[room], room in ALGORITHMS
    colours = ("#fdeedd", ORANGE, 2.0) if is_main else ("white", "0.7", 1.0)
    draw_frame(axes, (box.x, box.y), box.width, box.height, *colours)
    title = room if (PACKAGE / room).is_dir() else f"{room}.py"
    middle, top = box.at(0.5, 1)
    axes.text(middle, top - 2.8, title, weight="bold", size=12 if is_main else 10, color=INK, **CENTRED)
    text, y = box.text, top - 4.6
    if is_main:
        subtitle, _, text = text.partition("\n")
        axes.text(middle, top - 5.9, subtitle, size=9.5, color=INK, **CENTRED)
        y = top - 7.9
    axes.text(middle, y, text, ha="center", va="top", size=8, color=FAINT, linespacing=1.25)


def draw_frame(
    axes: Axes, corner: tuple[float, float], width: float, height: float, fill: str, edge: str, line: float
) -> None:
    shape = "round,pad=0,rounding_size=1"
    axes.add_patch(
        FancyBboxPatch(corner, width, height, boxstyle=shape, facecolor=fill, edgecolor=edge, linewidth=line)
    )


def draw_arrow(axes: Axes, start: tuple[float, float], end: tuple[float, float], colour: str, width: float) -> None:
    style = {"arrowstyle": "-|>,head_width=0.35,head_length=0.6", "color": colour, "linewidth": width}
    axes.annotate("", end, start, arrowprops={**style, "shrinkA": 1, "shrinkB": 1})


def draw() -> Figure:
    check(imported_rooms())
    figure, (axes,) = panels(1, (9.5, 7.4))
    axes.set(xlim=(-7.5, 108), ylim=(-1, 97))
    axes.axis("off")
    for band in BANDS:
        draw_frame(axes, (0, band.y), 100, band.height, PALE, PALE, 0.0)
        middle = band.y + band.height - min(band.height / 2, 6.75)
        axes.text(2, middle, band.title, va="center", size=10, style="italic", color=FAINT)
        for room in band.rooms:
            draw_box(axes, room)
    for start, leaves, end, enters in FLOW:
        draw_arrow(axes, BOXES[start].at(*leaves), BOXES[end].at(*enters), BLUE, 2.4)
    entry, way_out = BOXES["inputs"].at(0, 0.5), BOXES["staircase"].at(1, 0.5)
    draw_arrow(axes, (-7, entry[1]), entry, BLUE, 2.4)
    draw_arrow(axes, way_out, (106.5, way_out[1]), BLUE, 2.4)
    axes.text(-7, entry[1] + 2.5, "rows", color=BLUE, size=9.5)
    axes.text(100.8, way_out[1] + 2.5, "values", color=BLUE, size=9.5)
    draw_arrow(axes, (103, 94), (103, 46), FAINT, 1.2)
    axes.text(104, 70, "imports point down", rotation=270, va="center", size=9, color=FAINT)
    return figure


if __name__ == "__main__":
    draw().savefig(PICTURE, metadata={"Date": None, "Description": description()})
