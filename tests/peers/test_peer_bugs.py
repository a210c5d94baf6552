"""Bugs of other libraries that this package must not have, one test each.

Issue numbers refer to the library named; `SPARK-` numbers to the tracker of Apache Spark.
"""

import copy
import math
import pickle
import subprocess
import sys

import numpy as np
import pytest
from comparing import assert_same_bits, assert_same_staircase

import staircase_fast as sf


def test_scores_closer_than_1e_15_are_not_merged():
    """scikit-learn: float64 scores closer than an absolute 1e-15 become one."""
    scores = np.array([1, 2, 3, 4]) * 1e-20
    assert sf.fit(scores, [1, 2, 3, 4]).left.tolist() == scores.tolist()


def test_float32_scores_closer_than_1e_6_are_not_merged():
    """scikit-learn: float32 scores closer than an absolute 1e-6 become one, about half of a million."""
    scores = np.random.default_rng(0).random(100_000, dtype=np.float32)
    distinct = np.unique(scores)
    stairs = sf.fit(scores, scores)
    assert stairs.n_steps == distinct.size
    assert_same_bits(stairs.left, distinct)


def test_float32_scores_do_not_force_float32_sums():
    """scikit-learn: a tie of more than 2**24 rows of float32 saturates; weights do so with few rows."""
    one = np.ones(4, dtype=np.float32)
    weights = np.array([2**24, 1, 1, 1], dtype=np.float32)
    stairs = sf.fit(one, np.array([0, 1, 1, 1], dtype=np.float32), sample_weight=weights)
    assert stairs.weights.tolist() == [2**24 + 3]
    assert stairs.values.tolist() == [3 / (2**24 + 3)]


def test_ties_weigh_as_much_as_their_rows():
    """scikit-learn #9432: the weights of tied rows were lost."""
    scores, targets = [0, 1, 1, 2, 3, 4], [0, 0, 1, 0, 0, 1]
    stairs = sf.fit(scores, targets)
    assert stairs.values.tolist() == [0, 0.25, 1]
    assert stairs(scores).tolist() == [0, 0.25, 0.25, 0.25, 0.25, 1]
    assert stairs.weights.tolist() == [1, 4, 1]


def test_fitted_values_of_ties_equal_their_predictions():
    """scikit-learn #4184: fit_transform differed from transform on ties."""
    scores = np.array([1, 1, 2, 2, 3, 3, 3])
    targets = np.array([5, 1, 2, 4, 9, 9, 3])
    stairs = sf.fit(scores, targets)
    assert stairs(scores).tolist() == [3, 3, 3, 3, 7, 7, 7]
    assert_same_bits(stairs.predict(scores, interpolation="linear"), stairs(scores))


@pytest.mark.parametrize("weights", [[0, 0, 1, 0, 0], [1, 0, 0, 0, 1], [0, 1, 0, 1, 0]])
def test_a_fit_with_zero_weights_terminates(weights):
    """scikit-learn #4297: zero weights caused an infinite loop."""
    stairs = sf.fit(range(5), [5, 4, 3, 2, 1], sample_weight=weights)
    mean = np.average([5, 4, 3, 2, 1], weights=weights)
    assert stairs.values.tolist() == [mean]
    assert sf.isotonic_regression([5, 4, 3, 2, 1], weights=weights).x.tolist() == [mean] * 5


def test_the_weights_of_the_caller_are_not_overwritten():
    """scikit-learn #20508: `sample_weight` was modified."""
    scores, targets, weights = np.array([[1.0, 1, 2, 3], [4, 3, 2, 1], [1, 2, 3, 4]])
    kept = weights.copy()
    sf.fit(scores, targets, sample_weight=weights)
    sf.isotonic_regression(targets, weights=weights)
    assert_same_bits(weights, kept)


