"""Staircases as JSON text: versioned, exact to the last bit, and validated when read.

    {"format": "staircase_fast", "version": 1, "loss": {"name": "squared_error"}, "increasing": true,
     "left": [..], "right": [..], "values": [..], "weights": [..], "counts": [..]}

If values are not exact, there are also "lower" and "upper".
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from staircase_fast.storage import documents

if TYPE_CHECKING:
    from staircase_fast.staircase.result import Staircase

WHAT = "a staircase"  # in messages
FORMAT = "staircase_fast"
VERSION = 1

_ARRAYS = ("left", "right", "values", "weights", "counts")
_MORE_ARRAYS = ("lower", "upper")


def to_json(stairs: Staircase) -> str:
    """The staircase as JSON text."""
    document: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "loss": documents.plain_loss(stairs.loss),
        "increasing": stairs.increasing,
    }
    for name in (*_ARRAYS, *_MORE_ARRAYS):
        column = getattr(stairs, name)
        if name not in _MORE_ARRAYS or column is not stairs.values:
            document[name] = documents.plain_numbers(column.tolist())
    return json.dumps(document, allow_nan=False)


def fields_of(text: str) -> dict[str, Any]:
    """The arguments of `Staircase` in a JSON text; the constructor checks lengths, order and finiteness."""
    document = documents.document_of(text, WHAT, (FORMAT, VERSION), ("increasing", *_ARRAYS), _MORE_ARRAYS)
    names = [name for name in (*_ARRAYS, *_MORE_ARRAYS) if name in document]
    fields = {name: documents.numbers_of(name, document.pop(name)) for name in names}
    loss = documents.loss_from(document["loss"], functions=True)
    return {**fields, "loss": loss, "increasing": document["increasing"]}
