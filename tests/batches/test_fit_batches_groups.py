"""`fit_batches` with groups: equal to `fit_groups` of all rows, bit for bit, within any memory limit."""

import itertools

import numpy as np
import pytest
from comparing import assert_same_staircase
from hypothesis import given
from hypothesis import strategies as st
from strategies import ANY_SCORES, TARGETS, WEIGHTS, kinds, rows

import staircase_fast as sf
from staircase_fast.batches.fitting_groups import fit_source_groups
from staircase_fast.batches.sources import source_of

NAMES = "s", "y", "w", "g"
RNG = np.random.default_rng(18)
N = 30_000
X = RNG.normal(size=N).round(2)
Y = (RNG.random(N) < 1 / (1 + np.exp(-X))).astype(np.int64)
W = RNG.integers(1, 4, N) / 4
G = RNG.choice(["oslo", "rome", "bonn", "kyiv"], N, p=[0.8, 0.1, 0.09, 0.01])


def tables(*columns, cuts):
    ends = [0, *cuts, len(columns[0])]
    named = [(name, column) for name, column in zip(NAMES, columns, strict=True) if column is not None]
    return [{name: column[a:b] for name, column in named} for a, b in itertools.pairwise(ends)]


def fit_within(memory, source, n_threads=1, progress=None, **options):
    """`fit_batches` with less memory than it allows."""
    settings = {"loss": "squared", "increasing": True, "bounds": None, "memory_limit": memory, **options}
    names = NAMES if "w" in source[0] else ("s", "y", None, "g")
    return fit_source_groups(source_of(source, []), names, settings, n_threads, progress)


def assert_same_map(found, expected):
    assert found == expected
    for key in expected:
        assert_same_staircase(found[key], expected[key])


@given(
    rows(
        ANY_SCORES,
        kinds(TARGETS, "labels", "decimals", "big integers", "600 decades"),
        kinds(WEIGHTS, "one", "decimals", "neighbours"),
    ),
    st.data(),
    st.sampled_from([1, 1500, 4000, 10**9]),
    st.sampled_from([True, False, "auto"]),
    st.booleans(),
)
def test_any_partition_and_order_gives_the_bits_of_fit_groups(drawn, data, memory, rising, weighted):
    n = len(drawn.scores)
    keys = data.draw(st.sampled_from([st.integers(-3, 3), st.text(max_size=1), st.booleans()]))
    own = np.array(data.draw(st.lists(keys, min_size=n, max_size=n)))
    x, y, w = drawn if weighted else (*drawn[:2], None)
    expected = sf.fit_groups(x, y, own, sample_weight=w, increasing=rising)
    order = np.array(data.draw(st.permutations(range(n))))
    cuts = sorted(data.draw(st.lists(st.integers(0, n), max_size=6)))
    source = tables(*(column if column is None else column[order] for column in (x, y, w, own)), cuts=cuts)
    assert_same_map(fit_within(memory, source, data.draw(st.integers(1, 3)), increasing=rising), expected)


@given(
    rows(targets=kinds(TARGETS, "decimals"), weights=kinds(WEIGHTS, "decimals")),
    st.integers(1, 9),
    st.sampled_from(["huber", "quantile", "log_cosh"]),
)
def test_groups_that_fit_into_memory_are_fitted_under_any_loss(drawn, size, loss):
    x, y, w = drawn
    own = np.arange(len(x)) % 3
    found = fit_within(2048 * 24, tables(x, y, w, own, cuts=range(size, len(x), size)), 2, loss=loss)
    assert_same_map(found, sf.fit_groups(x, y, own, sample_weight=w, loss=loss))


def kinds_of_scans(memory, source, **options):
    """The fit, and the scans that report progress in their order."""
    seen = []
    found = fit_within(memory, source, progress=lambda stage, *_: seen.append(stage), **options)
    return found, [stage for stage, _ in itertools.groupby(seen)]


