"""The command `report`: the reliability of scores before and after calibration, as numbers, a page and a picture."""

from __future__ import annotations

import argparse
import contextlib
import datetime as dt
import importlib.metadata
import os
import platform
import shlex
import sys
import time
from collections.abc import Iterator
from typing import Any

import staircase_fast as sf
from staircase_fast.cli import commands, report_page, tables
from staircase_fast.errors import InvalidInputError
from staircase_fast.stack.sorted_rows import UNBOUNDED
from staircase_fast.storage import files

_PICTURES = (".png", ".svg", ".pdf")


def report(options: argparse.Namespace) -> commands.Result:
    """Assess scores before and after calibration; write a page and a picture."""
    start = time.perf_counter()
    model = commands.load_model(options.model) if options.model else None
    if model is not None:
        commands.check_group_option(options, model)
    extension = os.path.splitext(options.plot or "")[1].lower()
    if options.plot and extension not in _PICTURES:
        raise InvalidInputError("", f"a picture must end in one of {', '.join(_PICTURES)}", file=options.plot)
    with contextlib.ExitStack() as stack:
        # open the files first, so an error of theirs is reported before the work
        plot = stack.enter_context(_output(options.plot)) if options.plot else None
        page = stack.enter_context(_output(options.output)) if options.output else None
        data = commands.read_data(options)
        with commands.located(options):
            facts = _facts(options, model, data)
        if plot:
            plot.write(report_page.picture(facts, extension[1:]))
        if page:
            page.write(report_page.page(facts).encode())
    return {
        "rows": facts.before.n_samples,
        "steps": len(facts.model.left),
        "in_sample": facts.in_sample or None,  # nobody knows which rows a given model was fitted to
        "before": {name: getattr(facts.before, name) for name in report_page.NUMBERS},
        "after": {name: getattr(facts.after, name) for name in report_page.NUMBERS},
        "output": options.output,
        "plot": options.plot,
        "seconds": time.perf_counter() - start,
    }


@contextlib.contextmanager
def _output(path: str) -> Iterator[Any]:
    """A file that is replaced atomically, or standard output."""
    if path == "-":
        yield sys.stdout.buffer
    else:
        with tables.located(path), files.replacing(path) as file:
            yield file


def _facts(options: argparse.Namespace, given: commands.Model | None, data: dict[str, Any]) -> report_page.Facts:
    """Assess the scores; without a model, fit one to the same rows."""
    rows = {argument: column for argument, column in data.items() if argument != "groups"}
    settings = {"score": options.loss, "n_threads": options.threads}
    if options.bands:
        settings |= {"bands": options.bands, "seed": 0, "progress": sys.stderr.isatty()}
    before = sf.reliability(**rows, **settings)
    model = given
    if model is None:
        loss = "squared" if options.loss == "brier" else options.loss
        fitting = {"loss": loss, "bounds": UNBOUNDED, "n_threads": options.threads}  # log-odds may be infinite
        if "groups" in data:
            model = sf.fit_groups(**rows, groups=commands.keys_for(None, data["groups"], options), **fitting)
        else:
            model = sf.fit(**rows, **fitting)
    rows["scores"] = commands.predict(options, model, data)
    try:
        after = sf.reliability(**rows, **settings)
    except InvalidInputError as error:
        if error.argument == "scores":
            error.argument, error.requirement = "", f"values of the model {error.requirement}"
        raise
    name = os.path.basename(commands.data_file(options).name)
    return report_page.Facts(name, before, after, model, given is None, _details(options, model))


def _details(options: argparse.Namespace, model: commands.Model) -> dict[str, str]:
    """How the report was made; the command shows files without their folders."""
    paths = {options.data, options.model, options.output, options.plot}
    versions = [f"staircase_fast {sf.__version__}", f"Python {platform.python_version()}"]
    for name in ("numpy", "pyarrow", "matplotlib"):
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):  # matplotlib is optional
            versions.append(f"{name} {importlib.metadata.version(name)}")
    return {
        "command": shlex.join(["staircase-fast", *(_without_folder(word, paths) for word in options.arguments)]),
        "loss of the model": repr(model.loss),
        "date": dt.datetime.now(dt.UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "versions": ", ".join(versions),
    }


def _without_folder(word: str, paths: set[str | None]) -> str:
    """Remove the folder from a path, which may follow an option and "="."""
    option, equals, path = ("", "", word) if word in paths else word.partition("=")
    return option + equals + os.path.basename(path) if path in paths else word
