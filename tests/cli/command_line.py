"""A table to try the command line on, and functions that run a command."""

import io
import json
import os
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

import staircase_fast as sf
from staircase_fast.cli import arguments

POSIX = pytest.mark.skipif(os.name != "posix", reason="signals and limits of POSIX")
COMMAND = [sys.executable, "-m", "staircase_fast"]
HERE = os.environ | {"PYTHONPATH": str(Path(sf.__file__).parents[1])}  # the package under test, in any folder


class Terminal(io.StringIO):
    """Text that is written to a terminal."""

    def isatty(self):
        return True


def problem(n=500, seed=0):
    rng = np.random.default_rng(seed)
    scores = (rng.integers(0, 64, n) / 64).astype(np.float32)  # exact in text
    return pa.table(
        {
            "id": [f"{number:05}" for number in range(n)],
            "score": scores,
            "label": rng.random(n) < scores,
            "weight": rng.integers(1, 4, n),
            "city": rng.choice(["oslo", "rome"], n),
            "zone": rng.integers(1, 4, n),
            "code": pa.array(rng.choice(["01", "2"], n)).dictionary_encode(),
        }
    )


def folder_with_problem(tmp_path, monkeypatch):
    """The current folder, with a problem in it: a fixture."""
    monkeypatch.chdir(tmp_path)
    parquet.write_table(problem(), "data.parquet", row_group_size=200)
    csv.write_csv(problem(), "data.csv")
    return tmp_path


def run(*words):
    return arguments.main([str(word) for word in words])


def result_of(capsys, *words):
    """Run a command that succeeds; return its exit code and its result."""
    code = run(*words, "--json")
    shown = capsys.readouterr()
    assert shown.err == ""
    return code, json.loads(shown.out)


def error_of(capsys, *words):
    """Run a command that fails and leaves the folder unchanged; return its one-line message."""
    before = {path: path.read_bytes() for path in Path().rglob("*") if path.is_file()}
    code = run(*words)
    shown = capsys.readouterr()
    assert code == arguments.REFUSED
    assert shown.out == ""
    assert shown.err.startswith("staircase-fast: ")
    assert shown.err.count("\n") == 1
    assert {path: path.read_bytes() for path in Path().rglob("*") if path.is_file()} == before
    return shown.err
