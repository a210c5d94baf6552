"""One pass over a column: what the layers above must know before they may trust it.

Kernels here assume n >= 1 and nothing else.
"""

from libc.math cimport INFINITY, fabs, floor, isfinite, isnan

from staircase_fast._exact cimport number

ctypedef struct Range:
    Py_ssize_t first_bad
    double lowest
    double highest
    double least
    bint integral


def extent(const number[:] values not None):
    """(first entry that is not finite or -1, lowest, highest, least magnitude above 0, all integers?)."""
    cdef Range r
    with nogil:
        r = range_of(values)
    return r.first_bad, r.lowest, r.highest, r.least, bool(r.integral)


cdef Range range_of(const number[:] values) noexcept nogil:
    cdef Range r
    cdef Py_ssize_t i
    cdef double value, size
    r.first_bad = -1
    r.lowest = INFINITY
    r.highest = -INFINITY
    r.least = INFINITY
    r.integral = True
    for i in range(values.shape[0]):
        value = <double>values[i]
        if number is float or number is double:
            if not isfinite(value):
                r.first_bad = i
                break
            size = fabs(value)
            if 0 < size < r.least:
                r.least = size
            r.integral = r.integral and floor(size) == size
        if value < r.lowest:
            r.lowest = value
        if value > r.highest:
            r.highest = value
    return r


def first_nan(const number[:] scores not None):
    """Index of the first NaN, or -1."""
    cdef Py_ssize_t i, found = -1
    if number is float or number is double:
        with nogil:
            for i in range(scores.shape[0]):
                if isnan(scores[i]):
                    found = i
                    break
    return found


def is_ascending(const number[:] scores not None):
    """Whether scores never decrease."""
    cdef Py_ssize_t i
    cdef bint ascending = True
    with nogil:
        for i in range(1, scores.shape[0]):
            if scores[i - 1] > scores[i]:
                ascending = False
                break
    return bool(ascending)
