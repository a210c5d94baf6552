"""Invalid input: the error names the argument, the value and the index, and inputs are not changed."""

import math
import re

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import staircase_fast as sf

nan, inf = math.nan, math.inf
GOOD = np.array([0.0, 0.25, 0.5, 0.75, 1.0])


def stairs():
    return sf.fit([1, 2, 3], [10, 20, 30])


# Every argument that is a column: how to call its function with it, all other columns being good.
COLUMNS = {
    "fit scores": ("scores", lambda column: sf.fit(column, GOOD)),
    "fit targets": ("targets", lambda column: sf.fit(GOOD, column)),
    "fit targets, log-loss": ("targets", lambda column: sf.fit(GOOD, column, loss="log")),
    "fit sample_weight": ("sample_weight", lambda c: sf.fit(GOOD, GOOD, sample_weight=c)),
    "isotonic_regression y": ("y", sf.isotonic_regression),
    "isotonic_regression weights": (
        "weights",
        lambda column: sf.isotonic_regression(GOOD, weights=column),
    ),
    "predict scores": ("scores", lambda column: stairs().predict(column)),
    "predict scores, linear": (
        "scores",
        lambda column: stairs().predict(column, interpolation="linear"),
    ),
    "call scores": ("scores", stairs()),
}
FIT_ONLY = [name for name in COLUMNS if not name.startswith(("predict", "call"))]
WEIGHT_COLUMNS = ["fit sample_weight", "isotonic_regression weights"]
TARGET_COLUMNS = ["fit targets", "fit targets, log-loss", "isotonic_regression y"]


def refused(name, column, error, *words):
    """Give a bad column to the function: the message holds these words in order, after the name."""
    argument, call = COLUMNS[name]
    kept = column.tobytes() if isinstance(column, np.ndarray) else None
    pattern = ".*".join([f"`{argument}`", *words])
    with pytest.raises(error, match=re.compile(pattern, re.DOTALL)):
        call(column)
    if kept is not None:
        assert column.tobytes() == kept


def with_entry(value, index=3, dtype=float):
    column = GOOD.astype(dtype)
    column[index] = value
    return column


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", ">f8", "g"])
@pytest.mark.parametrize("name", COLUMNS)
def test_nan_is_rejected_everywhere(name, dtype):
    refused(name, with_entry(nan, dtype=dtype), ValueError, "nan", "index 3")


@pytest.mark.parametrize("value", [inf, -inf])
@pytest.mark.parametrize("name", TARGET_COLUMNS + WEIGHT_COLUMNS)
def test_infinite_targets_and_weights_are_an_error(name, value):
    refused(name, with_entry(value), ValueError, str(value), "index 3")
    refused(name, with_entry(value, dtype=np.float32), ValueError, str(value), "index 3")


@pytest.mark.parametrize("value", [-1.5, -5e-324, -1e308])
@pytest.mark.parametrize("name", WEIGHT_COLUMNS)
def test_negative_weights_are_an_error(name, value):
    refused(name, with_entry(value, index=4), ValueError, ">= 0", re.escape(str(value)), "index 4")


@pytest.mark.parametrize("name", WEIGHT_COLUMNS)
def test_negative_integer_weights_are_an_error(name):
    refused(name, np.array([1, 2, -3, 4, 5]), ValueError, ">= 0", "-3", "index 2")
    refused(name, [1, 2, 3, 4, -5], ValueError, ">= 0", "-5", "index 4")


@pytest.mark.parametrize("name", WEIGHT_COLUMNS)
def test_weights_that_are_all_zero_are_an_error(name):
    refused(name, np.zeros(5), ValueError, "0")
    refused(name, [0] * 5, ValueError, "0")
    refused(name, [False] * 5, ValueError, "0")
    refused(name, [-0.0] * 5, ValueError, "0")


@pytest.mark.parametrize("name", WEIGHT_COLUMNS)
def test_weights_whose_sum_is_not_finite_are_an_error(name):
    refused(name, np.full(5, 1e308), ValueError, "sum")
    _, call = COLUMNS[name]
    assert call(np.full(5, 3e307)).weights.sum() == pytest.approx(1.5e308)
    call(np.array([1.7e308, 1.0, 1.0, 1.0, 1.0]))


