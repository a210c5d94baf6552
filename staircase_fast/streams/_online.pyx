"""Rows that arrive in score order, and the optimal staircase of all so far (_arrivals.pxd).

    size           blocks on the stack, without the newest observation, and rows
    starts         how many rows there are before each block
    s, w           sums as in _blocks.pxd; of the newest observation only where scale.narrow
    words          exact sums, where not
    left, right    the first and the last score of each block

Kernels here assume clean input: n >= 1, scores that never decrease and are at or above the newest one, finite targets,
weights finite and > 0, a Scale made for all rows so far, and room for n + 1 more blocks in every array.
"""

from libc.stdint cimport uint8_t, uint64_t

from staircase_fast.arithmetic._exact cimport unpacked
from staircase_fast.losses._functionals cimport Linex
from staircase_fast.stack._rows cimport work_words
from staircase_fast.stack._stack cimport Stack, empty_stack
from staircase_fast.streams cimport _arrivals
from staircase_fast.streams._arrivals cimport CHUNK_ROWS, Arrived, finish_all, place_chunk, take_all, target_t
from staircase_fast.streams._pooled cimport Pooled, joined, reaches, single, whole

MOST_ROWS = CHUNK_ROWS


def work_size(Py_ssize_t n, int n_words):
    """Words that `extend` by n rows wants as work space, where exact sums have `n_words` of them."""
    return work_words(n, n_words)


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
    cdef Py_ssize_t n = targets.shape[0]
    cdef const double *given = &weights[0] if weights.shape[0] else NULL
    cdef Arrived arrived
    arrived.stack = empty_stack(unpacked(scale), decreasing, &starts[0], &s[0], &w[0])
    arrived.stack.known = &known[0]
    arrived.stack.words = &words[0] if words.shape[0] else NULL
    arrived.stack.n = size[0]
    arrived.n_rows = size[1]
    arrived.left = &left[0]
    arrived.right = &right[0]
    place_chunk(&arrived, &own_starts[0], &own_sums[0, 0], &own_sums[1, 0], &work[0], own_starts.shape[0])
    with nogil:
        take_all(&arrived, &scores[0], &targets[0], given, n, own_starts.shape[0])
    size[0] = arrived.stack.n
    size[1] = arrived.n_rows
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
    stack.known = &known[0]
    stack.words = &words[0] if words.shape[0] else NULL
    stack.n = starts.shape[0] - 1
    with nogil:
        finish_all(&stack, n_rows, lo, hi)
    return stack.n


def rescale(
    object old not None,                       # IN  exact.Scale
    object new not None,                       # IN  exact.Scale, not narrow; units as fine, or finer by whole words
    const uint64_t[::1] words not None,        # IN  exact sums; none where `old` is narrow
    double[::1] s not None,                    # IN/OUT
    double[::1] w not None,                    # IN/OUT
    uint64_t[::1] out not None,                # OUT exact sums
):
    """Sums in another scale."""
    cdef const uint64_t *given = &words[0] if words.shape[0] else NULL
    _arrivals.rescale(unpacked(old), unpacked(new), s.shape[0], given, &s[0], &w[0], &out[0])


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
