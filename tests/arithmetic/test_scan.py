"""One pass over a column finds NaN, the order and ties anywhere; the scale of exact sums follows from its extremes."""

from fractions import Fraction

import numpy as np
import pytest

import staircase_fast as sf
from staircase_fast.arithmetic import _scan
from staircase_fast.arithmetic.exact import UNIT_WEIGHTS, Extent, Scale, extent_of, order_of, scale_of

ORDINARY = [-1.0, 0.0, 1.0, 2.0, 3.0]
needs_vectors = pytest.mark.skipif(not _scan.has_vectors(), reason="needs AVX2")
STRANGE = [0.0, -0.0, 5e-324, 1.0, 1e308, -1e308, np.inf, -np.inf]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("entries", [ORDINARY, STRANGE, [*STRANGE, np.nan]])
@pytest.mark.parametrize("arrange", [lambda x: x, np.sort, lambda x: np.sort(x)[::-1].copy()])
def test_order_ties_and_the_first_nan_are_found(arrange, entries, dtype):
    rng = np.random.default_rng(1)
    with np.errstate(over="ignore"):
        entries = np.array(entries, dtype=dtype)
    for n in [*range(1, 40), 1023, 1024, 1025, 2049, 5000]:
        for _ in range(5):
            x = arrange(rng.choice(entries[: rng.integers(1, len(entries) + 1)], n))
            found = order_of(x, 1)
            nans = np.flatnonzero(np.isnan(x))
            assert found.first_nan == (nans[0] if len(nans) else -1)
            if len(nans):
                continue
            rises, falls = np.all(x[:-1] <= x[1:]), np.all(x[:-1] >= x[1:])
            assert found.sign == (1 if rises else -1 if falls else 0)
            if found.sign:
                assert found.tied == np.any(x[:-1] == x[1:])


@pytest.mark.parametrize("where", [0, 1, 2, 1022, 1023, 1024, 1025, 2999])
def test_one_score_out_of_order_is_found(where):
    x = np.arange(3000.0)
    x[where] = -1.0 if where else 5000.0
    assert order_of(x, 1).sign == 0
    x = np.arange(3000.0)
    x[where] = x[where - 1] if where else x[1]
    assert order_of(x, 1) == (-1, 1, True)


@pytest.mark.parametrize("field", Scale._fields)
def test_kernels_read_each_field_of_a_scale_by_its_name(field):
    zeros = Scale(*[0] * len(Scale._fields))
    found = _scan.fields_in_kernels(zeros._replace(**{field: 1}))
    assert found == {name: name == field for name in Scale._fields}


def test_each_field_of_a_scale_has_its_value():
    # targets are multiples of 2**-54 below 4, weights are integers below 8, and there are 100 rows: 7 bits
    targets, weights = Extent(-1, -3.0, 2.0, 0.25, False), Extent(-1, 1.0, 5.0, 1.0, True)
    assert scale_of(targets, weights, 100)._asdict() == {
        "y_unit": -54,
        "w_unit": 0,
        "s_words": 2,
        "w_words": 1,
        "narrow": False,
        "small": False,
        "tame": True,
        "greatest": 3.0,
        "cut": 1.5 * 2.0 ** (5 + 10),
        "cut_weight": 1.5 * 2.0 ** (3 + 10),
    }
    labels = Extent(-1, 0.0, 1.0, 1.0, True)
    assert scale_of(labels, weights, 100).narrow
    assert [scale_of(labels, UNIT_WEIGHTS, n).small for n in (100, 2**28, 2**29)] == [True, True, False]
    assert not scale_of(targets._replace(highest=1e80), weights, 100).tame


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n", [8, 16, 17, 23, 24, 100, 1024])
def test_the_parts_of_sums_are_exact(n, weighted):
    rng = np.random.default_rng(n)
    y, w = rng.normal(size=n), rng.random(n) if weighted else np.empty(0)
    y[0] *= 2.0**-25  # all parts are needed
    scale = scale_of(extent_of(y, 1), extent_of(w, 1) if weighted else UNIT_WEIGHTS, n)
    assert scale.cut != 0
    parts, rows = _scan.pending_sums(y, w, scale)
    assert rows == n
    assert sum(map(Fraction, parts[:4])) == sum(
        Fraction(a) * Fraction(b) for a, b in zip(y, w if weighted else np.ones(n), strict=True)
    )


