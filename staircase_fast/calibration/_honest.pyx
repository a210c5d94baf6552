"""Confidence bounds of a monotone curve from many intervals of observations.

An observation has all rows of one score.  Its sum and its weight have a distribution with the mean of the curve there.
The curve increases along an interval of observations, so the sum of the interval is stochastically at most what it
would be if all its means were that of its last observation.  If the sum is so large that this has probability below a,
then the mean of the last observation, and of all that follow, is above the mean that makes it exactly a.

This is the side ABOVE, which gives lower bounds of the curve.  The side BELOW gives upper bounds: it uses small sums,
and the caller reverses the observations, so a bound again holds for the last observation of its interval and all later.

Intervals of level l have 2**l observations.  They start at multiples of 2**l / 4; one more ends at the last
observation.
`honest.py` explains the probabilities and proves the promise.

Preconditions: at least one observation, weights > 0, work space as typed.
"""

from libc.math cimport sqrt

from staircase_fast.arithmetic._double_double cimport Twofold, add
from staircase_fast.calibration._tails cimport (
    BETA, LOWER, UPPER, Shape, log_normal_tail, solve, tail_at
)

cdef enum Family:
    BINOMIAL
    POISSON
    GAMMA
    NORMAL

FAMILIES = {"binomial": BINOMIAL, "poisson": POISSON, "gamma": GAMMA, "normal": NORMAL}


def accumulate(
    const double[::1] column not None,         # IN
    double[:, ::1] sums not None,              # OUT two rows, high and low parts; one entry more than the column
):
    """Sums of the first 0, 1, 2, .. entries, in twice the precision of a double."""
    cdef Twofold total = Twofold(0.0, 0.0)
    cdef Py_ssize_t i
    with nogil:
        sums[0, 0] = sums[1, 0] = 0.0
        for i in range(column.shape[0]):
            add(&total, column[i])
            sums[0, i + 1] = total.hi
            sums[1, i + 1] = total.lo


cdef inline double difference(const double[:, ::1] sums, Py_ssize_t start, Py_ssize_t end) noexcept nogil:
    return (sums[0, end] - sums[0, start]) + (sums[1, end] - sums[1, start])


cdef inline Shape shape_of(Family family, bint above, double s, double w) noexcept nogil:
    """The tail of a sum: P(sum >= s) if above, else P(sum <= s)."""
    if family == BINOMIAL:
        return Shape(BETA, s if above else w - s, w)
    if family == POISSON:
        return Shape(LOWER, s, 0.0) if above else Shape(UPPER, s + 1.0, 0.0)
    return Shape(UPPER if above else LOWER, w, 0.0)


cdef inline double convert(Family family, bint above, double s, double w, double x) noexcept nogil:
    """From a mean to the argument of the tail, or back."""
    if family == BINOMIAL:
        return x if above else 1.0 - x
    return s / x


cdef inline double log_tail(Family family, bint above, double s, double w, double mean) noexcept nogil:
    """log P(sum >= s) if above, else log P(sum <= s), for rows with this mean; 0 if it is not small."""
    if family == GAMMA and s <= 0.0:           # less than its rounding error
        return 0.0
    if family == NORMAL:
        return log_normal_tail((s - mean * w) / sqrt(w) * (1.0 if above else -1.0))
    if family == POISSON:
        return tail_at(shape_of(family, above, s, w), mean * w).log_p
    return tail_at(shape_of(family, above, s, w), convert(family, above, s, w, mean)).log_p


cdef inline double bound_of(
    Family family, bint above, double s, double w, double log_p, double z
) noexcept nogil:
    """The mean at which the tail has probability exp(log_p), or one that is a little farther out."""
    cdef double v
    if family == NORMAL:
        return (s - z * sqrt(w)) / w if above else (s + z * sqrt(w)) / w
    v = solve(shape_of(family, above, s, w), log_p)
    if family == POISSON:
        return v / w
    return convert(family, above, s, w, v)


def bound(
    Family family,
    bint above,
    const double[:, ::1] sums not None,        # IN  `accumulate` of weight times target of observations
    const double[:, ::1] weights not None,     # IN  the same of weights; gamma and normal: both over the dispersion
    const double[::1] forecasts not None,      # IN  of observations; or empty: no test
    const double[::1] log_p not None,          # IN  log probability of each level
    const double[::1] log_shares not None,     # IN  of that, the log of its share in the whole
    const double[::1] z not None,              # IN  normal quantile of each level
    double rounding,                           # an upper bound of the rounding error of a difference of `sums`
    double[::1] bounds not None,               # OUT one per observation; IN the trivial bound
):
    """Fill the bounds; return the log of the least total probability at which the forecasts leave them."""
    cdef Py_ssize_t n = bounds.shape[0], level, size, step, start, end, next_one
    cdef double best, s, w, tail, least = 0.0, side = 1.0 if above else -1.0
    with nogil:
        # long intervals first: their bounds spare most of the work for the many short ones
        for level in range(log_p.shape[0] - 1, -1, -1):
            size = (<Py_ssize_t>1) << level
            step = max(size >> 2, 1)
            best = bounds[0]
            start = next_one = 0
            while True:
                end = start + size
                s = difference(sums, start, end) - side * rounding     # towards no bound
                w = difference(weights, start, end)
                while next_one < end:
                    best = max(best * side, bounds[next_one] * side) * side
                    next_one += 1
                if log_tail(family, above, s, w, best) < log_p[level]:
                    best = max(best * side, bound_of(family, above, s, w, log_p[level], z[level]) * side) * side
                    bounds[end - 1] = best
                if forecasts.shape[0]:
                    tail = log_tail(family, above, s, w, forecasts[end - 1]) - log_shares[level]
                    least = min(least, tail)
                if end == n:
                    break
                start = min(start + step, n - size)
        best = bounds[0]
        for start in range(n):
            best = max(best * side, bounds[start] * side) * side
            bounds[start] = best
    return least
