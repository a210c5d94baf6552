# The fit of one small group: sort the rows, find ties, push, finish.
#
# Rows are distributed to digits of equal width between the least and the greatest score, about as many as there are
# rows, and then sorted by insertion.  If a digit has too many rows, the sort of stack/_sort.pxd is used.
#
# A label is stored in the last bit of its score's rank.  Labels are pushed in runs: consecutive rows without a rise lie
# on one step, whatever the other rows are.  Runs of random labels have four rows on average.
#
# Preconditions: no score is NaN or -0.0, weights > 0, finite targets, a Scale for them, outputs with room for as many
# steps as rows.

from libc.math cimport INFINITY
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memset

from staircase_fast.arithmetic._branchless cimport greater, lesser
from staircase_fast.arithmetic._simd cimport Pair, pair_first, pair_greater, pair_lesser, pair_of, pair_second
from staircase_fast.stack._sort cimport (
    FEW, RankedKey, RankedRow, RankedTarget, bits_of, double_of, insert, rank_of, ranked, score_of, sort_rows, sortable,
)
from staircase_fast.stack._stack cimport Stack, finish, push, push_rows

cdef enum:
    MOST_DIGITS = 4096

# Work space, one entry per row except for `ends`.
ctypedef struct Room:
    RankedRow *rows              # or RankedTarget, or RankedKey
    RankedRow *spare
    Py_ssize_t *starts
    double *y
    double *w
    uint64_t *words           # exact sums
    uint32_t *digits
    uint8_t *tied
    uint8_t *known
    uint32_t *ends            # of digits

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
    Stack stack               # empty, without arrays
    double lo
    double hi
    Room room
    Columns columns
    Steps steps


cdef inline Py_ssize_t fit_one(Task *task, Py_ssize_t at, Py_ssize_t n) noexcept nogil:
    """Append the steps of the group with the rows [at, at + n); return their number."""
    cdef Columns rows = task.columns
    cdef double low, high
    cdef Py_ssize_t i
    task.stack.n = 0
    task.stack.s = task.steps.values + task.steps.n
    task.stack.w = task.steps.weights + task.steps.n
    if n == 0:
        return 0
    find_ends(rows.x + at, n, &low, &high)
    if rows.labels != NULL and rank_of(high) - rank_of(low) < <uint64_t>1 << 63:
        fit_labels(task, rows.x + at, rows.labels + at, n, low, high)
        return task.stack.n
    if rows.labels != NULL:
        for i in range(at, at + n):
            rows.y[i] = rows.labels[i]
    if rows.w == NULL:
        fit_reals(task, rows.x + at, rows.y + at, NULL, n, low, high, <RankedTarget *>task.room.rows)
    else:
        fit_reals(task, rows.x + at, rows.y + at, rows.w + at, n, low, high, task.room.rows)
    return task.stack.n


cdef inline void find_ends(const double *x, Py_ssize_t n, double *low, double *high) noexcept nogil:
    """Find the least and the greatest score."""
    cdef Pair least = pair_of(x[0], x[n - 1]), greatest = least, two
    cdef Py_ssize_t i
    for i in range(0, n - 1, 2):
        two = pair_of(x[i], x[i + 1])
        least = pair_lesser(two, least)
        greatest = pair_greater(two, greatest)
    low[0] = lesser(pair_first(least), pair_second(least))
    high[0] = greater(pair_first(greatest), pair_second(greatest))


cdef inline bint find_digits(Room *room, const double *x, Py_ssize_t n, double low, double high) noexcept nogil:
    """Find the digit of each row and the start of each digit; return whether all digits have few rows."""
    cdef Py_ssize_t i, d, n_digits = 32
    cdef uint32_t start = 0, size, most = 0
    cdef double scale
    if n <= FEW:
        return False
    while n_digits < n and n_digits < MOST_DIGITS:
        n_digits *= 2
    scale = (<double>n_digits - 0.5) / (high - low)
    if not (high - low < INFINITY and scale < INFINITY):
        return False
    memset(room.ends, 0, n_digits * sizeof(uint32_t))
    for i in range(n):
        # the minimum matters only if a score changed during the call
        room.digits[i] = min(<uint32_t><int64_t>((x[i] - low) * scale), <uint32_t>(n_digits - 1))
        room.ends[room.digits[i]] += 1
    for d in range(n_digits):
        size = room.ends[d]
        room.ends[d] = start
        start += size
        most = max(most, size)
    return most <= FEW


cdef inline Py_ssize_t place_of(Room *room, Py_ssize_t row, bint by_digits) noexcept nogil:
    cdef Py_ssize_t place = row
    if by_digits:
        place = room.ends[room.digits[row]]
        room.ends[room.digits[row]] += 1
    return place


