"""StaircaseMap: the mapping, predictions and files."""

import copy
import json
import os
import pickle
import stat
import zipfile
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
from comparing import assert_same_bits, assert_same_staircase

import staircase_fast as sf
from staircase_fast import threads
from staircase_fast.groups import map_fields

RNG = np.random.default_rng(21)
N = 600
X = np.round(RNG.random(N), 2)
Y = X + RNG.normal(size=N)
WORDS = np.array(["fig", "apple", "plum", "äpfel", ""])[RNG.integers(0, 5, N)]
NUMBERS = RNG.integers(-4, 9, N)
NAMES = ("offsets", "left", "right", "step_values", "weights", "counts", "lower", "upper", "increasing")

MAPS = {
    "strings": sf.fit_groups(X, Y, WORDS),
    "integers": sf.fit_groups(X, Y, NUMBERS, increasing="auto"),
    "large integers": sf.fit_groups(X, Y, NUMBERS.astype(np.uint64) + np.uint64(2**63)),
    "bools": sf.fit_groups(X, Y, NUMBERS > 3, sample_weight=Y**2),
    "one": sf.fit_groups(X, Y, np.zeros(N, dtype=int)),
    "log": sf.fit_groups(X, Y > 0.5, WORDS, loss="log"),
    "huber": sf.fit_groups(X, Y, WORDS, loss=sf.losses.Huber(0.5)),
    "huber of rows": sf.fit_groups(X, Y, WORDS, loss=sf.losses.Huber(RNG.random(N) + 0.1)),
    "infinite values": sf.fit_groups(X, Y > 0.5, NUMBERS, loss="logistic", bounds=(-np.inf, np.inf)),
    "infinite scores": sf.fit_groups(np.where(X > 0.9, np.inf, X), Y, WORDS),
}


@pytest.fixture(params=MAPS)
def found(request):
    return MAPS[request.param]


def test_it_is_a_mapping(found):
    assert isinstance(found, Mapping)
    assert len(found) == len(list(found)) == len(found.keys()) == len(found.values()) == len(found.items())
    assert list(found) == sorted(found)
    for key, stairs in found.items():
        assert key in found
        assert_same_staircase(stairs, stairs)
        assert_same_staircase(found.get(key), stairs)
    assert "no such key" not in found
    assert found.get("no such key") is None
    with pytest.raises(KeyError, match="no such key"):
        found["no such key"]


def test_staircases_share_the_memory_of_the_map(found):
    for place, stairs in enumerate(found.values()):
        own = slice(found.offsets[place], found.offsets[place + 1])
        assert np.shares_memory(stairs.values, found.step_values)
        assert_same_bits(stairs.left, found.left[own])
        assert_same_bits(stairs.upper, found.upper[own])


def test_a_map_is_immutable(found):
    for name in NAMES:
        with pytest.raises(ValueError, match="read-only"):
            getattr(found, name)[0] = 0
        with pytest.raises(AttributeError, match="cannot be changed"):
            setattr(found, name, None)
    with pytest.raises(AttributeError, match="cannot be changed"):
        del found.left
    with pytest.raises(TypeError):
        hash(found)


def test_pickles_copies_and_files_equal_the_map(found, tmp_path):
    found.save(tmp_path / "map")
    for again in (pickle.loads(pickle.dumps(found)), sf.StaircaseMap.load(tmp_path / "map")):
        assert again == found
        assert [type(key) for key in again] == [type(key) for key in found]
        for name in NAMES:
            assert_same_bits(getattr(again, name), getattr(found, name))
        for key in found:
            assert_same_staircase(again[key], found[key])
    assert copy.copy(found) is copy.deepcopy(found) is found


def test_maps_are_equal_if_and_only_if_everything_in_them_is():
    maps = list(MAPS.values())
    for place, one in enumerate(maps):
        assert [one == other for other in maps] == [place == other for other in range(len(maps))]
    x, y, groups = [1, 2, 1, 2], [1, 2, 3, 4], [0, 0, 1, 1]
    base = sf.fit_groups(x, y, groups)
    assert base == sf.fit_groups(x, y, groups)
    assert base == dict(base.items())
    assert base != {0: base[0]}
    assert base != 3
    for other in (
        sf.fit_groups([1, 2, 1, 3], y, groups),
        sf.fit_groups(x, y, [0, 0, 2, 2]),
        sf.fit_groups(x, y, [False, False, True, True]),
        sf.fit_groups(x, y, ["0", "0", "1", "1"]),
        sf.fit_groups(x, y, groups, loss="poisson_deviance"),
    ):
        assert base != other


