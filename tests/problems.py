"""Random problems under every loss: a list of losses with valid targets."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator

import staircase_fast as sf

L = sf.losses


class Problem(NamedTuple):
    """The arguments of `fit`."""

    scores: Any
    targets: Any
    options: dict[str, Any]  # sample_weight, loss, increasing, bounds

    def fit(self) -> sf.Staircase:
        return sf.fit(self.scores, self.targets, **self.options)

    def certify(self, stairs: sf.Staircase) -> sf.Certificate:
        others = {name: given for name, given in self.options.items() if name != "increasing"}
        return sf.certify(stairs, self.scores, self.targets, **others)


def reals(rng: Generator, ranks: np.ndarray) -> np.ndarray:
    n = len(ranks)
    trend = rng.choice([0.0, 1.0, 10.0]) * ranks
    kind = rng.integers(7)
    if kind == 0:
        return np.round(trend + rng.normal(size=n), 1)
    if kind == 1:
        return rng.integers(-3, 4, n).astype(float)
    if kind == 2:
        return trend + rng.standard_cauchy(n)
    if kind == 3:
        return 1e6 + trend + rng.normal(size=n)
    if kind == 4:
        return 1e-9 * (trend + rng.normal(size=n))
    if kind == 5:
        return trend + rng.choice([0.0, 1e-3]) * rng.normal(size=n)
    return trend + rng.normal(size=n)


def counts(rng: Generator, ranks: np.ndarray) -> np.ndarray:
    return rng.poisson(rng.choice([0.1, 1.0, 20.0]) * (0.2 + ranks)).astype(float)


def positives(rng: Generator, ranks: np.ndarray) -> np.ndarray:
    return np.maximum(rng.gamma(rng.choice([0.3, 3.0]), size=len(ranks)) * (0.2 + ranks), 1e-300)


def labels(rng: Generator, ranks: np.ndarray) -> np.ndarray:
    drawn = rng.random(len(ranks)) < rng.choice([0.02, 0.5, 1.0]) * ranks
    return drawn if rng.random() < 0.5 else drawn.astype(float)


def shares(rng: Generator, ranks: np.ndarray) -> np.ndarray:
    if rng.random() < 0.5:
        return labels(rng, ranks)
    return np.clip(np.round(ranks + 0.5 * rng.normal(size=len(ranks)), 1), 0.0, 1.0)


def sizes(rng: Generator, n: int) -> np.ndarray:
    return rng.choice([0.01, 1.0, 3.0]) * np.exp(rng.normal(size=n))


def levels(rng: Generator, n: int) -> np.ndarray:
    return rng.integers(1, 10, n) / 10


def small(rng: Generator, ranks: np.ndarray) -> np.ndarray:
    """Targets so close that the exponentials of their differences do not overflow."""
    return np.clip(rng.choice([0.0, 1.0, 10.0]) * ranks + rng.normal(size=len(ranks)), -50, 50)


# For each name: the loss of n rows, and its targets.
LOSSES: dict[str, tuple[Callable[[Generator, int], sf.losses.Loss], Callable[[Generator, np.ndarray], np.ndarray]]] = {
    "squared": (lambda rng, n: L.SquaredError(), reals),
    "log": (lambda rng, n: L.LogLoss(), shares),
    "poisson": (lambda rng, n: L.PoissonDeviance(), counts),
    "poisson, exposures": (lambda rng, n: L.PoissonDeviance(sizes(rng, n)), counts),
    "gamma": (lambda rng, n: L.GammaDeviance(), positives),
    "tweedie -1.5": (lambda rng, n: L.TweedieDeviance(-1.5), reals),
    "tweedie 0": (lambda rng, n: L.TweedieDeviance(0), reals),
    "tweedie 1": (lambda rng, n: L.TweedieDeviance(1), counts),
    "tweedie 1.5": (lambda rng, n: L.TweedieDeviance(1.5), counts),
    "tweedie 2": (lambda rng, n: L.TweedieDeviance(2), positives),
    "tweedie 3": (lambda rng, n: L.TweedieDeviance(3), positives),
    "logistic": (lambda rng, n: L.Logistic(), shares),
    "logistic, offsets": (lambda rng, n: L.Logistic(rng.normal(size=n) * rng.choice([0.1, 5.0])), shares),
    "linex": (lambda rng, n: L.Linex(rng.choice([-2.0, -0.1, 0.5, 1.0])), small),
    "linex, shapes": (lambda rng, n: L.Linex(rng.choice([-1.0, 0.3, 1.0, 2.0], n)), small),
    "expectile": (lambda rng, n: L.Expectile(rng.choice([0.1, 0.5, 0.9])), reals),
    "expectile, levels": (lambda rng, n: L.Expectile(levels(rng, n)), reals),
    "quantile lower": (lambda rng, n: L.Quantile(rng.choice([0.1, 0.5, 0.7])), reals),
    "quantile middle": (lambda rng, n: L.Quantile(rng.choice([0.1, 0.5, 0.7]), side="middle"), reals),
    "quantile upper": (lambda rng, n: L.Quantile(rng.choice([0.1, 0.5, 0.7]), side="upper"), reals),
    "quantile, levels": (lambda rng, n: L.Quantile(levels(rng, n)), reals),
    "huber": (lambda rng, n: L.Huber(rng.choice([0.01, 1.0, 30.0])), reals),
    "huber, deltas": (lambda rng, n: L.Huber(sizes(rng, n)), reals),
    "pseudo-huber": (lambda rng, n: L.PseudoHuber(rng.choice([0.01, 1.0, 30.0])), reals),
    "pseudo-huber, deltas": (lambda rng, n: L.PseudoHuber(sizes(rng, n)), reals),
    "log-cosh": (lambda rng, n: L.LogCosh(rng.choice([0.01, 1.0, 30.0])), reals),
    "log-cosh, scales": (lambda rng, n: L.LogCosh(sizes(rng, n)), reals),
    "power 1.1": (lambda rng, n: L.Power(1.1), reals),
    "power 1.5": (lambda rng, n: L.Power(1.5), reals),
    "power 3": (lambda rng, n: L.Power(3), reals),
    "power 8": (lambda rng, n: L.Power(8), reals),
    "power, exponents": (lambda rng, n: L.Power(rng.choice([1.2, 1.5, 2.0, 4.0], n)), reals),
}


def scores_of(rng: Generator, n: int) -> np.ndarray:
    kind = rng.integers(7)
    if kind == 0:
        return rng.integers(0, max(2, n // 5), n)
    if kind == 1:
        return np.sort(rng.random(n))
    if kind == 2:
        return rng.random(n).astype(np.float32)
    if kind == 3:
        return rng.choice([-np.inf, -1.0, -0.0, 0.0, 2.5, np.inf], n)
    if kind == 4:
        return np.arange(n)[::-1].astype(float)
    return rng.normal(size=n)


def weights_of(rng: Generator, n: int) -> np.ndarray | None:
    kind = rng.integers(6)
    if kind == 0:
        w = rng.integers(0, 4, n).astype(float)
        w[rng.integers(n)] = 1.0
        return w
    if kind == 1:
        return rng.random(n) + 1e-3
    if kind == 2:
        return np.exp(4 * rng.normal(size=n))
    if kind == 3:
        return rng.integers(1, 30, n) / 10
    return None


def problem_of(rng: Generator, name: str, n: int) -> Problem:
    """A problem of n rows under a loss of the list."""
    loss_of, targets_of = LOSSES[name]
    scores, rising = scores_of(rng, n), bool(rng.random() < 0.7)
    ranks = np.argsort(np.argsort(scores, kind="stable")) / n
    targets = targets_of(rng, ranks if rising else 1 - ranks)
    options: dict[str, Any] = {"sample_weight": weights_of(rng, n), "loss": loss_of(rng, n), "increasing": rising}
    if rng.random() < 0.3 and name != "tweedie -1.5":  # its values cannot be below 0
        low, high = np.sort(rng.choice(np.asarray(targets, dtype=float), 2))
        options["bounds"] = rng.choice(np.array([(low, high), (low, None), (None, high)], dtype=object)).tolist()
    if name.startswith("logistic"):
        options["bounds"] = [(-np.inf, np.inf), (-3.0, 2.0), (-np.inf, 0.5)][rng.integers(3)]
    return Problem(scores, targets, options)
