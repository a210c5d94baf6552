"""The fit of up to MOST_ROWS rows in one call: read, check, sort, merge.

For few rows, Python calls would take longer than the arithmetic.  Unsupported arrays, invalid rows and targets of
magnitude 2**53 or more are left to the general path, which converts them or raises the error.
"""

from cpython.mem cimport PyMem_RawFree, PyMem_RawMalloc
from libc.math cimport INFINITY
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

from staircase_fast.arithmetic._column_scan cimport (
    BUCKET_ROWS, Bucket, Range, are_labels, fill_buckets, has_nan, range_of,
)
from staircase_fast.arithmetic._scale cimport scale_of
from staircase_fast.inputs._buffers cimport Array, close_array, copy_as_doubles, open_array, read_column
from staircase_fast.stack._rows cimport expand_steps, merge_rows
from staircase_fast.stack._small_fit cimport MOST_DIGITS, ROWS_FOR_A_PLAN, Columns, Room, Task, fit_one
from staircase_fast.stack._sort cimport RankedRow, RankedTarget
from staircase_fast.stack._stack cimport Stack, empty_stack

import numpy

cdef object empty = numpy.empty
cdef type ndarray = numpy.ndarray
cdef object intp = numpy.dtype(numpy.intp)

cdef enum:
    # With more rows, the survey is faster (measured for ten kinds of scores and targets); with more than 250,000, the
    # system may also take back the work space after each call.
    ROWS = 250000
    LABEL_ROWS = 65536
    ROWS_WITHOUT_GIL = 1000   # with fewer rows the GIL is kept: releasing it would cost more than it gains

MOST_ROWS, MOST_LABELS = ROWS, LABEL_ROWS

# State of one call of `fit` or `regress`: input arrays, copied rows, and work space (`memory`, and `words` if needed).
ctypedef struct Fit:
    Array scores
    Array targets
    Array weights
    Py_ssize_t n
    void *memory
    void *words               # exact sums, allocated when their width is known
    Task task
    Range y_range
    Range w_range
    int status


cdef enum Status:
    FINE
    GENERAL                   # leave the rows to the general path
    NO_MEMORY


cdef int open_arrays(Fit *fit, object scores, object targets, object weights) noexcept:
    fit.scores.kind = fit.targets.kind = fit.weights.kind = 0
    fit.memory = fit.words = NULL
    if not open_array(targets, ndarray, &fit.targets):
        return GENERAL
    fit.n = fit.targets.n
    if not 0 < fit.n <= ROWS:
        return GENERAL
    if scores is not None and (not open_array(scores, ndarray, &fit.scores) or fit.scores.n != fit.n):
        return GENERAL
    if weights is not None and (not open_array(weights, ndarray, &fit.weights) or fit.weights.n != fit.n):
        return GENERAL
    return FINE


cdef void close_arrays(Fit *fit) noexcept:
    close_array(&fit.scores)
    close_array(&fit.targets)
    close_array(&fit.weights)
    PyMem_RawFree(fit.memory)
    PyMem_RawFree(fit.words)


cdef int allocate(Fit *fit) noexcept nogil:
    """Allocate the work space and the outputs."""
    cdef Py_ssize_t n = fit.n, row_size = sizeof(RankedRow) if fit.weights.kind else sizeof(RankedTarget)
    cdef Room *room = &fit.task.room
    cdef char *at = <char *>PyMem_RawMalloc(
        n * (2 * row_size + sizeof(Py_ssize_t) + 7 * sizeof(double) + sizeof(int64_t) + 4)
        + MOST_DIGITS * sizeof(uint32_t) + 64
    )
    if at == NULL:
        return NO_MEMORY
    fit.memory = at
    room.rows = at
    room.spare = at + n * row_size
    room.starts = <Py_ssize_t *>(at + 2 * n * row_size)
    fit.task.columns.x = <double *>(room.starts + n + 1)
    fit.task.columns.y = fit.task.columns.x + n
    fit.task.columns.w = fit.task.columns.y + n
    fit.task.steps.left = fit.task.columns.w + n
    fit.task.steps.right = fit.task.steps.left + n
    fit.task.steps.values = fit.task.steps.right + n
    fit.task.steps.weights = fit.task.steps.values + n
    fit.task.steps.counts = <int64_t *>(fit.task.steps.weights + n)
    fit.task.steps.n = 0
    room.ends = <uint32_t *>(fit.task.steps.counts + n)
    room.tied = <uint8_t *>(room.ends + MOST_DIGITS)
    room.known = room.tied + n
    fit.task.columns.labels = room.known + n
    room.live = fit.task.columns.labels + n
    return FINE


