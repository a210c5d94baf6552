"""`apply` of many files, patterns and folders."""

import os
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from command_line import Terminal, error_of, folder_with_problem, problem, result_of, run
from pyarrow import csv, parquet

import staircase_fast as sf

pytestmark = pytest.mark.long
folder = pytest.fixture(folder_with_problem)


@pytest.fixture
def days(folder):
    """A folder with three files, and a model."""
    Path("days").mkdir()
    csv.write_csv(problem(100, 1), "days/a.csv")
    parquet.write_table(problem(100, 2), "days/b.parquet")
    parquet.write_table(problem(100, 3), "days/c.parquet")
    sf.fit(problem()["score"], problem()["label"]).save("m.json")
    return folder


@pytest.mark.parametrize("data", [["days"], ["days/*"], ["days/c.parquet", "days/b.parquet", "days/*.csv"]])
def test_apply_writes_a_file_of_the_same_name_for_each_input(days, capsys, data):
    words = "--model", "m.json", "--output", "made/here"
    code, result = result_of(capsys, "apply", *data, *words)
    assert code == 0
    assert result.pop("seconds") > 0
    assert result == {"files": 3, "rows": 300, "output": "made/here", "column": "calibrated"}
    assert sorted(os.listdir("made/here")) == ["a.csv", "b.parquet", "c.parquet"]
    for name in os.listdir("made/here"):
        assert run("apply", f"days/{name}", "--model", "m.json", "--output", f"one-{name}") == 0
        assert Path("made/here", name).read_bytes() == Path(f"one-{name}").read_bytes()


def test_apply_writes_a_single_file_into_an_existing_folder(days, capsys):
    Path("made").mkdir()
    words = "--model", "m.json", "--output", "made"
    assert result_of(capsys, "apply", "days/a.csv", *words)[1]["files"] == 1
    assert result_of(capsys, "apply", "days/*.csv", "--model", "m.json", "--output", "new")[1]["files"] == 1
    assert Path("made/a.csv").read_bytes() == Path("new/a.csv").read_bytes()


def test_files_without_an_extension_keep_their_names(folder, capsys):
    sf.fit([0, 1], [0, 1]).save("m.json")
    Path("days").mkdir()
    Path("days/part-0").write_text("score\n1\n")
    Path("days/part-1").write_text("score\n0\n")
    assert run("apply", "days/*", "--format", "csv", "--model", "m.json", "--output", "made") == 0
    assert Path("made/part-0").read_text() == "score,calibrated\n1,1\n"
    capsys.readouterr()
    message = error_of(capsys, "apply", "days/*", "--model", "m.json", "--output", "other")
    assert "days/part-0: cannot infer the format from the file name; use --format." in message
    assert not Path("other").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["days", "--output", "days"],
            "days/a.csv: its output would overwrite 'days/a.csv', which is read. Use another folder for --output.",
        ),
        (["days/a.csv", "--output", "days"], "its output would overwrite 'days/a.csv', which is read."),
        (["data.csv", "days/a.csv", "--output", "days"], "days/a.csv: its output would overwrite 'days/a.csv', which"),
        (["days/*", "--output", "link"], "days/a.csv: its output would overwrite 'link/a.csv', which is read."),
        (
            ["days", "more/a.csv", "--output", "made"],
            "more/a.csv: its output would be 'made/a.csv', as that of 'days/a.csv'. Use one call of apply for each of",
        ),
        (["days/a.csv", "days/a.csv", "--output", "made"], "'made/a.csv', as that of 'days/a.csv'."),
        (["days", "--output", "data.csv"], "--output must be a folder for several files; got 'data.csv'. Create"),
        (["days", "--output", "note"], "--output must be a folder for several files; got 'note'.\n"),
        (["days", "--output", "new.csv.gz"], "got 'new.csv.gz'. Create this folder first, if it should have this name"),
        (["days", "--output", "-"], "--output must be a folder for several files; got '-'."),
        (["days", "-", "--output", "made"], "standard input: needs its own call: its output would have no"),
        (["days", "none.csv", "--output", "made", "--threads", "1"], "none.csv: No such file or directory"),
        (["none*.csv", "--output", "made"], "none*.csv: there are no Parquet, CSV or Arrow files."),
    ],
)
def test_no_output_may_replace_an_input_or_another_output(days, capsys, words, message):
    Path("more").mkdir()
    csv.write_csv(problem(10), "more/a.csv")
    Path("note").touch()
    Path("link").symlink_to("days", target_is_directory=True)
    assert message in error_of(capsys, "apply", *words, "--model", "m.json")
    assert not Path("made").exists()


def test_an_output_may_not_replace_the_model(days, capsys):
    Path("made").mkdir()
    sf.fit([0], [0]).save("made/a.csv")
    message = error_of(capsys, "apply", "days", "--model", "made/a.csv", "--output", "made")
    assert "days/a.csv: its output would overwrite 'made/a.csv', which is read." in message


def test_an_error_of_one_of_many_files_names_the_file_the_column_and_the_row(days, capsys):
    scores = problem(100, 2)["score"].to_pylist()
    scores[42] = None
    parquet.write_table(problem(100, 2).set_column(1, "score", pa.array(scores)), "days/b.parquet")
    assert run("apply", "days", "--model", "m.json", "--output", "made") == 1
    message = "days/b.parquet: column 'score' must not have missing entries; got null in row 42."
    assert message in capsys.readouterr().err
    assert os.listdir("made") == ["a.csv"]  # it was complete


def test_progress_over_files_is_shown_on_a_terminal(days, monkeypatch):
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    words = "apply", "days", "--model", "m.json", "--output", "made"
    assert run(*words) == 0
    assert "apply, files" in screen.getvalue()
    assert "/3" in screen.getvalue()
    screen.truncate(0)
    assert run(*words, "--no-progress") == 0
    assert screen.getvalue() == ""
