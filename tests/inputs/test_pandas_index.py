"""Rows are matched by position, so columns of pandas must have the same index."""

import re

import numpy as np
import pandas as pd
import pytest

import staircase_fast as sf
from staircase_fast.sklearn import StaircaseCalibrator, StaircaseRegressor

FRAME = pd.DataFrame(
    {"score": [0.1, 0.4, 0.35, 0.8], "label": [0, 0, 1, 1], "weight": [1.0, 2, 1, 1], "city": ["a", "b", "a", "b"]},
    index=["p", "q", "r", "s"],
)
TURNED = FRAME[::-1]
x, y, w, g = (FRAME[name] for name in FRAME)
TWO = pd.DataFrame({0: 1 - x, 1: x})

CALLS = {
    "fit": (lambda other: sf.fit(x, other["label"]), "scores", "targets"),
    "weights": (lambda other: sf.fit(x.to_numpy(), y, sample_weight=other["weight"]), "targets", "sample_weight"),
    "isotonic_regression": (lambda other: sf.isotonic_regression(y, weights=other["weight"]), "y", "weights"),
    "prefix_losses": (lambda other: sf.prefix_losses(y, weights=other["weight"]), "y", "weights"),
    "fit_groups": (lambda other: sf.fit_groups(x, y, other["city"]), "scores", "groups"),
    "StaircaseMap": (lambda other: sf.fit_groups(x, y, g).predict(x, other["city"]), "scores", "groups"),
    "fit_columns": (lambda other: sf.fit_columns(TWO, other[["label", "label"]]), "scores", "targets"),
    "fit_columns, weights": (
        lambda other: sf.fit_columns(TWO, FRAME[["label", "label"]], sample_weight=other["weight"]),
        "scores",
        "sample_weight",
    ),
    "Online": (lambda other: sf.Online().extend(np.sort(x), y, other["weight"]), "targets", "sample_weight"),
    "Accumulator": (lambda other: sf.Accumulator().add(x, other["label"]), "scores", "targets"),
    "fit_batches": (lambda other: sf.fit_batches([(x, other["label"])]), "scores", "targets"),
    "Anytime": (lambda other: sf.Anytime(x, other["label"], loss="huber"), "scores", "targets"),
    "certify": (lambda other: sf.certify(sf.fit(x, y), x, other["label"]), "scores", "targets"),
    "reliability": (lambda other: sf.reliability(x, other["label"]), "scores", "targets"),
    "calibration_errors": (lambda other: sf.calibration_errors(x, other["label"]), "scores", "targets"),
    "calibration_errors of classes": (lambda other: sf.calibration_errors(TWO, other["label"]), "scores", "targets"),
    "VennAbers": (lambda other: sf.VennAbers().fit(x, other["label"]), "scores", "labels"),
    "VennAbersMulticlass": (lambda other: sf.VennAbersMulticlass().fit(TWO, other["label"]), "scores", "labels"),
    "VennAbersRegression": (lambda other: sf.VennAbersRegression().fit(x, other["label"]), "scores", "targets"),
    "CrossVennAbers": (lambda other: sf.CrossVennAbers().fit(x, y, folds=other["label"]), "scores", "folds"),
    "display": (
        lambda other: sf.ReliabilityDisplay.from_predictions(y, other["score"], score="squared"), "y_prob", "y_true"
    ),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:The frequency of")
@pytest.mark.parametrize("name", CALLS)
def test_columns_with_different_indexes_are_an_error(name):
    call, first, second = CALLS[name]
    call(FRAME)
    message = f"`{first}` and `{second}` must have the same index; got labels '[ps]' and '[ps]' at index 0. Rows are"
    with pytest.raises(sf.InvalidInputError, match=message):
        call(TURNED)


def test_the_error_names_the_first_label_that_differs_and_both_ways_to_fix_it():
    other = y.set_axis(["p", "q", "s", "r"])
    with pytest.raises(sf.InvalidInputError) as found:
        sf.fit(x, other)
    assert found.value.index == 2
    assert str(found.value) == (
        "`scores` and `targets` must have the same index; got labels 'r' and 's' at index 2. Rows are matched by "
        "position. Use `targets.loc[scores.index]` to match them by label, or `.reset_index(drop=True)` on each if "
        "their rows are in the same order."
    )
    aligned = sf.fit(x, other.loc[x.index])
    assert aligned == sf.fit(x.to_numpy(), other.to_numpy()[[0, 1, 3, 2]])
    assert sf.fit(x.reset_index(drop=True), other.reset_index(drop=True)) == sf.fit(x.to_numpy(), other.to_numpy())


@pytest.mark.parametrize(
    ("index", "other"),
    [
        (pd.RangeIndex(4), pd.Index([0, 1, 2, 3])),
        (pd.Index([1.0, np.nan, 3.0, 3.0]), pd.Index([1.0, np.nan, 3.0, 3.0])),
        (pd.MultiIndex.from_product([["a", "b"], [1, 2]]), pd.MultiIndex.from_product([["a", "b"], [1, 2]])),
        (pd.date_range("2024", periods=4, tz="UTC"), pd.date_range("2024", periods=4, tz="UTC")),
    ],
)
def test_equal_indexes_of_any_type_are_valid(index, other):
    assert sf.fit(x.set_axis(index), y.set_axis(other)) == sf.fit(x, y)
    with pytest.raises(sf.InvalidInputError, match=re.escape("at index 3")):
        sf.fit(x.set_axis(index), y.set_axis([*other[:3], "other"]))


def test_columns_without_an_index_are_matched_by_position():
    expected = sf.fit(x, y)
    for other in (TURNED["label"].to_numpy()[::-1], y.tolist(), y.array, pd.Index(y)):
        assert sf.fit(x, other) == expected


def test_different_lengths_are_reported_first():
    with pytest.raises(sf.InvalidInputError, match="must have one entry per row; got 4 and 3 entries"):
        sf.fit(x, y[:3])


def test_the_estimators_ignore_indexes_as_scikit_learn_does():
    given = x, TURNED["label"].set_axis(range(4)), w.set_axis(range(4))
    arrays = [column.to_numpy() for column in given]
    assert StaircaseRegressor().fit(*given).staircase_ == StaircaseRegressor().fit(*arrays).staircase_
    assert StaircaseCalibrator().fit(*given).classes_.tolist() == [0, 1]
