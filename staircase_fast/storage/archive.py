"""Arrays and a header in one file: numpy's format .npz without compression, versioned, checked on the way in.

The header is JSON text, as bytes: a format, a version, a loss, and what else there is to say.  Nothing in a file is
executed, and no array is allocated before its declared type and size are known to agree with the size of the file.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import re
from collections.abc import Iterator, Mapping
from typing import IO, TYPE_CHECKING, Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from staircase_fast.losses import Loss
from staircase_fast.storage import documents, files

if TYPE_CHECKING:
    import zipfile

_LONGEST_REASON = 200  # characters of a message of others
_MAGIC = b"\x93NUMPY\x01\x00"
_DESCRIPTION = re.compile(  # as NumPy writes it: type, order and shape of an array
    rb"\{'descr': '(?P<type>[<>|=]?[a-zA-Z][0-9]{0,3})', 'fortran_order': (?P<by_columns>True|False), "
    rb"'shape': \((?P<shape>[-0-9, ]{0,60})\), \}\s*"
)
_MAX_HEADER = 1000  # bytes of the description; 118 are usual
_BYTES_AT_ONCE = 1 << 20
_MAX_DIRECTORY = 1 << 14  # bytes; the list of at most 12 members takes less than 1 kB


def write(
    path: str | os.PathLike[str], kind: tuple[str, int], loss: Loss, fields: dict[str, Any], arrays: dict[str, Any]
) -> None:
    """Write a file whole."""
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
    """The loss (see `documents.loss_from`), the header, which has these fields, and the arrays of a file.

    `types` has the arrays that may be there: their dimensions, and the types of entries, as in "i8" or "i8 u8".
    """
    with open(path, "rb") as file:
        with _explained(what):
            archive, members = _opened(file)
            text = _array(archive, members, "header", 1, "u1")
        header = documents.document_of(files.decoded(text.tobytes(), "field `header`"), what, kind, fields)
        loss = documents.loss_from(header["loss"], functions=functions)
        with _explained(what):
            documents.known_fields(members, what, (), ("header", *types))
            arrays = {name: _array(archive, members, name, *types[name]) for name in types if name in members}
    return loss, header, arrays


@contextlib.contextmanager
def _explained(what: str) -> Iterator[None]:
    """Turn whatever a damaged archive raises into a ValueError that says what was read."""
    try:
        yield
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001
        text = str(error).removesuffix(".")[:_LONGEST_REASON]
        raise ValueError(f"{what} must be a file that `save` wrote; {text}.") from None


def _opened(file: BinaryIO) -> tuple[zipfile.ZipFile, dict[str, zipfile.ZipInfo]]:
    """An archive, and its members by the names of their fields: not compressed, and no larger than the file."""
    import zipfile  # here, because it is slow to import

    size = os.fstat(file.fileno()).st_size
    _check_directory(file, size)
    archive = zipfile.ZipFile(file)
    members: dict[str, zipfile.ZipInfo] = {}
    for member in archive.infolist():
        name = member.filename.removesuffix(".npy")
        if name in members:
            raise ValueError(f"field `{name}` appears twice")
        if member.compress_type != zipfile.ZIP_STORED or member.file_size != member.compress_size:
            raise ValueError(f"field `{name}` is compressed")
        members[name] = member
    if sum(member.file_size for member in members.values()) > size:
        raise ValueError("its members overlap, or are longer than the file")
    return archive, members


def _check_directory(file: BinaryIO, size: int) -> None:
    """Refuse a long list of members: Python's own reader takes much more memory for it than it has bytes."""
    file.seek(max(size - 98, 0))
    end = file.read(98)
    large = end[-42:-38] == b"PK\6\7"  # then another record stands before, with 64 bits for sizes
    length = int.from_bytes(end[-58:-50] if large else end[-10:-6], "little")
    if end[-22:-18] != b"PK\5\6" or end[-2:] != b"\0\0":
        raise ValueError("this is not an archive, or its end is missing")
    if length > _MAX_DIRECTORY:
        raise ValueError(f"its directory must have at most {_MAX_DIRECTORY} bytes; got {length}")


def _array(
    archive: zipfile.ZipFile, members: dict[str, zipfile.ZipInfo], name: str, ndim: int, types: str
) -> NDArray[Any]:
    """Read a member; it must have `ndim` dimensions and one of these types."""
    if name not in members:
        raise ValueError(f"field `{name}` is missing")
    member = members[name]
    with archive.open(member) as stream:
        # NumPy would evaluate the header with `ast`, which fails with MemoryError if there are many brackets, and with
        # SystemError if several threads do so (CPython 3.11)
        start = stream.read(10)
        header = stream.read(min(int.from_bytes(start[8:], "little"), _MAX_HEADER))
        described = _DESCRIPTION.fullmatch(header)
        if start[:8] != _MAGIC or described is None:
            raise ValueError(f"field `{name}` must be an array; got {start + header!r}")
        try:
            shape = tuple(int(size) for size in described["shape"].split(b",") if size.strip())
            dtype = np.dtype(described["type"].decode())
        except (TypeError, ValueError) as error:
            raise ValueError(f"field `{name}` must be an array; {error}") from None
        native = dtype.newbyteorder("=")
        wanted = [np.dtype(one) for one in types.split()]
        if native not in wanted or len(shape) != ndim:
            allowed = " or ".join(map(str, wanted))
            raise ValueError(f"field `{name}` must be {ndim}-dimensional of {allowed}; got {dtype} of shape {shape}")
        rest = member.file_size - stream.tell()
        if min(shape) < 0 or math.prod(shape) * dtype.itemsize != rest:
            raise ValueError(f"field `{name}` must have the bytes of its shape {shape}; got {rest}")
        by_columns = described["by_columns"] == b"True"
        found = np.empty(shape[::-1] if by_columns else shape, dtype)
        _fill(found.reshape(-1).view(np.uint8), stream, name)
    return (found.T if by_columns else found).astype(native, copy=False)


def _fill(found: NDArray[np.uint8], stream: IO[bytes], name: str) -> None:
    """Read as many bytes as there is room for."""
    for begin in range(0, len(found), _BYTES_AT_ONCE):
        part = found[begin : begin + _BYTES_AT_ONCE]
        got = stream.read(len(part))
        if len(got) < len(part):
            raise ValueError(f"field `{name}` ends after {begin + len(got)} of {len(found)} bytes")
        part[:] = np.frombuffer(got, dtype=np.uint8)
