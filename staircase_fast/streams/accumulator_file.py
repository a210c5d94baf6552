"""An accumulator as an archive (`storage/archive.py`).

header      "increasing": true, "form": "scores" | "kept" | null, "n_rows": 3
extents     a row for targets and one for weights: lowest, highest, least magnitude, integral (`exact.Extent`)
x, ..       the columns of a run (`runs.py`): sums per score, or the rows themselves; none if there are no rows

Earlier versions saved sums per score in the forms "sums", without tallies, and "tallies", for integers only.
"""

from __future__ import annotations

import math
import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from staircase_fast.arithmetic.exact import Extent
from staircase_fast.losses import Loss
from staircase_fast.storage import archive, documents
from staircase_fast.storage.documents import refuse_field
from staircase_fast.streams import _score_sums, runs
from staircase_fast.streams.base import extent_from
from staircase_fast.streams.runs import RawRows, Run, ScoreSums

FORMAT = "staircase_fast.Accumulator"
VERSION = 1

_FORMS = {
    "scores": ScoreSums._fields,
    "kept": RawRows._fields,
    "sums": ScoreSums._fields,
    "tallies": ("x", "tally", "s"),
}
_TYPES = {"x": (1, "f8"), "y": (1, "f8"), "w": (1, "f8 i8"), "rows": (1, "i8"), "words": (2, "u8")}
_TYPES |= {"tally": (1, "u8"), "s": (1, "i8"), "extents": (2, "f8")}
_WHAT = "an accumulator"


def write(path: str | os.PathLike[str], loss: Loss, increasing: bool, run: Run | None) -> None:
    """Write all rows; None if there are none."""
    form = None if run is None else "scores" if isinstance(run.columns, ScoreSums) else "kept"
    fields = {"increasing": increasing, "form": form, "n_rows": 0 if run is None else run.n_rows}
    arrays: dict[str, NDArray[Any]] = {}
    if run is not None:
        arrays["extents"] = np.array([extent[1:] for extent in (run.targets, run.weights)])
        arrays |= run.columns._asdict()
    archive.write(path, (FORMAT, VERSION), loss, fields, arrays)


def read(path: str | os.PathLike[str]) -> tuple[Loss, bool, Run | None]:
    """The loss, whether values increase, and all rows."""
    loss, header, arrays = archive.read(path, _WHAT, (FORMAT, VERSION), ("increasing", "form", "n_rows"), _TYPES)
    form, n_rows = header["form"], header["n_rows"]
    if type(n_rows) is not int or not 0 <= n_rows < 2**62:
        refuse_field("n_rows", "must be an integer >= 0 and < 2**62", value=n_rows)
    if form is None:
        if arrays:
            refuse_field("form", "must be that of its arrays", value=form)
        documents.expect("n_rows", n_rows, 0)
        return loss, header["increasing"], None
    if not isinstance(form, str) or form not in _FORMS or (form == "kept") == loss.is_mean:
        refuse_field("form", f"must be a form for {loss.name}", value=form)
    documents.known_fields(arrays, _WHAT, ("extents", *_FORMS[form]))
    extents = arrays.pop("extents")
    if extents.shape != (2, 4):
        refuse_field("extents", "must be two rows of four numbers")
    targets = extent_from("extents", extents[0].tolist(), *loss.target_range)
    weights = extent_from("extents", extents[1].tolist(), 0.0, math.inf)
    columns = {name: np.ascontiguousarray(column) for name, column in arrays.items()}
    run = Run(_columns_of(form, columns), n_rows, targets, weights)
    if len(run.columns.x) == 0 or np.isnan(run.columns.x).any():
        refuse_field("x", "must have scores, and none may be NaN")
    if form == "kept":
        _check_rows(run)
    else:
        _check_sums(run)
    return loss, header["increasing"], run


def _columns_of(form: str, columns: dict[str, NDArray[Any]]) -> ScoreSums | RawRows:
    if form == "tallies":
        if len(columns["tally"]) != len(columns["x"]) or len(columns["s"]) not in (0, len(columns["x"])):
            refuse_field("tally", "must have an entry per score")
        return runs.entries_of_tallies(**columns)
    expected = np.dtype(np.int64 if form == "scores" else np.float64)
    if columns["w"].dtype != expected:
        refuse_field("w", f"must be {expected} in the form {form!r}", found=f"got {columns['w'].dtype}")
    if form == "kept":
        return RawRows(**columns)
    if form == "sums":
        if np.any(columns["w"] < 0):
            refuse_field("w", "must be >= 0")
        columns["w"] = (columns["w"] + 0.0).view(np.int64)
    return ScoreSums(**columns)


def _check_rows(run: Run) -> None:
    n, columns = run.n_rows, run.columns
    assert isinstance(columns, RawRows)
    for name, column in columns._asdict().items():
        if len(column) != n and (name != "w" or len(column)):
            refuse_field(name, "must have an entry per row", found=f"got {len(column)} for {n} rows")
    _check_within("y", columns.y, run.targets)
    _check_within("w", columns.w, run.weights)


def _check_sums(run: Run) -> None:
    """Refuse sums that rows within these extents cannot have: kernels rely on it."""
    columns, scale = run.columns, run.scale
    assert isinstance(columns, ScoreSums)
    x, y, w = columns[:3]
    if not np.all(x[1:] > x[:-1]) or np.any(np.signbit(x) & (x == 0)):
        refuse_field("x", "must ascend, without -0.0")
    if len(y) != len(x) or len(w) != len(x):
        refuse_field("y", "must have an entry per score")
    n_pools = int(np.count_nonzero(w == 0))
    if len(columns.rows) != n_pools or columns.words.shape != (n_pools, scale.s_words + scale.w_words):
        refuse_field("words", "must hold the sums of each score without a weight or a tally")
    single = w > 0
    _check_within("y", y[single], run.targets)
    _check_within("w", w[single].view(np.float64), run.weights)
    lightest = max(run.weights.lowest, run.weights.least)  # above 0
    limits = run.targets.lowest, run.targets.highest, lightest, run.weights.highest
    bad = _score_sums.first_impossible_entry(columns, scale, *limits)
    if bad >= 0:
        refuse_field("y" if w[bad] else "words", "must hold the sums of rows", found=f"not so for score {bad}")
    tallied = (w[w < 0] >> 32) & (2**31 - 1)
    n_rows = sum(columns.rows.tolist()) + int(tallied.sum()) + int(np.count_nonzero(single))
    if n_rows != run.n_rows:
        refuse_field("rows", "must count all rows", value=n_rows)


def _check_within(name: str, column: NDArray[np.float64], extent: Extent) -> None:
    sizes = np.abs(column[column != 0])
    inside = np.all((column >= extent.lowest) & (column <= extent.highest)) and np.all(sizes >= extent.least)
    if not inside or (extent.integral and np.any(column != np.floor(column))):
        refuse_field(name, "must be within `extents`")
    if name == "w" and len(sizes) < len(column):
        refuse_field(name, "must be > 0")
