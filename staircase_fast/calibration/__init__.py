"""Calibration of forecasts: how reliable they are, with what uncertainty, and Venn-Abers predictors.

`reliability.py` has `reliability`, the CORP curve and its scores (`decomposition.py`); `bands.py` resamples the rows
for bands around the curve.  `venn_abers.py` and `cross_venn_abers.py` predict pairs of probabilities.  `classes.py` and
`priors.py` turn scores of classes into probabilities.

Tests: tests/calibration.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # kernels have no stubs

    def __getattr__(name: str) -> Any: ...
