from typing import Any

import numpy as np
from numpy.typing import NDArray

from staircase_fast.exact import Scale

ROWS_PER_BUCKET: int

def merge(
    scores: NDArray[Any],
    targets: NDArray[Any],
    weights: NDArray[np.float64],
    scale: Scale,
    decreasing: bool,
    lo: float,
    hi: float,
    every_row: bool,
    summarised: bool,
    starts: NDArray[np.intp],
    values: NDArray[np.float64],
    step_weights: NDArray[np.float64],
    work: NDArray[np.uint64],
) -> int: ...
def pool(
    targets: NDArray[Any],
    weights: NDArray[np.float64],
    scale: Scale,
    lo: float,
    hi: float,
    values: NDArray[np.float64],
    step_weights: NDArray[np.float64],
) -> None: ...
def work_size(n: int, n_words: int) -> int: ...
def summarise(
    targets: NDArray[Any], weights: NDArray[np.float64], buckets: NDArray[np.float64]
) -> tuple[tuple[int, float, float, float, bool], tuple[int, float, float, float, bool]]: ...
def expand(
    values: NDArray[np.float64], starts: NDArray[np.intp], step: int, first: int, out: NDArray[np.float64]
) -> None: ...
def describe(
    scores: NDArray[Any],
    starts: NDArray[np.intp],
    left: NDArray[np.float64],
    right: NDArray[np.float64],
    counts: NDArray[np.int64],
) -> None: ...
def totals(values: NDArray[np.float64], scale: Scale, starts: NDArray[np.int64], out: NDArray[np.float64]) -> None: ...
