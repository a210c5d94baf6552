"""The code on a page is checked, and draws the pictures below it."""

import re
import shlex
import sys
from collections import Counter
from pathlib import Path

import pytest

import staircase_fast as sf
from staircase_fast.cli import arguments

sys.path.append(str(Path(__file__).parents[2] / "docs" / "pictures"))
from pages import python_blocks, run_page

DOCS = Path(__file__).parents[2] / "docs"

DRAWS = """# A page

```python
import matplotlib.pyplot as plt
figure, ax = plt.subplots()
ax.set_title("one")
```

```{image} ../made/one.svg
:alt: a picture
```

```python
two = 2
```
"""


def run(tmp_path, text):
    page = tmp_path / "page.md"
    page.write_text(text, encoding="utf-8")
    return list(run_page(page, {}))


def test_the_current_figure_after_a_block_becomes_the_picture_below_it(tmp_path):
    pytest.importorskip("matplotlib")
    [(name, figure)] = run(tmp_path, DRAWS)
    assert (name, figure.axes[0].get_title(loc="left")) == ("one", "one")


def test_a_picture_below_a_block_that_draws_nothing_is_an_error(tmp_path):
    pytest.importorskip("matplotlib")
    with pytest.raises(ValueError, match=r"page.md, line 3: this block draws no figure"):
        run(tmp_path, re.sub("import matplotlib.*?one.*?\n", "one = 1\n", DRAWS, flags=re.DOTALL))


@pytest.mark.parametrize("block", [">>> 1 + 1\n3\n", "1 + 1 == 3    # True\n", "0.5    # about 0.52\n"])
def test_output_that_differs_from_the_page_is_an_error(tmp_path, block):
    with pytest.raises(AssertionError):
        run(tmp_path, f"```python\n{block}```\n")


def test_each_picture_has_a_name_of_its_own_and_a_source():
    drawn = Counter(block.picture for page in DOCS.rglob("*.md") for block in python_blocks(page) if block.picture)
    drawn.update(path.stem for path in (DOCS / "pictures").glob("*.py"))
    assert max(drawn.values()) == 1
    shown = {name for page in DOCS.rglob("*.md") for name in re.findall(r"made/([\w-]+)\.svg", page.read_text("utf-8"))}
    assert shown <= set(drawn)


@pytest.mark.long
def test_the_command_in_the_tutorial_on_files_fits_the_same_model(tmp_path, monkeypatch):
    pytest.importorskip("duckdb")
    page = DOCS / "tutorials" / "larger_than_memory.md"
    monkeypatch.chdir(tmp_path)
    names = {}
    list(run_page(page, names))
    [command] = re.findall(r"^```sh\n(.*?)^```$", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    program, *words = shlex.split(command)
    assert (program, arguments.main(words)) == ("staircase-fast", 0)
    assert sf.Staircase.load("model.json") == names["stairs"]
