"""ONNX models: onnxruntime gives the bits of `predict`."""

import json
import sys

import numpy as np
import onnx
import onnxruntime
import pytest
from comparing import assert_same_bits
from exported import STAIRCASES, STEPS_ONLY, STEPS_ONLY_SLOPES, many, queries

import staircase_fast as sf

pytestmark = pytest.mark.long

EVERY = {**STAIRCASES, **STEPS_ONLY}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "stairs.onnx"


def evaluated(path, scores, name="scores"):
    session = onnxruntime.InferenceSession(path)
    (found,) = session.run(None, {name: np.asarray(scores)})
    return found


@pytest.mark.parametrize("out_of_bounds", ["clip", "nan"])
@pytest.mark.parametrize("name", EVERY)
def test_steps_are_those_of_predict_bit_for_bit(path, name, out_of_bounds):
    stairs, scores = EVERY[name], queries(EVERY[name])
    stairs.to_onnx(path, out_of_bounds=out_of_bounds)
    assert_same_bits(evaluated(path, scores), stairs.predict(scores, out_of_bounds=out_of_bounds))


@pytest.mark.parametrize("out_of_bounds", ["clip", "nan"])
@pytest.mark.parametrize("interpolation", ["linear", "centered"])
@pytest.mark.parametrize("name", STAIRCASES)
def test_lines_are_those_of_predict_bit_for_bit(path, name, interpolation, out_of_bounds):
    stairs, scores = STAIRCASES[name], queries(STAIRCASES[name])
    options = {"interpolation": interpolation, "out_of_bounds": out_of_bounds}
    stairs.to_onnx(path, **options)
    assert_same_bits(evaluated(path, scores), stairs.predict(scores, **options))


@pytest.mark.parametrize("interpolation", ["step", "linear"])
def test_a_hundred_thousand_steps_are_searched_by_bisection(path, interpolation):
    stairs = many(100_000, 5)
    stairs.to_onnx(path, interpolation=interpolation)
    scores = queries(stairs)
    assert_same_bits(evaluated(path, scores), stairs.predict(scores, interpolation=interpolation))
    assert len(onnx.load(path).graph.node) < 150


@pytest.mark.parametrize("interpolation", ["step", "linear"])
@pytest.mark.parametrize("name", EVERY)
def test_nan_becomes_nan_and_empty_input_gives_empty_output(path, name, interpolation):
    if name in STEPS_ONLY_SLOPES and interpolation == "linear":
        return
    EVERY[name].to_onnx(path, interpolation=interpolation)
    assert np.isnan(evaluated(path, [np.nan, 0.5])).tolist() == [True, False]
    assert evaluated(path, np.empty(0)).shape == (0,)


@pytest.mark.parametrize("interpolation", ["step", "linear"])
@pytest.mark.parametrize("name", STAIRCASES)
def test_float32_is_searched_in_float64_and_rounded_once(path, name, interpolation):
    stairs = STAIRCASES[name]
    with np.errstate(over="ignore", under="ignore"):
        scores = np.unique(queries(stairs).astype(np.float32))
        expected = stairs.predict(scores, interpolation=interpolation).astype(np.float32)
    stairs.to_onnx(path, dtype="float32", interpolation=interpolation)
    found = evaluated(path, scores)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found.view(np.int32), expected.view(np.int32))


def test_the_model_has_metadata(path):
    sf.fit([1, 2], [3.5, 2], loss=sf.losses.Huber(0.5), increasing=False).to_onnx(path)
    model = onnx.load(path)
    onnx.checker.check_model(model, full_check=True)
    assert {one.name for one in model.graph.initializer} <= {name for node in model.graph.node for name in node.input}
    assert (model.producer_name, model.producer_version) == ("staircase_fast", sf.__version__)
    said = {entry.key: entry.value for entry in model.metadata_props}
    assert json.loads(said.pop("staircase_fast.loss")) == {"name": "huber", "delta": 0.5}
    assert said == {
        "staircase_fast.increasing": "false",
        "staircase_fast.n_steps": "2",
        "staircase_fast.interpolation": "step",
        "staircase_fast.out_of_bounds": "clip",
    }
    assert model.ir_version <= 9  # the newest that onnxruntime 1.16 reads
    assert [(one.domain, one.version) for one in model.opset_import] == [("", 13)]


def test_parameters_of_training_rows_are_not_in_the_model(path):
    sf.fit([1, 2], [3, 2], loss=sf.losses.Huber([0.5, 1.0])).to_onnx(path)
    (said,) = (entry.value for entry in onnx.load(path).metadata_props if entry.key == "staircase_fast.loss")
    assert json.loads(said) == {"name": "huber"}


@pytest.mark.parametrize("names", [("x", "y"), ("staircase", "staircase_0"), ("staircase_table_0", "staircase__1")])
def test_names_of_input_and_output_can_be_chosen(path, names):
    stairs = STAIRCASES["probabilities"]
    stairs.to_onnx(path, input_name=names[0], output_name=names[1])
    session = onnxruntime.InferenceSession(path)
    assert ([one.name for one in session.get_inputs()], [one.name for one in session.get_outputs()]) == (
        [names[0]],
        [names[1]],
    )
    assert_same_bits(evaluated(path, [0.2, 0.5], names[0]), stairs.predict([0.2, 0.5]))


@pytest.mark.parametrize(
    ("error", "text", "options"),
    [
        (ValueError, "`dtype` must be one of 'float64', 'float32'; got 'int8'.", {"dtype": "int8"}),
        (ValueError, "`out_of_bounds` must be one of 'clip', 'nan'; got 'raise'.", {"out_of_bounds": "raise"}),
        (ValueError, "`interpolation` must be one of 'step', 'linear', 'centered'; got None.", {"interpolation": None}),
        (ValueError, "`input_name` must be nonempty and without surrogate characters; got ''.", {"input_name": ""}),
        (TypeError, "`output_name` must be a str; got int.", {"output_name": 1}),
        (ValueError, "`output_name` must differ from `input_name`; got 'scores'.", {"output_name": "scores"}),
    ],
)
def test_invalid_options_raise_an_error_and_leave_the_old_file(path, error, text, options):
    path.write_text("old")
    with pytest.raises(error) as caught:
        sf.fit([1, 2], [1, 2]).to_onnx(path, **options)
    assert str(caught.value) == text
    assert [one.read_text() for one in path.parent.iterdir()] == ["old"]


@pytest.mark.parametrize("name", STEPS_ONLY_SLOPES)
@pytest.mark.parametrize("interpolation", ["linear", "centered"])
def test_lines_without_a_finite_slope_raise_an_error(path, name, interpolation):
    with pytest.raises(ValueError, match="`interpolation` must be 'step'"):
        STEPS_ONLY[name].to_onnx(path, interpolation=interpolation)
    assert not path.exists()


def test_without_onnx_the_extra_is_named(path, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ImportError) as caught:
        sf.fit([1, 2], [1, 2]).to_onnx(path)
    assert str(caught.value) == ("`to_onnx` needs onnx, which is not installed: pip install '.[onnx]' in a checkout.")
