"""The commands export, merge and show."""

import io
import json
import sys
from pathlib import Path

import numpy as np
import pytest
from command_line import error_of, result_of, run

import staircase_fast as sf
from staircase_fast.cli import parser

SCORES, LABELS, CITIES = [0.1, 0.4, 0.35, 0.8], [0, 0, 1, 1], ["oslo", "rome", "oslo", "rome"]
STAIRS, MAP = sf.fit(SCORES, LABELS), sf.fit_groups(SCORES, LABELS, CITIES)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    STAIRS.save("m.json")
    MAP.save("map")
    for number in range(3):
        day = sf.Accumulator()
        day.add(np.array(SCORES) + number / 8, LABELS)
        day.save(f"day{number}.npz")


def usage_error(capsys, *words):
    with pytest.raises(SystemExit) as ended:
        run(*words)
    assert ended.value.code == parser.USAGE
    return capsys.readouterr().err


def test_without_words_the_help_is_printed(capsys):
    with pytest.raises(SystemExit) as ended:
        run()
    assert ended.value.code is None or ended.value.code == 0
    shown = capsys.readouterr()
    assert shown.err == ""
    assert all(name in shown.out for name in ("usage: staircase-fast", "fit", "export", "merge", "show", "demo"))


def test_a_staircase_is_exported_to_sql(capsys):
    assert run("export", "m.json", "--to", "sql") == 0
    assert capsys.readouterr().out == STAIRS.to_sql("score") + "\n"
    words = ["--dialect", "spark", "--column", "x", "--interpolation", "linear", "--out-of-bounds", "nan"]
    assert run("export", "m.json", "--to", "sql", *words, "-o", "a.sql") == 0
    wanted = STAIRS.to_sql("x", dialect="spark", interpolation="linear", out_of_bounds="nan")
    assert Path("a.sql").read_text() == wanted + "\n"
    assert "format" in capsys.readouterr().out


def test_a_map_is_exported_to_sql(capsys):
    assert run("export", "map", "--to", "sql", "--group", "city", "--dialect", "postgres") == 0
    assert capsys.readouterr().out == MAP.to_sql("score", "city", dialect="postgres") + "\n"


def test_a_staircase_is_exported_to_json_and_onnx(capsys, monkeypatch):
    assert run("export", "m.json", "--to", "json", "--output", "b.json") == 0
    assert sf.Staircase.load("b.json") == STAIRS
    monkeypatch.setattr(sys, "stdin", io.StringIO(STAIRS.to_json()))
    capsys.readouterr()
    assert run("export", "-", "--to", "json") == 0
    assert sf.Staircase.from_json(capsys.readouterr().out) == STAIRS
    onnxruntime = pytest.importorskip("onnxruntime")
    assert run("export", "m.json", "--to", "onnx", "-o", "m.onnx") == 0
    (values,) = onnxruntime.InferenceSession("m.onnx").run(None, {"scores": np.array(SCORES)})
    np.testing.assert_array_equal(values, STAIRS(SCORES))


def test_export_reports_options_that_do_not_fit(capsys):
    for words, message in (
        (["--to", "json", "--dialect", "spark"], "--dialect needs --to sql; got --to json"),
        (["--to", "onnx", "--column", "x", "-o", "a"], "--column needs --to sql; got --to onnx"),
        (["--to", "json", "--out-of-bounds", "nan"], "--out-of-bounds needs --to sql or --to onnx; got --to json"),
        (["--to", "onnx"], "--to onnx needs --output FILE"),
        (["--to", "json", "-o", "m.json"], "MODEL and --output must be different files; both are 'm.json'"),
        (["--to", "sql", "--dialect", "dbase"], "argument --dialect: invalid choice: 'dbase'"),
    ):
        assert message in usage_error(capsys, "export", "m.json", *words)
    assert "map: the model has groups; name their column with --group." in error_of(
        capsys, "export", "map", "--to", "sql"
    )
    words = "export", "m.json", "--to", "sql", "--group", "city"
    assert "m.json: the model has no groups; got --group city." in error_of(capsys, *words)
    assert "day0.npz" in error_of(capsys, "export", "day0.npz", "--to", "json")


