"""Evaluate a staircase.

Kernels here assume clean input: at least one step, steps in ascending order of score, no NaN among the queries.

    left[0] <= right[0] < left[1] <= right[1] < ..       ends of the steps, -inf and inf allowed
"""

from libc.math cimport INFINITY
from libc.stdint cimport int32_t

from staircase_fast._cells cimport BATCH, Map, bucket_of, find_buckets, floating, map_of
from staircase_fast._steps cimport Stairs, started, started_by


def locate(
    const floating[::1] scores not None, const double[:, ::1] bucket_map not None, int32_t[::1] out not None
):
    """out[i] = the bucket of scores[i]."""
    with nogil:
        if scores.shape[0]:
            find_buckets(map_of(bucket_map), &scores[0], scores.shape[0], &out[0])


def index_steps(
    const double[::1] left not None,              # IN
    const double[:, ::1] bucket_map not None,     # IN  Cell
    int32_t[::1] first not None,                  # OUT one more than there are buckets
):
    """first[b] = how many steps start in a bucket before b."""
    cdef Map cells = map_of(bucket_map)
    cdef Py_ssize_t step, b = 0, bucket
    with nogil:
        for step in range(left.shape[0]):
            bucket = bucket_of(cells, left[step])
            while b <= bucket:
                first[b] = <int32_t>step
                b += 1
        while b < first.shape[0]:
            first[b] = <int32_t>left.shape[0]
            b += 1


def evaluate(
    const floating[::1] queries not None,         # IN
    const double[::1] left not None,              # IN
    const double[::1] right not None,             # IN
    const double[::1] values not None,            # IN
    double below,
    double above,
    bint linear,
    const double[:, ::1] bucket_map not None,     # IN  Cell, or empty: no index
    const int32_t[::1] first not None,            # IN  from index_steps
    double[::1] out not None,                     # OUT one per query
):
    """out[i] = the staircase at queries[i]."""
    cdef Stairs stairs = Stairs(
        left.shape[0], &left[0], &right[0], &values[0], below, above, linear, NULL
    )
    cdef Py_ssize_t i, start, size
    cdef int32_t buckets[BATCH]
    cdef Map cells
    if bucket_map.shape[0]:
        cells = map_of(bucket_map)
        stairs.first = &first[0]
    with nogil:
        if stairs.first != NULL:
            start = 0
            while start < queries.shape[0]:
                size = min(BATCH, queries.shape[0] - start)
                find_buckets(cells, &queries[start], size, buckets)
                for i in range(start, start + size):
                    out[i] = value_at(&stairs, started_by(&stairs, buckets[i - start], queries[i]), queries[i])
                start += size
        else:
            for i in range(queries.shape[0]):
                out[i] = value_at(&stairs, started(stairs.left, stairs.n, queries[i]), queries[i])


cdef inline double value_at(const Stairs *stairs, Py_ssize_t n_started, double query) noexcept nogil:
    """The value at a query at or above the start of the first `n_started` steps."""
    if n_started == 0:
        return stairs.below
    if n_started == stairs.n and query > stairs.right[n_started - 1]:
        return stairs.above
    if not stairs.linear or query <= stairs.right[n_started - 1]:
        return stairs.values[n_started - 1]
    return between(stairs, n_started - 1, query)


cdef inline double between(const Stairs *stairs, Py_ssize_t step, double query) noexcept nogil:
    """The straight line over the gap right[step] < query < left[step + 1].

    An end at infinity is infinitely far away: a finite query gets the value at the other end, or half of each where
    both are infinite.
    """
    cdef double start = stairs.right[step], end = stairs.left[step + 1]
    cdef double low = stairs.values[step], high = stairs.values[step + 1], part, value
    if start == -INFINITY:
        part = 0.5 if end == INFINITY else 1.0
    elif end == INFINITY:
        part = 0.0
    elif end - start == INFINITY:            # the gap overflows: halve first (far from subnormal, so exact)
        part = (query * 0.5 - start * 0.5) / (end * 0.5 - start * 0.5)
    else:
        part = (query - start) / (end - start)
    if -INFINITY < high - low < INFINITY:
        value = low + part * (high - low)
    else:
        value = low * (1.0 - part) + high * part
    # rounding may overshoot the end by a bit
    return min(max(value, min(low, high)), max(low, high))
