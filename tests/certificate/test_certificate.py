"""Certificates: every fit has one, nothing else has, and the gap is a bound."""

import json
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from problems import LOSSES, Problem, problem_of
from strategies import rows

import staircase_fast as sf

L = sf.losses


def problems(name: str, how_many: int, seed: int) -> list[Problem]:
    found = []
    for index in range(how_many):
        rng = np.random.default_rng([seed, index, list(LOSSES).index(name)])
        found.append(problem_of(rng, name, int(np.exp(rng.uniform(0, np.log(300))))))
    return found


def costs(problem: Problem, stairs: sf.Staircase) -> np.ndarray:
    """What each row costs: not so fast, but obviously right."""
    w = problem.options.get("sample_weight")
    present = slice(None) if w is None else w > 0
    loss = problem.options["loss"]
    loss = loss.of_rows(present) if len(loss.parameters) > 1 else loss
    each = loss.value(stairs(problem.scores)[present], np.asarray(problem.targets, dtype=float)[present])
    return each if w is None else each * w[present]


def rebuilt(stairs: sf.Staircase, left, right, values, counts) -> sf.Staircase:
    ones = np.ones(len(values))
    return sf.Staircase(left, right, values, ones, counts, loss=stairs.loss, increasing=stairs.increasing)


def damaged(stairs: sf.Staircase, problem: Problem, rng: np.random.Generator) -> dict[str, sf.Staircase]:
    """Staircases that look like a fit; some kinds of damage can be done only to some."""
    x = np.unique(problem.scores).astype(float) + 0.0
    z, left, right, n = stairs.values.copy(), stairs.left, stairs.right, len(stairs)
    ones = np.ones(n, dtype=int)
    made = {}

    def add(name, left, right, values):
        low, high = stairs.loss.value_range
        climb = np.diff(values) > 0 if stairs.increasing else np.diff(values) < 0
        if np.all(np.isfinite(values)) and np.all(climb) and np.all((values >= low) & (values <= high)):
            made[name] = rebuilt(stairs, left, right, values, ones[: len(values)])

    k = int(rng.integers(n))
    moved = z.copy()
    moved[k] *= 1 + 1e-6
    add("a value moved", left, right, moved)
    moved = z.copy()
    moved[k] += 0.1 * rng.normal()
    add("a value moved far", left, right, moved)
    add("all values shifted", left, right, z + 0.01)
    middle = np.median(z)
    if math.isfinite(middle):
        add("constant", left[:1], right[-1:], np.array([middle]))
    if n > 1:
        k = int(rng.integers(n - 1))
        join = np.delete(z, k + 1)
        join[k] = 0.5 * (z[k] + z[k + 1])
        add("two steps merged", np.delete(left, k + 1), np.delete(right, k), join)
        inner = x[(x > left[k + 1]) & (x <= right[k + 1])]
        if len(inner):
            edge, end = left.copy(), right.copy()
            end[k], edge[k + 1] = edge[k + 1], inner[0]
            add("an edge moved by a row", edge, end, z)
    on_step = x[(x > left[k]) & (x <= right[k])]
    if len(on_step) and math.isfinite(z[k]):
        cut = on_step[len(on_step) // 2]
        before = x[x < cut][-1]
        size = 1e-4 * (abs(z[k]) + 1e-3) * (1 if stairs.increasing else -1)
        split = np.insert(z, k + 1, z[k] + size)
        split[k] -= size
        ones = np.ones(n + 1, dtype=int)
        add("a step split", np.insert(left, k + 1, cut), np.insert(right, k, before), split)
    return made


@pytest.mark.parametrize(
    "name",
    list(LOSSES),
)
def test_every_fit_is_certified(name):
    for problem in problems(name, 40, 0):
        stairs = problem.fit()
        certificate = problem.certify(stairs)
        assert certificate.optimal
        size = np.abs(costs(problem, stairs)).sum() + np.abs(np.asarray(problem.targets, dtype=float)).max() + 1
        assert 0 <= certificate.gap <= 1e-9 * size  # bounds may leave nothing but an infinite loss
        assert 0 <= certificate.worst_index < len(problem.targets)


@pytest.mark.parametrize("name", LOSSES)
def test_the_gap_is_a_bound_and_damage_that_costs_is_found(name):
    rng = np.random.default_rng(list(LOSSES).index(name))
    refused = 0
    for problem in problems(name, 25, 1):
        stairs = problem.fit()
        best = costs(problem, stairs)
        if not np.isfinite(best).all():
            continue
        for other in damaged(stairs, problem, rng).values():
            theirs = costs(problem, other)
            if not np.isfinite(theirs).all():
                assert problem.certify(other).gap == math.inf
                continue
            gap = math.fsum([*theirs, *(-best)])
            rounding = 1e-13 * (np.abs(best).sum() + np.abs(theirs).sum())
            certificate = problem.certify(other)
            outside = not within(other, problem.options.get("bounds"))
            assert gap <= certificate.gap + rounding
            if gap > 100 * rounding:
                assert not certificate.optimal
            if certificate.optimal:
                assert abs(gap) <= 100 * rounding
                assert not outside
            refused += not certificate.optimal
    assert refused > 25


def within(stairs: sf.Staircase, bounds) -> bool:
    low, high = (None, None) if bounds is None else bounds
    return (low is None or stairs.values.min() >= low) and (high is None or stairs.values.max() <= high)


@pytest.mark.parametrize("kind", ["a value moved", "all values shifted", "two steps merged", "an edge moved by a row"])
@pytest.mark.parametrize(
    "loss",
    [L.SquaredError(), L.Expectile(0.8), L.PseudoHuber(1.0), L.LogCosh(1.0), L.Power(1.5), L.Power(3), L.Linex(0.5)],
)
def test_damage_to_a_unique_optimum_is_always_found(loss, kind):
    rng = np.random.default_rng(3)
    found = 0
    for _ in range(20):
        scores = rng.random(100)
        problem = Problem(scores, 3 * scores + rng.normal(size=100), {"loss": loss, "increasing": True})
        made = damaged(problem.fit(), problem, rng)
        if kind in made:
            assert not problem.certify(made[kind]).optimal
            found += 1
    assert found > 5


def test_a_fit_of_other_rows_weights_losses_or_direction_is_refused():
    rng = np.random.default_rng(0)
    x, y, w = rng.random(200), rng.normal(size=200), rng.random(200)
    y += x
    stairs = sf.fit(x, y, sample_weight=w)
    assert sf.certify(stairs, x, y, sample_weight=w).optimal
    assert not sf.certify(stairs, x, y).optimal
    assert not sf.certify(stairs, x, y[::-1], sample_weight=w).optimal
    assert not sf.certify(stairs, -x, y, sample_weight=w).optimal
    assert not sf.certify(stairs, x, y, sample_weight=w, loss="quantile").optimal
    assert not sf.certify(stairs, x, y, sample_weight=w, bounds=(0.4, 0.5)).optimal
    falling = sf.fit(x, y, sample_weight=w, increasing=False)
    assert sf.certify(falling, x, y, sample_weight=w).optimal
    level = sf.Staircase([0], [1], [float(falling.values[0])], [1], [1])
    assert not sf.certify(level, x, y, sample_weight=w).optimal


def test_losses_that_are_least_at_the_mean_certify_each_other():
    x, y = np.arange(50), np.random.default_rng(0).random(50) + 0.01
    stairs = sf.fit(x, y)
    for loss in (L.LogLoss(), L.PoissonDeviance(), L.GammaDeviance(), L.TweedieDeviance(1.5), L.Expectile(0.5)):
        low_enough = y / 2
        halved = sf.fit(x, low_enough)
        assert sf.certify(halved, x, low_enough, loss=loss).optimal
        assert sf.certify(halved, x, low_enough, loss=loss).gap < 1e-12
        assert not sf.certify(stairs, x, low_enough, loss=loss).optimal


def test_the_worst_row_is_that_of_the_damage():
    scores, targets = [4, 3, 2, 1, 0], [4.0, 3.0, 2.0, 1.0, 0.0]
    stairs = sf.Staircase([0, 1, 2, 3, 4], [0, 1, 2, 3, 4], [0.0, 1.0, 2.5, 3.0, 4.0], [1] * 5, [1] * 5)
    assert sf.certify(stairs, scores, targets) == (False, pytest.approx(4.0), 2)  # the true gap is 0.25
    weights = [1, 0, 1, 1, 1]  # absent rows count as places
    shifted = sf.certify(stairs, [9, *scores[:4]], [4.0, *targets[:4]], sample_weight=weights)
    assert not shifted.optimal
    assert shifted.worst_index == 3


def test_saturated_slopes_are_told_from_zero():
    """The sum of slopes is -0.0 at 60, in plain arithmetic."""
    scores, targets = [1, 1, 2, 2], [100.0, 0.0, 130.0, 10.0]
    right = sf.Staircase([1, 2], [1, 2], [50.0, 70.0], [2, 2], [2, 2], loss="log_cosh")
    wrong = sf.Staircase([1], [2], [60.0], [4], [4], loss="log_cosh")
    assert sf.certify(right, scores, targets).optimal
    certificate = sf.certify(wrong, scores, targets)
    assert not certificate.optimal
    assert 0 < certificate.gap < 1e-30


@pytest.mark.parametrize("side", ["lower", "middle", "upper"])
def test_any_minimiser_of_a_level_loss_is_optimal(side):
    scores, targets = [1, 2, 3, 4], [5.0, 1.0, 2.0, 9.0]
    assert sf.certify(sf.fit(scores, targets, loss=L.Quantile(0.5, side=side)), scores, targets).optimal
    huber = [2.0, 10.0]  # any value between 3 and 9 has the least loss
    for value in (3.0, 4.0, 6.0, 9.0):
        assert sf.certify(sf.Staircase([1], [1], [value], [2], [2], loss="huber"), [1, 1], huber).optimal
    for value in (2.9, 9.1):
        assert not sf.certify(sf.Staircase([1], [1], [value], [2], [2], loss="huber"), [1, 1], huber).optimal


def test_infinite_log_odds_are_optimal_where_all_labels_are_one():
    scores, labels = [1, 2, 3, 4], np.array([False, True, False, True])
    stairs = sf.fit(scores, labels, loss="logistic", bounds=(-np.inf, np.inf))
    assert sf.certify(stairs, scores, labels, bounds=(-np.inf, np.inf)).optimal
    assert sf.certify(stairs, scores, labels).optimal
    assert not sf.certify(stairs, scores, labels, bounds=(-9, 9)).optimal
    assert sf.certify(stairs, scores, ~labels).gap == math.inf
    held = sf.fit(scores, labels, loss="logistic", bounds=(-9, 9))
    assert sf.certify(held, scores, labels, bounds=(-9, 9)) == (
        True,
        pytest.approx(0, abs=1e-12),
        pytest.approx(2, abs=2),
    )
    without = sf.certify(held, scores, labels)
    assert not without.optimal
    assert 2 * math.log1p(math.exp(-9)) <= without.gap < 2.1 * math.log1p(math.exp(-9))


def test_values_that_a_loss_does_not_allow_are_refused():
    stairs = sf.fit([1, 2, 3], [-1.0, 0.5, 2.0])
    assert sf.certify(stairs, [1, 2, 3], [0, 0.5, 1], loss="log") == (False, math.inf, 0)
    zero = sf.Staircase([1], [3], [0.0], [3], [3], loss="log")
    assert not sf.certify(zero, [1, 2, 3], [0, 1, 0]).optimal
    assert sf.certify(zero, [1, 2, 3], [0, 1, 0]).gap == math.inf
    assert sf.certify(zero, [1, 2, 3], [0, 0, 0])[:2] == (True, 0.0)


@pytest.mark.parametrize("weights", [None, [1e300, 1e-300, 1.0, 1.0]])
@pytest.mark.parametrize("size", [1e308, 1e150, 1e-300, 5e-324])
def test_huge_and_tiny_numbers_are_no_obstacle(size, weights):
    scores, targets = [1, 2, 3, 4], np.array([0.0, 1.0, 0.5, 1.0]) * size
    stairs = sf.fit(scores, targets, sample_weight=weights)
    certificate = sf.certify(stairs, scores, targets, sample_weight=weights)
    assert certificate.optimal
    true = float(true_gap(stairs(scores), targets, weights))
    assert true <= certificate.gap <= 1e-13 * size * size  # both underflow, or overflow, at the ends


def test_scores_of_any_kind_are_taken_and_rows_between_steps_count():
    rng = np.random.default_rng(0)
    scores = rng.choice([-np.inf, -0.0, 0.0, 0.1, 0.7, np.inf], 60).astype(np.float32)
    labels = rng.random(60) < 0.5
    assert sf.certify(sf.fit(scores, labels), scores, labels).optimal
    stairs = sf.fit([1, 2], [1.0, 3.0])
    assert sf.certify(stairs, [1, 1.5, 2, 7], [1.0, 1.0, 3.0, 3.0]).optimal
    assert not sf.certify(stairs, [1, 1.5, 2, 7], [1.0, 3.0, 3.0, 3.0]).optimal
    assert sf.certify(stairs, [0.0], [1.0]) == (True, pytest.approx(0, abs=1e-12), 0)


def test_inputs_are_judged():
    stairs = sf.fit([1, 2], [0.0, 1.0])
    with pytest.raises(TypeError, match=r"`stairs` must be a Staircase; got 3"):
        sf.certify(3, [1], [1])
    with pytest.raises(ValueError, match=r"`scores` must have at least one row; got none"):
        sf.certify(stairs, [], [])
    with pytest.raises(ValueError, match=r"`scores` must not be NaN; got nan at index 1"):
        sf.certify(stairs, [1, math.nan], [1, 2])
    with pytest.raises(ValueError, match=r"`targets` must be finite; got nan at index 0"):
        sf.certify(stairs, [1, 2], [math.nan, 2])
    with pytest.raises(ValueError, match=r"`sample_weight` must be >= 0; got -1.0 at index 1"):
        sf.certify(stairs, [1, 2], [1, 2], sample_weight=[1, -1])
    with pytest.raises(ValueError, match=r"`targets` must be in \[0, 1\] for log_loss; got 2 at index 1"):
        sf.certify(stairs, [1, 2], [1, 2], loss="log")
    with pytest.raises(ValueError, match=r"`delta` of the loss must have one entry per row; got 3 for 2 rows"):
        sf.certify(stairs, [1, 2], [1, 2], loss=L.Huber([1.0, 2.0, 3.0]))
    with pytest.raises(ValueError, match=r"`bounds` must be a pair"):
        sf.certify(stairs, [1, 2], [1, 2], bounds=(2, 1))


def test_a_fit_that_was_stopped_early_has_a_gap():
    rng = np.random.default_rng(0)
    scores, targets = rng.random(500), rng.normal(size=500)
    exact = sf.fit(scores, targets, loss="log_cosh")
    rough = sf.fit(scores, targets, loss="log_cosh", tol=0.1)
    certificate = sf.certify(rough, scores, targets)
    assert not certificate.optimal
    true = math.fsum(L.LogCosh().value(rough(scores), targets)) - math.fsum(L.LogCosh().value(exact(scores), targets))
    assert 0 < true <= certificate.gap


def test_the_kernel_sees_what_the_python_layer_gives_it_untouched():
    scores, targets, weights = (np.array(column) for column in ([3.0, 1.0, 2.0], [1.0, 0.0, 0.5], [1.0, 2.0, 0.0]))
    for column in (scores, targets, weights):
        column.setflags(write=False)
    stairs = sf.fit(scores, targets, sample_weight=weights, loss="huber")
    assert sf.certify(stairs, scores, targets, sample_weight=weights).optimal


@given(rows(), st.booleans())
def test_every_fit_of_means_is_certified_whatever_the_numbers(rows, increasing):
    stairs = sf.fit(rows.scores, rows.targets, sample_weight=rows.weights, increasing=increasing)
    certificate = sf.certify(stairs, rows.scores, rows.targets, sample_weight=rows.weights)
    assert certificate.optimal
    size = float(np.abs(np.asarray(rows.targets, dtype=float)).max())
    weight = float(len(rows.scores)) if rows.weights is None else sum(map(float, rows.weights))
    if size < 1e150:  # otherwise the gap may overflow
        assert certificate.gap <= 1e-9 * weight * size * size + 1e-200


def test_slopes_beyond_all_numbers_leave_no_bound_on_the_gap():
    for value in (1e60, -1e60):
        far = sf.Staircase([1], [2], [value], [2], [2], loss=sf.losses.Power(8))
        certificate = sf.certify(far, [1, 2], [0.0, 1.0])
        assert not certificate.optimal
        assert certificate.gap == math.inf


def steps_with(values):
    """A staircase with these values at scores 0, 1, .."""
    document = json.loads(sf.fit(range(len(values)), range(len(values))).to_json())
    for name in ("values", "lower", "upper"):
        if name in document:
            document[name] = [float(value) for value in values]
    return sf.Staircase.from_json(json.dumps(document))


def true_gap(values, targets, weights=None):
    """The excess loss over the optimum under squared error, exactly."""
    ys, ws = ([Fraction(float(one)) for one in column] for column in (targets, weights or [1] * len(targets)))
    stack = []
    for y, w in zip(ys, ws, strict=True):
        total, weight, n = y * w, w, 1
        while stack and stack[-1][0] * weight >= total * stack[-1][1]:
            total, weight, n = (one + two for one, two in zip((total, weight, n), stack.pop(), strict=True))
        stack.append((total, weight, n))
    best = [total / weight for total, weight, n in stack for _ in range(n)]

    def cost(fit):
        return sum(w * (z - y) ** 2 for z, y, w in zip(fit, ys, ws, strict=True))

    return cost([Fraction(float(value)) for value in values]) - cost(best)


def test_the_gap_of_steps_that_differ_by_rounding_alone_is_of_the_order_of_rounding():
    values = np.nextafter(0.5, [0.0, 1.0])
    certificate = sf.certify(steps_with(values), [0, 1], [1, 0])
    assert certificate.optimal
    assert true_gap(values, [1, 0]) <= certificate.gap < 1e-14


def test_the_gap_of_steps_some_ulps_off_is_not_below_the_true_one():
    for seed in range(300):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(2, 7))
        y = np.round(rng.normal(size=n), 1)
        z = sf.fit(range(n), y)(range(n))
        z = np.sort(z + rng.integers(-3, 4, n) * np.spacing(np.abs(z)))
        for i in range(1, n):
            z[i] = max(z[i], np.nextafter(z[i - 1], np.inf))
        gap = sf.certify(steps_with(z), range(n), y).gap
        assert true_gap(z, y) <= gap < 1e-11


def test_the_gap_of_a_large_target_with_a_tiny_weight_is_finite():
    stairs = sf.fit([1], [-1e97], sample_weight=[1e-300])
    assert sf.certify(stairs, [1], [-1e97], sample_weight=[1e-300]).gap < 1e-115  # 1e-9 of the weight times 1e194


def test_weights_of_extreme_ratios_are_certified():
    for loss in ("log", "squared"):
        stairs = sf.fit([1, 1], [0, 1], sample_weight=[1e300, 1e-300], loss=loss)
        assert sf.certify(stairs, [1, 1], [0, 1], sample_weight=[1e300, 1e-300]).optimal


def test_values_at_the_largest_float_are_certified():
    largest = float(np.finfo(np.float64).max)
    stairs = sf.fit([1, 2], [1.0, largest], loss="gamma_deviance")
    assert sf.certify(stairs, [1, 2], [1.0, largest]).optimal