@pytest.mark.parametrize("value", [1.5, -0.25, 2, math.nextafter(1, 2), -5e-324])
def test_targets_outside_zero_and_one_are_rejected_under_log_loss(value):
    refused("fit targets, log-loss", with_entry(value), ValueError, r"\[0, 1\]", str(value), "index 3")
    with pytest.raises(ValueError, match=rf"`y`.*\[0, 1\].*{value}.*index 3"):
        sf.isotonic_regression(with_entry(value), loss="log")


def test_integer_targets_outside_zero_and_one_are_rejected_under_log_loss():
    for dtype in ("i1", "i4", "i8", "u2"):
        column = np.array([0, 1, 0, 1, 7], dtype=dtype)
        refused("fit targets, log-loss", column, ValueError, r"\[0, 1\]", "7", "index 4")


@pytest.mark.parametrize("name", COLUMNS)
def test_the_first_of_several_bad_entries_is_named(name):
    column = GOOD.copy()
    column[[1, 4]] = nan
    refused(name, column, ValueError, "nan", "index 1")


@pytest.mark.parametrize("name", COLUMNS)
def test_a_bad_entry_far_down_a_column_is_named(name):
    column = np.full(100_000, 0.5)
    column[99_998] = nan
    if name.startswith("fit"):
        argument = COLUMNS[name][0]
        columns = dict.fromkeys(("scores", "targets", "sample_weight"), np.full(100_000, 0.5))
        with pytest.raises(ValueError, match=rf"`{argument}`.*nan.*index 99998"):
            sf.fit(**(columns | {argument: column}))
    elif name == "isotonic_regression weights":
        with pytest.raises(ValueError, match=r"`weights`.*nan.*index 99998"):
            sf.isotonic_regression(np.zeros(100_000), weights=column)
    else:
        refused(name, column, ValueError, "nan", "index 99998")


@pytest.mark.parametrize(
    "column",
    [
        ["a", "b", "c", "d", "e"],
        np.array(["0", "1", "2", "3", "4"]),
        "abcde",
        b"abcde",
        [1j, 0, 0, 0, 0],
        GOOD.astype(complex),
        np.array(["2024-01-01"] * 5, dtype="M8[D]"),
        np.array([1, 2, 3, 4, 5], dtype="m8[s]"),
        np.zeros(5, dtype=[("a", float)]),
        [0, 1, "2", 3, 4],
        [0, 1, [2], 3, 4],
        [0, 1, None, 3, 4],
        [object()] * 5,
        pd.Series(["a", "b", "c", "d", "e"]),
        pd.Series(["a", "b", "a", "b", "a"], dtype="category"),
        pl.Series(["a", "b", "c", "d", "e"]),
        pa.array(["a", "b", "c", "d", "e"]),
        {"a": 1},
        len,
    ],
    ids=lambda column: f"{type(column).__name__} {str(column)[:20]!r}",
)
@pytest.mark.parametrize("name", COLUMNS)
def test_entries_that_are_not_real_numbers_are_an_error(name, column):
    refused(name, column, (TypeError, ValueError) if isinstance(column, list) else TypeError)


@pytest.mark.parametrize("name", ["fit scores", "fit targets", "isotonic_regression y", "call scores"])
def test_none_is_a_type_error(name):
    refused(name, None, TypeError)


@pytest.mark.parametrize("name", COLUMNS)
def test_the_error_names_the_first_entry_that_is_not_a_number(name):
    refused(name, [0, 1, "two", 3, "four"], TypeError, "two")
    refused(name, np.array([0, 1, 2, "x", 4], dtype=object), TypeError, "x", "index 3")
    refused(name, [0, 1, None, 3, 4], TypeError, "None", "index 2")


