"""The fields of a StaircaseMap: how they are checked, and how they are stored in an archive.

A JSON text has the arguments of `StaircaseMap` as lists.  An archive has

header       "keys": "int" | "str" | "bool"
keys         integers or bools; strings as UTF-8, one after the other
key_ends     the end of each string
offsets, left, right, step_values, weights, counts, increasing; lower and upper unless values are exact; rows if
parameters of the loss have an entry per row
"""

from __future__ import annotations

import itertools
import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from staircase_fast.errors import InvalidInputError, InvalidTypeError, refuse_entries
from staircase_fast.groups.readers import Key, check_key, check_signs
from staircase_fast.inputs.columns import read_column
from staircase_fast.inputs.options import listed
from staircase_fast.inputs.rows import read_scores
from staircase_fast.losses import Loss
from staircase_fast.losses.rows import check_parameter_length
from staircase_fast.staircase.steps import Steps, check_steps
from staircase_fast.storage import archive, documents
from staircase_fast.storage.documents import refuse_field

FORMAT = "staircase_fast map"
VERSION = 1

_WHAT = "a map"
_ARRAYS = ("offsets", "left", "right", "step_values", "weights", "counts", "increasing")
_MORE_ARRAYS = ("lower", "upper", "rows")
_KEY_TYPES = {"bool": "b1", "int": "i8 u8", "str": "u1"}  # by the kind of keys
_TYPES = dict.fromkeys((*_ARRAYS, *_MORE_ARRAYS), (1, "f8"))
_TYPES |= dict.fromkeys(("offsets", "counts", "rows", "key_ends"), (1, "i8"))
_TYPES |= {"increasing": (1, "b1"), "keys": (1, " ".join(_KEY_TYPES.values()))}


# valid fields of a StaircaseMap, in arrays that belong to it: keys, offsets, steps, loss, increasing, rows
Fields = tuple[list[Any], NDArray[np.int64], Steps, Loss, NDArray[np.bool_], NDArray[np.int64] | None]


def check_fields(
    keys: list[Any], offsets: Any, columns: tuple[Any, ...], loss: Loss, increasing: Any, rows: Any
) -> Fields:
    """Check the arguments of `StaircaseMap`; `columns` are those of `Steps`."""
    own: list[Key] = [check_key("keys", key, place) for place, key in enumerate(keys)]
    if not own:
        raise InvalidInputError("keys", "must have at least one entry", found="got none")
    for place, (one, other) in enumerate(itertools.pairwise(own), 1):
        if type(one) is not type(other) or not one < other:  # type: ignore[operator]
            raise InvalidInputError("keys", "must be of one kind and strictly increase", value=other, index=place)
    check_signs("keys", own)
    borders = _check_offsets("offsets", offsets, len(own))
    directions = np.ones(len(own), dtype=np.bool_) if increasing is None else np.array(increasing)
    if directions.dtype != np.bool_ or directions.shape != (len(own),):
        raise InvalidTypeError("increasing", f"must be a bool for each of the {len(own)} keys", value=increasing)
    n_steps = len(read_scores("left", columns[0]))
    if n_steps != borders[-1]:
        raise InvalidInputError("offsets", f"must end with the number of steps, {n_steps}", value=borders[-1])
    steps = check_steps(columns, rising=np.repeat(directions, np.diff(borders)), loss=loss, borders=borders[1:-1])
    row_borders = None if rows is None else _check_offsets("rows", rows, len(own))
    if row_borders is not None:
        check_parameter_length(loss, int(row_borders[-1]))
    return own, borders, steps, loss, directions, row_borders


def _check_offsets(argument: str, given: Any, n: int) -> NDArray[np.int64]:
    borders = read_column(argument, given)
    if borders.dtype.kind == "f" or len(borders) != n + 1 or borders[0] != 0:
        raise InvalidInputError(argument, f"must be {n + 1} integers from 0 on", value=given)
    borders = borders.astype(np.int64)
    refuse_entries(argument, "must strictly increase", borders[1:], borders[1:] <= borders[:-1], 1)
    return borders


