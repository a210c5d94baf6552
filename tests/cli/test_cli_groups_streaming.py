"""`fit` and `certify` with --group of several and large files: the results of all rows in memory."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from command_line import error_of, folder_with_problem, problem, result_of, run
from pyarrow import csv, parquet

import staircase_fast as sf
from staircase_fast.cli import arguments, scanning, tables

pytestmark = pytest.mark.long
folder = pytest.fixture(folder_with_problem)


def write_parts(table, form="parquet"):
    """The table in three files of a folder."""
    Path("parts").mkdir(exist_ok=True)
    for place, (start, end) in enumerate([(0, 200), (200, 210), (210, len(table))]):
        write = parquet.write_table if form == "parquet" else csv.write_csv
        write(table.slice(start, end - start), f"parts/{place}.{form}")


@pytest.mark.parametrize("form", ["parquet", "csv"])
@pytest.mark.parametrize("group", ["city", "zone", "code"])
@pytest.mark.parametrize("weight", [[], ["--weight", "weight"]])
def test_several_files_give_the_model_of_all_rows(folder, capsys, form, group, weight):
    data = problem()
    write_parts(data, form)
    words = *weight, "--group", group, "--model", "m"
    code, result = result_of(capsys, "fit", "parts", *words, "--loss", "log")
    assert (code, result["groups"], result["rows"]) == (0, 3 if group == "zone" else 2, 500)
    w = data["weight"] if weight else None
    expected = sf.fit_groups(data["score"], data["label"], data[group], sample_weight=w, loss="log")
    assert sf.StaircaseMap.load("m") == expected
    code, result = result_of(capsys, "certify", "parts/*", *words)
    assert (code, result["optimal"], result["rows"], result["groups_failed"]) == (0, True, 500, [])
    assert result["worst_group"] in expected


@pytest.mark.parametrize("loss", ["squared", "huber:1"])
@pytest.mark.parametrize("name", ["data.parquet", "data.csv"])
def test_large_files_are_not_read_into_memory(folder, capsys, monkeypatch, name, loss):
    data = problem()
    monkeypatch.setattr(tables, "read_table", None)
    words = name, "--group", "zone", "--model", "m"
    assert run("fit", *words, "--loss", loss, "--streaming") == 0
    monkeypatch.setattr(scanning, "_LARGE", 100)
    capsys.readouterr()
    assert result_of(capsys, "certify", *words)[1]["optimal"]
    expected = sf.losses.Huber(1) if loss == "huber:1" else "squared"
    assert sf.StaircaseMap.load("m") == sf.fit_groups(data["score"], data["label"], data["zone"], loss=expected)


@pytest.mark.parametrize("form", ["parquet", "csv"])
def test_groups_too_large_for_memory_have_the_same_model(folder, capsys, form):
    rng = np.random.default_rng(1)
    score = rng.integers(0, 400, 60_000) / 4
    city = rng.choice(["oslo", "rome", "bonn"], len(score), p=[0.7, 0.2, 0.1])
    data = pa.table({"score": score, "label": rng.random(len(score)) < score / 100, "city": city})
    write_parts(data, form)
    words = "parts", "--group", "city", "--model", "m", "--memory-limit", "10MB"  # rome and bonn are gathered
    assert run("fit", *words) == 0
    expected = sf.fit_groups(data["score"], data["label"], data["city"])
    assert sf.StaircaseMap.load("m") == expected
    capsys.readouterr()
    code, result = result_of(capsys, "certify", *words)
    assert (code, result["optimal"], result["rows"]) == (0, True, len(score))
    for group in ("oslo", "rome"):  # one large, one gathered
        parts = expected.parts()
        parts["step_values"] = parts["step_values"].copy()
        first = expected.offsets[list(expected).index(group)]
        parts["step_values"][first] -= 0.25
        sf.StaircaseMap(**parts).save("m")
        code, result = result_of(capsys, "certify", *words, "--bounds", "-1,1")
        assert (code, result["optimal"]) == (arguments.NOT_OPTIMAL, False)
        assert (result["groups_failed"], result["worst_group"]) == ([group], group)
        assert result["gap"] > 0.01
        own = expected[group]
        assert own.left[0] <= result["worst_score"] <= own.right[0]


def test_the_certificate_is_that_of_all_rows_in_memory(folder, capsys):
    data = problem()
    sf.fit_groups(data["score"][:400], data["label"][:400], data["zone"][:400]).save("m")
    words = "data.parquet", "--group", "zone", "--model", "m"
    expected = result_of(capsys, "certify", *words)[1]
    code, result = result_of(capsys, "certify", *words, "--streaming")
    assert code == arguments.NOT_OPTIMAL
    for name in ("rows", "optimal", "gap", "groups", "groups_failed"):
        assert result[name] == expected[name]
    assert result["worst_score"] == data["score"][expected["worst_index"]].as_py()
    assert result["worst_group"] == data["zone"][expected["worst_index"]].as_py()


@pytest.mark.parametrize("form", ["parquet", "csv"])
def test_text_labels_work_with_groups(folder, capsys, form):
    data = problem()
    answers = pa.array(["yes" if label else "no" for label in data["label"].to_pylist()])
    write_parts(data.set_column(data.schema.names.index("label"), "label", answers), form)
    words = "parts", "--group", "city", "--positive", "yes", "--model", "m"
    assert run("fit", *words) == 0
    assert sf.StaircaseMap.load("m") == sf.fit_groups(data["score"], data["label"], data["city"])
    capsys.readouterr()
    assert result_of(capsys, "certify", *words)[1]["optimal"]
    wrong = "parts", "--group", "city", "--positive", "ja", "--model", "m"
    message = "parts/0." + form + " and 2 more: column 'label' must have the value 'ja' of --positive"
    for command in ("fit", "certify"):
        assert message in error_of(capsys, command, *wrong)


def test_groups_of_text_files_have_one_type(folder, capsys):
    Path("a.csv").write_text("score,label,g\n1,0,7\n2,1,10\n")
    Path("b.csv").write_text("score,label,g\n1,1,7\n")
    words = "--group", "g", "--model", "m"
    assert run("fit", "a.csv", "b.csv", *words) == 0
    assert list(sf.StaircaseMap.load("m")) == [7, 10]
    Path("b.csv").write_text("score,label,g\n1,1,07\n")
    assert run("fit", "a.csv", "b.csv", *words) == 0
    assert list(sf.StaircaseMap.load("m")) == ["07", "10", "7"]
    for keys, expected in (([7, 8], [7, 8, 10]), (["7", "8"], ["10", "7", "8"])):
        parquet.write_table(pa.table({"score": [1, 2], "label": [0, 1], "g": keys}), "c.parquet")
        assert run("fit", "a.csv", "c.parquet", *words) == 0
        assert list(sf.StaircaseMap.load("m")) == expected
        assert run("certify", "a.csv", "c.parquet", *words) == 0
    capsys.readouterr()
    Path("b.csv").write_text("score,label,g\n1,1,x\n")
    parquet.write_table(pa.table({"score": [1, 2], "label": [0, 1], "g": [True, False]}), "c.parquet")
    message = "b.csv: column 'g' must hold groups of type bool, as in the other files; got 'x' in row 0."
    assert message in error_of(capsys, "fit", "b.csv", "c.parquet", *words)
    message = "a.csv: column 'g' must hold groups of type int, as in the model; got 'x' in row 2."
    Path("a.csv").write_text("score,label,g\n1,0,7\n2,1,7\n2,1,x\n")
    sf.fit_groups([1], [0], [7]).save("m")
    assert message in error_of(capsys, "certify", "a.csv", "--streaming", *words)


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        (["a", None], "column 'g' must not have missing entries; got None in row 1."),
        ([1.5, 2.0], "column 'g' must be integers, strings or bools; got 1.5 in row 0."),
    ],
)
def test_invalid_groups_name_the_file_and_the_row(folder, capsys, keys, message):
    parquet.write_table(pa.table({"score": [1, 2], "label": [0, 1], "g": keys}), "b.parquet")
    words = "b.parquet", "--streaming", "--group", "g", "--model", "m"
    assert f"b.parquet: {message}" in error_of(capsys, "fit", *words)


def test_a_group_that_was_not_fitted_is_named_with_its_row(folder, capsys):
    data = problem()
    write_parts(data)
    sf.fit_groups([0, 1], [0, 1], ["oslo", "oslo"]).save("m")
    row = data["city"].to_pylist().index("rome")
    message = error_of(capsys, "certify", "parts", "--threads", "1", "--group", "city", "--model", "m")
    assert f"parts/0.parquet: Group 'rome' (row {row}) was not fitted.\n" in message


def test_a_group_whose_weights_have_no_finite_sum_is_named(folder, capsys):
    table = pa.table({"score": [1, 2], "label": [0, 1], "weight": [1.7e308] * 2, "g": ["a", "a"]})
    parquet.write_table(table, "a.parquet")
    sf.fit_groups([0], [0], ["a"]).save("m")
    words = "a.parquet", "--streaming", "--weight", "weight", "--group", "g", "--model", "m"
    for command in ("fit", "certify"):
        message = error_of(capsys, command, *words)
        assert "a.parquet: column 'weight' must have a finite sum" in message
        assert "(group 'a')" in message
