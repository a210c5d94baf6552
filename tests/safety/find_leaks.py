"""Look for memory that public calls lose; runs on a build with the address sanitizer (`make sanitize`).

Memory that nothing points to any more is a leak.  Python's own leaks at exit do not matter here: the sanitizer looks
before that.  At the end a staircase is lost on purpose, which it must report.
"""

from __future__ import annotations

import ctypes
import os
import sys
import warnings

from calls import CALLS, columns, lose_a_staircase

DATA = columns(3000, 0)  # not local: the sanitizer does not see what frames of Python point to
REPEATS = 3


def main() -> int:
    warnings.simplefilter("ignore")
    has_leaks = ctypes.CDLL(None).__lsan_do_recoverable_leak_check
    for call in CALLS.values():
        for _ in range(REPEATS):
            call.act(call.prepare(DATA), DATA)
    if has_leaks():
        return 1
    print(f"No leak in {REPEATS * len(CALLS)} calls.  One follows that must be found:", flush=True)
    lose_a_staircase(DATA)
    return 0 if has_leaks() else 1


if __name__ == "__main__":
    status = main()
    sys.stdout.flush()
    os._exit(status)  # at once: Python's own leaks at exit are not of interest
