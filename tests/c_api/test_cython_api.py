"""The C API, tested through two small extensions that are compiled against the package (cython_api_example/)."""

import os
import re
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from comparing import assert_same_bits
from hypothesis import given
from strategies import HUGE, TINY, rows

import staircase_fast as sf
from staircase_fast import cython_api

TESTS = Path(__file__).parent
PACKAGE = Path(sf.__file__).resolve().parent
OK, DECREASING, LINEAR, OUTSIDE_NAN = 0, 1, 2, 4
INF, NAN = np.inf, np.nan
RNG = np.random.default_rng(11)


def build(folder):
    """Compile the example in a folder of its own, against the package under test, wherever that is installed."""
    shutil.copytree(TESTS / "cython_api_example", folder)
    env = {**os.environ, "PYTHONPATH": str(PACKAGE.parent), "CFLAGS": "-O0"}
    command = [sys.executable, "setup.py", "--quiet", "build_ext", "--inplace"]
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="session")
def example(tmp_path_factory):
    """The folder of the compiled example; processes that share the tests make it once."""
    shared = "PYTEST_XDIST_WORKER" in os.environ
    root = tmp_path_factory.getbasetemp().parent if shared else tmp_path_factory.mktemp("example")
    folder, made = root / "cython_api_example", root / "cython_api_example.made"
    try:
        (root / "cython_api_example.begun").touch(exist_ok=False)
    except FileExistsError:
        deadline = time.monotonic() + 300
        while not made.exists() and time.monotonic() < deadline:
            time.sleep(0.1)
    else:
        build(folder)
        made.touch()
    assert made.exists()
    sys.path.insert(0, str(folder))
    yield folder
    sys.path.remove(str(folder))


@pytest.fixture(scope="session")
def api(example):
    import in_cython

    return in_cython


@pytest.fixture(scope="session")
def in_c(example):
    import in_c

    return in_c


def doubles(*columns):
    return [None if column is None else np.array(column, dtype=np.float64) for column in columns]


def assert_same(api_stairs, expected):
    """The columns of the API's staircase, and those of one of ours, bit for bit."""
    columns = api_stairs.columns()
    for name, column in zip(("left", "right", "values", "weights"), columns, strict=False):
        assert_same_bits(column, getattr(expected, name))
    assert np.array_equal(columns[4], expected.counts)


def assert_fits(api, x, y, w=None):
    x, y, w = doubles(x, y, w)
    for increasing in (True, False):
        status, bad_row, stairs = api.fit(x, y, w, 0 if increasing else DECREASING)
        assert (status, bad_row) == (OK, -1)
        assert_same(stairs, sf.fit(x, y, sample_weight=w, increasing=increasing))


# what is frozen


def frozen_signatures():
    return (TESTS / "cython_api_signatures.txt").read_text().splitlines()


def test_signatures_are_frozen():
    """A difference here breaks programs that were compiled against an earlier release.

    New functions may be added: add their lines to the file, to include/staircase_fast.h and a test below, and make
    SF_API_VERSION one greater.  Lines that are there must stay.
    """
    exported = {name: re.search('"(.*)"', str(capsule))[1] for name, capsule in cython_api.__pyx_capi__.items()}
    assert [f"{name}: {signature}" for name, signature in sorted(exported.items())] == frozen_signatures()


def test_statuses_and_options_are_frozen(api):
    assert api.VERSION == 1
    assert list(api.STATUS.values()) == list(range(14))
    assert api.OPTIONS == {"SF_DECREASING": 1, "SF_LINEAR": 2, "SF_OUTSIDE_NAN": 4}
    messages = {api.message(status) for status in api.STATUS.values()}
    assert len(messages) == 14
    assert api.message(14) == api.message(-1) == "unknown status"


def test_the_header_declares_the_same_as_the_pxd(api):
    header = Path(sf.get_include(), "staircase_fast.h").read_text()
    declared = re.findall(r'F\(([^"]*?), (\w+),\s*\\?\s*\([^"]*\),\s*\\?\s*"([^"]*)"\)', header)
    assert sorted(f"sf_{name}: {signature}" for _, name, signature in declared) == frozen_signatures()
    numbers = {name: int(value) for name, value in re.findall(r"\b(SF_\w+) = (\d+)", header)}
    assert numbers == {**api.STATUS, **api.OPTIONS}
    assert f"#define SF_API_VERSION {api.VERSION}" in header


