"""The command `staircase-fast`: its arguments, its output, and its exit codes.

Exit codes: 0 success; 1 invalid data or files; 2 invalid arguments; 3 `certify` found that the model is not optimal;
130 interrupted; 141 the reader closed the output.  An error is one line on standard error.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import io
import itertools
import json
import os
import re
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from staircase_fast import __version__
from staircase_fast.batches.fitting import bytes_of
from staircase_fast.cli.interrupts import caused_by_interrupt, interruptible
from staircase_fast.cli.tables import FORMATS
from staircase_fast.errors import InvalidInputError
from staircase_fast.inputs.options import check_bounds, import_optional
from staircase_fast.losses import BY_NAME, WITHOUT_DEFAULT, Loss, loss_class, loss_of

DONE, REFUSED, USAGE, NOT_OPTIMAL, INTERRUPTED, NOT_READ = 0, 1, 2, 3, 130, 141
# errors of files, numbers and missing extras; pyarrow raises NotImplementedError for columns that it cannot convert
_ERRORS = (OSError, ValueError, TypeError, ImportError, NotImplementedError, ArithmeticError, MemoryError)

_FILES = """\
DATA is a CSV, TSV, Parquet or Arrow stream file. The extension determines the format: .csv, .tsv (also with .gz, .bz2
or .zst), .parquet, .pq, .arrows. Use - for standard input, which is CSV unless --format is given. Messages count rows
from 0."""


class _Parser(argparse.ArgumentParser):
    """A parser that reports errors in one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(USAGE, f"{self.prog}: {message} (see {self.prog} --help)\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    options = parse(sys.argv[1:] if arguments is None else arguments)
    outer = sys.exc_info()[1]
    try:
        with interruptible():
            optimal = run_command(options).get("optimal", True)
            print(end="", flush=True)
        return DONE if optimal else NOT_OPTIMAL
    except (KeyboardInterrupt, *_ERRORS) as error:
        interrupted = caused_by_interrupt(error, outer)
        if isinstance(error, BrokenPipeError) and not interrupted:
            return NOT_READ
        with contextlib.suppress(OSError):
            print(f"staircase-fast: {'interrupted' if interrupted else _one_line(error)}", file=sys.stderr)
        return INTERRUPTED if interrupted else REFUSED


def run() -> int:
    """Run the command line as a program."""
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by the parent process, as for daemons
            setattr(sys, name, open(os.devnull, "r" if name == "stdin" else "w"))  # noqa: SIM115
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # file names need not be valid text
    code = main()
    if code:
        # a normal exit could wait for a thread that reads input, or write again to an output that failed
        with contextlib.suppress(OSError):
            sys.stderr.flush()
        os._exit(code)
    return code


def parse(words: Sequence[str]) -> argparse.Namespace:
    """Parse a command line; exit if it is invalid."""
    words = list(words)
    parser = _parser()
    options = parser.parse_args(_join_bounds(words), argparse.Namespace(arguments=words))
    if options.command != "demo":
        options.paths = options.data if isinstance(options.data, list) else [options.data]
        options.data = options.paths[0]
        read = {f"DATA {place}" if place else "DATA": path for place, path in enumerate(options.paths)}
        read["--default"] = getattr(options, "default", None)
        written = {"--output": options.output, "--plot": getattr(options, "plot", None)}
        (written if options.command == "fit" else read)["--model"] = options.model
        options.to_stdout = "-" in written.values()
        if options.command == "apply" and options.data != "-":
            del read["DATA"]  # apply may replace it
        if conflict := _conflict(read, written):
            parser.error(conflict)
        if options.to_stdout and options.json:
            parser.error("--json and an output of - cannot share standard output")
    return options


def _join_bounds(words: list[str]) -> list[str]:
    """Join --bounds and its value with "="; argparse would take a value that starts with a minus for an option."""
    joined = list(words)
    for place in range(len(words) - 2, -1, -1):
        if words[place] == "--bounds" and re.match(r"-[\d.i]", words[place + 1]):
            joined[place : place + 2] = [f"--bounds={words[place + 1]}"]
    return joined


def _conflict(read: dict[str, str | None], written: dict[str, str | None]) -> str:
    """Describe two arguments that must be different files: one is written, or both are standard input."""
    given = [(name, path) for name, path in (*read.items(), *written.items()) if path is not None]
    for (name, path), (other_name, other_path) in itertools.combinations(given, 2):
        same_kind = (name in written) == (other_name in written)  # standard input differs from standard output
        conflicts = same_kind if path == "-" else other_name in written
        if conflicts and os.path.realpath(path) == os.path.realpath(other_path):
            return f"{name} and {other_name} must be different files; both are {path!r}"
    return ""


def run_command(options: argparse.Namespace) -> dict[str, Any]:
    """Run a command; print and return its result."""
    for name in ("pyarrow", "tqdm"):
        import_optional(name, "this", extra="cli")
    module = options.command if options.command in ("demo", "report") else "commands"
    function = getattr(importlib.import_module(f"staircase_fast.cli.{module}"), options.command)
    start = time.perf_counter()
    result: dict[str, Any] = function(options)
    if result:
        result["seconds"] = time.perf_counter() - start
    if options.json:
        print(json.dumps(_as_json(result), allow_nan=False))
    elif result:
        print(_as_text(result), file=sys.stderr if options.to_stdout else sys.stdout)
    return result


def _as_json(result: Any) -> Any:
    """A result with strings for infinite numbers and NaN, which JSON does not have."""
    if isinstance(result, dict):
        return {name: _as_json(value) for name, value in result.items()}
    if isinstance(result, list):
        return [_as_json(value) for value in result]
    return str(result) if isinstance(result, float) and not abs(result) < float("inf") else result


def _as_text(result: dict[str, Any], indent: str = "") -> str:
    """A result as lines of names and values."""
    lines, width = [], max(20 - len(indent), *(2 + len(name) for name in result))
    for name, value in result.items():
        if isinstance(value, dict):
            lines += [f"{indent}{name}", _as_text(value, indent + "  ")]
        elif value is not None:
            shown = f"{value:,}" if type(value) is int else f"{value:.6g}" if isinstance(value, float) else str(value)
            if isinstance(value, list):
                shown = ", ".join(map(str, value)) or "none"
            lines.append(f"{indent}{name.replace('_', ' '):<{width}}{shown}")
    return "\n".join(lines)


def _one_line(error: BaseException) -> str:
    if isinstance(error, OSError) and error.errno:
        reason = os.strerror(error.errno)
        return f"{error.filename}: {reason}" if error.filename else reason
    return " ".join(str(error).split()) or type(error).__name__


def _option(check: Callable[[str], Any]) -> Callable[[str], Any]:
    """Let argparse show the message of the error that a check of an option raises."""

    def convert(text: str) -> Any:
        try:
            return check(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error).rstrip(".")) from None

    return convert


