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
# Any chords will do.  The best are those of the path through the bucket borders only, found by the stack in plain
# floating point: where that errs, more buckets are live, and nothing else happens.

from libc.stdint cimport uint8_t

ctypedef struct Bucket:
    double s
    double w
    double lo
    double hi


cdef inline void plan(
    const Bucket *buckets,        # IN
    Py_ssize_t n,
    Py_ssize_t n_rows,            # most roundings that a sum has
    double greatest,              # largest magnitude of a target
    Py_ssize_t *starts,           # work: n
    double *s,                    # work: n
    double *w,                    # work: n
    uint8_t *live,                # OUT
    Py_ssize_t group=1,           # buckets between two ends of chords: more make a plan quick, fewer make it good
) noexcept nogil:
    """Mark live buckets."""
    cdef Py_ssize_t b = 0, top = -1, start, block, stop
    cdef double s_b, w_b, size, margin
    while b < n:
        start = b
        s_b = buckets[b].s
        w_b = buckets[b].w
        for b in range(b + 1, min(b + group, n)):
            s_b += buckets[b].s
            w_b += buckets[b].w
        b = min(start + group, n)
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
        # every sum has at most n_rows roundings, each at most 2**-53 of a number below 2 * size; eightfold, to be safe
        size = greatest * w[block]
        margin = <double>(n_rows + 16) * 1.7763568394002505e-15 * size
        mark(buckets, starts[block], stop, s[block] / w[block], margin, live)


cdef inline void mark(
    const Bucket *buckets, Py_ssize_t start, Py_ssize_t stop, double slope, double margin, uint8_t *live
) noexcept nogil:
    """Live buckets among [start, stop), whose chord has this slope."""
    cdef Py_ssize_t b
    cdef double gap = 0.0, after, s, w, lo, hi, room
    for b in range(start, stop):
        s = buckets[b].s
        w = buckets[b].w
        lo = buckets[b].lo
        hi = buckets[b].hi
        after = gap + (s - slope * w)
        # the corner lies (slope - lo)*a below the start; where the slope is not between lo and hi, an end is lower
        room = min(gap, after) - margin
        live[b] = not ((room > 0) & ((hi == lo) | ((gap - margin) * (hi - lo) > (slope - lo) * (w * hi - s))))
        gap = after
