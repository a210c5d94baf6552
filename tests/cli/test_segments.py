"""The report of segments: a table of all of them, and diagrams of the worst ones."""

import base64
import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from command_line import result_of, run
from pyarrow import csv, parquet

import staircase_fast as sf
from staircase_fast.cli import demo, pictures
from staircase_fast.cli import report as command

pytestmark = pytest.mark.long
COLUMNS = [
    "segment", "rows", "mean_score", "miscalibration", "discrimination", "uncertainty", "debiased_calibration_error",
    "p_value",
]  # fmt: skip


@pytest.fixture
def data(tmp_path, monkeypatch):
    """Scores that are calibrated except in segment 2."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    scores, segment = rng.random(3000), rng.integers(0, 5, 3000)
    labels = rng.random(3000) < np.where(segment == 2, scores**3, scores)
    columns = {"score": scores, "label": labels * 1, "seg": segment, "weight": np.where(segment == 4, 0.0, 1.5)}
    parquet.write_table(pa.table(columns), "data.parquet")
    sf.fit(np.arange(10) / 10, np.arange(10) / 10).save("m.json")
    return columns


def test_the_least_calibrated_segment_comes_first_and_numbers_are_those_of_the_library(data, capsys):
    found = result_of(capsys, "report", "data.parquet", "--model", "m.json", "--group", "seg")[1]
    before = found["segments_before"]
    assert [list(row) for row in before] == [COLUMNS] * 5
    assert (before[0]["segment"], found["segments_after"][0]["segment"]) == (2, 2)
    assert before[0]["p_value"] < 1e-6
    assert min(row["p_value"] for row in before[1:]) > 0.05
    assert sum(row["rows"] for row in before) == 3000
    for row in before:
        mine = data["seg"] == row["segment"]
        single = sf.reliability(data["score"][mine], data["label"][mine], bands="confidence")
        assert (row["mean_score"], row["miscalibration"]) == (single.mean_score, single.miscalibration)
        assert row["p_value"] == single.bands.p_value
        errors = sf.calibration_errors(data["score"][mine], data["label"][mine])
        assert row["debiased_calibration_error"] == errors.calibration_error.debiased


def test_segments_without_weight_are_left_out(data, capsys):
    words = "--model", "m.json", "--group", "seg", "--weight", "weight"
    found = result_of(capsys, "report", "data.parquet", *words)[1]
    assert sorted(row["segment"] for row in found["segments_after"]) == [0, 1, 2, 3]
    assert "p_value" not in found["segments_after"][0]  # no bands are known for such weights


def test_segments_of_text_files_and_of_other_targets_have_no_p_value(data, capsys):
    csv.write_csv(parquet.read_table("data.parquet"), "data.csv")
    found = result_of(capsys, "report", "data.csv", "--group", "seg", "--loss", "squared")[1]
    assert [list(row) for row in found["segments_before"]] == [COLUMNS[:6]] * 5
    assert found["segments_before"][0]["segment"] == 2
    found = result_of(capsys, "report", "data.csv", "--group", "seg", "--bands", "pointwise")[1]
    assert [list(row) for row in found["segments_before"]] == [COLUMNS[:7]] * 5


def test_the_table_is_printed(data, capsys):
    assert run("report", "data.parquet", "--model", "m.json", "--group", "seg", "--bands", "none") == 0
    lines = capsys.readouterr().out.splitlines()
    place = lines.index("segments after")
    assert lines[place + 1].split()[:4] == ["segment", "rows", "mean", "score"]
    assert lines[place + 2].split()[:2] == ["2", str((data["seg"] == 2).sum())]


def test_the_first_of_many_segments_are_printed_and_json_has_all(data, capsys, monkeypatch):
    monkeypatch.setattr(command, "_SEGMENTS", 3)
    words = "report", "data.parquet", "--model", "m.json", "--group", "seg"
    assert run(*words) == 0
    lines = capsys.readouterr().out.splitlines()
    first, second = lines.index("first 3 segments before"), lines.index("first 3 segments after")
    assert second == first + 5
    found = result_of(capsys, *words)[1]
    assert len(found["segments_after"]) == 5
    keys = [str(row["segment"]) for row in found["segments_after"][:3]]
    assert [line.split()[0] for line in lines[second + 2 : second + 5]] == keys


def test_the_page_has_a_table_and_diagrams_with_bands_and_a_legend(data, capsys, monkeypatch):
    drawn = {}

    def record(found):
        drawn["segments"] = found
        return segments(found)

    segments = pictures.segments
    monkeypatch.setattr(pictures, "segments", record)
    monkeypatch.setattr(pictures, "WORST", 4)
    assert run("report", "data.parquet", "--model", "m.json", "--group", "seg", "--output", "a.html") == 0
    text = Path("a.html").read_text(encoding="utf-8")
    page = text.partition("Segments by seg")[2]
    assert "5 segments after calibration, the least calibrated first. The order is that of the debiased" in page
    rows = re.findall(r'<table id="segments">.*?</table>', page, re.DOTALL)[0]
    assert rows.count("<tr>") == 6
    assert "The same table before calibration" in page
    assert drawn["segments"][0][0] == "2"
    assert len(drawn["segments"]) == 4
    assert all(found.bands.kind == "confidence" for _, found in drawn["segments"])
    images = [base64.b64decode(one) for one in re.findall(r'src="data:image/svg\+xml;base64,([^"]+)"', text)]
    assert len(images) == 3
    for image in images[:2]:
        assert b"90 % confidence band, simultaneous" in image
        assert b"The band contains" not in image  # the text of the page says it
    assert run("report", "data.parquet", "--group", "seg", "--output", "b.html") == 0
    page = Path("b.html").read_text(encoding="utf-8")
    assert "5 segments before calibration" in page  # the fit had the same rows
    assert run("report", "data.parquet", "--group", "seg", "--loss", "squared", "--output", "c.html") == 0
    assert "The order is that of miscalibration." in Path("c.html").read_text(encoding="utf-8")


def test_curves_of_groups_have_a_legend_and_special_names_are_drawn_as_they_are():
    keys = ["_hidden", "$x$", *"abcdef"]
    model = sf.fit_groups(np.tile([0.0, 1.0], 8), np.tile([3, 5], 8), np.repeat(keys, 2))
    image = pictures.curve(model)
    assert b"groups, the 6 largest of 8" in image
    assert b"_hidden" in image
    assert b"calibrated value" in image
    assert b"calibrated probability" in pictures.curve(sf.fit([1, 2], [0, 1]))
    found = [("_a", sf.reliability(*demo.overconfident_model(50))), ("$b$", sf.reliability([0.1, 0.6], [0, 1]))]
    assert b"_a (50 rows)" in pictures.segments(found)
