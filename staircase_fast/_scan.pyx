"""One pass over a column: what the layers above must know before they may trust it.

Kernels here assume n >= 1 and nothing else.
"""

from staircase_fast._cells cimport floating
from staircase_fast._exact cimport Scale, number
from staircase_fast._range cimport Range, range_of
from staircase_fast._rising cimport Rising, rising_of
from staircase_fast._scale cimport roomy_scale_of as roomy_scale_for, scale_of as scale_for


def extent(const number[::1] values not None):
    """(first entry that is not finite or -1, lowest, highest, least magnitude above 0, all integers?)."""
    cdef Range r
    with nogil:
        r = range_of(&values[0], values.shape[0])
    return r.first_bad, r.lowest, r.highest, r.least, bool(r.integral)


def scale_of(object targets not None, object weights not None, Py_ssize_t n):
    """The fields of the exact.Scale for `n` rows with these extents."""
    return fields_of(scale_for(unpacked(targets), unpacked(weights), n))


def roomy_scale_of(object targets not None, object weights not None, Py_ssize_t n):
    """The same for rows of which more may come."""
    return fields_of(roomy_scale_for(unpacked(targets), unpacked(weights), n))


cdef Range unpacked(object extent) except *:
    cdef Range r
    r.first_bad, r.lowest, r.highest, r.least, r.integral = extent
    return r


cdef object fields_of(Scale s):
    sizes = s.y_unit, s.w_unit, s.s_words, s.w_words
    return *sizes, bool(s.narrow), bool(s.tame), s.greatest, s.cut, s.cut_error, s.cut_weight


def order(const floating[::1] scores not None):
    """(index of the first NaN or -1, whether scores never decrease, never increase; if so, whether two are equal)."""
    cdef Rising rising
    with nogil:
        rising = rising_of(&scores[0], scores.shape[0])
    return rising.first_nan, bool(rising.up), bool(rising.down), bool(rising.tied)
