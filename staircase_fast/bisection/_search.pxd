# The search for all blocks of some rows, one run after the other.
#
# Runs do not depend on each other, so they can be cut in any order.  Here the newest run comes first: its rows are
# still in the cache.  `Anytime`, time limits and Python functions need all runs cut once per round instead (rounds.py).

from cpython.mem cimport PyMem_RawFree, PyMem_RawRealloc
from libc.math cimport INFINITY, NAN, nextafter
from libc.stdint cimport uint8_t

from staircase_fast.arithmetic._branchless cimport greater, lesser
from staircase_fast.bisection._prefix_minimum cimport CHUNK, Chunk, Cut, add_slopes, new_cut
from staircase_fast.bisection._runs cimport Output, Run
from staircase_fast.bisection._split_run cimport split_run
from staircase_fast.losses._slopes cimport (
    QUANTILE, Model, Slopes, fill_errors, fill_slopes, is_ill_conditioned, levels_off,
)

cdef enum:
    MOST_PARTS = 4            # of a run that is split
    FIRST_SAMPLE = 16384      # rows that determine the first cut

cdef enum SearchStatus:
    FOUND                     # all blocks
    MORE_ROWS                 # the limit on rows was reached
    BAD_SLOPE                 # at Rows.bad
    NO_MEMORY

ctypedef struct Rows:
    Model model
    const double *y
    const double *w           # or NULL: all are 1
    const uint8_t *ends       # whether a score ends at a row, or NULL: at each
    bint integers             # big parts of slopes times weights are small integers
    const double *tail        # slopes computed in Python, or NULL
    const double *curvature
    Py_ssize_t bad            # first row with an invalid derivative, or -1

ctypedef struct Search:
    Output out                # open runs, of which the last is the next to be cut; finished runs
    Py_ssize_t open_room
    Py_ssize_t done_room
    bint begun                # some rows of the next run have been added to `cut`
    Cut cut


cdef inline Search new_search() noexcept nogil:
    """A search without runs."""
    cdef Search search
    search.out.open = search.out.done = NULL
    search.open_room = search.done_room = 0
    search.begun = False
    return search


cdef inline void set_rules(Output *out, const Rows *rows, bint is_location, bint halve, double tol) noexcept nogil:
    """How runs are split, and no runs."""
    out.halve = halve
    out.tol = tol
    out.y = rows.y if is_location else NULL
    out.at_targets = is_location and rows.model.kind == QUANTILE
    out.level = rows.model.p[0]
    out.n_open = out.n_done = 0


cdef inline void free_search(Search *search) noexcept nogil:
    PyMem_RawFree(search.out.open)
    PyMem_RawFree(search.out.done)


cdef inline bint make_room(Run **runs, Py_ssize_t *room, Py_ssize_t n) noexcept nogil:
    """Make room for n runs; return False if there is no memory."""
    cdef Run *larger
    if n <= room[0]:
        return True
    n = max(64, 2 * n)
    larger = <Run *>PyMem_RawRealloc(runs[0], n * sizeof(Run))
    if larger == NULL:
        return False
    runs[0] = larger
    room[0] = n
    return True


cdef inline bint add_run(Search *search, Run run) noexcept nogil:
    """Add an open run, or a finished one if its bounds are equal; return False if there is no memory."""
    cdef Output *out = &search.out
    if not make_room(&out.open, &search.open_room, out.n_open + 1):
        return False
    if not make_room(&out.done, &search.done_room, out.n_done + 1):
        return False
    if run.lo == run.hi:
        run.value = run.lo
        out.done[out.n_done] = run
        out.n_done += 1
    else:
        out.open[out.n_open] = run
        out.n_open += 1
    return True


cdef inline SearchStatus search_rows(Search *search, Rows *rows, Py_ssize_t max_rows) noexcept nogil:
    """Cut runs until all are finished, or until about `max_rows` rows have been added; the next call resumes."""
    cdef Output *out = &search.out
    cdef Run run
    while out.n_open:
        if max_rows <= 0:
            return MORE_ROWS
        run = out.open[out.n_open - 1]
        if not search.begun:
            search.cut = new_cut(run.start)
            search.begun = True
        max_rows -= sum_slopes(rows, &run, &search.cut, max_rows)
        if rows.bad >= 0:
            return BAD_SLOPE
        if search.cut.next < run.end:
            continue
        out.n_open -= 1
        search.begun = False
        if not make_room(&out.open, &search.open_room, out.n_open + MOST_PARTS):
            return NO_MEMORY
        if not make_room(&out.done, &search.done_room, out.n_done + MOST_PARTS):
            return NO_MEMORY
        split_run(&run, &search.cut, out)
    return FOUND


cdef inline Py_ssize_t sum_slopes(Rows *rows, const Run *run, Cut *cut, Py_ssize_t max_rows) noexcept nogil:
    """Add the slopes of up to `max_rows` rows at the cut; return how many were added."""
    cdef double[CHUNK] big
    cdef double[CHUNK] tail
    cdef double[CHUNK] curvature
    cdef double[CHUNK] errors
    cdef Slopes slopes = Slopes(&big[0], &tail[0], &curvature[0])
    cdef Py_ssize_t begin = cut.next, i
    cdef Chunk chunk = Chunk(NULL, &tail[0], &curvature[0], NULL, NULL, NULL, 0, rows.integers)
    if rows.tail == NULL and levels_off(&rows.model):
        chunk.big = &big[0]
    if rows.tail == NULL and is_ill_conditioned(&rows.model):
        chunk.errors = &errors[0]
    while cut.next < run.end and cut.next - begin < max_rows:
        i = cut.next
        chunk.n = min(CHUNK, run.end - i)
        if rows.w != NULL:
            chunk.weights = rows.w + i
        if rows.ends != NULL:
            chunk.ends = rows.ends + i
        if rows.tail != NULL:
            chunk.tail = rows.tail + i
            chunk.curvature = rows.curvature + i
        else:
            rows.bad = fill_slopes(&rows.model, rows.y, i, chunk.n, &run.cut, 0, slopes)
            if rows.bad >= 0:
                break
            if chunk.errors != NULL:
                fill_errors(&rows.model, rows.y, i, chunk.n, run.cut, slopes, errors)
        add_slopes(cut, chunk)
    return cut.next - begin


cdef inline Run run_between_targets(const double *y, Py_ssize_t n, double low, double high) noexcept nogil:
    """One run of all rows, whose values lie between the least and the greatest target; it is first cut at a mean."""
    cdef double greatest = nextafter(INFINITY, 0.0), sum = 0.0, cut
    cdef Py_ssize_t i, step = 1 + n // FIRST_SAMPLE, count = (n + step - 1) // step
    for i in range(count):
        sum += y[i * step] - low
    cut = low + sum / count
    if not low <= cut < INFINITY:
        cut = 0.5 * low + 0.5 * high
    return Run(
        0, n, greater(nextafter(low, -INFINITY), -greatest), lesser(nextafter(high, INFINITY), greatest), NAN, NAN, cut,
        0.0, NAN, 0, 0, 0, 0
    )
