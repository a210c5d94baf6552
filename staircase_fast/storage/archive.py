"""Archives: arrays and a JSON header in one uncompressed .npz file.

The header has a format, a version, a loss and further fields.  Nothing in a file is executed.  An array is allocated
only if its declared type and size agree with the size of the file.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from staircase_fast.errors import InvalidInputError
from staircase_fast.losses import Loss
from staircase_fast.storage import documents, files
from staircase_fast.storage.documents import refuse_field

if TYPE_CHECKING:
    import zipfile

_MAX_REASON = 200  # characters of another library's message
_MAGIC = b"\x93NUMPY\x01\x00"
_DESCRIPTION = re.compile(  # as NumPy writes it
    rb"\{'descr': '(?P<type>[<>|=]?[a-zA-Z][0-9]{0,3})', 'fortran_order': (?P<by_columns>True|False), "
    rb"'shape': \((?P<shape>[-0-9, ]{0,60})\), \}\s*"
)
_MAX_DESCRIPTION = 1000  # bytes; 118 are usual
_MAX_DIRECTORY = 1 << 14  # bytes; the list of at most 12 members takes less than 1 kB


def write(
    path: str | os.PathLike[str], kind: tuple[str, int], loss: Loss, fields: dict[str, Any], arrays: dict[str, Any]
) -> None:
    """Write an archive atomically."""
    header = dict(zip(("format", "version"), kind, strict=True)) | {"loss": documents.plain_loss(loss)} | fields
    text = np.frombuffer(json.dumps(header, allow_nan=False).encode(), dtype=np.uint8)
    with files.replacing(path) as file:
        np.savez(file, header=text, **arrays)


def read(
    path: str | os.PathLike[str],
    what: str,
    kind: tuple[str, int],
    fields: tuple[str, ...],
    types: Mapping[str, tuple[int, str]],
    *,
    functions: bool = False,
) -> tuple[Loss, dict[str, Any], dict[str, NDArray[Any]]]:
    """The loss (see `documents.loss_from`), the header with these fields, and the arrays of a file.

    `types` lists the allowed arrays: the number of dimensions and the types of entries, such as "i8" or "i8 u8".
    """
    with open(path, "rb") as file, _explained(what):
        archive, members = _open(file)
        text = _read_array(archive, members, "header", 1, "u1")
        header = documents.document_of(files.decoded(text.tobytes(), "field `header`"), what, kind, fields)
        loss = documents.loss_from(header["loss"], functions=functions)
        documents.known_fields(members, what, (), ("header", *types))
        arrays = {name: _read_array(archive, members, name, *types[name]) for name in types if name in members}
    return loss, header, arrays


@contextlib.contextmanager
def _explained(what: str) -> Iterator[None]:
    """Convert any exception about a damaged archive to an InvalidInputError."""
    try:
        yield
    except (InvalidInputError, MemoryError):
        raise
    except Exception as error:  # noqa: BLE001
        found = str(error).removesuffix(".")[:_MAX_REASON]
        raise InvalidInputError("", f"{what} must be a file that `save` wrote", found=found) from None


def _open(file: BinaryIO) -> tuple[zipfile.ZipFile, dict[str, zipfile.ZipInfo]]:
    """An archive and its members by field name.  They are not compressed, and not larger than the file."""
    import zipfile  # here, because it is slow to import

    size = os.fstat(file.fileno()).st_size
    _check_directory(file, size)
    archive = zipfile.ZipFile(file)
    members: dict[str, zipfile.ZipInfo] = {}
    for member in archive.infolist():
        name = member.filename.removesuffix(".npy")
        if name in members:
            refuse_field(name, "appears twice")
        if member.compress_type != zipfile.ZIP_STORED or member.file_size != member.compress_size:
            refuse_field(name, "is compressed")
        members[name] = member
    if sum(member.file_size for member in members.values()) > size:
        raise ValueError("its members overlap, or are longer than the file")
    return archive, members


def _check_directory(file: BinaryIO, size: int) -> None:
    """Limit the list of members: the zipfile module needs much more memory for it than it has bytes."""
    file.seek(max(size - 98, 0))
    end = file.read(98)
    large = end[-42:-38] == b"PK\6\7"  # a record with 64-bit sizes precedes the usual one
    length = int.from_bytes(end[-58:-50] if large else end[-10:-6], "little")
    if end[-22:-18] != b"PK\5\6" or end[-2:] != b"\0\0":
        raise ValueError("this is not an archive, or its end is missing")
    if length > _MAX_DIRECTORY:
        raise ValueError(f"its directory must have at most {_MAX_DIRECTORY} bytes; got {length}")


def _read_array(
    archive: zipfile.ZipFile, members: dict[str, zipfile.ZipInfo], name: str, ndim: int, types: str
) -> NDArray[Any]:
    """Read a member, which must have `ndim` dimensions and one of these types."""
    if name not in members:
        refuse_field(name, "is missing")
    with archive.open(members[name]) as stream:
        # not by numpy: it evaluates the description with `ast`, which fails with MemoryError on many brackets, and with
        # SystemError in several threads (CPython 3.11)
        start = stream.read(10)
        text = stream.read(min(int.from_bytes(start[8:], "little"), _MAX_DESCRIPTION))
        description = _DESCRIPTION.fullmatch(text)
        if start[:8] != _MAGIC or description is None:
            refuse_field(name, "must be an array", value=start + text)
        try:
            shape = tuple(int(size) for size in description["shape"].split(b",") if size.strip())
            dtype = np.dtype(description["type"].decode())
        except (TypeError, ValueError) as error:
            refuse_field(name, "must be an array", found=str(error))
        native = dtype.newbyteorder("=")
        wanted = [np.dtype(one) for one in types.split()]
        if native not in wanted or len(shape) != ndim:
            requirement = f"must be {ndim}-dimensional of {' or '.join(map(str, wanted))}"
            refuse_field(name, requirement, found=f"got {dtype} of shape {shape}")
        size = members[name].file_size - stream.tell()
        if min(shape) < 0 or math.prod(shape) * dtype.itemsize != size:
            refuse_field(name, f"must have the bytes of its shape {shape}", found=f"got {size}")
        content = stream.read()
    order: Any = "F" if description["by_columns"] == b"True" else "C"
    return np.frombuffer(content, dtype).reshape(shape, order=order).astype(native, copy=False)
