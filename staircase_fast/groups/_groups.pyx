"""The fits of many groups in one call (_one_group.pxd), whose rows are brought together as they are needed.

Kernels here assume clean input: weights > 0, finite targets that are exact in doubles, a Scale for the largest group,
and room for as many steps as rows.  Where targets look like labels, scores may be NaN and labels not what they look
like: then no step is right, and the kernel says so.
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from staircase_fast.arithmetic._column_scan cimport are_labels, has_nan
from staircase_fast.arithmetic._exact cimport unpacked
from staircase_fast.arithmetic._types cimport floating, number
from staircase_fast.groups._one_group cimport MOST_DIGITS, Columns, Room, Steps, Task, fit_one
from staircase_fast.groups._travel cimport ONE_DOUBLE, THREE_DOUBLES, double_in
from staircase_fast.stack._sort cimport RankedRow
from staircase_fast.stack._stack cimport empty_stack


def work_size(Py_ssize_t most_rows, Py_ssize_t part_rows, int n_words):
    """Words of work for groups of up to so many rows, of which so many are brought together at a time."""
    return most_rows * (11 + n_words) + MOST_DIGITS // 2 + 4 * part_rows


cdef Task new_task(
    object scale, bint decreasing, double lo, double hi, Py_ssize_t most_rows, Py_ssize_t part_rows, uint64_t *work,
    bint labels, bint weighted
) except *:
    cdef Task task
    cdef Room room
    cdef Py_ssize_t n = most_rows
    room.rows = <RankedRow *>work
    room.spare = room.rows + n
    room.starts = <Py_ssize_t *>(room.spare + n)
    room.y = <double *>(room.starts + n)
    room.w = room.y + n
    room.digits = <uint32_t *>(room.w + n)
    room.tied = <uint8_t *>(room.digits + n)
    room.known = room.tied + n
    room.ends = room.digits + 4 * n           # a word for digits, and one for both flags
    room.words = <uint64_t *>(room.ends + MOST_DIGITS)
    task.stack = empty_stack(unpacked(scale), decreasing, room.starts, NULL, NULL)
    task.stack.known = room.known
    task.stack.words = room.words
    task.lo = lo
    task.hi = hi
    task.room = room
    task.columns.x = <double *>(room.words + (0 if task.stack.scale.narrow else n * task.stack.n_words))
    task.columns.y = task.columns.x + part_rows
    task.columns.w = task.columns.y + part_rows if weighted else NULL
    task.columns.labels = <uint8_t *>(task.columns.x + 3 * part_rows) if labels else NULL
    return task


def fit_scattered(
    const uint32_t[:, ::1] rows not None,      # IN  from `_together.scatter`
    const int64_t[::1] starts not None,        # IN  first row of each group if all stood together, and one more
    const int64_t[::1] parts not None,         # IN  first group of each part, and one more
    Py_ssize_t first,                          # IN  fit the groups of parts [first, last)
    Py_ssize_t last,
    object scale not None,                     # IN  exact.Scale
    bint decreasing,
    double lo,
    double hi,
    Py_ssize_t most_rows,                      # IN  of a group, of those that are fitted
    Py_ssize_t part_rows,                      # IN  of a part
    uint64_t[::1] work not None,               # work: work_size(most_rows, part_rows, words of exact sums)
    int64_t[::1] places not None,              # work: one for each group
    int64_t[::1] n_steps not None,             # OUT of each group
    double[::1] left not None,                 # OUT steps of one group after the other
    double[::1] right not None,
    double[::1] values not None,
    double[::1] weights not None,
    int64_t[::1] counts not None,
):
    """Return how many steps there are, or -1: a score is NaN."""
    cdef Py_ssize_t width = rows.shape[1], p, group, start, n
    cdef Task task = new_task(
        scale, decreasing, lo, hi, most_rows, part_rows, &work[0], width == ONE_DOUBLE, width == THREE_DOUBLES
    )
    cdef bint fine = True
    task.steps = Steps(&left[0], &right[0], &values[0], &weights[0], &counts[0], 0)
    with nogil:
        for p in range(first, last):
            start = starts[parts[p]]
            for group in range(parts[p], parts[p + 1]):
                places[group] = starts[group] - start
            n = starts[parts[p + 1]] - start
            if n == 0:
                continue
            assert n <= part_rows
            bring(&task.columns, &rows[start, 0], width, n, &places[0])
            fine = fine and (task.columns.labels == NULL or not has_nan(task.columns.x, n))
            if not fine:
                break
            for group in range(parts[p], parts[p + 1]):
                n_steps[group] = fit_one(&task, starts[group] - start, starts[group + 1] - starts[group])
    return task.steps.n if fine else -1


cdef inline void bring(
    Columns *columns, const uint32_t *rows, Py_ssize_t width, Py_ssize_t n, int64_t *places
) noexcept nogil:
    """Bring rows of a part to their groups."""
    cdef Py_ssize_t at
    if width == ONE_DOUBLE:
        for _ in range(n):
            at = places[rows[0] >> 1]
            places[rows[0] >> 1] = at + 1
            columns.x[at] = double_in(rows + 1)
            columns.labels[at] = rows[0] & 1
            rows += ONE_DOUBLE
        return
    for _ in range(n):
        at = places[rows[0]]
        places[rows[0]] = at + 1
        columns.x[at] = double_in(rows + 1)
        columns.y[at] = double_in(rows + 3)
        if width == THREE_DOUBLES:
            columns.w[at] = double_in(rows + 5)
        rows += width


def fit_standing(
    const floating[::1] scores not None,       # IN  rows of a group stand together
    const number[::1] targets not None,        # IN
    const double[::1] given_weights not None,  # IN  or empty: all are 1
    bint labels,                               # IN  whether targets look like 0 and 1
    const int64_t[::1] begins not None,        # IN  first row of each group
    const int64_t[::1] sizes not None,         # IN  rows of each group
    Py_ssize_t first,                          # IN  fit the groups [first, last)
    Py_ssize_t last,
    object scale not None,                     # IN  exact.Scale
    bint decreasing,
    double lo,
    double hi,
    Py_ssize_t most_rows,                      # IN  of a group, of those that are fitted
    uint64_t[::1] work not None,               # work: work_size(most_rows, most_rows, words of exact sums)
    int64_t[::1] n_steps not None,             # OUT of each group
    double[::1] left not None,                 # OUT steps of one group after the other
    double[::1] right not None,
    double[::1] values not None,
    double[::1] weights not None,
    int64_t[::1] counts not None,
):
    """Return how many steps there are, or -1: a score is NaN, or a label neither 0 nor 1."""
    cdef const double *w = &given_weights[0] if given_weights.shape[0] else NULL
    cdef Task task = new_task(scale, decreasing, lo, hi, most_rows, most_rows, &work[0], labels, w != NULL)
    cdef Py_ssize_t group, start, n, i
    cdef bint fine = True
    task.steps = Steps(&left[0], &right[0], &values[0], &weights[0], &counts[0], 0)
    with nogil:
        for group in range(first, last):
            start = begins[group]
            n = sizes[group]
            assert n <= most_rows
            for i in range(n):
                task.columns.x[i] = <double>scores[start + i] + 0.0     # -0.0 becomes the 0.0 it equals
            if labels:
                fine = are_labels(&targets[start], n) and not has_nan(task.columns.x, n)
                if not fine:
                    break
                for i in range(n):
                    task.columns.labels[i] = targets[start + i] != 0
            else:
                for i in range(n):
                    task.columns.y[i] = <double>targets[start + i]
                    if w != NULL:
                        task.columns.w[i] = w[start + i]
            n_steps[group] = fit_one(&task, 0, n)
    return task.steps.n if fine else -1
