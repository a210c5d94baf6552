"""Hostile files raise an error that names the file and the field, before they use much memory.

`make fuzz-files` looks for more of them.
"""

import io
import json
import os
import struct
import tracemalloc
import zipfile
import zlib

import numpy as np
import pytest

import staircase_fast as sf
from staircase_fast.storage import files

CLASSES = {"Accumulator": sf.Accumulator, "StaircaseMap": sf.StaircaseMap}


def refused(kind, path):
    """The message with which a file is refused, without the name of the file."""
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        kind.load(path)
    name, message = str(caught.value).split(": ", 1)
    assert name == str(path)
    return message


def peak(call):
    """What a call returns, and how many bytes it took at most."""
    tracemalloc.start()
    try:
        found = call()
        return found, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def saved(kind, path):
    if kind is sf.StaircaseMap:
        sf.fit_groups([1, 2, 1, 2], [0, 1, 3, 2], ["a", "a", "b", "b"]).save(path)
    else:
        seen = sf.Accumulator()
        seen.add([1, 2, 3], [0.5, 1.5, 1.25])
        seen.save(path)
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def npy(array):
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def claiming(shape, descr="'<f8'"):
    """An array of three numbers with another description."""
    text = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}".encode()
    return b"\x93NUMPY\1\0" + len(text).to_bytes(2, "little") + text + bytes(24)


def written(path, members, *, places=None, declared=None):
    """Write members, with valid checksums; `places` are those in the directory, `declared` their sizes."""
    file, directory, starts = b"", b"", {}
    for name, body in members.items():
        starts[name] = len(file)
        fields = struct.pack("<HHHHHIIIHH", 20, 0, 0, 0, 0, zlib.crc32(body), len(body), len(body), len(name), 0)
        file += b"PK\3\4" + fields + name.encode() + body
    for name, place in (places or {name: name for name in members}).items():
        size = (declared or {}).get(name, len(members[place]))
        crc = zlib.crc32(members[place])
        fields = struct.pack("<HHHHHHIIIHH", 20, 20, 0, 0, 0, 0, crc, size, size, len(name), 0)
        directory += b"PK\1\2" + fields + struct.pack("<HHHII", 0, 0, 0, 0, starts[place]) + name.encode()
    n = len(places or members)
    path.write_bytes(file + directory + b"PK\5\6" + struct.pack("<HHHHIIH", 0, 0, n, n, len(directory), len(file), 0))


@pytest.mark.parametrize("name", CLASSES)
def test_overlapping_members_are_rejected_before_they_are_read(name, tmp_path):
    path, kind = tmp_path / "file", CLASSES[name]
    members = saved(kind, path) | {"x.npy": npy(np.zeros(100_000))}
    others = {f"{other}.npy": "x.npy" for other in ("y", "w", "left", "right", "weights", "rows")}
    written(path, members, places={name: name for name in members} | others)
    message, most = peak(lambda: refused(kind, path))
    assert message.endswith("its members overlap, or are longer than the file.")
    assert most < path.stat().st_size


@pytest.mark.parametrize("name", CLASSES)
def test_a_long_directory_is_rejected_before_it_is_read(name, tmp_path):
    path, kind = tmp_path / "file", CLASSES[name]
    members = saved(kind, path)
    written(path, members, places={f"{number}": "header.npy" for number in range(20_000)})
    message, most = peak(lambda: refused(kind, path))
    assert "its directory must have at most 16384 bytes; got" in message
    assert most < path.stat().st_size
    end = path.read_bytes()
    size = int.from_bytes(end[-10:-6], "little")
    start = len(end) - 22 - size
    large = b"PK\6\6" + struct.pack("<QHHIIQQQQ", 44, 45, 45, 0, 0, 1, 1, size, start)
    locator = b"PK\6\7" + struct.pack("<IQI", 0, len(end) - 22, 1)
    short = end[-22:-10] + b"\1\0\0\0" + end[-6:]
    path.write_bytes(end[:-22] + large + locator + short)
    message, most = peak(lambda: refused(kind, path))
    assert f"its directory must have at most 16384 bytes; got {size}" in message
    assert most < path.stat().st_size


