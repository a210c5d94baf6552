"""A staircase as a JSON document: its attributes; the bounds are omitted if the values are exact."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from staircase_fast.storage import documents

if TYPE_CHECKING:
    from staircase_fast.staircase.result import Staircase

ARRAYS = ("left", "right", "values", "weights", "counts", "lower", "upper")
_FORMAT = "staircase_fast", 1  # name and version


def document_of(stairs: Staircase) -> dict[str, Any]:
    """The staircase as JSON writes it."""
    name, version = _FORMAT
    document = {"format": name, "version": version, "loss": documents.plain_loss(stairs.loss)}
    document["increasing"] = stairs.increasing
    for name in ARRAYS:
        column = getattr(stairs, name)
        if name not in ("lower", "upper") or column is not stairs.values:
            document[name] = documents.plain_numbers(column.tolist())
    return document


def arguments_of(text: str, what: str) -> dict[str, Any]:
    """The arguments of `Staircase` in a JSON text."""
    document = documents.document_of(text, what, _FORMAT, ("increasing", *ARRAYS[:5]), ARRAYS[5:])
    columns = {name: documents.numbers_of(name, document[name]) for name in ARRAYS if name in document}
    loss = documents.loss_from(document["loss"], functions=True)
    return {**columns, "loss": loss, "increasing": document["increasing"]}
