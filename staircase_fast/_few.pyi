import numpy as np
from numpy.typing import NDArray

MOST_ROWS: int

def fit(
    scores: NDArray[np.float64],
    targets: NDArray[np.float64],
    weights: NDArray[np.float64],
    lowest: float,
    highest: float,
    decreasing: bool,
    lo: float,
    hi: float,
    steps: NDArray[np.float64],
) -> int: ...
def regress(
    targets: NDArray[np.float64],
    weights: NDArray[np.float64],
    lowest: float,
    highest: float,
    decreasing: bool,
    x: NDArray[np.float64],
    step_weights: NDArray[np.float64],
    starts: NDArray[np.intp],
) -> int: ...
