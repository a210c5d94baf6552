# Rows that arrive in score order, onto the stack (paper, section V).
#
# Blocks lie on a stack as in a batch.  The observation of the newest score lies in the place above the top: more rows
# of that score may come, and would change what it was joined with (PAPER: (1, 5), (2, 0) pools to 2.5, and (2, 20)
# parts it again).  It is pushed when a greater score arrives.  Who asks for the staircase before that pushes it onto a
# copy.
#
# Rows are not kept.  Those of a call are merged by themselves, many at a time: where a step of all rows ends, there
# ends one of theirs.  Each of their blocks then goes onto the stack with its exact sums, so that its rows are never
# needed again; all this costs little more than a batch does.
#
# Assumed of the caller: n >= 1, scores that never decrease and are at or above the newest one, finite targets, weights
# finite and > 0, a Scale made for all rows so far, and room for n + 1 more blocks in every array.

from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.string cimport memcpy, memset

from staircase_fast.arithmetic._exact cimport Scale, add_rows
from staircase_fast.arithmetic._rounded cimport rounded_sum, rounded_weight
from staircase_fast.stack._rows cimport find_ties, place_work, push_all, sum_integers
from staircase_fast.stack._stack cimport Stack, empty_stack, finish, push, sum_rows, sum_t, words_of

cdef enum:
    CHUNK_ROWS = 1 << 16      # merged by themselves
    FEW_ROWS = 64             # of which each is looked at

# What is read as it lies in memory: labels, integers that doubles might not hold, and doubles.
ctypedef fused target_t:
    uint8_t
    int64_t
    double

ctypedef struct Arrived:
    Stack stack               # without the newest observation
    double *left              # the first and the last score of each block
    double *right
    Py_ssize_t n_rows
    Stack chunk               # rows that are merged by themselves
    uint8_t *tied
    uint8_t *live


cdef inline void place_chunk(
    Arrived *arrived, Py_ssize_t *starts, double *s, double *w, uint64_t *work, Py_ssize_t room
) noexcept nogil:
    """Work space for so many rows at a time: work_words(room, words of exact sums), as in _rows.pxd."""
    arrived.chunk = empty_stack(arrived.stack.scale, arrived.stack.decreasing, starts, s, w)
    arrived.tied = place_work(&arrived.chunk, work, room)
    arrived.live = arrived.tied + room


cdef inline void take_all(
    Arrived *arrived, const double *scores, const target_t *y, const double *weights, Py_ssize_t n, Py_ssize_t room
) noexcept nogil:
    """Take rows, as many at a time as there is room for."""
    cdef const double *own = NULL
    cdef Py_ssize_t i = 0, size
    while i < n:
        size = min(n - i, room)
        if weights != NULL:
            own = weights + i
        if arrived.stack.scale.narrow:
            take(arrived, scores + i, y + i, own, size, <int64_t>0)
        else:
            take(arrived, scores + i, y + i, own, size, <double>0)
        i += size


cdef inline void finish_all(Stack *stack, Py_ssize_t n_rows, double lo, double hi) noexcept nogil:
    """Blocks, and the newest observation above them, become steps."""
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
    """Exact sums of n blocks in another scale that is not narrow: its units are as fine or finer, by whole words.

    Sums in doubles follow where they had been integers, or doubles that nobody looked at.
    """
    cdef int n_words = new.s_words + new.w_words, old_words = old.s_words + old.w_words
    cdef int w_first = (old.w_unit - new.w_unit) // 64, s_first = w_first + (old.y_unit - new.y_unit) // 64
    cdef Py_ssize_t b
    cdef uint64_t integers[2]
    for b in range(n):
        if old.narrow:
            memcpy(integers, s + b, sizeof(uint64_t))
            memcpy(integers + 1, w + b, sizeof(uint64_t))
            widen(integers, 1, out, new.s_words, s_first)
            widen(integers + 1, 1, out + new.s_words, new.w_words, w_first)
        else:
            widen(words, old.s_words, out, new.s_words, s_first)
            widen(words + old.s_words, old.w_words, out + new.s_words, new.w_words, w_first)
            words += old_words
        if old.narrow or not old.tame:
            s[b] = rounded_sum(new, out) if new.tame else 0.0
            w[b] = rounded_weight(new, out) if new.tame else 0.0
        out += n_words


