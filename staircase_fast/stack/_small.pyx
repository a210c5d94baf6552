"""The fit of up to MOST_ROWS rows in one call: read, check, sort, merge.

For few rows, Python calls would take longer than the arithmetic.  From KEY_ROWS unsorted rows on, NumPy sorts keys
(`_keys.pxd`), if it does that fast on this machine; fewer rows are sorted here (`_small_fit.pxd`).
"""

from cpython.mem cimport PyMem_RawMalloc
from libc.math cimport INFINITY, isfinite
from libc.stdint cimport uint8_t, uint64_t
from libc.string cimport memcpy

from staircase_fast.arithmetic._buckets cimport Range, fill_buckets, range_of
from staircase_fast.arithmetic._scale cimport scale_of
from staircase_fast.arithmetic._score_scan cimport nearly_sorted
from staircase_fast.stack._keys cimport find_ends, insert_columns, label_fits, make_keys, make_label_keys
from staircase_fast.stack._rows cimport copy_rows, expand_steps, is_own_staircase, merge_rows
from staircase_fast.stack._small_fit cimport (
    ROWS_FOR_A_PLAN, Columns, Task, fit_ascending, fit_some, fit_sorted, flag_ties,
)
from staircase_fast.stack._small_rows cimport (
    FINE, GENERAL, NO_MEMORY, OWN_STAIRCASE, Fit, allocate, are_valid, buckets_of, close_arrays, open_arrays,
    place_stack, read_rows, read_sequence, ties_of,
)
from staircase_fast.stack._sort cimport RankedKey, rank_of
from staircase_fast.stack._stack cimport Stack, empty_stack

import numpy

from staircase_fast.stack import sorting

cdef object empty = numpy.empty
cdef object uint64 = numpy.dtype(numpy.uint64)
cdef type ndarray = numpy.ndarray
cdef object intp = numpy.dtype(numpy.intp)

cdef enum:
    # With more rows, the survey is faster (measured for six kinds of scores and targets).
    ROWS = 200000
    LABEL_ROWS = 120000
    ROWS_WITHOUT_GIL = 1000   # with fewer rows the GIL is kept: releasing it would cost more than it gains
    KEY_ROWS = 200            # from so many rows on, sorting keys is faster, if NumPy sorts fast

MOST_ROWS, MOST_LABELS, FEWEST_KEYS = ROWS, LABEL_ROWS, KEY_ROWS

cdef int set_stack(Fit *fit, bint decreasing, double lo, double hi) noexcept nogil:
    cdef Task *task = &fit.task
    task.stack = empty_stack(scale_of(fit.y_range, fit.w_range, fit.n), decreasing, task.room.starts, NULL, NULL)
    task.stack.known = task.room.known
    task.lo, task.hi = lo, hi
    if not task.stack.scale.narrow:
        fit.words = PyMem_RawMalloc(fit.n * task.stack.n_words * sizeof(uint64_t))
        if fit.words == NULL:
            return NO_MEMORY
        task.stack.words = <uint64_t *>fit.words
    return FINE


cdef int run_read(Fit *fit, double lowest, double highest, bint decreasing, double lo, double hi) noexcept nogil:
    cdef int status = allocate(fit)
    if status == FINE:
        status = read_rows(fit, lowest, highest, LABEL_ROWS)
    if status == FINE:
        status = set_stack(fit, decreasing, lo, hi)
    return status


cdef void run_fit(Fit *fit) noexcept nogil:
    cdef Columns *columns = &fit.task.columns
    if fit.summarised:
        fit_ascending(&fit.task, columns.x, <const double *>columns.y, columns.w, ties_of(fit), fit.n, True)
    elif columns.labels != NULL and fit.found.falls == 0:
        fit_ascending(&fit.task, columns.x, <const uint8_t *>columns.labels, NULL, ties_of(fit), fit.n, False)
    else:
        fit_some(&fit.task, 0, fit.n, fit.found.falls)


cdef bint needs_keys(const Fit *fit) except -1:
    if fit.n < KEY_ROWS or nearly_sorted(fit.found.falls, fit.n):
        return False
    return sorting.numpy_sorts_fast()


cdef bint has_label_keys(const Fit *fit) noexcept nogil:
    return fit.task.columns.labels != NULL and label_fits(fit.low, fit.high)


cdef void make_keys_of(Fit *fit, uint64_t *keys) noexcept nogil:
    cdef const double *x = fit.task.columns.x
    find_ends(x, fit.n, &fit.low, &fit.high)
    if has_label_keys(fit):
        make_label_keys(x, fit.task.columns.labels, fit.n, fit.low, keys)
    else:
        make_keys(x, fit.n, fit.low, fit.high, keys)


cdef void fit_keys(Fit *fit, uint64_t *keys) noexcept nogil:
    """Fit the rows; their keys are sorted."""
    cdef Task *task = &fit.task
    cdef Columns *rows = &task.columns
    cdef Py_ssize_t n = fit.n
    cdef double *x = <double *>task.room.rows
    cdef double *y = x + n
    cdef double *w = NULL if rows.w == NULL else <double *>task.room.spare
    if has_label_keys(fit):
        fit_sorted(task, n, rank_of(fit.low), <RankedKey *>keys)
    elif insert_columns(keys, <const double *>rows.x, <const uint64_t *>rows.y, rows.w, n, x, <uint64_t *>y, w):
        fit_ascending(task, x, <const double *>y, w, flag_ties(task, x, n), n, False)
    else:                                     # too many scores have equal upper bits
        fit_some(task, 0, n, n)


