"""The command `report`: the reliability of scores before and after calibration, as numbers, a page and a picture.

The HTML page is self-contained: its policy forbids scripts and requests.  All text from outside is escaped.
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import datetime as dt
import hashlib
import html
import importlib.metadata
import io
import itertools
import math
import os
import platform
import shlex
import sys
import warnings
from collections.abc import Iterable, Iterator
from typing import Any

import staircase_fast as sf
from staircase_fast.cli import commands, tables
from staircase_fast.errors import InvalidInputError
from staircase_fast.inputs.options import import_optional
from staircase_fast.stack.sorted_rows import UNBOUNDED
from staircase_fast.storage import files

MAX_STEPS = 500  # that the page lists
NUMBERS = {
    "mean_score": "mean score of the forecasts; lower is better",
    "miscalibration": "the part that recalibration would remove; lower is better",
    "discrimination": "the part that the ranking of the scores removes; higher is better",
    "uncertainty": "mean score of the best constant forecast",
    "calibration_error": "mean distance of the scores from the recalibrated scores; positive even if calibrated",
}
# of probabilities with labels 0 and 1
ERRORS = {
    "calibration_error_if_calibrated": "the calibration error that calibrated scores would show for as many rows",
    "debiased_calibration_error": "the difference of the two; about 0 if calibrated",
    "debiased_miscalibration": "miscalibration minus that of calibrated scores; about 0 if calibrated",
    "monotone_p_value": "if below 0.01, outcomes decrease somewhere as scores increase, and the errors are too small",
}
_SIMULATED_ROWS = 10**8  # at most, for ERRORS

_PICTURES = (".png", ".svg", ".pdf")
_STYLE = """
:root { color-scheme: light dark; }
body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem; font: 16px/1.5 system-ui, sans-serif; }
h1, h2 { line-height: 1.2; overflow-wrap: anywhere; }
h2 { margin-top: 2.5rem; }
img { width: 100%; min-width: 38rem; height: auto; }
div { overflow: auto; max-height: 32rem; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .3rem 1.2rem .3rem 0; border-top: 1px solid #8888; text-align: right; }
th:first-child, td:first-child { text-align: left; }
small { display: block; font-weight: normal; }
#details td { text-align: left; overflow-wrap: anywhere; }
@media screen and (prefers-color-scheme: dark) { img { filter: invert(1) hue-rotate(180deg); } }
@media print { :root { color-scheme: light; } div { max-height: none; overflow: visible; }
  img { min-width: 0; } tr, img { break-inside: avoid; } }
"""


def report(options: argparse.Namespace) -> commands.Result:
    """Assess scores before and after calibration; write a page and a picture."""
    given = commands.given_model(options) if options.model else None
    extension = os.path.splitext(options.plot or "")[1].lower()
    if options.plot and extension not in _PICTURES:
        raise InvalidInputError("", f"a picture must end in one of {', '.join(_PICTURES)}", file=options.plot)
    with contextlib.ExitStack() as stack:
        # open the files first, so an error of theirs is reported before the work
        plot = stack.enter_context(_output(options.plot)) if options.plot else None
        page = stack.enter_context(_output(options.output)) if options.output else None
        data = commands.read_data(options)
        with commands.located(options):
            before, after, model, numbers = _assess(options, given, data)
        if plot:
            plot.write(picture(before, after, extension[1:]))
        if page:
            page.write(_page(options, before, after, model, numbers).encode())
    return {
        "rows": before.n_samples,
        "steps": len(model.left),
        "in_sample": given is None or None,  # nobody knows which rows a given model was fitted to
        "before": numbers[0],
        "after": numbers[1],
        "output": options.output,
        "plot": options.plot,
    }


@contextlib.contextmanager
def _output(path: str) -> Iterator[Any]:
    """A file that is replaced atomically, or standard output."""
    if path == "-":
        yield sys.stdout.buffer
    else:
        with tables.located(path), files.replacing(path) as file:
            yield file


def _assess(
    options: argparse.Namespace, model: commands.Model | None, data: dict[str, Any]
) -> tuple[sf.Reliability, sf.Reliability, commands.Model, list[dict[str, float]]]:
    """The reliability before and after calibration, the model, and the numbers before and after.

    Without a model, fit one to the same rows.
    """
    rows = {argument: column for argument, column in data.items() if argument != "groups"}
    settings = {"score": options.loss, "n_threads": options.threads}
    if options.bands:
        settings |= {"bands": options.bands, "seed": 0, "progress": sys.stderr.isatty()}
    before = sf.reliability(**rows, **settings)
    numbers = [_numbers_of(before, rows, options)]
    if model is None:
        loss = "squared" if options.loss == "brier" else options.loss
        model = commands.fit_rows(options, data, loss=loss, bounds=UNBOUNDED)  # log-odds may be infinite
    rows["scores"] = commands.predict(options, model, data)
    try:
        after = sf.reliability(**rows, **settings)
    except InvalidInputError as error:
        if error.argument == "scores":
            error.argument, error.requirement = "", f"values of the model {error.requirement}"
        raise
    return before, after, model, [*numbers, _numbers_of(after, rows, options)]


def _numbers_of(found: sf.Reliability, rows: dict[str, Any], options: argparse.Namespace) -> dict[str, float]:
    """NUMBERS, and ERRORS if they are defined."""
    numbers = {name: getattr(found, name) for name in NUMBERS}
    if found.score_name in ("brier", "log_loss") and ((rows["targets"] == 0) | (rows["targets"] == 1)).all():
        n_resamples = min(100, max(10, _SIMULATED_ROWS // found.n_samples))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the p-value is among the numbers
            errors = sf.calibration_errors(**rows, n_resamples=n_resamples, n_threads=options.threads)
        assert isinstance(errors, sf.CalibrationErrors)
        numbers["calibration_error_if_calibrated"] = errors.calibration_error.if_calibrated
        numbers["debiased_calibration_error"] = errors.calibration_error.debiased
        if found.score_name == "brier":
            numbers["debiased_miscalibration"] = errors.miscalibration.debiased
        numbers["monotone_p_value"] = errors.monotone_p_value
    return numbers


def picture(before: sf.Reliability, after: sf.Reliability, form: str, *, numbers: bool = True) -> bytes:
    """Both diagrams as an image in the format "svg", "png" or "pdf", with or without numbers in them."""
    import_optional("matplotlib", "this", extra="plot")
    import matplotlib.figure  # without pyplot, there is no window and no shared state
    import matplotlib.style

    image = io.BytesIO()
    settings = {"svg.hashsalt": "staircase"}
    if form == "svg":
        settings |= {"savefig.facecolor": "none", "axes.facecolor": "none"}
    with matplotlib.style.context(["default", settings]):
        figure = matplotlib.figure.Figure(figsize=(10.5, 5.2), dpi=150, layout="constrained")
        for axes, name, found in zip(figure.subplots(1, 2), ("before", "after"), (before, after), strict=True):
            sf.ReliabilityDisplay(found).plot(axes, histogram=True, numbers=numbers, legend=found.bands is not None)
            axes.set_title(name, fontsize="large")
        figure.savefig(image, format=form, metadata={"Date": None} if form == "svg" else None)
    return image.getvalue()


def _page(
    options: argparse.Namespace,
    before: sf.Reliability,
    after: sf.Reliability,
    model: commands.Model,
    numbers: list[dict[str, float]],
) -> str:
    title = html.escape(f"Calibration of {os.path.basename(commands.data_file(options).name)}")
    digest = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
    image = base64.b64encode(picture(before, after, "svg", numbers=False)).decode()
    note = (
        "<p>The model was fitted to the same rows, so these results are optimistic. Pass a model that was fitted to "
        "other rows for an unbiased estimate.</p>"
    )
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:; style-src 'sha256-{digest}'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,">
<title>{title}</title>
<style>{_STYLE}</style>
</head>
<body>
<h1>{title}</h1>
<p>{before.n_samples:,} rows. {html.escape(_summary(before, after))}</p>
{"" if options.model else note}
<h2>Reliability diagrams</h2>
<div tabindex="0"><img src="data:image/svg+xml;base64,{image}" alt="Two reliability diagrams. Miscalibration before \
calibration: {_number(before.miscalibration)}. After calibration: {_number(after.miscalibration)}."></div>
<p>The curves show the mean outcome for each score. The curve of a calibrated forecast lies on the diagonal.\
{_band(before)}</p>
<h2>Numbers</h2>
<p>Mean score = miscalibration - discrimination + uncertainty.</p>
{_table("numbers", ("number", "before", "after"), _numbers(*numbers))}
<h2>Steps of the model</h2>
{_steps(model)}
<h2>Details</h2>
{_table("details", (), _details(options, model))}
</body>
</html>
"""


def _band(before: sf.Reliability) -> str:
    """Which band is drawn, and what it promises."""
    if before.bands is None:
        return ""
    p_value = before.bands.p_value
    test = "" if math.isnan(p_value) else f" The test that the scores are calibrated has p-value {p_value:.2g}."
    return f" Shaded: {before.bands.description}. {before.bands.promise}{test}"


def _summary(before: sf.Reliability, after: sf.Reliability) -> str:
    name = "Brier score" if before.score_name == "brier" else before.score_name.replace("_", " ")
    change = f"The mean {name} changes from {_number(before.mean_score)} to {_number(after.mean_score)}."
    if 0 < before.miscalibration < float("inf") and after.miscalibration <= before.miscalibration:
        share = 1 - after.miscalibration / before.miscalibration
        return f"{change} Calibration removes {share:.1%} of the miscalibration."
    return change


def _number(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:.6g}"


def _cell(text: object) -> str:
    return f"<td>{html.escape(str(text))}</td>"


def _table(name: str, head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A table with the names of its columns, and rows of cells."""
    titles = "".join(f'<th scope="col">{title}</th>' for title in head)
    top = f"<thead><tr>{titles}</tr></thead>\n" if titles else ""
    body = "\n".join(f"<tr>{''.join(row)}</tr>" for row in rows)
    return f'<div tabindex="0"><table id="{name}">\n{top}<tbody>\n{body}\n</tbody></table></div>'


def _numbers(before: dict[str, float], after: dict[str, float]) -> Iterator[list[str]]:
    for name in before:
        title, meaning = name.replace("_", " ").capitalize(), (NUMBERS | ERRORS)[name]
        yield [f'<th scope="row">{title}<small>{meaning}</small></th>'] + [
            f'<td id="{which}-{name}" data-value="{numbers[name]!r}">{_number(numbers[name])}</td>'
            for which, numbers in (("before", before), ("after", after))
        ]


def _steps(model: commands.Model) -> str:
    columns: dict[str, Iterable[object]] = {}
    if isinstance(model, sf.StaircaseMap):
        keys = (key for key, staircase in model.items() for _ in range(staircase.n_steps))
        columns["group"] = itertools.islice(keys, MAX_STEPS)
    values = model.step_values if isinstance(model, sf.StaircaseMap) else model.values
    numbers = {"first score": model.left, "last score": model.right, "value": values}
    if (model.weights != model.counts).any():
        numbers["weight"] = model.weights
    for name, column in (numbers | {"rows": model.counts}).items():
        columns[name] = map(_number, column[:MAX_STEPS].tolist())
    n = len(model.left)
    note = f"The first {MAX_STEPS:,} of {n:,} steps." if n > MAX_STEPS else f"Number of steps: {n:,}."
    table = _table("steps", columns, (map(_cell, row) for row in zip(*columns.values(), strict=True)))
    return f"<p>{note} A score has the value of the last step that begins at or below it.</p>\n{table}"


def _details(options: argparse.Namespace, model: commands.Model) -> Iterator[list[str]]:
    """How the report was made; the command shows files without their folders."""
    paths = {options.data, options.model, options.output, options.plot}
    others = [f"{name} {importlib.metadata.version(name)}" for name in ("numpy", "pyarrow", "matplotlib")]
    for title, text in {
        "command": shlex.join(["staircase-fast", *(_without_folder(word, paths) for word in options.arguments)]),
        "loss of the model": repr(model.loss),
        "date": dt.datetime.now(dt.UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "versions": ", ".join([f"staircase_fast {sf.__version__}", f"Python {platform.python_version()}", *others]),
    }.items():
        yield [f'<th scope="row">{title}</th>', _cell(text)]


def _without_folder(word: str, paths: set[str | None]) -> str:
    """Remove the folder from a path, which may follow an option and "="."""
    option, equals, path = ("", "", word) if word in paths else word.partition("=")
    return option + equals + os.path.basename(path) if path in paths else word
