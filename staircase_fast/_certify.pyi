import numpy as np
from numpy.typing import NDArray

def sum_slopes(
    kind: int,
    parameters: NDArray[np.float64],
    function: int,
    user_data: int,
    given: NDArray[np.float64],
    targets: NDArray[np.float64],
    weights: NDArray[np.float64],
    ends: NDArray[np.uint8],
    target_error: float,
    starts: NDArray[np.int64],
    at: NDArray[np.float64],
    joined: NDArray[np.uint8],
    backward: bool,
    total: NDArray[np.float64],
    doubt: NDArray[np.float64],
    most: NDArray[np.float64],
    excess: NDArray[np.float64],
    row: NDArray[np.int64],
) -> None: ...
