from typing import Any

import numpy as np
from numpy.typing import NDArray

from staircase_fast.exact import Scale

def work_size(most_rows: int, part_rows: int, n_words: int) -> int: ...
def fit_scattered(
    rows: NDArray[np.uint32],
    starts: NDArray[np.int64],
    parts: NDArray[np.int64],
    first: int,
    last: int,
    scale: Scale,
    decreasing: bool,
    lo: float,
    hi: float,
    most_rows: int,
    part_rows: int,
    work: NDArray[np.uint64],
    places: NDArray[np.int64],
    n_steps: NDArray[np.int64],
    left: NDArray[np.float64],
    right: NDArray[np.float64],
    values: NDArray[np.float64],
    weights: NDArray[np.float64],
    counts: NDArray[np.int64],
) -> int: ...
def fit_standing(
    scores: NDArray[Any],
    targets: NDArray[Any],
    given_weights: NDArray[np.float64],
    labels: bool,
    begins: NDArray[np.int64],
    sizes: NDArray[np.int64],
    first: int,
    last: int,
    scale: Scale,
    decreasing: bool,
    lo: float,
    hi: float,
    most_rows: int,
    work: NDArray[np.uint64],
    n_steps: NDArray[np.int64],
    left: NDArray[np.float64],
    right: NDArray[np.float64],
    values: NDArray[np.float64],
    weights: NDArray[np.float64],
    counts: NDArray[np.int64],
) -> int: ...
