"""Types for annotations: what calls take, for those who pass it on.

>>> import staircase_fast as sf
>>> from staircase_fast.typing import ColumnLike
>>> def calibrated(scores: ColumnLike, labels: ColumnLike) -> sf.Staircase:
...     return sf.fit(scores, labels, loss="log")
>>> calibrated([0.2, 0.7], [0, 1])
<Staircase: 2 steps, 0.0 to 1.0, over scores 0.2 to 0.7; 2 rows, log_loss>
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypedDict, TypeVar, get_type_hints

import numpy as np
from numpy.typing import ArrayLike, NDArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes as Axes  # noqa: PLC0414  (it is for other modules)
else:
    Axes = Any  # annotations can be looked up where matplotlib is not installed, and without waiting for it

__all__ = [
    "Bounds",
    "ColumnLike",
    "Dialect",
    "Direction",
    "Interpolation",
    "OutOfBounds",
    "PredictOptions",
    "ScalarLike",
    "SupportsArrowArray",
    "SupportsArrowStream",
    "SupportsDLPack",
]

T = TypeVar("T")


class SupportsArrowArray(Protocol):
    """An array of Arrow's, of whatever library."""

    def __arrow_c_array__(self, requested_schema: Any = None) -> tuple[Any, Any]: ...


class SupportsArrowStream(Protocol):
    """A chunked array or a table of Arrow's, of whatever library."""

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any: ...


class SupportsDLPack(Protocol):
    """A tensor, which must be in the memory of the processor."""

    @property
    def __dlpack__(self) -> Any: ...  # its arguments differ from library to library
    def __dlpack_device__(self) -> tuple[int, int]: ...


ColumnLike = ArrayLike | SupportsArrowArray | SupportsArrowStream | SupportsDLPack
"""Numbers in anything: lists, arrays, memory, columns of pandas, polars and Arrow, tensors."""

ScalarLike = float | np.integer[Any] | np.floating[Any] | np.bool_
"""A single number."""

Bounds = tuple[float | None, float | None] | None
"""The least and the greatest value; None stands for no bound."""

Dialect = Literal["duckdb", "postgres"]
"""Whose SQL is written."""

Direction = bool | Literal["auto"]
"""Whether values rise with the score; "auto" lets the rows say."""

Interpolation = Literal["step", "linear", "centered"]
"""How a staircase goes on between the scores that were fitted."""

OutOfBounds = Literal["clip", "nan", "raise"]
"""What scores get that lie below the first or above the last that was fitted."""


class PredictOptions(TypedDict, total=False):
    """What `predict` takes besides scores."""

    interpolation: Interpolation
    out_of_bounds: OutOfBounds
    out: NDArray[np.float64] | None
    n_threads: int | None


def public_class(module: str) -> Callable[[type[T]], type[T]]:
    """Let a class report the public module that exports it, so that pickles and messages contain public names only."""

    def decorate(cls: type[T]) -> type[T]:
        if own := vars(cls).get("__annotations__"):  # resolved now, in the module that defines the class
            hints = get_type_hints(cls, localns={cls.__name__: cls})
            cls.__annotations__ = {name: hints[name] for name in own}
        cls.__module__ = module
        return cls

    return decorate
