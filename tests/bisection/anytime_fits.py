"""What `Anytime` fits have in common."""

import numpy as np

import staircase_fast as sf


def problem_of(case, seed, n):
    """Rows, and a loss of each kind of parameters."""
    rng = np.random.default_rng([seed, n, *case.name.encode()])
    x = rng.integers(0, n // 2 + 1, n).astype(float) if seed % 2 else rng.permutation(n).astype(float)
    y = rng.normal(size=n)
    if case.domain[0] == "unit":
        y = rng.uniform(0.05, 0.95, n)
    elif case.domain[0] != "real":
        y = rng.gamma(2.0, size=n)
    w = np.append(rng.integers(0, 3, n - 1), 2.0) if seed % 3 else None
    p = case.parameters[seed % min(2, len(case.parameters))] if case.parameters else None
    if case.per_sample and case.parameters and seed % 4 == 3:
        p = rng.choice(case.parameters[:2], n)
    return x, y, {"sample_weight": w, "loss": case.make(p), "increasing": bool(seed % 5 < 3)}


def present(x, w):
    return np.sort(x if w is None else x[w > 0])


def assert_valid(stairs, increasing):
    """All that a staircase promises; the constructor judges the rest."""
    columns = (getattr(stairs, name) for name in ("left", "right", "values", "weights", "counts"))
    made = sf.Staircase(
        *columns, lower=stairs.lower, upper=stairs.upper, loss=stairs.loss, increasing=stairs.increasing
    )
    assert made == stairs
    assert stairs.increasing is increasing
    for bounds in (stairs.lower, stairs.upper):
        rises = np.diff(bounds) if increasing else -np.diff(bounds)
        assert (rises >= 0).all(), bounds
