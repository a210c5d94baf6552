"""The plan leaves no vertex of the exact minorant in a quiet bucket (theorem 2 of docs/survey_proof.md)."""

from fractions import Fraction

import numpy as np
import pytest

import staircase_fast as sf
from staircase_fast.losses.rows import check_rows
from staircase_fast.stack import survey
from staircase_fast.staircase import _lookup, cells


def labels(rng, scores):
    return (rng.random(len(scores)) < scores).astype(np.int8), np.empty(0)


def decimals(rng, scores):
    """Means are often equal, or differ by a rounding error."""
    return np.round(scores + rng.normal(size=len(scores)), 1), np.empty(0)


def nearly_straight(rng, scores):
    """The path leaves a straight line by little more than float32 resolves."""
    return 1.0 + 1e-6 * rng.integers(-2, 3, len(scores)), np.empty(0)


def weighted(rng, scores):
    return scores + rng.normal(size=len(scores)), rng.lognormal(0, 2, len(scores))


def two_levels(rng, scores):
    """Two straight parts of the path."""
    return (scores > 0.4).astype(np.int8), np.empty(0)


def vertices(scores, targets, weights):
    """Positions in sorted rows at which steps end, by exact rational arithmetic."""
    blocks = []  # sum, weight, end
    ends = np.flatnonzero(np.append(scores[1:] != scores[:-1], True)) + 1
    start = 0
    for end in ends.tolist():
        rows = range(start, end)
        w = sum((Fraction(weights[i]) for i in rows), Fraction(0))
        s = sum((Fraction(weights[i]) * Fraction(targets[i]) for i in rows), Fraction(0))
        while blocks and blocks[-1][0] * w >= s * blocks[-1][1]:
            before = blocks.pop()
            s, w = s + before[0], w + before[1]
        blocks.append((s, w, end))
        start = end
    return [end for _, _, end in blocks]


@pytest.mark.parametrize("decreasing", [False, True])
@pytest.mark.parametrize("n_buckets", [4, 60, 600])
@pytest.mark.parametrize("kind", [labels, decimals, nearly_straight, weighted, two_levels])
def test_no_step_ends_in_or_beside_a_quiet_bucket(kind, n_buckets, decreasing):
    rng = np.random.default_rng([n_buckets, decreasing])
    n, n_quiet = 2000, 0
    for _ in range(3):
        scores = rng.random(n)
        scores[rng.random(n) < 0.1] = 0.5
        scores.sort()
        targets, weights = kind(rng, scores)
        if decreasing:
            targets = 1 - targets
        rows = check_rows(scores, targets, weights, sf.losses.SquaredError(), 1)
        bucket_map = cells.make_map(cells.sorted_sample(scores), n_buckets)
        table = survey.survey(rows, bucket_map, [slice(0, n)])
        greatest = max(-rows.targets_extent.lowest, rows.targets_extent.highest)
        live = survey.plan(table, n, greatest, 1, decreasing=decreasing) == 1
        bucket = np.empty(n, dtype=np.int32)
        _lookup.locate(scores, bucket_map, bucket)

        exact = (-targets if decreasing else targets).tolist()
        ends = np.array(vertices(scores, exact, weights.tolist() or [1] * n))
        assert live[bucket[ends - 1]].all(), "the last row of each step is in a live bucket"
        assert live[bucket[np.append(0, ends[:-1])]].all(), "and so is the first one"
        n_quiet += np.count_nonzero(~live[bucket])
    assert n_quiet > 1000
