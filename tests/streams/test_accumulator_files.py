"""Files, pickles and copies of an `Accumulator`."""

import copy
import json
import math
import pickle
import pickletools
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from accumulated_rows import KINDS, accumulated, example_rows
from comparing import assert_same_staircase

import staircase_fast as sf

L = sf.losses
inf = math.inf


def saved(kind: str, loss: Any = "squared", increasing: bool = True, n: int = 60) -> sf.Accumulator:
    x, y, w = example_rows(kind, n)
    return accumulated([(x, y, w)], loss=loss, increasing=increasing)


SAVED = [
    *((kind, "squared") for kind in KINDS),
    ("labels", "log"),
    ("noise", L.Huber(0.25)),
    ("noise, integer weights", L.Quantile(0.75, side="upper")),
]


@pytest.mark.parametrize(("kind", "loss"), SAVED)
def test_files_pickles_and_copies_have_the_same_staircase(kind: str, loss: Any, tmp_path: Path) -> None:
    seen = saved(kind, loss, increasing=False)
    seen.save(tmp_path / "seen")
    assert [file.name for file in tmp_path.iterdir()] == ["seen"]
    others = [sf.Accumulator.load(tmp_path / "seen"), pickle.loads(pickle.dumps(seen)), copy.copy(seen)]
    expected = seen.staircase()
    for other in (*others, copy.deepcopy(seen), copy.deepcopy([seen])[0]):
        assert (other.loss, other.increasing, other.n_samples) == (seen.loss, False, seen.n_samples)
        assert other.nbytes <= seen.nbytes
        assert_same_staircase(other.staircase(), expected)
        other.add([0.5, 3.5], [1.0, 0.0], [2.0, 1.0])  # and more rows can be added
    assert_same_staircase(seen.staircase(), expected)
    seen.add([0.5, 3.5], [1.0, 0.0], [2.0, 1.0])
    for other in others:
        assert other._state.weight == pytest.approx(seen._state.weight, rel=1e-12)
        assert_same_staircase(other.staircase(), seen.staircase())


@pytest.mark.parametrize(("kind", "loss"), SAVED)
def test_pickles_name_public_modules_only(kind: str, loss: Any) -> None:
    strings = [argument for _, argument, _ in pickletools.genops(pickle.dumps(saved(kind, loss)))]
    modules = {
        text for text in strings if isinstance(text, str) and re.match(r"(staircase_fast|numpy|builtins)\b", text)
    }
    assert {name for name in modules if not name.startswith("numpy")} == {
        "staircase_fast",
        "staircase_fast.losses",
        "builtins",
    }


@pytest.mark.parametrize("targets", [[0.1, 0.1, 0.7], [0.7, 0.7, 0.1], [0.1, 0.1, 0.1]])
def test_a_score_with_the_least_or_the_greatest_mean_can_be_loaded(targets: list[float], tmp_path: Path) -> None:
    seen = accumulated([([1.0, 1.0, 2.0], targets)])
    seen.save(tmp_path / "seen.npz")
    assert_same_staircase(sf.Accumulator.load(tmp_path / "seen.npz").staircase(), seen.staircase())


def test_an_empty_accumulator_can_be_saved(tmp_path: Path) -> None:
    sf.Accumulator("log", increasing=False).save(tmp_path / "none.npz")
    again = sf.Accumulator.load(tmp_path / "none.npz")
    assert (again.loss, again.increasing, again.n_samples) == (L.LogLoss(), False, 0)


def test_a_file_that_cannot_be_written_leaves_the_old_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "seen.npz"
    saved("noise").save(path)
    before = path.read_bytes()

    def full(file: Any, **arrays: Any) -> None:
        file.write(b"half of it")
        raise OSError("no space left")

    monkeypatch.setattr(np, "savez", full)
    with pytest.raises(OSError, match="no space left"):
        saved("labels").save(path)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["seen.npz"]


def changed(path: Path, **fields: Any) -> None:
    """Write the file again with other fields; None leaves one out, a dict changes the header."""
    with np.load(path) as file:
        arrays = dict(file)
    for name, value in fields.items():
        if isinstance(value, dict):
            header = json.loads(arrays["header"].tobytes()) | value
            arrays[name] = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
        else:
            arrays[name] = value(arrays[name].copy()) if callable(value) else value
    np.savez(path, **{name: value for name, value in arrays.items() if value is not None})


def put(index: Any, value: Any) -> Any:
    def change(array: Any) -> Any:
        array[index] = value
        return array

    return change


def bits(weight: float) -> Any:
    """The weight of a single row as it is stored."""
    return np.array(weight).view(np.int64)


def tally(rows: int, weight: int) -> Any:
    """The numbers of rows and their weight, as stored for small integers."""
    return np.array(1 << 63 | rows << 32 | weight, dtype=np.uint64).view(np.int64)


def count(total: int) -> Any:
    """The sum of small integers as it is stored."""
    return np.array(total, dtype=np.int64).view(np.float64)


