"""A proof that a staircase is the optimum, or a bound on what it falls short by."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from staircase_fast.bisection import rounds, solve
from staircase_fast.bisection.solve import Samples
from staircase_fast.certificate import _slope_sums
from staircase_fast.errors import InvalidTypeError
from staircase_fast.inputs.options import check_bounds
from staircase_fast.inputs.rows import read_columns
from staircase_fast.losses import (
    Custom,
    GammaDeviance,
    Logistic,
    LogLoss,
    Loss,
    PoissonDeviance,
    SquaredError,
    TweedieDeviance,
    _losses,
    loss_of,
    units,
)
from staircase_fast.losses.rows import Rows, check_has_derivative, check_parameter_length, check_rows_and_parameters
from staircase_fast.stack.sorting import in_score_order
from staircase_fast.staircase.result import Staircase
from staircase_fast.typing import Bounds, ColumnLike, public_class

_Floats = NDArray[np.float64]
_ULP = 2.0**-52
_ULPS = 4.0  # a value may be off by so many
_INFINITE = 1e289  # slopes are not summed beyond (`_slope_sums.pyx`)
_USUAL, _LARGE = 100, 400  # numbers not below 2 to the one, as they are or inverted, are scaled to 2 to the other
_TINY = 2.0**-1074  # the least float above 0
_NO_PARAMETER = np.zeros(1)


@public_class("staircase_fast")
class Certificate(NamedTuple):
    """What `certify` returns.

    Attributes
    ----------
    optimal : bool
        Whether the staircase is the optimum, but for rounding.
    gap : float
        How much more than the optimum it costs, at most, in units of the sum of weights times losses.
    worst_index : int
        The row where the proof fails by most, or comes closest to failing.

    Examples
    --------
    >>> import staircase_fast as sf
    >>> sf.certify(sf.fit([1, 2], [0, 1]), [1, 2], [0, 1]).optimal
    True
    """

    optimal: bool
    gap: float
    worst_index: int


class _Pieces(NamedTuple):
    """Rows side by side that have one value."""

    starts: NDArray[np.int64]  # and the number of rows
    values: _Floats
    below: _Floats  # values that are as good, but for rounding
    above: _Floats
    joined: NDArray[np.bool_]  # whether the value may as well be that of the piece before


class _Slopes(NamedTuple):
    """Slopes as `_slope_sums.sum_slopes` takes them: what they are the slopes of, and in which units."""

    loss: Loss
    kind: int
    parameters: _Floats
    targets: _Floats
    weights: _Floats
    ends: NDArray[np.uint8]
    target_error: float
    shift: int  # targets were divided by 2 to this, and so must be values
    unit: int  # slopes are to be multiplied by 2 to this


class _Sums(NamedTuple):
    """What `_slope_sums.sum_slopes` finds, per piece."""

    total: _Floats
    doubt: _Floats
    most: _Floats
    excess: _Floats
    row: NDArray[np.int64]


def certify(
    stairs: Staircase,
    scores: ColumnLike,
    targets: ColumnLike,
    *,
    sample_weight: ColumnLike | None = None,
    loss: str | Loss | None = None,
    bounds: Bounds = None,
) -> Certificate:
    """Prove that a staircase is the optimal one of these rows, in time linear in their number once they are sorted.

    It does not matter who made the staircase, or how.  Of its arrays, only `left` and `values` are looked at.

    Parameters
    ----------
    stairs : Staircase
        A row has the value of the last step that starts at or below its score, as `predict` says.  The optimum is
        among staircases that rise if this one is `increasing`, and else among those that fall.
    scores, targets : array_like of shape (n,)
    sample_weight : array_like of shape (n,), optional
        As `fit` takes them.
    loss : str or Loss, optional
        What is to be minimised; that of the staircase, if not given.
    bounds : (lo, hi), optional
        Those that the staircase was to be held within.

    Returns
    -------
    Certificate
        `optimal`, `gap` and `worst_index`.

    Notes
    -----
    A staircase is optimal if, on each step, no first part of the rows would rather be lower and no last part higher:
    slopes of the loss, summed over every first part, must not be above 0, and over every last part not below 0.  At an
    end of the bounds or of the values the loss allows, one of the two is enough.

    `optimal` is judged to rounding, as values are floats: slopes are taken at 4 ulps below and above the value, steps
    that are no farther apart than that may as well be one, and a sum of slopes counts as a fault only if it exceeds its
    own rounding error, which is 8 ulps of each slope and what 2 ulps of z - y change; of slopes that have levelled off,
    which are summed exactly, it is nothing, but an ulp under Huber and quantile losses.  So values that are right to a
    few ulps pass.  `stairs.lower` and `stairs.upper` count for nothing: a proof must not rest on what is to be proved.
    A fit that was stopped early by `tol`, `max_rounds` or `max_seconds` is not optimal in this sense; its `gap` says
    what that costs.

    `gap` is an upper bound, rounding included: the true gap lies between 0 and it.  It is not 0 even for an optimum,
    but of the order of rounding errors.  For a staircase that is far off it can be many times the true gap, and it is
    infinite where the loss is.

    `worst_index` is a row at the end of a first part, or at the beginning of a last part, whose sum of slopes is the
    largest fault; of an optimal staircase, the one that is closest to being one.  If the value of a step is not
    allowed by bounds or loss, or is on the wrong side of the one before, it is a row of the step.

    Thread-safety: inputs are only read; the kernel runs without the GIL.

    Examples
    --------
    >>> import staircase_fast as sf
    >>> scores, targets = [1, 2, 3, 4], [0.0, 3.0, 1.0, 5.0]
    >>> stairs = sf.fit(scores, targets, loss="log_cosh")
    >>> certificate = sf.certify(stairs, scores, targets)
    >>> certificate.optimal, certificate.gap < 1e-12
    (True, True)

    The optimum of another loss is none of this one:

    >>> sf.certify(stairs, scores, targets, loss=sf.losses.Expectile(0.9)).optimal
    False
    """
    if not isinstance(stairs, Staircase):
        raise InvalidTypeError("stairs", "must be a Staircase", value=stairs)
    the_loss = stairs.loss if loss is None else loss_of(loss)
    low, high = check_bounds(bounds)
    low, high = max(low, the_loss.value_range[0]), min(high, the_loss.value_range[1])
    columns = read_columns(scores, targets, sample_weight)
    check_parameter_length(the_loss, len(columns[0]))
    rows, kept = check_rows_and_parameters(*columns, the_loss)
    places = in_score_order(rows._replace(targets=np.arange(len(rows.scores)))).targets
    starts, values = _steps(stairs, rows.scores[places])
    check_has_derivative(kept)
    if kept.per_sample:
        kept = kept.of_rows(places if stairs.increasing else places[::-1])
    samples = _samples(rows, kept, places if stairs.increasing else places[::-1])
    exponent = units.exponent_of(samples.targets, kept)
    samples = solve.in_units(samples, kept, exponent)
    with np.errstate(all="ignore"):  # where a loss is infinite, so is the gap
        ends = np.ldexp([low, high], -exponent)
        optimal, gap, row = _judge(samples, kept, starts, np.ldexp(values, -exponent), (ends[0], ends[1]), exponent)
        gap = float(np.exp2(exponent * _degree(kept)) * gap) if exponent and gap > 0 else gap
    place = int(places[row] if stairs.increasing else places[-1 - row])
    given = place if len(rows.scores) == len(columns[0]) else int(np.flatnonzero(columns[2] > 0)[place])
    return Certificate(optimal, gap, given)


def _steps(stairs: Staircase, scores: NDArray[np.float64]) -> tuple[NDArray[np.int64], _Floats]:
    """Where steps that have rows start, and the number of rows; their values.  Of values that rise."""
    starts = np.concatenate([[0], np.searchsorted(scores, stairs.left[1:]), [len(scores)]]).astype(np.int64)
    values = stairs.values
    if not stairs.increasing:
        starts, values = len(scores) - starts[::-1], values[::-1]
    some = starts[1:] > starts[:-1]
    return np.append(starts[:-1][some], len(scores)), values[some]


def _samples(rows: Rows, loss: Loss, places: NDArray[np.int64]) -> Samples:
    """The rows in this order."""
    x, y, w, p = rows.scores[places], rows.targets[places].astype(np.float64), rows.weights, loss.parameters
    ends = np.append(x[1:] != x[:-1], True).view(np.uint8)
    return Samples(x, y, w[places] if len(w) else w, p, ends[:0] if ends.all() else ends)


def _degree(loss: Loss) -> float:
    """The power of c in l(c z, c y) = c**power l(z, y), of a loss that scales."""
    return {"quantile": 1.0, "power": float(loss.parameters.max())}.get(loss.name, 2.0)


def _judge(
    samples: Samples,
    loss: Loss,
    starts: NDArray[np.int64],
    values: _Floats,
    ends: tuple[float, float],
    exponent: int,
) -> tuple[bool, float, int]:
    """Whether values of steps are the optimum between these ends, the gap, and the worst row.

    Values, targets and ends are divided by 2**exponent; the values were float64 before that.
    """
    within = (values >= loss.value_range[0]) & (values <= loss.value_range[1])
    if not within.all():
        return False, math.inf, int(starts[np.argmin(within)])
    settled, least_ulp = _settled_rows(samples, loss), math.ldexp(_TINY, -exponent)
    pieces = _pieces(starts, values, settled, loss.value_range, least_ulp)
    slopes = _slopes(samples, loss, values)
    sums = _sums(slopes, pieces)
    bound = _gap(samples, loss, slopes, pieces, sums, settled, ends)
    if pieces.joined.any():
        bound = min(bound, _gap_if_joined(samples, loss, slopes, pieces, sums, settled, ends, least_ulp))
        sums = _sums(slopes, pieces, pieces.joined)
    gap = _cost_of_settled(samples, loss, pieces, settled, ends) + bound
    optimal, row = _verdict(pieces, sums, ends)
    return optimal, gap if gap >= 0 else math.inf if math.isnan(gap) else 0.0, row


def _settled_rows(samples: Samples, loss: Loss) -> tuple[int, int]:
    """Rows before the first of these and from the second on want nothing but the least, and the greatest value.

    First rows whose targets all are 0 under a loss for which that is the end of what is possible; the same for 1.  The
    optimum of the others lies off the ends, where losses and natural parameters are infinite.
    """
    y, n = samples.targets, len(samples.targets)
    at_zero, at_one = _ends_of_targets(loss)
    if not at_zero:
        return 0, n
    borders = np.append(0, np.flatnonzero(samples.ends) + 1) if len(samples.ends) else np.arange(n + 1)
    some = int(np.argmax(y > 0)) if y.any() else n
    low = int(borders[np.searchsorted(borders, some, side="right") - 1])
    high = n
    if at_one:
        not_all = np.flatnonzero(y < 1)
        high = int(borders[np.searchsorted(borders, not_all[-1], side="right")]) if len(not_all) else 0
    return low, max(low, high)


def _ends_of_targets(loss: Loss) -> tuple[bool, bool]:
    """Whether targets of 0, and of 1, want a value at which the loss of others is infinite."""
    if isinstance(loss, (LogLoss, Logistic)):
        return True, True
    return isinstance(loss, PoissonDeviance) or (isinstance(loss, TweedieDeviance) and 1 <= loss.power < 2), False


def _pieces(
    starts: NDArray[np.int64],
    values: _Floats,
    settled: tuple[int, int],
    value_range: tuple[float, float],
    least_ulp: float,
) -> _Pieces:
    """Steps, divided where settled rows end or begin."""
    finer = np.union1d(starts, settled)
    step = np.searchsorted(starts, finer[:-1], side="right") - 1
    pieces = _pieces_at(finer, values[step], value_range, least_ulp)
    joined = np.append(False, (step[1:] == step[:-1]) | (pieces.below[1:] <= pieces.above[:-1]))
    return pieces._replace(joined=joined)


def _pieces_at(
    starts: NDArray[np.int64], values: _Floats, value_range: tuple[float, float], least_ulp: float
) -> _Pieces:
    """Pieces with these values, none of which are joined; `least_ulp`: the distance between subnormal values."""
    ulps = np.maximum(np.spacing(np.abs(values)), least_ulp)
    reach = np.where(np.isfinite(values), _ULPS * ulps, 0.0)
    last = np.where(np.isfinite(values), rounds.LAST, np.inf)
    below, above = (np.clip(np.clip(values + way, -last, last), *value_range) for way in (-reach, reach))
    return _Pieces(starts, values, below, above, np.zeros(len(values), dtype=np.bool_))


def _is_natural(loss: Loss) -> bool:
    """Whether slopes are taken with respect to the natural parameter.

    Losses that are least at the mean are convex in that, if not in the value itself, and their slope is value - target.
    """
    return loss.is_mean or isinstance(loss, PoissonDeviance)


def _natural(loss: Loss, z: _Floats) -> _Floats:
    """The natural parameter of values: what has slopes value - target; values themselves under other losses."""
    if isinstance(loss, SquaredError):
        return 2.0 * z
    if isinstance(loss, LogLoss):
        return np.log(z) - np.log1p(-z)
    if isinstance(loss, PoissonDeviance):
        return np.log(z)
    if isinstance(loss, GammaDeviance):
        return -1.0 / z
    if isinstance(loss, TweedieDeviance):
        return 2.0 * (np.log(z) if loss.power == 1 else z ** (1.0 - loss.power) / (1.0 - loss.power))
    return z


def _slopes(samples: Samples, loss: Loss, values: _Floats) -> _Slopes:
    """Slopes in units in which they do not overflow."""
    kind, parameters, y, w = loss.kind, samples.parameters, samples.targets, samples.weights
    shift, unit, error = 0, 0, 0.0
    if _is_natural(loss):
        kind, parameters, unit = SquaredError.kind, _NO_PARAMETER, -1  # its slope is 2 (value - target)
        if not loss.is_mean:
            exposure = np.broadcast_to(samples.parameters, y.shape)
            y, w, error = y / exposure, exposure * w if len(w) else exposure.copy(), 2 * _ULP
        exponent = math.frexp(max(float(np.abs(y).max()), float(np.abs(values).max())))[1]
        if abs(exponent) > _USUAL:
            shift = exponent - _LARGE
            y, unit = np.ldexp(y, -shift), unit + shift
    if len(w):
        exponent = math.frexp(float(w.max()))[1]
        if abs(exponent) > _USUAL:
            w, unit = np.ldexp(w, _LARGE - exponent), unit + exponent - _LARGE
    return _Slopes(loss, kind, parameters, y, w, samples.ends, error, shift, unit)


def _sums(slopes: _Slopes, pieces: _Pieces, joined: NDArray[np.bool_] | None = None) -> tuple[_Sums, _Sums]:
    """Of first parts of pieces, at values just below; of last parts, with the opposite sign, just above."""
    found = []
    joined = np.zeros(len(pieces.values), dtype=np.bool_) if joined is None else joined
    for values, backward in ((pieces.below, False), (pieces.above, True)):
        total, doubt, most, excess = np.empty((4, len(values)))
        sums = _Sums(total, doubt, most, excess, np.empty(len(values), dtype=np.int64))
        at, given, address, user_data = np.ldexp(values, -slopes.shift), np.empty(0), 0, 0
        if isinstance(slopes.loss, Custom):
            if slopes.loss.compiled is not None:
                address, user_data = slopes.loss.compiled[1:3]
            else:
                given, _ = slopes.loss.slopes(np.repeat(at, np.diff(pieces.starts)), slopes.targets)
        _slope_sums.sum_slopes(
            slopes.kind, slopes.parameters, address, user_data, given, *slopes[3:7], pieces.starts, at,
            joined.view(np.uint8), backward, total, doubt, most, excess, sums.row,
        )  # fmt: skip
        found.append(sums)
    return found[0], found[1]


def _verdict(pieces: _Pieces, sums: tuple[_Sums, _Sums], ends: tuple[float, float]) -> tuple[bool, int]:
    """Whether no first part would rather be lower, nor a last part higher; the row where that holds least."""
    z = pieces.values
    wrong = (z < ends[0]) | (z > ends[1]) | np.append(False, z[1:] < z[:-1])  # a step may be two pieces
    if wrong.any():
        return False, int(pieces.starts[np.argmax(wrong)])
    first = np.flatnonzero(~pieces.joined)
    sizes = np.diff(np.append(first, len(pieces.values)))
    at_low, at_high = (
        np.repeat(np.logical_or.reduceat(at_end, first), sizes)
        for at_end in (pieces.values <= ends[0], pieces.values >= ends[1])
    )
    low, high = sums
    excess = np.concatenate([np.where(at_low, -np.inf, low.excess), np.where(at_high, -np.inf, high.excess)])
    worst = int(np.argmax(excess))
    return bool(excess[worst] <= 0), int(np.concatenate([low.row, high.row])[worst])


def _cost_of_settled(
    samples: Samples, loss: Loss, pieces: _Pieces, settled: tuple[int, int], ends: tuple[float, float]
) -> float:
    """How much more settled rows cost than they do at the ends, where they want to be."""
    costs = 0.0
    per_row = np.repeat(pieces.values, np.diff(pieces.starts))
    for part, end in ((slice(0, settled[0]), ends[0]), (slice(settled[1], None), ends[1])):
        y, z = samples.targets[part], per_row[part]
        p = samples.parameters[part] if len(samples.parameters) > 1 else samples.parameters
        off = np.flatnonzero(z != end)
        if not len(off):
            continue
        here, there = np.empty((2, len(off)))
        p, y = p[off] if len(p) > 1 else p, y[off]
        _losses.values(loss.kind, p, z[off], y, here)
        _losses.values(loss.kind, p, np.full(len(off), end), y, there)
        more = (here - there) + 8 * _ULP * (np.abs(here) + np.abs(there))
        costs += float(np.sum(more * samples.weights[part][off] if len(samples.weights) else more)) * (1 + 1e-9)
    return costs


def _box(
    samples: Samples, loss: Loss, slopes: _Slopes, settled: tuple[int, int], ends: tuple[float, float]
) -> tuple[float, float]:
    """Natural parameters, or values, between which the optimum of rows that are not settled lies."""
    if isinstance(loss, Custom):
        run = solve.runs_in_domain(samples, loss)[0]
        return (float(run["lo"]), float(run["hi"])) if not run["untested"] else (-math.inf, math.inf)
    part = slice(*settled)
    lowest, highest = _natural(loss, np.array(ends))
    y = slopes.targets[part]
    w = slopes.weights[part] if len(slopes.weights) else np.ones(len(y))
    borders = np.flatnonzero(slopes.ends[part]) if len(slopes.ends) else np.arange(len(y))
    if isinstance(loss, (LogLoss, Logistic)):
        # of the first block of the optimum, the mean is at least this, and of the last one, at most 1 less this
        y = samples.targets[part]
        first = _least_mean(y, w, borders)
        last = _least_mean(1.0 - y[::-1], w[::-1], len(y) - 2 - np.append(borders[:-1][::-1], -1))
        low, high = (sign * float(np.log(mean) - np.log1p(-mean) - 1e-9) for sign, mean in ((1, first), (-1, last)))
        if isinstance(loss, Logistic):
            offset = samples.parameters[part] if len(samples.parameters) > 1 else samples.parameters
            low, high = low - float(offset.max()), high - float(offset.min())
    else:
        least = _least_mean(y, w, borders) if loss.target_range[0] >= 0 else float(y.min())
        error = 2 * slopes.target_error
        box = np.ldexp(np.array([least * (1 - error), y.max() * (1 + error)]), slopes.shift)
        low, high = _natural(loss, np.clip(box, *loss.value_range))
    low, high = np.clip([low, high], lowest, highest)
    return float(low), float(high)


def _least_mean(y: _Floats, w: _Floats, borders: NDArray[np.int64]) -> float:
    """The least mean of first rows up to one of these, or a little less; targets are not below 0."""
    means = np.cumsum(w * y)[borders] / np.cumsum(w)[borders]
    return float(means.min()) * (1 - 4 * (len(y) + 4) * _ULP)


def _gap(
    samples: Samples,
    loss: Loss,
    slopes: _Slopes,
    pieces: _Pieces,
    sums: tuple[_Sums, _Sums],
    settled: tuple[int, int],
    ends: tuple[float, float],
) -> float:
    """How much more rows that are not settled cost than their optimum, at most.

    With slopes g between those just below and just above the values z, no u costs less than z by more than the sum of
    g (z - u), and some ulps.  Of all u that rise between A and B, the sum is largest for one that is A up to some row
    and B from there on.  On a piece of value z whose slopes sum to T, and to G up to that row, it is
    G (z - A) + (T - G) (z - B); slopes are chosen such that T is 0 if it can be, and G as low as can be.
    """
    inside = (pieces.starts[:-1] >= settled[0]) & (pieces.starts[1:] <= settled[1])
    if not inside.any():
        return 0.0
    z, below, above = (_natural(loss, column[inside]) for column in pieces[1:4])
    low, high = (_Sums(one[0][inside], one[1][inside], one[2][inside], one[3], one[4]) for one in sums)
    A, B = _box(samples, loss, slopes, settled, ends)
    if not (np.isfinite(z).all() and math.isfinite(A) and math.isfinite(B)):
        return math.inf
    if max(low.most.max(), high.most.max()) >= _INFINITE:
        return math.inf
    at_low, at_high = z <= A, (z >= B) & (z > A)
    total_low = np.minimum(0.0, -high.total - high.doubt)
    total_high = np.maximum(0.0, low.total + low.doubt)
    for at_end, total, doubt in ((at_low, -high.total, high.doubt), (at_high, low.total, low.doubt)):
        total_low, total_high = np.where(at_end, total - doubt, total_low), np.where(at_end, total + doubt, total_high)
    # positions are right to some ulps
    error = 8 * _ULP * (np.abs(z) + abs(A) + abs(B)) * np.maximum(np.abs(total_low), np.abs(total_high))
    if_low, if_high = (np.maximum(total_low * (z - end), total_high * (z - end)) + error * (z != end) for end in (A, B))
    width = (B - A) + 8 * _ULP * (abs(A) + abs(B))
    most = np.where(at_low, high.most, np.where(at_high, low.most, np.maximum(low.most, total_high + high.most)))
    divided = width * most + np.where(at_low, if_low, if_high)
    before, after = np.cumsum(if_low) - if_low, np.cumsum(if_high[::-1])[::-1] - if_high
    rounding = 8 * _ULP * (len(z) + 4) * float(np.sum(np.abs(if_low) + np.abs(if_high)) + divided.max())
    # slopes are those of values some ulps away
    spread = np.maximum(-high.total - low.total, 0.0) + low.doubt + high.doubt
    rounding += float(np.sum(spread * np.maximum(above - z, z - below))) * (1 + 1e-9)
    return float(np.ldexp(max(float((before + divided + after).max()), 0.0) + rounding, slopes.unit))


def _gap_if_joined(
    samples: Samples,
    loss: Loss,
    slopes: _Slopes,
    pieces: _Pieces,
    sums: tuple[_Sums, _Sums],
    settled: tuple[int, int],
    ends: tuple[float, float],
    least_ulp: float,
) -> float:
    """The same bound by way of a staircase whose neighbouring steps of nearly equal values are one.

    Steps whose values differ only by rounding violate the conditions by themselves, but not together.  The staircase
    costs at most as much more than the joined one as the slopes at its values allow.
    """
    inside = (pieces.starts[:-1] >= settled[0]) & (pieces.starts[1:] <= settled[1])
    joined = pieces.joined & inside & np.append(False, inside[:-1])
    first = np.flatnonzero(~joined)
    group = np.cumsum(~joined) - 1
    last = np.append(first[1:], len(joined)) - 1
    values = 0.5 * pieces.values[first] + 0.5 * pieces.values[last]
    values = np.where(first == last, pieces.values[first], values)
    whole = _pieces_at(np.append(pieces.starts[first], pieces.starts[-1]), values, loss.value_range, least_ulp)
    low, high = sums
    moves = _natural(loss, pieces.values) - _natural(loss, whole.values[group])
    totals = np.maximum(np.abs(low.total) + low.doubt, np.abs(high.total) + high.doubt)
    moved = np.where(whole.values[group] == pieces.values, 0.0, totals * np.abs(moves))[inside]
    cost = float(np.ldexp(np.sum(moved) * (1 + 1e-9) + np.sum(moved > 0) * 5e-324, slopes.unit))
    return cost + _gap(samples, loss, slopes, whole, _sums(slopes, whole), settled, ends)
