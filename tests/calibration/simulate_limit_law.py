"""Quantiles of the limit law of the likelihood ratio: `make limit-law` prints the table of calibration/pointwise.py.

B(z) + z**2 is simulated on a grid of -REACH .. REACH.  Its increments, divided by the width of a cell, are targets of
an isotonic regression, whose values are the slopes g of the minorant.  h joins the fits of both halves, limited at 0.
Beyond REACH, g and h agree but for a probability that is far below the error of the quantiles.

The error of a quantile q of level p is about sqrt(p (1 - p) / runs) / density(q); the script prints it.
"""

from __future__ import annotations

import argparse
import multiprocessing

import numpy as np

import staircase_fast as sf

REACH, CELLS = 3.0, 6000
LEVELS = (0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.925, 0.95, 0.975, 0.99, 0.995)
CHUNK = 1000


def simulate(seed: np.random.SeedSequence) -> np.ndarray:
    """A thousand draws of the law."""
    rng, width, half = np.random.default_rng(seed), 2 * REACH / CELLS, CELLS // 2
    drift = (np.arange(CELLS) - half + 0.5) * 2 * width
    found = np.empty(CHUNK)
    for run in range(CHUNK):
        y = drift + rng.standard_normal(CELLS) / np.sqrt(width)
        g = sf.isotonic_regression(y).x
        before, after = sf.isotonic_regression(y[:half]).x, sf.isotonic_regression(y[half:]).x
        h = np.append(np.minimum(before, 0), np.maximum(after, 0))
        found[run] = width * np.sum(g**2 - h**2)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=2001)
    options = parser.parse_args()
    seeds = np.random.SeedSequence(options.seed).spawn(options.runs // CHUNK)
    with multiprocessing.Pool() as pool:
        found = np.sort(np.concatenate(pool.map(simulate, seeds, chunksize=1)))
    print(
        f"seed {options.seed}, {len(found):,} runs, {CELLS:,} cells of {2 * REACH / CELLS:g}\n\nlevel  quantile  error"
    )
    for level in LEVELS:
        low, high = np.quantile(found, [level - 0.004, level + 0.004])
        error = np.sqrt(level * (1 - level) / len(found)) * (high - low) / 0.008
        print(f"{level:<5g}  {np.quantile(found, level):.4f}    {error:.4f}")


if __name__ == "__main__":
    main()
