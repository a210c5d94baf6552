# Push many sorted rows at once, and the whole fit of sorted rows (`merge_rows`).
#
# The rows are first summed in buckets of BUCKET_ROWS.  In noisy data most buckets are *quiet*: they cannot contain the
# end of a step (`_plan.pxd`), and consecutive ones are pushed as a single block.  Only the rows of the other, *live*,
# buckets are pushed one by one.  Batch and online fits both use `push_all`.
#
# Preconditions: those of `_stack.pxd`.

from libc.math cimport INFINITY
from libc.stdint cimport int64_t, uint8_t, uint64_t

from staircase_fast.arithmetic._buckets cimport BUCKET_ROWS, Range, bucket_start, fill_buckets
from staircase_fast.arithmetic._buckets_avx2 cimport Bucket
from staircase_fast.arithmetic._types cimport CHUNK, floating, number
from staircase_fast.stack._plan cimport plan
from staircase_fast.stack._push_rows cimport push_rows
from staircase_fast.stack._stack cimport Stack, finish, push, sum_t

cdef enum:
    CHORD_BUCKETS = 4     # see `plan`


cdef inline bint find_ties(const floating *scores, Py_ssize_t n, uint8_t *tied) noexcept nogil:
    """Set tied[i] to whether score i equals score i - 1; return whether any does."""
    cdef uint8_t found = 0
    cdef Py_ssize_t i
    tied[0] = 0
    for i in range(1, n):
        tied[i] = scores[i] == scores[i - 1]
        found |= tied[i]
    return found


cdef inline void push_all(
    Stack *stack, const number *y, const double *weights, const uint8_t *tied, Py_ssize_t n, sum_t kind,
    uint8_t *live, bint summarised
) noexcept nogil:
    """Push all rows onto an empty stack; `live` is work space, or NULL: push every row by itself.

    The buckets are at the end of stack.s, filled already if `summarised`.  A bucket is four doubles and its rows are
    sixteen, so the stack, which grows from the start of that array, does not reach a bucket before its rows are pushed.
    """
    cdef Bucket *buckets = <Bucket *>(stack.s + n) - n // BUCKET_ROWS
    cdef Py_ssize_t n_buckets = n // BUCKET_ROWS if live != NULL else 0, b, start, end = 0
    cdef double s, w
    cdef Range ignored
    if n_buckets and not summarised:
        fill_buckets(y, weights, tied, n, buckets, &ignored)
    # sums are rounded once per bucket, and inside a bucket at most three times per row
    plan(
        <const Bucket *>buckets, n_buckets, y, weights, tied, n, stack.decreasing,
        n_buckets + 3 * BUCKET_ROWS if tied == NULL else 3 * n, stack.scale.greatest, stack.starts, stack.s, stack.w,
        live, CHORD_BUCKETS
    )
    b = 0
    while b < n_buckets:
        start = end
        if live[b]:
            while b < n_buckets and live[b]:
                b += 1
            end = bucket_start(tied, n, b, start)
            push_rows(stack, y, weights, tied, kind, start, end)
        else:
            s = 0
            w = 0
            while b < n_buckets and not live[b]:
                s += buckets[b].s
                w += buckets[b].w
                b += 1
            end = bucket_start(tied, n, b, start)
            if start < end:                   # a bucket inside a long tie has no rows
                push_quiet(stack, y, weights, start, end, s, w, kind)
    push_rows(stack, y, weights, tied, kind, end, n)


cdef inline void push_quiet(
    Stack *stack, const number *y, const double *weights, Py_ssize_t start, Py_ssize_t end, double s, double w,
    sum_t kind
) noexcept nogil:
    """Push the rows of quiet buckets, with their sums in doubles, as one block."""
    cdef int64_t exact_s, exact_w
    if sum_t is int64_t and stack.scale.greatest * w > 9007199254740992.0:       # 2**53: integers may have been rounded
        sum_integers(y, weights, start, end, &exact_s, &exact_w)
        push(stack, y, weights, start, end, <sum_t>exact_s, <sum_t>exact_w, False)
    else:
        push(stack, y, weights, start, end, <sum_t>s, <sum_t>w, False)


