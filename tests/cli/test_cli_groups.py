"""Groups on the command line: each has its own staircase; errors name the group, the column and the row."""

from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pytest
from command_line import error_of, folder_with_problem, problem, result_of, run
from pyarrow import csv, ipc, parquet

import staircase_fast as sf
from staircase_fast.cli import arguments, tables

pytestmark = pytest.mark.long
folder = pytest.fixture(folder_with_problem)


@pytest.mark.parametrize("group", ["city", "zone", "code"])
@pytest.mark.parametrize("fitted", ["data.parquet", "data.csv"])
@pytest.mark.parametrize("applied", ["data.parquet", "data.csv"])
def test_each_group_has_its_own_staircase_in_every_format(folder, capsys, group, fitted, applied):
    code, result = result_of(capsys, "fit", fitted, "--group", group, "--model", "m")
    assert (code, result["groups"]) == (0, 3 if group == "zone" else 2)
    assert run("apply", applied, "--group", group, "--model", "m", "--output", "out.parquet") == 0
    data = problem()
    expected = sf.fit_groups(data["score"], data["label"], data[group])
    assert sf.StaircaseMap.load("m") == expected
    found = parquet.read_table("out.parquet")["calibrated"].to_numpy()
    np.testing.assert_array_equal(found, expected.predict(data["score"], data[group]))
    capsys.readouterr()
    code, result = result_of(capsys, "certify", applied, "--group", group, "--model", "m")
    assert (code, result["optimal"], result["groups_failed"]) == (0, True, [])


def test_a_group_that_was_not_fitted_needs_a_default(folder, capsys, monkeypatch):
    monkeypatch.setattr(tables, "ROWS", 100)
    data = problem()
    sf.fit_groups([0, 1], [0, 1], ["oslo", "oslo"]).save("m")
    sf.fit([0], [5]).save("default.json")
    words = "data.parquet", "--group", "city", "--model", "m"
    message = error_of(capsys, "apply", *words, "--output", "out.parquet")
    row = data["city"].to_pylist().index("rome")
    assert f"data.parquet: Group 'rome' (row {row}) was not fitted; pass --default for groups" in message
    assert run("apply", *words, "--output", "out.parquet", "--default", "default.json") == 0
    capsys.readouterr()
    found = parquet.read_table("out.parquet")
    assert set(found.filter(pa.compute.equal(found["city"], "rome"))["calibrated"].to_pylist()) == {5.0}
    assert f"data.parquet: Group 'rome' (row {row}) was not fitted.\n" in error_of(capsys, "certify", *words)


@pytest.mark.parametrize("encoded", [False, True])
@pytest.mark.parametrize("words", [["certify"], ["apply", "--output", "out.csv"]])
def test_a_missing_group_is_an_error(folder, capsys, words, encoded):
    data = problem()
    sf.fit_groups(data["score"], data["label"], data["city"]).save("m")
    city = pa.chunked_array([[*data["city"].to_pylist()[:-1], None]])
    place = data.schema.names.index("city")
    parquet.write_table(data.set_column(place, "city", city.dictionary_encode() if encoded else city), "a.parquet")
    message = f"a.parquet: column 'city' must not have missing entries; got None in row {len(data) - 1}."
    assert message in error_of(capsys, *words, "a.parquet", "--group", "city", "--model", "m")


def test_certify_names_the_groups_that_are_not_optimal(folder, capsys):
    data = problem()
    good = sf.fit_groups(data["score"], data["label"], data["city"])
    parts = good.parts()
    parts["step_values"] = parts["step_values"].copy()
    parts["step_values"][-1] += 0.25  # of rome
    sf.StaircaseMap(**parts).save("m")
    code, result = result_of(capsys, "certify", "data.parquet", "--group", "city", "--model", "m")
    assert code == arguments.NOT_OPTIMAL
    assert result["groups_failed"] == ["rome"]
    assert data["city"][result["worst_index"]].as_py() == "rome"
    assert result["gap"] > 0.01


