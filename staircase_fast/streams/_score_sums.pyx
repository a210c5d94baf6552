"""Exact sums per score, as entries (_entries.pxd): computed from sorted rows, merged two by two, fitted and checked.

Preconditions: as there; at least one row or entry, and room for every entry and every pool in the outputs.  If inputs
change during a call, results are wrong, but no kernel writes outside its arrays.
"""

from libc.math cimport fabs
from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.string cimport memcpy, memset

from staircase_fast.arithmetic._branchless cimport lesser
from staircase_fast.arithmetic._exact cimport (
    MAX_WORDS, Dyadic, Scale, add_rows, add_sample, add_shifted, compare_words, dyadic, exact_order, multiply_words,
    unpacked,
)
from staircase_fast.arithmetic._rounded cimport rounded_sum, rounded_weight
from staircase_fast.stack._sort cimport bits_of, double_of
from staircase_fast.stack._stack cimport Stack, empty_stack, finish, push, push_rows, sum_t, words_of
from staircase_fast.streams._entries cimport (
    Entries, Tally, add_row, add_to_pool, copy_rest, entries_of, merge_equal_scores, read_sums, rows_of_tally,
    start_pool, target, write_tally,
)


def count_pools(
    const double[::1] scores not None,        # IN  ascending
    const target[::1] targets not None,       # IN
    const double[::1] weights not None,       # IN  or empty: all are 1
):
    """The number of scores, and the number of pools among their entries."""
    cdef Py_ssize_t start = 0, end, n_scores = 0, n_pools = 0
    cdef const double *given = &weights[0] if weights.shape[0] else NULL
    cdef double y
    cdef int64_t w
    with nogil:
        while start < scores.shape[0]:
            end = end_of_tie(scores, start)
            n_scores += 1
            n_pools += not write_entry(&targets[0], given, start, end, &y, &w)
            start = end
    return n_scores, n_pools


cdef inline Py_ssize_t end_of_tie(const double[::1] scores, Py_ssize_t i) noexcept nogil:
    cdef double x = scores[i]
    i += 1                                        # even if the score has become NaN
    while i < scores.shape[0] and scores[i] == x:
        i += 1
    return i


cdef inline bint write_entry(
    const target *targets, const double *weights, Py_ssize_t start, Py_ssize_t end, double *y, int64_t *w
) noexcept nogil:
    """Write the entry of the rows [start, end); return False if it is a pool."""
    cdef double weight = 1.0 if weights == NULL else weights[start]
    cdef Tally tally = Tally(0, 0, 0)
    if end - start == 1 and weight > 0 and (target is double or fabs(<double>targets[start]) < 9007199254740992.0):
        y[0] = <double>targets[start]
        w[0] = <int64_t>bits_of(weight)
        return True
    for start in range(start, end):
        if not add_row(&tally, targets[start], 1.0 if weights == NULL else weights[start]):
            return False
    write_tally(tally, y, w)
    return True


def sum_rows(
    const double[::1] scores not None,        # IN  ascending
    const target[::1] targets not None,       # IN
    const double[::1] weights not None,       # IN  or empty: all are 1
    object scale not None,                    # IN  exact.Scale
    double[::1] x not None,                   # OUT entries
    double[::1] y not None,
    int64_t[::1] w not None,
    int64_t[::1] rows not None,
    uint64_t[:, ::1] words not None,
):
    """Sum the rows of each score; return the numbers of entries and pools.

    If the columns have changed since `count_pools`, there may be fewer, and rows that do not fit are left out.
    """
    cdef Scale s = unpacked(scale)
    cdef Py_ssize_t start = 0, end, k = 0, pool = 0
    cdef const double *given = &weights[0] if weights.shape[0] else NULL
    with nogil:
        while start < scores.shape[0] and k < x.shape[0]:
            end = end_of_tie(scores, start)
            x[k] = scores[start] + 0.0            # -0.0 becomes 0.0
            if not write_entry(&targets[0], given, start, end, &y[k], &w[k]):
                if pool == rows.shape[0]:
                    break
                y[k] = 0.0
                w[k] = 0
                rows[pool] = end - start
                memset(&words[pool, 0], 0, words.shape[1] * sizeof(uint64_t))
                add_rows(s, &words[pool, 0], &targets[0], given, start, end)
                pool += 1
            k += 1
            start = end
    return k, pool