def key_array(keys: list[Any]) -> NDArray[Any]:
    """Keys as an array; numpy alone converts large integers to floats and strips zeros from the ends of strings."""
    if isinstance(keys[0], str):
        return np.array(keys, dtype=object)
    return np.array(keys, dtype=np.uint64 if keys[-1] >= 2**63 else np.bool_ if isinstance(keys[0], bool) else np.int64)


def write(path: str | os.PathLike[str], given: dict[str, Any]) -> None:
    """Write the arguments of `StaircaseMap` atomically."""
    arrays = {name: part for name, part in given.items() if part is not None}
    keys, loss = arrays.pop("keys"), arrays.pop("loss")
    kind = type(keys[0]).__name__
    if kind == "str":
        encoded = [key.encode("utf-8", "surrogatepass") for key in keys]
        arrays["keys"] = np.frombuffer(b"".join(encoded), dtype=np.uint8)
        arrays["key_ends"] = np.cumsum([len(key) for key in encoded])
    else:
        arrays["keys"] = key_array(keys)
    archive.write(path, (FORMAT, VERSION), loss, {"keys": kind}, arrays)


def read(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The arguments of `StaircaseMap` in a file.  The constructor checks lengths, order and finiteness."""
    loss, header, arrays = archive.read(path, _WHAT, (FORMAT, VERSION), ("keys",), _TYPES, functions=True)
    documents.known_fields(arrays, _WHAT, ("keys", *_ARRAYS), (*_MORE_ARRAYS, "key_ends"))
    kind, keys, ends = header["keys"], arrays.pop("keys"), arrays.pop("key_ends", None)
    if not isinstance(kind, str) or kind not in _KEY_TYPES:
        refuse_field("keys", f"must be one of {listed(list(_KEY_TYPES))}", value=kind)
    if keys.dtype not in map(np.dtype, _KEY_TYPES[kind].split()) or (ends is None) == (kind == "str"):
        refuse_field("keys", f"must be of kind {kind}", found=f"got {keys.dtype}")
    return {"keys": keys.tolist() if ends is None else _split_text(keys, ends), "loss": loss, **arrays}


def document_of(given: dict[str, Any]) -> dict[str, Any]:
    """The arguments of `StaircaseMap` as JSON writes them."""
    document = {
        "format": FORMAT,
        "version": VERSION,
        "loss": documents.plain_loss(given["loss"]),
        "keys": given["keys"],
    }
    arrays = ((name, given[name]) for name in (*_ARRAYS, *_MORE_ARRAYS) if given[name] is not None)
    return document | {name: documents.plain_numbers(array.tolist()) for name, array in arrays}


def arguments_of(text: str) -> dict[str, Any]:
    """The arguments of `StaircaseMap` in a JSON text.  The constructor checks keys, lengths, order and finiteness."""
    document = documents.document_of(text, _WHAT, (FORMAT, VERSION), ("keys", *_ARRAYS), _MORE_ARRAYS, flag="")
    lists = {name: document.pop(name) for name in ("keys", "increasing")}
    for name, given in lists.items():
        if not isinstance(given, list):
            refuse_field(name, "must be an array", found=f"got {type(given).__name__}")
    names = (name for name in (*_ARRAYS, *_MORE_ARRAYS) if name in document)
    arrays = {name: documents.numbers_of(name, document[name]) for name in names}
    return {**lists, **arrays, "loss": documents.loss_from(document["loss"], functions=True)}


def _split_text(text: NDArray[np.uint8], ends: NDArray[np.int64]) -> list[str]:
    if not len(ends) or ends[-1] != len(text) or ends[0] < 0 or np.any(ends[1:] < ends[:-1]):
        refuse_field("key_ends", "must be the end of each key")
    content = text.tobytes()
    try:
        return [content[a:b].decode("utf-8", "surrogatepass") for a, b in itertools.pairwise([0, *ends.tolist()])]
    except UnicodeDecodeError as error:
        refuse_field("keys", "must be UTF-8 text", found=f"got bytes {error.object[:20]!r}")
