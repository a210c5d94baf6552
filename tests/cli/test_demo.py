"""The tour runs every command, and skips libraries that are not installed."""

import json
import re
import sys

import numpy as np
import pytest
from pyarrow import parquet

import staircase_fast as sf
from staircase_fast.cli import arguments, commands, demo, pictures


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    for name in ("diagrams", "curve"):
        monkeypatch.setattr(pictures, name, lambda *given, **how: b"<svg/>")


def test_the_tour_writes_its_files_and_prints_results_before_and_after(tmp_path, capsys):
    folder = tmp_path / "tour"
    assert arguments.main(["demo", "--rows", "20000", "--output", str(folder)]) == 0
    shown = capsys.readouterr().out
    names = {path.name for path in folder.iterdir()}
    assert names == {
        "past.parquet", "new.parquet", "model.json", "calibrated.parquet", "report.html", "report.png",
    }  # fmt: skip
    for title in ("mean score", "miscalibration", "calibration error"):
        before, after = map(float, re.search(rf"\n{title} +(\S+) +(\S+)\n", shown).groups())
        assert after < before
    assert len(re.findall(r"\$ staircase-fast (?:fit|apply|report|certify) ", shown)) == 4
    assert "optimal             True" in shown
    assert len(re.findall(r", in memory +[\d,]+ +[\d,]+ +[\d.]+x", shown)) == 2
    stairs, found = sf.Staircase.load(folder / "model.json"), parquet.read_table(folder / "calibrated.parquet")
    assert stairs.counts.sum() == 20_000
    np.testing.assert_array_equal(found["calibrated"].to_numpy(), stairs(found["score"].to_numpy()))


def test_the_tour_skips_libraries_that_are_not_installed(tmp_path, capsys, monkeypatch):
    for name in ("matplotlib", "sklearn.isotonic"):
        monkeypatch.setitem(sys.modules, name, None)
    assert arguments.main(["demo", "--rows", "2000", "--output", str(tmp_path)]) == 0
    shown = capsys.readouterr().out
    assert "No report: this needs matplotlib, which is not installed: pip install '.[plot]' in a checkout." in shown
    assert "No comparison: this needs scikit-learn, which is not installed: pip install" in shown
    assert not (tmp_path / "report.html").exists()


def test_the_tour_fails_if_the_proof_does(tmp_path, capsys, monkeypatch):
    proved = commands.certify
    monkeypatch.setattr(commands, "certify", lambda options: proved(options) | {"optimal": False})
    assert arguments.main(["demo", "--rows", "100", "--output", str(tmp_path)]) == arguments.REFUSED
    assert "the model is not optimal" in capsys.readouterr().err


def test_the_model_of_the_tour_is_overconfident():
    scores, labels = demo.overconfident_model(5000)
    assert set(labels.tolist()) == {0, 1}
    assert json.dumps(float(sf.reliability(scores, labels).miscalibration)) > "0.02"
