"""Make memory allocations fail inside public calls.

    python tests/safety/fuzz_memory.py --seconds 60 --seed 0 [--only WORDS]

A preloaded library (failing_malloc.c, compiled here with cc) makes the k-th allocation of a call fail, and perhaps some
after it, in our kernels, NumPy or Python.  The call must then raise MemoryError or return the correct result.  Its
inputs must not change, no thread may remain, and the same call with the same objects must succeed afterwards.

Anything else is a finding.  It is printed as a command that repeats it, with the functions that requested the memory
or, for a crash, its location.  A SystemError, crash or hang can be a fault of NumPy or Python: if none of our kernels
is among the innermost functions, it is listed but does not fail the run.  Any other exception counts as ours if one of
our modules raised it.
"""

from __future__ import annotations

import argparse
import ctypes
import datetime as dt
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
SIZES = 12, 300, 2_500, 70_000
FOREVER = 2**60
MOST_SECONDS = 100  # for all calls of a worker; after that it counts as a hang
OURS, NUMPY, PYTHON, C_LIBRARY = "staircase_fast", "NumPy", "Python", "the C library"
OURS_ALWAYS = "wrong answer", "thread left", "input changed", "no worker"
# Faults of Python and the C library when memory runs out: creating a lock raises RuntimeError; Thread.start waits for a
# thread that could not be created (the thread prints this); a lack of thread-local data ends the process.
KNOWN = {
    "can't allocate lock": PYTHON,
    "can't allocate read lock": PYTHON,
    "Exception ignored in thread started by": PYTHON,
    "cannot allocate memory for thread-local data": C_LIBRARY,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=int(dt.datetime.now(tz=dt.UTC).strftime("%Y%m%d")))
    parser.add_argument("--only", default="", help="calls whose names contain this")
    parser.add_argument("--repeat", help="repeat one finding, as printed")
    parser.add_argument("--work", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        Worker().run(json.loads(options.work))
        return
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None or sys.platform != "linux":
        sys.exit("fuzz_memory.py needs Linux with glibc and a C compiler.")
    with tempfile.TemporaryDirectory() as directory:
        shim = os.path.join(directory, "failing_malloc.so")
        subprocess.run([compiler, "-O1", "-shared", "-fPIC", "-o", shim, HERE / "failing_malloc.c"], check=True)
        if options.repeat:
            orders = json.loads(options.repeat)
            found = run_worker(shim, orders)
            print("\n".join(json.dumps(line, indent=1) for line in found if line["outcome"] != "right"))
            return
        sys.exit(fuzz(shim, options))


def fuzz(shim: str, options: argparse.Namespace) -> int:
    """Start workers until the time is over; return the exit status."""
    from calls import CALLS

    rng = random.Random(options.seed)
    names = [name for name in CALLS if options.only in name]
    end = time.monotonic() + options.seconds
    outcomes: Counter[tuple[str, str]] = Counter()
    findings: dict[tuple[str, ...], dict[str, Any]] = {}
    n_findings: Counter[tuple[str, ...]] = Counter()
    todo: list[str] = []
    while time.monotonic() < end:
        todo = todo or rng.sample(names, len(names))
        # half of the workers ignore the allocations of Python and NumPy, which are the majority
        orders = {"call": todo.pop(), "n": rng.choice(SIZES), "seed": rng.randrange(2**31), "most": 60}
        orders |= {"only_ours": rng.random() < 0.5, "seconds": end - time.monotonic()}
        for line in run_worker(shim, orders):
            outcomes[line["outcome"], line["owner"]] += 1
            if line["outcome"] not in ("right", "MemoryError"):
                kind = (line["outcome"], line["owner"], re.sub(r"0x\w+|/\S+/", "..", line["detail"])[:80])
                findings.setdefault(kind, line)
                n_findings[kind] += 1
    print(f"{sum(outcomes.values())} failing allocations (seed {options.seed}):")
    for (outcome, owner), count in outcomes.most_common():
        print(f"  {count:6}  {outcome}, allocation by {owner}")
    for kind, line in sorted(findings.items()):
        outcome, owner, detail = kind
        print(f"\n{n_findings[kind]} x {outcome} ({owner}): {detail}")
        repeat = {key: line[key] for key in ("call", "n", "seed", "only_ours", "k", "last")}
        print(f"  python tests/safety/fuzz_memory.py --repeat '{json.dumps(repeat)}'")
        print("  " + "\n  ".join(line["where"][:12]))
    return any(owner == OURS or outcome in OURS_ALWAYS or "afterwards" in outcome for outcome, owner, _ in findings)


def run_worker(shim: str, orders: dict[str, Any]) -> list[dict[str, Any]]:
    """The reports of a worker: one per failed allocation, and one more if it died."""
    environment = {**os.environ, "LD_PRELOAD": shim, "PYTHONMALLOC": "malloc"}
    command = [sys.executable, __file__, "--work", json.dumps({**orders, "shim": shim})]
    with tempfile.TemporaryFile() as errors:
        try:
            done = subprocess.run(
                command, env=environment, stdout=subprocess.PIPE, stderr=errors, timeout=MOST_SECONDS, check=False
            )
            said, status = done.stdout, done.returncode
        except subprocess.TimeoutExpired as late:
            said, status = late.stdout or b"", None
        errors.seek(0)
        crash = errors.read().decode(errors="replace")
    lines = [json.loads(line) for line in said.decode().splitlines()]
    *lines, last = lines or [{**orders, "k": 0, "last": 0, "outcome": "no worker", "owner": OURS, "where": []}]
    lines = [line for line in lines if line["outcome"] != "begun"]
    if last["outcome"] != "done":
        frames = [frame for frame in crash.splitlines() if "failing_malloc" not in frame]
        where = [shortened(frame) for frame in frames if "(" in frame or frame.startswith("failed")]
        owner = owner_of(frames[: frames.index("failed allocation:")] if "failed allocation:" in frames else frames)
        owner = next((known for text, known in KNOWN.items() if text in crash), owner if frames else OURS)
        detail = next((frame for frame in where if "libc.so" not in frame), crash[-80:])
        outcome = "hang" if status is None else f"crash {status}"
        lines.append({**last, "outcome": outcome, "owner": owner, "detail": detail, "where": where})
    return lines


def shortened(frame: str) -> str:
    """A frame as backtrace_symbols writes it, without directories."""
    return frame.rsplit("/", 1)[-1]


def owner_of(frames: list[str]) -> str:
    """The owner of the innermost code: our package or NumPy, or Python if its interpreter loop comes first."""
    for frame in frames:
        if not re.search(r"\) ?\[0x", frame):
            continue
        if "/staircase_fast/" in frame:
            return OURS
        if "/numpy/" in frame or "/_core/" in frame:
            return NUMPY
        if "_PyEval_EvalFrameDefault" in frame:
            return PYTHON
    return PYTHON


class Worker:
    """Repeats one call, with a different failing allocation each time."""

    def __init__(self) -> None:
        warnings.simplefilter("ignore")
        sys.path.insert(0, str(HERE))
        import calls

        self.calls = calls

    def run(self, orders: dict[str, Any]) -> None:
        self.shim = ctypes.CDLL(orders["shim"])
        self.shim.fail_from_now_on.argtypes = [ctypes.c_long, ctypes.c_long]
        self.shim.fail_no_more.restype = ctypes.c_long
        self.name, self.call = orders["call"], self.calls.CALLS[orders["call"]]
        self.n, self.seed = orders["n"], orders["seed"]
        self.data = self.calls.columns(self.n, self.seed)
        self.clean = self.calls.columns(self.n, self.seed)
        rng = random.Random(self.seed)
        for _ in range(2):  # import modules and fill caches
            self.expected = self.call.act(self.call.prepare(self.data), self.data)
        self.shim.report_crashes(2)
        self.only_ours = orders["only_ours"]
        if self.only_ours:
            self.count_only_ours()
        if "k" in orders:
            self.fail(orders["k"], orders["last"])
        else:
            prepared = self.call.prepare(self.data)
            self.shim.fail_from_now_on(FOREVER, FOREVER)
            self.call.act(prepared, self.data)
            n_allocations = self.shim.fail_no_more()
            end = time.monotonic() + orders["seconds"]
            for k in rng.sample(range(1, n_allocations + 1), min(orders["most"], n_allocations)):
                if time.monotonic() > end:
                    break
                # not all allocations from k on: Python itself would loop forever (it needs an int to unwind a frame)
                self.fail(k, k + rng.choice([0, 0, 0, 2, 30]))
        self.report("done", [])

    def count_only_ours(self) -> None:
        """Count only allocations by kernels, or by functions that they call."""
        code = [line for line in Path("/proc/self/maps").read_text().splitlines() if " r-xp " in line]
        ours = [line.split()[0].split("-") for line in code if "/staircase_fast/" in line]
        pointers = ctypes.c_void_p * len(ours)
        self.shim.count_only(len(ours), *(pointers(*(int(pair[end], 16) for pair in ours)) for end in (0, 1)))

    def fail(self, k: int, last: int) -> None:
        """Make the allocations k to last of a call fail."""
        self.k, self.last = k, last
        self.report("begun", [])  # if this is the last report, the process died
        prepared, detail, found, owner = self.call.prepare(self.data), "", None, ""
        self.shim.fail_from_now_on(k, last)
        try:
            found = self.call.act(prepared, self.data)
            outcome = "right"
        except BaseException as error:
            self.shim.fail_no_more()
            outcome, detail = type(error).__name__, str(error)
            if isinstance(error, ctypes.ArgumentError):  # ctypes hides the original error
                outcome = detail.split(": ")[1]
            owner = raised_by(error)
        self.shim.fail_no_more()
        where = self.where()
        if outcome == "right" and not same(found, self.expected):
            outcome = "wrong answer"
        elif threads_left():
            outcome, detail = "thread left", f"after {outcome}"
        elif not all(same(self.data[name], self.clean[name]) for name in self.clean):
            outcome, detail = "input changed", f"after {outcome}"
        else:
            # first with the same object: the failed call must not have changed it
            for again in (prepared, self.call.prepare(self.data)):
                try:
                    if not same(self.call.act(again, self.data), self.expected):
                        outcome, detail = "wrong answer afterwards", f"after {outcome}"
                except BaseException as error:
                    outcome, detail = f"{type(error).__name__} afterwards", f"after {outcome}: {error}"
        self.report(outcome, where, detail, owner)

    def where(self) -> list[str]:
        """The functions that requested the memory, innermost first."""
        libc = ctypes.CDLL(None)
        frames = (ctypes.c_void_p * 64)()
        n = self.shim.where_it_failed(frames)
        libc.backtrace_symbols.restype = ctypes.POINTER(ctypes.c_char_p)
        names = libc.backtrace_symbols(frames, n)
        found = [names[i].decode(errors="replace") for i in range(n)]
        return [frame for frame in found if "failing_malloc" not in frame]

    def report(self, outcome: str, where: list[str], detail: str = "", owner: str = "") -> None:
        line = {"call": self.name, "n": self.n, "seed": self.seed, "outcome": outcome}
        line["owner"] = owner or owner_of(where)
        line |= {"k": getattr(self, "k", 0), "last": getattr(self, "last", 0), "only_ours": self.only_ours}
        line |= {"detail": detail, "where": [shortened(frame) for frame in where]}
        print(json.dumps(line), flush=True)


def raised_by(error: BaseException) -> str:
    """The owner of an exception if the exception alone shows it; otherwise an empty string."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    known = next((owner for text, owner in KNOWN.items() if text in str(error)), "")
    if known or isinstance(error, (MemoryError, SystemError)) or trace is None:
        return known
    return OURS if "staircase_fast" in Path(trace.tb_frame.f_code.co_filename).parts else ""


def threads_left() -> bool:
    """Whether a thread still runs after five seconds."""
    end = time.monotonic() + 5
    while time.monotonic() < end:
        if not any(thread.is_alive() for thread in threading.enumerate() if thread is not threading.main_thread()):
            return False
        time.sleep(0.01)
    return True


def same(one: Any, other: Any) -> bool:
    """Whether two results are the same, bit for bit."""
    if isinstance(one, tuple):
        return isinstance(other, tuple) and len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, np.ndarray):
        return one.dtype == other.dtype and one.tobytes() == other.tobytes()
    return bool(one == other)


if __name__ == "__main__":
    sys.path.insert(0, str(HERE))
    import numpy as np

    main()
