"""Ctrl-C and SIGTERM end a command at once, and leave no files."""

import os
import select
import signal
import subprocess
import sys
import time

import pytest
from command_line import COMMAND, HERE, POSIX, folder_with_problem, problem, run
from pyarrow import ipc, parquet

import staircase_fast as sf
from staircase_fast.cli import arguments, commands, interrupts, tables

pytestmark = pytest.mark.long
folder = pytest.fixture(folder_with_problem)


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
