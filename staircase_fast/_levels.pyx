"""Sums of the rows of each score: made from sorted rows, joined two by two, and fitted.

    tallies        of integers, few enough for short words.  x the scores, ascending, no two equal; `tally` two counters
                   in one word, so that one addition adds both: how many rows below, and above either the sum of targets
                   (where all weights are 1), or the sum of weights.  Then `s` holds the sums of weight*target, else it
                   is empty.
    sums           of any numbers.  x as above; y and w the target and the weight of a score that was seen once.  What
                   was seen more often has w = 0 and is a pool: its rows are counted and its exact sums kept beside
                   (_exact.pxd), pools in the order of scores.  So is a target that is no double.

Kernels here assume clean input: no NaN, weights > 0, counters and a Scale that are wide enough for all rows, and room
for every score in the outputs.
"""

from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.string cimport memcpy, memmove, memset

from staircase_fast._blocks cimport Stack, empty_stack, finish, push
from staircase_fast._exact cimport (
    MAX_WORDS, Dyadic, Scale, add_rows, add_sample, add_shifted, add_sums, compare_words, dyadic, exact_order,
    is_negative, multiply_words, unpacked,
)
from staircase_fast._rounded cimport shifted_word
from staircase_fast._select cimport lesser

ctypedef fused target:        # others are one of these without loss
    int64_t
    double

cdef enum:
    HALF = 32

ctypedef struct Tallies:
    const double *x
    const uint64_t *tally
    const int64_t *s          # or NULL
    Py_ssize_t n

# Where a merge has got to in both, and in its output.
ctypedef struct Lane:
    Py_ssize_t i
    Py_ssize_t i_end
    Py_ssize_t j
    Py_ssize_t j_end
    Py_ssize_t k

ctypedef struct Sums:
    const double *x
    const double *y
    const double *w
    const int64_t *rows       # of pools, one by one: this moves on
    const uint64_t *words
    Py_ssize_t n
    Scale scale


def tally_rows(
    const double[::1] scores not None,        # IN  ascending
    const target[::1] targets not None,       # IN  integers
    const double[::1] weights not None,       # IN  integers, or empty: all are 1
    double[::1] x not None,                   # OUT tallies
    uint64_t[::1] tally not None,
    int64_t[::1] s not None,
):
    """Return how many scores there are."""
    cdef Py_ssize_t i, k = -1
    cdef bint summed = s.shape[0] > 0
    cdef int64_t y, w = 1
    cdef uint64_t own
    with nogil:
        for i in range(scores.shape[0]):
            if weights.shape[0]:
                w = <int64_t>weights[i]
            y = <int64_t>targets[i]
            own = (<uint64_t>(w if summed else y) << HALF) + 1
            if i == 0 or scores[i] != x[k]:
                k += 1
                x[k] = scores[i] + 0.0            # -0.0 becomes the 0.0 it equals
                tally[k] = 0
                if summed:
                    s[k] = 0
            tally[k] += own
            if summed:
                s[k] += y * w
    return k + 1


def join_tallies(
    const double[::1] x_a not None,           # IN  tallies
    const uint64_t[::1] tally_a not None,
    const int64_t[::1] s_a not None,
    const double[::1] x_b not None,           # IN  tallies of the same kind
    const uint64_t[::1] tally_b not None,
    const int64_t[::1] s_b not None,
    double[::1] x not None,                   # OUT tallies
    uint64_t[::1] tally not None,
    int64_t[::1] s not None,
):
    """Return how many scores there are."""
    cdef Tallies a = Tallies(&x_a[0], &tally_a[0], NULL, x_a.shape[0])
    cdef Tallies b = Tallies(&x_b[0], &tally_b[0], NULL, x_b.shape[0])
    cdef Py_ssize_t n
    with nogil:
        if s.shape[0]:
            a.s = &s_a[0]
            b.s = &s_b[0]
            n = merge_tallies(a, b, &x[0], &tally[0], &s[0])
        else:
            n = merge_tallies(a, b, &x[0], &tally[0], NULL)
    return n


cdef inline Py_ssize_t merge_tallies(Tallies a, Tallies b, double *x, uint64_t *tally, int64_t *s) noexcept nogil:
    """Two merges side by side, below a score and from there on: each step of one has to wait for its step before."""
    cdef Py_ssize_t i = a.n // 2, j = first_from(b.x, b.n, a.x[i]), n
    cdef Lane low = Lane(0, i, 0, j, 0), high = Lane(i, a.n, j, b.n, i + j)
    cdef Py_ssize_t start = high.k
    while low.i < low.i_end and low.j < low.j_end and high.i < high.i_end and high.j < high.j_end:
        take(&low, a, b, x, tally, s)
        take(&high, a, b, x, tally, s)
    take_all(&low, a, b, x, tally, s)
    take_all(&high, a, b, x, tally, s)
    n = high.k - start
    if low.k < start:
        memmove(x + low.k, x + start, n * sizeof(double))
        memmove(tally + low.k, tally + start, n * sizeof(uint64_t))
        if s != NULL:
            memmove(s + low.k, s + start, n * sizeof(int64_t))
    return low.k + n


