"""Sphinx configuration for `make docs`.  Pictures and lists of names are generated into docs/made."""

import contextlib
import importlib
import inspect
import shutil
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NoReturn

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.writers.html5 import HTML5Translator

import staircase_fast

HERE = Path(__file__).parent
MADE = HERE / "made"
PICTURES = ("cumulative_sums", "survey", "rounds", "bands", "many_rows")
MODULES = ("staircase_fast", "staircase_fast.losses", "staircase_fast.sklearn", "staircase_fast.typing")
PUBLIC = {  # classes and functions by name, with their module
    name: module
    for module in reversed(MODULES[:3])
    for name, public in inspect.getmembers(importlib.import_module(module), callable)
    if name in importlib.import_module(module).__all__
}
sys.path.insert(0, str(HERE / "pictures"))

project = "staircase_fast"
author = "staircase_fast developers"
project_copyright = author
version = release = staircase_fast.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
    "sphinx_design",
]
myst_enable_extensions = ["colon_fence", "dollarmath"]
highlight_language = "text"  # of blocks that name no language
html_math_renderer = "mathml"  # browsers draw it themselves: no script, no network
templates_path = ["templates"]
exclude_patterns = ["pictures", "static", "templates"]
nitpicky = True
# a method of every mapping; fields or arguments with the name of a module; a method that scikit-learn documents
nitpick_ignore = [("py:obj", name) for name in ("values", "bands", "rows", "set_output")]
OTHERS = "duckdb|matplotlib|numba|numpy|onnx|onnxruntime|pandas|polars|pyarrow|scipy|sklearn"
nitpick_ignore_regex = [("py:.*", rf"({OTHERS})(\..*)?")]  # their inventories are not downloaded
default_role = "autolink"  # a name in backquotes becomes a link if it can be imported

autosummary_generate = True
autodoc_typehints = "none"  # the docstrings state the types
numpydoc_show_class_members = False  # the template lists them
myst_heading_anchors = 3
suppress_warnings = ["myst.header"]  # included parts of the README start below the top heading level

smartquotes = False  # text such as --positive and 'days/*.csv' must survive copying

html_theme = "furo"
pygments_dark_style = "a11y-high-contrast-dark"  # the default underlines names of modules as if they were links
html_title = f"staircase_fast {version}"
html_static_path = ["static"]
html_css_files = ["pages.css"]
html_copy_source = False
html_show_sphinx = False


def make_pictures() -> None:
    """Draw all pictures; it takes a few seconds."""
    for name in PICTURES:
        importlib.import_module(name).draw().savefig(MADE / f"{name}.svg", metadata={"Date": None})


def make_pictures_of_pages() -> None:
    """Run the code of each page that draws pictures, in a folder of its own."""
    pages = importlib.import_module("pages")
    for page in sorted(HERE.rglob("*.md")):
        if any(block.picture for block in pages.python_blocks(page)):
            with TemporaryDirectory() as folder, contextlib.chdir(folder):
                for name, figure in pages.run_page(page, {"__name__": page.stem}):
                    figure.savefig(MADE / f"{name}.svg", metadata={"Date": None})


def make_lists() -> None:
    """Write a page for each module that lists the names in its `__all__`."""
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


def module_with_source(app: Sphinx, module: str, name: str) -> str | None:
    """The module that defines a public name: public classes report the module that exports them."""
    found = getattr(importlib.import_module(module), name.partition(".")[0])
    members = vars(found).values() if inspect.isclass(found) else [found]
    plain = (getattr(member, "__func__", getattr(member, "fget", member)) for member in members)
    return next((member.__module__ for member in plain if inspect.isfunction(member)), None)


def link_names(app: Sphinx, page: nodes.document) -> None:
    """Make links of the public names in Markdown pages, such as `fit`."""
    if app.env.docname == "command_line":
        return  # there, these are the names of commands
    for name in list(page.findall(nodes.literal)):
        module = PUBLIC.get(name.astext())
        if module and not isinstance(name.parent, (nodes.title, nodes.reference, addnodes.pending_xref)):
            target = f"{module}.{name.astext()}"
            link = addnodes.pending_xref(refdomain="py", reftype="obj", reftarget=target, refdoc=app.env.docname)
            name.replace_self(link)
            link += name


def write_math(writer: HTML5Translator, formula: nodes.math | nodes.math_block) -> NoReturn:
    """Write a formula as MathML."""
    as_block = isinstance(formula, nodes.math_block)
    text = tex2mathml(formula.astext(), as_block=as_block)
    writer.body.append(f'<div class="math">{text}</div>' if as_block else text)
    raise nodes.SkipNode


def setup(app: Sphinx) -> None:
    """Generate pictures and lists before Sphinx reads the pages."""
    app.add_html_math_renderer("mathml", (write_math, None), (write_math, None))
    app.connect("viewcode-follow-imported", module_with_source)
    app.connect("doctree-read", link_names)
    shutil.rmtree(MADE, ignore_errors=True)  # the page of a removed name would cause a warning
    MADE.mkdir()
    make_pictures()
    make_pictures_of_pages()
    make_lists()