# Merge

def merge_entries(
    const double[::1] x_a not None,           # IN  entries
    const double[::1] y_a not None,
    const int64_t[::1] w_a not None,
    const int64_t[::1] rows_a not None,
    const uint64_t[:, ::1] words_a not None,
    object scale_a not None,                  # IN  exact.Scale of the words
    const double[::1] x_b not None,           # IN  entries
    const double[::1] y_b not None,
    const int64_t[::1] w_b not None,
    const int64_t[::1] rows_b not None,
    const uint64_t[:, ::1] words_b not None,
    object scale_b not None,
    object scale not None,                    # IN  of both together: units as fine or finer, words as many or more
    double[::1] x not None,                   # OUT entries
    double[::1] y not None,
    int64_t[::1] w not None,
    int64_t[::1] rows not None,
    uint64_t[:, ::1] words not None,
):
    """Return the numbers of entries and pools; each tie can add a pool to those of both sides."""
    cdef Entries a = entries_of(x_a, y_a, w_a, rows_a, words_a, unpacked(scale_a))
    cdef Entries b = entries_of(x_b, y_b, w_b, rows_b, words_b, unpacked(scale_b))
    cdef Entries out = entries_of(x, y, w, rows, words, unpacked(scale))
    cdef uint64_t from_a, from_b, mask
    with nogil:
        while a.i < a.n and b.i < b.n:
            from_a = a.x[a.i] <= b.x[b.i]
            from_b = not a.x[a.i] < b.x[b.i]      # one of them is taken even if a score is NaN
            if from_a & from_b:
                merge_equal_scores(&a, &b, &out)
                continue
            mask = 0 - from_a                     # without a branch, which could not be predicted
            out.x[out.i] = lesser(a.x[a.i], b.x[b.i])
            out.y[out.i] = double_of((bits_of(a.y[a.i]) & mask) | (bits_of(b.y[b.i]) & ~mask))
            out.w[out.i] = (a.w[a.i] & <int64_t>mask) | (b.w[b.i] & ~<int64_t>mask)
            if out.w[out.i] == 0:
                start_pool(&out)
                add_to_pool(&a if from_a else &b, &out)
                out.pool += 1
            a.i += <Py_ssize_t>from_a
            b.i += <Py_ssize_t>from_b
            out.i += 1
        copy_rest(&a, &out)
        copy_rest(&b, &out)
    return out.i, out.pool


# Fit

def fit_entries(
    const double[::1] x not None,             # IN  entries
    const double[::1] y not None,
    const int64_t[::1] w not None,
    const int64_t[::1] rows not None,
    const uint64_t[:, ::1] words not None,
    object scale not None,                    # IN  exact.Scale
    bint decreasing,
    double lo,
    double hi,
    Py_ssize_t[::1] starts not None,          # OUT first entry of each step, then the number of entries
    double[::1] values not None,              # OUT
    double[::1] weights not None,             # OUT
    int64_t[::1] counts not None,             # OUT rows of each step
    uint8_t[::1] known not None,              # work
    uint64_t[::1] exact not None,             # work
):
    """Fill the first places of the outputs with the staircase; return the number of steps."""
    cdef Entries entries = entries_of(x, y, w, rows, words, unpacked(scale))
    cdef Stack stack = empty_stack(entries.scale, decreasing, &starts[0], &values[0], &weights[0])
    cdef const double *row_weights = <const double *>entries.w
    cdef Py_ssize_t n = entries.n
    stack.known = &known[0]
    stack.words = &exact[0] if exact.shape[0] else NULL
    with nogil:
        if stack.scale.narrow:
            push_entries(&stack, &entries, <int64_t>0)
            finish(&stack, entries.y, row_weights, <int64_t>0, n, lo, hi)
        else:
            push_entries(&stack, &entries, <double>0)
            finish(&stack, entries.y, row_weights, <double>0, n, lo, hi)
        starts[stack.n] = n
        count_rows(&entries, &starts[0], stack.n, &counts[0])
    return stack.n