def test_errors_about_groups_name_the_group_and_the_row(folder, capsys):
    sf.fit_groups([1, 2], [0, 1], [7, 8]).save("map")
    for group, message in (
        ("9", "a.csv: Group 9 (row 1) was not fitted; pass --default for groups that were not fitted."),
        ("x", "a.csv: column 'g' must hold groups of type int, as in the model; got 'x' in row 1."),
    ):
        Path("a.csv").write_text(f"score,label,g\n1,0,7\n2,1,{group}\n")
        words = ("apply", "a.csv", "--group", "g", "--model", "map", "--output", "b.csv")
        assert message in error_of(capsys, *words)


@pytest.mark.parametrize("words", [["certify"], ["apply", "--output", "out.parquet"]])
@pytest.mark.parametrize(
    ("groups", "message"),
    [
        (pa.array([7.0, 8.0]), "column 'g' must be integers, strings or bools; got 7.0 in row 0."),
        (
            pa.array([Decimal(7), Decimal(8)]),
            "column 'g' must be integers, strings or bools; got Decimal('7') in row 0.",
        ),
        (
            pa.DictionaryArray.from_arrays([0, 1], [7, None]),
            "column 'g' must not have missing entries; got None in row 1.",
        ),
        (pa.array([9, 3]), "Group 9 (row 0) was not fitted"),
    ],
    ids=["floats", "decimals", "null in a dictionary", "unknown"],
)
def test_all_commands_reject_the_same_groups(folder, capsys, groups, message, words):
    sf.fit_groups([1, 2], [0, 1], [7, 8]).save("map")
    with ipc.new_stream("a.arrows", pa.schema({"score": pa.int64(), "label": pa.int64(), "g": groups.type})) as file:
        file.write(pa.record_batch([pa.array([1, 2]), pa.array([0, 1]), groups], names=["score", "label", "g"]))
    found = error_of(capsys, *words, "a.arrows", "--group", "g", "--model", "map")
    assert found.startswith(f"staircase-fast: a.arrows: {message}")


def test_certify_merges_groups_that_appear_twice_in_a_dictionary(folder, capsys):
    twice = pa.DictionaryArray.from_arrays([0, 1, 2], ["a", "b", "a"])
    table = pa.table({"score": [1, 2, 3], "label": [1, 5, 0], "g": twice})
    with ipc.new_stream("a.arrows", table.schema) as file:
        file.write(table)
    sf.fit_groups([1, 2, 3], [1, 5, 0], ["a", "b", "a"]).save("map")
    code, result = result_of(capsys, "certify", "a.arrows", "--group", "g", "--model", "map")
    assert (code, result["groups"], result["groups_failed"]) == (0, 2, [])


def test_a_group_whose_name_looks_like_an_error_message_is_only_a_name(folder, capsys):
    Path("a.csv").write_text("score,g\n,a\n1,a\n2,at index 999999\n")
    sf.fit_groups([1, 2], [0, 1], ["a", "a"]).save("map")
    words = "apply", "a.csv", "--missing", "null", "--group", "g", "--model", "map", "--output", "b.csv"
    assert "a.csv: Group 'at index 999999' (row 2) was not fitted; pass --default for" in error_of(capsys, *words)


def test_groups_that_are_not_optimal_are_listed(folder, capsys):
    Path("a.csv").write_text("score,label,g\n1,0,a\n2,1,b\n")
    for fitted, shown in (([0, 1], "none"), ([1, 0], "a, b")):
        sf.fit_groups([1, 2], fitted, ["a", "b"]).save("map")
        run("certify", "a.csv", "--group", "g", "--model", "map")
        assert f"groups failed       {shown}\n" in capsys.readouterr().out


def test_the_first_of_many_groups_that_failed_are_printed(folder, capsys):
    csv.write_csv(pa.table({"score": [0, 1] * 12, "label": [0, 1] * 12, "g": sorted([*range(12)] * 2)}), "a.csv")
    sf.fit_groups([0, 1] * 12, [0, 2] * 12, sorted([*range(12)] * 2)).save("map")
    words = "certify", "a.csv", "--group", "g", "--model", "map"
    assert run(*words) == arguments.NOT_OPTIMAL
    assert "groups failed       0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 2 more\n" in capsys.readouterr().out
    assert result_of(capsys, *words)[1]["groups_failed"] == [*range(12)]
