# In which order scores are, and whether one is NaN: one pass over a column.
#
# Assumed of the caller: n >= 1, and nothing else.

from libc.math cimport INFINITY

from staircase_fast._cells cimport floating
from staircase_fast._nan cimport first_nan, has_nan
from staircase_fast._pair cimport (
    Pair, pair_first, pair_greater, pair_lesser, pair_minus, pair_of, pair_plus, pair_second, pair_size,
)
from staircase_fast._range cimport CHUNK

ctypedef struct Rising:
    Py_ssize_t first_nan  # its index, or -1; then scores neither rise nor fall
    bint up               # each score is at or above the one before
    bint down             # at or below
    bint tied             # one is equal to the one before; holds only if they are in order


cdef inline Rising rising_of(const floating *scores, Py_ssize_t n) noexcept nogil:
    cdef Rising rising = Rising(-1, True, True, False)
    cdef Py_ssize_t start = 1, end
    if scores[0] != scores[0]:
        rising.up = rising.down = False
    while start < n and (rising.up or rising.down):
        end = min(n, start + CHUNK)
        look(&rising, scores, start, end)
        start = end
    if not (rising.up or rising.down):
        rising.first_nan = find_nan(scores, n)
    return rising


cdef inline void look(Rising *rising, const floating *scores, Py_ssize_t start, Py_ssize_t end) noexcept nogil:
    """Compare the scores [start, end) with the ones before them: two at a time, by their differences."""
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
        rising.up &= (pair_first(low) >= 0) & (pair_second(low) >= 0)
        rising.down &= (pair_first(high) <= 0) & (pair_second(high) <= 0)
        rising.tied |= (pair_first(least) == 0) | (pair_second(least) == 0)
    else:
        i = start                             # a NaN, or something infinite
    for i in range(i, end):
        rising.up &= scores[i - 1] <= scores[i]               # nothing is below or above a NaN
        rising.down &= scores[i - 1] >= scores[i]
        rising.tied |= scores[i - 1] == scores[i]


cdef inline Py_ssize_t find_nan(const floating *scores, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t start = 0, size
    while start < n:
        size = min(CHUNK, n - start)
        if has_nan(scores + start, size):
            return start + first_nan(scores + start, size)
        start += size
    return -1
