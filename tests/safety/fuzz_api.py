"""Random calls of the public API, compared with exact arithmetic: `make fuzz-api`.

Calls run in child processes, so crashes and hangs are found too.  Each kind of finding is printed once, as a script
that reproduces it.  The exit status is 1 if there are findings.
"""

import argparse
import collections
import datetime as dt
import faulthandler
import json
import os
import queue
import random
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import IO, Any

import numpy as np

HERE = Path(__file__).resolve().parent
REPORT_EVERY = 0.5  # seconds
START = 300.0  # seconds for the imports of a child
HANG = 60.0  # seconds without a report


def child(seed: int, first: int, seconds: float, only: str, journal: Path) -> None:
    """Make calls for a number of seconds, and report on stdout, one JSON object per line."""
    sys.path[:0] = [str(HERE), str(HERE.parent)]
    import api_fits  # noqa: F401  (each of these adds to the list of calls)
    import api_refusals  # noqa: F401
    import api_streams  # noqa: F401
    from api_calls import CALLS
    from api_script import Finding, Script

    faulthandler.enable()
    reports = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # calls may print: `print` is one of their arguments
    file = os.open(journal, os.O_RDWR | os.O_CREAT)
    names = [name for name in CALLS if only in name]
    if not names:
        sys.exit(f"no call has {only!r} in its name; there are: {', '.join(CALLS)}")
    shares = [CALLS[name][1] for name in names]
    made: collections.Counter[str] = collections.Counter()
    reported = began = time.monotonic()  # imports are done
    index = first

    def report(**more: Any) -> None:
        reports.write(json.dumps({"made": dict(made), "next": index, **more}) + "\n")
        reports.flush()
        made.clear()

    report()
    while time.monotonic() < began + seconds:
        kind = random.Random(f"{seed} {index}").choices(names, shares)[0]
        script = Script(kind, file)
        made[kind] += 1
        try:
            CALLS[kind][0](script, np.random.default_rng([seed, index]))
        except Finding as found:
            report(finding=[found.signature, found.problem, found.script, index])
        index += 1
        if time.monotonic() - reported > REPORT_EVERY:
            report()
            reported = time.monotonic()
    report(done=True)


def pass_on(stream: IO[str], lines: "queue.Queue[str]") -> None:
    """Put each line of a stream into a queue, and an empty one at its end."""
    for line in stream:
        lines.put(line)
    lines.put("")


def next_line(lines: "queue.Queue[str]", seconds: float) -> str | None:
    """The next line, or None if none arrives in time."""
    try:
        return lines.get(timeout=seconds)
    except queue.Empty:
        return None


class Campaign:
    """Child processes, restarted after a crash, and their reports."""

    def __init__(self, options: argparse.Namespace, folder: Path) -> None:
        self.options, self.folder, self.seconds = options, folder, options.seconds
        self.made: collections.Counter[str] = collections.Counter()
        self.findings: dict[str, list[tuple[str, str, int]]] = {}

    def run(self) -> None:
        first: int | None = self.options.start
        while first is not None and self.seconds > 0:
            first = self._run_child(first)

    def _run_child(self, first: int) -> int | None:
        """Run a child; return the number of the next call, or None at the end."""
        journal, errors = self.folder / "journal.py", self.folder / "stderr.txt"
        journal.write_text("")
        command = [
            sys.executable, str(HERE / "fuzz_api.py"), "--child", str(journal), "--seed", str(self.options.seed),
            "--start", str(first), "--only", self.options.only, "--seconds", str(self.seconds),
        ]  # fmt: skip
        with (
            open(errors, "w") as sink,
            subprocess.Popen(command, stdout=subprocess.PIPE, stderr=sink, text=True) as process,
        ):
            lines: queue.Queue[str] = queue.Queue()
            threading.Thread(target=pass_on, args=(process.stdout, lines), daemon=True).start()
            following, began = first, None
            while line := next_line(lines, START if began is None else HANG):
                began = began or time.monotonic()
                message = json.loads(line)
                self.made.update(message["made"])
                following = message["next"]
                if "finding" in message:
                    self._add(*message["finding"])
                if "done" in message:
                    return None
            script = journal.read_text()
            if line is None:
                process.kill()
                self._add("hang", f"no end after {HANG:.0f} s", script, following)
            else:
                problem = f"the process ended with status {process.wait()}\n{errors.read_text()[-2000:]}"
                self._add(f"crash, status {process.returncode}", problem, script, following)
                if began is None:  # another child would not start either
                    return None
        self.seconds -= time.monotonic() - began if began else START
        # The failing call is one of those since the last report: continue well after them.
        return following + 100_000

    def _add(self, signature: str, problem: str, script: str, index: int) -> None:
        self.findings.setdefault(signature, []).append((problem, script, index))

    def summary(self) -> int:
        for signature, found in sorted(self.findings.items()):
            problem, script, index = min(found, key=lambda one: len(one[1]))
            print(f"\n# {'-' * 70}\n# {signature}")
            print(f"# {len(found)} times; the shortest script is call {index} of seed {self.options.seed}")
            print("\n".join(f"# {line}" for line in problem.splitlines()))
            print(script)
        print(f"\n{'calls':>8}  kind")
        for name, count in sorted(self.made.items()):
            print(f"{count:8}  {name}")
        total = sum(len(found) for found in self.findings.values())
        print(f"{sum(self.made.values()):8}  in all; seed {self.options.seed}")
        print(f"{total:8}  findings of {len(self.findings)} kinds")
        return 1 if self.findings else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=int(f"{dt.datetime.now(dt.UTC):%Y%m%d}"))
    parser.add_argument("--seconds", type=float, default=60.0, help="time budget")
    parser.add_argument("--only", default="", help="make only calls with this text in their name")
    parser.add_argument("--start", type=int, default=0, help="number of the first call")
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(options.seed, options.start, options.seconds, options.only, options.child)
        return 0
    print(f"seed {options.seed}, {options.seconds:.0f} s")
    with tempfile.TemporaryDirectory() as folder:
        campaign = Campaign(options, Path(folder))
        campaign.run()
    return campaign.summary()


if __name__ == "__main__":
    sys.exit(main())
