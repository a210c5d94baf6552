# What the C-level API is given, judged in C: rows of doubles.
#
# Each function returns a status of cython_api.pxd, and where a row is at fault its index.

from libc.math cimport INFINITY, isfinite
from libc.stdint cimport uint64_t

from staircase_fast.arithmetic._column_scan cimport Monotonicity, Range, monotonicity_of, range_of
from staircase_fast.arithmetic._double_double cimport two_sum
from staircase_fast.cython_api cimport (
    SF_ALL_WEIGHTS_ZERO, SF_NEGATIVE_COUNT, SF_NULL_POINTER, SF_OK, SF_SCORE_IS_NAN, SF_TARGET_NOT_FINITE,
    SF_TOO_MANY_ROWS, SF_WEIGHTS_OVERFLOW, SF_WEIGHT_NEGATIVE, SF_WEIGHT_NOT_FINITE,
)

ctypedef struct Rows:
    const double *x
    const double *y
    const double *w           # or NULL: all are 1
    Py_ssize_t n

# What one pass over each column finds.
ctypedef struct Found:
    Monotonicity scores
    Range targets
    Range weights

# A sum of weights in twice the precision of a double, divided by 2**60: it cannot overflow.
ctypedef struct Total:
    double high
    double low


cdef inline int judge_form(Rows rows) noexcept nogil:
    if rows.n < 0:
        return SF_NEGATIVE_COUNT
    if <uint64_t>rows.n >> 48:
        return SF_TOO_MANY_ROWS
    return SF_NULL_POINTER if rows.n and (rows.x == NULL or rows.y == NULL) else SF_OK


cdef inline int judge_entries(Rows rows, Found *found, Py_ssize_t *bad_row) noexcept nogil:
    """Judge n >= 1 rows, in the order in which `fit` does."""
    cdef int status = SF_OK
    found.scores = monotonicity_of(rows.x, rows.n)
    if found.scores.first_nan >= 0:
        bad_row[0] = found.scores.first_nan
        return SF_SCORE_IS_NAN
    found.weights = Range(-1, 1.0, 1.0, 1.0, True)
    if rows.w != NULL:
        found.weights = range_of(rows.w, rows.n)
        status = judge_weights(rows, found.weights, bad_row)
        if status != SF_OK and status != SF_ALL_WEIGHTS_ZERO:
            return status
    found.targets = range_of(rows.y, rows.n)
    if found.targets.first_bad >= 0:
        bad_row[0] = found.targets.first_bad
        return SF_TARGET_NOT_FINITE
    return status


cdef inline int judge_weights(Rows rows, Range weights, Py_ssize_t *bad_row) noexcept nogil:
    cdef Py_ssize_t i = 0
    if weights.first_bad >= 0:
        bad_row[0] = weights.first_bad
        return SF_WEIGHT_NOT_FINITE
    if weights.lowest < 0:
        while i < rows.n - 1 and rows.w[i] >= 0:
            i += 1
        bad_row[0] = i
        return SF_WEIGHT_NEGATIVE
    if weights.highest == 0:
        return SF_ALL_WEIGHTS_ZERO
    if weights.highest * <double>rows.n == INFINITY and not is_finite(total_of(Total(0.0, 0.0), rows)):
        return SF_WEIGHTS_OVERFLOW
    return SF_OK


cdef inline int judge_row(double score, double target, double weight) noexcept nogil:
    if score != score:
        return SF_SCORE_IS_NAN
    if not isfinite(weight):
        return SF_WEIGHT_NOT_FINITE
    if weight < 0:
        return SF_WEIGHT_NEGATIVE
    return SF_OK if isfinite(target) else SF_TARGET_NOT_FINITE


cdef inline Total with_weight(Total total, double weight) noexcept nogil:
    cdef double rest
    total.high = two_sum(total.high, weight * 8.673617379884035e-19, &rest)      # 2**-60
    total.low += rest
    total.high = two_sum(total.high, total.low, &total.low)
    return total


cdef inline Total total_of(Total total, Rows rows) noexcept nogil:
    """The total, and the weights of these rows."""
    cdef Py_ssize_t i
    if rows.w == NULL:
        return with_weight(total, <double>rows.n)
    for i in range(rows.n):
        total = with_weight(total, rows.w[i])
    return total


cdef inline bint is_finite(Total total) noexcept nogil:
    return total.high * 1152921504606846976.0 < INFINITY                         # 2**60
