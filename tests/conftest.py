"""Settings of the test suite: hypothesis profiles, and which copy of the package is tested."""

import os
import re
import signal
from collections.abc import Generator
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

import staircase_fast
from staircase_fast import fitting
from staircase_fast.stack import survey

# No deadline and no health check of speed: the suite also runs on slow, checked builds.
UNTIMED = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("default", derandomize=True, max_examples=100, **UNTIMED)
settings.register_profile("long", max_examples=20_000, print_blob=True, **UNTIMED)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))  # --hypothesis-profile overrides it

# Background processes of a shell ignore interrupts, and so do their children; some tests need interrupts.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Packages of the group `test` that have no wheels for some interpreters.
OPTIONAL = {"duckdb", "matplotlib", "onnx", "onnxruntime", "pandas", "polars", "pyarrow", "scipy", "sklearn"}

PACKAGE_FOLDER = Path(staircase_fast.__file__).resolve().parent


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--skip-missing", action="store_true", help="skip test modules that import an optional package that is missing"
    )


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """With --skip-missing, skip a test module that needs a missing optional package."""
    report = yield
    missing = re.search(r"ModuleNotFoundError: No module named '(\w+)", str(report.longrepr or ""))
    if report.failed and missing and missing[1] in OPTIONAL and collector.config.getoption("--skip-missing"):
        report.outcome = "skipped"
        report.longrepr = (str(collector.path), 1, f"Skipped: {missing[1]} is not installed")
    return report


def pytest_report_header() -> str:
    return f"staircase_fast: imported from {PACKAGE_FOLDER}"


def pytest_configure() -> None:
    """Fail if another copy of the package is imported than the one named by STAIRCASE_FAST_TEST_ROOT."""
    root = os.environ.get("STAIRCASE_FAST_TEST_ROOT")
    if root and not PACKAGE_FOLDER.is_relative_to(Path(root).resolve()):
        raise pytest.UsageError(
            f"staircase_fast was imported from {PACKAGE_FOLDER}, which is not under STAIRCASE_FAST_TEST_ROOT={root}"
        )


@pytest.fixture(autouse=True)
def own_random_numbers(request: pytest.FixtureRequest) -> None:
    """Seed the generator of a module before each test, so that tests do not depend on each other."""
    if hasattr(request.module, "RNG"):
        request.module.RNG = np.random.default_rng([*request.node.name.encode()])


@pytest.fixture
def surveyed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fits of 20,000 rows and more are done as those of millions of rows: by the survey, in any number of threads."""
    monkeypatch.setattr(fitting, "_small", mock.Mock(fit=lambda *_: None, regress=lambda *_: None))
    monkeypatch.setattr(survey, "FEW_ROWS", 20_000)
    # few rows have a large share of live ones: they would be sorted instead
    monkeypatch.setattr(survey, "_MANY_LIVE", 0.3)
    monkeypatch.setattr(survey, "_LIVE_ROWS_PER_STEP", 0)
