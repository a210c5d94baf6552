"""Derivatives as a user would write them, rows for them, and how close two fits must be."""

import ctypes
import math

import numpy as np

import staircase_fast as sf

L = sf.losses
Custom, UpdateRule = L.Custom, L.UpdateRule
EPS = 2.0**-52


def difference(z, y):
    return z - y


def squared(z, y, factor=2.0):
    return factor * (z - y)


def rows_of(name, seed, n):
    """Scores with ties, targets, weights with zeros."""
    rng = np.random.default_rng([seed, *name.encode()])
    x = rng.integers(0, n // 2 + 1, n).astype(float) if seed % 2 else rng.permutation(n).astype(float)
    y = rng.uniform(0.05, 0.95, n) if name == "logistic" else rng.normal(size=n)
    w = np.append(rng.integers(0, 3, n - 1), 2.0) if seed % 3 else None
    return rng, x, y, w


def assert_close_staircase(found, wanted, size=1.0):
    for column in ("left", "right", "counts", "weights"):
        np.testing.assert_array_equal(getattr(found, column), getattr(wanted, column), err_msg=column)
    assert (np.abs(found.values - wanted.values) <= 16 * EPS * np.maximum(size, np.abs(wanted.values))).all()
    assert (found.lower <= found.values).all()
    assert (found.values <= found.upper).all()


DOUBLES = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double, ctypes.c_double)


plain = DOUBLES(lambda z, y: math.tanh(z - y))
