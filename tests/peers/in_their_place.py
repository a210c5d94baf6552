"""A pytest plugin for a process of its own: other libraries' tests see our classes in the place of theirs.

`test_suites_of_peers.py` starts that process.  It is imported before any of their test modules.
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
joblib.parallel_config(backend="threading")  # another process would not see this

# Tests that cannot pass, with the reason.  All others must.
LEFT_OUT = {
    "test_get_feature_names_out": "the name of their class",
    "test_raise_error": "SciPy's wording of errors; a weight of 0 is none of ours",
}


class ThroughAllPoints:
    """What test_fast_predict holds the steps against: lines from each fitted score to the next, by numpy."""

    def __init__(self, x, y):
        self.x, self.values, self.left, self.right = x, y, x, x

    def predict(self, scores, interpolation, out_of_bounds, n_threads):
        assert (interpolation, out_of_bounds) == ("linear", "clip")
        return np.interp(scores, self.x, self.values)


def build_y(self, X, y, sample_weight, trim_duplicates):
    """Their private method: every score of a weight > 0, and its fitted value."""
    scores = np.unique(X[sample_weight > 0])
    return scores, self.fit(X, y, sample_weight).predict(scores)


def build_f(self, X, y):
    """Their private method: let `predict` go through these points."""
    self._staircase = ThroughAllPoints(X, y)


StaircaseRegressor._build_y, StaircaseRegressor._build_f = build_y, build_f


def uses_ours(item):
    """Whether a test has to do with isotonic regression; others would test what we have not replaced."""
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
