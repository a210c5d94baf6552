"""Results as text and as JSON, the format of numbers, and progress bars."""

from __future__ import annotations

import contextlib
import sys
import warnings
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from staircase_fast.calibration.reliability import number_text
from staircase_fast.cli.tables import located

_LISTED = 10  # entries of a list that are shown as text


class _NoTerminal:
    """A stream that does not report that it is a terminal, so no library draws a progress bar on it."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def isatty(self) -> bool:
        return False


def without_progress() -> contextlib.AbstractContextManager[Any]:
    """Show no progress bars inside."""
    return contextlib.redirect_stderr(_NoTerminal(sys.stderr))


@contextlib.contextmanager
def plain_warnings() -> Iterator[None]:
    """Show warnings as one line on standard error, each once, without the code that they come from."""
    seen: set[str] = set()

    def show(message: object, *_: object, **__: object) -> None:
        if str(message) not in seen:
            print(f"staircase-fast: warning: {message}", file=sys.stderr)
        seen.add(str(message))

    with warnings.catch_warnings():
        warnings.showwarning = show
        yield


def progress(items: Iterable[Any], title: str, n: int | None = None) -> Iterator[Any]:
    """Iterate with a progress bar; it is shown if standard error is a terminal."""
    from tqdm import tqdm

    yield from tqdm(items, total=n, desc=title, leave=False, disable=None)


def write_output(text: str) -> None:
    """Write to standard output; errors name it."""
    with located("standard output"):
        sys.stdout.write(text)
        sys.stdout.flush()


def as_json(result: Any) -> Any:
    """A result with strings for infinite numbers and NaN, which JSON does not have."""
    if isinstance(result, dict):
        return {name: as_json(value) for name, value in result.items()}
    if isinstance(result, list):
        return [as_json(value) for value in result]
    return str(result) if isinstance(result, float) and not abs(result) < float("inf") else result


def as_text(result: dict[str, Any], indent: str = "") -> str:
    """A result as lines of names and values; lists of dictionaries become tables."""
    lines, width = [], max(20 - len(indent), *(2 + len(name) for name in result))
    for name, value in result.items():
        title = name.replace("_", " ")
        if isinstance(value, dict):
            lines += [f"{indent}{title}", as_text(value, indent + "  ")]
        elif isinstance(value, list) and value and isinstance(value[0], dict):
            lines += [f"{indent}{title}", *_table(value, indent + "  ")]
        elif isinstance(value, list):
            more = f" and {len(value) - _LISTED:,} more" if len(value) > _LISTED else ""
            lines.append(f"{indent}{title:<{width}}{', '.join(map(str, value[:_LISTED])) or 'none'}{more}")
        elif value is not None:
            lines.append(f"{indent}{title:<{width}}{shown(value)}")
    return "\n".join(lines)


def _table(rows: Sequence[dict[str, Any]], indent: str) -> Iterator[str]:
    """Rows with aligned columns: text to the left, numbers to the right."""
    cells = [[name.replace("_", " ") for name in rows[0]], *([shown(value) for value in row.values()] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    is_text = [isinstance(value, str) for value in rows[0].values()]
    for row in cells:
        parts = (
            f"{cell:<{width}}" if left else f"{cell:>{width}}"
            for cell, width, left in zip(row, widths, is_text, strict=True)
        )
        yield indent + "  ".join(parts).rstrip()


def shown(value: Any) -> str:
    """A value as people read it."""
    if isinstance(value, float):
        return number_text(value)
    return f"{value:,}" if type(value) is int else "" if value is None else str(value)
