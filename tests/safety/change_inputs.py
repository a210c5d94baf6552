"""Change the inputs of public calls while the calls run.

    python tests/safety/change_inputs.py --seconds 60 --seed 0 [--only WORDS]

A second process writes into shared memory.  A call can then return anything or raise an exception, but it must end, and
it must not crash.  A build with the address sanitizer (`make sanitize`) also detects access outside arrays.  If the
process dies, the call is printed.  The same seed repeats it if the timing of the processes is similar.
"""

from __future__ import annotations

import argparse
import faulthandler
import mmap
import os
import random
import signal
import sys
import time
import warnings
from collections import Counter

import numpy as np
from calls import CALLS, columns

from staircase_fast import threads

SIZES = 40, 300, 5_000, 40_000, 70_000, 260_000
MOST_SECONDS = 120  # for one call, on a slow machine with a sanitizer
STRANGE = {
    "f": [np.nan, np.inf, -np.inf, 0.0, -0.0, -1.0, 1e300, 5e-324, 0.5, 2.0],
    "i": [-(2**62), 2**62, -1, 0, 1, 2**31 - 1, 12345],
    "u": [255, 2, 1, 0, 128],
    "b": [0, 1, 255],
}
ALLOWED = (ValueError, RuntimeError, IndexError, ArithmeticError, TypeError, OSError)
RUN, STOP = 1, 0


class Shared:
    """Columns in memory that a second process changes between `start` and `stop`."""

    def __init__(self, data: dict[str, np.ndarray], seed: int) -> None:
        self.clean = data
        self.data = {name: self._shared(column) for name, column in data.items()}
        self.wanted, self.state, self.delay = (self._shared(np.zeros(1, dtype=np.int64)) for _ in range(3))
        self.writer = os.fork()
        if self.writer == 0:
            self._write(random.Random(seed))

    @staticmethod
    def _shared(column: np.ndarray) -> np.ndarray:
        memory = np.frombuffer(mmap.mmap(-1, max(1, column.nbytes)), dtype=column.dtype, count=len(column))
        memory[:] = column
        return memory

    def _write(self, rng: random.Random) -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        parent = os.getppid()
        while os.getppid() == parent:
            self.state[0] = STOP
            while self.wanted[0] == STOP and os.getppid() == parent:
                time.sleep(1e-5)
            self.state[0] = RUN
            time.sleep(int(self.delay[0]) * 1e-6)
            while self.wanted[0] == RUN and os.getppid() == parent:
                self._change(rng)
        os._exit(0)

    def _change(self, rng: random.Random) -> None:
        name = rng.choice(list(self.data))
        column, clean = self.data[name], self.clean[name]
        start = rng.randrange(len(column))
        part = slice(start, start + rng.choice([1, 8, 300, len(column)]))
        how = rng.randrange(4)
        if how == 0:
            raw = column.view(np.uint8) if column.dtype.kind == "b" else column
            raw[part] = np.array(rng.choice(STRANGE[column.dtype.kind])).astype(raw.dtype)
        elif how == 1:
            column[part] = clean[rng.randrange(len(clean))]
        elif how == 2:
            column[part] = clean[::-1][part]
        else:
            column[:] = clean

    def start(self, delay: int) -> None:
        self.delay[0] = delay
        self.wanted[0] = RUN
        while self.state[0] != RUN:
            time.sleep(1e-5)

    def stop(self) -> None:
        self.wanted[0] = STOP
        while self.state[0] != STOP:
            time.sleep(1e-5)
        for name, column in self.data.items():
            column[:] = self.clean[name]

    def close(self) -> None:
        os.kill(self.writer, signal.SIGKILL)
        os.waitpid(self.writer, 0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="calls whose names contain this")
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # NumPy warns about NaN
    rng = random.Random(options.seed)
    names = [name for name in CALLS if options.only in name and name != "files"]  # no calls that use files
    outcomes: Counter[str] = Counter()
    current = mmap.mmap(-1, 100)  # the name of the call, shared with the waiting process
    worker = os.fork()
    if worker:
        status = os.waitstatus_to_exitcode(os.waitpid(worker, 0)[1])
        if status:
            print(f"The call {current[:].rstrip().decode()!r} ended the process: {status} (seed {options.seed}).")
        sys.exit(status != 0)
    end = time.monotonic() + options.seconds
    while time.monotonic() < end:
        shared = Shared(columns(rng.choice(SIZES), rng.randrange(2**32)), rng.randrange(2**32))
        try:
            for name in rng.sample(names, min(len(names), 20)):
                current[:] = name.encode().ljust(100)
                outcomes += one_call(name, shared, rng)
        finally:
            shared.close()
    print(f"{sum(outcomes.values())} calls with changing inputs (seed {options.seed}):")
    for outcome, count in outcomes.most_common():
        print(f"  {count:6}  {outcome}")


def one_call(name: str, shared: Shared, rng: random.Random) -> Counter[str]:
    """Make a call while its inputs change; return its outcome."""
    threads.ROWS_EACH = rng.choice([1 << 18, 4000])
    prepared = CALLS[name].prepare(shared.data)
    faulthandler.dump_traceback_later(MOST_SECONDS, exit=True)
    shared.start(rng.choice([0, 0, 30, 100, 300, 1000, 3000]))
    try:
        CALLS[name].act(prepared, shared.data)
        return Counter(["returned"])
    except ALLOWED as error:
        return Counter([type(error).__name__])
    finally:
        faulthandler.cancel_dump_traceback_later()
        shared.stop()


if __name__ == "__main__":
    main()
