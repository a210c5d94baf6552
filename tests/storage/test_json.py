"""JSON documents: exact numbers, and errors for invalid content."""

import json
import math
import os
import pathlib
import pickle
import re
from typing import Any

import pytest
from comparing import assert_same_bits, assert_same_staircase
from hypothesis import given
from hypothesis import strategies as st
from strategies import rows

import staircase_fast as sf

inf = math.inf
ARRAYS = ("left", "right", "values", "weights", "counts")
FIELDS = ("format", "version", "loss", "increasing", *ARRAYS)


def example():
    return sf.fit([1, 2, 3, 5], [0.1, 0.5, 0.25, 4.0], sample_weight=[1, 1, 1, 2.5])


def refused(text):
    """The message with which a text is refused."""
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        sf.Staircase.from_json(text)
    return str(caught.value)


def no_such_constant(name):
    raise AssertionError(f"{name} is not JSON")


@given(rows(), st.booleans(), st.sampled_from(["squared", "log"]))
def test_json_preserves_every_bit(rows, increasing, loss):
    targets = rows.targets if loss == "squared" else rows.targets > 0
    stairs = sf.fit(rows.scores, targets, sample_weight=rows.weights, increasing=increasing, loss=loss)
    text = stairs.to_json()
    json.loads(text, parse_constant=no_such_constant)
    again = sf.Staircase.from_json(text)
    assert_same_staircase(again, stairs)
    assert again.to_json() == text
    assert not again.values.flags.writeable


def test_the_document_holds_these_fields_and_no_others():
    assert json.loads(example().to_json()) == {
        "format": "staircase_fast",
        "version": 1,
        "loss": {"name": "squared_error"},
        "increasing": True,
        "left": [1.0, 2.0, 5.0],
        "right": [1.0, 3.0, 5.0],
        "values": [0.1, 0.375, 4.0],
        "weights": [1.0, 2.0, 2.5],
        "counts": [1, 2, 1],
    }
    down = sf.fit([1, 2], [1, 0], loss="log", increasing=False)
    document = json.loads(down.to_json())
    assert (document["loss"], document["increasing"]) == ({"name": "log_loss"}, False)


def test_infinite_scores_are_written_as_words():
    stairs = sf.fit([-inf, 0, inf], [1, 2, 3])
    document = json.loads(stairs.to_json())
    assert document["left"] == document["right"] == ["-inf", 0.0, "inf"]
    assert_same_staircase(sf.Staircase.from_json(stairs.to_json()), stairs)


def test_spaces_order_of_fields_and_whole_numbers_do_not_matter():
    stairs = sf.fit([1, 2], [3, 4])
    document = json.loads(stairs.to_json())
    document |= {"left": [1, 2], "values": [3, 4]}
    text = json.dumps(dict(reversed(document.items())), indent=3)
    assert_same_staircase(sf.Staircase.from_json(text), stairs)


@pytest.mark.parametrize("as_path", [str, pathlib.Path])
def test_a_saved_file_holds_the_text_and_loads_again(tmp_path, as_path):
    path = as_path(tmp_path / "stairs.json")
    example().save(path)
    assert pathlib.Path(path).read_text(encoding="utf-8").strip() == example().to_json()
    assert_same_staircase(sf.Staircase.load(path), example())


def test_saving_replaces_a_file_and_leaves_nothing_else_behind(tmp_path):
    path = tmp_path / "stairs.json"
    sf.fit(range(100), range(100)).save(path)
    path.chmod(0o640)
    example().save(path)
    assert_same_staircase(sf.Staircase.load(path), example())
    assert [entry.name for entry in tmp_path.iterdir()] == ["stairs.json"]
    assert path.stat().st_mode & 0o777 == 0o640


def test_saving_through_a_link_writes_the_file_it_points_to(tmp_path):
    link, path = tmp_path / "link", tmp_path / "stairs.json"
    link.symlink_to(path)
    example().save(link)
    assert link.is_symlink()
    assert_same_staircase(sf.Staircase.load(path), example())


@pytest.mark.parametrize("mask", [0o022, 0o027, 0o277])
def test_a_new_file_has_the_permissions_that_any_new_file_has(mask, tmp_path, monkeypatch):
    plain, saved = tmp_path / "plain", tmp_path / "saved"
    change_mask = os.umask
    before = change_mask(mask)
    # files that other threads make meanwhile would have the mask, too
    monkeypatch.setattr(os, "umask", lambda _: pytest.fail("the mask of the process must stay as it is"))
    try:
        plain.touch()
        example().save(saved)
    finally:
        change_mask(before)
    assert saved.stat().st_mode == plain.stat().st_mode


def test_a_save_that_fails_leaves_the_old_file_and_no_other(tmp_path, monkeypatch):
    path = tmp_path / "stairs.json"
    example().save(path)

    def fail(*args):
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        sf.fit([1], [1]).save(path)
    assert_same_staircase(sf.Staircase.load(path), example())
    assert [entry.name for entry in tmp_path.iterdir()] == ["stairs.json"]


