"""Losses: which function is minimised, which targets are valid, which values can result.

`builtin.py` has the losses by name, `custom.py` those that users define.  `_functionals.pxd` has the formulas of the
built-in losses, `_slopes.pxd` the loops over samples.  `rows.py` checks rows against a loss; `units.py` scales targets
so that derivatives neither overflow nor underflow.

To add a loss:
1. `_functionals.pxd`: a struct, the value and the slope, with formula and domain in the comment above.
2. `_slopes.pxd`: its line in `Kind` and `functional`, its branch in `value_of`, `slope_of` and `fill_slopes`.
3. `builtin.py`: a class with docstring, `name`, `kind` (the number in `Kind`), ranges, and the attributes of `Loss`
   that differ from their defaults.  They choose the solver, the first bounds and the certificate: bisection and
   certificate need no change.
4. This file: its name in the import and in `__all__`.
5. `tests/loss_table.py`: a row with the formulas in mpmath.
6. `docs/choosing_a_loss.md`: a line in the table.

Tests: tests/losses.
"""

from typing import TYPE_CHECKING, Any

from staircase_fast.errors import InvalidInputError, InvalidTypeError
from staircase_fast.losses.base import Loss
from staircase_fast.losses.builtin import (
    Expectile,
    GammaDeviance,
    Huber,
    Linex,
    LogCosh,
    Logistic,
    LogLoss,
    PoissonDeviance,
    Power,
    PseudoHuber,
    Quantile,
    SquaredError,
    TweedieDeviance,
)
from staircase_fast.losses.custom import Custom, UpdateRule
from staircase_fast.typing import public_class

__all__ = [
    "Custom",
    "Expectile",
    "GammaDeviance",
    "Huber",
    "Linex",
    "LogCosh",
    "LogLoss",
    "Logistic",
    "Loss",
    "PoissonDeviance",
    "Power",
    "PseudoHuber",
    "Quantile",
    "SquaredError",
    "TweedieDeviance",
    "UpdateRule",
]

if TYPE_CHECKING:  # the kernel has no stub
    _losses: Any

for _name in __all__:
    public_class(__name__)(globals()[_name])

_BUILTIN = sorted((kind for kind in Loss.__subclasses__() if kind.kind >= 0), key=lambda kind: kind.kind)
BY_NAME: dict[str, type[Loss]] = {kind.name: kind for kind in _BUILTIN} | {"squared": SquaredError, "log": LogLoss}
WITHOUT_DEFAULT = tuple(kind for kind in _BUILTIN if kind.parameter and not kind.__init__.__defaults__)
"""Losses whose parameter has no default."""


def loss_of(given: object, argument: str = "loss") -> Loss:
    """A loss, by object or by name; `argument` is the caller's name for it."""
    if isinstance(given, Loss):
        return given
    if not isinstance(given, str):
        hint = "Pass an object such as Huber(1.5), or a function in Custom(derivative)." if callable(given) else ""
        raise InvalidTypeError(argument, "must be a name or a loss object", value=given, hint=hint)
    kind = loss_class(given, argument)
    if kind in WITHOUT_DEFAULT:
        requirement = f"must include its {kind.parameter}, as in losses.{kind.__name__}({kind.parameter})"
        raise InvalidInputError(argument, requirement, value=given)
    return kind()


def loss_class(name: str, argument: str = "loss") -> type[Loss]:
    """The class of a built-in loss."""
    if name not in BY_NAME:
        raise InvalidInputError(argument, f"must be one of {', '.join(map(repr, BY_NAME))}", value=name)
    return BY_NAME[name]
