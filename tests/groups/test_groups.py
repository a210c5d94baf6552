"""fit_groups: each staircase equals the fit of its rows, to the last bit."""

import collections

import numpy as np
import pandas as pd
import problems
import pyarrow as pa
import pytest
from comparing import assert_same_bits, assert_same_staircase
from hypothesis import given
from hypothesis import strategies as st
from pandas.arrays import ArrowExtensionArray
from pyarrow.compute import run_end_encode
from strategies import rows as any_rows

import staircase_fast as sf
from staircase_fast import threads
from staircase_fast.groups import fits, grouped
from staircase_fast.stack import survey

try:
    import polars as pl
except ModuleNotFoundError:  # no wheel for this interpreter
    pl = None

RNG = np.random.default_rng(11)


@pytest.fixture
def many_parts(monkeypatch):
    """Some hundred rows are shared among threads, and cut into parts, as many are; large groups have 50."""
    monkeypatch.setattr(threads, "ROWS_EACH", 50)
    monkeypatch.setattr(grouped, "_PART_ROWS", 64)
    monkeypatch.setattr(grouped, "_ROWS_AT_ONCE", 100)


def assert_each_is_the_fit_of_its_rows(found, scores, targets, groups, sample_weight=None, **options):
    scores, targets, groups = (np.asarray(column) for column in (scores, targets, groups))
    assert list(found) == sorted(set(groups.tolist()))
    for key in found:
        own = np.flatnonzero(groups == key)
        loss = options.get("loss", "squared")
        if isinstance(loss, sf.losses.Loss) and loss.per_sample:
            loss = loss.of_rows(own)
        weights = None if sample_weight is None else np.asarray(sample_weight)[own]
        alone = sf.fit(scores[own], targets[own], sample_weight=weights, **{**options, "loss": loss})
        assert_same_staircase(found[key], alone)


def check(scores, targets, groups, **options):
    found = sf.fit_groups(scores, targets, groups, **options)
    options.pop("n_threads", None)
    assert_each_is_the_fit_of_its_rows(found, scores, targets, groups, **options)
    return found


@given(any_rows(), st.integers(1, 6), st.sampled_from([True, False, "auto"]), st.booleans())
def test_each_group_equals_the_fit_of_its_rows(rows, n_groups, increasing, weighted):
    groups = np.arange(len(rows.scores)) * 7 % 5 % n_groups
    weights = rows.weights if weighted else None
    if weighted and np.any(np.bincount(groups, rows.weights > 0)[np.unique(groups)] == 0):
        with pytest.raises(ValueError, match="in each group"):
            sf.fit_groups(rows.scores, rows.targets, groups, sample_weight=weights)
        return
    check(rows.scores, rows.targets, groups, sample_weight=weights, increasing=increasing)


KINDS = {
    "labels": lambda x: RNG.random(len(x)) < x,
    "float labels": lambda x: (RNG.random(len(x)) < x).astype(float),
    "noise": lambda x: x + RNG.normal(size=len(x)),
    "float32": lambda x: (x + RNG.normal(size=len(x))).astype(np.float32),
    "integers": lambda x: np.round(9 * x + RNG.normal(size=len(x))).astype(np.int32),
    "labels but one": lambda x: np.append(RNG.random(len(x) - 1) < x[:-1], 0.25),
}
SCORES = {
    "uniform": RNG.random,
    "normal": lambda n: 30 * RNG.normal(size=n),
    "ties": lambda n: np.round(RNG.random(n), 1),
    "float32": lambda n: RNG.random(n).astype(np.float32),
    "log-normal": lambda n: np.exp(20 * RNG.normal(size=n)),
    "clusters": lambda n: RNG.choice([1.0, 1e9], n) + 1e-12 * RNG.random(n),
    "infinities": lambda n: RNG.choice([-np.inf, -1.0, -0.0, 0.0, 2.5, np.inf], n),
    "widest": lambda n: RNG.choice([-1.7e308, 1.7e308, 5e-324, 0.0, -5e-324], n) * RNG.choice([1.0, 0.5], n),
    "all tied": lambda n: np.full(n, 3.25),
}


