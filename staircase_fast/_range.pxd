# What one pass over a column of targets or weights finds.
#
# Assumed of the caller: n >= 1, and nothing else.

from libc.math cimport INFINITY, fabs, floor, isfinite
from libc.stdint cimport uint64_t
from libc.string cimport memcpy, memset

from staircase_fast._exact cimport number
from staircase_fast._select cimport greater, lesser, lesser_word

cdef enum:
    CHUNK = 1024
    LANES = 4             # independent accumulators, so that one need not wait for the other

ctypedef struct Range:
    Py_ssize_t first_bad  # index of the first entry that is not finite, or -1; the rest holds only if it is -1
    double lowest
    double highest
    double least          # smallest magnitude that is not zero, or inf
    bint integral         # every entry is an integer

ctypedef struct Lanes:
    double lowest[LANES]
    double highest[LANES]
    uint64_t least[LANES]
    double broken[LANES]  # not 0 once an entry was no integer
    double strange[LANES]  # NaN once an entry was not finite


cdef inline void look(Lanes *lanes, int lane, double value) noexcept nogil:
    # adding and subtracting 1.5 * 2**52 rounds to an integer where the magnitude is below 2**51
    cdef uint64_t bits
    cdef double size = fabs(value), whole = (value + 6755399441055744.0) - 6755399441055744.0
    lanes.lowest[lane] = lesser(value, lanes.lowest[lane])
    lanes.highest[lane] = greater(value, lanes.highest[lane])
    # as integers, doubles above 0 have the same order, and 0 less 1 is larger than all
    memcpy(&bits, &size, sizeof(double))
    lanes.least[lane] = lesser_word(bits - 1, lanes.least[lane])
    lanes.broken[lane] += fabs(whole - value)
    lanes.strange[lane] += value * 0.0


cdef inline Range range_of(const number *values, Py_ssize_t n) noexcept nogil:
    cdef Lanes lanes
    cdef Range r = Range(-1, INFINITY, -INFINITY, INFINITY, True)
    cdef Py_ssize_t i = 0, end
    cdef int lane
    cdef uint64_t bits
    cdef double least
    memset(&lanes, 0, sizeof(lanes))
    for lane in range(LANES):
        lanes.lowest[lane] = INFINITY
        lanes.highest[lane] = -INFINITY
        lanes.least[lane] = 0x7FEFFFFFFFFFFFFF             # of the largest double, less 1
    while i < n:
        end = min(n, i + CHUNK)
        while i + LANES <= end:
            for lane in range(LANES):
                look(&lanes, lane, <double>values[i + lane])
            i += LANES
        while i < end:
            look(&lanes, 0, <double>values[i])
            i += 1
        if not isfinite(lanes.strange[0] + lanes.strange[1] + lanes.strange[2] + lanes.strange[3]):
            for i in range(max(0, end - CHUNK), end):
                if not isfinite(<double>values[i]):
                    r.first_bad = i
                    return r
    for lane in range(LANES):
        r.lowest = min(r.lowest, lanes.lowest[lane])
        r.highest = max(r.highest, lanes.highest[lane])
        bits = lanes.least[lane] + 1
        memcpy(&least, &bits, sizeof(double))
        r.least = min(r.least, least)
        r.integral = r.integral and lanes.broken[lane] == 0.0
    if max(-r.lowest, r.highest) >= 2251799813685248.0:       # 2**51
        r.integral = True
        for i in range(n):
            r.integral = r.integral and floor(<double>values[i]) == <double>values[i]
    return r
