"""How Sphinx builds the documentation: `make docs`.  Pictures and lists of names are made on the way, in docs/made."""

import importlib
import inspect
import shutil
import sys
from pathlib import Path

import staircase_fast

HERE = Path(__file__).parent
MADE = HERE / "made"
PICTURES = ("cumulative_sums", "survey", "rounds")
MODULES = ("staircase_fast", "staircase_fast.losses", "staircase_fast.sklearn", "staircase_fast.typing")
sys.path.insert(0, str(HERE / "pictures"))

project = "staircase_fast"
author = "staircase_fast developers"
project_copyright = author
version = release = staircase_fast.__version__

extensions = ["myst_parser", "numpydoc", "sphinx.ext.autodoc", "sphinx.ext.autosummary"]
templates_path = ["templates"]
exclude_patterns = ["pictures", "static", "templates"]
nitpicky = True
# what every mapping has, what is a field and a module too, what scikit-learn describes
nitpick_ignore = [("py:obj", name) for name in ("values", "bands", "set_output")]
OTHERS = "duckdb|matplotlib|numba|numpy|onnx|onnxruntime|pandas|polars|pyarrow|scipy|sklearn"
nitpick_ignore_regex = [("py:.*", rf"({OTHERS})(\..*)?")]  # no list of their names is downloaded
default_role = "autolink"  # a name in backquotes is a link where there is something of that name

autosummary_generate = True
autodoc_typehints = "none"  # numpydoc says what an argument is
numpydoc_show_class_members = False  # the template lists them
myst_heading_anchors = 3
suppress_warnings = ["myst.header"]  # pieces of the README begin where they do

html_theme = "furo"
html_title = f"staircase_fast {version}"
html_static_path = ["static"]
html_css_files = ["pages.css"]
html_copy_source = False
html_show_sphinx = False


def make_pictures() -> None:
    """Draw each picture anew; they take a few seconds in all."""
    for name in PICTURES:
        importlib.import_module(name).draw().savefig(MADE / f"{name}.svg", metadata={"Date": None})


def make_lists() -> None:
    """A page for each module with the names in its `__all__`, so that no name is forgotten."""
    for module in MODULES:
        found = importlib.import_module(module)
        lines = [f"``{module}``", "=" * (len(module) + 4), "", f".. automodule:: {module}", ""]
        kinds = {"Classes": inspect.isclass, "Functions": inspect.isroutine}
        for title, is_one in kinds.items():
            names = [name for name in found.__all__ if is_one(getattr(found, name))]
            if names:
                lines += [title, "-" * len(title), "", ".. autosummary::", "   :toctree: reference", ""]
                lines += [f"   {name}" for name in names] + [""]
        (MADE / f"{module}.rst").write_text("\n".join(lines), encoding="utf-8")


def setup(app: object) -> None:
    """Make what pages need before Sphinx looks for them."""
    shutil.rmtree(MADE, ignore_errors=True)  # a page of a name that is gone would be a warning
    MADE.mkdir()
    make_pictures()
    make_lists()
