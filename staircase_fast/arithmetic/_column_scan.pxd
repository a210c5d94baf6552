# One pass over a column: NaN, labels, sort order.  (`_buckets.pxd`: extremes and sums.)
#
# Preconditions: n >= 1, any values.

from libc.math cimport INFINITY
from libc.stdint cimport uint64_t

from staircase_fast.arithmetic._simd cimport (
    Pair, pair_first, pair_greater, pair_lesser, pair_minus, pair_of, pair_plus, pair_second, pair_size,
)
from staircase_fast.arithmetic._types cimport CHUNK, bits_of, floating, number

# Sort order of a column of scores.
ctypedef struct Monotonicity:
    Py_ssize_t first_nan  # index, or -1; if there is a NaN, `up` and `down` are false
    bint up               # no score is below the previous one
    bint down             # no score is above the previous one
    bint tied             # two neighbours are equal; valid only if `up` or `down`


# NaN and labels.  A valid entry gives +0.0, whose bits are all zero.  Compilers may combine bits in any order, so they
# vectorise these loops.

cdef inline Py_ssize_t first_nan(const floating *scores, Py_ssize_t n) noexcept nogil:
    """Index of the first NaN, or -1."""
    cdef Py_ssize_t start = 0, end, i
    cdef uint64_t odd
    while start < n:
        end = min(n, start + CHUNK)
        odd = 0
        for i in range(start, end):
            odd |= bits_of(scores[i] - scores[i])
        if odd:                               # NaN or infinite
            for i in range(start, end):
                if scores[i] != scores[i]:
                    return i
        start = end
    return -1


cdef inline bint has_nan(const floating *scores, Py_ssize_t n) noexcept nogil:
    return first_nan(scores, n) >= 0


cdef inline bint are_labels(const number *y, Py_ssize_t n) noexcept nogil:
    """Whether each entry is 0 or 1, that is, equal to its square."""
    cdef Py_ssize_t i
    cdef uint64_t odd = 0
    for i in range(n):
        if number is double or number is float:
            odd |= bits_of(y[i] * y[i] - y[i])
        else:
            odd |= <uint64_t>(y[i] & ~<number>1)
    return odd == 0


# Sort order.

cdef inline Monotonicity monotonicity_of(const floating *scores, Py_ssize_t n) noexcept nogil:
    cdef Monotonicity found = Monotonicity(-1, True, True, False)
    cdef Py_ssize_t start = 1, end
    if scores[0] != scores[0]:
        found.up = found.down = False
    while start < n and (found.up or found.down):
        end = min(n, start + CHUNK)
        compare_neighbours(&found, scores, start, end)
        start = end
    if not (found.up or found.down):
        found.first_nan = first_nan(scores, n)
    return found


cdef inline void compare_neighbours(
    Monotonicity *found, const floating *scores, Py_ssize_t start, Py_ssize_t end
) noexcept nogil:
    """Compare the scores [start, end) with their predecessors, two at a time, by their differences."""
    cdef Pair low = pair_of(INFINITY, INFINITY), high = pair_of(-INFINITY, -INFINITY), least = low
    cdef Pair odd = pair_of(0.0, 0.0), step
    cdef Py_ssize_t i = start
    while i + 2 <= end:
        step = pair_minus(pair_of(scores[i], scores[i + 1]), pair_of(scores[i - 1], scores[i]))
        low = pair_lesser(step, low)
        high = pair_greater(step, high)
        least = pair_lesser(pair_size(step), least)
        odd = pair_plus(odd, pair_minus(step, step))
        i += 2
    if pair_first(odd) + pair_second(odd) == 0:
        found.up &= (pair_first(low) >= 0) & (pair_second(low) >= 0)
        found.down &= (pair_first(high) <= 0) & (pair_second(high) <= 0)
        found.tied |= (pair_first(least) == 0) | (pair_second(least) == 0)
    else:
        i = start                             # a NaN or an infinity: compare one by one
    for i in range(i, end):
        found.up &= scores[i - 1] <= scores[i]                # comparisons with NaN are false
        found.down &= scores[i - 1] >= scores[i]
        found.tied |= scores[i - 1] == scores[i]
