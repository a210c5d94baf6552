"""Calibration errors equal their definitions, and the debiased ones have mean 0 for calibrated forecasts."""

import math
import re
import warnings

import numpy as np
import pytest
from sklearn.calibration import calibration_curve

import staircase_fast as sf
from staircase_fast.calibration import smooth_error
from staircase_fast.calibration.monotone_test import monotone_p_value
from staircase_fast.calibration.smooth_error import LEAST_BANDWIDTH, SmoothError

FEW = {"n_resamples": 2}
# relplot 1.0.3, smECE_sigma by bandwidth, on a grid of 1000 points; the bandwidth of its smECE is right to 0.001
RELPLOT, RELPLOT_FIXED_POINT = {0.02: 0.0544925, 0.05: 0.0468526, 0.1: 0.0405090}, 0.0473012


def rows(seed, n=200, tied=False, weighted=False):
    rng = np.random.default_rng(seed)
    x = rng.random(n)
    y = (rng.random(n) < x**2).astype(int)
    return np.round(x, 1) if tied else x, y, rng.uniform(0.1, 2, n) if weighted else None


def kernel(s, x, t):
    """The Gaussian kernel, reflected at 0 and 1."""
    images = [part + 2 * k for k in range(-8, 9) for part in (x, -x)]
    return sum(np.exp(-0.5 * ((t - image) / s) ** 2) for image in images) / (s * math.sqrt(2 * math.pi))


def smooth_error_at(s, x, y, w):
    """The error at a bandwidth, from the definition: a sum over rows and a sum over a fine grid."""
    t = (np.arange(1 << 14) + 0.5) / (1 << 14)
    smoothed = sum(wi * (yi - xi) * kernel(s, xi, t) for xi, yi, wi in zip(x, y, w, strict=True))
    return float(np.abs(smoothed).mean()) / w.sum()


def by_bins(x, y, w, bins, power):
    """Sums over bins of |weighted mean residual|**power, by loops over rows."""
    total = 0.0
    for b in set(bins.tolist()):
        own = bins == b
        total += w[own].sum() / w.sum() * abs((w * (y - x))[own].sum() / w[own].sum()) ** power
    return total


@pytest.mark.parametrize("weighted", [False, True], ids=["unweighted", "weighted"])
@pytest.mark.parametrize("tied", [False, True], ids=["distinct", "tied"])
@pytest.mark.parametrize("seed", range(3))
def test_every_measure_equals_its_definition(seed, tied, weighted):
    x, y, w = rows(seed, 60, tied, weighted)
    found = sf.calibration_errors(x, y, sample_weight=w, n_bins=10, **FEW)
    assessed = sf.reliability(x, y, sample_weight=w)
    assert found.calibration_error.observed == pytest.approx(assessed.calibration_error, rel=1e-12)
    assert found.miscalibration.observed == pytest.approx(assessed.miscalibration, rel=1e-12)
    w = np.ones(len(x)) if w is None else w
    smooth = found.smooth.observed
    assert smooth_error_at(smooth, x, y, w) == pytest.approx(smooth, rel=1e-5)
    wide = np.searchsorted(np.arange(1, 10) / 10, x)  # bins (a, b]
    assert found.binned.observed == pytest.approx(by_bins(x, y, w, wide, 1), rel=1e-12)
    assert found.binned_squared.observed == pytest.approx(by_bins(x, y, w, wide, 2), rel=1e-12)
    middles = np.array([w[x < one].sum() + w[x == one].sum() / 2 for one in x]) / w.sum()
    assert found.adaptive.observed == pytest.approx(by_bins(x, y, w, np.floor(10 * middles), 1), rel=1e-12)
    pairs = 0.0  # products of different rows of one bin
    for b in set(wide.tolist()):
        r, v = (w * (y - x))[wide == b], w[wide == b]
        if len(v) > 1:
            product, both = (np.outer(one, one)[~np.eye(len(v), dtype=bool)].sum() for one in (r, v))
            pairs += v.sum() / w.sum() * product / both
    assert found.binned_squared.debiased == pytest.approx(pairs, rel=1e-9, abs=1e-15)


