import numpy as np
from numpy.typing import NDArray

TABLES: int
GUIDES: int

def draw(
    state: NDArray[np.uint64],
    n_rows: int,
    ends: NDArray[np.int64],
    guide: NDArray[np.uint16],
    chances: NDArray[np.float64],
    counts: NDArray[np.uint32],
) -> None: ...
def fit_drawn(
    counts: NDArray[np.uint32],
    s: NDArray[np.float64],
    w: NDArray[np.float64],
    segments: NDArray[np.int64],
    places: NDArray[np.int64],
    starts: NDArray[np.int64],
    work: NDArray[np.float64],
    values: NDArray[np.float64],
) -> None: ...
def fit_simulated(
    state: NDArray[np.uint64],
    chances: NDArray[np.float64],
    ends: NDArray[np.int64],
    w: NDArray[np.float64],
    places: NDArray[np.int64],
    starts: NDArray[np.int64],
    work: NDArray[np.float64],
    values: NDArray[np.float64],
) -> None: ...
