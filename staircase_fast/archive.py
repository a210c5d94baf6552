"""Arrays and a header in one file: numpy's format .npz without compression, versioned, checked on the way in.

The header is JSON text, as bytes: a format, a version, a loss, and what else there is to say.  Nothing in a file is
executed: numpy reads plain arrays alone.
"""

from __future__ import annotations

import json
import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from staircase_fast import documents, files
from staircase_fast.losses import Loss


def write(
    path: str | os.PathLike[str], kind: tuple[str, int], loss: Loss, fields: dict[str, Any], arrays: dict[str, Any]
) -> None:
    """Write a file whole."""
    header = dict(zip(("format", "version"), kind, strict=True)) | {"loss": documents.plain_loss(loss)} | fields
    text = np.frombuffer(json.dumps(header, allow_nan=False).encode(), dtype=np.uint8)
    with files.replacing(path) as file:
        np.savez(file, header=text, **arrays)


def read(
    path: str | os.PathLike[str], what: str, kind: tuple[str, int], fields: tuple[str, ...], *, functions: bool = False
) -> tuple[Loss, dict[str, Any], dict[str, NDArray[Any]]]:
    """The loss (see `documents.loss_from`), the header, which has these fields, and the arrays of a file."""
    with open(path, "rb") as file:
        try:
            _not_compressed(file)
            found = np.load(file, allow_pickle=False)
            arrays = {name: found[name] for name in found.files}
        except Exception as error:  # noqa: BLE001  (there is no end to what damaged archives raise)
            raise ValueError(f"{what} must be a file that `save` wrote; {error}.") from None
    text = arrays.pop("header", None)
    if text is None or text.dtype != np.uint8 or text.ndim != 1:
        raise ValueError("field `header` must be JSON text, as bytes.")
    # decoding has errors of its own: each is a ValueError that names the byte
    header = documents.document_of(text.tobytes().decode(), what, kind, fields)
    return documents.loss_from(header["loss"], functions=functions), header, arrays


def _not_compressed(file: Any) -> None:
    """Then nothing in it can be larger than the file."""
    import zipfile  # here, because it is slow to import

    with zipfile.ZipFile(file) as archive:
        names = archive.namelist()
        for member in archive.infolist():
            if member.compress_type != zipfile.ZIP_STORED or member.file_size > member.compress_size:
                raise ValueError(f"{member.filename!r} is compressed")
        if len(set(names)) < len(names):
            raise ValueError("a field stands there twice")
    file.seek(0)
