"""Load damaged files: each must raise a ValueError that names the file, or load as a usable object.

    PYTHONPATH=. python tests/safety/fuzz_files.py --seconds 60 --seed 1

Cases run in a child process with limits on memory and time, so crashes, hangs and large allocations are found too.
Each kind of finding is printed once, as a script that reproduces it.  The exit code is 1 if there are findings.
"""

import argparse
import base64
import collections
import datetime as dt
import faulthandler
import inspect
import json
import pathlib
import re
import resource
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
import traceback
import warnings
import zlib

import numpy as np
from damage import case_rng, damaged

import staircase_fast as sf
from staircase_fast.cli import arguments

MEMORY = 512 << 20  # bytes that a case may allocate beyond those of the starting process
SECONDS = 20  # time limit of a case
LONGEST = 2000  # maximal length of a message


# Functions that use a loaded object.  Their source is part of each printed script.


def use_staircase(stairs, path):
    """Predict, and save it again."""
    scores = np.concatenate((stairs.left, stairs.right, [-np.inf, -1.0, 0.0, 0.5, np.inf]))
    for interpolation in ("step", "linear", "centered"):
        for out_of_bounds in ("clip", "nan"):
            found = stairs.predict(scores, interpolation=interpolation, out_of_bounds=out_of_bounds)
            assert out_of_bounds == "nan" or not np.isnan(found).any(), interpolation
    assert np.array_equal(stairs.predict(stairs.left), stairs.values)
    stairs.save(path)
    assert sf.Staircase.load(path) == stairs
    repr(stairs)


def use_map(stairs, path):
    """Predict in all groups, and save it again."""
    keys = list(stairs)
    scores = np.resize([-np.inf, -1.0, 0.0, 0.5, np.inf], len(keys))
    for interpolation in ("step", "linear", "centered"):
        assert not np.isnan(stairs.predict(scores, keys, interpolation=interpolation)).any()
    for key in keys:
        assert np.array_equal(stairs[key].predict(stairs[key].left), stairs[key].values)
    stairs.save(path)
    assert sf.StaircaseMap.load(path) == stairs
    repr(stairs)


def use_accumulator(seen, path):
    """Fit it, merge it with itself, add a row, and save it again."""
    assert seen.n_scores <= seen.n_samples
    both = sf.Accumulator(seen.loss, seen.increasing)
    both.add([0.5, 0.25], [1, 1])
    both.merge(seen)
    both.merge(seen)
    both.add([0.125], [1])
    both.staircase()
    if seen.n_samples:
        stairs = seen.staircase()
        assert np.array_equal(stairs.predict(stairs.left), stairs.values)
        assert stairs.counts.sum() == seen.n_samples
    seen.save(path)
    again = sf.Accumulator.load(path)
    if seen.n_samples:
        assert again.staircase() == stairs
    repr(seen)


def use_online(online, path):
    """Fit it, save it again, and append rows."""
    online.save(path)
    again = sf.Online.load(path)
    assert again.to_json() == online.to_json()
    if online.n_samples:
        stairs = online.staircase()
        assert np.array_equal(stairs.predict(stairs.left), stairs.values)
        assert again.staircase() == stairs
    online.extend([np.inf, np.inf], [1, 1])
    online.append(np.inf, 1, 0.5)
    assert online.staircase().counts.sum() == online.n_samples
    repr(online)


def use_venn(venn, path):
    """Predict, and save it again."""
    for part in venn.predict([-np.inf, -1.0, 0.0, 0.5, np.inf]):
        assert ((part >= 0) & (part <= 1)).all()
    venn.save(path)
    assert type(venn).load(path) == venn
    repr(venn)


def use_table(_, path):
    """The command line reports a damaged table in one line, without a traceback."""
    import contextlib
    import io

    said, model = io.StringIO(), str(path) + ".model"
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
        code = arguments.main(
            ["fit", str(path), "--format", "csv", "--weight", "weight", "--threads", "1", "--model", model]
        )
    pathlib.Path(model).unlink(missing_ok=True)
    assert code in (0, 1, 2), code
    assert code == 0 or (str(path) in said.getvalue() and "Traceback" not in said.getvalue()), said.getvalue()


