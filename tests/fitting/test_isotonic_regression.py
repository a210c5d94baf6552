"""`isotonic_regression`: SciPy's call and result, for targets that are in order already."""

import numpy as np
import pytest
from comparing import assert_same_bits
from hypothesis import given
from hypothesis import strategies as st
from reference import fitted_steps
from strategies import TARGETS, kinds, rows

import staircase_fast as sf


def test_the_result_has_values_weights_and_starts_of_blocks():
    result = sf.isotonic_regression([1.0, 3.0, 2.0, 4.0], weights=[1, 2, 2, 1])
    assert result.x.tolist() == [1.0, 2.5, 2.5, 4.0]
    assert result.weights.tolist() == [1.0, 4.0, 1.0]
    assert result.blocks.tolist() == [0, 1, 3, 4]
    assert result.x.dtype == result.weights.dtype == np.float64
    assert result.blocks.dtype == np.intp


def test_the_result_unpacks_in_this_order():
    result = sf.isotonic_regression([3.0, 1.0])
    x, weights, blocks = result
    assert x is result.x
    assert weights is result.weights
    assert blocks is result.blocks


def test_one_target_is_one_block():
    result = sf.isotonic_regression([7])
    assert (result.x.tolist(), result.weights.tolist(), result.blocks.tolist()) == (
        [7],
        [1],
        [0, 1],
    )


@given(rows(), st.booleans())
def test_it_is_the_fit_of_targets_at_scores_in_order(rows, increasing):
    weights = np.maximum(rows.weights, 5e-324)
    result = sf.isotonic_regression(rows.targets, weights=weights, increasing=increasing)
    steps = fitted_steps(range(rows.targets.size), rows.targets.tolist(), weights.tolist(), increasing=increasing)
    assert result.blocks.tolist() == [step.left for step in steps] + [rows.targets.size]
    assert_same_bits(result.x, np.repeat([s.value for s in steps], [s.count for s in steps]))
    assert_same_bits(result.weights, [step.weight for step in steps])


@given(rows(targets=kinds(TARGETS, "integers", "labels", "any")), st.booleans(), st.data())
def test_rows_of_weight_zero_get_the_value_of_the_step_before_them(rows, increasing, data):
    present = data.draw(st.lists(st.booleans(), min_size=rows.targets.size, max_size=rows.targets.size).filter(any))
    weights = np.maximum(rows.weights, 5e-324) * present
    result = sf.isotonic_regression(rows.targets, weights=weights, increasing=increasing)
    indices = range(rows.targets.size)
    steps = fitted_steps(indices, rows.targets.tolist(), weights.tolist(), increasing=increasing)
    starts = [0, *(step.left for step in steps[1:]), rows.targets.size]
    assert result.blocks.tolist() == starts
    assert_same_bits(result.x, np.repeat([step.value for step in steps], np.diff(starts)))
    assert_same_bits(result.weights, [step.weight for step in steps])


def test_leading_rows_of_weight_zero_get_the_first_value():
    result = sf.isotonic_regression([9, 9, 1, 9, 2, 9], weights=[0, 0, 1, 0, 1, 0])
    assert result.x.tolist() == [1, 1, 1, 1, 2, 2]
    assert result.blocks.tolist() == [0, 4, 6]
    assert result.weights.tolist() == [1, 1]


@pytest.mark.parametrize("increasing", [True, False])
def test_many_rows_some_of_weight_zero_have_the_regression_of_the_others(increasing):
    rng = np.random.default_rng(0)
    y, weights = rng.normal(size=1000), rng.integers(0, 3, 1000).astype(float)
    present = weights > 0
    found = sf.isotonic_regression(y, weights=weights, increasing=increasing)
    others = sf.isotonic_regression(y[present], weights=weights[present], increasing=increasing)
    assert_same_bits(found.x[present], others.x)
    assert_same_bits(found.weights, others.weights)


def test_a_decreasing_regression_has_blocks_in_the_order_of_the_targets():
    result = sf.isotonic_regression([5, 1, 3, 0], increasing=False)
    assert result.x.tolist() == [5, 2, 2, 0]
    assert result.blocks.tolist() == [0, 1, 3, 4]


def test_the_result_shares_no_memory_with_the_input_and_leaves_it_alone():
    y, weights = np.array([1.0, 3.0, 2.0]), np.array([1.0, 0.0, 2.0])
    kept = y.tobytes(), weights.tobytes()
    result = sf.isotonic_regression(y, weights=weights)
    assert (y.tobytes(), weights.tobytes()) == kept
    assert not any(np.shares_memory(a, b) for a in result for b in (y, weights))


def test_options_are_keyword_only():
    with pytest.raises(TypeError):
        sf.isotonic_regression([1.0], [1.0])
