# Blocks of finished runs, and their values as a staircase reports them.

from libc.math cimport INFINITY, copysign, fabs
from libc.stdint cimport int64_t
from libc.stdlib cimport qsort

from staircase_fast.arithmetic._branchless cimport greater, lesser
from staircase_fast.bisection._runs cimport GREATEST, LEAST, Run, clamp

ctypedef struct Block:
    int64_t start
    double value
    double lo
    double hi
    double greatest           # while blocks are made: the greatest minimiser, if `value` is the least one

ctypedef struct Limits:       # of values
    const double *y           # targets, if values lie between the targets of their block; else NULL
    bint infinite             # the largest floats stand for infinities
    double lo
    double hi


cdef inline int compare_starts(const void *one, const void *other) noexcept nogil:
    cdef int64_t a = (<const Run *>one).start, b = (<const Run *>other).start
    return (a > b) - (a < b)


cdef inline Py_ssize_t blocks_of(Run *runs, Py_ssize_t n, const double *y, Block *blocks) noexcept nogil:
    """Convert runs to blocks in order; return their number.  `y`: targets, if each value is one of them; else NULL.

    A block that may have several values was solved without its neighbours, which limit them.
    """
    cdef Py_ssize_t i, one = -1, two = -1, n_blocks = 0, n_least = 0, n_greatest = 0
    qsort(runs, n, sizeof(Run), compare_starts)
    for i in range(n):
        n_least += runs[i].side != GREATEST
        n_greatest += runs[i].side != LEAST
        if y != NULL:
            move_to_target(&runs[i], y)
    if n_least == 0 or n_greatest == 0 or n_least + n_greatest == 2 * n:
        for i in range(n):
            blocks[i] = Block(runs[i].start, runs[i].value, runs[i].lo, runs[i].hi, runs[i].value)
        return n
    for i in range(n):
        if runs[i].side != GREATEST:
            one = i
        if runs[i].side != LEAST:
            two = i
        if i + 1 < n and runs[i + 1].start == runs[i].start:
            continue
        blocks[n_blocks] = Block(runs[i].start, runs[one].value, runs[one].lo, runs[two].hi, runs[two].value)
        if n_blocks:
            blocks[n_blocks].value = greater(blocks[n_blocks].value, blocks[n_blocks - 1].value)
            blocks[n_blocks].lo = greater(blocks[n_blocks].lo, blocks[n_blocks - 1].lo)
        n_blocks += 1
    for i in range(n_blocks - 1, -1, -1):
        if i + 1 < n_blocks:
            blocks[i].greatest = lesser(blocks[i].greatest, blocks[i + 1].greatest)
            blocks[i].hi = lesser(blocks[i].hi, blocks[i + 1].hi)
    for i in range(n_blocks):
        if blocks[i].value != blocks[i].greatest:
            blocks[i].value = 0.5 * blocks[i].value + 0.5 * blocks[i].greatest
        blocks[i].lo = lesser(blocks[i].lo, blocks[i].value)
        blocks[i].hi = greater(blocks[i].hi, blocks[i].value)
    return n_blocks


cdef inline void move_to_target(Run *run, const double *y) noexcept nogil:
    """Slopes jump at targets, so minimisers are targets; rounding may have hidden that.

    The least minimiser becomes the greatest target of the run that is not above its bounds, or the least target.
    """
    cdef double found = -INFINITY, beyond = INFINITY
    cdef double sign = 1.0 if run.side != GREATEST else -1.0, bound = run.hi if run.side != GREATEST else -run.lo
    cdef Py_ssize_t i
    for i in range(run.start, run.end):
        found = greater(found, sign * y[i] if sign * y[i] <= bound else -INFINITY)
        beyond = lesser(beyond, sign * y[i])
    if run.lo < run.hi:                       # others are at a bound
        run.value = sign * (found if found > -INFINITY else beyond)
    run.lo = lesser(run.lo, run.value)
    run.hi = greater(run.hi, run.value)


cdef inline Py_ssize_t limit_blocks(
    Block *blocks, Py_ssize_t n, Py_ssize_t n_rows, const Limits *limits
) noexcept nogil:
    """Values in order and within limits; neighbours with equal values become one block.  Return the number of blocks.

    Rounding must neither change the order of values nor move them beyond the targets of their block.
    """
    cdef Py_ssize_t i, row, end, n_limited = 0
    cdef double low, high, before = -INFINITY
    cdef Block block
    for i in range(n):
        block = blocks[i]
        if limits.y != NULL:
            end = blocks[i + 1].start if i + 1 < n else n_rows
            low = high = limits.y[block.start]
            for row in range(block.start + 1, end):
                low = lesser(low, limits.y[row])
                high = greater(high, limits.y[row])
            block.value = clamp(block.value, low, high)
            block.lo = clamp(block.lo, low, high)
            block.hi = clamp(block.hi, low, high)
        before = block.value = greater(block.value, before)
        block.lo = limited(lesser(block.lo, block.value), limits)
        block.hi = limited(greater(block.hi, block.value), limits)
        block.value = limited(block.value, limits)
        if n_limited and blocks[n_limited - 1].value == block.value:
            blocks[n_limited - 1].lo = lesser(blocks[n_limited - 1].lo, block.lo)
            blocks[n_limited - 1].hi = greater(blocks[n_limited - 1].hi, block.hi)
        else:
            blocks[n_limited] = block
            n_limited += 1
    return n_limited


cdef inline double limited(double value, const Limits *limits) noexcept nogil:
    """The value within the bounds; -0.0 becomes 0.0."""
    if limits.infinite and fabs(value) >= 1.7976931348623157e308:
        value = copysign(INFINITY, value)
    return clamp(value, limits.lo, limits.hi) + 0.0
