"""Share of rows in live buckets, and what fits of very many rows need: `make many-rows`.

    PYTHONPATH=. .venv/bin/python asv_benchmarks/many_rows.py [--most 1e8] [--largest 1e11] [--seed 17]

Scores are uniform.  Labels have the frequency 0.1 + 0.8 * score; numbers are that plus normal noise of deviation 1.
Table 1: up to `--most` rows are drawn, summarised and planned by the code of `fit_batches`.  Table 2: bucket summaries
are drawn directly, and live buckets are divided by draws from the distribution of their parts, round by round, as the
driver does within a memory limit.  The plan is that of the driver in both.
"""

from __future__ import annotations

import argparse
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

import staircase_fast as sf
from staircase_fast.arithmetic.exact import Extent, Scale, scale_of
from staircase_fast.batches import Driver
from staircase_fast.batches.buckets import Buckets
from staircase_fast.batches.messages import Tally
from staircase_fast.batches.scans import SurveyTask
from staircase_fast.staircase import cells

DATA = ("labels", "numbers")
SIZES = (10**6, 10**7, 10**8)
LARGE = ((10**9, 1), (10**11, 4))  # rows, and memory in GB
PER_BUCKET = tuple(16 * 4**power for power in range(7))  # 16 to 65,536 rows
CHUNK = 10**6
_WIDE = np.dtype([("s", "f8"), ("w", "f8"), ("error", "f4"), ("lo", "f4"), ("hi", "f4"), ("rows", "f4")])


