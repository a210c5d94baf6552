from typing import Any

import numpy as np
from numpy.typing import NDArray

from staircase_fast.exact import Scale

MOST_ROWS: int

def work_size(n: int, n_words: int) -> int: ...
def extend(
    scores: NDArray[Any],
    targets: NDArray[Any],
    weights: NDArray[np.float64],
    scale: Scale,
    decreasing: bool,
    size: NDArray[np.intp],
    starts: NDArray[np.intp],
    s: NDArray[np.float64],
    w: NDArray[np.float64],
    left: NDArray[np.float64],
    right: NDArray[np.float64],
    known: NDArray[np.uint8],
    words: NDArray[np.uint64],
    own_starts: NDArray[np.intp],
    own_sums: NDArray[np.float64],
    work: NDArray[np.uint64],
    waiting: list[tuple[float, float, float]],
) -> None: ...
def steps(
    scale: Scale,
    decreasing: bool,
    lo: float,
    hi: float,
    n_rows: int,
    starts: NDArray[np.intp],
    s: NDArray[np.float64],
    w: NDArray[np.float64],
    known: NDArray[np.uint8],
    words: NDArray[np.uint64],
) -> int: ...
def rescale(
    old: Scale,
    new: Scale,
    words: NDArray[np.uint64],
    s: NDArray[np.float64],
    w: NDArray[np.float64],
    out: NDArray[np.uint64],
) -> None: ...
def extend_linex(
    scores: NDArray[np.float64],
    targets: NDArray[np.float64],
    weights: NDArray[np.float64],
    shape: float,
    decreasing: bool,
    size: NDArray[np.intp],
    starts: NDArray[np.intp],
    blocks: NDArray[np.float64],
    left: NDArray[np.float64],
    right: NDArray[np.float64],
    waiting: list[tuple[float, float, float]],
) -> None: ...
def linex_steps(
    shape: float,
    decreasing: bool,
    starts: NDArray[np.intp],
    blocks: NDArray[np.float64],
    values: NDArray[np.float64],
    weights: NDArray[np.float64],
) -> int: ...
