"""Calibration of forecasts: reliability diagrams with bands, and Venn-Abers predictors.

`reliability` fits the CORP curve, then splits the mean score into its parts (`decomposition.py`) and resamples the rows
for bands around the curve (`bands.py`).  `VennAbers` and `CrossVennAbers` fit steps with two probabilities each
(`pair_steps.py`) and look queries up in them.  `priors.py` keeps the probabilities of a staircase away from 0 and 1.

Tests: tests/calibration.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # kernels have no stubs

    def __getattr__(name: str) -> Any: ...
