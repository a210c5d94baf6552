# The Scale of some rows: units and widths of integers that hold all sums of these rows exactly.

from libc.math cimport fabs, frexp, ldexp

from staircase_fast.arithmetic._buckets cimport Range
from staircase_fast.arithmetic._exact cimport Scale

cdef enum:
    PART_BITS = 42        # doubles hold the sum of 1024 parts, of two numbers each, without rounding: 53 bits

# A column in which every entry is a multiple of 2**unit and less than 2**(unit + bits) in magnitude.
ctypedef struct Width:
    int unit
    int bits


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
    scale.small = scale.narrow and s_total + w_total <= 62
    scale.greatest = max(fabs(targets.lowest), fabs(targets.highest))
    scale.tame = (
        (scale.greatest == 0 or 1e-70 < scale.greatest < 1e70) and weights.least > 1e-70 and weights.highest < 1e70
    )
    scale.cut = scale.cut_weight = 0.0
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
    """Set the cuts of products and of weights (`_row_sums.pxd`), or leave them 0: all parts need at most PART_BITS."""
    cdef int unit = y.unit + w.unit, top = unit + y.bits + w.bits
    if y.bits > 2 * PART_BITS or w.bits > 2 * PART_BITS or not -900 < unit < top < 900:
        return
    # the last bit of 1.5 * 2**e is 2**(e - 52)
    scale.cut = ldexp(1.5, top - PART_BITS + 52)
    scale.cut_weight = ldexp(1.5, w.unit + w.bits - PART_BITS + 52)


cdef inline Width width_of(Range column) noexcept nogil:
    cdef double greatest = max(fabs(column.lowest), fabs(column.highest))
    cdef int above, least, unit
    if greatest == 0:
        return Width(0, 1)
    frexp(greatest, &above)
    frexp(column.least, &least)
    above = min(above, 1024)                             # frexp: exponent unspecified for infinity and NaN
    least = min(max(least, -1073), 1024)
    unit = 0 if column.integral else max(least - 53, -1074)
    return Width(unit, max(above - unit, 1))
