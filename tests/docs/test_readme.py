"""Every Python block of the README and of docs/ runs, in order and in one namespace, and prints what it says."""

import ast
import doctest
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import staircase_fast as sf

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def python_blocks(page: Path) -> list[tuple[int, str]]:
    """Each with the number of the line above its first."""
    text = page.read_text(encoding="utf-8")
    found = re.finditer(r"^```python\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)
    return [(text.count("\n", 0, block.start(1)), block[1]) for block in found]


def run_prompts(page: Path, block: str, line: int, names: dict[str, Any]) -> None:
    test = doctest.DocTestParser().get_doctest(block, names, page.name, str(page), line)
    report: list[str] = []
    doctest.DocTestRunner(optionflags=OPTIONS).run(test, out=report.append, clear_globs=False)
    assert not report, "".join(report)
    names.update(test.globs)


def run_statements(page: Path, block: str, line: int, names: dict[str, Any]) -> None:
    """An expression's comment is checked if it is a value ("True"), or says "about" and some numbers."""
    for statement in ast.parse("\n" * line + block).body:
        if not isinstance(statement, ast.Expr):
            exec(compile(ast.Module([statement], []), str(page), "exec"), names)
            continue
        value = eval(compile(ast.Expression(statement.value), str(page), "eval"), names)
        comment = block.splitlines()[statement.end_lineno - line - 1].encode()[statement.end_col_offset :].decode()
        said = comment.strip().removeprefix("#").strip()
        about = re.search(r"\babout (.*)", said)
        if about:
            assert np.allclose(value, ast.literal_eval(f"[{about[1]}]"), rtol=0, atol=0.01), (statement.lineno, value)
        elif said in ("True", "False", "None"):
            assert str(value) == said, (statement.lineno, value)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_does_what_it_says(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if "import duckdb" in page.read_text("utf-8"):
        pytest.importorskip("duckdb")
    monkeypatch.chdir(tmp_path)  # it saves a model
    names: dict[str, Any] = {"__name__": page.stem}
    try:
        for line, block in python_blocks(page):
            (run_prompts if block.startswith(">>>") else run_statements)(page, block, line, names)
    finally:
        sf.set_num_threads(None)  # it sets that, too


def test_the_table_in_the_readme_is_that_of_one_run() -> None:
    table = re.search(r"^```\n([\d,]+ rows; .*?)^```$", PAGES[0].read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    assert table is not None
    shown = [line for line in table[1].splitlines() if line not in ("", "...")]
    assert len(shown) > 10
    assert set(shown) <= set((ROOT / "docs" / "bench.txt").read_text("utf-8").splitlines())


def test_the_readme_has_something_to_run() -> None:
    assert len(python_blocks(PAGES[0])) > 5
