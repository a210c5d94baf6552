"""What `fit` means: ties, weights, directions, bounds, infinite scores."""

import itertools
import math

import numpy as np
import pytest
from comparing import assert_same_bits, assert_same_staircase, assert_steps, steps_of
from hypothesis import given
from hypothesis import strategies as st
from reference import Step, exact_steps, fitted_steps
from strategies import HUGE, SCORES, TARGETS, TINY, WEIGHTS, kinds, rows

import staircase_fast as sf

inf = math.inf


def test_one_row_is_one_step():
    stairs = sf.fit([3.5], [0.25], sample_weight=[2])
    assert steps_of(stairs) == [Step(3.5, 3.5, 0.25, 2.0, 1)]


def test_rows_may_come_in_any_order():
    stairs = sf.fit([3, 1, 2], [6.0, 4.0, 2.0])
    assert steps_of(stairs) == [Step(1, 2, 3.0, 2.0, 2), Step(3, 3, 6.0, 1.0, 1)]


def test_equal_scores_get_one_value():
    stairs = sf.fit([1, 2, 2, 3], [0.0, 1.0, 2.0, 9.0])
    assert steps_of(stairs) == [
        Step(1, 1, 0.0, 1.0, 1),
        Step(2, 2, 1.5, 2.0, 2),
        Step(3, 3, 9.0, 1.0, 1),
    ]


def test_both_zeros_are_one_score_and_reported_as_positive_zero():
    for scores in ([-0.0, 0.0], [0.0, -0.0], [-0.0]):
        stairs = sf.fit(scores, [1.0, 2.0][: len(scores)])
        assert stairs.n_steps == 1
        assert_same_bits([stairs.left[0], stairs.right[0]], [0.0, 0.0])


def test_a_value_of_zero_is_positive_zero():
    assert_same_bits(sf.fit([1, 2], [-0.0, 1.0]).values, [0.0, 1.0])
    assert_same_bits(sf.fit([1, 2], [-0.0, -0.0]).values, [0.0])
    assert_same_bits(sf.fit([1, 2], [1.0, -1.0]).values, [0.0])
    assert_same_bits(sf.fit([1, 2], [0.0, 1.0], increasing=False).values, [0.5])
    assert_same_bits(sf.fit([1, 2], [0.0, -1.0], increasing=False).values, [0.0, -1.0])
    assert_same_bits(sf.fit([1, 2], [0.0, -5e-324]).values, [0.0])  # the mean underflows


def test_infinite_scores_are_scores():
    stairs = sf.fit([inf, -inf, 0.0, inf, -inf], [5.0, 1.0, 3.0, 7.0, 2.0])
    assert stairs.left.tolist() == [-inf, 0.0, inf]
    assert stairs.right.tolist() == [-inf, 0.0, inf]
    assert stairs.values.tolist() == [1.5, 3.0, 6.0]


def test_blocks_of_equal_value_are_one_step():
    assert sf.fit([1, 2, 3], [0.1, 0.1, 0.1]).n_steps == 1
    assert sf.fit([1, 2, 3, 4], [2.0, 0.0, 1.0, 1.0]).n_steps == 1


def test_blocks_whose_means_round_to_one_float_are_one_step():
    scores, targets = [1, 2, 2, 2], [1.0, 1.0, 1.0, math.nextafter(1.0, 2.0)]
    assert len(exact_steps(scores, targets)) == 2
    assert steps_of(sf.fit(scores, targets)) == [Step(1, 2, 1.0, 4.0, 4)]


def online_fit(x, y, increasing):
    online = sf.Online(increasing=increasing)
    online.extend(x, y)
    return online.staircase()


def accumulated_fit(x, y, increasing):
    seen = sf.Accumulator(increasing=increasing)
    seen.add(x[1:], y[1:])
    seen.add(x[:1], y[:1])
    return seen.staircase()