cdef inline Py_ssize_t first_from(const double *x, Py_ssize_t n, double score) noexcept nogil:
    """The first index of a score that is not below another."""
    cdef Py_ssize_t low = 0, middle
    while low < n:
        middle = (low + n) // 2
        if x[middle] < score:
            low = middle + 1
        else:
            n = middle
    return low


cdef inline void take(Lane *lane, Tallies a, Tallies b, double *x, uint64_t *tally, int64_t *s) noexcept nogil:
    """The lesser of two scores, or both if they are equal; no branches: which it is cannot be foretold."""
    cdef Py_ssize_t i = lane.i, j = lane.j, k = lane.k
    cdef uint64_t from_a = a.x[i] <= b.x[j], from_b = b.x[j] <= a.x[i]
    x[k] = lesser(a.x[i], b.x[j])
    tally[k] = (a.tally[i] & (0 - from_a)) + (b.tally[j] & (0 - from_b))
    if s != NULL:
        s[k] = (a.s[i] & -<int64_t>from_a) + (b.s[j] & -<int64_t>from_b)
    lane.i = i + <Py_ssize_t>from_a
    lane.j = j + <Py_ssize_t>from_b
    lane.k = k + 1


cdef inline void take_all(Lane *lane, Tallies a, Tallies b, double *x, uint64_t *tally, int64_t *s) noexcept nogil:
    while lane.i < lane.i_end and lane.j < lane.j_end:
        take(lane, a, b, x, tally, s)
    copy_rest(a, lane.i, lane.i_end - lane.i, x + lane.k, tally + lane.k, s + lane.k if s != NULL else NULL)
    lane.k += lane.i_end - lane.i
    copy_rest(b, lane.j, lane.j_end - lane.j, x + lane.k, tally + lane.k, s + lane.k if s != NULL else NULL)
    lane.k += lane.j_end - lane.j


cdef inline void copy_rest(
    Tallies a, Py_ssize_t i, Py_ssize_t n, double *x, uint64_t *tally, int64_t *s
) noexcept nogil:
    memcpy(x, a.x + i, n * sizeof(double))
    memcpy(tally, a.tally + i, n * sizeof(uint64_t))
    if s != NULL:
        memcpy(s, a.s + i, n * sizeof(int64_t))


def fit_tallies(
    const double[::1] x not None,             # IN  tallies
    const uint64_t[::1] tally not None,
    const int64_t[::1] s not None,
    object scale not None,                    # IN  exact.Scale: a narrow one
    bint decreasing,
    double lo,
    double hi,
    Py_ssize_t[::1] starts not None,          # OUT first score of each step, then the number of scores
    double[::1] values not None,              # OUT
    double[::1] weights not None,             # OUT
):
    """Fill the first entries of the outputs with the staircase; return how many steps it has."""
    cdef Stack stack = empty_stack(unpacked(scale), decreasing, &starts[0], &values[0], &weights[0])
    cdef const double *no_rows = NULL
    cdef Py_ssize_t i, n = x.shape[0]
    cdef bint summed = s.shape[0] > 0
    cdef int64_t above, weight
    with nogil:
        for i in range(n):
            if summed:
                above = s[i]
                weight = <uint32_t>(tally[i] >> HALF)
            else:
                above = <int64_t>tally[i] >> HALF
                weight = <uint32_t>tally[i]
            push(&stack, no_rows, no_rows, i, i + 1, above, weight, True)
        finish(&stack, no_rows, no_rows, <int64_t>0, n, lo, hi)
        starts[stack.n] = n
    return stack.n


