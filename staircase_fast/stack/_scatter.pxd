# Sort columns by score.  Most of the time of a large sort is memory traffic, so each row is moved only once:
#
#     scatter        write each row to its *part* of the sorted columns; parts are consecutive ranges of ranks
#     sort_part      sort each part, which fits the cache (`_sort.pxd`)
#
# Ranks are counted by digit, and neighbouring digits with few rows form one part.  Rows that are nearly sorted are
# sorted by insertion, which is almost as fast as a copy (`insert_columns` of `_keys.pxd`).
#
# Preconditions: 1 <= n < 2**32, no NaN, `work_bytes` of work space.  Scores are read more than once.  If they change
# during the call, the order is wrong, but every index stays within its array.

from libc.math cimport INFINITY
from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memset

from staircase_fast.arithmetic._branchless cimport greater_word, lesser_word
from staircase_fast.arithmetic._types cimport BATCH, bits_of, double_of, floating
from staircase_fast.stack._keys cimport bits
from staircase_fast.stack._sort cimport (
    FEW, RankedKey, RankedRow, RankedTarget, insert, rank_of, ranked, score_of, shift_for, sort_rows, spread,
)

cdef enum:
    MIN_PART = 4096       # rows; two arrays of these fit the cache
    MOST_PARTS = 1024     # writing to more places at once is slow
    MOST_DIGITS = 65536
    MOST_SAMPLED = 4096
    PROBES = 16           # places where the order of PROBE_ROWS scores is checked
    PROBE_ROWS = 128
    MOST_FALLS = 128      # among them, if rows are nearly sorted

# Sizes and work space of a sort.
ctypedef struct Work:
    Py_ssize_t part_rows  # digits with more rows form their own part
    Py_ssize_t room       # capacity of `rows` and of `spare`
    Py_ssize_t most_parts
    Py_ssize_t n_digits
    void *rows
    void *spare
    Py_ssize_t *ends      # end of each part
    uint32_t *digits
    uint16_t *part_of     # part of each digit


cdef inline Work sizes(Py_ssize_t n) noexcept nogil:
    cdef Work work
    work.part_rows = max(MIN_PART, n // MOST_PARTS)
    work.room = min(n, 4 * work.part_rows)
    work.most_parts = 2 * (n // work.part_rows) + 2       # two neighbours have more than part_rows rows
    work.n_digits = MIN_PART
    while work.n_digits < n and work.n_digits < MOST_DIGITS:
        work.n_digits *= 2
    return work


cdef inline Py_ssize_t work_bytes(Py_ssize_t n) noexcept nogil:
    """Bytes of work space for n rows: 2 MB for 10**7 rows, always small compared to the columns."""
    cdef Work work = sizes(n)
    return (
        2 * work.room * sizeof(RankedRow)
        + work.most_parts * sizeof(Py_ssize_t)
        + work.n_digits * (sizeof(uint32_t) + sizeof(uint16_t))
    )


cdef inline void sort_columns(
    const floating *scores, const bits *targets, const double *weights, Py_ssize_t n, floating *x, bits *y, double *w,
    void *room
) noexcept nogil:
    """Sort rows into x, y and w; without weights, `weights` and `w` are NULL."""
    cdef Work work = sizes(n)
    work.rows = room
    work.spare = <RankedRow *>room + work.room
    work.ends = <Py_ssize_t *>(<RankedRow *>room + 2 * work.room)
    work.digits = <uint32_t *>(work.ends + work.most_parts)
    work.part_of = <uint16_t *>(work.digits + work.n_digits)
    if weights != NULL:
        sort_all(scores, targets, weights, n, x, y, w, &work, <RankedRow *>work.rows)
    else:
        sort_all(scores, targets, NULL, n, x, y, NULL, &work, <RankedTarget *>work.rows)


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
        # a digit with many rows may exceed the work space
        sort_in_place(
            x + start, y + start, w + start if ranked is RankedRow else NULL, work.ends[p] - start, work, kind
        )
        start = work.ends[p]


cdef inline void find_range(
    const floating *scores, Py_ssize_t n, const Work *work, uint64_t *first, uint64_t *last
) noexcept nogil:
    """Find two ranks between which nearly all rows lie, from a sample, so that outliers do not widen the digits."""
    cdef RankedKey *sample = <RankedKey *>work.rows
    cdef Py_ssize_t i, m = min(n // 16, MOST_SAMPLED), a = 0, b = m - 1, far
    for i in range(m):
        sample[i].rank = rank_of(scores[i * (n // m)])
    sort_rows(sample, m, <RankedKey *>work.spare)
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
    """Counting sort by part; return the number of parts.  ends[p] moves from the start of part p to its end."""
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
            at = min(ends[parts[i]], n - 1)   # if scores changed, there may be more rows than counted
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
    """Sort a part; if it exceeds the work space, first partition it by a pivot (quicksort)."""
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
        # after a lopsided partition, halve the range of ranks: that happens at most 64 times
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
        if below < n - above:                 # recurse into the shorter side: logarithmic depth
            sort_in_place(x, y, w, below, work, kind)
            x += above
            y += above
            w = w + above if ranked is RankedRow else NULL
            n -= above
        else:
            sort_in_place(x + above, y + above, w + above if ranked is RankedRow else NULL, n - above, work, kind)
            n = below
    if n > 1:
        sort_part(x, y, w, n, x, y, w, work, kind)


cdef inline void swap(floating *x, bits *y, double *w, Py_ssize_t i, Py_ssize_t j) noexcept nogil:
    x[i], x[j] = x[j], x[i]
    y[i], y[j] = y[j], y[i]
    if w != NULL:
        w[i], w[j] = w[j], w[i]


cdef inline uint64_t middle(const floating *x, Py_ssize_t n) noexcept nogil:
    """The median rank of a small sample."""
    cdef RankedKey sample[FEW - 1]
    cdef Py_ssize_t i
    for i in range(FEW - 1):
        sample[i].rank = rank_of(x[i * (n // (FEW - 1))])
    insert(sample, FEW - 1)
    return sample[FEW // 2 - 1].rank


cdef inline void sort_part(
    const floating *scores, const bits *targets, const double *weights, Py_ssize_t n, floating *x, bits *y, double *w,
    const Work *work, ranked *kind,
) noexcept nogil:
    """Sort a part that fits the work space."""
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
        if ranked is RankedRow:
            rows[i].w = bits_of(weights[i])
    if first == last and x == scores:
        return
    spread(rows, n, first, last, work.digits, work.n_digits, spare)
    insert(spare, n)
    for i in range(n):
        x[i] = <floating>score_of(spare[i].rank)
        y[i] = <bits>spare[i].y
        if ranked is RankedRow:
            w[i] = double_of(spare[i].w)


cdef inline bint looks_sorted(const floating *scores, Py_ssize_t n) noexcept nogil:
    """Whether few scores are below the one before them, according to some of the rows."""
    cdef Py_ssize_t probe, start, i, falls = 0
    for probe in range(PROBES):
        start = probe * (n // PROBES)
        for i in range(start + 1, min(n, start + PROBE_ROWS)):
            falls += scores[i] < scores[i - 1]
    return falls <= MOST_FALLS
