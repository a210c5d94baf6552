"""Bands: resamples have the right distribution, their fits are right, and only the seed matters."""

import functools
import itertools
import math
import os
import signal
import sys
import threading

import numpy as np
import pytest
from reference import resampled_means, simulated_means

import staircase_fast as sf
from staircase_fast.calibration import _resample, bands
from staircase_fast.calibration.reliability import read_score
from staircase_fast.inputs.rows import read_columns

LABELS, FORECASTS = [0, 0, 0, 1, 1, 1], [0.4, 0.3, 0.2, 0.1, 0.5, 0.9]
EACH_ROW = np.empty(0, dtype=np.int64)


def state(number, seed=0):
    return bands._random_state(np.random.SeedSequence(seed), number)


tables_of = functools.cache(bands._poisson_tables)


def drawn(n, ends, number):
    counts = np.empty(len(ends) or n, dtype=np.uint32)
    _resample.draw(state(number), n, ends, *tables_of(n), counts)
    return counts


def curves(x, y, w=None, score="brier", kind="confidence", n_resamples=1, seed=0, n_threads=1):
    """Scores and resampled curves."""
    loss = read_score(score)
    stairs = sf.fit(x, y, sample_weight=w, loss="squared" if score == "brier" else loss, bounds=(-np.inf, np.inf))
    options = bands.check_band_options(kind, n_resamples, 0.9, seed, None, loss)
    return bands.resampled(read_columns(x, y, w), loss, stairs, options, n_threads)