def test_the_pxd_cimports_no_other():
    text = (PACKAGE / "cython_api.pxd").read_text()
    code = [line for line in text.split("\n") if not line.lstrip().startswith("#")]
    assert not any("cimport" in line or "class" in line or "fused" in line for line in code)


# fits


@given(drawn=rows())
def test_fits_equal_fit_bit_for_bit(api, drawn):
    assert_fits(api, *drawn)


CASES = {
    "one row": ([3.0], [4.0], None),
    "one row that counts": ([1.0, 2.0, 3.0], [7.0, 8.0, 9.0], [0.0, 2.0, 0.0]),
    "equal scores": ([1.0] * 5, [0.1, 0.2, 0.3, 0.4, 0.5], None),
    "zeros of both signs": ([0.0, -0.0, -0.0, 0.0], [0.1, -0.0, 0.3, 0.4], None),
    "infinite scores": ([INF, -INF, 0.0, INF, -INF], [1.0, 2.0, 0.5, 3.0, -1.0], None),
    "huge targets": ([1.0, 2.0, 3.0], [HUGE, 1.6e308, HUGE], None),
    "tiny targets": ([2.0, 1.0, 3.0], [TINY, 2 * TINY, TINY], None),
    "large weights": ([2.0, 1.0, 3.0], [1.0, 2.0, 0.0], [1e308, 5e307, 1e-300]),
}


@pytest.mark.parametrize("case", CASES)
def test_unusual_rows_are_fitted_as_by_fit(api, case):
    assert_fits(api, *CASES[case])


@pytest.mark.parametrize("n", [63, 64, 1000, 30_000])
@pytest.mark.parametrize("order", ["any", "ascending", "descending"])
@pytest.mark.parametrize("weighted", [False, True, "zeros"])
def test_many_rows_are_fitted_as_by_fit(api, n, order, weighted):
    x = RNG.normal(size=n)
    x = {"any": x, "ascending": np.sort(x), "descending": np.sort(x)[::-1].copy()}[order]
    w = RNG.random(n) if weighted else None
    if weighted == "zeros":
        w[::3] = 0.0
    assert_fits(api, x, x + RNG.normal(size=n), w)
    assert_fits(api, np.round(x, 1), RNG.random(n) < 0.5, None if w is None else np.ceil(9 * w))
    assert_fits(api, x, np.arange(n) / 7, w)


BAD_ROWS = {
    "SF_SCORE_IS_NAN": (0, NAN),
    "SF_TARGET_NOT_FINITE": (1, INF),
    "SF_WEIGHT_NOT_FINITE": (2, NAN),
    "SF_WEIGHT_NEGATIVE": (2, -0.5),
}


@pytest.mark.parametrize("name", BAD_ROWS)
@pytest.mark.parametrize("row", [0, 17, 99])
def test_the_first_invalid_row_is_reported(api, name, row):
    columns = doubles(np.arange(100), np.arange(100), np.ones(100))
    place, value = BAD_ROWS[name]
    columns[place][row:] = value
    status, bad_row, stairs = api.fit(*columns)
    assert (status, bad_row, stairs.is_null) == (api.STATUS[name], row, True)
    online = api.Online()
    assert online.extend(*columns) == (status, row)
    assert online.push_each(*columns) == (status, row)
    assert len(online) == row


def test_invalid_arguments_are_refused(api):
    x, y = doubles([1, 2], [3, 4])
    none = np.empty(0)
    for expected, arguments in {
        "SF_NULL_POINTER": (none, y, None, 0, 2),
        "SF_UNKNOWN_OPTION": (x, y, None, 8),
        "SF_NEGATIVE_COUNT": (x, y, None, 0, -1),
        "SF_NO_ROWS": (none, none),
        "SF_ALL_WEIGHTS_ZERO": (x, y, np.zeros(2)),
        "SF_WEIGHTS_OVERFLOW": (x, y, np.full(2, 1.7e308)),
        "SF_TOO_MANY_ROWS": (x, y, None, 0, 2**48),
    }.items():
        status, bad_row, stairs = api.fit(*arguments)
        assert (status, bad_row, stairs.columns()) == (api.STATUS[expected], -1, ()), expected
    assert api.fit(x, none)[0] == api.STATUS["SF_NULL_POINTER"]
    assert api.fit_without_asking_where(x, y) == (OK, api.STATUS["SF_NULL_POINTER"])
    assert api.fit_without_asking_where(x * NAN, y) == (api.STATUS["SF_SCORE_IS_NAN"], api.STATUS["SF_NULL_POINTER"])


