# The stack of blocks and its push-and-merge (paper, sections IV-B and V).
#
# Blocks lie side by side, oldest first, and their means strictly increase: that is the invariant between two pushes.
# A new block may break it at its left side only, so it is joined with its left neighbour until the invariant holds
# again.  Every join removes one block: n samples, S steps, n - S joins, O(n) in all.  (Section IV-B as printed looks at
# all groups again in each round, which is quadratic on y = 1, 2, .., n-1, -10 n**2; section V's loop is not.)
#
# Decisions are exact, at the price of floats.  Sums s = sum(w*y) and w = sum(w) are kept
#     as int64    where targets and weights are small integers (scale.narrow): exact as they are;
#     as double   elsewhere, rounded, with a known bound on the error of s_a*w_b - s_b*w_a.  Where that bound leaves a
#                 doubt, both blocks are summed in exact integers (_exact.pxd), and such a block keeps its exact sums
#                 from then on: every row is summed exactly at most once, and for most data none is before the end.
#
# Assumed of the caller: arrays with room for every block, weights > 0, finite targets, rows contiguous.

from libc.math cimport INFINITY, NAN
from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.string cimport memcpy, memset

from staircase_fast.arithmetic._exact cimport MAX_WORDS, Scale, add_rows, add_sums, exact_order, multiply_words
from staircase_fast.arithmetic._rounded cimport quick_mean, rounded, rounded_mean, rounded_weight
from staircase_fast.arithmetic._types cimport number

cdef enum:
    FEW_ROWS = 64         # of which doubles find the mean

# What sums are held in while they can still be joined.
ctypedef fused sum_t:
    int64_t
    double

ctypedef struct Stack:
    Scale scale
    bint decreasing       # means strictly decrease instead
    double doubt          # with c rows in two blocks, s_a*w_b - s_b*w_a is off by less than (c + 8) * doubt * w_a * w_b
    int n_words           # of a block's exact sums
    Py_ssize_t n          # blocks on the stack
    Py_ssize_t *starts    # first row of each block
    double *s             # sums; int64_t where scale.narrow
    double *w
    uint8_t *known        # whether the block's exact sums hold; not used where scale.narrow
    uint64_t *words       # exact sums


cdef inline double doubt_of(Scale scale) noexcept nogil:
    """Of c rows, each term of a sum carries at most c + 1 roundings of 2**-53 of a size of at most `greatest` times its
    weight, the weights c, the two products and their difference 4 in all: (2c + 6) * 2**-53, doubled here for good
    measure.  Far from 1, products may leave the range of doubles, so nothing is certain there.
    """
    return scale.greatest * 4.440892098500626e-16 if scale.tame else INFINITY      # 2**-51


cdef inline Stack empty_stack(
    Scale scale, bint decreasing, Py_ssize_t *starts, double *s, double *w
) noexcept nogil:
    """A stack in these arrays; `known` and `words` are left to the caller."""
    cdef Stack stack
    stack.scale = scale
    stack.decreasing = decreasing
    stack.doubt = doubt_of(scale)
    stack.n_words = scale.s_words + scale.w_words
    stack.n = 0
    stack.starts = starts
    stack.s = s
    stack.w = w
    stack.known = NULL
    stack.words = NULL
    return stack


cdef inline uint64_t *words_of(Stack *stack, Py_ssize_t block) noexcept nogil:
    return stack.words + block * stack.n_words


cdef inline bint narrow_reaches(int64_t s_a, int64_t w_a, int64_t s_b, int64_t w_b) noexcept nogil:
    """s_a / w_a >= s_b / w_b, by cross products of two words."""
    cdef uint64_t low_a, high_a, low_b, high_b
    if (s_a < 0) != (s_b < 0):
        return s_b < 0
    if s_a < 0:
        s_a, s_b, w_a, w_b = -s_b, -s_a, w_b, w_a
    low_a = multiply_words(<uint64_t>s_a, <uint64_t>w_b, &high_a)
    low_b = multiply_words(<uint64_t>s_b, <uint64_t>w_a, &high_b)
    return high_a > high_b or (high_a == high_b and low_a >= low_b)


