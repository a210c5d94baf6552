"""`predict` agrees with the reference for every query, especially at the ends of steps."""

import math

import numpy as np
import pytest
from comparing import assert_same_bits, steps_of
from hypothesis import given
from hypothesis import strategies as st
from reference import linear_value, step_value
from strategies import SCORES, kinds, rows

import staircase_fast as sf
from staircase_fast.staircase import _lookup

inf = math.inf
queries_anywhere = kinds(SCORES).flatmap(lambda kind: st.lists(kind, max_size=20))


def fitted(rows, increasing=True):
    return sf.fit(rows.scores, rows.targets, sample_weight=rows.weights, increasing=increasing)


def around(stairs):
    """Both ends of every step, the floats beside them, the middles of gaps, and the infinities."""
    ends = np.concatenate([stairs.left, stairs.right])
    with np.errstate(all="ignore"):  # infinity is beside the greatest float; a middle may be NaN
        beside = [np.nextafter(ends, -inf), np.nextafter(ends, inf)]
        middles = stairs.right[:-1] / 2 + stairs.left[1:] / 2
    queries = np.concatenate([ends, *beside, middles, [-inf, -0.0, 0.0, inf]])
    return queries[~np.isnan(queries)]


@pytest.fixture
def stairs():
    """Two steps, [0, 1] at 10 and [3, 4] at 20."""
    return sf.fit([0, 1, 3, 4], [10, 10, 20, 20])


@given(rows(), queries_anywhere, st.booleans())
def test_a_query_gets_the_value_of_the_last_step_that_starts_at_or_below_it(rows, queries, increasing):
    stairs = fitted(rows, increasing)
    queries = np.concatenate([around(stairs), queries])
    expected = [step_value(steps_of(stairs), query) for query in queries.tolist()]
    assert_same_bits(stairs(queries), expected)


@given(rows(), queries_anywhere, st.booleans())
def test_a_linear_query_lies_on_the_straight_line_between_two_steps(rows, queries, increasing):
    stairs = fitted(rows, increasing)
    queries = np.concatenate([around(stairs), queries])
    steps = steps_of(stairs)
    results = stairs.predict(queries, interpolation="linear")
    for query, result in zip(queries.tolist(), results.tolist(), strict=True):
        reached = int(np.searchsorted(stairs.left, query, side="right"))
        largest = np.abs(stairs.values[max(reached - 1, 0) : reached + 1]).max()
        assert abs(result - linear_value(steps, query)) <= 4 * math.ulp(largest)


@given(rows(), queries_anywhere, st.booleans())
def test_linear_queries_are_monotone_and_stay_between_the_steps_around_them(rows, queries, increasing):
    stairs = fitted(rows, increasing)
    queries = np.sort(np.concatenate([around(stairs), queries]))
    results = stairs.predict(queries, interpolation="linear")
    ascending = results if increasing else results[::-1]
    assert (ascending[:-1] <= ascending[1:]).all()
    assert_same_bits(stairs.predict(stairs.left, interpolation="linear"), stairs.values)
    assert_same_bits(stairs.predict(stairs.right, interpolation="linear"), stairs.values)


@given(rows(), queries_anywhere, st.sampled_from(["step", "linear", "centered"]))
def test_only_queries_outside_the_fitted_scores_are_out_of_bounds(rows, queries, interpolation):
    stairs = fitted(rows)
    queries = np.concatenate([around(stairs), queries])
    outside = (queries < stairs.left[0]) | (queries > stairs.right[-1])
    clipped = stairs.predict(queries, interpolation=interpolation)
    with_nan = stairs.predict(queries, interpolation=interpolation, out_of_bounds="nan")
    assert_same_bits(with_nan, np.where(outside, np.nan, clipped))
    assert_same_bits(clipped[queries < stairs.left[0]], stairs.values[0])
    assert_same_bits(clipped[queries > stairs.right[-1]], stairs.values[-1])
    inside = stairs.predict(queries[~outside], interpolation=interpolation, out_of_bounds="raise")
    assert_same_bits(inside, clipped[~outside])


