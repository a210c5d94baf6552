"""What can be written to a file as JSON, and read again."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, ClassVar, Self

from staircase_fast.storage import files


class Saved:
    """A class with `to_json` and `from_json`, and files of what these say."""

    __slots__ = ()

    _WHAT: ClassVar[str]  # what a file holds, in messages

    if TYPE_CHECKING:

        def to_json(self) -> str: ...
        @classmethod
        def from_json(cls, text: str) -> Self: ...

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write `to_json` to a file; an existing file is replaced at once or not at all.

        Parameters
        ----------
        path : str or path-like
            Where to write.

        Examples
        --------
        >>> import tempfile
        >>> from pathlib import Path
        >>> import staircase_fast as sf
        >>> stairs = sf.fit([1, 2, 3], [1, 3, 2])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     stairs.save(Path(folder, "stairs.json"))
        ...     sf.Staircase.load(Path(folder, "stairs.json")) == stairs
        True
        """
        files.write_text(path, self.to_json())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a file that `save` wrote.

        Parameters
        ----------
        path : str or path-like
            What to read.

        Returns
        -------
        object
            What was saved.

        Examples
        --------
        Of a file that is no such thing, or not as it was, it says so:

        >>> import staircase_fast as sf
        >>> sf.Staircase.load("no such file")
        Traceback (most recent call last):
            ...
        FileNotFoundError: [Errno 2] No such file or directory: 'no such file'
        """
        with files.named(path):
            return cls.from_json(files.read_text(path, cls._WHAT))
