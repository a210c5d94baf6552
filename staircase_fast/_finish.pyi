from typing import Any

import numpy as np
from numpy.typing import NDArray

from staircase_fast.exact import Scale

def gather(
    scores: NDArray[Any],
    targets: NDArray[Any],
    weights: NDArray[np.float64],
    kept: NDArray[np.uint32],
    bucket_map: NDArray[np.float64],
    directory: NDArray[np.uint64],
    rows: NDArray[np.uint64],
    places: NDArray[np.int32],
) -> None: ...
def arrange(
    rows: NDArray[np.uint64], places: NDArray[np.int32], ends: NDArray[np.intp], arranged: NDArray[np.uint64]
) -> None: ...
def sort_buckets(
    rows: NDArray[np.uint64], ends: NDArray[np.intp], first: int, last: int, spare: NDArray[np.uint64]
) -> None: ...
def sequence(
    rows: NDArray[np.uint64],
    ends: NDArray[np.intp],
    atoms: NDArray[np.float64],
    atom_runs: NDArray[np.int32],
    run_rows: NDArray[np.int64],
    x: NDArray[np.float64],
    y: NDArray[np.float64],
    w: NDArray[np.float64],
    tied: NDArray[np.uint8],
    run: NDArray[np.intp],
) -> int: ...
def merge_items(
    y: NDArray[np.float64],
    w: NDArray[np.float64],
    tied: NDArray[np.uint8],
    run: NDArray[np.intp],
    sums: NDArray[np.uint64],
    scale: Scale,
    decreasing: bool,
    lo: float,
    hi: float,
    starts: NDArray[np.intp],
    values: NDArray[np.float64],
    step_weights: NDArray[np.float64],
    known: NDArray[np.uint8],
    words: NDArray[np.uint64],
) -> int: ...
