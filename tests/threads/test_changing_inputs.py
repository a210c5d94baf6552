"""Inputs that change during a call: results may be wrong, but kernels stay within their arrays and terminate.

Kernels are called here with what they would see if a column changed between two passes over it.  The arrays they write
to lie between entries that must stay as they are.  `tests/safety/change_inputs.py` changes inputs of public calls while
these run; on a build with the address sanitizer it also finds reads outside of arrays.
"""

import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import staircase_fast as sf
from staircase_fast import losses
from staircase_fast.arithmetic.exact import UNIT_WEIGHTS, Extent, extent_of, scale_of
from staircase_fast.bisection import solve
from staircase_fast.bisection.samples import Samples
from staircase_fast.calibration import _venn
from staircase_fast.groups import _evaluate, _groups, grouped
from staircase_fast.inputs.rows import check_weights
from staircase_fast.stack import _sorted_rows, _sorting, survey
from staircase_fast.streams import _online, _score_sums, runs

SCRIPT = Path(__file__).parents[1] / "safety" / "change_inputs.py"
EDGE = 4096
RNG = np.random.default_rng(8)


class Guarded:
    """Arrays between guard entries that must not change."""

    def __init__(self):
        self.whole = []

    def __call__(self, shape, dtype=np.float64):
        shape = shape if isinstance(shape, tuple) else (shape,)
        whole = np.full((shape[0] + 2 * EDGE, *shape[1:]), 77, dtype=dtype)
        self.whole.append(whole)
        return whole[EDGE:-EDGE]

    def check(self):
        for whole in self.whole:
            assert (whole[:EDGE] == 77).all()
            assert (whole[-EDGE:] == 77).all()


@pytest.fixture
def guarded():
    arrays = Guarded()
    yield arrays
    arrays.check()


@pytest.mark.parametrize("weighted", [False, True])
def test_a_sort_stays_within_its_arrays(guarded, weighted):
    # sorting in place changes scores between counting and moving
    n = 100_000
    scores = RNG.random(n)
    y, w = guarded(n, np.uint64), guarded(n if weighted else 0)
    weights = np.ones(n) if weighted else np.empty(0)
    _sorting.sort_columns(
        scores, np.zeros(n, np.uint64), weights, scores, y, w, guarded(_sorting.work_size(n), np.uint8)
    )


def test_a_fit_without_remaining_rows_raises_an_error():
    x = np.sort(RNG.random(100))
    rows = survey.Runs(np.zeros(1, np.int64), np.zeros((1, 2), np.uint64))
    kept = survey.LiveRows(np.empty((0, 3), np.uint64), np.empty(0, np.int32))
    live = survey.LiveBuckets(0, np.empty((0, 4)), np.zeros(1, np.uint64), np.empty(0), np.empty(0, np.int32))
    scale = scale_of(extent_of(x, 1), UNIT_WEIGHTS, 100)
    with pytest.raises(RuntimeError, match="changed during the call"):
        survey.finish(kept, rows, scale, live, 1, False, decreasing=False, bounds=(-np.inf, np.inf))


def test_a_mean_with_zero_weight_terminates():
    targets, weights = np.array([1.0, 0.3, 0.7, 0.2]), np.array([1.5, -1.5, 2.5, -2.5])  # weights were positive once
    scale = scale_of(extent_of(targets, 1), extent_of(np.abs(weights), 1), 4)
    value, weight = np.empty(1), np.empty(1)
    _sorted_rows.pool(targets, weights, scale, -np.inf, np.inf, value, weight)
    assert value[0] == np.inf
    assert weight[0] == 0


def test_a_mean_that_overflows_terminates():
    scale = scale_of(Extent(-1, 1e300, 1.7e308, 1e300, False), UNIT_WEIGHTS, 3)
    value, weight = np.empty(1), np.empty(1)
    _sorted_rows.pool(np.full(3, np.nan), np.empty(0), scale, -np.inf, np.inf, value, weight)
    assert value[0] == np.inf