cdef inline void sum_integers(
    const number *y, const double *weights, Py_ssize_t start, Py_ssize_t end, int64_t *s, int64_t *w
) noexcept nogil:
    """Set s and w to the sums of integer rows."""
    cdef int64_t weight
    cdef Py_ssize_t i
    s[0] = 0
    w[0] = end - start
    if weights == NULL:
        for i in range(start, end):
            s[0] += <int64_t>y[i]
        return
    w[0] = 0
    for i in range(start, end):
        weight = <int64_t>weights[i]
        s[0] += <int64_t>y[i] * weight
        w[0] += weight


cdef inline Py_ssize_t work_words(Py_ssize_t n, int n_words) noexcept nogil:
    """Words of work space for n rows whose exact sums have n_words words; see place_work."""
    return n * n_words + (2 * n + n // BUCKET_ROWS) // <Py_ssize_t>sizeof(uint64_t) + 1


cdef inline uint8_t *place_work(Stack *stack, uint64_t *work, Py_ssize_t n) noexcept nogil:
    """Give the stack its part of the work space; return the rest: n flags for ties, then one for each bucket.

    The operating system provides memory only when it is first written, so unused room for exact sums costs nothing.
    """
    stack.words = work
    stack.known = <uint8_t *>(work + (0 if stack.scale.narrow else n * stack.n_words))
    return stack.known + n


cdef inline void merge_rows(
    Stack *stack, const number *y, const double *weights, const uint8_t *tied, Py_ssize_t n, double lo, double hi,
    uint8_t *live, bint summarised
) noexcept nogil:
    """Fit sorted rows on an empty stack; `tied` is NULL if all scores differ."""
    # integers of 2**53 and more may be rounded, here and in `greatest`
    cdef bint representable = number is float or number is double or stack.scale.greatest < 9007199254740992.0
    if (
        tied == NULL and lo == -INFINITY and hi == INFINITY and representable
        and is_own_staircase(y, n, stack.decreasing)
    ):
        copy_rows(y, weights, n, stack.starts, stack.s, stack.w)
        stack.n = n
    elif stack.scale.narrow:
        push_all(stack, y, weights, tied, n, <int64_t>0, live, summarised)
        finish(stack, y, weights, <int64_t>0, n, lo, hi)
    else:
        stack.spare = n
        push_all(stack, y, weights, tied, n, <double>0, live, summarised)
        finish(stack, y, weights, <double>0, n, lo, hi)


cdef inline bint is_own_staircase(const number *y, Py_ssize_t n, bint decreasing) noexcept nogil:
    """Whether the targets are strictly monotone, so that each row is a step."""
    cdef Py_ssize_t i = 1, end
    cdef bint fails = False
    while i < n and not fails:
        end = min(n, i + CHUNK)
        if decreasing:
            for i in range(i, end):
                fails |= not y[i - 1] > y[i]
        else:
            for i in range(i, end):
                fails |= not y[i - 1] < y[i]
        i = end
    return not fails


cdef inline void copy_rows(
    const number *y, const double *weights, Py_ssize_t n, Py_ssize_t *starts, double *values, double *step_weights
) noexcept nogil:
    """Make each row a step."""
    cdef Py_ssize_t i
    for i in range(n):
        starts[i] = i
        values[i] = <double>y[i] + 0.0                    # -0.0 becomes 0.0
        step_weights[i] = 1.0 if weights == NULL else weights[i]


cdef inline void expand_steps(
    const double *values, const Py_ssize_t *starts, Py_ssize_t step, Py_ssize_t first, double *out, Py_ssize_t n
) noexcept nogil:
    """Write the value of each of the n rows from `first` on, which is a row of `step`."""
    cdef Py_ssize_t i = 0, at, end
    while i < n:
        at = i
        end = min(starts[step + 1] - first, n)
        if i + 4 <= n:                        # without a loop for short steps; the rows after them are written again
            out[i] = out[i + 1] = out[i + 2] = out[i + 3] = values[step]
            at = i + 4
        for i in range(at, end):
            out[i] = values[step]
        i = end
        step += 1
