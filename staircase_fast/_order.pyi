from typing import Any

import numpy as np
from numpy.typing import NDArray

def work_size(n: int) -> int: ...
def sort_columns(
    scores: NDArray[Any],
    targets: NDArray[Any],
    weights: NDArray[np.float64],
    x: NDArray[Any],
    y: NDArray[Any],
    w: NDArray[np.float64],
    work: NDArray[np.uint8],
) -> None: ...
