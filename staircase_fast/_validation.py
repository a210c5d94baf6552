"""The only module that looks at user input, and the home of every message about it.

What holds numbers is made an array by `_columns.py`, which has the messages about that.  A message says what must hold,
and names the argument, the value and the index.  Nothing here changes its input.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from staircase_fast import units
from staircase_fast._columns import Column, _array, _column, _float_column, _refuse, reading
from staircase_fast.exact import LABELS, UNIT_WEIGHTS, Extent, Order, extent_of, order_of, summary_of
from staircase_fast.typing import ColumnLike

if TYPE_CHECKING:
    from staircase_fast.losses import Loss

Columns = tuple[Column, Column, Column]  # scores, targets, weights
_NO_WEIGHTS = np.empty(0)
_NO_BORDERS = np.empty(0, dtype=np.int64)
_GLANCE = 1024


class Rows(NamedTuple):
    """Clean rows: columns of one length >= 1, without rows of weight 0."""

    scores: Column
    targets: Column
    weights: Column  # float64, or empty where all are 1
    targets_extent: Extent
    weights_extent: Extent
    order: Order
    buckets: NDArray[np.float64] | None = None  # of a Summary


def columns(scores: ColumnLike, targets: ColumnLike, sample_weight: ColumnLike | None) -> Columns:
    """Judge the form of what `fit` was given: numbers, in columns of one length >= 1."""
    x = _float_column("scores", scores)
    y = _column("targets", targets)
    _same_length("scores", x, "targets", y)
    if len(x) == 0:
        raise ValueError("`scores` must have at least one row; got none.")
    return x, y, weight_column("sample_weight", sample_weight, "scores", x)


def copied(given: Columns) -> Columns:
    """Columns whose targets and weights nobody else can change.

    For work that reads these many times, and takes far longer than a copy; scores are only read until rows are sorted.
    """
    x, y, w = given
    return x, y.copy(), w.copy()


_FIT_NAMES = ("targets", "sample_weight")


def rows(x: Column, y: Column, w: Column, loss: Loss, n_threads: int, names: tuple[str, str] = _FIT_NAMES) -> Rows:
    """Judge the entries of such columns; `names` are what the caller calls targets and weights."""
    order = order_of(x, n_threads)
    not_nan("scores", x, order.first_nan)
    if order.sign and not order.tied:
        buckets, y_extent, w_extent = summary_of(y, w, n_threads)
    else:
        w_extent = extent_of(w, n_threads) if len(w) else UNIT_WEIGHTS
        buckets, y_extent = None, extent_of(y, n_threads)
    present = judge_weights(names[1], w, w_extent)
    judge_targets(names[0], y, y_extent, loss)
    if present is not None:
        x, y, w, buckets = x[present], y[present], w[present], None
    return Rows(x, y, w, y_extent, w_extent, order, buckets)


def rows_of_losses(
    x: Column, y: Column, w: Column, loss: Loss, names: tuple[str, str] = _FIT_NAMES
) -> tuple[Rows, Loss]:
    """The same, and the loss, whose parameters may be of single rows: those of weight 0 are absent."""
    found = rows(x, y, w, loss, 1, names)
    if loss.by_rounds:
        units.check_spans(y, w, (found.targets_extent, found.weights_extent), loss, names)
    if loss.per_sample and len(found.scores) < len(x):
        loss = loss.of_rows(w > 0)
    return found, loss


def labels_at_a_glance(x: Column, y: Column, w: Column, loss: Loss) -> Rows | None:
    """Rows that look like labels of unsorted scores, without weights, from the first ones; None if they do not.

    Whoever scans them all must make sure.
    """
    if not look_like_labels(y, w, loss):
        return None
    order = order_of(x[:_GLANCE], 1)
    return Rows(x, y, w, LABELS, UNIT_WEIGHTS, order) if order.sign == 0 and order.first_nan < 0 else None


def look_like_labels(y: Column, w: Column, loss: Loss) -> bool:
    """Whether the first targets are labels that the loss allows, and there are no weights."""
    low, high = loss.target_range
    first = y[:_GLANCE]
    return not len(w) and low <= 0 and high >= 1 and bool(np.all((first == 0) | (first == 1)))


def target_column(name: str, values: ColumnLike) -> Column:
    """Targets alone, as `isotonic_regression` takes them."""
    y = _column(name, values)
    if len(y) == 0:
        raise ValueError(f"`{name}` must have at least one row; got none.")
    return y


def score_column(name: str, values: ColumnLike) -> Column:
    """Scores as a float column: real or infinite, not NaN."""
    x = _float_column(name, values)
    no_nan(name, x, n_threads=1)
    return x


def weight_column(name: str, values: ColumnLike | None, rows_name: str, like: Column) -> Column:
    """Weights as float64, one per row; none where none are given."""
    if values is None:
        return _NO_WEIGHTS
    w = _column(name, values).astype(np.float64, copy=False)
    _same_length(rows_name, like, name, w)
    return w


def judge_weights(name: str, w: Column, extent: Extent) -> NDArray[np.bool_] | None:
    """Refuse bad weights; return which rows are present (None: all of them)."""
    _judge_each_weight(name, w, extent)
    if extent.highest == 0:
        raise ValueError(f"`{name}` must have an entry > 0; all {len(w)} are zero.")
    if len(w) * extent.highest == math.inf:
        _finite_total(name, w)
    if extent.lowest != 0:
        return None
    present = w > 0
    if not present.any():  # the weights changed since the extent was found
        raise ValueError(f"`{name}` must have an entry > 0; all {len(w)} are zero.")
    return present


def _judge_each_weight(name: str, w: Column, extent: Extent) -> None:
    if extent.first_bad >= 0:
        _refuse(name, "be finite", w, ~np.isfinite(w))
    if extent.lowest < 0:
        _refuse(name, "be >= 0", w, w < 0)


def judge_targets(name: str, y: Column, extent: Extent, loss: Loss) -> None:
    """Refuse targets that are not finite or make no sense to the loss."""
    if extent.first_bad >= 0:
        _refuse(name, "be finite", y, ~np.isfinite(y))
    low, high = loss.target_range
    if extent.lowest < low or extent.highest > high:
        _refuse(name, f"be {_range_text(low, high)} for {loss.name}", y, (y < low) | (y > high))


def _range_text(low: float, high: float) -> str:
    """What numbers between these, which may be next to 0 or 1, are said to be."""
    if high == math.inf:
        return "> 0" if 0 < low < 1e-300 else "> 1" if 1 < low < 1.1 else f">= {low:g}"
    return f"> {low:.0f} and < {high:.0f}" if 0 < low < 1e-300 else f"in [{low:g}, {high:g}]"


def unknown_loss(given: object, names: Iterable[str], argument: str) -> NoReturn:
    """Refuse what is neither a loss nor the name of one."""
    if isinstance(given, str):
        raise ValueError(f"`{argument}` must be one of {', '.join(map(repr, names))}; got {given!r}.")
    hint = "; a class is called, as in Huber(1.5), a function goes in Custom(derivative)" if callable(given) else ""
    raise TypeError(f"`{argument}` must be a name or a loss object; got {given!r}{hint}.")


def not_a_staircase(given: object) -> NoReturn:
    """Refuse what is to be a staircase and is none."""
    raise TypeError(f"`stairs` must be a Staircase; got {given!r}.")


def unnamed_parameter(loss: type[Loss], argument: str) -> NoReturn:
    """Refuse a loss by name that does not say its parameter."""
    called = f"losses.{loss.__name__}({loss.parameter})"
    raise ValueError(f"`{argument}` must say its {loss.parameter}: {called}; got {loss.name!r}.")


def loss_parameter(name: str, given: ColumnLike, low: float, high: float) -> float | NDArray[np.float64]:
    """A parameter of a loss: a finite number in this range, or a column of them, of our own."""
    array = _array(name, given)
    if array.ndim > 1 or array.size == 0:
        raise ValueError(f"`{name}` must be a number, or one per sample; got shape {array.shape}.")
    numbers = array.astype(np.float64)
    _refuse(name, "be finite", numbers, ~np.isfinite(numbers))
    if low > -math.inf:
        _refuse(name, f"be {_range_text(low, high)}", numbers, (numbers < low) | (numbers > high))
    if array.ndim == 0:
        return float(numbers)
    numbers.setflags(write=False)
    return numbers


def tweedie_power(given: object) -> float:
    """A power for which there is a Tweedie distribution."""
    power = _number("power", given)
    if 0 < power < 1:
        raise ValueError(f"`power` must be <= 0 or >= 1; got {power!r}.")
    return power


def linex_shape(given: ColumnLike) -> float | NDArray[np.float64]:
    """Shapes other than 0."""
    shape = loss_parameter("shape", given, -math.inf, math.inf)
    column = np.asarray(shape)
    _refuse("shape", "not be 0", column, np.equal(column, 0))
    return shape


def logistic_offset(given: ColumnLike) -> float | NDArray[np.float64]:
    """Offsets that leave room for log-odds."""
    offset = loss_parameter("offset", given, -math.inf, math.inf)
    column = np.asarray(offset)
    _refuse("offset", "be between -1e300 and 1e300", column, np.abs(column) > 1e300)
    return offset


def parameter_length(loss: Loss, n: int) -> None:
    """Refuse parameters that are neither one nor one per row."""
    for place, arg in enumerate(getattr(loss, "args", ())):
        if np.ndim(arg) and len(arg) != n:
            raise ValueError(
                f"`args` of the loss must have one entry per row; entry {place} has {len(arg)} for {n} rows."
            )
    length = len(loss.parameters)
    if length not in (1, n) or (length == 1 != n and np.ndim(getattr(loss, loss.parameter, 0.0))):
        raise ValueError(f"`{loss.parameter}` of the loss must have one entry per row; got {length} for {n} rows.")


def no_values(loss: Loss) -> NoReturn:
    """Refuse a loss that cannot tell which of two fits costs less."""
    raise TypeError(
        f"`increasing` must be True or False for {loss!r}, which does not say what values cost; got 'auto'."
    )


def no_rounds(loss: Loss) -> NoReturn:
    """Refuse a loss without a derivative where one is needed."""
    raise TypeError(f"`loss` must have a derivative; {loss!r} says only how blocks merge: use `fit`.")


def usable_products(rates: NDArray[np.float64], weights: NDArray[np.float64]) -> None:
    """Refuse rates and weights, which were computed from what was given, that left the range of floats."""
    bad = ~np.isfinite(rates) | ~np.isfinite(weights) | (weights == 0)
    if bad.any():
        raise ValueError("targets over exposures, and weights times exposures, must be numbers that float64 holds.")


def usable_rates(rates: NDArray[np.float64]) -> None:
    """Refuse means over an exposure that left the range of floats."""
    if not np.isfinite(rates).all():
        raise ValueError("targets over exposures must be numbers that float64 holds.")


def function(name: str, given: object) -> Any:
    """Something that can be called."""
    if not callable(given):
        raise TypeError(f"`{name}` must be a function; got {given!r}.")
    return given


def custom_parts(
    derivative: object, args: object, domain: object, *, compiled: bool
) -> tuple[Any, tuple[Any, ...], tuple[float, float]]:
    """The parts of a Custom loss."""
    if not compiled and not callable(derivative):
        unknown_derivative(repr(derivative))
    if compiled and args:
        raise ValueError(f"`args` must be empty where `derivative` is compiled; got {args!r}.")
    if not isinstance(args, tuple):
        raise TypeError(f"`args` must be a tuple; got {args!r}.")
    with reading("args", "numbers or arrays"):
        args = tuple(arg if np.ndim(arg) == 0 else np.asarray(arg) for arg in args)
    for place, arg in enumerate(args):
        if np.ndim(arg) > 1:
            raise ValueError(
                f"`args` must be numbers or have one entry per sample; entry {place} has {np.ndim(arg)} dimensions."
            )
    try:
        low, high = (_real(end) for end in domain)  # type: ignore[attr-defined]
    except (TypeError, ValueError, OverflowError):
        raise TypeError(f"`domain` must be a pair (low, high) of numbers; got {domain!r}.") from None
    if not low < high:
        raise ValueError(f"`domain` must be a pair with low < high; got {domain!r}.")
    return derivative, args, (low, high)


def unknown_derivative(given: str) -> NoReturn:
    """Refuse an object that is not known to be a function."""
    raise TypeError(
        "`derivative` must be a Python function of arrays or a compiled function: a ctypes function that is not NULL, "
        f"a numba.cfunc, a PyCapsule or a scipy.LowLevelCallable; got {given}."
    )


def unknown_signature(given: str, known: Iterable[str]) -> NoReturn:
    """Refuse a compiled function of other arguments."""
    raise ValueError(f"`derivative` must be of the type {' or '.join(known)}, callable without the GIL; got {given}.")


def slopes_given(
    given: Any,
    z: NDArray[np.float64],
    rows: Callable[[], NDArray[np.intp]] | None,
    numbers: NDArray[np.intp] | None,
    optional: int,
) -> NDArray[np.float64]:
    """What a user's derivative returned for values z of samples at these places; the last ones may be NaN."""
    slopes = np.asarray(given)
    if slopes.shape != z.shape or slopes.dtype.kind not in "fiub":
        raise ValueError(
            f"`derivative` must return one real number per sample, shape {z.shape}; "
            f"got {slopes.dtype} of shape {slopes.shape}."
        )
    slopes = slopes.astype(np.float64, copy=False)
    bad = np.isnan(slopes[: len(slopes) - optional])
    if bad.any():
        place = int(np.argmax(bad))
        bad_slope(slopes[place], z[place], place if rows is None else int(rows()[place]), numbers)
    return slopes


