"""The report: numbers equal those of the library; the page is self-contained and escapes text from outside."""

import base64
import html.parser
import importlib.metadata
import io
import json
import re
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from matplotlib import image
from pyarrow import parquet

import staircase_fast as sf
from staircase_fast.cli import arguments, demo, pictures
from staircase_fast.cli import page as page_of_report

pytestmark = pytest.mark.long

HOSTILE = "<script>alert('1')</script>&\""
NUMBERS = ("mean_score", "miscalibration", "discrimination", "uncertainty", "calibration_error")


class Page(html.parser.HTMLParser):
    """The elements, attributes and text of a page; every element must be closed."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.words, self.open = [], [], []
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        if tag not in ("meta", "link", "source", "img"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, text):
        self.words.append(text)

    @property
    def text(self):
        return "".join(self.words)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("report")
    scores, labels = demo.overconfident_model(4000)
    groups = np.where(np.arange(4000) % 3, "<b>", "b")
    table = pa.table({"score": scores, "label": labels, "weight": np.arange(4000) % 4, HOSTILE: groups})
    parquet.write_table(table[:2000], path / "past.parquet")
    parquet.write_table(table[2000:], path / "new.parquet")
    sf.fit(scores[:2000], labels[:2000]).save(path / "m.json")
    return path


@pytest.fixture
def drawn(monkeypatch):
    """Record pictures instead of drawing them, which is slow."""
    made = []
    for name in ("diagrams", "segments", "curve"):
        monkeypatch.setattr(pictures, name, lambda *given, name=name, **how: made.append((name, how)) or b"<svg/>")
    return made


def report(capsys, *words):
    code = arguments.main(["report", *map(str, words), "--json"])
    shown = capsys.readouterr()
    assert (code, shown.err) == (0, "")
    return json.loads(shown.out)


def test_the_numbers_equal_those_of_the_library(folder, capsys, drawn):
    found = report(capsys, folder / "new.parquet", "--model", folder / "m.json", "--weight", "weight")
    data = parquet.read_table(folder / "new.parquet")
    stairs = sf.Staircase.load(folder / "m.json")
    x, y, w = (data[name].to_numpy() for name in ("score", "label", "weight"))
    before = sf.reliability(x, y, sample_weight=w)
    for which, scores in (("before", x), ("after", stairs(x))):
        numbers, errors = sf.reliability(scores, y, sample_weight=w), sf.calibration_errors(scores, y, sample_weight=w)
        assert found[which] == {name: getattr(numbers, name) for name in NUMBERS} | {
            "calibration_error_if_calibrated": errors.calibration_error.if_calibrated,
            "debiased_calibration_error": errors.calibration_error.debiased,
            "debiased_miscalibration": errors.miscalibration.debiased,
            "monotone_p_value": errors.monotone_p_value,
        }
    assert (found["rows"], found["steps"], found["in_sample"]) == (before.n_samples, stairs.n_steps, None)
    assert (found["output"], found["plot"]) == (None, None)
    assert not drawn


def test_without_a_model_the_page_says_that_one_was_fitted_to_the_same_rows(folder, tmp_path, capsys, drawn):
    page = tmp_path / "page.html"
    found = report(capsys, folder / "new.parquet", "--loss", "log", "--output", page)
    assert found["in_sample"]
    assert found["after"]["miscalibration"] == 0
    assert "debiased_miscalibration" not in found["after"]  # it is that of the Brier score
    text = Page(page.read_text()).text
    assert "fitted to the same rows" in text
    assert "log loss" in text
    with_model = tmp_path / "with.html"
    report(capsys, folder / "new.parquet", "--model", folder / "m.json", "--output", with_model)
    assert "fitted to the same rows" not in Page(with_model.read_text()).text


def test_the_page_shows_the_numbers_the_steps_and_the_command(folder, tmp_path, capsys, drawn):
    path = tmp_path / "page.html"
    found = report(capsys, folder / "new.parquet", "--model", folder / "m.json", "--output", path)
    page = Page(path.read_text(encoding="utf-8"))
    cells = {each["id"]: float(each["data-value"]) for tag, each in page.elements if "data-value" in each}
    assert cells == {f"{which}-{name}": one for which in ("before", "after") for name, one in found[which].items()}
    assert "Debiased calibration error" in page.text
    assert f"Number of steps: {found['steps']}." in page.text
    assert page.text.count("Calibration of new.parquet") == 2
    assert "staircase-fast report new.parquet --model m.json --output page.html --json" in page.text
    assert str(folder) not in page.text
    assert f"staircase_fast {sf.__version__}, Python" in page.text
    assert drawn == [("diagrams", {}), ("curve", {})]


def test_labels_that_contradict_a_monotone_curve_are_reported(tmp_path, capsys, drawn):
    x = np.linspace(0, 1, 400)
    parquet.write_table(pa.table({"score": x, "label": (np.abs(x - 0.5) > 0.25) * 1}), tmp_path / "u.parquet")
    found = report(capsys, tmp_path / "u.parquet")
    assert found["before"]["monotone_p_value"] < 1e-9
    parquet.write_table(pa.table({"score": x, "label": x**2}), tmp_path / "shares.parquet")
    assert set(report(capsys, tmp_path / "shares.parquet")["before"]) == set(NUMBERS)


def test_weights_have_a_column_if_they_differ_from_the_counts(folder, tmp_path, capsys, drawn):
    for weights, shown in ((None, False), ([1, 1], False), ([2, 0.5], True)):
        sf.fit([0.2, 0.7], [0, 1], sample_weight=weights).save(tmp_path / "two.json")
        report(capsys, folder / "new.parquet", "--model", tmp_path / "two.json", "--output", tmp_path / "page.html")
        assert ('<th scope="col">weight</th>' in (tmp_path / "page.html").read_text()) == shown


def test_the_page_is_self_contained(folder, tmp_path, capsys, drawn):
    path = tmp_path / "page.html"
    report(capsys, folder / "new.parquet", "--output", path)
    page = Page(path.read_text())
    policy = next(each["content"] for tag, each in page.elements if each.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none'; img-src data:; style-src 'sha256-")
    links = [each[name] for _, each in page.elements for name in ("src", "href", "srcset") if name in each]
    assert len(links) == 3
    assert all(link.startswith("data:") for link in links)
    assert "url(" not in path.read_text()
    assert not [tag for tag, each in page.elements if tag == "script" or any(name.startswith("on") for name in each)]
    found = [each for tag, each in page.elements if tag == "img"]
    assert len(found) == 2
    assert all(len(picture["alt"]) > 30 for picture in found)
    assert all("scope" in each for tag, each in page.elements if tag == "th")
    assert ("html", {"lang": "en"}) in page.elements


def test_names_from_outside_are_escaped(folder, tmp_path, capsys, drawn):
    data = tmp_path / "<img src=x onerror=alert(1)>.parquet"
    data.write_bytes((folder / "new.parquet").read_bytes())
    path = tmp_path / "page.html"
    found = report(capsys, data, "--group", HOSTILE, "--output", path)
    page = Page(path.read_text())
    assert len([tag for tag, _ in page.elements if tag == "img"]) == 3
    assert not [tag for tag, _ in page.elements if tag in ("script", "b")]
    assert "Calibration of <img src=x onerror=alert(1)>.parquet" in page.text
    assert "<b>" in page.text
    assert "group" in page.text
    data = parquet.read_table(data)
    found_groups = sf.fit_groups(data["score"], data["label"], data[HOSTILE])
    assert found["steps"] == len(found_groups.left)


def test_only_the_first_of_many_steps_are_listed(folder, tmp_path, capsys, drawn, monkeypatch):
    monkeypatch.setattr(page_of_report, "MAX_STEPS", 4)
    path = tmp_path / "page.html"
    found = report(capsys, folder / "new.parquet", "--model", folder / "m.json", "--output", path)
    assert f"The first 4 of {found['steps']} steps." in path.read_text()
    assert path.read_text().count("<tr><td>") == 4
    assert "<details><summary>The first 4 of" in path.read_text()


def test_a_page_about_one_step_without_miscalibration(tmp_path, capsys, drawn):
    (tmp_path / "a.csv").write_text("score,label\n0.5,0\n0.5,1\n")
    path = tmp_path / "page.html"
    report(capsys, tmp_path / "a.csv", "--output", path)
    assert "Number of steps: 1." in path.read_text()
    assert "changes from 0.25 to 0.25.<" in path.read_text()


def test_bands_are_computed_only_with_bands(folder, capsys, drawn, monkeypatch):
    asked = []

    def reliability(*given, **how):
        asked.append((how.get("bands"), how.get("seed"), how.get("progress")))
        return found(*given, **{name: one for name, one in how.items() if name not in ("bands", "seed", "progress")})

    found = sf.reliability
    monkeypatch.setattr(sf, "reliability", reliability)
    report(capsys, folder / "new.parquet", "--bands", "confidence")
    assert asked == [("confidence", 0, False)] * 2
    report(capsys, folder / "new.parquet")
    assert asked[2:] == [(None, None, None)] * 2


def test_a_model_of_groups_is_applied_to_groups(folder, tmp_path, capsys, drawn):
    past, new = (parquet.read_table(folder / name) for name in ("past.parquet", "new.parquet"))
    model = sf.fit_groups(past["score"], past["label"], past[HOSTILE])
    model.save(tmp_path / "map")
    found = report(capsys, folder / "new.parquet", "--model", tmp_path / "map", "--group", HOSTILE)
    after = sf.reliability(model.predict(new["score"], new[HOSTILE]), new["label"])
    assert found["after"]["mean_score"] == after.mean_score
    assert arguments.main(["report", str(folder / "new.parquet"), "--model", str(tmp_path / "map")]) == 1
    assert "--group" in capsys.readouterr().err


def test_the_page_can_be_written_to_standard_output(folder, capsysbinary, drawn):
    assert arguments.main(["report", str(folder / "new.parquet"), "--output", "-"]) == 0
    shown = capsysbinary.readouterr()
    assert shown.out.startswith(b"<!DOCTYPE html>")
    assert b"before\n  mean score" in shown.err


def test_an_error_leaves_neither_page_nor_picture(folder, tmp_path, capsys, monkeypatch):
    (tmp_path / "a.csv").write_text("score,label\n3,0\n")
    words = ["report", str(tmp_path / "a.csv"), "--output", str(tmp_path / "a.html"), "--plot"]
    assert arguments.main([*words, str(tmp_path / "a.png")]) == 1
    assert "a.csv: column 'score' must be in [0, 1] for brier; got 3.0 in row 0." in capsys.readouterr().err
    assert arguments.main([*words, str(tmp_path / "a.doc")]) == 1
    assert "a.doc: a picture must end in one of .png, .svg, .pdf." in capsys.readouterr().err
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    words[1] = str(folder / "new.parquet")
    assert arguments.main([*words, str(tmp_path / "a.png")]) == 1
    assert "matplotlib, which is not installed: pip install '.[plot]' in a checkout." in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["a.csv"]


def test_without_matplotlib_there_are_only_numbers(folder, tmp_path, capsys, monkeypatch):
    def version(name):
        if name == "matplotlib":
            raise importlib.metadata.PackageNotFoundError(name)
        return "1.2.3"

    monkeypatch.setattr(importlib.metadata, "version", version)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert report(capsys, folder / "new.parquet")["rows"] == 2000
    assert arguments.main(["report", str(folder / "new.parquet"), "--output", str(tmp_path / "a.html")]) == 1
    assert "matplotlib, which is not installed: pip install '.[plot]' in a checkout." in capsys.readouterr().err


def test_errors_about_values_of_the_model_do_not_name_a_column(tmp_path, capsys):
    (tmp_path / "a.csv").write_text("score,label\n0.3,0\n0.7,1\n")
    sf.fit([0, 0.5], [1, 5]).save(tmp_path / "m.json")
    assert arguments.main(["report", str(tmp_path / "a.csv"), "--model", str(tmp_path / "m.json")]) == 1
    message = "a.csv: values of the model must be in [0, 1] for brier; got 5.0 in row 1."
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("words", [[], ["--group", "g"]])
def test_log_odds_may_be_infinite(tmp_path, capsys, words):
    (tmp_path / "a.csv").write_text("score,label,g\n-1,0,a\n0,1,a\n0,0,b\n2,1,b\n")
    found = report(capsys, tmp_path / "a.csv", "--loss", "logistic", *words)
    before = sf.reliability([-1, 0, 0, 2], [0, 1, 0, 1], score="logistic")
    assert found["before"]["mean_score"] == before.mean_score
    assert found["after"]["mean_score"] < before.mean_score


def test_the_page_shows_paths_without_folders(folder, tmp_path, capsys, drawn):
    path = tmp_path / "a=b.html"
    words = f"--model={folder / 'm.json'}", "--score=score", f"--out={path}", "--plot", tmp_path / "c=d.png"
    report(capsys, folder / "new.parquet", *words)
    command = "report new.parquet --model=m.json --score=score --out=a=b.html --plot c=d.png --json"
    assert command in Page(path.read_text()).text
    assert str(tmp_path) not in path.read_text()


def test_pictures_in_every_format_are_reproducible(folder, tmp_path, capsys):
    for form, start in {"png": b"\x89PNG", "pdf": b"%PDF", "svg": b"<?xml"}.items():
        found = report(capsys, folder / "new.parquet", "--plot", tmp_path / f"a.{form}")
        assert found["plot"].endswith(form)
        assert (tmp_path / f"a.{form}").read_bytes().startswith(start)
    pixels = image.imread(io.BytesIO((tmp_path / "a.png").read_bytes()))[..., :3]
    assert pixels.shape[1] > 1000
    assert 0.01 < (pixels.min(axis=2) < 0.5).mean() < 0.5
    again = tmp_path / "b.svg"
    report(capsys, folder / "new.parquet", "--plot", again)
    assert again.read_bytes() == (tmp_path / "a.svg").read_bytes()


def test_the_page_with_bands_has_one_small_picture(folder, tmp_path, capsys):
    path = Path(tmp_path / "page.html")
    parquet.write_table(parquet.read_table(folder / "new.parquet")[:200], tmp_path / "few.parquet")
    report(capsys, tmp_path / "few.parquet", "--bands", "consistency", "--output", path)
    picture, _ = re.findall(r'src="data:image/svg\+xml;base64,([^"]+)"', path.read_text())
    assert b"<svg" in base64.b64decode(picture)
    assert path.stat().st_size < 500_000
    text = path.read_text().replace("\N{NO-BREAK SPACE}", " ")
    assert "Shaded: 90 % consistency band, simultaneous. If the scores are calibrated, their curve" in text
    assert "has p-value" in text
    report(capsys, tmp_path / "few.parquet", "--bands", "pointwise", "--output", path)
    assert "The band contains the true curve at any one score, in large samples, with" in path.read_text()
    assert "has p-value" not in path.read_text()
