"""Every Python block of the README and of docs/ runs, in order and in one namespace, with the output it shows."""

import importlib.util
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import staircase_fast as sf

sys.path.append(str(Path(__file__).parents[2] / "docs" / "pictures"))
from pages import python_blocks, run_page

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
OPTIONAL = ("betacal", "dask", "duckdb", "pyspark", "venn_abers")  # pages that import these may be skipped


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
        # importing venn_abers silences NumPy's warnings, which it needs, for the whole process
        with np.errstate(**({"all": "ignore"} if "import VennAbers" in text else {})):
            for picture, figure in run_page(page, names):
                figure.savefig(tmp_path / f"{picture}.svg")
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


def test_the_picture_of_many_rows_shows_the_stored_table(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib")
    monkeypatch.syspath_prepend(ROOT / "docs" / "pictures")
    import many_rows

    per_bucket, found = many_rows.read()
    assert per_bucket.tolist() == [16 * 4**power for power in range(7)]
    assert len(found) == 6
    for shares in found.values():
        assert np.all(np.diff(shares) >= 0)
        assert 0 < shares[0] < 0.1
        assert shares[-1] == 1
    assert len(many_rows.draw().axes) == 2


def test_the_readme_has_examples() -> None:
    assert len(python_blocks(PAGES[0])) > 5
