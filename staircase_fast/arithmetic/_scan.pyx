"""One pass over a column: what the layers above must know before they may trust it.

Kernels here assume n >= 1 and nothing else.
"""

from staircase_fast.arithmetic._column_scan cimport (
    BUCKET_ROWS, Bucket, Monotonicity, Range, fill_buckets, monotonicity_of, range_of,
)
from staircase_fast.arithmetic._exact cimport Scale
from staircase_fast.arithmetic._scale cimport roomy_scale_of as roomy_scale_for, scale_of as scale_for
from staircase_fast.arithmetic._types cimport floating, number


def extent(const number[::1] values not None):
    """(first entry that is not finite or -1, lowest, highest, least magnitude above 0, all integers?)."""
    cdef Range found
    with nogil:
        found = range_of(&values[0], values.shape[0])
    return fields_of_range(found)


def scale_of(object targets not None, object weights not None, Py_ssize_t n):
    """The fields of the exact.Scale for `n` rows with these extents."""
    return fields_of(scale_for(unpacked(targets), unpacked(weights), n))


def roomy_scale_of(object targets not None, object weights not None, Py_ssize_t n):
    """The same for rows of which more may come."""
    return fields_of(roomy_scale_for(unpacked(targets), unpacked(weights), n))


cdef Range unpacked(object extent) except *:
    cdef Range r
    r.first_bad, r.lowest, r.highest, r.least, r.integral = extent
    return r


cdef object fields_of(Scale s):
    sizes = s.y_unit, s.w_unit, s.s_words, s.w_words
    return *sizes, bool(s.narrow), bool(s.tame), s.greatest, s.cut, s.cut_error, s.cut_weight


def order(const floating[::1] scores not None):
    """(index of the first NaN or -1, whether scores never decrease, never increase; if so, whether two are equal)."""
    cdef Monotonicity rising
    with nogil:
        rising = monotonicity_of(&scores[0], scores.shape[0])
    return rising.first_nan, bool(rising.up), bool(rising.down), bool(rising.tied)


ROWS_PER_BUCKET = BUCKET_ROWS


def summarise(
    const number[::1] targets not None,        # IN  in score order, no two of one score
    const double[::1] weights not None,        # IN  one per target, or empty: all are 1
    double[:, ::1] buckets not None,           # OUT Bucket: one for each ROWS_PER_BUCKET rows
):
    """Fill the buckets; return the `extent` of the targets and that of the weights."""
    cdef Py_ssize_t n = targets.shape[0]
    cdef const double *w = &weights[0] if weights.shape[0] else NULL
    cdef Range y_range, w_range
    cdef Bucket *out = <Bucket *>&buckets[0, 0] if buckets.shape[0] else NULL
    with nogil:
        y_range = fill_buckets(&targets[0], w, NULL, n, out, &w_range)
    return fields_of_range(y_range), fields_of_range(w_range)


cdef object fields_of_range(Range r):
    return r.first_bad, r.lowest, r.highest, r.least, bool(r.integral)
