# Runs: consecutive rows whose values have the same bounds.

from libc.math cimport INFINITY, fabs, nextafter
from libc.stdint cimport int64_t

from staircase_fast.arithmetic._branchless cimport greater, lesser
from staircase_fast.stack._sort cimport rank_of, score_of

cdef enum:
    EITHER = 0            # the value of a run is its only minimiser,
    LEAST = -1            # its least,
    GREATEST = 1          # or its greatest one
    LOW_END = 1           # the bound is an end of the domain that has not been a cut yet
    HIGH_END = 2
    MAX_STALLS = 3

ctypedef struct Run:
    int64_t start
    int64_t end
    double lo                 # proven bounds of its values
    double hi
    double d_lo               # sum of D at the bounds, or NaN
    double d_hi
    double cut                # the next cut
    double step               # the last Newton step, or 0; with a `value`: how far from it to cut next
    double value              # a point at which the sum of D is zero within rounding, or NaN
    int64_t side              # EITHER, LEAST, GREATEST
    int64_t untested          # LOW_END, HIGH_END
    int64_t stalls            # rounds without progress
    int64_t n_midpoints       # how often it was cut in the middle

ctypedef struct Output:
    bint halve                # cut in the middle, as the paper does
    double tol
    const double *y           # targets, if equal targets are their own minimiser; else NULL
    Run *open
    Py_ssize_t n_open
    Run *done
    Py_ssize_t n_done
    bint at_targets           # minimisers are targets, which `y` then contains
    double level              # of the quantile, at least of one row


cdef inline void keep_open(const Run *run, Output *out) noexcept nogil:
    out.open[out.n_open] = run[0]
    out.n_open += 1


cdef inline double clamp(double value, double lo, double hi) noexcept nogil:
    return lesser(greater(value, lo), hi)


cdef inline double ulp_of(double x) noexcept nogil:
    return nextafter(fabs(x), INFINITY) - fabs(x)


cdef inline double midpoint(Run *run, bint halve) noexcept nogil:
    """The middle of the bounds; unless `halve`, every second time the middle of the floats between them."""
    cdef double cut = 0.5 * run.lo + 0.5 * run.hi
    run.n_midpoints += 1
    if not halve and run.n_midpoints & 1 == 0:
        cut = score_of(rank_of(run.lo) / 2 + rank_of(run.hi) / 2)
    return cut if run.lo < cut < run.hi else nextafter(run.lo, INFINITY)
