from typing import Any

import numpy as np
from numpy.typing import NDArray

ROW_WORDS: tuple[int, int, int]

def look(groups: NDArray[Any]) -> tuple[int, int, int]: ...
def number(
    groups: NDArray[Any],
    low: int,
    ranks: NDArray[np.int32],
    numbers: NDArray[np.int32],
    counts: NDArray[np.uint32],
) -> None: ...
def find_begins(numbers: NDArray[np.int32], begins: NDArray[np.int64]) -> int: ...
def scatter(
    scores: NDArray[Any],
    targets: NDArray[Any],
    weights: NDArray[np.float64],
    numbers: NDArray[np.int32],
    part_of: NDArray[np.uint16],
    places: NDArray[np.int64],
    rows: NDArray[np.uint32],
) -> bool: ...