@pytest.mark.usefixtures("many_parts")
@pytest.mark.parametrize("n_threads", [1, 3])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scores", SCORES)
def test_groups_of_all_sizes_equal_their_own_fits(scores, kind, n_threads):
    n = 1500
    x = SCORES[scores](n)
    ranks = np.argsort(np.argsort(x)) / n
    y = KINDS[kind](ranks)
    shuffled = np.minimum(RNG.geometric(0.05, n), 40)
    for groups in (shuffled, np.sort(shuffled), -np.sort(shuffled), np.sort(shuffled)[::-1] % 17):
        check(x, y, groups, n_threads=n_threads)
    check(x, y, shuffled, n_threads=n_threads, increasing=False, bounds=(0.25, None))
    check(x, y, shuffled, n_threads=n_threads, sample_weight=RNG.integers(1, 4, n), increasing="auto")
    check(x, y, shuffled, n_threads=n_threads, sample_weight=RNG.random(n) + 0.1)


@pytest.mark.usefixtures("many_parts")
@pytest.mark.parametrize("kind", ["labels", "noise"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("increasing", [True, "auto"])
def test_large_groups_equal_their_own_fits(monkeypatch, kind, weighted, increasing):
    monkeypatch.setattr(survey, "FEW_ROWS", 80)
    n = 2000
    x = RNG.random(n)
    y, w = KINDS[kind](x), RNG.random(n) + 0.5 if weighted else None
    groups = np.where(RNG.random(n) < 0.5, RNG.integers(0, 200, n), RNG.choice([3, 50, 51, 52, 150], n))
    for own in (groups, np.sort(groups), np.zeros(n, dtype=int)):
        for n_threads in (1, 2):
            check(x, y, own, sample_weight=w, increasing=increasing, n_threads=n_threads)


@pytest.mark.usefixtures("many_parts")
def test_groups_without_rows_may_follow_a_large_group(monkeypatch):
    monkeypatch.setattr(survey, "FEW_ROWS", 80)
    x = np.arange(400.0)  # increasing targets: as many steps as rows
    for groups in (np.repeat([0, 1, 2], [50, 50, 300]), np.arange(400) % 3, np.repeat([1, 4, 6], [100, 200, 100])):
        keys = [str(key) for key in range(300)]
        found = sf.fit_groups(x, x, pd.Categorical.from_codes(groups, categories=keys), n_threads=2)
        assert list(found) == [keys[place] for place in np.unique(groups)]
        for key, stairs in found.items():
            assert_same_bits(stairs.values, x[groups == int(key)])


LOSSES = [name for name in problems.LOSSES if name != "squared"]


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("increasing", [True, "auto"])
def test_each_group_is_fitted_under_any_loss_with_the_parameters_of_its_rows(name, increasing):
    rng = np.random.default_rng(LOSSES.index(name))
    for _ in range(3):
        problem = problems.problem_of(rng, name, 60)
        groups = rng.integers(0, 4, 60)
        options = {**problem.options, "increasing": increasing}
        if options["sample_weight"] is not None:
            options["sample_weight"] = options["sample_weight"] + 0.5
        check(problem.scores, problem.targets, groups, **options)


@pytest.mark.parametrize("n_threads", [1, 2])
def test_many_groups_are_fitted_in_one_call_under_other_losses(n_threads, monkeypatch):
    n, sizes = 3 * threads.ROWS_EACH, 50
    x, groups = RNG.random(n), RNG.integers(0, n // sizes, n)
    y, w = x + RNG.normal(size=n), RNG.integers(0, 4, n).astype(np.float64)
    huge, large = 7, 11
    y[groups == huge] *= 1e30  # needs a unit: fitted by a call of its own
    groups[: fits.few.MOST_ROWS + 1] = large
    calls, one_by_one = [], fits.of_columns
    monkeypatch.setattr(fits, "of_columns", lambda own, *args: calls.append(len(own[0])) or one_by_one(own, *args))
    loss = sf.losses.Huber(RNG.random(n) + 0.5)
    found = sf.fit_groups(x, y, groups, sample_weight=w, loss=loss, increasing=False, n_threads=n_threads)
    assert calls == [np.count_nonzero(groups == huge), np.count_nonzero(groups == large)]
    assert list(found) == np.unique(groups).tolist()
    for group in (0, 1, huge, 8, large, 12, n // sizes - 1):
        own = groups == group
        expected = sf.fit(
            x[own], y[own], sample_weight=w[own], loss=loss.of_rows(np.flatnonzero(own)), increasing=False
        )
        assert_same_staircase(found[group], expected)


def test_custom_losses_are_fitted_by_group():
    def mean(y1, w1, y2, w2):
        return (y1 * w1 + y2 * w2) / (w1 + w2), w1 + w2

    def slope(z, y, factor):
        return factor * (z - y) ** 3

    x, y, groups = RNG.random(40), RNG.random(40), RNG.integers(0, 3, 40)
    check(x, y, groups, loss=sf.losses.UpdateRule(mean))
    check(x, y, groups, loss=sf.losses.Custom(slope, args=(RNG.random(40) + 0.5,)))
    check(x, y, groups, loss=sf.losses.Custom(slope, args=(2.0,)), increasing="auto")


def test_rows_of_weight_zero_are_ignored_and_a_group_without_weight_is_an_error():
    x, y, w = RNG.random(30), RNG.random(30), RNG.integers(0, 3, 30).astype(float)
    groups = np.arange(30) % 3
    w[:3] = 1
    check(x, y, groups, sample_weight=w)
    check(x, y, groups, sample_weight=w, increasing="auto")
    check(x, y, groups, sample_weight=w, loss="huber")
    w[groups == 1] = 0
    names = np.array(["a", "b", "c"])[groups]
    for loss in ("squared", "huber"):
        with pytest.raises(
            ValueError, match=r"`sample_weight` must have an entry > 0 in each group; all 10 of group 'b'"
        ):
            sf.fit_groups(x, y, names, sample_weight=w, loss=loss)


def test_the_sum_of_weights_must_be_finite_in_each_group_but_not_over_all_groups():
    x, y, w = [1.0, 2.0, 1.0, 2.0], [3.0, 1.0, 1.0, 2.0], [1e308, 5e307, 1e308, 5e307]
    found = check(x, y, [0, 0, 1, 1], sample_weight=w)
    assert found.weights.tolist() == [1.5e308, 1e308, 5e307]
    # the second targets need no merge: each step alone has a finite weight
    for targets in (y, [1.0, 2.0, 3.0, 4.0]):
        with pytest.raises(ValueError, match=r"`sample_weight` must have a finite sum; .* \(group 'a'\)") as caught:
            sf.fit_groups([1.0, 2.0, 3.0, 4.0], targets, ["a", "a", "a", "b"], sample_weight=w)
        assert caught.value.group == "a"


@pytest.mark.parametrize("sign", [1, -1])
def test_integer_targets_beyond_2_to_the_53_are_fitted_exactly(sign):
    y = [sign * target for target in (2**53 + 1, 2**53 + 1, 2**53 + 2, 5, 7, 6)]
    found = check([1, 1, 1, 1, 2, 3], y, [1, 1, 1, 2, 2, 2])
    assert found[1].values.tolist() == [sign * (2.0**53 + 2)]  # the mean of targets rounded to doubles is 2**53 + 2/3
    y = np.array([2**60 + 1, 2**60, 2**60 + 3, 5, 7, 6])
    check([1, 2, 3, 1, 2, 3], y, [1, 1, 1, 2, 2, 2])


@pytest.mark.parametrize("place", [0, 2500, 4999])
def test_a_single_target_that_is_not_a_label_is_found_at_any_row(place):
    rng = np.random.default_rng(4)
    x, y, groups = rng.random(5000), (rng.random(5000) < 0.5).astype(float), rng.integers(0, 7, 5000)
    y[place] = 0.5
    check(x, y, groups)


def test_exposures_of_one_are_kept_by_the_staircases():
    loss = sf.losses.PoissonDeviance(np.ones(6))
    found = check([1, 2, 3, 1, 2, 3], [1, 0, 2, 4, 3, 5], [1, 2, 1, 2, 1, 2], loss=loss)
    assert found[1].loss == sf.losses.PoissonDeviance(np.ones(3))


def same_for_any_kind_of_keys(groups, keys):
    x, y = [1.0, 2.0, 3.0, 4.0, 5.0], [1.0, 0.0, 5.0, 4.0, 9.0]
    plain = sf.fit_groups(x, y, [1, 0, 1, 0, 2])
    found = sf.fit_groups(x, y, groups)
    assert list(found) == keys
    assert [type(key) for key in found] == [type(keys[0])] * len(keys)
    for one, other in zip(found.values(), plain.values(), strict=True):
        assert_same_staircase(one, other)
    assert found.predict(x, groups).tolist() == plain.predict(x, [1, 0, 1, 0, 2]).tolist()


WORDS = ["b", "a", "b", "a", "ü"]
STRINGS = {
    "a list": WORDS,
    "numpy": np.array(WORDS),
    "objects": np.array(WORDS, dtype=object),
    "pandas": pd.Series(WORDS, index=[9, 8, 7, 6, 5]),
    "pandas objects": pd.Series(WORDS, dtype=object),
    "pandas categorical": pd.Series(WORDS).astype(pd.CategoricalDtype(["z", "ü", "b", "a"])),
    "Categorical": pd.Categorical(WORDS),
    "CategoricalIndex": pd.CategoricalIndex(WORDS),
    "pandas arrow": pd.Series(WORDS, dtype="string[pyarrow]"),
    "arrow": pa.array(WORDS),
    "arrow large": pa.array(WORDS, pa.large_string()),
    "arrow view": pa.array(WORDS, pa.string_view()),
    "arrow dictionary": pa.array(WORDS).dictionary_encode(),
    "arrow repeated": pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, 3, 4]), pa.array(WORDS)),
    "pandas runs": pd.Series(ArrowExtensionArray(run_end_encode(pa.array(WORDS)))),
    "pandas arrow dictionary": pd.Series(ArrowExtensionArray(pa.array(WORDS).dictionary_encode())),
    "arrow runs": run_end_encode(pa.array(WORDS)),
    "arrow chunked runs": pa.chunked_array([run_end_encode(pa.array(part)) for part in (WORDS[:2], WORDS[2:])]),
    "arrow chunks": pa.chunked_array([WORDS[:2], WORDS[2:]]),
    "arrow chunked dictionaries": pa.chunked_array(
        [pa.array(WORDS[:2]).dictionary_encode(), pa.array(WORDS[2:]).dictionary_encode()]
    ),
}
if hasattr(np.dtypes, "StringDType"):  # since numpy 2
    STRINGS["StringDType"] = np.array(WORDS, dtype=np.dtypes.StringDType())
if pl:
    STRINGS |= {
        "polars": pl.Series(WORDS),
        "polars categorical": pl.Series(WORDS, dtype=pl.Categorical),
        "polars enum": pl.Series(WORDS, dtype=pl.Enum(["z", "ü", "b", "a"])),
    }


@pytest.mark.parametrize("kind", STRINGS)
def test_groups_are_strings_of_any_library(kind):
    same_for_any_kind_of_keys(STRINGS[kind], ["a", "b", "ü"])


def test_bytes_come_back_as_strings():
    same_for_any_kind_of_keys(np.array([b"b", b"a", b"b", b"a", b"c"]), ["a", "b", "c"])


NUMBERS = [7, -3, 7, -3, 9]
INTEGERS = {
    **{kind: np.array(NUMBERS, dtype=kind) for kind in ("i1", "i2", "i4", "i8", ">i4", ">i8")},
    "a list": NUMBERS,
    "objects": np.array(NUMBERS, dtype=object),
    "numpy integers": [np.int8(key) for key in NUMBERS],
    "strided": np.repeat(NUMBERS, 3)[::3],
    "pandas": pd.Series(NUMBERS),
    "pandas nullable": pd.Series(NUMBERS, dtype="Int32"),
    "pandas categorical": pd.Series(NUMBERS).astype("category"),
    "pandas arrow": pd.Index(NUMBERS, dtype="int64[pyarrow]"),
    "pandas runs": ArrowExtensionArray(run_end_encode(pa.array(NUMBERS))),
    "arrow": pa.array(NUMBERS),
    "arrow chunks": pa.chunked_array([NUMBERS[:1], NUMBERS[1:]]),
    "arrow dictionary": pa.array(NUMBERS).dictionary_encode(),
}
if pl:
    INTEGERS["polars"] = pl.Series(NUMBERS)


@pytest.mark.parametrize("kind", INTEGERS)
def test_groups_are_integers_of_any_library(kind):
    same_for_any_kind_of_keys(INTEGERS[kind], [-3, 7, 9])


@pytest.mark.parametrize("kind", ["u1", "u2", "u4", "u8"])
def test_groups_are_unsigned_integers(kind):
    same_for_any_kind_of_keys(np.array([7, 3, 7, 3, 9], dtype=kind), [3, 7, 9])


@pytest.mark.parametrize(
    "keys",
    [[0, 10**9, 10**18], [-(2**63), 0, 2**63 - 1], [1, 2, 2**64 - 1], [2**63, 2**63 + 1, 2**63 + 5], [0, 10, 70_000]],
)
def test_integers_can_be_far_apart_or_large(keys):
    groups = [keys[place] for place in (1, 0, 1, 0, 2)]
    same_for_any_kind_of_keys(groups, keys)
    same_for_any_kind_of_keys(np.array(groups, dtype=np.uint64 if keys[-1] >= 2**63 else np.int64), keys)


def test_groups_are_bools():
    x, y = [1.0, 2.0, 3.0], [1.0, 0.0, 5.0]
    for groups in (
        [True, False, True], np.array([True, False, True]), np.array([True, False, True], dtype=object),
        pd.Series([True, False, True], dtype="boolean"), pa.array([True, False, True]),
        *([pl.Series([True, False, True])] if pl else []),
        run_end_encode(pa.array([True, False, True])), pd.Series([True, False, True], dtype="bool[pyarrow]"),
    ):  # fmt: skip
        found = sf.fit_groups(x, y, groups)
        assert [*map(repr, found)] == ["False", "True"]
        assert found[True].right.tolist() == [1.0, 3.0]
    assert [*sf.fit_groups(x, y, np.array([True] * 3))] == [True]


REFUSED_OF_POLARS = [
    (pl.Series(["a", "b", None]), ValueError, r"missing entries; got None at index 2"),
    (pl.Series([1, None, 2]), ValueError, r"missing entries; got None at index 1"),
    (pl.Series([1.0, 2.0, 2.0]), TypeError, r"got 1.0 at index 0"),
    (pl.Series([[1, 2]] * 3, dtype=pl.Array(pl.Int64, 2)), TypeError, r"strings or bools; got \[1, 2\] at index 0"),
    (pl.Series([{"a": 1}] * 3), TypeError, r"strings or bools; got \[1\] at index 0"),
] if pl else []  # fmt: skip


@pytest.mark.parametrize(
    ("groups", "error", "text"),
    [
        *REFUSED_OF_POLARS,
        ([1.0, 2.0, 3.0], TypeError, r"`groups` must be integers, strings or bools; got 1.0 at index 0"),
        ([1, 2.5, 3], TypeError, r"`groups` must be integers, strings or bools; got 2.5 at index 1"),
        (np.array([1, 2.5, 3]), TypeError, r"`groups` must be integers, strings or bools; got 1.0 at index 0"),
        (np.array([1, 2.5, 3], dtype=object), TypeError, r"got 2.5 at index 1"),
        (["a", 1, "b"], TypeError, r"`groups` must be all .*; got 'a' and 1 at index 1"),
        (["a", None, "b"], ValueError, r"`groups` must not have missing entries; got None at index 1"),
        (["a", float("nan"), "b"], ValueError, r"`groups` must not have missing entries; got nan at index 1"),
        (pd.Series(["a", None, "b"]), ValueError, r"`groups` must not have missing entries; got .* at index 1"),
        (pd.Series([1, None, 2], dtype="Int64"), ValueError, r"missing entries; got None at index 1"),
        (pd.Categorical(["a", None, "b"]), ValueError, r"missing entries; got None at index 1"),
        (pd.Series([1.5, 2.5, 1.5], dtype="Float64"), TypeError, r"got 1.5 at index 0"),
        (pa.array(["a", "b", None]), ValueError, r"missing entries; got None at index 2"),
        (pa.array([1, 2, None]), ValueError, r"missing entries; got None at index 2"),
        (pa.array([1.5, 2.5, 2.5]), TypeError, r"got 1.5 at index 0"),
        (pa.array([{"a": 1}, {"a": 2}, {"a": 1}]), TypeError, r"got \{'a': 1\} at index 0"),
        (run_end_encode(pa.array([1, 2, None])), ValueError, r"missing entries; got None at index 2"),
        (pd.Series([1, 2, None], dtype="int64[pyarrow]"), ValueError, r"missing entries; got None at index 2"),
        (pd.Series([1.5, 2.5, 2.5], dtype="double[pyarrow]"), TypeError, r"got 1.5 at index 0"),
        (np.array([b"a", b"\xff", b"b"]), ValueError, r"`groups` must be UTF-8 text .*; got b'\\xff' at index 1"),
        (pa.array([b"a", b"\xff", b"b"]), ValueError, r"`groups` must be UTF-8 text .*; got b'\\xff' at index 1"),
        (np.ma.array([1, 2, 3], mask=[0, 1, 0]), ValueError, r"missing entries; got a masked one at index 1"),
        (np.array(["2020", "2021", "NaT"], dtype="M8[Y]"), TypeError, r"got .*datetime64\('2020'\) at index 0"),
        ([1, 2], ValueError, r"`scores` and `groups` must have one entry per row; got 3 and 2 entries"),
        ([[1, 2, 3]], ValueError, r"`groups` must be one-dimensional; got shape \(1, 3\)"),
        (3, ValueError, r"`groups` must be one-dimensional; got shape \(\)"),
        ([1, 2, 2**70], ValueError, r"`groups` must be integers of 64 bits; got .* at index 2"),
    ],
)
def test_the_error_for_an_invalid_group_names_its_row(groups, error, text):
    with pytest.raises(error, match=text):
        sf.fit_groups([1.0, 2.0, 3.0], [1.0, 0.0, 5.0], groups)


X, Y, G = np.linspace(0, 1, 12), np.arange(12.0), np.arange(12) % 3


@pytest.mark.parametrize("labels", [False, True])
@pytest.mark.parametrize("order", [slice(None), np.argsort(G, kind="stable")])
@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("scores", np.nan, r"`scores` must not be NaN; got nan at index 7"),
        ("targets", np.nan, r"`targets` must be finite; got nan at index 7"),
        ("targets", np.inf, r"`targets` must be finite; got inf at index 7"),
        ("sample_weight", -1.5, r"`sample_weight` must be >= 0; got -1.5 at index 7"),
        ("sample_weight", np.nan, r"`sample_weight` must be finite; got nan at index 7"),
    ],
)
def test_the_error_for_an_invalid_entry_names_the_row_of_the_input(name, value, text, order, labels):
    given = {"scores": X.copy(), "targets": Y % 2 if labels else Y.copy(), "groups": G[order]}
    if name == "sample_weight":
        given[name] = np.ones(12)
    given[name][7] = value
    with pytest.raises(ValueError, match=text):
        sf.fit_groups(**given)


