"""Centered interpolation: lines bend in the middles of steps and preserve the ranks of scores."""

import math
from fractions import Fraction

import numpy as np
import pytest
from comparing import assert_same_bits, steps_of
from hypothesis import given
from hypothesis import strategies as st
from reference import linear_value
from strategies import rows

import staircase_fast as sf
from staircase_fast.staircase.steps import centered_ends

inf = math.inf


def ends_of(stairs):
    return centered_ends(stairs.left, stairs.right, np.array([0, stairs.n_steps]))


def centered(stairs, queries, **options):
    return stairs.predict(queries, interpolation="centered", **options)


@given(rows(), st.booleans())
def test_a_line_bends_in_the_middle_of_each_step_and_starts_and_ends_with_the_fitted_range(rows, increasing):
    stairs = sf.fit(*rows[:2], sample_weight=rows.weights, increasing=increasing)
    low, high = ends_of(stairs)
    assert (low[0], high[-1]) == (stairs.left[0], stairs.right[-1])
    assert (high[:-1] < low[1:]).all()
    for step in range(1, stairs.n_steps - 1):
        left, right = float(stairs.left[step]), float(stairs.right[step])
        assert left <= low[step] == high[step] <= right
        middle = (Fraction(left) + Fraction(right)) / 2
        assert abs(Fraction(float(low[step])) - middle) <= Fraction(math.ulp(float(low[step])))


@given(rows(), st.booleans())
def test_values_lie_on_these_lines(rows, increasing):
    stairs = sf.fit(*rows[:2], sample_weight=rows.weights, increasing=increasing)
    bent = [step._replace(left=a, right=b) for step, a, b in zip(steps_of(stairs), *ends_of(stairs), strict=True)]
    queries = np.concatenate([stairs.left, stairs.right, [0.0, 0.5, -inf, inf]])
    largest = math.ulp(float(np.abs(stairs.values).max()))
    for query, value in zip(queries.tolist(), centered(stairs, queries).tolist(), strict=True):
        assert abs(value - linear_value(bent, query)) <= 4 * largest


def test_scores_of_one_step_get_values_that_differ_and_keep_their_order():
    rng = np.random.default_rng(0)
    scores = rng.normal(size=3_000)
    stairs = sf.fit(scores, rng.random(3_000) < 1 / (1 + np.exp(-scores)))
    assert stairs.n_steps < 100
    for increasing in (True, False):
        stairs = sf.fit(scores, rng.random(3_000) < 0.5 + 0.1 * scores, increasing=increasing)
        values = centered(stairs, np.sort(scores))
        differences = np.diff(values if increasing else values[::-1])
        assert (differences > 0).all() or stairs.n_steps == 1


def test_a_single_step_is_constant_within_its_range():
    stairs = sf.fit([1, 2, 3], [2, 1, 0])
    assert centered(stairs, [0, 1, 2, 3, 4], out_of_bounds="nan")[1:4].tolist() == [1, 1, 1]
    assert np.isnan(centered(stairs, [0.5, 3.5], out_of_bounds="nan")).all()
    with pytest.raises(ValueError, match=r"`scores`.*\[1\.0, 3\.0\].*3\.5 at index 1"):
        centered(stairs, [1, 3.5], out_of_bounds="raise")


def test_a_step_with_an_infinite_end_is_constant():
    stairs = sf.fit([-inf, 1, 2, 3, 4, inf], [1, 0, 3, 3, 6, 5])
    assert stairs.left.tolist() == [-inf, 2, 4]
    assert centered(stairs, [-inf, -9, 1, 2.5, 4, 9, inf]).tolist() == [0.5, 0.5, 0.5, 3, 5.5, 5.5, 5.5]
    assert not np.isnan(centered(stairs, [-inf, inf], out_of_bounds="nan")).any()


def test_middles_of_the_widest_and_the_narrowest_steps_lie_inside_them():
    low, high = centered_ends(
        np.array([-1.7e308, -1.6e308, 5e-324, 1e308, 1.75e308]),
        np.array([-1.7e308, -1.5e308, 5e-324, 1.7e308, 1.75e308]), np.array([0, 5]),
    )  # fmt: skip
    assert low.tolist() == high.tolist() == [-1.7e308, -1.55e308, 5e-324, 1.35e308, 1.75e308]
    wide, _ = centered_ends(np.array([-1.7e308] * 3), np.array([1.5e308] * 3), np.array([0, 3]))
    assert wide[1] == pytest.approx(-1e307)


def test_few_and_many_queries_copies_and_maps_give_the_same_values():
    rng = np.random.default_rng(1)
    scores, groups = rng.normal(size=4_000), rng.integers(0, 3, 4_000)
    labels = rng.random(4_000) < 0.5 + 0.1 * scores
    queries = rng.normal(size=5_000)
    stairs = sf.fit(scores, labels)
    one_by_one = [centered(stairs, query) for query in queries[:100]]
    many = centered(stairs, queries)
    assert_same_bits(many[:100], one_by_one)
    assert_same_bits(centered(sf.Staircase.from_json(stairs.to_json()), queries), many)
    by_group = sf.fit_groups(scores, labels, groups)
    found = by_group.predict(queries, np.resize([0, 1, 2], 5_000), interpolation="centered")
    for group in range(3):
        assert_same_bits(found[group::3], centered(by_group[group], queries[group::3]))
    by_column = sf.fit_columns(np.column_stack([scores, -scores]), np.column_stack([labels, ~labels]))
    table = by_column.predict_columns(np.column_stack([queries, queries]), interpolation="centered")
    assert_same_bits(table[:, 1], centered(by_column[1], queries))
