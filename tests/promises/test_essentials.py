"""Short tests of the parts whose thorough tests are marked as long."""

import ctypes
import math

import duckdb
import numpy as np
import onnxruntime
import pyarrow as pa
import pytest
from comparing import assert_same_bits, assert_same_staircase
from pyarrow import csv, parquet
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold

import staircase_fast as sf
from staircase_fast.cli import arguments, parser
from staircase_fast.sklearn import StaircaseCalibrator

L = sf.losses

# The command line


@pytest.fixture
def data(tmp_path, monkeypatch):
    """Columns of data.csv, and of data.parquet, which has three row groups, in the current folder."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    scores = rng.integers(0, 64, 300) / 64
    labels = (rng.random(300) < scores).astype(int)
    table = pa.table({"score": scores, "label": labels, "weight": rng.integers(1, 4, 300)})
    csv.write_csv(table, "data.csv")
    parquet.write_table(table, "data.parquet", row_group_size=100)
    return {name: table[name].to_numpy() for name in table.column_names}


def run(*words):
    return arguments.main(list(words))


def rewritten(data, name, column, row, value):
    """Write the data as Parquet with one entry changed."""
    table = {one: entries.astype(object) for one, entries in data.items()}
    table[column][row] = value
    parquet.write_table(pa.table({one: entries.tolist() for one, entries in table.items()}), name, row_group_size=100)


def test_a_model_is_fitted_applied_and_certified(data):
    assert run("fit", "data.csv", "--weight", "weight", "--model", "model.json") == arguments.DONE
    stairs = sf.fit(data["score"], data["label"], sample_weight=data["weight"])
    assert_same_staircase(sf.Staircase.load("model.json"), stairs)
    assert run("apply", "data.parquet", "--model", "model.json", "--output", "out.parquet") == arguments.DONE
    assert_same_bits(parquet.read_table("out.parquet")["calibrated"].to_numpy(), stairs(data["score"]))
    assert run("certify", "data.csv", "--weight", "weight", "--model", "model.json") == arguments.DONE
    assert run("certify", "data.csv", "--model", "model.json") == arguments.NOT_OPTIMAL


@pytest.mark.parametrize("way", [[], ["--streaming"]])
def test_direction_and_bounds_reach_the_fit(data, way):
    words = ["--direction", "decreasing", "--bounds", "-1,0.4", "--model", "model.json"]
    assert run("fit", "data.csv", *words, *way) == arguments.DONE
    expected = sf.fit(data["score"], data["label"], increasing=False, bounds=(-1, 0.4))
    assert_same_staircase(sf.Staircase.load("model.json"), expected)


def test_a_model_does_not_overwrite_its_data(data, capsys):
    with pytest.raises(SystemExit) as ended:
        run("fit", "data.csv", "--model", "data.csv")
    assert ended.value.code == parser.USAGE
    assert "data.csv" in capsys.readouterr().err


@pytest.mark.parametrize("way", [[], ["--streaming"]])
def test_a_bad_row_is_counted_from_the_start_of_the_file(data, way, capsys):
    rewritten(data, "bad.parquet", "label", 250, math.nan)
    assert run("fit", "bad.parquet", "--model", "model.json", *way) == arguments.REFUSED
    assert "250" in capsys.readouterr().err


def test_missing_scores_raise_an_error_or_give_null(data, capsys):
    assert run("fit", "data.csv", "--model", "model.json") == arguments.DONE
    rewritten(data, "gaps.parquet", "score", 210, None)
    apply = ["apply", "gaps.parquet", "--model", "model.json", "--output", "out.parquet"]
    assert run(*apply) == arguments.REFUSED
    assert "210" in capsys.readouterr().err
    assert run(*apply, "--missing", "null") == arguments.DONE
    made = parquet.read_table("out.parquet")["calibrated"].to_pylist()
    expected = sf.fit(data["score"], data["label"])(data["score"]).tolist()
    assert made == [*expected[:210], None, *expected[211:]]


def test_the_row_number_of_an_invalid_score_counts_missing_scores(data, capsys):
    assert run("fit", "data.csv", "--model", "model.json") == arguments.DONE
    data["score"] = data["score"].astype(object)
    data["score"][205] = None
    rewritten(data, "gaps.parquet", "score", 210, 7.0)
    words = ["--missing", "null", "--out-of-bounds", "raise"]
    assert run("apply", "gaps.parquet", "--model", "model.json", "--output", "out.parquet", *words) == arguments.REFUSED
    assert "210" in capsys.readouterr().err


def test_another_delimiter_is_read_and_written(data):
    with open("semicolons.csv", "w") as file:
        file.write("score;label\n1;0\n2;1\n")
    assert run("fit", "semicolons.csv", "--delimiter", ";", "--model", "model.json") == arguments.DONE
    words = ["--model", "model.json", "--output", "out.csv"]
    assert run("apply", "semicolons.csv", "--delimiter", ";", *words) == arguments.DONE
    with open("out.csv") as file:
        assert file.read() == "score;label;calibrated\n1;0;0\n2;1;1\n"


# Rounds one at a time


def test_the_rounds_of_the_paper_merge_groups_and_halve_bounds():
    fit = sf.Anytime([1, 2, 3], [1.3, 4.0, 2.2], loss="log_cosh", bounds=(0, 8))
    fit.step()
    assert (fit.lower.tolist(), fit.upper.tolist(), fit.n_blocks) == ([0.0, 0.0], [4.0, 4.0], 2)
    assert fit.refine(max_rounds=3) == "max_rounds"
    assert fit.n_rounds == 4
    assert fit.refine(tol=1e-9) == "tol"
    assert fit.resolved
    exact = sf.fit([1, 2, 3], [1.3, 4.0, 2.2], loss="log_cosh")
    assert np.all((fit.lower <= exact.values) & (exact.values <= fit.upper))
    assert fit.staircase().values == pytest.approx(exact.values, abs=1e-9)


def test_rows_of_one_score_stay_together_in_every_round():
    scores, targets = [1, 1, 2, 2, 2, 3], [0.0, 4.0, 1.0, 6.0, -3.0, 2.5]
    fit = sf.Anytime(scores, targets, loss="huber", bounds=(-4, 8))
    assert fit.n_blocks == 3
    for _ in range(6):
        fit.step()
        assert fit.n_blocks <= 3
    fit.refine()
    assert fit.staircase().values == pytest.approx(sf.fit(scores, targets, loss="huber").values, abs=1e-12)


def test_decreasing_rounds_equal_increasing_ones_with_negated_scores():
    rng = np.random.default_rng(1)
    scores, targets = rng.permutation(30).astype(float), rng.normal(size=30)
    rising = sf.Anytime(scores, targets, loss="pseudo_huber", bounds=(-4, 4))
    falling = sf.Anytime(-scores, targets, loss="pseudo_huber", bounds=(-4, 4), increasing=False)
    for _ in range(8):
        rising.step()
        falling.step()
        assert falling.lower[::-1].tolist() == rising.lower.tolist()
        assert falling.upper[::-1].tolist() == rising.upper.tolist()
        assert np.all(rising.lower <= rising.upper)


def test_decreasing_targets_become_one_block():
    fit = sf.Anytime(np.arange(6), [5.0, 4.0, 3.0, 2.0, 1.0, 0.0], loss="squared", bounds=(-5, 10))
    fit.refine()
    assert fit.n_blocks == 1
    assert 2.5 - 1e-13 < fit.lower[0] <= 2.5 <= fit.upper[0] < 2.5 + 1e-13


def test_groups_that_are_flat_at_a_cut_are_not_merged():
    for loss, targets in ((sf.losses.Quantile(), [2.0, 0.0, 1.0]), (sf.losses.Huber(0.25), [2.0, 3.0, 0.0])):
        n_steps = sf.fit([1, 2, 3], targets, loss=loss).n_steps
        fit = sf.Anytime([1, 2, 3], targets, loss=loss, bounds=(-1.7, 5.3))
        for _ in range(9):
            fit.step()
            assert not fit.resolved or fit.n_blocks == n_steps


def test_rows_that_share_a_value_only_after_many_rounds_are_merged():
    targets = [1.0, -2.0, -1.0, -1.0, 0.0]
    fit = sf.Anytime(range(5), targets, loss="huber")
    for _ in range(60):
        fit.step()
    # any value in [-1, 0] is optimal for the first two rows; the next two force -1, up to rounding
    assert fit.n_blocks == fit.staircase().n_steps == 3
    assert fit.staircase().values == pytest.approx([-1.0, -1.0, 0.0], abs=1e-14)


# User-defined derivatives


def test_a_derivative_in_python_or_compiled_gives_the_fit_of_its_loss():
    scores, targets = np.arange(30), np.random.default_rng(2).normal(size=30)
    expected = sf.fit(scores, targets, loss="log_cosh").values
    plain = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double, ctypes.c_double)(lambda z, y: math.tanh(z - y))
    kind = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double, ctypes.c_double, ctypes.c_void_p)
    with_data = kind(lambda z, y, data: math.tanh(z - y) if data is None else math.nan)
    for derivative in (lambda z, y: np.tanh(z - y), plain, with_data):
        assert sf.fit(scores, targets, loss=L.Custom(derivative)).values == pytest.approx(expected, abs=1e-12)


def test_a_derivative_that_decreases_or_is_nan_is_refused():
    def falls(z, y):
        return np.where(z - y > 0.5, 1.0 - z + y, z - y)

    def nan(z, y):
        return np.where(y == 3.0, np.nan, z - y)

    for derivative, message in ((falls, "must not decrease"), (nan, "must not be NaN; got nan for sample 3")):
        with pytest.raises(ValueError, match=message):
            sf.fit(range(5), [4.0, 2.0, 1.0, 3.0, 0.0], loss=L.Custom(derivative))


# Calibrated classifiers


def classified(n_classes, n=240):
    rng = np.random.default_rng(3)
    labels = rng.integers(0, n_classes, n)
    return np.column_stack([labels + rng.normal(size=n), rng.normal(size=n)]), labels, rng.random(n) + 0.1


@pytest.mark.parametrize("n_classes", [2, 3])
def test_an_ensemble_is_the_mean_of_classifiers_fitted_and_calibrated_on_different_rows(n_classes):
    X, y, weights = classified(n_classes)
    model = StaircaseCalibrator(LogisticRegression(), cv=KFold(3), ensemble=True).fit(X, y, sample_weight=weights)
    expected = np.zeros((len(X), n_classes))
    for train, test in KFold(3).split(X):
        inner = LogisticRegression().fit(X[train], y[train], sample_weight=weights[train])
        scores, rows = inner.decision_function(X[test]), inner.decision_function(X)
        if n_classes == 2:
            stairs = sf.fit(scores, y[test] == 1, sample_weight=weights[test], loss="log")
            one = stairs.predict(rows, interpolation="linear")
            expected += np.column_stack([1 - one, one]) / 3
        else:
            labels = y[test][:, np.newaxis] == np.arange(n_classes)
            found = sf.fit_columns(scores, labels, sample_weight=weights[test], loss="log")
            table = found.predict_columns(rows, interpolation="linear")
            expected += table / table.sum(axis=1, keepdims=True) / 3
    probabilities = model.predict_proba(X)
    assert probabilities == pytest.approx(expected, abs=1e-12)
    assert model.predict(X).tolist() == np.argmax(probabilities, axis=1).tolist()


def test_classes_that_all_have_probability_0_get_equal_probabilities():
    scores = np.array([[1.0, 0, 0], [0, 1, 0], [0, 0, 1]])
    model = StaircaseCalibrator().fit(scores, [0, 1, 2])
    assert model.predict_proba([[0.0, 0.0, 0.0]]).tolist() == [[1 / 3, 1 / 3, 1 / 3]]


# Exports


@pytest.mark.parametrize("interpolation", ["step", "linear"])
@pytest.mark.parametrize("out_of_bounds", ["clip", "nan"])
def test_sql_and_onnx_equal_predict(interpolation, out_of_bounds, tmp_path):
    stairs = sf.fit([1, 2, 3, 4, 5], [1.0, 0.0, 4.0, 3.0, 7.0])
    queries = np.array([0.5, 1, 1.5, 2, 2.5, 3, 4, 4.5, 5, 5.5])
    expected = stairs.predict(queries, interpolation=interpolation, out_of_bounds=out_of_bounds)
    expression = stairs.to_sql("score", interpolation=interpolation, out_of_bounds=out_of_bounds)
    rows = ", ".join(f"({query})" for query in queries)
    found = duckdb.sql(f"SELECT {expression} FROM (VALUES {rows}) AS t(score)").fetchall()
    assert_same_bits([math.nan if value is None else value for (value,) in found], expected)
    path = tmp_path / "stairs.onnx"
    stairs.to_onnx(path, interpolation=interpolation, out_of_bounds=out_of_bounds)
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    assert_same_bits(session.run(None, {"scores": queries})[0], expected)
