from typing import Any

import numpy as np
from numpy.typing import NDArray

def locate(scores: NDArray[Any], bucket_map: NDArray[np.float64], out: NDArray[np.intp]) -> None: ...
def index_steps(left: NDArray[np.float64], bucket_map: NDArray[np.float64], first: NDArray[np.int32]) -> None: ...
def evaluate(
    queries: NDArray[Any],
    left: NDArray[np.float64],
    right: NDArray[np.float64],
    values: NDArray[np.float64],
    below: float,
    above: float,
    linear: bool,
    bucket_map: NDArray[np.float64],
    first: NDArray[np.int32],
    out: NDArray[np.float64],
) -> None: ...