cdef inline void sort_placed(sortable *rows, Py_ssize_t n, bint by_digits, sortable *spare) noexcept nogil:
    if by_digits:
        insert(rows, n)
    else:
        sort_rows(rows, n, spare)


cdef inline void fit_labels(
    Task *task, const double *x, const uint8_t *labels, Py_ssize_t n, double low, double high
) noexcept nogil:
    cdef Room *room = &task.room
    cdef RankedKey *words = <RankedKey *>room.rows
    cdef uint64_t first = rank_of(low)
    cdef Py_ssize_t i, step, start, end
    cdef bint by_digits = find_digits(room, x, n, low, high)
    for i in range(n):
        words[place_of(room, i, by_digits)].rank = (rank_of(x[i]) - first) << 1 | labels[i]
    sort_placed(words, n, by_digits, <RankedKey *>room.spare)
    push_labels(&task.stack, room, words, n)
    finish(&task.stack, labels, NULL, <int64_t>0, n, task.lo, task.hi)
    for step in range(task.stack.n):
        start = room.starts[step]
        end = room.starts[step + 1] if step + 1 < task.stack.n else n
        describe(
            &task.steps, score_of((words[start].rank >> 1) + first), score_of((words[end - 1].rank >> 1) + first),
            end - start
        )


cdef inline void describe(Steps *steps, double left, double right, Py_ssize_t count) noexcept nogil:
    steps.left[steps.n] = left
    steps.right[steps.n] = right
    steps.counts[steps.n] = count
    steps.n += 1


cdef inline void push_labels(Stack *stack, Room *room, const RankedKey *words, Py_ssize_t n) noexcept nogil:
    """Push runs of rows.  Tied rows are a run of their own."""
    cdef uint32_t *begins = <uint32_t *>room.spare
    cdef uint32_t *sums = begins + n + 1
    cdef uint8_t *tied = room.tied            # n + 1 entries: the next is `known`, not used for int64
    cdef uint32_t ones = words[0].rank & 1
    cdef uint64_t flip = 1 if stack.decreasing else 0
    cdef Py_ssize_t i, run, n_runs = 1
    tied[0] = tied[n] = 0
    for i in range(1, n):
        tied[i] = (words[i].rank ^ words[i - 1].rank) < 2
    begins[0] = 0
    sums[0] = 0
    for i in range(1, n):
        begins[n_runs] = <uint32_t>i
        sums[n_runs] = ones
        # a rise: label 1 after label 0; if values decrease, 0 after 1
        n_runs += (tied[i] ^ 1) & (
            <uint8_t>((words[i].rank ^ flip) & ~(words[i - 1].rank ^ flip) & 1) | tied[i - 1] | tied[i + 1]
        )
        ones += words[i].rank & 1
    begins[n_runs] = <uint32_t>n
    sums[n_runs] = ones
    for run in range(n_runs):
        push(
            stack, <const uint8_t *>NULL, NULL, begins[run], begins[run + 1], <int64_t>(sums[run + 1] - sums[run]),
            <int64_t>(begins[run + 1] - begins[run]), False
        )


cdef inline void fit_reals(
    Task *task, const double *x, const double *y, const double *w, Py_ssize_t n, double low, double high, ranked *rows
) noexcept nogil:
    cdef Room *room = &task.room
    cdef const double *weights = NULL if w == NULL else room.w
    cdef const uint8_t *tied = NULL
    cdef Py_ssize_t i, at, step, end
    cdef bint by_digits = find_digits(room, x, n, low, high)
    for i in range(n):
        at = place_of(room, i, by_digits)
        rows[at].rank = rank_of(x[i])
        rows[at].y = bits_of(y[i])
        if ranked is RankedRow:
            rows[at].w = bits_of(w[i])
    sort_placed(rows, n, by_digits, <ranked *>room.spare)
    for i in range(n):
        room.y[i] = double_of(rows[i].y)
        if ranked is RankedRow:
            room.w[i] = double_of(rows[i].w)
        room.tied[i] = i > 0 and rows[i].rank == rows[i - 1].rank
        if room.tied[i]:
            tied = room.tied
    if task.stack.scale.narrow:
        push_rows(&task.stack, room.y, weights, tied, <int64_t>0, 0, n)
        finish(&task.stack, room.y, weights, <int64_t>0, n, task.lo, task.hi)
    else:
        push_rows(&task.stack, room.y, weights, tied, <double>0, 0, n)
        finish(&task.stack, room.y, weights, <double>0, n, task.lo, task.hi)
    for step in range(task.stack.n):
        end = room.starts[step + 1] if step + 1 < task.stack.n else n
        describe(
            &task.steps, score_of(rows[room.starts[step]].rank), score_of(rows[end - 1].rank), end - room.starts[step]
        )
