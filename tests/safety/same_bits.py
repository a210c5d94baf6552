"""Compare the results of this checkout with those of another one, bit for bit.

python tests/safety/same_bits.py OTHER [--rows ROWS] [--shapes SHAPES] [--seed SEED]

Both checkouts must be built in place.  The data has the random shapes of asv_benchmarks/shapes.py, and more that the
benchmarks leave out: subnormal and infinite scores, NaN, weights of 0, strided and byte-swapped columns, bounds, both
directions.  Each shape is used with random sizes, ROWS rows together.  Fits, sequences and predictions are computed in
one process per checkout.  A third process computes the small fits and sequences with the exact reference of the tests.
The first difference is reported with its recipe.
"""

import argparse
import datetime as dt
import hashlib
import json
import os
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
EXACT_ROWS = 2000  # at most, for the reference
STEPS = ("left", "right", "values", "weights", "counts")
KINDS = ("fit", "sequence", "predict")
EXTREMES = ("subnormal scores", "infinite scores", "a NaN", "weights of 0", "strided", "byte-swapped")


class Case(NamedTuple):
    """A recipe: what is computed, and the seed of its data and of its options."""

    kind: str
    rows: int
    seed: int

    def rng(self) -> np.random.Generator:
        return np.random.default_rng([self.seed, self.rows, KINDS.index(self.kind)])


class Problem(NamedTuple):
    """The columns and options of a case; a sequence has no scores."""

    recipe: str
    scores: Any
    targets: Any
    weights: Any
    options: dict[str, Any]
    queries: Any = None


def changed(column: Any, extreme: str) -> Any:
    """The same numbers, stored in another way."""
    if column is None or extreme not in ("strided", "byte-swapped"):
        return column
    if extreme == "strided":
        return np.repeat(column, 2)[::2]
    return column.astype(column.dtype.newbyteorder("S"))