@_option
def _loss(text: str) -> Loss:
    """A loss from NAME or NAME:PARAMETER."""
    name, colon, parameter = text.partition(":")
    kind = loss_class(name)
    if not colon:
        if kind in WITHOUT_DEFAULT:
            raise InvalidInputError("loss", f"must include its {kind.parameter}, as in {name}:1.5", value=name)
        return loss_of(name)
    if not kind.parameter:
        raise InvalidInputError("loss", f"{name!r} has no parameter", value=parameter)
    try:
        number = float(parameter)
    except ValueError:
        raise InvalidInputError(kind.parameter, f"of {name!r} must be a number", value=parameter) from None
    return kind(**{kind.parameter: number})


@_option
def _bounds(text: str) -> tuple[float | None, float | None]:
    """A pair from LO,HI; either number may be missing."""
    try:
        lo, hi = (float(part) if part.strip() else None for part in text.split(","))
    except ValueError:
        raise InvalidInputError("bounds", "must be LO,HI, where one number may be missing", value=text) from None
    check_bounds((lo, hi))
    return lo, hi


def _delimiter(text: str) -> str:
    delimiter = "\t" if text == r"\t" else text
    if len(delimiter) != 1 or not delimiter.isascii() or delimiter in '"\r\n':
        raise argparse.ArgumentTypeError(f"must be a single ASCII character; got {text!r}")
    return delimiter


def _count(text: str) -> int:
    if not text.strip().isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be an integer >= 1; got {text!r}")
    return int(text)


