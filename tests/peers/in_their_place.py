"""A pytest plugin that replaces classes of other libraries by ours, so that their tests run on our code.

`test_suites_of_peers.py` starts a process with it.  It is imported before any test module of the libraries.
"""

import inspect

import joblib
import numpy as np
import scipy.optimize
import sklearn.calibration
import sklearn.isotonic

import staircase_fast as sf
from staircase_fast.sklearn import StaircaseRegressor

sklearn.isotonic.IsotonicRegression = sklearn.calibration.IsotonicRegression = StaircaseRegressor
scipy.optimize.isotonic_regression = sf.isotonic_regression
joblib.parallel_config(backend="threading")  # other processes would not have the replacements

# Tests that cannot pass, with the reason.  All others must.
LEFT_OUT = {
    "test_get_feature_names_out": "it expects the name of their class",
    "test_raise_error": "it expects SciPy's wording; we allow a weight of 0",
}


class ThroughAllPoints:
    """Linear interpolation by numpy, which test_fast_predict compares with our steps."""

    def __init__(self, x, y):
        self.x, self.values, self.left, self.right = x, y, x, x

    def predict(self, scores, interpolation, out_of_bounds, n_threads):
        assert (interpolation, out_of_bounds) == ("linear", "clip")
        return np.interp(scores, self.x, self.values)


def build_y(self, X, y, sample_weight, trim_duplicates):
    """Their private method: every score with a weight > 0, and its fitted value."""
    scores = np.unique(X[sample_weight > 0])
    return scores, self.fit(X, y, sample_weight).predict(scores)


def build_f(self, X, y):
    """Their private method: `predict` interpolates these points."""
    self._staircase = ThroughAllPoints(X, y)


StaircaseRegressor._build_y, StaircaseRegressor._build_f = build_y, build_f


def uses_ours(item):
    """Whether a test uses isotonic regression; other tests would not run our code."""
    if item.path.name != "test_calibration.py":
        return True
    parameters = item.name.removeprefix(item.originalname).strip("[]").split("-")
    if {"sigmoid", "temperature"} & set(parameters):
        return False
    return "isotonic" in parameters or "isotonic" in inspect.getsource(item.function).lower()


def pytest_collection_modifyitems(config, items):
    kept = [item for item in items if uses_ours(item) and item.originalname not in LEFT_OUT]
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = kept
