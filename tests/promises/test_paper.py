"""The paper's example of 15 samples, as printed there."""

import numpy as np
import pytest
from reference import direct_rounds, update_rounds

import staircase_fast as sf

TARGETS = [44, 52, 18, 14, 93, 37, 96, 8, 1, 95, 21, 77, 46, 36, 69]
WEIGHTS = [1] * 15

# The last line printed for each arrival of the online example: the staircase of the samples so far.
ARRIVALS = [
    [44],
    [44, 52],
    [38, 38, 38],
    [32, 32, 32, 32],
    [32, 32, 32, 32, 93],
    [32, 32, 32, 32, 65, 65],
    [32, 32, 32, 32, 65, 65, 96],
    [32, 32, 32, 32, 58.5, 58.5, 58.5, 58.5],
    [32, 32, 32, 32, 47, 47, 47, 47, 47],
    [32, 32, 32, 32, 47, 47, 47, 47, 47, 95],
    [32, 32, 32, 32, 47, 47, 47, 47, 47, 58, 58],
    [32, 32, 32, 32, 47, 47, 47, 47, 47, 58, 58, 77],
    [32, 32, 32, 32, 47, 47, 47, 47, 47, 58, 58, 61.5, 61.5],
    [32, 32, 32, 32, 47, 47, 47, 47, 47, 55, 55, 55, 55, 55],
    [32, 32, 32, 32, 47, 47, 47, 47, 47, 55, 55, 55, 55, 55, 69],
]


def test_the_direct_method_has_the_rounds_printed_in_section_iv_a():
    rounds = direct_rounds(TARGETS, WEIGHTS)
    assert [[[TARGETS[n] for n in group] for group in r.groups] for r in rounds] == [
        [[y] for y in TARGETS],
        [[44], [52, 18, 14], [93, 37], [96, 8, 1], [95, 21], [77, 46, 36], [69]],
        [[44, 52, 18, 14], [93, 37, 96, 8, 1], [95, 21, 77, 46, 36], [69]],
    ]
    assert [r.minimisers for r in rounds] == [
        TARGETS,
        [44, 28, 65, 35, 58, 53, 69],
        [32, 47, 55, 69],
    ]


def test_the_update_rules_have_the_rounds_printed_in_section_iv_b():
    assert update_rounds(TARGETS, WEIGHTS) == [
        [(y, 1) for y in TARGETS],
        [(44, 1), (28, 3), (65, 2), (35, 3), (58, 2), (53, 3), (69, 1)],
        [(32, 4), (47, 5), (55, 5), (69, 1)],
    ]


def test_fit_finds_the_staircase_of_the_example():
    stairs = sf.fit(range(15), TARGETS)
    assert stairs.values.tolist() == [32, 47, 55, 69]
    assert stairs.left.tolist() == [0, 4, 9, 14]
    assert stairs.right.tolist() == [3, 8, 13, 14]
    assert stairs.weights.tolist() == [4, 5, 5, 1]
    assert stairs.counts.tolist() == [4, 5, 5, 1]


def test_isotonic_regression_finds_the_staircase_of_the_example():
    result = sf.isotonic_regression(TARGETS)
    assert result.x.tolist() == ARRIVALS[-1]
    assert result.weights.tolist() == [4, 5, 5, 1]
    assert result.blocks.tolist() == [0, 4, 9, 14, 15]


@pytest.mark.parametrize("arrived", range(1, 16))
def test_the_first_samples_have_the_staircase_printed_for_their_last_arrival(arrived):
    scores = np.arange(arrived)
    stairs = sf.fit(scores, TARGETS[:arrived])
    assert stairs(scores).tolist() == ARRIVALS[arrived - 1]
