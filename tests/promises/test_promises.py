"""The promises P1 to P12 of the design, as properties of generated rows."""

from fractions import Fraction

import numpy as np
import pytest
import reference
from comparing import assert_same_bits, assert_same_staircase, assert_steps
from hypothesis import given
from hypothesis import strategies as st
from strategies import SCORES, TARGETS, WEIGHTS, increasing_scores, kinds, rows

import staircase_fast as sf
from staircase_fast import threads

directions = st.booleans()


def fit(rows, **options):
    return sf.fit(rows.scores, rows.targets, sample_weight=rows.weights, **options)


@given(rows(), directions, st.data())
def test_p1_monotone_input_comes_back_bit_for_bit(rows, increasing, data):
    targets = np.sort(rows.targets) + 0.0  # the fit returns +0.0 for -0.0
    targets = targets if increasing else targets[::-1]
    scores = data.draw(increasing_scores(targets.size))
    weights = np.maximum(rows.weights, 5e-324)
    stairs = sf.fit(scores, targets, sample_weight=weights, increasing=increasing)
    assert_same_bits(stairs(scores), targets)
    again = sf.isotonic_regression(targets, weights=weights, increasing=increasing)
    assert_same_bits(again.x, targets)


@given(rows(), directions)
def test_p2_refitting_a_fit_changes_nothing(rows, increasing):
    stairs = fit(rows, increasing=increasing)
    fitted = rows._replace(targets=stairs(rows.scores))
    assert_same_staircase(fit(fitted, increasing=increasing), stairs)


@given(rows(), directions)
def test_p3_each_value_lies_within_the_targets_of_its_block(rows, increasing):
    stairs = fit(rows, increasing=increasing)
    for left, right, value in zip(stairs.left, stairs.right, stairs.values, strict=True):
        on_step = (left <= rows.scores) & (rows.scores <= right) & (rows.weights > 0)
        assert rows.targets[on_step].min() <= value <= rows.targets[on_step].max()


@given(rows(), directions)
def test_p4_the_steps_are_those_of_exact_rational_arithmetic(rows, increasing):
    expected = reference.fitted_steps(*rows.lists(), increasing=increasing)
    assert_steps(fit(rows, increasing=increasing), expected)


@given(rows(), st.randoms(use_true_random=False))
def test_p5_the_order_of_rows_does_not_matter(rows, random):
    order = list(range(rows.scores.size))
    random.shuffle(order)
    assert_same_staircase(fit(rows.take(np.array(order))), fit(rows))


@pytest.mark.usefixtures("surveyed")
@pytest.mark.parametrize("labels", [True, False], ids=["labels", "real targets"])
def test_p5_the_number_of_threads_does_not_matter(labels, monkeypatch):
    rng = np.random.default_rng(0)
    scores, weights = rng.normal(size=60_000), rng.random(60_000)
    targets = rng.random(60_000) < 0.5 if labels else rng.normal(size=60_000) + scores
    monkeypatch.setattr(threads, "ROWS_EACH", 5_000)  # otherwise so few rows use one thread
    for sample_weight in (None, weights):
        one, three = (sf.fit(scores, targets, sample_weight=sample_weight, n_threads=n) for n in (1, 3))
        assert_same_staircase(three, one)


@given(rows(), st.integers(1, 5), directions)
def test_p5_the_size_of_batches_does_not_matter(rows, size, increasing):
    batches = sf.Accumulator(increasing=increasing)
    for start in range(0, rows.scores.size, size):
        batches.add(*(column[start : start + size] for column in rows))
    assert_same_staircase(batches.staircase(), fit(rows, increasing=increasing))


@given(rows(), st.data())
def test_p6_scores_count_only_by_rank(rows, data):
    distinct, rank = np.unique(rows.scores, return_inverse=True)
    others = np.array(data.draw(increasing_scores(distinct.size)))
    stairs, moved = fit(rows), fit(rows._replace(scores=others[rank]))
    assert_same_bits(moved.values, stairs.values)
    assert_same_bits(moved.weights, stairs.weights)
    np.testing.assert_array_equal(moved.counts, stairs.counts)
    for name in ("left", "right"):
        ends = np.searchsorted(distinct, getattr(stairs, name))
        assert_same_bits(getattr(moved, name), others[ends])


