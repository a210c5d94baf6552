"""One pass over a column: what the layers above must know before they may trust it.

Kernels here assume n >= 1 and nothing else.
"""

from staircase_fast._cells cimport floating
from staircase_fast._exact cimport Scale, number
from staircase_fast._nan cimport first_nan, has_nan
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
    cdef Py_ssize_t i = 1, end, found = -1, n = scores.shape[0]
    cdef bint rises = scores[0] == scores[0], falls = rises, tied = False
    with nogil:
        while i < n and (rises or falls):
            end = min(n, i + CHUNK)
            for i in range(i, end):
                rises &= scores[i - 1] <= scores[i]           # nothing is below or above a NaN
                falls &= scores[i - 1] >= scores[i]
                tied |= scores[i - 1] == scores[i]
            i = end
        if not (rises or falls):
            found = find_nan(&scores[0], n)
    return found, bool(rises), bool(falls), bool(tied)


cdef Py_ssize_t find_nan(const floating *scores, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t start = 0, size
    while start < n:
        size = min(CHUNK, n - start)
        if has_nan(scores + start, size):
            return start + first_nan(scores + start, size)
        start += size
    return -1
