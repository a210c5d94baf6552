from typing import Any

import numpy as np
from numpy.typing import NDArray

def locate(scores: NDArray[Any], bucket_map: NDArray[np.float64], out: NDArray[np.int32]) -> None: ...
def index_steps(left: NDArray[np.float64], bucket_map: NDArray[np.float64], index: NDArray[np.float64]) -> None: ...
def draw_lines(
    left: NDArray[np.float64], right: NDArray[np.float64], values: NDArray[np.float64], lines: NDArray[np.float64]
) -> None: ...
def evaluate(
    queries: NDArray[Any],
    left: NDArray[np.float64],
    right: NDArray[np.float64],
    values: NDArray[np.float64],
    linear: bool,
    outside: bool,
    bucket_map: NDArray[np.float64],
    index: NDArray[np.float64],
    lines: NDArray[np.float64],
    out: NDArray[np.float64],
) -> int: ...
def evaluate_pairs(
    queries: NDArray[Any],
    left: NDArray[np.float64],
    values: NDArray[np.float64],
    bucket_map: NDArray[np.float64],
    index: NDArray[np.float64],
    first: NDArray[np.float64],
    second: NDArray[np.float64],
) -> int: ...
def evaluate_groups(
    queries: NDArray[Any],
    groups: NDArray[Any],
    low: int,
    places: NDArray[np.int32],
    offsets: NDArray[np.int64],
    left: NDArray[np.float64],
    right: NDArray[np.float64],
    values: NDArray[np.float64],
    linear: bool,
    outside: bool,
    out: NDArray[np.float64],
) -> tuple[int, int]: ...