def test_the_representation_names_groups_steps_and_rows():
    assert repr(sf.fit_groups([1], [1], [0])) == "<StaircaseMap: 1 group, 0 to 0; 1 step, 1 row, squared_error>"
    assert repr(MAPS["one"]).startswith("<StaircaseMap: 1 group, 0 to 0; ")
    assert repr(sf.fit_groups([1, 2], [1, 1], ["a", "b"])) == (
        "<StaircaseMap: 2 groups, 'a' to 'b'; 2 steps, 2 rows, squared_error>"
    )
    assert "; 1 step, 2 rows" in repr(sf.fit_groups([1, 2], [1, 1], ["a", "a"]))


@pytest.mark.parametrize("interpolation", ["step", "linear", "centered"])
@pytest.mark.parametrize("out_of_bounds", ["clip", "nan"])
@pytest.mark.parametrize("n_threads", [1, 3])
@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_predictions_equal_those_of_the_staircase_of_each_row(
    found, interpolation, out_of_bounds, n_threads, kind, monkeypatch
):
    monkeypatch.setattr(threads, "ROWS_EACH", 50)
    rng = np.random.default_rng(4)
    keys = list(found)
    chosen = rng.integers(0, len(keys), 300)
    groups = [keys[place] for place in chosen]
    queries = np.append(rng.normal(size=297), [np.inf, -np.inf, -0.0]).astype(kind)
    options = {"interpolation": interpolation, "out_of_bounds": out_of_bounds}
    expected = [float(found[keys[g]].predict(q, **options)) for g, q in zip(chosen, queries, strict=True)]
    assert_same_bits(found.predict(queries, groups, n_threads=n_threads, **options), expected)


@pytest.mark.parametrize("kind", [float, np.float32, np.array])
@pytest.mark.parametrize("options", [{}, {"interpolation": "centered", "out_of_bounds": "nan"}])
def test_a_map_can_be_called_with_columns_and_with_single_scores(found, kind, options):
    key = next(iter(found))
    for group in (key, np.array([key])[0], np.array(key)):
        single = found(kind(0.25), group, **options)
        assert type(single) is np.float64
        assert_same_bits(single, found[key](kind(0.25), **options))
    assert_same_bits(found([0.25, 0.5], [key, key], **options), found.predict([0.25, 0.5], [key, key], **options))


def test_a_single_score_needs_a_single_group():
    found = MAPS["strings"]
    assert np.isnan(found(None, "fig", missing="nan"))
    assert found(5, "quince", default=sf.fit([0], [7])) == 7
    with pytest.raises(ValueError, match=r"Group 'quince' \(row 0\) was not fitted"):
        found(0, "quince")
    with pytest.raises(ValueError, match="`scores` must not be NaN; got nan at index 0"):
        found(np.nan, "fig")
    with pytest.raises(ValueError, match=r"`scores` must be one-dimensional; got shape \(\)"):
        found(0, ["fig"])
    with pytest.raises(ValueError, match=r"`groups` must be one-dimensional; got shape \(\)"):
        found([0, 1], "fig")
    with pytest.raises(TypeError, match=r"`groups` must be integers, strings or bools; got 1\.5"):
        found(0, 1.5)


def test_no_rows_give_no_predictions():
    assert MAPS["strings"].predict([], []).shape == (0,)
    with pytest.raises(ValueError, match=r"one entry per row; got 0 and 1"):
        MAPS["strings"].predict([], ["fig"])


