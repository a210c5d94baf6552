"""The page of the command line: its tables of options are those of the parser, and its examples print what it shows."""

import doctest
import re
import shlex
from pathlib import Path

import pytest

from staircase_fast.cli import arguments

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "command_line.md"
BLOCKS = re.compile(r"^```(python|console)\n(.*?)^```$", flags=re.MULTILINE | re.DOTALL)


@pytest.fixture
def options(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "docs")
    import command_line_options

    return command_line_options


def examples(block):
    """The commands of a block with the output that it shows; a command is a line that begins with "$ "."""
    return re.findall(r"^\$ staircase-fast (.*)\n((?:(?!^\$ ).*\n)*)", block, flags=re.MULTILINE)


def test_the_tables_of_options_are_those_of_the_parser(options):
    text = PAGE.read_text("utf-8")
    assert options.updated(text) == text, "run docs/command_line_options.py"
    assert re.findall(r"<!-- options of (\w+) -->", text) == list(options.commands())
    changed = text.replace("--positive VALUE", "--negative VALUE")
    assert changed != text
    assert options.updated(changed) == text


def test_each_command_has_an_example(options):
    shown = "".join(block for kind, block in BLOCKS.findall(PAGE.read_text("utf-8")) if kind == "console")
    assert {command.split()[0] for command, _ in examples(shown)} == set(options.commands())


def test_the_examples_print_what_the_page_shows(tmp_path, monkeypatch, capsys):
    pytest.importorskip("matplotlib")
    monkeypatch.chdir(tmp_path)
    checker, how = doctest.OutputChecker(), doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    for kind, block in BLOCKS.findall(PAGE.read_text("utf-8")):
        if kind == "python":
            exec(block, {})
            continue
        for command, shown in examples(block):
            capsys.readouterr()
            code = arguments.main(shlex.split(command))
            printed = capsys.readouterr()
            assert code == (1 if shown.startswith("staircase-fast: ") else 0), (command, printed.err)
            found = printed.out + printed.err
            assert checker.check_output(shown, found, how), f"{command} prints:\n{found}"
