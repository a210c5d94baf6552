"""Results and errors do not depend on the number of threads."""

import itertools
import os
import subprocess
import sys
import sysconfig
import threading
import time

import numpy as np
import pytest
from comparing import assert_same_bits, assert_same_staircase
from hammer import hammer

import staircase_fast as sf
from staircase_fast import threads
from staircase_fast.stack import survey

N = 40_000
RNG = np.random.default_rng(5)
X = RNG.random(N)
LABELS = (RNG.random(N) < X).astype(float)
NOISE = X + RNG.normal(size=N)
WEIGHTS = RNG.random(N) + 0.1


@pytest.fixture
def many_parts(monkeypatch, surveyed):
    """Share even a few thousand rows among threads."""
    monkeypatch.setattr(threads, "ROWS_EACH", 1000)
    monkeypatch.setattr(survey, "_ROWS_TO_SORT_IN_THREADS", 100)


@pytest.fixture(autouse=True)
def default_number():
    yield
    sf.set_num_threads(None)


@pytest.mark.usefixtures("many_parts")
@pytest.mark.parametrize("n_threads", [2, 3, 7])
@pytest.mark.parametrize("scores", [X, np.round(X, 2), X.astype(np.float32), np.round(X, 3) + 1e-9 * LABELS])
@pytest.mark.parametrize(
    ("targets", "weights"),
    [
        (LABELS, None),
        (LABELS.astype(bool), None),
        (NOISE, None),
        (NOISE, WEIGHTS),
        (np.round(9 * NOISE), np.ceil(5 * X)),
    ],
)
def test_fits_are_the_same_for_any_number_of_threads(scores, targets, weights, n_threads):
    alone = sf.fit(scores, targets, sample_weight=weights, n_threads=1)
    assert_same_staircase(sf.fit(scores, targets, sample_weight=weights, n_threads=n_threads), alone)


@pytest.mark.usefixtures("many_parts")
@pytest.mark.parametrize("targets", [LABELS, NOISE])
def test_threads_share_the_sort_of_collected_rows(targets, monkeypatch):
    firsts, sort_buckets = [], survey._finish.sort_buckets

    def recorded(rows, ends, first, last, spare):
        firsts.append(first)
        sort_buckets(rows, ends, first, last, spare)

    monkeypatch.setattr(survey._finish, "sort_buckets", recorded)
    sf.fit(X, targets, n_threads=3)
    assert len(set(firsts)) == 3


@pytest.mark.usefixtures("many_parts")
@pytest.mark.parametrize("n", [N, N - 1, 17_003])
@pytest.mark.parametrize("n_threads", [2, 3, 7])
@pytest.mark.parametrize("weights", [None, WEIGHTS])
@pytest.mark.parametrize("targets", [LABELS, NOISE, np.sort(NOISE), np.round(9 * NOISE)])
def test_regressions_are_the_same_for_any_number_of_threads(targets, weights, n_threads, n):
    y, w = targets[:n], None if weights is None else weights[:n]
    alone = sf.isotonic_regression(y, weights=w, n_threads=1)
    shared = sf.isotonic_regression(y, weights=w, n_threads=n_threads)
    for one, other in zip(alone, shared, strict=True):
        assert_same_bits(one, other)
    assert_same_staircase(
        sf.fit(np.arange(n), y, sample_weight=w, n_threads=n_threads),
        sf.fit(np.arange(n), y, sample_weight=w, n_threads=1),
    )


@pytest.mark.usefixtures("many_parts")
@pytest.mark.parametrize("n_threads", [2, 5])
@pytest.mark.parametrize("interpolation", ["step", "linear", "centered"])
def test_predictions_are_the_same_for_any_number_of_threads(interpolation, n_threads):
    stairs = sf.fit(X, NOISE)
    alone = stairs.predict(X, interpolation=interpolation, n_threads=1)
    out = np.empty(N)
    assert np.array_equal(stairs.predict(X, interpolation=interpolation, n_threads=n_threads, out=out), alone)
    assert np.array_equal(out, alone)


