# Rows that arrive in score order, pushed onto a stack of blocks (paper, section V).
#
# Rows with the newest score form one observation.  It waits in the place above the top of the stack, because more rows
# of that score may arrive and change how it merges: after (1, 5), (2, 0) the fit is 2.5 everywhere, and (2, 20) splits
# it again.  It is pushed when a greater score arrives.  To compute the staircase before that, push it onto a copy.
#
# Rows are not kept.  The rows of one call are first merged among themselves, many at a time: every step boundary of all
# rows is also a boundary of theirs.  Each of their blocks is then pushed with its exact sums, so that its rows are not
# needed again.  This costs little more than a batch fit.
#
# Linex has no exact sums.  Its blocks are `Pooled`, stored in place of exact sums, and its rows are pushed one by one.
# (As an `UpdateRule` in Python, the simplest merge function makes `extend` six times as slow.)
#
# Preconditions: n >= 1, ascending scores that are not below the newest one, finite targets, weights finite and > 0, a
# Scale for all rows so far, and room for n + 1 more blocks in every array.

from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.stdlib cimport malloc
from libc.string cimport memcpy, memset

from staircase_fast.arithmetic._exact cimport Scale
from staircase_fast.arithmetic._rounded cimport rounded_sum, rounded_weight
from staircase_fast.arithmetic._row_sums cimport add_rows
from staircase_fast.losses._functionals cimport Linex
from staircase_fast.stack._rows cimport find_ties, push_all, sum_integers
from staircase_fast.stack._stack cimport Stack, finish, push, sum_rows, sum_t, words_of
from staircase_fast.streams._entries cimport convert_sums
from staircase_fast.streams._pooled cimport Pooled, joined, must_merge, rounded_value, single

cdef enum:
    FEW_ROWS = 64             # fewer rows are pushed without summing buckets first

# Targets that are read without conversion: labels, integers that float64 may not hold, and doubles.
ctypedef fused target_t:
    uint8_t
    int64_t
    double

ctypedef struct Blocks:
    Stack stack               # without the newest observation, which is in the place above the top
    double *left              # first and last score of each block
    double *right
    Py_ssize_t n_rows
    Py_ssize_t room           # entries of each array

# Work space to merge some rows among themselves.
ctypedef struct Chunk:
    Stack stack
    uint8_t *tied
    uint8_t *live


cdef inline void add_chunk(
    Blocks *blocks, Chunk *chunk, const double *scores, const target_t *y, const double *weights, Py_ssize_t n,
    sum_t kind
) noexcept nogil:
    """Add as many rows as the chunk has room for, or fewer."""
    cdef Stack *stack = &blocks.stack
    cdef Py_ssize_t first = 0, last = n - 1
    cdef double newest
    if blocks.n_rows:
        newest = blocks.left[stack.n]
        while first < n and scores[first] == newest:
            first += 1
        add_to_newest(blocks, y, weights, 0, first, kind)
        if first == n:
            return
        push_newest(stack, blocks.n_rows, kind)
        blocks.right[stack.n - 1] = newest    # its left is in place already, or that of the block it was merged with
    while last > first and scores[last - 1] == scores[last]:
        last -= 1
    if first < last:
        merge_and_push(blocks, chunk, scores, y, weights, first, last, kind)
    start_newest(blocks, scores[last])
    if sum_t is int64_t:
        (<int64_t *>stack.s)[stack.n] = 0
        (<int64_t *>stack.w)[stack.n] = 0
    else:
        memset(words_of(stack, stack.n), 0, stack.n_words * sizeof(uint64_t))
    add_to_newest(blocks, y, weights, last, n, kind)


cdef inline void start_newest(Blocks *blocks, double score) noexcept nogil:
    """Begin a new observation above the top; -0.0 becomes 0.0."""
    cdef Py_ssize_t place = blocks.stack.n
    blocks.stack.starts[place] = blocks.n_rows
    blocks.left[place] = blocks.right[place] = score + 0.0


