import numpy as np
from numpy.typing import NDArray

def join_groups(
    kind: int,
    parameters: NDArray[np.float64],
    function: int,
    user_data: int,
    targets: NDArray[np.float64],
    weights: NDArray[np.float64],
    slopes: NDArray[np.float64],
    starts: NDArray[np.int64],
    stops: NDArray[np.int64],
    cuts: NDArray[np.float64],
    budget: int,
    state: NDArray[np.uint8],
    stack: NDArray[np.uint8],
    joined: NDArray[np.uint8],
) -> bool: ...
def state_size() -> int: ...
def group_size() -> int: ...
