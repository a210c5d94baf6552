# A bucket sort of rows by score, in linear time for any scores in any order.
#
# The *rank* of a double is its bits as an integer, changed so that integers and doubles have the same order.  The range
# of ranks is divided into *digits* of equal width, about as many as there are rows, and each row goes to its digit.  A
# digit with more than FEW rows is divided again, until all its rows are equal; ranks have only 64 bits.  The rest is
# insertion sort.  Equal ranks end in any order, but always the same for the same input.
#
# Precondition: no NaN.

from libc.stdint cimport uint32_t, uint64_t
from libc.string cimport memcpy, memset

from staircase_fast.arithmetic._branchless cimport greater_word, lesser_word
from staircase_fast.arithmetic._types cimport bits_of, double_of

# A rank, alone or with the bits of a target and of a weight.
ctypedef struct RankedKey:
    uint64_t rank

ctypedef struct RankedTarget:
    uint64_t rank
    uint64_t y

ctypedef struct RankedRow:
    uint64_t rank
    uint64_t y
    uint64_t w

ctypedef fused ranked:
    RankedTarget
    RankedRow

ctypedef fused sortable:
    RankedKey
    RankedTarget
    RankedRow

cdef enum:
    FEW = 24              # digits with up to FEW rows are sorted by insertion
    DIGITS = 256          # limit when a digit is divided again: its counts are on the C stack


cdef inline uint64_t rank_of(double x) noexcept nogil:
    """An integer with the order of doubles; that of -0.0 is just below that of 0.0."""
    cdef uint64_t bits = bits_of(x)
    return bits ^ ((0 - (bits >> 63)) | (<uint64_t>1 << 63))


cdef inline double score_of(uint64_t rank) noexcept nogil:
    return double_of(rank ^ ((0 - (~rank >> 63)) | (<uint64_t>1 << 63)))


cdef inline bint find_extremes(const sortable *rows, Py_ssize_t n, uint64_t *first, uint64_t *last) noexcept nogil:
    """Find the least and the greatest rank; return whether they differ."""
    cdef Py_ssize_t i
    first[0] = last[0] = rows[0].rank
    for i in range(1, n):
        first[0] = lesser_word(rows[i].rank, first[0])
        last[0] = greater_word(rows[i].rank, last[0])
    return first[0] < last[0]


cdef inline int shift_for(uint64_t width, Py_ssize_t n_digits) noexcept nogil:
    """The shift that turns a rank in [0, width] into a digit."""
    cdef int shift = 0
    while width >> shift >= <uint64_t>n_digits:
        shift += 1
    return shift


cdef inline void spread(
    sortable *rows, Py_ssize_t n, uint64_t first, uint64_t last, uint32_t *ends, Py_ssize_t most_digits, sortable *out
) noexcept nogil:
    """Copy each row to `out`, close to its final place; `insert` does the rest.  `rows` is work space."""
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
    if most > FEW:
        spread_crowds(out, ends, n_digits, rows)


cdef inline void spread_crowds(
    sortable *rows, const uint32_t *ends, Py_ssize_t n_digits, sortable *spare
) noexcept nogil:
    """Divide digits with many rows again; digit d ends before row ends[d]."""
    cdef uint32_t own_ends[DIGITS]
    cdef uint64_t first, last
    cdef Py_ssize_t d, start = 0, size
    for d in range(n_digits):
        size = ends[d] - start
        if size > FEW and find_extremes(rows + start, size, &first, &last):
            memcpy(spare + start, rows + start, size * sizeof(sortable))
            spread(spare + start, size, first, last, own_ends, DIGITS, rows + start)
        start = ends[d]


cdef inline void insert(sortable *rows, Py_ssize_t n) noexcept nogil:
    """Insertion sort, for rows that are close to their final places."""
    cdef Py_ssize_t i, j
    cdef sortable row, other
    cdef uint64_t swap, change
    if n == 0:
        return
    # one pass of swaps without branches puts most rows in place, so the branches below are rarely mispredicted
    row = rows[0]
    for i in range(1, n):
        other = rows[i]
        swap = 0 - <uint64_t>(row.rank > other.rank)
        change = (row.rank ^ other.rank) & swap
        rows[i - 1].rank = row.rank ^ change
        row.rank = other.rank ^ change
        if sortable is RankedTarget or sortable is RankedRow:
            change = (row.y ^ other.y) & swap
            rows[i - 1].y = row.y ^ change
            row.y = other.y ^ change
        if sortable is RankedRow:
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
    """Sort by rank; `spare` is work space for n rows."""
    cdef uint32_t ends[DIGITS]
    cdef uint64_t first, last
    if n > FEW and find_extremes(rows, n, &first, &last):
        memcpy(spare, rows, n * sizeof(sortable))
        spread(spare, n, first, last, ends, DIGITS, rows)
    insert(rows, n)
