"""How much memory a fit takes beyond its input, in a process of its own: this module, given a directory of columns."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import staircase_fast as sf

from .patterns import Rows

PACKAGE_PATH = str(Path(sf.__file__).parents[1])  # asv does not tell its children where the package lies

# Large arrays go back to the system when freed, so that none is reused unseen (glibc; others ignore it).
_ENVIRONMENT = {"MALLOC_MMAP_THRESHOLD_": "131072", "PYTHONPATH": PACKAGE_PATH}


def extra_bytes(given: Rows) -> int:
    """By how much the peak of resident memory grows in a fit of these rows."""
    with tempfile.TemporaryDirectory() as directory:
        # Read from files, the input is all that the process has held before the fit.
        for name, column in given._asdict().items():
            if column is not None:
                np.save(Path(directory, name), column)
        command = [sys.executable, "-m", "benchmarks.extra_memory", directory]
        here, environment = Path(__file__).parents[1], os.environ | _ENVIRONMENT
        done = subprocess.run(command, cwd=here, env=environment, stdout=subprocess.PIPE, text=True, check=True)
        return int(done.stdout)


def peak_bytes() -> int:
    """The most memory that was resident so far."""
    status = Path("/proc/self/status")
    if status.exists():  # Linux counts what the parent held before exec in ru_maxrss, but not here
        return 1024 * int(status.read_text().partition("VmHWM:")[2].split()[0])
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def main(directory: Path) -> None:
    small = np.random.default_rng(0).random((2, 30_000))
    sf.fit(*small)  # what a first fit loads is not the input's fault
    columns = {file.stem: np.load(file) for file in directory.glob("*.npy")}
    before = peak_bytes()
    sf.fit(columns["scores"], columns["targets"], sample_weight=columns.get("weights"))
    print(peak_bytes() - before)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