def rounded_mean(y, w):
    """The exact mean and the exact total weight, each rounded once."""
    total = sum(map(Fraction, w))
    return float(sum(Fraction(a) * Fraction(b) for a, b in zip(y, w, strict=True)) / total), float(total)


TARGETS = {
    "normal": lambda rng, n: rng.normal(size=n),
    "wide": lambda rng, n: rng.normal(size=n) * 2.0 ** rng.integers(-200, 200, n),
    "cancelling": lambda rng, n: np.resize([1e30, 1.0, -1e30, 2.0**-60], n) + rng.normal(size=n) * 2.0**-40,
    "decimals": lambda rng, n: rng.integers(-50, 50, n) / 10,
    "neighbours": lambda rng, n: 1 + 2.0**-52 * rng.integers(0, 2, n),  # means on midpoints
    "zeros": lambda rng, n: np.zeros(n),
}
WEIGHTS = {
    "none": None,
    "random": lambda rng, n: 1 - rng.random(n),
    "wide": lambda rng, n: 2.0 ** rng.uniform(-200, 200, n),
    "halves": lambda rng, n: rng.integers(1, 5, n) / 2,
}


@pytest.mark.parametrize("vectors", [False, pytest.param(True, marks=needs_vectors)])
@pytest.mark.parametrize("in_place", [False, True])
def test_copied_scores_are_compared_with_their_neighbours(vectors, in_place):
    rng = np.random.default_rng(5)
    for n in [*range(1, 20), 2000]:
        for values in ([0.0, -0.0, 1.0, 2.0], [-np.inf, 1.0, np.inf], [0.0, np.nan, 1.0], rng.normal(size=n)):
            given = rng.choice(values, n)
            scores = given.copy()
            out, tied = scores if in_place else np.empty(n), np.empty(n, dtype=np.uint8)
            nan, falls, ties = _scan.copy_scores(scores, out, tied, vectors)
            assert nan == np.isnan(given).any()
            assert out.tobytes() == (given + 0.0).tobytes()
            assert falls == np.count_nonzero(given[1:] < given[:-1])
            assert tied.tolist() == [0, *(given[1:] == given[:-1]).tolist()]
            assert ties == tied.any()


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("targets", TARGETS)
@pytest.mark.parametrize("vectors", [False, pytest.param(True, marks=needs_vectors)])
def test_quick_means_are_correctly_rounded_or_in_doubt(vectors, targets, weights):
    rng = np.random.default_rng(5)
    sure = 0
    for n in [2, 3, 4, 7, 15, 16, 17, 23, 64, 65, 100, 1000]:
        for _ in range(10):
            y = TARGETS[targets](rng, n)
            w = np.empty(0) if weights == "none" else WEIGHTS[weights](rng, n)
            scale = scale_of(extent_of(y, 1), extent_of(w, 1) if len(w) else UNIT_WEIGHTS, n)
            assert scale.tame
            found = _scan.mean(y, w, scale, vectors)
            if found[0] == found[0]:
                assert found == rounded_mean(y, w if len(w) else np.ones(n))
                sure += 1
    assert sure >= (10 if targets == "cancelling" else 40)


def test_a_total_weight_next_to_a_midpoint_is_in_doubt():
    y, w = np.array([1.0, 2.0, 3.0]), np.array([1.0, 2.0**-53, 2.0**-200])
    mean, _ = _scan.mean(y, w, scale_of(extent_of(y, 1), extent_of(w, 1), 3), False)
    assert np.isnan(mean)
    assert sf.fit(np.zeros(3), y, sample_weight=w).weights == [1 + 2.0**-52]


