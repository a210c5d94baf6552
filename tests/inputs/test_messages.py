"""Errors say what must hold, what was found, and how to fix it."""

import datetime as dt
import json

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse

import staircase_fast as sf
from staircase_fast import errors
from staircase_fast.inputs import options
from staircase_fast.sklearn import StaircaseCalibrator, StaircaseRegressor

L = sf.losses
rng = np.random.default_rng(0)
P = rng.random(50)
Y = (rng.random(50) < P).astype(int)
LOGITS = np.log(P / (1 - P))
TWO = np.column_stack((1 - P, P))
TABLE = pd.DataFrame({"score": P, "label": Y, "city": ["oslo", "rome"] * 25})
STAIRS = sf.fit(P, Y)
CITIES = sf.fit_groups(P, Y, TABLE["city"])


class Tensor:
    """An object with only `__array__`."""

    def __array__(self, dtype=None, copy=None):
        return TWO


class DeviceTensor:
    """A tensor in memory that numpy cannot read."""

    def __array__(self, dtype=None, copy=None):
        raise TypeError("can't convert a device tensor; call cpu() first.")


def named(n):
    """A generator with a fixed representation."""
    yield from range(n)


WRONG_CALLS = {
    # swapped columns, and labels of another kind
    "log loss, swapped": (
        lambda: sf.fit(Y, LOGITS, loss="log"), "-0.99.* at index 1. Are `scores` and `targets` swapped"
    ),
    "one row, not swapped": (lambda: sf.Online("log").append(1, 3), r"`target` must be in .*; got 3\.$"),
    "groups, swapped": (lambda: sf.fit_groups(Y, LOGITS, TABLE["city"], loss="log"), "`targets` must .* swapped"),
    "online, swapped": (lambda: sf.Online("log").extend(np.sort(Y), LOGITS), "Are `scores` and `targets` swapped"),
    "accumulator, swapped": (lambda: sf.Accumulator("log").add(Y, LOGITS), "Are `scores` and `targets` swapped"),
    "reliability, swapped": (lambda: sf.reliability(Y, LOGITS), "`targets` must be in .* and `targets` swapped"),
    "bands, swapped": (lambda: sf.reliability(Y, P, bands="confidence"), "Are `scores` and `targets` swapped"),
    "errors, swapped": (lambda: sf.calibration_errors(Y, P), "`targets` must be 0 or 1.* and `targets` swapped"),
    "Venn-Abers, swapped": (lambda: sf.VennAbers().fit(Y, P), "`labels` must be .* Are `scores` and `labels` swapped"),
    "display, swapped": (
        lambda: sf.ReliabilityDisplay.from_predictions(LOGITS, Y, bands="confidence"),
        "`y_true` must be in .* Are `y_prob` and `y_true` swapped",
    ),
    "labels -1 and 1": (lambda: sf.VennAbers().fit(P, 2 * Y - 1), "-1 at index 0. If 1 .* `np.equal\\(labels, 1\\)`"),
    "labels 1 and 2": (lambda: sf.fit(P, Y + 1, loss="log"), "If 2 is the class .* `np.equal\\(targets, 2\\)`"),
    "labels of one value": (lambda: sf.fit(P, Y * 0 + 2, loss="log"), r"got 2 at index 0\.$"),
    "targets that are no labels": (lambda: sf.fit(P, LOGITS, loss="log"), r"at index 1\.$"),
    "bounds beyond all probabilities": (
        lambda: sf.fit(P, Y, loss="log", bounds=(2, 3)),
        r"^`bounds` must include values in \[0, 1\] for log_loss; got \(2, 3\)\.$",
    ),
    "bounds below all rates": (
        lambda: sf.fit_groups(P, Y, Y, loss="poisson_deviance", bounds=(-2, -1)), "include values >= 0 for poisson"
    ),
    "bounds below all means": (lambda: sf.Anytime(P, Y + 1, loss="gamma_deviance", bounds=(-2, 0)), "> 0 for gamma"),
    "bounds of an accumulator": (lambda: sf.Accumulator("log").staircase(bounds=(2, None)), "include values in"),
    "bounds of a proof": (lambda: sf.certify(STAIRS, P, Y, loss="log", bounds=(2, 3)), "include values in"),
    "bounds of batches": (lambda: sf.fit_batches([TABLE], "score", "label", loss="log", bounds=(2, 3)), "include val"),
    "classes": (lambda: sf.fit(P, np.where(Y, "yes", "no")), "got 'no' at .* `np.asarray\\(targets\\) == 'no'`"),
    "classes of a table": (
        lambda: sf.calibration_errors([[0.5, 0.5]] * 2, ["no", "yes"]),
        "got 'no' at index 0. Pass the column number of each class: `np.unique\\(targets, return_inverse=True"
    ),
    "classes of a table that are dates": (
        lambda: sf.VennAbersMulticlass().fit([[0.5, 0.5]], [dt.date(2020, 1, 1)]), "`labels` .* Convert times"
    ),
    "classes, polars": (lambda: sf.fit(P, pl.Series(["no", "yes"] * 25)), "`np.asarray\\(targets\\) == 'no'`"),
    "classes, Arrow": (lambda: sf.VennAbers().fit(P, pa.array(["no", "yes"] * 25)), "`np.asarray\\(labels\\) == 'no'`"),
    # scores that are no probabilities
    "logits": (lambda: sf.reliability(LOGITS, Y), r"got -0.99.* at index 1. Are these logits\? Apply 1 / \(1 \+ exp"),
    "infinite logits": (lambda: sf.calibration_errors(LOGITS / 0.0, Y), "must be between 0 and 1.* Are these logits"),
    "display, logits": (lambda: sf.ReliabilityDisplay.from_predictions(Y, LOGITS), "`y_prob` must be .* these logits"),
    "percentages": (lambda: sf.calibration_errors(100 * P, Y), "Are these percentages. Divide by 100"),
    "rounding": (lambda: sf.reliability([0.5, 1 + 1e-9], [0, 1]), r"`np.clip\(scores, 0, 1\)`"),
    "logits per class": (
        lambda: sf.calibration_errors(np.column_stack((LOGITS, -LOGITS)), Y),
        r"`scores\[:, 1\]` must .* index 0.*softmax"
    ),
    "NaN in a table": (lambda: sf.calibration_errors([[0.5, np.nan]], [0]), r"`scores\[:, 1\]` must .*Drop these rows"),
    "negative scores of pairs": (
        lambda: sf.VennAbersMulticlass("coupled").fit(np.column_stack((LOGITS, -LOGITS)), Y), "Pass scale='margin'"
    ),
    "one column for classes": (lambda: sf.VennAbersMulticlass().fit(P, Y), r"got shape \(50,\). Use `VennAbers`"),
    "NaN scores of classes": (lambda: sf.VennAbersMulticlass().fit([[1, np.nan]], [0]), r"`scores\[:, 1\]` must not"),
    # shapes
    "two columns": (lambda: sf.fit(TWO, Y), r"got shape \(50, 2\). .* pass the second one: `scores\[:, 1\]`"),
    "two columns, pandas": (lambda: sf.fit(pd.DataFrame(TWO), Y), r"`scores.iloc\[:, 1\]`"),
    "two columns, lists": (lambda: sf.reliability(TWO.tolist(), Y), r"`np.asarray\(scores\)\[:, 1\]`"),
    "two columns, tensor": (lambda: sf.fit(Tensor(), Y), r"`np.asarray\(scores\)\[:, 1\]`"),
    "three columns": (lambda: sf.fit(np.ones((50, 3)), Y), r"Pass one of its columns, such as `scores\[:, 1\]`"),
    "a column vector": (lambda: sf.fit(P[:, None], Y), r"got shape \(50, 1\). Pass `np.ravel\(scores\)`"),
    "a row": (lambda: sf.fit(P, Y[None]), r"`targets` .*got shape \(1, 50\). Pass `np.ravel\(targets\)`"),
    "a DataFrame of one column": (lambda: sf.fit(TABLE[["score"]], Y), r"Pass `np.ravel\(scores\)`"),
    "a number": (lambda: sf.fit(P, Y, sample_weight=2.0), r"`sample_weight` .*\(\). Pass a list or an array"),
    "groups as a number": (lambda: sf.fit_groups(P, Y, 5), r"`groups` .*\(\). Pass a list or an array"),
    "groups as a table": (lambda: sf.fit_groups(P, Y, TABLE[["city"]]), r"Pass `np.ravel\(groups\)`"),
    "groups as dates": (lambda: sf.fit_groups([1], [1], [dt.date(2020, 1, 1)]), "index 0. Convert them to text first"),
    "float groups": (lambda: sf.fit_groups(P, Y, P), "`groups` .* at index 0. Convert floats to integers or text"),
    "one column for fit_columns": (lambda: sf.fit_columns(P, Y), "Use `fit` for one column"),
    "classes from 1": (lambda: sf.calibration_errors(TWO, Y + 1), r"got 2 at .* `np.unique\(targets, return_inv"),
    "class numbers for fit_columns": (lambda: sf.fit_columns(TWO, Y), "np.equal.outer"),
    "ragged lists": (lambda: sf.fit([[1], [2, 3]], [0, 1]), r"setting an array element .*[^.]\.$"),
    # objects that are no columns
    "a name": (lambda: sf.fit("score", Y), r"got 'score'. Pass the column itself, for example `table\['score'\]`"),
    "nothing": (lambda: sf.fit(P, None), "`targets` .* got None. Pass a list"),
    "a function": (lambda: sf.fit(len, Y), "Pass a list, an array or a column"),
    "a generator": (lambda: sf.fit(named(3), Y), r"Pass `list\(scores\)`"),
    "a map": (lambda: sf.fit(map(float, P), Y), r"Pass `list\(scores\)`"),
    "a dict": (lambda: sf.fit({"score": P}, Y), r"Pass one of its columns, for example `scores\['score'\]`"),
    "a set": (lambda: sf.fit({1, 2}, Y), r"Pass `sorted\(scores\)`"),
    "a sparse matrix": (lambda: sf.fit(scipy.sparse.csr_matrix(P), Y), r"Pass `scores.toarray\(\).ravel\(\)`"),
    "bytes": (lambda: sf.fit(b"12", Y), r"got b'12'\.$"),
    "a device tensor": (lambda: sf.fit(DeviceTensor(), Y), r"call cpu\(\) first\.$"),
    # entries that are no numbers
    "complex": (lambda: sf.fit(P + 1j, Y), r"at index 0. Pass `np.real\(scores\)` or `np.abs"),
    "dates": (lambda: sf.fit([dt.date(2020, 1, 1)], [1]), r"`\(scores - scores.min\(\)\) / np.timedelta64"),
    "datetime64": (lambda: sf.fit(np.array(["2020-01-01"], "M8[s]"), [1]), r"np.datetime64\('2020.* Convert times"),
    "Arrow times": (lambda: sf.fit(pa.array([dt.datetime(2020, 1, 1)]), [1]), "Convert times"),  # noqa: DTZ001
    "durations": (lambda: sf.fit(np.array([5], "m8[s]"), [1]), r"np.timedelta64\(5,'s'\) .*Convert durations"),
    "text": (lambda: sf.fit(P.astype(str), Y), r"got '0.63.*`np.asarray\(scores, dtype=float\)`"),
    "a word among numbers": (lambda: sf.fit(["0.1", "low"], [0, 1]), r"got 'low' at index 1."),
    "a word among Arrow's": (lambda: sf.fit(pa.array(["1", "x"]), [0, 1]), r"got 'x' at index 1."),
    "an object among words": (lambda: sf.fit(np.array(["1", 2, "x"], object), [0, 1, 1]), r"got 'x' at index 2"),
    "words": (lambda: STAIRS.predict(["high"]), r"got 'high' at index 0. Convert text to numbers\.$"),
    "records": (lambda: sf.fit(np.zeros(2, [("p", "f8")]), [0, 1]), r"Pass one of its fields: `scores\['p'\]`"),
    "periods": (lambda: sf.fit(pd.Series(pd.period_range("2020", periods=1)), [1]), r"Period\(.* at index 0\.$"),
    "None": (lambda: sf.fit([None, 1], [0, 1]), "got None at index 0. Drop these rows, or fill them"),
    "NA": (lambda: sf.fit(pd.array([1, None], "Int64"), [0, 1]), "got <NA> at index 1. Drop these rows"),
    "NaN targets": (lambda: sf.fit([0.5, 1], [0, np.nan]), "must be finite; got nan at index 1. Drop these rows"),
    "large integers": (lambda: sf.fit(np.array([0, 2**53 + 1]), [0, 1]), "at index 1. Subtract the smallest one first"),
    "large integers, objects": (lambda: sf.fit(np.array([0.5, 2**53 + 1], object), [0, 1]), "at index 1. Subtract"),
    "NaN": (lambda: sf.fit([0.5, np.nan], [0, 1]), "got nan at index 1. Drop these rows"),
    "masked": (lambda: sf.fit(np.ma.array([1, 2], mask=[0, 1]), [0, 1]), "at index 1. Drop these rows"),
    # choices
    "loss": (lambda: sf.fit(P, Y, loss="hubber"), "got 'hubber'. Did you mean 'huber'"),
    "loss, case and dash": (lambda: sf.fit(P, Y, loss="Log-Loss"), "Did you mean 'log_loss'"),
    "loss, another library's name": (lambda: sf.fit(P, Y, loss="mse"), "Did you mean 'squared'"),
    "loss with its parameter": (lambda: sf.fit(P, Y, loss="huber:1.5"), r"Pass an object: losses.Huber\(1.5\)"),
    "loss as a call": (lambda: sf.fit(P, Y, loss="huber(delta=2)"), r"Pass an object: losses.Huber\(delta=2\)"),
    "loss, an unknown call": (lambda: sf.fit(P, Y, loss="hubber(2)"), "`loss` must be one of 'squared_error'"),
    "loss, a class": (lambda: sf.fit(P, Y, loss=L.Linex), r"Pass an object: Linex\(shape\)"),
    "loss, another class": (lambda: sf.fit(P, Y, loss=dict), r"Pass an object such as Huber\(1.5\)"),
    "loss, an array": (lambda: sf.fit(P, Y, loss=P), "`loss` must be a name or a loss object; got array"),
    "score": (lambda: sf.reliability(P, Y, score="brierr"), "`score` .* Did you mean 'brier'"),
    "score, synonym": (lambda: sf.reliability(P, Y, score="cross_entropy"), "Did you mean 'log'"),
    "bands": (lambda: sf.reliability(P, Y, bands="confidance"), "Did you mean 'confidence'"),
    "interpolation": (lambda: STAIRS.predict(P, interpolation="lineer"), "Did you mean 'linear'"),
    "out_of_bounds": (lambda: STAIRS.predict(P, out_of_bounds="rais"), "Did you mean 'raise'"),
    "dialect": (lambda: STAIRS.to_sql("p", dialect="postgresql"), "Did you mean 'postgres'"),
    "dialect, nothing similar": (lambda: STAIRS.to_sql("p", dialect="x" * 60), r"got 'x{60}'\.$"),
    "increasing": (lambda: sf.fit(P, Y, increasing="decreasing"), "got 'decreasing'. Did you mean False"),
    "increasing, 1": (lambda: sf.fit(P, Y, increasing=1), "got 1. Did you mean True"),
    "increasing, case": (lambda: sf.fit(P, Y, increasing="Auto"), "Did you mean 'auto'"),
    "prior": (lambda: StaircaseCalibrator(prior="laplase").fit(P, Y), "Did you mean 'laplace'"),
    "a group": (lambda: CITIES.predict([0.5], ["Rome"]), r"Group 'Rome' \(row 0\) was not .* Did you mean 'rome'"),
    "pos_label": (
        lambda: sf.ReliabilityDisplay.from_predictions(["n", "y"] * 25, P, pos_label="Y"), "one of 'n', 'y'.* mean 'y'"
    ),
    # numbers
    "bounds": (lambda: sf.fit(P, Y, bounds=(1, 0)), r"got \(1, 0\). Did you mean \(0, 1\)"),
    "a level in per cent": (lambda: sf.reliability(P, Y, bands="confidence", level=95), "Did you mean 0.95"),
    "a level of -1": (lambda: sf.reliability(P, Y, bands="confidence", level=-1), r"got -1\.$"),
    "a quantile in per cent": (lambda: L.Quantile(95), "got 95.0. Divide percentages by 100"),
    "a parameter as text": (lambda: L.Expectile("0.5"), "`level` must be .* got '0.5'. Pass a number, or an array"),
    "no bins": (lambda: sf.calibration_errors(P, Y, n_bins=0), r"`n_bins` must be an integer >= 1; got 0\.$"),
    "threads": (lambda: sf.fit(P, Y, n_threads=0), "must be an integer >= 1, -1 for all processors, or None"),
    # order
    "unordered rows": (lambda: sf.Online().extend([1, 3, 2], [0, 1, 1]), "got 2.0 at index 2. Use `Accumulator` for"),
    "arguments of certify": (lambda: sf.certify(P, Y, STAIRS), "Pass it before the scores"),
    "fitted values": (lambda: sf.certify(STAIRS(P), P, Y), r"`fit\(scores, values\)` makes one of fitted values"),
    # columns of tables
    "a column of batches": (
        lambda: sf.fit_batches([TABLE], "scroe", "label"),
        "batch 0: there is no column 'scroe'; the columns are 'score', 'label', 'city'. Did you mean 'score'",
    ),
    "a column of a LazyFrame": (lambda: sf.fit_batches(pl.LazyFrame(TWO), "a", "b"), "^there is no column 'a'"),
    # names of files
    "no name to save": (lambda: STAIRS.save(3), r"`path` must be the name of a file; got 3\.$"),
    "no name to load": (lambda: sf.Staircase.load(None), r"`path` must be the name of a file; got None\.$"),
    "a stream to load": (lambda: sf.Accumulator.load(0), r"`path` must be the name of a file; got 0\.$"),
    "no name for ONNX": (lambda: STAIRS.to_onnx(b"x".hex), r"`path` must be the name of a file; got <built-in"),
    # text that is no JSON
    "a table as JSON": (lambda: sf.Staircase.from_json("score,label\n1,1\n"), r"must be JSON text; .*\(char 0\)\.$"),
    "no text as JSON": (lambda: sf.Staircase.from_json(""), r"must be JSON text; .*\(char 0\)\.$"),
    "a path as JSON": (lambda: sf.Staircase.from_json("model.json"), "Pass the text of the file, not its name"),
    "damaged JSON": (lambda: sf.Staircase.from_json('{"format"'), r"delimiter.*\)\.$"),
    "JSON of another class": (lambda: sf.Staircase.from_json(sf.Online().to_json()), "read it with that class"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG_CALLS)
def test_the_error_for_a_wrong_call_says_how_to_fix_it(name):
    call, message = WRONG_CALLS[name]
    with (
        np.errstate(divide="ignore"),
        pytest.raises(sf.InvalidInputError, match=message) as found,
    ):
        call()
    assert "\n" not in str(found.value)
    assert str(found.value).count("must") <= 1


def test_scores_of_any_values_are_valid_under_the_squared_error():
    # 0/1 scores with real targets are a regression on two groups; only with shares, a swap is more likely
    assert sf.fit(Y, 3 * P).n_steps <= 2
    assert sf.reliability(Y, P, score="squared").n_samples == 50


def test_long_lists_of_choices_are_cut():
    assert options.listed(range(20)) == ", ".join(map(str, range(20)))
    assert options.listed([f"c{place}" for place in range(57)]).endswith(", 'c19' and 37 more")
    wide = {f"c{place}": [0, 1] for place in range(57)}
    with pytest.raises(
        sf.InvalidInputError, match=r"the columns are 'c0', .*'c19' and 37 more\. Did you mean 'c56'\?$"
    ):
        sf.fit_batches([wide], "c560", "c1")


def test_many_choices_are_not_compared():
    assert options.did_you_mean("step1", ["step2"]) == "Did you mean 'step2'?"
    assert options.did_you_mean("step1", [f"step{place}" for place in range(2, 20_000)]) == ""
    assert options.did_you_mean(1.5, [1.6]) == ""


def test_an_unknown_name_of_the_package_lets_python_suggest_one():
    with pytest.raises(AttributeError, match="has no attribute 'fit_batch'") as found:
        sf.fit_batch  # noqa: B018
    assert (found.value.name, found.value.obj) == ("fit_batch", sf)


@pytest.mark.parametrize("released", [False, True])
def test_one_constant_decides_how_an_extra_is_installed(monkeypatch, released):
    monkeypatch.setattr(errors, "RELEASED", released)
    way = "pip install 'staircase_fast[plot]'" if released else "pip install '.[plot]' in a checkout"
    assert str(errors.missing_extra("A plot", "matplotlib", "plot")) == (
        f"A plot needs matplotlib, which is not installed: {way}."
    )
    assert str(errors.missing_extra("`to_frame`", "pandas")) == "`to_frame` needs pandas, which is not installed."


def of_version(text, version):
    return json.dumps(json.loads(text) | {"version": version})


@pytest.mark.parametrize("made", [STAIRS, sf.Online(), sf.VennAbers().fit(P, Y)], ids=lambda made: type(made).__name__)
def test_text_of_a_newer_version_is_named_as_such(made):
    with pytest.raises(
        sf.InvalidInputError,
        match=r"`version` must be 1; got 2\. A newer version of staircase_fast wrote this; upgrade",
    ):
        type(made).from_json(of_version(made.to_json(), 2))
    for version in (0, "2", None):
        with pytest.raises(sf.InvalidInputError, match=r"`version` must be 1; got .*\.$") as found:
            type(made).from_json(of_version(made.to_json(), version))
        assert "newer" not in str(found.value)


def test_unknown_fields_and_losses_may_come_from_a_newer_version():
    document = json.loads(STAIRS.to_json())
    for change in ({"curve": 1}, {"loss": {"name": "cauchy"}}):
        with pytest.raises(sf.InvalidInputError, match="If a newer version of staircase_fast wrote this, upgrade"):
            sf.Staircase.from_json(json.dumps(document | change))


@pytest.mark.parametrize("made", [CITIES, sf.Accumulator()], ids=lambda made: type(made).__name__)
def test_a_file_of_a_newer_version_is_named_as_such(made, tmp_path):
    made.save(tmp_path / "old")
    with np.load(tmp_path / "old") as archive:
        arrays = dict(archive)
    header = of_version(arrays.pop("header").tobytes(), 7)
    with open(tmp_path / "new", "wb") as file:
        np.savez(file, header=np.frombuffer(header.encode(), np.uint8), **arrays)
    with pytest.raises(
        sf.InvalidInputError, match=r"new: field `version` must be 1; got 7\. A newer version .* upgrade"
    ):
        type(made).load(tmp_path / "new")


def test_minus_one_means_all_processors(monkeypatch):
    try:
        for _ in range(2):
            sf.set_num_threads(-1)
            everything = sf.get_num_threads()
            sf.set_num_threads(None)
            assert sf.get_num_threads() == everything
            monkeypatch.setenv("STAIRCASE_FAST_NUM_THREADS", "-1")
    finally:
        sf.set_num_threads(None)
    for n_threads in (-1, np.int64(-1)):
        assert sf.fit(P, Y, n_threads=n_threads) == STAIRS
        assert np.array_equal(STAIRS.predict(P, n_threads=n_threads), STAIRS(P))
        assert sf.fit_groups(P, Y, TABLE["city"], n_threads=n_threads) == CITIES
        assert sf.fit_batches([(P, Y)], n_threads=n_threads) == STAIRS
        assert sf.reliability(P, Y, n_threads=n_threads) == sf.reliability(P, Y)
        assert sf.calibration_errors(P, Y, n_threads=n_threads) == sf.calibration_errors(P, Y)
        assert StaircaseRegressor(n_threads=n_threads).fit(P, Y).staircase_ == STAIRS


@pytest.mark.parametrize("n_threads", [0, -2, True, -1.0, "all"])
def test_other_numbers_below_one_are_not_numbers_of_threads(n_threads):
    for call in (
        lambda: sf.fit(P, Y, n_threads=n_threads),
        lambda: STAIRS.predict(P, n_threads=n_threads),
        lambda: sf.isotonic_regression(P, loss="huber", n_threads=n_threads),
        lambda: sf.set_num_threads(n_threads),
    ):
        with pytest.raises(sf.InvalidInputError, match="must be an integer >= 1, -1 for all processors, or None; got"):
            call()


def test_no_prior_can_be_none():
    model = StaircaseCalibrator(prior=None).fit(P, Y)
    assert np.array_equal(model.predict_proba(P), StaircaseCalibrator(prior="none").fit(P, Y).predict_proba(P))
