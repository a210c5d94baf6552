"""Groups whose rows are spread over partitions: equal to `fit_groups`, bit for bit, without an engine."""

import pickle

import numpy as np
import pytest
from comparing import assert_same_staircase
from hypothesis import given
from hypothesis import strategies as st
from strategies import TARGETS, WEIGHTS, kinds, rows

import staircase_fast as sf
from staircase_fast.batches import Driver, groups
from staircase_fast.losses import loss_of

SQUARED = loss_of("squared")


def fit_partitions(partitions, most_rows, **options):
    """Fit partitions, each (scores, targets, weights, groups)."""
    counts = groups.merge_counts([groups.count_groups(*columns, SQUARED) for columns in partitions])
    plan = pickle.loads(pickle.dumps(groups.GroupPlan(counts, most_rows)))
    large = {place: Driver(n_rows=int(plan.sizes[place]), **options) for place in plan.large}
    while tasks := {place: task for place, driver in large.items() if (task := driver.next()) is not None}:
        found = []
        for columns in partitions:
            scans = {place: task.begin() for place, task in tasks.items()}
            groups.scan_groups(scans, *columns, plan)
            found.append({place: scan.message() for place, scan in scans.items()})
        for place, message in groups.merge_messages(found).items():
            large[place].receive(message)
    pieces = zip(*(groups.split_rows(*columns, plan) for columns in partitions), strict=True)
    options = {"loss": SQUARED, "increasing": True, "bounds": None, **options}
    ranges = {
        place: groups.fit_range(own, plan, place, **options) for place, own in zip(plan.small, pieces, strict=True)
    }
    return plan, plan.join(ranges, {place: driver.staircase() for place, driver in large.items()}, SQUARED)


@given(
    rows(targets=kinds(TARGETS, "labels", "decimals"), weights=kinds(WEIGHTS, "one", "decimals")),
    st.data(),
    st.sampled_from([1, 3, 8, 1000]),
    st.sampled_from([True, False, "auto"]),
)
def test_any_partitions_give_the_bits_of_fit_groups(drawn, data, most_rows, rising):
    n = len(drawn.scores)
    keys = data.draw(st.sampled_from([st.integers(-3, 3), st.text(max_size=1), st.booleans()]))
    own = np.array(data.draw(st.lists(keys, min_size=n, max_size=n)))
    cuts = sorted(data.draw(st.lists(st.integers(0, n), max_size=6)))
    partitions = list(zip(*(np.split(column, cuts) for column in (*drawn, own)), strict=True))
    _, found = fit_partitions(partitions, most_rows, increasing=rising)
    expected = sf.fit_groups(drawn.scores, drawn.targets, own, sample_weight=drawn.weights, increasing=rising)
    assert found == expected
    for key in expected:
        assert_same_staircase(found[key], expected[key])


def test_ranges_have_few_rows_and_large_groups_are_alone():
    keys = np.repeat([4, 2, 9, 5, 7], [3, 4, 50, 2, 9])
    x = np.arange(len(keys)) % 10
    plan, found = fit_partitions([(x[::2], x[::2], None, keys[::2]), (x[1::2], x[1::2], None, keys[1::2])], 10)
    assert plan.keys == [2, 4, 5, 7, 9]
    assert plan.starts.tolist() == [0, 4]
    assert plan.large == [4]
    assert found == sf.fit_groups(x, x, keys)


def counted(keys, weights=None):
    return groups.count_groups(np.ones(len(keys)), np.ones(len(keys)), weights, keys, SQUARED)


def test_invalid_groups_raise_an_error():
    with pytest.raises(sf.InvalidTypeError, match="must be all integers, all strings or all bools; got 1 and 'a'"):
        groups.merge_counts([counted([1]), counted([]), counted(["a"])])
    with pytest.raises(sf.InvalidTypeError, match="got True and 1"):
        groups.merge_counts([counted([True]), counted([1])])
    with pytest.raises(sf.InvalidInputError, match="must have at least one row"):
        groups.GroupPlan(groups.merge_counts([]), 5)
    with pytest.raises(sf.InvalidInputError, match="an entry > 0 in each group; all 2 of group 'b' are 0"):
        groups.GroupPlan(counted(["a", "b", "b"], [1, 0, 0]), 5)


def test_rows_that_change_between_the_scans_are_refused():
    plan = groups.GroupPlan(counted(["a", "b"]), 5)
    one, two = np.ones(1), np.ones(2)
    with pytest.raises(sf.InvalidInputError, match="must return the same rows in each scan; group 'c' is new"):
        groups.split_rows(one, one, None, ["c"], plan)
    options = {"loss": SQUARED, "increasing": True, "bounds": None}
    with pytest.raises(sf.InvalidInputError, match="got 2 rows of group 'a' and the next ones, then 1"):
        groups.fit_range(groups.split_rows(one, one, None, ["a"], plan), plan, 0, **options)
    pieces = groups.split_rows(two, two, np.full(2, 1.7e308), ["a", "a"], plan)
    with pytest.raises(sf.InvalidInputError, match=r"finite sum.*\(group 'a'\)"):
        groups.fit_range(pieces, plan, 0, **options)
