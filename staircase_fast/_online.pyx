"""Rows that arrive in score order, and the optimal staircase of all so far (paper, section V).

Blocks lie on a stack as in a batch.  The observation of the newest score lies in the place above the top: more rows of
that score may come, and would change what it was joined with (PAPER: (1, 5), (2, 0) pools to 2.5, and (2, 20) parts it
again).  It is pushed when a greater score arrives.  Who asks for the staircase before that pushes it onto a copy.

Rows are not kept.  Those of a call are merged by themselves, many at a time: where a step of all rows ends, there ends
one of theirs.  Each of their blocks then goes onto the stack with its exact sums, so that its rows are never needed
again; all this costs little more than a batch does.

    size           blocks on the stack, without the newest observation, and rows
    starts         how many rows there are before each block
    s, w           sums as in _blocks.pxd; of the newest observation only where scale.narrow
    words          exact sums, where not
    left, right    the first and the last score of each block

Kernels here assume clean input: n >= 1, scores that never decrease and are at or above the newest one, finite targets,
weights finite and > 0, a Scale made for all rows so far, and room for n + 1 more blocks in every array.
"""

from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.string cimport memcpy, memset

from staircase_fast._blocks cimport Stack, empty_stack, finish, push, sum_rows, sum_t, words_of
from staircase_fast._exact cimport add_rows, unpacked
from staircase_fast._functionals cimport Linex
from staircase_fast._pooled cimport Pooled, joined, reaches, single, whole
from staircase_fast._range cimport BUCKET_ROWS
from staircase_fast._rounded cimport rounded_sum, rounded_weight
from staircase_fast._rows cimport find_ties, push_all, sum_integers

cdef enum:
    CHUNK_ROWS = 1 << 16      # merged by themselves
    FEW_ROWS = 64             # of which each is looked at

MOST_ROWS = CHUNK_ROWS

# What is read as it lies in memory: labels, integers that doubles might not hold, and doubles.
ctypedef fused target_t:
    uint8_t
    int64_t
    double

ctypedef struct Online:
    Stack stack
    double *left
    double *right
    Py_ssize_t n_rows
    Stack chunk
    uint8_t *tied
    uint8_t *live


