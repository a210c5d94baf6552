"""The reference implementations agree with each other in exact arithmetic, and with their certificate."""

import itertools
from fractions import Fraction

import pytest
import reference
from hypothesis import given
from hypothesis import strategies as st
from strategies import TARGETS, WEIGHTS, kinds, rows

small = st.integers(-4, 4).map(Fraction)
sequences = st.lists(
    st.tuples(st.one_of(small, st.fractions(max_denominator=9)), st.integers(1, 4).map(Fraction)),
    min_size=1,
    max_size=12,
).map(lambda pairs: tuple(zip(*pairs, strict=True)))


@given(sequences)
def test_all_four_methods_find_the_same_staircase(sequence):
    best = reference.stack(*sequence)
    assert reference.direct_rounds(*sequence)[-1] == best
    assert reference.max_min(*sequence) == best.fitted()
    sizes = [
        sum(w for w in sequence[1][group.start : group.stop]) for group in best.groups
    ]  # lambda is the total weight of a group
    assert reference.update_rounds(*sequence)[-1] == list(zip(best.minimisers, sizes, strict=True))


@given(sequences)
def test_both_offline_versions_go_through_the_same_rounds(sequence):
    direct = [grouping.minimisers for grouping in reference.direct_rounds(*sequence)]
    updated = [[y for y, _ in pairs] for pairs in reference.update_rounds(*sequence)]
    assert direct == updated


@given(st.lists(st.integers(-9, 9).map(float), min_size=1, max_size=12))
def test_the_references_also_accept_floats(targets):
    weights = [1.0] * len(targets)
    exact = reference.max_min([Fraction(y) for y in targets], [Fraction(1)] * len(targets))
    for fitted in (
        reference.direct_rounds(targets, weights)[-1].fitted(),
        reference.stack(targets, weights).fitted(),
        reference.max_min(targets, weights),
    ):
        assert all(isinstance(z, float) for z in fitted)
        assert fitted == pytest.approx([float(z) for z in exact], abs=1e-12)


@given(sequences)
def test_the_certificate_accepts_the_optimum(sequence):
    assert reference.is_optimal(*sequence, reference.stack(*sequence).fitted())


@given(sequences, st.data())
def test_the_certificate_refuses_every_other_fit(sequence, data):
    best = reference.stack(*sequence).fitted()
    n = data.draw(st.integers(0, len(best) - 1))
    change = data.draw(st.fractions(max_denominator=9).filter(bool))
    assert not reference.is_optimal(*sequence, [*best[:n], best[n] + change, *best[n + 1 :]])


@given(rows())
def test_rounding_moves_no_value_by_more_than_the_certificate_allows(rows):
    points = reference.pooled(*rows.lists())
    steps = reference.fitted_steps(*rows.lists())
    fitted = [Fraction(reference.step_value(steps, p.left)) for p in points]
    errors = [reference.half_an_ulp(z) for z in fitted]
    sums = [p.value for p in points], [p.weight for p in points]
    assert reference.is_optimal(*sums, fitted, errors)


@given(rows(targets=kinds(TARGETS, "denormals"), weights=kinds(WEIGHTS, "one")))
def test_neighbours_that_round_to_one_float_are_one_step(rows):
    values = [step.value for step in reference.fitted_steps(*rows.lists())]
    assert all(a < b for a, b in itertools.pairwise(values))


def test_rows_of_weight_zero_are_ignored_and_ties_are_pooled_by_weight():
    points = reference.pooled([2, -0.0, 0.0, 1, 2], [9, 1, 4, 7, 3], [0, 1, 2, 0, 5])
    assert points == [reference.Step(0.0, 0.0, 3, 3, 2), reference.Step(2, 2, 3, 5, 1)]


def test_linear_values_lie_on_the_lines_between_the_steps():
    inf = float("inf")
    steps = [
        reference.Step(-inf, -inf, 0.0, 1, 1),
        reference.Step(0.0, 2.0, 1.0, 1, 1),
        reference.Step(6.0, 7.0, 3.0, 1, 1),
        reference.Step(inf, inf, 4.0, 1, 1),
    ]
    queries = [-inf, -5.0, 0.0, 1.0, 2.0, 3.0, 6.0, 7.0, 8.0, inf]
    expected = [0, 1, 1, 1, 1, Fraction(3, 2), 3, 3, 3, 4]
    assert [reference.linear_value(steps, q) for q in queries] == expected
    assert reference.linear_value([steps[0], steps[-1]], 8.0) == 2
    assert reference.linear_value(steps[1:3], -1.0) == 1
    assert reference.linear_value(steps[1:3], 9.0) == 3
