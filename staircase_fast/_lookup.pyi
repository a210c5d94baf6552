from typing import Any

import numpy as np
from numpy.typing import NDArray

def evaluate(
    queries: NDArray[Any],
    left: NDArray[np.float64],
    right: NDArray[np.float64],
    values: NDArray[np.float64],
    below: float,
    above: float,
    linear: bool,
    out: NDArray[np.float64],
) -> None: ...