def work_size(Py_ssize_t n, int n_words):
    """Words that `extend` by n rows wants as work space, where exact sums have `n_words` of them."""
    return n * n_words + (2 * n + n // BUCKET_ROWS) // sizeof(uint64_t) + 1


def extend(
    const double[::1] scores not None,         # IN
    const target_t[::1] targets not None,      # IN
    const double[::1] weights not None,        # IN  or empty: all are 1
    object scale not None,                     # IN  exact.Scale
    bint decreasing,
    Py_ssize_t[::1] size not None,             # IN/OUT
    Py_ssize_t[::1] starts not None,           # IN/OUT
    double[::1] s not None,                    # IN/OUT
    double[::1] w not None,                    # IN/OUT
    double[::1] left not None,                 # IN/OUT
    double[::1] right not None,                # IN/OUT
    uint8_t[::1] known not None,               # IN/OUT all are
    uint64_t[::1] words not None,              # IN/OUT
    Py_ssize_t[::1] own_starts not None,       # work: as many as rows, or MOST_ROWS
    double[:, ::1] own_sums not None,          # work: two of them
    uint64_t[::1] work not None,               # work: work_size of them
    list waiting not None,                     # OUT emptied, in the same call: no signal comes between
):
    """Take all rows."""
    cdef Py_ssize_t n = targets.shape[0], i = 0, end, room = own_starts.shape[0]
    cdef const double *weights_i = NULL
    cdef Online online
    online.stack = empty_stack(unpacked(scale), decreasing, &starts[0], &s[0], &w[0])
    online.stack.known = &known[0]
    online.stack.words = &words[0] if words.shape[0] else NULL
    online.stack.n = size[0]
    online.n_rows = size[1]
    online.left = &left[0]
    online.right = &right[0]
    online.chunk = empty_stack(online.stack.scale, decreasing, &own_starts[0], &own_sums[0, 0], &own_sums[1, 0])
    online.chunk.words = &work[0]
    online.chunk.known = <uint8_t *>&work[0]
    if not online.stack.scale.narrow:
        online.chunk.known = <uint8_t *>&work[room * online.stack.n_words]
    online.tied = online.chunk.known + room
    online.live = online.tied + room
    with nogil:
        while i < n:
            end = min(n, i + room)
            if weights.shape[0]:
                weights_i = &weights[i]
            if online.stack.scale.narrow:
                take(&online, &scores[i], &targets[i], weights_i, end - i, <int64_t>0)
            else:
                take(&online, &scores[i], &targets[i], weights_i, end - i, <double>0)
            i = end
    size[0] = online.stack.n
    size[1] = online.n_rows
    waiting.clear()


def steps(
    object scale not None,                     # IN  exact.Scale
    bint decreasing,
    double lo,
    double hi,
    Py_ssize_t n_rows,
    Py_ssize_t[::1] starts not None,           # IN  of blocks, the newest observation too; OUT of steps
    double[::1] s not None,                    # IN  sums; OUT values
    double[::1] w not None,                    # IN  sums; OUT weights
    uint8_t[::1] known not None,               # IN/OUT all are
    uint64_t[::1] words not None,              # IN/OUT
):
    """Blocks become steps; return how many there are."""
    cdef Stack stack = empty_stack(unpacked(scale), decreasing, &starts[0], &s[0], &w[0])
    cdef const double *no_rows = NULL
    stack.known = &known[0]
    stack.words = &words[0] if words.shape[0] else NULL
    stack.n = starts.shape[0] - 1
    with nogil:
        if stack.scale.narrow:
            push_newest(&stack, n_rows, <int64_t>0)
            finish(&stack, no_rows, NULL, <int64_t>0, n_rows, lo, hi)
        else:
            push_newest(&stack, n_rows, <double>0)
            finish(&stack, no_rows, NULL, <double>0, n_rows, lo, hi)
    return stack.n


cdef void push_newest(Stack *stack, Py_ssize_t n_rows, sum_t kind) noexcept nogil:
    """Push the observation above the top, which ends at row n_rows."""
    cdef const double *no_rows = NULL
    cdef Py_ssize_t start = stack.starts[stack.n]
    cdef uint64_t *sums
    cdef sum_t s, w
    if sum_t is int64_t:
        s = (<int64_t *>stack.s)[stack.n]
        w = (<int64_t *>stack.w)[stack.n]
    else:
        s = w = 0                             # in doubt, nobody looks at them; and doubles might not hold them
        if stack.scale.tame:
            sums = words_of(stack, stack.n)
            s = rounded_sum(stack.scale, sums)
            w = rounded_weight(stack.scale, sums)
    push(stack, no_rows, NULL, start, n_rows, s, w, True)


cdef void take(
    Online *online, const double *scores, const target_t *y, const double *weights, Py_ssize_t n, sum_t kind
) noexcept nogil:
    """Take up to CHUNK_ROWS rows."""
    cdef Stack *stack = &online.stack
    cdef Py_ssize_t first = 0, last = n - 1, place = stack.n
    cdef double newest
    if online.n_rows:
        newest = online.left[place]
        while first < n and scores[first] == newest:
            first += 1
        add_to_newest(online, y, weights, 0, first, kind)
        if first == n:
            return
        push_newest(stack, online.n_rows, kind)
        online.right[stack.n - 1] = newest    # its left is in its place already, or that of what it was joined with
    while last > first and scores[last - 1] == scores[last]:
        last -= 1
    if first < last:
        take_whole(online, scores, y, weights, first, last, kind)
    place = stack.n
    stack.starts[place] = online.n_rows
    online.left[place] = online.right[place] = scores[last] + 0.0        # -0.0 becomes the 0.0 it equals
    if sum_t is int64_t:
        (<int64_t *>stack.s)[place] = 0
        (<int64_t *>stack.w)[place] = 0
    else:
        memset(words_of(stack, place), 0, stack.n_words * sizeof(uint64_t))
    add_to_newest(online, y, weights, last, n, kind)


cdef void add_to_newest(
    Online *online, const target_t *y, const double *weights, Py_ssize_t start, Py_ssize_t end, sum_t kind
) noexcept nogil:
    """Add the rows [start, end) to the newest observation."""
    cdef Stack *stack = &online.stack
    cdef int64_t s, w
    if sum_t is int64_t:
        sum_integers(y, weights, start, end, &s, &w)
        (<int64_t *>stack.s)[stack.n] += s
        (<int64_t *>stack.w)[stack.n] += w
    else:
        add_rows(stack.scale, words_of(stack, stack.n), y, weights, start, end)
    online.n_rows += end - start


cdef void take_whole(
    Online *online, const double *scores, const target_t *y, const double *weights, Py_ssize_t first, Py_ssize_t last,
    sum_t kind,
) noexcept nogil:
    """Merge the rows [first, last), all of their scores, by themselves, and push their blocks."""
    cdef Stack *stack = &online.stack
    cdef Stack *chunk = &online.chunk
    cdef Py_ssize_t n = last - first, b, start, end, before
    cdef uint8_t *tied = online.tied
    cdef uint64_t *sums
    y += first
    scores += first
    if weights != NULL:
        weights += first
    if not find_ties(scores, n, tied):
        tied = NULL
    chunk.n = 0
    push_all(
        chunk, y, weights, tied, n, kind, NULL if n < FEW_ROWS or not stack.scale.tame else online.live, False
    )
    for b in range(chunk.n):
        start = chunk.starts[b]
        end = chunk.starts[b + 1] if b + 1 < chunk.n else n
        before = stack.n
        if sum_t is double:
            sums = words_of(stack, before)
            if chunk.known[b]:
                memcpy(sums, words_of(chunk, b), stack.n_words * sizeof(uint64_t))
            else:
                sum_rows(stack, y, weights, sums, start, end)
        push(
            stack, y, weights, online.n_rows + start, online.n_rows + end,
            (<sum_t *>chunk.s)[b], (<sum_t *>chunk.w)[b], True
        )
        if stack.n > before:
            online.left[before] = scores[start] + 0.0
        online.right[stack.n - 1] = scores[end - 1] + 0.0
    online.n_rows += n


# Linex: no sums say it all, and rows are taken one by one.

def extend_linex(
    const double[::1] scores not None,         # IN
    const double[::1] targets not None,        # IN
    const double[::1] weights not None,        # IN  or empty: all are 1
    double shape,
    bint decreasing,
    Py_ssize_t[::1] size not None,             # IN/OUT
    Py_ssize_t[::1] starts not None,           # IN/OUT
    double[:, ::1] blocks not None,            # IN/OUT Pooled
    double[::1] left not None,                 # IN/OUT
    double[::1] right not None,                # IN/OUT
    list waiting not None,                     # OUT emptied
):
    """Take all rows."""
    cdef Py_ssize_t i, place = size[0], n_rows = size[1]
    cdef Linex loss = Linex(shape)
    cdef Pooled *stack = <Pooled *>&blocks[0, 0]
    cdef Pooled row
    cdef double newest
    with nogil:
        for i in range(targets.shape[0]):
            row = single(targets[i], weights[i] if weights.shape[0] else 1.0)
            if n_rows and scores[i] == left[place]:
                stack[place] = joined(loss, stack[place], row)
            else:
                if n_rows:
                    newest = left[place]
                    place = push_pooled(loss, stack, place, decreasing)
                    right[place - 1] = newest
                starts[place] = n_rows
                left[place] = right[place] = scores[i] + 0.0
                stack[place] = row
            n_rows += 1
    size[0] = place
    size[1] = n_rows
    waiting.clear()


def linex_steps(
    double shape,
    bint decreasing,
    Py_ssize_t[::1] starts not None,           # IN  of blocks, the newest observation too; OUT of steps
    double[:, ::1] blocks not None,            # IN  Pooled; used up
    double[::1] values not None,               # OUT
    double[::1] weights not None,              # OUT
):
    """Blocks become steps; return how many there are."""
    cdef Linex loss = Linex(shape)
    cdef Pooled *stack = <Pooled *>&blocks[0, 0]
    cdef Py_ssize_t n, b, kept = 0
    with nogil:
        n = push_pooled(loss, stack, starts.shape[0] - 1, decreasing)
        for b in range(n):
            # two values may be one when they are rounded
            if kept and whole(stack[b].value) == values[kept - 1]:
                stack[kept - 1] = joined(loss, stack[kept - 1], stack[b])
            else:
                stack[kept] = stack[b]
                starts[kept] = starts[b]
                values[kept] = whole(stack[b].value)
                kept += 1
            weights[kept - 1] = whole(stack[kept - 1].weight)
    return kept


cdef inline Py_ssize_t push_pooled(Linex loss, Pooled *stack, Py_ssize_t place, bint decreasing) noexcept nogil:
    """Push the block above so many others; return how many there are then."""
    cdef Pooled block = stack[place]
    while place > 0 and reaches(stack[place - 1], block, decreasing):
        place -= 1
        block = joined(loss, stack[place], block)
    stack[place] = block
    return place + 1