def test_the_debiased_squared_error_is_that_of_kumar_if_forecasts_are_constant_in_bins():
    rng = np.random.default_rng(0)
    x = rng.choice([0.15, 0.45, 0.85], 300)
    y = rng.random(300) < 0.5
    wanted = 0.0
    for one in np.unique(x):
        own = y[x == one]
        wanted += len(own) / 300 * ((one - own.mean()) ** 2 - own.mean() * (1 - own.mean()) / (len(own) - 1))
    assert sf.calibration_errors(x, y, **FEW).binned_squared.debiased == pytest.approx(wanted, rel=1e-12)


@pytest.mark.parametrize("strategy", ["uniform", "quantile"])
def test_binned_errors_equal_those_of_scikit_learns_curve(strategy):
    x, y, _ = rows(5, 300)
    freqs, means = calibration_curve(y, x, n_bins=10, strategy=strategy)
    found = sf.calibration_errors(x, y, n_bins=10, **FEW)
    if strategy == "uniform":
        counts, ours = np.histogram(x, np.linspace(0, 1, 11))[0], found.binned
    else:
        counts, ours = np.full(10, 30), found.adaptive
    assert ours.observed == pytest.approx(np.sum(counts * np.abs(freqs - means)) / 300, rel=1e-12)


def test_the_smooth_error_is_that_of_relplot():
    i = np.arange(400)
    x = ((i * 149) % 400 + 0.5) / 400
    y = ((i * i * 7 + i * 3) % 11 < 11 * x**2) * 1.0
    order = np.argsort(x)
    for bandwidth, theirs in RELPLOT.items():
        assert smooth_error_at(bandwidth, x, y, np.ones(400)) == pytest.approx(theirs, rel=1e-2)
    ours = SmoothError(x[order]).fixed_point((y - x)[order] / 400)
    assert ours == pytest.approx(RELPLOT_FIXED_POINT, abs=1e-3)


@pytest.mark.parametrize("factor", [1, 0.1, 0.002])
def test_the_smooth_error_of_small_residuals_equals_its_definition(factor):
    """Each factor needs another level of cells."""
    x, y, _ = rows(0, 300)
    order = np.argsort(x)
    found = SmoothError(x[order]).fixed_point((factor * (y - x))[order] / 300)
    at_level = [found >= least for least in smooth_error._LEVELS]
    assert at_level.index(True) == [1, 0.1, 0.002].index(factor)
    assert smooth_error_at(found, x, x + factor * (y - x), np.ones(300)) == pytest.approx(found, rel=1e-5)


def test_a_smooth_error_below_the_least_bandwidth_is_the_error_at_that_bandwidth():
    x = np.array([1e-6, 0.5, 1 - 1e-6])
    found = SmoothError(x).fixed_point(np.array([-1e-6, 0.0, 1e-6]) / 3)
    assert found == pytest.approx(2e-6 / 3, rel=1e-6)
    assert found < LEAST_BANDWIDTH
    assert SmoothError(x).fixed_point(np.zeros(3)) == 0


def test_the_largest_errors_are_found():
    found = sf.calibration_errors([0.0, 1.0], [1, 0], **FEW)
    assert (found.binned.observed, found.adaptive.observed, found.binned_squared.observed) == (1, 1, 1)
    assert found.calibration_error.observed == 0.5  # the isotonic fit is constant
    assert sf.calibration_errors([1.0], [0], **FEW).smooth.observed == pytest.approx(1.0, rel=1e-6)


@pytest.mark.parametrize("weighted", [False, True], ids=["unweighted", "weighted"])
def test_debiased_errors_of_calibrated_forecasts_have_mean_0(weighted):
    rng = np.random.default_rng(1)
    found = []
    for _ in range(100):
        x = rng.beta(0.5, 2, 200)
        w = rng.exponential(size=200) if weighted else None
        errors = sf.calibration_errors(x, rng.random(200) < x, sample_weight=w, n_resamples=20)
        found.append([(error.debiased, error.observed) for error in errors.measures.values()])
    debiased, observed = np.moveaxis(np.array(found), 2, 0)
    errors = debiased.std(axis=0, ddof=1) / math.sqrt(len(found))
    assert (np.abs(debiased.mean(axis=0)) < 3.5 * errors).all()
    assert (observed.mean(axis=0) > 10 * errors).all()  # the bias that is removed


