"""How reliable forecasts are: the CORP curve, the parts of their mean score, bands around them."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, Literal

import numpy as np

from staircase_fast import threads
from staircase_fast.bisection import solve
from staircase_fast.calibration import decomposition
from staircase_fast.calibration import reliability_checks as judge
from staircase_fast.calibration.bands import Bands, make_bands
from staircase_fast.calibration.decomposition import Histogram
from staircase_fast.fitting import of_columns
from staircase_fast.inputs.rows import Columns, read_columns
from staircase_fast.losses import Loss, SquaredError
from staircase_fast.losses.rows import check_parameter_length
from staircase_fast.stack.sorted_rows import UNBOUNDED
from staircase_fast.staircase.result import Staircase
from staircase_fast.storage import documents
from staircase_fast.typing import Axes, ColumnLike, public_class


@public_class("staircase_fast")
@dataclass(frozen=True, repr=False, eq=False)
class Reliability:
    """What `reliability` returns.

    Attributes
    ----------
    stairs : Staircase
        The CORP curve: the staircase that recalibrates the forecasts best.
    score : str or Loss
        What forecasts were scored by: "brier", or a loss.
    n_samples : int
        Rows of weight > 0.
    mean_score : float
        The mean score of the forecasts; the less, the better.  It is miscalibration - discrimination + uncertainty.
    miscalibration : float
        How much the mean score falls by recalibration: 0 for calibrated forecasts.
    discrimination : float
        How much better recalibrated forecasts are than the best constant: 0 if they tell nothing.
    uncertainty : float
        The mean score of the best constant: how hard the targets are to forecast.
    calibration_error : float
        The expected calibration error: how far forecasts are from recalibrated ones on average.
    histogram : Histogram
        `counts` of forecasts, or their total weight, between `edges`.
    bands : Bands or None
        `x`, `lower` and `upper` of resampled curves, if they were asked for.

    Notes
    -----
    Thread-safety: it does not change, and may be used by any number of threads at once.

    Examples
    --------
    >>> import staircase_fast as sf
    >>> found = sf.reliability([0.25, 0.5, 0.5, 0.75], [0, 0, 1, 1])
    >>> found.miscalibration, found.discrimination, found.uncertainty
    (0.03125, 0.125, 0.25)
    """

    stairs: Staircase
    score: str | Loss
    n_samples: int
    mean_score: float
    miscalibration: float
    discrimination: float
    uncertainty: float
    calibration_error: float
    histogram: Histogram
    bands: Bands | None = None

    @property
    def mcb(self) -> float:
        """Short for `miscalibration`."""
        return self.miscalibration

    @property
    def dsc(self) -> float:
        """Short for `discrimination`."""
        return self.discrimination

    @property
    def unc(self) -> float:
        """Short for `uncertainty`."""
        return self.uncertainty

    @property
    def score_name(self) -> str:
        """The name of the score."""
        return self.score if isinstance(self.score, str) else self.score.name

    def plot(
        self, ax: Axes | None = None, *, histogram: bool = True, numbers: bool = True, color: str | None = None
    ) -> Axes:
        """Draw a reliability diagram; needs matplotlib, the extra [plot].

        The curve is thick where there are forecasts, and thin between them.  Below it is a histogram of forecasts, in a
        corner the mean score and its parts.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; by default in a new figure.
        histogram, numbers : bool, default True
            Whether to draw these.
        color : str, optional
            The colour of the curve.

        Returns
        -------
        matplotlib Axes
            Its artists have labels: `ax.legend()` shows what is what.

        Examples
        --------
        >>> import staircase_fast as sf
        >>> ax = sf.reliability([0.4, 0.3, 0.2, 0.1, 0.5, 0.9], [0, 0, 0, 1, 1, 1]).plot(histogram=False)
        >>> ax.get_legend_handles_labels()[1]
        ['calibrated', 'recalibrated']
        """
        from staircase_fast.calibration.plots import draw_reliability

        return draw_reliability(self, ax, histogram=histogram, numbers=numbers, color=color)

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain Python that JSON can hold; what is infinite is "inf", as in files of staircases.

        Examples
        --------
        >>> import json
        >>> import staircase_fast as sf
        >>> found = sf.reliability([0.0, 0.5, 0.5], [1, 0, 1], score="log")
        >>> found.mean_score, found.to_dict()["mean_score"]
        (inf, 'inf')
        >>> sorted(json.loads(json.dumps(found.to_dict())))[:3]
        ['bands', 'calibration_error', 'discrimination']
        """
        found: dict[str, Any] = {}
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, Staircase):
                value = json.loads(value.to_json())
            elif isinstance(value, Loss):
                value = documents.plain_loss(value)
            elif isinstance(value, float):
                value = documents.plain_numbers([value])[0]
            elif isinstance(value, tuple):
                value = {
                    name: documents.plain_numbers(part.tolist()) if isinstance(part, np.ndarray) else part
                    for name, part in value._asdict().items()  # type: ignore[attr-defined]
                }
            found[field.name] = value
        return found

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Reliability):
            return NotImplemented
        mine, theirs = self.to_dict(), other.to_dict()
        # of a staircase, JSON may or may not have bounds that are the values themselves
        return (mine | {"stairs": None}) == (theirs | {"stairs": None}) and self.stairs == other.stairs

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return (
            f"<Reliability: {self.score_name} {self.mean_score:.6g} = miscalibration {self.miscalibration:.6g} - "
            f"discrimination {self.discrimination:.6g} + uncertainty {self.uncertainty:.6g}; "
            f"calibration error {self.calibration_error:.6g}, {self.n_samples} rows>"
        )


