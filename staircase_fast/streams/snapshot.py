"""An online fit as JSON text: versioned, exact to the last bit, and checked on the way in.

    {"format": "staircase_fast online", "version": 1, "loss": {"name": "squared_error"}, "increasing": true,
     "left": [..], "right": [..], "counts": [..], ..}

There is an entry for each block, and the last one is the observation of the newest score.  Where a step is a mean,
"sums" and "weights" are integers, exact sums in units of 2**-k; "units" has both k, "targets" and "sample_weight" what
the numbers that were summed are like (`exact.Extent`).  For Linex, "values" and "weights" are pairs of numbers: their
sum is meant.
"""

from __future__ import annotations

import json
import math
import sys
from fractions import Fraction
from itertools import pairwise
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from staircase_fast.arithmetic.exact import Extent
from staircase_fast.losses import Loss
from staircase_fast.storage.documents import document_of, loss_from, numbers_of, plain_loss, plain_numbers, shown
from staircase_fast.streams import arrivals, checks

FORMAT = "staircase_fast online"
VERSION = 1
_FIELDS = ("increasing", "left", "right", "counts")
_MEAN_FIELDS = ("sums", "weights", "units", "targets", "sample_weight")
_LINEX_FIELDS = ("values", "weights")
WHAT = "an online fit"


def to_json(loss: Loss, increasing: bool, keeper: arrivals.Keeper) -> str:
    """What a keeper knows, as JSON text."""
    checks.saveable(loss)
    if isinstance(keeper, arrivals.MeanBlocks):
        fields = _of_means(keeper)
    elif isinstance(keeper, arrivals.LinexBlocks):
        fields = _of_linex(keeper)
    head = {"format": FORMAT, "version": VERSION, "loss": plain_loss(loss), "increasing": increasing}
    return json.dumps(head | fields, allow_nan=False)


def _ends(starts: Any, left: Any, right: Any, n_rows: int) -> dict[str, Any]:
    counts = np.diff(starts, append=n_rows) if n_rows else starts[:0]
    return {
        "left": plain_numbers(left[: len(counts)].tolist()),
        "right": plain_numbers(right[: len(counts)].tolist()),
        "counts": counts.tolist(),
    }


def _of_means(keeper: arrivals.MeanBlocks) -> dict[str, Any]:
    sums = keeper.sums
    if sums is None:
        return {"left": [], "right": [], "counts": []}
    blocks = slice(int(sums.size[0]) + 1)
    scale = sums.scale
    return {
        **_ends(sums.starts[blocks], sums.left, sums.right, keeper.n_rows),
        "sums": arrivals.sums_of(sums, blocks),
        "weights": arrivals.weights_of(sums, blocks),
        "units": [-scale.y_unit - scale.w_unit, -scale.w_unit],
        "targets": _plain_extent(sums.targets),
        "sample_weight": _plain_extent(sums.weights),
    }


def _plain_extent(extent: Extent) -> list[Any]:
    return [*plain_numbers(list(extent[1:4])), extent.integral]


def _of_linex(keeper: arrivals.LinexBlocks) -> dict[str, Any]:
    blocks = slice(int(keeper.size[0]) + 1 if keeper.n_rows else 0)
    starts, pooled, left, right = keeper.columns
    return {
        **_ends(starts[blocks], left, right, keeper.n_rows),
        "values": pooled[blocks, :2].tolist(),
        "weights": pooled[blocks, 2:].tolist(),
    }


def parts_of(text: str) -> tuple[Loss, bool, arrivals.Keeper]:
    """The loss, the direction and the keeper that `text` holds."""
    document = document_of(text, WHAT, (FORMAT, VERSION), _FIELDS, (*_MEAN_FIELDS, "values"))
    loss, increasing = loss_from(document["loss"]), document["increasing"]
    keeper = arrivals.keeper_for(loss, decreasing=not increasing)
    ends = {name: numbers_of(name, document[name]) for name in ("left", "right", "counts")}
    _judge_ends(**ends)
    wanted: tuple[str, ...] = _MEAN_FIELDS if isinstance(keeper, arrivals.MeanBlocks) else _LINEX_FIELDS
    if not len(ends["left"]) and isinstance(keeper, arrivals.MeanBlocks):
        wanted = ()
    for name in (*_MEAN_FIELDS, "values"):
        if (name in document) != (name in wanted):
            _refuse(name, f"be {'there' if name in wanted else 'absent'} for {loss.name}", document.get(name))
    if isinstance(keeper, arrivals.MeanBlocks) and wanted:
        keeper.sums = _means_from(document, ends, loss, increasing=increasing)
    elif isinstance(keeper, arrivals.LinexBlocks) and len(ends["left"]):
        _fill_linex(keeper, document, ends, increasing=increasing)
    return loss, increasing, keeper


def _refuse(name: str, what: str, given: object) -> NoReturn:
    raise ValueError(f"field `{name}` must {what}; got {shown(given)}.")


def _judge_ends(left: NDArray[np.float64], right: NDArray[np.float64], counts: NDArray[np.int64]) -> None:
    if not len(left) == len(right) == len(counts):
        _refuse("counts", "have as many entries as `left` and `right`", [len(left), len(right), len(counts)])
    _refuse_any("counts", "be >= 1", counts, counts < 1)
    if counts.sum(dtype=np.float64) >= 2**62:
        _refuse("counts", "have a sum below 2**62", sum(counts.tolist()))
    _refuse_any("right", "be >= `left`", right, right < left)
    _refuse_any("left", "be above the `right` before it", left, np.append(False, left[1:] <= right[:-1]))
    if len(left) and left[-1] != right[-1]:
        _refuse("right", "be the same as `left` at the newest score", right[-1].item())


