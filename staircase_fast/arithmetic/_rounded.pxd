# Round exact sums and their quotients to the nearest double, ties to even.
#
# Two doubles per sum usually decide the rounding (`quick_ratio`); otherwise the exact quotient is compared with the
# midpoints between neighbouring doubles (`careful_ratio`).
#
# Preconditions: magnitudes without sign, a nonzero divisor, a result within the range of doubles.

from libc.math cimport INFINITY, NAN, fabs, ldexp, nextafter
from libc.stdint cimport int64_t, uint32_t, uint64_t

from staircase_fast.arithmetic._double_double cimport two_product, two_sum
from staircase_fast.arithmetic._exact cimport MAX_S_WORDS, Dyadic, Scale, dyadic, is_negative, magnitude, multiply
from staircase_fast.arithmetic._types cimport double_of


cdef inline double rounded(
    const uint64_t *above, int n_above, const uint64_t *below, int n_below, int unit
) noexcept nogil:
    """above/below * 2**unit, rounded to nearest, ties to even."""
    cdef double value = quick_ratio(above, n_above, below, n_below, unit)
    if value != value:
        return careful_ratio(above, n_above, below, n_below, unit)
    return value


cdef inline double narrow_mean(int64_t s, int64_t w) noexcept nogil:
    """s/w rounded to nearest; zero is +0.0."""
    cdef uint64_t above = <uint64_t>(-s if s < 0 else s), below = <uint64_t>w
    cdef double mean
    if above <= <uint64_t>1 << 53 and below <= <uint64_t>1 << 53:
        mean = <double>above / <double>below             # both exact: one rounding
    else:
        mean = rounded(&above, 1, &below, 1, 0)
    return 0.0 - mean if s < 0 else mean


cdef inline double rounded_mean(Scale scale, const uint64_t *sums) noexcept nogil:
    """S/W rounded to nearest; zero is +0.0."""
    return signed_ratio(scale, sums, sums + scale.s_words, scale.w_words, scale.y_unit)


cdef inline double rounded_sum(Scale scale, const uint64_t *sums) noexcept nogil:
    """S rounded to nearest; zero is +0.0."""
    cdef uint64_t one = 1
    return signed_ratio(scale, sums, &one, 1, scale.y_unit + scale.w_unit)


cdef inline double signed_ratio(
    Scale scale, const uint64_t *sums, const uint64_t *below, int n_below, int unit
) noexcept nogil:
    """S/below * 2**unit."""
    cdef uint64_t s[MAX_S_WORDS]
    cdef double ratio
    s[0] = 0                                             # only to avoid a warning of the compiler
    magnitude(sums, scale.s_words, s)
    ratio = rounded(s, scale.s_words, below, n_below, unit)
    return 0.0 - ratio if is_negative(sums, scale.s_words) else ratio


cdef inline double rounded_weight(Scale scale, const uint64_t *sums) noexcept nogil:
    cdef uint64_t one = 1
    return rounded(sums + scale.s_words, scale.w_words, &one, 1, scale.w_unit)


# Quick: two doubles per sum.

cdef inline bint split_words(const uint64_t *words, int n_words, double *high, double *low) noexcept nogil:
    """Split a magnitude below 2**106 into its rounded value and the exact remainder; return False if it is larger."""
    cdef double middle, rest
    cdef int i
    for i in range(2, n_words):
        if words[i]:
            return False
    middle = <double>(words[0] >> 32) * 4294967296.0
    rest = <double><uint32_t>words[0]
    high[0] = 0.0
    if n_words > 1:
        if words[1] >> 42:
            return False
        high[0] = <double>words[1] * 18446744073709551616.0
    low[0] = two_sum(middle, rest, &rest)                # rest: the part of the lower word that does not fit a double
    high[0] = two_sum(high[0], low[0], low)
    low[0] += rest
    high[0] = two_sum(high[0], low[0], low)
    return True


