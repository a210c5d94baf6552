# Splitting a run at its cut, and choosing the next cut of each part (paper, section VI, Step 4).
#
# A split makes at most three parts: rows below the cut, at it, and above it.  Each becomes an open run with narrower
# bounds, or a finished block.  `_rounds.pyx` describes the algorithm.

from libc.math cimport INFINITY, NAN, copysign, fabs, nextafter
from libc.stdint cimport int64_t

from staircase_fast.arithmetic._branchless cimport greater, lesser
from staircase_fast.bisection._prefix_minimum cimport Cut, Part, error_of, part_above
from staircase_fast.bisection._runs cimport (
    EITHER, GREATEST, HIGH_END, LEAST, LOW_END, MAX_STALLS, Output, Run, clamp, keep_open, midpoint, ulp_of,
)
from staircase_fast.bisection._target_cut cimport choose_target

cdef enum:
    WIDE_ULPS = 1000


cdef inline void split_run(const Run *run, const Cut *cut, Output *out) noexcept nogil:
    """Split the run: rows below the cut, at the cut, above the cut."""
    cdef Part low = cut.below, at = cut.at, high = part_above(cut), joined
    if at.end == low.end or not is_flat(run, at.curvature):
        if not run.untested:
            finish_run_at_root(run, &low, &at, &high, out)
        split_sides(run, run.side, &low, low.end, at.end, &high, out)
        return
    # the minimisers may form an interval: search for the least one below the cut, for the greatest one above it
    if run.side != GREATEST:
        joined = Part(at.end, low.sum + at.sum, low.magnitude + at.magnitude, low.curvature + at.curvature)
        split_sides(run, LEAST, &joined, at.end, at.end, &high, out)
    if run.side != LEAST:
        joined = Part(high.end, high.sum + at.sum, high.magnitude + at.magnitude, high.curvature + at.curvature)
        split_sides(run, GREATEST, &low, low.end, low.end, &joined, out)


cdef inline void split_sides(
    const Run *run, int64_t side, const Part *low, Py_ssize_t low_end, Py_ssize_t high_start, const Part *high,
    Output *out
) noexcept nogil:
    """Narrow the rows before `low_end` and from `high_start` on; at an end of the domain, one side is finished."""
    if run.untested & LOW_END:
        finish_run_at_bound(side, run.start, high_start, run.lo, out)
    else:
        narrow_run(run, side, run.start, low, True, out)
    if run.untested & LOW_END or not run.untested & HIGH_END:
        narrow_run(run, side, high_start, high, False, out)
    else:
        finish_run_at_bound(side, low_end, run.end, run.hi, out)


cdef inline bint is_flat(const Run *run, double curvature) noexcept nogil:
    """The summed derivative is constant around the cut: moving the cut does not change it."""
    return fabs(run.cut) < 1e308 and not curvature * (ulp_of(run.cut) + 1e-20 * (run.hi - run.lo)) > 0.0


cdef inline void finish_run_at_bound(
    int64_t side, int64_t start, int64_t end, double value, Output *out
) noexcept nogil:
    """A block whose value is known exactly: a bound, or the target that all rows share."""
    if end > start:
        out.done[out.n_done] = Run(start, end, value, value, NAN, NAN, value, 0.0, value, side, 0, 0, 0)
        out.n_done += 1


cdef inline bint finish_run_at_target(const Run *run, Output *out) noexcept nogil:
    """Finish a run whose targets are all equal, if that is their minimiser; return whether it was."""
    cdef Py_ssize_t i = run.start + 1
    if out.y == NULL:
        return False
    while i < run.end and out.y[i] == out.y[run.start]:
        i += 1
    if i < run.end:
        return False
    finish_run_at_bound(run.side, run.start, run.end, clamp(out.y[run.start], run.lo, run.hi), out)
    return True


cdef inline void narrow_run(
    const Run *run, int64_t side, Py_ssize_t start, const Part *part, bint below, Output *out
) noexcept nogil:
    """The rows [start, part.end) lie below the cut, or above it."""
    cdef Run child = run[0]
    cdef double width = run.hi - run.lo
    if part.end == start:
        return
    child.side = side
    child.start = start
    child.end = part.end
    if below:
        child.hi = run.cut
        child.d_hi = part.sum
    else:
        child.lo = run.cut
        child.d_lo = part.sum
    if part.end - start < run.end - run.start:
        # sums over all rows of the run do not apply to some of them
        child.d_lo = child.d_lo if not below else NAN
        child.d_hi = child.d_hi if below else NAN
        child.step = 0.0
        child.value = NAN
    if child.untested & LOW_END:
        child.untested -= LOW_END
    elif child.untested & HIGH_END:
        child.untested -= HIGH_END
    elif not child.hi - child.lo <= 0.5 * width and 8 * (child.end - child.start) > 7 * (run.end - run.start):
        child.stalls += 1
    else:
        child.stalls = 0
    if not child.lo <= child.value <= child.hi:
        child.value = NAN
    if finish_run_at_target(&child, out):
        return
    if is_narrow(&child, out):
        finish_run_or_cut_at_value(&child, run.cut, out)
    elif choose_cut(&child, run.cut, part, out):
        keep_open(&child, out)
    else:
        finish_run(&child, out)


cdef inline bint is_narrow(const Run *run, const Output *out) noexcept nogil:
    """Whether the bounds are close enough.  True for NaN bounds: targets that change during the call may become NaN."""
    if run.untested:
        return not run.lo < run.hi
    if not run.hi - run.lo > out.tol or not run.hi > nextafter(run.lo, INFINITY):
        return True
    return run.value == run.value and not run.hi - run.lo > 6.0 * run.step    # also if the step is NaN