@pytest.mark.parametrize("interpolation", ["step", "linear"])
def test_no_prediction_leaves_the_bounds(interpolation):
    """scikit-learn #6921: y_min and y_max were violated."""
    scores = np.arange(9)
    stairs = sf.fit(scores, [-5, -4, 0.3, 0.2, 0.6, 0.5, 4, 5, 6], bounds=(0.1, 0.9))
    predicted = stairs.predict(np.linspace(-1, 10, 99), interpolation=interpolation)
    assert predicted.min() == 0.1
    assert predicted.max() == 0.9


def test_copies_and_pickles_predict():
    """scikit-learn #6628: copying and pickling failed."""
    stairs = sf.fit([1, 2, 3], [1, 3, 2])
    for duplicate in (copy.copy(stairs), copy.deepcopy(stairs), pickle.loads(pickle.dumps(stairs))):
        assert_same_staircase(duplicate, stairs)
        assert duplicate(2.5) == 2.5


def test_denormal_gaps_between_scores_give_finite_predictions():
    """scikit-learn #10903: slopes over gaps of 4e-320 overflowed, predictions were infinite."""
    scores = np.array([0, 4.1e-320, 4.4e-314, 1])
    stairs = sf.fit(scores, [0, 0.25, 0.5, 1])
    queries = np.array([0, 2e-320, 4.1e-320, 2e-314, 4.4e-314, 0.5, 1])
    linear = stairs.predict(queries, interpolation="linear")
    assert np.isfinite(linear).all()
    assert (np.diff(linear) > 0).all()
    assert stairs(queries).tolist() == [0, 0, 0.25, 0.25, 0.5, 0.5, 1]


def test_scores_near_zero_do_not_give_nan():
    """scikit-learn #2507: NaN near zero."""
    tiny = np.array([-5e-324, -0.0, 0.0, 5e-324, 1e-323])
    stairs = sf.fit(tiny, [0, 1, 1, 2, 3])
    for interpolation in ("step", "linear"):
        predicted = stairs.predict(tiny, interpolation=interpolation)
        assert predicted.tolist() == [0, 1, 1, 2, 3]


def test_a_sawtooth_of_a_million_rows_takes_linear_time():
    """scikit-learn #2944, #6691, #8063: quadratic time on y_i = i if even else i - 1.5."""
    i = np.arange(1_000_000)
    y = np.where(i % 2 == 0, i, i - 1.5)
    result = sf.isotonic_regression(y)
    assert_same_bits(result.x, i - i % 2 - 0.25)
    assert_same_bits(sf.fit(i, y).values, i[::2] - 0.25)


