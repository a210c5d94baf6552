"""VennAbersCalibrator equals the predictors that it is made of."""

import itertools
import re

import numpy as np
import pandas as pd
import pytest
import sklearn
from comparing import assert_same_bits
from sklearn.datasets import make_classification
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.naive_bayes import GaussianNB

import staircase_fast as sf
from staircase_fast.sklearn import VennAbersCalibrator

pytestmark = pytest.mark.long


def rows_of(n_classes, n=300):
    return make_classification(n, 6, n_informative=4, n_classes=n_classes, random_state=0)


@pytest.mark.parametrize("rule", ["log", "brier"])
def test_scores_of_two_classes_have_the_probabilities_of_venn_abers(rule):
    rng = np.random.default_rng(0)
    scores, weights = rng.normal(size=200), rng.random(200)
    labels = np.where(rng.random(200) < 1 / (1 + np.exp(-scores)), "yes", "no")
    model = VennAbersCalibrator(rule=rule).fit(scores, labels, sample_weight=weights)
    venn = sf.VennAbers().fit(scores, labels == "yes", sample_weight=weights)
    queries = np.linspace(-4, 4, 50)
    p0, p1 = venn.predict(queries)
    found = model.predict_proba(queries)
    np.testing.assert_allclose(found[:, 1], venn.merge(queries, rule=rule), rtol=1e-14)
    assert_same_bits(found.sum(axis=1), np.ones(50))
    intervals = model.predict_interval(queries)
    assert_same_bits(intervals[:, 1, 0], p0)
    assert_same_bits(intervals[:, 1, 1], p1)
    np.testing.assert_allclose(intervals[:, 0], np.column_stack([1 - p1, 1 - p0]), rtol=0, atol=1e-15)
    assert set(model.predict(queries)) == {"yes", "no"}


def test_a_frozen_classifier_is_calibrated_with_all_rows():
    X, y = rows_of(2)
    fitted = LogisticRegression().fit(X[:100], y[:100])
    model = VennAbersCalibrator(FrozenEstimator(fitted)).fit(X[100:200], y[100:200])
    venn = sf.VennAbers().fit(fitted.decision_function(X[100:200]), y[100:200])
    assert_same_bits(model.predict_proba(X[200:])[:, 1], venn.merge(fitted.decision_function(X[200:])))
    assert len(model.calibrated_classifiers_) == 1
    assert model.n_features_in_ == 6


@pytest.mark.parametrize("rule", ["log", "brier"])
def test_a_classifier_is_cross_fitted_as_by_the_cross_predictor(rule):
    X, y = rows_of(2)
    weights = np.random.default_rng(1).random(300)
    cv = StratifiedKFold(4)
    model = VennAbersCalibrator(GaussianNB(), cv=cv, rule=rule).fit(X, y, sample_weight=weights)
    scores, folds, columns = np.empty(300), np.empty(300, dtype=int), []
    for fold, (train, test) in enumerate(cv.split(X, y)):
        classifier = GaussianNB().fit(X[train], y[train], sample_weight=weights[train])
        scores[test], folds[test] = classifier.predict_proba(X[test])[:, 1], fold
        columns.append(classifier.predict_proba(X)[:, 1])
    cross = sf.CrossVennAbers().fit(scores, y, folds, sample_weight=weights)
    queries = np.column_stack(columns)
    found = model.predict_proba(X)
    np.testing.assert_allclose(found[:, 1], cross.merge(queries, rule=rule), rtol=1e-13)
    intervals = model.predict_interval(X)
    p0, p1 = cross.predict(queries)
    assert (intervals[:, 1, 0] <= p0.mean(axis=1)).all()
    assert (intervals[:, 1, 1] >= p1.mean(axis=1)).all()
    assert ((intervals[..., 0] <= found) & (found <= intervals[..., 1])).all()


@pytest.mark.parametrize("method", ["one_vs_rest", "one_vs_one", "coupled"])
@pytest.mark.parametrize("classifier", [GaussianNB(), LogisticRegression()], ids=["probabilities", "margins"])
def test_several_classes_are_those_of_the_multiclass_predictor(method, classifier):
    X, y = rows_of(4)
    fitted = classifier.fit(X[:150], y[:150])
    has_margins = hasattr(fitted, "decision_function")
    score = fitted.decision_function if has_margins else fitted.predict_proba
    model = VennAbersCalibrator(FrozenEstimator(fitted), method=method).fit(X[150:], y[150:])
    venn = sf.VennAbersMulticlass(method, "margin" if has_margins else "probability").fit(score(X[150:]), y[150:])
    assert_same_bits(model.predict_proba(X), venn.merge(score(X)))
    if method == "one_vs_rest":
        assert_same_bits(model.predict_interval(X)[..., 1], venn.predict(score(X)).p1)
    else:
        with pytest.raises(ValueError, match="`method` must be 'one_vs_rest' for intervals of more than two classes"):
            model.predict_interval(X)
    crossed = VennAbersCalibrator(classifier, cv=3, method=method).fit(X, y).predict_proba(X)
    np.testing.assert_allclose(crossed.sum(axis=1), 1)
    assert (crossed.argmax(axis=1) == y).mean() > 0.5


def test_weights_are_routed_and_count_as_copies():
    X, y = rows_of(2)
    weights = np.random.default_rng(2).random(300)
    with sklearn.config_context(enable_metadata_routing=True):
        inner = LogisticRegression().set_fit_request(sample_weight=True)
        routed = VennAbersCalibrator(inner, cv=3).set_fit_request(sample_weight=True)
        found = routed.fit(X, y, sample_weight=weights).predict_proba(X)
        routing = routed.get_metadata_routing()
        assert routing.consumes("fit", ["sample_weight", "groups"]) == {"sample_weight"}
    plain = VennAbersCalibrator(LogisticRegression(), cv=3).fit(X, y, sample_weight=weights)
    assert_same_bits(plain.predict_proba(X), found)
    scores, counts = np.arange(20) % 7, np.arange(20) % 3
    labels = np.arange(20) % 2
    twice = VennAbersCalibrator().fit(np.repeat(scores, counts), np.repeat(labels, counts))
    once = VennAbersCalibrator().fit(scores, labels, sample_weight=counts)
    assert_same_bits(once.predict_proba(scores), twice.predict_proba(scores))


def test_names_of_features_are_kept():
    X, y = rows_of(2)
    frame = pd.DataFrame(X, columns=list("abcdef"))
    model = VennAbersCalibrator(LogisticRegression(), cv=2).fit(frame, y)
    assert model.feature_names_in_.tolist() == list("abcdef")


@pytest.mark.parametrize(
    ("message", "options"),
    [
        ("`method` must be one of", {"method": "all"}),
        ("`scale` must be one of", {"scale": "logit"}),
        ("`rule` must be one of", {"rule": "squared"}),
        ("`query_weight` must be > 0; got 0", {"query_weight": 0}),
    ],
)
def test_invalid_options_are_refused(message, options):
    for estimator, k in itertools.product((None, GaussianNB()), (2, 3)):
        X, y = rows_of(k, 60)
        with pytest.raises(ValueError, match=re.escape(message)):
            VennAbersCalibrator(estimator, cv=2, **options).fit(X[:, :k] if estimator is None else X, y)
