"""The page on file formats names exactly the fields that freshly written files have."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

import staircase_fast as sf

PAGE = Path(__file__).parents[2] / "docs" / "file_formats.md"
X, Y, LABELS = [1, 2, 2, 3], [0.5, 1.0, 0.25, 1e-3], [0, 1, 0, 1]


def fed(stream):
    """A stream with some rows."""
    getattr(stream, "add", getattr(stream, "extend", None))(X, Y)
    return stream


FILES = {
    "Staircase": [sf.fit(X, LABELS, loss="log"), sf.fit(X, Y, loss="log_cosh")],
    "StaircaseMap": [
        sf.fit_groups(X, Y, ["a", "a", "b", "b"]),
        sf.fit_groups(X, Y, [1, 1, 2, 2], loss=sf.losses.PseudoHuber([1.0, 2.0, 1.0, 2.0])),
    ],
    "VennAbers": [sf.VennAbers().fit(X, LABELS)],
    "CrossVennAbers": [sf.CrossVennAbers().fit(X, LABELS, folds=[0, 0, 1, 1])],
    "Online": [sf.Online(), fed(sf.Online()), fed(sf.Online(loss=sf.losses.Linex(1)))],
    "Accumulator": [sf.Accumulator(), fed(sf.Accumulator()), fed(sf.Accumulator("huber"))],
}


def document_and_fields(saved, path):
    """The JSON object of a file, and the names of all its fields; those of losses are not included."""
    saved.save(path)
    if path.read_bytes().startswith(b"PK"):
        with np.load(path, allow_pickle=False) as archive:
            header = json.loads(archive["header"].tobytes())
            return header, {*archive, *header}
    document = json.loads(path.read_text("utf-8"))
    return document, {*document, *(name for one in document.get("predictors", ()) for name in one)}


def section(title):
    return re.search(rf"^## {title}\n(.*?)(?=^## |\Z)", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)[1]


def named_fields(text):
    """The names in the first column of the table, and those that the rows of `header` and `predictors` list."""
    found = set()
    for row in re.findall(r"^\| (`.*) \|$", text, re.MULTILINE):
        name, content = row.split(" | ", 1)
        found.update(re.findall(r"`(\w+)`", name))
        if name in ("`header`", "`predictors`"):
            found.update(re.findall(r"`(\w+)`", content))
    return found


@pytest.mark.parametrize("kind", FILES)
def test_the_page_names_all_fields_of_a_file_and_no_others(kind, tmp_path):
    written = [document_and_fields(one, tmp_path / "file") for one in FILES[kind]]
    assert named_fields(section(kind)) == set().union(*(fields for _, fields in written))


@pytest.mark.parametrize("kind", FILES)
def test_the_page_has_the_format_and_the_version_of_each_file(kind, tmp_path):
    for one in FILES[kind]:
        document, _ = document_and_fields(one, tmp_path / "file")
        type_of_file = "npz" if (tmp_path / "file").read_bytes().startswith(b"PK") else "JSON"
        row = f"(#{kind.lower()}) | {type_of_file} | `{document['format']}` | {document['version']} |"
        assert row in PAGE.read_text("utf-8")


def test_all_saved_classes_have_a_section():
    saved = {name for name in sf.__all__ if hasattr(getattr(sf, name), "save") and hasattr(getattr(sf, name), "load")}
    assert saved == set(FILES)
