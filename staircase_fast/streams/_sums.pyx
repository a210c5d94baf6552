"""Exact sums of the rows of each score: made from sorted rows, joined two by two, and checked.

    sums           x the scores, ascending, no two equal; y and w the target and the weight of a score that was seen
                   once.  What was seen more often has w = 0 and is a pool: its rows are counted and its exact sums
                   (_exact.pxd) kept beside, pools in the order of scores.  So is a target that is no double.

Kernels here assume clean input: at least one row, finite numbers but for scores, no NaN, weights > 0, a Scale that is
wide enough for all rows, and room for every score and every pool in the outputs.
"""

from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memcpy, memmove, memset

from staircase_fast.arithmetic._branchless cimport lesser
from staircase_fast.arithmetic._exact cimport (
    MAX_WORDS, Dyadic, Scale, add_rows, add_sample, add_shifted, add_sums, compare_words, dyadic, exact_order,
    is_negative, multiply_words, unpacked,
)
from staircase_fast.arithmetic._rounded cimport shifted_word
from staircase_fast.stack._sort cimport bits_of, double_of
from staircase_fast.streams._lane cimport Lane, runs, split

ctypedef fused target:        # others are one of these without loss
    int64_t
    double

ctypedef struct Sums:
    double *x                 # read only, but for an output
    double *y
    double *w
    int64_t *rows
    uint64_t *words
    Py_ssize_t n
    Scale scale

# How many pools a lane has left behind.
ctypedef struct Pools:
    Py_ssize_t i
    Py_ssize_t j
    Py_ssize_t k


def count_pools(
    const double[::1] scores not None,        # IN  ascending
    const target[::1] targets not None,       # IN
):
    """How many scores there are, and how many of them must be pools."""
    cdef Py_ssize_t start = 0, end, n_scores = 0, n_pools = 0
    with nogil:
        while start < scores.shape[0]:
            end = end_of_tie(scores, start)
            n_scores += 1
            n_pools += end - start > 1 or not is_double(targets[start])
            start = end
    return n_scores, n_pools


cdef inline Py_ssize_t end_of_tie(const double[::1] scores, Py_ssize_t i) noexcept nogil:
    cdef double x = scores[i]
    i += 1                                        # even if the score has become NaN
    while i < scores.shape[0] and scores[i] == x:
        i += 1
    return i


cdef inline bint is_double(target y) noexcept nogil:
    cdef int64_t most = <int64_t>1 << 53
    if target is int64_t:
        return -most <= y <= most
    else:
        return True


def sum_rows(
    const double[::1] scores not None,        # IN  ascending
    const target[::1] targets not None,       # IN
    const double[::1] weights not None,       # IN  or empty: all are 1
    object scale not None,                    # IN  exact.Scale
    double[::1] x not None,                   # OUT sums
    double[::1] y not None,
    double[::1] w not None,
    int64_t[::1] rows not None,
    uint64_t[:, ::1] words not None,
):
    """Pool rows of one score; return how many scores and how many pools there are.

    These are fewer than `count_pools` found, and some rows may be left out, if the columns have changed since.
    """
    cdef Scale s = unpacked(scale)
    cdef Py_ssize_t start = 0, end, k = 0, pool = 0
    cdef const double *given = &weights[0] if weights.shape[0] else NULL
    cdef double weight
    with nogil:
        while start < scores.shape[0] and k < x.shape[0]:
            end = end_of_tie(scores, start)
            weight = 1.0 if given == NULL else given[start]
            x[k] = scores[start] + 0.0
            if end - start == 1 and is_double(targets[start]) and weight != 0:
                y[k] = <double>targets[start]
                w[k] = weight
            elif pool == rows.shape[0]:
                break
            else:
                y[k] = 0.0
                w[k] = 0.0
                rows[pool] = end - start
                memset(&words[pool, 0], 0, words.shape[1] * sizeof(uint64_t))
                add_rows(s, &words[pool, 0], &targets[0], given, start, end)
                pool += 1
            k += 1
            start = end
    return k, pool


