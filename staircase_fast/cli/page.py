"""The HTML page of a report.

It is self-contained: its policy forbids scripts and requests.  All text from outside is escaped.
"""

from __future__ import annotations

import argparse
import base64
import datetime as dt
import hashlib
import html
import importlib.metadata
import itertools
import math
import os
import platform
import shlex
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import staircase_fast as sf
from staircase_fast.calibration.reliability import number_text
from staircase_fast.cli import commands, pictures
from staircase_fast.cli.printing import shown

if TYPE_CHECKING:
    from staircase_fast.cli.report import Report, Segment

MAX_STEPS = 500  # that the page lists
MEANINGS = {
    "mean_score": "mean score of the forecasts; lower is better",
    "miscalibration": "the part that recalibration would remove; lower is better",
    "discrimination": "the part that the ranking of the scores removes; higher is better",
    "uncertainty": "mean score of the best constant forecast",
    "calibration_error": "mean distance of the scores from the recalibrated scores; positive even if calibrated",
    # of probabilities with labels 0 and 1
    "calibration_error_if_calibrated": "the calibration error that calibrated scores would show for as many rows",
    "debiased_calibration_error": "the difference of the two; about 0 if calibrated",
    "debiased_miscalibration": "miscalibration minus that of calibrated scores; about 0 if calibrated",
    "monotone_p_value": "if below 0.01, outcomes decrease somewhere as scores increase, and the errors are too small",
}

_STYLE = """
:root { color-scheme: light dark; }
body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem; font: 16px/1.5 system-ui, sans-serif; }
h1, h2 { line-height: 1.2; overflow-wrap: anywhere; }
h2 { margin-top: 2.5rem; }
img { width: 100%; min-width: 38rem; height: auto; }
div { overflow: auto; margin: 1rem 0; }
div.long { max-height: 32rem; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .3rem 1.2rem .3rem 0; border-top: 1px solid #8888; text-align: right; }
th:first-child, td:first-child { text-align: left; }
small { display: block; font-weight: normal; }
details > summary { cursor: pointer; padding: .4rem 0; }
#details td { text-align: left; overflow-wrap: anywhere; }
#details tr:first-child td { white-space: nowrap; }  /* the command */
@media screen and (prefers-color-scheme: dark) { img { filter: invert(1) hue-rotate(180deg) brightness(1.5); } }
@media print { :root { color-scheme: light; } div, div.long { max-height: none; overflow: visible; }
  img { min-width: 0; } tr, img { break-inside: avoid; } }
"""


