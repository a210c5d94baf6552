"""ONNX models and JSON texts of a StaircaseMap give the bits of `predict`."""

import json

import numpy as np
import onnx
import onnxruntime
import pytest
from comparing import assert_same_bits
from exported import STAIRCASES, many, queries

import staircase_fast as sf

KEYS = {
    "strings": ["", "Zürich", "a'b", "oslo", "分"],
    "integers": [-(2**63), -1, 0, 7, 2**63 - 1],
    "bools": [False, True],
    "one": [3],
}
TYPES = {"strings": object, "bools": bool}
OPTIONS = [{}, {"interpolation": "linear"}, {"interpolation": "centered"}, {"out_of_bounds": "nan"}]
DEFAULT = many(70, 8, increasing=False)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "map.onnx"


def map_of(keys, increasing="auto", n=400):
    rng = np.random.default_rng(len(keys))
    groups = np.sort(np.append(rng.integers(0, len(keys), n) ** 2 // len(keys), np.arange(len(keys))))
    targets = rng.random(len(groups)) + (groups % 2 * 2 - 1) * np.linspace(0, 2, len(groups))
    return sf.fit_groups(np.linspace(-1, 1, len(groups)), targets, [keys[g] for g in groups], increasing=increasing)


def evaluated(path, scores, groups, kind=np.int64):
    session = onnxruntime.InferenceSession(path)
    (found,) = session.run(None, {"scores": np.asarray(scores), "groups": np.asarray(groups, dtype=kind)})
    return found


def rows_of(found):
    scores = np.concatenate([queries(stairs) for stairs in found.values()])
    return scores, [key for key, stairs in found.items() for _ in queries(stairs)]


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("increasing", [True, "auto"])
@pytest.mark.parametrize("name", KEYS)
def test_each_group_gets_its_own_staircase(path, name, increasing, options):
    found = map_of(KEYS[name], increasing)
    scores, groups = rows_of(found)
    found.to_onnx(path, **options)
    values = evaluated(path, scores, groups, TYPES.get(name, np.int64))
    assert_same_bits(values, found.predict(scores, groups, **options))
    onnx.checker.check_model(onnx.load(path), full_check=True)


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("name", ["strings", "integers"])
def test_unknown_groups_get_the_default_or_nan(path, name, options):
    found = map_of(KEYS[name])
    scores = queries(DEFAULT)
    others = ["oslo", "OSLO"] if name == "strings" else [7, 8]
    groups = [others[i % 2] for i in range(len(scores))]
    kind = TYPES.get(name, np.int64)
    found.to_onnx(path, **options)
    values = evaluated(path, scores, groups, kind)
    assert np.isnan(values[1::2]).all()
    assert_same_bits(values[::2], found[others[0]].predict(scores[::2], **options))
    found.to_onnx(path, default=DEFAULT, **options)
    expected = found.predict(scores, groups, default=DEFAULT, **options)
    assert_same_bits(evaluated(path, scores, groups, kind), expected)
    assert np.isnan(evaluated(path, [np.nan] * 2, others, kind)).all()
    assert evaluated(path, np.empty(0), [], kind).shape == (0,)


def test_groups_of_very_different_sizes_are_searched_in_one_model(path):
    groups = {"large": many(3000, 1), "one step": STAIRCASES["one step"], "small": many(5, 2), "two": many(2, 3)}
    columns = [np.concatenate([getattr(s, name) for s in groups.values()]) for name in ("left", "right", "values")]
    n = len(columns[0])
    offsets = np.cumsum([0, *(stairs.n_steps for stairs in groups.values())])
    found = sf.StaircaseMap(groups, offsets, *columns, np.ones(n), np.ones(n, dtype=np.int64))
    for options in OPTIONS:
        found.to_onnx(path, **options)
        scores, names = rows_of(found)
        assert_same_bits(evaluated(path, scores, names, object), found.predict(scores, names, **options))
    assert len(onnx.load(path).graph.node) < 150


def test_float32_is_rounded_once_and_the_model_has_metadata(path):
    found = map_of(KEYS["strings"])
    found.to_onnx(path, dtype="float32", input_name="x", group_name="city", output_name="staircase_y")
    scores = np.linspace(-2, 2, 100, dtype=np.float32)
    session = onnxruntime.InferenceSession(path)
    (values,) = session.run(None, {"x": scores, "city": np.array(["oslo"] * 100, dtype=object)})
    assert_same_bits(values.astype(np.float64), found["oslo"].predict(scores).astype(np.float32).astype(np.float64))
    model = onnx.load(path)
    assert sorted((one.domain, one.version) for one in model.opset_import) == [("", 13), ("ai.onnx.ml", 2)]
    said = {entry.key.removeprefix("staircase_fast."): entry.value for entry in model.metadata_props}
    assert json.loads(said.pop("loss")) == {"name": "squared_error"}
    assert said == {"n_groups": "5", "interpolation": "step", "out_of_bounds": "clip"}


@pytest.mark.parametrize(
    ("error", "text", "keys", "options"),
    [
        (TypeError, "`default` must be a Staircase or None; got 0.5.", [1], {"default": 0.5}),
        (ValueError, "`group_name` must differ from `input_name`; got 'scores'.", [1], {"group_name": "scores"}),
        (ValueError, "`dtype` must be one of 'float64', 'float32'; got 'int8'.", [1], {"dtype": "int8"}),
        (
            ValueError,
            "`keys` must be below 2**63 for ONNX; got 9223372036854775808 at index 1.",
            [1, 2**63],
            {},
        ),
        (
            ValueError,
            "`keys` must not contain NUL or surrogate characters; got 'a\\x00' at index 0.",
            ["a\0"],
            {},
        ),
    ],
)
def test_invalid_options_raise_an_error(path, error, text, keys, options):
    with pytest.raises(error) as caught:
        map_of(keys).to_onnx(path, **options)
    assert str(caught.value) == text
    assert not path.exists()


@pytest.mark.parametrize("name", KEYS)
def test_json_keeps_the_map(name):
    found = map_of(KEYS[name])
    again = sf.StaircaseMap.from_json(found.to_json())
    assert again == found
    assert list(again) == list(found)
    assert again.to_json() == found.to_json()


def test_json_keeps_bounds_infinite_values_and_parameters_of_rows():
    rows = [1.0, 2.0, 3.0, 4.0], [0, 1, 0, 1], ["a", "a", "b", "b"]
    for options in (
        {"loss": "logistic", "bounds": (-np.inf, np.inf)},
        {"loss": sf.losses.Huber([0.5, 1.0, 0.25, 2.0])},
        {"loss": sf.losses.Linex(0.5)},
    ):
        found = sf.fit_groups(*rows, **options)
        assert sf.StaircaseMap.from_json(found.to_json()) == found
    custom = sf.fit_groups(*rows, loss=sf.losses.Custom(lambda z, y: z - y))
    assert sf.StaircaseMap.from_json(custom.to_json())["a"].values.tolist() == custom["a"].values.tolist()


def damaged(**fields):
    document = json.loads(map_of([1, 2]).to_json())
    document.update(fields)
    return json.dumps({name: value for name, value in document.items() if value is not None})


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        ("field `keys` must be an array; got int", {"keys": 3}),
        ("field `increasing` must be an array; got bool", {"increasing": True}),
        ("field `offsets` must hold numbers; got 0.5 at index 0", {"offsets": [0.5, 1, 2]}),
        ("field `left` must be an array of numbers; got str", {"left": "a"}),
        ("field `format` must be 'staircase_fast map'; got 'staircase_fast'", {"format": "staircase_fast"}),
        ("field `step_values` is missing", {"step_values": None}),
        ("field `color` is not known", {"color": 3}),
        ("`keys` must be of one kind and strictly increase; got 1 at index 1", {"keys": [1, 1]}),
        ("`keys` must be integers, strings or bools; got 1.5 at index 0", {"keys": [1.5, 2]}),
        ("`increasing` must be a bool for each of the 2 keys", {"increasing": [1, 0]}),
    ],
)
def test_damaged_json_raises_an_error(text, fields):
    with pytest.raises(sf.InvalidInputError) as caught:
        sf.StaircaseMap.from_json(damaged(**fields))
    assert text in str(caught.value)
