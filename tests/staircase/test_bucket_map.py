"""Bucket maps are monotone, even for every distribution of scores, and no deeper than necessary."""

import math

import numpy as np
import pytest

from staircase_fast.staircase import _lookup, _make_map, cells

inf = math.inf
N = 1_000_000


def spread_in_a_cluster(rng, n):
    """97 % within 1e-7 of 0.5, of which 90 % are within 1e-13."""
    inner = np.where(rng.random(n) < 0.9, 1e-13, 1e-7) * rng.random(n)
    return np.where(rng.random(n) < 0.97, 0.5 + inner, rng.random(n))


SCORES = {  # and the largest depth
    "uniform": (lambda rng, n: rng.random(n), 1),
    "float32": (lambda rng, n: rng.random(n).astype(np.float32), 1),
    "a few ulps": (lambda rng, n: 1 + rng.integers(0, 5, n) * 2.0**-52, 1),
    "many ulps": (lambda rng, n: 1 + rng.integers(0, n, n) * 2.0**-52, 1),
    "subnormal": (lambda rng, n: rng.integers(-(9**9), 9**9, n) * 5e-324, 1),
    "both infinities": (lambda rng, n: rng.choice([-inf, inf, 0.0], n) + rng.random(n), 1),
    "atoms": (lambda rng, n: rng.choice(rng.normal(size=5), n), 1),
    "three digits": (lambda rng, n: np.round(rng.random(n), 3), 1),
    "normal": (lambda rng, n: rng.normal(size=n), 2),
    "beta": (lambda rng, n: rng.beta(0.5, 3, n), 2),
    "log-normal": (lambda rng, n: rng.lognormal(0, 3, n), 2),
    "float32 log-normal": (lambda rng, n: rng.lognormal(0, 3, n).astype(np.float32), 2),
    "very heavy tails": (lambda rng, n: rng.lognormal(0, 50, n) * rng.choice([-1, 1], n), 2),
    "cluster": (lambda rng, n: np.where(rng.random(n) < 0.97, 0.5 + 1e-7 * rng.random(n), rng.random(n)), 2),
    "clusters": (lambda rng, n: rng.integers(0, 32, n) + 1e-9 * rng.random(n), 2),
    "one outlier": (lambda rng, n: np.append(rng.random(n - 1), 1e300), 2),
    "widest": (lambda rng, n: np.append(rng.random(n - 2), [-1.7e308, 1.7e308]), 2),
    "Cauchy": (lambda rng, n: rng.standard_cauchy(n), 3),
    "mixture": (lambda rng, n: np.append(rng.normal(size=n // 2), rng.lognormal(0, 3, n - n // 2)), 3),
    "cluster in a cluster": (spread_in_a_cluster, 5),
    "near 0 and 1": (lambda rng, n: np.abs(rng.integers(0, 2, n) - 10 ** (-16 * rng.random(n))), 9),
}


def buckets_of(x, bucket_map):
    found = np.empty(len(x), dtype=np.int32)
    _lookup.locate(x, bucket_map, found)
    return found


@pytest.mark.parametrize("scores", SCORES)
def test_buckets_are_even_and_the_map_is_monotone(scores):
    draw, depth = SCORES[scores]
    x = np.sort(draw(np.random.default_rng(7), N))
    bucket_map = cells.make_map(cells.sorted_sample(x), N // 16)
    n_buckets = cells.n_buckets(bucket_map)
    assert 0 < n_buckets < 1.5 * N / 16
    assert bucket_map[0, 1] <= depth
    distinct = x[cells.firsts(x)]
    crowd = np.bincount(buckets_of(distinct, bucket_map), minlength=n_buckets)
    assert np.mean(crowd[buckets_of(x, bucket_map)] > 64) < 0.01
    with np.errstate(over="ignore", under="ignore"):
        beside = [np.nextafter(distinct, x.dtype.type(way)) for way in (-inf, inf)]
    queries = np.sort(np.concatenate([distinct, *beside, [-inf, -1.7e308, -0.0, 0.0, 1.7e308, inf]]))
    buckets = buckets_of(queries, bucket_map)
    assert buckets[0] >= 0
    assert buckets[-1] < n_buckets
    assert np.all(np.diff(buckets) >= 0)
    assert np.all(buckets_of(np.array([-0.0, 0.0]), bucket_map) == buckets_of(np.zeros(2), bucket_map))


@pytest.mark.parametrize("scores", SCORES)
@pytest.mark.parametrize("n", [0, 1, 2, 3, 8, 9, 100, 3000])
def test_maps_of_steps_leave_few_of_them_in_one_bucket(scores, n):
    steps = np.unique(SCORES[scores][0](np.random.default_rng(n), max(n, 2))[:n].astype(np.float64))
    bucket_map = cells.index_map(steps)
    finite = steps[np.isfinite(steps)]
    buckets = buckets_of(finite, bucket_map)
    crowd = np.bincount(buckets, minlength=1)
    assert np.count_nonzero(crowd[buckets] > 2) <= 0.1 * len(finite)
    assert np.all(np.diff(buckets) >= 0)
    assert cells.n_buckets(bucket_map) <= max(1, 16 * len(finite)) + len(bucket_map)


@pytest.mark.parametrize("wanted", [1, 3, 1000, 10**6])
@pytest.mark.parametrize("sample", [[], [2.0], [1.0, 1.0], [1.0, 2.0], [-1.7e308, 1.7e308], [0.0, 5e-324], range(9)])
def test_maps_of_few_scores_are_valid(sample, wanted):
    bucket_map = cells.make_map(np.array(sample, dtype=np.float64), wanted)
    buckets = buckets_of(np.array([-inf, -1.0, -0.0, 0.0, 5e-324, 1.0, 1.5, 2.0, inf]), bucket_map)
    assert buckets[0] >= 0
    assert buckets[-1] < cells.n_buckets(bucket_map) <= 1.2 * wanted + 1
    assert np.all(np.diff(buckets) >= 0)


def test_a_fractal_does_not_make_the_map_endless():
    rng = np.random.default_rng(0)
    cantor = sum(rng.integers(0, 2, 8192) * 2 * 3.0**-k for k in range(1, 34))
    bucket_map = _make_map.make(np.sort(cantor), 1e5, False)
    assert len(bucket_map) < 8192
    assert bucket_map[0, 1] <= 12
