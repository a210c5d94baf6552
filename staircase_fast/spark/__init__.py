"""Fits and predictions of Spark DataFrames, in the extra `staircase_fast[spark]`.

`fit` runs the scans of `batches/` on the executors and merges their messages there, in a tree (`fits.py`).  It needs no
shuffle of the rows, and only few messages reach the driver.  `fit_groups` brings the rows of each group together and
fits all groups of a partition at once.  `predict` adds a column (`predictions.py`).  `StaircaseRegression` is an
estimator for pipelines, with the parameters of Spark's own IsotonicRegression (`estimators.py`).

Tests: tests/engines.
"""

from staircase_fast.inputs.options import import_optional

for _name in ("pyspark", "pyarrow", "pandas"):
    import_optional(_name, "`staircase_fast.spark`", extra="spark")

from staircase_fast.spark.estimators import StaircaseRegression, StaircaseRegressionModel  # noqa: E402
from staircase_fast.spark.fits import fit, fit_groups  # noqa: E402
from staircase_fast.spark.predictions import predict  # noqa: E402

__all__ = ["StaircaseRegression", "StaircaseRegressionModel", "fit", "fit_groups", "predict"]
