"""`reliability`: the parts of the mean score, the calibration error and the histogram."""

import copy
import json
import math
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from loss_table import CASES
from reference import squared_parts

import staircase_fast as sf
from staircase_fast.calibration import _decompose, decomposition

LABELS, FORECASTS = [0, 0, 0, 1, 1, 1], [0.4, 0.3, 0.2, 0.1, 0.5, 0.9]
WITHIN = {
    "real": lambda rng, n: rng.normal(size=n),
    "unit": lambda rng, n: rng.random(n),
    ">=0": lambda rng, n: rng.poisson(2.0, n).astype(float),
    ">0": lambda rng, n: rng.gamma(2.0, size=n),
}


def numbers(found: sf.Reliability) -> tuple[float, ...]:
    return found.mean_score, found.miscalibration, found.discrimination, found.uncertainty


@pytest.mark.parametrize(
    ("score", "parts"),
    [("brier", (0.1016667, 0.125, 0.25)), ("log", (0.3237327, 0.3182571, 0.6931472))],
)
def test_the_known_parts_of_six_forecasts(score, parts):
    found = sf.reliability(FORECASTS, LABELS, score=score)
    assert (found.mcb, found.dsc, found.unc) == pytest.approx(parts, abs=5e-8)
    assert found.mean_score == pytest.approx(found.mcb - found.dsc + found.unc, abs=1e-15)
    assert found.calibration_error == pytest.approx(1 / 6, abs=1e-15)
    assert found.n_samples == 6
    assert found.stairs == sf.fit(FORECASTS, LABELS, loss="log" if score == "log" else "squared")


grid = st.integers(0, 8).map(lambda k: k / 8)


@given(st.lists(st.tuples(grid, grid, st.sampled_from([0.0, 0.5, 1.0, 3.0])), min_size=1, max_size=12))
def test_parts_are_those_of_exact_arithmetic(rows):
    x, y, w = zip(*rows, strict=True)
    if not any(w):
        w = None
    found = sf.reliability(x, y, sample_weight=w)
    assert numbers(found) == pytest.approx([float(part) for part in squared_parts(x, y, w)], abs=1e-15)
    assert found.mean_score == pytest.approx(found.mcb - found.dsc + found.unc, abs=1e-15)


@pytest.mark.parametrize("case", CASES, ids=repr)
def test_only_rounding_makes_a_part_negative_before_it_is_set_to_zero(case, monkeypatch):
    rng = np.random.default_rng(8)
    sums_of_chunks = []

    def sum_losses(*arguments):
        kernel(*arguments)
        sums_of_chunks.append(arguments[-2].copy())

    kernel = _decompose.sum_losses
    monkeypatch.setattr(_decompose, "sum_losses", sum_losses)
    for n in (1, 2, 50):
        y = WITHIN[case.domain[0]](rng, n)
        x = WITHIN[case.domain[1] if case.domain[1] != ">=0" else ">0"](rng, n)
        sf.reliability(x, y, score=case.make())
        own, miscalibration, discrimination, alike, _ = sums_of_chunks.pop()
        assert miscalibration >= -1e-12 * max(1.0, abs(own))
        assert discrimination >= -1e-12 * max(1.0, abs(alike))
    assert not sums_of_chunks


@pytest.mark.parametrize("case", CASES, ids=repr)
@pytest.mark.parametrize("weighted", [False, True])
def test_parts_are_mean_losses_of_forecasts_staircase_and_constant(case, weighted):
    rng = np.random.default_rng(7)
    n = 60
    for loss in (
        case.make(),
        *([case.make(np.resize(case.parameters, n))] if case.parameter and case.per_sample else []),
    ):
        y = WITHIN[case.domain[0]](rng, n)
        x = np.round(WITHIN[case.domain[1]](rng, n), 1) if case.domain[1] != ">0" else WITHIN[">0"](rng, n)
        w = rng.integers(0, 3, n).astype(float) if weighted else None
        found = sf.reliability(x, y, sample_weight=w, score=loss)
        assert found.stairs == sf.fit(x, y, sample_weight=w, loss=loss)
        constant = sf.fit(np.zeros(n), y, sample_weight=w, loss=loss).values[0]
        with np.errstate(all="ignore"):
            own, best, alike = (loss.value(z, y) for z in (x, found.stairs(x), np.full(n, constant)))
        own, best, alike = (
            np.average(one[w > 0], weights=w[w > 0]) if weighted else one.mean() for one in (own, best, alike)
        )
        assert numbers(found) == pytest.approx((own, own - best, alike - best, alike), rel=1e-9, abs=1e-12)
        off = np.average(np.abs(x - found.stairs(x)), weights=w)
        assert found.calibration_error == pytest.approx(off, rel=1e-12)
        assert found.score == loss
        assert found.score_name == case.name


