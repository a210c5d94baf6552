# A sort of rows by score, in time linear in their number whatever the scores and their order.
#
# The bits of a double, read as an integer, are in the order of doubles: its rank.  Ranks between the least and the
# greatest are cut into equal digits, as many as there are rows, and each row goes to its digit; digits that many rows
# share are cut again, into ranks so much closer that after a few times all are equal; those that few share are left to
# insertion.  Nothing is compared but neighbours, so no order of rows is a bad one.
#
# Assumed of the caller: no NaN.

from libc.stdint cimport uint32_t, uint64_t
from libc.string cimport memcpy, memset

from staircase_fast._select cimport greater, lesser

# What is sorted: a score and what goes with it.
ctypedef struct Row:
    double x
    double y
    double w

ctypedef struct Pair:
    double x
    uint64_t y            # the bits of a target of any type

ctypedef struct Triple:
    double x
    uint64_t y
    double w

ctypedef fused row_t:
    Row
    Pair
    Triple

cdef enum:
    FEW = 24              # rows that insertion sorts
    DIGITS = 256          # at most, of rows that share a digit: these lie on the stack


cdef inline uint64_t rank_of(double x) noexcept nogil:
    cdef uint64_t bits
    x += 0.0                                  # makes -0.0 the 0.0 it equals
    memcpy(&bits, &x, sizeof(double))
    return bits ^ (-(bits >> 63) | (<uint64_t>1 << 63))


cdef inline double score_of(uint64_t rank) noexcept nogil:
    cdef uint64_t bits = rank ^ (-(~rank >> 63) | (<uint64_t>1 << 63))
    cdef double x
    memcpy(&x, &bits, sizeof(double))
    return x


cdef inline bint find_extremes(const row_t *rows, Py_ssize_t n, double *lo, double *hi) noexcept nogil:
    """The least and the greatest score; return whether they differ."""
    cdef Py_ssize_t i
    lo[0] = hi[0] = rows[0].x
    for i in range(1, n):
        lo[0] = lesser(rows[i].x, lo[0])
        hi[0] = greater(rows[i].x, hi[0])
    return lo[0] < hi[0]


cdef inline void spread(
    row_t *rows, Py_ssize_t n, double lo, double hi, uint32_t *ends, Py_ssize_t most_digits, row_t *out
) noexcept nogil:
    """Bring each row into `out` so near its place that `insert` has little to do; `rows` is work."""
    cdef uint32_t own_ends[DIGITS]
    cdef uint64_t first = rank_of(lo), width = rank_of(hi) - first
    cdef Py_ssize_t i, d, start, size, n_digits = 32
    cdef uint32_t before = 0
    cdef int shift = 0
    while n_digits < n and n_digits < most_digits:
        n_digits *= 2
    while (width >> shift) >= <uint64_t>n_digits:
        shift += 1
    memset(ends, 0, n_digits * sizeof(uint32_t))
    for i in range(n):
        ends[(rank_of(rows[i].x) - first) >> shift] += 1
    for d in range(n_digits):
        size = ends[d]
        ends[d] = before
        before += <uint32_t>size
    for i in range(n):
        d = <Py_ssize_t>((rank_of(rows[i].x) - first) >> shift)
        out[ends[d]] = rows[i]
        ends[d] += 1
    start = 0
    for d in range(n_digits):
        size = ends[d] - start
        if size > FEW and find_extremes(out + start, size, &lo, &hi):
            memcpy(rows + start, out + start, size * sizeof(row_t))
            spread(rows + start, size, lo, hi, own_ends, DIGITS, out + start)
        start = ends[d]


cdef inline void insert(row_t *rows, Py_ssize_t n) noexcept nogil:
    """Sort rows of which none is far from its place."""
    cdef Py_ssize_t i, j
    cdef row_t row
    for i in range(1, n):
        if rows[i - 1].x <= rows[i].x:
            continue
        row = rows[i]
        j = i
        while j > 0 and rows[j - 1].x > row.x:
            rows[j] = rows[j - 1]
            j -= 1
        rows[j] = row


cdef inline void sort_rows(row_t *rows, Py_ssize_t n, row_t *out) noexcept nogil:
    """Bring the rows into `out` in score order; `rows` is work."""
    cdef uint32_t ends[DIGITS]
    cdef double lo, hi
    if n > FEW and find_extremes(rows, n, &lo, &hi):
        spread(rows, n, lo, hi, ends, DIGITS, out)
    else:
        memcpy(out, rows, n * sizeof(row_t))
    insert(out, n)