@pytest.mark.parametrize(
    "fit_rows",
    [
        lambda x, y, increasing: sf.fit(x, y, increasing=increasing),
        lambda x, y, increasing: sf.fit(x[::-1], y[::-1], increasing=increasing),
        lambda x, y, increasing: sf.fit_groups(x, y, np.full(len(x), 7), increasing=increasing)[7],
        lambda x, y, increasing: sf.fit_columns(x[:, None], y[:, None], increasing=increasing)[0],
        accumulated_fit,
        online_fit,
    ],
    ids=["fit", "fit of rows in descending order", "fit_groups", "fit_columns", "Accumulator", "Online"],
)
@pytest.mark.parametrize("increasing", [True, False])
def test_integers_at_the_end_of_what_doubles_hold_are_fitted_exactly(fit_rows, increasing):
    """2**53 + 1 is rounded to 2**53: neither a target as a double nor the greatest of all shows that it was."""
    for n in (1, 2, 3):
        for entries in itertools.product((0, 2**53 - 1, 2**53, 2**53 + 1, 2**53 + 2), repeat=n):
            for sign in (-1, 1):
                x, y = np.arange(n), sign * np.array(entries)
                expected = fitted_steps(x.tolist(), y.tolist(), increasing=increasing)
                assert_steps(fit_rows(x, y, increasing), expected)


def test_no_weights_means_weights_of_one():
    scores, targets = [3, 1, 2, 2], [1.0, 2.0, 0.5, 0.25]
    assert_same_staircase(sf.fit(scores, targets), sf.fit(scores, targets, sample_weight=np.ones(4)))


def test_rows_of_weight_zero_widen_no_step():
    stairs = sf.fit([0, 1, 2, 3], [9.0, 1.0, 2.0, -9.0], sample_weight=[0, 1, 1, 0])
    assert steps_of(stairs) == [Step(1, 1, 1.0, 1.0, 1), Step(2, 2, 2.0, 1.0, 1)]


def test_weights_that_cannot_be_added_in_float64_are_added():
    stairs = sf.fit([1, 1, 1], [0.0, 1.0, 1.0], sample_weight=[2.0**53, 1.0, 1.0])
    assert stairs.weights.tolist() == [2.0**53 + 2]
    assert stairs.values.tolist() == [2 / (2**53 + 2)]


@pytest.mark.parametrize("scale", [1.0, -1.0, 2.0**-1060, 2.0**1000, 1 / 3])
def test_means_close_to_the_middle_of_two_floats_are_rounded_to_the_nearer(scale):
    for k in range(4):  # even and odd neighbours
        low = scale * (1 + k * 2.0**-52)
        targets = [low, math.nextafter(low, 2 * low)]
        for weights in ([1, 1], [1, 1 + 2.0**-52], [1 + 2.0**-52, 1], [2**53 - 1, 2**53]):
            stairs = sf.fit([0, 0], targets, sample_weight=weights)
            assert_steps(stairs, fitted_steps([0, 0], targets, weights))


@pytest.mark.parametrize("target", [HUGE, -HUGE, TINY, 0.1])
def test_rows_of_one_score_and_target_keep_the_target_whatever_their_weights(target):
    rng = np.random.default_rng(0)
    for n in range(2, 200):
        weights = rng.choice([0.1, 0.3, 1 / 3, 1e-3, 7.7], n)
        assert sf.fit(np.zeros(n), np.full(n, target), sample_weight=weights).values == [target]


@given(rows())
def test_a_decreasing_fit_is_the_mirror_image_of_an_increasing_one(rows):
    down = sf.fit(rows.scores, rows.targets, sample_weight=rows.weights, increasing=False)
    up = sf.fit(rows.scores, -rows.targets, sample_weight=rows.weights)
    assert_same_bits(down.values, 0.0 - up.values)
    assert_same_bits(down.left, up.left)
    assert_same_bits(down.right, up.right)
    assert (down.increasing, up.increasing) == (False, True)


@pytest.mark.parametrize("increasing", [True, False])
@pytest.mark.parametrize("digits", [1, 3, 17])
@pytest.mark.parametrize("weighted", [False, True])
def test_rows_in_the_opposite_order_are_the_same_rows(increasing, digits, weighted):
    rng = np.random.default_rng(3)
    scores = np.sort(np.round(rng.random(3000), digits))  # more than are done in one call
    targets = (scores if increasing else 1 - scores) + rng.normal(size=3000)
    weights = rng.integers(0, 3, 3000) * 0.1 if weighted else None
    options = {"increasing": increasing, "bounds": (-0.1, 0.9)}
    forwards = sf.fit(scores, targets, sample_weight=weights, **options)
    backwards = sf.fit(scores[::-1], targets[::-1], sample_weight=None if weights is None else weights[::-1], **options)
    assert_same_staircase(backwards, forwards)
    assert forwards.n_steps > 3