DAMAGE: list[tuple[str, dict[str, Any], str]] = [
    ("noise", {"header": None}, "field `header` is missing"),
    ("noise", {"header": np.zeros(3)}, "field `header` must be 1-dimensional of uint8; got float64 of shape (3,)"),
    ("noise", {"header": np.frombuffer(b"[]", np.uint8)}, "an accumulator must be a JSON object; got list"),
    ("noise", {"header": np.frombuffer(b"{", np.uint8)}, "an accumulator must be JSON text; "),
    ("noise", {"header": np.frombuffer(b"\xff", np.uint8)}, "field `header` must be JSON text; got byte 0xff at 0"),
    ("noise", {"header": {"more": 1}}, "field `more` is not known; an accumulator has format, version, loss"),
    ("noise", {"header": {"format": "staircase_fast"}}, "field `format` must be 'staircase_fast.Accumulator'"),
    ("noise", {"header": {"version": 2}}, "field `version` must be 1; got 2"),
    ("noise", {"header": {"version": True}}, "field `version` must be 1; got True"),
    ("noise", {"header": {"increasing": 1}}, "field `increasing` must be true or false; got 1"),
    ("noise", {"header": {"loss": "squared"}}, "field `loss` must be an object with a name"),
    ("noise", {"header": {"loss": {"name": "custom"}}}, "field `loss` must name one of"),
    ("noise", {"header": {"loss": {"name": "huber"}}}, "field `form` must be a form for huber; got 'scores'"),
    ("noise", {"header": {"form": "kept"}}, "field `form` must be a form for squared_error; got 'kept'"),
    ("noise", {"header": {"form": ["sums"]}}, "field `form` must be a form for squared_error; got ['sums']"),
    ("noise", {"header": {"form": "sums"}}, "field `w` must be float64 in the form 'sums'; got int64"),
    ("noise", {"header": {"form": None}}, "field `form` must be that of its arrays"),
    ("noise", {"header": {"form": "tallies"}}, "field `tally` is missing"),
    ("noise", {"header": {"n_rows": 60.0}}, "field `n_rows` must be an integer >= 0"),
    ("noise", {"header": {"n_rows": -1}}, "field `n_rows` must be an integer >= 0"),
    ("noise", {"header": {"n_rows": 2**62}}, "field `n_rows` must be an integer >= 0"),
    ("noise", {"header": {"n_rows": 61}}, "field `rows` must count all rows"),
    ("noise", {"header": {"n_rows": 0}}, "field "),
    ("noise", {"x": None}, "field `x` is missing"),
    ("noise", {"z": np.ones(3)}, "field `z` is not known"),
    ("noise", {"x": np.ones(60, dtype=np.float32)}, "field `x` must be 1-dimensional of float64; got float32"),
    ("noise", {"x": np.ones((60, 1))}, "field `x` must be 1-dimensional of float64; got float64 of"),
    ("noise", {"x": put(3, math.nan)}, "field `x` must have scores, and none may be NaN"),
    ("noise", {"x": np.empty(0)}, "field `x` must have scores"),
    ("noise", {"x": put(3, 1e9)}, "field `x` must ascend"),
    ("noise", {"x": put(0, -0.0)}, "field `x` must ascend, without -0.0"),
    ("noise", {"x": lambda x: x[:-1]}, "field `y` must have an entry per score"),
    ("noise", {"y": put(3, math.nan)}, "field `y` must be within `extents`"),
    ("noise", {"y": put(3, 1e9)}, "field `y` must be within `extents`"),
    ("noise", {"y": put(3, 1e-300)}, "field `y` must be within `extents`"),
    ("noise", {"w": put(3, bits(math.nan))}, "field `w` must be within `extents`"),
    ("noise", {"w": put(3, bits(2.0))}, "field `w` must be within `extents`"),
    ("noise", {"w": put(3, 0)}, "field `words` must hold the sums of each score without a weight or a tally"),
    ("noise", {"w": put(3, tally(1, 1))}, "field `y` must hold the sums of rows; not so for score 3"),
    ("noise", {"extents": np.ones((2, 3))}, "field `extents` must be two rows of four numbers"),
    ("noise", {"extents": put((0, 1), inf)}, "field `extents` must have a least and a greatest number"),
    ("noise", {"extents": put((0, 1), math.nan)}, "field `extents` must have a least and a greatest number"),
    ("noise", {"extents": put((0, 2), 0.0)}, "field `extents` must have a least magnitude above 0"),
    ("noise", {"extents": put((0, 3), 2.0)}, "field `extents` must say whether all numbers are integers"),
    ("noise", {"extents": put((0, 3), 1.0)}, "field `extents` must say whether all numbers are integers"),
    ("noise", {"extents": put((0, 2), 1e9)}, "field `extents` must have a least magnitude above 0"),
    ("noise", {"extents": put((1, slice(0, 2)), 0.0)}, "field `w` must be within `extents`"),
    ("noise, tied", {"words": lambda w: w[:, 1:]}, "field `words` must hold the sums of each score"),
    ("noise, tied", {"words": put((2, -1), 0)}, "field `words` must hold the sums of rows; not so for score"),
    ("noise, tied", {"words": put((2, -1), 2**60)}, "field `words` must hold the sums of rows; not so for score"),
    ("noise, tied", {"words": put((2, 1), 2**62)}, "field `words` must hold the sums of rows; not so for score"),
    ("noise, tied", {"words": put((2, 1), 2**63)}, "field `words` must hold the sums of rows; not so for score"),
    ("noise, tied", {"rows": put(2, 0)}, "field `words` must hold the sums of rows; not so for score"),
    ("noise, tied", {"rows": put(2, 2**62)}, "field `words` must hold the sums of rows"),
    ("noise, tied", {"rows": put(2, 9)}, "field `words` must hold the sums of rows"),
    ("noise, tied, real weights", {"rows": put(2, 3)}, "field `rows` must count all rows"),
    ("labels", {"header": {"n_rows": 2**40}}, "field `rows` must count all rows; got 60"),
    ("labels", {"w": lambda w: w[1:]}, "field `y` must have an entry per score"),
    *(
        ("labels, all tied", {"y": put(0, count(s)), "w": put(0, tally(rows, w))}, message)
        for s, rows, w, message in (
            (9, 60, 60, ""),
            (9, 61, 61, "field `rows` must count all rows; got 61"),
            (9, 0, 60, "field `y` must hold the sums of rows; not so for score 0"),
            (9, 60, 0, "field `y` must hold the sums of rows; not so for score 0"),
            (9, 60, 59, "field `y` must hold the sums of rows; not so for score 0"),
            (9, 60, 61, "field `y` must hold the sums of rows; not so for score 0"),
            (-1, 60, 60, "field `y` must hold the sums of rows; not so for score 0"),
            (61, 60, 60, "field `y` must hold the sums of rows; not so for score 0"),
            (-(2**63), 60, 60, "field `y` must hold the sums of rows; not so for score 0"),
        )
    ),
    ("kept", {"y": lambda y: y[1:]}, "field `y` must have an entry per row"),
    ("kept", {"x": lambda x: x[1:]}, "field `x` must have an entry per row"),
    ("kept", {"w": np.ones(3)}, "field `w` must have an entry per row; got 3 for 60 rows"),
    ("kept", {"w": put(1, 0.0)}, "field `w` must be within `extents`"),
    ("kept", {"w": put(1, 0.0), "extents": put((1, 0), 0.0)}, "field `w` must be > 0"),
    ("kept", {"y": put(1, inf)}, "field `y` must be within `extents`"),
    ("kept", {"header": {"loss": {"name": "huber", "delta": [1.0] * 60}}}, "`delta` of the loss must be a number"),
]


