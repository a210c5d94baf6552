"""Fits of labels drawn from forecasts.

Random numbers come from a bit generator of numpy, through its capsule.  Each resample has its own generator, which
numpy's SeedSequence derives from the seed and the number of the resample, so results do not depend on the number of
threads.

Preconditions: at least one observation, weights > 0 and at most 1 whose products with forecasts do not underflow, work
space for one block per observation.
"""

from cpython.pycapsule cimport PyCapsule_GetPointer
from libc.stdint cimport int64_t, uint32_t, uint64_t

cdef enum:
    CHUNK = 1024              # labels drawn at a time

# The beginning of numpy's public bitgen_t (numpy/random/bitgen.h).
ctypedef struct BitGenerator:
    void *state
    uint64_t (*next_uint64)(void *) noexcept nogil
    uint32_t (*next_uint32)(void *) noexcept nogil
    double (*next_double)(void *) noexcept nogil

# Neighbouring observations that share a step, whatever follows; `full`: the last one is all 1.
ctypedef struct Block:
    Py_ssize_t start
    double s
    double w
    bint full

# Blocks with strictly increasing means.
ctypedef struct Stack:
    Py_ssize_t n
    int64_t *starts           # the first observation of each block
    double *s
    double *w


cdef void draw(BitGenerator *random, const double *chances, Py_ssize_t n, unsigned char *labels) noexcept nogil:
    """Draw n labels.  Random numbers have 62 bits.  Calls of the generator must not interrupt the loop that fits."""
    cdef BitGenerator own = random[0]
    cdef Py_ssize_t i
    for i in range(n):
        labels[i] = <int64_t>(own.next_uint64(own.state) >> 2) < <int64_t>(chances[i] * 4611686018427387904.0)  # 2**62


def fit_simulated(
    object capsule,                            # of a bit generator that no other thread uses
    const double[::1] chances not None,        # IN  forecasts of rows, in order
    const int64_t[::1] ends not None,          # IN  number of rows up to the end of each observation; empty: one each
    const double[::1] w not None,              # IN  weights of rows; or empty: all are 1
    const int64_t[::1] places not None,        # IN  observations whose values are returned, in ascending order
    int64_t[::1] starts not None,              # work: one entry per observation
    double[:, ::1] work not None,              # work: 2 columns of one entry per observation
    double[::1] values not None,               # OUT one per place
):
    """Draw labels with the forecast probabilities and fit them; return their miscalibration times the total weight.

    That is the sum of weight * ((forecast - label)**2 - (value - label)**2), the miscalibration under the Brier score.
    """
    cdef Stack stack = Stack(0, &starts[0], &work[0, 0], &work[1, 0])
    cdef Block last = Block(0, 0.0, 0.0, True)
    cdef BitGenerator *random = <BitGenerator *>PyCapsule_GetPointer(capsule, "BitGenerator")
    cdef Py_ssize_t i, begin, end = 0, k = 0, n = chances.shape[0]
    cdef double s = 0.0, total = 0.0, excess = 0.0
    cdef unsigned char labels[CHUNK]
    with nogil:
        while end < n:
            begin = end
            end = min(begin + CHUNK, n)
            draw(random, &chances[begin], end - begin, labels)
            for i in range(begin, end):
                if w.shape[0]:
                    s += w[i] if labels[i - begin] else 0.0
                    total += w[i]
                else:
                    s += labels[i - begin]
                    total += 1.0
                if ends.shape[0] and i + 1 < ends[k]:
                    continue
                excess += chances[i] * (chances[i] * total - 2.0 * s)
                append(&stack, &last, k, s, total)
                k += 1
                s = 0.0
                total = 0.0
        push(&stack, last)
        look_up(&stack, &places[0], places.shape[0], &values[0])
        for k in range(stack.n):
            excess += stack.s[k] * (stack.s[k] / stack.w[k])
    return excess


cdef inline void append(Stack *stack, Block *last, Py_ssize_t k, double s, double w) noexcept nogil:
    """Append an observation to the last block, or push that and begin the next one.

    An observation that is all 0, or that follows one that is all 1, shares the step of the one before.
    """
    if not (last.full | (s == 0.0)):           # one branch, because labels are unpredictable
        push(stack, last[0])
        last.start = k
        last.s = 0.0
        last.w = 0.0
    last.s += s
    last.w += w
    last.full = s == w


cdef inline void push(Stack *stack, Block block) noexcept nogil:
    """Push a block, merged with all blocks on top whose means are not below its mean."""
    cdef Py_ssize_t top = stack.n - 1
    while top >= 0 and stack.s[top] * block.w >= block.s * stack.w[top]:       # a mean would need a division
        block.start = stack.starts[top]
        block.s += stack.s[top]
        block.w += stack.w[top]
        top -= 1
    top += 1
    stack.starts[top] = block.start
    stack.s[top] = block.s
    stack.w[top] = block.w
    stack.n = top + 1


cdef inline void look_up(const Stack *stack, const int64_t *places, Py_ssize_t n, double *values) noexcept nogil:
    cdef Py_ssize_t block = 0, i
    for i in range(n):
        while block + 1 < stack.n and stack.starts[block + 1] <= places[i]:
            block += 1
        values[i] = stack.s[block] / stack.w[block]
