"""The smooth calibration error of Blasiok and Nakkiran (2023).

With residuals r = label - forecast and the Gaussian kernel K of standard deviation s, reflected at 0 and 1,

    error(s) = integral from 0 to 1 of |sum of w r K(forecast, t)| dt / sum of w.

It decreases in s.  The smooth calibration error is the fixed point error(s) = s: the bandwidth is chosen by the data.

The reflected kernel is the heat kernel of [0, 1] with insulated ends, so it is diagonal in the basis cos(k pi t): the
k-th coefficient of the residuals is multiplied by exp(-(k pi s)**2 / 2).  The coefficients are computed by fast Fourier
transforms, and each bandwidth needs one more transform.  Most fixed points are large, and need few coefficients: small
bandwidths have levels of their own, with narrower cells and more coefficients.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

_Floats = NDArray[np.float64]

_LEVELS = {2.0**-5: 1 << 11, 2.0**-8: 1 << 13, 2.0**-11: 1 << 15}  # cells of equal width, by the least bandwidth
_MOMENTS = 4  # per cell: powers of the distance from its middle
LEAST_BANDWIDTH = min(_LEVELS)  # 16 cells; a smaller fixed point is replaced by the error at this bandwidth
_REACH = 9.0  # coefficients with k pi s above this are multiplied by less than 1e-17
_POINTS = 64  # at which the smoothed residuals are evaluated, per bandwidth
_TOLERANCE = 1e-7  # of the fixed point, relative


class _Cells(NamedTuple):
    """Cells of equal width, and the forecasts in them."""

    n: int
    starts: NDArray[np.intp]  # the first forecast in each cell that has any
    used: NDArray[np.int64]  # the numbers of these cells
    distances: _Floats  # of forecasts from the middles of their cells


class SmoothError:
    """The smooth calibration error for these forecasts, which must be in ascending order, and any residuals."""

    def __init__(self, forecasts: _Floats) -> None:
        self._forecasts = forecasts
        self._levels: dict[float, _Cells] = {}  # threads may compute the same one

    def _at(self, least_bandwidth: float, residuals: _Floats) -> _Floats:
        """The coefficients that matter for bandwidths from this one on."""
        if least_bandwidth not in self._levels:
            self._levels[least_bandwidth] = _cells_of(self._forecasts, _LEVELS[least_bandwidth])
        return _coefficients(self._levels[least_bandwidth], residuals, least_bandwidth)

    def fixed_point(self, residuals: _Floats) -> float:
        """The smooth calibration error; residuals are multiplied by weights that sum to 1."""
        levels = iter(_LEVELS)
        least = next(levels)
        coefficients = self._at(least, residuals)
        low = high = 0.25
        at_low = at_high = _error(coefficients, low) - low
        while at_low <= 0.0:
            if low == LEAST_BANDWIDTH:
                return at_low + low
            if low == least:
                least = next(levels)
                coefficients = self._at(least, residuals)
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


def _cells_of(forecasts: _Floats, n_cells: int) -> _Cells:
    cells = np.minimum((forecasts * n_cells).astype(np.int64), n_cells - 1)
    starts = np.flatnonzero(np.append(True, cells[1:] != cells[:-1]))
    return _Cells(n_cells, starts, cells[starts], forecasts - (cells + 0.5) / n_cells)


def _coefficients(cells: _Cells, residuals: _Floats, least_bandwidth: float) -> _Floats:
    """The sums of residual * cos(k pi forecast) for each k up to the largest that matters.

    In a cell of middle m, cos(k pi (m + d)) is the real part of exp(i k pi m) times a Taylor series in i k pi d.
    """
    n = math.ceil(_REACH / (math.pi * least_bandwidth))
    frequencies = -1j * math.pi * np.arange(n)
    found, factors = np.zeros((2, n), dtype=np.complex128)
    factors += 1.0
    terms = residuals
    for power in range(_MOMENTS):
        sums = np.zeros(2 * cells.n)
        sums[cells.used] = np.add.reduceat(terms, cells.starts)
        found += factors * np.fft.rfft(sums)[:n]
        factors *= frequencies / (power + 1)
        terms = terms * cells.distances
    return np.real(found * np.exp(frequencies / (2 * cells.n)))


def _error(coefficients: _Floats, bandwidth: float) -> float:
    """The integral of the absolute smoothed residuals, by the midpoint rule."""
    k = np.arange(min(len(coefficients), math.ceil(_REACH / (math.pi * bandwidth)) + 1))
    n = 1 << math.ceil(math.log2(_POINTS / bandwidth))
    # cos(k pi (j + 1/2) / n) for j < n is half of an inverse transform of length 2 n
    spectrum = coefficients[: len(k)] * np.exp(-0.5 * (k * math.pi * bandwidth) ** 2 + 0.5j * math.pi * k / n)
    smoothed = np.fft.irfft(spectrum, 2 * n)[:n] * (2 * n)
    return float(np.abs(smoothed).mean())
