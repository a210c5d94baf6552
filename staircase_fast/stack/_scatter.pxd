# Sort rows by score, and what goes with each score along with it.
#
#     scatter    rows go to parts that follow each other in score order, each to its place in the columns to be
#     finish     each part, small enough for the cache, is sorted there (_sort.pxd)
#
# Parts are cut by rank: ranks are counted by digit, and digits side by side are one part as long as they hold few rows.
# So each row is moved through memory once, and that is most of what a sort of many rows costs.
#
# Assumed of the caller: 1 <= n < 2**32, no NaN, and work space as `work_bytes` says.  Scores are read more than once:
# if they change meanwhile, the order is wrong, but every index stays within its array.

from libc.math cimport INFINITY
from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memset

from staircase_fast.arithmetic._branchless cimport greater_word, lesser_word
from staircase_fast.arithmetic._types cimport BATCH, floating
from staircase_fast.stack._sort cimport (
    FEW, Pair, Triple, bits_of, double_of, insert, rank_of, ranked, score_of, shift_for, sort_rows, spread,
)

ctypedef fused bits:      # what a target lies in
    uint8_t
    uint32_t
    uint64_t

cdef enum:
    MIN_PART = 4096       # rows: two arrays of these lie in the cache beside all else
    MOST_PARTS = 1024     # more, and writing to all of them at once gets slow
    MOST_DIGITS = 65536
    MOST_SAMPLED = 4096

# What a sort needs besides its columns; see work_bytes.
ctypedef struct Work:
    Py_ssize_t part_rows  # digits that hold more than these are a part of their own
    Py_ssize_t room       # rows that fit into each of the two arrays
    Py_ssize_t most_parts
    Py_ssize_t n_digits
    void *rows
    void *spare
    Py_ssize_t *ends      # of parts
    uint32_t *digits
    uint16_t *part_of     # each digit


