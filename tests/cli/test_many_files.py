"""`apply` and `report` of many files, patterns and folders."""

import os
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from command_line import Terminal, error_of, folder_with_problem, problem, result_of, run
from pyarrow import csv, parquet

import staircase_fast as sf
from staircase_fast.cli import pictures

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


@pytest.mark.parametrize("group", ["city", "zone", "code"])
@pytest.mark.parametrize("data", [["days"], ["days/*.csv", "days/?.parquet"]])
def test_a_report_of_several_files_is_that_of_all_rows(days, capsys, group, data):
    everything = pa.concat_tables([problem(100, seed) for seed in (1, 2, 3)], promote_options="permissive")
    parquet.write_table(everything, "all.parquet")
    for words in ([], ["--model", "m.json", "--group", group, "--weight", "weight"]):
        code, found = result_of(capsys, "report", *data, *words)
        _, expected = result_of(capsys, "report", "all.parquet", *words)
        assert (code, found["rows"]) == (0, 300)
        assert found | {"seconds": 0} == expected | {"seconds": 0}


def test_errors_of_rows_of_several_files_name_the_file_and_the_row(days, capsys):
    def write(column, row, value):
        entries = problem(100, 2)[column].to_pylist()
        entries[row] = value
        place = problem().schema.names.index(column)
        parquet.write_table(problem(100, 2).set_column(place, column, pa.array(entries)), "days/b.parquet")

    write("score", 42, 1.5)
    message = error_of(capsys, "report", "days")
    assert "days/b.parquet: column 'score' must be in [0, 1] for brier; got 1.5 in row 42." in message
    write("score", 42, float("nan"))
    assert "days/b.parquet: column 'score' must not be NaN; got nan in row 42." in error_of(capsys, "report", "days")
    write("city", 7, None)
    message = error_of(capsys, "report", "days", "--group", "city")
    assert "days/b.parquet: column 'city' must not have missing entries; got None in row 7." in message
    write("city", 8, "bonn")
    sf.fit_groups(problem()["score"], problem()["label"], problem()["city"]).save("map")
    message = error_of(capsys, "report", "days", "--group", "city", "--model", "map")
    assert "days/b.parquet: Group 'bonn' (row 8) was not fitted." in message
    assert "none.csv: No such file or directory" in error_of(capsys, "report", "days/a.csv", "none.csv")
    message = error_of(capsys, "report", "days/*.parquet", "--positive", "ja")
    assert "days/b.parquet and 1 more: column 'label' must have the value 'ja' of --positive in some row" in message


@pytest.mark.parametrize("form", ["csv", "parquet"])
@pytest.mark.parametrize(
    "words",
    [
        ["fit"],
        ["fit", "--group", "city"],
        ["fit", "--loss", "quantile"],
        ["certify"],
        ["certify", "--loss", "quantile"],
        ["report", "--group", "city"],
    ],
)
def test_files_without_rows_are_ignored_among_others(days, capsys, words, form):
    command, *more = words
    if command == "certify" and more:
        assert run("fit", "days", "--model", "m.json", *more) == 0
    capsys.readouterr()
    words = command, "--model", "m.json" if command != "fit" else "new", *more
    expected = result_of(capsys, words[0], "days", *words[1:])[1]
    writer = csv.write_csv if form == "csv" else parquet.write_table
    for name in ("0", "bb", "z"):
        writer(problem(0), f"days/{name}.{form}")
    found = result_of(capsys, words[0], "days", *words[1:])[1]
    assert found["rows"] == 300
    assert found | {"seconds": 0} == expected | {"seconds": 0}
    message = error_of(capsys, words[0], f"days/0.{form}", f"days/z.{form}", *words[1:])
    assert f"days/0.{form}" in message
    assert "there are no rows" in message or "must have at least one row" in message


@pytest.mark.parametrize("command", ["fit", "certify", "apply", "report"])
def test_a_path_that_does_not_exist_is_named(days, capsys, command):
    more = ["--output", "made"] if command == "apply" else []
    message = error_of(capsys, command, "days/a.csv", "tomorrow", "--model", "m.json", *more)
    assert message == "staircase-fast: tomorrow: No such file or directory\n"


def test_groups_of_text_files_have_the_type_of_those_in_other_files(days, capsys):
    Path("a.csv").write_text("score,label,g\n0.1,0,7\n0.2,1,10\n")
    Path("b.csv").write_text("score,label,g\n0.1,1,x\n")
    for keys, names in (([7, 8], [7, 8, 10]), (["7", "8"], ["10", "7", "8"])):
        parquet.write_table(pa.table({"score": [0.1, 0.2], "label": [0, 1], "g": keys}), "c.parquet")
        found = result_of(capsys, "report", "a.csv", "c.parquet", "--group", "g")[1]
        assert sorted(row["segment"] for row in found["segments_before"]) == names
    parquet.write_table(pa.table({"score": [0.1], "label": [0], "g": [7]}), "c.parquet")
    message = error_of(capsys, "report", "a.csv", "b.csv", "c.parquet", "--group", "g")
    assert "b.csv: column 'g' must hold groups of type int, as in the other files; got 'x' in row 0." in message
    parquet.write_table(pa.table({"score": [0.1], "label": [0], "g": ["x"]}), "d.parquet")
    message = error_of(capsys, "report", "c.parquet", "d.parquet", "--group", "g")
    assert "c.parquet and 1 more: column 'g' must be all integers, all strings or all bools; got int64 and" in message
    parquet.write_table(pa.table({"score": [0.1], "label": [0], "g": [1.5]}), "d.parquet")
    message = error_of(capsys, "report", "a.csv", "d.parquet", "--group", "g", "--model", "m.json")
    assert "column 'g' must be all integers, all strings or all bools; got large_string and double." in message


def test_the_page_of_several_files_names_the_first_one(days, capsys, monkeypatch):
    for name in ("diagrams", "curve"):
        monkeypatch.setattr(pictures, name, lambda *given, **how: b"<svg/>")
    words = "--model", "m.json", "--output", "page.html"
    assert run("report", days / "days" / "*.parquet", days / "days", *words) == 0
    text = Path("page.html").read_text(encoding="utf-8")
    assert "<title>Calibration of b.parquet and 4 more</title>" in text
    assert "report &#x27;*.parquet&#x27; days --model m.json" in text
    assert str(days) not in text


@pytest.mark.parametrize("command", ["fit", "certify", "apply", "report"])
def test_files_in_a_folder_that_are_no_tables_are_ignored(days, capsys, command):
    Path("days/README.txt").write_text("Scores of three days.")
    Path("days/model.json").write_text("{}")
    more = ["--output", "made"] if command == "apply" else []
    assert run("fit", "days", "--model", "m.json") == 0
    capsys.readouterr()
    assert result_of(capsys, command, "days", "--model", "m.json", *more)[1]["rows"] == 300
    for name in ("a.csv", "b.parquet", "c.parquet"):
        Path("days", name).unlink()
    message = "days: there are no Parquet, CSV or Arrow files. Pass files with other extensions by name"
    assert message in error_of(capsys, command, "days", "--model", "m.json", *more)
