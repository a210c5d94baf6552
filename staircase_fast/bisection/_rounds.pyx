"""Rounds: every open run of rows is cut once, until values are as precise as floats are, or as wanted.

Section VI of the paper.  A run is a stretch of rows whose values are known to lie between `lo` and `hi`; at first it
is all rows.  A cut (_cut.pxd) divides it into a run below, a block at the cut, and a run above, or only narrows its
bounds.  In the end each run is a block: the optimum has one value there, the root of its summed slopes, and the last
cuts on both sides of it, which divide nothing, are the proof.

Two ways to choose cuts.  Halving: in the middle, as the paper does; all bounds have one width, and after k rounds that
is 2**-k of the first.  Hasting: where the tangent of the summed slopes says the root is, and a little beyond, so that
the bounds close in from both sides; in the middle, of values or of floats in turn, when that does not get on.

A sum of slopes within its own rounding error has no sign that can be trusted.  Rows with such a sum stay together; the
cut is their value, and cuts beside it tell how far it can be trusted.  Where a sum is zero all around (slopes that have
levelled off), minimisers form an interval: it is cut on as two runs of the same rows, the least and the greatest
minimiser, and the value is between them.

Kernels here assume clean input: n >= 1, rows in score order, targets and parameters in the domain of the loss, weights
finite and > 0.
"""

from libc.math cimport INFINITY, NAN, copysign, fabs, nextafter
from libc.stdint cimport int64_t, uint8_t

from staircase_fast.arithmetic._branchless cimport greater, lesser
from staircase_fast.bisection._prefix_minimum cimport CHUNK, Cut, Part, above, error_of, new_cut, see
from staircase_fast.losses._slopes cimport Model, Slopes, fill_noise, fill_slopes, is_ill_conditioned, levels_off
from staircase_fast.stack._sort cimport rank_of, score_of

cdef enum:
    EITHER = 0            # the value of a run is its only minimiser,
    LEAST = -1            # its least,
    GREATEST = 1          # or its greatest one
    LOW_END = 1           # the bounds are ends of the domain that have yet to be cut at
    HIGH_END = 2
    MANY_STALLS = 3
    MANY_ULPS = 1000


# rounds.RUN is the same
ctypedef struct Run:
    int64_t start
    int64_t end
    double lo                 # proven bounds of its values
    double hi
    double d_lo               # sum of D there, or NaN
    double d_hi
    double cut                # the next
    double step               # the last step of Newton's method, or 0; once there is a value: how far beside it to cut
    double value              # where its sum is zero within rounding, or NaN
    int64_t side              # EITHER, LEAST, GREATEST
    int64_t untested          # LOW_END, HIGH_END
    int64_t stalls            # rounds without progress
    int64_t turn              # how often it was cut in the middle


ctypedef struct Rows:
    Model model
    const double *y
    const double *w           # or NULL: all are 1
    const uint8_t *ends       # whether a score ends at a row, or NULL: at each
    bint whole                # big parts of slopes, with their weights, are small integers
    const double *tail        # slopes that someone else found, or NULL
    const double *curve
    bint location             # rows of one target have that for their value
    Py_ssize_t bad            # a row whose slope is no slope, or -1


ctypedef struct Output:
    bint halve
    double tol
    Run *open
    Py_ssize_t n_open
    Run *done
    Py_ssize_t n_done