def test_results_depend_neither_on_the_order_of_rows_nor_on_threads_nor_on_the_type():
    for weighted in (False, True):
        x, y, w = rows(2, 500, tied=True, weighted=weighted)
        found = sf.calibration_errors(x, y, sample_weight=w)
        order = np.random.default_rng(0).permutation(500)
        other = sf.calibration_errors(
            x[order], y[order].astype(bool), sample_weight=None if w is None else w[order], n_threads=3
        )
        assert found == other
    x = x.astype(np.float32)
    assert sf.calibration_errors(x, y) == sf.calibration_errors(x.astype(np.float64), y)


def test_rows_of_weight_0_are_absent_and_the_scale_of_weights_does_not_matter():
    x, y, w = rows(3, 100, weighted=True)
    w[::3] = 0
    found = sf.calibration_errors(x, y, sample_weight=w)
    assert found == sf.calibration_errors(x[w > 0], y[w > 0], sample_weight=w[w > 0])
    assert found == sf.calibration_errors(x, y, sample_weight=w * 2.0**900)
    assert found.n_samples == (w > 0).sum()
    tiny = sf.calibration_errors([0.2, 0.4, 0.6], [0, 1, 1], sample_weight=[1.0, 2.0, 5e-324], **FEW)
    assert math.isfinite(tiny.smooth.observed)
    far = sf.calibration_errors([0.2, 0.4, 0.6], [0, 1, 1], sample_weight=[1e300, 2e300, 5e-324], **FEW)
    assert far.binned == sf.calibration_errors([0.2, 0.4], [0, 1], sample_weight=[1, 2], **FEW).binned


def test_seeds_are_reproducible_and_none_varies():
    x, y, _ = rows(4)
    assert sf.calibration_errors(x, y, seed=3) == sf.calibration_errors(x, y, seed=np.random.SeedSequence(3))
    assert sf.calibration_errors(x, y, seed=3) != sf.calibration_errors(x, y, seed=4)
    assert sf.calibration_errors(x, y, seed=None) != sf.calibration_errors(x, y, seed=None)


def test_errors_of_classes_are_those_of_their_columns():
    rng = np.random.default_rng(6)
    table = rng.dirichlet([1, 2, 3], 300)
    classes = np.array([rng.choice(3, p=row) for row in table])
    w = rng.random(300)
    found = sf.calibration_errors(table, classes, sample_weight=w)
    for k in range(3):
        assert found.by_class[k] == sf.calibration_errors(table[:, k], classes == k, sample_weight=w)
    top = table.argmax(axis=1)
    assert found.top_label == sf.calibration_errors(table.max(axis=1), classes == top, sample_weight=w)
    mean = np.mean([one.smooth for one in found.by_class], axis=0)
    assert found.classwise.smooth == pytest.approx(tuple(mean))
    assert found.debiased["classwise"]["smooth"] == pytest.approx(mean[0] - mean[1])
    assert abs(found.top_label.calibration_error.debiased) < 4 * found.top_label.calibration_error.spread


def test_data_that_decrease_raise_a_warning_and_monotone_data_do_not():
    rng = np.random.default_rng(7)
    x = rng.random(1000)
    u_shaped = rng.random(1000) < np.abs(2 * x - 1)
    for weights in (None, rng.uniform(0.5, 1, 1000)):
        with pytest.warns(UserWarning, match=r"The frequency of label 1 decreases somewhere .* \(p-value \de-\d\d\)"):
            assert sf.calibration_errors(x, u_shaped, sample_weight=weights, **FEW).monotone_p_value < 1e-6
    table = np.column_stack([x, 1 - x])
    with pytest.warns(UserWarning, match="The frequency of class 0, class 1 decreases"):
        sf.calibration_errors(table, u_shaped.astype(int), **FEW)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert sf.calibration_errors(x, rng.random(1000) < x**3, **FEW).monotone_p_value > 0.01


@pytest.mark.parametrize("weighted", [False, True], ids=["unweighted", "weighted"])
@pytest.mark.parametrize("truth", [0.02, 0.5])
def test_the_test_of_monotonicity_keeps_its_level_where_it_is_hardest(truth, weighted):
    """A constant frequency is the least favourable monotone truth; the p-value is conservative."""
    rng = np.random.default_rng(8)
    n, runs = 256, 4000
    w = rng.uniform(0.1, 1, n) if weighted else np.ones(n)
    small = [monotone_p_value(w * (rng.random(n) < truth), w, w**2, weighted=weighted) <= 0.2 for _ in range(runs)]
    assert np.mean(small) <= 0.2