def _refuse_any(name: str, what: str, column: NDArray[Any], bad: NDArray[np.bool_]) -> None:
    if bad.any():
        index = int(np.argmax(bad))
        _refuse(name, f"{what} at index {index}", column[index].item())


def _integers(name: str, given: object, n: int) -> list[int]:
    if not isinstance(given, list) or len(given) != n or not all(type(entry) is int for entry in given):
        _refuse(name, f"be an array of {n} integers", given)
    return given


def _extent(name: str, given: object, low: float, high: float) -> Extent:
    """What the numbers between these are like that were summed."""
    if not isinstance(given, list) or len(given) != 4 or type(given[3]) is not bool:
        _refuse(name, "be three numbers, then true or false", given)
    lowest, highest, least = numbers_of(name, given[:3]).tolist()
    if not (low <= lowest <= highest <= high and math.isfinite(lowest) and math.isfinite(highest)):
        _refuse(name, f"have a least and a greatest number in [{low:g}, {high:g}]", given)
    size = max(abs(lowest), abs(highest))
    if not (0 < least <= max(size, 1.0) if size > 0 else least > 0):
        _refuse(name, "have a least magnitude above 0 that is not beyond the others", given)
    return Extent(-1, lowest, highest, least, given[3])


def _means_from(document: dict[str, Any], ends: dict[str, NDArray[Any]], loss: Loss, *, increasing: bool) -> Any:
    counts = ends["counts"].tolist()
    n = len(counts)
    targets = _extent("targets", document["targets"], *loss.target_range)
    weights = _extent("sample_weight", document["sample_weight"], 0.0, math.inf)
    scale = arrivals.scale_for(targets, weights, sum(counts))
    units = _integers("units", document["units"], 2)
    if units != [-scale.y_unit - scale.w_unit, -scale.w_unit]:
        _refuse("units", f"be {[-scale.y_unit - scale.w_unit, -scale.w_unit]} for such numbers", units)
    s, w = (_integers(name, document[name], n) for name in ("sums", "weights"))
    unit = Fraction(2) ** scale.y_unit
    # integers beyond 2**53 were rounded to these
    low, high = (
        Fraction(math.nextafter(end, way) if 2**53 <= abs(end) < sys.float_info.max else end)
        for end, way in ((targets.lowest, -math.inf), (targets.highest, math.inf))
    )
    heaviest = Fraction(weights.highest) / Fraction(2) ** scale.w_unit
    for index in range(n):
        if not 0 < w[index] <= counts[index] * heaviest:
            _refuse("weights", f"be > 0 and what so many rows can have at index {index}", w[index])
        if not low * w[index] <= s[index] * unit <= high * w[index]:
            _refuse("sums", f"be those of targets in [{targets.lowest}, {targets.highest}] at index {index}", s[index])
    for index, ((s_a, w_a), (s_b, w_b)) in enumerate(pairwise(zip(s[:-1], w[:-1], strict=True))):
        if not (s_a * w_b < s_b * w_a if increasing else s_a * w_b > s_b * w_a):
            _refuse("sums", f"have means that {'rise' if increasing else 'fall'} at index {index + 1}", s_b)
    if sum(w) * Fraction(2) ** scale.w_unit > Fraction(np.finfo(np.float64).max):
        _refuse("weights", "have a sum that float64 holds", sum(w))
    return arrivals.sums_from(scale, targets, weights, ends["left"], ends["right"], counts, s, w)


def _pairs(name: str, given: object, n: int) -> Any:
    if (
        not isinstance(given, list)
        or len(given) != n
        or not all(isinstance(one, list) and len(one) == 2 for one in given)
    ):
        _refuse(name, f"be an array of {n} pairs of numbers", given)
    found = numbers_of(name, [number for pair in given for number in pair]).reshape(n, 2)
    if not np.isfinite(found).all() or not np.isfinite(found.sum(axis=1)).all():
        _refuse(name, "be finite", given)
    return found


def _fill_linex(
    keeper: arrivals.LinexBlocks, document: dict[str, Any], ends: dict[str, NDArray[Any]], *, increasing: bool
) -> None:
    n = len(ends["left"])
    values, weights = (_pairs(name, document[name], n) for name in ("values", "weights"))
    with np.errstate(over="ignore"):
        if not ((weights.sum(axis=1) > 0).all() and np.isfinite(weights.sum())):
            _refuse("weights", "be > 0 and have a finite sum", document["weights"])
    steps = np.diff(values[:-1, 0]) + np.diff(values[:-1, 1])
    if not (steps > 0 if increasing else steps < 0).all():
        _refuse("values", f"strictly {'increase' if increasing else 'decrease'} up to the newest", document["values"])
    starts = np.append(0, np.cumsum(ends["counts"]))
    keeper.size = np.array([n - 1, starts[-1]], dtype=np.intp)
    columns = starts[:-1], np.concatenate([values, weights], axis=1), ends["left"], ends["right"]
    keeper.columns = tuple(np.ascontiguousarray(column) for column in columns)
