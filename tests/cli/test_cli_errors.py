"""Errors of the command line: an error is one line and leaves no files."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from command_line import COMMAND, HERE, POSIX, error_of, folder_with_problem, problem, run
from pyarrow import parquet

import staircase_fast as sf
from staircase_fast.cli import arguments, commands, parser, tables

pytestmark = pytest.mark.long
folder = pytest.fixture(folder_with_problem)


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
        ("score,label\n", ["--streaming"], "a.csv: column 'score' must have at least one row; got none."),
        ("", [], "a.csv: the first line must name the columns; the file is empty."),
        ("score,label\r0.1,0\r", [], "staircase-fast: a.csv: the first line must name the columns; new-line character"),
        ("score,label\n1,2,3\n", [], "a.csv: the text cannot be parsed; Expected 2 columns, got 3: 1,2,3 in row 0."),
        ("score;label\n1;2\n", [], "'score;label'. If ';' separates the columns, use --delimiter."),
        ("0.1,0\n0.2,1\n", [], "columns are '0.1', '0'. If these are data, add a first line with the names of the"),
        ("score,label\n1,1\n2,2\n", ["--loss", "log"], "If 2 is the class to predict, pass --positive 2."),
        ("score,label\n1,1\n2,2\n", ["--loss", "log", "--streaming"], "class to predict, pass --positive 2."),
        ("score,label\n1,0\n2,1\n", ["--loss", "logistic"], "-inf. Pass --bounds -10,10, or --bounds -inf,inf"),
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
    shown = "null" if bad is None else repr(bad)
    assert f"got {shown} in row 321." in message


def test_invalid_files_are_reported_in_one_line(folder, capsys):
    sf.fit([0], [0]).save("m.json")
    Path("short.parquet").write_bytes(Path("data.parquet").read_bytes()[:1000])
    Path("latin.csv").write_bytes("scöre,label\n1,2\n".encode("latin-1"))
    Path("binary.csv").write_bytes(b"score,label\n1,\xff\n")
    Path("empty.parquet").touch()
    Path("empty.arrows").touch()
    Path("not.json").write_text('{"format": "other"}')
    Path("data").touch()
    for words, message in {
        "fit none.parquet --model x": "none.parquet: No such file or directory",
        "fit none.csv --model x": "none.csv: No such file or directory",
        "fit data --model x": "data: cannot infer the format from the file name; use --format.",
        "fit nothing --model x": "nothing: No such file or directory",
        "fit not.json --model x": "not.json: cannot infer the format from the file name; use --format.",
        "fit short.parquet --model x": "short.parquet: Parquet magic bytes not found",
        "fit empty.parquet --model x": "empty.parquet: Parquet file size is 0 bytes",
        "fit empty.arrows --model x": "empty.arrows: ",
        "fit latin.csv --model x": "byte 0xf6 in position 2: invalid start byte. Convert the file to UTF-8.",
        "fit binary.csv --model x": "binary.csv: column 'label' cannot be parsed; CSV conversion error to string",
        "fit none-*.csv --model x": "none-*.csv: there are no Parquet, CSV or Arrow files.",
        "fit data.csv - --group id --model x": "--group needs files, or a single pipe without --streaming; got a pipe",
        "fit data.csv --model none/x": "none/x: No such file or directory",
        "fit data.csv --model data.csv/x": "data.csv/x: Not a directory",
        "fit data.csv --loss huber --streaming --model x": "--streaming needs a loss whose steps are means, or --group",
        "fit data.csv --group no --streaming --model x": "data.csv: there is no column 'no'",
        "fit data.csv --group id --model -": "a model with groups cannot be written to standard output",
        "apply data.csv --model none --output x.csv": "none: No such file or directory",
        "apply data.csv --model not.json --output x.csv": "not.json: field `format` must be 'staircase_fast'; got",
        "apply data.csv --model m.json --output x": "x: cannot infer the format from the file name; use --format.",
        "apply data.csv --model m.json --output none/x.csv": "none/x.csv: No such file or directory",
        "apply data.csv --model m.json --output x.csv --group id": "m.json: the model has no groups; got --group id.",
        "certify data.csv --model m.json --group id": "m.json: the model has no groups; got --group id.",
    }.items():
        assert message in error_of(capsys, *words.split()), words
    # as of a shell variable that is not set
    assert error_of(capsys, "fit", "", "--model", "x") == "staircase-fast: '': No such file or directory\n"
    sf.fit_groups([0], [0], [0]).save("map")
    assert "--group" in error_of(capsys, "apply", "data.csv", "--model", "map", "--output", "x.csv")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--json"], "the following arguments are required: COMMAND"),
        (["fot"], "'show', 'demo'). Did you mean 'fit'? (see staircase-fast --help)"),
        (["???"], "'show', 'demo') (see staircase-fast --help)"),
        (["fit", "a.csv", "--model", "m", "--lable", "y"], "--lable y. Did you mean '--label'? (see"),
        (["fit", "a.csv", "--model", "m", "--lable=y"], "--lable=y. Did you mean '--label'?"),
        (["show", "a.json", "b.json"], "staircase-fast show: unrecognized arguments: b.json (see"),
        (["fit", "a.csv"], "the following arguments are required: --model"),
        (["apply", "a.csv", "--model", "m", "--output", "o", "--name", ""], "--name: must not be empty; got '' (see"),
        (["export", "m", "--to", "sql", "--column", ""], "--column: must not be empty; got '' (see"),
        (["fit", "a.csv", "--modle=m"], "fit: unrecognized arguments: --modle. Did you mean '--model'?"),
        (["fit", "a.csv", "--model", "m", "--fot", "1"], "unrecognized arguments: --fot 1"),
        (["report", "a.csv", "--fot"], "unrecognized arguments: --fot"),
        (["fit", "a.csv", "--model", "m", "--loss", "hube"], "`loss` must be one of 'squared_error',"),
        (["fit", "a.csv", "--model", "m", "--loss", "hube:1"], "`loss` must be one of 'squared_error',"),
        (["fit", "a.csv", "--model", "m", "--loss", "huber:x"], "`delta` of 'huber' must be a number; got 'x'"),
        (["fit", "a.csv", "--model", "m", "--loss", "huber:-1"], "`delta` must be"),
        (["fit", "a.csv", "--model", "m", "--loss", "log:1"], "`loss` 'log' has no parameter; got '1'"),
        (["fit", "a.csv", "--model", "m", "--loss", "power"], "`loss` must include its exponent, as in power:1.5"),
        (["fit", "a.csv", "--model", "m", "--bounds", "1"], "`bounds` must be LO,HI, where"),
        (["fit", "a.csv", "--model", "m", "--bounds", "2,1"], "`bounds` must be a pair with lo <= hi"),
        (["fit", "a.csv", "--model", "m", "--threads", "0"], ">= 1, or -1 for all cores; got '0' (see"),
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
        (["report", "a.csv", "--loss", "briar"], "got 'briar'. Did you mean 'brier'?"),
        (["report", "a.csv", "--loss", "brier:2"], "must be one of 'brier', "),
    ],
)
def test_invalid_arguments_are_reported_in_one_line(capsys, words, message):
    with pytest.raises(SystemExit) as ended:
        run(*words)
    assert ended.value.code == parser.USAGE
    shown = capsys.readouterr().err
    assert message in shown
    assert shown.count("\n") == 1


def test_an_error_names_the_extra_that_installs_a_missing_library(folder, capsys, monkeypatch):
    for name in ("tqdm", "pyarrow"):
        monkeypatch.setitem(sys.modules, name, None)
        message = error_of(capsys, "fit", "data.csv", "--model", "m.json")
        assert f"this needs {name}, which is not installed: pip install '.[cli]' in a checkout." in message


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


@pytest.mark.filterwarnings("always")
@pytest.mark.parametrize("command", ["fit", "report"])
def test_a_warning_is_one_line(folder, capsys, command):
    parquet.write_table(problem().set_column(2, "label", problem()["label"].cast(pa.int8())), "numbers.parquet")
    words = "numbers.parquet", "--score", "label", "--label", "score"
    assert run(command, *words, *(["--model", "m.json"] if command == "fit" else [])) == 0
    line = "staircase-fast: warning: The scores are all 0 or 1, and the targets are not. Are they swapped?"
    assert set(capsys.readouterr().err.splitlines()) == {line}


@pytest.mark.filterwarnings("always")
def test_a_warning_is_shown_once(folder, capsys):
    parquet.write_table(pa.table({"score": [0, 1] * 20, "label": [0.2, 0.9] * 20}), "swapped.parquet")
    assert run("report", "swapped.parquet") == 0  # before and after calibration
    assert capsys.readouterr().err.count("Are they swapped?") == 1


def test_a_file_that_is_missing_is_an_error_before_its_format_is_inferred(folder, capsys):
    for words in (["fit", "data.csv", "label", "--model", "m.json"], ["report", "label"]):
        assert error_of(capsys, *words) == "staircase-fast: label: No such file or directory\n"


def test_a_page_and_a_picture_have_their_own_options(folder, capsys):
    message = error_of(capsys, "report", "data.csv", "--output", "report.PNG")
    assert message == "staircase-fast: report.PNG: --output is an HTML page; use --plot for a picture.\n"


def test_the_default_of_groups_must_be_a_model_without_groups(folder, capsys):
    sf.fit_groups([0, 1], [0, 1], ["oslo", "rome"]).save("m.staircases")
    words = "--group", "city", "--model", "m.staircases", "--default", "m.staircases", "--output", "out.csv"
    message = error_of(capsys, "apply", "data.csv", *words)
    assert message == "staircase-fast: m.staircases: --default must be a model without groups.\n"


def test_a_file_that_is_no_model_gets_no_advice_about_python(folder, capsys):
    Path("m.json").write_text("hello")
    message = error_of(capsys, "apply", "data.csv", "--model", "m.json", "--output", "out.csv")
    assert message.startswith("staircase-fast: m.json: a staircase must be JSON text; ")
    assert message.endswith("(char 0).\n")


def test_a_failed_program_exits_at_once(capsys, monkeypatch):
    ended = []
    monkeypatch.setattr(os, "_exit", ended.append)
    monkeypatch.setattr(sys, "argv", ["staircase-fast", "fit", "none.csv", "--model", "none/m.json"])
    assert arguments.run() == arguments.REFUSED
    assert ended == [arguments.REFUSED]
    monkeypatch.setattr(arguments, "main", lambda: 0)
    assert arguments.run() == 0
    assert len(ended) == 1


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


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_full_standard_output_is_named(folder):
    sf.fit([0, 1], [0, 1]).save("m.json")
    n = 20_000  # more than a buffer holds
    large = sf.fit(np.arange(n), np.arange(n))
    large.save("large.json")
    seen = sf.Accumulator("log")
    seen.add([0.1], [0])
    seen.save("a.npz")
    for words in (
        "fit data.csv --model -",
        "fit data.csv --model x.json",  # its result is printed
        "fit data.csv --model x.json --json",
        "apply data.csv --model m.json --output -",
        "report data.csv --model m.json --output -",
        "export m.json --to json",
        "export large.json --to json",
        "merge a.npz --model -",
        "show m.json",
    ):
        with open("/dev/full", "w") as full:
            done = subprocess.run(
                [*COMMAND, *words.split()], stdout=full, stderr=subprocess.PIPE, text=True, check=False, env=HERE
            )
        assert done.returncode == arguments.REFUSED, words
        assert done.stderr.endswith("staircase-fast: standard output: No space left on device\n"), words


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
