"""`UpdateRule`: losses by how blocks merge."""

import math
import pickle

import numpy as np
import pytest
from comparing import assert_same_bits
from custom_losses import Custom, UpdateRule, assert_close_staircase, difference, rows_of
from hypothesis import given
from hypothesis import strategies as st

import staircase_fast as sf

L = sf.losses
inf = math.inf
EPS = 2.0**-52
both_directions = pytest.mark.parametrize("increasing", [True, False])


def mean(y1, w1, y2, w2):
    return (y1 * w1 + y2 * w2) / (w1 + w2), w1 + w2


def log_sum_exp(shape):
    """Linex of one shape: exp(-shape z) is the mean of exp(-shape y)."""

    def merge(y1, w1, y2, w2):
        return -np.log((w1 * np.exp(-shape * y1) + w2 * np.exp(-shape * y2)) / (w1 + w2)) / shape, w1 + w2

    return merge


@both_directions
def test_the_rule_of_means_is_the_squared_error(increasing):
    for seed in range(6):
        for n in (1, 2, 9, 80):
            _, x, y, w = rows_of("mean", seed, n)
            found = sf.fit(x, y, sample_weight=w, loss=UpdateRule(mean), increasing=increasing)
            wanted = sf.fit(x, y, sample_weight=w, increasing=increasing)
            assert_close_staircase(found, wanted, np.abs(y).max())


@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(-8, 8), st.integers(0, 3)), min_size=1, max_size=14),
    st.booleans(),
)
def test_the_rule_of_means_has_the_exact_steps(rows, increasing):
    """With sums for an auxiliary value nothing is rounded but the quotient."""
    x, y, w = ([float(entry) for entry in column] for column in zip(*rows, strict=True))
    if not any(w):
        return

    def merge(y1, sums1, y2, sums2):
        total, weight = sums1[0] + sums2[0], sums1[1] + sums2[1]
        return total / weight, (total, weight)

    rule = UpdateRule(merge, initial=lambda y, w: (y, (y * w, w)))
    found = sf.fit(x, y, sample_weight=w, loss=rule, increasing=increasing)
    wanted = sf.fit(x, y, sample_weight=w, increasing=increasing)
    for column in ("left", "right", "values", "weights", "counts"):
        assert_same_bits(getattr(found, column), getattr(wanted, column))


@pytest.mark.parametrize("shape", [1.0, -0.5, 3.0])
@both_directions
def test_the_rule_of_log_sum_exp_is_linex(shape, increasing):
    for seed in range(6):
        _, x, y, w = rows_of("linex", seed, 50)
        found = sf.fit(x, y, sample_weight=w, loss=UpdateRule(log_sum_exp(shape)), increasing=increasing)
        wanted = sf.fit(x, y, sample_weight=w, loss=L.Linex(shape), increasing=increasing)
        np.testing.assert_array_equal(found.left, wanted.left)
        assert found.values == pytest.approx(wanted.values, rel=1e-12, abs=1e-13)


def test_initial_says_what_a_single_sample_is():
    def geometric(y1, w1, y2, w2):
        return math.exp((w1 * math.log(y1) + w2 * math.log(y2)) / (w1 + w2)), w1 + w2

    given = []

    def initial(target, weight):
        given.append((target, weight))
        return math.exp(target), 2 * weight

    x, y, w = [3, 1, 2], [2.0, 4.0, 0.0], [1.0, 3.0, 1.0]
    stairs = sf.fit(x, y, sample_weight=w, loss=UpdateRule(geometric, initial))
    assert stairs.values == pytest.approx(np.exp(sf.fit(x, y, sample_weight=w).values), rel=1e-14, abs=0)
    assert given == [(4.0, 3.0), (0.0, 1.0), (2.0, 1.0)]
    given.clear()
    sf.fit(x, y, loss=UpdateRule(geometric, initial))
    assert given == [(4.0, 1.0), (0.0, 1.0), (2.0, 1.0)]


