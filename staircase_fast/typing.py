"""Types for annotations of code that passes arguments on to this package.

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
    from matplotlib.axes import Axes as Axes  # noqa: PLC0414  (used by other modules)
else:
    Axes = Any  # so that annotations can be evaluated without importing matplotlib

__all__ = [
    "Bounds",
    "ColumnLike",
    "Dialect",
    "Direction",
    "Interpolation",
    "MapPredictOptions",
    "Missing",
    "OutOfBounds",
    "PredictOptions",
    "ScalarLike",
    "SupportsArrowArray",
    "SupportsArrowStream",
    "SupportsDLPack",
]

T = TypeVar("T")


class SupportsArrowArray(Protocol):
    """An Arrow array of any library."""

    def __arrow_c_array__(self, requested_schema: Any = None) -> tuple[Any, Any]: ...


class SupportsArrowStream(Protocol):
    """An Arrow table or chunked array of any library."""

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any: ...


class SupportsDLPack(Protocol):
    """A tensor of any library, in CPU memory."""

    @property
    def __dlpack__(self) -> Any: ...  # the arguments differ between libraries
    def __dlpack_device__(self) -> tuple[int, int]: ...


ColumnLike = ArrayLike | SupportsArrowArray | SupportsArrowStream | SupportsDLPack
"""A column of numbers: a list, an array, a buffer, a pandas, polars or Arrow column, a tensor."""

ScalarLike = float | np.integer[Any] | np.floating[Any] | np.bool_
"""A single number."""

Bounds = tuple[float | None, float | None] | None
"""Lower and upper bound on the values; None means no bound."""

Dialect = Literal["duckdb", "postgres", "standard", "sqlite", "spark", "bigquery", "snowflake"]
"""The SQL dialect to write."""

Direction = bool | Literal["auto"]
"""Whether values increase with the score; "auto" chooses the better fit."""

Interpolation = Literal["step", "linear", "centered"]
"""How a staircase is evaluated between the fitted scores."""

Missing = Literal["raise", "nan"]
"""How missing scores are evaluated."""

OutOfBounds = Literal["clip", "nan", "raise"]
"""How scores outside the fitted range are evaluated."""


class MapPredictOptions(TypedDict, total=False):
    """The options of `StaircaseMap.predict`, besides `default`."""

    interpolation: Interpolation
    out_of_bounds: OutOfBounds
    missing: Missing
    n_threads: int | None


class PredictOptions(MapPredictOptions, total=False):
    """The options of `Staircase.predict`."""

    out: NDArray[np.float64] | None


def public_class(module: str) -> Callable[[type[T]], type[T]]:
    """Make a class report the public module that exports it, so that pickles contain public names only."""

    def decorate(cls: type[T]) -> type[T]:
        if own := vars(cls).get("__annotations__"):  # resolve them in the module that defines the class
            hints = get_type_hints(cls, localns={cls.__name__: cls})
            cls.__annotations__ = {name: hints[name] for name in own}
        cls.__module__ = module
        return cls

    return decorate