def html_page(options: argparse.Namespace, made: Report) -> str:
    """The page as text."""
    before, after = made.found.pair
    title = html.escape(f"Calibration of {os.path.basename(commands.data_name(options))}")
    digest = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
    note = (
        "<p>The model was fitted to the same rows, so these results are optimistic. Pass a model that was fitted to "
        "other rows for an unbiased estimate.</p>"
    )
    alt = (
        f"Two reliability diagrams. Miscalibration before calibration: {number_text(before.miscalibration)}. After "
        f"calibration: {number_text(after.miscalibration)}."
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
{note if made.in_sample else ""}
<h2>Reliability diagrams</h2>
{_image(pictures.diagrams(made.found.pair, "svg"), alt)}
<p>The curves show the mean outcome for each score. The curve of a calibrated forecast lies on the diagonal.\
{_band(before)}</p>
<h2>Numbers</h2>
<p>Mean score = miscalibration - discrimination + uncertainty.</p>
{_table("numbers", ("number", "before", "after"), _numbers(*made.found.numbers))}
{_segments(made, options.group) if made.segments else ""}
<h2>From score to calibrated value</h2>
{_image(pictures.curve(made.model), "The values of the model over the scores.")}
{_steps(made.model)}
<h2>Details</h2>
{_table("details", (), _details(options, made.model))}
</body>
</html>
"""


def _image(picture: bytes, alt: str) -> str:
    source = base64.b64encode(picture).decode()
    return f'<div tabindex="0"><img src="data:image/svg+xml;base64,{source}" alt="{html.escape(alt)}"></div>'


def _segments(made: Report, column: str) -> str:
    """A table of all segments, diagrams of the worst ones, and the other table, folded."""
    which = made.judged
    worst = made.segments[: pictures.WORST]
    names = ", ".join(str(segment.key) for segment in worst)
    times = ("before", "after")[which]
    image = pictures.segments([(str(one.key), one.pair[which]) for one in worst])
    alt = f"Reliability diagrams of the segments {names}, {times} calibration."
    return f"""<h2>Segments by {html.escape(column)}</h2>
<p>{len(made.segments):,} segments {times} calibration, the least calibrated first. {_order(made)} The p-value tests
whether the scores of a segment are calibrated. It is 0 if an event with forecast probability 0 occurs. Among many
segments a few have small p-values by chance.</p>
{_table_of_segments("segments", made.segments, which)}
{_image(image, alt)}
<details><summary>The same table {("after", "before")[which]} calibration</summary>
{_table_of_segments("other-segments", made.segments, 1 - which)}
</details>"""


def _order(made: Report) -> str:
    """What the order of the segments is."""
    if made.segments[0].errors[made.judged] is None:
        return "The order is that of miscalibration."
    return (
        "The order is that of the debiased calibration error minus twice its standard deviation if scores are "
        "calibrated, so small segments do not come first by chance."
    )


def _table_of_segments(name: str, segments: list[Segment], which: int) -> str:
    rows = [segment.row(which) for segment in segments]
    titles = dict.fromkeys(title for row in rows for title in row)
    head = (_spelled(title) for title in titles)
    return _table(name, head, (map(_cell, (shown(row.get(title)) for title in titles)) for row in rows), "long")


def _band(before: sf.Reliability) -> str:
    """Which band is drawn, and what it promises."""
    if before.bands is None:
        return ""
    p_value = before.bands.p_value
    test = "" if math.isnan(p_value) else f" The test that the scores are calibrated has p-value {p_value:.2g}."
    return f" Shaded: {before.bands.description}. {before.bands.promise}{test}".replace(" %", "\N{NO-BREAK SPACE}%")


def _summary(before: sf.Reliability, after: sf.Reliability) -> str:
    name = "Brier score" if before.score_name == "brier" else before.score_name.replace("_", " ")
    change = f"The mean {name} changes from {number_text(before.mean_score)} to {number_text(after.mean_score)}."
    if 0 < before.miscalibration < float("inf") and after.miscalibration <= before.miscalibration:
        share = 1 - after.miscalibration / before.miscalibration
        return f"{change} Calibration removes {100 * share:.1f}\N{NO-BREAK SPACE}% of the miscalibration."
    return change


def _spelled(name: str) -> str:
    return name.replace("_", " ").replace("p value", "p\N{NON-BREAKING HYPHEN}value")


def _cell(text: object) -> str:
    return f"<td>{html.escape(str(text))}</td>"


def _table(name: str, head: Iterable[str], rows: Iterable[Iterable[str]], kind: str = "short") -> str:
    """A table with the names of its columns, and rows of cells; a "long" one can be scrolled."""
    titles = "".join(f'<th scope="col">{title}</th>' for title in head)
    top = f"<thead><tr>{titles}</tr></thead>\n" if titles else ""
    body = "\n".join(f"<tr>{''.join(row)}</tr>" for row in rows)
    return f'<div class="{kind}" tabindex="0"><table id="{name}">\n{top}<tbody>\n{body}\n</tbody></table></div>'


def _numbers(before: dict[str, float], after: dict[str, float]) -> Iterator[list[str]]:
    for name in before:
        title, meaning = _spelled(name).capitalize(), MEANINGS[name]
        yield [f'<th scope="row">{title}<small>{meaning}</small></th>'] + [
            f'<td id="{which}-{name}" data-value="{numbers[name]!r}">{number_text(numbers[name])}</td>'
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
        columns[name] = map(shown, column[:MAX_STEPS].tolist())
    n = len(model.left)
    note = f"The first {MAX_STEPS:,} of {n:,} steps." if n > MAX_STEPS else f"Number of steps: {n:,}."
    table = _table("steps", columns, (map(_cell, row) for row in zip(*columns.values(), strict=True)), "long")
    return f"""<details><summary>{note} A score has the value of the last step that begins at or below it.</summary>
{table}
</details>"""


def _details(options: argparse.Namespace, model: commands.Model) -> Iterator[list[str]]:
    """How the report was made; the command shows files without their folders."""
    paths = {*options.paths, options.model, options.output, options.plot}
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
    return option + equals + os.path.basename(os.path.normpath(path)) if path in paths else word