def test_the_domain_of_a_loss_holds_for_all_groups():
    with pytest.raises(ValueError, match=r"`targets` must be in \[0, 1\] for log_loss; got 2.0 at index 2"):
        sf.fit_groups(X, Y, G, loss="log")


def test_other_arguments_are_checked_as_in_fit():
    for options, error, text in (
        ({"loss": "no"}, ValueError, "`loss` must be one of"),
        ({"increasing": 3}, ValueError, "`increasing` must be"),
        ({"bounds": (2, 1)}, ValueError, "`bounds` must be"),
        ({"n_threads": 0}, ValueError, "`n_threads` must be"),
        ({"loss": sf.losses.Huber([1.0, 2.0])}, ValueError, "`delta` of the loss must have one entry per row"),
        ({"increasing": "auto", "loss": sf.losses.UpdateRule(max)}, TypeError, "whose values are unknown"),
    ):
        with pytest.raises(error, match=text):
            sf.fit_groups(X, Y, G, **options)
    with pytest.raises(ValueError, match="at least one row"):
        sf.fit_groups([], [], [])


def test_an_error_inside_a_group_names_the_group():
    with pytest.raises(ValueError, match="step 0 would be -inf") as caught:
        sf.fit_groups([1, 2, 1, 2], [0, 1, 1, 0], ["a", "a", "b", "b"], loss="logistic")
    assert caught.value.group == "a"
    assert "step 0 would be -inf (group 'a'). Pass finite numbers" in str(caught.value)


