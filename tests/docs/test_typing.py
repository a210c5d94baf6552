"""Types are right in the eyes of users: mypy reads a script of theirs, and Python runs it."""

import inspect
import subprocess
import sys
import typing
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import typing_user
from conftest import PACKAGE_FOLDER

import staircase_fast as sf
import staircase_fast.typing

SCRIPT = Path(typing_user.__file__)


@pytest.mark.long
def test_a_script_of_a_user_is_clean_in_the_strict_mode_of_mypy():
    pytest.importorskip("mypy")
    if np.__version__.startswith("1."):
        pytest.skip("the types of numpy 1 know neither buffers nor streams of DLPack")
    done = subprocess.run(
        [sys.executable, "-m", "mypy", str(SCRIPT)],
        cwd=SCRIPT.parents[2],  # settings as in `make lint`, strict: what that has read is not read again
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr


def test_the_script_runs_and_nothing_in_it_is_refused(tmp_path):
    typing_user.run(pa.chunked_array([[0.1, 0.4], [0.35, 0.8]]), tmp_path)


def test_annotations_can_be_looked_up_while_the_program_runs():
    for public in filter(callable, (getattr(sf, name) for name in sf.__all__)):
        members = vars(public) if isinstance(public, type) else {public.__name__: public}
        for name, member in members.items():
            plain = getattr(member, "__func__", getattr(member, "fget", member))
            if inspect.isfunction(plain) and (name == "__init__" or not name.startswith("_")):
                typing.get_type_hints(plain)


def test_the_package_says_that_it_has_types():
    assert (PACKAGE_FOLDER / "py.typed").exists()
    assert all(hasattr(sf.typing, name) for name in sf.typing.__all__)
