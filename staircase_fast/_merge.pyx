"""The O(n) block-merge stack over observations in score order.

Kernels here assume clean input: n >= 1, contiguous rows, finite targets, weights finite and > 0, a Scale made for them,
and room for n blocks in every output array.
"""

from libc.math cimport INFINITY
from libc.stdint cimport int64_t, uint8_t, uint64_t

from staircase_fast._blocks cimport Stack, empty_stack, finish, push, push_rows, sum_t
from staircase_fast._cells cimport floating
from staircase_fast._exact cimport number, unpacked
from staircase_fast._plan cimport plan
from staircase_fast._select cimport greater, lesser
from staircase_fast._summary cimport Bucket

cdef enum:
    BUCKET_ROWS = 16
    CHUNK = 1024


def merge(
    const floating[::1] scores not None,       # IN  ascending, or empty: no two are equal
    const number[::1] targets not None,        # IN  in score order
    const double[::1] weights not None,        # IN  one per target, or empty: all are 1
    object scale not None,                     # IN  exact.Scale
    bint decreasing,
    double lo,
    double hi,
    bint every_row,                            # IN  look at every row, not only at those that can matter
    Py_ssize_t[::1] starts not None,           # OUT first row of each step, then the number of rows
    double[::1] values not None,               # OUT
    double[::1] step_weights not None,         # OUT
    uint64_t[::1] work not None,               # work: work_size(n, scale.s_words + scale.w_words)
):
    """Fill the first entries of the outputs with the staircase; return how many steps it has."""
    cdef Py_ssize_t n = targets.shape[0], room = n // BUCKET_ROWS + 2
    cdef const number *y = &targets[0]
    cdef const double *w = &weights[0] if weights.shape[0] else NULL
    cdef Stack stack = empty_stack(unpacked(scale), decreasing, &starts[0], &values[0], &step_weights[0])
    cdef Buckets buckets
    cdef uint8_t *tied
    # what the stack does not reach of the work space is never touched, so it costs nothing
    stack.words = &work[0]
    buckets.rows = <Bucket *>(stack.words + (0 if stack.scale.narrow else n * stack.n_words))
    buckets.begins = <Py_ssize_t *>(buckets.rows + room)
    buckets.live = <uint8_t *>(buckets.begins + room)
    stack.known = buckets.live + room
    tied = stack.known + n
    with nogil:
        if scores.shape[0] == 0 or not find_ties(&scores[0], n, tied):
            tied = NULL
        if tied == NULL and lo == -INFINITY and hi == INFINITY and is_own_staircase(&stack, y, n):
            copy_rows(&stack, y, w, n)
        elif stack.scale.narrow:
            push_all(&stack, y, w, tied, n, <int64_t>0, buckets, every_row)
            finish(&stack, y, w, <int64_t>0, n, lo, hi)
        else:
            push_all(&stack, y, w, tied, n, <double>0, buckets, every_row)
            finish(&stack, y, w, <double>0, n, lo, hi)
        starts[stack.n] = n
    return stack.n


def work_size(Py_ssize_t n, int n_words):
    """Words that `merge` of n rows wants as work space, where exact sums have `n_words` of them."""
    cdef Py_ssize_t room = n // BUCKET_ROWS + 2
    return n * n_words + (room * (sizeof(Bucket) + sizeof(Py_ssize_t) + 1) + 2 * n) // sizeof(uint64_t) + 1


def expand(double[::1] values not None, const Py_ssize_t[::1] starts not None):
    """The first entries of `values`, one per step, become one per row: the last row is the last entry."""
    cdef Py_ssize_t step, i
    cdef double value
    with nogil:
        for step in range(starts.shape[0] - 2, -1, -1):      # step <= starts[step]: what is to be read is still there
            value = values[step]
            for i in range(starts[step], starts[step + 1]):
                values[i] = value


def describe(
    const floating[::1] scores not None,       # IN
    const Py_ssize_t[::1] starts not None,     # IN  from `merge`, with the number of rows
    double[::1] left not None,                 # OUT one per step
    double[::1] right not None,                # OUT
    int64_t[::1] counts not None,              # OUT
):
    """The first and the last score of each step and its number of rows."""
    cdef Py_ssize_t step
    with nogil:
        for step in range(counts.shape[0]):
            left[step] = scores[starts[step]]
            right[step] = scores[starts[step + 1] - 1]
            counts[step] = starts[step + 1] - starts[step]