@given(rows(), st.booleans())
def test_values_are_strictly_monotone_and_steps_apart(rows, increasing):
    stairs = sf.fit(rows.scores, rows.targets, sample_weight=rows.weights, increasing=increasing)
    ascending = stairs.values if increasing else stairs.values[::-1]
    assert (ascending[:-1] < ascending[1:]).all()
    assert (stairs.left <= stairs.right).all()
    assert (stairs.right[:-1] < stairs.left[1:]).all()
    assert stairs.counts.sum() == np.count_nonzero(rows.weights)


def saved(steps):
    """How much square error the steps save: the more, the less is left."""
    return sum(step.weight * step.value**2 for step in steps)


@given(
    rows(
        kinds(SCORES, "ties", "any"),
        kinds(TARGETS, "labels", "integers"),
        kinds(WEIGHTS, "one", "integers, zero too"),
    )
)
def test_auto_takes_the_direction_of_less_loss_and_increases_on_a_tie(rows):
    up = exact_steps(*rows.lists())
    down = exact_steps(*rows.lists(), increasing=False)
    stairs = sf.fit(rows.scores, rows.targets, sample_weight=rows.weights, increasing="auto")
    assert stairs.increasing is bool(saved(up) >= saved(down))
    direct = sf.fit(rows.scores, rows.targets, sample_weight=rows.weights, increasing=stairs.increasing)
    assert_same_staircase(stairs, direct)


