"""Rows that come batch by batch."""

from __future__ import annotations

import staircase_fast as sf

from . import patterns

BATCHES = 1000


def fed(given: patterns.Rows) -> sf.Accumulator:
    """An accumulator that has seen rows in batches."""
    x, y, w = given
    seen, size = sf.Accumulator(), len(x) // BATCHES
    for start in range(0, len(x), size):
        part = slice(start, start + size)
        seen.add(x[part], y[part], None if w is None else w[part])
    return seen


class Accumulate:
    params = ([10**5, 10**7], ["uniform", "three digits"], patterns.TARGETS)
    param_names = ("rows", "scores", "targets")
    timeout = 300

    def setup(self, n, scores, targets):
        self.given = patterns.rows(n, scores, targets)
        x, y, w = self.given
        self.seen = fed(self.given)
        assert self.seen.staircase() == sf.fit(x, y, sample_weight=w)

    def time_add(self, n, scores, targets):
        fed(self.given)

    def time_staircase(self, n, scores, targets):
        self.seen.staircase(bounds=(-1e9, 1e9))  # one that is not kept

    def track_bytes_per_score(self, n, scores, targets):
        return self.seen.nbytes / self.seen.n_scores