cdef int run_regress(Fit *fit, double *values, double lowest, double highest, bint decreasing) noexcept nogil:
    """Rows are scanned once.  The values of steps go to `values`, with one entry per row."""
    cdef Task *task = &fit.task
    cdef Stack *stack = &task.stack
    cdef Py_ssize_t n = fit.n
    cdef int status = read_sequence(fit)
    cdef const double *y = task.columns.y
    cdef const double *w = task.columns.w
    cdef double first, last
    cdef uint8_t *live
    cdef bint own
    if status != FINE:
        return status
    task.steps.values = values
    own = is_own_staircase(y, n, decreasing)
    if own:                                   # the first and the last target are the extremes; others cannot be NaN
        first, last = min(y[0], y[n - 1]), max(y[0], y[n - 1])
        fit.y_range = Range(-1 if isfinite(first) and isfinite(last) else 0, first, last, 0.0, False)
        fit.w_range = range_of(w, n) if w != NULL else Range(-1, 1.0, 1.0, 1.0, True)
    else:
        fit.y_range = fill_buckets(y, w, NULL, n, buckets_of(fit), &fit.w_range)
    if not are_valid(fit, lowest, highest) or fit.w_range.lowest == 0:
        return GENERAL
    if own:
        return OWN_STAIRCASE
    stack[0] = empty_stack(scale_of(fit.y_range, fit.w_range, n), decreasing, NULL, values, NULL)
    status = place_stack(fit)
    if status == FINE:
        live = task.room.live if n >= ROWS_FOR_A_PLAN and stack.scale.tame else NULL
        merge_rows(stack, y, w, NULL, n, -INFINITY, INFINITY, live, True)
        stack.starts[stack.n] = n
    return status


def fit(
    scores, targets, weights,                  # IN  numpy arrays; weights may be None: all are 1
    double lowest, double highest,             # IN  the loss allows targets in [lowest, highest]
    bint decreasing,
    double lo, double hi,
):
    """Return an array of shape (5, n_steps): left, right, value, weight, and row count (stored as int64 bits).

    Return None if the general path must convert or reject the rows, or if there are more than MOST_ROWS rows.
    """
    cdef Fit own
    cdef Py_ssize_t n_steps, capacity, column
    cdef double[:, ::1] steps
    cdef uint64_t[::1] words
    cdef int status
    if scores is None:
        return None
    status = open_arrays(&own, scores, targets, weights, ndarray, ROWS)
    try:
        if status == FINE:
            if own.n >= ROWS_WITHOUT_GIL:
                with nogil:
                    status = run_read(&own, lowest, highest, decreasing, lo, hi)
            else:
                status = run_read(&own, lowest, highest, decreasing, lo, hi)
        if status == NO_MEMORY:
            raise MemoryError
        if status == GENERAL:
            return None
        if needs_keys(&own):
            keys = empty(own.n, uint64)
            words = keys
            with nogil:
                make_keys_of(&own, &words[0])
            keys.sort()
            with nogil:
                fit_keys(&own, &words[0])
        elif own.n >= ROWS_WITHOUT_GIL:
            with nogil:
                run_fit(&own)
        else:
            run_fit(&own)
        n_steps = own.task.steps.n
        capacity = own.task.steps.right - own.task.steps.left
        table = empty((5, n_steps))
        steps = table
        for column in range(5):               # they are adjacent
            memcpy(&steps[column, 0], own.task.steps.left + column * capacity, n_steps * sizeof(double))
        return table
    finally:
        close_arrays(&own)


def regress(
    targets, weights,                          # IN  numpy arrays; weights may be None: all are 1
    double lowest, double highest,             # IN  the loss allows targets in [lowest, highest]
    bint decreasing,
):
    """Fit rows that are sorted and have no ties; return None in the same cases as `fit`, or if a weight is 0.

    Return the value of each row, the weight of each step, and the first row of each step followed by n.
    """
    cdef Fit own
    cdef Py_ssize_t n_steps
    cdef double[::1] x, w
    cdef Py_ssize_t[::1] starts
    cdef int status = open_arrays(&own, None, targets, weights, ndarray, ROWS)
    try:
        if status == FINE:
            values = empty(own.n)
            x = values
            if own.n >= ROWS_WITHOUT_GIL:
                with nogil:
                    status = run_regress(&own, &x[0], lowest, highest, decreasing)
            else:
                status = run_regress(&own, &x[0], lowest, highest, decreasing)
        if status == NO_MEMORY:
            raise MemoryError
        if status == GENERAL:
            return None
        n_steps = own.n if status == OWN_STAIRCASE else own.task.stack.n
        step_weights, borders = empty(n_steps), empty(n_steps + 1, intp)
        w, starts = step_weights, borders
        if status == OWN_STAIRCASE:
            copy_rows(own.task.columns.y, own.task.columns.w, n_steps, &starts[0], &x[0], &w[0])
            starts[n_steps] = n_steps
            return values, step_weights, borders
        memcpy(&w[0], own.task.stack.w, n_steps * sizeof(double))
        memcpy(&starts[0], own.task.stack.starts, (n_steps + 1) * sizeof(Py_ssize_t))
        # values of steps make way for those of rows
        memcpy(own.task.stack.w, &x[0], n_steps * sizeof(double))
        expand_steps(own.task.stack.w, &starts[0], 0, 0, &x[0], own.n)
        return values, step_weights, borders
    finally:
        close_arrays(&own)