@pytest.mark.parametrize("sign", [1, -1])
def test_auto_is_the_better_of_both_for_many_rows_in_order(sign):
    rng = np.random.default_rng(8)
    x = np.arange(1000.0)
    for scores in (x, x[::-1], rng.permutation(x), x // 2):
        for y in (sign * scores + rng.normal(size=1000), rng.random(1000) < 0.5 + sign * scores / 2500):
            assert_same_staircase(sf.fit(scores, y, increasing="auto"), sf.fit(scores, y, increasing=sign > 0))


def test_auto_increases_on_an_exact_tie():
    ties = {  # scores: targets
        (1, 2, 3): [0, 1, 0],
        (1, 2, 4): [5, 5, 5],
        # 1/6 six times and 2/3 three times, or 1 once and 1/4 eight times: both save 3/2
        (1, 2, 2, 2, 2, 2, 3, 3, 3): [1, 0, 0, 0, 0, 0, 0, 1, 1],
    }
    for scores, targets in ties.items():
        up, down = exact_steps(scores, targets), exact_steps(scores, targets, increasing=False)
        assert saved(up) == saved(down)
        assert sf.fit(scores, targets, increasing="auto").increasing


@pytest.mark.parametrize("scale", [1.0, 1e-300, 1e300, 5e-324])
def test_auto_compares_losses_at_any_scale(scale):
    targets = scale * np.array([3.0, 2.0, 1.0])
    assert not sf.fit([1, 2, 3], targets, increasing="auto").increasing
    assert sf.fit([1, 2, 3], targets[::-1], increasing="auto").increasing
    weights = np.full(3, scale)
    assert not sf.fit([1, 2, 3], [3, 2, 1], sample_weight=weights, increasing="auto").increasing


def test_auto_under_log_loss_compares_log_losses():
    # increasing: 1/6, 3/4; decreasing: 5/8, 0, by weights of 6, 12 and 15, 3
    rows = {"scores": range(4), "targets": [1, 0, 1, 0], "sample_weight": [1, 5, 9, 3]}
    squared = sf.fit(**rows, increasing="auto")
    logarithmic = sf.fit(**rows, increasing="auto", loss="log")
    assert (squared.increasing, logarithmic.increasing) == (True, False)


MEAN_LOSSES = [
    sf.losses.SquaredError(), sf.losses.LogLoss(), sf.losses.PoissonDeviance(), sf.losses.GammaDeviance(),
    *(sf.losses.TweedieDeviance(power) for power in (-1, 0, 1, 1.5, 2, 3)),
]  # fmt: skip


@pytest.mark.parametrize("loss", MEAN_LOSSES, ids=str)
def test_auto_within_bounds_takes_the_direction_of_less_loss(loss):
    rng = np.random.default_rng(1)
    directions = set()
    for _ in range(60):
        n = rng.integers(2, 8)
        x, y, w = rng.integers(0, 6, n), rng.integers(1, 9, n) / 8, rng.integers(1, 4, n)
        low, high = np.sort(rng.integers(1, 8, 2)) / 8
        if loss.target_range[0] < 0:
            y -= 0.5
        for bounds in (None, (low, high), (low, None), (None, high)):
            settings = {"sample_weight": w, "loss": loss, "bounds": bounds}
            both = {rising: sf.fit(x, y, increasing=rising, **settings) for rising in (True, False)}
            cost = {rising: np.sum(w * loss.value(one(x), y)) for rising, one in both.items()}
            found = sf.fit(x, y, increasing="auto", **settings)
            assert cost[found.increasing] <= cost[not found.increasing] + 1e-9 * abs(cost[True])
            assert_same_staircase(found, both[found.increasing])
            assert sf.fit_groups(x, y, np.zeros(n, int), increasing="auto", **settings)[0] == found
            directions.add(found.increasing)
    assert len(directions) == 2


def test_auto_within_bounds_for_many_rows_and_large_groups():
    rng = np.random.default_rng(2)
    n = 70_000
    x, loss = rng.random(n), sf.losses.TweedieDeviance(-1)
    y = rng.normal(size=n) - 2 * (x < 0.5)
    settings = {"loss": loss, "bounds": (0.1, 0.2)}
    both = {rising: sf.fit(x, y, increasing=rising, **settings) for rising in (True, False)}
    cost = {rising: np.sum(loss.value(one(x), y)) for rising, one in both.items()}
    found = sf.fit(x, y, increasing="auto", **settings)
    assert found.increasing is bool(cost[True] <= cost[False])
    assert_same_staircase(found, both[found.increasing])
    assert sf.fit_groups(x, y, np.zeros(n, int), increasing="auto", **settings)[0] == found


@pytest.mark.parametrize("weight", [0, 1e-300])
def test_auto_does_not_listen_to_rows_that_weigh_nothing(weight):
    columns = {"scores": [1, 2, 3, 2], "targets": [3, 2, 1, 1e200], "sample_weight": [1, 1, 1, weight]}
    assert sf.fit(**columns, increasing="auto").values.tolist() == [3, 2, 1]
    assert sf.fit_groups(**columns, groups=[7] * 4, increasing="auto")[7].values.tolist() == [3, 2, 1]


def test_auto_within_bounds_far_from_all_targets_warns_of_nothing():
    assert sf.fit([1, 2], [5e-324, 0.0], increasing="auto", bounds=(0.5, 0.8)).values.tolist() == [0.5]


@given(
    rows(targets=kinds(TARGETS, "labels", "integers", "decimals", "overflow", "any")),
    st.tuples(st.integers(-5, 0), st.integers(0, 5)).map(lambda pair: (pair[0] / 4, pair[1] / 4)),
    st.booleans(),
)
def test_bounds_clip_values_and_join_the_steps_that_become_equal(rows, bounds, increasing):
    stairs = sf.fit(
        rows.scores,
        rows.targets,
        sample_weight=rows.weights,
        increasing=increasing,
        bounds=bounds,
    )
    expected = fitted_steps(*rows.lists(), increasing=increasing, bounds=bounds)
    assert_steps(stairs, expected)


def test_bounds_may_lie_far_outside_the_targets():
    rows = {"scores": [1, 2, 3], "targets": [0, 1, 2], "sample_weight": [100, 200, 300]}
    for bounds in ((1e18, None), (None, -1e18), (1e308, 1.5e308), (5e-324, 6e-324)):
        stairs = sf.fit(**rows, bounds=bounds)
        expected = fitted_steps(rows["scores"], rows["targets"], rows["sample_weight"], bounds=bounds)
        assert_steps(stairs, expected)


def test_a_bound_of_negative_zero_is_zero():
    assert_same_bits(sf.fit([1, 2], [-1.0, 1.0], bounds=(-0.0, None)).values, [0.0, 1.0])
    assert_same_bits(sf.fit([1, 2], [-1.0, 1.0], bounds=(None, -0.0)).values, [-1.0, 0.0])


def test_a_bound_may_be_missing_or_infinite():
    scores, targets = [1, 2, 3], [0.0, 0.5, 1.0]
    free = sf.fit(scores, targets)
    for bounds in ((None, None), (-inf, inf), (-inf, None), (None, inf)):
        assert_same_staircase(sf.fit(scores, targets, bounds=bounds), free)
    assert sf.fit(scores, targets, bounds=(0.2, None)).values.tolist() == [0.2, 0.5, 1.0]
    assert sf.fit(scores, targets, bounds=(None, 0.4)).values.tolist() == [0.0, 0.4]
    assert sf.fit(scores, targets, bounds=(0.4, 0.4)).values.tolist() == [0.4]


@pytest.mark.parametrize("size", [500, 8_000])
@pytest.mark.parametrize("weighted", [False, True], ids=["unweighted", "weighted"])
@pytest.mark.parametrize(
    "scores_of",
    [
        lambda rng, n: rng.normal(size=n),
        lambda rng, n: rng.integers(0, n // 4, n).astype(float),
        lambda rng, n: np.sort(rng.beta(0.2, 0.2, n)),
        lambda rng, n: rng.lognormal(0, 9, n).astype(np.float32),
        lambda rng, n: np.zeros(n),
    ],
    ids=["normal", "ties", "sorted", "heavy tail", "all tied"],
)
def test_many_rows_are_fitted_as_exactly_as_few(scores_of, weighted, size):
    rng = np.random.default_rng(size)
    scores = scores_of(rng, size)
    labels = rng.random(size) < scores.argsort().argsort() / size
    weights = rng.integers(0, 4, size) if weighted else None
    stairs = sf.fit(scores, labels, sample_weight=weights)
    expected = fitted_steps(scores.tolist(), labels.tolist(), None if weights is None else weights.tolist())
    assert_steps(stairs, expected)


def test_many_rows_of_noise_are_fitted_as_exactly_as_few():
    rng = np.random.default_rng(0)
    scores = rng.normal(size=5_000)
    targets = scores + 3 * rng.normal(size=5_000)
    weights = rng.exponential(size=5_000)
    stairs = sf.fit(scores, targets, sample_weight=weights)
    assert_steps(stairs, fitted_steps(scores.tolist(), targets.tolist(), weights.tolist()))


def test_options_are_keyword_only():
    with pytest.raises(TypeError):
        sf.fit([1], [1], [1])


@pytest.mark.parametrize("n", [12, 5000])
@pytest.mark.parametrize("kind", [list, np.array])
def test_scores_and_targets_that_are_most_likely_swapped_give_a_warning(n, kind):
    rng = np.random.default_rng(0)
    shares = rng.random(n).round(3)
    labels = (rng.random(n) < shares) * 1
    with pytest.warns(UserWarning, match=r"^The scores are all 0 or 1, and the targets are not\. Are they swapped\?$"):
        sf.fit(kind(labels), kind(shares))
    with pytest.warns(UserWarning, match="Are they swapped"):
        sf.fit(kind(labels), kind(1 - shares), loss="log")  # a single step
    with pytest.warns(UserWarning, match="Are they swapped"):
        sf.fit_groups(kind(labels), kind(shares), np.arange(n) % 2)


@pytest.mark.parametrize("targets", ["labels", "real", "constant", "in [0, 2]", "few", "weighted", "other scores"])
def test_other_rows_with_scores_0_and_1_give_no_warning(targets):
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 2, 200), rng.random(200)
    w = None
    if targets == "labels":
        y = y < 0.5
    elif targets in ("real", "in [0, 2]"):
        y = rng.normal(size=200) if targets == "real" else 2 * y
    elif targets == "constant":
        x = np.ones(200)
    elif targets == "few":
        x, y = [0, 1], [0.3, 0.4]
    elif targets == "weighted":  # shares of numbers of trials
        w = np.full(200, 7)
    else:
        x = rng.integers(0, 3, 200) / 2
    sf.fit(x, y, sample_weight=w)
    sf.fit_groups(x, y, np.zeros(len(y), dtype=int), sample_weight=w)
