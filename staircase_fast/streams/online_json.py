"""An online fit as JSON text: versioned, exact to the last bit, and checked when it is read.

    {"format": "staircase_fast online", "version": 1, "loss": {"name": "squared_error"}, "increasing": true,
     "left": [..], "right": [..], "counts": [..], ..}

Each array has an entry per block; the last one is the observation of the newest score.  If steps are means, "sums" and
"weights" are exact sums, integers in units of 2**-k; "units" has both k, and "targets" and "sample_weight" describe the
numbers that were summed (lowest, highest, least magnitude, all integers).  For Linex, "values" and "weights" are pairs
of numbers; each pair stands for its sum.
"""

from __future__ import annotations

import json
import math
import sys
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from staircase_fast.arithmetic import _scan
from staircase_fast.arithmetic.exact import Scale
from staircase_fast.losses import Linex, Loss
from staircase_fast.storage.documents import (
    document_of,
    known_fields,
    loss_from,
    numbers_of,
    plain_loss,
    plain_numbers,
    refuse_field,
)
from staircase_fast.streams.base import check_saveable, extent_from

FORMAT = "staircase_fast online"
VERSION = 1
WHAT = "an online fit"
_FIELDS = ("increasing", "left", "right", "counts")
_MEAN_FIELDS = ("sums", "weights", "units", "targets", "sample_weight")
_LINEX_FIELDS = ("values", "weights")


def to_json(loss: Loss, increasing: bool, state: dict[str, Any] | None) -> str:
    """The state of an online fit (`OnlineBlocks.state`) as JSON text."""
    check_saveable(loss)
    document = {"format": FORMAT, "version": VERSION, "loss": plain_loss(loss), "increasing": increasing}
    linex = isinstance(loss, Linex)
    if state is None:
        empty: list[float] = []
        document |= dict.fromkeys(_FIELDS[1:] + (_LINEX_FIELDS if linex else ()), empty)
        return json.dumps(document)
    document |= {name: plain_numbers(state[name].tolist()) for name in ("left", "right")}
    document["counts"] = np.diff(state["starts"], append=state["n_rows"]).tolist()
    if linex:
        pairs = state["words"].view(np.float64)
        return json.dumps(document | {"values": pairs[:, :2].tolist(), "weights": pairs[:, 2:].tolist()})
    scale = _scale_of(state["targets"], state["weights"], state["n_rows"])
    document |= {
        "sums": _integers(state["words"][:, : scale.s_words], signed=True),
        "weights": _integers(state["words"][:, scale.s_words :], signed=False),
        "units": [-scale.y_unit - scale.w_unit, -scale.w_unit],
        "targets": plain_numbers(list(state["targets"])),
        "sample_weight": plain_numbers(list(state["weights"])),
    }
    return json.dumps(document, allow_nan=False)


def exact_weights(state: dict[str, Any], right: NDArray[np.float64]) -> NDArray[np.float64]:
    """The weights of steps of several blocks each, rounded once; `right` has the last score of each step."""
    scale = _scale_of(state["targets"], state["weights"], state["n_rows"])
    weights = _integers(state["words"][:, scale.s_words :], signed=False)
    ends = np.searchsorted(state["right"], right, side="right").tolist()
    return np.array([float(sum(weights[a:b]) * Fraction(2) ** scale.w_unit) for a, b in pairwise([0, *ends])])


def _scale_of(targets: tuple[Any, ...], weights: tuple[Any, ...], n_rows: int) -> Scale:
    return Scale(**_scan.roomy_scale_of((-1, *targets), (-1, *weights), n_rows))


def _integers(words: NDArray[np.uint64], *, signed: bool) -> list[int]:
    return [int.from_bytes(row.astype("<u8").tobytes(), "little", signed=signed) for row in words]


def _words(integers: list[int], n_words: int, *, signed: bool) -> NDArray[np.uint64]:
    raw = b"".join(number.to_bytes(8 * n_words, "little", signed=signed) for number in integers)
    return np.frombuffer(raw, dtype="<u8").reshape(-1, n_words).astype(np.uint64)


def from_json(text: str) -> tuple[Loss, bool, dict[str, Any] | None]:
    """The loss, the direction and the state."""
    document = document_of(text, WHAT, (FORMAT, VERSION), _FIELDS, (*_MEAN_FIELDS, "values"))
    loss, increasing = loss_from(document["loss"]), document["increasing"]
    left, right, counts = (numbers_of(name, document[name]) for name in ("left", "right", "counts"))
    _check_ends(left, right, counts)
    linex = isinstance(loss, Linex)
    required = _LINEX_FIELDS if linex else _MEAN_FIELDS if len(left) else ()
    known_fields(document, WHAT, ("format", "version", "loss", *_FIELDS, *required))
    if len(left) == 0:
        return loss, increasing, None
    sums = _read_linex(document, len(left)) if linex else _read_means(document, counts.tolist(), loss)
    ends = {"n_rows": int(counts.sum()), "starts": np.append(0, np.cumsum(counts)[:-1]), "left": left, "right": right}
    return loss, increasing, ends | sums