def bad_slope(slope: float, z: float, row: int, numbers: NDArray[np.intp] | None) -> NoReturn:
    """Refuse a derivative that is NaN, or decreases near z."""
    sample = row if numbers is None else int(numbers[row])
    if math.isnan(slope):
        raise ValueError(f"`derivative` must not be NaN; got {slope} for sample {sample} at z = {float(z)!r}.")
    raise ValueError(
        f"`derivative` must not decrease as z increases; it does for sample {sample} near z = {float(z)!r}."
    )


def merged_block(given: object, low: float, high: float) -> tuple[float, Any]:
    """What a user's rule returned for a block: a value between these, and anything."""
    value: float
    auxiliary: Any
    try:
        value, auxiliary = given  # type: ignore[misc]
        value = float(value)
    except (TypeError, ValueError):
        raise TypeError(f"`merge` and `initial` must return a pair (y, lam); got {given!r}.") from None
    if not math.isfinite(value):
        raise ValueError(f"`merge` and `initial` must return finite values; got {value}.")
    slack = 1e-9 * max(abs(low), abs(high)) if math.isfinite(low) else 0.0
    if not low - slack <= value <= high + slack:
        raise ValueError(f"`merge` must return a value between those of its blocks, {low} and {high}; got {value}.")
    return min(max(value, low), high), auxiliary