def join_sums(
    const double[::1] x_a not None,           # IN  sums
    const double[::1] y_a not None,
    const double[::1] w_a not None,
    const int64_t[::1] rows_a not None,
    const uint64_t[:, ::1] words_a not None,
    object scale_a not None,                  # IN  exact.Scale of the words
    const double[::1] x_b not None,           # IN  sums
    const double[::1] y_b not None,
    const double[::1] w_b not None,
    const int64_t[::1] rows_b not None,
    const uint64_t[:, ::1] words_b not None,
    object scale_b not None,
    object scale not None,                    # IN  of both together: units as fine or finer, words as many or more
    double[::1] x not None,                   # OUT sums
    double[::1] y not None,
    double[::1] w not None,
    int64_t[::1] rows not None,
    uint64_t[:, ::1] words not None,
):
    """Return how many scores and how many pools there are: of the latter, as many as before and a new one per tie."""
    cdef Sums a = sums_of(x_a, y_a, w_a, rows_a, words_a, unpacked(scale_a))
    cdef Sums b = sums_of(x_b, y_b, w_b, rows_b, words_b, unpacked(scale_b))
    cdef Sums out = sums_of(x, y, w, rows, words, unpacked(scale))
    cdef Lane lanes[2]
    cdef Pools pools[2]
    cdef Py_ssize_t start, first_pool
    with nogil:
        split(a.x, a.n, b.x, b.n, lanes)
        pools[0] = Pools(0, 0, 0)
        pools[1].i = pools_before(&a, rows_a.shape[0], lanes[1].i)
        pools[1].j = pools_before(&b, rows_b.shape[0], lanes[1].j)
        first_pool = pools[1].k = pools[1].i + pools[1].j + min(lanes[1].i, lanes[1].j)
        start = lanes[1].k
        while runs(&lanes[0]) and runs(&lanes[1]):
            take(&lanes[0], &pools[0], &a, &b, &out)
            take(&lanes[1], &pools[1], &a, &b, &out)
        take_all(&lanes[0], &pools[0], &a, &b, &out)
        take_all(&lanes[1], &pools[1], &a, &b, &out)
        close_gaps(&out, lanes[0].k, start, lanes[1].k - start, pools[0].k, first_pool, pools[1].k - first_pool)
    return lanes[0].k + lanes[1].k - start, pools[0].k + pools[1].k - first_pool


cdef inline Sums sums_of(
    const double[::1] x, const double[::1] y, const double[::1] w, const int64_t[::1] rows,
    const uint64_t[:, ::1] words, Scale scale
) noexcept nogil:
    cdef Sums sums
    sums.x = <double *>&x[0]
    sums.y = <double *>&y[0]
    sums.w = <double *>&w[0]
    sums.rows = <int64_t *>&rows[0] if rows.shape[0] else NULL
    sums.words = <uint64_t *>&words[0, 0] if rows.shape[0] else NULL
    sums.n = x.shape[0]
    sums.scale = scale
    return sums


cdef inline uint64_t *words_of(const Sums *sums, Py_ssize_t pool) noexcept nogil:
    return sums.words + pool * (sums.scale.s_words + sums.scale.w_words)


cdef inline Py_ssize_t pools_before(const Sums *sums, Py_ssize_t n_pools, Py_ssize_t end) noexcept nogil:
    cdef Py_ssize_t i, found = 0
    if n_pools:
        for i in range(end):
            found += sums.w[i] == 0
    return found


cdef inline void take(Lane *lane, Pools *pools, const Sums *a, const Sums *b, const Sums *out) noexcept nogil:
    """The lesser of two scores, or both if they are equal; without a branch, which could not be predicted.

    One of them is taken even if a score is NaN.
    """
    cdef Py_ssize_t i = lane.i, j = lane.j, k = lane.k
    cdef uint64_t from_a = a.x[i] <= b.x[j], from_b = not a.x[i] < b.x[j], mask = 0 - from_a
    out.x[k] = lesser(a.x[i], b.x[j])
    out.y[k] = double_of((bits_of(a.y[i]) & mask) | (bits_of(b.y[j]) & ~mask))
    out.w[k] = double_of((bits_of(a.w[i]) & mask) | (bits_of(b.w[j]) & ~mask))
    if out.w[k] == 0 or from_a & from_b:
        start_pool(out, k, pools.k)
        if from_a:
            pools.i += pour(a, i, pools.i, out, pools.k)
        if from_b:
            pools.j += pour(b, j, pools.j, out, pools.k)
        pools.k += 1
    lane.i = i + <Py_ssize_t>from_a
    lane.j = j + <Py_ssize_t>from_b
    lane.k = k + 1


cdef inline void take_all(Lane *lane, Pools *pools, const Sums *a, const Sums *b, const Sums *out) noexcept nogil:
    while runs(lane):
        take(lane, pools, a, b, out)
    copy_rest(a, lane.i, lane.i_end, &pools.i, out, &lane.k, &pools.k)
    copy_rest(b, lane.j, lane.j_end, &pools.j, out, &lane.k, &pools.k)


cdef inline void copy_rest(
    const Sums *a, Py_ssize_t i, Py_ssize_t end, Py_ssize_t *pool, const Sums *out, Py_ssize_t *k, Py_ssize_t *out_pool
) noexcept nogil:
    for i in range(i, end):
        out.x[k[0]] = a.x[i]
        out.y[k[0]] = a.y[i]
        out.w[k[0]] = a.w[i]
        if a.w[i] == 0:
            start_pool(out, k[0], out_pool[0])
            pool[0] += pour(a, i, pool[0], out, out_pool[0])
            out_pool[0] += 1
        k[0] += 1