@pytest.mark.parametrize("n", [1, 7, 255, 256, 4096, 50_000])
def test_as_many_rows_are_drawn_as_there_are(n):
    ends = np.unique(np.append(np.random.default_rng(n).integers(0, n, n // 3), n))
    for number in range(20):
        assert drawn(n, EACH_ROW, number).sum() == n
        assert drawn(n, ends, number).sum() == n


@pytest.mark.parametrize(
    "sizes",
    [np.array([1, 2, 3, 0, 5, 7]), np.array([1, 2, 5, 15, 16, 17, 31, 100, 0, 700, 1023, 1024, 1025, 2048, 5000])],
    ids=["one by one", "by tables"],
)
def test_counts_are_multinomial(sizes):
    n, draws = int(sizes.sum()), 4000
    counts = np.array([drawn(n, np.cumsum(sizes), number) for number in range(draws)]).astype(float)
    p = sizes / n
    expected = n * (np.diag(p) - np.outer(p, p))
    scale = np.sqrt(np.outer(np.diag(expected), np.diag(expected)))
    assert np.all(np.abs(counts.mean(axis=0) - sizes) <= 4.5 * np.sqrt(np.diag(expected) / draws))
    assert np.all(np.abs(np.cov(counts.T) - expected) <= 6 * np.sqrt(2 / draws) * scale)
    assert np.all(counts[:, sizes == 0] == 0)


def test_too_many_draws_are_drawn_again(monkeypatch):
    monkeypatch.setattr(bands, "_SHORT", 0.0)  # every second time
    sizes = np.array([1, 3000, 2000])
    tables, counts = bands._poisson_tables(5001), np.empty(3, dtype=np.uint32)
    found = []
    for number in range(1000):
        _resample.draw(state(number), 5001, np.cumsum(sizes), *tables, counts)
        found.append(counts.tolist())
    assert {sum(one) for one in found} == {5001}
    error = np.sqrt(sizes * (1 - sizes / 5001) / 1000)
    assert np.all(np.abs(np.mean(found, axis=0) - sizes) <= 4.5 * error)


def test_counts_of_single_rows_are_nearly_poisson():
    n = 200_000
    counts = np.bincount(drawn(n, EACH_ROW, 5), minlength=12)
    expected = n * np.exp(-1.0) / np.cumprod(np.append(1.0, np.arange(1, 9)))
    assert np.all(np.abs(counts[:9] - expected) <= 5 * np.sqrt(expected))


SMALL = {
    "labels": ([0.1, 0.2, 0.3, 0.4], [0, 1, 0, 1], None),
    "labels that fall": ([0.1, 0.2, 0.3, 0.4], [1, 1, 0, 0], None),
    "tied labels": ([0.1, 0.2, 0.2, 0.4], [0, 1, 0, 1], None),
    "weighted": ([0.1, 0.2, 0.3, 0.3], [0, 1, 0, 1], [1.0, 2.0, 0.5, 4.0]),
    "probabilities": ([0.1, 0.2, 0.3, 0.3], [0.25, 0.5, 0.125, 1], None),
}


@pytest.mark.parametrize("rows", SMALL.values(), ids=SMALL)
def test_the_mean_of_resampled_curves_is_the_mean_over_all_possible_resamples(rows):
    x, curve = curves(*rows, n_resamples=6000)
    expected = dict(zip(rows[0], resampled_means(*rows), strict=True))
    assert x.tolist() == sorted(expected)
    error = curve.std(axis=0) / math.sqrt(len(curve))
    assert np.all(np.abs(curve.mean(axis=0) - [float(expected[one]) for one in x]) <= 4 * error)


@pytest.mark.parametrize("w", [None, [1.0, 2.0, 0.5, 4.0, 1.0, 1.0]], ids=["plain", "weighted"])
@pytest.mark.parametrize("x", [[0.1, 0.2, 0.4, 0.5, 0.8, 0.9], [0.0, 0.5, 0.5, 0.5, 0.75, 1.0]], ids=["apart", "tied"])
def test_the_mean_of_simulated_curves_is_the_mean_over_all_possible_labels(x, w):
    places, curve = curves(x, LABELS, w, kind="consistency", n_resamples=6000)
    expected = dict(zip(x, simulated_means(x, w), strict=True))
    error = curve.std(axis=0) / math.sqrt(len(curve))
    assert np.all(np.abs(curve.mean(axis=0) - [float(expected[one]) for one in places]) <= 4 * error + 1e-15)


def reordered(rng, n, tied):
    """Rows sorted by score, target and weight, as `samples_of` sorts them."""
    x = np.sort(rng.random(n).round(2 if tied else 15))
    y, w = rng.normal(size=n), rng.integers(1, 4, n) / 2.0
    order = np.lexsort([w, y, x])
    return x, y[order], w[order]


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("score", ["squared", "quantile", "log_cosh"])
def test_a_resampled_curve_is_the_fit_of_the_rows_that_were_drawn(tied, weighted, score):
    x, y, w = reordered(np.random.default_rng(8), 5000 if score == "squared" else 300, tied)
    w = w if weighted else None
    loss = sf.losses.Quantile(0.5, side="lower") if score == "quantile" else sf.losses.loss_of(score)
    places, curve = curves(x, y, w, score=loss, n_resamples=3)
    for number in range(3):
        counts = drawn(len(x), EACH_ROW, number) * (w if weighted else 1.0)
        expected = sf.fit(x, y, sample_weight=counts, loss=loss)(places)
        assert curve[number] == pytest.approx(expected, rel=1e-12, abs=1e-13)


@pytest.mark.parametrize("tied", [False, True])
def test_labels_that_are_counted_together_give_the_fit_of_the_rows_that_were_drawn(tied, monkeypatch):
    rng = np.random.default_rng(9)
    n = 3000
    x = np.sort(rng.random(n).round(2 if tied else 15))
    y = (rng.random(n) < x).astype(float)
    row_counts = rng.multinomial(n, np.full(n, 1 / n))

    def draw(_state, _n, ends, _guide, _chances, counts):
        # the cells of a segment are its labels of 1, and those of 0; segments are as long as both
        stops = ends[1::2]
        for k, (start, stop) in enumerate(zip(np.append(0, stops[:-1]), stops, strict=True)):
            ones = y[start:stop] == 1
            assert ones.sum() == ends[2 * k] - start
            counts[2 * k] = row_counts[start:stop][ones].sum()
            counts[2 * k + 1] = row_counts[start:stop][~ones].sum()

    monkeypatch.setattr(_resample, "draw", draw)
    places, curve = curves(x, y)
    assert curve[0] == pytest.approx(sf.fit(x, y, sample_weight=row_counts)(places), rel=1e-13)


def test_rates_are_drawn_with_their_exposures():
    x, y, e = reordered(np.random.default_rng(10), 400, tied=False)
    y = np.floor(np.abs(y) * 3)
    places, curve = curves(x, y, score=sf.losses.PoissonDeviance(e))
    own = np.flatnonzero(drawn(400, EACH_ROW, 0))
    loss, counts = sf.losses.PoissonDeviance(e[own]), drawn(400, EACH_ROW, 0)[own]
    assert curve[0] == pytest.approx(sf.fit(x[own], y[own], sample_weight=counts, loss=loss)(places), rel=1e-12)


def test_parameters_are_drawn_with_their_rows():
    x, y, level = reordered(np.random.default_rng(11), 200, tied=False)
    level = level / 2
    places, curve = curves(x, y, score=sf.losses.Expectile(level))
    own = np.flatnonzero(drawn(200, EACH_ROW, 0))
    loss, counts = sf.losses.Expectile(level[own]), drawn(200, EACH_ROW, 0)[own]
    assert curve[0] == pytest.approx(sf.fit(x[own], y[own], sample_weight=counts, loss=loss)(places), rel=1e-12)


@pytest.mark.parametrize("kind", ["confidence", "consistency"])
def test_bands_depend_on_the_seed_but_not_on_threads_or_row_order(kind):
    rng = np.random.default_rng(12)
    x, w = rng.random(3000).round(3), rng.integers(1, 3, 3000)
    y = rng.random(3000) < x
    options = {"bands": kind, "n_resamples": 50}
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


def test_bands_leave_out_the_share_of_curves_given_by_the_level():
    x, curve = curves(FORECASTS, LABELS, n_resamples=200, seed=4)
    curve.sort(axis=0)
    for level, outside in ((0.9, 10), (0.5, 50), (0.999, 0), (1e-9, 99)):
        found = sf.reliability(FORECASTS, LABELS, bands="confidence", n_resamples=200, level=level, seed=4).bands
        assert found.x.tolist() == x.tolist()
        assert found.lower.tolist() == curve[outside].tolist()
        assert found.upper.tolist() == curve[-1 - outside].tolist()
        assert (found.kind, found.level, found.n_resamples) == ("confidence", level, 200)
    one = sf.reliability(FORECASTS, LABELS, bands="confidence", n_resamples=1, seed=4).bands
    assert np.array_equal(one.lower, one.upper)


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
    assert share["calibrated"] > 0.75
    assert share["not"] < 0.3


def test_places_are_spread_over_rows_and_include_the_ends_of_steps():
    rng = np.random.default_rng(14)
    x = rng.random(30_000)
    y = rng.random(30_000) < x
    found = sf.reliability(x, y, bands="confidence", n_resamples=2, seed=0)
    assert set(found.stairs.left) | set(found.stairs.right) | {x.min(), x.max()} <= set(found.bands.x)
    assert 512 <= len(found.bands.x) <= 512 + 2 * found.stairs.n_steps
    assert np.diff(found.bands.x).max() < 0.01
    rising = sf.reliability(x, x, bands="confidence", n_resamples=2, seed=0)  # as many steps as rows
    assert len(rising.bands.x) == 512


@pytest.mark.parametrize("exponent", [-300, 300])
def test_the_size_of_targets_and_weights_does_not_matter(exponent):
    x, y, w = reordered(np.random.default_rng(15), 500, tied=True)
    plain = curves(x, y, w, score="squared", n_resamples=3)[1]
    scaled = curves(x, np.ldexp(y, exponent), np.ldexp(w, exponent), score="squared", n_resamples=3)[1]
    assert np.array_equal(np.ldexp(scaled, -exponent), plain)
    labels = (y > 0).astype(float)
    simulated = curves(x, labels, np.ldexp(w, exponent), kind="consistency", n_resamples=3)[1]
    assert np.array_equal(simulated, curves(x, labels, w, kind="consistency", n_resamples=3)[1])


EXTREME = {
    "weights": ([0, 1, 0, 1, 1, 0], [1e300, 1e-300, 3e-300, 1e300, 1e-300, 2e-300]),
    "targets": ([1e300, 2e-300, 3e-300, 1e-300, 2e300, 1], None),
    "products": ([1e-200, 1, 3e-200, 2e-200, 1, 0], [1e-200, 1, 1e-200, 1e-200, 1, 1e-200]),
}


@pytest.mark.parametrize("score", ["squared", "poisson_deviance"])
@pytest.mark.parametrize("rows", EXTREME.values(), ids=EXTREME)
def test_a_resampled_curve_is_the_fit_for_targets_and_weights_of_any_range(rows, score):
    x, (y, w) = np.linspace(0.1, 0.6, 6), rows
    places, curve = curves(x, y, w, score=score, n_resamples=200)
    for number in range(200):
        counts = drawn(6, EACH_ROW, number)
        own = np.repeat(np.arange(6), counts)
        weights = None if w is None else np.array(w)[own]
        expected = sf.fit(x[own], np.array(y)[own], sample_weight=weights, loss=score)(places)
        assert curve[number] == pytest.approx(expected, rel=1e-12, abs=0)


def test_a_negligible_weight_still_makes_a_step():
    # a quarter of all resamples contains only the light row
    for exponent in (100, 300):
        w = [10.0**exponent, 10.0**-exponent]
        found = sf.reliability([0.2, 0.8], [0, 1], sample_weight=w, bands="confidence", n_resamples=400, seed=0).bands
        assert (found.lower.tolist(), found.upper.tolist()) == ([0, 0], [1, 1])


@pytest.mark.parametrize(("score", "light"), [("squared", 5e-324), ("quantile", 1e300)])
def test_a_weight_near_the_greatest_float_can_be_drawn_twice(score, light):
    found = curves([0.1, 0.2], [0, 1], [1.5e308, light], score=score, n_resamples=200)[1]
    assert set(map(tuple, found.tolist())) == {(0, 0), (0, 1), (1, 1)}


@pytest.mark.parametrize("w", [[1e300, 1e-300, 1e300, 2e-300], [1e-300, 1e300, 1e-300, 1e300]])
@pytest.mark.parametrize("x", [[0.2, 0.4, 0.6, 0.8], [0.0, 0.5, 0.5, 1.0]], ids=["apart", "tied"])
def test_simulated_labels_count_for_weights_of_any_range(x, w):
    places, curve = curves(x, [0, 1, 0, 1], w, kind="consistency", n_resamples=4000)
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
    found = sf.reliability([0.5], [1], bands="confidence", n_resamples=10).bands
    assert (found.x.tolist(), found.lower.tolist(), found.upper.tolist()) == ([0.5], [1.0], [1.0])
    absent = sf.reliability([0.2, 0.5], [0, 1], sample_weight=[0, 3], bands="confidence", n_resamples=10).bands
    assert (absent.x.tolist(), absent.lower.tolist()) == ([0.5], [1.0])


def test_more_rows_than_can_be_counted_are_refused():
    with pytest.raises(ValueError, match=r"`bands` must be None for 2\*\*32 rows or more; got 4294967296 rows"):
        bands.check_countable(2**32)


@pytest.mark.parametrize("n_threads", [1, 3])
def test_progress_is_reported_in_order_by_the_calling_thread(n_threads):
    reported = []

    def progress(done, total):
        assert threading.current_thread() is threading.main_thread()
        reported.append((done, total))

    sf.reliability(
        FORECASTS, LABELS, bands="confidence", n_resamples=40, progress=progress, n_threads=n_threads, seed=0
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
        sf.reliability(FORECASTS, LABELS, bands="confidence", n_resamples=10**6, progress=progress, n_threads=3)
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
    sf.reliability(FORECASTS, LABELS, bands="confidence", n_resamples=30, progress=True)
    shown = capsys.readouterr()
    assert "30/30" in shown.err
    assert shown.out == ""


def test_without_tqdm_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm", None)
    with pytest.raises(ImportError, match=r"`progress=True` needs tqdm, .* pip install 'staircase_fast\[plot\]'"):
        sf.reliability(FORECASTS, LABELS, bands="confidence", n_resamples=30, progress=True)


def xoshiro(state, n):
    """xoshiro256++ as its authors publish it (Blackman and Vigna, 2019)."""
    mask = 2**64 - 1

    def rotated(x, k):
        return ((x << k) | (x >> (64 - k))) & mask

    s = [int(word) for word in state]
    for _ in range(n):
        yield (rotated((s[0] + s[3]) & mask, 23) + s[0]) & mask
        t = (s[1] << 17) & mask
        s[2] ^= s[0]
        s[3] ^= s[1]
        s[1] ^= s[2]
        s[0] ^= s[3]
        s[2] ^= t
        s[3] = rotated(s[3], 45)


def test_rows_are_drawn_by_the_documented_generator():
    state, n = np.array([1, 2, 3, 4], dtype=np.uint64), 200
    counts = np.empty(n, dtype=np.uint32)
    _resample.draw(state, n, bands._EACH_ROW, np.empty((0, 0), dtype=np.uint16), np.empty((0, 0)), counts)
    drawn = [word * n >> 64 for word in xoshiro(state, n)]
    np.testing.assert_array_equal(counts, np.bincount(drawn, minlength=n))


def test_spawned_seeds_give_different_bands():
    rng = np.random.default_rng(17)
    x = rng.random(60)
    y = rng.random(60) < x
    one, other = (
        sf.reliability(x, y, bands="confidence", n_resamples=30, seed=seed).bands
        for seed in np.random.SeedSequence(1).spawn(2)
    )
    assert not np.array_equal(one.lower, other.lower)