cdef inline void add_to_newest(
    Blocks *blocks, const target_t *y, const double *weights, Py_ssize_t start, Py_ssize_t end, sum_t kind
) noexcept nogil:
    """Add the rows [start, end) to the newest observation."""
    cdef Stack *stack = &blocks.stack
    cdef int64_t s, w
    if sum_t is int64_t:
        sum_integers(y, weights, start, end, &s, &w)
        (<int64_t *>stack.s)[stack.n] += s
        (<int64_t *>stack.w)[stack.n] += w
    else:
        add_rows(stack.scale, words_of(stack, stack.n), y, weights, start, end)
    blocks.n_rows += end - start


cdef inline void push_newest(Stack *stack, Py_ssize_t n_rows, sum_t kind) noexcept nogil:
    """Push the newest observation, which ends at row n_rows."""
    cdef const double *no_rows = NULL
    cdef Py_ssize_t start = stack.starts[stack.n]
    cdef uint64_t *sums
    cdef sum_t s, w
    if sum_t is int64_t:
        s = (<int64_t *>stack.s)[stack.n]
        w = (<int64_t *>stack.w)[stack.n]
    else:
        s = w = 0                             # if the scale is not tame, only exact sums are compared
        if stack.scale.tame:
            sums = words_of(stack, stack.n)
            s = rounded_sum(stack.scale, sums)
            w = rounded_weight(stack.scale, sums)
    push(stack, no_rows, NULL, start, n_rows, s, w, True)


cdef inline bint any_tied(const double *scores, Py_ssize_t n) noexcept nogil:
    """Whether neighbours are equal, in a loop that compilers vectorise."""
    cdef int64_t found = 0
    cdef Py_ssize_t i
    for i in range(1, n):
        found |= scores[i] == scores[i - 1]
    return found != 0


cdef inline void merge_and_push(
    Blocks *blocks, Chunk *chunk, const double *scores, const target_t *y, const double *weights, Py_ssize_t first,
    Py_ssize_t last, sum_t kind
) noexcept nogil:
    """Merge the rows [first, last) among themselves and push their blocks; no score continues after `last`."""
    cdef Stack *stack = &blocks.stack
    cdef Stack *own = &chunk.stack
    cdef Py_ssize_t n = last - first, b, start, end, before
    cdef uint8_t *tied = chunk.tied
    cdef uint64_t *sums
    y += first
    scores += first
    if weights != NULL:
        weights += first
    if not (any_tied(scores, n) and find_ties(scores, n, tied)):
        tied = NULL
    own.n = 0
    push_all(own, y, weights, tied, n, kind, NULL if n < FEW_ROWS or not stack.scale.tame else chunk.live, False)
    for b in range(own.n):
        start = own.starts[b]
        end = own.starts[b + 1] if b + 1 < own.n else n
        before = stack.n
        if sum_t is double:
            sums = words_of(stack, before)
            if own.known[b]:
                memcpy(sums, words_of(own, b), stack.n_words * sizeof(uint64_t))
            else:
                sum_rows(stack, y, weights, sums, start, end)
        push(
            stack, y, weights, blocks.n_rows + start, blocks.n_rows + end,
            (<sum_t *>own.s)[b], (<sum_t *>own.w)[b], True
        )
        if stack.n > before:
            blocks.left[before] = scores[start] + 0.0
        blocks.right[stack.n - 1] = scores[end - 1] + 0.0
    blocks.n_rows += n


cdef inline void finish_means(Stack *stack, Py_ssize_t n_rows, double lo, double hi) noexcept nogil:
    """Push the newest observation and turn blocks into steps: s becomes their values, w their weights."""
    cdef const double *no_rows = NULL
    if stack.scale.narrow:
        push_newest(stack, n_rows, <int64_t>0)
        finish(stack, no_rows, NULL, <int64_t>0, n_rows, lo, hi)
    else:
        push_newest(stack, n_rows, <double>0)
        finish(stack, no_rows, NULL, <double>0, n_rows, lo, hi)


