"""Anytime bisection for any strictly convex loss (paper, section VI).

A *run* is a range of consecutive rows whose fitted values are known to lie in [lo, hi].  At the start one run holds all
rows.  Each round evaluates every open run at one point, the *cut*:

    D_n = -l'_n(cut),   P_j = D_1 + ... + D_j

Rows before the first minimum of P lie below the cut, rows after the last minimum above it, and rows between them at the
cut (`_prefix_minimum.pxd`).  The run is split there, or its bounds are narrowed (`_split_run.pxd`).  A run that no
longer splits is a block of the solution; its value is the root of the summed derivative.

The cut is either the midpoint (`Anytime`, as in the paper) or a safeguarded Newton step (`fit`), which falls back to
the midpoint when it makes no progress.

Rounding: a sum smaller than its own error bound has no reliable sign.  Its rows stay together; the cut becomes their
value, and cuts beside it prove bounds.

Flat sums: if the summed derivative is zero on an interval, every value there is a minimiser.  Two runs of the same rows
then search for the least and the greatest one; the value is their midpoint.

Preconditions: n >= 1, rows in score order, targets and parameters inside the domain of the loss, weights finite and
positive.
"""

import numpy as np

from cpython.exc cimport PyErr_CheckSignals
from cpython.mem cimport PyMem_RawFree, PyMem_RawMalloc
from libc.math cimport INFINITY
from libc.stdint cimport int64_t, uint8_t
from libc.string cimport memcpy

from staircase_fast.bisection._blocks cimport Block, Limits, blocks_of, limit_blocks
from staircase_fast.bisection._prefix_minimum cimport Cut, new_cut
from staircase_fast.bisection._search cimport (
    BAD_SLOPE, MORE_ROWS, NO_MEMORY, Rows, Search, SearchStatus, add_run, free_search, new_search, run_between_targets,
    search_rows, set_rules, sum_slopes,
)
from staircase_fast.bisection._runs cimport Output, Run
from staircase_fast.bisection._split_run cimport split_run
from staircase_fast.losses._slopes cimport decreases, model_of, point_below

cdef const double[::1] empty = np.empty(0)
cdef Run one_run
RUN = np.asarray(<Run[:1]>&one_run).dtype
CUT_SIZE = sizeof(Cut)        # bytes that a Share keeps between calls


cdef Rows rows_of(problem, const double[::1] tail, const double[::1] curvature) except *:
    """The rows of a rounds.Problem, whose arrays must stay alive; slopes computed in Python, or empty arrays."""
    cdef const double[::1] parameters = problem.parameters, targets = problem.targets, weights = problem.weights
    cdef const uint8_t[::1] ends = problem.ends
    cdef Rows rows
    rows.model = model_of(problem, parameters, True)
    rows.y = &targets[0]
    rows.w = &weights[0] if weights.shape[0] else NULL
    rows.ends = &ends[0] if ends.shape[0] else NULL
    rows.integers = problem.has_integer_slopes
    rows.tail = &tail[0] if tail.shape[0] else NULL
    rows.curvature = &curvature[0] if curvature.shape[0] else NULL
    rows.bad = -1
    return rows


