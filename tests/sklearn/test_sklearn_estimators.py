"""The estimators pass scikit-learn's checks and work inside its tools."""

import copy
import pickle
import subprocess
import sys

import joblib
import numpy as np
import pandas as pd
import pytest
import sklearn
from comparing import assert_same_bits
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator
from sklearn.utils.validation import check_is_fitted, validate_data

from staircase_fast.sklearn import StaircaseCalibrator, StaircaseRegressor, VennAbersCalibrator

pytestmark = pytest.mark.long


class FirstColumn:
    """Uses the first of many features: scikit-learn has few checks for estimators with one feature."""

    def first(self, X, *, reset):
        if not reset:
            check_is_fitted(self)
        return validate_data(self, X, reset=reset)[:, 0]

    def fit(self, X, y, sample_weight=None):
        return super().fit(self.first(X, reset=True), y, sample_weight)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.one_d_array, tags.input_tags.two_d_array = False, True
        return tags


class RegressorOfFirst(FirstColumn, StaircaseRegressor):
    def partial_fit(self, X, y, sample_weight=None):
        return super().partial_fit(self.first(X, reset=not hasattr(self, "_accumulator")), y, sample_weight)

    def predict(self, T):
        return super().predict(self.first(T, reset=False))

    def transform(self, T):
        return super().transform(self.first(T, reset=False)).reshape(-1, 1)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True  # the first feature alone carries little information
        return tags


class CalibratorOfFirst(FirstColumn, StaircaseCalibrator):
    def predict_proba(self, X):
        return super().predict_proba(self.first(X, reset=False))

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True
        tags.classifier_tags.multi_class = False
        return tags


KNOWN = {  # checks that cannot pass, with the reason
    RegressorOfFirst: {"check_fit_score_takes_y": "it calls partial_fit after fit, which keeps no rows"},
    CalibratorOfFirst: {"check_classifier_not_supporting_multiclass": "three classes are fine with three columns"},
}
if sklearn.__version__.startswith("1.6."):
    KNOWN[CalibratorOfFirst]["check_sample_weight_equivalence_on_dense_data"] = "it swaps the classes of shuffled rows"


@pytest.mark.filterwarnings("ignore")  # theirs, about what the checks do
@pytest.mark.parametrize(
    "estimator",
    [
        RegressorOfFirst(out_of_bounds="clip"),
        CalibratorOfFirst(),
        StaircaseCalibrator(GaussianNB(), cv=2),
        StaircaseCalibrator(GaussianNB(), cv=2, ensemble=False, prior="laplace", interpolation="centered"),
        VennAbersCalibrator(GaussianNB(), cv=2),
        VennAbersCalibrator(GaussianNB(), cv=2, method="coupled", rule="brier"),
    ],
    ids=str,
)
def test_the_checks_of_scikit_learn_pass(estimator):
    known = KNOWN.get(type(estimator), {})
    results = check_estimator(estimator, on_skip=None, on_fail=None, expected_failed_checks=known)
    assert [(one["check_name"], one["exception"]) for one in results if one["status"] == "failed"] == []
    assert {one["check_name"] for one in results if one["status"] == "skipped"} <= {"check_array_api_input"}
    assert sum(one["status"] == "passed" for one in results) >= 40


@pytest.mark.filterwarnings("ignore")  # that most checks are left out
@pytest.mark.parametrize("estimator", [StaircaseRegressor(), StaircaseCalibrator(), VennAbersCalibrator()], ids=str)
def test_the_checks_for_estimators_with_one_feature_pass(estimator):
    check_estimator(estimator)


@pytest.fixture(scope="module")
def data():
    return make_classification(300, 5, random_state=0)


@pytest.mark.parametrize("fitted", [False, True])
@pytest.mark.parametrize("copied", [clone, copy.copy, copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))])
@pytest.mark.parametrize(
    "estimator", [StaircaseRegressor(y_max=0.8, out_of_bounds="clip"), StaircaseCalibrator(prior="laplace")], ids=str
)
def test_copies_and_pickles_have_the_same_parameters_and_predictions(estimator, copied, fitted):
    scores, labels = [0.1, 0.4, 0.35, 0.8], [0, 0, 1, 1]
    estimator = clone(estimator)
    if fitted:
        estimator.fit(scores, labels)
    other = copied(estimator)
    assert other.get_params() == estimator.get_params()
    if fitted and copied is not clone:
        assert_same_bits(other.predict([0.2, 0.38, 2.0]), estimator.predict([0.2, 0.38, 2.0]))
    else:
        with pytest.raises(sklearn.exceptions.NotFittedError):
            other.predict([0.5])


def test_a_pickled_regressor_can_continue_with_partial_fit():
    one = StaircaseRegressor().partial_fit([1, 2], [5, 3])
    other = pickle.loads(pickle.dumps(one)).partial_fit([3], [2])
    assert other.staircase_ == StaircaseRegressor().fit([1, 2, 3], [5, 3, 2]).staircase_
    assert one.staircase_.counts.tolist() == [2]


