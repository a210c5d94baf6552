"""Mutation tests: change the code in one small place at a time, and report changes that no test detects.

Such changes, the mutants, are listed in mutants.txt.  Each is applied to a copy of the tree in build/mutants; the
working tree is only read.  Copies are compiled with -O1, and only modules that depend on the changed file are compiled
again.  First, all tests that the selected mutants name must pass on an unchanged copy.

A mutant is caught if a test fails, crashes or runs too long.  The exit code is 1 if a mutant does not compile, or
survives without being marked as equivalent.  It is 2 if the list is invalid or the tests fail on the unchanged copy.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import fcntl
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
LIST = Path(__file__).with_suffix(".txt")
WORK = ROOT / "build" / "mutants"
BASE = WORK / "base"
CAUGHT, SURVIVED, EQUIVALENT, BROKEN = "caught", "SURVIVED", "equivalent", "DID NOT COMPILE"
NO_TESTS_RAN = 5  # pytest's exit code
RUNNING: set[subprocess.Popen[str]] = set()


class InvalidError(Exception):
    """The list is out of date, or the tests fail on the unchanged copy."""


class Mutant(NamedTuple):
    number: int
    line: int  # its first line in the list
    file: str
    before: str
    after: str
    tests: tuple[str, ...]
    equivalent: str  # why no test can detect it; empty if a test must

    def __str__(self) -> str:
        before, after = (" ".join(text.split()) for text in (self.before, self.after))
        return f"{self.number:3} {self.file}: {before}  ->  {after}"


class Outcome(NamedTuple):
    result: str
    detail: str
    seconds: float


def read_list() -> list[Mutant]:
    """All mutants; the first lines of the list describe its format."""
    mutants: list[Mutant] = []
    problems: list[str] = []
    paragraph: list[str] = []
    for number, line in enumerate([*LIST.read_text(encoding="utf-8").splitlines(), ""], 1):
        if line.startswith("#"):
            continue
        if line:
            paragraph.append(line)
            continue
        if paragraph:
            begin = number - len(paragraph)
            try:
                mutants.append(mutant_of(len(mutants) + 1, begin, paragraph))
            except InvalidError as error:
                problems.append(f"{LIST.name}:{begin}: {error}")
        paragraph = []
    if problems:
        raise InvalidError("\n".join(problems))
    return mutants


def mutant_of(number: int, begin: int, lines: list[str]) -> Mutant:
    file, rest = lines[0], lines[1:]
    parts: dict[str, list[str]] = {"- ": [], "+ ": [], "tests: ": [], "equivalent: ": []}
    for line in rest:
        prefix = next((prefix for prefix in parts if line.startswith(prefix)), None)
        if prefix is None:
            raise InvalidError(f"a line must start with one of {list(parts)}; got {line!r}")
        parts[prefix].append(line.removeprefix(prefix))
    before, after = "\n".join(parts["- "]), "\n".join(parts["+ "])
    tests = tuple(f"tests/{test}" for line in parts["tests: "] for test in line.split())
    if not before or not tests or before == after:
        raise InvalidError("a mutant needs a text before, another text after, and tests")
    if not (ROOT / file).is_file():
        raise InvalidError(f"{file} does not exist")
    found = (ROOT / file).read_text(encoding="utf-8").count(before)
    if found != 1:
        raise InvalidError(f"the text before must appear once in {file}; it appears {found} times: {before!r}")
    return Mutant(number, begin, file, before, after, tests, " ".join(parts["equivalent: "]))


def selected(mutants: list[Mutant], words: list[str]) -> list[Mutant]:
    """Mutants with one of these numbers, ranges of numbers or words; all if there are none."""

    def matches(mutant: Mutant, word: str) -> bool:
        numbers = re.fullmatch(r"(\d+)(?:-(\d+))?", word)
        if numbers:
            return int(numbers[1]) <= mutant.number <= int(numbers[2] or numbers[1])
        return word in f"{mutant.file} {mutant.before} {mutant.after} {' '.join(mutant.tests)}"

    return [mutant for mutant in mutants if not words or any(matches(mutant, word) for word in words)]


def run(command: list[str], folder: Path, seconds: float | None = None) -> tuple[int | None, str]:
    """Exit code and output of a command; the code is None if time ran out."""
    environment = os.environ | {"PYTHONPATH": str(folder), "STAIRCASE_FAST_TEST_ROOT": str(folder)}
    process = subprocess.Popen(
        command, cwd=folder, env=environment, start_new_session=True, text=True, errors="replace",
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    RUNNING.add(process)
    try:
        output = process.communicate(timeout=seconds)[0]
    except subprocess.TimeoutExpired:
        kill(process)
        process.communicate()
        return None, ""
    finally:
        RUNNING.discard(process)
    return process.returncode, output


def kill(process: subprocess.Popen[str]) -> None:
    """End a process and its children."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)


def build(folder: Path) -> tuple[int | None, str]:
    return run([sys.executable, "setup.py", "--quiet", "build_ext", "--inplace", "--parallel=1"], folder)


def pytest(folder: Path, tests: list[str], options: list[str], seconds: float | None = None) -> tuple[int | None, str]:
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-rfE", "--tb=no", "-p", "no:cacheprovider"]
    return run([*command, *options, *tests], folder, seconds)


