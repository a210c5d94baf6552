# Evaluate a staircase at many scores.
#
# A score is on the last step that starts at or below it, or on the first step.  If there are few steps, or the scores
# of a block lie near each other, as sorted scores do, the edges between these steps are counted (`_count_edges.pxd`).
# Otherwise each score is looked up (`_index.pxd`).
#
# Preconditions: those of _index.pxd, no NaN in values.

from libc.float cimport DBL_MIN
from libc.math cimport INFINITY, NAN, fabs
from libc.stdint cimport int32_t, int64_t

from staircase_fast.arithmetic._branchless cimport greater, lesser, prefetch, prefetch_column
from staircase_fast.arithmetic._column_scan cimport first_nan, has_nan
from staircase_fast.arithmetic._types cimport BATCH, floating
from staircase_fast.staircase._count_edges cimport count_edges, has_four_lanes
from staircase_fast.staircase._index cimport Index, Stairs, find_entries, step_by, step_in, step_of

# The line from the right end of a step to the left end of the next one.
ctypedef struct Line:
    double start
    double slope              # NaN if it is infinite or too small: see `on_odd_line`
    double low                # value at the start
    double high               # value at the end

# What consecutive blocks of queries have shown.
ctypedef struct Near:
    Py_ssize_t step           # of the last query of a block
    Py_ssize_t failures       # batches since the last block whose queries are near each other

cdef enum:
    FEW_STEPS = 20            # counting their edges is faster than an index
    NEAR_STEPS = 8            # the same for the steps of a block, which are found first
    BLOCK = 64                # queries
    FAILURES = 4              # after so many ..
    PAUSE = 8                 # .. the next block is tried after so many batches


cdef inline Py_ssize_t follow(
    const Stairs *stairs, const Index *index, const Line *drawn, const floating *queries, Py_ssize_t n, bint linear,
    bint outside, bint keep_nan, double *out
) noexcept nogil:
    """out[i] = the staircase at queries[i]; return the index of the first NaN query, or -1.

    `outside`: queries outside the fitted range get NaN instead of the nearest value.
    `keep_nan`: NaN queries get NaN, and -1 is returned.
    """
    cdef Py_ssize_t i, start = 0, size = 0
    cdef Near near = Near(0, 0)
    cdef bint missing = False
    while start < n and not missing:
        size = min(BATCH, n - start)
        prefetch_column(queries + start, size * sizeof(floating))
        if linear:
            follow_lines(stairs, index, drawn, queries + start, size, out + start)
            missing = has_nan(queries + start, size)
        else:
            missing = not follow_steps(stairs, index, queries + start, size, out + start, &near)
        if outside:
            for i in range(start, start + size):
                out[i] = NAN if queries[i] < stairs.left[0] or queries[i] > stairs.right[stairs.n - 1] else out[i]
        if missing and keep_nan:
            for i in range(start, start + size):
                out[i] = out[i] if queries[i] == queries[i] else NAN
            missing = False
        start += size
    return start - size + first_nan(queries + start - size, size) if missing else -1


cdef inline bint follow_steps(
    const Stairs *stairs, const Index *index, const floating *queries, Py_ssize_t n, double *out, Near *near
) noexcept nogil:
    """Evaluate up to BATCH queries; return whether none is NaN."""
    cdef Py_ssize_t i = 0, size = n           # first all queries, if they seem to be on one step, then blocks
    cdef bint tried = near.failures < FAILURES or near.failures % PAUSE == 0
    if not ends_on(stairs, near.step, near.step, queries, n):
        size = BLOCK
    while tried and i < n:
        size = min(size, n - i)
        if follow_block(stairs, index, queries + i, size, out + i, &near.step):
            near.failures = 0
            i += size
        else:
            tried, size = size > BLOCK, BLOCK
    if i == n:
        return True
    near.failures += i == 0
    if stairs.n <= FEW_STEPS:
        return count_steps(stairs, 0, stairs.n - 1, queries + i, n - i, out + i)
    search_steps(stairs, index, queries + i, n - i, out + i)
    return not has_nan(queries + i, n - i)


