# How wide integers must be so that no sum is ever rounded.

from libc.math cimport fabs, frexp, ldexp

from staircase_fast.arithmetic._column_scan cimport Range
from staircase_fast.arithmetic._exact cimport Scale

# A column in which every entry is a multiple of 2**unit and less than 2**(unit + bits) in magnitude.
ctypedef struct Width:
    int unit
    int bits
    int last              # 2**last is at most the smallest magnitude that is not zero; where all are zero, unit + bits


cdef inline Scale scale_of(Range targets, Range weights, Py_ssize_t n) noexcept nogil:
    """The scale in which `n` products of a target and a weight, and any sums of them, are integers."""
    cdef Scale scale
    cdef Width y = width_of(targets), w = width_of(weights)
    cdef int count = 0, s_total, w_total
    while n >> count:
        count += 1
    w_total = w.bits + count
    s_total = y.bits + w_total + 1                       # one more for the sign
    scale.y_unit = y.unit
    scale.w_unit = w.unit
    scale.s_words = (s_total + 63) // 64
    scale.w_words = (w_total + 63) // 64
    scale.narrow = targets.integral and weights.integral and s_total <= 62
    scale.greatest = max(fabs(targets.lowest), fabs(targets.highest))
    scale.tame = (
        (scale.greatest == 0 or 1e-70 < scale.greatest < 1e70) and weights.least > 1e-70 and weights.highest < 1e70
    )
    scale.cut = scale.cut_error = scale.cut_weight = 0.0
    if scale.tame and not scale.narrow:
        set_cuts(&scale, y, w)
    return scale


cdef inline Scale roomy_scale_of(Range targets, Range weights, Py_ssize_t n) noexcept nogil:
    """The scale of sums of n rows and many more.

    Units are powers of 2**64, and there is room for many rows: sums that must be wider, because a finer or a larger
    number arrives, become so by whole words, and never often.
    """
    cdef int count = 32 if n >> 32 == 0 else 62           # bits of as many rows as there is room for
    cdef Scale scale = scale_of(targets, weights, (<Py_ssize_t>1 << count) - 1)
    cdef int w_bits
    if scale.narrow:
        return scale
    scale.y_unit &= ~63                                   # rounded down, of negative ones too
    scale.w_unit &= ~63
    w_bits = top_of(weights) - scale.w_unit + count
    scale.w_words = (w_bits + 63) // 64
    scale.s_words = (top_of(targets) - scale.y_unit + w_bits + 1 + 63) // 64
    return scale


cdef inline int top_of(Range column) noexcept nogil:
    """The exponent of a power of two, at least 2, that is above all magnitudes."""
    cdef int above
    frexp(max(fabs(column.lowest), fabs(column.highest)), &above)
    return min(max(above, 1), 1024)                      # C leaves the exponents of infinity and NaN open


cdef inline void set_cuts(Scale *scale, Width y, Width w) noexcept nogil:
    """The constants that cut products, their rounding errors and weights in two, or zeros.

    Numbers below 2**top that are multiples of 2**unit are cut at 2**(top - 43).  1024 of the upper parts sum to less
    than 2**(top + 10), 53 bits; 1024 of the lower ones to less than 2**(top - 34), 53 bits where top - unit <= 87.
    """
    cdef int unit = y.unit + w.unit, top = unit + y.bits + w.bits
    # a product's last bit is 53 below its first, or is that of the exact product, whichever is higher
    cdef int product_unit = max(y.last + w.last - 52, unit)
    if top - product_unit > 87 or top - 53 - unit > 87 or w.bits > 87 or not -900 < unit < top < 900:
        return
    scale.cut = ldexp(1.5, top + 9)
    scale.cut_error = ldexp(1.5, top - 53 + 9)
    scale.cut_weight = ldexp(1.5, w.unit + w.bits + 9)


cdef inline Width width_of(Range column) noexcept nogil:
    cdef double greatest = max(fabs(column.lowest), fabs(column.highest))
    cdef int above, least, unit
    if greatest == 0:
        return Width(0, 1, 1)
    frexp(greatest, &above)
    frexp(column.least, &least)
    above = min(above, 1024)                             # C leaves the exponents of infinity and NaN open
    least = min(max(least, -1073), 1024)
    unit = 0 if column.integral else max(least - 53, -1074)
    return Width(unit, max(above - unit, 1), least - 1)
