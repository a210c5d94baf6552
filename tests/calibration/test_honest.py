"""Confidence bands: they equal their definition, they are never too narrow, and they contain the true curve."""

import math

import numpy as np
import pytest
from scipy import stats

import staircase_fast as sf


def bounds_of(family, s, w, p):
    """Clopper and Pearson's bounds of a mean, each wrong with probability p, for any family (dispersion 1)."""
    if family == "binomial":
        low = stats.beta.ppf(p, s, w - s + 1) if s > 0 else 0.0
        return low, stats.beta.isf(p, s + 1, w - s) if s < w else 1.0
    if family == "poisson":
        return (stats.gamma.ppf(p, s) / w if s > 0 else 0.0), stats.gamma.isf(p, s + 1) / w
    if family == "gamma":
        return s / stats.gamma.isf(p, w), s / stats.gamma.ppf(p, w)
    return s / w - stats.norm.isf(p) / math.sqrt(w), s / w + stats.norm.isf(p) / math.sqrt(w)


def tails_of(family, s, w, mean):
    """P(sum >= s) and P(sum <= s)."""
    if family == "binomial":
        return stats.binom.sf(s - 1, w, mean), stats.binom.cdf(s, w, mean)
    if family == "poisson":
        return stats.poisson.sf(s - 1, mean * w), stats.poisson.cdf(s, mean * w)
    if family == "gamma":
        return stats.gamma.sf(s, w, scale=mean), stats.gamma.cdf(s, w, scale=mean)
    return stats.norm.sf(s, mean * w, math.sqrt(w)), stats.norm.cdf(s, mean * w, math.sqrt(w))