@given(rows(), queries_anywhere, st.sampled_from(["step", "linear", "centered"]), st.booleans())
def test_many_queries_get_the_same_values_as_single_ones(rows, queries, interpolation, increasing):
    stairs = fitted(rows, increasing)
    queries = np.concatenate([around(stairs), queries])
    for out_of_bounds in ("nan", "clip"):
        options = {"interpolation": interpolation, "out_of_bounds": out_of_bounds}
        alone = [fitted(rows, increasing).predict(query, **options) for query in queries]
        many = stairs.predict(np.resize(queries, 5_000), **options)
        assert_same_bits(many, np.resize(alone, 5_000))


EDGES = {  # starts of steps, unsorted
    "even": lambda rng, n: np.arange(n) - n / 3,
    "uniform": lambda rng, n: rng.random(n),
    "heavy tails": lambda rng, n: rng.lognormal(0, 50, n) * rng.choice([-1, 1], n),
    "clusters": lambda rng, n: rng.integers(0, 9, n) + 1e-12 * rng.random(n),
    "neighbours": lambda rng, n: 1 + rng.integers(0, 9 * n, n) * 2.0**-52,
    "subnormal": lambda rng, n: rng.integers(-(9**9), 9**9, n) * 5e-324,
    "one far away": lambda rng, n: np.append(rng.random(n - 1), 1e308),
    "widest": lambda rng, n: np.append(rng.random(n - 2), [-1.7e308, 1.7e308]),
    "infinities": lambda rng, n: np.append(rng.random(n - 2), [-inf, inf]),
}