def cut_runs(
    problem,                                  # IN  rounds.Problem
    share,                                    # IN, OUT rounds.Share
    const double[::1] tail not None,          # IN  slopes of each row at the cut of its run, or empty: compute them
    const double[::1] curvature not None,     # IN  second derivatives, or empty
    bint halve,
    double tol,
    Py_ssize_t max_rows,                      # IN  return after about this many rows
):
    """Cut runs of the share from the next one on.

    Return the first row where a user's derivative is NaN or decreases, or -1.
    """
    cdef Run[::1] runs = share.runs, still_open = share.open, done = share.done
    cdef uint8_t[::1] state = share.state
    cdef Py_ssize_t next_run = share.next, n_runs = runs.shape[0]
    cdef const Run *run = &runs[0]
    cdef Cut *cut = <Cut *>&state[0]
    cdef Rows rows = rows_of(problem, tail, curvature)
    cdef Output out
    set_rules(&out, &rows, problem.has_location, halve, tol)
    out.open, out.n_open, out.done, out.n_done = &still_open[0], share.n_open, &done[0], share.n_done
    with nogil:
        while next_run < n_runs and max_rows > 0 and rows.bad < 0:
            if cut.next < run[next_run].start or cut.next >= run[next_run].end or cut.rest.part.end == 0:
                cut[0] = new_cut(run[next_run].start)
            max_rows -= sum_slopes(&rows, run + next_run, cut, max_rows)
            if cut.next == run[next_run].end and rows.bad < 0:
                split_run(run + next_run, cut, &out)
                cut.rest.part.end = 0
                next_run += 1
    share.next, share.n_open, share.n_done = next_run, out.n_open, out.n_done
    return rows.bad


def finish_runs(
    problem,                                  # IN  rounds.Problem without Python slopes
    const Run[::1] runs not None,             # IN
    Py_ssize_t rows_at_once,                  # IN  check for signals after about this many rows
):
    """Cut runs until all are finished.

    Return the finished runs; the first row where a user's derivative is NaN or decreases, or -1; and the cut there.
    """
    cdef Rows rows = rows_of(problem, empty, empty)
    cdef Search search = new_search()
    cdef SearchStatus status = MORE_ROWS
    cdef Py_ssize_t i
    cdef Run[::1] done
    set_rules(&search.out, &rows, problem.has_location, False, 0.0)
    try:
        for i in range(runs.shape[0]):
            if not add_run(&search, runs[i]):
                raise MemoryError
        while status == MORE_ROWS:
            with nogil:
                status = search_rows(&search, &rows, rows_at_once)
            PyErr_CheckSignals()
        if status == NO_MEMORY:
            raise MemoryError
        found = np.empty(search.out.n_done, dtype=RUN)
        if search.out.n_done:
            done = found
            memcpy(&done[0], search.out.done, search.out.n_done * sizeof(Run))
        return found, rows.bad, search.out.open[search.out.n_open - 1].cut if status == BAD_SLOPE else INFINITY
    finally:
        free_search(&search)


def make_blocks(
    Run[::1] runs not None,                   # IN, OUT in any order; changed
    const double[::1] targets not None,       # IN
    bint at_targets,                          # IN  each value is a target
):
    """Return columns of blocks in order: first row, value, lower and upper bound."""
    cdef Py_ssize_t n = runs.shape[0]
    cdef const double *y = &targets[0] if at_targets else NULL
    cdef Block *blocks = <Block *>PyMem_RawMalloc(max(n, 1) * sizeof(Block))
    if blocks == NULL:
        raise MemoryError
    try:
        with nogil:
            n = blocks_of(&runs[0], n, y, blocks)
        return columns_of(blocks, n)
    finally:
        PyMem_RawFree(blocks)


def limit_values(
    const int64_t[:] starts not None,         # IN  blocks, as in make_blocks
    const double[:] values not None, const double[:] lower not None, const double[:] upper not None,
    const double[::1] targets not None,       # IN
    bint within_targets,                      # IN  values lie between the targets of their block
    bint infinite,                            # IN  the largest floats stand for infinities
    double lo, double hi,                     # IN  bounds on values
):
    """Return the columns of blocks with values in order and within limits."""
    cdef Py_ssize_t i, n = starts.shape[0]
    cdef Limits limits = Limits(NULL, infinite, lo, hi)
    cdef Block *blocks = <Block *>PyMem_RawMalloc(n * sizeof(Block))
    if blocks == NULL:
        raise MemoryError
    if within_targets:
        limits.y = &targets[0]
    try:
        with nogil:
            for i in range(n):
                blocks[i] = Block(starts[i], values[i], lower[i], upper[i], values[i])
            n = limit_blocks(blocks, n, targets.shape[0], &limits)
        return columns_of(blocks, n)
    finally:
        PyMem_RawFree(blocks)


