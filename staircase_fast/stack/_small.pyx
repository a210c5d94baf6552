"""The fit of up to MOST_ROWS rows in one call: checks, sort, stack.  For few rows, calls cost more than arithmetic.

Invalid rows, and rows that need wide exact sums, are left to the general path, which reports errors.  The GIL is not
released: that would take as long as the fit.
"""

from libc.math cimport INFINITY
from libc.stdint cimport int64_t, uint8_t, uint64_t

from staircase_fast.arithmetic._column_scan cimport Range, range_of
from staircase_fast.arithmetic._exact cimport Scale
from staircase_fast.arithmetic._scale cimport scale_of
from staircase_fast.stack._rows cimport find_ties
from staircase_fast.stack._stack cimport Stack, empty_stack, finish, push_rows

cdef enum:
    ROWS = 256
    WORDS = 4             # limit of the width of exact sums

MOST_ROWS = ROWS

ctypedef struct Work:
    Py_ssize_t starts[ROWS + 1]
    double values[ROWS]
    double weights[ROWS]
    uint8_t known[ROWS]
    uint64_t words[ROWS * WORDS]

ctypedef struct Sorted:
    double x[ROWS]
    double y[ROWS]
    double w[ROWS]
    uint8_t tied[ROWS]


def fit(
    const double[::1] scores not None,         # IN  at most MOST_ROWS, in any order
    const double[::1] targets not None,        # IN  one per score
    const double[::1] weights not None,        # IN  one per score, or empty: all are 1
    double lowest,                             # IN  the loss allows targets in [lowest, highest]
    double highest,
    bint decreasing,
    double lo,
    double hi,
    double[:, ::1] steps not None,             # OUT a column per step: left, right, value, weight, rows (as int64)
):
    """Write the steps to the first columns of `steps` and return their number, or 0: use the general path."""
    cdef Work work
    cdef Sorted rows
    cdef Py_ssize_t n = targets.shape[0], n_steps, step
    cdef const double *w = &weights[0] if weights.shape[0] else NULL
    cdef const uint8_t *tied
    if not sort(&rows, &scores[0], &targets[0], w, n):
        return 0
    w = NULL if w == NULL else rows.w
    tied = rows.tied if find_ties(rows.x, n, rows.tied) else NULL
    n_steps = merge(&work, rows.y, w, tied, n, lowest, highest, decreasing, lo, hi)
    for step in range(n_steps):
        steps[0, step] = rows.x[work.starts[step]]
        steps[1, step] = rows.x[work.starts[step + 1] - 1]
        steps[2, step] = work.values[step]
        steps[3, step] = work.weights[step]
        (<int64_t *>&steps[4, step])[0] = work.starts[step + 1] - work.starts[step]
    return n_steps


def regress(
    const double[::1] targets not None,        # IN  at most MOST_ROWS
    const double[::1] weights not None,        # IN  one per target, or empty: all are 1
    double lowest,                             # IN  the loss allows targets in [lowest, highest]
    double highest,
    bint decreasing,
    double[::1] x not None,                    # OUT the value of each row
    double[::1] step_weights not None,         # OUT
    Py_ssize_t[::1] starts not None,           # OUT first row of each step, then the number of rows
):
    """Fit sorted rows without ties; return the number of steps, or 0: use the general path."""
    cdef Work work
    cdef Py_ssize_t n = targets.shape[0], n_steps, step, i
    n_steps = merge(
        &work, &targets[0], &weights[0] if weights.shape[0] else NULL, NULL, n, lowest, highest, decreasing,
        -INFINITY, INFINITY
    )
    starts[n_steps] = n
    for step in range(n_steps):
        starts[step] = work.starts[step]
        step_weights[step] = work.weights[step]
        for i in range(work.starts[step], work.starts[step + 1]):
            x[i] = work.values[step]
    return n_steps


cdef Py_ssize_t merge(
    Work *work, const double *y, const double *w, const uint8_t *tied, Py_ssize_t n, double lowest, double highest,
    bint decreasing, double lo, double hi
) noexcept:
    """Fit sorted rows; return the number of steps, or 0."""
    cdef Range targets = range_of(y, n), weights = Range(-1, 1.0, 1.0, 1.0, True)
    cdef Scale scale
    cdef Stack stack
    if w != NULL:
        weights = range_of(w, n)
    if targets.first_bad >= 0 or targets.lowest < lowest or targets.highest > highest:
        return 0
    if max(-targets.lowest, targets.highest) >= 9007199254740992.0:      # 2**53: may be a rounded integer
        return 0
    if weights.first_bad >= 0 or weights.lowest <= 0 or weights.highest * n == INFINITY:
        return 0
    scale = scale_of(targets, weights, n)
    if scale.s_words + scale.w_words > WORDS:
        return 0
    stack = empty_stack(scale, decreasing, work.starts, work.values, work.weights)
    stack.known = work.known
    stack.words = work.words
    if scale.narrow:
        push_rows(&stack, y, w, tied, <int64_t>0, 0, n)
        finish(&stack, y, w, <int64_t>0, n, lo, hi)
    else:
        push_rows(&stack, y, w, tied, <double>0, 0, n)
        finish(&stack, y, w, <double>0, n, lo, hi)
    work.starts[stack.n] = n
    return stack.n


cdef bint sort(
    Sorted *rows, const double *scores, const double *targets, const double *weights, Py_ssize_t n
) noexcept:
    """Sort the rows by insertion; return False if a score is NaN."""
    cdef Py_ssize_t i, j
    cdef double x
    for i in range(n):
        x = scores[i] + 0.0                   # -0.0 becomes the 0.0 it equals
        if x != x:
            return False
        j = i
        while j > 0 and rows.x[j - 1] > x:
            rows.x[j] = rows.x[j - 1]
            rows.y[j] = rows.y[j - 1]
            if weights != NULL:
                rows.w[j] = rows.w[j - 1]
            j -= 1
        rows.x[j] = x
        rows.y[j] = targets[i]
        if weights != NULL:
            rows.w[j] = weights[i]
    return True
