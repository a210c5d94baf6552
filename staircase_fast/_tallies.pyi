from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from staircase_fast.exact import Scale

_Floats: TypeAlias = NDArray[np.float64]
_Integers: TypeAlias = NDArray[np.int64]
_Words: TypeAlias = NDArray[np.uint64]

def tally_rows(
    scores: _Floats, targets: NDArray[Any], weights: _Floats, x: _Floats, tally: _Words, s: _Integers
) -> int: ...
def join_tallies(
    x_a: _Floats,
    tally_a: _Words,
    s_a: _Integers,
    x_b: _Floats,
    tally_b: _Words,
    s_b: _Integers,
    x: _Floats,
    tally: _Words,
    s: _Integers,
) -> int: ...
def fit_tallies(
    x: _Floats,
    tally: _Words,
    s: _Integers,
    scale: Scale,
    decreasing: bool,
    lo: float,
    hi: float,
    starts: NDArray[np.intp],
    values: _Floats,
    weights: _Floats,
) -> int: ...
def count_rows(tally: _Words, starts: NDArray[np.intp], counts: _Integers) -> None: ...
