"""Priors: values stay strictly monotone and never reach 0 or 1."""

from fractions import Fraction

import numpy as np
import pytest
from comparing import steps_of
from hypothesis import given
from hypothesis import strategies as st
from reference import steps_with_prior

import staircase_fast as sf
from staircase_fast.calibration import priors
from staircase_fast.calibration.priors import with_prior

weights_and_labels = st.lists(
    st.tuples(st.sampled_from([0.25, 0.5, 1, 2, 3, 40, 1e6]), st.booleans()), min_size=1, max_size=30
)


def fitted(pairs, increasing=True, sign=1):
    weights, labels = np.array(pairs, dtype=float).T
    scores = sign * np.arange(len(pairs))
    return sf.fit(scores, labels, sample_weight=weights, loss="log", increasing=increasing)


@given(weights_and_labels, st.sampled_from([0.5, 1.0]))
def test_steps_are_pooled_in_rounds_until_all_values_increase(pairs, pseudo_count):
    stairs = fitted(pairs)
    found = with_prior(stairs, pseudo_count)
    expected = steps_with_prior(steps_of(stairs), Fraction(pseudo_count))
    assert list(zip(found.left, found.right, strict=True)) == [step[:2] for step in expected]
    assert found.values == pytest.approx([float(step[2]) for step in expected], rel=1e-14)


@given(weights_and_labels, st.sampled_from([0.5, 1.0]), st.booleans())
def test_values_are_strictly_monotone_and_between_0_and_1_and_no_row_is_lost(pairs, pseudo_count, increasing):
    stairs = fitted(pairs, increasing)
    found = with_prior(stairs, pseudo_count)
    rising = found.values if increasing else found.values[::-1]
    assert (np.diff(rising) > 0).all()
    assert ((found.values > 0) & (found.values < 1)).all()
    assert (found.left[0], found.right[-1], found.counts.sum()) == (stairs.left[0], stairs.right[-1], len(pairs))
    assert found.weights.sum() == pytest.approx(stairs.weights.sum(), rel=1e-12)
    assert sf.Staircase(found.left, found.right, found.values, found.weights, found.counts, "log", increasing) == found


@given(weights_and_labels, st.sampled_from([0.5, 1.0]))
def test_successes_and_failures_are_treated_alike(pairs, pseudo_count):
    found = with_prior(fitted(pairs), pseudo_count)
    falling = with_prior(fitted(pairs, increasing=False, sign=-1), pseudo_count)
    assert (-falling.right[::-1]).tolist() == found.left.tolist()
    assert falling.values[::-1].tolist() == found.values.tolist()
    turned = with_prior(fitted([(w, not label) for w, label in pairs], sign=-1), pseudo_count)
    assert (-turned.right[::-1]).tolist() == found.left.tolist()
    assert 1 - turned.values[::-1] == pytest.approx(found.values, abs=1e-14)


def test_a_light_step_of_failures_beside_a_heavy_one_is_pooled_with_it():
    stairs = sf.fit([1, 2, 3], [0.0, 0.05, 1.0], sample_weight=[1, 100, 10], loss="log")
    assert stairs.n_steps == 3
    found = with_prior(stairs, 1.0)
    assert found.left.tolist() == [1, 3]
    assert found.values == pytest.approx([6 / 103, 11 / 12])


def test_a_pooled_step_can_be_pooled_again():
    # 81/102 and 1.9/3 fall; the third, 3/4, is above the second, but not above both pooled, 81.9/103
    stairs = sf.fit([1, 2, 3], [0.8, 0.9, 1.0], sample_weight=[100, 1, 2], loss="log")
    assert with_prior(stairs, 1.0).values.tolist() == pytest.approx([83.9 / 105])


def test_a_round_compares_only_steps_near_those_pooled_last(monkeypatch):
    n, seen, posterior = 1000, [], priors._posterior

    def counted(sums, *rest):
        seen.append(len(sums))
        return posterior(sums, *rest)

    monkeypatch.setattr(priors, "_posterior", counted)
    weights = np.append(1e9, np.ones(n - 1))  # a heavy step takes in one light step after the other
    stairs = sf.fit(range(n), np.linspace(0.9, 0.99, n), sample_weight=weights, loss="log")
    assert with_prior(stairs, 1.0).n_steps == 1
    assert len(seen) > n / 2
    assert sum(seen) < 3 * n


def test_probabilities_of_heavy_steps_do_not_round_to_0_or_1():
    for weight in (1.0, 2.0**53, 1e300):
        stairs = sf.fit([1, 2], [0, 1], sample_weight=[weight, weight], loss="log")
        found = with_prior(stairs, 1.0)
        assert 0 < found.values[0] < found.values[1] < 1


def test_without_a_prior_the_staircase_is_returned_unchanged():
    stairs = sf.fit([1, 2], [0, 1], loss="log")
    assert with_prior(stairs, 0.0) is stairs