def test_an_unseen_group_gets_the_default_or_an_error_that_names_its_row():
    found, default = MAPS["strings"], sf.fit([0, 1], [7, 8])
    with pytest.raises(
        ValueError, match=r"^Group 'pear' \(row 2\) was not fitted; pass `default=` for unseen groups\.$"
    ):
        found.predict([0, 0, 0, 0], ["fig", "plum", "pear", "quince"])
    got = found.predict([0, 1, 5], ["fig", "pear", "quince"], default=default)
    assert got.tolist() == [found["fig"].predict(0), 8.0, 8.0]
    assert np.isnan(found.predict([9], ["pear"], default=default, out_of_bounds="nan")).all()
    numbers = MAPS["integers"]
    for key in (-5, 9, 10**12, -(10**12)):
        with pytest.raises(ValueError, match=rf"Group {key} \(row 1\) was not fitted"):
            numbers.predict([0, 0], [1, key])
        assert numbers.predict([0, 0], [1, key], default=default)[1] == 7
    with pytest.raises(ValueError, match=r"Group 3 \(row 0\) was not fitted"):
        found.predict([0], [3])
    with pytest.raises(ValueError, match=r"Group 'a' \(row 0\) was not fitted"):
        numbers.predict([0], ["a"])
    with pytest.raises(ValueError, match=r"Group 5 \(row 0\) was not fitted"):
        MAPS["large integers"].predict([0], [5])
    with pytest.raises(TypeError, match="`default` must be a Staircase or None; got 3"):
        found.predict([0], ["pear"], default=3)


def test_bad_queries_are_an_error():
    found = MAPS["integers"]
    with pytest.raises(ValueError, match=r"`scores` must not be NaN; got nan at index 1"):
        found.predict([0, np.nan], [1, 1])
    with pytest.raises(ValueError, match=r"`scores` must not be NaN; got nan at index 1"):
        found.predict([0, np.nan], [1, 99], default=found[1])
    with pytest.raises(
        ValueError, match=r"`scores` must be in \[.*\], the fitted range of group 2; got 7.0 at index 1"
    ):
        found.predict([0.5, 7], [1, 2], out_of_bounds="raise")
    with pytest.raises(ValueError, match=r"`scores` must be in .* got 7.0 at index 0"):
        found.predict([7], [99], out_of_bounds="raise", default=found[1])
    assert found.predict([0.5], [1], out_of_bounds="raise") == found[1].predict(0.5)
    with pytest.raises(ValueError, match="one-dimensional"):
        found.predict([[0.5]], [1])
    with pytest.raises(ValueError, match=r"one entry per row; got 1 and 2"):
        found.predict([0.5], [1, 2])
    with pytest.raises(ValueError, match="`interpolation` must be one of"):
        found.predict([0.5], [1], interpolation="cubic")


def test_several_threads_can_predict_at_once():
    fresh = sf.fit_groups(X, Y, WORDS)
    expected = MAPS["strings"].predict(X, WORDS)
    with ThreadPoolExecutor(4) as pool:
        for got in pool.map(lambda _: fresh.predict(X, WORDS), range(16)):
            assert_same_bits(got, expected)


def test_a_frame_has_a_row_for_each_step(found):
    frame = found.to_frame()
    assert list(frame.columns) == ["group", "left", "right", "value", "weight", "count"]
    assert frame["group"].drop_duplicates().tolist() == list(found)
    for key, own in frame.groupby("group"):
        assert own["value"].tolist() == found[key].values.tolist()
        assert own["count"].tolist() == found[key].counts.tolist()
        assert own["left"].tolist() == found[key].left.tolist()