def cut_runs(
    int kind,
    const double[::1] parameters not None,    # IN  one, or one per row
    size_t function,                          # IN  address of a user's derivative, or 0
    size_t user_data,
    const double[::1] targets not None,       # IN  in score order
    const double[::1] weights not None,       # IN  or empty: all are 1
    const uint8_t[::1] ends not None,         # IN  whether a score ends at a row; or empty: at each
    bint whole,                               # IN  big parts of slopes, with their weights, are small integers
    const double[::1] tail not None,          # IN  slopes of each row at the cut of its run, or empty: find them
    const double[::1] curve not None,         # IN  how these slopes rise
    bint location,
    bint halve,
    double tol,
    uint8_t[::1] runs not None,               # IN  Run
    Py_ssize_t first,                         # IN  the first run to cut
    Py_ssize_t budget,                        # IN  rows to look at before coming back
    uint8_t[::1] state not None,              # work: state_size() bytes; zeros before the first run of a round
    uint8_t[::1] still not None,              # OUT Run: room for four per run
    uint8_t[::1] done not None,               # OUT Run: the same
    Py_ssize_t n_open,
    Py_ssize_t n_done,
):
    """Cut runs from the first one on; return (the next one to cut, n_open, n_done) after that.

    The fourth entry is a row where a user's derivative is NaN or decreases, or -1.
    """
    cdef Rows rows
    cdef Output out = Output(
        halve, tol, <Run *>&still[0], n_open, <Run *>&done[0], n_done
    )
    cdef const Run *run = <const Run *>&runs[0]
    cdef Py_ssize_t n_runs = runs.shape[0] // sizeof(Run)
    cdef Cut *cut = <Cut *>&state[0]
    rows.model = Model(
        kind, &parameters[0], parameters.shape[0] > 1, <void *>function, <void *>user_data, True
    )
    rows.y = &targets[0]
    rows.w = &weights[0] if weights.shape[0] else NULL
    rows.ends = &ends[0] if ends.shape[0] else NULL
    rows.whole = whole
    rows.tail = &tail[0] if tail.shape[0] else NULL
    rows.curve = &curve[0] if curve.shape[0] else NULL
    rows.location = location
    rows.bad = -1
    with nogil:
        while first < n_runs and budget > 0 and rows.bad < 0:
            if cut.next < run[first].start or cut.next >= run[first].end or cut.since.end == 0:
                cut[0] = new_cut(run[first].start)
            budget -= look(&rows, run + first, cut, budget)
            if cut.next == run[first].end and rows.bad < 0:
                judge(&rows, run + first, cut, &out)
                cut.since.end = 0
                first += 1
    return first, out.n_open, out.n_done, rows.bad


def run_size():
    """Bytes of a Run."""
    return sizeof(Run)


def state_size():
    """Bytes that `cut_runs` keeps between calls."""
    return sizeof(Cut)


cdef Py_ssize_t look(Rows *rows, const Run *run, Cut *cut, Py_ssize_t budget) noexcept nogil:
    """Sum slopes at the cut, of so many rows; return of how many."""
    cdef double[CHUNK] big
    cdef double[CHUNK] tail
    cdef double[CHUNK] curve
    cdef double[CHUNK] noise
    cdef Slopes slopes = Slopes(&big[0], &tail[0], &curve[0])
    cdef Py_ssize_t begin = cut.next, i, n
    cdef const double *w = NULL
    cdef const uint8_t *ends = NULL
    cdef const double *parts = &big[0] if levels_off(&rows.model) else NULL
    cdef const double *errors = &noise[0] if is_ill_conditioned(&rows.model) else NULL
    while cut.next < run.end and cut.next - begin < budget:
        i = cut.next
        n = min(CHUNK, run.end - i)
        if rows.w != NULL:
            w = rows.w + i
        if rows.ends != NULL:
            ends = rows.ends + i
        if rows.tail == NULL:
            rows.bad = fill_slopes(&rows.model, rows.y, i, n, &run.cut, 0, slopes)
            if rows.bad >= 0:
                break
            if errors != NULL:
                fill_noise(&rows.model, rows.y, i, n, run.cut, slopes, noise)
            see(cut, parts, tail, curve, errors, w, ends, n, rows.whole)
        else:
            see(cut, NULL, rows.tail + i, rows.curve + i, NULL, w, ends, n, False)
    return cut.next - begin


cdef void judge(const Rows *rows, const Run *run, const Cut *cut, Output *out) noexcept nogil:
    """Divide the run: rows below the cut, at the cut, above the cut."""
    cdef Part low = cut.below, at = cut.at, high = above(cut), joined
    if at.end == low.end or not is_level(run, at.curve):
        if not run.untested:
            settle(rows, run, &low, &at, &high, out)
        divide(rows, run, run.side, &low, low.end, at.end, &high, out)
        return
    # minimisers form an interval, perhaps: the least ones are below, the greatest ones above
    if run.side != GREATEST:
        joined = Part(at.end, low.sum + at.sum, low.doubt + at.doubt, low.curve + at.curve)
        divide(rows, run, LEAST, &joined, at.end, at.end, &high, out)
    if run.side != LEAST:
        joined = Part(high.end, high.sum + at.sum, high.doubt + at.doubt, high.curve + at.curve)
        divide(rows, run, GREATEST, &low, low.end, low.end, &joined, out)


