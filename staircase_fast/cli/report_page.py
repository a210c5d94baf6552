"""A page of HTML that tells how reliable scores are before and after calibration; it needs nothing but itself.

Nothing in it is executed or fetched: a policy in its head forbids both.  All text from outside is escaped.
"""

from __future__ import annotations

import base64
import hashlib
import html
import io
import itertools
from typing import TYPE_CHECKING, Any, NamedTuple

from numpy.typing import NDArray

from staircase_fast.groups.staircase_map import StaircaseMap
from staircase_fast.inputs.options import import_optional

if TYPE_CHECKING:
    import staircase_fast as sf

ALL_STEPS = 500  # up to so many are listed
FIRST_STEPS = 50  # else so many

NUMBERS = {
    "mean_score": ("Mean score", "of the scores as forecasts; the less, the better"),
    "miscalibration": ("Miscalibration", "what recalibration would still save"),
    "discrimination": ("Discrimination", "what the scores know; the more, the better"),
    "uncertainty": ("Uncertainty", "the mean score of the best constant"),
    "calibration_error": ("Calibration error", "how far scores are from recalibrated ones on average"),
}
_CURVE_ON_DARK, _BAND_ON_DARK = "#6cb2ff", "#264a6e"
_IMAGE = '<source media="screen and (prefers-color-scheme: dark)" srcset="{dark}"><img src="{light}" alt="{alt}">'

_STYLE = """
:root { color-scheme: light dark; --paper: #fbfbfa; --card: #ffffff; --ink: #1c2024; --soft: #5c6570; --line: #dfe3e6;
  --accent: #0b6bcb; --good: #12784a; }
@media (prefers-color-scheme: dark) { :root { --paper: #131619; --card: #1b1f23; --ink: #e8ebee; --soft: #9ba5af;
  --line: #31373d; --accent: #6cb2ff; --good: #57c98f; } }
* { box-sizing: border-box; }
body { margin: 0; padding: 2.5rem 1.25rem 4rem; background: var(--paper); color: var(--ink);
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; }
main { max-width: 66rem; margin: 0 auto; }
h1 { font-size: 1.9rem; line-height: 1.2; margin: 0 0 .25rem; letter-spacing: -.01em; }
h2 { font-size: 1.15rem; margin: 2.5rem 0 .75rem; }
p { margin: .5rem 0; max-width: 46rem; }
.soft, caption, small { color: var(--soft); }
.verdict { font-size: 1.15rem; margin-top: 1.25rem; }
.note { border-left: 3px solid var(--accent); padding-left: .9rem; }
.card { background: var(--card); border: 1px solid var(--line); border-radius: .6rem; padding: 1rem; overflow-x: auto; }
figure { margin: 0; } figcaption { color: var(--soft); font-size: .9rem; margin-top: .5rem; }
img { display: block; width: 100%; height: auto; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
caption { text-align: left; font-size: .9rem; padding-bottom: .5rem; }
th, td { padding: .45rem .75rem; text-align: right; border-top: 1px solid var(--line); white-space: nowrap; }
th:first-child, td:first-child { text-align: left; }
thead th, thead td { border-top: 0; color: var(--soft); font-weight: 600; font-size: .9rem; }
tbody th { font-weight: 600; } tbody th small { display: block; font-weight: 400; white-space: normal; }
td.better { color: var(--good); font-weight: 600; }
.long { max-height: 26rem; overflow: auto; } .long thead th { position: sticky; top: -1rem; background: var(--card); }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .35rem 1.25rem; margin: 0; }
dt { color: var(--soft); } dd { margin: 0; overflow-wrap: anywhere; } code { font-size: .92em; }
@media print { body { background: #fff; color: #000; padding: 0; font-size: 11pt; } .long { max-height: none; }
  .card { border: 0; padding: 0; } tr, figure { break-inside: avoid; } .long thead th { position: static; } }
"""


class Facts(NamedTuple):
    """What a page tells."""

    data: str
    """The name of the file."""
    before: sf.Reliability
    after: sf.Reliability
    model: sf.Staircase | StaircaseMap
    in_sample: bool
    """Whether the model was fitted to these rows."""
    made: dict[str, str]
    """How it was made: what, and how."""


def page(facts: Facts) -> str:
    """The whole page."""
    style = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:; style-src 'sha256-{style}'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,">
