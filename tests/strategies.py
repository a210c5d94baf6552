"""Hypothesis strategies for rows, including extreme values that real data rarely contain.

Rows are drawn as lists of (score, target, weight), so that hypothesis can shrink a failure to a few rows.  Scores,
targets and weights are each of one kind per example: mixing all kinds would make ties and plateaus rare.
"""

import math
from typing import NamedTuple

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

MAX_ROWS = 24
TINY = 5e-324  # the least positive float64, a denormal number
HUGE = 1.7976931348623157e308

signs = st.sampled_from([-1.0, 1.0])
denormals = st.integers(-(2**52), 2**52).map(lambda k: k * TINY)
decimals = st.integers(-50, 50).map(lambda k: k / 10)
float32s = st.floats(allow_nan=False, allow_infinity=False, width=32)
decades = st.builds(lambda sign, e: sign * 10.0**e, signs, st.floats(-300, 300))
finite = st.floats(allow_nan=False, allow_infinity=False)

SCORES = {
    "ties": st.integers(-3, 3).map(float),
    "zeros of both signs": st.sampled_from([-0.0, 0.0, -TINY, TINY]),
    "infinities": st.sampled_from([-math.inf, -HUGE, -1.0, 0.0, 1.0, HUGE, math.inf]),
    "denormals": denormals,
    "neighbours": st.integers(0, 6).map(lambda k: 1.0 + k * 2.0**-52),
    "float32": float32s,
    "any": st.floats(allow_nan=False),
}
TARGETS = {
    "labels": st.sampled_from([0.0, 1.0]),
    "plateaus": st.sampled_from([-0.0, 0.0, 0.1, 0.3]),
    "integers": st.integers(-9, 9).map(float),
    "big integers": st.integers(2**53 - 4, 2**53).map(float),
    "decimals": decimals,
    "float32": float32s,
    "denormals": denormals,
    "neighbours": st.integers(0, 6).map(lambda k: 1.0 + k * 2.0**-52),
    "cancellation": st.sampled_from([-1e16, 1e16, 0.1, -0.1, 1.0]),
    "overflow": st.sampled_from([-HUGE, HUGE, 1.7e308, 1e308, -1e308, 1.0]),
    "600 decades": decades,
    "widest": st.sampled_from([-HUGE, -1.0, -TINY, TINY, 1.0, HUGE]),
    "any": finite,
}
WEIGHTS = {
    "one": st.just(1.0),
    "integers, zero too": st.integers(0, 5).map(float),
    "decimals": st.integers(1, 30).map(lambda k: k / 10),
    "huge": st.sampled_from([1e300, 1e-300, 1.0]),
    "denormals": st.integers(0, 2**40).map(lambda k: k * TINY),
    "600 decades": decades.map(abs),
    "neighbours": st.integers(0, 6).map(lambda k: 1.0 + k * 2.0**-52),
    "widest": st.sampled_from([TINY, 1.0, HUGE / MAX_ROWS]),
}


class Rows(NamedTuple):
    """The rows of a fit, as float64 arrays."""

    scores: NDArray[np.float64]
    targets: NDArray[np.float64]
    weights: NDArray[np.float64]

    def lists(self) -> tuple[list[float], list[float], list[float]]:
        """The rows as lists, for the reference."""
        return self.scores.tolist(), self.targets.tolist(), self.weights.tolist()

    def take(self, index: NDArray[np.intp] | NDArray[np.bool_]) -> "Rows":
        return Rows(*(column[index] for column in self))


def kinds(table: dict[str, st.SearchStrategy[float]], *names: str) -> st.SearchStrategy:
    """A strategy for one of the named kinds of a table; by default, for any of its kinds."""
    return st.sampled_from([table[name] for name in names or table])


ANY_SCORES, ANY_TARGETS, ANY_WEIGHTS = kinds(SCORES), kinds(TARGETS), kinds(WEIGHTS)


def rows(
    scores: st.SearchStrategy = ANY_SCORES,
    targets: st.SearchStrategy = ANY_TARGETS,
    weights: st.SearchStrategy = ANY_WEIGHTS,
) -> st.SearchStrategy[Rows]:
    """Rows with one kind of scores, targets and weights each; at least one weight is positive."""
    return (
        st.tuples(scores, targets, weights)
        .flatmap(lambda kind: st.lists(st.tuples(*kind), min_size=1, max_size=MAX_ROWS))
        .map(lambda drawn: Rows(*np.array(drawn, dtype=np.float64).T.copy()))
        .filter(lambda drawn: drawn.weights.any())
    )


def increasing_scores(size: int) -> st.SearchStrategy[list[float]]:
    """Distinct scores in ascending order; no -0.0."""
    drawn = st.lists(st.floats(allow_nan=False).map(lambda x: x + 0.0), min_size=size, max_size=size, unique=True)
    return drawn.map(sorted)
