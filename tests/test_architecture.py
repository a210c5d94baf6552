"""The folders depend on each other in one direction only, and stay within the limits on size."""

import ast
import re
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "staircase_fast"
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
    {"batches", "groups", "streams"},
    {"calibration"},
    {"sklearn", "cli", "c_api", "cython_api", "dask", "spark"},
)
LEVEL = {room: level for level, rooms in enumerate(LEVELS) for room in rooms}
# these two need each other: the public declarations and the code behind them
TOGETHER = {"c_api", "cython_api"}
SOURCES = sorted(path for path in PACKAGE.rglob("*") if path.suffix in (".py", ".pyx", ".pxd"))


def room_of(path):
    return path.relative_to(PACKAGE).parts[0].partition(".")[0]


def imports_of(path):
    """Modules of the package that a file imports or cimports, also lazily and for annotations, with the names."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ImportFrom) and node.module and node.module.partition(".")[0] == "staircase_fast":
                yield from ((node.module, alias.name) for alias in node.names)
            elif isinstance(node, ast.Import):
                yield from ((alias.name, "") for alias in node.names if alias.name.startswith("staircase_fast."))
        return
    for module, names in re.findall(
        r"^\s*from (staircase_fast[\w.]*) c?import ([^(\n]+|\([^)]*\))", text, re.MULTILINE
    ):
        yield from ((module, name.split(" as ")[0].strip()) for name in names.strip("()").split(",") if name.strip())


def rooms_used(path):
    for module, name in imports_of(path):
        parts = [*module.split(".")[1:], name]
        if parts[0] in LEVEL:
            yield parts[0], module, name


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