def test_joblib_saves_and_loads_them(tmp_path):
    model = StaircaseCalibrator().fit([0.1, 0.4, 0.35, 0.8], [0, 0, 1, 1])
    joblib.dump(model, tmp_path / "model.joblib")
    assert_same_bits(joblib.load(tmp_path / "model.joblib").predict_proba([0.38]), [[0.5, 0.5]])


def test_a_grid_search_of_a_pipeline_finds_parameters_of_the_calibrator(data):
    X, y = data
    pipeline = make_pipeline(StandardScaler(), StaircaseCalibrator(GaussianNB(), cv=3))
    grid = {"staircasecalibrator__prior": ["none", "laplace"], "staircasecalibrator__estimator__var_smoothing": [1e-9]}
    search = GridSearchCV(pipeline, grid, cv=2, scoring="neg_brier_score").fit(X, y)
    assert set(search.best_params_) == set(grid)
    assert search.predict_proba(X).shape == (300, 2)


def test_a_grid_search_finds_the_loss_of_the_regressor_with_weights_and_losses_as_objects():
    rng = np.random.default_rng(0)
    X = rng.random(200)
    y, weights = X + rng.standard_cauchy(200), rng.random(200)
    grid = {"loss": ["squared", "huber"], "increasing": [True, "auto"]}
    search = GridSearchCV(StaircaseRegressor(out_of_bounds="clip"), grid, cv=3)
    search.fit(X.reshape(-1, 1), y, sample_weight=weights)
    assert set(search.best_params_) == set(grid)
    best = StaircaseRegressor(**search.best_params_).fit(X, y, weights)
    assert search.best_estimator_.staircase_ == best.staircase_


def test_scikit_learns_calibrated_classifier_gives_the_same_with_our_regressor(data, monkeypatch):
    X, y = data
    model = CalibratedClassifierCV(GaussianNB(), method="isotonic", cv=3)
    theirs = clone(model).fit(X, y).predict_proba(X)
    monkeypatch.setattr(sklearn.calibration, "IsotonicRegression", StaircaseRegressor)
    found = clone(model).fit(X, y)
    assert isinstance(found.calibrated_classifiers_[0].calibrators[0], StaircaseRegressor)
    assert found.predict_proba(X) == pytest.approx(theirs, abs=1e-12)


@pytest.mark.parametrize("name", ["pandas", "polars"])
def test_set_output_changes_transform_but_not_predict(name):
    kind = pytest.importorskip(name).DataFrame
    model = StaircaseRegressor().set_output(transform=name).fit([1, 2, 3], [1, 3, 2])
    found = model.transform([1, 2.5])
    assert isinstance(found, kind)
    assert list(found.columns) == list(model.get_feature_names_out()) == ["staircaseregressor0"]
    assert isinstance(model.predict([1, 2.5]), np.ndarray)


def test_the_feature_name_is_stored_and_compared():
    frame = pd.DataFrame({"age": [1.0, 2.0]})
    model = StaircaseRegressor().fit(frame, [1, 2])
    assert model.feature_names_in_.tolist() == ["age"]
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame.rename(columns={"age": "size"}))
    assert not hasattr(model.fit([1, 2], [1, 2]), "feature_names_in_")


def test_weights_are_routed_to_consumers_that_request_them(data):
    X, y = data
    weights = np.random.default_rng(0).random(300)
    with sklearn.config_context(enable_metadata_routing=True):
        inner = LogisticRegression().set_fit_request(sample_weight=True)
        model = StaircaseCalibrator(inner, cv=3).set_fit_request(sample_weight=True)
        scaler = StandardScaler().set_fit_request(sample_weight=False)
        routed = make_pipeline(scaler, model).fit(X, y, sample_weight=weights).predict_proba(X)
        regressor = StaircaseRegressor().set_fit_request(sample_weight=True)
        assert regressor.get_metadata_routing().fit.requests == {"sample_weight": True}
        routing = StaircaseCalibrator().set_fit_request(sample_weight=True).get_metadata_routing()
        assert routing.consumes("fit", ["sample_weight", "groups"]) == {"sample_weight"}
        ignoring = StaircaseCalibrator(LogisticRegression().set_fit_request(sample_weight=False), cv=3)
        assert ignoring.fit(X, y, sample_weight=weights) is ignoring
    plain = StaircaseCalibrator(LogisticRegression(), cv=3)
    scaled = StandardScaler().fit_transform(X)
    assert_same_bits(plain.fit(scaled, y, sample_weight=weights).predict_proba(scaled), routed)


def test_without_scikit_learn_the_error_names_the_extra():
    code = "import sys; sys.modules['sklearn'] = None; import staircase_fast.sklearn"
    child = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert child.returncode == 1
    assert "`staircase_fast.sklearn` needs scikit-learn, which is not installed: pip install" in child.stderr
