# The block-merge stack (paper, sections IV-B and V).
#
# Rows arrive in score order.  A *block* is a range of consecutive rows with one fitted value, their weighted mean:
#
#     mean = s / w,    s = sum(weight * target),    w = sum(weight)
#
# Invariant before and after each push: the means on the stack strictly increase from the first block to the top one
# (strictly decrease if `decreasing`).  A new block can violate this only against the top, so it is merged with the top
# block while mean(top) >= mean(new).  Pushing the targets 1, 4, 2, 3 gives the stacks
#
#     1    1 | 4    1 | 4 2  (mean 3)    1 | 4 2 3  (3 >= 3: equal means merge)
#
# Each merge removes one block, so n rows and S steps take n - S merges: O(n) in all.
#
# Deviation from the paper: section IV-B compares all neighbouring groups in each round.  On 1, 2, .., n - 1, -10 n**2
# each round merges a single pair: O(n**2).  We use the loop of section V for batches, too.
#
# Comparisons are exact but usually need only floating-point work.  mean(a) >= mean(b) if s_a*w_b - s_b*w_a >= 0:
#
#     int64    sums of small integers (scale.narrow) are exact (`is_no_less`)
#     double   other sums are rounded, and the difference has an error bound (`error_bound`).  If that leaves the sign
#              open, both blocks are summed exactly (`must_merge_exact`) and keep these sums (`known`).  A merge with
#              a block that has no exact sums drops them.  Once `spare` rows have been summed exactly, such a merge sums
#              the other block exactly instead, so from then on each row is summed at most once.
#
# Plain doubles give 0.3, 0.2, 0.1, 0.2 two steps, not one: 0.3 + 0.2 + 0.1 is 0.6, but 3 * 0.2 is 0.6000000000000001.
#
# Preconditions: arrays with room for every block, weights > 0, finite targets, contiguous rows.

from libc.math cimport INFINITY, NAN
from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.string cimport memcpy, memset

from staircase_fast.arithmetic._exact cimport MAX_WORDS, Scale, add_sums, exact_order, multiply_words
from staircase_fast.arithmetic._means cimport few_rows, mean_of_few, quick_mean
from staircase_fast.arithmetic._rounded cimport narrow_mean, rounded_mean, rounded_sum, rounded_weight
from staircase_fast.arithmetic._row_sums cimport add_rows
from staircase_fast.arithmetic._simd cimport has_avx2
from staircase_fast.arithmetic._types cimport number

# The type of s and w until `finish`: int64_t if scale.narrow, otherwise double.
ctypedef fused sum_t:
    int64_t
    double

ctypedef struct Stack:
    Scale scale
    bint decreasing
    double error_per_row  # see `error_bound`
    int n_words           # words of a block's exact sums
    Py_ssize_t spare      # rows that may be summed exactly before exact sums must be kept
    Py_ssize_t n          # blocks on the stack
    Py_ssize_t *starts    # first row of each block
    double *s             # sums, as sum_t; after `finish`, values
    double *w             # sums of weights, as sum_t; after `finish`, rounded
    uint8_t *known        # whether the block's exact sums are in `words`; not used if scale.narrow
    uint64_t *words       # exact sums, n_words for each block


cdef inline Stack empty_stack(Scale scale, bint decreasing, Py_ssize_t *starts, double *s, double *w) noexcept nogil:
    """A stack in these arrays; the caller sets `known`, `words`, and `spare` if the rows of all blocks are at hand."""
    # Let c be the number of rows of both blocks together.  The factors of s_a*w_b have at most c + 1 roundings, and so
    # have those of s_b*w_a.  The two products and their difference add at most 4.  One rounding is at most
    # 2**-53 * greatest * w_a * w_b, so the sum is at most 2c + 6 of these; the bound is doubled to be safe.
    # If not scale.tame, products may overflow or underflow, so comparisons of doubles are not used.
    cdef double error_per_row = scale.greatest * 4.440892098500626e-16 if scale.tame else INFINITY      # 2**-51
    return Stack(scale, decreasing, error_per_row, scale.s_words + scale.w_words, 0, 0, starts, s, w, NULL, NULL)


cdef inline double error_bound(const Stack *stack, Py_ssize_t n_rows) noexcept nogil:
    """For blocks with at most n_rows rows together, s_a*w_b - s_b*w_a has an error below error_bound * w_a * w_b."""
    return (<double>n_rows + 8.0) * stack.error_per_row


