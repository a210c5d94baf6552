"""Losses: by name or object; log-loss has the solution of the square error."""

import copy
import math
import pickle

import pytest
from comparing import assert_same_bits, assert_same_staircase
from hypothesis import given
from hypothesis import strategies as st
from strategies import kinds, rows

import staircase_fast as sf

LOSSES = {
    "squared": sf.losses.SquaredError,
    "squared_error": sf.losses.SquaredError,
    "log": sf.losses.LogLoss,
    "log_loss": sf.losses.LogLoss,
}
probabilities = {
    "labels": st.sampled_from([0.0, 1.0]),
    "decimals": st.integers(0, 10).map(lambda k: k / 10),
    "any": st.floats(0, 1),
    "ends": st.sampled_from([0.0, 5e-324, 1e-300, math.nextafter(1, 0), 1.0]),
}


@pytest.mark.parametrize("name", LOSSES)
def test_a_loss_is_given_by_name_or_as_an_object(name):
    scores, targets = [1, 2, 3], [0.5, 1.0, 0.25]
    by_name = sf.fit(scores, targets, loss=name)
    assert_same_staircase(by_name, sf.fit(scores, targets, loss=LOSSES[name]()))
    assert by_name.loss == LOSSES[name]()
    line = sf.isotonic_regression(targets, loss=name)
    assert_same_bits(line.x, sf.isotonic_regression(targets, loss=LOSSES[name]()).x)


def test_the_loss_is_the_square_error_unless_told():
    assert sf.fit([1], [1]).loss == sf.losses.SquaredError()


def test_losses_are_equal_by_kind_and_can_be_keys():
    assert sf.losses.SquaredError() == sf.losses.SquaredError()
    assert sf.losses.SquaredError() != sf.losses.LogLoss()
    assert sf.losses.SquaredError() != "squared"
    assert {sf.losses.LogLoss(): 1}[sf.losses.LogLoss()] == 1


@pytest.mark.parametrize("kind", [sf.losses.SquaredError, sf.losses.LogLoss])
def test_a_loss_is_shown_as_it_is_written_and_survives_copies(kind):
    assert repr(kind()) == f"{kind.__name__}()"
    assert copy.copy(kind()) == pickle.loads(pickle.dumps(kind())) == kind()


def test_there_is_no_loss_of_no_kind():
    with pytest.raises(TypeError, match="abstract"):
        sf.losses.Loss()


@given(rows(targets=kinds(probabilities)), st.booleans())
def test_log_loss_has_the_staircase_of_the_square_error(rows, increasing):
    options = {"sample_weight": rows.weights, "increasing": increasing}
    log = sf.fit(rows.scores, rows.targets, loss="log", **options)
    squared = sf.fit(rows.scores, rows.targets, **options)
    for name in ("left", "right", "values", "weights", "counts"):
        assert_same_bits(getattr(log, name), getattr(squared, name))


@given(rows(targets=kinds(probabilities)))
def test_values_under_log_loss_are_probabilities(rows):
    values = sf.fit(rows.scores, rows.targets, sample_weight=rows.weights, loss="log").values
    assert ((values >= 0) & (values <= 1)).all()


def test_pure_blocks_have_the_values_zero_and_one_and_bounds_keep_them_inside():
    scores, labels = [1, 2, 3, 4], [0, 0, 1, 1]
    assert sf.fit(scores, labels, loss="log").values.tolist() == [0.0, 1.0]
    inside = sf.fit(scores, labels, loss="log", bounds=(0.01, 0.99))
    assert inside.values.tolist() == [0.01, 0.99]