cdef void divide(
    const Rows *rows, const Run *run, int64_t side, const Part *low, Py_ssize_t low_end, Py_ssize_t high_start,
    const Part *high, Output *out
) noexcept nogil:
    """Rows up to `low_end` are below, those from `high_start` on above; at an end of the domain, they are at it."""
    if run.untested & LOW_END:
        close_at(side, run.start, high_start, run.lo, out)
    else:
        narrow(rows, run, side, run.start, low, True, out)
    if run.untested & LOW_END or not run.untested & HIGH_END:
        narrow(rows, run, side, high_start, high, False, out)
    else:
        close_at(side, low_end, run.end, run.hi, out)


cdef inline bint is_level(const Run *run, double curve) noexcept nogil:
    """Whether there may be zeros all around: a step aside would not change the sum by a number."""
    return fabs(run.cut) < 1e308 and not curve * (ulp_of(run.cut) + 1e-20 * (run.hi - run.lo)) > 0.0


cdef inline void close_at(int64_t side, int64_t start, int64_t end, double value, Output *out) noexcept nogil:
    """A block whose value is known."""
    if end > start:
        out.done[out.n_done] = Run(start, end, value, value, NAN, NAN, value, 0.0, value, side, 0, 0, 0)
        out.n_done += 1


cdef void narrow(
    const Rows *rows, const Run *run, int64_t side, Py_ssize_t start, const Part *part, bint below, Output *out
) noexcept nogil:
    """The rows [start, part.end) lie below the cut, or above it."""
    cdef Run child = run[0]
    cdef bint whole = part.end - start == run.end - run.start
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
    if not whole:
        # what was known of all rows says nothing of these
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
    if rows.location and have_one_target(rows.y, start, part.end):
        close_at(child.side, child.start, child.end, held(rows.y[start], child.lo, child.hi), out)
    elif is_closed(&child, out):
        close_after_a_cut_at_the_value(&child, run.cut, out)
    else:
        choose_cut(&child, run.cut, part, out)
        out.open[out.n_open] = child
        out.n_open += 1


cdef inline bint have_one_target(const double *y, Py_ssize_t start, Py_ssize_t end) noexcept nogil:
    """Whether all targets are equal: then that is the value."""
    cdef Py_ssize_t i = start + 1
    while i < end and y[i] == y[start]:
        i += 1
    return i == end


cdef inline double held(double value, double lo, double hi) noexcept nogil:
    return lesser(greater(value, lo), hi)


cdef inline bint is_closed(const Run *run, const Output *out) noexcept nogil:
    """Whether the bounds are narrow enough.  A NaN bound also closes the run: targets that change may become NaN."""
    if run.untested:
        return not run.lo < run.hi
    if not run.hi - run.lo > out.tol or not run.hi > nextafter(run.lo, INFINITY):
        return True
    return run.value == run.value and not run.hi - run.lo > 6.0 * run.step    # also if the step is NaN


cdef inline void close(const Run *run, Output *out) noexcept nogil:
    """A run with narrow bounds is a block."""
    cdef Run block = run[0]
    if not run.value == run.value:
        block.value = 0.5 * run.lo + 0.5 * run.hi
        if run.lo < 0.0 < run.hi and run.hi - run.lo > out.tol:
            block.value = 0.0                 # as good as any other, and what symmetric targets are meant to have
        elif run.side != EITHER:
            block.value = run.hi if run.side == LEAST else run.lo
        elif run.d_lo > 0.0 > run.d_hi:
            block.value = held(run.lo + (run.hi - run.lo) * (run.d_lo / (run.d_lo - run.d_hi)), run.lo, run.hi)
    out.done[out.n_done] = block
    out.n_done += 1


cdef inline void close_after_a_cut_at_the_value(Run *run, double last_cut, Output *out) noexcept nogil:
    """Close a run, or cut it once more at its value, if the bounds are wide because of rounding errors.

    Rows with large slopes that cancel hide rows with small ones.  A cut at the value separates the rows at the ends of
    the run that have sums of their own.
    """
    if (
        run.value == run.value and run.value != last_cut and run.lo < run.value < run.hi and run.step < INFINITY
        and run.hi - run.lo > greater(out.tol, MANY_ULPS * ulp_of(run.value)) and not out.halve
    ):
        run.cut = run.value
        run.step = INFINITY                   # closes what is left of the run
        out.open[out.n_open] = run[0]
        out.n_open += 1
    else:
        close(run, out)


