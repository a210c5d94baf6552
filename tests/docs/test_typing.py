"""Public types are correct: mypy checks a typical user script, and Python runs it."""

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
def test_mypy_strict_accepts_a_user_script():
    pytest.importorskip("mypy")
    if np.__version__.startswith("1."):
        pytest.skip("the types of numpy 1 lack buffers and DLPack streams")
    done = subprocess.run(
        [sys.executable, "-m", "mypy", str(SCRIPT)],
        cwd=SCRIPT.parents[2],  # the settings and the cache of `make lint`
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr


def test_the_user_script_runs_without_errors(tmp_path):
    typing_user.run(pa.chunked_array([[0.1, 0.4], [0.35, 0.8]]), tmp_path)


def test_annotations_can_be_resolved_at_runtime():
    for public in filter(callable, (getattr(sf, name) for name in sf.__all__)):
        members = vars(public) if isinstance(public, type) else {public.__name__: public}
        for name, member in members.items():
            plain = getattr(member, "__func__", getattr(member, "fget", member))
            if inspect.isfunction(plain) and (name == "__init__" or not name.startswith("_")):
                typing.get_type_hints(plain)


def test_the_package_is_marked_as_typed():
    assert (PACKAGE_FOLDER / "py.typed").exists()
    assert all(hasattr(sf.typing, name) for name in sf.typing.__all__)
