"""Fits of Dask collections: the bits of `fit` and `fit_groups` for any partitions, scheduler and lost worker."""

import itertools
import os
import pickle
import signal
import subprocess
import sys
import textwrap
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("distributed")  # the extra `engines-test`

import dask
import dask.array as da
import dask.dataframe as dd
import pandas as pd
from comparing import assert_same_bits, assert_same_staircase
from distributed import Client, LocalCluster
from hypothesis import given
from hypothesis import strategies as st
from strategies import ANY_SCORES, ANY_TARGETS, SCORES, TARGETS, WEIGHTS, kinds, rows

import staircase_fast as sf
from staircase_fast import dask as sfd

inf = float("inf")
WEIGHT_KINDS = kinds(WEIGHTS, "one", "integers, zero too", "decimals", "600 decades")
KILLS = int(os.environ.get("KILLS", "1"))  # how often each worker is killed


def frame_of(n, *, seed=0, n_groups=40):
    """Rows in which half of them belong to group 7."""
    rng = np.random.default_rng(seed)
    p = rng.random(n).round(5)
    group = np.where(rng.random(n) < 0.5, 7, rng.integers(0, n_groups, n))
    columns = {"p": p, "label": (rng.random(n) < p).astype("u1"), "real": rng.normal(p), "w": rng.integers(0, 4, n)}
    return pd.DataFrame({**columns, "g": group, "name": [f"g{number}" for number in group]})


def collection(frames):
    """A Dask DataFrame with exactly these partitions."""
    return dd.from_delayed([dask.delayed(one) for one in frames], meta=frames[0].iloc[:0], verify_meta=False)


def divided(frame, cuts):
    borders = [0, *sorted(min(cut, len(frame)) for cut in cuts), len(frame)]
    return [frame.iloc[a:b] for a, b in itertools.pairwise(borders)]


def assert_same_map(actual, expected):
    assert list(actual) == list(expected)
    for key in expected:
        assert_same_staircase(actual[key], expected[key])
    assert actual == expected


def two_processes():
    return LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0")


@pytest.fixture(scope="module")
def cluster():
    with two_processes() as made:
        yield made


@pytest.fixture
def client():
    """Of a new cluster, because Dask does not always replace a worker that was killed."""
    with two_processes() as made, Client(made) as client:
        client.wait_for_workers(2, timeout=60)
        yield client


@pytest.fixture(scope="module")
def pool():
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as made:
        yield made


@pytest.fixture(params=["threads", "processes", "cluster"])
def scheduler(request):
    if request.param == "cluster":
        with Client(request.getfixturevalue("cluster")):
            yield request.param
    elif request.param == "processes":
        with dask.config.set(scheduler="processes", pool=request.getfixturevalue("pool")):
            yield request.param
    else:
        with dask.config.set(scheduler="threads", num_workers=2):
            yield request.param


# Equal bits.


@given(
    rows(ANY_SCORES, ANY_TARGETS, WEIGHT_KINDS),
    st.lists(st.integers(0, 24), max_size=20),
    st.sampled_from([300, "2kB", "1GB"]),
    st.sampled_from([True, False, "auto"]),
)
def test_any_partitions_give_the_bits_of_fit(drawn, cuts, memory, rising):
    frame = pd.DataFrame({"x": drawn.scores, "y": drawn.targets, "w": drawn.weights})
    data = collection(divided(frame, cuts))
    with dask.config.set(scheduler="synchronous"):
        found = sfd.fit(data, "x", "y", "w", increasing=rising, memory_limit=memory)
    assert_same_staircase(found, sf.fit(frame.x, frame.y, sample_weight=frame.w, increasing=rising))


@given(rows(kinds(SCORES, "float32"), kinds(TARGETS, "labels", "integers"), kinds(WEIGHTS, "one")), st.data())
def test_types_may_differ_between_partitions(drawn, data):
    types = st.sampled_from(["f4", "f8"]), st.sampled_from(["i1", "i4", "i8", "f4", "f8", "Int64"])
    frames = [
        part.astype({"x": data.draw(types[0]), "y": data.draw(types[1])})
        for part in divided(pd.DataFrame({"x": drawn.scores, "y": drawn.targets}), [5, 9, 9, 13])
    ]
    with dask.config.set(scheduler="synchronous"):
        found = sfd.fit(collection(frames), "x", "y")
    assert_same_staircase(found, sf.fit(drawn.scores, drawn.targets))


