"""Plots: the artists that matplotlib draws, and that they are visible."""

import io
import math
import sys
from dataclasses import replace

import numpy as np
import pytest

import staircase_fast as sf

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

import matplotlib.pyplot as plt  # noqa: E402
from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: E402
from matplotlib.collections import PolyCollection  # noqa: E402
from matplotlib.figure import Figure  # noqa: E402
from matplotlib.patches import StepPatch  # noqa: E402

pytestmark = pytest.mark.long
LABELS, FORECASTS = [0, 0, 0, 1, 1, 1], [0.4, 0.3, 0.2, 0.1, 0.5, 0.9]


@pytest.fixture
def ax():
    return Figure(figsize=(4, 4.5)).subplots()  # not registered with pyplot


def line(ax, label):
    (found,) = [one for one in ax.lines if one.get_label() == label]
    return found.get_xydata().tolist()


def pixels(ax):
    canvas = FigureCanvasAgg(ax.figure)
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())


def known(**options):
    return sf.reliability(FORECASTS, LABELS, **options)


def test_the_curve_is_thick_where_there_are_forecasts_and_thin_between_them(ax):
    assert known().plot(ax) is ax
    thick = np.array(line(ax, "recalibrated"))
    assert thick[[0, 1, 3, 4]].tolist() == [[0.1, 0.25], [0.4, 0.25], [0.5, 1.0], [0.9, 1.0]]
    assert np.isnan(thick[[2, 5], 0]).all()  # no line between steps
    thin = [one for one in ax.lines if one.get_linewidth() < 1 and one.get_linestyle() == "-"]
    assert [one.get_xydata().tolist() for one in thin] == [[[0.1, 0.25], [0.4, 0.25], [0.5, 1.0], [0.9, 1.0]]]


def test_the_diagonal_is_that_of_the_unit_square(ax):
    known().plot(ax)
    assert line(ax, "calibrated") == [[0, 0], [1, 1]]
    assert ax.get_aspect() == 1.0
    assert ax.get_xlim()[0] <= 0
    assert ax.get_xlim()[1] >= 1
    assert ax.get_ylim()[1] >= 1
    ticks = ax.get_yticks()
    assert ticks.tolist() == ax.get_xticks().tolist() == pytest.approx([0, 0.2, 0.4, 0.6, 0.8, 1.0])
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("forecast probability", "observed frequency")


def test_the_band_is_a_polygon_through_its_limits(ax):
    found = known(bands="confidence", level=0.5)
    found.plot(ax)
    (band,) = [one for one in ax.collections if isinstance(one, PolyCollection)]
    assert band.get_label().startswith("50 % confidence band, simultaneous\nThe band contains the true curve at all\n")
    (path,) = band.get_paths()
    vertices = {tuple(vertex) for vertex in path.vertices.tolist()}
    assert set(zip(found.bands.x, found.bands.lower, strict=True)) <= vertices
    assert set(zip(found.bands.x, found.bands.upper, strict=True)) <= vertices
    assert not known().plot(Figure().subplots()).collections


def test_the_histogram_stands_below_the_curve(ax):
    found = known(sample_weight=[1, 1, 1, 1, 1, 4])
    found.plot(ax)
    (bars,) = [one for one in ax.patches if isinstance(one, StepPatch)]
    tops, edges, bottom = bars.get_data()
    assert np.array_equal(edges, found.histogram.edges)
    heights = tops - bottom
    assert heights == pytest.approx(found.histogram.counts / 4 * heights.max())
    assert tops.max() < 0
    assert ax.get_ylim()[0] == pytest.approx(bottom)
    without = found.plot(Figure().subplots(), histogram=False)
    assert not without.patches
    assert without.get_ylim()[0] > -0.1


def names_and_numbers(ax):
    """Both columns of text: whichever stands at the border of the picture was drawn first."""
    return sorted(ax.texts, key=lambda text: not text.get_text().startswith("mean "))


def test_the_numbers_are_those_of_the_score(ax):
    known().plot(ax)
    names, numbers = (text.get_text().split("\n") for text in names_and_numbers(ax))
    assert names == ["mean Brier score", "miscalibration", "discrimination", "uncertainty"]
    assert numbers == ["0.2267", "0.1017", "0.1250", "0.2500"]
    assert not known().plot(Figure().subplots(), numbers=False).texts


def test_numbers_that_are_small_large_or_infinite_are_short(ax):
    sf.reliability([0.0, 0.5], [1, 1], score="log").plot(ax)
    assert names_and_numbers(ax)[1].get_text() == "inf\ninf\n0\n0"
    tiny = sf.reliability(np.array([1, 2, 3]) * 1e6, [1e6, 2e6, 3.001e6], score="squared").plot(Figure().subplots())
    assert names_and_numbers(tiny)[1].get_text().split("\n")[:3] == ["3.333e+05", "3.333e+05", "6.673e+11"]


