"""Fits of Parquet files by Dask: a cluster of one process beside a cluster of two.

    python asv_benchmarks/engines_dask.py [--rows 2e7] [--repeats 3]

Each process has one thread.  The clusters run one after the other; the table has the median time of each.  All results
must equal `sf.fit` of the rows in memory.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
from distributed import Client, LocalCluster, wait

import staircase_fast as sf
from staircase_fast import dask as sfd

ROWS_PER_FILE = 10**6


def write_files(folder: Path, n_rows: int) -> None:
    rng = np.random.default_rng(0)
    for number, first in enumerate(range(0, n_rows, ROWS_PER_FILE)):
        scores = rng.normal(size=min(ROWS_PER_FILE, n_rows - first))
        frame = pd.DataFrame({"score": scores, "label": rng.random(len(scores)) < 1 / (1 + np.exp(-scores))})
        frame["target"] = frame["score"] + 2 * rng.normal(size=len(scores))
        frame.to_parquet(folder / f"{number:04}.parquet")


def times(folder: Path, target: str, n_workers: int, repeats: int, expected: sf.Staircase) -> list[float]:
    """Median seconds of a fit that reads the files, and of a fit of rows in the memory of the workers."""
    options = {"threads_per_worker": 1, "processes": True, "dashboard_address": ":0", "memory_limit": 0}
    with LocalCluster(n_workers=n_workers, **options) as cluster, Client(cluster):
        files = dd.read_parquet(folder, columns=["score", target])
        stored = files.persist()
        wait(stored)
        medians = []
        for data in (files, stored):
            seconds = []
            for turn in range(repeats + 1):
                start = time.perf_counter()
                found = sfd.fit(data, "score", target)
                if turn:  # the first one is to warm up
                    seconds.append(time.perf_counter() - start)
                assert found == expected
            medians.append(statistics.median(seconds))
    return medians


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=float, default=2e7)
    parser.add_argument("--repeats", type=int, default=3)
    given = parser.parse_args()
    n = int(given.rows)
    print(f"{n} rows, {ROWS_PER_FILE} per file, dask {dask.__version__}; seconds")
    print(f"{'targets':8} {'rows are':10} {'1 process':>10} {'2 processes':>12} {'ratio':>6}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_files(folder, n)
        for target in ("label", "target"):
            frame = pd.read_parquet(folder, columns=["score", target])
            expected = sf.fit(frame["score"], frame[target])
            del frame
            one, two = (times(folder, target, n_workers, given.repeats, expected) for n_workers in (1, 2))
            for where, a, b in zip(("in files", "in memory"), one, two, strict=True):
                print(f"{target:8} {where:10} {a:10.2f} {b:12.2f} {a / b:6.2f}", flush=True)


if __name__ == "__main__":
    main()