def test_a_map_is_exported_to_json_and_onnx(capsys):
    assert run("export", "map", "--to", "json", "--output", "map.json") == 0
    assert sf.StaircaseMap.from_json(Path("map.json").read_text("utf-8")) == MAP
    capsys.readouterr()
    _, shown = result_of(capsys, "show", "map.json")
    assert (shown["kind"], shown["groups"]) == ("map of groups", 2)
    onnxruntime = pytest.importorskip("onnxruntime")
    assert run("export", "map", "--to", "onnx", "-o", "map.onnx") == 0
    inputs = {"scores": np.array([0.5, 0.5]), "groups": np.array(["oslo", "bonn"], dtype=object)}
    (values,) = onnxruntime.InferenceSession("map.onnx").run(None, inputs)
    np.testing.assert_array_equal(values, [MAP["oslo"](0.5), np.nan])


def test_merged_accumulators_give_the_staircase_of_all_rows(capsys):
    code, result = result_of(capsys, "merge", "day*.npz", "--output", "all.npz", "--model", "all.json")
    scores = np.concatenate([np.array(SCORES) + number / 8 for number in range(3)])
    expected = sf.fit(scores, LABELS * 3)
    assert sf.Staircase.load("all.json") == sf.Accumulator.load("all.npz").staircase() == expected
    assert result.pop("seconds") > 0
    assert (code, result) == (
        0,
        {
            "files": 3, "rows": 12, "distinct_scores": len(np.unique(scores)), "loss": "SquaredError()",
            "direction": "increasing", "steps": expected.n_steps, "output": "all.npz", "model": "all.json",
        },
    )  # fmt: skip


def test_merge_may_write_to_a_file_that_it_reads_and_print_a_bounded_staircase(capsys):
    assert run("merge", "day0.npz", "day1.npz", "--output", "day0.npz", "--model", "-", "--bounds", "-1,0.5") == 0
    shown = capsys.readouterr()
    assert sf.Accumulator.load("day0.npz").n_samples == 8
    assert sf.Staircase.from_json(shown.out).values.max() == 0.5
    assert "rows                8\n" in shown.err


def test_merge_refuses_an_output_that_its_pattern_matches(capsys):
    assert run("merge", "day*.npz", "--output", "total.npz") == 0
    capsys.readouterr()
    message = error_of(capsys, "merge", "*.npz", "--output", "total.npz")
    assert "total.npz: is --output, and '*.npz' matches it; its rows would count twice." in message
    assert "list the files." in message
    assert sf.Accumulator.load("total.npz").n_samples == sum(
        sf.Accumulator.load(path).n_samples for path in Path().glob("day*.npz")
    )


def test_an_accumulator_as_a_model_is_an_error_that_names_merge(capsys):
    message = error_of(capsys, "export", "day0.npz", "--to", "json")
    assert "day0.npz: field `format` must be" in message
    assert "This is an accumulator; `staircase-fast merge` fits its rows and writes a model." in message


def test_export_prints_its_result_as_json(capsys):
    code, found = result_of(capsys, "export", "m.json", "--to", "json", "--output", "copy.json")
    assert (code, found["format"], found["output"]) == (0, "json", "copy.json")
    assert "cannot share standard output" in usage_error(capsys, "export", "m.json", "--to", "json", "--json")


def test_errors_of_merge_name_the_file(capsys):
    other = sf.Accumulator("log")
    other.save("log.npz")
    falling = sf.Accumulator(increasing=False)
    falling.save("falling.npz")
    for words, message in (
        (["day0.npz", "log.npz"], "log.npz: must have the loss of day0.npz, SquaredError(); got LogLoss()."),
        (["day0.npz", "falling.npz"], "falling.npz: must have the direction of day0.npz, increasing; got decreasing."),
        (["day0.npz", "./day0.npz"], "./day0.npz: is given twice; its rows would count twice."),
        (["day0.npz", "day0.npz"], "day0.npz: is given twice; its rows would count twice."),
        (["month*.npz"], "month*.npz: no file matches this pattern."),
        (["month.npz"], "month.npz: No such file or directory"),
        (["map"], "map: field `format` must be 'staircase_fast.Accumulator'; got 'staircase_fast map'."),
        (["log.npz"], "log.npz: a staircase must have at least one row; none of weight > 0 has arrived."),
    ):
        assert message in error_of(capsys, "merge", *words, "--model", "out.json")
    assert "pass --output for the merged accumulator, or --model" in usage_error(capsys, "merge", "day0.npz")


