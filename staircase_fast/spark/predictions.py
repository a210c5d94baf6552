"""`predict`: a staircase as a column of a Spark DataFrame."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable
from typing import Literal

import numpy as np
import pandas as pd
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from staircase_fast.errors import InvalidInputError, InvalidTypeError
from staircase_fast.inputs.options import check_choice, check_interpolation
from staircase_fast.staircase.result import Staircase
from staircase_fast.staircase.sql_case import FEW_PIECES
from staircase_fast.staircase.sql_dialects import DIALECTS, name_of
from staircase_fast.typing import Interpolation, OutOfBounds


def predict(
    stairs: Staircase,
    df: DataFrame,
    score: str | Column,
    output: str = "calibrated",
    *,
    interpolation: Interpolation = "step",
    out_of_bounds: Literal["clip", "nan"] = "clip",
) -> DataFrame:
    """Add the values of a staircase to a DataFrame.

    The values are those of `stairs.predict`.

    Parameters
    ----------
    stairs : Staircase
    df : DataFrame
    score : str or Column
        The column of scores.
    output : str, default "calibrated"
        Name of the new column.  It replaces a column of the same name.
    interpolation : {"step", "linear", "centered"}, default "step"
        As in `Staircase.predict`.
    out_of_bounds : {"clip", "nan"}, default "clip"
        For scores outside the fitted range: the value of the nearest step, or NaN.

    Returns
    -------
    DataFrame
        Lazy: values are computed when Spark needs them.  Scores that are null or NaN get null or NaN.

    Notes
    -----
    A few steps become an expression of Spark SQL, which needs no Python on the executors.  More steps are evaluated in
    Python, in batches of Arrow columns.

    Examples
    --------
    >>> from staircase_fast import spark as sfs
    >>> scored = sfs.predict(stairs, df, score="score")  # doctest: +SKIP
    """
    if not isinstance(stairs, Staircase):
        raise InvalidTypeError("stairs", "must be a Staircase", value=stairs)
    if not isinstance(df, DataFrame):
        raise InvalidTypeError("df", "must be a Spark DataFrame", value=df)
    if not isinstance(score, (str, Column)):
        raise InvalidTypeError("score", "must be the name of a column, or a Column", value=score)
    if not isinstance(output, str):
        raise InvalidTypeError("output", "must be the name of the new column", value=output)
    return with_values(
        df, stairs, F.col(score) if isinstance(score, str) else score, output, interpolation, out_of_bounds
    )


def with_values(
    df: DataFrame,
    stairs: Staircase,
    scores: Column,
    output: str,
    interpolation: Interpolation,
    out_of_bounds: Literal["clip", "nan"] = "clip",
) -> DataFrame:
    """The DataFrame with the values in the column `output`, which holds the scores first."""
    check_interpolation(interpolation)
    check_choice("out_of_bounds", out_of_bounds, ("clip", "nan"))
    found = F.col(name_of("output", output, DIALECTS["spark"]))
    expression = ""
    if stairs.n_steps <= FEW_PIECES:
        with contextlib.suppress(InvalidInputError):  # a line without a finite slope
            expression = stairs.to_sql(
                output, dialect="spark", interpolation=interpolation, out_of_bounds=out_of_bounds
            )
    values = F.expr(expression) if expression else _by_python(stairs, interpolation, out_of_bounds)(found)
    values = F.when(found.isNotNull(), F.coalesce(values, F.lit(math.nan)))  # both have null for NaN
    return df.withColumn(output, scores.cast("double")).withColumn(output, values)


def _by_python(
    stairs: Staircase, interpolation: Interpolation, out_of_bounds: OutOfBounds
) -> Callable[[Column], Column]:
    """A function of Arrow batches.  Spark broadcasts large functions, and so the staircase."""

    def values(column: pd.Series) -> pd.Series:
        given = column.to_numpy(dtype=np.float64, na_value=math.nan)
        known = ~np.isnan(given)
        found = np.full(len(given), np.nan)
        found[known] = stairs.predict(
            given[known], interpolation=interpolation, out_of_bounds=out_of_bounds, n_threads=1
        )
        return pd.Series(found)

    return F.pandas_udf(values, "double")