@pytest.mark.parametrize("name", CLASSES)
@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"no array", "field `{}` must be an array; "),
        (b"", "field `{}` must be an array; "),
        (b"\x93NUMPY\3\0", "field `{}` must be an array; "),
        (npy(np.zeros(3))[:-1], "field `{}` must have the bytes of its shape (3,); got 23"),
        (claiming("(9,)"), "field `{}` must have the bytes of its shape (9,); got 24"),
        (claiming("(-3,)"), "field `{}` must have the bytes of its shape (-3,); got 24"),
        (claiming("(10000000000000,)"), "field `{}` must have the bytes of its shape (10000000000000,); got 24"),
        (claiming(f"({2**61 + 3},)"), "field `{}` must have the bytes of its shape (2305843009213693955,); got 24"),
        (claiming("(3,)", "'|O'"), "field `{}` must be 1-dimensional of float64; got object of shape (3,)"),
        (claiming("(3,)", "__import__('os')"), "field `{}` must be an array"),
        (claiming("(3,)", "'<x9'"), "field `{}` must be an array; "),
        (claiming("(3,)", "-" * 5000 + "1"), "field `{}` must be an array"),
        (npy(np.array(["a"])), "field `{}` must be 1-dimensional of float64; got <U1 of shape (1,)"),
        (npy(np.zeros((3, 1))), "field `{}` must be 1-dimensional of float64; got float64 of shape (3, 1)"),
    ],
)
def test_the_error_for_an_invalid_member_names_the_field(name, body, message, tmp_path):
    path, kind = tmp_path / "file", CLASSES[name]
    field = "x" if kind is sf.Accumulator else "left"
    members = saved(kind, path)
    written(path, members)
    kind.load(path)
    written(path, members | {f"{field}.npy": body})
    assert message.format(field) in refused(kind, path)
    written(path, members | {"header.npy": body})
    assert "field `header` must " in refused(kind, path)


def test_sizes_in_the_directory_must_be_true(tmp_path):
    path = tmp_path / "file"
    members = saved(sf.Accumulator, path)
    for size in (0, 100, len(members["x.npy"]) - 1, len(members["x.npy"]) + 1, 2**32 - 2):
        written(path, members, declared={"x.npy": size})
        refused(sf.Accumulator, path)


def test_a_damaged_entry_is_noticed_by_its_checksum(tmp_path):
    path = tmp_path / "file"
    saved(sf.Accumulator, path)
    content = path.read_bytes()
    place = content.index(struct.pack("<d", 1.25))
    path.write_bytes(content[:place] + struct.pack("<d", 1.26) + content[place + 8 :])
    assert "Bad CRC-32 for file 'y.npy'" in refused(sf.Accumulator, path)


@pytest.mark.parametrize("name", CLASSES)
def test_other_byte_orders_are_read(name, tmp_path):
    path, kind = tmp_path / "file", CLASSES[name]
    saved(kind, path)
    before = kind.load(path)
    with np.load(path) as found:
        arrays = {name: found[name].astype(found[name].dtype.newbyteorder("S")) for name in found.files}
    with open(path, "wb") as file:
        np.savez(file, **arrays)
    after = kind.load(path)
    if kind is sf.Accumulator:
        before, after = before.staircase(), after.staircase()
    assert after == before


def test_keys_that_are_not_text_are_an_error(tmp_path):
    path = tmp_path / "file"
    members = saved(sf.StaircaseMap, path)
    written(path, members | {"keys.npy": npy(np.array([97, 255], dtype=np.uint8))})
    assert "field `keys` must be UTF-8 text; got bytes b'\\xff'" in refused(sf.StaircaseMap, path)


# Accumulators: sums that no rows of these extents have


def changed(path, **fields):
    with np.load(path) as found:
        arrays = {name: found[name] for name in found.files}
    for name, change in fields.items():
        arrays[name] = change(arrays[name].copy())
    with open(path, "wb") as file:
        np.savez(file, **arrays)


def put(place, value):
    def change(array):
        array[place] = value
        return array

    return change


def tally(rows, weight):
    """The number of rows and their weight, as an accumulator stores them for small integers."""
    return np.array(1 << 63 | rows << 32 | weight, dtype=np.uint64).view(np.int64)