def test_a_last_row_that_merges_a_million_blocks_takes_linear_time():
    """Section IV-B of the paper, as written, is quadratic on y = 1, .., n - 1, -10 n**2."""
    n = 1_000_000
    y = np.append(np.arange(1, n), -10 * n**2)
    result = sf.isotonic_regression(y)
    assert result.blocks.tolist() == [0, n]
    assert result.x[0] == result.x[-1] == ((n - 1) * n // 2 - 10 * n**2) / n


def test_queries_outside_the_scores_are_not_nan_by_default():
    """scikit-learn #23134: NaN outside the range by default."""
    assert sf.fit([0, 1], [5, 6])([-1, 2]).tolist() == [5, 6]


def test_empty_input_is_an_error():
    """SciPy #25886: empty input writes out of bounds."""
    with pytest.raises(ValueError, match="at least one"):
        sf.isotonic_regression([])


@pytest.mark.parametrize("bad", [{"y": [1, math.nan]}, {"y": [1, 2], "weights": [1, math.nan]}])
def test_nan_raises_an_error(bad):
    """SciPy: NaN targets and NaN weights pass silently."""
    with pytest.raises(ValueError, match=r"nan at index 1"):
        sf.isotonic_regression(**bad)


def test_equal_targets_are_returned_exactly():
    """SciPy: [0.1] * 7 gives 0.09999999999999999."""
    for n in range(1, 50):
        assert sf.isotonic_regression([0.1] * n).x.tolist() == [0.1] * n


def test_many_equal_targets_are_one_block():
    """SciPy: 100,000 copies of 0.1 give two blocks."""
    result = sf.isotonic_regression(np.full(100_000, 0.1))
    assert result.blocks.tolist() == [0, 100_000]
    assert result.weights.tolist() == [100_000]
    assert result.x[0] == result.x[-1] == 0.1


def test_sums_do_not_overflow():
    """SciPy: [1.7e308, 1.6e308] gives inf."""
    assert sf.isotonic_regression([1.7e308, 1.6e308]).x == pytest.approx(1.65e308, rel=1e-15)
    assert sf.fit([1, 2], [1.7e308, 1.6e308]).values == pytest.approx(1.65e308, rel=1e-15)


def test_rows_with_equal_scores_are_pooled_in_any_order():
    """SPARK-16426, SPARK-41008: duplicates in different partitions got different values."""
    scores = [1, 2, 3] * 50
    targets = [3, 1, 2] * 49 + [0, 4, 2]
    stairs = sf.fit(scores, targets)
    ordered = np.argsort(scores, kind="stable")
    again = sf.fit(np.array(scores)[ordered], np.array(targets)[ordered])
    assert_same_staircase(stairs, again)
    assert (np.diff(stairs.left) > 0).all()
    assert stairs.counts.sum() == 150


def test_descending_runs_of_growing_length_take_linear_time():
    """SPARK-17455: super-polynomial time."""
    runs = [np.arange(length, 0, -1) + 1.5 * length for length in range(1, 1_000)]
    y = np.concatenate(runs)
    result = sf.isotonic_regression(y)
    means = np.concatenate([np.full(run.size, run.mean()) for run in runs])
    assert_same_bits(result.x, means)


def test_negative_weights_are_refused():
    """SPARK-31803: negative weights were accepted."""
    with pytest.raises(ValueError, match=r"`sample_weight`.*-1\.5 at index 1"):
        sf.fit([1, 2], [1, 2], sample_weight=[1, -1.5])


def test_both_zeros_are_one_score():
    """Spark: -0.0 and 0.0 were in different partitions."""
    stairs = sf.fit([-0.0, 0.0, -0.0], [1, 2, 6])
    assert stairs.values.tolist() == [3]
    assert stairs([-0.0, 0.0]).tolist() == [3, 3]


def test_importing_changes_no_setting_of_numpy():
    """venn-abers: calls np.seterr when it is imported."""
    code = (
        "import numpy as np, warnings\n"
        "before = np.geterr(), np.get_printoptions(), list(warnings.filters)\n"
        "import staircase_fast\n"
        "after = np.geterr(), np.get_printoptions(), list(warnings.filters)\n"
        "assert before == after, (before, after)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_venn_abers_takes_linear_time():
    """venn-abers #4: 104 s for 50,000 points, because it visits all points for each change of a probability."""
    n = 300_000  # each row is a step: quadratic time would be minutes
    scores = np.arange(n)
    venn = sf.VennAbers().fit(scores, scores >= n // 2)
    assert venn.n_steps == n + 1
    assert venn.predict([-1, n]).p1.tolist() == [1 / (n // 2 + 1), 1]
    assert venn.predict([-1, n]).p0.tolist() == [0, 1 - 1 / (n // 2 + 1)]


def test_tied_rows_are_averaged_by_their_weights():
    """R package isotone: ties were averaged without weights."""
    stairs = sf.fit([1, 1, 2], [0, 4, 9], sample_weight=[3, 1, 1])
    assert stairs.values.tolist() == [1, 9]


def test_both_ends_of_a_step_are_kept():
    """aprender #2155: only one end of each block was kept, so that interpolation cut across steps."""
    stairs = sf.fit([1, 2, 3, 4], [1, 5, 3, 8])
    assert (stairs.left.tolist(), stairs.right.tolist()) == ([1, 2, 4], [1, 3, 4])
    assert stairs.predict([2, 2.5, 3, 3.5], interpolation="linear").tolist() == [4, 4, 4, 6]
