"""The command `demo`: a tour through the other commands, with a comparison to scikit-learn."""

from __future__ import annotations

import argparse
import os
import shlex
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

import staircase_fast as sf
from staircase_fast.cli import arguments, parser
from staircase_fast.cli.printing import shown
from staircase_fast.inputs.options import import_optional


def overconfident_model(n: int, seed: int = 0) -> tuple[NDArray[np.float64], NDArray[np.uint8]]:
    """Scores of a model that ranks well but is overconfident, and labels."""
    rng = np.random.default_rng(seed)
    log_odds = rng.normal(-0.5, 1.2, n)
    labels = rng.random(n) < 1 / (1 + np.exp(-log_odds))
    scores = 1 / (1 + np.exp(-(3 * log_odds + 1 + rng.normal(0, 0.3, n))))
    return scores, labels.view(np.uint8)


def demo(options: argparse.Namespace) -> dict[str, Any]:
    """Generate data in a folder; fit, apply, report, certify and compare."""
    import pyarrow as pa
    from pyarrow import parquet

    os.makedirs(options.output, exist_ok=True)
    names = ("past.parquet", "new.parquet", "model.json", "calibrated.parquet", "report.html", "report.png")
    past, new, model, calibrated, page, picture = (os.path.join(options.output, name) for name in names)
    print(f"{options.rows:,} scores of an overconfident model with labels for the fit, and {options.rows:,} new ones.")
    columns = [overconfident_model(options.rows, seed) for seed in (0, 1)]
    for path, (scores, labels) in zip((past, new), columns, strict=True):
        parquet.write_table(pa.table({"score": scores, "label": labels}), path, row_group_size=1 << 20)

    fitted = _run("fit", past, "--model", model)
    applied = _run("apply", new, "--model", model, "--output", calibrated)
    try:
        import_optional("matplotlib", "this", extra="plot")
    except ImportError as error:
        print(f"\nNo report: {error}")
    else:
        found = _run("report", new, "--model", model, "--output", page, "--plot", picture)
        print(f"\n{'new scores':28}{'before':>14}{'after':>14}")
        for name in ("mean_score", "miscalibration", "calibration_error", "debiased_calibration_error"):
            print(f"{name.replace('_', ' '):28}{shown(found['before'][name]):>14}{shown(found['after'][name]):>14}")
        print(f"\nThe report is in {page}.")
    proof = _run("certify", past, "--model", model)
    if not proof["optimal"]:
        raise ValueError("the model is not optimal.")
    print(f"\n{'rows per second':24}{'staircase_fast':>16}{'scikit-learn':>16}{'ratio':>9}")
    print(f"{'fit, file to model':24}{options.rows / fitted['seconds']:16,.0f}")
    print(f"{'apply, file to file':24}{options.rows / applied['seconds']:16,.0f}")
    _compare(*columns[0], columns[1][0])
    return {}


def _run(*words: str) -> dict[str, Any]:
    """Print a command, run it, and return its result."""
    print(f"\n$ {shlex.join(['staircase-fast', *words])}", flush=True)
    return arguments.run_command(parser.parse(words))


def _compare(scores: NDArray[np.float64], labels: NDArray[np.uint8], queries: NDArray[np.float64]) -> None:
    """Print rows per second in memory, of this library and of scikit-learn."""
    stairs, fit = _timed(lambda: sf.fit(scores, labels))
    values, predict = _timed(lambda: stairs.predict(queries, interpolation="linear"))
    try:
        isotonic = import_optional("sklearn.isotonic", "this", extra="sklearn")
    except ImportError as error:
        print(f"No comparison: {error}")
        return
    peer = isotonic.IsotonicRegression(out_of_bounds="clip")
    _, peer_fit = _timed(lambda: peer.fit(scores, labels))
    peer_values, peer_predict = _timed(lambda: peer.predict(queries))
    np.testing.assert_allclose(values, peer_values, rtol=0, atol=1e-6)
    for name, ours, theirs in (("fit", fit, peer_fit), ("predict", predict, peer_predict)):
        rates = f"{len(scores) / ours:16,.0f}{len(scores) / theirs:16,.0f}{theirs / ours:8.1f}x"
        print(f"{f'{name}, in memory':24}{rates}")


def _timed(task: Callable[[], Any]) -> tuple[Any, float]:
    start = time.perf_counter()
    result = task()
    return result, time.perf_counter() - start
