"""Time fits of Parquet files by `fit_batches` and the command line, beside reading both columns twice with pyarrow.

PYTHONPATH=. .venv/bin/python asv_benchmarks/engines.py [--rows 2e7] [--folder FOLDER] [--memory 1GB] [--check]

The files are made first, unless the folder has them: scores and labels, two million rows per file.  Each run is a
separate process, including its start and imports.  Its largest resident memory is measured from outside.  `--check`
also fits all rows in memory, and compares the bits.  Targets: at most 2.5 times the time of pyarrow, and less than
600 MB.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time

import numpy as np
import pyarrow as pa
from pyarrow import parquet

SLOWEST, LARGEST = 2.5, 600
ROWS_PER_FILE = 2_000_000

READ = "pyarrow reads the columns twice"
READ_TWICE = """
import sys
from pyarrow import dataset
for _ in range(2):
    for batch in dataset.dataset(sys.argv[1]).to_batches(columns=["score", "label"]):
        pass
"""
FIT = """
import sys
import staircase_fast as sf
sf.fit_batches(sys.argv[1], "score", "label", memory_limit=sys.argv[3]).save(sys.argv[2])
"""
COMMAND = """
import sys
from staircase_fast.cli.arguments import run
sys.argv[1:] = ["fit", sys.argv[1], "--memory-limit", sys.argv[3], "--model", sys.argv[2], "--streaming"]
sys.exit(run())
"""
FIT_IN_MEMORY = """
import sys
import numpy as np
import staircase_fast as sf
from pyarrow import parquet
table = parquet.read_table(sys.argv[1], columns=["score", "label"])
stairs = sf.fit(table["score"], table["label"])
assert all(stairs == sf.Staircase.load(path) for path in sys.argv[2:])
"""


def make_files(folder: str, n: int) -> None:
    """Write the files that are missing: labels of a miscalibrated model."""
    os.makedirs(folder, exist_ok=True)
    for place, start in enumerate(range(0, n, ROWS_PER_FILE)):
        path = os.path.join(folder, f"part-{place:04}.parquet")
        if os.path.exists(path):
            continue
        rng = np.random.default_rng(place)
        logits = rng.normal(size=min(ROWS_PER_FILE, n - start))
        labels = rng.random(len(logits)) < 1 / (1 + np.exp(-1.5 * logits))
        table = pa.table({"score": 1 / (1 + np.exp(-logits)), "label": labels.astype(np.int8)})
        parquet.write_table(table, path + ".new")
        os.replace(path + ".new", path)


def run(code: str, *arguments: str) -> tuple[float, float]:
    """Run a program; return its seconds and its largest resident memory in MB."""
    start = time.perf_counter()
    process = subprocess.Popen([sys.executable, "-c", code, *arguments], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit("the program failed")
    return time.perf_counter() - start, usage.ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)


def main() -> None:
    """Make the files, run the programs alternately, and print the ratios."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=float, default=2e7)
    parser.add_argument("--folder")
    parser.add_argument("--memory", default="1GB")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    folder = options.folder or f"build/engines/{int(options.rows)}"
    make_files(folder, int(options.rows))
    models = f"{folder}.json", f"{folder}-command.json"
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in (READ, "fit_batches", "staircase-fast fit")}
    for _ in range(options.repeats):
        found[READ].append(run(READ_TWICE, folder))
        found["fit_batches"].append(run(FIT, folder, models[0], options.memory))
        found["staircase-fast fit"].append(run(COMMAND, folder, models[1], options.memory))
    if options.check:
        run(FIT_IN_MEMORY, folder, *models)
    least = min(found[READ])[0]
    missed = False
    for name, runs in found.items():
        seconds, size = min(runs)[0], max(size for _, size in runs)
        print(f"{name:<32} {seconds:8.2f} s  {seconds / options.rows * 1e9:6.1f} ns per row  {size:6.0f} MB", end="")
        print("" if name == READ else f"  ratio {seconds / least:.2f} (target {SLOWEST}; {LARGEST} MB)")
        missed |= name != READ and (seconds > SLOWEST * least or size > LARGEST)
    if options.check:
        print("equal to fit in memory, bit for bit")
    if missed:
        sys.exit("a target is missed")


if __name__ == "__main__":
    main()