@pytest.mark.usefixtures("many_parts")
@pytest.mark.parametrize("bad_row", [0, 12_345, N - 1])
def test_errors_name_the_first_invalid_row_for_any_thread(bad_row):
    x, y, w = X.copy(), NOISE.copy(), WEIGHTS.copy()
    for column, name in ((x, "scores"), (y, "targets"), (w, "sample_weight")):
        good = column[bad_row]
        column[bad_row:] = np.nan
        with pytest.raises(ValueError, match=rf"`{name}` must .* at index {bad_row}\."):
            sf.fit(x, y, sample_weight=w, n_threads=4)
        column[:] = {"scores": X, "targets": NOISE, "sample_weight": WEIGHTS}[name]
        assert column[bad_row] == good


@pytest.mark.usefixtures("many_parts")
def test_a_nan_among_queries_is_named_and_out_is_left_alone():
    stairs = sf.fit(X, NOISE)
    queries, out = X.copy(), np.full(N, 7.0)
    queries[[30_000, 20_000]] = np.nan
    for given in (None, out):
        with pytest.raises(ValueError, match=r"`scores` must not be NaN; got nan at index 20000\."):
            stairs.predict(queries, out=given, n_threads=4)
    assert np.all(out == 7.0)


@pytest.mark.usefixtures("many_parts")
def test_sorted_scores_are_recognised_across_threads():
    x = np.sort(X)
    assert_same_staircase(sf.fit(x, NOISE, n_threads=3), sf.fit(x, NOISE, n_threads=1))
    assert_same_staircase(sf.fit(x[::-1], NOISE[::-1], n_threads=3), sf.fit(x, NOISE, n_threads=1))
    falls_at_a_border = x.copy()
    falls_at_a_border[N // 2 :] = x[: N - N // 2]
    pair = [sf.fit(falls_at_a_border, NOISE, n_threads=n) for n in (1, 2)]
    assert_same_staircase(*pair)


def test_parts_cover_all_rows_once():
    for n_rows in (0, 1, threads.ROWS_EACH, 2 * threads.ROWS_EACH + 1, 10**7 + 3):
        for n_threads in (1, 2, 5, 1000):
            shares = threads.parts(n_rows, n_threads)
            assert 1 <= len(shares) <= n_threads
            assert shares[0].start == 0
            assert shares[-1].stop == n_rows
            assert all(a.stop == b.start for a, b in itertools.pairwise(shares))
            assert len(shares) == 1 or min(s.stop - s.start for s in shares) >= threads.ROWS_EACH


def test_errors_in_a_thread_reach_the_caller():
    def task(part):
        if part.start:
            raise ArithmeticError(part.start)

    with pytest.raises(ArithmeticError, match="1"):
        threads.each(task, [slice(0, 1), slice(1, 2)])


@pytest.fixture(params=[0, 1, 2])
def few_threads(request, monkeypatch):
    """Limit the number of threads that the system can start."""
    start, started = threading.Thread.start, []

    def refuse(thread):
        if len(started) >= request.param:
            raise RuntimeError("can't start new thread")
        started.append(thread)
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", refuse)
    return started


@pytest.mark.usefixtures("many_parts")
def test_fits_work_if_threads_cannot_start(few_threads):
    alone = sf.fit(X, NOISE, n_threads=1)
    assert_same_staircase(sf.fit(X, NOISE, n_threads=5), alone)
    groups = np.arange(N) % 7
    alone = sf.fit_groups(X, NOISE, groups, n_threads=1)
    assert_same_bits(sf.fit_groups(X, NOISE, groups, n_threads=5).step_values, alone.step_values)
    assert not any(thread.is_alive() for thread in few_threads)


def test_the_caller_does_the_parts_of_threads_that_cannot_start(few_threads):
    shares = [slice(i, i + 1) for i in range(6)]
    assert threads.each(lambda part: part.start, shares) == list(range(6))
    assert not any(thread.is_alive() for thread in few_threads)


def test_threads_that_started_have_ended_when_an_error_arrives(few_threads):
    ended = []

    def task(part):
        if part.start == 0:
            raise KeyError(part.start)
        time.sleep(0.05)
        ended.append(part.start)

    before = threading.active_count()
    with pytest.raises(KeyError):
        threads.each(task, [slice(i, i + 1) for i in range(6)])
    assert threading.active_count() == before
    assert not any(thread.is_alive() for thread in few_threads)
    assert len(ended) <= len(few_threads)  # no other part was begun


def test_an_interrupt_waits_for_the_threads_that_work(monkeypatch):
    join, ended = threading.Thread.join, []

    def interrupted(thread):
        monkeypatch.setattr(threading.Thread, "join", join)
        raise KeyboardInterrupt

    def task(part):
        if part.start:
            time.sleep(0.1)
            ended.append(part.start)

    monkeypatch.setattr(threading.Thread, "join", interrupted)
    with pytest.raises(KeyboardInterrupt):
        threads.each(task, [slice(0, 1), slice(1, 2)])
    assert ended == [1]


def test_an_interrupt_while_threads_start_begins_no_other_part(monkeypatch):
    def interrupted(thread):
        raise KeyboardInterrupt

    begun = []
    monkeypatch.setattr(threading.Thread, "start", interrupted)
    with pytest.raises(KeyboardInterrupt):
        threads.each(begun.append, [slice(0, 1), slice(1, 2)])
    assert begun == []


def test_the_caller_does_the_part_of_a_thread_that_died(monkeypatch):
    calling = threading.current_thread()

    class Dying(threading.Thread):
        def run(self):
            pass

    monkeypatch.setattr(threading, "Thread", Dying)
    found = threads.each(lambda part: (part.start, threading.current_thread() is calling), [slice(0, 1), slice(1, 2)])
    assert found == [(0, True), (1, True)]


def test_a_thread_without_memory_to_keep_its_error_is_an_error(monkeypatch):
    calling, begun = threading.current_thread(), threading.Event()

    class Full(list):
        def append(self, _):
            raise MemoryError

    class Dying(threading.Thread):
        def run(self):
            variables = dict(zip(self._target.__code__.co_freevars, self._target.__closure__, strict=True))
            variables["errors"].cell_contents = Full()
            with pytest.raises(MemoryError):
                super().run()

    def task(part):
        if threading.current_thread() is not calling:
            begun.set()
            raise MemoryError
        assert begun.wait(60)

    monkeypatch.setattr(threading, "Thread", Dying)
    with pytest.raises(MemoryError):
        threads.each(task, [slice(0, 1), slice(1, 2)])


def test_the_number_of_threads_can_be_set_and_returned_to_the_default():
    default = sf.get_num_threads()
    assert default >= 1
    sf.set_num_threads(np.int64(3))
    assert sf.get_num_threads() == 3
    sf.set_num_threads(None)
    assert sf.get_num_threads() == default


def test_the_environment_sets_the_default(monkeypatch):
    monkeypatch.setenv("STAIRCASE_FAST_NUM_THREADS", "5")
    assert sf.get_num_threads() == 5
    monkeypatch.setenv("STAIRCASE_FAST_NUM_THREADS", "")
    assert sf.get_num_threads() >= 1
    for bad in ("0", "-2", "many", "1.5"):
        monkeypatch.setenv("STAIRCASE_FAST_NUM_THREADS", bad)
        with pytest.raises(ValueError, match=rf"NUM_THREADS must be an integer >= 1, or -1 .*; got '{bad}'"):
            sf.get_num_threads()


def test_processors_are_counted_if_affinity_is_unknown(monkeypatch):
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert sf.get_num_threads() == 1


@pytest.mark.parametrize("bad", [0, -2, True])
def test_invalid_numbers_of_threads_raise_an_error(bad):
    with pytest.raises(ValueError, match=rf"`n` must be an integer >= 1, -1 for all .*; got {bad}"):
        sf.set_num_threads(bad)
    with pytest.raises(ValueError, match=rf"`n_threads` must be an integer >= 1, -1 for all .*; got {bad}"):
        sf.fit([1, 2], [1, 2], n_threads=bad)
    with pytest.raises(ValueError, match=rf"`n_threads` must be an integer >= 1, -1 for all .*; got {bad}"):
        sf.fit([1, 2], [1, 2]).predict([1.0], n_threads=bad)


@pytest.mark.parametrize("bad", [1.5, "2", [1]])
def test_numbers_of_threads_of_a_wrong_type_raise_an_error(bad):
    with pytest.raises(TypeError, match=r"`n` must be an integer >= 1, -1 for all .*; got"):
        sf.set_num_threads(bad)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_fits_work_after_a_fork():
    code = """
import os, numpy as np, staircase_fast as sf
from staircase_fast import threads
threads.ROWS_EACH = 1000
x = np.random.default_rng(0).random(30_000)
before = sf.fit(x, x > 0.5, n_threads=2)
child = os.fork()
if child == 0:
    os._exit(0 if sf.fit(x, x > 0.5, n_threads=2) == before else 1)
raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


@pytest.mark.usefixtures("many_parts")
def test_fits_in_threads_of_the_caller_do_not_disturb_each_other():
    expected = sf.fit(X, NOISE)
    found = []
    callers = [threading.Thread(target=lambda: found.append(sf.fit(X, NOISE, n_threads=2))) for _ in range(6)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert len(found) == 6
    assert all(stairs == expected for stairs in found)


# Objects that threads share.


def test_threads_can_make_the_index_of_a_staircase_at_once():
    for seed in range(20):
        stairs = sf.fit(X, NOISE + seed)
        queries = X[:5000]
        again = sf.fit(X, NOISE + seed)
        expected = [again.predict(queries, interpolation=how) for how in ("step", "linear")]

        def ask(how, values, stairs=stairs, queries=queries):
            for _ in range(3):
                assert np.array_equal(stairs.predict(queries, interpolation=how), values)

        hammer(lambda: ask("step", expected[0]), lambda: ask("linear", expected[1]))  # noqa: B023  (called here)


def test_threads_can_use_a_new_map_at_once():
    for _ in range(20):
        found = sf.fit_groups(X[:600], NOISE[:600], np.arange(600) % 20)
        expected = [found[key].values for key in range(20)]
        again = sf.fit_groups(X[:600], NOISE[:600], np.arange(600) % 20)

        def look(again=again, expected=expected):
            assert all(np.array_equal(again[key].values, expected[key]) for key in range(20))

        hammer(look, n_each=6)


def test_threads_may_add_to_the_same_fits():
    online, accumulator = sf.Online(), sf.Accumulator()

    def push():
        for _ in range(500):
            online.append(1.0, 0.1)
            assert online.staircase().values[0] == 0.1

    def add():
        for start in range(0, 3000, 300):
            accumulator.add(X[start : start + 300], NOISE[start : start + 300])
            assert accumulator.staircase().counts.sum() % 300 == 0

    hammer(push, add)
    assert online.n_samples == 1500
    three_times = [np.tile(column[:3000], 3) for column in (X, NOISE)]
    assert_same_staircase(accumulator.staircase(), sf.fit(*three_times))


def test_the_number_of_threads_can_be_set_while_others_fit():
    expected = sf.fit(X, NOISE)

    def change():
        for n in range(1, 50):
            sf.set_num_threads(n)
            assert sf.get_num_threads() >= 1

    def fit():
        for _ in range(5):
            assert sf.fit(X, NOISE) == expected

    hammer(change, fit)


@pytest.mark.skipif(not sysconfig.get_config_var("Py_GIL_DISABLED"), reason="needs a free-threaded Python")
def test_a_free_threaded_python_stays_free_threaded():
    code = "import sys, staircase_fast, staircase_fast.cython_api; raise SystemExit(sys._is_gil_enabled())"
    environment = {name: value for name, value in os.environ.items() if name != "PYTHON_GIL"}  # it would force it off
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True, timeout=60, env=environment)
