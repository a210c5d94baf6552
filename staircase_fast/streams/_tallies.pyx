"""Sums of small integers, those of each score: made from sorted rows, joined two by two, and fitted.

    tallies        x the scores, ascending, no two equal; `tally` two counters in one word, so that one addition adds
                   both: how many rows below, and above either the sum of targets (where all weights are 1), or the sum
                   of weights.  Then `s` holds the sums of weight*target, else it is empty.

Kernels here assume clean input: at least one row, no NaN, integers, weights > 0, counters that are wide enough for all
rows, and room for every score in the outputs.
"""

from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.string cimport memcpy, memmove

from staircase_fast.arithmetic._branchless cimport lesser
from staircase_fast.arithmetic._exact cimport unpacked
from staircase_fast.stack._stack cimport Stack, empty_stack, finish, push
from staircase_fast.streams._lane cimport Lane, runs, split

ctypedef fused target:        # others are one of these without loss
    int64_t
    double

cdef enum:
    HALF = 32

ctypedef struct Tallies:
    const double *x
    const uint64_t *tally
    const int64_t *s          # or NULL
    Py_ssize_t n


def tally_rows(
    const double[::1] scores not None,        # IN  ascending
    const target[::1] targets not None,       # IN  integers
    const double[::1] weights not None,       # IN  integers, or empty: all are 1
    double[::1] x not None,                   # OUT tallies
    uint64_t[::1] tally not None,
    int64_t[::1] s not None,
):
    """Return how many scores there are."""
    cdef Py_ssize_t i, k = -1
    cdef bint summed = s.shape[0] > 0
    cdef int64_t y, w = 1
    cdef uint64_t own
    with nogil:
        for i in range(scores.shape[0]):
            if weights.shape[0]:
                w = <int64_t>weights[i]
            y = <int64_t>targets[i]
            own = (<uint64_t>(w if summed else y) << HALF) + 1
            if i == 0 or scores[i] != x[k]:
                k += 1
                x[k] = scores[i] + 0.0            # -0.0 becomes the 0.0 it equals
                tally[k] = 0
                if summed:
                    s[k] = 0
            tally[k] += own
            if summed:
                s[k] += y * w
    return k + 1


def join_tallies(
    const double[::1] x_a not None,           # IN  tallies
    const uint64_t[::1] tally_a not None,
    const int64_t[::1] s_a not None,
    const double[::1] x_b not None,           # IN  tallies of the same kind
    const uint64_t[::1] tally_b not None,
    const int64_t[::1] s_b not None,
    double[::1] x not None,                   # OUT tallies
    uint64_t[::1] tally not None,
    int64_t[::1] s not None,
):
    """Return how many scores there are."""
    cdef Tallies a = Tallies(&x_a[0], &tally_a[0], NULL, x_a.shape[0])
    cdef Tallies b = Tallies(&x_b[0], &tally_b[0], NULL, x_b.shape[0])
    cdef Py_ssize_t n
    with nogil:
        if s.shape[0]:
            a.s = &s_a[0]
            b.s = &s_b[0]
            n = merge_tallies(a, b, &x[0], &tally[0], &s[0])
        else:
            n = merge_tallies(a, b, &x[0], &tally[0], NULL)
    return n


cdef inline Py_ssize_t merge_tallies(Tallies a, Tallies b, double *x, uint64_t *tally, int64_t *s) noexcept nogil:
    cdef Lane lanes[2]
    cdef Py_ssize_t start, n
    split(a.x, a.n, b.x, b.n, lanes)
    start = lanes[1].k
    while runs(&lanes[0]) and runs(&lanes[1]):
        take(&lanes[0], a, b, x, tally, s)
        take(&lanes[1], a, b, x, tally, s)
    take_all(&lanes[0], a, b, x, tally, s)
    take_all(&lanes[1], a, b, x, tally, s)
    n = lanes[1].k - start
    if lanes[0].k < start:
        memmove(x + lanes[0].k, x + start, n * sizeof(double))
        memmove(tally + lanes[0].k, tally + start, n * sizeof(uint64_t))
        if s != NULL:
            memmove(s + lanes[0].k, s + start, n * sizeof(int64_t))
    return lanes[0].k + n


