"""The bibliography contains every work that a docstring of the package cites with its title."""

import re
from pathlib import Path

import pytest
from test_docstrings import NAMES

PAGES = Path(__file__).parents[2] / "docs"
CITATION = re.compile(r'"([^"]{15,}?)",?\s+(?:Proceedings[^,]*,\s+)?(?:19|20)\d\d', re.DOTALL)


def plain(text):
    """Lower case, without emphasis and line breaks."""
    return " ".join(text.replace("*", "").lower().split())


def cited_titles():
    """The titles in the sections "References" of all docstrings."""
    found = set()
    for public in NAMES.values():
        _, _, references = (getattr(public, "__doc__", None) or "").partition("References\n")
        found.update(plain(title) for title in CITATION.findall(references.partition("Examples\n")[0]))
    return sorted(found)


def test_docstrings_cite_works():
    assert "smooth ece: principled reliability diagrams via kernel smoothing" in cited_titles()


@pytest.mark.parametrize("title", cited_titles())
def test_a_cited_work_is_in_the_bibliography(title):
    assert title in plain((PAGES / "bibliography.md").read_text("utf-8"))


def test_every_work_has_a_year():
    works = (PAGES / "bibliography.md").read_text("utf-8").split("\n- ")[1:]
    assert [work for work in works if not re.search(r"\b(19|20)\d\d\b", work)] == []
