"""A random call of the API as a script.  Each line is recorded before it runs, so any failure can be repeated."""

import os
import re
import traceback
from pathlib import Path
from typing import Any

import staircase_fast

PACKAGE = Path(staircase_fast.__file__).resolve().parent
PREAMBLE = """\
import warnings
import numpy as np
import staircase_fast as sf
from numpy import inf, nan
warnings.simplefilter("error")
"""
# imported before the first line that mentions them
MODULES = {
    "array.": "import array",
    "copy.": "import copy",
    "json.": "import json",
    "math.": "import math",
    "os.": "import os",
    "pa.": "import pyarrow as pa",
    "pd.": "import pandas as pd",
    "pickle.": "import pickle",
    "pl.": "import polars as pl",
    "skl.": "import staircase_fast.sklearn as skl",
    "tempfile.": "import tempfile",
    "threads.": "from staircase_fast import threads",
}
_MENTIONS = re.compile(r"\b(" + "|".join(re.escape(name) for name in MODULES) + ")")
_NUMBERS = re.compile(r"-?\d[\d.e+-]*|\b(inf|nan)\b")


class Finding(Exception):  # noqa: N818  (it is a result, not an error of the fuzzer)
    """A script that fails or gives a wrong result."""

    def __init__(self, script: str, problem: str, signature: str) -> None:
        super().__init__(problem)
        self.script, self.problem, self.signature = script, problem, signature


class Script:
    """Lines of Python that run one by one.  `journal` is a file that keeps them even if the process dies."""

    def __init__(self, kind: str, journal: int | None = None) -> None:
        self.kind = kind
        self.lines: list[str] = []
        self._journal = journal
        self._names: dict[str, Any] = {"__name__": "script"}
        if journal is not None:
            os.ftruncate(journal, 0)
            os.lseek(journal, 0, os.SEEK_SET)
        self.run(PREAMBLE.rstrip())

    def run(self, line: str) -> None:
        """Run a statement.  Any exception is a finding."""
        for module in sorted(set(_MENTIONS.findall(line))):
            needed = MODULES[module]
            if needed not in self.lines:
                self._record(needed)
                exec(needed, self._names)
        self._record(line)
        try:
            exec(compile(line, "<script>", "exec"), self._names)
        except Exception as error:
            raise self._finding(error) from error

    def let(self, name: str, expression: str) -> Any:
        """Assign a variable and return its value."""
        self.run(f"{name} = {expression}")
        return self._names[name]

    def expect(self, condition: str, otherwise: str) -> None:
        """Require a condition."""
        self.run(f"assert {condition}, {otherwise!r}")

    def check(self, passed: bool, condition: str, otherwise: str) -> None:
        """Require a result that was computed outside the script; `condition` expresses it in the script."""
        if not passed:
            self._record(f"assert {condition}, {otherwise!r}")
            raise self._finding(AssertionError(otherwise))

    def refuses(self, call: str) -> None:
        """Require that a call raises ValueError or TypeError."""
        self.run(
            f"try:\n    {call}\nexcept (ValueError, TypeError):\n    pass\n"
            "else:\n    raise AssertionError('invalid input was accepted')"
        )

    def allows(self, call: str) -> None:
        """Run a call that may raise ValueError or TypeError, but nothing else."""
        self.run(f"try:\n    {call}\nexcept (ValueError, TypeError):\n    pass")

    def __getitem__(self, name: str) -> Any:
        return self._names[name]

    @property
    def text(self) -> str:
        return "\n".join(self.lines) + "\n"

    def _record(self, line: str) -> None:
        self.lines.append(line)
        if self._journal is not None:
            os.write(self._journal, (line + "\n").encode())

    def _finding(self, error: Exception) -> Finding:
        problem = f"{type(error).__name__}: {error}"
        frames = traceback.extract_tb(error.__traceback__)
        ours = [f"{Path(one.filename).name}:{one.name}" for one in frames if PACKAGE in Path(one.filename).parents]
        where = ours[-1] if ours else ""
        return Finding(self.text, problem, f"{self.kind} | {_NUMBERS.sub('#', problem)[:100]} | {where}")