cdef inline void widen(const uint64_t *words, int n, uint64_t *out, int n_out, int first) noexcept nogil:
    """The same integer in more words, from the one at `first` on."""
    cdef uint64_t sign = 0 - (words[n - 1] >> 63)
    cdef int i
    for i in range(n_out):
        out[i] = 0 if i < first else words[i - first] if i < first + n else sign


cdef inline void push_newest(Stack *stack, Py_ssize_t n_rows, sum_t kind) noexcept nogil:
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


cdef inline void take(
    Arrived *arrived, const double *scores, const target_t *y, const double *weights, Py_ssize_t n, sum_t kind
) noexcept nogil:
    """Take up to CHUNK_ROWS rows."""
    cdef Stack *stack = &arrived.stack
    cdef Py_ssize_t first = 0, last = n - 1, place = stack.n
    cdef double newest
    if arrived.n_rows:
        newest = arrived.left[place]
        while first < n and scores[first] == newest:
            first += 1
        add_to_newest(arrived, y, weights, 0, first, kind)
        if first == n:
            return
        push_newest(stack, arrived.n_rows, kind)
        arrived.right[stack.n - 1] = newest   # its left is in its place already, or that of what it was joined with
    while last > first and scores[last - 1] == scores[last]:
        last -= 1
    if first < last:
        take_whole(arrived, scores, y, weights, first, last, kind)
    place = stack.n
    stack.starts[place] = arrived.n_rows
    arrived.left[place] = arrived.right[place] = scores[last] + 0.0        # -0.0 becomes the 0.0 it equals
    if sum_t is int64_t:
        (<int64_t *>stack.s)[place] = 0
        (<int64_t *>stack.w)[place] = 0
    else:
        memset(words_of(stack, place), 0, stack.n_words * sizeof(uint64_t))
    add_to_newest(arrived, y, weights, last, n, kind)


cdef inline void add_to_newest(
    Arrived *arrived, const target_t *y, const double *weights, Py_ssize_t start, Py_ssize_t end, sum_t kind
) noexcept nogil:
    """Add the rows [start, end) to the newest observation."""
    cdef Stack *stack = &arrived.stack
    cdef int64_t s, w
    if sum_t is int64_t:
        sum_integers(y, weights, start, end, &s, &w)
        (<int64_t *>stack.s)[stack.n] += s
        (<int64_t *>stack.w)[stack.n] += w
    else:
        add_rows(stack.scale, words_of(stack, stack.n), y, weights, start, end)
    arrived.n_rows += end - start


cdef inline void take_whole(
    Arrived *arrived, const double *scores, const target_t *y, const double *weights, Py_ssize_t first, Py_ssize_t last,
    sum_t kind,
) noexcept nogil:
    """Merge the rows [first, last), all of their scores, by themselves, and push their blocks."""
    cdef Stack *stack = &arrived.stack
    cdef Stack *chunk = &arrived.chunk
    cdef Py_ssize_t n = last - first, b, start, end, before
    cdef uint8_t *tied = arrived.tied
    cdef uint64_t *sums
    y += first
    scores += first
    if weights != NULL:
        weights += first
    if not find_ties(scores, n, tied):
        tied = NULL
    chunk.n = 0
    push_all(
        chunk, y, weights, tied, n, kind, NULL if n < FEW_ROWS or not stack.scale.tame else arrived.live, False
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
            stack, y, weights, arrived.n_rows + start, arrived.n_rows + end,
            (<sum_t *>chunk.s)[b], (<sum_t *>chunk.w)[b], True
        )
        if stack.n > before:
            arrived.left[before] = scores[start] + 0.0
        arrived.right[stack.n - 1] = scores[end - 1] + 0.0
    arrived.n_rows += n