@pytest.mark.parametrize("n", [2, 3, 7, 64, 65, 1_000, 30_000])
@pytest.mark.parametrize("edges", EDGES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_edges_of_every_distribution_are_found(edges, n, dtype):
    rng = np.random.default_rng([n, *edges.encode()])
    left = np.unique(EDGES[edges](rng, n))
    stairs = sf.fit(left, np.arange(left.size))
    queries = np.concatenate([around(stairs), rng.choice(left, 3_000), rng.normal(size=3_000)])
    with np.errstate(over="ignore"):
        queries = queries.astype(dtype)
    expected = np.searchsorted(left, queries.astype(float), side="right") - 1
    assert_same_bits(stairs(queries), np.maximum(expected, 0))


def test_a_query_in_a_gap_gets_the_step_below_or_a_point_on_the_line(stairs):
    queries = [-1, 0, 0.5, 1, 1.5, 2, 2.75, 3, 4, 5]
    assert stairs(queries).tolist() == [10, 10, 10, 10, 10, 10, 10, 20, 20, 20]
    linear = stairs.predict(queries, interpolation="linear").tolist()
    assert linear == [10, 10, 10, 10, 12.5, 15, 18.75, 20, 20, 20]


def test_an_end_at_infinity_is_infinitely_far_away():
    three = sf.fit([-inf, 0, inf], [1, 2, 4])
    queries = [-inf, -1e308, -5e-324, 0, 5e-324, 1e308, inf]
    assert three.predict(queries, interpolation="linear").tolist() == [1, 2, 2, 2, 2, 2, 4]
    assert three(queries).tolist() == [1, 1, 1, 2, 2, 2, 4]
    two = sf.fit([-inf, inf], [1, 4])
    assert two.predict(queries, interpolation="linear").tolist() == [1, *[2.5] * 5, 4]
    assert two(queries).tolist() == [1, 1, 1, 1, 1, 1, 4]
    wide = sf.fit([-inf, inf], [-1.5e308, 1.7e308])
    assert wide.predict(0.0, interpolation="linear") == pytest.approx(1e307, rel=1e-14)


def test_lines_over_the_widest_gaps_and_values_do_not_overflow():
    big = 1.7e308
    stairs = sf.fit([-big, big], [-big, big])
    queries = [-big, -big / 2, 0.0, big / 2, big]
    assert stairs.predict(queries, interpolation="linear") == pytest.approx(queries, rel=1e-14)


def test_lines_do_not_overshoot_their_ends_by_rounding():
    # 2**60 away, the last queries before 1 are as far from there as 1 is; -50 + (50 - 17.8) > -17.8
    low, high = -50.0, -17.8
    assert low + (high - low) > high
    near_the_end = math.nextafter(1, 0)
    up = sf.fit([-(2.0**60), 1], [low, high])
    assert up.predict(near_the_end, interpolation="linear") <= high
    down = sf.fit([-(2.0**60), 1], [-low, -high], increasing=False)
    assert down.predict(near_the_end, interpolation="linear") >= -high


@pytest.mark.parametrize("out_of_bounds", ["clip", "nan", "raise"])
def test_infinite_queries_are_in_bounds_only_if_infinite_scores_were_fitted(out_of_bounds):
    everywhere = sf.fit([-inf, inf], [1, 2])
    assert everywhere.predict([-inf, 0, inf], out_of_bounds=out_of_bounds).tolist() == [1, 1, 2]
    finite = sf.fit([0, 1], [1, 2])
    assert np.isnan(finite.predict([-inf, inf], out_of_bounds="nan")).all()
    assert finite([-inf, inf]).tolist() == [1, 2]


@pytest.mark.parametrize("interpolation", ["step", "linear", "centered"])
@pytest.mark.parametrize("query", [-0.5, 4.5, -inf, inf])
def test_a_query_out_of_bounds_raises_an_error_that_names_it(stairs, interpolation, query):
    with pytest.raises(ValueError, match=rf"`scores`.*{query}.*index 2"):
        stairs.predict([0, 1, query, 4], interpolation=interpolation, out_of_bounds="raise")


@pytest.mark.parametrize("shape", [(0,), (1,), (7,), (2, 3), (2, 0, 3), (2, 1, 2, 3), (1, 1)])
def test_the_result_has_the_shape_of_the_queries(stairs, shape):
    queries = np.linspace(-1, 5, math.prod(shape)).reshape(shape)
    result = stairs(queries)
    assert result.shape == shape
    assert result.dtype == np.float64
    assert_same_bits(result.ravel(), stairs(queries.ravel()))
    assert_same_bits(stairs(np.asfortranarray(queries)), result)
    assert_same_bits(stairs(queries.T), result.T)


@pytest.mark.parametrize("query", [2, 2.0, True, np.float32(2), np.int64(2), np.array(2.0)])
def test_a_single_query_gets_a_float64(stairs, query):
    result = stairs(query)
    assert isinstance(result, np.float64)
    assert result == 10


@pytest.mark.parametrize("dtype", ["?", "i1", "u1", "i2", "u4", "i8", "u8", "f2", "f4", "f8", "g"])
def test_queries_of_every_numeric_type_are_supported(dtype):
    stairs = sf.fit([0, 1, 2, 100], [1, 2, 3, 4])
    queries = np.array([0, 1, 1, 0], dtype=dtype)
    assert stairs(queries).tolist() == [1, 2, 2, 1]
    assert stairs(queries[::-1][1:]).tolist() == [2, 2, 1]


def test_a_float32_query_is_not_the_float64_it_came_from():
    stairs = sf.fit([0.0, 0.1], [0, 1])
    below, above = np.nextafter(np.float32(0.1), np.float32(0)), np.float32(0.1)
    assert float(below) < 0.1 < float(above)
    assert stairs(np.array([below, above])).tolist() == [0, 1]


def test_results_are_written_to_out_and_out_is_returned(stairs):
    queries = np.array([[-1.0, 1.5], [3.0, 9.0]])
    out = np.full((2, 2), -7.0)
    assert stairs.predict(queries, out=out) is out
    assert out.tolist() == [[10, 10], [20, 20]]
    assert stairs.predict(queries, interpolation="linear", out_of_bounds="nan", out=out) is out
    np.testing.assert_array_equal(out, [[np.nan, 12.5], [20, np.nan]])
    nothing = np.empty((0, 3))
    assert stairs.predict(np.empty((0, 3)), out=nothing) is nothing
    single = np.empty(())
    assert stairs.predict(1.0, out=single) is single
    assert single == 10


def test_out_may_be_strided_and_only_its_own_entries_are_written(stairs):
    buffer = np.full((4, 6), -7.0)
    out = buffer[::2, 1::3]
    stairs.predict([[0, 3], [4, 1]], out=out)
    assert out.tolist() == [[10, 20], [20, 10]]
    assert np.count_nonzero(buffer == -7) == 20


@pytest.mark.parametrize("interpolation", ["step", "linear", "centered"])
def test_out_may_overlap_the_queries(stairs, interpolation):
    queries = np.linspace(-1, 5, 50)
    expected = stairs.predict(queries, interpolation=interpolation)
    same = queries.copy()
    assert_same_bits(stairs.predict(same, interpolation=interpolation, out=same), expected)
    for shift in (slice(1, None), slice(None, -1)):
        buffer = np.empty(51)
        source = buffer[:-1] if shift.start else buffer[1:]
        source[:] = queries
        out = buffer[shift]
        assert_same_bits(stairs.predict(source, interpolation=interpolation, out=out), expected)
    backwards = queries.copy()
    out = backwards[::-1]
    assert_same_bits(stairs.predict(backwards, interpolation=interpolation, out=out), expected)


def test_queries_are_not_changed(stairs):
    queries = np.array([0.5, 2.0, 9.0])
    queries.flags.writeable = False
    assert stairs(queries).tolist() == [10, 10, 20]
    assert queries.tolist() == [0.5, 2.0, 9.0]


def test_float32_queries_are_compared_with_the_fitted_range_in_float64():
    wide = sf.fit([-1.7976931348623157e308, 0], [0, 1])
    assert wide.predict(np.array([0], dtype=np.float32), out_of_bounds="raise").tolist() == [1.0]
    ends = sf.fit([0.1, 0.3], [0, 1])  # float32(0.1) > 0.1
    assert ends.predict(np.float32([0.1]), out_of_bounds="raise").tolist() == [0.0]
    with pytest.raises(ValueError, match=r"`scores` must be in \[0\.1, 0\.3\]"):
        ends.predict(np.float32([0.3]), out_of_bounds="raise")  # float32(0.3) > 0.3


def test_a_line_whose_slope_underflows_is_followed_precisely():
    stairs = sf.fit([-1.7976931348623157e308, 2.5], [0.25, 1 / 3])
    assert stairs.predict([0.0, 1.2], interpolation="linear") == pytest.approx([1 / 3, 1 / 3], rel=3e-16)


@pytest.mark.parametrize("out_of_bounds", ["clip", "nan"])
@pytest.mark.parametrize("interpolation", ["step", "linear", "centered"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64, np.uint16, bool])
@pytest.mark.parametrize("n", [0, 1, 2, 255, 256, 257])
def test_few_queries_give_the_same_values_as_the_general_path(n, dtype, interpolation, out_of_bounds):
    rng = np.random.default_rng(n)
    stairs = sf.fit(rng.integers(0, 50, 100), rng.random(100))
    queries = (60 * rng.random(2 * n)).astype(dtype)[::2]
    options = {"interpolation": interpolation, "out_of_bounds": out_of_bounds}
    general = stairs.predict(queries, n_threads=1, **options)  # the number of threads is checked there
    assert_same_bits(stairs.predict(queries, **options), general)
    for query, value in zip(queries[:20].astype(float).tolist(), general[:20], strict=True):
        found = stairs.predict(query, **options)
        assert type(found) is np.float64
        assert_same_bits(found, value)


@pytest.mark.parametrize("query", [np.nan, np.array([0.0, np.nan]), np.array([2**53 + 1]), np.array(["a"])])
def test_few_invalid_queries_raise_the_usual_errors(query):
    stairs = sf.fit([0, 1], [0, 1])
    with pytest.raises(ValueError, match="`scores` must") as quick:
        stairs.predict(query)
    with pytest.raises(ValueError, match="`scores` must") as general:
        stairs.predict(query, n_threads=1)
    assert str(quick.value) == str(general.value)


ORDERS = {  # of queries
    "ascending": lambda rng, x: np.sort(x),
    "descending": lambda rng, x: np.sort(x)[::-1].copy(),
    "nearly sorted": lambda rng, x: np.sort(x)[np.argsort(np.arange(len(x)) + 3 * rng.random(len(x)))],
    "repeated": lambda rng, x: np.repeat(x[: len(x) // 100 + 1], 100)[: len(x)],
    "runs, then noise": lambda rng, x: np.concatenate([np.sort(x[: len(x) // 2]), x[len(x) // 2 :]]),
    "unsorted": lambda rng, x: x,
}


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("n_steps", [1, 2, 3, 8, 9, 10, 19, 20, 21, 22, 200, 5_000])
@pytest.mark.parametrize("n", [1, 7, 63, 64, 65, 257, 1_000, 20_000])
def test_queries_in_any_order_get_their_values(n, n_steps, order):
    rng = np.random.default_rng([n, n_steps, *order.encode()])
    left = np.arange(n_steps, dtype=float)
    stairs = sf.fit(left, rng.permutation(n_steps) if n_steps == 1 else np.cumsum(rng.random(n_steps)))
    queries = rng.choice([-1.5, -inf, inf, *left, *(left - 0.25)], n)
    queries = ORDERS[order](rng, np.where(rng.random(n) < 0.3, rng.uniform(-1, n_steps, n), queries))
    expected = stairs.values[np.maximum(np.searchsorted(left, queries, side="right") - 1, 0)]
    for scores in (queries, queries[::-1].copy()[::-1]):
        assert_same_bits(stairs(scores), expected)
        assert_same_bits(stairs(scores), expected)  # by an index, if there are many queries
    single = queries.astype(np.float32)
    expected = stairs.values[np.maximum(np.searchsorted(left, single.astype(float), side="right") - 1, 0)]
    assert_same_bits(stairs(single), expected)
    outside = (queries < left[0]) | (queries > left[-1])
    assert np.array_equal(np.isnan(stairs.predict(queries, out_of_bounds="nan")), outside)


@pytest.mark.parametrize("place", [0, 1, 63, 64, 100, 128, 255, 256, 700, 998, 999])
@pytest.mark.parametrize("n_steps", [1, 2, 20, 21, 300])
@pytest.mark.parametrize("order", ["ascending", "unsorted"])
def test_a_nan_anywhere_among_the_queries_is_reported(place, n_steps, order):
    rng = np.random.default_rng(place)
    stairs = sf.fit(np.arange(n_steps), np.arange(n_steps))
    queries = ORDERS[order](rng, rng.uniform(-1, n_steps, 1_000))
    queries[place] = np.nan
    for scores in (queries, queries.astype(np.float32)):
        for options in ({}, {"n_threads": 1}, {"interpolation": "linear"}, {"out_of_bounds": "nan"}):
            with pytest.raises(ValueError, match=rf"`scores` must not be NaN.*index {place}\b"):
                stairs.predict(scores, **options)


@pytest.mark.skipif(not _lookup.has_vectors(), reason="needs AVX2")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_edges", [0, 1, 2, 3, 8, 19])
@pytest.mark.parametrize("n", [1, 2, 7, 8, 9, 31, 64])
def test_edges_are_counted_alike_with_and_without_vector_instructions(n, n_edges, dtype):
    rng = np.random.default_rng([n, n_edges])
    edges = np.sort(rng.random(20))
    values = rng.random(n_edges + 1)
    queries = rng.choice([0.0, 1.0, *edges, *(edges - 1e-9)], n).astype(dtype)
    inside = (0.0, np.nan), (-inf, 1.5)
    outside = (0.5, 1.5), (-inf, 0.5), (0.0, 0.0)
    for low, high in inside + outside:
        found = []
        for vectors in (True, False):
            out = np.full(n + 1, -7.0)
            fine = _lookup.count_below(queries, low, high, edges, values, out[:n], vectors)
            assert out[n] == -7.0
            assert fine == bool(np.all(queries >= low) and not np.any(queries >= high))
            found.append(out)
        assert_same_bits(found[0], found[1])
        counts = np.searchsorted(edges[:n_edges], queries.astype(float), side="right")
        assert_same_bits(found[0][:n], values[counts])
    queries[n // 2] = np.nan
    assert not any(_lookup.count_below(queries, -inf, np.nan, edges, values, out[:n], way) for way in (True, False))
