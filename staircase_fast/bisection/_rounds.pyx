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

from libc.math cimport INFINITY, fabs
from libc.stdint cimport uint8_t

from staircase_fast.arithmetic._branchless cimport greater
from staircase_fast.bisection._prefix_minimum cimport CHUNK, Chunk, Cut, add_slopes, new_cut
from staircase_fast.bisection._split_run cimport Output, Run, split_run
from staircase_fast.losses._slopes cimport (
    Model, Slopes, fill_errors, fill_slopes, is_ill_conditioned, levels_off, model_of,
)

cdef Run one_run
RUN = np.asarray(<Run[:1]>&one_run).dtype
CUT_SIZE = sizeof(Cut)        # bytes that a Share keeps between calls

ctypedef struct Rows:
    Model model
    const double *y
    const double *w           # or NULL: all are 1
    const uint8_t *ends       # whether a score ends at a row, or NULL: at each
    bint integers             # big parts of slopes times weights are small integers
    const double *tail        # slopes computed in Python, or NULL
    const double *curvature
    Py_ssize_t bad            # first row with an invalid derivative, or -1


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
    cdef const double[::1] parameters = problem.parameters, targets = problem.targets, weights = problem.weights
    cdef const uint8_t[::1] ends = problem.ends
    cdef Run[::1] runs = share.runs, still_open = share.open, done = share.done
    cdef uint8_t[::1] state = share.state
    cdef Py_ssize_t next_run = share.next, n_runs = runs.shape[0]
    cdef const Run *run = &runs[0]
    cdef Cut *cut = <Cut *>&state[0]
    cdef Rows rows
    cdef Output out = Output(halve, tol, NULL, &still_open[0], share.n_open, &done[0], share.n_done)
    out.y = &targets[0] if problem.has_location else NULL
    rows.model = model_of(problem, parameters, True)
    rows.y = &targets[0]
    rows.w = &weights[0] if weights.shape[0] else NULL
    rows.ends = &ends[0] if ends.shape[0] else NULL
    rows.integers = problem.has_integer_slopes
    rows.tail = &tail[0] if tail.shape[0] else NULL
    rows.curvature = &curvature[0] if curvature.shape[0] else NULL
    rows.bad = -1
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


cdef Py_ssize_t sum_slopes(Rows *rows, const Run *run, Cut *cut, Py_ssize_t max_rows) noexcept nogil:
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
            near = greater(cut - greater(distance, 1e-7 * fabs(cut)), lowest)
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


cdef inline bint decreases(double z, double slope, double other_z, double other) noexcept nogil:
    """Whether the slope clearly decreases from one point to the other (never if an argument is NaN)."""
    return (z - other_z) * (slope - other) < 0.0 and fabs(slope - other) > 1e-9 * (fabs(slope) + fabs(other))