@given(
    rows(ANY_SCORES, kinds(TARGETS, "labels", "decimals"), kinds(WEIGHTS, "one", "decimals")),
    st.data(),
    st.sampled_from([1, 128 * 3, 128 * 8, "1GB"]),
    st.sampled_from([True, False, "auto"]),
)
def test_groups_in_any_partitions_give_the_bits_of_fit_groups(drawn, data, memory, rising):
    n = len(drawn.scores)
    keys = data.draw(st.sampled_from([st.integers(-3, 3), st.text(max_size=1), st.booleans()]))
    frame = pd.DataFrame({"x": drawn.scores, "y": drawn.targets, "w": drawn.weights})
    frame["g"] = data.draw(st.lists(keys, min_size=n, max_size=n))
    cuts = data.draw(st.lists(st.integers(0, n), max_size=6))
    with dask.config.set(scheduler="synchronous"):
        found = sfd.fit_groups(
            collection(divided(frame, cuts)), "x", "y", "g", "w", increasing=rising, memory_limit=memory
        )
    assert_same_map(found, sf.fit_groups(frame.x, frame.y, frame.g, sample_weight=frame.w, increasing=rising))


def test_all_schedulers_give_the_same_bits(scheduler):
    frame = frame_of(60_000)
    frame.loc[:3, "p"] = [inf, -inf, 0.0, -0.0]
    data = dd.from_pandas(frame, npartitions=9)
    assert_same_staircase(sfd.fit(data, "p", "label"), sf.fit(frame.p, frame.label))
    for options in ({"increasing": False}, {"bounds": (0.2, 0.7), "memory_limit": "2MB"}):
        found = sfd.fit(data, score="p", target="real", weight="w", **options)
        options.pop("memory_limit", None)
        assert_same_staircase(found, sf.fit(frame.p, frame.real, sample_weight=frame.w, **options))
    expected = sf.fit_groups(frame.p, frame.real, frame.g, sample_weight=frame.w)
    for memory in ("1GB", 128 * 5000):  # with and without a large group
        assert_same_map(sfd.fit_groups(data, "p", "real", "g", "w", memory_limit=memory), expected)


@pytest.mark.parametrize("loss", ["log", "poisson_deviance", "tweedie"])
def test_losses_whose_steps_are_means(loss):
    frame = frame_of(3000)
    data = dd.from_pandas(frame, npartitions=4)
    options = {"loss": sf.losses.TweedieDeviance(1.5) if loss == "tweedie" else loss, "bounds": (0.1, None)}
    assert_same_staircase(sfd.fit(data, "p", "label", **options), sf.fit(frame.p, frame.label, **options))
    expected = sf.fit_groups(frame.p, frame.label, frame.name, **options)
    for memory in ("1GB", 128 * 500):
        assert_same_map(sfd.fit_groups(data, "p", "label", "name", memory_limit=memory, **options), expected)


def test_many_small_partitions_share_tasks(monkeypatch):
    frame, sizes = frame_of(20_000), []
    scan = sfd.scan_partitions

    def scan_partitions(names, first, bundle, *shared):
        sizes.append(len(bundle))
        return scan(names, first, bundle, *shared)

    monkeypatch.setattr(sfd, "scan_partitions", scan_partitions)
    data = dd.from_pandas(frame, npartitions=400)
    with dask.config.set(scheduler="synchronous"):
        assert_same_staircase(sfd.fit(data, "p", "real"), sf.fit(frame.p, frame.real))
    assert max(sizes) > 1
    assert sum(sizes) == 2 * data.npartitions + 8


