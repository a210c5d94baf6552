from typing import Any

import numpy as np
from numpy.typing import NDArray

from staircase_fast.exact import Scale

def survey_labels(
    scores: NDArray[Any], labels: NDArray[Any], bucket_map: NDArray[np.float64], table: NDArray[Any]
) -> bool: ...
def survey(
    scores: NDArray[Any],
    targets: NDArray[Any],
    weights: NDArray[np.float64],
    centre: float,
    bucket_map: NDArray[np.float64],
    table: NDArray[np.uint32],
) -> None: ...
def add_summaries(table: NDArray[np.uint32], other: NDArray[np.uint32]) -> None: ...
def plan_labels(
    table: NDArray[Any],
    decreasing: bool,
    n_rows: int,
    starts: NDArray[np.intp],
    s: NDArray[np.float64],
    w: NDArray[np.float64],
    live: NDArray[np.uint8],
) -> None: ...
def plan_summaries(
    table: NDArray[np.uint32],
    decreasing: bool,
    n_rows: int,
    greatest: float,
    starts: NDArray[np.intp],
    s: NDArray[np.float64],
    w: NDArray[np.float64],
    live: NDArray[np.uint8],
) -> None: ...
def index_live(live: NDArray[np.uint8], directory: NDArray[np.uint64]) -> int: ...
def sum_labels(
    table: NDArray[Any],
    directory: NDArray[np.uint64],
    atom_runs: NDArray[np.int32],
    kept_rows: NDArray[np.uint64],
    places: NDArray[np.int32],
    rows: NDArray[np.int64],
    words: NDArray[np.uint64],
) -> None: ...
def collect(
    scores: NDArray[Any],
    targets: NDArray[Any],
    weights: NDArray[np.float64],
    first: int,
    bucket_map: NDArray[np.float64],
    directory: NDArray[np.uint64],
    atoms: NDArray[np.float64],
    atom_runs: NDArray[np.int32],
    scale: Scale,
    summed: bool,
    kept: NDArray[np.uint32],
    rows: NDArray[np.int64],
    words: NDArray[np.uint64],
    work: NDArray[np.uint8],
) -> int: ...
def collect_size(n_runs: int) -> int: ...
def add_runs(
    scale: Scale,
    rows: NDArray[np.int64],
    words: NDArray[np.uint64],
    other_rows: NDArray[np.int64],
    other_words: NDArray[np.uint64],
) -> None: ...
