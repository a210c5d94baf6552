"""Scans of parts of the rows: for any partitions, order, types and memory, the result is that of one fit."""

import itertools
import json
import pickle

import numpy as np
import pytest
from comparing import assert_same_staircase
from hypothesis import given
from hypothesis import strategies as st
from strategies import ANY_SCORES, ANY_TARGETS, SCORES, TARGETS, WEIGHTS, kinds, rows

import staircase_fast as sf
from staircase_fast.batches import Driver, Message, PeekTask, buckets, messages, scans
from staircase_fast.staircase import cells

inf = float("inf")
WEIGHT_KINDS = kinds(WEIGHTS, "one", "integers, zero too", "decimals", "600 decades", "neighbours")


def by_driver(partitions, *, n_peeked=1, carry=lambda message: message, tree=False, log=None, **options):
    """The fit of partitions, each a list of batches."""
    driver = Driver(**options)
    while (task := driver.next()) is not None:
        if log is not None:
            log.append(task.kind)
        task = pickle.loads(pickle.dumps(task))
        peek = isinstance(task, PeekTask)
        found = [carry(task(batches)) for batches in (partitions[:n_peeked] if peek else partitions)]
        found = found or [task([])]
        while tree and len(found) > 1:
            found = [found[i].merge(*found[i + 1 : i + 2]) for i in range(0, len(found), 2)]
        driver.receive(found[0].merge(*found[1:]), len(found) / max(1, len(partitions)))
    assert driver.next() is None
    return driver.staircase()


def divided(columns, cuts):
    pieces = [[None] * (len(cuts) + 1) if c is None else np.split(c, sorted(cuts)) for c in columns]
    return list(zip(*pieces, strict=True))


def noisy(n, kind="labels", seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    if kind == "labels":
        return x, (rng.random(n) < 1 / (1 + np.exp(-x))).astype(np.uint8), None
    y = x + 2 * rng.normal(size=n)
    return x, y, rng.random(n) if kind == "weights" else None


@given(
    rows(ANY_SCORES, ANY_TARGETS, WEIGHT_KINDS),
    st.lists(st.integers(0, 24), max_size=8),
    st.integers(0, 3),
    st.sampled_from([300, 2000, 10**9]),
    st.sampled_from([True, False, "auto"]),
    st.booleans(),
    st.randoms(use_true_random=False),
)
def test_any_partition_order_and_memory_gives_the_bits_of_fit(drawn, cuts, n_peeked, memory, rising, tree, random):
    expected = sf.fit(drawn.scores, drawn.targets, sample_weight=drawn.weights, increasing=rising)
    order = list(range(len(drawn.scores)))
    random.shuffle(order)
    batches = divided(drawn.take(np.array(order)), [min(cut, len(order)) for cut in cuts])
    partitions = [list(group) for _, group in itertools.groupby(batches, key=lambda _: random.random() < 0.5)]
    options = {"memory_limit": memory, "increasing": rising, "n_peeked": n_peeked, "tree": tree}
    assert_same_staircase(by_driver(partitions, **options), expected)


@given(rows(kinds(SCORES, "float32"), kinds(TARGETS, "labels", "integers"), kinds(WEIGHTS, "one")), st.data())
def test_types_may_differ_from_batch_to_batch(drawn, data):
    types = st.sampled_from(["f4", "f8"]), st.sampled_from(["i1", "i4", "i8", "f4", "f8"]), st.booleans()
    partitions = []
    for x, y, w in divided(drawn, [5, 9, 9, 13]):
        x_type, y_type, weighted = (data.draw(kind) for kind in types)
        partitions.append([(x.astype(x_type), y.astype(y_type), w if weighted else None)])
    expected = sf.fit(drawn.scores, drawn.targets)
    assert_same_staircase(by_driver(partitions, memory_limit=data.draw(st.sampled_from([300, 10**9]))), expected)


@pytest.mark.parametrize("kind", ["labels", "reals", "weights"])
@pytest.mark.parametrize("n_peeked", [0, 1, 9])
@pytest.mark.parametrize(("memory", "scans_needed"), [(10**9, 3), (3 * 10**6, 4), (10**6, 4)])
def test_little_memory_needs_further_scans_but_gives_the_same_bits(kind, n_peeked, memory, scans_needed):
    given_columns = noisy(200_000, kind)
    partitions = [[batch] for batch in divided(given_columns, [0, 7, 8, 30_000, 30_000, 120_000, 199_999, 200_000])]
    log = []
    found = by_driver(partitions, n_peeked=n_peeked, memory_limit=memory, increasing="auto", log=log)
    assert_same_staircase(found, sf.fit(*given_columns[:2], sample_weight=given_columns[2]))
    assert len(log) >= scans_needed
    assert log[-1] == "collect"
    assert set(log[1:-1]) == {"survey"}


def test_messages_travel_as_bytes():
    columns = noisy(30_000)
    partitions = [[batch] for batch in divided(columns, [1, 10_000])]
    sent = []

    def carry(message):
        sent.append(message.to_bytes())
        return Message.from_bytes(sent[-1])

    found = by_driver(partitions, carry=carry, memory_limit=10**6)
    assert_same_staircase(found, sf.fit(*columns[:2]))
    assert {json.loads(data[64:].partition(b"\0")[0])["kind"] for data in sent} == {"peek", "survey", "collect"}
    found = by_driver(partitions, carry=carry, one_scan=True)
    assert_same_staircase(found, sf.fit(*columns[:2]))


def test_merging_changes_no_message():
    columns = noisy(1000, "weights")
    driver = Driver()
    driver.receive(driver.next()([]))
    task = driver.next()
    parts = [task([batch]) for batch in divided(columns, [300, 600])]
    before = [part.to_bytes() for part in parts]
    one, other = parts[0].merge(*parts[1:]), parts[2].merge(parts[0]).merge(parts[1])
    assert [part.to_bytes() for part in parts] == before
    for name in ("table", "sample", "was_live"):
        assert np.allclose(np.sort(one.arrays[name], axis=0), np.sort(other.arrays[name], axis=0), equal_nan=True)
    driver.receive(other)
    again = [driver.next()([batch]) for batch in divided(columns, [10])]
    driver.receive(again[1].merge(again[0]))
    assert_same_staircase(driver.staircase(), sf.fit(columns[0], columns[1], sample_weight=columns[2]))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda data: b"something else", "must be a message of staircase_fast"),
        (lambda data: data[:-70], "must be an undamaged message"),
        (lambda data: data.replace(b'"version": 1', b'"version": 9'), "version 1; use one version"),
        (lambda data: data.replace(b'"<f8"', b'"<m8"'), "an array has type <m8"),
    ],
)
def test_damaged_messages_are_refused(damage, message):
    data = PeekTask(0, sf.losses.SquaredError())([([1.0, 2.0], [3.0, 4.0])]).to_bytes()
    with pytest.raises(sf.InvalidInputError, match=message):
        Message.from_bytes(damage(data))


