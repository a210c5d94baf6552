"""Rows that arrive in batches."""

from __future__ import annotations

import staircase_fast as sf

from . import patterns

BATCHES = 1000


def accumulated(given: patterns.Rows) -> sf.Accumulator:
    """An accumulator to which the rows were added in batches."""
    x, y, w = given
    accumulator, size = sf.Accumulator(), len(x) // BATCHES
    for start in range(0, len(x), size):
        part = slice(start, start + size)
        accumulator.add(x[part], y[part], None if w is None else w[part])
    return accumulator


class Accumulate:
    params = ([10**5, 10**7], ["uniform", "three digits"], list(patterns.TARGETS))
    param_names = ("rows", "scores", "targets")
    timeout = 300

    def setup(self, n, scores, targets):
        self.given = patterns.rows(n, scores, targets)
        x, y, w = self.given
        self.accumulator = accumulated(self.given)
        assert self.accumulator.staircase() == sf.fit(x, y, sample_weight=w)

    def time_add(self, n, scores, targets):
        accumulated(self.given)

    def time_staircase(self, n, scores, targets):
        self.accumulator.staircase(bounds=(-1e9, 1e9))  # bounds prevent the use of a cached staircase

    def track_bytes_per_score(self, n, scores, targets):
        return self.accumulator.nbytes / self.accumulator.n_scores