def _check_ends(left: NDArray[np.float64], right: NDArray[np.float64], counts: NDArray[np.int64]) -> None:
    lengths = [len(left), len(right), len(counts)]
    if len(set(lengths)) > 1:
        refuse_field("counts", "must have as many entries as `left` and `right`", value=lengths)
    if counts.sum(dtype=np.float64) >= 2**62:
        refuse_field("counts", "must have a sum below 2**62", value=sum(counts.tolist()))
    for name, requirement, column, valid in (
        ("counts", "must be >= 1", counts, counts >= 1),
        ("right", "must be >= `left`", right, right >= left),
        ("left", "must be above the `right` before it", left, np.append(True, left[1:] > right[:-1])[: len(left)]),
        ("right", "must equal `left` at the newest score", right[-1:], (left == right)[-1:]),
    ):
        if not valid.all():
            index = int(np.argmin(valid))
            refuse_field(name, requirement, value=column[index].item(), index=index)


def _read_means(document: dict[str, Any], counts: list[int], loss: Loss) -> dict[str, Any]:
    targets = _read_extent("targets", document["targets"], *loss.target_range)
    weights = _read_extent("sample_weight", document["sample_weight"], 0.0, math.inf)
    scale = _scale_of(targets, weights, sum(counts))
    units = _read_integers("units", document["units"], 2)
    expected = [-scale.y_unit - scale.w_unit, -scale.w_unit]
    if units != expected:
        refuse_field("units", f"must be {expected} for these numbers", value=units)
    s, w = (_read_integers(name, document[name], len(counts)) for name in ("sums", "weights"))
    _check_sums(s, w, counts, targets, weights, scale, increasing=document["increasing"])
    total = sum(w) * Fraction(2) ** scale.w_unit
    if total > Fraction(sys.float_info.max):
        refuse_field("weights", "must have a sum that float64 holds", value=sum(w))
    words = _words(s, scale.s_words, signed=True), _words(w, scale.w_words, signed=False)
    return {
        "targets": targets,
        "weights": weights,
        "total": (float(total) * 2.0**-60, 0.0),
        "words": np.concatenate(words, axis=1),
    }


def _read_integers(name: str, given: object, n: int) -> list[int]:
    if not isinstance(given, list) or len(given) != n or not all(type(entry) is int for entry in given):
        refuse_field(name, f"must be an array of {n} integers", value=given)
    return given


def _read_extent(name: str, given: object, low: float, high: float) -> tuple[Any, ...]:
    if not isinstance(given, list) or len(given) != 4 or type(given[3]) is not bool:
        refuse_field(name, "must be three numbers, then true or false", value=given)
    return extent_from(name, [*numbers_of(name, given[:3]).tolist(), given[3]], low, high)[1:]


def _check_sums(
    s: list[int], w: list[int], counts: list[int], targets: Any, weights: Any, scale: Scale, *, increasing: bool
) -> None:
    """Each block must be a possible sum of its rows, and the means of blocks must be in order."""
    unit = Fraction(2) ** scale.y_unit
    # targets beyond 2**53 may be integers that were rounded to these limits
    low, high = (
        Fraction(math.nextafter(end, way) if 2**53 <= abs(end) < sys.float_info.max else end)
        for end, way in ((targets[0], -math.inf), (targets[1], math.inf))
    )
    heaviest = Fraction(weights[1]) / Fraction(2) ** scale.w_unit
    for index, count in enumerate(counts):
        if not 0 < w[index] <= count * heaviest:
            refuse_field("weights", "must be > 0 and possible for this many rows", value=w[index], index=index)
        if not low * w[index] <= s[index] * unit <= high * w[index]:
            requirement = f"must be sums of targets in [{targets[0]}, {targets[1]}]"
            refuse_field("sums", requirement, value=s[index], index=index)
    for index, ((s_a, w_a), (s_b, w_b)) in enumerate(pairwise(zip(s[:-1], w[:-1], strict=True)), 1):
        if not (s_a * w_b < s_b * w_a if increasing else s_a * w_b > s_b * w_a):
            requirement = f"must have means that {'increase' if increasing else 'decrease'}"
            refuse_field("sums", requirement, value=s_b, index=index)


def _read_linex(document: dict[str, Any], n: int) -> dict[str, Any]:
    values, weights = (_read_pairs(name, document[name], n) for name in ("values", "weights"))
    with np.errstate(over="ignore"):
        total = float(weights.sum())
        if not ((weights.sum(axis=1) > 0).all() and math.isfinite(total)):
            refuse_field("weights", "must be > 0 and have a finite sum", value=document["weights"])
    steps = np.diff(values[:-1, 0]) + np.diff(values[:-1, 1])
    if not (steps > 0 if document["increasing"] else steps < 0).all():
        order = "increase" if document["increasing"] else "decrease"
        refuse_field("values", f"must strictly {order} up to the newest score", value=document["values"])
    return {
        "targets": (0.0, 0.0, math.inf, True),  # not used for Linex
        "weights": (1.0, 1.0, 1.0, True),
        "total": (total * 2.0**-60, 0.0),
        "words": np.concatenate([values, weights], axis=1).view(np.uint64),
    }


def _read_pairs(name: str, given: object, n: int) -> NDArray[np.float64]:
    if not isinstance(given, list) or [len(pair) if isinstance(pair, list) else 0 for pair in given] != [2] * n:
        refuse_field(name, f"must be an array of {n} pairs of numbers", value=given)
    pairs = numbers_of(name, [number for pair in given for number in pair]).reshape(n, 2)
    if not np.isfinite(pairs.sum(axis=1)).all():
        refuse_field(name, "must be finite", value=given)
    return pairs
