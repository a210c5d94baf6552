"""Evaluate a staircase.

Kernels here assume clean input: at least one step, steps in ascending order of score, their ends and values no NaN.

    left[0] <= right[0] < left[1] <= right[1] < ..       ends of the steps, -inf and inf allowed
"""

from libc.math cimport INFINITY, NAN
from libc.stdint cimport int32_t, int64_t, uint8_t

from staircase_fast._cells cimport BATCH, Map, bucket_of, find_buckets, floating, map_of
from staircase_fast._nan cimport first_nan, has_nan
from staircase_fast._select cimport greater, lesser, prefetch
from staircase_fast._steps cimport Entry, step_by, step_of

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

ctypedef struct Index:
    const Entry *entries      # or NULL: there is none
    bint many                 # more than stay in the nearest caches
    Map cells

cdef enum:
    MANY_ENTRIES = 1 << 14
    AHEAD = 16                # queries whose memory is asked for before they are looked up

ctypedef fused integer:
    uint8_t
    int32_t
    int64_t


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
            while step + 1 < n and bucket_of(cells, left[step + 1]) == b:
                step += 1
            entries[b].step = ~start if step - start > 1 else start
            entries[b].edge = left[step] if step - start == 1 else NAN


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
    cdef Index steps = no_index()
    cdef const Line *drawn = NULL
    cdef Py_ssize_t i, start = 0, size = 0, n = queries.shape[0]
    cdef bint missing = False
    if index.shape[0]:
        steps = Index(<const Entry *>&index[0, 0], index.shape[0] > MANY_ENTRIES, map_of(bucket_map))
    if lines.shape[0]:
        drawn = <const Line *>&lines[0, 0]
    with nogil:
        while start < n and not missing:
            size = min(BATCH, n - start)
            if linear:
                follow_lines(&stairs, &steps, drawn, &queries[start], size, &out[start])
            else:
                follow_steps(&stairs, &steps, &queries[start], size, &out[start])
            if outside:
                for i in range(start, start + size):
                    out[i] = NAN if queries[i] < stairs.left[0] or queries[i] > stairs.right[stairs.n - 1] else out[i]
            missing = has_nan(&queries[start], size)
            start += size
        if missing:
            start += first_nan(&queries[start - size], size) - size
    return start if missing else -1


def evaluate_pairs(
    const floating[::1] queries not None,         # IN
    const double[::1] left not None,              # IN
    const double[:, ::1] values not None,         # IN  two for each step
    const double[:, ::1] bucket_map not None,     # IN  Cell, or empty: no index
    const double[:, ::1] index not None,          # IN  from index_steps
    double[::1] first not None,                   # OUT one per query
    double[::1] second not None,                  # OUT
):
    """Both values of the step of each query; return the index of the first NaN among these, or -1."""
    cdef Index steps = no_index()
    cdef int32_t buckets[BATCH]
    cdef int64_t found[BATCH]
    cdef Py_ssize_t i, start = 0, size = 0, n = queries.shape[0]
    cdef bint missing = False
    if index.shape[0]:
        steps = Index(<const Entry *>&index[0, 0], index.shape[0] > MANY_ENTRIES, map_of(bucket_map))
    with nogil:
        while start < n and not missing:
            size = min(BATCH, n - start)
            if steps.entries == NULL:
                for i in range(size):
                    found[i] = step_of(&left[0], left.shape[0], queries[start + i])
            else:
                find_entries(&steps, &queries[start], size, buckets)
                for i in range(size):
                    found[i] = step_by(steps.entries + buckets[i], &left[0], queries[start + i])
                    if steps.many:
                        prefetch(&values[found[i], 0])
            for i in range(size):
                first[start + i] = values[found[i], 0]
                second[start + i] = values[found[i], 1]
            missing = has_nan(&queries[start], size)
            start += size
        if missing:
            start += first_nan(&queries[start - size], size) - size
    return start if missing else -1


def evaluate_groups(
    const floating[::1] queries not None,         # IN
    const integer[::1] groups not None,           # IN  one per query
    int64_t low,                                  # IN  the least group
    const int32_t[::1] places not None,           # IN  the staircase of each group from the least on, or -1
    const int64_t[::1] offsets not None,          # IN  first step of each staircase, and one more
    const double[::1] left not None,              # IN  steps of one staircase after the other
    const double[::1] right not None,             # IN
    const double[::1] values not None,            # IN
    bint linear,
    bint outside,                                 # IN  whether queries outside the steps get NaN, not the nearest value
    double[::1] out not None,                     # OUT one per query; what has no staircase is left alone
):
    """The staircase of each group at its queries; return where the first NaN is, and the first without one, or -1."""
    cdef Stairs stairs
    cdef Index none = no_index()
    cdef Py_ssize_t i, place, ahead, n = queries.shape[0], strange = -1, nan = -1
    with nogil:
        for i in range(n):
            # asked for before it is needed: each query is somewhere else
            ahead = places[<int64_t>groups[min(i + AHEAD, n - 1)] - low]
            if ahead >= 0:
                prefetch(&offsets[ahead])
            ahead = places[<int64_t>groups[min(i + AHEAD // 2, n - 1)] - low]
            if ahead >= 0:
                prefetch(&left[offsets[ahead]])
                prefetch(&values[offsets[ahead]])
            place = places[<int64_t>groups[i] - low]
            if nan < 0 and queries[i] != queries[i]:
                nan = i
            if place < 0:
                strange = i if strange < 0 else strange
                continue
            stairs = Stairs(
                offsets[place + 1] - offsets[place], &left[offsets[place]], &right[offsets[place]],
                &values[offsets[place]]
            )
            if linear:
                follow_lines(&stairs, &none, NULL, &queries[i], 1, &out[i])
            else:
                out[i] = values[offsets[place] + step_of(stairs.left, stairs.n, queries[i])]
            if outside and (queries[i] < stairs.left[0] or queries[i] > stairs.right[stairs.n - 1]):
                out[i] = NAN
    return nan, strange


cdef inline Index no_index() noexcept nogil:
    cdef Index index
    index.entries = NULL
    index.many = False
    index.cells = Map(NULL, True)
    return index


cdef inline void find_entries(
    const Index *index, const floating *queries, Py_ssize_t n, int32_t *buckets
) noexcept nogil:
    cdef Py_ssize_t i
    find_buckets(index.cells, queries, n, buckets)
    if index.many:
        for i in range(n):
            prefetch(index.entries + buckets[i])


cdef inline void follow_steps(
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
    # before the line starts is the step; rounding may overshoot the end of the line by a bit
    return lesser(greater(value, line.low), line.high) if rising else greater(lesser(value, line.low), line.high)


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
