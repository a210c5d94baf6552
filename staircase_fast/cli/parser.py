"""The arguments of the command `staircase-fast`: which there are, and whether they are consistent."""

from __future__ import annotations

import argparse
import itertools
import os
import re
from collections.abc import Callable, Sequence
from typing import Any, NoReturn, get_args

from staircase_fast import __version__
from staircase_fast.batches.fitting import bytes_of
from staircase_fast.cli.tables import FORMATS
from staircase_fast.errors import InvalidInputError
from staircase_fast.inputs.options import check_bounds, did_you_mean, refuse_choice
from staircase_fast.losses import BY_NAME, SYNONYMS, WITHOUT_DEFAULT, Loss, loss_class, loss_of
from staircase_fast.typing import Dialect

USAGE = 2  # the exit code of invalid arguments
_OPTIONS_OF_FORMATS = {  # of `export`
    "dialect": ("sql",),
    "column": ("sql",),
    "group": ("sql",),
    "interpolation": ("sql", "onnx"),
    "out_of_bounds": ("sql", "onnx"),
}

_FILES = """\
The extension of DATA determines its format: .csv, .tsv (also with .gz, .bz2 or .zst), .parquet, .pq, .arrows. Use - for
standard input, which is CSV unless --format is given. Messages count rows from 0."""


_WITH_PARAMETER = [name for name, kind in BY_NAME.items() if kind in WITHOUT_DEFAULT]
_INTERPOLATIONS = ("step", "linear", "centered")
_BETWEEN = "values between steps: that of the previous step, or on lines between the ends or the middles of steps"


class _Parser(argparse.ArgumentParser):
    """A parser that reports errors in one line."""

    _words: Sequence[str] = ()

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        self._words = args or ()
        return super().parse_known_args(args, namespace)

    def error(self, message: str) -> NoReturn:
        if "are required" in message and "--" in message:  # perhaps the option is there, but misspelt
            names = [word.partition("=")[0] for word in self._words if word.startswith("--")]
            unknown = [name for name in names if not any(own.startswith(name) for own in self._option_string_actions)]
            if unknown:
                self.refuse(unknown)
        self.exit(USAGE, f"{self.prog}: {message} (see {self.prog} --help)\n")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        try:
            super()._check_value(action, value)
        except argparse.ArgumentError as error:
            hint = did_you_mean(value, list(action.choices or ()))
            error.message += f". {hint}" if hint else ""
            raise

    def refuse(self, unknown: list[str]) -> NoReturn:
        """Report arguments that do not exist, and the option that was probably meant."""
        name = unknown[0].partition("=")[0]
        hint = did_you_mean(name, list(self._option_string_actions)) if name.startswith("-") else ""
        self.error(f"unrecognized arguments: {' '.join(unknown)}" + (f". {hint}" if hint else ""))


def parse(words: Sequence[str]) -> argparse.Namespace:
    """Parse a command line; exit if it is invalid.  Without words, print the help and exit."""
    words = list(words)
    parser = build_parser()
    if not words:
        parser.print_help()
        parser.exit()
    options, unknown = parser.parse_known_args(_join_bounds(words), argparse.Namespace(arguments=words))
    if unknown:
        options.parser.refuse(unknown)
    if options.command in ("demo", "show"):
        return options
    read, written = _files(options)
    options.to_stdout = "-" in written.values()
    if problem := _conflict(read, written) or _misused(options):
        options.parser.error(problem)
    if options.to_stdout and options.json:
        options.parser.error("--json and an output of - cannot share standard output")
    return options


def _files(options: argparse.Namespace) -> tuple[dict[str, str | None], dict[str, str | None]]:
    """The files that a command reads, and those that it writes, by the names of their arguments."""
    written = {"--output": options.output, "--plot": getattr(options, "plot", None)}
    if options.command == "export":
        return {"MODEL": options.model}, written
    if options.command == "merge":  # it may write to one of the files that it reads
        return {}, written | {"--model": options.model}
    read = {f"DATA {place}" if place else "DATA": path for place, path in enumerate(options.paths)}
    read["--default"] = getattr(options, "default", None)
    (written if options.command == "fit" else read)["--model"] = options.model
    if options.command == "apply" and options.paths[0] != "-":
        del read["DATA"]  # apply may replace it
    return read, written


def _misused(options: argparse.Namespace) -> str:
    """Describe an option that the chosen format of `export` does not have, or an output that `merge` lacks."""
    if options.command == "merge" and not (options.output or options.model):
        return "pass --output for the merged accumulator, or --model for its staircase, or both"
    if options.command != "export":
        return ""
    for name, formats in _OPTIONS_OF_FORMATS.items():
        if getattr(options, name) is not None and options.to not in formats:
            return f"--{name.replace('_', '-')} needs --to {' or --to '.join(formats)}; got --to {options.to}"
    return "--to onnx needs --output FILE" if options.to == "onnx" and options.output == "-" else ""


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
def _score(text: str) -> str | Loss:
    """The loss that `report` decomposes."""
    if text == "brier":
        return text
    if text.partition(":")[0] not in BY_NAME:
        refuse_choice("loss", text, ("brier", *BY_NAME), SYNONYMS)
    loss: Loss = _loss(text)
    return loss


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