@pytest.mark.parametrize(
    ("numbers", "drawn"),
    [
        ([0.185464, 0.0154416, 0.0775276, 0.24755], ["0.1855", "0.0154", "0.0775", "0.2475"]),
        ([0.25, 0.0, 3e-7, 0.25], ["0.2500", "0.0000", "3e-07", "0.2500"]),
        ([1234.5, 1.25, 0.75, 1234.0], ["1,234", "1", "1", "1,234"]),
        ([1e9, 2.0, 1.0, 1e9], ["1e+09", "2", "1", "1e+09"]),
        ([math.inf, math.inf, 0.125, 0.5], ["inf", "inf", "0.1250", "0.5000"]),
        ([0.0, 0.0, 0.0, 0.0], ["0", "0", "0", "0"]),
    ],
)
def test_drawn_numbers_have_four_significant_digits_and_equal_decimals(ax, numbers, drawn):
    names = ("mean_score", "miscalibration", "discrimination", "uncertainty")
    replace(known(), **dict(zip(names, numbers, strict=True))).plot(ax)
    assert names_and_numbers(ax)[1].get_text().split("\n") == drawn


def test_numbers_move_to_the_other_corner_if_the_curve_is_in_the_way():
    def places(x, y, **options):
        axes = sf.reliability(x, y, **options).plot(Figure().subplots())
        return {text.get_va() for text in axes.texts}

    assert places([0.1, 0.5, 0.6, 0.9], [0, 1, 0, 1]) == {"top"}
    assert places([0.1, 0.2, 0.9], [0, 1, 1]) == {"bottom"}
    assert places([0.4] * 9, [0, 0, 0, 1, 1, 0, 1, 1, 1], bands="confidence", seed=0) == {"bottom"}


@pytest.mark.parametrize("happened", [[0, 1, 0, 1], [1, 1, 0, 1]])  # in the upper corner, and in the lower one
def test_numbers_stand_beside_their_names_in_axes_of_any_size(happened):
    for width in (2, 4, 8):
        ax = sf.reliability([0.1, 0.5, 0.6, 0.9], happened).plot(Figure((width, width)).subplots())
        renderer = FigureCanvasAgg(ax.figure).get_renderer()
        names, numbers = (text.get_window_extent(renderer) for text in names_and_numbers(ax))
        assert names.x1 < numbers.x0 < names.x1 + 30


def test_only_the_axes_are_changed(ax):
    before, settings = plt.get_fignums(), dict(matplotlib.rcParams)
    known(bands="consistency", n_resamples=10).plot(ax)
    sf.fit([1, 2], [1, 2]).plot(ax)
    assert plt.get_fignums() == before
    assert dict(matplotlib.rcParams) == settings


def test_without_axes_a_figure_is_made():
    for draw in (known().plot, sf.fit([1, 2], [1, 2]).plot):
        axes = draw()
        assert axes.figure.number in plt.get_fignums()
        plt.close(axes.figure)


def test_a_legend_has_a_line_for_each_thing(ax):
    known(bands="consistency", n_resamples=10, level=0.75).plot(ax)
    texts = [text.get_text() for text in ax.legend().get_texts()]
    promise = "If the scores are calibrated, their curve\nlies within the band everywhere with\nprobability about 75 %."
    assert texts == ["calibrated", f"75 % consistency band, simultaneous\n{promise}", "recalibrated", "forecasts"]


def test_the_picture_has_colours_where_they_belong():
    axes = known(bands="confidence", n_resamples=50, seed=0).plot(Figure(figsize=(4, 4.5)).subplots(), color="#ff0000")
    image = pixels(axes)
    white = (image[..., :3] == 255).all(axis=-1)
    assert 0.3 < white.mean() < 0.95
    height = image.shape[0]
    for x, y, colour in ((0.25, 0.25, (255, 0, 0)), (0.7, 1.0, (255, 0, 0)), (0.8, 0.5, (255, 191, 191))):
        column, row = axes.transData.transform((x, y))
        seen = image[height - round(row) - 2 : height - round(row) + 2, round(column), :3]
        assert (seen == colour).all(axis=-1).any(), (x, y, seen)


@pytest.mark.parametrize("kind", ["svg", "pdf"])
def test_many_steps_make_small_files(kind):
    n = 100_000
    x = (np.arange(n) + 0.5) / n
    axes = Figure().subplots()
    sf.reliability(x, x).plot(axes)
    sf.fit(x, x**2).plot(axes)
    file = io.BytesIO()
    axes.figure.savefig(file, format=kind)
    assert len(file.getvalue()) < 500_000
    assert max(len(one.get_xdata()) for one in axes.lines) < 20_000


def test_a_line_of_many_vertices_is_where_it_was():
    rng = np.random.default_rng(0)
    x = np.sort(rng.random(50_000))
    y = np.cumsum(rng.random(50_000) ** 20)
    y /= y[-1]
    stairs = sf.fit(x, y)
    axes = stairs.plot(Figure().subplots())
    thin = axes.lines[0].get_xydata()
    assert len(thin) < 20_000
    assert thin[0].tolist() == [x[0], y[0]]
    assert thin[-1].tolist() == [x[-1], y[-1]]
    assert np.abs(np.interp(x, thin[:, 0], thin[:, 1]) - y).max() < 0.02


