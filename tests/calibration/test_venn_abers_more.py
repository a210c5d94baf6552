"""Venn-Abers predictors of real targets and of several classes equal their definitions."""

import itertools
import math
import pickle
import random
import re
from fractions import Fraction

import numpy as np
import pytest
import reference

import staircase_fast as sf
from staircase_fast.calibration.venn_abers_classes import combined

METHODS = ("one_vs_rest", "one_vs_one", "coupled")


def value_at(x, y, w, query, target, query_weight):
    steps = reference.exact_steps([*x, query], [*y, target], [*w, query_weight])
    return reference.step_value(steps, query)


def test_three_thousand_random_regressions_equal_the_definition():
    rng = random.Random(1)
    for case in range(3000):
        n = rng.randint(1, 9)
        x = [float(rng.randint(0, 5)) for _ in range(n)]
        y = [rng.randint(-20, 20) / 4 if case % 2 else rng.uniform(-5, 5) for _ in range(n)]
        w = [rng.choice([1, 2, 0.5, rng.random() + 0.01]) for _ in range(n)] if case % 3 else [1] * n
        bounds = (-5.0, 5.0) if case % 4 else (min(y), max(y))
        weight = rng.choice([1.0, 0.25, 3.0])
        venn = sf.VennAbersRegression(bounds if case % 4 else None, weight)
        venn.fit(x, y, sample_weight=w if case % 3 else None)
        assert venn.bounds == bounds
        query = rng.randint(-1, 11) / 2
        found = venn.predict(query)
        wanted = [float(value_at(x, y, w, query, end, weight)) for end in bounds]
        assert found == pytest.approx(wanted, rel=1e-14, abs=1e-14 * (bounds[1] - bounds[0])), (x, y, w, query)
        # other targets between the bounds give values inside
        between = value_at(x, y, w, query, Fraction(bounds[0]) / 2 + Fraction(bounds[1]) / 2, weight)
        assert found.lower - 1e-12 <= between <= found.upper + 1e-12
        assert found.lower <= venn.merge(query) <= found.upper


def test_labels_are_a_special_case_of_regression():
    rng = np.random.default_rng(0)
    x, y, w = rng.random(200), rng.integers(0, 2, 200), rng.random(200)
    queries = np.linspace(-0.1, 1.1, 77)
    ours = sf.VennAbersRegression(bounds=(0, 1)).fit(x, y, sample_weight=w)
    venn = sf.VennAbers().fit(x, y, sample_weight=w)
    np.testing.assert_allclose(ours.predict(queries), venn.predict(queries), rtol=1e-13)
    np.testing.assert_allclose(ours.merge(queries), venn.merge(queries, rule="brier"), rtol=1e-13)


@pytest.mark.parametrize("scale", [1e-300, 1.0, 1e307])
def test_targets_of_any_size_are_predicted(scale):
    rng = np.random.default_rng(1)
    x, y = rng.random(50), rng.uniform(-1, 1, 50)
    plain, scaled = sf.VennAbersRegression().fit(x, y), sf.VennAbersRegression().fit(x, y * scale)
    for ours, wanted in zip(scaled.predict(x), plain.predict(x), strict=True):
        np.testing.assert_allclose(ours, wanted * scale, rtol=1e-12, atol=1e-14 * scale)
    constant = sf.VennAbersRegression().fit(x, np.full(50, 3.0 * scale)).predict(x)
    assert (constant.lower == 3.0 * scale).all()
    assert (constant.upper == 3.0 * scale).all()


def test_the_interval_of_exchangeable_data_contains_a_calibrated_value():
    """Self-calibration: the mean of target minus its own value is 0."""
    rng = np.random.default_rng(2)
    off = []
    for _ in range(4000):
        x = rng.random(8)
        y = rng.integers(0, 3, 8) * (x > 0.5) + rng.random(8)
        value = float(value_at(x[:-1].tolist(), y[:-1].tolist(), [1] * 7, float(x[-1]), float(y[-1]), 1))
        lower, upper = sf.VennAbersRegression(bounds=(0, 3)).fit(x[:-1], y[:-1]).predict(x[-1])
        assert lower - 1e-12 <= value <= upper + 1e-12
        off.append(y[-1] - value)
    assert abs(np.mean(off)) < 3.5 * np.std(off) / math.sqrt(len(off))


