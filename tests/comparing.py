"""Comparisons that the tests share: of bits, of staircases, and with the reference."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray
from reference import Step

import staircase_fast as sf

ARRAYS = ("left", "right", "values", "weights", "lower", "upper", "counts")


def bits(values: ArrayLike) -> NDArray[np.int64]:
    """The bit patterns of float64 values: -0.0 differs from 0.0, and NaN equals itself."""
    return np.asarray(values, dtype=np.float64).copy().view(np.int64)


def assert_same_bits(actual: ArrayLike, expected: ArrayLike) -> None:
    np.testing.assert_array_equal(bits(actual), bits(expected))


def assert_same_staircase(actual: sf.Staircase, expected: sf.Staircase) -> None:
    """Compare every array bit for bit, and check `==` as well."""
    for name in ARRAYS:
        a, b = getattr(actual, name), getattr(expected, name)
        assert a.dtype == b.dtype, name
        np.testing.assert_array_equal(bits(a), bits(b), err_msg=name)
    assert (actual.increasing, actual.loss) == (expected.increasing, expected.loss)
    assert actual == expected


def assert_steps(stairs: sf.Staircase, expected: Sequence[Step]) -> None:
    """Compare with the steps of the reference: ends, counts, and the bits of values and weights."""
    assert steps_of(stairs) == list(expected)
    assert_same_bits(stairs.values, [step.value for step in expected])
    assert_same_bits(stairs.lower, stairs.values)
    assert_same_bits(stairs.upper, stairs.values)


def steps_of(stairs: sf.Staircase) -> list[Step]:
    columns = (stairs.left, stairs.right, stairs.values, stairs.weights, stairs.counts)
    return [Step(*row) for row in zip(*(column.tolist() for column in columns), strict=True)]
