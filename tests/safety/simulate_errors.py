"""Show that the debiased errors of calibrated forecasts have mean 0: `make simulate-errors`.

Prints the mean of each measure over many runs, before and after its bias is removed, and the distance of the latter
from 0 in standard errors.  Exits with 1 if a distance is above 3.  relplot's smooth error is added if it is installed.
"""

import argparse
import math
import sys

import numpy as np

import staircase_fast as sf

SIZES = (200, 1000, 10_000)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--runs", type=int, default=400)
    options = parser.parse_args()
    try:
        import relplot
    except ImportError:
        relplot = None
    print(f"seed {options.seed}, {options.runs} runs, forecasts uniform, labels drawn with the forecast probabilities")
    print(f"{'rows':>6}  {'measure':18}{'observed':>10}{'debiased':>11}{'std. error':>12}{'distance':>10}")
    worst = 0.0
    for n in SIZES:
        rng = np.random.default_rng([options.seed, n])
        found, peers = [], []
        for run in range(options.runs):
            forecasts = rng.random(n)
            labels = rng.random(n) < forecasts
            errors = sf.calibration_errors(forecasts, labels, n_resamples=50, seed=[options.seed, n, run])
            found.append([(error.observed, error.debiased) for error in errors.measures.values()])
            if relplot:
                peers.append(relplot.smECE(forecasts, labels.astype(float)))
        table = np.array(found)
        means, errors_of_means = table.mean(axis=0), table.std(axis=0, ddof=1) / math.sqrt(options.runs)
        for name, (observed, debiased), (_, error) in zip(errors.measures, means, errors_of_means, strict=True):
            distance = debiased / error
            worst = max(worst, abs(distance))
            shown = f"{observed:10.6f}{debiased:+11.6f}{error:12.6f}{distance:+10.1f}"
            print(f"{n:6}  {name.replace('_', ' '):18}{shown}", flush=True)
        if peers:
            print(f"{n:6}  {'relplot.smECE':18}{np.mean(peers):10.6f}")
    return int(worst > 3)


if __name__ == "__main__":
    sys.exit(main())
