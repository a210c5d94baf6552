"""Other libraries' own tests pass with our classes instead of theirs; `in_their_place.py` lists the exceptions."""

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
SUITES = {  # with the least number of tests
    "sklearn.tests.test_isotonic": 40,
    "sklearn.tests.test_calibration": 20,
    "scipy.optimize.tests.test_isotonic_regression": 20,
}


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    """The module, name and problems of each test in one run of all installed suites."""
    folder = tmp_path_factory.mktemp("suites")
    installed = [suite for suite in SUITES if importlib.util.find_spec(suite)]
    options = ["-p", "no:cacheprovider", "-p", "in_their_place", "-c", os.devnull]
    options += ["--junitxml=found.xml", "-o", "junit_family=xunit1", "--pyargs"]  # xunit1 contains the file of a test
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(FOLDERS), "SKLEARN_RUN_FLOAT32_TESTS": "1"}
    child = subprocess.run(
        [sys.executable, "-m", "pytest", *options, *installed],
        cwd=folder, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (folder / "found.xml").exists(), child.stdout + child.stderr
    cases = ET.parse(folder / "found.xml").getroot().iter("testcase")
    return [(Path(case.get("file")).stem, case.get("name"), [one.tag for one in case]) for case in cases]


@pytest.mark.parametrize("suite", SUITES)
def test_the_tests_of_another_library_pass_with_our_classes(suite, outcomes):
    if importlib.util.find_spec(suite) is None:
        pytest.skip(f"{suite} is not installed: some packages come without their tests")
    found = {name: problems for module, name, problems in outcomes if suite.endswith(f".{module}")}
    assert {name: problems for name, problems in found.items() if problems} == {}  # failure, error or skipped
    assert len(found) >= SUITES[suite]
