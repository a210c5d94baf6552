"""`Certifier`: the proof that a staircase is optimal, for rows that only tasks can read.

If steps are means, the loss of rows that share a value depends on that value and on the sums of the rows; the rest of
it is the same for all values.  So rows that lie on one step of the staircase and on one step of the optimum can be
replaced by one row with their mean and their weight.  The scans of a fit find such rows: those of buckets that are not
live lie on one step of the optimum.  Here buckets that contain the start of a step of the staircase are live as well.
`certify` then checks the remaining rows.  A mean and a weight are rounded once, which `certify` allows for.

`certify_groups` does this for each large group of a map; the rows of small groups are gathered.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from staircase_fast.batches.driver import Driver
from staircase_fast.batches.fitting import Progress
from staircase_fast.batches.fitting_groups import Work, run_groups
from staircase_fast.batches.groups import GroupPlan, Piece, gathered
from staircase_fast.batches.messages import Message, run_of
from staircase_fast.batches.scans import CollectTask
from staircase_fast.batches.sources import Names, Source
from staircase_fast.certificate.certifying import certify
from staircase_fast.errors import InvalidInputError
from staircase_fast.groups.readers import Key
from staircase_fast.groups.staircase_map import StaircaseMap
from staircase_fast.losses import Loss, loss_of
from staircase_fast.stack import survey
from staircase_fast.staircase.result import Staircase
from staircase_fast.streams import runs
from staircase_fast.typing import Bounds

Floats = NDArray[np.float64]


class BatchCertificate(NamedTuple):
    """As `Certificate`, with the number of rows; the worst row is known by its score only."""

    rows: int
    optimal: bool
    gap: float
    worst_score: float


class _Samples(NamedTuple):
    """Rows in score order, each of which may stand for many."""

    scores: Floats  # NaN if unknown
    ranks: Floats  # equal where scores are
    means: Floats
    weights: Floats
    counts: NDArray[np.int64]


class Certifier(Driver):
    """The certificate of a staircase; see `Driver` for the protocol and the options."""

    def __init__(
        self, stairs: Staircase, *, loss: str | Loss | None = None, bounds: Bounds = None, **options: Any
    ) -> None:
        given_loss = stairs.loss if loss is None else loss_of(loss)
        super().__init__(
            loss=given_loss, increasing=stairs.increasing, bounds=bounds, borders=stairs.left[1:], **options
        )
        self._stairs, self._bounds = stairs, bounds

    def certificate(self) -> BatchCertificate:
        """The result, after `next` has returned None."""
        found: BatchCertificate = self.result()
        return found

    def _finish(self, task: CollectTask, message: Message) -> BatchCertificate:
        live = task.live_buckets()
        found, sums = self._gathered(message, live)
        x, y, w, tied, run = survey.in_sequence(found, sums, live, self._n_threads, message.tally.weighted)
        of_runs, w = run >= 0, w if len(w) else np.ones(len(x))
        y[of_runs], w[of_runs] = runs.means_of_words(sums.words[run[of_runs]], task.scale)
        counts = np.where(of_runs, sums.rows[run], 1)
        # even: a run between live buckets; odd: the number of live buckets before
        is_live = np.unpackbits(task.live, count=task.buckets.n).astype(np.int64)
        place = np.where(np.isnan(x), 2 * run, 0)
        known = np.flatnonzero(~np.isnan(x))
        before = np.cumsum(is_live) - is_live
        place[known] = 2 * before[task.buckets.find(x[known])] + 1
        own = 2 * before[task.buckets.find(self._borders)] + 1
        first, last = np.searchsorted(place, own, "left"), np.searchsorted(place, own, "right")
        starts = [
            a + int(np.searchsorted(x[a:b], border))
            for a, b, border in zip(first.tolist(), last.tolist(), self._borders.tolist(), strict=True)
        ]
        samples = _Samples(x, np.cumsum(tied == 0).astype(np.float64), y, w, counts)
        return self._certify(samples, np.array([0, *starts], dtype=np.int64))

    def _finish_pool(self, message: Message) -> BatchCertificate:
        run = run_of(message)
        assert run is not None
        x = run.columns.x
        means, weights, counts = runs.means_of(run)
        samples = _Samples(x, np.arange(len(x), dtype=np.float64), means, weights, counts)
        return self._certify(samples, np.append(0, np.searchsorted(x, self._borders)))

    def _certify(self, samples: _Samples, starts: NDArray[np.int64]) -> BatchCertificate:
        """The certificate of these samples; `starts`: the first one of each step, or of the next one with rows."""
        ends = np.append(starts[1:], len(samples.ranks))
        some = ends > starts
        values, left, right = self._stairs.values[some], samples.ranks[starts[some]], samples.ranks[ends[some] - 1]
        stairs = Staircase(
            left, right, values, np.add.reduceat(samples.weights, starts[some]),
            np.add.reduceat(samples.counts, starts[some]), self._stairs.loss, self._stairs.increasing,
        )  # fmt: skip
        columns = samples.ranks, samples.means
        found = certify(stairs, *columns, sample_weight=samples.weights, loss=self._loss, bounds=self._bounds)
        known = np.flatnonzero(~np.isnan(samples.scores))
        nearest = known[np.argmin(np.abs(known - found.worst_index))]
        assert self._tally is not None
        return BatchCertificate(self._tally.n_given, found.optimal, found.gap, float(samples.scores[nearest]))


class GroupsCertificate(NamedTuple):
    """Whether all groups are optimal, the sum of their gaps, and the worst score of the group with the largest gap."""

    rows: int
    optimal: bool
    gap: float
    worst_score: float
    worst_group: Key
    groups: int
    groups_failed: list[Key]


def certify_groups(
    model: StaircaseMap,
    opened: Source,
    names: Names,
    *,
    loss: str | Loss | None,
    bounds: Bounds,
    memory_limit: int,
    n_threads: int | None = None,
    progress: Progress | None = None,
) -> GroupsCertificate:
    """The certificate of a map for all rows of a source, whose groups must be in the map."""
    given_loss = model.loss if loss is None else loss_of(loss)
    settings: Any = {"loss": given_loss, "bounds": bounds}

    def certifier(key: Key, **scans: Any) -> Certifier:
        return Certifier(model[key], **settings, **scans)

    work = Work(given_loss, partial(_certify_range, model, settings), certifier)
    plan, ranges, large = run_groups(work, opened, names, memory_limit, n_threads, progress)
    starts = enumerate(plan.starts.tolist())
    proofs = [proof for place, start in starts for proof in ranges.get(place) or [large[start]]]
    worst = max(range(len(proofs)), key=lambda place: proofs[place].gap)
    failed = [key for key, proof in zip(plan.keys, proofs, strict=True) if not proof.optimal]
    return GroupsCertificate(
        sum(proof.rows for proof in proofs), not failed, sum(proof.gap for proof in proofs),
        proofs[worst].worst_score, plan.keys[worst], len(proofs), failed,
    )  # fmt: skip


def _certify_range(
    model: StaircaseMap, settings: Any, pieces: Iterable[Piece], plan: GroupPlan, place: int
) -> list[BatchCertificate]:
    """The certificates of a range of small groups."""
    x, y, w, places = gathered(pieces, plan, place)
    own = plan.groups_of(place)
    rows_of = np.split(np.argsort(places, kind="stable"), np.cumsum(plan.sizes[own])[:-1])
    found = []
    for key, rows in zip(plan.keys[own], rows_of, strict=True):
        try:
            proof = certify(model[key], x[rows], y[rows], sample_weight=w[rows] if len(w) else None, **settings)
        except InvalidInputError as error:
            error.index, error.group = None, key
            raise
        worst_score = float(x[rows[proof.worst_index]])
        found.append(BatchCertificate(len(rows), proof.optimal, proof.gap, worst_score))
    return found
