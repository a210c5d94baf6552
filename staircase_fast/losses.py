"""Losses: what is minimised, which targets make sense, which values can come out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

__all__ = ["LogLoss", "Loss", "SquaredError"]


class Loss(ABC):
    """A loss l(z, y) of a value z for a target y, strictly convex in z.

    Two losses are equal if they are of one kind with the same parameters.
    """

    name: ClassVar[str]
    target_range: ClassVar[tuple[float, float]] = (-np.inf, np.inf)

    @abstractmethod
    def gain(self, values: NDArray[np.float64], shares: NDArray[np.float64], size: float) -> float:
        """How much loss a fit saves, up to a constant of the data and a positive factor: for comparing two fits.

        A loss whose minimiser is the mean is a Bregman divergence: a step of mean v and weight w costs a constant of
        the data less w*phi(v), with phi convex.  `shares` are the weights over their total, `size` is the largest
        magnitude of a target.
        """

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((type(self), *sorted(vars(self).items())))

    def __repr__(self) -> str:
        parameters = ", ".join(f"{name}={value!r}" for name, value in vars(self).items())
        return f"{type(self).__name__}({parameters})"


class SquaredError(Loss):
    """(z - y)**2: every step is the mean of its targets.

    Examples
    --------
    >>> import staircase_fast as sf
    >>> sf.fit([1, 2, 3], [0.0, 4.0, 2.0], loss=sf.losses.SquaredError()).values
    array([0., 3.])
    """

    name = "squared_error"

    def gain(self, values: NDArray[np.float64], shares: NDArray[np.float64], size: float) -> float:
        relative = values / size if size > 0 else values  # squares of 1e308 would overflow
        return float(np.sum(shares * (relative - np.sum(shares * relative)) ** 2))


class LogLoss(Loss):
    """-y log z - (1 - y) log(1 - z), for targets in [0, 1]: every step is the mean of its targets.

    Examples
    --------
    >>> import staircase_fast as sf
    >>> sf.fit([0.2, 0.4, 0.6], [0, 1, 0], loss=sf.losses.LogLoss()).values
    array([0. , 0.5])
    """

    name = "log_loss"
    target_range = (0.0, 1.0)

    def gain(self, values: NDArray[np.float64], shares: NDArray[np.float64], size: float) -> float:
        inside = (values > 0) & (values < 1)  # z log z = 0 at the ends
        z, w = values[inside], shares[inside]
        return float(np.sum(w * (z * np.log(z) + (1 - z) * np.log1p(-z))))


BY_NAME: dict[str, type[Loss]] = {
    "squared": SquaredError,
    "squared_error": SquaredError,
    "log": LogLoss,
    "log_loss": LogLoss,
}
