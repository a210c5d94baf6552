"""The least squared error of a monotone fit to each prefix of a sequence, from the merges of section V.

Each block stores the squared error of its own rows.  A merge adds d**2 w_a w_b / (w_a + w_b), where d is the difference
of the two means.  Only numbers >= 0 are added, so nothing cancels.  Each block also stores the sum of the errors below
it on the stack, so that no error is subtracted when blocks are removed.

Preconditions: n >= 1, finite targets, weights finite and > 0, and squares that neither overflow nor underflow.
"""

from staircase_fast.arithmetic._double_double cimport Twofold, add
from staircase_fast.losses._functionals cimport SquaredError
from staircase_fast.streams._pooled cimport Pooled, difference, joined, must_merge, rounded_value, single, sum_of

ctypedef struct Costly:
    Pooled block
    Twofold cost              # squared error of its rows
    Twofold before            # squared error of all blocks below it

WORK_COLUMNS = sizeof(Costly) // sizeof(double)


def losses(
    const double[::1] targets not None,        # IN
    const double[::1] weights not None,        # IN  or empty: all are 1
    bint decreasing,
    double[:, ::1] work not None,              # work: WORK_COLUMNS for each row
    double[::1] out not None,                  # OUT
):
    """out[k] = the squared error of the first k + 1 rows."""
    cdef Costly *stack = <Costly *>&work[0, 0]
    cdef Costly top
    cdef Py_ssize_t n = 0, i
    with nogil:
        for i in range(targets.shape[0]):
            top.block = single(targets[i], weights[i] if weights.shape[0] else 1.0)
            top.cost = Twofold(0.0, 0.0)
            while n and must_merge(stack[n - 1].block, top.block, decreasing):
                n -= 1
                top = merged(stack[n], top)
            top.before = Twofold(0.0, 0.0)
            if n:
                top.before = sum_of(stack[n - 1].before, stack[n - 1].cost)
            stack[n] = top
            n += 1
            out[i] = rounded_value(sum_of(top.before, top.cost))


cdef inline Costly merged(Costly a, Costly b) noexcept nogil:
    """Merge two neighbours; the caller sets `before`."""
    cdef double d = difference(a.block.value, b.block.value)
    cdef double w_a = rounded_value(a.block.weight), w_b = rounded_value(b.block.weight)
    a.cost = sum_of(a.cost, b.cost)
    add(&a.cost, d * d * (w_a * (w_b / (w_a + w_b))))
    a.block = joined(SquaredError(0.0), a.block, b.block)
    return a