def _threads(text: str) -> int:
    return -1 if text.strip() == "-1" else _count(text)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="staircase-fast", description="Fast, exact isotonic regression and calibration of files.")
    parser.add_argument("--version", action="version", version=f"staircase-fast {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND", parser_class=_Parser)

    fit = _command(commands, "fit", "fit a staircase to the scores and labels in files, folders or patterns", many=True)
    fit.add_argument("--model", required=True, help="the file to write the model to; - for standard output")
    _add_loss(fit, "squared")
    way = "whether values rise or fall with the score; auto: the direction with the smaller loss"
    _add_choice(fit, "--direction", ("increasing", "decreasing", "auto"), way)
    scans = "read the rows twice instead of keeping them in memory; the default for large or several files"
    fit.add_argument("--streaming", action="store_true", help=scans)
    memory = "memory for the rows and sums of such a fit (default: %(default)s)"
    fit.add_argument("--memory-limit", metavar="SIZE", default="1GB", type=_option(bytes_of), help=memory)

    apply = _command(commands, "apply", "add a column of calibrated scores to a file, batch by batch", labels=False)
    apply.add_argument("--model", required=True, help="a model that fit wrote")
    apply.add_argument("--default", metavar="MODEL", help="a staircase for groups that were not fitted")
    apply.add_argument("--output", required=True, help="the file to write, possibly DATA; - for standard output")
    apply.add_argument("--name", default="calibrated", help="name of the new column (default: %(default)s)")
    apply.add_argument("--replace", action="store_true", help="replace an existing column of that name")
    between = "values between steps: that of the previous step, or on lines between the ends or the middles of steps"
    _add_choice(apply, "--interpolation", ("step", "linear", "centered"), between)
    _add_choice(apply, "--missing", ("raise", "null"), "missing scores raise an error, or get a null value")
    outside = "scores outside the fitted range get the nearest value or NaN, or raise an error"
    _add_choice(apply, "--out-of-bounds", ("clip", "nan", "raise"), outside)

    certify = _command(commands, "certify", "prove that a model is optimal for a file; exit code 3 if it is not")
    certify.add_argument("--model", required=True, help="a model that fit wrote")
    _add_loss(certify, None)

    report = _command(commands, "report", "report how reliable scores are before and after calibration")
    report.add_argument("--model", help="a model that fit wrote; by default, one is fitted to the rows of DATA")
    report.add_argument(
        "--loss", type=lambda text: text if text == "brier" else _loss(text), default="brier",
        help="the score that is decomposed: brier (default), log, squared or another loss, as in fit",
    )  # fmt: skip
    bands = (
        "draw 90 % bands: around the diagonal, for calibrated scores; of the true curve as a whole; or at each score"
    )
    report.add_argument("--bands", choices=("consistency", "confidence", "pointwise"), help=bands)
    report.add_argument("--output", metavar="PAGE", help="the HTML page to write; - for standard output")
    report.add_argument("--plot", metavar="PICTURE", help="the picture to write: .png, .svg or .pdf")

    tour = "run a tour: generate data, fit, apply, report, certify, compare"
    demo = commands.add_parser("demo", help=tour, description=f"{tour}.")
    demo.add_argument("--rows", type=_count, default=2_000_000, help="(default: 2000000)")
    demo.add_argument("--output", default="demo", metavar="FOLDER", help="where its files go (default: %(default)s)")
    demo.set_defaults(json=False, to_stdout=False)
    return parser


def _command(
    commands: Any, name: str, purpose: str, *, labels: bool = True, many: bool = False
) -> argparse.ArgumentParser:
    """Add a command that reads a table."""
    command: argparse.ArgumentParser = commands.add_parser(name, help=purpose, description=f"{purpose}.", epilog=_FILES)
    command.add_argument("data", metavar="DATA", nargs="+" if many else None)
    command.add_argument("--score", default="score", metavar="COLUMN", help="(default: %(default)s)")
    if labels:
        command.add_argument("--label", default="label", metavar="COLUMN", help="the target (default: %(default)s)")
        command.add_argument("--weight", metavar="COLUMN", help="the weight of each row")
    command.add_argument("--group", metavar="COLUMN", help="the group of each row; each group has its own staircase")
    command.add_argument("--format", choices=FORMATS, help="the format of pipes and of files with other extensions")
    separator = "between columns of text (default: a comma, or a tab in TSV)"
    command.add_argument("--delimiter", type=_delimiter, help=separator)
    command.add_argument("--threads", type=_threads, metavar="N", help="number of threads (default: -1, all cores)")
    command.add_argument("--json", action="store_true", help="print the result as JSON")
    command.set_defaults(model=None, output=None)
    return command


def _add_choice(command: argparse.ArgumentParser, name: str, choices: Sequence[str], meaning: str) -> None:
    """Add an option whose default is the first choice."""
    command.add_argument(name, choices=choices, default=choices[0], help=f"{meaning} (default: {choices[0]})")


def _add_loss(command: argparse.ArgumentParser, default: str | None) -> None:
    command.add_argument(
        "--loss", type=_loss, default=default,
        help=f"NAME or NAME:PARAMETER, for example huber:1.5; one of {', '.join(BY_NAME)}"
        f" (default: {default or 'the loss of the model'})",
    )  # fmt: skip
    bounds = "bounds on the values, for example 0,1 or -1,1 or 0,"
    command.add_argument("--bounds", type=_bounds, metavar="LO,HI", help=bounds)
