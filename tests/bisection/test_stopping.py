"""Fits in rounds: tolerances, numbers of rounds, time limits and interrupts."""

import itertools
import math
import os
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest
from comparing import assert_same_bits, assert_same_staircase
from fits_in_rounds import assert_monotone, at, every_other, every_strict, expected, problems, size_of

import staircase_fast as sf
from staircase_fast.bisection import rounds, solve

L = sf.losses
inf = math.inf
EPS = 2.0**-52
ROOT = Path(sf.__file__).resolve().parents[1]


@every_strict
def test_a_fit_that_is_stopped_has_true_bounds(case):
    for x, y, options, p in problems(case, range(1, 2), most=12):
        if case.kind is L.Linex and np.ndim(options["loss"].shape) == 0:
            continue  # a closed form
        scores, want = expected(case, x, y, options, p)
        slack = 6 * EPS * size_of(case, y, p, want)
        for stop in (
            {"max_rounds": 0},
            {"max_rounds": 1},
            {"max_rounds": 3},
            {"tol": 0.3},
            {"tol": 1e-6},
            {"max_seconds": 0},
        ):
            stairs = sf.fit(x, y, **options, **stop)
            assert_monotone(stairs)
            lower, upper = at(stairs, "lower", scores), at(stairs, "upper", scores)
            assert (lower <= want + slack).all(), (stop, x, y, options, p)
            assert (upper >= want - slack).all(), (stop, x, y, options, p)
            rises = 1 if options["increasing"] else -1
            assert (rises * np.diff(lower) >= 0).all()
            assert (rises * np.diff(upper) >= 0).all()
            if "tol" in stop:
                assert (upper - lower <= stop["tol"] + slack).all()
            if stop == {"max_rounds": 0}:
                assert stairs.n_steps == 1


def test_a_tolerance_saves_rounds_and_none_is_needed_for_closed_forms():
    for bad, error in ((-1, ValueError), (math.nan, ValueError), ("x", TypeError)):
        with pytest.raises(error, match="`tol` must"):
            sf.fit([1], [1], tol=bad)
        with pytest.raises(error, match="`max_seconds` must"):
            sf.fit([1], [1], max_seconds=bad)
    for bad, error in ((-1, ValueError), (1.5, TypeError), ("x", TypeError)):
        with pytest.raises(error, match="`max_rounds` must"):
            sf.fit([1], [1], max_rounds=bad)
    stopped = {"tol": 1.0, "max_rounds": 0, "max_seconds": 0.0}
    assert_same_staircase(sf.fit([1, 2], [2.0, 1.0], **stopped), sf.fit([1, 2], [2.0, 1.0]))


def rounds_of(loss, x, y, w=None, **options) -> int:
    """How many rounds a fit takes."""
    counted = []

    class Counted(rounds.Rounds):
        def blocks(self):
            counted.append(self.n_rounds)
            return super().blocks()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rounds, "Rounds", Counted)
        patch.setattr(solve.rounds, "Rounds", Counted)
        sf.fit(x, y, sample_weight=w, loss=loss, **options)
    return max(counted, default=0)


@every_other
def test_no_problem_needs_many_rounds(case):
    most = 0
    for x, y, options, _ in problems(case, range(6), most=40):
        if case.kind is L.Linex and np.ptp(y) > 1:
            continue
        most = max(most, rounds_of(options["loss"], x, y, options["sample_weight"], increasing=options["increasing"]))
    if case.kind is not L.Linex:
        n = np.arange(60)
        for y in (10.0 ** (n - 30), 10.0 ** (30 - n), -(10.0 ** (n - 30)), np.where(n == 59, -1e9, n)):
            targets = np.clip(y, 1e-300, 1 - 2.0**-50) if case.kind is L.Logistic else y
            most = max(most, *(rounds_of(loss, n, targets) for loss in case.makes()[:3]))
    assert most <= (200 if case.kind is L.Power else 150), most  # 154 for sixty decades of targets


def test_rows_of_one_target_need_no_rounds():
    assert rounds_of(L.Power(3.0), [0, 0, 1], [0.0, 0.0, 1.0]) <= 70


def test_a_root_at_zero_is_zero():
    assert sf.fit([0, 0, 1], [0.1, -0.1, 5.0], loss=L.Power(1.1)).values[0] == 0.0


