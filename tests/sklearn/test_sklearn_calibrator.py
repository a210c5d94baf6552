"""StaircaseCalibrator: scores and classifiers, two classes and more, and invalid input."""

import re

import joblib
import numpy as np
import pandas as pd
import pytest
from comparing import assert_same_bits
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_classification
from sklearn.ensemble import IsolationForest
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, Perceptron
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.model_selection import KFold, ShuffleSplit, StratifiedKFold, cross_val_predict
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC

import staircase_fast as sf
from staircase_fast.sklearn import CalibratedPair, StaircaseCalibrator, VennAbersCalibrator

pytestmark = pytest.mark.long


def two_classes(n=400, seed=0):
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=n)
    return scores, rng.random(n) < 1 / (1 + np.exp(-scores))


def rows_of(n_classes, n=300):
    return make_classification(n, 6, n_informative=4, n_classes=n_classes, random_state=0)


@pytest.mark.parametrize("interpolation", ["step", "linear", "centered"])
def test_the_probability_of_the_second_class_is_the_staircase_of_its_scores(interpolation):
    scores, labels = two_classes()
    model = StaircaseCalibrator(interpolation=interpolation).fit(scores, labels)
    stairs = sf.fit(scores, labels, loss="log")
    assert model.calibrated_classifiers_ == [CalibratedPair(None, (stairs,))]
    queries = np.linspace(-5, 5, 99)
    found = model.predict_proba(queries)
    assert_same_bits(found[:, 1], stairs.predict(queries, interpolation=interpolation))
    assert_same_bits(found[:, 0], 1 - found[:, 1])


@pytest.mark.parametrize(
    "labels", [["no", "yes"], [-1, 1], [False, True], ["0", "1"], [3.0, 7.0], np.array(["a", "b"], dtype=object)]
)
def test_labels_of_any_type_are_sorted_as_numpy_sorts_them(labels):
    scores, happened = two_classes()
    names = np.asarray(labels)[happened.astype(int)]
    model = StaircaseCalibrator().fit(scores, names)
    assert model.classes_.tolist() == np.unique(names).tolist() == list(labels)
    assert_same_bits(model.predict_proba(scores), StaircaseCalibrator().fit(scores, happened).predict_proba(scores))
    predicted = model.predict(scores)
    assert set(predicted) <= set(labels)
    assert model.score(scores, names) == np.mean(predicted == names) > 0.6


def test_scores_can_be_one_column_or_one_for_each_class():
    scores, labels = two_classes()
    expected = StaircaseCalibrator().fit(scores, labels).predict_proba(scores)
    for table in (scores[:, np.newaxis], pd.DataFrame({"score": scores})):
        assert_same_bits(StaircaseCalibrator().fit(table, labels).predict_proba(table), expected)
    named = StaircaseCalibrator().fit(pd.DataFrame({"score": scores}), labels)
    assert named.feature_names_in_.tolist() == ["score"]


@pytest.mark.parametrize("kind", ["float64", "float32", "float16"])
def test_two_columns_are_the_probabilities_of_the_classes(kind):
    scores, labels = two_classes()
    second = (1 / (1 + np.exp(-scores))).astype(kind)
    table = np.column_stack([1 - second, second])
    expected = StaircaseCalibrator().fit(second, labels).predict_proba(second)
    assert_same_bits(StaircaseCalibrator().fit(table, labels).predict_proba(table), expected)
    np.testing.assert_array_equal(VennAbersCalibrator().fit(table, labels).predict(table), np.argmax(
        VennAbersCalibrator().fit(second, labels).predict_proba(second), axis=1).astype(bool))  # fmt: skip


