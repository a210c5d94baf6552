"""Memory, and the time of an import."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import staircase_fast as sf

from . import patterns
from .extra_memory import PACKAGE_PATH, extra_bytes


class PeakFit:
    """Peak memory of the process.  Data is read from files, so that generating it does not count."""

    params = ([10**6, 10**7], list(patterns.TARGETS))
    param_names = ("rows", "targets")
    timeout = 300

    def setup_cache(self):
        for n in self.params[0]:
            for targets in self.params[1]:
                for name, column in patterns.rows(n, targets=targets)._asdict().items():
                    if column is not None:
                        np.save(f"{n} {targets} {name}.npy", column)

    def setup(self, n, targets):
        files = [Path(f"{n} {targets} {name}.npy") for name in patterns.Rows._fields]
        self.given = [np.load(file) if file.exists() else None for file in files]

    def peakmem_fit(self, n, targets):
        x, y, w = self.given
        sf.fit(x, y, sample_weight=w)


class PeakPredict:
    params = ([10**6, 10**7], ["step", "linear"])
    param_names = ("scores", "interpolation")

    def setup(self, n, interpolation):
        self.stairs, self.queries = patterns.staircase(500), patterns.queries(n)

    def peakmem_predict(self, n, interpolation):
        self.stairs.predict(self.queries, interpolation=interpolation)


class Extra:
    """Memory beyond the input, relative to the input."""

    params = ([10**6, 10**7], ["labels", "real and weights"])
    param_names = ("rows", "targets")
    timeout = 300
    unit = "of the input's bytes"

    def track_fit(self, n, targets):
        given = patterns.rows(n, targets=targets)
        return extra_bytes(given) / sum(column.nbytes for column in given if column is not None)


def timeraw_import():
    return "import staircase_fast", f"import numpy, sys; sys.path.insert(0, {PACKAGE_PATH!r})"


timeraw_import.number = 1
