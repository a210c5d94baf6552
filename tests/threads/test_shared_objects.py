"""Several Python threads use one object: each result is one that a single thread could get."""

import copy
import functools
import pickle
import subprocess
import sys

import numpy as np
import pytest
from comparing import assert_same_staircase
from hammer import hammer

import staircase_fast as sf

N = 3000


def rows(n=N, seed=0):
    rng = np.random.default_rng(seed)
    x = np.round(rng.random(n), 3)
    return x, x + rng.normal(size=n)


def labels(n=N, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.random(n)
    return x, rng.random(n) < x


def check_all(answers, expected):
    """Compare each answer of an object with the one that was expected of it."""
    for ask, wanted in zip(answers, expected, strict=True):
        found = ask()
        same = np.array_equal(found, wanted) if isinstance(wanted, np.ndarray) else found == wanted
        assert same, ask


def every_use_of(stairs, x, folder):
    path = folder / "stairs.json"
    return [
        *(functools.partial(stairs.predict, x, interpolation=how) for how in ("step", "linear", "centered")),
        functools.partial(stairs.predict, x[:3]),
        functools.partial(stairs.predict, x, out_of_bounds="nan", n_threads=2),
        stairs.to_json,
        lambda: (stairs.save(path), sf.Staircase.load(path))[1],
        lambda: pickle.loads(pickle.dumps(stairs)),
        lambda: repr(stairs),
        lambda: stairs.to_sql("score"),
    ]


def test_threads_may_use_one_staircase_in_every_way(tmp_path):
    x, y = rows()
    expected = [ask() for ask in every_use_of(sf.fit(x, y), x, tmp_path)]
    for _ in range(5):  # a new one each time: what it keeps for later is not there yet
        answers = every_use_of(sf.fit(x, y), x, tmp_path)
        hammer(lambda: check_all(answers, expected), lambda: check_all(answers[::-1], expected[::-1]))  # noqa: B023


@pytest.mark.parametrize("loss", ["squared", "huber", "log_cosh", sf.losses.Quantile(0.3), sf.losses.Linex(0.5)])
def test_threads_may_fit_the_same_rows_under_the_same_loss(loss):
    the_loss = sf.losses.loss_of(loss)
    x, y = rows()
    w = np.random.default_rng(1).random(N)
    expected = sf.fit(x, y, sample_weight=w, loss=the_loss)

    def fit():
        found = sf.fit(x, y, sample_weight=w, loss=the_loss)
        assert_same_staircase(found, expected)
        assert sf.certify(found, x, y, sample_weight=w).optimal
        assert hash(the_loss) == hash(copy.copy(the_loss))

    hammer(fit, n_each=4)


def test_threads_may_share_a_loss_with_parameters_of_single_rows():
    x, y = rows()
    loss = sf.losses.Huber(np.random.default_rng(2).random(N) + 0.1)
    expected, costs = sf.fit(x, y, loss=loss), loss.value(y + 1, y)

    def use():
        assert_same_staircase(sf.fit(x, y, loss=loss), expected)
        assert np.array_equal(loss.value(y + 1, y), costs)

    hammer(use, n_each=4)


def test_threads_may_share_a_loss_that_is_a_python_function():
    x, y = rows(300)
    loss = sf.losses.Custom(lambda z, t, a: a * (z - t) ** 3, (np.linspace(1, 2, 300),))
    expected = sf.fit(x, y, loss=loss)
    hammer(lambda: assert_same_staircase(sf.fit(x, y, loss=loss), expected), n_each=4)


def test_threads_may_use_one_map_in_every_way(tmp_path):
    x, y = rows()
    groups = np.array(["a", "b", "c"])[np.arange(N) % 3]

    def every_use_of_map(found):
        return [
            lambda: found.predict(x, groups),
            lambda: found.predict(x, groups, interpolation="centered", n_threads=2),
            lambda: {key: stairs.values.tolist() for key, stairs in found.items()},
            lambda: "b" in found and "z" not in found,
            lambda: found.predict_columns(np.stack([x, x, x], axis=1)),
            lambda: (found.save(tmp_path / "map.npz"), sf.StaircaseMap.load(tmp_path / "map.npz"))[1],
            lambda: found["c"].predict(x),
        ]

    expected = [ask() for ask in every_use_of_map(sf.fit_groups(x, y, groups))]
    for _ in range(5):
        answers = every_use_of_map(sf.fit_groups(x, y, groups))
        hammer(lambda: check_all(answers, expected), lambda: check_all(answers[::-1], expected[::-1]))  # noqa: B023


def test_a_predictor_that_is_fitted_again_answers_by_the_old_fit_or_the_new_one():
    fits = [labels(seed=seed) for seed in (0, 1)]
    queries = np.linspace(0, 1, 500)
    alone = [sf.VennAbers().fit(*fit) for fit in fits]
    expected = [(venn.predict(queries).p0.tolist(), venn.predict(queries).p1.tolist()) for venn in alone]
    merged = [venn.merge(queries).tolist() for venn in alone]
    texts = [venn.to_json() for venn in alone]
    shared = sf.VennAbers().fit(*fits[0])

    def ask():
        for _ in range(20):
            pair = shared.predict(queries)
            assert (pair.p0.tolist(), pair.p1.tolist()) in expected
            assert shared.merge(queries).tolist() in merged
            assert shared.to_json() in texts

    def refit():
        for turn in range(20):
            shared.fit(*fits[turn % 2])

    hammer(ask, refit)


def test_cross_fitted_predictors_may_be_shared():
    x, y = labels()
    cross = sf.CrossVennAbers().fit(x, y, np.arange(N) % 3)
    expected = sf.CrossVennAbers().fit(x, y, np.arange(N) % 3).merge(x)
    hammer(lambda: np.testing.assert_array_equal(cross.merge(x), expected), n_each=4)


def test_threads_may_use_one_online_fit_in_every_way():
    """Each row is added once, and reads see states after complete calls."""
    online, n_each, n_rows = sf.Online(), 2, 1500

    def append():
        for _ in range(n_rows):
            online.append(1.0, 0.1, 0.7)

    def extend():
        for _ in range(n_rows // 30):
            online.extend(np.ones(30), np.full(30, 0.3))

    def read():
        for _ in range(30):
            if online.n_samples:
                values = online.staircase().values
                assert len(values) == 1
                assert 0.1 <= values[0] <= 0.3
                assert 0.1 <= online.predict(1.0) <= 0.3
            for other in (sf.Online.from_json(online.to_json()), pickle.loads(pickle.dumps(online)), copy.copy(online)):
                before = other.n_samples
                other.append(2.0, 5.0)
                assert other.n_samples == before + 1
            assert repr(online).startswith("<Online")

    hammer(append, extend, read, n_each=n_each)
    assert online.n_samples == 2 * n_each * n_rows
    targets = np.repeat([0.1, 0.3], n_each * n_rows)
    weights = np.repeat([0.7, 1.0], n_each * n_rows)
    assert_same_staircase(online.staircase(), sf.fit(np.ones(len(targets)), targets, sample_weight=weights))


@pytest.mark.parametrize("loss", ["squared", sf.losses.Linex(1.0)])
def test_rows_that_arrive_too_late_raise_an_error_and_the_others_are_fitted(loss):
    """Threads race with rising scores: a score below the newest one raises an error, all others are added."""
    online, taken = sf.Online(loss), []

    def push():
        for score in range(1500):
            try:
                online.append(score, score % 7)
            except ValueError as error:
                if "must be >=" not in str(error):
                    raise
            else:
                taken.append(score)

    hammer(push, n_each=4)
    taken.sort()
    found, expected = online.staircase(), sf.fit(taken, np.array(taken) % 7, loss=loss)
    assert online.n_samples == len(taken) >= 1500
    assert found.counts.tolist() == expected.counts.tolist()
    np.testing.assert_allclose(found.values, expected.values, rtol=1e-12)


@pytest.mark.parametrize("loss", ["squared", "quantile"])
def test_threads_may_use_one_accumulator_in_every_way(loss, tmp_path):
    x, y = rows()
    w = np.random.default_rng(3).integers(1, 4, N)
    seen, other = sf.Accumulator(loss), sf.Accumulator(loss)
    other.add([0.5], [0.0])

    def add():
        for start in range(0, N, 100):
            seen.add(x[start : start + 100], y[start : start + 100], w[start : start + 100])

    def merge():
        for _ in range(20):
            seen.merge(other)

    def read():
        for turn in range(15):
            if seen.n_samples:
                seen.staircase()
                seen.predict(x[:10])
            assert seen.n_scores >= 0
            assert seen.nbytes >= 0
            assert copy.copy(seen).n_samples <= 2 * N + 40
            pickle.loads(pickle.dumps(seen))
            path = tmp_path / f"{turn}.npz"
            seen.save(path)
            sf.Accumulator.load(path)

    hammer(add, merge, read, n_each=2)
    assert seen.n_samples == 2 * N + 40
    columns = [np.tile(column, 2) for column in (x, y, w)]
    columns = [np.append(column, np.full(40, more)) for column, more in zip(columns, (0.5, 0.0, 1.0), strict=True)]
    assert_same_staircase(seen.staircase(), sf.fit(*columns[:2], sample_weight=columns[2], loss=loss))


def test_accumulators_may_be_merged_into_each_other():
    one, two = sf.Accumulator(), sf.Accumulator()
    one.add([1.0], [1.0])
    two.add([2.0], [3.0])

    def merge(target, source):
        for _ in range(10):
            target.merge(source)
            source.staircase()

    hammer(lambda: merge(one, two), lambda: merge(two, one), n_each=1)
    assert one.staircase().values.tolist() == two.staircase().values.tolist() == [1.0, 3.0]


def test_threads_may_refine_one_anytime_fit_and_follow_it():
    x, y = rows(20_000)  # a round takes long enough for others to come in between
    alone = sf.Anytime(x, y, loss="log_cosh")
    alone.refine(max_rounds=20)
    fit = sf.Anytime(x, y, loss="log_cosh")

    def work():
        for _ in range(10):
            fit.step()

    def follow():
        for _ in range(10):
            rough = fit.staircase()
            assert (rough.lower <= rough.values).all()
            assert (rough.values <= rough.upper).all()
            assert len(fit.lower) >= 1
            assert fit.n_blocks >= 1
            assert fit.resolved in (True, False)
            assert repr(fit).startswith("<Anytime")
            pickle.loads(pickle.dumps(fit)).step()

    hammer(work, follow, n_each=2)
    assert fit.n_rounds == alone.n_rounds
    assert_same_staircase(fit.staircase(), alone.staircase())


def test_reliability_in_threads_draws_the_same_bands():
    x, y = labels(500)
    expected = sf.reliability(x, y, bands="confidence", n_resamples=30, seed=1)

    def draw():
        assert sf.reliability(x, y, bands="confidence", n_resamples=30, seed=1, n_threads=2) == expected

    hammer(draw, n_each=4)


def test_threads_may_use_one_fitted_regressor():
    pytest.importorskip("sklearn")
    from staircase_fast.sklearn import StaircaseRegressor

    x, y = rows()
    expected = sf.fit(x, y)
    for _ in range(5):
        model = StaircaseRegressor(out_of_bounds="clip", interpolation="step")
        model.partial_fit(x[:1000], y[:1000]).partial_fit(x[1000:], y[1000:])  # the staircase is made when it is used

        def use(model=model):
            assert np.array_equal(model.predict(x), expected.predict(x))
            assert_same_staircase(model.staircase_, expected)

        hammer(use, n_each=4)


def test_threads_may_be_the_first_to_use_each_part_of_the_package():
    """Parts are imported when they are first used: in a new process, by all threads at once."""
    code = """
import threading, staircase_fast as sf
barrier, names, failed = threading.Barrier(8), [name for name in dir(sf) if not name.startswith("_")], []
def use(turn):
    barrier.wait()
    for name in names[turn * 3 % len(names):] + names[:turn * 3 % len(names)]:
        try:
            getattr(sf, name)
        except BaseException as error:
            failed.append((name, error))
threads = [threading.Thread(target=use, args=(turn,)) for turn in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
raise SystemExit(f"{failed}" if failed else 0)
"""
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True, timeout=120)
