"""Evaluate the staircases of many groups.

Preconditions: each staircase has at least one step, steps in ascending order of score, no NaN in their ends and values.
"""

from libc.math cimport NAN
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t

from staircase_fast.arithmetic._branchless cimport prefetch
from staircase_fast.arithmetic._types cimport floating
from staircase_fast.staircase._follow cimport follow_lines
from staircase_fast.staircase._index cimport Index, Stairs, no_index, step_of

ctypedef fused integer:
    uint8_t
    int32_t
    int64_t

cdef enum:
    AHEAD = 16                # queries are prefetched this many queries ahead


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
