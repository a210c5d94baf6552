# The Scale of some rows: units and widths of integers that hold all sums of these rows exactly.

from libc.math cimport fabs, frexp, ldexp

from staircase_fast.arithmetic._column_scan cimport Range
from staircase_fast.arithmetic._exact cimport Scale

# A column in which every entry is a multiple of 2**unit and less than 2**(unit + bits) in magnitude.
ctypedef struct Width:
    int unit
    int bits
    int last              # 2**last is at most the smallest nonzero magnitude; 1 if all entries are zero


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
    """The scale for n rows if more may follow.

    Units are powers of 2**64, and there is room for many more rows.  If a finer or a larger number arrives, the sums
    are widened by whole words; that is rare.
    """
    cdef int count = 32 if n >> 32 == 0 else 62           # room for 2**count rows
    cdef Scale scale = scale_of(targets, weights, (<Py_ssize_t>1 << count) - 1)
    cdef int w_bits
    if scale.narrow:
        return scale
    scale.y_unit &= ~63                                   # rounds down, also if negative
    scale.w_unit &= ~63
    w_bits = top_of(weights) - scale.w_unit + count
    scale.w_words = (w_bits + 63) // 64
    scale.s_words = (top_of(targets) - scale.y_unit + w_bits + 1 + 63) // 64
    return scale


cdef inline int top_of(Range column) noexcept nogil:
    """The exponent of a power of two that is above all magnitudes; at least 1."""
    cdef int above
    frexp(max(fabs(column.lowest), fabs(column.highest)), &above)
    return min(max(above, 1), 1024)                      # frexp: exponent unspecified for infinity and NaN


cdef inline void set_cuts(Scale *scale, Width y, Width w) noexcept nogil:
    """Set the cuts of products, of their rounding errors and of weights (`_exact.Pending`), or leave them 0.

    Numbers below 2**top that are multiples of 2**unit are split at 2**(top - 43).  1024 upper parts sum to less than
    2**(top + 10), which is 53 bits; 1024 lower parts sum to less than 2**(top - 34), 53 bits if top - unit <= 87.
    """
    cdef int unit = y.unit + w.unit, top = unit + y.bits + w.bits
    # the last bit of a rounded product: 52 below its first bit, or that of the exact product, whichever is higher
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
    above = min(above, 1024)                             # frexp: exponent unspecified for infinity and NaN
    least = min(max(least, -1073), 1024)
    unit = 0 if column.integral else max(least - 53, -1074)
    return Width(unit, max(above - unit, 1), least - 1)