@both_directions
def test_the_left_block_comes_first_and_ties_are_joined_before_others(increasing):
    """Blocks as sets of samples; weights number these."""
    told = []

    def merge(y1, one, y2, two):
        told.append((y1, one, y2, two))
        total, weight = one[0] + two[0], one[1] + two[1]
        return total / weight, (total, weight, one[2] + two[2])

    rng = np.random.default_rng(9)
    for n in (2, 5, 30):
        x, y, w = np.sort(rng.integers(0, n // 2 + 1, n)), rng.integers(-5, 6, n).astype(float), np.arange(1.0, n + 1)
        rule = UpdateRule(merge, initial=lambda y, w: (y, (y * w, w, (int(w) - 1,))))
        sf.fit(x, y, sample_weight=w, loss=rule, increasing=increasing)
        for y1, one, y2, two in told:
            # a falling fit is a rising one of rows in the opposite order
            first, second = (x[list(block[2])] for block in ((one, two) if increasing else (two, one)))
            if len(set(first) | set(second)) == 1:
                continue  # samples of one score
            assert max(first) < min(second)
            assert y1 >= y2
            for block in (one, two):  # with all samples of their scores
                scores = x[list(block[2])]
                assert sorted(block[2]) == np.flatnonzero((x >= scores.min()) & (x <= scores.max())).tolist()
        told.clear()


def test_an_update_rule_must_be_a_function():
    for function in (None, 3, "mean"):
        with pytest.raises(TypeError, match="`merge` must be a function"):
            UpdateRule(function)
    for function in (3, "mean"):
        with pytest.raises(TypeError, match="`initial` must be a function"):
            UpdateRule(mean, function)


@pytest.mark.parametrize(
    ("returned", "kind", "told"),
    [
        (1.0, TypeError, "must return a pair"),
        (None, TypeError, "must return a pair"),
        ((1.0,), TypeError, "must return a pair"),
        ((1.0, 2.0, 3.0), TypeError, "must return a pair"),
        (("a", 2.0), TypeError, "must return a pair"),
        ((None, 2.0), TypeError, "must return a pair"),
        ((math.nan, 2.0), ValueError, "must return finite values; got nan"),
        ((inf, 2.0), ValueError, "must return finite values; got inf"),
        ((5.0, 2.0), ValueError, r"a value between those of its blocks, 0.0 and 4.0; got 5.0"),
        ((-0.1, 2.0), ValueError, r"a value between those of its blocks, 0.0 and 4.0; got -0.1"),
    ],
)
def test_what_a_rule_returns_is_judged(returned, kind, told):
    for x in ([1, 2], [1, 1]):
        with pytest.raises(kind, match=told):
            sf.fit(x, [4.0, 0.0], loss=UpdateRule(lambda *_: returned))
    if kind is TypeError or "finite" in told:
        with pytest.raises(kind, match=told):
            sf.fit([1, 2], [0.0, 4.0], loss=UpdateRule(mean, lambda *_: returned))


def test_exceptions_of_a_rule_reach_the_caller_as_they_are():
    raised = ZeroDivisionError("mine")

    def merge(*_):
        raise raised

    with pytest.raises(ZeroDivisionError) as caught:
        sf.fit([1, 2], [4.0, 0.0], loss=UpdateRule(merge))
    assert caught.value is raised


def test_a_rule_keeps_bounds():
    x, y = [1, 2, 3, 4], [-3.0, 1.0, 0.0, 9.0]
    assert sf.fit(x, y, loss=UpdateRule(mean), bounds=(-1, 2)).values.tolist() == [-1.0, 0.5, 2.0]


def test_rules_are_equal_if_their_functions_are():
    assert UpdateRule(mean) == UpdateRule(mean)
    assert hash(UpdateRule(mean)) == hash(UpdateRule(mean))
    assert UpdateRule(mean) != UpdateRule(mean, difference)
    assert UpdateRule(mean) != UpdateRule(difference)
    assert UpdateRule(mean) != Custom(mean)
    assert repr(UpdateRule(mean)) == "UpdateRule(mean)"
    assert pickle.loads(pickle.dumps(UpdateRule(mean))) == UpdateRule(mean)
    for ask in (UpdateRule(mean).value, UpdateRule(mean).derivative):
        with pytest.raises(TypeError, match="only its minimisers"):
            ask(1.0, 2.0)


def test_rules_have_no_certificate():
    stairs = sf.fit([1, 2], [1.0, 0.0], loss=UpdateRule(mean))
    with pytest.raises(TypeError, match="`loss` must have a derivative"):
        sf.certify(stairs, [1, 2], [1.0, 0.0])
    assert sf.certify(stairs, [1, 2], [1.0, 0.0], loss="squared").optimal


def test_isotonic_regression_takes_a_rule():
    assert sf.isotonic_regression([1.0, 0.0, 3.0], loss=UpdateRule(mean)).x.tolist() == [0.5, 0.5, 3.0]


def test_auto_is_refused_for_a_rule():
    with pytest.raises((TypeError, ValueError), match=r"increasing|auto"):
        sf.fit([1, 2, 3], [3.0, 2.0, 1.0], loss=UpdateRule(mean), increasing="auto")