@pytest.mark.parametrize("bad", [np.nan, 0.0, -1.0])
def test_rows_have_steps_even_if_their_weights_are_no_longer_positive(bad):
    n = 160
    y = RNG.normal(size=n)
    scale = scale_of(extent_of(y, 1), extent_of(RNG.random(n), 1), n)
    work = np.empty(_sorted_rows.work_size(n, scale.s_words + scale.w_words), dtype=np.uint64)
    starts, values, weights = np.empty(n + 1, np.intp), np.empty(n), np.empty(n)
    n_steps = _sorted_rows.merge(
        np.empty(0), y, np.full(n, bad), scale, False, -np.inf, np.inf, False, False, starts, values, weights, work
    )
    assert n_steps >= 1
    assert starts[0] == 0
    assert starts[n_steps] == n


def test_weights_that_all_became_zero_raise_an_error():
    before = Extent(-1, 0.0, 1.0, 0.5, False)
    with pytest.raises(ValueError, match="`w` must have an entry > 0; all 3 are zero"):
        check_weights("w", np.zeros(3), before)


@pytest.mark.parametrize("ranked", [False, True])
def test_groups_outside_of_their_range_are_counted_within_the_array(guarded, ranked):
    groups = np.array([5, 6, 7, -(2**62), 2**62, 4, 8], dtype=np.int64)  # once, they were all within 5 .. 7
    ranks = np.array([2, 0, 1] if ranked else [], dtype=np.int32)
    numbers, counts = guarded(7, np.int32), guarded(3, np.uint32)
    counts[:] = 0
    _groups.number_rows(groups, 5, ranks, numbers, counts)
    assert numbers[:3].tolist() == ([2, 0, 1] if ranked else [0, 1, 2])
    assert counts.sum() == 7
    assert ((numbers >= 0) & (numbers < 3)).all()


def test_ranks_outside_of_their_range_are_counted_within_the_array(guarded):
    numbers, counts = guarded(2, np.int32), guarded(2, np.uint32)
    counts[:] = 0
    _groups.number_rows(np.array([0, 1]), 0, np.array([-1, 9], dtype=np.int32), numbers, counts)
    assert counts.tolist() == [2, 0]


@pytest.mark.parametrize("times", [0, 1])
def test_rows_of_groups_that_are_no_longer_valid_are_refused(monkeypatch, times):
    fit_all, left = grouped.fit_all, [times]

    def changed(*given, **options):
        left[0] -= 1
        if left[0] < 0:
            raise survey.NotLabels
        return fit_all(*given, **options)

    monkeypatch.setattr(grouped, "fit_all", changed)
    with pytest.raises(RuntimeError, match="changed during the call"):
        sf.fit_groups([1, 2, 1, 2], [0.5, 1, 3, 5], [7, 9, 7, 9], increasing="auto", bounds=(1, 2))


def test_queries_of_groups_outside_of_their_range_have_no_staircase():
    groups = np.array([5, -(2**63), 2**63 - 1, 4, 6], dtype=np.int64)
    out = np.full(5, 9.0)
    steps = np.array([0, 1]), np.array([0.0]), np.array([0.0]), np.array([3.0])
    places = np.zeros(1, dtype=np.int32)
    found = _evaluate.evaluate_groups(np.zeros(5), groups, 5, places, *steps, False, False, out)
    assert found == (-1, 1)
    assert out.tolist() == [3.0, 9.0, 9.0, 9.0, 9.0]


def room_for(guarded, n, n_pools, scale):
    pools = guarded(n_pools, np.int64), guarded((n_pools, scale.s_words + scale.w_words), np.uint64)
    return runs.ScoreSums(guarded(n), guarded(n), guarded(n, np.int64), *pools)


def sums_of(scores, targets, weights, guarded, scale):
    out = room_for(guarded, len(scores), len(scores), scale)
    return _score_sums.sum_rows(np.array(scores), np.array(targets), np.array(weights), scale, out), out


