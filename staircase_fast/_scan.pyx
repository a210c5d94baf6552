"""One pass over a column: what the layers above must know before they may trust it.

Kernels here assume n >= 1 and nothing else.
"""

from libc.math cimport INFINITY

from staircase_fast._cells cimport floating
from staircase_fast._exact cimport Scale, number
from staircase_fast._nan cimport first_nan, has_nan
from staircase_fast._pair cimport (
    Pair, pair_first, pair_greater, pair_lesser, pair_minus, pair_of, pair_plus, pair_second, pair_size,
)
from staircase_fast._range cimport CHUNK, Range, range_of
from staircase_fast._scale cimport scale_of as scale_for


def extent(const number[::1] values not None):
    """(first entry that is not finite or -1, lowest, highest, least magnitude above 0, all integers?)."""
    cdef Range r
    with nogil:
        r = range_of(&values[0], values.shape[0])
    return r.first_bad, r.lowest, r.highest, r.least, bool(r.integral)


def scale_of(object targets not None, object weights not None, Py_ssize_t n):
    """The fields of the exact.Scale for `n` rows with these extents."""
    cdef Range y, w
    cdef Scale s
    y.first_bad, y.lowest, y.highest, y.least, y.integral = targets
    w.first_bad, w.lowest, w.highest, w.least, w.integral = weights
    s = scale_for(y, w, n)
    sizes = s.y_unit, s.w_unit, s.s_words, s.w_words
    return *sizes, bool(s.narrow), bool(s.tame), s.greatest, s.cut, s.cut_error, s.cut_weight


def order(const floating[::1] scores not None):
    """(index of the first NaN or -1, whether scores never decrease, never increase; if so, whether two are equal)."""
    cdef Py_ssize_t start = 1, end, found = -1, n = scores.shape[0]
    cdef Rising rising = Rising(True, True, False)
    if scores[0] != scores[0]:
        rising = Rising(False, False, False)
    with nogil:
        while start < n and (rising.up or rising.down):
            end = min(n, start + CHUNK)
            look(&rising, &scores[0], start, end)
            start = end
        if not (rising.up or rising.down):
            found = find_nan(&scores[0], n)
    return found, bool(rising.up), bool(rising.down), bool(rising.tied)


ctypedef struct Rising:
    bint up               # each score is at or above the one before
    bint down             # at or below
    bint tied             # one is equal to the one before


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


cdef Py_ssize_t find_nan(const floating *scores, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t start = 0, size
    while start < n:
        size = min(CHUNK, n - start)
        if has_nan(scores + start, size):
            return start + first_nan(scores + start, size)
        start += size
    return -1
