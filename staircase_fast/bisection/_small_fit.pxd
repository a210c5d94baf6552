# The fit of few rows under a loss whose minimiser is not the mean: check, sort, search, steps.
#
# Only ordinary numbers are accepted: they need no units (losses/units.py), and their slopes neither overflow nor
# underflow.  Other rows are left to the general path (solve.py), which gives the same bits for these.

from cpython.mem cimport PyMem_RawFree, PyMem_RawRealloc
from cpython.pyport cimport PY_SSIZE_T_MAX
from libc.math cimport INFINITY, NAN, fabs, floor, frexp, ldexp, log2
from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memset

from staircase_fast.arithmetic._branchless cimport greater, lesser
from staircase_fast.arithmetic._buckets cimport Range, range_of
from staircase_fast.arithmetic._column_scan cimport has_nan
from staircase_fast.arithmetic._exact cimport MAX_WORDS, Scale
from staircase_fast.arithmetic._rounded cimport rounded_sum
from staircase_fast.arithmetic._row_sums cimport add_rows
from staircase_fast.arithmetic._scale cimport scale_of
from staircase_fast.bisection._blocks cimport Block, Limits, blocks_of, limit_blocks
from staircase_fast.bisection._runs cimport Run
from staircase_fast.bisection._score_order cimport (
    Columns, Room, copy_in_order, find_ends, make_room_for_rows, turn_rows,
)
from staircase_fast.bisection._search cimport (
    FOUND, Rows, Search, add_run, free_search, new_search, run_between_targets, search_rows, set_rules,
)
from staircase_fast.losses._slopes cimport LINEX, LOGISTIC, POWER, QUANTILE, Model, levels_off
from staircase_fast.stack._small_fit cimport Steps
from staircase_fast.stack._small_rows cimport FINE, GENERAL, NO_MEMORY, Status

cdef enum:
    MOST_LOG_ODDS = 1500      # bounds the log-odds of sums of weights and positive targets
    LINEX_ROWS = 2000         # with more rows, the closed form of the general path is faster

# The options of a fit.
ctypedef struct Options:
    int kind                  # of the loss, in `Kind`
    double p                  # its parameter, if all rows share it
    bint is_location
    int64_t side              # as in Run
    bint both_sides           # the value is the middle of the least and the greatest minimiser
    double least_target
    double greatest_target
    bint decreasing
    double lo
    double hi

ctypedef struct Work:
    Room room
    Search search
    Block *blocks
    Py_ssize_t block_room


cdef inline bint make_work(Work *work, Py_ssize_t n, bint weighted, bint own_parameters) noexcept nogil:
    """Allocate the work space for up to n rows; return False if there is no memory."""
    work.search = new_search()
    work.blocks = NULL
    work.block_room = 0
    return make_room_for_rows(&work.room, n, weighted, own_parameters)


cdef inline void free_work(Work *work) noexcept nogil:
    PyMem_RawFree(work.room.memory)
    PyMem_RawFree(work.blocks)
    free_search(&work.search)


