"""The commands fit, apply and certify: results equal those of the library."""

import decimal
import os
import re
import shlex
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from command_line import COMMAND, HERE, POSIX, Terminal, error_of, folder_with_problem, problem, result_of, run
from pyarrow import csv, parquet

import staircase_fast as sf
from staircase_fast.cli import arguments, columns, pictures, printing, scanning, tables

pytestmark = pytest.mark.long
folder = pytest.fixture(folder_with_problem)


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
    words = ["--weight", "weight", "--loss", "huber:0.3", "--bounds", "0.2,", "--direction", "auto", "--threads", "-1"]
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


@pytest.mark.parametrize("direction", ["increasing", "auto"])
def test_several_files_patterns_and_folders_are_fitted_together(folder, capsys, direction):
    Path("more").mkdir()
    Path("more/a.csv").write_text("label,score\n1,0.5\n0,0.25\n")
    parquet.write_table(problem(), "more/b.parquet", row_group_size=100)
    given = problem()
    x, y = (np.append(given[name].to_numpy(), more) for name, more in (("score", [0.5, 0.25]), ("label", [1, 0])))
    expected = sf.fit(x, y, increasing=True if direction == "increasing" else "auto")
    for words in (["more"], ["more/*"], ["more/a.csv", "more/b.parquet"], ["more/b.parquet", "more/*.csv"]):
        assert run("fit", *words, "--direction", direction, "--model", "m.json", "--memory-limit", "50MB") == 0
        assert sf.Staircase.load("m.json") == expected


def test_large_files_are_not_read_into_memory(folder, capsys, monkeypatch):
    assert run("fit", "data.parquet", "--model", "a.json") == 0
    monkeypatch.setattr(scanning, "_LARGE", 100)
    monkeypatch.setattr(tables, "read_table", None)
    for name in ("data.parquet", "data.csv"):
        assert run("fit", name, "--model", "b.json") == 0
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
    message = error_of(capsys, "apply", data, "--model", "m.json", "--output", made)
    assert message.endswith("Drop these rows, or use --missing null.\n")
    for model, expected in ((["m.json"], [0, None, 2, 1]), (["map", "--group", "g"], [0, None, 5, 1])):
        words = ["apply", data, "--missing", "null", "--output", made, "--model", *model]
        assert run(*words) == 0
        found = csv.read_csv(made) if kind == "csv" else parquet.read_table(made)
        assert found["calibrated"].to_pylist() == expected
    capsys.readouterr()
    sf.fit([1, 2], [0, 1]).save("m.json")
    words = ["apply", data, "--missing", "null", "--out-of-bounds", "raise", "--model", "m.json", "--output", made]
    assert "got 3.0 in row 2" in error_of(capsys, *words)  # counted in the file, with rows that have no score


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


def test_the_commands_of_the_readme_run(folder, capsys, monkeypatch):
    text = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    lines = re.findall(r"^staircase-fast (.*)", text, flags=re.MULTILINE)
    assert len(lines) >= 5
    for name in ("diagrams", "segments", "curve"):
        monkeypatch.setattr(pictures, name, lambda *given, **how: b"<svg/>")  # drawing is slow
    shutil.copy("data.parquet", "past.parquet")
    shutil.copy("data.parquet", "new.parquet")
    for line in lines:
        assert run(*shlex.split(line, comments=True)) == 0
    assert {"model.json", "out.parquet", "report.html", "report.png", "cities.staircases"} <= set(os.listdir())


def test_json_has_strings_for_infinite_numbers_and_nan():
    assert printing.as_json({"a": [np.inf, -np.inf, 1.5], "b": {"c": np.nan}, "d": "x"}) == {
        "a": ["inf", "-inf", 1.5], "b": {"c": "nan"}, "d": "x",
    }  # fmt: skip


def test_progress_is_shown_only_on_a_terminal(folder, capsys, monkeypatch):
    assert run("fit", "data.csv", "--model", "m.json") == 0
    assert capsys.readouterr().err == ""
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    assert run("fit", "data.parquet", "--model", "m.json") == 0
    assert "fit, read" in screen.getvalue()
    for words in (
        ["fit", "data.parquet", "--model", "m.json", "--streaming"],
        ["apply", "data.parquet", "--model", "m.json", "--output", "out.parquet"],
        ["certify", "data.parquet", "--model", "m.json"],
        ["report", "data.parquet", "--model", "m.json"],
    ):
        screen.truncate(0)
        assert run(*words) == 0
        assert words[0] in screen.getvalue()
        assert "500" in screen.getvalue()
        screen.truncate(0)
        assert run(*words, "--no-progress") == 0
        assert screen.getvalue() == ""


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


def test_it_runs_in_any_thread(folder, capsys):
    codes = []
    thread = threading.Thread(target=lambda: codes.append(run("fit", "data.csv", "--model", "m.json")))
    thread.start()
    thread.join()
    assert codes == [0]


def test_python_m_runs_the_command_line(folder):
    done = subprocess.run([*COMMAND, "--version"], capture_output=True, text=True, check=True, env=HERE)
    assert done.stdout == f"staircase-fast {sf.__version__}\n"


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
