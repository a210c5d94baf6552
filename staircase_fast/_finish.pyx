"""The end of a fit that does not sort its rows: put live rows and quiet runs in order, and merge them.

What was kept of the rows is sorted, bucket by bucket.  Between live buckets lie runs of quiet ones, each wholly on one
step; all of an atom, a frequent score, counts as one observation.  Their exact sums are known (_survey.pyx), so that
the stack never has to look at their rows.

    item           a row, or a run, in score order: x its score (NaN: a run of quiet buckets), y its target, w its
                   weight, run[i] its run, or -1 for a row

Kernels here assume clean input: at least one item, finite numbers, no NaN but the one above.
"""

from libc.math cimport INFINITY, NAN
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from staircase_fast._blocks cimport Stack, doubt_of, finish, push, sum_t, words_of
from staircase_fast._cells cimport Map, bucket_of, floating, map_of
from staircase_fast._exact cimport number
from staircase_fast._live cimport live_before
from staircase_fast._rounded cimport rounded_sum, rounded_weight

ctypedef struct Row:
    double x
    double y
    double w


cdef void sort_rows(Row *rows, Py_ssize_t n) noexcept nogil:
    """Sort by score: quicksort that sets equal scores apart, insertion for few."""
    cdef Py_ssize_t i, j, below, above
    cdef Row row
    cdef double pivot
    while n > 24:
        pivot = median(rows[0].x, rows[n >> 1].x, rows[n - 1].x)
        below = 0
        above = n
        i = 0
        while i < above:                      # [0, below) < pivot, [below, i) == pivot, [above, n) > pivot
            row = rows[i]
            if row.x < pivot:
                rows[i] = rows[below]
                rows[below] = row
                below += 1
                i += 1
            elif row.x > pivot:
                above -= 1
                rows[i] = rows[above]
                rows[above] = row
            else:
                i += 1
        if below < n - above:                 # the shorter part first, so that the depth stays logarithmic
            sort_rows(rows, below)
            rows += above
            n -= above
        else:
            sort_rows(rows + above, n - above)
            n = below
    for i in range(1, n):
        row = rows[i]
        j = i
        while j > 0 and rows[j - 1].x > row.x:
            rows[j] = rows[j - 1]
            j -= 1
        rows[j] = row


cdef inline double median(double a, double b, double c) noexcept nogil:
    return max(min(a, b), min(max(a, b), c))


def sequence(
    const floating[::1] scores not None,      # IN
    const number[::1] targets not None,       # IN
    const double[::1] weights not None,       # IN  or empty: all are 1
    const uint32_t[::1] kept not None,        # IN  numbers of rows
    const double[:, ::1] bucket_map not None,  # IN  Cell
    const uint64_t[::1] directory not None,   # IN
    const double[::1] atoms not None,         # IN
    const int32_t[::1] atom_runs not None,    # IN
    const int64_t[::1] rows not None,         # IN  of each run
    double[:, ::1] ordered not None,          # work: Row for each kept one, and one more
    Py_ssize_t[::1] ends not None,            # work: one more than there are live buckets
    double[::1] x not None,                   # OUT items
    double[::1] y not None,
    double[::1] w not None,                   # or empty
    Py_ssize_t[::1] run not None,
):
    """Sort the kept rows and put runs between them; return how many items there are."""
    cdef Map cells = map_of(bucket_map)
    cdef Row *sorted_rows = <Row *>&ordered[0, 0]
    cdef Py_ssize_t n_live = ends.shape[0] - 1, q, i, row, n = 0, start = 0
    cdef bint atomic = atoms.shape[0] > 0
    cdef double *item_weights = &w[0] if w.shape[0] else NULL
    with nogil:
        # a counting sort by bucket, then a sort within each; ends[q] moves from the start to the end of live bucket q
        memset(&ends[0], 0, (n_live + 1) * sizeof(Py_ssize_t))
        for i in range(kept.shape[0]):
            ends[live_before(&directory[0], bucket_of(cells, scores[kept[i]])) + 1] += 1
        for q in range(n_live):
            ends[q + 1] += ends[q]
        for i in range(kept.shape[0]):
            row = kept[i]
            q = live_before(&directory[0], bucket_of(cells, scores[row]))
            sorted_rows[ends[q]] = Row(scores[row], <double>targets[row], weights[row] if weights.shape[0] else 1.0)
            ends[q] += 1
        for q in range(n_live + 1):
            if rows[q]:
                n = append_run(NAN, q, &x[0], &y[0], &run[0], n)
            if q == n_live:
                break
            sort_rows(sorted_rows + start, ends[q] - start)
            i = start
            start = ends[q]
            if atomic and atom_runs[q] >= 0 and rows[atom_runs[q]]:
                n = append_rows(sorted_rows, &i, start, atoms[q], &x[0], &y[0], item_weights, &run[0], n)
                n = append_run(atoms[q], atom_runs[q], &x[0], &y[0], &run[0], n)
            n = append_rows(sorted_rows, &i, start, INFINITY, &x[0], &y[0], item_weights, &run[0], n)
    return n