cdef inline bint follow_block(
    const Stairs *stairs, const Index *index, const floating *queries, Py_ssize_t n, double *out, Py_ssize_t *step
) noexcept nogil:
    """Evaluate queries that are on a few consecutive steps; return False if they are not, or one is NaN.

    The first and the last query show which steps to try, and one in the middle whether that is worthwhile.
    """
    cdef Py_ssize_t first = step[0], last = step[0]
    if not ends_on(stairs, first, last, queries, n):
        first = step_from(stairs, index, first, queries[0])
        last = step[0] = step_from(stairs, index, first, queries[n - 1])
        if first > last:
            first, last = last, first
    if last - first >= NEAR_STEPS or not is_on(stairs, first, last, queries[n // 2]):
        return False
    return count_steps(stairs, first, last, queries, n, out)


cdef inline bint count_steps(
    const Stairs *stairs, Py_ssize_t first, Py_ssize_t last, const floating *queries, Py_ssize_t n, double *out
) noexcept nogil:
    """Evaluate queries on the steps from `first` to `last`; return False if one is elsewhere or NaN."""
    return count_edges(
        queries, n, -INFINITY if first == 0 else stairs.left[first],
        NAN if last == stairs.n - 1 else stairs.left[last + 1], stairs.left + first + 1, last - first,
        stairs.values + first, out, has_four_lanes()
    )


cdef inline bint is_on(const Stairs *stairs, Py_ssize_t first, Py_ssize_t last, double query) noexcept nogil:
    """Whether a query is on the steps from `first` to `last`."""
    return (first == 0 or stairs.left[first] <= query) and (last == stairs.n - 1 or query < stairs.left[last + 1])


cdef inline bint ends_on(
    const Stairs *stairs, Py_ssize_t first, Py_ssize_t last, const floating *queries, Py_ssize_t n
) noexcept nogil:
    return is_on(stairs, first, last, queries[0]) and is_on(stairs, first, last, queries[n - 1])


cdef inline Py_ssize_t step_from(
    const Stairs *stairs, const Index *index, Py_ssize_t start, double query
) noexcept nogil:
    """The step of a query; if that is the given step or one of the next, without a search."""
    cdef Py_ssize_t step
    if is_on(stairs, start, stairs.n - 1, query):
        for step in range(start, min(start + NEAR_STEPS, stairs.n)):
            if is_on(stairs, start, step, query):
                return step
    return step_in(stairs, index, query)


cdef inline void search_steps(
    const Stairs *stairs, const Index *index, const floating *queries, Py_ssize_t n, double *out
) noexcept nogil:
    cdef int32_t buckets[BATCH]
    cdef int64_t steps[BATCH]
    cdef Py_ssize_t i
    if index.entries == NULL:
        for i in range(n):
            out[i] = stairs.values[step_of(stairs.left, stairs.n, queries[i])]
        return
    find_entries(index, queries, n, buckets)
    if not index.many:
        for i in range(n):
            out[i] = stairs.values[step_by(index.entries + buckets[i], stairs.left, queries[i])]
        return
    for i in range(n):
        steps[i] = step_by(index.entries + buckets[i], stairs.left, queries[i])
        prefetch(stairs.values + steps[i])
    for i in range(n):
        out[i] = stairs.values[steps[i]]


# Linear interpolation.

cdef inline Line line_after(const Stairs *stairs, Py_ssize_t step) noexcept nogil:
    cdef Line line = Line(stairs.right[step], 0.0, stairs.values[step], stairs.values[step])
    if step < stairs.n - 1:
        line.high = stairs.values[step + 1]
        line.slope = (line.high - line.low) / (stairs.left[step + 1] - line.start)
        if not DBL_MIN <= fabs(line.slope) < INFINITY:
            line.slope = NAN                  # infinite ends, overflow or underflow
    return line


cdef inline void follow_lines(
    const Stairs *stairs, const Index *index, const Line *drawn, const floating *queries, Py_ssize_t n, double *out
) noexcept nogil:
    cdef bint rising = stairs.values[0] <= stairs.values[stairs.n - 1]
    cdef int32_t buckets[BATCH]
    cdef int64_t steps[BATCH]
    cdef Py_ssize_t i
    cdef Line line
    if drawn == NULL:
        for i in range(n):
            steps[i] = step_of(stairs.left, stairs.n, queries[i])
            line = line_after(stairs, steps[i])
            out[i] = on_line(stairs, &line, steps[i], rising, queries[i])
        return
    find_entries(index, queries, n, buckets)
    for i in range(n):
        steps[i] = step_by(index.entries + buckets[i], stairs.left, queries[i])
        if index.many:
            prefetch(drawn + steps[i])
    for i in range(n):
        out[i] = on_line(stairs, drawn + steps[i], steps[i], rising, queries[i])


cdef inline double on_line(
    const Stairs *stairs, const Line *line, Py_ssize_t step, bint rising, double query
) noexcept nogil:
    cdef double value = line.low + (query - line.start) * line.slope
    if line.slope != line.slope:
        return on_odd_line(stairs, step, query)
    # clip: a query before the line is on the step, and rounding may overshoot the end of the line
    return lesser(greater(value, line.low), line.high) if rising else greater(lesser(value, line.low), line.high)


cdef inline double clipped(double value, double a, double b) noexcept nogil:
    """The number between a and b that is nearest to the value."""
    return lesser(greater(value, lesser(a, b)), greater(a, b))


cdef inline double on_odd_line(const Stairs *stairs, Py_ssize_t step, double query) noexcept nogil:
    """A point on a line whose slope is infinite or too small.

    An end at infinity is infinitely far away: a finite query gets the value at the other end, or the mean of both
    values if both ends are infinite.
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
        return clipped(low + part * (high - low), low, high)
    return clipped(low * (1.0 - part) + high * part, low, high)