@given(rows(weights=kinds(WEIGHTS, "integers, zero too")))
def test_p7_weight_k_is_k_copies(rows):
    copies = rows.take(np.repeat(np.arange(rows.scores.size), rows.weights.astype(int)))
    stairs, copied = fit(rows), sf.fit(copies.scores, copies.targets)
    for name in ("left", "right", "values", "weights"):
        assert_same_bits(getattr(copied, name), getattr(stairs, name))
    np.testing.assert_array_equal(copied.counts, stairs.weights)


@given(rows(weights=kinds(WEIGHTS, "integers, zero too", "denormals")))
def test_p7_weight_zero_is_absent(rows):
    assert_same_staircase(fit(rows.take(rows.weights > 0)), fit(rows))


@given(rows(weights=kinds(WEIGHTS, "integers, zero too", "decimals")), st.integers(-1000, 1000))
def test_p7_scaling_weights_by_a_power_of_two_changes_nothing(rows, k):
    stairs, scaled = fit(rows), fit(rows._replace(weights=np.ldexp(rows.weights, k)))
    for name in ("left", "right", "values"):
        assert_same_bits(getattr(scaled, name), getattr(stairs, name))
    np.testing.assert_array_equal(scaled.counts, stairs.counts)
    assert_same_bits(scaled.weights, np.ldexp(stairs.weights, k))


@given(rows(), directions)
def test_p8_certify_accepts_every_fit(rows, increasing):
    stairs = fit(rows, increasing=increasing)
    assert sf.certify(stairs, rows.scores, rows.targets, sample_weight=rows.weights).optimal


@given(rows(), directions)
def test_p8_every_fit_is_optimal_up_to_the_rounding_of_its_values(rows, increasing):
    stairs = fit(rows, increasing=increasing)
    sign = 1 if increasing else -1
    points = reference.pooled(*rows.lists())
    fitted = [Fraction(z) for z in stairs([point.left for point in points]).tolist()]
    assert reference.is_optimal(
        [sign * point.value for point in points],
        [point.weight for point in points],
        [sign * z for z in fitted],
        [reference.half_an_ulp(z) for z in fitted],
    )


@given(rows(kinds(SCORES, "float32", "ties"), kinds(TARGETS, "float32", "labels", "integers")))
def test_p9_float32_input_has_float64_sums(rows):
    narrow = sf.fit(
        rows.scores.astype(np.float32),
        rows.targets.astype(np.float32),
        sample_weight=rows.weights,
    )
    assert_same_staircase(narrow, fit(rows))


@given(rows(), directions)
def test_p10_inputs_are_not_modified_and_may_be_read_only(rows, increasing):
    before = [column.tobytes() for column in rows]
    writable = fit(rows, increasing=increasing)
    for column in rows:
        column.flags.writeable = False
    assert_same_staircase(fit(rows, increasing=increasing), writable)
    assert_same_bits(writable.predict(rows.scores), writable(rows.scores.copy()))
    assert [column.tobytes() for column in rows] == before


@given(rows(), directions)
def test_p11_online_after_t_samples_equals_the_batch_fit_of_the_first_t(rows, increasing):
    rows = rows.take(np.argsort(rows.scores, kind="stable"))
    online = sf.Online(increasing=increasing)
    for t, row in enumerate(zip(*rows, strict=True), 1):
        online.append(*row)
        if rows.weights[:t].any():
            assert_same_staircase(online.staircase(), fit(rows.take(slice(t)), increasing=increasing))


@given(rows(targets=kinds(TARGETS, "labels", "integers", "decimals"), weights=kinds(WEIGHTS, "one")), st.integers(0, 9))
def test_p12_the_true_values_lie_between_the_bounds_of_a_stopped_anytime_fit(rows, n_rounds):
    scores = np.unique(rows.scores)
    exact = fit(rows)
    stopped = sf.Anytime(rows.scores, rows.targets, loss="squared")
    stopped.refine(max_rounds=n_rounds)
    assert stopped.n_rounds <= n_rounds
    stairs = stopped.staircase()
    step = np.searchsorted(stairs.left, scores, side="right") - 1
    assert np.all(stairs.lower[step] <= exact(scores))  # rounding is monotone: no slack
    assert np.all(exact(scores) <= stairs.upper[step])
