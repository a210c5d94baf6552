"""Run the tests on builds with sanitizers, which `make sanitize` builds first.

    python tests/safety/sanitize.py [short | all]

address   The address and undefined-behaviour sanitizers: all tests except most long ones (`short`: only those of
          kernels), then calls whose inputs change while they run (change_inputs.py), then a search for leaks
          (find_leaks.py).
thread    The thread sanitizer: the tests of threads.

Python and NumPy are not instrumented, so the sanitizer's library is preloaded, and all memory comes from malloc.  Each
sanitizer must first report a deliberate fault.  Any other report makes this script fail.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
TESTS = HERE.parent

KERNEL_TESTS = "arithmetic/test_scan.py", "stack", "staircase/test_lookup.py", "threads/test_changing_inputs.py"
# Sanitizers change how much memory and time a process needs, so tests that limit or measure these are left out.
NOT_HERE = "not a_lack_of_memory and not memory_is_released and not time_limit"

BAD_READ = """
import numpy as np
from staircase_fast.stack import _sorted_rows
_sorted_rows.describe(np.zeros(3), np.array([0, 4]), np.empty(1), np.empty(1), np.empty(1, dtype=np.int64))
"""
RACE = """
import threading
import numpy as np
from staircase_fast.stack import _sorted_rows
out, ready = np.empty(1 << 16), threading.Barrier(2)
def write():
    ready.wait()
    for _ in range(9):
        _sorted_rows.expand(np.ones(1), np.array([0, len(out)]), 0, 0, out)
both = [threading.Thread(target=write) for _ in range(2)]
for one in both: one.start()
for one in both: one.join()
"""


def environment(variant: str, **options: str) -> dict[str, str]:
    """The environment variables for a build and its sanitizer."""
    compiler = os.environ.get("CC", "gcc").split()[0]

    def library(name: str) -> str:
        return subprocess.run([compiler, f"-print-file-name={name}"], capture_output=True, text=True, check=True).stdout

    # the C++ library too: its exceptions must pass through the sanitizer
    preloaded = library("libasan.so" if variant == "address" else "libtsan.so"), library("libstdc++.so.6")
    found = {
        **os.environ,
        "PYTHONPATH": str(ROOT / "build" / f"{variant}-install"),
        "STAIRCASE_FAST_TEST_ROOT": str(ROOT / "build" / f"{variant}-install"),
        "LD_PRELOAD": " ".join(path.strip() for path in preloaded),
        "PYTHONMALLOC": "malloc",
        "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1",  # return NULL for huge sizes, as malloc does
        "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1",
        "TSAN_OPTIONS": "halt_on_error=1:history_size=4",  # no suppressions are needed
    }
    return found | options


def run(variant: str, *arguments: str, **options: str) -> subprocess.CompletedProcess[str]:
    """Run Python on a build, and return its output."""
    command = [sys.executable, *arguments]
    if variant == "thread" and shutil.which("setarch"):
        command = ["setarch", platform.machine(), "-R", *command]  # its shadow memory needs fixed addresses
    print("$", " ".join(arguments)[:100].strip().replace("\n", "; "), f"({variant})", flush=True)
    folder = ROOT / "build" / f"{variant}-install"
    return subprocess.run(
        command, env=environment(variant, **options), cwd=folder, text=True, check=False, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )  # fmt: skip


def must_report(variant: str, code: str, words: str) -> None:
    """Fail if the sanitizer does not report a deliberate fault."""
    done = run(variant, "-c", code)
    if words not in done.stdout or done.returncode == 0:
        sys.exit(f"The {variant} sanitizer does not report a deliberate fault:\n{done.stdout}")


def must_pass(variant: str, *arguments: str, **options: str) -> None:
    """Fail if the process fails or a sanitizer reports anything."""
    done = run(variant, *arguments, **options)
    reports = [word for word in ("ERROR: AddressSanitizer", "ThreadSanitizer: ") if word in done.stdout]
    tail = done.stdout if reports or done.returncode else "\n".join(done.stdout.splitlines()[-3:])
    print(tail, flush=True)
    if done.returncode or reports:
        sys.exit(f"{variant}: exit status {done.returncode} {reports}")


def main() -> None:
    short = (sys.argv[1:] or ["all"])[0] == "short"
    must_report("address", BAD_READ, "heap-buffer-overflow")
    must_report("thread", RACE, "data race")
    pytest = "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-m", "not long", "-k", NOT_HERE
    kernel_tests = [str(TESTS / name) for name in KERNEL_TESTS]
    must_pass("thread", *pytest, str(TESTS / "threads" / "test_threads.py"))
    must_pass("address", *pytest, "-n", "auto", *(kernel_tests if short else [str(TESTS)]))
    if not short:
        anytime = [str(TESTS / "bisection" / name) for name in ("test_anytime.py", "test_anytime_bounds.py")]
        must_pass("address", *pytest, "-m", "long", *anytime)
    # changing inputs may overflow integers, but must not lead to access outside arrays
    changing = str(HERE / "change_inputs.py"), "--seconds", "10" if short else "120"
    must_pass("address", *changing, UBSAN_OPTIONS="halt_on_error=0")
    must_pass("address", str(HERE / "find_leaks.py"), ASAN_OPTIONS="detect_leaks=1")


if __name__ == "__main__":
    main()
