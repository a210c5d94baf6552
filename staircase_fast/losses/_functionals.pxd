# The formulas of each loss: its value, and its slope l'(z) in two parts that can be summed without cancellation.
#
# r = z - y; p is the parameter of the loss.  The formula, the targets and the values of each loss stand above it.
#
# Some slopes level off far from the minimum: tanh(40) is 1 in floating point, and 1 - 1 is 0 although
# tanh(40) - tanh(60) is not.  A slope therefore has two parts, each with full relative precision: `big`, its limit, and
# `tail`, the rest.  Big parts are summed exactly; where they cancel, the tails decide.  `curvature` is l''(z), or a
# substitute where it does not exist: it only speeds up the search for roots.  Huber and similar losses compute slopes
# in units of p (`unit_of` in `_slopes.pxd`), so that the limit is 1.
#
# Preconditions: y and p within their domains, z within the values or at their ends; no NaN.

from libc.math cimport INFINITY, exp, expm1, fabs, log, log1p, pow, sqrt
from libc.stdint cimport int32_t, uint32_t, uint64_t
from libc.string cimport memcpy

from staircase_fast.arithmetic._branchless cimport lesser

ctypedef struct Slope:
    double big
    double tail
    double curvature


cdef inline double exp_minus(double x) noexcept nogil:
    """exp(-x) for x >= 0, with an error of at most two ulps; it underflows gradually, as exp does.

    Unlike a call of exp from the C library, this can be vectorised by the compiler.
    """
    cdef double size = lesser(x, 746.0), r, square, low, middle, high, sum        # exp(-746) rounds to 0
    cdef int32_t k = <int32_t>(size * 1.4426950408889634 + 0.5)
    # 2**-k as a product: for large k it is not a normal number
    cdef uint64_t half = <uint64_t><uint32_t>(1023 - (k >> 1)) << 52
    cdef uint64_t other_half = <uint64_t><uint32_t>(1023 - (k - (k >> 1))) << 52
    cdef double factor, other_factor
    r = (k * 0.6931471803691238 - size) + k * 1.9082149292705877e-10     # k log 2 - x: the first product is exact
    square = r * r                             # few operations wait for others: Estrin's scheme
    low = (0.5 + r * (1.0 / 6.0)) + square * (1.0 / 24.0 + r * (1.0 / 120.0))
    middle = (1.0 / 720.0 + r * (1.0 / 5040.0)) + square * (1.0 / 40320.0 + r * (1.0 / 362880.0))
    high = (1.0 / 3628800.0 + r * (1.0 / 39916800.0)) + square * (1.0 / 479001600.0 + r * (1.0 / 6227020800.0))
    sum = low + square * square * (middle + square * square * high)
    memcpy(&factor, &half, sizeof(double))
    memcpy(&other_factor, &other_half, sizeof(double))
    return (1.0 + (r + square * sum)) * factor * other_factor


# Squared error: r**2.  Any targets, any values.

ctypedef struct SquaredError:
    double p              # none

cdef inline double squared_error(double z, double y) noexcept nogil:
    return (z - y) * (z - y)

cdef inline Slope squared_error_slope(double z, double y) noexcept nogil:
    return Slope(0.0, 2.0 * (z - y), 2.0)


# Log loss: -y log z - (1 - y) log(1 - z).  Targets and values in [0, 1]; 0 log 0 = 0.

ctypedef struct LogLoss:
    double p              # none

cdef inline double log_loss(double z, double y) noexcept nogil:
    return (-y * log(z) if y > 0.0 else 0.0) + (-(1.0 - y) * log1p(-z) if y < 1.0 else 0.0)

cdef inline Slope log_loss_slope(double z, double y) noexcept nogil:
    cdef double left = y / z if y > 0.0 else 0.0, right = (1.0 - y) / (1.0 - z) if y < 1.0 else 0.0
    cdef double slope = (z - y) / (z * (1.0 - z)) if 0.0 < z < 1.0 else right - left
    return Slope(0.0, slope, (left / z if y > 0.0 else 0.0) + (right / (1.0 - z) if y < 1.0 else 0.0))


cdef inline double minus_log1p(double x) noexcept nogil:
    """x - log(1 + x) for -1/2 <= x <= 1/2, where the difference would cancel."""
    # with t = x / (2 + x): log(1 + x) = 2 (t + t**3/3 + t**5/5 + ..), and x - 2 t = x t
    cdef double t = x / (2.0 + x), square = t * t, sum = 0.0
    cdef int k
    for k in range(35, 1, -2):                 # t**2 <= 1/9: the rest is below rounding
        sum = square * (sum + 1.0 / k)
    return t * (x - 2.0 * sum)


cdef inline double log_quotient(double a, double b) noexcept nogil:
    """log(a / b) for a >= 0, b > 0, also if the quotient overflows or underflows."""
    cdef double quotient = a / b
    return log(quotient) if 1e-290 < quotient < INFINITY else log(a) - log(b)


