"""How often bands keep their promise: `make coverage-simulation` prints the tables of docs/uncertainty.md.

Scores u are uniform.  Labels are 1 with probability f(u), for six increasing functions f.  Each cell has its own seed,
derived from the seed that is printed, so a cell can be repeated alone.

confidence   runs in which f lies within the confidence band at every score
consistency  runs in which the curve of the calibrated forecasts f(u) lies within its consistency band everywhere
pointwise    runs in which f is within its pointwise interval at the scores 0.25, 0.5 and 0.75; only for f with a
             positive slope
uniform      Kolmogorov-Smirnov p-value of the p-values of calibrated forecasts; they have steps of
             1 / (resamples + 1), within which they are spread at random.  Few distinct forecasts make p-values
             discrete, and larger than uniform
power        runs in which p-values are at most 1 - level, for forecasts u although f(u) = u**2
"""

from __future__ import annotations

import argparse
import multiprocessing

import numpy as np
from scipy import stats

import staircase_fast as sf

LEVEL = 0.9
RESAMPLES = 499
TRUTHS = {
    "p": lambda u: u,
    "p^2": lambda u: u**2,
    "0.3": lambda u: np.full_like(u, 0.3),
    "two levels": lambda u: np.where(u < 0.5, 0.2, 0.7),
    "0.01": lambda u: np.full_like(u, 0.01),
    "sigmoid": lambda u: 1.0 / (1.0 + np.exp(-30.0 * (u - 0.5))),
}
SLOPED = ("p", "p^2", "sigmoid")
POINTS = np.array([0.25, 0.5, 0.75])


def simulate(cell: tuple[str, int, int, int]) -> dict[str, object]:
    """One cell: the name of f, the number of rows, the number of runs, the seed."""
    name, n, runs, seed = cell
    entropy = (seed, list(TRUTHS).index(name), n)
    rng = np.random.default_rng(entropy)
    confidence, pointwise, consistency, ranks, power = [], [], [], [], []
    for run in range(runs):
        u = rng.random(n)
        truth = TRUTHS[name](u)
        y = rng.random(n) < truth
        found = sf.reliability(u, y, bands="confidence", level=LEVEL, n_threads=1).bands
        lower, upper = found.at(u)
        confidence.append(np.all((lower <= truth) & (truth <= upper)))
        if name in SLOPED:
            low, high = sf.reliability(u, y, bands="pointwise", level=LEVEL, n_threads=1).bands.at(POINTS)
            pointwise.append((low <= TRUTHS[name](POINTS)) & (TRUTHS[name](POINTS) <= high))
        options = {"bands": "consistency", "level": LEVEL, "n_resamples": RESAMPLES, "n_threads": 1}
        drawn = np.random.SeedSequence(entropy, spawn_key=(run,))
        calibrated = sf.reliability(truth, y, seed=drawn, **options)
        band, curve = calibrated.bands, calibrated.stairs(calibrated.bands.x)
        consistency.append(np.all((band.lower <= curve) & (curve <= band.upper)))
        ranks.append(band.p_value - rng.random() / (RESAMPLES + 1))
        if name == "p^2":
            other = sf.reliability(u, y, seed=drawn, **options).bands
            power.append((found.p_value <= 1 - LEVEL, other.p_value <= 1 - LEVEL))
    shares = np.mean(power, axis=0) if power else (np.nan, np.nan)
    uniform = stats.kstest(ranks, "uniform").pvalue
    return {"confidence": np.mean(confidence), "consistency": np.mean(consistency), "uniform": uniform,
            "pointwise": np.mean(pointwise, axis=0) if pointwise else POINTS * np.nan,
            "power of confidence": shares[0], "power of consistency": shares[1]}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=18)
    parser.add_argument("--rows", type=int, nargs="+", default=[100, 1000, 10_000])
    parser.add_argument("--truths", choices=TRUTHS, nargs="+", default=list(TRUTHS), metavar="f")
    options = parser.parse_args()
    print(f"seed {options.seed}, {options.runs} runs per cell, level {LEVEL:.0%}, {RESAMPLES} resamples")
    print("\n| f | rows | confidence | consistency | uniform |\n|---|---|---|---|---|", flush=True)
    cells = [(name, n, options.runs, options.seed) for n in options.rows for name in options.truths]
    points, powers = [], []
    with multiprocessing.Pool() as pool:
        for (name, n, *_), one in zip(cells, pool.imap(simulate, cells), strict=True):
            print(f"| {name} | {n:,} | {one['confidence']:.1%} | {one['consistency']:.1%} | {one['uniform']:.3f} |",
                  flush=True)  # fmt: skip
            if name in SLOPED:
                points.append(f"| {name} | {n:,} | {' | '.join(f'{share:.1%}' for share in one['pointwise'])} |")
            if name == "p^2":
                powers.append(f"| {n:,} | {one['power of confidence']:.1%} | {one['power of consistency']:.1%} |")
    print("\n| f | rows | pointwise at 0.25 | at 0.5 | at 0.75 |\n|---|---|---|---|---|", *points, sep="\n")
    print("\n| rows | power, confidence band | power, resamples |\n|---|---|---|", *powers, sep="\n")


if __name__ == "__main__":
    main()