cdef inline Py_ssize_t append_run(
    double score, Py_ssize_t q, double *x, double *y, Py_ssize_t *run, Py_ssize_t n
) noexcept nogil:
    x[n] = score
    y[n] = 0.0
    run[n] = q
    return n + 1


cdef inline Py_ssize_t append_rows(
    const Row *rows, Py_ssize_t *i, Py_ssize_t end, double up_to, double *x, double *y, double *w, Py_ssize_t *run,
    Py_ssize_t n,
) noexcept nogil:
    """Append the rows from i on with scores up to a limit to the items."""
    while i[0] < end and rows[i[0]].x <= up_to:
        x[n] = rows[i[0]].x
        y[n] = rows[i[0]].y
        if w != NULL:
            w[n] = rows[i[0]].w
        run[n] = -1
        n += 1
        i[0] += 1
    return n


def merge_items(
    const double[::1] x not None,             # IN  items
    const double[::1] y not None,
    const double[::1] w not None,             # IN  or empty: all are 1
    const Py_ssize_t[::1] run not None,
    const uint64_t[:, ::1] sums not None,     # IN  exact sums of each run
    object scale not None,                    # IN  exact.Scale
    bint decreasing,
    double lo,
    double hi,
    Py_ssize_t[::1] starts not None,          # OUT first item of each step
    double[::1] values not None,              # OUT
    double[::1] step_weights not None,        # OUT
    uint8_t[::1] known not None,              # work
    uint64_t[::1] words not None,             # work
):
    """Fill the first entries of the outputs with the staircase; return how many steps it has."""
    cdef Stack stack
    cdef Py_ssize_t n = x.shape[0]
    cdef const double *weights = &w[0] if w.shape[0] else NULL
    stack.scale = scale._asdict()
    stack.decreasing = decreasing
    stack.doubt = doubt_of(stack.scale)
    stack.n_words = stack.scale.s_words + stack.scale.w_words
    stack.n = 0
    stack.starts = &starts[0]
    stack.s = &values[0]
    stack.w = &step_weights[0]
    stack.known = &known[0]
    stack.words = &words[0] if words.shape[0] else NULL
    with nogil:
        if stack.scale.narrow:
            push_items(&stack, &x[0], &y[0], weights, &run[0], sums, n, <int64_t>0)
            finish(&stack, &y[0], weights, <int64_t>0, n, lo, hi)
        else:
            push_items(&stack, &x[0], &y[0], weights, &run[0], sums, n, <double>0)
            finish(&stack, &y[0], weights, <double>0, n, lo, hi)
    return stack.n


cdef inline void push_items(
    Stack *stack, const double *x, const double *y, const double *weights, const Py_ssize_t *run,
    const uint64_t[:, ::1] sums, Py_ssize_t n, sum_t kind,
) noexcept nogil:
    cdef Py_ssize_t i = 0, start
    cdef const uint64_t *exact
    cdef sum_t s, w, weight
    while i < n:
        start = i
        if run[i] >= 0:
            i += 1
            exact = &sums[run[start], 0]
            if sum_t is int64_t:
                push(stack, y, weights, start, i, <int64_t>exact[0], <int64_t>exact[1], True)
            else:
                memcpy(words_of(stack, stack.n), exact, stack.n_words * sizeof(uint64_t))
                s = rounded_sum(stack.scale, exact)
                push(stack, y, weights, start, i, s, rounded_weight(stack.scale, exact), True)
            continue
        s = 0
        w = 0
        while True:
            weight = <sum_t>weights[i] if weights != NULL else 1
            s += <sum_t>y[i] * weight
            w += weight
            i += 1
            if i == n or x[i] != x[start]:
                break
        push(stack, y, weights, start, i, s, w, False)
