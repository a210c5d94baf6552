# Tail probabilities of sums, and the means at which a tail has a given probability.
#
# The sum of an interval of rows is binomial, Poisson, gamma or normal.  Three tails cover the first three:
#
#   BETA      P(binomial(total, v) >= shape)                      increases with v; shape is an integer
#   LOWER     P(gamma(shape) <= v) = P(Poisson(v) >= shape)       increases with v; shape may be any number > 0
#   UPPER     P(gamma(shape) >= v) = P(Poisson(v) < shape)        decreases with v
#
# Each is computed only on the side of v where it is small: v at most shape / total, at most shape, at least shape.
# There it is a density times a sum of positive terms or a continued fraction, so nothing cancels.
#
# The logarithm of each tail is concave in log v: it is the integral of a density of log v that is log-concave, such as
# exp(shape * t - exp(t)) (Prekopa).  A tangent therefore lies above it, and Newton's method in log v, wherever it
# starts, ends on the side where the tail is at most the given probability.  Bounds are never too narrow.
#
# Densities are those of Loader (2000, "Fast and accurate computation of binomial probabilities"): the error of the
# logarithm stays far below MARGIN for up to 2**53 trials.  Rounding within MARGIN counts against the bound.

from libc.math cimport INFINITY, erfc, exp, fabs, fmax, log, log1p, sqrt

cdef enum Kind:
    BETA
    LOWER
    UPPER

ctypedef struct Shape:
    Kind kind
    double shape
    double total              # of BETA only

ctypedef struct Tail:
    double log_p
    double slope              # the derivative of log_p by log v

cdef extern from *:
    """
    #define STAIRCASE_MARGIN 1e-9           /* of the logarithm of a probability */
    #define STAIRCASE_CLOSE 1e-7            /* Newton's method stops this close to the given logarithm */
    #define STAIRCASE_HALF_LOG_2PI 0.9189385332046727418
    """
    const double MARGIN "STAIRCASE_MARGIN"
    const double CLOSE "STAIRCASE_CLOSE"
    const double HALF_LOG_2PI "STAIRCASE_HALF_LOG_2PI"

cdef enum:
    ITERATIONS = 100


cdef inline double log_factorial(double x) noexcept nogil:
    """log Gamma(x + 1) for 0 <= x < 16, by Stirling's series at x + 16."""
    cdef double product = 1.0, y = x + 16.0
    cdef int i
    for i in range(1, 17):
        product *= x + i
    return (y + 0.5) * log(y) - y + HALF_LOG_2PI + stirling_series(y) - log(product)


cdef inline double stirling_series(double x) noexcept nogil:
    cdef double s = 1.0 / (x * x)
    return (1.0 / 12 - (1.0 / 360 - (1.0 / 1260 - (1.0 / 1680 - s / 1188) * s) * s) * s) / x


cdef inline double stirling_error(double x) noexcept nogil:
    """log Gamma(x + 1) minus Stirling's formula for it, x > 0."""
    if x < 16.0:
        return log_factorial(x) - ((x + 0.5) * log(x) - x + HALF_LOG_2PI)
    return stirling_series(x)


cdef inline double deviance(double x, double mean) noexcept nogil:
    """x log(x / mean) + mean - x, without cancellation if x is close to the mean."""
    cdef double u = (mean - x) / x
    if fabs(u) < 0.5:
        return x * (u - log1p(u))
    return x * log(x / mean) + mean - x


cdef inline double log_poisson(double x, double mean) noexcept nogil:
    """log(mean**x exp(-mean) / Gamma(x + 1)) for x > 0."""
    if x < 16.0:
        return x * log(mean) - mean - log_factorial(x)
    return -stirling_series(x) - deviance(x, mean) - 0.5 * log(x) - HALF_LOG_2PI


