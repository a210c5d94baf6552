# An online fit in C: the blocks of _online_stack.pxd in memory that grows with their number.
#
# `Online` of the package and `sf_online` of the C API both wrap this struct.  Rows that are added one by one wait until
# there are enough of them for one call of the kernel.  A call that fails changes nothing: memory is allocated first.
#
# Preconditions: ascending scores that are not below `newest`, finite targets, weights finite and > 0.

from libc.math cimport INFINITY
from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset

from staircase_fast.arithmetic._buckets cimport Range, range_of
from staircase_fast.arithmetic._double_double cimport Twofold, add
from staircase_fast.arithmetic._exact cimport Scale
from staircase_fast.arithmetic._scale cimport roomy_scale_of, scale_of
from staircase_fast.losses._functionals cimport Linex
from staircase_fast.stack._rows cimport place_work, work_words
from staircase_fast.stack._stack cimport Stack, empty_stack
from staircase_fast.streams._online_stack cimport (
    Blocks, Chunk, OwnedStairs, add_chunk, add_linex, finish_linex, finish_means, new_staircase, rescale, target_t,
)

cdef enum:
    CHUNK_ROWS = 1 << 16      # rows that are merged among themselves at once
    MOST_WAITING = 512
    SPARE = 2048              # additional blocks when memory grows

cdef enum Outcome:
    ADDED
    NO_MEMORY
    WEIGHTS_OVERFLOW

ctypedef struct OnlineFit:
    bint decreasing
    Linex linex               # shape 0: a loss whose steps are means
    Blocks blocks             # no memory before the first row
    Range targets             # of all rows but those that wait
    Range weights
    Twofold total             # weight of all rows times 2**-60, which cannot overflow
    double newest             # greatest score, or -inf
    Py_ssize_t n_waiting
    double x[MOST_WAITING]
    double y[MOST_WAITING]
    double w[MOST_WAITING]


cdef inline OnlineFit *new_online(bint decreasing, double linex_shape) noexcept nogil:
    """A fit without rows, or NULL if there is no memory."""
    cdef OnlineFit *online = <OnlineFit *>malloc(sizeof(OnlineFit))
    if online != NULL:
        memset(online, 0, sizeof(OnlineFit))
        online.decreasing = decreasing
        online.linex = Linex(linex_shape)
        online.targets = online.weights = Range(-1, INFINITY, -INFINITY, INFINITY, True)
        online.newest = -INFINITY
    return online


cdef inline void free_online(OnlineFit *online) noexcept nogil:
    if online != NULL:
        free(online.blocks.stack.s)
        free(online)


cdef inline Py_ssize_t count_rows(const OnlineFit *online) noexcept nogil:
    return online.blocks.n_rows + online.n_waiting


cdef inline double total_weight(Twofold total) noexcept nogil:
    """The weight of all rows; inf if it overflows."""
    return (total.hi + total.lo) * 1152921504606846976.0                         # 2**60


