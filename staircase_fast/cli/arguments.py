"""The command `staircase-fast`: its arguments, and how it ends.

Exit codes: 0 done; 1 the data or a file is not as it must be; 2 the command line is not; 3 `certify` found that the
model is not the optimum; 130 interrupted; 141 nobody reads the output any more.  An error is one line on standard
error.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import io
import json
import os
import re
import sys
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from staircase_fast import __version__
from staircase_fast.cli import checks, interrupts
from staircase_fast.inputs.options import check_bounds, import_optional
from staircase_fast.losses import BY_NAME

DONE, REFUSED, USAGE, NOT_OPTIMAL, INTERRUPTED, NOT_READ = 0, 1, 2, 3, 130, 141
# what files, numbers and missing extras can lead to; pyarrow refuses some kinds of columns by NotImplementedError
_ERRORS = (OSError, ValueError, TypeError, ImportError, NotImplementedError, ArithmeticError, MemoryError)

_FILES = """\
DATA is a CSV, TSV, Parquet or Arrow stream file, told by its extension (.csv .tsv .csv.gz .parquet .pq .arrows), or -
for standard input, which is CSV unless --format says otherwise. Rows are counted from 0 in messages."""


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(USAGE, f"{self.prog}: {message} (see {self.prog} --help)\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line, and return its exit code."""
    options = options_of(sys.argv[1:] if arguments is None else arguments)
    outer = sys.exc_info()[1]
    try:
        with interrupts.interruptible():
            code = _run(options)
            print(end="", flush=True)
        return code
    except (KeyboardInterrupt, *_ERRORS) as error:
        if interrupts.came_of_one(error, outer):
            return _ended("interrupted", INTERRUPTED)
        return NOT_READ if isinstance(error, BrokenPipeError) else _ended(_one_line(error), REFUSED)


def run() -> int:
    """The same as a program."""
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by who started it, as daemons are
            setattr(sys, name, open(os.devnull, "r" if name == "stdin" else "w"))  # noqa: SIM115
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # names of files may be no text
    code = main()
    if code:
        # a thread may wait for input for ever, and output that failed once would be tried again
        with contextlib.suppress(OSError):
            sys.stderr.flush()
        os._exit(code)
    return code


def options_of(words: Sequence[str]) -> argparse.Namespace:
    """The arguments of a command line; it ends the program if they make no sense."""
    words = list(words)
    parser = _parser()
    options = parser.parse_args(_attached(words), argparse.Namespace(arguments=words))
    if options.command != "demo":
        read = {"DATA": options.data, "--default": getattr(options, "default", None)}
        written = {"--output": options.output, "--plot": getattr(options, "plot", None)}
        (written if options.command == "fit" else read)["--model"] = options.model
        options.to_stdout = "-" in written.values()
        if options.command == "apply" and options.data != "-":
            del read["DATA"]  # it may be replaced
        try:
            checks.different_files(read, written)
        except ValueError as error:
            parser.error(str(error).rstrip("."))
        if options.to_stdout and options.json:
            parser.error("--json and what is written to - cannot share standard output")
    return options


def _attached(words: list[str]) -> list[str]:
    """Bounds with their option: argparse would take those that begin with a minus for an option of their own."""
    attached = list(words)
    for place in range(len(words) - 2, -1, -1):
        if words[place] == "--bounds" and re.match(r"-[\d.i]", words[place + 1]):
            attached[place : place + 2] = [f"--bounds={words[place + 1]}"]
    return attached


def result_of(options: argparse.Namespace) -> dict[str, Any]:
    """Do what a command other than `demo` asks for, and tell its result."""
    for name in ("pyarrow", "tqdm"):
        import_optional(name, "this", extra="cli")
    import importlib

    module = importlib.import_module(f"staircase_fast.cli.{'report' if options.command == 'report' else 'commands'}")
    result: dict[str, Any] = getattr(module, options.command)(options)
    if options.json:
        print(json.dumps(_plain(result), allow_nan=False))
    else:
        print(_told(result), file=sys.stderr if options.to_stdout else sys.stdout)
    return result


def _run(options: argparse.Namespace) -> int:
    if options.command == "demo":
        from staircase_fast.cli import demo

        demo.main(options.rows, options.output)
        return DONE
    return NOT_OPTIMAL if result_of(options).get("optimal") is False else DONE


def _plain(result: Any) -> Any:
    """What JSON has words for: infinite and undefined numbers are strings."""
    if isinstance(result, dict):
        return {name: _plain(value) for name, value in result.items()}
    if isinstance(result, list):
        return [_plain(value) for value in result]
    return str(result) if isinstance(result, float) and not abs(result) < float("inf") else result


def _told(result: dict[str, Any], indent: str = "") -> str:
    """Results as lines of names and values."""
    lines = []
    for name, value in result.items():
        if isinstance(value, dict):
            lines += [f"{indent}{name}", _told(value, indent + "  ")]
        elif value is not None:
            lines.append(f"{indent}{name.replace('_', ' '):<{20 - len(indent)}}{_shown(value)}")
    return "\n".join(lines)


