"""The tables of options in command_line.md.

`PYTHONPATH=. .venv/bin/python docs/command_line_options.py` updates them.
"""

import argparse
import re
from pathlib import Path

from staircase_fast.cli.parser import build_parser

PAGE = Path(__file__).with_name("command_line.md")
_TABLE = re.compile(r"(<!-- options of (\w+) -->\n).*?(<!-- end of options -->)", re.DOTALL)
_OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*")


def commands() -> dict[str, argparse.ArgumentParser]:
    """The parser of each command."""
    (subparsers,) = (one for one in build_parser()._actions if isinstance(one, argparse._SubParsersAction))
    return subparsers.choices


def table(parser: argparse.ArgumentParser) -> str:
    """The arguments of a command as a Markdown table."""
    formatter = parser._get_formatter()
    lines = ["| argument | meaning |", "|---|---|"]
    for action in parser._actions[1:]:  # the first one is --help
        choices = " or ".join(action.choices or ())
        value = "" if action.nargs == 0 else action.metavar or choices or action.dest.upper()
        title = " ".join(part for part in (", ".join(action.option_strings), value) if part)
        repeated = " ..." if action.nargs == "+" else ""
        meaning = formatter._expand_help(action) + ("; required" if action.required and action.option_strings else "")
        meaning = _OPTION.sub(r"`\g<0>`", meaning)
        lines.append(f"| `{title}{repeated}` | {meaning} |")
    return "\n".join(lines)


def updated(text: str) -> str:
    """The page with the tables of the parsers."""
    found = commands()
    return _TABLE.sub(lambda place: f"{place[1]}\n{table(found[place[2]])}\n\n{place[3]}", text)


if __name__ == "__main__":
    PAGE.write_text(updated(PAGE.read_text("utf-8")), "utf-8")