@pytest.mark.parametrize(("kind", "fields", "message"), DAMAGE)
def test_a_damaged_file_is_refused(kind: str, fields: dict[str, Any], message: str, tmp_path: Path) -> None:
    path = tmp_path / "seen.npz"
    seen = saved("noise, real weights", "huber") if kind == "kept" else saved(kind)
    seen.save(path)
    changed(path)
    assert_same_staircase(sf.Accumulator.load(path).staircase(), seen.staircase())
    changed(path, **fields)
    if not message:
        assert sf.Accumulator.load(path).n_samples == seen.n_samples
        return
    with pytest.raises(ValueError, match=re.escape(message)):
        sf.Accumulator.load(path)


def test_truncated_and_other_files_are_refused_and_nothing_is_executed(tmp_path: Path) -> None:
    path = tmp_path / "seen.npz"
    saved("noise, tied").save(path)
    whole = path.read_bytes()
    for content in (b"", b"{}", whole[:-30], whole[: len(whole) // 2], whole[:40], pickle.dumps({"x": 1})):
        path.write_bytes(content)
        with pytest.raises(ValueError, match="an accumulator must be a file that `save` wrote"):
            sf.Accumulator.load(path)
    for place in range(0, len(whole), 41):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x40]) + whole[place + 1 :])
        try:
            again = sf.Accumulator.load(path)
        except ValueError:
            continue
        assert again.staircase() == saved("noise, tied").staircase()  # a byte without meaning
    np.savez(path, header=np.array([print], dtype=object), allow_pickle=True)
    with pytest.raises(ValueError, match="field `header` must be 1-dimensional of uint8; got object"):
        sf.Accumulator.load(path)
    np.save(tmp_path / "array.npy", np.ones(3))
    with pytest.raises(ValueError, match="an accumulator must be a file that `save` wrote"):
        sf.Accumulator.load(tmp_path / "array.npy")
    with pytest.raises(FileNotFoundError):
        sf.Accumulator.load(tmp_path / "no such file")
