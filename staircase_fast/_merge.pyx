"""The O(n) block-merge stack over observations in score order.

Kernels here assume clean input: n >= 1, finite targets, weights finite and > 0, a Scale made for them, and room for n
blocks in every output array.
"""

from libc.stdint cimport int64_t, uint8_t, uint64_t

from staircase_fast._blocks cimport Stack, add_to_top, close_block, finish, open_block, push_one, settle
from staircase_fast._exact cimport Scale, number


def merge(
    const number[:] targets not None,          # IN  in score order
    const double[:] weights not None,          # IN  one per target, or empty: all are 1
    const uint8_t[:] tied not None,            # IN  tied[i]: same score as i - 1; or empty: no two are equal
    object scale not None,                     # IN  exact.Scale
    double lo,
    double hi,
    Py_ssize_t[::1] starts not None,           # OUT first observation of each step
    double[::1] values not None,               # OUT
    double[::1] step_weights not None,         # OUT
    uint64_t[::1] sums not None,               # work: n * (s_words + w_words)
):
    """Fill the first entries of the outputs with the increasing staircase; return how many steps it has."""
    cdef Stack stack
    stack.scale = Scale(scale.y_unit, scale.w_unit, scale.s_words, scale.w_words, scale.narrow)
    stack.n_words = scale.s_words + scale.w_words
    stack.n = 0
    stack.starts = &starts[0]
    stack.values = &values[0]
    stack.weights = &step_weights[0]
    stack.sums = &sums[0]
    with nogil:
        push_all(&stack, targets, weights, tied)
        finish(&stack, lo, hi)
    return stack.n


cdef inline bint is_double(number y) noexcept nogil:
    """Whether a double holds y as it is."""
    if number is int64_t:
        return -(<int64_t>1 << 53) <= y <= <int64_t>1 << 53
    else:
        return True


cdef inline void push_all(
    Stack *stack, const number[:] targets, const double[:] weights, const uint8_t[:] tied
) noexcept nogil:
    cdef Py_ssize_t n = targets.shape[0], i = 0, end
    cdef bint weighted = weights.shape[0] > 0, ties = tied.shape[0] > 0
    while i < n:
        end = i + 1
        while ties and end < n and tied[end]:
            end += 1
        if end == i + 1 and is_double(targets[i]):
            push_one(stack, i, <double>targets[i], weights[i] if weighted else 1.0)
            i = end
        else:
            open_block(stack, i)
            while i < end:
                add_to_top(stack, targets[i], weights[i] if weighted else 1.0)
                i += 1
            close_block(stack)
        settle(stack)