cdef inline void start_pool(const Sums *out, Py_ssize_t k, Py_ssize_t pool) noexcept nogil:
    out.y[k] = 0.0
    out.w[k] = 0.0
    out.rows[pool] = 0
    memset(words_of(out, pool), 0, (out.scale.s_words + out.scale.w_words) * sizeof(uint64_t))


cdef inline bint pour(
    const Sums *sums, Py_ssize_t i, Py_ssize_t pool, const Sums *out, Py_ssize_t out_pool
) noexcept nogil:
    """Add the rows of score i to a pool; return whether they were this one."""
    cdef int finer = sums.scale.w_unit - out.scale.w_unit
    cdef const uint64_t *own
    cdef uint64_t wide[MAX_WORDS]
    if sums.w[i] != 0:
        add_sample(out.scale, words_of(out, out_pool), sums.y[i], sums.w[i])
        out.rows[out_pool] += 1
        return False
    own = words_of(sums, pool)
    widen(
        own, sums.scale.s_words, is_negative(own, sums.scale.s_words),
        finer + sums.scale.y_unit - out.scale.y_unit, wide, out.scale.s_words
    )
    widen(
        own + sums.scale.s_words, sums.scale.w_words, False, finer, wide + out.scale.s_words, out.scale.w_words
    )
    add_sums(out.scale, words_of(out, out_pool), wide)
    out.rows[out_pool] += sums.rows[pool]
    return True


cdef inline void widen(
    const uint64_t *words, int n_words, bint negative, int shift, uint64_t *out, int n_out
) noexcept nogil:
    """The same number in a unit that is `shift` bits finer, and in as many words or more."""
    cdef uint64_t part[MAX_WORDS + 1]
    cdef int i
    if shift == 0 and n_out == n_words:
        memcpy(out, words, n_words * sizeof(uint64_t))
        return
    # one more word, of nothing but sign: above it, so are all
    memcpy(part, words, n_words * sizeof(uint64_t))
    part[n_words] = 0 - <uint64_t>negative
    for i in range(n_out):
        out[i] = shifted_word(part, n_words + 1, shift, i) if i <= n_words + (shift >> 6) else part[n_words]


cdef void close_gaps(
    const Sums *out, Py_ssize_t k, Py_ssize_t start, Py_ssize_t n, Py_ssize_t pool, Py_ssize_t first_pool,
    Py_ssize_t n_pools
) noexcept nogil:
    """Move n scores and their pools to where those before them end."""
    cdef size_t size = sizeof(uint64_t) * (out.scale.s_words + out.scale.w_words)
    if k < start:
        memmove(out.x + k, out.x + start, n * sizeof(double))
        memmove(out.y + k, out.y + start, n * sizeof(double))
        memmove(out.w + k, out.w + start, n * sizeof(double))
    if n_pools and pool < first_pool:
        memmove(out.rows + pool, out.rows + first_pool, n_pools * sizeof(int64_t))
        memmove(words_of(out, pool), words_of(out, first_pool), n_pools * size)


def first_bad_pool(
    const int64_t[::1] rows not None,         # IN  pools, which may be anything
    const uint64_t[:, ::1] words not None,
    object scale not None,                    # IN  exact.Scale
    double lowest,                            # IN  bounds of targets, and the greatest weight
    double highest,
    double heaviest,
):
    """The first pool that no rows can have made, or -1: its sums may be wider than the scale allows for."""
    cdef Scale unit = unpacked(scale)
    cdef uint64_t low[MAX_WORDS]
    cdef uint64_t high[MAX_WORDS]
    cdef Py_ssize_t pool = 0
    memset(low, 0, sizeof(low))
    memset(high, 0, sizeof(high))
    add_sample(unit, low, lowest, heaviest)
    add_sample(unit, high, highest, heaviest)
    with nogil:
        while pool < rows.shape[0] and is_possible(rows[pool], &words[pool, 0], unit, low, high, heaviest):
            pool += 1
    return pool if pool < rows.shape[0] else -1


cdef inline bint is_possible(
    int64_t rows, const uint64_t *sums, Scale scale, const uint64_t *low, const uint64_t *high, double heaviest
) noexcept nogil:
    """Whether there is at least a row, 0 < W <= rows*heaviest, and the mean lies between two others."""
    cdef uint64_t bound[MAX_WORDS]
    cdef Dyadic weight = dyadic(heaviest, scale.w_unit)
    cdef uint64_t part, carry
    memset(bound, 0, sizeof(bound))
    if rows < 1 or compare_words(sums + scale.s_words, bound, scale.w_words) == 0:
        return False
    part = multiply_words(weight.m, <uint64_t>rows, &carry)
    add_shifted(bound, scale.w_words, part, carry, weight.q - scale.w_unit, False)
    if compare_words(sums + scale.s_words, bound, scale.w_words) > 0:
        return False
    return exact_order(scale, sums, low) >= 0 and exact_order(scale, sums, high) <= 0