def problem_of(case: Case) -> Problem:
    """Create the data of a case: the same in every process."""
    import shapes

    rng = case.rng()
    extreme = str(rng.choice(EXTREMES)) if rng.random() < 0.5 else ""
    options: dict[str, Any] = {"increasing": bool(rng.random() < 0.8), "n_threads": int(rng.integers(1, 3))}
    queries = None
    if case.kind == "sequence":
        shape: Any = shapes.draw_sequence(case.seed)
        x, (y, w) = None, shapes.sequence_of(shape, case.rows)
    else:
        shape = shapes.draw_shape(case.seed)
        if extreme == "subnormal scores":
            shape = shape._replace(scale=1e-312 if shape.dtype == "float64" else 1e-41)
        x, y, w = shapes.rows_of(shape, case.rows)
        if extreme == "infinite scores":
            x[rng.integers(0, case.rows, 1 + case.rows // 100)] = rng.choice([-np.inf, np.inf])
        if rng.random() < 0.2:
            options["bounds"] = tuple(float(end) for end in np.sort(rng.choice(y, 2)))
    if extreme == "weights of 0" and w is not None:
        w = np.where(rng.random(case.rows) < 0.3, 0, w)
        w[0] = 1
    column = x if case.kind == "predict" else y
    if extreme == "a NaN" and column.dtype.kind == "f":
        column[rng.integers(case.rows)] = np.nan
    if case.kind == "predict":  # a fit of other rows of this shape is queried
        n_fitted = int(10 ** rng.uniform(0, np.log10(max(case.rows, 10))))
        queries = changed(x, extreme)
        x, y, w = shapes.rows_of(shape, n_fitted, 1)
    columns = (changed(column, extreme) for column in (x, y, w))
    recipe = ", ".join(filter(None, (str(shape), extreme, *(f"{name}={value}" for name, value in options.items()))))
    return Problem(recipe, *columns, options, queries)


def compute(case: Case) -> dict[str, Any]:
    """The arrays of a result, by name, with staircase_fast."""
    import staircase_fast as sf

    _, x, y, w, options, queries = problem_of(case)
    if case.kind == "sequence":
        return sf.isotonic_regression(y, weights=w, **options)._asdict()
    stairs = sf.fit(x, y, sample_weight=w, **options)
    if case.kind == "fit":
        return {name: getattr(stairs, name) for name in (*STEPS, "lower", "upper")}
    threads = options["n_threads"]
    kinds = ("step", "linear", "centered")
    return {kind: stairs.predict(queries, interpolation=kind, n_threads=threads) for kind in kinds}


def compute_exactly(case: Case) -> dict[str, Any]:
    """The same with the reference of the tests; nothing for a case that it does not cover."""
    import reference

    _, x, y, w, options, _ = problem_of(case)
    if case.rows > EXACT_ROWS or case.kind == "predict" or (y.dtype.kind == "f" and np.isnan(y).any()):
        return {}
    if x is None and w is not None and not np.all(w):  # such an entry gets the value of the block before it
        return {}
    steps = reference.fitted_steps(
        range(case.rows) if x is None else (x + 0.0).tolist(),
        y.tolist(),
        None if w is None else w.tolist(),
        increasing=options["increasing"],
        bounds=options.get("bounds"),
    )
    left, right, values, weights, counts = map(np.array, zip(*steps, strict=True))
    if x is None:
        return {"x": np.repeat(values, counts)}
    return dict(zip(STEPS, (left, right, values, weights, counts), strict=True))


def answer(call: Callable[[Case], dict[str, Any]], case: Case) -> dict[str, Any]:
    """The arrays of a result, or the error."""
    try:
        return call(case)
    except Exception as error:
        return {"error": np.array(f"{type(error).__name__}: {error}")}


def digest(array: Any) -> str:
    return hashlib.blake2b(f"{array.dtype} {array.shape}".encode() + array.tobytes(), digest_size=16).hexdigest()


def work(checkout: Path, exactly: bool) -> None:
    """Read cases from standard input and print the digests of their arrays.  A path asks for recipe and arrays."""
    import staircase_fast

    found = Path(staircase_fast.__file__).resolve()
    if checkout not in found.parents:
        sys.exit(f"staircase_fast must come from {checkout}; got {found}")
    for line in sys.stdin:
        given = json.loads(line)
        if isinstance(given, list):
            case = Case(*given)
            arrays = answer(compute_exactly if exactly else compute, case)
            print(json.dumps({name: digest(array) for name, array in arrays.items()}), flush=True)
        else:
            Path(given).write_bytes(pickle.dumps((problem_of(case).recipe, arrays)))
            print("{}", flush=True)


class Worker:
    """A process that computes with one checkout."""

    def __init__(self, name: str, checkout: Path, *, exactly: bool = False) -> None:
        self.name, self.exactly = name, exactly
        path = os.pathsep.join(map(str, (checkout, ROOT / "asv_benchmarks", ROOT / "tests")))
        self.process = subprocess.Popen(
            [sys.executable, __file__, str(checkout), "--work", *["--exactly"] * exactly],
            env=os.environ | {"PYTHONPATH": path},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self, question: Case | str) -> None:
        self.process.stdin.write(json.dumps(question) + "\n")
        self.process.stdin.flush()

    def reply(self) -> dict[str, str]:
        line = self.process.stdout.readline()
        if not line:
            sys.exit(f"the process of {self.name} ended with status {self.process.wait()}")
        return json.loads(line)

    def arrays(self) -> tuple[str, dict[str, Any]]:
        """The recipe and the arrays of the last case."""
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory, "arrays")
            self.ask(str(path))
            self.reply()
            return pickle.loads(path.read_bytes())


def describe(name: str, ours: Any, other: Any) -> str:
    """Where two arrays differ; None stands for a missing one."""
    if ours is None or other is None or (ours.dtype, ours.shape) != (other.dtype, other.shape):
        return f"{name}: {ours!r}\n  other: {other!r}"
    a, b = (np.frombuffer(array.tobytes(), np.dtype((np.void, array.dtype.itemsize))) for array in (ours, other))
    at = np.flatnonzero(a != b)
    return f"{name}: {len(at)} differ, the first at index {at[0]}: {ours.flat[at[0]]!r}, {other.flat[at[0]]!r}"


def cases(n_shapes: int, rows: int, seed: int) -> Iterator[Case]:
    rng = np.random.default_rng(seed)
    for _ in range(n_shapes):
        shape = int(rng.integers(2**32))
        for kind in KINDS:
            n_all = 0
            while n_all < rows:
                n = min(int(10 ** rng.uniform(0, np.log10(rows))), rows)
                n_all += n
                yield Case(kind, n, shape)


def differing(mine: dict[str, str], their: dict[str, str], peer: Worker) -> list[str]:
    """The names of the arrays that differ.  The reference does not compute all arrays."""
    names = their if peer.exactly else mine | their
    return [name for name in names if mine.get(name) != their.get(name)]


def first_difference(ours: Worker, peers: list[Worker], given: Iterable[Case]) -> str | None:
    n_cases = n_rows = n_exact = 0
    for case in given:
        for worker in (ours, *peers):
            worker.ask(case)
        mine, *theirs = (worker.reply() for worker in (ours, *peers))
        for peer, their in zip(peers, theirs, strict=True):
            if names := differing(mine, their, peer):
                (recipe, a), (_, b) = ours.arrays(), peer.arrays()
                lines = [describe(name, a.get(name), b.get(name)) for name in names]
                return "\n  ".join([f"{case} differs from {peer.name}: {recipe}", *lines])
            n_exact += peer.exactly and bool(their)
        n_cases, n_rows = n_cases + 1, n_rows + case.rows
    print(f"{n_cases:,} cases, {n_rows:,} rows: all bits are the same; {n_exact:,} agree with the exact reference")
    return None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    today = dt.datetime.now(dt.UTC).date()
    parser.add_argument("other", type=Path, help="another checkout, built in place")
    parser.add_argument("--rows", type=float, default=1e6, help="rows of each shape")
    parser.add_argument("--shapes", type=int, default=20)
    parser.add_argument("--seed", type=int, default=int(today.strftime("%Y%m%d")))
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--exactly", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    other = given.other.resolve()
    if not (other / "staircase_fast" / "__init__.py").exists():
        parser.error(f"{other} must be a checkout of staircase_fast")
    if given.work:
        work(other, given.exactly)
        return 0
    print(f"seed {given.seed}", flush=True)
    peers = [Worker(str(other), other), Worker("the exact reference", ROOT, exactly=True)]
    found = first_difference(Worker("this checkout", ROOT), peers, cases(given.shapes, int(given.rows), given.seed))
    if found:
        print(found)
    return int(found is not None)


if __name__ == "__main__":
    sys.exit(main())
