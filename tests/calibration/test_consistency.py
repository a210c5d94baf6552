"""Consistency bands: labels have the right distribution, their fits are right, and only the seed matters."""

import itertools
import math
import os
import signal
import sys
import threading

import numpy as np
import pytest
from reference import simulated_means

import staircase_fast as sf
from staircase_fast.calibration import consistency
from staircase_fast.calibration.reliability import read_score
from staircase_fast.inputs.rows import read_columns

LABELS, FORECASTS = [0, 0, 0, 1, 1, 1], [0.4, 0.3, 0.2, 0.1, 0.5, 0.9]


def drawn(x, y, w=None, n_resamples=1, seed=0):
    """Scores, resampled curves and their miscalibrations."""
    samples, borders = consistency.labels_of(read_columns(x, y, w), read_score("brier"))
    resampling = consistency.Resampling(n_resamples, np.random.SeedSequence(seed), None)
    return consistency.resampled(samples, borders, resampling, 1)


@pytest.mark.parametrize("w", [None, [1.0, 2.0, 0.5, 4.0, 1.0, 1.0]], ids=["plain", "weighted"])
@pytest.mark.parametrize("x", [[0.1, 0.2, 0.4, 0.5, 0.8, 0.9], [0.0, 0.5, 0.5, 0.5, 0.75, 1.0]], ids=["apart", "tied"])
def test_the_mean_of_simulated_curves_is_the_mean_over_all_possible_labels(x, w):
    places, curve, _ = drawn(x, LABELS, w, n_resamples=6000)
    expected = dict(zip(x, simulated_means(x, w), strict=True))
    error = curve.std(axis=0) / math.sqrt(len(curve))
    assert np.all(np.abs(curve.mean(axis=0) - [float(expected[one]) for one in places]) <= 4 * error + 1e-15)


def test_bands_depend_on_the_seed_but_not_on_threads_or_row_order():
    rng = np.random.default_rng(12)
    x, w = rng.random(3000).round(3), rng.integers(1, 3, 3000)
    y = rng.random(3000) < x
    options = {"bands": "consistency", "n_resamples": 50}
    for weight in (None, w):
        one = sf.reliability(x, y, sample_weight=weight, seed=1, n_threads=1, **options).bands
        order = rng.permutation(3000)
        shuffled = None if weight is None else weight[order]
        other = sf.reliability(x[order], y[order], sample_weight=shuffled, seed=1, n_threads=3, **options).bands
        for a, b in zip(one, other, strict=True):
            assert np.array_equal(a, b)
        again = sf.reliability(x, y, sample_weight=weight, seed=np.random.SeedSequence(1), **options).bands
        assert np.array_equal(one.lower, again.lower)
        assert not np.array_equal(one.lower, sf.reliability(x, y, sample_weight=weight, seed=2, **options).bands.lower)
    unseeded = [sf.reliability(x, y, **options).bands.upper for _ in range(2)]
    assert not np.array_equal(*unseeded)


def test_pointwise_bands_leave_out_the_share_of_curves_given_by_the_level():
    x, curve, _ = drawn(FORECASTS, LABELS, n_resamples=200, seed=4)
    curve.sort(axis=0)
    options = {"bands": "consistency", "simultaneous": False, "seed": 4}
    for level, outside in ((0.9, 10), (0.5, 50), (0.999, 0), (1e-9, 99)):
        found = sf.reliability(FORECASTS, LABELS, n_resamples=200, level=level, **options).bands
        assert found.x.tolist() == x.tolist()
        assert found.lower.tolist() == curve[outside].tolist()
        assert found.upper.tolist() == curve[-1 - outside].tolist()
        assert found[3:9] == ("consistency", level, False, 0.0, 1.0, 200)
    one = sf.reliability(FORECASTS, LABELS, n_resamples=1, **options).bands
    assert np.array_equal(one.lower, one.upper)


