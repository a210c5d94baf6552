"""Evaluate a staircase.

Kernels here assume clean input: at least one step, steps in ascending order of score, their ends and values no NaN.

    left[0] <= right[0] < left[1] <= right[1] < ..       ends of the steps, -inf and inf allowed
"""

from libc.math cimport INFINITY, NAN
from libc.stdint cimport int32_t, int64_t

from staircase_fast._cells cimport BATCH, Map, bucket_of, find_buckets, floating, map_of
from staircase_fast._nan cimport first_nan, has_nan
from staircase_fast._select cimport greater, lesser, prefetch
from staircase_fast._steps cimport Entry, started, started_by

ctypedef struct Stairs:
    Py_ssize_t n
    const double *left
    const double *right
    const double *values

ctypedef struct Line:
    double start
    double slope
    double low                # where it starts
    double high               # where it ends

cdef enum:
    MANY_ENTRIES = 1 << 14    # more do not stay in the nearest caches


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
    double[:, ::1] index not None,                # OUT Entry, one more than there are buckets
):
    cdef Map cells = map_of(bucket_map)
    cdef Entry *entries = <Entry *>&index[0, 0]
    cdef Py_ssize_t step = 0, start, b, n = left.shape[0]
    with nogil:
        for b in range(index.shape[0]):
            start = step
            while step < n and bucket_of(cells, left[step]) == b:
                step += 1
            entries[b].before = ~start if step - start > 1 else start
            entries[b].edge = left[start] if step - start == 1 else NAN


def draw_lines(
    const double[::1] left not None,              # IN
    const double[::1] right not None,             # IN
    const double[::1] values not None,            # IN
    double[:, ::1] lines not None,                # OUT Line, one per step
):
    cdef Stairs stairs = Stairs(left.shape[0], &left[0], &right[0], &values[0])
    cdef Py_ssize_t step
    with nogil:
        for step in range(stairs.n):
            (<Line *>&lines[step, 0])[0] = line_after(&stairs, step)


def evaluate(
    const floating[::1] queries not None,         # IN
    const double[::1] left not None,              # IN
    const double[::1] right not None,             # IN
    const double[::1] values not None,            # IN
    bint linear,
    bint outside,                                 # IN  whether queries outside the steps get NaN, not the nearest value
    const double[:, ::1] bucket_map not None,     # IN  Cell, or empty: no index
    const double[:, ::1] index not None,          # IN  from index_steps
    const double[:, ::1] lines not None,          # IN  from draw_lines, or empty: draw what is asked for
    double[::1] out not None,                     # OUT one per query
):
    """out[i] = the staircase at queries[i]; return the index of the first NaN among these, or -1."""
    cdef Stairs stairs = Stairs(left.shape[0], &left[0], &right[0], &values[0])
    cdef Map cells
    cdef const Entry *entries = NULL
    cdef const Line *drawn = NULL
    cdef Py_ssize_t i, start = 0, size = 0, n = queries.shape[0]
    cdef int64_t counts[BATCH]
    cdef bint missing = False
    if index.shape[0]:
        cells = map_of(bucket_map)
        entries = <const Entry *>&index[0, 0]
    if lines.shape[0]:
        drawn = <const Line *>&lines[0, 0]
    with nogil:
        while start < n and not missing:
            size = min(BATCH, n - start)
            if entries != NULL:
                count_started(cells, entries, index.shape[0] > MANY_ENTRIES, &stairs, &queries[start], size, counts)
            else:
                for i in range(size):
                    counts[i] = started(stairs.left, stairs.n, queries[start + i])
            if linear:
                follow_lines(&stairs, drawn, &queries[start], size, counts, &out[start])
            else:
                for i in range(size):
                    out[start + i] = stairs.values[counts[i] - (counts[i] > 0)]
            if outside:
                for i in range(start, start + size):
                    out[i] = NAN if queries[i] < stairs.left[0] or queries[i] > stairs.right[stairs.n - 1] else out[i]
            missing = has_nan(&queries[start], size)
            start += size
        if missing:
            start += first_nan(&queries[start - size], size) - size
    return start if missing else -1


cdef inline void count_started(
    Map cells, const Entry *entries, bint many, const Stairs *stairs, const floating *queries, Py_ssize_t n,
    int64_t *counts
) noexcept nogil:
    """How many steps start at or below each query."""
    cdef int32_t buckets[BATCH]
    cdef Py_ssize_t i
    find_buckets(cells, queries, n, buckets)
    if many:
        for i in range(n):
            prefetch(entries + buckets[i])
    for i in range(n):
        counts[i] = started_by(entries + buckets[i], stairs.left, queries[i])
        if many:
            prefetch(stairs.values + counts[i])


# Between the right end of a step and the left end of the next, values lie on a straight line.

cdef inline Line line_after(const Stairs *stairs, Py_ssize_t step) noexcept nogil:
    cdef Line line = Line(stairs.right[step], 0.0, stairs.values[step], stairs.values[step])
    if step < stairs.n - 1:
        line.high = stairs.values[step + 1]
        line.slope = (line.high - line.low) / (stairs.left[step + 1] - line.start)
        if not -INFINITY < line.slope < INFINITY or line.slope == 0.0:
            line.slope = NAN                  # something is infinite, or overflows
    return line


cdef inline void follow_lines(
    const Stairs *stairs, const Line *drawn, const floating *queries, Py_ssize_t n, const int64_t *counts, double *out
) noexcept nogil:
    cdef Py_ssize_t i, step
    cdef Line line
    if drawn == NULL:
        for i in range(n):
            step = counts[i] - (counts[i] > 0)
            line = line_after(stairs, step)
            out[i] = on_line(stairs, &line, step, queries[i])
    else:
        for i in range(n):
            step = counts[i] - (counts[i] > 0)
            out[i] = on_line(stairs, drawn + step, step, queries[i])


cdef inline double on_line(const Stairs *stairs, const Line *line, Py_ssize_t step, double query) noexcept nogil:
    if line.slope != line.slope:
        return on_odd_line(stairs, step, query)
    # rounding may overshoot the end by a bit
    return held(line.low + greater(query - line.start, 0.0) * line.slope, line.low, line.high)


cdef inline double held(double value, double a, double b) noexcept nogil:
    """The value, or the nearest between a and b."""
    return lesser(greater(value, lesser(a, b)), greater(a, b))


cdef double on_odd_line(const Stairs *stairs, Py_ssize_t step, double query) noexcept nogil:
    """Where the slope is no number, or too small for one.

    An end at infinity is infinitely far away: a finite query gets the value at the other end, or half of each where
    both are infinite.
    """
    cdef double start = stairs.right[step], end = stairs.left[step + 1]
    cdef double low = stairs.values[step], high = stairs.values[step + 1], part
    if query <= start:
        return low
    if start == -INFINITY:
        part = 0.5 if end == INFINITY else 1.0
    elif end == INFINITY:
        part = 0.0
    elif end - start == INFINITY:            # the gap overflows: halve first (far from subnormal, so exact)
        part = (query * 0.5 - start * 0.5) / (end * 0.5 - start * 0.5)
    else:
        part = (query - start) / (end - start)
    if -INFINITY < high - low < INFINITY:
        return held(low + part * (high - low), low, high)
    return held(low * (1.0 - part) + high * part, low, high)
