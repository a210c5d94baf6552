"""`--positive`: labels that are text, bools or numbers; rows with the named value are 1, all others 0."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from command_line import error_of, folder_with_problem, result_of, run
from pyarrow import parquet

import staircase_fast as sf
from staircase_fast.cli import scanning

folder = pytest.fixture(folder_with_problem)
SCORES, ANSWERS = [0.1, 0.2, 0.3, 0.4], ["no", "yes", "no", "yes"]
EXPECTED = sf.fit(SCORES, [0, 1, 0, 1])


def write(answers, name="a.parquet"):
    table = pa.table({"score": pa.array(SCORES), "label": answers})
    if name.endswith("csv"):
        Path(name).write_text("score,label\n" + "".join(f"{x},{y}\n" for x, y in zip(SCORES, answers, strict=True)))
    else:
        parquet.write_table(table, name, row_group_size=2)
    return name


@pytest.mark.parametrize(
    ("answers", "value"),
    [
        (pa.array(ANSWERS), "yes"),
        (pa.array(ANSWERS).dictionary_encode(), " yes"),
        (pa.array([" yes" if answer == "yes" else answer for answer in ANSWERS]), "yes"),
        (pa.array([False, True, False, True]), "true"),
        (pa.array([3, -2, 4, -2], pa.int8()), "-2"),
        (pa.array([0.5, 1.5, 0.5, 1.5]), "1.5"),
        (pa.array(["a", "NA", "b", "NA"]), "NA"),
    ],
    ids=str,
)
def test_rows_with_the_value_are_one_and_all_others_zero(folder, answers, value):
    assert run("fit", write(answers), "--positive", value, "--model", "m.json") == 0
    assert sf.Staircase.load("m.json") == EXPECTED


@pytest.mark.parametrize("words", [[], ["--streaming"]])
@pytest.mark.parametrize("name", ["a.csv", "a.parquet"])
def test_text_labels_work_for_fit_certify_and_report(folder, capsys, monkeypatch, name, words):
    write(ANSWERS, name)
    named = "--positive", "yes"
    assert run("fit", name, *named, *words, "--model", "m.json") == 0
    assert sf.Staircase.load("m.json") == EXPECTED
    capsys.readouterr()
    assert result_of(capsys, "certify", name, *named, "--model", "m.json")[1]["optimal"]
    found = result_of(capsys, "report", name, *named)[1]
    assert found["before"]["mean_score"] == sf.reliability(SCORES, [0, 1, 0, 1]).mean_score
    monkeypatch.setattr(scanning, "_LARGE", 1)
    assert run("fit", name, name, *named, "--model", "twice.json") == 0
    np.testing.assert_array_equal(sf.Staircase.load("twice.json").values, EXPECTED.values)


@pytest.mark.parametrize("words", [[], ["--streaming"]])
def test_a_value_that_never_occurs_is_an_error_that_lists_the_values(folder, capsys, words):
    name = write(pa.array(ANSWERS))
    message = error_of(capsys, "fit", name, *words, "--positive", "Yes", "--model", "m.json")
    wanted = (
        "a.parquet: column 'label' must have the value 'Yes' of --positive in some row; its values are 'no', 'yes'."
    )
    assert wanted in message
    assert "its values are False, True." in error_of(
        capsys, "fit", write(pa.array([False, True] * 2)), *words, "--positive", "yes", "--model", "m.json"
    )
    many = pa.table({"score": np.arange(20.0), "label": [f"v{k}" for k in range(20)]})
    parquet.write_table(many, "many.parquet", row_group_size=1)
    message = error_of(capsys, "fit", "many.parquet", *words, "--positive", "no", "--model", "m.json")
    assert "its values are 'v0', 'v1', 'v2', 'v3', 'v4' and others." in message
    message = error_of(capsys, "fit", "many.parquet", name, "--positive", "maybe", "--model", "m.json")
    assert "many.parquet and 1 more: column 'label' must have" in message


@pytest.mark.parametrize("missing", [None, "", "NA"])
def test_a_missing_label_is_an_error_that_names_the_row(folder, capsys, missing):
    name = write(pa.array(["no", "yes", missing, "yes"]))
    message = error_of(capsys, "fit", name, "--positive", "yes", "--model", "m.json")
    assert f"a.parquet: column 'label' must not have missing entries; got {missing!r} in row 2." in message


def test_a_column_with_two_texts_suggests_positive(folder, capsys):
    write(ANSWERS, "a.csv")
    message = error_of(capsys, "fit", "a.csv", "--model", "m.json")
    assert "a.csv: column 'label' must hold numbers; got 'no' in row 0. Its values are 'no' and 'yes'" in message
    assert message.endswith("pass one as --positive yes.\n")
    assert "--positive 'very good'." in error_of(
        capsys, "fit", write(["bad", "very good"] * 2, "b.csv"), "--model", "m.json"
    )
    assert "--positive" not in error_of(capsys, "fit", write(["a", "b", "c", "a"], "c.csv"), "--model", "m.json")
    assert "--positive Y." in error_of(capsys, "fit", write(["Y", "", "N", "Y"], "f.csv"), "--model", "m.json")
    for texts in (["0", "N/A"] * 2, ["x", "1"] * 2):  # numbers, and an entry that is not one
        assert "--positive" not in error_of(capsys, "fit", write(texts, "e.csv"), "--model", "m.json")
    message = error_of(capsys, "fit", write(ANSWERS, "d.csv"), "--score", "label", "--label", "score", "--model", "m")
    assert "--positive" not in message


def test_labels_are_numbers_again_in_the_next_command(folder):
    assert run("fit", write(pa.array(ANSWERS)), "--positive", "yes", "--model", "m.json") == 0
    assert run("fit", write(pa.array([0, 1, 0, 1])), "--model", "n.json") == 0
    assert sf.Staircase.load("n.json") == EXPECTED
