# The fit of few rows, in the cache: sort them unless they are sorted, find ties, merge.
#
# Nearly sorted rows are sorted by insertion, all others by a bucket sort.  The score range is divided into *digits*,
# buckets of equal width, about one per row; digits with many rows are divided again by rank (_sort.pxd); then insertion
# sort finishes.  If the largest digit has a large part of the rows, all rows are divided by rank from the start.  (For
# normally distributed scores, this would take up to 18 % more instructions for the whole fit.)
#
# A label is stored in the last bit of its score's rank.  Labels are pushed in runs of rows in which no 1 follows a 0
# (no 0 follows a 1 if values decrease): no step ends inside a run.  Runs of random labels have four rows on average.
#
# Preconditions: no score is NaN or -0.0, weights > 0, finite targets, a Scale for them, outputs with room for as many
# steps as rows.

from libc.math cimport INFINITY
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from staircase_fast.arithmetic._score_scan cimport count_falls, nearly_sorted
from staircase_fast.arithmetic._types cimport number
from staircase_fast.stack._keys cimport find_ends, insert_columns, label_fits
from staircase_fast.stack._rows cimport find_ties, merge_rows
from staircase_fast.stack._sort cimport (
    FEW, RankedKey, RankedRow, RankedTarget, bits_of, double_of, insert, rank_of, ranked, score_of, sortable, spread,
    spread_crowds,
)
from staircase_fast.stack._stack cimport Stack, finish, push

cdef enum:
    MOST_DIGITS = 65536
    CROWD = 8                 # a digit with more than one in CROWD rows: divide by rank
    LABELS_FOR_A_PLAN = 2048
    ROWS_FOR_A_PLAN = 64      # fewer rows are pushed one by one

# Work space with one entry per row, unless noted.
ctypedef struct Room:
    void *rows                # RankedRow, or RankedTarget, or RankedKey
    void *spare               # the same; after the sort, targets and weights, or runs of labels
    Py_ssize_t *starts
    uint64_t *words           # exact sums
    uint8_t *tied
    uint8_t *known
    uint8_t *live             # whether a bucket can contain the end of a step (_rows.pxd); one entry per bucket
    uint32_t *ends            # MOST_DIGITS entries

# The rows of several groups.
ctypedef struct Columns:
    double *x
    double *y                 # not used for labels
    double *w                 # or NULL: all are 1
    uint8_t *labels           # or NULL: targets are in y

# Where steps are written.
ctypedef struct Steps:
    double *left
    double *right
    double *values
    double *weights
    int64_t *counts
    Py_ssize_t n

ctypedef struct Task:
    Stack stack               # empty; fit_one sets s and w
    double lo
    double hi
    Room room
    Columns columns
    Steps steps


cdef inline Py_ssize_t fit_one(Task *task, Py_ssize_t at, Py_ssize_t n) noexcept nogil:
    """Fit the rows [at, at + n), which may be unsorted, and append the steps; return the number of steps."""
    return fit_some(task, at, n, count_falls(task.columns.x + at, n))


cdef inline Py_ssize_t fit_some(Task *task, Py_ssize_t at, Py_ssize_t n, Py_ssize_t falls) noexcept nogil:
    """The same, if `falls` scores are below the one before them."""
    cdef Columns *rows = &task.columns
    cdef double low, high
    if n == 0:
        return 0
    if nearly_sorted(falls, n) and fit_nearly_sorted(task, at, n, falls):
        return task.stack.n
    find_ends(rows.x + at, n, &low, &high)
    if rows.labels != NULL and label_fits(low, high):
        fit_rows(task, at, n, low, high, <RankedKey *>task.room.rows)
    elif rows.w == NULL:
        fit_rows(task, at, n, low, high, <RankedTarget *>task.room.rows)
    else:
        fit_rows(task, at, n, low, high, <RankedRow *>task.room.rows)
    return task.stack.n


cdef inline void clear_stack(Task *task) noexcept nogil:
    """Make the stack empty; its blocks become the next steps."""
    task.stack.n = 0
    task.stack.s = task.steps.values + task.steps.n
    task.stack.w = task.steps.weights + task.steps.n


