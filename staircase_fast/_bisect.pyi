import numpy as np
from numpy.typing import NDArray

def cut_runs(
    kind: int,
    parameters: NDArray[np.float64],
    function: int,
    user_data: int,
    targets: NDArray[np.float64],
    weights: NDArray[np.float64],
    ends: NDArray[np.uint8],
    whole: bool,
    tail: NDArray[np.float64],
    curve: NDArray[np.float64],
    location: bool,
    halve: bool,
    tol: float,
    runs: NDArray[np.uint8],
    first: int,
    budget: int,
    state: NDArray[np.uint8],
    still: NDArray[np.uint8],
    done: NDArray[np.uint8],
    n_open: int,
    n_done: int,
) -> tuple[int, int, int, int]: ...
def run_size() -> int: ...
def state_size() -> int: ...
