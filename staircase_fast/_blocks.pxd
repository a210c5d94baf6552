# The stack of blocks and its push-and-merge (paper, sections IV-B and V).
#
# Blocks lie side by side, oldest first, and their means strictly increase: that is the invariant between two pushes.
# A new block may break it at its left side only, so it is joined with its left neighbour until the invariant holds
# again.  Every join removes one block: n samples, S steps, n - S joins, O(n) in all.  (Section IV-B as printed looks at
# all groups again in each round, which is quadratic on y = 1, 2, .., n-1, -10 n**2; section V's loop is not.)
#
# A block of one observation needs no sums: its mean is its target, its weight its weight, both exact as they are.  Its
# sums are written when it is first joined, so monotone data never touches them.
#
#     weights[b] > 0     one observation: values[b] is its target, sums[b] is not written
#     weights[b] == 0    sums[b] holds; values[b] approximates the mean (not used where the scale is narrow)
#
# Assumed of the caller: arrays with room for every block, weights > 0, finite targets.

from libc.math cimport fabs
from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memcpy, memset

from staircase_fast._exact cimport (
    Scale, add_sample, add_sums, approximate_mean, exact_order, multiply_words, number, rounded_mean, rounded_weight,
)

ctypedef struct Stack:
    Scale scale
    int n_words           # of a block's sums: scale.s_words + scale.w_words
    Py_ssize_t n          # blocks on the stack
    Py_ssize_t *starts    # first observation of each block
    double *values
    double *weights
    uint64_t *sums


cdef inline uint64_t *sums_of(Stack *stack, Py_ssize_t block) noexcept nogil:
    return stack.sums + block * stack.n_words


cdef inline void open_block(Stack *stack, Py_ssize_t start) noexcept nogil:
    """A new, empty block on top; `add_to_top` fills it, `close_block` ends it."""
    stack.starts[stack.n] = start
    stack.weights[stack.n] = 0.0
    memset(sums_of(stack, stack.n), 0, stack.n_words * sizeof(uint64_t))
    stack.n += 1


cdef inline void add_to_top(Stack *stack, number y, double w) noexcept nogil:
    add_sample(stack.scale, sums_of(stack, stack.n - 1), y, w)


cdef inline void close_block(Stack *stack) noexcept nogil:
    if not stack.scale.narrow:
        stack.values[stack.n - 1] = approximate_mean(stack.scale, sums_of(stack, stack.n - 1))


cdef inline void push_one(Stack *stack, Py_ssize_t start, double y, double w) noexcept nogil:
    """A new block of one observation on top; y must be the target itself, not a rounding of it."""
    stack.starts[stack.n] = start
    stack.values[stack.n] = y
    stack.weights[stack.n] = w
    stack.n += 1


cdef inline void write_sums(Stack *stack, Py_ssize_t block) noexcept nogil:
    """Make sure that sums[block] holds."""
    cdef double w = stack.weights[block]
    if w > 0:
        memset(sums_of(stack, block), 0, stack.n_words * sizeof(uint64_t))
        add_sample(stack.scale, sums_of(stack, block), stack.values[block], w)
        stack.weights[block] = 0.0


cdef inline bint reaches(Stack *stack, Py_ssize_t left, Py_ssize_t right) noexcept nogil:
    """Whether mean(left) >= mean(right), decided exactly."""
    cdef double gap, doubt
    cdef uint64_t *a
    cdef uint64_t *b
    if stack.weights[left] > 0 and stack.weights[right] > 0:
        return stack.values[left] >= stack.values[right]
    if not stack.scale.narrow:
        gap = stack.values[left] - stack.values[right]
        # each value is within 2**-50 of its own size, or 2**-1074; infinite or NaN where that overflows: then exactly
        doubt = 3.552713678800501e-15 * (fabs(stack.values[left]) + fabs(stack.values[right])) + 1e-322
        if gap > doubt:
            return True
        if gap < -doubt:
            return False
    write_sums(stack, left)
    write_sums(stack, right)
    a = sums_of(stack, left)
    b = sums_of(stack, right)
    if stack.scale.narrow:
        return narrow_reaches(<int64_t>a[0], a[1], <int64_t>b[0], b[1])
    return exact_order(stack.scale, a, b) >= 0


cdef inline bint narrow_reaches(int64_t s_a, uint64_t w_a, int64_t s_b, uint64_t w_b) noexcept nogil:
    """s_a / w_a >= s_b / w_b by cross products of two words."""
    cdef uint64_t low_a, high_a, low_b, high_b
    if (s_a < 0) != (s_b < 0):
        return s_b < 0
    low_a = multiply_words(<uint64_t>(-s_a if s_a < 0 else s_a), w_b, &high_a)
    low_b = multiply_words(<uint64_t>(-s_b if s_b < 0 else s_b), w_a, &high_b)
    if s_a < 0:
        return high_a < high_b or (high_a == high_b and low_a <= low_b)
    return high_a > high_b or (high_a == high_b and low_a >= low_b)


cdef inline void join_top(Stack *stack) noexcept nogil:
    """The newest block joins its left neighbour (F and G of section IV-B are two additions)."""
    cdef Py_ssize_t left = stack.n - 2
    write_sums(stack, left)
    write_sums(stack, left + 1)
    add_sums(stack.scale, sums_of(stack, left), sums_of(stack, left + 1))
    stack.n -= 1
    close_block(stack)


cdef inline void settle(Stack *stack) noexcept nogil:
    """Restore the invariant after a push."""
    while stack.n > 1 and reaches(stack, stack.n - 2, stack.n - 1):
        join_top(stack)


cdef inline void finish(Stack *stack, double lo, double hi) noexcept nogil:
    """Blocks become steps: values rounded and held within [lo, hi], neighbours of equal value joined, weights rounded.

    The mean of two joined blocks lies between theirs, and rounding is monotone: their common value stays.
    """
    cdef Py_ssize_t block, kept = 0
    cdef double value
    for block in range(stack.n):
        if stack.weights[block] > 0:
            value = stack.values[block] + 0.0            # -0.0 becomes 0.0
        else:
            value = rounded_mean(stack.scale, sums_of(stack, block))
        value = min(max(value, lo), hi)
        if kept and value == stack.values[kept - 1]:
            write_sums(stack, kept - 1)
            write_sums(stack, block)
            add_sums(stack.scale, sums_of(stack, kept - 1), sums_of(stack, block))
            continue
        if kept < block:
            stack.starts[kept] = stack.starts[block]
            stack.weights[kept] = stack.weights[block]
            if stack.weights[block] == 0:
                memcpy(sums_of(stack, kept), sums_of(stack, block), stack.n_words * sizeof(uint64_t))
        stack.values[kept] = value
        kept += 1
    stack.n = kept
    for block in range(kept):
        if stack.weights[block] == 0:
            stack.weights[block] = rounded_weight(stack.scale, sums_of(stack, block))
