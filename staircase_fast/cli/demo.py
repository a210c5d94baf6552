"""The tour: the scores of a miscalibrated model in files, calibrated by the command line, beside scikit-learn."""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

import staircase_fast as sf
from staircase_fast.cli import arguments
from staircase_fast.inputs.options import import_optional

_TITLES = {"mean_score": "Brier score", "miscalibration": "miscalibration", "calibration_error": "calibration error"}


def overconfident_model(n: int, seed: int = 0) -> tuple[NDArray[np.float64], NDArray[np.uint8]]:
    """Scores of a model that ranks well and is far too sure of itself, and the labels it was to predict."""
    rng = np.random.default_rng(seed)
    log_odds = rng.normal(-0.5, 1.2, n)
    labels = rng.random(n) < 1 / (1 + np.exp(-log_odds))
    scores = 1 / (1 + np.exp(-(3 * log_odds + 1 + rng.normal(0, 0.3, n))))
    return scores, labels.view(np.uint8)


def main(rows: int = 2_000_000, folder: str = "demo") -> None:
    """Generate, fit, apply, report, certify, compare; all files go to the folder."""
    import_optional("pyarrow", "this", extra="cli")
    os.makedirs(folder, exist_ok=True)
    past, new, model = (os.path.join(folder, name) for name in ("past.parquet", "new.parquet", "model.json"))
    print(f"{rows:,} scores of an overconfident model with what happened, and {rows:,} new ones.")
    for seed, path in enumerate((past, new)):
        _write(path, *overconfident_model(rows, seed))

    fitted = _shown("fit", past, "--model", model)
    applied = _shown("apply", new, "--model", model, "--output", os.path.join(folder, "calibrated.parquet"))
    told = _reported(folder, new, model)
    proof = _shown("certify", past, "--model", model)
    if told is not None:
        _print_before_and_after(told)
    _print_rates(past, new, fitted["seconds"], applied["seconds"])
    if not proof["optimal"]:
        raise ValueError("the model is not the optimum.")
    page = f"; look at {os.path.join(folder, 'report.html')}" if told is not None else ""
    print(f"\nThe model is the optimum, as proved above{page}.")


def _write(path: str, scores: NDArray[np.float64], labels: NDArray[np.uint8]) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    parquet.write_table(pa.table({"score": scores, "label": labels}), path, row_group_size=1 << 20)


def _shown(*words: str) -> dict[str, Any]:
    """What a command found; it and what it prints are shown."""
    print(f"\n$ {shlex.join(['staircase-fast', *words])}", flush=True)
    return arguments.result_of(arguments.options_of(words))


def _reported(folder: str, new: str, model: str) -> dict[str, Any] | None:
    try:
        import_optional("matplotlib", "this", extra="plot")
    except ImportError as error:
        print(f"\nNo report: {error}")
        return None
    page, picture = os.path.join(folder, "report.html"), os.path.join(folder, "report.png")
    return _shown("report", new, "--model", model, "--output", page, "--plot", picture)


def _print_before_and_after(told: dict[str, Any]) -> None:
    print(f"\n{'new scores':24}{'before':>12}{'after':>12}")
    for name, title in _TITLES.items():
        print(f"{title:24}{told['before'][name]:12.6f}{told['after'][name]:12.6f}")


def _print_rates(past: str, new: str, fit_seconds: float, apply_seconds: float) -> None:
    """Rows per second of files, and of their columns in memory beside scikit-learn's."""
    from pyarrow import parquet

    (x, y), (queries, _) = ([column.to_numpy() for column in parquet.read_table(path)] for path in (past, new))
    stairs, fit = _timed(lambda: sf.fit(x, y))
    ours, predict = _timed(lambda: stairs.predict(queries, interpolation="linear"))
    rates: dict[str, tuple[float, float | None]] = {
        "fit, file to model": (fit_seconds, None),
        "apply, file to file": (apply_seconds, None),
    }
    try:
        isotonic = import_optional("sklearn.isotonic", "this", extra="sklearn")
    except ImportError as error:
        print(f"\nNo comparison: {error}")
        rates |= {"fit, in memory": (fit, None), "predict, in memory": (predict, None)}
    else:
        peer = isotonic.IsotonicRegression(out_of_bounds="clip")
        _, their_fit = _timed(lambda: peer.fit(x, y))
        theirs, their_predict = _timed(lambda: peer.predict(queries))
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-6)
        rates |= {"fit, in memory": (fit, their_fit), "predict, in memory": (predict, their_predict)}
    print(f"\n{'rows per second':24}{'staircase_fast':>16}{'scikit-learn':>16}{'ratio':>9}")
    for name, (seconds, their_seconds) in rates.items():
        line = f"{name:24}{len(x) / seconds:16,.0f}"
        print(
            line if their_seconds is None else f"{line}{len(x) / their_seconds:16,.0f}{their_seconds / seconds:8.1f}x"
        )


def _timed(task: Callable[[], Any]) -> tuple[Any, float]:
    start = time.perf_counter()
    result = task()
    return result, time.perf_counter() - start
