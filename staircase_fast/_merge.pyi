from typing import Any

import numpy as np
from numpy.typing import NDArray

from staircase_fast.exact import Scale

def merge(
    targets: NDArray[Any],
    weights: NDArray[np.float64],
    tied: NDArray[np.uint8],
    scale: Scale,
    lo: float,
    hi: float,
    starts: NDArray[np.intp],
    values: NDArray[np.float64],
    step_weights: NDArray[np.float64],
    sums: NDArray[np.uint64],
) -> int: ...