@pytest.mark.parametrize(
    "missing",
    [
        np.ma.array([0.0, 0.25, 0.5, 0.75, 1.0], mask=[0, 0, 1, 0, 1]),
        pd.Series([0, 0.25, None, 0.75, 1]),
        pd.Series([0, 1, None, 1, 1], dtype="Int64"),
        pd.Series([0, 1, None, 1, 1], dtype="Float32"),
        pd.Series([0, 1, None, 1, 1], dtype="boolean"),
        pd.Series([0, 1, None, 1, 1], dtype=pd.ArrowDtype(pa.int8())),
        pl.Series([0.0, 0.25, None, 0.75, 1.0]),
        pl.Series([0, 1, None, 1, 1]),
        pl.Series([False, True, None, True, True]),
        pa.array([0, 0.25, None, 0.75, 1]),
        pa.array([0, 1, None, 1, 1]),
        pa.array([False, True, None, True, True]),
        pa.chunked_array([[0, 1], [None, 1, 1]]),
    ],
    ids=lambda column: f"{type(column).__module__} {getattr(column, 'dtype', '') or column.type}",
)
@pytest.mark.parametrize("name", COLUMNS)
def test_missing_entries_are_rejected_and_located(name, missing):
    refused(name, missing, (TypeError, ValueError), "index 2")


@pytest.mark.parametrize("name", FIT_ONLY)
def test_a_column_has_one_dimension(name):
    refused(name, np.zeros((5, 1)), ValueError, r"\(5, 1\)")
    refused(name, pd.DataFrame({"a": GOOD}), ValueError, r"\(5, 1\)")
    refused(name, [[0.0, 1.0]], ValueError, r"\(1, 2\)")
    refused(name, 1.0, ValueError, r"\(\)")
    refused(name, np.array(1.0), ValueError, r"\(\)")


@pytest.mark.parametrize("empty", [[], np.empty(0), np.empty(0, int), pd.Series(dtype=float)])
def test_no_rows_at_all_is_an_error(empty):
    with pytest.raises(ValueError, match=r"`scores`.*at least one"):
        sf.fit(empty, empty)
    with pytest.raises(ValueError, match=r"`scores`.*at least one"):
        sf.fit(empty, empty, sample_weight=empty)
    with pytest.raises(ValueError, match=r"`y`.*at least one"):
        sf.isotonic_regression(empty)
    with pytest.raises(ValueError, match=r"`y`.*at least one"):
        sf.isotonic_regression(empty, weights=empty)


def test_columns_of_different_length_are_named_with_their_lengths():
    with pytest.raises(ValueError, match=r"`scores`.*`targets`.*3.*2"):
        sf.fit([1, 2, 3], [1, 2])
    with pytest.raises(ValueError, match=r"`scores`.*`targets`.*0.*2"):
        sf.fit([], [1, 2])
    with pytest.raises(ValueError, match=r"`scores`.*`sample_weight`.*2.*3"):
        sf.fit([1, 2], [1, 2], sample_weight=[1, 2, 3])
    with pytest.raises(ValueError, match=r"`scores`.*`sample_weight`.*2.*0"):
        sf.fit([1, 2], [1, 2], sample_weight=[])
    with pytest.raises(ValueError, match=r"`y`.*`weights`.*2.*1"):
        sf.isotonic_regression([1, 2], weights=[1])


def test_bad_targets_are_rejected_even_in_rows_of_weight_zero():
    with pytest.raises(ValueError, match=r"`targets`.*nan.*index 1"):
        sf.fit([1, 2], [1, nan], sample_weight=[1, 0])
    with pytest.raises(ValueError, match=r"`scores`.*nan.*index 1"):
        sf.fit([1, nan], [1, 2], sample_weight=[1, 0])


@pytest.mark.parametrize("scores", [[2**53 + 1, 0], [0, -(2**53) - 1], [2**62, 2**62 + 1]])
def test_integer_scores_that_float64_would_merge_are_an_error(scores):
    index = int(np.argmax(np.abs(scores)))
    with pytest.raises(ValueError, match=rf"`scores`.*{scores[index]}.*index {index}"):
        sf.fit(np.array(scores), [0, 1])
    assert sf.fit(np.array([2**53, 2**53 - 1]), [1, 0]).n_steps == 2


