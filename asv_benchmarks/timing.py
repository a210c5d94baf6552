"""Shared by compare.py and matrix.py: calls, and the versions that a table names."""

from __future__ import annotations

import platform
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy
import sklearn

import staircase_fast as sf

Call = Callable[[], Any]


def versions() -> str:
    return (
        f"{platform.machine()}, {sf.get_num_threads()} threads, Python {platform.python_version()}, "
        f"numpy {np.__version__}, SciPy {scipy.__version__}, scikit-learn {sklearn.__version__}"
    )