cdef inline uint64_t *words_of(Stack *stack, Py_ssize_t block) noexcept nogil:
    return stack.words + block * stack.n_words


cdef inline void sum_rows(
    Stack *stack, const number *y, const double *weights, uint64_t *sums, Py_ssize_t start, Py_ssize_t end
) noexcept nogil:
    """Set `sums` to the exact sums of the rows [start, end)."""
    memset(sums, 0, stack.n_words * sizeof(uint64_t))
    add_rows(stack.scale, sums, y, weights, start, end)


cdef inline void compute_exact_sums(
    Stack *stack, const number *y, const double *weights, Py_ssize_t block, Py_ssize_t start, Py_ssize_t end
) noexcept nogil:
    """Store the exact sums of `block`, which has the rows [start, end), unless they are known."""
    if not stack.known[block]:
        sum_rows(stack, y, weights, words_of(stack, block), start, end)
        stack.known[block] = True
        stack.spare -= end - start


cdef inline bint is_no_less(Scale scale, int64_t s_a, int64_t w_a, int64_t s_b, int64_t w_b) noexcept nogil:
    """Whether s_a / w_a >= s_b / w_b, by exact products."""
    cdef uint64_t low_a, high_a, low_b, high_b
    if scale.small:
        return s_a * w_b >= s_b * w_a
    if (s_a < 0) != (s_b < 0):
        return s_b < 0
    if s_a < 0:
        s_a, s_b, w_a, w_b = -s_b, -s_a, w_b, w_a
    low_a = multiply_words(<uint64_t>s_a, <uint64_t>w_b, &high_a)
    low_b = multiply_words(<uint64_t>s_b, <uint64_t>w_a, &high_b)
    return high_a > high_b or (high_a == high_b and low_a >= low_b)


cdef inline bint must_merge_exact(
    Stack *stack, const number *y, const double *weights, Py_ssize_t top, Py_ssize_t start, Py_ssize_t end
) noexcept nogil:
    """Whether the top block must be merged with block top + 1, the rows [start, end)."""
    cdef Py_ssize_t top_start = stack.starts[top]
    cdef int order
    if start - top_start == 1 and end - start == 1 and not (stack.known[top] or stack.known[top + 1]):
        order = (y[top_start] > y[start]) - (y[top_start] < y[start])
    else:
        compute_exact_sums(stack, y, weights, top, top_start, start)
        compute_exact_sums(stack, y, weights, top + 1, start, end)
        order = exact_order(stack.scale, words_of(stack, top), words_of(stack, top + 1))
    return order <= 0 if stack.decreasing else order >= 0


cdef inline void push(
    Stack *stack, const number *y, const double *weights, Py_ssize_t start, Py_ssize_t end, sum_t s, sum_t w, bint known
) noexcept nogil:
    """Push the rows [start, end) as one block; if `known`, `words` already has its exact sums at index n."""
    cdef Py_ssize_t top = stack.n - 1
    cdef sum_t *ss = <sum_t *>stack.s
    cdef sum_t *ws = <sum_t *>stack.w
    cdef double difference, error
    if sum_t is double:
        stack.known[top + 1] = known
    while top >= 0:
        if sum_t is int64_t:
            if stack.decreasing:
                if not is_no_less(stack.scale, s, w, ss[top], ws[top]):
                    break
            elif not is_no_less(stack.scale, ss[top], ws[top], s, w):
                break
        else:
            difference = ss[top] * w - s * ws[top]
            if stack.decreasing:
                difference = -difference
            error = error_bound(stack, end - stack.starts[top]) * (w * ws[top])
            if difference < -error:
                break
            if not difference > error and not must_merge_exact(stack, y, weights, top, start, end):
                break
            if stack.spare > 0 and stack.known[top] != stack.known[top + 1]:
                stack.known[top] = False
            elif stack.known[top] or stack.known[top + 1]:
                compute_exact_sums(stack, y, weights, top, stack.starts[top], start)
                compute_exact_sums(stack, y, weights, top + 1, start, end)
                add_sums(stack.scale, words_of(stack, top), words_of(stack, top + 1))
        start = stack.starts[top]
        s += ss[top]
        w += ws[top]
        top -= 1
    top += 1
    stack.starts[top] = start
    ss[top] = s
    ws[top] = w
    stack.n = top + 1


