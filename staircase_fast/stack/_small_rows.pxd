# The rows of a small fit: open the arrays, allocate the work space, read and check the rows.
#
# Unsupported arrays, invalid rows and targets of magnitude 2**53 or more are left to the general path, which converts
# them or raises the error.

from cpython.mem cimport PyMem_RawFree, PyMem_RawMalloc
from libc.math cimport INFINITY
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from staircase_fast.arithmetic._buckets cimport BUCKET_ROWS, Range, fill_buckets, range_of
from staircase_fast.arithmetic._buckets_avx2 cimport Bucket
from staircase_fast.arithmetic._column_scan cimport are_labels
from staircase_fast.arithmetic._score_scan cimport ScoreScan, copy_scores
from staircase_fast.arithmetic._simd cimport has_avx2
from staircase_fast.inputs._buffers cimport Array, close_array, in_place, open_array, read_column
from staircase_fast.stack._scatter cimport looks_sorted
from staircase_fast.stack._small_fit cimport MOST_DIGITS, Columns, Room, Task
from staircase_fast.stack._sort cimport RankedKey, RankedRow, RankedTarget, rank_of, sort_rows
from staircase_fast.stack._stack cimport Stack

cdef enum:
    SAMPLED = 1024

# State of one call of `fit` or `regress`: input arrays, copied rows, and work space (`memory`, and `words` if needed).
ctypedef struct Fit:
    Array scores
    Array targets
    Array weights
    Py_ssize_t n
    void *memory
    void *words               # exact sums and, of `regress`, the stack: allocated when their width is known
    Task task
    Range y_range
    Range w_range
    ScoreScan found           # of the scores; room.tied is filled
    double low                # the least and the greatest score; set by `make_keys_of` (_small.pyx)
    double high
    bint summarised           # rows are in ascending order, and their buckets are in place (`buckets_of`)


cdef enum Status:
    FINE
    GENERAL                   # leave the rows to the general path
    NO_MEMORY
    OWN_STAIRCASE             # each row is a step


cdef inline int open_arrays(
    Fit *fit, object scores, object targets, object weights, type ndarray, Py_ssize_t most_rows
) noexcept:
    fit.scores.kind = fit.targets.kind = fit.weights.kind = 0
    fit.memory = fit.words = NULL
    if not open_array(targets, ndarray, &fit.targets):
        return GENERAL
    fit.n = fit.targets.n
    if not 0 < fit.n <= most_rows:
        return GENERAL
    if scores is not None and (not open_array(scores, ndarray, &fit.scores) or fit.scores.n != fit.n):
        return GENERAL
    if weights is not None and (not open_array(weights, ndarray, &fit.weights) or fit.weights.n != fit.n):
        return GENERAL
    return FINE


cdef inline void close_arrays(Fit *fit) noexcept:
    close_array(&fit.scores)
    close_array(&fit.targets)
    close_array(&fit.weights)
    PyMem_RawFree(fit.memory)
    PyMem_RawFree(fit.words)


cdef inline int allocate(Fit *fit) noexcept nogil:
    """Allocate the work space and the outputs."""
    cdef Py_ssize_t n = fit.n, row_size = sizeof(RankedRow) if fit.weights.kind else sizeof(RankedTarget)
    cdef Room *room = &fit.task.room
    cdef char *at = <char *>PyMem_RawMalloc(
        n * (2 * row_size + sizeof(Py_ssize_t) + 7 * sizeof(double) + sizeof(int64_t) + 4)
        + MOST_DIGITS * sizeof(uint32_t) + 64
    )
    if at == NULL:
        return NO_MEMORY
    fit.memory = at
    room.rows = at
    room.spare = at + n * row_size
    room.starts = <Py_ssize_t *>(at + 2 * n * row_size)
    fit.task.columns.x = <double *>(room.starts + n + 1)
    fit.task.columns.y = fit.task.columns.x + n
    fit.task.columns.w = fit.task.columns.y + n
    fit.task.steps.left = fit.task.columns.w + n
    fit.task.steps.right = fit.task.steps.left + n
    fit.task.steps.values = fit.task.steps.right + n
    fit.task.steps.weights = fit.task.steps.values + n
    fit.task.steps.counts = <int64_t *>(fit.task.steps.weights + n)
    fit.task.steps.n = 0
    room.ends = <uint32_t *>(fit.task.steps.counts + n)
    room.tied = <uint8_t *>(room.ends + MOST_DIGITS)
    room.known = room.tied + n
    fit.task.columns.labels = room.known + n
    room.live = fit.task.columns.labels + n
    return FINE


cdef inline int read_sequence(Fit *fit) noexcept nogil:
    """Read targets and weights in place if they are contiguous doubles; copy them otherwise."""
    cdef Columns *columns = &fit.task.columns
    if fit.weights.kind and in_place(&fit.weights) == NULL or in_place(&fit.targets) == NULL:
        fit.memory = PyMem_RawMalloc(2 * fit.n * sizeof(double))
        if fit.memory == NULL:
            return NO_MEMORY
    columns.y = <double *>fit.memory
    columns.w = columns.y + fit.n
    if not read_column(&fit.targets, &columns.y):
        return GENERAL
    if not fit.weights.kind:
        columns.w = NULL
    elif not read_column(&fit.weights, &columns.w):
        return GENERAL
    return FINE