cdef inline Status fit_rows(
    Work *work, const Options *options, const Columns *given, Py_ssize_t n, Steps *out, double *lower, double *upper
) noexcept nogil:
    """Fit n >= 1 rows, in any order; write the steps to `out`, and the bounds of their values.

    The outputs have room for n steps.
    """
    cdef Columns *rows = &work.room.rows
    cdef Search *search = &work.search
    cdef Range y = range_of(<const double *>given.y, n), w = Range(-1, 1.0, 1.0, 1.0, True)
    cdef Limits limits = Limits(NULL, options.kind == LOGISTIC, options.lo, options.hi)
    cdef bint tied
    if has_nan(given.x, n) or not is_ordinary(options, given, y, n):
        return GENERAL
    if given.w != NULL:
        w = range_of(<const double *>given.w, n)
        if w.first_bad >= 0 or w.lowest < 0 or not w.highest * n < INFINITY or w.least < ldexp(w.highest, -900):
            return GENERAL
    n = copy_in_order(&work.room, given, n, w.lowest == 0)
    if n == 0:
        return GENERAL
    if w.lowest == 0:
        y = range_of(<const double *>rows.y, n)
    tied = find_ends(&work.room, n)
    if options.decreasing:
        turn_rows(&work.room, n)
    if not find_blocks(work, options, y, w, n, tied):
        return NO_MEMORY
    out.n = blocks_of(
        search.out.done, search.out.n_done, rows.y if options.kind == QUANTILE else NULL, work.blocks
    )
    if options.kind == POWER and rows.p == NULL and has_wide_block(work.blocks, out.n):
        return GENERAL
    if options.is_location:
        limits.y = rows.y
    out.n = limit_blocks(work.blocks, out.n, n, &limits)
    if fabs(work.blocks[0].value) == INFINITY or fabs(work.blocks[out.n - 1].value) == INFINITY:
        return GENERAL
    write_steps(work, options, scale_of(w, Range(-1, 1.0, 1.0, 1.0, True), n), n, out, lower, upper)
    return FINE


cdef inline bint is_ordinary(const Options *options, const Columns *rows, Range y, Py_ssize_t n) noexcept nogil:
    """Whether targets are valid, and targets and parameters need no unit (losses/units.py)."""
    cdef Range p = Range(-1, options.p, options.p, options.p, False)
    cdef double size = greater(fabs(y.lowest), fabs(y.highest)), steepness, degree = 2.0
    cdef double distance = 0.5 * y.highest - 0.5 * y.lowest
    cdef int exponent
    if y.first_bad >= 0 or y.least < 1e-200:
        return False
    if y.lowest < options.least_target or y.highest > options.greatest_target:
        return False
    if options.kind == LOGISTIC:
        return True
    if rows.p != NULL:
        p = range_of(<const double *>rows.p, n)
    if options.kind == LINEX:                 # exponents neither overflow nor underflow
        steepness = greater(fabs(p.lowest), fabs(p.highest))
        if n > LINEX_ROWS or not (size < 1e50 and 1e-9 < steepness < 1e9):
            return False
        return distance == 0 or 1e-9 < steepness * distance < 300.0
    if options.kind == POWER:
        degree = p.highest
        size = greater(distance, size * 2.0 ** -40)
    frexp(size, &exponent)
    return 1e-50 < p.lowest and p.highest < 1e50 and fabs(exponent) * greater(1.0, degree - 1.0) < 64.0


cdef inline bint add_first_runs(Work *work, const Options *options, Range y, Py_ssize_t n) noexcept nogil:
    """Add runs with the first bounds of values; return False if there is no memory."""
    cdef Run run = run_between_targets(work.room.rows.y, n, y.lowest, y.highest)
    if options.kind == LOGISTIC:
        return add_runs_of_log_odds(work, options, n)
    run.side = options.side
    if options.both_sides:
        if not add_run(&work.search, run):
            return False
        run.side = -options.side
    return add_run(&work.search, run)


cdef inline bint add_runs_of_log_odds(Work *work, const Options *options, Py_ssize_t n) noexcept nogil:
    """Log-odds are infinite for the leading rows whose targets are all 0, and the trailing ones that are all 1."""
    cdef Columns *rows = &work.room.rows
    cdef Py_ssize_t low = 0, high = n
    cdef Range p = Range(-1, options.p, options.p, options.p, False)
    cdef Run run
    while low < n and rows.y[low] == 0:
        low += 1
    while 0 < low < n and not work.room.ends[low - 1]:
        low -= 1
    while high > low and rows.y[high - 1] == 1:
        high -= 1
    while high < n and high > 0 and not work.room.ends[high - 1]:
        high += 1
    if rows.p != NULL:
        p = range_of(<const double *>rows.p, n)
    run = Run(
        low, high, -p.highest - MOST_LOG_ODDS, -p.lowest + MOST_LOG_ODDS, NAN, NAN, 0.5 * -p.highest + 0.5 * -p.lowest,
        0.0, NAN, 0, 0, 0, 0
    )
    if low < high and not add_run(&work.search, run):
        return False
    if low > 0 and not add_run(&work.search, known_run(0, low, -INFINITY)):
        return False
    return high == n or add_run(&work.search, known_run(high, n, INFINITY))