@pytest.mark.parametrize("score", ["brier", "log", "quantile", "poisson_deviance"])
def test_calibrated_forecasts_have_a_miscalibration_of_exactly_zero(score):
    rng = np.random.default_rng(0)
    x = rng.random(2000)
    y = rng.random(2000) < x
    calibrated = sf.fit(x, y, loss="log" if score in ("brier", "log") else score)(x)
    found = sf.reliability(calibrated, y, score=score)
    assert found.miscalibration == 0.0
    assert found.calibration_error == 0.0
    assert found.discrimination > 0


@pytest.mark.parametrize("score", ["brier", "log", "quantile", "expectile"])
def test_a_constant_forecast_has_a_discrimination_of_exactly_zero(score):
    labels = np.random.default_rng(1).integers(0, 2, 999)
    found = sf.reliability(np.full(999, 0.3), labels, score=score)
    assert found.discrimination == 0.0
    assert math.copysign(1.0, found.discrimination) == 1.0


def test_an_event_with_forecast_probability_0_has_an_infinite_log_loss():
    found = sf.reliability([0.0, 0.5, 0.5, 1.0], [1, 0, 1, 1], score="log")
    assert (found.mean_score, found.miscalibration) == (math.inf, math.inf)
    assert math.isfinite(found.discrimination)
    assert found.uncertainty == pytest.approx(-0.75 * math.log(0.75) - 0.25 * math.log(0.25))
    absent = sf.reliability([0.0, 0.5, 0.5, 1.0], [1, 0, 1, 1], score="log", sample_weight=[0, 1, 1, 1])
    assert absent == sf.reliability([0.5, 0.5, 1.0], [0, 1, 1], score="log", sample_weight=[1, 1, 1])
    assert math.isfinite(absent.mean_score)
    light = sf.reliability([0, 0.5], [1, 1], score="log", sample_weight=[1e-300, 1e300])
    assert (light.mean_score, light.miscalibration) == (math.inf, math.inf)


def test_one_row_is_enough():
    found = sf.reliability([0.25], [1])
    assert numbers(found) == (0.5625, 0.5625, 0.0, 0.0)
    assert found.n_samples == 1
    assert found.calibration_error == 0.75


def test_log_odds_may_be_infinite():
    found = sf.reliability([-np.inf, 0.0, 0.0, np.inf], [0, 0, 1, 1], score="logistic")
    assert found.mean_score == pytest.approx(math.log(2) / 2)
    assert found.miscalibration == 0.0
    assert found.calibration_error == 0.0
    assert found.histogram.counts.sum() == 4
    assert sf.reliability([np.inf], [1], score="logistic").mean_score == 0.0


def test_mean_scores_follow_their_formulas():
    rng = np.random.default_rng(3)
    x, w = rng.random(5000), rng.random(5000)
    y = rng.random(5000) < x**2
    brier, log = (x - y) ** 2, -np.log(np.where(y, x, 1 - x))
    assert sf.reliability(x, y, sample_weight=w).mean_score == pytest.approx(np.average(brier, weights=w), rel=1e-12)
    assert sf.reliability(x, y, score="log").mean_score == pytest.approx(log.mean(), rel=1e-12)


def test_the_result_does_not_depend_on_threads_or_array_types():
    rng = np.random.default_rng(4)
    n = 600_000
    x, w = rng.random(n, dtype=np.float32), rng.integers(0, 3, n)
    y = rng.random(n) < x
    plain = sf.reliability(x.astype(float), y.astype(float), sample_weight=w.astype(float), n_threads=1)
    x.setflags(write=False)
    swapped = w.astype(">i4")
    assert sf.reliability(x, y, sample_weight=swapped, n_threads=3) == plain
    every_second = np.repeat(x, 2)[::2]
    assert sf.reliability(every_second, y, sample_weight=w) == plain
    assert plain.n_samples == np.count_nonzero(w)
    assert plain.histogram.counts.sum() == w.sum()


