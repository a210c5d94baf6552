"""The share of live rows in fits by the survey (docs/survey_proof.md): `python asv_benchmarks/live_rows.py`.

Counts, not times: the output is the same on every machine.  Each line first checks that the fit has the steps of a fit
of all rows in score order.  `--output docs/live_rows.txt` replaces the stored table.
"""

import argparse
import sys
from pathlib import Path

import numpy as np

import staircase_fast as sf
from staircase_fast.losses.rows import check_rows
from staircase_fast.stack import survey
from staircase_fast.staircase import cells

SEED = 19
SIZES = (10**5, 10**6, 10**7)
FACTORS = (0.5, 1, 2, 4)  # times the usual number of rows per bucket


def labels_of(rng, scores):
    """0/1 labels with probability p = score."""
    return (rng.random(len(scores)) < scores).astype(np.int8), np.empty(0)


def reals_of(rng, scores):
    """Normal targets around the score, with standard deviation 1/2."""
    return scores + 0.5 * rng.standard_normal(len(scores)), np.empty(0)


def weighted_of(rng, scores):
    """The same, with exponential weights."""
    return reals_of(rng, scores)[0], rng.standard_exponential(len(scores)) + 1e-6


KINDS = {"labels": labels_of, "real": reals_of, "real, weighted": weighted_of}
HEAD = (
    f"{'targets':<16}{'rows':>11}{'rows/bucket':>13}{'steps':>7}{'steps/n^(1/3)':>15}{'live':>9}{'live/step/r^2':>15}"
)


def live_share(rows, rows_per_bucket):
    """The share of rows in live buckets, with this many rows per bucket."""
    n, labels = len(rows.scores), survey.are_labels(rows)
    bucket_map = cells.make_map(cells.sorted_sample(rows.scores), n / rows_per_bucket)
    table = survey.survey(rows, bucket_map, [slice(0, n)])
    greatest = max(-rows.targets_extent.lowest, rows.targets_extent.highest)
    live = survey.plan(table, n, greatest, 1, decreasing=False) == 1
    rows_in = table[:, 0] & 0xFFFF if labels else table[:, 2]
    return float(rows_in[live].sum()) / n


def lines_of(kind, n):
    """The lines of the table for rows of this kind and number."""
    rng = np.random.default_rng(SEED)
    scores = rng.random(n)
    targets, weights = KINDS[kind](rng, scores)
    optional = weights if len(weights) else None
    stairs = sf.fit(scores, targets, sample_weight=optional)
    order = np.argsort(scores)
    in_order = sf.fit(scores[order], targets[order], sample_weight=None if optional is None else weights[order])
    assert stairs == in_order
    rows = check_rows(scores, targets, weights, stairs.loss, 1)
    for factor in FACTORS:
        r = factor * survey.rows_per_bucket(n, labels=kind == "labels")
        share = live_share(rows, r)
        yield (
            f"{kind:<16}{n:>11,}{r:>13.1f}{stairs.n_steps:>7}{stairs.n_steps / n ** (1 / 3):>15.2f}{share:>9.2%}"
            f"{share * n / (stairs.n_steps * r * r):>15.2f}"
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--most", type=float, default=SIZES[-1], help="the largest number of rows")
    parser.add_argument("--output", type=Path, help="the file to write")
    given = parser.parse_args()
    lines = [HEAD]
    for kind in KINDS:
        for n in SIZES:
            if n <= given.most:
                lines += lines_of(kind, n)
    text = "\n".join(lines) + "\n"
    sys.stdout.write(text)
    if given.output:
        given.output.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