cdef bint find_ties(const floating *scores, Py_ssize_t n, uint8_t *tied) noexcept nogil:
    """tied[i] = whether the score is that of row i - 1; return whether any is."""
    cdef uint8_t found = 0
    cdef Py_ssize_t i
    tied[0] = 0
    for i in range(1, n):
        tied[i] = scores[i] == scores[i - 1]
        found |= tied[i]
    return found


cdef bint is_own_staircase(const Stack *stack, const number *y, Py_ssize_t n) noexcept nogil:
    """Whether targets are strictly monotone, and values that a double holds."""
    cdef Py_ssize_t i = 1, end
    cdef bint fails = not (number is float or number is double) and stack.scale.greatest > 9007199254740992.0   # 2**53
    while i < n and not fails:
        end = min(n, i + CHUNK)
        if stack.decreasing:
            for i in range(i, end):
                fails |= not y[i - 1] > y[i]
        else:
            for i in range(i, end):
                fails |= not y[i - 1] < y[i]
        i = end
    return not fails


cdef void copy_rows(Stack *stack, const number *y, const double *weights, Py_ssize_t n) noexcept nogil:
    """Every row is a step."""
    cdef Py_ssize_t i
    for i in range(n):
        stack.starts[i] = i
        stack.s[i] = <double>y[i] + 0.0                   # -0.0 becomes 0.0
        stack.w[i] = 1.0 if weights == NULL else weights[i]
    stack.n = n


ctypedef struct Buckets:
    Bucket *rows          # sums and extremes of rows side by side
    Py_ssize_t *begins    # where each begins, and the number of rows
    uint8_t *live


cdef void push_all(
    Stack *stack, const number *y, const double *weights, const uint8_t *tied, Py_ssize_t n, sum_t kind,
    Buckets buckets, bint every_row
) noexcept nogil:
    cdef const Py_ssize_t *begins = buckets.begins
    cdef const uint8_t *live = buckets.live
    cdef Py_ssize_t n_buckets, b, start
    cdef double s, w
    if every_row or not stack.scale.tame:
        push_rows(stack, y, weights, tied, kind, 0, n)
        return
    n_buckets = summarise(y, weights, tied, n, buckets.rows, buckets.begins)
    plan(
        <const Bucket *>buckets.rows, n_buckets, stack.decreasing, n, stack.scale.greatest, stack.starts, stack.s, stack.w,
        buckets.live
    )
    b = 0
    while b < n_buckets:
        if live[b]:
            push_rows(stack, y, weights, tied, kind, begins[b], begins[b + 1])
            b += 1
        else:
            start = b
            s = 0
            w = 0
            while b < n_buckets and not live[b]:
                s += buckets.rows[b].s
                w += buckets.rows[b].w
                b += 1
            push(stack, y, weights, begins[start], begins[b], <sum_t>s, <sum_t>w, False)


cdef inline Py_ssize_t summarise(
    const number *y, const double *weights, const uint8_t *tied, Py_ssize_t n, Bucket *buckets, Py_ssize_t *begins
) noexcept nogil:
    """Sums and extremes of buckets of consecutive rows; a bucket does not end within a tie."""
    cdef Py_ssize_t i = 0, n_buckets = 0, start, end
    cdef double s, w, lo, hi, value
    while i < n:
        start = i
        end = min(n, i + BUCKET_ROWS)
        while tied != NULL and end < n and tied[end]:
            end += 1
        s = 0.0
        w = 0.0
        lo = <double>y[i]
        hi = lo
        if weights == NULL:
            for i in range(start, end):
                value = <double>y[i]
                s += value
                lo = lesser(value, lo)
                hi = greater(value, hi)
            w = <double>(end - start)
        else:
            for i in range(start, end):
                value = <double>y[i]
                s += value * weights[i]
                w += weights[i]
                lo = lesser(value, lo)
                hi = greater(value, hi)
        i = end
        buckets[n_buckets] = Bucket(s, w, lo, hi)
        begins[n_buckets] = start
        n_buckets += 1
        begins[n_buckets] = end
    return n_buckets