def test_show_summarises_a_staircase(capsys):
    stairs = sf.fit(range(9), range(9), sample_weight=[0.5] * 9)
    stairs.save("nine.json")
    found = result_of(capsys, "show", "nine.json", "--steps", "2")[1]
    assert (found["kind"], found["steps"], found["rows"], found["weight"]) == ("staircase", 9, 9, 4.5)
    assert (found["least_score"], found["greatest_score"], found["least_value"], found["greatest_value"]) == (
        0,
        8,
        0,
        8,
    )
    assert [step["value"] for step in found["first_steps"] + found["last_steps"]] == [0, 1, 7, 8]
    assert [step["value"] for step in result_of(capsys, "show", "nine.json")[1]["all_steps"]] == list(range(9))
    assert run("show", "nine.json") == 0
    assert "\nlast steps\n" in capsys.readouterr().out
    assert run("show", "m.json") == 0
    shown = capsys.readouterr().out
    assert "loss                SquaredError()\n" in shown
    assert (
        "all steps\n  first score  last score  value  rows  weight\n          0.1         0.1      0     1       1\n"
        in shown
    )
    sf.fit([1, 2, 3], [1, 5, 2], loss="log_cosh", tol=0.5).save("wide.json")
    assert result_of(capsys, "show", "wide.json")[1]["widest_bounds"] > 0


def test_show_summarises_a_map_and_one_of_its_groups(capsys):
    found = result_of(capsys, "show", "map")[1]
    assert (found["groups"], found["direction"], found["rows"]) == (2, "increasing", 4)
    assert [row["group"] for row in found["all_groups"]] == ["oslo", "rome"]
    found = result_of(capsys, "show", "map", "--group", "rome")[1]
    assert (found["group"], found["rows"], found["least_score"]) == ("rome", 2, 0.4)
    sf.fit_groups(np.tile([1, 2], 12), np.arange(24) % 4 // 3, np.repeat(np.arange(12), 2), increasing="auto").save("n")
    found = result_of(capsys, "show", "n")[1]
    assert [row["group"] for row in found["all_groups"]] == [str(key) for key in range(12)]
    assert run("show", "n") == 0
    shown = capsys.readouterr().out
    assert "first 10 groups\n" in shown
    assert [line.split()[0] for line in shown.splitlines()[-10:]] == [str(key) for key in range(10)]
    message = error_of(capsys, "show", "n", "--group", "12")
    assert message.endswith("n: there is no group '12'; the groups are 0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 2 more.\n")
    assert "the groups are 'oslo', 'rome'." in error_of(capsys, "show", "map", "--group", "lima")
    assert "m.json: the model has no groups; got --group a." in error_of(capsys, "show", "m.json", "--group", "a")


def test_show_counts_the_groups_that_increase(capsys):
    stairs = [sf.fit([1, 2], [0, 1]), sf.fit([1, 2], [1, 0], increasing=False)]
    one = sf.fit_groups([1, 2, 1, 2], [0, 1, 1, 0], ["a", "a", "b", "b"], increasing="auto")
    assert [one["a"], one["b"]] == stairs
    one.save("both")
    assert result_of(capsys, "show", "both")[1]["direction"] == "1 of 2 increasing"


def test_show_summarises_an_accumulator_and_refuses_other_files(capsys):
    found = result_of(capsys, "show", "day0.npz")[1]
    assert (found["kind"], found["rows"], found["distinct_scores"]) == ("accumulator", 4, 4)
    Path("a.json").write_text(json.dumps({"format": "other"}))
    assert "a.json: field `format` must be" in error_of(capsys, "show", "a.json")