# Poisson deviance: 2 (y log(y / m) - y + m) with m = e z; 0 log 0 = 0.  Targets >= 0, values >= 0, exposure e > 0.

ctypedef struct PoissonDeviance:
    double p              # exposure

cdef inline double poisson_deviance(double e, double z, double y) noexcept nogil:
    cdef double mean = e * z, x = mean - y
    if y == 0.0 or mean == INFINITY:
        return 2.0 * mean
    if fabs(x) <= 0.5 * y:
        return 2.0 * (y * minus_log1p(x / y))
    return 2.0 * (x - y * (log_quotient(mean, y) if mean > 0.0 else log(e) + log_quotient(z, y)))

cdef inline Slope poisson_deviance_slope(double e, double z, double y) noexcept nogil:
    cdef double rate = y / z if y > 0.0 else 0.0
    return Slope(0.0, 2.0 * (e - rate), 2.0 * (rate / z) if y > 0.0 else 0.0)


# Gamma deviance: 2 (log(z / y) + y / z - 1).  Targets > 0, values > 0.

ctypedef struct GammaDeviance:
    double p              # none

cdef inline double gamma_deviance(double z, double y) noexcept nogil:
    if fabs(y - z) <= 0.5 * z:
        return 2.0 * minus_log1p((y - z) / z)
    return 2.0 * (y / z - 1.0 - log_quotient(y, z))

cdef inline Slope gamma_deviance_slope(double z, double y) noexcept nogil:
    return Slope(0.0, 2.0 * ((z - y) / z / z), 2.0 * ((2.0 * y - z) / z / z / z))


# Tweedie deviance of power p <= 0 or p >= 1: 2 (y**(2-p) / ((1-p)(2-p)) - y z**(1-p) / (1-p) + z**(2-p) / (2-p)), and
# the limits of that at 1 and 2.  Values >= 0; targets: any for p <= 0, >= 0 for 1 <= p < 2, > 0 from 2 on.

ctypedef struct TweedieDeviance:
    double p              # power

cdef inline double tweedie_deviance(double p, double z, double y) noexcept nogil:
    if p == 0.0:
        return (z - y) * (z - y)
    if p == 1.0:
        return poisson_deviance(1.0, z, y)
    if p == 2.0:
        return gamma_deviance(z, y)
    return 2.0 * (
        (pow(y, 2.0 - p) if y > 0.0 else 0.0) / ((1.0 - p) * (2.0 - p))
        - (y * pow(z, 1.0 - p) if y != 0.0 else 0.0) / (1.0 - p) + pow(z, 2.0 - p) / (2.0 - p)
    )

cdef inline Slope tweedie_deviance_slope(double p, double z, double y) noexcept nogil:
    if z == 0.0 or p <= 0.0:
        return Slope(0.0, 2.0 * (z - y) * pow(z, -p) if z != y else 0.0, 0.0)
    return Slope(0.0, 2.0 * ((z - y) / z) * pow(z, 1.0 - p), 2.0 * pow(z, -p))


# Logistic loss: log(1 + exp(z + o)) - y (z + o).  Targets in [0, 1], values are log-odds, any offset o.

ctypedef struct Logistic:
    double p              # offset

cdef inline double logistic(double o, double z, double y) noexcept nogil:
    cdef double x = z + o
    if x > 0.0:
        return ((1.0 - y) * x if y < 1.0 else 0.0) + log1p(exp(-x))
    return (-y * x if y > 0.0 else 0.0) + log1p(exp(x))

cdef inline Slope logistic_slope(double o, double z, double y) noexcept nogil:
    cdef double x = z + o, e = exp(-fabs(x)), tail = e / (1.0 + e)
    if x > 0.0:
        return Slope(1.0 - y, -tail, tail / (1.0 + e))
    return Slope(-y, tail, tail / (1.0 + e))


# Linex: exp(a r) - a r - 1.  Any targets, any values, shape a != 0.

ctypedef struct Linex:
    double p              # shape

cdef inline double linex(double a, double z, double y) noexcept nogil:
    cdef double x = a * (z - y), sum = 1.0
    cdef int k
    if fabs(x) > 0.5:
        return expm1(x) - x
    for k in range(16, 2, -1):                 # x**2/2 (1 + x/3 (1 + x/4 (..))): the difference would cancel
        sum = 1.0 + sum * x / k
    return 0.5 * x * x * sum

cdef inline Slope linex_slope(double a, double z, double y) noexcept nogil:
    cdef double e = expm1(a * (z - y))
    return Slope(0.0, a * e, a * (a * (1.0 + e)))


# Expectile of level t in (0, 1): |t - [r > 0]| r**2.  Any targets, any values.

ctypedef struct Expectile:
    double p              # level

cdef inline double expectile(double t, double z, double y) noexcept nogil:
    return (1.0 - t if z > y else t) * (z - y) * (z - y)

