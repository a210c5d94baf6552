"""Test data for exports: staircases of all kinds, and the scores at which an export could fail."""

import math

import numpy as np
from numpy.typing import NDArray

import staircase_fast as sf

inf = math.inf
LARGEST, LEAST = float(np.finfo(np.float64).max), 5e-324


def of_ends(left: list[float], right: list[float], values: list[float], *, increasing: bool = True) -> sf.Staircase:
    n = len(left)
    return sf.Staircase(left, right, values, np.ones(n), np.ones(n, dtype=np.int64), increasing=increasing)


def many(n: int, seed: int, *, increasing: bool = True) -> sf.Staircase:
    """Steps with random spacing, some with a single score."""
    rng = np.random.default_rng(seed)
    ends = np.unique(rng.standard_normal(2 * n) * 10.0 ** rng.integers(-5, 5, 2 * n))
    left, right = ends[0::2], ends[1::2].copy()
    right[::3] = left[::3]
    values = np.sort(rng.standard_normal(n))
    return of_ends(left, right, values if increasing else values[::-1], increasing=increasing)


STAIRCASES = {
    "one step": of_ends([0.25], [0.75], [0.1]),
    "one score": of_ends([3.0], [3.0], [-2.0]),
    "two steps": sf.fit([1, 2], [0.1, 0.2]),
    "probabilities": sf.fit([0.1, 0.4, 0.35, 0.8], [0, 0, 1, 1], loss="log"),
    "falling": sf.fit(range(20), [-(one**1.5) for one in range(20)], increasing=False),
    "digits": of_ends([0.1, 1 / 3, 2 / 3, 1e22], [0.2, 0.5, 0.7, 1e23], [0.1 + 0.2, 1 / 3 + 1, 123456789.1, 1e300]),
    "subnormal": of_ends([-LEAST, LEAST, 3e-310], [-LEAST, 1e-310, 4e-310], [-1e-320, LEAST, 1e-5]),
    "huge": of_ends([-1e300, 1e300], [-1e299, 1e301], [-1e8, 1e8]),
    "neighbours": of_ends([1.0, np.nextafter(1.0, 2.0)], [1.0, np.nextafter(1.0, 2.0)], [0.0, 1.0]),
    "around zero": of_ends([-1.0, -0.0, 1.0], [-0.5, 0.0, 1.0], [-1.0, 0.0, 2.0]),
    "from minus infinity": of_ends([-inf, 1.0, 4.0], [-inf, 2.0, 5.0], [0.1, 0.7, 0.9]),
    "to infinity": of_ends([1.0, 4.0], [3.0, inf], [0.1, 0.7]),
    "infinite at last": of_ends([1.0, inf], [3.0, inf], [0.7, 0.1], increasing=False),
    "both infinities": of_ends([-inf, inf], [-inf, inf], [0.1, 0.7]),
    "as many as a CASE has": many(64, 1),
    "one more": many(65, 2),
    "a table": many(500, 3),
    "a table, falling": many(300, 4, increasing=False),
}
# the slope of a line overflows or underflows float64: only steps can be exported
STEPS_ONLY = {
    "gap overflows": of_ends([-LARGEST, LARGEST], [-LARGEST, LARGEST], [0.0, 1.0]),
    "slope overflows": of_ends([0.0, LEAST], [0.0, LEAST], [0.0, 1.0]),
    "slope underflows": of_ends([0.0, 1e300], [0.0, 1e300], [0.0, 1e-300]),
    "infinite values": sf.fit([1, 2, 3], [0, 0.5, 1], loss="logistic", bounds=(-inf, inf)),
    "zeros of both signs": of_ends([0.0], [1.0], [-0.0]),
}
STEPS_ONLY_SLOPES = [name for name in STEPS_ONLY if name != "zeros of both signs"]


def queries(stairs: sf.Staircase) -> NDArray[np.float64]:
    """Both ends of every step, the floats next to them, points between steps, and extreme scores."""
    ends = np.concatenate([stairs.left, stairs.right])
    with np.errstate(all="ignore"):
        beside = [np.nextafter(ends, -inf), np.nextafter(ends, inf)]
        between = [stairs.right[:-1] * (1 - part) + stairs.left[1:] * part for part in (0.3, 0.5, 0.9)]
    special = [-inf, -LARGEST, -1.0, -LEAST, -0.0, 0.0, LEAST, 1.0, LARGEST, inf]
    found = np.concatenate([np.unique(np.concatenate([ends, *beside, *between])), special])
    return found[~np.isnan(found)]
