"""One pass over a column, before anything else is computed from it.

Preconditions: n >= 1, any values.
"""

from libc.stdint cimport uint8_t
from libc.string cimport memset

from staircase_fast.arithmetic._buckets cimport BUCKET_ROWS, Range, scan_buckets, scan_range
from staircase_fast.arithmetic._buckets_avx2 cimport Bucket
from staircase_fast.arithmetic._column_scan cimport Monotonicity, monotonicity_of
from staircase_fast.arithmetic._exact cimport Scale, unpacked
from staircase_fast.arithmetic._means cimport few_rows, mean_of_few, quick_mean
from staircase_fast.arithmetic._row_sums cimport Pending, pend_rows
from staircase_fast.arithmetic._scale cimport roomy_scale_of as roomy_scale_for, scale_of as scale_for
from staircase_fast.arithmetic._score_scan cimport ScoreScan, copy_scores as copy_scores_to
from staircase_fast.arithmetic._simd cimport has_avx2
from staircase_fast.arithmetic._types cimport floating, number

ROWS_PER_BUCKET = BUCKET_ROWS


def order(const floating[::1] scores not None):
    """(index of the first NaN or -1, whether scores never decrease, never increase; if so, whether two are equal)."""
    cdef Monotonicity found
    with nogil:
        found = monotonicity_of(&scores[0], scores.shape[0])
    return found.first_nan, bool(found.up), bool(found.down), bool(found.tied)


def copy_scores(
    const double[::1] scores not None,         # IN
    double[::1] out not None,                  # OUT may be the scores
    uint8_t[::1] tied not None,                # OUT
    bint vectors,
):
    """Copy scores and compare neighbours; return (whether there is a NaN, falls, whether there are ties)."""
    cdef ScoreScan found = copy_scores_to(&scores[0], scores.shape[0], &out[0], &tied[0], vectors and has_avx2())
    return bool(found.nan), found.falls, bool(found.tied)


def extent(const number[::1] values not None, bint vectors=True):
    """The fields of the exact.Extent of a column."""
    cdef Range found
    with nogil:
        found = scan_range(&values[0], values.shape[0], vectors and has_avx2())
    return fields_of(found)


def summarise(
    const number[::1] targets not None,        # IN  in score order, no two of one score
    const double[::1] weights not None,        # IN  one per target, or empty: all are 1
    double[:, ::1] buckets not None,           # OUT Bucket: one for each ROWS_PER_BUCKET rows
    bint vectors=True,
):
    """Fill the buckets; return the `extent` of the targets and that of the weights."""
    cdef Py_ssize_t n = targets.shape[0]
    cdef const double *w = &weights[0] if weights.shape[0] else NULL
    cdef Range y_range, w_range
    cdef Bucket *out = <Bucket *>&buckets[0, 0] if buckets.shape[0] else NULL
    with nogil:
        y_range = scan_buckets(&targets[0], w, NULL, n, out, &w_range, vectors and has_avx2())
    return fields_of(y_range), fields_of(w_range)


def scale_of(object targets not None, object weights not None, Py_ssize_t n):
    """The exact.Scale for `n` rows with these extents, as a dict."""
    return scale_for(range_from(targets), range_from(weights), n)


def roomy_scale_of(object targets not None, object weights not None, Py_ssize_t n):
    """The same if more rows may follow."""
    return roomy_scale_for(range_from(targets), range_from(weights), n)


def fields_in_kernels(object scale not None):
    """The struct that kernels make of an exact.Scale, as a dict.  Only tests need it."""
    return unpacked(scale)


def has_vectors():
    """Whether sums use AVX2 here."""
    return bool(has_avx2())


def mean(const double[::1] y not None, const double[::1] w not None, object scale not None, bint vectors):
    """The rounded mean, or NaN if it is in doubt, and the rounded total weight.  Only tests need it."""
    cdef double weight = 0.0
    cdef Scale exact = unpacked(scale)
    if w.shape[0] == 0 and y.shape[0] <= few_rows(&exact):
        return mean_of_few(&y[0], y.shape[0]), <double>y.shape[0]
    found = quick_mean(&exact, &y[0], &w[0] if w.shape[0] else NULL, y.shape[0], vectors and has_avx2(), &weight)
    return found, weight


def pending_sums(const double[::1] y not None, const double[::1] w not None, object scale not None):
    """The four parts of the products and both parts of the weights, summed over at most 1024 rows.

    Only tests need it.
    """
    cdef Pending pending[2]
    cdef int part
    memset(pending, 0, 2 * sizeof(Pending))
    pend_rows(unpacked(scale), pending, &y[0], &w[0] if w.shape[0] else NULL, 0, y.shape[0])
    return [
        (&pending[0].product[0])[part] + (&pending[1].product[0])[part] for part in range(6)
    ], pending[0].rows + pending[1].rows


cdef Range range_from(object extent) except *:
    cdef Range r
    r.first_bad, r.lowest, r.highest, r.least, r.integral = extent
    return r


cdef object fields_of(Range r):
    return r.first_bad, r.lowest, r.highest, r.least, bool(r.integral)
