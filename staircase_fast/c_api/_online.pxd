# The online fitter of the C-level API: memory for the blocks of _arrivals.pxd, which grows with them.
#
# Rows that are pushed singly wait until there are enough of them for a call of the kernel.  Memory is asked for before
# anything is changed: what there is none for, has not happened.
#
# Assumed of the caller: rows that were judged (_api_rows.pxd), all of weight > 0.

from libc.math cimport INFINITY
from libc.stdint cimport uint8_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset

from staircase_fast.arithmetic._column_scan cimport Range, range_of
from staircase_fast.arithmetic._exact cimport Scale
from staircase_fast.arithmetic._scale cimport roomy_scale_of, scale_of
from staircase_fast.c_api._rows cimport Rows, Total
from staircase_fast.c_api._staircase cimport Owned, new_staircase
from staircase_fast.cython_api cimport SF_NO_MEMORY, SF_OK
from staircase_fast.stack._rows cimport work_words
from staircase_fast.stack._stack cimport Stack, empty_stack
from staircase_fast.streams._arrivals cimport CHUNK_ROWS, Arrived, finish_all, place_chunk, rescale, take_all

cdef enum:
    MOST_WAITING = 512        # rows that are worth a call of the kernel
    SPARE = 2048              # blocks there is room for before memory must grow

# Blocks, and the newest observation above them, in one piece of memory.
ctypedef struct Blocks:
    Scale scale
    Py_ssize_t room           # entries of each array
    Py_ssize_t n              # blocks, without the newest observation
    double *s                 # where the memory begins; NULL before the first row
    double *w
    double *left
    double *right
    Py_ssize_t *starts
    uint64_t *words
    uint8_t *known

ctypedef struct Stream:
    bint decreasing
    Range targets             # of all rows but those that wait
    Range weights
    Blocks blocks
    Py_ssize_t n_rows         # that have been taken
    Py_ssize_t n_waiting
    double newest             # the greatest score; -inf where there is none
    Total total               # of the weights of all rows
    double x[MOST_WAITING]
    double y[MOST_WAITING]
    double waiting_weights[MOST_WAITING]


cdef inline Stream *new_stream(bint decreasing) noexcept nogil:
    """One without rows, or NULL."""
    cdef Stream *stream = <Stream *>malloc(sizeof(Stream))
    if stream != NULL:
        memset(stream, 0, sizeof(Stream))
        stream.decreasing = decreasing
        stream.targets = stream.weights = Range(-1, INFINITY, -INFINITY, INFINITY, True)
        stream.newest = -INFINITY
    return stream


cdef inline void free_stream(Stream *stream) noexcept nogil:
    if stream != NULL:
        free(stream.blocks.s)
        free(stream)


cdef inline int wait(Stream *stream, double score, double target, double weight) noexcept nogil:
    """Take one row."""
    cdef Py_ssize_t i
    if stream.n_waiting == MOST_WAITING and settle(stream) != SF_OK:
        return SF_NO_MEMORY
    i = stream.n_waiting
    stream.x[i] = score
    stream.y[i] = target
    stream.waiting_weights[i] = weight
    stream.n_waiting = i + 1
    return SF_OK


cdef inline int settle(Stream *stream) noexcept nogil:
    """Take the rows that wait."""
    cdef int status
    if stream.n_waiting == 0:
        return SF_OK
    status = extend(stream, Rows(&stream.x[0], &stream.y[0], &stream.waiting_weights[0], stream.n_waiting))
    if status == SF_OK:
        stream.n_waiting = 0
    return status


cdef inline int extend(Stream *stream, Rows rows) noexcept nogil:
    """Take rows."""
    cdef Range y = range_of(rows.y, rows.n), w = Range(-1, 1.0, 1.0, 1.0, True)
    cdef Py_ssize_t at_once = min(rows.n, CHUNK_ROWS), used
    cdef Blocks *blocks = &stream.blocks
    cdef Arrived arrived
    cdef Scale scale
    cdef double *work
    if rows.w != NULL:
        w = range_of(rows.w, rows.n)
    scale = scale_for(stream, y, w, rows.n)
    work = <double *>malloc((3 * at_once + work_words(at_once, words_in(scale))) * sizeof(double))
    if work == NULL or not make_room(blocks, scale, rows.n):
        free(work)
        return SF_NO_MEMORY
    stream.targets = joined(stream.targets, y)
    stream.weights = joined(stream.weights, w)
    arrived.stack = stack_of(blocks, stream.decreasing)
    arrived.left = blocks.left
    arrived.right = blocks.right
    arrived.n_rows = stream.n_rows
    place_chunk(
        &arrived, <Py_ssize_t *>work, work + at_once, work + 2 * at_once, <uint64_t *>work + 3 * at_once, at_once
    )
    take_all(&arrived, rows.x, rows.y, rows.w, rows.n, at_once)
    free(work)
    blocks.n = arrived.stack.n
    stream.n_rows = arrived.n_rows
    used = blocks.n + 1
    if blocks.room > 4 * (used + SPARE):
        move(blocks, scale, 2 * used + SPARE)     # if there is no memory for less, it stays where it is
    return SF_OK


