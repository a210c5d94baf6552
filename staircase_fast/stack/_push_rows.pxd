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


cdef inline bint rises(const number *y, Py_ssize_t i, bint decreasing) noexcept nogil:
    """Whether target i is above the one before it; below it, if values decrease."""
    return y[i] < y[i - 1] if decreasing else y[i] > y[i - 1]


cdef inline void push_integers(
    Stack *stack, const number *y, const double *weights, const uint8_t *tied, Py_ssize_t i, Py_ssize_t end
) noexcept nogil:
    """Push the rows [i, end) in runs that share a step: tied rows, or rows in which no target is above the one before.

    Runs are found without branches, which would often be mispredicted.  (Runs of real targets are too short for that.)
    """
    cdef Py_ssize_t begins[RUN_ROWS + 1]
    cdef int64_t s_before[RUN_ROWS + 1]       # sums of the rows before the run
    cdef int64_t w_before[RUN_ROWS + 1]
    cdef Py_ssize_t stop, run, n_runs
    cdef int64_t s, w = 1
    cdef bint decreasing = stack.decreasing, begin
    if i == end:
        return
    if weights != NULL:
        w = <int64_t>weights[i]
    s = <int64_t>y[i] * w
    begins[0], s_before[0], w_before[0] = i, 0, 0
    i += 1
    while begins[0] < end:
        stop = min(end, i + RUN_ROWS - 1)
        n_runs = 1
        for i in range(i, stop):
            begins[n_runs], s_before[n_runs] = i, s
            begin = rises(y, i, decreasing)
            if tied != NULL:
                begin = (begin | tied[i - 1] | (tied[i + 1] if i + 1 < end else 0)) & (tied[i] ^ 1)
            if weights == NULL:
                s += <int64_t>y[i]
            else:
                w_before[n_runs] = w
                s += <int64_t>y[i] * <int64_t>weights[i]
                w += <int64_t>weights[i]
            n_runs += begin
        i = stop
        if i == end:                          # the last run is complete
            begins[n_runs], s_before[n_runs], w_before[n_runs] = i, s, w
            n_runs += 1
        for run in range(n_runs - 1):
            push(
                stack, y, weights, begins[run], begins[run + 1], s_before[run + 1] - s_before[run],
                begins[run + 1] - begins[run] if weights == NULL else w_before[run + 1] - w_before[run], False
            )
        begins[0], s_before[0], w_before[0] = begins[n_runs - 1], s_before[n_runs - 1], w_before[n_runs - 1]


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
