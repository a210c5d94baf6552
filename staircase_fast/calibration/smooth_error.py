"""The smooth calibration error of Blasiok and Nakkiran (2023).

With residuals r = label - forecast and the Gaussian kernel K of standard deviation s, reflected at 0 and 1,

    error(s) = integral from 0 to 1 of |sum of w r K(forecast, t)| dt / sum of w.

It decreases in s.  The smooth calibration error is the fixed point error(s) = s: the bandwidth is chosen by the data.

The reflected kernel is the heat kernel of [0, 1] with insulated ends, so it is diagonal in the basis cos(k pi t): the
k-th coefficient of the residuals is multiplied by exp(-(k pi s)**2 / 2).  The coefficients are computed once, by fast
Fourier transforms, and each bandwidth needs one more transform.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

_Floats = NDArray[np.float64]

_CELLS = 1 << 15  # of equal width
_MOMENTS = 4  # per cell: powers of the distance from its middle
LEAST_BANDWIDTH = 2.0**-11  # 16 cells; a smaller fixed point is replaced by the error at this bandwidth
_REACH = 9.0  # coefficients with k pi s above this are multiplied by less than 1e-17
_POINTS = 64  # at which the smoothed residuals are evaluated, per bandwidth
_TOLERANCE = 1e-7  # of the fixed point, relative


class SmoothError:
    """The smooth calibration error for these forecasts, which must be in ascending order, and any residuals."""

    def __init__(self, forecasts: _Floats) -> None:
        cells = np.minimum((forecasts * _CELLS).astype(np.int64), _CELLS - 1)
        self._starts = np.flatnonzero(np.append(True, cells[1:] != cells[:-1]))
        self._cells = cells[self._starts]
        self._distances = forecasts - (cells + 0.5) / _CELLS

    def fixed_point(self, residuals: _Floats) -> float:
        """The smooth calibration error; residuals are multiplied by weights that sum to 1."""
        coefficients = self._coefficients(residuals)
        low = high = 0.25
        at_low = at_high = _error(coefficients, low) - low
        while at_low <= 0.0:
            if low == LEAST_BANDWIDTH:
                return at_low + low
            high, at_high, low = low, at_low, low / 2
            at_low = _error(coefficients, low) - low
        if at_high > 0.0:
            high, at_high = 1.0, _error(coefficients, 1.0) - 1.0  # <= 0: residuals are at most 1
        # regula falsi of a decreasing function; an end that stays for a second time counts half (Illinois)
        side = 0
        while high - low > _TOLERANCE * high and at_high < 0.0:
            middle = (low * at_high - high * at_low) / (at_high - at_low)
            found = _error(coefficients, middle) - middle
            if abs(found) <= _TOLERANCE * middle:
                return middle
            if found > 0.0:
                low, at_low, at_high, side = middle, found, at_high / (2.0 if side > 0 else 1.0), 1
            else:
                high, at_high, at_low, side = middle, found, at_low / (2.0 if side < 0 else 1.0), -1
        return high

    def _coefficients(self, residuals: _Floats) -> _Floats:
        """The sums of residual * cos(k pi forecast) for each k up to the largest that matters.

        In a cell of middle m, cos(k pi (m + d)) is the real part of exp(i k pi m) times a Taylor series in i k pi d.
        """
        n = math.ceil(_REACH / (math.pi * LEAST_BANDWIDTH))
        frequencies = -1j * math.pi * np.arange(n)
        found, factors = np.zeros((2, n), dtype=np.complex128)
        factors += 1.0
        terms = residuals
        for power in range(_MOMENTS):
            sums = np.zeros(2 * _CELLS)
            sums[self._cells] = np.add.reduceat(terms, self._starts)
            found += factors * np.fft.rfft(sums)[:n]
            factors *= frequencies / (power + 1)
            terms = terms * self._distances
        return np.real(found * np.exp(frequencies / (2 * _CELLS)))


def _error(coefficients: _Floats, bandwidth: float) -> float:
    """The integral of the absolute smoothed residuals, by the midpoint rule."""
    k = np.arange(min(len(coefficients), math.ceil(_REACH / (math.pi * bandwidth)) + 1))
    n = 1 << math.ceil(math.log2(_POINTS / bandwidth))
    # cos(k pi (j + 1/2) / n) for j < n is half of an inverse transform of length 2 n
    spectrum = coefficients[: len(k)] * np.exp(-0.5 * (k * math.pi * bandwidth) ** 2 + 0.5j * math.pi * k / n)
    smoothed = np.fft.irfft(spectrum, 2 * n)[:n] * (2 * n)
    return float(np.abs(smoothed).mean())