USES = {
    "Staircase": use_staircase,
    "StaircaseMap": use_map,
    "Accumulator": use_accumulator,
    "Online": use_online,
    "VennAbers": use_venn,
    "CrossVennAbers": use_venn,
    "table": use_table,
}
# Using these can raise an error: a sum is too large, or a loss has no minimum.
MAY_REFUSE = ("Accumulator", "Online")


def saved_files(folder):
    """Small files of all kinds, as pairs of class and bytes."""
    rng = np.random.default_rng(0)
    losses = sf.losses
    x, y = rng.normal(size=40).round(2), rng.normal(size=40).round(3)
    labels, counts = (y > 0).astype(float), rng.integers(0, 9, size=40)
    w = rng.random(40)
    infinite = np.append(x, [-np.inf, np.inf])
    objects = [
        sf.fit(x, y),
        sf.fit(infinite, np.arange(42.0), increasing=False),
        sf.fit(x, labels, loss="log"),
        sf.fit(x, labels, loss="logistic", bounds=(-np.inf, np.inf)),
        sf.fit(x, y, loss=losses.Quantile(w), sample_weight=w),
        sf.fit(x, y, loss="log_cosh", max_seconds=0),
        sf.fit_groups(x, y, np.arange(40) % 3),
        sf.fit_groups(x, y, (np.arange(40) % 4).astype(str), loss="huber", increasing=False),
        sf.fit_groups(x, labels, np.arange(40) % 2 == 0, loss=losses.Expectile(0.1 + 0.8 * w)),
        sf.fit_groups(x, y, np.arange(40, dtype=np.uint64) // 10 + np.uint64(2**63)),
        sf.VennAbers().fit(x, labels),
        sf.VennAbers(0.5).fit(infinite, np.append(labels, [0, 1]), sample_weight=np.append(w, [1, 1])),
        sf.CrossVennAbers().fit(x, labels, folds=np.arange(40) % 3),
    ]
    tied = x.round()
    for loss, scores, targets, weights in [
        ("log", x, labels, None),
        ("squared", tied, counts, None),
        ("squared", tied, counts, counts + 1),
        ("squared", x, y, w),
        ("squared", tied, y, None),
        ("squared", tied, y * 10.0 ** rng.integers(-300, 300, 40), w),
        ("huber", x, y, w),
        ("quantile", tied, y, None),
        ("squared", tied, counts + 2**60, None),
        ("poisson_deviance", x, counts, w),
    ]:
        seen = sf.Accumulator(loss)
        seen.add(scores, targets, weights)
        objects.append(seen)
    objects.append(sf.Accumulator())
    order = np.argsort(tied, kind="stable")
    for loss, targets, weights in [
        ("squared", counts, None),
        ("squared", y, w),
        ("squared", y * 10.0 ** rng.integers(-300, 300, 40), None),
        (losses.PoissonDeviance(2.5), counts, w),
        (losses.Linex(0.5), y, w),
    ]:
        online = sf.Online(loss)
        online.extend(tied[order], targets[order], None if weights is None else weights[order])
        objects.append(online)
    objects.append(sf.Online("log", increasing=False))
    found = []
    for number, one in enumerate(objects):
        path = folder / f"saved-{number}"
        one.save(path)
        found.append((type(one).__name__, path.read_bytes()))
    rows = "".join(f"{a!r},{b!r},{c!r}\n" for a, b, c in zip(x.tolist(), labels.tolist(), w.tolist(), strict=True))
    found.append(("table", b"score,label,weight\n" + rows.encode()))
    return found


def outcome_of(kind, path):
    """The outcome of loading a file: refused, loaded, or the reason why it is a finding."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        if kind != "table":
            try:
                loaded = getattr(sf, kind).load(path)
            except ValueError as error:
                text = str(error)
                fair = text.startswith(f"{path}: ") and len(text) < LONGEST and ("field" in text or "must" in text)
                return "refused" if fair else f"the message must name file and field: {text[:LONGEST]}"
            except BaseException:
                return traceback.format_exc()
        try:
            USES[kind](None if kind == "table" else loaded, path)
        except ValueError as error:
            if kind in MAY_REFUSE and "must" in str(error):
                return "refused when used"
            return traceback.format_exc()
        except BaseException:
            return traceback.format_exc()
    return "loaded"


def work(folder, seed, first, seconds):
    """Run cases until the time is over; report each in a line of JSON.

    The name of a file contains its kind.  If the process dies, the file remains.
    """
    faulthandler.enable()
    faulthandler.register(signal.SIGALRM, chain=True)  # show where it hangs, then end the process
    files = saved_files(folder)
    signal.alarm(5 * SECONDS)
    for kind, content in files:  # undamaged files must work; this also loads all libraries before memory is limited
        path = folder / f"undamaged-{kind}"
        path.write_bytes(content)
        outcome = outcome_of(kind, path)
        assert outcome == "loaded", outcome
    pages = int(pathlib.Path("/proc/self/statm").read_text().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + MEMORY,) * 2)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    end, number = time.monotonic() + seconds, first
    contents = [content for _, content in files]
    while time.monotonic() < end:
        rng = case_rng(seed, number)
        kind, content = rng.choice(files)
        content = damaged(rng, content, contents)
        path = folder / f"case-{number}-{kind}"
        path.write_bytes(content)
        signal.alarm(SECONDS)
        outcome = outcome_of(kind, path)
        signal.alarm(0)
        finding = outcome not in ("refused", "refused when used", "loaded")
        shown = base64.b64encode(zlib.compress(content)).decode() if finding else ""
        print(json.dumps([number, kind, outcome, shown]), flush=True)
        path.unlink(missing_ok=True)
        number += 1


def script_of(kind, content):
    """A script that reproduces a finding."""
    use = USES[kind]
    load = "None" if kind == "table" else f"sf.{kind}.load(path)"
    data = "\n".join(textwrap.wrap(content, 110))
    return f'''\
import base64, pathlib, tempfile, warnings, zlib
import numpy as np
import staircase_fast as sf
from staircase_fast.cli import arguments

warnings.simplefilter("error")

{inspect.getsource(use)}

path = pathlib.Path(tempfile.mkdtemp(), "damaged")
path.write_bytes(zlib.decompress(base64.b64decode("""
{data}
""")))
{use.__name__}({load}, path)
'''


def signature_of(kind, outcome):
    """A key that findings of one kind share: the place where it happened, or the message without numbers."""
    crashed, _, stack = outcome.partition("Current thread")
    if stack:  # the innermost call comes first
        return kind, crashed.splitlines()[0], re.search("File .*|$", stack)[0]
    places = re.findall("File .*, line .*", outcome)
    return kind, re.sub(r"\d+|case-\S+", "", outcome.strip().splitlines()[-1])[:120], places[-1] if places else ""


def main():
    """Start workers, collect their reports, and print findings."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", default=dt.datetime.now(tz=dt.UTC).strftime("%Y%m%d"))
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--worker", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        work(pathlib.Path(options.worker[0]), options.seed, int(options.worker[1]), options.seconds)
        return 0
    print(f"seed {options.seed}", flush=True)
    counts, findings = collections.Counter(), collections.Counter()

    def note(kind, outcome, content):
        counts[kind, "finding"] += 1
        signature = signature_of(kind, outcome)
        findings[signature] += 1
        if findings[signature] == 1:
            print(f"\n# {kind}: {outcome.strip()}\n\n{script_of(kind, content)}", flush=True)

    end, number = time.monotonic() + options.seconds, 0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        while end - time.monotonic() > 0:
            arguments = ["--seed", options.seed, "--seconds", str(end - time.monotonic())]
            command = [sys.executable, __file__, *arguments, "--worker", name, str(number)]
            with (
                open(folder / "errors", "w+") as errors,
                subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True) as worker,
            ):
                for line in worker.stdout:
                    number, kind, outcome, content = json.loads(line)
                    number += 1
                    if content:
                        note(kind, outcome, content)
                    else:
                        counts[kind, outcome] += 1
                worker.wait()
                errors.seek(0)
                said = errors.read()
            left = sorted(folder.glob(f"case-{number}-*[a-z]"))
            if worker.returncode and not left:
                print(said)
                return 2
            for path in left:
                kind = path.name.rpartition("-")[2]
                content = base64.b64encode(zlib.compress(path.read_bytes())).decode()
                note(kind, f"the process ended with {worker.returncode}\n{said}", content)
                path.unlink()
                number += 1
    for kind in USES:
        own = {outcome: n for (one, outcome), n in sorted(counts.items()) if one == kind}
        print(f"{kind:15s}" + ", ".join(f"{n} {outcome}" for outcome, n in own.items()))
    print(f"{counts.total()} files in {options.seconds:g} s, seed {options.seed}: {len(findings)} kinds of findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
