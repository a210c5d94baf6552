"""The fit of sorted rows by the block-merge stack (_rows.pxd, _stack.pxd).

Preconditions: n >= 1, contiguous rows, finite targets, weights finite and > 0, a Scale made for them, and outputs with
room for n steps.
"""

from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.string cimport memset

from staircase_fast.arithmetic._exact cimport MAX_WORDS, Scale, unpacked
from staircase_fast.arithmetic._rounded cimport rounded_sum
from staircase_fast.arithmetic._row_sums cimport add_rows
from staircase_fast.arithmetic._types cimport floating, number
from staircase_fast.stack._rows cimport expand_steps, find_ties, merge_rows, place_work, sum_integers, work_words
from staircase_fast.stack._stack cimport Stack, empty_stack, finish, sum_rows


def merge(
    const floating[::1] scores not None,       # IN  sorted, in either direction; or empty: all differ
    const number[::1] targets not None,        # IN  in score order
    const double[::1] weights not None,        # IN  one per target, or empty: all are 1
    object scale not None,                     # IN  exact.Scale
    bint decreasing,
    double lo,
    double hi,
    bint every_row,                            # IN  push every row by itself, without a plan
    bint summarised,                           # IN  whether the buckets are in `values` already
    Py_ssize_t[::1] starts not None,           # OUT first row of each step, then the number of rows
    double[::1] values not None,               # OUT
    double[::1] step_weights not None,         # OUT
    uint64_t[::1] work not None,               # work: work_size(n, scale.s_words + scale.w_words)
):
    """Fit the rows; write the steps to the start of the outputs and return their number."""
    cdef Py_ssize_t n = targets.shape[0]
    cdef const number *y = &targets[0]
    cdef const double *w = &weights[0] if weights.shape[0] else NULL
    cdef Stack stack = empty_stack(unpacked(scale), decreasing, &starts[0], &values[0], &step_weights[0])
    cdef uint8_t *tied = place_work(&stack, &work[0], n)
    cdef uint8_t *live = NULL if every_row or not stack.scale.tame else tied + n
    with nogil:
        if scores.shape[0] == 0 or not find_ties(&scores[0], n, tied):
            tied = NULL
        merge_rows(&stack, y, w, tied, n, lo, hi, live, summarised)
        starts[stack.n] = n
    return stack.n


def pool(
    const number[::1] targets not None,        # IN
    const double[::1] weights not None,        # IN  one per target, or empty: all are 1
    object scale not None,                     # IN  exact.Scale
    double lo,
    double hi,
    double[::1] values not None,               # OUT one entry
    double[::1] step_weights not None,         # OUT one entry
):
    """Fit rows whose scores are all equal: one step."""
    cdef Py_ssize_t start = 0
    cdef uint8_t known = True
    cdef uint64_t words[MAX_WORDS]
    cdef const double *w = &weights[0] if weights.shape[0] else NULL
    cdef Stack stack = empty_stack(unpacked(scale), False, &start, &values[0], &step_weights[0])
    stack.known = &known
    stack.words = words
    stack.n = 1
    with nogil:
        if stack.scale.narrow:
            sum_integers(&targets[0], w, 0, targets.shape[0], <int64_t *>stack.s, <int64_t *>stack.w)
            finish(&stack, &targets[0], w, <int64_t>0, targets.shape[0], lo, hi)
        else:
            sum_rows(&stack, &targets[0], w, words, 0, targets.shape[0])
            finish(&stack, &targets[0], w, <double>0, targets.shape[0], lo, hi)


def work_size(Py_ssize_t n, int n_words):
    """Words of work space for `merge` of n rows whose exact sums have `n_words` words."""
    return work_words(n, n_words)


def expand(
    const double[::1] values not None,         # IN  one per step
    const Py_ssize_t[::1] starts not None,     # IN  first row of each step, then the number of rows
    Py_ssize_t step,                           # IN  the step of row `first`
    Py_ssize_t first,                          # IN  the first row to write
    double[::1] out not None,                  # OUT values of the rows from `first` on
):
    """Write the value of each row."""
    with nogil:
        expand_steps(&values[0], &starts[0], step, first, &out[0], out.shape[0])


def describe(
    const floating[::1] scores not None,       # IN
    const Py_ssize_t[::1] starts not None,     # IN  from `merge`, with the number of rows
    double[::1] left not None,                 # OUT one per step
    double[::1] right not None,                # OUT
    int64_t[::1] counts not None,              # OUT
):
    """Find the first and the last score of each step and its number of rows."""
    cdef Py_ssize_t step
    with nogil:
        for step in range(counts.shape[0]):
            left[step] = scores[starts[step]]
            right[step] = scores[starts[step + 1] - 1]
            counts[step] = starts[step + 1] - starts[step]


def totals(
    const double[::1] values not None,         # IN
    object scale not None,                     # IN  exact.Scale for these values with weights 1
    const int64_t[::1] starts not None,        # IN  first entry of each segment
    double[::1] out not None,                  # OUT one per segment
):
    """Sum the values of each segment, rounded once.  The sums must be within the range of doubles."""
    cdef Scale s = unpacked(scale)
    cdef uint64_t sums[MAX_WORDS]
    cdef Py_ssize_t i, end
    with nogil:
        for i in range(starts.shape[0]):
            end = starts[i + 1] if i + 1 < starts.shape[0] else values.shape[0]
            memset(sums, 0, (s.s_words + s.w_words) * sizeof(uint64_t))
            add_rows(s, sums, &values[0], NULL, starts[i], end)
            out[i] = rounded_sum(s, sums)
