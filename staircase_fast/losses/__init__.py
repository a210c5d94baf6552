"""Losses: which function is minimised, which targets are valid, which values can result.

`builtin.py` has the losses by name, `custom.py` those that users define.  `_functionals.pxd` has the formulas of the
built-in losses, `_slopes.pxd` the loops over samples.  `rows.py` checks rows against a loss; `units.py` scales targets
so that derivatives neither overflow nor underflow.  CONTRIBUTING.md says how to add a loss.

Tests: tests/losses.
"""

import re
from typing import TYPE_CHECKING, Any

from staircase_fast.errors import InvalidInputError, InvalidTypeError
from staircase_fast.inputs.options import refuse_choice
from staircase_fast.losses import builtin
from staircase_fast.losses.base import Loss
from staircase_fast.losses.builtin import *  # noqa: F403  (the names in its `__all__`)
from staircase_fast.losses.custom import Custom, UpdateRule
from staircase_fast.typing import public_class

__all__ = ["Custom", "Loss", "UpdateRule"]
__all__ += builtin.__all__

if TYPE_CHECKING:  # the kernel has no stub
    _losses: Any

for _name in __all__:
    public_class(__name__)(globals()[_name])

_BUILTIN: list[type[Loss]] = [getattr(builtin, name) for name in builtin.__all__]
for _number, _loss in enumerate(_BUILTIN):
    _loss.kind = _number

BY_NAME = {loss.name: loss for loss in _BUILTIN} | {"squared": builtin.SquaredError, "log": builtin.LogLoss}
SYNONYMS = dict.fromkeys(("mse", "l2", "mean_squared_error", "brier"), "squared")
SYNONYMS |= dict.fromkeys(("bce", "cross_entropy", "binary_crossentropy", "bernoulli"), "log")
SYNONYMS |= dict.fromkeys(("mae", "l1", "absolute_error", "pinball", "median"), "quantile")
"""Names that other libraries use."""

WITHOUT_DEFAULT = tuple(loss for loss in _BUILTIN if loss.parameter and not loss.__init__.__defaults__)
"""Losses whose parameter has no default."""

_SHARED = {name: loss() for name, loss in BY_NAME.items() if not loss.parameter}  # they have no state


def loss_of(given: object, argument: str = "loss") -> Loss:
    """A loss, by object or by name; `argument` is the caller's name for it."""
    if isinstance(given, Loss):
        return given
    if isinstance(given, str) and given in _SHARED:
        return _SHARED[given]
    if not isinstance(given, str):
        hint = "Pass an object such as Huber(1.5), or a function in Custom(derivative)." if callable(given) else ""
        if isinstance(given, type) and given in _BUILTIN:
            hint = f"Pass an object: {given.__name__}({given.parameter if given in WITHOUT_DEFAULT else ''})."
        raise InvalidTypeError(argument, "must be a name or a loss object", value=given, hint=hint)
    kind = loss_class(given, argument)
    if kind in WITHOUT_DEFAULT:
        requirement = f"must include its {kind.parameter}, as in losses.{kind.__name__}({kind.parameter})"
        raise InvalidInputError(argument, requirement, value=given)
    return kind()


def loss_class(name: str, argument: str = "loss") -> type[Loss]:
    """The class of a built-in loss."""
    if name not in BY_NAME:
        with_parameter = re.fullmatch(r"(\w+)[:(](.*?)\)?", name)
        if with_parameter and with_parameter[1] in BY_NAME:
            hint = f"Pass an object: losses.{BY_NAME[with_parameter[1]].__name__}({with_parameter[2]})."
            raise InvalidInputError(argument, "must be a name without parameters", value=name, hint=hint)
        refuse_choice(argument, name, BY_NAME, SYNONYMS)
    return BY_NAME[name]
