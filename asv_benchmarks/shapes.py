"""Random shapes of data for the matrix of benchmarks.  Each is described by a short recipe, which reproduces it."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from benchmarks.patterns import Column, Rows

Draw = Callable[[int, np.random.Generator], Column]

PARTS: dict[str, Draw] = {
    "uniform": lambda n, rng: rng.random(n),
    "normal": lambda n, rng: rng.normal(size=n),
    "log-normal": lambda n, rng: rng.lognormal(0, 3, n),
    "beta": lambda n, rng: rng.beta(0.5, 3, n),
    "cauchy": lambda n, rng: rng.standard_cauchy(n),
    "grid": lambda n, rng: rng.integers(0, 1000, n) / 1000,
    "atoms": lambda n, rng: rng.choice(rng.normal(size=5), n),
}
ORDERS = ("unsorted", "unsorted", "sorted", "nearly sorted")
LABEL_TYPES = ("bool", "uint8", "int8", "int64", "float32", "float64")
TARGETS = ("labels", "labels", "counts", "little noise", "much noise", "decimals")
WEIGHTS: dict[str, Draw] = {
    "random": lambda n, rng: 1 - rng.random(n),
    "log-normal": lambda n, rng: rng.lognormal(0, 1, n),
    "integers": lambda n, rng: rng.integers(1, 10, n),
    "decimals": lambda n, rng: rng.integers(1, 100, n) / 10,
}
SEQUENCES: dict[str, Draw] = {
    "noise": lambda n, rng: np.linspace(0, 1, n) + rng.normal(size=n),
    "labels": lambda n, rng: (rng.random(n) < np.linspace(0, 1, n)).astype(float),
    "rare labels": lambda n, rng: (rng.random(n) < 0.01).astype(float),
    "rising": lambda n, rng: np.sort(rng.random(n)),
    "falling": lambda n, rng: np.sort(rng.random(n))[::-1].copy(),
    "random walk": lambda n, rng: np.cumsum(rng.normal(size=n)),
    "decimal walk": lambda n, rng: np.cumsum(np.round(rng.normal(size=n), 1)),
    "decimals": lambda n, rng: np.round(np.linspace(0, 1, n) + rng.normal(size=n), 2),
    "sawtooth": lambda n, rng: np.arange(n) % 7 + np.linspace(0, 1, n),
}


class Shape(NamedTuple):
    """A recipe, and the seed of its random numbers."""

    seed: int
    parts: tuple[str, ...]
    scale: float
    order: str
    dtype: str
    targets: str
    rate: float  # of labels
    label_type: str
    weights: str | None

    def __str__(self) -> str:
        targets = f"{self.rate:.2g} {self.label_type} labels" if self.targets == "labels" else self.targets
        weights = f", {self.weights} weights" if self.weights else ""
        return f"{'+'.join(self.parts)} * {self.scale:.0e} {self.dtype}, {self.order}; {targets}{weights} [{self.seed}]"


def draw_shape(seed: int) -> Shape:
    """The shape with this number."""
    rng = np.random.default_rng(seed)
    return Shape(
        seed,
        tuple(str(part) for part in rng.choice(list(PARTS), rng.integers(1, 4), replace=False)),
        10.0 ** rng.uniform(-9, 6),
        str(rng.choice(ORDERS)),
        str(rng.choice(("float64", "float64", "float32"))),
        str(rng.choice(TARGETS)),
        10.0 ** rng.uniform(-3, 0),
        str(rng.choice(LABEL_TYPES)),
        str(rng.choice(list(WEIGHTS))) if rng.random() < 0.5 else None,
    )


def rows_of(shape: Shape, n: int, variant: int = 0) -> Rows:
    """The rows of a shape; each variant has other random numbers."""
    rng = np.random.default_rng([shape.seed, n, variant])
    sizes = np.diff(np.round(np.linspace(0, n, len(shape.parts) + 1)).astype(int))
    x = np.concatenate([PARTS[part](size, rng) for part, size in zip(shape.parts, sizes, strict=True)])
    rng.shuffle(x)
    if shape.order != "unsorted":
        x.sort()
    if shape.order == "nearly sorted":
        near = rng.integers(0, min(n, 10), max(1, n // 100))
        moved = rng.integers(0, n - near.max(), len(near))
        x[moved], x[moved + near] = x[moved + near], x[moved]
    rank = np.argsort(np.argsort(x)) / n  # targets rise with the score, whatever its distribution
    x = (x * shape.scale).astype(shape.dtype)
    return Rows(x, targets_of(shape, rank, rng), None if shape.weights is None else WEIGHTS[shape.weights](n, rng))


def targets_of(shape: Shape, rank: Column, rng: np.random.Generator) -> Column:
    """Targets that tend to rise with the rank of the score."""
    n = len(rank)
    if shape.targets == "labels":
        return (rng.random(n) < shape.rate * (0.5 + 0.5 * rank)).astype(shape.label_type)
    if shape.targets == "counts":
        return rng.poisson(3 * rank)
    noise = rng.normal(size=n)
    if shape.targets == "decimals":
        return np.round(rank + noise, 2)
    return rank + noise * (1e-4 if shape.targets == "little noise" else 1.0)


class Sequence(NamedTuple):
    """A recipe of a sequence for `isotonic_regression`."""

    seed: int
    kind: str
    weights: str | None

    def __str__(self) -> str:
        return f"{self.kind}{f', {self.weights} weights' if self.weights else ''} [{self.seed}]"


def draw_sequence(seed: int) -> Sequence:
    """The sequence with this number."""
    rng = np.random.default_rng(seed)
    weights = str(rng.choice(list(WEIGHTS))) if rng.random() < 0.4 else None
    return Sequence(seed, str(rng.choice(list(SEQUENCES))), weights)


def sequence_of(shape: Sequence, n: int, variant: int = 0) -> tuple[Column, Column | None]:
    """The targets and weights of a sequence; each variant has other random numbers."""
    rng = np.random.default_rng([shape.seed, n, variant])
    y = SEQUENCES[shape.kind](n, rng)
    return y, None if shape.weights is None else WEIGHTS[shape.weights](n, rng).astype(float)