@every_other
def test_a_few_thousand_rows_meet_the_conditions_of_an_optimum(case):
    """With P_n = sum of -l'_m(z_m): P_n >= 0 everywhere and 0 at the end of each step, within rounding."""
    rng = np.random.default_rng(14)
    n = 3000
    x = np.arange(n)
    y = np.clip(x / n + 0.3 * rng.normal(size=n), 0.001, 0.999)
    w = rng.integers(1, 10, n) / 10
    for loss in (case.make(), case.make(rng.choice(case.parameters[:2], n))):
        stairs = sf.fit(x, y, sample_weight=w, loss=loss)
        assert_monotone(stairs)
        z = stairs(x)
        if case.kind is L.Quantile:
            below = loss.derivative(np.nextafter(z, -inf), y) * w  # it jumps at z: any slope between is one
            above = loss.derivative(z, y) * w
            for a, b in zip(stairs.left.astype(int), stairs.right.astype(int), strict=True):
                assert below[a : b + 1].sum() <= 1e-9
                assert above[a : b + 1].sum() >= -1e-9
            continue
        p = np.cumsum(-loss.derivative(z, y) * w)
        curve = np.abs(loss.derivative(z + 1e-9, y) - loss.derivative(z - 1e-9, y)) / 2e-9
        slack = 1e-11 + 64 * EPS * np.cumsum(w * (1 + curve))
        assert (p >= -slack).all()
        ends = stairs.right.astype(int)
        assert (np.abs(p[ends]) <= slack[ends]).all()