cdef inline int place_stack(Fit *fit) noexcept nogil:
    """Allocate the rest of the work space of `regress`, when the width of exact sums is known.

    `fit` needs three times as much.  Memory that is used for the first time is slow; less work space is more often in
    memory that has been used before, and one allocation is returned to the system less often than two.
    """
    cdef Stack *stack = &fit.task.stack
    cdef Py_ssize_t n = fit.n, n_words = 0 if stack.scale.narrow else n * stack.n_words
    fit.words = PyMem_RawMalloc(2 * n * (sizeof(double) + 1) + (n_words + 1) * sizeof(uint64_t))
    if fit.words == NULL:
        return NO_MEMORY
    stack.starts = <Py_ssize_t *>fit.words
    stack.w = <double *>(stack.starts + n + 1)
    stack.words = <uint64_t *>(stack.w + n)
    stack.known = <uint8_t *>(stack.words + n_words)
    fit.task.room.live = stack.known + n
    return FINE


cdef inline int read_rows(Fit *fit, double lowest, double highest, Py_ssize_t most_labels) noexcept nogil:
    """Copy and check the rows, and drop rows of weight 0.  Contiguous doubles are not copied, except scores.

    More than `most_labels` labels are left to the survey, unless scores look sorted or have many ties: such rows are
    sorted faster, and frequent scores make the survey slow.
    """
    cdef Columns *columns = &fit.task.columns
    cdef Columns copies = columns[0]
    cdef Py_ssize_t i, n = fit.n
    cdef double *scores = columns.x
    cdef bint labels
    fit.summarised = False
    if not read_column(&fit.targets, &columns.y):
        return GENERAL
    labels = not fit.weights.kind and lowest <= 0 and highest >= 1 and are_labels(columns.y, n)
    if not read_column(&fit.scores, &scores):
        return GENERAL
    if labels and n > most_labels and not (looks_sorted(<const double *>scores, n) or has_many_ties(scores, n)):
        return GENERAL
    fit.found = copy_scores(scores, n, columns.x, fit.task.room.tied, has_avx2())
    if fit.found.nan:
        return GENERAL
    if labels:
        columns.w = NULL
        for i in range(n):
            columns.labels[i] = columns.y[i] != 0
        fit.y_range, fit.w_range = Range(-1, 0.0, 1.0, 1.0, True), Range(-1, 1.0, 1.0, 1.0, True)
        return FINE
    columns.labels = NULL
    if not fit.weights.kind:
        columns.w = NULL
    elif not read_column(&fit.weights, &columns.w):
        return GENERAL
    fit.summarised = fit.found.falls == 0
    scan_rows(fit)
    if not are_valid(fit, lowest, highest):
        return GENERAL
    if fit.w_range.lowest == 0:
        fit.n = copy_present(columns, n, &copies)
        if fit.n == 0:
            return GENERAL
        columns.y, columns.w = copies.y, copies.w
        fit.found = copy_scores(columns.x, fit.n, columns.x, fit.task.room.tied, has_avx2())
        scan_rows(fit)
    return FINE


cdef inline bint has_many_ties(const double *scores, Py_ssize_t n) noexcept nogil:
    """Whether a quarter of a sample of scores are equal to others."""
    cdef RankedKey sample[SAMPLED]
    cdef RankedKey spare[SAMPLED]
    cdef Py_ssize_t i, ties = 0
    for i in range(SAMPLED):
        sample[i].rank = rank_of(scores[i * (n // SAMPLED)])
    sort_rows(sample, SAMPLED, spare)
    for i in range(1, SAMPLED):
        ties += sample[i].rank == sample[i - 1].rank
    return ties >= SAMPLED // 4


cdef inline void scan_rows(Fit *fit) noexcept nogil:
    """Find the ranges of targets and weights; if rows are in ascending order, also the sums of buckets."""
    cdef Columns *columns = &fit.task.columns
    cdef Py_ssize_t n = fit.n
    if fit.summarised:
        fit.y_range = fill_buckets(<const double *>columns.y, columns.w, ties_of(fit), n, buckets_of(fit), &fit.w_range)
    else:
        fit.y_range = range_of(columns.y, n)
        fit.w_range = range_of(columns.w, n) if columns.w != NULL else Range(-1, 1.0, 1.0, 1.0, True)


cdef inline const uint8_t *ties_of(Fit *fit) noexcept nogil:
    """Flags of tied rows, if they are in ascending order; NULL if there are none."""
    return fit.task.room.tied if fit.found.tied else NULL


cdef inline Bucket *buckets_of(Fit *fit) noexcept nogil:
    """The place for buckets: the end of `values`, where `push_all` (_rows.pxd) expects them."""
    return <Bucket *>(fit.task.steps.values + fit.n) - fit.n // BUCKET_ROWS


cdef inline Py_ssize_t copy_present(const Columns *rows, Py_ssize_t n, Columns *out) noexcept nogil:
    """Copy the rows of weight other than 0, maybe to the same place; return their number."""
    cdef Py_ssize_t i, n_present = 0
    for i in range(n):
        if rows.w[i] != 0:
            out.x[n_present], out.y[n_present], out.w[n_present] = rows.x[i], rows.y[i], rows.w[i]
            n_present += 1
    return n_present


cdef inline bint are_valid(const Fit *fit, double lowest, double highest) noexcept nogil:
    cdef Range y = fit.y_range, w = fit.w_range
    if y.first_bad >= 0 or y.lowest < lowest or y.highest > highest:
        return False
    if max(-y.lowest, y.highest) >= 9007199254740992.0:      # 2**53: may be a rounded integer
        return False
    return w.first_bad < 0 and w.lowest >= 0 and w.highest * fit.n < INFINITY