def _count(text: str, others: str = "") -> int:
    if not text.strip().isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be an integer >= 1{others}; got {text!r}")
    return int(text)


def _name(text: str) -> str:
    if not text:
        raise argparse.ArgumentTypeError("must not be empty; got ''")
    return text


def _threads(text: str) -> int:
    return -1 if text.strip() == "-1" else _count(text, ", or -1 for all cores")


def build_parser() -> argparse.ArgumentParser:
    """The parser of all commands."""
    parser = _Parser(prog="staircase-fast", description="Fast, exact isotonic regression and calibration of files.")
    parser.add_argument("--version", action="version", version=f"staircase-fast {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND", parser_class=_Parser)
    for add in (_add_fit, _add_apply, _add_certify, _add_report, _add_export, _add_merge, _add_show, _add_demo):
        add(commands)
    return parser


def _add_fit(commands: Any) -> None:
    fit = _add_reader(commands, "fit", "fit a staircase to the scores and labels in files, folders or patterns")
    fit.add_argument("--model", required=True, help="the file to write the model to; - for standard output")
    _add_loss(fit, "squared")
    way = "whether values rise or fall with the score; auto: the direction with the smaller loss"
    _add_choice(fit, "--direction", ("increasing", "decreasing", "auto"), way)
    _add_scanning(fit)


def _add_scanning(command: argparse.ArgumentParser) -> None:
    scans = "read the rows several times instead of keeping them in memory; the default for large or several files"
    command.add_argument("--streaming", action="store_true", help=scans)
    memory = "memory for rows and sums while files are read several times (default: %(default)s)"
    command.add_argument("--memory-limit", metavar="SIZE", default="1GB", type=_option(bytes_of), help=memory)


def _add_apply(commands: Any) -> None:
    apply = _add_reader(commands, "apply", "add a column of calibrated scores to files, batch by batch", labels=False)
    apply.add_argument("--model", required=True, help="a model that fit wrote")
    apply.add_argument("--default", metavar="MODEL", help="a staircase for groups that were not fitted")
    output = "the file to write, possibly DATA; the folder to write to if there are several; - for standard output"
    apply.add_argument("--output", required=True, help=output)
    apply.add_argument("--name", type=_name, default="calibrated", help="name of the new column (default: %(default)s)")
    apply.add_argument("--replace", action="store_true", help="replace an existing column of that name")
    _add_choice(apply, "--interpolation", _INTERPOLATIONS, _BETWEEN)
    _add_choice(apply, "--missing", ("raise", "null"), "missing scores raise an error, or get a null value")
    outside = "scores outside the fitted range get the nearest value or NaN, or raise an error"
    _add_choice(apply, "--out-of-bounds", ("clip", "nan", "raise"), outside)


def _add_certify(commands: Any) -> None:
    proof = "prove that a model is optimal for files, folders or patterns; exit code 3 if it is not"
    certify = _add_reader(commands, "certify", proof)
    certify.add_argument("--model", required=True, help="a model that fit wrote")
    _add_loss(certify, None)
    _add_scanning(certify)


def _add_report(commands: Any) -> None:
    groups = "a column of segments: the report has a table of them, and diagrams of the worst ones"
    purpose = "report how reliable scores are before and after calibration"
    report = _add_reader(commands, "report", purpose, group=groups)
    report.add_argument("--model", help="a model that fit wrote; by default, one is fitted to the rows of DATA")
    report.add_argument(
        "--loss", type=_score, default="brier",
        help="the score that is decomposed: brier (default), log, squared or another loss, as in fit",
    )  # fmt: skip
    bands = (
        "draw 90 %% bands: around the diagonal, for calibrated scores; of the true curve as a whole; or at each score"
        " (default: confidence, if labels are 0 and 1, weights are whole numbers, and something is drawn)"
    )
    report.add_argument("--bands", choices=("consistency", "confidence", "pointwise", "none"), help=bands)
    report.add_argument("--output", metavar="PAGE", help="the HTML page to write; - for standard output")
    report.add_argument("--plot", metavar="PICTURE", help="the picture to write: .png, .svg or .pdf")


def _add_export(commands: Any) -> None:
    export = _add(commands, "export", "write a model as an SQL expression, an ONNX model or JSON")
    export.add_argument("model", metavar="MODEL", help="a model that fit wrote; - for standard input")
    export.add_argument("--to", required=True, choices=("sql", "onnx", "json"), help="the format to write")
    export.add_argument(
        "-o", "--output", metavar="FILE", default="-", help="the file to write (default: standard output)"
    )
    export.add_argument("--dialect", choices=get_args(Dialect), help="the dialect of SQL (default: duckdb)")
    export.add_argument("--column", type=_name, help="the SQL column of scores (default: score)")
    export.add_argument("--group", metavar="COLUMN", help="the SQL column of groups, if the model has groups")
    export.add_argument("--interpolation", choices=_INTERPOLATIONS, help=f"{_BETWEEN} (default: step)")
    outside = "scores outside the fitted range get the nearest value, or NaN (NULL in SQL) (default: clip)"
    export.add_argument("--out-of-bounds", choices=("clip", "nan"), help=outside)
    _add_printing(export)


