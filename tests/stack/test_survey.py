"""The fit of unsorted rows by the survey equals the fit by sorting, bit for bit, for any distribution of scores."""

from unittest import mock

import numpy as np
import pytest
from comparing import assert_same_bits, assert_same_staircase, assert_steps
from reference import fitted_steps

import staircase_fast as sf
from staircase_fast.arithmetic.exact import scale_of
from staircase_fast.inputs.rows import read_columns
from staircase_fast.losses import SquaredError
from staircase_fast.losses.rows import check_rows
from staircase_fast.stack import sorted_rows, sorting, survey
from staircase_fast.staircase import _lookup, cells

pytestmark = pytest.mark.usefixtures("surveyed")

N = 30_000
RNG = np.random.default_rng(11)
U = RNG.random(N)

SCORES = {
    "uniform": U,
    "float32": U.astype(np.float32),
    "beta": RNG.beta(0.5, 3, N),
    "log-normal": RNG.lognormal(0, 3, N),
    "margins": RNG.normal(size=N) * 20,
    "clusters of 1e-7": np.round(U, 1) + 1e-7 * RNG.random(N),
    "clusters of 1e-9": np.round(U, 3) + 1e-9 * RNG.random(N),
    "neighbouring floats": 1 + np.round(300 * U) * 2**-52,
    "three digits": np.round(U, 3),
    "two scores": np.where(U < 0.5, 0.25, 0.75),
    "all tied": np.full(N, 0.5),
    "all infinite": np.full(N, np.inf),
    "all tied but one": np.append(0.1, np.full(N - 1, 0.5)),
    "half tied": np.where(U < 0.5, 0.3, U),
    "reversed": np.sort(U)[::-1].copy(),
    "one outlier": np.append(U[1:], 1e300),
    "huge": (U - 0.5) * 3e308,
    "subnormal": np.round(U * 1e4) * 5e-324,
    "infinities": np.where(U < 0.1, -np.inf, np.where(U > 0.8, np.inf, U)),
    "zeros of both signs": np.where(U < 0.3, -0.0, np.where(U < 0.6, 0.0, U)),
}


def rank(scores):
    return np.searchsorted(np.sort(scores), scores) / N


TARGETS = {
    "labels": lambda x: (RNG.random(N) < rank(x)).astype(np.uint8),
    "booleans as floats": lambda x: (RNG.random(N) < 0.2 + 0.1 * rank(x)).astype(float),
    "integers": lambda x: np.round(5 * rank(x) + 3 * RNG.normal(size=N)).astype(np.int32),
    "noise": lambda x: rank(x) + RNG.normal(size=N),
    "float32 noise": lambda x: (rank(x) + RNG.normal(size=N)).astype(np.float32),
    "the scores' own order": lambda x: rank(x) + 0.25,
    "constant": lambda x: np.full(N, 0.1),
    "outliers": lambda x: np.where(RNG.random(N) < 0.01, -1e16, rank(x)),
    "on the chord": lambda x: np.where(np.arange(N) % 2 == 0, 1.0, -1.0)[np.argsort(np.argsort(x))],
}


