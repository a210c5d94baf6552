# Which buckets of rows can hold the end of a step.
#
# Rows in score order draw a path: after each observation the point (sum of weights, sum of weight*target) so far.  The
# staircase is the slope of the greatest convex function below that path, and steps end where that function touches the
# path and bends.  Take any two points of the path: the convex function lies on or below the chord between them.  So a
# stretch of path that runs strictly above a chord has no end of a step in it.
#
# Of a bucket we know its weight w, its sum s, its least and greatest target lo and hi.  After mass m inside it the path
# has climbed at least max(lo*m, s - hi*(w - m)): it stays above two segments that meet in a corner at mass
# a = (w*hi - s)/(hi - lo).  If start, corner and end are above the chord by more than rounding can explain, all rows of
# the bucket lie within one step, and if that holds for neighbouring buckets, within the same step.  Such buckets are
# quiet; the others are live.
#
# Where all targets of some buckets side by side are equal, the path is straight, and a convex function below it that
# touches it between its ends is as straight there: it can only bend at the ends.  So all but the first and the last of
# these buckets are quiet, also on the chord.
#
# Any chords will do.  The best are those of the path through the bucket borders only, found by the stack in plain
# floating point: where that errs, more buckets are live, and nothing else happens.

from libc.math cimport NAN
from libc.stdint cimport uint8_t

from staircase_fast.arithmetic._branchless cimport lesser
from staircase_fast.arithmetic._column_scan cimport Bucket
from staircase_fast.stack._summary cimport Summary, bucket_at, rounding_of, summary_t


cdef inline void plan(
    const summary_t *table,       # IN
    Py_ssize_t n,
    bint decreasing,
    Py_ssize_t roundings,         # most that a sum has
    double greatest,              # largest magnitude of a target
    Py_ssize_t *starts,           # work: n
    double *s,                    # work: n
    double *w,                    # work: n
    uint8_t *live,                # OUT
    Py_ssize_t group,             # buckets between two ends of chords: more make a plan quick, fewer make it good
) noexcept nogil:
    """Mark live buckets."""
    cdef Py_ssize_t b, top = -1, start, block, stop
    cdef double s_b, w_b, slope, margin, lost
    cdef Bucket bucket
    b = 0
    while b < n:
        start = b
        s_b = 0.0
        w_b = 0.0
        for b in range(start, min(n, start + group)):
            bucket = bucket_at(table, b, decreasing)
            s_b += bucket.s
            w_b += bucket.w
        b += 1
        while top >= 0 and s[top] * w_b >= s_b * w[top]:
            s_b += s[top]
            w_b += w[top]
            start = starts[top]
            top -= 1
        top += 1
        starts[top] = start
        s[top] = s_b
        w[top] = w_b
    for block in range(top + 1):
        stop = starts[block + 1] if block < top else n
        slope = s[block] / w[block]
        # every sum has at most so many roundings, each at most 2**-53 of a number below twice `greatest` times the
        # weight; eightfold, to be safe
        margin = <double>(roundings + 16) * 1.7763568394002505e-15 * (greatest * w[block])
        # what summaries lost: at the end of the chord, at the bucket's start, and in its corner
        lost = 0.0
        if summary_t is not Bucket:
            for b in range(starts[block], stop):
                lost += rounding_of(table, b, slope, greatest * 1e-6)
        mark(table, starts[block], stop, decreasing, slope, margin + 3.0 * lost, live)
    if not (summary_t is Summary):            # which does not tell whether all targets are equal
        quieten(table, n, live)


cdef inline void mark(
    const summary_t *table, Py_ssize_t start, Py_ssize_t stop, bint decreasing, double slope, double margin,
    uint8_t *live
) noexcept nogil:
    """Live buckets among [start, stop), whose chord has this slope."""
    cdef Py_ssize_t b
    cdef double gap = -margin, after      # how far above the chord, less the margin
    cdef bint quiet, cornered
    cdef Bucket bucket
    for b in range(start, stop):
        bucket = bucket_at(table, b, decreasing)
        after = gap + (bucket.s - slope * bucket.w)
        quiet = lesser(gap, after) > 0.0
        # the corner lies below the start by (slope - lo)*a; both sides times hi - lo
        cornered = (slope - bucket.lo) * (bucket.w * bucket.hi - bucket.s) >= gap * (bucket.hi - bucket.lo)
        cornered &= (bucket.lo < slope) & (slope < bucket.hi)
        live[b] = (bucket.w > 0.0) & ((not quiet) | cornered)
        gap = after


cdef inline void quieten(const summary_t *table, Py_ssize_t n, uint8_t *live) noexcept nogil:
    """Buckets of equal targets between others of the same are quiet.  Empty ones do not count."""
    cdef Py_ssize_t b
    cdef double value
    for b in range(n):
        if live[b]:
            value = only_target(table, n, b, 0)
            live[b] = not (only_target(table, n, b - 1, -1) == value == only_target(table, n, b + 1, 1))


cdef inline double only_target(const summary_t *table, Py_ssize_t n, Py_ssize_t b, int onwards) noexcept nogil:
    """The one target of a bucket, or if that is empty, of the next one; NaN, which equals none, if it has several."""
    cdef Bucket bucket
    while 0 <= b < n:
        bucket = bucket_at(table, b, False)
        if bucket.w > 0.0:
            return bucket.lo if bucket.lo == bucket.hi else NAN
        b += onwards
    return NAN
