from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from staircase_fast.exact import Scale

_Floats: TypeAlias = NDArray[np.float64]
_Integers: TypeAlias = NDArray[np.int64]
_Words: TypeAlias = NDArray[np.uint64]

def count_pools(scores: _Floats, targets: NDArray[Any]) -> tuple[int, int]: ...
def sum_rows(
    scores: _Floats,
    targets: NDArray[Any],
    weights: _Floats,
    scale: Scale,
    x: _Floats,
    y: _Floats,
    w: _Floats,
    rows: _Integers,
    words: _Words,
) -> tuple[int, int]: ...
def join_sums(
    x_a: _Floats,
    y_a: _Floats,
    w_a: _Floats,
    rows_a: _Integers,
    words_a: _Words,
    scale_a: Scale,
    x_b: _Floats,
    y_b: _Floats,
    w_b: _Floats,
    rows_b: _Integers,
    words_b: _Words,
    scale_b: Scale,
    scale: Scale,
    x: _Floats,
    y: _Floats,
    w: _Floats,
    rows: _Integers,
    words: _Words,
) -> tuple[int, int]: ...
def first_bad_pool(
    rows: _Integers, words: _Words, scale: Scale, lowest: float, highest: float, heaviest: float
) -> int: ...