cdef inline Range joined(Range a, Range b) noexcept nogil:
    return Range(
        -1, min(a.lowest, b.lowest), max(a.highest, b.highest), min(a.least, b.least), a.integral and b.integral
    )


cdef inline Scale scale_for(const Stream *stream, Range y, Range w, Py_ssize_t n) noexcept nogil:
    """A scale for all rows with n more of these ranges."""
    cdef Scale scale = roomy_scale_of(joined(stream.targets, y), joined(stream.weights, w), stream.n_rows + n), own
    if not scale.narrow and scale.cut == 0:
        own = scale_of(y, w, n)
        scale.cut = own.cut
        scale.cut_error = own.cut_error
        scale.cut_weight = own.cut_weight
    return scale


cdef inline int words_in(Scale scale) noexcept nogil:
    return 0 if scale.narrow else scale.s_words + scale.w_words


cdef inline Stack stack_of(const Blocks *blocks, bint decreasing) noexcept nogil:
    cdef Stack stack = empty_stack(blocks.scale, decreasing, blocks.starts, blocks.s, blocks.w)
    stack.words = blocks.words
    stack.known = blocks.known
    stack.n = blocks.n
    return stack


cdef inline bint make_room(Blocks *blocks, Scale scale, Py_ssize_t n) noexcept nogil:
    """Room for n more rows, each perhaps a block, in this scale; return whether there is."""
    cdef Scale old = blocks.scale
    cdef Py_ssize_t used = blocks.n + 1, room = used + n + 1
    cdef bint same = blocks.s != NULL and (scale.narrow or (
        not old.narrow and (old.tame or not scale.tame) and words_in(old) == words_in(scale)
        and old.y_unit == scale.y_unit and old.w_unit == scale.w_unit
    ))
    if same and room <= blocks.room:
        blocks.scale = scale
        return True
    if room > blocks.room:
        room = max(room, used + used // 2 + SPARE)
    return move(blocks, scale, max(room, blocks.room))


cdef inline bint move(Blocks *blocks, Scale scale, Py_ssize_t room) noexcept nogil:
    """Move blocks to memory with so much room, in this scale; return whether there is."""
    cdef Blocks new = copy_of(blocks, scale, room)
    if new.s == NULL:
        return False
    free(blocks.s)
    blocks[0] = new
    return True


cdef inline Blocks copy_of(const Blocks *blocks, Scale scale, Py_ssize_t room) noexcept nogil:
    """The same blocks in memory with so much room, in this scale; without any where there is none."""
    cdef Py_ssize_t used = blocks.n + 1
    cdef Blocks new
    new.scale = scale
    new.room = room
    new.n = blocks.n
    new.s = <double *>malloc(room * ((5 + words_in(scale)) * sizeof(double) + 1))
    if new.s == NULL:
        return new
    new.w = new.s + room
    new.left = new.w + room
    new.right = new.left + room
    new.starts = <Py_ssize_t *>(new.right + room)
    new.words = <uint64_t *>(new.starts + room)
    new.known = <uint8_t *>(new.words + room * words_in(scale))
    memset(new.known, 1, room)                # exact sums of every block are
    if blocks.s != NULL:
        memcpy(new.s, blocks.s, used * sizeof(double))
        memcpy(new.w, blocks.w, used * sizeof(double))
        memcpy(new.left, blocks.left, used * sizeof(double))
        memcpy(new.right, blocks.right, used * sizeof(double))
        memcpy(new.starts, blocks.starts, used * sizeof(Py_ssize_t))
        if not scale.narrow:
            rescale(blocks.scale, scale, used, blocks.words, new.s, new.w, new.words)
    return new


cdef inline int staircase_of(Stream *stream, Owned **out) noexcept nogil:
    """The staircase of all rows, of which there are some; none wait."""
    cdef Blocks *blocks = &stream.blocks
    cdef Py_ssize_t used = blocks.n + 1, b = 0, step, end
    cdef Owned *stairs
    cdef Stack stack
    # the newest observation is joined with others in a copy: more rows of its score may come
    cdef Blocks copy = copy_of(blocks, blocks.scale, used)
    if copy.s == NULL:
        return SF_NO_MEMORY
    stack = stack_of(&copy, stream.decreasing)
    finish_all(&stack, stream.n_rows, -INFINITY, INFINITY)
    stairs = out[0] = new_staircase(stack.n)
    if stairs != NULL:
        for step in range(stack.n):
            end = stack.starts[step + 1] if step + 1 < stack.n else stream.n_rows
            stairs.left[step] = blocks.left[b]
            stairs.values[step] = stack.s[step]
            stairs.weights[step] = stack.w[step]
            stairs.counts[step] = end - stack.starts[step]
            while b + 1 < used and blocks.starts[b + 1] < end:
                b += 1
            stairs.right[step] = blocks.right[b]
            b += 1
    free(copy.s)
    return SF_OK if stairs != NULL else SF_NO_MEMORY
