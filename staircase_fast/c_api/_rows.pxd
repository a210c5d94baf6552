# Checks of the rows that callers of the C API pass.
#
# Each function returns a status of cython_api.pxd; `bad_row` gets the index of the invalid row, if there is one.

from libc.math cimport INFINITY, isfinite
from libc.stdint cimport uint64_t

from staircase_fast.arithmetic._buckets cimport Range, range_of
from staircase_fast.arithmetic._column_scan cimport Monotonicity, monotonicity_of
from staircase_fast.arithmetic._double_double cimport Twofold
from staircase_fast.cython_api cimport (
    SF_ALL_WEIGHTS_ZERO, SF_NEGATIVE_COUNT, SF_NO_ROWS, SF_NULL_POINTER, SF_OK, SF_SCORE_IS_NAN, SF_TARGET_NOT_FINITE,
    SF_TOO_MANY_ROWS, SF_WEIGHTS_OVERFLOW, SF_WEIGHT_NEGATIVE, SF_WEIGHT_NOT_FINITE,
)
from staircase_fast.streams._online_memory cimport add_weights, total_weight

ctypedef struct Rows:
    const double *x
    const double *y
    const double *w           # or NULL: all are 1
    Py_ssize_t n

# Found by one pass over each column.
ctypedef struct Ranges:
    Monotonicity scores
    Range targets
    Range weights


cdef inline int at_row(Py_ssize_t row, int status, Py_ssize_t *bad_row) noexcept nogil:
    """Set `bad_row` unless it is NULL; return the status."""
    if bad_row != NULL:
        bad_row[0] = row
    return status


cdef inline int check_rows(Rows rows, Ranges *found, Py_ssize_t *bad_row) noexcept nogil:
    """Check rows in the same order as `fit`."""
    cdef int status = SF_OK
    if rows.n < 0:
        return SF_NEGATIVE_COUNT
    if <uint64_t>rows.n >> 48:
        return SF_TOO_MANY_ROWS
    if rows.n == 0:
        return SF_NO_ROWS
    if rows.x == NULL or rows.y == NULL:
        return SF_NULL_POINTER
    found.scores = monotonicity_of(rows.x, rows.n)
    if found.scores.first_nan >= 0:
        return at_row(found.scores.first_nan, SF_SCORE_IS_NAN, bad_row)
    found.weights = Range(-1, 1.0, 1.0, 1.0, True)
    if rows.w != NULL:
        found.weights = range_of(rows.w, rows.n)
        status = check_weights(rows, found.weights, bad_row)
        if status != SF_OK and status != SF_ALL_WEIGHTS_ZERO:
            return status
    found.targets = range_of(rows.y, rows.n)
    if found.targets.first_bad >= 0:
        return at_row(found.targets.first_bad, SF_TARGET_NOT_FINITE, bad_row)
    return status


cdef inline int check_weights(Rows rows, Range weights, Py_ssize_t *bad_row) noexcept nogil:
    cdef Py_ssize_t i = 0
    if weights.first_bad >= 0:
        return at_row(weights.first_bad, SF_WEIGHT_NOT_FINITE, bad_row)
    if weights.lowest < 0:
        while i < rows.n - 1 and rows.w[i] >= 0:
            i += 1
        return at_row(i, SF_WEIGHT_NEGATIVE, bad_row)
    if weights.highest == 0:
        return SF_ALL_WEIGHTS_ZERO
    if weights.highest * <double>rows.n == INFINITY:
        if total_weight(add_weights(Twofold(0.0, 0.0), rows.w, rows.n)) == INFINITY:
            return SF_WEIGHTS_OVERFLOW
    return SF_OK


cdef inline int check_row(double score, double target, double weight) noexcept nogil:
    if score != score:
        return SF_SCORE_IS_NAN
    if not isfinite(weight):
        return SF_WEIGHT_NOT_FINITE
    if weight < 0:
        return SF_WEIGHT_NEGATIVE
    return SF_OK if isfinite(target) else SF_TARGET_NOT_FINITE
