"""Sort rows by score, and what goes with each score along with it.

    scatter    rows go to parts that follow each other in score order, each to its place in the columns to be
    finish     each part, small enough for the cache, is sorted there (_sort.pxd)

Parts are cut by rank: ranks are counted by digit, and digits side by side are one part as long as they hold few rows.
So each row is moved through memory once, and that is most of what a sort of many rows costs.

Kernels here assume clean input: n >= 1, contiguous columns, no NaN.
"""

from libc.math cimport INFINITY
from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memset

from staircase_fast._cells cimport BATCH, floating
from staircase_fast._select cimport greater, greater_word, lesser, lesser_word
from staircase_fast._sort cimport Pair, Triple, insert, rank_of, score_of, sort_rows, spread

ctypedef fused bits:      # what a target lies in
    uint8_t
    uint32_t
    uint64_t

ctypedef fused bundle:
    Pair
    Triple

cdef enum:
    MIN_PART = 4096       # rows: two arrays of these are in the cache beside all else
    MOST_PARTS = 1024     # more, and writing to all of them at once gets slow
    MOST_DIGITS = 65536
    MOST_SAMPLED = 4096

# What a sort needs besides its columns; see work_size.
ctypedef struct Work:
    Py_ssize_t part_rows  # digits that hold more than these are a part of their own
    Py_ssize_t room       # rows that fit into each of the two arrays
    Py_ssize_t n_digits
    void *rows
    void *spare
    Py_ssize_t *ends      # of parts
    uint32_t *digits
    uint16_t *part_of     # each digit


