"""The online fit of `Online` (_online_memory.pxd), as a Python object.

Preconditions of its methods: as there.  An object is for one thread at a time; `Online` has a lock.
"""

import numpy as np

from staircase_fast.errors import InvalidInputError

from libc.stdint cimport uint64_t
from libc.stdlib cimport free
from libc.string cimport memcpy

from staircase_fast.arithmetic._column_scan cimport Range
from staircase_fast.arithmetic._exact cimport Scale
from staircase_fast.arithmetic._rounded cimport rounded_sum, rounded_weight
from staircase_fast.streams._online_memory cimport (
    CHUNK_ROWS, NO_MEMORY, WEIGHTS_OVERFLOW, OnlineFit, Outcome, add_waiting, count_rows, extend as extend_fit,
    free_online, make_room, new_online, new_steps, push_row, scale_for,
)
from staircase_fast.streams._online_stack cimport Blocks, target_t

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
    def nbytes(self):
        """Size of the arrays with an entry per block."""
        cdef const Blocks *blocks = &self.fit.blocks
        return blocks.room * (5 * sizeof(double) + 1 + (0 if blocks.stack.scale.narrow else blocks.stack.n_words) * 8)

    def append(self, double score, double target, double weight):
        """Add one row."""
        check(push_row(self.fit, score, target, weight))

    def steps(self, double lo, double hi):
        """The columns left, right, values, weights and counts of the staircase; values are clipped to [lo, hi]."""
        cdef Blocks steps
        cdef Py_ssize_t n
        check(add_waiting(self.fit))
        with nogil:
            steps = new_steps(self.fit, lo, hi)
        if steps.room == 0:
            raise MemoryError
        try:
            n = steps.stack.n
            return (
                copied(steps.left, n), copied(steps.right, n), copied(steps.stack.s, n), copied(steps.stack.w, n),
                np.asarray(<Py_ssize_t[:n]>steps.stack.starts).astype(np.int64),
            )
        finally:
            free(steps.stack.s)

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
        if blocks.stack.scale.narrow:
            words = np.stack([copied(blocks.stack.s, n), copied(blocks.stack.w, n)], axis=1).view(np.uint64)
        else:
            words = np.array(<uint64_t[:n, :blocks.stack.n_words]>blocks.stack.words)
        return {
            "n_rows": blocks.n_rows,
            "targets": fields_of(self.fit.targets),
            "weights": fields_of(self.fit.weights),
            "total": (self.fit.total.hi, self.fit.total.lo),
            "starts": np.array(<Py_ssize_t[:n]>blocks.stack.starts).astype(np.int64),
            "left": copied(blocks.left, n),
            "right": copied(blocks.right, n),
            "words": words,
        }

    def restore(self, state):
        """Replace the state, which must be valid, of an object without rows."""
        cdef const Py_ssize_t[::1] starts = state["starts"].astype(np.intp)
        cdef const double[::1] left = state["left"], right = state["right"]
        cdef const uint64_t[:, ::1] words = state["words"]
        cdef Py_ssize_t n = starts.shape[0], b, n_rows = state["n_rows"]
        cdef Blocks *blocks = &self.fit.blocks
        cdef Scale scale
        assert blocks.n_rows == 0 and n == left.shape[0] == right.shape[0] == words.shape[0] > 0
        self.fit.targets = range_from(state["targets"])
        self.fit.weights = range_from(state["weights"])
        scale = scale_for(self.fit, self.fit.targets, self.fit.weights, n_rows)
        assert words.shape[1] == (2 if scale.narrow else scale.s_words + scale.w_words)
        if not make_room(blocks, scale, self.fit.decreasing, n):
            raise MemoryError
        for b in range(n):
            blocks.stack.starts[b] = starts[b]
            blocks.left[b] = left[b]
            blocks.right[b] = right[b]
            if scale.narrow:
                memcpy(blocks.stack.s + b, &words[b, 0], sizeof(uint64_t))
                memcpy(blocks.stack.w + b, &words[b, 1], sizeof(uint64_t))
                continue
            memcpy(blocks.stack.words + b * words.shape[1], &words[b, 0], words.shape[1] * sizeof(uint64_t))
            blocks.stack.s[b] = rounded_sum(scale, &words[b, 0]) if scale.tame else 0.0
            blocks.stack.w[b] = rounded_weight(scale, &words[b, 0]) if scale.tame else 0.0
        blocks.stack.n = n - 1
        blocks.n_rows = n_rows
        self.fit.newest = left[n - 1]
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
        outcome = extend_fit(
            blocks.fit, &scores[0], &targets[0], own, targets.shape[0], target_range, weight_range
        )
    check(outcome)


cdef int check(Outcome outcome) except -1:
    if outcome == NO_MEMORY:
        raise MemoryError
    if outcome == WEIGHTS_OVERFLOW:
        raise InvalidInputError("sample_weight", "must have a finite sum over all rows", found="it overflows")
    return 0


cdef object copied(double *column, Py_ssize_t n):
    return np.array(<double[:n]>column)


cdef object fields_of(Range found):
    return found.lowest, found.highest, found.least, bool(found.integral)


cdef Range range_from(object fields) except *:
    cdef Range found
    found.first_bad = -1
    found.lowest, found.highest, found.least, found.integral = fields
    return found
