"""Published results, and agreement with SciPy and scikit-learn where they are exact enough."""

import numpy as np
import pytest
from scipy.optimize import isotonic_regression as scipy_regression
from sklearn.isotonic import IsotonicRegression

import staircase_fast as sf

KNOWN = {  # y, weights, x, blocks
    "Busing 2022": ([8, 4, 8, 2, 2, 0, 8], None, [4] * 6 + [8], [0, 6, 7]),
    "weights of halves": (
        [3, 2, 1, 10, 9, 8, 20, 10],
        [1, 2, 5, 0.5, 0.5, 0.5, 1, 3],
        [1.5] * 3 + [9] * 3 + [12.5] * 2,
        [0, 3, 6, 8],
    ),
    "scikit-learn": (
        [1, 41, 51, 1, 2, 5, 24],
        [1, 2, 3, 4, 5, 6, 7],
        [1] + [13.95] * 5 + [24],
        [0, 1, 6, 7],
    ),
    "Robertson 1988": (
        [22.5, 23.333, 20.833, 24.25],
        [3, 3, 3, 2],
        [22.222] * 3 + [24.25],
        [0, 3, 4],
    ),
}


@pytest.mark.parametrize("name", KNOWN)
def test_published_results_are_reproduced(name):
    y, weights, x, blocks = KNOWN[name]
    result = sf.isotonic_regression(y, weights=weights)
    assert result.x == pytest.approx(x, rel=2**-52)
    assert result.blocks.tolist() == blocks
    ones = np.ones(len(y)) if weights is None else np.array(weights)
    assert result.weights.tolist() == np.add.reduceat(ones, blocks[:-1]).tolist()
    stairs = sf.fit(np.arange(len(y)), y, sample_weight=weights)
    assert stairs(np.arange(len(y))) == pytest.approx(x, rel=2**-52)


@pytest.mark.parametrize("increasing", [True, False], ids=["increasing", "decreasing"])
@pytest.mark.parametrize("weighted", [False, True], ids=["unweighted", "weighted"])
@pytest.mark.parametrize("seed", range(10))
def test_scipy_finds_the_same_values_and_blocks_in_noise(seed, weighted, increasing):
    rng = np.random.default_rng(seed)
    y = rng.normal(size=500) + np.linspace(-1, 1, 500)
    weights = rng.uniform(0.5, 2, 500) if weighted else None
    ours = sf.isotonic_regression(y, weights=weights, increasing=increasing)
    theirs = scipy_regression(y, weights=weights, increasing=increasing)
    np.testing.assert_allclose(ours.x, theirs.x, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(ours.weights, theirs.weights, rtol=1e-12)
    np.testing.assert_array_equal(ours.blocks, theirs.blocks)


@pytest.mark.parametrize("increasing", [True, False], ids=["increasing", "decreasing"])
@pytest.mark.parametrize("seed", range(10))
def test_scikit_learn_finds_the_same_fit_and_the_same_interpolation(seed, increasing):
    rng = np.random.default_rng(seed)
    scores = rng.integers(0, 150, 400) / 8
    targets = rng.normal(size=400) + scores / 9
    weights = rng.uniform(0.5, 2, 400)
    queries = np.linspace(-1, 20, 333)
    ours = sf.fit(scores, targets, sample_weight=weights, increasing=increasing)
    theirs = IsotonicRegression(increasing=increasing, out_of_bounds="clip")
    theirs.fit(scores, targets, sample_weight=weights)
    np.testing.assert_allclose(ours(scores), theirs.predict(scores), rtol=1e-12, atol=1e-12)
    between = ours.predict(queries, interpolation="linear")
    np.testing.assert_allclose(between, theirs.predict(queries), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_scikit_learn_keeps_the_same_bounds(seed):
    rng = np.random.default_rng(seed)
    scores, targets = rng.permutation(200), rng.normal(size=200)
    ours = sf.fit(scores, targets, bounds=(-0.25, 0.125))
    theirs = IsotonicRegression(y_min=-0.25, y_max=0.125).fit(scores, targets)
    np.testing.assert_allclose(ours(scores), theirs.predict(scores), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("slope", [-1, 1])
def test_scikit_learn_chooses_the_same_direction_where_it_is_clear(slope):
    rng = np.random.default_rng(0)
    scores = rng.normal(size=300)
    targets = slope * scores + rng.normal(size=300) / 4
    theirs = IsotonicRegression(increasing="auto").fit(scores, targets)
    ours = sf.fit(scores, targets, increasing="auto")
    assert ours.increasing == theirs.increasing_ == (slope > 0)
