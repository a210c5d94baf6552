"""Fits too large for the reference, certified exactly in whole numbers.

With targets and weights that are integers times a power of two, every condition of an optimum is a
comparison of products of integers: NumPy's int64 decides it without rounding. Conditions and strictly
increasing means together admit one staircase only.
"""

import numpy as np
import pytest
from comparing import assert_same_bits
from hypothesis import given
from hypothesis import strategies as st
from strategies import WEIGHTS, kinds, rows

import staircase_fast as sf

ROWS = 200_000
COPIES = 3_000


def clustered(rng):
    return rng.integers(0, 50, ROWS) + 1e-9 * rng.random(ROWS)


def outlier(rng):
    scores = rng.random(ROWS)
    scores[rng.integers(ROWS)] = 1e300
    return scores


def nearly_all_tied(rng):
    scores = np.full(ROWS, 0.5)
    scores[rng.integers(0, ROWS, 20)] = rng.random(20)
    scores[[0, -1]] = 2, -1
    return scores


SCORES = {
    "uniform": lambda rng: rng.random(ROWS),
    "float32": lambda rng: rng.random(ROWS, dtype=np.float32),
    "beta": lambda rng: rng.beta(0.05, 0.3, ROWS),
    "log-normal": lambda rng: rng.lognormal(0, 30, ROWS),
    "clustered": clustered,
    "rounded to 3 digits": lambda rng: rng.random(ROWS).round(3),
    "two scores": lambda rng: rng.integers(0, 2, ROWS),
    "nearly all tied": nearly_all_tied,
    "all tied": lambda rng: np.full(ROWS, 0.3),
    "sorted": lambda rng: np.sort(rng.normal(size=ROWS)),
    "sorted, with ties": lambda rng: np.sort(rng.integers(0, ROWS // 2, ROWS)),
    "reversed": lambda rng: np.sort(rng.normal(size=ROWS))[::-1],
    "one huge outlier": outlier,
    "infinities": lambda rng: rng.choice([-np.inf, 0.25, 0.5, np.inf], ROWS),
    "half negative zero": lambda rng: np.where(rng.random(ROWS) < 0.5, -0.0, rng.random(ROWS)),
}


def noise(rng, rank):
    return rank // 8 + rng.integers(-(2**20), 2**20, ROWS)


TARGETS = {  # integers that depend on the rank of the score
    "labels": lambda rng, rank: rng.random(ROWS) < rank / ROWS,
    "rare labels": lambda rng, rank: rng.random(ROWS) < 0.001 + 0.002 * rank / ROWS,
    "noise": noise,
    "rising": lambda rng, rank: rank,
    "falling": lambda rng, rank: ROWS - rank,
    "sawtooth": lambda rng, rank: 4 * rank - 6 * (rank % 2),
    "cascade": lambda rng, rank: np.where(rank == ROWS - 1, -(2**33), rank),
}


def rank_of(scores):
    """The rank of each score among the distinct ones, spread over 0 to ROWS."""
    distinct, rank = np.unique(scores, return_inverse=True)
    return rank * ROWS // distinct.size


def check_optimum(stairs, scores, targets, weights):
    """Every condition, on integers; `stairs` is the fit of these rows."""
    present = np.argsort(scores)
    present = present[weights[present] > 0]
    x, w = scores[present].astype(float), weights[present]
    y = targets[present] if stairs.increasing else -targets[present]
    ends = np.flatnonzero(np.append(x[1:] != x[:-1], True))  # equal scores are one observation
    x, s_sum, w_sum = x[ends], np.cumsum(w * y)[ends], np.cumsum(w)[ends]

    first, last = np.searchsorted(x, stairs.left), np.searchsorted(x, stairs.right)
    np.testing.assert_array_equal(first, np.append(0, last[:-1] + 1))
    assert last[-1] == x.size - 1
    np.testing.assert_array_equal(x[first], stairs.left)
    np.testing.assert_array_equal(x[last], stairs.right)

    s_before, w_before = np.append(0, s_sum[last[:-1]]), np.append(0, w_sum[last[:-1]])
    s_step, w_step = s_sum[last] - s_before, w_sum[last] - w_before
    assert (s_step[:-1] * w_step[1:] < s_step[1:] * w_step[:-1]).all()
    step = np.repeat(np.arange(stairs.n_steps), last - first + 1)
    prefix = (s_sum - s_before[step]) * w_step[step] - s_step[step] * (w_sum - w_before[step])
    assert (prefix >= 0).all()

    mean = s_step / w_step + 0.0  # of integers below 2**53: rounded once
    assert_same_bits(stairs.values, mean if stairs.increasing else 0.0 - mean)
    assert_same_bits(stairs.weights, w_step)
    np.testing.assert_array_equal(stairs.counts, np.diff(ends[last] + 1, prepend=0))


@pytest.mark.parametrize("increasing", [True, False], ids=["increasing", "decreasing"])
@pytest.mark.parametrize("kind", SCORES)
def test_labels_at_scores_of_every_distribution_have_the_optimal_staircase(kind, increasing):
    rng = np.random.default_rng([1, *kind.encode()])
    scores = SCORES[kind](rng)
    rank = rank_of(scores if increasing else -scores)
    labels = TARGETS["labels"](rng, rank)
    stairs = sf.fit(scores, labels, increasing=increasing)
    check_optimum(stairs, scores, labels.astype(np.int64), np.ones(ROWS, dtype=np.int64))


@pytest.mark.parametrize("kind", SCORES)
def test_real_targets_and_weights_at_scores_of_every_distribution_too(kind):
    rng = np.random.default_rng([2, *kind.encode()])
    scores = SCORES[kind](rng)
    targets, weights = noise(rng, rank_of(scores)), rng.integers(0, 9, ROWS)
    whole = sf.fit(scores, targets, sample_weight=weights)
    check_optimum(whole, scores, targets, weights)
    scaled = sf.fit(scores, targets * 2.0**-30, sample_weight=weights * 2.0**-40)
    assert_same_bits(scaled.values, whole.values * 2.0**-30)
    assert_same_bits(scaled.weights, whole.weights * 2.0**-40)
    assert_same_bits(scaled.left, whole.left)


@given(
    rows(weights=kinds(WEIGHTS, "one", "integers, zero too", "decimals", "huge", "600 decades")),
    st.booleans(),
)
def test_thousands_of_copies_of_every_row_have_the_staircase_of_one(rows, increasing):
    once = sf.fit(rows.scores, rows.targets, sample_weight=rows.weights, increasing=increasing)
    index = np.tile(np.arange(rows.scores.size), COPIES)
    copies = rows.take(np.random.default_rng(0).permutation(index))
    many = sf.fit(copies.scores, copies.targets, sample_weight=copies.weights, increasing=increasing)
    for name in ("left", "right", "values"):
        assert_same_bits(getattr(many, name), getattr(once, name))
    np.testing.assert_array_equal(many.counts, COPIES * once.counts)
    np.testing.assert_allclose(many.weights, COPIES * once.weights, rtol=2**-51)


@pytest.mark.parametrize("weighted", [False, True], ids=["unweighted", "weighted"])
@pytest.mark.parametrize("kind", TARGETS)
def test_sequences_of_every_pattern_have_the_optimal_staircase(kind, weighted):
    rng = np.random.default_rng([3, *kind.encode()])
    scores = np.arange(ROWS)
    targets = TARGETS[kind](rng, scores).astype(np.int64)
    weights = rng.integers(1, 4, ROWS) if weighted else np.ones(ROWS, dtype=np.int64)
    given = weights if weighted else None
    stairs = sf.fit(scores, targets, sample_weight=given)
    check_optimum(stairs, scores, targets, weights)
    shuffled = rng.permutation(ROWS)
    again = sf.fit(shuffled, targets[shuffled], sample_weight=weights[shuffled])
    assert again == stairs
    line = sf.isotonic_regression(targets * 0.5, weights=given)
    assert_same_bits(line.x, stairs(scores) * 0.5)
    assert_same_bits(line.weights, stairs.weights)
    np.testing.assert_array_equal(line.blocks, np.append(stairs.left, ROWS))