def prepare_base() -> None:
    """Copy the tree to BASE and compile what has changed since the last run."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT, check=True, capture_output=True, text=True,
    )  # fmt: skip
    files = {name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()}
    note = WORK / "files.txt"
    before = set(note.read_text(encoding="utf-8").splitlines()) if note.exists() else set()
    if not before <= files:  # the source of a compiled module may be gone
        shutil.rmtree(BASE, ignore_errors=True)
    for name in files:
        content = (ROOT / name).read_bytes()
        if name == "setup.py":
            content = content.replace(b'"-O3"', b'"-O1"')
        copy = BASE / name
        if not copy.exists() or copy.read_bytes() != content:
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(content)
    note.write_text("\n".join(sorted(files)), encoding="utf-8")
    status, output = build(BASE)
    if status != 0:
        raise InvalidError(f"the tree does not compile:\n{output}")


def check_base(mutants: list[Mutant], options: list[str], jobs: int) -> None:
    """Run the tests of these mutants on the unchanged copy."""
    tests = {test for mutant in mutants for test in mutant.tests}
    tests -= {test for test in tests if "::" in test and test.partition("::")[0] in tests}
    workers = ["-n", str(jobs)] if jobs > 1 else []
    status, output = pytest(BASE, sorted(tests), [*options, *workers])
    if status != 0:
        raise InvalidError(f"the tests must pass on the unchanged copy:\n{output}")


def outcome_of(mutant: Mutant, options: list[str], seconds: float) -> Outcome:
    """Apply a mutant to a fresh copy of BASE and run its tests."""
    begin = time.monotonic()
    folder = WORK / f"mutant-{mutant.number}"
    shutil.rmtree(folder, ignore_errors=True)
    try:
        # copytree keeps the dates, by which Cython knows what is up to date; a mutant in Python needs no C
        needless = ("__pycache__", "*.o", "build") if mutant.file.endswith(".py") else ("__pycache__", "*.o")
        shutil.copytree(BASE, folder, ignore=shutil.ignore_patterns(*needless))
        path = folder / mutant.file
        source = path.read_text(encoding="utf-8").replace(mutant.before, mutant.after)
        path.write_text(source, encoding="utf-8")
        if path.suffix == ".py":
            try:
                compile(source, mutant.file, "exec")
                status, output = 0, ""
            except SyntaxError as error:
                status, output = 1, str(error)
        else:
            status, output = build(folder)
        if status != 0:
            return Outcome(BROKEN, output, time.monotonic() - begin)
        status, output = pytest(folder, list(mutant.tests), options, seconds)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    taken = time.monotonic() - begin
    if status is None:
        return Outcome(CAUGHT, f"more than {seconds:g} s", taken)
    if status in (0, NO_TESTS_RAN):
        return Outcome(EQUIVALENT if mutant.equivalent else SURVIVED, mutant.equivalent or output.strip()[-200:], taken)
    failed = re.search(r"^(?:FAILED|ERROR) (\S+)", output, re.MULTILINE)
    return Outcome(CAUGHT, failed[1] if failed else f"exit code {status}", taken)


def run_all(mutants: list[Mutant], options: list[str], jobs: int, seconds: float) -> list[tuple[Mutant, Outcome]]:
    found = []
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        waiting = {pool.submit(outcome_of, mutant, options, seconds): mutant for mutant in mutants}
        try:
            for done in concurrent.futures.as_completed(waiting):
                mutant, outcome = waiting[done], done.result()
                print(f"{outcome.result:10} {outcome.seconds:4.0f} s {mutant}  [{outcome.detail}]", flush=True)
                found.append((mutant, outcome))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            for process in list(RUNNING):
                kill(process)
            raise
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("mutants", nargs="*", help="numbers (7), ranges (7-12) or words (_stack.pxd); default: all")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="mutants at a time; default: one per core")
    parser.add_argument("--limit", type=float, default=300.0, help="seconds for the tests of a mutant; default: 300")
    parser.add_argument("--long", action="store_true", help="also run the tests marked as long")
    parser.add_argument("--check", action="store_true", help="only check that the list fits the code")
    parser.add_argument("--trust", action="store_true", help="do not run the tests on the unchanged copy first")
    arguments = parser.parse_args()
    options = [] if arguments.long else ["-m", "not long"]
    begin = time.monotonic()
    try:
        mutants = selected(read_list(), arguments.mutants)
        if arguments.check:
            return 0
        WORK.mkdir(parents=True, exist_ok=True)
        with open(WORK / "lock", "w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise InvalidError(f"another run uses {WORK}") from None
            prepare_base()
            if not arguments.trust:
                check_base(mutants, options, arguments.jobs)
            found = run_all(mutants, options, arguments.jobs, arguments.limit)
    except InvalidError as error:
        print(error, file=sys.stderr)
        return 2

    counts = dict.fromkeys((CAUGHT, SURVIVED, EQUIVALENT, BROKEN), 0)
    for _, outcome in found:
        counts[outcome.result] += 1
    for mutant, outcome in sorted(found):
        if outcome.result not in (CAUGHT, EQUIVALENT):
            print(f"\n{outcome.result}: {LIST.name}:{mutant.line}: {mutant}\n{outcome.detail}")
    marked = sum(bool(mutant.equivalent) and outcome.result == CAUGHT for mutant, outcome in found)
    changing = len(found) - counts[EQUIVALENT]
    print(
        f"\n{len(found)} mutants in {time.monotonic() - begin:.0f} s: "
        + ", ".join(f"{count} {result.lower()}" for result, count in counts.items())
        + f"; caught {100 * counts[CAUGHT] / max(changing, 1):.1f} % of those that change behaviour"
    )
    if marked:
        print(f"{marked} mutants marked as equivalent were caught: they are not equivalent")
    return 1 if counts[SURVIVED] or counts[BROKEN] or marked else 0


if __name__ == "__main__":
    sys.exit(main())