def test_an_error_of_a_users_own_function_carries_a_note_with_the_group():
    def slope(z, y):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError) as caught:
        sf.fit_groups(X, Y, G, loss=sf.losses.Custom(slope))
    assert caught.value.__notes__ == ["in group 0"]


def test_a_bad_derivative_is_reported_with_the_row_of_the_input():
    def slope(z, y):
        return np.where(y == 9, np.nan, z - y)

    with pytest.raises(ValueError, match="for sample 9"):
        sf.fit_groups(X, Y, G, loss=sf.losses.Custom(slope))


def test_inputs_can_be_read_only_strided_or_byte_swapped_and_are_not_changed():
    rng = np.random.default_rng(3)
    x, y, w = rng.random((3, 60))
    groups = rng.integers(0, 5, 60)
    alone = sf.fit_groups(x, y, groups, sample_weight=w)
    for column in (x, y, w, groups):
        column.setflags(write=False)
    given = [np.repeat(column, 2)[::2].astype(column.dtype.newbyteorder(">")) for column in (x, y, w, groups)]
    for a, b, c, d in ((x, y, w, groups), given, (x[::-1], y[::-1], w[::-1], groups[::-1])):
        assert sf.fit_groups(a, b, d, sample_weight=c) == alone


@pytest.mark.usefixtures("many_parts")
def test_the_map_is_the_same_for_any_order_of_rows_and_number_of_threads():
    x, groups = np.round(RNG.random(900), 2), RNG.integers(0, 30, 900)
    for y, w in ((RNG.random(900) < x, None), (RNG.normal(size=900), RNG.random(900) + 0.1)):
        first = sf.fit_groups(x, y, groups, sample_weight=w, n_threads=1)
        for n_threads in (1, 2, 5):
            order = RNG.permutation(900)
            weights = None if w is None else w[order]
            again = sf.fit_groups(x[order], y[order], groups[order], sample_weight=weights, n_threads=n_threads)
            assert again == first


def test_one_row_and_groups_of_one_row():
    assert check([0.5], [3], ["only"])["only"].values.tolist() == [3.0]
    check(RNG.random(100), RNG.random(100), RNG.permutation(100))
    check(RNG.random(100), RNG.random(100) < 0.5, RNG.permutation(100))


def test_many_groups_come_in_ascending_order():
    groups = RNG.integers(-500, 500, 5000)
    found = sf.fit_groups(RNG.random(5000), RNG.random(5000), groups)
    assert list(found) == sorted(collections.Counter(groups.tolist()))
    assert found.counts.sum() == 5000
