"""Random inputs of the API as source text: columns in every layout, and losses with valid targets."""

import importlib.util
import math
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator

Number = float | int | bool
TINY = 5e-324  # the least positive float64
HUGE = 1.7976931348623157e308
EXACT = 2**53  # integers up to here are exact as floats

HAS = {name: importlib.util.find_spec(name) is not None for name in ("pandas", "pyarrow", "polars", "sklearn")}


def pick(rng: Generator, choices: Sequence[Any]) -> Any:
    return choices[int(rng.integers(len(choices)))]


def chance(rng: Generator, probability: float) -> bool:
    return bool(rng.random() < probability)


# Numbers


def number_of_rows(rng: Generator, most: int) -> int:
    """Mostly few rows: scripts stay short, and exact arithmetic stays cheap."""
    return int(np.exp(rng.uniform(0, math.log(most + 0.5))))


def scores(rng: Generator, n: int) -> list[Number]:
    kinds: list[Callable[[], Any]] = [
        lambda: rng.integers(-3, 4, n),
        lambda: rng.integers(0, max(2, n // 4), n),
        lambda: rng.normal(size=n),
        lambda: np.sort(rng.random(n)),
        lambda: np.sort(rng.integers(0, n + 1, n))[::-1],
        lambda: rng.choice([-0.0, 0.0, -TINY, TINY, 1.0], n),
        lambda: rng.choice([-np.inf, -HUGE, -1.0, 0.0, 2.5, HUGE, np.inf], n),
        lambda: 1.0 + rng.integers(0, 6, n) * 2.0**-52,
        lambda: rng.normal(size=n).astype(np.float32),
        lambda: rng.integers(-EXACT, EXACT + 1, n),
        lambda: rng.choice([-1.0, 1.0], n) * 10.0 ** rng.uniform(-300, 300, n),
        lambda: np.arange(n),
    ]
    return [float(x) if isinstance(x, np.floating) else x for x in pick(rng, kinds)().tolist()]


def reals(rng: Generator, n: int) -> list[Number]:
    """Targets from 1e-12 to 1e12, some with an offset."""
    scale = 10.0 ** int(rng.integers(-12, 13))
    shift = pick(rng, [0.0, 0.0, 0.0, 1.0, -1e6, 1e3 * scale, -1e9 * scale])
    trend = pick(rng, [0.0, 0.0, 3.0]) * np.linspace(-1, 1, n)
    kinds: list[Callable[[], Any]] = [
        lambda: scale * (trend + rng.normal(size=n)) + shift,
        lambda: scale * np.round(trend + rng.normal(size=n), 1) + shift,
        lambda: scale * (trend + rng.standard_cauchy(n)) + shift,
        lambda: rng.integers(-3, 4, n).astype(float),
        lambda: rng.choice([-scale, 0.0, scale], n) + shift,
        lambda: scale * rng.normal(size=n).astype(np.float32).astype(float),
    ]
    return pick(rng, kinds)().tolist()


def any_reals(rng: Generator, n: int) -> list[Number]:
    """Targets of any size that float64 or int64 can represent."""
    kinds: list[Callable[[], Any]] = [
        lambda: rng.choice([-HUGE, -1e308, -1.0, 0.0, 1.0, 1e308, HUGE], n),
        lambda: rng.choice([-HUGE, -1.0, -TINY, TINY, 1.0, HUGE], n),
        lambda: rng.integers(-(2**52), 2**52, n) * TINY,
        lambda: rng.choice([-1.0, 1.0], n) * 10.0 ** rng.uniform(-300, 300, n),
        lambda: rng.choice([-1e16, 1e16, 0.1, -0.1, 1.0], n),
        lambda: 1.0 + rng.integers(0, 6, n) * 2.0**-52,
        lambda: rng.choice([-1, 1]) * rng.integers(EXACT - 2, EXACT + 4, n),
        lambda: np.sort(rng.integers(EXACT - 1, EXACT + 3, n))[:: rng.choice([-1, 1])],
        lambda: rng.choice([0, 1, EXACT // 4, EXACT + 1], n),
        lambda: rng.integers(-(2**62), 2**62, n),
        lambda: rng.integers(0, 2, n),
        lambda: rng.integers(0, 2, n).astype(bool),
        lambda: -0.0 * rng.integers(0, 2, n),
    ]
    return pick(rng, kinds)().tolist() if chance(rng, 0.5) else reals(rng, n)


def shares(rng: Generator, n: int) -> list[Number]:
    kinds: list[Callable[[], Any]] = [
        lambda: rng.integers(0, 2, n),
        lambda: rng.random(n) < rng.choice([0.02, 0.5, 0.98]),
        lambda: np.clip(np.round(rng.normal(0.5, 0.5, n), 1), 0, 1),
        lambda: rng.choice([0.0, TINY, 1e-300, 0.5, 1 - 2.0**-53, 1.0], n),
    ]
    return pick(rng, kinds)().tolist()


def counts(rng: Generator, n: int) -> list[Number]:
    return rng.poisson(pick(rng, [0.1, 1.0, 20.0]), n).tolist()


def positives(rng: Generator, n: int) -> list[Number]:
    kinds: list[Callable[[], Any]] = [
        lambda: rng.gamma(rng.choice([0.3, 3.0]), size=n) + 1e-300,
        lambda: 10.0 ** rng.uniform(-12, 12, n),
        lambda: rng.choice([TINY, 1e-300, 1.0, 1e300], n),
    ]
    return pick(rng, kinds)().tolist()


def small(rng: Generator, n: int) -> list[Number]:
    """Targets so close that the exponentials of their differences do not overflow."""
    return np.clip(pick(rng, [0.1, 1.0, 10.0]) * rng.normal(size=n), -50, 50).tolist()


def weights(rng: Generator, n: int, *, extreme: bool) -> list[Number] | None:
    """None, or weights with at least one that is not 0."""
    kinds: list[Callable[[], Any]] = [
        lambda: np.ones(n),
        lambda: rng.integers(0, 4, n),
        lambda: rng.integers(1, 30, n) / 10,
        lambda: np.exp(2 * rng.normal(size=n)),
        lambda: 2.0 ** rng.integers(-30, 30, n),
        lambda: rng.random(n).astype(np.float32).astype(float),
    ]
    if extreme:
        kinds += [
            lambda: rng.choice([1e-300, 1.0, 1e300], n),
            lambda: rng.integers(0, 2**40, n) * TINY,
            lambda: 10.0 ** rng.uniform(-300, 300, n),
        ]
    if chance(rng, 0.4):
        return None
    found = pick(rng, kinds)().tolist()
    if not any(found):
        found[0] = 1
    return found


# Columns


def column(rng: Generator, values: Sequence[Number]) -> str:
    """Source text of a column with these numbers, in a random layout."""
    given = list(values)
    kind = "b" if all(type(v) is bool for v in given) else "i" if all(type(v) is int for v in given) else "f"
    forms = [repr(given), repr(tuple(given)), f"np.array({given!r})"]
    array = forms[2]
    forms += [
        f"np.repeat({array}, 3)[::3]",
        f"np.array({given[::-1]!r})[::-1]",
        f"np.array({[[v, 0] for v in given]!r})[:, 0]",
        f"np.frombuffer({array}.tobytes(), dtype={array}.dtype)",  # read-only
    ]
    if kind == "f":
        packed = struct.pack(f"<x{len(given)}d", *given)
        forms += [
            f"np.array({given!r}, dtype='>f8')",
            f"np.frombuffer({packed!r}, dtype='<f8', offset=1)",  # unaligned
            f"array.array('d', {given!r})",
            f"memoryview(np.array({given!r}))",
            f"np.array({given!r}, dtype=np.longdouble)",
            f"np.ma.array({given!r})",
        ]
        with np.errstate(over="ignore", under="ignore"):
            if all(float(np.float32(v)) == v for v in given):
                forms += [f"np.array({given!r}, dtype=np.float32)"] * 3
                forms += [f"np.array({given!r}, dtype='>f4')", f"np.repeat(np.array({given!r}, dtype='f4'), 2)[::2]"]
            if all(float(np.float16(v)) == v for v in given):
                forms.append(f"np.array({given!r}, dtype=np.float16)")
    if all(v in (0, 1) for v in given):
        whole = [int(v) for v in given]
        forms += [f"np.array({whole!r}, dtype={name!r})" for name in ("bool", "u1", "i1", ">i4")]
    if all(math.isfinite(v) and float(v).is_integer() and abs(v) < EXACT for v in given):
        whole = [int(v) for v in given]
        for name in ("i1", "u1", "i2", ">i2", "u2", "i4", "u4", "i8", "u8"):
            limits = np.iinfo(name)
            if all(limits.min <= v <= limits.max for v in whole):
                forms.append(f"np.array({whole!r}, dtype={name!r})")
    if HAS["pandas"]:
        labels = list(range(len(given)))[::-1]  # the index of all columns of a call must be the same
        nullable = {"b": "boolean", "i": "Int64", "f": "Float64"}[kind]
        forms.append(f"pd.Series({given!r}, index={labels!r})")
        forms.append(f"pd.Series({given!r}, index={labels!r}, dtype={nullable!r})")
    if HAS["pyarrow"]:
        cut = len(given) // 2
        arrow = {"b": "pa.bool_()", "i": "pa.int64()", "f": "pa.float64()"}[kind]
        forms += [
            f"pa.array({given!r}, {arrow})",
            f"pa.array({given * 2!r}, {arrow})[{len(given)}:]",
            f"pa.chunked_array([pa.array({given[:cut]!r}, {arrow}), pa.array({given[cut:]!r}, {arrow})])",
        ]
    if HAS["polars"]:
        name = {"b": "pl.Boolean", "i": "pl.Int64", "f": "pl.Float64"}[kind]
        forms.append(f"pl.Series({given!r}, dtype={name})")
    return pick(rng, forms)


# Losses


@dataclass(frozen=True)
class LossKind:
    """A loss as source text, and its valid targets."""

    name: str
    parameters: Callable[[Generator, list[Number]], list[float]] | None
    targets: Callable[[Generator, int], list[Number]]
    per_sample: bool = True
    more: str = ""

    def draw(self, rng: Generator, targets: list[Number]) -> tuple[str, list[float] | None]:
        """Source text of the loss for these rows, and its parameters: one for all rows, or one per row."""
        if self.parameters is None:
            return f"sf.losses.{self.name}()", None
        choices = self.parameters(rng, targets)
        if self.per_sample and len(targets) > 1 and chance(rng, 0.25):
            drawn = [pick(rng, choices) for _ in targets]
            return f"sf.losses.{self.name}({drawn!r}{self.more})", drawn
        one = pick(rng, choices)
        return f"sf.losses.{self.name}({one!r}{self.more})", [one]


def spread(targets: list[Number]) -> float:
    size = float(max(targets)) / 2 - float(min(targets)) / 2
    return min(max(2 * size, 1e-300), 1e300)


def by_spread(*shares_of_spread: float) -> Callable[[Generator, list[Number]], list[float]]:
    """Parameters that scale with the targets, and some that do not."""
    return lambda rng, targets: [1.0, 0.01, 30.0, *(share * spread(targets) for share in shares_of_spread)]


def levels(rng: Generator, targets: list[Number]) -> list[float]:
    return [0.5, 0.1, 0.9, 0.75, 1e-3, 1 - 1e-9, float(rng.random()) or 0.5]


MEANS = (
    LossKind("SquaredError", None, any_reals),
    LossKind("LogLoss", None, shares),
    LossKind("PoissonDeviance", None, counts),
    LossKind("GammaDeviance", None, positives),
    LossKind("TweedieDeviance", lambda rng, y: [0.0], any_reals, per_sample=False),
    LossKind("TweedieDeviance", lambda rng, y: [1.0, 1.5, 1.9], counts, per_sample=False),
    LossKind("TweedieDeviance", lambda rng, y: [2.0, 2.5, 3.0], positives, per_sample=False),
)
OTHERS = (
    LossKind("Logistic", lambda rng, y: [0.0, 1.0, -2.5, 7.0], shares),
    LossKind("Linex", lambda rng, y: [1.0, -0.5, 3.0, 1e-3], small),
    LossKind("Expectile", levels, reals),
    LossKind("Quantile", levels, reals),
    LossKind("Quantile", levels, reals, more=", side='upper'"),
    LossKind("Quantile", levels, reals, more=", side='middle'"),
    LossKind("Huber", by_spread(0.1, 1.0, 10.0, 1e-6), reals),
    LossKind("PseudoHuber", by_spread(0.1, 1.0, 10.0, 1e-6), reals),
    LossKind("LogCosh", by_spread(0.1, 1.0, 10.0, 1e-6), reals),
    LossKind("Power", lambda rng, y: [1.5, 2.0, 3.0, 1.1, 8.0], reals),
)
EXTREME = tuple(LossKind(one.name, one.parameters, any_reals, more=one.more) for one in OTHERS[2:])
EXPOSURES = LossKind("PoissonDeviance", lambda rng, y: [0.1, 2.5, 7.0, 1e-3, 40.0], counts)
