# Push sorted rows onto the stack (`_stack.pxd`), integers and real numbers each in their fastest way.
#
# Preconditions: those of `_stack.pxd`; no tie goes on after the last row.

from libc.stdint cimport int64_t, uint8_t

from staircase_fast.arithmetic._buckets cimport sum_products
from staircase_fast.arithmetic._types cimport number
from staircase_fast.stack._stack cimport Stack, error_bound, push, sum_t

cdef enum:
    RUN_ROWS = 256        # rows that are divided into runs at once


cdef inline void push_rows(
    Stack *stack, const number *y, const double *weights, const uint8_t *tied, sum_t kind, Py_ssize_t i, Py_ssize_t end
) noexcept nogil:
    """Push the rows [i, end).  `kind` only selects sum_t."""
    if sum_t is int64_t:
        push_integers(stack, y, weights, tied, i, end)
    else:
        if tied != NULL or weights != NULL or stack.decreasing:
            push_reals(stack, y, weights, tied, stack.decreasing, i, end)
        else:
            push_reals(stack, y, NULL, NULL, False, i, end)       # constants: compilers make a faster copy


cdef inline void push_integers(
    Stack *stack, const number *y, const double *weights, const uint8_t *tied, Py_ssize_t i, Py_ssize_t end
) noexcept nogil:
    """Push the rows [i, end): each is a block, tied ones together; without ties, in runs."""
    cdef Py_ssize_t start
    cdef int64_t s, w, weight = 1
    if tied == NULL:
        push_runs(stack, y, weights, i, end)
        return
    while i < end:
        start = i
        s = 0
        w = 0
        while True:
            if weights != NULL:
                weight = <int64_t>weights[i]
            s += <int64_t>y[i] * weight
            w += weight
            i += 1
            if i == end or not tied[i]:
                break
        push(stack, y, weights, start, i, s, w, False)


cdef inline void push_runs(
    Stack *stack, const number *y, const double *weights, Py_ssize_t i, Py_ssize_t end
) noexcept nogil:
    """Push the rows [i, end) in runs: consecutive rows in which no target is above the one before it share a step.

    Runs are found without branches, which would often be mispredicted.  (Runs of real targets are too short for that.)
    """
    cdef Py_ssize_t ends[RUN_ROWS + 1]
    cdef int64_t s_runs[RUN_ROWS + 1]
    cdef int64_t w_runs[RUN_ROWS + 1]
    cdef Py_ssize_t first = i, start = i, stop, n_runs, run
    cdef int64_t s = 0, w = 0, weight = 1
    cdef bint starts, decreasing = stack.decreasing
    while i < end:
        stop = min(end, i + RUN_ROWS)
        n_runs = 0                            # complete ones; the last run of a chunk may go on in the next
        ends[0], s_runs[0], w_runs[0] = i, s, w
        for i in range(i, stop):
            starts = i > first and (y[i] < y[i - 1] if decreasing else y[i] > y[i - 1])
            n_runs += starts
            if weights != NULL:
                weight = <int64_t>weights[i]
            s = (0 if starts else s) + <int64_t>y[i] * weight
            w = (0 if starts else w) + weight
            ends[n_runs], s_runs[n_runs], w_runs[n_runs] = i + 1, s, w
        i = stop
        for run in range(n_runs if i < end else n_runs + 1):
            push(stack, y, weights, start, ends[run], s_runs[run], w_runs[run], False)
            start = ends[run]


cdef inline bint rises(const number *y, Py_ssize_t i, bint decreasing) noexcept nogil:
    """Whether target i is above the one before it; below it, if values decrease."""
    return y[i] < y[i - 1] if decreasing else y[i] > y[i - 1]


cdef inline void push_reals(
    Stack *stack, const number *y, const double *weights, const uint8_t *tied, bint decreasing, Py_ssize_t i,
    Py_ssize_t end
) noexcept nogil:
    """Push the rows [i, end) in blocks: tied rows, and rows whose targets do not rise, share a step.

    So equal targets, whose means may differ by rounding errors, are not compared.  Most comparisons are decided here,
    with one error bound for all blocks; `push` does the others.
    """
    cdef Py_ssize_t start, top = stack.n - 1
    cdef Py_ssize_t *starts = stack.starts
    cdef double *ss = stack.s
    cdef double *ws = stack.w
    cdef uint8_t *known = stack.known
    cdef double s, w, weight
    cdef bint keep_known = stack.spare <= 0   # exact sums must be kept
    cdef double difference = 0.0, error = 0.0, excess, bound = error_bound(stack, end)
    while i < end:
        start = i
        w = weights[i] if weights != NULL else 1.0
        s = <double>y[i] * w
        i += 1
        if tied == NULL:
            while i < end and not rises(y, i, decreasing):
                weight = weights[i] if weights != NULL else 1.0
                s += <double>y[i] * weight
                w += weight
                i += 1
        elif i < end and tied[i]:
            while i < end and tied[i]:
                i += 1
            s = sum_products(y + start, NULL if weights == NULL else weights + start, i - start)
            w = <double>(i - start) if weights == NULL else sum_products(weights + start, NULL, i - start)
        while True:
            while top >= 0:
                difference = ss[top] * w - s * ws[top]
                if decreasing:
                    difference = -difference
                error = bound * (w * ws[top])
                if not difference > error or (keep_known and known[top]):
                    break
                start = starts[top]
                s += ss[top]
                w += ws[top]
                top -= 1
            # a row below the mean of this block would be merged with it: add it before the block is stored
            if tied != NULL or i == end:
                break
            excess = s - <double>y[i] * w
            if not (-excess if decreasing else excess) > bound * w:
                break
            weight = weights[i] if weights != NULL else 1.0
            s += <double>y[i] * weight
            w += weight
            i += 1
        if top < 0 or difference < -error:
            top += 1
            starts[top], ss[top], ws[top], known[top] = start, s, w, False
            # fast path for monotone rows: if the top block is a single row, comparing targets is enough
            while (
                tied == NULL and start == i - 1 and i + 1 < end
                and rises(y, i, decreasing) and rises(y, i + 1, decreasing)
            ):
                start = i
                w = weights[i] if weights != NULL else 1.0
                top += 1
                starts[top], ss[top], ws[top], known[top] = i, <double>y[i] * w, w, False
                i += 1
            continue
        stack.n = top + 1
        push(stack, y, weights, start, i, s, w, False)
        top = stack.n - 1
        keep_known = stack.spare <= 0
    stack.n = top + 1
