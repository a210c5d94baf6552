# What one pass over a column of targets or weights finds.
#
# What else a bucket of rows needs, its sum and its extremes, is found on the way (`measure`): memory is read once.  A
# column is taken for integers until the first entry that is none; only from there on its least magnitude counts.
#
# Assumed of the caller: n >= 1, and nothing else.

from libc.math cimport INFINITY, floor, isfinite

from staircase_fast._exact cimport number
from staircase_fast._pair cimport (
    Pair, pair_first, pair_greater, pair_lesser, pair_minus, pair_of, pair_plus, pair_positive_or, pair_second,
    pair_size,
)
from staircase_fast._select cimport greater, lesser
from staircase_fast._summary cimport Bucket

cdef enum:
    CHUNK = 1024
    BUCKET_ROWS = 16

ctypedef struct Range:
    Py_ssize_t first_bad  # index of the first entry that is not finite, or -1; the rest holds only if it is -1
    double lowest
    double highest
    double least          # smallest magnitude that is not zero, or 1 if there are integers before it; inf if all are 0
    bint integral         # every entry is an integer

ctypedef struct Gauge:
    Range range
    Pair least
    Pair broken           # not 0 once an entry was no integer

ctypedef struct Sums:
    Pair s
    Pair lo
    Pair hi


cdef inline Gauge new_gauge() noexcept nogil:
    cdef Gauge gauge
    gauge.range = Range(-1, INFINITY, -INFINITY, INFINITY, True)
    gauge.least = pair_of(INFINITY, INFINITY)
    gauge.broken = pair_of(0.0, 0.0)
    return gauge


cdef inline Bucket measure(Gauge *gauge, const number *values, Py_ssize_t start, Py_ssize_t size) noexcept nogil:
    """Look at the entries [start, start + size); return their sum, number and extremes."""
    cdef Bucket bucket = look(gauge, values + start, size)
    cdef Py_ssize_t i
    if gauge.range.integral and pair_first(gauge.broken) + pair_second(gauge.broken) != 0:
        gauge.range.integral = False
        gauge.least = pair_of(1.0, 1.0)                  # of the integers so far
        look(gauge, values + start, size)
    if bucket.s - bucket.s != 0 and gauge.range.first_bad < 0:      # or a sum of finite entries has overflowed
        for i in range(start, start + size):
            if not isfinite(<double>values[i]):
                gauge.range.first_bad = i
                break
    gauge.range.lowest = lesser(bucket.lo, gauge.range.lowest)
    gauge.range.highest = greater(bucket.hi, gauge.range.highest)
    return bucket


cdef inline Bucket look(Gauge *gauge, const number *values, Py_ssize_t n) noexcept nogil:
    cdef Sums sums
    cdef Pair entries
    cdef double last
    cdef Py_ssize_t i
    sums.s = pair_of(0.0, 0.0)
    sums.lo = pair_of(INFINITY, INFINITY)
    sums.hi = pair_of(-INFINITY, -INFINITY)
    for i in range(n // 2):
        entries = pair_of(<double>values[2 * i], <double>values[2 * i + 1])
        note(gauge, &sums, entries, entries)
    if n % 2:
        last = <double>values[n - 1]
        note(gauge, &sums, pair_of(last, last), pair_of(last, 0.0))
    return Bucket(
        pair_first(sums.s) + pair_second(sums.s), <double>n,
        lesser(pair_first(sums.lo), pair_second(sums.lo)), greater(pair_first(sums.hi), pair_second(sums.hi)),
    )


cdef inline void note(Gauge *gauge, Sums *sums, Pair entries, Pair terms) noexcept nogil:
    # adding and subtracting 1.5 * 2**52 rounds to an integer where the magnitude is below 2**51
    cdef Pair magic = pair_of(6755399441055744.0, 6755399441055744.0), sizes
    sums.s = pair_plus(sums.s, terms)
    sums.lo = pair_lesser(entries, sums.lo)
    sums.hi = pair_greater(entries, sums.hi)
    if gauge.range.integral:
        entries = pair_minus(pair_minus(pair_plus(entries, magic), magic), entries)
        gauge.broken = pair_plus(gauge.broken, pair_size(entries))
    else:
        sizes = pair_positive_or(pair_size(entries), pair_of(INFINITY, INFINITY))
        gauge.least = pair_lesser(sizes, gauge.least)


cdef inline Range range_after(const Gauge *gauge, const number *values, Py_ssize_t n) noexcept nogil:
    """The range of all n entries, which the gauge has seen."""
    cdef Range r = gauge.range
    cdef double greatest = max(-r.lowest, r.highest)
    cdef Py_ssize_t i
    r.least = min(pair_first(gauge.least), pair_second(gauge.least))
    if r.integral:
        r.least = 1.0 if greatest > 0 else INFINITY
    if greatest >= 2251799813685248.0:                   # 2**51: there `note` may take halves for integers
        r.integral = True
        for i in range(n):
            r.integral = r.integral and floor(<double>values[i]) == <double>values[i]
    return r


cdef inline Range range_of(const number *values, Py_ssize_t n) noexcept nogil:
    cdef Gauge gauge = new_gauge()
    cdef Py_ssize_t i = 0
    while i + BUCKET_ROWS <= n:
        measure(&gauge, values, i, BUCKET_ROWS)
        i += BUCKET_ROWS
    measure(&gauge, values, i, n - i)
    return range_after(&gauge, values, n)