cdef inline double log_binomial(double x, double n, double p) noexcept nogil:
    """The logarithm of the probability of x successes in n trials, x > 0."""
    cdef double y = n - x
    if y == 0.0:
        return n * log(p)
    return (
        stirling_error(n) - stirling_error(x) - stirling_error(y) - deviance(x, n * p) - deviance(y, n * (1.0 - p))
        + 0.5 * (log(n / x) - log(y)) - HALF_LOG_2PI
    )


cdef inline Tail tail_at(Shape which, double v) noexcept nogil:
    """The tail at v, on the side where it is small; elsewhere the probability is reported as 1."""
    cdef double k = which.shape, term = 1.0, total = 1.0, ratio = 0.0, j = 1.0
    if which.kind == UPPER:
        if v <= k:
            return Tail(0.0, 0.0)
        if v == INFINITY:
            return Tail(-INFINITY, 0.0)
        ratio = fraction_of(k, v)
        return Tail(log_poisson(k, v) + log(k * ratio), -1.0 / ratio)
    if k <= 0.0 or v >= (k / which.total if which.kind == BETA else k):
        return Tail(0.0, 0.0)
    if v <= 0.0:
        return Tail(-INFINITY, 0.0)
    # ratios of neighbouring terms decrease, so a geometric series bounds the rest
    while True:
        ratio = (which.total - k - j + 1.0) * v / ((k + j) * (1.0 - v)) if which.kind == BETA else v / (k + j)
        if not term * ratio > 1e-13 * total * (1.0 - ratio):       # NaN ends the loop as well
            break
        term *= ratio
        total += term
        j += 1.0
    total += fmax(term * ratio / (1.0 - ratio), 0.0)
    if which.kind == BETA:
        return Tail(log_binomial(k, which.total, v) + log(total), k / total)
    return Tail(log_poisson(k, v) + log(total), k / total)


cdef inline double fraction_of(double k, double v) noexcept nogil:
    """P(gamma(k) >= v) * Gamma(k) * exp(v) / v**k for v > k: Legendre's continued fraction, from the front (Lentz)."""
    cdef double b = v + 1.0 - k, c = 1e300, d = 1.0 / b, value = d, factor = 0.0, i = 1.0
    while fabs(factor - 1.0) > 1e-15 and i < 1e7:
        b += 2.0
        d = 1.0 / (b - i * (i - k) * d)
        c = b - i * (i - k) / c
        factor = c * d
        value *= factor
        i += 1.0
    return value


cdef inline double solve(Shape which, double log_p) noexcept nogil:
    """A v whose tail is at most exp(log_p), and hardly less; the last v with a small tail if there is none."""
    cdef double k = which.shape, z = sqrt(-2.0 * log_p), v, centre, gap
    cdef Tail tail
    cdef int _iteration
    if which.kind != UPPER and k <= 0.0:
        return 0.0
    # a normal approximation that tends to err on the safe side
    if which.kind == BETA:
        centre = k + 0.5 * z * z
        v = k / which.total * k / (centre + z * sqrt(k * (which.total - k) / which.total + 0.25 * z * z))
    else:
        v = sqrt(k + 0.25 * z * z) + (0.5 * z if which.kind == UPPER else -0.5 * z)
        v *= v
    for _iteration in range(ITERATIONS):
        tail = tail_at(which, v)
        gap = tail.log_p - (log_p - MARGIN)
        if gap <= 0.5 * MARGIN and (gap > -CLOSE or tail.slope == 0.0):
            break
        if tail.slope == 0.0:          # the tail is not small here, so the limit lies where it begins to be
            return k / which.total if which.kind == BETA else k
        v *= exp(-gap / tail.slope)
    return v


cdef inline double log_normal_tail(double z) noexcept nogil:
    """log P(normal >= z) for z > 0, or a bound above it (Mills); elsewhere the probability is reported as 1."""
    if z <= 0.0:
        return 0.0
    if z > 30.0:
        return -0.5 * z * z - log(z) - HALF_LOG_2PI
    return log(0.5 * erfc(z * 0.7071067811865475244))