@pytest.mark.parametrize("level", [0.5, 0.9])
def test_simultaneous_bands_contain_the_share_of_whole_curves_given_by_the_level(level):
    rng = np.random.default_rng(18)
    x = rng.random(2000)
    y = rng.random(2000) < x
    found = sf.reliability(x, y, bands="consistency", level=level, n_resamples=999, seed=5).bands
    places, curve, _ = drawn(x, y, n_resamples=999, seed=5)
    assert found.x.tolist() == places.tolist()
    inside = np.all((found.lower <= curve) & (curve <= found.upper), axis=1)
    assert 0 <= inside.sum() - math.ceil(level * 1000) <= 5  # more than 0 if the farthest deviations are equal
    fresh = drawn(x, y, n_resamples=2000, seed=6)[1]
    covered = np.all((found.lower <= fresh) & (fresh <= found.upper), axis=1).mean()
    assert covered == pytest.approx(level, abs=0.04)
    pointwise = sf.reliability(x, y, bands="consistency", level=level, simultaneous=False, seed=5).bands
    assert np.mean(found.upper - found.lower) > np.mean(pointwise.upper - pointwise.lower)


@pytest.mark.parametrize("w", [None, [1.0, 2.0, 0.5, 4.0, 1.0, 1.0], [1e300, 1, 1, 1e-300, 1, 1]])
@pytest.mark.parametrize("x", [[0.1, 0.2, 0.4, 0.5, 0.8, 0.9], [0.0, 0.5, 0.5, 0.5, 0.75, 1.0]], ids=["apart", "tied"])
def test_the_p_value_is_the_rank_of_the_miscalibration(x, w):
    # each of few possible label vectors is drawn many times, so ties are counted too
    _, curve, found = drawn(x, LABELS, w, n_resamples=400)
    assert len(np.unique(curve, axis=0)) < 100
    observed = sf.reliability(x, LABELS, sample_weight=w, bands="consistency", n_resamples=400, seed=0)
    higher = np.count_nonzero(found >= observed.miscalibration * (1 - 1e-9))
    assert observed.bands.p_value == (1 + higher) / 401
    possible = set()
    for labels in itertools.product((0, 1), repeat=6):
        possible.add(sf.reliability(x, labels, sample_weight=w).miscalibration)
    assert all(min(abs(one - other) for other in possible) < 1e-12 for one in found)


def test_the_p_value_is_small_if_forecasts_are_not_calibrated():
    rng = np.random.default_rng(19)
    x = rng.random(2000)
    y = rng.random(2000) < x**2
    assert sf.reliability(x, y, bands="consistency", seed=0).bands.p_value == 1 / 1001


def test_consistency_bands_contain_the_curve_of_calibrated_forecasts_only():
    rng = np.random.default_rng(13)
    x = rng.random(20_000)
    y = rng.random(20_000) < x
    share = {}
    for name, forecasts in (("calibrated", x), ("not", x**2)):
        found = sf.reliability(forecasts, y, bands="consistency", n_resamples=200, seed=0)
        curve = found.stairs(found.bands.x)
        share[name] = np.mean((found.bands.lower <= curve) & (curve <= found.bands.upper))
        assert np.all(np.diff(found.bands.lower) >= 0)
        assert np.all(np.diff(found.bands.upper) >= 0)
    assert share["calibrated"] > 0.95
    assert share["not"] < 0.3


def test_places_are_spread_over_rows_and_do_not_depend_on_the_labels():
    rng = np.random.default_rng(14)
    x = rng.random(30_000)
    y = rng.random(30_000) < x
    found = sf.reliability(x, y, bands="consistency", n_resamples=2, seed=0)
    assert {x.min(), x.max()} <= set(found.bands.x)
    assert len(found.bands.x) == 512
    assert found.bands.x.tolist() == sf.reliability(x, ~y, bands="consistency", n_resamples=2).bands.x.tolist()
    assert np.diff(found.bands.x).max() < 0.01


