"""Labels that are not numbers: the entries that equal --positive are 1, all others are 0.

The choice belongs to the command that runs, so it holds for the whole process: some columns are read in threads.
"""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Iterator
from typing import Any

from staircase_fast.errors import InvalidInputError, shown

_MOST_SHOWN = 5  # values in a message


class Labels:
    """Converts columns of labels, and remembers which values they had until the positive one occurs."""

    def __init__(self, positive: str) -> None:
        self.positive = positive
        self.occurs = False
        self._others: dict[Any, None] = {}

    def read(self, given: Any, missing: Any) -> Any:
        """Which entries are positive, as an Arrow array of bools, and the place of the first missing one, or None.

        `missing` marks the entries that are missing unless they are positive.
        """
        from pyarrow import compute

        is_positive = compute.fill_null(self._equal(given), False)
        missing = compute.and_(missing, compute.invert(is_positive))
        if not self.occurs:
            self.occurs = bool(compute.any(is_positive, min_count=0).as_py())
            for value in compute.unique(given.filter(compute.invert(missing)))[: _MOST_SHOWN + 1].to_pylist():
                if len(self._others) <= _MOST_SHOWN:
                    self._others[value] = None
        place = compute.index(missing, True).as_py()
        return is_positive, None if place < 0 else place

    def _equal(self, given: Any) -> Any:
        """Which entries equal the positive value, after it was converted to their type."""
        import pyarrow as pa
        from pyarrow import compute

        if "string" in str(given.type):
            return compute.equal(compute.utf8_trim_whitespace(given), self.positive.strip())
        try:
            wanted = pa.scalar(self.positive.strip()).cast(given.type)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            return compute.not_equal(given, given)  # a value of another kind equals no entry
        return compute.equal(given, wanted)

    def check(self, file: str, column: str) -> None:
        """Raise an error if the positive value never occurred."""
        if self.occurs:
            return
        values = [shown(value) for value in self._others]
        listed = ", ".join(values[:_MOST_SHOWN]) + (" and others" if len(values) > _MOST_SHOWN else "")
        requirement = f"must have the value {shown(self.positive)} of --positive in some row"
        raise InvalidInputError("targets", requirement, found=f"its values are {listed}", file=file, column=column)


_current: Labels | None = None


@contextlib.contextmanager
def labels_of(positive: str | None) -> Iterator[None]:
    """Read labels with this value as the positive one; None: read them as numbers."""
    global _current  # noqa: PLW0603
    outer, _current = _current, None if positive is None else Labels(positive)
    try:
        yield
    finally:
        _current = outer


def current_labels() -> Labels | None:
    """The labels of the command that runs, if it has --positive."""
    return _current


def hint_at_positive(given: Any) -> str:
    """The hint for a column of text that should be numbers: if it has two values, it needs --positive."""
    from pyarrow import compute

    found = compute.unique(compute.utf8_trim_whitespace(given.drop_null())).to_pylist()
    values = sorted(value for value in found if value)  # empty labels are missing
    if len(values) != 2 or any(map(_is_number, values)):  # 0 and "N/A" are numbers and a missing entry
        return ""
    return f"Its values are {shown(values[0])} and {shown(values[1])}: pass one as --positive {shlex.quote(values[1])}."


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
