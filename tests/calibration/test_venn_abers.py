"""Venn-Abers predictors equal their definition for every query, bit for bit."""

import copy
import math
import pickle
import random
import threading

import numpy as np
import pytest
import reference
from comparing import assert_same_bits
from hypothesis import example, given
from hypothesis import strategies as st
from strategies import TARGETS, Rows, rows

import staircase_fast as sf
from staircase_fast import threads
from staircase_fast.calibration import venn_abers

inf, nan = math.inf, math.nan


def places(scores):
    """All scores, their neighbours, and scores far away."""
    around = [math.nextafter(x, side) for x in scores for side in (-inf, inf)]
    return sorted({*scores, *around, -inf, 0.0, inf})


def assert_the_definition_holds(rows, queries, query_weight=1.0):
    x, y, w = rows.lists()
    p0, p1 = sf.VennAbers(query_weight).fit(x, y, sample_weight=w).predict(queries)
    expected = [reference.venn_abers(x, y, w, query, query_weight) for query in queries]
    for found, wanted in zip((p0, p1), zip(*expected, strict=True), strict=True):
        assert_same_bits(found, [reference.nearest_float(value) for value in wanted])


def test_five_thousand_random_cases_with_ties_equal_the_definition():
    rng = random.Random(0)
    for case in range(5000):
        n = rng.randint(1, 9)
        x = [float(rng.randint(0, 4 + case % 3)) for _ in range(n)]
        y = [rng.randint(0, 1) for _ in range(n)]
        query = rng.randint(-1, 15) / 2
        found = sf.VennAbers().fit(x, y).predict(query)
        wanted = reference.venn_abers(x, y, None, query)
        assert found == tuple(map(reference.nearest_float, wanted)), (x, y, query)


@given(rows(targets=st.just(TARGETS["labels"])), st.sampled_from([1.0, 0.1, 3.0, 1e-300, 5e-324]))
@example(Rows(np.array([1.0, 1.0]), np.array([0.0, 1.0]), np.array([5e-324, 1e308])), 1e-300)
def test_every_query_equals_the_definition_for_weights_of_any_kind(rows, query_weight):
    assert_the_definition_holds(rows, places(rows.scores.tolist()), query_weight)


@pytest.mark.parametrize("weights", ["one", "integers", "decimals", "real", "decades"])
@pytest.mark.parametrize("decimals", [1, 16])
def test_longer_rows_equal_the_definition(weights, decimals):
    rng = np.random.default_rng(3)
    n = 60
    x = rng.random(n).round(decimals)
    w = {
        "one": np.ones(n),
        "integers": rng.integers(0, 9, n).astype(float),
        "decimals": rng.integers(1, 9, n) / 10,
        "real": rng.random(n),
        "decades": 10.0 ** rng.integers(-40, 40, n),
    }[weights]
    given_rows = Rows(x, (rng.random(n) < x).astype(float), w)
    assert_the_definition_holds(given_rows, rng.choice(places(x.tolist()), 12).tolist())


@given(rows(targets=st.just(TARGETS["labels"])))
def test_both_probabilities_increase_and_enclose_the_merged_one(rows):
    venn = sf.VennAbers().fit(*rows)
    queries = places(rows.scores.tolist())
    p0, p1 = venn.predict(queries)
    assert np.all(p0 <= p1)
    assert np.all(np.diff(p0) >= 0)
    assert np.all(np.diff(p1) >= 0)
    for rule in ("log", "brier"):
        p = venn.merge(queries, rule=rule)
        assert np.all((p0 <= p) & (p <= p1))
        assert np.all(np.diff(p) >= 0)


def test_weight_k_is_k_rows_and_weight_0_is_ignored():
    rng = np.random.default_rng(1)
    x, y, k = rng.integers(0, 20, 200), rng.integers(0, 2, 200), rng.integers(0, 4, 200)
    a = sf.VennAbers().fit(x, y, sample_weight=k)
    b = sf.VennAbers().fit(np.repeat(x, k), np.repeat(y, k))
    for name in ("left", "p0", "p1"):
        assert_same_bits(getattr(a, name), getattr(b, name))
    assert (a.n_samples, b.n_samples) == (np.count_nonzero(k), k.sum())


def test_scaling_all_weights_by_a_power_of_two_changes_nothing():
    rng = np.random.default_rng(2)
    x, y, w = rng.random(50), rng.integers(0, 2, 50), rng.random(50)
    plain, scaled = sf.VennAbers().fit(x, y, w), sf.VennAbers(2.0**-40).fit(x, y, w * 2.0**-40)
    for name in ("left", "p0", "p1"):
        assert_same_bits(getattr(plain, name), getattr(scaled, name))


