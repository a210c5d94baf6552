from typing import Any

import numpy as np
from numpy.typing import NDArray

from staircase_fast.exact import Scale

def work_size(n: int, n_words: int) -> int: ...
def fit(
    scores: NDArray[Any],
    labels: NDArray[np.uint8],
    weights: NDArray[np.float64],
    query_weight: float,
    scale: Scale,
    work: NDArray[np.uint64],
    left: NDArray[np.float64],
    values: NDArray[np.float64],
) -> int: ...