cdef inline Work sizes(Py_ssize_t n) noexcept nogil:
    cdef Work work
    work.part_rows = max(MIN_PART, n // MOST_PARTS)
    work.room = min(n, 4 * work.part_rows)
    work.most_parts = 2 * (n // work.part_rows) + 2       # any two side by side hold more than part_rows
    work.n_digits = MIN_PART
    while work.n_digits < n and work.n_digits < MOST_DIGITS:
        work.n_digits *= 2
    return work


cdef inline Py_ssize_t work_bytes(Py_ssize_t n) noexcept nogil:
    """Bytes that a sort of n rows wants for its work: at 10**7 rows 2 MB, and never much beside the columns."""
    cdef Work work = sizes(n)
    return (
        2 * work.room * sizeof(Triple)
        + work.most_parts * sizeof(Py_ssize_t)
        + work.n_digits * (sizeof(uint32_t) + sizeof(uint16_t))
    )


cdef inline void sort_columns(
    const floating *scores, const bits *targets, const double *weights, Py_ssize_t n, floating *x, bits *y, double *w,
    void *room
) noexcept nogil:
    """Sort rows into x, y and w; without weights, both of them are NULL."""
    cdef Work work = sizes(n)
    work.rows = room
    work.spare = <Triple *>room + work.room
    work.ends = <Py_ssize_t *>(<Triple *>room + 2 * work.room)
    work.digits = <uint32_t *>(work.ends + work.most_parts)
    work.part_of = <uint16_t *>(work.digits + work.n_digits)
    if weights != NULL:
        sort_all(scores, targets, weights, n, x, y, w, &work, <Triple *>work.rows)
    else:
        sort_all(scores, targets, NULL, n, x, y, NULL, &work, <Pair *>work.rows)


cdef inline void sort_all(
    const floating *scores, const bits *targets, const double *weights, Py_ssize_t n, floating *x, bits *y, double *w,
    const Work *work, ranked *kind
) noexcept nogil:
    cdef Py_ssize_t start = 0, p, n_parts
    if n <= work.room:
        sort_part(scores, targets, weights, n, x, y, w, work, kind)
        return
    n_parts = scatter(scores, targets, weights, n, x, y, w, work)
    for p in range(n_parts):
        # digits that hold many rows may hold more than there is room for
        sort_in_place(x + start, y + start, w + start if ranked is Triple else NULL, work.ends[p] - start, work, kind)
        start = work.ends[p]


cdef inline void find_range(
    const floating *scores, Py_ssize_t n, const Work *work, uint64_t *first, uint64_t *last
) noexcept nogil:
    """Ranks between which a sample finds nearly all rows: a few far away shall not decide what a digit is."""
    cdef Pair *sample = <Pair *>work.rows
    cdef Py_ssize_t i, m = min(n // 16, MOST_SAMPLED), a = 0, b = m - 1, far
    for i in range(m):
        sample[i].rank = rank_of(scores[i * (n // m)])
        sample[i].y = 0
    sort_rows(sample, m, <Pair *>work.spare)
    while a < b and sample[a].rank == rank_of(-INFINITY):
        a += 1
    while a < b and sample[b].rank == rank_of(INFINITY):
        b -= 1
    far = (b - a) // 1000
    if sample[a + far].rank == sample[b - far].rank:
        far = 0
    first[0] = sample[a + far].rank
    last[0] = sample[b - far].rank


cdef inline Py_ssize_t scatter(
    const floating *scores, const bits *targets, const double *weights, Py_ssize_t n, floating *x, bits *y, double *w,
    const Work *work,
) noexcept nogil:
    """A counting sort by part; return how many parts there are.  Their ends move there from their starts."""
    cdef uint16_t parts[BATCH]
    cdef Py_ssize_t *ends = work.ends
    cdef Py_ssize_t i, at, d, p = 0, start, size
    cdef uint64_t first, last, rank
    cdef int shift
    find_range(scores, n, work, &first, &last)
    shift = shift_for(last - first, work.n_digits)
    memset(work.digits, 0, work.n_digits * sizeof(uint32_t))
    for i in range(n):
        work.digits[(lesser_word(greater_word(rank_of(scores[i]), first), last) - first) >> shift] += 1

    start = 0
    ends[0] = 0
    for d in range(work.n_digits):
        size = work.digits[d]
        if start > ends[p] and start + size > ends[p] + work.part_rows:
            p += 1
            ends[p] = start
        start += size
        work.part_of[d] = <uint16_t>p

    start = 0
    while start < n:
        size = min(BATCH, n - start)
        for i in range(size):
            rank = lesser_word(greater_word(rank_of(scores[start + i]), first), last)
            parts[i] = work.part_of[(rank - first) >> shift]
        for i in range(size):
            at = min(ends[parts[i]], n - 1)   # more rows than were counted, if scores have changed since
            ends[parts[i]] = at + 1
            x[at] = scores[start + i]
            y[at] = targets[start + i]
            if weights != NULL:
                w[at] = weights[start + i]
        start += size
    return p + 1


cdef inline void sort_in_place(
    floating *x, bits *y, double *w, Py_ssize_t n, const Work *work, ranked *kind
) noexcept nogil:
    """Sort a part; if it is too large, cut it in three: below, at and above a pivot."""
    cdef Py_ssize_t i, below, above
    cdef uint64_t first, last, pivot, rank
    cdef bint lopsided = False
    while n > work.room:
        first = last = rank_of(x[0])
        for i in range(1, n):
            first = lesser_word(rank_of(x[i]), first)
            last = greater_word(rank_of(x[i]), last)
        if first == last:
            return
        # half the range may be a poor guess of the median, but no range can be halved more than 64 times
        pivot = first + ((last - first) >> 1) if lopsided else middle(x, n)
        below = i = 0
        above = n
        while i < above:                      # [0, below) < pivot, [below, i) == pivot, [above, n) > pivot
            rank = rank_of(x[i])
            if rank < pivot:
                swap(x, y, w, i, below)
                below += 1
                i += 1
            elif rank > pivot:
                above -= 1
                swap(x, y, w, i, above)
            else:
                i += 1
        lopsided = max(below, n - above) > n - n // 8
        if below < n - above:                 # the shorter part first, so that the depth stays logarithmic
            sort_in_place(x, y, w, below, work, kind)
            x += above
            y += above
            w = w + above if ranked is Triple else NULL
            n -= above
        else:
            sort_in_place(x + above, y + above, w + above if ranked is Triple else NULL, n - above, work, kind)
            n = below
    if n > 1:
        sort_part(x, y, w, n, x, y, w, work, kind)


cdef inline void swap(floating *x, bits *y, double *w, Py_ssize_t i, Py_ssize_t j) noexcept nogil:
    x[i], x[j] = x[j], x[i]
    y[i], y[j] = y[j], y[i]
    if w != NULL:
        w[i], w[j] = w[j], w[i]


cdef inline uint64_t middle(const floating *x, Py_ssize_t n) noexcept nogil:
    """The median of some ranks from all over."""
    cdef Pair sample[FEW - 1]
    cdef Py_ssize_t i
    for i in range(FEW - 1):
        sample[i] = Pair(rank_of(x[i * (n // (FEW - 1))]), 0)
    insert(sample, FEW - 1)
    return sample[FEW // 2 - 1].rank


cdef inline void sort_part(
    const floating *scores, const bits *targets, const double *weights, Py_ssize_t n, floating *x, bits *y, double *w,
    const Work *work, ranked *kind,
) noexcept nogil:
    """Sort what there is room for."""
    cdef ranked *rows = <ranked *>work.rows
    cdef ranked *spare = <ranked *>work.spare
    cdef uint64_t first = rank_of(scores[0]), last = first, rank
    cdef Py_ssize_t i
    assert 0 < n <= work.room
    for i in range(n):
        rank = rank_of(scores[i])
        first = lesser_word(rank, first)
        last = greater_word(rank, last)
        rows[i].rank = rank
        rows[i].y = targets[i]
        if ranked is Triple:
            rows[i].w = bits_of(weights[i])
    if first == last and x == scores:
        return
    spread(rows, n, first, last, work.digits, work.n_digits, spare)
    insert(spare, n)
    for i in range(n):
        x[i] = <floating>score_of(spare[i].rank)
        y[i] = <bits>spare[i].y
        if ranked is Triple:
            w[i] = double_of(spare[i].w)
