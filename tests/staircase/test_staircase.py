"""The class Staircase: its attributes, and that it is immutable."""

import copy
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from comparing import ARRAYS, assert_same_bits, assert_same_staircase
from hypothesis import given
from hypothesis import strategies as st
from strategies import rows

import staircase_fast as sf


@pytest.fixture
def stairs():
    return sf.fit([1, 2, 3, 4], [0.0, 2.0, 1.0, 4.0], sample_weight=[1, 2, 1, 5])


def test_the_arrays_describe_the_steps_in_ascending_order_of_score(stairs):
    assert stairs.left.tolist() == [1.0, 2.0, 4.0]
    assert stairs.right.tolist() == [1.0, 3.0, 4.0]
    assert stairs.values.tolist() == [0.0, 5 / 3, 4.0]
    assert stairs.weights.tolist() == [1.0, 3.0, 5.0]
    assert stairs.counts.tolist() == [1, 2, 1]
    down = sf.fit([1, 2], [5.0, 3.0], increasing=False)
    assert (down.left.tolist(), down.values.tolist()) == ([1.0, 2.0], [5.0, 3.0])


def test_the_arrays_are_float64_and_counts_int64(stairs):
    for name in ARRAYS:
        array = getattr(stairs, name)
        assert array.dtype == (np.int64 if name == "counts" else np.float64)
        assert array.shape == (3,)


def test_bounds_of_each_value_are_the_value_where_the_loss_has_a_closed_form(stairs):
    assert_same_bits(stairs.lower, stairs.values)
    assert_same_bits(stairs.upper, stairs.values)


def test_the_number_of_steps_is_its_length(stairs):
    assert stairs.n_steps == len(stairs) == 3


def test_it_has_its_loss_and_direction():
    up = sf.fit([1, 2], [0, 1], loss="log")
    down = sf.fit([1, 2], [1, 0], increasing=False)
    assert (up.loss, up.increasing) == (sf.losses.LogLoss(), True)
    assert (down.loss, down.increasing) == (sf.losses.SquaredError(), False)


@pytest.mark.parametrize("name", ARRAYS)
def test_no_array_can_be_written_or_replaced(stairs, name):
    with pytest.raises(ValueError, match="read-only"):
        getattr(stairs, name)[0] = 7
    with pytest.raises(AttributeError):
        setattr(stairs, name, np.zeros(3))


@pytest.mark.parametrize("name", ["loss", "increasing", "n_steps"])
def test_no_other_attribute_can_be_replaced(stairs, name):
    with pytest.raises(AttributeError):
        setattr(stairs, name, None)


def test_no_attribute_can_be_deleted(stairs):
    with pytest.raises(AttributeError, match="values"):
        del stairs.values
    assert stairs.n_steps == 3


def test_several_threads_can_fit_and_predict_at_once():
    rng = np.random.default_rng(0)
    scores, targets, weights = rng.normal(size=(3, 20_000))
    alone = sf.fit(scores, targets, sample_weight=weights**2)
    values = alone(scores)

    def job(_):
        return sf.fit(scores, targets, sample_weight=weights**2), alone(scores)

    with ThreadPoolExecutor(4) as threads:
        for stairs, predicted in threads.map(job, range(16)):
            assert_same_staircase(stairs, alone)
            assert_same_bits(predicted, values)


def test_the_arrays_do_not_share_memory_with_the_input():
    scores, targets, weights = (np.array([1.0, 2.0, 3.0]) for _ in range(3))
    stairs = sf.fit(scores, targets, sample_weight=weights)
    for name in ARRAYS:
        for column in (scores, targets, weights):
            assert not np.shares_memory(getattr(stairs, name), column)


def test_calling_it_is_predicting(stairs):
    queries = np.linspace(0, 5, 21)
    assert_same_bits(stairs(queries), stairs.predict(queries))


@given(rows(), rows())
def test_staircases_are_equal_if_and_only_if_all_attributes_are(first, second):
    a, again = (sf.fit(first.scores, first.targets, sample_weight=first.weights) for _ in range(2))
    b = sf.fit(second.scores, second.targets, sample_weight=second.weights)
    assert a == again
    same = all(np.array_equal(getattr(a, name), getattr(b, name)) for name in ARRAYS)
    assert (a == b) is same
    assert (a != b) is not same


def test_staircases_differ_if_any_attribute_differs():
    scores, targets = [1, 2, 3], [0.0, 0.5, 1.0]
    base = sf.fit(scores, targets)
    others = {
        "score": sf.fit([1, 2, 4], targets),
        "value": sf.fit(scores, [0.0, 0.25, 1.0]),
        "weight": sf.fit(scores, targets, sample_weight=[1, 2, 1]),
        "count": sf.fit([1, 2, 2, 3], [0.0, 0.5, 0.5, 1.0], sample_weight=[1, 0.5, 0.5, 1]),
        "steps": sf.fit([1, 2], targets[:2]),
        "loss": sf.fit(scores, targets, loss="log"),
    }
    for difference, other in others.items():
        assert base != other, difference
    flat = [sf.fit([1], [1.0], increasing=direction) for direction in (True, False)]
    assert flat[0] != flat[1]


def test_a_staircase_equals_nothing_else(stairs):
    assert stairs != 3
    assert stairs != stairs.to_json()
    assert (stairs == "staircase") is False


def test_the_repr_summarises_the_staircase(stairs):
    text = repr(stairs)
    assert "Staircase" in text
    assert "3" in text
    assert len(text) < 200
    assert "; 1 row, " in repr(sf.fit([1], [1]))
    assert len(repr(sf.fit(range(10_000), range(10_000)))) < 200


def test_the_repr_of_one_step_and_of_a_decreasing_staircase_differ_from_others(stairs):
    texts = {
        repr(stairs),
        repr(sf.fit([1], [1.0])),
        repr(sf.fit([1, 2], [1.0, 0.0], increasing=False)),
        repr(sf.fit([1, 2], [1.0, 0.0], loss="log", increasing=False)),
    }
    assert len(texts) == 4


duplicates = [copy.copy, copy.deepcopy] + [
    lambda stairs, protocol=protocol: pickle.loads(pickle.dumps(stairs, protocol))
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1)
]


@given(rows(), st.sampled_from(duplicates), st.booleans())
def test_copies_and_pickles_are_the_same_staircase(rows, duplicate, increasing):
    stairs = sf.fit(rows.scores, rows.targets, sample_weight=rows.weights, increasing=increasing)
    again = duplicate(stairs)
    assert_same_staircase(again, stairs)
    assert_same_bits(again(rows.scores), stairs(rows.scores))
    assert not any(getattr(again, name).flags.writeable for name in ARRAYS)


def test_the_package_lists_all_its_names_and_no_others_are_there():
    assert set(sf.__all__) <= set(dir(sf))
    with pytest.raises(AttributeError, match="module 'staircase_fast' has no attribute 'fits'"):
        sf.fits  # noqa: B018
