"""The C page: its files are taken from the page, compiled and run, and its table lists all statuses."""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

import staircase_fast as sf

PAGE = Path(__file__).parents[2] / "docs" / "c_api.md"
PACKAGE = Path(sf.__file__).resolve().parent


def files_of(text):
    """The blocks with a file name, by this name."""
    blocks = re.findall(r"^```\{code-block\} \w+\n:caption: (\S+)\n\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return dict(blocks)


@pytest.fixture(scope="module")
def files():
    return files_of(PAGE.read_text("utf-8"))


def run(*arguments, folder):
    env = {**os.environ, "PYTHONPATH": str(PACKAGE.parent), "CFLAGS": "-O0", "CXXFLAGS": "-O0"}
    done = subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.long
def test_the_files_of_the_page_compile_and_print_what_it_shows(files, tmp_path):
    output = files.pop("output")
    assert set(files) == {"setup.py", "in_cython.pyx", "in_c.c", "in_cpp.cpp", "use.py"}
    for name, content in files.items():
        (tmp_path / name).write_text(content, encoding="utf-8")
    run("setup.py", "--quiet", "build_ext", "--inplace", folder=tmp_path)
    assert run("use.py", folder=tmp_path) == output


@pytest.mark.skipif(os.name != "posix", reason="flags of gcc and clang")
@pytest.mark.parametrize(
    ("name", "compiler"), [("in_c.c", "cc"), ("types.c", "cc"), ("in_cpp.cpp", "c++"), ("types.cpp", "c++")]
)
def test_c_code_compiles_without_warnings(files, tmp_path, name, compiler):
    if shutil.which(compiler) is None:
        pytest.skip(f"needs {compiler}")
    only_types = '#include "staircase_fast.h"\nint is_given(const sf_staircase *stairs) { return stairs != NULL; }\n'
    (tmp_path / name).write_text(files.get(name, only_types), encoding="utf-8")
    flags = "-Wall", "-Wextra", "-Werror", "-c", "-o", os.devnull, "-isystem", sysconfig.get_path("include")
    command = [compiler, *flags, f"-I{sf.get_include()}", name]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_table_lists_all_statuses():
    header = Path(sf.get_include(), "staircase_fast.h").read_text("utf-8")
    declared = re.findall(r"\b(SF_\w+) = (\d+),?$", header, re.MULTILINE)
    assert re.findall(r"^\| `(SF_\w+)` \| (\d+) \|", PAGE.read_text("utf-8"), re.MULTILINE) == declared