cdef inline void push_entries(Stack *stack, Entries *entries, sum_t kind) noexcept nogil:
    """Push every entry; the kernel of the stack reads y and w of single rows only."""
    cdef const double *row_weights = <const double *>entries.w
    cdef Py_ssize_t start
    cdef uint64_t sums[MAX_WORDS]
    while entries.i < entries.n:
        start = entries.i
        while entries.i < entries.n and entries.w[entries.i] > 0:
            entries.i += 1
        if start < entries.i:
            push_rows(stack, entries.y, row_weights, NULL, kind, start, entries.i)
            continue
        read_sums(entries, sums)
        if sum_t is int64_t:
            push(stack, entries.y, row_weights, start, start + 1, <int64_t>sums[0], <int64_t>sums[1], True)
        else:
            memcpy(words_of(stack, stack.n), sums, stack.n_words * sizeof(uint64_t))
            # if the scale is not tame, only exact sums are compared, and a double may not hold the rounded ones
            push(
                stack, entries.y, row_weights, start, start + 1,
                rounded_sum(stack.scale, sums) if stack.scale.tame else 0.0, rounded_weight(stack.scale, sums), True
            )


cdef void count_rows(const Entries *entries, const Py_ssize_t *starts, Py_ssize_t n, int64_t *counts) noexcept nogil:
    cdef Py_ssize_t step, i, pool = 0
    for step in range(n):
        counts[step] = 0
        for i in range(starts[step], starts[step + 1]):
            if entries.w[i] > 0:
                counts[step] += 1
            elif entries.w[i] < 0:
                counts[step] += rows_of_tally(entries.w[i])
            else:
                counts[step] += entries.rows[pool]
                pool += 1


# Check

def first_impossible_entry(
    const double[::1] x not None,             # IN  entries from a file; as many pools as entries with w = 0
    const double[::1] y not None,
    const int64_t[::1] w not None,
    const int64_t[::1] rows not None,
    const uint64_t[:, ::1] words not None,
    object scale not None,                    # IN  exact.Scale
    double lowest,                            # IN  limits of targets and weights
    double highest,
    double lightest,
    double heaviest,
):
    """The first tally or pool that cannot be the sums of rows within the limits, or -1.

    A tally that is too wide for the scale would make kernels overflow.
    """
    cdef Entries entries = entries_of(x, y, w, rows, words, unpacked(scale))
    cdef uint64_t low[MAX_WORDS]
    cdef uint64_t high[MAX_WORDS]
    cdef uint64_t sums[MAX_WORDS]
    cdef int64_t n_rows
    cdef Py_ssize_t bad = -1
    memset(low, 0, sizeof(low))
    memset(high, 0, sizeof(high))
    add_sample(entries.scale, low, lowest, heaviest)
    add_sample(entries.scale, high, highest, heaviest)
    with nogil:
        while entries.i < entries.n and bad < 0:
            if entries.w[entries.i] > 0:
                entries.i += 1
                continue
            n_rows = read_sums(&entries, sums)
            if not is_possible(n_rows, sums, entries.scale, low, high, lightest, heaviest):
                bad = entries.i - 1
    return bad


cdef inline bint is_possible(
    int64_t rows, const uint64_t *sums, Scale scale, const uint64_t *low, const uint64_t *high, double lightest,
    double heaviest
) noexcept nogil:
    """Whether rows >= 1, rows*lightest <= W <= rows*heaviest, W > 0, and the mean lies between those of two others."""
    cdef uint64_t bound[MAX_WORDS]
    memset(bound, 0, sizeof(bound))
    if rows < 1 or compare_words(sums + scale.s_words, bound, scale.w_words) == 0:
        return False
    multiply_weight(lightest, rows, scale, bound)
    if compare_words(sums + scale.s_words, bound, scale.w_words) < 0:
        return False
    memset(bound, 0, sizeof(bound))
    multiply_weight(heaviest, rows, scale, bound)
    if compare_words(sums + scale.s_words, bound, scale.w_words) > 0:
        return False
    return exact_order(scale, sums, low) >= 0 and exact_order(scale, sums, high) <= 0


cdef inline void multiply_weight(double weight, int64_t rows, Scale scale, uint64_t *out) noexcept nogil:
    """out += weight * rows."""
    cdef Dyadic w = dyadic(weight, scale.w_unit)
    cdef uint64_t high, low = multiply_words(w.m, <uint64_t>rows, &high)
    add_shifted(out, scale.w_words, low, high, w.q - scale.w_unit, False)