def test_a_frame_without_pandas_raises_a_clear_error(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pandas", None)
    with pytest.raises(ImportError, match="`to_frame` needs pandas"):
        MAPS["one"].to_frame()
    monkeypatch.undo()
    assert isinstance(MAPS["one"].to_frame(), pd.DataFrame)


def parts(**changed):
    return {
        "keys": ["a", "b"], "offsets": [0, 2, 3], "left": [1.0, 2.0, 0.0], "right": [1.0, 3.0, 0.0],
        "step_values": [0.0, 1.0, -5.0], "weights": [1.0, 2.0, 1.0], "counts": [1, 2, 1], **changed,
    }  # fmt: skip


def test_a_map_can_be_built_from_its_fields():
    made = sf.StaircaseMap(**parts())
    assert_same_staircase(made["a"], sf.Staircase([1, 2], [1, 3], [0, 1], [1, 2], [1, 2]))
    assert_same_staircase(made["b"], sf.Staircase([0], [0], [-5], [1], [1]))
    falls = sf.StaircaseMap(**parts(step_values=[1.0, 0.0, -5.0], increasing=[False, True]))
    assert not falls["a"].increasing


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        ({"keys": []}, "`keys` must have at least one entry"),
        ({"keys": ["b", "a"]}, "`keys` must be of one kind and strictly increase; got 'a' at index 1"),
        ({"keys": ["a", "a"]}, "`keys` must be of one kind and strictly increase; got 'a' at index 1"),
        ({"keys": [1, "a"]}, "`keys` must be of one kind"),
        ({"keys": [-1, 2**63]}, "`keys` must all be below 2..63 if one is negative"),
        ({"keys": [0, True]}, "`keys` must be of one kind"),
        ({"keys": [1.5, 2.5]}, "`keys` must be integers, strings or bools; got 1.5 at index 0"),
        ({"keys": ["a", None]}, "`keys` must not have missing entries; got None at index 1"),
        ({"offsets": [0, 3]}, "`offsets` must be 3 integers from 0 on"),
        ({"offsets": [1, 2, 3]}, "`offsets` must be 3 integers from 0 on"),
        ({"offsets": [0.0, 2.0, 3.0]}, "`offsets` must be 3 integers from 0 on"),
        ({"offsets": [0, 0, 3]}, "`offsets` must strictly increase; got 0 at index 1"),
        ({"offsets": [0, 2, 4]}, "`offsets` must end with the number of steps, 3; got 4"),
        ({"left": [1.0, 1.0, 0.0]}, "`left` must be above the `right` of the step before; got 1.0 at index 1"),
        ({"step_values": [0.0, 0.0, -5.0]}, "`values` must strictly increase; got 0.0 at index 1"),
        ({"increasing": [False, True]}, "`values` must strictly decrease; got 1.0 at index 1"),
        ({"increasing": [1, 1]}, "`increasing` must be a bool for each of the 2 keys"),
        ({"increasing": [True]}, "`increasing` must be a bool for each of the 2 keys"),
        ({"weights": [1.0, 0.0, 1.0]}, "`weights` must be > 0; got 0.0 at index 1"),
        ({"counts": [1, 2]}, "`left` and `counts` must have one entry per row; got 3 and 2"),
        ({"lower": [9.0, 9.0, 9.0]}, "`lower` must be <= `values`; got 9.0 at index 0"),
        ({"loss": sf.losses.Huber([1.0, 2.0]), "rows": [0, 1, 4]}, "`delta` of the loss must have one entry per row"),
        ({"loss": "log"}, "`values` must be in .0, 1. for log_loss; got -5.0 at index 2"),
    ],
)
def test_invalid_fields_are_an_error(changed, text):
    with pytest.raises((TypeError, ValueError), match=text):
        sf.StaircaseMap(**parts(**changed))


