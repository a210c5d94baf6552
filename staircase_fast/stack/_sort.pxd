# A sort of rows by score, in time linear in their number whatever the scores and their order.
#
# The bits of a double, read as an integer, are in the order of doubles: its rank.  The range of ranks is cut into equal
# digits, as many as there are rows, and each row goes to its digit; where many share one, its range is cut again, and
# so on until few are left or all are equal, for ranks have no more than 64 bits.  Few are left to insertion.
#
# Assumed of the caller: no NaN.

from libc.stdint cimport uint32_t, uint64_t
from libc.string cimport memcpy, memset

from staircase_fast.arithmetic._branchless cimport greater_word, lesser_word

# What is sorted: the rank of a score, and the bits of a target and of a weight.  A word alone is a rank that says all.
ctypedef struct Word:
    uint64_t rank

ctypedef struct Pair:
    uint64_t rank
    uint64_t y

ctypedef struct Triple:
    uint64_t rank
    uint64_t y
    uint64_t w

ctypedef fused ranked:
    Pair
    Triple

ctypedef fused sortable:
    Word
    Pair
    Triple

cdef enum:
    FEW = 24              # rows that insertion sorts
    DIGITS = 256          # at most, where a digit is cut again: these lie on the stack


cdef inline uint64_t bits_of(double value) noexcept nogil:
    cdef uint64_t bits
    memcpy(&bits, &value, sizeof(double))
    return bits


cdef inline double double_of(uint64_t bits) noexcept nogil:
    cdef double value
    memcpy(&value, &bits, sizeof(double))
    return value


cdef inline uint64_t rank_of(double x) noexcept nogil:
    """-0.0 is just below 0.0, which it equals."""
    cdef uint64_t bits = bits_of(x)
    return bits ^ ((0 - (bits >> 63)) | (<uint64_t>1 << 63))


cdef inline double score_of(uint64_t rank) noexcept nogil:
    return double_of(rank ^ ((0 - (~rank >> 63)) | (<uint64_t>1 << 63)))


cdef inline bint find_extremes(const sortable *rows, Py_ssize_t n, uint64_t *first, uint64_t *last) noexcept nogil:
    """The least and the greatest rank; return whether they differ."""
    cdef Py_ssize_t i
    first[0] = last[0] = rows[0].rank
    for i in range(1, n):
        first[0] = lesser_word(rows[i].rank, first[0])
        last[0] = greater_word(rows[i].rank, last[0])
    return first[0] < last[0]


cdef inline int shift_for(uint64_t width, Py_ssize_t n_digits) noexcept nogil:
    """How far to shift ranks from 0 to `width` to get digits."""
    cdef int shift = 0
    while width >> shift >= <uint64_t>n_digits:
        shift += 1
    return shift


cdef inline void spread(
    sortable *rows, Py_ssize_t n, uint64_t first, uint64_t last, uint32_t *ends, Py_ssize_t most_digits, sortable *out
) noexcept nogil:
    """Bring each row into `out` so near its place that `insert` has little to do; `rows` is work."""
    cdef uint32_t own_ends[DIGITS]
    cdef Py_ssize_t i, d, start, size, most = 0, n_digits = 32
    cdef int shift
    while n_digits < n and n_digits < most_digits:
        n_digits *= 2
    shift = shift_for(last - first, n_digits)
    memset(ends, 0, n_digits * sizeof(uint32_t))
    for i in range(n):
        ends[(rows[i].rank - first) >> shift] += 1
    start = 0
    for d in range(n_digits):
        size = ends[d]
        ends[d] = <uint32_t>start
        start += size
        most = max(most, size)
    for i in range(n):
        d = <Py_ssize_t>((rows[i].rank - first) >> shift)
        out[ends[d]] = rows[i]
        ends[d] += 1
    if most <= FEW:
        return
    start = 0
    for d in range(n_digits):
        size = ends[d] - start
        if size > FEW and find_extremes(out + start, size, &first, &last):
            memcpy(rows + start, out + start, size * sizeof(sortable))
            spread(rows + start, size, first, last, own_ends, DIGITS, out + start)
        start = ends[d]


cdef inline void insert(sortable *rows, Py_ssize_t n) noexcept nogil:
    """Sort rows of which none is far from its place."""
    cdef Py_ssize_t i, j
    cdef sortable row, other
    cdef uint64_t swap, change
    if n == 0:
        return
    # One round of swaps without branches: most are in place then, and the branches below seldom mispredicted.
    row = rows[0]
    for i in range(1, n):
        other = rows[i]
        swap = 0 - <uint64_t>(row.rank > other.rank)
        change = (row.rank ^ other.rank) & swap
        rows[i - 1].rank = row.rank ^ change
        row.rank = other.rank ^ change
        if sortable is Pair or sortable is Triple:
            change = (row.y ^ other.y) & swap
            rows[i - 1].y = row.y ^ change
            row.y = other.y ^ change
        if sortable is Triple:
            change = (row.w ^ other.w) & swap
            rows[i - 1].w = row.w ^ change
            row.w = other.w ^ change
    rows[n - 1] = row
    for i in range(1, n):
        if rows[i - 1].rank <= rows[i].rank:
            continue
        row = rows[i]
        j = i
        while j > 0 and rows[j - 1].rank > row.rank:
            rows[j] = rows[j - 1]
            j -= 1
        rows[j] = row


cdef inline void sort_rows(sortable *rows, Py_ssize_t n, sortable *spare) noexcept nogil:
    """Sort by rank; `spare` is work for as many rows."""
    cdef uint32_t ends[DIGITS]
    cdef uint64_t first, last
    if n > FEW and find_extremes(rows, n, &first, &last):
        memcpy(spare, rows, n * sizeof(sortable))
        spread(spare, n, first, last, ends, DIGITS, rows)
    insert(rows, n)
