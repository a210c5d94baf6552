"""Fits of few rows in one compiled call: the same bits as the general path, which handles everything else."""

import numpy as np
import pytest
from comparing import assert_same_staircase
from loss_table import OTHERS

import staircase_fast as sf
from staircase_fast import fitting, threads
from staircase_fast.bisection import _small

L = sf.losses

SHAPES = ("noise", "tied", "decimals", "labels", "rising", "outliers")


def rows(shape, n, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.random(n)
    if shape == "noise":
        return x, x + rng.normal(size=n)
    if shape == "tied":
        return np.round(x, 1), rng.normal(size=n)
    if shape == "decimals":
        return np.sort(np.round(x, 2)), np.round(3 * x + rng.normal(size=n), 1)
    if shape == "labels":
        return x, (rng.random(n) < x).astype(np.float64)
    return x, np.sort(x) if shape == "rising" else 10 * x + rng.standard_t(1.5, size=n)


def by_general_path(monkeypatch, *args, **options):
    with monkeypatch.context() as patch:
        patch.setattr(fitting.few, "supports", lambda _loss: False)
        return sf.fit(*args, **options)


def small_fit(x, y, w, loss, *, rising=True, bounds=(-np.inf, np.inf)):
    table = _small.fit(x, y, w, loss, not rising, *bounds)
    return None if table is None else sf.Staircase._of_table(table, loss, rising)


@pytest.mark.parametrize("case", [case for case in OTHERS if case.kind is not L.Linex], ids=repr)
@pytest.mark.parametrize("shape", SHAPES)
def test_few_rows_get_the_bits_of_the_general_path(case, shape, monkeypatch):
    for n in (1, 2, 3, 40, 700):
        x, y = rows(shape, n, n)
        rng = np.random.default_rng(n)
        y = np.clip(y, 0, 1) if case.domain[0] == "unit" else y
        for loss in (case.make(), case.make(rng.uniform(0.2, 0.8, n) + case.parameters[0] * (case.name == "power"))):
            for w in (None, rng.random(n) + 0.1, np.append(rng.integers(0, 3, n - 1), 1).astype(np.float64)):
                for rising in (True, False):
                    options = {"sample_weight": w, "loss": loss, "increasing": rising, "bounds": (-9, 9)}
                    expected = by_general_path(monkeypatch, x, y, **options)
                    found = small_fit(x, y, w, loss, rising=rising, bounds=(-9.0, 9.0))
                    if found is None:  # blocks whose slopes may have underflowed
                        assert case.name == "power"
                        continue
                    assert_same_staircase(found, expected)
                    assert_same_staircase(sf.fit(x, y, **options), expected)


@pytest.mark.parametrize("shape", SHAPES)
def test_few_rows_under_linex_are_within_the_bounds_of_the_closed_form(shape, monkeypatch):
    x, y = rows(shape, 300)
    expected = by_general_path(monkeypatch, x, y, loss=L.Linex(0.5))
    found = small_fit(x, y, None, L.Linex(0.5))
    np.testing.assert_array_equal(found.left, expected.left)
    np.testing.assert_allclose(found.values, expected.values, rtol=1e-13, atol=1e-14)
    assert sf.certify(found, x, y).optimal


def test_arrays_of_any_dtype_and_stride_are_read():
    x, y = rows("noise", 60)
    x, y = x.astype(np.float32), np.round(10 * y)
    expected = sf.fit(x.astype(np.float64), y, loss="huber")
    wide = np.repeat(y, 3)
    wide[1::3] = np.nan
    for targets in (y.astype(np.int8), y.astype(np.int64), wide[::3], y.astype(np.float32)):
        assert_same_staircase(small_fit(x, targets, None, L.Huber(1.0)), expected)
    read_only = y.copy()
    read_only.setflags(write=False)
    assert_same_staircase(small_fit(x, read_only, None, L.Huber(1.0)), expected)


@pytest.mark.parametrize(
    ("x", "y", "w", "loss"),
    [
        ([0.0, np.nan], [1.0, 2.0], None, L.Huber(1.0)),
        ([0.0, 1.0], [1.0, np.inf], None, L.Huber(1.0)),
        ([0.0, 1.0], [1.0, 2.0], [1.0, -1.0], L.Huber(1.0)),
        ([0.0, 1.0], [1.0, 2.0], [0.0, 0.0], L.Huber(1.0)),
        ([0.0, 1.0], [1.0, 2.0], [1.0, np.nan], L.Huber(1.0)),
        ([0.0, 1.0], [1.0, 2.0], [1e308, 1e308], L.Huber(1.0)),
        ([0.0, 1.0], [1.0, 2.0], [1e300, 1e-300], L.Huber(1.0)),
        ([0.0, 1.0], [1.0, 2.0], None, L.Logistic()),  # targets outside the range
        ([0.0, 1.0], [0.0, 1.0], None, L.Logistic()),  # infinite values
        ([0.0, 1.0], [1e30, 2.0], None, L.Huber(1.0)),  # needs a unit
        ([0.0, 1.0], [1e-300, 2.0], None, L.Huber(1.0)),
        ([0.0, 1.0], [1.0, 2.0], None, L.Huber(1e60)),
        ([0.0, 1.0], [1.0, 2.0], None, L.Huber([1.0, 1e-60])),
        ([0.0, 1.0], [1.0, 2.0], None, L.Huber([1.0, 1.0, 1.0])),
        ([0.0, 1.0], [1.0, 900.0], None, L.Linex(1.0)),
        ([0.0, 1.0], [1.0, 10.0], None, L.Power(40.0)),
        ([0.0, 1.0], [1, 2**60 + 1], None, L.Huber(1.0)),
        ([0.0, 1.0, 2.0], [1.0, 2.0], None, L.Huber(1.0)),
        ([0.0, 1.0], [1.0, 2.0], [1.0], L.Huber(1.0)),
        ([], [], None, L.Huber(1.0)),
    ],
)
def test_other_rows_are_left_to_the_general_path(x, y, w, loss):
    assert small_fit(np.array(x), np.array(y), None if w is None else np.array(w), loss) is None


def test_a_target_of_weight_0_must_be_valid_too():
    x, y, w = np.arange(3.0), np.array([0.0, np.inf, 1.0]), np.array([1.0, 0.0, 1.0])
    assert small_fit(x, y, w, L.Huber(1.0)) is None
    with pytest.raises(ValueError, match="`targets` must be finite; got inf at index 1"):
        sf.fit(x, y, sample_weight=w, loss="huber")


def test_many_rows_are_left_to_the_general_path(monkeypatch):
    x, y = rows("noise", _small.MOST_ROWS + 1)
    assert small_fit(x, y, None, L.Expectile(0.7)) is None
    assert_same_staircase(
        small_fit(x[1:], y[1:], None, L.Expectile(0.7)),
        by_general_path(monkeypatch, x[1:], y[1:], loss=L.Expectile(0.7)),
    )


def test_lists_and_limited_fits_take_the_other_paths():
    x, y = rows("noise", 50)
    expected = sf.fit(x, y, loss="log_cosh")
    assert_same_staircase(sf.fit(x.tolist(), y.tolist(), loss="log_cosh"), expected)
    rough = sf.fit(x, y, loss="log_cosh", tol=0.1)
    assert np.max(rough.upper - rough.lower) > np.max(expected.upper - expected.lower)


@pytest.mark.parametrize("n_threads", [1, 3])
def test_threads_get_the_same_blocks(n_threads):
    x, y = rows("noise", 3 * threads.ROWS_EACH)
    assert_same_staircase(
        sf.fit(x, y, loss=L.Expectile(0.7), n_threads=n_threads), sf.fit(x, y, loss=L.Expectile(0.7), n_threads=2)
    )