cdef inline Twofold add_weights(Twofold total, const double *weights, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t i
    if weights == NULL:
        add(&total, <double>n * 8.673617379884035e-19)                           # 2**-60
        return total
    for i in range(n):
        add(&total, weights[i] * 8.673617379884035e-19)
    return total


cdef inline Outcome push_row(OnlineFit *online, double score, double target, double weight) noexcept nogil:
    """Add one row."""
    cdef Twofold total = add_weights(online.total, &weight, 1)
    cdef Py_ssize_t i
    if total_weight(total) == INFINITY:
        return WEIGHTS_OVERFLOW
    if online.n_waiting == MOST_WAITING and add_waiting(online) != ADDED:
        return NO_MEMORY
    i = online.n_waiting
    online.x[i] = score
    online.y[i] = target
    online.w[i] = weight
    online.n_waiting = i + 1
    online.newest = score
    online.total = total
    return ADDED


cdef inline Outcome add_waiting(OnlineFit *online) noexcept nogil:
    """Move the rows that wait to the stack."""
    cdef Py_ssize_t n = online.n_waiting
    cdef Outcome outcome
    if n == 0:
        return ADDED
    outcome = add_rows(
        online, &online.x[0], &online.y[0], &online.w[0], n, range_of(&online.y[0], n), range_of(&online.w[0], n)
    )
    if outcome == ADDED:
        online.n_waiting = 0
    return outcome


cdef inline Outcome extend(
    OnlineFit *online, const double *scores, const target_t *y, const double *weights, Py_ssize_t n, Range targets,
    Range weight_range
) noexcept nogil:
    """Add rows with these ranges; weights may be NULL: all are 1."""
    cdef Twofold total = add_weights(online.total, weights, n)
    cdef Outcome outcome
    if total_weight(total) == INFINITY:
        return WEIGHTS_OVERFLOW
    outcome = add_waiting(online)
    if outcome == ADDED:
        outcome = add_rows(online, scores, y, weights, n, targets, weight_range)
    if outcome == ADDED:
        online.newest = online.blocks.left[online.blocks.stack.n]
        online.total = total
    return outcome


cdef inline Outcome add_rows(
    OnlineFit *online, const double *scores, const target_t *y, const double *weights, Py_ssize_t n, Range targets,
    Range weight_range
) noexcept nogil:
    cdef Blocks *blocks = &online.blocks
    cdef Range all_targets = joined_range(online.targets, targets)
    cdef Range all_weights = joined_range(online.weights, weight_range)
    cdef Scale scale = scale_for(online, all_targets, all_weights, n), own
    cdef Py_ssize_t size = min(n, CHUNK_ROWS), used
    cdef double *work = NULL
    if online.linex.p == 0:
        if not scale.narrow:
            own = scale_of(targets, weight_range, n)      # these rows may be narrower than those before
            scale.cut, scale.cut_weight = own.cut, own.cut_weight
        work = <double *>malloc((3 * size + work_words(size, words_in(scale))) * sizeof(double))
        if work == NULL:
            return NO_MEMORY
    if not make_room(blocks, scale, online.decreasing, n):
        free(work)
        return NO_MEMORY
    online.targets = all_targets
    online.weights = all_weights
    if online.linex.p:
        add_linex(blocks, online.linex, scores, y, weights, n)
    else:
        add_chunks(blocks, work, size, scores, y, weights, n)
        free(work)
    used = blocks.stack.n + 1
    if blocks.room > 4 * (used + SPARE):
        move(blocks, scale, online.decreasing, 2 * used + SPARE)     # if this fails, they stay where they are
    return ADDED


cdef inline Range joined_range(Range a, Range b) noexcept nogil:
    return Range(
        -1, min(a.lowest, b.lowest), max(a.highest, b.highest), min(a.least, b.least), a.integral and b.integral
    )


cdef inline Scale scale_for(const OnlineFit *online, Range targets, Range weights, Py_ssize_t n) noexcept nogil:
    """The scale of exact sums after n more rows; that of Linex has room for a `Pooled`."""
    cdef Scale scale
    if online.linex.p == 0:
        return roomy_scale_of(targets, weights, online.blocks.n_rows + n)
    memset(&scale, 0, sizeof(Scale))
    scale.s_words = scale.w_words = 2
    return scale


cdef inline int words_in(Scale scale) noexcept nogil:
    return 0 if scale.narrow else scale.s_words + scale.w_words


cdef inline void add_chunks(
    Blocks *blocks, double *work, Py_ssize_t size, const double *scores, const target_t *y, const double *weights,
    Py_ssize_t n
) noexcept nogil:
    """Add rows, `size` at a time."""
    cdef const double *own = NULL
    cdef Py_ssize_t i = 0, some
    cdef Chunk chunk
    chunk.stack = empty_stack(
        blocks.stack.scale, blocks.stack.decreasing, <Py_ssize_t *>work, work + size, work + 2 * size
    )
    chunk.tied = place_work(&chunk.stack, <uint64_t *>(work + 3 * size), size)
    chunk.live = chunk.tied + size
    while i < n:
        some = min(n - i, size)
        if weights != NULL:
            own = weights + i
        if blocks.stack.scale.narrow:
            add_chunk(blocks, &chunk, scores + i, y + i, own, some, <int64_t>0)
        else:
            add_chunk(blocks, &chunk, scores + i, y + i, own, some, <double>0)
        i += some


cdef inline bint make_room(Blocks *blocks, Scale scale, bint decreasing, Py_ssize_t n) noexcept nogil:
    """Make room for n more rows, each possibly a block, in this scale; return whether there is memory."""
    cdef Scale old = blocks.stack.scale
    cdef Py_ssize_t used = blocks.stack.n + 1, room = used + n + 1
    cdef bint same = blocks.room > 0 and (scale.narrow or (
        not old.narrow and (old.tame or not scale.tame) and words_in(old) == words_in(scale)
        and old.y_unit == scale.y_unit and old.w_unit == scale.w_unit
    ))
    if same and room <= blocks.room:
        blocks[0] = blocks_in(blocks.stack.s, blocks.room, scale, decreasing, blocks.stack.n, blocks.n_rows)
        return True
    if room > blocks.room:
        room = max(room, used + used // 2 + SPARE)
    return move(blocks, scale, decreasing, max(room, blocks.room))


cdef inline bint move(Blocks *blocks, Scale scale, bint decreasing, Py_ssize_t room) noexcept nogil:
    """Move blocks to new memory in this scale; return whether there is memory."""
    cdef Blocks new = copy_blocks(blocks, scale, decreasing, room)
    if new.room == 0:
        return False
    free(blocks.stack.s)
    blocks[0] = new
    return True


cdef inline Blocks blocks_in(
    double *memory, Py_ssize_t room, Scale scale, bint decreasing, Py_ssize_t n, Py_ssize_t n_rows
) noexcept nogil:
    """The blocks in this memory: five columns s, w, left, right and starts, exact sums, and `known`."""
    cdef Stack stack = empty_stack(scale, decreasing, <Py_ssize_t *>(memory + 4 * room), memory, memory + room)
    stack.n = n
    stack.words = <uint64_t *>(memory + 5 * room)
    stack.known = <uint8_t *>(stack.words + room * words_in(scale))
    return Blocks(stack, memory + 2 * room, memory + 3 * room, n_rows, room)


cdef inline Blocks copy_blocks(const Blocks *blocks, Scale scale, bint decreasing, Py_ssize_t room) noexcept nogil:
    """A copy in this scale; its room is 0 if there is no memory."""
    cdef Py_ssize_t used = blocks.stack.n + 1, column
    cdef double *memory = <double *>malloc(room * ((5 + words_in(scale)) * sizeof(double) + 1))
    cdef Blocks new = blocks[0]
    new.room = 0
    if memory == NULL:
        return new
    new = blocks_in(memory, room, scale, decreasing, blocks.stack.n, blocks.n_rows)
    memset(new.stack.known, 1, room)          # between calls, the exact sums of every block are known
    if blocks.room:
        for column in range(5):
            memcpy(memory + column * room, blocks.stack.s + column * blocks.room, used * sizeof(double))
        if not scale.narrow:
            rescale(blocks.stack.scale, scale, used, blocks.stack.words, memory, memory + room, new.stack.words)
    return new


cdef inline OwnedStairs *staircase_so_far(OnlineFit *online, double lo, double hi) noexcept nogil:
    """The staircase of all rows, of which there is at least one, or NULL if there is no memory."""
    cdef Blocks *blocks = &online.blocks
    cdef OwnedStairs *stairs = NULL
    cdef Blocks steps
    cdef Stack *stack = &steps.stack
    cdef Py_ssize_t step, end, b = 0, used
    if add_waiting(online) != ADDED:
        return NULL
    used = blocks.stack.n + 1
    steps = copy_blocks(blocks, blocks.stack.scale, online.decreasing, used)
    if steps.room == 0:
        return NULL
    if online.linex.p:
        finish_linex(stack, online.linex)
    else:
        finish_means(stack, steps.n_rows, lo, hi)
    stairs = new_staircase(stack.n)
    if stairs != NULL:
        memcpy(stairs.values, stack.s, stack.n * sizeof(double))
        memcpy(stairs.weights, stack.w, stack.n * sizeof(double))
        for step in range(stack.n):
            end = stack.starts[step + 1] if step + 1 < stack.n else steps.n_rows
            stairs.left[step] = blocks.left[b]
            while b + 1 < used and blocks.stack.starts[b + 1] < end:
                b += 1
            stairs.right[step] = blocks.right[b]
            stairs.counts[step] = end - stack.starts[step]
            b += 1
    free(stack.s)
    return stairs
