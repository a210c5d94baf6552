"""The online fit of `Online` (_online_memory.pxd), as a Python object.

Preconditions of its methods: as there.  An object is for one thread at a time; `Online` has a lock.
"""

import numpy as np

from staircase_fast.errors import InvalidInputError

from libc.stdint cimport uint64_t
from libc.stdlib cimport free

from staircase_fast.arithmetic._buckets cimport Range
from staircase_fast.arithmetic._exact cimport Scale
from staircase_fast.streams._online_memory cimport (
    CHUNK_ROWS, NO_MEMORY, WEIGHTS_OVERFLOW, OnlineFit, Outcome, add_waiting, blocks_in, copy_blocks, count_rows,
    extend as extend_fit, free_online, new_online, push_row, scale_for, staircase_so_far,
)
from staircase_fast.streams._online_stack cimport Blocks, OwnedStairs, target_t

ROWS_AT_ONCE = CHUNK_ROWS


cdef class OnlineBlocks:
    """Blocks of all rows so far; `linex_shape` is 0 for a loss whose steps are means."""

    cdef OnlineFit *fit

    def __cinit__(self, bint decreasing, double linex_shape):
        self.fit = new_online(decreasing, linex_shape)
        if self.fit == NULL:
            raise MemoryError

    def __dealloc__(self):
        free_online(self.fit)

    @property
    def n_rows(self):
        return count_rows(self.fit)

    @property
    def newest(self):
        """The greatest score, or -inf."""
        return self.fit.newest

    @property
    def room(self):
        """Number of blocks that there is memory for."""
        return self.fit.blocks.room

    def append(self, double score, double target, double weight):
        """Add one row."""
        check(push_row(self.fit, score, target, weight))

    def steps(self, double lo, double hi):
        """The columns left, right, values, weights and counts of the staircase; values are clipped to [lo, hi]."""
        cdef OwnedStairs *stairs
        cdef Py_ssize_t n
        with nogil:
            stairs = staircase_so_far(self.fit, lo, hi)
        if stairs == NULL:
            raise MemoryError
        try:
            n = stairs.n_steps
            left, right, values, weights = np.array(<double[:4, :n]>stairs.left)
            counts = np.array(<Py_ssize_t[:n]>stairs.counts).astype(np.int64, copy=False)
            # if memory runs out, Cython 3.3.1 frees the entries of (*columns, counts) and of list comprehensions twice
            return left, right, values, weights, counts
        finally:
            free(stairs)

    def state(self):
        """Everything that is known of the rows, as plain numbers and arrays, or None if there are none.

        The last entry of each array is the newest observation.  A row of `words` holds the exact sums of a block,
        weight * target and weight, in units of the roomy scale of all rows; for Linex it holds a `Pooled`.
        """
        cdef Blocks *blocks = &self.fit.blocks
        cdef Py_ssize_t n
        check(add_waiting(self.fit))
        if blocks.n_rows == 0:
            return None
        n = blocks.stack.n + 1
        table = np.asarray(<uint64_t[:5, :blocks.room]><uint64_t *>blocks.stack.s)[:, :n].copy()
        words = np.ascontiguousarray(table[:2].T)
        if not blocks.stack.scale.narrow:
            words = np.array(<uint64_t[:n, :blocks.stack.n_words]>blocks.stack.words)
        return {
            "n_rows": blocks.n_rows,
            "targets": fields_of(self.fit.targets),
            "weights": fields_of(self.fit.weights),
            "total": (self.fit.total.hi, self.fit.total.lo),
            "starts": table[4].view(np.int64),
            "left": table[2].view(np.float64),
            "right": table[3].view(np.float64),
            "words": words,
        }

    def restore(self, state):
        """Replace the state, which must be valid, of an object without rows."""
        cdef Py_ssize_t n_rows = state["n_rows"]
        cdef const uint64_t[:, ::1] words = state["words"]
        cdef const uint64_t[:, ::1] table = np.stack((
            state["words"][:, 0], state["words"][:, 1], state["left"].view(np.uint64),
            state["right"].view(np.uint64), state["starts"].view(np.uint64),
        ))
        cdef Py_ssize_t n = table.shape[1]
        cdef Scale scale
        cdef Blocks saved
        self.fit.targets = range_from(state["targets"])
        self.fit.weights = range_from(state["weights"])
        scale = scale_for(self.fit, self.fit.targets, self.fit.weights, n_rows)
        assert self.fit.blocks.n_rows == 0 and n > 0 and words.shape[1] == scale.s_words + scale.w_words
        saved = blocks_in(<double *>&table[0, 0], n, scale, self.fit.decreasing, n - 1, n_rows)
        saved.stack.words = <uint64_t *>&words[0, 0]
        saved.stack.scale.tame = False            # so that sums in doubles are computed
        saved = copy_blocks(&saved, scale, self.fit.decreasing, n)
        if saved.room == 0:
            raise MemoryError
        self.fit.blocks = saved
        self.fit.newest = saved.left[n - 1]
        self.fit.total.hi, self.fit.total.lo = state["total"]


def extend(
    OnlineBlocks blocks not None,
    const double[::1] scores not None,         # IN
    const target_t[::1] targets not None,      # IN
    const double[::1] weights not None,        # IN  or empty: all are 1
    targets_extent not None,                   # IN  exact.Extent
    weights_extent not None,                   # IN  exact.Extent
):
    """Add rows."""
    cdef Range target_range = range_from(targets_extent[1:]), weight_range = range_from(weights_extent[1:])
    cdef const double *own = &weights[0] if weights.shape[0] else NULL
    cdef Outcome outcome
    with nogil:
        outcome = extend_fit(blocks.fit, &scores[0], &targets[0], own, targets.shape[0], target_range, weight_range)
    check(outcome)


cdef int check(Outcome outcome) except -1:
    if outcome == NO_MEMORY:
        raise MemoryError
    if outcome == WEIGHTS_OVERFLOW:
        raise InvalidInputError("sample_weight", "must have a finite sum over all rows", found="it overflows")
    return 0


cdef object fields_of(Range found):
    return found.lowest, found.highest, found.least, bool(found.integral)


cdef Range range_from(object fields) except *:
    cdef Range found
    found.first_bad = -1
    found.lowest, found.highest, found.least, found.integral = fields
    return found
