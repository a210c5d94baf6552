"""How the suite runs: hypothesis profiles, and which copy of the package is under test."""

import os
import signal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

import staircase_fast

# No deadline and no complaint about slowness: the suite also runs on a checked build.
UNTIMED = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("default", derandomize=True, max_examples=100, **UNTIMED)
settings.register_profile("long", max_examples=20_000, print_blob=True, **UNTIMED)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))  # the option overrides it

# What a shell runs in the background ignores interrupts, and so do its children; some tests are about these.
signal.signal(signal.SIGINT, signal.default_int_handler)

PACKAGE_FOLDER = Path(staircase_fast.__file__).resolve().parent


def pytest_report_header() -> str:
    return f"staircase_fast: imported from {PACKAGE_FOLDER}"


def pytest_configure() -> None:
    """Refuse to test another copy of the package than the one that was asked for."""
    root = os.environ.get("STAIRCASE_FAST_TEST_ROOT")
    if root and not PACKAGE_FOLDER.is_relative_to(Path(root).resolve()):
        raise pytest.UsageError(
            f"staircase_fast was imported from {PACKAGE_FOLDER}, which is not under STAIRCASE_FAST_TEST_ROOT={root}"
        )