cdef inline bint fit_nearly_sorted(Task *task, Py_ssize_t at, Py_ssize_t n, Py_ssize_t falls) noexcept nogil:
    """Fit the rows [at, at + n), if insertion sorts them quickly; otherwise return False."""
    cdef const double *x = task.columns.x + at
    cdef const double *y = task.columns.y + at
    cdef const double *w = NULL if task.columns.w == NULL else task.columns.w + at
    cdef const uint8_t *labels = NULL if task.columns.labels == NULL else task.columns.labels + at
    cdef double *sorted_x = <double *>task.room.rows
    cdef void *sorted_y = sorted_x + n
    cdef double *sorted_w = <double *>task.room.spare
    if labels != NULL:
        if falls:
            if not insert_columns(NULL, x, labels, NULL, n, sorted_x, <uint8_t *>sorted_y, NULL):
                return False
            x, labels = sorted_x, <const uint8_t *>sorted_y
        fit_ascending(task, x, labels, NULL, flag_ties(task, x, n), n, False)
    else:
        if falls:
            if not insert_columns(NULL, x, <const uint64_t *>y, w, n, sorted_x, <uint64_t *>sorted_y, sorted_w):
                return False
            x, y, w = sorted_x, <const double *>sorted_y, NULL if w == NULL else sorted_w
        fit_ascending(task, x, y, w, flag_ties(task, x, n), n, False)
    return True


cdef inline const uint8_t *flag_ties(Task *task, const double *x, Py_ssize_t n) noexcept nogil:
    """Flags of tied rows, or NULL if there are none."""
    return task.room.tied if find_ties(x, n, task.room.tied) else NULL


cdef inline void fit_ascending(
    Task *task, const double *x, const number *y, const double *w, const uint8_t *tied, Py_ssize_t n, bint summarised
) noexcept nogil:
    """Fit sorted rows; `summarised`: their buckets are in place (`merge_rows`)."""
    cdef Steps *steps = &task.steps
    cdef Py_ssize_t *starts = task.room.starts
    cdef Py_ssize_t step
    clear_stack(task)
    merge_sorted(task, y, w, tied, n, summarised)
    for step in range(task.stack.n):
        steps.left[steps.n] = x[starts[step]]
        steps.right[steps.n] = x[starts[step + 1] - 1]
        steps.counts[steps.n] = starts[step + 1] - starts[step]
        steps.n += 1


cdef inline void merge_sorted(
    Task *task, const number *y, const double *w, const uint8_t *tied, Py_ssize_t n, bint summarised
) noexcept nogil:
    cdef uint8_t *live = NULL
    if n >= LABELS_FOR_A_PLAN and tied == NULL if number is uint8_t else n >= ROWS_FOR_A_PLAN and task.stack.scale.tame:
        live = task.room.live
    merge_rows(&task.stack, y, w, tied, n, task.lo, task.hi, live, summarised)
    task.room.starts[task.stack.n] = n


cdef inline void fit_rows(
    Task *task, Py_ssize_t at, Py_ssize_t n, double low, double high, sortable *rows
) noexcept nogil:
    """Fit the rows [at, at + n), whose scores are in [low, high]; `rows` is work space."""
    sort_group(task, at, n, low, high, rows)
    fit_sorted(task, n, rank_of(low), rows)


cdef inline void fit_sorted(Task *task, Py_ssize_t n, uint64_t first, sortable *rows) noexcept nogil:
    """Fit sorted rows; `first` is the least rank, to which theirs are relative."""
    cdef Steps *steps = &task.steps
    cdef int shift = 1 if sortable is RankedKey else 0            # the last bit of a RankedKey is the label
    cdef Py_ssize_t *starts = task.room.starts
    cdef Py_ssize_t step
    clear_stack(task)
    if sortable is RankedKey:
        merge_labels(task, n, rows)
    else:
        merge_reals(task, n, rows)
    for step in range(task.stack.n):
        steps.left[steps.n] = score_of((rows[starts[step]].rank >> shift) + first)
        steps.right[steps.n] = score_of((rows[starts[step + 1] - 1].rank >> shift) + first)
        steps.counts[steps.n] = starts[step + 1] - starts[step]
        steps.n += 1


