"""Evaluate a staircase.

Kernels here assume clean input: at least one step, steps in ascending order of score, no NaN among the queries.

    left[0] <= right[0] < left[1] <= right[1] < ..       ends of the steps, -inf and inf allowed
"""

from libc.math cimport INFINITY

ctypedef fused floating:
    float
    double

ctypedef struct Stairs:
    Py_ssize_t n
    const double *left
    const double *right
    const double *values
    double below        # what a query below left[0] gets
    double above        # what a query above right[n - 1] gets
    bint linear


def evaluate(
    const floating[:] queries not None,    # IN
    const double[::1] left not None,       # IN
    const double[::1] right not None,      # IN
    const double[::1] values not None,     # IN
    double below,
    double above,
    bint linear,
    double[:] out not None,                # OUT one per query
):
    """out[i] = the staircase at queries[i]."""
    cdef Stairs stairs = Stairs(left.shape[0], &left[0], &right[0], &values[0], below, above, linear)
    cdef Py_ssize_t i
    with nogil:
        for i in range(queries.shape[0]):
            out[i] = value_at(&stairs, queries[i])


cdef inline double value_at(const Stairs *stairs, double query) noexcept nogil:
    cdef Py_ssize_t step
    if query < stairs.left[0]:
        return stairs.below
    if query > stairs.right[stairs.n - 1]:
        return stairs.above
    step = last_at_or_below(stairs.left, stairs.n, query)
    if not stairs.linear or query <= stairs.right[step]:
        return stairs.values[step]
    return between(stairs, step, query)


cdef inline Py_ssize_t last_at_or_below(const double *left, Py_ssize_t n, double query) noexcept nogil:
    """The last index with left[index] <= query, given left[0] <= query: halving without branches."""
    cdef Py_ssize_t base = 0, half
    while n > 1:
        half = n >> 1
        base += half if left[base + half] <= query else 0
        n -= half
    return base


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