@pytest.mark.parametrize(
    ("scores", "sizes"), [([np.nan] * 4, (4, 0)), ([4.0, 1.0, 1.0, 0.0], (3, 1)), ([2.0, 2.0, 1.0, 1.0], (2, 2))]
)
def test_sums_of_scores_out_of_order_stay_within_the_room_for_all_rows(guarded, scores, sizes):
    scale = scale_of(Extent(-1, 0.5, 3.5, 0.5, False), UNIT_WEIGHTS, 9)
    assert sums_of(scores, [0.5, 1.5, 2.5, 3.5], [], guarded, scale)[0] == sizes


def test_a_weight_of_zero_is_never_taken_for_a_pool_that_is_not_there(guarded):
    scale = scale_of(Extent(-1, 0.5, 3.5, 0.5, False), UNIT_WEIGHTS, 9)
    (n, n_pools), out = sums_of([1.0, 2.0, 3.0], [0.5, 1.5, 2.5], [1.0, 0.0, 1.0], guarded, scale)
    assert (n, n_pools) == (3, 1)
    assert np.count_nonzero(out.w == 0) == n_pools


@pytest.mark.parametrize("y", [0.5, 1.0])
@pytest.mark.parametrize("x", [[np.nan, 1.0, np.nan], [np.nan] * 3, [3.0, 1.0, 2.0]])
def test_runs_with_scores_out_of_order_are_merged_in_finite_time(guarded, x, y):
    ours, other = np.array(x), np.array([0.0, np.nan, 1.0, 5.0])
    scale = scale_of(Extent(-1, 0.5, 3.5, 0.5, False), UNIT_WEIGHTS, 9)
    no_pools = np.empty(0, np.int64), np.empty((0, scale.s_words + scale.w_words), np.uint64)
    sums = [runs.ScoreSums(one, one * 0 + y, np.ones(len(one)).view(np.int64), *no_pools) for one in (ours, other)]
    n, n_pools = _score_sums.merge_entries(sums[0], scale, sums[1], scale, scale, room_for(guarded, 7, 3, scale))
    assert n <= 7
    assert n_pools <= 3


def test_integers_below_the_unit_of_sums_are_added_within_the_array(guarded):
    coarse = scale_of(Extent(-1, 1e40, 2e40, 1e40, False), UNIT_WEIGHTS, 9)
    assert coarse.y_unit > 64
    (_, n_pools), out = sums_of([1.0, 1.0], np.array([5, 2**62], dtype=np.int64), [], guarded, coarse)
    assert (out.words[:n_pools] == 0).sum() == coarse.s_words + coarse.w_words - 1  # only the weight, 2, is left


def test_integers_after_much_larger_numbers_give_the_staircase_of_all():
    online = sf.Online()
    online.extend([1.0, 2.0], [2e40, 1e40])
    online.extend([3.0, 4.0, 5.0], np.zeros(3, dtype=np.int64))
    assert online.staircase().values.tolist() == [6e39]


@pytest.mark.parametrize("weights", [[], [1.0, 2.0, 1.0], [1.0, 0.1, 1.0]])
def test_labels_other_than_0_and_1_are_counted_within_the_array(guarded, weights):
    scores, labels = np.array([1.0, 2.0, 3.0]), np.array([255, 0, 128], dtype=np.uint8)
    extent = extent_of(np.array(weights), 1) if weights else UNIT_WEIGHTS
    scale = scale_of(Extent(-1, 0.0, 1.0, 1.0, True), extent, 4)
    work = guarded(_venn.work_size(3, scale.w_words), np.uint64)
    n_steps = _venn.fit(scores, labels, np.array(weights), 1.0, scale, work, guarded(7), guarded((7, 2)))
    assert 1 <= n_steps <= 7


