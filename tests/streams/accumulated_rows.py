"""Rows for an `Accumulator`, of every kind that it stores in its own way."""

from typing import Any

import numpy as np
from strategies import TINY

import staircase_fast as sf

TOTAL = 600


def accumulated(parts: Any, **options: Any) -> sf.Accumulator:
    """An accumulator of batches: tuples of scores, targets and optional weights."""
    seen = sf.Accumulator(**options)
    for part in parts:
        seen.add(*part)
    return seen


def example_rows(kind: str, n: int = TOTAL) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(7)
    x, w = rng.random(n), None
    y: Any = (rng.random(n) < x).astype(float)
    if "all tied" in kind:
        x = np.full(n, 0.5)
    elif "tied" in kind:
        x = rng.integers(-n // 8, n // 8, n).astype(float) / 4
    if "bool" in kind:
        y = y > 0
    if "integers" in kind:
        y = rng.integers(-9, 99, n)
    if "noise" in kind:
        y = x + rng.normal(size=n)
    if "huge integers" in kind:
        y = rng.integers(-(2**63), 2**63 - 1, n)
    if "decades" in kind:
        y = y * 10.0 ** rng.uniform(-300, 300, n)
    if "cancelling" in kind:
        y = rng.choice([1e16, -1e16, 0.1, 0.3], n)
    if "denormal" in kind:
        y = rng.integers(-9, 9, n) * TINY
    if "integer weights" in kind:
        w = rng.integers(0, 5, n)
    if "large weights" in kind:
        w = rng.integers(1, 5, n) * 2**31
    if "real weights" in kind:
        w = rng.random(n) + 0.01
    if "wide weights" in kind:
        w = 10.0 ** rng.uniform(-300, 300, n)
    return x, y, w


KINDS = {
    "labels": "rows",
    "bool labels, tied": "rows and tallies",
    "integers, tied": "rows and tallies",
    "integers, tied, integer weights": "rows and tallies",
    "labels, tied, large weights": "rows and pools",
    "noise": "rows",
    "noise, tied": "rows and pools",
    "noise, integer weights": "rows",
    "noise, tied, real weights": "rows and pools",
    "huge integers": "rows and tallies and pools",
    "huge integers, tied, real weights": "pools",
    "decades, tied": "rows and tallies and pools",
    "cancelling, tied": "rows and tallies and pools",
    "cancelling, tied, wide weights": "rows and pools",
    "denormal, tied": "rows and pools",
    "denormal, tied, wide weights": "rows and pools",
    "decades, tied, wide weights": "rows and pools",
}