CUTS = [10, 10, 5000, 7000, 29_999]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    ("memory", "scans"),
    [
        (10**9, ["count", "gather"]),
        (512 * 25_000, ["count", "gather"]),
        (512 * 4000, ["count", "gather", "survey", "collect"]),
        (512 * 100, ["count", "survey", "collect"]),
    ],
)
def test_a_scan_gathers_small_groups_and_large_ones_share_scans(memory, scans, weighted):
    w = W if weighted else None
    expected = sf.fit_groups(X, Y, G, sample_weight=w)
    source = tables(X, Y, w, G, cuts=CUTS)
    found, done = kinds_of_scans(memory, source)
    assert_same_map(found, expected)
    assert [stage for stage in dict.fromkeys(done) if stage != "pool"] == scans
    assert done.count("count") == 1
    assert_same_map(fit_within(memory, source, n_threads=3), expected)


def test_groups_are_gathered_in_as_few_scans_as_memory_allows():
    own = np.arange(N) % 300
    expected = sf.fit_groups(X, Y, own)
    source = tables(X, Y, None, own, cuts=CUTS)
    for memory, n_scans in ((512 * 100, 25), (512 * 1000, 3), (512 * 3000, 1)):
        seen = []
        found = fit_within(memory, source, progress=lambda *event, seen=seen: seen.append(event))
        assert_same_map(found, expected)
        assert seen.count(("gather", N, N)) == n_scans
    assert seen[0] == ("count", 10, None)


def test_many_small_batches_are_joined(monkeypatch):
    from staircase_fast.batches import fitting_groups

    monkeypatch.setattr(fitting_groups, "_WAITING_ROWS", 100)
    source = tables(X, Y, W, G, cuts=range(7, N, 7))
    assert_same_map(fit_within(10**9, source, n_threads=2), sf.fit_groups(X, Y, G, sample_weight=W))


