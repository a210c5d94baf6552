"""Judges what `reliability` is given; the home of its messages."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from staircase_fast.arithmetic.exact import extent_of
from staircase_fast.errors import InvalidInputError, InvalidTypeError, refuse_entries
from staircase_fast.inputs.options import check_choice, check_function, check_number
from staircase_fast.inputs.rows import Columns, check_no_nan
from staircase_fast.losses import BY_NAME, Loss, SquaredError, loss_of
from staircase_fast.losses.parameters import range_text
from staircase_fast.losses.rows import check_targets

Progress = Callable[[int, int], object]


class Brier(SquaredError):  # noqa: N818  (it is no exception)
    """The squared error of probabilities."""

    name = "brier"
    target_range = value_range = (0.0, 1.0)


class Plan(NamedTuple):
    """How bands are to be made."""

    kind: str
    n_resamples: int
    level: float
    seed: np.random.SeedSequence
    progress: bool | Progress


def score_of(given: object) -> Loss:
    """The loss that scores forecasts, by object or by name."""
    if isinstance(given, str) and given == Brier.name:
        return Brier()
    if isinstance(given, str) and given not in BY_NAME:
        allowed = ", ".join(map(repr, (Brier.name, *BY_NAME)))
        raise InvalidInputError("score", f"must be one of {allowed}", value=given)
    loss = loss_of(given, "score")
    if not loss.has_values:
        raise InvalidTypeError("score", "must be a loss whose values are known", value=loss)
    return loss


def forecasts(columns: Columns, loss: Loss, n_threads: int) -> tuple[float, float]:
    """Refuse forecasts that make no sense to the loss; return the least and the greatest that are finite."""
    x, y = columns[0], columns[1]
    extent = extent_of(x, n_threads)
    lowest, highest = extent.lowest, extent.highest
    if extent.first_bad >= 0:
        check_no_nan("scores", x, n_threads)
        if not loss.allows_infinite_values:
            refuse_entries("scores", "must be finite", x, ~np.isfinite(x))
        finite = x[np.isfinite(x)]
        lowest, highest = (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 0.0)
    low, high = loss.value_range
    if lowest < low or highest > high:
        within = f"must be {range_text(low, high)} for {loss.name}"
        refuse_entries("scores", within, x, (x < low) | (x > high))
    if isinstance(loss, Brier):  # the fit knows it as a squared error, which takes any targets
        check_targets("targets", y, extent_of(y, n_threads), loss)
    return lowest, highest


def finite_scores(*means: float) -> None:
    """Refuse targets whose losses, even under the best forecasts, are beyond all numbers."""
    if not all(np.isfinite(means)):
        raise ValueError("`targets` must be such that float64 holds the mean loss of the best forecasts.")


def plan(bands: object, n_resamples: object, level: object, seed: Any, progress: object, loss: Loss) -> Plan | None:
    """Judge how bands are to be made; None if none are asked for."""
    if bands is None:
        return None
    kind = check_choice("bands", bands, ("confidence", "consistency"))
    if kind == "consistency":
        consistency(loss)
    try:
        n = operator.index(n_resamples)  # type: ignore[arg-type]
    except TypeError:
        raise TypeError(f"`n_resamples` must be an integer >= 1; got {n_resamples!r}.") from None
    if n < 1 or isinstance(n_resamples, bool):
        raise ValueError(f"`n_resamples` must be an integer >= 1; got {n_resamples!r}.")
    share = check_number("level", level)
    if not 0 < share < 1:
        raise ValueError(f"`level` must be > 0 and < 1; got {level!r}.")
    try:
        sequence = seed if isinstance(seed, np.random.SeedSequence) else np.random.SeedSequence(seed)
    except (TypeError, ValueError):
        raise TypeError(f"`seed` must be None, an integer >= 0 or a numpy SeedSequence; got {seed!r}.") from None
    if progress is None or isinstance(progress, bool):
        return Plan(kind, n, share, sequence, bool(progress))
    return Plan(kind, n, share, sequence, check_function("progress", progress))


def consistency(loss: Loss) -> None:
    """Refuse bands of labels drawn from forecasts where those are no probabilities."""
    if not loss.is_mean or loss.value_range != (0.0, 1.0):
        raise ValueError(f"`bands` must be 'confidence' or None for {loss.name}; got 'consistency'.")


def labels(targets: NDArray[np.float64]) -> None:
    """Refuse the same where targets are no labels."""
    other = (targets != 0) & (targets != 1)
    if other.any():
        raise ValueError(
            "`bands` must be 'confidence' or None where `targets` are not all 0 or 1; "
            f"got 'consistency' and {targets[other][0]}."
        )


def few_enough(n: int) -> None:
    """Refuse more rows than kernels can count."""
    if n >= 2**32:
        raise ValueError(f"`bands` must be None for 2**32 rows or more; got {n} rows.")
