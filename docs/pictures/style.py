"""The common style of the pictures: colours, fonts, axes."""

import matplotlib as mpl
import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

ORANGE, BLUE, GREEN, GREY = "#e07b00", "#0062b8", "#00916e", "0.62"

mpl.use("Agg")
plt.rcParams.update(
    {
        "font.family": "DejaVu Sans",
        "font.size": 10,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.titlesize": 10.5,
        "axes.titlelocation": "left",
        "legend.frameon": False,
        "svg.hashsalt": "staircase_fast",  # makes the files reproducible
    }
)


def panels(n: int, size: tuple[float, float], **options: object) -> tuple[Figure, list[Axes]]:
    """Axes side by side."""
    figure, axes = plt.subplots(1, n, figsize=size, layout="constrained", squeeze=False, **options)
    return figure, list(axes[0])