def test_the_order_of_rows_and_the_type_of_columns_do_not_matter():
    rng = np.random.default_rng(4)
    x, y = rng.integers(0, 500, 5000).astype(float), rng.random(5000) < 0.4
    expected = sf.VennAbers().fit(x, y)
    order = rng.permutation(5000)
    read_only = x.copy()
    read_only.setflags(write=False)
    for scores in (x.astype(np.float32), x.astype(np.int16), x.astype(">f8"), np.repeat(x, 3)[::3], read_only):
        for labels in (y, y.astype(float), y.astype(np.int8), y.astype(np.int64), y.tolist()):
            assert sf.VennAbers().fit(scores, labels) == expected
    assert sf.VennAbers().fit(x[order], y[order]) == expected
    assert sf.VennAbers().fit(np.sort(x), y[np.argsort(x, kind="stable")]) == expected


def test_float32_scores_are_compared_exactly():
    x = np.array([0.1, 0.2], dtype=np.float32)
    venn = sf.VennAbers().fit(x, [0, 1])
    assert venn.predict(x).p1.tolist() == [0.5, 1]
    assert_same_bits(venn.predict(x).p0, venn.predict(x.astype(float)).p0)
    # float64 has scores between 0.1 and its float32
    assert venn.predict(0.1).p1 == venn.predict(float(x[0])).p1
    assert venn.predict(math.nextafter(float(x[0]), inf)).p1 == 1


def test_one_row_and_infinite_scores_can_be_fitted():
    venn = sf.VennAbers().fit([inf], [1])
    assert (venn.left.tolist(), venn.p0.tolist(), venn.p1.tolist()) == ([-inf, inf], [0, 0.5], [1, 1])
    venn = sf.VennAbers().fit([-inf, inf, -inf], [0, 0, 0])
    assert venn.predict([-inf, 0, inf]).p1.tolist() == [1 / 4, 1 / 2, 1 / 2]
    assert str(sf.VennAbers().fit([inf], [0])) == "<VennAbers: 1 row, 1 step>"


def test_both_zeros_are_one_score():
    venn = sf.VennAbers().fit([-0.0, 0.0], [1, 0])
    assert_same_bits(venn.left, [-inf, 0.0, 5e-324])
    assert venn.predict([-0.0, 0.0]).p0.tolist() == [1 / 3, 1 / 3]


def test_results_have_the_shape_of_the_queries():
    venn = sf.VennAbers().fit([1, 2, 3], [0, 1, 1])
    pair = venn.predict(2)
    assert isinstance(pair, sf.ProbabilityPair)
    assert isinstance(pair.p0, float)
    assert isinstance(venn.merge(2), float)
    grid = venn.predict(np.array([[1, 2], [3, 4], [5, 6]]))
    assert grid.p0.shape == grid.p1.shape == venn.merge([[1, 2], [3, 4], [5, 6]]).shape == (3, 2)
    assert venn.predict([]).p1.shape == venn.merge([]).shape == (0,)


@pytest.mark.parametrize("kind", ["noisy", "all tied", "separated", "all 0"])
def test_the_index_and_threads_change_nothing(kind, monkeypatch):
    rng = np.random.default_rng(5)
    x = rng.random(20_000)
    y = {"noisy": rng.random(20_000) < x, "separated": x > 0.5, "all 0": x > 2, "all tied": x > 0.5}[kind]
    venn = sf.VennAbers().fit(np.ones(20_000) if kind == "all tied" else x, y)
    queries = np.concatenate((x, rng.random(20_000) * 3 - 1, [-inf, inf]))
    step = np.searchsorted(venn.left, queries, side="right") - 1
    monkeypatch.setattr(threads, "ROWS_EACH", 5000)
    for n_threads in (1, 3):
        p0, p1 = venn.predict(queries, n_threads=n_threads)
        assert_same_bits(p0, venn.p0[step])
        assert_same_bits(p1, venn.p1[step])
        assert_same_bits(
            venn.predict(queries.astype(np.float32)[:9]).p0, venn.predict(queries.astype(np.float32)).p0[:9]
        )
        for rule in ("log", "brier"):
            few = [venn.merge(query, rule=rule) for query in queries[:50]]
            assert_same_bits(venn.merge(queries, rule=rule, n_threads=n_threads)[:50], few)


