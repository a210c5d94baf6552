"""`certify` of files that are read twice: the verdict of `sf.certify` on all rows."""

from pathlib import Path

import numpy as np
import pytest
from command_line import error_of, folder_with_problem, problem, result_of, run
from pyarrow import parquet

import staircase_fast as sf
from staircase_fast.cli import arguments, scanning, tables

pytestmark = pytest.mark.long
folder = pytest.fixture(folder_with_problem)


@pytest.mark.parametrize("weight", [[], ["--weight", "weight"]])
@pytest.mark.parametrize("name", ["data.parquet", "data.csv"])
def test_large_files_are_certified_without_reading_them_into_memory(folder, capsys, monkeypatch, name, weight):
    assert run("fit", name, *weight, "--model", "m.json") == 0
    capsys.readouterr()
    monkeypatch.setattr(scanning, "_LARGE", 100)
    monkeypatch.setattr(tables, "read_table", None)
    code, result = result_of(capsys, "certify", name, *weight, "--model", "m.json", "--memory-limit", "50MB")
    assert (code, result["optimal"], result["rows"]) == (0, True, 500)
    other = [] if weight else ["--weight", "weight"]
    code, result = result_of(capsys, "certify", name, *other, "--model", "m.json")
    assert (code, result["optimal"]) == (arguments.NOT_OPTIMAL, False)
    assert result["gap"] > 0
    assert 0 <= result["worst_score"] < 1


def test_several_files_patterns_and_folders_are_certified_together(folder, capsys):
    Path("more").mkdir()
    given = problem()
    parquet.write_table(given.slice(0, 200), "more/a.parquet", row_group_size=64)
    parquet.write_table(given.slice(200), "more/b.parquet")
    sf.fit(given["score"], given["label"], loss="log").save("m.json")
    for words in (["more"], ["more/*"], ["more/b.parquet", "more/a.parquet"]):
        code, result = result_of(capsys, "certify", *words, "--model", "m.json")
        assert (code, result["optimal"], result["rows"]) == (0, True, 500)
    code, result = result_of(capsys, "certify", "more/a.parquet", "--streaming", "--model", "m.json")
    expected = sf.certify(sf.Staircase.load("m.json"), given["score"][:200], given["label"][:200])
    assert (code, result["optimal"], expected.optimal) == (arguments.NOT_OPTIMAL, False, False)
    assert result["gap"] <= expected.gap * 1.001


def test_losses_whose_steps_are_not_means_read_several_files_into_memory(folder, capsys):
    given = problem()
    x, y = (np.tile(given[name].to_numpy(), 2) for name in ("score", "label"))
    files = "data.parquet", "data.csv"
    assert run("fit", *files, "--loss", "huber:0.3", "--model", "m.json") == 0
    stairs = sf.Staircase.load("m.json")
    assert stairs == sf.fit(x, y, loss=sf.losses.Huber(0.3))
    capsys.readouterr()
    code, result = result_of(capsys, "certify", *files, "--model", "m.json")
    assert (code, result["optimal"], result["rows"]) == (0, True, 1000)
    assert result["worst_index"] == sf.certify(stairs, x, y).worst_index
    words = "certify", *files, "--model", "m.json", "--loss", "gamma_deviance"
    assert "column 'label' must be > 0" in error_of(capsys, *words)


def test_invalid_rows_are_named(folder, capsys):
    table = problem()
    scores = table["score"].to_numpy().copy()
    scores[321] = np.nan
    parquet.write_table(table.set_column(1, "score", [scores]), "bad.parquet", row_group_size=100)
    sf.fit([0, 1], [0, 1]).save("m.json")
    message = error_of(capsys, "certify", "bad.parquet", "data.parquet", "--model", "m.json")
    assert "bad.parquet: column 'score' must not be NaN; got nan in row 321" in message