cdef inline Run known_run(Py_ssize_t start, Py_ssize_t end, double value) noexcept nogil:
    return Run(start, end, value, value, NAN, NAN, value, 0.0, value, 0, 0, 0, 0)


cdef inline bint find_blocks(
    Work *work, const Options *options, Range y, Range w, Py_ssize_t n, bint tied
) noexcept nogil:
    """Search for all blocks; return False if there is no memory."""
    cdef double *relative = <double *>work.room.memory             # weights: only their ratios matter
    cdef double unit = floor(log2(w.highest))
    cdef Search *search = &work.search
    cdef Block *blocks
    cdef Rows rows
    cdef Py_ssize_t i
    rows.model = Model(options.kind, &options.p, 0, NULL, NULL, True)
    if work.room.rows.p != NULL:
        rows.model.p = work.room.rows.p
        rows.model.p_step = 1
    rows.y = work.room.rows.y
    rows.w = NULL
    if work.room.rows.w != NULL:
        for i in range(n):
            relative[i] = ldexp(work.room.rows.w[i], <int>-unit)
        rows.w = relative
    rows.ends = work.room.ends if tied else NULL
    # labels of the logistic loss, or slopes that level off to 1 in units of a common parameter
    rows.integers = rows.w == NULL and levels_off(&rows.model) and (
        y.integral if options.kind == LOGISTIC else rows.model.p_step == 0
    )
    rows.tail = rows.curvature = NULL
    rows.bad = -1
    set_rules(&search.out, &rows, options.is_location, False, 0.0)
    if not add_first_runs(work, options, y, n) or search_rows(search, &rows, PY_SSIZE_T_MAX) != FOUND:
        return False
    if search.out.n_done > work.block_room:
        blocks = <Block *>PyMem_RawRealloc(work.blocks, search.done_room * sizeof(Block))
        if blocks == NULL:
            return False
        work.blocks = blocks
        work.block_room = search.done_room
    return True


cdef inline bint has_wide_block(const Block *blocks, Py_ssize_t n) noexcept nogil:
    """Whether the slopes of a block may have underflowed (solve.py)."""
    cdef Py_ssize_t i
    for i in range(n):
        if blocks[i].hi - blocks[i].lo > 1e-6 * greater(fabs(blocks[i].lo), fabs(blocks[i].hi)):
            return True
    return False


cdef inline void write_steps(
    Work *work, const Options *options, Scale scale, Py_ssize_t n, const Steps *out, double *lower, double *upper
) noexcept nogil:
    cdef uint64_t sums[MAX_WORDS]
    cdef const double *w = work.room.rows.w
    cdef Py_ssize_t i, step, start, end
    for i in range(out.n):
        start = work.blocks[i].start
        end = work.blocks[i + 1].start if i + 1 < out.n else n
        step = out.n - 1 - i if options.decreasing else i
        out.left[step] = work.room.rows.x[end - 1 if options.decreasing else start]
        out.right[step] = work.room.rows.x[start if options.decreasing else end - 1]
        out.values[step] = work.blocks[i].value
        out.weights[step] = <double>(end - start)
        out.counts[step] = end - start
        lower[step] = work.blocks[i].lo
        upper[step] = work.blocks[i].hi
        if w != NULL:
            memset(sums, 0, (scale.s_words + scale.w_words) * sizeof(uint64_t))
            add_rows(scale, sums, w, NULL, start, end)
            out.weights[step] = rounded_sum(scale, sums)