def test_other_scores_are_drawn_over_their_forecasts(ax):
    found = sf.reliability([1.0, 4.0, 9.0], [2.0, 3.0, 12.0], score="squared")
    found.plot(ax)
    assert line(ax, "calibrated") == [[1, 1], [12, 12]]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("forecast", "recalibrated forecast")
    dots = [one for one in ax.lines if one.get_marker() == "o"]
    assert [one.get_xydata().tolist() for one in dots] == [[[1, 2], [4, 3], [9, 12]]]  # steps of one forecast
    assert names_and_numbers(ax)[0].get_text().startswith("mean squared error\n")


def test_infinite_log_odds_end_at_the_border(ax):
    found = sf.reliability([-2.0, -1.0, 0.0, 0.0, 3.0], [0, 0, 0, 1, 1], score="logistic", bands="confidence")
    found.plot(ax)
    pixels(ax)
    thick = np.array(line(ax, "recalibrated"))
    assert np.nanmin(thick[:, 1]) == -2.0
    assert np.nanmax(thick[:, 1]) == 3.0


def test_one_forecast_makes_a_picture(ax):
    found = sf.reliability([0.5, 0.5], [0, 1], bands="confidence", n_resamples=20, seed=0)
    found.plot(ax)
    pixels(ax)
    assert sf.reliability([1e20], [1e20], score="squared").plot(Figure().subplots())


@pytest.mark.parametrize(
    ("numbers", "options"),
    [
        ([-1e308, 0.0, 1e308], {"score": "huber"}),
        ([1e308, 1.5e308, 1.79e308], {"score": "poisson_deviance", "bands": "confidence"}),
    ],
)
def test_forecasts_near_the_greatest_float_are_drawn_in_thousands(ax, numbers, options):
    found = sf.reliability(numbers, [0, 1, 2], **options)
    found.plot(ax)
    pixels(ax)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("forecast / 1000", "recalibrated forecast / 1000")
    assert ax.get_xlim()[1] > numbers[-1] / 1000
    thick = np.array(line(ax, "recalibrated"))
    assert thick[~np.isnan(thick[:, 0])][::2, 0].tolist() == (np.array(numbers) / 1000).tolist()
    assert found.stairs.right[-1] == numbers[-1]


def test_steps_reach_from_their_first_score_to_the_next_step(ax):
    stairs = sf.fit([1, 2, 3, 5, 8], [1, 3, 2, 4, 4])
    assert stairs.plot(ax, color="red", label="fit") is ax
    thin = ax.lines[0]
    assert thin.get_xydata().tolist() == [[1, 1], [2, 1], [2, 2.5], [5, 2.5], [5, 4], [8, 4]]
    thick = np.array(line(ax, "fit"))
    assert thick[~np.isnan(thick[:, 0])].tolist() == [[1, 1], [1, 1], [2, 2.5], [3, 2.5], [5, 4], [8, 4]]
    assert {one.get_color() for one in ax.lines} == {"red"}
    assert not ax.collections
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("score", "value")


def test_bounds_of_values_are_shaded_where_they_differ(ax):
    stairs = sf.Staircase([1, 2], [1, 3], [1.0, 2.0], [1, 2], [1, 2], lower=[1.0, 1.5], upper=[1.0, 2.25])
    stairs.plot(ax)
    (shade,) = ax.collections
    box = shade.get_datalim(ax.transData)
    assert (box.y0, box.y1) == (1.0, 2.25)
    exact = sf.fit([1, 2, 3], [1.0, 5.0, 2.0], loss="log_cosh").plot(Figure().subplots())
    assert not exact.collections


def test_infinite_scores_and_values_lie_a_little_outside(ax):
    stairs = sf.fit([-np.inf, 0, 1, 2, np.inf], [0, 0, 1, 1, 2])
    stairs.plot(ax)
    x = ax.lines[0].get_xdata()
    assert (x[0], x[-1]) == (-0.1, 2.1)
    assert np.all(np.diff(x) >= 0)
    nowhere = sf.fit([np.inf], [1]).plot(Figure().subplots())
    assert nowhere.lines[0].get_xydata().tolist() == [[1, 1], [1, 1]]


def test_without_matplotlib_the_extra_is_named(monkeypatch):
    for module in ("staircase.plot", "calibration.plots"):
        monkeypatch.delitem(sys.modules, f"staircase_fast.{module}", raising=False)
    monkeypatch.setitem(sys.modules, "matplotlib.axes", None)
    for draw in (known().plot, sf.fit([1, 2], [1, 2]).plot):
        with pytest.raises(ImportError, match=r"a plot needs matplotlib, .* pip install '\.\[plot\]' in a checkout"):
            draw()


def test_fits_and_their_reliability_need_no_matplotlib():
    import subprocess

    code = "import sys, staircase_fast as sf; sf.reliability([0.5], [1], bands='confidence'); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "matplotlib" not in done.stdout
    assert "staircase_fast.calibration.bands" in done.stdout