<title>Calibration of {_text(facts.data)}</title>
<style>{_STYLE}</style>
</head>
<body>
<main>
<header>
<h1>Calibration of {_text(facts.data)}</h1>
<p class="soft">{facts.before.n_samples:,} rows; {len(facts.model.left):,} steps; scored by \
{_text(_score(facts))}</p>
<p class="verdict">{_text(_verdict(facts))}</p>
{_note(facts)}
</header>
{_picture(facts)}
{_numbers(facts)}
{_steps(facts.model)}
{_made(facts.made)}
</main>
</body>
</html>
"""


def picture(facts: Facts, form: str, *, numbers: bool = True, dark: bool = False) -> bytes:
    """The diagrams before and after as an image: "svg", "png", "pdf" ..; numbers are written into it, or not."""
    import_optional("matplotlib", "this", extra="plot")
    import matplotlib.figure  # without pyplot: no window, nothing shared
    import matplotlib.style

    image = io.BytesIO()
    plain = {"svg.hashsalt": "staircase"}
    if form == "svg":
        plain |= {"savefig.facecolor": "none", "axes.facecolor": "none"}  # the page shines through
    with matplotlib.style.context(["dark_background", plain] if dark else ["default", plain]):
        figure = matplotlib.figure.Figure(figsize=(10.5, 5.2), dpi=150, layout="constrained")
        titles = ("before", "after")
        for axes, title, found in zip(figure.subplots(1, 2), titles, (facts.before, facts.after), strict=True):
            found.plot(axes, numbers=numbers, color=_CURVE_ON_DARK if dark else None)
            for shape in axes.collections if dark else ():
                if shape.get_label().endswith("band"):
                    shape.set_color(_BAND_ON_DARK)
            axes.set_title(title, fontsize="large")
        figure.savefig(image, format=form, metadata={"Date": None} if form == "svg" else None)
    return image.getvalue()


def _text(given: object) -> str:
    return html.escape(str(given), quote=True)


def _number(given: float) -> str:
    return f"{given:,}" if isinstance(given, int) else f"{given:.6g}"


def _score(facts: Facts) -> str:
    name = facts.before.score_name
    return "Brier score" if name == "brier" else name.replace("_", " ")


def _verdict(facts: Facts) -> str:
    before, after = facts.before, facts.after
    told = f"The mean {_score(facts)} goes from {_number(before.mean_score)} to {_number(after.mean_score)}"
    if 0 < before.miscalibration < float("inf") and after.miscalibration <= before.miscalibration:
        share = 1 - after.miscalibration / before.miscalibration
        return f"{told}: calibration takes away {share:.1%} of the miscalibration."
    return f"{told}."


def _note(facts: Facts) -> str:
    if not facts.in_sample:
        return ""
    return (
        '<p class="note">The model was fitted to these very rows: what is told of after is what calibration can reach '
        "at best. Give a model that was fitted to other rows to see what it does reach.</p>"
    )


def _picture(facts: Facts) -> str:
    links = {}
    for name, dark in (("light", False), ("dark", True)):
        image = base64.b64encode(picture(facts, "svg", numbers=False, dark=dark)).decode()
        links[name] = f"data:image/svg+xml;base64,{image}"
    alt = (
        f"Two reliability diagrams side by side, of scores against what happened. Before: miscalibration "
        f"{_number(facts.before.miscalibration)}. After: {_number(facts.after.miscalibration)}."
    )
    return f"""<section>
<h2>Reliability</h2>
<figure class="card">
<picture>{_IMAGE.format(**links, alt=_text(alt))}</picture>
<figcaption>What happened, by score: the staircase is the best calibration there is, and reliable scores lie on the \
diagonal.</figcaption>
</figure>
</section>"""


def _numbers(facts: Facts) -> str:
    rows = []
    for name, (title, meaning) in NUMBERS.items():
        pair = [getattr(one, name) for one in (facts.before, facts.after)]
        better = pair[1] > pair[0] if name == "discrimination" else pair[1] < pair[0]
        cells = "".join(
            f'<td id="{which}-{name}" data-value="{value!r}"{mark}>{_number(value)}</td>'
            for which, value, mark in zip(
                ("before", "after"), pair, ("", ' class="better"' if better else ""), strict=True
            )
        )
        rows.append(f'<tr><th scope="row">{title}<small>{meaning}</small></th>{cells}</tr>')
    body = "\n".join(rows)
    return f"""<section>
<h2>Numbers</h2>
<div class="card">
<table id="numbers">
<caption>The mean score is miscalibration, less discrimination, plus uncertainty.</caption>
<thead><tr><td></td><th scope="col">before</th><th scope="col">after</th></tr></thead>
<tbody>
{body}
</tbody>
</table>
</div>
</section>"""


def _steps(model: sf.Staircase | StaircaseMap) -> str:
    n = len(model.left)
    shown = n if n <= ALL_STEPS else FIRST_STEPS
    values = model.step_values if isinstance(model, StaircaseMap) else model.values
    columns: list[NDArray[Any]] = [model.left, model.right, values]
    names = ["first score", "last score", "value"]
    if (model.weights != model.counts).any():  # else they are the rows again
        columns, names = [*columns, model.weights], [*names, "weight"]
    columns, names = [*columns, model.counts], [*names, "rows"]
    cells = [[_number(one) for one in column[:shown].tolist()] for column in columns]
    if isinstance(model, StaircaseMap):
        keys = itertools.islice((key for key, own in model.items() for _ in range(own.n_steps)), shown)
        names, cells = ["group", *names], [[_text(key) for key in keys], *cells]
    head = "".join(f'<th scope="col">{name}</th>' for name in names)
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>\n" for row in zip(*cells, strict=True))
    note = f"The first {shown:,} of {n:,} steps." if shown < n else f"All {n:,} steps." if n > 1 else "One step."
    return f"""<section>
<h2>Steps</h2>
<div class="card long" tabindex="0" role="region" aria-label="Steps of the model">
<table id="steps">
<caption>{note} A score has the value of the last step that begins at or below it.</caption>
<thead><tr>{head}</tr></thead>
<tbody>
{body}</tbody>
</table>
</div>
</section>"""


def _made(made: dict[str, str]) -> str:
    lines = "".join(
        f"<dt>{_text(what)}</dt><dd>{'<code>' if what == 'command' else ''}{_text(how)}"
        f"{'</code>' if what == 'command' else ''}</dd>\n"
        for what, how in made.items()
    )
    return f"""<section>
<h2>How it was made</h2>
<dl class="card">
{lines}</dl>
</section>"""
