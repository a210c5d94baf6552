"""Every Python block of the README and of docs/ runs, in order and in one namespace, with the output it shows."""

import ast
import doctest
import importlib.util
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import staircase_fast as sf

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))]
OPTIONAL = ("betacal", "dask", "duckdb", "pyspark", "venn_abers")  # pages that import these may be skipped
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def python_blocks(page: Path) -> list[tuple[int, str]]:
    """The Python blocks of a page, each with the number of the line above it."""
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
    """Check the comment of an expression if it is a value ("True"), or "about" followed by numbers."""
    for statement in ast.parse("\n" * line + block).body:
        if not isinstance(statement, ast.Expr):
            exec(compile(ast.Module([statement], []), str(page), "exec"), names)
            continue
        value = eval(compile(ast.Expression(statement.value), str(page), "eval"), names)
        comment = block.splitlines()[statement.end_lineno - line - 1].encode()[statement.end_col_offset :].decode()
        text = comment.strip().removeprefix("#").strip()
        about = re.search(r"\babout (.*)", text)
        if about:
            assert np.allclose(value, ast.literal_eval(f"[{about[1]}]"), rtol=0, atol=0.01), (statement.lineno, value)
        elif text in ("True", "False", "None"):
            assert str(value) == text, (statement.lineno, value)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_the_examples_of_a_page_run_and_print_what_it_shows(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = page.read_text("utf-8")
    for package in OPTIONAL:
        if re.search(rf"^(>>> )?(import|from) {package}\b", text, flags=re.MULTILINE):
            pytest.importorskip(package)
    monkeypatch.chdir(tmp_path)  # pages save files
    names: dict[str, Any] = {"__name__": page.stem}
    try:
        with np.errstate():  # importing venn_abers changes NumPy's settings
            for line, block in python_blocks(page):
                (run_prompts if block.startswith(">>>") else run_statements)(page, block, line, names)
    finally:
        sf.set_num_threads(None)  # a page changes it


def bench_and_readme() -> tuple[Any, str, str]:
    """The script that copies the figures into the README, the output of `make bench`, and the README."""
    spec = importlib.util.spec_from_file_location("readme", ROOT / "asv_benchmarks" / "readme.py")
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    return script, script.BENCH.read_text("utf-8"), script.README.read_text("utf-8")


def test_the_figures_in_the_readme_follow_from_one_run_of_make_bench() -> None:
    script, bench, readme = bench_and_readme()
    assert script.updated(readme, bench) == readme, "run `python asv_benchmarks/readme.py`"
    assert script.table(bench) in readme
    assert script.typical(bench) in " ".join(readme.split())
    assert f"({bench.splitlines()[0].partition('; ')[2]})" in " ".join(readme.split())
    assert readme.count("\n| ") == len(script.table(bench).splitlines()) - 1, "the README has no other table"


def test_another_run_changes_the_figures_in_the_readme() -> None:
    script, bench, readme = bench_and_readme()
    other = re.sub(r"(?m)^(fit, .*?)[\d.]+x", r"\g<1>1234.5x", bench).replace("numpy 2", "numpy 1002")
    changed = script.updated(readme, other)
    assert "1,234x |" in changed
    assert "1230 to 1235 times faster" in " ".join(changed.split())
    assert "numpy 1002" in " ".join(changed.split())


def test_the_table_in_the_readme_includes_the_job_with_the_lowest_ratio() -> None:
    script, bench, _ = bench_and_readme()
    assert script.slowest(bench) in {(name, peer) for name, peer, _ in script.JOBS.values()}


def test_the_picture_of_the_time_over_the_rows_shows_the_stored_table(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib")
    monkeypatch.syspath_prepend(ROOT / "docs" / "pictures")
    import time_over_rows

    rows, curves = time_over_rows.read(time_over_rows.GROWTH)
    assert np.all(np.diff(rows) > 0)
    assert len({curve[:3] for curve in curves}) == len(curves) == 8
    picture = (ROOT / "docs" / "time_over_rows.svg").read_text("utf-8")
    assert time_over_rows.description() in picture, "run docs/pictures/time_over_rows.py"


def test_the_readme_has_examples() -> None:
    assert len(python_blocks(PAGES[0])) > 5
