"""The fit of few rows in one call: several calls would take longer than the arithmetic.

What is not as it should be, or asks for much room, is left to the kernels that many rows take.
"""

from libc.math cimport INFINITY
from libc.stdint cimport int64_t, uint8_t, uint64_t

from staircase_fast._blocks cimport Stack, empty_stack, finish, push_rows
from staircase_fast._exact cimport Scale
from staircase_fast._range cimport Range, range_of
from staircase_fast._scale cimport scale_of

cdef enum:
    ROWS = 256
    WORDS = 4             # of exact sums

MOST_ROWS = ROWS

ctypedef struct Room:
    double x[ROWS]
    double y[ROWS]
    double w[ROWS]
    uint8_t tied[ROWS]
    Py_ssize_t starts[ROWS + 1]
    double s[ROWS]
    double step_w[ROWS]
    uint8_t known[ROWS]
    uint64_t words[ROWS * WORDS]


def fit(
    const double[::1] scores not None,         # IN  at most MOST_ROWS, in any order
    const double[::1] targets not None,        # IN  one per score
    const double[::1] weights not None,        # IN  one per score, or empty: all are 1
    double lowest,                             # IN  of targets that make sense
    double highest,
    bint decreasing,
    double lo,
    double hi,
    double[:, ::1] steps not None,             # OUT a column per step: left, right, value, weight, rows (as int64)
):
    """Fill the first columns of `steps`; return how many, or 0: rows are unfit for this."""
    cdef Room room
    cdef Stack stack
    cdef Range y, w = Range(-1, 1.0, 1.0, 1.0, True)
    cdef Scale scale
    cdef Py_ssize_t n = targets.shape[0], step, end
    cdef const double *row_weights = NULL
    with nogil:
        y = range_of(&targets[0], n)
        if weights.shape[0]:
            row_weights = room.w
            w = range_of(&weights[0], n)
        # a target of 2**53 may be an integer that was rounded
        stack.n = 0
        if (
            y.first_bad < 0 and w.first_bad < 0 and y.lowest >= lowest and y.highest <= highest
            and max(-y.lowest, y.highest) < 9007199254740992.0 and w.lowest > 0 and w.highest * n < INFINITY
            and sort(&room, &scores[0], &targets[0], &weights[0] if weights.shape[0] else NULL, n)
        ):
            scale = scale_of(y, w, n)
            if scale.s_words + scale.w_words <= WORDS:
                stack = empty_stack(scale, decreasing, room.starts, room.s, room.step_w)
                stack.known = room.known
                stack.words = room.words
                if scale.narrow:
                    push_rows(&stack, <const double *>room.y, row_weights, room.tied, <int64_t>0, 0, n)
                    finish(&stack, <const double *>room.y, row_weights, <int64_t>0, n, lo, hi)
                else:
                    push_rows(&stack, <const double *>room.y, row_weights, room.tied, <double>0, 0, n)
                    finish(&stack, <const double *>room.y, row_weights, <double>0, n, lo, hi)
        for step in range(stack.n):
            end = room.starts[step + 1] if step + 1 < stack.n else n
            steps[0, step] = room.x[room.starts[step]]
            steps[1, step] = room.x[end - 1]
            steps[2, step] = room.s[step]
            steps[3, step] = room.step_w[step]
            (<int64_t *>&steps[4, step])[0] = end - room.starts[step]
    return stack.n


cdef inline bint sort(
    Room *room, const double *scores, const double *targets, const double *weights, Py_ssize_t n
) noexcept nogil:
    """Rows into the room, in score order, with their ties; return whether no score is NaN."""
    cdef Py_ssize_t i, j
    cdef double x
    for i in range(n):
        x = scores[i] + 0.0                   # -0.0 becomes the 0.0 it equals
        if x != x:
            return False
        j = i
        while j > 0 and room.x[j - 1] > x:
            room.x[j] = room.x[j - 1]
            room.y[j] = room.y[j - 1]
            if weights != NULL:
                room.w[j] = room.w[j - 1]
            j -= 1
        room.x[j] = x
        room.y[j] = targets[i]
        if weights != NULL:
            room.w[j] = weights[i]
    room.tied[0] = 0
    for i in range(1, n):
        room.tied[i] = room.x[i] == room.x[i - 1]
    return True