def test_weights_may_sum_to_the_largest_double(api):
    half = HUGE / 2
    assert_fits(api, [1, 2], [1, 2], [half, half])
    w = np.array([half, half, 2.0**970])  # half an ulp more: rounds up to infinity
    with pytest.raises(ValueError, match="finite sum"):
        sf.fit([1, 2, 3], [1, 2, 3], sample_weight=w)
    assert api.fit(*doubles([1, 2, 3], [1, 2, 3], w))[0] == api.STATUS["SF_WEIGHTS_OVERFLOW"]
    online = api.Online()
    assert online.push(1, 1, half) == OK
    assert online.extend(*doubles([1, 2], [1, 2], w[1:])) == (api.STATUS["SF_WEIGHTS_OVERFLOW"], -1)
    assert online.push(1, 1, half) == OK
    assert online.push(1, 1, 2.0**970) == api.STATUS["SF_WEIGHTS_OVERFLOW"]
    assert len(online) == 2


# evaluation


@pytest.mark.parametrize("n_queries", [1, 300, 5000])
@pytest.mark.parametrize("linear", [False, True])
@pytest.mark.parametrize("outside", [False, True])
@pytest.mark.parametrize("kind", ["normal", "infinite ends", "two decades apart", "one step", "narrow", "wide", "many"])
def test_queries_equal_predict(api, kind, n_queries, linear, outside):
    x = np.sort(RNG.normal(size=11_000 if kind == "many" else 200))
    if kind == "infinite ends":
        x[0], x[-1] = -INF, INF
    elif kind == "two decades apart":
        x = np.append(x, 1e4 * x[-1] + x)
    elif kind == "narrow":
        x = np.arange(2) * TINY
    elif kind == "wide":
        x = np.array([-HUGE, 0.0, HUGE])
    y = np.zeros(len(x)) if kind == "one step" else np.arange(len(x)) / 3
    _, _, stairs = api.fit(x, y)
    ours = sf.fit(x, y)
    n_queries = max(n_queries, 12_000) if kind == "many" and n_queries == 5000 else n_queries
    queries = np.concatenate([[-INF, INF, -0.0], x, 3 * RNG.normal(size=n_queries)])[-max(n_queries, 1) :]
    how = LINEAR * linear + OUTSIDE_NAN * outside
    expected = ours.predict(
        queries, interpolation="linear" if linear else "step", out_of_bounds="nan" if outside else "clip"
    )
    status, bad_row, values = stairs.evaluate(queries, how)
    assert (status, bad_row) == (OK, -1)
    assert_same_bits(values, expected)


def test_refused_queries_leave_the_output_unchanged(api):
    x, y = doubles(np.arange(5), np.arange(5))
    _, _, stairs = api.fit(x, y)
    queries = np.arange(3000.0)
    queries[[2000, 2500]] = NAN
    for expected, row, arguments in (
        ("SF_SCORE_IS_NAN", 2000, (queries,)),
        ("SF_UNKNOWN_OPTION", -1, (x, DECREASING)),
        ("SF_NEGATIVE_COUNT", -1, (x, 0, -1)),
        ("SF_NULL_POINTER", -1, (np.empty(0), 0, 5)),
    ):
        status, bad_row, values = stairs.evaluate(*arguments)
        assert (status, bad_row) == (api.STATUS[expected], row)
        assert np.all(values == 7)
    assert stairs.evaluate(np.empty(0))[0] == OK


# online


def assert_online(online, expected):
    status, stairs = online.staircase()
    assert status == OK
    assert_same(stairs, expected)


