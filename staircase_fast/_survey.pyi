from typing import Any

import numpy as np
from numpy.typing import NDArray

from staircase_fast.exact import Scale

def survey_labels(
    scores: NDArray[Any], labels: NDArray[Any], bucket_map: NDArray[np.float64], table: NDArray[np.uint64]
) -> None: ...
def survey(
    scores: NDArray[Any],
    targets: NDArray[Any],
    weights: NDArray[np.float64],
    bucket_map: NDArray[np.float64],
    table: NDArray[np.float64],
) -> None: ...
def plan_buckets(
    table: NDArray[np.float64],
    decreasing: bool,
    greatest: float,
    starts: NDArray[np.intp],
    s: NDArray[np.float64],
    w: NDArray[np.float64],
    live: NDArray[np.uint8],
) -> None: ...
def unpack_labels(words: NDArray[np.uint64], table: NDArray[np.float64]) -> None: ...
def lay_out(
    table: NDArray[np.float64],
    decreasing: bool,
    live: NDArray[np.uint8],
    places: NDArray[np.intp],
    runs: NDArray[np.float64],
) -> tuple[int, int]: ...
def collect(
    scores: NDArray[Any],
    targets: NDArray[Any],
    weights: NDArray[np.float64],
    bucket_map: NDArray[np.float64],
    places: NDArray[np.intp],
    atoms: NDArray[np.float64],
    atom_runs: NDArray[np.intp],
    scale: Scale,
    kept: NDArray[np.float64],
    runs: NDArray[np.float64],
    run_words: NDArray[np.uint64],
) -> None: ...
def sequence(
    kept: NDArray[np.float64],
    begins: NDArray[np.intp],
    places: NDArray[np.intp],
    atoms: NDArray[np.float64],
    atom_runs: NDArray[np.intp],
    runs: NDArray[np.float64],
    x: NDArray[np.float64],
    y: NDArray[np.float64],
    w: NDArray[np.float64],
    run: NDArray[np.intp],
    before: NDArray[np.intp],
) -> int: ...
def finish_items(
    x: NDArray[np.float64],
    y: NDArray[np.float64],
    w: NDArray[np.float64],
    run: NDArray[np.intp],
    runs: NDArray[np.float64],
    run_words: NDArray[np.uint64],
    scale: Scale,
    decreasing: bool,
    n_rows: int,
    lo: float,
    hi: float,
    starts: NDArray[np.intp],
    values: NDArray[np.float64],
    step_weights: NDArray[np.float64],
    known: NDArray[np.uint8],
    words: NDArray[np.uint64],
) -> int: ...