cdef inline void finish_run(const Run *run, Output *out) noexcept nogil:
    """A run with narrow bounds is a block."""
    cdef Run block = run[0]
    if not run.value == run.value:
        block.value = 0.5 * run.lo + 0.5 * run.hi
        if run.lo < 0.0 < run.hi and run.hi - run.lo > out.tol:
            block.value = 0.0                 # as good as any other; expected for symmetric targets
        elif run.side != EITHER:
            block.value = run.hi if run.side == LEAST else run.lo
        elif run.d_lo > 0.0 > run.d_hi:
            block.value = clamp(run.lo + (run.hi - run.lo) * (run.d_lo / (run.d_lo - run.d_hi)), run.lo, run.hi)
    out.done[out.n_done] = block
    out.n_done += 1


cdef inline void finish_run_or_cut_at_value(Run *run, double last_cut, Output *out) noexcept nogil:
    """Finish a run, or cut it once more at its value if rounding errors keep the bounds wide.

    Rounding errors of large slopes that cancel can hide small slopes.  A cut at the value splits off rows at the ends
    of the run whose own sums have a reliable sign.
    """
    if (
        run.value == run.value and run.value != last_cut and run.lo < run.value < run.hi and run.step < INFINITY
        and run.hi - run.lo > greater(out.tol, WIDE_ULPS * ulp_of(run.value)) and not out.halve
    ):
        run.cut = run.value
        run.step = INFINITY                   # finishes the parts after this cut
        keep_open(run, out)
    else:
        finish_run(run, out)


cdef inline void finish_run_at_root(
    const Run *run, const Part *low, const Part *at, const Part *high, Output *out
) noexcept nogil:
    """The sum of the rows [low.end, at.end) is zero at the cut, within rounding.

    If the sum of the rows above the cut is as small, their root lies within about error / curvature of the cut, and
    the value of this block is not greater.  Rows below it bound it in the same way.
    """
    cdef Run child = run[0]
    cdef double error = error_of(at.magnitude), distance
    if at.end == low.end:
        return
    child.start = low.end
    child.end = at.end
    child.d_lo = NAN
    child.d_hi = NAN
    child.stalls = 0
    distance = error / at.curvature           # between the cut and the root, at most
    if low.end > run.start and low.curvature > 0.0 and low.sum >= -4.0 * error:
        child.lo = greater(run.lo, run.cut - 4.0 * (error / low.curvature + ulp_of(run.cut)))
    if high.end > at.end and high.curvature > 0.0 and high.sum <= 4.0 * error:
        child.hi = lesser(run.hi, run.cut + 4.0 * (error / high.curvature + ulp_of(run.cut)))
    if finish_run_at_target(&child, out):
        return
    if distance <= 0.5 * ulp_of(run.cut):     # the root is between the neighbours of the cut
        child.lo = greater(child.lo, nextafter(run.cut, -INFINITY))
        child.hi = lesser(child.hi, nextafter(run.cut, INFINITY))
        child.value = run.cut
        finish_run(&child, out)
        return
    child.step = 4.0 * (distance + ulp_of(run.cut))
    if run.value == run.value:                # cuts beside the value find no better one
        child.step = greater(child.step, 4.0 * run.step)
        child.value = run.value
    else:
        child.value = run.cut
        if run.lo < 0.0 < run.hi and fabs(run.cut) <= child.step:
            child.value = 0.0                 # as near to the root
    if is_narrow(&child, out):
        finish_run_or_cut_at_value(&child, run.cut, out)
    else:
        child.cut = cut_beside_value(&child)
        keep_open(&child, out)


cdef inline double cut_beside_value(Run *run) noexcept nogil:
    """A cut beside the value, on the side of the bound that is farther away."""
    cdef double up = run.hi - run.value, down = run.value - run.lo
    cdef double cut = run.value + run.step if up > down else run.value - run.step
    return cut if run.lo < cut < run.hi else midpoint(run, False)


cdef inline bint choose_cut(Run *run, double last_cut, const Part *part, const Output *out) noexcept nogil:
    """Choose the next cut, given the sum of the rows at the last one; return False if the run is finished."""
    cdef double step, margin, cut
    if run.untested:
        run.cut = run.lo if run.untested & LOW_END else run.hi
        return True
    if out.halve:
        run.cut = midpoint(run, True)
        return True
    if run.value == run.value:
        run.cut = cut_beside_value(run)
        return True
    if out.at_targets:
        return choose_target(run, out)
    if run.stalls < MAX_STALLS and part.curvature > 0.0:
        step = part.sum / part.curvature
        # Newton's method converges quadratically: the next step is about step * (step / last step)**2.  Going beyond
        # the root by more than that closes the bounds from both sides.
        margin = 0.0
        if run.step != 0.0:
            margin = lesser(0.25, 4.0 * (step / run.step) * (step / run.step)) * fabs(step)
        margin = greater(margin, 2.0 * error_of(part.magnitude) / part.curvature)
        run.step = step
        cut = last_cut + step + copysign(margin, step)
        cut = cut if run.lo < cut < run.hi else last_cut + step
        if run.lo < cut < run.hi:
            run.cut = cut
            return True
    run.stalls = 0 if run.stalls >= MAX_STALLS else run.stalls
    run.step = 0.0
    run.cut = midpoint(run, False)
    return True
