"""The stored shares of live rows are those that the script computes today, and CITATION.cff is up to date."""

import importlib.util
import re
from pathlib import Path

import pytest

import staircase_fast as sf

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("live_rows", ROOT / "asv_benchmarks" / "live_rows.py")
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    return script


@pytest.mark.parametrize("kind", ["labels", "real", "real, weighted"])
def test_the_stored_shares_of_live_rows_are_up_to_date(script, kind):
    stored = (ROOT / "docs" / "live_rows.txt").read_text("utf-8").splitlines()
    assert stored[0] == script.HEAD
    lines = [line for line in stored[1:] if line.startswith(f"{kind:<16}")]
    assert len(lines) == len(script.SIZES) * len(script.FACTORS)
    assert lines[: len(script.FACTORS)] == list(script.lines_of(kind, script.SIZES[0])), (
        "run asv_benchmarks/live_rows.py"
    )


def test_the_citation_names_the_version_of_the_package():
    text = (ROOT / "CITATION.cff").read_text("utf-8")
    assert re.search(r"^version: (.*)$", text, re.MULTILINE)[1] == sf.__version__
