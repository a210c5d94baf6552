"""Other libraries' own tests pass with our classes in the place of theirs; `in_their_place.py` names those left out."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

import staircase_fast

pytestmark = pytest.mark.long

FOLDERS = [str(Path(__file__).parent), str(Path(staircase_fast.__file__).resolve().parents[1])]
SUITES = {  # and how many tests there must be at least
    "sklearn.tests.test_isotonic": 40,
    "sklearn.tests.test_calibration": 20,
    "scipy.optimize.tests.test_isotonic_regression": 20,
}


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    """What one run of all suites that are installed says of each test: nothing if it passed."""
    folder = tmp_path_factory.mktemp("suites")
    installed = [suite for suite in SUITES if importlib.util.find_spec(suite)]
    options = ["-p", "no:cacheprovider", "-p", "in_their_place", "-c", os.devnull]
    options += ["--junitxml=found.xml", "-o", "junit_family=xunit1", "--pyargs"]  # xunit1 tells the file of a test
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(FOLDERS), "SKLEARN_RUN_FLOAT32_TESTS": "1"}
    child = subprocess.run(
        [sys.executable, "-m", "pytest", *options, *installed],
        cwd=folder, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (folder / "found.xml").exists(), child.stdout + child.stderr
    cases = ET.parse(folder / "found.xml").getroot().iter("testcase")
    return [(Path(case.get("file")).stem, case.get("name"), [one.tag for one in case]) for case in cases]


@pytest.mark.parametrize("suite", SUITES)
def test_the_tests_of_another_library_pass_with_ours_in_the_place_of_theirs(suite, outcomes):
    if importlib.util.find_spec(suite) is None:
        pytest.skip(f"{suite} is not installed: some packages come without their tests")
    found = {name: said for module, name, said in outcomes if suite.endswith(f".{module}")}
    assert {name: said for name, said in found.items() if said} == {}  # failure, error or skipped
    assert len(found) >= SUITES[suite]