def test_sums_of_integers_must_be_within_the_targets(tmp_path):
    path = tmp_path / "file"
    seen = sf.Accumulator("log")
    seen.add([1, 1, 2, 3], [0, 1, 1, 0])
    for total in (-1, 3):  # between minus and plus the weight, but not sums of labels
        seen.save(path)
        changed(path, y=put(0, np.array(total).view(np.float64)))
        assert "field `y` must hold the sums of rows" in refused(sf.Accumulator, path)
    seen = sf.Accumulator()
    seen.add([1, 2], [5, 9])
    seen.save(path)
    changed(path, y=put(0, 4.0))
    assert "field `y` must be within `extents`" in refused(sf.Accumulator, path)


def test_weights_of_integers_must_be_within_their_extents(tmp_path):
    path = tmp_path / "file"
    seen = sf.Accumulator()
    seen.add([1, 1, 2], [1, 1, 2], [3, 3, 4])
    for weight in (5, 9):
        seen.save(path)
        changed(path, w=put(0, tally(2, weight)), y=put(0, np.array(weight).view(np.float64)))
        assert "field `y` must hold the sums of rows" in refused(sf.Accumulator, path)


def test_weights_whose_sum_is_infinite_are_an_error(tmp_path):
    path = tmp_path / "file"
    for loss in ("huber", "squared"):
        seen = sf.Accumulator(loss)
        seen.add([1, 2, 3], [1.5, 2.5, 4.5], [1e307, 1e308, 1.5])
        seen.save(path)
        changed(path, w=put(0, 1e308 if loss == "huber" else np.array(1e308).view(np.int64)))
        assert "`sample_weight` must have a finite sum over all rows" in refused(sf.Accumulator, path)


def test_the_error_for_parameters_of_single_rows_names_the_file(tmp_path):
    path = tmp_path / "file"
    seen = sf.Accumulator("huber")
    seen.add([1, 2], [1.5, 2.5])
    seen.save(path)

    def with_parameters(header):
        document = json.loads(header.tobytes()) | {"loss": {"name": "huber", "delta": [1.0, 2.0]}}
        return np.frombuffer(json.dumps(document).encode(), dtype=np.uint8)

    changed(path, header=with_parameters)
    assert "`delta` of the loss must be a number, the same for all rows; got 2 numbers" in refused(sf.Accumulator, path)


# JSON


def document(**fields):
    text = json.dumps(json.loads(sf.fit([1], [1]).to_json()) | dict.fromkeys(fields, "@"))
    for field, value in fields.items():
        text = text.replace(f'"{field}": "@"', f'"{field}": {value}')
    return text


def test_a_small_file_takes_little_memory(tmp_path):
    path = tmp_path / "stairs.json"
    stairs = sf.fit([1, 2], [1, 2])
    stairs.save(path)
    found, most = peak(lambda: sf.Staircase.load(path))
    assert found == stairs
    assert most < 1 << 23


@pytest.mark.parametrize("unit", ["[],", "{},", '"ab",', "[{}],"])
def test_text_that_is_mostly_names_and_brackets_is_rejected_before_it_is_parsed(unit, tmp_path):
    path = tmp_path / "stairs.json"
    path.write_text(document(left=f"[{unit * 400_000}1]"))
    message, most = peak(lambda: refused(sf.Staircase, path))
    assert message.startswith("a staircase must be arrays of numbers; this text has ")
    assert most < 5 * path.stat().st_size


@pytest.mark.parametrize("unit", ["1,", "0.1,", '"inf",', "1e5,"])
def test_the_memory_for_numbers_is_proportional_to_the_text(unit, tmp_path):
    path = tmp_path / "stairs.json"
    path.write_text(document(left=f"[{unit * 200_000}1]"))
    message, most = peak(lambda: refused(sf.Staircase, path))
    assert "`left`" in message
    assert most < 18 * path.stat().st_size


def test_a_file_that_is_too_large_is_rejected_before_it_is_read(tmp_path):
    path = tmp_path / "stairs.json"
    with open(path, "wb") as file:
        file.truncate(2**31 + 1)  # a hole
    message, most = peak(lambda: refused(sf.Staircase, path))
    assert message == f"a staircase must be at most {2**31} bytes of JSON; this file is larger."
    assert most < 1 << 23