@pytest.mark.parametrize("known", [True, False])
def test_arrays_may_have_other_chunks(known):
    frame = frame_of(5000)
    x, y, w, g = (da.from_array(frame[name].to_numpy(), chunks=700) for name in ("p", "real", "w", "g"))
    if known:
        y, w = y.rechunk(1111), w.rechunk(5000)
    else:
        x, y, w, g = (array[x > 0.1] for array in (x, y, w, g))
        frame = frame[frame.p > 0.1]
    expected = sf.fit(frame.p, frame.real, sample_weight=frame.w)
    assert_same_staircase(sfd.fit(x, target=y, weight=w), expected)
    expected = sf.fit_groups(frame.p, frame.real, frame.g)
    assert_same_map(sfd.fit_groups(x, target=y, group=g), expected)
    found = sfd.predict(expected, x, group=g)
    assert found.dtype == np.float64
    assert_same_bits(found.compute(), expected.predict(frame.p, frame.g))


@pytest.mark.parametrize("convert", [str, "category", bool], ids=str)
def test_groups_of_any_kind(convert):
    frame = frame_of(2000)
    frame["g"] = frame.g.astype(convert)
    found = sfd.fit_groups(dd.from_pandas(frame, npartitions=5), "p", "label", "g")
    assert_same_map(found, sf.fit_groups(frame.p, frame.label, frame.g))


def test_the_client_receives_messages_and_no_partitions(monkeypatch):
    rng, sizes = np.random.default_rng(0), []
    frame = pd.DataFrame({"p": rng.random(10**6), "label": rng.integers(0, 2, 10**6, dtype="u1")})
    compute = dask.compute

    def computed(*given):
        found = compute(*given)
        sizes.append(len(pickle.dumps(found)))
        return found

    monkeypatch.setattr(sfd.dask, "compute", computed)
    sfd.fit(dd.from_pandas(frame, npartitions=40), "p", "label")
    assert len(sizes) == 3
    assert max(sizes) < frame.memory_usage(index=False).sum() / 2


# Predictions.


def test_predictions_are_lazy_and_keep_the_index():
    frame = frame_of(1000).set_index(pd.Index(np.arange(1000) * 2 + 5, name="key"))
    data, stairs = dd.from_pandas(frame, npartitions=4), sf.fit(frame.p, frame.label)
    found = sfd.predict(stairs, data, "p", interpolation="linear", out_of_bounds="nan")
    assert isinstance(found, dd.Series)
    assert (found.dtype, found.name, found.divisions) == (np.float64, "p", data.divisions)
    expected = pd.Series(stairs.predict(frame.p, interpolation="linear"), index=frame.index, name="p")
    pd.testing.assert_series_equal(found.compute(), expected)
    by_group = sf.fit_groups(frame.p, frame.label, frame.name)
    found = data.assign(calibrated=sfd.predict(by_group, data, "p", "name")).compute()
    assert_same_bits(found.calibrated, by_group.predict(frame.p, frame.name))


def test_predictions_of_tables_of_scores():
    scores = np.random.default_rng(0).random((50, 3)).astype("f4")
    stairs = sf.fit(scores[:, 0], np.arange(50) % 2)
    found = sfd.predict(stairs, da.from_array(scores, chunks=(20, 2)))
    assert (found.shape, found.dtype) == ((50, 3), np.float64)
    assert_same_bits(found.compute(), stairs.predict(scores))


# Errors.


def failing(frame, partition_info=None):
    if partition_info and partition_info["number"] == 5:
        raise FileNotFoundError("no such file")
    return frame


def test_a_partition_that_raises_is_named(scheduler):
    data = dd.from_pandas(frame_of(2000), npartitions=9)
    broken = data.map_partitions(failing, meta=data._meta)
    for call in (sfd.fit, sfd.fit_groups):
        with pytest.raises(FileNotFoundError, match="no such file") as caught:
            call(broken, score="p", target="label", **({"group": "g"} if call is sfd.fit_groups else {}))
        assert caught.value.__notes__ == ["in partition 5 of `data`"]


