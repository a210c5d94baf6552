# Rows in score order onto the stack: row by row where a step may end, else many at once.
#
# Batch and online fits both push their rows through `push_all`.  Buckets of rows side by side are summed first; those
# that cannot hold the end of a step (_plan.pxd) go onto the stack as one block, and only rows of the others singly.
# `merge_rows` is the whole fit of rows in order.
#
# Assumed of the caller: as in _blocks.pxd.

from libc.math cimport INFINITY
from libc.stdint cimport int64_t, uint8_t, uint64_t

from staircase_fast.arithmetic._column_scan cimport BUCKET_ROWS, Bucket, Range, bucket_start, fill_buckets
from staircase_fast.arithmetic._types cimport CHUNK, floating, number
from staircase_fast.stack._plan cimport plan
from staircase_fast.stack._stack cimport Stack, finish, push, push_rows, sum_t

cdef enum:
    GROUP = 4             # of buckets, in the plan


cdef inline bint find_ties(const floating *scores, Py_ssize_t n, uint8_t *tied) noexcept nogil:
    """tied[i] = whether the score is that of row i - 1; return whether any is."""
    cdef uint8_t found = 0
    cdef Py_ssize_t i
    tied[0] = 0
    for i in range(1, n):
        tied[i] = scores[i] == scores[i - 1]
        found |= tied[i]
    return found


cdef inline Bucket *buckets_in(double *values, Py_ssize_t n) noexcept nogil:
    """Room for a bucket of each BUCKET_ROWS rows at the end of an array that the stack fills from its start.

    A bucket is four doubles, less than its rows take: the stack has not reached it before its rows are pushed.
    """
    return <Bucket *>(values + n) - n // BUCKET_ROWS


cdef inline Py_ssize_t begin(const uint8_t *tied, Py_ssize_t n, Py_ssize_t b, Py_ssize_t before) noexcept nogil:
    """The first row of bucket b, which has all observations that start within its rows; `before`: of an earlier one.

    Rows up to there need not be looked at again: a tie may be longer than many buckets.
    """
    cdef Py_ssize_t i = max(b * BUCKET_ROWS, before)
    while tied != NULL and i < n and tied[i]:
        i += 1
    return i


cdef inline void push_all(
    Stack *stack, const number *y, const double *weights, const uint8_t *tied, Py_ssize_t n, sum_t kind,
    uint8_t *live, bint summarised
) noexcept nogil:
    """Push rows of live buckets, and quiet buckets side by side as one block; where `live` is NULL, every row."""
    cdef Bucket *buckets = buckets_in(stack.s, n)
    cdef Py_ssize_t n_buckets = n // BUCKET_ROWS if live != NULL else 0, b, start, end = 0
    cdef double s, w
    cdef Range ignored
    if n_buckets and not summarised:
        fill_buckets(y, weights, tied, n, buckets, &ignored)
    # sums are rounded once per bucket, and within one, twice per row at most
    plan(
        <const Bucket *>buckets, n_buckets, stack.decreasing, n_buckets + 2 * BUCKET_ROWS if tied == NULL else n,
        stack.scale.greatest, stack.starts, stack.s, stack.w, live, GROUP
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
            if start < end:                   # within a long tie, no observation starts
                push_quiet(stack, y, weights, start, end, s, w, kind)
    push_rows(stack, y, weights, tied, kind, end, n)


cdef inline void push_quiet(
    Stack *stack, const number *y, const double *weights, Py_ssize_t start, Py_ssize_t end, double s, double w,
    sum_t kind
) noexcept nogil:
    """Push rows of quiet buckets, whose sums are known in doubles, as one block."""
    cdef int64_t exact_s, exact_w
    if sum_t is int64_t and stack.scale.greatest * w > 9007199254740992.0:       # 2**53: integers may have been rounded
        sum_integers(y, weights, start, end, &exact_s, &exact_w)
        push(stack, y, weights, start, end, <sum_t>exact_s, <sum_t>exact_w, False)
    else:
        push(stack, y, weights, start, end, <sum_t>s, <sum_t>w, False)


cdef inline void sum_integers(
    const number *y, const double *weights, Py_ssize_t start, Py_ssize_t end, int64_t *s, int64_t *w
) noexcept nogil:
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
    """Words of work for n rows, where exact sums have `n_words` of them: see place_work."""
    return n * n_words + (2 * n + n // BUCKET_ROWS) // <Py_ssize_t>sizeof(uint64_t) + 1


cdef inline uint8_t *place_work(Stack *stack, uint64_t *work, Py_ssize_t n) noexcept nogil:
    """Room for exact sums; return that for the ties of n rows, behind which is that for live buckets.

    What the stack does not reach of it is never touched, so it costs nothing.
    """
    stack.words = work
    stack.known = <uint8_t *>(work + (0 if stack.scale.narrow else n * stack.n_words))
    return stack.known + n


cdef inline void merge_rows(
    Stack *stack, const number *y, const double *weights, const uint8_t *tied, Py_ssize_t n, double lo, double hi,
    uint8_t *live, bint summarised
) noexcept nogil:
    """The steps of rows in score order, on an empty stack; `tied` is NULL where no two scores are equal."""
    if tied == NULL and lo == -INFINITY and hi == INFINITY and is_own_staircase(stack, y, n):
        copy_rows(stack, y, weights, n)
    elif stack.scale.narrow:
        push_all(stack, y, weights, tied, n, <int64_t>0, live, summarised)
        finish(stack, y, weights, <int64_t>0, n, lo, hi)
    else:
        push_all(stack, y, weights, tied, n, <double>0, live, summarised)
        finish(stack, y, weights, <double>0, n, lo, hi)


cdef inline bint is_own_staircase(const Stack *stack, const number *y, Py_ssize_t n) noexcept nogil:
    """Whether targets are strictly monotone, and values that a double holds."""
    cdef Py_ssize_t i = 1, end
    # from 2**53 on, integers may be rounded, here and in `greatest`
    cdef bint fails = not (number is float or number is double) and stack.scale.greatest >= 9007199254740992.0
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


cdef inline void copy_rows(Stack *stack, const number *y, const double *weights, Py_ssize_t n) noexcept nogil:
    """Every row is a step."""
    cdef Py_ssize_t i
    for i in range(n):
        stack.starts[i] = i
        stack.s[i] = <double>y[i] + 0.0                   # -0.0 becomes 0.0
        stack.w[i] = 1.0 if weights == NULL else weights[i]
    stack.n = n