cdef int read_rows(Fit *fit, double lowest, double highest) noexcept nogil:
    """Copy and check the rows, and drop rows of weight 0.  Contiguous doubles are not copied, except scores."""
    cdef Columns *columns = &fit.task.columns
    cdef Columns copies = columns[0]
    cdef Py_ssize_t i, n = fit.n
    cdef bint labels
    if not read_column(&fit.targets, &columns.y):
        return GENERAL
    labels = not fit.weights.kind and lowest <= 0 and highest >= 1 and are_labels(columns.y, n)
    if labels and n > LABEL_ROWS:
        return GENERAL
    if not copy_as_doubles(&fit.scores, columns.x) or has_nan(columns.x, n):
        return GENERAL
    for i in range(n):
        columns.x[i] += 0.0                               # -0.0 becomes the 0.0 it equals
    fit.w_range = Range(-1, 1.0, 1.0, 1.0, True)
    if fit.weights.kind:
        columns.labels = NULL
        if not read_column(&fit.weights, &columns.w):
            return GENERAL
        fit.w_range = range_of(columns.w, n)
    else:
        columns.w = NULL
        if labels:
            for i in range(n):
                columns.labels[i] = columns.y[i] != 0
            fit.y_range = Range(-1, 0.0, 1.0, 1.0, True)
            return FINE
        columns.labels = NULL
    fit.y_range = range_of(columns.y, n)
    if not are_valid(fit, lowest, highest):
        return GENERAL
    if fit.w_range.lowest == 0:
        fit.n = copy_present(columns, n, &copies)
        columns.y, columns.w = copies.y, copies.w
        fit.w_range = range_of(columns.w, fit.n)
    return FINE if fit.n else GENERAL


cdef Py_ssize_t copy_present(const Columns *rows, Py_ssize_t n, Columns *out) noexcept nogil:
    """Copy the rows of weight other than 0, maybe to the same place; return their number."""
    cdef Py_ssize_t i, n_present = 0
    for i in range(n):
        if rows.w[i] != 0:
            out.x[n_present], out.y[n_present], out.w[n_present] = rows.x[i], rows.y[i], rows.w[i]
            n_present += 1
    return n_present


cdef bint are_valid(const Fit *fit, double lowest, double highest) noexcept nogil:
    cdef Range y = fit.y_range, w = fit.w_range
    if y.first_bad >= 0 or y.lowest < lowest or y.highest > highest:
        return False
    if max(-y.lowest, y.highest) >= 9007199254740992.0:      # 2**53: may be a rounded integer
        return False
    return w.first_bad < 0 and w.lowest >= 0 and w.highest * fit.n < INFINITY


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


cdef int run_fit(Fit *fit, double lowest, double highest, bint decreasing, double lo, double hi) noexcept nogil:
    cdef int status = allocate(fit)
    if status == FINE:
        status = read_rows(fit, lowest, highest)
    if status == FINE:
        status = set_stack(fit, decreasing, lo, hi)
    if status == FINE:
        fit_one(&fit.task, 0, fit.n)
    return status


cdef int run_regress(Fit *fit, double lowest, double highest, bint decreasing) noexcept nogil:
    """Rows are read in place if they are contiguous doubles, and scanned once."""
    cdef Task *task = &fit.task
    cdef Stack *stack = &task.stack
    cdef Py_ssize_t n = fit.n
    cdef int status = allocate(fit)
    cdef double *y
    cdef double *w
    cdef uint8_t *live
    if status != FINE:
        return status
    y, w = task.columns.y, task.columns.w
    if not read_column(&fit.targets, &y):
        return GENERAL
    if not fit.weights.kind:
        w = NULL
    elif not read_column(&fit.weights, &w):
        return GENERAL
    # the buckets are stored at the end of `values`, where `push_all` (_rows.pxd) expects them
    fit.y_range = fill_buckets(
        <const double *>y, w, NULL, n, <Bucket *>(task.steps.values + n) - n // BUCKET_ROWS, &fit.w_range
    )
    if not are_valid(fit, lowest, highest) or fit.w_range.lowest == 0:
        return GENERAL
    status = set_stack(fit, decreasing, -INFINITY, INFINITY)
    if status == FINE:
        stack.s = task.steps.values
        stack.w = task.steps.weights
        live = task.room.live if n >= ROWS_FOR_A_PLAN and stack.scale.tame else NULL
        merge_rows(stack, <const double *>y, w, NULL, n, -INFINITY, INFINITY, live, True)
        task.room.starts[stack.n] = n
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
    cdef int status
    if scores is None:
        return None
    status = open_arrays(&own, scores, targets, weights)
    try:
        if status == FINE:
            if own.n >= ROWS_WITHOUT_GIL:
                with nogil:
                    status = run_fit(&own, lowest, highest, decreasing, lo, hi)
            else:
                status = run_fit(&own, lowest, highest, decreasing, lo, hi)
        if status == NO_MEMORY:
            raise MemoryError
        if status == GENERAL:
            return None
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
    cdef int status = open_arrays(&own, None, targets, weights)
    try:
        if status == FINE:
            if own.n >= ROWS_WITHOUT_GIL:
                with nogil:
                    status = run_regress(&own, lowest, highest, decreasing)
            else:
                status = run_regress(&own, lowest, highest, decreasing)
        if status == NO_MEMORY:
            raise MemoryError
        if status == GENERAL:
            return None
        n_steps = own.task.stack.n
        values, step_weights, borders = empty(own.n), empty(n_steps), empty(n_steps + 1, intp)
        x, w, starts = values, step_weights, borders
        memcpy(&w[0], own.task.steps.weights, n_steps * sizeof(double))
        memcpy(&starts[0], own.task.room.starts, (n_steps + 1) * sizeof(Py_ssize_t))
        expand_steps(own.task.steps.values, &starts[0], 0, 0, &x[0], own.n)
        return values, step_weights, borders
    finally:
        close_arrays(&own)
