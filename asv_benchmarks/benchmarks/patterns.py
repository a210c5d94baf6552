"""The data of all benchmarks: scores, targets, sequences and staircases."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import staircase_fast as sf

Column = NDArray[Any]

LEAST_NORMAL = float(np.finfo(float).smallest_normal)

SCORES = {
    "uniform": lambda n, rng: rng.random(n),
    "float32": lambda n, rng: rng.random(n).astype(np.float32),
    "beta": lambda n, rng: rng.beta(0.5, 3, n),
    "log-normal": lambda n, rng: rng.lognormal(0, 3, n),
    "cluster": lambda n, rng: np.where(rng.random(n) < 0.97, 0.5 + 1e-7 * rng.random(n), rng.random(n)),
    "three digits": lambda n, rng: np.round(rng.random(n), 3),
    "all tied": lambda n, rng: np.full(n, 0.5),
    "sorted": lambda n, rng: np.sort(rng.random(n)),
    "reversed": lambda n, rng: np.sort(rng.random(n))[::-1].copy(),
    "outlier": lambda n, rng: np.append(rng.random(n - 1), 1e300),
    "subnormal": lambda n, rng: rng.random(n) * LEAST_NORMAL,
}

SEQUENCES = {
    "noise": lambda n, rng: np.linspace(0, 1, n) + rng.normal(size=n),
    "labels": lambda n, rng: (rng.random(n) < np.linspace(0, 1, n)).astype(float),
    "monotone": lambda n, rng: np.linspace(0, 1, n),
    "reversed": lambda n, rng: np.linspace(1, 0, n),
    "rare events": lambda n, rng: (rng.random(n) < 1e-4).astype(float),
    "sawtooth": lambda n, rng: np.arange(n) % 7 + np.linspace(0, 1, n),
    "cascade": lambda n, rng: np.append(np.arange(1.0, n), -10.0 * n * n),
}

# None: no weights.
TARGETS = {
    "labels": None,
    "real": None,
    "real and weights": lambda n, rng: rng.random(n),
    "real and log-normal weights": lambda n, rng: rng.lognormal(0, 1, n),
    "function of the score": None,  # as many steps as rows
}


class Rows(NamedTuple):
    """The columns of a fit."""

    scores: Column
    targets: Column
    weights: Column | None


def rows(n: int, scores: str = "uniform", targets: str = "labels", seed: int = 0) -> Rows:
    """Rows whose targets tend to rise with the score; the same on every call."""
    rng = np.random.default_rng(seed)
    x = SCORES[scores](n, rng)
    chance = x / LEAST_NORMAL if scores == "subnormal" else x
    if targets == "labels":
        return Rows(x, (rng.random(n) < chance).astype(float), None)
    if targets == "function of the score":
        return Rows(x, np.exp(np.clip(chance, 0, 1)), None)
    y = rng.normal(size=n)
    y += np.clip(chance, 0, 1)
    weights = TARGETS[targets]
    return Rows(x, y, weights and weights(n, rng))


def sequence(n: int, kind: str, seed: int = 0) -> Column:
    """Targets of a sequence."""
    return SEQUENCES[kind](n, np.random.default_rng(seed))


def weights(n: int) -> Column:
    """Weights of a sequence."""
    return np.random.default_rng(3).random(n)


def staircase(n_steps: int) -> sf.Staircase:
    """Steps over scores from 0 to 1, each with a single score."""
    left = np.sort(np.random.default_rng(0).random(n_steps))
    return sf.Staircase(left, left, np.arange(n_steps), np.ones(n_steps), np.ones(n_steps, dtype=int))


def queries(n: int) -> Column:
    """Scores to look up, unsorted."""
    return np.random.default_rng(1).random(n)


def groups(n: int, rows_each: int) -> Column:
    """The group of each row: groups of equal size, shuffled."""
    return np.random.default_rng(2).permutation(np.arange(n) // rows_each)
