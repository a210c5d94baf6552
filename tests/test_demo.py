"""The demonstration does its job, whole and as a command."""

import re
import subprocess
import sys

import pytest

import staircase_fast as sf
from staircase_fast import demo


def test_the_demonstration_calibrates_and_writes_the_model(tmp_path, capsys):
    path = tmp_path / "model.json"
    demo.main(20_000, str(path))
    shown = capsys.readouterr().out
    before, after = map(float, re.search(r"Brier +(\S+) +(\S+)", shown).groups())
    assert after < before
    steps = int(re.search(r"steps +(\d+)", shown)[1])
    assert steps == sf.Staircase.load(path).n_steps > 10
    assert len(re.findall(r"\d rows per second", shown)) == 2
    assert str(path) in shown


def test_the_demonstration_fails_if_the_model_does_not_come_back(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sf.Staircase, "load", lambda path: sf.fit([0], [0]))
    with pytest.raises(SystemExit) as ended:
        demo.main(100, str(tmp_path / "model.json"))
    assert ended.value.code == 1
    assert "DIFFERENT" in capsys.readouterr().out


def test_the_demonstration_is_a_command(tmp_path):
    path = tmp_path / "model.json"
    command = [sys.executable, "-m", "staircase_fast.demo", "1000", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "1,000 scores" in done.stdout
    assert sf.Staircase.load(path).counts.sum() == 1_000
