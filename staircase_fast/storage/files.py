"""Write files atomically, and read text files of limited size."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import BinaryIO

from staircase_fast.errors import InvalidInputError, InvalidTypeError

MAX_BYTES = 1 << 31  # of text, enough for twenty million steps
ARCHIVE = b"PK"  # first bytes of an archive
TEMPORARY = ".staircase-"  # prefix of temporary file names
NOT_THE_NAME = "Pass the text of the file, not its name."  # hint for text that is no JSON, unless it was in a file
_BYTES_AT_ONCE = 1 << 20


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a file for writing that replaces `path` at the end; see `replacing_path`."""
    with replacing_path(path) as temporary, open(temporary, "wb") as file:
        yield file


@contextlib.contextmanager
def replacing_path(path: str | os.PathLike[str]) -> Iterator[str]:
    """The path of a temporary file in the same folder.  It is renamed to `path` at the end, or deleted on an error.

    Devices and pipes cannot be replaced: their own path is returned.
    """
    _check_path(path)
    if is_special(path):
        yield os.fspath(path)
        return
    target = os.path.realpath(path)
    # the name is known before the file exists: an interrupt can arrive as soon as it does
    temporary = os.path.join(os.path.dirname(target), f"{TEMPORARY}{os.urandom(12).hex()}.tmp")
    try:
        try:
            mode = _create(temporary, target)
        except OSError as error:  # name the path that the caller passed
            raise OSError(error.errno, error.strerror, os.fspath(path)) from None
        yield temporary
        os.chmod(temporary, mode)
        os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def _check_path(path: object) -> None:
    """The name of a file; `open` would take an integer for a file that is already open."""
    if not isinstance(path, (str, bytes, os.PathLike)):
        raise InvalidTypeError("path", "must be the name of a file", value=path)


def _create(temporary: str, target: str) -> int:
    """Create an empty private file; return the permissions that the target has, or that a new file would get.

    A new file shows these permissions.  Reading the umask would mean changing it, which affects other threads.
    """
    exists = os.path.exists(target)
    os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600 if exists else 0o666))
    mode = os.stat(target if exists else temporary).st_mode & 0o777
    os.chmod(temporary, 0o600)
    return mode


def is_special(path: str | os.PathLike[str]) -> bool:
    """Whether the path exists and is not a regular file: a device, a pipe, a folder."""
    return os.path.exists(path) and not os.path.isfile(path)


def read_text(path: str | os.PathLike[str], what: str) -> str:
    """The text of a file of at most `MAX_BYTES`; `what` names the content in messages."""
    content = bytearray()
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size  # 0 for a pipe
        while size <= MAX_BYTES and (part := file.read(_BYTES_AT_ONCE)):
            content += part
            size = max(size, len(content))
    if size > MAX_BYTES:
        raise InvalidInputError("", f"{what} must be at most {MAX_BYTES} bytes of JSON", found="this file is larger")
    if content.startswith(ARCHIVE):
        found = "this is an archive, as maps and accumulators save it"
        raise InvalidInputError("", f"{what} must be JSON text", found=found)
    return decoded(content, what)


def decoded(content: bytes | bytearray, what: str) -> str:
    """Bytes as UTF-8 text."""
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        found = f"got byte {content[error.start]:#x} at {error.start}"
        raise InvalidInputError("", f"{what} must be JSON text", found=found) from None


@contextlib.contextmanager
def named(path: str | os.PathLike[str]) -> Iterator[None]:
    """Name the file in errors about its content."""
    _check_path(path)
    try:
        yield
    except InvalidInputError as error:
        error.file = os.fspath(path)
        error.hint = error.hint.replace(NOT_THE_NAME, "")
        raise
    except (TypeError, ValueError) as error:
        raise InvalidInputError("", str(error).removesuffix("."), file=os.fspath(path)) from None
