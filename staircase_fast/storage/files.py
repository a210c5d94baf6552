"""Files that are written whole or not at all, and read if their size can be ours."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import BinaryIO

MAX_BYTES = 1 << 31  # of text: twenty million steps; what is larger is not one of ours
ARCHIVE = b"PK"  # how archives begin
_PART = 1 << 20  # bytes that are read at a time
TEMPORARY = ".staircase-"  # how the names of temporary files begin


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write a text file whole."""
    with replacing(path) as file:
        file.write(text.encode())


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Write a file whole: as `replacing_path`, for who wants a file."""
    with replacing_path(path) as temporary, open(temporary, "wb") as file:
        yield file


@contextlib.contextmanager
def replacing_path(path: str | os.PathLike[str]) -> Iterator[str]:
    """A temporary file beside that of this path, whose name it takes in the end; it is gone if something goes wrong.

    What is no plain file (a device, a pipe) must not be replaced: it is written to as it is.
    """
    if is_special(path):
        yield os.fspath(path)
        return
    target = os.path.realpath(path)
    # the name is chosen here, and no other file has it: an interrupt may come as soon as there is such a file
    name = f"{TEMPORARY}{os.urandom(12).hex()}.tmp"
    temporary = os.path.join(os.path.dirname(target), name)
    try:
        try:
            mode = _make(temporary, target)
        except OSError as error:  # a name that nobody gave would say nothing
            raise OSError(error.errno, error.strerror, os.fspath(path)) from None
        yield temporary
        os.chmod(temporary, mode)
        os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def is_special(path: str | os.PathLike[str]) -> bool:
    """Whether this is no plain file, nor may become one: a device, a pipe, a folder."""
    return os.path.exists(path) and not os.path.isfile(path)


def read_text(path: str | os.PathLike[str], what: str) -> str:
    """Read a file of a size that can be ours."""
    content = bytearray()
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size  # 0 for a pipe
        # by parts: a single read would reserve the largest size that is allowed
        while size <= MAX_BYTES and (part := file.read(_PART)):
            content += part
            size = max(size, len(content))
    if size > MAX_BYTES:
        raise ValueError(f"{what} must be at most {MAX_BYTES} bytes of JSON; this file is larger.")
    if content.startswith(ARCHIVE):
        raise ValueError(f"{what} must be JSON text; this is an archive, as maps and accumulators save it.")
    return decoded(content, what)


def decoded(content: bytes | bytearray, what: str) -> str:
    """The text of bytes."""
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{what} must be JSON text; got byte {content[error.start]:#x} at {error.start}.") from None


@contextlib.contextmanager
def named(path: str | os.PathLike[str]) -> Iterator[None]:
    """What is refused of a file is told by its name."""
    try:
        yield
    except (TypeError, ValueError) as error:
        raise ValueError(f"{os.fspath(path)}: {error}") from None


def _make(temporary: str, target: str) -> int:
    """Make an empty file for the owner alone; return the permissions that a plain open() would give the target or keep.

    A new file has what open() gives: to ask for the mask is to change it, which other threads would notice.
    """
    there = os.path.exists(target)
    os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600 if there else 0o666))
    mode = os.stat(target if there else temporary).st_mode & 0o777
    os.chmod(temporary, 0o600)
    return mode
