import numpy as np
from numpy.typing import NDArray

def values(
    kind: int,
    parameters: NDArray[np.float64],
    z: NDArray[np.float64],
    y: NDArray[np.float64],
    out: NDArray[np.float64],
) -> None: ...
def slopes(
    kind: int,
    parameters: NDArray[np.float64],
    function: int,
    user_data: int,
    z: NDArray[np.float64],
    y: NDArray[np.float64],
    big: NDArray[np.float64],
    tail: NDArray[np.float64],
    curve: NDArray[np.float64],
) -> int: ...
