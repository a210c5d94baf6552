"""Venn-Abers predictors as JSON text: versioned, exact to the last bit, and checked on the way in.

One predictor has a query_weight, n_samples, and the arrays left, p0 and p1.  A cross predictor has its folds, and an
object of the same fields for each of them.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from staircase_fast.storage import documents

if TYPE_CHECKING:
    from staircase_fast.calibration.cross_venn_abers import CrossVennAbers
    from staircase_fast.calibration.venn_abers import VennAbers

FORMAT = "staircase_fast venn-abers"
CROSS_FORMAT = "staircase_fast cross venn-abers"
VERSION = 1
WHAT = "a Venn-Abers predictor"

_FIELDS = ("query_weight", "n_samples", "left", "p0", "p1")
_ARRAYS = _FIELDS[2:]


def to_json(venn: VennAbers) -> str:
    """A fitted predictor as JSON text."""
    return json.dumps({"format": FORMAT, "version": VERSION} | _plain(venn), allow_nan=False)


def parts_from(text: str) -> tuple[Any, ...]:
    """The parts of a predictor that `text` holds, for others to judge."""
    return _parts(documents.document_of(text, WHAT, (FORMAT, VERSION), _FIELDS, with_loss=False))


def cross_to_json(cross: CrossVennAbers) -> str:
    """A fitted cross predictor as JSON text."""
    folds, predictors = cross._known()
    document = {"format": CROSS_FORMAT, "version": VERSION, "folds": list(folds)}
    return json.dumps(document | {"predictors": [_plain(venn) for venn in predictors]}, allow_nan=False)


def cross_parts_from(text: str) -> tuple[list[Any], list[tuple[Any, ...]]]:
    """The folds of a cross predictor that `text` holds, and the parts of the predictor of each."""
    kind = CROSS_FORMAT, VERSION
    document = documents.document_of(text, WHAT, kind, ("folds", "predictors"), with_loss=False)
    found = []
    for name in ("folds", "predictors"):
        if not isinstance(document[name], list):
            raise ValueError(f"field `{name}` must be an array; got {type(document[name]).__name__}.")
    for index, given in enumerate(document["predictors"]):
        if not isinstance(given, dict):
            raise ValueError(f"field `predictors` must hold objects; got {documents.shown(given)} at index {index}.")
        documents.known_fields(given, "a predictor", _FIELDS)
        found.append(_parts(given))
    return document["folds"], found


def _plain(venn: VennAbers) -> dict[str, Any]:
    query_weight, n_samples, *arrays = venn._parts()
    plain = (documents.plain_numbers(array.tolist()) for array in arrays)
    return dict(zip(_FIELDS, (query_weight, n_samples, *plain), strict=True))


def _parts(given: dict[str, Any]) -> tuple[Any, ...]:
    arrays = (documents.numbers_of(name, given[name]) for name in _ARRAYS)
    return given["query_weight"], given["n_samples"], *arrays
