"""Fits of many groups: each is, to the last bit, the fit of its rows alone."""

import collections

import numpy as np
import pandas as pd
import polars as pl
import problems
import pyarrow as pa
import pytest
from comparing import assert_same_staircase
from hypothesis import given
from hypothesis import strategies as st
from strategies import rows as any_rows

import staircase_fast as sf
from staircase_fast import grouped, survey, threads

RNG = np.random.default_rng(11)


@pytest.fixture
def many_parts(monkeypatch):
    """Some hundred rows are shared among threads, and cut into parts, as many are; large groups have 50."""
    monkeypatch.setattr(threads, "ROWS_EACH", 50)
    monkeypatch.setattr(grouped, "_PART_ROWS", 64)
    monkeypatch.setattr(grouped, "_ROWS_AT_ONCE", 100)


def assert_each_is_the_fit_of_its_rows(found, scores, targets, groups, sample_weight=None, **options):
    scores, targets, groups = (np.asarray(column) for column in (scores, targets, groups))
    assert list(found) == sorted(set(groups.tolist()))
    for key in found:
        own = np.flatnonzero(groups == key)
        loss = options.get("loss", "squared")
        if isinstance(loss, sf.losses.Loss) and loss.per_sample:
            loss = loss.of_rows(own)
        weights = None if sample_weight is None else np.asarray(sample_weight)[own]
        alone = sf.fit(scores[own], targets[own], sample_weight=weights, **{**options, "loss": loss})
        assert_same_staircase(found[key], alone)


def check(scores, targets, groups, **options):
    found = sf.fit_groups(scores, targets, groups, **options)
    options.pop("n_threads", None)
    assert_each_is_the_fit_of_its_rows(found, scores, targets, groups, **options)
    return found


@given(any_rows(), st.integers(1, 6), st.sampled_from([True, False, "auto"]), st.booleans())
def test_each_group_is_the_fit_of_its_rows_whatever_they_are(rows, n_groups, increasing, weighted):
    groups = np.arange(len(rows.scores)) * 7 % 5 % n_groups
    weights = rows.weights if weighted else None
    if weighted and np.any(np.bincount(groups, rows.weights > 0)[np.unique(groups)] == 0):
        with pytest.raises(ValueError, match="in each group"):
            sf.fit_groups(rows.scores, rows.targets, groups, sample_weight=weights)
        return
    check(rows.scores, rows.targets, groups, sample_weight=weights, increasing=increasing)


KINDS = {
    "labels": lambda x: RNG.random(len(x)) < x,
    "float labels": lambda x: (RNG.random(len(x)) < x).astype(float),
    "noise": lambda x: x + RNG.normal(size=len(x)),
    "float32": lambda x: (x + RNG.normal(size=len(x))).astype(np.float32),
    "integers": lambda x: np.round(9 * x + RNG.normal(size=len(x))).astype(np.int32),
    "labels but one": lambda x: np.append(RNG.random(len(x) - 1) < x[:-1], 0.25),
}
SCORES = {
    "uniform": lambda n: RNG.random(n),
    "normal": lambda n: 30 * RNG.normal(size=n),
    "ties": lambda n: np.round(RNG.random(n), 1),
    "float32": lambda n: RNG.random(n).astype(np.float32),
    "log-normal": lambda n: np.exp(20 * RNG.normal(size=n)),
    "clusters": lambda n: RNG.choice([1.0, 1e9], n) + 1e-12 * RNG.random(n),
    "infinities": lambda n: RNG.choice([-np.inf, -1.0, -0.0, 0.0, 2.5, np.inf], n),
    "widest": lambda n: RNG.choice([-1.7e308, 1.7e308, 5e-324, 0.0, -5e-324], n) * RNG.choice([1.0, 0.5], n),
    "all tied": lambda n: np.full(n, 3.25),
}


@pytest.mark.usefixtures("many_parts")
@pytest.mark.parametrize("n_threads", [1, 3])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scores", SCORES)
def test_groups_of_all_sizes_are_fitted_as_they_are_alone(scores, kind, n_threads):
    n = 1500
    x = SCORES[scores](n)
    ranks = np.argsort(np.argsort(x)) / n
    y = KINDS[kind](ranks)
    shuffled = np.minimum(RNG.geometric(0.05, n), 40)
    for groups in (shuffled, np.sort(shuffled), -np.sort(shuffled), np.sort(shuffled)[::-1] % 17):
        check(x, y, groups, n_threads=n_threads)
    check(x, y, shuffled, n_threads=n_threads, increasing=False, bounds=(0.25, None))
    check(x, y, shuffled, n_threads=n_threads, sample_weight=RNG.integers(1, 4, n), increasing="auto")
    check(x, y, shuffled, n_threads=n_threads, sample_weight=RNG.random(n) + 0.1)


@pytest.mark.usefixtures("many_parts")
@pytest.mark.parametrize("kind", ["labels", "noise"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("increasing", [True, "auto"])
def test_large_groups_are_fitted_as_they_are_alone(monkeypatch, kind, weighted, increasing):
    monkeypatch.setattr(survey, "FEW_ROWS", 80)
    n = 2000
    x = RNG.random(n)
    y, w = KINDS[kind](x), RNG.random(n) + 0.5 if weighted else None
    groups = np.where(RNG.random(n) < 0.5, RNG.integers(0, 200, n), RNG.choice([3, 50, 51, 52, 150], n))
    for own in (groups, np.sort(groups), np.zeros(n, dtype=int)):
        for n_threads in (1, 2):
            check(x, y, own, sample_weight=w, increasing=increasing, n_threads=n_threads)
