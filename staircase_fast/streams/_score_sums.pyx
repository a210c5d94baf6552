"""Exact sums per score, as entries (_entries.pxd): computed from sorted rows, merged two by two, fitted and checked.

Preconditions: as there; at least one row or entry, and room for every entry and every pool in the outputs.  If inputs
change during a call, results are wrong, but no kernel writes outside its arrays.
"""

from libc.math cimport fabs
from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.string cimport memcpy, memset

from staircase_fast.arithmetic._exact cimport (
    MAX_WORDS, Dyadic, Scale, add_sample, add_shifted, compare_words, dyadic, exact_order, multiply_words, unpacked,
)
from staircase_fast.arithmetic._rounded cimport rounded_sum, rounded_weight
from staircase_fast.arithmetic._row_sums cimport add_rows
from staircase_fast.stack._sort cimport bits_of
from staircase_fast.stack._push_rows cimport push_rows
from staircase_fast.stack._stack cimport Stack, empty_stack, finish, push, sum_t, words_of
from staircase_fast.streams._entries cimport (
    Entries, Tally, add_exactly, add_row, copy_entry, merge_equal_scores, next_pool, rows_of_tally,
    start_pool, target, write_tally,
)


cdef Entries entries_of(object columns, object scale) except *:
    """The entries of a runs.ScoreSums with an exact.Scale; valid as long as the columns exist."""
    cdef const double[::1] x = columns.x, y = columns.y
    cdef const int64_t[::1] w = columns.w, rows = columns.rows
    cdef const uint64_t[:, ::1] words = columns.words
    cdef Entries entries
    entries.x = <double *>&x[0]
    entries.y = <double *>&y[0]
    entries.w = <int64_t *>&w[0]
    entries.rows = <int64_t *>&rows[0] if rows.shape[0] else NULL
    entries.words = <uint64_t *>&words[0, 0] if rows.shape[0] else NULL
    entries.n = x.shape[0]
    entries.scale = unpacked(scale)
    entries.i = entries.pool = 0
    return entries


def sum_rows(
    const double[::1] scores not None,        # IN  ascending
    const target[::1] targets not None,       # IN
    const double[::1] weights not None,       # IN  or empty: all are 1
    object scale not None,                    # IN  exact.Scale
    object columns not None,                  # OUT runs.ScoreSums with room for an entry and a pool for every row
):
    """Sum the rows of each score; return the numbers of entries and pools."""
    cdef Entries out = entries_of(columns, scale)
    cdef Py_ssize_t start = 0, end
    cdef const double *given = &weights[0] if weights.shape[0] else NULL
    assert out.n >= scores.shape[0]
    with nogil:
        while start < scores.shape[0]:
            end = end_of_tie(scores, start)
            out.x[out.i] = scores[start] + 0.0    # -0.0 becomes 0.0
            if not write_entry(&targets[0], given, start, end, &out.y[out.i], &out.w[out.i]):
                start_pool(&out)
                out.rows[out.pool] = end - start
                add_rows(out.scale, next_pool(&out), &targets[0], given, start, end)
                out.pool += 1
            out.i += 1
            start = end
    return out.i, out.pool


cdef inline Py_ssize_t end_of_tie(const double[::1] scores, Py_ssize_t i) noexcept nogil:
    cdef double x = scores[i]
    i += 1                                        # even if the score has become NaN
    while i < scores.shape[0] and scores[i] == x:
        i += 1
    return i


cdef inline bint write_entry(
    const target *targets, const double *weights, Py_ssize_t start, Py_ssize_t end, double *y, int64_t *w
) noexcept nogil:
    """Write the entry of the rows [start, end); return False if it must be a pool."""
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


def merge_entries(
    object columns_a not None,                # IN  runs.ScoreSums
    object scale_a not None,                  # IN  exact.Scale of its words
    object columns_b not None,                # IN
    object scale_b not None,                  # IN
    object scale not None,                    # IN  of both together: units as fine or finer, words as many or more
    object columns not None,                  # OUT runs.ScoreSums; each tie can add a pool to those of both sides
):
    """Return the numbers of entries and pools."""
    cdef Entries side[2]
    cdef Entries *a = &side[0]
    cdef Entries *b = &side[1]
    cdef Entries out = entries_of(columns, scale)
    side[0] = entries_of(columns_a, scale_a)
    side[1] = entries_of(columns_b, scale_b)
    with nogil:
        while a.i < a.n and b.i < b.n:
            if a.x[a.i] == b.x[b.i]:
                merge_equal_scores(a, b, &out)
            else:
                # an index, not a branch, which could not be predicted; one side is taken even if a score is NaN
                copy_entry(&side[not a.x[a.i] < b.x[b.i]], &out)
        while a.i < a.n:
            copy_entry(a, &out)
        while b.i < b.n:
            copy_entry(b, &out)
    return out.i, out.pool


def fit_entries(
    object columns not None,                  # IN  runs.ScoreSums
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
    cdef Entries entries = entries_of(columns, scale)
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
        memset(sums, 0, stack.n_words * sizeof(uint64_t))
        add_exactly(entries, stack.scale, sums)
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


def first_impossible_entry(
    object columns not None,                  # IN  runs.ScoreSums from a file; as many pools as entries with w = 0
    object scale not None,                    # IN  exact.Scale
    double lowest,                            # IN  limits of targets and weights; the lightest weight is > 0
    double highest,
    double lightest,
    double heaviest,
):
    """The first tally or pool that cannot be the sums of rows within the limits, or -1.

    A tally that is too wide for the scale would make kernels overflow.
    """
    cdef Entries entries = entries_of(columns, scale)
    cdef Scale s = entries.scale
    cdef uint64_t low[MAX_WORDS]
    cdef uint64_t high[MAX_WORDS]
    cdef uint64_t sums[MAX_WORDS]
    cdef int64_t n_rows
    memset(low, 0, sizeof(low))
    memset(high, 0, sizeof(high))
    add_sample(s, low, lowest, heaviest)
    add_sample(s, high, highest, heaviest)
    with nogil:
        while entries.i < entries.n:
            if entries.w[entries.i] > 0:
                entries.i += 1
                continue
            memset(sums, 0, sizeof(sums))
            n_rows = add_exactly(&entries, s, sums)
            if (
                n_rows < 1
                or compare_weight(s, sums, lightest, n_rows) < 0 or compare_weight(s, sums, heaviest, n_rows) > 0
                or exact_order(s, sums, low) < 0 or exact_order(s, sums, high) > 0
            ):
                with gil:
                    return entries.i - 1
    return -1


cdef inline int compare_weight(Scale scale, const uint64_t *sums, double weight, int64_t rows) noexcept nogil:
    """The sign of W - weight * rows."""
    cdef uint64_t bound[MAX_WORDS]
    cdef Dyadic w = dyadic(weight, scale.w_unit)
    cdef uint64_t high, low = multiply_words(w.m, <uint64_t>rows, &high)
    memset(bound, 0, sizeof(bound))
    add_shifted(bound, scale.w_words, low, high, w.q - scale.w_unit, False)
    return compare_words(sums + scale.s_words, bound, scale.w_words)
