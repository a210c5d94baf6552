"""Our figures beside those of other libraries, on the same rows: `make peer-figures`.

Exits with 1 if two figures differ by more than the tolerance of their row.  Libraries that are not installed are left
out.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import warnings
from typing import Any

import numpy as np

import staircase_fast as sf

EXACT, GRID = 1e-12, 2e-3  # relplot evaluates its bandwidths on a grid
PARTS = ("mean_score", "miscalibration", "discrimination", "uncertainty")


def optional(name: str) -> Any:
    try:
        with np.errstate(), warnings.catch_warnings():  # venn_abers changes numpy's settings
            warnings.simplefilter("ignore")
            return importlib.import_module(name)
    except ImportError:
        print(f"{name.partition('.')[0]} is not installed")
        return None


class Table:
    """Prints rows and remembers whether figures agree."""

    def __init__(self) -> None:
        self.agrees = True
        print(f"\n{'figure':44}{'staircase_fast':>18}{'peer':>18}  {'difference':>10}  library")

    def add(self, figure: str, library: str, ours: float, theirs: float, tolerance: float = EXACT) -> None:
        difference = abs(ours - theirs)
        agrees = difference <= tolerance * max(1.0, abs(theirs))
        self.agrees &= agrees
        mark = "" if agrees else "  DIFFERS"
        print(f"{figure:44}{ours:18.12f}{theirs:18.12f}  {difference:10.1e}  {library}{mark}")


def add_scores(table: Table, rng: np.random.Generator, n: int) -> None:
    """Mean scores and their parts."""
    from sklearn import metrics

    scoring = optional("model_diagnostics.scoring")
    rates = rng.gamma(2.0, 1.0, n) + 0.1
    amounts = rng.gamma(2.0, rates / 2) + 0.01
    chances = rng.uniform(0.01, 0.99, n)
    labels = (rng.random(n) < chances**2).astype(float)
    weights = rng.uniform(0.1, 2, n)
    for score, name, metric, x, y in (
        ("brier", "SquaredError", metrics.brier_score_loss, chances, labels),
        ("log", "LogLoss", metrics.log_loss, chances, labels),
        ("squared", "SquaredError", metrics.mean_squared_error, rates, amounts),
        ("poisson_deviance", "PoissonDeviance", metrics.mean_poisson_deviance, rates, amounts),
        ("gamma_deviance", "GammaDeviance", metrics.mean_gamma_deviance, rates, amounts),
    ):
        found = sf.reliability(x, y, sample_weight=weights, score=score)
        table.add(f"{score}: mean score", "scikit-learn", found.mean_score, metric(y, x, sample_weight=weights))
        if scoring:
            theirs = scoring.decompose(y, x, weights=weights, scoring_function=getattr(scoring, name)())
            for part in PARTS:
                their = theirs["score" if part == "mean_score" else part][0]
                table.add(f"{score}: {part.replace('_', ' ')}", "model-diagnostics", getattr(found, part), their)


def add_errors(table: Table, rng: np.random.Generator, n: int) -> None:
    """Calibration errors of forecasts that are too low at one end and too high at the other."""
    from sklearn.calibration import calibration_curve

    forecasts = rng.random(n)
    labels = rng.random(n) < 0.25 + forecasts / 2
    found = sf.calibration_errors(forecasts, labels, n_bins=10, n_resamples=2)
    frequencies, means = calibration_curve(labels, forecasts, n_bins=10)
    theirs = np.histogram(forecasts, np.linspace(0, 1, 11))[0] @ np.abs(frequencies - means) / n
    table.add("binned, 10 bins", "scikit-learn", found.binned.observed, theirs)
    relplot = optional("relplot")
    if relplot:
        table.add("smooth", "relplot", found.smooth.observed, relplot.smECE(forecasts, labels * 1.0), GRID)


def add_venn_abers(table: Table, rng: np.random.Generator, n: int) -> None:
    """Pairs of probabilities at calibration scores: the peer is off between them if labels are separated."""
    package = optional("venn_abers")
    if not package:
        return
    scores = np.round(rng.random(n), 2)
    labels = (rng.random(n) < scores).astype(int)
    queries = rng.choice(scores, 3, replace=False)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        peer = package.VennAbers()
        peer.fit(np.column_stack([1 - scores, scores]), labels)
        merged, pairs = peer.predict_proba(np.column_stack([1 - queries, queries]))
    venn = sf.VennAbers().fit(scores, labels)
    for query, p0, p1, one, pair, theirs in zip(
        queries, *venn.predict(queries), venn.merge(queries), pairs, merged[:, 1], strict=True
    ):
        for name, ours, their in (("p0", p0, pair[0]), ("p1", p1, pair[1]), ("merged", one, theirs)):
            table.add(f"Venn-Abers at {query:.2f}: {name}", "venn-abers", float(ours), float(their))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rows", type=int, default=1000)
    options = parser.parse_args()
    print(f"seed {options.seed}, {options.rows} rows")
    table = Table()
    for add in (add_scores, add_errors, add_venn_abers):
        add(table, np.random.default_rng(options.seed), options.rows)
    return int(not table.agrees)


if __name__ == "__main__":
    sys.exit(main())
