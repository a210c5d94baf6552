# A block as its optimal value and its weight, both in double-double precision, for losses without exact sums.
#
# Two blocks are merged by moving the value of one towards that of the other.  Only the move is rounded, not the value.
# Errors are therefore small relative to the differences of values, and do not grow with the number of merges.
#
# Preconditions: finite values, weights > 0 with a finite sum.

from libc.math cimport exp, expm1, fabs, log, log1p

from staircase_fast.arithmetic._double_double cimport Twofold, add
from staircase_fast.losses._functionals cimport Linex, SquaredError

ctypedef struct Pooled:
    Twofold value
    Twofold weight

ctypedef fused pooling:
    SquaredError
    Linex


cdef inline Pooled single(double value, double weight) noexcept nogil:
    cdef Pooled block
    block.value = Twofold(value + 0.0, 0.0)              # -0.0 becomes 0.0
    block.weight = Twofold(weight, 0.0)
    return block


cdef inline double rounded_value(Twofold x) noexcept nogil:
    return x.hi + x.lo


cdef inline Twofold sum_of(Twofold a, Twofold b) noexcept nogil:
    add(&a, b.hi)
    a.lo += b.lo
    return a


cdef inline double difference(Twofold a, Twofold b) noexcept nogil:
    """a - b."""
    return (a.hi - b.hi) + (a.lo - b.lo)


cdef inline double move_of(pooling loss, double d, double share, double rest) noexcept nogil:
    """How far a block's value moves when it merges with a block that is d above it and has this share of the weight."""
    cdef double x
    if pooling is SquaredError:
        return d * share
    else:
        # exp(-a*z) is the mean of exp(-a*y); relative to this block, that of the other is exp(-a*d)
        x = share * expm1(-loss.p * d)
        if x < -0.5:
            return -log(rest + share * exp(-loss.p * d)) / loss.p
        return -log1p(x) / loss.p


cdef inline Pooled joined(pooling loss, Pooled a, Pooled b) noexcept nogil:
    """Merge two blocks."""
    cdef double d = difference(b.value, a.value), w_a = rounded_value(a.weight), w_b = rounded_value(b.weight)
    cdef bint from_b = w_b > w_a              # move the heavier block: it moves less
    if pooling is Linex:
        if not fabs(loss.p * d) < 30.0:                  # otherwise exp(-a*d) could overflow
            from_b = loss.p * d < 0
    if from_b:
        a, b, w_a, w_b, d = b, a, w_b, w_a, -d
    add(&a.value, move_of(loss, d, w_b / (w_a + w_b), w_a / (w_a + w_b)))
    a.weight = sum_of(a.weight, b.weight)
    return a


cdef inline bint must_merge(Pooled a, Pooled b, bint decreasing) noexcept nogil:
    """Whether b, to the right of a, violates the order."""
    cdef double d = difference(a.value, b.value)
    return d <= 0 if decreasing else d >= 0
