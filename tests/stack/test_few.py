"""Few rows go through one kernel, and get what many rows get."""

import numpy as np
import pytest
from comparing import assert_same_bits, assert_steps
from hypothesis import given
from hypothesis import strategies as st
from reference import fitted_steps
from strategies import rows

import staircase_fast as sf
from staircase_fast.arithmetic.exact import scale_of
from staircase_fast.losses import LogLoss, SquaredError
from staircase_fast.losses.rows import check_rows
from staircase_fast.stack import _small, sorted_rows, sorting

UNBOUNDED = (-np.inf, np.inf)


def few(scores, targets, weights, *, decreasing=False, bounds=UNBOUNDED, loss=None):
    table = sorted_rows.fit_few(
        scores,
        targets,
        np.empty(0) if weights is None else weights,
        loss or SquaredError(),
        decreasing=decreasing,
        bounds=bounds,
    )
    return None if table is None else [*table[:4], table[4].view(np.int64)]


def many(scores, targets, weights, *, decreasing, bounds):
    columns = check_rows(scores, targets, weights, SquaredError(), 1)
    scale = scale_of(columns.targets_extent, columns.weights_extent, len(columns.scores))
    return sorted_rows.fit_sorted(sorting.in_score_order(columns), scale, decreasing=decreasing, bounds=bounds)


@given(rows(), st.booleans(), st.sampled_from([UNBOUNDED, (0.0, 1.0)]))
def test_few_rows_get_what_many_rows_get(rows, decreasing, bounds):
    ours = few(*rows, decreasing=decreasing, bounds=bounds)
    if ours is not None:
        for one, other in zip(ours, many(*rows, decreasing=decreasing, bounds=bounds)[:5], strict=True):
            assert_same_bits(one, other + 0)


@given(rows())
def test_rows_that_the_short_way_refuses_are_fitted_as_well(rows):
    columns = check_rows(*rows, SquaredError(), 1)
    scale = scale_of(columns.targets_extent, columns.weights_extent, len(columns.scores))
    steps = sorted_rows.fit_sorted(sorting.in_score_order(columns), scale, decreasing=False, bounds=UNBOUNDED)
    stairs = sf.Staircase._of_steps(steps, SquaredError(), True)
    assert_steps(stairs, fitted_steps(*rows.lists()))


@given(rows(), st.booleans())
def test_a_short_sequence_gets_what_a_long_one_gets(rows, decreasing):
    targets, weights = rows.targets, np.maximum(rows.weights, 5e-324)
    ours = sorted_rows.regress_few(targets, weights, SquaredError(), decreasing=decreasing)
    if ours is not None:
        scores = np.arange(float(targets.size))
        steps = many(scores, targets, weights, decreasing=decreasing, bounds=UNBOUNDED)
        assert_same_bits(ours[0], np.repeat(steps.values, steps.counts))
        assert_same_bits(ours[1], steps.weights)
        assert ours[2].tolist() == [*steps.left, targets.size]


@pytest.mark.parametrize("n", [_small.MOST_ROWS - 1, _small.MOST_ROWS, _small.MOST_ROWS + 1])
def test_the_number_of_rows_that_are_few_is_no_border_in_the_result(n):
    rng = np.random.default_rng(n)
    x, y = np.round(rng.random(n), 2), rng.normal(size=n)
    assert_steps(sf.fit(x, y), fitted_steps(x.tolist(), y.tolist()))


@pytest.mark.parametrize(
    ("scores", "targets", "weights"),
    [
        ([0.0, np.nan], [0.0, 1.0], None),
        ([0.0, 1.0], [0.0, np.inf], None),
        ([0.0, 1.0], [0.0, np.nan], None),
        ([0.0, 1.0], [0.0, 1.0], [1.0, np.nan]),
        ([0.0, 1.0], [0.0, 1.0], [1.0, -1.0]),
        ([0.0, 1.0], [0.0, 1.0], [1.0, 0.0]),
        ([0.0, 1.0], [0.0, 1.0], [1e308, 1e308]),
        ([0.0, 1.0], [0.0, 2.0**53], None),
        ([0.0, 1.0], [1e-300, 1.0], None),
    ],
)
def test_what_is_bad_or_unusual_goes_the_long_way(scores, targets, weights):
    columns = [None if column is None else np.array(column) for column in (scores, targets, weights)]
    assert few(*columns) is None
    if not np.isnan(scores).any():
        weights = np.empty(0) if weights is None else columns[2]
        assert sorted_rows.regress_few(columns[1], weights, SquaredError(), decreasing=False) is None


def test_targets_that_the_loss_does_not_allow_go_the_long_way():
    assert few(np.array([0.0, 1.0]), np.array([0.0, 1.5]), None, loss=LogLoss()) is None


def test_integers_that_float64_rounds_are_not_taken_for_their_neighbours():
    targets = np.array([2**53 + 1, 2**53])
    stairs = sf.fit([0, 1], targets)
    assert stairs.n_steps == 1
    assert stairs.counts.tolist() == [2]
