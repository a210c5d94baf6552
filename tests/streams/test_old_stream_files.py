"""Files that an earlier version saved can be loaded, and more rows can be added to them.

`write_files` wrote the files in tests/storage/old_files once, with commit ca7a45b.  Do not write them again.
"""

from pathlib import Path

import numpy as np
import pytest

import staircase_fast as sf
from staircase_fast.arithmetic.exact import UNIT_WEIGHTS, Extent
from staircase_fast.streams import runs

L = sf.losses
FOLDER = Path(__file__).parents[1] / "storage" / "old_files"


def columns(kind, n=40):
    """Rows in score order, with ties; the numbers look random but need no generator."""
    i = np.arange(n)
    x, noise = (i * 5 // 7) / 8, i * 37 % 41
    return {
        "labels": (x, (noise > 40 - i).astype(float), None),
        "integers": (x, noise - 20, i % 3 + 1),
        "large integers": (x, (2**53 + 1 + noise) * (noise % 2 * 2 - 1), None),
        "reals": (x, noise / 7 - 1e-3 * i, None),
        "weights": (x, noise / 7 + 0.1, i % 5 / 3),
        "decades": (x, (noise - 20) * 10.0 ** (i * 13 % 61 - 30), 10.0 ** (i * 7 % 31 - 15)),
    }[kind]


FILES = {
    "labels": ("labels", "log", True),
    "integers": ("integers", "squared", False),
    "large_integers": ("large integers", "squared", True),
    "reals": ("reals", "squared", True),
    "weights": ("weights", "gamma_deviance", False),
    "decades": ("decades", "squared", True),
    "poisson": ("weights", L.PoissonDeviance(2.5), True),
}
ONLINE = FILES | {"linex": ("weights", L.Linex(0.5), True)}
ACCUMULATORS = FILES | {
    "quantile": ("reals", L.Quantile(0.75, side="upper"), True),
    "huber": ("weights", L.Huber(0.5), False),
}


def online(name, rows):
    _, loss, increasing = ONLINE[name]
    made = sf.Online(loss, increasing)
    made.extend(*rows)
    return made


def accumulator(name, rows):
    _, loss, increasing = ACCUMULATORS[name]
    made = sf.Accumulator(loss, increasing)
    made.add(*rows)
    return made


def write_files():
    for name in ONLINE:
        online(name, columns(ONLINE[name][0])).save(FOLDER / f"online_{name}.json")
    for name in ACCUMULATORS:
        accumulator(name, columns(ACCUMULATORS[name][0])).save(FOLDER / f"accumulator_{name}.npz")
    sf.Online("log").save(FOLDER / "online_empty.json")
    sf.Accumulator("log").save(FOLDER / "accumulator_empty.npz")


def joined(rows, more):
    if rows[2] is None:
        return [*(np.concatenate(pair) for pair in zip(rows[:2], more[:2], strict=True)), None]
    return [np.concatenate(pair) for pair in zip(rows, more, strict=True)]


def assert_continues(loaded, add, kind, loss, increasing):
    """Compare with a fit of the same rows, before and after more rows arrive, one of them with the newest score."""
    rows, more = columns(kind), columns(kind, 47)
    later = [None if column is None else column[39:] for column in more]
    later[0] = np.maximum(later[0], rows[0][-1])
    options = {"loss": loss, "increasing": increasing}
    assert loaded.staircase() == sf.fit(*rows[:2], sample_weight=rows[2], **options)
    add(*later)
    x, y, w = joined(rows, later)
    assert loaded.staircase() == sf.fit(x, y, sample_weight=w, **options)


@pytest.mark.parametrize("name", ONLINE)
def test_an_old_online_file_continues_as_a_fit_of_the_same_rows(name):
    kind, loss, increasing = ONLINE[name]
    loaded = sf.Online.load(FOLDER / f"online_{name}.json")
    if name == "linex":  # its values are accurate to a few ulps
        fresh = online(name, columns(kind))
        assert loaded.staircase() == fresh.staircase()
        for one in (loaded, fresh):
            one.extend([99, 100], [1.5, 1.0])
        assert loaded.to_json() == fresh.to_json()
        return
    assert_continues(loaded, loaded.extend, kind, loss, increasing)


@pytest.mark.parametrize("name", ACCUMULATORS)
def test_an_old_accumulator_file_continues_as_a_fit_of_the_same_rows(name):
    loaded = sf.Accumulator.load(FOLDER / f"accumulator_{name}.npz")
    assert_continues(loaded, loaded.add, *ACCUMULATORS[name])


def test_old_files_without_rows_are_empty():
    for loaded in (sf.Online.load(FOLDER / "online_empty.json"), sf.Accumulator.load(FOLDER / "accumulator_empty.npz")):
        assert (loaded.n_samples, loaded.loss) == (0, L.LogLoss())


@pytest.mark.parametrize(
    ("name", "fields", "message"),
    [
        ("labels", {"tally": lambda tally: tally[1:]}, "field `tally` must have an entry per score"),
        ("labels", {"s": lambda _: np.ones(3, dtype=np.int64)}, "field `tally` must have an entry per score"),
        ("labels", {"tally": lambda tally: tally + np.uint64(1)}, "field `rows` must count all rows"),
        ("integers", {"s": lambda s: s * 1000}, "field `y` must hold the sums of rows"),
        ("integers", {"s": lambda s: np.full_like(s, -(2**63))}, "field `words` must hold the sums of rows"),
        ("weights", {"w": lambda w: -w}, "field `w` must be >= 0"),
        ("weights", {"w": lambda w: w.view(np.int64)}, "field `w` must be float64 in the form 'sums'; got int64"),
    ],
)
def test_a_changed_accumulator_file_of_an_old_form_is_refused(name, fields, message, tmp_path):
    with np.load(FOLDER / f"accumulator_{name}.npz") as file:
        arrays = dict(file)
    np.savez(tmp_path / "changed.npz", **arrays | {field: change(arrays[field]) for field, change in fields.items()})
    with pytest.raises(ValueError, match=message):
        sf.Accumulator.load(tmp_path / "changed.npz")


def test_old_tallies_of_many_rows_become_pools():
    tally = np.array([5 << 32 | 2**31, 1 << 32 | 1], dtype=np.uint64)
    columns = runs.entries_of_tallies(np.array([1.0, 2.0]), tally, np.empty(0, dtype=np.int64))
    run = runs.Run(columns, 2**31 + 1, Extent(-1, 0.0, 1.0, 1.0, True), UNIT_WEIGHTS)
    assert np.sign(columns.w).tolist() == [0, -1]
    assert run.weight == 2**31 + 1
    steps = runs.steps_of(run, decreasing=False, bounds=(-np.inf, np.inf))
    assert (steps.values.tolist(), steps.counts.tolist()) == ([5 / 2**31, 1.0], [2**31, 1])