cdef inline void push_sums(
    Stack *stack, const number *y, const double *weights, Py_ssize_t i, const uint64_t *sums, sum_t kind
) noexcept nogil:
    """Push row i, which stands for the rows that have these exact sums.  `kind` only selects sum_t."""
    if sum_t is int64_t:
        push(stack, y, weights, i, i + 1, <int64_t>sums[0], <int64_t>sums[1], True)
    else:
        memcpy(words_of(stack, stack.n), sums, stack.n_words * sizeof(uint64_t))
        # if not tame, the stack uses exact sums only, and the rounded sum may be out of range
        push(
            stack, y, weights, i, i + 1, rounded_sum(stack.scale, sums) if stack.scale.tame else 0.0,
            rounded_weight(stack.scale, sums), True
        )


cdef inline double exact_mean(
    Stack *stack, const number *y, const double *weights, Py_ssize_t block, Py_ssize_t start, Py_ssize_t end,
    double *weight
) noexcept nogil:
    """The mean of a block from its exact sums, rounded once; `weight` is set to its weight, rounded once."""
    cdef uint64_t scratch[MAX_WORDS]              # touching a page of `words` for the first time would be slow
    cdef uint64_t *sums = scratch
    if stack.known[block]:
        sums = words_of(stack, block)
    else:
        sum_rows(stack, y, weights, sums, start, end)
    weight[0] = rounded_weight(stack.scale, sums)
    return rounded_mean(stack.scale, sums)


cdef inline void finish(
    Stack *stack, const number *y, const double *weights, sum_t kind, Py_ssize_t n_rows, double lo, double hi
) noexcept nogil:
    """Turn blocks into steps: s[b] becomes the value, rounded and clipped to [lo, hi], and w[b] the rounded weight.

    Neighbours whose values are equal after that are merged.  Rounding is monotone and their common mean lies between
    both means, so it rounds to the same value.
    """
    cdef Py_ssize_t block, n_steps = 0, start, end
    cdef sum_t *ws = <sum_t *>stack.w
    cdef double value, weight = 0.0
    # a double may not represent an integer of 2**53 or more
    cdef bint representable = number is float or number is double or stack.scale.greatest < 9007199254740992.0
    cdef bint quick = stack.scale.tame and representable
    cdef bint vectors = has_avx2()
    cdef Py_ssize_t few = few_rows(&stack.scale) if quick and weights == NULL else 0
    for block in range(stack.n):
        start = stack.starts[block]
        end = stack.starts[block + 1] if block + 1 < stack.n else n_rows
        if sum_t is int64_t:
            value = narrow_mean((<sum_t *>stack.s)[block], ws[block])
        elif end - start == 1 and not stack.known[block]:
            value = <double>y[start] + 0.0               # -0.0 becomes 0.0
            weight = 1.0 if weights == NULL else weights[start]
        else:
            value = NAN
            if quick and not stack.known[block]:
                weight = <double>(end - start)
                value = mean_of_few(y + start, end - start) if end - start <= few else quick_mean(
                    &stack.scale, y + start, NULL if weights == NULL else weights + start, end - start, vectors, &weight
                )
            if value != value:
                value = exact_mean(stack, y, weights, block, start, end, &weight)
        value = min(max(value, lo), hi)
        if n_steps and value == stack.s[n_steps - 1]:
            if sum_t is int64_t:
                ws[n_steps - 1] += ws[block]
            else:
                compute_exact_sums(stack, y, weights, n_steps - 1, stack.starts[n_steps - 1], start)
                compute_exact_sums(stack, y, weights, block, start, end)
                add_sums(stack.scale, words_of(stack, n_steps - 1), words_of(stack, block))
                stack.w[n_steps - 1] = rounded_weight(stack.scale, words_of(stack, n_steps - 1))
            continue
        if sum_t is int64_t:
            ws[n_steps] = ws[block]
        else:
            stack.w[n_steps] = weight
            stack.known[n_steps] = stack.known[block]
            if n_steps < block and stack.known[block]:
                memcpy(words_of(stack, n_steps), words_of(stack, block), stack.n_words * sizeof(uint64_t))
        stack.starts[n_steps] = start
        stack.s[n_steps] = value
        n_steps += 1
    stack.n = n_steps
    if sum_t is int64_t:
        for block in range(n_steps):
            stack.w[block] = <double>ws[block]
