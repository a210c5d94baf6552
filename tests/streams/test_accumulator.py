"""`Accumulator`: for any batches, order and tree of merges, it equals one fit of all rows, bit for bit."""

import copy
import gc
import math
import pickle
import re
import sys
import threading
import tracemalloc
from typing import Any

import numpy as np
import pytest
from accumulated_rows import KINDS, TOTAL, accumulated, example_rows
from comparing import assert_same_bits, assert_same_staircase, assert_steps
from hypothesis import given
from hypothesis import strategies as st
from loss_table import CASES
from reference import fitted_steps
from strategies import HUGE, Rows, rows

import staircase_fast as sf
from staircase_fast.streams import accumulator, runs

L = sf.losses
inf = math.inf


def parts_of(given: Any, cuts: Any, order: Any = None) -> list[tuple[Any, ...]]:
    """Rows in some order, divided into batches."""
    columns = [None if column is None else np.asarray(column) for column in given]
    if order is not None:
        columns = [None if column is None else column[order] for column in columns]
    pieces = [
        [None] * (len(cuts) + 1) if column is None else np.split(column, np.sort(np.asarray(cuts, dtype=int)))
        for column in columns
    ]
    return list(zip(*pieces, strict=True))


def form(seen: sf.Accumulator) -> str:
    """The kinds of entries in the only run: rows, tallies, pools."""
    seen.n_scores  # noqa: B018  (merges all runs)
    (run,) = seen._state.runs
    kinds = {1: "rows", -1: "tallies", 0: "pools"}
    return " and ".join(kinds[sign] for sign in (1, -1, 0) if np.any(np.sign(run.columns.w) == sign))


