"""Every Python block of the README and of docs/ runs, in order and in one namespace, with the output it shows."""

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


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_examples_of_a_page_run_and_print_what_it_shows(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if "import duckdb" in page.read_text("utf-8"):
        pytest.importorskip("duckdb")
    monkeypatch.chdir(tmp_path)  # pages save files
    names: dict[str, Any] = {"__name__": page.stem}
    try:
        for line, block in python_blocks(page):
            (run_prompts if block.startswith(">>>") else run_statements)(page, block, line, names)
    finally:
        sf.set_num_threads(None)  # a page changes it


# The README's table: the job as a reader knows it, the line of docs/bench.txt with its peer, and the peer's call.
JOBS = {
    "fit 0/1 labels": ("fit, labels, uniform", "scikit-learn", "scikit-learn"),
    "fit 0/1 labels, log-normal scores": ("fit, labels, log-normal", "scikit-learn", "scikit-learn"),
    "fit 0/1 labels, scores rounded to three digits": ("fit, labels, three digits", "scikit-learn", "scikit-learn"),
    "fit 0/1 labels, scores already sorted": ("fit, labels, sorted", "scikit-learn", "scikit-learn"),
    "fit real targets with weights": ("fit, real and weights", "scikit-learn", "scikit-learn"),
    "fit a small data set": ("fit of 100 rows", "scikit-learn", "scikit-learn"),
    "fit 100,000 groups of 100 rows *": ("fit_groups, labels, 100 rows each", "scikit-learn, a loop", "scikit-learn"),
    "predict with a staircase of 500 steps": ("predict, 500 steps, one thread", "np.searchsorted, take", "NumPy"),
    "isotonic_regression, noisy sequence *": ("isotonic_regression, noise", "SciPy", "SciPy"),
    "isotonic_regression, sawtooth sequence *": ("isotonic_regression, sawtooth", "SciPy", "SciPy"),
    "expectile regression *": ("expectile, 100,000 rows", "model-diagnostics", "model-diagnostics"),
    "Venn-Abers, fit and predict *": ("VennAbers, uniform, 100,000 rows", "venn-abers", "venn-abers"),
}
LINE = re.compile(
    r"(?P<name>\S.*?)\s{2,}(?P<ours>[\d.]+)\s+(?P<theirs>[\d.]+)\s+(?P<ratio>[\d.]+)x.*\s{2,}(?P<peer>\S.*)"
)


def printed_lines() -> dict[tuple[str, str], dict[str, str]]:
    """The comparisons in docs/bench.txt, by name and peer."""
    matches = filter(None, map(LINE.fullmatch, (ROOT / "docs" / "bench.txt").read_text("utf-8").splitlines()))
    return {(found["name"], found["peer"]): found.groupdict() for found in matches}


def duration(seconds: float) -> str:
    unit, size = next((unit, size) for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)) if seconds >= size)
    return f"{seconds / size:.3g} {unit}"


def expected_table() -> str:
    """The table that the README must show: nanoseconds per row of docs/bench.txt, times the rows."""
    default_rows = (ROOT / "docs" / "bench.txt").read_text("utf-8").partition(" rows;")[0]
    lines = ["| job | rows | staircase_fast | other library | speed-up |", "|---|--:|--:|--:|--:|"]
    for job, (name, peer, shown_peer) in JOBS.items():
        line = printed_lines()[name, peer]
        in_name = re.search(r"([\d,]+) rows(?! each)", name)
        rows = in_name[1].strip(",") if in_name else default_rows
        ours, theirs = (float(line[key]) * 1e-9 * int(rows.replace(",", "")) for key in ("ours", "theirs"))
        ratio = float(line["ratio"])
        shown_ratio = f"{ratio:,.0f}x" if ratio >= 10 else f"{ratio}x"
        lines.append(f"| {job} | {rows} | {duration(ours)} | {shown_peer}: {duration(theirs)} | {shown_ratio} |")
    return "\n".join(lines)


def test_the_table_in_the_readme_follows_from_one_run_of_make_bench() -> None:
    readme, table = PAGES[0].read_text("utf-8"), expected_table()
    assert table in readme, f"put this into README.md:\n{table}"
    assert readme.count("\n| ") == len(table.splitlines()) - 1, "the README has no other table"
    versions = (ROOT / "docs" / "bench.txt").read_text("utf-8").splitlines()[0].partition("; ")[2]
    assert f"({versions})" in " ".join(readme.split())


def test_the_readme_includes_a_job_at_which_the_peer_is_faster() -> None:
    assert any(float(printed_lines()[name, peer]["ratio"]) < 1 for name, peer, _ in JOBS.values())


def test_the_first_sentences_of_the_readme_follow_from_the_same_run() -> None:
    readme = " ".join(PAGES[0].read_text("utf-8").split())
    low, high = map(int, re.search(r"(\d+) to (\d+) times faster", readme).groups())
    ratios = sorted(
        float(line["ratio"])
        for (name, peer), line in printed_lines().items()
        if name.startswith("fit, ") and peer == "scikit-learn"
    )
    assert len(ratios) > 10
    typical = ratios[len(ratios) // 10 : -1]  # without the lowest tenth and the highest
    assert low <= typical[0]
    assert typical[-1] <= high <= ratios[-1] + 5


def test_the_readme_has_examples() -> None:
    assert len(python_blocks(PAGES[0])) > 5