def test_weights_of_zero_and_copies_of_rows():
    x, y = [1.0, 2.0, 3.0, 4.0], [0.0, 5.0, 1.0, 3.0]
    found = sf.VennAbersRegression().fit(x, y, sample_weight=[1, 0, 2, 1])
    copied = sf.VennAbersRegression().fit([1, 3, 3, 4], [0, 1, 1, 3])
    assert found.bounds == (0.0, 3.0)
    assert found.n_samples == 3
    np.testing.assert_allclose(found.predict([0, 2.5, 3, 9]), copied.predict([0, 2.5, 3, 9]), rtol=1e-14)


def classes(seed, n=60, k=4, margin=False):
    rng = np.random.default_rng(seed)
    table = rng.normal(size=(n, k)) if margin else rng.dirichlet(np.ones(k), n)
    labels = np.where(rng.random(n) < 0.5, table.argmax(axis=1), rng.integers(0, k, n))
    labels[:k] = np.arange(k)
    return table, labels, rng.uniform(0.5, 2, n)


@pytest.mark.parametrize("margin", [False, True], ids=["probability", "margin"])
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("seed", range(10))
def test_every_question_equals_the_definition(seed, method, margin):
    table, labels, weights = classes(seed, 20, 3 + seed % 2, margin)
    k = table.shape[1]
    venn = sf.VennAbersMulticlass(method, "margin" if margin else "probability")
    p0, p1 = venn.fit(table, labels, sample_weight=weights).predict(table[:5])
    pairs = [*itertools.combinations(range(k), 2)]
    assert venn.questions == (tuple((j,) for j in range(k)) if method == "one_vs_rest" else tuple(pairs))
    for column, question in enumerate(venn.questions):
        own = np.isin(labels, question) if len(question) == 2 else labels >= 0
        if len(question) == 1:
            scores = table[:, question[0]]
        elif margin:
            scores = table[:, question[1]] / 2 - table[:, question[0]] / 2
        else:
            scores = table[:, question[1]] / (table[:, question[0]] + table[:, question[1]])
        for row in range(5):
            wanted = reference.venn_abers(
                scores[own].tolist(), (labels[own] == question[-1]).tolist(), weights[own].tolist(), scores[row]
            )
            assert (p0[row, column], p1[row, column]) == tuple(map(reference.nearest_float, wanted))


@pytest.mark.parametrize("method", ["one_vs_one", "coupled"])
def test_pairs_that_are_consistent_give_back_their_probabilities(method):
    rng = np.random.default_rng(3)
    for k in (2, 3, 6):
        wanted = rng.dirichlet(np.ones(k), 50)
        answers = np.column_stack([wanted[:, j] / (wanted[:, i] + wanted[:, j])
                                   for i, j in itertools.combinations(range(k), 2)])  # fmt: skip
        np.testing.assert_allclose(combined(answers, method, k), wanted, rtol=1e-9, atol=1e-12)


def test_coupled_probabilities_minimise_their_objective():
    rng = np.random.default_rng(4)
    answers = rng.uniform(0.05, 0.95, (20, 6))
    found = combined(answers, "coupled", 4)

    def objective(p, row):
        pairs = zip(itertools.combinations(range(4), 2), row, strict=True)
        return sum(((1 - r) * p[j] - r * p[i]) ** 2 for (i, j), r in pairs)

    for p, row in zip(found, answers, strict=True):
        assert p.sum() == pytest.approx(1)
        for _ in range(50):
            other = np.maximum(p + rng.normal(size=4) * 0.02, 0)
            assert objective(p, row) <= objective(other / other.sum(), row) + 1e-12


@pytest.mark.parametrize("rule", ["log", "brier"])
@pytest.mark.parametrize("method", METHODS)
def test_probabilities_of_classes_sum_to_1(method, rule):
    table, labels, weights = classes(5)
    venn = sf.VennAbersMulticlass(method).fit(table, labels, sample_weight=weights)
    found = venn.merge(table, rule=rule)
    np.testing.assert_allclose(found.sum(axis=1), 1)
    assert (found >= 0).all()
    assert np.mean(found.argmax(axis=1) == labels) > 0.4


