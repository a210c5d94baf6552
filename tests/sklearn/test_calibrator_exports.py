"""ONNX models and JSON texts of a StaircaseCalibrator give the bits of `predict_proba`."""

import json

import numpy as np
import onnx
import onnxruntime
import pytest
from comparing import assert_same_bits
from sklearn.datasets import make_classification
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

import staircase_fast as sf
from staircase_fast.sklearn import StaircaseCalibrator


@pytest.fixture
def path(tmp_path):
    return tmp_path / "calibrator.onnx"


def fitted(n_classes, estimator=None, *, n=300, **options):
    """A calibrator, rows for `predict_proba`, and the scores of these rows by each classifier."""
    X, y = make_classification(n, 6, n_informative=4, n_classes=n_classes, random_state=0)
    if estimator is None:
        table = LogisticRegression().fit(X, y).decision_function(X)
        more = np.linspace(-9, 9, 50) if n_classes == 2 else np.random.default_rng(0).normal(size=(50, n_classes)) * 5
        scores = np.concatenate([table, more])
        return StaircaseCalibrator(**options).fit(table, y), scores, [scores]
    model = StaircaseCalibrator(estimator, **options).fit(X, y)
    names = ("decision_function", "predict_proba")
    method = next(name for name in names if hasattr(estimator, name))
    tables = [getattr(pair.estimator, method)(X) for pair in model.calibrated_classifiers_]
    return model, X, [table[:, 1] if table.shape[1:] == (2,) else table for table in tables]


def evaluated(path, tables):
    names = ["scores"] if len(tables) == 1 else [f"scores_{place}" for place in range(len(tables))]
    (found,) = onnxruntime.InferenceSession(path).run(None, dict(zip(names, tables, strict=True)))
    return found


CASES = [
    (2, None, {}),
    (2, None, {"interpolation": "step", "increasing": "auto"}),
    (3, None, {"interpolation": "centered"}),
    (4, None, {"interpolation": "step", "n": 900}),
    (2, GaussianNB(), {"cv": 3, "prior": "laplace"}),
    (2, LogisticRegression(), {"ensemble": False}),
    (4, LogisticRegression(), {"cv": 11, "interpolation": "step"}),
    (3, GaussianNB(), {"cv": 2, "ensemble": False, "prior": "jeffreys"}),
]


@pytest.mark.parametrize(("n_classes", "estimator", "options"), CASES)
def test_onnx_gives_the_bits_of_predict_proba(path, n_classes, estimator, options):
    model, X, tables = fitted(n_classes, estimator, **options)
    model.to_onnx(path)
    assert_same_bits(evaluated(path, tables), model.predict_proba(X))
    onnx.checker.check_model(onnx.load(path), full_check=True)


@pytest.mark.parametrize(("n_classes", "estimator", "options"), CASES)
def test_json_keeps_the_calibration(n_classes, estimator, options):
    model, X, _ = fitted(n_classes, estimator, **options)
    pairs = model.calibrated_classifiers_
    again = StaircaseCalibrator.from_json(
        model.to_json(), estimator and [pair.estimator for pair in model.calibrated_classifiers_]
    )
    assert_same_bits(again.predict_proba(X), model.predict_proba(X))
    assert [pair.staircases for pair in again.calibrated_classifiers_] == [pair.staircases for pair in pairs]
    assert again.to_json() == model.to_json()


def test_classes_without_any_probability_share_it_equally(path):
    scores = np.repeat(np.eye(3), 5, axis=0)
    model = StaircaseCalibrator(interpolation="step").fit(scores, np.repeat([0, 1, 2], 5))
    model.to_onnx(path)
    queries = np.array([[-1.0, -1.0, -1.0], [2.0, 2.0, 0.0], [0.5, 1.0, 0.0]])
    assert model.predict_proba(queries)[0].tolist() == [1 / 3] * 3
    assert_same_bits(evaluated(path, [queries]), model.predict_proba(queries))
    assert np.isnan(evaluated(path, [np.full((1, 3), np.nan)])).all()


def test_many_classes_are_summed_from_left_to_right(path):
    rng = np.random.default_rng(0)
    y = np.arange(600) % 12
    scores = rng.normal(size=(600, 12)) + 2 * np.eye(12)[y]
    model = StaircaseCalibrator(prior="laplace").fit(scores, y)
    model.to_onnx(path)
    assert_same_bits(evaluated(path, [scores]), model.predict_proba(scores))


