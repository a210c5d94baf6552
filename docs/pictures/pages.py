"""The code on a page: the tests run it, and the documentation shows the pictures that it draws.

An image directly below a block, with a path in `made`, shows the current figure after this block has run.
"""

import ast
import contextlib
import doctest
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
BLOCK = re.compile(
    r"^```python\n(?P<code>.*?)^```$(?:\n\n```\{image\} (?:\.\./)?made/(?P<picture>[\w-]+)\.svg$)?",
    flags=re.MULTILINE | re.DOTALL,
)


class Block(NamedTuple):
    """Python code, the number of the line above it, and the name of the picture that it draws, if any."""

    line: int
    code: str
    picture: str | None


def python_blocks(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    found = BLOCK.finditer(text)
    return [Block(text.count("\n", 0, block.start("code")), block["code"], block["picture"]) for block in found]


def run_page(page: Path, names: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Run the blocks in order and in one namespace; yield the names and figures of the pictures.

    A block that prints something else than the page shows raises an AssertionError.
    """
    blocks = python_blocks(page)
    if any(block.picture for block in blocks):
        import style  # noqa: F401  (its colours and fonts)
    with one_thread("from sklearn" in page.read_text(encoding="utf-8")):
        for line, code, picture in blocks:
            (run_prompts if code.startswith(">>>") else run_statements)(page, code, line, names)
            if picture:
                yield picture, current_figure(page, line)


def one_thread(uses_sklearn: bool) -> contextlib.AbstractContextManager[Any]:
    """Fit models in one thread: on busy processors, threads of OpenMP and BLAS take many times as long."""
    if not uses_sklearn:
        return contextlib.nullcontext()
    import sklearn.ensemble  # noqa: F401  (loads the libraries whose threads are limited)
    from threadpoolctl import threadpool_limits

    return threadpool_limits(limits=1)


def current_figure(page: Path, line: int) -> Any:
    import matplotlib.pyplot as plt

    if not plt.get_fignums():
        raise ValueError(f"{page.name}, line {line}: this block draws no figure, but an image follows it")
    figure = plt.gcf()
    plt.close("all")
    return figure


def run_prompts(page: Path, block: str, line: int, names: dict[str, Any]) -> None:
    test = doctest.DocTestParser().get_doctest(block, names, page.name, str(page), line)
    report: list[str] = []
    doctest.DocTestRunner(optionflags=OPTIONS).run(test, out=report.append, clear_globs=False)
    assert not report, "".join(report)
    names.update(test.globs)


def run_statements(page: Path, block: str, line: int, names: dict[str, Any]) -> None:
    """Check the comment of an expression if it is a value ("True"), or "about" followed by numbers."""
    for statement in ast.parse("\n" * line + block).body:
        if not isinstance(statement, ast.Expr):
            exec(compile(ast.Module([statement], []), str(page), "exec"), names)
            continue
        value = eval(compile(ast.Expression(statement.value), str(page), "eval"), names)
        comment = block.splitlines()[statement.end_lineno - line - 1].encode()[statement.end_col_offset :].decode()
        text = comment.strip().removeprefix("#").strip()
        about = re.search(r"\babout (.*)", text)
        if about:
            numbers = ast.literal_eval(f"[{about[1]}]")
            assert np.allclose(value, numbers, rtol=0, atol=0.01), (statement.lineno, value)
        elif text in ("True", "False", "None"):
            assert str(value) == text, (statement.lineno, value)
