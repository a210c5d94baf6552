import numpy as np
from numpy.typing import NDArray

def add_up(
    kind: int,
    parameters: NDArray[np.float64],
    forecasts: NDArray[np.float64],
    recalibrated: NDArray[np.float64],
    constant: float,
    targets: NDArray[np.float64],
    weights: NDArray[np.float64],
    unit: float,
    edges: NDArray[np.float64],
    sums: NDArray[np.float64],
    counts: NDArray[np.float64],
) -> None: ...
