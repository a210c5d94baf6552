"""Certificates of rows in partitions: the verdict of `certify` on all rows."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import ANY_SCORES, ANY_TARGETS, WEIGHTS, kinds, rows
from test_driver import divided, noisy

import staircase_fast as sf
from staircase_fast.batches import PeekTask
from staircase_fast.batches.certifying import Certifier

WEIGHT_KINDS = kinds(WEIGHTS, "one", "integers, zero too", "decimals", "600 decades")


def by_scans(stairs, partitions, log=None, **options):
    driver = Certifier(stairs, **options)
    while (task := driver.next()) is not None:
        if log is not None:
            log.append(task.kind)
        found = [task([part]) for part in (partitions[:1] if isinstance(task, PeekTask) else partitions)]
        driver.receive(found[0].merge(*found[1:]), len(found) / len(partitions))
    return driver.certificate()


@given(
    rows(ANY_SCORES, ANY_TARGETS, WEIGHT_KINDS),
    st.lists(st.integers(0, 24), max_size=5),
    st.sampled_from([300, 10**9]),
    st.booleans(),
)
def test_every_fit_is_optimal_in_any_partitions(drawn, cuts, memory, rising):
    stairs = sf.fit(drawn.scores, drawn.targets, sample_weight=drawn.weights, increasing=rising)
    parts = divided(drawn, [min(cut, len(drawn.scores)) for cut in cuts])
    assert by_scans(stairs, parts, memory_limit=memory).optimal


def moved(stairs, factor):
    """The same steps, all values moved from their mean."""
    values = stairs.values.mean() + (stairs.values - stairs.values.mean()) * factor
    columns = stairs.left, stairs.right, values, stairs.weights, stairs.counts
    return sf.Staircase(*columns, increasing=stairs.increasing)


@pytest.mark.parametrize("kind", ["labels", "reals", "weights"])
@pytest.mark.parametrize(("memory", "last"), [(10**9, "collect"), (10**6, "collect"), (10**9, "pool")])
@pytest.mark.parametrize("digits", [2, 17])
def test_the_verdict_and_the_gap_are_those_of_certify(kind, memory, last, digits):
    x, y, w = noisy(60_000, kind)
    x = x.round(digits)
    stairs = sf.fit(x, y, sample_weight=w)
    coarse = sf.fit(x[::50], y[::50], sample_weight=None if w is None else w[::50])
    parts, log = divided((x, y, w), [0, 20_000, 20_001]), []
    for model in (stairs, moved(stairs, 0.9), moved(stairs, 1 + 1e-9), coarse, sf.fit([0.1], [0.4])):
        found = by_scans(model, parts, log, memory_limit=memory, one_scan=last == "pool")
        expected = sf.certify(model, x, y, sample_weight=w)
        assert found.optimal == expected.optimal == (model is stairs)
        if not found.optimal:
            excess, best = ((model(x) - y) ** 2, (stairs(x) - y) ** 2)
            assert np.average(excess - best, weights=w) * (len(x) if w is None else w.sum()) <= found.gap * (1 + 1e-6)
            assert found.gap <= expected.gap * 1.001  # lower, if fewer means lie in a smaller range
            assert x.min() <= found.worst_score <= x.max()
    assert log[-1] == last


def test_a_single_wrong_step_is_found():
    x, y, _ = noisy(50_000)
    stairs = sf.fit(x, y)
    for step in range(0, stairs.n_steps, 7):
        values = stairs.values.copy()
        values[step] = np.nextafter(values[step], values[min(step + 1, len(values) - 1)] + 1, dtype=float) + 1e-9
        changed = sf.Staircase(stairs.left, stairs.right, values, stairs.weights, stairs.counts)
        found = by_scans(changed, [(x, y)])
        assert not found.optimal
        assert stairs.left[max(step - 1, 0)] <= found.worst_score <= stairs.right[step]


def test_bounds_losses_and_empty_steps():
    x, y, _ = noisy(20_000)
    bounded = sf.fit(x, y, bounds=(0.2, 0.7), loss="log")
    assert by_scans(bounded, [(x, y)], bounds=(0.2, 0.7)).optimal
    assert not by_scans(bounded, [(x, y)]).optimal
    assert not by_scans(bounded, [(x, y)], bounds=(0.2, 0.75), loss="squared").optimal
    fitted = sf.fit(x, y)
    left = np.append(fitted.left, [100.0, 200.0])  # steps without rows
    right, values = np.append(fitted.right, [100.0, 200.0]), np.append(fitted.values, [2.0, 3.0])
    weights, counts = np.append(fitted.weights, [1, 1]), np.append(fitted.counts, [1, 1])
    assert by_scans(sf.Staircase(left, right, values, weights, counts), [(x, y)]).optimal
    assert not by_scans(sf.Staircase([0.0], [1.0], [-3.0], [1.0], [1]), [(x, y)], loss="log").optimal
