"""Memory that a fit needs beyond its input.  This module measures it in a new process, on columns from a folder."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import staircase_fast as sf

from .patterns import Rows

PACKAGE_PATH = str(Path(sf.__file__).parents[1])  # asv does not pass the path of the package to its child processes

# Freed large arrays go back to the system, so that their reuse is measured too (glibc; others ignore it).
_ENVIRONMENT = {"MALLOC_MMAP_THRESHOLD_": "131072", "PYTHONPATH": PACKAGE_PATH}


def extra_bytes(given: Rows) -> int:
    """Growth of the peak resident memory during a fit of these rows."""
    with tempfile.TemporaryDirectory() as directory:
        # The process reads the input from files, so that it holds nothing else before the fit.
        for name, column in given._asdict().items():
            if column is not None:
                np.save(Path(directory, name), column)
        command = [sys.executable, "-m", "benchmarks.extra_memory", directory]
        here, environment = Path(__file__).parents[1], os.environ | _ENVIRONMENT
        done = subprocess.run(command, cwd=here, env=environment, stdout=subprocess.PIPE, text=True, check=True)
        return int(done.stdout)


def peak_bytes() -> int:
    """Peak resident memory so far."""
    status = Path("/proc/self/status")
    if status.exists():  # on Linux, ru_maxrss includes the memory of the parent before exec; VmHWM does not
        return 1024 * int(status.read_text().partition("VmHWM:")[2].split()[0])
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def main(directory: Path) -> None:
    small = np.random.default_rng(0).random((2, 30_000))
    sf.fit(*small)  # loads everything that a first fit loads
    columns = {file.stem: np.load(file) for file in directory.glob("*.npy")}
    before = peak_bytes()
    sf.fit(columns["scores"], columns["targets"], sample_weight=columns.get("weights"))
    print(peak_bytes() - before)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