@pytest.mark.parametrize("rows_at_once", [1, 100, 257, 1000])
def test_rows_looked_at_in_pieces_give_the_same_fit(rows_at_once, monkeypatch):
    rng = np.random.default_rng(15)
    n = 2000
    x, y, w = rng.integers(0, 5, n), rng.random(n), rng.integers(1, 9, n) / 8
    x[n // 2 :] = np.arange(n // 2) + 5  # ties longer than a chunk of 256, and distinct scores
    for loss in (L.LogCosh(0.1), L.Huber(0.05), L.Quantile(0.25), L.Logistic(rng.normal(size=n))):
        whole = sf.fit(x, y, sample_weight=w, loss=loss)
        monkeypatch.setattr(rounds, "ROWS_AT_ONCE", rows_at_once)
        assert_same_staircase(sf.fit(x, y, sample_weight=w, loss=loss), whole)
        monkeypatch.undo()


def test_a_round_goes_on_where_a_deadline_stopped_it(monkeypatch):
    rng = np.random.default_rng(16)
    y = rng.random(3000)
    problem = rounds.Problem(
        L.Power.kind, np.array([1.5]), y, np.empty(0), np.empty(0, dtype=np.uint8), has_location=True
    )
    whole, pieces = (rounds.Rounds(problem, rounds.first_run(3000, 0.0, 1.0, 0.5), L.Power(1.5)) for _ in range(2))
    monkeypatch.setattr(rounds, "ROWS_AT_ONCE", 300)
    while len(whole.open):
        whole.cut_all(halve=False, tol=0.0, deadline=inf)
        ticks = itertools.count()
        monkeypatch.setattr(rounds.time, "monotonic", lambda ticks=ticks: next(ticks) % 3)
        while not pieces.cut_all(halve=False, tol=0.0, deadline=2):
            pass
        monkeypatch.undo()
        monkeypatch.setattr(rounds, "ROWS_AT_ONCE", 300)
        for one, two in zip(whole.blocks(), pieces.blocks(), strict=True):
            assert_same_bits(one, two)


@every_other
def test_rows_come_in_any_type_and_order(case):
    y = np.array([0, 1, 0, 1, 1, 0, 1, 1])
    x = np.array([1, 1, 2, 2, 3, 4, 4, 4])
    p = np.resize(case.parameters[:2], 8)
    bounds = (-inf, inf) if case.kind is L.Logistic else None
    plain = sf.fit(x * 1.0, y * 1.0, loss=case.make(p), bounds=bounds)
    for scores, targets in ((x.astype(np.float32), y), (x, y.astype(bool)), (x.tolist(), y.astype(np.uint8))):
        assert_same_staircase(sf.fit(scores, targets, loss=case.make(p), bounds=bounds), plain)
    # descending, and with rows that are absent in between, each with its parameter
    backwards = sf.fit(-x[::-1], y[::-1], loss=case.make(p[::-1]), bounds=bounds, increasing=False)
    assert backwards(-x) == pytest.approx(plain(x), rel=1e-14, abs=0)
    padded = {
        "scores": np.append(np.repeat(x, 2), 99), "targets": np.append(np.repeat(y, 2), 0),
        "sample_weight": np.append(np.tile([0.0, 1.0], 8), 0), "loss": case.make(np.append(np.repeat(p, 2), p[0])),
    }  # fmt: skip
    padded["loss"] = case.make(np.where(padded["sample_weight"] > 0, getattr(padded["loss"], case.parameter), p[1]))
    found = sf.fit(**padded, bounds=bounds)
    for name in ("left", "right", "values", "weights", "counts"):
        assert_same_bits(getattr(found, name), getattr(plain, name))


def test_one_row_that_is_present_has_its_own_parameter():
    loss = L.Huber([1.0, 2.0, 3.0])
    stairs = sf.fit([1, 2, 3], [5.0, 6.0, 7.0], sample_weight=[0, 2, 0], loss=loss)
    assert (stairs.values.tolist(), stairs.left.tolist(), stairs.loss) == ([6.0], [2.0], loss)


def million(seed: int = 0):
    rng = np.random.default_rng(seed)
    x = np.arange(1_000_000.0)
    return x, np.sin(x / 3e5) + rng.normal(size=len(x))


def test_a_time_limit_is_kept_on_a_million_rows():
    x, y = million()
    loss = L.Power(1.7)
    start = time.perf_counter()
    sf.fit(x, y, loss=loss, max_seconds=0.0)
    overhead = time.perf_counter() - start  # of checking the rows, and of making a staircase
    for limit in (0.05, 0.2):
        start = time.perf_counter()
        stairs = sf.fit(x, y, loss=loss, max_seconds=limit)
        taken = time.perf_counter() - start
        assert taken <= limit + overhead + 1.0  # 0.05 on a machine of its own; others may use this one, too
        assert_monotone(stairs)
        assert (stairs.lower < stairs.upper).any()


@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_a_keyboard_interrupt_stops_a_long_fit_promptly():
    code = """
        import signal, time
        import numpy as np
        import staircase_fast as sf
        y = np.random.default_rng(0).normal(size=3_000_000)
        x = np.arange(len(y))
        p = np.linspace(1.2, 1.9, len(y))
        signal.setitimer(signal.ITIMER_REAL, 0.4)
        sent = time.monotonic() + 0.4
        signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(signal.SIGINT))
        try:
            while True:
                sf.fit(x, y, loss=sf.losses.Power(p))
        except KeyboardInterrupt:
            print(time.monotonic() - sent)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=60, cwd=ROOT, check=True
    )
    assert float(done.stdout) < 2.0  # 0.05 on a machine of its own


def test_a_cut_finds_the_last_minimum_after_batches_that_were_skipped():
    """Rows of skipped batches count for the rows after a minimum: later rows with the same sum are at the cut."""
    hidden = 0
    rng = np.random.default_rng(0)
    for _ in range(2000):
        y = rng.normal(size=150)
        sums = np.cumsum(0.5 - (y <= y[75]))
        minima = np.flatnonzero(sums == sums.min()) + 1
        if sums.min() >= 0 or minima[-1] == len(y) or minima[-1] - minima[0] < 64:
            continue
        hidden += 1
        problem = rounds.Problem(
            L.Quantile(0.5).kind, np.array([0.5]), y, np.empty(0), np.empty(0, dtype=np.uint8), True, True
        )
        for side, place in ((-1, minima[-1]), (1, minima[0])):
            first = rounds.first_run(len(y), -9.0, 9.0, y[75])
            first["side"] = side
            ours = rounds.Rounds(problem, first, L.Quantile(0.5))
            ours.cut_all(halve=True, tol=0.0, deadline=np.inf)
            assert sorted(ours.open["start"].tolist() + ours.done[-1]["start"].tolist()) == [0, place]
    assert hidden > 5


@pytest.mark.parametrize("level", [0.5, 0.99])
def test_quantiles_need_few_rounds_for_any_targets_and_weights(level):
    rng = np.random.default_rng(4)
    n = 3000
    x = np.arange(n)
    one_heavy = np.where(x == n // 2, 1e12, rng.random(n) + 0.1)
    for y, w, most in (
        (rng.normal(size=n), None, 25),
        (rng.normal(size=n), one_heavy, 40),
        (np.exp(50 * rng.normal(size=n)), rng.random(n) ** 8 + 1e-9, 40),
        (2.0 ** -rng.integers(0, 900, n), 2.0 ** rng.integers(0, 60, n), 40),
        (np.round(rng.normal(size=n), 1), None, 25),
    ):
        for side in ("lower", "middle"):
            options = {"sample_weight": w, "loss": L.Quantile(level, side=side)}
            limited, expected = sf.fit(x, y, max_rounds=most, **options), sf.fit(x, y, **options)
            assert_same_bits(limited.left, expected.left)
            assert_same_bits(limited.values, expected.values)