@pytest.mark.parametrize("rule", ["log", "brier"])
def test_merged_probabilities_never_decrease_even_after_rounding(rule):
    rng = np.random.default_rng(0)
    for p0, p1 in np.sort(rng.random((300, 2)) ** rng.integers(1, 20, (300, 1)), axis=1):
        low, high = p0 + np.spacing(p0) * np.arange(-30, 0), np.minimum(p1 + np.spacing(p1) * np.arange(30), 1.0)
        for pair in ((low, np.full(30, p1)), (np.full(30, p0), high), (low, high)):
            found = venn_abers.merged(*pair, rule)
            assert np.all(np.diff(found) >= 0)
            exact = [reference.merged_folds([one], rule) for one in zip(*pair, strict=True)]
            np.testing.assert_allclose(found, exact, rtol=1e-14)


def test_tiny_probabilities_are_merged_exactly():
    p1 = np.array([0.0, 5e-324, 1e-310, 1e-308, 1e-300])
    assert_same_bits(venn_abers.merged(np.zeros(5), p1, "log"), p1)
    assert_same_bits(venn_abers.merged(np.zeros(5), p1, "brier"), p1)


def test_merged_probabilities_have_equal_regret_for_both_labels():
    venn = sf.VennAbers().fit([1, 2, 3, 4, 5], [0, 1, 0, 1, 1])
    p0, p1 = venn.predict([1, 2.5, 5])
    p = venn.merge([1, 2.5, 5])
    np.testing.assert_allclose(np.log(p1) - np.log(p), np.log1p(-p0) - np.log1p(-p), rtol=1e-12)
    p = venn.merge([1, 2.5, 5], rule="brier")
    np.testing.assert_allclose((1 - p) ** 2 - (1 - p1) ** 2, p**2 - p0**2, rtol=1e-12)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ([1, 2], [0, 2]),
            "`labels` must be 0 or 1; got 2 at index 1. If 2 is the class to predict, pass `np.equal(labels, 2)`.",
        ),
        (([1, 2, 3], [0, 1, 0.5]), "`labels` must be 0 or 1; got 0.5 at index 2."),
        (([1, 2], [nan, 1]), "`labels` must be 0 or 1; got nan at index 0."),
        (([1, nan], [0, 1]), "`scores` must not be NaN; got nan at index 1. Drop these rows, or fill them."),
        (([], []), "`scores` must have at least one row; got none."),
        (([1, 2], [0]), "`scores` and `labels` must have one entry per row; got 2 and 1 entries."),
        (([1, 2], [0, 1], [1, -1.5]), "`sample_weight` must be >= 0; got -1.5 at index 1."),
        (([1, 2], [0, 1], [0, 0]), "`sample_weight` must have an entry > 0; all 2 are zero."),
        (([1, 2], [0, 1], [1]), "`scores` and `sample_weight` must have one entry per row; got 2 and 1 entries."),
        (([[1, 2]], [0, 1]), "`scores` must be one-dimensional; got shape (1, 2). Pass `np.ravel(scores)`."),
    ],
)
def test_an_invalid_fit_raises_an_error_and_changes_nothing(arguments, message):
    venn = sf.VennAbers().fit([1, 2], [0, 1])
    before = copy.copy(venn)
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        venn.fit(*arguments)
    assert str(caught.value) == message
    assert venn == before


def test_invalid_queries_and_options_are_refused():
    venn = sf.VennAbers().fit([1, 2], [0, 1])
    with pytest.raises(ValueError, match=r"`scores` must not be NaN; got nan at index 1\."):
        venn.predict([1, nan])
    with pytest.raises(ValueError, match=r"`scores` must not be NaN; got nan at index 2501\."):
        venn.merge(np.append(np.ones(2501), nan))
    with pytest.raises(ValueError, match=r"`rule` must be one of 'log', 'brier'; got 'mean'\."):
        venn.merge([1], rule="mean")
    for bad in (0, -1.0):
        with pytest.raises(ValueError, match=r"`query_weight` must be > 0; got"):
            sf.VennAbers(bad)
    with pytest.raises(ValueError, match=r"`query_weight` must be finite; got inf\."):
        sf.VennAbers(inf)
    with pytest.raises(TypeError, match=r"`labels` must be real numbers; got 'yes' at index 0\."):
        venn.fit([1, 2], ["yes", "no"])


def test_an_unfitted_predictor_raises_an_error():
    venn = sf.VennAbers()
    with pytest.raises(ValueError, match=r"a VennAbers must be fitted first; call `fit`\."):
        venn.predict([1])
    assert not hasattr(venn, "p0")
    assert repr(venn) == "<VennAbers: not fitted>"
    assert pickle.loads(pickle.dumps(venn)) == venn == sf.VennAbers()
    assert venn != sf.VennAbers(2.0)
    assert venn != sf.VennAbers().fit([1], [1])


