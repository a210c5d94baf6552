"""The stages of a fit of unsorted rows, and the sort that replaces them for other losses."""

from __future__ import annotations

import numpy as np

from staircase_fast.arithmetic.exact import scale_of
from staircase_fast.inputs.rows import read_columns
from staircase_fast.losses import SquaredError
from staircase_fast.losses.rows import check_rows
from staircase_fast.stack import _collect, _survey, sorted_rows, survey
from staircase_fast.stack.sorting import in_score_order
from staircase_fast.staircase import cells

from . import patterns


def clean(given):
    return check_rows(*read_columns(*given), SquaredError(), n_threads=1)


class Survey:
    """The stages in the order in which `survey.fit_unsorted` calls them."""

    params = ([10**5, 10**6, 10**7], ["labels", "real and weights"], [1, 2])
    param_names = ("rows", "targets", "threads")
    timeout = 300

    def setup(self, n, targets, n_threads):
        if n_threads > 1 and n < 10**6:
            raise NotImplementedError  # too few rows for two threads
        rows = clean(patterns.rows(n, targets=targets))
        self.rows, self.scale = rows, scale_of(rows.targets_extent, rows.weights_extent, n)
        self.sample = cells.sorted_sample(rows.scores)
        self.map = cells.make_map(self.sample, n / survey.rows_per_bucket(rows))
        self.shares = survey._shares(rows, cells.n_buckets(self.map), n_threads)
        self.table = self.time_survey()
        alive = self.time_plan(n)
        directory = np.empty(len(alive) // 32 + 1, dtype=np.uint64)
        n_live = _survey.index_live(alive, directory)
        atoms, atom_runs, _ = survey.find_atoms(self.sample, self.map, alive, n_live)
        self.live = survey.LiveBuckets(n_live, self.map, directory, atoms, atom_runs)
        self.found, self.runs = self.time_collect()
        if self.table.shape[1] == 1:
            _collect.sum_labels(self.table, directory, atom_runs, *self.found, *self.runs)

    def time_survey(self, *_):
        return survey.survey(self.rows, self.map, self.shares)

    def time_plan(self, n, *_):
        return survey.plan(self.table, n, self.scale.greatest, len(self.shares), decreasing=False)

    def time_collect(self, *_):
        summed = self.table.shape[1] > 1
        return survey.collect(self.rows, self.scale, self.live, self.shares, summed=summed)

    def time_finish(self, n, targets, n_threads):
        survey.finish(
            self.found, self.runs, self.scale, self.live, n_threads, len(self.rows.weights) > 0,
            decreasing=False, bounds=sorted_rows.UNBOUNDED,
        )  # fmt: skip


class Order:
    params = (
        [10**4, 10**5, 10**6, 10**7],
        ["uniform", "float32", "cluster", "three digits"],
        ["labels", "real and weights"],
    )
    param_names = ("rows", "scores", "targets")
    timeout = 300

    def setup(self, n, scores, targets):
        if n == 10**7 and scores != "uniform":
            raise NotImplementedError  # a tenth of the rows shows the same
        self.rows = clean(patterns.rows(n, scores, targets))

    def time_in_score_order(self, n, scores, targets):
        in_score_order(self.rows)
