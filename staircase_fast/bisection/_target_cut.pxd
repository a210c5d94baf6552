# Cuts for a loss that is minimised at targets: the quantile.
#
# Its slopes are constant between targets, so Newton's method does not apply.  Instead the cut is a target, found by its
# rank among the targets between the bounds: exactly if they are few, otherwise from a sample.  A run is finished when
# its bounds enclose only one of its targets.

from libc.math cimport INFINITY, NAN, ceil, nextafter, sqrt

from staircase_fast.arithmetic._branchless cimport greater, lesser
from staircase_fast.bisection._runs cimport MAX_STALLS, Output, Run, midpoint

cdef enum:
    SAMPLE = 512

# Targets of some rows between two bounds.
ctypedef struct Inside:
    double[SAMPLE] y
    Py_ssize_t n
    Py_ssize_t n_below        # targets at or below the lower bound
    Py_ssize_t n_rows         # rows that were examined


cdef inline void collect_targets(
    Inside *inside, const double *y, Py_ssize_t n, Py_ssize_t step, double lo, double hi
) noexcept nogil:
    """Collect the targets in (lo, hi] of every step-th row, up to SAMPLE of them."""
    cdef Py_ssize_t i = 0, found = 0, below = 0
    while i < n and found < SAMPLE:
        inside.y[found] = y[i]
        found += (y[i] > lo) & (y[i] <= hi)
        below += y[i] <= lo
        i += step
    inside.n = found
    inside.n_below = below
    inside.n_rows = (i + step - 1) // step


cdef inline double smallest(double *a, Py_ssize_t n, Py_ssize_t k) noexcept nogil:
    """The k-th smallest of n numbers, from 0 on (Hoare's selection); changes their order."""
    cdef Py_ssize_t first = 0, last = n - 1, i, j
    cdef double pivot
    while first < last:
        pivot = a[k]
        i, j = first, last
        while i <= j:
            while a[i] < pivot:
                i += 1
            while pivot < a[j]:
                j -= 1
            if i <= j:
                a[i], a[j] = a[j], a[i]
                i += 1
                j -= 1
        if j < k:
            first = i
        if k < i:
            last = j
    return a[k]


cdef inline double greatest_below(const double *a, Py_ssize_t n, double bound) noexcept nogil:
    """The greatest of some numbers that are less than the bound, or -inf."""
    cdef double found = -INFINITY
    cdef Py_ssize_t i
    for i in range(n):
        found = greater(found, a[i] if a[i] < bound else -INFINITY)
    return found


cdef inline bint choose_target(Run *run, const Output *out) noexcept nogil:
    """Cut the run at one of its targets, close to their quantile; or finish it, and return False."""
    cdef Inside inside
    cdef const double *y = out.y + run.start
    cdef Py_ssize_t n = run.end - run.start, step = 1 + n // SAMPLE
    cdef bint exact = step == 1, halve = run.stalls >= MAX_STALLS or run.n_midpoints & 7 == 7
    cdef double rank, margin, below
    collect_targets(&inside, y, n, step, run.lo, run.hi)
    if not exact and 2 * inside.n * step < SAMPLE:
        collect_targets(&inside, y, n, 1, run.lo, run.hi)
        exact = inside.n < SAMPLE
        if not exact:
            collect_targets(&inside, y, n, step, run.lo, run.hi)
    if halve:                                 # every eighth time for certain, so that few cuts suffice for any weights
        run.stalls = 0
    run.n_midpoints += 1
    if inside.n == 0:
        run.cut = midpoint(run, False)
        return True
    rank = out.level * inside.n_rows - inside.n_below
    if run.d_lo > 0.0 >= run.d_hi:            # sums that include weights and all rows
        rank = inside.n * (run.d_lo / (run.d_lo - run.d_hi))
    rank = 0.5 * inside.n if halve else lesser(greater(rank, 0.0), <double>inside.n)
    if not exact and not halve:               # beyond the quantile, so that the bounds close from both sides
        margin = sqrt(rank * (inside.n - rank) / inside.n) + 1.0
        rank += margin if rank < 0.5 * inside.n else -margin
    run.cut = smallest(inside.y, inside.n, min(max(<Py_ssize_t>ceil(rank) - 1, 0), inside.n - 1))
    below = greatest_below(inside.y, inside.n, run.cut)
    if exact and below == -INFINITY and greatest_below(inside.y, inside.n, INFINITY) == run.cut:
        run.value = run.hi = run.cut          # the only target
        run.lo = greater(run.lo, nextafter(run.cut, -INFINITY))
        return False
    if run.cut == run.hi:
        run.cut = below if below > -INFINITY else midpoint(run, False)
    return True
