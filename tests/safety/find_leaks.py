"""Search for memory leaks in public calls, on a build with the address sanitizer (`make sanitize`).

The sanitizer checks before Python exits, so leaks of Python itself at exit do not matter.  At the end, one staircase is
leaked on purpose; the sanitizer must report it.
"""

from __future__ import annotations

import ctypes
import os
import sys
import warnings

from calls import CALLS, columns, lose_a_staircase

DATA = columns(3000, 0)  # global: the sanitizer does not see references from Python frames
REPEATS = 3


def main() -> int:
    warnings.simplefilter("ignore")
    has_leaks = ctypes.CDLL(None).__lsan_do_recoverable_leak_check
    for call in CALLS.values():
        for _ in range(REPEATS):
            call.act(call.prepare(DATA), DATA)
    if has_leaks():
        return 1
    print(f"No leak in {REPEATS * len(CALLS)} calls.  The next leak is deliberate and must be reported:", flush=True)
    lose_a_staircase(DATA)
    return 0 if has_leaks() else 1


if __name__ == "__main__":
    status = main()
    sys.stdout.flush()
    os._exit(status)  # skip Python's own leaks at exit
