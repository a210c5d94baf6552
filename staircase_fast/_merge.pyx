"""The O(n) block-merge stack over observations in score order.

Kernels here assume clean input: n >= 1, contiguous rows, finite targets, weights finite and > 0, a Scale made for them,
and room for n blocks in every output array.
"""

from libc.stdint cimport int64_t, uint8_t, uint64_t

from staircase_fast._blocks cimport Stack, doubt_of, finish, push, sum_t
from staircase_fast._exact cimport number
from staircase_fast._plan cimport plan
from staircase_fast._select cimport greater, lesser
from staircase_fast._summary cimport Bucket

cdef enum:
    BUCKET_ROWS = 16


def merge(
    const number[::1] targets not None,        # IN  in score order
    const double[::1] weights not None,        # IN  one per target, or empty: all are 1
    const uint8_t[::1] tied not None,          # IN  tied[i]: same score as i - 1; or empty: no two are equal
    object scale not None,                     # IN  exact.Scale
    bint decreasing,
    double lo,
    double hi,
    Py_ssize_t[::1] starts not None,           # OUT first row of each step
    double[::1] values not None,               # OUT
    double[::1] step_weights not None,         # OUT
    uint8_t[::1] known not None,               # work
    uint64_t[::1] words not None,              # work: n * (s_words + w_words)
    uint8_t[::1] buckets not None,             # work: work_size(n) bytes, or empty: look at every row
):
    """Fill the first entries of the outputs with the staircase; return how many steps it has."""
    cdef Stack stack
    cdef const number *y = &targets[0]
    cdef const double *w = &weights[0] if weights.shape[0] else NULL
    cdef const uint8_t *ties = &tied[0] if tied.shape[0] else NULL
    cdef uint8_t *work = &buckets[0] if buckets.shape[0] else NULL
    cdef Py_ssize_t n = targets.shape[0]
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
            push_all(&stack, y, w, ties, n, <int64_t>0, work)
            finish(&stack, y, w, <int64_t>0, n, lo, hi)
        else:
            push_all(&stack, y, w, ties, n, <double>0, work)
            finish(&stack, y, w, <double>0, n, lo, hi)
    return stack.n


def work_size(Py_ssize_t n):
    """Bytes that `merge` of n rows wants for its buckets."""
    return (n // BUCKET_ROWS + 2) * (sizeof(Bucket) + sizeof(Py_ssize_t) + 1)


cdef inline void push_rows(
    Stack *stack, const number *y, const double *weights, const uint8_t *tied, sum_t kind, Py_ssize_t i, Py_ssize_t end
) noexcept nogil:
    """Push the observations in [i, end), each as a block."""
    cdef Py_ssize_t start
    cdef sum_t s, w, weight
    while i < end:
        start = i
        s = 0
        w = 0
        while True:
            weight = <sum_t>weights[i] if weights != NULL else 1
            s += <sum_t>y[i] * weight
            w += weight
            i += 1
            if tied == NULL or i == end or not tied[i]:
                break
        push(stack, y, weights, start, i, s, w, False)


cdef inline void push_all(
    Stack *stack, const number *y, const double *weights, const uint8_t *tied, Py_ssize_t n, sum_t kind, uint8_t *work
) noexcept nogil:
    cdef Py_ssize_t room = n // BUCKET_ROWS + 2
    cdef Bucket *buckets = <Bucket *>work
    cdef Py_ssize_t *begins = <Py_ssize_t *>(work + room * sizeof(Bucket))
    cdef uint8_t *live = <uint8_t *>(begins + room)
    cdef Py_ssize_t n_buckets, b, start
    cdef double s, w
    if work == NULL or not stack.scale.tame:
        push_rows(stack, y, weights, tied, kind, 0, n)
        return
    n_buckets = summarise(y, weights, tied, n, buckets, begins)
    plan(<const Bucket *>buckets, n_buckets, stack.decreasing, n, stack.scale.greatest, stack.starts, stack.s, stack.w, live)
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
                s += buckets[b].s
                w += buckets[b].w
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
