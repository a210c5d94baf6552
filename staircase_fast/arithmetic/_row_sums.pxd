# Exact sums of many rows.
#
# Integer arithmetic for every row would be slow.  Instead, each double is split into short parts: adding and
# subtracting a large constant, a *cut*, rounds it to a multiple of the cut's last bit, and the remainder is exact.
# Doubles hold the sums of such parts over CUT_ROWS rows without rounding.  These pending sums are then added to the
# integers at once.
#
#     targets, weights     two parts of PART_BITS (`_scale.pxd`)
#     products w*y         the rounded product and its rounding error, in four parts together: each cut is 2**-PART_BITS
#                          times the one before.  The error is too small for the first part.
#
# Sums that are never rounded are the same in any order.
#
# Preconditions: those of _exact.pxd.

from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memset

from staircase_fast.arithmetic._double_double cimport two_product
from staircase_fast.arithmetic._exact cimport Scale, add_double, add_sample, add_shifted
from staircase_fast.arithmetic._scale cimport PART_BITS
from staircase_fast.arithmetic._types cimport number

cdef enum:
    CUT_ROWS = 1024

ctypedef struct Pending:
    double product[4]     # sums of the parts of w*y; without weights only the first two are used
    double weight[2]      # sums of both parts of w; not used without weights
    int64_t rows


cdef inline double next_cut(double cut) noexcept nogil:
    return cut / (<int64_t>1 << PART_BITS)


cdef inline double split(double *sum, double value, double cut) noexcept nogil:
    """Add the upper part of `value` to the sum; return the remainder."""
    cdef double part = (value + cut) - cut
    sum[0] += part
    return value - part


cdef inline void pend(Scale scale, Pending *pending, double y) noexcept nogil:
    """Add one row of weight 1 to the pending sums."""
    pending.product[1] += split(&pending.product[0], y, scale.cut)
    pending.rows += 1


cdef inline void pend_weighted(Scale scale, Pending *pending, double y, double w) noexcept nogil:
    cdef double error, product = two_product(y, w, &error), second = next_cut(scale.cut), third = next_cut(second)
    product = split(&pending.product[0], product, scale.cut)
    product = split(&pending.product[1], product, second)
    error = split(&pending.product[1], error, second)
    product = split(&pending.product[2], product, third)
    error = split(&pending.product[2], error, third)
    pending.product[3] += product + error
    pending.weight[1] += split(&pending.weight[0], w, scale.cut_weight)
    pending.rows += 1


cdef inline void flush(Scale scale, Pending *pending, uint64_t *sums, bint weighted) noexcept nogil:
    """Add the pending sums to the exact sums, and reset them."""
    cdef int unit = scale.y_unit + scale.w_unit, part
    for part in range(4 if weighted else 2):
        add_double(sums, scale.s_words, pending.product[part], unit)
    for part in range(2 if weighted else 0):
        add_double(sums + scale.s_words, scale.w_words, pending.weight[part], scale.w_unit)
    if not weighted:
        # the unit of weights is not 1 if other batches of a stream have fractional weights
        add_shifted(sums + scale.s_words, scale.w_words, <uint64_t>pending.rows, 0, -scale.w_unit, False)
    memset(pending, 0, sizeof(Pending))


cdef inline void add_rows(
    Scale scale, uint64_t *sums, const number *y, const double *weights, Py_ssize_t start, Py_ssize_t end
) noexcept nogil:
    """S += w*y and W += w for the rows [start, end); if `weights` is NULL, all are 1."""
    cdef Pending pending[2]
    cdef Py_ssize_t i, stop
    # a double may not represent an integer of 2**53 or more
    cdef bint representable = number is float or number is double or scale.greatest < 9007199254740992.0
    if scale.cut == 0 or end - start < 4 or not representable:
        for i in range(start, end):
            add_sample(scale, sums, y[i], 1.0 if weights == NULL else weights[i])
        return
    memset(pending, 0, 2 * sizeof(Pending))
    while start < end:
        stop = min(end, start + CUT_ROWS)
        pend_rows(scale, pending, y, weights, start, stop)
        flush(scale, &pending[0], sums, weights != NULL)
        if pending[1].rows:
            flush(scale, &pending[1], sums, weights != NULL)
        start = stop


cdef inline void pend_rows(
    Scale scale, Pending *pending, const number *y, const double *weights, Py_ssize_t i, Py_ssize_t end
) noexcept nogil:
    """Add the rows [i, end), at most CUT_ROWS, to two pending sums.

    Rows alternate between both sums, so that consecutive additions do not wait for each other.
    """
    for i in range(i, end):
        if weights == NULL:
            pend(scale, &pending[i & 1], y[i])
        else:
            pend_weighted(scale, &pending[i & 1], y[i], weights[i])