cdef inline Slope expectile_slope(double t, double z, double y) noexcept nogil:
    cdef double factor = 2.0 * (1.0 - t if z > y else t)
    return Slope(0.0, factor * (z - y), factor)


# Quantile of level t in (0, 1): (1 - t) r for r > 0, -t r else.  Any targets, any values.  At r = 0 the slope jumps: it
# is the one to the right of there; the one to the left is that of the next value below.

ctypedef struct Quantile:
    double p              # level

cdef inline double quantile(double t, double z, double y) noexcept nogil:
    return (1.0 - t) * (z - y) if z > y else t * (y - z)

cdef inline Slope quantile_slope(double t, double z, double y) noexcept nogil:
    return Slope(1.0 if z >= y else 0.0, -t, 0.0)      # in exact sums, 1 - t would not be 1 - t


# Huber loss: r**2 / 2 for |r| <= d, d (|r| - d / 2) else.  Any targets, any values, d > 0.

ctypedef struct Huber:
    double p              # delta

cdef inline double huber(double d, double z, double y) noexcept nogil:
    cdef double size = fabs(z - y)
    return 0.5 * size * size if size <= d else d * (size - 0.5 * d)

cdef inline Slope huber_slope(double d, double z, double y) noexcept nogil:
    cdef double q = (z - y) / d
    if q >= 1.0:
        return Slope(1.0, 0.0, 0.0)
    if q <= -1.0:
        return Slope(-1.0, 0.0, 0.0)
    return Slope(0.0, q, 1.0 / d)


# Pseudo-Huber loss: d**2 (sqrt(1 + (r/d)**2) - 1).  Any targets, any values, d > 0.

ctypedef struct PseudoHuber:
    double p              # delta

cdef inline double pseudo_huber(double d, double z, double y) noexcept nogil:
    cdef double size = fabs(z - y), q = size / d
    return size * (size / (1.0 + sqrt(1.0 + q * q))) if q < 1e150 else d * size

cdef inline Slope pseudo_huber_slope(double d, double z, double y) noexcept nogil:
    cdef double q = (z - y) / d, size = lesser(fabs(q), 1e150), root = sqrt(1.0 + size * size)
    cdef double curvature = 1.0 / (root * root * root) / d
    if size < 1.0:
        return Slope(0.0, q / root, curvature)
    return Slope(1.0 if q > 0.0 else -1.0, (-1.0 if q > 0.0 else 1.0) / (root * (root + size)), curvature)


# Log-cosh: s**2 log cosh(r/s).  Any targets, any values, scale s > 0.

ctypedef struct LogCosh:
    double p              # scale

cdef inline double log_cosh(double s, double z, double y) noexcept nogil:
    cdef double q = fabs(z - y) / s
    if q < 1e-4:
        return (z - y) * (z - y) * (0.5 - q * q / 12.0)
    if q < 1.0:                                # log cosh q = log(1 + 2 sinh(q/2)**2), and cosh q - 1 would cancel
        return s * (s * log1p(expm1(q) * expm1(q) / (2.0 * exp(q))))
    return s * (s * (q + log1p(exp(-2.0 * q)) - 0.6931471805599453))

cdef inline Slope log_cosh_slope(double s, double z, double y) noexcept nogil:
    cdef double q = (z - y) / s, size = fabs(q), x = q * q, e = exp_minus(2.0 * size), inverse = 1.0 / s
    # the continued fraction of tanh, cut off where the rest is below rounding; or 2 exp(-2q) / (1 + exp(-2q)), which is
    # what it lacks to 1: both are prepared, and one kept, because which it is cannot be predicted
    cdef double near_top = q * (2027025.0 + x * (270270.0 + x * (6930.0 + x * 36.0)))
    cdef double near_bottom = 2027025.0 + x * (945945.0 + x * (51975.0 + x * (630.0 + x)))
    cdef double side = 1.0 if q > 0.0 else -1.0
    cdef double top = near_top if size < 0.6 else -2.0 * e * side
    cdef double bottom = near_bottom if size < 0.6 else 1.0 + e
    cdef double tail = top / bottom, rest = fabs(tail)
    # 1 - tanh**2; far away, where tanh is 1 - rest, 1 - (1 - rest)**2 without what cancels
    return Slope(
        0.0 if size < 0.6 else side, tail, inverse * (1.0 - rest * rest if size < 0.6 else rest * (2.0 - rest))
    )


# Power: |r|**p / p, p > 1.  Any targets, any values.

ctypedef struct Power:
    double p              # exponent

cdef inline double power(double p, double z, double y) noexcept nogil:
    return pow(fabs(z - y), p) / p

cdef inline Slope power_slope(double p, double z, double y) noexcept nogil:
    cdef double r = z - y, size = fabs(r), slope
    if p == 1.5:
        slope = sqrt(size)
    elif p == 2.0:
        slope = size
    else:
        slope = pow(size, p - 1.0)
    return Slope(0.0, slope if r > 0.0 else -slope, (p - 1.0) * slope / size if size > 0.0 else 0.0)