def excursions(dip):
    """Increments of a path that returns to zero at random places, or `dip` lower each time, and is above in between."""
    steps = np.empty(N)
    start = 0
    while start < N:
        size = 2 * int(RNG.integers(1, 400))
        up = np.sort(RNG.permutation(size)[: size // 2])  # the k-th rise is no later than the k-th fall
        walk = np.full(size, -1.0)
        walk[up] = 1.0
        level = np.cumsum(walk)
        walk = np.roll(walk, -(int(np.argmin(level)) + 1))
        walk[-1] -= dip
        steps[start : start + size] = walk[: N - start]
        start += size
    return steps


TARGETS |= {
    "far from zero": lambda x: 1e6 + rank(x) + RNG.normal(size=N),
    "farther, and closer together": lambda x: 1e9 + 1e-3 * (rank(x) + RNG.normal(size=N)),
    "heavy tails": lambda x: RNG.standard_cauchy(N),
    "separated labels": lambda x: rank(x) > 0.4,
    "nearly separated labels": lambda x: (rank(x) > 0.4) ^ (RNG.random(N) < 0.001),
    "plateaus": lambda x: np.floor(np.abs(8 * rank(x) - 3)) / 3,
    "large integers": lambda x: RNG.integers(-(2**45), 2**45, N),
    "touching the chord": lambda x: excursions(0)[np.argsort(np.argsort(x))],
    "just below the chord": lambda x: excursions(2.0**-40)[np.argsort(np.argsort(x))],
}
WEIGHTS = {"no weights": None, "weights": RNG.random(N) + 0.1, "integer weights": RNG.integers(1, 4, N)}


def rows_and_scale(scores, targets, weights):
    rows = check_rows(*read_columns(scores, targets, weights), SquaredError(), 1)
    return rows, scale_of(rows.targets_extent, rows.weights_extent, len(rows.scores))


@pytest.mark.parametrize("decreasing", [False, True])
@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("targets", TARGETS)
@pytest.mark.parametrize("scores", SCORES)
def test_the_survey_changes_nothing(scores, targets, weights, decreasing, monkeypatch):
    x = SCORES[scores]
    rows, scale = rows_and_scale(x, TARGETS[targets](x), WEIGHTS[weights])
    assert survey.suits(rows, scale)
    options = {"decreasing": decreasing, "bounds": (-np.inf, np.inf)}
    with monkeypatch.context() as patch:
        patch.setattr(survey, "_MANY_LIVE", np.inf)  # collect and finish run however many rows are live
        patch.delattr(survey, "fit_sorted")
        surveyed = survey.fit_unsorted(rows, scale, **options, n_threads=1)
    plain = sorted_rows.fit_sorted(sorting.in_score_order(rows), scale, **options)
    for one, other in zip(surveyed[:5], plain[:5], strict=True):
        assert_same_bits(one + 0, other + 0)


@pytest.mark.parametrize(("targets", "is_sorted"), [("noise", False), ("the scores' own order", True)])
def test_rows_are_sorted_instead_if_many_are_live(targets, is_sorted, monkeypatch):
    rows, scale = rows_and_scale(U, TARGETS[targets](U), None)
    calls = []

    def fit_sorted(*args, **options):
        calls.append(args)
        return sorted_rows.fit_sorted(*args, **options)

    monkeypatch.setattr(survey, "fit_sorted", fit_sorted)
    survey.fit_unsorted(rows, scale, decreasing=False, bounds=(-np.inf, np.inf), n_threads=1)
    assert len(calls) == is_sorted


@pytest.mark.parametrize("decreasing", [False, True])
@pytest.mark.parametrize(
    ("scores", "targets", "is_surveyed"),
    [
        ("uniform", "the scores' own order", False),
        ("uniform", "constant", True),
        ("neighbouring floats", "the scores' own order", True),  # 301 distinct scores
    ],
)
def test_rows_are_not_surveyed_if_many_steps_are_expected(scores, targets, is_surveyed, decreasing, monkeypatch):
    y = TARGETS[targets](SCORES[scores])
    rows, scale = rows_and_scale(SCORES[scores], -y if decreasing else y, WEIGHTS["weights"])
    monkeypatch.setattr(survey, "_LIVE_ROWS_PER_STEP", 2.7)
    calls = mock.Mock(side_effect=survey.survey)
    monkeypatch.setattr(survey, "survey", calls)
    survey.fit_unsorted(rows, scale, decreasing=decreasing, bounds=(-np.inf, np.inf), n_threads=1)
    assert calls.called == is_surveyed


@pytest.mark.parametrize("n", [25_000, 200_000])
def test_the_expected_share_of_live_rows_is_about_the_true_one(n, monkeypatch):
    x = RNG.random(n)
    rows, scale = rows_and_scale(x, x + RNG.normal(size=n), None)
    monkeypatch.setattr(survey, "_LIVE_ROWS_PER_STEP", 2.7)
    expected = survey.expected_share(rows, cells.sorted_sample(x), decreasing=False)
    monkeypatch.setattr(survey, "_MANY_LIVE", np.inf)
    finish = mock.Mock(side_effect=survey.finish)
    monkeypatch.setattr(survey, "finish", finish)
    survey.fit_unsorted(rows, scale, decreasing=False, bounds=(-np.inf, np.inf), n_threads=1)
    share = len(finish.call_args.args[0].places) / n
    assert share / 2 < expected < 4 * share


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("size", [1, 31, 32, 33, 255, 256, 257, 1000])
def test_summaries_are_those_of_all_rows_for_any_number_of_rows(weights, size):
    x, y = U[:size], RNG.integers(-9, 9, size).astype(float)
    w = np.empty(0) if WEIGHTS[weights] is None else np.ceil(WEIGHTS[weights][:size]).astype(float)
    bucket_map = cells.make_map(cells.sorted_sample(U), N // 16)
    table = np.empty((cells.n_buckets(bucket_map), 4), dtype=np.uint32)
    survey._survey.clear_summaries(table)
    survey._survey.survey(x, y, w, 0.0, bucket_map, survey.NO_BUCKETS, table)
    buckets = np.empty(size, dtype=np.int32)
    _lookup.locate(x, bucket_map, buckets)
    mass = w if len(w) else np.ones(size)
    np.testing.assert_array_equal(table[:, 0].view(np.float32), np.bincount(buckets, mass * y, len(table)))
    np.testing.assert_array_equal(table[:, 1].view(np.float32), np.bincount(buckets, mass, len(table)))
    np.testing.assert_array_equal(table[:, 2], np.bincount(buckets, minlength=len(table)))


@pytest.mark.parametrize("targets", ["noise", "float32 noise", "integers", "heavy tails", "just below the chord"])
def test_sums_of_runs_do_not_need_vectors(targets, monkeypatch):
    rows, scale = rows_and_scale(U, TARGETS[targets](U), WEIGHTS["weights"])
    bucket_map = cells.make_map(cells.sorted_sample(U), N // 16)
    live = np.zeros(cells.n_buckets(bucket_map), dtype=np.uint8)
    live[::50] = 1
    directory = np.empty(len(live) // 32 + 1, dtype=np.uint64)
    n_live = survey._survey.index_live(live, directory)
    buckets = survey.LiveBuckets(n_live, bucket_map, directory, np.empty(0), np.empty(0, dtype=np.int32))
    found = []
    for vectors in (survey._VECTORS, False):
        monkeypatch.setattr(survey, "_VECTORS", vectors)
        found.append(survey.collect(rows, scale, buckets, [slice(0, N)], summed=True)[1])
    assert found[0].rows.sum() > 0.9 * N
    for one, other in zip(found[0], found[-1], strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("targets", ["labels", "noise", "the scores' own order"])
@pytest.mark.parametrize("weights", WEIGHTS)
def test_nearly_sorted_rows_are_repaired_instead(targets, weights, monkeypatch):
    x = np.sort(U)
    for i in range(0, N - 9, 100):
        x[[i, i + 7]] = x[[i + 7, i]]
    y, w, shuffled = TARGETS[targets](x), WEIGHTS[weights], RNG.permutation(N)
    expected = sf.fit(x[shuffled], y[shuffled], sample_weight=None if w is None else w[shuffled])
    if w is not None or targets != "labels":  # the survey of labels is fast enough
        monkeypatch.delattr(survey, "fit_unsorted")
    assert_same_staircase(sf.fit(x, y, sample_weight=w), expected)


@pytest.mark.parametrize("scores", SCORES)
def test_the_bucket_map_is_monotone_and_covers_every_score(scores):
    x = np.sort(SCORES[scores])
    bucket_map = cells.make_map(cells.sorted_sample(x), 5000)
    neighbours = np.concatenate([x, np.nextafter(x, x.dtype.type(np.inf)), np.nextafter(x, x.dtype.type(-np.inf))])
    x = np.sort(np.concatenate([neighbours, np.array([-np.inf, -1.7e308, 0, 1.7e308, np.inf], dtype=np.float64)]))
    buckets = np.empty(len(x), dtype=np.int32)
    _lookup.locate(x, bucket_map, buckets)
    assert np.all(np.diff(buckets) >= 0)
    assert buckets[0] >= 0
    assert buckets[-1] < cells.n_buckets(bucket_map)


def test_few_rows_and_extreme_numbers_are_sorted():
    few = survey.FEW_ROWS - 1
    for x, y, w in (
        (U[:few], U[:few], None),
        (U, RNG.integers(-(2**62), 2**62, N), None),
        (U, U * 1e300, None),
        (U, U, 1e-200 * (1 + U)),
    ):
        assert not survey.suits(*rows_and_scale(x, y, w))


LATE = N - 7  # far beyond the rows that `guess_labels` checks
LABELS = (RNG.random(N) < U).astype(float)


def changed(column, value):
    copy = column.copy()
    copy[LATE] = value
    return copy


@pytest.mark.parametrize("odd", [0.5, 2.0, -1.0, 1e-300, -0.0])
@pytest.mark.parametrize("kind", [np.float64, np.float32, np.int64, np.int8])
def test_a_late_target_that_is_not_a_label_is_fitted_correctly(kind, odd):
    y = changed(LABELS.astype(kind), kind(odd))
    ranked = np.argsort(U)
    assert_same_staircase(sf.fit(U, y), sf.fit(U[ranked], y[ranked]))


def test_the_survey_reports_late_rows_that_are_not_labels():
    labels = rows_and_scale(U, LABELS, None)
    for column in ("scores", "targets"):
        rows = labels[0]._replace(**{column: changed(getattr(labels[0], column), np.nan)})
        with pytest.raises(survey.NotLabels, match="changed during the call"):
            survey.fit_unsorted(rows, labels[1], decreasing=False, bounds=(-np.inf, np.inf), n_threads=1)


@pytest.mark.parametrize("increasing", [True, "auto"])
def test_invalid_rows_among_labels_raise_an_error_that_names_the_row(increasing):
    for x, y, message in (
        (changed(U, np.nan), LABELS, f"`scores` must not be NaN; got nan at index {LATE}"),
        (U, changed(LABELS, np.nan), f"`targets` must be finite; got nan at index {LATE}"),
        (U, changed(LABELS, np.inf), f"`targets` must be finite; got inf at index {LATE}"),
        (changed(U.astype(np.float32), np.nan), LABELS, f"`scores` must not be NaN; got nan at index {LATE}"),
    ):
        with pytest.raises(ValueError, match=message):
            sf.fit(x, y, increasing=increasing)


@pytest.mark.parametrize("crowded", [False, True])
def test_buckets_with_more_than_65535_labels_are_counted(crowded):
    n, labels = 3 * N, np.tile(LABELS, 3)
    rows, _ = rows_and_scale(np.full(n, 0.5), labels, None)
    table = survey.survey(rows, cells.make_map(cells.sorted_sample(U), 10), [slice(0, n)], crowded=crowded)
    assert table.sum() == n + (int(labels.sum()) << 32)


def test_a_sample_shows_that_buckets_are_crowded():
    assert survey.greatest_share(np.array([0, 1, 1, 1, 5], dtype=np.int32)) == 0.6
    assert survey.greatest_share(np.empty(0, dtype=np.int32)) == 0


def test_infinite_scores_among_labels_are_valid():
    x = changed(U, np.inf)
    ranked = np.argsort(x)
    assert_same_staircase(sf.fit(x, LABELS), sf.fit(x[ranked], LABELS[ranked]))


@pytest.mark.parametrize("sign", [-1, 1])
def test_integers_beyond_the_precision_of_doubles_are_fitted_exactly(sign):
    """2**53 + 1 rounds to 2**53, so the extent of such a column does not show that it is inexact."""
    rng = np.random.default_rng(0)
    x = rng.permutation(N)
    y = sign * np.where(rng.random(N) * N < x, 2**53 + 1, rng.integers(0, 2, N) * 2**51)
    found = sf.fit(x, y, increasing=sign > 0)
    assert_steps(found, fitted_steps(x.tolist(), y.tolist(), increasing=sign > 0))
