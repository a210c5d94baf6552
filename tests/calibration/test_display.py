"""ReliabilityDisplay: scikit-learn's conventions, several models, and legends that say what bands promise."""

import math
import re

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression, PoissonRegressor
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import LinearSVC

import staircase_fast as sf
from staircase_fast.calibration.plots import COLORS, band_label

mpl.use("Agg")
Display = sf.ReliabilityDisplay


@pytest.fixture
def ax():
    return Figure().subplots()


@pytest.fixture(autouse=True)
def _closed():
    yield
    plt.close("all")


def rows(n=300, seed=0):
    rng = np.random.default_rng(seed)
    p = rng.random(n)
    return p, (rng.random(n) < p**1.5).astype(int)


def texts(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def test_the_display_has_the_numbers_and_axes_of_its_parts(ax):
    p, y = rows()
    weights = np.linspace(1, 2, 300)
    shown = Display.from_predictions(y, p, sample_weight=weights, name="mine", ax=ax, score="log")
    assert shown.reliability == sf.reliability(p, y, sample_weight=weights, score="log")
    assert (shown.ax_, shown.figure_, shown.name) == (ax, ax.figure, "mine")
    assert texts(ax) == ["calibrated", "mine"]
    again = shown.plot(Figure().subplots(), name="other", ref_line=False, legend=False)
    assert again is shown
    assert shown.ax_.get_legend() is None
    assert shown.ax_.get_legend_handles_labels()[1] == ["other"]
    assert Display(shown.reliability).plot().ax_ is plt.gca()


def test_an_estimator_is_shown_under_its_name(ax):
    X, y = make_classification(300, random_state=0)
    names = np.where(y == 1, "sick", "well")
    fitted = GaussianNB().fit(X[:150], names[:150])
    shown = Display.from_estimator(fitted, X[150:], names[150:], ax=ax)
    assert shown.name == "GaussianNB"
    wanted = sf.reliability(fitted.predict_proba(X[150:])[:, 1], names[150:] == "well")
    assert shown.reliability == wanted
    sick = Display.from_estimator(fitted, X[150:], names[150:], pos_label="sick", name="sick", ax=ax)
    assert sick.reliability == sf.reliability(fitted.predict_proba(X[150:])[:, 0], names[150:] == "sick")
    assert texts(ax) == ["calibrated", "GaussianNB", "sick"]


def test_a_regressor_is_shown_for_a_score_of_targets(ax):
    rng = np.random.default_rng(0)
    X = rng.random((200, 2))
    y = rng.poisson(1 + X[:, 0])
    model = PoissonRegressor().fit(X, y)
    shown = Display.from_estimator(model, X, y, score="poisson_deviance", ax=ax)
    assert shown.reliability == sf.reliability(model.predict(X), y, score="poisson_deviance")


def test_several_models_have_their_colours_one_diagonal_and_common_limits(ax):
    p, y = rows()
    for number in range(3):
        Display.from_predictions(y, p ** (number + 1), name=f"model {number}", ax=ax, bands="consistency", seed=0,
                                 n_resamples=20)  # fmt: skip
    lines = {line.get_label(): line.get_color() for line in ax.lines}
    assert [lines[f"model {number}"] for number in range(3)] == list(COLORS[:3])
    assert texts(ax).count("calibrated") == 1
    # only the first band is filled, so that none hides another
    assert len([one for one in ax.collections if isinstance(one, PolyCollection)]) == 1
    assert sum("consistency band" in text for text in texts(ax)) == 3
    other = Figure().subplots()
    Display.from_predictions([0.0, 1.0], [0.0, 2.0], score="squared", ax=other)
    Display.from_predictions([0.0, 9.0], [-1.0, 8.0], score="squared", ax=other)
    (diagonal,) = [line for line in other.lines if line.get_label() == "calibrated"]
    assert list(diagonal.get_xdata()) == [-1.0, 9.0]
    assert other.get_xlim()[0] < -1
    assert other.get_xlim()[1] > 9


def test_the_legend_says_what_a_band_promises(ax):
    p, y = rows()
    shown = Display.from_predictions(y, p, ax=ax, bands="confidence", level=0.8)
    (text,) = [text for text in texts(ax) if "band" in text]
    assert text == band_label(shown.reliability.bands)
    assert " ".join(text.split("\n")[1:]) == shown.reliability.bands.promise


def test_a_warning_names_the_line_that_calls_the_display(ax):
    p, y = rows()
    with pytest.warns(UserWarning, match="Are they swapped") as caught:
        Display.from_predictions(p, y, ax=ax)
    assert caught[0].filename == __file__


def test_a_long_legend_leaves_room_for_several_curves():
    p, y = rows()
    first = Display.from_predictions(y, p, name="model A", bands="confidence")
    Display.from_predictions(y, p**2, name="model B", ax=first.ax_)
    first.figure_.draw_without_rendering()
    assert first.ax_.get_position().width > 0.5


def test_histograms_and_numbers_are_drawn_on_request(ax):
    p, y = rows()
    shown = Display.from_predictions(y, p, ax=ax, plot_options={"histogram": True, "numbers": True, "color": "red"})
    assert "forecasts" in texts(ax)
    assert any("miscalibration" in text.get_text() for text in ax.texts)
    low = ax.get_ylim()[0]
    Display.from_predictions(y, p**2, ax=ax)
    assert ax.get_ylim()[0] <= low  # the histogram stays visible
    assert shown.ax_.lines[1].get_color() == "red"


@pytest.mark.parametrize(
    ("labels", "pos_label"),
    [([0, 1, 1], None), ([-1, 1, 1], None), ([False, True, True], None), (["a", "b", "b"], "b"), ([3, 5, 5], 5)],
)
def test_the_forecast_class_is_found_or_given(ax, labels, pos_label):
    shown = Display.from_predictions(labels, [0.2, 0.4, 0.9], pos_label=pos_label, ax=ax)
    assert shown.reliability == sf.reliability([0.2, 0.4, 0.9], [0, 1, 1])


def test_invalid_input_is_refused():
    X, y = make_classification(60, random_state=0)
    three = LogisticRegression().fit(X, np.arange(60) % 3)
    for error, message, call in (
        (ValueError, "`pos_label` must be given unless", lambda: Display.from_predictions(["a", "b"], [0.1, 0.2])),
        (ValueError, "`y_prob` must be in [0, 1]", lambda: Display.from_predictions([0, 1], [0.1, 1.2])),
        (ValueError, "`y_true` must be one-dimensional; got shape (). Pass a list",
         lambda: Display.from_predictions(None, [0.1, 0.2])),
        (ValueError, "`y_true` must be in [0, 1]", lambda: Display.from_predictions([0, 5], [0.1, 0.2])),
        (ValueError, "`estimator` must be fitted", lambda: Display.from_estimator(GaussianNB(), X, y)),
        (TypeError, "`estimator` must have predict_proba", lambda: Display.from_estimator(LinearSVC().fit(X, y), X, y)),
        (ValueError, "`estimator` must have been fitted to two classes; got 3",
         lambda: Display.from_estimator(three, X, y)),
        (ValueError, "`pos_label` must be one of 0, 1; got 2",
         lambda: Display.from_estimator(GaussianNB().fit(X, y), X, y, pos_label=2)),
        (TypeError, "`ax` must be matplotlib Axes or None; got 3.",
         lambda: Display.from_predictions([0, 1], [0.1, 0.2], ax=3)),
        (TypeError, "`reliability` must be a result of `reliability`; got 3.", lambda: Display(3)),
    ):  # fmt: skip
        with pytest.raises(error, match=re.escape(message)):
            call()


@pytest.mark.parametrize("missing", [None, math.nan, pd.NA], ids=["None", "nan", "NA"])
def test_missing_classes_are_refused(missing):
    with pytest.raises(ValueError, match=r"`y_true` must not have missing entries; got a missing value at index 1\."):
        sf.ReliabilityDisplay.from_predictions(
            np.array(["a", missing, "b"], dtype=object), [0.2, 0.4, 0.9], pos_label="b"
        )


def test_a_class_that_is_not_there_is_refused_but_one_without_a_row_is_not():
    with pytest.raises(ValueError, match=r"`pos_label` must be one of 'a', 'b'; got 'c'."):
        sf.ReliabilityDisplay.from_predictions(["a", "b"], [0.2, 0.4], pos_label="c")
    shown = sf.ReliabilityDisplay.from_predictions(["a", "a"], [0.2, 0.4], pos_label="b")
    assert shown.reliability.stairs.values.tolist() == [0.0]