def reliability(
    scores: ColumnLike,
    targets: ColumnLike,
    *,
    sample_weight: ColumnLike | None = None,
    score: str | Loss = "brier",
    bands: Literal["confidence", "consistency"] | None = None,
    n_resamples: int = 1000,
    level: float = 0.9,
    seed: int | np.random.SeedSequence | None = None,
    progress: bool | Callable[[int, int], object] | None = None,
    n_threads: int | None = None,
) -> Reliability:
    """Tell how reliable forecasts are: the CORP reliability curve, and what their mean score is made of.

    The curve is the staircase that recalibrates the forecasts best.  It shows what happened where something was
    forecast, without bins to choose.  The mean score of the forecasts is

        mean_score = miscalibration - discrimination + uncertainty

    with miscalibration: how much it falls by recalibration; discrimination: how much better recalibrated forecasts are
    than the best constant; uncertainty: the mean score of that.  The first two are never negative.

    Parameters
    ----------
    scores : array_like of shape (n,)
        Forecasts: probabilities, or for other scores any values that the loss allows.
    targets : array_like of shape (n,)
        What happened: labels 0 and 1, or any targets that the loss allows.
    sample_weight : array_like of shape (n,), optional
        Weights >= 0; a row of weight 0 is absent.
    score : str or Loss, default "brier"
        "brier" (the squared error of probabilities), "log", or any other loss of `staircase_fast.losses` that says what
        values cost, by name or as an object.  A log loss is infinite where what was impossible happened.
    bands : {"confidence", "consistency"}, optional
        "confidence": bands around the curve, from rows drawn with replacement.  "consistency": bands around the
        diagonal, in which the curve of calibrated forecasts would lie: labels are drawn that are 1 by the chance that
        was forecast.  Only for probabilities and labels 0 and 1.
    n_resamples : int, default 1000
        How many times rows or labels are drawn.
    level : float, default 0.9
        The share of drawn curves between the bands, at each score by itself.
    seed : int or numpy SeedSequence, optional
        The same seed gives the same bands; none, others each time.
    progress : callable or bool, optional
        `progress(done, total)` is called now and then by the thread that waits.  True: a bar on stderr, by tqdm.
    n_threads : int, optional
        How many threads may be used, for this call alone; see `set_num_threads`.  The result is the same.

    Returns
    -------
    Reliability
        `stairs`, `mean_score`, `miscalibration`, `discrimination`, `uncertainty`, `calibration_error`, `histogram`,
        `bands`, and `plot()`.

    Notes
    -----
    Numbers are right to rounding.  The curve is exact, as `fit` makes it.

    Bands are quantiles of drawn curves, at 512 scores spread evenly over the rows and at both ends of up to 512 steps.
    As many rows are drawn as there are of weight > 0, each as likely as the others; a row that is drawn brings its
    weight along.  What is drawn is exactly multinomial.  For "consistency", forecasts and weights stay as they are.
    Each resample has a random state of its own, made from the seed and its number.  Means take a few nanoseconds per
    row and resample; other losses, and weights or targets more than 300 decimal orders apart, as long as a fit.

    Thread-safety: inputs are only read; the kernels run without the GIL.  Ctrl-C stops between two resamples.

    References
    ----------
    T. Dimitriadis, T. Gneiting, A. I. Jordan, "Stable reliability diagrams for probabilistic classifiers", 2021.

    Examples
    --------
    >>> import staircase_fast as sf
    >>> labels, forecasts = [0, 0, 0, 1, 1, 1], [0.4, 0.3, 0.2, 0.1, 0.5, 0.9]
    >>> found = sf.reliability(forecasts, labels)
    >>> found
    <Reliability: brier 0.226667 = miscalibration 0.101667 - discrimination 0.125 + uncertainty 0.25;
    calibration error 0.166667, 6 rows>
    >>> found.stairs.values
    array([0.25, 1.  ])
    >>> round(sf.reliability(forecasts, labels, score="log").mcb, 7)
    0.3237327
    >>> found = sf.reliability(forecasts, labels, bands="consistency", seed=0)
    >>> found.bands.x, found.bands.lower
    (array([0.1, 0.2, 0.3, 0.4, 0.5, 0.9]), array([0. , 0. , 0. , 0. , 0. , 0.5]))

    `found.plot()` draws it.
    """
    loss = judge.score_of(score)
    plan = judge.plan(bands, n_resamples, level, seed, progress, loss)
    columns = read_columns(scores, targets, sample_weight)
    n = len(columns[0])
    check_parameter_length(loss, n)
    workers = threads.num_threads(n_threads, n)
    ends = judge.forecasts(columns, loss, workers)
    if loss.value_range == (0.0, 1.0):
        ends = 0.0, 1.0
    fitted: Loss = SquaredError() if isinstance(loss, judge.Brier) else loss
    stairs = _fitted(columns, fitted, workers)
    constant = stairs if stairs.n_steps == 1 else _fitted((np.zeros(n), *columns[1:]), fitted, workers)
    parts, histogram = decomposition.decompose(columns, loss, stairs, float(constant.values[0]), ends, workers)
    found = None
    if plan is not None:
        # rows are resampled many times: fewer of them are worth a thread
        found = make_bands(columns, loss, stairs, plan, threads.num_threads(n_threads, 64 * n))
    name = loss.name if isinstance(loss, judge.Brier) else loss
    return Reliability(stairs, name, int(stairs.counts.sum()), *parts, histogram, found)


def _fitted(columns: Columns, loss: Loss, workers: int) -> Staircase:
    """The staircase of columns; to ask for no bounds at all is to ask for infinite log-odds too."""
    return of_columns(columns, loss, True, UNBOUNDED, solve.Budget(n_threads=workers), workers)
