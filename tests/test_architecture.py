"""The folders depend on each other in one direction only, and stay within the limits on size."""

import ast
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

sys.path.append(str(Path(__file__).parents[1] / "docs" / "pictures"))
from imports import PACKAGE, room_of, rooms_imported, sources

if not PACKAGE.exists():
    pytest.skip("needs the source tree", allow_module_level=True)

# Each folder or module imports only from its own level and the levels before it; those of one level are independent.
LEVELS = (
    {"typing"},
    {"errors"},
    {"threads"},
    {"arithmetic"},
    {"inputs"},
    {"losses"},
    {"storage"},
    {"staircase"},
    {"stack"},
    {"bisection"},
    {"certificate"},
    {"fitting"},
    {"groups", "streams"},
    {"batches", "calibration"},
    {"sklearn", "cli", "c_api", "cython_api", "dask", "spark"},
)
LEVEL = {room: level for level, rooms in enumerate(LEVELS) for room in rooms}
# these two need each other: the public declarations and the code behind them
TOGETHER = {"c_api", "cython_api"}
SOURCES = sources()


def rooms_used(path):
    return [(room, module, name) for room, module, name in rooms_imported(path) if room in LEVEL]


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_dependencies_point_one_way(path):
    own = room_of(path)
    if own in ("__init__", "__main__"):
        return
    for room, module, name in rooms_used(path):
        allowed = room == own or LEVEL[room] < LEVEL[own] or {room, own} == TOGETHER
        assert allowed, f"{own} must not import {name} from {module}"


@pytest.mark.parametrize("path", [path for path in SOURCES if path.suffix == ".py"], ids=lambda path: path.name)
def test_no_private_name_of_another_room_is_imported(path):
    for room, module, name in rooms_used(path):
        is_kernel = (PACKAGE / room / f"{name}.pyx").exists()
        assert room == room_of(path) or is_kernel or not name.startswith("_"), f"{name} of {module} is private"


@pytest.mark.parametrize("path", sorted(PACKAGE.glob("*/__init__.py")), ids=lambda path: path.parent.name)
def test_each_room_introduces_itself(path):
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    assert len(text) > 100, "what is the room for, and which path does data take through it?"
    assert len(text.splitlines()) <= 25
    assert "Tests: tests/" in text


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_files_are_short(path):
    most = 450 if path.suffix == ".py" else 300
    assert len(path.read_text(encoding="utf-8").splitlines()) <= most


def test_the_stored_picture_of_the_architecture_is_up_to_date():
    pytest.importorskip("matplotlib")
    import architecture

    architecture.check(architecture.imported_rooms())
    picture = ET.parse(architecture.PICTURE)
    stored = picture.findtext(".//{http://purl.org/dc/elements/1.1/}description")
    assert stored == architecture.description(), "run `python docs/pictures/architecture.py`"