def test_integers_of_more_than_64_bits_are_scores_only_if_float64_holds_them():
    assert sf.fit([2**64, 2**65], [0, 1]).left.tolist() == [2.0**64, 2.0**65]
    wide, mixed = [2**64, 2**64 + 1], np.array([0.5, np.int64(2**53 + 1)], dtype=object)
    for scores in (wide, mixed):
        message = rf"`scores` must be integers that float64 holds exactly; got {scores[1]} at index 1\."
        with pytest.raises(ValueError, match=message):
            sf.fit(scores, [0, 1])
        with pytest.raises(ValueError, match=message):
            sf.fit([1, 2], [0, 1]).predict(scores)
    with pytest.raises(ValueError, match=rf"`scores` must be integers .*; got {2**64 + 1} at index 1\."):
        sf.fit_columns([wide], [[0, 1]])
    with pytest.raises(ValueError, match=rf"`scores` must be integers .*; got {2**64 + 1}\.$"):
        sf.fit([1, 2], [0, 1]).predict(2**64 + 1)
    assert sf.fit([1], [10**30]).values.tolist() == [1e30]  # of targets, values are rounded anyway


def test_integers_that_no_kernel_reads_are_rejected_or_read_exactly():
    with pytest.raises(ValueError, match=rf"`targets`.*{2**64 - 1}.*index 1"):
        sf.fit([1, 2], np.array([0, 2**64 - 1], dtype=np.uint64))
    assert sf.fit([1], np.array([2**63 - 1], dtype=np.uint64)).values.tolist() == [2.0**63]


def test_wide_floats_beyond_float64_are_an_error():
    huge = np.array([0, 1, 2, 3, np.longdouble("1e4000")], dtype=np.longdouble)
    for name in TARGET_COLUMNS + WEIGHT_COLUMNS:
        refused(name, huge, ValueError, "index 4")


@pytest.mark.parametrize("loss", ["nope", "", "SquaredError", "log-loss"])
def test_an_unknown_name_of_a_loss_is_an_error(loss):
    for call in (
        lambda: sf.fit([1], [1], loss=loss),
        lambda: sf.isotonic_regression([1], loss=loss),
    ):
        with pytest.raises(ValueError, match=f"`loss`.*'{loss}'"):
            call()


@pytest.mark.parametrize("loss", [None, 3, ["squared"], sf.losses.SquaredError, len])
def test_a_loss_of_a_wrong_type_is_a_type_error(loss):
    for call in (
        lambda: sf.fit([1], [1], loss=loss),
        lambda: sf.isotonic_regression([1], loss=loss),
    ):
        with pytest.raises(TypeError, match="`loss`"):
            call()


@pytest.mark.parametrize("increasing", [None, 1, 0, 2, "up", "true", "", 1.0, [True]])
def test_a_direction_is_true_or_false_or_auto(increasing):
    with pytest.raises((TypeError, ValueError), match=re.escape(f"{increasing!r}")) as caught:
        sf.fit([1], [1], increasing=increasing)
    assert "`increasing`" in str(caught.value)
    assert "auto" in str(caught.value)
    with pytest.raises((TypeError, ValueError), match="`increasing`"):
        sf.isotonic_regression([1], increasing=increasing)


def test_a_direction_can_come_from_numpy():
    assert sf.fit([1, 2], [1, 0], increasing=np.bool_(False)).n_steps == 2
    assert sf.fit([1, 2], [1, 0], increasing=np.bool_(True)).n_steps == 1


def test_isotonic_regression_does_not_accept_auto():
    with pytest.raises(ValueError, match=r"`increasing`.*'auto'"):
        sf.isotonic_regression([1, 2], increasing="auto")


@pytest.mark.parametrize(
    "bounds",
    [(1, 0), (nan, 1), (0, nan), (inf, None), (None, -inf), (inf, inf), (-inf, -inf), (5, -inf)],
)
def test_bounds_with_no_number_between_them_are_an_error(bounds):
    with pytest.raises(ValueError, match=re.escape(f"{bounds!r}")) as caught:
        sf.fit([1], [1], bounds=bounds)
    assert "`bounds`" in str(caught.value)


@pytest.mark.parametrize(
    "bounds",
    [
        3, (1,), (1, 2, 3), (), "ab", ("0", "1"), {"lo": 0}, (1j, 2), ([0], [1]), object(), np.array([1j, 2]),
        np.array([[0.0], [1.0]]), np.ma.array([0, 1], mask=True),
    ],
)  # fmt: skip
def test_bounds_that_are_no_pair_of_numbers_are_an_error(bounds):
    with pytest.raises((TypeError, ValueError), match="`bounds`"):
        sf.fit([1], [1], bounds=bounds)