@pytest.mark.parametrize("Calibrator", [StaircaseCalibrator, VennAbersCalibrator])
def test_two_columns_of_features_are_refused_with_the_first_row_that_is_no_pair(Calibrator):
    table = np.array([[0.25, 0.75], [0.5, 0.5], [0.5, 0.25], [5.1, 3.5]])
    message = (
        "`X` must have two probabilities that sum to 1 in each row, if it has two columns; got [0.5, 0.25] at index 2. "
        "Pass one score per row, such as `np.asarray(X)[:, 1]`. If the columns are features, pass a classifier as "
        "`estimator`."
    )
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        Calibrator().fit(table, [0, 1, 0, 1])
    model = Calibrator().fit(table[:2], [0, 1])
    with pytest.raises(ValueError, match=re.escape("got [5.1, 3.5] at index 0")):
        model.predict_proba(table[3:])
    for rows in ([[-0.5, 1.5]], [[np.inf, -np.inf]], [[np.nan, 0.5]]):
        with pytest.raises(ValueError, match="must have two probabilities that sum to 1"):
            model.predict_proba(rows)
    with pytest.raises(ValueError, match="`X` must not be NaN; got nan at index 0"):
        model.predict_proba([[np.nan, np.nan]])


def test_scores_can_decrease_with_the_probability():
    scores, labels = two_classes()
    for increasing in (False, "auto"):
        model = StaircaseCalibrator(increasing=increasing).fit(-scores, labels)
        assert not model.calibrated_classifiers_[0].staircases[0].increasing
        assert_same_bits(model.predict_proba(-scores), StaircaseCalibrator().fit(scores, labels).predict_proba(scores))


def test_scores_may_be_infinite_and_never_nan():
    model = StaircaseCalibrator().fit([-np.inf, 0, 1, np.inf], [0, 1, 0, 1])
    assert model.predict_proba([-np.inf, 0.5, np.inf])[:, 1].tolist() == [0, 0.5, 1]
    with pytest.raises(ValueError, match="`X` must not be NaN; got nan at index 1"):
        model.predict_proba([0, np.nan])


def test_weight_k_is_k_rows_and_weight_0_is_ignored():
    scores, labels = two_classes()
    weights = np.random.default_rng(1).integers(0, 3, 400)
    weighted = StaircaseCalibrator().fit(scores, labels, sample_weight=weights.tolist())
    repeated = StaircaseCalibrator().fit(np.repeat(scores, weights), np.repeat(labels, weights))
    assert_same_bits(weighted.predict_proba(scores), repeated.predict_proba(scores))


def test_each_of_three_classes_has_a_staircase_and_rows_sum_to_1():
    rng = np.random.default_rng(0)
    y = rng.choice(["a", "b", "c"], 300)
    scores = rng.normal(size=(300, 3)) + (y[:, np.newaxis] == ["a", "b", "c"])
    model = StaircaseCalibrator().fit(scores, y, sample_weight=np.ones(300))
    raw = np.column_stack(
        [sf.fit(scores[:, k], y == "abc"[k]).predict(scores[:, k], interpolation="linear") for k in range(3)]
    )
    found = model.predict_proba(scores)
    assert found == pytest.approx(raw / raw.sum(axis=1, keepdims=True), abs=1e-15)
    assert model.predict(scores).tolist() == np.array(["a", "b", "c"])[found.argmax(axis=1)].tolist()


def test_if_every_class_has_probability_0_all_get_the_same():
    scores = np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1], [0, 0, 0]]) * 9
    model = StaircaseCalibrator(interpolation="step").fit(scores[1:4], [0, 1, 2])
    assert_same_bits(model.predict_proba([[0, 0, 0], [9, 0, 0]]), [[1 / 3] * 3, [1, 0, 0]])


