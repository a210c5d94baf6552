"""Time the command line on Parquet files, compared with reading and writing them with pyarrow alone.

PYTHONPATH=. .venv/bin/python asv_benchmarks/files.py [ROWS]

Each run is a separate process, including its start and imports; times are medians of alternating runs.  Target: our
command takes at most twice as long as pyarrow needs to move the same columns.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np
import pyarrow as pa
from pyarrow import parquet

TARGET = 2.0
REPEATS = 5

READ = """
import sys
from pyarrow import parquet
parquet.read_table(sys.argv[1], columns=["score", "label"])
"""
READ_AND_WRITE = """
import sys
from pyarrow import parquet
file = parquet.ParquetFile(sys.argv[1])
with parquet.ParquetWriter(sys.argv[2], file.schema_arrow) as writer:
    for group in range(file.num_row_groups):
        writer.write_table(file.read_row_group(group))
"""


def main(n: int) -> None:
    rng = np.random.default_rng(0)
    scores = rng.random(n)
    table = pa.table({"id": np.arange(n), "score": scores, "label": rng.random(n) < scores})
    with tempfile.TemporaryDirectory() as folder:
        data, model, output = (os.path.join(folder, name) for name in ("data.parquet", "model.json", "output.parquet"))
        parquet.write_table(table, data, row_group_size=1 << 20)
        command = [sys.executable, "-m", "staircase_fast"]
        programs = {
            "fit": [*command, "fit", data, "--model", model],
            "read": [sys.executable, "-c", READ, data],
            "apply": [*command, "apply", data, "--model", model, "--output", output],
            "read and write": [sys.executable, "-c", READ_AND_WRITE, data, output],
        }
        times: dict[str, list[float]] = {name: [] for name in programs}
        for _ in range(REPEATS):
            for name, words in programs.items():
                start = time.perf_counter()
                subprocess.run(words, stdout=subprocess.DEVNULL, check=True)
                times[name].append(time.perf_counter() - start)
        result = parquet.read_table(output)
        assert result.num_rows == n
    seconds = {name: statistics.median(found) for name, found in times.items()}
    lines = {
        "fit": (seconds["fit"], seconds["read"], None),
        "apply": (seconds["apply"], seconds["read and write"], None),
        "fit and apply": (seconds["fit"] + seconds["apply"], seconds["read"] + seconds["read and write"], TARGET),
    }
    print(f"{n:,} rows of Parquet; pyarrow {pa.__version__}\n")
    print(f"{'seconds':16}{'ours':>8}{'pyarrow':>8}{'ratio':>8}{'target':>8}")
    for name, (ours, alone, target) in lines.items():
        verdict = "" if target is None else f"{target:7.1f}x  {'yes' if ours <= target * alone else 'NO'}"
        print(f"{name:16}{ours:8.2f}{alone:8.2f}{ours / alone:7.2f}x{verdict}")


if __name__ == "__main__":
    main(int(float(sys.argv[1])) if len(sys.argv) > 1 else 10_000_000)
