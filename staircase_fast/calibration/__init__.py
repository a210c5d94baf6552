"""Calibration of forecasts: reliability diagrams with bands, and Venn-Abers predictors.

`reliability` fits the CORP curve, then splits the mean score into its parts (`decomposition.py`) and computes bands
(`bands.py`): confidence bands (`honest.py`) and pointwise intervals (`pointwise.py`) of targets with a known
distribution (`families.py`), or consistency bands from resampled labels (`consistency.py`).  `plots.py` draws them;
`display.py` has scikit-learn's conventions.  `calibration_errors` measures distances from calibration
(`error_measures.py`, `measures.py`, `smooth_error.py`) and tests whether the curve is monotone (`monotone_test.py`).
`VennAbers` and `CrossVennAbers` fit steps with two probabilities each (`pair_steps.py`) and look queries up in them;
several classes and real targets are reduced to them (`venn_abers_classes.py`, `venn_abers_regression.py`).
`priors.py` keeps the probabilities of a staircase away from 0 and 1.

Tests: tests/calibration.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # kernels have no stubs

    def __getattr__(name: str) -> Any: ...