cdef inline double quick_ratio(
    const uint64_t *above, int n_above, const uint64_t *below, int n_below, int unit
) noexcept nogil:
    """The same as careful_ratio, or NaN if two doubles do not decide the rounding."""
    cdef double a_high, a_low, b_high, b_low, quotient, product, error, rest, margin
    if not split_words(above, n_above, &a_high, &a_low) or not split_words(below, n_below, &b_high, &b_low):
        return NAN
    if not -900 < unit < 900:
        return NAN
    quotient = a_high / b_high
    product = two_product(quotient, b_high, &error)
    rest = (((a_high - product) - error) + (a_low - quotient * b_low)) / b_high
    margin = fabs(rest) * 1e-10 + quotient * 1e-28       # far above the error of `rest`
    if quotient + (rest - margin) != quotient + (rest + margin):
        return NAN
    return (quotient + rest) * power_of_two(unit)        # 2**-106 < quotient < 2**106: normal


# Careful: numbers of any size, by comparison with the midpoints between doubles.

cdef inline double leading(const uint64_t *words, int n_words, int *exponent) noexcept nogil:
    """A magnitude as double * 2**exponent, with a relative error below 2**-51 (5.42e-20 is 2**-64)."""
    cdef int top = n_words - 1
    while top > 0 and words[top] == 0:
        top -= 1
    exponent[0] = 64 * top
    return <double>words[top] + (<double>words[top - 1] * 5.421010862427522e-20 if top else 0.0)


cdef inline double approximate_ratio(
    const uint64_t *above, int n_above, const uint64_t *below, int n_below, int unit
) noexcept nogil:
    """above/below * 2**unit, with a relative error below 2**-50, or an absolute one below 2**-1074 if subnormal."""
    cdef int up, down
    cdef double ratio = leading(above, n_above, &up)
    ratio /= leading(below, n_below, &down)
    unit += up - down
    if -900 < unit < 900:                    # a ratio of two words lies within 2**+-64: the product is normal
        return ratio * power_of_two(unit)
    return ldexp(ratio, unit)


cdef inline double power_of_two(int exponent) noexcept nogil:
    return double_of(<uint64_t>(exponent + 1023) << 52)


cdef inline uint64_t shifted_word(const uint64_t *words, int n_words, int shift, int i) noexcept nogil:
    """Word i of words << shift, shift >= 0."""
    cdef int at = i - (shift >> 6), r = shift & 63
    cdef uint64_t word = words[at] << r if 0 <= at < n_words else 0
    if r and 0 < at <= n_words:
        word |= words[at - 1] >> (64 - r)
    return word


cdef inline int compare_ratio(
    const uint64_t *above, int n_above, const uint64_t *below, int n_below, int unit, uint64_t m, int q
) noexcept nogil:
    """The sign of above * 2**unit - below * m * 2**q."""
    cdef uint64_t product[MAX_S_WORDS + 1]
    cdef uint64_t left, right
    cdef int i, left_shift = max(unit - q, 0), right_shift = max(q - unit, 0)
    multiply(below, n_below, &m, 1, product)
    for i in range(max(n_above + (left_shift >> 6), n_below + 1 + (right_shift >> 6)), -1, -1):
        left = shifted_word(above, n_above, left_shift, i)
        right = shifted_word(product, n_below + 1, right_shift, i)
        if left != right:
            return 1 if left > right else -1
    return 0


cdef inline bint rounds_above(
    const uint64_t *above, int n_above, const uint64_t *below, int n_below, int unit, double value
) noexcept nogil:
    """Whether above/below * 2**unit is past the midpoint after `value`, or on it and `value` is odd."""
    cdef Dyadic d = dyadic(value, -1074)
    cdef int order = compare_ratio(above, n_above, below, n_below, unit, 2 * d.m + 1, d.q - 1)
    return order > 0 or (order == 0 and d.m & 1)


cdef inline double careful_ratio(
    const uint64_t *above, int n_above, const uint64_t *below, int n_below, int unit
) noexcept nogil:
    """above/below * 2**unit, rounded to nearest; infinite or NaN if the divisor is zero or the ratio overflows.

    Starts from an approximation and moves to a neighbour until the exact ratio lies between the midpoints around it.
    """
    cdef double value = approximate_ratio(above, n_above, below, n_below, unit)
    if value > 1.7976931348623157e308:
        value = 1.7976931348623157e308
    while value < INFINITY and rounds_above(above, n_above, below, n_below, unit, value):
        value = nextafter(value, INFINITY)
    while value > 0 and not rounds_above(above, n_above, below, n_below, unit, nextafter(value, 0.0)):
        value = nextafter(value, 0.0)
    return value