def test_several_large_groups_share_a_scan_as_far_as_memory_allows(monkeypatch):
    from staircase_fast.batches import fitting_groups

    expected = sf.fit_groups(X, Y, G)
    source = tables(X, Y, None, G, cuts=CUTS)
    for bytes_per_scan, n_surveys in ((1, 1), (512 * 100 // 8, 2), (512 * 100, 4)):
        monkeypatch.setattr(fitting_groups, "_BYTES_PER_SCAN", bytes_per_scan)
        found, done = kinds_of_scans(512 * 100, source)
        assert_same_map(found, expected)
        assert done.count("survey") >= n_surveys
        assert bytes_per_scan > 1 or done[:2] == ["count", "survey"]


def test_files_with_a_column_of_groups(tmp_path):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import csv, parquet

    for place, table in enumerate(tables(X, Y, W, G, cuts=[10, 5000, 7000, 29_999])):
        parquet.write_table(pa.table(table), tmp_path / f"part-{place}.parquet", row_group_size=1500)
    csv.write_csv(pa.table(tables(X, Y, W, G, cuts=[])[0]), tmp_path / "all.csv")
    expected = sf.fit_groups(X, Y, G, sample_weight=W)
    for source in ("part-*.parquet", "all.csv"):
        assert_same_map(sf.fit_batches(tmp_path / source, "s", "y", "w", group="g", n_threads=2), expected)
    own = sf.fit_groups(X, Y, Y)
    assert_same_map(sf.fit_batches(tmp_path / "part-*", "s", "y", group="y"), own)


def test_tuples_and_frames_with_groups():
    pandas = pytest.importorskip("pandas")
    expected = sf.fit_groups(X, Y, G, sample_weight=W, loss="log", bounds=(0.1, 0.9))
    batches = tables(X, Y, W, G, cuts=CUTS)
    options = {"group": "g", "loss": "log", "bounds": (0.1, 0.9)}
    assert_same_map(sf.fit_batches([tuple(batch.values()) for batch in batches], **options), expected)
    assert_same_map(sf.fit_batches(lambda: map(pandas.DataFrame, batches), "s", "y", "w", **options), expected)
    some = [(X[:10], Y[:10], None, G[:10]), (X[10:], Y[10:], np.ones(N - 10), G[10:])]
    assert_same_map(sf.fit_batches(some, group="g"), sf.fit_groups(X, Y, G))
    shifted = pandas.Series(Y[:10], index=range(1, 11))
    with pytest.raises(sf.InvalidInputError, match="`scores` and `groups` must have the same index"):
        sf.fit_batches([(pandas.Series(X[:10]), pandas.Series(Y[:10]), None, shifted)], group="g")


def one_batch(keys, **columns):
    return [{"s": np.ones(len(keys)), "y": np.ones(len(keys)), "g": keys} | columns]


@pytest.mark.parametrize(
    ("source", "options", "message"),
    [
        ([], {}, "column 's' must have at least one row; got none"),
        (one_batch(["a", None]), {}, r"batch 0: column 'g' must not have missing entries; got None at index 1\."),
        (one_batch([1.5, 2.0]), {}, "batch 0: column 'g' must be integers, strings or bools; got 1.5 at index 0"),
        (
            one_batch(["a"]) + one_batch([1]),
            {},
            "column 'g' must be all integers, all strings or all bools; got ('a' and 1|1 and 'a')",
        ),
        (one_batch(["a", "b"], s=[1, np.nan]), {}, "batch 0: column 's' must not be NaN; got nan at index 1"),
        (one_batch(["a", "b"], w=[1, 0]), {"weight": "w"}, "column 'w' must have an entry > 0 in each group; all 1 of"),
        (one_batch(["a"]), {"group": "h"}, "batch 0: there is no column 'h'"),
        (one_batch(["a"]), {"group": 3}, "`group` must be the name of a column; got 3"),
        (one_batch(["a"]), {"increasing": 2}, "`increasing` must be"),
        (one_batch(["a"]), {"bounds": (2, 1)}, "`bounds` must"),
        (one_batch(["a"]), {"loss": sf.losses.Huber([1.0, 2.0])}, "`loss` must have the same parameter for all rows"),
        (iter(one_batch(["a"])), {}, "`source` must be readable several times to fit groups; got an iterator"),
        ([([1], [1], ["a"])], {}, r"batch 0: `source` must have batches \(scores, targets, weights or None, groups\)"),
    ],
)
def test_invalid_groups_raise_an_error(source, options, message):
    with pytest.raises(sf.InvalidInputError, match=message):
        sf.fit_batches(source, "s", "y", **{"group": "g", **options})


def test_losses_without_values_have_no_automatic_direction():
    rule = sf.losses.UpdateRule(lambda y1, lam1, y2, lam2: (y1, lam1))
    with pytest.raises(sf.InvalidTypeError, match="`increasing` must be True or False"):
        sf.fit_batches(one_batch(["a"]), "s", "y", group="g", loss=rule, increasing="auto")


def test_custom_losses_have_one_parameter_for_all_rows():
    x, y, own = X[:500], Y[:500], G[:500]
    custom = sf.losses.Custom(lambda z, y: z - y)
    found = sf.fit_batches(tables(x, y, None, own, cuts=[100]), "s", "y", group="g", loss=custom, increasing="auto")
    assert_same_map(found, sf.fit_groups(x, y, own, loss=custom, increasing="auto"))


def test_a_group_that_is_too_large_for_a_loss_names_the_memory_it_needs():
    source = tables(X, Y, None, G, cuts=CUTS)
    n = int((G == "oslo").sum())
    message = (
        "`memory_limit` must allow for the rows of each group, because steps under huber are not means; "
        f"got {n} rows of group 'oslo'. Raise it to {512 * n} bytes or more."
    )
    with pytest.raises(sf.InvalidInputError, match=message):
        fit_within(512 * n - 1, source, loss="huber")
    assert_same_map(fit_within(512 * n, source, loss="huber"), sf.fit_groups(X, Y, G, loss="huber"))


def test_a_source_of_groups_that_changes_is_refused():
    n_calls = 0

    def changing():
        nonlocal n_calls
        n_calls += 1
        return iter(tables(X[: N - n_calls], Y[: N - n_calls], None, G[: N - n_calls], cuts=CUTS[:4]))

    with pytest.raises(sf.InvalidInputError, match="`source` must return the same rows in each scan; got 29999 rows"):
        sf.fit_batches(changing, "s", "y", group="g")
