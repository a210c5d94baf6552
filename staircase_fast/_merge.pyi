from typing import Any

import numpy as np
from numpy.typing import NDArray

from staircase_fast.exact import Scale

def merge(
    targets: NDArray[Any],
    weights: NDArray[np.float64],
    tied: NDArray[np.uint8],
    scale: Scale,
    decreasing: bool,
    lo: float,
    hi: float,
    starts: NDArray[np.intp],
    values: NDArray[np.float64],
    step_weights: NDArray[np.float64],
    known: NDArray[np.uint8],
    words: NDArray[np.uint64],
    buckets: NDArray[np.uint8],
) -> int: ...
def work_size(n: int) -> int: ...