def test_the_parts_of_products_are_exact_up_to_their_limits():
    # targets and weights of 84 bits: the largest and the least that are split; 1024 rows fill the parts
    below, least = 1 - 2.0**-53, 2.0**-32 * (1 + 2.0**-52)
    y, w = np.full(1024, below), np.full(1024, below)
    y[::5] = w[::7] = least
    scale = scale_of(extent_of(y, 1), extent_of(w, 1), y.size)
    assert scale.cut != 0
    found, rows = _scan.pending_sums(y, w, scale)
    assert rows == y.size
    assert sum(map(Fraction, found[:4])) == sum(Fraction(a) * Fraction(b) for a, b in zip(y, w, strict=True))
    assert sum(map(Fraction, found[4:])) == sum(map(Fraction, w))
    y[0] = least / 2
    assert scale_of(extent_of(y, 1), extent_of(w, 1), y.size).cut == 0


COLUMNS = {
    "integers": lambda n, rng: rng.integers(-3, 3, n) * 1.0,
    "integers, then fractions": lambda n, rng: np.where(np.arange(n) < n // 2, rng.integers(0, 9, n), rng.random(n)),
    "fractions and zeros": lambda n, rng: rng.normal(size=n) * (rng.random(n) < 0.7),
    "large integers": lambda n, rng: rng.integers(0, 9, n) * 2.0**51,
    "any magnitude": lambda n, rng: rng.choice(STRANGE[:6], n),
    "infinite": lambda n, rng: np.where(rng.random(n) < 1 / n, np.inf, rng.normal(size=n)),
    "NaN": lambda n, rng: np.where(rng.random(n) < 1 / n, np.nan, rng.integers(0, 9, n)),
}


@pytest.mark.parametrize("vectors", [False, pytest.param(True, marks=needs_vectors)])
@pytest.mark.parametrize("kind", COLUMNS)
def test_extremes_and_buckets_of_a_column(kind, vectors):
    rng = np.random.default_rng(5)
    for n in [*range(1, 40), 1000]:
        y = COLUMNS[kind](n, rng)
        w = rng.random(n)
        found = Extent(*_scan.extent(y, vectors))
        assert found.first_bad == next(iter(np.flatnonzero(~np.isfinite(y))), -1)
        for weights in (np.empty(0), w):
            buckets = np.empty((n // 16, 4))
            extent, w_extent = (Extent(*one) for one in _scan.summarise(y, weights, buckets, vectors))
            assert extent.first_bad == found.first_bad
            if found.first_bad >= 0:
                continue
            assert extent == found
            check_extent(found, y)
            if len(weights):
                check_extent(w_extent, w)
            rows, factors = (c[: n // 16 * 16].reshape(-1, 16) for c in (y, weights if len(weights) else np.ones(n)))
            with np.errstate(over="ignore", invalid="ignore"):  # some sums overflow
                size, error = np.abs(rows * factors).sum(axis=1), np.abs(buckets[:, 0] - (rows * factors).sum(axis=1))
            assert np.all((error <= 1e-15 * 16 * size) | (size == np.inf))
            assert np.allclose(buckets[:, 1], factors.sum(axis=1), rtol=1e-15 * 16)
            assert buckets[:, 2:].tolist() == np.stack([rows.min(axis=1), rows.max(axis=1)], axis=1).tolist()


def check_extent(found, column):
    assert (found.lowest, found.highest) == (column.min(), column.max())
    sizes = np.abs(column[column != 0])
    assert found.integral == bool(np.all(column == np.floor(column)))
    if not len(sizes):
        assert found.least == np.inf
    elif found.integral:
        assert found.least == 1.0 or (np.abs(column).max() >= 2.0**51 and 0 < found.least <= sizes.min())
    else:
        assert found.least == sizes.min() or sizes.min() >= found.least == 1.0
