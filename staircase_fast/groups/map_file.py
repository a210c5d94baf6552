"""A StaircaseMap as a file (`archive.py`).

header       "keys": "int" | "str" | "bool"
keys         integers or bools; strings as UTF-8, one after the other
key_ends     where each string ends
offsets, left, right, step_values, weights, counts, increasing; lower and upper where values are not exact; rows where
parameters of the loss have an entry per row
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from staircase_fast.storage import archive, documents

if TYPE_CHECKING:
    from staircase_fast.groups.staircase_map import StaircaseMap

FORMAT = "staircase_fast map"
VERSION = 1

_WHAT = "a map"
_ARRAYS = ("offsets", "left", "right", "step_values", "weights", "counts", "increasing")
_MORE_ARRAYS = ("lower", "upper", "rows")
_KINDS = {"bool": "b1", "int": "i8 u8", "str": "u1"}  # what keys are, and what holds them
_INTEGERS = ("offsets", "counts", "rows", "key_ends")
_TYPES = dict.fromkeys((*_ARRAYS, *_MORE_ARRAYS), (1, "f8"))
_TYPES |= dict.fromkeys(_INTEGERS, (1, "i8")) | {"increasing": (1, "b1"), "keys": (1, " ".join(_KINDS.values()))}


def write(path: str | os.PathLike[str], given: StaircaseMap) -> None:
    """Write a map whole."""
    parts = {name: part for name, part in given.parts().items() if part is not None}
    keys, loss = parts.pop("keys"), parts.pop("loss")
    kind = type(keys[0]).__name__
    if kind == "str":
        encoded = [key.encode("utf-8", "surrogatepass") for key in keys]
        parts["keys"] = np.frombuffer(b"".join(encoded), dtype=np.uint8)
        parts["key_ends"] = np.cumsum([len(key) for key in encoded])
    else:
        parts["keys"] = key_array(keys)
    archive.write(path, (FORMAT, VERSION), loss, {"keys": kind}, parts)


def key_array(keys: list[Any]) -> NDArray[Any]:
    """Keys as an array; numpy alone would make floats of large integers, and strip strings of zeros at their ends."""
    if isinstance(keys[0], str):
        return np.array(keys, dtype=object)
    return np.array(keys, dtype=np.uint64 if keys[-1] >= 2**63 else np.bool_ if isinstance(keys[0], bool) else np.int64)


def read(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The arguments of `StaircaseMap` that a file holds; the constructor judges lengths, order and finiteness."""
    loss, header, arrays = archive.read(path, _WHAT, (FORMAT, VERSION), ("keys",), _TYPES, functions=True)
    documents.known_fields(arrays, _WHAT, ("keys", *_ARRAYS), (*_MORE_ARRAYS, "key_ends"))
    if not isinstance(header["keys"], str) or header["keys"] not in _KINDS:
        raise ValueError(
            f"field `keys` must be one of {', '.join(map(repr, _KINDS))}; got {documents.shown(header['keys'])}."
        )
    ends = arrays.pop("key_ends", None)
    keys = _keys(arrays.pop("keys"), ends, header["keys"])
    return {"keys": keys, "loss": loss, **arrays}


def _keys(array: Any, ends: Any, kind: str) -> list[Any]:
    if array.dtype not in map(np.dtype, _KINDS[kind].split()) or (ends is None) == (kind == "str"):
        raise ValueError(f"field `keys` must be of kind {kind}; got {array.dtype}.")
    if ends is None:
        return list(array.tolist())
    if not len(ends) or ends[-1] != len(array) or ends[0] < 0 or np.any(ends[1:] < ends[:-1]):
        raise ValueError("field `key_ends` must be where each key ends.")
    text = array.tobytes()
    starts = np.append(0, ends[:-1]).tolist()
    try:
        return [text[a:b].decode("utf-8", "surrogatepass") for a, b in zip(starts, ends.tolist(), strict=True)]
    except UnicodeDecodeError as error:
        raise ValueError(f"field `keys` must be UTF-8 text; got bytes {error.object[:20]!r}.") from None
