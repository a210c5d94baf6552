"""Pushing quiet buckets as one block gives the same result as pushing every row, bit for bit."""

import numpy as np
import pytest
from comparing import assert_same_bits

from staircase_fast.arithmetic import _scan
from staircase_fast.arithmetic.exact import UNIT_WEIGHTS, Extent, scale_of
from staircase_fast.stack import _sorted_rows

N = 20_000
RNG = np.random.default_rng(5)
TREND = np.linspace(-1, 1, N)
NOISE = RNG.normal(size=N)

TARGETS = {
    "noise": TREND + NOISE,
    "float32 noise": (TREND + NOISE).astype(np.float32),
    "little noise": TREND + 1e-3 * NOISE,
    "labels": (RNG.random(N) < 0.5 + TREND / 3).astype(np.uint8),
    "rare labels": (RNG.random(N) < 0.001).astype(np.int8),
    "integers": np.round(3 * (TREND + NOISE)).astype(np.int32),
    "large integers": RNG.integers(-(2**62), 2**62, N),
    "integers whose sums no double holds": RNG.integers(-(2**46), 2**46, N),
    "small integers whose sums no double holds": 2**43 + RNG.integers(0, 2**43, N),
    "separated labels": (TREND > -0.3).astype(np.uint8),
    "plateaus": np.repeat(RNG.integers(0, 3, N // 100), 100) / 3,
    "decimals": np.round(TREND + NOISE, 1),
    "flat": np.full(N, 0.1),
    "increasing": TREND,
    "decreasing": -TREND,
    "sawtooth": np.arange(N) % 7 + TREND,
    "cascade": np.append(np.arange(1.0, N), -10.0 * N * N),
    "outliers": np.where(RNG.random(N) < 0.01, 1e16, TREND + NOISE),
    "huge": 1e300 * (TREND + NOISE),
    "tiny": 5e-324 * RNG.integers(-3, 4, N),
    # the path through the bucket borders is a straight line, and rows are on it or a rounding error away
    "on the chord": np.tile([1.0, -1.0], N // 2),
    "an ulp off the chord": np.tile([1.0, -1.0, 1.0 + 2**-52, -1.0], N // 4),
    "chords of all kinds": np.repeat(RNG.normal(size=N // 16), 16) + np.tile([1.0, -1.0, 0.5, -0.5], N // 4),
}
WEIGHTS = {
    "no weights": np.empty(0),
    "weights": RNG.random(N) + 0.1,
    "integer weights": RNG.integers(1, 5, N).astype(float),
    "uneven weights": np.exp(10 * RNG.normal(size=N)),
}


def merged(scores, targets, weights, *, decreasing, every_row):
    weights_extent = Extent(*_scan.extent(weights)) if len(weights) else UNIT_WEIGHTS
    scale = scale_of(Extent(*_scan.extent(targets)), weights_extent, N)
    starts, values, step_weights = np.empty(N + 1, dtype=np.intp), np.empty(N), np.empty(N)
    work = np.empty(_sorted_rows.work_size(N, scale.s_words + scale.w_words), dtype=np.uint64)
    n_steps = _sorted_rows.merge(
        scores, targets, weights, scale, decreasing, -np.inf, np.inf, every_row, False,
        starts, values, step_weights, work,
    )  # fmt: skip
    return starts[: n_steps + 1], values[:n_steps], step_weights[:n_steps]


@pytest.mark.parametrize("decreasing", [False, True])
@pytest.mark.parametrize("ties", [0, 0.3, 0.99, 1])
@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("targets", TARGETS)
def test_buckets_change_nothing(targets, weights, ties, decreasing):
    scores = np.cumsum(np.random.default_rng(7).random(N) >= ties).astype(float) if ties else np.empty(0)
    case = scores, TARGETS[targets], WEIGHTS[weights]
    every_row, planned = (merged(*case, decreasing=decreasing, every_row=every) for every in (True, False))
    np.testing.assert_array_equal(planned[0], every_row[0])
    assert_same_bits(planned[1], every_row[1])
    assert_same_bits(planned[2], every_row[2])