cdef Work plan(Py_ssize_t n, uint8_t *work, Py_ssize_t *size) noexcept nogil:
    cdef Work plan
    plan.part_rows = max(MIN_PART, n // MOST_PARTS)
    plan.room = min(n, 4 * plan.part_rows)
    plan.n_digits = MIN_PART
    while plan.n_digits < n // 4 and plan.n_digits < MOST_DIGITS:
        plan.n_digits *= 2
    plan.rows = work
    plan.spare = work + plan.room * sizeof(Triple)
    plan.ends = <Py_ssize_t *>(work + 2 * plan.room * sizeof(Triple))
    plan.digits = <uint32_t *>(plan.ends + 2 * (n // plan.part_rows) + 2)
    plan.part_of = <uint16_t *>(plan.digits + plan.n_digits)
    size[0] = <uint8_t *>(plan.part_of + plan.n_digits) - work
    return plan


def work_size(Py_ssize_t n):
    """Bytes that `sort_columns` wants for its work."""
    cdef Py_ssize_t size
    plan(n, NULL, &size)
    return size


def sort_columns(
    const floating[::1] scores not None,      # IN
    const bits[::1] targets not None,         # IN
    const double[::1] weights not None,       # IN  or empty
    floating[::1] x not None,                 # OUT
    bits[::1] y not None,                     # OUT
    double[::1] w not None,                   # OUT or empty
    uint8_t[::1] work not None,               # work: work_size(n) bytes
):
    cdef Py_ssize_t n = scores.shape[0], size
    cdef Work own = plan(n, &work[0], &size)
    with nogil:
        if weights.shape[0]:
            sort_all(&scores[0], &targets[0], &weights[0], n, &x[0], &y[0], &w[0], &own, <Triple *>own.rows)
        else:
            sort_all(&scores[0], &targets[0], NULL, n, &x[0], &y[0], NULL, &own, <Pair *>own.rows)


cdef inline void sort_all(
    const floating *scores, const bits *targets, const double *weights, Py_ssize_t n, floating *x, bits *y, double *w,
    const Work *work, bundle *kind
) noexcept nogil:
    cdef Py_ssize_t start = 0, p, n_parts
    if n <= work.part_rows:
        sort_part(scores, targets, weights, n, x, y, w, work, kind)
        return
    n_parts = scatter(scores, targets, weights, n, x, y, w, work)
    for p in range(n_parts):
        # digits that hold many rows may hold more than there is room for
        sort_in_place(x + start, y + start, w + start if bundle is Triple else NULL, work.ends[p] - start, work, kind)
        start = work.ends[p]


cdef inline void find_range(
    const floating *scores, Py_ssize_t n, const Work *work, uint64_t *first, uint64_t *last
) noexcept nogil:
    """Ranks between which a sample finds nearly all rows: a few far away shall not decide what a digit is."""
    cdef Pair *rows = <Pair *>work.rows
    cdef Pair *sample = <Pair *>work.spare
    cdef Py_ssize_t i, m = min(n // 16, MOST_SAMPLED), a = 0, b = m - 1
    for i in range(m):
        rows[i].x = scores[i * (n // m)]
    sort_rows(rows, m, sample)
    while a < b and sample[a].x == -INFINITY:
        a += 1
    while a < b and sample[b].x == INFINITY:
        b -= 1
    if sample[a + (b - a) // 1000].x < sample[b - (b - a) // 1000].x:
        i = (b - a) // 1000
        a += i
        b -= i
    first[0] = rank_of(sample[a].x)
    last[0] = rank_of(sample[b].x)


cdef inline Py_ssize_t scatter(
    const floating *scores, const bits *targets, const double *weights, Py_ssize_t n, floating *x, bits *y, double *w,
    const Work *work,
) noexcept nogil:
    """A counting sort by part; return how many parts there are.  Their ends move there from their starts."""
    cdef uint16_t parts[BATCH]
    cdef Py_ssize_t *ends = work.ends
    cdef Py_ssize_t i, at, d, p = 0, start, size
    cdef uint64_t first, last, rank
    cdef int shift = 0
    find_range(scores, n, work, &first, &last)
    while (last - first) >> shift >= <uint64_t>work.n_digits:
        shift += 1
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
            at = ends[parts[i]]
            ends[parts[i]] = at + 1
            x[at] = scores[start + i]
            y[at] = targets[start + i]
            if weights != NULL:
                w[at] = weights[start + i]
        start += size
    return p + 1


cdef void sort_in_place(floating *x, bits *y, double *w, Py_ssize_t n, const Work *work, bundle *kind) noexcept nogil:
    """Sort a part; if it is too large, cut it in three: below, at and above a pivot."""
    cdef Py_ssize_t i, below, above
    cdef floating lo, hi, pivot
    cdef bint lopsided = False
    while n > work.room:
        find_extremes(x, n, &lo, &hi)
        if lo == hi:
            return
        # Half the range of ranks is a poor guess of the median, but it can be halved 64 times at most.
        pivot = <floating>score_of((rank_of(lo) >> 1) + (rank_of(hi) >> 1)) if lopsided else middle(x, n)
        below = i = 0
        above = n
        while i < above:                      # [0, below) < pivot, [below, i) == pivot, [above, n) > pivot
            if x[i] < pivot:
                swap(x, y, w, i, below)
                below += 1
                i += 1
            elif x[i] > pivot:
                above -= 1
                swap(x, y, w, i, above)
            else:
                i += 1
        lopsided = max(below, n - above) > n - n // 8
        if below < n - above:                 # the shorter part first, so that the depth stays logarithmic
            sort_in_place(x, y, w, below, work, kind)
            x += above
            y += above
            w = w + above if bundle is Triple else NULL
            n -= above
        else:
            sort_in_place(x + above, y + above, w + above if bundle is Triple else NULL, n - above, work, kind)
            n = below
    if n > 1:
        sort_part(x, y, w, n, x, y, w, work, kind)


cdef inline void swap(floating *x, bits *y, double *w, Py_ssize_t i, Py_ssize_t j) noexcept nogil:
    x[i], x[j] = x[j], x[i]
    y[i], y[j] = y[j], y[i]
    if w != NULL:
        w[i], w[j] = w[j], w[i]


cdef inline floating middle(const floating *x, Py_ssize_t n) noexcept nogil:
    """The median of some scores from all over."""
    cdef floating sample[15]
    cdef Py_ssize_t i, j
    for i in range(15):
        j = i
        while j > 0 and sample[j - 1] > x[i * (n // 15)]:
            sample[j] = sample[j - 1]
            j -= 1
        sample[j] = x[i * (n // 15)]
    return sample[7]


cdef inline void find_extremes(const floating *x, Py_ssize_t n, floating *lo, floating *hi) noexcept nogil:
    cdef double low = x[0], high = x[0]
    cdef Py_ssize_t i
    for i in range(1, n):
        low = lesser(x[i], low)
        high = greater(x[i], high)
    lo[0] = <floating>low
    hi[0] = <floating>high


cdef inline void sort_part(
    const floating *scores, const bits *targets, const double *weights, Py_ssize_t n, floating *x, bits *y, double *w,
    const Work *work, bundle *kind,
) noexcept nogil:
    """Sort what there is room for."""
    cdef bundle *rows = <bundle *>work.rows
    cdef bundle *spare = <bundle *>work.spare
    cdef floating lo, hi
    cdef Py_ssize_t i
    find_extremes(scores, n, &lo, &hi)
    if lo == hi and x == scores:
        return
    for i in range(n):
        rows[i].x = scores[i]
        rows[i].y = targets[i]
        if bundle is Triple:
            rows[i].w = weights[i]
    spread(rows, n, lo, hi, work.digits, work.n_digits, spare)
    insert(spare, n)
    for i in range(n):
        x[i] = <floating>spare[i].x
        y[i] = <bits>spare[i].y
        if bundle is Triple:
            w[i] = spare[i].w