def test_invalid_entries_are_named_with_their_partition(scheduler):
    frame = frame_of(90)
    frame.loc[57, "p"] = np.nan
    data, stairs = dd.from_pandas(frame, npartitions=9), sf.fit([1, 2], [0, 1])
    message = r"^partition 5: column 'p' must not be NaN; got nan at index 7\. Drop these rows, or fill them\.$"
    for call in (
        lambda: sfd.fit(data, "p", "label"),
        lambda: sfd.fit_groups(data, "p", "label", "g"),
    ):
        with pytest.raises(sf.InvalidInputError, match=message):
            call()
    with pytest.raises(sf.InvalidInputError, match=message.removesuffix("$")):
        sfd.predict(stairs, data, "p").compute()
    array = da.from_array(frame.p.to_numpy(), chunks=30)
    with pytest.raises(sf.InvalidInputError, match=r"^partition 1: `scores` must not be NaN; got nan at index 27"):
        sfd.fit(array, target=array)


def shaken(frame):
    return frame.assign(p=np.random.default_rng().random(len(frame)))


def test_data_that_change_between_the_scans_are_refused():
    data = dd.from_pandas(frame_of(2000), npartitions=3)
    with pytest.raises(sf.InvalidInputError, match=r"`data` must return the same rows in each scan.*persist"):
        sfd.fit(data.map_partitions(shaken, meta=data._meta), "p", "label")


FRAME = dd.from_pandas(frame_of(20), npartitions=2)
TWICE = dd.from_pandas(frame_of(20)[["p", "w", "w"]], npartitions=2)
ARRAY = da.from_array(np.arange(20.0), chunks=5)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: sfd.fit(FRAME, "q", "label"), "`score` must be the name of one of the columns .*; got 'q'"),
        (lambda: sfd.fit(FRAME, None, "label"), "`score` must be the name of one of the columns .*; got None"),
        (lambda: sfd.fit(FRAME, "p"), "`target` must be given"),
        (lambda: sfd.fit(FRAME, "p", ARRAY), "`target` must be the name of one of the columns .*Array"),
        (lambda: sfd.fit(TWICE, "p", "w"), "`data` must have one column 'w'; got 2. Rename them"),
        (lambda: sfd.fit(FRAME.p, target="label"), "`data` must be a Dask DataFrame or a Dask array; got .*Series"),
        (lambda: sfd.fit(np.ones(3), target=np.ones(3)), "`data` must be a Dask DataFrame or a Dask array"),
        (lambda: sfd.fit(ARRAY, target=np.ones(20)), "`target` must be a Dask array, as `data` is"),
        (lambda: sfd.fit(ARRAY, "p", ARRAY), "`score` must not be given if `data` is an array"),
        (
            lambda: sfd.fit(ARRAY, target=ARRAY[:9]),
            r"`data` and `target` must have the same shape; got \(20,\) and \(9,\)",
        ),
        (
            lambda: sfd.fit(ARRAY, target=ARRAY.rechunk(10)[ARRAY.rechunk(10) > 3]),
            "must have the same number of blocks",
        ),
        (lambda: sfd.fit(ARRAY.reshape(4, 5), target=ARRAY.reshape(4, 5)), "`data` must have one dimension"),
        (lambda: sfd.fit(ARRAY[:0], target=ARRAY[:0]), "`scores` must have at least one row"),
        (lambda: sfd.fit(FRAME, "p", "real", loss="huber"), "`loss` must have steps that are means"),
        (lambda: sfd.fit_groups(FRAME, "p", "real", "g", loss="huber"), "`loss` must have steps that are means"),
        (lambda: sfd.fit_groups(FRAME, "p", "real", "g", bounds=(2, 1)), "`bounds`"),
        (lambda: sfd.fit_groups(FRAME, "p", "real"), "`group` must be given"),
        (lambda: sfd.fit_groups(ARRAY[:0], target=ARRAY[:0], group=ARRAY[:0]), "`scores` must have at least one row"),
        (lambda: sfd.predict(sf.fit([1], [1]), FRAME, "p", "g"), "`group` must not be given for a Staircase"),
        (lambda: sfd.predict(sf.fit_groups([1], [1], [1]), FRAME, "p"), "`group` must be given for a StaircaseMap"),
        (lambda: sfd.predict(3, FRAME, "p"), "`stairs` must be a Staircase or a StaircaseMap; got 3"),
        (lambda: sfd.predict(sf.fit([1], [1]), FRAME, "p", interpolation="cubic"), "`interpolation` must be one of"),
        (lambda: sfd.predict(sf.fit([1], [1]), FRAME, "p", out_of_bounds="zero"), "`out_of_bounds` must be one of"),
    ],
)
def test_invalid_arguments_raise_an_error(call, message):
    with pytest.raises(sf.InvalidInputError, match=message):
        call()


