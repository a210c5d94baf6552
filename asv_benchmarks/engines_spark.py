"""Spark: `staircase_fast.spark.fit` beside MLlib's IsotonicRegression, in one session, on the same DataFrame.

    python asv_benchmarks/engines_spark.py [--most ROWS] [--output FILE]

Rows are labels with a logistic curve, in Parquet files.  Calls alternate after the results have been compared; the
median is reported.  At 10^7 rows and more, MLlib runs once.  Needs the extra `spark` and Java.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyspark
from pyspark.ml.regression import IsotonicRegression
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import staircase_fast as sf
from staircase_fast import spark as sfs

SIZES = (10**6, 3 * 10**6, 10**7, 2 * 10**7)
ROWS_OF_MANY = 10**7  # from here on, MLlib runs once
REPEATS = 3
PARTITIONS = 8


def session() -> SparkSession:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        "spark.driver.memory": "6g",
    }
    builder = SparkSession.builder.master("local[*]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def make_rows(spark: SparkSession, n: int, folder: Path) -> DataFrame:
    rows = spark.range(0, n, 1, PARTITIONS).select(F.randn(1).alias("score"), F.rand(2).alias("uniform"))
    chance = 1 / (1 + F.exp(-F.col("score")))
    path = str(folder / f"{n}.parquet")
    rows.select("score", (F.col("uniform") < chance).cast("double").alias("label")).write.parquet(path)
    return spark.read.parquet(path)


def seconds(call: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    result = call()
    return time.perf_counter() - start, result


def measure(rows: DataFrame, n: int) -> tuple[float, float]:
    """Median seconds of both, in turns."""

    def fit_ours() -> sf.Staircase:
        return sfs.fit(rows, score="score", target="label")

    def fit_mllib() -> Any:
        return IsotonicRegression(featuresCol="score", labelCol="label").fit(rows)

    ours, theirs = [], []
    fit_ours()  # starts the workers
    for turn in range(REPEATS):
        spent, stairs = seconds(fit_ours)
        ours.append(spent)
        if turn == 0 or n < ROWS_OF_MANY:
            spent, model = seconds(fit_mllib)
            theirs.append(spent)
        if turn == 0:
            check(stairs, model, n)
    return statistics.median(ours), statistics.median(theirs)


def check(stairs: sf.Staircase, model: Any, n: int) -> None:
    boundaries, predictions = model.boundaries.toArray(), model.predictions.toArray()
    if not np.allclose(stairs.predict(boundaries), predictions, rtol=1e-9, atol=1e-12):
        sys.exit(f"{n:,} rows: our result and that of MLlib differ")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--most", type=float, metavar="ROWS", default=SIZES[-1], help="default: 2e7")
    parser.add_argument("--output", type=Path, metavar="FILE", help="also write the table to this file")
    given = parser.parse_args()
    spark = session()
    machine = f"{platform.machine()}, {os.cpu_count()} processors"
    versions = f"Python {platform.python_version()}, Spark {pyspark.__version__}"
    lines = [
        f"seconds of a fit of labels in Parquet files; {machine}, {versions}",
        f"{'rows':>12}{'ours':>10}{'MLlib':>10}{'ratio':>8}",
    ]
    print("\n".join(lines), flush=True)
    with tempfile.TemporaryDirectory() as folder:
        for n in SIZES:
            if n <= given.most:
                ours, theirs = measure(make_rows(spark, n, Path(folder)), n)
                lines.append(f"{n:>12,}{ours:>10.2f}{theirs:>10.2f}{theirs / ours:>7.1f}x")
                print(lines[-1], flush=True)
    spark.stop()
    if given.output:
        given.output.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
