"""The command line: results equal those of the library; an error is one line and leaves no files."""

import contextlib
import decimal
import io
import json
import os
import re
import select
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pytest
from pyarrow import csv, ipc, parquet

import staircase_fast as sf
from staircase_fast.cli import arguments, columns, commands, interrupts, report_page, tables

pytestmark = pytest.mark.long

POSIX = pytest.mark.skipif(os.name != "posix", reason="signals and limits of POSIX")
COMMAND = [sys.executable, "-m", "staircase_fast"]
HERE = os.environ | {"PYTHONPATH": str(Path(sf.__file__).parents[1])}  # the package under test, in any folder


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


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The current folder, with a problem in it."""
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


@pytest.mark.parametrize("name", ["data.parquet", "data.csv"])
def test_fit_writes_what_the_library_fits(folder, capsys, name):
    assert run("fit", name, "--model", "m.json") == 0
    data = problem()
    stairs = sf.Staircase.load("m.json")
    assert stairs == sf.fit(data["score"].to_numpy().astype(np.float64), data["label"].to_numpy())
    shown = capsys.readouterr().out
    assert f"steps               {stairs.n_steps}\n" in shown
    assert "rows                500\n" in shown


def test_fit_passes_weights_losses_bounds_and_directions_to_the_library(folder, capsys):
    words = ["--weight", "weight", "--loss", "huber:0.3", "--bounds", "0.2,", "--direction", "auto", "--threads", "1"]
    code, result = result_of(capsys, "fit", "data.parquet", "--model", "m.json", *words)
    data = problem()
    expected = sf.fit(
        data["score"].to_numpy(), data["label"].to_numpy(), sample_weight=data["weight"].to_numpy(),
        loss=sf.losses.Huber(0.3), bounds=(0.2, None), increasing="auto",
    )  # fmt: skip
    assert code == 0
    assert sf.Staircase.load("m.json") == expected
    assert result.pop("seconds") > 0
    assert result == {
        "rows": 500, "steps": expected.n_steps, "loss": "Huber(delta=0.3)", "direction": "increasing",
        "model": "m.json",
    }  # fmt: skip


def test_text_labels_may_be_true_and_false_and_fits_may_decrease(folder, capsys):
    Path("a.tsv").write_text("s\ty\n1\tTrue\n2\tFalse\n3\tFalse\n")
    assert run("fit", "a.tsv", "--score", "s", "--label", "y", "--model", "-", "--direction", "decreasing") == 0
    shown = capsys.readouterr()
    assert sf.Staircase.from_json(shown.out) == sf.fit([1, 2, 3], [1, 0, 0], increasing=False)
    assert "steps" in shown.err  # standard output has the model


@pytest.mark.parametrize("delimiter", [";", r"\t"])
def test_the_delimiter_may_be_any_character(folder, capsys, delimiter):
    Path("a.csv").write_text("score;label\n1;0\n2;1\n".replace(";", delimiter.replace(r"\t", "\t")))
    assert run("fit", "a.csv", "--delimiter", delimiter, "--model", "m.json") == 0
    assert sf.Staircase.load("m.json") == sf.fit([1, 2], [0, 1])


@pytest.mark.parametrize("name", ["data.parquet", "data.csv"])
def test_streaming_gives_the_same_model(folder, capsys, monkeypatch, name):
    monkeypatch.setattr(tables, "ROWS", 60)
    monkeypatch.setattr(tables, "_BLOCK", 2000)
    words = "--weight", "weight", "--loss", "log"
    assert run("fit", name, *words, "--model", "a.json") == 0
    assert run("fit", name, *words, "--model", "b.json", "--streaming") == 0
    assert Path("a.json").read_text() == Path("b.json").read_text()


def test_apply_adds_a_column_and_keeps_the_others(folder, capsys):
    run("fit", "data.parquet", "--model", "m.json")
    assert run("apply", "data.parquet", "--model", "m.json", "--output", "out.parquet") == 0
    found, given, stairs = parquet.read_table("out.parquet"), problem(), sf.Staircase.load("m.json")
    assert found.drop_columns("calibrated").equals(given)
    np.testing.assert_array_equal(found["calibrated"].to_numpy(), stairs(given["score"].to_numpy()))
    assert parquet.ParquetFile("out.parquet").num_row_groups == 3


@pytest.mark.parametrize(("interpolation", "outside"), [("step", "clip"), ("linear", "nan")])
def test_apply_does_not_change_the_text_of_other_columns(folder, capsys, monkeypatch, interpolation, outside):
    monkeypatch.setattr(tables, "_BLOCK", 1000)
    stairs = sf.fit([0.2, 0.5, 0.7], [0, 1, 2])
    stairs.save("m.json")
    words = "--interpolation", interpolation, "--out-of-bounds", outside, "--name", "p"
    assert run("apply", "data.csv", "--model", "m.json", "--output", "out.csv", *words) == 0
    lines, given = Path("out.csv").read_text().splitlines(), Path("data.csv").read_text().replace('"', "").splitlines()
    assert lines[0] == given[0] + ",p"
    assert [line.rpartition(",")[0] for line in lines[1:]] == given[1:]
    scores = [float(line.split(",")[1]) for line in given[1:]]
    values = [float(line.rpartition(",")[2] or "nan") for line in lines[1:]]
    np.testing.assert_array_equal(values, stairs.predict(scores, interpolation=interpolation, out_of_bounds=outside))


def test_text_without_rows_gets_its_new_column(folder, capsys):
    Path("a.csv").write_text("score\n")
    sf.fit([0], [0]).save("m.json")
    assert run("apply", "a.csv", "--model", "m.json", "--output", "b.csv") == 0
    assert Path("b.csv").read_text() == "score,calibrated\n"
    assert run("apply", "a.csv", "--model", "m.json", "--output", "b.parquet") == 0
    assert parquet.read_table("b.parquet").schema.names == ["score", "calibrated"]


def test_an_existing_column_is_replaced_only_with_replace(folder, capsys):
    sf.fit([0, 1], [3, 4]).save("m.json")
    message = error_of(capsys, "apply", "data.csv", "--model", "m.json", "--output", "out.csv", "--name", "city")
    assert "data.csv: column 'city' already exists; use --name or --replace." in message
    words = "--name", "score", "--replace"
    assert run("apply", "data.parquet", "--model", "m.json", "--output", "data.parquet", *words) == 0
    found = parquet.read_table("data.parquet")
    assert found.schema.names == problem().schema.names
    assert set(found["score"].to_pylist()) == {3.0}


def test_a_column_that_appears_twice_cannot_be_replaced(folder, capsys):
    Path("a.csv").write_text("score,x,x\n1,2,3\n")
    sf.fit([0], [5]).save("m.json")
    words = "apply", "a.csv", "--model", "m.json", "--name", "x", "--replace", "--output", "out.csv"
    assert "a.csv: column 'x' appears twice." in error_of(capsys, *words)
    assert not Path("out.csv").exists()


@pytest.mark.parametrize("group", ["city", "zone", "code"])
@pytest.mark.parametrize("fitted", ["data.parquet", "data.csv"])
@pytest.mark.parametrize("applied", ["data.parquet", "data.csv"])
def test_each_group_has_its_own_staircase_in_every_format(folder, capsys, group, fitted, applied):
    code, result = result_of(capsys, "fit", fitted, "--group", group, "--model", "m")
    assert (code, result["groups"]) == (0, 3 if group == "zone" else 2)
    assert run("apply", applied, "--group", group, "--model", "m", "--output", "out.parquet") == 0
    data = problem()
    expected = sf.fit_groups(data["score"], data["label"], data[group])
    assert sf.StaircaseMap.load("m") == expected
    found = parquet.read_table("out.parquet")["calibrated"].to_numpy()
    np.testing.assert_array_equal(found, expected.predict(data["score"], data[group]))
    capsys.readouterr()
    code, result = result_of(capsys, "certify", applied, "--group", group, "--model", "m")
    assert (code, result["optimal"], result["groups_failed"]) == (0, True, [])


def test_a_group_that_was_not_fitted_needs_a_default(folder, capsys, monkeypatch):
    monkeypatch.setattr(tables, "ROWS", 100)
    data = problem()
    sf.fit_groups([0, 1], [0, 1], ["oslo", "oslo"]).save("m")
    sf.fit([0], [5]).save("default.json")
    words = "data.parquet", "--group", "city", "--model", "m"
    message = error_of(capsys, "apply", *words, "--output", "out.parquet")
    row = data["city"].to_pylist().index("rome")
    assert f"data.parquet: Group 'rome' (row {row}) was not fitted; pass --default for groups" in message
    assert run("apply", *words, "--output", "out.parquet", "--default", "default.json") == 0
    capsys.readouterr()
    found = parquet.read_table("out.parquet")
    assert set(found.filter(pa.compute.equal(found["city"], "rome"))["calibrated"].to_pylist()) == {5.0}
    assert f"data.parquet: Group 'rome' (row {row}) was not fitted.\n" in error_of(capsys, "certify", *words)


def test_the_exit_code_of_certify_reports_whether_the_model_is_optimal(folder, capsys):
    run("fit", "data.parquet", "--model", "m.json")
    capsys.readouterr()
    code, result = result_of(capsys, "certify", "data.parquet", "--model", "m.json")
    assert (code, result["optimal"]) == (0, True)
    sf.fit([0.2, 0.5], [0, 1]).save("m.json")
    code, result = result_of(capsys, "certify", "data.parquet", "--model", "m.json", "--loss", "expectile:0.3")
    data = problem()
    proof = sf.certify(sf.Staircase.load("m.json"), data["score"], data["label"], loss=sf.losses.Expectile(0.3))
    assert code == arguments.NOT_OPTIMAL
    assert (result["optimal"], result["gap"], result["worst_index"]) == tuple(proof)
    assert run("certify", "data.parquet", "--model", "m.json") == arguments.NOT_OPTIMAL
    assert "optimal             False\n" in capsys.readouterr().out


@pytest.mark.parametrize("encoded", [False, True])
@pytest.mark.parametrize("words", [["certify"], ["apply", "--output", "out.csv"]])
def test_a_missing_group_is_an_error(folder, capsys, words, encoded):
    data = problem()
    sf.fit_groups(data["score"], data["label"], data["city"]).save("m")
    city = pa.chunked_array([[*data["city"].to_pylist()[:-1], None]])
    place = data.schema.names.index("city")
    parquet.write_table(data.set_column(place, "city", city.dictionary_encode() if encoded else city), "a.parquet")
    message = f"a.parquet: column 'city' must not have missing entries; got None in row {len(data) - 1}."
    assert message in error_of(capsys, *words, "a.parquet", "--group", "city", "--model", "m")


def test_certify_names_the_groups_that_are_not_optimal(folder, capsys):
    data = problem()
    good = sf.fit_groups(data["score"], data["label"], data["city"])
    parts = good.parts()
    parts["step_values"] = parts["step_values"].copy()
    parts["step_values"][-1] += 0.25  # of rome
    sf.StaircaseMap(**parts).save("m")
    code, result = result_of(capsys, "certify", "data.parquet", "--group", "city", "--model", "m")
    assert code == arguments.NOT_OPTIMAL
    assert result["groups_failed"] == ["rome"]
    assert data["city"][result["worst_index"]].as_py() == "rome"
    assert result["gap"] > 0.01


@pytest.mark.parametrize(
    ("content", "words", "message"),
    [
        ("score,label\n0.1,0\n", ["--score", "x"], "a.csv: there is no column 'x'; the columns are 'score', 'label'."),
        ("score,label\n0.1,0\n", ["--weight", "w"], "a.csv: there is no column 'w'; the columns are 'score', 'label'."),
        ("score,label\n0.1,0\nhigh,1\n", [], "a.csv: column 'score' must hold numbers; got 'high' in row 1."),
        ("score,label\n0.1,0\n0.2,\n", [], "a.csv: column 'label' must not have missing entries; got '' in row 1."),
        ("score,label\n0.1,0\nnan,1\n", [], "a.csv: column 'score' must not be NaN; got nan in row 1."),
        ("score,label\n0.1,0\n0.2,inf\n", [], "a.csv: column 'label' must be finite; got inf in row 1."),
        ("score,label\n0.1,2\n", ["--loss", "log"], "column 'label' must be in [0, 1] for log_loss; got 2.0 in row 0."),
        ("score,label,w\n0.1,2,-1\n", ["--weight", "w"], "a.csv: column 'w' must be >= 0; got -1.0 in row 0."),
        ("score,label\n", [], "a.csv: there are no rows."),
        ("score,label\n", ["--streaming"], "a.csv: there are no rows."),
        ("", [], "a.csv: the first line must name the columns; the file is empty."),
        ("score,label\r0.1,0\r", [], "staircase-fast: a.csv: the first line must name the columns; new-line character"),
        ("score,label\n1,2,3\n", [], "a.csv: the text cannot be parsed; Expected 2 columns, got 3: 1,2,3 in row 0."),
        ("score;label\n1;2\n", [], "'score;label'. If ';' separates the columns, use --delimiter."),
        ("score,label,g\n1,1,a\n2,2,\n", ["--group", "g", "--weight", "label", "--label", "g"], "got 'a' in row 0."),
    ],
)  # fmt: skip
def test_invalid_data_is_reported_in_one_line(folder, capsys, content, words, message):
    Path("a.csv").write_text(content)
    Path("m.json").write_text("old content")
    assert message in error_of(capsys, "fit", "a.csv", "--model", "m.json", *words)


@pytest.mark.parametrize("words", [["fit"], ["fit", "--streaming"], ["apply", "--output", "out.parquet"], ["certify"]])
@pytest.mark.parametrize("bad", [None, "x", np.nan])
def test_errors_count_rows_over_all_batches(folder, capsys, monkeypatch, words, bad):
    monkeypatch.setattr(tables, "ROWS", 100)
    scores = problem()["score"].to_pylist()
    scores[321] = bad
    data = problem().set_column(1, "score", pa.array([str(x) for x in scores] if bad == "x" else scores))
    parquet.write_table(data, "bad.parquet", row_group_size=150)
    sf.fit([0], [0]).save("m.json")
    message = error_of(capsys, words[0], "bad.parquet", "--model", "m.json", *words[1:])
    assert message.startswith("staircase-fast: bad.parquet: column 'score' must ")
    assert message.endswith(f"got {bad!r} in row 321.\n")


def test_invalid_files_are_reported_in_one_line(folder, capsys):
    sf.fit([0], [0]).save("m.json")
    Path("short.parquet").write_bytes(Path("data.parquet").read_bytes()[:1000])
    Path("latin.csv").write_bytes("scöre,label\n1,2\n".encode("latin-1"))
    Path("binary.csv").write_bytes(b"score,label\n1,\xff\n")
    Path("empty.parquet").touch()
    Path("empty.arrows").touch()
    Path("not.json").write_text('{"format": "other"}')
    for words, message in {
        "fit none.parquet --model x": "none.parquet: No such file or directory",
        "fit none.csv --model x": "none.csv: No such file or directory",
        "fit data --model x": "data: cannot infer the format from the file name; use --format.",
        "fit short.parquet --model x": "short.parquet: Parquet magic bytes not found",
        "fit empty.parquet --model x": "empty.parquet: Parquet file size is 0 bytes",
        "fit empty.arrows --model x": "empty.arrows: ",
        "fit latin.csv --model x": "latin.csv: the first line must name the columns; 'utf-8' codec can't decode byte",
        "fit binary.csv --model x": "binary.csv: column 'label' cannot be parsed; CSV conversion error to string",
        "fit . --format csv --model x": "directory",
        "fit data.csv --model none/x": "none/x: No such file or directory",
        "fit data.csv --model data.csv/x": "data.csv/x: Not a directory",
        "fit data.csv --group id --streaming --model x": "--streaming fits all rows together; got --group id.",
        "fit data.csv --direction auto --streaming --model x": "--streaming needs a direction; got --direction auto.",
        "fit data.csv --group id --model -": "a model with groups cannot be written to standard output",
        "apply data.csv --model none --output x.csv": "none: No such file or directory",
        "apply data.csv --model not.json --output x.csv": "not.json: field `format` must be 'staircase_fast'; got",
        "apply data.csv --model m.json --output x": "x: cannot infer the format from the file name; use --format.",
        "apply data.csv --model m.json --output none/x.csv": "none/x.csv: No such file or directory",
        "apply data.csv --model m.json --output x.csv --group id": "m.json: the model has no groups; got --group id.",
        "certify data.csv --model m.json --group id": "m.json: the model has no groups; got --group id.",
    }.items():
        assert message in error_of(capsys, *words.split()), words
    sf.fit_groups([0], [0], [0]).save("map")
    assert "--group" in error_of(capsys, "apply", "data.csv", "--model", "map", "--output", "x.csv")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "the following arguments are required: COMMAND"),
        (["fot"], "invalid choice: 'fot'"),
        (["fit", "a.csv"], "the following arguments are required: --model"),
        (["fit", "a.csv", "--model", "m", "--loss", "hube"], "`loss` must be one of 'squared_error',"),
        (["fit", "a.csv", "--model", "m", "--loss", "hube:1"], "`loss` must be one of 'squared_error',"),
        (["fit", "a.csv", "--model", "m", "--loss", "huber:x"], "`delta` of 'huber' must be a number; got 'x'"),
        (["fit", "a.csv", "--model", "m", "--loss", "huber:-1"], "`delta` must be"),
        (["fit", "a.csv", "--model", "m", "--loss", "log:1"], "`loss` 'log' has no parameter; got '1'"),
        (["fit", "a.csv", "--model", "m", "--loss", "power"], "`loss` must include its exponent, as in power:1.5"),
        (["fit", "a.csv", "--model", "m", "--bounds", "1"], "`bounds` must be LO,HI, where"),
        (["fit", "a.csv", "--model", "m", "--bounds", "2,1"], "`bounds` must be a pair with lo <= hi"),
        (["fit", "a.csv", "--model", "m", "--threads", "0"], "--threads: must be an integer >= 1; got '0' (see"),
        (["fit", "a.csv", "--model", "m", "--threads", "x"], "--threads: must be an integer >= 1"),
        (
            ["fit", "a.csv", "--model", "m", "--delimiter", ";;"],
            "--delimiter: must be a single ASCII character; got ';;'",
        ),
        (["fit", "a.csv", "--model", "m", "--delimiter", ""], "--delimiter: must be a single ASCII character; got ''"),
        (
            ["fit", "a.csv", "--model", "m", "--delimiter", "é"],
            "--delimiter: must be a single ASCII character; got",
        ),
        (["fit", "a.csv", "--model", "./a.csv"], "DATA and --model must be different files; both are"),
        (["fit", "a.csv", "--model", "-", "--json"], "--json and an output of - cannot share standard output"),
        (["apply", "-", "--model", "-", "--output", "o"], "DATA and --model must be different files; both are '-'"),
        (["apply", "a.csv", "--model", "m", "--output", "m"], "--model and --output must be different files"),
        (["report", "a.csv", "--output", "a", "--plot", "a"], "--output and --plot must be different files; both are"),
        (["report", "a.csv", "--output", "a.csv"], "DATA and --output must be different files; both are 'a.csv'"),
        (["demo", "--rows", "-5"], "--rows: must be an integer >= 1"),
    ],
)
def test_invalid_arguments_are_reported_in_one_line(capsys, words, message):
    with pytest.raises(SystemExit) as ended:
        run(*words)
    assert ended.value.code == arguments.USAGE
    shown = capsys.readouterr().err
    assert message in shown
    assert shown.count("\n") == 1


def test_bounds_may_start_with_a_minus(folder):
    Path("a.csv").write_text("score,label\n1,-9\n2,9\n")
    for words in (["--bounds", "-1,1"], ["--bounds=-1,1"], ["--bounds", "-inf,5", "--bounds", "-1,1"]):
        assert run("fit", "a.csv", *words, "--model", "m.json") == 0
        assert sf.Staircase.load("m.json").values.tolist() == [-1, 1]


def test_apply_interpolates_as_the_library_does(folder):
    Path("a.csv").write_text("score,label\n1,0\n2,0\n3,1\n4,1\n")
    stairs = sf.fit([1, 2, 3, 4], [0, 0, 1, 1])
    stairs.save("m.json")
    for way in ("step", "linear", "centered"):
        assert run("apply", "a.csv", "--model", "m.json", "--interpolation", way, "--output", "b.csv") == 0
        expected = stairs.predict([1, 2, 3, 4], interpolation=way)
        assert [float(line.split(",")[-1]) for line in Path("b.csv").read_text().splitlines()[1:]] == expected.tolist()


def test_errors_about_groups_name_the_group_and_the_row(folder, capsys):
    sf.fit_groups([1, 2], [0, 1], [7, 8]).save("map")
    for group, message in (
        ("9", "a.csv: Group 9 (row 1) was not fitted; pass --default for groups that were not fitted."),
        ("x", "a.csv: column 'g' must hold groups of type int, as in the model; got 'x' in row 1."),
    ):
        Path("a.csv").write_text(f"score,label,g\n1,0,7\n2,1,{group}\n")
        words = ("apply", "a.csv", "--group", "g", "--model", "map", "--output", "b.csv")
        assert message in error_of(capsys, *words)


@pytest.mark.parametrize("words", [["certify"], ["apply", "--output", "out.parquet"]])
@pytest.mark.parametrize(
    ("groups", "message"),
    [
        (pa.array([7.0, 8.0]), "must be integers, strings or bools; got 7.0"),
        (pa.array([Decimal(7), Decimal(8)]), "must be integers, strings or bools; got Decimal('7')"),
        (pa.DictionaryArray.from_arrays([0, 1], [7, None]), "must not have missing entries; got None"),
        (pa.array([9, 3]), "Group 9 (row 0) was not fitted"),
    ],
    ids=["floats", "decimals", "null in a dictionary", "unknown"],
)
def test_all_commands_reject_the_same_groups(folder, capsys, groups, message, words):
    sf.fit_groups([1, 2], [0, 1], [7, 8]).save("map")
    with ipc.new_stream("a.arrows", pa.schema({"score": pa.int64(), "label": pa.int64(), "g": groups.type})) as file:
        file.write(pa.record_batch([pa.array([1, 2]), pa.array([0, 1]), groups], names=["score", "label", "g"]))
    assert message in error_of(capsys, *words, "a.arrows", "--group", "g", "--model", "map")


def test_certify_merges_groups_that_appear_twice_in_a_dictionary(folder, capsys):
    twice = pa.DictionaryArray.from_arrays([0, 1, 2], ["a", "b", "a"])
    table = pa.table({"score": [1, 2, 3], "label": [1, 5, 0], "g": twice})
    with ipc.new_stream("a.arrows", table.schema) as file:
        file.write(table)
    sf.fit_groups([1, 2, 3], [1, 5, 0], ["a", "b", "a"]).save("map")
    code, result = result_of(capsys, "certify", "a.arrows", "--group", "g", "--model", "map")
    assert (code, result["groups"], result["groups_failed"]) == (0, 2, [])


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_missing_scores_get_null_values_with_missing_null(folder, capsys, kind):
    table = pa.table({"score": [1.0, None, 3.0, 2.0], "g": pa.array(["a", "z", "b", "a"]).dictionary_encode()})
    if kind == "csv":
        Path("a.csv").write_text("score,g\n1,a\n,z\n 3,b\n2,a\n")
    else:
        parquet.write_table(table, "a.parquet")
    sf.fit([1, 2, 3], [0, 1, 2]).save("m.json")
    sf.fit_groups([1, 2, 3], [0, 1, 5], ["a", "a", "b"]).save("map")
    data, made = f"a.{kind}", f"b.{kind}"
    assert "must not have missing entries" in error_of(capsys, "apply", data, "--model", "m.json", "--output", made)
    for model, expected in ((["m.json"], [0, None, 2, 1]), (["map", "--group", "g"], [0, None, 5, 1])):
        words = ["apply", data, "--missing", "null", "--output", made, "--model", *model]
        assert run(*words) == 0
        found = csv.read_csv(made) if kind == "csv" else parquet.read_table(made)
        assert found["calibrated"].to_pylist() == expected
    capsys.readouterr()
    sf.fit([1, 2], [0, 1]).save("m.json")
    words = ["apply", data, "--missing", "null", "--out-of-bounds", "raise", "--model", "m.json", "--output", made]
    assert "got 3.0 in row 2" in error_of(capsys, *words)  # counted in the file, with rows that have no score


def test_a_group_whose_name_looks_like_an_error_message_is_only_a_name(folder, capsys):
    Path("a.csv").write_text("score,g\n,a\n1,a\n2,at index 999999\n")
    sf.fit_groups([1, 2], [0, 1], ["a", "a"]).save("map")
    words = "apply", "a.csv", "--missing", "null", "--group", "g", "--model", "map", "--output", "b.csv"
    assert "a.csv: Group 'at index 999999' (row 2) was not fitted; pass --default for" in error_of(capsys, *words)


def test_all_scores_may_be_missing(folder):
    Path("a.csv").write_text("score,g\n,a\n,b\n")
    parquet.write_table(pa.table({"score": pa.nulls(2), "g": ["a", "b"]}), "a.parquet")
    sf.fit_groups([1, 2], [0, 1], ["a", "b"]).save("map")
    words = ["--group", "g", "--missing", "null", "--model", "map", "--output", "b.parquet"]
    for data in ("a.csv", "a.parquet"):
        assert run("apply", data, *words) == 0
        assert parquet.read_table("b.parquet")["calibrated"].to_pylist() == [None, None]


def test_null_empty_and_nan_entries_are_missing():
    for given, expected in (
        (pa.array([1.0, None, float("nan"), float("inf")]), [True, False, False, True]),
        (pa.array(["1", "", " ", "NaN", None, "x"]), [True, False, False, False, False, True]),
        (pa.array(["1", "", None]).dictionary_encode(), [True, False, False]),
        (pa.array([1, None]), [True, False]),
        (pa.array([], pa.float64()), []),
    ):
        assert columns.present(given).to_pylist() == expected


def test_groups_that_are_not_optimal_are_listed(folder, capsys):
    Path("a.csv").write_text("score,label,g\n1,0,a\n2,1,b\n")
    for fitted, shown in (([0, 1], "none"), ([1, 0], "a, b")):
        sf.fit_groups([1, 2], fitted, ["a", "b"]).save("map")
        run("certify", "a.csv", "--group", "g", "--model", "map")
        assert f"groups failed       {shown}\n" in capsys.readouterr().out


def test_pipes_are_read_and_written(folder, capsys, monkeypatch):
    stairs = sf.fit([0.1, 0.2], [0, 1])
    monkeypatch.setattr(sys, "stdin", io.StringIO(stairs.to_json()))
    sf.fit([0.1, 0.2], [0, 1]).save("m.json")
    out = io.TextIOWrapper(io.BytesIO())
    with contextlib.redirect_stdout(out):
        assert run("apply", "data.csv", "--model", "-", "--output", "-") == 0
    assert out.buffer.getvalue().startswith(b"id,score,label,weight,city,zone,code,calibrated\n00000,")
    assert "rows                500\n" in capsys.readouterr().err


def test_the_commands_of_the_readme_run(folder, capsys, monkeypatch):
    text = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    lines = re.findall(r"^staircase-fast (.*)", text, flags=re.MULTILINE)
    assert len(lines) >= 5
    monkeypatch.setattr(report_page, "picture", lambda facts, form, **how: b"<svg/>")  # drawing is slow
    shutil.copy("data.parquet", "past.parquet")
    shutil.copy("data.parquet", "new.parquet")
    for line in lines:
        assert run(*shlex.split(line, comments=True)) == 0
    assert {"model.json", "out.parquet", "report.html", "report.png", "cities.staircases"} <= set(os.listdir())


def test_json_has_strings_for_infinite_numbers_and_nan():
    assert arguments._as_json({"a": [np.inf, -np.inf, 1.5], "b": {"c": np.nan}, "d": "x"}) == {
        "a": ["inf", "-inf", 1.5], "b": {"c": "nan"}, "d": "x",
    }  # fmt: skip


def test_an_error_names_the_extra_that_installs_a_missing_library(folder, capsys, monkeypatch):
    for name in ("tqdm", "pyarrow"):
        monkeypatch.setitem(sys.modules, name, None)
        message = error_of(capsys, "fit", "data.csv", "--model", "m.json")
        assert f"this needs {name}, which is not installed: pip install 'staircase_fast[cli]'." in message


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_progress_is_shown_only_on_a_terminal(folder, capsys, monkeypatch):
    assert run("fit", "data.csv", "--model", "m.json") == 0
    assert capsys.readouterr().err == ""
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    assert run("fit", "data.parquet", "--model", "m.json") == 0
    assert screen.getvalue() == ""  # it reads the file in one call
    assert run("fit", "data.parquet", "--model", "m.json", "--streaming") == 0
    assert "fit" in screen.getvalue()
    assert "500" in screen.getvalue()


@POSIX
def test_further_interrupts_do_not_disturb_the_cleanup(capsys, monkeypatch):
    tidied = []

    def fit(options):
        try:
            signal.raise_signal(signal.SIGTERM)
        finally:
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGTERM)
            tidied.append(True)

    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    monkeypatch.setattr(commands, "fit", fit)
    assert run("fit", "a.csv", "--model", "m") == arguments.INTERRUPTED
    assert tidied
    assert capsys.readouterr().err == "staircase-fast: interrupted\n"
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before


@POSIX
def test_an_interrupt_that_is_swallowed_is_raised_again(capsys, monkeypatch):
    class Swallowing:
        def __del__(self):
            signal.raise_signal(signal.SIGTERM)  # Python swallows the exception

    def fit(options):
        Swallowing()
        time.sleep(60)

    hook, handler = sys.unraisablehook, signal.getsignal(signal.SIGALRM)
    monkeypatch.setattr(commands, "fit", fit)
    start = time.monotonic()
    assert run("fit", "a.csv", "--model", "m") == arguments.INTERRUPTED
    assert time.monotonic() - start < 30
    assert capsys.readouterr().err == "staircase-fast: interrupted\n"
    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)
    assert (sys.unraisablehook, signal.getsignal(signal.SIGALRM)) == (hook, handler)


@POSIX
def test_an_interrupt_that_is_swallowed_twice_is_raised_again(capsys, monkeypatch):
    class Swallowing:
        def __del__(self):
            try:
                signal.raise_signal(signal.SIGINT)
            finally:
                time.sleep(0.3)  # the first alarm is swallowed too

    def fit(options):
        Swallowing()
        time.sleep(60)

    monkeypatch.setattr(commands, "fit", fit)
    assert run("fit", "a.csv", "--model", "m") == arguments.INTERRUPTED


@POSIX
def test_alarms_of_the_surrounding_program_are_kept(capsys, monkeypatch):
    heard = []
    monkeypatch.setattr(commands, "fit", lambda options: time.sleep(0.3) or {"rows": 1})
    before = signal.signal(signal.SIGALRM, lambda *_: heard.append(True))
    signal.setitimer(signal.ITIMER_REAL, 0.1, 60)
    try:
        assert run("fit", "a.csv", "--model", "m") == 0
        assert heard
        assert signal.getitimer(signal.ITIMER_REAL)[1] == 60

        monkeypatch.setattr(commands, "fit", lambda options: signal.raise_signal(signal.SIGINT))
        assert run("fit", "a.csv", "--model", "m") == arguments.INTERRUPTED
        assert signal.getitimer(signal.ITIMER_REAL)[1] == 60
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@POSIX
def test_an_interrupt_at_the_very_end_is_ignored(capsys, monkeypatch):
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM)]
    plain, hook = signal.signal, sys.unraisablehook
    monkeypatch.setattr(commands, "fit", lambda options: {"rows": 1})

    def interrupted(number, handler):
        if handler is before[0]:
            signal.raise_signal(signal.SIGTERM)
        return plain(number, handler)

    monkeypatch.setattr(interrupts.signal, "signal", interrupted)
    assert run("fit", "a.csv", "--model", "m") == 0
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM)] == before
    assert sys.unraisablehook is hook


@POSIX
def test_handlers_outside_python_are_kept(capsys, monkeypatch):
    monkeypatch.setattr(commands, "fit", lambda options: {"rows": 1})
    monkeypatch.setattr(interrupts.signal, "getsignal", lambda number: None)
    assert run("fit", "a.csv", "--model", "m") == 0


@POSIX
def test_an_error_during_the_cleanup_does_not_hide_the_interrupt(capsys, monkeypatch):
    def fit(options):
        try:
            signal.raise_signal(signal.SIGINT)
        finally:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(commands, "fit", fit)
    assert run("fit", "a.csv", "--model", "m") == arguments.INTERRUPTED
    assert capsys.readouterr().err == "staircase-fast: interrupted\n"


@POSIX
def test_an_interrupt_before_the_command_does_not_count(capsys, monkeypatch):
    def refuse(options):
        raise ValueError("no")

    for fit, code in (
        (refuse, arguments.REFUSED),
        (lambda options: signal.raise_signal(signal.SIGINT), arguments.INTERRUPTED),
    ):
        monkeypatch.setattr(commands, "fit", fit)
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt:
            assert run("fit", "a.csv", "--model", "m") == code


def test_other_unraisable_errors_are_still_reported(capsys, monkeypatch):
    reported = []

    class Broken:
        def __del__(self):
            raise RuntimeError

    def fit(options):
        Broken()
        raise ValueError("no")

    monkeypatch.setattr(sys, "unraisablehook", lambda lost: reported.append(type(lost.exc_value)))
    monkeypatch.setattr(commands, "fit", fit)
    assert run("fit", "a.csv", "--model", "m") == arguments.REFUSED
    assert reported == [RuntimeError]


def test_no_command_loads_pandas(folder):
    """pyarrow imports it on many occasions; it is slow, and interrupts are lost meanwhile."""
    program = (
        "import sys; from staircase_fast.cli import arguments; code = arguments.main();"
        "sys.exit(code or 'pandas' in sys.modules)"
    )
    for words in (
        ["fit", "data.csv", "--model", "m.json"],
        ["fit", "data.parquet", "--model", "m.json"],
        ["apply", "data.parquet", "--model", "m.json", "--output", "o.csv"],
        ["apply", "data.csv", "--model", "m.json", "--output", "o.parquet", "--missing", "null"],
        ["certify", "data.parquet", "--model", "m.json"],
        ["fit", "data.parquet", "--group", "id", "--model", "m.npz"],
        ["apply", "data.parquet", "--group", "id", "--model", "m.npz", "--output", "o.parquet"],
        ["certify", "data.csv", "--group", "id", "--model", "m.npz"],
    ):
        done = subprocess.run(
            [sys.executable, "-c", program, *words], capture_output=True, text=True, check=False, env=HERE
        )
        assert (done.returncode, done.stderr) == (0, ""), words


@POSIX
def test_ignored_signals_stay_ignored(folder, capsys, monkeypatch):
    def fit(options):
        signal.raise_signal(signal.SIGINT)
        return {"rows": 0}

    monkeypatch.setattr(commands, "fit", fit)
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        assert run("fit", "a.csv", "--model", "m") == 0
    finally:
        signal.signal(signal.SIGINT, before)


def test_errors_of_every_class_are_one_line(capsys, monkeypatch):
    for error, message in {
        MemoryError(): "MemoryError",
        ValueError("one\n two"): "one two",
        OSError(28, "No space left on device", "f"): "f: No space left on device",
        OSError(28, "x"): "No space left on device",
        OSError("strange"): "strange",
    }.items():
        monkeypatch.setattr(commands, "fit", lambda options, error=error: (_ for _ in ()).throw(error))
        assert run("fit", "a.csv", "--model", "m") == arguments.REFUSED
        assert capsys.readouterr().err == f"staircase-fast: {message}\n"
    monkeypatch.setattr(commands, "fit", lambda options: (_ for _ in ()).throw(BrokenPipeError()))
    assert run("fit", "a.csv", "--model", "m") == arguments.NOT_READ
    assert capsys.readouterr().err == ""


def test_it_runs_in_any_thread(folder, capsys):
    codes = []
    thread = threading.Thread(target=lambda: codes.append(run("fit", "data.csv", "--model", "m.json")))
    thread.start()
    thread.join()
    assert codes == [0]


def test_a_failed_program_exits_at_once(capsys, monkeypatch):
    ended = []
    monkeypatch.setattr(os, "_exit", ended.append)
    monkeypatch.setattr(sys, "argv", ["staircase-fast", "fit", "none.csv", "--model", "none/m.json"])
    assert arguments.run() == arguments.REFUSED
    assert ended == [arguments.REFUSED]
    monkeypatch.setattr(arguments, "main", lambda: 0)
    assert arguments.run() == 0
    assert len(ended) == 1


def test_python_m_runs_the_command_line(folder):
    done = subprocess.run([*COMMAND, "--version"], capture_output=True, text=True, check=True, env=HERE)
    assert done.stdout == f"staircase-fast {sf.__version__}\n"


@POSIX
def test_a_full_disk_leaves_no_partial_output(folder):
    import resource

    def little_room():
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))

    rng = np.random.default_rng(0)
    parquet.write_table(pa.table({"score": rng.random(20_000)}), "big.parquet", row_group_size=2000)
    sf.fit([0], [0]).save("m.json")
    before = set(os.listdir())
    for name in ("out.parquet", "out.csv.gz"):
        done = subprocess.run(
            [*COMMAND, "apply", "big.parquet", "--model", "m.json", "--output", name],
            capture_output=True, text=True, preexec_fn=little_room, check=False, env=HERE,
        )  # fmt: skip
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr == f"staircase-fast: {name}: File too large\n"
        assert set(os.listdir()) == before


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
@pytest.mark.parametrize("form", tables.FORMATS)
def test_a_full_device_is_reported(folder, capsys, form):
    sf.fit([0], [0]).save("m.json")
    words = "apply", "data.csv", "--format", form, "--model", "m.json", "--output", "/dev/full"
    assert "/dev/full: No space left on device" in error_of(capsys, *words)
    assert "/dev/full: No space left on device" in error_of(capsys, "fit", "data.csv", "--model", "/dev/full")


def without_privileges():
    """Drop CAP_DAC_OVERRIDE, with which root can write anywhere."""
    if os.geteuid() == 0:
        import ctypes

        ctypes.CDLL(None).prctl(24, 1, 0, 0, 0)  # PR_CAPBSET_DROP


@POSIX
def test_a_read_only_folder_is_reported(folder):
    def run_there(words):
        return subprocess.run(
            [sys.executable, *words], capture_output=True, text=True, check=False, env=HERE,
            preexec_fn=without_privileges,
        )  # fmt: skip

    Path("locked").mkdir(mode=0o555)
    if run_there(["-c", "open('locked/x', 'w')"]).returncode == 0:
        pytest.skip("this user can write anywhere")
    sf.fit([0], [0]).save("m.json")
    for words, name in {
        ("fit", "data.csv", "--model"): "locked/m.json",
        ("apply", "data.csv", "--model", "m.json", "--output"): "locked/o.parquet",
    }.items():
        done = run_there(["-m", "staircase_fast", *words, name])
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr == f"staircase-fast: {name}: Permission denied\n"
    assert not os.listdir("locked")


def has_begun(process, command):
    """Whether `apply` has created its temporary file, or `fit` has read its input pipe."""
    import fcntl
    import termios

    if command == "apply":
        return any(name.startswith(".staircase-") for name in os.listdir())
    return fcntl.ioctl(process.stdin, termios.FIONREAD, bytes(4)) == bytes(4)


@POSIX
@pytest.mark.parametrize(
    ("words", "form", "number"),
    [
        (["fit", "-", "--model", "new.json"], "csv", signal.SIGINT),
        (["fit", "-", "--model", "new.json"], "arrow", signal.SIGTERM),
        (["apply", "-", "--model", "m.json", "--output", "o.csv"], "arrow", signal.SIGINT),
        (["apply", "-", "--model", "m.json", "--output", "o.parquet"], "arrow", signal.SIGTERM),
    ],
)
def test_an_interrupt_while_waiting_for_input_leaves_no_files(folder, words, form, number):
    sf.fit([0], [0]).save("m.json")
    before = set(os.listdir())
    with subprocess.Popen(
        [*COMMAND, *words, "--format", form], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env=HERE,
    ) as process:  # fmt: skip
        if form == "csv":
            process.stdin.write(b"score,label\n1,0\n")
        else:
            writer = ipc.new_stream(process.stdin, problem().schema)
            writer.write_table(problem())
        process.stdin.flush()
        patience = time.monotonic() + 60
        while not has_begun(process, words[0]):
            assert process.poll() is None
            assert time.monotonic() < patience
            time.sleep(0.01)
        process.send_signal(number)
        try:
            assert process.wait(60) == arguments.INTERRUPTED
        finally:
            process.kill()  # otherwise a failure would hang
        assert process.stderr.read() == b"staircase-fast: interrupted\n"
        assert process.stdout.read() == b""
    assert set(os.listdir()) == before


@POSIX
@pytest.mark.parametrize("form", tables.FORMATS)
def test_an_interrupt_ends_a_command_whose_output_pipe_is_full(folder, form):
    parquet.write_table(problem(200_000), "big.parquet")
    sf.fit([0], [0]).save("m.json")
    os.mkfifo("pipe")
    reader = os.open("pipe", os.O_RDONLY | os.O_NONBLOCK)
    for output in ("-", "pipe"):
        words = ["apply", "big.parquet", "--model", "m.json", "--format", form, "--output", output]
        with subprocess.Popen([*COMMAND, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=HERE) as process:
            watched = process.stdout if output == "-" else reader
            assert select.select([watched], [], [], 60)[0]
            time.sleep(0.2)  # until the pipe is full
            process.send_signal(signal.SIGTERM)
            try:
                assert process.wait(60) == arguments.INTERRUPTED
            finally:
                process.kill()
            assert process.stderr.read() == b"staircase-fast: interrupted\n"
        assert len(os.read(reader, 1 << 20)) > 0 or output == "-"
    os.close(reader)


@POSIX
@pytest.mark.parametrize("form", ["csv", "parquet", "arrow"])
def test_named_pipes_can_be_read_and_written(folder, form):
    def pour(content, path):
        thread = threading.Thread(target=lambda: Path(path).write_bytes(content), daemon=True)
        thread.start()

    for name in ("data", "model", "made"):
        os.mkfifo(name)
    with ipc.new_stream("data.arrow", problem().schema) as writer:
        writer.write_table(problem())
    source = f"data.{form}"
    given = Path(source).read_bytes()
    assert run("fit", source, "--format", form, "--model", "m.json") == 0
    with contextlib.ExitStack() as stack:
        reader = stack.enter_context(subprocess.Popen(["cat", "model"], stdout=subprocess.PIPE))
        pour(given, "data")
        assert run("fit", "data", "--format", form, "--model", "model") == 0
        assert sf.Staircase.from_json(reader.stdout.read().decode()) == sf.Staircase.load("m.json")
    with contextlib.ExitStack() as stack:
        reader = stack.enter_context(subprocess.Popen(["cat", "made"], stdout=subprocess.PIPE))
        pour(given, "data")
        pour(Path("m.json").read_bytes(), "model")
        assert run("apply", "data", "--format", form, "--model", "model", "--output", "made") == 0
        Path("got").write_bytes(reader.stdout.read())
    assert run("apply", source, "--format", form, "--model", "m.json", "--output", f"wanted.{form}") == 0
    assert Path("got").read_bytes() == Path(f"wanted.{form}").read_bytes()


@POSIX
def test_standard_streams_may_be_closed(folder):
    fit = "fit data.csv --model m.json"
    sf.fit([0, 1], [0.3, 0.4]).save("wrong.json")
    for words, code in {
        f"{fit} >&-": arguments.DONE,
        f"{fit} 2>&-": arguments.DONE,
        f"{fit} >&- 2>&- <&-": arguments.DONE,
        "fit - --model m.json <&-": arguments.REFUSED,
        "certify data.csv --model wrong.json 2>&-": arguments.NOT_OPTIMAL,
    }.items():
        command = f"{shlex.join(COMMAND)} {words}"
        done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False, env=HERE)
        assert done.returncode == code, (words, done.stderr)
        assert "Traceback" not in done.stderr
    done = subprocess.run(
        ["sh", "-c", f"{shlex.join(COMMAND)} fit none.csv --model m.json 2>&-"],
        capture_output=True,
        check=False,
        env=HERE,
    )
    assert (done.returncode, done.stdout) == (arguments.REFUSED, b"")


@POSIX
def test_file_names_need_not_be_valid_text(folder):
    words = [*COMMAND, "fit", "data.csv", "--model", b"m\xff.json"]
    done = subprocess.run(words, capture_output=True, check=False, env=HERE)
    assert (done.returncode, done.stderr) == (0, b"")
    assert os.path.exists(b"m\xff.json")


def test_decimals_are_rounded_once(folder):
    scores = [decimal.Decimal(k) / 10**6 for k in range(1, 2000)]
    given = pa.table({"score": pa.array(scores, pa.decimal128(20, 6)), "label": pa.array(range(1, 2000), pa.float64())})
    parquet.write_table(given, "d.parquet")
    assert run("fit", "d.parquet", "--model", "m.json") == 0
    assert sf.Staircase.load("m.json") == sf.fit([k / 10**6 for k in range(1, 2000)], range(1, 2000))
    assert run("certify", "d.parquet", "--model", "m.json") == 0


@POSIX
def test_a_closed_output_pipe_is_not_an_error(folder):
    parquet.write_table(problem(50_000), "big.parquet")
    sf.fit([0], [0]).save("m.json")
    words = [*COMMAND, "apply", "big.parquet", "--model", "m.json", "--output", "-"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=HERE) as process:
        assert process.stdout.readline().startswith(b"id,")
        process.stdout.close()
        assert process.wait(60) == arguments.NOT_READ
        assert process.stderr.read() == b""


def test_apply_needs_memory_for_a_few_row_groups_only(folder):
    n = 1_000_000
    given = pa.table({"score": np.random.default_rng(0).random(n), "a": np.arange(n), "b": np.arange(n) / 7})
    parquet.write_table(given, "big.parquet", row_group_size=20_000)
    sf.fit([0, 0.5], [0, 1]).save("m.json")
    program = (
        "import sys, pyarrow; from staircase_fast.cli import arguments; code = arguments.main(sys.argv[1:]);"
        "print(pyarrow.default_memory_pool().max_memory(), file=sys.stderr); sys.exit(code)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, "apply", "big.parquet", "--model", "m.json", "--output", "out.parquet"],
        capture_output=True, text=True, check=True, env=HERE,
    )  # fmt: skip
    assert int(done.stderr) < given.nbytes / 4
    assert parquet.ParquetFile("out.parquet").metadata.num_rows == n