@given(drawn=rows())
def test_online_rows_have_the_staircase_of_a_batch(api, drawn):
    drawn = drawn.take(np.argsort(drawn.scores, kind="stable"))
    for increasing in (True, False):
        one, all_at_once = (api.Online(0 if increasing else DECREASING) for _ in range(2))
        for n in range(1, len(drawn.scores) + 1):
            x, y, w = drawn.take(np.arange(n))
            assert one.push(x[-1], y[-1], w[-1]) == OK
            if w.any() and (n % 3 == 0 or n == len(drawn.scores)):
                assert_online(one, sf.fit(x, y, sample_weight=w, increasing=increasing))
        assert all_at_once.extend(*drawn) == (OK, -1)
        assert_online(all_at_once, sf.fit(*drawn[:2], sample_weight=drawn.weights, increasing=increasing))
        assert len(one) == len(all_at_once) == np.count_nonzero(drawn.weights)


@pytest.mark.parametrize("seed", range(3))
def test_pushes_and_batches_may_alternate_and_numbers_become_wider(api, seed):
    rng = np.random.default_rng(seed)
    n = 6000
    x = np.round(np.sort(rng.random(n)), 3)
    y = np.concatenate([rng.integers(0, 2, 1000), rng.integers(0, 9, 1000) / 2, rng.normal(size=4000)])
    y[4000:5000] *= 1e-90 if seed else 1e90
    y[5000:] *= 1e200 if seed else 1e-200
    w = np.where(rng.random(n) < 0.1, 0.0, 1.0)
    w[3000:] *= rng.random(3000)
    online = api.Online()
    start = 0
    while start < n:
        end = min(n, start + int(rng.integers(1, 1500)))
        columns = x[start:end], y[start:end], w[start:end]
        assert (online.extend(*columns) if rng.random() < 0.5 else online.push_each(*columns))[0] == OK
        start = end
        assert_online(online, sf.fit(x[:end], y[:end], sample_weight=w[:end]))


def test_rows_without_weights_count_fully_after_some_with_fine_weights(api):
    online = api.Online()
    assert online.extend(*doubles([1], [0.5], [0.3])) == (OK, -1)
    assert online.extend(*doubles([2, 2, 2, 2], [0.6, 0.7, 0.8, 0.9])) == (OK, -1)
    assert_online(online, sf.fit([1, 2, 2, 2, 2], [0.5, 0.6, 0.7, 0.8, 0.9], sample_weight=[0.3, 1, 1, 1, 1]))


def test_a_target_of_weight_0_is_checked(api):
    status = api.STATUS["SF_TARGET_NOT_FINITE"]
    online = api.Online()
    assert online.extend(*doubles([1, 2], [0, np.nan], [0, 0])) == (status, 1)
    assert online.push(1, np.nan, 0) == status
    assert api.fit(*doubles([1, 2], [np.inf, 0], [0, 0]))[:2] == (status, 0)
    assert api.fit(*doubles([1, 2], [1, 0], [0, 0]))[0] == api.STATUS["SF_ALL_WEIGHTS_ZERO"]


def test_memory_grows_and_shrinks_with_the_number_of_blocks(api):
    online = api.Online()
    n = 30_000
    x = np.arange(n, dtype=float)
    assert online.extend(x, x / 3) == (OK, -1)
    assert_online(online, sf.fit(x, x / 3))
    assert online.push(n, -1e12) == OK
    assert_online(online, sf.fit(np.append(x, n), np.append(x / 3, -1e12)))
    assert online.extend(x + n + 1, x / 3) == (OK, -1)
    assert len(online) == 2 * n + 1


def test_if_a_score_falls_no_row_is_added(api):
    online = api.Online()
    assert online.staircase()[0] == api.STATUS["SF_NO_ROWS"]
    assert online.extend(*doubles([1, 2], [1, 2], [0, 0])) == (OK, -1)
    assert online.extend(np.empty(0), np.empty(0)) == (OK, -1)
    assert len(online) == 0
    assert online.push(2, 5) == OK
    assert online.push(1, 5) == api.STATUS["SF_SCORE_FALLS"]
    assert online.push(1, 5, 0.0) == OK  # is absent
    assert online.extend(*doubles([2, 3, 2.5], [1, 2, 3])) == (api.STATUS["SF_SCORE_FALLS"], 2)
    assert online.extend(*doubles([0, 3], [1, 2])) == (api.STATUS["SF_SCORE_FALLS"], 0)
    assert online.extend(*doubles([0, 3], [1, 2]), n=-1) == (api.STATUS["SF_NEGATIVE_COUNT"], -1)
    assert online.extend(np.empty(0), np.empty(0), n=1) == (api.STATUS["SF_NULL_POINTER"], -1)
    assert online.extend(*doubles([0, 3], [1, 2], [0, 1])) == (OK, -1)
    assert_online(online, sf.fit([2, 3], [5, 2]))
    with pytest.raises(ValueError, match="options"):
        api.Online(LINEAR)