cdef inline void take(Lane *lane, Tallies a, Tallies b, double *x, uint64_t *tally, int64_t *s) noexcept nogil:
    """The lesser of two scores, or both if they are equal; no branches: which it is cannot be foretold.

    One of them is taken even if a score is NaN.
    """
    cdef Py_ssize_t i = lane.i, j = lane.j, k = lane.k
    cdef uint64_t from_a = a.x[i] <= b.x[j], from_b = not a.x[i] < b.x[j]
    x[k] = lesser(a.x[i], b.x[j])
    tally[k] = (a.tally[i] & (0 - from_a)) + (b.tally[j] & (0 - from_b))
    if s != NULL:
        s[k] = (a.s[i] & -<int64_t>from_a) + (b.s[j] & -<int64_t>from_b)
    lane.i = i + <Py_ssize_t>from_a
    lane.j = j + <Py_ssize_t>from_b
    lane.k = k + 1


cdef inline void take_all(Lane *lane, Tallies a, Tallies b, double *x, uint64_t *tally, int64_t *s) noexcept nogil:
    while runs(lane):
        take(lane, a, b, x, tally, s)
    copy_rest(a, lane.i, lane.i_end - lane.i, x + lane.k, tally + lane.k, s + lane.k if s != NULL else NULL)
    lane.k += lane.i_end - lane.i
    copy_rest(b, lane.j, lane.j_end - lane.j, x + lane.k, tally + lane.k, s + lane.k if s != NULL else NULL)
    lane.k += lane.j_end - lane.j


cdef inline void copy_rest(
    Tallies a, Py_ssize_t i, Py_ssize_t n, double *x, uint64_t *tally, int64_t *s
) noexcept nogil:
    memcpy(x, a.x + i, n * sizeof(double))
    memcpy(tally, a.tally + i, n * sizeof(uint64_t))
    if s != NULL:
        memcpy(s, a.s + i, n * sizeof(int64_t))


def fit_tallies(
    const double[::1] x not None,             # IN  tallies
    const uint64_t[::1] tally not None,
    const int64_t[::1] s not None,
    object scale not None,                    # IN  exact.Scale: a narrow one
    bint decreasing,
    double lo,
    double hi,
    Py_ssize_t[::1] starts not None,          # OUT first score of each step, then the number of scores
    double[::1] values not None,              # OUT
    double[::1] weights not None,             # OUT
):
    """Fill the first entries of the outputs with the staircase; return how many steps it has."""
    cdef Stack stack = empty_stack(unpacked(scale), decreasing, &starts[0], &values[0], &weights[0])
    cdef const double *no_rows = NULL
    cdef Py_ssize_t i, n = x.shape[0]
    cdef bint summed = s.shape[0] > 0
    cdef int64_t above, weight
    with nogil:
        for i in range(n):
            if summed:
                above = s[i]
                weight = <uint32_t>(tally[i] >> HALF)
            else:
                above = <int64_t>tally[i] >> HALF
                weight = <uint32_t>tally[i]
            push(&stack, no_rows, no_rows, i, i + 1, above, weight, True)
        finish(&stack, no_rows, no_rows, <int64_t>0, n, lo, hi)
        starts[stack.n] = n
    return stack.n


def count_rows(
    const uint64_t[::1] tally not None,       # IN
    const Py_ssize_t[::1] starts not None,    # IN  first score of each step, then the number of scores
    int64_t[::1] counts not None,             # OUT
):
    """The rows of each step."""
    cdef Py_ssize_t step, i
    cdef int64_t rows
    with nogil:
        for step in range(counts.shape[0]):
            rows = 0
            for i in range(starts[step], starts[step + 1]):
                rows += <uint32_t>tally[i]
            counts[step] = rows