def test_float32_is_rounded_once_and_the_model_has_metadata(path):
    model, scores, _ = fitted(2)
    scores = scores.astype(np.float32)
    model.to_onnx(path, dtype="float32", input_name="x", output_name="p")
    (found,) = onnxruntime.InferenceSession(path).run(None, {"x": scores})
    assert found.dtype == np.float32
    assert np.array_equal(found, model.predict_proba(scores).astype(np.float32))
    said = {entry.key.removeprefix("staircase_fast."): entry.value for entry in onnx.load(path).metadata_props}
    assert said == {"classes": "[0, 1]", "interpolation": "linear"}


@pytest.mark.parametrize("classes", [["no", "yes"], [False, True], [-1, 1], [3.0, 7.0]])
def test_json_keeps_classes_of_any_kind(classes):
    model = StaircaseCalibrator(prior="laplace").fit([-1.2, 0.3, 0.1, 2.0], np.array(classes)[[0, 1, 0, 1]])
    again = StaircaseCalibrator.from_json(model.to_json())
    assert again.classes_.tolist() == classes
    assert again.predict([-3, 3]).tolist() == classes
    assert again.get_params()["prior"] == "laplace"


def test_classes_that_json_cannot_hold_raise_an_error():
    model, *_ = fitted(2)
    for classes, found in ((np.array([b"a", b"b"]), "b'a' at index 0"), (np.array([0.0, np.inf]), "inf at index 1")):
        model.classes_ = classes
        with pytest.raises(
            TypeError, match=f"`classes_` must be finite numbers, strings or bools for JSON; got {found}"
        ):
            model.to_json()


def test_an_unfitted_calibrator_cannot_be_exported(path):
    for export in (StaircaseCalibrator().to_json, lambda: StaircaseCalibrator().to_onnx(path)):
        with pytest.raises(NotFittedError):
            export()


def test_classifiers_must_match_the_calibration():
    model, *_ = fitted(2, GaussianNB(), cv=3)
    for estimators, found in ((None, "None"), ([GaussianNB()], "1")):
        with pytest.raises(sf.InvalidInputError) as caught:
            StaircaseCalibrator.from_json(model.to_json(), estimators)
        assert str(caught.value) == (
            f"`estimators` must be a list of 3 fitted classifiers; got {found}. "
            "They are the `estimator` of each entry of `calibrated_classifiers_`."
        )
    scores, *_ = fitted(2)
    with pytest.raises(ValueError, match="`estimators` must be None: the calibrator was fitted to scores; got "):
        StaircaseCalibrator.from_json(scores.to_json(), [GaussianNB()])


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        ("field `classes` must be an array of numbers, strings or bools; got 3", {"classes": 3}),
        ("field `classes` must be an array of numbers, strings or bools; got [1, 'a']", {"classes": [1, "a"]}),
        ("field `classes` must have at least 2 entries and strictly increase; got [1]", {"classes": [1]}),
        ("field `classes` must have at least 2 entries and strictly increase; got [1, 0]", {"classes": [1, 0]}),
        ("field `estimators` must be true or false; got 1", {"estimators": 1}),
        ("field `parameters` must be an object with ensemble, prior, interpolation, increasing", {"parameters": {}}),
        ("field `staircases` must be arrays of 1 staircases; got None at index 0", {"staircases": []}),
        ("field `staircases` must be arrays of 1 staircases; got [] at index 0", {"staircases": [[]]}),
        ("field `increasing` is missing", {"staircases": [[{"format": "staircase_fast", "version": 1, "loss": {}}]]}),
        ("field `version` must be 1; got 2", {"version": 2}),
        ("field `color` is not known", {"color": 3}),
    ],
)
def test_damaged_json_raises_an_error(text, fields):
    document = json.loads(fitted(2)[0].to_json()) | fields
    with pytest.raises(sf.InvalidInputError) as caught:
        StaircaseCalibrator.from_json(json.dumps(document))
    assert text in str(caught.value)


def test_parameters_and_numbers_of_entries_are_checked():
    document = json.loads(fitted(2)[0].to_json())
    with pytest.raises(sf.InvalidInputError, match="must have one entry if there are no estimators; got 2"):
        StaircaseCalibrator.from_json(json.dumps(document | {"staircases": document["staircases"] * 2}))
    parameters = document["parameters"] | {"prior": "flat"}
    with pytest.raises(sf.InvalidInputError, match="`prior` must be one of"):
        StaircaseCalibrator.from_json(json.dumps(document | {"parameters": parameters}))
