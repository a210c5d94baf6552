"""Mean scores and their parts equal those of scikit-learn and model-diagnostics, for every loss that these have."""

import numpy as np
import pytest
from sklearn import metrics

import staircase_fast as sf

scoring = pytest.importorskip("model_diagnostics.scoring")
L = sf.losses
RTOL = 1e-12

MEANS = {  # our loss, theirs, the kind of rows
    "squared": (L.SquaredError(), scoring.SquaredError(), "counts"),
    "brier": ("brier", scoring.SquaredError(), "labels"),
    "log": (L.LogLoss(), scoring.LogLoss(), "labels"),
    "poisson": (L.PoissonDeviance(), scoring.PoissonDeviance(), "counts"),
    "gamma": (L.GammaDeviance(), scoring.GammaDeviance(), "amounts"),
    **{
        f"tweedie {power}": (
            L.TweedieDeviance(power),
            scoring.HomogeneousExpectileScore(degree=2 - power),
            "counts" if power < 2 else "amounts",
        )
        for power in (-1.0, 0.0, 1.0, 1.5, 2.0, 2.5, 3.0)
    },
}


def rows(kind: str, seed: int, n: int = 300) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Forecasts, targets and weights."""
    rng = np.random.default_rng(seed)
    weights = rng.uniform(0.1, 2, n)
    if kind == "labels":
        forecasts = rng.uniform(0.01, 0.99, n)
        return forecasts, (rng.random(n) < forecasts**2).astype(float), weights
    forecasts = rng.gamma(2.0, 1.0, n) + 0.1
    drawn = rng.poisson(forecasts) if kind == "counts" else rng.gamma(2.0, forecasts / 2) + 0.01
    drawn[np.argmin(forecasts)] += 1  # model-diagnostics refuses recalibrated forecasts of 0
    return forecasts, drawn.astype(float), weights


def parts(found: sf.Reliability) -> list[float]:
    return [found.mean_score, found.miscalibration, found.discrimination, found.uncertainty]


def their_parts(score, forecasts, targets, weights=None) -> list[float]:
    table = scoring.decompose(targets, forecasts, weights=weights, scoring_function=score)
    return [table[name][0] for name in ("score", "miscalibration", "discrimination", "uncertainty")]


@pytest.mark.parametrize("weighted", [False, True], ids=["unweighted", "weighted"])
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", MEANS)
def test_parts_equal_those_of_model_diagnostics(name, seed, weighted):
    ours, theirs, kind = MEANS[name]
    forecasts, targets, weights = rows(kind, seed)
    given = weights if weighted else None
    found = parts(sf.reliability(forecasts, targets, score=ours, sample_weight=given))
    assert found == pytest.approx(their_parts(theirs, forecasts, targets, given), rel=RTOL)


@pytest.mark.parametrize("level", [0.1, 0.5, 0.8])
def test_expectile_scores_of_model_diagnostics_have_the_factor_2(level):
    forecasts, targets, weights = rows("counts", 0)
    found = parts(sf.reliability(forecasts, targets, score=L.Expectile(level), sample_weight=weights))
    theirs = scoring.HomogeneousExpectileScore(degree=2, level=level)
    assert [2 * part for part in found] == pytest.approx(their_parts(theirs, forecasts, targets, weights), rel=RTOL)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("level", [0.1, 0.5, 0.8])
def test_pinball_losses_equal_those_of_both_peers(level, seed):
    forecasts, targets, weights = rows("amounts", seed)
    loss = L.Quantile(level)
    found = sf.reliability(forecasts, targets, score=loss)
    # model-diagnostics has no weighted quantiles
    assert parts(found) == pytest.approx(their_parts(scoring.PinballLoss(level=level), forecasts, targets), rel=RTOL)
    weighted = sf.reliability(forecasts, targets, score=loss, sample_weight=weights)
    theirs = metrics.mean_pinball_loss(targets, forecasts, sample_weight=weights, alpha=level)
    assert weighted.mean_score == pytest.approx(theirs, rel=RTOL)


def test_mean_scores_equal_those_of_scikit_learn():
    for kind, score, metric, options in (
        ("counts", "squared", metrics.mean_squared_error, {}),
        ("labels", "brier", metrics.brier_score_loss, {}),
        ("labels", "log", metrics.log_loss, {}),
        ("labels", "log", metrics.d2_log_loss_score, {}),
        ("counts", "poisson_deviance", metrics.mean_poisson_deviance, {}),
        ("amounts", "gamma_deviance", metrics.mean_gamma_deviance, {}),
        *(
            ("amounts", L.TweedieDeviance(p), metrics.mean_tweedie_deviance, {"power": p})
            for p in (-1.0, 0.0, 1.0, 1.5, 2.0, 3.0)
        ),
    ):
        forecasts, targets, weights = rows(kind, 4)
        found = sf.reliability(forecasts, targets, score=score, sample_weight=weights)
        theirs = metric(targets, forecasts, sample_weight=weights, **options)
        is_share = metric is metrics.d2_log_loss_score  # of the uncertainty that forecasts explain
        ours = 1 - found.mean_score / found.uncertainty if is_share else found.mean_score
        assert ours == pytest.approx(theirs, rel=RTOL), score


def test_an_exposure_multiplies_the_forecast_rate():
    rates, counts, years = rows("counts", 5)
    loss = L.PoissonDeviance(years)
    assert np.mean(loss.value(rates, counts)) == pytest.approx(
        metrics.mean_poisson_deviance(counts, rates * years), rel=RTOL
    )
    # peers take rates as targets and exposures as weights; the mean is then over exposure
    found = sf.reliability(rates, counts, score=loss)
    theirs = their_parts(scoring.PoissonDeviance(), rates, counts / years, years)
    assert [part * len(years) / years.sum() for part in parts(found)] == pytest.approx(theirs, rel=RTOL)