def test_messages_of_different_scans_are_not_merged():
    loss = sf.losses.SquaredError()
    with pytest.raises(sf.InvalidInputError, match="must be of one scan; got peek 0 and peek 1"):
        PeekTask(0, loss)([]).merge(PeekTask(1, loss)([]))
    driver = Driver()
    with pytest.raises(sf.InvalidInputError, match="must be a message of peek 0; got peek 1"):
        driver.receive(PeekTask(1, loss)([]))
    with pytest.raises(RuntimeError, match="not finished"):
        driver.staircase()


@pytest.mark.parametrize(
    ("batch", "message"),
    [
        (([1.0, np.nan], [0, 1]), r"^batch 1: `scores` must not be NaN; got nan at index 1\. Drop these rows"),
        (([1.0, 2.0], [0, inf]), r"^batch 1: `targets` must be finite; got inf at index 1\. Drop these rows"),
        (([1.0, 2.0], [0, 1], [1, -2]), r"^batch 1: `sample_weight` must be >= 0; got -2.0 at index 1\.$"),
        (([1.0, 2.0], [0]), r"^batch 1: `scores` and `targets` must have one entry per row"),
    ],
)
def test_errors_name_the_batch_and_the_row(batch, message):
    task = PeekTask(0, sf.losses.SquaredError())
    with pytest.raises(sf.InvalidInputError, match=message):
        task([([], []), batch])


def test_no_rows_and_no_weights_are_refused_as_in_fit():
    with pytest.raises(sf.InvalidInputError, match="`scores` must have at least one row; got none"):
        by_driver([[], [([], [])]])
    with pytest.raises(sf.InvalidInputError, match="`sample_weight` must have an entry > 0; all 3 are zero"):
        by_driver([[([1, 2], [0, 1], [0, 0])], [([1], [1], [0])]])
    with pytest.raises(sf.InvalidInputError, match="must have a finite sum"):
        by_driver([[([1], [0], [1e308])], [([1], [1], [1e308])]])


