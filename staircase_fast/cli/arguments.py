"""The command `staircase-fast`: how it runs, its output, and its exit codes.

Exit codes: 0 success; 1 invalid data or files; 2 invalid arguments; 3 `certify` found that the model is not optimal;
130 interrupted; 141 the reader closed the output.  An error is one line on standard error.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import io
import json
import os
import re
import sys
import time
from collections.abc import Sequence
from typing import Any

from staircase_fast.cli.interrupts import caused_by_interrupt, interruptible
from staircase_fast.cli.labels import labels_of
from staircase_fast.cli.parser import parse
from staircase_fast.cli.printing import as_json, as_text, plain_warnings, without_progress, write_output
from staircase_fast.errors import InvalidInputError
from staircase_fast.inputs.options import import_optional

DONE, REFUSED, NOT_OPTIMAL, INTERRUPTED, NOT_READ = 0, 1, 3, 130, 141
# errors of files, numbers and missing extras; pyarrow raises NotImplementedError for columns that it cannot convert
_ERRORS = (OSError, ValueError, TypeError, ImportError, NotImplementedError, ArithmeticError, MemoryError)
# hints about calls of Python, and the options that do the same
_HINTS = {
    r"pass `np\.equal\(\w+, (\S+)\)`": r"pass --positive \1",
    r"Are `scores` and `\w+` swapped": "Are --score and --label swapped",
    r"pass `np\.clip\(\w+, 0, 1\)`": "replace it by 0 or 1",
    r"Pass finite numbers, e\.g\. \(-10, 10\), or \(-inf, inf\)": "Pass --bounds -10,10, or --bounds -inf,inf",
}
# of the commands that have no module of their own
_MODULES = {"fit": "commands", "certify": "commands", "export": "models", "merge": "models", "show": "models"}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    options = parse(sys.argv[1:] if arguments is None else arguments)
    outer = sys.exc_info()[1]
    try:
        with interruptible():
            optimal = run_command(options).get("optimal", True)
            write_output("")
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


def run_command(options: argparse.Namespace) -> dict[str, Any]:
    """Run a command; print and return its result."""
    for name in ("pyarrow", "tqdm"):
        import_optional(name, "this", extra="cli")
    module = _MODULES.get(options.command, options.command)
    function = getattr(importlib.import_module(f"staircase_fast.cli.{module}"), options.command)
    start = time.perf_counter()
    with contextlib.ExitStack() as stack:
        if getattr(options, "no_progress", False):
            stack.enter_context(without_progress())
        stack.enter_context(plain_warnings())
        stack.enter_context(labels_of(getattr(options, "positive", None)))
        result: dict[str, Any] = function(options)
    if result and options.command != "show":
        result["seconds"] = time.perf_counter() - start
    if options.json:
        write_output(json.dumps(as_json(result), allow_nan=False) + "\n")
    elif result and options.to_stdout:
        print(as_text(result), file=sys.stderr)
    elif result:
        write_output(as_text(result) + "\n")
    return result


def _one_line(error: BaseException) -> str:
    if isinstance(error, OSError) and error.errno:
        reason = os.strerror(error.errno)
        return reason if error.filename is None else f"{error.filename or repr('')}: {reason}"
    if isinstance(error, InvalidInputError):
        for call, option in _HINTS.items():
            error.hint = re.sub(call, option, error.hint)
    return " ".join(str(error).split()) or type(error).__name__