def curve(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    return 0.1 + 0.8 * scores


def draw(rng: np.random.Generator, data: str, n: int) -> tuple[NDArray[np.float64], NDArray[Any]]:
    scores = rng.random(n)
    if data == "labels":
        return scores, (rng.random(n) < curve(scores)).astype(np.uint8)
    return scores, curve(scores) + rng.normal(size=n)


def scale(n: int) -> Scale:
    """Of targets of moderate size."""
    return scale_of(Extent(-1, -8.0, 8.0, 2.0**-60, False), Extent(-1, 1.0, 1.0, 1.0, True), n)


def uniform_map(n_buckets: float) -> cells.Map:
    return cells.make_map(np.linspace(0, 1, int(min(n_buckets, 1 << 15)) + 1), n_buckets)


def live_shares(data: str, n: int, seed: int) -> list[float]:
    """The measured share for each number of rows per bucket."""
    rng = np.random.default_rng([seed, n])
    sizes = [per for per in PER_BUCKET if n >= 4 * per]
    tasks = [
        SurveyTask(1, sf.losses.SquaredError(), Buckets(uniform_map(n / per)), 0.0, data == "labels") for per in sizes
    ]
    scans = [task.begin() for task in tasks]
    for start in range(0, n, CHUNK):
        scores, targets = draw(rng, data, min(CHUNK, n - start))
        for scan in scans:
            scan.add(scores, targets)
    found = []
    for scan in scans:
        arrays = scan.message().arrays
        live = Driver()._plan(arrays["table"], scale(n), int(arrays["parts"][0]))
        table = arrays["table"]
        rows = table[:, 0] & 0xFFFFFFFF if table.dtype == np.uint64 else table.view(np.float32)[:, 7]
        found.append(float(rows[live == 1].sum(dtype=np.float64)) / n)
    return found


class Simulated:
    """Buckets of very many rows."""

    def __init__(self, rng: np.random.Generator, data: str, n: int, n_buckets: int) -> None:
        self.rng, self.data, self.n = rng, data, n
        middles = (np.arange(n_buckets) + 0.5) / n_buckets
        self.rows = np.full(n_buckets, n / n_buckets).round()
        self.was_live = np.ones(n_buckets, dtype=bool)
        self.sums = self._noise(self.rows, curve(middles))

    def _noise(self, rows: NDArray[np.float64], means: NDArray[np.float64]) -> NDArray[np.float64]:
        if self.data == "labels":
            return self.rng.binomial(rows.astype(np.int64), means).astype(np.float64)
        return self.rng.normal(rows * means, np.sqrt(rows))

    def live(self) -> NDArray[np.uint8]:
        """What the driver plans."""
        table = np.zeros(len(self.rows), dtype=_WIDE)
        table["s"], table["w"], table["rows"] = self.sums, self.rows, self.rows
        if self.data == "labels":
            table["lo"], table["hi"] = self.sums == self.rows, self.sums > 0
        else:  # approximate extremes of this number of normal variables
            reach = np.sqrt(2 * np.log(np.maximum(self.rows, 2)))
            table["lo"], table["hi"] = self.sums / self.rows - reach, self.sums / self.rows + reach
        return Driver()._plan(table.view(np.float64).reshape(-1, 4), scale(10**9), 1) & self.was_live

    def divide(self, live: NDArray[np.uint8], n_buckets: int, share: float) -> None:
        """Divide the first live buckets, which have this share of the live rows; join quiet neighbours."""
        in_live = np.cumsum(np.where(live == 1, self.rows, 0.0))
        state = live + ((live == 1) & (in_live <= share * in_live[-1]))  # 0 quiet, 1 live, 2 divided
        group = np.cumsum(np.append(True, (state[1:] > 0) | (state[:-1] > 0))) - 1
        rows, sums = (np.bincount(group, weights=column) for column in (self.rows, self.sums))
        found, was_live = np.zeros((2, len(rows)), dtype=bool)
        found[group], was_live[group] = state == 2, state > 0
        most = max(2.0, 1.5 * rows[found].sum() / n_buckets)
        while np.any(big := found & (rows > most)):
            left = np.floor(rows / 2)
            part = self._part(left[big], rows[big], sums[big])
            old = np.repeat(np.arange(len(rows)), 1 + big)
            at = (np.arange(len(rows)) + np.cumsum(big) - big)[big]  # the place of each left half
            more_rows, more_sums = rows[old], sums[old]
            more_rows[at], more_sums[at] = left[big], part
            more_rows[at + 1], more_sums[at + 1] = (rows - left)[big], sums[big] - part
            rows, sums, found, was_live = more_rows, more_sums, found[old], was_live[old]
        self.rows, self.sums, self.was_live = rows, sums, was_live

    def _part(
        self, part: NDArray[np.float64], rows: NDArray[np.float64], sums: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """The sum of a part of the rows, given that of all."""
        if self.data == "labels":
            ones, zeros = sums.astype(np.int64), (rows - sums).astype(np.int64)
            return self.rng.hypergeometric(ones, zeros, part.astype(np.int64)).astype(np.float64)
        share = part / rows
        return self.rng.normal(share * sums, np.sqrt(part * (1 - share)))


def simulate(data: str, n: int, memory: int, seed: int) -> str:
    """A line of table 2."""
    driver = Driver(memory_limit=memory, n_rows=n)
    driver._tally = Tally(n_rows=n)
    labels = data == "labels"
    most = int(min(driver._most_buckets(labels), n / 16))
    buckets = Simulated(np.random.default_rng([seed, n, memory]), data, n, most)
    live = buckets.live()
    n_live = first = float(buckets.rows[live == 1].sum())
    n_surveys, most_left = 1, math.inf
    while driver._most_live < n_live <= most_left:
        share = driver._share_to_divide(n_live, min(most, n_live))
        most_left = n_live * (1 - 0.3 * share)
        buckets.divide(live, int(min(most, n_live)), share)
        live = buckets.live()
        n_live = float(buckets.rows[live == 1].sum())
        n_surveys += 1
    text = f"{data:8}{n:>8.0e}{memory / 1e9:>6.0f} GB{most:>13,}{n / most:>11,.0f}{first / n:>12.2%}"
    if n_live > driver._most_live:
        return f"{text}  too many rows stay live: {n_live / n:.2%}"
    table = most * (driver._bytes_per_bucket(labels) if labels else 32) / 1e6
    return f"{text}{n_surveys:>9}{table:>9,.0f} MB{28 * n_live / 1e6:>8,.0f} MB"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--most", type=float, default=SIZES[-1], help="rows of table 1 (default: 1e8)")
    parser.add_argument("--largest", type=float, default=LARGE[-1][0], help="rows of table 2 (default: 1e11)")
    parser.add_argument("--seed", type=int, default=17)
    options = parser.parse_args()
    print(f"seed {options.seed}: measured share of live rows; columns: rows per bucket")
    print(f"{'data':8}{'rows':>8}" + "".join(f"{per:>10,}" for per in PER_BUCKET), flush=True)
    logs = []
    for data in DATA:
        for n in (n for n in SIZES if n <= options.most):
            shares = live_shares(data, n, options.seed)
            print(f"{data:8}{n:>8.0e}" + "".join(f"{share:>10.4%}" for share in shares), flush=True)
            logs += [
                (data, np.log(n), np.log(per), np.log(share))
                for per, share in zip(PER_BUCKET, shares, strict=False)
                if 0 < share < 0.2
            ]
    for data in DATA:
        _, n, per, share = zip(*(row for row in logs if row[0] == data), strict=True)
        powers = np.linalg.lstsq(np.column_stack((np.ones(len(n)), n, per)), np.array(share), rcond=None)[0]
        law = f"{np.exp(powers[0]):.2g} * rows^{powers[1]:.2f} * (rows per bucket)^{powers[2]:.2f}"
        print(f"{data}, shares below 20 %: about {law}")
    print("\nsimulated fits: surveys before the one collecting scan, and the largest messages of both kinds")
    head = f"{'data':8}{'rows':>8}{'memory':>9}{'buckets':>13}{'rows each':>11}{'first live':>12}{'surveys':>9}"
    print(f"{head}{'survey':>12}{'collect':>11}", flush=True)
    for data in DATA:
        for n, memory in LARGE:
            if n <= options.largest:
                print(simulate(data, n, memory * 10**9, options.seed), flush=True)


if __name__ == "__main__":
    main()
