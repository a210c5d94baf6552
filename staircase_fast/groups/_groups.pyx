"""Gather the rows of each group, and fit many small groups in one call.

Rows that are not adjacent are first scattered into parts, ranges of groups whose rows fit the cache: writing to as many
places as there are groups would miss the cache at every row.  `fit_parts` then sorts each part by group.

A row in a part is a few adjacent 32-bit words, as few as possible, because fresh memory is slow:

    labels           number << 1 | label, and the score
    other targets    the number, the score, the target, and the weight if there are weights

Preconditions: n >= 1, contiguous columns, weights > 0, finite targets that are exact in doubles, a Scale for the
largest group, and room for as many steps as rows.  Scores may be NaN and guessed labels may be other numbers: then the
kernels report it.  Groups may change during a call: rows then get any group, but memory stays valid.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy

from staircase_fast.arithmetic._column_scan cimport are_labels, has_nan
from staircase_fast.arithmetic._exact cimport unpacked
from staircase_fast.arithmetic._types cimport BATCH, floating, number
from staircase_fast.stack._small_fit cimport MOST_DIGITS, Columns, Room, Steps, Task, fit_one
from staircase_fast.stack._sort cimport RankedRow
from staircase_fast.stack._stack cimport empty_stack

ctypedef fused integer:
    uint8_t
    int32_t
    int64_t

cdef enum:                # 32-bit words of a row with one to three doubles
    ONE_DOUBLE = 3
    TWO_DOUBLES = 5
    THREE_DOUBLES = 7

# rows with a label; with another target; with a weight as well
ROW_WORDS = ONE_DOUBLE, TWO_DOUBLES, THREE_DOUBLES


cdef inline void put(uint32_t *words, double value) noexcept nogil:
    memcpy(words, &value, sizeof(double))


cdef inline double double_in(const uint32_t *words) noexcept nogil:
    cdef double value
    memcpy(&value, words, sizeof(double))
    return value


def number_rows(
    const integer[::1] groups not None,        # IN
    int64_t low,                               # IN  the smallest group
    const int32_t[::1] ranks not None,         # IN  the number of each group from `low` on, or empty: 0, 1, ..
    int32_t[::1] numbers not None,             # OUT of each row
    uint32_t[::1] counts not None,             # IN/OUT rows of each number, fewer than 2**32
):
    cdef Py_ssize_t i
    cdef uint64_t own, n_ranks = ranks.shape[0], n_numbers = counts.shape[0]
    cdef bint ranked = n_ranks > 0
    with nogil:
        for i in range(groups.shape[0]):
            own = <uint64_t><int64_t>groups[i] - <uint64_t>low
            if ranked:
                own = <uint64_t>ranks[own] if own < n_ranks else 0
            if own >= n_numbers:                          # a group that changed after `low` was found
                own = 0
            numbers[i] = <int32_t>own
            counts[own] += 1


def order_rows(
    const int32_t[::1] numbers not None,       # IN
    int64_t[::1] places not None,              # IN/OUT where the next row of each number goes
    Py_ssize_t[::1] order not None,            # OUT rows by number, in input order within each number
):
    cdef Py_ssize_t i
    cdef int32_t own
    with nogil:
        for i in range(numbers.shape[0]):
            own = numbers[i]
            order[places[own]] = i
            places[own] += 1


def scatter(
    const floating[::1] scores not None,       # IN
    const number[::1] targets not None,        # IN
    const double[::1] weights not None,        # IN  or empty: all are 1
    const int32_t[::1] numbers not None,       # IN
    const uint16_t[::1] part_of not None,      # IN  the part of each number
    int64_t[::1] places not None,              # IN/OUT where the next row of each part goes
    uint32_t[:, ::1] rows not None,            # OUT with one of ROW_WORDS columns
):
    """Return False if a target that should be 0 or 1 is not."""
    cdef Py_ssize_t n = scores.shape[0], start = 0, size
    cdef const double *w = &weights[0] if weights.shape[0] else NULL
    cdef bint fine = True
    with nogil:
        while start < n and fine:
            size = min(BATCH, n - start)
            if rows.shape[1] == ONE_DOUBLE:
                fine = are_labels(&targets[start], size)
            scatter_batch(
                &scores[start], &targets[start], w if w == NULL else w + start, &numbers[start], size, &part_of[0],
                &places[0], &rows[0, 0], rows.shape[1]
            )
            start += size
    return bool(fine)


cdef inline void scatter_batch(
    const floating *x, const number *y, const double *w, const int32_t *numbers, Py_ssize_t n,
    const uint16_t *part_of, int64_t *places, uint32_t *rows, Py_ssize_t width
) noexcept nogil:
    cdef Py_ssize_t i, part
    cdef uint32_t *out
    for i in range(n):
        part = part_of[numbers[i]]
        out = rows + width * places[part]
        places[part] += 1
        put(out + 1, <double>x[i] + 0.0)                  # -0.0 becomes the 0.0 it equals
        if width == ONE_DOUBLE:
            out[0] = <uint32_t>numbers[i] << 1 | (y[i] != 0)
        else:
            out[0] = <uint32_t>numbers[i]
            put(out + 3, <double>y[i])
            if width == THREE_DOUBLES:
                put(out + 5, w[i])


def work_size(Py_ssize_t max_rows, Py_ssize_t part_rows, int n_words):
    """Words of work for groups of up to `max_rows` rows in parts of up to `part_rows` rows."""
    return max_rows * (8 + n_words) + 1 + MOST_DIGITS // 2 + 4 * part_rows


cdef Task new_task(
    object scale, bint decreasing, double lo, double hi, Py_ssize_t max_rows, Py_ssize_t part_rows, uint64_t *work,
    bint labels, bint weighted
) except *:
    cdef Task task
    cdef Room room
    cdef Py_ssize_t n = max_rows
    room.rows = work
    room.spare = <RankedRow *>work + n
    room.starts = <Py_ssize_t *>(<RankedRow *>work + 2 * n)
    room.tied = <uint8_t *>(room.starts + n + 1)          # one word for all flags
    room.known = room.tied + n
    room.live = room.known + n
    room.ends = <uint32_t *>(room.starts + 2 * n + 1)
    room.words = <uint64_t *>(room.ends + MOST_DIGITS)
    task.stack = empty_stack(unpacked(scale), decreasing, room.starts, NULL, NULL)
    task.stack.known = room.known
    task.stack.words = room.words
    task.lo, task.hi = lo, hi
    task.room = room
    task.columns.x = <double *>(room.words + (0 if task.stack.scale.narrow else n * task.stack.n_words))
    task.columns.y = task.columns.x + part_rows
    task.columns.w = task.columns.y + part_rows if weighted else NULL
    task.columns.labels = <uint8_t *>(task.columns.x + 3 * part_rows) if labels else NULL
    return task


def fit_parts(
    const floating[::1] scores not None,       # IN  the rows of each group are adjacent, unless there are `rows`
    const number[::1] targets not None,        # IN
    const double[::1] given_weights not None,  # IN  or empty: all are 1
    const uint32_t[:, ::1] rows not None,      # IN  from `scatter`; or none: each group is a part
    const int64_t[::1] begins not None,        # IN  first row of each group
    const int64_t[::1] sizes not None,         # IN  rows of each group
    const int64_t[::1] parts not None,         # IN  first group of each part, and one more entry
    Py_ssize_t first, Py_ssize_t last,         # IN  fit the groups of parts [first, last)
    object scale not None,                     # IN  exact.Scale
    bint decreasing,
    double lo, double hi,
    Py_ssize_t max_rows,                       # IN  of a group
    Py_ssize_t part_rows,                      # IN  of a part
    uint64_t[::1] work not None,               # work: work_size(max_rows, part_rows, words of exact sums)
    int64_t[::1] places not None,              # work: one entry per group, if there are `rows`
    int64_t[::1] n_steps not None,             # OUT of each group
    double[::1] left not None,                 # OUT steps, one group after the other
    double[::1] right not None, double[::1] values not None, double[::1] weights not None,
    int64_t[::1] counts not None,
):
    """Return the number of steps, or -1 if a score is NaN or a label is neither 0 nor 1."""
    cdef const double *w = &given_weights[0] if given_weights.shape[0] else NULL
    cdef Py_ssize_t width = rows.shape[1], p, group, start, n
    cdef Task task = new_task(
        scale, decreasing, lo, hi, max_rows, part_rows, &work[0], width == ONE_DOUBLE, width == THREE_DOUBLES
    )
    cdef bint fine = True
    task.steps = Steps(&left[0], &right[0], &values[0], &weights[0], &counts[0], 0)
    with nogil:
        for p in range(first, last):
            start = begins[parts[p]]
            n = 0
            for group in range(parts[p], parts[p + 1]):
                if rows.shape[0]:
                    places[group] = n
                n += sizes[group]
            if n == 0:
                continue
            assert n <= part_rows
            if rows.shape[0]:
                sort_by_group(&task.columns, &rows[start, 0], width, n, &places[0])
            else:
                fine = copy_rows(&task.columns, &scores[start], &targets[start], w if w == NULL else w + start, n)
            fine = fine and not has_nan(task.columns.x, n)
            if not fine:
                break
            fit_groups(&task, &sizes[0], parts[p], parts[p + 1], &n_steps[0])
    return task.steps.n if fine else -1


cdef void fit_groups(
    Task *task, const int64_t *sizes, Py_ssize_t first, Py_ssize_t last, int64_t *n_steps
) noexcept nogil:
    """Fit the groups [first, last), whose rows are one after the other in `task.columns`."""
    cdef Py_ssize_t group, start = 0
    for group in range(first, last):
        n_steps[group] = fit_one(task, start, sizes[group])
        start += sizes[group]


cdef inline bint copy_rows(
    Columns *columns, const floating *x, const number *y, const double *w, Py_ssize_t n
) noexcept nogil:
    """Return False if a target that should be 0 or 1 is not."""
    cdef Py_ssize_t i
    for i in range(n):
        columns.x[i] = <double>x[i] + 0.0
    if columns.labels != NULL:
        for i in range(n):
            columns.labels[i] = y[i] != 0
        return are_labels(y, n)
    for i in range(n):
        columns.y[i] = <double>y[i]
        if w != NULL:
            columns.w[i] = w[i]
    return True


cdef inline void sort_by_group(
    Columns *columns, const uint32_t *rows, Py_ssize_t width, Py_ssize_t n, int64_t *places
) noexcept nogil:
    cdef Py_ssize_t at, group
    for _ in range(n):
        group = rows[0] >> 1 if width == ONE_DOUBLE else rows[0]
        at = places[group]
        places[group] = at + 1
        columns.x[at] = double_in(rows + 1)
        if width == ONE_DOUBLE:
            columns.labels[at] = rows[0] & 1
        else:
            columns.y[at] = double_in(rows + 3)
            if width == THREE_DOUBLES:
                columns.w[at] = double_in(rows + 5)
        rows += width
