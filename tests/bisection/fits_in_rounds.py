"""Problems for fits in rounds, and how close the fits must be to the references.

How close is close: a sum of slopes is right to some ulps of its terms, so a root of it is right to some ulps of the
targets it lies between, not of itself (the root of targets -1 and 1 is 0, and its ulps are below any that matter).
`size_of` is that size; Power of an exponent near 1 is flat around its root, and worse by 1 / (exponent - 1).
"""

import itertools

import mpmath
import numpy as np
import pytest
from loss_table import OTHERS, STRICT, Case
from mpmath import mpf
from reference import (
    Sample,
    general_steps,
    middle_steps,
    step_value,
)

import staircase_fast as sf

L = sf.losses
EPS = 2.0**-52
every_other = pytest.mark.parametrize("case", OTHERS, ids=repr)
every_strict = pytest.mark.parametrize("case", STRICT, ids=repr)

TARGETS = {
    "integers": lambda rng, n: rng.integers(-5, 6, n).astype(float),
    "labels": lambda rng, n: rng.integers(0, 2, n).astype(float),
    "decimals": lambda rng, n: np.round(3 * rng.normal(size=n), 1),
    "normal": lambda rng, n: rng.normal(size=n),
    "large": lambda rng, n: 1e4 + rng.normal(size=n),
    "neighbours": lambda rng, n: 1 + rng.integers(0, 7, n) * EPS,
    "monotone": lambda rng, n: np.sort(rng.normal(size=n)),
    "reversed": lambda rng, n: np.sort(rng.normal(size=n))[::-1].copy(),
    "doubling": lambda rng, n: 2.0 ** np.arange(-4, n - 4) / 2.0 ** max(0, n - 8),
    "halving": lambda rng, n: 2.0 ** -np.arange(n),
    "sawtooth": lambda rng, n: np.arange(n) % 3 + 0.1 * np.arange(n),
    "one outlier": lambda rng, n: np.where(np.arange(n) == n // 2, -30.0, np.arange(n) / 10),
}
WEIGHTS = {
    "none": lambda rng, n: None,
    "integers": lambda rng, n: np.append(rng.integers(0, 4, n - 1), 1.0),
    "decimals": lambda rng, n: rng.integers(1, 30, n) / 10,
    "twelve decades": lambda rng, n: 10.0 ** rng.uniform(-6, 6, n),
}
SCORES = {
    "distinct": lambda rng, n: rng.permutation(n).astype(float),
    "ties": lambda rng, n: rng.integers(0, n // 2 + 1, n).astype(float),
}


def problems(case: Case, seeds: range, most: int = 14):
    """Random rows of every kind of targets: scores, targets, options of `fit`, and the parameter of each row."""
    for seed, (kind, targets_of) in itertools.product(seeds, TARGETS.items()):
        rng = np.random.default_rng([seed, *kind.encode(), *case.name.encode()])
        n = int(rng.integers(1, most + 1))
        y = targets_of(rng, n)
        if case.kind is L.Logistic:
            spread = np.ptp(y) or 1.0
            y = np.clip(np.round((y - y.min()) / spread, 3), 0.001, 0.999)
        scores_of, weights_of = (table[rng.choice(list(table))] for table in (SCORES, WEIGHTS))
        parameters = [p for p in case.parameters if abs(p) < 100 and not (case.kind is L.LogCosh and p < 0.1)]
        p = rng.choice(parameters, n) if seed % 2 else np.full(n, rng.choice(parameters))
        loss = case.make(p if seed % 2 else float(p[0]))
        options = {"sample_weight": weights_of(rng, n), "increasing": bool(rng.random() < 0.5), "loss": loss}
        yield scores_of(rng, n), y, options, p


def samples_of(case: Case, x, y, options, p) -> list[Sample]:
    w = np.ones(len(x)) if options["sample_weight"] is None else options["sample_weight"]

    def derivative(p, y):
        return lambda z: case.derivative(p, mpf(z), y)

    return [Sample(x[i], mpf(w[i]), derivative(mpf(p[i]), mpf(y[i]))) for i in range(len(x)) if w[i] > 0]


def digits_for(case: Case, y, p) -> int:
    """How many decimal digits hold the tails of slopes beside what they level off to, and a cushion."""
    spread = float(np.ptp(y))
    tail = {L.LogCosh: lambda: 2 * spread / p.min(), L.Linex: lambda: spread * np.abs(p).max()}
    return 100 + int(min(tail.get(case.kind, lambda: 0.0)() / 2.3, 3000))


def expected(case: Case, x, y, options, p) -> tuple[np.ndarray, np.ndarray]:
    """Distinct scores of rows that are present, and the optimal value there, rounded up to a float."""
    samples = samples_of(case, x, y, options, p)
    scores = sorted({s.score for s in samples})
    low, high = (-800.0, 800.0) if case.kind is L.Logistic else (y.min(), y.max())
    with mpmath.workdps(digits_for(case, y, p)):
        least = general_steps(samples, low, high, increasing=options["increasing"])
        if case.kind is L.Huber:
            greatest = general_steps(samples, low, high, increasing=options["increasing"], greatest=True)
            return np.array(scores), np.array([v for _, v in middle_steps(least, greatest, scores)])
    return np.array(scores), np.array([step_value(least, score) for score in scores])


def size_of(case: Case, y, p, values) -> np.ndarray:
    """The size whose ulps the values are right to."""
    size = np.maximum(np.abs(values), 1.0 if case.kind is L.Logistic else np.abs(y).max())
    return size / min(1.0, p.min() - 1) if case.kind is L.Power else size


def at(stairs: sf.Staircase, column: str, scores) -> np.ndarray:
    return getattr(stairs, column)[np.searchsorted(stairs.left, scores, side="right") - 1]


def assert_monotone(stairs: sf.Staircase) -> None:
    rises = np.diff(stairs.values)
    assert (rises > 0).all() if stairs.increasing else (rises < 0).all(), stairs.values
    assert (stairs.lower <= stairs.values).all()
    assert (stairs.values <= stairs.upper).all()