cdef tuple columns_of(const Block *blocks, Py_ssize_t n):
    cdef int64_t[::1] starts
    cdef double[:, ::1] heights
    cdef Py_ssize_t i
    first, columns = np.empty(n, dtype=np.int64), np.empty((3, n))
    starts, heights = first, columns
    for i in range(n):
        starts[i] = blocks[i].start
        heights[0, i] = blocks[i].value
        heights[1, i] = blocks[i].lo
        heights[2, i] = blocks[i].hi
    return first, *columns


def first_run(const double[::1] targets not None, double low, double high):
    """One run of all rows, whose values lie between the least and the greatest target."""
    cdef Run[::1] run
    found = np.empty(1, dtype=RUN)
    run = found
    run[0] = run_between_targets(&targets[0], targets.shape[0], low, high)
    return found


def are_outside(
    const double[::1] slope not None,         # IN  of all rows at a point
    const double[::1] weights not None,       # IN  or empty: all are 1
    const uint8_t[::1] ends not None,         # IN  whether a score ends at a row; or empty: at each
    bint above,
):
    """Whether every trailing part of the rows lies below the point, or, unless `above`, every leading part above it."""
    cdef bint weighted = weights.shape[0] > 0, tied = ends.shape[0] > 0, found = True
    cdef Py_ssize_t n = slope.shape[0], k, i
    cdef double sum = 0.0, sign = -1.0 if above else 1.0
    with nogil:
        for k in range(n):
            i = n - 1 - k if above else k
            sum += -slope[i] * weights[i] if weighted else -slope[i]
            if not sign * sum > 0.0:
                if not tied or k == n - 1 or ends[i - above]:
                    found = False
                    break
    return bool(found)


# Slopes that a Python function computes: one call per round for all open rows (rounds.PythonSlopes).

def fill_points(
    const Run[::1] runs not None,             # IN
    const double[::1] targets not None,       # IN  of all rows
    double distance,                          # IN  between a cut and the second point below it, at least
    double lowest,                            # IN  least valid value
    double[:, ::1] z not None,                # OUT for each row of the runs: the cut; a point below it
    double[:, ::1] y not None,                # OUT its target, twice
):
    """Write the arguments of the user's function."""
    cdef Py_ssize_t run, row, k = 0
    cdef double cut, near
    with nogil:
        for run in range(runs.shape[0]):
            cut = runs[run].cut
            near = point_below(cut, distance, lowest)
            for row in range(runs[run].start, runs[run].end):
                z[0, k] = cut
                z[1, k] = near
                y[0, k] = targets[row]
                y[1, k] = targets[row]
                k += 1


def store_slopes(
    const Run[::1] runs not None,             # IN
    const double[:, ::1] z not None,          # IN  points from fill_points
    const double[:, ::1] slopes not None,     # IN  what the function returned for them
    double[::1] last_z not None,              # IN, OUT of all rows: the last point, or NaN
    double[::1] slope not None,               # IN, OUT the slope there
    double[::1] curvature not None,           # OUT difference quotient, or 0
):
    """Store the slopes of all rows of the runs; return a row where they decrease, or -1."""
    cdef Py_ssize_t run, row, k = 0, bad = -1
    cdef double quotient
    with nogil:
        for run in range(runs.shape[0]):
            for row in range(runs[run].start, runs[run].end):
                if decreases(z[0, k], slopes[0, k], z[1, k], slopes[1, k]) or decreases(
                    z[0, k], slopes[0, k], last_z[row], slope[row]
                ):
                    bad = row if bad < 0 else bad
                quotient = (slopes[0, k] - slopes[1, k]) / (z[0, k] - z[1, k])
                curvature[row] = quotient if 0.0 <= quotient < INFINITY else 0.0
                last_z[row] = z[0, k]
                slope[row] = slopes[0, k]
                k += 1
    return bad