def test_groups_need_weights_above_zero_and_keys_of_one_kind():
    frame = frame_of(100)
    frame.loc[frame.g == 7, "w"] = 0
    with pytest.raises(sf.InvalidInputError, match=r"column 'w' must have an entry > 0 in each group; .* of group 7"):
        sfd.fit_groups(dd.from_pandas(frame, npartitions=3), "p", "label", "g", "w")
    mixed = collection([frame, frame.assign(g=frame.name)])
    with pytest.raises(sf.InvalidTypeError, match=r"all integers, all strings or all bools; got \d+ and 'g\d+'"):
        sfd.fit_groups(mixed, "p", "label", "g")


def run(code):
    return subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=False)


def test_the_package_does_not_import_dask():
    done = run("import staircase_fast, sys; print({'dask', 'distributed', 'pandas'} & set(sys.modules))")
    assert done.stdout == "set()\n", done.stderr


def test_without_dask_the_error_names_the_extra():
    done = run("import sys; sys.modules['dask'] = None; from staircase_fast import dask")
    assert "needs dask, which is not installed: pip install '.[dask]' in a checkout." in done.stderr


# Lost workers.


class Recorded(sfd.Driver):
    """Writes the kind of the scan that is under way to a file."""

    folder = Path()

    def next(self):
        task = super().next()
        (self.folder / "scan").write_text(task.kind if task else "")
        return task


def killed_once(frame, folder, kind, partition_info=None):
    """End this worker at the first computation of partition 6 in a scan of this kind."""
    if partition_info and partition_info["number"] == 6 and (folder / "scan").read_text() == kind:
        try:
            (folder / "killed").touch(exist_ok=False)
        except FileExistsError:
            return frame
        os.kill(os.getpid(), signal.SIGKILL)
    return frame


@pytest.mark.parametrize("attempt", range(KILLS))
@pytest.mark.parametrize("kind", ["peek", "survey", "collect"])
def test_a_worker_killed_during_a_scan_changes_no_bit(client, monkeypatch, tmp_path, kind, attempt):
    frame = frame_of(40_000, seed=attempt)
    monkeypatch.setattr(Recorded, "folder", tmp_path)
    monkeypatch.setattr(sfd, "Driver", Recorded)
    data = dd.from_pandas(frame, npartitions=8)
    found = sfd.fit(data.map_partitions(killed_once, tmp_path, kind, meta=data._meta), "p", "real", "w")
    assert (tmp_path / "killed").exists()
    assert_same_staircase(found, sf.fit(frame.p, frame.real, sample_weight=frame.w))


@pytest.mark.parametrize("attempt", range(KILLS))
@pytest.mark.parametrize("scan", ["count", "split"])
def test_a_worker_killed_while_groups_are_moved_changes_no_bit(client, monkeypatch, tmp_path, scan, attempt):
    frame, compute = frame_of(20_000, seed=attempt), dask.compute
    scans = iter(("count", "split"))

    def computed(*given):
        (tmp_path / "scan").write_text(next(scans))
        return compute(*given)

    monkeypatch.setattr(sfd.dask, "compute", computed)
    data = dd.from_pandas(frame, npartitions=8)
    found = sfd.fit_groups(data.map_partitions(killed_once, tmp_path, scan, meta=data._meta), "p", "real", "name")
    assert (tmp_path / "killed").exists()
    assert_same_map(found, sf.fit_groups(frame.p, frame.real, frame.name))
