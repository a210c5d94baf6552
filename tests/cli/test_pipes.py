"""Tables and models in pipes and standard streams."""

import contextlib
import io
import os
import shlex
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from command_line import COMMAND, HERE, POSIX, folder_with_problem, problem, run
from pyarrow import ipc, parquet

import staircase_fast as sf
from staircase_fast.cli import arguments

pytestmark = pytest.mark.long
folder = pytest.fixture(folder_with_problem)


def test_pipes_are_read_and_written(folder, capsys, monkeypatch):
    stairs = sf.fit([0.1, 0.2], [0, 1])
    monkeypatch.setattr(sys, "stdin", io.StringIO(stairs.to_json()))
    sf.fit([0.1, 0.2], [0, 1]).save("m.json")
    out = io.TextIOWrapper(io.BytesIO())
    with contextlib.redirect_stdout(out):
        assert run("apply", "data.csv", "--model", "-", "--output", "-") == 0
    assert out.buffer.getvalue().startswith(b"id,score,label,weight,city,zone,code,calibrated\n00000,")
    assert "rows                500\n" in capsys.readouterr().err


def test_the_format_of_a_pipe_that_is_not_csv_must_be_given(folder, capsys, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(Path("data.parquet").read_bytes())))
    assert run("fit", "-", "--model", "m.json") == arguments.REFUSED
    assert "Use --format if the pipe is not CSV." in capsys.readouterr().err
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(Path("data.parquet").read_bytes())))
    assert run("fit", "-", "--model", "m.json", "--format", "parquet") == 0


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
def test_a_closed_output_pipe_is_not_an_error(folder):
    parquet.write_table(problem(50_000), "big.parquet")
    sf.fit([0], [0]).save("m.json")
    words = [*COMMAND, "apply", "big.parquet", "--model", "m.json", "--output", "-"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=HERE) as process:
        assert process.stdout.readline().startswith(b"id,")
        process.stdout.close()
        assert process.wait(60) == arguments.NOT_READ
        assert process.stderr.read() == b""
