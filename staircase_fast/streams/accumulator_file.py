"""An accumulator as a file (`archive.py`).

header      "increasing": true, "form": "tallies" | "sums" | "kept" | null, "n_rows": 3
extents     a row for targets, and one for weights: lowest, highest, least, integral (`exact.Extent`)
x, ..       the columns of that form (`levels.py`); none where there are no rows
"""

from __future__ import annotations

import math
import os
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from staircase_fast.arithmetic.exact import Extent
from staircase_fast.losses import Loss
from staircase_fast.storage import archive, documents
from staircase_fast.streams import _sums, levels
from staircase_fast.streams.levels import Kept, Run, Sums, Tallies

FORMAT = "staircase_fast.Accumulator"
VERSION = 1

_FORMS: dict[str, type[Tallies | Sums | Kept]] = {"tallies": Tallies, "sums": Sums, "kept": Kept}
_TYPES = dict.fromkeys(("x", "y", "w"), (1, "f8")) | {"tally": (1, "u8"), "s": (1, "i8"), "rows": (1, "i8")}
_TYPES |= {"words": (2, "u8"), "extents": (2, "f8")}
_WHAT = "an accumulator"


def write(path: str | os.PathLike[str], loss: Loss, increasing: bool, run: Run | None) -> None:
    """Write what an accumulator has seen."""
    form = next((name for name, kind in _FORMS.items() if run is not None and isinstance(run.columns, kind)), None)
    fields = {"increasing": increasing, "form": form, "n_rows": 0 if run is None else run.n_rows}
    arrays: dict[str, NDArray[Any]] = {}
    if run is not None:
        arrays["extents"] = np.array([extent[1:] for extent in (run.targets, run.weights)])
        arrays |= run.columns._asdict()
    archive.write(path, (FORMAT, VERSION), loss, fields, arrays)


def read(path: str | os.PathLike[str]) -> tuple[Loss, bool, Run | None]:
    """The loss, whether values rise, and all rows."""
    loss, header, arrays = archive.read(path, _WHAT, (FORMAT, VERSION), ("increasing", "form", "n_rows"), _TYPES)
    levels.check_scalar_parameters(loss)
    form, n_rows = header["form"], header["n_rows"]
    if type(n_rows) is not int or not 0 <= n_rows < 2**62:
        raise ValueError(f"field `n_rows` must be an integer >= 0 and < 2**62; got {documents.shown(n_rows)}.")
    if form is None:
        if arrays:
            _bad("form", "be that of its arrays, which is not null")
        documents.expect("n_rows", n_rows, 0)
        return loss, header["increasing"], None
    kind = _FORMS.get(form) if isinstance(form, str) else None
    if kind is None or (kind is Kept) == loss.is_mean:
        raise ValueError(f"field `form` must be one that {loss.name} has; got {documents.shown(form)}.")
    documents.known_fields(arrays, _WHAT, ("extents", *kind._fields))
    targets, weights = _extents_of(arrays.pop("extents"), loss)
    columns = kind(**{name: np.ascontiguousarray(column) for name, column in arrays.items()})
    run = Run(columns, n_rows, targets, weights)
    _check(run)
    return loss, header["increasing"], run


def _extents_of(given: NDArray[Any], loss: Loss) -> tuple[Extent, Extent]:
    if given.shape != (2, 4):
        _bad("extents", "be two rows of four numbers")
    found = []
    for (lowest, highest, least, integral), (low, high) in zip(
        given.tolist(), (loss.target_range, (0.0, math.inf)), strict=True
    ):
        inside = low <= lowest <= highest <= high and math.isfinite(lowest) and math.isfinite(highest)
        if not inside or not least > 0 or integral not in (0, 1):
            _bad("extents", "be those of targets and weights")
        ends = np.array([end for end in (lowest, highest) if end != 0])
        if np.any(np.abs(ends) < least) or (integral and np.any(ends != np.floor(ends))):
            _bad("extents", "agree with each other")
        found.append(Extent(-1, lowest, highest, least, bool(integral)))
    if found[1].highest == 0:
        _bad("extents", "have a weight > 0")
    return found[0], found[1]


def _check(run: Run) -> None:
    """Refuse what no rows of these extents can have made: kernels rely on it."""
    columns = run.columns
    if len(columns.x) == 0 or np.isnan(columns.x).any():
        _bad("x", "have scores, and none that is NaN")
    if isinstance(columns, Kept):
        if len(columns.y) != run.n_rows or len(columns.w) not in (0, run.n_rows):
            _bad("y", "have an entry per row")
        if len(columns.x) != run.n_rows:
            _bad("x", "have an entry per row")
        _within("y", columns.y, run.targets)
        _within("w", columns.w, run.weights)
        return
    if not np.all(columns.x[1:] > columns.x[:-1]) or np.any(np.signbit(columns.x) & (columns.x == 0)):
        _bad("x", "ascend, without -0.0")
    form = levels.form_of(run.targets, run.weights, run.n_rows)
    if form.tallied != isinstance(columns, Tallies):
        _bad("form", "be that of its rows")
    if isinstance(columns, Tallies):
        _check_tallies(run, columns, summed=form.summed)
    else:
        _check_sums(run, columns)


def _check_tallies(run: Run, columns: Tallies, *, summed: bool) -> None:
    if len(columns.tally) != len(columns.x) or len(columns.s) != (len(columns.x) if summed else 0):
        _bad("tally", "have an entry per score")
    rows, w, s = levels.parts_of(columns)
    if rows.min() < 1 or int(rows.sum()) != run.n_rows:
        _bad("tally", "count all rows")
    # the scale of these extents is narrow: none of these products overflows
    if np.any(w < np.maximum(rows * int(run.weights.lowest), 1)) or np.any(w > rows * int(run.weights.highest)):
        _bad("tally", "hold the weights of rows")
    if np.any((s < w * int(run.targets.lowest)) | (s > w * int(run.targets.highest))):
        _bad("s" if summed else "tally", "hold the sums of rows")


def _check_sums(run: Run, columns: Sums) -> None:
    if len(columns.y) != len(columns.x) or len(columns.w) != len(columns.x):
        _bad("y", "have an entry per score")
    scale, single = run.scale, columns.w != 0
    n_pools = len(single) - int(np.count_nonzero(single))
    if len(columns.rows) != n_pools or columns.words.shape != (n_pools, scale.s_words + scale.w_words):
        _bad("words", "hold the sums of scores that have no weight of their own")
    _within("y", columns.y[single], run.targets)
    _within("w", columns.w[single], run.weights)
    limits = run.targets.lowest, run.targets.highest, run.weights.highest
    bad = _sums.first_bad_pool(columns.rows, columns.words, scale, *limits)
    if bad >= 0:
        _bad("words", f"hold the sums of rows, as they do not at index {bad}")
    if np.any(columns.rows > run.n_rows) or sum(columns.rows.tolist()) + len(single) - n_pools != run.n_rows:
        _bad("rows", "count all rows")


def _within(name: str, column: NDArray[np.float64], extent: Extent) -> None:
    sizes = np.abs(column[column != 0])
    inside = np.all((column >= extent.lowest) & (column <= extent.highest)) and np.all(sizes >= extent.least)
    if not inside or (extent.integral and np.any(column != np.floor(column))):
        _bad(name, "be within `extents`")
    if name == "w" and len(sizes) < len(column):
        _bad(name, "be > 0")


def _bad(name: str, what: str) -> NoReturn:
    raise ValueError(f"field `{name}` must {what}.")