cdef inline void sum_rows(
    Stack *stack, const number *y, const double *weights, uint64_t *sums, Py_ssize_t start, Py_ssize_t end
) noexcept nogil:
    """Sum the rows [start, end) exactly."""
    memset(sums, 0, stack.n_words * sizeof(uint64_t))
    add_rows(stack.scale, sums, y, weights, start, end)


cdef inline void know(
    Stack *stack, const number *y, const double *weights, Py_ssize_t block, Py_ssize_t start, Py_ssize_t end
) noexcept nogil:
    """Make the exact sums of the rows [start, end) those of `block`."""
    sum_rows(stack, y, weights, words_of(stack, block), start, end)
    stack.known[block] = True


cdef inline bint exactly_reaches(
    Stack *stack, const number *y, const double *weights, Py_ssize_t top, Py_ssize_t start, Py_ssize_t end, bint *known
) noexcept nogil:
    """Whether the block on top reaches [start, end), whose exact sums belong in the place above it."""
    cdef Py_ssize_t top_start = stack.starts[top]
    cdef int order
    if start - top_start == 1 and end - start == 1 and not known[0] and not stack.known[top]:
        order = (y[top_start] > y[start]) - (y[top_start] < y[start])
    else:
        if not stack.known[top]:
            know(stack, y, weights, top, top_start, start)
        if not known[0]:
            know(stack, y, weights, top + 1, start, end)
            known[0] = True
        order = exact_order(stack.scale, words_of(stack, top), words_of(stack, top + 1))
    return order <= 0 if stack.decreasing else order >= 0


cdef inline void push(
    Stack *stack,
    const number *y,
    const double *weights,
    Py_ssize_t start,
    Py_ssize_t end,
    sum_t s,
    sum_t w,
    bint known,
) noexcept nogil:
    """Put the rows [start, end) on top as one block, joined with every block that reaches it.

    Where `known`, its exact sums are in the place above the top already, and the rows are not looked at.
    """
    cdef Py_ssize_t top = stack.n - 1
    cdef sum_t *ss = <sum_t *>stack.s
    cdef sum_t *ws = <sum_t *>stack.w
    cdef double gap, doubt
    while top >= 0:
        if sum_t is int64_t:
            if stack.decreasing:
                if not narrow_reaches(s, w, ss[top], ws[top]):
                    break
            elif not narrow_reaches(ss[top], ws[top], s, w):
                break
        else:
            gap = ss[top] * w - s * ws[top]
            if stack.decreasing:
                gap = -gap
            doubt = (<double>(end - stack.starts[top]) + 8.0) * stack.doubt * (w * ws[top])
            if gap < -doubt:
                break
            if not gap > doubt and not exactly_reaches(stack, y, weights, top, start, end, &known):
                break
            if known or stack.known[top]:
                if not stack.known[top]:
                    know(stack, y, weights, top, stack.starts[top], start)
                if not known:
                    know(stack, y, weights, top + 1, start, end)
                    known = True
                add_sums(stack.scale, words_of(stack, top), words_of(stack, top + 1))
        start = stack.starts[top]
        s += ss[top]
        w += ws[top]
        top -= 1
    top += 1
    stack.starts[top] = start
    ss[top] = s
    ws[top] = w
    if sum_t is double:
        stack.known[top] = known
    stack.n = top + 1


cdef inline void push_rows(
    Stack *stack, const number *y, const double *weights, const uint8_t *tied, sum_t kind, Py_ssize_t i, Py_ssize_t end
) noexcept nogil:
    """Push the observations in [i, end), each as a block; no row stands for many here.

    Most need no more than floats: all is clear even if every row so far were in the two blocks that are compared.  What
    is left is for `push`.
    """
    cdef Py_ssize_t start, top = stack.n - 1
    cdef Py_ssize_t *starts = stack.starts
    cdef sum_t *ss = <sum_t *>stack.s
    cdef sum_t *ws = <sum_t *>stack.w
    cdef uint8_t *known = stack.known
    cdef bint decreasing = stack.decreasing
    cdef sum_t s, w, weight
    cdef double gap = 0.0, clear = 0.0, doubt = (<double>end + 8.0) * stack.doubt
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
        if sum_t is double:
            while top >= 0:
                gap = ss[top] * w - s * ws[top]
                if decreasing:
                    gap = -gap
                clear = doubt * (w * ws[top])
                if known[top] or not gap > clear:
                    break
                start = starts[top]
                s += ss[top]
                w += ws[top]
                top -= 1
            if top < 0 or gap < -clear:
                top += 1
                starts[top] = start
                ss[top] = s
                ws[top] = w
                known[top] = False
                # a row beyond the row before it, which is a block of its own: no sums are needed to tell
                while (
                    tied == NULL and start == i - 1 and i < end and (y[i] < y[start] if decreasing else y[i] > y[start])
                ):
                    start = i
                    w = <sum_t>weights[i] if weights != NULL else 1
                    top += 1
                    starts[top] = i
                    ss[top] = <sum_t>y[i] * w
                    ws[top] = w
                    known[top] = False
                    i += 1
                continue
            stack.n = top + 1
        push(stack, y, weights, start, i, s, w, False)
        top = stack.n - 1
    stack.n = top + 1


