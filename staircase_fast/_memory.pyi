import numpy as np
from numpy.typing import NDArray

def questions(
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
    cuts: NDArray[np.float64],
    targets: NDArray[np.float64],
    nearby: float,
    lowest: float,
    z: NDArray[np.float64],
    y: NDArray[np.float64],
) -> None: ...
def answers(
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
    z: NDArray[np.float64],
    slopes: NDArray[np.float64],
    last_z: NDArray[np.float64],
    slope: NDArray[np.float64],
    curve: NDArray[np.float64],
) -> int: ...
