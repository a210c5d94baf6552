"""Sorting changes only the order of rows, for any scores in any order."""

import numpy as np
import pytest

from staircase_fast.arithmetic.exact import UNIT_WEIGHTS, order_of
from staircase_fast.losses.rows import Rows
from staircase_fast.stack import _sorting, sorting
from staircase_fast.stack.sorting import in_score_order, repaired

N = 40_000  # more than one part
RNG = np.random.default_rng(5)
U = RNG.random(N)


@pytest.fixture(params=[True, False], ids=["NumPy sorts keys", "bucket sort"], autouse=True)
def either_sort(request, monkeypatch):
    monkeypatch.setattr(sorting, "numpy_sorts_fast", lambda: request.param)


def nearly_sorted():
    x = np.sort(U)
    some = RNG.integers(0, N, N // 100)
    x[some] = x[RNG.permutation(some)]
    return x


def with_few_falls(x, most):
    """Swap rows in a hundred with others at most so many places ahead."""
    x = x.copy()
    for i in RNG.integers(0, N - most, N // 100):
        j = i + RNG.integers(0, most + 1)
        x[i], x[j] = x[j], x[i]
    return x


def against_the_median_of_three():
    """Musser's order: the first, the middle and the last entry are always among the least of the remaining ones."""
    half = N // 2
    first = np.empty(half)
    first[::2] = np.arange(1, half + 1, 2)
    first[1::2] = half + np.arange(1, half + 1, 2)
    return np.concatenate([first, np.arange(2, N + 1, 2)])


def all_in_one_digit(*, against_the_pivot):
    """Every 16th row, which is the sample, has a wide range; all others are in one digit of it."""
    x = 1.5 + 1e-12 * RNG.random(N)
    crowd = np.flatnonzero(np.arange(N) % 16)
    if against_the_pivot:
        x[crowd[:: len(crowd) // 23]] = 1.5
    x[::16] = 1 + 0.4 * U[::16]
    x[16] = 1.9
    return x


SCORES = {
    "uniform": U,
    "beta": RNG.beta(0.5, 3, N),
    "log-normal": RNG.lognormal(0, 3, N),
    "margins": RNG.normal(size=N) * 20,
    "all magnitudes": np.exp(RNG.uniform(-700, 700, N)) * np.where(U < 0.5, -1, 1),
    "within 1e-9": 0.5 + 1e-9 * U,
    "clusters of 1e-9": np.round(U, 3) + 1e-9 * RNG.random(N),
    "neighbouring floats": 1 + np.round(300 * U) * 2**-52,
    "three digits": np.round(U, 3),
    "two scores": np.where(U < 0.5, 0.25, 0.75),
    "all tied": np.full(N, 0.5),
    "all tied but the last": np.append(np.full(N - 1, 0.5), 0.1),
    "half tied": np.where(U < 0.5, 0.3, RNG.random(N)),
    "sorted": np.sort(U),
    "reversed": np.sort(U)[::-1].copy(),
    "nearly sorted": nearly_sorted(),
    "nearly sorted, within 9 places": with_few_falls(np.sort(U), 9),
    "nearly sorted, ties and infinities": with_few_falls(
        np.sort(np.where(U < 0.1, -np.inf, np.where(U > 0.8, np.inf, np.round(U, 3)))), 9
    ),
    "nearly sorted, the least score last": np.roll(np.sort(U), -1),
    "sorted halves": np.concatenate([np.sort(U[: N // 2]), np.sort(U[N // 2 :])]),
    "up and down": np.concatenate([np.arange(0, N, 2), np.arange(1, N, 2)[::-1]]) / N,
    "against the median of three": against_the_median_of_three(),
    "one outlier": np.append(U[1:], 1e300),
    "infinities": np.where(U < 0.1, -np.inf, np.where(U > 0.8, np.inf, U)),
    "only infinities": np.where(U < 0.5, np.inf, -np.inf),
    "a dense half amid infinities": np.where(U < 0.5, 0.3 + 1e-13 * U, np.where(U < 0.75, np.inf, -np.inf)),
    "huge": (U - 0.5) * 3e308,
    "subnormal": np.round((U - 0.3) * 1e4) * 5e-324,
    "zeros of both signs": np.where(U < 0.3, -0.0, np.where(U < 0.6, 0.0, U - 0.8)),
    "only zeros, one of them negative": np.where(np.arange(N) == N // 2, -0.0, 0.0),
    "all in one digit": all_in_one_digit(against_the_pivot=False),
    "against the pivot": all_in_one_digit(against_the_pivot=True),
}


def in_order(x, y, w=None):
    order = order_of(x, 1)
    order = order._replace(sign=min(order.sign, 0))  # sorted rows must reach the kernel, too
    return in_score_order(Rows(x, y, np.empty(0) if w is None else w, UNIT_WEIGHTS, UNIT_WEIGHTS, order))


def assert_sorted(x, y, w=None):
    before = [column.copy() for column in (x, y)]
    found = in_order(x, y, w)
    assert found.scores.dtype == x.dtype
    assert found.targets.dtype == y.dtype
    assert np.all(found.scores[1:] >= found.scores[:-1])
    columns = [(x, found.scores), (y, found.targets)]
    if w is None:
        assert len(found.weights) == 0
    else:
        columns.append((w, found.weights))
    # compare the rows bit for bit, both sorted by score, target and weight
    given, got = ([bits_of(pair[side]) for pair in columns] for side in (0, 1))
    order_given, order_got = np.lexsort(given), np.lexsort(got)
    for one, other in zip(given, got, strict=True):
        np.testing.assert_array_equal(one[order_given], other[order_got])
    for column, kept in zip((x, y), before, strict=True):
        np.testing.assert_array_equal(column, kept)


def bits_of(column):
    return column.view(f"u{column.itemsize}")


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("scores", SCORES)
def test_sorted_rows_are_the_same_rows(scores, weighted):
    assert_sorted(SCORES[scores], np.arange(N), RNG.random(N) if weighted else None)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("targets", ["u1", "i1", "i4", "i8", "f4", "f8"])
@pytest.mark.parametrize("scores", ["f4", "f8"])
@pytest.mark.parametrize("n", [1, 2, 5000, N])
def test_columns_of_every_type_are_sorted(n, scores, targets, weighted):
    y = RNG.integers(-100, 100, N).astype(targets)
    assert_sorted(U[:n].astype(scores), y[:n], RNG.random(n) if weighted else None)


@pytest.mark.parametrize("scores", ["uniform", "two scores", "zeros of both signs", "infinities"])
def test_the_kernel_sorts_few_rows_as_well(scores, monkeypatch):
    monkeypatch.setattr("staircase_fast.stack.sorting._FEW_ROWS", 0)
    for n in range(1, 101):
        assert_sorted(SCORES[scores][-n:], np.arange(n), RNG.random(n))


@pytest.mark.parametrize(
    ("scores", "is_repaired"),
    [
        ("nearly sorted, within 9 places", True),
        ("nearly sorted, ties and infinities", True),
        ("nearly sorted, the least score last", True),
        ("sorted halves", False),
        ("uniform", False),
        ("reversed", False),
    ],
)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_only_nearly_sorted_rows_are_sorted_by_insertion(scores, is_repaired, dtype):
    x = SCORES[scores].astype(dtype)
    order = order_of(x, 1)._replace(sign=0)
    rows = Rows(x, np.arange(N), RNG.random(N), UNIT_WEIGHTS, UNIT_WEIGHTS, order)
    found = repaired(rows)
    assert (found.order.sign > 0) == is_repaired
    if not is_repaired:
        assert found is rows
        return
    stable = np.argsort(x, kind="stable")
    np.testing.assert_array_equal(found.targets, stable)
    np.testing.assert_array_equal(found.scores, x[stable])
    np.testing.assert_array_equal(found.weights, rows.weights[stable])


def test_sorted_rows_are_not_copied():
    for x in (SCORES["sorted"], SCORES["all tied"]):
        rows = Rows(x, U, np.empty(0), UNIT_WEIGHTS, UNIT_WEIGHTS, order_of(x, 1))
        assert in_score_order(rows) is rows


@pytest.mark.parametrize("scores", SCORES)
def test_the_order_of_ties_is_reproducible(scores):
    first, second = (in_order(SCORES[scores], np.arange(N)) for _ in range(2))
    np.testing.assert_array_equal(first.targets, second.targets)


@pytest.mark.parametrize("scores", ["uniform", "half tied", "infinities", "nearly sorted", "two scores"])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_keys_have_the_order_of_scores_and_of_rows(scores, dtype):
    x = SCORES[scores].astype(dtype)
    keys = np.empty(N, dtype=np.uint64)
    _sorting.make_keys(x, keys)
    rows = np.sort(keys) & np.uint64(2**16 - 1)  # the rest of a key is the score
    np.testing.assert_array_equal(rows, np.argsort(x, kind="stable"))


def test_keys_that_are_too_similar_are_reported():
    x = np.append(1 + RNG.permutation(N - 1) * 2.0**-52, 1e300)  # all upper bits but one are equal
    keys = np.empty(N, dtype=np.uint64)
    _sorting.make_keys(x, keys)
    keys.sort()
    out = np.empty(N), np.empty(N, dtype=np.uint64), np.empty(0)
    assert not _sorting.insert_columns(keys, x, np.arange(N, dtype=np.uint64), np.empty(0), *out)
    assert_sorted(x, np.arange(N))


def test_the_work_space_is_small_compared_to_the_columns():
    assert _sorting.work_size(10**7) < 10**7 * 17 / 50
    assert _sorting.work_size(10**9) < 10**9 * 17 / 50


def test_the_speed_of_numpy_is_measured(monkeypatch):
    monkeypatch.undo()  # of `either_sort`
    sorting.numpy_sorts_fast.cache_clear()
    for seconds, fast in ((1e-6, True), (1e-3, False)):
        clock = iter(np.arange(100) * seconds)
        monkeypatch.setattr(sorting.time, "perf_counter", lambda clock=clock: float(next(clock)))
        assert sorting.numpy_sorts_fast() is fast
        sorting.numpy_sorts_fast.cache_clear()