cdef inline void sort_group(
    Task *task, Py_ssize_t at, Py_ssize_t n, double low, double high, sortable *rows
) noexcept nogil:
    """Copy the rows [at, at + n) to `rows`, sorted by score; ranks are stored relative to the rank of `low`."""
    cdef const double *x = task.columns.x + at
    cdef const uint8_t *labels = task.columns.labels
    cdef uint32_t *ends = task.room.ends
    cdef uint64_t first = rank_of(low), last
    cdef Py_ssize_t i, digit, place, n_digits = 32, most = 0
    cdef double scale
    while n_digits < n and n_digits < MOST_DIGITS:
        n_digits *= 2
    scale = count_digits(ends, x, n, low, high, n_digits, &most)
    for i in range(n):
        place = i
        if scale > 0:
            digit = digit_of(x[i], low, scale)
            place = ends[digit]
            ends[digit] += 1
        rows[place].rank = rank_of(x[i]) - first
        if sortable is RankedKey:
            rows[place].rank = rows[place].rank << 1 | labels[at + i]
        else:
            rows[place].y = bits_of(<double>labels[at + i] if labels != NULL else task.columns.y[at + i])
        if sortable is RankedRow:
            rows[place].w = bits_of(task.columns.w[at + i])
    if scale == 0 and n > FEW:
        memcpy(task.room.spare, rows, n * sizeof(sortable))
        last = (rank_of(high) - first) << 1 | 1 if sortable is RankedKey else rank_of(high) - first
        spread(<sortable *>task.room.spare, n, 0, last, ends, MOST_DIGITS, rows)
    elif most > FEW:
        spread_crowds(rows, ends, n_digits, <sortable *>task.room.spare)
    insert(rows, n)


cdef inline Py_ssize_t digit_of(double score, double low, double scale) noexcept nogil:
    return <Py_ssize_t>((score - low) * scale)


cdef inline double count_digits(
    uint32_t *ends, const double *x, Py_ssize_t n, double low, double high, Py_ssize_t n_digits, Py_ssize_t *most
) noexcept nogil:
    """Set `ends` to the first index of each digit (scattering advances it); return the scale, or 0: no digits."""
    cdef Py_ssize_t i, d
    cdef uint32_t start = 0, size
    cdef double scale = (<double>n_digits - 0.5) / (high - low)
    if n <= FEW:
        return 0.0
    if not (high - low < INFINITY and scale < INFINITY):
        return 0.0
    memset(ends, 0, n_digits * sizeof(uint32_t))
    for i in range(n):
        ends[digit_of(x[i], low, scale)] += 1
    for d in range(n_digits):
        size = ends[d]
        ends[d] = start
        start += size
        most[0] = max(most[0], size)
    return scale if most[0] <= max(FEW, n // CROWD) else 0.0


cdef inline void merge_labels(Task *task, Py_ssize_t n, const RankedKey *keys) noexcept nogil:
    cdef uint8_t *labels = <uint8_t *>task.room.spare
    cdef uint8_t *tied = task.room.tied
    cdef uint8_t found = 0
    cdef Py_ssize_t i
    labels[0] = keys[0].rank & 1
    tied[0] = 0
    for i in range(1, n):
        labels[i] = keys[i].rank & 1
        tied[i] = (keys[i].rank ^ keys[i - 1].rank) < 2
        found |= tied[i]
    merge_sorted(task, <const uint8_t *>labels, NULL, tied if found else NULL, n, False)


cdef inline void merge_reals(Task *task, Py_ssize_t n, const ranked *rows) noexcept nogil:
    cdef Room *room = &task.room
    cdef double *y = <double *>room.spare
    cdef double *w = y + n if ranked is RankedRow else NULL
    cdef const uint8_t *tied = NULL
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = double_of(rows[i].y)
        if ranked is RankedRow:
            w[i] = double_of(rows[i].w)
        room.tied[i] = i > 0 and rows[i].rank == rows[i - 1].rank
        if room.tied[i]:
            tied = room.tied
    merge_sorted(task, <const double *>y, w, tied, n, False)