@pytest.mark.filterwarnings("ignore:All-NaN slice encountered:RuntimeWarning")
def test_the_package_venn_abers_agrees_where_it_is_right():
    settings = np.geterr()
    peers = pytest.importorskip("venn_abers")
    np.seterr(**settings)  # it changes them when it is imported
    rng = np.random.default_rng(6)
    for _ in range(20):
        p = np.round(rng.random(80), 2)
        labels = (rng.random(80) < p).astype(int)
        queries = rng.choice(p, 30)  # at calibration scores; it is off between them if labels are separated
        with np.errstate(all="ignore"):
            peer = peers.VennAbers()
            peer.fit(np.column_stack([1 - p, p]), labels)
            merged, pairs = peer.predict_proba(np.column_stack([1 - queries, queries]))
        ours = sf.VennAbers().fit(p, labels)
        np.testing.assert_allclose(np.column_stack(ours.predict(queries)), pairs, rtol=1e-12, atol=1e-15)
        np.testing.assert_allclose(ours.merge(queries), merged[:, 1], rtol=1e-12)


@pytest.mark.parametrize(
    ("error", "message", "call"),
    [
        (ValueError, "`bounds` must be finite", lambda: sf.VennAbersRegression(bounds=(0, math.inf))),
        (ValueError, "`query_weight` must be > 0; got 0", lambda: sf.VennAbersRegression(query_weight=0)),
        (ValueError, "`targets` must be between 0 and 1; got 2.0 at index 1.",
         lambda: sf.VennAbersRegression(bounds=(0, 1)).fit([1, 2], [0.5, 2.0])),
        (ValueError, "`targets` must be finite; got inf at index 0.",
         lambda: sf.VennAbersRegression().fit([1], [math.inf])),
        (ValueError, "`scores` must have at least one row; got none.", lambda: sf.VennAbersRegression().fit([], [])),
        (ValueError, "must be fitted first", lambda: sf.VennAbersRegression().predict(1.0)),
        (ValueError, "must be fitted first", lambda: sf.VennAbersMulticlass().predict([[1.0, 2.0]])),
        (ValueError, "`method` must be one of", lambda: sf.VennAbersMulticlass("all")),
        (ValueError, "`scale` must be one of", lambda: sf.VennAbersMulticlass(scale="logit")),
        (ValueError, "`scores` must have shape (n, k) with k >= 2; got shape (2,).",
         lambda: sf.VennAbersMulticlass().fit([0.5, 0.5], [0, 1])),
        (ValueError, "`scores` must have shape (n, 2); got shape (1, 3).",
         lambda: sf.VennAbersMulticlass().fit([[0.5, 0.5], [0.1, 0.9]], [0, 1]).predict([[1, 2, 3]])),
        (ValueError, "`labels` must be classes from 0 to 1; got 2 at index 1.",
         lambda: sf.VennAbersMulticlass().fit([[0.5, 0.5], [0.1, 0.9]], [0, 2])),
        (ValueError, "`labels` must have a row with weight > 0 for each class; class 1 has none.",
         lambda: sf.VennAbersMulticlass("coupled").fit([[0.5, 0.5], [0.1, 0.9]], [0, 0])),
        (ValueError, "`scores[:, 0]` must be >= 0; got -1.0 at index 0. Are these logits? Pass scale='margin'.",
         lambda: sf.VennAbersMulticlass("one_vs_one").fit([[-1.0, 0.5], [0.1, 0.9]], [0, 1])),
        (ValueError, "`scores[:, 0]` must be finite; got inf at index 0.",
         lambda: sf.VennAbersMulticlass("coupled", "margin").fit([[math.inf, 0.5], [0.1, 0.9]], [0, 1])),
        (ValueError, "`scores[:, 1]` must not be NaN; got nan at index 0.",
         lambda: sf.VennAbersMulticlass().fit([[0.5, math.nan], [0.1, 0.9]], [0, 1])),
    ],
)  # fmt: skip
def test_invalid_input_is_refused(error, message, call):
    with pytest.raises(error, match=re.escape(message)):
        call()


def test_predictors_can_be_pickled_and_shown():
    table, labels, _ = classes(7)
    venn = sf.VennAbersMulticlass("coupled").fit(table, labels)
    assert np.array_equal(pickle.loads(pickle.dumps(venn)).merge(table), venn.merge(table))
    assert repr(venn) == "<VennAbersMulticlass: coupled, 4 classes>"
    assert (venn.method, venn.n_classes, len(venn.predictors)) == ("coupled", 4, 6)
    regression = sf.VennAbersRegression(query_weight=2.0).fit(table[:, 0], labels)
    assert pickle.loads(pickle.dumps(regression)).predict(0.5) == regression.predict(0.5)
    assert regression.query_weight == 2.0
    for kind in (sf.VennAbersMulticlass, sf.VennAbersRegression):
        assert repr(kind()) == f"<{kind.__name__}: not fitted>"