cdef inline void rescale(
    Scale old, Scale new, Py_ssize_t n, const uint64_t *words, double *s, double *w, uint64_t *out
) noexcept nogil:
    """Convert the exact sums of n blocks to a scale that is not narrow, with units as fine or finer.

    Sums in doubles are recomputed if they were integers, or were not maintained.
    """
    cdef int n_words = new.s_words + new.w_words, old_words = old.s_words + old.w_words
    cdef uint64_t integers[2]
    cdef Py_ssize_t b
    for b in range(n):
        if old.narrow:                        # one word each
            memcpy(integers, s + b, sizeof(uint64_t))
            memcpy(integers + 1, w + b, sizeof(uint64_t))
            convert_sums(old, integers, new, out)
        else:
            convert_sums(old, words, new, out)
            words += old_words
        if old.narrow or not old.tame:
            s[b] = rounded_sum(new, out) if new.tame else 0.0
            w[b] = rounded_weight(new, out) if new.tame else 0.0
        out += n_words


# A staircase in one block of memory, which is freed as a whole.
ctypedef struct OwnedStairs:
    Py_ssize_t n_steps
    double *left
    double *right
    double *values
    double *weights
    Py_ssize_t *counts


cdef inline OwnedStairs *new_staircase(Py_ssize_t n) noexcept nogil:
    """A staircase with room for n steps, or NULL if there is no memory."""
    cdef size_t size = sizeof(OwnedStairs) + n * (4 * sizeof(double) + sizeof(Py_ssize_t))
    cdef OwnedStairs *stairs = <OwnedStairs *>malloc(size)
    if stairs != NULL:
        stairs.n_steps = n
        stairs.left = <double *>(stairs + 1)
        stairs.right = stairs.left + n
        stairs.values = stairs.right + n
        stairs.weights = stairs.values + n
        stairs.counts = <Py_ssize_t *>(stairs.weights + n)
    return stairs


# Linex

cdef inline void add_linex(
    Blocks *blocks, Linex loss, const double *scores, const target_t *y, const double *weights, Py_ssize_t n
) noexcept nogil:
    """Add rows one by one."""
    cdef Stack *stack = &blocks.stack
    cdef Pooled *pooled = <Pooled *>stack.words
    cdef Pooled row
    cdef double newest
    cdef Py_ssize_t i
    for i in range(n):
        row = single(<double>y[i], 1.0 if weights == NULL else weights[i])
        if blocks.n_rows and scores[i] == blocks.left[stack.n]:
            pooled[stack.n] = joined(loss, pooled[stack.n], row)
        else:
            if blocks.n_rows:
                newest = blocks.left[stack.n]
                push_newest_linex(stack, loss)
                blocks.right[stack.n - 1] = newest
            start_newest(blocks, scores[i])
            pooled[stack.n] = row
        blocks.n_rows += 1


cdef inline void push_newest_linex(Stack *stack, Linex loss) noexcept nogil:
    cdef Pooled *pooled = <Pooled *>stack.words
    cdef Pooled block = pooled[stack.n]
    while stack.n > 0 and must_merge(pooled[stack.n - 1], block, stack.decreasing):
        stack.n -= 1
        block = joined(loss, pooled[stack.n], block)
    pooled[stack.n] = block
    stack.n += 1


cdef inline void finish_linex(Stack *stack, Linex loss) noexcept nogil:
    """The same as `finish_means`; blocks whose values round to the same double become one step."""
    cdef Pooled *pooled = <Pooled *>stack.words
    cdef Py_ssize_t b, n = 0
    push_newest_linex(stack, loss)
    for b in range(stack.n):
        if n and rounded_value(pooled[b].value) == stack.s[n - 1]:
            pooled[n - 1] = joined(loss, pooled[n - 1], pooled[b])
        else:
            pooled[n] = pooled[b]
            stack.starts[n] = stack.starts[b]
            stack.s[n] = rounded_value(pooled[b].value)
            n += 1
        stack.w[n - 1] = rounded_value(pooled[n - 1].weight)
    stack.n = n