def pair_of_reals(z: ColumnLike, y: ColumnLike, loss: Loss) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Values and targets that a loss may be asked about."""
    found = []
    for name, given, (low, high) in (("z", z, loss.value_range), ("y", y, loss.target_range)):
        numbers = _array(name, given).astype(np.float64)
        flat = numbers.reshape(-1)
        _refuse(name, "not be NaN", flat, np.isnan(flat))
        if name == "y":
            _refuse(name, "be finite", flat, np.isinf(flat))
        _refuse(name, f"be {_range_text(low, high)} for {loss.name}", flat, (flat < low) | (flat > high))
        found.append(numbers)
    return found[0], found[1]


def no_infinite_steps(values: NDArray[np.float64], allowed: tuple[bool, bool], *, rising: bool) -> None:
    """Refuse values that are infinite where that was not asked for."""
    for value, may in ((-math.inf, allowed[0]), (math.inf, allowed[1])):
        step = 0 if (value < 0) == rising else len(values) - 1
        if values[step] == value and not may:
            raise ValueError(
                f"`bounds` must be finite, or ask for infinite values by (-inf, inf): "
                f"step {step} has its least loss at {value}."
            )


def infinite_allowed(given: Any) -> tuple[bool, bool]:
    """Whether bounds ask for -inf, and for inf."""
    if given is None:
        return False, False
    lo, hi = given
    return lo is not None and math.isinf(lo), hi is not None and math.isinf(hi)


def _real(given: Any) -> float:
    """One real number as a float; `float` also takes what is refused here, some of it with a warning."""
    if type(given) not in (float, int) and (  # numpy's functions take longer than few rows
        isinstance(given, (str, bytes)) or given is np.ma.masked or np.ndim(given) or np.iscomplexobj(given)
    ):
        raise TypeError
    return float(given)


def _scalar(name: str, given: object) -> float:
    try:
        return _real(given)
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001  (an object of any class)
        raise TypeError(f"`{name}` must be a number; got {given!r}.") from None


def _number(name: str, given: object) -> float:
    number = _scalar(name, given)
    if not math.isfinite(number):
        raise ValueError(f"`{name}` must be finite; got {number!r}.")
    return number


def tolerance(given: object) -> float:
    """A width of bounds that is narrow enough; 0 if none is."""
    return 0.0 if given is None else _not_negative("tol", given)


def seconds(given: object) -> float:
    """A time to spend; inf if there is no end to it."""
    return math.inf if given is None else _not_negative("max_seconds", given)


def _not_negative(name: str, given: object) -> float:
    number = _number(name, given)
    if number < 0:
        raise ValueError(f"`{name}` must be >= 0; got {given!r}.")
    return number


def round_count(given: object) -> float:
    """A number of rounds; inf if there is no end to it."""
    if given is None:
        return math.inf
    try:
        n = operator.index(given)  # type: ignore[arg-type]
    except TypeError:
        raise TypeError(f"`max_rounds` must be an integer >= 0 or None; got {given!r}.") from None
    if n < 0:
        raise ValueError(f"`max_rounds` must be an integer >= 0 or None; got {given!r}.")
    return n


def direction(given: object, *, auto: bool) -> bool | None:
    """True: increasing, False: decreasing, None: "auto"."""
    if isinstance(given, (bool, np.bool_)):
        return bool(given)
    if auto and isinstance(given, str) and given == "auto":
        return None
    allowed = "True, False or 'auto'" if auto else "True or False"
    raise ValueError(f"`increasing` must be {allowed}; got {given!r}.")


def thread_count(name: str, given: object) -> int:
    """A number of threads."""
    try:
        n = operator.index(given)  # type: ignore[arg-type]
    except TypeError:
        raise TypeError(f"`{name}` must be an integer >= 1 or None; got {given!r}.") from None
    if n < 1 or isinstance(given, bool):
        raise ValueError(f"`{name}` must be an integer >= 1 or None; got {given!r}.")
    return n


def thread_variable(name: str, told: str) -> int:
    """A number of threads that the environment tells."""
    if told.isdecimal() and int(told) >= 1:
        return int(told)
    raise ValueError(f"the environment variable {name} must be an integer >= 1; got {told!r}.")


def bounds(given: Any) -> tuple[float, float]:
    """A pair lo <= hi; None stands for no bound."""
    if given is None:
        return -math.inf, math.inf
    try:
        lo, hi = given
        pair = -math.inf if lo is None else _real(lo) + 0.0, math.inf if hi is None else _real(hi) + 0.0
    except (TypeError, ValueError, OverflowError):
        raise TypeError(f"`bounds` must be a pair (lo, hi) of numbers or None; got {given!r}.") from None
    if not pair[0] <= pair[1] or pair[0] == math.inf or pair[1] == -math.inf:
        raise ValueError(f"`bounds` must be a pair with lo <= hi and a number between them; got {given!r}.")
    return pair


def choice(name: str, given: object, allowed: tuple[str, ...]) -> str:
    """One of a few words."""
    if isinstance(given, str) and given in allowed:
        return given
    raise ValueError(f"`{name}` must be one of {', '.join(map(repr, allowed))}; got {given!r}.")


def interpolation(given: object) -> str:
    """How values lie between the ends of steps."""
    return choice("interpolation", given, ("step", "linear", "centered"))


def queries(values: ColumnLike) -> tuple[Column, tuple[int, ...]]:
    """Scores to look up, flat, and the shape they came in; there may be NaN among them."""
    whole = _array("scores", values, exact=True)
    return _float_column("scores", whole.reshape(-1)), whole.shape


def output(out: object, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """An array the caller gave to write into."""
    if not isinstance(out, np.ndarray):
        raise TypeError(f"`out` must be a numpy array; got {type(out).__name__}.")
    if out.dtype != np.float64:
        raise TypeError(f"`out` must be of dtype float64; got {out.dtype}.")
    if out.shape != shape:
        raise ValueError(f"`out` must have the shape of `scores`, {shape}; got {out.shape}.")
    if not out.flags.writeable:
        raise ValueError("`out` must be writeable; got a read-only array.")
    return out


def within(scores: Column, low: float, high: float) -> None:
    """Refuse queries outside the scores that were fitted."""
    outside = (scores < np.float64(low)) | (scores > np.float64(high))  # a float would be rounded to float32
    _refuse("scores", f"be in [{low}, {high}], the fitted range", scores, outside)


class Steps(NamedTuple):
    """Clean steps, in arrays of our own."""

    left: NDArray[np.float64]
    right: NDArray[np.float64]
    values: NDArray[np.float64]
    weights: NDArray[np.float64]
    counts: NDArray[np.int64]
    lower: NDArray[np.float64] | None = None  # proven bounds of values, where those are not exact
    upper: NDArray[np.float64] | None = None


def steps(
    columns: tuple[Any, ...], *, rising: bool | NDArray[np.bool_], loss: Loss, borders: Column = _NO_BORDERS
) -> Steps:
    """Judge the parts of a staircase, as a constructor or a file gives them; another one begins at each border."""
    given = dict(zip(Steps._fields, columns, strict=True))
    ends = {name: score_column(name, given.pop(name)).astype(np.float64) for name in ("left", "right")}
    integers = _column("counts", given.pop("counts"))
    if integers.dtype.kind == "f" and len(integers):
        raise TypeError(f"`counts` must be integers; got {integers[0].item()!r} at index 0.")
    heights = {
        name: _column(name, one).astype(np.float64)
        for name, one in given.items()
        if one is not None or name in ("values", "weights")
    }
    found = Steps(**ends, **heights, counts=integers.astype(np.int64))
    if len(found.left) == 0:
        raise ValueError("`left` must have at least one step; got none.")
    low, high = loss.value_range
    for name, column in found._asdict().items():
        if column is None:
            continue
        _same_length("left", found.left, name, column)
        if name in ("values", "lower", "upper"):
            _refuse(name, "not be NaN", column, np.isnan(column))
            _refuse(name, f"be {_range_text(low, high)} for {loss.name}", column, (column < low) | (column > high))
        if name == "weights" or (name in heights and not loss.allows_infinite_values):
            _refuse(name, "be finite", column, ~np.isfinite(column))
    _refuse("weights", "be > 0", found.weights, found.weights <= 0)
    _refuse("counts", "be >= 1", found.counts, found.counts < 1)
    _refuse("right", "be >= `left`", found.right, found.right < found.left)
    inner = np.ones(len(found.left) - 1, dtype=np.bool_)
    inner[borders - 1] = False
    overlap = inner & (found.left[1:] <= found.right[:-1])
    _refuse("left", "be above the `right` of the step before", found.left[1:], overlap, 1)
    up = np.broadcast_to(rising, found.left.shape)[1:]
    for way, wrong in (
        ("increase", inner & up & ~(found.values[1:] > found.values[:-1])),
        ("decrease", inner & ~up & ~(found.values[1:] < found.values[:-1])),
    ):
        _refuse("values", f"strictly {way}", found.values[1:], wrong, 1)
    if found.lower is not None:
        _refuse("lower", "be <= `values`", found.lower, found.lower > found.values)
    if found.upper is not None:
        _refuse("upper", "be >= `values`", found.upper, found.upper < found.values)
    return found


def _finite_total(name: str, w: Column) -> None:
    try:
        math.fsum(w)
    except OverflowError:
        raise ValueError(f"`{name}` must have a finite sum; its {len(w)} entries reach {w.max()}.") from None


def _same_length(name: str, column: Column, other_name: str, other: Column) -> None:
    if len(column) != len(other):
        raise ValueError(
            f"`{name}` and `{other_name}` must have one entry per row; got {len(column)} and {len(other)} entries."
        )


def no_nan(name: str, x: Column, n_threads: int) -> None:
    """Refuse NaN."""
    if len(x):
        not_nan(name, x, order_of(x, n_threads).first_nan)


def not_nan(name: str, x: Column, first_nan: int) -> None:
    """Refuse the NaN that was found at an index, or at -1 if none was."""
    if first_nan >= 0:
        raise ValueError(f"`{name}` must not be NaN; got {x[first_nan]} at index {first_nan}.")


def library(name: str, what: str, extra: str = "") -> Any:
    """A library that is not always there; `extra` is the one of ours that brings it."""
    import importlib

    try:
        return importlib.import_module(name)
    except ImportError:
        package = "scikit-learn" if name.startswith("sklearn") else name.partition(".")[0]
        way = f": pip install 'staircase_fast[{extra}]'" if extra else ""
        raise ImportError(f"{what} needs {package}, which is not installed{way}.") from None