cdef inline double narrow_mean(int64_t s, int64_t w) noexcept nogil:
    """s/w rounded to nearest; zero is +0.0."""
    cdef uint64_t above = <uint64_t>(-s if s < 0 else s), below = <uint64_t>w
    cdef double mean
    if above <= <uint64_t>1 << 53 and below <= <uint64_t>1 << 53:
        mean = <double>above / <double>below             # both exact: one rounding
    else:
        mean = rounded(&above, 1, &below, 1, 0)
    return 0.0 - mean if s < 0 else mean


cdef inline void finish(
    Stack *stack, const number *y, const double *weights, sum_t kind, Py_ssize_t n_rows, double lo, double hi
) noexcept nogil:
    """Blocks become steps: s[b] the value, rounded and held within [lo, hi], w[b] the weight, rounded.

    Neighbours of equal value are joined.  The mean of the two lies between theirs, and rounding is monotone: their
    common value stays.
    """
    cdef Py_ssize_t block, kept = 0, start, end
    cdef sum_t *ss = <sum_t *>stack.s
    cdef sum_t *ws = <sum_t *>stack.w
    cdef uint64_t scratch[MAX_WORDS]
    cdef uint64_t *sums = NULL
    cdef double value, weight = 0.0
    cdef bint plain = weights == NULL and stack.scale.cut != 0 and (number is float or number is double)
    for block in range(stack.n):
        start = stack.starts[block]
        end = stack.starts[block + 1] if block + 1 < stack.n else n_rows
        if sum_t is int64_t:
            value = narrow_mean(ss[block], ws[block])
        elif end - start == 1 and not stack.known[block]:
            value = <double>y[start] + 0.0               # -0.0 becomes 0.0
            weight = 1.0 if weights == NULL else weights[start]
        else:
            value = NAN
            if plain and end - start <= FEW_ROWS and not stack.known[block]:
                value = quick_mean(y + start, end - start, stack.scale.cut)
                weight = <double>(end - start)
            if value != value:
                # sums that were not needed so far are not kept either: fresh memory is dear
                sums = words_of(stack, block)
                if not stack.known[block]:
                    sums = scratch
                    sum_rows(stack, y, weights, sums, start, end)
                value = rounded_mean(stack.scale, sums)
                weight = rounded_weight(stack.scale, sums)
        value = min(max(value, lo), hi)
        if kept and value == stack.s[kept - 1]:
            if sum_t is int64_t:
                ws[kept - 1] += ws[block]
            else:
                if not stack.known[kept - 1]:
                    know(stack, y, weights, kept - 1, stack.starts[kept - 1], start)
                if not stack.known[block]:
                    know(stack, y, weights, block, start, end)
                add_sums(stack.scale, words_of(stack, kept - 1), words_of(stack, block))
                stack.w[kept - 1] = rounded_weight(stack.scale, words_of(stack, kept - 1))
            continue
        if sum_t is int64_t:
            ws[kept] = ws[block]
        else:
            stack.w[kept] = weight
            stack.known[kept] = stack.known[block]
            if kept < block and stack.known[block]:
                memcpy(words_of(stack, kept), words_of(stack, block), stack.n_words * sizeof(uint64_t))
        stack.starts[kept] = start
        stack.s[kept] = value
        kept += 1
    stack.n = kept
    if sum_t is int64_t:
        for block in range(kept):
            stack.w[block] = <double>ws[block]