def test_losses_that_need_many_scans_are_refused():
    for loss in ("huber", sf.losses.PoissonDeviance([1.0, 2.0])):
        with pytest.raises(sf.InvalidTypeError, match=r"`loss` must have steps that are means.*Use `fit`"):
            Driver(loss=loss if loss != "huber" else sf.losses.Huber(1.0))


def test_targets_must_suit_the_loss():
    with pytest.raises(sf.InvalidInputError, match="batch 0: `targets` must be"):
        by_driver([[([1.0], [2.0])]], loss="log")


@pytest.mark.parametrize("change", ["rows", "scores", "targets", "weights"])
def test_a_source_that_changes_between_scans_is_refused(change):
    x, y, w = noisy(1000, "weights")
    driver = Driver()
    for _ in range(2):
        driver.receive(driver.next()([(x, y, w)]))
    if change == "rows":
        batches = [(x[1:], y[1:], w[1:])]
    else:
        column = {"scores": x, "targets": y, "weights": w}[change]
        column[17] *= 1.5
        batches = [(x, y, w)]
    with pytest.raises(sf.InvalidInputError, match="`source` must return the same rows in each scan"):
        driver.receive(driver.next()(batches))


def test_bounds_and_directions_are_those_of_fit():
    x, y, _ = noisy(5000, "reals")
    for rising, bounds in itertools.product((True, False, "auto"), (None, (0, 1), (None, 0.5))):
        found = by_driver([[(x, y)]], increasing=rising, bounds=bounds, memory_limit=10**5)
        assert_same_staircase(found, sf.fit(x, y, increasing=rising, bounds=bounds))
        found = by_driver([[(-x, y)]], increasing=rising, bounds=bounds, one_scan=True)
        assert_same_staircase(found, sf.fit(-x, y, increasing=rising, bounds=bounds))


@pytest.mark.parametrize("kind", ["labels", "reals", "weights"])
def test_few_distinct_scores_need_little_memory(kind):
    x, y, w = noisy(300_000, kind)
    x = np.round(x, 2)
    log = []
    parts = [[batch] for batch in divided((x, y, w), [100_000, 150_000])]
    found = by_driver(parts, memory_limit=10**6, log=log)
    assert_same_staircase(found, sf.fit(x, y, sample_weight=w))
    assert log == ["peek", "survey", "collect"]


def test_neighbouring_floats_are_separated():
    rng = np.random.default_rng(3)
    x = np.append(1.0 + rng.integers(0, 40, 100_000) * 2.0**-52, rng.normal(size=3000) * 1e9)
    y = (rng.random(len(x)) < 0.5).astype(np.uint8)
    assert_same_staircase(by_driver([[(x, y)]], memory_limit=2 * 10**5), sf.fit(x, y))


@pytest.mark.parametrize(
    ("y", "w"),
    [
        (np.array([1.0, 3e30, 2.0]), None),
        (np.array([1.0, 3.0, 2.0]), np.array([1.0, 1e-12, 1.0])),
        (np.array([2**53 + 1, 2**53 + 3, 2**53 + 2]), None),
    ],
)
def test_numbers_that_a_survey_cannot_sum_are_pooled(y, w):
    x, log = np.array([1.0, 2.0, 3.0]), []
    found = by_driver([[batch] for batch in divided((x, y, w), [1])], log=log)
    assert_same_staircase(found, sf.fit(x, y, sample_weight=w))
    assert log == ["peek", "survey", "pool"]


def test_live_rows_that_never_get_fewer_are_pooled():
    """Every row can end a step, and every score comes often enough to be summed, but the sample shows only some."""
    x = np.repeat(np.arange(4000.0), 30)
    log = []
    found = by_driver([[(x, x * x)]], memory_limit=4 * 10**5, log=log)
    assert_same_staircase(found, sf.fit(x, x * x))
    assert log[-1] == "pool"


def test_too_many_steps_for_the_memory_raise_an_error_that_says_so():
    x = np.arange(100_000.0)
    with pytest.raises(sf.InvalidInputError, match="Raise `memory_limit`"):
        by_driver([[(x, x)]], memory_limit=10**5)