cdef void settle(
    const Rows *rows, const Run *run, const Part *low, const Part *part, const Part *high, Output *out
) noexcept nogil:
    """The sum of the rows [low.end, part.end) is zero at the cut, within rounding.

    The rows below and above the cut bound their value, too: it can be beyond the cut only by as much as the error of
    the sum could move those.
    """
    cdef Run child = run[0]
    cdef Py_ssize_t start = low.end
    cdef double noise
    if part.end == start:
        return
    child.start = start
    child.end = part.end
    child.d_lo = NAN
    child.d_hi = NAN
    child.stalls = 0
    noise = error_of(part.doubt) / part.curve
    if start > run.start and low.curve > 0.0:
        child.lo = greater(run.lo, run.cut - 4.0 * (error_of(part.doubt) / low.curve + ulp_of(run.cut)))
    if high.end > part.end and high.curve > 0.0:
        child.hi = lesser(run.hi, run.cut + 4.0 * (error_of(part.doubt) / high.curve + ulp_of(run.cut)))
    if rows.location and have_one_target(rows.y, start, part.end):
        close_at(run.side, start, part.end, held(rows.y[start], child.lo, child.hi), out)
        return
    if noise <= 0.5 * ulp_of(run.cut):        # the root is between the neighbours of the cut
        child.lo = greater(child.lo, nextafter(run.cut, -INFINITY))
        child.hi = lesser(child.hi, nextafter(run.cut, INFINITY))
        child.value = run.cut
        close(&child, out)
        return
    child.step = 4.0 * (noise + ulp_of(run.cut))
    if run.value == run.value:                # beside the value it is not better
        child.step = greater(child.step, 4.0 * run.step)
        child.value = run.value
    else:
        child.value = run.cut
        if run.lo < 0.0 < run.hi and fabs(run.cut) <= child.step:
            child.value = 0.0                 # as near to the root
    if is_closed(&child, out):
        close_after_a_cut_at_the_value(&child, run.cut, out)
    else:
        child.cut = beside(&child)
        out.open[out.n_open] = child
        out.n_open += 1


cdef inline double ulp_of(double x) noexcept nogil:
    return nextafter(fabs(x), INFINITY) - fabs(x)


cdef inline double beside(Run *run) noexcept nogil:
    """A cut beside the value, on the side where the bound is farther away."""
    cdef double up = run.hi - run.value, down = run.value - run.lo
    cdef double cut = run.value + run.step if up > down else run.value - run.step
    return cut if run.lo < cut < run.hi else middle(run, False)


cdef inline void choose_cut(Run *run, double at, const Part *part, const Output *out) noexcept nogil:
    """The next cut, where the last one, at `at`, gave this sum."""
    cdef double step, beyond, cut
    if run.untested:
        run.cut = run.lo if run.untested & LOW_END else run.hi
        return
    if out.halve:
        run.cut = middle(run, True)
        return
    if run.value == run.value:
        run.cut = beside(run)
        return
    if run.stalls < MANY_STALLS and part.curve > 0.0:
        step = part.sum / part.curve
        # if this step is to the last one as the next will be to this one (squared: Newton's method), the next will not
        # go beyond it by more than so much
        beyond = 0.0
        if run.step != 0.0:
            beyond = lesser(0.25, 4.0 * (step / run.step) * (step / run.step)) * fabs(step)
        beyond = greater(beyond, 2.0 * error_of(part.doubt) / part.curve)
        run.step = step
        cut = at + step + copysign(beyond, step)
        cut = cut if run.lo < cut < run.hi else at + step
        if run.lo < cut < run.hi:
            run.cut = cut
            return
    run.stalls = 0 if run.stalls >= MANY_STALLS else run.stalls
    run.step = 0.0
    run.cut = middle(run, False)


cdef inline double middle(Run *run, bint halve) noexcept nogil:
    """Between the bounds: as many values below as above, or every other time, as many floats."""
    cdef double cut = 0.5 * run.lo + 0.5 * run.hi
    run.turn += 1
    if not halve and run.turn & 1 == 0:
        cut = score_of(rank_of(run.lo) / 2 + rank_of(run.hi) / 2)
    return cut if run.lo < cut < run.hi else nextafter(run.lo, INFINITY)
