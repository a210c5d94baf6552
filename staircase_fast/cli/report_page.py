"""The HTML page and the picture of `report`.

The page is self-contained: its policy forbids scripts and requests.  All text from outside is escaped.
"""

from __future__ import annotations

import base64
import hashlib
import html
import io
import itertools
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from staircase_fast.groups.staircase_map import StaircaseMap
from staircase_fast.inputs.options import import_optional

if TYPE_CHECKING:
    import staircase_fast as sf

MAX_STEPS = 500  # that the page lists

NUMBERS = {
    "mean_score": ("Mean score", "mean score of the forecasts; lower is better"),
    "miscalibration": ("Miscalibration", "the part that recalibration would remove; lower is better"),
    "discrimination": ("Discrimination", "the part that the ranking of the scores removes; higher is better"),
    "uncertainty": ("Uncertainty", "mean score of the best constant forecast"),
    "calibration_error": ("Calibration error", "mean distance of the scores from the recalibrated scores"),
}

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


class Facts(NamedTuple):
    """The content of a report."""

    data: str  # the name of the file
    before: sf.Reliability
    after: sf.Reliability
    model: sf.Staircase | StaircaseMap
    in_sample: bool  # whether the model was fitted to the same rows
    details: dict[str, str]  # how the report was made


def page(facts: Facts) -> str:
    """The HTML page."""
    before, after = facts.before, facts.after
    title = html.escape(f"Calibration of {facts.data}")
    digest = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
    image = base64.b64encode(picture(facts, "svg", numbers=False)).decode()
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
{note if facts.in_sample else ""}
<h2>Reliability diagrams</h2>
<div tabindex="0"><img src="data:image/svg+xml;base64,{image}" alt="Two reliability diagrams. Miscalibration before \
calibration: {_number(before.miscalibration)}. After calibration: {_number(after.miscalibration)}."></div>
<p>The curves show the mean outcome for each score. The curve of a calibrated forecast lies on the diagonal.</p>
<h2>Numbers</h2>
<p>Mean score = miscalibration - discrimination + uncertainty.</p>
{_numbers(before, after)}
<h2>Steps of the model</h2>
{_steps(facts.model)}
<h2>Details</h2>
{_table("details", "", ([f'<th scope="row">{html.escape(k)}</th>', _cell(v)] for k, v in facts.details.items()))}
</body>
</html>
"""


def picture(facts: Facts, form: str, *, numbers: bool = True) -> bytes:
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
        for axes, name in zip(figure.subplots(1, 2), ("before", "after"), strict=True):
            getattr(facts, name).plot(axes, numbers=numbers)
            axes.set_title(name, fontsize="large")
        figure.savefig(image, format=form, metadata={"Date": None} if form == "svg" else None)
    return image.getvalue()


def _number(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:.6g}"


def _cell(text: object) -> str:
    return f"<td>{html.escape(str(text))}</td>"


def _table(name: str, head: str, rows: Iterable[list[str]]) -> str:
    body = "\n".join(f"<tr>{''.join(row)}</tr>" for row in rows)
    head = f"<thead><tr>{head}</tr></thead>\n" if head else ""
    return f'<div tabindex="0"><table id="{name}">\n{head}<tbody>\n{body}\n</tbody></table></div>'


def _head(names: Iterable[str]) -> str:
    return "".join(f'<th scope="col">{name}</th>' for name in names)


def _summary(before: sf.Reliability, after: sf.Reliability) -> str:
    name = "Brier score" if before.score_name == "brier" else before.score_name.replace("_", " ")
    change = f"The mean {name} changes from {_number(before.mean_score)} to {_number(after.mean_score)}."
    if 0 < before.miscalibration < float("inf") and after.miscalibration <= before.miscalibration:
        share = 1 - after.miscalibration / before.miscalibration
        return f"{change} Calibration removes {share:.1%} of the miscalibration."
    return change


def _numbers(before: sf.Reliability, after: sf.Reliability) -> str:
    rows = []
    for name, (title, meaning) in NUMBERS.items():
        row = [f'<th scope="row">{title}<small>{meaning}</small></th>']
        for which, found in (("before", before), ("after", after)):
            value = getattr(found, name)
            row.append(f'<td id="{which}-{name}" data-value="{value!r}">{_number(value)}</td>')
        rows.append(row)
    return _table("numbers", "<td></td>" + _head(("before", "after")), rows)


def _steps(model: sf.Staircase | StaircaseMap) -> str:
    columns: dict[str, Iterable[object]] = {}
    if isinstance(model, StaircaseMap):
        keys = (key for key, staircase in model.items() for _ in range(staircase.n_steps))
        columns["group"] = itertools.islice(keys, MAX_STEPS)
    values = model.step_values if isinstance(model, StaircaseMap) else model.values
    numbers = {"first score": model.left, "last score": model.right, "value": values}
    if (model.weights != model.counts).any():
        numbers["weight"] = model.weights
    for name, column in (numbers | {"rows": model.counts}).items():
        columns[name] = map(_number, column[:MAX_STEPS].tolist())
    table = _table("steps", _head(columns), (list(map(_cell, row)) for row in zip(*columns.values(), strict=True)))
    n = len(model.left)
    note = f"The first {MAX_STEPS:,} of {n:,} steps." if n > MAX_STEPS else f"Number of steps: {n:,}."
    return f"<p>{note} A score has the value of the last step that begins at or below it.</p>\n{table}"