def test_an_anytime_fit_does_not_see_later_changes_of_its_inputs():
    scores, targets = np.arange(50.0), RNG.normal(size=50)
    expected = sf.fit(scores, targets, loss="log_cosh")
    rounds = sf.Anytime(scores, targets, loss="log_cosh")
    scores[:], targets[:] = np.nan, np.nan
    rounds.refine(tol=1e-12)
    assert np.allclose(rounds.staircase().values, expected.values, atol=1e-11)


@pytest.mark.long  # the checked build traps sums that overflow, as they may here
@pytest.mark.parametrize(
    ("column", "bad"), [("targets", np.nan), ("targets", np.inf), ("targets", -np.inf), ("weights", -np.inf)]
)
@pytest.mark.parametrize(
    "loss",
    [losses.Quantile(0.3), losses.Quantile(0.3, side="middle"), losses.Huber(1), losses.Expectile(0.2),
     losses.PseudoHuber(1), losses.LogCosh(1), losses.Power(1.5), losses.Logistic(np.arange(40) / 9), losses.Linex(2)],
    ids=lambda loss: loss.name,
)  # fmt: skip
def test_rounds_end_if_a_number_is_no_longer_finite(loss, column, bad):
    rng = np.random.default_rng(3)
    targets = rng.integers(0, 2, 40).astype(float) if loss.name == "logistic" else rng.normal(size=40)
    columns = {"targets": targets, "weights": rng.uniform(0.5, 1.0, 40)}
    columns[column][[3, 20]] = bad
    samples = Samples(np.arange(40.0), **columns, parameters=loss.parameters, ends=np.empty(0, np.uint8))
    runs = solve.rounds_of(samples, loss)
    while len(runs.open) and runs.n_rounds < 1000:
        runs.cut_all(halve=False, tol=0.0, deadline=np.inf)
    assert runs.n_rounds < 200


@pytest.mark.parametrize("path", ["few rows", "surveyed"])
def test_inputs_changed_by_a_thread_do_no_harm(path, request):
    if path == "surveyed":
        request.getfixturevalue(path)
    clean = RNG.random(60_000)
    scores, targets, weights = clean.copy(), RNG.normal(size=60_000), RNG.random(60_000) + 0.1
    done = threading.Event()

    def change():
        turned = 1e6 * clean[::-1]
        while not done.is_set():
            for content in (clean, turned, np.nan, clean, np.inf, clean):
                np.copyto(scores, content)
                np.copyto(weights, content)

    changing = threading.Thread(target=change)
    changing.start()
    try:
        for i in range(40):
            try:
                sf.fit(scores, targets, sample_weight=weights if i % 2 else None).predict(scores)
                sf.fit_groups(scores, targets, np.arange(60_000) % 9, sample_weight=weights)
            except (ValueError, RuntimeError, RuntimeWarning):  # a NaN, before or during the call
                pass
    finally:
        done.set()
        changing.join()


@pytest.mark.long  # the checked build traps sums that overflow, as they may here
@pytest.mark.skipif(not hasattr(os, "fork"), reason="the script needs fork")
def test_inputs_changed_by_a_process_do_no_harm():
    environment = {**os.environ, "PYTHONPATH": str(Path(sf.__file__).parents[1])}
    command = [sys.executable, SCRIPT, "--seconds", "4"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=500, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "calls with changing inputs" in done.stdout


@pytest.mark.parametrize("linex_shape", [0.0, 1.0])
@pytest.mark.parametrize("unit", [1, 3])
def test_online_rows_out_of_order_stay_within_the_memory_of_the_fit(linex_shape, unit):
    blocks = _online.OnlineBlocks(False, linex_shape)
    scores, targets = np.array([1.0, np.nan, np.nan, 0.5, np.nan] * 1000), np.arange(5000) / unit
    for _ in range(2):
        _online.extend(blocks, scores, targets, np.empty(0), extent_of(targets, 1), UNIT_WEIGHTS)
        assert len(blocks.state()["left"]) <= blocks.room
    assert blocks.n_rows == 10_000
    assert 1 <= len(blocks.steps(-np.inf, np.inf)[0]) <= 10_000