def _add_merge(commands: Any) -> None:
    merge = _add(commands, "merge", "merge accumulators that Accumulator.save wrote, and fit their rows")
    files = "saved accumulators of one loss and direction, or quoted patterns such as 'days/*.npz'"
    merge.add_argument("accumulators", metavar="ACCUMULATOR", nargs="+", help=files)
    merge.add_argument("--output", metavar="FILE", help="the merged accumulator, possibly one of those that are read")
    merge.add_argument("--model", help="the file to write the staircase of all rows to; - for standard output")
    _add_bounds(merge)
    _add_printing(merge)


def _add_show(commands: Any) -> None:
    show = _add(commands, "show", "show what is in a model or a saved accumulator")
    show.add_argument("model", metavar="MODEL", help="a model or an accumulator; - for a staircase on standard input")
    show.add_argument("--group", metavar="GROUP", help="show the staircase of this group")
    steps = "steps to show at each end (default: 3, or all with --json)"
    show.add_argument("--steps", metavar="N", type=_count, help=steps)
    _add_printing(show)
    show.set_defaults(to_stdout=False)


def _add_demo(commands: Any) -> None:
    demo = _add(commands, "demo", "run a tour: generate data, fit, apply, report, certify, compare")
    demo.add_argument("--rows", type=_count, default=2_000_000, help="the number of rows (default: 2000000)")
    demo.add_argument("--output", default="demo", metavar="FOLDER", help="where its files go (default: %(default)s)")
    demo.set_defaults(json=False, to_stdout=False)


def _add(commands: Any, name: str, purpose: str, epilog: str | None = None) -> argparse.ArgumentParser:
    """Add a command."""
    command: argparse.ArgumentParser = commands.add_parser(name, help=purpose, description=f"{purpose}.", epilog=epilog)
    command.set_defaults(parser=command)
    return command


def _add_reader(
    commands: Any,
    name: str,
    purpose: str,
    *,
    labels: bool = True,
    group: str = "the group of each row; each group has its own staircase",
) -> argparse.ArgumentParser:
    """Add a command that reads a table."""
    command = _add(commands, name, purpose, _FILES)
    formats = "CSV, TSV, Parquet or Arrow stream"
    data = f"{formats} files, folders or quoted patterns such as 'days/*.csv'; - for standard input"
    command.add_argument("paths", metavar="DATA", nargs="+", help=data)
    command.add_argument("--score", default="score", metavar="COLUMN", help="the score (default: %(default)s)")
    if labels:
        command.add_argument("--label", default="label", metavar="COLUMN", help="the target (default: %(default)s)")
        positive = "the entry of the label column that counts as 1; all others count as 0, for example --positive yes"
        command.add_argument("--positive", metavar="VALUE", help=positive)
        command.add_argument("--weight", metavar="COLUMN", help="the weight of each row")
    command.add_argument("--group", metavar="COLUMN", help=group)
    command.add_argument("--format", choices=FORMATS, help="the format of pipes and of files with other extensions")
    separator = "the character between columns of text (default: a comma, or a tab in TSV)"
    command.add_argument("--delimiter", metavar="CHARACTER", type=_delimiter, help=separator)
    command.add_argument("--threads", metavar="N", type=_threads, help="number of threads (default: -1, all cores)")
    _add_printing(command)
    command.set_defaults(model=None, output=None, positive=None)
    return command


def _add_printing(command: argparse.ArgumentParser) -> None:
    command.add_argument("--json", action="store_true", help="print the result as JSON")
    silent = "show no progress bars; without this option, they are shown if standard error is a terminal"
    command.add_argument("--no-progress", action="store_true", help=silent)


def _add_choice(command: argparse.ArgumentParser, name: str, choices: Sequence[str], meaning: str) -> None:
    """Add an option whose default is the first choice."""
    command.add_argument(name, choices=choices, default=choices[0], help=f"{meaning} (default: {choices[0]})")


def _add_loss(command: argparse.ArgumentParser, default: str | None) -> None:
    command.add_argument(
        "--loss", type=_loss, default=default,
        help=f"NAME or NAME:PARAMETER, for example huber:1.5; one of {', '.join(BY_NAME)}"
        f"; {', '.join(_WITH_PARAMETER)} need a parameter (default: {default or 'the loss of the model'})",
    )  # fmt: skip
    _add_bounds(command)


def _add_bounds(command: argparse.ArgumentParser) -> None:
    bounds = "bounds on the values, for example 0,1 or -1,1 or 0,"
    command.add_argument("--bounds", type=_bounds, metavar="LO,HI", help=bounds)
