"""Which modules of the package each source file imports: for the picture of the architecture, and for a test."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "staircase_fast"


def sources() -> list[Path]:
    """All Python and Cython files of the package."""
    return sorted(path for path in PACKAGE.rglob("*") if path.suffix in (".py", ".pyx", ".pxd"))


def room_of(path: Path) -> str:
    """The folder of a file; the name of the module if it lies beside the folders."""
    return path.relative_to(PACKAGE).parts[0].partition(".")[0]


def imports_of(path: Path) -> Iterator[tuple[str, str]]:
    """The (module, name) pairs that a file imports or cimports, including lazy imports and those for annotations."""
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


def rooms_imported(path: Path) -> Iterator[tuple[str, str, str]]:
    """The room, module and name of each import of a file."""
    for module, name in imports_of(path):
        yield [*module.split(".")[1:], name][0], module, name
