"""The main job in one minute: calibrate a million scores of a miscalibrated model.

python -m staircase_fast.demo [ROWS] [MODEL_FILE]
"""

from __future__ import annotations

import sys
import time

import numpy as np
from numpy.typing import NDArray

import staircase_fast as sf


def overconfident_model(n: int, seed: int = 0) -> tuple[NDArray[np.float64], NDArray[np.uint8]]:
    """Scores of a model that ranks well and is far too sure of itself, and the labels it was to predict."""
    rng = np.random.default_rng(seed)
    log_odds = rng.normal(-0.5, 1.2, n)
    labels = rng.random(n) < 1 / (1 + np.exp(-log_odds))
    scores = 1 / (1 + np.exp(-(3 * log_odds + 1 + rng.normal(0, 0.3, n))))
    return scores, labels.view(np.uint8)


def brier(p: NDArray[np.float64], labels: NDArray[np.uint8]) -> float:
    """Mean squared error of probabilities."""
    return float(np.mean((p - labels) ** 2))


def log_loss(p: NDArray[np.float64], labels: NDArray[np.uint8]) -> float:
    """Mean log loss; a probability of 0 for what happened costs infinity."""
    with np.errstate(divide="ignore"):
        return float(-np.mean(np.log(np.where(labels == 1, p, 1 - p))))


def main(rows: int = 1_000_000, path: str = "demo-staircase.json") -> None:
    """Fit on one half, judge on the other, write the model."""
    scores, labels = overconfident_model(2 * rows)
    train, test = slice(None, rows), slice(rows, None)

    start = time.perf_counter()
    stairs = sf.fit(scores[train], labels[train], loss="log")
    fitted = time.perf_counter()
    calibrated = stairs(scores[test])
    applied = time.perf_counter()

    stairs.save(path)
    same = sf.Staircase.load(path) == stairs

    print(f"Calibrated {rows:,} scores of an overconfident model (fitted on {rows:,} others).\n")
    print(f"{'':12}{'before':>12}{'after':>12}")
    for name, metric in (("Brier", brier), ("log loss", log_loss)):
        before, after = metric(scores[test], labels[test]), metric(calibrated, labels[test])
        print(f"{name:12}{before:12.5f}{after:12.5f}")
    print(f"\nsteps       {stairs.n_steps:12,}")
    print(f"fit         {rows / (fitted - start):12,.0f} rows per second")
    print(f"predict     {rows / (applied - fitted):12,.0f} rows per second")
    print(f"\nThe model is in {path}; read back, it is {'the same to the last bit' if same else 'DIFFERENT'}.")
    if not same:
        sys.exit(1)


if __name__ == "__main__":
    main(*(kind(argument) for kind, argument in zip((int, str), sys.argv[1:], strict=False)))