@pytest.fixture
def few_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sort rows after a few have arrived, so that few rows make many runs."""
    monkeypatch.setattr(accumulator, "_MOST_WAITING", 8)
    monkeypatch.setattr(accumulator, "_FEWEST_WAITING", 2)


@pytest.mark.parametrize("increasing", [True, False])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.usefixtures("few_wait")
def test_batches_equal_one_fit(kind: str, increasing: bool) -> None:
    x, y, w = example_rows(kind)
    rng = np.random.default_rng(1)
    expected = sf.fit(x, y, sample_weight=w, increasing=increasing)
    for cuts in ([], np.arange(1, TOTAL), rng.integers(0, TOTAL, 9), rng.integers(0, TOTAL, 99)):
        seen = accumulated(parts_of((x, y, w), cuts, rng.permutation(TOTAL)), increasing=increasing)
        assert_same_staircase(seen.staircase(), expected)
        assert seen.n_samples == expected.counts.sum()
        present = np.ones(TOTAL, dtype=bool) if w is None else np.asarray(w) > 0
        assert seen.n_scores == len(np.unique(x[present]))
        assert form(seen) == KINDS[kind]


@given(rows(), st.booleans(), st.data())
def test_any_rows_in_any_batches_equal_the_reference(rows: Rows, increasing: bool, data: st.DataObject) -> None:
    n = len(rows.scores)
    cuts = data.draw(st.lists(st.integers(0, n), max_size=6))
    parts = parts_of(rows, cuts)
    try:
        expected = sf.fit(rows.scores, rows.targets, sample_weight=rows.weights, increasing=increasing)
    except ValueError:
        return
    seen = accumulated(parts, increasing=increasing)
    assert_same_staircase(seen.staircase(), expected)
    # each batch in its own accumulator, merged as a tree
    leaves = [accumulated([part], increasing=increasing) for part in parts]
    while len(leaves) > 1:
        at = data.draw(st.integers(0, len(leaves) - 2))
        leaves[at].merge(leaves.pop(at + 1))
    assert_same_staircase(leaves[0].staircase(), expected)
    steps = fitted_steps(rows.scores, rows.targets, rows.weights, increasing=increasing)
    assert_steps(seen.staircase(), steps)


@pytest.mark.parametrize("first", KINDS)
@pytest.mark.parametrize(
    "second", ["labels", "integers, tied, integer weights", "noise, tied", "decades, wide weights"]
)
def test_rows_of_all_kinds_mix(first: str, second: str) -> None:
    one, other = (example_rows(kind, 60) for kind in (first, second))
    if first.startswith("huge integers"):  # an array can hold them only with other integers
        other = other[0], np.clip(other[1], -1e18, 1e18).astype(np.int64), other[2]
    x, y = (np.concatenate(pair) for pair in zip(one[:2], other[:2], strict=True))
    weights = [w for given in (one, other) for w in (np.ones(60) if given[2] is None else given[2])]
    expected = sf.fit(x, y, sample_weight=weights)
    for order in ((one, other), (other, one)):
        assert_same_staircase(accumulated(order).staircase(), expected)
        a, b = (accumulated([given]) for given in order)
        a.merge(b)
        assert_same_staircase(a.staircase(), expected)


def test_a_unit_that_gets_finer_and_words_that_get_more_keep_every_bit() -> None:
    targets = [1.0, 3.0, -2.0, 0.5, 2.0**-60, -1e300, 5e-324, 1e300, 0.1, -(2.0**70)]
    weights = [1.0, 7.0, 2.0**40, 1.0, 0.3, 1e-200, 1.0, 3.0, 2.0**-1074, 1e250]
    seen = sf.Accumulator()
    for n, (y, w) in enumerate(zip(targets, weights, strict=True), 1):
        seen.merge(accumulated([([5.0, 5.0, n], [y, y, y], [w, w, w])]))
        x = np.ravel([[5.0, 5.0, k] for k in range(1, n + 1)])
        expected = sf.fit(x, np.repeat(targets[:n], 3), sample_weight=np.repeat(weights[:n], 3))
        assert_same_staircase(seen.staircase(), expected)


def test_many_rows_of_one_score_keep_their_targets() -> None:
    scores, targets = np.full(5000, 0.5), np.arange(5000) / 7
    assert_same_staircase(accumulated([(scores, targets)]).staircase(), sf.fit(scores, targets))


@pytest.mark.parametrize("weight", [2**31, 2**32 - 1])
def test_a_weight_may_fill_half_a_word(weight: int) -> None:
    seen = accumulated([([0, 0], [1, 0], [weight - 1, 1])])
    assert form(seen) == "tallies"
    assert_same_staircase(seen.staircase(), sf.fit([0, 0], [1, 0], sample_weight=[weight - 1, 1]))
    seen.add([0], [5], [2**32 - weight])
    assert form(seen) == "pools"
    assert_same_staircase(seen.staircase(), sf.fit([0] * 3, [1, 0, 5], sample_weight=[weight - 1, 1, 2**32 - weight]))


@pytest.mark.parametrize("targets", [[2**61, 2**61 - 2**9], [-(2**61), -(2**61)], [2**60, 2**61, -(2**61)]])
def test_a_tally_that_would_overflow_becomes_a_pool(targets: list[int]) -> None:
    given = [0.0] * len(targets), np.array(targets, dtype=float)
    for seen in (accumulated([given]), accumulated(parts_of(given, range(1, len(targets))))):
        seen.merge(accumulated([given]))
        assert form(seen) == ("pools" if abs(sum(targets)) * 2 >= 2**62 else "tallies")
        assert_same_staircase(seen.staircase(), sf.fit(given[0] * 2, np.tile(given[1], 2)))


def test_sums_of_weights_may_fill_their_last_bit() -> None:
    # 2**63 in one word: the highest bit is not a sign
    heavy = accumulated([([1.0, 1.0], [0.5, 0.25], [2.0**61, 2.0**62 + 2.0**61])])
    other = accumulated([([1.0, 2.0], [0.125, 1e-9], [0.5, 2.0**62])])
    heavy.merge(other)
    x, y, w = [1.0, 1.0, 1.0, 2.0], [0.5, 0.25, 0.125, 1e-9], [2.0**61, 2.0**62 + 2.0**61, 0.5, 2.0**62]
    assert_same_staircase(heavy.staircase(), sf.fit(x, y, sample_weight=w))


@pytest.mark.parametrize("case", CASES, ids=repr)
@pytest.mark.parametrize("increasing", [True, False])
@pytest.mark.usefixtures("few_wait")
def test_every_loss_equals_one_fit(case: Any, increasing: bool) -> None:
    rng = np.random.default_rng(3)
    n = 150
    x = np.round(rng.random(n), 1 + rng.integers(3))
    y = {
        "real": x + rng.normal(size=n).round(1),
        "unit": np.clip(x + rng.normal(size=n) / 3, 0, 1),
        ">=0": rng.poisson(3 * x).astype(float),
        ">0": rng.gamma(1, 1 + x) + 1e-9,
    }[case.domain[0]]
    loss = case.make(case.parameters[-2]) if case.parameters else case.make()
    bounds = (-9, 9) if case.kind is L.Logistic else None
    for w in (None, rng.integers(0, 4, n) / 2):
        expected = sf.fit(x, y, sample_weight=w, loss=loss, increasing=increasing, bounds=bounds)
        parts = parts_of((x, y, w), rng.integers(0, n, 12), rng.permutation(n))
        seen = accumulated(parts[1:], loss=loss, increasing=increasing)
        seen.merge(accumulated(parts[:1], loss=loss, increasing=increasing))
        assert_same_staircase(seen.staircase(bounds=bounds), expected)
        assert (seen.n_samples, seen.n_scores) == (expected.counts.sum(), len(np.unique(x if w is None else x[w > 0])))


def cubic(z: Any, y: Any) -> Any:
    return (z - y) ** 3


def mean(y1: float, w1: float, y2: float, w2: float) -> tuple[float, float]:
    return (y1 * w1 + y2 * w2) / (w1 + w2), w1 + w2


@pytest.mark.parametrize("loss", [L.Custom(cubic), L.UpdateRule(mean)], ids=repr)
@pytest.mark.usefixtures("few_wait")
def test_custom_losses_equal_one_fit(loss: Any) -> None:
    x, y, w = example_rows("noise, tied, integer weights", 90)
    seen = accumulated(parts_of((x, y, w), range(0, 90, 4), np.random.default_rng(0).permutation(90)), loss=loss)
    assert_same_staircase(seen.staircase(), sf.fit(x, y, sample_weight=w, loss=loss))
    assert_same_staircase(pickle.loads(pickle.dumps(seen)).staircase(), seen.staircase())
    with pytest.raises(TypeError, match="`loss` must not be made of functions"):
        seen.save("never written")


def test_batches_with_and_without_weights_mix_under_every_kind_of_loss() -> None:
    for loss in ("squared", "huber"):
        seen = accumulated([([1, 2], [5.0, 1.0]), ([3, 2], [2.0, 7.0], [3.0, 0.5])], loss=loss)
        other = accumulated([([1, 4], [0.5, 1.0])], loss=loss)
        seen.merge(other)
        expected = sf.fit([1, 2, 3, 2, 1, 4], [5, 1, 2, 7, 0.5, 1], sample_weight=[1, 1, 3, 0.5, 1, 1], loss=loss)
        assert_same_staircase(seen.staircase(), expected)


@pytest.mark.parametrize("loss", ["squared", "huber"])
@pytest.mark.parametrize(
    "columns",
    [
        ([-0.0, 0.0, -0.0, 1.0], [3.0, -0.0, 0.5, 0.25]),
        ([-inf, inf, 0.0, inf], [1, 2, 3, 4]),
        (np.array([0.1, 0.2, 0.1, 0.3], dtype=np.float32), np.array([1, 0, 1, 1], dtype=np.uint8)),
        (np.array([0.1, 0.2, 0.1, 0.3], dtype=np.float16), [True, False, False, True]),
        (np.arange(8.0)[::-2], np.arange(8, dtype=np.int16)[::2]),
        (np.array([3.0, 1.0, 2.0, 1.0]).astype(">f8"), np.array([1, 2, 3, 4]).astype(">i4")),
        ([5, 5, 5, 5], [0.1, 0.2, 0.3, 0.4]),
    ],
)
def test_columns_of_all_kinds_are_read_as_fit_reads_them(columns: Any, loss: str) -> None:
    x, y = columns
    expected = sf.fit(x, y, loss=loss)
    for column in columns:
        if isinstance(column, np.ndarray):
            column.setflags(write=False)
    assert_same_staircase(accumulated([columns], loss=loss).staircase(), expected)
    one_by_one = accumulated([(x[k : k + 1], y[k : k + 1]) for k in range(len(x))], loss=loss)
    assert_same_staircase(one_by_one.staircase(), expected)


def test_many_rows_at_once_and_few_at_a_time_are_the_same() -> None:
    x, y, w = example_rows("noise, tied, real weights", 300_000)
    expected = sf.fit(x, y, sample_weight=w)
    assert_same_staircase(accumulated([(x, y, w)]).staircase(), expected)
    assert_same_staircase(accumulated(parts_of((x, y, w), range(0, 300_000, 20_000))).staircase(), expected)
    order = np.argsort(x)
    assert_same_staircase(accumulated([(x[order[::-1]], y[order[::-1]], w[order[::-1]])]).staircase(), expected)


@pytest.mark.parametrize("kind", ["labels", "noise, tied", "integers, tied, integer weights"])
def test_a_hundred_thousand_rows_in_a_hundred_shuffled_batches_are_one_fit(kind: str) -> None:
    many_batches(kind, 100_000, 100)


@pytest.mark.long
@pytest.mark.parametrize("kind", ["labels", "noise, real weights"])
def test_ten_million_rows_in_a_thousand_shuffled_batches_are_one_fit(kind: str) -> None:
    many_batches(kind, 10_000_000, 1000)


def many_batches(kind: str, n: int, n_batches: int) -> None:
    x, y, w = example_rows(kind, n)
    seen = accumulated(parts_of((x, y, w), range(0, n, n // n_batches), np.random.default_rng(0).permutation(n)))
    assert_same_staircase(seen.staircase(), sf.fit(x, y, sample_weight=w))


# Empty batches and invalid input


def test_an_empty_accumulator_has_no_rows() -> None:
    seen = sf.Accumulator()
    for _ in range(2):
        assert (seen.n_samples, seen.n_scores, seen.nbytes) == (0, 0, 0)
        assert repr(seen) == "<Accumulator: 0 rows, squared_error, increasing>"
        with pytest.raises(ValueError, match=r"must have at least one row; none of weight > 0 has arrived"):
            seen.staircase()
        with pytest.raises(ValueError, match="none of weight > 0 has arrived"):
            seen.predict([1.0])
        seen.add([], [])
        seen.add(np.empty(0, dtype=np.float32), np.empty(0, dtype=bool), [])
        seen.add([1.0, 2.0], [3, 4], [0, 0])
        seen.merge(sf.Accumulator())
        seen.merge(seen)
        seen = copy.copy(pickle.loads(pickle.dumps(seen)))
    seen.add([1.0], [2.0])
    assert repr(seen) == "<Accumulator: 1 row, squared_error, increasing>"
    seen.clear()
    assert (seen.n_samples, seen.n_scores, seen.nbytes) == (0, 0, 0)


REFUSED = [
    (([1.0, math.nan], [0, 1]), "`scores` must not be NaN; got nan at index 1."),
    (([1.0, 2.0], [0, inf]), "`targets` must be finite; got inf at index 1."),
    (([1.0, 2.0], [0, 2]), "`targets` must be in [0, 1] for log_loss; got 2 at index 1."),
    (([1.0], [0, 1]), "`scores` and `targets` must have one entry per row; got 1 and 2 entries."),
    (([], [0]), "`scores` and `targets` must have one entry per row; got 0 and 1 entries."),
    (([1.0, 2.0], [0, 1], [1, -1.5]), "`sample_weight` must be >= 0; got -1.5 at index 1."),
    (([1.0, 2.0], [0, 1], [0, math.nan]), "`sample_weight` must be finite; got nan at index 1."),
    (([1.0, math.nan], [0, 1], [0, 0]), "`scores` must not be NaN; got nan at index 1."),
    (([1.0, 2.0], [0, 7], [0, 0]), "`targets` must be in [0, 1] for log_loss; got 7 at index 1."),
    (([1.0, 2.0], [0, 1], [HUGE, HUGE]), "`sample_weight` must have a finite sum; its 2 entries reach"),
    (
        ([1.0, 2.0], [0, 1], [HUGE, 1]),
        "`sample_weight` must have a finite sum over all rows; got 1.7976931348623157e+308 in addition to",
    ),
]


@pytest.mark.parametrize(("columns", "message"), REFUSED)
def test_a_refused_batch_changes_nothing(columns: Any, message: str) -> None:
    seen = accumulated([([1.0, 2.0], [1, 0], [1e308, 1])], loss="log")
    before, stairs = seen.staircase(), seen.nbytes
    with pytest.raises(ValueError, match=re.escape(message)):
        seen.add(*columns)
    assert (seen.n_samples, seen.nbytes) == (2, stairs)
    assert seen.staircase() is before
    seen.add([1.5], [1.0])
    expected = sf.fit([1.0, 2.0, 1.5], [1, 0, 1], sample_weight=[1e308, 1, 1], loss="log")
    assert_same_staircase(seen.staircase(), expected)


@pytest.mark.parametrize("size", [4, 50])  # rows that wait, and rows that are sorted at once
@pytest.mark.parametrize("name", ["run_of", "pushed", "joined_extent"])
@pytest.mark.usefixtures("few_wait")
def test_a_batch_that_is_interrupted_changes_nothing(name: str, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    x, y, _ = example_rows("noise, tied", 98)
    interrupts = 0

    def interrupted(original: Any) -> Any:
        def stop(*given: Any, **more: Any) -> Any:
            original(*given, **more)
            raise KeyboardInterrupt

        return stop

    for n in range(90, 99):  # with different numbers of waiting rows
        seen = accumulated(parts_of((x[:n], y[:n]), range(1, n)))
        with monkeypatch.context() as patch:
            for module in (runs, accumulator):
                if hasattr(module, name):
                    patch.setattr(module, name, interrupted(getattr(module, name)))
            try:
                seen.add(np.arange(size), np.full(size, 1e9))
            except KeyboardInterrupt:
                interrupts += 1
            else:
                continue  # this batch did not call the function
        assert seen.n_samples == n
        assert_same_staircase(seen.staircase(), sf.fit(x[:n], y[:n]))
    assert interrupts


def test_a_refused_merge_changes_nothing() -> None:
    seen = accumulated([([1.0], [1.0], [1e308])])
    for other, error, message in [
        (None, TypeError, "`other` must be an Accumulator; got None."),
        (seen.staircase(), TypeError, "`other` must be an Accumulator; got <Staircase"),
        (sf.Accumulator("log"), ValueError, "`other` must have the same loss, SquaredError(); got LogLoss()."),
        (sf.Accumulator(increasing=False), ValueError, "`other` must have the same increasing, True; got False."),
        (accumulated([([1.0], [1.0], [HUGE])]), ValueError, "`sample_weight` must have a finite sum over all rows"),
    ]:
        with pytest.raises(error, match=re.escape(message)):
            seen.merge(other)  # type: ignore[arg-type]
        assert seen.n_samples == 1


@pytest.mark.parametrize(
    ("loss", "message"),
    [
        (L.Huber([1.0, 2.0]), "`delta` of the loss must be a number, the same for all rows; got 2 numbers."),
        (L.PoissonDeviance([1.0]), "`exposure` of the loss must be a number, the same for all rows; got 1 numbers."),
        (
            L.Custom(cubic, (1.0, [1.0, 2.0])),
            "`args` of the loss must be numbers, the same for all rows; got 2 numbers for entry 1",
        ),
    ],
)
def test_parameters_of_single_rows_are_refused(loss: Any, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        sf.Accumulator(loss)


def test_arguments_are_checked_as_in_fit() -> None:
    with pytest.raises(ValueError, match="`increasing` must be True or False; got 'auto'"):
        sf.Accumulator(increasing="auto")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="`loss` must be one of"):
        sf.Accumulator("squares")
    with pytest.raises(ValueError, match="`bounds` must be a pair with lo <= hi"):
        accumulated([([1], [1])]).staircase(bounds=(2, 1))
    with pytest.raises(ValueError, match="`bounds` must be finite here"):
        accumulated([([1], [1])], loss="logistic").staircase()


def test_merging_leaves_the_other_as_it_is_and_shares_nothing_that_changes() -> None:
    one, other = accumulated([([1, 2], [5.0, 1.0])]), accumulated([([2, 3], [0.0, 4.0])])
    one.merge(other)
    other.add([0.5], [9.0])
    one.add([7], [1.0])
    assert_same_staircase(other.staircase(), sf.fit([2, 3, 0.5], [0, 4, 9.0]))
    assert_same_staircase(one.staircase(), sf.fit([1, 2, 2, 3, 7], [5, 1, 0, 4, 1.0]))
    one.merge(one)
    assert_same_staircase(one.staircase(), sf.fit([1, 2, 2, 3, 7] * 2, [5, 1, 0, 4, 1.0] * 2))


@pytest.mark.parametrize("y", [1, 0.1])
def test_more_than_2_to_the_32_rows_are_counted(y: float) -> None:
    seen = accumulated([([1.0, 2.0], [y, 0.0], [1.0, 1.0])])
    for _ in range(40):
        seen.merge(seen)
    stairs = seen.staircase()
    assert (stairs.counts.tolist(), stairs.weights.tolist()) == ([2**41], [2.0**41])
    assert stairs.values.tolist() == [y / 2]
    assert seen.n_samples == 2**41
    for _ in range(20):
        seen.merge(seen)
    with pytest.raises(ValueError, match=re.escape("must have fewer than 2**62 rows")):
        seen.merge(seen)
    assert seen.n_samples == 2**61
    assert seen.staircase().counts.tolist() == [2**61]


def test_the_staircase_is_computed_once_and_again_after_each_change() -> None:
    seen = accumulated([([1, 2, 3], [1.0, 3.0, 2.0])])
    stairs = seen.staircase()
    assert seen.staircase() is stairs
    seen.add([], [])
    assert seen.staircase() is stairs
    bounded = seen.staircase(bounds=(None, 2))
    assert_same_staircase(bounded, sf.fit([1, 2, 3], [1.0, 3.0, 2.0], bounds=(None, 2)))
    assert seen.staircase() is stairs
    assert_same_bits(seen.predict([0, 2.5, 9], out_of_bounds="nan"), stairs.predict([0, 2.5, 9], out_of_bounds="nan"))
    assert seen.predict(2.5, interpolation="linear") == 2.5
    seen.add([4], [0.0])
    assert_same_staircase(seen.staircase(), sf.fit([1, 2, 3, 4], [1.0, 3.0, 2.0, 0.0]))
    assert stairs.n_steps == 2


def test_values_stay_in_the_range_of_the_loss() -> None:
    x, y = [1, 2, 3], [-3.0, 2.0, 1.0]
    for loss in (L.TweedieDeviance(-1), "squared"):
        for bounds in (None, (0.5, None), (None, 1)):
            expected = sf.fit(x, y, loss=loss, bounds=bounds)
            assert_same_staircase(accumulated([(x, y)], loss=loss).staircase(bounds=bounds), expected)


# Memory


@pytest.mark.parametrize(
    ("kind", "most"),
    [
        (kind, 24)
        for kind in ("labels", "labels, tied", "integers, tied, integer weights", "noise", "noise, real weights")
    ],
)
def test_memory_is_24_bytes_per_score(kind: str, most: int) -> None:
    n, slack = 1_000_000, 24 * accumulator._MOST_WAITING
    x, y, w = example_rows(kind, n)
    parts = parts_of((x, y, w), range(0, n, 10_000))
    tracemalloc.start()
    try:
        seen = sf.Accumulator()
        before, _ = tracemalloc.get_traced_memory()
        for part in parts:
            seen.add(*part)
        gc.collect()  # also frees the tuples that the interpreter keeps to use them again
        held, peak = (size - before for size in tracemalloc.get_traced_memory())
        n_held = sum(len(run.columns.x) for run in seen._state.runs) + seen._state.n_waiting
        assert seen.nbytes <= held <= seen.nbytes + 50_000
        assert seen.nbytes <= most * n_held + slack
        assert peak <= 2 * most * n + 4 * slack
        distinct = seen.n_scores
        assert n_held <= distinct * 4 / 3 + accumulator._MOST_WAITING
        gc.collect()
        held = tracemalloc.get_traced_memory()[0] - before
        assert seen.nbytes <= held <= seen.nbytes + 50_000
        assert seen.nbytes <= most * distinct + slack
    finally:
        tracemalloc.stop()


def test_memory_does_not_grow_with_the_rows_of_a_score() -> None:
    rng = np.random.default_rng(0)
    seen = sf.Accumulator()
    for _ in range(20):
        seen.add(rng.integers(0, 50, 200_000) / 8, rng.normal(size=200_000))
    assert seen.nbytes < 10_000


# Threads


def in_threads(*tasks: Any) -> None:
    errors: list[BaseException] = []

    def work(task: Any) -> None:
        try:
            task()
        except BaseException as error:  # noqa: BLE001
            errors.append(error)

    helpers = [threading.Thread(target=work, args=(task,)) for task in tasks]
    for helper in helpers:
        helper.start()
    for helper in helpers:
        helper.join(60)
    assert not errors
    assert not any(helper.is_alive() for helper in helpers)


def test_threads_lose_no_row(few_wait: None) -> None:
    columns = example_rows("noise, tied, integer weights", 2000)
    parts = parts_of(columns, range(0, 2000, 5))
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        seen, other = sf.Accumulator(), sf.Accumulator()

        def add(share: int) -> None:
            for part in parts[share::4]:
                (seen if share % 2 else other).add(*part)

        def read() -> None:
            for _ in range(50):
                if seen.n_samples:
                    assert seen.staircase().counts.sum() <= 2000
                copy.copy(other)
                assert seen.nbytes <= 48 * 2000 + 24 * accumulator._MOST_WAITING

        in_threads(*(lambda share=share: add(share) for share in range(4)), read, read)
        a, b = copy.copy(seen), copy.copy(other)
        in_threads(lambda: a.merge(other), lambda: b.merge(seen), a.staircase)
    finally:
        sys.setswitchinterval(interval)
    for merged in (a, b):
        assert_same_staircase(merged.staircase(), sf.fit(columns[0], columns[1], sample_weight=columns[2]))


def test_merging_two_accumulators_into_each_other_at_once_does_not_deadlock() -> None:
    one, other = accumulated([([1.0], [1.0])]), accumulated([([2.0], [2.0])])

    def merge(a: sf.Accumulator, b: sf.Accumulator) -> None:
        for _ in range(15):
            a.merge(b)

    in_threads(lambda: merge(one, other), lambda: merge(other, one))
    assert one.n_samples > 15