def test_an_endless_pipe_is_rejected(monkeypatch):
    if not os.path.exists("/dev/zero"):
        pytest.skip("there is no /dev/zero")
    monkeypatch.setattr("staircase_fast.storage.files.MAX_BYTES", 1 << 22)
    assert "this file is larger" in refused(sf.Staircase, "/dev/zero")


def test_values_in_messages_are_short():
    for field, value in (
        ("format", '"' + "x" * 10_000 + '"'),
        ("version", "9" * 4000),
        ("loss", json.dumps({"name": "y" * 10_000})),
        ("increasing", json.dumps([1] * 10_000)),
        ("left", json.dumps(["z" * 10_000])),
        ("x" * 10_000, "1"),
    ):
        with pytest.raises(ValueError, match=r"field `") as caught:
            sf.Staircase.from_json(document(**{field: value}))
        assert len(str(caught.value)) < 500
    online = json.loads(sf.Online().to_json()) | {"left": [1.0], "right": [1.0], "counts": [1], "sums": [1] * 10_000}
    with pytest.raises(ValueError, match="field `") as caught:
        sf.Online.from_json(json.dumps(online))
    assert len(str(caught.value)) < 500


def test_integers_of_too_many_digits_are_an_error():
    with pytest.raises(ValueError, match=r"^a staircase must be JSON text; Exceeds the limit"):
        sf.Staircase.from_json(document(left=f"[{'9' * 5000}]"))


def test_a_staircase_of_many_steps_is_loaded(tmp_path):
    n = 200_000
    stairs = sf.Staircase(np.arange(n), np.arange(n) + 0.5, np.arange(n) / 7, np.ones(n), np.ones(n, dtype=int))
    stairs.save(tmp_path / "stairs.json")
    assert sf.Staircase.load(tmp_path / "stairs.json") == stairs


def test_predictors_of_many_folds_and_online_fits_of_many_blocks_are_loaded():
    n = 2000
    cross = sf.CrossVennAbers().fit(np.zeros(n), np.zeros(n, dtype=int), folds=np.arange(n))
    assert sf.CrossVennAbers.from_json(cross.to_json()) == cross
    online = sf.Online(sf.losses.Linex(1.0))
    online.extend(np.arange(n), np.arange(n))
    assert sf.Online.from_json(online.to_json()).staircase() == online.staircase()


def test_deep_nesting_is_an_error():
    for text in ("[" * 100_000, "[       " * 100_000 + "]" * 100_000):
        with pytest.raises(ValueError, match=r"^a staircase must be (arrays of numbers|a flat JSON object); this text"):
            sf.Staircase.from_json(text)


def test_a_memory_error_is_not_reported_as_a_damaged_file(tmp_path, monkeypatch):
    def no_memory(*args, **options):
        raise MemoryError

    path = tmp_path / "file"
    saved(sf.Accumulator, path)
    monkeypatch.setattr(np, "frombuffer", no_memory)
    with pytest.raises(MemoryError):
        sf.Accumulator.load(path)


@pytest.mark.parametrize("exposure", [[1.0], [1.0, 1.0], [2.0]])
def test_exposures_of_single_rows_are_rejected_by_an_online_fit_and_its_files(exposure, tmp_path):
    loss = sf.losses.PoissonDeviance(exposure)
    with pytest.raises(ValueError, match=r"`loss` must have an update rule: .*each with one parameter"):
        sf.Online(loss)
    path = tmp_path / "online.json"
    text = sf.Online("poisson_deviance").to_json()
    path.write_text(json.dumps(json.loads(text) | {"loss": {"name": "poisson_deviance", "exposure": exposure}}))
    assert "`loss` must have an update rule" in refused(sf.Online, path)


def test_compressed_archives_are_an_error(tmp_path):
    path = tmp_path / "seen.npz"
    saved(sf.Accumulator, path)
    with np.load(path) as file:
        arrays = dict(file)
    np.savez_compressed(path, **arrays)
    with pytest.raises(ValueError, match=r"seen\.npz: .*field `.*` is compressed"):
        sf.Accumulator.load(path)


def test_other_errors_about_the_content_name_the_file():
    with pytest.raises(sf.InvalidInputError, match="cannot reshape") as raised, files.named("stairs.npz"):
        np.zeros(3).reshape(2, 2)  # as if the file became shorter while it was read
    assert raised.value.file == "stairs.npz"