def test_null_objects_do_not_crash(api):
    statuses, n_samples, unknown = api.statuses_of_null()
    assert statuses == [api.STATUS["SF_NULL_POINTER"]] * 6
    assert n_samples == 0
    assert unknown == api.STATUS["SF_UNKNOWN_OPTION"]


# threads, memory, C


def test_threads_fit_side_by_side_and_share_a_staircase(api):
    n = 20_000
    x, y = RNG.random(n), RNG.normal(size=n)
    total, (_, _, stairs) = api.total_of_many(x, y, 500), api.fit(x, y)
    _, _, values = stairs.evaluate(x)
    failed, barrier = [], threading.Barrier(6)

    def work():
        barrier.wait()
        for _ in range(5):
            online = api.Online()
            same = api.total_of_many(x, y, 500) == total and np.array_equal(stairs.evaluate(x)[2], values)
            if not same or online.extend(np.sort(x), y)[0] != OK or online.staircase()[1].columns()[4].sum() != n:
                failed.append(threading.get_ident())

    workers = [threading.Thread(target=work) for _ in range(6)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not failed


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits memory as Linux does")
def test_a_lack_of_memory_is_a_status_and_no_row_is_lost(example):
    code = """
import resource, numpy as np, in_cython as api
NO_MEMORY, MEGABYTE = api.STATUS["SF_NO_MEMORY"], 1 << 20
n = 1 << 20
x = np.random.default_rng(0).random(n)
y, w, small = x + 0.1, np.full(n, 0.5), np.arange(10.0)
w[0] = 0
ascending = np.sort(x) + 10
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
found = []
for spare in range(1, 100, 7):
    for columns in ((x, y), (x, y, w), (ascending, y), (ascending, y, w)):
        online = api.Online()
        assert online.extend(small, small)[0] == online.push(9.5, 9.5) == 0
        resource.setrlimit(resource.RLIMIT_AS, (used + spare * MEGABYTE, resource.RLIM_INFINITY))
        status, bad_row, stairs = api.fit(*columns)
        assert bad_row == -1 and stairs.is_null == (status == NO_MEMORY)
        found.append(status)
        if columns[0] is ascending:
            status = online.extend(*columns)[0]
            found.append(status)
        resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        if columns[0] is ascending and status == NO_MEMORY:
            assert len(online) == 11
            assert np.array_equal(online.staircase()[1].columns()[2], [*small, 9.5])
            assert online.extend(*columns)[0] == 0
assert set(found) == {0, NO_MEMORY}, found
"""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(PACKAGE.parent), str(example)])}
    subprocess.run([sys.executable, "-c", code], env=env, check=True, timeout=100)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_memory_is_released_after_results_and_errors(api):
    def resident():
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    x, y = RNG.random(40_000), RNG.normal(size=40_000)
    w = np.where(x < 0.5, 0.0, 1.0)
    bad = np.append(y[:-1], NAN)

    def once():
        online = api.Online()
        online.extend(np.sort(x), y, w)
        online.push_each(x[:1000] + 1, y[:1000], w[:1000])
        api.fit(x, y, w)[2].evaluate(x)
        online.staircase()
        api.fit(x, bad, w)
        online.extend(x + 9, y)

    for _ in range(5):
        once()
    before = resident()
    for _ in range(60):
        once()
    assert resident() - before < 20_000_000  # a column that is lost each time would be more


def test_c_code_computes_the_same(in_c):
    x, y, out = RNG.random(500), RNG.normal(size=500), np.empty(500)
    in_c.fitted(x, y, out)
    assert_same_bits(out, sf.fit(x, y)(x))
    y[33] = INF
    with pytest.raises(ValueError, match=r"targets must be finite \(row 33\)"):
        in_c.fitted(x, y, out)
    with pytest.raises(ValueError, match="one length"):
        in_c.fitted(x, y[1:], out)
