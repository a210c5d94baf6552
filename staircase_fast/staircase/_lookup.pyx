"""Evaluate staircases (_follow.pxd).

Preconditions: at least one step, steps in ascending order of score, no NaN in their ends and values.
"""

from cpython.mem cimport PyMem_Free, PyMem_Malloc
from libc.math cimport NAN
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t

from staircase_fast.arithmetic._branchless cimport prefetch
from staircase_fast.arithmetic._column_scan cimport first_nan, has_nan
from staircase_fast.arithmetic._types cimport BATCH, floating
from staircase_fast.inputs._buffers cimport Array, close_array, copy_as_doubles, in_place, open_array
from staircase_fast.staircase._cells cimport find_buckets, map_of
from staircase_fast.staircase._follow cimport (
    Entry, Index, Line, Stairs, fill_index, find_entries, follow, follow_lines, index_of, line_after, no_index, step_by,
    step_of,
)

import numpy

cdef object empty = numpy.empty, float64 = numpy.float64
cdef type ndarray = numpy.ndarray

cdef enum:
    AHEAD = 16                # queries are prefetched this many queries ahead

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
    """Fill the index of a staircase."""
    with nogil:
        fill_index(&left[0], left.shape[0], map_of(bucket_map), <Entry *>&index[0, 0], index.shape[0])


def draw_lines(
    const double[::1] left not None,              # IN
    const double[::1] right not None,             # IN
    const double[::1] values not None,            # IN
    double[:, ::1] lines not None,                # OUT Line, one per step
):
    """Compute the line after each step."""
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
    bint outside,                                 # IN  queries outside the fitted range get NaN, not the nearest value
    const double[:, ::1] bucket_map not None,     # IN  Cell, or empty: no index
    const double[:, ::1] index not None,          # IN  from index_steps
    const double[:, ::1] lines not None,          # IN  from draw_lines, or empty: compute each when needed
    double[::1] out not None,                     # OUT one per query
):
    """out[i] = the staircase at queries[i]; return the index of the first NaN query, or -1."""
    cdef Stairs stairs = Stairs(left.shape[0], &left[0], &right[0], &values[0])
    cdef Index steps = no_index()
    cdef const Line *drawn = NULL
    cdef Py_ssize_t n = queries.shape[0], nan = -1
    if index.shape[0]:
        steps = index_of(<const Entry *>&index[0, 0], index.shape[0], map_of(bucket_map))
    if lines.shape[0]:
        drawn = <const Line *>&lines[0, 0]
    with nogil:
        if n:
            nan = follow(&stairs, &steps, drawn, &queries[0], n, linear, outside, &out[0])
    return nan


def evaluate_few(scores, left, right, values, bint linear, bint outside, Py_ssize_t limit):
    """The staircase at a float or at up to `limit` scores in an ordinary array, in one cheap call.

    The other arguments are those of `evaluate`.  Return None if there are more scores, or if they must be converted or
    refused first.
    """
    cdef Array given, lefts, rights, heights
    cdef Stairs stairs
    cdef Index none = no_index()
    cdef double query = 0.0, found = 0.0
    cdef const double *queries = &query
    cdef double *copy = NULL
    cdef double *out = &found
    cdef Py_ssize_t n = 1
    cdef double[::1] entries
    cdef bint single = type(scores) is float, fine = True
    given.kind = 0
    if single:
        query = scores
    elif not open_array(scores, ndarray, &given) or given.n > limit:
        close_array(&given)
        return None
    lefts.kind = rights.kind = heights.kind = 0
    try:
        open_array(left, ndarray, &lefts)
        open_array(right, ndarray, &rights)
        open_array(values, ndarray, &heights)
        stairs = Stairs(lefts.n, in_place(&lefts), in_place(&rights), in_place(&heights))
        if stairs.left == NULL or stairs.right == NULL or stairs.values == NULL:
            return None
        if not single:
            n = given.n
            result = empty(n)
            if n == 0:
                return result
            entries = result
            out = &entries[0]
            queries = in_place(&given)
            if queries == NULL:
                copy = <double *>PyMem_Malloc(n * sizeof(double))
                if copy == NULL:
                    raise MemoryError
                queries = copy
                fine = copy_as_doubles(&given, copy)
        if not fine or follow(&stairs, &none, NULL, queries, n, linear, outside, out) >= 0:
            return None                       # a NaN, or an integer that a double does not hold
        return float64(found) if single else result
    finally:
        PyMem_Free(copy)
        close_array(&given)
        close_array(&lefts)
        close_array(&rights)
        close_array(&heights)


def evaluate_pairs(
    const floating[::1] queries not None,         # IN
    const double[::1] left not None,              # IN
    const double[:, ::1] values not None,         # IN  two for each step
    const double[:, ::1] bucket_map not None,     # IN  Cell, or empty: no index
    const double[:, ::1] index not None,          # IN  from index_steps
    double[::1] first not None,                   # OUT one per query
    double[::1] second not None,                  # OUT
):
    """Find both values of the step of each query; return the index of the first NaN query, or -1."""
    cdef Index steps = no_index()
    cdef int32_t buckets[BATCH]
    cdef int64_t found[BATCH]
    cdef Py_ssize_t i, start = 0, size = 0, n = queries.shape[0]
    cdef bint missing = False
    if index.shape[0]:
        steps = index_of(<const Entry *>&index[0, 0], index.shape[0], map_of(bucket_map))
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
    int64_t low,                                  # IN  the smallest group
    const int32_t[::1] places not None,           # IN  the staircase of each group from the smallest on, or -1
    const int64_t[::1] offsets not None,          # IN  first step of each staircase, and one more
    const double[::1] left not None,              # IN  steps of one staircase after the other
    const double[::1] right not None,             # IN
    const double[::1] values not None,            # IN
    bint linear,
    bint outside,                                 # IN  queries outside the fitted range get NaN, not the nearest value
    double[::1] out not None,                     # OUT one per query; not written if the group is unknown
):
    """Evaluate the staircase of each query's group; return the index of the first NaN and of the first unknown group.

    Either is -1 if there is none.
    """
    cdef Stairs stairs
    cdef Index none = no_index()
    cdef Py_ssize_t i, place, ahead, n = queries.shape[0], unknown = -1, nan = -1
    with nogil:
        for i in range(n):
            # prefetch: queries of other groups are elsewhere in memory
            ahead = place_of(places, groups[min(i + AHEAD, n - 1)], low)
            if ahead >= 0:
                prefetch(&offsets[ahead])
            ahead = place_of(places, groups[min(i + AHEAD // 2, n - 1)], low)
            if ahead >= 0:
                prefetch(&left[offsets[ahead]])
                prefetch(&values[offsets[ahead]])
            place = place_of(places, groups[i], low)
            if nan < 0 and queries[i] != queries[i]:
                nan = i
            if place < 0:
                unknown = i if unknown < 0 else unknown
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
    return nan, unknown


cdef inline Py_ssize_t place_of(const int32_t[::1] places, int64_t group, int64_t low) noexcept nogil:
    """The staircase of a group, or -1.  Groups that changed during the call stay within the array."""
    cdef uint64_t number = <uint64_t>group - <uint64_t>low
    return places[number] if number < <uint64_t>places.shape[0] else -1