def test_arrays_are_read_only_and_inputs_are_not_modified():
    x, y, w = np.array([2.0, 1.0]), np.array([1, 0]), np.array([1.0, 0.0])
    venn = sf.VennAbers().fit(x, y, w)
    assert (x.tolist(), y.tolist(), w.tolist()) == ([2, 1], [1, 0], [1, 0])
    for name in ("left", "p0", "p1"):
        with pytest.raises(ValueError, match="read-only"):
            getattr(venn, name)[0] = 0
    venn.predict([1.0, 2.0]).p0[0] = 9  # the caller's own
    assert venn.predict(1.0).p0 == 0


def test_copies_and_pickles_are_equal():
    venn = sf.VennAbers(0.5).fit([1, 2, 3], [0, 1, 0], [0.1, 0.2, 0.3])
    for other in (copy.copy(venn), copy.deepcopy(venn), pickle.loads(pickle.dumps(venn))):
        assert other == venn
        assert other.query_weight == 0.5
        assert not other.left.flags.writeable
        other.fit([1], [1])
        assert other != venn
    assert venn != 1
    with pytest.raises(TypeError, match="unhashable"):
        hash(venn)


def test_threads_can_predict_while_the_predictor_is_refitted():
    x = np.random.default_rng(0).random(3000)
    fits = [(x, x > 0.5), (x, x > 2)]
    expected = [sf.VennAbers().fit(*one).predict(x).p1.tolist() for one in fits]
    venn, wrong = sf.VennAbers().fit(*fits[0]), []

    def ask():
        wrong.extend(1 for _ in range(20) if venn.predict(x).p1.tolist() not in expected)

    askers = [threading.Thread(target=ask) for _ in range(3)]
    for asker in askers:
        asker.start()
    for turn in range(20):
        venn.fit(*fits[turn % 2])
    for asker in askers:
        asker.join()
    assert not wrong


def test_the_index_is_made_once_for_the_queries_of_all_calls():
    pairs = sf.VennAbers().fit(range(100), np.arange(100) % 2)._result()
    queries = np.linspace(-1, 101, 999)
    indices = [pairs._lookup.index for _ in range(5) if pairs.look_up(queries, pairs.values, 1)]
    assert indices[0] is indices[1] is None
    assert indices[2] is indices[3] is indices[4] is not None


def test_columns_of_pandas_and_polars_are_accepted():
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    expected = sf.VennAbers().fit([1, 2, 3], [0, 1, 0])
    frame = pandas.DataFrame({"x": [1.0, 2.0, 3.0], "y": [False, True, False]})
    assert sf.VennAbers().fit(frame["x"], frame["y"]) == expected
    frame = polars.DataFrame({"x": [1.0, 2.0, 3.0], "y": [0, 1, 0]})
    assert sf.VennAbers().fit(frame["x"], frame["y"]) == expected
    assert expected.predict(frame["x"]).p0.shape == (3,)


def test_it_is_calibrated_for_any_number_of_rows():
    """The probability that belongs to the true label is right on average, even after 3 rows."""
    rng = random.Random(1)
    gap, n = 0.0, 4000
    for _ in range(n):
        drawn = [(x := rng.randint(0, 2), int(rng.random() < (x + 1) / 4)) for _ in range(4)]
        (*fitted, (query, label)) = drawn
        gap += label - sf.VennAbers().fit(*zip(*fitted, strict=True)).predict(query)[label]
    assert abs(gap / n) < 4 * 0.5 / math.sqrt(n)


def test_the_step_after_the_last_negative_score_starts_at_positive_zero():
    venn = sf.VennAbers().fit([-5e-324, 1.0], [0, 1])
    assert 0.0 in venn.left
    assert not np.signbit(venn.left[venn.left == 0]).any()


@pytest.mark.parametrize("power", [0, 2, 8])
def test_weights_of_any_width_give_the_fits_with_the_query_added(power):
    """Sums of such weights take one, two or more words."""
    rng = np.random.default_rng(power)
    x, y, w = np.arange(40.0), rng.integers(0, 2, 40), rng.random(40) ** power
    venn = sf.VennAbers(query_weight=0.3).fit(x, y, sample_weight=w)
    for query in np.arange(-0.5, 40, 0.5):
        pair = venn.predict(query)
        for label, found in enumerate(pair):
            added = [np.append(column, one) for column, one in ((x, query), (y, label), (w, 0.3))]
            assert found == sf.fit(*added[:2], sample_weight=added[2])(query)
