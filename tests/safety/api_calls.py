"""The list of random calls, and helpers that several of them share.

Each call is a function that writes and runs a script, and checks its result.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import api_inputs as inputs
import reference
from api_inputs import LossKind, Number, chance, column, pick
from api_script import Script
from numpy.random import Generator

Call = Callable[[Script, Generator], None]
CALLS: dict[str, tuple[Call, float]] = {}  # by name, with its relative frequency
FEW = 40  # rows of an exact comparison
FEWEST = 10  # rows of a comparison in high precision


def call(name: str, share: float = 1.0) -> Callable[[Call], Call]:
    def note(function: Call) -> Call:
        CALLS[name] = function, share
        return function

    return note


class Rows(NamedTuple):
    """Columns of a fit, as Python numbers; the script has them as x, y and w."""

    x: list[Number]
    y: list[Number]
    w: list[Number] | None
    loss: str  # source text
    parameter: list[float] | None

    @property
    def given(self) -> str:
        """The arguments of `fit` without its options."""
        return f"x, y, sample_weight=w, loss={self.loss}" if self.w is not None else f"x, y, loss={self.loss}"


def draw(s: Script, rng: Generator, kind: LossKind, most: int = FEW, *, extreme: bool = True) -> Rows:
    """Draw rows and write their columns into the script."""
    n = inputs.number_of_rows(rng, most)
    x, y, w = inputs.scores(rng, n), kind.targets(rng, n), inputs.weights(rng, n, extreme=extreme)
    loss, parameter = kind.draw(rng, y)
    s.let("x", column(rng, x))
    s.let("y", column(rng, y))
    if w is not None:
        s.let("w", column(rng, w))
    names = "x, y, w" if w is not None else "x, y"
    s.let("before", f"[np.asarray(column).tobytes() for column in ({names})]")
    return Rows(x, y, w, loss, parameter)


def inputs_are_unchanged(s: Script, rows: Rows) -> None:
    names = "x, y, w" if rows.w is not None else "x, y"
    s.expect(f"before == [np.asarray(column).tobytes() for column in ({names})]", "an input was changed")


def bounds_for(rng: Generator, targets: list[Number], share: float = 0.3) -> tuple[float | None, float | None] | None:
    if not chance(rng, share):
        return None
    low, high = sorted(float(pick(rng, targets)) for _ in range(2))
    return pick(rng, [(low, high), (low, None), (None, high)])


def as_interval(bounds: tuple[float | None, float | None] | None) -> tuple[float, float]:
    low, high = bounds or (None, None)
    return -math.inf if low is None else low, math.inf if high is None else high


def has_steps(s: Script, name: str, expected: list[reference.Step]) -> None:
    """Compare a staircase with exact steps, bit for bit except for the sign of zeros."""
    for field in ("left", "right", "count", "value", "weight"):
        attribute = field if field in ("left", "right") else f"{field}s"
        wanted = [getattr(step, field) for step in expected]
        s.expect(f"{name}.{attribute}.tolist() == {wanted!r}", f"{attribute} differ from exact arithmetic")


def is_certified(s: Script, rows: Rows, bounds: Any = None, name: str = "stairs") -> None:
    s.let("certificate", f"sf.certify({name}, {rows.given}, bounds={bounds!r})")
    s.expect("certificate.optimal and certificate.gap >= 0", "the fit is not certified")
    s.expect(
        f"({name}.lower <= {name}.values).all() and ({name}.values <= {name}.upper).all()",
        "values lie outside lower and upper",
    )


def same_steps(s: Script, one: str, other: str, what: str) -> None:
    for attribute in ("left", "right", "values", "weights", "counts", "lower", "upper"):
        s.expect(f"np.array_equal({one}.{attribute}, {other}.{attribute})", f"{what}: {attribute} differ")