def test_the_p_value_of_two_blocks_is_that_of_the_formula():
    # 8 rows, halves with means 1 and 0: T = 8 log 2, one comparison, level 1: factor 2
    ones, each = np.repeat([1.0, 0.0], 4), np.ones(8)
    statistic = 8 * math.log(2)
    wanted = 2 * (1 + statistic) * math.exp(-statistic)
    assert monotone_p_value(ones, each, each, weighted=False) == pytest.approx(wanted)
    statistic = 2 * 1.0 / (1 / 4 + 1 / 4)  # Hoeffding
    wanted = 2 * (1 + statistic) * math.exp(-statistic)
    assert monotone_p_value(ones, each, each, weighted=True) == pytest.approx(wanted)
    assert monotone_p_value(ones[::-1], each, each, weighted=False) == 1
    assert monotone_p_value(np.ones(1), np.ones(1), np.ones(1), weighted=False) == 1


@pytest.mark.parametrize(
    ("error", "message", "changed"),
    [
        (ValueError, "`scores` must be between 0 and 1; got 1.5 at index 1.", {"scores": [0.5, 1.5]}),
        (ValueError, "`scores` must not be NaN; got nan at index 0.", {"scores": [math.nan, 0.5]}),
        (ValueError, "`targets` must be 0 or 1; got 2 at index 1.", {"targets": [0, 2]}),
        (ValueError, "`scores` must have at least one row; got none.", {"scores": [], "targets": []}),
        (ValueError, "`scores` must have rows that sum to 1; got 1.5 at index 1.",
         {"scores": [[0.5, 0.5], [0.5, 1.0]]}),
        (ValueError, "`scores[:, 0]` must be between 0 and 1; got -0.5 at index 1.",
         {"scores": [[0.5, 0.5], [-0.5, 1.5]]}),
        (ValueError, "`scores` must have shape (n,) or (n, k) with k >= 2; got shape (2, 1).",
         {"scores": [[0.5], [0.5]]}),
        (ValueError, "`targets` must be classes from 0 to 1; got 2 at index 1.",
         {"scores": [[0.5, 0.5], [0.5, 0.5]], "targets": [0, 2]}),
        (ValueError, "`scores` and `targets` must have one entry per row; got 2 and 3 entries.",
         {"targets": [0, 1, 1]}),
        (ValueError, "`sample_weight` must be >= 0; got -1.0 at index 0.", {"sample_weight": [-1.0, 1.0]}),
        (ValueError, "`n_bins` must be an integer >= 1; got 0.", {"n_bins": 0}),
        (TypeError, "`n_resamples` must be an integer >= 2; got None.", {"n_resamples": None}),
        (ValueError, "`n_resamples` must be an integer >= 2", {"n_resamples": 1}),
        (TypeError, "`seed` must be None, an integer >= 0 or a numpy SeedSequence; got 'x'.", {"seed": "x"}),
    ],
)  # fmt: skip
def test_invalid_input_is_refused(error, message, changed):
    with pytest.raises(error, match=re.escape(message)):
        sf.calibration_errors(**{"scores": [0.25, 0.75], "targets": [0, 1]} | changed)


def test_the_text_lists_all_measures():
    x, y, _ = rows(0)
    text = repr(sf.calibration_errors(x, y))
    assert text.startswith("<CalibrationErrors: 200 rows")
    for name in sf.CalibrationErrors.__annotations__:
        assert (name.replace("_", " ") in text) == (name not in ("monotone_p_value", "n_samples"))


def test_the_errors_of_classes_are_shown_by_name():
    text = repr(sf.calibration_errors([[0.7, 0.2, 0.1], [0.2, 0.5, 0.3], [0.1, 0.3, 0.6]], [0, 1, 2]))
    assert text.startswith("<ClassCalibrationErrors: 3 classes\ntop label: <CalibrationErrors: 3 rows\n")
    assert text.count("miscalibration") == 2
