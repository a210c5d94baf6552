"""The command `report`: how reliable scores are before and after calibration, as numbers, a page and a picture."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import time
from collections.abc import Iterator
from typing import Any

import staircase_fast as sf
from staircase_fast.cli import checks, report_page
from staircase_fast.cli.commands import Model, Result, collected, keys_for, load, place, told_of
from staircase_fast.stack.sorted_rows import UNBOUNDED
from staircase_fast.storage import files


def report(options: argparse.Namespace) -> Result:
    """Tell how reliable scores are before and after calibration: numbers, a page, a picture."""
    start = time.perf_counter()
    model = load(options.model) if options.model else None
    if model is not None:
        checks.groups_fit_model(options.group, is_map=isinstance(model, sf.StaircaseMap))
    form = checks.picture_format(options.plot) if options.plot else ""
    with contextlib.ExitStack() as stack:
        paths = {
            path: stack.enter_context(_written(path)) for path in (options.output, options.plot) if path is not None
        }
        columns = collected(options)
        with told_of(options):
            groups = columns.pop("groups", None)
            facts = _facts(options, model, columns, groups)
        if options.plot is not None:
            paths[options.plot].write(report_page.picture(facts, form))
        if options.output is not None:
            paths[options.output].write(report_page.page(facts).encode())
    numbers = {
        which: {name: getattr(found, name) for name in report_page.NUMBERS}
        for which, found in (("before", facts.before), ("after", facts.after))
    }
    # which rows a model that is given was fitted to, nobody knows
    about = {"rows": facts.before.n_samples, "steps": len(facts.model.left), "in_sample": facts.in_sample or None}
    files_made = {"output": options.output, "plot": options.plot}
    return about | numbers | files_made | {"seconds": time.perf_counter() - start}


@contextlib.contextmanager
def _written(path: str) -> Iterator[Any]:
    """A file that is written whole, or standard output."""
    if path == "-":
        yield sys.stdout.buffer
    else:
        with checks.told_of_file(path), files.replacing(path) as file:
            yield file


def _facts(options: argparse.Namespace, given: Model | None, columns: dict[str, Any], groups: Any) -> report_page.Facts:
    """What a report tells; without a model, one is fitted to the rows themselves."""
    scores, rest = columns["scores"], {name: column for name, column in columns.items() if name != "scores"}
    settings = {"score": options.loss, "n_threads": options.threads}
    if options.bands:
        settings |= {"bands": options.bands, "seed": 0, "progress": sys.stderr.isatty()}
    before = sf.reliability(**columns, **settings)
    loss = "squared" if options.loss == "brier" else options.loss
    model = given
    if groups is not None:
        groups = keys_for(given, groups, options)
    fitting = {"loss": loss, "bounds": UNBOUNDED, "n_threads": options.threads}  # log-odds may be infinite
    if model is None and groups is None:
        model = sf.fit(**columns, **fitting)
    elif model is None:
        model = sf.fit_groups(**columns, groups=groups, **fitting)
    if isinstance(model, sf.StaircaseMap):
        calibrated = model.predict(scores, groups, n_threads=options.threads)
    else:
        calibrated = model.predict(scores, n_threads=options.threads)
    with checks.told_of_values():
        after = sf.reliability(calibrated, **rest, **settings)
    name = os.path.basename(place(options, options.data).name)
    return report_page.Facts(name, before, after, model, given is None, _made(options, model))


def _made(options: argparse.Namespace, model: Model) -> dict[str, str]:
    """How a report was made; files by their names alone."""
    import datetime as dt
    import platform
    import shlex
    from importlib.metadata import PackageNotFoundError, version

    paths = {options.data, options.model, options.output, options.plot}
    words = [_without_folder(word, paths) for word in options.arguments]
    libraries = []
    for name in ("numpy", "pyarrow", "matplotlib"):
        with contextlib.suppress(PackageNotFoundError):  # numbers need no matplotlib
            libraries.append(f"{name} {version(name)}")
    return {
        "command": shlex.join(["staircase-fast", *words]),
        "loss of the model": repr(model.loss),
        "date": dt.datetime.now(dt.UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "versions": ", ".join([f"staircase_fast {sf.__version__}", f"Python {platform.python_version()}", *libraries]),
    }


def _without_folder(word: str, paths: set[str | None]) -> str:
    """A word of a command line; a path, alone or behind an option and "=", by its name."""
    option, equals, path = ("", "", word) if word in paths else word.partition("=")
    return option + equals + os.path.basename(path) if path in paths else word
