"""Estimators for scikit-learn, in the extra `staircase_fast[sklearn]`.

`StaircaseRegressor` is a drop-in replacement for scikit-learn's IsotonicRegression.  `StaircaseCalibrator` calibrates
scores, or a classifier that it cross-fits (`crossfit.py`); `VennAbersCalibrator` adds intervals.  scikit-learn's own
functions check arrays first, so that users get its usual messages.

Tests: tests/sklearn.

>>> from staircase_fast.sklearn import StaircaseCalibrator, StaircaseRegressor
>>> StaircaseRegressor().fit_transform([1, 2, 3], [1, 3, 2])
array([1. , 2.5, 2.5])
>>> StaircaseCalibrator().fit([0.1, 0.4, 0.35, 0.8], [0, 0, 1, 1]).predict_proba([0.38])
array([[0.5, 0.5]])
"""

from staircase_fast.inputs.options import import_optional

import_optional("sklearn", "`staircase_fast.sklearn`", extra="sklearn")

from staircase_fast.sklearn.calibrator import StaircaseCalibrator  # noqa: E402
from staircase_fast.sklearn.crossfit import CalibratedPair  # noqa: E402
from staircase_fast.sklearn.regressor import StaircaseRegressor  # noqa: E402
from staircase_fast.sklearn.venn_abers import VennAbersCalibrator  # noqa: E402

__all__ = ["CalibratedPair", "StaircaseCalibrator", "StaircaseRegressor", "VennAbersCalibrator"]