def test_files_are_replaced_atomically(tmp_path, monkeypatch):
    path = tmp_path / "map"
    MAPS["one"].save(path)
    path.chmod(0o640)

    def fail(*_args, **_arrays):
        raise OSError("disk full")

    monkeypatch.setattr(np, "savez", fail)
    with pytest.raises(OSError, match="disk full"):
        MAPS["strings"].save(path)
    monkeypatch.undo()
    assert sf.StaircaseMap.load(path) == MAPS["one"]
    assert os.listdir(tmp_path) == ["map"]
    MAPS["strings"].save(path)
    assert sf.StaircaseMap.load(path) == MAPS["strings"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_the_function_of_a_loss_is_not_saved(tmp_path):
    def slope(z, y):
        return z - y

    found = sf.fit_groups(X, Y, WORDS, loss=sf.losses.Custom(slope))
    found.save(tmp_path / "map")
    again = sf.StaircaseMap.load(tmp_path / "map")
    assert_same_bits(again.step_values, found.step_values)
    with pytest.raises(ValueError, match="was not saved"):
        again.loss.derivative(1.0, 2.0)


def rewritten(path, **changed):
    """The file with other arrays; None leaves one out."""
    with np.load(path) as found:
        arrays = {name: found[name] for name in found.files}
    arrays |= changed
    with open(path, "wb") as file:
        np.savez(file, **{name: array for name, array in arrays.items() if array is not None})


def header(**changed):
    document = {"format": map_fields.FORMAT, "version": 1, "keys": "str", "loss": {"name": "squared_error"}, **changed}
    return np.frombuffer(json.dumps(document).encode(), dtype=np.uint8)


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        ({"left": None}, "field `left` is missing"),
        ({"header": None}, "field `header` is missing"),
        ({"more": np.ones(3)}, "field `more` is not known"),
        ({"left": np.ones(3, dtype=np.int64)}, "field `left` must be 1-dimensional of float64; got int64"),
        ({"counts": np.ones(3)}, "field `counts` must be 1-dimensional of int64; got float64"),
        ({"left": np.ones((3, 1))}, r"field `left` must be 1-dimensional of float64; got float64 of shape \(3, 1\)"),
        ({"increasing": np.ones(2)}, "field `increasing` must be 1-dimensional of bool; got float64"),
        ({"left": np.array([2.0, 1.0, 0.0])}, "`right` must be >= `left`; got 1.0 at index 0"),
        ({"left": np.array([np.nan, 1.0, 0.0])}, "`left` must not be NaN"),
        ({"left": np.array([{}, 1, 2], dtype=object)}, "field `left` must be 1-dimensional of float64; got object"),
        ({"header": np.ones(3)}, "field `header` must be 1-dimensional of uint8; got float64"),
        ({"header": np.frombuffer(b"{", dtype=np.uint8)}, "must be JSON"),
        ({"header": np.frombuffer(b"[]", dtype=np.uint8)}, "must be a JSON object"),
        ({"header": np.frombuffer(b"{}", dtype=np.uint8)}, "field `format` is missing"),
        ({"header": np.frombuffer(b"\xff", dtype=np.uint8)}, "field `header` must be JSON text; got byte 0xff at 0"),
        ({"header": header(format="other")}, "field `format` must be 'staircase_fast map'; got 'other'"),
        ({"header": header(version=2)}, "field `version` must be 1; got 2"),
        ({"header": header(keys="float")}, "field `keys` must be one of"),
        ({"header": header(keys="int")}, "field `keys` must be of kind int"),
        ({"header": header(loss={"name": "no"})}, "field `loss` must name one of"),
        ({"keys": np.ones(2)}, "field `keys` must be 1-dimensional of bool or int64 or uint64 or uint8; got float64"),
        ({"key_ends": None}, "field `keys` must be of kind str"),
        ({"key_ends": np.array([1, 3])}, "field `key_ends` must be the end of each key"),
        ({"key_ends": np.array([2, 1])}, "field `key_ends` must be the end of each key"),
        ({"key_ends": np.empty(0, dtype=np.int64)}, "field `key_ends` must be the end of each key"),
    ],
)
def test_the_error_for_an_invalid_file_names_the_field(changed, text, tmp_path):
    path = tmp_path / "map"
    sf.StaircaseMap(**parts()).save(path)
    rewritten(path, **changed)
    with pytest.raises(ValueError, match=text):
        sf.StaircaseMap.load(path)


def test_damaged_files_are_an_error(tmp_path):
    path = tmp_path / "map"
    MAPS["strings"].save(path)
    whole = path.read_bytes()
    for damaged in (b"", b"no zip", whole[: len(whole) // 2], whole.replace(b"NUMPY", b"NUMBY")):
        path.write_bytes(damaged)
        with pytest.raises(ValueError):  # noqa: PT011  (several texts)
            sf.StaircaseMap.load(path)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.npy", b"0" * 1000)
    with pytest.raises(ValueError, match="is compressed"):
        sf.StaircaseMap.load(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("left.npy", b"0")
        with pytest.warns(UserWarning, match="Duplicate"):
            archive.writestr("left.npy", b"1")
    with pytest.raises(ValueError, match="appears twice"):
        sf.StaircaseMap.load(path)
    with pytest.raises(FileNotFoundError):
        sf.StaircaseMap.load(tmp_path / "none")


@pytest.mark.parametrize("keys", [["a", "b", "c"], [1, 2, 3]])
def test_the_default_is_used_for_unseen_groups_only(keys):
    first, second, unknown = keys
    found = sf.fit_groups([0, 1, 0, 1], [1, 2, 3, 4], [first, first, second, second])
    default = sf.Staircase([0], [0], [9.0], [1], [1])
    made = found.predict([0, 0, 0, 1], [first, unknown, second, first], default=default)
    assert made.tolist() == [1, 9, 3, 2]