def multiscale(n):
    """Intervals of 2**l of n, from multiples of a quarter of that and at the end, each with its share of 1 - level."""
    levels = [1 << level for level in range(n.bit_length())]
    for size in levels:
        starts = sorted({*range(0, n - size + 1, max(size // 4, 1)), n - size})
        for start in starts:
            yield start, start + size, 1 / (2 * len(levels) * len(starts))


def band_of_all_intervals(labels, level):
    """The band of Dimitriadis et al. (2023) for labels in score order: all intervals, with equal shares."""
    n = len(labels)
    start, end = np.triu_indices(n + 1, 1)
    sums, p = np.append(0, np.cumsum(labels)), (1 - level) / (n * (n + 1))
    s, w = sums[end] - sums[start], end - start
    low = np.where(s > 0, stats.beta.ppf(p, np.maximum(s, 1), w - s + 1), 0.0)
    high = np.where(s < w, stats.beta.isf(p, s + 1, np.maximum(w - s, 1)), 1.0)
    lower, upper = np.zeros(n), np.ones(n)
    np.maximum.at(lower, end - 1, low)
    np.minimum.at(upper, start, high)
    return np.maximum.accumulate(lower), np.minimum.accumulate(upper[::-1])[::-1]


def band_by_definition(s, w, level, *, family="binomial"):
    """The band of observations in score order."""
    n = len(s)
    low, high = {"binomial": (0, 1), "normal": (-math.inf, math.inf)}.get(family, (0, math.inf))
    lower, upper = np.full(n, low, dtype=float), np.full(n, high, dtype=float)
    for start, end, share in multiscale(n):
        bound = bounds_of(family, sum(s[start:end]), sum(w[start:end]), (1 - level) * share)[0]
        lower[end - 1 :] = np.maximum(lower[end - 1 :], bound)
        mirrored = slice(n - end, n - start)
        bound = bounds_of(family, sum(s[mirrored]), sum(w[mirrored]), (1 - level) * share)[1]
        upper[: n - end + 1] = np.minimum(upper[: n - end + 1], bound)
    return lower, upper


def p_value_by_definition(x, s, w, family="binomial"):
    n, least = len(s), 1.0
    for start, end, share in multiscale(n):
        least = min(least, tails_of(family, sum(s[start:end]), sum(w[start:end]), x[end - 1])[0] / share)
        mirrored = slice(n - end, n - start)
        least = min(least, tails_of(family, sum(s[mirrored]), sum(w[mirrored]), x[n - end])[1] / share)
    return least


def drawn(family, n, rng, *, weighted):
    """Scores, targets, sums and weights, and the options of `reliability`.  Means are a function of the scores."""
    x = np.sort(rng.random(n)) + (0.0 if family == "binomial" else 0.2)
    w = rng.integers(1, 5, n).astype(float) if weighted else np.ones(n)
    if family == "binomial":
        s = rng.binomial(w.astype(int), x**2).astype(float)
        return x, s / w, s, w, {}
    if family == "poisson":
        s = rng.poisson(5 * x**2 * w).astype(float)
        return x, s / w, s, w, {"score": "poisson_deviance"}
    if family == "gamma":
        y = np.maximum(rng.gamma(w / 0.5, x**2 * 0.5 / w), 1e-300)
        return x, y, w * y / 0.5, w / 0.5, {"score": "gamma_deviance", "dispersion": 0.5}
    y = rng.normal(x**2, np.sqrt(0.25 / w))
    return x, y, w * y / 0.25, w / 0.25, {"score": "squared", "dispersion": 0.25}


FAMILIES = ("binomial", "poisson", "gamma", "normal")


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("n", [1, 2, 3, 13, 100])
def test_the_band_equals_its_definition_and_is_never_narrower(family, n, weighted):
    rng = np.random.default_rng(n)
    for level in (0.5, 0.9, 0.999):
        x, y, s, w, options = drawn(family, n, rng, weighted=weighted)
        weights = {"sample_weight": w if family in ("binomial", "poisson") else w * options["dispersion"]}
        found = sf.reliability(x, y, bands="confidence", level=level, **options, **(weights if weighted else {})).bands
        lower, upper = found.at(x)
        expected = band_by_definition(s, w, level, family=family)
        assert lower == pytest.approx(expected[0], rel=1e-6, abs=1e-9)
        assert upper == pytest.approx(expected[1], rel=1e-6, abs=1e-9)
        slack = 1e-12 * np.abs(expected)  # SciPy's quantiles are rounded
        assert np.all(lower <= expected[0] + slack[0])
        assert np.all(upper >= expected[1] - slack[1])
        assert found.p_value == pytest.approx(p_value_by_definition(x, s, w, family), rel=1e-9)


WIDTHS = {  # mean widths at 300 uniform scores, level 90 %: ours, and those of all intervals (the quadratic definition)
    "p": (lambda x: x, 0.495, 0.533),
    "p^2": (lambda x: x**2, 0.445, 0.477),
    "0.3": (lambda x: 0 * x + 0.3, 0.247, 0.314),
    "two levels": (lambda x: np.where(x < 0.5, 0.2, 0.7), 0.422, 0.470),
    "0.01": (lambda x: 0 * x + 0.01, 0.144, 0.166),
    "sigmoid": (lambda x: 1 / (1 + np.exp(-30 * (x - 0.5))), 0.311, 0.327),
}


@pytest.mark.parametrize("name", WIDTHS)
def test_the_band_is_narrower_on_average_than_that_of_all_intervals(name):
    truth, ours, theirs = WIDTHS[name]
    rng, n = np.random.default_rng(1), 300
    x = np.sort(rng.random(n))
    y = (rng.random(n) < truth(x)).astype(float)
    lower, upper = band_of_all_intervals(y, 0.9)
    found = sf.reliability(x, y, bands="confidence").bands.at(x)
    assert np.mean(found[1] - found[0]) == pytest.approx(ours, abs=6e-4)
    assert np.mean(upper - lower) == pytest.approx(theirs, abs=6e-4)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_true_curve_is_within_the_band_at_least_as_often_as_promised(family):
    rng, runs, outside = np.random.default_rng(2), 300, 0
    for _ in range(runs):
        x, y, _, _, options = drawn(family, 200, rng, weighted=False)
        lower, upper = sf.reliability(x, y, bands="confidence", level=0.5, **options).bands.at(x)
        truth = (5 if family == "poisson" else 1) * x**2
        outside += np.any((truth < lower) | (truth > upper))
    assert outside <= 0.5 * runs


def test_counts_that_vary_more_than_poisson_counts_leave_the_band():
    rng, outside = np.random.default_rng(3), 0
    for _ in range(20):
        mean = 1 + 4 * rng.random(500)
        counts = rng.poisson(mean * rng.gamma(0.5, 2, 500))  # of variance mean + 2 mean**2
        found = sf.reliability(mean, counts, score="poisson_deviance", bands="confidence").bands
        lower, upper = found.at(mean)
        outside += np.any((mean < lower) | (mean > upper))
    assert outside == 20
    assert "targets have the distribution of the score" in found.promise
    assert "distribution" not in sf.reliability([0.2, 0.7], [0, 1], bands="confidence").bands.promise


@pytest.mark.parametrize(
    ("s", "n"), [(1, 10**6), (10**6 - 1, 10**6), (3, 10), (500, 1000), (10**8, 3 * 10**8), (2**40, 2**41), (10, 10)]
)
def test_bounds_of_one_interval_have_the_promised_tails(s, n):
    for level in (0.01, 0.9, 1 - 1e-9):
        found = sf.reliability([0.5], [s / n], sample_weight=[n], bands="confidence", level=level).bands
        p = (1 - level) / 2
        assert p * (1 - 1e-5) <= stats.beta.cdf(found.lower[0], s, n - s + 1) <= p * (1 + 1e-9)
        if s == n:
            assert found.upper[0] == 1.0
        else:
            tail = stats.beta.sf(found.upper[0], s + 1, n - s)
            assert tail <= p * (1 + 1e-9)
            assert tail >= p * (1 - 1e-5) or found.upper[0] > 1 - 1e-12  # no float is closer


def test_the_p_value_is_the_least_probability_at_which_the_diagonal_leaves_the_band():
    rng = np.random.default_rng(3)
    x = rng.random(1000)
    y = rng.random(1000) < x**2
    p = sf.reliability(x, y, bands="confidence").bands.p_value
    assert 1e-9 < p < 0.5
    for level, leaves in ((1 - p * 1.001, True), (1 - p * 0.999, False)):
        lower, upper = sf.reliability(x, y, bands="confidence", level=level).bands.at(x)
        assert np.any((x < lower) | (x > upper)) == leaves


def test_an_impossible_event_has_a_p_value_of_0():
    assert sf.reliability([0.0, 0.5], [1, 1], bands="confidence").bands.p_value == 0.0
    assert sf.reliability([0.5, 1.0], [0, 0], bands="confidence").bands.p_value == 0.0
    assert sf.reliability([0.0, 1.0], [0, 1], bands="confidence").bands.p_value == 1.0


def test_trials_and_exposures_count_as_so_many_rows():
    rng = np.random.default_rng(4)
    x, w = np.sort(rng.random(50)), rng.integers(0, 6, 50)
    s = rng.binomial(w, x)
    rows = np.repeat(x, w), np.concatenate([[1] * a + [0] * (b - a) for a, b in zip(s, w, strict=True)])
    trials = sf.reliability(x, s / np.maximum(w, 1), sample_weight=w, bands="confidence").bands
    plain = sf.reliability(*rows, bands="confidence").bands
    for one, other in zip(trials[:3], plain[:3], strict=True):
        assert np.array_equal(one, other)
    counts, years = rng.poisson(3 * x), 0.5 + rng.random(50)
    loss = sf.losses.PoissonDeviance(years)
    exposed = sf.reliability(x, counts, score=loss, bands="confidence").bands
    rates = sf.reliability(x, counts / years, sample_weight=years, score="poisson_deviance", bands="confidence").bands
    assert exposed.lower == pytest.approx(rates.lower, rel=1e-12)
    assert exposed.upper == pytest.approx(rates.upper, rel=1e-12)


@pytest.mark.parametrize(("power", "name"), [(0, "squared"), (1, "poisson_deviance"), (2, "gamma_deviance")])
def test_tweedie_losses_have_the_band_of_their_family(power, name):
    x, y = np.arange(1.0, 30.0), np.arange(1.0, 30.0)[::-1]
    options = {"bands": "confidence", "dispersion": None if power == 1 else 2.0}
    tweedie = sf.reliability(x, y, score=sf.losses.TweedieDeviance(power), **options).bands
    assert np.array_equal(tweedie.upper, sf.reliability(x, y, score=name, **options).bands.upper)


def test_log_odds_have_the_band_of_probabilities():
    rng = np.random.default_rng(5)
    x = rng.random(300)
    y = rng.random(300) < x
    odds = sf.reliability(np.log(x / (1 - x)), y, score="logistic", bands="confidence").bands
    plain = sf.reliability(x, y, bands="confidence").bands
    assert 1 / (1 + np.exp(-odds.lower)) == pytest.approx(plain.lower)
    assert odds.p_value == pytest.approx(plain.p_value)
    assert (odds.least, odds.greatest) == (-math.inf, math.inf)


def test_any_score_has_bounds_and_the_outline_passes_through_them():
    rng = np.random.default_rng(6)
    x = np.sort(rng.random(500))
    found = sf.reliability(x, rng.random(500) < x, bands="confidence").bands
    at = np.concatenate([[-math.inf, -1], x, (x[1:] + x[:-1]) / 2, [2, math.inf]])
    lower, upper = found.at(at)
    assert (lower[0], upper[-1]) == (0.0, 1.0)
    middle = slice(502, 1001)  # a score between two rows lies above the first and below the second
    assert np.array_equal(lower[middle], lower[2:501])
    assert np.array_equal(upper[middle], upper[3:502])
    corners = found.outline()
    assert np.all(np.diff(corners[0]) >= 0)
    between = (found.x[1:] + found.x[:-1]) / 2
    for bound, line in zip(found.at(between), corners[1:], strict=True):
        assert np.interp(between, corners[0], line) == pytest.approx(bound, abs=1e-12)
    with pytest.raises(ValueError, match="`scores` must not be NaN; got nan at index 1"):
        found.at([0.5, math.nan])


def test_the_band_does_not_depend_on_threads_row_order_or_types():
    rng = np.random.default_rng(7)
    x, w = rng.random(3000).round(2).astype(np.float32), rng.integers(0, 3, 3000)
    y = rng.random(3000) < x
    expected = sf.reliability(x, y, sample_weight=w, bands="confidence", n_threads=1).bands
    order = rng.permutation(3000)
    x, y, w = x[order].astype(">f8"), y[order].astype(np.int8), w[order].astype(float)
    found = sf.reliability(x, y, sample_weight=w, bands="confidence", n_threads=2).bands
    for one, other in zip(found, expected, strict=True):
        assert np.array_equal(one, other)


def test_all_pooled_scores_give_one_interval():
    found = sf.reliability([0.25] * 100, [1] * 30 + [0] * 70, bands="confidence").bands
    assert (found.lower[0], found.upper[0]) == pytest.approx(bounds_of("binomial", 30, 100, 0.05), rel=1e-8)
    assert found.description == "90 % confidence band, simultaneous"


@pytest.mark.parametrize("family", ["gamma", "normal"])
def test_targets_of_very_different_size_do_not_narrow_the_band(family):
    # the sums of the last rows are lost in the rounding of a cumulated sum
    y, w = [1e40, 1e20, 3.0, 4.0, 5.0], np.ones(5)
    options = {"score": "squared" if family == "normal" else "gamma_deviance", "dispersion": 1.0}
    found = sf.reliability([1.0, 2.0, 3.0, 4.0, 5.0], y, bands="confidence", **options).bands
    expected = band_by_definition(y, w, 0.9, family=family)  # these sums end with the small rows, and are exact
    lower, upper = found.at([1.0, 2.0, 3.0, 4.0, 5.0])
    assert np.all(lower <= expected[0] * (1 + 1e-9))
    assert np.all(upper >= expected[1] * (1 - 1e-9))
    assert upper[0] < 1e14


@pytest.mark.parametrize("score", ["poisson_deviance", "gamma_deviance", "squared"])
def test_weights_that_vanish_beside_others_are_refused(score):
    options, first = ({}, 0.0) if score == "poisson_deviance" else ({"dispersion": 1.0}, 0.5)
    message = "`sample_weight` .or exposures. must be at least .*; got 1 of 1e.40"
    with pytest.raises(ValueError, match=message):
        sf.reliability([1, 2, 3], [first, 1, 2], sample_weight=[1e40, 1, 1], score=score, bands="confidence", **options)