def test_a_missing_file_is_a_file_not_found_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        sf.Staircase.load(tmp_path / "nothing.json")
    with pytest.raises(FileNotFoundError):
        example().save(tmp_path / "no" / "folder.json")


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", pickle.dumps([1, 2]), b"\x80", b"[1, 2]", b"null"])
def test_files_with_other_content_are_an_error(tmp_path, content):
    path = tmp_path / "stairs.json"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"\w"):
        sf.Staircase.load(path)


@pytest.mark.parametrize("field", ["values", "weights", "counts"])
@pytest.mark.parametrize(
    ("entry", "shown"), [(True, "True"), (None, "None"), ("x", "'x'"), (1 << 2000, "an integer of 2001 bits")]
)
def test_the_error_for_an_entry_that_is_not_a_number_shows_it(field, entry, shown):
    document = json.loads(sf.fit([1], [1]).to_json()) | {field: [entry]}
    with pytest.raises(ValueError, match=f"field `{field}` must hold numbers; got {shown} at index 0"):
        sf.Staircase.from_json(json.dumps(document))


def test_errors_about_the_content_of_a_file_name_the_file(tmp_path):
    staircase, archive = tmp_path / "staircase.json", tmp_path / "cities.staircases"
    sf.fit([1], [1]).save(staircase)
    sf.fit_groups([1, 2], [1, 2], ["a", "b"]).save(archive)
    accumulator = tmp_path / "seen.npz"
    seen = sf.Accumulator()
    seen.add([1, 2], [1.5, 2])
    seen.save(accumulator)
    text = tmp_path / "text"
    text.write_bytes(b'{"a": "\xff"}')
    cases: list[tuple[Any, pathlib.Path, str]] = [
        (sf.Staircase, archive, "a staircase must be JSON text; this is an archive, as maps and accumulators save it."),
        (sf.Staircase, text, "a staircase must be JSON text; got byte 0xff at 7."),
        (sf.Online, staircase, "field `format` must be 'staircase_fast online'; got 'staircase_fast'."),
        (sf.VennAbers, staircase, "field `format` must be 'staircase_fast venn-abers'; got 'staircase_fast'."),
        (sf.CrossVennAbers, staircase, "field `format` must be 'staircase_fast cross venn-abers'; got"),
        (
            sf.StaircaseMap,
            staircase,
            "must be a file that `save` wrote; this is not an archive, or its end",
        ),
        (sf.StaircaseMap, accumulator, "field `format` must be"),
        (sf.Accumulator, archive, "field `format` must be"),
    ]
    for kind, path, message in cases:
        with pytest.raises(ValueError, match=re.escape(message)) as refused:
            kind.load(path)
        assert str(refused.value).startswith(f"{path}: "), kind