def test_weight_k_is_k_copies_and_the_unit_of_weights_does_not_matter():
    rng = np.random.default_rng(5)
    x, y, w = rng.random(300), rng.integers(0, 2, 300), rng.integers(0, 4, 300)
    weighted = sf.reliability(x, y, sample_weight=w)
    assert numbers(sf.reliability(np.repeat(x, w), np.repeat(y, w))) == pytest.approx(numbers(weighted), rel=1e-13)
    for unit in (2.0**-1000, 2.0**1000):
        assert numbers(sf.reliability(x, y, sample_weight=w * unit)) == numbers(weighted)


def test_a_bin_includes_its_start_and_not_its_end():
    edges = sf.reliability([0.5], [1]).histogram.edges
    assert edges[0] == 0.0
    assert edges[-1] == 1.0
    x = np.concatenate(
        [edges, np.nextafter(edges, -1)[1:], np.nextafter(edges, 2)[:-1], np.random.default_rng(6).random(99)]
    )
    weights = np.arange(len(x)) % 5
    for w in (None, weights):
        counts = sf.reliability(x, x > 0.5, sample_weight=w).histogram.counts
        assert counts.tolist() == np.histogram(x, edges, weights=w)[0].tolist()
        assert counts.dtype == (np.int64 if w is None else np.float64)


@pytest.mark.parametrize(
    "x",
    [
        [3.0, 3.0],
        [1e308],
        [1e20, 1e20],
        [-1e308, 1e308, 0.0],
        [5e-324, 0.0],
        [1.0, 1.0 + 2**-52, 1.0 + 2**-51],
        [-7.0, 2.0, 11.0],
    ],
    ids=str,
)
def test_bins_reach_from_the_least_to_the_greatest_forecast(x):
    found = sf.reliability(x, np.zeros(len(x)), score=sf.losses.Quantile(0.5))
    counts, edges = found.histogram
    assert counts.sum() == len(x)
    assert edges[0] <= min(x)
    assert edges[-1] >= max(x)
    assert np.all(np.diff(edges) >= 0)
    where = np.clip(np.searchsorted(edges, x, side="right") - 1, 0, len(counts) - 1)
    assert counts.tolist() == np.bincount(where, minlength=len(counts)).tolist()


def test_sums_of_many_rows_are_accurate():
    n = 3 * decomposition._CHUNK + 1
    x = np.full(n, 0.1)
    found = sf.reliability(x, np.zeros(n))
    assert found.mean_score == pytest.approx(0.1 * 0.1, rel=1e-15)
    assert found.uncertainty == 0.0


def test_mean_losses_that_overflow_are_refused():
    with pytest.raises(ValueError, match="`targets` must have a mean loss under the best forecasts that fits float64"):
        sf.reliability([1.0, 1.0, 2.0], [1e200, -1e200, 3.0], score="squared")
    n = 3 * decomposition._CHUNK
    with pytest.raises(ValueError, match="`targets` must have a mean loss under the best forecasts that fits float64"):
        sf.reliability(np.zeros(n), np.resize([5e151, -5e151], n), score="squared")


def test_an_infinite_loss_of_the_best_forecast_is_refused():
    n = decomposition._CHUNK
    # the first row has an infinite loss even under the best forecast, the last rows only under their own
    x, y, w = np.repeat([0.5, 0.0], n), np.ones(2 * n), np.ones(2 * n)
    y[0], w[0] = 0.0, 1e-20
    with pytest.raises(ValueError, match="`targets` must have a mean loss under the best forecasts that fits float64"):
        sf.reliability(x, y, sample_weight=w, score="log")


def test_the_result_survives_json_pickle_and_copy():
    found = sf.reliability([0.0, 0.5, 0.5], [1, 0, 1], score="log", bands="confidence", n_resamples=20, seed=1)
    plain = found.to_dict()
    assert json.loads(json.dumps(plain, allow_nan=False)) == plain
    assert plain["mean_score"] == "inf"
    assert plain["score"] == {"name": "log_loss"}
    assert sf.Staircase.from_json(json.dumps(plain["stairs"])) == found.stairs
    assert plain["bands"]["kind"] == "confidence"
    for duplicate in (pickle.loads(pickle.dumps(found)), copy.copy(found), copy.deepcopy(found)):
        assert duplicate == found
    assert found != sf.reliability([0.0, 0.5, 0.5], [1, 0, 1], score="log")
    assert found != 3
    assert sf.reliability(FORECASTS, LABELS).to_dict()["score"] == "brier"


