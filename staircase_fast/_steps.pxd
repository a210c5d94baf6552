# Which step a score is on.
#
# Assumed of the caller: at least one step, no NaN.

from libc.stdint cimport int32_t

ctypedef struct Stairs:
    Py_ssize_t n
    const double *left
    const double *right
    const double *values
    double below              # what a query below left[0] gets
    double above              # what a query above right[n - 1] gets
    bint linear
    const int32_t *first      # the index: steps that start in buckets before each; or NULL


cdef inline Py_ssize_t started_by(const Stairs *stairs, Py_ssize_t bucket, double query) noexcept nogil:
    """How many steps start at or below the query: all of the buckets before its own, and some of its own."""
    cdef Py_ssize_t step = stairs.first[bucket], end = stairs.first[bucket + 1]
    if end - step > 1:
        return step + started(stairs.left + step, end - step, query)
    # one step or none starts in this bucket: no branch on which
    return step + ((step < end) & (stairs.left[step - (step == stairs.n)] <= query))


cdef inline Py_ssize_t started(const double *left, Py_ssize_t n, double query) noexcept nogil:
    """How many entries are at or below the query: halving without branches."""
    cdef const double *base = left
    cdef Py_ssize_t half
    while n > 1:
        half = n >> 1
        base += half if base[half - 1] <= query else 0
        n -= half
    return (base - left) + (base[0] <= query)
