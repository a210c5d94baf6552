"""Messages: what a scan found in some of the rows, as arrays and numbers that add up in any order."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from staircase_fast.arithmetic.exact import NOTHING, Extent, Scale, joined_extent
from staircase_fast.errors import InvalidInputError
from staircase_fast.stack import _collect, _wide
from staircase_fast.streams import runs
from staircase_fast.streams.runs import Run, ScoreSums

_MAGIC = b"SFbatch\n"
_VERSION = 1
_ALIGNMENT = 64
_TYPES = ("<f8", "<i8", "<i4", "<u8", "|u1")
FEW_ROWS = 2**32  # words of labels count fewer rows than this
MOST_SAMPLED = 1 << 18

Arrays = dict[str, NDArray[Any]]


class Tally(NamedTuple):
    """What every scan finds.  Sums of bits show whether a source has changed between two scans."""

    n_given: int = 0  # rows, also of weight 0
    n_rows: int = 0  # rows of weight > 0
    bits: tuple[int, int, int] = (0, 0, 0)  # of scores, targets, weights; modulo 2**64
    weight: float = 0.0
    weighted: bool = False  # some rows have weights
    inexact: bool = False  # float64 does not hold all targets
    targets: Extent = NOTHING
    weights: Extent = NOTHING

    def plus(self, other: Tally) -> Tally:
        """The tally of both."""
        return Tally(
            self.n_given + other.n_given,
            self.n_rows + other.n_rows,
            tuple((a + b) % 2**64 for a, b in zip(self.bits, other.bits, strict=True)),  # type: ignore[arg-type]
            self.weight + other.weight,
            self.weighted or other.weighted,
            self.inexact or other.inexact,
            joined_extent(self.targets, other.targets),
            joined_extent(self.weights, other.weights),
        )

    @classmethod
    def from_list(cls, fields: list[Any]) -> Tally:
        """The tally that was stored as a list."""
        found = cls(*fields)
        bits = found.bits[0], found.bits[1], found.bits[2]
        return found._replace(bits=bits, targets=Extent(*found.targets), weights=Extent(*found.weights))


class Sample(NamedTuple):
    """Every `stride`-th of the rows that could be sampled."""

    entries: NDArray[np.float64] = np.empty(0)
    stride: int = 1

    def thinned(self, stride: int = 1) -> Sample:
        """At most MOST_SAMPLED entries, with at least this stride, a power of two."""
        step = max(1, stride // self.stride)
        while -(-len(self.entries) // step) > MOST_SAMPLED:
            step *= 2
        return self if step == 1 else Sample(self.entries[::step].copy(), step * self.stride)

    def plus(self, other: Sample) -> Sample:
        """A sample of both."""
        stride = max(self.stride, other.stride)
        parts = [one.thinned(stride) for one in (self, other)]
        stride = max(part.stride for part in parts)
        return Sample(np.concatenate([part.thinned(stride).entries for part in parts]), stride).thinned()


@dataclass
class Message:
    """The result of a task for some of the rows.

    `merge` gives the message of all of them, in any order and any tree.  `to_bytes` and `from_bytes` carry a message
    between machines; pickle works as well.
    """

    kind: str
    scan: int  # number of the scan that the message belongs to
    tally: Tally
    strides: list[int]  # of the samples
    arrays: Arrays
    scale: Scale | None = None  # of exact sums
    overflow: bool = False  # live rows were dropped, because there are too many of them

    def merge(self, *others: Message) -> Message:
        """The message of all rows; the messages themselves stay as they are."""
        total = Message(self.kind, self.scan, self.tally, self.strides, dict(self.arrays), self.scale, self.overflow)
        for place, other in enumerate(others):
            total.add(other, in_place=place > 0)
        return total

    def add(self, other: Message, *, in_place: bool = True) -> None:
        """Add another message to this one, which changes, `in_place` also inside its arrays."""
        if (self.kind, self.scan) != (other.kind, other.scan):
            found = f"got {self.kind} {self.scan} and {other.kind} {other.scan}"
            raise InvalidInputError("messages", "must be of one scan", found=found)
        if not in_place:
            self.arrays = {name: array.copy() for name, array in self.arrays.items()}
        _ADD[self.kind](self, other)
        self.tally = self.tally.plus(other.tally)
        self.overflow = self.overflow or other.overflow

    def to_bytes(self) -> bytes:
        """The message as bytes: a versioned header in JSON, then the arrays."""
        arrays = {name: np.ascontiguousarray(array) for name, array in self.arrays.items()}
        header = {
            "version": _VERSION, "kind": self.kind, "scan": self.scan, "tally": self.tally, "strides": self.strides,
            "scale": self.scale, "overflow": self.overflow,
            "arrays": [(name, array.dtype.newbyteorder("<").str, array.shape) for name, array in arrays.items()],
        }  # fmt: skip
        parts = [json.dumps(header).encode()]
        parts += [array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes() for array in arrays.values()]
        return b"".join(_padded((_MAGIC + len(parts[0]).to_bytes(8, "little"), *parts)))

    @classmethod
    def from_bytes(cls, data: bytes) -> Message:
        """The message that `to_bytes` has written."""
        try:
            return cls._from_bytes(memoryview(data))
        except InvalidInputError:
            raise
        except (ValueError, TypeError, KeyError) as error:
            raise InvalidInputError("data", "must be an undamaged message", found=str(error)) from error

    @classmethod
    def _from_bytes(cls, data: memoryview) -> Message:
        if bytes(data[: len(_MAGIC)]) != _MAGIC:
            raise InvalidInputError("data", "must be a message of staircase_fast", value=bytes(data[: len(_MAGIC)]))
        size = int.from_bytes(data[len(_MAGIC) : len(_MAGIC) + 8], "little")
        header = json.loads(bytes(data[_ALIGNMENT : _ALIGNMENT + size]))
        if header["version"] != _VERSION:
            requirement = f"must be a message of version {_VERSION}; use one version of staircase_fast everywhere"
            raise InvalidInputError("data", requirement, value=header["version"])
        start, arrays = _ALIGNMENT + _rounded_up(size), {}
        for name, kind, shape in header["arrays"]:
            if kind not in _TYPES:
                raise ValueError(f"an array has type {kind}")
            count = math.prod(shape)
            array = np.frombuffer(data, kind, count, start) if count else np.empty(0, kind)
            arrays[name] = array.reshape(shape).astype(array.dtype.newbyteorder("="), copy=False)
            start += _rounded_up(array.nbytes)
        scale = None if header["scale"] is None else Scale(*header["scale"])
        tally = Tally.from_list(header["tally"])
        return cls(header["kind"], header["scan"], tally, header["strides"], arrays, scale, header["overflow"])

    def sample(self, name: str = "sample", place: int = 0) -> Sample:
        """One of its samples."""
        return Sample(self.arrays[name], self.strides[place])


def _rounded_up(size: int) -> int:
    return -(-size // _ALIGNMENT) * _ALIGNMENT


def _padded(parts: Iterable[bytes]) -> list[bytes]:
    return [part.ljust(_rounded_up(len(part)), b"\0") for part in parts]


def _add_samples(total: Message, other: Message, names: tuple[str, ...]) -> None:
    strides = []
    for place, name in enumerate(names):
        total.arrays[name], stride = total.sample(name, place).plus(other.sample(name, place))
        strides.append(stride)
    total.strides = strides


def _add_peek(total: Message, other: Message) -> None:
    _add_samples(total, other, ("sample", "targets"))


def _add_survey(total: Message, other: Message) -> None:
    _add_samples(total, other, ("sample",))
    table, more = total.arrays["table"], other.arrays["table"]
    total.arrays["parts"] = total.arrays["parts"] + other.arrays["parts"]
    total.arrays["was_live"] = total.arrays["was_live"] | other.arrays["was_live"]
    few = total.tally.n_rows + other.tally.n_rows < FEW_ROWS
    if few and table.dtype == more.dtype == np.uint64:
        table += more
        return
    total.arrays["table"] = table = widened(table, float(total.arrays["centre"][0]))
    if more.dtype == np.uint64:
        _wide.add_table(table, more, float(other.arrays["centre"][0]))
    else:
        _wide.add_wide(table, more)


def widened(table: NDArray[Any], centre: float) -> NDArray[np.float64]:
    """A table of wide summaries (`_wide.pyx`)."""
    if table.dtype == np.float64:
        return table
    wide = np.empty((len(table), 4))
    _wide.clear(wide)
    _wide.add_table(wide, table, centre)
    return wide


def _add_collect(total: Message, other: Message) -> None:
    mine, theirs = total.arrays, other.arrays
    for name in ("rows", "places"):
        mine[name] = np.concatenate((mine[name], theirs[name]))
    _collect.add_runs(total.scale, mine["run_rows"], mine["run_words"], theirs["run_rows"], theirs["run_words"])


def _add_pool(total: Message, other: Message) -> None:
    pair = [run_of(one) for one in (total, other)]
    found = [run for run in pair if run is not None]
    if len(found) == 2:
        total.arrays = dict(runs.merged(*found).columns._asdict())
    elif found:
        total.arrays = dict(found[0].columns._asdict())


def run_of(message: Message) -> Run | None:
    """The sums of each score; None if there are no rows."""
    if not message.tally.n_rows:
        return None
    tally = message.tally
    return Run(ScoreSums(**message.arrays), tally.n_rows, tally.targets, tally.weights)


_ADD = {"peek": _add_peek, "survey": _add_survey, "collect": _add_collect, "pool": _add_pool}