def count_rows(
    const uint64_t[::1] tally not None,       # IN
    const Py_ssize_t[::1] starts not None,    # IN  first score of each step, then the number of scores
    int64_t[::1] counts not None,             # OUT
):
    """The rows of each step."""
    cdef Py_ssize_t step, i
    cdef int64_t rows
    with nogil:
        for step in range(counts.shape[0]):
            rows = 0
            for i in range(starts[step], starts[step + 1]):
                rows += <uint32_t>tally[i]
            counts[step] = rows


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
    """Pool rows of one score."""
    cdef Scale s = unpacked(scale)
    cdef Py_ssize_t start = 0, end, k = 0, pool = 0
    cdef const double *given = &weights[0] if weights.shape[0] else NULL
    with nogil:
        while start < scores.shape[0]:
            end = end_of_tie(scores, start)
            x[k] = scores[start] + 0.0
            if end - start == 1 and is_double(targets[start]):
                y[k] = <double>targets[start]
                w[k] = 1.0 if given == NULL else given[start]
            else:
                y[k] = 0.0
                w[k] = 0.0
                rows[pool] = end - start
                memset(&words[pool, 0], 0, words.shape[1] * sizeof(uint64_t))
                add_rows(s, &words[pool, 0], &targets[0], given, start, end)
                pool += 1
            k += 1
            start = end


def count_joined_pools(
    const double[::1] x_a not None,           # IN  sums, but for the pools
    const double[::1] w_a not None,
    const double[::1] x_b not None,
    const double[::1] w_b not None,
):
    """How many scores both have together, and how many of them are pools."""
    cdef Py_ssize_t i = 0, j = 0, n_scores = 0, n_pools = 0
    cdef bint from_a, from_b
    with nogil:
        while i < x_a.shape[0] and j < x_b.shape[0]:
            from_a = x_a[i] <= x_b[j]
            from_b = x_b[j] <= x_a[i]
            n_scores += 1
            n_pools += (from_a & (w_a[i] == 0)) | (from_b & (w_b[j] == 0)) | (from_a & from_b)
            i += from_a
            j += from_b
        n_scores += x_a.shape[0] - i + x_b.shape[0] - j
        for i in range(i, x_a.shape[0]):
            n_pools += w_a[i] == 0
        for j in range(j, x_b.shape[0]):
            n_pools += w_b[j] == 0
    return n_scores, n_pools


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
    """Sums of both, with as many scores and pools as `count_joined_pools` says."""
    cdef Sums a, b
    cdef Scale unit = unpacked(scale)
    cdef Py_ssize_t i = 0, j = 0, k, pool = 0
    cdef bint from_a, from_b
    cdef double left, right
    a = sums_of(x_a, y_a, w_a, rows_a, words_a, unpacked(scale_a))
    b = sums_of(x_b, y_b, w_b, rows_b, words_b, unpacked(scale_b))
    with nogil:
        for k in range(x.shape[0]):
            if i == a.n or j == b.n:
                from_a = i < a.n
                from_b = not from_a
            else:
                left = a.x[i]
                right = b.x[j]
                from_a = left <= right
                from_b = right <= left
            x[k] = a.x[i] if from_a else b.x[j]
            y[k] = a.y[i] if from_a else b.y[j]
            w[k] = a.w[i] if from_a else b.w[j]
            if w[k] == 0 or from_a & from_b:
                y[k] = 0.0
                w[k] = 0.0
                rows[pool] = 0
                memset(&words[pool, 0], 0, words.shape[1] * sizeof(uint64_t))
                if from_a:
                    rows[pool] += pour(&a, i, unit, &words[pool, 0])
                if from_b:
                    rows[pool] += pour(&b, j, unit, &words[pool, 0])
                pool += 1
            i += from_a
            j += from_b


cdef inline Sums sums_of(
    const double[::1] x, const double[::1] y, const double[::1] w, const int64_t[::1] rows,
    const uint64_t[:, ::1] words, Scale scale
) noexcept nogil:
    cdef Sums sums
    sums.x = &x[0]
    sums.y = &y[0]
    sums.w = &w[0]
    sums.rows = &rows[0] if rows.shape[0] else NULL
    sums.words = &words[0, 0] if rows.shape[0] else NULL
    sums.n = x.shape[0]
    sums.scale = scale
    return sums


cdef inline int64_t pour(Sums *sums, Py_ssize_t i, Scale scale, uint64_t *into) noexcept nogil:
    """Add the rows of score i to a pool of this scale; return how many they are.  The next pool is that after it."""
    cdef int n_words = sums.scale.s_words + sums.scale.w_words
    cdef int finer = sums.scale.w_unit - scale.w_unit
    cdef uint64_t wide[MAX_WORDS]
    if sums.w[i] != 0:
        add_sample(scale, into, sums.y[i], sums.w[i])
        return 1
    widen(
        sums.words, sums.scale.s_words, is_negative(sums.words, sums.scale.s_words),
        finer + sums.scale.y_unit - scale.y_unit, wide, scale.s_words
    )
    widen(sums.words + sums.scale.s_words, sums.scale.w_words, False, finer, wide + scale.s_words, scale.w_words)
    add_sums(scale, into, wide)
    sums.words += n_words
    sums.rows += 1
    return (sums.rows - 1)[0]


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
