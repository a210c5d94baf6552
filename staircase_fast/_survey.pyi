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
    n_rows: int,
    greatest: float,
    starts: NDArray[np.intp],
    s: NDArray[np.float64],
    w: NDArray[np.float64],
    live: NDArray[np.uint8],
) -> None: ...
def unpack_labels(words: NDArray[np.uint64], table: NDArray[np.float64]) -> None: ...
def collect(
    scores: NDArray[Any],
    targets: NDArray[Any],
    weights: NDArray[np.float64],
    bucket_map: NDArray[np.float64],
    live: NDArray[np.uint64],
    atoms: NDArray[np.float64],
    atom_runs: NDArray[np.int32],
    kept: NDArray[np.float64],
    runs: NDArray[np.float64],
) -> int: ...
def sequence(
    kept: NDArray[np.float64],
    n_kept: int,
    table: NDArray[np.float64],
    bucket_map: NDArray[np.float64],
    live: NDArray[np.uint64],
    atoms: NDArray[np.float64],
    atom_runs: NDArray[np.int32],
    decreasing: bool,
    ordered: NDArray[np.float64],
    ends: NDArray[np.intp],
    runs: NDArray[np.float64],
    x: NDArray[np.float64],
    y: NDArray[np.float64],
    w: NDArray[np.float64],
    run: NDArray[np.intp],
) -> int: ...
def finish_items(
    x: NDArray[np.float64],
    y: NDArray[np.float64],
    w: NDArray[np.float64],
    run: NDArray[np.intp],
    runs: NDArray[np.float64],
    scale: Scale,
    decreasing: bool,
    least_weight: float,
    lo: float,
    hi: float,
    starts: NDArray[np.intp],
    values: NDArray[np.float64],
    step_weights: NDArray[np.float64],
    known: NDArray[np.uint8],
    words: NDArray[np.uint64],
) -> int: ...
def tally(
    scores: NDArray[Any],
    targets: NDArray[Any],
    weights: NDArray[np.float64],
    left: NDArray[np.float64],
    bucket_map: NDArray[np.float64],
    first: NDArray[np.int32],
    scale: Scale,
    work: NDArray[np.uint8],
    counts: NDArray[np.intp],
    words: NDArray[np.uint64],
) -> None: ...
def tally_size(n_steps: int) -> int: ...
def round_steps(
    scale: Scale,
    lo: float,
    hi: float,
    starts: NDArray[np.intp],
    values: NDArray[np.float64],
    step_weights: NDArray[np.float64],
    words: NDArray[np.uint64],
    n_items: int,
) -> int: ...
