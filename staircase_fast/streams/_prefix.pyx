"""The least squared error of an increasing fit to each beginning of a sequence, from the merges of section V.

A block carries the squared error of its own rows.  When two are joined it grows by d**2 w_a w_b / (w_a + w_b), d the
difference of their means: only numbers >= 0 are added, so nothing cancels.  Each block also carries the sum of those
before it on the stack, so that blocks can leave without subtracting theirs.

Kernels here assume clean input: n >= 1, finite targets, weights finite and > 0, of a size whose squares are numbers.
"""

from staircase_fast.arithmetic._double_double cimport Twofold, add
from staircase_fast.losses._functionals cimport SquaredError
from staircase_fast.streams._pooled cimport Pooled, difference, joined, reaches, single, whole

ctypedef struct Costly:
    Pooled block
    Twofold cost              # of its rows
    Twofold before            # of all blocks before it

WORK_COLUMNS = sizeof(Costly) // sizeof(double)


def losses(
    const double[::1] targets not None,        # IN
    const double[::1] weights not None,        # IN  or empty: all are 1
    bint decreasing,
    double[:, ::1] work not None,              # work: WORK_COLUMNS for each row
    double[::1] out not None,                  # OUT
):
    """Entry k is that of the first k + 1 rows."""
    cdef Costly *stack = <Costly *>&work[0, 0]
    cdef Costly top
    cdef Py_ssize_t n = 0, i
    with nogil:
        for i in range(targets.shape[0]):
            top.block = single(targets[i], weights[i] if weights.shape[0] else 1.0)
            top.cost = Twofold(0.0, 0.0)
            while n and reaches(stack[n - 1].block, top.block, decreasing):
                n -= 1
                top = together(stack[n], top)
            top.before = Twofold(0.0, 0.0)
            if n:
                top.before = sum_of(stack[n - 1].before, stack[n - 1].cost)
            stack[n] = top
            n += 1
            out[i] = whole(sum_of(top.before, top.cost))


cdef inline Twofold sum_of(Twofold a, Twofold b) noexcept nogil:
    add(&a, b.hi)
    a.lo += b.lo
    return a


cdef inline Costly together(Costly a, Costly b) noexcept nogil:
    """Two blocks side by side as one; `before` is left to the caller."""
    cdef double d = difference(a.block.value, b.block.value)
    cdef double w_a = whole(a.block.weight), w_b = whole(b.block.weight)
    a.cost = sum_of(a.cost, b.cost)
    add(&a.cost, d * d * (w_a * (w_b / (w_a + w_b))))
    a.block = joined(SquaredError(0.0), a.block, b.block)
    return a