@pytest.mark.parametrize("w", [[1e300, 1e-300, 1e300, 2e-300], [1e-300, 1e300, 1e-300, 1e300]])
@pytest.mark.parametrize("x", [[0.2, 0.4, 0.6, 0.8], [0.0, 0.5, 0.5, 1.0]], ids=["apart", "tied"])
def test_simulated_labels_count_for_weights_of_any_range(x, w):
    places, curve, _ = drawn(x, [0, 1, 0, 1], w, n_resamples=4000)
    expected = dict(zip(x, simulated_means(x, w), strict=True))
    error = curve.std(axis=0) / math.sqrt(len(curve))
    assert np.all(np.abs(curve.mean(axis=0) - [float(expected[one]) for one in places]) <= 4 * error + 1e-15)


def test_negative_zero_and_float32_scores_are_kept_exactly():
    x = np.array([-0.0, 0.0, 0.1, 0.7], dtype=np.float32)
    found = sf.reliability(x, [0, 1, 0, 1], bands="consistency", n_resamples=30, seed=0).bands
    assert found.x.tolist() == [0.0, float(np.float32(0.1)), float(np.float32(0.7))]
    assert not np.signbit(found.x).any()
    assert found.upper[0] == 0.0  # an event with probability 0 is never drawn


def test_one_row_and_rows_of_weight_0_have_bands():
    found = sf.reliability([0.5], [1], bands="consistency", n_resamples=100, seed=0).bands
    assert (found.x.tolist(), found.lower.tolist(), found.upper.tolist()) == ([0.5], [0.0], [1.0])
    absent = sf.reliability([0.2, 0.5], [0, 1], sample_weight=[0, 3], bands="consistency", n_resamples=10).bands
    assert absent.x.tolist() == [0.5]


@pytest.mark.parametrize("n_threads", [1, 3])
def test_progress_is_reported_in_order_by_the_calling_thread(n_threads):
    reported = []

    def progress(done, total):
        assert threading.current_thread() is threading.main_thread()
        reported.append((done, total))

    sf.reliability(
        FORECASTS, LABELS, bands="consistency", n_resamples=40, progress=progress, n_threads=n_threads, seed=0
    )
    assert reported[-1] == (40, 40)
    assert [total for _, total in reported] == [40] * len(reported)
    assert all(a < b for (a, _), (b, _) in itertools.pairwise(reported))
    if n_threads == 1:
        assert len(reported) == 40


@pytest.mark.parametrize("error", [KeyboardInterrupt, ZeroDivisionError])
def test_an_error_stops_all_threads(error):
    calls = []

    def progress(done, total):
        calls.append(done)
        raise error

    before = threading.active_count()
    with pytest.raises(error):
        sf.reliability(FORECASTS, LABELS, bands="consistency", n_resamples=10**6, progress=progress, n_threads=3)
    assert len(calls) == 1
    assert threading.active_count() == before


@pytest.mark.skipif(sys.platform == "win32", reason="signals are those of POSIX")
def test_an_interrupt_stops_after_the_current_resample():
    rng = np.random.default_rng(16)
    x = rng.random(20_000)
    timer = threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        sf.reliability(x, x > 0.5, bands="consistency", n_resamples=10**6, n_threads=2)
    timer.join()


def test_a_bar_shows_progress_on_stderr(capsys):
    pytest.importorskip("tqdm")
    sf.reliability(FORECASTS, LABELS, bands="consistency", n_resamples=30, progress=True)
    shown = capsys.readouterr()
    assert "30/30" in shown.err
    assert shown.out == ""


def test_without_tqdm_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm", None)
    with pytest.raises(ImportError, match=r"`progress=True` needs tqdm, .* pip install '\.\[plot\]' in a checkout"):
        sf.reliability(FORECASTS, LABELS, bands="consistency", n_resamples=30, progress=True)


def test_spawned_seeds_give_different_bands():
    rng = np.random.default_rng(17)
    x = rng.random(60)
    y = rng.random(60) < x
    one, other = (
        sf.reliability(x, y, bands="consistency", n_resamples=30, seed=seed).bands
        for seed in np.random.SeedSequence(1).spawn(2)
    )
    assert not np.array_equal(one.lower, other.lower)