@pytest.mark.parametrize("prior", ["laplace", "jeffreys"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_with_a_prior_the_log_loss_of_rows_that_disagree_is_finite(prior, n_classes):
    X, y = rows_of(n_classes)
    model = StaircaseCalibrator(GaussianNB(), cv=3, prior=prior).fit(X, y)
    found = model.predict_proba(X * 50)
    assert ((found > 0) & (found < 1)).all()
    assert np.isfinite(-np.log(found)).all()
    assert np.isfinite(log_loss(y, found))
    plain = StaircaseCalibrator(interpolation="step").fit([1, 2], [0, 1])
    assert plain.predict_proba([1, 2])[:, 1].tolist() == [0, 1]


def test_centered_lines_keep_the_ranking_of_scores():
    scores, labels = two_classes()
    kept = StaircaseCalibrator(interpolation="centered").fit(scores, labels).predict_proba(scores)[:, 1]
    assert roc_auc_score(labels, kept) == roc_auc_score(labels, scores)
    tied = StaircaseCalibrator().fit(scores, labels).predict_proba(scores)[:, 1]
    assert len(np.unique(kept)) == 400 > len(np.unique(tied))


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("ensemble", [True, False])
@pytest.mark.parametrize("estimator", [GaussianNB(), LogisticRegression()], ids=str)
def test_a_classifier_is_calibrated_as_scikit_learn_does_it(estimator, ensemble, n_classes):
    X, y = rows_of(n_classes)
    ours = StaircaseCalibrator(estimator, cv=3, ensemble=ensemble).fit(X, y)
    theirs = CalibratedClassifierCV(estimator, method="isotonic", cv=3, ensemble=ensemble).fit(X, y)
    assert ours.predict_proba(X) == pytest.approx(theirs.predict_proba(X), abs=1e-9)
    assert len(ours.calibrated_classifiers_) == (3 if ensemble else 1)
    assert ours.n_features_in_ == 6
    with joblib.parallel_config(backend="threading"):
        jobs = StaircaseCalibrator(estimator, cv=3, ensemble=ensemble, n_jobs=2, n_threads=1).fit(X, y)
    assert_same_bits(jobs.predict_proba(X), ours.predict_proba(X))


def test_each_row_is_scored_by_a_classifier_trained_on_other_rows():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(600, 3)), rng.integers(0, 2, 600)  # there is nothing to learn
    folds = KFold(3)
    model = StaircaseCalibrator(KNeighborsClassifier(1), cv=folds, ensemble=False).fit(X, y)
    unseen = cross_val_predict(KNeighborsClassifier(1), X, y, cv=folds, method="predict_proba")[:, 1]
    assert model.calibrated_classifiers_[0].staircases == (sf.fit(unseen, y, loss="log"),)
    assert np.ptp(model.predict_proba(X)[:, 1]) < 0.2


def test_a_frozen_classifier_is_calibrated_with_all_rows():
    X, y = rows_of(2)
    frozen = FrozenEstimator(GaussianNB().fit(X[:100], y[:100]))
    scores = frozen.predict_proba(X[100:])[:, 1]
    model = StaircaseCalibrator(frozen).fit(X[100:], y[100:])
    assert model.calibrated_classifiers_ == [CalibratedPair(frozen, (sf.fit(scores, y[100:], loss="log"),))]
    several = StaircaseCalibrator(frozen, cv=4, ensemble=True).fit(X[100:], y[100:])
    assert len(several.calibrated_classifiers_) == 4


def test_splits_may_overlap_and_leave_rows_out():
    X, y = rows_of(2)
    splits = ShuffleSplit(4, test_size=0.3, random_state=0)
    model = StaircaseCalibrator(GaussianNB(), cv=splits, ensemble=False).fit(X, y)
    assert model.calibrated_classifiers_[0].staircases[0].counts.sum() == 4 * 90
    as_a_list = StaircaseCalibrator(GaussianNB(), cv=list(splits.split(X)), ensemble=False).fit(X, y)
    assert_same_bits(as_a_list.predict_proba(X), model.predict_proba(X))


def test_frames_and_parameters_of_fit_are_passed_on():
    X, y = rows_of(2)
    frame = pd.DataFrame(X, columns=list("abcdef"))
    weights = np.random.default_rng(0).random(300)
    model = StaircaseCalibrator(LogisticRegression(), cv=3).fit(frame, y, sample_weight=weights)
    assert model.feature_names_in_.tolist() == list("abcdef")
    folds = list(StratifiedKFold(3).split(X, y))
    train, test = folds[0]
    first = LogisticRegression().fit(frame.iloc[train], y[train], sample_weight=weights[train])
    stairs = sf.fit(first.decision_function(frame.iloc[test]), y[test], sample_weight=weights[test], loss="log")
    assert model.calibrated_classifiers_[0].staircases == (stairs,)
    passed = StaircaseCalibrator(Perceptron(), cv=3).fit(X, y, coef_init=np.ones((1, 6)))
    assert passed.predict_proba(X).shape == (300, 2)


def test_a_classifier_that_does_not_accept_weights_causes_a_warning():
    X, y = rows_of(2)
    with pytest.warns(UserWarning, match="KNeighborsClassifier does not accept `sample_weight`"):
        StaircaseCalibrator(KNeighborsClassifier(), cv=2).fit(X, y, sample_weight=np.ones(300))


@pytest.mark.parametrize(
    ("rows", "parameters", "error", "message"),
    [
        (([1, 2], [1, 1]), {}, ValueError, "`y` must have at least 2 classes; got 1 class, 1."),
        (([], []), {}, ValueError, "`y` must have at least one row; got none"),
        (([1, 2, 3], [0, 1, 2]), {}, ValueError, "`X` must be scores of shape (n, 3) for 3 classes; got shape (3,)"),
        (([[1, 2, 3]] * 2, [0, 1]), {}, ValueError, "of shape (n,), (n, 1) or (n, 2) for 2 classes; got shape (2, 3)"),
        (([[1, 2, 3]] * 2, [0, 1]), {}, ValueError, "If these are features, pass a classifier as `estimator`."),
        (([1, np.nan], [0, 1]), {}, ValueError, "`X` must not be NaN; got nan at index 1"),
        (([1, 2], ["a", None]), {}, TypeError, "`y` must have classes that can be sorted"),
        (([1, 2], [0.5, 0.7]), {}, ValueError, "Unknown label type"),
        (([1, 2, 3], [0, 1]), {}, ValueError, "inconsistent numbers of samples"),
        (([1, 2], [0, 1], [1, -1]), {}, ValueError, "`sample_weight` must be >= 0; got -1.0 at index 1"),
        (([1, 2], [0, 1]), {"prior": "flat"}, ValueError, "'none', 'laplace', 'jeffreys'; got 'flat'"),
        (([1, 2], [0, 1]), {"interpolation": "cubic"}, ValueError, "`interpolation` must be one of"),
        (([1, 2], [0, 1]), {"ensemble": "some"}, ValueError, "`ensemble` must be True, False or 'auto'; got 'some'"),
    ],
)  # fmt: skip
def test_invalid_rows_and_parameters_are_refused(rows, parameters, error, message):
    model = StaircaseCalibrator(**parameters)
    with pytest.raises(error, match=re.escape(message)):
        model.fit(*rows)
    assert vars(model) == vars(StaircaseCalibrator(**parameters))


@pytest.mark.parametrize("kind", [np.array, pd.Series, lambda y: np.array(y, dtype=object)])
def test_splits_that_lack_a_class_are_refused_with_a_hint(kind):
    X = np.arange(12.0).reshape(-1, 1)
    y = kind(["a"] * 6 + ["b"] * 6)
    with pytest.raises(ValueError, match=r"every class in the training part of a split; split 0 has none of class 'a'"):
        StaircaseCalibrator(GaussianNB(), cv=KFold(2)).fit(X, y)
    with pytest.raises(ValueError, match=r"test part .* none of class 'b'\. Use StratifiedKFold, or fewer splits"):
        StaircaseCalibrator(GaussianNB(), cv=KFold(3)).fit(X, y)
    assert StaircaseCalibrator(GaussianNB(), cv=KFold(3), ensemble=False).fit(X, y).predict([[0.0]]) == ["a"]


@pytest.mark.parametrize("ensemble", [True, False])
def test_an_exhausted_iterator_of_splits_is_refused(ensemble):
    X, y = rows_of(2)
    model = StaircaseCalibrator(GaussianNB(), cv=KFold(3).split(X), ensemble=ensemble).fit(X, y)
    for cv in (model.cv, []):
        with pytest.raises(ValueError, match=r"`cv` must give at least one split; got none\. An iterator"):
            model.set_params(cv=cv).fit(X, y)


@pytest.mark.parametrize("ensemble", [True, False])
def test_splits_may_be_masks(ensemble):
    X, y = rows_of(2)
    splits = list(KFold(3).split(X))
    masks = [tuple(np.isin(np.arange(300), part) for part in split) for split in splits]
    found, expected = (
        StaircaseCalibrator(GaussianNB(), cv=cv, ensemble=ensemble).fit(X, y).predict_proba(X) for cv in (masks, splits)
    )
    assert_same_bits(found, expected)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_weights_that_are_all_zero_are_refused_and_the_split_is_named(n_classes):
    X, y = rows_of(n_classes)
    with pytest.raises(ValueError, match=r"^`sample_weight` must have an entry > 0; all 300 are zero\.$"):
        StaircaseCalibrator().fit(X[:, :n_classes], y, sample_weight=np.zeros(300))
    weights = np.repeat([1.0, 0.0, 1.0], 100)
    model = StaircaseCalibrator(GaussianNB(), cv=KFold(3))
    with pytest.raises(ValueError, match=r"an entry > 0 in the test part of split 1; all 100 are zero\.$"):
        model.fit(X, y, sample_weight=weights)
    model.set_params(ensemble=False).fit(X, y, sample_weight=weights)
    second = [(np.r_[:100, 200:300], np.r_[100:200])]
    with pytest.raises(ValueError, match=r"an entry > 0 in the test part of a split; all 100 are zero\.$"):
        model.set_params(cv=second).fit(X, y, sample_weight=weights)


def test_feature_names_of_an_earlier_fit_are_removed():
    X, y = rows_of(2)
    model = StaircaseCalibrator(GaussianNB(), cv=2).fit(pd.DataFrame(X, columns=list("abcdef")), y)
    assert not hasattr(model.fit(X, y), "feature_names_in_")
    assert model.n_features_in_ == 6
    assert not hasattr(model.set_params(estimator=None).fit(X[:, 0], y), "n_features_in_")


def test_an_unfitted_estimator_and_one_that_is_not_a_classifier_are_refused():
    X, y = rows_of(2)
    for ensemble in (True, False):
        with pytest.raises(NotFittedError, match="instance is not fitted yet"):
            StaircaseCalibrator(FrozenEstimator(GaussianNB()), ensemble=ensemble).fit(X, y)
    with pytest.raises(TypeError, match=r"must be a classifier, which has `classes_` .*; got IsolationForest\("):
        StaircaseCalibrator(IsolationForest(n_estimators=2), cv=2).fit(X, y)
    with pytest.raises(
        ValueError, match=r"`cv` must be .*; got 'prefit'\. Wrap a fitted classifier in .*FrozenEstimator"
    ):
        StaircaseCalibrator(GaussianNB(), cv="prefit").fit(X, y)


def test_classifiers_without_scores_for_these_classes_are_refused():
    X, y = rows_of(3)
    frozen = FrozenEstimator(GaussianNB().fit(X, y))
    with pytest.raises(ValueError, match=r"the classes of `estimator`, \[0, 1, 2\]; got \[0, 1\]"):
        StaircaseCalibrator(frozen).fit(X[y < 2], y[y < 2])
    X, y = rows_of(4)
    pairs = SVC(decision_function_shape="ovo")
    with pytest.raises(ValueError, match=r"`decision_function` must be scores of shape \(n, 4\)"):
        StaircaseCalibrator(pairs, cv=2).fit(X, y)

    class Silent(KNeighborsClassifier):
        predict_proba = property()

    with pytest.raises(TypeError, match="`estimator` must have decision_function or predict_proba; got Silent"):
        StaircaseCalibrator(Silent(), cv=2).fit(X, y)
    with pytest.raises(TypeError, match="`groups` must not be passed without an `estimator`"):
        StaircaseCalibrator().fit([1, 2], [0, 1], groups=[1, 2])
