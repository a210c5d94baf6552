"""Finish: the last part of a fit that does not sort its rows (survey.py).

The collected rows are sorted, bucket by bucket.  Then they and the runs between them (_collect.pyx) are pushed onto the
stack in score order.  A run is one block: all its rows lie on one step, and its exact sums are known.

    item i         a row or a run: its score x[i] (NaN: a run of quiet buckets), target y[i], weight w[i],
                   number run[i] (-1: a row); tied[i]: whether item i - 1 has the same score

Preconditions: at least one item, finite numbers, no NaN except the one above.
"""

from libc.math cimport INFINITY, NAN
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.string cimport memset

from staircase_fast.arithmetic._exact cimport unpacked
from staircase_fast.arithmetic._types cimport double_of
from staircase_fast.stack._sort cimport RankedRow, score_of, sort_rows
from staircase_fast.stack._push_rows cimport push_rows
from staircase_fast.stack._stack cimport Stack, empty_stack, finish, push_sums, sum_t

ctypedef struct Items:
    double *x
    double *y
    double *w                 # or NULL
    uint8_t *tied
    Py_ssize_t *run
    Py_ssize_t n


def arrange(
    const uint64_t[:, ::1] rows not None,     # IN  RankedRow
    const int32_t[::1] places not None,       # IN
    Py_ssize_t[::1] ends not None,            # OUT end of the rows of each live bucket, and one more entry
    uint64_t[:, ::1] arranged not None,       # OUT RankedRow, by bucket
):
    """Order the rows by bucket: a counting sort."""
    cdef Py_ssize_t i, q, n_live = ends.shape[0] - 1
    cdef RankedRow *out = <RankedRow *>&arranged[0, 0]
    with nogil:
        memset(&ends[0], 0, (n_live + 1) * sizeof(Py_ssize_t))
        for i in range(places.shape[0]):
            ends[places[i] + 1] += 1
        for q in range(n_live):
            ends[q + 1] += ends[q]
        for i in range(places.shape[0]):      # ends[q] moves from the start to the end of live bucket q
            out[ends[places[i]]] = (<const RankedRow *>&rows[i, 0])[0]
            ends[places[i]] += 1


def sort_buckets(
    uint64_t[:, ::1] rows not None,           # IN/OUT RankedRow, by bucket
    const Py_ssize_t[::1] ends not None,      # IN
    Py_ssize_t first,                         # IN  sort live buckets [first, last)
    Py_ssize_t last,
    uint64_t[:, ::1] spare not None,          # work: as many rows
):
    """Sort the rows of each bucket."""
    cdef Py_ssize_t q, start = ends[first - 1] if first else 0
    cdef RankedRow *all_rows = <RankedRow *>&rows[0, 0]
    with nogil:
        for q in range(first, last):
            sort_rows(all_rows + start, ends[q] - start, <RankedRow *>&spare[0, 0])
            start = ends[q]


def sequence(
    const uint64_t[:, ::1] rows not None,     # IN  RankedRow, in score order
    const Py_ssize_t[::1] ends not None,      # IN
    const double[::1] atoms not None,         # IN
    const int32_t[::1] atom_runs not None,    # IN
    const int64_t[::1] run_rows not None,     # IN  rows of each run
    double[::1] x not None,                   # OUT items
    double[::1] y not None,
    double[::1] w not None,                   # or empty
    uint8_t[::1] tied not None,
    Py_ssize_t[::1] run not None,
):
    """Put rows and runs in score order; return the number of items."""
    cdef Py_ssize_t n_live = ends.shape[0] - 1, q, i, start = 0
    cdef const RankedRow *sorted_rows = <const RankedRow *>&rows[0, 0]
    cdef Items items = Items(&x[0], &y[0], NULL, &tied[0], &run[0], 0)
    if w.shape[0]:
        items.w = &w[0]
    with nogil:
        for q in range(n_live + 1):
            if run_rows[q]:
                append_run(&items, NAN, q)
            if q == n_live:
                break
            i = start
            start = ends[q]
            if atoms.shape[0] and atom_runs[q] >= 0 and run_rows[atom_runs[q]]:
                i = append_rows(&items, sorted_rows, i, start, atoms[q])
                append_run(&items, atoms[q], atom_runs[q])
            append_rows(&items, sorted_rows, i, start, INFINITY)
    return items.n


cdef inline void append_run(Items *items, double score, Py_ssize_t q) noexcept nogil:
    items.x[items.n] = score
    items.y[items.n] = 0.0
    items.tied[items.n] = False
    items.run[items.n] = q
    items.n += 1


cdef inline Py_ssize_t append_rows(
    Items *items, const RankedRow *rows, Py_ssize_t i, Py_ssize_t end, double up_to
) noexcept nogil:
    """Append the rows [i, end) with scores up to a limit; return the first row beyond it."""
    cdef double x
    while i < end:
        x = score_of(rows[i].rank)
        if x > up_to:
            break
        items.x[items.n] = x
        items.y[items.n] = double_of(rows[i].y)
        if items.w != NULL:
            items.w[items.n] = double_of(rows[i].w)
        items.tied[items.n] = items.n > 0 and items.x[items.n - 1] == x
        items.run[items.n] = -1
        items.n += 1
        i += 1
    return i


def merge_items(
    const double[::1] y not None,             # IN  items
    const double[::1] w not None,             # IN  or empty: all are 1
    const uint8_t[::1] tied not None,
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
    """Fit the items; write the steps to the start of the outputs and return their number."""
    cdef Stack stack = empty_stack(unpacked(scale), decreasing, &starts[0], &values[0], &step_weights[0])
    cdef Py_ssize_t n = y.shape[0]
    cdef const double *weights = &w[0] if w.shape[0] else NULL
    stack.known = &known[0]
    stack.words = &words[0] if words.shape[0] else NULL
    with nogil:
        if stack.scale.narrow:
            push_items(&stack, &y[0], weights, &tied[0], &run[0], sums, n, <int64_t>0)
            finish(&stack, &y[0], weights, <int64_t>0, n, lo, hi)
        else:
            push_items(&stack, &y[0], weights, &tied[0], &run[0], sums, n, <double>0)
            finish(&stack, &y[0], weights, <double>0, n, lo, hi)
    return stack.n


cdef inline void push_items(
    Stack *stack, const double *y, const double *weights, const uint8_t *tied, const Py_ssize_t *run,
    const uint64_t[:, ::1] sums, Py_ssize_t n, sum_t kind,
) noexcept nogil:
    cdef Py_ssize_t i = 0, start
    while i < n:
        start = i
        while i < n and run[i] < 0:
            i += 1
        push_rows(stack, y, weights, tied, kind, start, i)
        if i < n:
            push_sums(stack, y, weights, i, &sums[run[i], 0], kind)
            i += 1