def test_the_error_for_a_missing_folder_names_the_path_of_the_caller(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = os.path.join("none", "model.json")
    with pytest.raises(FileNotFoundError) as refused:
        sf.fit([1], [1]).save(path)
    assert refused.value.filename == path


def test_files_and_texts_have_a_maximum_size(tmp_path, monkeypatch):
    monkeypatch.setattr("staircase_fast.storage.files.MAX_BYTES", 100)
    path = tmp_path / "stairs.json"
    example().save(path)
    with pytest.raises(ValueError, match="100"):
        sf.Staircase.load(path)
    assert "100" in refused(example().to_json())


@pytest.mark.parametrize("text", [None, 3, b"{}", bytearray(b"{}"), {"format": 1}, ["{}"]])
def test_json_that_is_not_a_str_is_a_type_error(text):
    with pytest.raises(TypeError, match=type(text).__name__):
        sf.Staircase.from_json(text)


def test_truncated_text_is_an_error():
    text = example().to_json()
    for end in range(len(text)):
        refused(text[:end])


@pytest.mark.parametrize("text", ["[]", "3", "null", '"staircase"', "true"])
def test_json_that_is_not_an_object_is_an_error(text):
    assert "object" in refused(text)


@pytest.mark.parametrize("field", FIELDS)
def test_the_error_names_a_missing_field(field):
    document = json.loads(example().to_json())
    del document[field]
    assert re.search(rf"`{field}`.*missing", refused(json.dumps(document)))


def test_the_error_names_an_unknown_field():
    document = json.loads(example().to_json()) | {"colour": "red"}
    assert "`colour`" in refused(json.dumps(document))


@pytest.mark.parametrize("field", FIELDS)
def test_the_error_names_a_field_that_appears_twice(field):
    text = example().to_json()
    value = json.dumps(json.loads(text)[field])
    for first in (value, "null"):
        assert f"`{field}`" in refused(f'{{"{field}": {first}, {text[1:]}')


WRONG = {  # field: what it cannot be
    "format": ["staircase", "", None, 1, ["staircase_fast"]],
    "version": [0, 2, 1.0, "1", True, None, 10**30],
    "loss": [
        "squared_error",
        None,
        [],
        {},
        {"name": "nope"},
        {"name": None},
        {"name": ["log_loss"]},
        {"name": "log_loss", "power": 2},
        {"power": 2},
    ],
    "increasing": [1, 0, "true", None, [True], False],
    "left": [
        [],
        [1.0, 2.0],
        [1.0, 2.0, 5.0, 6.0],
        [1.0, 2.0, 2.0],
        [1.0, 3.5, 5.0],
        [1.0, 2.0, 6.0],
        [2.0, 1.0, 5.0],
        [1.0, 2.0, None],
        [1.0, 2.0, "5"],
        [1.0, 2.0, "nan"],
        [1.0, 2.0, "Infinity"],
        [True, 2.0, 5.0],
        [[1.0], [2.0], [5.0]],
        [1.0, 2.0, 10**400],
        "123",
        7,
        {"0": 1.0, "1": 2.0, "2": 5.0},
        None,
    ],
    "right": [[], [1.0, 3.0], [2.0, 3.0, 5.0], [0.5, 3.0, 5.0], [1.0, 3.0, "-inf"], "inf"],
    "values": [
        [],
        [0.1, 0.375],
        [0.1, 0.1, 4.0],
        [0.1, 4.0, 0.375],
        [4.0, 0.375, 0.1],
        [0.1, 0.375, "inf"],
        [0.1, 0.375, None],
        [False, 0.375, 4.0],
        [0.1, 0.375, 10**400],
        {},
    ],
    "weights": [
        [],
        [1.0, 2.0],
        [1.0, 0.0, 2.5],
        [1.0, -0.0, 2.5],
        [1.0, -2.0, 2.5],
        [1.0, "inf", 2.5],
        [1.0, True, 2.5],
        [1.0, None, 2.5],
        [1.0, 2.0, 10**400],
    ],
    "counts": [
        [],
        [1, 2],
        [1, 0, 1],
        [1, -1, 1],
        [1, 2.0, 1],
        [1, 1.5, 1],
        [1, True, 1],
        [1, "2", 1],
        [1, None, 1],
        [1, 2**63, 1],
        [1, 10**400, 1],
    ],
}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        pytest.param(field, value, id=f"{field}={str(value)[:40]}")
        for field, values in WRONG.items()
        for value in values
    ],
)
def test_the_error_for_an_invalid_value_names_the_field(field, value):
    document = json.loads(example().to_json()) | {field: value}
    message = refused(json.dumps(document))
    # Where two fields contradict each other, the message may name either.
    partners = {"left": "right", "right": "left", "increasing": "values"}
    assert f"`{field}`" in message or f"`{partners.get(field)}`" in message
    assert len(message) < 1_000


def test_all_arrays_empty_is_an_error():
    document = json.loads(example().to_json())
    document |= {field: [] for field in ARRAYS}
    assert "`left`" in refused(json.dumps(document))


@pytest.mark.parametrize("field", ARRAYS)
@pytest.mark.parametrize("literal", ["NaN", "Infinity", "-Infinity", "1e999", "-1e999"])
def test_numbers_that_are_not_finite_are_rejected_in_any_spelling(field, literal):
    document = json.loads(example().to_json())
    document[field][1] = "HERE"
    message = refused(json.dumps(document).replace('"HERE"', literal))
    assert f"`{field}`" in message or literal in message


@pytest.mark.parametrize("opening", ["[", '{"left":', '{"loss":{"name":'])
def test_deep_nesting_is_an_error(opening):
    refused(opening * 200_000)
    closing = "}" * opening.count("{") + "]" * opening.count("[")
    nested = opening * 50_000 + "1" + closing * 50_000
    refused(nested)
    refused(example().to_json().replace('"left": [', f'"left": [{nested}, '))


def test_integers_of_many_digits_are_an_error():
    for field in ARRAYS:
        document = json.loads(example().to_json())
        document[field][0] = "HERE"
        refused(json.dumps(document).replace('"HERE"', "9" * 100_000))


@given(st.data())
def test_a_damaged_text_is_rejected_or_is_a_valid_staircase(data):
    text = example().to_json()
    start = data.draw(st.integers(0, len(text)))
    stop = data.draw(st.integers(start, min(start + 12, len(text))))
    patch = data.draw(st.text('0123456789.-+eE[]{},:" \\truefalsn', max_size=6) | st.text(max_size=3))
    try:
        stairs = sf.Staircase.from_json(text[:start] + patch + text[stop:])
    except ValueError:
        return
    assert_same_staircase(sf.Staircase.from_json(stairs.to_json()), stairs)
    assert_same_bits(stairs(stairs.left), stairs.values)
