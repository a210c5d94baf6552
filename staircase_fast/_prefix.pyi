import numpy as np
from numpy.typing import NDArray

WORK_COLUMNS: int

def losses(
    targets: NDArray[np.float64],
    weights: NDArray[np.float64],
    decreasing: bool,
    work: NDArray[np.float64],
    out: NDArray[np.float64],
) -> None: ...