def test_scores_sorted_by_partition_cost_one_more_scan():
    x, y, _ = noisy(200_000)
    order = np.argsort(x)
    parts = [[batch] for batch in divided((x[order], y[order], None), range(5000, 200_000, 5000))]
    log = []
    assert_same_staircase(by_driver(parts, memory_limit=3 * 10**6, log=log), sf.fit(x, y))
    assert log == ["peek", "survey", "survey", "collect"]


def test_targets_that_are_labels_only_at_first():
    x, y, _ = noisy(100_000)
    more = x[:1000] * 3.7, y[:1000] + 0.25
    expected = sf.fit(np.append(x, more[0]), np.append(y, more[1]))
    for partitions in ([[(x, y), more]], [[(x, y)], [more]], [[more], [(x, y)]]):
        assert_same_staircase(by_driver(partitions, memory_limit=3 * 10**6), expected)


@pytest.mark.parametrize("kind", ["labels", "reals", "weights"])
def test_more_rows_than_a_table_counts(kind, monkeypatch):
    """As with 2**32 rows and more, but with lower limits."""
    monkeypatch.setattr(scans, "_MOST_IN_WORDS", 70_000)
    monkeypatch.setattr(messages, "FEW_ROWS", 150_000)
    x, y, w = noisy(400_000, kind)
    parts = [[batch] for batch in divided((x, y, w), [90_000, 180_000, 200_000])]
    log = []
    assert_same_staircase(by_driver(parts, log=log, memory_limit=10**7), sf.fit(x, y, sample_weight=w))
    assert log[-1] == "collect"


def test_a_batch_may_be_overwritten_after_it_was_added():
    x, y, _ = noisy(3000)
    room = np.empty(10), np.empty(10, dtype=np.uint8)

    def batches():
        for start in range(0, len(x), 10):
            room[0][:], room[1][:] = x[start : start + 10], y[start : start + 10]
            yield room

    driver = Driver()
    while (task := driver.next()) is not None:
        driver.receive(task(batches()))
    assert_same_staircase(driver.staircase(), sf.fit(x, y))


@given(st.lists(st.floats(allow_nan=False), min_size=30, max_size=60), st.integers(0, 2**30 - 1))
def test_refined_buckets_are_monotone_and_keep_borders(scores, bits):
    x = np.sort(np.array(scores))
    finite = x[np.isfinite(x)]
    coarse = buckets.Buckets(cells.make_map(finite, 5))
    found, maps = coarse, [coarse.find(x)]
    for level in range(2):
        live = np.array([(bits >> (b + 15 * level) % 30) & 1 for b in range(found.n)], dtype=np.uint8)
        was = live[maps[-1]]
        found = pickle.loads(pickle.dumps(found.refined(live, cells.make_map(finite, 9))))
        marks = np.zeros(found.n, dtype=np.uint8)
        maps.append(found.find(x, marks))
        assert np.all(np.diff(maps[-1]) >= 0)
        assert maps[-1].max() < found.n
        np.testing.assert_array_equal(marks[maps[-1]], was)
        np.testing.assert_array_equal(found.still_live(x), x[was == 1])


def test_samples_of_many_rows_are_thinned_in_every_round(monkeypatch):
    for module in (messages, scans):
        monkeypatch.setattr(module, "MOST_SAMPLED", 1000)
    x, y, _ = noisy(200_000)
    parts = [[batch] for batch in divided((x, y, None), [50_000, 50_500])]
    log = []
    assert_same_staircase(by_driver(parts, memory_limit=3 * 10**6, n_peeked=0, log=log), sf.fit(x, y))
    assert log.count("survey") >= 2


@pytest.mark.parametrize("kind", ["labels", "reals", "weights"])
def test_if_all_buckets_are_live_surveys_divide_one_range_of_scores_after_another(kind):
    """As with 10**11 rows and a limit of 1 GB: no first survey is fine enough."""
    columns, log = noisy(300_000, kind), []
    driver_memory = 6 * 10**5 if kind == "labels" else 2 * 10**6
    found = by_driver([[batch] for batch in divided(columns, [1000])], memory_limit=driver_memory, log=log)
    assert_same_staircase(found, sf.fit(*columns[:2], sample_weight=columns[2]))
    assert log.count("survey") > 3
    assert log[-1] == "collect"


def test_tables_of_labels_are_wide_from_2_to_the_32_rows_on():
    sizes = [Driver(n_rows=n)._bytes_per_bucket(labels=True) for n in (2**32 - 1, 2**32)]
    assert sizes == [8, 32]