def test_the_result_is_immutable_and_has_a_repr():
    found = sf.reliability(FORECASTS, LABELS)
    with pytest.raises(AttributeError):
        found.mean_score = 0.0
    assert repr(found).startswith("<Reliability: brier 0.226667 = miscalibration 0.101667 - ")
    with pytest.raises(TypeError, match="unhashable"):
        hash(found)


def only_blocks(y1, w1, y2, w2):
    return (y1 * w1 + y2 * w2) / (w1 + w2), w1 + w2


@pytest.mark.parametrize(
    ("error", "text", "arguments"),
    [
        (ValueError, "`score` must be one of 'brier', 'squared_error', .*; got 'brie'.", {"score": "brie"}),
        (ValueError, r"`score` must include its shape, as in losses.Linex\(shape\); got 'linex'.", {"score": "linex"}),
        (TypeError, "`score` must be a name or a loss object; got 3.", {"score": 3}),
        (TypeError, "must be a loss with known values; got Custom", {"score": sf.losses.Custom(np.subtract)}),
        (TypeError, "must be a loss with known values; got Upd", {"score": sf.losses.UpdateRule(only_blocks)}),
        (ValueError, r"`scores` must be in \[0, 1\] for brier; got -0.5 at index 1.", {"scores": [0.1, -0.5, 1, 0]}),
        (ValueError, r"`scores` must be in \[0, 1\] for log_loss; got 1.5 at index 3.",
         {"scores": [0.1, 0.5, 1, 1.5], "score": "log"}),
        (ValueError, "`scores` must be >= 0 for poisson_deviance; got -1.0 at index 0.",
         {"scores": [-1, 0.5, 1, 1.5], "score": "poisson_deviance"}),
        (ValueError, "`scores` must be finite; got inf at index 2.", {"scores": [0, 1, np.inf, 0], "score": "huber"}),
        (ValueError, "`scores` must not be NaN; got nan at index 1.", {"scores": [0, np.nan, 1, 0]}),
        (ValueError, r"`targets` must be in \[0, 1\] for brier; got 2 at index 0.", {"targets": [2, 0, 1, 0]}),
        (ValueError, "`targets` must be finite; got nan at index 0.", {"targets": [np.nan, 0, 1, 0]}),
        (ValueError, "`sample_weight` must be >= 0; got -1.0 at index 3.", {"sample_weight": [1, 1, 1, -1]}),
        (ValueError, "`exposure` of the loss must have one entry per row; got 2 for 4 rows.",
         {"score": sf.losses.PoissonDeviance([1.0, 2.0])}),
        (ValueError, "`bands` must be one of 'confidence', 'pointwise', 'consistency'; got 'both'.", {"bands": "both"}),
        (ValueError, "`bands` must be 'confidence' or None for squared_error; got 'consistency'.",
         {"bands": "consistency", "score": "squared"}),
        (ValueError, "`bands` must be None if `targets` are not all 0 or 1; got 'consistency' and 0.5.",
         {"bands": "consistency", "targets": [0.5, 0, 1, 0]}),
        (ValueError, "`n_resamples` must be an integer >= 1; got 0.", {"bands": "consistency", "n_resamples": 0}),
        (ValueError, "`n_resamples` must be an integer >= 1; got True.", {"bands": "confidence", "n_resamples": True}),
        (TypeError, "`n_resamples` must be an integer >= 1; got 1.5.", {"bands": "confidence", "n_resamples": 1.5}),
        (ValueError, "`level` must be > 0 and < 1; got 1.", {"bands": "confidence", "level": 1}),
        (TypeError, "`level` must be a number; got '90'.", {"bands": "confidence", "level": "90"}),
        (TypeError, "`seed` must be None, an integer >= 0 or a numpy SeedSequence; got -1.",
         {"bands": "confidence", "seed": -1}),
        (TypeError, "`seed` must be None, an integer >= 0 or a numpy SeedSequence; got 'x'.",
         {"bands": "confidence", "seed": "x"}),
        (TypeError, "`progress` must be a function; got 3.", {"bands": "confidence", "progress": 3}),
        (TypeError, "`simultaneous` must be True or False; got 1.", {"bands": "consistency", "simultaneous": 1}),
        (ValueError, "`simultaneous` must be True for confidence bands; got False.",
         {"bands": "confidence", "simultaneous": False}),
        (ValueError, "`dispersion` must be None for consistency bands; got 2.",
         {"bands": "consistency", "dispersion": 2}),
        (ValueError, "`dispersion` must be None for brier; got 1.", {"bands": "confidence", "dispersion": 1}),
        (ValueError, "`dispersion` must be a number > 0 for confidence bands and squared_error; got None. It is the v",
         {"bands": "confidence", "score": "squared"}),
        (ValueError, "`dispersion` must be > 0; got 0.",
         {"bands": "confidence", "score": "gamma_deviance", "dispersion": 0, "targets": [1, 2, 3, 4]}),
        (ValueError, "`bands` must be None for huber: no confidence bounds are known; got 'confidence'. Bounds are",
         {"bands": "confidence", "score": "huber"}),
        (ValueError, r"`bands` must be None for poisson_deviance: no pointwise bounds .* 'logistic' without offset\.",
         {"bands": "pointwise", "score": "poisson_deviance"}),
        (ValueError, r"`level` must be in \[0.5, 0.995\] for pointwise bands; got 0.4",
         {"bands": "pointwise", "level": 0.4}),
        (ValueError, "`bands` must be None for logistic: no confidence bounds are known",
         {"bands": "confidence", "score": sf.losses.Logistic(1.0)}),
        (ValueError, "`bands` must be None for tweedie_deviance: no confidence bounds are known",
         {"bands": "confidence", "score": sf.losses.TweedieDeviance(1.5)}),
        (ValueError, "`sample_weight` must be whole numbers of independent trials: .*; got 1.5 at index 2.",
         {"bands": "confidence", "sample_weight": [1, 0, 1.5, 1]}),
        (ValueError, "`targets` must be 0 or 1: no bounds are known otherwise; got 0.5 at index 1.",
         {"bands": "confidence", "targets": [0, 0.5, 1, 1]}),
        (ValueError, "`targets` times `sample_weight` must be whole numbers of trials: .*; got 0.25 at index 1.",
         {"bands": "confidence", "targets": [0, 0.25, 1, 1], "sample_weight": [1, 2, 1, 1]}),
        (ValueError, "`targets` must be whole numbers: no bounds are known otherwise; got 1.5 at index 0.",
         {"bands": "confidence", "targets": [1.5, 0, 1, 1], "score": "poisson_deviance"}),
        (ValueError, "`targets` times weights over dispersion, and their sums, must be within float64",
         {"bands": "confidence", "score": "squared", "dispersion": 1e-320, "targets": [1, 2, 3, 4]}),
        (ValueError, "`n_threads` must be an integer >= 1, -1 for all processors, or None; got 0.", {"n_threads": 0}),
    ],
)  # fmt: skip
def test_invalid_input_raises_an_error_that_states_the_requirement(error, text, arguments):
    given = {"scores": [0.1, 0.2, 0.3, 0.4], "targets": [0, 1, 0, 1]} | arguments
    with pytest.raises(error, match=text):
        sf.reliability(given.pop("scores"), given.pop("targets"), **given)


def test_empty_input_is_refused():
    with pytest.raises(ValueError, match="`scores` must have at least one row; got none"):
        sf.reliability([], [])


def test_forecasts_and_targets_that_are_most_likely_swapped_give_a_warning():
    labels, forecasts = [0, 1, 0, 1] * 3, [0.2, 0.8, 0.4, 0.6] * 3
    with pytest.warns(UserWarning, match=r"scores are all 0 or 1, and the targets are not\. Are they swapped\?"):
        sf.reliability(labels, forecasts)
    sf.reliability(forecasts, labels)
    sf.reliability(labels, labels)
    sf.reliability([0, 1, 0.5] * 4, forecasts)
    sf.reliability([1] * 12, forecasts)
    sf.reliability(labels[:8], forecasts[:8])
    sf.reliability(labels, forecasts, score="squared")