@pytest.mark.parametrize("value", ["cubic", "", "Step", None, 1, ["step"]])
@pytest.mark.parametrize("name", ["interpolation", "out_of_bounds"])
def test_an_unknown_choice_is_rejected_and_the_choices_are_named(name, value):
    with pytest.raises((TypeError, ValueError), match=re.escape(f"{value!r}")) as caught:
        stairs().predict([1.0], **{name: value})
    assert f"`{name}`" in str(caught.value)
    assert ("linear" if name == "interpolation" else "clip") in str(caught.value)


@pytest.mark.parametrize(
    ("out", "error"),
    [
        ([0.0, 0.0], TypeError),
        ("ab", TypeError),
        (pd.Series([0.0, 0.0]), TypeError),
        (np.zeros(2, dtype=np.float32), TypeError),
        (np.zeros(2, dtype=int), TypeError),
        (np.zeros(2, dtype=complex), TypeError),
        (np.zeros(2, dtype=object), TypeError),
        (np.zeros(2, dtype=">f8"), TypeError),
        (np.zeros(3), ValueError),
        (np.zeros((2, 1)), ValueError),
        (np.zeros(()), ValueError),
        (np.broadcast_to(0.0, (2,)), ValueError),
    ],
    ids=lambda argument: f"{type(argument).__name__} {getattr(argument, 'dtype', '')}",
)
def test_an_out_that_cannot_hold_the_result_is_rejected_and_unchanged(out, error):
    kept = np.array(out)
    with pytest.raises(error, match="`out`"):
        stairs().predict([1.0, 2.0], out=out)
    np.testing.assert_array_equal(np.array(out), kept)


def test_out_is_unchanged_by_a_bad_query():
    out = np.full(3, -7.0)
    with pytest.raises(ValueError, match="index 2"):
        stairs().predict([1.0, 2.0, nan], out=out)
    with pytest.raises(ValueError, match="index 2"):
        stairs().predict([1.0, 2.0, 9.0], out=out, out_of_bounds="raise")
    assert out.tolist() == [-7, -7, -7]


def test_nan_in_a_table_of_queries_is_located():
    with pytest.raises(ValueError, match=r"`scores`.*nan.*index"):
        stairs().predict([[1.0, 2.0], [nan, 3.0]])


def test_a_staircase_is_checked_when_it_is_made_by_hand():
    steps = {"left": [1, 3], "right": [2, 4], "values": [0.0, 1.0], "weights": [1, 1]}
    made = sf.Staircase(**steps, counts=[1, 2])
    assert made([1, 3]).tolist() == [0, 1]
    wrong = {
        "left": [[3, 1], [1, 2], [nan, 3], [1], [1, 5], [], ["a", "b"]],
        "right": [[3, 4], [0, 4], [2, nan], [[2, 4]]],
        "values": [[1.0, 0.0], [0.0, 0.0], [0.0, inf], [nan, 1.0], [0.0, 1.0, 2.0], None],
        "weights": [[1, 0], [1, -1], [1, inf], [nan, 1], [1]],
        "counts": [[1, 0], [1, -1], [1, 1.5], [1], [1, nan]],
    }
    for name, values in wrong.items():
        for value in values:
            with pytest.raises((TypeError, ValueError), match=f"`{name}`|`left`.*`right`|`right`.*`left`"):
                sf.Staircase(**(steps | {"counts": [1, 2]} | {name: value}))
    with pytest.raises(ValueError, match="`increasing`"):
        sf.Staircase(**steps, counts=[1, 2], increasing="auto")


@pytest.mark.parametrize("kind", ["U1", "complex128", "M8[s]"])
def test_the_error_for_an_empty_column_of_a_wrong_type_names_the_dtype(kind):
    with pytest.raises(TypeError, match=r"`scores` must be real numbers; got dtype "):
        sf.fit(np.empty(0, dtype=kind), [])


class WithoutRepresentation:
    def __repr__(self):
        raise ZeroDivisionError


@pytest.mark.parametrize("value", [(10**5000, 0), WithoutRepresentation()])
def test_messages_show_values_that_have_no_representation(value):
    with pytest.raises(TypeError, match=r"^`bounds` must be .*; got ") as caught:
        sf.fit([1], [1], bounds=value)
    assert len(str(caught.value)) < 200
