"""Pointwise intervals: their ends are those of the likelihood-ratio test, and quantiles are those of the limit law."""

import math

import numpy as np
import pytest
from scipy.special import xlogy
from simulate_limit_law import simulate

import staircase_fast as sf
from staircase_fast.calibration import pointwise


def deviance(values, s, w):
    with np.errstate(divide="ignore"):
        return -2 * float(np.sum(xlogy(s, values) + xlogy(w - s, 1 - values)))


def fitted(s, w):
    """The fit of observations in score order, possibly none."""
    return sf.isotonic_regression(s / w, weights=w).x if len(s) else np.empty(0)


def ratio(s, w, j, theta):
    """Twice the log of the likelihood ratio of a curve that is theta at observation j, from fits of all rows."""
    curve = np.concatenate(
        [np.minimum(fitted(s[:j], w[:j]), theta), [theta], np.maximum(fitted(s[j + 1 :], w[j + 1 :]), theta)]
    )
    return deviance(curve, s, w) - deviance(fitted(s, w), s, w)


@pytest.mark.parametrize("n", [1, 2, 3, 30, 200])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_ends_of_an_interval_are_the_last_values_that_the_test_accepts(n, weighted):
    rng = np.random.default_rng(n)
    x = np.sort(rng.random(n))
    w = rng.integers(1, 5, n).astype(float) if weighted else np.ones(n)
    s = rng.binomial(w.astype(int), x).astype(float)
    for level in (0.5, 0.9, 0.99):
        found = sf.reliability(x, s / w, sample_weight=w, bands="pointwise", level=level).bands
        assert found.x.tolist() == x.tolist()
        limit = pointwise.QUANTILES[level]
        for j in range(0, n, max(n // 20, 1)):
            for end, farther in ((found.lower[j], -1e-7), (found.upper[j], 1e-7)):
                assert ratio(s, w, j, end) <= limit + 1e-6
                if 0 < end + farther < 1:
                    assert ratio(s, w, j, end + farther) >= limit - 1e-6


def test_the_curve_lies_within_its_intervals_which_are_narrower_than_the_confidence_band():
    rng = np.random.default_rng(1)
    x = rng.random(5000)
    y = rng.random(5000) < x
    found = sf.reliability(x, y, bands="pointwise")
    band = found.bands
    assert len(band.x) == 2048
    curve = found.stairs(band.x)
    assert np.all((band.lower <= curve) & (curve <= band.upper))
    assert np.all(np.diff(band.lower) >= -1e-12)
    assert np.all(np.diff(band.upper) >= -1e-12)
    whole = sf.reliability(x, y, bands="confidence").bands.at(band.x)
    assert np.mean(band.upper - band.lower) < 0.7 * np.mean(whole[1] - whole[0])
    assert band.description == "90 % confidence band, pointwise"
    assert (band.kind, band.simultaneous, band.n_resamples) == ("pointwise", False, 0)
    assert math.isnan(band.p_value)


def test_log_odds_have_the_intervals_of_probabilities():
    x, y = np.linspace(0.05, 0.95, 40), np.arange(40) % 3 == 0
    odds = sf.reliability(np.log(x / (1 - x)), y, score="logistic", bands="pointwise").bands
    plain = sf.reliability(x, y, bands="pointwise").bands
    assert 1 / (1 + np.exp(-odds.lower)) == pytest.approx(plain.lower, abs=1e-9)
    assert 1 / (1 + np.exp(-odds.upper)) == pytest.approx(plain.upper, abs=1e-9)


def test_quantiles_agree_with_new_draws_of_the_limit_law():
    drawn = np.concatenate([simulate(seed) for seed in np.random.SeedSequence(5).spawn(3)])
    assert drawn.min() >= -1e-9
    for level, quantile in pointwise.QUANTILES.items():
        error = math.sqrt(level * (1 - level) / len(drawn))
        assert np.mean(drawn <= quantile) == pytest.approx(level, abs=4 * error + 0.002)


def test_quantiles_between_levels_are_interpolated():
    levels = np.linspace(0.5, 0.995, 100)
    quantiles = [pointwise.quantile_of(level) for level in levels]
    assert np.all(np.diff(quantiles) > 0)
    assert pointwise.quantile_of(0.9) == pytest.approx(pointwise.QUANTILES[0.9], rel=1e-12)