def _shown(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    return f"{value:,}" if type(value) is int else f"{value:.6g}" if isinstance(value, float) else str(value)


def _ended(message: str, code: int) -> int:
    with contextlib.suppress(OSError):
        print(f"staircase-fast: {message}", file=sys.stderr)
    return code


def _one_line(error: BaseException) -> str:
    if isinstance(error, OSError) and error.errno:
        what = os.strerror(error.errno)
        return f"{error.filename}: {what}" if error.filename else what
    return " ".join(str(error).split()) or type(error).__name__


def _judged(judge: Callable[[str], Any]) -> Callable[[str], Any]:
    """A judge of user input as argparse wants it."""

    @functools.wraps(judge)
    def of_text(text: str) -> Any:
        try:
            return judge(text)
        except (TypeError, ValueError) as error:
            raise argparse.ArgumentTypeError(str(error).rstrip(".")) from None

    return of_text


def _bounds(text: str) -> tuple[float | None, float | None]:
    pair = checks.bounds_from_text(text)
    check_bounds(pair)
    return pair


def _count(name: str) -> Callable[[str], int]:
    return _judged(lambda text: checks.count(name, text))


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="staircase-fast", description="The optimal monotone transform of scores, of files.")
    parser.add_argument("--version", action="version", version=f"staircase-fast {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND", parser_class=_Parser)

    fit = _command(commands, "fit", "fit a staircase to the scores and labels of a file")
    _model_options(fit, "where to write the model; - for standard output", loss="squared")
    fit.add_argument(
        "--direction", choices=("increasing", "decreasing", "auto"), default="increasing",
        help="whether values rise or fall with the score; auto: whichever has less loss",
    )  # fmt: skip
    fit.add_argument("--streaming", action="store_true", help="keep exact sums of each score instead of rows")

    apply = _command(commands, "apply", "add a column of calibrated scores to a file, in little memory")
    apply.add_argument("--model", required=True, help="what fit wrote")
    apply.add_argument("--group", metavar="COLUMN", help="the group of each row, for a model of groups")
    apply.add_argument("--default", metavar="MODEL", help="a staircase for groups that were not fitted")
    apply.add_argument("--output", required=True, help="the file to write, which may be DATA; - for standard output")
    apply.add_argument("--name", default="calibrated", help="of the new column (default: %(default)s)")
    apply.add_argument("--replace", action="store_true", help="replace a column of that name")
    apply.add_argument(
        "--interpolation", choices=("step", "linear", "centered"), default="step",
        help="scores between steps: the value of the last step, or straight lines between the ends of steps or through"
        " their middles (default: %(default)s)",
    )  # fmt: skip
    apply.add_argument(
        "--missing", choices=("raise", "null"), default="raise",
        help="scores that are null, empty or NaN: an error, or no value either (default: %(default)s)",
    )  # fmt: skip
    apply.add_argument(
        "--out-of-bounds", choices=("clip", "nan", "raise"), default="clip",
        help="scores beyond those fitted: the nearest value, NaN, or an error",
    )  # fmt: skip

    certify = _command(commands, "certify", "prove that a model is the optimum of a file; exit code 3 if it is not")
    _model_options(certify, "what fit wrote", loss=None)

    report = _command(commands, "report", "tell how reliable scores are before and after calibration")
    _label_options(report)
    report.add_argument("--group", metavar="COLUMN", help="the group of each row")
    report.add_argument("--model", help="what fit wrote; without it, one is fitted to the rows themselves")
    report.add_argument(
        "--loss", type=_judged(checks.score_from_text), default="brier",
        help="what scores are judged by: brier (default), log, squared or another, as in fit",
    )  # fmt: skip
    report.add_argument(
        "--bands", choices=("consistency", "confidence"),
        help="draw where curves would lie if scores were reliable, or might lie as well as where they do",
    )  # fmt: skip
    report.add_argument("--output", metavar="PAGE", help="a page of HTML to write; - for standard output")
    report.add_argument("--plot", metavar="PICTURE", help="a picture to write: .png, .svg or .pdf")

    tour = "a tour: generate, fit, apply, report, certify, compare"
    demo = commands.add_parser("demo", help=tour, description=f"{tour}.")
    demo.add_argument("--rows", type=_count("rows"), default=2_000_000, help="(default: 2000000)")
    demo.add_argument("--output", default="demo", metavar="FOLDER", help="where its files go (default: %(default)s)")
    return parser


def _command(commands: Any, name: str, what: str) -> argparse.ArgumentParser:
    """A command that reads a table."""
    command: argparse.ArgumentParser = commands.add_parser(name, help=what, description=f"{what}.", epilog=_FILES)
    command.add_argument("data", metavar="DATA")
    command.add_argument("--score", default="score", metavar="COLUMN", help="(default: %(default)s)")
    command.add_argument("--format", choices=("csv", "tsv", "parquet", "arrow"), help="of pipes and unknown extensions")
    command.add_argument(
        "--delimiter",
        type=_judged(checks.delimiter),
        help="between the columns of text (default: , or a tab)",
    )
    command.add_argument("--threads", type=_count("threads"), help="how many (default: all processors)")
    command.add_argument("--json", action="store_true", help="print results as JSON")
    command.set_defaults(model=None, output=None)
    return command


def _model_options(command: argparse.ArgumentParser, model: str, loss: str | None) -> None:
    """What a fit is made of."""
    _label_options(command)
    command.add_argument("--group", metavar="COLUMN", help="a staircase for each group of rows")
    command.add_argument("--model", required=True, help=model)
    command.add_argument(
        "--loss", type=_judged(checks.loss_from_text), default=loss,
        help=f"NAME or NAME:PARAMETER, as in huber:1.5; one of {', '.join(BY_NAME)}"
        f" (default: {loss or 'that of the model'})",
    )  # fmt: skip
    command.add_argument("--bounds", type=_judged(_bounds), metavar="LO,HI", help="of values, as in 0,1 or -1,1 or 0,")


def _label_options(command: argparse.ArgumentParser) -> None:
    command.add_argument("--label", default="label", metavar="COLUMN", help="the target (default: %(default)s)")
    command.add_argument("--weight", metavar="COLUMN", help="the weight of each row")
